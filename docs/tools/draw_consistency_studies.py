"""The pictures of docs/consistency-studies.md: python docs/tools/draw_consistency_studies.py RECORD FOLDER."""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from milfast.consistency.curve import ConsistencyCurve
from milfast.consistency.selection import select_model
from milfast.consistency.studies import SEED, from_dict
from milfast.consistency.voting import majority_vote
from milfast.report import consistency_plots as plots
from milfast.report.pictures import fixed_svg

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

#: Points from window to window in the picture of correlations: as many points as it can show.
STEP = 50
#: Model whose heat map and histogram are drawn.
SHOWN = "adaboost"


def figures(record: dict[str, Any]) -> dict[str, Callable[[], Figure]]:
    """What draws each picture.

    Parameters
    ----------
    record : dict
        Of `milfast.consistency.studies`.

    Returns
    -------
    dict of str to callable
        By the name of the file, without its ending.
    """
    curve = ConsistencyCurve.from_dict(record["curves"]["lr"])
    results = {name: from_dict(values) for name, values in record["results"].items()}
    return {
        "consistency-curve": lambda: plots.curve_plot(curve),
        "consistency-rolling": lambda: plots.rolling_plot(
            curve.rolling_correlation(of="pairs", step=STEP, random_state=SEED)
        ),
        "consistency-heat-map": lambda: plots.heat_map(results[SHOWN]),
        "consistency-errors": lambda: plots.error_histogram(results[SHOWN]),
        "consistency-selection": lambda: plots.selection_plot(select_model(results, random_state=SEED)),
        "consistency-votes": lambda: plots.vote_plot({name: majority_vote(r) for name, r in results.items()}),
    }


@cache
def svgs(record: Path) -> dict[str, str]:
    """All pictures of a record.

    Parameters
    ----------
    record : Path
        File that `milfast.consistency.studies` wrote.

    Returns
    -------
    dict of str to str
        SVG files by name, which only depend on the record and on the versions of matplotlib and numpy.

    Raises
    ------
    ImportError
        When matplotlib is missing.
    """
    found = figures(json.loads(record.read_text(encoding="utf-8")))
    return {name: fixed_svg(draw) for name, draw in found.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        0.
    """
    parser = argparse.ArgumentParser(
        prog="python docs/tools/draw_consistency_studies.py",
        description="Draw the pictures of docs/consistency-studies.md from the record of its studies.",
    )
    parser.add_argument("record", metavar="RECORD", type=Path, help="file of python -m milfast.consistency.studies")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where to; it is made where it is not there")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, text in svgs(options.record).items():
        path = options.folder / f"{name}.svg"
        path.write_text(text, encoding="utf-8", newline="\n")
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
