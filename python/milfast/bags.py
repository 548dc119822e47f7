"""Bags: ragged groups of instances, stored flat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias, overload

import numpy as np

from milfast._core import binary_labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch
    from numpy.typing import ArrayLike, NDArray

    BagSelection: TypeAlias = slice | Sequence[int] | NDArray[Any]


class Bags:
    """Bags of instances: one flat instance matrix and the offsets that cut it into bags.

    Bag ``i`` is ``instances[offsets[i]:offsets[i + 1]]``. Nothing is padded, so every algorithm can run over all
    instances at once. The arrays are read-only: a `Bags` never changes after it was made.

    Parameters
    ----------
    instances : array_like, shape (n_instances, n_features)
        float32 and float64 are kept as they are, in the caller's memory where it has the right layout; integers and
        booleans become float64. NaN and infinities are refused.
    offsets : array_like of int, shape (n_bags + 1,)
        Starts with 0, ends with ``n_instances``, strictly increasing: a bag holds at least one instance.
    labels : array_like, shape (n_bags,), optional
        Bag labels: {0, 1}, bool or {-1, 1}. Kept as int64 in {0, 1}.
    kinds : array_like of int, shape (n_instances,), optional
        What each instance is (see `milfast.checks.BagRecipe.kinds`). Only synthetic bags know this.

    Raises
    ------
    ValueError
        When shapes disagree, a bag is empty, a value is not finite or the labels are not two-valued. The message names
        the argument and the position.
    TypeError
        When an argument has a type that cannot be read as numbers.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> bags
    Bags(n_bags=2, n_instances=3, n_features=2, dtype=float64, positive=1, sizes=1..2)
    >>> bags[1]
    array([[2., 3.],
           [4., 5.]])
    """

    __slots__ = ("instances", "kinds", "labels", "offsets")

    instances: NDArray[Any]
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64] | None
    kinds: NDArray[np.int16] | None

    def __init__(
        self,
        instances: ArrayLike,
        offsets: ArrayLike,
        labels: ArrayLike | None = None,
        kinds: ArrayLike | None = None,
    ) -> None:
        x = _as_instances(instances)
        cuts = _as_offsets(offsets, len(x))
        _require_finite(x, cuts)
        n_bags = len(cuts) - 1
        y = None if labels is None else _as_labels(labels, n_bags)
        self._set(x, cuts, y, None if kinds is None else _as_kinds(kinds, len(x)))

    def _set(
        self,
        instances: NDArray[Any],
        offsets: NDArray[np.int64],
        labels: NDArray[np.int64] | None,
        kinds: NDArray[np.int16] | None,
    ) -> None:
        for name, array in (("instances", instances), ("offsets", offsets), ("labels", labels), ("kinds", kinds)):
            if array is not None:
                array = array.view()
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def _trusted(
        cls,
        instances: NDArray[Any],
        offsets: NDArray[np.int64],
        labels: NDArray[np.int64] | None,
        kinds: NDArray[np.int16] | None,
    ) -> Self:
        """Wrap arrays that are right by construction, without looking at them again."""
        bags = cls.__new__(cls)
        bags._set(instances, offsets, labels, kinds)
        return bags

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Bags are read-only: make a new Bags instead of setting {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.instances, self.offsets, self.labels, self.kinds)

    # ---------------------------------------------------------------- other forms in

    @classmethod
    def from_list(cls, bags: Sequence[ArrayLike], labels: ArrayLike | None = None) -> Self:
        """Join one matrix per bag.

        Parameters
        ----------
        bags : sequence of array_like, each of shape (bag size, n_features)
        labels : array_like, shape (n_bags,), optional

        Returns
        -------
        Bags

        Raises
        ------
        ValueError
            When there is no bag, a bag is empty or not two-dimensional, or bags differ in their number of features.

        Examples
        --------
        >>> import milfast as mf
        >>> mf.Bags.from_list([[[0.0], [1.0]], [[2.0]]], labels=[0, 1]).sizes
        array([2, 1])
        """
        if len(bags) == 0:
            raise ValueError("bags is empty: at least one bag is needed")
        parts = [_as_instances(bag, name=f"bags[{i}]") for i, bag in enumerate(bags)]
        width = parts[0].shape[1]
        for i, part in enumerate(parts):
            if part.shape[1] != width:
                raise ValueError(f"bags[{i}] has {part.shape[1]} features, but bags[0] has {width}")
            if len(part) == 0:
                raise ValueError(f"bags[{i}] is empty: a bag needs at least one instance")
        return cls(np.concatenate(parts), np.cumsum([0, *map(len, parts)]), labels)

    @classmethod
    def from_padded(cls, x: ArrayLike, mask: ArrayLike, labels: ArrayLike | None = None) -> Self:
        """Cut the padding off.

        Parameters
        ----------
        x : array_like, shape (n_bags, longest bag, n_features)
        mask : array_like of bool, shape (n_bags, longest bag)
            True where there is an instance, False where there is padding.
        labels : array_like, shape (n_bags,), optional

        Returns
        -------
        Bags

        Raises
        ------
        ValueError
            When the shapes of `x` and `mask` disagree or a bag is all padding.

        Examples
        --------
        >>> import milfast as mf
        >>> mf.Bags.from_padded([[[1.0], [0.0]], [[2.0], [3.0]]], mask=[[True, False], [True, True]]).offsets
        array([0, 1, 3])
        """
        padded = _as_array(x, "x")
        keep = np.asarray(to_host(mask, "mask"))
        if padded.ndim != 3:
            raise ValueError(f"x must have shape (n_bags, longest bag, n_features); got {padded.shape}")
        if keep.shape != padded.shape[:2]:
            raise ValueError(f"mask must have shape {padded.shape[:2]} like x; got {keep.shape}")
        keep = keep.astype(bool)
        sizes = keep.sum(axis=1)
        if (sizes == 0).any():
            raise ValueError(f"bag {int(np.argmin(sizes))} is all padding: a bag needs at least one instance")
        return cls(padded[keep], np.concatenate(([0], np.cumsum(sizes))), labels)

    @classmethod
    def from_frame(
        cls, frame: Any, *, bag: str, label: str | None = None, features: Sequence[str] | None = None
    ) -> Self:
        """Group the rows of a data frame (pandas, polars or any frame whose columns are arrays) into bags.

        Parameters
        ----------
        frame : data frame
            One row per instance; rows of one bag need not be neighbours.
        bag : str
            Column that names the bag. Bags keep the order of their first row.
        label : str, optional
            Column with the bag label, the same on each row of a bag.
        features : sequence of str, optional
            Feature columns; all other columns by default.

        Returns
        -------
        Bags

        Raises
        ------
        ValueError
            When a column is missing, a row names no bag, or a bag has two labels.

        Examples
        --------
        >>> import milfast as mf, pandas as pd
        >>> frame = pd.DataFrame({"bag": ["a", "b", "a"], "y": [1, 0, 1], "f1": [0.1, 0.2, 0.3]})
        >>> mf.Bags.from_frame(frame, bag="bag", label="y").to_list()
        [array([[0.1],
               [0.3]]), array([[0.2]])]
        """
        columns = list(frame.columns)
        wanted = [c for c in (bag, label, *(features or ())) if c is not None]
        for column in wanted:
            if column not in columns:
                raise ValueError(f"frame has no column {column!r}; its columns are {', '.join(map(str, columns))}")
        if features is None:
            features = [c for c in columns if c not in (bag, label)]
        if not features:
            raise ValueError("frame has no feature columns beside the bag and label columns")
        if len(frame) == 0:
            raise ValueError("frame has no rows: at least one bag is needed")
        named = np.asarray(frame[bag])
        absent = np.flatnonzero(_missing(named))
        if len(absent):
            raise ValueError(f"row {int(absent[0])} has no value in column {bag!r}: every row belongs to a bag")
        ids, first, member = np.unique(named, return_index=True, return_inverse=True)
        rank = np.empty(len(ids), dtype=np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(ids))
        member = rank[member]
        order = np.argsort(member, kind="stable")
        x = np.stack([_as_array(frame[c], f"column {c!r}") for c in features], axis=1)
        labels = None
        if label is not None:
            given = np.asarray(frame[label])
            labels = given[np.sort(first)]
            odd = np.flatnonzero(given != labels[member])
            if len(odd):
                row = int(odd[0])
                raise ValueError(
                    f"row {row} gives bag {named[row]} the label {given[row]}, "
                    f"the first row of that bag gives it {labels[member[row]]}: a bag has one label"
                )
        return cls(x[order], np.concatenate(([0], np.cumsum(np.bincount(member)))), labels)

    # ---------------------------------------------------------------- other forms out

    def to_list(self) -> list[NDArray[Any]]:
        """One matrix per bag, each of shape (bag size, n_features): views, not copies.

        Returns
        -------
        list of ndarray

        Examples
        --------
        >>> import milfast as mf
        >>> [bag.shape for bag in mf.sample_bags("presence", 2, recipe="strict", random_state=0).to_list()]
        [(16, 16), (10, 16)]
        """
        return np.split(self.instances, self.offsets[1:-1])

    def to_padded(self, *, fill: float = 0.0) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Pad every bag to the longest.

        Parameters
        ----------
        fill : float
            Value of the padding.

        Returns
        -------
        x : ndarray, shape (n_bags, longest bag, n_features)
        mask : ndarray of bool, shape (n_bags, longest bag)
            True where there is an instance.

        Examples
        --------
        >>> import milfast as mf
        >>> x, mask = mf.Bags([[1.0], [2.0], [3.0]], [0, 1, 3]).to_padded()
        >>> x[:, :, 0]
        array([[1., 0.],
               [2., 3.]])
        """
        mask = np.arange(self.sizes.max()) < self.sizes[:, None]
        x = np.full((*mask.shape, self.n_features), fill, dtype=self.instances.dtype)
        x[mask] = self.instances
        return x, mask

    def to_torch(self, device: Any = None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Copy to torch tensors.

        Parameters
        ----------
        device : torch.device or str, optional

        Returns
        -------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)
        labels : Tensor of float32, shape (n_bags,), or None

        Raises
        ------
        ImportError
            When torch is not installed.
        """
        import torch

        labels = None if self.labels is None else torch.tensor(self.labels, dtype=torch.float32, device=device)
        return torch.tensor(self.instances, device=device), torch.tensor(self.offsets, device=device), labels

    # ---------------------------------------------------------------- looking inside

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of instances in each bag, shape (n_bags,)."""
        return np.diff(self.offsets)

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.offsets) - 1

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        return len(self.instances)

    @property
    def n_features(self) -> int:
        """Number of features of an instance."""
        return int(self.instances.shape[1])

    @property
    def bag_index(self) -> NDArray[np.int64]:
        """Bag of each instance, shape (n_instances,)."""
        return np.repeat(np.arange(self.n_bags), self.sizes)

    def __len__(self) -> int:
        return self.n_bags

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(self.to_list())

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, index: BagSelection) -> Bags: ...
    def __getitem__(self, index: int | np.integer[Any] | BagSelection) -> NDArray[Any] | Bags:
        if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
            i = int(index)
            if not -self.n_bags <= i < self.n_bags:
                raise IndexError(f"bag {i} is out of range for {self.n_bags} bags")
            i %= self.n_bags
            bag: NDArray[Any] = self.instances[self.offsets[i] : self.offsets[i + 1]]
            return bag
        chosen = np.arange(self.n_bags)[index]
        if chosen.ndim != 1 or len(chosen) == 0:
            raise IndexError("a selection of bags must be one-dimensional and hold at least one bag")
        sizes = self.sizes[chosen]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], sizes)
        return Bags._trusted(
            self.instances[rows],
            offsets,
            None if self.labels is None else self.labels[chosen],
            None if self.kinds is None else self.kinds[rows],
        )

    def with_instances(self, instances: ArrayLike) -> Bags:
        """The same bags, labels and kinds around other instance features (scaled ones, say).

        Parameters
        ----------
        instances : array_like, shape (n_instances, any number of features)

        Returns
        -------
        Bags

        Raises
        ------
        ValueError
            When the number of instances differs or a value is not finite.
        """
        return Bags(instances, self.offsets, self.labels, self.kinds)

    def __repr__(self) -> str:
        positive = "" if self.labels is None else f", positive={int(self.labels.sum())}"
        return (
            f"Bags(n_bags={self.n_bags}, n_instances={self.n_instances}, n_features={self.n_features}, "
            f"dtype={self.instances.dtype}{positive}, sizes={self.sizes.min()}..{self.sizes.max()})"
        )


