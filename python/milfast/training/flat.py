"""All parameters of a network as one: an optimiser then takes one step instead of one a layer."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["flattened"]


@contextmanager
def flattened(module: nn.Module) -> Iterator[nn.Parameter]:
    """Lay out the trainable parameters of a network in one piece of memory while inside.

    For networks of some ten thousand parameters, half of the time of an optimiser goes into handling its parameters one
    by one. A step on the one is, for optimisers that treat each number alone, the same step bit for bit.

    Parameters
    ----------
    module : torch.nn.Module
        Its parameters and their gradients are views of the one while inside, and have memory of their own again after.

    Yields
    ------
    torch.nn.Parameter
        Shape (number of trainable values,). Its ``grad`` is filled by a backward pass through the module; set it to
        zero in place before each.

    Raises
    ------
    ValueError
        When the module has nothing to train, or its parameters differ in dtype or device.

    Examples
    --------
    >>> import torch
    >>> module = torch.nn.Linear(3, 2)
    >>> with flattened(module) as parameter:
    ...     module(torch.ones(1, 3)).sum().backward()
    ...     parameter.grad
    tensor([1., 1., 1., 1., 1., 1., 1., 1.])
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("module has no parameter that can be trained")
    if len({(p.dtype, p.device) for p in parameters}) > 1:
        raise ValueError("all parameters of module must have one dtype and be on one device")
    whole = nn.Parameter(torch.cat([p.detach().reshape(-1) for p in parameters]))
    whole.grad = torch.zeros_like(whole)
    try:
        for parameter, value, gradient in zip(
            parameters, _views(whole.detach(), parameters), _views(whole.grad, parameters), strict=True
        ):
            parameter.data = value
            parameter.grad = gradient
        yield whole
    finally:
        for parameter in parameters:
            parameter.data = parameter.detach().clone()
            parameter.grad = None


def _views(whole: Tensor, parameters: list[nn.Parameter]) -> Iterator[Tensor]:
    for piece, parameter in zip(torch.split(whole, [p.numel() for p in parameters]), parameters, strict=True):
        yield piece.view_as(parameter)
