"""What learners have in common: linear predictors, and those of them that the engine trains."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from milfast.invariance.learners.parameters import LR, WEIGHT_DECAY
from milfast.invariance.sources import initial_weights
from milfast.seeding import seed_sequence, seed_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from milfast.invariance.learners.parameters import Parameter
    from milfast.seeding import RandomState

    Vector = NDArray[np.float64]

#: Tasks of the problems.
TASKS = ("regression", "classification")


class Learner(ABC):
    """A learner, before and after it is fitted.

    Attributes
    ----------
    name : str
        What it is called in tables.
    ENGINE : str or None
        Name of its objective in the engine, where that trains it.
    oracle : bool
        Whether it is trained as if in the test, as an upper bound for the others.
    searches : bool
        Whether there is a choice of parameters; all trials are the same otherwise.
    reference : str or None
        Text that `as_learner` makes the same learner from, where there is one.
    tasks : tuple of str
        What it can learn: "regression", "classification" or both.
    most_features : int or None
        How many features it can look at, where that is limited.
    coef_ : ndarray of float64, shape (n_features,), or None
        Weights of a linear predictor; None for another.
    intercept_ : float
    diverged_ : bool
        Whether a weight is not finite.
    """

    name: str = ""
    ENGINE: ClassVar[str | None] = None
    oracle: bool = False
    searches: bool = True
    reference: str | None = None
    tasks: tuple[str, ...] = TASKS
    most_features: int | None = None

    coef_: Vector | None
    intercept_: float = 0.0
    diverged_: bool = False

    @abstractmethod
    def default_params(self) -> dict[str, Any]:
        """Parameters of the first trial of a search.

        Returns
        -------
        dict
            Keywords of `fit`.
        """

    @abstractmethod
    def sample_params(self, rng: np.random.Generator) -> dict[str, Any]:
        """Parameters of another trial, which are independent of all others.

        Parameters
        ----------
        rng : numpy.random.Generator

        Returns
        -------
        dict
        """

    def paper_params(self, rng: random.Random) -> dict[str, Any] | None:
        """Parameters of a trial as the paper draws them.

        Parameters
        ----------
        rng : random.Random
            Seeded with 1000 + the number of the trial.

        Returns
        -------
        dict or None
            None for a learner whose parameters are not drawn so.
        """
        return None

    def trial_params(self, trial: int) -> dict[str, Any]:
        """Parameters of a trial of the published search: the defaults first, then random ones.

        Parameters
        ----------
        trial : int
            0 to 19 in the paper. A trial has the same parameters on all problems and data seeds.

        Returns
        -------
        dict
            Of a learner without `paper_params` those that `sample_params` draws with the trial's own seed.

        Examples
        --------
        >>> from milfast.invariance import learners
        >>> drawn = learners.get("IRMv1")().trial_params(15)  # the one that was chosen for Example1
        >>> {name: float(f"{value:.3g}") for name, value in drawn.items()}
        {'lr': 0.000161, 'weight_decay': 1.6e-05, 'penalty_weight': 0.667}
        """
        if trial == 0:
            return self.default_params()
        drawn = self.paper_params(random.Random(1000 + trial))
        if drawn is None:
            drawn = self.sample_params(np.random.Generator(np.random.PCG64(seed_sequence(1000 + trial))))
        return drawn

    @abstractmethod
    def fit(self, X: ArrayLike, y: ArrayLike, env: ArrayLike, rng: RandomState = None, **params: Any) -> Self:
        """Fit to rows of all environments.

        Parameters
        ----------
        X : array_like, shape (n, n_features)
        y : array_like, shape (n,)
            Integers 0 and 1 for classification.
        env : array_like of int, shape (n,)
            Environment of each row.
        rng : int, numpy.random.Generator, numpy.random.SeedSequence or None
        **params
            Those of `default_params` to set to other values.

        Returns
        -------
        Learner
            The learner itself.
        """

    def predict(self, X: ArrayLike) -> Vector:
        """Predicted values, or for classification scores that are above 0 for label 1.

        Parameters
        ----------
        X : array_like, shape (n, n_features)

        Returns
        -------
        ndarray of float64, shape (n,)

        Raises
        ------
        ValueError
            When the learner has not been fitted, or to rows of another width.
        """
        coef = getattr(self, "coef_", None)
        if coef is None:
            raise ValueError(f"{self.name} has not been fitted: call fit first")
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(coef):
            raise ValueError(f"X must have shape (n, {len(coef)}), as the rows in fit; got {rows.shape}")
        return np.asarray(rows @ coef + self.intercept_)

    def fresh(self) -> Learner:
        """An unfitted copy.

        Returns
        -------
        Learner
        """
        made = type(self)()
        made.name, made.reference = self.name, self.reference
        return made

    def __repr__(self) -> str:
        return f"<learner {self.name}>"


class LinearLearner(Learner):
    """A learner of this package, whose parameters are numbers with ranges.

    Attributes
    ----------
    parameters : dict of str to Parameter
        In the order in which the paper's way of drawing takes them.
    """

    parameters: ClassVar[Mapping[str, Parameter]] = {}

    def default_params(self) -> dict[str, Any]:
        """Parameters of the first trial of a search.

        Returns
        -------
        dict of str to float
        """
        return {name: parameter.default for name, parameter in self.parameters.items()}

    def sample_params(self, rng: np.random.Generator) -> dict[str, Any]:
        """Parameters of another trial, which are independent of all others.

        Parameters
        ----------
        rng : numpy.random.Generator

        Returns
        -------
        dict of str to float
        """
        return {name: parameter.draw(rng) for name, parameter in self.parameters.items()}

    def paper_params(self, rng: random.Random) -> dict[str, Any] | None:
        """Parameters of a trial as the paper draws them.

        Parameters
        ----------
        rng : random.Random
            Seeded with 1000 + the number of the trial.

        Returns
        -------
        dict of str to float
        """
        return {name: parameter.draw(rng) for name, parameter in self.parameters.items()}

    def _checked(self, params: Mapping[str, Any], *others: str) -> dict[str, float]:
        """Values of all parameters, defaults where none is given."""
        unknown = [name for name in params if name not in self.parameters]
        if unknown:
            known = ", ".join((*self.parameters, *others)) or "none"
            raise TypeError(f"{self.name} has no parameter {unknown[0]!r}; its parameters are {known}")
        values = {}
        for name, value in (self.default_params() | dict(params)).items():
            try:
                number = float(value)
            except (TypeError, ValueError):
                raise TypeError(f"{name} of {self.name} must be a number; got {value!r}") from None
            fault = self.parameters[name].fault
            wrong = "must be finite" if not np.isfinite(number) else fault(number) if fault else None
            if wrong:
                raise ValueError(f"{name} of {self.name} {wrong}; got {value!r}")
            values[name] = number
        return values


class EngineLearner(LinearLearner):
    """A linear learner that the engine trains with full batches.

    A subclass says what its objective is called in the engine, and the parameters of that.
    """

    parameters: ClassVar[Mapping[str, Parameter]] = {"lr": LR, "weight_decay": WEIGHT_DECAY}
    #: Whether a regression's second moments are not enough: the argument of that name of `environments_from_samples`.
    squares: ClassVar[bool] = False

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        env: ArrayLike,
        rng: RandomState = None,
        *,
        n_steps: int = 10_000,
        task: str | None = None,
        initial: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit to rows of all environments, by steps along the objective's gradient over all rows.

        Parameters
        ----------
        X : array_like, shape (n, n_features)
        y : array_like, shape (n,)
        env : array_like of int, shape (n,)
            Environment of each row.
        rng : int, numpy.random.Generator, numpy.random.SeedSequence or None
            Draws the weights to start from, as `initial_weights`.
        n_steps : int
            Steps of the optimiser.
        task : {"regression", "classification"}, optional
            Classification by default where y holds nothing but 0 and 1.
        initial : array_like, shape (n_features + 1,), optional
            Weights and bias to start from.
        **params
            Learning rate ``lr``, ``weight_decay`` and what the objective has of its own; see `default_params`.

        Returns
        -------
        EngineLearner
            The learner itself.

        Raises
        ------
        ValueError
            When shapes do not agree, or a value is out of range or not finite.
        TypeError
            When there is no such parameter.

        Examples
        --------
        >>> from milfast.invariance import learners, make_problem, stack
        >>> problem = make_problem("Example3", random_state=0)
        >>> erm = learners.get("ERM")().fit(*stack(problem.draw(1000).train), rng=0, n_steps=500, lr=0.01)
        >>> erm.coef_.shape, erm.diverged_
        ((10,), False)
        """
        from milfast import _core

        values = self._checked(params, "n_steps", "task", "initial")
        if isinstance(n_steps, bool) or not isinstance(n_steps, (int, np.integer)) or n_steps < 0:
            raise ValueError(f"n_steps must be an integer that is not negative; got {n_steps!r}")
        rows, targets, of_row = rows_of(X, y, env)
        task = task_of(targets, task)
        d = rows.shape[1]
        if initial is None:
            start = initial_weights(d, seed_value(rng))
        else:
            start = np.asarray(initial, dtype=np.float64)
            if start.shape != (d + 1,):
                raise ValueError(f"initial must have shape ({d + 1},), the bias last; got {start.shape}")
        narrow_rows, narrow_targets = _narrow(rows, "X"), _narrow(targets, "y")
        groups = [of_row == e for e in np.unique(of_row)]
        environments: Any = _core.environments_from_samples(
            [narrow_rows[g] for g in groups],
            [narrow_targets[g] for g in groups],
            task,
            squares=self.squares,
        )
        trained = environments.train(self.ENGINE, np.array([list(values.values())]), start[None], int(n_steps))
        self.task_ = task
        self._keep(trained["theta"][0], diverged=bool(trained["diverged"][0]))
        return self

    def _keep(self, theta: Vector, *, diverged: bool) -> None:
        self.coef_ = np.array(theta[:-1], dtype=np.float64)
        self.intercept_ = float(theta[-1])
        self.diverged_ = diverged or not bool(np.isfinite(theta).all())


