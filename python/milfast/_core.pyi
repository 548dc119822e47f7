from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "auc",
    "auc_from_counts",
    "auc_many",
    "bag_kernel",
    "bag_kernel_diagonal",
    "binary_labels",
    "delong",
    "get_num_threads",
    "rbf_gram",
    "sample_bags",
    "set_num_threads",
    "simd_level",
]

_Draw: TypeAlias = tuple[Sequence[tuple[int, int]], Sequence[int], Sequence[float], str, float]

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
def bag_kernel(
    instances: ArrayLike,
    offsets: NDArray[np.int64],
    other_instances: ArrayLike | None = None,
    other_offsets: NDArray[np.int64] | None = None,
    *,
    kernel: str = "rbf",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 1.0,
    set_kernel: str = "nsk",
    sharpness: float = 1.0,
) -> NDArray[np.float64]: ...
def bag_kernel_diagonal(
    instances: ArrayLike,
    offsets: NDArray[np.int64],
    *,
    kernel: str = "rbf",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 1.0,
) -> NDArray[np.float64]: ...
def binary_labels(labels: ArrayLike, *, pos_label: object = None) -> NDArray[np.bool_]: ...
def delong(scores: ArrayLike, labels: ArrayLike, *, pos_label: object = None) -> tuple[float, float, int, int]: ...
def get_num_threads() -> int: ...
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
def set_num_threads(n: int) -> None: ...
def simd_level() -> str: ...
