"""Batches with a fixed share of positive bags, in which no bag is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from milfast._core import binary_labels
from milfast.seeding import seed_sequence, seed_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from milfast.seeding import RandomState

__all__ = ["BalancedBagSampler"]


class BalancedBagSampler:
    """Batches of bags with positive and negative ones in a fixed proportion.

    In an epoch every bag of the longer class, the one that needs more batches, comes exactly once, and the bags of the
    other class come in turn, each as often as any other or once more. No batch holds a bag twice: a class with fewer
    bags than its quota is in every batch as a whole. There is always at least one batch. The batches of an epoch follow
    from the seed and the number of the epoch alone, and no global generator is touched.

    It serves as ``batch_sampler`` of a `torch.utils.data.DataLoader`.

    Parameters
    ----------
    labels : array_like, shape (n_bags,)
        {0, 1}, bool or {-1, 1}.
    batch_size : int
        Bags in a batch, at least 2.
    positive_share : float
        Share of positive bags in a batch, in (0, 1); at least one bag of each class is in every batch.
    random_state : int, numpy.random.Generator, numpy.random.SeedSequence or None
    bags : array_like of int, optional
        Numbers of the bags to draw from; all by default.

    Attributes
    ----------
    epoch : int
        Number of the epoch that iteration gives next, from 0; each iteration adds one.
    quotas : tuple of int
        Negative and positive bags of a batch.

    Raises
    ------
    ValueError
        When a class has no bag, a bag is named twice or does not exist, or a parameter is out of range.
    TypeError
        When `bags` are no integers.

    Examples
    --------
    >>> sampler = BalancedBagSampler([1] * 3 + [0] * 20, batch_size=16, random_state=0)
    >>> len(sampler), sampler.quotas
    (3, (8, 3))
    >>> sorted(int(bag) for batch in sampler for bag in batch if bag > 2) == list(range(3, 23))
    True
    """

    def __init__(
        self,
        labels: ArrayLike,
        batch_size: int = 16,
        *,
        positive_share: float = 0.5,
        random_state: RandomState = None,
        bags: ArrayLike | None = None,
    ) -> None:
        if isinstance(batch_size, bool) or int(batch_size) != batch_size or batch_size < 2:
            raise ValueError(f"batch_size must be an integer of at least 2, one bag a class; got {batch_size!r}")
        if not 0 < positive_share < 1:
            raise ValueError(f"positive_share must be in (0, 1); got {positive_share!r}")
        given = np.asarray(labels)
        if given.ndim != 1:
            raise ValueError(f"labels must have shape (n_bags,); got {given.shape}")
        chosen = np.arange(len(given)) if bags is None else _numbers(bags, len(given))
        # one class alone would not tell labels -1 and 1 from each other
        known = given[chosen]
        if known.size == 0 or (known == known[0]).all():
            raise ValueError(f"all {known.size} labels are the same: batches of both classes need bags of both classes")
        y = binary_labels(known).astype(np.int64)
        wanted = min(max(round(batch_size * positive_share), 1), batch_size - 1)
        self.classes = [chosen[y == 0], chosen[y == 1]]
        sizes = [len(held) for held in self.classes]
        self.quotas = min(batch_size - wanted, sizes[0]), min(wanted, sizes[1])
        self.n_batches = max(-(-size // quota) for size, quota in zip(sizes, self.quotas, strict=True))
        self.seed = seed_value(random_state)
        self.epoch = 0

    def batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """Batches of one epoch.

        Parameters
        ----------
        epoch : int
            From 0.

        Returns
        -------
        list of ndarray of int64
            Bag numbers: negative bags, then positive ones.
        """
        rng = np.random.Generator(np.random.PCG64(seed_sequence(self.seed, epoch)))
        turns = [
            _turns(held, quota, self.n_batches, rng) for held, quota in zip(self.classes, self.quotas, strict=True)
        ]
        return [np.concatenate(pair) for pair in zip(*turns, strict=True)]

    def __iter__(self) -> Iterator[list[int]]:
        epoch = self.epoch
        self.epoch += 1
        return iter([batch.tolist() for batch in self.batches(epoch)])

    def __len__(self) -> int:
        return self.n_batches


def _numbers(bags: ArrayLike, n_bags: int) -> NDArray[np.int64]:
    given = np.asarray(bags)
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"bags must be numbers of bags, integers; got dtype {given.dtype}")
    chosen = given.astype(np.int64)
    if chosen.ndim != 1 or (chosen.size and not (int(chosen.min()) >= 0 and int(chosen.max()) < n_bags)):
        raise ValueError(f"bags must be numbers from 0 to {n_bags - 1}, in one dimension")
    if len(np.unique(chosen)) < len(chosen):
        raise ValueError("bags names a bag more than once, and no batch may hold a bag twice")
    return chosen


def _turns(bags: NDArray[np.int64], quota: int, n_batches: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Bags of one class for each batch."""
    if -(-len(bags) // quota) == n_batches:  # it needs all of them: each bag once, in parts that differ by one at most
        return [np.asarray(part) for part in np.array_split(rng.permutation(bags), n_batches)]
    parts: list[NDArray[Any]] = []
    left = bags[:0]
    for _ in range(n_batches):
        part = left[:quota]
        left = left[quota:]
        if len(part) < quota:
            fresh = rng.permutation(bags)
            # those of the batch that began with the last turn come later in this one
            twice = np.isin(fresh, part)
            free, held = fresh[~twice], fresh[twice]
            more = quota - len(part)
            part = np.concatenate((part, free[:more]))
            left = np.concatenate((free[more:], held))
        parts.append(part)
    return parts
