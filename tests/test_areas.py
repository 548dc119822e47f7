"""Areas that are resampled, partial, of clustered items or of many classes, against their definitions."""

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

import milfast as mf
from milfast._core import auc_jackknife, bootstrap_auc, delong
from milfast.uncertainty import Interval, auc_interval, bootstrap_interval, multiclass_auc_interval
from milfast.uncertainty.areas import Ranking, Resampler, _mean_area, _parts, variance_of
from milfast.uncertainty.resampling import acceleration, bounds_of_replicates

RESAMPLED = ("bca", "percentile", "basic")
METHODS = ("logit", "delong", *RESAMPLED)


def bounds(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def drawn(n: int, seed: int = 0, levels: int = 10**6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 3 == 0).astype(int)
    return rng.integers(0, levels, n) + labels * levels // 3, labels


@st.composite
def weighted(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = draw(st.integers(2, 12))
    scores = np.array(draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), dtype=float)
    labels = np.array([1, 0, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])
    weights = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    return scores, labels, weights


# ---------------------------------------------------------------- areas and what each item adds


@given(weighted(), st.sampled_from([None, 0.05, 0.2, 0.5, 0.99]))
def test_the_area_of_weighted_items_is_that_of_their_copies(data: Any, max_fpr: float | None) -> None:
    scores, labels, weights = data
    ranking = Ranking.of(scores, labels == 1, max_fpr=max_fpr)
    both = np.stack([np.ones(len(scores), dtype=np.int64), weights])
    for row, area in zip(both, ranking.areas(both), strict=True):
        s, y = np.repeat(scores, row), np.repeat(labels, row)
        if len(set(y.tolist())) < 2:
            assert math.isnan(area)
        else:
            assert area == pytest.approx(mf.auc(s, y, max_fpr=max_fpr, standardize=False), abs=1e-13)


def slope(areas: Any, n: int) -> np.ndarray:
    """How an area changes with the weight of each item, by weighing it a millionth more."""
    million = 10**6
    weights = np.full((2 * n, n), million, dtype=np.int64)
    weights[np.arange(n), np.arange(n)] += 1
    weights[n + np.arange(n), np.arange(n)] -= 1
    found = areas(weights)
    return (found[:n] - found[n:]) / 2 * million


@given(weighted())
def test_what_an_item_adds_is_the_slope_of_the_area(data: Any) -> None:
    scores, labels, _ = data
    ranking = Ranking.of(scores, labels == 1)
    np.testing.assert_allclose(ranking.influence(), slope(ranking.areas, len(scores)), rtol=0, atol=1e-8)


@given(st.permutations(range(11)), st.integers(1, 10), st.sampled_from([0.07, 0.23, 0.61, 0.93]))
def test_what_an_item_adds_to_a_partial_area_is_its_slope(order: list[int], n_pos: int, max_fpr: float) -> None:
    ranking = Ranking.of(np.array(order), np.arange(11) < n_pos, max_fpr=max_fpr)
    np.testing.assert_allclose(ranking.influence(), slope(ranking.areas, 11), rtol=0, atol=1e-8)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_what_an_item_adds_to_a_mean_over_classes_is_its_slope(multi_class: str, average: str) -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.permutation(np.arange(16) % 3), rng.integers(0, 6, (16, 3)).astype(float)
    parts = _parts(scores, labels, np.bincount(labels), multi_class, average)
    total = sum(weight * ranking.influence() for weight, ranking in parts)
    np.testing.assert_allclose(total, slope(_mean_area(parts), 16), rtol=0, atol=1e-8)


def test_with_fixed_classes_the_variance_of_a_mean_over_classes_is_that_of_its_resamples() -> None:
    rng = np.random.default_rng(0)
    # classes 1 and 2 are told from 0 with different ease: which of them "the rest" consists of would make a difference
    labels = np.repeat([0, 1, 2], (200, 150, 100))
    scores = rng.normal(size=(450, 3)) + np.array([[2, 0, 0], [1, 1, 0], [-2, 0, 2]])[labels]
    parts = _parts(scores, labels, np.bincount(labels), "ovr", "macro")
    influence = sum(weight * ranking.influence() for weight, ranking in parts)
    resamples = Resampler(450, labels, None).replicates(_mean_area(parts), 4000, 1)
    assert resamples.var() == pytest.approx(variance_of(influence, labels, None), rel=5 * math.sqrt(2 / 4000) + 0.01)


# ---------------------------------------------------------------- variances


@given(weighted())
def test_without_clusters_and_in_clusters_of_one_the_variance_is_delongs(data: Any) -> None:
    scores, labels, _ = data
    if min(labels.sum(), len(labels) - labels.sum()) < 2:
        scores, labels = np.tile(scores, 2), np.tile(labels, 2)
    influence = Ranking.of(scores, labels == 1).influence()
    expected = delong(scores, labels)[1]
    assert variance_of(influence, labels, None) == pytest.approx(expected, abs=1e-14)
    assert variance_of(influence, labels, np.arange(len(labels))) == pytest.approx(expected, abs=1e-14)


def obuchowski(scores: np.ndarray, labels: np.ndarray, clusters: np.ndarray) -> float:
    """Equations of Obuchowski (1997), item by item."""
    pos, neg = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    win = {(i, j): float(scores[i] > scores[j]) + (scores[i] == scores[j]) / 2 for i in pos for j in neg}
    area = np.mean(list(win.values()))
    v10 = {i: np.mean([win[i, j] for j in neg]) for i in pos}
    v01 = {j: np.mean([win[i, j] for i in pos]) for j in neg}
    groups = sorted(set(clusters.tolist()))
    rest10 = {g: sum(v10[i] - area for i in pos if clusters[i] == g) for g in groups}
    rest01 = {g: sum(v01[j] - area for j in neg if clusters[j] == g) for g in groups}
    with_pos, with_neg, n = len(set(clusters[pos].tolist())), len(set(clusters[neg].tolist())), len(groups)
    s10 = with_pos / ((with_pos - 1) * len(pos)) * sum(r**2 for r in rest10.values())
    s01 = with_neg / ((with_neg - 1) * len(neg)) * sum(r**2 for r in rest01.values())
    s11 = n / (n - 1) * sum(rest10[g] * rest01[g] for g in groups)
    return float(s10 / len(pos) + s01 / len(neg) + 2 * s11 / (len(pos) * len(neg)))


@given(st.data())
def test_in_clusters_the_variance_is_that_of_obuchowski(data: st.DataObject) -> None:
    n = data.draw(st.integers(6, 16))
    draw = lambda low, high: np.array(data.draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))  # noqa: E731
    scores, labels, clusters = draw(0, 5), draw(0, 1), draw(0, 4)
    labels[:4], clusters[:4] = [0, 0, 1, 1], [0, 1, 0, 1]
    codes = np.unique(clusters, return_inverse=True)[1]
    got = variance_of(Ranking.of(scores, labels == 1).influence(), labels, codes)
    assert got == pytest.approx(max(0.0, obuchowski(scores, labels, clusters)), abs=1e-13)


