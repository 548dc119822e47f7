"""sMIL: SVM that expects few positive instances in a positive bag (Bunescu & Mooney 2007).

MIL assumption: **none is enforced**. Bags are compared as a whole, by the mean of their instances in feature space.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.models.svm.bag_kernel import bag_lengths
from milfast.models.svm.base import BagSVM, InstanceSVM
from milfast.models.svm.solver import solve
from milfast.models.svm.sparse import SparseProgram, check_sparse
from milfast.models.svm.witness import Split

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from milfast.bags import Bags
    from milfast.gram import Normalization
    from milfast.models.svm.solver import Vector

__all__ = ["SparseMIL"]

NAME = "sMIL"


class SparseMIL(InstanceSVM):
    """SVM on negative instances and positive bags, which need not score high when they are large.

    Minimises over w and b [1]_

        w'w / 2 + C (sum_x xi_x + sum_B xi_B),
        -(w'phi(x) + b) >= 1 - xi_x               for each instance x of a negative bag,
        w'phi(B) + b >= 2 / |B| - 1 - xi_B        for each positive bag B,

    where phi(B) is the sum of phi over the bag, divided by the chosen normaliser. With the mean the right side is what
    one instance at 1 and all others at -1 give, so bags may be positive and score below 0; a bag of one instance must
    reach 1.

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
    normalize : {"average", "feature-space"} or None
        Divide the sum over a bag by the number of its instances, as in the paper, by its length, or not at all.
    scale_C : bool
        Whether C is divided by the number of negative instances and by that of positive bags, as in the paper.
    class_weight : dict or "balanced", optional
        Of negative instances (0) and positive bags (1), as in scikit-learn.
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
    .. [1] Bunescu & Mooney (2007), Multiple instance learning for sparse positive bags.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, recipe="strict", random_state=0)
    >>> model = mf.models.get("sMIL")(gamma=0.1).fit(bags)
    >>> mf.auc(model.decision_function(bags), bags.labels) > 0.9
    True
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
        self.normalize = normalize
        self.scale_C = scale_C
        self.class_weight = class_weight
        self.tol = tol
        self.cache_size = cache_size

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_sparse(self.normalize, self.scale_C)

    def _fit(self, bags: Bags) -> None:
        kernel = self._instance_kernel
        program = SparseProgram.of(
            Split(bags),
            kernel,
            normalize=self.normalize,
            C=self.C,
            scale_C=self.scale_C,
            class_weight=self.class_weight,
        )
        solution = solve(
            kernel.rows(bags.instances, self.cache_size),
            program.signs,
            program.limits,
            margins=program.margins,
            combinations=program.combinations,
            tol=self.tol,
        )
        self.objective_ = solution.cost
        self.n_iter_ = 1
        self.converged_ = solution.gap <= self.tol
        self._keep(bags.instances, program.combinations.spread(solution.values, bags.n_instances), solution.intercept)

    def _scores(self, bags: Bags) -> Vector:
        sums = np.add.reduceat(self._sums(bags), bags.offsets[:-1])
        return np.asarray(sums / bag_lengths(bags, self._instance_kernel, self.normalize) + self.intercept_)

    #: Of a bag which holds nothing else.
    instance_scores = BagSVM.instance_scores
