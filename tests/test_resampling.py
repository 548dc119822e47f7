"""Bootstrap intervals: what is drawn, golden and other people's bounds, draws without a value, messages."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from conftest import golden_cases
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import milfast as mf
from milfast.uncertainty import Interval, bootstrap_interval
from milfast.uncertainty.resampling import MOST_LEFT_OUT, acceleration, bounds_of_replicates, interval_of_replicates


class Recorder:
    """A metric that remembers what it was called with."""

    def __init__(self) -> None:
        self.calls: list[list[np.ndarray]] = []

    def __call__(self, *arrays: np.ndarray) -> float:
        self.calls.append([array.copy() for array in arrays])
        return float(sum(np.sum(array * np.arange(1, len(array) + 1)) for array in arrays))


# the mean of what is drawn says little of the recorder's metric, and few resamples are enough to look at
few = pytest.mark.filterwarnings("ignore:with n_boot=:RuntimeWarning")


def bounds(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


# ---------------------------------------------------------------- values from elsewhere


def test_golden_bounds_from_a_given_distribution() -> None:
    [case] = golden_cases("bootstrap_ci_from_distribution")
    expected, tol = case["expected"], case["tol"]
    replicates, estimate = np.array(case["inputs"]["bootstrap_distribution"]), case["inputs"]["theta_hat"]
    data = np.array(case["inputs"]["data"])
    a = acceleration(((data.sum() - data) / (len(data) - 1), None))
    assert a == pytest.approx(expected["a"], abs=tol)
    for method, name in (("percentile", "percentile"), ("basic", "basic"), ("bca", "BCa")):
        low, high, used = bounds_of_replicates(estimate, replicates, level=0.95, method=method, acceleration=a)
        assert (low, high) == pytest.approx(expected[name], abs=tol)
        assert used == method


def test_golden_paired_bootstrap_of_two_aucs() -> None:
    [case] = golden_cases("paired_bootstrap")
    inputs, expected = case["inputs"], case["expected"]
    labels, a, b = (np.array(inputs[name]) for name in ("labels", "score_a", "score_b"))

    def difference(chosen: list[int]) -> float:
        if len(set(labels[chosen])) < 2:
            return math.nan
        return mf.auc(a[chosen], labels[chosen]) - mf.auc(b[chosen], labels[chosen])

    replicates = np.array([difference(chosen) for chosen in inputs["indices"]])
    np.testing.assert_allclose(replicates, expected["diff"], rtol=0, atol=case["tol"])
    options: dict[str, Any] = {"n": len(labels), "level": 0.95, "method": "percentile", "accelerated": lambda: 0.0}
    with pytest.warns(RuntimeWarning, match=f"{expected['n_undefined']} of {len(replicates)} resamples had no value"):
        interval = interval_of_replicates(expected["point"], replicates, **options)
    assert bounds(interval) == pytest.approx(expected["percentile95_skipna"], abs=case["tol"])
    assert interval.n_undefined == expected["n_undefined"]
    stratified = interval_of_replicates(expected["point"], np.array(expected["stratified_diff"]), **options)
    assert bounds(stratified) == pytest.approx(expected["stratified_percentile95"], abs=case["tol"])


@given(
    st.lists(st.integers(-20, 20), min_size=4, max_size=12).filter(lambda x: len(set(x)) > 1),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["bca", "percentile", "basic"]),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_bounds_are_those_of_scipy(data: list[int], seed: int, method: str, level: float) -> None:
    x = np.array(data, dtype=float)
    theirs = stats.bootstrap(
        (x,), np.mean, n_resamples=99, method="BCa" if method == "bca" else method, confidence_level=level, rng=seed
    )
    a = acceleration(((x.sum() - x) / (len(x) - 1), None))
    low, high, used = bounds_of_replicates(
        x.mean(), theirs.bootstrap_distribution, level=level, method=method, acceleration=a
    )
    if used == method:
        assert (low, high) == pytest.approx((theirs.confidence_interval.low, theirs.confidence_interval.high), abs=1e-9)
    else:
        assert math.isnan(theirs.confidence_interval.low)


def test_mean_and_spread_of_replicates_are_those_of_theory() -> None:
    x = np.random.default_rng(0).normal(size=80)
    seen = Recorder()
    bootstrap_interval(lambda v: seen(v) and v.mean(), x, n_boot=3000, method="percentile")
    means = np.array([call[0].mean() for call in seen.calls[1:]])
    error = x.std() / math.sqrt(len(x) * 3000)
    assert abs(means.mean() - x.mean()) < 5 * error
    assert means.std() == pytest.approx(x.std() / math.sqrt(len(x)), rel=5 / math.sqrt(2 * 3000))


# ---------------------------------------------------------------- what is drawn


@few
@pytest.mark.filterwarnings("ignore:all resamples gave:RuntimeWarning")
@given(st.data())
def test_resamples_keep_strata_and_draw_clusters_whole(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 12))
    cluster = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    if len(set(cluster)) < 2:
        cluster[0] = 9
    kind = np.array([data.draw(st.integers(0, 1)) for _ in range(10)])[cluster]
    items = np.arange(n)
    metric = Recorder()
    bootstrap_interval(metric, items, kind, stratify=kind, clusters=cluster, n_boot=20, random_state=3)
    drawn = [call[0] for call in metric.calls[1:21]]
    units = {c: Counter(items[cluster == c].tolist()) for c in set(cluster.tolist())}
    of_kind = {k: len(set(cluster[kind == k].tolist())) for k in set(kind.tolist())}
    for resample, kinds in ((call[0], call[1]) for call in metric.calls[1:21]):
        np.testing.assert_array_equal(kind[resample], kinds)  # the arrays are drawn together
        times = Counter(resample.tolist())
        chosen = dict.fromkeys(of_kind, 0)
        for c, members in units.items():
            [often] = {times[i] for i in members}
            chosen[int(kind[cluster == c][0])] += often
        assert chosen == of_kind
    left_out = [set(items.tolist()) - set(call[0].tolist()) for call in metric.calls[21:]]
    several = [set(members) for c, members in units.items() if of_kind[int(kind[cluster == c][0])] > 1]
    assert sorted(map(sorted, left_out)) == sorted(map(sorted, several))
    assert len(drawn) == 20


@few
def test_independent_samples_are_drawn_each_for_itself() -> None:
    metric = Recorder()
    bootstrap_interval(metric, np.arange(5), np.arange(100, 103), paired=False, n_boot=300)
    drawn = metric.calls[1:301]
    assert all(len(a) == 5 and len(b) == 3 and a.max() < 5 and b.min() >= 100 for a, b in drawn)
    assert len({(tuple(a), tuple(b)) for a, b in drawn}) > 280
    shapes = Counter((len(a), len(b)) for a, b in metric.calls[301:])
    assert shapes == {(4, 3): 5, (5, 2): 3}


@few
def test_of_many_units_each_is_left_out_once_with_others() -> None:
    n = 2 * MOST_LEFT_OUT + 7
    metric = Recorder()
    bootstrap_interval(metric, np.arange(n), n_boot=1)
    left_out = [np.setdiff1d(np.arange(n), call[0]) for call in metric.calls[2:]]
    assert len(left_out) == MOST_LEFT_OUT
    np.testing.assert_array_equal(np.sort(np.concatenate(left_out)), np.arange(n))
    assert {len(part) for part in left_out} == {2, 3}


@few
def test_a_longer_run_starts_with_a_shorter_one() -> None:
    short, long = Recorder(), Recorder()
    kind = np.arange(9) % 2
    for metric, n_boot in ((short, 30), (long, 250)):
        bootstrap_interval(metric, np.arange(9), stratify=kind, n_boot=n_boot, method="basic", random_state=5)
    for a, b in zip(short.calls, long.calls[:31], strict=True):
        np.testing.assert_array_equal(a[0], b[0])


def spread(x: np.ndarray) -> float:
    return float(np.max(x) - np.min(x))


def test_processes_change_nothing_and_progress_is_told() -> None:
    x = np.random.default_rng(1).integers(0, 1000, 60)
    seen: list[tuple[int, int]] = []
    one = bootstrap_interval(spread, x, n_boot=300, callback=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (360, 360)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert bootstrap_interval(spread, x, n_boot=300, n_jobs=2) == one


@pytest.mark.parametrize("more", [{}, {"stratify": np.arange(30) % 3}, {"clusters": np.arange(30) // 3}])
@pytest.mark.parametrize("method", ["bca", "basic"])
def test_a_vectorised_metric_gives_the_same(more: dict[str, Any], method: str) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.integers(0, 50, 30), rng.integers(1, 5, (30, 2))
    one = bootstrap_interval(lambda a, b: (a * b[:, 0]).sum() / b.sum(), x, w, method=method, n_boot=500, **more)
    many = bootstrap_interval(
        lambda a, b: (a * b[..., 0]).sum(axis=1) / b.sum(axis=(1, 2)), x, w, method=method, n_boot=500,
        vectorized=True, **more,
    )  # fmt: skip
    assert one == many


def test_vectorised_metrics_of_independent_samples() -> None:
    x, y = np.arange(20), np.arange(30) ** 2
    one = bootstrap_interval(lambda a, b: a.sum() - b.sum(), x, y, paired=False, n_boot=300)
    many = bootstrap_interval(
        lambda a, b: a.sum(axis=1) - b.sum(axis=1), x, y, paired=False, n_boot=300, vectorized=True
    )
    assert one == many


def test_the_seed_of_a_result_gives_it_again() -> None:
    x = np.random.default_rng(3).exponential(size=40)
    first = bootstrap_interval(np.mean, x, random_state=np.random.default_rng(8), n_boot=400)
    assert bootstrap_interval(np.mean, x, random_state=first.seed, n_boot=400) == first
    assert bootstrap_interval(np.mean, x, random_state=0, n_boot=400) != first
    assert Interval.from_dict(first.to_dict()) == first


def test_bags_are_clusters_of_their_instances() -> None:
    bags = mf.sample_bags("presence", 30, random_state=0)
    values = bags.instances[:, 0]
    got = bootstrap_interval(np.mean, values, clusters=bags, n_boot=300)
    assert got == bootstrap_interval(np.mean, values, clusters=np.repeat(np.arange(30), bags.sizes), n_boot=300)
    assert (got.n, got.n_clusters, got.n_boot) == (len(values), 30, 300)
    assert "in 30 clusters" in got.summary()
    with pytest.raises(ValueError, match=r"clusters holds \d+ instances in its bags; there are 3 items"):
        bootstrap_interval(np.mean, [1, 2, 3], clusters=bags)


# ---------------------------------------------------------------- draws without a value


def test_undefined_resamples_are_counted_and_left_out() -> None:
    scores, labels = [0.1, 0.4, 0.35, 0.8, 0.9, 0.3], [0, 0, 0, 1, 0, 0]
    kept = Recorder()

    def auc(s: np.ndarray, y: np.ndarray) -> float:
        if len(set(y)) < 2:
            raise ValueError("Only one class present")
        kept(s)
        return mf.auc(s, y)

    with pytest.warns(RuntimeWarning, match=r"of 2000 resamples had no value \(ValueError: Only one class"):
        raising = bootstrap_interval(auc, scores, labels, method="percentile")
    assert raising.n_undefined is not None
    # no positive among six with a chance of (5/6)^6
    assert raising.n_undefined / 2000 == pytest.approx((5 / 6) ** 6, abs=0.06)
    defined = np.array([mf.auc(s, np.isin(s, 0.8)) for (s,) in kept.calls[1:]])
    assert bounds(raising) == pytest.approx(np.quantile(defined, [0.025, 0.975]), abs=1e-12)
    with pytest.warns(RuntimeWarning, match="had no value and were left out"):
        nan = bootstrap_interval(mf.auc, scores, labels, method="percentile")
    assert bounds(nan) == bounds(raising)
    assert f"{nan.n_undefined} undefined" in nan.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bootstrap_interval(mf.auc, scores, labels, method="percentile", stratify=labels).n_undefined == 0


def test_warnings_of_the_metric_are_not_repeated() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    labels, scores = [0, 0, 1, 0, 0], [0.2, 0.4, 0.3, 0.1, 0.7]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        interval = bootstrap_interval(metrics.roc_auc_score, labels, scores, n_boot=400, method="percentile")
    assert [w.category for w in seen] == [RuntimeWarning]
    assert interval.n_undefined


def test_a_metric_without_any_value_is_refused() -> None:
    with pytest.raises(ValueError, match="metric gives nan on the whole sample"):
        bootstrap_interval(np.mean, [1.0, math.nan, 2.0])
    first = [True]

    def once(x: np.ndarray) -> float:
        return 1.0 if first and first.pop() else math.nan

    with pytest.raises(ValueError, match="none of 200 resamples has a value"):
        bootstrap_interval(once, [1, 2, 3], n_boot=200)


def test_replicates_that_are_all_the_same_are_no_certainty() -> None:
    with pytest.warns(RuntimeWarning, match="all resamples gave 3: the bootstrap shows no spread"):
        interval = bootstrap_interval(np.mean, [3, 3, 3, 3])
    assert bounds(interval) == (3.0, 3.0)


def test_errors_of_the_metric_that_are_no_missing_values_come_through() -> None:
    with pytest.raises(KeyError):
        bootstrap_interval(lambda x: {}["a"], [1, 2])


def test_bca_falls_back_on_percentiles_and_says_so() -> None:
    replicates = np.arange(100.0)
    plain = bounds_of_replicates(500.0, replicates, level=0.9, method="percentile")
    for case in ({"estimate": 500.0}, {"estimate": -1.0}, {"estimate": 50.0, "acceleration": math.nan}):
        got = bounds_of_replicates(replicates=replicates, level=0.9, method="bca", **case)
        assert got[:2] == plain[:2]
        assert got[2] == "percentile (bca undefined)"
    # so skew that the correction would turn round
    assert bounds_of_replicates(50.0, replicates, level=0.9, method="bca", acceleration=0.7)[2].startswith("percentile")


def test_without_bias_and_skewness_bca_is_the_percentiles() -> None:
    replicates = np.random.default_rng(0).permutation(np.arange(1001.0))
    bca, plain = (bounds_of_replicates(500.0, replicates, level=0.9, method=m)[:2] for m in ("bca", "percentile"))
    assert bca == pytest.approx(plain, abs=1e-9)


def test_a_basic_interval_is_cut_to_the_range() -> None:
    x = [1] * 19 + [0]
    assert bootstrap_interval(np.mean, x, method="basic").high > 1
    assert bootstrap_interval(np.mean, x, method="basic", bounds=(0, 1)).high == 1.0


def test_few_resamples_are_a_matter_of_luck() -> None:
    with pytest.warns(RuntimeWarning, match=r"about 2\.5 resamples lie outside each bound .* n_boot=200 or more"):
        bootstrap_interval(np.mean, [1, 2, 3], n_boot=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bootstrap_interval(np.mean, [1, 2, 3], n_boot=200)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((np.mean,), {}, ValueError, "arrays is empty"),
        ((np.mean, []), {}, ValueError, r"arrays\[0\] must not be empty"),
        ((np.mean, 3), {}, ValueError, r"arrays\[0\] must have an axis of items"),
        ((np.corrcoef, [1, 2], [1, 2, 3]), {}, ValueError, r"arrays\[1\] has 3 items and arrays\[0\] has 2.*paired"),
        (("mean", [1, 2]), {}, TypeError, "metric must be callable"),
        ((np.sort, [1, 2]), {}, TypeError, r"metric must return one number; got shape \(2,\)"),
        ((lambda _: "x", [1, 2]), {}, TypeError, "metric must return one number; got str"),
        ((np.mean, [1, 2]), {"vectorized": True}, TypeError, r"shape \(1,\).*reduce over axis 1"),
        ((np.mean, [1, 2]), {"method": "bcA"}, ValueError, "method must be one of bca, percentile, basic"),
        ((np.mean, [1, 2]), {"n_boot": 0}, ValueError, "n_boot must be at least 1; got 0"),
        ((np.mean, [1, 2]), {"n_boot": 10.0}, TypeError, "n_boot must be an integer"),
        ((np.mean, [1, 2]), {"n_boot": True}, TypeError, "n_boot must be an integer"),
        ((np.mean, [1, 2]), {"level": 95}, ValueError, "level must lie strictly between 0 and 1"),
        ((np.mean, [1, 2]), {"stratify": [1]}, ValueError, r"stratify must hold one value an item, shape \(2,\)"),
        ((np.mean, [1, 2]), {"clusters": [1, math.nan]}, ValueError, r"clusters\[1\] is nan"),
        ((np.mean, [1, 2]), {"clusters": ["a", None]}, ValueError, r"clusters\[1\] is None"),
        (
            (np.mean, [1, 2]),
            {"clusters": np.array([1, (1,)], object)},
            TypeError,
            "clusters holds values that cannot be ordered",
        ),
        ((np.mean, [1, 2]), {"clusters": [7, 7]}, ValueError, "clusters are all the same"),
        ((np.mean, [1, 2, 3]), {"clusters": [0, 0, 1], "stratify": [0, 1, 0]}, ValueError, "item 1 and another of its"),
        ((np.mean, [1, 2]), {"paired": False, "clusters": [0, 1]}, ValueError, "need paired=True"),
        ((np.mean, [1, 2]), {"bounds": (1, 0)}, ValueError, "bounds must be in ascending order"),
        ((np.mean, [1, 2]), {"random_state": -1}, ValueError, "random_state must not be negative"),
        ((np.mean, [1, 2]), {"random_state": "x"}, TypeError, "random_state must be"),
        ((np.mean, [1, 2]), {"n_jobs": 0}, ValueError, "n_jobs"),
        (
            (lambda x: x.mean(axis=1), [1, 2, 3]),
            {"clusters": [0, 0, 1], "vectorized": True},
            ValueError,
            "clusters differ in size",
        ),
    ],
)
def test_wrong_input_is_refused(arguments: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        bootstrap_interval(*arguments, **options)


@pytest.mark.filterwarnings("ignore:all resamples gave:RuntimeWarning")
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=15), st.sampled_from(["bca", "percentile", "basic"]))
def test_the_interval_goes_with_the_units_of_the_data(data: list[int], method: str) -> None:
    if len(set(data)) == 1:
        data = [*data, data[0] + 1]
    x = np.array(data)
    here = bootstrap_interval(np.sum, x, n_boot=200, method=method)
    there = bootstrap_interval(np.sum, -8 * x, n_boot=200, method=method)
    assert bounds(there) == pytest.approx((-8 * here.high, -8 * here.low), abs=1e-6)
