"""Arguments that checks have in common, looked at before any work is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.seeding import seed_sequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

#: Largest count, size or number of bags.
MOST = 2**31


def unit_vector(direction: ArrayLike | int, n_features: int) -> tuple[float, ...]:
    """A direction of length 1.

    Parameters
    ----------
    direction : int or array_like, shape (n_features,)
        A vector, or the seed of a random direction.
    n_features : int

    Returns
    -------
    tuple of float

    Raises
    ------
    ValueError
        When the vector has the wrong length or is zero.
    """
    if isinstance(direction, (int, np.integer)):
        vector = np.random.Generator(np.random.PCG64(seed_sequence(int(direction)))).normal(size=n_features)
    else:
        vector = np.asarray(direction, dtype=np.float64)
    length = np.linalg.norm(vector)
    if vector.shape != (n_features,) or not np.isfinite(length) or length == 0:
        raise ValueError(f"direction must be a vector of {n_features} numbers, not all zero")
    return tuple((vector / length).tolist())


def require_unit_vector(direction: tuple[float, ...] | None, n_features: int) -> None:
    """Refuse a direction that is not of length 1.

    Parameters
    ----------
    direction : tuple of float or None
    n_features : int

    Raises
    ------
    ValueError
        When it has another number of features or another length.
    """
    if direction is not None and (len(direction) != n_features or not np.isclose(np.linalg.norm(direction), 1)):
        raise ValueError(f"direction must be a unit vector of {n_features} features")


def sampling_dtype(
    n_bags: int, positive_fraction: float, pad_to: int | None, dtype: str | type[np.floating[Any]] | np.dtype[Any]
) -> np.dtype[Any]:
    """Refuse arguments of `sample` that are out of range.

    Parameters
    ----------
    n_bags : int
    positive_fraction : float
    pad_to : int or None
    dtype : {"float32", "float64"}

    Returns
    -------
    numpy.dtype
        The one that was asked for.

    Raises
    ------
    ValueError
        When one of them is out of range.
    """
    if not is_integer(n_bags) or not 1 <= n_bags <= MOST:
        raise ValueError(f"n_bags must be a positive integer up to 2**31; got {n_bags!r}")
    if not 0 <= positive_fraction <= 1:
        raise ValueError(f"positive_fraction must lie in [0, 1]; got {positive_fraction}")
    if pad_to is not None and (not is_integer(pad_to) or not 1 <= pad_to <= MOST):
        raise ValueError(f"pad_to must be a positive integer up to 2**31; got {pad_to!r}")
    precision = np.dtype(dtype)
    if precision not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {precision}")
    return precision


def one_of(name: str, value: str, known: Sequence[str]) -> None:
    """Refuse an option that is not among the known ones.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : str
    known : sequence of str

    Raises
    ------
    ValueError
        When `value` is not among `known`.
    """
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}")


def count_range(name: str, value: object) -> tuple[int, int]:
    """Refuse what is no range of counts.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        A pair (low, high).

    Returns
    -------
    (int, int)

    Raises
    ------
    ValueError
        When it is something else, or below 0, or falls.
    """
    pair: Any = value
    if np.shape(pair) != (2,) or not (is_integer(pair[0]) and is_integer(pair[1]) and 0 <= pair[0] <= pair[1] <= MOST):
        raise ValueError(f"{name} must be a range (low, high) of non-negative integers up to 2**31; got {value!r}")
    return int(pair[0]), int(pair[1])


def is_integer(value: object) -> bool:
    """Whether a value is an integer and no truth value.

    Parameters
    ----------
    value : object

    Returns
    -------
    bool
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
