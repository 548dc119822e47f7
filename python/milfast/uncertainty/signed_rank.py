"""Wilcoxon's signed ranks: how likely a sum of ranks is, and the differences that it does not reject."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from milfast.uncertainty.intervals import Interval, _require_level
from milfast.uncertainty.tails import log_two_sided_normal, log_upper_normal

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: So many differences at most have the exact law of Wilcoxon's statistic; 2^60 still is a whole number of 64 bits.
EXACT = 60


def rank_sums(d: NDArray[np.float64]) -> tuple[int, int, list[int]]:
    """Ranks of the sizes of differences that are not 0, doubled so that ties have whole numbers too.

    Parameters
    ----------
    d : ndarray of float64, shape (n,)
        Differences; infinite ones are larger than all others.

    Returns
    -------
    won, total : int
        Sum of the doubled ranks of positive differences, and of all.
    doubled : list of int
    """
    moved = d[d != 0]
    sizes = np.abs(moved)
    order = np.sort(sizes)
    doubled = np.searchsorted(order, sizes, "left") + np.searchsorted(order, sizes, "right") + 1
    return int(doubled[moved > 0].sum()), int(doubled.sum()), doubled.tolist()


def log_lower_tail(won: int, doubled: list[int]) -> float:
    """Log of the probability of a sum of doubled ranks of at most `won`, when every sign is that of a fair coin.

    Parameters
    ----------
    won : int
    doubled : list of int
        All doubled ranks, ties as they are.

    Returns
    -------
    float
    """
    n, total = len(doubled), sum(doubled)
    if n > EXACT:
        return log_upper_normal((total - 2 * won) / math.sqrt(sum(rank * rank for rank in doubled)))
    ways = np.zeros(total + 1, dtype=np.int64)
    ways[0] = 1
    for rank in doubled:
        ways[rank:] += ways[:-rank].copy()
    return min(0.0, math.log(int(ways[: won + 1].sum())) - n * math.log(2))


def wilcoxon(d: NDArray[np.float64]) -> tuple[float, float]:
    """Wilcoxon's statistic and the log of its two-sided p-value, given the ties; zeros are left out, as he did.

    Parameters
    ----------
    d : ndarray of float64, shape (n,)

    Returns
    -------
    statistic, log_p : float
    """
    won, total, doubled = rank_sums(d)
    if not doubled:
        return 0.0, 0.0
    less = min(won, total - won)
    if len(doubled) <= EXACT:
        log_p = math.log(2) + log_lower_tail(less, doubled)
    else:
        log_p = log_two_sided_normal((2 * less - total) / math.sqrt(sum(rank * rank for rank in doubled)))
    return less / 2, min(0.0, log_p)


def log_p_lower(d: NDArray[np.float64]) -> float:
    """Log of the p-value of differences that lie below 0, by Wilcoxon's test with the ties as they are.

    Parameters
    ----------
    d : ndarray of float64, shape (n,)
        Differences; zeros are left out, and infinite ones are larger than all others.

    Returns
    -------
    float

    Examples
    --------
    >>> import math, numpy as np
    >>> from milfast.uncertainty.signed_rank import log_p_lower
    >>> math.exp(log_p_lower(np.array([-1.0, -2.0, -3.0, -4.0])))
    0.0625
    """
    won, _, doubled = rank_sums(d)
    return log_lower_tail(won, doubled) if doubled else 0.0


def hodges_lehmann(d: NDArray[np.float64], *, level: float = 0.95, unit: str = "pairs") -> Interval:
    """Median of the means of all pairs of differences, between the shifts that Wilcoxon's test does not reject.

    Parameters
    ----------
    d : ndarray of float64, shape (n,)
        Differences; infinite ones are allowed.
    level : float
        Nominal coverage; exact for up to 60 differences without ties.
    unit : str
        What the differences are of.

    Returns
    -------
    Interval
        Unbounded where so few differences can reject nothing: five, at a level of 0.95.

    Raises
    ------
    ValueError
        When there is no difference, one is NaN, or `level` is not strictly between 0 and 1.

    References
    ----------
    .. [1] Hodges & Lehmann (1963), Ann. Math. Stat. 34, 598-611.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty.signed_rank import hodges_lehmann
    >>> hodges_lehmann(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    Interval(3.5 [1.0, 6.0], level=0.95, method='hodges-lehmann', n=6 pairs)
    """
    _require_level(level)
    n = len(d)
    if n == 0 or np.isnan(d).any():
        raise ValueError("d must hold at least one difference, and none may be NaN")
    first, second = np.triu_indices(n)
    with np.errstate(invalid="ignore"):
        means = (d[first] + d[second]) / 2
    means[np.isnan(means)] = 0.0  # the mean of two opposite infinities
    means.sort()
    half = len(means) // 2
    middle = means[half] if len(means) % 2 else (means[half - 1] + means[half]) / 2
    cut = _cut(n, (1 - level) / 2)
    low, high = (-math.inf, math.inf) if cut is None else (float(means[cut]), float(means[-1 - cut]))
    return Interval(float(middle), low, high, float(level), "hodges-lehmann", n, unit=unit)


def _cut(n: int, tail: float) -> int | None:
    """How many means to leave out at either end: the largest c with P(T <= c) <= tail for Wilcoxon's statistic T."""
    if n > EXACT:
        from statistics import NormalDist

        spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return max(0, math.floor(n * (n + 1) / 4 + NormalDist().inv_cdf(tail) * spread - 0.5))
    total = n * (n + 1) // 2
    ways = np.zeros(total + 1, dtype=np.int64)
    ways[0] = 1
    for rank in range(1, n + 1):
        ways[rank:] += ways[:-rank].copy()
    within = int(np.searchsorted(np.cumsum(ways), tail * 2.0**n, "right"))
    return within - 1 if within else None
