"""Verdicts: what runs say together, on which side of the bar they lie, and everything that is said beside it."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from known_models import Chance, Constant, Memoriser, NoPoison, Oracle, Scorer, Size
from scipy import stats

import milfast as mf
from milfast import Bags
from milfast.checks import BagRecipe, CheckResult, Component, Draw, codes, runner
from milfast.checks.adapters import Subject
from milfast.checks.catalogue import registry
from milfast.checks.estimate import Estimate, Pooled
from milfast.checks.together import read_together, stands
from milfast.checks.verdict import ALLOWED, MARGIN, Run, judge, paper_rule
from milfast.uncertainty import auc_interval, mean_interval, proportion_interval

NAN = math.nan


def auc_of(value: float, n: int = 400, variance: float | None = None) -> Estimate:
    """An AUC of n bags of each class, with the variance of about that many."""
    return Estimate(value, value * (1 - value) / n if variance is None else variance, 2 * n, n, n)


def share_of(broken: int, n: int) -> Estimate:
    return Estimate.of_flags(np.arange(n) < broken)


def run_of(test: float | None = 0.9, *, fresh: float = 0.9, run: int = 0, n: int = 400, **more: Any) -> Run:
    """One run of the presence check, or of what `more` says."""
    values: dict[str, Any] = {
        "model": "made",
        "check": "presence",
        "recipe": "strict",
        "claims": None,
        "train": auc_of(0.95),
        "fresh": auc_of(fresh, n),
        "test": None if test is None else auc_of(test, n),
        "strata": {},
        "worst": None,
        "worst_auc": None,
        "oracle_auc": None if test is None else 1.0,
        "size_auc": None if test is None else 0.5,
        "size_correlation": 0.0,
        "ceilings": {},
        "n_train": 100,
        "n_test": 2 * n,
        "seed": 0,
        "run": run,
        "seconds": 0.1,
    }
    return Run(**(values | more))


def result_of(*tests: float, level: float = 0.95, looks: int = 1, **more: Any) -> CheckResult:
    return CheckResult.of([run_of(t, run=i, **more) for i, t in enumerate(tests)], level=level, looks=looks)


def law_of(*broken: dict[str, Estimate], check: str = "monotonicity", **more: Any) -> CheckResult:
    runs = [run_of(None, check=check, strata=strata, run=i, **more) for i, strata in enumerate(broken)]
    return CheckResult.of(runs, level=0.95)


# ---------------------------------------------------------------- estimates of runs

sizes = st.integers(10, 400)


@st.composite
def aucs(draw: st.DrawFn) -> Estimate:
    """The AUC of random scores with ties."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_pos, n_neg = draw(sizes), draw(sizes)
    labels = np.repeat([1, 0], [n_pos, n_neg])
    raised = draw(st.sampled_from([-60.0, -1.0, -0.2, 0.0, 0.2, 1.0, 60.0]))
    return Estimate.of_scores(np.round(generator.normal(size=n_pos + n_neg) + raised * labels, 1), labels)


