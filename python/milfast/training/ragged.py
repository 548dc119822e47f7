"""Segment operations on bags stored flat: no padding and no Python loop over bags."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping, Sequence

__all__ = [
    "Padding",
    "batches_of",
    "gather_bags",
    "rejoined",
    "remembered",
    "segment_argmax",
    "segment_index",
    "segment_max",
    "segment_mean",
    "segment_softmax",
    "segment_sum",
]


#: Version and index of the offsets that were handed to `remembered`, as long as they live.
_INDEX: MutableMapping[Tensor, tuple[int, Tensor | None]] = WeakIdKeyDictionary()


def remembered(offsets: Tensor) -> Tensor:
    """Let `segment_index` work only once for these offsets: a network asks several times for the same bags.

    Parameters
    ----------
    offsets : Tensor of int64, shape (n_bags + 1,)
        With memory that nobody else writes to: changes that torch makes in place are noticed, others are not.

    Returns
    -------
    Tensor
        The same.

    Examples
    --------
    >>> import torch
    >>> offsets = remembered(torch.tensor([0, 1, 3]))
    >>> segment_index(offsets) is segment_index(offsets)
    True
    """
    if not offsets.is_inference():  # such have no version
        _INDEX[offsets] = offsets._version, None
    return offsets


def segment_index(offsets: Tensor, *, n_instances: int | None = None) -> Tensor:
    """Bag of each instance.

    Parameters
    ----------
    offsets : Tensor of int64, shape (n_bags + 1,)
        Bag ``i`` is rows ``offsets[i]`` to ``offsets[i + 1] - 1``.
    n_instances : int, optional
        ``offsets[-1]`` where the caller knows it: reading it from a GPU would wait for the GPU.

    Returns
    -------
    Tensor of int64, shape (n_instances,)
        On the device of `offsets`.

    Raises
    ------
    ValueError
        When `offsets` is not one-dimensional.

    Examples
    --------
    >>> import torch
    >>> segment_index(torch.tensor([0, 1, 3]))
    tensor([0, 1, 1])
    """
    if offsets.ndim != 1:
        raise ValueError(f"offsets must have shape (n_bags + 1,); got {tuple(offsets.shape)}")
    kept = _INDEX.get(offsets)
    if kept is not None and kept[0] == offsets._version and kept[1] is not None:
        return kept[1]
    index = torch.repeat_interleave(offsets.diff(), output_size=n_instances)
    # autograd takes no index that was made in inference mode
    if kept is not None and not torch.is_inference_mode_enabled():
        _INDEX[offsets] = offsets._version, index
    return index


def segment_max(values: Tensor, offsets: Tensor) -> Tensor:
    """Largest value of each bag, per column.

    Parameters
    ----------
    values : Tensor of floats, shape (n_instances,) or (n_instances, k)
    offsets : Tensor of int64, shape (n_bags + 1,)
        On the device of `values`.

    Returns
    -------
    Tensor, shape (n_bags,) or (n_bags, k)
        A NaN in a bag makes that bag's maximum NaN. A bag without instances, which `milfast.Bags` refuses, has the
        maximum of the empty set, -inf.

    Raises
    ------
    ValueError
        When `values` has another number of dimensions.

    Notes
    -----
    The gradient of a maximum goes to the instance that attains it, and in equal parts to instances that tie: a
    subgradient, and the same one at each run. The maximum itself does not depend on the order of reduction, so it is
    deterministic on a GPU too.

    Examples
    --------
    >>> import torch
    >>> segment_max(torch.tensor([5.0, 1.0, 2.0]), torch.tensor([0, 1, 3]))
    tensor([5., 2.])
    """
    _check(values)
    bag = _spread(segment_index(offsets, n_instances=len(values)), values)
    lowest = values.new_full((len(offsets) - 1, *values.shape[1:]), -torch.inf)
    return lowest.scatter_reduce(0, bag, values, "amax")


def segment_argmax(values: Tensor, offsets: Tensor) -> Tensor:
    """Row of the largest value of each bag: its witness.

    Parameters
    ----------
    values : Tensor of floats, shape (n_instances,) or (n_instances, k)
    offsets : Tensor of int64, shape (n_bags + 1,)
        On the device of `values`; no bag is empty.

    Returns
    -------
    Tensor of int64, shape (n_bags,) or (n_bags, k)
        The first of rows that tie; the first NaN where there is one.

    Raises
    ------
    ValueError
        When `values` has another number of dimensions.

    Examples
    --------
    >>> import torch
    >>> segment_argmax(torch.tensor([5.0, 2.0, 2.0]), torch.tensor([0, 1, 3]))
    tensor([0, 1])
    """
    _check(values)
    bag = segment_index(offsets, n_instances=len(values))
    largest = segment_max(values.detach(), offsets)[bag]
    row = torch.arange(len(values), device=values.device)
    row = _spread(row, values).masked_fill(~((values == largest) | values.isnan()), len(values))
    last = row.new_full((len(offsets) - 1, *values.shape[1:]), len(values))
    return last.scatter_reduce(0, _spread(bag, values), row, "amin")


def segment_sum(values: Tensor, offsets: Tensor) -> Tensor:
    """Sum of each bag, per column.

    Parameters
    ----------
    values : Tensor of floats, shape (n_instances,) or (n_instances, k)
    offsets : Tensor of int64, shape (n_bags + 1,)
        On the device of `values`.

    Returns
    -------
    Tensor, shape (n_bags,) or (n_bags, k)
        0 for a bag without instances.

    Raises
    ------
    ValueError
        When `values` has another number of dimensions.

    Notes
    -----
    Instances are added in the order they have in the bag, so the sum of a bag does not depend on other bags. On a GPU
    the order may vary from run to run unless torch is told to be deterministic.

    Examples
    --------
    >>> import torch
    >>> segment_sum(torch.tensor([5.0, 1.0, 2.0]), torch.tensor([0, 1, 3]))
    tensor([5., 3.])
    """
    _check(values)
    bag = segment_index(offsets, n_instances=len(values))
    return values.new_zeros((len(offsets) - 1, *values.shape[1:])).index_add(0, bag, values)


def segment_mean(values: Tensor, offsets: Tensor) -> Tensor:
    """Mean of each bag, per column.

    Parameters
    ----------
    values : Tensor of floats, shape (n_instances,) or (n_instances, k)
    offsets : Tensor of int64, shape (n_bags + 1,)
        On the device of `values`.

    Returns
    -------
    Tensor, shape (n_bags,) or (n_bags, k)
        NaN for a bag without instances.

    Raises
    ------
    ValueError
        When `values` has another number of dimensions.

    Examples
    --------
    >>> import torch
    >>> segment_mean(torch.tensor([5.0, 1.0, 2.0]), torch.tensor([0, 1, 3]))
    tensor([5.0000, 1.5000])
    """
    sizes = offsets.diff().to(values.dtype)
    return segment_sum(values, offsets) / (sizes if values.ndim == 1 else sizes[:, None])


def segment_softmax(values: Tensor, offsets: Tensor) -> Tensor:
    """Softmax within each bag, per column.

    Parameters
    ----------
    values : Tensor of floats, shape (n_instances,) or (n_instances, k)
    offsets : Tensor of int64, shape (n_bags + 1,)
        On the device of `values`.

    Returns
    -------
    Tensor, shape of `values`
        Not negative; the values of a bag add up to 1. Differences between values may be as large as floats allow.

    Raises
    ------
    ValueError
        When `values` has another number of dimensions.

    Examples
    --------
    >>> import torch
    >>> segment_softmax(torch.tensor([5.0, 0.0, 1000.0]), torch.tensor([0, 1, 3]))
    tensor([1., 0., 1.])
    """
    _check(values)
    bag = segment_index(offsets, n_instances=len(values))
    # A softmax is the same whatever is subtracted, so no gradient need flow through the maximum.
    powers = (values - segment_max(values.detach(), offsets).index_select(0, bag)).exp()
    return powers / segment_sum(powers, offsets).index_select(0, bag)


@dataclass(frozen=True)
class Padding:
    """The way between flat bags and bags padded to the longest: for what compares instances of a bag with each other.

    Layers that look at one instance at a time are cheaper on flat bags. Padded rows are zeros, `mask` tells them apart.

    Attributes
    ----------
    rows : Tensor of int64, shape (n,)
        Rows of the instances of these bags among all.
    places : Tensor of int64, shape (n,)
        Place of each of them among the ``n_bags * longest`` padded rows.
    n_bags, longest : int

    Examples
    --------
    >>> import torch
    >>> [padding] = Padding.of(torch.tensor([0, 1, 3]))
    >>> padding.mask
    tensor([[ True, False],
            [ True,  True]])
    >>> padding.pad(torch.tensor([[5.0], [1.0], [2.0]]))[:, :, 0]
    tensor([[5., 0.],
            [1., 2.]])
    """

    rows: Tensor
    places: Tensor
    n_bags: int
    longest: int

    @classmethod
    def of(cls, offsets: Tensor, *, largest: int = 1 << 20) -> list[Self]:
        """Padding of the bags between `offsets`.

        Parameters
        ----------
        offsets : Tensor of int64, shape (n_bags + 1,)
        largest : int
            Pairs of padded instances, ``n_bags * longest**2``, that are held at once. Bags of more are taken in several
            groups, each of bags of like size; a single bag is never divided.

        Returns
        -------
        list of Padding
            One for each group; their tensors are on the device of `offsets`.
        """
        sizes = offsets.diff().cpu()
        n_bags = len(sizes)
        longest = int(sizes.max()) if n_bags else 0
        if n_bags * longest**2 <= largest:
            return [cls._group(offsets, None, longest)]
        order = torch.argsort(sizes, stable=True)
        groups, last = [], n_bags
        while last:  # from the largest bags down
            longest = int(sizes[order[last - 1]])
            first = max(last - max(1, largest // longest**2), int((2 * sizes[order] < longest).sum()))
            first = min(first, last - 1)
            groups.append(cls._group(offsets, order[first:last], longest))
            last = first
        return groups

    @classmethod
    def _group(cls, offsets: Tensor, bags: Tensor | None, longest: int) -> Self:
        starts, sizes = offsets[:-1], offsets.diff()
        if bags is not None:
            starts, sizes = starts[bags.to(offsets.device)], sizes[bags.to(offsets.device)]
        places = torch.arange(len(sizes), device=offsets.device) * longest
        within = sizes.cumsum(0) - sizes
        count = torch.arange(int(sizes.sum()), device=offsets.device)
        return cls(
            count + torch.repeat_interleave(starts - within, sizes),
            count + torch.repeat_interleave(places - within, sizes),
            len(sizes),
            longest,
        )

    @cached_property
    def mask(self) -> Tensor:
        """Where there is an instance: bool, shape (n_bags, longest)."""
        mask = torch.zeros(self.n_bags * self.longest, dtype=torch.bool, device=self.rows.device)
        mask[self.places] = True
        return mask.view(self.n_bags, self.longest)

    def pad(self, values: Tensor) -> Tensor:
        """Put flat values of all instances into padded bags.

        Parameters
        ----------
        values : Tensor, shape (n_instances, k)

        Returns
        -------
        Tensor, shape (n_bags, longest, k)
        """
        padded = values.new_zeros((self.n_bags * self.longest, values.shape[1]))
        return padded.index_copy(0, self.places, values.index_select(0, self.rows)).view(self.n_bags, self.longest, -1)

    def flat(self, values: Tensor) -> Tensor:
        """Take the values of instances out of padded bags.

        Parameters
        ----------
        values : Tensor, shape (n_bags, longest, k)

        Returns
        -------
        Tensor, shape (n, k)
            In the order of `rows`.
        """
        return values.reshape(self.n_bags * self.longest, -1).index_select(0, self.places)


def rejoined(paddings: list[Padding], parts: list[Tensor]) -> Tensor:
    """Values of all instances, in order, from those of each group.

    Parameters
    ----------
    paddings : list of Padding
        All groups of `Padding.of`.
    parts : list of Tensor, shape (n, k)
        What ``padding.flat`` gave for each.

    Returns
    -------
    Tensor, shape (n_instances, k)
    """
    if len(parts) == 1:
        return parts[0]
    values = torch.cat(parts)
    return torch.zeros_like(values).index_copy(0, torch.cat([padding.rows for padding in paddings]), values)


def gather_bags(instances: Tensor, offsets: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Some of the bags, in the order asked for.

    Parameters
    ----------
    instances : Tensor, shape (n_instances, n_features)
        On any device.
    offsets : Tensor of int64, shape (n_bags + 1,)
        Row numbers are worked out where `offsets` lives: on the CPU they never make a GPU wait.
    chosen : Tensor of int64, shape (n_chosen,)
        Bag numbers, on the device of `offsets`; a bag may be chosen more than once.

    Returns
    -------
    instances : Tensor, shape (number of instances in the chosen bags, n_features)
    offsets : Tensor of int64, shape (n_chosen + 1,)
        Both on the device of `instances`.

    Raises
    ------
    IndexError
        When a bag number is out of range.

    Examples
    --------
    >>> import torch
    >>> x, cuts = gather_bags(torch.tensor([[5.0], [1.0], [2.0]]), torch.tensor([0, 1, 3]), torch.tensor([1, 0]))
    >>> x[:, 0], cuts
    (tensor([1., 2., 5.]), tensor([0, 2, 3]))
    """
    first = offsets[:-1][chosen]
    sizes = offsets[1:][chosen] - first
    cuts = torch.cat((sizes.new_zeros(1), sizes.cumsum(0)))
    n_rows = int(cuts[-1])
    rows = torch.arange(n_rows, device=cuts.device) + torch.repeat_interleave(
        first - cuts[:-1], sizes, output_size=n_rows
    )
    return instances.index_select(0, rows.to(instances.device)), cuts.to(instances.device)


