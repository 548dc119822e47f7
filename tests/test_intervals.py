"""Intervals: published and golden values, laws, degenerate cases, coverage, messages."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import warnings
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from conftest import golden_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from milfast.uncertainty import Interval, auc_interval, mean_interval, proportion_interval
from milfast.uncertainty.intervals import _hanley_mcneil

METHODS = ("wilson", "normal", "agresti-coull", "clopper-pearson", "jeffreys")
AUC_METHODS = ("logit", "delong", "hanley-mcneil", "wilson")
GOLDEN_NAMES = {"wald": "normal", "agresti_coull": "agresti-coull", "clopper_pearson": "clopper-pearson"}

# The normal interval warns about small counts; the laws below use them on purpose.
few_counts_are_meant = pytest.mark.filterwarnings("ignore:the normal interval covers too rarely:RuntimeWarning")


def bounds(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def binormal(rng: np.random.Generator, m: int, n: int, auc: float) -> tuple[np.ndarray, np.ndarray]:
    shift = math.sqrt(2) * NormalDist().inv_cdf(auc)
    return np.concatenate((rng.normal(shift, 1, m), rng.normal(0, 1, n))), np.repeat([1, 0], (m, n))


# ---------------------------------------------------------------- values from elsewhere


@few_counts_are_meant
@pytest.mark.parametrize(
    ("k", "n", "method", "low", "high"),
    [
        (0, 30, "wilson", 0.0, 0.1135133931739688),
        (15, 30, "wilson", 0.3315412564053376, 0.6684587435946624),
        (29, 30, "wilson", 0.8332960900859081, 0.9940914096183875),
        (1, 30, "normal", 0.0, 0.09756736890584528),
        (1, 30, "agresti-coull", 0.0, 0.1809179845326112),
        (1, 30, "clopper-pearson", 0.0008435709266304788, 0.17216945563341268),
        (30, 30, "clopper-pearson", 0.8842966917779722, 1.0),
        (0, 30, "jeffreys", 1.6231861223464347e-05, 0.07967817381726),
    ],
)
def test_proportion_equals_statsmodels(k: int, n: int, method: str, low: float, high: float) -> None:
    assert bounds(proportion_interval(k, n, method=method)) == pytest.approx((low, high), abs=1e-12)


def test_delong_by_hand() -> None:
    labels = [1, 1, 1, 0, 0, 0, 0]
    scores = [0.9, 0.8, 0.3, 0.7, 0.2, 0.3, 0.1]
    # Placements by hand: V10 = (1, 1, 5/8), V01 = (2/3, 1, 5/6, 1), AUC = 7/8.
    variance = np.var([1, 1, 5 / 8], ddof=1) / 3 + np.var([2 / 3, 1, 5 / 6, 1], ddof=1) / 4
    interval = auc_interval(scores, labels, method="delong", level=0.5)
    half = NormalDist().inv_cdf(0.75) * math.sqrt(variance)
    assert interval.estimate == pytest.approx(7 / 8, abs=1e-15)
    assert bounds(interval) == pytest.approx((7 / 8 - half, 7 / 8 + half), abs=1e-12)
    assert (interval.n_pos, interval.n_neg, interval.n) == (3, 4, 7)


def test_hanley_mcneil_by_hand() -> None:
    # 3 + 4 items with AUC 7/8: Q1 = 7/9, Q2 = 49/60.
    auc, q1, q2 = 7 / 8, 7 / 9, 49 / 60
    se = math.sqrt((auc * (1 - auc) + 2 * (q1 - auc**2) + 3 * (q2 - auc**2)) / 12)
    interval = auc_interval(
        [0.9, 0.8, 0.3, 0.7, 0.2, 0.3, 0.1], [1, 1, 1, 0, 0, 0, 0], method="hanley-mcneil", level=0.5
    )
    assert interval.low == pytest.approx(auc - NormalDist().inv_cdf(0.75) * se, abs=1e-14)


def test_corrected_t_published_case() -> None:
    diff = [0.012, -0.003, 0.02, 0.015, 0.007, 0.0, 0.011, 0.018, -0.001, 0.009]
    interval = mean_interval(diff, test_train_ratio=1 / 9)
    assert bounds(interval) == pytest.approx((0.00045893983974580783, 0.01714106016025419), abs=1e-10)
    assert interval.method == "corrected resampled t"
    assert interval.unit == "runs"


def test_plain_t_from_tables() -> None:
    # t(4, 0.975) = 2.7764451052, s^2 = 2.5 for 1..5.
    interval = mean_interval([1, 2, 3, 4, 5])
    assert interval.method == "t"
    assert interval.half_width == pytest.approx(2.7764451051977987 * math.sqrt(2.5 / 5), abs=1e-10)


@few_counts_are_meant
def test_golden_proportions() -> None:
    for case in golden_cases("proportion_ci"):
        k, n, alpha = (case["inputs"][name] for name in ("k", "n", "alpha"))
        for name, expected in case["expected"].items():
            if name in ("wald", "wilson", "agresti_coull", "clopper_pearson", "jeffreys"):
                interval = proportion_interval(k, n, level=1 - alpha, method=GOLDEN_NAMES.get(name, name))
                assert bounds(interval) == pytest.approx(expected, abs=1e-10), (case["id"], name)


def test_golden_normal_approximation_of_accuracies() -> None:
    levels = {"z1": 1.0, "z1_96": 1.96, "z2": 2.0}
    for case in golden_cases("seed_eq1"):
        accuracy, n = case["inputs"]["acc"], case["inputs"]["n_holdout"]
        for name, z in levels.items():
            interval = proportion_interval(accuracy * n, n, level=2 * NormalDist().cdf(z) - 1, method="normal")
            assert interval.half_width == pytest.approx(case["expected"][name], abs=1e-12), case["id"]


def test_golden_delong() -> None:
    for case in golden_cases("delong"):
        scores, labels, expected = case["inputs"]["score_a"], case["inputs"]["labels"], case["expected"]
        logit, delong, hanley = (auc_interval(scores, labels, method=m) for m in ("logit", "delong", "hanley-mcneil"))
        assert logit.estimate == pytest.approx(expected["auc"][0], abs=1e-12)
        assert bounds(logit) == pytest.approx(expected["ci95_a_logit"], abs=1e-10), case["id"]
        assert bounds(delong) == pytest.approx(expected["ci95_a_pROC"], abs=1e-10), case["id"]
        z, se = NormalDist().inv_cdf(0.975), expected["hanley_mcneil_se"][0]
        assert hanley.low == pytest.approx(max(0, hanley.estimate - z * se), abs=1e-10), case["id"]
        assert hanley.high == pytest.approx(min(1, hanley.estimate + z * se), abs=1e-10), case["id"]


def test_golden_hanley_mcneil() -> None:
    for case in golden_cases("hanley_mcneil"):
        inputs = case["inputs"]
        se = math.sqrt(_hanley_mcneil(inputs["auc"], inputs["n_pos"], inputs["n_neg"]))
        assert se == pytest.approx(case["expected"]["se"], abs=1e-13), case["id"]


def test_golden_corrected_t() -> None:
    for case in golden_cases("corrected_resampled_t"):
        interval = mean_interval(case["inputs"]["diff"], test_train_ratio=case["inputs"]["n_test_over_n_train"])
        assert bounds(interval) == pytest.approx(case["expected"]["ci95"], abs=1e-10), case["id"]


def test_golden_degenerate() -> None:
    for case in golden_cases("delong_degenerate"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            interval = auc_interval(case["inputs"]["score_a"], case["inputs"]["labels"])
        if case["id"] == "delong_npos1":
            assert interval.estimate == case["expected"]["auc"][0]
            assert math.isnan(interval.low)
        elif case["id"] == "delong_perfect_separation":
            # The golden zero-width interval is what DeLong's formula gives; ours is the bound its note asks for.
            assert interval.estimate == 1.0
            assert 0 < interval.low < interval.high == 1.0


# ---------------------------------------------------------------- laws

levels = st.floats(0.01, 0.9999)
proportions = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@st.composite
def scored(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Integer scores with many ties, two or more of each class."""
    m, n = draw(st.integers(2, 12)), draw(st.integers(2, 12))
    scores = draw(st.lists(st.integers(-5, 5), min_size=m + n, max_size=m + n))
    return np.array(scores, dtype=float), np.repeat([1, 0], (m, n))


