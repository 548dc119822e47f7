"""The command line: check models, evaluate them on data, score a file, list what there is."""

from __future__ import annotations

import argparse
import ast
import itertools
import math
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from contextlib import contextmanager, redirect_stdout
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import milfast
from milfast import csv_files, models
from milfast.checks import SPELLINGS, catalogue
from milfast.checks.adapters import STYLES
from milfast.checks.codes import IMPOSSIBLE_PAIR, VERDICTS
from milfast.report import table
from milfast.report.terminal import progress, say, show
from milfast.report.verdicts import show_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from milfast.checks import CheckResult
    from milfast.study import Record

#: Runs of each check, unless the command says otherwise.
RUNS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        Exit status: 0 for success, 1 when a check did not pass, 2 for wrong use, 130 after Ctrl-C.
    """
    parser = _parser()
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given:
        parser.print_help()
        return 2
    options = parser.parse_args(given)
    # joblib replaces workers whose memory has grown, and says so; nobody has to do anything about it
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given", category=UserWarning)
    try:
        with _ending_on_sigterm():
            status: int = options.run(options)
            sys.stdout.flush()
    except KeyboardInterrupt:
        file = getattr(options, "out", None) if options.run in (_check, _evaluate) else None
        kept = "" if file is None else f"; what was done is kept in {file}: the same command goes on"
        print(f"milfast: interrupted{kept}", file=sys.stderr)
        return 130
    except _Terminated as end:
        return 128 + int(end.args[0])
    except BrokenPipeError:
        # whoever read the output has gone; without this the interpreter would complain about it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # rich's way to end, with standard output shut already
            return 1
        # a model's file that ends the program when it is imported must not look like a check that went well
        if options.traceback:
            traceback.print_exc()
        print(f"milfast: error: the model ended the program: sys.exit({stop.code!r})", file=sys.stderr)
        return 2
    except Exception as error:  # a model may raise anything
        if options.traceback:
            raise
        print(f"milfast: error: {_in_one_line(error)}", file=sys.stderr)
        return 2
    return status


def _in_one_line(error: Exception) -> str:
    ours = isinstance(error, (ValueError, TypeError, OSError, ImportError))
    text = str(error) if ours and str(error) else f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return f"{text}{notes}" + ("" if ours else "; --traceback shows where")


class _Terminated(BaseException):
    """SIGTERM has come; no `SystemExit`, which would look as if a model had ended the program."""


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM unwind the stack, so that worker processes end with this one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: object) -> None:
        raise _Terminated(number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="milfast",
        description="Tells whether a multiple-instance-learning model, a metric or a claim can be trusted.",
        epilog="`milfast VERB --help` says more, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"milfast {milfast.__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _check_parser(verbs)
    _evaluate_parser(verbs)
    _auc_parser(verbs)
    _audit_parser(verbs)
    _show_parser(verbs)
    _merge_parser(verbs)
    _ls_parser(verbs)
    return parser


def _verb(
    verbs: Any, name: str, run: Callable[[argparse.Namespace], int], summary: str, text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n\n{text}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    return parser


def _model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="a name from `milfast ls models`, a group (all, svm, deep) or package.module:Name of a model of your own: "
        "an estimator, a torch module's class, or a function that makes one",
    )
    parser.add_argument(
        "--style",
        choices=STYLES,
        help="how models of your own take bags, where that is not found out: estimators as milfast's bags or as lists "
        "of arrays, torch modules as (instances, offsets), (x_padded, mask), or a single bag at a time",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="a parameter, such as epochs=5 or device=cuda, which every model must have; several values are joined by "
        "commas, as in faults=biased-split,sorted-batches",
    )
    parser.add_argument("--seed", type=int, default=0, help="random state; the same seed, the same table (default: 0)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes that share the work (default: one a processor)")
    parser.add_argument("--level", type=float, default=0.95, help="level of the intervals (default: 0.95)")
    parser.add_argument("--out", metavar="FILE", help="keep results in this study file; the same command resumes it")
    parser.add_argument(
        "--backend",
        choices=("processes", "dask"),
        default="processes",
        help="where jobs run, with --out: on this machine, or on a Dask cluster (default: processes)",
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="address of the Dask scheduler, tcp://...")
    _format_argument(parser)


def _format_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=table.FORMATS, default="table", help="form of the output (default: table)")


def _check_parser(verbs: Any) -> None:
    parser = _verb(
        verbs,
        "check",
        _check,
        "run models through the MIL unit tests",
        "Exit status: 0 when every check passed, 1 when one did not, 2 for wrong use. A check of an assumption that\n"
        "the model does not claim does not count.\n\n"
        "examples:\n"
        "  milfast check mi-Net MI-Net NSK --checks paper\n"
        "  milfast check mypackage.models:MyModel --checks presence --recipe all --runs 5\n"
        "  milfast check torchmil.models:ABMIL mypackage.nets:Net --style padded\n"
        "  milfast check mi-Net --checks false-frequency --until-decided\n"
        "  milfast check all --scale paper --out tables.db     # stop it, run it again: it goes on",
    )
    _model_arguments(parser)
    parser.add_argument(
        "--checks",
        nargs="+",
        default=["all"],
        metavar="CHECK",
        help="names from `milfast ls checks`, or a group: paper, laws, all (default: all)",
    )
    parser.add_argument(
        "--recipe",
        nargs="+",
        choices=(*SPELLINGS, "all"),
        default=["paper"],
        help="spelling of the checks: the paper's text, what its authors ran, or without side doors (default: paper)",
    )
    parser.add_argument(
        "--scale",
        choices=("fast", "paper"),
        default="fast",
        help="number of training bags for SVMs, deep and other models: fast is 200, 2,000 and 1,000, paper is 1,000, "
        "100,000 and 10,000 (default: fast)",
    )
    parser.add_argument("--train", type=int, metavar="N", help="number of training bags, whatever the scale")
    parser.add_argument("--test", type=int, default=10_000, metavar="N", help="fresh and shifted bags (default: 10000)")
    parser.add_argument("--runs", type=int, help=f"independent runs of each check (default: {RUNS})")
    parser.add_argument(
        "--until-decided",
        action="store_true",
        help="add runs until the verdicts are settled; looking several times is paid for, so --level still holds",
    )
    parser.add_argument("--max-runs", type=int, default=40, metavar="N", help="where to stop adding runs (default: 40)")
    parser.add_argument("--features", type=int, default=16, metavar="D", help="number of features (default: 16)")
    parser.add_argument("--pad-to", type=int, metavar="N", help="fill every bag with background up to N instances")
    parser.add_argument("--direction", type=int, metavar="SEED", help="lay the concepts along a random direction")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever the verdicts")


def _evaluate_parser(verbs: Any) -> None:
    parser = _verb(
        verbs,
        "evaluate",
        _evaluate,
        "cross-validate models on real bags",
        "Mean AUC over repeated stratified folds, with an interval that respects that folds share training bags.\n"
        "Features are standardised on the training instances of each fold.\n\n"
        "examples:\n"
        "  milfast evaluate NSK mi-SVM --data musk1\n"
        "  milfast evaluate svm --data bags.csv --folds 10   # CSV with the header bag_id,label,f1,...,fd",
    )
    _model_arguments(parser)
    parser.add_argument(
        "--data", nargs="+", required=True, metavar="DATA", help="names from `milfast ls datasets`, or CSV files"
    )
    parser.add_argument("--folds", type=int, default=5, help="folds of a repeat (default: 5)")
    parser.add_argument("--repeats", type=int, default=3, help="repeats with other folds and seeds (default: 3)")


def _auc_parser(verbs: Any) -> None:
    parser = _verb(
        verbs,
        "auc",
        _auc,
        "AUC of the scores in a CSV file, with its interval",
        "The file has a header; `-` reads standard input, and a name ending in .gz is decompressed.\n\n"
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
    _format_argument(parser)


def _audit_parser(verbs: Any) -> None:
    parser = _verb(
        verbs,
        "audit",
        _audit,
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
    _format_argument(parser)


def _show_parser(verbs: Any) -> None:
    parser = _verb(
        verbs,
        "show",
        _show_study,
        "show what a study found so far",
        "examples:\n  milfast show tables.db --format markdown\n"
        "  milfast show tables.db --model mi-Net --verdict fail\n"
        "  milfast show tables.db --printed",
    )
    parser.add_argument("file", metavar="STUDY", help="file made with --out")
    parser.add_argument("--model", nargs="+", metavar="NAME", help="only rows of these models")
    parser.add_argument("--check", nargs="+", metavar="CHECK", help="only rows of these checks; names or codes")
    parser.add_argument("--verdict", nargs="+", choices=tuple(VERDICTS), help="only rows with these verdicts")
    parser.add_argument("--level", type=float, default=0.95, help="level of the intervals of checks (default: 0.95)")
    parser.add_argument(
        "--printed", action="store_true", help="beside the figures of tables 2 to 4 of Raff & Holt (2023)"
    )
    _format_argument(parser)


def _merge_parser(verbs: Any) -> None:
    parser = _verb(
        verbs,
        "merge",
        _merge,
        "put studies together",
        "Jobs that are in several files are counted once.\n\nexample:\n  milfast merge node1.db node2.db --out all.db",
    )
    parser.add_argument("files", nargs="+", metavar="STUDY", help="files made with --out")
    parser.add_argument("--out", required=True, metavar="FILE", help="file to put them into; may be there already")


def _ls_parser(verbs: Any) -> None:
    parser = _verb(verbs, "ls", _ls, "list models, checks or data sets", "example:\n  milfast ls models")
    parser.add_argument("what", choices=("models", "checks", "datasets"))
    _format_argument(parser)


# ---------------------------------------------------------------- verbs


def _check(options: argparse.Namespace) -> int:
    from milfast.checks import jobs as check_jobs
    from milfast.checks import runner, sequential

    _require_study(options)
    if options.until_decided and options.runs is not None:
        raise ValueError(
            "--runs says how many runs there are, --until-decided adds as many as it takes: leave one of them out, or "
            "say with --max-runs where to stop"
        )
    # what a model prints, from when it is first tried, must not get into the output
    with redirect_stdout(sys.stderr):
        jobs = runner.plan(
            _models(options.models),
            checks=options.checks,
            recipe="all" if "all" in options.recipe else options.recipe,
            scale=options.scale,
            n_train=options.train,
            n_test=options.test,
            n_runs=RUNS if options.runs is None else options.runs,
            level=options.level,
            n_features=options.features,
            pad_to=options.pad_to,
            direction=options.direction,
            style=options.style,
            settings=dict(options.set),
            random_state=options.seed,
            max_runs=options.max_runs if options.until_decided else None,
        )
    failed = False
    if options.out is None:
        with progress("checking", len(jobs)) as advance, redirect_stdout(sys.stderr):
            results = runner.results(
                jobs,
                level=options.level,
                n_jobs=options.jobs,
                callback=lambda _done, total, run: advance(f"{run.model} on {run.check}", total),
            )
    else:
        with _study(options) as through:

            def perform(batch: Sequence[runner.Job]) -> list[Record]:
                nonlocal failed
                records = through(check_jobs.FUNCTION, [check_jobs.describe(job) for job in batch])
                failed = failed or any(record.state == "failed" for record in records)
                return records

            def combined(done: Sequence[tuple[runner.Job, Record]]) -> list[CheckResult]:
                pairs = [(record.spec, record.result) for _, record in done if record.result is not None]
                return check_jobs.combine(pairs, level=options.level)

            results = sequential.until_decided(jobs, perform, combined)
    show_checks(results, options.level, options.format)
    if failed:
        return 2
    passed = all(result.verdict == "pass" or result.outside_claim for result in results)
    return 0 if passed or options.exit_zero else 1


def _evaluate(options: argparse.Namespace) -> int:
    from milfast import evaluation

    _require_study(options)
    chosen = _models(options.models)
    settings: dict[str, Any] = {
        "folds": options.folds,
        "repeats": options.repeats,
        "standardize": True,
        "level": options.level,
        "style": options.style,
        "settings": dict(options.set),
        "random_state": options.seed,
    }
    failed = False
    if options.out is None:
        results = []
        with progress("evaluating", len(chosen) * len(options.data) * options.folds * options.repeats) as advance:
            for data in options.data:
                with redirect_stdout(sys.stderr):
                    results += evaluation.evaluate_all(
                        chosen, data, n_jobs=options.jobs, callback=partial(_advance_data, advance, data), **settings
                    )
    else:
        jobs = []
        for data in options.data:
            digest = evaluation.file_digest(data)
            with redirect_stdout(sys.stderr):
                jobs += evaluation.plan(chosen, evaluation.load(data), title=data, digest=digest, **settings)
        with _study(options) as through:
            records = through(evaluation.FUNCTION, [evaluation.describe(job) for job in jobs])
        failed = any(record.state == "failed" for record in records)
        results = evaluation.combine((r.spec, r.result) for r in records if r.result is not None)
    show([result.to_dict() for result in results], table.EVALUATION_COLUMNS, options.format)
    if options.format == "table":
        say(f"brackets: {100 * options.level:g} % corrected resampled t interval (Nadeau & Bengio 2003)")
    return 2 if failed else 0


def _require_study(options: argparse.Namespace) -> None:
    """Refuse options that would do nothing because of one that is missing."""
    if options.scheduler is not None and options.backend != "dask":
        raise ValueError("--scheduler is the address of a Dask cluster: add --backend dask")
    if options.backend == "dask" and options.out is None:
        raise ValueError("--backend dask runs the jobs of a study: say with --out in which file it keeps them")


@contextmanager
def _study(options: argparse.Namespace) -> Iterator[Callable[[str, list[dict[str, Any]]], list[Record]]]:
    """Open the study of ``--out``; gives a function that does the jobs that are not done and returns all records."""
    from milfast.study import Study

    seen: dict[str, Record] = {}
    with Study(options.out) as study:

        def through(function: str, specifications: list[dict[str, Any]]) -> list[Record]:
            ids = study.add(function, specifications)
            missing = sum(record.state != "done" for record in study.records(ids))
            if missing < len(ids):
                print(f"milfast: {len(ids) - missing} of {len(ids)} jobs are done already", file=sys.stderr)
            with progress("running", missing) as advance, redirect_stdout(sys.stderr):
                study.run(
                    ids,
                    n_jobs=options.jobs,
                    backend=options.backend,
                    scheduler=options.scheduler,
                    callback=lambda _done, _total, record: advance(_job_title(record.spec)),
                )
            found = {record.id: record for record in study.records(ids)}
            seen.update(found)
            # in the order of the jobs: the file has that in which they were added, perhaps by other commands
            return [found[i] for i in ids]

        yield through
    _report_unfinished(seen.values())


def _job_title(specification: dict[str, Any]) -> str:
    return f"{specification['model']} on {specification.get('check', specification.get('data'))}"


def _report_unfinished(records: Collection[Record]) -> None:
    """Say which jobs failed and why, those that failed alike in one line, and how many are left."""
    alike: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if record.state == "failed":
            lines = (record.error or "").strip().splitlines()
            # what stands below the last frame: the exception and its notes
            below = list(itertools.takewhile(lambda line: not line.startswith(" "), reversed(lines)))
            message = "; ".join(reversed(below))
            key = _job_title(record.spec), re.sub(r"\brun \d+", "", message)
            alike.setdefault(key, []).append(message)
    for (title, _), messages in alike.items():
        more = f" (and {len(messages) - 1} more like this)" if len(messages) > 1 else ""
        print(f"milfast: failed: {title}: {messages[0]}{more}", file=sys.stderr)
    left = sum(record.state in ("todo", "running") for record in records)
    if left:
        print(f"milfast: {left} of {len(records)} jobs are still to be done", file=sys.stderr)


def _show_study(options: argparse.Namespace) -> int:
    from milfast import evaluation
    from milfast.checks import CheckResult, printed
    from milfast.checks import jobs as check_jobs
    from milfast.study import Store

    with Store(options.file, write=False) as store:
        records = list(store.records())
    checks, evaluations = (
        [(r.spec, r.result) for r in records if r.spec["function"] == function and r.result is not None]
        for function in (check_jobs.FUNCTION, evaluation.FUNCTION)
    )
    found: list[Any] = [*check_jobs.combine(checks, level=options.level), *evaluation.combine(evaluations)]
    try:
        kept = _wanted(found, options)
    finally:
        _report_unfinished(records)
    results = [result for result in kept if isinstance(result, CheckResult)]
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
    rows = [result.to_dict() for result in kept if not isinstance(result, CheckResult)]
    if rows:
        show(rows, table.EVALUATION_COLUMNS, options.format)
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
        there = dict.fromkeys(getattr(result, what) for result in results if hasattr(result, what))
        for name in asked:
            # a verdict that nobody got is an answer; a name that is nowhere is a slip of the pen
            if what != "verdict" and name not in there:
                known = f"there are {', '.join(there)}" if there else "there is none"
                raise ValueError(f"no result of {what} {name!r}; {known}")
        kept = [result for result in kept if getattr(result, what, None) in asked]
    return kept


def _merge(options: argparse.Namespace) -> int:
    from milfast.study import Store

    with Store(options.out) as target:
        for file in options.files:
            with Store(file, write=False) as source:
                taken = target.absorb(source)
            print(f"{file}: {taken} results taken", file=sys.stderr)
        counts = target.counts()
    print(f"{options.out}: {counts['done']} done, {counts['failed']} failed, {counts['todo']} to do")
    return 0


def _auc(options: argparse.Namespace) -> int:
    from milfast.uncertainty import auc_interval

    scores, labels = csv_files.read_scores(options.file, options.scores, options.labels, options.pos_label)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
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


def _audit(options: argparse.Namespace) -> int:
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


def _ls(options: argparse.Namespace) -> int:
    if options.what == "datasets":
        from milfast import datasets

        known = [datasets.describe(name) for name in datasets.names()]
        rows: list[dict[str, Any]] = [
            {
                "name": d.name,
                "bags": d.n_bags,
                "positive": d.n_positive,
                "instances": d.n_instances,
                "features": d.n_features,
                "licence": d.licence,
            }
            for d in known
        ]
    elif options.what == "checks":
        rows = [{"code": e.code, "name": e.name, "summary": e.summary} for e in catalogue.registry.entries.values()]
    else:
        rows = [
            {
                "name": e.name,
                "group": e.group,
                "claims": e.claims or "-",
                "needs": ", ".join(e.requires) or "-",
                "summary": e.summary.removeprefix(f"{e.name}: "),
            }
            for e in models.registry.entries.values()
        ]
    show(rows, [table.Column(key, key) for key in rows[0]], options.format)
    return 0


def _advance_data(advance: Callable[[str], None], data: str, _done: int, _total: int, model: str) -> None:
    advance(f"{model} on {data}")


# ---------------------------------------------------------------- input


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=VALUE")
    values = [_plain(part) for part in value.split(",")]
    return name, values if len(values) > 1 else values[0]


def _plain(text: str) -> Any:
    """A number, True, False or None where the text is one."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _models(given: Sequence[str]) -> list[Any]:
    chosen: list[Any] = []
    for name in given:
        if name in ("all", "svm", "deep"):
            for member in models.names(None if name == "all" else name):
                try:
                    models.get(member)
                except ImportError as error:
                    print(f"milfast: left out: {error}", file=sys.stderr)
                else:
                    chosen.append(member)
        else:
            chosen.append(name)
    if not chosen:
        raise ValueError("none of the models can run here")
    return list(dict.fromkeys(chosen))
