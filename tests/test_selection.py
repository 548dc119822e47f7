"""Which model to deploy: the bootstrap against repeated samples, decisions against plain rules, and verdicts."""

from __future__ import annotations

import json
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from error_results import certain, result, runs
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from milfast.consistency import CrossValidated, ModelSelection, select_model, summary
from milfast.consistency import selection as module

# ---------------------------------------------------------------- figures


@given(st.integers(2, 6), st.integers(2, 20), st.integers(0, 1000), st.sampled_from(["macro", "micro"]))
def test_a_weight_counts_a_sample_as_often(m: int, n: int, seed: int, of: str) -> None:
    rng = np.random.default_rng(seed)
    errors = rng.random((m, n)) < 0.4
    weights = rng.multinomial(n, np.full(n, 1 / n))
    one = module._Model(result(errors), of).of(weights)
    other = module._Model(result(np.repeat(errors, weights, axis=1)), of).of(None)
    assert one == pytest.approx(other, rel=1e-12, nan_ok=True)
    assert other[0] == pytest.approx(1 - (errors @ weights).sum() / (m * n), rel=1e-12)
    pairs = [
        ((errors[i] & errors[j]) @ weights, (errors[i] | errors[j]) @ weights) for i, j in combinations(range(m), 2)
    ]
    if of == "micro":
        both, either = (sum(values) for values in zip(*pairs, strict=True))
        expected = both / either if either else math.nan
    else:
        defined = [both / either for both, either in pairs if either]
        expected = np.mean(defined) if defined else math.nan
    assert one[1] == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_estimates_are_those_of_the_results_and_intervals_hold_them() -> None:
    results = {name: result(runs(seed)) for seed, name in enumerate("ab")}
    for of in ("macro", "micro"):
        selection = select_model(results, of=of, n_boot=300, random_state=0)
        for score in selection.scores:
            errors = results[score.name].error_sets()
            assert score.accuracy.estimate == pytest.approx(1 - errors.mean(), rel=1e-12)
            assert score.accuracy.estimate in score.accuracy
            assert score.consistency.estimate in score.consistency
        [difference] = selection.comparisons
        first, second = selection.scores
        assert difference.accuracy.estimate == first.accuracy.estimate - second.accuracy.estimate
        assert difference.consistency.estimate == first.consistency.estimate - second.consistency.estimate
    assert (
        select_model(results, n_boot=300, random_state=0).scores[0].consistency.estimate
        == summary(results["a"].error_sets()).mean
    )


def test_the_bootstrap_has_the_standard_error_of_a_mean() -> None:
    errors = runs(3, n=900)
    selection = select_model({"a": result(errors), "b": result(runs(4, n=900))}, n_boot=1500, random_state=1)
    each = 1 - errors.mean(axis=0)
    expected = 1.96 * each.std() / 30
    assert selection.scores[0].accuracy.half_width == pytest.approx(expected, rel=0.08)


def test_the_same_samples_are_drawn_for_all_models() -> None:
    errors = runs(5)
    almost = errors.copy()
    almost[:, :4] = True
    selection = select_model({"a": result(errors), "b": result(almost)}, n_boot=400, random_state=2)
    [difference] = selection.comparisons
    assert difference.accuracy.half_width < 0.4 * selection.scores[0].accuracy.half_width


def test_groups_are_drawn_whole() -> None:
    once = {name: runs(seed, n=150) for seed, name in enumerate("ab")}
    often = {name: result(np.repeat(errors, 4, axis=1)) for name, errors in once.items()}
    groups = np.repeat(np.arange(150), 4)
    plain = select_model({name: result(errors) for name, errors in once.items()}, n_boot=500, random_state=3)
    grouped = select_model(often, groups=groups, n_boot=500, random_state=3)
    ignored = select_model(often, n_boot=500, random_state=3)
    for a, b, c in zip(plain.scores, grouped.scores, ignored.scores, strict=True):
        assert (b.accuracy.low, b.accuracy.high) == pytest.approx((a.accuracy.low, a.accuracy.high), abs=1e-12)
        assert (b.consistency.low, b.consistency.high) == pytest.approx((a.consistency.low, a.consistency.high))
        assert c.accuracy.half_width == pytest.approx(a.accuracy.half_width / 2, rel=0.15)
    assert grouped.scores[0].accuracy.method == "bootstrap over groups"


def test_the_order_of_runs_does_not_matter_and_a_seed_repeats_all() -> None:
    results = {name: runs(seed) for seed, name in enumerate("abc")}
    order = np.random.default_rng(0).permutation(20)
    one, two, three = (
        select_model(
            {name: result(errors[o]) for name, errors in results.items()}, n_boot=700, random_state=r, of="micro"
        )
        for o, r in ((np.arange(20), 5), (order, 5), (order, 6))
    )
    assert one.to_dict() == two.to_dict()
    assert two.to_dict() != three.to_dict()
    assert one.seed == 5


