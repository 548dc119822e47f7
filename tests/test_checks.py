"""Checks: models whose outcome is known beforehand, reproducibility, messages, the published behaviour."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from known_models import Chance, Constant, Count, Estimator, Memoriser, NoPoison, Oracle, Scorer, Size, facts
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline

import milfast as mf
from milfast import Bags
from milfast.checks import SPELLINGS, BagRecipe, Component, Draw, runner
from milfast.uncertainty import auc_interval

CHECKS = ("presence", "threshold-poison", "false-frequency")
NAN = math.nan


# ---------------------------------------------------------------- what known models get


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("check", CHECKS)
def test_the_true_rule_passes(check: str, spelling: str) -> None:
    model = Oracle(mf.checks.get(check).recipe(spelling))
    [result] = mf.check_model(model, checks=check, recipe=spelling, n_train=50, n_test=1000, random_state=0)
    assert (result.verdict, result.paper_verdict) == ("pass", "pass")
    assert result.test_auc.estimate == result.oracle_auc


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("check", ["presence", "threshold-poison"])
def test_a_model_that_looks_for_the_absence_of_poison_fails_with_an_auc_of_zero(check: str, spelling: str) -> None:
    [result] = mf.check_model(NoPoison(), checks=check, recipe=spelling, n_train=200, n_test=1000, random_state=0)
    assert (result.verdict, result.paper_verdict, result.test_auc.estimate) == ("fail", "fail", 0.0)
    if (check, spelling) == ("threshold-poison", "notebook"):
        # a tenth of the positives is poisoned too, and ties with the negatives: 0.9 + 0.1 / 2
        assert result.fresh_auc.estimate == pytest.approx(0.95, abs=0.03)
    else:
        assert result.fresh_auc.estimate == 1.0


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_model_that_counts_fails_false_frequency_with_an_auc_of_zero(spelling: str) -> None:
    [result] = mf.check_model(
        Count(), checks="false-frequency", recipe=spelling, n_train=200, n_test=1000, random_state=0
    )
    assert (result.verdict, result.test_auc.estimate) == ("fail", 0.0)
    assert result.fresh_auc.estimate == pytest.approx({"notebook": 1.0}.get(spelling, 15 / 16), abs=0.02)


@pytest.mark.parametrize("n_runs", [1, 3])
def test_a_model_that_sees_the_size_alone_reaches_the_size_auc(n_runs: int) -> None:
    results = mf.check_model(Size(), recipe="all", n_train=20, n_test=400, n_runs=n_runs, random_state=0)
    shifted = [result for result in results if result.test_auc is not None]
    assert {result.check for result in shifted} == set(mf.checks.names()) - set(mf.checks.names("laws"))
    for result in shifted:
        assert result.test_auc.estimate == pytest.approx(result.size_auc, abs=1e-12)


def test_the_size_cue_alone_passes_two_checks_as_the_paper_words_them() -> None:
    verdicts = {
        r.check: r.verdict for r in mf.check_model(Size(), checks="paper", n_train=20, n_test=1000, random_state=0)
    }
    assert verdicts == {"presence": "pass", "threshold-poison": "pass", "false-frequency": "fail"}


@pytest.mark.parametrize("n_runs", [1, 3])
@pytest.mark.parametrize("model", [Constant, Chance])
def test_a_model_that_knows_nothing_has_not_learned(model: type, n_runs: int) -> None:
    results = mf.check_model(model, n_train=20, n_test=500, n_runs=n_runs, random_state=1)
    assert {result.check for result in results} == set(mf.checks.names())
    for result in results:
        assert result.verdict == "not-learned"
        assert "not shown to be better than chance on fresh bags of the training distribution" in result.reason
        if model is Constant:
            assert result.fresh_auc.estimate == 0.5
            assert result.test_auc is None or result.test_auc.estimate == 0.5


@pytest.mark.parametrize("n_runs", [1, 3])
@pytest.mark.parametrize(("model", "spelling"), [(Memoriser, "paper"), (Size, "strict")])
def test_a_model_without_knowledge_is_taken_for_one_that_learned_no_more_often_than_the_level_says(
    model: type, spelling: str, n_runs: int
) -> None:
    arguments: dict[str, Any] = {"checks": "presence", "recipe": spelling, "n_train": 20, "n_test": 200}
    results = [mf.check_model(model, **arguments, n_runs=n_runs, random_state=seed)[0] for seed in range(100)]
    learned = sum(result.verdict != "not-learned" for result in results)
    assert learned <= stats.binom.ppf(0.999, len(results), 0.025)
    if model is Memoriser:
        # what the training AUC says, and the paper's rule with it, is that the model learned; the rest is a coin flip
        assert {result.train_auc.estimate for result in results} == {1.0}
        guilty = sum(result.paper_verdict == "fail" for result in results)
        assert stats.binomtest(guilty, len(results), 0.5).pvalue > 1e-3


def test_a_check_of_ones_own_is_run_like_the_others() -> None:
    mine = BagRecipe(
        name="mine",
        components=(Component("background"), Component("signal", 3.0, concept="signal"), Component("tag", -9.0)),
        negative=(Draw("tag", split="train"), Draw("background", (3, 8))),
        positive=(Draw("tag", split="test"), Draw("signal"), Draw("background", (3, 8))),
    )
    results = mf.check_model(NoPoison(), checks=[mine, "presence"], n_train=20, n_test=200, random_state=0)
    assert [(r.check, r.recipe, r.verdict) for r in results] == [("mine", "own", "fail"), ("presence", "paper", "fail")]
    assert mf.check_model(Oracle(mine), checks=mine, n_train=20, n_test=200, random_state=0)[0].verdict == "pass"


# ---------------------------------------------------------------- results


def test_a_result_is_one_flat_row_of_plain_values() -> None:
    [result] = mf.check_model(NoPoison(), checks="presence", n_train=30, n_test=60, n_runs=2, level=0.9, random_state=5)
    row = result.to_dict()
    assert all(type(value) in (str, int, float, type(None)) for value in row.values()), row
    # what a check without sorts of bags, of a model that claims nothing and is judged, does not have
    none = {name for name, value in row.items() if value is None}
    absent = {f"{name}{part}" for name in ("worst_auc", "broken") for part in ("", "_low", "_high")}
    assert none == absent | {"worst_stratum", "claims", "needed_runs", "needed_test"}
    assert row["model"] == "NoPoison"
    assert (row["n_train"], row["n_test"], row["n_runs"], row["level"], row["seed"]) == (30, 60, 2, 0.9, 5)
    for name in ("train_auc", "fresh_auc", "test_auc"):
        it = getattr(result, name)
        assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == (it.estimate, it.low, it.high)
    assert len(result.runs) == 2
    assert row["oracle_auc"] == np.mean([run.oracle_auc for run in result.runs])
    assert row["seconds"] == sum(run.seconds for run in result.runs) > 0


def test_the_text_forms_say_verdict_figures_and_reason() -> None:
    [one] = mf.check_model(NoPoison(), checks="presence", n_train=30, n_test=100, random_state=0)
    assert repr(one) == (
        "CheckResult(NoPoison on presence (paper): fail; train 1.000, fresh 1.000 [0.929, 1.000], "
        "shifted 0.000 [0.000, 0.071]; learned instead: that a bag lacks the poison; conditional on this fit)"
    )
    page = one._repr_html_()
    assert page.startswith("<table>")
    assert page.endswith("</table>")
    for text in ("NoPoison", "presence", "fail", "1.000 [0.929, 1.000]", "conditional on this fit"):
        assert f"{text}</td>" in page
    [two] = mf.check_model(NoPoison(), checks="presence", n_train=30, n_test=100, n_runs=2, random_state=0)
    assert "this fit" not in two.reason
    assert "from 2 runs, and it takes 5" in two.reason


def test_names_are_escaped_in_html() -> None:
    model = NoPoison()
    model.name = "<b>"  # type: ignore[attr-defined]
    [result] = mf.check_model(model, checks="presence", n_train=20, n_test=20, random_state=0)
    assert "&lt;b&gt;" in result._repr_html_()
    assert "<b>" not in result._repr_html_()


def test_intervals_are_those_of_the_scores() -> None:
    recipe = mf.checks.get("presence").recipe()
    [result] = mf.check_model(Size(), checks=recipe, n_train=40, n_test=90, level=0.8, random_state=3)
    seen: list[Bags] = []

    class Spy(Size):
        def decision_function(self, bags: Bags) -> Any:
            seen.append(bags)
            return super().decision_function(bags)

    mf.check_model(Spy(), checks=recipe, n_train=40, n_test=90, random_state=3)
    train, fresh, test = seen
    assert [len(bags) for bags in seen] == [40, 90, 90]
    # fresh bags are of the training distribution, and not the training bags: there poison means a negative bag
    for got, bags, poison in ((result.train_auc, train, 0), (result.fresh_auc, fresh, 0), (result.test_auc, test, 1)):
        poisoned = np.array([bag.mean(axis=1).min() < -5 for bag in bags])
        assert got == auc_interval(bags.sizes, poisoned == poison, level=0.8)
    assert not np.isin(train.instances[:, 0], fresh.instances[:, 0]).any()


# ---------------------------------------------------------------- reproducibility


def test_the_same_seed_gives_the_same_result_in_one_process_and_in_two() -> None:
    def run(n_jobs: int) -> list[dict[str, Any]]:
        return facts(mf.check_model(Memoriser(), n_train=30, n_test=60, n_runs=2, random_state=2, n_jobs=n_jobs))

    assert run(1) == run(1) == run(2)


@pytest.mark.parametrize("random_state", [0, 7, None, "generator", "sequence"])
def test_the_seed_of_a_result_brings_the_result_back(random_state: Any) -> None:
    made = {"generator": np.random.default_rng(1), "sequence": np.random.SeedSequence(1)}
    given = made.get(random_state, random_state) if isinstance(random_state, str) else random_state
    first = mf.check_model(Chance(), n_train=20, n_test=50, n_runs=2, random_state=given)
    if isinstance(random_state, int):
        assert first[0].seed == random_state
    assert facts(first) == facts(mf.check_model(Chance(), n_train=20, n_test=50, n_runs=2, random_state=first[0].seed))


def test_other_seeds_give_other_results() -> None:
    totals = []

    class Spy(Size):
        def fit(self, bags: Bags) -> Any:
            totals.append(float(bags.instances.sum()))
            return self

    for random_state in (0, 1, None, None):
        mf.check_model(Spy(), checks="presence", n_train=20, n_test=50, random_state=random_state)
    assert len(set(totals)) == 4


def test_all_models_see_the_same_bags_and_every_run_sees_its_own() -> None:
    seen: dict[str, list[tuple[float, int]]] = {}

    def watched(base: type) -> Any:
        class Watched(base):  # type: ignore[misc]
            def fit(self, bags: Bags, y: Any = None) -> Any:
                place = seen.setdefault(base.__name__, [])
                place.append((float(bags.instances.sum()), getattr(self, "random_state", -1)))
                return super().fit(bags)

        return Watched()

    for base in (Chance, Estimator, Size):
        more: dict[str, Any] = {"n_train": 20, "n_test": 20, "n_runs": 2, "random_state": 4}
        mf.check_model(watched(base), checks="paper", recipe=["paper", "strict"], **more)
    bags = {name: [total for total, _ in fits] for name, fits in seen.items()}
    assert bags["Chance"] == bags["Estimator"] == bags["Size"]
    # three checks, two recipes, two runs: all different
    assert len(set(bags["Size"])) == 12
    seeds = [seed for _, seed in seen["Chance"]]
    assert seeds == [seed for _, seed in seen["Estimator"]]
    assert len(set(seeds)) == 12


def test_a_cell_does_not_depend_on_which_others_are_asked_for() -> None:
    def run(**more: Any) -> dict[tuple[str, str], dict[str, Any]]:
        results = mf.check_model(Chance(), n_train=20, n_test=50, random_state=0, **more)
        # Holm's correction alone depends on how many others there are
        return {(row["check"], row["recipe"]): {**row, "p_holm": None} for row in facts(results)}

    everything = run(recipe="all")
    assert set(everything) == {(c, s) for c in mf.checks.names() for s in mf.checks.get(c).spellings}
    assert len(everything) == 3 * 3 + 3 * 3 + 4
    paper = run(checks="paper", recipe="all")
    assert list(paper) == [(check, spelling) for check in CHECKS for spelling in SPELLINGS]
    assert all(everything[cell] == row for cell, row in paper.items())
    assert run(checks="presence", recipe="strict")["presence", "strict"] == everything["presence", "strict"]
    some = run(checks=["threshold-poison", "presence"], recipe=["strict", "paper"])
    assert list(some) == [(c, s) for c in ("threshold-poison", "presence") for s in ("strict", "paper")]
    assert all(everything[cell] == row for cell, row in some.items())


def test_one_fit_serves_a_check_and_its_laws() -> None:
    fits: list[int] = []

    class Spy(Size):
        def fit(self, bags: Bags) -> Any:
            fits.append(int(bags.labels.sum()))
            return self

    more: dict[str, Any] = {"n_train": 20, "n_test": 40, "n_runs": 2, "random_state": 0}
    results = mf.check_model(Spy(), checks=["monotonicity", "presence", "permutation", "null-copies"], **more)
    assert [r.check for r in results] == ["monotonicity", "presence", "permutation", "null-copies"]
    assert len(fits) == 2
    assert len({(r.train_auc, r.fresh_auc, r.seconds) for r in results}) == 1
    fits.clear()
    mf.check_model(Spy(), checks="laws", **more)  # the task itself need not be asked for
    assert len(fits) == 2
    fits.clear()
    mf.check_model(Spy(), **more)
    # presence with three laws, two more of the paper, bag-size, correlated, threshold-count; label-swap fits a second
    # model
    assert len(fits) == 2 * (1 + 2 + 1 + 1 + 1 + 2)


def test_a_law_has_random_numbers_of_its_own_whichever_others_are_tried_on_the_same_fit() -> None:
    class First(Scorer):
        def decision_function(self, bags: Bags) -> Any:
            return bags.instances[bags.offsets[:-1], 0]

    more: dict[str, Any] = {"n_train": 20, "n_test": 200, "random_state": 0}
    together = mf.check_model(First(), checks="laws", **more)
    alone = [mf.check_model(First(), checks=check, **more)[0] for check in mf.checks.names("laws")]
    assert all(result.broken is not None and result.broken.estimate > 0.05 for result in alone)
    assert [(r.check, r.broken) for r in together] == [(r.check, r.broken) for r in alone]


def test_groups_are_written_out_and_overlap_without_harm() -> None:
    def asked(checks: Any) -> list[str]:
        more: dict[str, Any] = {"recipe": "paper", "scale": "fast", "n_train": 20, "n_test": 20, "n_runs": 1}
        more |= {"level": 0.95, "n_features": 4, "pad_to": None, "direction": None, "random_state": 0}
        return sorted(check for job in runner.plan([Size()], checks=checks, **more) for check in job.checks)

    assert asked("paper") == sorted(CHECKS)
    assert asked("laws") == ["monotonicity", "null-copies", "permutation"]
    assert asked("all") == asked(["paper", "all"]) == asked(["presence", "laws", "all"]) == sorted(mf.checks.names())
    assert asked(["paper", "presence", "MIL001"]) == sorted(CHECKS)  # by name or by code, once
    assert mf.checks.get("MIL006").name == "monotonicity"
    with pytest.raises(ValueError, match="group must be one of paper, laws; got 'own'"):
        mf.checks.names("own")


def test_checks_are_listed_by_their_codes() -> None:
    codes = [mf.checks.get(name).code for name in mf.checks.names()]
    assert codes == sorted(codes)
    assert tuple(mf.checks.names("paper")) == CHECKS
    assert mf.checks.names("laws") == ["permutation", "null-copies", "monotonicity"]
    others = {"bag-size", "label-swap", "correlated", "threshold-count"}
    assert set(mf.checks.names()) == {*CHECKS, *mf.checks.names("laws"), *others}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_is_told_after_each_run(n_jobs: int) -> None:
    told: list[tuple[int, int, str, int]] = []
    results = mf.check_model(
        Constant(),
        checks="paper",
        n_train=20,
        n_test=20,
        n_runs=2,
        n_jobs=n_jobs,
        random_state=0,
        callback=lambda done, total, run: told.append((done, total, run.check, run.run)),
    )
    assert [done for done, *_ in told] == list(range(1, 7))
    assert {total for _, total, *_ in told} == {6}
    assert {(check, run) for *_, check, run in told} == {(r.check, run) for r in results for run in (0, 1)}


def test_options_reach_the_bags() -> None:
    seen: list[Bags] = []

    class Spy(Size):
        def fit(self, bags: Bags) -> Any:
            seen.append(bags)
            return self

    direction = np.eye(5)[2]
    more: dict[str, Any] = {"checks": "presence", "n_train": 200, "n_test": 20, "random_state": 0}
    mf.check_model(Spy(), n_features=5, pad_to=20, direction=direction, **more)
    [bags] = seen
    assert set(bags.sizes) == {20}
    # the poison, far from everything else
    poison = bags.instances[np.linalg.norm(bags.instances, axis=1) > 15].mean(axis=0)
    np.testing.assert_allclose(poison, -10 * math.sqrt(5) * direction, atol=5 * math.sqrt(0.1 / 100))


# ---------------------------------------------------------------- ways to hand over a model


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (Size, "Size"),
        (Size(), "Size"),
        (lambda: Size(), "Size"),
        (functools.partial(Oracle, mf.checks.get("presence").recipe()), "Oracle"),
        (Estimator(), "Estimator"),
        ("NSK", "NSK"),
        (mf.models.get("NSK"), "NSK"),
        (mf.models.get("NSK")(C=2.0), "NSK"),
    ],
    ids=("class", "instance", "function", "partial", "estimator", "name", "registered class", "registered instance"),
)
def test_models_are_named_or_made_or_given(model: Any, name: str) -> None:
    [result] = mf.check_model(model, checks="presence", n_train=20, n_test=40, random_state=0)
    assert result.model == name


def test_a_registered_name_takes_the_published_settings_and_an_instance_its_own() -> None:
    def run(model: Any) -> dict[str, Any]:
        [row] = facts(mf.check_model(model, checks="presence", recipe="strict", n_train=40, n_test=100, random_state=0))
        return row

    kind = mf.models.get("NSK")
    assert run("NSK") == run(kind(**kind.tested)) != run(kind())


def test_the_model_that_was_given_stays_unfitted() -> None:
    for model in (Chance(random_state=3), Estimator(random_state=3)):
        before = dict(vars(model))
        mf.check_model(model, checks="presence", n_train=20, n_test=20, random_state=0)
        assert vars(model) == before


def test_seeds_reach_the_parts_of_a_composed_model() -> None:
    seen = []

    class Spy(Estimator):
        def fit(self, bags: Bags, y: Any = None) -> Any:
            seen.append(self.random_state)
            return super().fit(bags)

    pipeline = Pipeline([("first", Spy()), ("last", Estimator())])
    mf.check_model(pipeline, checks="presence", n_train=20, n_test=20, n_runs=3, random_state=0)
    assert len(set(seen)) == 3
    assert None not in seen


@pytest.mark.parametrize(
    ("method", "transform"),
    [
        ("decision_function", np.asarray),
        ("decision_function", lambda s: s[:, None]),
        ("decision_function", list),
        ("predict_proba", lambda s: np.stack([100 - s, s], axis=1)),
        ("predict_proba", np.asarray),
        ("predict", np.asarray),
    ],
)
def test_scores_of_several_methods_and_shapes_are_read(method: str, transform: Any) -> None:
    kind = type("Made", (Scorer,), {method: lambda self, bags: transform(bags.sizes)})
    [result] = mf.check_model(kind(), checks="presence", n_train=20, n_test=40, random_state=0)
    assert result.test_auc.estimate == result.size_auc


def test_decision_function_is_preferred_to_probabilities_and_those_to_labels() -> None:
    class Many(Size):
        def predict_proba(self, bags: Bags) -> Any:
            raise AssertionError

        predict = predict_proba

    class Two(Scorer):
        predict = Many.predict_proba

        def predict_proba(self, bags: Bags) -> Any:
            return bags.sizes

    for kind in (Many, Two):
        [result] = mf.check_model(kind, checks="presence", n_train=20, n_test=40, random_state=0)
        assert result.test_auc.estimate == result.size_auc


def test_the_scale_decides_the_number_of_training_bags() -> None:
    assert mf.check_model("NSK", checks="presence", n_test=20, random_state=0)[0].n_train == 200
    assert mf.check_model(Constant(), checks="presence", n_test=20, random_state=0)[0].n_train == 1000
    deep = Constant()
    deep.family = "deep"  # type: ignore[attr-defined]
    arguments: dict[str, Any] = {"checks": "presence", "recipe": "paper", "n_test": 20, "n_runs": 1, "level": 0.95}
    arguments |= {"n_features": 16, "pad_to": None, "direction": None, "random_state": 0}
    for scale, expected in (("fast", [200, 2000, 1000]), ("paper", [1000, 100_000, 10_000])):
        jobs = runner.plan(["NSK", deep, Constant()], scale=scale, n_train=None, **arguments)
        assert [job.n_train for job in jobs] == expected
        jobs = runner.plan(["NSK", deep, Constant()], scale=scale, n_train=12, **arguments)
        assert [job.n_train for job in jobs] == [12, 12, 12]


# ---------------------------------------------------------------- messages


class Broken(Scorer):
    def decision_function(self, bags: Bags) -> Any:
        raise ZeroDivisionError("of the model itself")


def scoring(value: Any) -> Any:
    """A model with a decision function that returns `value`, or its value for the bags."""
    return type("Odd", (Scorer,), {"decision_function": lambda self, bags: value(bags) if callable(value) else value})()


@pytest.mark.parametrize(
    ("model", "more", "error", "message"),
    [
        (object(), {}, TypeError, r"needs fit\(bags\) .* one of .*; object does not have them"),
        (Scorer(), {}, TypeError, "Scorer does not have them"),
        (3, {}, TypeError, "int does not have them"),
        ("NKS", {}, ValueError, "there is no model 'NKS': did you mean NSK"),
        (Size(), {"checks": "presnce"}, ValueError, "there is no check 'presnce': did you mean presence"),
        (
            Size(),
            {"checks": ["presence", "zzz"]},
            ValueError,
            "no check 'zzz': known are presence, threshold-poison, false-frequency, perm",
        ),
        (
            Size(),
            {"recipe": "literal"},
            ValueError,
            "recipe must be one of paper, notebook, strict; got 'literal'",
        ),
        (Size(), {"checks": []}, ValueError, "must name at least one check and one recipe"),
        (Size(), {"recipe": []}, ValueError, "must name at least one check and one recipe"),
        (Size(), {"checks": "bag-size", "recipe": []}, ValueError, "must name at least one check and one recipe"),
        (Size(), {"checks": "bag-size", "recipe": "literal"}, ValueError, "recipe must be one of paper, notebook, str"),
        (Size(), {"checks": [3]}, TypeError, "checks must be names or BagRecipe objects; got int"),
        (Size(), {"until_decided": True, "max_runs": 1}, ValueError, "max_runs must be an integer of at least 2; got"),
        (Size(), {"until_decided": True, "max_runs": 2.5}, ValueError, "max_runs must be an integer .*; got 2.5"),
        (Size(), {"scale": "huge"}, ValueError, "scale must be one of fast, paper; got 'huge'"),
        (Size(), {"n_train": 3}, ValueError, "n_train must be an integer of at least 4; got 3"),
        (Size(), {"n_train": 0}, ValueError, "n_train must be an integer of at least 4; got 0"),
        (Size(), {"n_test": 19}, ValueError, "n_test must be an integer of at least 20; got 19"),
        (Size(), {"n_test": 1e4}, ValueError, "n_test must be an integer of at least 20; got 10000.0"),
        (Size(), {"n_runs": 0}, ValueError, "n_runs must be an integer of at least 1; got 0"),
        (Size(), {"n_runs": True}, ValueError, "n_runs must be an integer of at least 1; got True"),
        (Size(), {"level": 1.0}, ValueError, "level must lie strictly between 0 and 1; got 1.0"),
        (Size(), {"level": 95}, ValueError, "level must lie strictly between 0 and 1; got 95"),
        (Size(), {"level": NAN}, ValueError, "level must lie strictly between 0 and 1; got nan"),
        (Size(), {"n_features": 0}, ValueError, "n_features must be a positive integer; got 0"),
        (Size(), {"pad_to": 0}, ValueError, r"pad_to must be a positive integer .*; got 0"),
        (Size(), {"direction": [1.0]}, ValueError, "direction must be a vector of 16 numbers"),
        (Size(), {"random_state": -1}, ValueError, "random_state must not be negative; got -1"),
        (Size(), {"random_state": "1"}, TypeError, "random_state must be an integer"),
        (Size(), {"n_jobs": 0}, ValueError, "n_jobs"),
        (
            scoring(0.0),
            {},
            ValueError,
            r"Odd.decision_function must return one score for each of 4 bags; got shape \(\)",
        ),
        (scoring([1.0]), {}, ValueError, r"each of 4 bags; got shape \(1,\)"),
        (scoring(lambda bags: np.zeros((len(bags), 2))), {}, ValueError, r"got shape \(4, 2\)"),
        (scoring(lambda bags: np.zeros(bags.n_instances)), {}, ValueError, "one score for each of 4 bags"),
        (scoring(None), {}, TypeError, "must return real numbers, .* got dtype object"),
        (scoring(["a", "b", "c", "d"]), {}, TypeError, "must return real numbers, .* got dtype <U1"),
        (scoring([1j, 0, 1, 2]), {}, TypeError, "must return real numbers, .* got dtype complex128"),
        (
            scoring(lambda bags: [0.0, NAN, 0.0, 0.0]),
            {},
            ValueError,
            "Odd.decision_function returned NaN, first for bag 1",
        ),
        (Broken(), {}, ZeroDivisionError, "of the model itself"),
    ],
)
def test_what_is_wrong_is_named(model: Any, more: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mf.check_model(model, **{"n_train": 4, "n_test": 20, "random_state": 0, **more})


def test_two_recipes_of_one_name_are_not_thrown_together() -> None:
    mine = mf.checks.get("presence").recipe("strict")
    with pytest.raises(ValueError, match="give each recipe a name of its own"):
        mf.check_model(Size(), checks=[mine, mine.along(1)], n_train=4, n_test=20)
    # the registered check of that name is something else
    assert len(mf.check_model(Size(), checks=[mine, "presence"], n_train=4, n_test=20, random_state=0)) == 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_of_a_model_says_where_it_happened(n_jobs: int) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        mf.check_model(Broken(), checks="presence", recipe="strict", n_train=4, n_test=20, n_runs=2, n_jobs=n_jobs)
    assert any(note.startswith("while checking Broken on presence (strict), run ") for note in caught.value.__notes__)


# ---------------------------------------------------------------- published behaviour


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("model", "n_train", "verdict"), [("NSK", 200, "fail"), ("MI-Net", 400, "fail"), ("mi-Net", 400, "pass")]
)
def test_presence_sets_apart_the_models_that_respect_the_assumption(
    model: str, n_train: int, verdict: str, spelling: str
) -> None:
    if model != "NSK":
        pytest.importorskip("torch")
    [result] = mf.check_model(model, checks="presence", recipe=spelling, n_train=n_train, n_test=1000, random_state=0)
    assert (result.verdict, result.paper_verdict) == (verdict, verdict)
    if verdict == "fail":
        assert result.test_auc.estimate < 0.01
    else:
        assert result.test_auc.estimate > 0.85


# ---------------------------------------------------------------- what models must not find out, or break


class Peeping(Size):
    def decision_function(self, bags: Bags) -> Any:
        if bags.labels is None:
            assert bags.kinds is None
            return super().decision_function(bags)
        return bags.labels


def test_a_model_that_is_scored_sees_no_labels() -> None:
    more: dict[str, Any] = {"checks": "presence", "n_train": 40, "n_test": 100, "random_state": 0}
    peeping, size = (mf.check_model(model, **more)[0] for model in (Peeping(), Size()))
    assert peeping.test_auc == size.test_auc


class Forest(BaseEstimator):
    """Whatever scikit-learn and numpy do with a seed."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, bags: Bags) -> Any:
        means = [bag.mean(axis=0) for bag in bags]
        np.random.RandomState(self.random_state).normal()
        self.forest = RandomForestClassifier(3, random_state=self.random_state).fit(means, bags.labels)
        return self

    def predict_proba(self, bags: Bags) -> Any:
        return self.forest.predict_proba([bag.mean(axis=0) for bag in bags])


