"""Checks as jobs of a study: a specification of plain values in, plain values out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from milfast.checks.adapters import Subject
from milfast.checks.recipe import BagRecipe
from milfast.checks.runner import Job, Run, run_job
from milfast.checks.verdict import CheckResult

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What a study calls.
FUNCTION = "milfast.checks.jobs:run_specification"


def describe(job: Job) -> dict[str, Any]:
    """Everything that determines the result of a job.

    Parameters
    ----------
    job : Job

    Returns
    -------
    dict
    """
    return {
        "model": job.subject.reference,
        "parameters": job.subject.parameters(),
        "check": job.check,
        "spelling": job.spelling,
        "recipe": job.recipe.to_dict(),
        "n_train": job.n_train,
        "n_test": job.n_test,
        "seed": job.seed,
        "run": job.run,
        "pad_to": job.pad_to,
        "level": job.level,
    }


def run_specification(specification: dict[str, Any]) -> dict[str, Any]:
    """Do the job.

    Parameters
    ----------
    specification : dict

    Returns
    -------
    dict
        See `Run.to_dict`.
    """
    names = ("check", "spelling", "n_train", "n_test", "seed", "run", "pad_to", "level")
    job = Job(
        subject=Subject.of(specification["model"]),
        recipe=BagRecipe.from_dict(specification["recipe"]),
        **{name: specification[name] for name in names},
    )
    return run_job(job).to_dict()


def combine(pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> list[CheckResult]:
    """Results of checks from specifications and what they gave.

    Parameters
    ----------
    pairs : iterable of (dict, dict)

    Returns
    -------
    list of CheckResult
        In the order in which their first runs come. Runs are put together when they differ in nothing but their number.
    """
    groups: dict[str, tuple[float, list[Run]]] = {}
    for given, gave in pairs:
        key = json.dumps({name: value for name, value in given.items() if name != "run"}, sort_keys=True)
        groups.setdefault(key, (given["level"], []))[1].append(Run.from_dict(gave))
    return [CheckResult.of(sorted(runs, key=lambda r: r.run), level=level) for level, runs in groups.values()]
