"""Unit tests for multiple-instance learning: does a model respect the assumption it claims to?"""

from milfast.checks.catalogue import SPELLINGS, Check, get, names, sample_bags
from milfast.checks.recipe import BagRecipe, Component, Draw
from milfast.checks.runner import check_model
from milfast.checks.testing import parametrize_with_checks
from milfast.checks.together import read_together
from milfast.checks.verdict import CheckResult

__all__ = [
    "SPELLINGS",
    "BagRecipe",
    "Check",
    "CheckResult",
    "Component",
    "Draw",
    "check_model",
    "get",
    "names",
    "parametrize_with_checks",
    "read_together",
    "sample_bags",
]
