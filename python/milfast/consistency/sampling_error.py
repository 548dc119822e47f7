"""How far error consistency depends on the samples and on the runs: delta method, bootstrap and jackknife."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.consistency.bits import blocks
from milfast.seeding import seed_sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from milfast.seeding import RandomState

#: Bytes of draws that are looked at together.
_BLOCK = 1 << 24


def draws(n_samples: int, n_replicates: int, random_state: RandomState) -> Iterator[NDArray[np.int64]]:
    """How often each sample is drawn, for one resample after the other.

    The same `random_state` gives the same draws, so that models with the same samples can be compared draw by draw.
    """
    generator = np.random.Generator(np.random.PCG64(seed_sequence(random_state)))
    for _ in range(n_replicates):
        yield np.bincount(generator.integers(max(n_samples, 1), size=n_samples), minlength=n_samples)


class MicroSums:
    """Numerator and denominator of a measure, each summed over all pairs, as sums over the samples.

    Parameters
    ----------
    metric : str
        One of `measures.RATIOS`.
    n_sets : int
    counts : ndarray of int, shape (n_samples,)
        In how many sets each sample is.
    same : ndarray of int, shape (n_samples,), optional
        Pairs of sets that hold the sample with the same answer.
    packed : ndarray of uint8
        The sets, which kappa asks for.
    """

    def __init__(
        self,
        metric: str,
        n_sets: int,
        counts: NDArray[Any],
        packed: NDArray[np.uint8],
        same: NDArray[Any] | None = None,
    ) -> None:
        c = counts.astype(np.int64)
        self.metric, self.n_sets, self.n_pairs = metric, n_sets, n_sets * (n_sets - 1) // 2
        self.packed = packed
        self.either = c * (2 * n_sets - c - 1) // 2
        self.both = c * (c - 1) // 2 if same is None else same.astype(np.int64)
        self.errors = (n_sets - 1) * c  # of the first and the second of each pair

    def parts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each sample, what it adds to the numerator and to the denominator; not for kappa."""
        everywhere = np.full(len(self.both), self.n_pairs)
        return {
            "jaccard": (self.both, self.either),
            "dice": (2 * self.both, self.errors),
            "double_fault": (self.both, everywhere),
            "agreement": (everywhere - self.either + self.both, everywhere),
        }[self.metric]

    def value(self) -> float:
        """The ratio; NaN for 0 / 0."""
        if self.metric != "kappa":
            above, below = (int(x.sum()) for x in self.parts())
            return above / below if below else math.nan
        [found] = self._kappas(np.ones((1, len(self.both)), np.int64))
        return float(found)

    def resampled(self, weights: Iterator[NDArray[np.int64]], n_replicates: int) -> NDArray[np.float64]:
        """The ratio for each of some draws of samples."""
        found = np.empty(n_replicates)
        if self.metric != "kappa":
            above, below = self.parts()
            for r, drawn in enumerate(weights):
                total = int(drawn @ below)
                found[r] = int(drawn @ above) / total if total else math.nan
            return found
        step = max(1, _BLOCK // (8 * max(1, len(self.both))))
        for first in range(0, n_replicates, step):
            some = [next(weights) for _ in range(min(step, n_replicates - first))]
            found[first : first + len(some)] = self._kappas(np.array(some))
        return found

    def _kappas(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        n = len(self.both)
        squares, total = np.zeros(len(weights)), np.zeros(len(weights))
        for _, block in blocks(self.packed, n):
            sizes = weights.astype(np.float64) @ block.T.astype(np.float64)
            squares += (sizes * sizes).sum(axis=1)
            total += sizes.sum(axis=1)
        products = (total * total - squares) / 2
        above = 2 * (n * (weights @ self.both) - products)
        below = n * (weights @ self.errors) - 2 * products
        found = np.full(len(weights), np.nan)
        np.divide(above, below, out=found, where=below != 0)
        return found

    def influence(self) -> NDArray[np.float64]:
        """How the ratio changes with the weight of each sample, times the number of samples: mean zero.

        The delta method, also known as the infinitesimal jackknife.
        """
        n = len(self.both)
        if self.metric != "kappa":
            above, below = (x.astype(np.float64) for x in self.parts())
            return np.asarray((above - self.value() * below) / below.mean())
        rates = np.empty(self.n_sets)
        for rows, block in blocks(self.packed, n):
            rates[rows] = block.mean(axis=1)
        moved = np.zeros(n)
        for rows, block in blocks(self.packed, n):
            moved += (rates.sum() - rates[rows]) @ block
        products = (rates.sum() ** 2 - (rates * rates).sum()) / 2
        moved -= moved.mean()
        above = 2 * (self.both.mean() - products)
        below = self.errors.mean() - 2 * products
        up = 2 * (self.both - self.both.mean()) - 2 * moved
        down = self.errors - self.errors.mean() - 2 * moved
        return np.asarray((up - above / below * down) / below)

    def delta_error(self) -> float:
        """Standard error over samples; NaN with fewer than two or without a value."""
        if len(self.both) < 2 or math.isnan(self.value()):
            return math.nan
        return float(np.std(self.influence(), ddof=1)) / math.sqrt(len(self.both))


def jackknife(
    above: NDArray[np.float64], below: NDArray[np.float64], n_sets: int, groups: NDArray[np.intp]
) -> NDArray[np.float64]:
    """The ratio of two sums over pairs of sets, without each group of sets in turn.

    Parameters
    ----------
    above, below : ndarray of float64, shape (n_sets * (n_sets - 1) / 2,)
        Numerator and denominator of each pair; for the mean over pairs, its value and 1. Pairs in the order of rows.
    n_sets : int
    groups : ndarray of intp, shape (n_sets,)
        Number of the group of each set, from 0.

    Returns
    -------
    ndarray of float64, shape (n_groups,)
        From sums over the pairs of each group, in the time that it takes to read the pairs once.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    ratio = []
    for values in (above, below):
        touched = np.zeros(n_groups)  # pairs with one set or both in the group
        start = 0
        for i in range(n_sets - 1):
            row = values[start : start + n_sets - 1 - i]
            others = groups[i + 1 :]
            touched[groups[i]] += row.sum()
            apart = others != groups[i]
            touched += np.bincount(others[apart], weights=row[apart], minlength=n_groups)
            start += len(row)
        ratio.append(values.sum() - touched)
    found = np.full(n_groups, np.nan)
    np.divide(ratio[0], ratio[1], out=found, where=ratio[1] > 1e-12 * below.sum())
    return found


def jackknife_error(replicates: NDArray[np.float64]) -> float:
    """Standard error from the values without each group; NaN where one of them has none."""
    n = len(replicates)
    if n < 2:
        return math.nan
    return math.sqrt((n - 1) / n * float(np.square(replicates - replicates.mean()).sum()))


def percentiles(replicates: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Bounds between which lies the middle share of replicates; those without a value are left out."""
    known = replicates[~np.isnan(replicates)]
    if not len(known):
        return math.nan, math.nan
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def group_numbers(groups: ArrayLike | None, n_sets: int) -> NDArray[np.intp]:
    """Groups of sets as numbers from 0; each set its own without."""
    if groups is None:
        return np.arange(n_sets)
    given = np.asarray(groups)
    if given.shape != (n_sets,):
        raise ValueError(f"groups must have one entry an error set, shape ({n_sets},); got shape {given.shape}")
    return np.asarray(np.unique(given, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def resampled(
    mean: Callable[[NDArray[np.int64]], float], weights: Iterator[NDArray[np.int64]], n_replicates: int
) -> NDArray[np.float64]:
    """A figure for each of some draws of samples."""
    return np.fromiter((mean(drawn) for drawn in weights), np.float64, n_replicates)
