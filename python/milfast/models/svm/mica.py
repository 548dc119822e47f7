"""MICA: SVM in which a convex combination of its instances stands for each positive bag (Mangasarian & Wild 2008).

MIL assumption: **none is enforced**. A bag scores as its best instance, but what is fitted to the positive bags is a
mixture of their instances, which may lie where no instance is.
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

__all__ = ["MICA"]

NAME = "MICA"


class MICA(AlternatingSVM):
    """Alternates between an SVM on convex combinations of the instances of positive bags and their weights.

    Minimises over w, b and weights u >= 0 that sum to 1 in each positive bag

        w'w / 2 + C (sum_B xi_B + sum_x xi_x),
        sum_(x in B) u_x w'phi(x) + b >= 1 - xi_B     for each positive bag B,
        -(w'phi(x) + b) >= 1 - xi_x                   for each instance x of a negative bag.

    For a given w the best u has all weight of a bag on its best instance (shared by those that score alike): the linear
    program of the paper in closed form. Starts with equal weights and stops when they stay.

    The paper [1]_ penalises the 1-norm of the coefficients of a kernel expansion, with which both steps are linear
    programs; this is the 2-norm version, with which Raff & Holt (2023) made their tables.

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
        Of positive bags (1) and instances of negative bags (0), as in scikit-learn.
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
    convex_weights_ : ndarray of float64, shape (n_instances,)
        Weight of each training instance; those of each positive bag sum to 1, the others are 0.
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
    .. [1] Mangasarian & Wild (2008), Multiple instance classification via successive linear programming.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, recipe="strict", random_state=0)
    >>> model = mf.models.get("MICA")(gamma=0.1).fit(bags)
    >>> model.converged_, bool(model.convex_weights_.sum() == 30)
    (True, True)
    """

    tested: ClassVar[dict[str, Any]] = {"gamma": 0.1, "C": 1.0, "max_iter": 250}

    def _start(self, split: Split, generator: np.random.Generator | None) -> Vector:
        return first_weights(split, generator)

    def _solve(self, split: Split, rows: KernelRows, choice: NDArray[Any], start: Vector | None) -> Answer:
        n_positive, n_negative = len(split.sizes), len(split.negatives)
        labels = np.repeat([0, 1], [n_negative, n_positive])
        combinations = Combinations.join(Combinations.alone(split.negatives), split.combinations(choice))
        limits = self.C * class_weights(self.class_weight, labels)[labels]
        solution = solve(rows, 2 * labels - 1, limits, combinations=combinations, start=start, tol=self.tol)
        coefficients = combinations.spread(solution.values, split.bags.n_instances)
        scores = rows.times(coefficients) + solution.intercept
        return Answer(solution, coefficients, scores, solution.cost)

    def _choose(self, split: Split, scores: Vector) -> Vector:
        return best_instances(split, scores[split.positives], share_ties=True)

    def _remember(self, split: Split, choice: NDArray[Any]) -> None:
        self.convex_weights_ = np.zeros(split.bags.n_instances)
        self.convex_weights_[split.positives] = choice
