"""Confidence intervals for one proportion, one AUC and the mean of repeated runs."""

from __future__ import annotations

import html
import math
import operator
import warnings
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast._core import delong
from milfast.uncertainty.tails import t_quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import Bags
    from milfast.seeding import RandomState


@dataclass(frozen=True, repr=False)
class Interval:
    """An estimate with the interval around it.

    Printing rounds by the rule of the Particle Data Group (Review of Particle Physics, section "Rounding"): the
    half-width keeps two digits when its first three are 100 to 354 and one otherwise, and the estimate and both bounds
    are shown to the same decimal place. The attributes hold every digit.

    Attributes
    ----------
    estimate : float
        The point estimate; NaN when it is undefined.
    low, high : float
        The bounds; NaN when they are undefined.
    level : float
        Nominal coverage, between 0 and 1.
    method : str
        The rule that gave the bounds. It differs from the method asked for when a degenerate case needed another rule.
    n : int
        How many units the estimate rests on.
    unit : str
        What `n` counts: ``"items"`` or ``"runs"``.
    n_pos, n_neg : int or None
        Size of each class, for an AUC.
    n_clusters : int or None
        How many clusters the items came in, where that was told.
    n_boot, n_undefined : int or None
        Of a bootstrap: resamples that were drawn, and how many of them had no value and were left out.
    seed : int or None
        Of a bootstrap: what to give as `random_state` to get the same resamples again.

    Raises
    ------
    ValueError
        When `level` is not strictly between 0 and 1, or `low` lies above `high`.

    Examples
    --------
    >>> from milfast.uncertainty import Interval
    >>> accuracy = Interval(0.9034, 0.8788, 0.9234, level=0.95, method="wilson", n=670)
    >>> accuracy
    Interval(0.903 [0.879, 0.923], level=0.95, method='wilson', n=670)
    >>> 0.9 in accuracy
    True
    """

    estimate: float
    low: float
    high: float
    level: float
    method: str
    n: int
    unit: str = "items"
    n_pos: int | None = None
    n_neg: int | None = None
    n_clusters: int | None = None
    n_boot: int | None = None
    n_undefined: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        _require_level(self.level)
        if self.low > self.high:
            raise ValueError(f"low must not exceed high; got low={self.low}, high={self.high}")

    @property
    def half_width(self) -> float:
        """Half the distance between the bounds; NaN when they are undefined."""
        return (self.high - self.low) / 2

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __repr__(self) -> str:
        estimate, low, high = self._rounded()
        if self.n_pos is None:
            size = f"n={self.n}" if self.unit == "items" else f"n={self.n} {self.unit}"
        else:
            size = f"n_pos={self.n_pos}, n_neg={self.n_neg}"
        for name in ("n_clusters", "n_boot"):
            if (number := getattr(self, name)) is not None:
                size += f", {name}={number}"
        return f"Interval({estimate} [{low}, {high}], level={self.level:.6g}, method={self.method!r}, {size})"

    def _repr_html_(self) -> str:
        estimate, low, high = self._rounded()
        exact = f"{self.estimate!r} [{self.low!r}, {self.high!r}]"
        return (
            f'<span title="{exact}"><b>{estimate}</b> [{low}, {high}] '
            f"<small>{self._percent()}, {html.escape(self.method)}, {html.escape(self._size())}</small></span>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Every attribute by name, ready for JSON.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.

        Examples
        --------
        >>> from milfast.uncertainty import proportion_interval
        >>> proportion_interval(1, 2, method="wilson").to_dict()["estimate"]
        0.5
        """
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Interval:
        """The interval that `to_dict` described.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Interval

        Examples
        --------
        >>> from milfast.uncertainty import Interval, proportion_interval
        >>> interval = proportion_interval(3, 10)
        >>> Interval.from_dict(interval.to_dict()) == interval
        True
        """
        numbers = ("estimate", "low", "high")
        read: dict[str, Any] = {n: math.nan if v is None and n in numbers else v for n, v in values.items()}
        return cls(**read)

    def summary(self) -> str:
        """One sentence for people.

        Returns
        -------
        str

        Examples
        --------
        >>> from milfast.uncertainty import proportion_interval
        >>> proportion_interval(605, 670).summary()
        '0.903, 95 % interval 0.878 to 0.923 (wilson, 670 items)'
        """
        estimate, low, high = self._rounded()
        bounds = "undefined" if math.isnan(self.half_width) else f"{low} to {high}"
        drawn = ""
        if self.n_boot is not None:
            drawn = f", {self.n_boot} resamples" + (f", {self.n_undefined} undefined" if self.n_undefined else "")
        return f"{estimate}, {self._percent()} interval {bounds} ({self.method}{drawn}, {self._size()})"

    def _percent(self) -> str:
        return f"{100 * self.level:.6g} %"

    def _size(self) -> str:
        clusters = "" if self.n_clusters is None else f" in {self.n_clusters} clusters"
        if self.n_pos is None:
            return f"{self.n} {self.unit.removesuffix('s') if self.n == 1 else self.unit}{clusters}"
        return f"{self.n_pos} positive and {self.n_neg} negative{clusters}"

    def _rounded(self) -> tuple[str, str, str]:
        half = self.half_width
        if math.isfinite(half) and half > 0:
            lead, power = f"{half:.2e}".split("e")
            # never fewer than two decimals where the figure may be a rate: 0.8 for an AUC of 0.75 helps nobody
            decimals = -int(power) + (float(lead) < 3.55)
            if 0 <= self.estimate <= 1:
                decimals = max(decimals, 2)
        else:
            # Without a width nothing says how many digits hold: a few are shown.
            decimals = None
        return _show(self.estimate, decimals), _show(self.low, decimals), _show(self.high, decimals)


def proportion_interval(k: float, n: int, *, level: float = 0.95, method: str = "wilson") -> Interval:
    """Interval for a proportion, such as an accuracy.

    Parameters
    ----------
    k : float
        Number of successes, 0 to `n`. It may be fractional (a mean accuracy over folds times `n`); a fraction below 1
        is refused, because it is nearly always a proportion passed by mistake.
    n : int
        Number of independent trials.
    level : float
        Nominal coverage.
    method : {"wilson", "normal", "agresti-coull", "clopper-pearson", "jeffreys"}
        With p = k / n and z the normal quantile at (1 + level) / 2:

        - ``"wilson"``: the score interval (Wilson 1927, J. Am. Stat. Assoc. 22). Its coverage stays near the nominal
          level even for p near 0 or 1.
        - ``"normal"``: p +- z sqrt(p (1 - p) / n), cut to [0, 1]. Covers too rarely when successes or failures are
          few; a warning says so below 10 of either.
        - ``"agresti-coull"``: the normal interval after adding z^2 / 2 successes and failures, cut to [0, 1] (Agresti
          and Coull 1998, Am. Stat. 52).
        - ``"clopper-pearson"``: inverts the exact binomial test (Clopper and Pearson 1934, Biometrika 26). Never covers
          less than the nominal level, often more.
        - ``"jeffreys"``: equal-tailed quantiles of Beta(k + 1/2, n - k + 1/2) (Brown, Cai and DasGupta 2001,
          Stat. Sci. 16). At k = 0 and k = n the estimate lies outside.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        When `n` is not positive, `k` is not within 0 to `n` or looks like a proportion, `level` is not strictly between
        0 and 1, or `method` is unknown.
    TypeError
        When `k` is not a number or `n` is not an integer.

    Warns
    -----
    RuntimeWarning
        When `method` is ``"normal"`` with fewer than 10 successes or failures.

    Examples
    --------
    >>> from milfast.uncertainty import proportion_interval
    >>> proportion_interval(605, 670)
    Interval(0.903 [0.878, 0.923], level=0.95, method='wilson', n=670)
    >>> proportion_interval(0, 30, method="clopper-pearson")
    Interval(0.00 [0.00, 0.12], level=0.95, method='clopper-pearson', n=30)
    """
    trials = _count(n)
    successes = _successes(k, trials)
    _require_level(level)
    rule = _choose(method, _PROPORTION_RULES)
    if method == "normal" and min(successes, trials - successes) < 10:
        warnings.warn(
            f"the normal interval covers too rarely with fewer than 10 successes or failures (k={successes:g}, "
            f"n={trials}): use method='wilson'",
            RuntimeWarning,
            stacklevel=2,
        )
    low, high = rule(successes, trials, level)
    return Interval(successes / trials, low, high, float(level), method, trials)


def auc_interval(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    level: float = 0.95,
    method: str = "logit",
    pos_label: Any = None,
    max_fpr: float | None = None,
    standardize: bool = True,
    clusters: ArrayLike | Bags | None = None,
    n_boot: int = 2000,
    stratified: bool | None = None,
    random_state: RandomState = 0,
) -> Interval:
    """Interval for the area under the ROC curve.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Higher means more positive.
    labels : array_like, shape (n,)
        {0, 1}, bool or {-1, 1}; anything else two-valued needs `pos_label`.
    level : float
        Nominal coverage.
    method : {"logit", "delong", "hanley-mcneil", "wilson", "bca", "percentile", "basic"}
        With A the AUC, m positives, n negatives and z the normal quantile at (1 + level) / 2:

        - ``"logit"``: DeLong's variance carried to log(A / (1 - A)) and the bounds carried back (Pepe 2003, The
          Statistical Evaluation of Medical Tests, chapter 5). On 47 + 45 bags with true AUC 0.9 it covers 95 % of
          the time where plain DeLong covers 92 %.
        - ``"delong"``: A +- z sqrt(variance), cut to [0, 1] (DeLong, DeLong and Clarke-Pearson 1988, Biometrics 44, in
          the O(N log N) form of Sun and Xu 2014, IEEE Signal Process. Lett. 21).
        - ``"hanley-mcneil"``: as before with the variance that exponential score laws would give (Hanley and McNeil
          1982, Radiology 143, equations 1 and 2). Needs only A, m and n.
        - ``"wilson"``: the Wilson interval of a proportion A among min(m, n). No score laws give an AUC a larger
          variance than A (1 - A) / min(m, n) (Birnbaum and Klose 1957, Ann. Math. Stat. 28), so it is cautious.
        - ``"bca"``, ``"percentile"`` (or ``"bootstrap"``) and ``"basic"``: from resamples, as in `bootstrap_interval`,
          with the jackknife of BCa in closed form.
    pos_label : scalar, optional
        The label of the positive class.
    max_fpr : float, optional
        Take the area up to this false positive rate only, in (0, 1]; the curve is interpolated there. Not with
        ``"hanley-mcneil"`` and ``"wilson"``. The variance follows from what each score adds to the area, as DeLong's
        does; the logit is that of the area over `max_fpr`.
    standardize : bool
        With `max_fpr`: show (1 + (area - chance) / (max_fpr - chance)) / 2, where chance = max_fpr^2 / 2 (McClish 1989,
        Med. Decis. Making 9), which is 0.5 for chance. False shows the area.
    clusters : array_like, shape (n,), or Bags, optional
        What each score belongs to, such as its patient, when scores of one are alike. With `Bags` the scores are those
        of instances and the clusters their bags. ``"logit"`` and ``"delong"`` then have the variance of Obuchowski
        (1997, Biometrics 53), and Student's quantile on one degree of freedom less than there are clusters with a
        positive, or with a negative, whichever are fewer; a bootstrap draws whole clusters. Not with
        ``"hanley-mcneil"`` and ``"wilson"``.
    n_boot : int
        Resamples of a bootstrap.
    stratified : bool, optional
        Whether resamples keep the size of each class. By default they do, but not where whole clusters are drawn; then
        it needs clusters of one class each.
    random_state : int, Generator, SeedSequence or None
        Of a bootstrap.

    Returns
    -------
    Interval
        Its `method` names the rule that was used. An AUC of exactly 0 or 1 has no DeLong variance and gets the Wilson
        bound under every method. When DeLong's variance is 0 for another AUC (all scores tied) the interval has no
        width. A class of one member, or one that a single cluster holds, leaves the bounds NaN, but for
        ``"hanley-mcneil"`` and ``"wilson"``; an empty class leaves the AUC NaN too, under every method.

    Raises
    ------
    ValueError
        When lengths differ, a score is NaN, labels are not two-valued, `level` is not strictly between 0 and 1,
        `method` is unknown or does not go with `max_fpr` or `clusters`, or another option is out of range.
    TypeError
        When scores or labels cannot be read.

    Warns
    -----
    RuntimeWarning
        When bounds are undefined, with the reason; and as `bootstrap_interval` does.

    Examples
    --------
    >>> from milfast.uncertainty import auc_interval
    >>> scores = [0.1, 0.4, 0.35, 0.8, 0.7, 0.2, 0.9, 0.3]
    >>> labels = [0, 0, 1, 1, 1, 0, 1, 0]
    >>> auc_interval(scores, labels)
    Interval(0.94 [0.44, 1.00], level=0.95, method='logit', n_pos=4, n_neg=4)
    >>> auc_interval(range(10_000), [1] * 5_000 + [0] * 5_000)
    Interval(0.0000 [0.0000, 0.0008], level=0.95, method='wilson (AUC is 0 or 1)', n_pos=5000, n_neg=5000)

    Instances of bags, where those of one bag are alike:

    >>> import numpy as np
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, random_state=0)
    >>> witness = bags.kinds == bags.kinds.max()
    >>> noise = np.random.default_rng(0).normal(size=len(witness))
    >>> auc_interval(noise + witness, witness, clusters=bags)
    Interval(0.73 [0.66, 0.79], level=0.95, method='logit', n_pos=43, n_neg=406, n_clusters=60)
    """
    _require_level(level)
    method = "percentile" if method == "bootstrap" else method
    _choose(method, dict.fromkeys((*_AUC_METHODS, *_RESAMPLED)))
    if max_fpr is not None or clusters is not None or method in _RESAMPLED:
        if method in ("hanley-mcneil", "wilson"):
            raise ValueError(
                f"method={method!r} goes neither with max_fpr nor with clusters: use 'logit', 'delong', "
                "'bca', 'percentile' or 'basic'"
            )
        # Imported here because it is built on this module.
        from milfast.uncertainty.areas import area_interval

        return area_interval(
            scores,
            labels,
            level=level,
            method=method,
            pos_label=pos_label,
            max_fpr=max_fpr,
            standardize=standardize,
            clusters=clusters,
            stratified=stratified,
            n_boot=n_boot,
            random_state=random_state,
        )
    auc, variance, n_pos, n_neg = delong(scores, labels, pos_label=pos_label)
    interval = interval_of_auc(auc, variance, n_pos, n_neg, level=level, method=method)
    if interval.method.startswith("undefined"):
        warnings.warn(_why_undefined(n_pos, n_neg, method), RuntimeWarning, stacklevel=2)
    return interval


def interval_of_auc(
    auc: float, variance: float, n_pos: int, n_neg: int, *, level: float = 0.95, method: str = "logit"
) -> Interval:
    """Confidence interval for an AUC whose scores are no longer at hand.

    Parameters
    ----------
    auc : float
        The AUC; NaN when it is undefined.
    variance : float
        DeLong's variance of it.
    n_pos, n_neg : int
        Size of each class.
    level : float
        Nominal coverage.
    method : {"logit", "delong", "hanley-mcneil", "wilson"}
        See `auc_interval`.

    Returns
    -------
    Interval
        The same as `auc_interval` gives for the scores; undefined bounds are NaN, without a warning.

    Raises
    ------
    ValueError
        When `level` is not strictly between 0 and 1, or `method` is unknown.

    Examples
    --------
    >>> from milfast.uncertainty import interval_of_auc
    >>> interval_of_auc(0.9, 0.0004, 120, 130)
    Interval(0.90 [0.85, 0.93], level=0.95, method='logit', n_pos=120, n_neg=130)
    """
    _require_level(level)
    _choose(method, dict.fromkeys(_AUC_METHODS))
    low, high, used = _auc_bounds(auc, variance, n_pos, n_neg, level, method)
    return Interval(auc, low, high, float(level), used, n_pos + n_neg, n_pos=n_pos, n_neg=n_neg)


def mean_interval(
    values: ArrayLike,
    *,
    level: float = 0.95,
    test_train_ratio: float = 0.0,
    bounds: tuple[float, float] | None = None,
    least_deviation: float = 0.0,
) -> Interval:
    """Student's t interval for the mean of repeated runs.

    The half-width is t s sqrt(1/J + test_train_ratio) with J runs, their sample standard deviation s and the t quantile
    at (1 + level) / 2 on J - 1 degrees of freedom.

    Parameters
    ----------
    values : array_like, shape (J,)
        One number a run: an AUC, an accuracy, or a difference between two models on the same run.
    level : float
        Nominal coverage.
    test_train_ratio : float
        0 for runs on independent data. For resampled data the runs share training items and the plain interval is far
        too narrow: pass n_test / n_train, which is 1 / (k - 1) for (repeated) k-fold cross-validation (Nadeau and
        Bengio 2003, Mach. Learn. 52, the corrected resampled t-test; Bouckaert and Frank 2004, PAKDD).
    bounds : (float, float), optional
        Range of the quantity, such as (0, 1): the interval is cut to it.
    least_deviation : float
        Standard deviation that a run is known to have at least, from the size of its test set, say: it takes the place
        of s where a few runs agree by chance.

    Returns
    -------
    Interval
        With one run the bounds are NaN.

    Raises
    ------
    ValueError
        When `values` is empty, not one-dimensional, not finite or outside `bounds`; when `test_train_ratio`
        or `least_deviation` is negative or not finite, `bounds` is not a pair in ascending order, or `level` is not
        strictly between 0 and 1.
    TypeError
        When an argument is not a number.

    Warns
    -----
    RuntimeWarning
        When there is only one run.

    Examples
    --------
    >>> from milfast.uncertainty import mean_interval
    >>> mean_interval([0.91, 0.89, 0.93, 0.90, 0.92])
    Interval(0.910 [0.890, 0.930], level=0.95, method='t', n=5 runs)
    >>> mean_interval([0.91, 0.89, 0.93, 0.90, 0.92], test_train_ratio=1 / 4)
    Interval(0.910 [0.881, 0.939], level=0.95, method='corrected resampled t', n=5 runs)
    """
    _require_level(level)
    x = _runs(values)
    ratio = _number(test_train_ratio, "test_train_ratio")
    if not 0 <= ratio < math.inf:
        raise ValueError(f"test_train_ratio must be finite and not negative; got {ratio}")
    least = _number(least_deviation, "least_deviation")
    if not 0 <= least < math.inf:
        raise ValueError(f"least_deviation must be finite and not negative; got {least}")
    floor, ceiling = _range(bounds)
    outside = np.flatnonzero((x < floor) | (x > ceiling))
    if len(outside):
        i = int(outside[0])
        raise ValueError(f"values[{i}] is {x[i]}, outside bounds ({floor:g}, {ceiling:g})")
    runs = len(x)
    mean = math.fsum(x) / runs
    if runs == 1:
        warnings.warn("one run shows no spread: the bounds of its mean are undefined", RuntimeWarning, stacklevel=2)
        return Interval(mean, math.nan, math.nan, float(level), "undefined (one run)", 1, unit="runs")
    deviation = max(float(np.std(x, ddof=1)), least)
    half = t_quantile(runs - 1, level) * math.sqrt(1 / runs + ratio) * deviation
    method = "corrected resampled t" if ratio else "t"
    return Interval(mean, max(mean - half, floor), min(mean + half, ceiling), float(level), method, runs, unit="runs")


# -------------------------------------------------------------------- rules for proportions


def _normal(k: float, n: float, level: float) -> tuple[float, float]:
    p = k / n
    return _symmetric(p, math.sqrt(p * (1 - p) / n), level)


def _wilson(k: float, n: float, level: float) -> tuple[float, float]:
    p, z2 = k / n, _z(level) ** 2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    # At k = 0 and k = n a bound equals p, but only up to rounding: min and max make it exact.
    return max(0.0, min(centre - half, p)), min(1.0, max(centre + half, p))


def _agresti_coull(k: float, n: float, level: float) -> tuple[float, float]:
    z2 = _z(level) ** 2
    p = (k + z2 / 2) / (n + z2)
    return _symmetric(p, math.sqrt(p * (1 - p) / (n + z2)), level)


def _clopper_pearson(k: float, n: float, level: float) -> tuple[float, float]:
    # Imported here because scipy takes longer to load than the rest of milfast.
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    # One minus the mirrored quantile, so that k -> n - k mirrors the interval exactly.
    low = float(betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    high = 1 - float(betaincinv(n - k, k + 1, tail)) if k < n else 1.0
    return low, high


def _jeffreys(k: float, n: float, level: float) -> tuple[float, float]:
    # Imported here because scipy takes longer to load than the rest of milfast.
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    return float(betaincinv(k + 0.5, n - k + 0.5, tail)), 1 - float(betaincinv(n - k + 0.5, k + 0.5, tail))


_PROPORTION_RULES: dict[str, Callable[[float, float, float], tuple[float, float]]] = {
    "wilson": _wilson,
    "normal": _normal,
    "agresti-coull": _agresti_coull,
    "clopper-pearson": _clopper_pearson,
    "jeffreys": _jeffreys,
}


# -------------------------------------------------------------------- rules for the AUC

_AUC_METHODS = ("logit", "delong", "hanley-mcneil", "wilson")
_RESAMPLED = ("bca", "percentile", "basic")


def _auc_bounds(
    auc: float, variance: float, n_pos: int, n_neg: int, level: float, method: str
) -> tuple[float, float, str]:
    """Bounds and the name of the rule that gave them; degenerate cases come first."""
    smaller = min(n_pos, n_neg)
    if smaller == 0 or (smaller == 1 and method in ("logit", "delong")):
        return math.nan, math.nan, f"undefined ({_short_class(n_pos, n_neg)})"
    if method == "wilson" or auc in (0.0, 1.0):
        used = method if method == "wilson" else "wilson (AUC is 0 or 1)"
        return *_wilson(auc * smaller, smaller, level), used
    if method == "hanley-mcneil":
        return *_symmetric(auc, math.sqrt(_hanley_mcneil(auc, n_pos, n_neg)), level), method
    if variance == 0:
        return auc, auc, f"{method} (variance 0)"
    if method == "delong":
        return *_symmetric(auc, math.sqrt(variance), level), method
    centre = math.log(auc / (1 - auc))
    half = _z(level) * math.sqrt(variance) / (auc * (1 - auc))
    return _expit(centre - half), _expit(centre + half), method


def _hanley_mcneil(auc: float, n_pos: int, n_neg: int) -> float:
    q1 = auc / (2 - auc)
    q2 = 2 * auc**2 / (1 + auc)
    spread = auc * (1 - auc) + (n_pos - 1) * (q1 - auc**2) + (n_neg - 1) * (q2 - auc**2)
    return spread / (n_pos * n_neg)


def _short_class(n_pos: int, n_neg: int) -> str:
    size, name = min((n_pos, "positive"), (n_neg, "negative"))
    return f"no {name}s" if size == 0 else f"one {name}"


def _why_undefined(n_pos: int, n_neg: int, method: str) -> str:
    if min(n_pos, n_neg) == 0:
        return f"labels hold {_short_class(n_pos, n_neg)}: the AUC is undefined"
    return (
        f"labels hold {_short_class(n_pos, n_neg)}: one score shows no spread, so the {method} bounds are undefined; "
        "method='wilson' gives cautious ones"
    )


# -------------------------------------------------------------------- shared arithmetic


def _z(level: float) -> float:
    # The lower tail keeps its digits when level is close to 1; the upper one would be 1 minus next to nothing.
    return -NormalDist().inv_cdf((1 - level) / 2)


def _symmetric(centre: float, se: float, level: float) -> tuple[float, float]:
    half = _z(level) * se
    return max(0.0, centre - half), min(1.0, centre + half)


def _expit(x: float) -> float:
    e = math.exp(-abs(x))
    return 1 / (1 + e) if x >= 0 else e / (1 + e)


def _show(value: float, decimals: int | None) -> str:
    if decimals is None or not math.isfinite(value) or abs(decimals) > 15:
        return f"{value:.3g}"
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{round(value, decimals) + 0.0:.{max(decimals, 0)}f}"


# -------------------------------------------------------------------- reading arguments


def _number(value: Any, name: str) -> float:
    if isinstance(value, (bool, np.bool_, str)):
        raise TypeError(f"{name} must be a number; got {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}") from None


def _require_level(level: float) -> None:
    if not 0 < _number(level, "level") < 1:
        raise ValueError(f"level must lie strictly between 0 and 1 (0.95 for 95 %); got {level}")


def _choose(method: str, rules: dict[str, Any]) -> Any:
    if method not in rules:
        raise ValueError(f"method must be one of {', '.join(rules)}; got {method!r}")
    return rules[method]


def _count(n: Any) -> int:
    try:
        if isinstance(n, (bool, np.bool_)):
            raise TypeError
        trials = operator.index(n)
    except TypeError:
        raise TypeError(f"n must be an integer; got {n!r}") from None
    if trials < 1:
        raise ValueError(f"n must be at least 1; got {trials}")
    return trials


def _successes(k: Any, n: int) -> float:
    successes = _number(k, "k")
    if not 0 <= successes <= n:
        raise ValueError(f"k must lie between 0 and n={n}; got {successes:g}")
    if 0 < successes < 1:
        raise ValueError(f"k counts successes, but {successes:g} looks like a proportion: pass k={successes:g} * n")
    return successes


def _runs(values: Any) -> NDArray[np.float64]:
    try:
        x = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"values cannot be read as numbers: {error}") from None
    if x.ndim != 1 or len(x) == 0:
        raise ValueError(f"values must hold one number a run, shape (J,) with J >= 1; got shape {x.shape}")
    odd = np.flatnonzero(~np.isfinite(x))
    if len(odd):
        i = int(odd[0])
        raise ValueError(f"values[{i}] is {x[i]}: drop the run or say why it failed")
    return x


def _range(bounds: Any) -> tuple[float, float]:
    if bounds is None:
        return -math.inf, math.inf
    try:
        floor, ceiling = bounds
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be a pair (smallest, largest); got {bounds!r}") from None
    pair = _number(floor, "bounds[0]"), _number(ceiling, "bounds[1]")
    if not pair[0] < pair[1]:
        raise ValueError(f"bounds must be in ascending order; got {bounds!r}")
    return pair
