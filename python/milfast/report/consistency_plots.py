"""Figures of error consistency: curves, heat maps, histograms, and what models and votes gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from milfast._core import intersections, sample_counts
from milfast.consistency.voting import MajorityVote
from milfast.report.plots import CONCEPTS, FILLER, INK, OTHERS, require_matplotlib

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from milfast.consistency.cross_validation import CrossValidated
    from milfast.consistency.curve import ConsistencyCurve
    from milfast.consistency.rolling import CorrelationBand, RollingCorrelation
    from milfast.consistency.selection import ModelSelection

#: The two quantities have one colour and one shape each in all figures; both stay apart without colour.
ACCURACY, CONSISTENCY = CONCEPTS[0], OTHERS[0]
ACCURACY_SHAPE, CONSISTENCY_SHAPE = "o", "^"
#: Several models of one figure.
COLOURS = (CONCEPTS[0], OTHERS[0], CONCEPTS[1], CONCEPTS[3], OTHERS[1], CONCEPTS[2], INK)
SHAPES = ("o", "s", "^", "D", "v", "P", "X")
#: Points: titles, labels, and numbers at the axes.
TITLE, LABEL, TICK = 10, 9, 8.5
#: Heat maps of more sets than this are ordered without looking for the best order of the leaves, which takes long.
BEST_ORDER = 300
#: Bars of a histogram between the samples that are never and that are always wrong.
BARS = 20


def curve_plot(curve: ConsistencyCurve, *, frac: float = 2 / 3, it: int = 3) -> Figure:
    """Accuracy and error consistency against the size of the subsets, each with its own axis and its LOWESS line.

    As figures 1 to 8 of Levman et al. (2023): one point a subset.

    Parameters
    ----------
    curve : ConsistencyCurve
    frac, it : float, int
        As in `milfast.consistency.lowess`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        When matplotlib is missing.
    """
    figure, axes = _one(6.4, 3.9)
    right = axes.twinx()
    smooth = curve.lowess(frac=frac, it=it)
    x = 100 * curve.proportions
    for side, values, line, name, colour, shape in (
        (axes, curve.accuracy, smooth.accuracy, "mean accuracy", ACCURACY, ACCURACY_SHAPE),
        (right, curve.consistency, smooth.consistency, "average error consistency", CONSISTENCY, CONSISTENCY_SHAPE),
    ):
        side.plot(x, 100 * values, shape, markersize=3.6, color=colour, alpha=0.5, markeredgewidth=0)
        side.plot(x, 100 * line, color=colour, linewidth=2, label=name)
        side.set_ylabel(f"{name}, %", color=colour, fontsize=LABEL)
        side.tick_params(axis="y", colors=colour, labelsize=TICK)
        side.tick_params(axis="x", labelsize=TICK)
    axes.set_xlabel(f"subset, % of {curve.n_total:,} samples", fontsize=LABEL)
    _title(axes, f"{curve.model}: {len(x)} subsets, {curve.runs} runs of {curve.folds} folds on each")
    _plain(axes)
    right.spines["top"].set_visible(False)
    axes.legend(
        handles=[side.get_lines()[1] for side in (axes, right)],
        fontsize=TICK,
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=2,
        labelcolor=INK,
    )
    return figure


def heat_map(result: CrossValidated, *, most: int = 500) -> Figure:
    """Error consistency of all pairs of runs, similar runs next to each other.

    Runs are in the order of the leaves of average-linkage clustering of 1 - error consistency, so groups of runs that
    err alike are squares along the diagonal. The diagonal itself is left blank: each run agrees with itself.

    Parameters
    ----------
    result : CrossValidated
    most : int
        Runs that are shown at most: of more, so many that lie evenly among them.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When there is one run only, or `most` is below 2.
    """
    if most < 2:
        raise ValueError(f"most must be at least 2; got {most}")
    n_sets = len(result.errors)
    if n_sets < 2:
        raise ValueError("result has one run: a heat map compares at least two")
    errors = result.errors[np.linspace(0, n_sets - 1, min(n_sets, most)).round().astype(np.int64)]
    both = intersections(errors, n_samples=result.n_samples).astype(np.float64)
    either = np.add.outer(sizes := both.diagonal(), sizes) - both
    matrix = np.divide(both, either, out=np.full(both.shape, np.nan), where=either > 0)
    matrix = matrix[np.ix_(*[_similar_together(matrix)] * 2)]
    np.fill_diagonal(matrix, np.nan)
    figure, axes = _one(5.2, 4.5)
    from matplotlib import colormaps

    colours = colormaps["cividis"].with_extremes(bad="white")  # dark to light for all eyes
    shown = axes.imshow(100 * matrix, cmap=colours, interpolation="nearest", origin="upper")
    bar = figure.colorbar(shown, ax=axes, shrink=0.85)
    bar.set_label("error consistency, %", fontsize=LABEL, color=INK)
    bar.ax.tick_params(labelsize=TICK)
    axes.set_xlabel("runs, similar ones next to each other", fontsize=LABEL)
    axes.set_ylabel("runs, in the same order", fontsize=LABEL)
    axes.tick_params(labelsize=TICK)
    pairs = matrix[np.triu_indices(len(matrix), 1)]
    left_out = f", {len(matrix)} of {n_sets} runs" if len(matrix) < n_sets else f", {n_sets} runs"
    mean = f"{100 * np.nanmean(pairs):.1f} %" if np.isfinite(pairs).any() else "undefined"
    _title(axes, f"{result.model}{left_out}, mean {mean}")
    return figure


def _similar_together(matrix: NDArray[np.float64]) -> NDArray[np.int64]:
    """Order of the rows of a similarity matrix in which similar ones are neighbours."""
    # Imported here because scipy takes longer to load than the rest of milfast.
    from scipy.cluster.hierarchy import leaves_list, linkage

    first, second = np.triu_indices(len(matrix), 1)
    distances = 1 - np.nan_to_num(matrix[first, second], nan=1.0)  # two runs without an error are alike
    tree = linkage(distances, method="average", optimal_ordering=len(matrix) <= BEST_ORDER)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def error_histogram(result: CrossValidated) -> Figure:
    """How many samples are wrong in how many of the runs.

    Samples that are wrong in none and in all of them have bars of their own: only those between make runs differ.

    Parameters
    ----------
    result : CrossValidated

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        When matplotlib is missing.
    """
    n_sets, n = len(result.errors), int(result.n_samples)
    counts = sample_counts(result.errors, n_samples=n).astype(np.int64)
    between = counts[(counts > 0) & (counts < n_sets)]
    bars = max(1, min(BARS, n_sets - 1))
    edges = np.linspace(0, 100, bars + 1)
    # in whole numbers, so that no sample falls beside its bar
    heights = np.bincount((between - 1) * bars // max(n_sets - 1, 1), minlength=bars)
    figure, axes = _one(6.4, 3.6)
    never, always = int((counts == 0).sum()), int((counts == n_sets).sum())
    gap = 100 / bars
    for place, height, colour, name in (
        (-1.5 * gap, never, FILLER, f"in none: {never:,}"),
        (100 + 1.5 * gap, always, OTHERS[0], f"in all, unpredictable: {always:,}"),
    ):
        axes.bar(place, height, width=1.6 * gap, color=colour, label=name)
    axes.bar(
        edges[:-1] + gap / 2, heights, width=0.92 * gap, color=CONCEPTS[0], label=f"in some: {int(heights.sum()):,}"
    )
    axes.set_yscale("log")
    axes.set_ylim(0.7, 2 * max(never, always, int(heights.max()), 1))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xticks([-1.5 * gap, 0, 25, 50, 75, 100, 100 + 1.5 * gap], ["none", "0", "25", "50", "75", "100", "all"])
    axes.get_xticklabels()[1].set_horizontalalignment("left")
    axes.get_xticklabels()[5].set_horizontalalignment("right")
    axes.set_xlabel(f"runs that have the sample wrong, % of {n_sets:,}", fontsize=LABEL)
    axes.set_ylabel("samples, logarithmic", fontsize=LABEL)
    axes.tick_params(labelsize=TICK)
    _title(axes, f"{result.model}: {n:,} samples by how often they are wrong")
    _plain(axes)
    handles, labels = axes.get_legend_handles_labels()
    order = [0, 2, 1]
    axes.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        fontsize=TICK,
        frameon=False,
        loc="upper center",
        labelcolor=INK,
        title="samples that are wrong",
        title_fontsize=TICK,
    )
    return figure


def rolling_plot(correlations: Sequence[RollingCorrelation], *, smooth: bool = True) -> Figure:
    """Correlation of the proportion with accuracy and with error consistency, in windows along a curve.

    As figures S1 to S8 of Levman et al. (2023): a column for each width of window, the bootstrap mean as a line and the
    percentiles as a band.

    Parameters
    ----------
    correlations : sequence of RollingCorrelation
        Of `ConsistencyCurve.rolling_correlation`.
    smooth : bool
        Whether lines and bands are smoothed by LOWESS.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When there is nothing to draw.
    """
    if not correlations:
        raise ValueError("correlations is empty: at least one width of window is needed")
    require_matplotlib()
    from matplotlib.figure import Figure

    columns = len(correlations)
    figure = Figure(figsize=(1.2 + 2.3 * columns, 4.4), facecolor="white", layout="constrained")
    panels = figure.subplots(2, columns, sharex=True, sharey=True, squeeze=False)
    bands = [rolling.lowess() if smooth else rolling for rolling in correlations]
    ends = [end for band in bands for of in (band.accuracy, band.consistency) for end in (of.low, of.high)]
    height = min(1.0, 1.1 * max((float(np.abs(end[np.isfinite(end)]).max(initial=0.1)) for end in ends), default=1.0))
    for column, (rolling, shown) in enumerate(zip(correlations, bands, strict=True)):
        x = 100 * shown.proportion
        for row, (name, colour) in enumerate((("accuracy", ACCURACY), ("consistency", CONSISTENCY))):
            axes = panels[row, column]
            band: CorrelationBand = getattr(shown, name)
            axes.axhline(0, color=INK, linewidth=0.8, linestyle=":")
            axes.fill_between(x, band.low, band.high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(x, band.mean, color=colour, linewidth=1.8)
            axes.set_ylim(-height, height)
            axes.tick_params(labelsize=TICK)
            _plain(axes)
        panels[0, column].set_title(f"window of {rolling.window:,} {rolling.of}", fontsize=LABEL, color=INK)
        panels[1, column].set_xlabel("mean proportion, %", fontsize=LABEL, color=INK)
    panels[0, 0].set_ylabel("r of proportion\nand accuracy", fontsize=LABEL, color=ACCURACY)
    panels[1, 0].set_ylabel("r of proportion\nand error consistency", fontsize=LABEL, color=CONSISTENCY)
    first = correlations[0]
    figure.suptitle(
        f"bootstrap mean and {100 * first.level:g} % band of {first.n_boot} resamples a window"
        + (", smoothed" if smooth else ""),
        fontsize=TITLE,
        color=INK,
    )
    return figure


def selection_plot(selection: ModelSelection) -> Figure:
    """Models by accuracy and error consistency, with their intervals and the Pareto front.

    Parameters
    ----------
    selection : ModelSelection
        Of `milfast.consistency.select_model`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When every model was left out.
    """
    if not selection.scores:
        raise ValueError("selection has no model to draw: all were left out")
    figure, axes = _one(6.4, 4.4)
    for i, score in enumerate(selection.scores):
        across, up = score.accuracy, score.consistency
        axes.errorbar(
            100 * across.estimate,
            100 * up.estimate,
            xerr=100 * np.array([[across.estimate - across.low], [across.high - across.estimate]]),
            yerr=100 * np.array([[up.estimate - up.low], [up.high - up.estimate]]),
            fmt=SHAPES[i % len(SHAPES)],
            color=COLOURS[i % len(COLOURS)],
            markersize=8 if score.on_front else 6,
            markerfacecolor=COLOURS[i % len(COLOURS)] if score.on_front else "white",
            elinewidth=1.1,
            capsize=3,
            zorder=3,
            label=f"{score.name}, on the front in {100 * score.front_frequency:.0f} %",
        )
    _draw_front(axes, selection)
    axes.set_xlabel("mean accuracy, %", fontsize=LABEL)
    axes.set_ylabel("average error consistency, %", fontsize=LABEL)
    axes.tick_params(labelsize=TICK)
    _title(axes, f"verdict: {selection.verdict}{f' {selection.choice}' if selection.choice else ''}")
    _plain(axes)
    _outside(axes, f"{100 * selection.level:g} % intervals over\n{selection.n_samples:,} samples", selection.excluded)
    return figure


def _draw_front(axes: Axes, selection: ModelSelection) -> None:
    """The line up and right of which no model lies, from edge to edge."""
    front = sorted((s.accuracy.estimate, s.consistency.estimate) for s in selection.scores if s.on_front)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    x = [left, *(100 * accuracy for accuracy, _ in front), 100 * front[-1][0]]
    y = [100 * front[0][1], *(100 * consistency for _, consistency in front), bottom]
    axes.step(x, y, where="pre", color=INK, linewidth=1, linestyle="--", zorder=1, label="Pareto front")
    axes.set(xlim=(left, right), ylim=(bottom, top))


def vote_plot(votes: MajorityVote | Mapping[str, MajorityVote]) -> Figure:
    """What a majority vote gains against one run, by the number of voters.

    Parameters
    ----------
    votes : MajorityVote or dict of str to MajorityVote
        Of `milfast.consistency.majority_vote`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When there is nothing to draw.
    """
    shown = {votes.model: votes} if isinstance(votes, MajorityVote) else dict(votes)
    if not shown:
        raise ValueError("votes is empty: at least one is needed")
    figure, axes = _one(6.4, 3.9)
    axes.axhline(0, color=INK, linewidth=0.8, linestyle=":")
    # colours and shapes go by the order in which models are given, as in a figure of their selection
    places = {name: i for i, name in enumerate(shown)}
    for name, vote in sorted(shown.items(), key=lambda item: item[1].consistency):
        i = places[name]
        colour = COLOURS[i % len(COLOURS)]
        low, middle, high = ([100 * getattr(gain, part) for gain in vote.gain] for part in ("low", "estimate", "high"))
        axes.fill_between(vote.voters, low, high, color=colour, alpha=0.13, linewidth=0)
        axes.plot(
            vote.voters,
            middle,
            color=colour,
            marker=SHAPES[i % len(SHAPES)],
            markersize=5,
            linewidth=1.6,
            label=f"{name}: AEC {100 * vote.consistency:.1f} %",
        )
    longest = max(shown.values(), key=lambda vote: vote.voters[-1]).voters
    axes.set_xscale("log")
    axes.set_xticks(ticks := _apart(longest), [str(k) for k in ticks])
    axes.minorticks_off()
    axes.set_xlabel("voters, logarithmic", fontsize=LABEL)
    axes.set_ylabel("accuracy of the vote less mean accuracy,\npercentage points", fontsize=LABEL)
    axes.tick_params(labelsize=TICK)
    level = next(iter(shown.values())).gain[0].level
    _title(axes, "gain of a majority vote")
    _plain(axes)
    _outside(axes, f"least consistent first;\n{100 * level:g} % intervals over samples", {})
    return figure


# -------------------------------------------------------------------- what figures share


def _one(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of one panel; sizes in inches."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white", layout="constrained")
    return figure, figure.add_subplot()


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=TITLE, color=INK).set_parse_math(False)


def _plain(axes: Axes) -> None:
    axes.spines["top"].set_visible(False)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)


def _outside(axes: Axes, title: str, left_out: Mapping[str, Any]) -> None:
    """A legend right of the panel, which never covers a point."""
    from matplotlib.lines import Line2D

    handles, _ = axes.get_legend_handles_labels()
    handles += [Line2D([], [], linestyle="none", label=f"{name}: left out") for name in left_out]
    legend = axes.legend(
        handles=handles,
        title=title,
        fontsize=TICK,
        title_fontsize=TICK,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        borderaxespad=0,
        alignment="left",
        labelcolor=INK,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a dollar sign in the name of a model is one


def _apart(numbers: Sequence[int]) -> list[int]:
    """Those of ascending numbers that a logarithmic axis has room for; the last one always."""
    kept = [numbers[-1]]
    for number in reversed(numbers[:-1]):
        if number * 1.35 < kept[-1]:
            kept.append(number)
    return kept[::-1]
