"""Weights of the instances of positive bags: who speaks for a bag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.models.svm.solver import Combinations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.bags import Bags
    from milfast.models.svm.solver import Vector

__all__ = ["Split", "best_instances", "random_weights", "uniform_weights"]


class Split:
    """The instances of negative bags and those of positive ones.

    Parameters
    ----------
    bags : Bags
        With labels.

    Attributes
    ----------
    negatives, positives : ndarray of int64
        Numbers of the instances.
    bag_of : ndarray of int64
        Positive bag, from 0 on, of each of `positives`.
    sizes : ndarray of int64
        Sizes of the positive bags.
    """

    def __init__(self, bags: Bags) -> None:
        assert bags.labels is not None
        in_positive = np.repeat(bags.labels == 1, bags.sizes)
        self.negatives: NDArray[np.int64] = np.flatnonzero(~in_positive)
        self.positives: NDArray[np.int64] = np.flatnonzero(in_positive)
        self.sizes: NDArray[np.int64] = bags.sizes[bags.labels == 1]
        self.bag_of: NDArray[np.int64] = np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each positive bag begins in `positives`."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    def combinations(self, weights: Vector) -> Combinations:
        """The positive bags as weighted sums of their instances.

        Parameters
        ----------
        weights : ndarray, shape (n_positive_instances,)

        Returns
        -------
        Combinations
            Of the instances that have a weight.
        """
        held = np.flatnonzero(weights)
        counts = np.bincount(self.bag_of[held], minlength=len(self.sizes))
        return Combinations(np.concatenate([[0], np.cumsum(counts)]), self.positives[held], weights[held])


def uniform_weights(split: Split) -> Vector:
    """Equal weights inside each positive bag.

    Parameters
    ----------
    split : Split

    Returns
    -------
    ndarray of float64, shape (n_positive_instances,)
    """
    return np.repeat(1.0 / split.sizes, split.sizes)


def random_weights(split: Split, generator: np.random.Generator) -> Vector:
    """Weights that are uniform on the simplex of each positive bag.

    Parameters
    ----------
    split : Split
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (n_positive_instances,)
    """
    draws = generator.standard_exponential(len(split.positives))
    return np.asarray(draws / np.repeat(np.add.reduceat(draws, split.starts), split.sizes))


def best_instances(split: Split, scores: NDArray[Any], *, share_ties: bool) -> Vector:
    """All weight on the best instance of each positive bag.

    Parameters
    ----------
    split : Split
    scores : ndarray, shape (n_positive_instances,)
    share_ties : bool
        Whether instances that score alike share the weight, or the first gets it.

    Returns
    -------
    ndarray of float64, shape (n_positive_instances,)
    """
    best = scores == np.repeat(np.maximum.reduceat(scores, split.starts), split.sizes)
    if share_ties:
        return np.asarray(best / np.repeat(np.add.reduceat(best.astype(np.float64), split.starts), split.sizes))
    weights = np.zeros(len(scores))
    held = np.flatnonzero(best)
    _, first = np.unique(split.bag_of[held], return_index=True)
    weights[held[first]] = 1.0
    return weights
