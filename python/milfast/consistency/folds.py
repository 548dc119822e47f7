"""Folds of one repeat, shuffled: those of scikit-learn's splitters, without checking the labels anew each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Folds"]


class Folds:
    """Deals samples into folds.

    The same seed gives the folds of scikit-learn's `StratifiedKFold` (or, not stratified, `KFold`; with groups
    `StratifiedGroupKFold` or `GroupKFold`) with ``shuffle=True`` and ``random_state=seed``.

    Parameters
    ----------
    codes : ndarray of int, shape (n_samples,)
        Class of each sample, from 0.
    n_folds : int
    stratify : bool
        Whether every fold gets its share of each class.
    groups : ndarray, shape (n_samples,), optional
        Samples of one group stay in one fold.

    Raises
    ------
    ValueError
        When there are too few samples, groups, or samples of a class for so many folds.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.consistency.folds import Folds
    >>> Folds(np.array([0, 0, 1, 1]), 2, stratify=True).dealt(seed=0)
    array([1, 0, 0, 1])
    """

    def __init__(
        self, codes: NDArray[Any], n_folds: int, *, stratify: bool, groups: NDArray[Any] | None = None
    ) -> None:
        self.n_folds = n_folds
        self.stratify = stratify
        self.groups = groups
        self._codes = codes
        # that of scikit-learn's splitters; to seed it anew costs a hundredth of making it
        self._generator = np.random.RandomState(0)
        counts = np.bincount(codes)
        if groups is not None:
            found = np.unique(groups)
            self._groups = found
            if len(found) < n_folds:
                raise ValueError(f"groups has {len(found)} different groups, too few for cv={n_folds} folds")
        elif len(codes) < n_folds:
            raise ValueError(f"{len(codes)} samples are too few for cv={n_folds} folds")
        if not stratify or groups is not None:
            return
        # scikit-learn numbers classes as they appear, and deals the sorted samples out one after the other
        first = np.full(len(counts), len(codes))
        np.minimum.at(first, codes, np.arange(len(codes)))
        order = np.argsort(first, kind="stable")[: np.count_nonzero(counts)]
        ends = np.cumsum(counts[order])
        self._members = [np.flatnonzero(codes == k) for k in order]
        self._blocks = [
            np.repeat(np.arange(n_folds), np.bincount(np.arange(end - len(m), end) % n_folds, minlength=n_folds))
            for end, m in zip(ends, self._members, strict=True)
        ]

    def dealt(self, seed: int) -> NDArray[np.intp]:
        """Fold of each sample.

        Parameters
        ----------
        seed : int
            Below 2**32.

        Returns
        -------
        ndarray of int, shape (n_samples,)
        """
        n = len(self._codes)
        fold = np.empty(n, dtype=np.intp)
        if self.groups is not None and self.stratify:
            from sklearn.model_selection import StratifiedGroupKFold

            splitter = StratifiedGroupKFold(self.n_folds, shuffle=True, random_state=seed)
            for k, (_, test) in enumerate(splitter.split(fold, self._codes, self.groups)):
                fold[test] = k
            return fold
        rng = self._generator
        rng.seed(seed)
        if self.groups is not None:
            for k, part in enumerate(np.array_split(rng.permutation(self._groups), self.n_folds)):
                fold[np.isin(self.groups, part)] = k
        elif self.stratify:
            for members, block in zip(self._members, self._blocks, strict=True):
                block = block.copy()
                rng.shuffle(block)
                fold[members] = block
        else:
            order = np.arange(n)
            rng.shuffle(order)
            sizes = np.full(self.n_folds, n // self.n_folds)
            sizes[: n % self.n_folds] += 1
            fold[order] = np.repeat(np.arange(self.n_folds), sizes)
        return fold