def _rebuild(
    instances: NDArray[Any],
    offsets: NDArray[np.int64],
    labels: NDArray[np.int64] | None,
    kinds: NDArray[np.int16] | None,
) -> Bags:
    return Bags._trusted(instances, offsets, labels, kinds)


def to_host(values: Any, name: str) -> Any:
    """Torch tensors on the CPU become arrays; tensors elsewhere and masked values are refused."""
    device = getattr(values, "device", None)
    if getattr(device, "type", "cpu") != "cpu":
        raise TypeError(f"{name} lives on {device}: call .cpu() first")
    if isinstance(values, np.ndarray) and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values: fill or drop them first")
    return values.detach() if hasattr(values, "detach") else values


def _as_array(values: Any, name: str) -> NDArray[Any]:
    host = to_host(values, name)
    try:
        array = np.asarray(host)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} cannot be read as an array of numbers: {error}") from None
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} cannot be read as numbers: {error}") from None
    if array.dtype.kind in "biu" or array.dtype == np.float16:
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} must hold real numbers (float32, float64 or integers); got dtype {array.dtype}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind in "mM":
        return np.asarray(np.isnat(column))
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column))
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=bool)
    # NaN is not equal to itself, and comparing pandas' NA with anything gives NA again
    return np.array([v is None or not isinstance(v == v, (bool, np.bool_)) or v != v for v in column], dtype=bool)


