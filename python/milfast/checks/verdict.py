"""From what runs measured to a verdict: what the figures allow one to say about a model."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from milfast.checks import catalogue
from milfast.checks.codes import VERDICTS
from milfast.checks.estimate import Estimate, Pooled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from milfast.uncertainty import Interval

Verdict: TypeAlias = Literal["pass", "fail", "inconclusive", "not-learned"]

#: Differences between AUCs that are smaller do not count as a loss.
MARGIN = 0.02
#: Largest share of bags that may break a law.
ALLOWED = 0.01
#: Rank correlation of score and bag size, within a class, from which on it is pointed out.
SIZE_CUE = 0.5
#: Attributes of a run that are an `Estimate`, or None.
ESTIMATES = ("train", "fresh", "test", "worst_auc")
#: More runs than these are no advice.
MANY_RUNS = 100
#: Fewest runs for a claim about a model rather than about a few fits of it.
ENOUGH_RUNS = 5


def judge(learned: float, better: float, worse: float, *, tail: float) -> Verdict:
    """The verdict of three one-sided p-values.

    Parameters
    ----------
    learned : float
        Against the model being no better than chance on fresh bags of the training distribution. The training bags
        themselves would not do: a model that memorises them ranks them without fault.
    better : float
        Against its being no better than the bar on the shifted bags.
    worse : float
        Against its being no worse than the bar on the shifted bags.
    tail : float
        How often each may err: (1 - level) / 2.

    Returns
    -------
    {"pass", "fail", "inconclusive", "not-learned"}

    Examples
    --------
    >>> from milfast.checks.verdict import judge
    >>> judge(1e-9, 1e-9, 1.0, tail=0.025), judge(1e-9, 1.0, 1e-9, tail=0.025)
    ('pass', 'fail')
    >>> judge(1e-9, 0.4, 0.6, tail=0.025), judge(0.4, 1e-9, 1.0, tail=0.025)
    ('inconclusive', 'not-learned')
    """
    if not learned < tail:
        return "not-learned"
    if worse < tail:
        return "fail"
    return "pass" if better < tail else "inconclusive"


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


@dataclass(frozen=True)
class Run:
    """What one fit gave under one check.

    Attributes
    ----------
    model, check, recipe : str
        Names.
    claims : str or None
        The assumption that the model claims to respect.
    train, fresh : Estimate
        AUC on the training bags, and on fresh bags of their distribution.
    test : Estimate or None
        AUC on bags of the shifted distribution; None for a law.
    strata : dict of str to Estimate
        For each sort of negative shifted bags, the AUC against all positive ones. For a law, the share of bags that
        break it, for each sort of bags.
    worst : str or None
        The sort of negative shifted bags with the lowest AUC on one half of the bags.
    worst_auc : Estimate or None
        Its AUC on the other half, so that having been chosen does not make it look worse than it is.
    oracle_auc, size_auc : float or None
        AUC of the true rule and of the bag size on the shifted bags; None for a law.
    size_correlation : float
        Rank correlation of score and bag size on those bags (fresh ones for a law), mean of both classes.
    ceilings : dict of str to float
        AUC on the fresh bags of rules that say what can be reached.
    n_train, n_test : int
        Number of bags.
    seed, run : int
        Root seed, and number of the run.
    seconds : float
        Time for fitting and scoring.
    unstable : float or None
        For a law, the share of unchanged bags whose score changed when they were scored again, in other company.
    train_accuracy, fresh_accuracy, test_accuracy : float or None
        Share of the bags that the model labels rightly.
    notes : tuple of str
        Flags that the model itself raised once it was fitted, see `ModuleMIL.findings_`.
    """

    model: str
    check: str
    recipe: str
    claims: str | None
    train: Estimate
    fresh: Estimate
    test: Estimate | None
    strata: dict[str, Estimate]
    worst: str | None
    worst_auc: Estimate | None
    oracle_auc: float | None
    size_auc: float | None
    size_correlation: float
    ceilings: dict[str, float]
    n_train: int
    n_test: int
    seed: int
    run: int
    seconds: float
    unstable: float | None = None
    train_accuracy: float | None = None
    fresh_accuracy: float | None = None
    test_accuracy: float | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Every attribute as plain values.

        Returns
        -------
        dict
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values |= {n: None if (e := values[n]) is None else e.to_dict() for n in ESTIMATES}
        values |= {"notes": list(self.notes)}
        return values | {"strata": {name: estimate.to_dict() for name, estimate in self.strata.items()}}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Run:
        """The run that `to_dict` described.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Run
        """
        read = {n: None if (e := values[n]) is None else Estimate.from_dict(e) for n in ESTIMATES}
        strata = {name: Estimate.from_dict(estimate) for name, estimate in values["strata"].items()}
        return cls(**{**values, **read, "strata": strata, "notes": tuple(values.get("notes", ()))})


@dataclass(frozen=True, repr=False)
class CheckResult:
    """What one check says about one model.

    Attributes
    ----------
    model, check, recipe : str
        Names.
    code : str
        Code of the check, for docs/checks.md.
    verdict : {"pass", "fail", "inconclusive", "not-learned"}
        See docs/verdicts.md.
    flags : tuple of str
        What else is to be said; docs/checks.md explains each.
    reason : str
        The verdict in words.
    train_auc : Interval
        On the training bags.
    fresh_auc : Interval
        On fresh bags of the training distribution.
    test_auc : Interval or None
        On bags of the shifted distribution; None for a law.
    worst_stratum : str or None
        The sort of negative shifted bags that a run tells worst from positive ones (several when runs differ in that),
        or the sort of bags that break a law most often; None when all are of one sort.
    worst_auc : Interval or None
        AUC of the positive shifted bags against that stratum, on bags other than those that it was chosen by.
    broken : Interval or None
        Share of the bags of the worst stratum that break the law; None for other checks.
    train_accuracy, fresh_accuracy, test_accuracy : float or None
        Share of the training, fresh and shifted bags that the model labels rightly, mean over runs. No verdict rests on
        them: where the bait was moved, a score that ranks perfectly may stand wholly on one side of the cut.
    oracle_auc, size_auc : float or None
        Mean AUC on the shifted bags of the true rule, which is the ceiling, and of the bag size alone, which is what a
        model reaches that only counts instances.
    size_correlation : float
        Rank correlation of score and bag size within a class.
    assumption : {"standard", "threshold", "correlated"}
        What the check tests.
    claims : str or None
        What the model claims.
    paper_verdict : {"pass", "fail"} or None
        The paper's rule on the same figures.
    p_value : float
        That of the verdict, one-sided, times the number of looks; 1 where there is none to be wrong about.
    p_holm : float
        The same after Holm's correction for all results it was read together with.
    needed_runs, needed_test : int or None
        How many runs in all, or test bags, would settle an open verdict if the figures stay as they are.
    settled : bool
        Whether more runs would be in vain: the verdict is a pass or a fail, or the interval of what keeps it open lies
        within 0.02 (for a law 0.005) of the value that it would have to leave.
    looks : int
        How often the plan allows to look at the verdict; the intervals are wider for it.
    level : float
        Level of the verdict: each of its bounds errs (1 - level) / 2 of the time, over all looks. That of the intervals
        is the same with one look.
    n_train, n_test, n_runs : int
        Bags per run, and runs.
    seed : int
        `random_state` with which the result comes out again.
    seconds : float
        Time for fitting and scoring, all runs. Checks of one fit share its time.
    runs : tuple of Run
        The single runs.
    """

    model: str
    check: str
    recipe: str
    code: str
    verdict: Verdict
    flags: tuple[str, ...]
    reason: str
    train_auc: Interval
    fresh_auc: Interval
    test_auc: Interval | None
    worst_stratum: str | None
    worst_auc: Interval | None
    broken: Interval | None
    train_accuracy: float | None
    fresh_accuracy: float | None
    test_accuracy: float | None
    oracle_auc: float | None
    size_auc: float | None
    size_correlation: float
    assumption: str
    claims: str | None
    paper_verdict: Literal["pass", "fail"] | None
    p_value: float
    p_holm: float
    needed_runs: int | None
    needed_test: int | None
    settled: bool
    looks: int
    level: float
    n_train: int
    n_test: int
    n_runs: int
    seed: int
    seconds: float
    runs: tuple[Run, ...]

    @classmethod
    def of(cls, runs: Sequence[Run], *, level: float, looks: int = 1) -> CheckResult:
        """Combine the runs of one model under one check.

        Parameters
        ----------
        runs : sequence of Run
            At least one.
        level : float
            Level of the intervals.
        looks : int
            How often a sequential study looks at the verdict; each look gets an equal share of the error.

        Returns
        -------
        CheckResult
        """
        first = runs[0]
        about = catalogue.about(first.check, first.recipe)
        tail = (1 - level) / 2 / looks
        shown = 1 - 2 * tail
        train, fresh = Pooled([r.train for r in runs]), Pooled([r.fresh for r in runs])
        test, bar = _pooled([r.test for r in runs]), about.bar
        worst = _pooled([r.worst_auc for r in runs])
        learned = fresh.p_above(0.5)
        if test is not None:
            stratum = " or ".join(sorted({r.worst for r in runs if r.worst is not None})) or None
            decisive = [test] if worst is None else [test, worst]
            better = max(p.p_above(bar) for p in decisive)
            worse = len(decisive) * min(p.p_below(bar) for p in decisive)
        else:
            names = [name for name in first.strata if all(name in r.strata for r in runs)]
            sorts = {name: Pooled([r.strata[name] for r in runs]) for name in names}
            stratum = max(sorts, key=lambda name: _or_low(sorts[name].mean), default=None)
            worst, bar = None if stratum is None else sorts[stratum], ALLOWED
            decisive = list(sorts.values())
            better = max((p.p_below(bar) for p in decisive), default=1.0)
            worse = max(len(decisive), 1) * min((p.p_above(bar) for p in decisive), default=1.0)
        verdict = judge(learned, better, worse, tail=tail)
        unstable = _unstable(runs)
        if unstable and verdict != "not-learned":
            verdict = "inconclusive"  # a score that changes by itself shows nothing about a law
        p_value = min(1.0, looks * {"pass": max(learned, better), "fail": max(learned, worse)}.get(verdict, 1.0))
        open_to = None  # what a longer study would settle: the quantity, the value it must leave behind, and the error
        if unstable:
            pass
        elif verdict == "not-learned" and fresh.mean > 0.5:
            open_to = fresh, 0.5, tail
        elif verdict == "inconclusive" and decisive:
            # one quantity on the wrong side is enough for a fail, which is why each has a share of the error there
            wrong = [p for p in decisive if (p.mean < bar if test is not None else p.mean > bar)]
            if wrong:
                open_to = max(wrong, key=lambda p: p.distance(bar)), bar, tail / len(decisive)
            else:
                open_to = min(decisive, key=lambda p: p.distance(bar)), bar, tail
        result = cls(
            model=first.model,
            check=first.check,
            recipe=first.recipe,
            code=about.code,
            verdict=verdict,
            flags=(),
            reason="",
            train_auc=train.interval(shown),
            fresh_auc=fresh.interval(shown),
            test_auc=None if test is None else test.interval(shown),
            worst_stratum=stratum,
            worst_auc=None if test is None or worst is None else worst.interval(shown),
            broken=worst.interval(shown) if test is None and worst is not None else None,
            train_accuracy=_mean([r.train_accuracy for r in runs]),
            fresh_accuracy=_mean([r.fresh_accuracy for r in runs]),
            test_accuracy=_mean([r.test_accuracy for r in runs]),
            oracle_auc=_mean([r.oracle_auc for r in runs]),
            size_auc=_mean([r.size_auc for r in runs]),
            size_correlation=_mean([r.size_correlation for r in runs]) or 0.0,
            assumption=about.assumption,
            claims=first.claims,
            paper_verdict=None if test is None else paper_rule(train.mean, test.mean),
            p_value=p_value,
            p_holm=p_value,
            needed_runs=None,
            needed_test=None,
            settled=_settled(verdict, open_to, shown, fresh.interval(shown).high),
            looks=looks,
            level=level,
            n_train=first.n_train,
            n_test=first.n_test,
            n_runs=len(runs),
            seed=first.seed,
            seconds=sum(r.seconds for r in runs),
            runs=tuple(runs),
        )
        result = replace(result, flags=_flags(result, about), **_needs(result, open_to))
        return replace(result, reason=_reason(result, about))

    @property
    def caveat(self) -> str:
        """What the number of runs leaves open; empty from five runs on."""
        if self.n_runs == 1:
            return "conditional on this fit"
        if self.n_runs < ENOUGH_RUNS:
            return f"from {self.n_runs} runs, and it takes {ENOUGH_RUNS} to speak of the model rather than of fits"
        return ""

    @property
    def outside_claim(self) -> bool:
        """Whether the model never claimed what the check tests."""
        return "outside-claim" in self.flags

    def to_dict(self) -> dict[str, Any]:
        """One flat row of plain values: an interval becomes its estimate and, with _low and _high, its bounds.

        Returns
        -------
        dict
            Undefined numbers, and those that the check does not have, are None.
        """
        row: dict[str, Any] = {
            "model": self.model,
            "check": self.check,
            "recipe": self.recipe,
            "code": self.code,
            "verdict": self.verdict,
            "verdict_code": VERDICTS[self.verdict],
            "flags": " ".join(self.flags),
            "paper_verdict": self.paper_verdict,
            "reason": self.reason,
        }
        for name in ("train_auc", "fresh_auc", "test_auc", "worst_auc", "broken"):
            interval = getattr(self, name)
            bounds = dict.fromkeys(("estimate", "low", "high")) if interval is None else interval.to_dict()
            row |= {name: bounds["estimate"], f"{name}_low": bounds["low"], f"{name}_high": bounds["high"]}
        plain = (
            "worst_stratum",
            "train_accuracy",
            "fresh_accuracy",
            "test_accuracy",
            "oracle_auc",
            "size_auc",
            "size_correlation",
            "assumption",
            "claims",
            "p_value",
            "p_holm",
            "needed_runs",
            "needed_test",
            "looks",
            "level",
            "n_train",
            "n_test",
            "n_runs",
            "seed",
            "seconds",
        )
        return row | {name: getattr(self, name) for name in plain}

    def _figures(self) -> list[tuple[str, str]]:
        figures = [("train AUC", f"{self.train_auc.estimate:.3f}"), ("fresh AUC", _bounds(self.fresh_auc))]
        if self.test_auc is not None:
            figures.append(("shifted AUC", _bounds(self.test_auc)))
        if self.worst_auc is not None:
            figures.append((f"against {self.worst_stratum}", _bounds(self.worst_auc)))
        if self.broken is not None:
            figures.append((f"broken, {self.worst_stratum}", _bounds(self.broken)))
        return figures

    def __repr__(self) -> str:
        figures = ", ".join(f"{name.removesuffix(' AUC')} {value}" for name, value in self._figures())
        return f"CheckResult({self.model} on {self.check} ({self.recipe}): {self.verdict}; {figures}; {self.reason})"

    def _repr_html_(self) -> str:
        cells = [
            ("model", self.model),
            ("check", self.check),
            ("recipe", self.recipe),
            *self._figures(),
            ("verdict", self.verdict),
            ("reason", self.reason),
        ]
        heads = "".join(f"<th>{html.escape(head)}</th>" for head, _ in cells)
        return (
            f"<table><tr>{heads}</tr><tr>{''.join(f'<td>{html.escape(cell)}</td>' for _, cell in cells)}</tr></table>"
        )


def _settled(verdict: Verdict, open_to: tuple[Pooled, float, float] | None, level: float, fresh_high: float) -> bool:
    if verdict in ("pass", "fail"):
        return True
    if open_to is None:
        return verdict == "inconclusive" or fresh_high < 0.5 + MARGIN
    pooled, value, _ = open_to
    margin = MARGIN if pooled.estimates[0].is_auc else ALLOWED / 2
    interval = pooled.interval(level)
    return value - margin < interval.low and interval.high < value + margin


def _needs(result: CheckResult, open_to: tuple[Pooled, float, float] | None) -> dict[str, Any]:
    """How many runs, or test bags for a single fit, would settle an open verdict."""
    if open_to is None or not open_to[0].defined:
        return {}
    pooled, value, tail = open_to
    if result.n_runs > 1 or (result.verdict == "inconclusive" and result.test_auc is None):  # laws have bags enough
        runs = pooled.runs_to_reach(value, tail)
        return {"needed_runs": None if runs is None else max(runs, result.n_runs + 1, ENOUGH_RUNS)}
    interval = pooled.interval(1 - 2 * tail)
    distance = abs(interval.estimate - value)
    if not distance * 1e3 > interval.half_width:
        return {}
    return {"needed_test": max(math.ceil(result.n_test * (interval.half_width / distance) ** 2), result.n_test + 1)}


def _unstable(runs: Sequence[Run]) -> bool:
    """Whether unchanged bags got other scores when they were scored again, so that nothing can be said about a law."""
    return any((run.unstable or 0.0) > ALLOWED for run in runs)


def _flags(result: CheckResult, about: catalogue.About) -> tuple[str, ...]:
    test, fresh = result.test_auc, result.fresh_auc
    found = []
    notes = {note for run in result.runs for note in run.notes}
    if _unstable(result.runs) or "unstable" in notes:
        found.append("unstable")
    if "padding" in notes:
        found.append("padding")
    if fresh.high < 0.5:
        found.append("upside-down")
    if result.verdict == "not-learned" and result.train_auc.low > fresh.high + 0.1:
        found.append("memorised")
    if result.verdict == "fail" and test is not None and not test.high < about.bar:
        found.append("worst-stratum")
    # swapped labels have no ceiling, and scattered neighbours are harder to tell than none, so a loss is no fault there
    comparable = not about.swapped and about.assumption != "correlated"
    if test is not None and result.verdict != "not-learned" and comparable:
        if test.high < fresh.low - MARGIN:
            found.append("degraded")
        if result.oracle_auc is not None and test.high < result.oracle_auc - MARGIN:
            found.append("below-oracle")
    if abs(result.size_correlation) >= SIZE_CUE:
        found.append("size-cue")
    if about.assumption not in catalogue.CLAIMED.get(result.claims, ()):
        found.append("outside-claim")
    if result.n_runs < ENOUGH_RUNS:
        found.append("one-fit" if result.n_runs == 1 else "few-runs")
    return tuple(found)


def _reason(result: CheckResult, about: catalogue.About) -> str:
    parts = [_finding(result, about)]
    if result.verdict == "not-learned" and "upside-down" not in result.flags:
        parts.append("train on more bags, or longer")
    if result.needed_runs is not None and result.needed_runs <= MANY_RUNS:
        parts.append(f"about {result.needed_runs:,} runs in all would tell, if the figures stay as they are")
    elif result.needed_test is not None:
        parts.append(
            f"about {result.needed_test:,} bags of each sort would tell for this fit, if its AUC stays as it is"
        )
    elif result.verdict == "inconclusive" and not _unstable(result.runs):
        parts.append("more runs are not likely to tell")
    if result.looks > 1 and not result.settled:
        parts.append("not decided within the runs allowed")
    if "size-cue" in result.flags:
        parts.append(f"scores go with the bag size (rank correlation {result.size_correlation:.2f} within a class)")
    if "padding" in result.flags:
        parts.append("scores depend on padding: a bag gets another score in a batch of longer bags")
    if "unstable" in result.flags and not _unstable(result.runs):
        parts.append("scores depend on chance or on which bags are scored along")
    ceilings = {name: _mean([r.ceilings[name] for r in result.runs]) for name in result.runs[0].ceilings}
    if ceilings:
        listed = ", ".join(f"{value:.3f} by {name}" for name, value in ceilings.items())
        parts.append(f"these fresh bags can be ranked with an AUC of {listed}")
    if "outside-claim" in result.flags and result.verdict != "pass":
        claim = "does not claim" if result.claims is None else f"claims the {result.claims} assumption and not"
        parts.append(f"not held against the model, which {claim} what this check tests")
    return "; ".join(filter(None, [*parts, result.caveat]))


def _finding(result: CheckResult, about: catalogue.About) -> str:
    if result.verdict == "not-learned":
        if "upside-down" in result.flags:
            return "fresh bags are ranked upside down: a higher score must mean positive; is the sign flipped?"
        text = "not shown to be better than chance on fresh bags of the training distribution"
        if "memorised" in result.flags:
            return f"{text}, although it fits the training bags (AUC {result.train_auc.estimate:.3f}): memorised"
        return text
    if _unstable(result.runs):
        return (
            "the same bags got other scores when they were scored again, so nothing can be said about a law: scores "
            "must not depend on chance or on which bags are scored along"
        )
    if result.broken is not None:
        share = f"{100 * result.broken.estimate:.1f} % of the bags tried ({result.worst_stratum}) break the law"
        if result.verdict == "fail":
            return f"learned instead: {about.learned}; {share}"
        return share if result.verdict == "pass" else f"{share}, where {100 * ALLOWED:g} % would be allowed"
    if result.verdict == "pass" and about.swapped:
        return "ranks fresh bags better than chance, and could not be taught that absence is positive"
    if result.verdict == "pass":
        return "ranks fresh and shifted bags better than chance"
    if "worst-stratum" in result.flags:
        return (
            f"ranks negative bags that hold {result.worst_stratum} (by run) above positive ones, as a model does that "
            "learned one concept alone"
        )
    if result.verdict == "fail":
        return f"learned instead: {about.learned}"
    return f"learned the training distribution, but the shifted AUC may lie on either side of {about.bar:g}"


def _pooled(estimates: Sequence[Estimate | None]) -> Pooled | None:
    there = [estimate for estimate in estimates if estimate is not None]
    return Pooled(there) if there else None


def _or_low(value: float) -> float:
    return -1.0 if math.isnan(value) else value


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if len(there) == len(values) else None


def _bounds(interval: Interval) -> str:
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