@few_counts_are_meant
@settings(deadline=None)
@given(proportions, levels, st.sampled_from(METHODS))
def test_proportion_interval_contains_estimate(counts: tuple[int, int], level: float, method: str) -> None:
    interval = proportion_interval(*counts, level=level, method=method)
    assert 0 <= interval.low <= interval.high <= 1
    # Jeffreys leaves out 0 and 1 by construction, and at low levels nearby estimates too.
    if method != "jeffreys":
        assert interval.estimate in interval


@few_counts_are_meant
@settings(deadline=None)
@given(proportions, levels, st.sampled_from(METHODS))
def test_swapping_success_and_failure_mirrors(counts: tuple[int, int], level: float, method: str) -> None:
    k, n = counts
    here = proportion_interval(k, n, level=level, method=method)
    there = proportion_interval(n - k, n, level=level, method=method)
    assert bounds(there) == pytest.approx((1 - here.high, 1 - here.low), abs=1e-12)


@few_counts_are_meant
@settings(deadline=None)
@given(proportions, st.tuples(levels, levels), st.sampled_from(METHODS))
def test_higher_level_is_not_narrower(counts: tuple[int, int], pair: tuple[float, float], method: str) -> None:
    narrow, wide = (proportion_interval(*counts, level=level, method=method) for level in sorted(pair))
    assert wide.low <= narrow.low + 1e-12
    assert wide.high >= narrow.high - 1e-12


