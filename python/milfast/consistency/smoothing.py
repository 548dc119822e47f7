"""LOWESS: a smooth line through a cloud of points that a few outliers do not bend."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["lowess"]

#: Rounds up a share of the points that lacks a whole number by rounding alone, as Cleveland's program does.
WHOLE = 1e-7
#: Distances below this share of the radius weigh 1, and above the other one nothing.
NEAR, FAR = 0.001, 0.999
#: Where the points of a neighbourhood lie closer together than this share of the range, no slope is fitted.
NARROW = 0.001
#: Weights are left as they are once the limit of the residuals is below this share of their mean, as in R, or below
#: that share of the values: then it is rounding.
SETTLED, ROUNDING = 1e-7, 1e-10


def lowess(x: ArrayLike, y: ArrayLike, *, frac: float = 2 / 3, it: int = 3, delta: float = 0.0) -> NDArray[np.float64]:
    """Robust locally weighted regression: the fitted value at each point.

    At each point a straight line is fitted to its nearest neighbours with tricube weights; then points with large
    residuals get less weight (bisquare, 0 beyond six median residuals) and all is fitted again, `it` times.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        In any order.
    frac : float
        Share of the points in a neighbourhood, above 0 and at most 1.
    it : int
        Robust iterations; 0 for none.
    delta : float
        Points closer than this to one where a line was fitted are interpolated: for thousands of points a hundredth
        of the range of `x` saves nearly all the work and costs no precision that can be seen.

    Returns
    -------
    ndarray of float64, shape (n,)
        In the order of the points.

    Raises
    ------
    ValueError
        When there are no points, the shapes differ, a number is not finite, or an option is out of range.
    TypeError
        When the points are not numbers.

    Notes
    -----
    The algorithm of Cleveland (1979) as in his program, which R's ``lowess`` runs too: all points that are tied in `x`
    with one of the neighbourhood count. ``lowess`` of statsmodels cuts such ties, and is the same algorithm otherwise.
    The order of the points does not matter.

    References
    ----------
    .. [1] Cleveland (1979), Robust locally weighted regression and smoothing scatterplots, J. Am. Stat. Assoc. 74.

    Examples
    --------
    >>> from milfast.consistency import lowess
    >>> lowess(range(10), [0, 1, 2, 3, 40, 5, 6, 7, 8, 9]).round(2)
    array([0., 1., 2., 3., 4., 5., 6., 7., 8., 9.])
    """
    points, values = _numbers(x, "x"), _numbers(y, "y")
    n = len(points)
    if n == 0:
        raise ValueError("x must hold at least one point; got none")
    if len(values) != n:
        raise ValueError(f"y must have one value a point, {n}; got {len(values)}")
    if not 0 < frac <= 1:
        raise ValueError(f"frac must lie above 0 and be at most 1; got {frac}")
    if isinstance(it, (bool, np.bool_)) or operator.index(it) < 0:
        raise ValueError(f"it must be an integer that is not negative; got {it!r}")
    if not 0 <= delta < np.inf:
        raise ValueError(f"delta must be finite and not negative; got {delta}")
    order = np.argsort(points, kind="stable")
    fitted = np.empty(n)
    fitted[order] = _smooth(points[order], values[order], frac, operator.index(it), delta)
    return fitted


def _numbers(values: Any, name: str) -> NDArray[np.float64]:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} cannot be read as numbers: {error}") from None
    if found.ndim != 1:
        raise ValueError(f"{name} must have shape (n,); got {found.shape}")
    odd = np.flatnonzero(~np.isfinite(found))
    if len(odd):
        raise ValueError(f"{name}[{odd[0]}] is {found[odd[0]]}: drop the point or impute it first")
    return found


def _smooth(x: NDArray[np.float64], y: NDArray[np.float64], frac: float, it: int, delta: float) -> NDArray[np.float64]:
    """Of points in ascending order of `x`."""
    n = len(x)
    if n == 1:
        return y.copy()
    k = min(max(int(frac * n + WHOLE), 2), n)
    fits = _places(x, delta)
    neighbourhoods = _neighbourhoods(x, fits, k)
    robust = np.ones(n)
    fitted = y
    for _ in range(it + 1):
        at = np.array([_fit(x, y, robust, i, *near) for i, near in zip(fits, neighbourhoods, strict=True)])
        fitted = np.interp(x, x[fits], at)
        residuals = np.abs(y - fitted)
        limit = 6 * float(np.median(residuals))
        if limit <= max(SETTLED * float(np.mean(residuals)), ROUNDING * float(np.abs(y).max())):
            break
        share = residuals / limit
        robust = np.where(share <= NEAR, 1.0, np.where(share <= FAR, (1 - share**2) ** 2, 0.0))
    return fitted


def _places(x: NDArray[np.float64], delta: float) -> list[int]:
    """Points at which a line is fitted: of each stretch of `delta` the last one, and the first and last of all."""
    n = len(x)
    found = [0]
    while True:
        last = found[-1]
        tied = int(np.searchsorted(x, x[last], side="right"))
        if tied == n:
            return found
        found.append(max(int(np.searchsorted(x, x[last] + delta, side="right")) - 1, tied))


def _neighbourhoods(x: NDArray[np.float64], places: list[int], k: int) -> list[tuple[int, int, float]]:
    """The `k` nearest points of each place, with all that are tied with them: from, to, radius."""
    left, found = 0, []
    for i in places:
        while left + k < len(x) and x[i] - x[left] > x[left + k] - x[i]:
            left += 1
        radius = float(max(x[i] - x[left], x[left + k - 1] - x[i]))
        found.append((left, int(np.searchsorted(x, x[i] + radius, side="right")), radius))
    return found


def _fit(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    robust: NDArray[np.float64],
    i: int,
    left: int,
    right: int,
    radius: float,
) -> float:
    """Value at point `i` of the line through its neighbourhood; its own value where nothing there has any weight.

    Of points that are tied with it, the mean: Cleveland's program takes the first one, which depends on their order.
    """
    near, values = x[left:right], y[left:right]
    distances = np.abs(near - x[i])
    if radius > 0:
        weights = np.where(distances <= NEAR * radius, 1.0, (1 - (distances / radius) ** 3) ** 3)
        weights[distances > FAR * radius] = 0
    else:
        weights = np.ones(len(near))
    weights *= robust[left:right]
    total = float(weights.sum())
    if total <= 0:
        return float(values[near == x[i]].mean())
    weights /= total
    centre = float((weights * near).sum())
    spread = float((weights * (near - centre) ** 2).sum())
    if radius > 0 and np.sqrt(spread) > NARROW * (x[-1] - x[0]):
        weights *= 1 + (x[i] - centre) / spread * (near - centre)
    return float((weights * values).sum())
