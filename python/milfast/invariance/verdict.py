"""Verdicts on invariance: in how many replicates a learner comes near the oracle, and how near on average."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast.uncertainty.comparison import read_numbers, show_p
from milfast.uncertainty.intervals import Interval, _count, _number, _require_level
from milfast.uncertainty.signed_rank import hodges_lehmann, log_p_lower
from milfast.uncertainty.tails import log_beta, t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Outcome: TypeAlias = Literal["pass", "fail", "inconclusive", "void", "diverged"]

#: Share of the gap between ERM and the oracle that a solved replicate may be away from the oracle.
TOLERANCE = 0.1
#: Share of replicates that must be solved.
REQUIRED = 0.8
#: Error of each verdict.
ALPHA = 0.05

#: What each outcome says.
OUTCOMES: dict[Outcome, str] = {
    "pass": "it solves more than the required share of replicates",
    "fail": "it solves less than the required share of replicates",
    "inconclusive": "more replicates would tell",
    "void": "the problem tells nothing here: the oracle is off the optimum, or ERM no worse than the oracle",
    "diverged": "so many replicates have no finite model, or one that predicts one value, that the rest cannot pass",
}


@dataclass(frozen=True, repr=False)
class RatioInterval:
    """A ratio of two means with all ratios that a t test does not reject (Fieller 1954).

    Attributes
    ----------
    estimate : float
        NaN where the lower mean is 0.
    low, high : float
        Bounds; infinite on a side that has none.
    kind : {"between", "outside", "all"}
        - ``"between"``: all ratios from `low` to `high`;
        - ``"outside"``: all up to `low` and all from `high` on, for the sign of the lower mean is not known;
          no finite one where both bounds are infinite, since the lower mean is 0;
        - ``"all"``: nothing is rejected.
    level : float
    n : int
        Number of pairs.

    Examples
    --------
    >>> from milfast.invariance.verdict import ratio_of_means
    >>> interval = ratio_of_means([1.0, 1.2, 0.9], [2.0, 2.2, 1.9])
    >>> 0.5 in interval, 2.0 in interval
    (True, False)
    """

    estimate: float
    low: float
    high: float
    kind: Literal["between", "outside", "all"]
    level: float
    n: int

    def __contains__(self, value: float) -> bool:
        if self.kind == "outside":
            return value <= self.low or value >= self.high
        return self.low <= value <= self.high

    def bounds(self) -> str:
        """The set as text.

        Returns
        -------
        str
        """
        if self.kind == "all":
            return "[any]"
        if self.kind == "outside":
            if self.high == math.inf:
                return "[none that is finite]"
            return f"[up to {self.low:.3f}, from {self.high:.3f}]"
        return f"[{self.low:.3f}, {self.high:.3f}]"

    def __repr__(self) -> str:
        return f"RatioInterval({self.estimate:.3f} {self.bounds()}, level={self.level:.6g}, n={self.n})"

    def _repr_html_(self) -> str:
        return (
            f"<b>{self.estimate:.3f}</b> {html.escape(self.bounds())} <small>{100 * self.level:.6g} %, Fieller</small>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Every attribute by name, ready for JSON.

        Returns
        -------
        dict
            What is undefined or infinite is None.
        """
        return {
            name: _finite(value) if isinstance(value, float) else value
            for name, value in ((field, getattr(self, field)) for field in self.__dataclass_fields__)
        }


