"""Tables of a battery, beside what was published, and what has to be said below them."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from milfast.invariance.verdict import OUTCOMES
from milfast.report import table
from milfast.report.terminal import say, show
from milfast.uncertainty.comparison import show_p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from milfast.invariance.battery import Battery, Cell

#: Names that are listed below a table, at most.
LISTED = 8

#: Settings that are shown where they differ from row to row.
SETTINGS = (
    table.Column("engine", "engine"),
    table.Column("selection", "selection"),
    table.Column("environments", "n_env"),
    table.Column("invariant", "d_inv"),
    table.Column("spurious", "d_spu"),
    table.Column("rows", "n"),
    table.Column("trials", "n_trials"),
    table.Column("steps", "n_steps"),
    table.Column("seed", "seed"),
    table.Column("test shuffle", "test_shuffle"),
    table.Column("rng", "rng"),
)

VERDICT_COLUMNS = (
    table.Column("model", "model"),
    table.Column("problem", "problem"),
    *SETTINGS,
    table.Column("error", "mean", digits=4),
    table.Column("SD", "sd", digits=4),
    table.Column("excess", "excess"),
    table.Column("solved", "solved"),
    table.Column("share solved", "share_solved"),
    table.Column("rho", "rho_text"),
    table.Column("p, better than ERM", "better"),
    table.Column("spurious share", "spurious_share"),
    table.Column("verdict", "verdict"),
)

#: The same errors, and in brackets what was published.
PUBLISHED_COLUMNS = (
    table.Column("model", "model"),
    table.Column("problem", "problem"),
    *SETTINGS,
    table.Column("error (published)", "mean", beside="published_mean", digits=4),
    table.Column("SD (published)", "sd", beside="published_sd", digits=4),
    table.Column("difference", "difference", digits=5),
    table.Column("by environment", "environments"),
    table.Column("trial (published)", "trial", beside="published_trial"),
    table.Column("excess", "excess"),
    table.Column("spurious share", "spurious_share"),
    table.Column("note", "note"),
)


def show_battery(battery: Battery, form: table.Format, *, printed: bool = False) -> None:
    """Print a battery, verdicts and errors beside published ones in tables of their own.

    Parameters
    ----------
    battery : Battery
    form : {"table", "markdown", "latex", "csv", "json"}
    printed : bool
        Show cells with verdicts beside published figures too, instead of their verdicts.
    """
    if form in ("csv", "json"):
        show(battery.rows(), (), form)
    else:
        judged = [cell for cell in battery.cells if cell.verdict is not None and not printed]
        others = [cell for cell in battery.cells if cell not in judged]
        if judged or not others:
            shown = show([verdict_row(cell) for cell in judged], columns(judged, VERDICT_COLUMNS), form)
            if form == "table" and judged:
                _explain_verdicts(judged, {column.key for column in shown})
        if judged and others:
            print()
        if others:
            show([published_row(cell) for cell in others], columns(others, PUBLISHED_COLUMNS), form)
            if form == "table":
                _explain_published(others)
    for note in battery.notes:
        print(f"milfast: note: {note}", file=sys.stderr)


def columns(cells: Sequence[Cell], given: Sequence[table.Column]) -> list[table.Column]:
    """Columns without the settings that all cells share.

    Parameters
    ----------
    cells : sequence of Cell
    given : sequence of Column

    Returns
    -------
    list of Column
    """
    rows = [cell.to_dict() for cell in cells]
    # None is no other number of rows: what was trained on the distribution has none
    same = {column.key for column in SETTINGS if len({row[column.key] for row in rows} - {None}) < 2}
    return [column for column in given if column.key not in same]


def verdict_row(cell: Cell) -> table.Row:
    """A row of a table of verdicts.

    Parameters
    ----------
    cell : Cell
        With a verdict.

    Returns
    -------
    dict
    """
    verdict = cell.verdict
    if verdict is None:
        raise ValueError(f"{cell!r} has no verdict")
    return cell.to_dict() | {
        "solved": f"{verdict.successes}/{verdict.n_replicates}",
        "share_solved": f"[{verdict.success_low:.3f}, {verdict.success_high:.3f}]",
        "rho_text": "-"
        if math.isnan(verdict.ratio.estimate)
        else f"{verdict.ratio.estimate:.3f} {verdict.ratio.bounds()}",
        "better": show_p(verdict.log_p_better).removeprefix("p = ").removeprefix("p "),
    }


def published_row(cell: Cell) -> dict[str, Any]:
    """A row of a table beside published figures.

    Parameters
    ----------
    cell : Cell

    Returns
    -------
    dict
        Trials as text, as they are numbers of nothing.
    """
    row = cell.to_dict()
    note = "published of a faulty test" if row["published_faulty"] else ""
    if cell.of_published_trial is not None:
        note = f"theirs, {row['published_trial']}: {cell.of_published_trial[0]:.4f}"
    return row | {
        "trial": "each its own" if row["trial"] is None else str(row["trial"]),
        "published_trial": "-" if row["published_trial"] is None else str(row["published_trial"]),
        "note": note,
    }


def _explain_verdicts(cells: Sequence[Cell], shown: set[str]) -> None:
    counts = {outcome: sum(_outcome(cell) == outcome for cell in cells) for outcome in OUTCOMES}
    parts = ", ".join(f"{number} {outcome}" for outcome, number in counts.items() if number)
    say(f"{len(cells)} verdict{'' if len(cells) == 1 else 's'}: {parts}")
    verdict = cells[0].verdict
    if verdict is None:
        return
    level = f"{100 * (1 - verdict.alpha):g} %"
    excess = "; excess: median of (error - optimum) / optimum" if "excess" in shown else ""
    say(f"error: mean over environments and replicates of the {_risks(cells)} in the test, SD over replicates{excess}")
    say(
        f"solved: replicates no farther from the oracle than {verdict.tolerance:g} of ERM's way; share solved: "
        f"one-sided {level} bounds; pass or fail as it lies above or below {verdict.required:g}"
    )
    say(f"rho: (error - oracle's) / (ERM's - oracle's), 0 the oracle, 1 ERM, {level} interval (Fieller 1954)")
    for outcome in ("void", "diverged"):
        reasons: dict[tuple[str, str], list[str]] = {}  # what makes a problem void is the same for all learners
        for cell in cells:
            if cell.verdict is not None and cell.verdict.outcome == outcome:
                reasons.setdefault((cell.problem, cell.verdict.reason), []).append(cell.learner)
        for (problem, reason), names in reasons.items():
            say(f"{outcome}: {problem if outcome == 'void' else f'{_listed(names)} on {problem}'}: {reason}")
    alone = [
        f"{cell.learner} on {cell.problem}"
        for cell in cells
        if _outcome(cell) in ("pass", "fail") and not math.isnan(cell.log_p_pass) and not cell.stands
    ]
    if alone:
        say(f"certain by themselves, but not among all of this table (Holm): {_listed(alone)}")
    say("docs/invariance.md says what verdicts mean")


def _explain_published(cells: Sequence[Cell]) -> None:
    say(
        "error: mean over environments and data seeds of the test error (mean squared error for Example1, share of "
        "errors for the others), and its SD (ddof 0) over data seeds; in brackets as published"
    )
    chosen = {cell.selection for cell in cells}
    if chosen == {"pooled"}:
        say("trial: of all that were tried, by its mean validation error over data seeds; 0 has default parameters")
    if any(cell.to_dict()["published_faulty"] for cell in cells):
        say("published of a faulty test: its code permuted the wrong columns; --test-shuffle 2021 repeats that")
    seconds = sum(cell.seconds for cell in cells)
    say(f"{len(cells)} cells in {seconds / 60:.1f} processor minutes")


def _listed(names: Sequence[str]) -> str:
    """Some names, and how many more."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _outcome(cell: Cell) -> str:
    return "" if cell.verdict is None else cell.verdict.outcome


def _risks(cells: Sequence[Cell]) -> str:
    return " or ".join(sorted({f"{cell.risk} error" for cell in cells}))
