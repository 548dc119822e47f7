"""Layers that several deep models share."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Dropout", "perceptron"]


class Dropout(nn.Module):
    """Dropout with a cheaper mask on the CPU.

    `torch.nn.Dropout` draws its mask there with ``bernoulli_``, which costs about three times as much as comparing
    uniform numbers and made up more than a third of a training step of mi-Net.

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

    def forward(self, values: Tensor) -> Tensor:
        """Zero entries at random and scale the others by ``1 / (1 - p)``; the identity in evaluation mode.

        Parameters
        ----------
        values : Tensor of floats, any shape

        Returns
        -------
        Tensor of the same shape
        """
        if not self.training or self.p == 0.0:
            return values
        if values.device.type != "cpu":
            return functional.dropout(values, self.p, training=True)
        return values * torch.rand_like(values).ge_(self.p).mul_(1.0 / (1.0 - self.p))

    def extra_repr(self) -> str:
        """What `repr` shows between the brackets."""
        return f"p={self.p}"


def perceptron(n_features: int, hidden: int, dropout: float, *, depth: int = 3) -> nn.Sequential:
    """Linear, LeakyReLU(0.2), Dropout, `depth` times: what Raff & Holt (2023) embed instances with.

    Parameters
    ----------
    n_features, hidden : int
        Input width; width of every layer.
    dropout : float
        In [0, 1).
    depth : int
        Number of linear layers.

    Returns
    -------
    torch.nn.Sequential
        Maps (n, n_features) to (n, hidden).

    Examples
    --------
    >>> sum(p.numel() for p in perceptron(16, 128, 0.5).parameters())
    35200
    """
    widths = [n_features] + [hidden] * depth
    layers: list[nn.Module] = []
    for given, made in pairwise(widths):
        layers += [nn.Linear(given, made), nn.LeakyReLU(0.2), Dropout(dropout)]
    return nn.Sequential(*layers)
