"""`milfast consistency`: do classifiers err on the same samples when they are trained again?"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, TypeAlias

from milfast.cli.arguments import setting, study_arguments, verb
from milfast.cli.studies import require_study, study
from milfast.prediction_files import USUAL
from milfast.report import table
from milfast.report.terminal import progress, say, show
from milfast.workers import stream

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from milfast.consistency.jobs import Cell, CellResult

    Specification: TypeAlias = dict[str, Any]
    #: A job and what came out of it; None when it failed.
    Pair: TypeAlias = tuple[Specification, dict[str, Any] | None]
    Perform: TypeAlias = Callable[[list[Specification]], list[Pair]]


#: A column with more different texts than this is warned of,
MANY_TEXTS = 20
#: and one of these names.
IDENTIFYING = {name for what in ("id", "clusters") for name in USUAL[what]}


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
        "Of a CSV file every column but --target and --groups is a feature; a column of text is one for each text in\n"
        "it, so leave out names, numbers of patients and dates. Which samples are always wrong, the level of chance\n"
        "and pictures are to be had in Python (docs/consistency.md, docs/consistency-studies.md).\n\n"
        "examples:\n"
        "  milfast consistency pima parkinsons --model lr rf --repeats 100\n"
        "  milfast consistency patients.csv --target ill --groups person --model lr --stop auto\n"
        "  milfast consistency parkinsons spect transfusion pima diabetes130 --model svm rf lr adaboost gbt \\\n"
        "      --as-published --repeats-of diabetes130=20 --out table1.db     # stop it, run it again: it goes on",
    )
    parser.add_argument("data", nargs="+", metavar="DATA", help="tables from `milfast ls datasets`, or CSV files")
    parser.add_argument("--target", metavar="COLUMN", help="column of the labels of a CSV file")
    parser.add_argument(
        "--groups",
        metavar="COLUMN",
        help="column of a CSV file: rows of one group, such as a patient, stay in one fold; intervals take rows as "
        "independent all the same",
    )
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
    parser.add_argument(
        "--repeats-of",
        action="append",
        default=[],
        metavar="DATA=N",
        help="another number of repeats for one data set, as diabetes130=20",
    )
    parser.add_argument("--no-stratify", action="store_true", help="deal the samples without regard to their classes")
    parser.add_argument(
        "--stop",
        choices=("auto",),
        help="auto: stop when the error of the runs is below a tenth of that of the samples",
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
    if not 0 < options.level < 1:
        raise ValueError(f"--level must lie strictly between 0 and 1; got {options.level}")
    cells = _cells(options)
    repeats = _repeats(cells, options)
    with redirect_stdout(sys.stderr):
        for cell in cells:
            cell.plan()
    for text in dict.fromkeys(text for cell in cells for text in _doubtful(cell)):
        print(f"milfast: warning: {text}", file=sys.stderr)
    failed = False
    if options.out is None:
        total = sum(len(jobs.specifications(cell, most)) for cell, most in zip(cells, repeats, strict=True))
        with progress("cross-validating", total) as advance:

            def perform(specs: list[Specification]) -> list[Pair]:
                done: dict[int, dict[str, Any]] = {}
                with redirect_stdout(sys.stderr):
                    for number, gave in stream(_numbered, enumerate(specs), n_jobs=options.jobs):
                        done[number] = gave
                        advance(f"{specs[number]['model']} on {specs[number]['data']}")
                return [(spec, done[number]) for number, spec in enumerate(specs)]

            results = _results(cells, repeats, options.stop, perform)
    else:
        with study(options) as through:

            def perform(specs: list[Specification]) -> list[Pair]:
                nonlocal failed
                records = through(jobs.FUNCTION, specs)
                failed = failed or any(record.state == "failed" for record in records)
                return [(record.spec, record.result) for record in records]

            results = _results(cells, repeats, options.stop, perform)
    show_consistency(results, options.level, options.format, printed=options.as_published)
    return 2 if failed else 0


def _doubtful(cell: Cell) -> list[str]:
    """Warnings of columns that hardly are features."""
    from milfast.consistency import jobs

    levels = Counter(name.partition("=")[0] for name in jobs.read(cell.data, cell.target, cell.groups).names)
    said = []
    for column, number in levels.items():
        if number > MANY_TEXTS:
            said.append(f"{cell.data}: the column {column!r} is {number} features, one for each text in it")
        elif column in IDENTIFYING:
            said.append(f"{cell.data}: the column {column!r} is a feature")
    return [f"{text}: leave it out, or say with --groups that its rows belong together" for text in said]


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
    if "random_state" in dict(options.set):
        raise ValueError("--set random_state: every fit has a seed of its own, from --seed")
    tables = [data for data in options.data if data.endswith((".csv", ".csv.gz"))]
    for name in ("target", "groups"):
        if getattr(options, name) is not None and not tables:
            raise ValueError(f"--{name} is a column of a CSV file, and there is none among the data")
    models = [name for given in options.model for name in (learners.names() if given == "all" else [given])]
    cells = []
    for data in dict.fromkeys(options.data):
        standardize: learners.Standardize = options.standardize or "folds"
        if options.as_published:
            standardize = "none" if data in learners.NOT_STANDARDIZED else "all"
        own = data in tables
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


def _repeats(cells: Sequence[Cell], options: argparse.Namespace) -> list[int]:
    """Repeats of each cell."""
    own: dict[str, int] = {}
    for text in options.repeats_of:
        data, equals, number = text.rpartition("=")
        if not (equals and number.isdigit()):
            raise ValueError(f"--repeats-of {text!r} must be DATA=N, as diabetes130=20")
        if data not in options.data:
            raise ValueError(f"--repeats-of {text!r}: {data!r} is none of the data sets, {', '.join(options.data)}")
        own[data] = int(number)
    repeats = [own.get(cell.data, options.repeats) for cell in cells]
    if min(repeats) < 1:
        raise ValueError(f"--repeats must be at least 1; got {min(repeats)}")
    return repeats


def _results(cells: Sequence[Cell], repeats: Sequence[int], stop: str | None, perform: Perform) -> list[CellResult]:
    """All repeats at once; with --stop as many as it takes, 25 of each cell that has not got enough at a time."""
    from milfast.consistency import jobs
    from milfast.consistency.cross_validation import LOOK

    done: list[list[tuple[Specification, dict[str, Any]]]] = [[] for _ in cells]
    settled: set[int] = set()
    going = list(range(len(cells)))
    reached = 0
    while going:
        reached = min(reached + LOOK, max(repeats)) if stop else max(repeats)
        specs = {number: jobs.specifications(cells[number], min(reached, repeats[number])) for number in going}
        new = {number: specs[number][len(done[number]) :] for number in going}
        gave = iter(perform([spec for number in going for spec in new[number]]))
        for number in list(going):
            pairs = itertools.islice(gave, len(new[number]))
            done[number] += [(given, result) for given, result in pairs if result is not None]
            complete = len(done[number]) == len(specs[number])
            if complete and reached < repeats[number] and jobs.enough(jobs.combine(done[number])[0].result):
                settled.add(number)
            # where a job failed, so would the next
            if not complete or reached >= repeats[number] or number in settled:
                going.remove(number)
    return [result for number, pairs in enumerate(done) for result in jobs.combine(pairs, auto=number in settled)]


def show_consistency(results: Sequence[CellResult], level: float, form: table.Format, *, printed: bool) -> None:
    """Print results, beside the paper's figures where that is asked for and there are some."""
    found = [result.beside(level=level) if printed else result.to_dict(level=level) for result in results]
    rows = [row for row in found if row is not None]
    if printed and len(rows) < len(results):
        print(
            f"milfast: left out, as the paper printed no figures: {len(results) - len(rows)} results", file=sys.stderr
        )
    show(rows, table.PRINTED_CONSISTENCY_COLUMNS if printed else table.CONSISTENCY_COLUMNS, form)
    for text in dict.fromkeys(f"{r.model} on {r.data}: {text}" for r in results for text in r.warnings):
        print(f"milfast: warning: {text}", file=sys.stderr)
    if form == "table" and rows:
        say("SD: of the mean accuracy of two runs, and of their error consistency, over all pairs of runs")
        if not printed:
            say(f"micro: intersections of all pairs over unions of all pairs, {100 * level:g} % interval over samples")
        if any(result.result.constant for result in results):
            say("constant: all predictions are one class. Its errors are the same each time, which says nothing")
