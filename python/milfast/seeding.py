"""One way to turn `random_state` into seeds; no global generator is ever touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    RandomState: TypeAlias = int | np.integer[Any] | np.random.Generator | np.random.SeedSequence | None


def seed_sequence(random_state: RandomState, *path: int) -> np.random.SeedSequence:
    """Root of a tree of independent seeds.

    Parameters
    ----------
    random_state : int, numpy.random.Generator, numpy.random.SeedSequence or None
        None draws fresh entropy from the operating system. A Generator is advanced by one draw.
    *path : int
        Non-negative integers that name a branch: different paths give independent seeds.

    Returns
    -------
    numpy.random.SeedSequence

    Raises
    ------
    ValueError
        When an integer is negative.
    TypeError
        When `random_state` is none of the accepted types.
    """
    if isinstance(random_state, np.random.Generator):
        entropy: int | list[int] | None = int(random_state.integers(1 << 63))
    elif isinstance(random_state, np.random.SeedSequence):
        return np.random.SeedSequence(
            random_state.entropy, spawn_key=(*random_state.spawn_key, *path), pool_size=random_state.pool_size
        )
    elif isinstance(random_state, bool) or not (random_state is None or isinstance(random_state, (int, np.integer))):
        raise TypeError(
            "random_state must be an integer, a numpy.random.Generator, a numpy.random.SeedSequence or None; "
            f"got {type(random_state).__name__}"
        )
    else:
        if random_state is not None and random_state < 0:
            raise ValueError(f"random_state must not be negative; got {random_state}")
        entropy = None if random_state is None else int(random_state)
    return np.random.SeedSequence(entropy, spawn_key=path)


def root_seed(random_state: RandomState) -> int:
    """An integer that, given as `random_state` itself, leads to the same results again.

    Parameters
    ----------
    random_state : int, numpy.random.Generator, numpy.random.SeedSequence or None

    Returns
    -------
    int
        An integer is kept as it is.

    Raises
    ------
    ValueError, TypeError
        As `seed_sequence`.
    """
    drawn = seed_value(random_state)
    return int(random_state) if isinstance(random_state, (int, np.integer)) else drawn


def seed_value(random_state: RandomState, *path: int) -> int:
    """One 63-bit seed from `random_state` and a branch; see `seed_sequence`."""
    return int(seed_sequence(random_state, *path).generate_state(1, np.uint64)[0] >> np.uint64(1))
