"""Probabilities of the signs of one and of two normal variables, which the exact errors are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


def positive(mean: Vector, deviation: Vector) -> Vector:
    """Probability that a normal variable is above 0.

    Parameters
    ----------
    mean, deviation : ndarray
        Of shapes that broadcast. Where the deviation is 0 the variable is its mean.

    Returns
    -------
    ndarray of float64
        NaN where an argument is not finite.

    Examples
    --------
    >>> positive(np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0])).round(4).tolist()
    [0.5, 0.8413, 1.0]
    """
    from scipy.special import ndtr

    mean, deviation = np.broadcast_arrays(np.asarray(mean, np.float64), np.asarray(deviation, np.float64))
    fixed = deviation == 0
    found = np.where(fixed, mean > 0, ndtr(mean / np.where(fixed, 1.0, deviation)))
    return np.where(np.isfinite(mean) & np.isfinite(deviation), found, np.nan)


def disagree(mean: Vector, deviation: Vector, other_mean: Vector, other_deviation: float, shared: Vector) -> Vector:
    """Probability that of two normal variables one is above 0 and the other is not.

    By Owen's function T [1]_. Each variable may be constant, and they may be as good as one.

    Parameters
    ----------
    mean, deviation : ndarray
        Of the first variable, without what it has in common with the second: its noise is `deviation` times a normal
        variable of its own, plus `shared` times that of the second.
    other_mean : ndarray
        Of the second.
    other_deviation : float
        Of the second.
    shared : ndarray
        Weight of the second variable's noise in the first.

    Returns
    -------
    ndarray of float64
        NaN where the first variable is not finite.

    References
    ----------
    .. [1] Owen (1956), Tables for computing bivariate normal probabilities.

    Examples
    --------
    Two variables that share half of their variance:

    >>> round(float(disagree(0.0, np.sqrt(0.5), 0.0, 1.0, np.sqrt(0.5))), 6)
    0.25
    """
    from scipy.special import ndtr, owens_t

    arrays = (np.asarray(a, np.float64) for a in (mean, deviation, other_mean, shared))
    mean, deviation, other_mean, shared = np.broadcast_arrays(*arrays)
    total = np.hypot(deviation, shared)
    if other_deviation == 0:
        above = positive(mean, total)
        return np.where(other_mean > 0, 1 - above, above)
    k = other_mean / other_deviation + 0.0  # a negative zero would turn the infinities below round
    with np.errstate(all="ignore"):  # constant variables and those that are as good as one are put right below
        h = mean / total + 0.0
        correlation = shared / total
        spread = deviation / total
        first = (k - correlation * h) / (h * spread)
        second = (h - correlation * k) / (k * spread)
        apart = (h * k < 0) | ((h * k == 0) & (h + k < 0))
        # P(one above, other not) = P(first) + P(second) - 2 P(both), where P(first) and P(second) drop out
        found = 2 * (owens_t(h, first) + owens_t(k, second)) + apart
        middle = (h == 0) & (k == 0)
        found = np.where(middle, 0.5 - np.arcsin(np.clip(correlation, -1, 1)) / np.pi, found)
        alike = spread < 1e-12
        same = np.abs(ndtr(h) - ndtr(k))
        opposed = np.abs(ndtr(-h) - ndtr(k))
        found = np.where(alike, np.where(correlation > 0, same, 1 - opposed), found)
    fixed = total == 0
    found = np.where(fixed, positive(np.where(mean > 0, -k, k), np.ones_like(k)), found)
    usable = np.isfinite(mean) & np.isfinite(total)
    return np.where(usable, np.clip(found, 0.0, 1.0), np.nan)
