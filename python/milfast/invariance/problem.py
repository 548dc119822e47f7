"""What the six problems have in common: environments, splits, and how risks are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.invariance.sources import NativeSource, TorchSource, orthogonal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from milfast.invariance.sources import Source

    Vector = NDArray[np.float64]

#: What the test split does to the features x_spu: permute their rows, or what the code did until 2021-11-29.
TEST_SHUFFLES = ("invariant", "2021")
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Environment:
    """Rows of one environment.

    Attributes
    ----------
    X : ndarray of float32, shape (n, n_features)
    y : ndarray, shape (n,)
        float32 for regression; int64, 0 or 1, for classification.
    """

    X: NDArray[np.float32]
    y: NDArray[Any]


def stack(environments: list[Environment]) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[np.int64]]:
    """Rows of all environments in one array, as learners take them.

    Parameters
    ----------
    environments : list of Environment

    Returns
    -------
    X : ndarray of float32, shape (n, n_features)
        A copy.
    y : ndarray, shape (n,)
    env : ndarray of int64, shape (n,)
        Number of the environment of each row.

    Examples
    --------
    >>> from milfast.invariance import make_problem, stack
    >>> X, y, env = stack(make_problem("Example1", random_state=0).draw(100).train)
    >>> X.shape, env.tolist()[::100]
    ((300, 10), [0, 1, 2])
    """
    sizes = [len(environment.y) for environment in environments]
    return (
        np.concatenate([environment.X for environment in environments]),
        np.concatenate([environment.y for environment in environments]),
        np.repeat(np.arange(len(environments), dtype=np.int64), sizes),
    )


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of a problem: each split is a list of environments, made when it is first asked for.

    In the splits of the Oracle, which is trained as if in the test, rows of x_spu are permuted within an environment as
    they are in the test split. With the native generator they are the rows of the other learners' splits, permuted, and
    the test split is the same for all; with torch they come from a pass of their own, as in the published study.

    Attributes
    ----------
    problem : Problem
    n : int
        Rows of an environment.
    """

    problem: Problem
    n: int
    _passes: dict[bool, dict[str, list[Environment]]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def train(self) -> list[Environment]:
        """Rows to fit to."""
        return self._split("train")

    @cached_property
    def validation(self) -> list[Environment]:
        """Rows to choose parameters by, from the same distribution as `train`."""
        return self._split("validation")

    @cached_property
    def test(self) -> list[Environment]:
        """Rows that no learner sees."""
        return self._split("test")

    @cached_property
    def oracle_train(self) -> list[Environment]:
        """Rows that the Oracle is fitted to."""
        return self._split("train", oracle=True)

    @cached_property
    def oracle_validation(self) -> list[Environment]:
        """Rows that the Oracle's parameters are chosen by."""
        return self._split("validation", oracle=True)

    @cached_property
    def oracle_test(self) -> list[Environment]:
        """Rows that the Oracle is tested on; those of `test` unless they come from torch."""
        return self.test if self.problem.rng == "native" else self._split("test", oracle=True)

    def _split(self, split: str, *, oracle: bool = False) -> list[Environment]:
        shuffled = oracle or split == "test"
        if self.problem.rng == "native":
            position = 1 + SPLITS.index(split)
            seed = self.problem.random_state
            return [
                self.problem._sample(NativeSource(seed, position, e), self.n, e, shuffled)
                for e in range(self.problem.n_env)
            ]
        if oracle not in self._passes:
            self._passes[oracle] = self.problem._torch_pass(self.n, oracle)
        return self._passes[oracle][split]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Problem(ABC):
    """One of the six problems, with all that a data seed draws before the first row.

    A row holds d_inv features x_inv, whose tie to the target is the same in all environments, and d_spu features x_spu,
    whose tie to it differs or vanishes in the test: (x_inv, x_spu) S for the matrix S of `scramble`.

    Attributes
    ----------
    name : str
    task : {"regression", "classification"}
    d_inv, d_spu : int
        Numbers of features.
    n_env : int
        Number of environments.
    random_state : int
        Seed of everything that is drawn.
    rng : {"native", "torch"}
        What draws it.
    test_shuffle : {"invariant", "2021"}
        Which columns are permuted in the test split; see `make_problem`.
    scramble : ndarray of float64, shape (d_inv + d_spu, d_inv + d_spu)
        The identity for the problems whose name has no s at its end.
    """

    task: ClassVar[str]

    name: str
    d_inv: int
    d_spu: int
    n_env: int
    random_state: int
    rng: str
    test_shuffle: str
    scramble: Vector

    @classmethod
    def make(
        cls, name: str, d_inv: int, d_spu: int, n_env: int, *, random_state: int, rng: str, test_shuffle: str
    ) -> Problem:
        """Draw the parts of a problem; `make_problem` looks at the arguments first.

        Parameters
        ----------
        name, d_inv, d_spu, n_env, random_state, rng, test_shuffle
            As in `make_problem`.

        Returns
        -------
        Problem
        """
        source: Source = TorchSource(random_state) if rng == "torch" else NativeSource(random_state, 0)
        d = d_inv + d_spu
        parts = cls._parameters(source, d_inv, d_spu, n_env)
        scramble = orthogonal(source, d) if name.endswith("s") else np.eye(d)
        for array in (scramble, *parts.values()):
            array.setflags(write=False)
        return cls(
            name=name,
            d_inv=d_inv,
            d_spu=d_spu,
            n_env=n_env,
            random_state=random_state,
            rng=rng,
            test_shuffle=test_shuffle,
            scramble=scramble,
            **parts,
        )

    @property
    def n_features(self) -> int:
        """Number of features, d_inv + d_spu."""
        return self.d_inv + self.d_spu

    def __repr__(self) -> str:
        told = [f"{name}={getattr(self, name)}" for name in ("d_inv", "d_spu", "n_env", "random_state")]
        told += [f"{name}={getattr(self, name)!r}" for name in ("rng", "test_shuffle")]
        return f"<problem {self.name}: {', '.join(told)}>"

    def draw(self, n: int = 10_000) -> Draw:
        """Rows of all splits.

        Parameters
        ----------
        n : int
            Rows of an environment. Example3 has floor(n / 2) of each class, so that an odd n gives one row less.

        Returns
        -------
        Draw
            The same rows each time.

        Raises
        ------
        ValueError
            When n is too small for a row of each class.

        Examples
        --------
        >>> from milfast.invariance import make_problem
        >>> draw = make_problem("Example2", random_state=0).draw(1000)
        >>> draw.train[0].X.shape, sorted(set(draw.test[1].y.tolist()))
        ((1000, 10), [0, 1])
        """
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < self._fewest:
            raise ValueError(f"n must be an integer of at least {self._fewest} rows an environment; got {n!r}")
        return Draw(self, int(n))

    @property
    def has_population(self) -> bool:
        """Whether `population` has the Oracle's distribution too."""
        return True

    def population(self, oracle: bool = False) -> Any:
        """The distribution of an environment instead of rows, for the engine.

        Parameters
        ----------
        oracle : bool
            The distribution that the Oracle is trained on, in which x_spu is independent of all else.

        Returns
        -------
        milfast._core.Environments
            Second moments for regression, mixtures of normal distributions for classification. Example2's mixture takes
            the animal for the label, which differs in a share Phi(-sqrt(10 d_inv)) of rows: 8e-4 with one invariant
            feature, 8e-13 with five.

        Raises
        ------
        ValueError
            With the test shuffle of 2021 where that leaves no mixture that determines labels; draw rows then.
        """
        from milfast import _core

        made: Any = self._population(_core, oracle)
        return made

    def risk(self, coef: ArrayLike, intercept: ArrayLike = 0.0) -> Vector:
        """Exact error in the test, for rows without end.

        Parameters
        ----------
        coef : array_like, shape (..., n_features)
            Weights of a linear predictor, or of many.
        intercept : array_like, shape (...)

        Returns
        -------
        ndarray of float64, shape (..., n_env)
            Mean squared error, or the share of rows whose label differs from "coef . x + intercept > 0". NaN for
            predictors that are not finite.

        Raises
        ------
        ValueError
            When the number of weights is wrong.

        Examples
        --------
        The invariant optimum of Example1 has the variance of the noise left:

        >>> from milfast.invariance import make_problem
        >>> problem = make_problem("Example1", random_state=0)
        >>> best = np.append(problem.beta, np.zeros(5))
        >>> problem.risk(best).round(4).tolist()
        [0.05, 11.25, 20.0]
        """
        return self._finite(self._test_risk, coef, intercept)

    def training_risk(self, coef: ArrayLike, intercept: ArrayLike = 0.0, *, oracle: bool = False) -> Vector:
        """Exact error on the distribution of the training and validation rows.

        Parameters
        ----------
        coef : array_like, shape (..., n_features)
        intercept : array_like, shape (...)
        oracle : bool
            On the distribution that the Oracle is trained on, which is that of the test.

        Returns
        -------
        ndarray of float64, shape (..., n_env)
            As `risk`.

        Raises
        ------
        ValueError
            When the number of weights is wrong.
        """
        return self._finite(self._test_risk if oracle else self._training_risk, coef, intercept)

    def spurious_share(self, coef: ArrayLike) -> Vector:
        """Share of the spurious features in a predictor's output, in each environment.

        Parameters
        ----------
        coef : array_like, shape (..., n_features)

        Returns
        -------
        ndarray of float64, shape (..., n_env)
            Var(w_spu . x_spu) / (Var(w_spu . x_spu) + Var(w_inv . x_inv)); NaN for a constant predictor.

        Raises
        ------
        ValueError
            When the number of weights is wrong.

        Examples
        --------
        >>> from milfast.invariance import make_problem
        >>> problem = make_problem("Example1", random_state=0)
        >>> problem.spurious_share(np.repeat([1.0, 0.0], 5)).tolist()
        [0.0, 0.0, 0.0]
        """
        usable, weights = _usable(coef)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            invariant, spurious = self._variances(*_scaled(*self.split(weights))[:2])
            total = invariant + spurious
            return np.where(usable[..., None] & (total > 0), spurious / total, np.nan)

    def split(self, coef: ArrayLike) -> tuple[Vector, Vector]:
        """Weights of the features before they were scrambled.

        Parameters
        ----------
        coef : array_like, shape (..., n_features)

        Returns
        -------
        w_inv : ndarray of float64, shape (..., d_inv)
        w_spu : ndarray of float64, shape (..., d_spu)

        Raises
        ------
        ValueError
            When the number of weights is wrong.
        """
        weights = np.asarray(coef, dtype=np.float64)
        if weights.shape[-1:] != (self.n_features,):
            raise ValueError(
                f"coef must have {self.n_features} weights (d_inv={self.d_inv}, d_spu={self.d_spu}) on its last axis; "
                f"got shape {weights.shape}"
            )
        effective = weights @ self.scramble.T
        return effective[..., : self.d_inv], effective[..., self.d_inv :]

    @property
    @abstractmethod
    def invariant_risk(self) -> Vector:
        """Error of the best predictor that uses x_inv only, in each environment."""

    @property
    def shortcut_risk(self) -> Vector:
        """Error in the test of the predictor that uses x_spu only, in each environment; NaN without such features."""
        if not self.d_spu:
            return np.full(self.n_env, np.nan)
        return self._test_risk(np.zeros(self.d_inv), self._shortcut, np.zeros(()))

    #: Fewest rows of an environment.
    _fewest: ClassVar[int] = 1

    @classmethod
    @abstractmethod
    def _parameters(cls, source: Source, d_inv: int, d_spu: int, n_env: int) -> dict[str, Any]:
        """What is drawn before the scramble, in the published order; values of the fields of the class."""

    @abstractmethod
    def _rows(self, source: Source, n: int, e: int, shuffled: bool) -> tuple[Any, Any]:
        """Rows before they are scrambled, and targets, in the published order of draws."""

    @abstractmethod
    def _population(self, core: Any, oracle: bool) -> Any: ...

    @abstractmethod
    def _test_risk(self, w_inv: Vector, w_spu: Vector, intercept: Vector) -> Vector: ...

    @abstractmethod
    def _training_risk(self, w_inv: Vector, w_spu: Vector, intercept: Vector) -> Vector: ...

    @abstractmethod
    def _variances(self, w_inv: Vector, w_spu: Vector) -> tuple[Vector, Vector]: ...

    @property
    @abstractmethod
    def _shortcut(self) -> Vector:
        """Weights of the predictor that uses x_spu only."""

    def _finite(self, exact: Any, coef: ArrayLike, intercept: ArrayLike) -> Vector:
        finite, weights = _usable(coef)
        w_inv, w_spu = self.split(weights)
        bias = np.asarray(intercept, dtype=np.float64)
        try:
            shape = np.broadcast_shapes(w_inv.shape[:-1], bias.shape)
        except ValueError:
            raise ValueError(
                f"intercept must be one number for each predictor of coef, shape {w_inv.shape[:-1]}; got {bias.shape}"
            ) from None
        usable = finite & np.isfinite(bias)
        bias = np.broadcast_to(np.where(np.isfinite(bias), bias, 0.0), shape)
        w_inv, w_spu = np.broadcast_to(w_inv, (*shape, self.d_inv)), np.broadcast_to(w_spu, (*shape, self.d_spu))
        if self.task == "classification":  # a sign is the same at any scale
            w_inv, w_spu, bias = _scaled(w_inv, w_spu, bias)
        with np.errstate(invalid="ignore", over="ignore"):
            found: Vector = exact(w_inv, w_spu, bias)
        return np.where(usable[..., None], found, np.nan)

    def _sample(self, source: Source, n: int, e: int, shuffled: bool) -> Environment:
        rows, targets = self._rows(source, n, e, shuffled)
        if self.name.endswith("s"):
            rows = source.product(rows, self.scramble)
        y = source.array(targets)
        return Environment(source.array(rows), y if self.task == "regression" else y.astype(np.int64))

    def _torch_pass(self, n: int, oracle: bool) -> dict[str, list[Environment]]:
        """All splits from one run through torch's generator, which the draws of the problem itself come first in."""
        source = TorchSource(self.random_state)
        self._parameters(source, self.d_inv, self.d_spu, self.n_env)
        if self.name.endswith("s"):
            orthogonal(source, self.n_features)
        return {
            split: [self._sample(source, n, e, oracle or split == "test") for e in range(self.n_env)]
            for split in SPLITS
        }


def _usable(coef: ArrayLike) -> tuple[NDArray[np.bool_], Vector]:
    """Which predictors are finite, and their weights, 0 for the others."""
    weights = np.asarray(coef, dtype=np.float64)
    finite = np.asarray(np.isfinite(np.atleast_1d(weights)).all(-1))
    return finite, np.where(finite[..., None], weights, 0.0)


def _scaled(w_inv: Vector, w_spu: Vector, intercept: ArrayLike = 0.0) -> tuple[Vector, Vector, Vector]:
    """Predictors times powers of two, so that their largest numbers are about 1 and no square is 0 or infinite."""
    bias = np.asarray(intercept, dtype=np.float64)
    size = np.maximum(np.abs(w_inv).max(-1, initial=0.0), np.abs(w_spu).max(-1, initial=0.0))
    shift = -np.frexp(np.maximum(size, np.abs(bias)))[1]
    return np.ldexp(w_inv, shift[..., None]), np.ldexp(w_spu, shift[..., None]), np.ldexp(bias, shift)


def with_bias(covariance: Vector) -> Vector:
    """Second moments of (x, 1) for x of mean 0.

    Parameters
    ----------
    covariance : ndarray, shape (..., d, d)

    Returns
    -------
    ndarray of float64, shape (..., d + 1, d + 1)
    """
    d = covariance.shape[-1]
    wide = np.zeros((*covariance.shape[:-2], d + 1, d + 1))
    wide[..., :d, :d] = covariance
    wide[..., d, d] = 1.0
    return wide
