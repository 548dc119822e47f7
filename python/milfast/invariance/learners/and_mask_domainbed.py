"""AND-mask as DomainBed has it: by Adam, and gradients keep their lengths."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY, Parameter, share

__all__ = ["ANDMaskDomainBed"]

NAME = "AND-mask-DomainBed"


class ANDMaskDomainBed(EngineLearner):
    """AND-mask in DomainBed's form, by Adam.

    The step follows the mean gradient where the mean of the environments' signs reaches ``tau``, and 0 elsewhere,
    divided by the share of parameters where it does. Gradients are not brought to one length, as they are in
    `AND-mask`.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2), ``tau`` U(0.5, 1), DomainBed's range.
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "and-mask-domainbed"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": LR,
        "weight_decay": WEIGHT_DECAY,
        "tau": Parameter(1.0, 0.5, 1, "linear", fault=share),
    }
