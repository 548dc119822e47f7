"""Where the spread of repeated runs comes from, and whether it looks normal."""

from __future__ import annotations

import html
import math
import warnings
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.uncertainty.comparison import _exp, _plain, read_numbers, show_p
from milfast.uncertainty.intervals import Interval, _require_level
from milfast.uncertainty.tails import log_upper_f, t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, repr=False)
class VarianceComponents:
    """Variance of one figure over seeds, folds and the rest.

    Attributes
    ----------
    mean : Interval
        Mean of all runs, with Student's interval from its standard error and Satterthwaite's degrees of freedom.
    n_seeds, n_folds : int
        How many there are of each.
    ms_seed, ms_fold, ms_rest : float
        Mean squares of the analysis of variance.
    seed, fold, rest : float
        Estimated variances as the method of moments gives them: an estimate may be negative, which says that the true
        one is small.
    f_seed, f_fold : float
        F statistics; NaN when the rest has no variance.
    log_p_seed, log_p_fold : float
        Natural logarithms of their p-values.
    df : float
        Degrees of freedom of the interval of the mean.
    sd : float
        Standard deviation of all runs.
    notes : tuple of str
        What a reader should know beside the figures.

    Examples
    --------
    >>> from milfast.uncertainty import variance_components
    >>> runs = [[0.91, 0.86, 0.95, 0.88], [0.90, 0.84, 0.93, 0.88], [0.92, 0.87, 0.97, 0.91]]
    >>> variance_components(runs)
    VarianceComponents(mean 0.90 [0.84, 0.96], seed 12 %, fold 85 %, rest 2 %, 3 seeds x 4 folds)
    """

    mean: Interval
    n_seeds: int
    n_folds: int
    ms_seed: float
    ms_fold: float
    ms_rest: float
    seed: float
    fold: float
    rest: float
    f_seed: float
    f_fold: float
    log_p_seed: float
    log_p_fold: float
    df: float
    sd: float
    notes: tuple[str, ...] = ()

    @property
    def p_seed(self) -> float:
        """The p-value of the test that seeds make no difference."""
        return _exp(self.log_p_seed)

    @property
    def p_fold(self) -> float:
        """The p-value of the test that folds make no difference."""
        return _exp(self.log_p_fold)

    @property
    def clipped(self) -> tuple[float, float, float]:
        """Variances of seed, fold and rest with 0 for a negative one."""
        return max(0.0, self.seed), max(0.0, self.fold), max(0.0, self.rest)

    @property
    def shares(self) -> tuple[float, float, float]:
        """What seed, fold and rest have of the sum of the clipped variances; NaN when nothing varies."""
        total = sum(self.clipped)
        if total == 0:
            return math.nan, math.nan, math.nan
        seed, fold, rest = (value / total for value in self.clipped)
        return seed, fold, rest

    @property
    def se(self) -> float:
        """Standard error of the mean. All seeds share the folds, so the runs are not so many independent ones."""
        return self.se_with()

    @property
    def naive_se(self) -> float:
        """Standard deviation over the root of the number of runs: too small when runs share folds or seeds."""
        return self.sd / math.sqrt(self.n_seeds * self.n_folds)

    def se_with(self, n_seeds: int | None = None, n_folds: int | None = None) -> float:
        """Standard error of the mean of another number of seeds and folds.

        Parameters
        ----------
        n_seeds, n_folds : int, optional
            The numbers; those of these runs otherwise. Folds are parts of the data of one size: more folds are more
            data.

        Returns
        -------
        float
            The root of seed / n_seeds + fold / n_folds + rest / (n_seeds n_folds), of the clipped variances.

        Raises
        ------
        ValueError
            When a number is not positive.

        Examples
        --------
        >>> from milfast.uncertainty import variance_components
        >>> runs = [[0.91, 0.86, 0.95, 0.88], [0.90, 0.84, 0.93, 0.88], [0.92, 0.87, 0.97, 0.91]]
        >>> parts = variance_components(runs)
        >>> [round(parts.se_with(n_seeds=n), 4) for n in (3, 100)], round(parts.se_with(n_folds=16), 4)
        ([0.0213, 0.0195], 0.0129)
        """
        seeds = self.n_seeds if n_seeds is None else n_seeds
        folds = self.n_folds if n_folds is None else n_folds
        for name, number in (("n_seeds", seeds), ("n_folds", folds)):
            if not number >= 1:
                raise ValueError(f"{name} must be at least 1; got {number}")
        seed, fold, rest = self.clipped
        return math.sqrt(seed / seeds + fold / folds + rest / (seeds * folds))

    def __repr__(self) -> str:
        estimate, low, high = self.mean._rounded()
        shares = ", ".join(self._shares())
        size = f"{self.n_seeds} seeds x {self.n_folds} folds"
        return f"VarianceComponents(mean {estimate} [{low}, {high}], {shares}, {size})"

    def _repr_html_(self) -> str:
        return f"<span>{html.escape(self.summary())}</span>".replace("\n", "<br>")

    def summary(self) -> str:
        """What was found, for people.

        Returns
        -------
        str

        Examples
        --------
        >>> from milfast.uncertainty import variance_components
        >>> runs = [[0.91, 0.86, 0.95, 0.88], [0.90, 0.84, 0.93, 0.88], [0.92, 0.87, 0.97, 0.91]]
        >>> print(variance_components(runs).summary())
        0.90, 95 % interval 0.84 to 0.96 (crossed random effects, 12 runs)
        variance: seed 12 % (p = 0.0018), fold 85 % (p = 1.3e-05), rest 2 %
        standard error of the mean 0.021; the standard deviation over the root of 12 runs, 0.011, is 1.9 times too small
        seeds without end would leave 0.019; as many folds again, of new data, 0.016
        """
        tests = (f" ({show_p(self.log_p_seed)})", f" ({show_p(self.log_p_fold)})", "")
        lines = [
            self.mean.summary(),
            "variance: " + ", ".join(share + test for share, test in zip(self._shares(), tests, strict=True)),
        ]
        if self.se > 0:
            ratio = self.se / self.naive_se
            said = f"{ratio:.1f} times too small" if ratio > 1.05 else "no smaller"
            runs = self.n_seeds * self.n_folds
            limit, doubled = math.sqrt(self.clipped[1] / self.n_folds), self.se_with(n_folds=2 * self.n_folds)
            lines.append(
                f"standard error of the mean {self.se:.2g}; the standard deviation over the root of {runs} runs, "
                f"{self.naive_se:.2g}, is {said}"
            )
            lines.append(f"seeds without end would leave {limit:.2g}; as many folds again, of new data, {doubled:.2g}")
        return "\n".join((*lines, *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Every attribute by name, the shares and both standard errors, ready for JSON; an undefined number is None.

        Returns
        -------
        dict
        """
        values = asdict(self) | {
            "mean": self.mean.to_dict(),
            "shares": self.shares,
            "se": self.se,
            "naive_se": self.naive_se,
            "p_seed": self.p_seed,
            "p_fold": self.p_fold,
        }
        return {name: _plain(value) for name, value in values.items()}

    def _shares(self) -> list[str]:
        return [
            f"{name} {'undefined' if math.isnan(share) else f'{100 * share:.0f} %'}"
            for name, share in zip(("seed", "fold", "rest"), self.shares, strict=True)
        ]


def variance_components(values: ArrayLike, *, level: float = 0.95) -> VarianceComponents:
    """Split the variance of runs of several seeds on the same folds into seed, fold and rest.

    The model is y = mean + seed + fold + rest, all random and crossed (Searle, Casella and McCulloch 1992, Variance
    Components, section 4.3). With I seeds and J folds, the variance of seeds is (MS_seed - MS_rest) / J, that of folds
    (MS_fold - MS_rest) / I, and that of the mean seed / I + fold / J + rest / (I J).

    Parameters
    ----------
    values : array_like, shape (I, J)
        A row a seed, a column a fold: all seeds on the same folds.
    level : float
        Nominal coverage of the interval of the mean.

    Returns
    -------
    VarianceComponents
        The standard error of the mean uses 0 for a negative variance. Folds are held-out parts of one data set: that
        their models share most of the training data is not in these variances, and makes the mean less certain still.

    Raises
    ------
    ValueError
        When there are fewer than two seeds or folds, a figure is not finite (a missing run: leave its seed or its fold
        out), or `level` is not strictly between 0 and 1.
    TypeError
        When `values` cannot be read.

    Warns
    -----
    RuntimeWarning
        When the rest has no variance: the tests are undefined.

    Examples
    --------
    >>> from milfast.uncertainty import variance_components
    >>> runs = [[0.91, 0.86, 0.95, 0.88], [0.90, 0.84, 0.93, 0.88], [0.92, 0.87, 0.97, 0.91]]
    >>> parts = variance_components(runs)
    >>> [round(share, 2) for share in parts.shares], round(parts.se, 3), round(parts.naive_se, 3)
    ([0.12, 0.85, 0.02], 0.021, 0.011)
    """
    _require_level(level)
    y = read_numbers(values, "values", (2,))
    n_seeds, n_folds = y.shape
    if min(y.shape) < 2:
        raise ValueError(f"values must have a row a seed and a column a fold, two of each or more; got shape {y.shape}")
    mean = math.fsum(y.ravel()) / y.size
    rows, columns = y.mean(1) - mean, y.mean(0) - mean
    rest = y - mean - rows[:, None] - columns[None, :]
    df_seed, df_fold, df_rest = n_seeds - 1, n_folds - 1, (n_seeds - 1) * (n_folds - 1)
    # what rounding of the figures alone may leave
    nothing = (8 * np.finfo(np.float64).eps * float(np.max(np.abs(y)))) ** 2
    ms_seed, ms_fold, ms_rest = (
        0.0 if mean_square <= nothing * size else mean_square
        for mean_square, size in (
            (n_folds * float(rows @ rows) / df_seed, n_folds),
            (n_seeds * float(columns @ columns) / df_fold, n_seeds),
            (float((rest**2).sum()) / df_rest, 1),
        )
    )
    notes: tuple[str, ...] = ()
    f_seed = f_fold = log_p_seed = log_p_fold = math.nan
    if ms_rest > 0:
        f_seed, f_fold = ms_seed / ms_rest, ms_fold / ms_rest
        log_p_seed, log_p_fold = log_upper_f(f_seed, df_seed, df_rest), log_upper_f(f_fold, df_fold, df_rest)
    else:
        notes = ("nothing is left of the variance beside seeds and folds: their tests are undefined",)
        warnings.warn(notes[0], RuntimeWarning, stacklevel=2)
    seed, fold = (ms_seed - ms_rest) / n_folds, (ms_fold - ms_rest) / n_seeds
    # The variance of the mean is a sum of mean squares over I J, in which a clipped variance leaves out its own.
    used = [(ms_rest, df_rest, 1.0)]
    for part, mean_square, df_part in ((seed, ms_seed, df_seed), (fold, ms_fold, df_fold)):
        if part > 0:
            used = [
                (mean_square, df_part, 1.0),
                *((m, d, w - (i == len(used) - 1)) for i, (m, d, w) in enumerate(used)),
            ]
    total = sum(weight * m for m, _, weight in used)
    below = sum((weight * m) ** 2 / d for m, d, weight in used)
    df = total**2 / below if below > 0 else float(df_fold)
    se = math.sqrt(total / y.size)
    half = t_quantile(df, level) * se
    if seed < 0 or fold < 0:
        which = " and ".join(name for name, part in (("seeds", seed), ("folds", fold)) if part < 0)
        notes += (f"the estimated variance of {which} is negative and counts as 0",)
    return VarianceComponents(
        mean=Interval(mean, mean - half, mean + half, float(level), "crossed random effects", y.size, unit="runs"),
        n_seeds=n_seeds,
        n_folds=n_folds,
        ms_seed=ms_seed,
        ms_fold=ms_fold,
        ms_rest=ms_rest,
        seed=seed,
        fold=fold,
        rest=ms_rest,
        f_seed=f_seed,
        f_fold=f_fold,
        log_p_seed=log_p_seed,
        log_p_fold=log_p_fold,
        df=df,
        sd=float(np.std(y, ddof=1)),
        notes=notes,
    )


# -------------------------------------------------------------------- normality


@dataclass(frozen=True, repr=False)
class Normality:
    """Whether runs look as if drawn from a normal law.

    Attributes
    ----------
    n : int
        Runs.
    statistic : float
        Shapiro and Wilk's W; NaN when the runs are all the same.
    log_p : float
        Natural logarithm of its p-value.
    correlation : float
        Of the ordered runs with the normal quantiles: of the points of a Q-Q plot.
    skewness, kurtosis : float
        Third and fourth standardised moments, the latter less 3; both 0 for a normal law.
    lowest, highest : float
        The extreme runs, in standard deviations from the mean.
    notes : tuple of str
        What a reader should know beside the figures.

    Examples
    --------
    >>> from milfast.uncertainty import normality
    >>> normality([0.91, 0.89, 0.93, 0.90, 0.92, 0.70])
    Normality(W = 0.65, p = 0.0020, Q-Q correlation 0.792, n=6)
    """

    n: int
    statistic: float
    log_p: float
    correlation: float
    skewness: float
    kurtosis: float
    lowest: float
    highest: float
    notes: tuple[str, ...] = ()

    @property
    def p_value(self) -> float:
        """The p-value; NaN when the test is undefined."""
        return _exp(self.log_p)

    def __repr__(self) -> str:
        tested = f"W = {self.statistic:.2f}, {show_p(self.log_p)}"
        return f"Normality({tested}, Q-Q correlation {self.correlation:.3f}, n={self.n})"

    def summary(self) -> str:
        """What was found, for people.

        Returns
        -------
        str

        Examples
        --------
        >>> from milfast.uncertainty import normality
        >>> print(normality([0.91, 0.89, 0.93, 0.90, 0.92, 0.70]).summary())
        Shapiro-Wilk W = 0.65, p = 0.0020 (6 runs); Q-Q correlation 0.792, skewness -1.7, excess kurtosis 1.0; extremes
        at -2.0 and 0.6 standard deviations
        """
        sentence = (
            f"Shapiro-Wilk W = {self.statistic:.2f}, {show_p(self.log_p)} ({self.n} runs); Q-Q correlation "
            f"{self.correlation:.3f}, skewness {self.skewness:.1f}, excess kurtosis {self.kurtosis:.1f}; extremes at "
            f"{self.lowest:.1f} and {self.highest:.1f} standard deviations"
        )
        return "\n".join((sentence, *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Every attribute by name and the p-value, ready for JSON; an undefined number is None.

        Returns
        -------
        dict
        """
        return {name: _plain(value) for name, value in (asdict(self) | {"p_value": self.p_value}).items()}


def normality(values: ArrayLike) -> Normality:
    """Look whether runs are normal: Shapiro and Wilk's test, and the correlation of the Q-Q plot.

    A large p-value does not show that runs are normal: few runs hide much. Runs that share folds are not independent,
    which the test presumes.

    Parameters
    ----------
    values : array_like, shape (J,)
        One number a run.

    Returns
    -------
    Normality
        W by Royston (1995, Appl. Stat. 44), the correlation by Filliben (1975, Technometrics 17).

    Raises
    ------
    ValueError
        When there are fewer than three runs or a figure is not finite.
    TypeError
        When `values` cannot be read.

    Warns
    -----
    RuntimeWarning
        When all runs are the same: everything is undefined.

    Examples
    --------
    >>> from milfast.uncertainty import normality
    >>> normality([0.91, 0.89, 0.93, 0.90, 0.92, 0.91, 0.95])
    Normality(W = 0.97, p = 0.88, Q-Q correlation 0.981, n=7)
    """
    # Imported here because scipy takes longer to load than the rest of milfast.
    from scipy.stats import shapiro

    x = np.sort(read_numbers(values, "values"))
    n = len(x)
    if n < 3:
        raise ValueError(f"values must hold three runs or more; got {n}")
    centred = x - math.fsum(x) / n
    if float(np.ptp(x)) <= 8 * np.finfo(np.float64).eps * float(np.max(np.abs(x))):
        note = "all runs are the same: their law is undefined"
        warnings.warn(note, RuntimeWarning, stacklevel=2)
        nan = math.nan
        return Normality(n, nan, nan, nan, nan, nan, nan, nan, (note,))
    # scaled, because the squares of tiny figures underflow
    centred = centred / np.max(np.abs(centred))
    variance = float(np.mean(centred**2))
    step = -(-n // 5000)
    tested = shapiro(centred[::step])
    notes = (f"W and p are those of one in {step} ordered runs: the test is made for 5000 at most",) if step > 1 else ()
    deviation = math.sqrt(variance * n / (n - 1))
    return Normality(
        n,
        statistic=float(tested.statistic),
        log_p=min(0.0, math.log(max(float(tested.pvalue), math.ulp(0.0)))),
        correlation=float(np.corrcoef(normal_quantiles(n), centred)[0, 1]),
        skewness=float(np.mean(centred**3)) / variance**1.5,
        kurtosis=float(np.mean(centred**4)) / variance**2 - 3,
        lowest=float(centred[0]) / deviation,
        highest=float(centred[-1]) / deviation,
        notes=notes,
    )


def normal_quantiles(n: int) -> NDArray[np.float64]:
    """Where `n` ordered values of a standard normal law lie: the horizontal axis of a Q-Q plot.

    Parameters
    ----------
    n : int

    Returns
    -------
    ndarray, shape (n,)
        Normal quantiles of the medians of uniform order statistics, as Filliben (1975, Technometrics 17) approximates
        them.

    Raises
    ------
    ValueError
        When `n` is not positive.

    Examples
    --------
    >>> from milfast.uncertainty import normal_quantiles
    >>> normal_quantiles(5).round(3).tolist()
    [-1.129, -0.486, 0.0, 0.486, 1.129]
    """
    if n < 1:
        raise ValueError(f"n must be at least 1; got {n}")
    last = 0.5 ** (1 / n)
    places = [1 - last, *((i - 0.3175) / (n + 0.365) for i in range(2, n)), last] if n > 1 else [0.5]
    law = NormalDist()
    return np.array([law.inv_cdf(p) for p in places])
