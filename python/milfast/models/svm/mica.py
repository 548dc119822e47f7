"""MICA: SVM in which a convex combination of its instances stands for each positive bag (Mangasarian & Wild 2008).

MIL assumption: **none is enforced**. A bag scores as its best instance, but what is fitted to the positive bags is a
mixture of their instances, which may lie where no instance is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.models.svm.base import AlternatingSVM, Answer, class_weights
from milfast.models.svm.solver import Combinations, solve
from milfast.models.svm.witness import Split, best_instances, random_weights, uniform_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from milfast._core import KernelRows
    from milfast.bags import Bags
    from milfast.models.svm.solver import Vector
    from milfast.seeding import RandomState

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

    def __init__(
        self,
        *,
        kernel: str | Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        C: float = 1.0,
        class_weight: Any = None,
        max_iter: int = 50,
        tol: float = 1e-3,
        n_restarts: int = 0,
        random_state: RandomState = None,
        cache_size: float = 500.0,
        callback: Callable[[int, float], object] | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.cache_size = cache_size
        self.callback = callback

    def _start(self, bags: Bags, generator: np.random.Generator | None) -> Vector:
        split = Split(bags)
        return uniform_weights(split) if generator is None else random_weights(split, generator)

    def _solve(self, bags: Bags, rows: KernelRows, choice: NDArray[Any], start: Vector | None) -> Answer:
        split = Split(bags)
        n_positive, n_negative = len(split.sizes), len(split.negatives)
        signs = np.repeat([-1, 1], [n_negative, n_positive])
        combinations = Combinations.join(Combinations.alone(split.negatives), split.combinations(choice))
        limits = self.C * class_weights(self.class_weight, (signs > 0).astype(np.int64))[(signs > 0).astype(np.int64)]
        solution = solve(rows, signs, limits, combinations=combinations, start=start, tol=self.tol)
        coefficients = combinations.spread(solution.values, bags.n_instances)
        scores = rows.times(coefficients) + solution.intercept
        return Answer(coefficients, scores, solution.intercept, solution.cost, solution.values, solution.gap)

    def _choose(self, bags: Bags, scores: Vector) -> Vector:
        split = Split(bags)
        return best_instances(split, scores[split.positives], share_ties=True)

    def _remember(self, bags: Bags, choice: NDArray[Any]) -> None:
        self.convex_weights_ = np.zeros(bags.n_instances)
        self.convex_weights_[Split(bags).positives] = choice
