"""Where a network lives."""

from __future__ import annotations

from itertools import chain

import torch
from torch import nn

__all__ = ["device_of"]


def device_of(module: nn.Module) -> torch.device:
    """Device of a module's first parameter, or buffer where it has no parameter.

    Parameters
    ----------
    module : torch.nn.Module

    Returns
    -------
    torch.device
        The CPU for a module with neither.

    Examples
    --------
    >>> device_of(torch.nn.ReLU()), device_of(torch.nn.Linear(1, 1, device="meta"))
    (device(type='cpu'), device(type='meta'))
    """
    return next((held.device for held in chain(module.parameters(), module.buffers())), torch.device("cpu"))