@few_counts_are_meant
@settings(deadline=None)
@given(proportions, st.integers(2, 20), st.sampled_from(METHODS))
def test_more_trials_are_not_wider(counts: tuple[int, int], factor: int, method: str) -> None:
    k, n = counts
    few, many = proportion_interval(k, n, method=method), proportion_interval(k * factor, n * factor, method=method)
    assert many.half_width <= few.half_width + 1e-12


def test_clopper_pearson_contains_wilson_mostly() -> None:
    for k in range(31):
        assert proportion_interval(k, 30, method="clopper-pearson").half_width >= proportion_interval(k, 30).half_width


def test_extreme_level_keeps_its_digits() -> None:
    # Upper bound of 0 of 1000: 1 - (alpha / 2)^(1 / n).
    high = proportion_interval(0, 1000, level=1 - 1e-7, method="clopper-pearson").high
    assert high == pytest.approx(-math.expm1(math.log(0.5e-7) / 1000), rel=1e-7)


@settings(deadline=None)
@given(scored(), levels, st.sampled_from(AUC_METHODS))
def test_auc_interval_contains_estimate(data: tuple[np.ndarray, np.ndarray], level: float, method: str) -> None:
    interval = auc_interval(*data, level=level, method=method)
    assert 0 <= interval.low <= interval.high <= 1
    assert interval.low - 1e-12 <= interval.estimate <= interval.high + 1e-12


@settings(deadline=None)
@given(scored(), st.sampled_from(AUC_METHODS))
def test_auc_interval_mirrors_when_labels_flip(data: tuple[np.ndarray, np.ndarray], method: str) -> None:
    scores, labels = data
    here, there = auc_interval(scores, labels, method=method), auc_interval(scores, 1 - labels, method=method)
    assert there.estimate == pytest.approx(1 - here.estimate, abs=1e-12)
    assert bounds(there) == pytest.approx((1 - here.high, 1 - here.low), abs=1e-9)