def test_copies_in_a_cluster_change_the_variance_but_little() -> None:
    scores, labels = drawn(60)
    alone, copied = (
        auc_interval(np.repeat(scores, k), np.repeat(labels, k), clusters=np.repeat(np.arange(60), k)) for k in (1, 5)
    )
    assert bounds(alone) == pytest.approx(bounds(copied), abs=1e-12)
    naive = auc_interval(np.repeat(scores, 5), np.repeat(labels, 5))
    assert naive.half_width < 0.6 * copied.half_width


@pytest.mark.parametrize("max_fpr", [0.2, 0.6])
def test_the_variance_of_a_partial_area_is_that_of_its_resamples(max_fpr: float) -> None:
    scores, labels = drawn(900)
    ranking = Ranking.of(scores, labels == 1, max_fpr=max_fpr)
    resamples = Resampler(900, labels, None).replicates(ranking.areas, 4000, 1)
    variance = variance_of(ranking.influence(), labels, None)
    assert resamples.var() == pytest.approx(variance, rel=5 * math.sqrt(2 / 4000) + 0.01)


# ---------------------------------------------------------------- resampled intervals


def test_golden_acceleration() -> None:
    [case] = golden_cases("auc_jackknife")
    without = auc_jackknife(case["inputs"]["score_a"], case["inputs"]["labels"])
    assert acceleration((without, None)) == pytest.approx(case["expected"]["bca_acceleration"], abs=case["tol"])


