"""Pictures of bags: what a check lays out, or what a law does to a bag."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.checks import catalogue
from milfast.checks.catalogue import Check
from milfast.checks.codes import OWN_RECIPE
from milfast.checks.correlated import AdjacentBags
from milfast.checks.fitted import Fitted
from milfast.checks.recipe import BagRecipe
from milfast.seeding import root_seed, seed_sequence, seed_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from milfast.bags import Bags
    from milfast.seeding import RandomState

#: Colours that stay apart under the common forms of colour blindness (Okabe & Ito 2008): what fills bags, what shows a
#: concept, and the rest.
FILLER = "#b8b8b8"
CONCEPTS = ("#0072b2", "#009e73", "#56b4e9", "#cc79a7")
OTHERS = ("#d55e00", "#e69f00", "#000000")
#: Shapes, so that kinds can be told apart without any colour.
CONCEPT_SHAPES = ("s", "D", "^", "v", "p")
OTHER_SHAPES = ("X", "P", "*", "d")

INK, BAG = "#222222", "#f0f0f0"

#: Inches: width of a figure, its margin, the gap between columns, a title, a line of the legend.
WIDTH, MARGIN, GAP, TITLE, LEGEND_LINE = 7.6, 0.12, 0.3, 0.28, 0.22
#: Inches from instance to instance, at most; and the height of a bag whose instances have heights, or numbers.
STEP, HIGH, NUMBERED = 0.24, 0.5, 0.44
#: Bags of more instances than this take the whole width.
LONG = 25
#: Most instances of a bag that are drawn; how many are left out stands behind them.
SHOWN = 60
#: Most bags of a panel.
MOST_BAGS = 20
#: Where a value of 0 is drawn, from the middle of a bag downwards, and how far up one of 1, as shares of its height.
GROUND, LIFT = 0.15, 0.11

#: What may become of an instance under a law.
KEPT, COPY, ADDED = 0, 1, 2


@dataclass(frozen=True)
class Row:
    """One bag: its instances from left to right.

    Attributes
    ----------
    kinds : ndarray of int, shape (n_instances,)
    heights : ndarray of float, shape (n_instances,), optional
        Values to draw them at.
    origins : ndarray of int, shape (n_instances,), optional
        `KEPT`, `COPY` or `ADDED`.
    numbers : ndarray of int, shape (n_instances,), optional
        What to write into them.
    """

    kinds: NDArray[np.int64]
    heights: NDArray[np.float64] | None = None
    origins: NDArray[np.int64] | None = None
    numbers: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Panel:
    """Bags under a title."""

    title: str
    rows: list[Row]


@dataclass(frozen=True)
class Mark:
    """How instances of a kind are drawn, and what the legend says of it."""

    label: str
    colour: str
    shape: str


def bag_picture(
    check_or_recipe: str | Check | BagRecipe | AdjacentBags,
    *,
    spelling: str | None = None,
    n_bags: int = 3,
    random_state: RandomState = 0,
) -> Figure:
    """Draw example bags of a check: one row a bag, one dot an instance.

    There are four panels, negative and positive bags of training and of the shifted distribution; where a second model
    is trained on swapped labels, those of both models instead. For a law there are bags before and after: with numbers
    where the order changes, copies hollow, added instances in a ring. Where the order of the instances means nothing,
    they are sorted by kind.

    Parameters
    ----------
    check_or_recipe : str, Check, BagRecipe or AdjacentBags
        A check or its name, or a recipe.
    spelling : {"paper", "notebook", "strict"}, optional
        How the check is spelled; see `milfast.checks.Check.recipe`.
    n_bags : int
        Bags in each panel, 1 to 20.
    random_state : int, Generator, SeedSequence or None
        Seeds the bags.

    Returns
    -------
    matplotlib.figure.Figure
        Its method ``savefig`` writes it to a file.

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        When the check or the spelling is unknown, a recipe is given a spelling, or `n_bags` is out of range.
    TypeError
        When `check_or_recipe` is neither a check nor a recipe.

    Examples
    --------
    >>> from milfast.report.plots import bag_picture  # needs matplotlib
    >>> figure = bag_picture("presence", n_bags=2)
    >>> [panel.get_title(loc="left") for panel in figure.axes]
    ['training, negative', 'training, positive', 'shifted, negative', 'shifted, positive']
    """
    if isinstance(n_bags, bool) or not isinstance(n_bags, (int, np.integer)) or not 1 <= n_bags <= MOST_BAGS:
        raise ValueError(f"n_bags must be an integer from 1 to {MOST_BAGS}; got {n_bags!r}")
    check = catalogue.get(check_or_recipe) if isinstance(check_or_recipe, str) else check_or_recipe
    if isinstance(check, Check):
        made = check.recipe(spelling)
        assert isinstance(made, (BagRecipe, AdjacentBags))
        recipe: BagRecipe | AdjacentBags = made
        title = f"{check.code} {check.name}, spelled {spelling or check.spellings[0]}"
        title = title if len(check.spellings) > 1 else f"{check.code} {check.name}"
    elif isinstance(check, (BagRecipe, AdjacentBags)):
        if spelling is not None:
            raise ValueError(f"a recipe has no spelling, but {spelling!r} was given; name a check instead")
        recipe, title = check, f"{OWN_RECIPE} {check.name}"
    else:
        raise TypeError(f"check_or_recipe must be a check, its name or a recipe; got {type(check).__name__}")
    seed = root_seed(random_state)
    if isinstance(check, Check) and check.is_law:
        panels = _law_panels(check, recipe, n_bags, seed)
    elif isinstance(check, Check) and check.about.swapped:
        panels = _swapped_panels(recipe, n_bags, seed)
    else:
        panels = _shift_panels(recipe, n_bags, seed)
    return _figure(title, panels, _marks(recipe))


# ---------------------------------------------------------------- what there is to see


def _sample(recipe: BagRecipe | AdjacentBags, n_bags: int, seed: int, *, training: bool) -> Bags:
    return recipe.sample(2 * n_bags, training=training, random_state=seed_value(seed, int(training)))


def _row(recipe: BagRecipe | AdjacentBags, bags: Bags, index: int) -> Row:
    """A bag as it is drawn outside laws."""
    assert bags.kinds is not None
    inside = slice(bags.offsets[index], bags.offsets[index + 1])
    kinds = bags.kinds[inside].astype(np.int64)
    if isinstance(recipe, AdjacentBags):
        return Row(kinds, bags.instances[inside].astype(np.float64) @ recipe.axis)
    return Row(kinds[np.argsort(_rank(recipe, kinds), kind="stable")])


def _rank(recipe: BagRecipe, kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of kinds within a bag; the filler comes last, so that what matters stands in front."""
    return np.where(kinds == recipe.kinds.index(recipe.filler), len(recipe.kinds), kinds)


