"""Accuracies on different items, and how many items it takes: golden values, inverted tests, planned power."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import golden_cases
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from milfast.uncertainty import (
    auc_interval,
    compare_proportions,
    mcnemar_from_counts,
    proportion_interval,
    sample_size_auc,
    sample_size_half_width,
    sample_size_improvement,
    sample_size_paired,
    sample_size_unpaired,
)
from milfast.uncertainty.proportions import _score_statistic

INTERVALS = ("newcombe", "agresti-caffo", "score", "wald")
COUNTS = st.tuples(st.integers(1, 40), st.integers(1, 40)).flatmap(
    lambda n: st.tuples(st.integers(0, n[0]), st.just(n[0]), st.integers(0, n[1]), st.just(n[1]))
)


def bounds(interval: Any) -> tuple[float, float]:
    return interval.low, interval.high


# ---------------------------------------------------------------- values from elsewhere


def test_golden_two_proportions() -> None:
    cases = golden_cases("two_independent_proportions")
    assert len(cases) == 3
    keys = {"wald": "ci_wald", "newcombe": "ci_newcomb", "agresti-caffo": "ci_agresti-caffo"}
    for case in cases:
        given_, expected = case["inputs"], case["expected"]
        counts = [given_[key] for key in ("k1", "n1", "k2", "n2")]
        for interval in INTERVALS:
            result = compare_proportions(*counts, interval=interval, level=1 - given_["alpha"])
            assert result.statistic == pytest.approx(expected["z_pooled"], abs=case["tol"])
            assert result.p_value == pytest.approx(expected["p_pooled"], abs=case["tol"])
            if interval in keys:
                assert bounds(result.difference) == pytest.approx(expected[keys[interval]], abs=case["tol"])
            # for 9 of 10 and 3 of 10 another library finds no score interval
            assert -1 < bounds(result.difference)[0] < bounds(result.difference)[1] < 1


def by_cubic(counts: list[int], delta: float, *, slip: bool = False) -> float:
    """Miettinen and Nurminen's statistic by the roots of their cubic.

    With `slip`, by that of statsmodels up to 0.15, whose linear coefficient has a count where the number of items
    belongs (statsmodels issue 10269).
    """
    k_a, n_a, k_b, n_b = counts
    n, k = n_a + n_b, k_a + k_b
    linear = ((k_b if slip else n_b) * delta - n - 2 * k_b) * delta + k
    roots = np.roots([n, (n_a + 2 * n_b) * delta - n - k, linear, k_b * delta * (1 - delta)])
    fits = [q.real for q in roots if abs(q.imag) < 1e-9 and max(0, -delta) - 1e-9 <= q.real <= min(1, 1 - delta) + 1e-9]
    q_b = min(fits, key=lambda q: abs(q - k_b / n_b))
    q_a = q_b + delta
    variance = (q_a * (1 - q_a) / n_a + q_b * (1 - q_b) / n_b) * n / (n - 1)
    return (k_a / n_a - k_b / n_b - delta) / math.sqrt(variance)


def test_score_intervals_of_the_golden_counts_and_of_another_library() -> None:
    z = 1.959963984540054
    for case in golden_cases("two_independent_proportions"):
        counts = [case["inputs"][key] for key in ("k1", "n1", "k2", "n2")]
        low, high = bounds(compare_proportions(*counts, interval="score").difference)
        assert (by_cubic(counts, low), by_cubic(counts, high)) == pytest.approx((z, -z), rel=1e-7)
        theirs = case["expected"].get("ci_score_miettinen_nurminen")
        if theirs:
            # the golden bounds are those of the library, slip and all: z is 1.96003 to 1.981 there
            assert (low, high) == pytest.approx(theirs, abs=1e-3)
            assert [by_cubic(counts, bound, slip=True) for bound in theirs] == pytest.approx([z, -z], rel=1e-6)


def test_golden_sample_sizes() -> None:
    cases = golden_cases("sample_size")
    assert len(cases) == 3
    for case in cases:
        p1, p2, power = (case["inputs"][key] for key in ("p1", "p2", "power"))
        level, expected = 1 - case["inputs"]["alpha"], case["expected"]
        found = {
            "fleiss_n_per_group": sample_size_unpaired(p1, p2, level=level, power=power),
            "arcsine_n_per_group": sample_size_unpaired(p1, p2, level=level, power=power, method="arcsine"),
            "halfwidth_n_for_0p01": sample_size_half_width(p1, 0.01, level=level),
        }
        for key, size in found.items():
            assert size.exact == pytest.approx(expected[key], abs=1e-5 if "arcsine" in key else 1e-6, rel=1e-9), key
            assert size.n == math.ceil(expected[key])
    paired = golden_cases("mcnemar_sample_size")
    assert len(paired) == 3
    for case in paired:
        share, delta, power = (case["inputs"][key] for key in ("p_discordant", "delta", "power"))
        size = sample_size_paired(delta, discordant=share, level=1 - case["inputs"]["alpha"], power=power)
        assert size.exact == pytest.approx(case["expected"]["n"], abs=case["tol"])


def test_pairs_of_noether() -> None:
    size = sample_size_improvement(0.75)
    assert (size.n, round(size.exact, 2)) == (29, 28.86)


# ---------------------------------------------------------------- definitions


@given(COUNTS)
def test_z_is_the_root_of_pearson_and_fisher_is_that_of_scipy(counts: tuple[int, int, int, int]) -> None:
    k_a, n_a, k_b, n_b = counts
    table = [[k_a, n_a - k_a], [k_b, n_b - k_b]]
    z, fisher = compare_proportions(*counts), compare_proportions(*counts, method="fisher")
    assert fisher.p_value == pytest.approx(stats.fisher_exact(table)[1], rel=1e-7)
    if 0 < k_a + k_b < n_a + n_b:
        chi2 = stats.chi2_contingency(table, correction=False)
        assert z.statistic**2 == pytest.approx(chi2.statistic, rel=1e-9, abs=1e-12)
        assert z.p_value == pytest.approx(chi2.pvalue, rel=1e-9)
    else:
        assert z.p_value == fisher.p_value == 1.0
        assert z.notes


@given(COUNTS, st.sampled_from(INTERVALS))
def test_swapping_the_two_mirrors_the_interval(counts: tuple[int, int, int, int], interval: str) -> None:
    k_a, n_a, k_b, n_b = counts
    one, other = (
        compare_proportions(*counts, interval=interval),
        compare_proportions(k_b, n_b, k_a, n_a, interval=interval),
    )
    low, high = bounds(other.difference)
    assert bounds(one.difference) == pytest.approx((-high, -low), abs=1e-9)
    assert -1 <= bounds(one.difference)[0] <= bounds(one.difference)[1] <= 1
    assert one.log_p == pytest.approx(other.log_p, abs=1e-12)


def by_likelihood(counts: tuple[int, int, int, int], delta: float) -> float:
    """The score statistic with the nuisance chance found on the likelihood by golden sections."""
    k_a, n_a, k_b, n_b = counts

    def likelihood(p: float) -> float:
        terms = ((k_a, p + delta), (n_a - k_a, 1 - p - delta), (k_b, p), (n_b - k_b, 1 - p))
        return sum(k * math.log(max(x, 1e-300)) for k, x in terms if k)

    low, high = max(0.0, -delta), min(1.0, 1 - delta)
    for _ in range(200):
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, right) if likelihood(left) > likelihood(right) else (left, high)
    p_b = (low + high) / 2
    p_a = p_b + delta
    n = n_a + n_b
    variance = (p_a * (1 - p_a) / n_a + p_b * (1 - p_b) / n_b) * n / (n - 1)
    return (k_a / n_a - k_b / n_b - delta) / math.sqrt(variance) if variance > 1e-14 else math.nan


@given(COUNTS)
def test_the_score_interval_holds_what_its_test_does_not_reject(counts: tuple[int, int, int, int]) -> None:
    found = compare_proportions(*counts, interval="score").difference
    assert found is not None
    for delta in np.linspace(-0.97, 0.97, 31):
        z = by_likelihood(counts, float(delta))
        if not math.isnan(z) and abs(abs(z) - 1.959963984540054) > 1e-5:
            assert (abs(z) < 1.959963984540054) == (float(delta) in found), delta
            assert _score_statistic(*counts, float(delta)) == pytest.approx(z, abs=1e-5)


def test_overlap_of_intervals_is_no_test() -> None:
    # equal sizes, large: intervals that touch mean z = 1.96 sqrt(2)
    n = 10**6
    touching = [
        k for k in range(500_000, 502_500) if proportion_interval(k, n).low > proportion_interval(500_000, n).high
    ]
    p = compare_proportions(touching[0], n, 500_000, n).p_value
    assert p == pytest.approx(0.0056, abs=2e-4)


# ---------------------------------------------------------------- what is planned is reached


def test_planned_half_widths_are_reached() -> None:
    for p, half in ((0.9, 0.01), (0.5, 0.05), (0.99, 0.004)):
        n = sample_size_half_width(p, half, method="wilson").n
        assert proportion_interval(p * n, n).half_width <= half < proportion_interval(p * (n - 1), n - 1).half_width
        assert sample_size_half_width(p, half).n == pytest.approx(n, rel=0.2)


def test_planned_power_is_reached() -> None:
    rng = np.random.default_rng(1)
    gap, share = 0.06, 0.15
    n = sample_size_paired(gap, discordant=share).n
    tables = rng.multinomial(n, [0.7, (share + gap) / 2, (share - gap) / 2, 0.3 - share], 1500)
    found = np.mean([mcnemar_from_counts(*row, method="chi2").p_value < 0.05 for row in tables.tolist()])
    assert found == pytest.approx(0.8, abs=0.04)
    n = sample_size_unpaired(0.8, 0.7).n
    counts = rng.binomial(n, [0.8, 0.7], (1500, 2)).tolist()
    found = np.mean([compare_proportions(a, n, b, n).p_value < 0.05 for a, b in counts])
    assert found == pytest.approx(0.8, abs=0.04)


def test_planned_aucs_are_reached() -> None:
    for share in (0.5, 0.2):
        n = sample_size_auc(0.85, 0.05, positive_fraction=share).n
        m = round(share * n)
        # scores whose laws are exponential, for which the formula is exact: P(X > Y) = rate / (rate + 1)
        rng = np.random.default_rng(4)
        rate = 0.85 / 0.15
        labels = np.repeat([1, 0], (m, n - m))
        widths = [
            auc_interval(rng.exponential(np.where(labels, rate, 1.0)), labels, method="delong").half_width
            for _ in range(200)
        ]
        assert np.mean(widths) == pytest.approx(0.05, abs=0.003)


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: compare_proportions(11, 10, 1, 10), ValueError, "k_a must lie between 0 and n_a=10; got 11"),
        (lambda: compare_proportions(1, 10, 0.9, 10), ValueError, r"k_b counts successes.*pass k_b=0.9 \* n_b"),
        (lambda: compare_proportions(1, 10, 1, 0), ValueError, "n_b must be at least 1; got 0"),
        (lambda: compare_proportions(1, 10.5, 1, 10), TypeError, "n_a must be an integer; got 10.5"),
        (lambda: compare_proportions(1, 10, 1, 10, method="t"), ValueError, "method must be one of z, fisher"),
        (lambda: compare_proportions(1, 10, 1, 10, interval="x"), ValueError, "interval must be one of newcombe"),
        (lambda: compare_proportions(1.5, 10, 1, 10, method="fisher"), ValueError, "k_a must be whole"),
        (lambda: sample_size_half_width(90, 0.01), ValueError, r"proportion must lie strictly.*0.9 for 90 %"),
        (lambda: sample_size_half_width(0.9, 0), ValueError, "half_width must lie strictly"),
        (lambda: sample_size_half_width(0.9, 1e-200), ValueError, "half_width is too small for any study"),
        (lambda: sample_size_half_width(0.9, 1e-200, method="wilson"), ValueError, "half_width is too small"),
        (lambda: sample_size_auc(0.9, 1e-180), ValueError, "half_width is too small"),
        (lambda: sample_size_paired(1e-155, discordant=0.1), ValueError, "difference is too small"),
        (lambda: sample_size_half_width(0.9, 0.1, method="t"), ValueError, "method must be one of normal, wilson"),
        (lambda: sample_size_unpaired(0.9, 0.9), ValueError, "p_a and p_b must differ"),
        (lambda: sample_size_unpaired(0.9, 0.8, power=1), ValueError, "power must lie strictly"),
        (
            lambda: sample_size_paired(0.1, discordant=0.05),
            ValueError,
            r"between abs\(difference\)=0.1 and 1; got 0.05",
        ),
        (lambda: sample_size_paired(0, discordant=0.05), ValueError, "not be 0"),
        (lambda: sample_size_improvement(0.5), ValueError, "gamma must lie above 0.5"),
        (lambda: sample_size_auc(0.9, 0.05, positive_fraction=0), ValueError, "positive_fraction must lie strictly"),
        (lambda: sample_size_auc("0.9", 0.05), TypeError, "auc must be a number"),
    ],
)
def test_messages(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_small_expected_counts_are_told() -> None:
    assert "method='fisher' is safer" in compare_proportions(3, 10, 1, 12).notes[0]
    assert compare_proportions(9, 10, 3, 10, method="fisher").notes == ()
    huge = compare_proportions(600_000, 10**6, 400_000, 10**6, method="fisher")
    assert huge.p_value == math.ulp(0.0)
    assert huge.log_p == pytest.approx(compare_proportions(600_000, 10**6, 400_000, 10**6).log_p, rel=0.02)


def test_sizes_are_numbers() -> None:
    size = sample_size_paired(0.02, discordant=0.1)
    assert list(range(2000))[size] == 1960 == int(size)
    assert size.to_dict()["unit"] == "items, tried by both models,"