# ---------------------------------------------------------------- decisions


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_the_front_is_what_nobody_beats(points: list[tuple[int, int]]) -> None:
    front = module._front(np.array(points, dtype=float))
    for i, (x, y) in enumerate(points):
        beaten = any(a >= x and b >= y and (a > x or b > y) for a, b in points)
        assert front[i] == (not beaten)


def test_differences_of_nothing_are_rarely_decided() -> None:
    """Models of the same law: in at most one of twenty selections anything is decided. A margin of 0 decides most."""
    decided = 0
    n_studies = 150
    for study in range(n_studies):
        base = np.random.default_rng(study).beta(0.3, 1.2, 150)
        # difficulties of both models are drawn from one law, and are alike for a sample
        rng = np.random.default_rng(study + 10**6)
        other = np.where(rng.random(150) < 0.5, base, rng.beta(0.3, 1.2, 150))
        results = {
            name: result(runs(1000 * seed + study, m=12, n=150, base=of))
            for seed, name, of in ((1, "a", base), (2, "b", other))
        }
        selection = select_model(results, margin=0, n_boot=250, of="micro", random_state=study)
        [c] = selection.comparisons
        decided += {c.accuracy_says, c.consistency_says} != {"cannot tell"}
    assert decided <= binom.ppf(0.9999, n_studies, 0.05)


# ---------------------------------------------------------------- verdicts


def select(models: dict[str, CrossValidated], **options: Any) -> ModelSelection:
    return select_model(models, **({"n_boot": 700, "random_state": 0} | options))


def test_a_better_model_is_chosen() -> None:
    better = result(runs(1, base=certain(400, 20)))
    worse = result(runs(2, easy=1.0, hard=2.0))
    selection = select({"better": better, "worse": worse, "worst": result(runs(3, easy=2.0, hard=2.0))})
    assert (selection.verdict, selection.choice, selection.front) == ("choose", "better", ("better",))
    assert selection.reason.startswith("choose better: it is at least as good in both, and better in one (worse:")
    assert [score.front_frequency for score in selection.scores] == [1.0, 0.0, 0.0]
    assert {(c.first, c.second): c.accuracy_says for c in selection.comparisons} == {
        ("better", "worse"): "first",
        ("better", "worst"): "first",
        ("worse", "worst"): "first",
    }


def test_more_accurate_against_more_consistent_is_a_trade_off() -> None:
    accurate = result(runs(1, base=np.full(400, 0.1)))
    consistent = result(runs(2, base=certain(400, 100)))
    both_worse = result(runs(3, base=np.full(400, 0.45)))
    selection = select({"worse": both_worse, "consistent": consistent, "accurate": accurate})
    assert selection.verdict == "trade-off"
    assert selection.choice is None
    assert selection.reason.startswith("trade-off: accurate is more accurate (by 0.")
    assert "and consistent more consistent (by 0." in selection.reason
    assert set(selection.front) == {"consistent", "accurate"}


def test_models_within_the_margin_are_equal() -> None:
    errors = runs(1, m=40, base=certain(400, 60))
    other = errors.copy()
    other[0, 300] ^= True
    selection = select({"a": result(errors), "b": result(other)}, margin=0.02)
    assert selection.verdict == "equal"
    assert selection.reason == "equal: no difference above the margin between a and b"
    worse = result(runs(5, easy=1.0, hard=1.0))
    selection = select({"a": result(errors), "b": result(other), "c": worse}, margin=(0.02, 0.03))
    assert selection.reason.endswith("between a and b, and at least as good as the others")
    assert selection.margin == (0.02, 0.03)


def test_a_sure_difference_within_the_margin_is_none() -> None:
    errors = runs(1, m=30, n=2000, base=certain(2000, 200))
    other = errors.copy()
    other[:, 300:306] = True
    for margin, says in ((0.01, "same"), (0.0, "first")):
        [c] = select({"a": result(errors), "b": result(other)}, margin=(margin, 1 - 1e-9)).comparisons
        assert c.accuracy_p <= 0.05
        assert c.accuracy_says == says


def test_where_samples_are_few_it_says_that_it_cannot_tell() -> None:
    selection = select({"a": result(runs(1, n=40)), "b": result(runs(2, n=40))})
    assert (selection.verdict, selection.choice) == ("cannot tell", None)
    assert selection.reason.startswith("cannot tell: the accuracy of a less that of b is ")
    models = {name: runs(seed, n=80, easy=0.15, hard=0.6) for seed, name in enumerate("ab", 1)}
    three = select({name: result(errors) for name, errors in (models | {"c": runs(3, n=80, base=0.4)}).items()})
    assert three.verdict == "cannot tell"
    assert three.reason.startswith("cannot tell: the accuracy of a less that of b")
    assert three.reason.endswith("Ruled out: c.")


