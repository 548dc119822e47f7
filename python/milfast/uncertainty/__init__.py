"""How far a number can be trusted: intervals for proportions, AUCs and means over runs."""

from __future__ import annotations

from milfast.uncertainty.intervals import (
    Interval,
    auc_interval,
    interval_of_auc,
    mean_interval,
    proportion_interval,
)

__all__ = ["Interval", "auc_interval", "interval_of_auc", "mean_interval", "proportion_interval"]
