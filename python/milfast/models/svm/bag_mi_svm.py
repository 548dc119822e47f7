"""MI-SVM: SVM in which one instance, the witness, stands for each positive bag (Andrews et al. 2002).

MIL assumption: **standard**. A bag scores as its best instance, so adding an instance never lowers the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.models.svm.base import AlternatingSVM, Answer, class_weights
from milfast.models.svm.solver import Combinations, solve
from milfast.models.svm.witness import best_instances, first_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from milfast._core import KernelRows
    from milfast.models.svm.solver import Vector
    from milfast.models.svm.witness import Split
    from milfast.seeding import RandomState

__all__ = ["BagMISVM"]

NAME = "MI-SVM"


class BagMISVM(AlternatingSVM):
    """Alternates between an SVM on one instance of each positive bag and the choice of that instance.

    The problem is mixed-integer [1]_: minimise over w, b and a witness s(B) in each positive bag B

        w'w / 2 + C sum_B xi_B,
        w'phi(x_s(B)) + b >= 1 - xi_B           for each positive bag B,
        -(w'phi(x) + b) >= 1 - xi_B             for each instance x of each negative bag B,

    so that a negative bag has one slack for all its instances. The heuristic starts with the mean of the instances of
    each positive bag, takes the best instance of each as its witness, and stops when no witness changes.

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
        Of bags, as in scikit-learn.
    slack : {"bag", "instance"}
        Whether a negative bag has one slack, as in the paper, or each of its instances has its own.
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
    witnesses_ : ndarray of int64, shape (n_positive_bags,)
        Number of the instance that stands for each positive training bag; -1 for means, where `max_iter` is 1.
    objective_ : list of float
        Objective after each round. The first is of means, which are no instances; from the second on it never rises by
        more than `tol` explains.
    n_iter_ : int
        Number of rounds.
    converged_ : bool
        Whether the choice settled.
    support_ : ndarray of int64, shape (n_support,)
        Numbers of the training instances that scores are made of; -1 for a mean, where `max_iter` is 1.
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
    >>> model = mf.models.get("MI-SVM")(gamma=0.1).fit(bags)
    >>> model.converged_, model.witnesses_.shape
    (True, (30,))
    """

    claims: ClassVar[str | None] = "standard"
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
        slack: str = "bag",
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
        self.slack = slack

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.slack not in ("bag", "instance"):
            raise ValueError(f"slack must be bag or instance; got {self.slack!r}")

    def _start(self, split: Split, generator: np.random.Generator | None) -> Vector:
        return first_weights(split, generator)

    def _solve(self, split: Split, rows: KernelRows, choice: NDArray[Any], start: Vector | None) -> Answer:
        n_positive, n_negative = len(split.sizes), len(split.negatives)
        negative, positive = self.C * class_weights(self.class_weight, split.labels)
        groups: dict[str, Any] = {}
        if self.slack == "bag":
            of_negative = np.unique(split.bags.bag_index[split.negatives], return_inverse=True)[1]
            groups["groups"] = np.concatenate([of_negative, np.full(n_positive, -1)]).astype(np.int64)
            groups["group_limits"] = np.full(len(split.labels) - n_positive, negative)
        signs = np.repeat([-1, 1], [n_negative, n_positive])
        limits = np.where(signs > 0, positive, negative)
        options: dict[str, Any] = {"start": start, "tol": self.tol, **groups}
        witnesses = split.positives[np.flatnonzero(choice)]
        if len(witnesses) == n_positive:
            combinations = Combinations.alone(np.concatenate([split.negatives, witnesses]))
            solution = solve(rows, signs, limits, combinations=combinations, **options)
            coefficients = combinations.spread(solution.values, split.bags.n_instances)
            scores, points, numbers = rows.times(coefficients), None, None
        else:
            # a mean is no instance: it has rows of its own
            x = split.bags.instances
            means = np.add.reduceat(x[split.positives] * choice[:, None], split.starts)
            points = np.concatenate([x[split.negatives], means.astype(x.dtype)])
            numbers = np.concatenate([split.negatives, np.full(n_positive, -1)])
            kernel = self._instance_kernel
            solution = solve(kernel.rows(points, self.cache_size), signs, limits, **options)
            coefficients = solution.values
            held = np.flatnonzero(coefficients)
            scores = kernel.sums(x, points[held], coefficients[held])
        scores = scores + solution.intercept
        return Answer(solution, coefficients, scores, solution.cost, points, numbers)

    def _choose(self, split: Split, scores: Vector) -> Vector:
        return best_instances(split, scores[split.positives], share_ties=False)

    def _remember(self, split: Split, choice: NDArray[Any]) -> None:
        held = split.positives[np.flatnonzero(choice)]
        self.witnesses_ = held if len(held) == len(split.sizes) else np.full(len(split.sizes), -1)
