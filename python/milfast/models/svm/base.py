"""What the SVM models share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from milfast.bags import Bags

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BagSVM"]


class BagSVM(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no type hints
    """Estimator of bag labels whose subproblem is a plain SVM; a model adds `_fit` and `_scores`."""

    family: ClassVar[str] = "svm"
    #: The MIL assumption that a model was built for.
    claims: ClassVar[str | None] = None

    kernel: str
    gamma: float | str
    degree: int
    coef0: float
    C: float
    class_weight: Any
    tol: float

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
        """
        if not isinstance(bags, Bags):
            raise TypeError(f"bags must be milfast.Bags, got {type(bags).__name__}: see Bags.from_list")
        if y is not None:
            raise TypeError("labels go into the bags, Bags(..., labels=y), not beside them")
        if bags.labels is None:
            raise ValueError("bags carry no labels: give them with Bags(..., labels=...)")
        if len(np.unique(bags.labels)) < 2:
            raise ValueError(f"all {len(bags)} bags have label {bags.labels[0]}: both classes are needed")
        self._check_parameters()
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = bags.n_features
        if self.gamma == "scale":
            variance = float(bags.instances.var(dtype=np.float64))
            self.gamma_ = 1.0 / (bags.n_features * variance) if variance > 0 else 1.0
        else:
            self.gamma_ = float(self.gamma)
        self._fit(bags)
        return self

    def _check_parameters(self) -> None:
        if self.kernel not in ("rbf", "linear", "poly"):
            raise ValueError(f"kernel must be rbf, linear or poly; got {self.kernel!r}")
        if self.gamma != "scale" and not (is_number(self.gamma) and float(self.gamma) > 0):
            raise ValueError(f"gamma must be 'scale' or a positive number; got {self.gamma!r}")
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise ValueError(f"{name} must be a positive number; got {value!r}")
        if not is_number(self.coef0):
            raise ValueError(f"coef0 must be a number; got {self.coef0!r}")
        if not is_positive_integer(self.degree):
            raise ValueError(f"degree must be a positive integer; got {self.degree!r}")

    @abstractmethod
    def _fit(self, bags: Bags) -> None: ...

    @abstractmethod
    def _scores(self, bags: Bags) -> NDArray[np.float64]: ...

    def _solve(self, gram: NDArray[np.float64], labels: NDArray[Any]) -> SVC:
        """The plain SVM on a kernel matrix. Its intercept is the multiplier of the equality constraint."""
        # without a seed scikit-learn would draw one from numpy's global generator, although nothing here is random
        svm = SVC(kernel="precomputed", C=self.C, class_weight=self.class_weight, tol=self.tol, random_state=0)
        return svm.fit(gram, labels)

    def decision_function(self, bags: Bags) -> NDArray[np.float64]:
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
        check_is_fitted(self, "svm_")
        if not isinstance(bags, Bags):
            raise TypeError(f"bags must be milfast.Bags, got {type(bags).__name__}: see Bags.from_list")
        if bags.n_features != self.n_features_in_:
            raise ValueError(f"bags have {bags.n_features} features, the training bags had {self.n_features_in_}")

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


def dual_objective(gram: NDArray[np.float64], svm: SVC) -> float:
    """Value of the dual problem, 1/2 a'Ha - sum(a), at the solution.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
    svm : sklearn.svm.SVC
        Fitted on it.

    Returns
    -------
    float
    """
    signed = svm.dual_coef_[0]
    support = gram[np.ix_(svm.support_, svm.support_)]
    return float(0.5 * signed @ support @ signed - np.abs(signed).sum())


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
