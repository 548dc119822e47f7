"""Error consistency: do models that are trained again err on the same samples?

An error set is the set of samples on which a model errs; ``error_sets`` is a matrix with one row a model, ``predictions
!= labels``. All measures compare two rows at a time.
"""

from __future__ import annotations

from milfast._core import agreement_matrix, intersections, jaccard_matrix, sample_counts
from milfast.consistency.agreement import AgreementSummary, summary
from milfast.consistency.chance import chance_level
from milfast.consistency.conversion import jaccard_from_kappa, kappa_from_jaccard
from milfast.consistency.cross_validation import CrossValidated, consistency_of, cross_validate_consistency
from milfast.consistency.curve import ConsistencyCurve, SmoothCurve, consistency_curve
from milfast.consistency.error_consistency import ErrorConsistency, error_consistency
from milfast.consistency.rolling import CorrelationBand, RollingCorrelation
from milfast.consistency.selection import ModelComparison, ModelScore, ModelSelection, select_model
from milfast.consistency.smoothing import lowess
from milfast.consistency.voting import MajorityVote, majority_vote, vote_gains

__all__ = [
    "AgreementSummary",
    "ConsistencyCurve",
    "CorrelationBand",
    "CrossValidated",
    "ErrorConsistency",
    "MajorityVote",
    "ModelComparison",
    "ModelScore",
    "ModelSelection",
    "RollingCorrelation",
    "SmoothCurve",
    "agreement_matrix",
    "chance_level",
    "consistency_curve",
    "consistency_of",
    "cross_validate_consistency",
    "error_consistency",
    "intersections",
    "jaccard_from_kappa",
    "jaccard_matrix",
    "kappa_from_jaccard",
    "lowess",
    "majority_vote",
    "sample_counts",
    "select_model",
    "summary",
    "vote_gains",
]
