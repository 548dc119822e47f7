"""Models compared by repeated runs: folds, repeats and seeds that share data are not independent."""

from __future__ import annotations

import html
import math
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.uncertainty.comparison import Comparison, _plain, read_names, read_numbers
from milfast.uncertainty.intervals import Interval, _choose, _number, _require_level, mean_interval
from milfast.uncertainty.tails import log_two_sided_t, log_upper_f, t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

_SAME = "both models have the same figure in every run: nothing tells them apart"
_CONSTANT = "the models differ by the same amount in every run: nothing shows how much it varies, the test is undefined"


def corrected_ttest(
    values_a: ArrayLike,
    values_b: ArrayLike,
    *,
    folds: int | None = None,
    test_train_ratio: float | None = None,
    level: float = 0.95,
    measure: str = "metric",
    names: Sequence[str] | None = None,
) -> Comparison:
    """Compare two models by the same (repeated) cross-validation: the corrected resampled t-test.

    Runs share training items, so their spread says too little and the plain paired t-test rejects far too often. With J
    differences of mean d and variance s^2, t = d / sqrt((1/J + n_test / n_train) s^2) on J - 1 degrees of freedom
    (Nadeau and Bengio 2003, Mach. Learn. 52; for repeated k-fold cross-validation Bouckaert and Frank 2004, PAKDD).

    Parameters
    ----------
    values_a, values_b : array_like, shape (J,) or (repeats, k)
        A figure of each model in each run, in the same order: fold 3 of both is one split.
    folds : int, optional
        k of a k-fold cross-validation, repeated or not: n_test / n_train is 1 / (k - 1). Taken from the second
        dimension when there is one.
    test_train_ratio : float, optional
        n_test / n_train of other resamplings, such as random splits; 0 for runs on independent data.
    level : float
        Nominal coverage of the interval of the difference.
    measure : str
        What the figures are, such as ``"AUC"``.
    names : sequence of str, optional
        The models; A and B otherwise.

    Returns
    -------
    Comparison
        When all differences are 0 the p-value is 1. When all are the same but not 0 (up to the rounding of the figures)
        the test is undefined: it must not print p = 0.

    Raises
    ------
    ValueError
        When shapes differ, there are fewer than two runs, a figure is not finite, neither or both of `folds` and
        `test_train_ratio` are known, J is no multiple of `folds`, or another option is out of range.
    TypeError
        When an argument cannot be read.

    Warns
    -----
    RuntimeWarning
        When the test is undefined.

    Examples
    --------
    >>> from milfast.uncertainty import corrected_ttest
    >>> ours = [0.91, 0.89, 0.94, 0.90, 0.92, 0.93, 0.88, 0.95, 0.90, 0.91]
    >>> theirs = [0.90, 0.89, 0.92, 0.88, 0.91, 0.93, 0.87, 0.93, 0.90, 0.90]
    >>> corrected_ttest(ours, theirs, folds=10)
    Comparison(A - B: 0.010 [0.002, 0.018], p = 0.026, method='corrected resampled t', n=10 runs)
    """
    _require_level(level)
    a, b, d = _differences(values_a, values_b)
    ratio = _ratio(d, folds, test_train_ratio)
    runs = d.size
    title = "corrected resampled t" if ratio else "paired t"
    found = mean_interval(d.ravel(), level=level, test_train_ratio=ratio)
    mean, scale = found.estimate, math.sqrt(1 / runs + ratio) * _deviation(d, a, b)
    t = mean / scale if scale else math.nan
    log_p = log_two_sided_t(t, runs - 1)
    notes = ["the runs are taken as independent (test_train_ratio=0)"] if not ratio else []
    if not scale:
        log_p, title, why = _no_spread(d, a, b, title)
        mean, half = (0.0, 0.0) if log_p == 0 else (mean, math.nan)
        notes.append(why)
    else:
        half = found.half_width
    return Comparison(
        names=read_names(names, 2),
        estimates=(float(np.mean(a)), float(np.mean(b))),
        difference=Interval(mean, mean - half, mean + half, float(level), title, runs, unit="runs"),
        log_p=log_p,
        statistic=t,
        df=(float(runs - 1),),
        method=title,
        n=runs,
        unit="runs",
        measure=measure,
        notes=tuple(notes),
        details={"test_train_ratio": ratio} | ({"se": scale} if scale else {}),
    )


