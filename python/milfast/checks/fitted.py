"""A fitted model and fresh bags to try laws on: what must not change a score, or must not lower it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.bags import Bags

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from milfast.checks.recipe import BagRecipe

#: A score has changed when it moves by more than this share of the standard deviation of scores.
CHANGE = 1e-3


@dataclass(frozen=True)
class Fitted:
    """A fitted model on fresh bags of the training distribution.

    Attributes
    ----------
    score : callable
        Bags to scores, shape (n_bags,).
    bags : Bags
        Fresh bags, with labels and kinds.
    scores : ndarray, shape (n_bags,)
        Their scores.
    recipe : BagRecipe
        What the bags were made from.
    cut : float
        Bags that score above it count as recognised as positive; see `best_cut`.
    generator : numpy.random.Generator
        For what a law draws.
    """

    score: Callable[[Bags], NDArray[Any]]
    bags: Bags
    scores: NDArray[Any]
    recipe: BagRecipe
    cut: float
    generator: np.random.Generator

    def changed(self, scores: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether scores of the bags have changed by more than rounding does.

        Parameters
        ----------
        scores : ndarray, shape (n_bags,)

        Returns
        -------
        ndarray of bool, shape (n_bags,)
        """
        before, after = np.asarray(self.scores, dtype=np.float64), np.asarray(scores, dtype=np.float64)
        finite = np.isfinite(before) & np.isfinite(after)
        spread = float(np.std(before[finite])) if finite.any() else 0.0
        moved: NDArray[np.bool_] = np.not_equal(before, after)
        moved[finite] = np.abs(after[finite] - before[finite]) > CHANGE * spread
        return moved

    def draw(self, kind: int, n: int) -> NDArray[Any]:
        """Fresh instances of one kind.

        Parameters
        ----------
        kind : int
            Position of the component in the recipe.
        n : int

        Returns
        -------
        ndarray, shape (n, n_features)
        """
        deviation = np.sqrt(self.recipe.components[kind].variance)
        normals = self.generator.standard_normal((n, self.recipe.n_features))
        drawn: NDArray[Any] = self.recipe.means[kind] + deviation * normals
        return drawn.astype(self.bags.instances.dtype)


def best_cut(scores: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """The score that parts positive from negative bags best: the largest true minus false positive rate.

    Parameters
    ----------
    scores : ndarray, shape (n_bags,)
    labels : ndarray of int, shape (n_bags,)
        Both classes.

    Returns
    -------
    float
        Half-way between two scores, or between one and infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.checks.fitted import best_cut
    >>> best_cut(np.array([0.0, 1.0, 2.0, 5.0]), np.array([0, 0, 1, 1]))
    1.5
    """
    values, inverse = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True)
    positive = np.bincount(inverse, weights=labels == 1, minlength=len(values))
    negative = np.bincount(inverse, weights=labels != 1, minlength=len(values))
    # gain[i]: true minus false positive rate when bags above values[i] count as positive
    gain = np.cumsum(negative)[:-1] / negative.sum() - np.cumsum(positive)[:-1] / positive.sum()
    if not len(gain):
        return float(values[0])
    i = int(np.argmax(gain))
    low, high = float(values[i]), float(values[i + 1])
    middle = low + (high - low) / 2
    return middle if low < middle < high else low


def insert(bags: Bags, instances: NDArray[Any], owners: NDArray[np.int64], generator: np.random.Generator) -> Bags:
    """Bags with more instances, each at a random place of its bag; those that were there keep their order.

    Parameters
    ----------
    bags : Bags
    instances : ndarray, shape (n, n_features)
    owners : ndarray of int, shape (n,)
        The bag that each instance goes to.
    generator : numpy.random.Generator

    Returns
    -------
    Bags
        Without labels and kinds.
    """
    sizes = bags.sizes
    bag = np.concatenate([bags.bag_index, owners])
    place = np.concatenate(
        [
            np.arange(bags.n_instances) - bags.offsets[bags.bag_index],
            generator.random(len(owners)) * sizes[owners] - 0.5,
        ]
    )
    order = np.lexsort((place, bag))
    grown = sizes + np.bincount(owners, minlength=len(bags))
    offsets = np.concatenate([[0], np.cumsum(grown)]).astype(np.int64)
    stacked = np.concatenate([bags.instances, instances.astype(bags.instances.dtype)])[order]
    return Bags._trusted(stacked, offsets, None, None)
