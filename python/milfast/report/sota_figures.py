"""Figures 1 to 5 of Steinbach et al. (2022), drawn from the record of `milfast.uncertainty.sota`."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.report.pictures import FIXED
from milfast.report.plots import INK, require_matplotlib
from milfast.report.uncertainty_plots import COLOURS, GREY, SHAPES, draw_quantiles, figure, heading, plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def write(found: dict[str, Any], folder: Path) -> list[Path]:
    """Write the figures.

    Parameters
    ----------
    found : dict
        As `milfast.uncertainty.sota.record` returns it.
    folder : Path

    Returns
    -------
    list of Path

    Raises
    ------
    ImportError
        When matplotlib is missing.
    """
    written = []
    for number in FIGURES:
        path = folder / f"sota-figure-{number}.svg"
        path.write_text(svg(found, number), encoding="utf-8", newline="\n")
        written.append(path)
    return written


def svg(found: dict[str, Any], number: int) -> str:
    """A figure as an SVG file that only depends on the version of matplotlib.

    Parameters
    ----------
    found : dict
        As `milfast.uncertainty.sota.record` returns it.
    number : int
        1 to 5.

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
        FIGURES[number](found).savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _runs(found: dict[str, Any], arch: str) -> Any:
    """Accuracies of an architecture, shape (n_seeds, n_folds)."""
    return np.array(found["right"][arch]) / np.array(found["fold_sizes"])


def figure_1(found: dict[str, Any]) -> Figure:
    """Draw accuracies of seed 42, without and with the standard deviation over folds.

    Parameters
    ----------
    found : dict

    Returns
    -------
    matplotlib.figure.Figure
    """
    picture = figure(7.2, 1.9)
    for axes, bars in zip(picture.subplots(1, 2, sharex=True), (False, True), strict=True):
        for row, (arch, colour) in enumerate(zip(found["archs"], COLOURS, strict=False)):
            point = found["figure_1"][arch]
            if bars:
                axes.plot([point["low"], point["high"]], [row, row], color=colour, linewidth=2.2, solid_capstyle="butt")
            axes.plot([point["mean"]], [row], marker="o", markersize=6, color=colour)
        axes.set(yticks=range(len(found["archs"])), ylim=(len(found["archs"]) - 0.5, -0.5), xlabel="accuracy")
        axes.set_yticklabels(found["archs"])
        plain(axes)
        heading(axes, "b  standard deviation over 20 folds" if bars else "a  points")
    return picture


def figure_2(found: dict[str, Any]) -> Figure:
    """Draw figure 12a of Park & Kim (2022), without and with intervals by equation 1.

    Parameters
    ----------
    found : dict

    Returns
    -------
    matplotlib.figure.Figure
    """
    picture = figure(7.2, 3.1)
    points = found["figure_2"]
    left, right = picture.subplots(1, 2, sharex=True)
    at = [point["msa"] for point in points]
    shift = [0.24 * (i - at.index(m) - (at.count(m) - 1) / 2) for i, m in enumerate(at)]
    for axes, bars in ((left, False), (right, True)):
        for point, move in zip(points, shift, strict=True):
            x = point["msa"] + (move if bars else 0)
            colour = COLOURS[0] if point["msa"] else INK
            if bars:
                axes.plot([x, x], [point["low_2"], point["high_2"]], color=GREY, linewidth=1.4, zorder=1)
                axes.plot([x, x], [point["low_1"], point["high_1"]], color=colour, linewidth=3, solid_capstyle="butt")
            axes.plot([x], [point["accuracy"]], marker="o", markersize=5, color=colour, linestyle="none", zorder=3)
            if point["label"]:
                place, offset = (point["high_2"], (0, 3)) if bars else (point["accuracy"], (5, 0))
                sides = ("center", "bottom") if bars else ("left", "center")
                said = axes.annotate(point["label"], (x, place), offset, textcoords="offset points", fontsize=8)
                said.set(color=INK, ha=sides[0], va=sides[1])
        axes.set(xlabel="number of MSAs", ylabel="accuracy", xticks=range(6), xlim=(-0.5, 5.6))
        plain(axes, grid="y")
    base = next(point for point in points if not point["msa"])
    right.axhspan(base["low_2"], base["high_2"], color="#eeeeee", zorder=0)
    heading(left, "a  as printed by Park & Kim")
    heading(right, "b  one and two sigma; band: no MSA")
    return picture


