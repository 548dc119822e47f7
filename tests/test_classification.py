"""Intervals of accuracy, recalls and F1: known estimates, published variances, clusters, degenerate tables."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milfast.uncertainty import (
    Interval,
    accuracy_interval,
    balanced_accuracy_interval,
    bootstrap_interval,
    f1_interval,
    precision_interval,
    proportion_interval,
    sensitivity_interval,
    specificity_interval,
)
from milfast.uncertainty.confusion import Balanced, Counts, MeanF1, ShareRight
from milfast.uncertainty.intervals import _z

metrics = pytest.importorskip("sklearn.metrics")

RESAMPLED = ("bca", "percentile", "basic")
AVERAGES = ("binary", "micro", "macro", "weighted")
FUNCTIONS = (
    accuracy_interval,
    balanced_accuracy_interval,
    f1_interval,
    precision_interval,
    sensitivity_interval,
    specificity_interval,
)


def bounds(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def drawn(n: int, classes: int, right: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.choice(classes, n - classes, p=np.arange(1, classes + 1) / sum(range(classes + 1)))])  # fmt: skip  # noqa: E501
    return np.where(rng.random(n) < right, labels, rng.integers(0, classes, n)), labels


@st.composite
def classified(draw: st.DrawFn, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(4, 25))
    numbers = st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)
    labels = np.array(draw(numbers))
    labels[:2] = 0, 1
    return np.array(draw(numbers)), labels


# ---------------------------------------------------------------- estimates


@given(classified())
def test_estimates_are_those_of_scikit_learn(data: Any) -> None:
    predictions, labels = data
    assert accuracy_interval(predictions, labels).estimate == metrics.accuracy_score(labels, predictions)
    recalls = metrics.recall_score(labels, predictions, average=None, labels=np.unique(labels), zero_division=0)
    assert balanced_accuracy_interval(predictions, labels).estimate == pytest.approx(recalls.mean(), abs=1e-14)
    for average in ("micro", "macro", "weighted"):
        expected = metrics.f1_score(labels, predictions, average=average, zero_division=0)
        assert f1_interval(predictions, labels, average=average).estimate == pytest.approx(expected, abs=1e-14)
    for c in (0, 1):
        names = {"labels": [c], "average": "macro", "zero_division": np.nan}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            got = [
                function(predictions, labels, pos_label=c).estimate
                for function in (sensitivity_interval, precision_interval, f1_interval)
            ]
        expected = [f(labels, predictions, **names) for f in (metrics.recall_score, metrics.precision_score, metrics.f1_score)]  # fmt: skip  # noqa: E501
        assert got == pytest.approx(expected, abs=1e-14, nan_ok=True)


def test_specificity_is_the_sensitivity_of_the_other_class() -> None:
    predictions, labels = drawn(80, 2, 0.7)
    assert specificity_interval(predictions, labels) == sensitivity_interval(predictions, labels, pos_label=0)
    assert sensitivity_interval(predictions, labels).n == labels.sum()
    assert precision_interval(predictions, labels) == sensitivity_interval(labels, predictions)


@pytest.mark.parametrize("method", ["wilson", "clopper-pearson", "agresti-coull", "jeffreys"])
def test_shares_have_the_interval_of_a_proportion(method: str) -> None:
    predictions, labels = drawn(90, 2, 0.8)
    k = int(np.sum(predictions == labels))
    assert accuracy_interval(predictions, labels, method=method) == proportion_interval(k, 90, method=method)
    hits = int(np.sum(predictions & labels))
    assert sensitivity_interval(predictions, labels, method=method) == proportion_interval(
        hits, int(labels.sum()), method=method
    )


@pytest.mark.parametrize(
    "kind",
    [
        lambda x: np.where(x == 1, "yes", "no"),
        lambda x: np.where(x == 1, "yes", "no").tolist(),
        lambda x: x.astype(bool),
        lambda x: x.astype(np.uint8)[::-1][::-1],
        lambda x: 2 * x - 1,
        lambda x: x.astype(np.float32),
        lambda x: pytest.importorskip("pandas").Series(x, index=np.arange(len(x)) + 7),
        lambda x: pytest.importorskip("pandas").Series(np.where(x == 1, "yes", "no")).astype("category"),
    ],
)
def test_classes_of_any_kind_give_the_same(kind: Any) -> None:
    predictions, labels = drawn(60, 2, 0.8)
    other = kind(predictions), kind(labels)
    pos = "yes" if np.asarray(other[0]).dtype.kind in "UO" else None
    for function in FUNCTIONS:
        named = {} if function in (accuracy_interval, balanced_accuracy_interval) else {"pos_label": pos}
        assert function(*other, **named) == function(predictions, labels)


# ---------------------------------------------------------------- variances


@given(classified(), st.sampled_from(["balanced", "macro", "weighted", "right"]))
def test_slopes_are_those_of_the_value(data: Any, which: str) -> None:
    predictions, labels = data
    counts = Counts.of(predictions, labels, None)
    function: Any = {
        "balanced": Balanced(counts.rows > 0),
        "macro": MeanF1(counts.rows + counts.columns > 0, False),
        "weighted": MeanF1(counts.rows + counts.columns > 0, True),
        "right": ShareRight(),
    }[which]
    k, step = len(counts.table), 1e-6
    shifts = step * np.eye(k * k).reshape(-1, k, k)
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = (function.value(counts.table + shifts) - function.value(counts.table - shifts)) / (2 * step)
    occupied = counts.table.ravel() > 0
    got = function.gradient(counts.table).ravel()
    np.testing.assert_allclose(got[occupied], slopes[occupied], rtol=0, atol=1e-8)
    assert abs(got @ counts.table.ravel()) < 1e-12


def takahashi(predictions: np.ndarray, labels: np.ndarray) -> float:
    """Variance of the macro F1 as in the appendix of Takahashi et al. (2022), term by term."""
    p = metrics.confusion_matrix(labels, predictions) / len(labels)
    k = len(p)
    both = p.sum(axis=0) + p.sum(axis=1)
    f = 2 * p.diagonal() / both
    total = 0.0
    for i in range(k):
        wrong = both[i] - 2 * p[i, i]
        total += f[i] * wrong / both[i] ** 2 * (wrong / both[i] + f[i] / 2)
        for j in range(k):
            if i != j:
                total += p[i, j] * f[i] * f[j] / (both[i] * both[j])
    return 2 * total / (k**2 * len(labels))


@given(classified())
def test_the_variance_of_f1_is_that_of_takahashi(data: Any) -> None:
    predictions, labels = data
    z, variance = _z(0.5), takahashi(predictions, labels)
    macro = f1_interval(predictions, labels, average="macro", method="delta", level=0.5)
    if variance > 1e-20 and macro.low > 0 and macro.high < 1:
        assert macro.half_width == pytest.approx(z * math.sqrt(variance), abs=1e-12)
    micro = f1_interval(predictions, labels, average="micro", method="delta", level=0.5)
    if 0 < micro.estimate < 1 and micro.low > 0 and micro.high < 1:
        f = micro.estimate
        assert micro.half_width == pytest.approx(z * math.sqrt(f * (1 - f) / len(labels)), abs=1e-12)


def test_f1_of_a_class_has_the_interval_of_a_share_carried_over() -> None:
    predictions, labels = drawn(70, 2, 0.6)
    tp, some = int(np.sum(predictions & labels)), int(np.sum(predictions | labels))
    for method in ("wilson", "clopper-pearson"):
        share = proportion_interval(tp, some, method=method)
        got = f1_interval(predictions, labels, method=method)
        assert bounds(got) == pytest.approx([2 * b / (1 + b) for b in bounds(share)], abs=1e-14)
        assert got.n == some
    micro = f1_interval(predictions, labels, average="micro")
    assert micro == accuracy_interval(predictions, labels)


def test_mover_by_hand() -> None:
    # recalls 18 of 20 and 27 of 30
    predictions, labels = [1] * 18 + [0] * 2 + [0] * 27 + [1] * 3, [1] * 20 + [0] * 30
    a, b = proportion_interval(18, 20), proportion_interval(27, 30)
    got = balanced_accuracy_interval(predictions, labels)
    assert got.low == pytest.approx(0.9 - math.hypot(0.9 - a.low, 0.9 - b.low) / 2, abs=1e-14)
    assert got.high == pytest.approx(0.9 + math.hypot(a.high - 0.9, b.high - 0.9) / 2, abs=1e-14)


@given(classified(2))
def test_of_one_class_the_balanced_accuracy_is_its_recall(data: Any) -> None:
    predictions, labels = data
    chosen = labels == 1
    got = balanced_accuracy_interval(predictions[chosen], labels[chosen])
    one = sensitivity_interval(predictions, labels)
    assert bounds(got) == pytest.approx(bounds(one), abs=1e-14)


# ---------------------------------------------------------------- clusters


@given(st.data())
def test_the_effective_number_of_items_by_the_definition(data: st.DataObject) -> None:
    n = data.draw(st.integers(4, 30))
    predictions, labels, clusters = (
        np.array(data.draw(st.lists(st.integers(0, top), min_size=n, max_size=n))) for top in (1, 1, 5)
    )
    clusters[:2] = 0, 1
    got = accuracy_interval(predictions, labels, clusters=clusters)
    right = predictions == labels
    p, names = right.mean(), sorted(set(clusters.tolist()))
    rests = [float(np.sum(right[clusters == c]) - p * np.sum(clusters == c)) for c in names]
    variance = len(names) / (len(names) - 1) * sum(r**2 for r in rests) / n**2
    from scipy.stats import norm, t

    if p in (0, 1):
        effective = float(len(names))
    else:
        alike = n if variance == 0 else min(n, p * (1 - p) / variance)
        effective = alike * (norm.ppf(0.975) / t.ppf(0.975, len(names) - 1)) ** 2
    z2 = norm.ppf(0.975) ** 2
    centre = (p + z2 / (2 * effective)) / (1 + z2 / effective)
    half = math.sqrt(z2 * (p * (1 - p) / effective + z2 / (4 * effective**2))) / (1 + z2 / effective)
    assert bounds(got) == pytest.approx((max(0, centre - half), min(1, centre + half)), abs=1e-10)
    assert got.n_clusters == len(names)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("method", ["logit", "delta"])
def test_clusters_of_one_are_no_clusters(average: str, method: str) -> None:
    predictions, labels = drawn(150, 2 if average == "binary" else 3, 0.7)
    alone = f1_interval(predictions, labels, average=average, method=method)
    single = f1_interval(predictions, labels, average=average, method=method, clusters=np.arange(150))
    from scipy.stats import t

    wider = math.sqrt(150 / 149) * t.ppf(0.975, 149) / _z(0.95)
    if method == "delta":
        assert single.half_width == pytest.approx(alone.half_width * wider, rel=1e-9)
    else:
        assert single.half_width == pytest.approx(alone.half_width * wider, rel=1e-3)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_copies_in_a_cluster_add_nothing(function: Any) -> None:
    predictions, labels = drawn(40, 2, 0.7)
    methods = ["logit", "bca"] if function in (f1_interval, balanced_accuracy_interval) else ["wilson", "bca"]
    methods += ["mover"] if function is balanced_accuracy_interval else []
    for method in methods:
        alone, copied = (
            function(
                np.repeat(predictions, k), np.repeat(labels, k), method=method, clusters=np.repeat(np.arange(40), k)
            )
            for k in (1, 6)
        )
        assert copied.estimate == pytest.approx(alone.estimate, abs=1e-14)
        # never more than there are: the variance between single items is a little less than that of theory
        assert bounds(copied) == pytest.approx(bounds(alone), abs=1e-9 if method != "bca" else 0.01)
        assert copied.half_width > 1.5 * function(np.repeat(predictions, 6), np.repeat(labels, 6)).half_width


def test_correlated_recalls_widen_the_balanced_accuracy() -> None:
    rng = np.random.default_rng(0)
    of, labels = np.repeat(np.arange(60), 10), np.tile([0, 1], 300)
    good = rng.beta(3, 1, 60)
    together = (rng.random(600) < good[of]).astype(int)
    here = balanced_accuracy_interval(np.where(together, labels, 1 - labels), labels, clusters=of)
    # the same with the fate of each class drawn for itself
    apart = (rng.random(600) < np.where(labels == 1, good[of], rng.permutation(good)[of])).astype(int)
    there = balanced_accuracy_interval(np.where(apart, labels, 1 - labels), labels, clusters=of)
    assert here.half_width > 1.15 * there.half_width
    boot = balanced_accuracy_interval(np.where(together, labels, 1 - labels), labels, clusters=of, method="bca")
    assert bounds(here) == pytest.approx(bounds(boot), abs=0.02)


@pytest.mark.parametrize("clusters", [None, np.arange(300) // 4])
def test_tables_are_resampled_as_items_are(clusters: Any) -> None:
    predictions, labels = drawn(300, 3, 0.7)
    for name, metric in (
        ("accuracy", lambda p, y: np.mean(p == y)),
        ("macro", lambda p, y: metrics.f1_score(y, p, average="macro")),
    ):
        items = bootstrap_interval(metric, predictions, labels, clusters=clusters, n_boot=600)
        if name == "accuracy":
            table = accuracy_interval(predictions, labels, method="bca", clusters=clusters)
        else:
            table = f1_interval(predictions, labels, average="macro", method="bca", clusters=clusters)
        assert bounds(table) == pytest.approx(bounds(items), abs=0.02)


@pytest.mark.parametrize("method", RESAMPLED)
def test_a_longer_run_starts_with_a_shorter_one(method: str) -> None:
    predictions, labels = drawn(50, 3, 0.7)
    from milfast.uncertainty import confusion

    counts = np.bincount(labels * 3 + predictions)
    counts = counts[counts > 0]
    groups = [np.arange(len(counts)) % 2 == side for side in (0, 1)]
    short, long = (confusion._multinomial(counts, groups, n, 5) for n in (20, 70))
    np.testing.assert_array_equal(long[:20], short)
    for group in groups:
        assert set(long[:, group].sum(axis=1).tolist()) == {int(counts[group].sum())}
    got = [f1_interval(predictions, labels, average="macro", method=method) for _ in range(2)]
    assert got[0] == got[1]


# ---------------------------------------------------------------- degenerate tables


@pytest.mark.parametrize("clusters", [None, np.arange(40) // 4])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_right_is_no_certainty(function: Any, clusters: Any) -> None:
    labels = np.arange(40) % 2
    methods = ["bca", "percentile", "basic"]
    methods += ["logit", "delta"] if function in (balanced_accuracy_interval, f1_interval) else ["wilson"]
    for method in methods:
        interval = function(labels, labels, method=method, clusters=clusters)
        assert (interval.estimate, interval.high) == (1.0, 1.0)
        assert 0.6 < interval.low < 0.95
        worst = function(1 - labels, labels, method=method, clusters=clusters)
        assert (worst.estimate, worst.low) == (0.0, 0.0)
        assert 0.05 < worst.high < 0.5


def test_what_is_undefined_says_so() -> None:
    nothing, labels = np.zeros(6, dtype=int), np.array([0, 1, 0, 1, 0, 0])
    with pytest.warns(RuntimeWarning, match="there is nothing called positive: the share is undefined"):
        got = precision_interval(nothing, labels)
    assert math.isnan(got.estimate)
    assert got.to_dict()["estimate"] is None
    with pytest.warns(RuntimeWarning, match="there is no positive"):
        assert math.isnan(sensitivity_interval(labels, nothing).low)
    with pytest.warns(RuntimeWarning, match="there is no negative"):
        assert math.isnan(specificity_interval(labels, nothing + 1).low)
    for method in ("wilson", "logit", "bca"):
        with pytest.warns(RuntimeWarning, match="nothing positive or called so"):
            assert math.isnan(f1_interval(nothing, nothing, method=method).estimate)
    assert f1_interval(nothing, labels).estimate == 0.0


def test_one_cluster_with_all_that_counts_shows_no_spread() -> None:
    predictions, labels, clusters = [1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 2]
    with pytest.warns(RuntimeWarning, match="one cluster holds all that counts"):
        got = sensitivity_interval(predictions, labels, clusters=clusters)
    assert (got.estimate, got.n_clusters) == (0.5, 1)
    assert math.isnan(got.low)
    with pytest.warns(RuntimeWarning, match="one cluster holds all of a class"):
        assert math.isnan(balanced_accuracy_interval(predictions, labels, clusters=clusters).low)


def test_resamples_without_a_rare_class_are_left_out_or_avoided() -> None:
    labels = np.array([0] * 20 + [1] * 20 + [2])
    predictions = np.where(np.arange(41) % 5 == 0, 1 - np.minimum(labels, 1), labels)
    with pytest.warns(RuntimeWarning, match=r"resamples had no value \(a class is missing\)"):
        plain = f1_interval(predictions, labels, average="macro", method="percentile")
    assert plain.n_undefined is not None
    assert plain.n_undefined / 2000 == pytest.approx((40 / 41) ** 41, abs=0.05)
    kept = f1_interval(predictions, labels, average="macro", method="percentile", stratified=True)
    assert kept.n_undefined == 0
    # a class without a true item has no weight
    assert f1_interval(predictions, labels, average="weighted", method="percentile").n_undefined == 0


@pytest.mark.parametrize("average", AVERAGES)
def test_stratified_resamples_keep_the_classes(average: str) -> None:
    # all of class 0 right, half of class 1: how many of each there are is most of what a plain resample varies
    labels = np.repeat([0, 1], 50)
    predictions = np.where(np.arange(100) < 75, 0, 1)
    plain, kept = (
        f1_interval(predictions, labels, average=average, method="percentile", stratified=s) for s in (False, True)
    )
    if average == "micro":
        # a quarter is wrong, all of it in class 1: variances of 0.75 * 0.25 and of 0.5 * 0.5 / 2
        assert kept.half_width / plain.half_width == pytest.approx(math.sqrt((0.25 / 2) / (0.75 * 0.25)), rel=0.1)
    assert bounds(kept) != bounds(plain)


def test_a_class_that_is_only_called_counts_for_macro_f1() -> None:
    predictions, labels = [0, 1, 2, 1, 0, 1], [0, 1, 1, 1, 0, 0]
    got = f1_interval(predictions, labels, average="macro")
    assert got.estimate == pytest.approx(metrics.f1_score(labels, predictions, average="macro"), abs=1e-15)
    assert got.low > 0


def test_the_normal_interval_warns() -> None:
    with pytest.warns(RuntimeWarning, match="the normal interval covers too rarely"):
        accuracy_interval([1] * 20, [1] * 19 + [0], method="normal")


def test_one_item() -> None:
    for function in FUNCTIONS[:2]:
        got = function([1], [1])
        assert bounds(got) == (proportion_interval(1, 1).low, 1.0)


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("function", "arguments", "options", "error", "message"),
    [
        (accuracy_interval, ([0.9, 0.2], [1, 0]), {}, ValueError, r"predictions\[0\] is 0.9, which is no class"),
        (accuracy_interval, ([1, 0, 1], [1, 0]), {}, ValueError, "predictions has 3 items and labels has 2"),
        (accuracy_interval, ([], []), {}, ValueError, "must not be empty"),
        (accuracy_interval, ([[1, 0]], [1]), {}, ValueError, r"predictions must hold one class an item.*\(1, 2\)"),
        (accuracy_interval, ([1.0, math.nan], [1, 0]), {}, ValueError, r"predictions\[1\] is nan"),
        (accuracy_interval, (["a", "b"], ["a", None]), {}, ValueError, r"labels\[1\] is None"),
        (accuracy_interval, (["1", "0"], [1, 0]), {}, TypeError, "are of different kinds"),
        (accuracy_interval, ([1, 0, 1], [1, -1, 1]), {}, ValueError, r"in different ways, \{0, 1\} and \{-1, 1\}"),
        (f1_interval, ([1, 0, 1], [1, -1, 1]), {"average": "macro"}, ValueError, "in different ways"),
        (accuracy_interval, ([1, 0], [1, 0]), {"method": "mover"}, ValueError, "method must be one of wilson, normal"),
        (accuracy_interval, ([1, 0], [1, 0]), {"level": 0}, ValueError, "level"),
        (accuracy_interval, ([1, 0], [1, 0]), {"clusters": [1]}, ValueError, "clusters must hold one value an item"),
        (accuracy_interval, ([1, 0], [1, 0]), {"method": "bca", "n_boot": -1}, ValueError, "n_boot"),
        (sensitivity_interval, ([2, 0, 1], [2, 0, 1]), {}, ValueError, "predictions need pos_label.* hold 2, 0 and"),
        (sensitivity_interval, (["a", "b"], ["a", "b"]), {}, ValueError, "predictions need pos_label"),
        (precision_interval, ([1, 0], [1, 0]), {"pos_label": 7}, ValueError, "pos_label=7 occurs neither"),
        (f1_interval, ([1, 0], [1, 0]), {"average": "samples"}, ValueError, "average must be one of binary, micro"),
        (f1_interval, ([1, 0], [1, 0]), {"average": "macro", "method": "wilson"}, ValueError, "method must be one of"),
        (f1_interval, ([1, 0], [1, 0]), {"stratified": True, "clusters": [0, 1]}, ValueError, "stratified=True keeps"),
        (balanced_accuracy_interval, ([1, 0], [1, 0]), {"method": "wilson"}, ValueError, "method must be one of mover"),
    ],
)
def test_wrong_input_is_refused(function: Any, arguments: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        function(*arguments, **options)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_few_resamples_are_warned_about_where_the_call_stands(function: Any) -> None:
    predictions, labels = drawn(40, 2, 0.7)
    with pytest.warns(RuntimeWarning, match="use n_boot=200 or more") as seen:
        function(predictions, labels, method="bca", n_boot=60)
    assert {w.filename for w in seen} == {__file__}


@pytest.mark.parametrize("function", [sensitivity_interval, f1_interval])
def test_undefined_shares_are_warned_about_where_the_call_stands(function: Any) -> None:
    with pytest.warns(RuntimeWarning, match="is undefined") as seen:
        function([0, 0], [0, 0])
    assert seen[0].filename == __file__
