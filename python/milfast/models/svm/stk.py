"""STK: SVM on the statistics kernel, which sees a bag's least and largest values (Gärtner et al. 2002).

MIL assumption: **none**. A bag is what its extremes are, so that one instance may count against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from milfast.gram import extremes
from milfast.models.svm.bag_kernel import BagKernelSVM

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from milfast.bags import Bags
    from milfast.models.svm.solver import Vector

__all__ = ["STK"]

NAME = "STK"


class STK(BagKernelSVM):
    """SVM on a kernel between the extremes of bags.

    Minimises over w and b [1]_

        w'w / 2 + C sum_B max(0, 1 - y_B (w'phi(s(B)) + b)),

    where s(B) holds the minimum and the maximum of each feature over the bag: 2 n_features numbers.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"} or callable
        Kernel between statistics. A callable gets two matrices, shapes (n, 2 n_features) and (m, 2 n_features), and
        returns their kernel, shape (n, m), which must be symmetric and positive semidefinite.
    gamma : float or "scale"
        "scale" is 1 / (2 n_features * variance of all statistics of the training bags).
    degree, coef0
        Of the polynomial kernel (gamma s.s' + coef0)^degree.
    C : float
        Weight of the slack.
    class_weight : dict or "balanced", optional
        Of bags, as in scikit-learn.
    tol : float
        Tolerance of the solver.

    Attributes
    ----------
    svm_ : sklearn.svm.SVC
        The solution on the kernel matrix.
    support_ : ndarray of int64, shape (n_support,)
        Numbers of the training bags that scores are made of.
    support_bags_ : Bags
    dual_coef_ : ndarray of float64, shape (n_support,)
    intercept_ : float
    objective_ : float
        The minimum.
    n_iter_ : int
        1: the problem is convex.
    converged_ : bool
    gamma_ : float
        The gamma in use.
    classes_, n_features_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Gärtner, Flach, Kowalczyk & Smola (2002), Multi-instance kernels.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, random_state=0)
    >>> model = mf.models.get("STK")(gamma=0.1).fit(bags)
    >>> mf.auc(model.decision_function(bags), bags.labels)
    1.0
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
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.class_weight = class_weight
        self.tol = tol

    def _scale(self, bags: Bags) -> float:
        return super()._scale(extremes(bags))

    def _points(self, bags: Bags) -> NDArray[Any]:
        return extremes(bags).instances

    def _gram(self, a: Bags, b: Bags | None = None) -> Vector:
        return self._instance_kernel.matrix(self._points(a), None if b is None else self._points(b))