def batches_of(
    instances: Tensor, offsets: Tensor, batches: Sequence[Tensor], *, together: int = 1 << 16
) -> Iterator[tuple[Tensor, Tensor]]:
    """Instances and offsets of batches of bags, gathered many batches at a time: a batch is a piece of what is there.

    Parameters
    ----------
    instances : Tensor, shape (n_instances, n_features)
        On any device.
    offsets : Tensor of int64, shape (n_bags + 1,)
        On the CPU.
    batches : sequence of Tensor of int64
        Bag numbers, on the CPU.
    together : int
        Instances that are gathered at a time, or one batch.

    Yields
    ------
    instances, offsets : Tensor
        Of one batch after the other, on the device of `instances`.

    Examples
    --------
    >>> import torch
    >>> x, offsets = torch.tensor([[5.0], [1.0], [2.0]]), torch.tensor([0, 1, 3])
    >>> [rows[:, 0].tolist() for rows, _ in batches_of(x, offsets, [torch.tensor([1]), torch.tensor([0, 1])])]
    [[1.0, 2.0], [5.0, 1.0, 2.0]]
    """
    sizes = offsets.diff()
    counts = [int(sizes[batch].sum()) for batch in batches]
    first = 0
    while first < len(batches):
        last, held = first, 0
        while last < len(batches) and (last == first or held + counts[last] <= together):
            held += counts[last]
            last += 1
        rows, cuts = gather_bags(instances, offsets, torch.cat(list(batches[first:last])))
        row = bag = 0
        for batch, count in zip(batches[first:last], counts[first:last], strict=True):
            yield rows[row : row + count], remembered(cuts[bag : bag + len(batch) + 1] - row)
            row += count
            bag += len(batch)
        first = last


def _check(values: Tensor) -> None:
    if values.ndim not in (1, 2):
        raise ValueError(f"values must have shape (n_instances,) or (n_instances, k); got {tuple(values.shape)}")


def _spread(numbers: Tensor, values: Tensor) -> Tensor:
    """Numbers of rows, repeated for each column of `values`."""
    return numbers if values.ndim == 1 else numbers[:, None].expand_as(values)