@dataclass(frozen=True, repr=False)
class Verdict:
    """What R replicates say of one learner on one problem.

    With A, E and O the risks of the candidate, of ERM and of the oracle in one replicate, D = A - O and G = E - O.

    Attributes
    ----------
    outcome : {"pass", "fail", "inconclusive", "void", "diverged"}
    reason : str
        Why, in words.
    successes : int
        Replicates with D <= `tolerance` G.
    n_replicates : int
    n_diverged : int
        Replicates without a finite model, or with one that predicts one value; none of them is a success.
    success_low, success_high : float
        Clopper-Pearson bounds of the share of successes, each of level 1 - `alpha`.
    log_p_pass, log_p_fail : float
        Logarithms of the p-values behind them: of so many successes or more, and so many or fewer, when the share is
        `required`.
    ratio : RatioInterval
        rho = mean D / mean G: 0 is the oracle, 1 is ERM. Of the replicates that did not diverge.
    log_p_better : float
        Logarithm of the p-value of A < E, Wilcoxon's signed ranks; a diverged replicate counts as the worst.
    improvement : Interval
        A - E, Hodges and Lehmann.
    gap : float
        Mean G.
    gap_low : float
        Its lower bound, of level 1 - `alpha`.
    oracle_excess : float
        Mean of O less the optimum.
    tolerance, required, alpha : float
    """

    outcome: Outcome
    reason: str
    successes: int
    n_replicates: int
    n_diverged: int
    success_low: float
    success_high: float
    log_p_pass: float
    log_p_fail: float
    ratio: RatioInterval
    log_p_better: float
    improvement: Interval
    gap: float
    gap_low: float
    oracle_excess: float
    tolerance: float
    required: float
    alpha: float

    def __repr__(self) -> str:
        return (
            f"Verdict({self.outcome}: {self.successes} of {self.n_replicates} solved, rho {self.ratio.estimate:.3f} "
            f"{self.ratio.bounds()}, better than ERM {show_p(self.log_p_better)})"
        )

    def _repr_html_(self) -> str:
        return f"<b>{self.outcome}</b>: {html.escape(self.summary())}"

    def summary(self) -> str:
        """One sentence for people.

        Returns
        -------
        str
        """
        diverged = f", {self.n_diverged} diverged" if self.n_diverged else ""
        return (
            f"{self.outcome}: {self.successes} of {self.n_replicates} replicates solved{diverged}; "
            f"rho {self.ratio.estimate:.3f} {self.ratio.bounds()} (0 the oracle, 1 ERM); "
            f"better than ERM: {show_p(self.log_p_better)}; {self.reason}"
        )

    def to_dict(self) -> dict[str, Any]:
        """One flat row of plain values.

        Returns
        -------
        dict
            What is undefined or infinite is None.
        """
        return {
            "verdict": self.outcome,
            "reason": self.reason,
            "successes": self.successes,
            "replicates": self.n_replicates,
            "diverged": self.n_diverged,
            "success_low": self.success_low,
            "success_high": self.success_high,
            "p_pass": _finite(math.exp(self.log_p_pass)),
            "p_fail": _finite(math.exp(self.log_p_fail)),
            "rho": _finite(self.ratio.estimate),
            "rho_low": _finite(self.ratio.low),
            "rho_high": _finite(self.ratio.high),
            "rho_kind": self.ratio.kind,
            "p_better": _finite(math.exp(self.log_p_better)),
            "improvement": _finite(self.improvement.estimate),
            "improvement_low": _finite(self.improvement.low),
            "improvement_high": _finite(self.improvement.high),
            "gap": _finite(self.gap),
            "gap_low": _finite(self.gap_low),
            "oracle_excess": _finite(self.oracle_excess),
        }


