"""How a learner's parameters are drawn for a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Uniform(Protocol):
    """What a draw needs: ``random.Random`` and ``numpy.random.Generator`` have it."""

    def uniform(self, a: float, b: float, /) -> float:
        """A number between two bounds."""


@dataclass(frozen=True)
class Parameter:
    """A default, and where a search looks.

    Attributes
    ----------
    default : float
    low, high : float
        Bounds of a uniform number u.
    scale : {"log", "linear", "to-one"}
        What is made of it: 10^u, u or 1 - 10^u.
    whole : bool
        Whether what comes out is rounded down to a whole number.
    fault : callable, optional
        Given a value, what is wrong with it, or None.

    Examples
    --------
    >>> import random
    >>> round(Parameter(1e-3, -4, -2).draw(random.Random(1004)), 7)  # the learning rate of trial 4 of the paper
    0.0006954
    """

    default: float
    low: float
    high: float
    scale: Literal["log", "linear", "to-one"] = "log"
    whole: bool = False
    fault: Callable[[float], str | None] | None = None

    def draw(self, rng: Uniform) -> float:
        """One value.

        Parameters
        ----------
        rng : random.Random or numpy.random.Generator

        Returns
        -------
        float
        """
        u = float(rng.uniform(self.low, self.high))
        value = u if self.scale == "linear" else 10**u
        value = 1 - value if self.scale == "to-one" else value
        return float(int(value)) if self.whole else value


def above_zero(value: float) -> str | None:
    """What is wrong with a value that is not above 0."""
    return None if value > 0 else "must be above 0"


def not_negative(value: float) -> str | None:
    """What is wrong with a negative value."""
    return "must not be negative" if value < 0 else None


def share(value: float) -> str | None:
    """What is wrong with a value outside [0, 1]."""
    return None if 0 <= value <= 1 else "must lie in [0, 1]"


def below_one(value: float) -> str | None:
    """What is wrong with a value outside [0, 1)."""
    return None if 0 <= value < 1 else "must lie in [0, 1)"


def quantile(value: float) -> str | None:
    """What is wrong with a level of a quantile."""
    return "must lie between 0 and 1, or be below 0: ln(1 - level)" if value == 0 or value >= 1 else None


#: Of the learners that step with Adam, as the unit tests have them.
LR = Parameter(1e-3, -4, -2, fault=above_zero)
WEIGHT_DECAY = Parameter(0.0, -6, -2, fault=not_negative)
