"""Pictures of figures with their uncertainty: intervals, paired differences, ranks, and runs against a normal law."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from milfast.report.plots import CONCEPTS, INK, OTHERS, require_matplotlib

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from milfast.uncertainty import ComparedModels, Comparison, Interval

#: Colours of models, in their order; they stay apart under the common forms of colour blindness (Okabe & Ito 2008).
COLOURS = (*CONCEPTS, *OTHERS)
SHAPES = ("o", "s", "^", "D", "v", "P", "X")
GREY, GRID = "#8a8a8a", "#dddddd"
#: Inches: height of a row, of what stands around the rows, width of a panel.
ROW, AROUND, PANEL = 0.32, 0.95, 3.6


def figure(width: float, height: float) -> Figure:
    """An empty figure, white and laid out so that nothing is cut.

    Parameters
    ----------
    width, height : float
        Inches.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        When matplotlib is missing.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), facecolor="white", layout="constrained")


def plain(axes: Axes, *, grid: Literal["x", "y", "both"] = "x") -> None:
    """Take away what no reader needs, and put lines behind that help to read off values.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    grid : {"x", "y", "both"}
    """
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GREY)
    axes.grid(visible=True, axis=grid, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=8.5, color=GREY)
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        text.set(fontsize=9, color=INK, parse_math=False)


def draw_intervals(
    axes: Axes, intervals: Mapping[str, Interval], *, colours: Sequence[str] | None = None, zero: bool = False
) -> None:
    """Points with their intervals, one below the other.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    intervals : mapping of str to Interval
    colours : sequence of str, optional
        One for each.
    zero : bool
        Whether to draw a line at 0.
    """
    shades = [INK] * len(intervals) if colours is None else colours
    for row, (interval, colour) in enumerate(zip(intervals.values(), shades, strict=True)):
        if not math.isnan(interval.half_width):
            axes.plot([interval.low, interval.high], [row, row], color=colour, linewidth=2.2, solid_capstyle="butt")
        axes.plot([interval.estimate], [row], marker="o", markersize=6, color=colour, linestyle="none")
    if zero:
        axes.axvline(0, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=0.5)
    axes.set_yticks(range(len(intervals)), labels=list(intervals))
    axes.set_ylim(len(intervals) - 0.5, -0.5)
    axes.margins(x=0.08)
    plain(axes)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.tick_params(axis="y", length=0)


def interval_picture(intervals: Mapping[str, Interval], *, measure: str = "", zero: bool = False) -> Figure:
    """Draw estimates with their intervals.

    Parameters
    ----------
    intervals : mapping of str to Interval
        From top to bottom.
    measure : str
        What they are intervals of, such as ``"AUC"``.
    zero : bool
        Whether to draw a line at 0, for differences.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When there are none.

    Examples
    --------
    >>> from milfast.report.uncertainty_plots import interval_picture  # needs matplotlib
    >>> from milfast.uncertainty import proportion_interval
    >>> found = {"ours": proportion_interval(90, 100), "theirs": proportion_interval(85, 100)}
    >>> picture = interval_picture(found, measure="accuracy")
    >>> [text.get_text() for text in picture.axes[0].get_yticklabels()]
    ['ours', 'theirs']
    """
    if not intervals:
        raise ValueError("intervals is empty: there is nothing to draw")
    picture = figure(PANEL + 1.2, AROUND + ROW * len(intervals))
    axes = picture.add_subplot()
    draw_intervals(axes, intervals, zero=zero)
    levels = sorted({interval.level for interval in intervals.values()})
    axes.set_xlabel(
        f"{measure}, {' and '.join(f'{100 * level:.6g}' for level in levels)} % interval".removeprefix(", ")
    )
    return picture


