"""`milfast ls`: what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from milfast import models
from milfast.checks import catalogue
from milfast.cli.arguments import format_argument, verb
from milfast.report import table
from milfast.report.terminal import show

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verb(
        verbs, "ls", run, "list models, checks, data sets, problems or learners", "example:\n  milfast ls models"
    )
    parser.add_argument("what", choices=("models", "checks", "datasets", "problems", "learners"))
    format_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    if options.what == "datasets":
        from milfast import datasets

        rows: list[dict[str, Any]] = []
        for name in datasets.names():
            d = datasets.describe(name)
            bags = isinstance(d, datasets.DataSet)
            rows.append(
                {
                    "name": d.name,
                    "kind": "bags" if bags else "table",
                    "samples": d.n_bags if isinstance(d, datasets.DataSet) else d.n_samples,
                    "positive": d.n_positive,
                    "instances": d.n_instances if isinstance(d, datasets.DataSet) else None,
                    "features": d.n_features,
                    "licence": d.licence,
                }
            )
    elif options.what == "checks":
        rows = [{"code": e.code, "name": e.name, "summary": e.summary} for e in catalogue.registry.entries.values()]
    elif options.what == "problems":
        from milfast.invariance import problems

        rows = [
            {
                "name": name,
                "task": family.task,
                "summary": _summary(family) + ("; scrambled" if name[-1] == "s" else ""),
            }
            for name, family in problems.FAMILIES.items()
        ]
    elif options.what == "learners":
        from milfast.invariance import learners

        rows = [
            {
                "name": e.name,
                "trained on": "rows or the distribution" if learners.get(e.name).ENGINE else "rows",
                "tasks": ", ".join(learners.get(e.name).tasks),
                "summary": e.summary.removeprefix(f"{e.name}: "),
            }
            for e in learners.registry.entries.values()
        ]
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


def _summary(kind: type) -> str:
    """First line of a class's documentation."""
    return (kind.__doc__ or "").strip().split("\n", 1)[0].rstrip(".")
