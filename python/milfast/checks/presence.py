"""One concept must be present; a poison gives the training negatives away (Raff & Holt 2023, Algorithm 1).

A model that respects the standard MIL assumption looks for the concept. One that does not can learn that a bag without
poison is positive: in testing, where the poison sits in the positives, it ranks the bags upside down.
"""

from __future__ import annotations

from typing import Any, Literal

from milfast.checks.arguments import one_of
from milfast.checks.recipe import BagRecipe, Component, Draw, Range

NAME = "presence"
CODE = "MIL001"
ASSUMPTION = "standard"
LEARNED = "that a bag lacks the poison"

SPELLINGS: dict[str, dict[str, Any]] = {
    "paper": {},
    "notebook": {
        "concept_count": (1, 3),
        "background_negative": (1, 9),
        "background_positive": (1, 4),
        "coin": "stuck",
        "spread": "deviation",
        "order": "negatives-first",
    },
    "strict": {"wide": 16.0, "shift": 2.5, "size": (8, 16)},
}


def build(
    *,
    concept_count: Range = (1, 4),
    background_negative: Range = (1, 10),
    background_positive: Range = (1, 10),
    coin: Literal["instance", "bag", "stuck"] = "instance",
    spread: Literal["variance", "deviation"] = "variance",
    wide: float = 3.0,
    shift: float = 1.0,
    size: Range | None = None,
    order: Literal["shuffled", "negatives-first"] = "shuffled",
    n_features: int = 16,
) -> BagRecipe:
    """Recipe of the check; the defaults are the text of the paper read literally.

    Parameters
    ----------
    concept_count : (low, high)
        Number of concept instances in a positive bag.
    background_negative, background_positive : (low, high)
        Number of background instances. The paper gives no range; 1..10 is that of its other two algorithms.
    coin : {"instance", "bag", "stuck"}
        Whether each instance, or each bag, tosses for one of the two indicators of the concept; "stuck" always takes
        the wide one.
    spread : {"variance", "deviation"}
        Whether the 0.1 of the poison and `wide` are variances or standard deviations.
    wide : float
        Spread of the wide indicator N(0, wide).
    shift : float
        Mean of the shifted indicator N(shift, 1).
    size : (low, high), optional
        Fill all bags with background up to this size instead of drawing it by class.
    order : {"shuffled", "negatives-first"}
        Order of the bags.
    n_features : int
        Number of features.

    Returns
    -------
    BagRecipe
    """
    one_of("coin", coin, ("instance", "bag", "stuck"))
    one_of("spread", spread, ("variance", "deviation"))
    power = 2 if spread == "deviation" else 1
    indicators = ("wide",) if coin == "stuck" else ("wide", "shifted")
    concepts = (
        Component("wide", 0.0, wide**power, concept="indicator"),
        Component("shifted", shift, 1.0, concept="indicator"),
    )
    concept = Draw(indicators, concept_count, choice="instance" if coin == "instance" else "bag")

    def background(count: Range) -> tuple[Draw, ...]:
        return () if size is not None else (Draw("background", count),)

    return BagRecipe(
        name=NAME,
        components=(
            Component("background"),
            Component("poison", -10.0, 0.1**power),
            *(component for component in concepts if component.name in indicators),
        ),
        negative=(Draw("poison", split="train"), *background(background_negative)),
        positive=(Draw("poison", split="test"), concept, *background(background_positive)),
        size=size,
        order=order,
        n_features=n_features,
    )