def rows_of(X: ArrayLike, y: ArrayLike, env: ArrayLike) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows, targets and environments as arrays, once they have been looked at.

    Parameters
    ----------
    X : array_like, shape (n, n_features)
    y : array_like, shape (n,) or (n, 1)
    env : array_like, shape (n,)

    Returns
    -------
    X, y, env : ndarray

    Raises
    ------
    ValueError
        When shapes do not agree, there are no rows, or a number is not finite; the message says where.
    """
    rows, targets, of_row = np.asarray(X), np.asarray(y), np.asarray(env)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"X must have shape (n, n_features), neither of them 0; got {rows.shape}")
    if targets.shape == (len(rows), 1):
        targets = targets[:, 0]
    for name, array in (("y", targets), ("env", of_row)):
        if array.shape != (len(rows),):
            raise ValueError(f"{name} must have shape ({len(rows)},), one value for each row of X; got {array.shape}")
    for name, array in (("X", rows), ("y", targets)):
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold real numbers; got dtype {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}[{_first(~np.isfinite(array))}] is not finite")
    if of_row.dtype.kind == "f" and np.isnan(of_row).any():
        raise ValueError(f"env[{_first(np.isnan(of_row))}] is NaN, and no environment")
    return rows, targets, of_row


def _first(where: NDArray[np.bool_]) -> str:
    """Position of the first that is true."""
    return ", ".join(str(int(i)) for i in np.argwhere(where)[0])


def _narrow(values: NDArray[Any], name: str) -> NDArray[np.float32]:
    """The same in float32."""
    large = np.abs(values.astype(np.float64)) > np.finfo(np.float32).max
    if large.any():
        raise ValueError(f"{name}[{_first(large)}] is too large for float32: scale {name}")
    return np.ascontiguousarray(values, dtype=np.float32)


def task_of(targets: NDArray[Any], task: str | None = None) -> str:
    """What there is to learn.

    Parameters
    ----------
    targets : ndarray, shape (n,)
    task : {"regression", "classification"}, optional
        Where it is known.

    Returns
    -------
    str
        "classification" by default where the targets are nothing but 0 and 1.

    Raises
    ------
    ValueError
        When the task is unknown, or labels are others than 0 and 1.

    Examples
    --------
    >>> task_of(np.array([0, 1, 1])), task_of(np.array([0.5, 1.0]))
    ('classification', 'regression')
    """
    if not (task is None or task in TASKS):
        raise ValueError(f"task must be one of {', '.join(TASKS)}; got {task!r}")
    binary = bool(np.isin(targets, (0, 1)).all())
    if task == "classification" and not binary:
        raise ValueError(f"labels must be 0 and 1; got {sorted(set(np.unique(targets).tolist()) - {0, 1})[0]}")
    return task or ("classification" if binary else "regression")
