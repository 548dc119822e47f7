"""Intervals of areas under the ROC curve: resampled ones, of a part, of clustered items, of many classes."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from milfast._core import auc, auc_jackknife, binary_labels, bootstrap_auc, delong
from milfast.seeding import root_seed, seed_value
from milfast.uncertainty.intervals import (
    Interval,
    _choose,
    _expit,
    _number,
    _require_level,
    _short_class,
    _wilson,
)
from milfast.uncertainty.resampling import (
    METHODS,
    acceleration,
    cluster_codes,
    codes,
    interval_of_replicates,
    require_draws,
    sample_of,
)
from milfast.uncertainty.tails import t_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import Bags
    from milfast.seeding import RandomState

#: Rules that need nothing but an estimate and its variance.
CLOSED = ("logit", "delong")
#: Numbers that are weighted at once: few enough to stay near the processor.
AT_ONCE = 1 << 16


def area_interval(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    level: float,
    method: str,
    pos_label: Any,
    max_fpr: float | None,
    standardize: bool,
    clusters: ArrayLike | Bags | None,
    stratified: bool | None,
    n_boot: int,
    random_state: RandomState,
) -> Interval:
    """What `auc_interval` gives where DeLong's variance alone is not enough.

    Parameters
    ----------
    scores, labels, level, method, pos_label, max_fpr, standardize, clusters, stratified, n_boot, random_state
        As in `milfast.uncertainty.auc_interval`.

    Returns
    -------
    Interval
    """
    draws = require_draws(n_boot, level, stacklevel=4) if method in METHODS else 0
    whole, variance, n_pos, n_neg = delong(scores, labels, pos_label=pos_label)
    n = n_pos + n_neg
    if max_fpr is not None and not 0 < _number(max_fpr, "max_fpr") <= 1:
        raise ValueError(f"max_fpr must lie in (0, 1]; got {max_fpr}")
    partial = None if max_fpr is None or max_fpr == 1 else max_fpr
    area = whole
    if partial is not None and min(n_pos, n_neg) > 0:
        area = auc(scores, labels, max_fpr=partial, standardize=False, pos_label=pos_label)
    cluster = cluster_codes(clusters, n)
    n_clusters = None if cluster is None else int(cluster.max()) + 1
    positive = binary_labels(labels, pos_label=pos_label)
    scale = _Scale(partial, standardize)
    share, estimate = area / scale.most, scale.shown(area)
    # a partial area is a sum, which rounding may leave a hair beside nothing or all
    if partial is not None and min(share, 1 - share) < 1e-12:
        share = float(round(share))

    def made(bounds: tuple[float, float], used: str) -> Interval:
        low, high = (scale.shown(bound * scale.most) for bound in bounds)
        return Interval(estimate, low, high, float(level), used, n, n_pos=n_pos, n_neg=n_neg, n_clusters=n_clusters)

    counts = [n_pos, n_neg]
    if cluster is not None:  # a class shows as much spread as there are clusters with it
        counts = [len(np.unique(cluster[positive == kind])) for kind in (True, False)]
    if min(counts) < 2:
        what = _short_class(n_pos, n_neg)
        if min(n_pos, n_neg) > 1:
            what = f"one cluster with all {'positives' if counts[0] == 1 else 'negatives'}"
        warnings.warn(f"labels hold {what}: the {method} bounds are undefined", RuntimeWarning, stacklevel=3)
        return made((math.nan, math.nan), f"undefined ({what})")
    if share in (0.0, 1.0):
        smaller = min(counts[0], counts[1] if partial is None else max(1, math.floor(counts[1] * partial)))
        used = "wilson (AUC is 0 or 1)" if partial is None else "wilson (no area or all of it)"
        return made(_wilson(share * smaller, smaller, level), used)
    needs_ranking = partial is not None or cluster is not None
    ranking = Ranking.of(_plain(scores), positive, max_fpr=partial) if needs_ranking else None
    if ranking is not None:
        influence = ranking.influence()
        variance = variance_of(influence, positive.astype(np.intp), cluster)
    if variance == 0:
        return made((share, share), f"{method} (variance 0)")
    if method in CLOSED:
        freedom = None if cluster is None else min(counts) - 1
        return made(bounds_of_share(share, math.sqrt(variance) / scale.most, level, method, freedom), method)
    root = root_seed(random_state)
    seed = seed_value(root, 0)
    apart = _apart(positive.astype(np.intp), cluster, stratified)
    accelerated: Callable[[], float]
    if ranking is None:
        replicates = bootstrap_auc(
            scores, labels, draws, stratified=apart is not None, random_state=seed, pos_label=pos_label
        )

        def accelerated() -> float:
            without = auc_jackknife(scores, labels, pos_label=pos_label)
            parts = (without,) if apart is None else (without[positive], without[~positive])
            return acceleration(*((part, None) for part in parts))

    else:
        resampler = Resampler(n, apart, cluster)
        replicates = resampler.replicates(ranking.by(resampler.unit).areas, draws, seed)

        def accelerated() -> float:
            return resampler.acceleration(influence)

    # Resamples are compared with the area itself: the scale may round what is equal to different numbers.
    found = interval_of_replicates(
        area if ranking is None else float(ranking.areas(np.ones((1, n), dtype=np.int64))[0]),
        replicates,
        n=n,
        level=level,
        method=method,
        accelerated=accelerated,
        bounds=(0.0, scale.most),
        seed=root,
        n_pos=n_pos,
        n_neg=n_neg,
        n_clusters=n_clusters,
        stacklevel=4,
    )
    return replace(found, estimate=estimate, low=scale.shown(found.low), high=scale.shown(found.high))


def multiclass_auc_interval(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    multi_class: str = "ovr",
    average: str = "macro",
    level: float = 0.95,
    method: str = "logit",
    clusters: ArrayLike | Bags | None = None,
    n_boot: int = 2000,
    random_state: RandomState = 0,
) -> Interval:
    """Interval for the mean AUC over the classes, or pairs of classes, of a problem of many.

    Parameters
    ----------
    scores : array_like, shape (n, n_classes)
        A column a class: higher means more of this class. They need not be probabilities.
    labels : array_like, shape (n,)
    classes : sequence, optional
        The class of each column; by default the distinct labels in ascending order.
    multi_class : {"ovr", "ovo"}
        ``"ovr"``: each class against the rest. ``"ovo"``: each ordered pair of classes, ranked by the column of the
        first (Hand and Till 2001, Mach. Learn. 45).
    average : {"macro", "weighted", "micro"}
        ``"macro"``: the plain mean. ``"weighted"``: by the number of items of the class, or of the two; these shares
        are taken as known. ``"micro"``, with ``"ovr"``: one AUC of all entries of `scores`, each row a cluster.
    level : float
        Nominal coverage.
    method : {"logit", "delong", "bca", "percentile", "basic"}
        ``"logit"`` and ``"delong"`` have the variance of the mean in closed form: each item has a part in the AUCs of
        several classes, and its parts are added up before they are squared. With two classes whose columns mirror each
        other that is DeLong's variance. The others are bootstraps that keep the size of each class.
    clusters : array_like, shape (n,), or Bags, optional
        See `auc_interval`; a bootstrap draws whole clusters then.
    n_boot : int
        Resamples of a bootstrap.
    random_state : int, Generator, SeedSequence or None
        Of a bootstrap.

    Returns
    -------
    Interval
        Bounds are NaN when a class has one item, and the estimate is too when it has none.

    Raises
    ------
    ValueError
        When shapes differ, a score is NaN, a label is not in `classes`, or an option is unknown.
    TypeError
        When scores are no numbers.

    Warns
    -----
    RuntimeWarning
        When bounds are undefined, naming the class; as `bootstrap_interval` does.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty import multiclass_auc_interval
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 200)
    >>> scores = rng.normal(size=(200, 3)) + 1.5 * (labels[:, None] == np.arange(3))
    >>> multiclass_auc_interval(scores, labels)
    Interval(0.870 [0.836, 0.897], level=0.95, method='logit', n=200)
    """
    _require_level(level)
    _choose(method, dict.fromkeys((*CLOSED, *METHODS)))
    _among(multi_class, "multi_class", ("ovr", "ovo"))
    _among(average, "average", ("macro", "weighted", "micro") if multi_class == "ovr" else ("macro", "weighted"))
    draws = require_draws(n_boot, level) if method in METHODS else 0
    table = _table(scores)
    n, n_classes = table.shape
    labelled, known = _labelled(labels, n, n_classes, classes)
    cluster = cluster_codes(clusters, n)
    n_clusters = None if cluster is None else int(cluster.max()) + 1
    sizes = np.bincount(labelled, minlength=n_classes)
    present = sizes
    if cluster is not None:
        present = np.array([len(np.unique(cluster[labelled == k])) for k in range(n_classes)])
    if average == "micro":
        rows = cluster if cluster is not None else np.arange(n)
        positive = (labelled[:, None] == np.arange(n_classes)).ravel()
        each, cluster = np.repeat(rows, n_classes), np.repeat(rows, n_classes)
        parts = [(1.0, Ranking.of(table.ravel(), positive))]
        member = positive.astype(np.intp)
        present = np.array([len(np.unique(each))])
        apart = None
    else:
        parts = _parts(table, labelled, sizes, multi_class, average)
        member = labelled
        apart = labelled if cluster is None else None
    estimate = math.nan if min(present) == 0 else float(_mean_area(parts)(np.ones((1, len(member)), dtype=np.int64))[0])
    if min(present) < 2:
        k = int(np.argmin(present))
        what = f"{'no' if present[k] == 0 else 'one'} {'item' if cluster is None else 'cluster'} of class {known[k]!r}"
        warnings.warn(f"labels hold {what}: the {method} bounds are undefined", RuntimeWarning, stacklevel=2)
        return Interval(estimate, math.nan, math.nan, float(level), f"undefined ({what})", n, n_clusters=n_clusters)
    if estimate in (0.0, 1.0):
        smaller = int(min(present))
        bounds = _wilson(estimate * smaller, smaller, level)
        return Interval(estimate, *bounds, float(level), "wilson (AUC is 0 or 1)", n, n_clusters=n_clusters)
    influence = np.zeros(len(member))
    for weight, ranking in parts:
        influence += weight * ranking.influence()
    if method in CLOSED:
        variance = variance_of(influence, member, cluster)
        if variance == 0:
            used = f"{method} (variance 0)"
            return Interval(estimate, estimate, estimate, float(level), used, n, n_clusters=n_clusters)
        freedom = None if cluster is None else int(min(present)) - 1
        bounds = bounds_of_share(estimate, math.sqrt(variance), level, method, freedom)
        return Interval(estimate, *bounds, float(level), method, n, n_clusters=n_clusters)
    root = root_seed(random_state)
    resampler = Resampler(len(member), apart, cluster)
    return interval_of_replicates(
        estimate,
        resampler.replicates(_mean_area([(w, r.by(resampler.unit)) for w, r in parts]), draws, seed_value(root, 0)),
        level=level,
        method=method,
        accelerated=lambda: resampler.acceleration(influence),
        bounds=(0.0, 1.0),
        seed=root,
        n=n,
        n_clusters=n_clusters,
        stacklevel=3,
    )


# -------------------------------------------------------------------- areas of weighted items


@dataclass(frozen=True)
class Ranking:
    """Items in the order of their scores, with what an area needs to know of them.

    Attributes
    ----------
    items : ndarray of int, shape (m,)
        Their numbers among all, by ascending score.
    positive : ndarray of bool, shape (m,)
        In this order.
    starts : ndarray of int
        Where each distinct score begins.
    n : int
        How many items there are in all.
    max_fpr : float or None
        Where the area ends, if not at 1.
    """

    items: NDArray[np.intp]
    positive: NDArray[np.bool_]
    starts: NDArray[np.intp]
    n: int
    max_fpr: float | None = None

    @classmethod
    def of(
        cls,
        scores: NDArray[Any],
        positive: NDArray[np.bool_],
        *,
        among: NDArray[np.intp] | None = None,
        max_fpr: float | None = None,
    ) -> Self:
        """Sort scores, of some items if not of all.

        Parameters
        ----------
        scores : ndarray, shape (n,)
        positive : ndarray of bool, shape (n,)
        among : ndarray of int, optional
        max_fpr : float, optional

        Returns
        -------
        Ranking
        """
        some = np.arange(len(scores)) if among is None else among
        items = some[np.argsort(scores[some], kind="stable")]
        ordered = scores[items]
        starts = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])
        return cls(items, positive[items], starts, len(scores), max_fpr)

    def by(self, unit: NDArray[np.intp]) -> Self:
        """The same for weights of units.

        Parameters
        ----------
        unit : ndarray of int, shape (n,)
            The unit of each item.

        Returns
        -------
        Ranking
        """
        return replace(self, items=unit[self.items])

    def areas(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """Area for each row of weights; NaN where a class has none.

        Parameters
        ----------
        weights : ndarray of int64, shape (rows, n)

        Returns
        -------
        ndarray of float64, shape (rows,)
        """
        drawn = weights[:, self.items]
        pos = drawn * self.positive
        neg = drawn - pos
        n_pos, n_neg = pos.sum(axis=1), neg.sum(axis=1)
        starts = self.starts
        if self.max_fpr is not None:
            # Only the highest scores matter: down to where every row has had its share of the negatives.
            left = np.cumsum(neg[:, ::-1], axis=1) >= math.ceil(self.max_fpr * n_neg.max())
            first = len(self.items) - 1 - int(np.argmax(left, axis=1).max()) if left[:, -1].all() else 0
            cell = int(np.searchsorted(starts, first, side="right")) - 1
            pos, neg, starts = pos[:, starts[cell] :], neg[:, starts[cell] :], starts[cell:] - starts[cell]
        if len(starts) < pos.shape[1]:
            pos, neg = (np.add.reduceat(counts, starts, axis=1) for counts in (pos, neg))
        with np.errstate(invalid="ignore"):
            if self.max_fpr is None:
                below = np.cumsum(neg, axis=1)
                whole: NDArray[np.float64] = np.einsum("ij,ij->i", pos, 2 * below - neg) / (2 * n_pos * n_neg)
                return whole
            return _partial(pos[:, ::-1] / n_pos[:, None], neg[:, ::-1] / n_neg[:, None], self.max_fpr)

    def influence(self) -> NDArray[np.float64]:
        """What each item adds to the area, to first order: a sum of zero within each class, over its size.

        For the whole area these are DeLong's placements. A positive adds (f - S)+ to the area up to the false positive
        rate f, where S is the share of negatives above it; a negative takes away the share of positives below it that
        lie above the threshold, S < f. That the threshold is estimated makes no difference to first order.

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        cell = np.zeros(len(self.items), dtype=np.intp)
        cell[self.starts[1:]] = 1
        cell = np.cumsum(cell)
        pos = np.bincount(cell, self.positive)
        neg = np.bincount(cell, ~self.positive)
        n_pos, n_neg = pos.sum(), neg.sum()
        above = 1 - (np.cumsum(neg) - neg / 2) / n_neg
        end = 1.0 if self.max_fpr is None else self.max_fpr
        counted = np.where(above < end, pos, 0.0) if self.max_fpr is not None else pos
        gain = np.maximum(end - above, 0.0)
        loss = -(np.cumsum(counted) - counted / 2) / n_pos
        gain = (gain - pos @ gain / n_pos) / n_pos
        loss = (loss - neg @ loss / n_neg) / n_neg
        influence = np.zeros(self.n)
        influence[self.items] = np.where(self.positive, gain[cell], loss[cell])
        return influence