@pytest.mark.parametrize("method", RESAMPLED)
@pytest.mark.parametrize("stratified", [True, False])
def test_bounds_are_those_of_the_replicates_of_the_kernel(method: str, stratified: bool) -> None:
    scores, labels = drawn(80)
    interval = auc_interval(scores, labels, method=method, stratified=stratified, n_boot=500, random_state=4)
    from milfast.seeding import seed_value

    replicates = bootstrap_auc(scores, labels, 500, stratified=stratified, random_state=seed_value(4, 0))
    without = auc_jackknife(scores, labels)
    parts = (without[labels == 1], without[labels == 0]) if stratified else (without,)
    expected = bounds_of_replicates(
        mf.auc(scores, labels),
        replicates,
        level=0.95,
        method=method,
        acceleration=acceleration(*((p, None) for p in parts)),
    )
    assert (*bounds(interval), interval.method) == expected
    assert (interval.n_boot, interval.n_undefined, interval.seed) == (500, 0, 4)


def test_acceleration_by_influence_is_nearly_that_of_the_jackknife() -> None:
    scores, labels = drawn(300)
    influence = Ranking.of(scores, labels == 1).influence()
    without = auc_jackknife(scores, labels)
    exact = acceleration((without[labels == 0], None), (without[labels == 1], None))
    assert Resampler(300, labels, None).acceleration(influence) == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_clusters_and_parts_go_with_every_method(method: str) -> None:
    scores, labels = drawn(240)
    clusters = np.arange(240) // 4
    whole = auc_interval(scores, labels, method=method, clusters=clusters)
    assert (whole.n_pos, whole.n_neg, whole.n_clusters) == (80, 160, 60)
    assert whole.estimate == mf.auc(scores, labels)
    # items of a cluster are independent here, so clusters make no difference to speak of
    plain = auc_interval(scores, labels, method=method)
    assert whole.half_width == pytest.approx(plain.half_width, rel=0.25)
    part = auc_interval(scores, labels, method=method, max_fpr=0.3)
    assert part.estimate == pytest.approx(mf.auc(scores, labels, max_fpr=0.3), abs=1e-15)
    assert part.low < part.estimate < part.high
    raw = auc_interval(scores, labels, method=method, max_fpr=0.3, standardize=False)
    chance = 0.3**2 / 2
    standard = [(1 + (bound - chance) / (0.3 - chance)) / 2 for bound in bounds(raw)]
    assert bounds(part) == pytest.approx(standard, abs=1e-12)
    assert auc_interval(scores, labels, method=method, max_fpr=1.0) == plain


def test_the_logit_interval_agrees_with_the_bootstrap_of_clusters() -> None:
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(80), rng.integers(1, 8, 80))
    labels = rng.integers(0, 2, len(clusters))
    scores = rng.normal(size=80)[clusters] + rng.normal(size=len(clusters)) + labels
    logit = auc_interval(scores, labels, clusters=clusters)
    for method in ("bca", "percentile"):
        assert bounds(auc_interval(scores, labels, clusters=clusters, method=method)) == pytest.approx(
            bounds(logit), abs=0.02
        )
    generic = bootstrap_interval(mf.auc, scores, labels, clusters=clusters, n_boot=1000)
    assert bounds(generic) == pytest.approx(bounds(logit), abs=0.02)


