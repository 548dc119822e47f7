"""Figures of a battery: errors against the numbers of environments and of spurious features, and verdicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from milfast.report.plots import CONCEPTS, FILLER, INK, OTHERS, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from milfast.invariance.battery import Battery, Cell

#: Learners of one figure.
COLOURS = (CONCEPTS[0], OTHERS[0], CONCEPTS[1], CONCEPTS[3], OTHERS[1], CONCEPTS[2], INK)
SHAPES = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")
#: Outcomes have a colour and a shape each, so that they stay apart without colour.
OUTCOMES = {
    "pass": (CONCEPTS[1], "o"),
    "fail": (OTHERS[0], "X"),
    "inconclusive": (OTHERS[1], "D"),
    "diverged": (INK, "P"),
    "void": (FILLER, "s"),
}
#: Points: titles, labels, and numbers at the axes.
TITLE, LABEL, TICK = 10, 9, 8.5
#: Ratios are drawn up to here; those beyond stand at the edge, with their figure.
LARGEST, SMALLEST = 2.0, -0.25
#: Panels of a row.
COLUMNS = 3


def sweep_plot(battery: Battery, over: Literal["n_env", "d_spu"], *, published: bool = False) -> Figure:
    """Error of each learner against the number of environments, or of spurious features, a panel for each problem.

    As figures 2 and 3 of Aubin et al. (2021): both numbers are divided by that of the invariant features; lines are
    means over replicates, and bands a standard deviation wide, half on either side.

    Parameters
    ----------
    battery : Battery
        With several values of `over`, and one of all else.
    over : {"n_env", "d_spu"}
    published : bool
        Whether to draw published means too, as hollow marks.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When there is nothing to draw, or other settings than `over` differ.
    """
    if over not in ("n_env", "d_spu"):
        raise ValueError(f"over must be n_env or d_spu; got {over!r}")
    if not battery.cells:
        raise ValueError("battery has no cell to draw")
    for name in {"n_env", "d_spu", "d_inv", "mode"} - {over}:
        values = {getattr(cell, name) for cell in battery.cells}
        if len(values) > 1:
            raise ValueError(f"battery has several values of {name}, and one line can only show those of {over}")
    problems = list(dict.fromkeys(cell.problem for cell in battery.cells))
    learners = list(dict.fromkeys(cell.learner for cell in battery.cells))
    figure, panels = _panels(len(problems), width=2.9, height=2.3)
    for axes, problem in zip(panels, problems, strict=True):
        for i, learner in enumerate(learners):
            cells = sorted(
                (cell for cell in battery.cells if (cell.problem, cell.learner) == (problem, learner)),
                key=lambda cell: int(getattr(cell, over)),
            )
            if cells:
                _line(axes, cells, over, learner, i, published=published)
        _dressed(axes, problem)
        squared = cells_task(problem) == "regression"
        axes.set_ylabel("mean squared error" if squared else "share of errors", fontsize=LABEL)
        sort = "environments" if over == "n_env" else "spurious features"
        axes.set_xlabel(f"{sort} / invariant features", fontsize=LABEL)
    named = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    handles, labels = list(named.values()), list(named)
    legend = figure.legend(
        handles, labels, loc="outside lower center", ncols=min(6, len(labels)), frameon=False, fontsize=TICK
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a dollar sign in the name of a learner is one
    return figure


def _line(axes: Axes, cells: list[Cell], over: str, learner: str, i: int, *, published: bool) -> None:
    x = np.array([getattr(cell, over) / max(cell.d_inv, 1) for cell in cells])
    mean, sd = np.array([cell.mean for cell in cells]), np.array([cell.sd for cell in cells])
    colour = COLOURS[i % len(COLOURS)]
    axes.fill_between(x, mean - sd / 2, mean + sd / 2, color=colour, alpha=0.15, linewidth=0)
    axes.plot(
        x,
        mean,
        color=colour,
        marker=SHAPES[i % len(SHAPES)],
        linestyle=LINES[i // len(COLOURS) % len(LINES)],
        markersize=4,
        linewidth=1.4,
        label=learner,
    )
    if published:
        known = [(at, cell.published.mean) for at, cell in zip(x, cells, strict=True) if cell.published is not None]
        if known:
            axes.plot(
                *zip(*known, strict=True),
                linestyle="none",
                marker=SHAPES[i % len(SHAPES)],
                markersize=8,
                markerfacecolor="none",
                markeredgecolor=colour,
                markeredgewidth=0.8,
            )


def verdict_plot(battery: Battery) -> Figure:
    """Where learners stand between the oracle (0) and ERM (1), with intervals and verdicts, a panel for each problem.

    A point is rho, the mean distance from the oracle over that of ERM, and the bar its Fieller interval. The dotted
    line is how near a replicate must come to count as solved; beside each point stands how many did.

    Parameters
    ----------
    battery : Battery
        In strict mode, with one value of `n_env` and `d_spu`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When no cell has a verdict, or a learner has several on one problem.
    """
    cells = [cell for cell in battery.cells if cell.verdict is not None]
    if not cells:
        raise ValueError("battery has no verdict to draw: run it in strict mode with two replicates at least")
    keys = [(cell.learner, cell.problem) for cell in cells]
    if len(set(keys)) < len(keys):
        raise ValueError("battery has several verdicts of one learner on one problem: keep one setting")
    problems = list(dict.fromkeys(cell.problem for cell in cells))
    learners = list(dict.fromkeys(cell.learner for cell in cells))
    figure, panels = _panels(len(problems), width=3.0, height=0.75 + 0.2 * len(learners))
    for number, (axes, problem) in enumerate(zip(panels, problems, strict=True)):
        for place, learner in enumerate(learners):
            for cell in cells:
                if (cell.learner, cell.problem) == (learner, problem):
                    _point(axes, cell, place)
        _dressed(axes, problem)
        verdict = cells[0].verdict
        if verdict is not None:
            axes.axvline(verdict.tolerance, color=INK, linewidth=0.8, linestyle=":")
        for end in (0, 1):
            axes.axvline(end, color=INK, linewidth=0.7)
        axes.set_xlim(SMALLEST, LARGEST + 0.55)
        axes.set_xticks([0, 0.5, 1, 1.5, 2], ["oracle", "0.5", "ERM", "1.5", "2"])
        axes.set_ylim(len(learners) - 0.4, -0.6)
        axes.set_yticks(range(len(learners)), learners if number % COLUMNS == 0 else [""] * len(learners))
        for text in axes.get_yticklabels():
            text.set_parse_math(False)
        axes.set_xlabel("rho", fontsize=LABEL)
    _outcome_legend(figure, cells)
    return figure


def _point(axes: Axes, cell: Cell, place: int) -> None:
    verdict = cell.verdict
    if verdict is None:
        return
    colour, shape = OUTCOMES[verdict.outcome]
    ratio = verdict.ratio
    if math.isfinite(ratio.estimate):
        edges = [min(max(end, SMALLEST), LARGEST) for end in (ratio.low, ratio.high)]
        if ratio.kind == "between":
            axes.plot(edges, [place, place], color=colour, linewidth=1.4, solid_capstyle="butt")
        at = min(max(ratio.estimate, SMALLEST), LARGEST)
        axes.plot([at], [place], marker=shape, color=colour, markersize=5.5, linestyle="none", zorder=3)
        if at != ratio.estimate:
            axes.annotate(
                f"{ratio.estimate:.1f}",
                (at, place),
                xytext=(0, 4),
                textcoords="offset points",
                fontsize=6.5,
                ha="center",
                color=INK,
            )
    axes.text(
        LARGEST + 0.5,
        place,
        f"{verdict.successes}/{verdict.n_replicates}",
        fontsize=7,
        ha="right",
        va="center",
        color=colour if verdict.outcome != "void" else INK,
    )


def _outcome_legend(figure: Figure, cells: list[Cell]) -> None:
    from matplotlib.lines import Line2D

    there = {cell.verdict.outcome for cell in cells if cell.verdict is not None}
    handles = [
        Line2D([], [], color=colour, marker=shape, linestyle="none", markersize=5.5, label=outcome)
        for outcome, (colour, shape) in OUTCOMES.items()
        if outcome in there
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=TICK, labelcolor=INK
    )


def cells_task(problem: str) -> str:
    """Task of a problem.

    Parameters
    ----------
    problem : str

    Returns
    -------
    {"regression", "classification"}
    """
    from milfast.invariance.problems import FAMILIES

    return FAMILIES[problem].task


def _panels(number: int, *, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels, at most three in a row; sizes in inches."""
    require_matplotlib()
    from matplotlib.figure import Figure

    columns = min(number, COLUMNS)
    rows = -(-number // columns)
    figure = Figure(figsize=(0.9 + width * columns, 0.6 + height * rows), facecolor="white", layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[number:]:
        axes.set_axis_off()
    return figure, list(grid[:number])


def _dressed(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=TITLE, color=INK)
    axes.tick_params(labelsize=TICK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
