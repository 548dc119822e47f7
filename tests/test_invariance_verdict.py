"""Verdicts on invariance: counts, Fieller's set, signed ranks, and the gate before them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

from milfast.invariance import judge
from milfast.invariance.verdict import decide, needed, ratio_of_means, success_bounds
from milfast.uncertainty.signed_rank import hodges_lehmann, log_p_lower

numbers = st.floats(-100, 100).map(lambda x: round(x, 3))


@pytest.mark.parametrize(("n", "least", "most"), [(20, 20, 12), (30, 28, 19), (50, 45, 34), (100, 87, 72)])
def test_how_many_successes_decide(n: int, least: int, most: int) -> None:
    assert needed(n) == (least, most)
    for k in range(n + 1):
        expected = "pass" if k >= least else "fail" if k <= most else "inconclusive"
        assert decide(k, n) == expected


@pytest.mark.parametrize(("n", "share", "power"), [(30, 0.95, 0.81), (30, 0.98, 0.98), (50, 0.95, 0.96)])
def test_power_of_the_count(n: int, share: float, power: float) -> None:
    least, _ = needed(n)
    assert least is not None
    assert stats.binom.sf(least - 1, n, share) == pytest.approx(power, abs=0.005)


@given(st.integers(1, 200), st.data())
def test_bounds_are_those_of_the_exact_test(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    low, high = success_bounds(k, n)
    peer = stats.binomtest(k, n, alternative="greater").proportion_ci(0.95, method="exact")
    assert low == pytest.approx(peer.low, abs=1e-12)
    peer = stats.binomtest(k, n, alternative="less").proportion_ci(0.95, method="exact")
    assert high == pytest.approx(peer.high, abs=1e-12)


@given(st.integers(2, 60), st.data())
def test_a_verdict_is_a_test_at_its_level(n: int, data: st.DataObject) -> None:
    """Pass and fail are what the binomial tails say, in whole numbers, and with p-values that agree."""
    k = data.draw(st.integers(0, n))
    weights = [math.comb(n, j) * 4**j for j in range(n + 1)]  # of 5^n, at a share of 4/5
    at_least, at_most = Fraction(sum(weights[k:]), 5**n), Fraction(sum(weights[: k + 1]), 5**n)
    expected = "pass" if at_least <= Fraction(1, 20) else "fail" if at_most < Fraction(1, 20) else "inconclusive"
    assert decide(k, n) == expected
    erm, oracle = np.full(n, 2.0) + np.arange(n) / 100, np.ones(n)
    found = judge(np.where(np.arange(n) < k, oracle, erm), erm, oracle)
    assert found.successes == k
    assert math.exp(found.log_p_pass) == pytest.approx(float(at_least), rel=1e-9)
    assert math.exp(found.log_p_fail) == pytest.approx(float(at_most), rel=1e-9)
    assert found.outcome == expected


@given(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=15), st.lists(numbers, min_size=1, max_size=20))
@example([(1.0, 0.0), (2.0, 0.0), (2.0, 0.0)], [0.0, 7.0])
def test_fiellers_set_is_what_the_t_test_keeps(pairs: list[tuple[float, float]], ratios: list[float]) -> None:
    x, y = np.array(pairs).T
    found = ratio_of_means(x, y)
    for rho in [*ratios, 0.0, 1.0]:
        contrast = x - rho * y
        spread = contrast.std(ddof=1)
        # nothing is told where the contrast has no spread but rounding, and beside the boundary
        assume(spread > 1e-6 * (1 + np.abs(contrast).max()))
        t = abs(contrast.mean()) / (spread / math.sqrt(len(x)))
        edge = stats.t.ppf(0.975, len(x) - 1)
        if abs(t - edge) > 1e-6 * edge:
            assert (rho in found) == (t < edge), (rho, t, edge, found)


def test_fiellers_set_in_its_three_forms() -> None:
    certain = ratio_of_means([1.0, 1.1, 0.9], [2.0, 2.1, 1.9])
    assert certain.kind == "between"
    assert certain.low < 0.5 < certain.high
    beside = ratio_of_means([1.0, 1.2, 1.1, 0.9], [0.3, -0.3, 0.2, -0.1])  # the lower mean may have either sign
    assert beside.kind == "outside"
    assert 0.0 not in beside
    assert beside.estimate in beside
    assert 1e9 in beside
    nothing = ratio_of_means([1.0, -1.0, 0.5], [1.0, -1.1, 0.3])
    assert nothing.kind == "all"
    assert all(rho in nothing for rho in (-1e9, 0.0, 1e9))
    assert nothing.to_dict()["low"] is None
    infinite = ratio_of_means([1.0, 2.0, 2.0], np.zeros(3))  # the upper mean differs from 0
    assert (infinite.kind, infinite.bounds()) == ("outside", "[none that is finite]")
    assert not any(rho in infinite for rho in (-1e300, 0.0, 1e300))
    assert ratio_of_means([1.0, -2.0, 2.0], np.zeros(3)).kind == ratio_of_means(np.zeros(3), np.zeros(3)).kind == "all"


def test_a_ratio_of_something_to_itself_is_one() -> None:
    gap = np.random.default_rng(0).normal(3, 1, 40)
    found = ratio_of_means(gap, gap)
    assert (found.low, found.estimate, found.high) == pytest.approx((1, 1, 1), abs=1e-7)
    found = ratio_of_means(np.zeros(40), gap)
    assert (found.low, found.estimate, found.high) == (0, 0, 0)


@given(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=10), st.integers(-40, 40))
def test_units_do_not_matter_to_a_ratio(pairs: list[tuple[float, float]], power: int) -> None:
    x, y = np.array(pairs).T
    found, scaled = ratio_of_means(x, y), ratio_of_means(x * 2.0**power, y * 2.0**power)
    assert (found.low, found.high, found.kind) == (scaled.low, scaled.high, scaled.kind)


def test_fiellers_set_holds_the_ratio_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(2000):
        y = rng.normal(1.0, 1.0, 12)
        x = 0.3 * y + rng.normal(0, 0.5, 12)
        held += 0.3 in ratio_of_means(x, y)
    assert 0.935 < held / 2000 < 0.965


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=10))
def test_one_sided_ranks_are_the_count_of_all_signs(d: list[int]) -> None:
    values = np.array(d, dtype=float)
    moved = values[values != 0]
    ranks = stats.rankdata(np.abs(moved))
    won = ranks[moved > 0].sum()
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s) for signs in itertools.product((0, 1), repeat=len(ranks))
    ]
    expected = np.mean([total <= won for total in sums])
    assert math.exp(log_p_lower(values)) == pytest.approx(expected)


def test_a_diverged_replicate_has_the_largest_rank() -> None:
    d = np.array([-1.0, -2.0, -3.0, np.inf, -0.5])
    assert math.exp(log_p_lower(d)) == pytest.approx(stats.wilcoxon([-1, -2, -3, 9, -0.5], alternative="less").pvalue)


@given(st.integers(0, 2**32 - 1), st.integers(6, 14))
def test_the_interval_of_hodges_and_lehmann_is_what_the_test_keeps(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    d = rng.normal(0.5, 1.0, n)  # no ties
    found = hodges_lehmann(d)
    means = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(d.tolist(), 2)]
    assert found.estimate == pytest.approx(np.median(means))
    for shift in rng.uniform(-2, 3, 20):
        assert (shift in found) == (stats.wilcoxon(d - shift, method="exact").pvalue > 0.05)


def test_an_interval_of_five_differences_has_no_end() -> None:
    found = hodges_lehmann(np.arange(1.0, 6.0))
    assert (found.low, found.high) == (-math.inf, math.inf)
    with pytest.raises(ValueError, match="at least one difference"):
        hodges_lehmann(np.array([]))


def test_long_intervals_are_near_the_exact_ones() -> None:
    rng = np.random.default_rng(0)
    held = sum(0.0 in hodges_lehmann(rng.normal(size=80)) for _ in range(1000))
    assert 0.93 < held / 1000 < 0.97


RNG = np.random.default_rng(5)
ERM, ORACLE = RNG.uniform(12.0, 15.0, 50), 10.43 + RNG.normal(0, 0.01, 50)
OPTIMUM = np.full(50, 10.4333)


def test_erm_fails_and_the_oracle_passes() -> None:
    erm = judge(ERM, ERM, ORACLE, OPTIMUM)
    assert (erm.outcome, erm.successes, erm.log_p_better) == ("fail", 0, 0.0)
    assert erm.ratio.estimate == 1
    oracle = judge(ORACLE, ERM, ORACLE, OPTIMUM)
    assert (oracle.outcome, oracle.successes) == ("pass", 50)
    assert oracle.ratio.estimate == 0
    assert math.exp(oracle.log_p_better) < 1e-9


def test_better_than_erm_is_another_question_than_solved() -> None:
    found = judge(ORACLE + 0.2 * (ERM - ORACLE), ERM, ORACLE, OPTIMUM)
    assert found.outcome == "fail"
    assert found.ratio.estimate == pytest.approx(0.2)
    assert math.exp(found.log_p_better) < 1e-12
    assert found.improvement.high < 0


def test_a_problem_without_a_gap_is_void() -> None:
    found = judge(ORACLE, ORACLE + RNG.normal(0, 0.01, 50), ORACLE, OPTIMUM)
    assert found.outcome == "void"
    assert "not worse" in found.reason
    found = judge(ORACLE, ORACLE, ORACLE, OPTIMUM)  # d_spu = 0
    assert found.outcome == "void"


def test_an_oracle_that_is_none_makes_it_void() -> None:
    found = judge(ORACLE, ERM, ORACLE, OPTIMUM - 1.0)
    assert found.outcome == "void"
    assert "off the invariant optimum by" in found.reason
    assert judge(ORACLE, ERM, ORACLE).outcome == "pass"  # nothing is known of an optimum


def test_an_oracle_or_erm_that_diverged_makes_it_void() -> None:
    lost = np.where(np.arange(50) == 3, np.nan, 0.0)
    for erm, oracle in ((ERM + lost, ORACLE), (ERM, ORACLE + lost)):
        found = judge(ORACLE, erm, oracle)
        assert found.outcome == "void"
        assert "1 of 50" in found.reason
        assert None not in (found.to_dict()["rho"], found.to_dict()["p_better"])


def test_diverged_replicates_are_failures() -> None:
    candidate = ORACLE.copy()
    candidate[:5] = np.nan
    found = judge(candidate, ERM, ORACLE, OPTIMUM)
    assert (found.outcome, found.successes, found.n_diverged) == ("pass", 45, 5)
    candidate[:8] = np.nan
    found = judge(candidate, ERM, ORACLE, OPTIMUM)
    assert (found.outcome, found.successes) == ("inconclusive", 42)
    candidate[:16] = np.nan
    found = judge(candidate, ERM, ORACLE, OPTIMUM)
    assert (found.outcome, found.successes) == ("diverged", 34)
    assert found.ratio.estimate == 0
    assert found.ratio.n == 34
    constant = np.arange(50) < 16
    assert judge(ORACLE, ERM, ORACLE, OPTIMUM, diverged=constant).outcome == "diverged"
    assert judge(np.full(50, np.nan), ERM, ORACLE).to_dict()["rho"] is None


def test_the_boundary_counts_as_solved() -> None:
    erm, oracle = np.full(30, 3.0) + np.arange(30) / 64, np.full(30, 1.0)
    assert judge(oracle + 0.5 * (erm - oracle), erm, oracle, tolerance=0.5).successes == 30
    assert judge(oracle + 0.5 * (erm - oracle) + 2.0**-40, erm, oracle, tolerance=0.5).successes == 0


def test_the_count_rarely_passes_what_is_at_the_boundary() -> None:
    """Two heaps, one in five replicates unsolved: the t contrast would pass it far too often."""
    rng = np.random.default_rng(2)
    passed = 0
    for _ in range(400):
        erm, oracle = 0.45 + rng.normal(0, 0.005, 50), np.zeros(50)
        passed += judge(np.where(rng.random(50) < 0.2, erm, oracle), erm, oracle).outcome == "pass"
    assert passed / 400 < 0.08


def test_a_t_test_passes_what_is_at_its_boundary_more_than_twice_as_often_as_it_says() -> None:
    """One in ten replicates unsolved, so that the mean distance is a tenth of the gap: why verdicts count."""
    rng = np.random.default_rng(3)
    runs, n = 4000, 30
    gap = 0.45 + rng.normal(0, 0.005, (runs, n))
    contrast = np.where(rng.random((runs, n)) < 0.1, gap, 0.0) - 0.1 * gap
    t = contrast.mean(axis=1) / (contrast.std(axis=1, ddof=1) / math.sqrt(n))
    passed = int((t < stats.t.ppf(0.05, n - 1)).sum())
    assert passed / runs > 0.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidate": ORACLE[:-1]}, "candidate must have as many replicates as erm: 50; got 49"),
        ({"oracle": ORACLE[:-1]}, "oracle must have as many replicates as erm: 50; got 49"),
        ({"optimum": OPTIMUM[:-1]}, "optimum must have as many replicates as erm: 50; got 49"),
        ({"candidate": [1.0], "erm": [2.0], "oracle": [1.0], "optimum": None}, "at least 2 replicates; got 1"),
        ({"tolerance": 0.0}, "tolerance must lie strictly between 0 and 1; got 0"),
        ({"required": 1.0}, "required must lie strictly between 0 and 1; got 1"),
        ({"alpha": 2.0}, "alpha must lie strictly between 0 and 1; got 2"),
        ({"diverged": np.zeros(50)}, r"diverged must be booleans, shape \(50,\)"),
        ({"candidate": ORACLE[:, None]}, r"candidate must hold one risk a replicate, shape \(R,\)"),
    ],
)
def test_what_cannot_be_judged_is_named(change: dict[str, object], message: str) -> None:
    arguments = {"candidate": ORACLE, "erm": ERM, "oracle": ORACLE, "optimum": OPTIMUM} | change
    with pytest.raises(ValueError, match=message):
        judge(**arguments)  # type: ignore[arg-type]


def test_texts_are_no_risks() -> None:
    with pytest.raises(TypeError, match="candidate cannot be read as numbers"):
        judge(["a"] * 50, ERM, ORACLE)
    with pytest.raises(TypeError, match="k must be an integer"):
        success_bounds(1.0, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="k must lie between 0 and n=3; got 4"):
        success_bounds(4, 3)


@pytest.mark.parametrize("lost", [np.inf, -np.inf, np.nan])
def test_companions_of_infinite_risk_make_it_void(lost: float) -> None:
    for erm, oracle in ((np.append(ERM[1:], lost), ORACLE), (ERM, np.append(ORACLE[1:], lost))):
        found = judge(ORACLE, erm, oracle)
        assert found.outcome == "void"
        assert "ERM or the oracle diverged in 1 of 50 replicates" in found.summary()


@pytest.mark.parametrize("share", [0.0, 1.0, 7, float("nan")])
def test_levels_and_shares_are_looked_at(share: float) -> None:
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1"):
        success_bounds(1, 2, alpha=share)
    with pytest.raises(ValueError, match="required must lie strictly between 0 and 1"):
        needed(20, required=share)
    with pytest.raises(TypeError, match="n must be an integer"):
        needed(2.5)  # type: ignore[arg-type]


def test_results_are_shown() -> None:
    found = judge(ORACLE, ERM, ORACLE, OPTIMUM)
    assert repr(found).startswith("Verdict(pass: 50 of 50 solved, rho 0.000 [0.000, 0.000]")
    assert "<b>pass</b>" in found._repr_html_()
    assert found.to_dict()["verdict"] == "pass"
    assert "Fieller" in found.ratio._repr_html_()