@st.composite
def shares(draw: st.DrawFn) -> Estimate:
    n = draw(st.integers(1, 500))
    return share_of(draw(st.sampled_from([0, 1, n // 2, n])), n)


runs_of_one_sort = st.one_of(st.lists(aucs(), min_size=1, max_size=6), st.lists(shares(), min_size=1, max_size=6))
all_alike = st.builds(
    lambda value, ns: [auc_of(value, n, 0.0) for n in ns],
    st.sampled_from([0.0, 1.0]),
    st.lists(sizes, min_size=1, max_size=6),
)


@given(st.one_of(runs_of_one_sort, all_alike), st.floats(0.005, 0.995), st.floats(0.0005, 0.3))
def test_a_p_value_is_below_the_tail_where_the_bound_of_the_interval_has_left_the_value(
    estimates: list[Estimate], value: float, tail: float
) -> None:
    pooled = Pooled(estimates)
    interval = pooled.interval(1 - 2 * tail)
    assume(min(abs(interval.low - value), abs(interval.high - value)) > 1e-9)
    assert (pooled.p_above(value) < tail) == (interval.low > value)
    assert (pooled.p_below(value) < tail) == (interval.high < value)
    assert pooled.p_above(value) + pooled.p_below(value) == pytest.approx(1)


@given(st.one_of(runs_of_one_sort, all_alike), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_p_values_fall_as_the_value_moves_away(estimates: list[Estimate], one: float, other: float) -> None:
    pooled = Pooled(estimates)
    low, high = sorted((one, other))
    assert pooled.p_above(low) <= pooled.p_above(high) + 1e-12
    assert pooled.p_below(high) <= pooled.p_below(low) + 1e-12


@given(aucs(), shares(), st.floats(0.5, 0.999))
def test_one_run_keeps_the_interval_of_its_scores_or_flags(auc: Estimate, share: Estimate, level: float) -> None:
    assert Pooled([auc]).interval(level) == auc.interval(level)
    wilson = proportion_interval(round(share.value * share.n), share.n, level=level)
    assert Pooled([share]).interval(level) == wilson


@given(st.integers(0, 2**32), st.floats(0.5, 0.999))
def test_the_interval_of_scores_is_that_of_auc_interval(seed: int, level: float) -> None:
    generator = np.random.default_rng(seed)
    scores, labels = generator.normal(size=60), np.arange(60) % 3 == 0
    assert Estimate.of_scores(scores, labels).interval(level) == auc_interval(scores, labels, level=level)


@pytest.mark.parametrize("values", [(0.7, 0.8, 0.9), (0.0, 1.0, 1.0), (0.25, 0.75)])
def test_several_runs_give_the_t_interval_of_their_mean(values: tuple[float, ...]) -> None:
    # bags without number: their noise is nothing beside the spread of the runs
    pooled = Pooled([auc_of(v, 10**9) for v in values])
    assert pooled.interval(0.9) == mean_interval(values, level=0.9, bounds=(0.0, 1.0))
    got = stats.ttest_1samp(values, 0.3, alternative="greater").pvalue
    assert pooled.p_above(0.3) == pytest.approx(got, rel=1e-6)


def test_runs_that_agree_by_chance_do_not_make_a_point_of_an_interval() -> None:
    one = Estimate.of_scores([0.0] * 199 + [1.0], [0, 1] * 100)  # a single bag is flagged
    alone, both = one.interval(0.95), Pooled([one, one]).interval(0.95)
    assert both.low < 0.5 < both.high
    assert both.half_width > alone.half_width
    # the t quantile of one degree of freedom times the noise of the bags
    assert both.half_width == pytest.approx(min(stats.t.ppf(0.975, 1) * math.sqrt(one.variance / 2), 0.5), rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_runs_that_are_all_perfect_or_all_upside_down_give_the_wilson_bound_of_all_their_pairs(value: float) -> None:
    pooled = Pooled([Estimate(value, 0.0, p + n, p, n) for p, n in ((30, 20), (10, 50))])
    got = pooled.interval(0.9)
    bound = proportion_interval(round(30 * value), 30, level=0.9)
    assert (got.estimate, got.low, got.high, got.n, got.unit) == (value, bound.low, bound.high, 2, "runs")
    assert got.high - got.low > 0.05  # the t interval would have no width at all


@given(
    st.lists(st.floats(0.3, 0.9), min_size=2, max_size=8),
    st.sampled_from([0.5, 0.45]),
    st.sampled_from([0.025, 0.004, 0.1]),
)
def test_runs_to_reach_is_the_smallest_number_that_does_it(values: list[float], bar: float, tail: float) -> None:
    pooled = Pooled([auc_of(v, 200) for v in values])
    found = pooled.runs_to_reach(bar, tail, most=2000)

    def clear(runs: int) -> bool:
        half = stats.t.ppf(1 - tail, runs - 1) * pooled.deviation / math.sqrt(runs)
        return bool(half < abs(pooled.mean - bar))

    if found is None:
        assert not clear(2000)
    else:
        assert found >= 2
        assert clear(found)
        assert found == 2 or not clear(found - 1)


def test_what_is_undefined_never_decides() -> None:
    nothing = Estimate.of_flags(np.zeros(0, dtype=bool))
    one_class = Estimate(NAN, NAN, 10, 10, 0)
    for pooled in (Pooled([nothing]), Pooled([nothing, share_of(0, 9)]), Pooled([one_class]), Pooled([one_class] * 3)):
        assert not pooled.defined
        assert pooled.p_above(0.5) == pooled.p_below(0.5) == 1.0
        assert pooled.runs_to_reach(0.5, 0.025) is None
        assert math.isnan(pooled.interval(0.95).low)
    # an AUC that cannot be judged, from one bag of a class
    assert Pooled([Estimate.of_scores([3.0, 1, 2, 1, 2], [1, 0, 0, 0, 0])]).interval(0.95).method.startswith("undef")
    assert result_of(0.9, 0.9, 0.9, fresh=NAN).verdict == "not-learned"
    for undefined in (one_class, Estimate(NAN, NAN, 0, 0, 0)):
        runs = [dataclasses.replace(run_of(run=i), test=undefined) for i in range(5)]
        assert CheckResult.of(runs, level=0.95).verdict == "inconclusive"


@given(runs_of_one_sort)
def test_estimates_survive_the_way_through_json(estimates: list[Estimate]) -> None:
    for estimate in [*estimates, Estimate.of_flags(np.zeros(0, dtype=bool))]:
        again = Estimate.from_dict(json.loads(json.dumps(estimate.to_dict(), allow_nan=False)))
        assert repr(again) == repr(estimate)  # NaN is not equal to itself, but reads the same


def test_runs_survive_the_way_through_json() -> None:
    for run in (
        run_of(0.4, worst="a", worst_auc=auc_of(0.3), strata={"a": auc_of(0.3), "b": auc_of(0.5)}, ceilings={"x": 0.9}),
        run_of(None, check="permutation", strata={"negative bags": Estimate.of_flags(np.zeros(0, dtype=bool))}),
    ):
        again = Run.from_dict(json.loads(json.dumps(run.to_dict(), allow_nan=False)))
        assert repr(again) == repr(run)


# ---------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("learned", "better", "worse", "verdict"),
    [
        (0.001, 0.001, 0.999, "pass"),
        (0.001, 0.999, 0.001, "fail"),
        (0.001, 0.4, 0.6, "inconclusive"),
        (0.001, 0.025, 0.975, "inconclusive"),
        (0.001, 0.975, 0.025, "inconclusive"),
        (0.001, 1.0, 1.0, "inconclusive"),
        (0.001, 0.001, 0.001, "fail"),  # several quantities: one of them below the bar is enough
        *[(p, b, w, "not-learned") for p in (0.025, 0.5, 1.0) for b, w in ((0.001, 0.999), (0.999, 0.001), (1.0, 1.0))],
        (NAN, 0.001, 0.999, "not-learned"),
        (0.001, NAN, NAN, "inconclusive"),
    ],
)
def test_the_verdict_follows_from_three_p_values(learned: float, better: float, worse: float, verdict: str) -> None:
    assert judge(learned, better, worse, tail=0.025) == verdict


@pytest.mark.parametrize(
    ("train", "test", "verdict"),
    [(0.9, 0.1, "fail"), (0.9, 0.5, "pass"), (0.5, 0.1, "pass"), (0.51, 0.49, "fail"), (0.4, 0.9, "pass")],
)
def test_the_papers_rule_wants_training_above_and_testing_below_one_half(
    train: float, test: float, verdict: str
) -> None:
    assert paper_rule(train, test) == verdict


@pytest.mark.parametrize(
    ("fresh", "tests", "verdict"),
    [
        (0.9, (0.8,), "pass"),
        (0.9, (0.3,), "fail"),
        (0.9, (0.52,), "inconclusive"),
        (0.51, (0.8,), "not-learned"),
        (0.2, (0.2,), "not-learned"),
        (0.9, (0.8, 0.7, 0.8), "pass"),
        (0.9, (0.3, 0.2, 0.3), "fail"),
        (0.9, (0.9, 0.1, 0.9), "inconclusive"),
        (0.9, (0.0, 0.0), "fail"),
        (0.9, (1.0, 1.0), "pass"),
        (1.0, (1.0,), "pass"),
    ],
)
@pytest.mark.parametrize("looks", [1, 2])
def test_the_verdict_is_which_side_of_the_bar_the_intervals_lie_on(
    fresh: float, tests: tuple[float, ...], verdict: str, looks: int
) -> None:
    result = result_of(*tests, fresh=fresh, looks=looks)
    assert result.verdict == verdict
    assert result.test_auc is not None
    assert verdict != "pass" or result.test_auc.low > 0.5
    assert verdict != "fail" or result.test_auc.high < 0.5
    assert (verdict == "not-learned") == (not result.fresh_auc.low > 0.5)
    tail = 0.025 / looks
    assert (result.p_value < 0.025) == (verdict in ("pass", "fail"))  # the looks are in it
    assert result.test_auc.level == pytest.approx(1 - 2 * tail)
    assert result.level == 0.95


def test_more_looks_want_more_evidence() -> None:
    tests = (0.8, 0.7, 0.8, 0.55)
    verdicts = [result_of(*tests, looks=looks).verdict for looks in (1, 10, 100)]
    assert verdicts == ["pass", "inconclusive", "inconclusive"]
    widths = [result_of(*tests, looks=looks).fresh_auc.half_width for looks in (1, 10, 100)]
    assert widths == sorted(widths)
    assert widths[0] < widths[2]


def stratified(worst: float, test: float = 0.5, **more: Any) -> CheckResult:
    runs = [run_of(test, run=i, worst="low", worst_auc=auc_of(worst), **more) for i in range(5)]
    return CheckResult.of(runs, level=0.95)


def test_a_worst_stratum_below_the_bar_fails_although_the_mean_is_not() -> None:
    result = stratified(0.02)
    assert (result.verdict, result.worst_stratum) == ("fail", "low")
    assert "worst-stratum" in result.flags
    assert "ranks negative bags that hold low (by run) above positive ones" in result.reason
    # the mean alone would have said nothing, or even passed
    assert result_of(*[0.5] * 5).verdict == "inconclusive"
    assert stratified(0.02, test=0.9).verdict == "fail"
    assert result_of(*[0.9] * 5).verdict == "pass"
    # a pass needs both, and a mean below the bar is a fail of all negatives
    assert stratified(0.8, test=0.9).verdict == "pass"
    assert stratified(0.5, test=0.9).verdict == "inconclusive"
    assert "worst-stratum" not in stratified(0.02, test=0.1).flags


def test_two_quantities_share_the_error_of_a_fail() -> None:
    values = (0.3, 0.48, 0.35, 0.45, 0.42)
    both = [run_of(0.9, run=i, n=4000, worst="a", worst_auc=auc_of(v, 4000)) for i, v in enumerate(values)]
    p = stats.ttest_1samp(values, 0.5, alternative="less").pvalue
    for level in (1 - 2 * p * 1.9, 1 - 2 * p * 2.1):
        verdict = CheckResult.of(both, level=level).verdict
        assert verdict == ("fail" if 2 * p < (1 - level) / 2 else "inconclusive")
    assert CheckResult.of(both, level=0.9).p_value == pytest.approx(2 * p, rel=1e-3)


class Sorted(Scorer):
    """Knows one of the two concepts of false-frequency."""

    def decision_function(self, bags: Bags) -> Any:
        return [(bag.mean(axis=1) > 1.4).any() for bag in bags]


def test_a_model_that_knows_one_concept_fails_by_the_stratum_that_holds_it() -> None:
    more: dict[str, Any] = {"recipe": "strict", "n_train": 20, "n_test": 600, "n_runs": 5, "random_state": 0}
    [result] = mf.check_model(Sorted(), checks="false-frequency", **more)
    assert result.test_auc is not None
    assert result.worst_auc is not None
    # half of the negatives do not hold it (AUC 1) and half do (AUC 0.5): nothing below the bar
    assert result.test_auc.estimate == pytest.approx(0.75, abs=0.02)
    assert (result.verdict, result.worst_stratum) == ("inconclusive", "high")
    assert result.worst_auc.estimate == pytest.approx(0.5, abs=0.02)

    class Loud(Sorted):
        def decision_function(self, bags: Bags) -> Any:
            # the sum over what it knows: forty of them outweigh the few of positive bags
            return [np.maximum(bag.mean(axis=1) - 1.4, 0).sum() for bag in bags]

    [loud] = mf.check_model(Loud(), checks="false-frequency", **more)
    assert (loud.verdict, loud.worst_stratum) == ("fail", "high")
    assert loud.worst_auc is not None
    assert loud.worst_auc.estimate == 0.0
    assert "worst-stratum" in loud.flags


def test_the_worst_stratum_is_not_made_worse_by_being_chosen() -> None:
    """Scores that know nothing: the chosen stratum has a mean AUC of one half on the bags it was not chosen by."""
    more: dict[str, Any] = {"recipe": "strict", "n_features": 1, "n_train": 10, "n_test": 80, "n_runs": 600}
    [result] = mf.check_model(Chance(), checks="false-frequency", random_state=3, **more)
    found = np.array([run.worst_auc.value for run in result.runs if run.worst_auc is not None])
    assert len(found) == 600
    standard_error = found.std(ddof=1) / math.sqrt(len(found))
    assert abs(found.mean() - 0.5) < 4 * standard_error
    # what is avoided: the smaller of both strata lies far below
    least = np.array([min(e.value for e in run.strata.values()) for run in result.runs])
    assert least.mean() < 0.5 - 4 * standard_error


def test_laws_are_judged_by_their_worst_sort_of_bags() -> None:
    none, few, many = share_of(0, 2000), share_of(19, 2000), share_of(600, 2000)
    assert law_of({"a": none, "b": none}).verdict == "pass"
    failed = law_of({"a": none, "b": many})
    assert (failed.verdict, failed.worst_stratum) == ("fail", "b")
    assert failed.broken is not None
    assert failed.broken.estimate == 0.3
    assert "30.0 % of the bags tried (b) break the law" in failed.reason
    opened = law_of({"a": none, "b": few})
    assert (opened.verdict, opened.worst_stratum) == ("inconclusive", "b")
    assert f"where {100 * ALLOWED:g} % would be allowed" in opened.reason
    assert law_of({"a": none, "b": many}, fresh=0.5).verdict == "not-learned"
    # a model that recognises no bag has nothing that could break: no evidence against it, and none for it
    nothing = law_of({})
    assert (nothing.verdict, nothing.worst_stratum, nothing.broken) == ("inconclusive", None, None)
    assert failed.test_auc is failed.worst_auc is failed.paper_verdict is failed.oracle_auc is None
    # runs may differ in the sorts they could try; those that all runs have count
    assert law_of({"a": none, "b": many}, {"a": none}).worst_stratum == "a"


# ---------------------------------------------------------------- how much more would tell


def test_as_many_runs_as_are_said_to_be_needed_are_enough() -> None:
    asked = 0
    for tests in ((0.9, 0.3, 0.7, 0.4, 0.8), (0.1, 0.7, 0.3, 0.6, 0.2), (0.55, 0.5, 0.52, 0.49, 0.53)):
        result = result_of(*tests)
        assert result.verdict == "inconclusive"
        assert result.needed_runs is not None
        assert f"about {result.needed_runs:,} runs in all would tell" in result.reason
        # mean and spread as they are: the same figures again and again
        more = math.ceil(result.needed_runs / len(tests))
        assert result_of(*tests * more).verdict in ("pass", "fail")
        fewer = (result.needed_runs * 4 // 5) // len(tests)
        if fewer > 1:
            asked += 1
            assert result_of(*tests * fewer).verdict == "inconclusive"
    assert asked


@pytest.mark.parametrize("laws", [False, True])
def test_the_side_that_is_nearer_to_a_verdict_says_how_many_runs_are_needed(laws: bool) -> None:
    """Two quantities: what fails first is enough for a fail, at half the error each; a pass needs both."""

    def repeated(times: int, one: list[float], other: list[float]) -> CheckResult:
        runs = []
        for i in range(5 * times):
            a, b = one[i % 5], other[i % 5]
            if laws:
                strata = {"a": auc_like(a), "b": auc_like(b)}
                runs.append(run_of(None, run=i, check="monotonicity", strata=strata))
            else:
                runs.append(run_of(a, run=i, n=10**6, worst="w", worst_auc=auc_of(b, 10**6)))
        return CheckResult.of(runs, level=0.95)

    def auc_like(value: float) -> Estimate:
        # bar 0.01 instead of 0.5, and above it is bad
        return Estimate((1 - value) / 50, 1e-12, 10**6)

    good, open_good = [0.9, 0.8, 0.9, 0.8, 0.9], [0.9, 0.3, 0.7, 0.4, 0.8]
    bad, hardly = [0.1, 0.7, 0.3, 0.6, 0.2], [0.51, 0.505, 0.55, 0.49, 0.46]
    for one, other, verdict in ((good, open_good, "pass"), (good, bad, "fail"), (hardly, bad, "fail")):
        result = repeated(1, one, other)
        assert result.verdict == "inconclusive"
        assert result.needed_runs is not None
        assert repeated(math.ceil(result.needed_runs / 5), one, other).verdict == verdict
        assert repeated(max(1, (result.needed_runs * 3 // 4) // 5), one, other).verdict == "inconclusive"


def test_runs_for_a_fail_are_counted_with_the_error_that_each_quantity_has_there() -> None:
    bad = [auc_of(v, 10**6) for v in (0.1, 0.7, 0.3, 0.6, 0.2)]
    runs = [run_of(0.9, run=i, n=10**6, worst="w", worst_auc=estimate) for i, estimate in enumerate(bad)]
    needed = CheckResult.of(runs, level=0.95).needed_runs
    assert needed == Pooled(bad).runs_to_reach(0.5, 0.0125) != Pooled(bad).runs_to_reach(0.5, 0.025)


def test_as_many_test_bags_as_are_said_to_be_needed_are_enough_for_one_fit() -> None:
    result = result_of(0.53, n=200)
    assert (result.verdict, result.n_test) == ("inconclusive", 400)
    assert result.needed_test is not None
    assert result.needed_runs is None
    assert f"about {result.needed_test:,} bags of each sort would tell for this fit" in result.reason
    assert result_of(0.53, n=math.ceil(1.05 * result.needed_test / 2)).verdict == "pass"
    assert result_of(0.53, n=math.ceil(0.9 * result.needed_test / 2)).verdict == "inconclusive"


def test_what_no_number_of_runs_would_settle_is_said_to_be_so() -> None:
    assert result_of(0.5).needed_test is None
    level = result_of(0.5, 0.5, 0.5)
    assert level.needed_runs is None
    assert "more runs are not likely to tell" in level.reason
    for fresh in (0.5, 0.48):  # below chance: more of the same never shows that something was learned
        known = result_of(0.9, 0.9, 0.9, fresh=fresh)
        assert (known.verdict, known.needed_runs) == ("not-learned", None)
        assert result_of(0.9, fresh=fresh).needed_test is None
    assert result_of(0.9, 0.9, 0.9, fresh=0.51).needed_runs is not None
    assert result_of(0.9, fresh=0.51).needed_test is not None
    for settled in (result_of(0.9), result_of(0.1), result_of(0.9, 0.9)):
        assert (settled.needed_runs, settled.needed_test) == (None, None)


def test_a_law_is_tried_on_a_fixed_number_of_bags_so_that_runs_are_what_is_needed() -> None:
    result = law_of({"a": share_of(14, 2000)})
    assert (result.verdict, result.needed_test) == ("inconclusive", None)
    assert result.needed_runs is not None
    assert law_of(*[{"a": share_of(14, 2000)}] * result.needed_runs).verdict == "pass"


def test_a_verdict_that_runs_hardly_move_is_settled() -> None:
    assert result_of(0.9).settled
    assert result_of(0.1).settled
    assert not result_of(0.9, 0.1, 0.9).settled
    assert result_of(*[0.5, 0.501, 0.499, 0.5, 0.5], n=10**6).settled  # within the margin of one half
    assert not result_of(*[0.5, 0.501, 0.499, 0.5, 0.5], n=100).settled
    assert result_of(0.9, 0.9, fresh=0.3).settled  # not learned, and it never will be
    assert not result_of(0.9, 0.9, fresh=0.51).settled
    for sign in (1, -1):  # hardly open on one side, wide open on the other
        leaning = result_of(*[0.5 + sign * d for d in (0.0, 0.1, 0.05, 0.02, 0.07)], n=10**6)
        assert leaning.verdict == "inconclusive"
        assert leaning.test_auc is not None
        assert (leaning.test_auc.low > 0.5 - MARGIN) or (leaning.test_auc.high < 0.5 + MARGIN)
        assert not leaning.settled


# ---------------------------------------------------------------- flags

MORE: dict[str, Any] = {"checks": "presence", "recipe": "strict", "n_train": 60, "n_test": 600, "random_state": 0}
PRESENCE = mf.checks.get("presence").recipe("strict")


class Weak(Scorer):
    """The true rule, with noise in training and more of it where the bait has moved."""

    def decision_function(self, bags: Bags) -> Any:
        generator = np.random.default_rng(0)
        shifted = np.minimum.reduceat(bags.instances.mean(axis=1), bags.offsets[:-1]) > -5
        truth = PRESENCE.oracle(bags) > 0
        # training negatives hold poison: where none of the untrue bags does, these are shifted ones
        noisy = 3.0 if (shifted & ~truth).any() else 0.3
        return truth + noisy * generator.normal(size=len(bags))


class SizeBound(Scorer):
    """The true rule within bags of a size, and the size above it."""

    def decision_function(self, bags: Bags) -> Any:
        return bags.sizes + 6.0 * (PRESENCE.oracle(bags) > 0)


class Flipped(Scorer):
    def decision_function(self, bags: Bags) -> Any:
        return -PRESENCE.oracle(bags)


class Memory(Memoriser):
    pass


def flags_of(model: Any, **more: Any) -> tuple[str, ...]:
    [result] = mf.check_model(model, **(MORE | more))
    return result.flags


def test_flags_are_earned_and_a_good_model_has_none() -> None:
    assert flags_of(Oracle(PRESENCE), n_runs=5) == ()
    assert flags_of(Oracle(PRESENCE)) == ("one-fit",)
    assert flags_of(Oracle(PRESENCE), n_runs=4) == ("few-runs",)
    weak = mf.check_model(Weak(), **(MORE | {"n_runs": 5, "n_test": 2000}))[0]
    assert weak.verdict == "pass"
    assert weak.flags == ("degraded", "below-oracle")
    assert flags_of(SizeBound(), n_runs=5, n_test=2000) == ("below-oracle", "size-cue")
    assert flags_of(Flipped(), n_runs=5) == ("upside-down",)
    assert flags_of(Memory(), n_runs=5) == ("memorised",)
    assert flags_of(NoPoison(), n_runs=5) == ("degraded", "below-oracle")
    assert flags_of(Constant(), n_runs=5) == ()
    assert "size-cue" in flags_of(Size(), recipe="paper", n_runs=5)


def test_every_flag_and_verdict_that_is_given_has_a_code() -> None:
    given_flags = {"degraded", "below-oracle", "size-cue", "worst-stratum", "outside-claim", "presence-failed"}
    given_flags |= {"memorised", "upside-down", "one-fit", "few-runs", "unstable", "padding"}
    assert set(codes.FLAGS) == given_flags
    assert set(codes.VERDICTS) == {"pass", "fail", "inconclusive", "not-learned"}
    for result in (result_of(0.9), result_of(0.1), result_of(0.5), result_of(0.9, fresh=0.5)):
        assert result.to_dict()["verdict_code"] == codes.VERDICTS[result.verdict]


@pytest.mark.parametrize(
    ("claims", "check", "outside"),
    [
        (None, "presence", False),
        (None, "false-frequency", False),
        (None, "correlated", True),
        ("standard", "presence", False),
        ("standard", "monotonicity", False),
        ("standard", "false-frequency", True),
        ("threshold", "presence", False),
        ("threshold", "threshold-poison", False),
        ("threshold", "correlated", True),
        ("correlated", "correlated", False),
        ("correlated", "permutation", True),
    ],
)
@pytest.mark.parametrize("test", [0.1, 0.9])
def test_a_check_is_held_against_a_model_only_where_it_claims_the_assumption(
    claims: str | None, check: str, outside: bool, test: float
) -> None:
    if check in mf.checks.names("laws"):
        result = law_of({"a": share_of(1000 if test < 0.5 else 0, 2000)}, check=check, claims=claims)
    else:
        result = result_of(test, check=check, claims=claims)
    assert result.verdict == ("fail" if test < 0.5 else "pass")
    assert (result.outside_claim, "outside-claim" in result.flags) == (outside, outside)
    assert ("not held against the model" in result.reason) == (outside and test < 0.5)
    if outside and test < 0.5:
        said = "does not claim what" if claims is None else f"claims the {claims} assumption and not what"
        assert f"which {said} this check tests" in result.reason


@pytest.mark.parametrize("claims", [["standard"], 1, "Standard"])
def test_whatever_is_no_claim_is_refused_with_those_that_are(claims: object) -> None:
    model = Size()
    model.claims = claims  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="claims must be one of 'standard', 'threshold', 'correlated', None; got"):
        Subject.of(model)


def test_a_claim_that_is_unknown_is_refused() -> None:
    model = Size()
    model.claims = "sets"  # type: ignore[attr-defined]
    message = r"Size\.claims must be one of 'standard', 'threshold', 'correlated', None; got 'sets'"
    with pytest.raises(ValueError, match=message):
        mf.check_model(model, **MORE)
    for claims in ("standard", "threshold", "correlated", None):
        model.claims = claims  # type: ignore[attr-defined]
        assert Subject.of(model).claims == claims
        assert mf.check_model(model, **MORE)[0].claims == claims
    assert Subject.of(Constant()).claims is None
    assert (Subject.of("mi-SVM").claims, Subject.of("NSK").claims) == ("standard", None)


def test_a_failure_names_what_was_learned_instead() -> None:
    for check in mf.checks.names():
        learned = mf.checks.get(check).about.learned
        law = check in mf.checks.names("laws")
        failed = law_of({"a": share_of(900, 2000)}, check=check) if law else result_of(0.1, check=check)
        assert failed.reason.startswith(f"learned instead: {learned}")
        assert failed.code == mf.checks.get(check).code
        passed = law_of({"a": share_of(0, 2000)}, check=check) if law else result_of(0.9, check=check)
        assert learned not in passed.reason
    own = result_of(0.1, check="mine", recipe="own")
    assert (own.code, own.assumption) == (codes.OWN_RECIPE, "standard")
    assert own.reason.startswith("learned instead: something that the MIL assumption rules out")


def test_label_swap_has_a_bar_of_its_own() -> None:
    assert [result_of(*[t] * 5, check="label-swap", n=10**5).verdict for t in (0.5, 0.46, 0.44, 0.0)] == [
        "pass",
        "pass",
        "fail",
        "fail",
    ]
    assert [result_of(*[t] * 5, check="correlated", n=10**5).verdict for t in (0.5, 0.54, 0.56)] == [
        "fail",
        "fail",
        "pass",
    ]


# ---------------------------------------------------------------- read together


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down, as a textbook words it: every hypothesis that is not better must be rejected first."""
    n = len(p_values)
    corrected = []
    for i, p in enumerate(p_values):
        ahead = [q for j, q in enumerate(p_values) if q < p or (q == p and j <= i)]
        steps = [(n - rank) * q for rank, q in enumerate(sorted(ahead))]
        corrected.append(min(1.0, max(steps)))
    return corrected


p_value_lists = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.02, 1.0])), max_size=12)


@given(p_value_lists, st.randoms(use_true_random=False))
def test_holms_correction_is_that_of_the_textbook_whatever_the_order(p_values: list[float], random: Any) -> None:
    plain = result_of(0.9)
    results = [dataclasses.replace(plain, p_value=p, model=f"m{i}") for i, p in enumerate(p_values)]
    read = read_together(results)
    assert [r.model for r in read] == [r.model for r in results]
    assert [r.p_holm for r in read] == pytest.approx(holm(p_values))
    assert all(r.p_holm >= r.p_value for r in read)
    assert [dataclasses.replace(r, p_holm=0.0) for r in read] == [dataclasses.replace(r, p_holm=0.0) for r in results]
    mixed = list(results)
    random.shuffle(mixed)
    again = {r.model: r.p_holm for r in read_together(mixed)}
    assert again == {r.model: r.p_holm for r in read}


def test_a_verdict_stands_where_its_corrected_p_value_is_small_enough() -> None:
    close = dataclasses.replace(result_of(0.9), p_value=0.02)
    assert [stands(r) for r in read_together([close])] == [True]
    assert [stands(r) for r in read_together([close, close])] == [False, False]
    # what several looks cost is in the p-value already
    assert [stands(r) for r in read_together([dataclasses.replace(close, looks=2)])] == [True]
    assert result_of(0.9, 0.9, 0.8, looks=3).p_value == pytest.approx(3 * result_of(0.9, 0.9, 0.8).p_value)
    open_verdict = result_of(0.5)
    assert stands(read_together([open_verdict])[0])


def test_passes_beside_a_failed_presence_are_marked() -> None:
    def read(presence: float, **more: Any) -> list[CheckResult]:
        checks = (("presence", presence), ("threshold-poison", 0.9), ("false-frequency", 0.1), ("bag-size", 0.9))
        return read_together([result_of(*[t] * 5, check=c, **more) for c, t in checks])

    failed = read(0.1)
    assert ["presence-failed" in r.flags for r in failed] == [False, True, False, False]
    assert failed[1].reason.endswith("but the model fails presence, and with it every MIL hypothesis")
    assert failed[1].verdict == "pass"
    assert not any("presence-failed" in r.flags for r in read(0.9))
    few = read_together([result_of(0.1), result_of(0.9, check="threshold-poison")])[1]
    assert few.reason.endswith("with it every MIL hypothesis; conditional on this fit")
    for other in ({"model": "other"}, {"recipe": "paper"}):
        apart = [result_of(0.1, **other), result_of(0.9, check="threshold-poison")]
        assert "presence-failed" not in read_together(apart)[1].flags


# ---------------------------------------------------------------- codes


def test_codes_are_unique_and_every_file_of_a_check_says_all_that_is_needed() -> None:
    found = [*codes.VERDICTS.values(), *codes.FLAGS.values(), codes.OWN_RECIPE, codes.IMPOSSIBLE_PAIR]
    for entry in registry.entries.values():
        module = importlib.import_module(entry.module)
        assert (entry.name, entry.code) == (module.NAME, module.CODE)
        assert module.ASSUMPTION in ("standard", "threshold", "correlated")
        assert len(module.LEARNED.split()) > 3
        assert not module.LEARNED.endswith(".")
        assert hasattr(module, "build") != hasattr(module, "broken")
        found.append(module.CODE)
    assert len(set(found)) == len(found)
    assert all(len(code) == 6 and code.startswith("MIL") and code[3:].isdigit() for code in found)


def test_a_recipe_of_ones_own_has_strata_too() -> None:
    mine = BagRecipe(
        name="mine",
        components=(Component("background"), Component("a", 4.0, concept="a"), Component("b", -4.0, concept="b")),
        negative=(Draw(("a", "b"), 1, "balanced"), Draw("background", (2, 4))),
        positive=(Draw("a"), Draw("b"), Draw("background", (1, 3))),
    )
    [result] = mf.check_model(Oracle(mine), checks=mine, n_train=20, n_test=200, n_runs=5, random_state=0)
    assert (result.verdict, result.recipe, result.code) == ("pass", "own", codes.OWN_RECIPE)
    assert set(result.runs[0].strata) == {"a", "b"}
    assert result.worst_auc is not None


def test_a_rare_sort_of_bags_does_not_hide_another_that_is_told_wrong() -> None:
    mine = BagRecipe(
        name="mine",
        components=(
            Component("background"),
            Component("low", -3.0, 0.1, concept="low"),
            Component("high", 3.0, 0.1, concept="high"),
        ),
        negative=(
            Draw(("low", "high"), 1, split="train"),
            Draw(("low", "high"), 8, "balanced", weights=(0.3, 0.7), split="test", probability=0.995),
            Draw("background", (2, 4)),
        ),
        positive=(Draw("low"), Draw("high"), Draw("background", (2, 4))),
    )

    class CountsLow(Scorer):
        def decision_function(self, bags: Bags) -> Any:
            return [(bag.mean(axis=1) < -2).sum() for bag in bags]

    [result] = mf.check_model(CountsLow(), checks=mine, n_train=20, n_test=1000, n_runs=5, random_state=0)
    assert (result.verdict, result.worst_stratum) == ("fail", "low")


def test_a_verdict_is_open_while_what_keeps_it_open_is() -> None:
    # the shifted AUC sits at 0.5, but the worst sort has a wide interval: more runs will tell
    wide = [run_of(v, run=i, worst="low", worst_auc=auc_of(w)) for i, (v, w) in enumerate(
        [(0.498, 0.1), (0.502, 0.5), (0.5, 0.3), (0.499, 0.2), (0.501, 0.45)]
    )]  # fmt: skip
    result = CheckResult.of(wide, level=0.95, looks=6)
    assert (result.verdict, result.settled) == ("inconclusive", False)


@pytest.mark.parametrize(("bags", "runs"), [(10, 5), (20, 2), (50, 2), (100, 2)])
def test_a_law_without_exception_says_how_many_runs_its_bound_needs(bags: int, runs: int) -> None:
    kept = Estimate.of_flags(np.zeros(bags, dtype=bool))
    needed = Pooled([kept] * runs).runs_to_reach(0.01, 0.025)
    assert needed is not None
    assert Pooled([kept] * needed).p_below(0.01) < 0.025
    assert needed == 2 or not Pooled([kept] * (needed - 1)).p_below(0.01) < 0.025


def test_a_pass_is_not_blamed_for_the_presence_of_another_model_of_the_same_name() -> None:
    class Bait(Scorer):
        name = "Model"

        def decision_function(self, bags: Bags) -> Any:
            return [bag.mean(axis=1).min() for bag in bags]

    class Fine(Scorer):
        name = "Model"

        def decision_function(self, bags: Bags) -> Any:
            return [(bag.mean(axis=1) > 0.6).sum() for bag in bags]

    jobs = runner.plan(
        [Bait(), Fine()],
        checks=["presence", "threshold-poison"],
        recipe="paper",
        scale="fast",
        n_train=20,
        n_test=400,
        n_runs=1,
        level=0.95,
        n_features=16,
        pad_to=None,
        direction=None,
        random_state=0,
    )
    results = runner.results(jobs, level=0.95)
    assert [r.verdict for r in results] == ["fail", "fail", "pass", "pass"]
    assert not any("presence-failed" in r.flags for r in results)
