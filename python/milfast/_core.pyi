from collections.abc import Sequence
from typing import Any, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = [
    "Accumulator",
    "Environments",
    "KernelRows",
    "agreement_matrix",
    "agreement_summary",
    "auc",
    "auc_from_counts",
    "auc_jackknife",
    "auc_many",
    "bag_kernel",
    "bag_kernel_diagonal",
    "binary_labels",
    "bootstrap_auc",
    "chance_levels",
    "delong",
    "delong_covariance",
    "environments_from_mixtures",
    "environments_from_moments",
    "environments_from_samples",
    "get_num_threads",
    "intersections",
    "invariance_learners",
    "jaccard_matrix",
    "kernel_sums",
    "placements",
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

@final
class Accumulator:
    def __new__(cls, bins: int | None) -> Self: ...
    def update(self, scores: ArrayLike, labels: ArrayLike, *, pos_label: object = None) -> None: ...
    def merge(self, other: Accumulator) -> None: ...
    def bounds(self) -> tuple[float, float, float, int, int]: ...
    def held(
        self,
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.uint64], NDArray[np.uint64]] | None: ...
    def kept(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]] | None: ...
    def restore(self, numbers: ArrayLike, values: ArrayLike, neg: ArrayLike, pos: ArrayLike) -> None: ...

@final
class Environments:
    @property
    def n_environments(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def task(self) -> str: ...
    def risks(self, theta: ArrayLike) -> NDArray[np.float64]: ...
    def errors(self, theta: ArrayLike) -> NDArray[np.float64]: ...
    def gradients(self, theta: ArrayLike) -> NDArray[np.float64]: ...
    def objective_gradient(self, learner: str, parameters: ArrayLike, theta: ArrayLike) -> NDArray[np.float64]: ...
    def train(
        self, learner: str, parameters: ArrayLike, initial: ArrayLike, n_steps: int
    ) -> dict[str, NDArray[Any]]: ...

@final
class KernelRows:
    def __new__(
        cls,
        matrix: ArrayLike,
        *,
        kernel: str = "rbf",
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 1.0,
        cache_bytes: int = ...,
    ) -> Self: ...
    def __len__(self) -> int: ...
    def solve(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        linear: ArrayLike,
        *,
        starts: NDArray[np.int64] | None = None,
        members: NDArray[np.int64] | None = None,
        weights: ArrayLike | None = None,
        groups: NDArray[np.int64] | None = None,
        limits: ArrayLike | None = None,
        start: ArrayLike | None = None,
        tol: float = 1e-3,
        max_steps: int = ...,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float, float, int]: ...
    def times(self, coefficients: ArrayLike) -> NDArray[np.float64]: ...

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
def auc_jackknife(scores: ArrayLike, labels: ArrayLike, *, pos_label: object = None) -> NDArray[np.float64]: ...
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
def bootstrap_auc(
    scores: ArrayLike,
    labels: ArrayLike,
    n_replicates: int,
    *,
    stratified: bool = True,
    random_state: int,
    pos_label: object = None,
) -> NDArray[np.float64]: ...
def chance_levels(n_samples: int, a: ArrayLike, b: ArrayLike, measure: str = "jaccard") -> NDArray[np.float64]: ...
def delong(scores: ArrayLike, labels: ArrayLike, *, pos_label: object = None) -> tuple[float, float, int, int]: ...
def delong_covariance(
    scores: ArrayLike, labels: ArrayLike, *, pos_label: object = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], int, int]: ...
def environments_from_mixtures(
    probabilities: ArrayLike, labels: ArrayLike, means: ArrayLike, covariance: ArrayLike
) -> Environments: ...
def environments_from_moments(
    S: ArrayLike, c: ArrayLike, v: ArrayLike, n: ArrayLike, *, normal: bool = False
) -> Environments: ...
def environments_from_samples(
    X: Sequence[ArrayLike], y: Sequence[ArrayLike], task: str, *, squares: bool = False
) -> Environments: ...
def get_num_threads() -> int: ...
def intersections(
    error_sets: ArrayLike,
    *,
    condensed: bool = False,
    sample_weight: ArrayLike | None = None,
    n_samples: int | None = None,
) -> NDArray[Any]: ...
def invariance_learners() -> dict[str, tuple[str, ...]]: ...
def jaccard_matrix(error_sets: ArrayLike, *, n_samples: int | None = None) -> NDArray[np.float64]: ...
def kernel_sums(
    X: ArrayLike,
    Y: ArrayLike,
    coefficients: ArrayLike,
    *,
    kernel: str = "rbf",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 1.0,
) -> NDArray[np.float64]: ...
def placements(
    scores: ArrayLike, labels: ArrayLike, *, pos_label: object = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
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
    name: str = "",
    concepts: Sequence[int | None] | None = None,
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64], NDArray[np.int16]]: ...
def sample_counts(error_sets: ArrayLike, *, n_samples: int | None = None) -> NDArray[np.uint32]: ...
def set_num_threads(n: int) -> None: ...
def simd_level() -> str: ...
