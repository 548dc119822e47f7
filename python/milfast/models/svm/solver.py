"""The quadratic program that all support vector machines for bags come down to, and the kernel it is solved with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast import _core
from milfast.gram import instance_gram

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["Combinations", "InstanceKernel", "Solution", "solve"]

#: Kernel values held at once where a kernel is a Python function.
BLOCK = 1 << 24

#: More megabytes than any machine has, and few enough for a count of bytes.
MOST_MEGABYTES = 1e12

#: Largest kernel value; the solver squares them.
LARGEST = 1e150

#: Steps of the solver before it gives up; a step takes a microsecond for a hundred variables and ten for ten thousand.
MOST_STEPS = 10_000_000


@dataclass(frozen=True)
class InstanceKernel:
    """A kernel between instances whose parameters are settled.

    Attributes
    ----------
    kernel : {"rbf", "linear", "poly"} or callable
        A callable gets two matrices, shapes (n, n_features) and (m, n_features), and returns shape (n, m).
    gamma, degree, coef0
        As in `milfast.bag_gram`.
    """

    kernel: str | Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
    gamma: float
    degree: int
    coef0: float

    def matrix(self, x: NDArray[Any], y: NDArray[Any] | None = None) -> Vector:
        """Kernel matrix between the rows of `x` and those of `y`, or of `x` itself.

        Parameters
        ----------
        x, y : ndarray, shape (n, n_features) and (m, n_features)

        Returns
        -------
        ndarray of float64, shape (n, m)

        Raises
        ------
        ValueError
            When a kernel function returns something else than that many finite numbers, or values are too large.
        """
        self.check_size(x, y)
        if isinstance(self.kernel, str):
            return instance_gram(x, y, self.kernel, self.gamma, self.degree, self.coef0)
        other = x if y is None else y
        values = np.asarray(self.kernel(x, other), dtype=np.float64)
        if values.shape != (len(x), len(other)):
            raise ValueError(f"kernel must return shape {(len(x), len(other))}; got {values.shape}")
        if not np.isfinite(values).all():
            raise ValueError("kernel must return finite numbers")
        if np.abs(values).max(initial=0.0) > LARGEST:
            raise ValueError(f"kernel must return numbers up to {LARGEST}: scale it")
        return values

    def check_size(self, x: NDArray[Any], y: NDArray[Any] | None = None) -> None:
        """Refuse instances whose linear or polynomial kernel is beyond what can be computed with.

        Parameters
        ----------
        x, y : ndarray, shape (n, n_features) and (m, n_features)

        Raises
        ------
        ValueError
            When a value may exceed 1e150.
        """
        if self.kernel not in ("linear", "poly"):
            return
        with np.errstate(over="ignore"):
            squares = [
                np.einsum("ij,ij->i", each, each, dtype=np.float64).max(initial=0)
                for each in (x, y)
                if each is not None
            ]
            largest = np.sqrt(squares[0]) * np.sqrt(squares[-1])
            if self.kernel == "poly":
                largest = (self.gamma * largest + abs(self.coef0)) ** self.degree
        if not largest <= LARGEST:
            raise ValueError(f"the {self.kernel} kernel of these instances may exceed {LARGEST}: scale the features")

    def check_symmetric(self, gram: Vector, x: NDArray[Any]) -> None:
        """Refuse a matrix made by a kernel function that is not its own transpose, rounding apart.

        Parameters
        ----------
        gram : ndarray, shape (n, n)
        x : ndarray, shape (n_instances, n_features)
            What the function takes; a pair of it shows the precision in which it computes.

        Raises
        ------
        ValueError
            When two values differ.
        """
        assert callable(self.kernel)
        single = np.asarray(self.kernel(x[:1], x[:1])).dtype in (np.float16, np.float32)
        share, floor = (1e-5, 1e-6) if single else (1e-9, 1e-12)
        if not np.allclose(gram, gram.T, rtol=share, atol=floor * max(1.0, float(np.abs(gram).max()))):
            raise ValueError("kernel must be symmetric: kernel(x, y) and kernel(y, x) differ")

    def rows(self, x: NDArray[Any], cache_size: float) -> _core.KernelRows:
        """Rows of the kernel matrix of `x`, for the solver.

        Parameters
        ----------
        x : ndarray, shape (n, n_features)
        cache_size : float
            Megabytes of rows that are kept. A kernel function fills the whole matrix instead.

        Returns
        -------
        milfast._core.KernelRows

        Raises
        ------
        ValueError
            When the matrix of a kernel function is not symmetric, or values are too large.
        """
        self.check_size(x)
        if isinstance(self.kernel, str):
            return _core.KernelRows(
                x,
                kernel=self.kernel,
                gamma=self.gamma,
                degree=self.degree,
                coef0=self.coef0,
                cache_bytes=int(min(cache_size, MOST_MEGABYTES) * 1e6),
            )
        gram = self.matrix(x)
        self.check_symmetric(gram, x)
        return _core.KernelRows((gram + gram.T) / 2, kernel="precomputed")

    def sums(self, x: NDArray[Any], y: NDArray[Any], coefficients: Vector) -> Vector:
        """Sum over the rows of `y` of coefficient times kernel, for each row of `x`.

        Parameters
        ----------
        x, y : ndarray, shape (n, n_features) and (m, n_features)
        coefficients : ndarray, shape (m,)

        Returns
        -------
        ndarray of float64, shape (n,)

        Raises
        ------
        ValueError
            As `matrix`.
        """
        self.check_size(x, y)
        if isinstance(self.kernel, str):
            options: dict[str, Any] = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
            return _core.kernel_sums(x, y, coefficients, kernel=self.kernel, **options)
        step = max(1, BLOCK // max(1, len(y)))
        parts = [self.matrix(x[first : first + step], y) @ coefficients for first in range(0, len(x), step)]
        return np.concatenate(parts)


@dataclass(frozen=True)
class Combinations:
    """Variables that stand for weighted sums of instances.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_variables + 1,)
        Where the members of each variable begin.
    members : ndarray of int64
        Numbers of instances.
    weights : ndarray of float64
    """

    starts: NDArray[np.int64]
    members: NDArray[np.int64]
    weights: Vector

    @classmethod
    def alone(cls, members: NDArray[Any]) -> Combinations:
        """One instance for each variable.

        Parameters
        ----------
        members : ndarray of int

        Returns
        -------
        Combinations
        """
        return cls(np.arange(len(members) + 1), np.asarray(members, dtype=np.int64), np.ones(len(members)))

    @classmethod
    def join(cls, *parts: Combinations) -> Combinations:
        """The variables of all parts, one part after the other.

        Parameters
        ----------
        *parts : Combinations

        Returns
        -------
        Combinations
        """
        sizes = np.concatenate([np.diff(part.starts) for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([part.members for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )

    def spread(self, values: Vector, n: int) -> Vector:
        """Coefficients of the instances, from those of the variables.

        Parameters
        ----------
        values : ndarray, shape (n_variables,)
        n : int
            Number of instances.

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        each = np.repeat(values, np.diff(self.starts)) * self.weights
        return np.asarray(np.bincount(self.members, weights=each, minlength=n), dtype=np.float64)