def _as_instances(instances: Any, name: str = "instances") -> NDArray[Any]:
    x = np.ascontiguousarray(_as_array(instances, name))
    if x.ndim != 2 or x.shape[1] == 0:
        raise ValueError(f"{name} must have shape (n_instances, n_features) with at least one feature; got {x.shape}")
    return x


def _as_offsets(offsets: Any, n_instances: int) -> NDArray[np.int64]:
    given = np.asarray(to_host(offsets, "offsets"))
    if given.ndim != 1 or len(given) < 2:
        raise ValueError(f"offsets must have shape (n_bags + 1,) for at least one bag; got shape {given.shape}")
    if given.dtype.kind not in "iu":
        raise TypeError(f"offsets must be integers; got dtype {given.dtype}")
    cuts = given.astype(np.int64)
    if cuts[0] != 0 or cuts[-1] != n_instances:
        raise ValueError(f"offsets must start with 0 and end with {n_instances}; they run from {cuts[0]} to {cuts[-1]}")
    empty = np.flatnonzero(cuts[1:] <= cuts[:-1])  # a difference could overflow
    if len(empty):
        i = int(empty[0])
        raise ValueError(f"bag {i} is empty (offsets[{i}]={cuts[i]}, offsets[{i + 1}]={cuts[i + 1]}): drop it first")
    return cuts