def test_seeds_suit_scikit_learn_and_numpy() -> None:
    before = np.random.get_state()[1].copy()  # type: ignore[index,union-attr]
    for model in (Forest(), "NSK", "mi-SVM"):
        mf.check_model(model, checks="presence", n_train=30, n_test=50, n_runs=4, random_state=1)
    assert np.array_equal(before, np.random.get_state()[1])  # type: ignore[index]


def test_large_integer_scores_are_not_rounded() -> None:
    class Large(Size):
        def decision_function(self, bags: Bags) -> Any:
            return bags.sizes + 2**62

    more: dict[str, Any] = {"checks": "presence", "n_train": 40, "n_test": 200, "random_state": 0}
    assert mf.check_model(Large(), **more)[0].test_auc == mf.check_model(Size(), **more)[0].test_auc


def test_a_model_may_take_labels_beside_bags() -> None:
    class Classical(Size):
        def fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]
            assert len(X) == len(y) == 40
            return self

    mf.check_model(Classical(), checks="presence", n_train=40, n_test=50, random_state=0)


def test_a_torch_module_is_told_what_it_lacks() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"Linear cannot be made from the number of features alone: .* out_features"):
        mf.check_model(torch.nn.Linear)
    with pytest.raises(
        TypeError, match=r"Linear gives no logit for each of two small bags of 16 features: .* 'single'"
    ):
        mf.check_model(torch.nn.Linear(16, 1))


