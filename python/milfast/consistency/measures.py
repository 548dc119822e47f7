"""Measures of two error sets by their names: what the kernels call them, and their values from four counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Metric: TypeAlias = Literal["jaccard", "kappa", "dice", "double_fault", "q", "phi", "agreement"]

#: Names of the kernels.
KERNEL_NAMES: dict[str, str] = {
    "jaccard": "jaccard",
    "kappa": "kappa",
    "dice": "dice",
    "double_fault": "double-fault",
    "q": "yule-q",
    "phi": "phi",
    "agreement": "agreement",
}
_SPELLINGS = {**{name: name for name in KERNEL_NAMES}, "double-fault": "double_fault", "yule-q": "q", "yule_q": "q"}
#: Measures of what is shared, whatever the shape of the table of two sets: they can ask for the same answer.
OF_SHARES = ("jaccard", "dice", "double_fault", "agreement")
#: Measures that are a ratio for each pair, whose parts can be added up over pairs.
RATIOS = (*OF_SHARES, "kappa")


def metric_of(name: str) -> Metric:
    """The metric of a name, in any of its spellings."""
    if name not in _SPELLINGS:
        raise ValueError(f"metric must be one of {', '.join(KERNEL_NAMES)}; got {name!r}")
    return cast("Metric", _SPELLINGS[name])


def range_of(metric: str) -> tuple[float, float]:
    """Smallest and largest value a metric can have."""
    return (0.0, 1.0) if metric in OF_SHARES else (-1.0, 1.0)


def parts(
    metric: str, n: Any, a: Any, b: Any, both: Any, same: Any | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Numerator and denominator of a metric, from the samples, the sizes of both sets and what they share.

    Parameters
    ----------
    metric : str
    n, a, b, both : array_like
        Samples; samples on which each of the two models errs; and on which both do.
    same : array_like, optional
        Samples on which both err and give the same answer; `both` otherwise. For the metrics of `OF_SHARES`.

    Returns
    -------
    ndarray of float64
        Two of them, with the shape of the counts together.
    """
    n, a, b, both = (np.asarray(x, dtype=np.float64) for x in (n, a, b, both))
    same = both if same is None else np.asarray(same, dtype=np.float64)
    union = a + b - both
    if metric == "jaccard":
        above, below = same, union
    elif metric == "dice":
        above, below = 2 * same, a + b
    elif metric == "double_fault":
        above, below = same, n
    elif metric == "agreement":
        above, below = n - union + same, n
    elif metric == "kappa":
        above, below = 2 * (n * both - a * b), a * (n - b) + b * (n - a)
    elif metric == "phi":
        above, below = n * both - a * b, np.sqrt(a * (n - a) * (b * (n - b)))
    else:
        alike, different = (n - union) * both, (a - both) * (b - both)
        above, below = alike - different, alike + different
    return np.broadcast_arrays(above, below)  # type: ignore[return-value]


def value(metric: str, n: Any, a: Any, b: Any, both: Any, same: Any | None = None) -> NDArray[np.float64]:
    """A metric from counts, as for `parts`; NaN where it is 0 / 0.

    Parameters
    ----------
    metric : str
    n, a, b, both, same : array_like

    Returns
    -------
    ndarray of float64
    """
    above, below = parts(metric, n, a, b, both, same)
    found = np.full(above.shape, np.nan)
    np.divide(above, below, out=found, where=below != 0)
    return found


def undefined(metric: str, n: Any, a: Any, b: Any) -> NDArray[np.bool_]:
    """Where a metric is 0 / 0, which the sizes of the two sets decide.

    Parameters
    ----------
    metric : str
    n, a, b : array_like
        Samples, and samples on which each of the two models errs.

    Returns
    -------
    ndarray of bool
    """
    n, a, b = (np.asarray(x) for x in (n, a, b))
    empty: NDArray[np.bool_] = np.asarray((a == 0) & (b == 0))
    if metric in ("jaccard", "dice"):
        return empty
    if metric == "kappa":
        return np.asarray(empty | ((a == n) & (b == n)))
    if metric in ("phi", "q"):
        return np.asarray((a == 0) | (b == 0) | (a == n) | (b == n))
    return np.broadcast_to(n == 0, empty.shape)