def judge(
    candidate: ArrayLike,
    erm: ArrayLike,
    oracle: ArrayLike,
    optimum: ArrayLike | None = None,
    *,
    diverged: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
    required: float = REQUIRED,
    alpha: float = ALPHA,
) -> Verdict:
    """Verdict on a learner from its risks in several replicates, beside those of ERM and of the oracle.

    A replicate is a new problem with new data, start, search and selection. It is solved when the risk A of the
    candidate is no farther from that of the oracle O than a tenth of ERM's, A - O <= 0.1 (E - O). The learner passes
    when it is certain that it solves more than 80 % of replicates, and fails when it is certain that it does not.
    Outcomes of replicates come in two heaps, solved and not, so that a t test of their mean would err too often; the
    ratio of the means is told beside the verdict.

    Parameters
    ----------
    candidate, erm, oracle : array_like of float, shape (R,)
        Risks, one for each replicate: the mean over environments. NaN for a model that diverged.
    optimum : array_like of float, shape (R,), optional
        Risk of the invariant optimum, where it is known.
    diverged : array_like of bool, shape (R,), optional
        Replicates that do not count as solved whatever their risk.
    tolerance : float
        Share of ERM's gap that a solved replicate may be away.
    required : float
        Share of replicates that must be solved.
    alpha : float
        Error of the verdict.

    Returns
    -------
    Verdict
        It is ``"void"`` where the mean of the oracle is farther above the optimum than `tolerance` times the mean gap,
        the mean gap is not above 0 with certainty 1 - `alpha`, or ERM or the oracle diverged: where the oracle is none,
        or nothing can be told from it.

    Raises
    ------
    ValueError
        When the arrays differ in length, have fewer than two entries, or a share is not strictly between 0 and 1.
    TypeError
        When they cannot be read as numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.invariance import judge
    >>> rng = np.random.default_rng(0)
    >>> erm, oracle = 13.4 + rng.normal(size=50), np.full(50, 10.4)
    >>> judge(oracle + 0.01, erm, oracle).outcome
    'pass'
    >>> judge(erm - 1.0, erm, oracle)
    Verdict(fail: 1 of 50 solved, rho 0.680 [0.651, 0.705], better than ERM p = 8.9e-16)
    """
    A, E, O = _risks(candidate, "candidate"), _risks(erm, "erm"), _risks(oracle, "oracle")
    n = len(E)
    for values, name in ((A, "candidate"), (O, "oracle")):
        if len(values) != n:
            raise ValueError(f"{name} must have as many replicates as erm: {n}; got {len(values)}")
    if n < 2:
        raise ValueError(f"a verdict takes at least 2 replicates; got {n}")
    best = None if optimum is None else read_numbers(optimum, "optimum")
    if best is not None and len(best) != n:
        raise ValueError(f"optimum must have as many replicates as erm: {n}; got {len(best)}")
    _require_shares(tolerance=tolerance, required=required, alpha=alpha)
    measured = np.isfinite(E) & np.isfinite(O)
    bad = ~np.isfinite(A)
    if diverged is not None:
        marked = np.asarray(diverged)
        if marked.shape != (n,) or marked.dtype != np.bool_:
            raise ValueError(f"diverged must be booleans, shape ({n},); got {marked.dtype}, shape {marked.shape}")
        bad = bad | marked
    with np.errstate(invalid="ignore"):  # NaN is not solved
        solved = (tolerance * (E - O) >= A - O) & ~bad
    successes, n_bad = int(solved.sum()), int(bad.sum())
    low, high = success_bounds(successes, n, alpha=alpha)
    log_p_pass, log_p_fail = _log_tails(successes, n, required)
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite risks, which are void
        gap, excess = float(np.mean(E - O)), math.nan if best is None else float(np.mean(O - best))
        spread = float(np.std(E - O, ddof=1))
    gap_low = gap - t_quantile(n - 1, 1 - 2 * alpha) * spread / math.sqrt(n)
    kept = measured & ~bad
    ratio = ratio_of_means((A - O)[kept], (E - O)[kept], level=1 - alpha) if kept.sum() > 1 else _nothing(alpha, n)
    gained = np.where(bad, np.inf, A - E)[np.isfinite(E)]
    better, improvement = 0.0, Interval(math.nan, math.nan, math.nan, 1 - alpha, "undefined", n, unit="replicates")
    if len(gained):
        better, improvement = log_p_lower(gained), hodges_lehmann(gained, level=1 - alpha, unit="replicates")
    outcome: Outcome
    if not measured.all():
        outcome = "void"
        reason = f"ERM or the oracle diverged in {int((~measured).sum())} of {n} replicates"
    elif not gap_low > 0:
        outcome = "void"
        reason = f"ERM is not worse than the oracle: mean gap {gap:.4g}, at least {gap_low:.4g}"
    elif excess > tolerance * gap:
        outcome = "void"
        reason = (
            f"the oracle is off the invariant optimum by {excess:.4g}, more than {tolerance:g} of the gap {gap:.4g}"
        )
    elif n_bad and decide(n - n_bad, n, required=required, alpha=alpha) == "fail":
        outcome, reason = "diverged", f"{n_bad} of {n} replicates diverged"
    else:
        outcome = decide(successes, n, required=required, alpha=alpha)
        reason = f"the share solved is {_told(outcome, low, high)} at {100 * (1 - alpha):g} %, against {required:g}"
    return Verdict(
        outcome=outcome,
        reason=reason,
        successes=successes,
        n_replicates=n,
        n_diverged=n_bad,
        success_low=low,
        success_high=high,
        log_p_pass=log_p_pass,
        log_p_fail=log_p_fail,
        ratio=ratio,
        log_p_better=better,
        improvement=improvement,
        gap=gap,
        gap_low=gap_low,
        oracle_excess=excess,
        tolerance=float(tolerance),
        required=float(required),
        alpha=float(alpha),
    )


