"""`milfast check`: models and the unit tests."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from milfast.checks import SPELLINGS
from milfast.cli.arguments import model_arguments, named_models, verb
from milfast.cli.studies import require_study, study
from milfast.report.terminal import progress
from milfast.report.verdicts import show_checks

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from milfast.checks import CheckResult, runner
    from milfast.study import Record

#: Runs of each check, unless the command says otherwise.
RUNS = 5


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verb(
        verbs,
        "check",
        run,
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
    model_arguments(parser)
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


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    from milfast.checks import jobs as check_jobs
    from milfast.checks import runner, sequential

    require_study(options)
    if options.until_decided and options.runs is not None:
        raise ValueError(
            "--runs says how many runs there are, --until-decided adds as many as it takes: leave one of them out, or "
            "say with --max-runs where to stop"
        )
    # what a model prints, from when it is first tried, must not get into the output
    with redirect_stdout(sys.stderr):
        jobs = runner.plan(
            named_models(options.models),
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
        with study(options) as through:

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
