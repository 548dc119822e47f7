"""One concept must be present; the size of the bag gives the training labels away.

Positive training bags hold the concept and many background instances, negative ones few. In testing it is the other way
round: a model that has learned that large bags are positive, as one that sums over instances may, ranks the bags upside
down.
"""

from __future__ import annotations

from typing import Any

from milfast.checks.recipe import BagRecipe, Component, Draw, Range

NAME = "bag-size"
CODE = "MIL007"
ASSUMPTION = "standard"
LEARNED = "how large a bag is"

SPELLINGS: dict[str, dict[str, Any]] = {"strict": {}}


def build(
    *,
    concept_count: Range = (1, 2),
    small: Range = (2, 6),
    large: Range = (10, 14),
    mean: float = 2.5,
    n_features: int = 16,
) -> BagRecipe:
    """Recipe of the check.

    Parameters
    ----------
    concept_count : (low, high)
        Number of concept instances in a positive bag.
    small, large : (low, high)
        Number of background instances in small and in large bags.
    mean : float
        Mean of each feature of a concept instance; the variance is 1, as that of the background.
    n_features : int
        Number of features.

    Returns
    -------
    BagRecipe
    """
    return BagRecipe(
        name=NAME,
        components=(Component("background"), Component("signal", mean, concept="signal")),
        negative=(Draw("background", small, split="train"), Draw("background", large, split="test")),
        positive=(
            Draw("signal", concept_count),
            Draw("background", large, split="train"),
            Draw("background", small, split="test"),
        ),
        n_features=n_features,
    )
