"""`milfast evaluate`: models on real bags."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

from milfast.cli.arguments import model_arguments, named_models, verb
from milfast.cli.studies import require_study, study
from milfast.report import table
from milfast.report.terminal import progress, say, show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verb(
        verbs,
        "evaluate",
        run,
        "cross-validate models on real bags",
        "Mean AUC over repeated stratified folds, with an interval that respects that folds share training bags.\n"
        "Features are standardised on the training instances of each fold.\n\n"
        "examples:\n"
        "  milfast evaluate NSK mi-SVM --data musk1\n"
        "  milfast evaluate svm --data bags.csv --folds 10   # CSV with the header bag_id,label,f1,...,fd",
    )
    model_arguments(parser)
    parser.add_argument(
        "--data", nargs="+", required=True, metavar="DATA", help="names from `milfast ls datasets`, or CSV files"
    )
    parser.add_argument("--folds", type=int, default=5, help="folds of a repeat (default: 5)")
    parser.add_argument("--repeats", type=int, default=3, help="repeats with other folds and seeds (default: 3)")


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    from milfast import evaluation

    require_study(options)
    chosen = named_models(options.models)
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
        with study(options) as through:
            records = through(evaluation.FUNCTION, [evaluation.describe(job) for job in jobs])
        failed = any(record.state == "failed" for record in records)
        results = evaluation.combine((r.spec, r.result) for r in records if r.result is not None)
    show([result.to_dict() for result in results], table.EVALUATION_COLUMNS, options.format)
    if options.format == "table":
        say(f"brackets: {100 * options.level:g} % corrected resampled t interval (Nadeau & Bengio 2003)")
    return 2 if failed else 0


def _advance_data(advance: Callable[[str], None], data: str, _done: int, _total: int, model: str) -> None:
    advance(f"{model} on {data}")