def _rows(recipe: BagRecipe | AdjacentBags, bags: Bags, label: int) -> list[Row]:
    return [_row(recipe, bags, i) for i in np.flatnonzero(bags.labels == label).tolist()]


def _shift_panels(recipe: BagRecipe | AdjacentBags, n_bags: int, seed: int) -> list[Panel]:
    splits = {split: _sample(recipe, n_bags, seed, training=split == "training") for split in ("training", "shifted")}
    return [
        Panel(f"{split}, {name}", _rows(recipe, bags, label))
        for split, bags in splits.items()
        for label, name in enumerate(("negative", "positive"))
    ]


def _swapped_panels(recipe: BagRecipe | AdjacentBags, n_bags: int, seed: int) -> list[Panel]:
    bags = _sample(recipe, n_bags, seed, training=True)
    return [
        Panel(f"{model}, {name}", _rows(recipe, bags, label ^ swapped))
        for swapped, model in enumerate(("first model", "second model"))
        for label, name in enumerate(("negative", "positive"))
    ]


@dataclass(frozen=True)
class _Watched(Fitted):
    """A fitted model that remembers the kinds of the instances which a law draws for it."""

    added: dict[bytes, int] = field(default_factory=dict)

    def draw(self, kind: int, n: int) -> NDArray[Any]:
        drawn = super().draw(kind, n)
        self.added.update((instance.tobytes(), kind) for instance in drawn)
        return drawn


