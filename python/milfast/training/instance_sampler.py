"""A few instances of each bag, drawn without replacement, for all bags in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["sample_instances"]


def sample_instances(
    offsets: ArrayLike,
    bags: ArrayLike,
    n_sampled: int,
    rng: np.random.Generator | Sequence[np.random.Generator],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows of instances, drawn uniformly and without replacement from each of many bags.

    Parameters
    ----------
    offsets : array_like of int64, shape (n_bags + 1,)
        Bag ``i`` is rows ``offsets[i]`` to ``offsets[i + 1] - 1``.
    bags : array_like of int64, any shape
        Bag numbers. One that comes twice is drawn from twice. A negative number stands for no bag.
    n_sampled : int
        Instances of each bag, at least 1; of a smaller bag all, each once.
    rng : numpy.random.Generator, or a sequence of them
        The only source of chance. With several, one for each entry of the first axis of `bags`, what is drawn for an
        entry does not depend on the others.

    Returns
    -------
    rows : ndarray of int64, shape (*bags.shape, n_sampled)
        Where fewer are drawn, the rest repeats a row of the bag, and is row 0 for no bag.
    mask : ndarray of bool, same shape
        True for what is drawn.

    Raises
    ------
    ValueError
        When `n_sampled` is below 1, a bag is empty, or there are more or fewer generators than entries.
    IndexError
        When there is no such bag.

    Notes
    -----
    Floyd's algorithm, one step for all bags at a time: draw j of k from n instances is a number r up to ``n - k + j``,
    or ``n - k + j`` itself where r was drawn before, and every subset comes with the same probability. From a bag not
    much larger than k, where comparing draws costs more than a number for each instance, the k smallest of random keys
    are taken instead.

    References
    ----------
    .. [1] J. Bentley, R. Floyd, "Programming pearls: a sample of brilliance", Communications of the ACM 30 (9), 1987.

    Examples
    --------
    >>> import numpy as np
    >>> rows, mask = sample_instances([0, 2, 100], [1, 0], 4, np.random.default_rng(0))
    >>> bool((rows[0] >= 2).all()), sorted(rows[1][mask[1]].tolist()), len(set(rows[0].tolist()))
    (True, [0, 1], 4)
    """
    if int(n_sampled) != n_sampled or n_sampled < 1:
        raise ValueError(f"n_sampled must be an integer of at least 1; got {n_sampled!r}")
    cuts = np.asarray(offsets, dtype=np.int64)
    chosen = np.asarray(bags, dtype=np.int64)
    flat = chosen.reshape(-1)
    there = flat >= 0
    if flat.size and int(flat.max()) >= len(cuts) - 1:
        raise IndexError(f"bag {int(flat.max())} is out of range for {len(cuts) - 1} bags")
    first = np.where(there, cuts[:-1][flat], 0)
    sizes = np.where(there, cuts[1:][flat] - cuts[:-1][flat], 1)
    if (sizes < 1).any():
        raise ValueError(f"bag {int(flat[np.argmax(sizes < 1)])} is empty: a bag needs at least one instance")
    k = int(n_sampled)
    # Two operations for each pair of draws, or some 40 to sort each instance in. It is decided bag by bag, so that
    # other bags change nothing.
    whole = (sizes <= k) | ~there
    sorted_in = ~whole & (k * k > 20 * sizes)
    floyd = ~(whole | sorted_in)
    needed = np.where(whole, 0, np.where(floyd, k, sizes))
    ends = np.cumsum(needed)
    chance = _numbers(rng, needed, len(chosen) if chosen.ndim else 0)
    places = np.minimum(np.arange(k), sizes[:, None] - 1)
    if floyd.any():
        starts = (ends - needed)[floyd]
        places[floyd] = _floyd(sizes[floyd], chance[starts[:, None] + np.arange(k)])
    if sorted_in.any():
        keys = np.repeat(sorted_in, needed)
        places[sorted_in] = _smallest(sizes[sorted_in], chance[keys], k)
    mask = (np.arange(k) < sizes[:, None]) & there[:, None]
    rows = first[:, None] + places
    return rows.reshape(*chosen.shape, k), mask.reshape(*chosen.shape, k)


def _numbers(
    rng: np.random.Generator | Sequence[np.random.Generator], needed: NDArray[np.int64], entries: int
) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), as many as are needed, from one generator or one for each entry."""
    if isinstance(rng, np.random.Generator):
        return rng.random(int(needed.sum()))
    if not isinstance(rng, (list, tuple)):
        raise TypeError(f"rng must be a numpy.random.Generator, or a list of them; got {type(rng).__name__}")
    if len(rng) != entries:
        raise ValueError(f"rng has {len(rng)} generators for {entries} entries of bags")
    if not entries:
        return np.zeros(0)
    counts = needed.reshape(entries, -1).sum(axis=1)
    return np.concatenate([one.random(int(count)) for one, count in zip(rng, counts, strict=True)])


def _floyd(sizes: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.int64]:
    """Places in bags that are larger than the number of draws, from one number for each draw."""
    k = chance.shape[1]
    top = (sizes - k) + np.arange(k)[:, None]
    drawn: NDArray[np.int64] = np.floor(chance.T * (top + 1)).astype(np.int64)
    for j in range(1, k):
        again = (drawn[:j] == drawn[j]).any(axis=0)
        drawn[j, again] = top[j, again]
    return drawn.T


def _smallest(sizes: NDArray[np.int64], keys: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Places of the k smallest keys of each bag."""
    starts = np.cumsum(sizes) - sizes
    bag = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((keys, bag))
    result: NDArray[np.int64] = order[starts[:, None] + np.arange(k)] - starts[:, None]
    return result
