"""Layers that several deep models share."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from milfast.training.ragged import segment_argmax

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Dropout", "Perceptron", "tanh", "witnesses"]


class Dropout(nn.Module):
    """Dropout with a cheaper mask on the CPU.

    `torch.nn.Dropout` draws one number for each entry there. Here four entries share the 64 bits of one number, which
    makes the probability a multiple of 1/65536 (and 1/2 exactly); it took more than a third of a training step of
    mi-Net before.

    Parameters
    ----------
    p : float
        Probability of a zero, in [0, 1).

    Examples
    --------
    >>> import torch
    >>> Dropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def draw(self, values: Tensor) -> Tensor | None:
        """Factors for the entries of `values`: 0 or ``1 / (1 - p)``; None in evaluation mode.

        Parameters
        ----------
        values : Tensor of floats, any shape

        Returns
        -------
        Tensor of the same shape, or None
        """
        if not self.training or self.p == 0.0:
            return None
        if values.device.type != "cpu":
            return functional.dropout(torch.ones_like(values), self.p, training=True)
        below = min(round(self.p * 65536), 65535)
        bits = torch.empty(-(-values.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        drawn = bits.view(torch.int16)[: values.numel()].view(values.shape)
        kept = torch.ge(drawn, below - 32768, out=torch.empty_like(values, memory_format=torch.contiguous_format))
        return kept.mul_(65536 / (65536 - below))

    def forward(self, values: Tensor) -> Tensor:
        """Zero entries at random and scale the others by ``1 / (1 - p)``; the identity in evaluation mode.

        Parameters
        ----------
        values : Tensor of floats, any shape

        Returns
        -------
        Tensor of the same shape
        """
        drawn = self.draw(values.detach())
        return values if drawn is None else values * drawn

    def extra_repr(self) -> str:
        """What `repr` shows between the brackets."""
        return f"p={self.p}"


class _Tanh(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, values: Tensor) -> Tensor:
        result = (2 * values).sigmoid_().mul_(2).sub_(1)
        context.save_for_backward(result)
        return result

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        result: Tensor = context.saved_tensors[0]
        backward: Tensor = torch.ops.aten.tanh_backward(gradient, result)
        return backward


def tanh(values: Tensor) -> Tensor:
    """Hyperbolic tangent, on a CPU by way of the sigmoid: ``2 sigmoid(2 x) - 1``.

    It takes a third of the time of `torch.tanh` there, which was a third of a training step of ABMIL. It differs from
    it by rounding, at most about 2e-7.

    Parameters
    ----------
    values : Tensor of floats

    Returns
    -------
    Tensor of the same shape

    Examples
    --------
    >>> import torch
    >>> tanh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    if values.device.type != "cpu":
        return torch.tanh(values)
    result: Tensor = _Tanh.apply(values)
    return result


class Perceptron(nn.Sequential):
    """Linear, LeakyReLU(0.2), Dropout, `depth` times: what Raff & Holt (2023) embed instances with.

    Parameters
    ----------
    n_features, hidden : int
        Input width; width of every layer.
    dropout : float
        In [0, 1).
    depth : int
        Number of linear layers.

    Examples
    --------
    >>> sum(p.numel() for p in Perceptron(16, 128, 0.5).parameters())
    35200
    """

    def __init__(self, n_features: int, hidden: int, dropout: float, *, depth: int = 3) -> None:
        widths = [n_features] + [hidden] * depth
        layers: list[nn.Module] = []
        for given, made in pairwise(widths):
            layers += [nn.Linear(given, made), nn.LeakyReLU(0.2), Dropout(dropout)]
        super().__init__(*layers)

    def forward(self, instances: Tensor, factors: list[Tensor | None] | None = None) -> Tensor:
        """Embedding of each instance.

        Parameters
        ----------
        instances : Tensor, shape (n, n_features)
        factors : list, optional
            Those of each Dropout, which are drawn otherwise. An empty list is filled with what is drawn.

        Returns
        -------
        Tensor, shape (n, hidden)
        """
        values = instances
        given = iter(factors) if factors else None
        for layer in self:
            if not isinstance(layer, Dropout):
                values = layer(values)
            elif given is not None:
                drawn = next(given)
                values = values if drawn is None else values * drawn
            else:
                drawn = layer.draw(values.detach())
                if factors is not None:
                    factors.append(drawn)
                values = values if drawn is None else values * drawn
        return values


def witnesses(
    score: Callable[[Tensor, list[Tensor | None]], Tensor], instances: Tensor, offsets: Tensor
) -> tuple[Tensor, list[Tensor | None]]:
    """Best instance of each bag under the dropout that was drawn, so that a backward pass needs no other instance.

    The gradient of the largest score of a bag flows through the instance that attains it. Scoring all instances
    without gradients and the best once more with them is the same step for a third of the work.

    Parameters
    ----------
    score : callable
        ``score(instances, factors)`` gives one score for each instance, and fills the empty list `factors` with what
        dropout draws, as `Perceptron` does.
    instances : Tensor, shape (n_instances, n_features)
    offsets : Tensor of int64, shape (n_bags + 1,)

    Returns
    -------
    rows : Tensor of int64, shape (n_bags,)
        The first of instances that tie.
    factors : list
        What dropout drew for these rows.
    """
    factors: list[Tensor | None] = []
    with torch.no_grad():
        rows = segment_argmax(score(instances, factors), offsets)
        return rows, [None if drawn is None else drawn.index_select(0, rows) for drawn in factors]
