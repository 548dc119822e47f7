"""What single runs measured, and what several of them say together."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast._core import delong
from milfast.uncertainty import Interval, interval_of_auc, mean_interval, proportion_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Estimate:
    """An AUC, or a share of bags, that one run measured, with what intervals of any level need.

    Attributes
    ----------
    value : float
        The AUC or the share; NaN when there was nothing to measure.
    variance : float
        Its variance over test sets, for this fit.
    n : int
        Number of bags.
    n_pos, n_neg : int or None
        Size of each class, for an AUC.
    """

    value: float
    variance: float
    n: int
    n_pos: int | None = None
    n_neg: int | None = None

    @classmethod
    def of_scores(cls, scores: ArrayLike, labels: ArrayLike) -> Estimate:
        """The AUC of some bags.

        Parameters
        ----------
        scores, labels : array_like, shape (n_bags,)

        Returns
        -------
        Estimate
        """
        auc, variance, n_pos, n_neg = delong(scores, labels)
        return cls(auc, variance, n_pos + n_neg, n_pos, n_neg)

    @classmethod
    def of_flags(cls, flags: NDArray[np.bool_]) -> Estimate:
        """The share of bags that are flagged.

        Parameters
        ----------
        flags : ndarray of bool, shape (n_bags,)

        Returns
        -------
        Estimate
        """
        if not len(flags):
            return cls(math.nan, math.nan, 0)
        share = int(np.count_nonzero(flags)) / len(flags)
        return cls(share, share * (1 - share) / len(flags), len(flags))

    @property
    def is_auc(self) -> bool:
        """Whether it is an AUC."""
        return self.n_pos is not None

    @property
    def independent(self) -> int:
        """Number of independent terms that no estimate has fewer of: bags, or bags of the smaller class."""
        return self.n if self.n_pos is None or self.n_neg is None else min(self.n_pos, self.n_neg)

    @property
    def noise(self) -> float:
        """Standard deviation over test sets; where the estimate is 0 or 1 and shows none, that of one bag in all."""
        return math.sqrt(self.variance) if self.variance > 0 else 1 / max(self.independent, 1)

    def interval(self, level: float) -> Interval:
        """The interval that holds for this fit alone.

        Parameters
        ----------
        level : float

        Returns
        -------
        Interval
            On the logit scale for an AUC, Wilson's for a share.
        """
        if self.n_pos is not None and self.n_neg is not None:
            return interval_of_auc(self.value, self.variance, self.n_pos, self.n_neg, level=level)
        if self.n == 0:
            return Interval(math.nan, math.nan, math.nan, level, "undefined (no bag)", 0)
        return proportion_interval(round(self.value * self.n), self.n, level=level)

    def to_dict(self) -> dict[str, Any]:
        """Every attribute as a plain value; None where it is not a number.

        Returns
        -------
        dict
        """
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Estimate:
        """The estimate that `to_dict` described.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Estimate
        """
        read: dict[str, Any] = {
            k: math.nan if v is None and k in ("value", "variance") else v for k, v in values.items()
        }
        return cls(**read)


class Pooled:
    """Estimates of independent runs, each with a fit and bags of its own.

    The interval of a single run holds for that fit alone. Over several runs it is a t interval on the mean, which has
    the noise of the test bags in it; where the runs agree better than that noise allows, the noise takes the place of
    their spread. Where all runs gave 0 or all gave 1, it is the Wilson bound for the bags of all runs.

    Parameters
    ----------
    estimates : sequence of Estimate
        One a run.
    """

    def __init__(self, estimates: Sequence[Estimate]) -> None:
        self.estimates = tuple(estimates)
        self.values = [e.value for e in self.estimates]
        self.runs = len(self.values)
        self.mean = math.fsum(self.values) / self.runs
        self.defined = not math.isnan(self.mean)
        self.extreme = len(set(self.values)) == 1 and self.values[0] in (0.0, 1.0)

    @property
    def deviation(self) -> float:
        """Standard deviation of a run: of the runs, or of the test bags where that is larger."""
        noise = math.sqrt(math.fsum(e.noise**2 for e in self.estimates) / self.runs)
        return max(float(np.std(self.values, ddof=1)), noise) if self.runs > 1 else noise

    def distance(self, value: float) -> float:
        """How far the mean lies from a value, in standard deviations of a run.

        Parameters
        ----------
        value : float

        Returns
        -------
        float
            -1 when the mean is undefined.
        """
        return abs(self.mean - value) / self.deviation if self.defined else -1.0

    def interval(self, level: float) -> Interval:
        """Two-sided interval of the mean.

        Parameters
        ----------
        level : float

        Returns
        -------
        Interval
        """
        if self.runs == 1:
            return self.estimates[0].interval(level)
        if not self.defined:
            return Interval(math.nan, math.nan, math.nan, level, "undefined", self.runs, unit="runs")
        if self.extreme:
            n = sum(e.independent for e in self.estimates)
            bound = proportion_interval(round(self.mean) * n, n, level=level)
            return Interval(self.mean, bound.low, bound.high, level, "wilson bound", self.runs, unit="runs")
        return mean_interval(self.values, level=level, bounds=(0.0, 1.0), least_deviation=self.deviation)

    def p_above(self, value: float) -> float:
        """One-sided p-value against the mean being `value` or less.

        It is below (1 - level) / 2 where the lower bound of the interval of that level lies above `value`.

        Parameters
        ----------
        value : float

        Returns
        -------
        float
        """
        return self._tail(self._distance(value))

    def p_below(self, value: float) -> float:
        """One-sided p-value against the mean being `value` or more.

        Parameters
        ----------
        value : float

        Returns
        -------
        float
        """
        return self._tail(-self._distance(value))

    def _distance(self, value: float) -> float:
        """Standard errors from `value` up to the mean; NaN when the mean is undefined."""
        if not self.defined:
            return math.nan
        one = self.estimates[0]
        if self.extreme or (self.runs == 1 and not one.is_auc):
            n = sum(e.independent for e in self.estimates)
            return (self.mean - value) / math.sqrt(value * (1 - value) / n)
        if self.runs == 1:
            if one.variance == 0:
                return math.copysign(math.inf, self.mean - value) if self.mean != value else 0.0
            slope = self.mean * (1 - self.mean)
            return (_logit(self.mean) - _logit(value)) * slope / math.sqrt(one.variance)
        return (self.mean - value) / (self.deviation / math.sqrt(self.runs))

    def _tail(self, distance: float) -> float:
        if math.isnan(distance):
            return 1.0
        if self.runs == 1 or self.extreme:
            return _NORMAL.cdf(-distance)
        # Imported here because scipy takes longer to load than the rest of milfast.
        from scipy.special import stdtr

        return float(stdtr(self.runs - 1, -distance))

    def runs_to_reach(self, value: float, tail: float, *, most: int = 10_000) -> int | None:
        """How many runs would put the interval on one side of `value`, if mean and spread stay as they are.

        Parameters
        ----------
        value : float
        tail : float
            Error of one bound: (1 - level) / 2.
        most : int
            Where to give up.

        Returns
        -------
        int or None
            At least two; None when not even `most` would do.
        """
        from scipy.special import stdtrit

        def enough(runs: int) -> bool:
            return bool(-stdtrit(runs - 1, tail) * self.deviation / math.sqrt(runs) < abs(self.mean - value))

        if self.defined and self.extreme:
            # the bound of all bags, which reaches z^2 / (n + z^2) from the end
            z2 = _NORMAL.inv_cdf(1 - tail) ** 2
            reach = abs(self.mean - value)
            bags = z2 * (1 - reach) / reach if 0 < reach < 1 else math.inf
            runs = (
                math.floor(bags * self.runs / sum(e.independent for e in self.estimates)) + 1
                if bags < math.inf
                else most + 1
            )
            return max(runs, 2) if runs <= most else None
        if not self.defined or not enough(most):
            return None
        low, high = 1, most  # the half-width falls with every run, so halving finds the first that is enough
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def _logit(p: float) -> float:
    return math.log(p / (1 - p))
