"""The program of sMIL: negative instances, and positive bags as the sum of their instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.bags import Bags
from milfast.models.svm.bag_kernel import bag_lengths
from milfast.models.svm.base import check_normalize, class_weights
from milfast.models.svm.solver import Combinations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.gram import Normalization
    from milfast.models.svm.solver import InstanceKernel, Vector
    from milfast.models.svm.witness import Split

__all__ = ["SparseProgram", "check_sparse"]


@dataclass(frozen=True)
class SparseProgram:
    """What the solver is given.

    Attributes
    ----------
    signs, limits, margins : ndarray, shape (n_variables,)
        Of the instances of negative bags, then of the positive bags.
    combinations : Combinations
        What they stand for.
    """

    signs: NDArray[Any]
    limits: Vector
    margins: Vector
    combinations: Combinations

    @classmethod
    def of(
        cls,
        split: Split,
        kernel: InstanceKernel,
        *,
        normalize: Normalization,
        C: float,
        scale_C: bool,
        class_weight: Any,
    ) -> SparseProgram:
        """The program for labelled bags.

        Parameters
        ----------
        split : Split
        kernel : InstanceKernel
        normalize, C, scale_C, class_weight
            As in sMIL.

        Returns
        -------
        SparseProgram

        Raises
        ------
        ValueError
            When a bag or an instance has no length in feature space and cannot be normalised.
        """
        bags = split.bags
        n_negative, n_positive = len(split.negatives), len(split.sizes)
        positives = np.flatnonzero(split.labels == 1)
        lengths = bag_lengths(bags[positives], kernel, normalize, numbers=positives)
        ones = Bags(bags.instances[split.negatives], np.arange(n_negative + 1))
        own_lengths = bag_lengths(ones, kernel, normalize, numbers=split.negatives, what="instance")
        labels = np.repeat([0, 1], [n_negative, n_positive])
        shares = np.array([n_negative, n_positive]) if scale_C else np.ones(2)
        return cls(
            2 * labels - 1,
            (C * class_weights(class_weight, labels) / shares)[labels],
            np.concatenate([np.ones(n_negative), 2.0 / split.sizes - 1]),
            Combinations(
                np.concatenate([np.arange(n_negative), n_negative + np.concatenate([[0], np.cumsum(split.sizes)])]),
                np.concatenate([split.negatives, split.positives]),
                np.concatenate([1 / own_lengths, np.repeat(1 / lengths, split.sizes)]),
            ),
        )


def check_sparse(normalize: Normalization, scale_C: bool) -> None:
    """Refuse parameters that sMIL and its relatives do not have.

    Parameters
    ----------
    normalize : {"average", "feature-space"} or None
    scale_C : bool

    Raises
    ------
    ValueError
        When one of them is something else.
    """
    check_normalize(normalize)
    if not isinstance(scale_C, (bool, np.bool_)):
        raise ValueError(f"scale_C must be True or False; got {scale_C!r}")
