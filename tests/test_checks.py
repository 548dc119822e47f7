"""Checks: verdicts, models whose outcome is known beforehand, reproducibility, messages, the published behaviour."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline

import milfast as mf
from milfast import Bags
from milfast.checks import SPELLINGS, BagRecipe, CheckResult, Component, Draw, runner
from milfast.checks.verdict import REASONS, judge, over_runs, paper_rule
from milfast.uncertainty import Interval, auc_interval, mean_interval, proportion_interval

CHECKS = ("false-frequency", "presence", "threshold-poison")
NAN = math.nan


def interval(estimate: float, low: float, high: float, **more: Any) -> Interval:
    return Interval(estimate, low, high, level=0.95, method="test", n=100, unit="items", **more)


def facts(results: list[CheckResult]) -> list[dict[str, Any]]:
    """Rows without the time, which alone may differ between equal calls."""
    return [{key: value for key, value in result.to_dict().items() if key != "seconds"} for result in results]


# ---------------------------------------------------------------- models whose outcome is known


class Scorer:
    """Learns nothing; scores by one line. What all models of this file share."""

    def fit(self, bags: Bags) -> Scorer:
        return self


class Oracle(Scorer):
    """The true rule."""

    def __init__(self, recipe: BagRecipe) -> None:
        self.recipe = recipe

    def decision_function(self, bags: Bags) -> Any:
        return self.recipe.oracle(bags)


class NoPoison(Scorer):
    """A bag is positive when nothing in it lies far down, where the poison is."""

    def decision_function(self, bags: Bags) -> Any:
        return [bag.mean(axis=1).min() for bag in bags]


class Count(Scorer):
    """Counts what is no background."""

    def decision_function(self, bags: Bags) -> Any:
        return [(np.abs(bag.mean(axis=1)) > 1).sum() for bag in bags]


class Size(Scorer):
    def decision_function(self, bags: Bags) -> Any:
        return bags.sizes


class Constant(Scorer):
    def decision_function(self, bags: Bags) -> Any:
        return np.zeros(len(bags))


class Chance(Scorer):
    """Scores at random, from `random_state`."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, bags: Bags) -> Chance:
        self.generator = np.random.default_rng(self.random_state)
        return self

    def decision_function(self, bags: Bags) -> Any:
        return self.generator.normal(size=len(bags))


class Memoriser(Chance):
    """Knows every training bag by heart and guesses elsewhere."""

    def fit(self, bags: Bags) -> Memoriser:
        self.known = {bag.tobytes(): 9 if label else -9 for bag, label in zip(bags, bags.labels, strict=True)}
        super().fit(bags)
        return self

    def decision_function(self, bags: Bags) -> Any:
        guesses = super().decision_function(bags)
        return [self.known.get(bag.tobytes(), guess) for bag, guess in zip(bags, guesses, strict=True)]


