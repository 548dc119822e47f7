"""Predictions of several models from CSV files, joined by item, seed and fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.csv_files import CLUSTERS, column, names_of, number, records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

#: Names of columns that are taken for what they say, the first that is there.
USUAL: dict[str, tuple[str, ...]] = {
    "labels": ("label", "labels", "target", "y"),
    "id": ("id", "item", "bag_id", "filename"),
    "folds": ("fold",),
    "seeds": ("seed", "run"),
    "clusters": CLUSTERS,
}
PREDICTED = ("score", "scores", "prediction", "predictions", "predicted")
#: How many missing items a message names.
NAMED = 5


@dataclass(frozen=True)
class Predictions:
    """What `milfast.compare` takes.

    Attributes
    ----------
    predictions : dict of str to ndarray, shape (n_seeds, n)
    labels : ndarray, shape (n,)
    folds : ndarray, shape (n,) or (n_seeds, n), or None
    seeds : list of str, or None
    clusters : ndarray, shape (n,), or None
    """

    predictions: dict[str, NDArray[Any]]
    labels: NDArray[Any]
    folds: NDArray[Any] | None
    seeds: list[str] | None
    clusters: NDArray[Any] | None


@dataclass
class _Model:
    """Cells of one model by seed and item, with the places of their rows."""

    title: str
    cells: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass
class _Items:
    """What is known of the items, and where it was read first."""

    by_id: bool
    labels: dict[str, tuple[str, str]] = field(default_factory=dict)
    clusters: dict[str, tuple[str, str]] = field(default_factory=dict)
    folds: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def note(self, kind: str, key: Any, value: str, place: str) -> None:
        """Write something down, or refuse it where it contradicts what was read before."""
        known: dict[Any, tuple[str, str]] = getattr(self, f"{kind}s")
        before = known.setdefault(key, (value, place))
        if before[0] == value or (number(value) is not None and number(before[0]) == number(value)):
            return
        item = key[-1] if isinstance(key, tuple) else key
        text = f"{place}: {kind} {value!r} where {before[1]} has {before[0]!r}"
        if self.by_id:
            raise ValueError(f"{text} for item {item!r}: the files are about different items or data")
        raise ValueError(
            f"{text}: without a column id, rows must be the same items in the same order; add or name one (--id)"
        )


def read_predictions(
    files: Sequence[str], *, scores: Sequence[str] | None = None, columns: Mapping[str, str | None], text_labels: bool
) -> Predictions:
    """Read predictions and join them.

    Parameters
    ----------
    files : sequence of str
        A model a file, named after it, or several models in the columns of a file.
    scores : sequence of str, optional
        The columns of predictions; by default ``score`` or ``prediction``, or, in a single file without them, every
        column that has no other meaning.
    columns : mapping
        Columns that were named, for the keys of `USUAL`; None for the usual names.
    text_labels : bool
        Whether labels stay text.

    Returns
    -------
    Predictions

    Raises
    ------
    ValueError
        When a column is missing, files hold different items, an item comes twice, or there are fewer than two models.
    """
    tables = [_table(file) for file in files]
    names = _names([title for title, _, _ in tables])
    models: dict[str, _Model] = {}
    has_id = [_place(title, header, columns, "id") is not None for title, header, _ in tables]
    if any(has_id) and not all(has_id):
        with_id, without = (next(t[0] for t, has in zip(tables, has_id, strict=True) if has == kind) for kind in (1, 0))
        raise ValueError(f"{with_id} has a column of ids and {without} has none: all files need one, or none")
    items = _Items(all(has_id))
    for (title, header, rows), name in zip(tables, names, strict=True):
        _read_table(title, header, rows, name, items, models, scores, columns, alone=len(files) == 1)
    if len(models) < 2:
        raise ValueError(
            f"a comparison needs two models and there is {next(iter(models))!r} alone: give another file, or name the "
            "columns of several models with --scores"
        )
    seeds, order = _require_alike(models, items.by_id)
    labels = [items.labels[item][0] for item in order]
    words = _words(models, labels, scores_only=text_labels)
    return Predictions(
        predictions={name: _rows(model, seeds, order, words) for name, model in models.items()},
        labels=_values(labels, text=text_labels, words=words),
        folds=_folds(items, seeds, order),
        seeds=None if seeds == [""] else seeds,
        clusters=_clusters(items, order),
    )


def _table(file: str) -> tuple[str, list[str], list[tuple[str, list[str]]]]:
    with records(file) as (title, header, rows):
        names = names_of(title, header)
        found = []
        for place, row in rows:
            if len(row) != len(names):
                raise ValueError(f"{place}: {len(row)} cells where the header has {len(names)}")
            found.append((place, [cell.strip() for cell in row]))
    if not found:
        raise ValueError(f"{title} has a header but no rows")
    return title, names, found


def _names(titles: Sequence[str]) -> list[str]:
    """Names of files without what all have in common: their stems, or as they were given where these are the same."""
    stems = [Path(title).name.removesuffix(".gz").removesuffix(".csv") for title in titles]
    files = [Path(title).resolve() for title in titles]
    for title, file in zip(titles, files, strict=True):
        if files.count(file) > 1:
            raise ValueError(f"{title} is given twice: a model is no rival to itself")
    return stems if len(set(stems)) == len(stems) else list(titles)


def _place(title: str, header: Sequence[str], columns: Mapping[str, str | None], what: str) -> int | None:
    wanted = columns.get(what)
    if wanted is None and not set(USUAL[what]) & set(header):
        return None
    return column(title, header, wanted, USUAL[what], f"--{what}")


def _read_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[tuple[str, list[str]]],
    name: str,
    items: _Items,
    models: dict[str, _Model],
    scores: Sequence[str] | None,
    columns: Mapping[str, str | None],
    *,
    alone: bool,
) -> None:
    label_at = column(title, header, columns.get("labels"), USUAL["labels"], "--labels")
    places = {what: _place(title, header, columns, what) for what in ("id", "folds", "seeds", "clusters")}
    taken = {label_at, *(place for place in places.values() if place is not None)}
    predicted = _predicted(title, header, scores, taken, alone=alone)
    for at in predicted:
        if at in taken or predicted.count(at) > 1:
            raise ValueError(f"{title}: the column {header[at]!r} is named twice, the second time as predictions")
    several = len(predicted) > 1
    for at in predicted:
        model = header[at] if alone and several else f"{name}:{header[at]}" if several else name
        if model in models:
            raise ValueError(f"{title} and {models[model].title} both have a model called {model!r}: rename a file")
        models[model] = _Model(title)
    mine = list(models)[-len(predicted) :]
    counted: dict[str, int] = {}
    for place, row in rows:
        seed = row[places["seeds"]] if places["seeds"] is not None else ""
        number_of = counted[seed] = counted.get(seed, 0) + 1
        for at in (label_at, *(at for at in places.values() if at is not None), *predicted):
            if not row[at]:
                raise ValueError(
                    f"{place}: the cell in column {header[at]!r} is empty: fill it in, or drop the item from all files"
                )
        item = row[places["id"]] if places["id"] is not None else str(number_of)
        items.note("label", item, row[label_at], place)
        if places["clusters"] is not None:
            items.note("cluster", item, row[places["clusters"]], place)
        if places["folds"] is not None:
            items.note("fold", (seed, item), row[places["folds"]], place)
        for model, at in zip(mine, predicted, strict=True):
            cells = models[model].cells.setdefault(seed, {})
            if item in cells:
                raise ValueError(
                    f"{place}: item {item!r} comes twice"
                    + (f" with seed {seed!r}" if seed else "; a column seed tells training runs apart")
                    + _twice(header, places["id"])
                )
            cells[item] = row[at]


def _twice(header: Sequence[str], id_at: int | None) -> str:
    """What else may be meant where an item comes twice."""
    if "model" in header:
        return "; models stand in a file each, or in a column each, and not below each other"
    if id_at is None:
        return ""
    return f"; where {header[id_at]!r} is what several items belong to, name it with --clusters and another with --id"


def _predicted(
    title: str, header: Sequence[str], scores: Sequence[str] | None, taken: set[int], *, alone: bool
) -> list[int]:
    if scores is not None:
        there = [name for name in scores if name in header]
        wanted = scores if alone or not there else there
        return [column(title, header, name, (), "--scores") for name in wanted]
    usual = [name for name in PREDICTED if name in header]
    if usual:
        return [column(title, header, usual[0], (), "--scores")]
    rest = [i for i, name in enumerate(header) if i not in taken and name]
    if rest and (alone or len(rest) == 1):
        for i in rest:
            column(title, header, header[i], (), "--scores")  # refuses two of one name
        return rest
    raise ValueError(
        f"{title} has no column {' or '.join(PREDICTED[:3])}; it has {', '.join(header)}: name one with --scores"
    )


def _require_alike(models: Mapping[str, _Model], by_id: bool) -> tuple[list[str], list[str]]:
    """Seeds and items, which must be the same for all models."""
    first, *rest = models
    seeds = list(models[first].cells)
    order = list(models[first].cells[seeds[0]])
    known = set(order)
    for name in (first, *rest):
        cells = models[name].cells
        if set(cells) != set(seeds):
            theirs, ours = (", ".join(map(repr, sorted(s))) or "none" for s in (cells, seeds))
            raise ValueError(f"{models[name].title} has the seeds {theirs} and {models[first].title} has {ours}")
        for seed in seeds:
            there = set(cells[seed])
            if there == known:
                continue
            lost, extra = [i for i in order if i not in there], [i for i in cells[seed] if i not in known]
            run = f" with seed {seed!r}" if seed else ""
            if not by_id:
                raise ValueError(
                    f"{models[name].title} has {len(there)} rows{run} and {models[first].title} has {len(known)}: "
                    "models are compared on the same items; a column id says which these are"
                )
            said = []
            if lost:
                said.append(f"lacks {_some(lost)}")
            if extra:
                said.append(f"has {_some(extra)} besides")
            raise ValueError(
                f"{models[name].title}{run} {' and '.join(said)}, compared with {models[first].title}: models are "
                "compared on the same items; keep those that all files have"
            )
    return seeds, order


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return f"item{'' if len(ids) == 1 else 's'} {', '.join(map(repr, ids[:NAMED]))}{more}"


def _words(models: Mapping[str, _Model], labels: Sequence[str], *, scores_only: bool) -> dict[int | float, str] | None:
    """How the numbers among the classes are written, where classes are words, or one of them; None for numbers."""
    written: dict[int | float, str] = {}
    for label in labels:
        if (value := number(label)) is not None:
            written.setdefault(value, label)
    odd, is_class = "", True
    for model in models.values():
        for cells in model.cells.values():
            for item, cell in cells.items():
                value = number(cell)
                if value is None:
                    odd = odd or f"{model.title}: the prediction {cell!r} for item {item!r}"
                elif value not in written:
                    is_class = False
    words = any(number(label) is None for label in labels)
    if odd and (scores_only or not (words or is_class)):
        raise ValueError(f"{odd} is not a number")
    # scores of items with labels that are words need --pos-label, and stay numbers
    return written if odd or (words and is_class and not scores_only) else None


def _rows(
    model: _Model, seeds: Sequence[str], order: Sequence[str], words: Mapping[int | float, str] | None
) -> NDArray[Any]:
    """All cells of a model, of one type."""
    flat = _values([model.cells[seed][item] for seed in seeds for item in order], words=words)
    return flat.reshape(len(seeds), len(order))


def _values(
    cells: Sequence[str], *, text: bool = False, words: Mapping[int | float, str] | None = None
) -> NDArray[Any]:
    """Numbers where all are numbers, or the text itself; with words, text in which a number is written in one way."""
    if words is not None:
        values = [number(cell) for cell in cells]
        return np.array([cell if v is None else words.get(v, cell) for cell, v in zip(cells, values, strict=True)])
    if not text:
        numbers = [number(cell) for cell in cells]
        if all(value is not None for value in numbers):
            return np.array(numbers)
    return np.array(cells)


def _folds(items: _Items, seeds: Sequence[str], order: Sequence[str]) -> NDArray[Any] | None:
    if not items.folds:
        return None
    for seed in seeds:
        for item in order:
            if (seed, item) not in items.folds:
                raise ValueError(f"item {item!r} has no fold{f' with seed {seed!r}' if seed else ''}")
    flat = _values([items.folds[seed, item][0] for seed in seeds for item in order])
    rows = flat.reshape(len(seeds), len(order))
    return rows[0] if len(seeds) == 1 or (rows == rows[0]).all() else rows


def _clusters(items: _Items, order: Sequence[str]) -> NDArray[Any] | None:
    if not items.clusters:
        return None
    for item in order:
        if item not in items.clusters:
            raise ValueError(f"item {item!r} has no cluster")
    return _values([items.clusters[item][0] for item in order])
