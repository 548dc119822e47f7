"""Segment operations on bags stored flat: no padding and no Python loop over bags."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["gather_bags", "segment_index", "segment_max"]


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
    return torch.repeat_interleave(offsets.diff(), output_size=n_instances)


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
    if values.ndim not in (1, 2):
        raise ValueError(f"values must have shape (n_instances,) or (n_instances, k); got {tuple(values.shape)}")
    bag = segment_index(offsets, n_instances=len(values))
    if values.ndim == 2:
        bag = bag[:, None].expand_as(values)
    lowest = values.new_full((len(offsets) - 1, *values.shape[1:]), -torch.inf)
    return lowest.scatter_reduce(0, bag, values, "amax")


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
