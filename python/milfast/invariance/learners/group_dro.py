"""GroupDRO: the environment with the largest risk counts most (Sagawa et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative

__all__ = ["GroupDRO"]

NAME = "GroupDRO"


class GroupDRO(EngineLearner):
    """Group distributionally robust optimisation with environments as groups, by Adam.

    Minimises sum_e q_e R_e, where each step first multiplies q_e by exp(eta R_e) and brings their sum back to 1 [1]_.
    All environments take part in all steps, with all their rows.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``eta`` 10^U(-3, -1), DomainBed's range.

    References
    ----------
    .. [1] Sagawa, Koh, Hashimoto & Liang (2020), Distributionally robust neural networks for group shifts.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "group-dro"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "eta": Parameter(1e-2, -3, -1, fault=not_negative),
    }