def comparison_picture(result: ComparedModels) -> Figure:
    """Draw what `milfast.compare` found: the figure of each model, and the paired difference of each pair.

    Parameters
    ----------
    result : ComparedModels

    Returns
    -------
    matplotlib.figure.Figure
        Its method ``savefig`` writes it to a file.

    Raises
    ------
    ImportError
        When matplotlib is missing.

    Examples
    --------
    >>> import milfast as mf
    >>> from milfast.report.uncertainty_plots import comparison_picture  # needs matplotlib
    >>> result = mf.compare({"ours": [1, 0, 1, 1], "theirs": [1, 0, 0, 1]}, [1, 0, 1, 0])
    >>> [axes.get_title(loc="left") for axes in comparison_picture(result).axes]
    ['accuracy', 'paired difference']
    """
    rows = max(len(result.names), len(result.pairs), 2)
    picture = figure(2 * PANEL + 1.6 if result.pairs else PANEL + 1.2, AROUND + ROW * rows)
    panels = picture.subplots(1, 2 if result.pairs else 1, squeeze=False)[0]
    names = dict(zip(result.names, result.estimates, strict=True))
    draw_intervals(panels[0], names, colours=[COLOURS[i % len(COLOURS)] for i in range(len(names))])
    panels[0].set_title(result.measure, loc="left")
    if result.pairs:
        differences = {" - ".join(pair.names): pair.difference for pair in result.pairs if pair.difference is not None}
        draw_intervals(panels[1], differences, zero=True)
        panels[1].set_title("paired difference", loc="left")
    for axes in panels:
        heading(axes, axes.get_title(loc="left"))
        axes.set_xlabel(f"{100 * result.design['level']:.6g} % interval")
        axes.xaxis.label.set(fontsize=8.5, color=GREY)
    return picture


def heading(axes: Axes, text: str) -> None:
    """Write a title above the left end of a panel.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    text : str
    """
    axes.set_title(text, loc="left", fontsize=9.5, fontweight="bold", color=INK, parse_math=False)


def rank_picture(result: Comparison) -> Figure:
    """Draw a critical-difference diagram: mean ranks on a line, and bars over models that no test tells apart.

    Parameters
    ----------
    result : Comparison
        What `milfast.uncertainty.friedman` found without a control.

    Returns
    -------
    matplotlib.figure.Figure
        After Demsar (2006, J. Mach. Learn. Res. 7): the best model is on the left. The critical difference is drawn
        where there is one, which is with Nemenyi's test.

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When `result` has no groups of models.

    Examples
    --------
    >>> from milfast.report.uncertainty_plots import rank_picture  # needs matplotlib
    >>> from milfast.uncertainty import friedman
    >>> result = friedman({"a": [0.9, 0.8, 0.7, 0.9], "b": [0.8, 0.7, 0.8, 0.8], "c": [0.5, 0.6, 0.5, 0.7]})
    >>> sorted(text.get_text() for text in rank_picture(result).axes[0].texts if len(text.get_text()) > 1)
    ['a  1.25', 'b  1.75', 'c  3.00', 'critical difference 1.66 (95 %)']
    """
    if "groups" not in result.details:
        raise ValueError("result must come from friedman without a control: it has no groups of models")
    ranks = dict(zip(result.names, result.estimates, strict=True))
    order = sorted(ranks, key=lambda name: ranks[name])
    k = len(order)
    left = (k + 1) // 2  # the better half is named on the left, the others on the right
    groups = [group for group in result.details["groups"] if len(group) > 1]
    critical = result.details.get("critical_difference")
    depth = 0.5 + 0.28 * len(groups)
    lines = max(left, k - left)
    height = depth + 0.34 * lines + 0.2
    picture = figure(6.4, 0.62 + 0.55 * height)
    axes = picture.add_subplot()
    low, high = 1, max(k, math.ceil(max(ranks.values())))
    span = high - low
    out = 0.24 * span
    axes.set(xlim=(low - out - 0.35 * span, high + out + 0.35 * span), ylim=(height, -1.25))
    axes.axis("off")
    axes.plot([low, high], [0, 0], color=INK, linewidth=1.2)
    for tick in range(low, high + 1):
        axes.plot([tick, tick], [0, -0.13], color=INK, linewidth=1.2)
        axes.annotate(str(tick), (tick, -0.2), ha="center", va="bottom", fontsize=8.5, color=INK)
    if critical is not None:
        axes.plot([low, low + critical], [-0.75, -0.75], color=INK, linewidth=1.6)
        for end in (low, low + critical):
            axes.plot([end, end], [-0.83, -0.67], color=INK, linewidth=1.6)
        [level] = {pair.difference.level for pair in result.pairs if pair.difference is not None}
        text = f"critical difference {critical:.2f} ({100 * level:.6g} %)"
        axes.text(low + critical + 0.02 * span, -0.75, text, va="center", fontsize=8.5, color=INK)
    for i, name in enumerate(order):
        rank, on_left = ranks[name], i < left
        y = depth + 0.34 * (i if on_left else k - 1 - i)
        side = low - out if on_left else high + out
        axes.plot([rank, rank, side], [0, y, y], color=GREY, linewidth=0.9, zorder=1)
        axes.plot([rank], [0], marker="o", markersize=5, color=COLOURS[i % len(COLOURS)], zorder=3)
        axes.text(
            side + (-0.015 if on_left else 0.015) * span,
            y,
            f"{name}  {rank:.2f}",
            ha="right" if on_left else "left",
            va="center",
            fontsize=9,
            color=INK,
            parse_math=False,
        )
    for i, group in enumerate(groups):
        y = 0.3 + 0.28 * i
        within = [ranks[name] for name in group]
        ends = [min(within) - 0.012 * span, max(within) + 0.012 * span]
        axes.plot(ends, [y, y], color=INK, linewidth=3.2, solid_capstyle="butt", zorder=2)
    return picture


