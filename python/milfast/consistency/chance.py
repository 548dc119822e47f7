"""Chance level: the agreement of error sets whose sizes are kept and whose samples are drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from milfast._core import chance_levels
from milfast.consistency.measures import KERNEL_NAMES, metric_of, undefined, value

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["chance_level"]


def chance_level(n_samples: int, a: ArrayLike, b: ArrayLike, metric: str = "jaccard") -> NDArray[np.float64]:
    """Mean of a measure over all ways to place two error sets of given sizes among the samples.

    The number of samples in both sets is then hypergeometric, and the mean is exact: the sum over all numbers that have
    a probability which a float64 can tell from nothing. Probabilities are made from that of the likeliest number by
    their ratios, so that they neither overflow nor lose digits, whatever the number of samples.

    Parameters
    ----------
    n_samples : int
    a, b : array_like of int
        Number of errors of the first and of the second model.
    metric : {"jaccard", "kappa", "dice", "double_fault", "q", "phi", "agreement"}
        As in `error_consistency`.

    Returns
    -------
    ndarray of float64, of the shape of `a` and `b` together
        NaN where the measure is 0 / 0. 0 for kappa and phi, which are corrected for chance.

    Raises
    ------
    ValueError
        When a size is negative or larger than `n_samples`, or `metric` is unknown.
    TypeError
        When `n_samples` or sizes are not integers.

    Examples
    --------
    >>> from milfast.consistency import chance_level
    >>> float(chance_level(195, 24, 24).round(4))
    0.0668
    >>> chance_level(768, [77, 230], [77, 230]).round(4)
    array([0.0531, 0.1764])
    """
    name = metric_of(metric)
    if isinstance(n_samples, (bool, np.bool_)) or not isinstance(n_samples, (int, np.integer)):
        raise TypeError(f"n_samples must be an integer, the number of samples; got {n_samples!r}")
    if not 0 <= n_samples < 2**53:
        raise ValueError(f"n_samples must not be negative and be below 2**53; got {n_samples}")
    sets = [np.asarray(x) for x in (a, b)]
    for label, x in zip("ab", sets, strict=True):
        if x.dtype.kind not in "iu":
            raise TypeError(f"{label} must be integers, numbers of errors; got {x.dtype}")
        wrong = np.flatnonzero((x < 0) | (x > n_samples))
        if len(wrong):
            raise ValueError(f"{label} must lie between 0 and n_samples={n_samples}; got {x.flat[wrong[0]]}")
    first, second = np.broadcast_arrays(*(x.astype(np.int64) for x in sets))
    found = _expected(name, int(n_samples), first.ravel(), second.ravel())
    return found.reshape(first.shape)


def over_pairs(metric: str, n: int, sizes: NDArray[np.int64], empty: float) -> tuple[float, float]:
    """Chance level, and the largest value that the sizes allow, in the mean over all pairs of sets.

    Each pair of sizes is looked at once, however many pairs of sets have it. `empty` is the value of pairs that have
    none; with NaN they are left out.
    """
    distinct, numbers = np.unique(sizes, return_counts=True)
    i, j = np.triu_indices(len(distinct))
    a, b = distinct[i], distinct[j]
    pairs = np.where(i == j, numbers[i] * (numbers[i] - 1) // 2, numbers[i] * numbers[j])
    without = undefined(metric, n, a, b)
    if np.isnan(empty):
        pairs = np.where(without, 0, pairs)
    seen = pairs > 0
    if not seen.any():
        return np.nan, np.nan
    a, b, without, weights = a[seen], b[seen], without[seen], pairs[seen] / pairs.sum()
    chance = np.where(without, empty, _expected(metric, n, a, b))
    highest = np.where(without, empty, value(metric, n, a, b, np.minimum(a, b)))
    return float(weights @ chance), float(weights @ highest)


def _expected(metric: str, n: int, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean of a metric for each pair of sizes."""
    if metric in ("jaccard", "q"):
        return chance_levels(n, a, b, KERNEL_NAMES[metric])
    # all others are linear in what is shared, of which a * b / n is the mean
    both = a * (b / n) if n else np.zeros(len(a))
    found = value(metric, n, a, b, both)
    return np.where(np.isnan(found), np.nan, 0.0) if metric in ("kappa", "phi") else found
