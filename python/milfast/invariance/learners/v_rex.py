"""V-REx: a penalty for the variance of the environments' risks (Krueger et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative

__all__ = ["VREx"]

NAME = "V-REx"


class VREx(EngineLearner):
    """Variance risk extrapolation, by Adam.

    Minimises mean_e R_e + penalty Var_e(R_e) [1]_, the variance being the mean squared distance from the mean risk.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``penalty`` 10^U(-1, 5), DomainBed's range.

    References
    ----------
    .. [1] Krueger et al. (2021), Out-of-distribution generalization via risk extrapolation.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "v-rex"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "penalty": Parameter(10.0, -1, 5, fault=not_negative),
    }