@settings(deadline=None)
@given(scored(), st.sampled_from(AUC_METHODS))
def test_auc_interval_sees_ranks_only(data: tuple[np.ndarray, np.ndarray], method: str) -> None:
    scores, labels = data
    assert auc_interval(np.exp(scores) - 7, labels, method=method) == auc_interval(scores, labels, method=method)


@settings(deadline=None)
@given(scored(), st.tuples(levels, levels), st.sampled_from(AUC_METHODS))
def test_auc_interval_widens_with_level(
    data: tuple[np.ndarray, np.ndarray], pair: tuple[float, float], method: str
) -> None:
    narrow, wide = (auc_interval(*data, level=level, method=method) for level in sorted(pair))
    assert wide.low <= narrow.low + 1e-12
    assert wide.high >= narrow.high - 1e-12


@settings(deadline=None)
@given(scored(), st.sampled_from(AUC_METHODS))
def test_auc_interval_shrinks_with_more_items(data: tuple[np.ndarray, np.ndarray], method: str) -> None:
    scores, labels = data
    few = auc_interval(scores, labels, method=method)
    many = auc_interval(np.tile(scores, 4), np.tile(labels, 4), method=method)
    assert many.estimate == pytest.approx(few.estimate, abs=1e-12)
    assert many.half_width <= few.half_width + 1e-12


values = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20)


@settings(deadline=None)
@given(values, st.floats(0, 1))
def test_correction_only_widens(runs: list[float], ratio: float) -> None:
    plain, corrected = mean_interval(runs), mean_interval(runs, test_train_ratio=ratio)
    assert plain.estimate == corrected.estimate
    assert plain.estimate in plain
    assert corrected.low <= plain.low
    assert corrected.high >= plain.high


@settings(deadline=None)
@given(values, st.floats(-1e3, 1e3))
def test_mean_interval_moves_with_the_data(runs: list[float], shift: float) -> None:
    here, there = mean_interval(runs), mean_interval([v + shift for v in runs])
    assert bounds(there) == pytest.approx((here.low + shift, here.high + shift), rel=1e-6, abs=1e-4)


def test_mean_interval_is_cut_to_bounds() -> None:
    runs = [0.99, 1.0, 0.9]
    assert mean_interval(runs).high > 1
    cut = mean_interval(runs, bounds=(0, 1))
    assert cut.high == 1.0
    assert cut.low == mean_interval(runs).low


# ---------------------------------------------------------------- degenerate cases


@pytest.mark.parametrize("method", AUC_METHODS)
def test_auc_zero_and_one_get_the_wilson_bound(method: str) -> None:
    scores, labels = np.arange(10_000.0), np.repeat([1, 0], 5_000)
    worst, best = auc_interval(scores, labels, method=method), auc_interval(-scores, labels, method=method)
    assert worst.estimate == worst.low == 0.0
    assert worst.high == pytest.approx(0.00077, abs=5e-6)
    assert worst.high == proportion_interval(0, 5_000).high
    assert bounds(best) == (proportion_interval(5_000, 5_000).low, 1.0)
    assert worst.method.startswith("wilson")


def test_auc_one_uses_the_smaller_class() -> None:
    interval = auc_interval([0, 1, 2, 3, 4, 9, 10], [0, 0, 0, 0, 0, 1, 1])
    assert interval.low == proportion_interval(2, 2).low


@pytest.mark.parametrize("method", ["logit", "delong"])
def test_tied_scores_have_no_width(method: str) -> None:
    interval = auc_interval([3.0] * 7, [1, 1, 1, 0, 0, 0, 0], method=method)
    assert (interval.low, interval.estimate, interval.high) == (0.5, 0.5, 0.5)
    assert interval.method == f"{method} (variance 0)"
    assert 0.5 in interval