def _require_finite(x: NDArray[Any], offsets: NDArray[np.int64]) -> None:
    finite = np.isfinite(x)
    if not finite.all():
        row, column = (int(v) for v in np.argwhere(~finite)[0])
        bag = int(np.searchsorted(offsets, row, side="right")) - 1
        raise ValueError(
            f"instances[{row}, {column}] (bag {bag}, its instance {row - int(offsets[bag])}) is {x[row, column]}: "
            "impute or drop it first"
        )


def _as_kinds(kinds: Any, n_instances: int) -> NDArray[np.int16]:
    k = np.asarray(to_host(kinds, "kinds"))
    if k.shape != (n_instances,) or k.dtype.kind not in "iu":
        raise ValueError(
            f"kinds must hold one integer per instance, shape ({n_instances},); got shape {k.shape}, dtype {k.dtype}"
        )
    if k.min() < 0 or k.max() > np.iinfo(np.int16).max:
        raise ValueError(f"kinds must lie in 0..{np.iinfo(np.int16).max}; they run from {k.min()} to {k.max()}")
    return k.astype(np.int16)


def _as_labels(labels: Any, n_bags: int) -> NDArray[np.int64]:
    try:
        y = binary_labels(labels)
    except ValueError as error:
        if "pos_label" not in str(error):
            raise
        raise ValueError(
            "labels of bags must be {0, 1}, {-1, 1} or bool: turn others into bool first, labels == the positive one"
        ) from None
    if len(y) != n_bags:
        raise ValueError(f"labels has {len(y)} entries for {n_bags} bags")
    return y.astype(np.int64)
