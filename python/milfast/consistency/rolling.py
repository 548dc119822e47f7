"""Correlations within a window that moves along sorted points, each with the band of its bootstrap."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from milfast.consistency.smoothing import lowess

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.float64]
    #: Called after each part of the work with what is done, and all there is.
    Progress: TypeAlias = Callable[[int, int], object]

__all__ = ["CorrelationBand", "RollingCorrelation"]


@dataclass(frozen=True, repr=False, eq=False)
class CorrelationBand:
    """Pearson correlations, one a window.

    Attributes
    ----------
    r : ndarray of float64, shape (n_windows,)
        Of the points in the window; NaN where one of both quantities does not vary.
    mean, low, high : ndarray of float64, shape (n_windows,)
        Mean and percentiles over the resamples in which it is defined.
    n_undefined : ndarray of int64, shape (n_windows,)
        Resamples left out because a quantity did not vary in them.
    """

    r: Numbers
    mean: Numbers
    low: Numbers
    high: Numbers
    n_undefined: NDArray[np.int64]

    def __repr__(self) -> str:
        known = self.r[np.isfinite(self.r)]
        span = f"r from {known.min():.3f} to {known.max():.3f}" if len(known) else "undefined everywhere"
        return f"CorrelationBand({len(self.r)} windows, {span})"

    def to_dict(self) -> dict[str, list[Any]]:
        """Every attribute as a list, ready for JSON.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.
        """
        return {
            name: [None if math.isnan(value) else value for value in getattr(self, name).tolist()]
            for name in ("r", "mean", "low", "high", "n_undefined")
        }


@dataclass(frozen=True, repr=False, eq=False)
class RollingCorrelation:
    """How proportion and accuracy, and proportion and error consistency, go together along a curve.

    Attributes
    ----------
    of : {"means", "pairs"}
        What the points are: one a subset, or all pairs of runs of all subsets.
    window : int
        Points in a window.
    step : int
        Points from window to window.
    n_boot : int
        Resamples of each window.
    level : float
        Share of the resamples between `low` and `high`.
    proportion : ndarray of float64, shape (n_windows,)
        Mean proportion in the window.
    accuracy, consistency : CorrelationBand
        Correlation of the proportion with each.
    """

    of: str
    window: int
    step: int
    n_boot: int
    level: float
    proportion: Numbers
    accuracy: CorrelationBand
    consistency: CorrelationBand

    def __repr__(self) -> str:
        return (
            f"RollingCorrelation({self.of}, window={self.window}, {len(self.proportion)} windows, "
            f"accuracy: {_span(self.accuracy)}, consistency: {_span(self.consistency)})"
        )

    def lowess(self, *, frac: float = 2 / 3, it: int = 3) -> RollingCorrelation:
        """The same with smoothed bands, as in the supplement of the paper.

        Parameters
        ----------
        frac, it : float, int
            As in `milfast.consistency.lowess`, with a hundredth of the range as `delta`.

        Returns
        -------
        RollingCorrelation
        """
        delta = 0.01 * float(np.ptp(self.proportion))

        def smooth(values: Numbers) -> Numbers:
            known = np.isfinite(values)
            out = np.full(len(values), np.nan)
            if known.any():
                out[known] = lowess(self.proportion[known], values[known], frac=frac, it=it, delta=delta)
            return out

        def band(of: CorrelationBand) -> CorrelationBand:
            return replace(of, r=smooth(of.r), mean=smooth(of.mean), low=smooth(of.low), high=smooth(of.high))

        return replace(self, accuracy=band(self.accuracy), consistency=band(self.consistency))

    def summary(self) -> str:
        """One sentence for people.

        Returns
        -------
        str
        """
        return (
            f"In windows of {self.window} {self.of} the proportion correlates with accuracy by "
            f"{_span(self.accuracy)} and with error consistency by {_span(self.consistency)} (bootstrap means of "
            f"{self.n_boot} resamples a window)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Every attribute as plain values, ready for JSON.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.
        """
        return {
            "of": self.of,
            "window": self.window,
            "step": self.step,
            "n_boot": self.n_boot,
            "level": self.level,
            "proportion": self.proportion.tolist(),
            "accuracy": self.accuracy.to_dict(),
            "consistency": self.consistency.to_dict(),
        }


def _span(band: CorrelationBand) -> str:
    known = band.mean[np.isfinite(band.mean)]
    return f"{known.min():.2f} to {known.max():.2f}" if len(known) else "undefined"


