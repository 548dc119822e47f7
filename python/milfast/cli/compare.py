"""`milfast compare`: models by their predictions."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from milfast.cli.arguments import format_argument, verb
from milfast.prediction_files import read_predictions
from milfast.report import table
from milfast.report.terminal import show

if TYPE_CHECKING:
    import argparse

    from milfast.uncertainty import ComparedModels


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verb(
        verbs,
        "compare",
        run,
        "compare models by their predictions for the same items",
        "Each file has the predictions of one model, with the columns label and score or prediction; one file may\n"
        "have the columns of several models instead. Rows are joined by the column id, where there is one. Columns\n"
        "fold, seed and cluster say how the predictions came about, and the tests follow from that: DeLong, McNemar\n"
        "and Cochran for one run a model, the corrected resampled t for folds, items and seeds for several seeds, and\n"
        "the variance between clusters for clusters. What the design does not support is said on standard error.\n"
        "Several rows of one patient are independent items unless a column says which belong together: give its name\n"
        "with --clusters when it is another than cluster, patient or group. Scores are compared by the AUC, labels by\n"
        "the accuracy; other metrics, and figures without predictions, are compared in Python (docs/uncertainty.md).\n"
        "Exit status: 0 when all is defined, 1 when a test is not, 2 for wrong use.\n\n"
        "examples:\n"
        "  milfast compare ours.csv theirs.csv\n"
        "  milfast compare all.csv --scores ours theirs baseline --card latex     # \\usepackage{booktabs}\n"
        "  milfast compare a.csv b.csv --id image --clusters person --labels diagnosis --pos-label ill --scores p_ill\n"
        "  milfast compare runs_a.csv runs_b.csv --clusters patient --margin 0.02 --plot difference.svg",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="CSV files; `-` reads standard input")
    parser.add_argument(
        "--scores",
        nargs="+",
        metavar="COLUMN",
        help="columns of predictions (default: score or prediction, or, in one file without these, every column that "
        "has no other meaning)",
    )
    parser.add_argument("--labels", metavar="COLUMN", help="column of labels (default: label, labels, target or y)")
    parser.add_argument("--id", metavar="COLUMN", help="column of item names (default: id, item, bag_id or filename)")
    parser.add_argument("--folds", metavar="COLUMN", help="column of folds (default: fold)")
    parser.add_argument("--seeds", metavar="COLUMN", help="column of training runs (default: seed or run)")
    parser.add_argument(
        "--clusters", metavar="COLUMN", help="column of what items belong to (default: cluster, patient or group)"
    )
    parser.add_argument(
        "--kind", choices=("scores", "labels"), help="what predictions are (default: labels, when they all are labels)"
    )
    parser.add_argument(
        "--pos-label", metavar="LABEL", help="label of the positive class, for scores, unless labels are 0/1 or -1/1"
    )
    parser.add_argument("--margin", type=float, metavar="D", help="also test whether models are equal up to D")
    parser.add_argument(
        "--selected-on-test", action="store_true", help="checkpoints were chosen on these items: adds the warning due"
    )
    parser.add_argument("--level", type=float, default=0.95, help="level of the intervals (default: 0.95)")
    parser.add_argument(
        "--resamples", type=int, default=2000, metavar="N", help="of a cluster bootstrap (default: 2000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random state of a cluster bootstrap (default: 0)")
    parser.add_argument(
        "--card", choices=("text", "markdown", "latex", "json"), help="print a reporting card instead of the table"
    )
    parser.add_argument("--plot", metavar="FILE", help="also draw intervals and paired differences into this file")
    format_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    from milfast.uncertainty import compare

    named = {what: getattr(options, what) for what in ("labels", "id", "folds", "seeds", "clusters")}
    read = read_predictions(
        options.files,
        scores=options.scores,
        columns=named,
        text_labels=options.pos_label is not None and options.kind != "labels",
    )
    result = compare(
        read.predictions,
        read.labels,
        kind=options.kind or ("scores" if options.pos_label is not None else None),
        folds=read.folds,
        seeds=read.seeds,
        clusters=read.clusters,
        level=options.level,
        margin=options.margin,
        selected_on_test=options.selected_on_test,
        pos_label=options.pos_label,
        n_boot=options.resamples,
        random_state=options.seed,
    )
    if options.plot is not None:
        from milfast.report.uncertainty_plots import comparison_picture

        comparison_picture(result).savefig(options.plot)
    if options.card is not None:
        print(result.card(options.card))
    else:
        _show(result, options.format)
        for doubt in result.warnings:
            print(f"milfast: warning: {doubt.text}", file=sys.stderr)
    tests = [*result.pairs, *result.equivalences, *([] if result.joint is None else [result.joint])]
    return 1 if any(math.isnan(test.log_p) for test in tests) else 0


def _show(result: ComparedModels, form: table.Format) -> None:
    from milfast.uncertainty.cards import shown_rows

    if form in ("csv", "json"):
        show(result.table(), [], form)
        return
    titles, rows = shown_rows(result)
    columns = [table.Column(title, str(i)) for i, title in enumerate(titles)]
    show([{str(i): cell for i, cell in enumerate(row)} for row in rows], columns, form)
