"""Jobs of a battery: all trials of one learner on one replicate of one problem."""

from __future__ import annotations

import hashlib
import inspect
import math
import sys
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast import _core
from milfast.checks.adapters import at
from milfast.invariance.learners.adapters import as_learner
from milfast.invariance.problem import Problem, stack
from milfast.invariance.problems import make_problem
from milfast.invariance.sources import initial_weights
from milfast.seeding import seed_sequence, seed_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from milfast.invariance.learners.base import Learner
    from milfast.invariance.problem import Environment

    Matrix = NDArray[np.float64]

#: What a study calls.
FUNCTION = "milfast.invariance.jobs:run_specification"
#: Trials of the published study are seeded with this plus their number.
PAPER_SEED = 1000
#: Branches of the tree of seeds.
_PROBLEM, _PARAMETERS, _START, _FIT = range(4)
#: What tells the jobs of one learner on one problem apart.
BOUNDS = ("replicate",)
#: Fields that are the same for all learners that are compared.
ARENA = (
    *("data", "d_inv", "d_spu", "n_env", "mode", "rng", "test_shuffle"),
    *("n_trials", "n_steps", "seed"),
)


@dataclass(frozen=True)
class Subject:
    """A learner to be tried, before it is fitted.

    Attributes
    ----------
    learner : Learner
    """

    learner: Learner

    @classmethod
    def of(cls, given: Any) -> Subject:
        """Make a subject of whatever the user handed over.

        Parameters
        ----------
        given : str or object
            As `milfast.invariance.as_learner` takes it.

        Returns
        -------
        Subject

        Raises
        ------
        ValueError
            When there is no learner, module or attribute of that name.
        TypeError
            When the learner lacks a method.
        """
        return cls(as_learner(given))

    @property
    def name(self) -> str:
        """What it is called in results."""
        return self.learner.name

    @property
    def reference(self) -> str | None:
        """Text that `of` makes the same subject from, where there is one: a name or "package.module:Name"."""
        return self.learner.reference

    @property
    def engine(self) -> str | None:
        """Name of its objective in the engine, where that trains it."""
        return self.learner.ENGINE

    @property
    def source(self) -> str | None:
        """Hash of the files of a learner of one's own, so that a study knows when it has changed; None for ours."""
        if self.reference is None or ":" not in self.reference:
            return None
        digest = hashlib.sha256()
        own = type(getattr(self.learner, "prototype", self.learner))
        for written in (sys.modules[self.reference.partition(":")[0]], own):
            with suppress(TypeError, OSError):  # what is built in, or was typed at a prompt, has no file
                digest.update(Path(inspect.getsourcefile(written) or "").read_bytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Job:
    """One replicate of one learner on one problem.

    Attributes
    ----------
    subject : Subject
    problem : str
    d_inv, d_spu, n_env : int
    mode : {"paper", "strict"}
    engine : {"samples", "population"}
    n : int or None
        Rows of an environment; None where nothing is sampled.
    n_trials, n_steps : int
    rng : {"native", "torch"}
    test_shuffle : {"invariant", "2021"}
    seed : int
        Root seed of the whole battery.
    replicate : int
        Which one, from 0.
    """

    subject: Subject
    problem: str
    d_inv: int
    d_spu: int
    n_env: int
    mode: str
    engine: str
    n: int | None
    n_trials: int
    n_steps: int
    rng: str
    test_shuffle: str
    seed: int
    replicate: int

    @property
    def title(self) -> str:
        """What is being done, for a progress bar."""
        return f"{self.subject.name} on {self.problem}"

    @property
    def problem_seed(self) -> int:
        """Seed of the problem: the published data seeds 0, 1, ... in paper mode."""
        if self.mode == "paper":
            return self.seed + self.replicate
        return seed_value(self.seed, _PROBLEM, self.replicate)

    @property
    def data(self) -> Data:
        """Data of the replicate, which jobs of other learners share."""
        return _data(
            self.problem,
            self.d_inv,
            self.d_spu,
            self.n_env,
            self.problem_seed,
            self.rng,
            self.test_shuffle,
            self.n,
        )

    def trials(self) -> list[dict[str, Any]]:
        """Parameters of each trial; the first has the learner's own.

        Returns
        -------
        list of dict
            One only, where there is nothing to search.
        """
        learner = self.subject.learner
        more = range(1, self.n_trials if learner.searches else 1)
        return [learner.default_params(), *(self._drawn(trial) for trial in more)]

    def _drawn(self, trial: int) -> dict[str, Any]:
        if self.mode == "paper":
            return self.subject.learner.trial_params(trial)
        path = (_PARAMETERS, self.replicate, zlib.crc32(self.subject.name.encode()), trial)
        return self.subject.learner.sample_params(np.random.default_rng(seed_sequence(self.seed, *path)))

    def starts(self, n_features: int) -> Matrix:
        """Weights and bias that each trial starts from.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        ndarray of float64, shape (n_trials, n_features + 1)
        """
        if self.mode == "paper":
            seeds = [PAPER_SEED + trial for trial in range(self.n_trials)]
        else:
            seeds = [seed_value(self.seed, _START, self.replicate, trial) for trial in range(self.n_trials)]
        return np.array([initial_weights(n_features, seed, self.rng) for seed in seeds])


class Data:
    """One replicate of a problem, with what the engine makes of it; made when it is first asked for.

    Parameters
    ----------
    problem : Problem
    n : int or None
        Rows of an environment; None for the distribution itself.
    """

    def __init__(self, problem: Problem, n: int | None) -> None:
        self.problem = problem
        self.draw = None if n is None else problem.draw(n)
        self._made: dict[tuple[str, bool, bool], Any] = {}

    def rows(self, split: str, *, oracle: bool = False) -> list[Environment]:
        """Rows of a split.

        Parameters
        ----------
        split : {"train", "validation", "test"}
        oracle : bool
            The Oracle's.

        Returns
        -------
        list of Environment
        """
        found: list[Environment] = getattr(self.draw, f"oracle_{split}" if oracle else split)
        return found

    def environments(self, split: str, *, oracle: bool = False, squares: bool = False) -> Any:
        """What the engine makes of the rows of a split, or of the distribution.

        Parameters
        ----------
        split : {"train", "validation", "test"}
        oracle : bool
        squares : bool
            Whether second moments of a regression are not enough.

        Returns
        -------
        milfast._core.Environments
        """
        if self.draw is None:
            return self._oracle_population if oracle else self._population
        key = split, oracle, squares
        if key not in self._made:
            rows = self.rows(split, oracle=oracle)
            self._made[key] = _core.environments_from_samples(
                [e.X for e in rows], [e.y for e in rows], self.problem.task, squares=squares
            )
        return self._made[key]

    @cached_property
    def _population(self) -> Any:
        return self.problem.population()

    @cached_property
    def _oracle_population(self) -> Any:
        return self.problem.population(oracle=True)


@lru_cache(maxsize=2)
def _data(
    problem: str, d_inv: int, d_spu: int, n_env: int, seed: int, rng: str, test_shuffle: str, n: int | None
) -> Data:
    made = make_problem(
        problem, d_inv=d_inv, d_spu=d_spu, n_env=n_env, random_state=seed, rng=rng, test_shuffle=test_shuffle
    )
    return Data(made, n)


def describe(job: Job) -> dict[str, Any]:
    """Everything that determines the result of a job, as plain values.

    Parameters
    ----------
    job : Job

    Returns
    -------
    dict
    """
    return {
        "model": job.subject.reference,
        "name": job.subject.name,
        "source": job.subject.source,
        "data": job.problem,
        "d_inv": job.d_inv,
        "d_spu": job.d_spu,
        "n_env": job.n_env,
        "mode": job.mode,
        "engine": job.engine,
        "n": job.n,
        "n_trials": job.n_trials,
        "n_steps": job.n_steps,
        "rng": job.rng,
        "test_shuffle": job.test_shuffle,
        "seed": job.seed,
        "replicate": job.replicate,
    }


def run_specification(specification: dict[str, Any]) -> dict[str, Any]:
    """Do the job that `describe` described.

    Parameters
    ----------
    specification : dict

    Returns
    -------
    dict
        As `run_job`.

    Raises
    ------
    ValueError
        When the learner's file is no longer the one that the job was made for.
    """
    # by the name that it was given, which trials are drawn by
    subject = Subject(as_learner(specification["model"], name=specification["name"]))
    if subject.source != specification["source"]:
        raise ValueError(f"{specification['model']} has changed since the study was begun: begin a new one")
    names = (
        *("d_inv", "d_spu", "n_env", "mode", "engine", "n", "n_trials", "n_steps", "rng", "test_shuffle"),
        *("seed", "replicate"),
    )
    return run_job(Job(subject, specification["data"], **{name: specification[name] for name in names}))


def run_job(job: Job) -> dict[str, Any]:
    """Fit all trials of a learner to one replicate, and measure them.

    Parameters
    ----------
    job : Job

    Returns
    -------
    dict
        Plain values: the parameters of each trial, ``validation``, ``test`` and ``exact`` errors of each trial in each
        environment (None where there are none), ``share`` of the spurious features, ``diverged``, and of the problem
        ``optimum`` and ``shortcut``, in each environment.

    Raises
    ------
    Exception
        Whatever the learner raises, with a note that says where.
    """
    start = time.process_time()
    trials = job.trials()
    objective = job.subject.engine
    found = _fitted(job, trials) if objective is None else _trained(job, objective, trials)
    problem = job.data.problem
    return {
        "trials": [{name: _plain(value) for name, value in trial.items()} for trial in trials],
        **found,
        "optimum": _plain(problem.invariant_risk),
        "shortcut": _plain(problem.shortcut_risk),
        "seconds": time.process_time() - start,
    }


def _trained(job: Job, objective: str, trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All trials stepped together by the engine."""
    data, learner = job.data, job.subject.learner
    problem, oracle = data.problem, learner.oracle
    train = data.environments("train", oracle=oracle, squares=getattr(learner, "squares", False))
    known = _core.invariance_learners()[objective]
    parameters = np.array([[float(trial[name]) for name in known] for trial in trials])
    gave = train.train(objective, parameters, job.starts(problem.n_features), job.n_steps)
    theta, diverged = gave["theta"], gave["diverged"] | ~np.isfinite(gave["theta"]).all(axis=1)
    coef, intercept = theta[:, :-1], theta[:, -1]
    test = None
    if job.engine == "samples":
        validation = data.environments("validation", oracle=oracle).errors(theta)
        if job.mode == "paper":
            test = data.environments("test", oracle=oracle).errors(theta)
    else:
        validation = problem.training_risk(coef, intercept, oracle=oracle)
    constant = (coef == 0).all(axis=1)
    return {
        "validation": _plain(validation),
        "test": None if test is None else _plain(test),
        "exact": _plain(problem.risk(coef, intercept)),
        "share": _plain(problem.spurious_share(coef)),
        "diverged": (diverged | constant).tolist(),
        "steps": gave["step"].tolist(),
    }


def _fitted(job: Job, trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Trials one after the other, by the learner's own `fit`."""
    data, oracle = job.data, job.subject.learner.oracle
    problem = data.problem
    X, y, env = stack(data.rows("train", oracle=oracle))
    validation, test, exact, share, diverged = [], [], [], [], []
    for number, trial in enumerate(trials):
        path = (_FIT, job.replicate, zlib.crc32(job.subject.name.encode()), number)
        with at(f"{job.title}, replicate {job.replicate}, trial {number}"):
            rng = np.random.default_rng(seed_sequence(job.seed, *path))
            fitted = job.subject.learner.fresh()
            fitted.fit(X, y, env, rng=rng, task=problem.task, **trial)
            errors, _ = _errors(problem, fitted, data.rows("validation", oracle=oracle))
            of_test, spread = _errors(problem, fitted, data.rows("test", oracle=oracle))
        validation.append(errors)
        test.append(of_test)
        coef, intercept = getattr(fitted, "coef_", None), getattr(fitted, "intercept_", math.nan)
        if coef is None:
            coef, intercept = np.full(problem.n_features, np.nan), math.nan
        exact.append(problem.risk(coef, intercept))
        share.append(problem.spurious_share(coef))
        diverged.append(not spread > 0)
    linear = np.isfinite(exact).any()
    return {
        "validation": _plain(np.array(validation)),
        "test": _plain(np.array(test)),
        "exact": _plain(np.array(exact)) if linear else None,
        "share": _plain(np.array(share)),
        "diverged": diverged,
        "steps": None,
    }


def _errors(problem: Problem, fitted: Learner, rows: Sequence[Environment]) -> tuple[Matrix, float]:
    """Error in each environment, NaN where predictions are not finite, and the spread of all predictions."""
    errors, least, most = [], math.inf, -math.inf
    for environment in rows:
        scores = np.asarray(fitted.predict(environment.X), dtype=np.float64).ravel()
        if not np.isfinite(scores).all():
            return np.full(len(rows), np.nan), math.nan
        least, most = min(least, float(scores.min())), max(most, float(scores.max()))
        if problem.task == "regression":
            with np.errstate(over="ignore"):
                errors.append(float(np.mean((scores - environment.y.astype(np.float64)) ** 2)))
        else:
            errors.append(float(np.mean((scores > 0) != (environment.y > 0))))
    return np.array(errors), most - least


def _plain(value: Any) -> Any:
    """Lists and numbers, None for what is not finite."""
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value] if value.ndim else _plain(value.item())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