def rolling(
    proportion: Numbers,
    accuracy: Numbers,
    consistency: Numbers,
    *,
    of: str,
    window: int,
    n_boot: int,
    step: int,
    level: float,
    generator: np.random.Generator,
    progress: Progress | None = None,
) -> RollingCorrelation:
    """Correlations in every window of points that are sorted by proportion.

    Each resample draws `window` points with replacement, as often as the window has points. It does so by place: how
    often each place of a ring of `window` places counts is drawn once, and a point that enters the window takes the
    place of the one that leaves it. Within every window that is exactly a bootstrap resample, and from window to
    window only one point changes, so the sums are brought forward in constant time.

    Parameters
    ----------
    proportion, accuracy, consistency : ndarray of float64, shape (n,)
    of : str
        What the points are.
    window, n_boot, step : int
    level : float
    generator : numpy.random.Generator
    progress : callable, optional

    Returns
    -------
    RollingCorrelation
    """
    n_windows = len(proportion) - window + 1
    weights = np.ones((window, 1 + n_boot), dtype=np.int64)  # the first resample is the window itself
    weights[:, 1:] = generator.multinomial(window, np.full(window, 1 / window), size=n_boot).T
    variables = [proportion, accuracy, consistency]
    codes = [np.unique(v, return_inverse=True)[1].astype(np.int64) for v in variables]
    kept = np.arange(0, n_windows, step)
    bands = [np.full((5, len(kept)), np.nan) for _ in range(2)]
    block = max(window, 256)  # sums are made anew for each block: what they lose to rounding stays small
    for start in range(0, n_windows, block):
        n = min(block, n_windows - start)
        inside = kept[(kept >= start) & (kept < start + n)]
        if len(inside):
            part = slice(start, start + n + window - 1)
            sums = _Sums(weights, window, start, inside - start)
            columns = slice(inside[0] // step, inside[-1] // step + 1)
            of_block = _correlations(sums, [v[part] for v in variables], [c[part] for c in codes])
            for band, r in zip(bands, of_block, strict=True):
                band[:, columns] = _percentiles(r, level)
        if progress is not None:
            progress(start + n, n_windows)
    means = np.lib.stride_tricks.sliding_window_view(proportion, window)[kept].mean(axis=1)
    first, second = (CorrelationBand(b[0], b[1], b[2], b[3], b[4].astype(np.int64)) for b in bands)
    return RollingCorrelation(of, window, step, n_boot, level, means, first, second)


class _Sums:
    """Weighted sums over the windows of one block, for all resamples."""

    def __init__(self, weights: NDArray[np.int64], window: int, start: int, kept: NDArray[np.int64]) -> None:
        self.window, self.kept = window, kept
        places = (start + np.arange(window)) % window
        self.first = weights[places]
        self.later = weights[(start + np.arange(int(kept[-1]))) % window]

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum of the values in each window and resample, shape (n_windows, n_resamples); integers wrap around."""
        out = np.empty((len(self.later) + 1, self.first.shape[1]), dtype=values.dtype)
        out[0] = (self.first * values[: self.window, np.newaxis]).sum(axis=0)
        change = values[self.window : self.window + len(self.later)] - values[: len(self.later)]
        np.multiply(self.later, change[:, np.newaxis], out=out[1:])
        return np.cumsum(out, axis=0)[self.kept]


def _correlations(sums: _Sums, variables: list[Numbers], codes: list[NDArray[np.int64]]) -> list[Numbers]:
    """Correlations of the first variable with each other one; NaN where one does not vary, which codes tell exactly."""
    n = sums.window
    centred = [v - v.mean() for v in variables]
    totals = [sums.of(v) for v in centred]
    spreads = [n * sums.of(v * v) - total * total for v, total in zip(centred, totals, strict=True)]
    # by Cauchy and Schwarz equal for constants alone; modulo 2**64, so nothing overflows
    constant = [n * sums.of(c * c) == sums.of(c) ** 2 for c in codes]
    found = []
    for i in (1, 2):
        together = n * sums.of(centred[0] * centred[i]) - totals[0] * totals[i]
        undefined = constant[0] | constant[i]
        product = np.where(undefined, 1.0, np.abs(spreads[0]) * np.abs(spreads[i]))
        with np.errstate(divide="ignore", invalid="ignore"):
            r = np.clip(together / np.sqrt(product), -1, 1)
        r[undefined | ~np.isfinite(r)] = np.nan
        found.append(r)
    return found


def _percentiles(r: Numbers, level: float) -> Numbers:
    """Rows: r of the window, mean, lower and upper percentile of its resamples, and how many have none."""
    resamples = np.sort(r[:, 1:], axis=1)  # NaN comes last
    defined = np.isfinite(resamples)
    n = defined.sum(axis=1)
    out = np.full((5, len(r)), np.nan)
    out[0], out[4] = r[:, 0], resamples.shape[1] - n
    some = n > 0
    out[1, some] = np.where(defined, resamples, 0).sum(axis=1)[some] / n[some]
    for row, share in ((2, (1 - level) / 2), (3, (1 + level) / 2)):
        at = share * (n[some] - 1)
        below = np.floor(at).astype(np.int64)
        above = np.minimum(below + 1, n[some] - 1)
        low, high = (np.take_along_axis(resamples[some], i[:, np.newaxis], axis=1)[:, 0] for i in (below, above))
        out[row, some] = low + (at - below) * (high - low)
    return out
