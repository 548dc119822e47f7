"""`milfast invariance`: do learners take a shortcut that holds in training only?"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from milfast.cli.arguments import study_arguments, verb
from milfast.cli.studies import require_study, study
from milfast.report.invariance_tables import show_battery
from milfast.report.terminal import progress
from milfast.workers import stream

if TYPE_CHECKING:
    import argparse

    from milfast.invariance.battery import Battery


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verb(
        verbs,
        "invariance",
        run,
        "run learners through the linear unit tests for invariance",
        "Each problem has features that determine the target in every environment, and others whose tie to it is cut\n"
        "in the test. In strict mode a learner passes when it is certain that it comes near the oracle in more than\n"
        "80 % of replicates. In paper mode the tables of Aubin et al. (2021) are made again, beside what they have.\n\n"
        "Exit status: 0 when every learner passed every problem (in strict mode), 1 when one did not, 2 for wrong\n"
        "use.\n\n"
        "examples:\n"
        "  milfast invariance IRMv1 V-REx --problems Example1\n"
        "  milfast invariance mypackage.learners:Mine --replicates 30 --out mine.db\n"
        "  milfast invariance paper --mode paper --out paper.db     # stop it, run it again: it goes on\n"
        "  milfast invariance paper --mode paper --problems Example3 --n-env 2 3 4 5 6 7 8 9 10 --out sweep.db",
    )
    parser.add_argument(
        "learners",
        nargs="*",
        default=["paper"],
        metavar="LEARNER",
        help="names from `milfast ls learners`, a group (all, paper), or package.module:Name of a learner of your own, "
        "with fit(X, y, env, rng=None, **params) and predict(X), or a scikit-learn estimator (default: paper)",
    )
    parser.add_argument(
        "--problems",
        nargs="+",
        default=["all"],
        metavar="PROBLEM",
        help="names from `milfast ls problems`, or all (default: all)",
    )
    parser.add_argument(
        "--mode",
        choices=("strict", "paper"),
        default="strict",
        help="strict: replicates with problems, trials and selection of their own, exact errors, verdicts; paper: as "
        "published (default: strict)",
    )
    parser.add_argument(
        "--engine",
        choices=("auto", "samples", "population"),
        default="auto",
        help="what learners are trained on: rows, or the distribution itself, as if there were rows without end; auto: "
        "the distribution in strict mode, rows in paper mode and for learners of your own (default: auto)",
    )
    parser.add_argument("--trials", type=int, default=20, help="sets of parameters that are tried (default: 20)")
    parser.add_argument("--replicates", type=int, default=50, help="replicates of each problem (default: 50)")
    parser.add_argument("--steps", type=int, default=10_000, help="steps of the optimiser (default: 10000)")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of an environment (default: 10000)")
    parser.add_argument("--d-inv", type=int, default=5, help="invariant features (default: 5)")
    parser.add_argument("--d-spu", type=int, nargs="+", default=[5], help="spurious features, or several (default: 5)")
    parser.add_argument("--n-env", type=int, nargs="+", default=[3], help="environments, or several (default: 3)")
    parser.add_argument(
        "--rng",
        choices=("native", "torch"),
        help="what draws; torch gives the published rows (default: torch in paper mode where it is installed)",
    )
    parser.add_argument(
        "--test-shuffle",
        choices=("invariant", "2021"),
        default="invariant",
        help="2021: as the published code, which permuted the wrong columns of Example2 where d_spu is not d_inv",
    )
    parser.add_argument(
        "--selection",
        choices=("per_replicate", "pooled"),
        help="choose trials in each replicate, or one for all (default: per_replicate in strict mode, pooled in paper)",
    )
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever the verdicts")
    study_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    from milfast.invariance import battery as batteries
    from milfast.invariance import jobs as battery_jobs

    require_study(options)
    if not 0 < options.level < 1:
        raise ValueError(f"--level must lie strictly between 0 and 1; got {options.level}")
    with redirect_stdout(sys.stderr):
        todo, notes = batteries.plan(
            options.learners,
            problems=options.problems,
            mode=options.mode,
            engine=options.engine,
            n_trials=options.trials,
            n_replicates=options.replicates,
            n_steps=options.steps,
            n=options.rows,
            d_inv=options.d_inv,
            d_spu=options.d_spu,
            n_env=options.n_env,
            rng=options.rng,
            test_shuffle=options.test_shuffle,
            selection=options.selection,
            random_state=options.seed,
        )
    described = [battery_jobs.describe(job) for job in todo]
    failed = False
    if options.out is None:
        done: dict[int, dict[str, Any]] = {}
        with progress("running", len(todo)) as advance, redirect_stdout(sys.stderr):
            for number, gave in stream(batteries.numbered, enumerate(todo), n_jobs=options.jobs):
                done[number] = gave
                advance(todo[number].title)
        pairs = [(given, done[number]) for number, given in enumerate(described)]
    else:
        with study(options) as through:
            records = through(battery_jobs.FUNCTION, described)
        failed = any(record.state == "failed" for record in records)
        pairs = [(record.spec, record.result) for record in records if record.result is not None]
    battery = batteries.combine(pairs, selection=options.selection, alpha=1 - options.level, notes=notes)
    show_battery(battery, options.format)
    if failed:
        return 2
    asked = {job.subject.name for job in todo} & _asked(batteries.named_learners(options.learners))
    return 0 if options.exit_zero or _passed(battery, asked) else 1


def _asked(given: list[Any]) -> set[str]:
    """Names of the learners that were asked for, apart from the oracle, which is what they are measured by."""
    from milfast.invariance.battery import ORACLE
    from milfast.invariance.jobs import Subject

    return {Subject.of(learner).name for learner in given} - {ORACLE}


def _passed(battery: Battery, asked: set[str]) -> bool:
    return all(
        cell.verdict.outcome == "pass" for cell in battery.cells if cell.verdict is not None and cell.learner in asked
    )