def _law_panels(law: Check, recipe: BagRecipe | AdjacentBags, n_bags: int, seed: int) -> list[Panel]:
    """What the law does is not told here a second time: it is tried, and the bags that it has scored are shown."""
    assert isinstance(recipe, BagRecipe)
    before = _sample(recipe, n_bags, seed, training=True)
    labels, kinds = before.labels, before.kinds
    assert labels is not None
    assert kinds is not None
    scored: list[Bags] = []

    def score(bags: Bags) -> NDArray[Any]:
        scored.append(bags)
        return np.ones(len(bags))

    generator = np.random.Generator(np.random.PCG64(seed_sequence(seed, 2)))
    model = _Watched(score, before, labels.astype(np.float64), recipe, cut=0.5, generator=generator)
    sorts = list(law.broken(model))
    place = {instance.tobytes(): i for i, instance in enumerate(before.instances)}

    def rows(bags: Bags, label: int) -> list[Row]:
        made = []
        for bag in bags:
            keys = [instance.tobytes() for instance in bag]
            places = np.array([place.get(key, -1) for key in keys])
            owner = before.bag_index[places.max()]
            if labels[owner] != label:
                continue
            shown = np.where(places < 0, [model.added.get(key, -1) for key in keys], kinds[places]).astype(np.int64)
            again = [key in keys[:i] for i, key in enumerate(keys)]
            origins = np.where(places < 0, ADDED, np.where(again, COPY, KEPT))
            order = np.lexsort((np.where(places < 0, before.n_instances, places), _rank(recipe, shown)))
            if same_size:
                made.append(Row(shown, numbers=places - before.offsets[owner] + 1))
            else:
                made.append(Row(shown[order], origins=origins[order]))
        return made

    same_size = all(bags.n_instances == before.n_instances for bags in scored)  # so only the order can have changed
    if len(scored) > 1:  # one question a sort of bags, and all about positive ones
        return [
            Panel("positive bags, before", rows(before, 1)),
            *(Panel(f"after: {sort}", rows(bags, 1)) for sort, bags in zip(sorts, scored, strict=True)),
        ]
    return [
        Panel(f"{sort}, {when}", rows(bags, label))
        for label, sort in enumerate(("negative bags", "positive bags"))
        for when, bags in (("before", before), ("after", scored[0]))
    ]


def _marks(recipe: BagRecipe | AdjacentBags) -> list[Mark]:
    """A mark for each code of a kind."""
    if isinstance(recipe, AdjacentBags):
        return [Mark("noise", FILLER, "o"), Mark("raised", CONCEPTS[0], "s")]
    marks, concepts, others = [], 0, 0
    for component in recipe.components:
        if component.concept is not None:
            colour, shape = CONCEPTS[concepts % len(CONCEPTS)], CONCEPT_SHAPES[concepts % len(CONCEPT_SHAPES)]
            marks.append(Mark(f"{component.name}: concept {component.concept!r}", colour, shape))
            concepts += 1
        elif component.name == recipe.filler:
            marks.append(Mark(f"{component.name}: no concept", FILLER, "o"))
        else:
            colour, shape = OTHERS[others % len(OTHERS)], OTHER_SHAPES[others % len(OTHER_SHAPES)]
            marks.append(Mark(f"{component.name}: no concept", colour, shape))
            others += 1
    return marks


# ---------------------------------------------------------------- how it is drawn


