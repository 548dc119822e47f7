"""IRM as DomainBed has it: the scale alone, and a penalty that begins late."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative

__all__ = ["IRMDomainBed"]

NAME = "IRM-DomainBed"


class IRMDomainBed(EngineLearner):
    """Invariant risk minimisation in DomainBed's form, by Adam.

    Minimises mean_e R_e + penalty mean_e (dR_e/da)^2, where the predictor is a f at a = 1: no offset beside the
    scale, a mean over environments where `IRMv1` has a sum, and the risk keeps its weight. The penalty has weight 1
    until step ``anneal``, and then its own, with Adam made new. DomainBed multiplies the derivatives of two halves of
    a mini-batch; a step here sees all rows, and takes the square.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``penalty`` 10^U(-1, 5), ``anneal`` 10^U(0, 4)
    rounded down; all but the first two are DomainBed's ranges.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "irm-domainbed"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "penalty": Parameter(100.0, -1, 5, fault=not_negative),
        "anneal": Parameter(500.0, 0, 4, whole=True, fault=not_negative),
    }
