"""Oracle: ERM on rows whose spurious features are permuted, as they are in the test."""

from __future__ import annotations

from milfast.invariance.learners.erm import ERM

__all__ = ["Oracle"]

NAME = "Oracle"


class Oracle(ERM):
    """ERM that is told which features to distrust: its rows are those of `Draw.oracle_train`.

    No learner for use; the others are measured by how near to it they come.
    """

    name = NAME
    oracle = True
