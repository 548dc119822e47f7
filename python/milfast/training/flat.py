"""All parameters of a network as one: an optimiser then takes one step instead of one a layer."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Flat", "flattened"]


@dataclass(frozen=True)
class Flat:
    """The parameters of a network in one piece of memory.

    Attributes
    ----------
    whole : torch.nn.Parameter
        Shape (number of trainable values,), with a gradient.
    parts : list of torch.nn.Parameter
        Those of the network.
    values, gradients : list of Tensor
        Their places in the memory of `whole` and of its gradient.
    """

    whole: nn.Parameter
    parts: list[nn.Parameter]
    values: list[Tensor]
    gradients: list[Tensor]

    @property
    def gradient(self) -> Tensor:
        """That of `whole`: to be set to zero in place before a backward pass."""
        assert self.whole.grad is not None
        return self.whole.grad

    def gather(self) -> None:
        """Take in parameters and gradients that the network has put elsewhere; to be called before each step.

        A network whose ``forward`` calls ``self.zero_grad()``, or sets ``weight.data``, would else go on learning
        beside the parameters that the optimiser sees.
        """
        for part, value, gradient in zip(self.parts, self.values, self.gradients, strict=True):
            if part.grad is not gradient:
                if part.grad is None:
                    gradient.zero_()
                else:
                    gradient.copy_(part.grad)
                part.grad = gradient
            if part.data_ptr() != value.data_ptr():
                value.copy_(part.detach())
                part.data = value


@contextmanager
def flattened(module: nn.Module) -> Iterator[Flat]:
    """Lay out the trainable parameters of a network in one piece of memory while inside.

    For networks of some ten thousand parameters, half of the time of an optimiser goes into handling its parameters one
    by one. A step on the one is, for optimisers that treat each number alone, the same step bit for bit, but for
    parameters that got no gradient at all: an optimiser leaves them alone where they are by themselves, and has a
    gradient of 0 for them here, so that weight decay and momentum move them.

    Parameters
    ----------
    module : torch.nn.Module
        Its parameters and their gradients are views of the one while inside, and have memory of their own again after.

    Yields
    ------
    Flat
        An optimiser takes its ``whole``. A backward pass through the module fills its ``gradient``, to be set to zero
        in place before; ``gather()`` comes after it.

    Raises
    ------
    ValueError
        When the module has nothing to train, or its parameters differ in dtype or device.

    Examples
    --------
    >>> import torch
    >>> module = torch.nn.Linear(3, 2)
    >>> with flattened(module) as flat:
    ...     module(torch.ones(1, 3)).sum().backward()
    ...     flat.gather()
    ...     flat.gradient
    tensor([1., 1., 1., 1., 1., 1., 1., 1.])
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("module has no parameter that can be trained")
    if len({(p.dtype, p.device) for p in parameters}) > 1:
        raise ValueError("all parameters of module must have one dtype and be on one device")
    whole = nn.Parameter(torch.cat([p.detach().reshape(-1) for p in parameters]))
    whole.grad = torch.zeros_like(whole)
    values, gradients = (list(_views(one, parameters)) for one in (whole.detach(), whole.grad))
    try:
        for parameter, value, gradient in zip(parameters, values, gradients, strict=True):
            parameter.data = value
            parameter.grad = gradient
        yield Flat(whole, parameters, values, gradients)
    finally:
        for parameter in parameters:
            parameter.data = parameter.detach().clone()
            parameter.grad = None


def _views(whole: Tensor, parameters: list[nn.Parameter]) -> Iterator[Tensor]:
    for piece, parameter in zip(torch.split(whole, [p.numel() for p in parameters]), parameters, strict=True):
        yield piece.view_as(parameter)
