"""Intervals for accuracy, sensitivity, specificity, precision, balanced accuracy and F1, clustered items or not."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast._core import binary_labels
from milfast.seeding import root_seed, seed_value
from milfast.uncertainty.areas import Resampler, _among
from milfast.uncertainty.confusion import Balanced, Counts, MeanF1, ShareRight, interval_of_counts
from milfast.uncertainty.intervals import _PROPORTION_RULES, Interval, _choose, _require_level, _wilson, _z
from milfast.uncertainty.resampling import (
    METHODS,
    acceleration,
    cluster_codes,
    interval_of_replicates,
    require_draws,
    require_no_nan,
)
from milfast.uncertainty.tails import t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import Bags
    from milfast.seeding import RandomState


def accuracy_interval(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    level: float = 0.95,
    method: str = "wilson",
    clusters: ArrayLike | Bags | None = None,
    n_boot: int = 2000,
    random_state: RandomState = 0,
) -> Interval:
    """Interval for the share of items that were classified right.

    Parameters
    ----------
    predictions, labels : array_like, shape (n,)
        Predicted and true classes, of any number.
    level : float
        Nominal coverage.
    method : str
        A rule of `proportion_interval`, or ``"bca"``, ``"percentile"`` or ``"basic"`` as in `bootstrap_interval`.
    clusters : array_like, shape (n,), or Bags, optional
        What each item belongs to, such as its patient, when items of one are alike. A rule of `proportion_interval`
        then takes the effective number of items, by the variance between clusters and Student's quantile (Korn and
        Graubard 1998, Surv. Methodol. 24), never more than there are; where all items are right, or none, the number of
        clusters. A bootstrap draws whole clusters.
    n_boot : int
        Resamples of a bootstrap.
    random_state : int, Generator, SeedSequence or None
        Of a bootstrap.

    Returns
    -------
    Interval
        Where all items are right, or none, a bootstrap shows no spread and Wilson's bounds take its place.

    Raises
    ------
    ValueError
        When lengths differ, arrays are empty or hold NaN, predictions are scores, or an option is unknown or out of
        range.
    TypeError
        When predictions and labels cannot be compared.

    Warns
    -----
    RuntimeWarning
        As `proportion_interval` and `bootstrap_interval` do.

    Examples
    --------
    >>> from milfast.uncertainty import accuracy_interval
    >>> labels = ["cat", "dog", "cow", "dog"] * 25
    >>> predictions = ["cat", "dog", "cow", "cat"] * 20 + labels[80:]
    >>> accuracy_interval(predictions, labels)
    Interval(0.80 [0.71, 0.87], level=0.95, method='wilson', n=100)
    >>> accuracy_interval(predictions, labels, clusters=[i // 10 for i in range(100)])
    Interval(0.80 [0.70, 0.87], level=0.95, method='wilson', n=100, n_clusters=10)
    """
    right = _right(predictions, labels)
    options = _Options.read(level, method, (*_PROPORTION_RULES, *METHODS), clusters, len(right), n_boot, random_state)
    return _proportion(right, None, options, "no item")


def sensitivity_interval(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    pos_label: Any = None,
    level: float = 0.95,
    method: str = "wilson",
    clusters: ArrayLike | Bags | None = None,
    n_boot: int = 2000,
    random_state: RandomState = 0,
) -> Interval:
    """Interval for the share of positives that were found: sensitivity, also called recall.

    Parameters
    ----------
    predictions, labels : array_like, shape (n,)
        Predicted and true classes, in this order: exchanged they give the precision.
    pos_label : scalar, optional
        The positive class; all others are negative. Needed unless classes are {0, 1}, bool or {-1, 1}.
    level, method, clusters, n_boot, random_state
        As in `accuracy_interval`, among the positives.

    Returns
    -------
    Interval
        Its `n` is the number of positives, which are taken as given. NaN without a positive.

    Raises
    ------
    ValueError, TypeError
        As `accuracy_interval`; also when `pos_label` is needed or never occurs.

    Warns
    -----
    RuntimeWarning
        When the share is undefined, and as `accuracy_interval` does.

    Examples
    --------
    >>> from milfast.uncertainty import sensitivity_interval
    >>> sensitivity_interval([1] * 18 + [0] * 32, [1] * 20 + [0] * 30)
    Interval(0.90 [0.70, 0.97], level=0.95, method='wilson', n=20)
    """
    predicted, true = _binary(predictions, labels, pos_label)
    options = _Options.read(level, method, (*_PROPORTION_RULES, *METHODS), clusters, len(true), n_boot, random_state)
    return _proportion(predicted & true, true, options, "no positive")


def specificity_interval(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    pos_label: Any = None,
    level: float = 0.95,
    method: str = "wilson",
    clusters: ArrayLike | Bags | None = None,
    n_boot: int = 2000,
    random_state: RandomState = 0,
) -> Interval:
    """Interval for the share of negatives that were told as such.

    Parameters
    ----------
    predictions, labels, pos_label, level, method, clusters, n_boot, random_state
        As in `sensitivity_interval`.

    Returns
    -------
    Interval
        Its `n` is the number of negatives. NaN without a negative.

    Raises
    ------
    ValueError, TypeError
        As `sensitivity_interval`.

    Warns
    -----
    RuntimeWarning
        As `sensitivity_interval` does.

    Examples
    --------
    >>> from milfast.uncertainty import specificity_interval
    >>> specificity_interval([1] * 18 + [0] * 32, [1] * 20 + [0] * 30)
    Interval(1.00 [0.89, 1.00], level=0.95, method='wilson', n=30)
    """
    predicted, true = _binary(predictions, labels, pos_label)
    options = _Options.read(level, method, (*_PROPORTION_RULES, *METHODS), clusters, len(true), n_boot, random_state)
    return _proportion(~predicted & ~true, ~true, options, "no negative")


def precision_interval(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    pos_label: Any = None,
    level: float = 0.95,
    method: str = "wilson",
    clusters: ArrayLike | Bags | None = None,
    n_boot: int = 2000,
    random_state: RandomState = 0,
) -> Interval:
    """Interval for the share of true ones among what is called positive: precision, or positive predictive value.

    It holds for the share of positives that `labels` have, and says nothing of a population with another. With the
    negative class as `pos_label` it is the negative predictive value.

    Parameters
    ----------
    predictions, labels, pos_label, level, method, clusters, n_boot, random_state
        As in `sensitivity_interval`.

    Returns
    -------
    Interval
        Its `n` is the number of predicted positives. NaN where nothing is called positive.

    Raises
    ------
    ValueError, TypeError
        As `sensitivity_interval`.

    Warns
    -----
    RuntimeWarning
        As `sensitivity_interval` does.

    Examples
    --------
    >>> from milfast.uncertainty import precision_interval
    >>> precision_interval([1] * 18 + [0] * 32, [1] * 12 + [0] * 38)
    Interval(0.67 [0.44, 0.84], level=0.95, method='wilson', n=18)
    """
    predicted, true = _binary(predictions, labels, pos_label)
    options = _Options.read(level, method, (*_PROPORTION_RULES, *METHODS), clusters, len(true), n_boot, random_state)
    return _proportion(predicted & true, predicted, options, "nothing called positive")


def balanced_accuracy_interval(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    level: float = 0.95,
    method: str = "mover",
    clusters: ArrayLike | Bags | None = None,
    n_boot: int = 2000,
    random_state: RandomState = 0,
) -> Interval:
    """Interval for the mean of the classes' recalls.

    Parameters
    ----------
    predictions, labels : array_like, shape (n,)
        Predicted and true classes, in this order.
    level : float
        Nominal coverage.
    method : {"mover", "logit", "delta", "bca", "percentile", "basic"}
        With K classes, recalls r_k and their Wilson bounds l_k, u_k:

        - ``"mover"``: from mean - sqrt(sum (r_k - l_k)^2) / K to mean + sqrt(sum (u_k - r_k)^2) / K, as recalls of
          different classes are independent (Zou, Huang and Zhang 2009, Comput. Stat. Data Anal. 53; the interval of
          Newcombe 1998 for the difference of two proportions is of this kind).
        - ``"delta"``: mean +- z sqrt(sum r_k (1 - r_k) / n_k) / K, cut to [0, 1].
        - ``"logit"``: that variance on the logit scale. Like the former it is too sure where a small class is all
          right.
        - ``"bca"``, ``"percentile"``, ``"basic"``: a bootstrap that keeps the size of each class.
    clusters : array_like, shape (n,), or Bags, optional
        What each item belongs to. ``"mover"`` then takes Wilson bounds for the effective number of items, as
        `accuracy_interval` does, and the correlations of the recalls between clusters: to the squares are added the
        products of each two, times their correlation. For ``"logit"`` and ``"delta"`` the variance is that of what
        whole clusters add to the mean, with Student's quantile. A bootstrap draws whole clusters.
    n_boot : int
        Resamples of a bootstrap.
    random_state : int, Generator, SeedSequence or None
        Of a bootstrap.

    Returns
    -------
    Interval
        Classes that `labels` lack are left out. Where the variance is 0, Wilson's bounds among the items, or clusters,
        of the smallest class take the place of all but ``"mover"``.

    Raises
    ------
    ValueError, TypeError
        As `accuracy_interval`.

    Warns
    -----
    RuntimeWarning
        As `bootstrap_interval` does.

    Examples
    --------
    >>> from milfast.uncertainty import balanced_accuracy_interval
    >>> balanced_accuracy_interval([1] * 18 + [0] * 32, [1] * 20 + [0] * 30)
    Interval(0.95 [0.83, 0.99], level=0.95, method='mover', n=50)
    """
    predicted, true = _classes_of(predictions, labels)
    options = _Options.read(
        level, method, ("mover", "logit", "delta", *METHODS), clusters, len(true), n_boot, random_state
    )
    counts = Counts.of(predicted, true, options.cluster)
    if method == "mover":
        return _mover(counts, options)
    return _of_counts(Balanced(counts.rows > 0), counts, options, stratified=options.cluster is None)


def f1_interval(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    average: str = "binary",
    pos_label: Any = None,
    level: float = 0.95,
    method: str | None = None,
    clusters: ArrayLike | Bags | None = None,
    stratified: bool = False,
    n_boot: int = 2000,
    random_state: RandomState = 0,
) -> Interval:
    """Interval for F1.

    Parameters
    ----------
    predictions, labels : array_like, shape (n,)
        Predicted and true classes.
    average : {"binary", "micro", "macro", "weighted"}
        ``"binary"``: F1 of the positive class. ``"micro"``: of all decisions together, which is the accuracy.
        ``"macro"``: the mean over the classes that occur. ``"weighted"``: the mean by the number of true items.
    pos_label : scalar, optional
        The positive class; all others are negative. Needed unless classes are {0, 1}, bool or {-1, 1}.
    level : float
        Nominal coverage.
    method : str, optional
        - a rule of `proportion_interval`, for ``"binary"`` and ``"micro"``; ``"wilson"`` is the default there. F1 is
          2 J / (1 + J), where J is the share of true positives among all items that are positive or called so, and
          the bounds of this share are carried over (Lam, Gopal and Qian 2023, arXiv 2309.14621, the indirect method).
        - ``"delta"``: F1 +- z sqrt(variance), cut to [0, 1], with the variance of the delta method for multinomial
          counts (Takahashi, Yamamoto, Kuchiba and Koyama 2022, Appl. Intell. 52).
        - ``"logit"``, the default for ``"macro"`` and ``"weighted"``: that variance on the logit scale.
        - ``"bca"``, ``"percentile"``, ``"basic"``: a bootstrap.
    clusters : array_like, shape (n,), or Bags, optional
        What each item belongs to. The variance is then that of what whole clusters add to F1, with Student's quantile;
        a rule of `proportion_interval` takes the effective number of items, as in `accuracy_interval`; a bootstrap
        draws whole clusters.
    stratified : bool
        Whether a bootstrap keeps the number of true items of each class. Use it where the study chose these numbers, or
        where a class is so rare that resamples lack it. Not with `clusters`.
    n_boot : int
        Resamples of a bootstrap.
    random_state : int, Generator, SeedSequence or None
        Of a bootstrap.

    Returns
    -------
    Interval
        With a rule of `proportion_interval` for ``"binary"`` its `n` is the number of items that are positive or called
        so; NaN without one. Where the variance is 0, Wilson's bounds among the items, or clusters, of the smallest
        class take the place of the others.

    Raises
    ------
    ValueError, TypeError
        As `sensitivity_interval`; also when `method` does not go with `average`, or `stratified` with `clusters`.

    Warns
    -----
    RuntimeWarning
        When F1 is undefined, and as `bootstrap_interval` does.

    Examples
    --------
    >>> from milfast.uncertainty import f1_interval
    >>> f1_interval([1] * 18 + [0] * 32, [1] * 12 + [0] * 38)
    Interval(0.80 [0.61, 0.91], level=0.95, method='wilson', n=18)
    >>> f1_interval([1] * 18 + [0] * 32, [1] * 12 + [0] * 38, average="macro")
    Interval(0.86 [0.72, 0.93], level=0.95, method='logit', n=50)
    """
    _among(average, "average", ("binary", "micro", "macro", "weighted"))
    one = average in ("binary", "micro")
    used = method if method is not None else ("wilson" if one else "logit")
    allowed = ("logit", "delta", *METHODS)
    if average == "binary":
        called, positive = _binary(predictions, labels, pos_label)
        predicted, true = called.astype(np.intp), positive.astype(np.intp)
    else:
        predicted, true = _classes_of(predictions, labels)
    options = _Options.read(
        level, used, (*_PROPORTION_RULES, *allowed) if one else allowed, clusters, len(true), n_boot, random_state
    )
    if stratified and options.cluster is not None:
        raise ValueError(
            "stratified=True keeps the numbers of items, but clusters are drawn whole: leave one of them out"
        )
    if average == "micro" and (used in _PROPORTION_RULES or (used in METHODS and not stratified)):
        return _proportion(predicted == true, None, options, "no item")
    if average == "binary":
        both, some = called & positive, called | positive
        if used in _PROPORTION_RULES or not some.any():
            share = _proportion(both, some, options, "nothing positive or called so")
            low, high = (2 * bound / (1 + bound) for bound in (share.low, share.high))
            estimate = 2 * share.estimate / (1 + share.estimate)
            return Interval(estimate, low, high, float(level), share.method, share.n, n_clusters=share.n_clusters)
        counts = Counts.of(predicted, true, options.cluster)
        return _of_counts(MeanF1(np.array([False, True]), False), counts, options, stratified=stratified)
    counts = Counts.of(predicted, true, options.cluster)
    if average == "micro":
        return _of_counts(ShareRight(), counts, options, stratified=stratified)
    return _of_counts(
        MeanF1(counts.rows + counts.columns > 0, average == "weighted"), counts, options, stratified=stratified
    )


# -------------------------------------------------------------------- proportions


@dataclass(frozen=True)
class _Options:
    """What all of these functions are told beside the items."""

    level: float
    method: str
    cluster: NDArray[np.intp] | None
    n_boot: int
    random_state: RandomState

    @classmethod
    def read(
        cls,
        level: float,
        method: str,
        allowed: tuple[str, ...],
        clusters: Any,
        n: int,
        n_boot: int,
        random_state: RandomState,
    ) -> _Options:
        _require_level(level)
        _choose(method, dict.fromkeys(allowed))
        draws = require_draws(n_boot, level, stacklevel=4) if method in METHODS else 0
        return cls(float(level), method, cluster_codes(clusters, n), draws, random_state)


def _proportion(
    success: NDArray[np.bool_], counted: NDArray[np.bool_] | None, options: _Options, none: str
) -> Interval:
    """Interval for the share of successes among the items that count."""
    n = len(success) if counted is None else int(np.count_nonzero(counted))
    k = int(np.count_nonzero(success))
    if n == 0:
        warnings.warn(f"there is {none}: the share is undefined", RuntimeWarning, stacklevel=3)
        return Interval(math.nan, math.nan, math.nan, options.level, f"undefined ({none})", 0)
    if options.cluster is None:
        if options.method in _PROPORTION_RULES:
            if options.method == "normal" and min(k, n - k) < 10:
                warnings.warn(
                    f"the normal interval covers too rarely with fewer than 10 successes or failures (k={k}, n={n}): "
                    "use method='wilson'",
                    RuntimeWarning,
                    stacklevel=3,
                )
            low, high = _PROPORTION_RULES[options.method](k, n, options.level)
            return Interval(k / n, low, high, options.level, options.method, n)
        if k in (0, n):
            return Interval(k / n, *_wilson(k, n, options.level), options.level, "wilson (no spread)", n)
        root = root_seed(options.random_state)
        drawn = np.random.default_rng(seed_value(root, 0)).binomial(n, k / n, size=options.n_boot)
        without = np.array([(k - 1) / (n - 1), k / (n - 1)]) if n > 1 else np.array([math.nan])
        return interval_of_replicates(
            k / n,
            drawn / n,
            n=n,
            level=options.level,
            method=options.method,
            accelerated=lambda: acceleration((without, np.array([k, n - k]))),
            bounds=(0.0, 1.0),
            seed=root,
            stacklevel=4,
        )
    # Clusters without an item that counts say nothing of the share.
    inside = options.cluster if counted is None else options.cluster[counted]
    sizes = np.bincount(inside)
    held = sizes > 0
    hits = np.bincount(inside, success if counted is None else success[counted])[held]
    sizes = sizes[held]
    n_clusters = len(sizes)
    p = k / n
    if n_clusters == 1:
        what = "one cluster holds all that counts"
        warnings.warn(f"{what}: there is no spread between clusters to see", RuntimeWarning, stacklevel=3)
        return Interval(p, math.nan, math.nan, options.level, f"undefined ({what})", n, n_clusters=1)
    rests = hits - p * sizes
    variance = float(rests @ rests) * n_clusters / (n_clusters - 1) / n**2
    if k in (0, n) or options.method in _PROPORTION_RULES:
        known = options.method in _PROPORTION_RULES
        rule = _PROPORTION_RULES[options.method] if known else _wilson
        effective = float(n_clusters) if k in (0, n) else _effective(p, n, variance, n_clusters, options.level)
        low, high = rule(p * effective, effective, options.level)
        used = options.method if known else "wilson (no spread)"
        return Interval(p, low, high, options.level, used, n, n_clusters=n_clusters)
    root = root_seed(options.random_state)

    def shares(times: NDArray[np.int64]) -> NDArray[np.float64]:
        weights = times.astype(np.float64)
        return (weights @ hits) / (weights @ sizes)

    return interval_of_replicates(
        p,
        Resampler(n_clusters, None, None).replicates(shares, options.n_boot, seed_value(root, 0)),
        n=n,
        level=options.level,
        method=options.method,
        accelerated=lambda: acceleration(((k - hits) / (n - sizes), None)),
        bounds=(0.0, 1.0),
        seed=root,
        n_clusters=n_clusters,
        stacklevel=4,
    )


def _of_counts(
    function: Balanced | MeanF1 | ShareRight, counts: Counts, options: _Options, *, stratified: bool
) -> Interval:
    return interval_of_counts(
        function,
        counts,
        level=options.level,
        method=options.method,
        n_boot=options.n_boot,
        stratified=stratified,
        random_state=options.random_state,
        stacklevel=5,
    )


def _mover(counts: Counts, options: _Options) -> Interval:
    """Mean of recalls by the bounds of each (method of variance estimates recovery)."""
    here = np.flatnonzero(counts.rows)
    sizes, recalls = counts.rows[here], counts.diagonal[here] / counts.rows[here]
    correlations, n_clusters = np.eye(len(here)), None
    effective = sizes.astype(np.float64)
    if options.cluster is not None:
        true, predicted = np.divmod(counts.cell, len(counts.table))
        n_clusters = int(options.cluster.max()) + 1
        k = np.searchsorted(here, true)
        place = options.cluster * len(here) + k
        shape = (n_clusters, len(here))
        held = np.bincount(place, minlength=n_clusters * len(here)).reshape(shape)
        rests = np.bincount(place, (true == predicted) - recalls[k], held.size).reshape(shape) / sizes
        holding = np.count_nonzero(held, axis=0)
        if holding.min() == 1:
            what = "one cluster holds all of a class"
            warnings.warn(f"{what}: there is no spread between clusters to see", RuntimeWarning, stacklevel=3)
            mean = float(np.mean(recalls))
            used = f"undefined ({what})"
            return Interval(mean, math.nan, math.nan, options.level, used, counts.n, n_clusters=n_clusters)
        products = rests.T @ rests
        deviations = np.sqrt(products.diagonal())
        both = np.outer(deviations, deviations)
        correlations = np.divide(products, both, out=np.eye(len(here)), where=both > 0)
        np.fill_diagonal(correlations, 1.0)
        for i, (recall, size, clusters) in enumerate(zip(recalls, sizes, holding, strict=True)):
            variance = float(products[i, i]) * clusters / (clusters - 1)
            effective[i] = (
                clusters
                if recall in (0.0, 1.0)
                else _effective(float(recall), int(size), variance, int(clusters), options.level)
            )
    wilson = np.array([_wilson(float(r * n), float(n), options.level) for r, n in zip(recalls, effective, strict=True)])
    mean = float(np.mean(recalls))
    down, up = (recalls - wilson[:, 0]) / len(here), (wilson[:, 1] - recalls) / len(here)
    low, high = (math.sqrt(max(0.0, float(side @ correlations @ side))) for side in (down, up))
    return Interval(
        mean,
        max(0.0, mean - low),
        min(1.0, mean + high),
        options.level,
        options.method,
        counts.n,
        n_clusters=n_clusters,
    )


def _effective(p: float, n: int, variance: float, n_clusters: int, level: float) -> float:
    """How many independent items say as much."""
    alike = n if variance == 0 else min(n, p * (1 - p) / variance)
    return float(alike * (_z(level) / t_quantile(n_clusters - 1, level)) ** 2)


# -------------------------------------------------------------------- reading classes


def _pair(predictions: Any, labels: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    predicted, true = np.asarray(predictions), np.asarray(labels)
    for array, name in ((predicted, "predictions"), (true, "labels")):
        if array.ndim != 1:
            raise ValueError(f"{name} must hold one class an item, shape (n,); got shape {array.shape}")
    if len(predicted) != len(true):
        raise ValueError(f"predictions has {len(predicted)} items and labels has {len(true)}")
    if len(true) == 0:
        raise ValueError("predictions and labels must not be empty")
    require_no_nan(predicted, "predictions")
    require_no_nan(true, "labels")
    words = [array.dtype.kind in "USO" for array in (predicted, true)]
    if words[0] != words[1] and not all(array.dtype.kind in "biufO" for array in (predicted, true)):
        raise TypeError(f"predictions ({predicted.dtype}) and labels ({true.dtype}) are of different kinds")
    if predicted.dtype.kind == "f" and true.dtype.kind in "biu":
        odd = np.flatnonzero(predicted != np.floor(predicted))
        if len(odd):
            i = int(odd[0])
            raise ValueError(
                f"predictions[{i}] is {predicted[i]}, which is no class: compare scores with a threshold first"
            )
    return predicted, true


def _classes_of(predictions: Any, labels: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Numbers of the predicted and the true class of each item, in the order of all classes."""
    predicted, true = _pair(predictions, labels)
    try:
        _, numbers = np.unique(np.concatenate([predicted, true]), return_inverse=True)
    except TypeError as error:
        raise TypeError(f"predictions and labels hold values that cannot be ordered: {error}") from None
    _require_one_code(predicted, true)
    return numbers[: len(true)], numbers[len(true) :]


def _right(predictions: Any, labels: Any) -> NDArray[np.bool_]:
    """Which items were classified right; no need to sort the classes for that."""
    predicted, true = _pair(predictions, labels)
    _require_one_code(predicted, true)
    return np.asarray(predicted == true, dtype=np.bool_)


def _require_one_code(predicted: NDArray[Any], true: NDArray[Any]) -> None:
    """Refuse {0, 1} beside {-1, 1}: only the positives would ever agree."""
    pair = (predicted, true)
    if all(array.dtype.kind in "if" for array in pair) and {array.min() for array in pair} == {-1, 0}:
        minus, zero = pair if predicted.min() == -1 else pair[::-1]
        if np.all((minus == -1) | (minus == 1)) and np.all((zero == 0) | (zero == 1)):
            raise ValueError("predictions and labels code two classes in different ways, {0, 1} and {-1, 1}: use one")


def _binary(predictions: Any, labels: Any, pos_label: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which items are called positive, and which are."""
    predicted, true = _pair(predictions, labels)
    if pos_label is None:
        for array, name in ((predicted, "predictions"), (true, "labels")):
            try:
                binary_labels(array)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name} need pos_label, the class that is positive: {error}") from None
        return binary_labels(predicted), binary_labels(true)
    called, positive = np.asarray(predicted == pos_label), np.asarray(true == pos_label)
    if called.shape != true.shape or not (called.any() or positive.any()):
        raise ValueError(f"pos_label={pos_label!r} occurs neither in predictions nor in labels")
    return called, positive