@dataclass(frozen=True)
class Solution:
    """Where the solver ended.

    Attributes
    ----------
    values : ndarray, shape (n_variables,)
        Multiplier times sign of each variable.
    scores : ndarray, shape (n_variables,)
        Score of each variable, without the intercept.
    intercept : float
        The multiplier of the equality constraint.
    cost : float
        The cost w'w / 2 plus weighted slack that is minimised, by the dual problem.
    gap : float
        Largest violation of optimality.
    """

    values: Vector
    scores: Vector
    intercept: float
    cost: float
    gap: float


def solve(
    rows: _core.KernelRows,
    signs: NDArray[Any],
    limits: Vector,
    *,
    margins: Vector | None = None,
    combinations: Combinations | None = None,
    groups: NDArray[np.int64] | None = None,
    group_limits: Vector | None = None,
    start: Vector | None = None,
    tol: float = 1e-3,
) -> Solution:
    """Minimise w'w / 2 + sum(limit * slack) with sign * score >= margin - slack for each variable.

    Parameters
    ----------
    rows : milfast._core.KernelRows
        Kernel between the instances.
    signs : ndarray, shape (n_variables,)
        1 or -1.
    limits : ndarray, shape (n_variables,)
        Weight of the slack, which bounds the multiplier.
    margins : ndarray, shape (n_variables,), optional
        1 by default.
    combinations : Combinations, optional
        What the variables stand for; the instances by default.
    groups : ndarray of int64, shape (n_variables,), optional
        Negative variables of one group share a slack; -1 for those that do not.
    group_limits : ndarray, shape (n_groups,), optional
        Weight of the slack of each group.
    start : ndarray, shape (n_variables,), optional
        Values to start from.
    tol : float
        Largest violation of optimality that is left.

    Returns
    -------
    Solution
        Its gap is above `tol` where the solver ran out of steps.

    Raises
    ------
    ValueError
        When the parts do not fit together.
    """
    signs = np.asarray(signs, dtype=np.float64)
    linear = -signs if margins is None else -signs * margins
    options: dict[str, Any] = {}
    if combinations is not None:
        options.update(starts=combinations.starts, members=combinations.members, weights=combinations.weights)
    if groups is not None:
        options.update(groups=groups, limits=group_limits)
    values, scores, intercept, objective, gap, _ = rows.solve(
        np.where(signs < 0, -limits, 0.0),
        np.where(signs > 0, limits, 0.0),
        linear,
        start=start,
        tol=tol,
        max_steps=MOST_STEPS,
        **options,
    )
    return Solution(values, scores, intercept, -objective, gap)
