"""Tables of verdicts, and what has to be said below them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from milfast.checks import catalogue
from milfast.checks.codes import FLAGS, VERDICTS
from milfast.checks.together import stands
from milfast.checks.verdict import ALLOWED, ENOUGH_RUNS
from milfast.report import table
from milfast.report.terminal import say, show

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from milfast.checks import CheckResult

#: What the columns of a table of verdicts mean, line by line; only what is shown is explained.
LEGEND = (
    (
        ("fresh_auc", "fresh: new bags of the training distribution"),
        ("test_auc", "shifted: bags whose bait was moved"),
        ("fresh_auc", "brackets: {brackets}"),
    ),
    (
        ("oracle_auc", "oracle: AUC of the true rule, the ceiling, on the shifted bags"),
        ("size_auc", "size only: AUC of the number of instances alone, on the shifted bags"),
    ),
    (
        ("worst_auc", "worst sort: AUC against the negative shifted bags that are told worst"),
        ("broken", "law broken: share of bags, of the worst sort"),
    ),
    (("flags", "flags: {flags}"),),
    (("verdict", "verdict: not-learned unless fresh lies above 0.5; then {verdict}"),),
    (
        (
            "paper_verdict",
            "paper's rule: fail when the training AUC is above 0.5 and the shifted AUC below (Raff & Holt 2023)",
        ),
    ),
)

#: Flags that are said in words below a table.
SAID_BELOW = ("one-fit", "few-runs")

#: Flags for whose sake a pass is explained as well.
TELLING = {"presence-failed", "padding", "unstable"}

#: Verdicts that are explained below a table, at most.
EXPLAINED = 30


def show_checks(results: Sequence[CheckResult], level: float, form: table.Format) -> None:
    """Print results of checks, as a table with what has to be said below it or in another form.

    Parameters
    ----------
    results : sequence of CheckResult
    level : float
        Level of the verdicts.
    form : {"table", "markdown", "latex", "csv", "json"}
    """
    rows = [result.to_dict() for result in results]
    if form == "table":
        for row in rows:
            said = [flag for flag in row["flags"].split() if flag not in SAID_BELOW]
            row["flags"] = " ".join(FLAGS[flag].removeprefix("MIL") for flag in said)
    shown = show(rows, table.CHECK_COLUMNS, form)
    if form == "table" and results:
        _explain(results, level, {column.key for column in shown})


def _explain(results: Sequence[CheckResult], level: float, shown: Container[str]) -> None:
    """Say below a table of verdicts what its columns mean, and what is behind every verdict but a plain pass."""
    say(_counted(results))
    # the same model may have been fitted to several numbers of bags, where studies were merged
    sizes: dict[int, dict[str, None]] = {}
    for result in results:
        sizes.setdefault(result.n_train, {})[result.model] = None
    say("training bags: " + ", ".join(f"{n:,} ({', '.join(fitted)})" for n, fitted in sizes.items()) + ".")
    raised = sorted({(FLAGS[f], f) for r in results for f in r.flags if f not in SAID_BELOW})
    flags = ", ".join(f"{code.removeprefix('MIL')} {flag}" for code, flag in raised)
    said = {"flags": flags, "brackets": _brackets(results, level), "verdict": _rule(results, shown)}
    for line in LEGEND:
        parts = [text.format_map(said) for key, text in line if key in shown]
        if parts:
            say("; ".join(parts) + ".")
    noted = [result for result in results if result.verdict != "pass" or TELLING & set(result.flags)]
    for result in noted[:EXPLAINED]:
        reason = result.reason.removesuffix(f"; {result.caveat}") if result.caveat else result.reason
        say(f"{result.code} {result.verdict}: {result.model} on {result.check} ({result.recipe}): {reason}")
    if len(noted) > EXPLAINED:
        say(f"... and {len(noted) - EXPLAINED} more: --format json has the reason of every verdict")
    _say_caveat(results)
    alone = [f"{r.model} on {r.check} ({r.recipe})" for r in results if not stands(r)]
    if alone:
        say(f"certain by themselves, but not among all {len(results)} of this table (Holm): {', '.join(alone)}")
    if noted:
        say("docs/checks.md has a paragraph for every code and flag")


def _counted(results: Sequence[CheckResult]) -> str:
    parts = []
    for verdict in VERDICTS:
        having = [result for result in results if result.verdict == verdict]
        outside = sum(result.outside_claim for result in having) if verdict != "pass" else 0
        if having:
            parts.append(f"{len(having)} {verdict}" + (f" ({outside} outside the model's claim)" if outside else ""))
    return f"{len(results)} verdict{'' if len(results) == 1 else 's'}: {', '.join(parts)}"


def _brackets(results: Sequence[CheckResult], level: float) -> str:
    """The true level of the intervals, which are wider where verdicts are looked at several times, and their runs."""
    kinds = []
    for looks in sorted({result.looks for result in results}):
        if looks == 1:
            kinds.append(f"{100 * level:g} % intervals")
            continue
        error = 100 * (1 - level) / looks
        places = max(1, math.ceil(-math.log10(error)))
        kinds.append(
            f"{100 - error:.{places}f} % intervals (looked at up to {looks} times, "
            f"so that verdicts keep {100 * level:g} %)"
        )
    counts = {result.n_runs for result in results}
    if counts == {1}:
        return " or ".join(kinds) + ", which hold for one fit"
    runs = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{min(counts)}"
    return " or ".join(kinds) + f" over {runs} runs"


def _rule(results: Sequence[CheckResult], shown: Container[str]) -> str:
    """How the figures of a row make its verdict."""
    rules = []
    shifted = [result for result in results if result.test_auc is not None]
    if shifted:
        bars = {result.check: catalogue.about(result.check, result.recipe).bar for result in shifted}
        others = ", ".join(f"{bar:g} for {check}" for check, bar in bars.items() if bar != 0.5)
        usual = "0.5" if 0.5 in bars.values() else ""
        bar = f"{usual} ({others})" if usual and others else usual or others
        worst = "worst sort" if "worst_auc" in shown else "the worst sort of negative bags"
        if any(result.worst_auc is not None for result in shifted):
            rules.append(f"pass or fail as shifted and {worst} lie above or below {bar}")
        else:
            rules.append(f"pass or fail as shifted lies above or below {bar}")
    if len(shifted) < len(results):
        rules.append(f"pass or fail as law broken lies below or above {ALLOWED:g}")
    return ", or ".join(rules)


def _say_caveat(results: Sequence[CheckResult]) -> None:
    """What too few runs leave open: once, although every reason ends with it."""
    caveats = {result.caveat for result in results}
    if len(caveats) == 1:
        [caveat] = caveats
        if caveat:
            say(f"all this is {caveat}")
        return
    few = sorted({result.n_runs for result in results if result.caveat})
    counts = " or ".join(filter(None, (", ".join(map(str, few[:-1])), str(few[-1]))))
    say(
        f"{'some of this' if '' in caveats else 'all this'} is from {counts} run{'' if few == [1] else 's'}, "
        f"and it takes {ENOUGH_RUNS} to speak of the model rather than of fits"
    )
