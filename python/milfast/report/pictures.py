"""A folder of pictures, one of each check: python -m milfast.report.pictures FOLDER."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from milfast.checks import catalogue
from milfast.report.plots import bag_picture, require_matplotlib

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

#: Settings of matplotlib under which a picture is the same file each time, whatever the user's own settings are.
#: Text stays text, so that it can be searched and read aloud, and files are half as large.
FIXED: dict[Any, Any] = {"svg.hashsalt": "milfast", "svg.fonttype": "none"}


def svg(check: str) -> str:
    """The picture of a check as an SVG file that only depends on the version of matplotlib.

    Parameters
    ----------
    check : str
        Its name.

    Returns
    -------
    str

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When there is no such check.
    """
    return fixed_svg(lambda: bag_picture(check))


def fixed_svg(draw: Callable[[], Figure]) -> str:
    """A figure as an SVG file that only depends on the version of matplotlib.

    Parameters
    ----------
    draw : callable
        Makes the figure.

    Returns
    -------
    str

    Raises
    ------
    ImportError
        When matplotlib is missing.
    """
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(FIXED)
        text = io.StringIO()
        draw().savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


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
        prog="python -m milfast.report.pictures", description="Write a picture of each check, FOLDER/CHECK.svg."
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where to; it is made where it is not there")
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for check in catalogue.names():
        path = folder / f"{check}.svg"
        path.write_text(svg(check), encoding="utf-8", newline="\n")
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
