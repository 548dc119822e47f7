"""LR: logistic regression on the mean, or on the smallest and largest values, of the instances of a bag.

MIL assumption: **none**. What a bag holds on average is as good a sign of no concept as of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from milfast.bags import Bags
from milfast.models.svm.base import check_class_weight, is_number, is_positive_integer, require_training_bags

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LR"]

NAME = "LR"

#: Ways to make one row of a bag.
POOLINGS = ("mean", "min-max")


class LR(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Logistic regression of one row for each bag: a baseline that a model of bags should beat.

    Parameters
    ----------
    pooling : {"mean", "min-max"}
        The mean of each feature over the instances of a bag, or its smallest and its largest value beside each other.
    C : float
        Inverse of the weight of the penalty, as in scikit-learn. The default is small because the classic data sets
        have more features than bags.
    standardize : bool
        Give each feature mean 0 and variance 1 over the training instances before they are pooled; a constant feature
        becomes 0.
    class_weight : dict or "balanced", optional
        Of bags, as in scikit-learn.
    max_iter : int
        Of the solver.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,) or (2 * n_features,)
        Of the pooled features; with ``"min-max"`` those of the smallest values come first.
    intercept_ : float
    scaler_ : sklearn.preprocessing.StandardScaler or None
    classes_, n_features_in_
        As in scikit-learn.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, random_state=0)
    >>> model = mf.models.get("LR")(pooling="min-max").fit(bags)
    >>> mf.auc(model.decision_function(bags), bags.labels)
    1.0
    """

    family: ClassVar[str] = "linear"
    claims: ClassVar[str | None] = None

    coef_: NDArray[np.float64]
    intercept_: float
    scaler_: Any

    def __init__(
        self,
        *,
        pooling: str = "mean",
        C: float = 0.01,
        standardize: bool = True,
        class_weight: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.pooling = pooling
        self.C = C
        self.standardize = standardize
        self.class_weight = class_weight
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}; got {self.pooling!r}")
        if not (is_number(self.C) and self.C > 0):
            raise ValueError(f"C must be a positive number; got {self.C!r}")
        if not isinstance(self.standardize, (bool, np.bool_)):
            raise TypeError(f"standardize must be True or False; got {self.standardize!r}")
        if not is_positive_integer(self.max_iter):
            raise ValueError(f"max_iter must be a positive integer; got {self.max_iter!r}")
        check_class_weight(self.class_weight)

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
            When the solver stopped before it had found its solution.
        """
        require_training_bags(bags, y)
        self._check_parameters()
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = bags.n_features
        self.scaler_ = StandardScaler().fit(bags.instances.astype(np.float64)) if self.standardize else None
        model = LogisticRegression(C=self.C, class_weight=self.class_weight, max_iter=self.max_iter)
        model.fit(self._pooled(bags), bags.labels)
        self.coef_ = model.coef_[0]
        self.intercept_ = float(model.intercept_[0])
        return self

    def _pooled(self, bags: Bags) -> NDArray[np.float64]:
        instances = bags.instances.astype(np.float64)
        if self.scaler_ is not None:
            instances = self.scaler_.transform(instances)
        starts = bags.offsets[:-1]
        if self.pooling == "mean":
            return np.asarray(np.add.reduceat(instances, starts) / bags.sizes[:, None])
        return np.hstack([np.minimum.reduceat(instances, starts), np.maximum.reduceat(instances, starts)])

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
        check_is_fitted(self, "intercept_")
        if not isinstance(bags, Bags):
            raise TypeError(f"bags must be milfast.Bags, got {type(bags).__name__}: see Bags.from_list")
        if bags.n_features != self.n_features_in_:
            raise ValueError(f"bags have {bags.n_features} features, the training bags had {self.n_features_in_}")
        return np.asarray(self._pooled(bags) @ self.coef_ + self.intercept_)

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