def runs_picture(values: Mapping[str, ArrayLike], *, measure: str = "", bins: int | None = None) -> Figure:
    """Draw how the figures of runs are spread: a histogram, and their quantiles against those of a normal law.

    Parameters
    ----------
    values : mapping of str to array_like
        The figures of each model's runs, of any shape.
    measure : str
        What they are, such as ``"accuracy"``.
    bins : int, optional
        Of the histogram; by default 15 for up to 60 runs and 25 for more.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels a model. In the second the sorted figures stand over the normal quantiles at the medians of order
        statistics (Filliben 1975, Technometrics 17), with the line of a normal law of their mean and deviation.

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When there are no models, or one has fewer than three runs.

    Examples
    --------
    >>> from milfast.report.uncertainty_plots import runs_picture  # needs matplotlib
    >>> picture = runs_picture({"ours": [0.90, 0.91, 0.93, 0.92, 0.90]}, measure="accuracy")
    >>> [axes.get_title(loc="left") for axes in picture.axes]
    ['ours: 5 runs', 'against a normal law']
    """
    if not values:
        raise ValueError("values is empty: there is nothing to draw")
    arrays = {name: np.sort(np.asarray(runs, dtype=np.float64).ravel()) for name, runs in values.items()}
    for name, runs in arrays.items():
        if len(runs) < 3 or not np.isfinite(runs).all():
            raise ValueError(f"values[{name!r}] must hold three finite figures or more; got {runs!r:.60}")
    picture = figure(2 * PANEL, 2.05 * len(arrays) + 0.2)
    panels = picture.subplots(len(arrays), 2, squeeze=False)
    for (name, runs), (left, right), colour in zip(arrays.items(), panels, COLOURS * len(arrays), strict=False):
        n = len(runs)
        left.hist(runs, bins=bins or (15 if n <= 60 else 25), color=colour, edgecolor="white", linewidth=0.5)
        left.set_title(f"{name}: {n} runs", loc="left")
        left.set(xlabel=measure, ylabel="runs")
        left.yaxis.get_major_locator().set_params(integer=True)
        draw_quantiles(right, runs, colour=colour)
        right.set_title("against a normal law", loc="left")
        right.set(xlabel="normal quantile", ylabel=measure)
        for axes in (left, right):
            plain(axes, grid="y" if axes is left else "both")
            heading(axes, axes.get_title(loc="left"))
    return picture


def draw_quantiles(axes: Axes, runs: Any, *, colour: str = INK) -> None:
    """Sorted figures over normal quantiles, with the line of a normal law of their mean and deviation.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    runs : ndarray of float, shape (n,)
        Ascending.
    colour : str
    """
    from milfast.uncertainty.variance import normal_quantiles

    mean, deviation = float(runs.mean()), float(runs.std(ddof=1))
    quantiles = normal_quantiles(len(runs))
    ends = np.array([quantiles[0], quantiles[-1]])
    axes.plot(ends, mean + deviation * ends, color=OTHERS[0], linewidth=1.1, linestyle=(0, (4, 3)), zorder=1)
    axes.plot(quantiles, runs, marker="o", markersize=3.2, color=colour, linestyle="none", zorder=2)
