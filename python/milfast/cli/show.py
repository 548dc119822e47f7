"""`milfast show`: what a study found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from milfast.checks import catalogue
from milfast.checks.codes import VERDICTS
from milfast.cli.arguments import format_argument, verb
from milfast.cli.consistency import show_consistency
from milfast.cli.evaluate import show_protocol
from milfast.cli.studies import report_unfinished
from milfast.invariance.verdict import OUTCOMES
from milfast.protocol.selection import TIES
from milfast.report import table
from milfast.report.invariance_tables import show_battery
from milfast.report.terminal import show
from milfast.report.verdicts import show_checks

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verb(
        verbs,
        "show",
        run,
        "show what a study found so far",
        "examples:\n  milfast show tables.db --format markdown\n"
        "  milfast show tables.db --model mi-Net --verdict fail\n"
        "  milfast show tables.db --printed",
    )
    parser.add_argument("file", metavar="STUDY", help="file made with --out")
    parser.add_argument("--model", nargs="+", metavar="NAME", help="only rows of these models")
    parser.add_argument(
        "--check", nargs="+", metavar="CHECK", help="only rows of these checks, names or codes, or of these problems"
    )
    parser.add_argument(
        "--verdict",
        nargs="+",
        choices=tuple(dict.fromkeys((*VERDICTS, *OUTCOMES))),
        help="only rows with these verdicts",
    )
    parser.add_argument("--level", type=float, default=0.95, help="level of the intervals (default: 0.95)")
    parser.add_argument(
        "--printed",
        action="store_true",
        help="beside the figures of tables 2 to 4 of Raff & Holt (2023), of table 1 of Levman et al. (2023), or of "
        "Aubin et al. (2021)",
    )
    parser.add_argument(
        "--ties",
        choices=tuple(TIES),
        default="first",
        help="of results by a protocol, as for evaluate (default: first)",
    )
    format_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    from milfast import evaluation
    from milfast.checks import CheckResult, printed
    from milfast.checks import jobs as check_jobs
    from milfast.consistency import jobs as consistency_jobs
    from milfast.invariance import battery
    from milfast.invariance import jobs as battery_jobs
    from milfast.protocol import ProtocolResult
    from milfast.protocol import jobs as protocol_jobs
    from milfast.protocol import results as protocol_results
    from milfast.study import Store

    with Store(options.file, write=False) as store:
        records = list(store.records())
    checks, evaluations, protocols, consistencies, batteries = (
        [(r.spec, r.result) for r in records if r.spec["function"] == function and r.result is not None]
        for function in (
            check_jobs.FUNCTION,
            evaluation.FUNCTION,
            protocol_jobs.FUNCTION,
            consistency_jobs.FUNCTION,
            battery_jobs.FUNCTION,
        )
    )
    found: list[Any] = [
        *check_jobs.combine(checks, level=options.level),
        *evaluation.combine(evaluations),
        *protocol_results.combine(protocols, ties=options.ties),
        *consistency_jobs.combine(consistencies),
        *battery.combine(batteries, alpha=1 - options.level).cells,
    ]
    try:
        kept = _wanted(found, options)
    finally:
        report_unfinished(records)
    results = [result for result in kept if isinstance(result, CheckResult)]
    consistent = [result for result in kept if isinstance(result, consistency_jobs.CellResult)]
    cells = [result for result in kept if isinstance(result, battery.Cell)]
    if cells:
        show_battery(battery.Battery(tuple(cells)), options.format, printed=options.printed)
    if options.printed and consistent:
        show_consistency(consistent, options.level, options.format, printed=True)
    if options.printed and (cells or consistent) and not results:
        return 0
    if options.printed:
        beside = [(result, printed.beside(result)) for result in results]
        rows = [row for _, row in beside if row is not None]
        without = [f"{result.model} on {result.check}" for result, row in beside if row is None]
        if without:
            print(
                f"milfast: left out, as the paper printed no figures: {len(without)} of {len(beside)} results: "
                f"{', '.join(dict.fromkeys(without))}",
                file=sys.stderr,
            )
        show(rows, table.PRINTED_COLUMNS, options.format)
        return 0
    if results:
        show_checks(results, options.level, options.format)
    rows = [result.to_dict() for result in kept if isinstance(result, evaluation.EvaluationResult)]
    if rows:
        show(rows, table.EVALUATION_COLUMNS, options.format)
    if by_protocol := [result for result in kept if isinstance(result, ProtocolResult)]:
        show_protocol(by_protocol, by_protocol[0].auc.level, options.format)
    if consistent:
        show_consistency(consistent, options.level, options.format, printed=False)
    if not kept:
        print("milfast: no result to show", file=sys.stderr)
    return 0


def _wanted(results: Sequence[Any], options: argparse.Namespace) -> list[Any]:
    """The results that were asked for by model, check and verdict."""
    kept = list(results)
    for what in ("model", "check", "verdict"):
        asked = getattr(options, what)
        if asked is None:
            continue
        if what == "check":
            asked = [catalogue.registry.named(name) for name in asked]
        there = dict.fromkeys(value for value in (_value(result, what) for result in results) if value is not None)
        for name in asked:
            # a verdict that nobody got is an answer; a name that is nowhere is a slip of the pen
            if what != "verdict" and name not in there:
                known = f"there are {', '.join(there)}" if there else "there is none"
                raise ValueError(f"no result of {what} {name!r}; {known}")
        kept = [result for result in kept if _value(result, what) in asked]
    return kept


def _value(result: Any, what: str) -> str | None:
    """The model, check or verdict of a result; those of a battery are learners on problems."""
    from milfast.invariance.battery import Cell

    if isinstance(result, Cell):
        outcome = None if result.verdict is None else result.verdict.outcome
        found = {"model": result.learner, "check": result.problem, "verdict": outcome}
        return found[what]
    value: str | None = getattr(result, what, None)
    return value