def five_by_two(
    values_a: ArrayLike,
    values_b: ArrayLike,
    *,
    method: str = "f",
    level: float = 0.95,
    measure: str = "metric",
    names: Sequence[str] | None = None,
) -> Comparison:
    """Compare two models by five repeats of 2-fold cross-validation.

    Both tests presume that the halves of a repeat vary independently. On small data they do not, and the tests find too
    much (docs/uncertainty.md has rates): `corrected_ttest` is the safer choice there.

    Parameters
    ----------
    values_a, values_b : array_like, shape (5, 2)
        A figure of each model, a row a repeat and a column a fold.
    method : {"f", "t"}
        With the ten differences d_ij and s_i^2 = (d_i1 - d_i2)^2 / 2:

        - ``"f"``: sum d_ij^2 / (2 sum s_i^2), an F statistic with (10, 5) degrees of freedom (Alpaydin 1999, Neural
          Comput. 11). It does not depend on the order of the folds.
        - ``"t"``: d_11 / sqrt(sum s_i^2 / 5), Student's t with 5 degrees of freedom (Dietterich 1998, Neural Comput.
          10). Only the first difference counts above the line.
    level : float
        Nominal coverage of the interval of the difference.
    measure : str
        What the figures are, such as ``"AUC"``.
    names : sequence of str, optional
        The models; A and B otherwise.

    Returns
    -------
    Comparison
        Its difference is the mean of all ten under ``"f"``, which gives no interval; under ``"t"`` it is the first one,
        as in the statistic.

    Raises
    ------
    ValueError
        When the shapes are not (5, 2), a figure is not finite, or an option is out of range.
    TypeError
        When an argument cannot be read.

    Warns
    -----
    RuntimeWarning
        When all s_i^2 are 0 but the differences are not: the test is undefined.

    Examples
    --------
    >>> from milfast.uncertainty import five_by_two
    >>> ours = [[0.82, 0.79], [0.83, 0.81], [0.815, 0.82], [0.80, 0.81], [0.825, 0.83]]
    >>> theirs = [[0.80, 0.80]] * 5
    >>> five_by_two(ours, theirs)
    Comparison(A - B: 0.015 [nan, nan], p = 0.15, method='5x2cv F', n=10 runs)
    >>> five_by_two(ours, theirs, method="t")
    Comparison(A - B: 0.020 [-0.011, 0.051], p = 0.16, method='5x2cv t', n=10 runs)
    """
    _require_level(level)
    title = _choose(method, {"f": "5x2cv F", "t": "5x2cv t"})
    a, b, d = _differences(values_a, values_b)
    if d.shape != (5, 2):
        raise ValueError(f"values_a and values_b must have shape (5, 2), five repeats of two folds; got {d.shape}")
    gaps = np.where(np.abs(d[:, 0] - d[:, 1]) <= 2 * _rounding(a, b), 0.0, d[:, 0] - d[:, 1])
    below = float(np.sum(gaps**2) / 2)
    first, mean = float(d[0, 0]), float(np.mean(d))
    estimate = mean if method == "f" else first
    statistic, half, df = math.nan, math.nan, (10.0, 5.0) if method == "f" else (5.0,)
    notes: tuple[str, ...] = ()
    if not below:
        log_p, title, why = _no_spread(d, a, b, title)
        notes = (why,)
        if log_p == 0 and method == "t":
            half = 0.0
    elif method == "f":
        statistic = float(np.sum(d**2)) / (2 * below)
        log_p = log_upper_f(statistic, 10, 5)
        notes = ("the F test gives no interval for the difference",)
    else:
        scale = math.sqrt(below / 5)
        statistic = first / scale
        log_p, half = log_two_sided_t(statistic, 5), t_quantile(5, level) * scale
        notes = (f"the difference is that of the first fold; the mean of all ten is {mean:.3g}",)
    return Comparison(
        names=read_names(names, 2),
        estimates=(float(np.mean(a)), float(np.mean(b))),
        difference=Interval(estimate, estimate - half, estimate + half, float(level), title, 10, unit="runs"),
        log_p=log_p,
        statistic=statistic,
        df=df,
        method=title,
        n=10,
        unit="runs",
        measure=measure,
        notes=notes,
        details={"variances": [float(g * g / 2) for g in gaps]},
    )


