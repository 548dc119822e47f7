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
    parser = verb(verbs, "ls", run, "list models, checks or data sets", "example:\n  milfast ls models")
    parser.add_argument("what", choices=("models", "checks", "datasets"))
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
