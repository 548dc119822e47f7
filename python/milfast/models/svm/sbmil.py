"""sbMIL: SVM on instances of which a given share is taken for positive, the best ones of sMIL (Bunescu & Mooney 2007).

MIL assumption: **none is enforced**. A bag scores as its best instance, but nothing keeps a positive bag from having
only negative ones.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from milfast.models.svm.base import InstanceSVM, class_weights, is_number
from milfast.models.svm.smil import SparseMIL
from milfast.models.svm.solver import solve
from milfast.models.svm.sparse import check_sparse

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from milfast.bags import Bags
    from milfast.gram import Normalization

__all__ = ["SparseBalancedMIL"]

NAME = "sbMIL"


class SparseBalancedMIL(InstanceSVM):
    """SVM on instances, after the best instances of positive bags were taken for positive by sMIL.

    Fits sMIL, gives label 1 to the max(number of positive bags, eta * number of their instances) instances of positive
    bags that it scores best, and label -1 to all others, and minimises over w and b [1]_

        w'w / 2 + C sum_i max(0, 1 - y_i (w'phi(x_i) + b)).

    A bag scores as its best instance.

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
        Weight of the slack, in both steps.
    eta : float
        Share of the instances of positive bags that are taken for positive, from 0 to 1; at least as many as there are
        positive bags.
    normalize, scale_C
        Of sMIL.
    class_weight : dict or "balanced", optional
        Of instances by their label, as in scikit-learn, and of what sMIL fits.
    tol : float
        Largest violation of optimality that the solver leaves.
    cache_size : float
        Megabytes of kernel rows that are kept while fitting.

    Attributes
    ----------
    sparse_ : SparseMIL
        The first step.
    instance_labels_ : ndarray of int64, shape (n_instances,)
        Labels of the training instances, 0 or 1.
    objective_ : float
        The minimum of the second step.
    n_iter_ : int
        2: both steps are convex.
    converged_ : bool
        Whether the solver reached `tol` in both.
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
    .. [1] Bunescu & Mooney (2007), Multiple instance learning for sparse positive bags.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, recipe="strict", random_state=0)
    >>> model = mf.models.get("sbMIL")(gamma=0.1, eta=0.2).fit(bags)
    >>> model.converged_, int(model.instance_labels_.sum())
    (True, 75)
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
        eta: float = 0.0,
        normalize: Normalization = "average",
        scale_C: bool = False,
        class_weight: Any = None,
        tol: float = 1e-3,
        cache_size: float = 500.0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.eta = eta
        self.normalize = normalize
        self.scale_C = scale_C
        self.class_weight = class_weight
        self.tol = tol
        self.cache_size = cache_size

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_sparse(self.normalize, self.scale_C)
        if not (is_number(self.eta) and 0 <= self.eta <= 1):
            raise ValueError(f"eta must be from 0 to 1; got {self.eta!r}")

    def _fit(self, bags: Bags) -> None:
        assert bags.labels is not None
        shared = {name: value for name, value in self.get_params(deep=False).items() if name != "eta"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said once, for both steps
            self.sparse_ = SparseMIL(**shared | {"gamma": self.gamma_}).fit(bags)
        in_positive = np.flatnonzero(np.repeat(bags.labels == 1, bags.sizes))
        scores = self.sparse_.instance_scores(bags)[in_positive]
        count = max(int(bags.labels.sum()), round(self.eta * len(in_positive)))
        labels = np.zeros(bags.n_instances, dtype=np.int64)
        labels[in_positive[np.argsort(-scores, kind="stable")[:count]]] = 1
        rows = self._instance_kernel.rows(bags.instances, self.cache_size)
        limits = self.C * class_weights(self.class_weight, labels)[labels]
        solution = solve(rows, 2 * labels - 1, limits, tol=self.tol)
        self.instance_labels_ = labels
        self.objective_ = solution.cost
        self.n_iter_ = 2
        self.converged_ = self.sparse_.converged_ and solution.gap <= self.tol
        self._keep(bags.instances, solution.values, solution.intercept)
