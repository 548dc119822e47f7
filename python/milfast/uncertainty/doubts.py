"""Where the design of a comparison does not support what one would like to say of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from milfast.uncertainty.comparison import Comparison
    from milfast.uncertainty.design import Design
    from milfast.uncertainty.intervals import Interval

#: Items of a class, discordant items, clusters and seeds below which something is said.
FEW_ITEMS, FEW_OF_A_CLASS, FEW_DISCORDANT, FEW_CLUSTERS, FEW_SEEDS = 30, 10, 10, 20, 5


@dataclass(frozen=True)
class Doubt:
    """A warning about a design.

    Attributes
    ----------
    code : str
        A word for programs, such as ``"one-seed"``.
    text : str
        What it means, for people.
    """

    code: str
    text: str


def doubts(
    design: Design,
    *,
    estimates: Sequence[Interval],
    pairs: Sequence[Comparison],
    has_margin: bool,
    selected_on_test: bool,
    messages: Sequence[str],
) -> tuple[Doubt, ...]:
    """Warnings about a design and what came out of it.

    Parameters
    ----------
    design : Design
    estimates : sequence of Interval
        The figure of each model.
    pairs : sequence of Comparison
    has_margin : bool
        Whether equivalence was tested.
    selected_on_test : bool
        Whether checkpoints or parameters were chosen on the items that are tested.
    messages : sequence of str
        What the tests themselves had to say.

    Returns
    -------
    tuple of Doubt
    """
    found = [
        *_items(design, estimates),
        *_pairs(design, pairs),
        *_overlaps(design, estimates, pairs),
        *_nothing_found(pairs, has_margin),
        *_training(design),
        *_clusters(design),
    ]
    if selected_on_test:
        found.append(
            Doubt(
                "selected-on-test",
                "checkpoints or parameters were chosen on the items that are tested here: the figures are too good, "
                "and most so for the model that was tried most often",
            )
        )
    if len(design.names) > 2:
        n = len(pairs)
        found.append(
            Doubt(
                "many-comparisons",
                f"{n} pairs were tested: read the p-values adjusted for their number (Holm), and take the figure of "
                "the best of several models for too good",
            )
        )
    found += [Doubt("said-by-a-test", message) for message in dict.fromkeys(messages)]
    return tuple(found)


def _items(design: Design, estimates: Sequence[Interval]) -> Iterator[Doubt]:
    n, counts = design.n, design.counts
    if n < FEW_ITEMS:
        yield Doubt("few-items", f"{n} items: intervals and tests for large samples may be off")
    if design.positive is not None:
        rare = min(counts, key=lambda kind: counts[kind])
        if counts[rare] < FEW_OF_A_CLASS:
            yield Doubt(
                "rare-class",
                f"{counts[rare]} {rare} item{'' if counts[rare] == 1 else 's'}: the AUC rests on each of them",
            )
        if design.two_valued:
            yield Doubt(
                "two-valued-scores",
                f"the scores of {' and '.join(design.two_valued)} have two values: that is the AUC of one threshold, "
                "(sensitivity + specificity) / 2; pass the scores from before the decision",
            )
        return
    usual = max(counts, key=lambda kind: counts[kind])
    share = counts[usual] / n
    below = [name for name, e in zip(design.names, estimates, strict=True) if not e.low > share]
    if len(counts) > 1 and below and share > 0.5:
        yield Doubt(
            "majority",
            f"always answering {usual!r} would be right about {share:.3g} of the items; not shown to beat that: "
            f"{', '.join(below)}",
        )
    rare = min(counts, key=lambda kind: counts[kind])
    if counts[rare] < FEW_OF_A_CLASS and n >= FEW_ITEMS and len(counts) > 1:
        yield Doubt(
            "rare-class",
            f"{counts[rare]} item{'' if counts[rare] == 1 else 's'} of class {rare!r}: an accuracy says next to "
            "nothing about it",
        )


def _pairs(design: Design, pairs: Sequence[Comparison]) -> Iterator[Doubt]:
    for pair in pairs:
        if "McNemar" not in pair.method:
            continue
        telling = pair.details["first_only"] + pair.details["second_only"]
        if 0 < telling < FEW_DISCORDANT:
            yield Doubt(
                "few-discordant",
                f"only {telling} of {design.n} items tell {pair.names[0]} and {pair.names[1]} apart: the test rests on "
                "those",
            )


def _overlaps(design: Design, estimates: Sequence[Interval], pairs: Sequence[Comparison]) -> Iterator[Doubt]:
    names = []
    for (a, b), pair in zip(combinations(range(len(design.names)), 2), pairs, strict=True):
        assert pair.difference is not None
        overlap = estimates[a].low <= estimates[b].high and estimates[b].low <= estimates[a].high
        excludes = pair.difference.low > 0 or pair.difference.high < 0
        if overlap and excludes:
            names.append(f"{design.names[a]} and {design.names[b]}")
    if names:
        yield Doubt(
            "overlap",
            f"the intervals of {'; of '.join(names)} overlap, and yet their paired difference excludes 0: overlap is "
            "no test",
        )


def _nothing_found(pairs: Sequence[Comparison], has_margin: bool) -> Iterator[Doubt]:
    if has_margin:
        return
    for pair in pairs:
        difference = pair.difference
        assert difference is not None
        if not math.isnan(difference.half_width) and difference.low <= 0 <= difference.high:
            _, low, high = difference._rounded()
            yield Doubt(
                "no-difference-shown",
                f"no difference of {pair.names[0]} and {pair.names[1]} was shown, which does not show that there is "
                f"none: anything from {low} to {high} fits; a margin tests for equivalence",
            )


def _training(design: Design) -> Iterator[Doubt]:
    s, k = design.n_seeds, design.n_folds
    if s == 1 and design.folds is None:
        yield Doubt(
            "one-seed",
            "one training run a model: the tests are about these trained models, not about the way they were trained",
        )
    elif s == 1:
        yield Doubt(
            "one-seed", "one seed: what training leaves to chance is mixed with what the folds do, and cannot be told"
        )
    elif s < FEW_SEEDS:
        yield Doubt("few-seeds", f"{s} seeds: what seeds add to the spread is hardly known from so few")
    if design.folds is None:
        return
    if design.shared_folds:
        yield Doubt(
            "shared-folds",
            f"all {s} seeds share the same {k} folds: the {s * k} runs are not {s * k} independent draws, and their "
            f"standard deviation over the root of {s * k} is not the standard error of their mean",
        )
    undefined = int(design.defined.size - design.defined.sum())
    if undefined:
        yield Doubt(
            "undefined-runs",
            f"{undefined} of {design.defined.size} runs have no AUC, because a class is missing in their fold: they "
            "were left out for all models; stratified folds keep both classes",
        )
    smallest = min(int(np.bincount(row).min()) for row in design.folds)
    if smallest < 2:
        yield Doubt(
            "leave-one-out",
            "a fold has one item: its figure is 0 or 1, and the spread over such folds is that of the items",
        )


def _clusters(design: Design) -> Iterator[Doubt]:
    n = design.n_clusters
    if n is None or design.clusters is None:
        return
    if n == design.n:
        yield Doubt("clusters-of-one", "each cluster has one item: the clusters change nothing")
    elif n < FEW_CLUSTERS:
        yield Doubt("few-clusters", f"{n} clusters: a bootstrap of so few is too narrow")
    if design.folds is not None:
        torn = 0
        for row in design.folds:
            both = np.unique(np.stack([design.clusters, row]), axis=1)
            torn = max(torn, int(np.count_nonzero(np.bincount(both[0]) > 1)))
        if torn:
            yield Doubt(
                "torn-clusters",
                f"{torn} of {n} clusters have items in several folds: models were trained on the clusters they are "
                "tested on, and their figures are too good",
            )