def success_bounds(k: int, n: int, *, alpha: float = ALPHA) -> tuple[float, float]:
    """One-sided Clopper-Pearson bounds of a share of successes, each of level 1 - `alpha`.

    Parameters
    ----------
    k, n : int
        Successes and trials.
    alpha : float

    Returns
    -------
    low, high : float

    Raises
    ------
    ValueError, TypeError
        When `k` is no integer from 0 to `n`, or `alpha` not strictly between 0 and 1.

    Examples
    --------
    >>> from milfast.invariance.verdict import success_bounds
    >>> [round(bound, 4) for bound in success_bounds(43, 50)]
    [0.7531, 0.9324]
    """
    k, n = _successes(k, n)
    _require_shares(alpha=alpha)
    # Imported here because scipy takes longer to load than the rest of milfast.
    from scipy.special import betaincinv

    low = float(betaincinv(k, n - k + 1, alpha)) if k > 0 else 0.0
    high = 1 - float(betaincinv(n - k, k + 1, alpha)) if k < n else 1.0
    return low, high


def decide(
    k: int, n: int, *, required: float = REQUIRED, alpha: float = ALPHA
) -> Literal["pass", "fail", "inconclusive"]:
    """Verdict of a count: what is certain of the share of successes.

    Parameters
    ----------
    k, n : int
        Successes and replicates.
    required : float
        Share of successes that is asked for.
    alpha : float
        Error of the verdict.

    Returns
    -------
    {"pass", "fail", "inconclusive"}
        Pass when the lower bound is at least `required`, fail when the upper one is below it.

    Raises
    ------
    ValueError, TypeError
        As `success_bounds`, or when `required` is not strictly between 0 and 1.

    Examples
    --------
    >>> from milfast.invariance.verdict import decide
    >>> [decide(k, 50) for k in (34, 35, 44, 45)]
    ['fail', 'inconclusive', 'inconclusive', 'pass']
    """
    _require_shares(required=required)
    low, high = success_bounds(k, n, alpha=alpha)
    return "pass" if low >= required else "fail" if high < required else "inconclusive"


def needed(n: int, *, required: float = REQUIRED, alpha: float = ALPHA) -> tuple[int | None, int | None]:
    """How many successes it takes for a pass, and how many are a fail at most.

    Parameters
    ----------
    n : int
        Replicates.
    required, alpha : float
        As in `decide`.

    Returns
    -------
    least, most : int or None
        None where no number of successes would do: of so few replicates.

    Raises
    ------
    ValueError, TypeError
        When `n` is no positive integer, or a share not strictly between 0 and 1.

    Examples
    --------
    >>> from milfast.invariance.verdict import needed
    >>> needed(20), needed(50), needed(5)
    ((20, 12), (45, 34), (None, 1))
    """
    n = _count(n)
    found = [decide(k, n, required=required, alpha=alpha) for k in range(n + 1)]
    passes, fails = found.count("pass"), found.count("fail")
    return (n + 1 - passes if passes else None), (fails - 1 if fails else None)


