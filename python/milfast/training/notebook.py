"""Faults of the training code behind the published tables, to be switched on where a figure is to be reproduced.

The notebook published with Raff & Holt (2023) trains its deep models on other bags, and on other batches, than the
paper says. Each fault has a name; a model made with ``faults=("biased-split",)`` repeats it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from milfast.training.devices import device_of
from milfast.training.ragged import Padding, gather_bags, remembered

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FAULTS", "checked", "pad_with_zeros", "scores", "sorted_batches", "split"]

#: What each fault does.
FAULTS = {
    "biased-split": (
        "bags beyond the first 80 % of all, negatives first, are never trained on: five of eight training bags are "
        "negative"
    ),
    "sorted-batches": (
        "batches are made once, of bags of like size in the order of their number, so that most hold one class; only "
        "their order changes from epoch to epoch"
    ),
    "unmasked-padding": (
        "bags are filled up with zeros to the longest of their batch, and the zeros are looked at as instances, in "
        "training and in scoring: a score depends on the other bags of its batch"
    ),
}
#: Padded instances of a batch at most.
LARGEST_BATCH = 5000


def checked(faults: object) -> frozenset[str]:
    """Names of faults.

    Parameters
    ----------
    faults : str or sequence of str

    Returns
    -------
    frozenset of str

    Raises
    ------
    TypeError, ValueError
        When there is a fault of another name.
    """
    names = (faults,) if isinstance(faults, str) else faults
    if not isinstance(names, (tuple, list, set, frozenset)):
        raise TypeError(f"faults must be a sequence of names; got {faults!r}")
    for name in names:
        if name not in FAULTS:
            listed = "".join(f"\n  {known}: {text}" for known, text in FAULTS.items())
            raise ValueError(f"faults must be among {', '.join(FAULTS)}; got {name!r}. What they do:{listed}")
    return frozenset(names)


def split(labels: Tensor) -> Tensor:
    """Bags that are trained on under "biased-split".

    Parameters
    ----------
    labels : Tensor, shape (n_bags,)
        In {0, 1}.

    Returns
    -------
    Tensor of int64
        The first four fifths of all bags, negatives first.

    Examples
    --------
    >>> import torch
    >>> split(torch.tensor([1, 0, 1, 0, 0, 1, 1, 0, 1, 0])).tolist()
    [1, 3, 4, 7, 9, 0, 2, 5]
    """
    negatives_first = torch.argsort(labels.cpu(), stable=True)
    return negatives_first[: len(labels) * 4 // 5]


def sorted_batches(sizes: Tensor, batch_size: int) -> list[Tensor]:
    """Batches under "sorted-batches": of bags of like size, the largest first.

    Parameters
    ----------
    sizes : Tensor of int64, shape (n_bags,)
    batch_size : int
        Bags of a batch at most; a batch also holds at most 5,000 instances once it is padded, or one bag.

    Returns
    -------
    list of Tensor of int64

    Examples
    --------
    >>> import torch
    >>> [batch.tolist() for batch in sorted_batches(torch.tensor([1, 3, 2, 3]), 2)]
    [[1, 3], [2, 0]]
    """
    order = torch.argsort(sizes, descending=True, stable=True)
    batches, first = [], 0
    while first < len(order):
        bags = max(1, min(batch_size, LARGEST_BATCH // int(sizes[order[first]])))
        batches.append(order[first : first + bags])
        first += bags
    return batches


def pad_with_zeros(instances: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Bags filled up with zeros to the longest of them, under "unmasked-padding".

    Parameters
    ----------
    instances : Tensor, shape (n_instances, n_features)
    offsets : Tensor of int64, shape (n_bags + 1,)

    Returns
    -------
    instances, offsets : Tensor

    Examples
    --------
    >>> import torch
    >>> pad_with_zeros(torch.ones(3, 1), torch.tensor([0, 1, 3]))[1]
    tensor([0, 2, 4])
    """
    (padding,) = Padding.of(offsets, largest=sys.maxsize)
    filled = padding.pad(instances).view(-1, instances.shape[1])
    return filled, remembered(torch.arange(padding.n_bags + 1, device=offsets.device) * padding.longest)


def scores(module: nn.Module, instances: Tensor, offsets: Tensor, batch_size: int) -> Tensor:
    """Bag logits under "unmasked-padding"; the module is in evaluation mode.

    Parameters
    ----------
    module : torch.nn.Module
    instances : Tensor, shape (n_instances, n_features)
    offsets : Tensor of int64, shape (n_bags + 1,)
    batch_size : int

    Returns
    -------
    Tensor, shape (n_bags,)
        On the CPU.
    """
    logits = torch.empty(len(offsets) - 1)
    device = device_of(module)
    batches: Sequence[Tensor] = sorted_batches(offsets.diff(), batch_size)
    for batch in batches:
        rows, cuts = gather_bags(instances, offsets, batch)
        logits[batch] = module(*pad_with_zeros(rows.to(device), cuts.to(device))).float().cpu()
    return logits
