"""How far a number can be trusted: intervals for proportions, AUCs and means over runs; figures that cannot be true."""

from __future__ import annotations

from milfast.uncertainty.intervals import Interval, auc_interval, mean_interval, proportion_interval
from milfast.uncertainty.published import Audit, auc_limits, audit

__all__ = ["Audit", "Interval", "auc_interval", "auc_limits", "audit", "mean_interval", "proportion_interval"]
