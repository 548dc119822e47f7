"""mi-SVM: SVM on instances whose labels in positive bags are found along the way (Andrews et al. 2002).

MIL assumption: **standard**. A bag scores as its best instance, so adding an instance never lowers the score.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from milfast.gram import instance_gram
from milfast.models.svm.base import BagSVM, dual_objective, is_positive_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.bags import Bags

__all__ = ["InstanceMISVM"]

NAME = "mi-SVM"

#: Kernel values held at once while scoring.
BLOCK = 1 << 24


class InstanceMISVM(BagSVM):
    """Alternates between an SVM on all instances and the labels of the instances in positive bags.

    The problem is mixed-integer [1]_: minimise the C-SVM objective over w, b and the instance labels, where every
    instance of a negative bag is negative and at least one of a positive bag is positive. The heuristic starts with all
    instances of positive bags positive, relabels them by the sign of their score (0 counts as positive), makes the best
    instance of each positive bag positive, and stops when no label changes.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"}
        Instance kernel.
    gamma : float or "scale"
        "scale" is 1 / (n_features * variance of all training features).
    degree, coef0
        Of the polynomial kernel (gamma x.x' + coef0)^degree.
    C : float
        Weight of the slack.
    class_weight : dict or "balanced", optional
        Of instances, as in scikit-learn.
    max_iter : int
        Most rounds.
    tol : float
        Tolerance of the solver.

    Attributes
    ----------
    svm_ : sklearn.svm.SVC
        The last solution, with `dual_coef_` and `intercept_`.
    support_vectors_ : ndarray, shape (n_support, n_features)
    instance_labels_ : ndarray of int64, shape (n_instances,)
        Labels of the training instances, 0 or 1.
    objective_ : list of float
        Dual objective of each round, 1/2 a'Ha - sum(a).
    n_iter_ : int
        Number of rounds.
    converged_ : bool
        Whether the labels stopped changing.
    gamma_ : float
        The gamma in use.
    classes_, n_features_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Andrews, Tsochantaridis & Hofmann (2002), Support vector machines for multiple-instance learning.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, recipe="strict", random_state=0)
    >>> model = mf.models.get("mi-SVM")(gamma=0.1).fit(bags)
    >>> model.converged_, model.instance_scores(bags).shape
    (True, (729,))
    """

    claims: ClassVar[str | None] = "standard"
    tested: ClassVar[dict[str, Any]] = {"gamma": 0.1, "C": 1.0, "max_iter": 250}

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        C: float = 1.0,
        class_weight: Any = None,
        max_iter: int = 50,
        tol: float = 1e-3,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_positive_integer(self.max_iter):
            raise ValueError(f"max_iter must be a positive integer; got {self.max_iter!r}")

    def _fit(self, bags: Bags) -> None:
        assert bags.labels is not None
        gram = self._gram(bags.instances)
        starts = bags.offsets[:-1]
        in_positive = np.repeat(bags.labels == 1, bags.sizes)
        labels = in_positive.astype(np.int64)
        self.objective_: list[float] = []
        self.converged_ = False
        for _ in range(self.max_iter):
            svm = self._solve(gram, labels)
            self.objective_.append(dual_objective(gram, svm))
            scores = gram[:, svm.support_] @ svm.dual_coef_[0] + svm.intercept_[0]
            relabelled = (in_positive & (scores >= 0)).astype(np.int64)
            best = np.maximum.reduceat(scores, starts)
            witness = np.flatnonzero(scores == np.repeat(best, bags.sizes))
            _, first = np.unique(bags.bag_index[witness], return_index=True)
            relabelled[witness[first]] |= in_positive[witness[first]]
            self.converged_ = bool((relabelled == labels).all())
            if self.converged_:
                break
            labels = relabelled
        self.n_iter_ = len(self.objective_)
        if not self.converged_:
            warnings.warn(
                f"mi-SVM stopped after {self.max_iter} rounds while instance labels still changed: raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.svm_ = svm
        self.support_vectors_ = bags.instances[svm.support_]
        self.instance_labels_ = labels

    def _gram(self, x: NDArray[Any], y: NDArray[Any] | None = None) -> NDArray[np.float64]:
        return instance_gram(x, y, self.kernel, self.gamma_, self.degree, self.coef0)

    def instance_scores(self, bags: Bags) -> NDArray[np.float64]:
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
        step = max(1, BLOCK // len(self.support_vectors_))
        parts = [
            self._gram(bags.instances[first : first + step], self.support_vectors_) @ self.svm_.dual_coef_[0]
            for first in range(0, bags.n_instances, step)
        ]
        scores: NDArray[np.float64] = np.concatenate(parts) + self.svm_.intercept_[0]
        return scores

    def _scores(self, bags: Bags) -> NDArray[np.float64]:
        return np.asarray(np.maximum.reduceat(self.instance_scores(bags), bags.offsets[:-1]))