def ratio_of_means(upper: ArrayLike, lower: ArrayLike, *, level: float = 0.95) -> RatioInterval:
    """Ratio of the means of paired figures, with Fieller's interval.

    It is the set of all rho for which a t test does not reject that upper - rho lower has mean 0.

    Parameters
    ----------
    upper, lower : array_like of float, shape (n,)
    level : float
        Nominal coverage.

    Returns
    -------
    RatioInterval
        Unbounded where the mean of `lower` is not certain to differ from 0.

    Raises
    ------
    ValueError
        When the arrays differ in length or have fewer than two entries, or `level` is not strictly between 0 and 1.
    TypeError
        When they cannot be read as numbers.

    References
    ----------
    .. [1] Fieller (1954), Some problems in interval estimation, J. R. Stat. Soc. B 16, 175-185.

    Examples
    --------
    >>> from milfast.invariance.verdict import ratio_of_means
    >>> ratio_of_means([1.0, 2.0, 3.0, 4.0], [10.0, 11.0, 9.0, 10.0])
    RatioInterval(0.250 [0.043, 0.483], level=0.95, n=4)
    >>> ratio_of_means([1.0, 2.0, 3.0, 4.0], [-1.0, 1.0, 0.5, -0.4]).kind
    'outside'
    """
    x, y = read_numbers(upper, "upper"), read_numbers(lower, "lower")
    _require_level(level)
    n = len(x)
    if len(y) != n or n < 2:
        raise ValueError(f"upper and lower must be pairs, at least 2; got {n} and {len(y)} entries")
    mean_x, mean_y = float(x.mean()), float(y.mean())
    # the set does not change when both are divided by the same number, and squares of small figures keep their digits
    scale = max(float(np.abs(x).max()), float(np.abs(y).max())) or 1.0
    dx, dy = (x - mean_x) / scale, (y - mean_y) / scale
    a_x, a_y = mean_x / scale, mean_y / scale
    weight = t_quantile(n - 1, level) ** 2 / (n * (n - 1))
    # all rho with a rho^2 - 2 b rho + c <= 0
    a = a_y * a_y - weight * float(dy @ dy)
    b = a_x * a_y - weight * float(dx @ dy)
    c = a_x * a_x - weight * float(dx @ dx)
    estimate = mean_x / mean_y if mean_y else math.nan
    low, high, kind = _solved(a, b, c, estimate)
    return RatioInterval(estimate, low, high, kind, float(level), n)


def _solved(a: float, b: float, c: float, estimate: float) -> tuple[float, float, Literal["between", "outside", "all"]]:
    """All rho with a rho^2 - 2 b rho + c <= 0."""
    if a == 0:
        if b == 0:  # with a lower mean of 0 that has no spread every ratio is rejected, or none
            return -math.inf, math.inf, "all" if c <= 0 else "outside"
        edge = c / (2 * b)
        return (edge, math.inf, "between") if b > 0 else (-math.inf, edge, "between")
    inside = b * b - a * c
    if a < 0 and inside <= 0:
        return -math.inf, math.inf, "all"
    # at the estimate the left side is at most 0, so that there are roots for a > 0: below 0 it is rounding
    root = math.sqrt(max(0.0, inside))
    # the larger of the two in size without cancellation, the other one from their product
    far = (b + math.copysign(root, b)) / a
    near = c / (a * far) if far else 0.0
    low, high = min(far, near), max(far, near)
    if a > 0:
        return min(low, estimate), max(high, estimate), "between"
    return low, high, "outside"


def _told(outcome: Outcome, low: float, high: float) -> str:
    if outcome == "pass":
        return f"at least {low:.3f}"
    return f"at most {high:.3f}" if outcome == "fail" else f"between {low:.3f} and {high:.3f}"


def _log_tails(k: int, n: int, p: float) -> tuple[float, float]:
    """Logs of P(X >= k) and P(X <= k) for a binomial X."""
    at_least = log_beta(k, n - k + 1, p, 1 - p) if k > 0 else 0.0
    at_most = log_beta(n - k, k + 1, 1 - p, p) if k < n else 0.0
    return at_least, at_most


def _nothing(alpha: float, n: int) -> RatioInterval:
    return RatioInterval(math.nan, -math.inf, math.inf, "all", 1 - alpha, n)


def _risks(values: Any, name: str) -> NDArray[np.float64]:
    """Risks, of which those of diverged models may be NaN."""
    try:
        x = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} cannot be read as numbers: {error}") from None
    if x.ndim != 1:
        raise ValueError(f"{name} must hold one risk a replicate, shape (R,); got shape {x.shape}")
    return x


def _require_shares(**shares: Any) -> None:
    for name, share in shares.items():
        if not 0 < _number(share, name) < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1; got {share}")


def _successes(k: Any, n: Any) -> tuple[int, int]:
    trials = _count(n)
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)):
        raise TypeError(f"k must be an integer, the number of successes; got {k!r}")
    if not 0 <= k <= trials:
        raise ValueError(f"k must lie between 0 and n={trials}; got {k}")
    return int(k), trials


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
