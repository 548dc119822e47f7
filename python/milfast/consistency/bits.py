"""Error sets as bits, a byte for eight samples, as numpy packs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from milfast._core import sample_counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

#: Bytes that a block of unpacked sets takes.
_BLOCK = 1 << 24
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


def packed_sets(error_sets: ArrayLike, n_samples: int | None) -> tuple[NDArray[np.uint8], int, NDArray[np.uint32]]:
    """Bits of error sets of any form, the number of samples, and how many sets hold each sample.

    The bits are a copy that cannot be written to.
    """
    counts = sample_counts(error_sets, n_samples=n_samples)  # refuses what is no error set
    given: NDArray[Any] = np.asarray(error_sets)
    if n_samples is None:
        packed = np.packbits(given.astype(bool, copy=False), axis=1)
    else:
        packed = np.array(given, dtype=np.uint8, order="C")
    packed.flags.writeable = counts.flags.writeable = False
    return packed, len(counts), counts


def sizes(packed: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Number of bits set in each row."""
    found = np.zeros(len(packed), np.int64)
    for rows in _row_blocks(packed.shape):
        found[rows] = _ONES[packed[rows]].sum(axis=1, dtype=np.int64)
    return found


def blocks(packed: NDArray[np.uint8], n_samples: int) -> Iterator[tuple[slice, NDArray[np.uint8]]]:
    """Rows with their bits as zeros and ones, some rows at a time."""
    for rows in _row_blocks((len(packed), n_samples)):
        yield rows, np.unpackbits(packed[rows], axis=1, count=n_samples)


def sizes_within(packed: NDArray[np.uint8], samples: NDArray[np.intp]) -> NDArray[np.int64]:
    """Number of bits set in each row among some samples."""
    found = np.zeros(len(packed), np.int64)
    shifts = (7 - samples % 8).astype(np.uint8)
    for rows in _row_blocks((len(packed), len(samples))):
        found[rows] = (packed[rows][:, samples // 8] >> shifts & 1).sum(axis=1, dtype=np.int64)
    return found


def _row_blocks(shape: tuple[int, int]) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, shape[1]))
    for first in range(0, shape[0], step):
        yield slice(first, min(first + step, shape[0]))