@dataclass(frozen=True, repr=False)
class Posterior:
    """What the Bayesian correlated t-test says of two models.

    Attributes
    ----------
    names : tuple of str
        The models.
    first_better, equivalent, second_better : float
        Probabilities that the first model is better by more than the region of practical equivalence, that the
        difference lies within it, and that the second is better by more. They add up to 1; NaN when undefined.
    rope : float
        Half-width of the region of practical equivalence.
    difference : Interval
        Mean and highest-density interval of the difference, first minus second.
    df : int
        Degrees of freedom of the posterior.
    scale : float
        Scale of the posterior, a Student t around the mean.
    n : int
        Runs.
    measure : str
        What is compared.
    notes : tuple of str
        What a reader should know beside the figures.

    Examples
    --------
    >>> from milfast.uncertainty import bayesian_ttest
    >>> bayesian_ttest([0.93, 0.94, 0.95, 0.92, 0.96], [0.90, 0.90, 0.93, 0.88, 0.92], folds=5, rope=0.01)
    Posterior(P(A better) = 0.992, P(within 0.01) = 0.007, P(B better) = 0.001, n=5 runs)
    """

    names: tuple[str, ...]
    first_better: float
    equivalent: float
    second_better: float
    rope: float
    difference: Interval
    df: int
    scale: float
    n: int
    measure: str = "metric"
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        first, between, second = self._shown()
        return f"Posterior({first}, {between}, {second}, n={self.n} runs)"

    def _repr_html_(self) -> str:
        return f"<span>{html.escape(self.summary())}</span>".replace("\n", "<br>")

    def summary(self) -> str:
        """What was found, for people.

        Returns
        -------
        str

        Examples
        --------
        >>> from milfast.uncertainty import bayesian_ttest
        >>> result = bayesian_ttest([0.93, 0.94, 0.95, 0.92, 0.96], [0.90, 0.90, 0.93, 0.88, 0.92], folds=5, rope=0.01)
        >>> print(result.summary())
        metric: P(A better) = 0.992, P(within 0.01) = 0.007, P(B better) = 0.001; difference 0.034, 95 % interval 0.017
        to 0.051 (correlated t posterior, 5 runs)
        """
        sentence = f"{self.measure}: {', '.join(self._shown())}; difference {self.difference.summary()}"
        return "\n".join((sentence, *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Every attribute by name, ready for JSON; an undefined number is None.

        Returns
        -------
        dict
        """
        values = asdict(self) | {"difference": self.difference.to_dict()}
        return {name: _plain(value) for name, value in values.items()}

    def _shown(self) -> tuple[str, str, str]:
        def text(p: float) -> str:
            # neither certain nor impossible, whatever rounding says
            return (
                "undefined" if math.isnan(p) else "> 0.999" if p > 0.9995 else "< 0.001" if p < 5e-4 else f"= {p:.3f}"
            )

        return (
            f"P({self.names[0]} better) {text(self.first_better)}",
            f"P(within {self.rope:g}) {text(self.equivalent)}",
            f"P({self.names[1]} better) {text(self.second_better)}",
        )


def bayesian_ttest(
    values_a: ArrayLike,
    values_b: ArrayLike,
    *,
    rope: float,
    folds: int | None = None,
    test_train_ratio: float | None = None,
    level: float = 0.95,
    measure: str = "metric",
    names: Sequence[str] | None = None,
) -> Posterior:
    """Probabilities that one model is better than another, or as good, from the same cross-validation.

    The Bayesian correlated t-test (Corani and Benavoli 2015, Mach. Learn. 100; Benavoli et al. 2017, J. Mach. Learn.
    Res. 18): with a flat prior the difference is Student's t around the mean with the variance and degrees of freedom
    of `corrected_ttest`. With `rope` 0 the probability that the first is better is one minus half its p-value.

    Parameters
    ----------
    values_a, values_b : array_like, shape (J,) or (repeats, k)
        A figure of each model in each run, in the same order.
    rope : float
        Differences up to this make no practical difference. Choose it before looking; 0 leaves no room for "as good".
    folds : int, optional
        As for `corrected_ttest`.
    test_train_ratio : float, optional
        As for `corrected_ttest`.
    level : float
        Probability that the interval holds.
    measure : str
        What the figures are, such as ``"AUC"``.
    names : sequence of str, optional
        The models; A and B otherwise.

    Returns
    -------
    Posterior
        All NaN when the differences show no spread.

    Raises
    ------
    ValueError
        When `rope` is negative or not finite, or as `corrected_ttest`.
    TypeError
        When an argument cannot be read.

    Warns
    -----
    RuntimeWarning
        When the differences show no spread.

    Examples
    --------
    >>> from milfast.uncertainty import bayesian_ttest
    >>> ours = [0.91, 0.89, 0.94, 0.90, 0.92, 0.93, 0.88, 0.95, 0.90, 0.91]
    >>> theirs = [0.90, 0.89, 0.92, 0.88, 0.91, 0.93, 0.87, 0.93, 0.90, 0.90]
    >>> bayesian_ttest(ours, theirs, folds=10, rope=0.01)
    Posterior(P(A better) = 0.500, P(within 0.01) = 0.500, P(B better) < 0.001, n=10 runs)
    """
    # Imported here because scipy takes longer to load than the rest of milfast.
    from scipy.special import stdtr

    _require_level(level)
    room = _number(rope, "rope")
    if not 0 <= room < math.inf:
        raise ValueError(f"rope must be finite and not negative; got {room}")
    a, b, d = _differences(values_a, values_b)
    ratio = _ratio(d, folds, test_train_ratio)
    mean, runs = float(np.mean(d)), d.size
    scale = math.sqrt(1 / runs + ratio) * _deviation(d, a, b)
    notes: tuple[str, ...] = ()
    if scale:
        first, second = (float(stdtr(runs - 1, (side * mean - room) / scale)) for side in (1, -1))
        # each tail by itself, so that neither is what rounding leaves of 1
        between = max(0.0, 1 - first - second)
        half = t_quantile(runs - 1, level) * scale
    else:
        first = between = second = half = math.nan
        notes = (_SAME if float(np.max(np.abs(d))) <= _rounding(a, b) else _CONSTANT,)
        warnings.warn(notes[0], RuntimeWarning, stacklevel=2)
    method = "correlated t posterior"
    return Posterior(
        names=read_names(names, 2),
        first_better=first,
        equivalent=between,
        second_better=second,
        rope=room,
        difference=Interval(mean, mean - half, mean + half, float(level), method, runs, unit="runs"),
        df=runs - 1,
        scale=scale or math.nan,
        n=runs,
        measure=measure,
        notes=notes,
    )


# -------------------------------------------------------------------- probability of improvement


@dataclass(frozen=True, repr=False)
class Improvement:
    """How often one model beats another, and what follows.

    Attributes
    ----------
    names : tuple of str
        The models.
    probability : Interval
        P(first > second), half of the ties counted, with its interval.
    gamma : float
        The probability above which an improvement is called meaningful.
    paired : bool
        Whether each comparison was of runs that share everything but the model.
    ties : int
        How many of the compared pairs were tied.
    notes : tuple of str
        What a reader should know beside the figures.

    Examples
    --------
    >>> from milfast.uncertainty import probability_of_improvement
    >>> result = probability_of_improvement([0.93, 0.94, 0.95, 0.92, 0.96, 0.91], [0.90, 0.90, 0.96, 0.88, 0.92, 0.90])
    >>> result
    Improvement(P(A > B) = 0.83 [0.50, 1.00], not significant)
    """

    names: tuple[str, ...]
    probability: Interval
    gamma: float
    paired: bool
    ties: int = 0
    notes: tuple[str, ...] = ()

    @property
    def significant(self) -> bool:
        """Whether the lower bound is above one half."""
        return self.probability.low > 0.5

    @property
    def meaningful(self) -> bool:
        """Whether the upper bound is above gamma."""
        return self.probability.high > self.gamma

    @property
    def decision(self) -> str:
        """``"significant and meaningful"``, ``"significant but not meaningful"``, ``"not significant"`` or
        ``"undefined"``.
        """
        if math.isnan(self.probability.half_width):
            return "undefined"
        if not self.significant:
            return "not significant"
        return "significant and meaningful" if self.meaningful else "significant but not meaningful"

    def __repr__(self) -> str:
        estimate, low, high = self.probability._rounded()
        return f"Improvement(P({self.names[0]} > {self.names[1]}) = {estimate} [{low}, {high}], {self.decision})"

    def _repr_html_(self) -> str:
        return f"<span>{html.escape(self.summary())}</span>".replace("\n", "<br>")

    def summary(self) -> str:
        """What was found, for people.

        Returns
        -------
        str

        Examples
        --------
        >>> from milfast.uncertainty import probability_of_improvement
        >>> print(probability_of_improvement([0.93, 0.94, 0.95], [0.90, 0.90, 0.96]).summary())
        P(A > B) = 0.67, 95 % interval 0.00 to 1.00 (percentile bootstrap, 3 runs): not significant
        """
        sentence = f"P({self.names[0]} > {self.names[1]}) = {self.probability.summary()}: {self.decision}"
        return "\n".join((sentence, *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Every attribute by name and the decision, ready for JSON; an undefined number is None.

        Returns
        -------
        dict
        """
        values = asdict(self) | {"probability": self.probability.to_dict(), "decision": self.decision}
        return {name: _plain(value) for name, value in values.items()}


def probability_of_improvement(
    values_a: ArrayLike,
    values_b: ArrayLike,
    *,
    paired: bool = True,
    gamma: float = 0.75,
    level: float = 0.95,
    names: Sequence[str] | None = None,
) -> Improvement:
    """How often the first model beats the second, half of the ties counted, and whether that is enough.

    The rule of Bouthillier et al. (2021, MLSys, arXiv 2103.03098): with the percentile bootstrap interval of P(A > B),
    a lower bound above 0.5 is significant, and an upper bound above `gamma` meaningful.

    Parameters
    ----------
    values_a, values_b : array_like, shape (J,) or (runs, J)
        Figures, higher is better. Paired: entry j of both shares everything else, such as the split and the seed. With
        two dimensions column j is what runs share, such as a fold, and each run of one model meets each of the other
        in the same column; the number of rows may differ.
    paired : bool
        False: the runs share nothing, and each of A meets each of B; the lengths may differ.
    gamma : float
        Above one half and below 1. The source recommends 0.75.
    level : float
        Nominal coverage of the interval.
    names : sequence of str, optional
        The models; A and B otherwise.

    Returns
    -------
    Improvement
        Paired, the interval is the percentile bootstrap over the J pairs or columns, of all resamples at once: their
        distribution is computed, not drawn, so there is no seed. When all pairs agree no resample says otherwise, and
        the bounds are Wilson's. Unpaired, P is an AUC and the interval that of `auc_interval`.

    Raises
    ------
    ValueError
        When shapes do not fit, a figure is not finite, or an option is out of range.
    TypeError
        When an argument cannot be read.

    Warns
    -----
    RuntimeWarning
        When there is one pair only, or one run of a model, unpaired: the bounds are undefined.

    Examples
    --------
    >>> from milfast.uncertainty import probability_of_improvement
    >>> ours = [0.76, 0.72, 0.73, 0.74, 0.67, 0.74, 0.73, 0.73, 0.78, 0.74]
    >>> theirs = [0.74, 0.71, 0.73, 0.72, 0.69, 0.72, 0.72, 0.71, 0.76, 0.72]
    >>> probability_of_improvement(ours, theirs)
    Improvement(P(A > B) = 0.85 [0.65, 1.00], significant and meaningful)
    """
    _require_level(level)
    threshold = _number(gamma, "gamma")
    if not 0.5 < threshold < 1:
        raise ValueError(f"gamma must lie between 0.5 and 1 (0.75 is usual); got {threshold:g}")
    read = read_names(names, 2)
    a = read_numbers(values_a, "values_a", (1, 2) if paired else (1,))
    b = read_numbers(values_b, "values_b", (1, 2) if paired else (1,))
    if not paired:
        return _all_pairs(a, b, threshold, level, read)
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"values_a and values_b must hold the same {'columns' if len(a) > 1 else 'runs'}, in one order; got "
            f"{a.shape[1]} and {b.shape[1]}"
        )
    # twice the wins of each column, as whole numbers
    wins = sum((2 * (row > b) + (row == b)).sum(0) for row in a)
    most, columns = 2 * len(a) * len(b), a.shape[1]
    estimate = int(wins.sum()) / (most * columns)
    notes: tuple[str, ...] = ()
    if columns == 1:
        notes = ("one pair shows no spread: the bounds are undefined",)
        warnings.warn(notes[0], RuntimeWarning, stacklevel=2)
        low, high, method = math.nan, math.nan, "undefined (one pair)"
    elif np.all(wins == wins[0]):
        from milfast.uncertainty.intervals import _wilson

        method = "wilson (all pairs agree)"
        low, high = _wilson(estimate * columns, columns, level)
    else:
        method = "percentile bootstrap"
        low, high = _resampled(wins, most, level)
    probability = Interval(estimate, low, high, float(level), method, columns, unit="runs" if most == 2 else "columns")
    ties = int(sum((row == b).sum() for row in a))
    return Improvement(read, probability, threshold, True, ties, notes)


def _all_pairs(
    a: NDArray[np.float64], b: NDArray[np.float64], gamma: float, level: float, names: tuple[str, ...]
) -> Improvement:
    from milfast._core import delong
    from milfast.uncertainty.intervals import interval_of_auc

    auc, variance, n_a, n_b = delong(np.concatenate((a, b)), np.repeat([1, 0], (len(a), len(b))))
    found = interval_of_auc(auc, variance, n_a, n_b, level=level)
    notes: tuple[str, ...] = ()
    if math.isnan(found.half_width):
        notes = ("one run of a model shows no spread: the bounds are undefined",)
        warnings.warn(notes[0], RuntimeWarning, stacklevel=3)
    method = "undefined (one run)" if notes else found.method
    probability = Interval(auc, found.low, found.high, float(level), method, n_a + n_b, unit="runs")
    ties = int(sum(np.count_nonzero(a == value) for value in b))
    return Improvement(names, probability, gamma, False, ties, notes)


def _resampled(wins: NDArray[np.int64], most: int, level: float) -> tuple[float, float]:
    """Percentile bounds over every resample: the law of a sum of as many draws as there are columns."""
    columns = len(wins)
    size = columns * most + 1
    transform = np.fft.rfft(np.bincount(wins, minlength=most + 1) / columns, size)
    law = np.cumsum(np.clip(np.fft.irfft(transform**columns, size), 0, None))
    tail = (1 - level) / 2
    # the transform is right to about 1e-15 a step: a probability that equals the tail counts as reached
    low, high = (int(np.searchsorted(law / law[-1], p - 1e-12, "left")) for p in (tail, 1 - tail))
    return low / (size - 1), high / (size - 1)


# -------------------------------------------------------------------- shared arithmetic and reading


def _differences(values_a: Any, values_b: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    a, b = read_numbers(values_a, "values_a", (1, 2)), read_numbers(values_b, "values_b", (1, 2))
    if a.shape != b.shape:
        raise ValueError(
            f"values_a and values_b must hold the same runs, in one order; got shapes {a.shape}, {b.shape}"
        )
    if a.size < 2:
        raise ValueError("values_a and values_b must hold two runs or more: one shows no spread")
    return a, b, a - b


def _rounding(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """How much two equal differences may differ because the figures are doubles."""
    return 4 * np.finfo(np.float64).eps * float(max(np.max(np.abs(a)), np.max(np.abs(b))))


def _deviation(d: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Sample standard deviation; exactly 0 when rounding explains all of it."""
    deviation = float(np.std(d, ddof=1))
    return 0.0 if float(np.ptp(d)) <= 2 * _rounding(a, b) else deviation


def _no_spread(
    d: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64], title: str
) -> tuple[float, str, str]:
    """Log p, method and note of differences that are all the same."""
    if float(np.max(np.abs(d))) <= _rounding(a, b):
        return 0.0, f"{title} (no spread)", _SAME
    warnings.warn(_CONSTANT, RuntimeWarning, stacklevel=3)
    return math.nan, "undefined (no spread)", _CONSTANT


def _ratio(d: NDArray[np.float64], folds: Any, test_train_ratio: Any) -> float:
    if test_train_ratio is not None:
        if folds is not None:
            raise ValueError("give folds or test_train_ratio, not both")
        ratio = _number(test_train_ratio, "test_train_ratio")
        if not 0 <= ratio < math.inf:
            raise ValueError(f"test_train_ratio must be finite and not negative; got {ratio}")
        return ratio
    if d.ndim == 2:
        if folds is not None and folds != d.shape[1]:
            raise ValueError(f"values of shape {d.shape} have {d.shape[1]} folds a row; got folds={folds}")
        folds = d.shape[1]
    if folds is None:
        raise ValueError(
            "folds is missing: give the number of folds of the cross-validation, or test_train_ratio = n_test / "
            "n_train of other resamplings (0 for runs on independent data)"
        )
    if isinstance(folds, (bool, np.bool_)) or not isinstance(folds, (int, np.integer)):
        raise TypeError(f"folds must be an integer; got {folds!r}")
    if folds < 2 or d.size % folds:
        raise ValueError(f"folds must be at least 2 and divide the number of runs, {d.size}; got {folds}")
    return 1 / (int(folds) - 1)
