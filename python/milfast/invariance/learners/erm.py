"""ERM: empirical risk minimisation, the mean loss over the rows of all environments."""

from __future__ import annotations

from typing import ClassVar

from milfast.invariance.learners.base import EngineLearner

__all__ = ["ERM"]

NAME = "ERM"


class ERM(EngineLearner):
    """Least mean loss over all rows, by Adam.

    Searched: learning rate 10^U(-4, -2), weight decay 10^U(-6, -2).
    """

    name = NAME
    ENGINE: ClassVar[str | None] = "erm"
