"""What tests of equivalence share: margins, their level and their names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from milfast.uncertainty.intervals import _number, _require_level

TOST_NOTE = "a small p-value shows equivalence, a large one shows nothing"


def read_margins(margin: Any) -> tuple[float, float]:
    """The lowest and the highest difference that would not matter."""
    if isinstance(margin, (tuple, list, np.ndarray)):
        if len(margin) != 2:
            raise ValueError(f"margin must be one number or a pair (lowest, highest); got {margin!r}")
        low, high = _number(margin[0], "margin[0]"), _number(margin[1], "margin[1]")
    else:
        high = _number(margin, "margin")
        low = -high
    if not low < 0 < high:
        raise ValueError(f"margin must reach below and above 0; got {low:g} to {high:g}")
    if math.isinf(low) and math.isinf(high):
        raise ValueError("margin must be finite on one side at least")
    for side in (low, high):
        if math.isfinite(side) and abs(side) >= 1:
            raise ValueError(f"margin is a difference of figures between 0 and 1 (0.02 for 2 %); got {abs(side):g}")
    return low, high


def require_tost_level(level: float) -> None:
    """The level of a test whose interval has the level 2 `level` - 1."""
    _require_level(level)
    if level <= 0.5:
        raise ValueError(f"level must be above 0.5 (the interval has level 2 level - 1); got {level}")


def tost_title(low: float, high: float) -> str:
    """Name of the test between two margins, of which one may be infinite."""
    if math.isinf(high):
        return f"non-inferiority, margin {low:g}"
    if math.isinf(low):
        return f"non-superiority, margin {high:g}"
    return f"equivalence within {low:g} to {high:g}"
