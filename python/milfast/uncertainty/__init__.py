"""How far a number can be trusted: intervals for proportions, AUCs and means, and audits of published ones."""

from __future__ import annotations

from milfast.uncertainty.areas import multiclass_auc_interval
from milfast.uncertainty.classification import (
    accuracy_interval,
    balanced_accuracy_interval,
    f1_interval,
    precision_interval,
    sensitivity_interval,
    specificity_interval,
)
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
    "accuracy_interval",
    "auc_interval",
    "auc_limits",
    "audit",
    "balanced_accuracy_interval",
    "bootstrap_interval",
    "f1_interval",
    "interval_of_auc",
    "mean_interval",
    "multiclass_auc_interval",
    "precision_interval",
    "proportion_interval",
    "sensitivity_interval",
    "specificity_interval",
]
