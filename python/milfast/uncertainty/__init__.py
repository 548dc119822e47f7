"""How far a number can be trusted: intervals for proportions, AUCs and means, and audits of published ones."""

from __future__ import annotations

from milfast.uncertainty.intervals import (
    Interval,
    auc_interval,
    interval_of_auc,
    mean_interval,
    proportion_interval,
)
from milfast.uncertainty.published import Audit, auc_limits, audit

__all__ = [
    "Audit",
    "Interval",
    "auc_interval",
    "auc_limits",
    "audit",
    "interval_of_auc",
    "mean_interval",
    "proportion_interval",
]