def figure_3(found: dict[str, Any]) -> Figure:
    """Draw histograms of the accuracies of seed 42 and of all seeds.

    Parameters
    ----------
    found : dict

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_matplotlib()
    from matplotlib.ticker import MaxNLocator

    def draw(axes: Axes, runs: Any, colour: str) -> None:
        axes.hist(runs, bins=15 if len(runs) <= 60 else 25, color=colour, edgecolor="white", linewidth=0.5)
        axes.set(xlabel="accuracy", ylabel="trainings")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        plain(axes, grid="y")

    return _one_and_all(found, draw)


def figure_4(found: dict[str, Any]) -> Figure:
    """Draw the quantiles of the accuracies against those of a normal law, over their whole range.

    Parameters
    ----------
    found : dict

    Returns
    -------
    matplotlib.figure.Figure
    """

    def draw(axes: Axes, runs: Any, colour: str) -> None:
        draw_quantiles(axes, np.sort(runs), colour=colour)
        axes.set(xlabel="normal quantile", ylabel="accuracy")
        plain(axes, grid="both")

    return _one_and_all(found, draw)


def _one_and_all(found: dict[str, Any], draw: Callable[[Axes, Any, str], None]) -> Figure:
    """A row for each architecture: seed 42 on the left, all seeds on the right."""
    picture = figure(7.2, 1.95 * len(found["archs"]))
    panels = picture.subplots(len(found["archs"]), 2, squeeze=False)
    for (left, right), arch, colour in zip(panels, found["archs"], COLOURS, strict=False):
        runs = _runs(found, arch)
        for axes, some, title in ((left, runs[0], "seed 42"), (right, runs.ravel(), f"all {len(runs)} seeds")):
            draw(axes, some, colour)
            heading(axes, f"{arch}, {title}")
    return picture


def figure_5(found: dict[str, Any]) -> Figure:
    """Draw the standard deviation over folds beside equation 1, for seed 42 and for all seeds.

    Parameters
    ----------
    found : dict

    Returns
    -------
    matplotlib.figure.Figure
    """
    picture = figure(7.2, 2.6)
    panels = picture.subplots(1, len(found["archs"]))
    ways = (("sd", "over folds"), ("equation_1", "equation 1"))
    for axes, arch in zip(panels, found["archs"], strict=True):
        place = 0
        for which, colour in (("seed_42", COLOURS[0]), ("all", COLOURS[1])):
            point = found["figure_5"][arch][which]
            for (way, title), shape in zip(ways, SHAPES, strict=False):
                label = f"{'seed 42' if which == 'seed_42' else 'all seeds'}, {title}"
                ends = [point["mean"] - point[way], point["mean"] + point[way]]
                axes.plot([place, place], ends, color=colour, linewidth=2, solid_capstyle="butt")
                axes.plot(
                    [place], [point["mean"]], marker=shape, markersize=6, color=colour, linestyle="none", label=label
                )
                place += 1
        axes.set(xticks=[], xlim=(-0.7, 3.7), ylabel="accuracy" if axes is panels[0] else "")
        plain(axes, grid="y")
        heading(axes, arch)
    entries = panels[0].get_legend_handles_labels()
    picture.legend(*entries, loc="outside lower center", ncols=4, frameon=False, fontsize=8, labelcolor=INK)
    return picture


FIGURES: dict[int, Any] = {
    1: figure_1,
    2: figure_2,
    3: figure_3,
    4: figure_4,
    5: figure_5,
}
