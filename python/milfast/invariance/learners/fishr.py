"""Fishr: a penalty for gradients of single rows that vary differently (Rame et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, below_one, not_negative

__all__ = ["Fishr"]

NAME = "Fishr"


class Fishr(EngineLearner):
    """Fishr in DomainBed's form, by Adam.

    Minimises the mean loss over all rows + penalty times the mean squared distance, over environments and parameters,
    of the variance of single rows' gradients from its mean over environments [1]_. The penalty begins after
    ``anneal`` steps, with Adam made new; variances are moving averages with factor ``ema``.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``penalty`` 10^U(1, 4), ``ema`` U(0.9, 0.99),
    ``anneal`` U(0, 5000) rounded down; DomainBed's ranges.

    References
    ----------
    .. [1] Rame, Dancette & Cord (2022), Fishr: invariant gradient variances for out-of-distribution generalization.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "fishr"
    squares: ClassVar[bool] = True
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "penalty": Parameter(1000.0, 1, 4, fault=not_negative),
        "ema": Parameter(0.95, 0.9, 0.99, "linear", fault=below_one),
        "anneal": Parameter(1500.0, 0, 5000, "linear", whole=True, fault=not_negative),
    }
