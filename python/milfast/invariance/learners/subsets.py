"""Search of all sets of features for those whose tie to the target is the same in all environments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from milfast.invariance.learners.base import Learner, rows_of, task_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.seeding import RandomState

    Vector = NDArray[np.float64]

#: Most features that all sets of are looked at.
MOST_FEATURES = 10
#: What can be asked of a set.
TESTS = ("residuals", "coefficients")
#: Sets whose residuals are held at a time.
AT_ONCE = 64
#: Variance of the noise, as a share of the target's, below which a fit counts as one without noise.
NOISELESS = 1e-20


@dataclass(frozen=True)
class Subset:
    """One set of features.

    Attributes
    ----------
    features : tuple of int
    p_value : float
        Of the hypothesis that the target's tie to them is the same in all environments.
    mean_squared_error : float
        Of least squares on them, over the rows of all environments.
    """

    features: tuple[int, ...]
    p_value: float
    mean_squared_error: float


def subsets(rows: Vector, targets: Vector, number: NDArray[np.int64], test: str) -> list[Subset]:
    """All sets of features, the empty one first, with what speaks for them.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, n_features)
    targets : ndarray of float64, shape (n,)
    number : ndarray of int64, shape (n,)
        Number of the environment of each row, all from 0 on.
    test : {"residuals", "coefficients"}
        Whether residuals of least squares over all environments have the same mean and variance in each (two tests
        that allow for other than normal residuals, and Bonferroni's correction for there being two); or whether least
        squares in each environment by itself gives the same weights and intercept (a Wald test that allows for noise
        that differs between and within environments).

    Returns
    -------
    list of Subset
    """
    d = rows.shape[1]
    scale = rows.std(0)
    x = np.column_stack([(rows - rows.mean(0)) / np.where(scale > 0, scale, 1.0), np.ones(len(rows))])
    y = targets - targets.mean()
    # its square is not 0 either where the target is constant
    floor = max(NOISELESS * float(y @ y) / len(y), math.sqrt(np.finfo(np.float64).tiny))
    sets = [chosen for size in range(d + 1) for chosen in combinations(range(d), size)]
    weights = np.zeros((d + 1, len(sets)))
    second, cross = x.T @ x / len(x), x.T @ y / len(x)
    for column, chosen in enumerate(sets):
        columns = [*chosen, d]
        weights[columns, column] = _solve(second[np.ix_(columns, columns)], cross[columns])
    groups = [np.flatnonzero(number == e) for e in range(int(number.max()) + 1)]
    p_values, errors = np.ones(len(sets)), np.empty(len(sets))
    parts = [(x[group], y[group]) for group in groups]
    for first in range(0, len(sets), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        moments = [_moments(y_e[:, None] - x_e @ weights[:, some]) for x_e, y_e in parts]
        errors[some] = sum(len(y_e) * m[1] for (_, y_e), m in zip(parts, moments, strict=True)) / len(y)
        if test == "residuals":
            p_values[some] = _same_residuals(moments, np.array([len(y_e) for _, y_e in parts]), floor)
    if test == "coefficients" and len(parts) > 1:
        fitted = [_fits(x_e, y_e, sets, floor) for x_e, y_e in parts]
        for column, chosen in enumerate(sets):
            columns = [*chosen, d]
            p_values[column] = _same_weights([(theta[columns, column], p[column]) for theta, p in fitted])
    return [Subset(chosen, float(p), float(error)) for chosen, p, error in zip(sets, p_values, errors, strict=True)]


def _solve(matrix: Vector, right: Vector) -> Vector:
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])


def _same(values: Vector, variances: Vector) -> Vector:
    """P values of values (E, m) with known variances being equal along the first axis."""
    from scipy.stats import chi2

    if len(values) == 1:
        return np.ones(values.shape[1])
    precision = 1 / variances
    center = (precision * values).sum(0) / precision.sum(0)
    return np.asarray(chi2.sf((precision * (values - center) ** 2).sum(0), len(values) - 1))


def _moments(residuals: Vector) -> tuple[Vector, Vector, Vector, Vector]:
    """Means of the first four powers of each column."""
    squares = residuals * residuals
    n = len(residuals)
    return (
        residuals.sum(0) / n,
        squares.sum(0) / n,
        np.einsum("ij,ij->j", squares, residuals) / n,
        np.einsum("ij,ij->j", squares, squares) / n,
    )


def _same_residuals(moments: Sequence[tuple[Vector, ...]], sizes: Vector, floor: float) -> Vector:
    """P values of the residuals of each environment having one mean and one variance, from their moments."""
    m, second, third, fourth = (np.stack(powers) for powers in zip(*moments, strict=True))
    variances = np.maximum(second - m**2, 0.0) + floor
    central = fourth - 4 * m * third + 6 * m**2 * second - 3 * m**4
    spread = np.maximum(central / variances**2 - 1, 1e-6)  # 0 where residuals take two values equally often
    p_mean = _same(m, variances / sizes[:, None])
    p_variance = _same(np.log(variances), spread / sizes[:, None])
    return np.asarray(np.minimum(2 * np.minimum(p_mean, p_variance), 1.0))


def _fits(x: Vector, y: Vector, sets: list[tuple[int, ...]], floor: float) -> tuple[Vector, list[Vector]]:
    """Weights (d + 1, n_sets) of least squares in one environment, and their inverse covariances, robust ones."""
    wide = x.shape[1]
    second, cross = x.T @ x, x.T @ y
    weights = np.zeros((wide, len(sets)))
    for column, chosen in enumerate(sets):
        columns = [*chosen, wide - 1]
        weights[columns, column] = _solve(second[np.ix_(columns, columns)], cross[columns])
    upper = np.triu_indices(wide)
    pairs = np.ascontiguousarray((x[:, upper[0]] * x[:, upper[1]]).T)
    precisions = []
    for first in range(0, len(sets), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        squares = (y[:, None] - x @ weights[:, some]) ** 2 + floor
        for chosen, weighted in zip(sets[some], (pairs @ squares).T, strict=True):
            meat = np.zeros((wide, wide))
            meat[upper] = weighted
            meat.T[upper] = weighted
            of = np.ix_([*chosen, wide - 1], [*chosen, wide - 1])
            precisions.append(second[of] @ np.linalg.pinv(meat[of], hermitian=True) @ second[of])
    return weights, precisions


def _same_weights(fits: list[tuple[Vector, Vector]]) -> float:
    """P value of the weights of environments, given with inverse covariances, being the same."""
    from scipy.stats import chi2

    center = _solve(np.sum([p for _, p in fits], axis=0), np.sum([p @ theta for theta, p in fits], axis=0))
    distance = sum(float((theta - center) @ p @ (theta - center)) for theta, p in fits)
    return float(chi2.sf(distance, (len(fits) - 1) * len(center)))


class SubsetLearner(Learner):
    """Least squares on a set of features that invariance speaks for; a subclass says which.

    Attributes
    ----------
    subsets_ : list of Subset
        All sets.
    accepted_ : list of Subset
        Those that are not rejected.
    features_ : tuple of int
        Those of the predictor.
    diagnosis_ : str
        What came out, in a sentence.
    """

    searches = False
    most_features = MOST_FEATURES
    #: What is asked of a set unless `fit` says otherwise.
    test: ClassVar[str] = TESTS[0]

    def default_params(self) -> dict[str, Any]:
        """Parameters of each trial.

        Returns
        -------
        dict
            Not searched: a larger error on rows of the training distribution is what invariance costs, so that a choice
            by that error would always ask for less of it.
        """
        return {"alpha": 0.05}

    def sample_params(self, rng: np.random.Generator) -> dict[str, Any]:
        """Parameters of each trial, the default ones.

        Parameters
        ----------
        rng : numpy.random.Generator
            Not used.

        Returns
        -------
        dict
        """
        return self.default_params()

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        env: ArrayLike,
        rng: RandomState = None,
        *,
        alpha: float = 0.05,
        test: str | None = None,
        task: str | None = None,
        **params: Any,
    ) -> Self:
        """Fit to rows of all environments.

        Parameters
        ----------
        X : array_like, shape (n, n_features)
            Of ten features at most: all 2^n_features sets are looked at.
        y : array_like, shape (n,)
        env : array_like of int, shape (n,)
            Environment of each row.
        rng : object
            Not used.
        alpha : float
            Level of the test of each set.
        test : {"residuals", "coefficients"}, optional
            What is asked of a set; see `subsets`.
        task : {"regression", "classification"}, optional
            Classification by default where y holds nothing but 0 and 1, which are then taken for -1 and 1.
        **params
            There are no others.

        Returns
        -------
        SubsetLearner
            The learner itself.

        Raises
        ------
        ValueError
            When there are too many features, an environment has too few rows, shapes do not agree, or a value is out of
            range or not finite.
        TypeError
            When there is no such parameter.
        """
        if params:
            raise TypeError(
                f"{self.name} has no parameter {next(iter(params))!r}; its parameters are alpha, test, task"
            )
        test = self.test if test is None else test
        if test not in TESTS:
            raise ValueError(f"test must be one of {', '.join(TESTS)}; got {test!r}")
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1; got {alpha!r}")
        rows, targets, of_row = rows_of(X, y, env)
        d = rows.shape[1]
        if d > self.most_features:
            raise ValueError(
                f"{self.name} looks at all 2^n_features sets, and so at {self.most_features} features at most; got {d}"
            )
        names, number = np.unique(of_row, return_inverse=True)
        sizes = np.bincount(number.reshape(-1))
        if sizes.min() < d + 2:
            raise ValueError(
                f"env: each environment needs at least {d + 2} rows for {d} features; {names[sizes.argmin()]} has "
                f"{sizes.min()}"
            )
        self.task_ = task_of(targets, task)
        wide = rows.astype(np.float64)
        values = targets.astype(np.float64)
        if self.task_ == "classification":
            values = 2 * values - 1
        self.subsets_ = subsets(wide, values, number.reshape(-1), test)
        self.accepted_ = [subset for subset in self.subsets_ if subset.p_value > alpha]
        self.features_, self.diagnosis_ = self._chosen()
        if not self.accepted_:
            likeliest = max(self.subsets_, key=lambda subset: subset.p_value)
            self.features_ = ()
            self.diagnosis_ = (
                f"no set of features was accepted at level {alpha:g}: even {_told(likeliest.features)}, the likeliest, "
                f"has p = {likeliest.p_value:.2g}. {_WHY[test]}"
            )
        weights = np.zeros(d)
        center = wide.mean(0)
        columns = list(self.features_)
        weights[columns] = _solve(wide[:, columns] - center[columns], values - values.mean())
        self.coef_ = weights
        self.intercept_ = float(values.mean() - center @ weights)
        self.diverged_ = not bool(np.isfinite(weights).all())
        return self

    def _chosen(self) -> tuple[tuple[int, ...], str]:
        """Features of the predictor, and what to say of them; some set has been accepted."""
        raise NotImplementedError


_WHY = {
    "residuals": "Noise that differs between environments is enough for that, as in Example1, and so are features that "
    "are mixtures, as in the scrambled problems.",
    "coefficients": "Features that are mixtures are enough for that, as in the scrambled problems, and so is a target "
    "that is not linear in them.",
}


def _told(features: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(str, features))}}}" if features else "the empty set"
