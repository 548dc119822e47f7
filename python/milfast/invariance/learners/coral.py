"""CORAL: a penalty for outputs whose mean and variance differ (Sun & Saenko 2016)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, not_negative

__all__ = ["CORAL"]

NAME = "CORAL"


class CORAL(EngineLearner):
    """CORAL on the output, in DomainBed's form, by Adam.

    Minimises mean_e R_e + penalty times the mean over pairs of environments of (difference of mean outputs)^2 +
    (difference of their variances)^2 [1]_. DomainBed aligns the features of a network; a linear predictor has but its
    output to align.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``penalty`` 10^U(-1, 1), DomainBed's range.

    References
    ----------
    .. [1] Sun & Saenko (2016), Deep CORAL: correlation alignment for deep domain adaptation.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "coral"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "penalty": Parameter(1.0, -1, 1, fault=not_negative),
    }
