"""SIL: SVM on instances that all get the label of their bag (Ray & Craven 2005).

MIL assumption: **none**. It takes every instance of a positive bag for positive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.models.svm.base import InstanceSVM, class_weights
from milfast.models.svm.solver import solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from milfast.bags import Bags

__all__ = ["SIL"]

NAME = "SIL"


class SIL(InstanceSVM):
    """Single-instance learning: a plain SVM on instances.

    Minimises over w and b [1]_

        w'w / 2 + C sum_i max(0, 1 - y_i (w'phi(x_i) + b)),

    where y_i is the label of the bag that instance i is in. A bag scores as its best instance.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"} or callable
        Instance kernel. A callable gets two matrices of instances, shapes (n, n_features) and (m, n_features), and
        returns their kernel, shape (n, m), which must be symmetric and positive semidefinite.
    gamma : float or "scale"
        "scale" is 1 / (n_features * variance of all training features).
    degree, coef0
        Of the polynomial kernel (gamma x.x' + coef0)^degree.
    C : float
        Weight of the slack.
    class_weight : dict or "balanced", optional
        Of instances, as in scikit-learn.
    tol : float
        Largest violation of optimality that the solver leaves.
    cache_size : float
        Megabytes of kernel rows that are kept while fitting.

    Attributes
    ----------
    objective_ : float
        The minimum.
    n_iter_ : int
        1: the problem is convex.
    converged_ : bool
        Whether the solver reached `tol`.
    support_ : ndarray of int64, shape (n_support,)
        Numbers of the training instances that scores are made of.
    support_vectors_ : ndarray, shape (n_support, n_features)
    dual_coef_ : ndarray of float64, shape (n_support,)
    intercept_ : float
        Multiplier of the solver's equality constraint.
    gamma_ : float
        The gamma in use.
    classes_, n_features_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Ray & Craven (2005), Supervised versus multiple instance learning: an empirical comparison.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, recipe="strict", random_state=0)
    >>> model = mf.models.get("SIL")(gamma=0.1).fit(bags)
    >>> model.converged_, model.instance_scores(bags).shape
    (True, (729,))
    """

    tested: ClassVar[dict[str, Any]] = {"gamma": 0.1, "C": 1.0}

    def __init__(
        self,
        *,
        kernel: str | Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        C: float = 1.0,
        class_weight: Any = None,
        tol: float = 1e-3,
        cache_size: float = 500.0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.cache_size = cache_size

    def _fit(self, bags: Bags) -> None:
        assert bags.labels is not None
        labels = np.repeat(bags.labels, bags.sizes)
        rows = self._instance_kernel.rows(bags.instances, self.cache_size)
        limits = self.C * class_weights(self.class_weight, labels)[labels]
        solution = solve(rows, 2 * labels - 1, limits, tol=self.tol)
        self.objective_ = solution.cost
        self.n_iter_ = 1
        self.converged_ = solution.gap <= self.tol
        self._keep(bags.instances, solution.values, solution.intercept)
