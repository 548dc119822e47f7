"""Where a condition begins to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def crossing(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The place between `low` and `high` from which a condition holds, by bisection to the last bit.

    Parameters
    ----------
    holds : callable
        Once true, true for every larger number up to `high`; it is not asked at `high`.
    low, high : float

    Returns
    -------
    float
        `low` when the condition holds there, `high` when it holds nowhere before.

    Examples
    --------
    >>> from milfast.uncertainty.search import crossing
    >>> crossing(lambda x: x * x >= 2, 0.0, 2.0)
    1.4142135623730951
    """
    if holds(low):
        return low
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return high
        if holds(middle):
            high = middle
        else:
            low = middle