@pytest.mark.parametrize("method", ["logit", "delong"])
@pytest.mark.parametrize(
    ("labels", "auc", "reason"),
    [([0, 1, 0, 0, 0], 0.75, "one positive"), ([1, 0, 1, 1, 1], 0.25, "one negative")],
)
def test_class_of_one(labels: list[int], auc: float, reason: str, method: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"labels hold {reason}: .* method='wilson'"):
        interval = auc_interval([0.1, 0.35, 0.4, 0.3, 0.2], labels, method=method)
    assert interval.estimate == auc
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert interval.method == f"undefined ({reason})"
    assert auc not in interval


@pytest.mark.parametrize("method", ["hanley-mcneil", "wilson"])
def test_class_of_one_is_enough_without_delong(method: str) -> None:
    interval = auc_interval([0.1, 0.35, 0.4, 0.3, 0.2], [0, 1, 0, 0, 0], method=method)
    assert 0 <= interval.low < 0.75 < interval.high <= 1


@pytest.mark.parametrize("method", AUC_METHODS)
@pytest.mark.parametrize(("label", "reason"), [(1, "no negatives"), (0, "no positives")])
def test_one_class(label: int, reason: str, method: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"labels hold {reason}: the AUC is undefined"):
        interval = auc_interval([0.1, 0.2, 0.3], [label] * 3, method=method)
    assert math.isnan(interval.estimate)
    assert math.isnan(interval.low)
    assert interval.method == f"undefined ({reason})"


def test_one_run() -> None:
    with pytest.warns(RuntimeWarning, match="one run shows no spread"):
        interval = mean_interval([0.7], bounds=(0, 1))
    assert interval.estimate == 0.7
    assert math.isnan(interval.low)
    assert interval.method == "undefined (one run)"


def test_equal_runs_have_no_width() -> None:
    interval = mean_interval([0.5] * 4, test_train_ratio=0.25)
    assert bounds(interval) == (0.5, 0.5)


def test_normal_interval_warns_about_few_failures() -> None:
    with pytest.warns(RuntimeWarning, match="fewer than 10 successes or failures"):
        proportion_interval(98, 100, method="normal")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proportion_interval(90, 100, method="normal")


# ---------------------------------------------------------------- coverage


def test_logit_interval_covers_on_musk_sized_data() -> None:
    rng = np.random.default_rng(20240501)
    truth, runs = 0.9, 1500
    covered = {"logit": 0, "delong": 0}
    for _ in range(runs):
        scores, labels = binormal(rng, 47, 45, truth)
        for method in covered:
            covered[method] += truth in auc_interval(scores, labels, method=method)
    assert 0.93 <= covered["logit"] / runs <= 0.97
    assert covered["delong"] < covered["logit"]


def test_corrected_t_of_independent_runs_covers() -> None:
    rng = np.random.default_rng(7)
    covered = sum(0.0 in mean_interval(rng.normal(size=5)) for _ in range(1000))
    assert 0.93 <= covered / 1000 <= 0.97


# ---------------------------------------------------------------- Interval itself


@pytest.mark.parametrize(
    ("estimate", "low", "high", "text"),
    [
        (0.90331, 0.87880, 0.92345, "0.903 [0.879, 0.923]"),
        (0.9, 0.83, 0.97, "0.90 [0.83, 0.97]"),
        (0.0, 0.0, 0.00076771, "0.0000 [0.0000, 0.0008]"),
        (123456.0, 122222.0, 124690.0, "123500 [122200, 124700]"),
        (-0.0004, -0.5, 0.5, "0.0 [-0.5, 0.5]"),
        (0.5, 0.5, 0.5, "0.5 [0.5, 0.5]"),
        (0.75, math.nan, math.nan, "0.75 [nan, nan]"),
        (math.nan, math.nan, math.nan, "nan [nan, nan]"),
        (1e-30, 0.0, 2e-30, "1e-30 [0, 2e-30]"),
    ],
)
def test_repr_shows_what_the_width_supports(estimate: float, low: float, high: float, text: str) -> None:
    interval = Interval(estimate, low, high, level=0.95, method="any", n=9)
    assert repr(interval) == f"Interval({text}, level=0.95, method='any', n=9)"


