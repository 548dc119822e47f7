"""EQRM: a quantile of the risks that environments have (Eastwood et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative, quantile

__all__ = ["EQRM"]

NAME = "EQRM"


class EQRM(EngineLearner):
    """Empirical quantile risk minimisation, by Adam.

    Minimises the ``quantile`` of a distribution of risks that has a normal kernel at the risk of each environment
    [1]_, after ``burn_in`` steps of the mean risk, with Adam made new. A quantile q below 0 stands for 1 - e^q. Its
    derivative is the exact one; that of the authors' code is in `EQRM-DomainBed`.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``quantile`` U(0.5, 0.99), ``burn_in``
    10^U(2.5, 3.5); DomainBed's ranges.

    References
    ----------
    .. [1] Eastwood et al. (2022), Probable domain generalization via quantile risk minimization.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "eqrm"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "quantile": Parameter(0.75, 0.5, 0.99, "linear", fault=quantile),
        "burn_in": Parameter(2500.0, 2.5, 3.5, fault=not_negative),
    }