def _partial(pos: NDArray[np.float64], neg: NDArray[np.float64], end: float) -> NDArray[np.float64]:
    """Areas up to a false positive rate, from the shares of each class at each threshold, the strictest first."""
    right, top = np.cumsum(neg, axis=1), np.cumsum(pos, axis=1)
    left, bottom = right - neg, top - pos
    width = np.clip(np.minimum(right, end) - left, 0.0, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(neg > 0, width / neg, 0.0)
    areas: NDArray[np.float64] = np.sum(width * (bottom + share * pos / 2), axis=1)
    areas[np.isnan(right[:, -1]) | np.isnan(top[:, -1])] = math.nan
    return areas


def variance_of(influence: NDArray[np.float64], member: NDArray[np.intp], cluster: NDArray[np.intp] | None) -> float:
    """Variance of an area from what each item adds to it.

    Without clusters, DeLong's, with the size of each class fixed. With clusters, the one of Obuchowski (1997,
    Biometrics 53), for any number of classes: what the items of a cluster add is added up within each class, and the
    sums of a cluster may vary together.

    Parameters
    ----------
    influence : ndarray of float64, shape (n,)
    member : ndarray of int, shape (n,)
        Class of each item.
    cluster : ndarray of int, shape (n,), or None

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty.areas import variance_of
    >>> round(variance_of(np.array([0.1, -0.1, 0.2, -0.2]), np.array([0, 0, 1, 1]), None), 6)
    0.2
    """
    n_classes = int(member.max()) + 1
    if cluster is None:
        sizes = np.bincount(member)
        # What is left of a class's mean is no chance while the size of the class is fixed.
        rests = influence - (np.bincount(member, influence) / sizes)[member]
        squares = np.bincount(member, rests**2)
        return float(np.sum(squares * sizes / (sizes - 1)))
    n_clusters = int(cluster.max()) + 1
    place = cluster * n_classes + member
    sums = np.bincount(place, influence, n_clusters * n_classes).reshape(n_clusters, n_classes)
    holding = np.count_nonzero(np.bincount(place, minlength=sums.size).reshape(sums.shape), axis=0)
    squares = np.sum(sums**2, axis=0)
    within = np.sum(squares * holding / (holding - 1))
    across = np.sum(np.sum(sums, axis=1) ** 2) - np.sum(squares)
    return max(0.0, float(within + across * n_clusters / (n_clusters - 1)))


def bounds_of_share(
    share: float, se: float, level: float, method: str, freedom: int | None = None
) -> tuple[float, float]:
    """Bounds of something between 0 and 1 with a standard error, on the logit scale or as it is.

    Parameters
    ----------
    share, se, level : float
    method : str
        ``"logit"``, or another for bounds on the scale of the share.
    freedom : int, optional
        Degrees of freedom of the standard error, for Student's quantile instead of the normal one.

    Returns
    -------
    tuple of float and float

    Examples
    --------
    >>> from milfast.uncertainty.areas import bounds_of_share
    >>> [round(bound, 3) for bound in bounds_of_share(0.9, 0.02, 0.95, "logit")]
    [0.853, 0.933]
    """
    quantile = t_quantile(math.inf if freedom is None else freedom, level)
    if method != "logit":
        return max(0.0, share - quantile * se), min(1.0, share + quantile * se)
    centre, half = math.log(share / (1 - share)), quantile * se / (share * (1 - share))
    return _expit(centre - half), _expit(centre + half)


# -------------------------------------------------------------------- resampling by weights


class Resampler:
    """Draws items, or clusters, by how often each comes.

    Parameters
    ----------
    n : int
        Items.
    stratum, cluster : ndarray of int, shape (n,), or None
        Whose sizes are kept, and what is drawn as a whole.

    Raises
    ------
    ValueError
        When a cluster has items of two strata.
    """

    def __init__(self, n: int, stratum: NDArray[np.intp] | None, cluster: NDArray[np.intp] | None) -> None:
        sample = sample_of(n, stratum, cluster)
        self.strata = sample.strata
        self.n_units = sample.n_units
        self.unit = np.empty(n, dtype=np.intp)
        self.unit[sample.order] = np.repeat(np.arange(sample.n_units), np.diff(sample.first))

    def replicates(
        self, areas: Callable[[NDArray[np.int64]], NDArray[np.float64]], n_boot: int, seed: int
    ) -> NDArray[np.float64]:
        """Values of resamples; the first of a longer run are those of a shorter one.

        Parameters
        ----------
        areas : callable
            Gives a value for each row of counts, shape (rows, n_units), that say how often each unit was drawn.
        n_boot : int
        seed : int

        Returns
        -------
        ndarray of float64, shape (n_boot,)
        """
        # A stream for each stratum: what a row holds does not depend on how many are drawn at once.
        streams = [np.random.Generator(np.random.Philox(key=[seed, k])) for k in range(len(self.strata))]
        values = np.empty(n_boot)
        step = max(1, AT_ONCE // len(self.unit))
        for start in range(0, n_boot, step):
            rows = min(step, n_boot - start)
            times = np.empty((rows, self.n_units), dtype=np.int64)
            for rng, (first, last) in zip(streams, self.strata, strict=True):
                size = last - first
                drawn = rng.integers(0, size, (rows, size), dtype=np.uint32) + size * np.arange(rows)[:, None]
                times[:, first:last] = np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size)
            values[start : start + rows] = areas(times)
        return values

    def acceleration(self, influence: NDArray[np.float64]) -> float:
        """Acceleration of BCa from what each item adds, which takes the place of the jackknife.

        Parameters
        ----------
        influence : ndarray of float64, shape (n,)

        Returns
        -------
        float
        """
        sums = np.bincount(self.unit, influence, self.n_units).astype(np.float64)
        return acceleration(*((-sums[first:last], None) for first, last in self.strata))


def _apart(
    member: NDArray[np.intp], cluster: NDArray[np.intp] | None, stratified: bool | None
) -> NDArray[np.intp] | None:
    """Classes whose sizes resamples keep: by default those of items, and none where clusters are drawn."""
    wanted = cluster is None if stratified is None else stratified
    return member if wanted else None


# -------------------------------------------------------------------- scale and arguments


@dataclass(frozen=True)
class _Scale:
    """How an area is shown: as it is, or standardised so that chance is 0.5 and perfection 1 (McClish 1989)."""

    max_fpr: float | None
    standardize: bool

    @property
    def most(self) -> float:
        return 1.0 if self.max_fpr is None else self.max_fpr

    def shown(self, area: Any) -> Any:
        if self.max_fpr is None or not self.standardize:
            return area
        chance = self.max_fpr**2 / 2
        return (1 + (area - chance) / (self.max_fpr - chance)) / 2


def _plain(scores: Any) -> NDArray[Any]:
    """An array of what the kernels have read already; a tensor that takes part in training is let go."""
    return np.asarray(scores.detach() if hasattr(scores, "detach") else scores)


def _parts(
    table: NDArray[np.float64], labelled: NDArray[np.intp], sizes: NDArray[np.intp], multi_class: str, average: str
) -> list[tuple[float, Ranking]]:
    """The areas that a mean is taken of, each with its weight."""
    n_classes = table.shape[1]
    if multi_class == "ovr":
        weights = sizes / sizes.sum() if average == "weighted" else np.full(n_classes, 1 / n_classes)
        return [(float(w), Ranking.of(table[:, k], labelled == k)) for k, w in enumerate(weights)]
    parts = []
    for a in range(n_classes):
        for b in range(n_classes):
            if a != b:
                among = np.flatnonzero((labelled == a) | (labelled == b))
                # each item is in n_classes - 1 pairs, and each pair is ranked by two columns
                share = len(among) / (2 * len(table)) if average == "weighted" else 1 / n_classes
                parts.append((share / (n_classes - 1), Ranking.of(table[:, a], labelled == a, among=among)))
    return parts


def _mean_area(parts: list[tuple[float, Ranking]]) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    def mean(weights: NDArray[np.int64]) -> NDArray[np.float64]:
        total: NDArray[np.float64] = np.sum([weight * ranking.areas(weights) for weight, ranking in parts], axis=0)
        return total

    return mean


def _table(scores: Any) -> NDArray[np.float64]:
    try:
        table = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"scores cannot be read as numbers: {error}") from None
    if table.ndim != 2 or table.shape[1] < 2 or len(table) == 0:
        raise ValueError(
            f"scores must have a row an item and a column a class, shape (n, n_classes); got shape {table.shape}: for "
            "two classes and one column use auc_interval"
        )
    odd = np.argwhere(np.isnan(table))
    if len(odd):
        i, k = (int(place) for place in odd[0])
        raise ValueError(f"scores[{i}, {k}] is NaN: drop the item or say what it is")
    return table


def _labelled(labels: Any, n: int, n_classes: int, classes: Any) -> tuple[NDArray[np.intp], list[Any]]:
    """The column of each label, and what the columns stand for."""
    array = np.asarray(labels)
    found = codes(array, n, "labels")
    distinct = np.unique(array)
    if classes is None:
        if len(distinct) != n_classes:
            raise ValueError(
                f"labels hold {len(distinct)} classes and scores {n_classes} columns: name the columns in classes"
            )
        return found, distinct.tolist()
    known = list(classes)
    if len(known) != n_classes or len(set(known)) != n_classes:
        raise ValueError(f"classes must name {n_classes} different classes, one a column of scores; got {known!r}")
    column = {value: k for k, value in enumerate(known)}
    odd = [value for value in distinct.tolist() if value not in column]
    if odd:
        i = int(np.flatnonzero(array == odd[0])[0])
        raise ValueError(f"labels[{i}] is {odd[0]!r}, which is not in classes {known!r}")
    return np.array([column[value] for value in distinct.tolist()], dtype=np.intp)[found], known


def _among(value: Any, name: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
