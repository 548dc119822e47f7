"""Measures of agreement over all pairs of error sets, without the matrix."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from milfast._core import agreement_summary

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["AgreementSummary", "summary"]

Measure: TypeAlias = Literal["jaccard", "dice", "kappa", "double-fault", "phi", "yule-q", "agreement"]


@dataclass(frozen=True, repr=False)
class AgreementSummary:
    """A measure of agreement over all pairs of different error sets.

    The standard deviation says how much pairs differ. It is no standard error of the mean: pairs share sets, and all
    sets share the samples.

    Attributes
    ----------
    measure : str
    mean : float
        With "jaccard" the average error consistency (AEC).
    sd : float
        Standard deviation over the pairs, with n - 1.
    min, max : float
        Range.
    n_pairs : int
        Pairs the figures are of.
    n_undefined : int
        Pairs left out, whose value is 0 / 0.

    Examples
    --------
    >>> from milfast.consistency import summary
    >>> summary([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    AgreementSummary(jaccard: mean 0.6667, SD 0.2887, 0.5 to 1, n_pairs=3)
    """

    measure: str
    mean: float
    sd: float
    min: float
    max: float
    n_pairs: int
    n_undefined: int

    def __repr__(self) -> str:
        left_out = f", n_undefined={self.n_undefined}" if self.n_undefined else ""
        figures = f"mean {self.mean:.4g}, SD {self.sd:.4g}, {self.min:.4g} to {self.max:.4g}"
        return f"AgreementSummary({self.measure}: {figures}, n_pairs={self.n_pairs}{left_out})"

    def to_dict(self) -> dict[str, Any]:
        """Every attribute by name, ready for JSON.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.

        Examples
        --------
        >>> from milfast.consistency import summary
        >>> summary([[1, 0], [1, 1]]).to_dict()["mean"]
        0.5
        """
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }


def summary(
    error_sets: ArrayLike,
    measure: Measure = "jaccard",
    *,
    sample_weight: ArrayLike | None = None,
    n_samples: int | None = None,
) -> AgreementSummary:
    """Mean, standard deviation and range of a measure over all pairs of error sets.

    The matrix is never made: faster than `agreement_matrix`, and in hardly more memory than a bit a sample. The figures
    have the same bits for any number of threads.

    Parameters
    ----------
    error_sets : array_like of bool or of 0 and 1, shape (n_sets, n_samples)
        One row a model or run: True (or 1) where it errs.
    measure : {"jaccard", "dice", "kappa", "double-fault", "phi", "yule-q", "agreement"}
        As in `agreement_matrix`.
    sample_weight : array_like of int, shape (n_samples,), optional
        How many times each sample counts, below 2**32: how often a bootstrap drew it, say.
    n_samples : int, optional
        Says that `error_sets` holds bits, uint8 as of ``np.packbits(error_sets, axis=1)``, of that many samples.

    Returns
    -------
    AgreementSummary
        Of the pairs that have a value; the number of the others is `n_undefined`.

    Raises
    ------
    ValueError, TypeError
        As `agreement_matrix`.

    Examples
    --------
    A bootstrap over samples, which shows how far the mean depends on them:

    >>> import numpy as np
    >>> from milfast.consistency import summary
    >>> rng = np.random.default_rng(0)
    >>> errors = rng.random((20, 200)) < rng.beta(0.2, 0.8, 200)
    >>> draws = rng.multinomial(200, np.full(200, 1 / 200), size=100)
    >>> means = [summary(errors, sample_weight=draw).mean for draw in draws]
    >>> bool(np.std(means) > summary(errors).sd / np.sqrt(190))
    True
    """
    return AgreementSummary(
        measure, *agreement_summary(error_sets, measure, sample_weight=sample_weight, n_samples=n_samples)
    )
