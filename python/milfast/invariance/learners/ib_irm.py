"""IB-IRM: IRMv1 with a penalty for the variance of the output (Ahuja et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative, share

__all__ = ["IBIRM"]

NAME = "IB-IRM"


class IBIRM(EngineLearner):
    """Information bottleneck IRM as its authors ran it on the unit tests, by Adam.

    Minimises the objective of `IRMv1` + bottleneck mean_e Var_e(output), with the unbiased variance over the rows of an
    environment [1]_.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``penalty_weight`` 1 - 10^U(-3, -0.3),
    ``bottleneck`` 1 - 10^U(-2, 0).

    References ---------- .. [1] Ahuja et al. (2021), Invariance principle meets information bottleneck for
    out-of-distribution generalization.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "ib-irm"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "penalty_weight": Parameter(0.9, -3, -0.3, "to-one", fault=share),
        "bottleneck": Parameter(0.1, -2, 0, "to-one", fault=not_negative),
    }
