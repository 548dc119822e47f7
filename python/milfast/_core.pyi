from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = [
    "agreement_matrix",
    "agreement_summary",
    "auc",
    "auc_from_counts",
    "auc_many",
    "binary_labels",
    "delong",
    "get_num_threads",
    "intersections",
    "jaccard_matrix",
    "rbf_bag_diagonal",
    "rbf_bag_sums",
    "rbf_gram",
    "sample_bags",
    "sample_counts",
    "set_num_threads",
    "simd_level",
]

_Draw: TypeAlias = tuple[Sequence[tuple[int, int]], Sequence[int], Sequence[float], str, float]

def agreement_matrix(
    error_sets: ArrayLike,
    measure: str = "jaccard",
    *,
    condensed: bool = False,
    dtype: DTypeLike = "float64",
    sample_weight: ArrayLike | None = None,
    n_samples: int | None = None,
) -> NDArray[Any]: ...
def agreement_summary(
    error_sets: ArrayLike,
    measure: str = "jaccard",
    *,
    sample_weight: ArrayLike | None = None,
    n_samples: int | None = None,
) -> tuple[float, float, float, float, int, int]: ...
def auc(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    max_fpr: float | None = None,
    standardize: bool = True,
    pos_label: object = None,
) -> float: ...
def auc_from_counts(pos: ArrayLike, neg: ArrayLike) -> float: ...
def auc_many(scores: ArrayLike, labels: ArrayLike, *, pos_label: object = None) -> NDArray[np.float64]: ...
def binary_labels(labels: ArrayLike, *, pos_label: object = None) -> NDArray[np.bool_]: ...
def delong(scores: ArrayLike, labels: ArrayLike, *, pos_label: object = None) -> tuple[float, float, int, int]: ...
def get_num_threads() -> int: ...
def intersections(
    error_sets: ArrayLike,
    *,
    condensed: bool = False,
    sample_weight: ArrayLike | None = None,
    n_samples: int | None = None,
) -> NDArray[Any]: ...
def jaccard_matrix(error_sets: ArrayLike, *, n_samples: int | None = None) -> NDArray[np.float64]: ...
def rbf_bag_diagonal(instances: ArrayLike, offsets: NDArray[np.int64], *, gamma: float) -> NDArray[np.float64]: ...
def rbf_bag_sums(
    instances: ArrayLike,
    offsets: NDArray[np.int64],
    other_instances: ArrayLike | None = None,
    other_offsets: NDArray[np.int64] | None = None,
    *,
    gamma: float,
) -> NDArray[np.float64]: ...
def rbf_gram(X: ArrayLike, Y: ArrayLike | None = None, *, gamma: float) -> NDArray[Any]: ...
def sample_bags(
    *,
    means: ArrayLike,
    deviations: Sequence[float],
    negative: Sequence[_Draw],
    positive: Sequence[_Draw],
    filler: int,
    size: tuple[int, int] | None,
    pad_to: int,
    n_negative: int,
    n_positive: int,
    shuffled: bool,
    seed: int,
    single: bool,
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64], NDArray[np.int16]]: ...
def sample_counts(error_sets: ArrayLike, *, n_samples: int | None = None) -> NDArray[np.uint32]: ...
def set_num_threads(n: int) -> None: ...
def simd_level() -> str: ...