def test_other_forms() -> None:
    accuracy = proportion_interval(605, 670)
    assert accuracy.summary() == "0.903, 95 % interval 0.878 to 0.923 (wilson, 670 items)"
    auc = Interval(0.75, math.nan, math.nan, level=0.9, method="undefined (<one>)", n=5, n_pos=1, n_neg=4)
    assert auc.summary() == "0.75, 90 % interval undefined (undefined (<one>), 1 positive and 4 negative)"
    assert "n_pos=1, n_neg=4" in repr(auc)
    assert "&lt;one&gt;" in auc._repr_html_()
    assert "<one>" not in auc._repr_html_()
    assert json.loads(json.dumps(auc.to_dict(), allow_nan=False)) == {
        "estimate": 0.75,
        "low": None,
        "high": None,
        "level": 0.9,
        "method": "undefined (<one>)",
        "n": 5,
        "unit": "items",
        "n_pos": 1,
        "n_neg": 4,
        "n_clusters": None,
        "n_boot": None,
        "n_undefined": None,
        "seed": None,
    }
    drawn = Interval(0.5, 0.4, 0.6, 0.95, "bca", n=90, n_clusters=9, n_boot=500, n_undefined=3, seed=1)
    assert repr(drawn) == "Interval(0.50 [0.40, 0.60], level=0.95, method='bca', n=90, n_clusters=9, n_boot=500)"
    assert drawn.summary() == (
        "0.50, 95 % interval 0.40 to 0.60 (bca, 500 resamples, 3 undefined, 90 items in 9 clusters)"
    )
    assert Interval.from_dict(json.loads(json.dumps(drawn.to_dict()))) == drawn
    runs = mean_interval([0.1, 0.2])
    assert "n=2 runs" in repr(runs)
    assert "2 runs" in runs.summary()
    assert pickle.loads(pickle.dumps(accuracy)) == accuracy


def test_fields_are_plain_python_numbers() -> None:
    k: Any = np.int64(5)
    n: Any = np.int64(9)
    for interval in (
        proportion_interval(k, n, level=np.float64(0.9)),
        auc_interval(np.array([1.0, 2.0, 3.0, 2.5]), np.array([0, 1, 1, 0])),
        mean_interval(np.array([0.5, 0.6], dtype=np.float32)),
    ):
        assert {type(value) for value in interval.to_dict().values()} <= {float, int, str, type(None)}


def test_contains() -> None:
    interval = Interval(0.5, 0.4, 0.6, level=0.95, method="any", n=9)
    assert 0.4 in interval
    assert 0.6 in interval
    assert 0.61 not in interval
    undefined = math.nan
    assert undefined not in interval


def test_interval_is_read_only() -> None:
    with pytest.raises(AttributeError):
        proportion_interval(1, 2).low = 0.0  # type: ignore[misc]


