"""How far a number can be trusted: intervals for proportions, AUCs and means, and audits of published ones."""

from __future__ import annotations

from milfast.uncertainty.areas import multiclass_auc_interval
from milfast.uncertainty.intervals import (
    Interval,
    auc_interval,
    interval_of_auc,
    mean_interval,
    proportion_interval,
)
from milfast.uncertainty.published import Audit, auc_limits, audit
from milfast.uncertainty.resampling import bootstrap_interval

__all__ = [
    "Audit",
    "Interval",
    "auc_interval",
    "auc_limits",
    "audit",
    "bootstrap_interval",
    "interval_of_auc",
    "mean_interval",
    "multiclass_auc_interval",
    "proportion_interval",
]
