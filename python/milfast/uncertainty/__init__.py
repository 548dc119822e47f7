"""How far a number can be trusted: intervals, comparisons of models, and audits of published figures."""

from __future__ import annotations

from milfast.uncertainty.any_metric import compare_metric
from milfast.uncertainty.areas import multiclass_auc_interval
from milfast.uncertainty.aucs import compare_auc, compare_aucs, equivalence_auc
from milfast.uncertainty.classification import (
    accuracy_interval,
    balanced_accuracy_interval,
    f1_interval,
    precision_interval,
    sensitivity_interval,
    specificity_interval,
)
from milfast.uncertainty.comparison import Comparison
from milfast.uncertainty.cross_validation import (
    Improvement,
    Posterior,
    bayesian_ttest,
    corrected_ttest,
    five_by_two,
    probability_of_improvement,
)
from milfast.uncertainty.doubts import Doubt
from milfast.uncertainty.intervals import Interval, auc_interval, interval_of_auc, mean_interval, proportion_interval
from milfast.uncertainty.many import friedman
from milfast.uncertainty.models import ComparedModels, compare
from milfast.uncertainty.paired import cochran_q, equivalence, mcnemar, mcnemar_from_counts
from milfast.uncertainty.power import (
    SampleSize,
    sample_size_auc,
    sample_size_half_width,
    sample_size_improvement,
    sample_size_paired,
    sample_size_unpaired,
)
from milfast.uncertainty.proportions import compare_proportions
from milfast.uncertainty.published import Audit, auc_limits, audit
from milfast.uncertainty.resampling import bootstrap_interval
from milfast.uncertainty.variance import Normality, VarianceComponents, normal_quantiles, normality, variance_components

__all__ = [
    "Audit",
    "ComparedModels",
    "Comparison",
    "Doubt",
    "Improvement",
    "Interval",
    "Normality",
    "Posterior",
    "SampleSize",
    "VarianceComponents",
    "accuracy_interval",
    "auc_interval",
    "auc_limits",
    "audit",
    "balanced_accuracy_interval",
    "bayesian_ttest",
    "bootstrap_interval",
    "cochran_q",
    "compare",
    "compare_auc",
    "compare_aucs",
    "compare_metric",
    "compare_proportions",
    "corrected_ttest",
    "equivalence",
    "equivalence_auc",
    "f1_interval",
    "five_by_two",
    "friedman",
    "interval_of_auc",
    "mcnemar",
    "mcnemar_from_counts",
    "mean_interval",
    "multiclass_auc_interval",
    "normal_quantiles",
    "normality",
    "precision_interval",
    "probability_of_improvement",
    "proportion_interval",
    "sample_size_auc",
    "sample_size_half_width",
    "sample_size_improvement",
    "sample_size_paired",
    "sample_size_unpaired",
    "sensitivity_interval",
    "specificity_interval",
    "variance_components",
]