def test_a_class_that_needs_arguments_is_not_guessed() -> None:
    class Needy(Size):
        def __init__(self, width: int) -> None:
            self.width = width

    with pytest.raises(TypeError, match=r"Needy could not be made without arguments .* hand over an unfitted model"):
        mf.check_model(Needy)


def test_a_flipped_sign_is_guessed() -> None:
    class Flipped(Size):
        def decision_function(self, bags: Bags) -> Any:
            return -mf.checks.get("presence").recipe().oracle(bags)

    [result] = mf.check_model(Flipped(), checks="presence", n_train=40, n_test=200, random_state=0)
    assert result.verdict == "not-learned"
    assert "is the sign flipped?" in result.reason


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_place_of_a_bag_among_those_that_are_scored_tells_nothing(spelling: str) -> None:
    class Place(Scorer):
        def decision_function(self, bags: Bags) -> Any:
            return np.arange(len(bags))

    results = mf.check_model(Place(), checks="paper", recipe=spelling, n_train=20, n_test=1000, random_state=0)
    assert {result.verdict for result in results} == {"not-learned"}


def test_a_program_that_ends_while_a_model_is_made_is_an_error() -> None:
    class Ends:
        def __init__(self) -> None:
            raise SystemExit(0)

    with pytest.raises(RuntimeError, match="the model ended the program"):
        mf.check_model(Ends, checks="presence")


def test_a_dot_where_a_colon_belongs_is_pointed_out() -> None:
    with pytest.raises(
        ValueError, match=r"there is no model 'mine.models.Mean': one of your own is named mine.models:Mean"
    ):
        mf.check_model("mine.models.Mean")