class Estimator(BaseEstimator):
    """A model by scikit-learn's rules."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, bags: Bags, y: Any = None) -> Estimator:
        self.fitted_ = True
        return self

    def transform(self, bags: Bags) -> Bags:
        return bags

    def decision_function(self, bags: Bags) -> Any:
        return bags.sizes


# ---------------------------------------------------------------- verdicts

ABOVE, BELOW, ACROSS, UNKNOWN = (0.6, 0.7), (0.3, 0.4), (0.45, 0.55), (NAN, NAN)


@pytest.mark.parametrize(
    ("fresh", "test", "verdict"),
    [
        (ABOVE, ABOVE, "pass"),
        (ABOVE, BELOW, "fail"),
        (ABOVE, ACROSS, "inconclusive"),
        (ABOVE, UNKNOWN, "inconclusive"),
        (ABOVE, (0.5, 0.6), "inconclusive"),
        (ABOVE, (0.4, 0.5), "inconclusive"),
        *[(fresh, test, "not-learned") for fresh in (BELOW, ACROSS, UNKNOWN, (0.5, 0.6)) for test in (ABOVE, BELOW)],
        (ACROSS, ACROSS, "not-learned"),
        (UNKNOWN, UNKNOWN, "not-learned"),
    ],
)
def test_the_verdict_follows_from_which_side_of_one_half_both_intervals_lie(
    fresh: tuple[float, float], test: tuple[float, float], verdict: str
) -> None:
    def around(bounds: tuple[float, float]) -> Interval:
        return interval(sum(bounds) / 2, *bounds)

    assert judge(around(fresh), around(test)) == verdict


@pytest.mark.parametrize(
    ("train", "test", "verdict"),
    [(0.9, 0.1, "fail"), (0.9, 0.5, "pass"), (0.5, 0.1, "pass"), (0.51, 0.49, "fail"), (0.4, 0.9, "pass")],
)
def test_the_papers_rule_wants_training_above_and_testing_below_one_half(
    train: float, test: float, verdict: str
) -> None:
    assert paper_rule(train, test) == verdict


def test_one_run_keeps_its_interval() -> None:
    only = interval(0.7, 0.6, 0.8)
    assert over_runs([only], level=0.95) is only


@pytest.mark.parametrize("values", [(0.7, 0.8, 0.9), (0.0, 1.0, 1.0), (0.25, 0.25)])
def test_several_runs_give_the_t_interval_of_their_mean(values: tuple[float, ...]) -> None:
    runs = [interval(v, v, v, n_pos=30, n_neg=20) for v in values]
    assert over_runs(runs, level=0.9) == mean_interval(values, level=0.9, bounds=(0.0, 1.0))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_runs_that_are_all_perfect_or_all_upside_down_give_the_wilson_bound_of_their_pairs(value: float) -> None:
    runs = [interval(value, value, value, n_pos=p, n_neg=n) for p, n in ((30, 20), (10, 50))]
    got = over_runs(runs, level=0.9)
    bound = proportion_interval(round(30 * value), 30, level=0.9)
    assert (got.estimate, got.low, got.high, got.n, got.unit) == (value, bound.low, bound.high, 2, "runs")
    # the t interval would have no width at all
    assert got.high - got.low > 0.05


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
    for result in mf.check_model(Size(), recipe="all", n_train=20, n_test=400, n_runs=n_runs, random_state=0):
        assert result.test_auc.estimate == pytest.approx(result.size_auc, abs=1e-12)


def test_the_size_cue_alone_passes_two_checks_as_the_paper_words_them() -> None:
    verdicts = {r.check: r.verdict for r in mf.check_model(Size(), n_train=20, n_test=1000, random_state=0)}
    assert verdicts == {"false-frequency": "fail", "presence": "pass", "threshold-poison": "pass"}


@pytest.mark.parametrize("n_runs", [1, 3])
@pytest.mark.parametrize("model", [Constant, Chance])
def test_a_model_that_knows_nothing_has_not_learned(model: type, n_runs: int) -> None:
    for result in mf.check_model(model, n_train=20, n_test=500, n_runs=n_runs, random_state=1):
        assert result.verdict == "not-learned"
        assert REASONS["not-learned"] in result.reason
        if model is Constant:
            assert result.fresh_auc.estimate == result.test_auc.estimate == 0.5


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
    assert all(type(value) in (str, int, float) for value in row.values()), row
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
        "shifted 0.000 [0.000, 0.071]; learned the training distribution, yet ranks the shifted bags upside down "
        "(holds for this fit alone))"
    )
    page = one._repr_html_()
    assert page.startswith("<table>")
    assert page.endswith("</table>")
    for text in ("NoPoison", "presence", "fail", "1.000 [0.929, 1.000]", "holds for this fit alone"):
        assert f"{text}</td>" in page or f"{text})</td>" in page
    [two] = mf.check_model(NoPoison(), checks="presence", n_train=30, n_test=100, n_runs=2, random_state=0)
    assert "this fit alone" not in two.reason


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
        mf.check_model(watched(base), recipe=["paper", "strict"], n_train=20, n_test=20, n_runs=2, random_state=4)
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
        return {(row["check"], row["recipe"]): row for row in facts(results)}

    everything = run(recipe="all")
    assert list(everything) == [(check, spelling) for check in CHECKS for spelling in SPELLINGS]
    assert run(checks="presence", recipe="strict")["presence", "strict"] == everything["presence", "strict"]
    some = run(checks=["threshold-poison", "presence"], recipe=["strict", "paper"])
    assert list(some) == [(c, s) for c in ("threshold-poison", "presence") for s in ("strict", "paper")]
    assert all(everything[cell] == row for cell, row in some.items())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_is_told_after_each_run(n_jobs: int) -> None:
    told: list[tuple[int, int, str, int]] = []
    results = mf.check_model(
        Constant(),
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
            "no check 'zzz': known are false-frequency, presence, thr",
        ),
        (
            Size(),
            {"recipe": "literal"},
            ValueError,
            "recipe must be one of paper, notebook, strict for .*; got 'literal'",
        ),
        (Size(), {"checks": []}, ValueError, "must name at least one check and one recipe"),
        (Size(), {"recipe": []}, ValueError, "must name at least one check and one recipe"),
        (Size(), {"checks": ["presence", "presence"]}, ValueError, r"check 'presence' \(paper\) is asked for twice"),
        (Size(), {"recipe": ["paper", "paper"]}, ValueError, r"\(paper\) is asked for twice"),
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
    for module in (torch.nn.Linear, torch.nn.Linear(2, 1)):
        with pytest.raises(TypeError, match="Linear is a torch module, which does not train itself: make a subclass"):
            mf.check_model(module)


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


def test_runs_that_agree_by_chance_do_not_make_a_point_of_an_interval() -> None:
    one = auc_interval([0.0] * 199 + [1.0], [0, 1] * 100)  # a single bag is flagged
    both = over_runs([one, one], level=0.95)
    assert both.low < 0.5 < both.high
    assert both.half_width > one.half_width
