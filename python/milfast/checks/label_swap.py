"""Presence can be learned, absence must not: the MIL assumption treats the two labels differently.

A second model is trained on the same bags with their labels swapped, so that the bags *without* the concept are the
positive ones. Under the MIL assumption nothing speaks for such a bag: every score that cannot fall when an instance is
added ranks the bags that hold the concept at least as high, whatever it was fitted to. A model that masters the swapped
task as well takes absence for evidence.
"""

from __future__ import annotations

from typing import Any

from milfast.checks.recipe import BagRecipe, Component, Draw, Range

NAME = "label-swap"
CODE = "MIL008"
ASSUMPTION = "standard"
LEARNED = "that a bag lacks the concept"

SPELLINGS: dict[str, dict[str, Any]] = {"strict": {}}

#: The model under test is fitted to the swapped labels.
SWAPPED = True
#: Scores that respect the assumption may tie all bags, so 0.5 itself must count as a pass.
BAR = 0.45


def build(
    *, concept_count: Range = (1, 3), background: Range = (4, 10), mean: float = 2.5, n_features: int = 16
) -> BagRecipe:
    """Recipe of the check; training and testing do not differ.

    Parameters
    ----------
    concept_count : (low, high)
        Number of concept instances in the bags that hold the concept.
    background : (low, high)
        Number of background instances in all bags.
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
        negative=(Draw("background", background),),
        positive=(Draw("signal", concept_count), Draw("background", background)),
        n_features=n_features,
    )
