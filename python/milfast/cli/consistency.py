"""`milfast consistency`: do classifiers err on the same samples when they are trained again?"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from milfast.cli.arguments import setting, study_arguments, verb
from milfast.cli.studies import require_study, study
from milfast.report import table
from milfast.report.terminal import progress, say, show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from milfast.consistency.jobs import Cell, CellResult

    #: Does jobs; gives what was asked and what came out, of those that went well.
    Perform = Callable[[list[dict[str, Any]]], list[tuple[dict[str, Any], dict[str, Any]]]]


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    from milfast.consistency import learners

    parser = verb(
        verbs,
        "consistency",
        run,
        "cross-validate classifiers many times and compare on which samples they err",
        "Accuracy and average error consistency: the samples on which two runs err, both of them over either of them,\n"
        "averaged over all pairs of runs.\n\n"
        "examples:\n"
        "  milfast consistency pima parkinsons --model lr rf --repeats 100\n"
        "  milfast consistency patients.csv --target ill --groups person --model lr --stop auto\n"
        "  milfast consistency parkinsons spect transfusion pima diabetes130 --model svm rf lr adaboost gbt \\\n"
        "      --as-published --out table1.db     # stop it, run it again: it goes on",
    )
    parser.add_argument("data", nargs="+", metavar="DATA", help="tables from `milfast ls datasets`, or CSV files")
    parser.add_argument("--target", metavar="COLUMN", help="column of the labels of a CSV file")
    parser.add_argument("--groups", metavar="COLUMN", help="column of a CSV file: rows of one group stay in one fold")
    parser.add_argument(
        "--model",
        nargs="+",
        required=True,
        metavar="MODEL",
        help=f"{', '.join(learners.names())}, all, or package.module:Name of a classifier of your own",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="a parameter, such as C=10, which every model must have",
    )
    parser.add_argument("--folds", type=int, default=5, help="folds of a repeat (default: 5)")
    parser.add_argument("--repeats", type=int, default=500, help="how often the samples are dealt anew (default: 500)")
    parser.add_argument("--no-stratify", action="store_true", help="deal the samples without regard to their classes")
    parser.add_argument(
        "--stop", choices=("auto",), help="auto: stop when the error of the runs is below a tenth of that of the samples"
    )
    parser.add_argument(
        "--parameters",
        choices=learners.PARAMETERS,
        help="of a model: scikit-learn's own, or what the authors of the paper stored for the data set, in 2021 or in "
        "2023, or whichever is nearest to what they printed (default: default)",
    )
    parser.add_argument(
        "--standardize",
        choices=learners.STANDARDIZE,
        help="give features mean 0 and variance 1 over the training samples of each fit, or over all samples, which "
        "lets test samples into the training (default: folds)",
    )
    parser.add_argument(
        "--as-published",
        action="store_true",
        help="as table 1 of Levman et al. (2023), and beside it: --parameters published --standardize all, none for "
        "spect",
    )
    study_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    from milfast.consistency import jobs

    require_study(options)
    if options.repeats < 1:
        raise ValueError(f"--repeats must be at least 1; got {options.repeats}")
    cells = _cells(options)
    with redirect_stdout(sys.stderr):
        for cell in cells:
            cell.plan()
    failed = False
    if options.out is None:
        total = sum(len(jobs.specifications(cell, options.repeats)) for cell in cells)
        with progress("cross-validating", total) as advance:
            from milfast.workers import stream

            def perform(specs: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
                done: dict[int, dict[str, Any]] = {}
                with redirect_stdout(sys.stderr):
                    for number, gave in stream(_numbered, enumerate(specs), n_jobs=options.jobs):
                        done[number] = gave
                        advance(f"{specs[number]['model']} on {specs[number]['data']}", total)
                return [(spec, done[number]) for number, spec in enumerate(specs)]

            results = _results(cells, options, perform)
    else:
        with study(options) as through:

            def perform(specs: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
                nonlocal failed
                records = through(jobs.FUNCTION, specs)
                failed = failed or any(record.state == "failed" for record in records)
                return [(record.spec, record.result) for record in records if record.result is not None]

            results = _results(cells, options, perform)
    show_consistency(results, options.format, printed=options.as_published)
    return 2 if failed else 0


def _numbered(item: tuple[int, dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    from milfast.consistency.jobs import run_specification

    return item[0], run_specification(item[1])


def _cells(options: argparse.Namespace) -> list[Cell]:
    """One for each model on each data set, data set by data set."""
    from milfast.consistency import jobs, learners

    if options.as_published:
        for name in ("parameters", "standardize"):
            if getattr(options, name) is not None:
                raise ValueError(f"--as-published says what --{name} is: leave one of them out")
    models = [name for given in options.model for name in (learners.names() if given == "all" else [given])]
    cells = []
    for data in dict.fromkeys(options.data):
        standardize = options.standardize or "folds"
        if options.as_published:
            standardize = "none" if data in learners.NOT_STANDARDIZED else "all"
        own = data.endswith((".csv", ".csv.gz"))
        cells += [
            jobs.Cell(
                model=model,
                data=data,
                target=options.target if own else None,
                groups=options.groups if own else None,
                parameters="published" if options.as_published else options.parameters or "default",
                settings=dict(options.set),
                standardize=standardize,
                folds=options.folds,
                stratify=not options.no_stratify,
                seed=options.seed,
            )
            for model in dict.fromkeys(models)
        ]
    return cells


def _results(cells: Sequence[Cell], options: argparse.Namespace, perform: Perform) -> list[CellResult]:
    """All repeats at once; with --stop as many as it takes, 25 of each cell that has not got enough at a time."""
    from milfast.consistency import jobs

    if options.stop is None:
        return jobs.combine(perform([spec for cell in cells for spec in jobs.specifications(cell, options.repeats)]))
    pairs: list[list[tuple[dict[str, Any], dict[str, Any]]]] = [[] for _ in cells]
    going = list(range(len(cells)))
    reached = 0
    while going and reached < options.repeats:
        last = min(reached + jobs.LOOK, options.repeats)
        specs = {number: jobs.specifications(cells[number], last, start=reached) for number in going}
        done = perform([spec for number in going for spec in specs[number]])
        for number in list(going):
            wanted = [{key: spec[key] for key in spec} for spec in specs[number]]
            new = [pair for pair in done if any(all(pair[0].get(k) == v for k, v in s.items()) for s in wanted)]
            pairs[number] += new
            if len(new) < len(wanted):  # a job failed, and the same would go on
                going.remove(number)
            elif jobs.enough(jobs.combine(pairs[number])[0].result):
                going.remove(number)
        reached = last
    return [result for some in pairs if some for result in jobs.combine(some, asked=options.repeats)]


def show_consistency(results: Sequence[CellResult], form: table.Format, *, printed: bool) -> None:
    """Print results, beside the paper's figures where that is asked for and there are some."""
    rows = [row for result in results if (row := result.beside() if printed else result.to_dict()) is not None]
    if printed and len(rows) < len(results):
        print(f"milfast: left out, as the paper printed no figures: {len(results) - len(rows)} results", file=sys.stderr)
    show(rows, table.PRINTED_CONSISTENCY_COLUMNS if printed else table.CONSISTENCY_COLUMNS, form)
    for text in dict.fromkeys(f"{r.model} on {r.data}: {text}" for r in results for text in r.warnings):
        print(f"milfast: warning: {text}", file=sys.stderr)
    if form == "table" and rows:
        say("SD: of accuracies over pairs of runs, and of the error consistencies of pairs")
        if any(result.result.constant for result in results):
            say("constant: all predictions are one class. Its errors are the same each time, which says nothing")
