"""Linear unit tests for invariance: does a learner tell causes from shortcuts?"""

from __future__ import annotations

from milfast.invariance.verdict import RatioInterval, Verdict, judge

__all__ = ["RatioInterval", "Verdict", "judge"]
