"""Checks as jobs of a study: a specification of plain values in, plain values out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from milfast.checks import catalogue
from milfast.checks.adapters import Subject
from milfast.checks.recipe import BagRecipe
from milfast.checks.runner import Job, run_job
from milfast.checks.runner import combine as combine_runs
from milfast.checks.verdict import Run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from milfast.checks.verdict import CheckResult

#: What makes a model and its setting.
SETTING = (
    "model",
    "style",
    "settings",
    "parameters",
    "source",
    "claims",
    "n_train",
    "n_test",
    "pad_to",
    "looks",
    "milfast",
)
#: What a study calls.
FUNCTION = "milfast.checks.jobs:run_specification"


def describe(job: Job) -> dict[str, Any]:
    """Everything that determines the result of a job, and how it may be read.

    Parameters
    ----------
    job : Job

    Returns
    -------
    dict
    """
    order = {check: place for place, check in enumerate(catalogue.names())}
    return job.subject.named() | {
        "settings": dict(job.subject.settings),
        "parameters": job.subject.parameters(),
        "source": job.subject.source,
        "claims": job.subject.claims,
        "check": job.task,
        "spelling": job.spelling,
        "recipe": job.recipe.to_dict(),
        # in whatever order they were asked for, a study must know the fit again
        "checks": sorted(job.checks, key=lambda check: order.get(check, 0)),
        "n_train": job.n_train,
        "n_test": job.n_test,
        "seed": job.seed,
        "run": job.run,
        "pad_to": job.pad_to,
        "looks": job.looks,
    }


def run_specification(specification: dict[str, Any]) -> dict[str, Any]:
    """Do the job.

    Parameters
    ----------
    specification : dict

    Returns
    -------
    dict
        Under "runs" what `Run.to_dict` gives for each check that the fit served.
    """
    spelling, task = specification["spelling"], specification["check"]
    made = BagRecipe if spelling == "own" else type(catalogue.get(task).recipe(spelling))
    job = Job(
        subject=Subject.named_by(specification),
        task=task,
        recipe=made.from_dict(specification["recipe"]),
        checks=tuple(specification["checks"]),
        **{name: specification[name] for name in ("spelling", "n_train", "n_test", "seed", "run", "pad_to", "looks")},
    )
    return {"runs": [run.to_dict() for run in run_job(job)]}


def combine(pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]], *, level: float = 0.95) -> list[CheckResult]:
    """Results of checks from specifications and what they gave.

    Parameters
    ----------
    pairs : iterable of (dict, dict)
    level : float
        Level of the intervals.

    Returns
    -------
    list of CheckResult
        In the order in which their first runs come. Runs are put together when they differ in nothing but their number
        and seed; in a sequential study, whose error is shared among its own runs, in nothing but their number. A run
        that was done for several calls counts once.

    Raises
    ------
    ValueError
        When a result comes from a version of milfast that wrote other figures down.
    """
    runs = []
    for given, gave in pairs:
        if "runs" not in gave:
            raise ValueError(
                f"{given.get('model')} on {given.get('check')} was checked by milfast {given.get('milfast')}, which "
                "kept other figures: run the checks again into a new file"
            )
        # what the results of one model and setting have in common, whatever was asked for in the same call
        common = {name: given.get(name) for name in SETTING} | {"seed": given["seed"] if given["looks"] > 1 else None}
        own = given["spelling"] == "own"
        common |= given["recipe"] if own else {name: given["recipe"][name] for name in ("n_features", "direction")}
        runs += [(json.dumps(common, sort_keys=True), given["looks"], Run.from_dict(run)) for run in gave["runs"]]
    return combine_runs(runs, level=level)
