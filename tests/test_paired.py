"""Classifiers on the same items: golden values, published tables, definitions by brute force, degenerate cases."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import golden_cases
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from milfast.uncertainty import cochran_q, equivalence, mcnemar, mcnemar_from_counts
from milfast.uncertainty.paired import score_statistic

METHODS = {"exact": "exact_p", "mid-p": "mid_p", "chi2": "p_chi2", "chi2-corrected": "p_chi2_cc"}
INTERVALS = ("score", "newcombe", "bonett-price", "wald")
TABLES = st.tuples(*[st.integers(0, 30)] * 4).filter(any)


def arrays(both: int, b: int, c: int, neither: int) -> tuple[np.ndarray, np.ndarray]:
    first = np.repeat([True, True, False, False], (both, b, c, neither))
    return first, np.repeat([True, False, True, False], (both, b, c, neither))


# ---------------------------------------------------------------- values from elsewhere


def test_golden_mcnemar() -> None:
    cases = golden_cases("mcnemar")
    assert len(cases) == 9
    for case in cases:
        b, c, expected = case["inputs"]["b"], case["inputs"]["c"], case["expected"]
        for method, key in METHODS.items():
            result = mcnemar(*arrays(20, b, c, 7), method=method)
            if key in expected and not math.isnan(expected[key]):
                # relative, far below the tolerance of the case where p is small
                assert result.p_value == pytest.approx(expected[key], rel=1e-10, abs=0), (case["id"], method)
            if method.startswith("chi2") and "chi2" in expected:
                chi2 = expected["chi2" if method == "chi2" else "chi2_cc"]
                assert result.statistic == pytest.approx(chi2, rel=1e-12)
        if expected.get("log10_exact_p_mpmath") is not None:
            exact = mcnemar_from_counts(0, b, c, 0, method="exact")
            assert exact.log_p / math.log(10) == pytest.approx(expected["log10_exact_p_mpmath"], rel=1e-12, abs=1e-12)


def test_golden_cochran() -> None:
    [case] = golden_cases("cochran_q")
    result = cochran_q(np.transpose(case["inputs"]["correct"]))
    assert result.statistic == pytest.approx(case["expected"]["Q"], rel=1e-12)
    assert result.p_value == pytest.approx(case["expected"]["p"], abs=case["tol"])
    assert result.df == (case["expected"]["df"],)


def test_real_predictions(mil_data: Any) -> None:
    [case] = golden_cases("seed_data")
    with np.load(mil_data / "uncertainty" / "sota_predictions.npz") as stored:
        archs, seeds = stored["archs"].tolist(), stored["seeds"].tolist()
        right = stored["pred_last"][:, seeds.index(42)] == stored["gtlabel"]
    a, b = right[archs.index("resnext50")], right[archs.index("resnet50")]
    result = mcnemar(a, b, method="exact", interval="wald", names=("ResNeXt-50", "ResNet-50"))
    expected = case["expected"]
    assert (result.details["first_only"], result.details["second_only"]) == (expected["b"], expected["c"])
    assert result.p_value == pytest.approx(expected["exact_p"], rel=1e-10)
    assert result.estimates == pytest.approx((expected["acc_a"], expected["acc_b"]), rel=1e-14)
    assert result.difference is not None
    assert [result.difference.low, result.difference.high] == pytest.approx([0.0274, 0.0365], abs=5e-5)


@pytest.mark.parametrize(
    ("interval", "low", "high"),
    [
        ("score", -0.517, -0.026),
        ("newcombe", -0.507, -0.026),
        ("bonett-price", -0.508, -0.013),
        ("wald", -0.520, -0.052),
    ],
)
def test_published_intervals_of_a_small_table(interval: str, low: float, high: float) -> None:
    # airway hyper-responsiveness before and after transplantation, in Fagerland, Lydersen and Laake 2014, Stat. Med. 33
    found = mcnemar_from_counts(1, 1, 7, 12, interval=interval).difference
    assert found is not None
    assert (round(found.low, 3), round(found.high, 3)) == (low, high)


# ---------------------------------------------------------------- definitions


@given(st.integers(0, 200), st.integers(0, 200))
def test_exact_and_mid_p_are_sums(b: int, c: int) -> None:
    n, k = b + c, min(b, c)
    tail = Fraction(sum(math.comb(n, i) for i in range(k + 1)), 2**n)
    point = Fraction(math.comb(n, k), 2**n)
    exact, mid = min(Fraction(1), 2 * tail), min(Fraction(1), 2 * tail - point)
    if b == c:
        mid = Fraction(1)
    for method, want in (("exact", exact), ("mid-p", mid)):
        result = mcnemar_from_counts(1, b, c, 0, method=method)
        assert result.p_value == pytest.approx(float(want), rel=1e-11)
        assert result.statistic == b


@given(TABLES, st.sampled_from(sorted(METHODS)), st.sampled_from(INTERVALS))
def test_swapping_the_models_mirrors_everything(table: tuple[int, ...], method: str, interval: str) -> None:
    both, b, c, neither = table
    one = mcnemar_from_counts(both, b, c, neither, method=method, interval=interval)
    other = mcnemar_from_counts(both, c, b, neither, method=method, interval=interval)
    assert one.log_p == pytest.approx(other.log_p, rel=1e-12, abs=1e-12)
    assert one.estimates == other.estimates[::-1]
    assert one.difference is not None
    assert other.difference is not None
    assert one.difference.estimate == -other.difference.estimate
    assert one.difference.low == pytest.approx(-other.difference.high, abs=1e-12)
    assert one.difference.high == pytest.approx(-other.difference.low, abs=1e-12)
    assert -1 <= one.difference.low <= one.difference.high <= 1
    # adding pseudo-items pulls the Bonett-Price interval towards 0, at times off the estimate
    if interval != "bonett-price":
        assert one.difference.low - 1e-12 <= one.difference.estimate <= one.difference.high + 1e-12


@given(TABLES, st.floats(0.5, 0.999))
def test_bounds_of_the_score_interval_are_where_the_score_test_turns(table: tuple[int, ...], level: float) -> None:
    _, b, c, _ = table
    n = sum(table)
    found = mcnemar_from_counts(*table, level=level).difference
    assert found is not None
    for delta in np.linspace(-0.999, 0.999, 41):
        z = abs(by_likelihood(b, c, n, float(delta)))
        p = math.erfc(z / math.sqrt(2))
        if abs(p - (1 - level)) > 1e-6:
            assert (p > 1 - level) == (float(delta) in found), delta


def by_likelihood(b: int, c: int, n: int, delta: float) -> float:
    """The score statistic with the nuisance chance found by golden-section search on the likelihood itself."""

    def likelihood(q: float) -> float:
        terms = ((b, q + delta), (c, q), (n - b - c, 1 - 2 * q - delta))
        return sum(k * math.log(max(p, 1e-300)) for k, p in terms if k)

    low, high = max(0.0, -delta), (1 - delta) / 2
    for _ in range(200):
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, right) if likelihood(left) > likelihood(right) else (left, high)
    variance = n * (2 * (low + high) / 2 + delta - delta**2)
    gap = b - c - n * delta
    return gap / math.sqrt(variance) if variance > 1e-12 else math.inf * gap if gap else 0.0


@given(TABLES)
def test_the_score_interval_and_the_chi2_test_agree(table: tuple[int, ...]) -> None:
    result = mcnemar_from_counts(*table, method="chi2")
    assert result.difference is not None
    if abs(result.p_value - 0.05) > 1e-9:
        assert (0.0 in result.difference) == (result.p_value > 0.05)
    assert score_statistic(table[1], table[2], sum(table), 0.0) ** 2 == pytest.approx(
        result.statistic, rel=1e-12, abs=1e-12
    )


@given(st.integers(2, 5), st.integers(1, 25), st.randoms(use_true_random=False))
def test_q_is_the_variance_of_columns_over_that_of_rows(k: int, n: int, random: Any) -> None:
    correct = [[random.random() < 0.3 + 0.1 * i for _ in range(n)] for i in range(k)]
    result = cochran_q(correct)
    of_model = [Fraction(sum(row)) for row in correct]
    mean = sum(of_model) / k
    below = sum((Fraction(sum(column)) * (k - sum(column)) for column in zip(*correct, strict=True)), Fraction(0))
    above = k * (k - 1) * sum(((g - mean) ** 2 for g in of_model), Fraction(0))
    assert result.statistic == pytest.approx(float(above / below) if below else 0.0, rel=1e-12)
    assert result.df == (k - 1,)
    assert len(result.pairs) == (k * (k - 1) // 2 if k > 2 else 0)


def test_q_of_two_is_mcnemar() -> None:
    first, second = arrays(5, 9, 2, 3)
    q, chi2 = cochran_q([first, second]), mcnemar(first, second, method="chi2")
    assert (q.statistic, q.log_p) == pytest.approx((chi2.statistic, chi2.log_p), rel=1e-12)
    assert q.difference == chi2.difference


@given(TABLES, st.floats(0.005, 0.5), st.floats(0.6, 0.99))
def test_equivalence_is_an_interval_within_the_margins(table: tuple[int, ...], margin: float, level: float) -> None:
    result = equivalence(*arrays(*table), margin, level=level)
    assert result.difference is not None
    assert result.difference.level == pytest.approx(2 * level - 1)
    within = -margin < result.difference.low and result.difference.high < margin
    if abs(result.p_value - (1 - level)) > 1e-6:
        assert within == (result.p_value < 1 - level)


def test_non_inferiority_is_one_side_of_equivalence() -> None:
    data = arrays(400, 20, 24, 56)
    both = equivalence(*data, (-0.03, 0.02))
    lower, upper = equivalence(*data, (-0.03, math.inf)), equivalence(*data, (-math.inf, 0.02))
    assert both.p_value == max(lower.p_value, upper.p_value)
    assert lower.method == "non-inferiority, margin -0.03"
    assert upper.method == "non-superiority, margin 0.02"


# ---------------------------------------------------------------- degenerate cases


@pytest.mark.parametrize("method", sorted(METHODS))
def test_models_that_agree_about_everything(method: str) -> None:
    result = mcnemar([True] * 9 + [False], [True] * 9 + [False], method=method)
    assert (result.p_value, result.log_p) == (1.0, 0.0)
    assert result.notes
    assert result.difference is not None
    # nothing seen among ten is not nothing: z^2 / (n + z^2)
    assert result.difference.high == pytest.approx(1.9599639845**2 / (10 + 1.9599639845**2), abs=1e-9)
    q = cochran_q([[1, 0, 1]] * 3)
    assert (q.statistic, q.p_value) == (0.0, 1.0)
    assert q.notes


@pytest.mark.parametrize("interval", INTERVALS)
def test_extremes(interval: str) -> None:
    for table in ((0, 1, 0, 0), (0, 0, 7, 0), (1, 0, 0, 0), (0, 0, 0, 1), (0, 5, 5, 0), (10**6, 10**6, 10**6, 10**6)):
        result = mcnemar_from_counts(*table, interval=interval)
        assert 0 < result.p_value <= 1
        assert result.difference is not None
        assert -1 <= result.difference.low <= result.difference.high <= 1


def test_beyond_a_thousand_discordant_items() -> None:
    # 2^-n is no double any more
    result = mcnemar_from_counts(0, 100_000, 99_000, 0, method="exact")
    assert result.p_value == pytest.approx(
        mcnemar_from_counts(0, 100_000, 99_000, 0, method="chi2-corrected").p_value, rel=2e-3
    )
    assert math.isfinite(mcnemar_from_counts(0, 10**7, 0, 0, method="mid-p").log_p)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mcnemar([1, 0], [1]), ValueError, "same items; got 2 and 1 entries"),
        (lambda: mcnemar([], []), ValueError, r"correct_a must hold one entry an item.*got shape \(0,\)"),
        (lambda: mcnemar([1, math.nan], [1, 0]), ValueError, r"correct_a\[1\] is nan"),
        (lambda: mcnemar([1, 0], [1, 2]), ValueError, r"correct_b\[1\] is 2: .*predictions == labels"),
        (lambda: mcnemar([1, None], [1, 0]), ValueError, r"correct_a\[1\] is nan"),
        (lambda: mcnemar(["a", "b"], [1, 0]), TypeError, "correct_a must be bool or 0 and 1"),
        (lambda: mcnemar([[1, 0]], [[1, 0]]), ValueError, "shape"),
        (lambda: mcnemar([1], [1], method="fisher"), ValueError, "method must be one of mid-p, exact"),
        (lambda: mcnemar([1], [1], interval="exact"), ValueError, "interval must be one of score"),
        (lambda: mcnemar([1], [1], level=95), ValueError, "level must lie strictly between 0 and 1"),
        (lambda: mcnemar_from_counts(0, 0, 0, 0), ValueError, "the table is empty"),
        (lambda: mcnemar_from_counts(1, -1, 0, 0), ValueError, "first_only must not be negative; got -1"),
        (lambda: mcnemar_from_counts(1, 1.5, 0, 0), TypeError, "first_only must be an integer; got 1.5"),
        (lambda: mcnemar_from_counts(1, True, 0, 0), TypeError, "first_only must be an integer"),
        (lambda: cochran_q([[1, 0, 1]]), ValueError, "a row a model"),
        (lambda: cochran_q([[1, 0], [1, 3]]), ValueError, r"correct\[1, 1\] is 3"),
        (lambda: cochran_q([[1, 0], [1]]), TypeError, "correct cannot be read"),
        (lambda: equivalence([1], [1], 0.0), ValueError, "margin must reach below and above 0"),
        (lambda: equivalence([1], [1], 2), ValueError, r"between 0 and 1 \(0.02 for 2 %\); got 2"),
        (lambda: equivalence([1], [1], (-math.inf, math.inf)), ValueError, "finite on one side"),
        (lambda: equivalence([1], [1], (-0.1, 0.1, 0.2)), ValueError, "one number or a pair"),
        (lambda: equivalence([1], [1], 0.1, level=0.4), ValueError, "level must be above 0.5"),
        (lambda: equivalence([1], [1], "small"), TypeError, "margin must be a number"),
    ],
)
def test_messages(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_kinds_of_input() -> None:
    a, b = [1, 0, 1, 1], [0, 0, 1, 0]
    want = mcnemar(a, b)
    for kind in (bool, np.int8, np.uint64, np.float32, object, ">i4"):
        assert mcnemar(np.array(a).astype(kind), np.array(b).astype(kind)) == want
    assert mcnemar(np.repeat(a, 2)[::2], np.array(b[::-1])[::-1]) == want


# ---------------------------------------------------------------- clusters


@given(TABLES, st.sampled_from(["exact", "mid-p", "chi2"]))
def test_clusters_of_one_item_are_mcnemar(table: tuple[int, ...], method: str) -> None:
    first, second = arrays(*table)
    if len(first) < 2:
        return
    plain, clustered = (mcnemar(first, second, method=method, clusters=c) for c in (None, np.arange(len(first))))
    assert clustered.log_p == pytest.approx(plain.log_p, rel=1e-9, abs=1e-11)
    assert clustered.estimates == plain.estimates
    assert {name: clustered.details[name] for name in plain.details} == plain.details


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=9))
def test_the_exact_test_of_clusters_counts_all_signs(given_: list[tuple[int, int, int]]) -> None:
    first, second, cluster = [], [], []
    for k, (b, c, both) in enumerate(given_):
        first += [1] * b + [0] * c + [1] * both
        second += [0] * b + [1] * c + [1] * both
        cluster += [k] * (b + c + both)
    if len(set(cluster)) < 2:
        return
    exact, mid, chi2 = (mcnemar(first, second, clusters=cluster, method=m) for m in ("exact", "mid-p", "chi2"))
    d = [b - c for b, c, _ in given_]
    sums = [sum(s * x for s, x in zip(signs, d, strict=True)) for signs in product((-1, 1), repeat=len(d))]
    as_far, equal = (np.mean([f(abs(s), abs(sum(d))) for s in sums]) for f in (operator.ge, operator.eq))
    assert exact.p_value == pytest.approx(as_far)
    # of both tails half of what is as far as that
    assert mid.p_value == pytest.approx(as_far - equal / 2 if sum(d) else 1.0)
    square = sum(x * x for x in d)
    assert chi2.statistic == pytest.approx(sum(d) ** 2 / square if square else 0.0)
    assert exact.difference is not None
    if not math.isnan(exact.difference.half_width):
        assert exact.difference.low <= exact.difference.estimate <= exact.difference.high


def test_the_interval_of_clusters_is_that_of_a_ratio() -> None:
    rng = np.random.default_rng(0)
    patient = rng.integers(0, 40, 300)
    first = rng.random(300) < np.repeat(rng.beta(4, 1, 40), 1)[patient]
    second = rng.random(300) < 0.7
    result = mcnemar(first, second, clusters=patient)
    difference = first.astype(float) - second
    left = np.bincount(patient, difference - difference.mean())
    k = len(np.unique(patient))
    se = math.sqrt(k / (k - 1) * (left**2).sum()) / 300
    assert result.difference is not None
    assert result.difference.half_width == pytest.approx(stats.t.ppf(0.975, k - 1) * se)
    assert result.difference.n_clusters == k
    margin = 0.3
    tost = equivalence(first, second, margin, clusters=patient)
    t = min(margin + difference.mean(), margin - difference.mean()) / se
    assert (tost.statistic, tost.p_value) == (pytest.approx(t), pytest.approx(stats.t.sf(t, k - 1)))
    assert tost.difference is not None
    assert tost.difference.half_width == pytest.approx(stats.t.ppf(0.95, k - 1) * se)


def test_clusters_without_spread() -> None:
    cluster = [0, 0, 1, 1, 2, 2]
    same = mcnemar([1, 0] * 3, [1, 0] * 3, clusters=cluster)
    assert (same.p_value, same.log_p) == (1.0, 0.0)
    assert same.difference is not None
    assert same.difference.high == pytest.approx(1.9599639845**2 / (3 + 1.9599639845**2), abs=1e-9)
    always = mcnemar([1, 0] * 3, [0, 0] * 3, clusters=cluster, method="exact")
    assert always.p_value == pytest.approx(0.25)
    assert always.difference is not None
    assert math.isnan(always.difference.low)
    with pytest.warns(RuntimeWarning, match="no spread between clusters"):
        assert math.isnan(equivalence([1, 0] * 3, [0, 0] * 3, 0.6, clusters=cluster).p_value)
    # more clusters than the exact law is computed for
    many = mcnemar([1] * 1500 + [0] * 600, [0] * 1500 + [1] * 600, clusters=np.arange(2100), method="exact")
    assert "taken as normal" in many.notes[0]
    assert many.method == "McNemar chi-squared of clusters"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "chi2-corrected"}, "knows no clusters"),
        ({"interval": "wald"}, "interval must not be given with clusters"),
        ({"clusters": [0, 1, 2]}, "clusters"),
        ({"clusters": [0, 0, 0, 0]}, "one cluster shows no spread"),
    ],
)
def test_messages_of_clusters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mcnemar([1, 0, 1, 1], [0, 0, 1, 1], **({"clusters": [0, 0, 1, 1]} | options))
