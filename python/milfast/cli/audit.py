"""`milfast audit`: figures that cannot be true together."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from milfast import csv_files
from milfast.checks.codes import IMPOSSIBLE_PAIR
from milfast.cli.arguments import format_argument, verb
from milfast.report import table
from milfast.report.terminal import say, show

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verb(
        verbs,
        "audit",
        run,
        "find accuracies and AUCs in a table that cannot be true together",
        "The file has a header with columns such as accuracy, auc, sensitivity, specificity, balanced_accuracy,\n"
        "positive_fraction, n_pos and n_neg; train_accuracy and train_auc belong together, as do test_ ones.\n"
        "0.80 is read as 0.795 to 0.805, and 99.1% may be written so. `-` reads standard input.\n"
        "Exit status: 0 when all can be true, 1 when something cannot, 2 for wrong use.\n\n"
        "example:\n"
        "  milfast audit table3.csv --positive-fraction 0.5",
    )
    parser.add_argument("file", metavar="TABLE", help="CSV file")
    parser.add_argument(
        "--positive-fraction", metavar="P", help="fraction of positives, as 0.38 or 49/129, for rows without their own"
    )
    parser.add_argument(
        "--decimals", type=int, metavar="N", help="decimals that every figure has at least, if zeros were lost"
    )
    parser.add_argument("--averaged", action="store_true", help="figures are averages over folds or runs")
    format_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    from milfast.uncertainty import auc_limits, audit

    fraction = _as_fraction(options.positive_fraction)
    try:
        auc_limits(positive_fraction=fraction, decimals=options.decimals)
    except ValueError as error:
        # the library calls them as Python does
        flags = str(error).replace("positive_fraction", "--positive-fraction").replace("decimals", "--decimals")
        raise ValueError(flags) from None
    rows = csv_files.read_table(options.file)
    try:
        results = audit(rows, positive_fraction=fraction, decimals=options.decimals, averaged=options.averaged)
    except ValueError as error:
        title = "standard input" if options.file == "-" else options.file
        raise ValueError(f"{title}: {error}") from None
    columns = [
        table.Column("row", "name"),
        *([table.Column("columns", "prefix")] if any(result.prefix for result in results) else []),
        table.Column("AUC", "auc"),
        table.Column("at least", "auc_low"),
        table.Column("at most", "auc_high"),
        table.Column("verdict", "verdict"),
    ]
    if options.format in ("markdown", "latex"):
        columns.append(table.Column("reason", "reason"))
    shown = [result.to_dict() for result in results]
    if options.format not in ("csv", "json"):
        # limits as they stand in the reasons, rounded outwards: rounded to the nearest they would claim too much
        for row, result in zip(shown, results, strict=True):
            auc = "-" if result.auc is None else f"{result.auc:.{max(3, result.decimals - 1)}f}"
            row |= {"auc": auc, "auc_low": result.at_least or "-", "auc_high": result.at_most or "-"}
    show(shown, columns, options.format)
    if options.format == "table":
        for result in results:
            if result.verdict != "possible":
                name = f"{result.name}, {result.prefix}" if result.prefix else result.name
                code = f"{IMPOSSIBLE_PAIR} " if result.verdict == "impossible" else ""
                say(f"{code}{name}: {result.reason}")
    return 1 if any(result.verdict == "impossible" for result in results) else 0


def _as_fraction(text: str | None) -> Fraction | str | None:
    """A fraction such as 49/129, exactly; other text is left to the library."""
    if text is None or "/" not in text:
        return text
    over, _, under = (part.strip() for part in text.partition("/"))
    if not (over.isascii() and over.isdigit() and under.isascii() and under.isdigit() and int(under)):
        raise ValueError(f"--positive-fraction: {text!r} is no fraction: write positives/all, as 49/129")
    return Fraction(int(over), int(under))
