"""AND-mask: steps only where the gradients of environments agree in sign (Parascandolo et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner
from milfast.invariance.learners.parameters import Parameter, above_zero, not_negative, share

__all__ = ["ANDMask"]

NAME = "AND-mask"


class ANDMask(EngineLearner):
    """AND-mask as the unit tests have it: plain steps, no Adam.

    Of each environment's gradient the weights' part is brought to length 1, the bias is left. The mean over
    environments is the step where their signs agree (the sum of signs is above ``tau`` times their number), and 0
    elsewhere. Weights decay by lr * weight_decay of themselves. With at most ten environments every tau from 0.8 to 1
    asks for all of them.

    An environment whose gradient is 0, as where all its rows are fitted to the last bit, agrees with none; the
    published code divides by its length and ends with NaN.

    Searched: learning rate 10^U(-4, 0), weight decay 10^U(-5, 0), ``tau`` U(0.8, 1).
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "and-mask"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "lr": Parameter(1e-3, -4, 0, fault=above_zero),
        "weight_decay": Parameter(0.0, -5, 0, fault=not_negative),
        "tau": Parameter(0.9, 0.8, 1, "linear", fault=share),
    }
