"""Tables that count how often each class was called what, and intervals for smooth functions of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from milfast.seeding import root_seed, seed_value
from milfast.uncertainty.areas import Resampler, bounds_of_share
from milfast.uncertainty.intervals import Interval, _wilson
from milfast.uncertainty.resampling import METHODS, acceleration, interval_of_replicates

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from milfast.seeding import RandomState

#: Entries of tables that are looked at at once.
AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Counts:
    """How often each class was called what, and in which cell of the table each item is.

    Attributes
    ----------
    cell : ndarray of int, shape (n,)
        Row by row.
    table : ndarray of int, shape (n_classes, n_classes)
        Rows are true classes, columns predicted ones.
    cluster : ndarray of int, shape (n,), or None
    """

    cell: NDArray[np.intp]
    table: NDArray[np.intp]
    cluster: NDArray[np.intp] | None

    @classmethod
    def of(cls, predicted: NDArray[np.intp], true: NDArray[np.intp], cluster: NDArray[np.intp] | None) -> Self:
        """Count items.

        Parameters
        ----------
        predicted, true : ndarray of int, shape (n,)
            Numbers of the classes.
        cluster : ndarray of int, shape (n,), or None

        Returns
        -------
        Counts
        """
        k = int(max(predicted.max(), true.max())) + 1
        cell = true * k + predicted
        return cls(cell, np.bincount(cell, minlength=k * k).reshape(k, k), cluster)

    @property
    def n(self) -> int:
        """Items."""
        return len(self.cell)

    @property
    def rows(self) -> NDArray[np.intp]:
        """Items of each true class."""
        return np.asarray(self.table.sum(axis=1))

    @property
    def columns(self) -> NDArray[np.intp]:
        """Items called each class."""
        return np.asarray(self.table.sum(axis=0))

    @property
    def diagonal(self) -> NDArray[np.intp]:
        """Items of each class that were called so."""
        return np.asarray(self.table.diagonal())


class Balanced:
    """Mean recall of some classes.

    Parameters
    ----------
    of : ndarray of bool, shape (n_classes,)
        Which.
    """

    def __init__(self, of: NDArray[np.bool_]) -> None:
        self.of = of

    def value(self, tables: NDArray[Any]) -> NDArray[np.float64]:
        """Value of each table; NaN where one of the classes is missing.

        Parameters
        ----------
        tables : ndarray, shape (..., n_classes, n_classes)

        Returns
        -------
        ndarray of float64, shape (...)
        """
        right = np.diagonal(tables, axis1=-2, axis2=-1)[..., self.of]
        return np.asarray(np.mean(right / tables.sum(axis=-1)[..., self.of], axis=-1))

    def gradient(self, table: NDArray[np.intp]) -> NDArray[np.float64]:
        """Change of the value with each count.

        Parameters
        ----------
        table : ndarray, shape (n_classes, n_classes)

        Returns
        -------
        ndarray of float64, shape (n_classes, n_classes)
        """
        rows = np.where(self.of, table.sum(axis=1), 1)
        slope = (np.eye(len(table)) - (np.diagonal(table) / rows)[:, None]) / rows[:, None]
        return np.asarray(slope * self.of[:, None] / np.count_nonzero(self.of))

    def smallest(self, counts: NDArray[np.intp], total: int) -> int:
        """The number that a bound must rest on where no spread is seen.

        Parameters
        ----------
        counts : ndarray of int, shape (n_classes,)
            Items, or clusters, of each true class.
        total : int
            Of all.

        Returns
        -------
        int
        """
        return min(total, int(counts[self.of].min()))


class MeanF1:
    """Mean F1 of some classes; methods as those of `Balanced`.

    Parameters
    ----------
    of : ndarray of bool, shape (n_classes,)
        Which.
    weighted : bool
        By the number of true items, instead of all alike.
    """

    def __init__(self, of: NDArray[np.bool_], weighted: bool) -> None:
        self.of, self.weighted = of, weighted

    def _each(self, tables: NDArray[Any]) -> NDArray[np.float64]:
        both = tables.sum(axis=-1) + tables.sum(axis=-2)
        return np.asarray(2 * np.diagonal(tables, axis1=-2, axis2=-1)[..., self.of] / both[..., self.of])

    def value(self, tables: NDArray[Any]) -> NDArray[np.float64]:
        """See `Balanced.value`; NaN also where one of the classes is neither true nor called."""
        each = self._each(tables)
        if self.weighted:
            true = tables.sum(axis=-1)[..., self.of]
            # what is neither true nor called so has no F1 and no weight
            return np.asarray(np.sum(np.where(true > 0, each * true, 0.0), axis=-1) / true.sum(axis=-1))
        return np.asarray(np.mean(each, axis=-1))

    def gradient(self, table: NDArray[np.intp]) -> NDArray[np.float64]:
        """See `Balanced.gradient`."""
        rows = table.sum(axis=1)
        both = np.where(self.of, rows + table.sum(axis=0), 1)
        each = np.zeros(len(table))
        each[self.of] = self._each(table)
        weight = rows / table.sum() if self.weighted else self.of / np.count_nonzero(self.of)
        loss = weight * each / both
        slope = np.diag(2 * weight / both) - loss[:, None] - loss[None, :]
        if self.weighted:
            slope += ((each - weight @ each) / table.sum())[:, None]
        return np.asarray(slope)

    def smallest(self, counts: NDArray[np.intp], total: int) -> int:
        """See `Balanced.smallest`; of the classes that have a true item."""
        some = counts[self.of & (counts > 0)]
        return min(total, int(some.min())) if len(some) else 1


class ShareRight:
    """Share of items on the diagonal; methods as those of `Balanced`."""

    def value(self, tables: NDArray[Any]) -> NDArray[np.float64]:
        """See `Balanced.value`."""
        return np.asarray(np.trace(tables, axis1=-2, axis2=-1) / tables.sum(axis=(-2, -1)))

    def gradient(self, table: NDArray[np.intp]) -> NDArray[np.float64]:
        """See `Balanced.gradient`."""
        n = table.sum()
        return np.asarray((np.eye(len(table)) - np.trace(table) / n) / n)

    def smallest(self, counts: NDArray[np.intp], total: int) -> int:
        """See `Balanced.smallest`; all classes count together."""
        return total


def interval_of_counts(
    function: Balanced | MeanF1 | ShareRight,
    counts: Counts,
    *,
    level: float,
    method: str,
    n_boot: int,
    stratified: bool,
    random_state: RandomState,
    stacklevel: int,
) -> Interval:
    """Interval for a smooth function of the table that does not change when all counts double.

    Parameters
    ----------
    function : Balanced, MeanF1 or ShareRight
    counts : Counts
    level : float
    method : {"logit", "delta", "bca", "percentile", "basic"}
    n_boot : int
    stratified : bool
        Whether a bootstrap keeps the size of each true class. Without clusters only.
    random_state : int, Generator, SeedSequence or None
    stacklevel : int
        Of warnings.

    Returns
    -------
    Interval
    """
    estimate = float(function.value(counts.table))
    slope = function.gradient(counts.table).ravel()
    k = len(counts.table)
    cluster = counts.cluster
    n_clusters = None if cluster is None else int(cluster.max()) + 1
    if cluster is None:
        # The counts are multinomial; as slopes weighted by counts add up to 0, so do these squares to the variance.
        variance = float(counts.table.ravel() @ slope**2)
        smallest = function.smallest(counts.rows, counts.n)
    else:
        parts: NDArray[np.float64] = np.bincount(cluster, slope[counts.cell]).astype(np.float64)
        variance = float(parts @ parts) * len(parts) / (len(parts) - 1)
        holding = np.unique(cluster * k + counts.cell // k) % k
        smallest = function.smallest(np.bincount(holding, minlength=k), len(parts))
    # what rounding leaves of 0 is far below the variance of a single item among as many as fit in memory
    if variance < 1e-25 or estimate in (0.0, 1.0):
        bounds = _wilson(estimate * smallest, smallest, level)
        return Interval(estimate, *bounds, level, "wilson (no spread)", counts.n, n_clusters=n_clusters)
    if method not in METHODS:
        freedom = None if n_clusters is None else n_clusters - 1
        bounds = bounds_of_share(estimate, math.sqrt(variance), level, method, freedom)
        return Interval(estimate, *bounds, level, method, counts.n, n_clusters=n_clusters)
    root = root_seed(random_state)
    seed = seed_value(root, 0)
    accelerated: Callable[[], float]
    if cluster is None:
        cells = np.flatnonzero(counts.table)
        times = counts.table.ravel()[cells]
        rows = cells // k if stratified else np.zeros(len(cells), dtype=np.intp)
        groups = [rows == row for row in np.unique(rows)]
        replicates = _values(function, _multinomial(times, groups, n_boot, seed), cells, k)

        def accelerated() -> float:
            return acceleration(*((-slope[cells[group]], times[group]) for group in groups))

    else:
        pairs, occurs = np.unique(cluster * (k * k) + counts.cell, return_counts=True)
        unit, cell = np.divmod(pairs, k * k)
        cells, place = np.unique(cell, return_inverse=True)

        def of_clusters(weights: NDArray[np.int64]) -> NDArray[np.float64]:
            found = [np.bincount(place, row[unit] * occurs, len(cells)) for row in weights]
            return _values(function, np.stack(found), cells, k)

        resampler = Resampler(len(parts), None, None)
        replicates = resampler.replicates(of_clusters, n_boot, seed)

        def accelerated() -> float:
            return resampler.acceleration(parts)

    return interval_of_replicates(
        estimate,
        replicates,
        n=counts.n,
        level=level,
        method=method,
        accelerated=accelerated,
        bounds=(0.0, 1.0),
        seed=root,
        n_clusters=n_clusters,
        trouble="a class is missing",
        stacklevel=stacklevel,
    )


def _multinomial(
    counts: NDArray[np.intp], groups: list[NDArray[np.bool_]], n_boot: int, seed: int
) -> NDArray[np.int64]:
    """Counts of resampled items: drawing n items with replacement makes the counts multinomial."""
    drawn = np.zeros((n_boot, len(counts)), dtype=np.int64)
    for number, group in enumerate(groups):
        rng = np.random.Generator(np.random.Philox(key=[seed, number]))
        n = int(counts[group].sum())
        drawn[:, group] = rng.multinomial(n, counts[group] / n, size=n_boot)
    return drawn


def _values(
    function: Balanced | MeanF1 | ShareRight, drawn: NDArray[Any], cells: NDArray[np.intp], k: int
) -> NDArray[np.float64]:
    """Value of each table, of which the cells that can be occupied are given."""
    values = np.empty(len(drawn))
    step = max(1, AT_ONCE // (k * k))
    for start in range(0, len(drawn), step):
        some = drawn[start : start + step]
        tables = np.zeros((len(some), k * k))
        tables[:, cells] = some
        with np.errstate(invalid="ignore", divide="ignore"):
            values[start : start + len(some)] = function.value(tables.reshape(-1, k, k))
    return values
