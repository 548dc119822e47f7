"""MissSVM: multi-instance learning as semi-supervised learning, with the witness constraint (Zhou & Xu 2007).

MIL assumption: **standard**. A bag scores as its best instance, so adding an instance never lowers the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.models.svm.base import AlternatingSVM, Answer, class_weights
from milfast.models.svm.solver import Combinations, solve
from milfast.models.svm.witness import best_instances, first_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast._core import KernelRows
    from milfast.models.svm.solver import Vector
    from milfast.models.svm.witness import Split

__all__ = ["MissSVM"]

NAME = "MissSVM"


class MissSVM(AlternatingSVM):
    """SVM that keeps the instances of positive bags away from the boundary, and one of each on the right side.

    With h(z) = max(0, 1 - z), f(x) = w'phi(x) + b, n instances in negative bags, m in positive ones and p positive
    bags, minimises [1]_

        w'w / 2 + C sum_(x negative) h(-f(x)) + C n/p sum_B h(max_(x in B) f(x)) + C n/m sum_(x in B) h(|f(x)|).

    The maximum and the absolute value make it a difference of convex functions; each round replaces them by their
    tangents (the concave-convex procedure), which never raises the objective. It starts with the means of the positive
    bags and with both signs of their instances at half weight, and stops when the tangents stay or the objective falls
    by less than a millionth.

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
        Of bags, as in scikit-learn; instances have the weight of their bag.
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
        Side on which each training instance was held, 0 or 1.
    objective_ : list of float
        Objective after each round; it never rises by more than `tol` explains.
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
    .. [1] Zhou & Xu (2007), On the relation between multi-instance learning and semi-supervised learning.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, recipe="strict", random_state=0)
    >>> model = mf.models.get("MissSVM")(gamma=0.1).fit(bags)
    >>> model.converged_, bool(model.objective_[-1] < model.objective_[0])
    (True, True)
    """

    claims: ClassVar[str | None] = "standard"
    tested: ClassVar[dict[str, Any]] = {"gamma": 0.1, "C": 1.0, "max_iter": 250}
    enough: ClassVar[float | None] = 1e-6

    def _start(self, split: Split, generator: np.random.Generator | None) -> NDArray[Any]:
        weights = first_weights(split, generator)
        return np.stack([weights, np.full(len(weights), 0.5)])

    def _solve(self, split: Split, rows: KernelRows, choice: NDArray[Any], start: Vector | None) -> Answer:
        n_bags, n_inside, n_negative = len(split.sizes), len(split.positives), len(split.negatives)
        combinations = Combinations.join(
            Combinations.alone(split.negatives),
            Combinations.alone(split.positives),
            Combinations.alone(split.positives),
            split.combinations(choice[0]),
        )
        negative, positive = self.C * class_weights(self.class_weight, split.labels)
        a_bag, an_instance = positive * n_negative / n_bags, positive * n_negative / n_inside
        limits = np.concatenate(
            [
                np.full(n_negative, negative),
                an_instance * (1 - choice[1]),
                an_instance * choice[1],
                np.full(n_bags, a_bag),
            ]
        )
        signs = np.repeat([-1, -1, 1, 1], [n_negative, n_inside, n_inside, n_bags])
        solution = solve(rows, signs, limits, combinations=combinations, start=start, tol=self.tol)
        coefficients = combinations.spread(solution.values, split.bags.n_instances)
        scores = rows.times(coefficients) + solution.intercept
        # the objective itself, of which the solver has minimised an upper bound
        inside = scores[split.positives]
        best = np.maximum.reduceat(inside, split.starts)
        slack = negative * np.maximum(0, 1 + scores[split.negatives]).sum()
        slack += a_bag * np.maximum(0, 1 - best).sum() + an_instance * np.maximum(0, 1 - np.abs(inside)).sum()
        cost = float(solution.values @ solution.scores / 2 + slack)
        return Answer(solution, coefficients, scores, cost)

    def _choose(self, split: Split, scores: Vector) -> NDArray[Any]:
        inside = scores[split.positives]
        # of the two slacks of an instance the smaller one carries the weight
        return np.stack([best_instances(split, inside, share_ties=True), (1 + np.sign(inside)) / 2])

    def _remember(self, split: Split, choice: NDArray[Any]) -> None:
        self.instance_labels_ = np.zeros(split.bags.n_instances, dtype=np.int64)
        self.instance_labels_[split.positives] = choice[1] > 0.5
