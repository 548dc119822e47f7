"""Weights of the instances of positive bags: who speaks for a bag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.models.svm.solver import Combinations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.bags import Bags
    from milfast.models.svm.solver import Vector

__all__ = ["Split", "best_instances", "first_weights"]


class Split:
    """The instances of negative bags and those of positive ones.

    Parameters
    ----------
    bags : Bags
        With labels.

    Attributes
    ----------
    bags : Bags
    labels : ndarray of int64, shape (n_bags,)
    negatives, positives : ndarray of int64
        Numbers of the instances.
    bag_of : ndarray of int64
        Positive bag, from 0 on, of each of `positives`.
    sizes, starts : ndarray of int64, shape (n_positive_bags,)
        Sizes of the positive bags, and where each begins in `positives`.
    """

    def __init__(self, bags: Bags) -> None:
        assert bags.labels is not None
        self.bags = bags
        self.labels: NDArray[np.int64] = bags.labels
        in_positive = np.repeat(bags.labels == 1, bags.sizes)
        self.negatives: NDArray[np.int64] = np.flatnonzero(~in_positive)
        self.positives: NDArray[np.int64] = np.flatnonzero(in_positive)
        self.sizes: NDArray[np.int64] = bags.sizes[bags.labels == 1]
        self.starts: NDArray[np.int64] = np.cumsum(self.sizes) - self.sizes
        self.bag_of: NDArray[np.int64] = np.repeat(np.arange(len(self.sizes)), self.sizes)

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


def first_weights(split: Split, generator: np.random.Generator | None = None) -> Vector:
    """Weights to begin with, which sum to 1 in each positive bag.

    Parameters
    ----------
    split : Split
    generator : numpy.random.Generator, optional
        Draws them uniformly from the simplex of each bag; equal weights by default.

    Returns
    -------
    ndarray of float64, shape (n_positive_instances,)
    """
    if generator is None:
        return np.repeat(1.0 / split.sizes, split.sizes)
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
