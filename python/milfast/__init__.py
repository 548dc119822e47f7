"""milfast tells whether a multiple-instance-learning model, a metric or a claim can be trusted.

The kernels are here at once; everything else is loaded when it is first used, so ``import milfast`` costs little more
than ``import numpy``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from milfast._core import (
    auc,
    auc_from_counts,
    auc_many,
    get_num_threads,
    jaccard_matrix,
    rbf_gram,
    set_num_threads,
)
from milfast.bags import Bags

if TYPE_CHECKING:
    from milfast import checks, consistency, datasets, invariance, models, protocol, study, uncertainty
    from milfast.accumulator import AUCAccumulator
    from milfast.checks import check_model, sample_bags
    from milfast.evaluation import evaluate
    from milfast.gram import bag_gram
    from milfast.uncertainty import compare

__version__ = "0.1.0"

__all__ = [
    "AUCAccumulator",
    "Bags",
    "auc",
    "auc_from_counts",
    "auc_many",
    "bag_gram",
    "check_model",
    "checks",
    "compare",
    "consistency",
    "datasets",
    "evaluate",
    "get_num_threads",
    "invariance",
    "jaccard_matrix",
    "models",
    "protocol",
    "rbf_gram",
    "sample_bags",
    "set_num_threads",
    "study",
    "uncertainty",
]

#: Where to find what is loaded on first use; None stands for a module of the same name.
_LAZY = {
    "AUCAccumulator": "accumulator",
    "bag_gram": "gram",
    "check_model": "checks",
    "checks": None,
    "compare": "uncertainty",
    "consistency": None,
    "datasets": None,
    "evaluate": "evaluation",
    "invariance": None,
    "models": None,
    "protocol": None,
    "sample_bags": "checks",
    "study": None,
    "uncertainty": None,
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'milfast' has no attribute {name!r}")
    home = _LAZY[name]
    module = importlib.import_module(f"milfast.{home or name}")
    value = module if home is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
