"""SD: spectral decoupling, a penalty for large outputs (Pezeshki et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative

__all__ = ["SD"]

NAME = "SD"


class SD(EngineLearner):
    """Spectral decoupling, by Adam.

    Minimises the mean loss over all rows + penalty times the mean squared output [1]_.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``penalty`` 10^U(-5, -1), DomainBed's range.

    References
    ----------
    .. [1] Pezeshki et al. (2021), Gradient starvation: a learning proclivity in neural networks.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "sd"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "penalty": Parameter(0.1, -5, -1, fault=not_negative),
    }
