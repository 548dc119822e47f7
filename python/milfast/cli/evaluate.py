"""`milfast evaluate`: models on real bags."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

from milfast.cli.arguments import model_arguments, named_models, verb
from milfast.cli.studies import require_study, study
from milfast.protocol.jobs import PROTOCOLS, SCALES
from milfast.protocol.selection import TIES
from milfast.report import table
from milfast.report.terminal import progress, say, show
from milfast.workers import stream

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from milfast.protocol import ProtocolResult


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verb(
        verbs,
        "evaluate",
        run,
        "cross-validate models on real bags",
        "Mean AUC over repeated stratified folds, with an interval that respects that folds share training bags.\n"
        "Features are standardised on the training instances of each fold.\n\n"
        "With --scale or --protocol the models are evaluated as MIDAM was published (zhu2023: a tenth of the bags\n"
        "tests all folds of a seed, margin and epoch are chosen by validation), and by repeated stratified folds\n"
        "beside it (sound); NSK and LR join MIDAM-smx, MIDAM-att, CE and AUC-M. Three seeds; 100 epochs and the\n"
        "margins 0.1, 0.5 and 1 at --scale paper, 20 epochs and margin 1 at --scale fast.\n\n"
        "examples:\n"
        "  milfast evaluate NSK mi-SVM --data musk1\n"
        "  milfast evaluate svm --data bags.csv --folds 10   # CSV with the header bag_id,label,f1,...,fd\n"
        "  milfast evaluate MIDAM-smx MIDAM-att CE AUC-M --data musk1 fox --scale paper --out midam.db",
    )
    model_arguments(parser)
    parser.add_argument(
        "--data", nargs="+", required=True, metavar="DATA", help="names from `milfast ls datasets`, or CSV files"
    )
    parser.add_argument("--folds", type=int, default=5, help="folds of a repeat (default: 5)")
    parser.add_argument(
        "--repeats", type=int, help="repeats with other folds and seeds; the seeds of a protocol (default: 3)"
    )
    protocol = parser.add_argument_group("evaluation by a protocol")
    protocol.add_argument(
        "--protocol", nargs="+", choices=tuple(PROTOCOLS), help="zhu2023, sound or both (default with --scale: both)"
    )
    protocol.add_argument("--scale", choices=tuple(SCALES), help="sizes (default with --protocol: fast)")
    protocol.add_argument("--epochs", type=int, metavar="N", help="other than the scale's")
    protocol.add_argument(
        "--margins", type=float, nargs="+", metavar="C", help="to choose from, other than the scale's"
    )
    protocol.add_argument(
        "--ties",
        choices=tuple(TIES),
        help="what is taken where several margins and epochs are best: the first, the last, the mean of all, or the "
        "final epoch whatever the others reach; what was kept with --out has them all (default: first)",
    )
    protocol.add_argument(
        "--selection",
        choices=("last", "inner"),
        help="of the sound protocol: the last epoch and margin 1, or what is best in inner folds (default: last)",
    )
    protocol.add_argument("--inner", type=int, metavar="N", help="inner folds (default: 3)")
    protocol.add_argument("--stratified", action="store_true", help="zhu2023 draws and deals class by class")


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    from milfast import evaluation

    require_study(options)
    chosen = named_models(options.models)
    if options.protocol or options.scale:
        return _by_protocol(options, chosen)
    for name in ("epochs", "margins", "ties", "selection", "inner", "stratified"):
        if getattr(options, name):
            raise ValueError(f"--{name} belongs to a protocol: add --protocol or --scale")
    settings: dict[str, Any] = {
        "folds": options.folds,
        "repeats": 3 if options.repeats is None else options.repeats,
        "standardize": True,
        "level": options.level,
        "style": options.style,
        "settings": dict(options.set),
        "random_state": options.seed,
    }
    failed = False
    if options.out is None:
        results = []
        with progress("evaluating", len(chosen) * len(options.data) * options.folds * settings["repeats"]) as advance:
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
        with study(options) as through:
            records = through(evaluation.FUNCTION, [evaluation.describe(job) for job in jobs])
        failed = any(record.state == "failed" for record in records)
        results = evaluation.combine((r.spec, r.result) for r in records if r.result is not None)
    show([result.to_dict() for result in results], table.EVALUATION_COLUMNS, options.format)
    if options.format == "table":
        say(f"brackets: {100 * options.level:g} % corrected resampled t interval (Nadeau & Bengio 2003)")
    return 2 if failed else 0


def _by_protocol(options: argparse.Namespace, given: list[Any]) -> int:
    from milfast import evaluation
    from milfast.protocol import jobs as protocol_jobs
    from milfast.protocol import results as protocol_results

    chosen, added = protocol_jobs.with_baselines(given)
    if added:
        print(f"milfast: added, as the table must have them beside: {', '.join(added)}", file=sys.stderr)
    if options.selection == "inner" and "sound" not in (options.protocol or PROTOCOLS):
        raise ValueError("--selection inner is of the sound protocol: name it by --protocol sound")
    if options.inner is not None and options.selection != "inner":
        raise ValueError("--inner counts the folds of --selection inner: add that")
    more = {name: value for name in ("selection", "inner") if (value := getattr(options, name)) is not None}
    planned = []
    loaded = {}
    with redirect_stdout(sys.stderr):
        for data in options.data:
            loaded[data] = evaluation.load(data)
            for protocol in options.protocol or PROTOCOLS:
                planned += protocol_jobs.plan(
                    chosen,
                    loaded[data],
                    title=data,
                    digest=evaluation.file_digest(data),
                    protocol=protocol,
                    scale=options.scale or "fast",
                    seeds=options.repeats,
                    folds=options.folds,
                    epochs=options.epochs,
                    margins=options.margins,
                    stratified=options.stratified,
                    level=options.level,
                    random_state=options.seed,
                    style=options.style,
                    settings=dict(options.set),
                    added=added,
                    **more,
                )
    failed = False
    if options.out is None:
        outcomes: dict[int, dict[str, Any]] = {}
        with progress("evaluating", len(planned)) as advance, redirect_stdout(sys.stderr):
            call = partial(protocol_jobs.run_numbered, data=loaded)
            for index, outcome in stream(call, enumerate(planned), n_jobs=options.jobs):
                outcomes[index] = outcome
                advance(f"{planned[index].subject.name} on {planned[index].data}")
        pairs = [(protocol_jobs.describe(job), outcomes[index]) for index, job in enumerate(planned)]
    else:
        with study(options) as through:
            records = through(protocol_jobs.FUNCTION, [protocol_jobs.describe(job) for job in planned])
        failed = any(record.state == "failed" for record in records)
        pairs = [(r.spec, r.result) for r in records if r.result is not None]
    show_protocol(protocol_results.combine(pairs, ties=options.ties or "first"), options.level, options.format)
    return 2 if failed else 0


def show_protocol(results: Sequence[ProtocolResult], level: float, form: table.Format) -> None:
    """Print what protocols gave, a table for each, and what its figures mean.

    Parameters
    ----------
    results : sequence of ProtocolResult
    level : float
    form : {"table", "markdown", "latex", "csv", "json"}
    """
    if form in ("csv", "json"):
        show([result.to_dict() for result in results], table.PROTOCOL_COLUMNS, form)
        return
    for protocol in dict.fromkeys(result.protocol for result in results):
        rows = [result.to_dict() for result in results if result.protocol == protocol]
        show(rows, table.PROTOCOL_COLUMNS, form)
        if form != "table":
            print()
            continue
        percent = f"{100 * level:g} %"
        if protocol == "zhu2023":
            say(f"AUC: {percent} Student's t over the seeds, as the folds of a seed share one test set")
        else:
            say(f"AUC: {percent} corrected resampled t interval (Nadeau & Bengio 2003)")
        say(f"same models, other bags: {percent} DeLong interval of that mean; bags may be in several test sets")
        if rule := next((row["ties"] for row in rows if row["ties"]), None):
            say(f"ties: median number of margins and epochs with the best validation AUC; taken: {TIES[rule]}")


def _advance_data(advance: Callable[[str], None], data: str, _done: int, _total: int, model: str) -> None:
    advance(f"{model} on {data}")