def test_constant_and_perfect_models_are_left_out_with_the_reason() -> None:
    usual = {"a": result(runs(1)), "b": result(runs(2))}
    constant = result(np.repeat(runs(3)[:1], 20, axis=0), predicted=(400, 0))
    perfect = result(np.zeros((20, 400), dtype=bool))
    selection = select(usual | {"constant": constant, "perfect": perfect})
    assert [score.name for score in selection.scores] == ["a", "b"]
    assert "says the same of every sample: an error consistency of 1 means nothing" in selection.excluded["constant"]
    assert "no error consistency, because fewer than two runs err" in selection.excluded["perfect"]
    assert "left out: constant, " in selection.summary()
    one = select({"a": usual["a"], "constant": constant})
    assert (one.verdict, one.reason) == ("none", "none: a has no other model to be compared with")
    nothing = select({"constant": constant})
    assert nothing.verdict == "none"
    assert nothing.reason.startswith("none: every model was left out: constant, ")
    json.dumps(nothing.to_dict(), allow_nan=False)


def test_resamples_without_errors_are_left_out_of_the_intervals() -> None:
    errors = np.zeros((4, 30), dtype=bool)
    errors[:, 0] = errors[:2, 1] = True
    selection = select({"a": result(errors), "b": result(runs(2, m=4, n=30))})
    assert math.isfinite(selection.scores[0].consistency.low)
    assert selection.scores[0].consistency.high == 1.0


def test_texts() -> None:
    selection = select({"a": result(runs(1)), "b<": result(runs(2))})
    assert repr(selection) == f"ModelSelection({selection.reason})"
    lines = selection.summary().splitlines()
    assert lines[0] == selection.reason
    assert lines[1].startswith("a   accuracy 0.")
    assert "b&lt;" in selection._repr_html_()
    plain = json.loads(json.dumps(selection.to_dict(), allow_nan=False))
    assert [score["name"] for score in plain["scores"]] == ["a", "b<"]
    assert plain["comparisons"][0]["accuracy_low"] == selection.comparisons[0].accuracy.low


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    select_model(
        {"a": result(runs(1)), "b": result(runs(2))},
        n_boot=80,
        random_state=0,
        callback=lambda *what: told.append(what),
    )
    assert told == [(i, 80) for i in range(1, 81)]


# ---------------------------------------------------------------- arguments

A, B = result(np.eye(4)), result(np.eye(4)[::-1])


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        ({}, {}, "results is empty"),
        ({"a": A, "b": result(np.eye(5))}, {}, "must be of the same samples: 'a' and 'b' differ in samples, 4 and 5"),
        (
            {"a": A, "b": result(np.eye(4), majority=0.75)},
            {},
            "differ in share of the most frequent class, 0.5 and 0.75",
        ),
        ({"a": A, "b": result(np.eye(4), classes=list("xy"))}, {}, "differ in classes"),
        ({"a": A, "b": B}, {"of": "mean"}, "of must be one of macro, micro; got 'mean'"),
        ({"a": A, "b": B}, {"level": 1}, "level must lie strictly between 0 and 1"),
        ({"a": A, "b": B}, {"n_boot": 0}, "n_boot must be an integer of at least 1; got 0"),
        ({"a": A, "b": B}, {"n_boot": 1.5}, "n_boot must be an integer"),
        (
            {"a": A, "b": B},
            {"n_boot": 50},
            "n_boot=50 resamples cannot decide 2 differences at level 0.95: 80 are needed",
        ),
        ({"a": A, "b": B}, {"margin": -0.1}, "margin must lie between 0 and 1"),
        ({"a": A, "b": B}, {"margin": (0.1, 0.1, 0.1)}, "margin must be a number or one for accuracy and one for"),
        ({"a": A, "b": B}, {"groups": [1, 2]}, r"groups must have one entry a sample, 4; got shape \(2,\)"),
        ({"a": A, "b": B}, {"groups": [1] * 4}, "groups holds one group"),
        ({"a": A, "b": B}, {"groups": [1, math.nan, 2, math.nan]}, r"groups\[1\] is nan"),
        ({"a": A, "b": B}, {"random_state": -1}, "random_state must not be negative"),
    ],
)
def test_wrong_arguments_are_refused(results: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        select_model(results, **options)


def test_samples_in_another_order_are_found_out_where_predictions_were_kept() -> None:
    labels = np.array([0, 0, 1, 1, 0, 1])
    predictions = np.array([[0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 0, 1]])
    one = result(predictions != labels, predictions=predictions)
    two = result(predictions[:, ::-1] != labels[::-1], predictions=predictions[:, ::-1])
    with pytest.raises(ValueError, match="same order: the label of sample 0 differs between 'one' and 'two'"):
        select_model({"one": one, "two": two}, n_boot=100)
