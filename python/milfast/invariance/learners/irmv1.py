"""IRMv1: a penalty for environments that would rescale or shift the predictor (Arjovsky et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, share

__all__ = ["IRMv1"]

NAME = "IRMv1"


class IRMv1(EngineLearner):
    """Invariant risk minimisation as the unit tests have it, by Adam.

    Minimises (1 - w) mean_e R_e + w sum_e [(dR_e/da)^2 + (dR_e/ds)^2], where the predictor is a f + s at a = 1 and
    s = 0: a sum over environments, not a mean, and an offset beside the scale.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``penalty_weight`` w = 1 - 10^U(-3, -0.3).
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "irmv1"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "penalty_weight": Parameter(0.9, -3, -0.3, "to-one", fault=share),
    }
