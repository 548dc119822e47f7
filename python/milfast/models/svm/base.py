"""What the SVM models share."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from milfast.bags import Bags
from milfast.models import name_of
from milfast.models.svm.solver import InstanceKernel
from milfast.models.svm.witness import Split
from milfast.seeding import seed_sequence

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from milfast._core import KernelRows
    from milfast.gram import Normalization
    from milfast.models.svm.solver import Solution, Vector
    from milfast.seeding import RandomState

__all__ = ["AlternatingSVM", "Answer", "BagSVM", "InstanceSVM"]


def require_training_bags(bags: Bags, y: object) -> None:
    """Raise unless there are bags with labels of both classes, and no labels beside them.

    Raises
    ------
    TypeError
        When `bags` is not a `Bags`, or labels are handed over as `y`.
    ValueError
        When labels are missing or of one class.
    """
    if not isinstance(bags, Bags):
        raise TypeError(f"bags must be milfast.Bags, got {type(bags).__name__}: see Bags.from_list")
    if y is not None:
        raise TypeError("labels go into the bags, Bags(..., labels=y), not beside them")
    if bags.labels is None:
        raise ValueError("bags carry no labels: give them with Bags(..., labels=...)")
    if len(np.unique(bags.labels)) < 2:
        raise ValueError(f"all {len(bags)} bags have label {bags.labels[0]}: both classes are needed")


class BagSVM(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no type hints
    """Estimator of bag labels; a model adds `_fit` and `_scores`."""

    family: ClassVar[str] = "svm"
    #: The MIL assumption that a model was built for.
    claims: ClassVar[str | None] = None

    kernel: Any
    gamma: float | str
    degree: int
    coef0: float
    C: float
    class_weight: Any
    tol: float

    intercept_: float
    converged_: bool

    def fit(self, bags: Bags, y: object = None) -> Self:
        """Fit on labelled bags.

        Parameters
        ----------
        bags : Bags
            With labels of both classes.
        y : None
            Labels come with the bags; here for scikit-learn's sake.

        Returns
        -------
        Self

        Raises
        ------
        TypeError
            When `bags` is not a `Bags`, or labels are handed over as `y`.
        ValueError
            When labels are missing or of one class, or a parameter is out of range.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            When the model stopped before it had found its solution.
        """
        require_training_bags(bags, y)
        self._check_parameters()
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = bags.n_features
        if self.gamma == "scale":
            self.gamma_ = self._scale(bags)
        else:
            self.gamma_ = float(self.gamma)
        self._fit(bags)
        advice = self._advice()
        if advice:
            warnings.warn(advice, ConvergenceWarning, stacklevel=2)
        return self

    def _advice(self) -> str | None:
        """What to say when the model stopped early."""
        return None if self.converged_ else unsolved(name_of(self))

    def _scale(self, bags: Bags) -> float:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            variance = float(bags.instances.var(dtype=np.float64))
            gamma = float(1.0 / np.float64(bags.n_features * variance))
        if (variance == 0 and not np.ptp(bags.instances)) or 0 < gamma < np.inf:
            return gamma if variance > 0 else 1.0
        raise ValueError(
            f"gamma='scale' needs features of a sensible size; their variance is {variance}: rescale them, or give "
            "gamma as a number"
        )

    def _check_parameters(self) -> None:
        if not callable(self.kernel) and self.kernel not in ("rbf", "linear", "poly"):
            raise ValueError(f"kernel must be rbf, linear, poly or a function of two matrices; got {self.kernel!r}")
        if self.gamma != "scale" and not (is_number(self.gamma) and float(self.gamma) > 0):
            raise ValueError(f"gamma must be 'scale' or a positive number; got {self.gamma!r}")
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise ValueError(f"{name} must be a positive number; got {value!r}")
        if self.tol >= 1:
            raise ValueError(f"tol must be below 1, the margin: nothing would be fitted; got {self.tol!r}")
        if not is_number(self.coef0):
            raise ValueError(f"coef0 must be a number; got {self.coef0!r}")
        if not is_positive_integer(self.degree) or self.degree >= 1 << 32:
            raise ValueError(f"degree must be a positive integer below 2**32; got {self.degree!r}")
        check_class_weight(self.class_weight)

    @property
    def _instance_kernel(self) -> InstanceKernel:
        return InstanceKernel(self.kernel, self.gamma_, self.degree, self.coef0)

    @abstractmethod
    def _fit(self, bags: Bags) -> None: ...

    @abstractmethod
    def _scores(self, bags: Bags) -> Vector: ...

    def decision_function(self, bags: Bags) -> Vector:
        """Score of each bag; positive for bags predicted positive.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_bags,)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError
            When `bags` is not a `Bags`.
        ValueError
            When the bags have another number of features than the training bags.
        """
        self._check_bags(bags)
        return self._scores(bags)

    def _check_bags(self, bags: Bags) -> None:
        check_is_fitted(self, "intercept_")
        if not isinstance(bags, Bags):
            raise TypeError(f"bags must be milfast.Bags, got {type(bags).__name__}: see Bags.from_list")
        if bags.n_features != self.n_features_in_:
            raise ValueError(f"bags have {bags.n_features} features, the training bags had {self.n_features_in_}")

    def instance_scores(self, bags: Bags) -> Vector:
        """Score of each instance: that of a bag which holds nothing else.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_instances,)

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As `decision_function`.
        """
        self._check_bags(bags)
        return self._scores(Bags(bags.instances, np.arange(bags.n_instances + 1)))

    def predict(self, bags: Bags) -> NDArray[np.int64]:
        """Label of each bag, 0 or 1; a score of 0 counts as negative.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of int64, shape (n_bags,)

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As `decision_function`.
        """
        return (self.decision_function(bags) > 0).astype(np.int64)


class InstanceSVM(BagSVM):
    """A model that scores instances; a bag scores as its best one."""

    cache_size: float

    support_: NDArray[np.int64]
    support_vectors_: NDArray[Any]
    dual_coef_: Vector

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (is_number(self.cache_size) and self.cache_size > 0):
            raise ValueError(f"cache_size must be a positive number of megabytes; got {self.cache_size!r}")

    def _keep(self, points: NDArray[Any], coefficients: Vector, intercept: float) -> None:
        """Remember what scores are made of."""
        self.support_ = np.flatnonzero(coefficients)
        self.support_vectors_ = points[self.support_]
        self.dual_coef_ = coefficients[self.support_]
        self.intercept_ = intercept

    def _sums(self, bags: Bags) -> Vector:
        """Score of each instance without the intercept."""
        return self._instance_kernel.sums(bags.instances, self.support_vectors_, self.dual_coef_)

    def instance_scores(self, bags: Bags) -> Vector:
        """Score of each instance; positive for instances predicted positive.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_instances,)

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As `decision_function`.
        """
        self._check_bags(bags)
        return self._sums(bags) + self.intercept_

    def _scores(self, bags: Bags) -> Vector:
        return best_of_bags(bags, self._sums(bags)) + self.intercept_


@dataclass(frozen=True)
class Answer:
    """What a model found in one round.

    Attributes
    ----------
    solution : Solution
        Of the convex problem.
    coefficients : ndarray, shape (n_points,)
        Of the points that scores are made of.
    scores : ndarray, shape (n_instances,)
        Of the training instances, with the intercept.
    cost : float
        Value of the model's objective.
    points : ndarray, shape (n_points, n_features), optional
        The training instances by default.
    numbers : ndarray of int64, shape (n_points,), optional
        Numbers of the points among the training instances, and -1 for others.
    """

    solution: Solution
    coefficients: Vector
    scores: Vector
    cost: float
    points: NDArray[Any] | None = None
    numbers: NDArray[np.int64] | None = None


class AlternatingSVM(InstanceSVM):
    """A model that alternates between a convex problem and a choice about the instances of positive bags.

    A model adds `_start`, `_solve` and `_choose`; choices are arrays.
    """

    #: A decrease of the objective by less than this share of it is none.
    enough: ClassVar[float | None] = None

    objective_: list[float]
    n_iter_: int

    def __init__(
        self,
        *,
        kernel: str | Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        C: float = 1.0,
        class_weight: Any = None,
        max_iter: int = 50,
        tol: float = 1e-3,
        n_restarts: int = 0,
        random_state: RandomState = None,
        cache_size: float = 500.0,
        callback: Callable[[int, float], object] | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.cache_size = cache_size
        self.callback = callback

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_positive_integer(self.max_iter):
            raise ValueError(f"max_iter must be a positive integer; got {self.max_iter!r}")
        if self.n_restarts != 0 and not is_positive_integer(self.n_restarts):
            raise ValueError(f"n_restarts must be 0 or a positive integer; got {self.n_restarts!r}")
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be a function of round and objective; got {self.callback!r}")
        seed_sequence(self.random_state)

    @abstractmethod
    def _start(self, split: Split, generator: np.random.Generator | None) -> NDArray[Any]:
        """The choice to begin with; a random one from a generator."""

    @abstractmethod
    def _solve(self, split: Split, rows: KernelRows, choice: NDArray[Any], start: Vector | None) -> Answer:
        """Solution of the convex problem for a choice."""

    @abstractmethod
    def _choose(self, split: Split, scores: Vector) -> NDArray[Any]:
        """The best choice for scores of the training instances."""

    def _fit(self, bags: Bags) -> None:
        split = Split(bags)
        rows = self._instance_kernel.rows(bags.instances, self.cache_size)
        generator = np.random.default_rng(seed_sequence(self.random_state))
        best: tuple[Answer, NDArray[Any], list[float], bool] | None = None
        for attempt in range(1 + self.n_restarts):
            outcome = self._descend(split, rows, self._start(split, generator if attempt else None))
            # where the solver gave up the cost is only a bound
            if best is None or self._rank(outcome[0]) < self._rank(best[0]):
                best = outcome
        assert best is not None
        answer, choice, self.objective_, self.converged_ = best
        self.n_iter_ = len(self.objective_)
        self._solved = answer.solution.gap <= self.tol
        points = bags.instances if answer.points is None else answer.points
        self._keep(points, answer.coefficients, answer.solution.intercept)
        if answer.numbers is not None:
            self.support_ = answer.numbers[self.support_]
        self._remember(split, choice)

    def _rank(self, answer: Answer) -> tuple[bool, float]:
        return answer.solution.gap > self.tol, answer.cost

    @abstractmethod
    def _remember(self, split: Split, choice: NDArray[Any]) -> None:
        """Keep what the model shows of its last choice."""

    def _descend(
        self, split: Split, rows: KernelRows, choice: NDArray[Any]
    ) -> tuple[Answer, NDArray[Any], list[float], bool]:
        costs: list[float] = []
        start: Vector | None = None
        while True:
            answer = self._solve(split, rows, choice, start)
            costs.append(answer.cost)
            if self.callback is not None:
                self.callback(len(costs), answer.cost)
            if answer.solution.gap > self.tol:
                return answer, choice, costs, False
            following = self._choose(split, answer.scores)
            settled = bool(np.array_equal(following, choice))
            if self.enough is not None and len(costs) > 1:
                settled = settled or costs[-2] - costs[-1] <= self.enough * abs(costs[-1])
            if settled or len(costs) == self.max_iter:
                return answer, choice, costs, settled
            choice, start = following, answer.solution.values

    def _advice(self) -> str | None:
        if self.converged_ or not self._solved:
            return super()._advice()
        return (
            f"{name_of(self)} stopped after {self.max_iter} rounds while its choice of instances still changed: raise "
            "max_iter, or take several starts with n_restarts"
        )


def unsolved(name: str) -> str:
    """What to say when the solver has used up its steps.

    Parameters
    ----------
    name : str
        Of the model.

    Returns
    -------
    str
    """
    return f"the solver of {name} ran out of steps: scale the features, or lower C, or raise tol"


def best_of_bags(bags: Bags, values: Vector) -> Vector:
    """Largest value of each bag.

    Parameters
    ----------
    bags : Bags
    values : ndarray, shape (n_instances,)

    Returns
    -------
    ndarray, shape (n_bags,)
    """
    return np.asarray(np.maximum.reduceat(values, bags.offsets[:-1]))


def class_weights(class_weight: Any, labels: NDArray[Any]) -> Vector:
    """Weights of class 0 and class 1, as in scikit-learn.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
    labels : ndarray
        0 and 1 of what carries a slack.

    Returns
    -------
    ndarray of float64, shape (2,)

    Raises
    ------
    ValueError
        As `check_class_weight`.
    """
    check_class_weight(class_weight)
    present = np.unique(labels)
    weights = np.ones(2)
    if class_weight is not None:
        weights[present] = compute_class_weight(class_weight, classes=present, y=labels)
    return weights


def check_class_weight(class_weight: Any) -> None:
    """Refuse what is no weight of classes.

    Parameters
    ----------
    class_weight : object

    Raises
    ------
    ValueError
        When `class_weight` is not None, "balanced" or a dictionary, or a weight is not a positive number.
    """
    if isinstance(class_weight, dict):
        for key, value in class_weight.items():
            if key not in (0, 1) or not (is_number(value) and value > 0):
                raise ValueError(f"class_weight must give classes 0 and 1 positive numbers; got {class_weight!r}")
    elif class_weight is not None and not (isinstance(class_weight, str) and class_weight == "balanced"):
        raise ValueError(f"class_weight must be a dictionary, 'balanced' or None; got {class_weight!r}")


def check_normalize(normalize: Normalization) -> None:
    """Refuse what is no way to normalise a sum over a bag.

    Parameters
    ----------
    normalize : {"average", "feature-space"} or None

    Raises
    ------
    ValueError
        When it is none of these.
    """
    if normalize not in (None, "average", "feature-space"):
        raise ValueError(f"normalize must be None, average or feature-space; got {normalize!r}")


def is_number(value: object) -> bool:
    """Whether `value` is a finite real number, and no boolean.

    Parameters
    ----------
    value : object

    Returns
    -------
    bool
    """
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(float(value))


def is_positive_integer(value: object) -> bool:
    """Whether `value` is an integer above 0, and no boolean.

    Parameters
    ----------
    value : object

    Returns
    -------
    bool
    """
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) > 0
