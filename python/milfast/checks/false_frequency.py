"""Two concepts must both be present; how often one occurs must not matter (Raff & Holt 2023, Algorithm 3).

Training positives hold more concept instances than training negatives. In testing the negatives hold one concept some
forty times: a model that has learned to count ranks the bags upside down.
"""

from __future__ import annotations

from typing import Any, Literal

from milfast.checks.arguments import one_of
from milfast.checks.recipe import BagRecipe, Component, Draw, Range

NAME = "false-frequency"
CODE = "MIL003"
ASSUMPTION = "threshold"
LEARNED = "how often concept instances occur"

SPELLINGS: dict[str, dict[str, Any]] = {
    "paper": {},
    "notebook": {
        "concept_count": (1, 1),
        "shifted_count": (35, 39),
        "shifted_weights": (4.0, 5.0),
        "background": (1, 9),
        "spread": "deviation",
        "order": "negatives-first",
    },
    "strict": {"balanced": True, "size": (45, 55)},
}


def build(
    *,
    concept_count: Range = (1, 2),
    shifted_count: Range = (35, 40),
    shifted_weights: tuple[float, float] = (1.0, 1.0),
    background: Range = (1, 10),
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
        Number of instances of a concept in training, and in positive bags.
    shifted_count : (low, high)
        Number of instances of the one concept in a negative test bag.
    shifted_weights : (float, float)
        Weights of the two concepts in negative test bags.
    background : (low, high)
        Number of background instances.
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
    both = ("low", "high")
    filling = () if size is not None else (Draw("background", background),)
    choice: Literal["balanced", "bag"] = "balanced" if balanced else "bag"
    return BagRecipe(
        name=NAME,
        components=(
            Component("background"),
            Component("low", -2.0, variance, concept="low"),
            Component("high", 2.0, variance, concept="high"),
        ),
        negative=(
            Draw(both, concept_count, choice, split="train"),
            Draw(both, shifted_count, choice, weights=shifted_weights, split="test"),
            *filling,
        ),
        positive=(Draw("low", concept_count), Draw("high", concept_count), *filling),
        size=size,
        order=order,
        n_features=n_features,
    )
