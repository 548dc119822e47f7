"""Two concepts must each be present twice; no number of instances of one makes up for the other.

Negatives hold enough instances of one concept and a single one of the other, so that both are present and presence
tells nothing. Training positives hold more concept instances in all. In testing the negatives hold the one concept over
and over: a model that has learned to count without telling the concepts apart ranks the bags upside down. This is the
threshold assumption beyond its case of presence (Weidmann, Frank & Pfahringer 2003), for which Raff & Holt (2023) have
no test.
"""

from __future__ import annotations

from typing import Any

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
    size: Range | None = (20, 26),
    background: Range = (4, 10),
    variance: float = 0.1,
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
        Fill all bags with background up to this size; None for bags of as many instances as they happen to hold.
    background : (low, high)
        Number of background instances where there is no `size`.
    variance : float
        Variance of each feature of a concept instance.
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
    if isinstance(at_least, bool) or not isinstance(at_least, int) or at_least < 2:
        raise ValueError(f"at_least must be an integer above 1, or presence is enough; got {at_least!r}")
    if min(shifted_count) < at_least:
        raise ValueError(f"shifted_count must start at {at_least}, which is enough, or above; got {shifted_count}")
    enough, too_few = (at_least, at_least + more), at_least - 1
    both = ("low", "high")
    filling = () if size is not None else (Draw("background", background),)
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
        ),
        negative=(Draw(both, too_few, "each"), *surplus, *filling),
        positive=(Draw("low", enough), Draw("high", enough), *filling),
        size=size,
        n_features=n_features,
    )
