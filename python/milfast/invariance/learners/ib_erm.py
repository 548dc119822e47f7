"""IB-ERM: ERM with a penalty for the variance of the output (Ahuja et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative

__all__ = ["IBERM"]

NAME = "IB-ERM"


class IBERM(EngineLearner):
    """Information bottleneck ERM as its authors ran it on the unit tests, by Adam.

    Minimises the mean loss + bottleneck Var(output), the unbiased variance over the rows of all environments [1]_.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``bottleneck`` 1 - 10^U(-2, 0).

    References ---------- .. [1] Ahuja et al. (2021), Invariance principle meets information bottleneck for
    out-of-distribution generalization.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "ib-erm"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "bottleneck": Parameter(0.1, -2, 0, "to-one", fault=not_negative),
    }
