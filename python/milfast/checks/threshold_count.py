"""Two concepts must each be present twice; no number of instances of one makes up for the other.

Negatives hold enough instances of one concept and a single one of the other, so that both are present and presence
tells nothing. Training positives hold more concept instances in all. In testing the negatives hold the one concept over
and over: a model that has learned to count without telling the concepts apart ranks the bags upside down. This is the
threshold assumption beyond its case of presence (Weidmann, Frank & Pfahringer 2003), for which Raff & Holt (2023) have
no test.

All bags have the same law of sizes and of background instances; blank instances make up for the concepts' numbers.
Blank instances, and those of one concept, are all but equal among themselves: the largest score of many random ones
tends to be larger than that of a few, so that presence would tell numbers after all, if not of concepts, then of what
is there in their place.
"""

from __future__ import annotations

from typing import Any

from milfast.checks.arguments import MOST, count_range, is_integer
from milfast.checks.recipe import BagRecipe, Component, Draw, Range

NAME = "threshold-count"
CODE = "MIL010"
ASSUMPTION = "threshold"
LEARNED = "how many concept instances there are in all"

SPELLINGS: dict[str, dict[str, Any]] = {"strict": {}}


def build(
    *,
    at_least: int = 2,
    more: int = 2,
    shifted_count: Range = (12, 16),
    size: Range | None = (28, 34),
    background: Range = (4, 10),
    variance: float = 1e-12,
    n_features: int = 16,
) -> BagRecipe:
    """Recipe of the check.

    Parameters
    ----------
    at_least : int
        Number of instances of each concept that a positive bag needs, above 1; a negative bag holds one too few of one.
    more : int
        How many more than that a bag may hold.
    shifted_count : (low, high)
        Number of instances of the other concept in a negative test bag.
    size : (low, high), optional
        Fill all bags with blank instances up to this size; None for bags of as many instances as they happen to hold.
        Where it is smaller than what bags hold otherwise, sizes differ.
    background : (low, high)
        Number of background instances.
    variance : float
        Variance of each feature of a concept or blank instance. With 0.1, presence of instances to either side of the
        mean tells that there are two.
    n_features : int
        Number of features.

    Returns
    -------
    BagRecipe

    Raises
    ------
    ValueError
        When a number is out of range.
    """
    if not is_integer(at_least) or not 2 <= at_least <= MOST:
        raise ValueError(f"at_least must be an integer above 1, or presence is enough; got {at_least!r}")
    if not is_integer(more) or not 0 <= more <= MOST:
        raise ValueError(f"more must be a non-negative integer up to 2**31; got {more!r}")
    at_least, more = int(at_least), int(more)
    shifted_count = count_range("shifted_count", shifted_count)
    background = count_range("background", background)
    if shifted_count[0] < at_least:
        raise ValueError(f"shifted_count must start at {at_least}, which is enough, or above; got {shifted_count}")
    enough, too_few = (at_least, at_least + more), at_least - 1
    both = ("low", "high")
    # too few of both, and then so many more of one of them
    surplus = (
        Draw(both, (1, more + 1), "balanced", split="train"),
        Draw(both, (shifted_count[0] - too_few, shifted_count[1] - too_few), "balanced", split="test"),
    )
    return BagRecipe(
        name=NAME,
        components=(
            Component("background"),
            Component("low", -2.0, variance, concept="low", at_least=at_least),
            Component("high", 2.0, variance, concept="high", at_least=at_least),
            Component("blank", 0.0, variance),
        ),
        negative=(Draw(both, too_few, "each"), *surplus, Draw("background", background)),
        positive=(Draw("low", enough), Draw("high", enough), Draw("background", background)),
        filler="blank",
        size=size,
        n_features=n_features,
    )
