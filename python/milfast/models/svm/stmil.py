"""stMIL: sMIL that also keeps the instances of positive bags away from the boundary (Bunescu & Mooney 2007).

MIL assumption: **none is enforced**. A bag scores as its best instance, but its whole is compared in training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.models.svm.base import AlternatingSVM, Answer
from milfast.models.svm.solver import Combinations, solve
from milfast.models.svm.sparse import SparseProgram, check_sparse
from milfast.models.svm.witness import Split

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from milfast._core import KernelRows
    from milfast.gram import Normalization
    from milfast.models.svm.solver import Vector
    from milfast.models.svm.witness import Split
    from milfast.seeding import RandomState

__all__ = ["SparseTransductiveMIL"]

NAME = "stMIL"


class SparseTransductiveMIL(AlternatingSVM):
    """Alternates between sMIL with signed instances of positive bags and the choice of their signs.

    Minimises over w and b [1]_

        w'w / 2 + C (sum_x xi_x + sum_B xi_B + sum_(x in B) max(0, 1 - |w'phi(x) + b|)),
        -(w'phi(x) + b) >= 1 - xi_x               for each instance x of a negative bag,
        w'phi(B) + b >= 2 / |B| - 1 - xi_B        for each positive bag B,

    where phi(B) is the sum of phi over the bag, divided by the chosen normaliser. The absolute value makes it a
    difference of convex functions: each round puts the sign of the last score in its place (the concave-convex
    procedure), which never raises the objective. It starts with sMIL, whose program lacks the last sum, and stops when
    the signs stay or the objective falls by less than a millionth.

    Nothing keeps all instances of positive bags from ending on the negative side, where the last sum is small: sbMIL
    was made for bags in which that happens.

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
        Of negative instances (0) and positive bags and their instances (1), as in scikit-learn.
    normalize : {"average", "feature-space"} or None
        Divide the sum over a bag by the number of its instances, as in the paper, by its length, or not at all.
    scale_C : bool
        Whether C is divided by the number of negative instances, of positive bags and of their instances, as in the
        paper.
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
    .. [1] Bunescu & Mooney (2007), Multiple instance learning for sparse positive bags.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, recipe="strict", random_state=0)
    >>> model = mf.models.get("stMIL")(gamma=0.1).fit(bags)
    >>> model.converged_, bool(model.objective_[-1] < model.objective_[0])
    (True, True)
    """

    tested: ClassVar[dict[str, Any]] = {"gamma": 0.1, "C": 1.0, "max_iter": 250}
    enough: ClassVar[float | None] = 1e-6

    def __init__(
        self,
        *,
        kernel: str | Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        C: float = 1.0,
        class_weight: Any = None,
        normalize: Normalization = "average",
        scale_C: bool = False,
        max_iter: int = 50,
        tol: float = 1e-3,
        n_restarts: int = 0,
        random_state: RandomState = None,
        cache_size: float = 500.0,
        callback: Callable[[int, float], object] | None = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            C=C,
            class_weight=class_weight,
            max_iter=max_iter,
            tol=tol,
            n_restarts=n_restarts,
            random_state=random_state,
            cache_size=cache_size,
            callback=callback,
        )
        self.normalize = normalize
        self.scale_C = scale_C

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_sparse(self.normalize, self.scale_C)

    def _start(self, split: Split, generator: np.random.Generator | None) -> NDArray[np.int64]:
        n = len(split.positives)
        return np.zeros(n, dtype=np.int64) if generator is None else generator.choice([-1, 1], n)

    def _solve(self, split: Split, rows: KernelRows, choice: NDArray[Any], start: Vector | None) -> Answer:
        program = SparseProgram.of(
            split,
            self._instance_kernel,
            normalize=self.normalize,
            C=self.C,
            scale_C=self.scale_C,
            class_weight=self.class_weight,
        )
        # a sign of 0 leaves the instance out
        positive = float(program.limits[-1]) * (len(split.sizes) / len(choice) if self.scale_C else 1.0)
        combinations = Combinations.join(program.combinations, Combinations.alone(split.positives))
        solution = solve(
            rows,
            np.concatenate([program.signs, np.where(choice < 0, -1, 1)]),
            np.concatenate([program.limits, positive * np.abs(choice)]),
            margins=np.concatenate([program.margins, np.ones(len(choice))]),
            combinations=combinations,
            start=start,
            tol=self.tol,
        )
        coefficients = combinations.spread(solution.values, split.bags.n_instances)
        scores = rows.times(coefficients) + solution.intercept
        # the objective itself, of which the solver has minimised an upper bound
        wholes = program.signs * (solution.scores[: len(program.signs)] + solution.intercept)
        slack = program.limits @ np.maximum(0, program.margins - wholes)
        slack += positive * np.maximum(0, 1 - np.abs(scores[split.positives])).sum()
        cost = float(solution.values @ solution.scores / 2 + slack)
        return Answer(solution, coefficients, scores, cost)

    def _choose(self, split: Split, scores: Vector) -> NDArray[np.int64]:
        return np.where(scores[split.positives] < 0, -1, 1)

    def _remember(self, split: Split, choice: NDArray[Any]) -> None:
        self.instance_labels_ = np.zeros(split.bags.n_instances, dtype=np.int64)
        self.instance_labels_[split.positives] = choice > 0
