"""Two things are called error consistency: the Jaccard index of error sets and their kappa. From one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["jaccard_from_kappa", "kappa_from_jaccard"]


def kappa_from_jaccard(jaccard: ArrayLike, p: ArrayLike, q: ArrayLike | None = None) -> Any:
    """Kappa of two error sets (Geirhos et al.) from their Jaccard index (Levman et al.) and the error rates.

    The Dice index is D = 2 J / (1 + J); of independent errors it is about D0 = 2 p q / (p + q); and kappa is
    (D - D0) / (1 - D0). This is exact for one pair. For means over pairs it is an approximation.

    Parameters
    ----------
    jaccard : array_like of float
        Intersection over union, 0 to 1.
    p : array_like of float
        Share of the samples on which the first model errs.
    q : array_like of float, optional
        The same of the second; `p` by default.

    Returns
    -------
    float or ndarray of float64
        NaN where no model errs, or both always do.

    Raises
    ------
    ValueError
        When a value lies outside 0 to 1.
    TypeError
        When an argument is not a number.

    Examples
    --------
    >>> from milfast.consistency import kappa_from_jaccard
    >>> round(kappa_from_jaccard(0.8955, 0.2266), 3)
    0.929
    """
    index, first, second = _rates(jaccard, "jaccard", p, q, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = 2 * first * second / (first + second)
        kappa = np.where(chance < 1, (2 * index / (1 + index) - chance) / (1 - chance), np.nan)
    return _plain(kappa)


def jaccard_from_kappa(kappa: ArrayLike, p: ArrayLike, q: ArrayLike | None = None) -> Any:
    """Jaccard index of two error sets (Levman et al.) from their kappa (Geirhos et al.) and the error rates.

    Parameters
    ----------
    kappa : array_like of float
        Cohen's kappa, -1 to 1.
    p : array_like of float
        Share of the samples on which the first model errs.
    q : array_like of float, optional
        The same of the second; `p` by default.

    Returns
    -------
    float or ndarray of float64
        Undoes `kappa_from_jaccard`. NaN where no model errs, or both always do.

    Raises
    ------
    ValueError
        When a rate lies outside 0 to 1 or `kappa` outside -1 to 1.
    TypeError
        When an argument is not a number.

    Examples
    --------
    >>> from milfast.consistency import jaccard_from_kappa
    >>> round(jaccard_from_kappa(0.929, 0.2266), 3)
    0.896
    """
    index, first, second = _rates(kappa, "kappa", p, q, -1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = 2 * first * second / (first + second)
        dice = np.where(chance < 1, index * (1 - chance) + chance, np.nan)
        jaccard = dice / (2 - dice)
    return _plain(jaccard)


def _rates(
    index: ArrayLike, name: str, p: ArrayLike, q: ArrayLike | None, lowest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    found = []
    for given, label, low in ((index, name, lowest), (p, "p", 0.0), (p if q is None else q, "q", 0.0)):
        try:
            x = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{label} cannot be read as numbers: {error}") from None
        wrong = np.flatnonzero((x < low) | (x > 1))
        if len(wrong):
            raise ValueError(f"{label} must lie between {low:g} and 1; got {x.flat[wrong[0]]:g}")
        found.append(x)
    return found[0], found[1], found[2]


def _plain(x: NDArray[np.float64]) -> Any:
    return float(x) if np.ndim(x) == 0 else x
