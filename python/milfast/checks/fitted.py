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

#: A score has changed when it moves by more than this share of the distance between the quartiles of all scores...
CHANGE = 1e-3
#: ... and by more than this share of itself, which rounding in single precision does not.
ROUNDING = 1e-5


@dataclass(frozen=True)
class Fitted:
    """A fitted model on fresh bags of the training distribution.

    Attributes
    ----------
    score : callable
        Bags to scores, float64, shape (n_bags,).
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
        before, after = self.scores, scores
        finite = np.isfinite(before) & np.isfinite(after)
        moved: NDArray[np.bool_] = np.not_equal(before, after)
        if finite.any():
            with np.errstate(over="ignore"):
                low, high = np.quantile(before[finite], (0.25, 0.75))
                size = np.maximum(np.abs(before[finite]), np.abs(after[finite]))
                difference = np.abs(after[finite] - before[finite])
                moved[finite] = difference > np.maximum(CHANGE * (high - low), ROUNDING * size)
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


def comparable(scores: NDArray[Any], origin: NDArray[Any]) -> NDArray[np.float64]:
    """Scores as floats that tell apart what the model tells apart.

    Parameters
    ----------
    scores : ndarray, shape (n_bags,)
    origin : ndarray
        Scores of the same model; large integers are counted from the smallest of them, because floats would round them.

    Returns
    -------
    ndarray of float64, shape (n_bags,)
    """
    if scores.dtype.kind in "iu" and origin.dtype.kind in "iu":
        least = int(origin.min())
        return np.array([int(score) - least for score in scores], dtype=np.float64)
    return scores.astype(np.float64)


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