def test_positive_label_may_be_named() -> None:
    named = auc_interval([1.0, 3.0, 2.0, 4.0], ["ok", "ill", "ill", "ok"], pos_label="ill")
    assert named == auc_interval([1.0, 3.0, 2.0, 4.0], [0, 1, 1, 0])


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("args", "options", "error", "message"),
    [
        ((1, 0), {}, ValueError, "n must be at least 1; got 0"),
        ((1, 2.5), {}, TypeError, "n must be an integer; got 2.5"),
        ((1, True), {}, TypeError, "n must be an integer"),
        ((3, 2), {}, ValueError, "k must lie between 0 and n=2; got 3"),
        ((-1, 2), {}, ValueError, "k must lie between 0 and n=2; got -1"),
        ((math.nan, 2), {}, ValueError, "k must lie between 0 and n=2; got nan"),
        ((0.9, 670), {}, ValueError, "k counts successes, but 0.9 looks like a proportion"),
        (("3", 5), {}, TypeError, "k must be a number; got '3'"),
        ((None, 5), {}, TypeError, "k must be a number; got NoneType"),
        ((1, 2), {"level": 95}, ValueError, "level must lie strictly between 0 and 1"),
        ((1, 2), {"level": 0}, ValueError, "level must lie strictly between 0 and 1"),
        ((1, 2), {"level": math.nan}, ValueError, "level must lie strictly between 0 and 1"),
        ((1, 2), {"level": "high"}, TypeError, "level must be a number"),
        ((1, 2), {"method": "exact"}, ValueError, "method must be one of wilson, normal, .*; got 'exact'"),
    ],
)
def test_proportion_messages(
    args: tuple[Any, Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        proportion_interval(*args, **options)


def test_auc_messages() -> None:
    with pytest.raises(
        ValueError,
        match="method must be one of logit, delong, hanley-mcneil, wilson, bca, percentile, basic; got 'boot'",
    ):
        auc_interval([1, 2], [0, 1], method="boot")
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        auc_interval([1, 2], [0, 1], level=1)
    with pytest.raises(ValueError, match="scores"):
        auc_interval([1.0, math.nan], [0, 1])
    with pytest.raises(ValueError, match="labels"):
        auc_interval([1.0, 2.0, 3.0], [0, 1, 2])


@pytest.mark.parametrize(
    ("runs", "options", "error", "message"),
    [
        ([], {}, ValueError, r"values must hold one number a run, shape \(J,\) with J >= 1; got shape \(0,\)"),
        ([[1.0, 2.0]], {}, ValueError, r"values must hold one number a run.*got shape \(1, 2\)"),
        ([1.0, math.nan], {}, ValueError, r"values\[1\] is nan"),
        ([math.inf, 1.0], {}, ValueError, r"values\[0\] is inf"),
        (["a"], {}, TypeError, "values cannot be read as numbers"),
        ([0.5, 1.5], {"bounds": (0, 1)}, ValueError, r"values\[1\] is 1.5, outside bounds \(0, 1\)"),
        ([0.5, 0.6], {"bounds": (1, 0)}, ValueError, r"bounds must be in ascending order; got \(1, 0\)"),
        ([0.5, 0.6], {"bounds": 1}, ValueError, r"bounds must be a pair \(smallest, largest\); got 1"),
        ([0.5, 0.6], {"bounds": (0, None)}, TypeError, r"bounds\[1\] must be a number; got NoneType"),
        ([0.5, 0.6], {"test_train_ratio": -0.1}, ValueError, "test_train_ratio must be finite and not negative"),
        ([0.5, 0.6], {"test_train_ratio": math.nan}, ValueError, "test_train_ratio must be finite and not negative"),
        ([0.5, 0.6], {"test_train_ratio": "1/9"}, TypeError, "test_train_ratio must be a number; got '1/9'"),
        ([0.5, 0.6], {"level": 2}, ValueError, "level must lie strictly between 0 and 1"),
    ],
)
def test_mean_messages(runs: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mean_interval(runs, **options)


def test_interval_refuses_reversed_bounds() -> None:
    with pytest.raises(ValueError, match=r"low must not exceed high; got low=0\.6, high=0\.4"):
        Interval(0.5, 0.6, 0.4, level=0.95, method="any", n=1)


def test_import_leaves_scipy_alone() -> None:
    code = "import sys, milfast.uncertainty; print([m for m in ('scipy', 'sklearn', 'torch') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert loaded.stdout.strip() == "[]", loaded.stderr
