"""How far a number can be trusted: intervals, comparisons of models, and audits of published figures."""

from __future__ import annotations

from milfast.uncertainty.areas import multiclass_auc_interval
from milfast.uncertainty.aucs import compare_auc, compare_aucs
from milfast.uncertainty.comparison import Comparison
from milfast.uncertainty.intervals import (
    Interval,
    auc_interval,
    interval_of_auc,
    mean_interval,
    proportion_interval,
)
from milfast.uncertainty.paired import cochran_q, equivalence, mcnemar, mcnemar_from_counts
from milfast.uncertainty.published import Audit, auc_limits, audit
from milfast.uncertainty.resampling import bootstrap_interval

__all__ = [
    "Audit",
    "Comparison",
    "Interval",
    "auc_interval",
    "auc_limits",
    "audit",
    "bootstrap_interval",
    "cochran_q",
    "compare_auc",
    "compare_aucs",
    "equivalence",
    "interval_of_auc",
    "mcnemar",
    "mcnemar_from_counts",
    "mean_interval",
    "multiclass_auc_interval",
    "proportion_interval",
]