@given(st.integers(2, 30), st.integers(0, 2**32))
def test_resamples_hold_as_many_as_there_are(n: int, seed: int) -> None:
    kind, cluster = np.arange(n) % 2, np.arange(n) // 3
    seen: list[np.ndarray] = []

    def areas(weights: np.ndarray) -> np.ndarray:
        seen.extend(weights.copy())
        return np.zeros(len(weights))

    apart = Resampler(n, kind, None)
    apart.replicates(areas, 5, seed)
    for row in seen:
        of_items = row[apart.unit]
        assert [of_items[kind == k].sum() for k in (0, 1)] == np.bincount(kind).tolist()
    seen.clear()
    if n > 3:
        whole = Resampler(n, None, cluster)
        whole.replicates(areas, 5, seed)
        assert all(row.sum() == whole.n_units for row in seen)
        for row in seen:
            assert all(len(set(row[whole.unit][cluster == c].tolist())) == 1 for c in set(cluster.tolist()))


def test_a_longer_run_starts_with_a_shorter_one_whatever_is_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, labels = drawn(50)
    ranking = Ranking.of(scores, labels == 1)
    long = Resampler(50, labels, None).replicates(ranking.areas, 90, 3)
    monkeypatch.setattr("milfast.uncertainty.areas.AT_ONCE", 350)
    np.testing.assert_array_equal(Resampler(50, labels, None).replicates(ranking.areas, 40, 3), long[:40])


def test_every_unit_is_drawn_as_often() -> None:
    times = Counter[int]()

    def areas(weights: np.ndarray) -> np.ndarray:
        times.update(dict(enumerate(weights.sum(axis=0).tolist())))
        return np.zeros(len(weights))

    Resampler(10, None, None).replicates(areas, 20_000, 7)
    assert sum(times.values()) == 200_000
    assert max(abs(count - 20_000) for count in times.values()) < 5 * math.sqrt(20_000)


def test_clusters_that_lose_a_class_are_left_out() -> None:
    scores, labels = np.arange(20.0) % 7, (np.arange(20) >= 16).astype(int)
    clusters = np.arange(20) // 2
    with pytest.warns(RuntimeWarning, match="resamples had no value and were left out"):
        interval = auc_interval(scores, labels, clusters=clusters, method="percentile")
    # two of ten clusters hold the positives
    assert interval.n_undefined is not None
    assert interval.n_undefined / 2000 == pytest.approx(0.8**10, abs=0.04)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = auc_interval(scores, labels, clusters=clusters, method="percentile", stratified=True)
    assert kept.n_undefined == 0


def test_thousands_of_scores_take_a_moment_and_the_same_bits() -> None:
    scores, labels = drawn(5000)
    before = mf.get_num_threads()
    try:
        found = []
        for n in (1, 2):
            mf.set_num_threads(n)
            found.append(auc_interval(scores, labels, method="bca"))
    finally:
        mf.set_num_threads(before)
    assert found[0] == found[1]
    assert bounds(found[0]) == pytest.approx(bounds(auc_interval(scores, labels)), abs=0.002)


