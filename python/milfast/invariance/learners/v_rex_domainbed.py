"""V-REx as DomainBed has it: with a penalty that begins late."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative

__all__ = ["VRExDomainBed"]

NAME = "V-REx-DomainBed"


class VRExDomainBed(EngineLearner):
    """V-REx in DomainBed's form, by Adam.

    As `V-REx`, but that the penalty has weight 1 until step ``anneal``, and then its own, with Adam made new.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``penalty`` 10^U(-1, 5), ``anneal`` 10^U(0, 4)
    rounded down; all but the first two are DomainBed's ranges.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "v-rex-domainbed"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "penalty": Parameter(10.0, -1, 5, fault=not_negative),
        "anneal": Parameter(500.0, 0, 4, whole=True, fault=not_negative),
    }
