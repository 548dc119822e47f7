"""mi-SVM: SVM on instances whose labels in positive bags are found along the way (Andrews et al. 2002).

MIL assumption: **standard**. A bag scores as its best instance, so adding an instance never lowers the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.models.svm.base import AlternatingSVM, Answer, class_weights
from milfast.models.svm.solver import solve
from milfast.models.svm.witness import Split, best_instances

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast._core import KernelRows
    from milfast.models.svm.solver import Vector
    from milfast.models.svm.witness import Split

__all__ = ["InstanceMISVM"]

NAME = "mi-SVM"


class InstanceMISVM(AlternatingSVM):
    """Alternates between an SVM on all instances and the labels of the instances in positive bags.

    The problem is mixed-integer [1]_: minimise over w, b and instance labels y in {-1, 1}

        w'w / 2 + C sum_i max(0, 1 - y_i (w'phi(x_i) + b)),

    where every instance of a negative bag is negative and at least one of a positive bag is positive. The heuristic
    starts with all instances of positive bags positive, relabels them by the sign of their score (0 counts as
    positive), makes the best instance of each positive bag positive, and stops when no label changes.

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
        Of instances by their current label, as in scikit-learn.
    max_iter : int
        Most rounds.
    tol : float
        Largest violation of optimality that the solver leaves.
    n_restarts : int
        Further descents from random choices; the one that ends with the least objective is kept.
    random_state : int, numpy.random.Generator, numpy.random.SeedSequence or None
        Of the restarts; nothing else is random.
    cache_size : float
        Megabytes of kernel rows that are kept while fitting.
    callback : callable, optional
        Called after each round with its number and the objective.

    Attributes
    ----------
    instance_labels_ : ndarray of int64, shape (n_instances,)
        Labels of the training instances, 0 or 1.
    objective_ : list of float
        Objective after each round; without weights of classes, which change with the labels, it never rises by more
        than `tol` explains.
    n_iter_ : int
        Number of rounds.
    converged_ : bool
        Whether the choice settled.
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

    def _start(self, split: Split, generator: np.random.Generator | None) -> NDArray[np.int64]:
        # all positive; or signs at random, and one instance of each positive bag positive
        n = split.bags.n_instances
        return self._choose(split, np.ones(n) if generator is None else generator.uniform(-1, 1, n))

    def _solve(self, split: Split, rows: KernelRows, choice: NDArray[Any], start: Vector | None) -> Answer:
        limits = self.C * class_weights(self.class_weight, choice)[choice]
        solution = solve(rows, 2 * choice - 1, limits, start=start, tol=self.tol)
        scores = solution.scores + solution.intercept
        return Answer(solution, solution.values, scores, solution.cost)

    def _choose(self, split: Split, scores: Vector) -> NDArray[np.int64]:
        labels = np.zeros(split.bags.n_instances, dtype=np.int64)
        inside = scores[split.positives]
        labels[split.positives] = (inside >= 0) | (best_instances(split, inside, share_ties=False) > 0)
        return labels

    def _remember(self, split: Split, choice: NDArray[Any]) -> None:
        self.instance_labels_ = choice