# ---------------------------------------------------------------- degenerate cases


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("more", [{}, {"max_fpr": 0.5}, {"clusters": np.arange(40) // 2}])
def test_perfection_gets_the_wilson_bound(method: str, more: dict[str, Any]) -> None:
    scores, labels = np.arange(40.0), np.repeat([0, 1], 20)
    best = auc_interval(scores, labels, method=method, **more)
    assert best.estimate == best.high == 1.0
    assert 0.5 < best.low < 0.9
    assert best.method.startswith("wilson")
    worst = auc_interval(-scores, labels, method=method, **more)
    assert worst.low == worst.estimate
    assert worst.low < worst.high


@pytest.mark.parametrize("method", METHODS)
def test_a_part_that_is_all_there_is_or_nothing_is_seen_as_such(method: str) -> None:
    for n in (7, 12, 30):
        labels = np.repeat([0, 1], (n, 2 * n + 1))
        for max_fpr in np.linspace(0.01, 0.99, 23):
            best = auc_interval(np.arange(3 * n + 1), labels, method=method, max_fpr=max_fpr, standardize=False)
            assert best.method == "wilson (no area or all of it)"
            assert 0 < best.low < best.high == pytest.approx(max_fpr, abs=1e-12)
            worst = auc_interval(-np.arange(3 * n + 1), labels, method=method, max_fpr=max_fpr, standardize=False)
            assert worst.low == 0 < worst.high < max_fpr


def test_tensors_are_read() -> None:
    torch = pytest.importorskip("torch")
    scores, labels = drawn(40)
    tensor = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    for options in ({"max_fpr": 0.4}, {"clusters": np.arange(40) // 2}):
        assert auc_interval(tensor, labels, **options) == auc_interval(scores, labels, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
def test_ties_only_have_no_width(method: str) -> None:
    cases: list[dict[str, Any]] = [{}, {"max_fpr": 0.4}, {"clusters": [0, 0, 1, 1, 2, 2]}]
    for options in cases:
        interval = auc_interval([1.0] * 6, [0, 1] * 3, method=method, **options)
        assert interval.estimate == pytest.approx(0.5, abs=1e-15)
        assert interval.low == interval.high == interval.estimate


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("more", [{"max_fpr": 0.5}, {"clusters": [0, 0, 1, 1]}, {"method": "bca"}])
def test_a_class_of_one_or_none_leaves_bounds_undefined(method: str, more: dict[str, Any]) -> None:
    options = {"method": method} | more
    with pytest.warns(RuntimeWarning, match="labels hold one positive: the .* bounds are undefined"):
        one = auc_interval([0.1, 0.4, 0.35, 0.8], [0, 1, 0, 0], **options)
    assert math.isnan(one.low)
    assert not math.isnan(one.estimate)
    with pytest.warns(RuntimeWarning, match="labels hold no positives"):
        none = auc_interval([0.1, 0.4, 0.35, 0.8], [0, 0, 0, 0], **options)
    assert math.isnan(none.estimate)


def test_one_cluster_with_all_of_a_class_shows_no_spread() -> None:
    with pytest.warns(RuntimeWarning, match="one cluster with all positives"):
        interval = auc_interval([0.1, 0.4, 0.35, 0.8, 0.2], [0, 1, 1, 0, 0], clusters=[0, 1, 1, 2, 2])
    assert math.isnan(interval.low)
    assert interval.method == "undefined (one cluster with all positives)"


@pytest.mark.filterwarnings("ignore:.*resamples had no value:RuntimeWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("more", [{}, {"max_fpr": 0.5}, {"clusters": [0, 1, 2, 3]}])
def test_nan_is_refused_and_infinity_is_not(method: str, more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"scores\[1\] is NaN"):
        auc_interval([0.1, math.nan, 0.35, 0.8], [0, 0, 1, 1], method=method, **more)
    got = auc_interval([-math.inf, 1.0, 0.0, math.inf], [0, 0, 1, 1], method=method, **more)
    assert got.high <= 1.0


@pytest.mark.filterwarnings("ignore:.*resamples had no value:RuntimeWarning")
def test_scores_a_billionth_apart_are_not_tied() -> None:
    scores = 1 + 1e-9 * np.array([0.0, 1, 2, 3, 4, 5, 6, 7])
    labels = np.array([0, 1, 0, 1, 0, 1, 1, 0])
    spaced = auc_interval(np.arange(8), labels, clusters=np.arange(8), method="bca")
    assert auc_interval(scores, labels, clusters=np.arange(8), method="bca") == spaced
    large = np.arange(8, dtype=np.uint64) + np.uint64(2**64 - 8)
    assert auc_interval(large, labels, clusters=np.arange(8), method="bca") == spaced


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "bootstraps"}, ValueError, "method must be one of logit, delong, hanley-mcneil, wilson, bca"),
        (
            {"method": "wilson", "max_fpr": 0.2},
            ValueError,
            "method='wilson' goes neither with max_fpr nor with clusters",
        ),
        ({"method": "hanley-mcneil", "clusters": [0, 0, 1, 1]}, ValueError, "method='hanley-mcneil' goes neither"),
        ({"max_fpr": 0.0}, ValueError, "max_fpr"),
        ({"max_fpr": 1.5}, ValueError, "max_fpr"),
        ({"max_fpr": "0.1"}, TypeError, "max_fpr must be a number"),
        ({"clusters": [0, 1]}, ValueError, r"clusters must hold one value an item, shape \(4,\)"),
        ({"clusters": [1, 1, 1, 1]}, ValueError, "clusters are all the same"),
        ({"clusters": [0, 0, 1, 1], "method": "bca", "stratified": True}, ValueError, "different strata"),
        ({"method": "bca", "n_boot": 0}, ValueError, "n_boot must be at least 1"),
        ({"method": "bca", "random_state": 0.5}, TypeError, "random_state"),
        ({"method": "bca", "level": 1.0}, ValueError, "level"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        auc_interval([0.3, 0.1, 0.2, 0.4], [0, 1, 0, 1], **options)


@pytest.mark.parametrize("method", ["logit", "delong"])
def test_few_clusters_with_a_class_count_for_the_quantile(method: str) -> None:
    rng = np.random.default_rng(6)
    clusters, labels = np.arange(200) // 2, (np.arange(200) < 8).astype(int)  # positives in 4 clusters of 100
    scores = rng.normal(size=200) + labels
    got = auc_interval(scores, labels, clusters=clusters, method=method, level=0.5)
    influence = Ranking.of(scores, labels == 1).influence()
    from scipy.stats import t

    half = t.ppf(0.75, 3) * math.sqrt(variance_of(influence, labels, clusters))
    a = got.estimate
    if method == "delong":
        assert got.half_width == pytest.approx(half, rel=1e-9)
    else:
        assert math.log(got.high / (1 - got.high)) == pytest.approx(
            math.log(a / (1 - a)) + half / (a * (1 - a)), rel=1e-9
        )


@pytest.mark.parametrize(
    "kind",
    [
        lambda x: x.tolist(),
        lambda x: np.repeat(x, 2)[::2],
        lambda x: x[::-1].copy()[::-1],
        lambda x: x.astype(x.dtype.newbyteorder(">")),
        lambda x: pytest.importorskip("pandas").Series(x, index=x + 3),
        lambda x: pytest.importorskip("polars").Series(x),
    ],
    ids=["list", "strided", "reversed", "big-endian", "pandas", "polars"],
)
@pytest.mark.parametrize("options", [{}, {"max_fpr": 0.4}, {"method": "bca"}], ids=["whole", "part", "bca"])
def test_arrays_of_any_kind_give_the_same(kind: Any, options: dict[str, Any]) -> None:
    scores, labels = drawn(60)
    clusters = np.arange(60) // 2
    want = auc_interval(scores, labels, clusters=clusters, **options)
    assert auc_interval(kind(scores), kind(labels), clusters=kind(clusters), **options) == want
    scores.setflags(write=False)
    assert auc_interval(scores, labels == 1, clusters=clusters.astype(str), **options).half_width == pytest.approx(
        want.half_width, rel=0.1
    )  # named clusters stand in another order, which a bootstrap sees


def test_bootstrap_is_another_word_for_percentile() -> None:
    scores, labels = drawn(30)
    assert auc_interval(scores, labels, method="bootstrap") == auc_interval(scores, labels, method="percentile")


def test_few_resamples_are_warned_about_where_the_call_stands() -> None:
    with pytest.warns(RuntimeWarning, match="use n_boot=200 or more") as seen:
        auc_interval(*drawn(30), method="bca", n_boot=50)
    assert seen[0].filename == __file__


# ---------------------------------------------------------------- many classes


def test_golden_multiclass() -> None:
    [case] = golden_cases("multiclass_auc")
    scores, labels, expected = case["inputs"]["prob"], case["inputs"]["labels"], case["expected"]
    for multi_class in ("ovr", "ovo"):
        for average in ("macro", "weighted", "micro"):
            if (multi_class, average) != ("ovo", "micro"):
                got = multiclass_auc_interval(scores, labels, multi_class=multi_class, average=average)
                assert got.estimate == pytest.approx(expected[f"{multi_class}_{average}"], abs=case["tol"])
                assert got.low < got.estimate < got.high


@pytest.mark.parametrize("method", ["logit", "delong"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("clusters", [None, np.arange(60) // 3])
def test_two_classes_that_mirror_each_other_are_one_auc(method: str, multi_class: str, clusters: Any) -> None:
    scores, labels = drawn(60, levels=20)
    both = np.stack([-scores, scores], axis=1)
    got = multiclass_auc_interval(both, labels, method=method, multi_class=multi_class, clusters=clusters)
    assert bounds(got) == pytest.approx(
        bounds(auc_interval(scores, labels, method=method, clusters=clusters)), abs=1e-12
    )


def test_micro_is_one_auc_of_all_entries_with_rows_as_clusters() -> None:
    rng = np.random.default_rng(3)
    labels, scores = rng.integers(0, 4, 50), rng.normal(size=(50, 4))
    positive = labels[:, None] == np.arange(4)
    rows = np.repeat(np.arange(50), 4)
    one = auc_interval(scores.ravel(), positive.ravel(), clusters=rows)
    got = multiclass_auc_interval(scores, labels, average="micro")
    assert bounds(got) == pytest.approx(bounds(one), abs=1e-12)
    assert (got.n, got.n_clusters) == (50, None)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
def test_the_columns_may_come_in_any_order(method: str, average: str) -> None:
    rng = np.random.default_rng(4)
    names = np.array(["b", "c", "a"])
    true = rng.permutation(np.arange(45) % 3)
    scores = rng.integers(0, 9, (45, 3)) + 3.0 * (true[:, None] == np.arange(3))
    here = multiclass_auc_interval(scores, names[true], classes=["b", "c", "a"], method=method, average=average)
    there = multiclass_auc_interval(scores[:, [2, 0, 1]], names[true], method=method, average=average)
    assert there.estimate == pytest.approx(here.estimate, abs=1e-12)
    tolerance = 1e-12 if method in ("logit", "delong") else 0.03  # a bootstrap draws the classes in their order
    assert bounds(there) == pytest.approx(bounds(here), abs=tolerance)


def test_a_class_without_items_is_named() -> None:
    scores = np.random.default_rng(5).normal(size=(9, 3))
    with pytest.warns(RuntimeWarning, match="labels hold no item of class 2"):
        none = multiclass_auc_interval(scores, [0, 1] * 4 + [1], classes=[0, 1, 2])
    assert math.isnan(none.estimate)
    with pytest.warns(RuntimeWarning, match="labels hold one item of class 'c'"):
        one = multiclass_auc_interval(scores, list("aabbaabbc"), method="bca")
    assert math.isnan(one.low)
    assert not math.isnan(one.estimate)


def test_perfect_classes_get_the_wilson_bound() -> None:
    labels = np.arange(30) % 3
    got = multiclass_auc_interval(np.eye(3)[labels], labels, method="bca")
    assert (got.estimate, got.high) == (1.0, 1.0)
    assert got.low == mf.uncertainty.proportion_interval(10, 10).low


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([0.1, 0.2], [0, 1]), {}, ValueError, r"scores must have a row an item .* use auc_interval"),
        (([[0.1, 0.2], [math.nan, 1]], [0, 1]), {}, ValueError, r"scores\[1, 0\] is NaN"),
        (([["a", "b"]], [0]), {}, TypeError, "scores cannot be read as numbers"),
        ((np.eye(3), [0, 1]), {}, ValueError, r"labels must hold one value an item, shape \(3,\)"),
        ((np.eye(3), [0, 1, 1]), {}, ValueError, "labels hold 2 classes and scores 3 columns"),
        ((np.eye(3), [0, 1, 7]), {"classes": [0, 1, 2]}, ValueError, r"labels\[2\] is 7, which is not in classes"),
        ((np.eye(3), [0, 1, 1]), {"classes": [0, 1, 1]}, ValueError, "classes must name 3 different classes"),
        ((np.eye(3), [0, 1, 2]), {"multi_class": "raise"}, ValueError, "multi_class must be one of ovr, ovo"),
        ((np.eye(3), [0, 1, 2]), {"multi_class": "ovo", "average": "micro"}, ValueError, "average must be one of"),
        ((np.eye(3), [0, 1, 2]), {"method": "wilson"}, ValueError, "method must be one of logit, delong, bca"),
    ],
)
def test_wrong_tables_are_refused(arguments: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        multiclass_auc_interval(*arguments, **options)
