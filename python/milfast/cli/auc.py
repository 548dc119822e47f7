"""`milfast auc`: the scores in a file."""

from __future__ import annotations

import math
import sys
import warnings
from typing import TYPE_CHECKING, Any

import milfast
from milfast import csv_files
from milfast.cli.arguments import format_argument, verb
from milfast.report import table
from milfast.report.terminal import show

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verb(
        verbs,
        "auc",
        run,
        "AUC of the scores in a CSV file, with its interval",
        "The file has a header; `-` reads standard input, and a name ending in .gz is decompressed. Each row counts\n"
        "as an item of its own: for several rows of one patient, and for F1, balanced accuracy and other figures,\n"
        "there are auc_interval(clusters=...), f1_interval and others in Python (docs/uncertainty.md).\n\n"
        "examples:\n"
        "  milfast auc predictions.csv\n"
        "  milfast auc predictions.csv --scores p_ill --labels diagnosis --pos-label ill",
    )
    parser.add_argument("file", metavar="FILE", help="CSV file")
    parser.add_argument("--scores", metavar="COLUMN", help="column of scores (default: score, scores or prediction)")
    parser.add_argument("--labels", metavar="COLUMN", help="column of labels (default: label, labels, target or y)")
    parser.add_argument(
        "--pos-label", metavar="LABEL", help="label of the positive class, unless labels are 0/1 or -1/1"
    )
    parser.add_argument(
        "--max-fpr", type=float, metavar="FPR", help="also the partial AUC up to this false positive rate"
    )
    parser.add_argument("--level", type=float, default=0.95, help="level of the interval (default: 0.95)")
    format_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    from milfast.uncertainty import auc_interval

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores, labels = csv_files.read_scores(options.file, options.scores, options.labels, options.pos_label)
        interval = auc_interval(scores, labels, level=options.level, pos_label=options.pos_label)
        partial_auc = None
        if options.max_fpr is not None:
            area = milfast.auc(scores, labels, max_fpr=options.max_fpr, pos_label=options.pos_label)
            partial_auc = None if math.isnan(area) else area
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"milfast: warning: {message}", file=sys.stderr)
    bounds = interval.to_dict()
    row = {
        "auc": bounds["estimate"],
        "auc_low": bounds["low"],
        "auc_high": bounds["high"],
        "level": interval.level,
        "method": interval.method,
        "n_pos": interval.n_pos,
        "n_neg": interval.n_neg,
    }
    columns = [table.Column("AUC", "auc", bounds=True), table.Column("method", "method")]
    if options.max_fpr is not None:
        row["partial_auc"] = partial_auc
        columns.append(table.Column(f"up to FPR {options.max_fpr:g} (McClish)", "partial_auc"))
    columns += [table.Column("positives", "n_pos"), table.Column("negatives", "n_neg")]
    show([row], columns, options.format)
    return 0 if bounds["estimate"] is not None else 1
