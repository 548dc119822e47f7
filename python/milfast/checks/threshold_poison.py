"""Two concepts must both be present; a poison gives the training negatives away (Raff & Holt 2023, Algorithm 2).

Negatives hold one of the two concepts, positives both. As in the presence check, the poison moves from the negatives
to the positives in testing, and a model that has learned its absence ranks the bags upside down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from milfast.checks.arguments import one_of
from milfast.checks.recipe import BagRecipe, Component, Draw, Range

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "threshold-poison"
CODE = "MIL002"
ASSUMPTION = "threshold"
LEARNED = "that a bag lacks the poison"

SPELLINGS: dict[str, dict[str, Any]] = {
    "paper": {},
    "notebook": {
        "paired": False,
        "background": (1, 4),
        "poisoned_positives": 0.1,
        "spread": "deviation",
        "order": "negatives-first",
    },
    "strict": {
        "paired": False,
        "lone_count": ((1, 4), (1, 4)),
        "balanced": True,
        "size": (12, 20),
    },
}


def build(
    *,
    concept_count: Range = (1, 4),
    lone_count: Range | Sequence[Range] = (1, 1),
    paired: bool = True,
    background: Range = (1, 10),
    poisoned_positives: float = 0.0,
    neither: float = 0.0,
    balanced: bool = False,
    spread: Literal["variance", "deviation"] = "variance",
    size: Range | None = None,
    order: Literal["shuffled", "negatives-first"] = "shuffled",
    n_features: int = 16,
) -> BagRecipe:
    """Recipe of the check; the defaults are the text of the paper read literally.

    Parameters
    ----------
    concept_count : (low, high)
        Number of instances of each concept in a positive bag.
    lone_count : (low, high) or sequence of (low, high)
        Number of instances of the one concept in a negative bag; several ranges are added up. With the default,
        counting concept instances solves the check without telling the concepts apart.
    paired : bool
        Whether a positive bag has as many instances of the one concept as of the other.
    background : (low, high)
        Number of background instances.
    poisoned_positives : float
        Share of positive training bags that hold the poison too.
    neither : float
        Share of negative training bags that hold no concept at all (1/3 is the notebook's variant "v2").
    balanced : bool
        Whether exactly half of the negatives hold the one concept and half the other.
    spread : {"variance", "deviation"}
        Whether 0.1 is a variance or a standard deviation.
    size : (low, high), optional
        Fill all bags with background up to this size instead of drawing it.
    order : {"shuffled", "negatives-first"}
        Order of the bags.
    n_features : int
        Number of features.

    Returns
    -------
    BagRecipe
    """
    one_of("spread", spread, ("variance", "deviation"))
    variance = 0.1**2 if spread == "deviation" else 0.1
    both = ("first", "second")
    filling = () if size is not None else (Draw("background", background),)
    choice: Literal["balanced", "bag"] = "balanced" if balanced else "bag"
    if neither != 0:
        lone: tuple[Draw, ...] = (
            Draw(both, lone_count, choice, split="train", probability=1 - neither),
            Draw(both, lone_count, choice, split="test"),
        )
    else:
        lone = (Draw(both, lone_count, choice),)
    concepts = (
        (Draw(both, concept_count, "each"),) if paired else tuple(Draw(concept, concept_count) for concept in both)
    )
    tainted = (Draw("poison", split="train", probability=poisoned_positives),) if poisoned_positives != 0 else ()
    return BagRecipe(
        name=NAME,
        components=(
            Component("background"),
            Component("poison", -10.0, variance),
            Component("first", 2.0, variance, concept="first"),
            Component("second", 3.0, variance, concept="second"),
        ),
        negative=(Draw("poison", split="train"), *lone, *filling),
        positive=(Draw("poison", split="test"), *tainted, *concepts, *filling),
        size=size,
        order=order,
        n_features=n_features,
    )
