"""From scores to a verdict: what the AUC on fresh and on shifted bags allows one to say."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from milfast.uncertainty import Interval, mean_interval, proportion_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from milfast.checks.runner import Run

Verdict: TypeAlias = Literal["pass", "fail", "inconclusive", "not-learned"]

REASONS: dict[Verdict, str] = {
    "pass": "ranks fresh and shifted bags better than chance",
    "fail": "learned the training distribution, yet ranks the shifted bags upside down",
    "inconclusive": "learned the training distribution, but the shifted AUC may lie on either side of 0.5",
    "not-learned": "not shown to be better than chance on fresh bags of the training distribution",
}


def judge(fresh: Interval, test: Interval) -> Verdict:
    """The verdict of two intervals.

    Parameters
    ----------
    fresh : Interval
        AUC on fresh bags of the training distribution. The training AUC itself would not do: a model that memorises
        reaches 1 there.
    test : Interval
        AUC on bags of the shifted distribution.

    Returns
    -------
    {"pass", "fail", "inconclusive", "not-learned"}
        "not-learned" unless `fresh` lies above 0.5; then "fail" or "pass" when `test` lies below or above 0.5.

    Examples
    --------
    >>> from milfast.checks.verdict import judge
    >>> from milfast.uncertainty import auc_interval
    >>> right, wrong = auc_interval(range(40), [0] * 20 + [1] * 20), auc_interval(range(40), [1] * 20 + [0] * 20)
    >>> judge(right, right), judge(right, wrong), judge(wrong, right)
    ('pass', 'fail', 'not-learned')
    """
    if not fresh.low > 0.5:
        return "not-learned"
    if test.high < 0.5:
        return "fail"
    if test.low > 0.5:
        return "pass"
    return "inconclusive"


def paper_rule(train_auc: float, test_auc: float) -> Literal["pass", "fail"]:
    """The rule of Raff & Holt (2023), Theorems 1-3: training AUC above 0.5 and test AUC below.

    Parameters
    ----------
    train_auc, test_auc : float

    Returns
    -------
    {"pass", "fail"}
    """
    return "fail" if train_auc > 0.5 and test_auc < 0.5 else "pass"


def over_runs(intervals: Sequence[Interval], *, level: float) -> Interval:
    """One interval for several independent runs.

    Parameters
    ----------
    intervals : sequence of Interval
        AUC intervals, one a run.
    level : float

    Returns
    -------
    Interval
        The interval of a single run holds for that fit alone. Over several runs it is a t interval on the mean, which
        has the noise of the test bags in it, as every run has bags of its own; where the runs agree better than that
        noise allows, the noise takes the place of their spread. Where all runs gave 0 or all gave 1, it is the Wilson
        bound for the pairs of all runs.
    """
    if len(intervals) == 1:
        return intervals[0]
    values = [interval.estimate for interval in intervals]
    if len(set(values)) == 1 and values[0] in (0.0, 1.0):
        pairs = sum(min(i.n_pos or 0, i.n_neg or 0) for i in intervals)
        bound = proportion_interval(round(values[0]) * pairs, pairs, level=level)
        return Interval(
            values[0], bound.low, bound.high, level=level, method="wilson bound", n=len(values), unit="runs"
        )
    # half-widths of the single runs, brought back to a standard deviation
    z = NormalDist().inv_cdf((1 + level) / 2)
    noise = math.sqrt(sum(i.half_width**2 for i in intervals) / len(intervals)) / z
    return mean_interval(values, level=level, bounds=(0.0, 1.0), least_deviation=noise)


@dataclass(frozen=True, repr=False)
class CheckResult:
    """What one check says about one model.

    Attributes
    ----------
    model, check, recipe : str
        Names.
    verdict : {"pass", "fail", "inconclusive", "not-learned"}
        See `milfast.checks.verdict.judge`.
    reason : str
        The verdict in words.
    train_auc : Interval
        On the training bags.
    fresh_auc : Interval
        On fresh bags of the training distribution.
    test_auc : Interval
        On bags of the shifted distribution.
    oracle_auc : float
        Mean AUC of the true rule on the shifted bags: the ceiling.
    size_auc : float
        Mean AUC of the bag size alone on the shifted bags: what a model reaches that only counts instances.
    paper_verdict : {"pass", "fail"}
        The paper's rule on the same figures.
    n_train, n_test, n_runs : int
        Bags per run, and runs.
    seed : int
        `random_state` with which the result comes out again.
    seconds : float
        Time for fitting and scoring, all runs.
    runs : tuple of Run
        The single runs.
    """

    model: str
    check: str
    recipe: str
    verdict: Verdict
    reason: str
    train_auc: Interval
    fresh_auc: Interval
    test_auc: Interval
    oracle_auc: float
    size_auc: float
    paper_verdict: Literal["pass", "fail"]
    n_train: int
    n_test: int
    n_runs: int
    seed: int
    seconds: float
    runs: tuple[Run, ...]

    @classmethod
    def of(cls, runs: Sequence[Run], *, level: float) -> CheckResult:
        """Combine the runs of one model under one check.

        Parameters
        ----------
        runs : sequence of Run
            At least one.
        level : float
            Level of the intervals.

        Returns
        -------
        CheckResult
        """
        first = runs[0]
        train, fresh, test = (over_runs([getattr(r, s) for r in runs], level=level) for s in ("train", "fresh", "test"))
        verdict = judge(fresh, test)
        reason = REASONS[verdict]
        if fresh.high < 0.5:
            reason = "fresh bags are ranked upside down: a higher score must mean positive; is the sign flipped?"
        elif verdict == "not-learned" and fresh.estimate > 0.6:
            reason += ", although its AUC there may well be above 0.5: more runs would tell"
        if len(runs) == 1:
            reason += " (holds for this fit alone)"
        return cls(
            model=first.model,
            check=first.check,
            recipe=first.recipe,
            verdict=verdict,
            reason=reason,
            train_auc=train,
            fresh_auc=fresh,
            test_auc=test,
            oracle_auc=sum(r.oracle_auc for r in runs) / len(runs),
            size_auc=sum(r.size_auc for r in runs) / len(runs),
            paper_verdict=paper_rule(train.estimate, test.estimate),
            n_train=first.n_train,
            n_test=first.n_test,
            n_runs=len(runs),
            seed=first.seed,
            seconds=sum(r.seconds for r in runs),
            runs=tuple(runs),
        )

    def to_dict(self) -> dict[str, Any]:
        """One flat row of plain values: an interval becomes its estimate and, with _low and _high, its bounds.

        Returns
        -------
        dict
        """
        row: dict[str, Any] = {
            "model": self.model,
            "check": self.check,
            "recipe": self.recipe,
            "verdict": self.verdict,
            "paper_verdict": self.paper_verdict,
            "reason": self.reason,
        }
        for name in ("train_auc", "fresh_auc", "test_auc"):
            interval = getattr(self, name).to_dict()
            row |= {name: interval["estimate"], f"{name}_low": interval["low"], f"{name}_high": interval["high"]}
        return row | {
            "oracle_auc": self.oracle_auc,
            "size_auc": self.size_auc,
            "level": self.fresh_auc.level,
            "n_train": self.n_train,
            "n_test": self.n_test,
            "n_runs": self.n_runs,
            "seed": self.seed,
            "seconds": self.seconds,
        }

    def __repr__(self) -> str:
        return (
            f"CheckResult({self.model} on {self.check} ({self.recipe}): {self.verdict}; "
            f"train {self.train_auc.estimate:.3f}, fresh {_bounds(self.fresh_auc)}, "
            f"shifted {_bounds(self.test_auc)}; {self.reason})"
        )

    def _repr_html_(self) -> str:
        cells = (
            self.model,
            self.check,
            self.recipe,
            f"{self.train_auc.estimate:.3f}",
            _bounds(self.fresh_auc),
            _bounds(self.test_auc),
            self.verdict,
            self.reason,
        )
        heads = ("model", "check", "recipe", "train AUC", "fresh AUC", "shifted AUC", "verdict", "reason")
        return (
            "<table><tr>"
            + "".join(f"<th>{head}</th>" for head in heads)
            + "</tr><tr>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            + "</tr></table>"
        )


def _bounds(interval: Interval) -> str:
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
