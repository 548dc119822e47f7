"""IGA: a penalty for gradients that differ between environments (Koyama & Yamaguchi 2020)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative

__all__ = ["IGA"]

NAME = "IGA"


class IGA(EngineLearner):
    """Inter-environmental gradient alignment as the unit tests have it, by Adam.

    Minimises mean_e R_e + penalty sum_e |g_e - g|^2 for the gradients g_e of the environments and their mean g, weights
    and bias.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``penalty`` 10^U(1, 5).
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "iga"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "penalty": Parameter(1000.0, 1, 5, fault=not_negative),
    }
