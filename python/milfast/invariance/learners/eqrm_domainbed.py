"""EQRM as DomainBed and its authors' code have it."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative, quantile

__all__ = ["EQRMDomainBed"]

NAME = "EQRM-DomainBed"


class EQRMDomainBed(EngineLearner):
    """EQRM with the derivative that automatic differentiation makes of the authors' bisection, by Adam.

    As `EQRM`, but that the step follows what the bisection began with, the smallest and the largest risk and the
    bandwidth, and that the learning rate is ``late_lr`` once the quantile is minimised.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``quantile`` U(0.5, 0.99), ``burn_in``
    10^U(2.5, 3.5), ``late_lr`` 10^U(-7, -5); all but the first two are DomainBed's ranges.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "eqrm-domainbed"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "quantile": Parameter(0.75, 0.5, 0.99, "linear", fault=quantile),
        "burn_in": Parameter(2500.0, 2.5, 3.5, fault=not_negative),
        "late_lr": Parameter(1e-6, -7, -5, fault=not_negative),
    }