def require_matplotlib() -> None:
    """Say how to install matplotlib where it is missing.

    Raises
    ------
    ImportError
        When matplotlib is missing.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("pictures need matplotlib, which is not installed: pip install 'milfast[report]'") from error


def _figure(title: str, panels: Sequence[Panel], marks: Sequence[Mark]) -> Figure:
    """Panels below each other, in two columns where bags are short enough."""
    require_matplotlib()
    from matplotlib.figure import Figure

    # places are counted in inches from the top, so that nothing depends on how wide a text turns out
    rows = [row for panel in panels for row in panel.rows]
    longest = max(len(row.kinds) if len(row.kinds) <= SHOWN else SHOWN + 4 for row in rows)
    columns = 1 if longest > LONG else 2
    wide = (WIDTH - 2 * MARGIN - GAP * (columns - 1)) / columns
    step = min(STEP, wide / (longest + 1))
    tall = max(1.35 * step, 0.17)
    if any(row.heights is not None for row in rows):
        tall = HIGH
    elif any(row.numbers is not None for row in rows):
        tall = NUMBERED
    lines = -(-len(panels) // columns)
    inner = [tall * max(len(panel.rows) for panel in panels[line::lines]) for line in range(lines)]
    entries = _legend_entries(rows, marks)
    legend_columns = 4 if len(entries) == 4 else 3
    below = LEGEND_LINE * -(-len(entries) // legend_columns) + 0.1
    height = MARGIN + TITLE + sum(inner) + TITLE * lines + below + MARGIN
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    heading = figure.text(MARGIN / WIDTH, 1 - MARGIN / height, title, fontsize=10, fontweight="bold", color=INK)
    heading.set(verticalalignment="top", parse_math=False)
    for i, panel in enumerate(panels):  # down the first column, then down the second
        column, line = divmod(i, lines)
        left = MARGIN + column * (wide + GAP)
        bottom = MARGIN + TITLE + sum(inner[: line + 1]) + TITLE * (line + 1)
        axes = figure.add_axes((left / WIDTH, 1 - bottom / height, wide / WIDTH, inner[line] / height), frame_on=False)
        axes.set(xlim=(0, wide / step), ylim=(inner[line] / tall, 0), xticks=[], yticks=[])
        axes.set_title(panel.title, loc="left", fontsize=9, color=INK, pad=3)
        for place, row in enumerate(panel.rows):
            _draw(axes, row, place + 0.5, step, tall, marks)
    legend = figure.legend(
        handles=entries,
        loc="lower left",
        bbox_to_anchor=(MARGIN / WIDTH, MARGIN / 2 / height),
        borderaxespad=0,
        borderpad=0,
        ncols=legend_columns,
        fontsize=8.5,
        frameon=False,
        labelcolor=INK,
        handletextpad=0.3,
        columnspacing=1.5,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a dollar sign in the name of a kind is one
    return figure


def _draw(axes: Axes, row: Row, place: float, step: float, tall: float, marks: Sequence[Mark]) -> None:
    """One bag, its middle at `place`; sizes of marks and widths of lines are in points, 72 an inch."""
    n = min(len(row.kinds), SHOWN)
    across = np.arange(n) + 0.5
    up = np.full(n, place)
    size = 72 * 0.66 * step
    if row.heights is not None:
        _bag(axes, 0, n, place, 0.92 * tall, ends="butt")
        ground = place + GROUND
        axes.plot([0, n], [ground, ground], color="#cccccc", linewidth=0.6, clip_on=False, zorder=1)
        up = np.round(ground - np.clip(LIFT * row.heights[:n], -0.22, 0.5), 2)
    elif row.numbers is not None:
        _bag(axes, 0, n, place, 0.85 * tall, ends="butt")
        up -= 0.13
        for x, number in zip(across, row.numbers[:n], strict=True):
            axes.text(x, place + 0.24, str(number), fontsize=7, color=INK, ha="center", va="center")
    else:
        # a little longer than from middle to middle: a line of no length has no ends
        _bag(axes, 0.5, n - 0.49, place, min(1.1 * step, 0.9 * tall), ends="round")
    origins = np.zeros(n, dtype=np.int64) if row.origins is None else row.origins[:n]
    for kind, origin in sorted(set(zip(row.kinds[:n].tolist(), origins.tolist(), strict=True))):
        there = (row.kinds[:n] == kind) & (origins == origin)
        _put(axes, across[there], up[there], marks[kind], size, origin)
    if n < len(row.kinds):
        axes.text(n + 0.6, place, f"+ {len(row.kinds) - n:,}", fontsize=7, color=INK, va="center")


def _bag(axes: Axes, left: float, right: float, place: float, tall: float, *, ends: str) -> None:
    """What instances lie on."""
    axes.plot(
        [left, right], [place, place], color=BAG, linewidth=72 * tall, solid_capstyle=ends, clip_on=False, zorder=0
    )


def _put(axes: Axes, x: Any, y: Any, mark: Mark, size: float, origin: int) -> None:
    """Instances of one kind and origin."""
    if origin == ADDED:
        axes.plot(x, y, **RING, markersize=1.45 * size, linestyle="none", clip_on=False, zorder=2)
    axes.plot(
        x,
        y,
        linestyle="none",
        marker=mark.shape,
        markersize=size * (0.85 if mark.shape in "sDdp" else 1),
        markerfacecolor="white" if origin == COPY else mark.colour,
        markeredgecolor=mark.colour,
        markeredgewidth=0.9 if origin == COPY else 0,
        clip_on=False,
        zorder=3,
    )


#: A copy in the legend, and the ring around an instance that was added.
HOLLOW: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "markeredgecolor": INK}
RING: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "markeredgecolor": INK, "markeredgewidth": 1.1}


def _legend_entries(rows: Sequence[Row], marks: Sequence[Mark]) -> list[Any]:
    """Kinds that are drawn, and what hollow and ringed marks mean where there are any."""
    from matplotlib.lines import Line2D

    drawn = sorted({int(kind) for row in rows for kind in row.kinds})
    entries = [
        Line2D([], [], linestyle="none", marker=m.shape, markersize=6.5, color=m.colour, label=m.label)
        for m in (marks[kind] for kind in drawn)
    ]
    origins = {int(origin) for row in rows if row.origins is not None for origin in row.origins}
    if COPY in origins:
        entries.append(Line2D([], [], linestyle="none", markersize=6.5, **HOLLOW, label="hollow: a copy"))
    if ADDED in origins:
        entries.append(Line2D([], [], linestyle="none", markersize=8.5, **RING, label="in a ring: added"))
    if any(row.numbers is not None for row in rows):
        entries.append(Line2D([], [], linestyle="none", label="numbers: place of the instance before"))
    if any(row.heights is not None for row in rows):
        entries.append(Line2D([], [], linestyle="none", label="height: value along the raised direction"))
    return entries
