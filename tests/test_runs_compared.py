"""Models compared by runs: golden values, definitions, simulated overlap of folds, runs without spread."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import golden_cases
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from milfast.uncertainty import (
    auc_interval,
    bayesian_ttest,
    corrected_ttest,
    five_by_two,
    mean_interval,
    probability_of_improvement,
)

# ---------------------------------------------------------------- values from elsewhere


def test_golden_corrected_t() -> None:
    cases = golden_cases("corrected_resampled_t")
    assert len(cases) == 3
    for case in cases:
        diff, ratio, expected = case["inputs"]["diff"], case["inputs"]["n_test_over_n_train"], case["expected"]
        nothing = [0.0] * len(diff)
        result = corrected_ttest(diff, nothing, test_train_ratio=ratio)
        assert result.statistic == pytest.approx(expected["t"], rel=1e-10), case["id"]
        assert result.p_value == pytest.approx(expected["p"], rel=1e-9, abs=0)
        assert result.difference is not None
        assert (result.difference.low, result.difference.high) == pytest.approx(expected["ci95"], abs=case["tol"])
        naive = corrected_ttest(diff, nothing, test_train_ratio=0)
        assert naive.statistic == pytest.approx(expected["naive_t"], rel=1e-10)
        assert naive.p_value == pytest.approx(expected["naive_p"], rel=1e-9, abs=0)
        assert naive.method == "paired t"
        assert "independent" in naive.notes[0]
        for rope, key in (
            (0.01, "baycomp_rope0p01_p_a_better_p_rope_p_b_better"),
            (0.0, "baycomp_rope0_p_a_better_p_b_better"),
        ):
            posterior = bayesian_ttest(diff, nothing, rope=rope, folds=round(1 / ratio) + 1)
            found = [posterior.first_better, posterior.second_better]
            if rope:
                found.insert(1, posterior.equivalent)
            assert found == pytest.approx(expected[key], abs=case["tol"]), case["id"]


def test_golden_five_by_two() -> None:
    [case] = golden_cases("5x2cv")
    diff, expected = np.array(case["inputs"]["diff"]), case["expected"]
    f, t = (five_by_two(0.5 + diff, np.full((5, 2), 0.5), method=method) for method in ("f", "t"))
    assert (f.statistic, f.p_value, f.df) == (
        pytest.approx(expected["f"], abs=case["tol"]),
        pytest.approx(expected["p_f"], abs=case["tol"]),
        (10, 5),
    )
    assert (t.statistic, t.p_value, t.df) == (
        pytest.approx(expected["t"], abs=case["tol"]),
        pytest.approx(expected["p_t"], abs=case["tol"]),
        (5,),
    )
    assert f.details["variances"] == pytest.approx(expected["s2"], abs=1e-12)


def test_golden_probability_of_improvement() -> None:
    cases = golden_cases("probability_of_improvement")
    assert len(cases) == 2
    for case in cases:
        a, b, expected = case["inputs"]["a"], case["inputs"]["b"], case["expected"]
        assert probability_of_improvement(a, b).probability.estimate == expected["paired"]
        found = probability_of_improvement(a, b, paired=False).probability.estimate
        assert found == pytest.approx(expected["unpaired_all_pairs"], abs=case["tol"])


# ---------------------------------------------------------------- definitions

RUNS = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=2, max_size=30)


@given(RUNS, st.floats(0, 2))
@pytest.mark.filterwarnings("ignore:the models differ by the same amount:RuntimeWarning")
def test_t_is_the_definition(runs: list[tuple[int, int]], ratio: float) -> None:
    a, b = np.array(runs, dtype=float).T / 1000
    result = corrected_ttest(a, b, test_train_ratio=ratio)
    differences = [x - y for x, y in runs]
    if len(set(differences)) == 1:
        # in thousandths they are equal, as doubles they need not be
        assert result.p_value == 1.0 if differences[0] == 0 else math.isnan(result.p_value)
        return
    d = a - b
    t = d.mean() / math.sqrt((1 / len(d) + ratio) * d.var(ddof=1))
    assert result.statistic == pytest.approx(t, rel=1e-9, abs=1e-12)
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(t), len(d) - 1), rel=1e-8, abs=1e-300)
    assert result.difference is not None
    assert (0.0 in result.difference) == (result.p_value > 0.05) or result.p_value == pytest.approx(0.05, abs=1e-9)
    interval = mean_interval(d, test_train_ratio=ratio)
    assert (result.difference.low, result.difference.high) == pytest.approx((interval.low, interval.high), abs=1e-14)
    posterior = bayesian_ttest(a, b, test_train_ratio=ratio, rope=0)
    assert posterior.first_better + posterior.second_better == pytest.approx(1)
    assert 2 * min(posterior.first_better, posterior.second_better) == pytest.approx(result.p_value, rel=1e-8)


def test_folds_are_read_from_the_shape() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 5))
    want = corrected_ttest(a.ravel(), b.ravel(), test_train_ratio=1 / 4)
    for result in (corrected_ttest(a, b), corrected_ttest(a.ravel(), b.ravel(), folds=5)):
        assert (result.statistic, result.log_p) == (want.statistic, want.log_p)
    assert bayesian_ttest(a, b, rope=0.1) == bayesian_ttest(a.ravel(), b.ravel(), rope=0.1, folds=5)


@given(st.lists(st.lists(st.integers(-50, 50), min_size=2, max_size=2), min_size=5, max_size=5))
@pytest.mark.filterwarnings("ignore:the models differ by the same amount:RuntimeWarning")
def test_five_by_two_does_not_depend_on_the_order_of_folds_under_f(diff: list[list[int]]) -> None:
    d = np.array(diff) / 100
    base = np.full((5, 2), 0.7)
    one, other = five_by_two(base + d, base), five_by_two(base + d[::-1, ::-1], base)
    assert one.statistic == pytest.approx(other.statistic, rel=1e-9, nan_ok=True)
    s2 = ((np.array(diff)[:, 0] - np.array(diff)[:, 1]) ** 2).sum() / 2
    if s2:
        assert one.statistic == pytest.approx((np.array(diff) ** 2).sum() / (2 * s2), rel=1e-9)
    else:
        assert one.p_value == 1.0 if not np.any(diff) else math.isnan(one.p_value)


@given(st.lists(st.integers(0, 2), min_size=2, max_size=6), st.sampled_from([0.5, 0.8, 0.95]))
def test_the_bootstrap_of_pairs_is_that_of_all_resamples(wins: list[int], level: float) -> None:
    a, b = np.array(wins, dtype=float), np.ones(len(wins))
    found = probability_of_improvement(a, b, level=level)
    means = sorted(sum(draw) / 2 / len(wins) for draw in product(wins, repeat=len(wins)))
    assert found.probability.estimate == sum(wins) / 2 / len(wins)
    assert found.ties == wins.count(1)
    if len(set(wins)) > 1:
        for p, bound in (((1 - level) / 2, found.probability.low), ((1 + level) / 2, found.probability.high)):
            # the smallest mean that at least the share p of resamples does not pass
            k = max(1, math.ceil(p * len(means) - 1e-6))
            assert bound == pytest.approx(means[k - 1], abs=1e-12)


def test_columns_are_what_runs_share() -> None:
    rng = np.random.default_rng(2)
    folds = rng.normal(0, 5, 12)
    a, b = folds + rng.normal(0.5, 1, (3, 12)), folds + rng.normal(0, 1, (4, 12))
    found = probability_of_improvement(a, b)
    by_hand = np.mean([[np.mean(x > b[:, j]) for x in a[:, j]] for j in range(12)])
    assert found.probability.estimate == pytest.approx(by_hand)
    assert (found.probability.n, found.probability.unit) == (12, "columns")
    drawn = [np.mean([(a[:, None, j] > b[None, :, j]).mean() for j in rng.integers(0, 12, 12)]) for _ in range(2000)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (found.probability.low, found.probability.high) == pytest.approx((low, high), abs=0.02)


def test_unpaired_is_the_area_under_a_curve() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.8, 1, 15), rng.normal(0, 1, 20)
    found = probability_of_improvement(a, b, paired=False).probability
    area = auc_interval(np.concatenate((a, b)), [1] * 15 + [0] * 20)
    assert (found.low, found.estimate, found.high) == (area.low, area.estimate, area.high)


def test_the_decisions() -> None:
    always = probability_of_improvement(np.arange(20) + 1, np.arange(20))
    assert (always.decision, always.probability.method) == ("significant and meaningful", "wilson (all pairs agree)")
    assert 0.8 < always.probability.low < always.probability.high == 1.0
    slight = np.tile([1, 1, 1, -1, -1], 200)
    small = probability_of_improvement(slight, np.zeros(1000))
    assert (small.decision, small.significant, small.meaningful) == ("significant but not meaningful", True, False)
    assert probability_of_improvement(-slight, np.zeros(1000)).decision == "not significant"
    with pytest.warns(RuntimeWarning, match="one pair shows no spread"):
        one = probability_of_improvement([1.0], [0.0])
    assert (one.decision, one.to_dict()["probability"]["low"]) == ("undefined", None)
    with pytest.warns(RuntimeWarning, match="one run of a model shows no spread"):
        assert probability_of_improvement([1.0], [0.0, 2.0], paired=False).decision == "undefined"


# ---------------------------------------------------------------- runs without spread


@pytest.mark.parametrize("gap", [0.1, -0.3, 0.02])
def test_a_constant_gap_is_no_certainty(gap: float) -> None:
    # 0.9 - 0.8 and 0.8 - 0.7 are not the same double
    b = np.array([0.3, 0.7, 0.55, 0.8, 0.61, 0.13, 0.9, 0.4, 0.77, 0.51])
    a = np.round(b + gap, 4)
    assert len(set(a - b)) > 1
    for call in (
        lambda: corrected_ttest(a, b, folds=10),
        lambda: corrected_ttest(a, b, test_train_ratio=0),
        lambda: five_by_two(a.reshape(5, 2), b.reshape(5, 2)),
        lambda: five_by_two(a.reshape(5, 2), b.reshape(5, 2), method="t"),
    ):
        with pytest.warns(RuntimeWarning, match="the models differ by the same amount in every run"):
            result = call()
        assert math.isnan(result.p_value)
        assert result.method == "undefined (no spread)"
        assert result.difference is not None
        assert math.isnan(result.difference.low)
        assert "p undefined" in result.summary()
    with pytest.warns(RuntimeWarning, match="the models differ by the same amount"):
        posterior = bayesian_ttest(a, b, folds=10, rope=0.01)
    assert math.isnan(posterior.first_better)
    assert "undefined" in posterior.summary()
    assert json.loads(json.dumps(posterior.to_dict(), allow_nan=False))["first_better"] is None


def test_equal_runs_tell_nothing_apart() -> None:
    a = np.linspace(0.7, 0.9, 10)
    for result in (
        corrected_ttest(a, a, folds=10),
        corrected_ttest(a, np.nextafter(a, 1), folds=5),
        five_by_two(a.reshape(5, 2), a.reshape(5, 2)),
        five_by_two(a.reshape(5, 2), a.reshape(5, 2), method="t"),
    ):
        assert result.p_value == 1.0
        assert "nothing tells them apart" in result.notes[-1]
    with pytest.warns(RuntimeWarning, match="both models have the same figure in every run"):
        assert math.isnan(bayesian_ttest(a, a, folds=10, rope=0.01).equivalent)


# ---------------------------------------------------------------- messages

A, B = [0.9, 0.8, 0.85, 0.7], [0.8, 0.8, 0.8, 0.75]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: corrected_ttest(A, B), ValueError, "folds is missing: .*or test_train_ratio"),
        (lambda: corrected_ttest(A, B, folds=4, test_train_ratio=0.1), ValueError, "not both"),
        (lambda: corrected_ttest(A, B, folds=3), ValueError, "divide the number of runs, 4; got 3"),
        (lambda: corrected_ttest(A, B, folds=1), ValueError, "at least 2"),
        (lambda: corrected_ttest(A, B, folds=2.0), TypeError, "folds must be an integer"),
        (lambda: corrected_ttest([A, A], [B, B], folds=2), ValueError, r"4 folds a row; got folds=2"),
        (lambda: corrected_ttest(A, B[:3], folds=4), ValueError, r"the same runs.*\(4,\), \(3,\)"),
        (lambda: corrected_ttest(A, [0.8, math.nan, 0.8, 0.7], folds=4), ValueError, r"values_b\[1\] is nan"),
        (lambda: corrected_ttest([A, [1, 2, math.inf, 3]], [A, A]), ValueError, r"values_a\[1, 2\] is inf"),
        (lambda: corrected_ttest([0.9], [0.8], test_train_ratio=0.1), ValueError, "two runs or more"),
        (lambda: corrected_ttest([], [], folds=2), ValueError, "non-empty"),
        (lambda: corrected_ttest(["x"], [1], folds=2), TypeError, "values_a cannot be read as numbers"),
        (lambda: corrected_ttest(A, B, test_train_ratio=-1), ValueError, "not negative; got -1"),
        (lambda: five_by_two(A, B), ValueError, r"shape \(5, 2\).*got \(4,\)"),
        (lambda: five_by_two(A, B, method="z"), ValueError, "method must be one of f, t"),
        (lambda: bayesian_ttest(A, B, folds=4, rope=-0.1), ValueError, "rope must be finite and not negative"),
        (lambda: probability_of_improvement(A, B[:2]), ValueError, "the same runs, in one order; got 4 and 2"),
        (lambda: probability_of_improvement(A, B, gamma=0.4), ValueError, "gamma must lie between 0.5 and 1"),
        (lambda: probability_of_improvement([A], B, paired=False), ValueError, "dimension 1; got shape"),
    ],
)
def test_messages(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_posteriors_are_never_certain() -> None:
    posterior = bayesian_ttest(np.linspace(1, 1.1, 50), np.zeros(50), folds=10, rope=0.1)
    assert "P(A better) > 0.999" in repr(posterior)
    assert "P(B better) < 0.001" in repr(posterior)
    assert posterior._repr_html_().startswith("<span>")
    improvement = probability_of_improvement(A, B)
    assert improvement._repr_html_().startswith("<span>P(A &gt; B)")
    assert json.loads(json.dumps(improvement.to_dict()))["decision"] == improvement.decision
