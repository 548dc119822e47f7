"""Arguments that verbs share."""

from __future__ import annotations

import argparse
import ast
import sys
from typing import TYPE_CHECKING, Any

from milfast import models
from milfast.checks.adapters import STYLES
from milfast.report import table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def verb(
    verbs: Any, name: str, run: Callable[[argparse.Namespace], int], summary: str, text: str
) -> argparse.ArgumentParser:
    """Parser of one verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n\n{text}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    return parser


def model_arguments(parser: argparse.ArgumentParser) -> None:
    """Models and their parameters, and all of `study_arguments`."""
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="a name from `milfast ls models`, a group (all, svm, linear, deep) or package.module:Name of a model of "
        "your own: an estimator, a torch module's class, or a function that makes one",
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
        type=setting,
        metavar="NAME=VALUE",
        help="a parameter, such as epochs=5 or device=cuda, which every model must have; several values are joined by "
        "commas, as in faults=biased-split,sorted-batches",
    )
    study_arguments(parser)


def study_arguments(parser: argparse.ArgumentParser) -> None:
    """Seed, processes, level, study file and form, of verbs that run for long."""
    parser.set_defaults(resumes=True)
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
    format_argument(parser)


def format_argument(parser: argparse.ArgumentParser) -> None:
    """Form of the output."""
    parser.add_argument("--format", choices=table.FORMATS, default="table", help="form of the output (default: table)")


def setting(text: str) -> tuple[str, Any]:
    """A parameter and its value from NAME=VALUE."""
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


def named_models(given: Sequence[str]) -> list[Any]:
    """Models by name or by group; those of a group that cannot run here are left out."""
    chosen: list[Any] = []
    for name in given:
        if name in ("all", *models.GROUPS):
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
