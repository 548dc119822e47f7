"""Error consistency of models that were trained again: all figures of one set of error sets."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast._core import agreement_matrix, agreement_summary, intersections
from milfast.consistency import chance
from milfast.consistency.answers import WrongAnswers, wrong_answers
from milfast.consistency.bits import packed_sets, sizes, sizes_within
from milfast.consistency.measures import KERNEL_NAMES, OF_SHARES, RATIOS, Metric, metric_of, parts, range_of, value
from milfast.consistency.sampling_error import (
    MicroSums,
    draws,
    group_numbers,
    jackknife,
    jackknife_error,
    percentiles,
    resampled,
)
from milfast.uncertainty.intervals import Interval, _require_level, _z
from milfast.uncertainty.tails import t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from milfast.seeding import RandomState

__all__ = ["ErrorConsistency", "error_consistency"]

Empty: TypeAlias = Literal["nan", "raise"] | float
Of: TypeAlias = Literal["mean", "micro"]
Over: TypeAlias = Literal["samples", "runs"]
Method: TypeAlias = Literal["delta", "bootstrap", "jackknife"]

#: The methods for what an interval is over, and what it is of; the first is used unless another is asked for.
_METHODS: dict[tuple[str, str], tuple[str, ...]] = {
    ("samples", "mean"): ("bootstrap",),
    ("samples", "micro"): ("delta", "bootstrap"),
    ("runs", "mean"): ("jackknife",),
    ("runs", "micro"): ("jackknife",),
}
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def error_consistency(
    error_sets: ArrayLike,
    metric: str = "jaccard",
    *,
    empty: Empty = "nan",
    predictions: ArrayLike | None = None,
    same_wrong: bool = False,
    level: float = 0.95,
    n_samples: int | None = None,
) -> ErrorConsistency:
    """Error consistency: whether models that are trained again err on the same samples.

    Parameters
    ----------
    error_sets : array_like of bool or of 0 and 1, shape (n_sets, n_samples)
        One row a model or run: True (or 1) where it errs, ``predictions != labels``.
    metric : {"jaccard", "kappa", "dice", "double_fault", "q", "phi", "agreement"}
        What is said of two sets. "jaccard", intersection over union, is the error consistency of [1]_; its mean over
        the pairs is the AEC. "kappa" is the error consistency of [2]_. Formulas are in `agreement_matrix`, which calls
        two of them "double-fault" and "yule-q"; these names are taken here too.
    empty : {"nan", 0, 1, "raise"}
        What a pair is whose measure is 0 / 0, as that of two models that never err: left out and counted, 0, 1, or an
        error. Also for the total and the leave-one-out consistency.
    predictions : array_like, shape (n_sets, n_samples), optional
        What the models answered, for `same_wrong`.
    same_wrong : bool, default False
        True: on a sample two models agree in error only if they give the same wrong answer. Of more than two classes
        they need not. It changes what both share and leaves the union as it is. For "jaccard", "dice", "double_fault"
        and "agreement".
    level : float
        Nominal coverage of intervals.
    n_samples : int, optional
        Says that `error_sets` holds bits, uint8 as of ``np.packbits(error_sets, axis=1)``, of that many samples.

    Returns
    -------
    ErrorConsistency

    Raises
    ------
    ValueError
        When a value is neither 0 nor 1, shapes do not fit, an option is unknown, predictions contradict the errors, or
        a pair has no value and `empty` is "raise".
    TypeError
        When an argument cannot be read.

    References
    ----------
    .. [1] Levman, Ewenson, Apaloo, Berger & Tyrrell (2023), Error consistency for machine learning evaluation and
       validation with application to biomedical diagnostics, Diagnostics 13(7), 1315.
    .. [2] Geirhos, Meding & Wichmann (2020), Beyond accuracy: quantifying trial-by-trial behaviour of CNNs and humans
       by measuring error consistency.

    Examples
    --------
    >>> from milfast.consistency import error_consistency
    >>> runs = [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0]]
    >>> found = error_consistency(runs)
    >>> found
    ErrorConsistency(jaccard: mean 0.5, SD 0.1667, 3 pairs of 3 sets, n_samples=5)
    >>> found.total, found.unpredictable.tolist(), found.accuracies.tolist()
    (0.3333333333333333, [0], [0.6, 0.8, 0.4])
    """
    name, policy = metric_of(metric), _policy(empty)
    _require_level(level)
    if same_wrong and predictions is None:
        raise ValueError("same_wrong needs predictions, shape (n_sets, n_samples): what each model answered")
    if same_wrong and name not in OF_SHARES:
        raise ValueError(
            f"same_wrong asks for one of {', '.join(OF_SHARES)}; {name} is of a two-by-two table, right or wrong"
        )
    if predictions is not None and not same_wrong:
        raise ValueError("predictions are for same_wrong=True only: leave them out, or set it")
    packed, n, counts = packed_sets(error_sets, n_samples)
    answers = wrong_answers(predictions, packed, n) if predictions is not None else None
    each = sizes(packed)
    if answers is None:
        mean, sd, low, high, defined, without = agreement_summary(packed, KERNEL_NAMES[name], n_samples=n)
    else:
        values = _same_values(name, packed, answers, n, each)
        mean, sd, low, high, defined, without = _moments(values)
    if without and policy == "raise":
        raise ValueError(
            f"{name} is undefined for {without} of the pairs of error sets, 0 / 0: leave them out with empty='nan', or "
            "say what they count with empty=0 or empty=1"
        )
    if without and not math.isnan(_number(policy)):
        mean, sd, low, high = _with_more(mean, sd, low, high, defined, without, _number(policy))
        defined += without
    return ErrorConsistency(
        name, policy, float(level), len(packed), n, defined, without, mean, sd, low, high, counts, each, packed, answers
    )


@dataclass(frozen=True, eq=False, repr=False)
class ErrorConsistency:
    """What is to say about the error sets of one model, or of several, on the same samples.

    The figures of the first row are there at once; the others are worked out when they are asked for. The matrix of
    pairs is never held.

    Attributes
    ----------
    metric : str
    empty : {"nan", "raise"} or float
        What pairs without a value count.
    level : float
        Nominal coverage of intervals.
    n_sets, n_samples : int
        Error sets (models or runs) and samples.
    n_pairs : int
        Pairs that the figures are of.
    n_undefined : int
        Pairs whose measure is 0 / 0. With `empty` "nan" they are left out of `n_pairs`.
    mean : float
        With "jaccard" the average error consistency (AEC).
    sd : float
        Standard deviation over the pairs, with n - 1. No standard error: pairs share sets, and all sets the samples.
    min, max : float
        Range over the pairs.
    error_counts : ndarray of uint32, shape (n_samples,)
        How many models err on each sample.
    set_sizes : ndarray of int64, shape (n_sets,)
        On how many samples each model errs.
    packed : ndarray of uint8, shape (n_sets, bytes)
        The error sets as bits; read-only.
    answers : WrongAnswers or None
        With `same_wrong` the wrong answers.

    Examples
    --------
    >>> from milfast.consistency import error_consistency
    >>> found = error_consistency([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    >>> found.median, round(found.micro, 4), round(found.chance, 4), round(found.corrected, 4)
    (0.5, 0.6, 0.25, 0.5556)
    """

    metric: Metric
    empty: Empty
    level: float
    n_sets: int
    n_samples: int
    n_pairs: int
    n_undefined: int
    mean: float
    sd: float
    min: float
    max: float
    error_counts: NDArray[np.uint32]
    set_sizes: NDArray[np.int64]
    packed: NDArray[np.uint8]
    answers: WrongAnswers | None = None

    # ---------------------------------------------------------------- of each sample and each set

    @property
    def same_wrong(self) -> bool:
        """Whether two models agree in error only if they give the same wrong answer."""
        return self.answers is not None

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """Share of the samples on which each model is right, shape (n_sets,); NaN without samples."""
        if self.n_samples == 0:
            return np.full(self.n_sets, np.nan)
        return 1 - self.set_sizes / self.n_samples

    @property
    def unpredictable(self) -> NDArray[np.intp]:
        """Samples on which every model errs, by number."""
        return np.flatnonzero(self.error_counts == self.n_sets) if self.n_sets else np.zeros(0, np.intp)

    def error_sets(self) -> NDArray[np.bool_]:
        """The error sets, a byte a sample.

        Returns
        -------
        ndarray of bool, shape (n_sets, n_samples)
        """
        return np.unpackbits(self.packed, axis=1, count=self.n_samples).view(bool)

    # ---------------------------------------------------------------- over pairs

    def matrix(self, *, condensed: bool = False, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """The measure of every pair of sets.

        Parameters
        ----------
        condensed : bool, default False
            True gives the pairs above the diagonal only, row after row, as `scipy.spatial.distance.squareform` reads
            them.
        dtype : {"float64", "float32"}, or what numpy takes for one of them

        Returns
        -------
        ndarray, shape (n_sets, n_sets) or (n_sets * (n_sets - 1) / 2,)
            The diagonal compares each set with itself. What is 0 / 0 is what `empty` says.

        Raises
        ------
        ValueError
            When `dtype` is another.

        Examples
        --------
        >>> from milfast.consistency import error_consistency
        >>> error_consistency([[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], empty=1).matrix()
        array([[1., 0., 0.],
               [0., 1., 1.],
               [0., 1., 1.]])
        """
        if self.answers is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # n_undefined tells of them
                found: NDArray[Any] = agreement_matrix(
                    self.packed, KERNEL_NAMES[self.metric], condensed=condensed, dtype=dtype, n_samples=self.n_samples
                )
        else:
            kind = agreement_matrix(np.zeros((0, 0), bool), dtype=dtype).dtype  # refuses others as elsewhere
            found = _same_values(
                self.metric, self.packed, self.answers, self.n_samples, self.set_sizes, condensed=condensed
            ).astype(kind)
        filled = _number(self.empty)
        if not math.isnan(filled):
            found[np.isnan(found)] = filled
        return found

    @cached_property
    def median(self) -> float:
        """Median over the pairs; NaN without any."""
        return float(self.quantile(0.5))

    def quantile(self, q: ArrayLike) -> Any:
        """Quantiles over the pairs.

        Parameters
        ----------
        q : array_like of float
            Shares of the pairs, 0 to 1.

        Returns
        -------
        float or ndarray of float64
            NaN without a pair. Between two values it is interpolated, as by `numpy.quantile`.

        Raises
        ------
        ValueError
            When a share lies outside 0 to 1.

        Examples
        --------
        >>> from milfast.consistency import error_consistency
        >>> error_consistency([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]).quantile([0, 0.5, 1]).tolist()
        [0.5, 0.5, 1.0]
        """
        values = self.matrix(condensed=True)
        values = values[~np.isnan(values)]
        shares = np.asarray(q, dtype=np.float64)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError(f"q must lie between 0 and 1; got {q!r}")
        if not len(values):
            return np.full(shares.shape, np.nan)[()]
        return np.quantile(values, shares)

    @cached_property
    def micro(self) -> float:
        """Numerators of all pairs over denominators of all pairs; NaN for q and phi, which have no such sums.

        With "jaccard" the micro AEC, of which samples count alike, while in the mean pairs do.
        """
        if self.metric not in RATIOS:
            return math.nan
        found = self._micro_sums().value()
        return _number(self.empty) if math.isnan(found) and self.n_sets > 1 else found

    # ---------------------------------------------------------------- over all sets at once

    @cached_property
    def total(self) -> float:
        """Samples on which every model errs over those on which any does: the total error consistency.

        With `same_wrong` the former are those on which all give the same wrong answer.
        """
        if self.n_sets == 0:
            return math.nan
        return self._ratio(int((self._shared_counts == self.n_sets).sum()), int((self.error_counts > 0).sum()))

    @cached_property
    def leave_one_out(self) -> float:
        """Mean of `leave_one_out_values`; NaN where none has a value."""
        values = self.leave_one_out_values()
        values = values[~np.isnan(values)]
        return float(values.mean()) if len(values) else math.nan

    def leave_one_out_values(self) -> NDArray[np.float64]:
        """Total error consistency without each set in turn.

        Returns
        -------
        ndarray of float64, shape (n_sets,)
            What is 0 / 0 is what `empty` says. NaN for a single set.

        Examples
        --------
        >>> from milfast.consistency import error_consistency
        >>> error_consistency([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]).leave_one_out_values().tolist()
        [1.0, 0.5, 0.5]
        """
        m = self.n_sets
        if m < 2:
            return np.full(m, np.nan)
        answers = self.packed if self.answers is None else self.answers.packed
        # a sample in all other sets is in all sets, or in all but this one
        nearly = np.flatnonzero(self._shared_counts == m - 1)
        both = (self._shared_counts == m).sum() + len(nearly) - sizes_within(answers, nearly)
        once = np.flatnonzero(self.error_counts == 1)
        either = (self.error_counts > 0).sum() - sizes_within(self.packed, once)
        return np.array([self._ratio(int(i), int(u)) for i, u in zip(both, either, strict=True)])

    # ---------------------------------------------------------------- chance

    @cached_property
    def chance(self) -> float:
        """Mean of the measure if every set had as many samples as it has, drawn at random: exact, see `chance_level`.

        NaN with `same_wrong`: how often two wrong answers coincide depends on what can be answered.
        """
        return self._chance[0]

    @cached_property
    def corrected(self) -> float:
        """(mean - chance) / (1 - chance): 0 for errors at random, 1 for sets that are all the same."""
        return _over(self.mean - self.chance, 1 - self.chance)

    @cached_property
    def highest(self) -> float:
        """Mean of the largest values that the sizes of the sets allow, min / max of both for "jaccard"."""
        return self._chance[1]

    @cached_property
    def corrected_to_highest(self) -> float:
        """(mean - chance) / (highest - chance): 1 where of each two sets one holds the other."""
        return _over(self.mean - self.chance, self.highest - self.chance)

    @cached_property
    def _chance(self) -> tuple[float, float]:
        if self.same_wrong:
            return math.nan, math.nan
        return chance.over_pairs(self.metric, self.n_samples, self.set_sizes, _number(self.empty))

    # ---------------------------------------------------------------- errors and intervals

    def standard_error(
        self,
        over: Over = "samples",
        method: Method | None = None,
        of: Of = "mean",
        *,
        n_replicates: int = 1000,
        groups: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> float:
        """Standard error of the mean over pairs or of the micro average.

        Parameters
        ----------
        over : {"samples", "runs"}
            Where the uncertainty comes from: other samples, with these models; or other runs, with these samples.
        method : {"delta", "bootstrap", "jackknife"}, optional
            As in `interval`.
        of : {"mean", "micro"}
        n_replicates : int
            Of a bootstrap.
        groups : array_like, shape (n_sets,), optional
            As in `interval`.
        random_state : int, numpy.random.Generator, numpy.random.SeedSequence or None
            Of a bootstrap.

        Returns
        -------
        float
            NaN where there is too little to tell.

        Raises
        ------
        ValueError, TypeError
            As `interval`.

        Examples
        --------
        >>> from milfast.consistency import error_consistency
        >>> found = error_consistency([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
        >>> round(found.standard_error("runs"), 3), round(found.standard_error("samples", of="micro"), 3)
        (0.333, 0.392)
        """
        _, error, _ = self._error(over, method, of, n_replicates, groups, random_state)
        return error

    def interval(
        self,
        over: Over = "samples",
        method: Method | None = None,
        of: Of = "mean",
        *,
        n_replicates: int = 1000,
        groups: ArrayLike | None = None,
        random_state: RandomState = None,
        level: float | None = None,
    ) -> Interval:
        """Confidence interval for the mean over pairs (the AEC) or for the micro average.

        The models are held fixed: an interval over samples says how far the figure would move with other samples of the
        same kind and these very models, one over runs how far it would move with other runs on these very samples. What
        another training set would do is in neither.

        Parameters
        ----------
        over : {"samples", "runs"}
        method : {"delta", "bootstrap", "jackknife"}, optional
            Over samples "bootstrap", percentiles of resampled samples, or for "micro" also "delta", a normal interval
            (the default there). Over runs "jackknife": without each set in turn, with Student's t.
        of : {"mean", "micro"}
        n_replicates : int
            Of a bootstrap.
        groups : array_like, shape (n_sets,), optional
            Over runs: sets that belong to one run, such as the models of the folds of a cross-validation, which are
            left out together.
        random_state : int, numpy.random.Generator, numpy.random.SeedSequence or None
            Of a bootstrap. The same draws for the same integer and number of samples, so that models can be compared.
        level : float, optional
            Nominal coverage, `self.level` by default.

        Returns
        -------
        milfast.uncertainty.Interval
            Cut to the range of the measure. Where there is too little to tell the bounds are NaN and its method says
            so.

        Raises
        ------
        ValueError
            When an option is unknown or does not go with another, or `level` is not between 0 and 1.
        TypeError
            When an argument cannot be read.

        Examples
        --------
        >>> import numpy as np
        >>> from milfast.consistency import error_consistency
        >>> rng = np.random.default_rng(0)
        >>> found = error_consistency(rng.random((20, 200)) < rng.beta(0.2, 0.8, 200))
        >>> found.interval(of="micro")
        Interval(0.46 [0.40, 0.53], level=0.95, method='delta', n=200)
        >>> found.interval("runs")
        Interval(0.462 [0.434, 0.490], level=0.95, method='jackknife', n=20 runs)
        """
        level = self.level if level is None else level
        _require_level(level)
        used, error, replicates = self._error(over, method, of, n_replicates, groups, random_state)
        estimate = self.mean if of == "mean" else self.micro
        unit, n = ("items", self.n_samples) if over == "samples" else ("runs", len(replicates))
        lowest, highest = range_of(self.metric)
        if math.isnan(estimate) or math.isnan(error):
            why = "no pair has a value" if math.isnan(estimate) else f"too few {over}"
            return Interval(estimate, math.nan, math.nan, float(level), f"undefined ({why})", n, unit=unit)
        if used == "bootstrap":
            low, high = percentiles(replicates, level)
        else:
            half = error * (t_quantile(n - 1, level) if used == "jackknife" else _z(level))
            low, high = max(lowest, estimate - half), min(highest, estimate + half)
        used = f"{used} (variance 0)" if error == 0 else used
        return Interval(estimate, low, high, float(level), used, n, unit=unit)

    def replicates(
        self, of: Of = "mean", *, n_replicates: int = 1000, random_state: RandomState = None
    ) -> NDArray[np.float64]:
        """The figure on resampled samples.

        Parameters
        ----------
        of : {"mean", "micro"}
        n_replicates : int
        random_state : int, numpy.random.Generator, numpy.random.SeedSequence or None
            The same draws for the same integer and number of samples: differences of two models on the same samples
            are differences of their replicates.

        Returns
        -------
        ndarray of float64, shape (n_replicates,)
            NaN where the drawn samples leave it without a value.

        Raises
        ------
        ValueError, TypeError
            As `interval`.

        Examples
        --------
        >>> from milfast.consistency import error_consistency
        >>> found = error_consistency([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
        >>> found.replicates(n_replicates=4, random_state=1).round(3).tolist()
        [0.0, 1.0, 0.556, 0.0]
        """
        self._method("samples", "bootstrap", of)
        n = _replicates(n_replicates)
        weights = draws(self.n_samples, n, random_state)
        if of == "mean":
            return resampled(self._weighted_mean, weights, n)
        found = self._micro_sums().resampled(weights, n)
        filled = _number(self.empty)
        return found if math.isnan(filled) else np.where(np.isnan(found), filled, found)

    # ---------------------------------------------------------------- to read

    def __repr__(self) -> str:
        left_out = f", n_undefined={self.n_undefined}" if self.n_undefined else ""
        wrong = ", same_wrong" if self.same_wrong else ""
        return (
            f"ErrorConsistency({self.metric}{wrong}: mean {self.mean:.4g}, SD {self.sd:.4g}, {self.n_pairs} "
            f"pair{'s' * (self.n_pairs != 1)} of {self.n_sets} set{'s' * (self.n_sets != 1)}, "
            f"n_samples={self.n_samples}{left_out})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{label}</th><td>{figure:.4g}</td></tr>"
            for label, figure in (
                ("mean", self.mean),
                ("SD over pairs", self.sd),
                ("median", self.median),
                ("micro", self.micro),
                ("total", self.total),
                ("leave one out", self.leave_one_out),
                ("chance", self.chance),
                ("corrected for chance", self.corrected),
                ("accuracy", _mean(self.accuracies)),
            )
        )
        return (
            f"<table><caption>Error consistency ({self.metric}), {self.n_pairs} pairs of {self.n_sets} sets, "
            f"{self.n_samples} samples</caption>{rows}</table>"
        )

    def summary(self) -> str:
        """Some sentences for people.

        Returns
        -------
        str

        Examples
        --------
        >>> from milfast.consistency import error_consistency
        >>> print(error_consistency([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]).summary())
        Error consistency (jaccard) of 3 sets on 4 samples: mean 0.667 over 3 pairs (SD 0.289), chance 0.250.
        All err on 1 of the 2 samples on which any does: total 0.500, leave-one-out 0.667.
        Mean accuracy 0.667 (SD over runs 0.144).
        """
        wrong = ", the same wrong answer" if self.same_wrong else ""
        by_chance = "" if math.isnan(self.chance) else f", chance {self.chance:.3f}"
        text = (
            f"Error consistency ({self.metric}{wrong}) of {self.n_sets} sets on {self.n_samples} samples: "
            f"mean {self.mean:.3f} over {self.n_pairs} pairs (SD {self.sd:.3f}){by_chance}.\n"
            f"All err on {len(self.unpredictable)} of the {int((self.error_counts > 0).sum())} samples on which any "
            f"does: total {self.total:.3f}, leave-one-out {self.leave_one_out:.3f}.\n"
            f"Mean accuracy {_mean(self.accuracies):.3f} (SD over runs {_sd(self.accuracies):.3f})."
        )
        if self.n_undefined:
            have = "pair has" if self.n_undefined == 1 else "pairs have"
            text += f"\n{self.n_undefined} {have} no value, 0 / 0 (empty={self.empty!r})."
        return text

    def to_dict(self) -> dict[str, Any]:
        """The figures by name, ready for JSON; of arrays only their length or their mean.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.

        Examples
        --------
        >>> from milfast.consistency import error_consistency
        >>> error_consistency([[1, 0], [1, 1]]).to_dict()["mean"]
        0.5
        """
        shares = [float(q) for q in np.atleast_1d(self.quantile(_QUANTILES))]
        figures: dict[str, Any] = {
            "metric": self.metric,
            "same_wrong": self.same_wrong,
            "empty": self.empty,
            "level": self.level,
            "n_sets": self.n_sets,
            "n_samples": self.n_samples,
            "n_pairs": self.n_pairs,
            "n_undefined": self.n_undefined,
            "mean": self.mean,
            "sd": self.sd,
            "min": self.min,
            "max": self.max,
            "median": shares[_QUANTILES.index(0.5)],
            "quantiles": {str(q): _json(x) for q, x in zip(_QUANTILES, shares, strict=True)},
            "micro": self.micro,
            "total": self.total,
            "leave_one_out": self.leave_one_out,
            "chance": self.chance,
            "corrected": self.corrected,
            "highest": self.highest,
            "corrected_to_highest": self.corrected_to_highest,
            "accuracy": _mean(self.accuracies),
            "accuracy_sd_runs": _sd(self.accuracies),
            "n_ever_wrong": int((self.error_counts > 0).sum()),
            "n_unpredictable": len(self.unpredictable),
        }
        return {name: _json(figure) for name, figure in figures.items()}

    # ---------------------------------------------------------------- the work

    @property
    def _shared_counts(self) -> NDArray[np.uint32]:
        """How many models share each error, or with `same_wrong` each wrong answer."""
        return self.error_counts if self.answers is None else self.answers.counts

    def _ratio(self, above: int, below: int) -> float:
        return above / below if below else _number(self.empty)

    def _micro_sums(self) -> MicroSums:
        same = None
        if self.answers is not None:
            c = self.answers.counts.astype(np.int64)
            same = np.zeros(self.n_samples, np.int64)
            np.add.at(same, self.answers.samples, c * (c - 1) // 2)
        return MicroSums(self.metric, self.n_sets, self.error_counts, self.packed, same)

    def _weighted_mean(self, weights: NDArray[np.int64]) -> float:
        """Mean over pairs where samples count several times or not at all."""
        if self.answers is None:
            mean, _, _, _, defined, without = agreement_summary(
                self.packed, KERNEL_NAMES[self.metric], sample_weight=weights, n_samples=self.n_samples
            )
        else:
            values = _same_values(self.metric, self.packed, self.answers, self.n_samples, None, weights)
            mean, _, _, _, defined, without = _moments(values)
        filled = _number(self.empty)
        if without and not math.isnan(filled):
            return _with_more(mean, 0.0, mean, mean, defined, without, filled)[0]
        return mean

    def _pair_parts(self, of: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What each pair adds to the numerator and to the denominator of a figure."""
        if of == "mean":
            values = self.matrix(condensed=True)
            known = ~np.isnan(values)
            return np.where(known, values, 0.0), known.astype(np.float64)
        i, j = np.triu_indices(self.n_sets, 1)
        both = intersections(self.packed, condensed=True, n_samples=self.n_samples)
        same = None
        if self.answers is not None:
            same = intersections(self.answers.packed, condensed=True, n_samples=self.answers.n_answers)
        return parts(self.metric, self.n_samples, self.set_sizes[i], self.set_sizes[j], both, same)

    def _method(self, over: str, method: str | None, of: str) -> str:
        if over not in ("samples", "runs"):
            raise ValueError(f"over must be 'samples' or 'runs'; got {over!r}")
        if of not in ("mean", "micro"):
            raise ValueError(f"of must be 'mean' or 'micro'; got {of!r}")
        if of == "micro" and self.metric not in RATIOS:
            raise ValueError(f"{self.metric} has no micro average: use of='mean'")
        known = _METHODS[over, of]
        if method is not None and method not in known:
            raise ValueError(f"method must be {' or '.join(map(repr, known))} for the {of} over {over}; got {method!r}")
        return method or known[0]

    def _error(
        self,
        over: str,
        method: str | None,
        of: Of,
        n_replicates: int,
        groups: ArrayLike | None,
        random_state: RandomState,
    ) -> tuple[str, float, NDArray[np.float64]]:
        """The method, the standard error, and replicates where there are any."""
        method = self._method(over, method, of)
        if groups is not None and over != "runs":
            raise ValueError(
                "groups are of runs: leave them out for an interval over samples, which takes samples as independent; "
                "select_model resamples groups of samples"
            )
        if method == "jackknife":
            numbers = group_numbers(groups, self.n_sets)
            found = jackknife(*self._pair_parts(of), self.n_sets, numbers)
            return method, jackknife_error(found), found
        if method == "delta":
            return method, self._micro_sums().delta_error(), np.zeros(0)
        found = self.replicates(of, n_replicates=n_replicates, random_state=random_state)
        known = found[~np.isnan(found)]
        return method, float(np.std(known, ddof=1)) if len(known) > 1 else math.nan, found


# -------------------------------------------------------------------- values of pairs


def _same_values(
    metric: str,
    packed: NDArray[np.uint8],
    answers: WrongAnswers,
    n_samples: int,
    each: NDArray[np.int64] | None,
    weights: NDArray[np.int64] | None = None,
    *,
    condensed: bool = True,
) -> NDArray[np.float64]:
    """A measure of pairs of which both must give the same wrong answer."""
    m = len(packed)
    of_answers = None if weights is None else weights[answers.samples]
    both = intersections(packed, sample_weight=weights, n_samples=n_samples)
    same = intersections(answers.packed, sample_weight=of_answers, n_samples=answers.n_answers)
    each = both.diagonal() if each is None else each
    n = n_samples if weights is None else int(weights.sum())
    if not condensed:
        return value(metric, n, each[:, None], each, both, same)
    i, j = np.triu_indices(m, 1)
    return value(metric, n, each[i], each[j], both[i, j], same[i, j])


def _moments(values: NDArray[np.float64]) -> tuple[float, float, float, float, int, int]:
    """Mean, SD, smallest and largest of the numbers among some values; how many there are, and how many others."""
    known = values[~np.isnan(values)]
    without = len(values) - len(known)
    if not len(known):
        return math.nan, math.nan, math.nan, math.nan, 0, without
    low, high = float(known.min()), float(known.max())
    if low == high:  # no rounding of the mean then
        return low, 0.0 if len(known) > 1 else math.nan, low, high, len(known), without
    return float(known.mean()), float(known.std(ddof=1)), low, high, len(known), without


def _with_more(
    mean: float, sd: float, low: float, high: float, n: int, more: int, filled: float
) -> tuple[float, float, float, float]:
    """The moments of `n` values and of `more` that are `filled`."""
    if n == 0:
        return filled, 0.0 if more > 1 else math.nan, filled, filled
    total, step = n + more, filled - mean
    squares = (0.0 if n == 1 else sd * sd * (n - 1)) + step * step * n * more / total
    low, high = min(low, filled), max(high, filled)
    both = filled if low == high else (mean * n + filled * more) / total
    return both, math.sqrt(squares / (total - 1)), low, high


# -------------------------------------------------------------------- small things


def _policy(empty: Any) -> Empty:
    if isinstance(empty, str):
        if empty in ("nan", "raise"):
            return empty  # type: ignore[return-value]
    elif not isinstance(empty, (bool, np.bool_)) and isinstance(empty, (int, float, np.number)):
        if math.isnan(empty):
            return "nan"
        if empty in (0, 1):
            return float(empty)
    raise ValueError(f"empty must be 'nan', 0, 1 or 'raise'; got {empty!r}")


def _number(empty: Empty) -> float:
    return math.nan if isinstance(empty, str) else empty


def _replicates(n: Any) -> int:
    if isinstance(n, (bool, np.bool_)) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"n_replicates must be an integer; got {n!r}")
    if n < 1:
        raise ValueError(f"n_replicates must be at least 1; got {n}")
    return int(n)


def _over(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else math.nan


def _sd(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def _json(figure: Any) -> Any:
    return None if isinstance(figure, float) and math.isnan(figure) else figure
