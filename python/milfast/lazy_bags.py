"""Bags whose instances stay where they are until some of them are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, overload, runtime_checkable

import numpy as np

from milfast.bags import Bags, _as_labels, to_host

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import BagSelection

__all__ = ["LazyBag", "LazyBags"]


@runtime_checkable
class LazyBag(Protocol):
    """What counts as a bag that is not in memory: a length, and rows for an integer array of row numbers."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: NDArray[np.int64], /) -> Any: ...


class LazyBags:
    """Bags of any size, of which only the instances that are asked for are read.

    A bag is any object with ``len(bag)`` and ``bag[rows]`` for an array of ascending row numbers without repetition,
    which returns an array of shape (len(rows), *instance_shape): `numpy.memmap`, a data set of an HDF5 file, a folder
    of images behind a class of one's own. Models that look at a few instances of each bag at a time (MIDAM-smx,
    MIDAM-att, CE, AUC-M) take `LazyBags` wherever they take `Bags`.

    Parameters
    ----------
    bags : sequence of objects
        Where they have a ``shape``, nothing is read here; otherwise the first instance of the first bag is.
    labels : array_like, shape (n_bags,), optional
        Bag labels: {0, 1}, bool or {-1, 1}. Kept as int64 in {0, 1}.

    Attributes
    ----------
    bags : tuple of objects
    labels : ndarray of int64, shape (n_bags,), or None
    offsets : ndarray of int64, shape (n_bags + 1,)
        Bag ``i`` is the instances ``offsets[i]`` to ``offsets[i + 1] - 1`` of all.
    instance_shape : tuple of int
        Shape of one instance: ``(n_features,)`` of a vector, ``(3, 32, 32)`` of an image.

    Raises
    ------
    TypeError
        When an object has no length or gives no rows.
    ValueError
        When there is no bag, a bag is empty, shapes of instances differ, or labels are not two-valued; the message
        names the bag.

    Examples
    --------
    >>> import milfast as mf
    >>> import numpy as np
    >>> from milfast.lazy_bags import LazyBags
    >>> lazy = LazyBags([np.zeros((3, 2)), np.ones((1000, 2))], labels=[-1, 1])
    >>> lazy
    LazyBags(n_bags=2, n_instances=1003, instance_shape=(2,), positive=1, sizes=3..1000)
    >>> lazy.gather([1002, 0])
    array([[1., 1.],
           [0., 0.]])
    """

    __slots__ = ("bags", "instance_shape", "labels", "offsets")

    bags: tuple[Any, ...]
    labels: NDArray[np.int64] | None
    offsets: NDArray[np.int64]
    instance_shape: tuple[int, ...]

    def __init__(self, bags: Sequence[Any], labels: ArrayLike | None = None) -> None:
        held = tuple(bags)
        if not held:
            raise ValueError("bags is empty: at least one bag is needed")
        sizes = np.array([_size(bag, i) for i, bag in enumerate(held)], dtype=np.int64)
        shapes = [tuple(int(n) for n in bag.shape[1:]) if hasattr(bag, "shape") else None for bag in held]
        first = shapes[0] if shapes[0] is not None else _first(held[0]).shape[1:]
        for i, shape in enumerate(shapes):
            if shape is not None and shape != first:
                raise ValueError(f"bags[{i}] has instances of shape {shape}, but bags[0] of shape {first}")
        if not first or 0 in first:
            raise ValueError(f"instances must have shape (n_features,) or be images or the like; got shape {first}")
        self.bags = held
        self.instance_shape = first
        self.offsets = np.concatenate(([0], np.cumsum(sizes)))
        self.labels = None if labels is None else _as_labels(labels, len(held))
        for array in (self.offsets, self.labels):
            if array is not None:
                array.flags.writeable = False

    # ---------------------------------------------------------------- reading

    def read(self, bag: int, rows: ArrayLike) -> NDArray[Any]:
        """Some instances of one bag.

        Parameters
        ----------
        bag : int
        rows : array_like of int, shape (n,)
            Row numbers within the bag, in any order; one may be asked for more than once.

        Returns
        -------
        ndarray of float32 or float64, shape (n, *instance_shape)
            Bytes, small integers and float16 become float32, larger integers float64.

        Raises
        ------
        ValueError
            When what the bag returns has another shape or a value is not finite; the message names the instance.
        IndexError
            When there is no such bag or row.
        """
        if not 0 <= bag < self.n_bags:
            raise IndexError(f"bag {bag} is out of range for {self.n_bags} bags")
        wanted = _row_numbers(rows)
        if wanted.size == 0:
            return np.zeros((0, *self.instance_shape), dtype=np.float32)
        size = int(self.offsets[bag + 1] - self.offsets[bag])
        if wanted.size and not (int(wanted.min()) >= 0 and int(wanted.max()) < size):
            raise IndexError(f"rows of bag {bag} run from 0 to {size - 1}; asked for {wanted.min()} to {wanted.max()}")
        # what is on a disk is read in order, and HDF5 takes nothing else
        distinct, places = np.unique(wanted, return_inverse=True)
        values = _numbers(self.bags[bag][distinct], bag)
        if values.shape != (len(distinct), *self.instance_shape):
            raise ValueError(
                f"bag {bag} returned shape {values.shape} for {len(distinct)} rows; "
                f"it must be {(len(distinct), *self.instance_shape)}"
            )
        finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"instance {int(distinct[np.argmin(finite)])} of bag {bag} has a value that is not finite: "
                "impute or drop it first"
            )
        return values if np.array_equal(distinct, wanted) else values[places]

    def gather(self, rows: ArrayLike) -> NDArray[Any]:
        """Instances by their numbers among those of all bags.

        Parameters
        ----------
        rows : array_like of int, shape (n,)
            In any order, with or without repetition.

        Returns
        -------
        ndarray of float32 or float64, shape (n, *instance_shape)

        Raises
        ------
        ValueError, IndexError
            As `read`.
        """
        wanted = _row_numbers(rows)
        if wanted.size and not (int(wanted.min()) >= 0 and int(wanted.max()) < self.n_instances):
            raise IndexError(f"rows run from 0 to {self.n_instances - 1}; asked for {wanted.min()} to {wanted.max()}")
        owner = np.searchsorted(self.offsets, wanted, side="right") - 1
        order = np.argsort(owner, kind="stable")
        cuts = np.flatnonzero(np.diff(owner[order], prepend=-1))
        parts = [
            self.read(int(owner[part[0]]), wanted[part] - self.offsets[owner[part[0]]])
            for part in np.split(order, cuts[1:])
            if len(part)
        ]
        if not parts:
            return np.zeros((0, *self.instance_shape), dtype=np.float32)
        together = np.concatenate(parts)
        result = np.empty_like(together)
        result[order] = together
        return result

    def to_bags(self) -> Bags:
        """Read everything into memory, each instance as one row of features.

        Returns
        -------
        Bags
        """
        parts = [self.read(i, np.arange(size)).reshape(size, -1) for i, size in enumerate(self.sizes)]
        return Bags(np.concatenate(parts), self.offsets, self.labels)

    # ---------------------------------------------------------------- looking inside

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of instances in each bag, shape (n_bags,)."""
        return np.diff(self.offsets)

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.bags)

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int:
        """Number of values of one instance."""
        return int(np.prod(self.instance_shape))

    def __len__(self) -> int:
        return self.n_bags

    def __iter__(self) -> Iterator[Any]:
        return iter(self.bags)

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Any: ...
    @overload
    def __getitem__(self, index: BagSelection) -> LazyBags: ...
    def __getitem__(self, index: int | np.integer[Any] | BagSelection) -> Any:
        if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
            if not -self.n_bags <= index < self.n_bags:
                raise IndexError(f"bag {index} is out of range for {self.n_bags} bags")
            return self.bags[int(index)]
        chosen = np.arange(self.n_bags)[index]
        if chosen.ndim != 1 or len(chosen) == 0:
            raise IndexError("a selection of bags must be one-dimensional and hold at least one bag")
        made = LazyBags.__new__(LazyBags)
        made.bags = tuple(self.bags[i] for i in chosen)
        made.instance_shape = self.instance_shape
        made.offsets = np.concatenate(([0], np.cumsum(self.sizes[chosen])))
        made.labels = None if self.labels is None else self.labels[chosen]
        return made

    def __repr__(self) -> str:
        positive = "" if self.labels is None else f", positive={int(self.labels.sum())}"
        return (
            f"LazyBags(n_bags={self.n_bags}, n_instances={self.n_instances}, instance_shape={self.instance_shape}"
            f"{positive}, sizes={self.sizes.min()}..{self.sizes.max()})"
        )


def _size(bag: Any, number: int) -> int:
    if not isinstance(bag, LazyBag):
        raise TypeError(
            f"bags[{number}] is {type(bag).__name__}: a bag needs len(bag), and bag[rows] for an array of row numbers"
        )
    size = len(bag)
    if size == 0:
        raise ValueError(f"bags[{number}] is empty: a bag needs at least one instance")
    return size


def _first(bag: Any) -> NDArray[Any]:
    """First instance of a bag that does not say what shape its instances have."""
    try:
        found = bag[np.zeros(1, dtype=np.int64)]
    except TypeError as error:
        raise TypeError(
            f"bags[0] is {type(bag).__name__}, which gives no rows for an array of row numbers ({error}): make it a "
            "numpy.ndarray"
        ) from None
    return _numbers(found, 0)


def _row_numbers(rows: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(rows)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise TypeError(f"rows must be integers in one dimension; got dtype {given.dtype}, shape {given.shape}")
    return given.astype(np.int64)


def _numbers(values: Any, bag: int) -> NDArray[Any]:
    array = np.asarray(to_host(values, f"what bags[{bag}] returns"))
    if array.dtype.kind in "biu" or array.dtype == np.float16:
        return array.astype(np.float32 if array.dtype.itemsize <= 2 else np.float64)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise TypeError(f"bags[{bag}] must return real numbers; got dtype {array.dtype}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)
