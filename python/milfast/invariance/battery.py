"""The whole battery: learners on the six problems, beside what was published, with verdicts."""

from __future__ import annotations

import html
import importlib.util
import json
import math
import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast.invariance import problems as problem_registry
from milfast.invariance.jobs import ARENA, BOUNDS, FUNCTION, Job, Subject, describe, run_job
from milfast.invariance.published import Published, published
from milfast.invariance.verdict import ALPHA, REQUIRED, TOLERANCE, Verdict, _finite, judge
from milfast.seeding import root_seed
from milfast.uncertainty.comparison import holm
from milfast.workers import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from milfast.invariance.problem import Problem
    from milfast.seeding import RandomState

Mode: TypeAlias = Literal["strict", "paper"]
Engine: TypeAlias = Literal["auto", "samples", "population"]
Selection: TypeAlias = Literal["per_replicate", "pooled"]

MODES: tuple[Mode, ...] = ("strict", "paper")
ENGINES: tuple[Engine, ...] = ("auto", "samples", "population")
SELECTIONS: tuple[Selection, ...] = ("per_replicate", "pooled")

#: What verdicts compare with.
ERM, ORACLE = "ERM", "Oracle"
#: Learners of the published table.
PAPER = ("ERM", "IRMv1", "IGA", "AND-mask", "Oracle")


@dataclass(frozen=True, eq=False, repr=False)
class Cell:
    """One learner on one problem.

    Attributes
    ----------
    learner, problem : str
        Names.
    d_inv, d_spu, n_env : int
    mode : {"strict", "paper"}
    engine : {"samples", "population"}
        What the learner was trained on: rows, or the distribution itself.
    selection : {"per_replicate", "pooled"}
        Whether the best trial is chosen in each replicate, or one for all by its mean validation error.
    risk : {"exact", "sampled"}
        Whether errors in the test are exact or those of rows.
    rng, test_shuffle : str
        As in `milfast.invariance.make_problem`.
    n : int or None
        Rows of an environment; None where nothing was sampled.
    n_trials, n_steps, seed : int
    risks : ndarray of float64, shape (R, n_env)
        Error in the test of the chosen trial, by replicate and environment.
    choices : ndarray of int, shape (R,)
        Which trial was chosen; 0 has the learner's own parameters.
    diverged : ndarray of bool, shape (R,)
        Whether that trial has no finite model, or one that predicts one value.
    parameters : tuple of dict
        Of the chosen trials, by replicate.
    share : ndarray of float64, shape (R,)
        Share of the spurious features in the output, mean over environments; NaN where it is not known.
    optimum : ndarray of float64, shape (R, n_env)
        Error of the best predictor that uses invariant features only.
    replicates : tuple of int
        Which ones are there.
    published : Published or None
    of_published_trial : tuple of float or None
        Mean and SD of the trial that was chosen for the published table, where another one was chosen here, and by how
        much its mean validation error is larger, as a share of the least.
    verdict : Verdict or None
        In strict mode, where ERM and the Oracle are there for two replicates at least.
    log_p_pass, log_p_fail, log_p_better : float
        Those of the verdict after Holm's correction for all cells of the battery; NaN without one.
    seconds : float
        Time of all trials.
    """

    learner: str
    problem: str
    d_inv: int
    d_spu: int
    n_env: int
    mode: str
    engine: str
    selection: str
    risk: str
    rng: str
    test_shuffle: str
    n: int | None
    n_trials: int
    n_steps: int
    seed: int
    risks: NDArray[np.float64]
    choices: NDArray[np.int64]
    diverged: NDArray[np.bool_]
    parameters: tuple[dict[str, Any], ...]
    share: NDArray[np.float64]
    optimum: NDArray[np.float64]
    replicates: tuple[int, ...]
    published: Published | None
    of_published_trial: tuple[float, float, float] | None = None
    verdict: Verdict | None = None
    log_p_pass: float = math.nan
    log_p_fail: float = math.nan
    log_p_better: float = math.nan
    seconds: float = 0.0

    @cached_property
    def mean(self) -> float:
        """Mean error over replicates and environments."""
        return _mean_sd(self.risks)[0]

    @cached_property
    def sd(self) -> float:
        """Standard deviation over replicates (ddof 0) in each environment, mean over environments, as published."""
        return _mean_sd(self.risks)[1]

    @property
    def environments(self) -> NDArray[np.float64]:
        """Mean error in each environment, shape (n_env,)."""
        found: NDArray[np.float64] = self.risks.mean(axis=0)
        return found

    @property
    def excess(self) -> float:
        """Median over replicates and environments of (error - optimum) / optimum; NaN where the optimum is 0.

        The mean error of Example1 with more than three environments is that of the one with the largest noise.
        """
        if not (self.optimum > 0).all():
            return math.nan
        return float(np.median((self.risks - self.optimum) / self.optimum))

    @property
    def spurious_share(self) -> float:
        """Mean share of the spurious features over replicates; NaN where it is known of none."""
        known = self.share[np.isfinite(self.share)]
        return float(known.mean()) if len(known) else math.nan

    @property
    def stands(self) -> bool:
        """Whether the verdict is certain among all verdicts of the battery, not only by itself (Holm)."""
        if self.verdict is None:
            return False
        if self.verdict.outcome == "pass":
            return self.log_p_pass <= math.log(self.verdict.alpha)
        return self.log_p_fail <= math.log(self.verdict.alpha)

    def __repr__(self) -> str:
        verdict = "" if self.verdict is None else f"; {self.verdict.outcome}"
        return f"Cell({self.learner} on {self.problem}: {self.mean:.4f} ± {self.sd:.4f}{verdict})"

    def _repr_html_(self) -> str:
        verdict = "" if self.verdict is None else f": <b>{self.verdict.outcome}</b>"
        return f"{html.escape(self.learner)} on {html.escape(self.problem)}: {self.mean:.4f} ± {self.sd:.4f}{verdict}"

    def to_dict(self) -> dict[str, Any]:
        """One flat row of plain values.

        Returns
        -------
        dict
            None for what is undefined. The errors of environments are one text.
        """
        row: dict[str, Any] = {
            "model": self.learner,
            "problem": self.problem,
            "n_env": self.n_env,
            "d_inv": self.d_inv,
            "d_spu": self.d_spu,
            "mean": _finite(self.mean),
            "sd": _finite(self.sd),
            "environments": " ".join(f"{value:.4f}" for value in self.environments),
            "trial": int(self.choices[0]) if self.selection == "pooled" else None,
            "excess": _finite(self.excess),
            "spurious_share": _finite(self.spurious_share),
            "published_mean": None if self.published is None else self.published.mean,
            "published_sd": None if self.published is None else self.published.sd,
            "difference": None if self.published is None else _finite(self.mean - self.published.mean),
            "published_trial": None if self.published is None else self.published.trial,
            "mean_of_published_trial": None if self.of_published_trial is None else self.of_published_trial[0],
            "sd_of_published_trial": None if self.of_published_trial is None else self.of_published_trial[1],
            "margin_of_published_trial": None
            if self.of_published_trial is None
            else _finite(self.of_published_trial[2]),
            "published_faulty": None if self.published is None else self._beside_the_fault,
            "replicates": len(self.replicates),
            "diverged": int(self.diverged.sum()),
            "mode": self.mode,
            "engine": self.engine,
            "selection": self.selection,
            "risk": self.risk,
            "rng": self.rng,
            "test_shuffle": self.test_shuffle,
            "n": self.n,
            "n_trials": self.n_trials,
            "n_steps": self.n_steps,
            "seed": self.seed,
            "seconds": self.seconds,
        }
        if self.verdict is not None:
            corrected = {
                f"{name}_adjusted": _finite(math.exp(getattr(self, f"log_{name}")))
                for name in ("p_pass", "p_fail", "p_better")
            }
            row |= self.verdict.to_dict() | corrected | {"stands": self.stands}
        return row

    def summary(self) -> str:
        """One sentence for people.

        Returns
        -------
        str
        """
        text = f"{self.learner} on {self.problem}: {self.mean:.4f} ± {self.sd:.4f}"
        if self.published is not None:
            places = self.published.decimals
            text += f" (published {self.published.mean:.{places}f} ± {self.published.sd:.{places}f})"
        return text if self.verdict is None else f"{text}; {self.verdict.summary()}"

    @property
    def _beside_the_fault(self) -> bool:
        """Whether the published figure is of another test than this one."""
        return self.published is not None and self.published.faulty and self.test_shuffle != "2021"


@dataclass(frozen=True, eq=False, repr=False)
class Battery:
    """Cells of a battery: `run_battery`.

    Attributes
    ----------
    cells : tuple of Cell
        Problem by problem.
    notes : tuple of str
        What has to be said of them.
    """

    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()

    def cell(self, learner: str, problem: str, *, n_env: int | None = None, d_spu: int | None = None) -> Cell:
        """The cell of a learner and a problem.

        Parameters
        ----------
        learner, problem : str
        n_env, d_spu : int, optional
            Needed where several were tried.

        Returns
        -------
        Cell

        Raises
        ------
        KeyError
            When there is none, or more than one.
        """
        found = [
            cell
            for cell in self.cells
            if (cell.learner, cell.problem) == (learner, problem)
            and n_env in (None, cell.n_env)
            and d_spu in (None, cell.d_spu)
        ]
        if len(found) != 1:
            raise KeyError(f"{len(found)} cells of {learner} on {problem}; name n_env and d_spu, or look at `cells`")
        return found[0]

    def passes(self, learner: str) -> bool:
        """Whether a learner passes every problem it was tried on.

        No correction is needed: it takes an error in each of them to say so wrongly of a learner that passes none.

        Parameters
        ----------
        learner : str

        Returns
        -------
        bool

        Raises
        ------
        ValueError
            When it has no verdict.
        """
        outcomes = [cell.verdict.outcome for cell in self.cells if cell.learner == learner and cell.verdict is not None]
        if not outcomes:
            raise ValueError(f"{learner} has no verdict here: run it in strict mode with two replicates at least")
        return all(outcome == "pass" for outcome in outcomes)

    def rows(self) -> list[dict[str, Any]]:
        """One flat row of plain values for each cell, with the same keys; `pandas.DataFrame` takes them.

        Returns
        -------
        list of dict
        """
        rows = [cell.to_dict() for cell in self.cells]
        keys = dict.fromkeys(key for row in rows for key in row)
        return [{key: row.get(key) for key in keys} for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON.

        Returns
        -------
        dict
            ``cells``, each with its risks by replicate and environment, and ``notes``.
        """
        cells = []
        for cell, row in zip(self.cells, self.rows(), strict=True):
            risks = [[_finite(value) for value in line] for line in cell.risks.tolist()]
            cells.append(row | {"risks": risks, "choices": cell.choices.tolist()})
        return {"cells": cells, "notes": list(self.notes)}

    def summary(self) -> str:
        """A sentence for each cell.

        Returns
        -------
        str
        """
        return "\n".join([*(cell.summary() for cell in self.cells), *self.notes])

    def __repr__(self) -> str:
        lines = "".join(f"\n  {cell!r}" for cell in self.cells)
        return f"Battery({len(self.cells)} cells{lines})"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("learner", "problem", "error", "published", "rho", "verdict"))
        body = []
        for cell in self.cells:
            known = "" if cell.published is None else f"{cell.published.mean:.{cell.published.decimals}f}"
            rho = outcome = ""
            if cell.verdict is not None:
                rho, outcome = f"{cell.verdict.ratio.estimate:.3f} {cell.verdict.ratio.bounds()}", cell.verdict.outcome
            texts = (cell.learner, cell.problem, f"{cell.mean:.4f} ± {cell.sd:.4f}", known, rho, outcome)
            body.append("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in texts) + "</tr>")
        return f"<table><tr>{head}</tr>{''.join(body)}</table>"


def run_battery(
    learners: Any,
    *,
    problems: str | Sequence[str] = "all",
    mode: Mode = "strict",
    engine: Engine = "auto",
    n_trials: int = 20,
    n_replicates: int = 50,
    n_steps: int = 10_000,
    n: int = 10_000,
    d_inv: int = 5,
    d_spu: int | Sequence[int] = 5,
    n_env: int | Sequence[int] = 3,
    rng: str | None = None,
    test_shuffle: str = "invariant",
    selection: Selection | None = None,
    random_state: RandomState = 0,
    study: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    callback: Callable[[int, int, str], object] | None = None,
) -> Battery:
    """Run learners through the linear unit tests for invariance.

    In a replicate a problem is drawn, the learner is fitted with each of `n_trials` sets of parameters, the set with
    the smallest validation error is chosen, and its error in the test is measured, where the tie between the spurious
    features and the target is cut. Validation rows are like training rows: nothing but the learner itself may keep it
    from the shortcut.

    Parameters
    ----------
    learners : str, object or sequence of them
        Names of learners, ``"all"`` or ``"paper"``, "package.module:Name", or learners of your own: whatever has
        ``fit(X, y, env, rng=None, **params)`` and ``predict(X)``, or a scikit-learn estimator.
    problems : str or sequence of str
        Names of problems; all six by default.
    mode : {"strict", "paper"}
        - ``"strict"``: every replicate has a problem, starts and trials of its own; selection in each replicate; exact
          errors where there are closed forms; verdicts. ERM and the Oracle are run as well, as verdicts compare with
          them.
        - ``"paper"``: as Aubin et al. (2021): data seeds 0, 1, ...; the same trials for all of them, seeded with
          1000 + k; one trial chosen for all replicates by its mean validation error; errors of test rows.
    engine : {"auto", "samples", "population"}
        What learners are trained on: `n` rows of each environment, or the distribution itself, as if there were rows
        without end. ``"auto"``: in strict mode the distribution for learners that the engine trains and rows for
        others, in paper mode rows.
    n_trials : int
        Sets of parameters that are tried; the first is the learner's own.
    n_replicates : int
        With fewer than 28 a learner must solve nearly all to pass, and with fewer than 14 it cannot.
    n_steps : int
        Steps of the optimiser.
    n : int
        Rows of an environment in each split.
    d_inv : int
        Invariant features.
    d_spu, n_env : int or sequence of int
        Spurious features, and environments; all combinations are run.
    rng : {"native", "torch"}, optional
        What draws. In paper mode torch where it is installed, which gives the published rows bit for bit; otherwise
        native.
    test_shuffle : {"invariant", "2021"}
        "2021" repeats a fault of the published code, which permuted the wrong columns of Example2 in the test where
        `d_spu` is not `d_inv`.
    selection : {"per_replicate", "pooled"}, optional
        As the mode has it, unless told otherwise.
    random_state : int, Generator, SeedSequence or None
        In paper mode the first data seed, 0 as published.
    study : path, optional
        File of a study: what is there is not done again, and an interrupted call goes on.
    n_jobs : int
        Processes that share the jobs; -1 for one per processor. The result has the same bits for any number.
    callback : callable, optional
        Called as ``callback(done, total, title)`` after each job.

    Returns
    -------
    Battery

    Raises
    ------
    ValueError
        When an argument is out of range, a name is unknown, a learner can learn none of the problems, one of your own
        has the name of ERM or the Oracle in strict mode, or something without a distribution was to be trained on it.
    TypeError
        When a learner lacks a method.

    References
    ----------
    .. [1] Aubin, Slowik, Arjovsky, Bottou & Lopez-Paz (2021), Linear unit-tests for invariance discovery.

    Examples
    --------
    >>> from milfast.invariance import run_battery
    >>> battery = run_battery("IRMv1", problems="Example1", n_trials=3, n_replicates=10, n_steps=2000)
    >>> [(cell.learner, cell.verdict.outcome) for cell in battery.cells]
    [('ERM', 'fail'), ('IRMv1', 'fail'), ('Oracle', 'inconclusive')]
    """
    todo, notes = plan(
        learners,
        problems=problems,
        mode=mode,
        engine=engine,
        n_trials=n_trials,
        n_replicates=n_replicates,
        n_steps=n_steps,
        n=n,
        d_inv=d_inv,
        d_spu=d_spu,
        n_env=n_env,
        rng=rng,
        test_shuffle=test_shuffle,
        selection=selection,
        random_state=random_state,
    )
    if study is not None:
        pairs = _in_study(study, todo, n_jobs, callback)
    else:
        outcomes: dict[int, dict[str, Any]] = {}
        for index, outcome in stream(numbered, enumerate(todo), n_jobs=n_jobs):
            outcomes[index] = outcome
            if callback is not None:
                callback(len(outcomes), len(todo), todo[index].title)
        pairs = [(describe(job), outcomes[index]) for index, job in enumerate(todo)]
    return combine(pairs, selection=selection, notes=notes)


def numbered(item: tuple[int, Job]) -> tuple[int, dict[str, Any]]:
    """Do a job that has a number.

    Parameters
    ----------
    item : tuple of int and Job

    Returns
    -------
    tuple of int and dict
        The number, and what `milfast.invariance.jobs.run_job` gave.
    """
    return item[0], run_job(item[1])


def _in_study(
    path: str | os.PathLike[str],
    todo: Sequence[Job],
    n_jobs: int,
    callback: Callable[[int, int, str], object] | None,
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    from milfast.study import Study

    with Study(path) as study:
        ids = study.add(FUNCTION, [describe(job) for job in todo])
        study.run(
            ids,
            n_jobs=n_jobs,
            callback=None
            if callback is None
            else lambda done, total, record: callback(done, total, f"{record.spec['name']} on {record.spec['data']}"),
        )
        found = {record.id: record for record in study.records(ids)}
    failed = [record for record in found.values() if record.state == "failed"]
    if failed:
        spec = failed[0].spec
        raise RuntimeError(
            f"{len(failed)} of {len(ids)} jobs failed, the first {spec['name']} on {spec['data']}, replicate "
            f"{spec['replicate']}: {failed[0].failure}; what was done is kept in {os.fspath(path)}"
        )
    return [(found[i].spec, found[i].result or {}) for i in ids]


def plan(
    learners: Any,
    *,
    problems: str | Sequence[str],
    mode: str,
    engine: str,
    n_trials: int,
    n_replicates: int,
    n_steps: int,
    n: int,
    d_inv: int,
    d_spu: int | Sequence[int],
    n_env: int | Sequence[int],
    rng: str | None,
    test_shuffle: str,
    selection: str | None,
    random_state: RandomState,
) -> tuple[list[Job], tuple[str, ...]]:
    """All jobs of a battery, after every argument was looked at; parameters as in `run_battery`.

    Returns
    -------
    jobs : list of Job
        Problem by problem, replicate by replicate, so that learners share the data of one.
    notes : tuple of str
        What has to be said of the results.
    """
    for argument, chosen, known in (("mode", mode, MODES), ("engine", engine, ENGINES)):
        if chosen not in known:
            raise ValueError(f"{argument} must be one of {', '.join(known)}; got {chosen!r}")
    if selection is not None and selection not in SELECTIONS:
        raise ValueError(f"selection must be one of {', '.join(SELECTIONS)}; got {selection!r}")
    for argument, value, least in (
        ("n_trials", n_trials, 1),
        ("n_replicates", n_replicates, 2 if mode == "strict" else 1),
        ("n_steps", n_steps, 1),
        ("n", n, 2),
    ):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{argument} must be an integer of at least {least}; got {value!r}")
    from milfast.invariance import learners as registry

    notes: list[str] = []
    if rng is None:
        rng = "native"
        if mode == "paper":
            if importlib.util.find_spec("torch") is not None:
                rng = "torch"
            else:
                notes.append(
                    "torch is not installed: the data are as the published ones in distribution, not bit for bit"
                )
    seed = root_seed(random_state)
    chosen_problems = _names(problems, problem_registry.names(), "problems", {"all": problem_registry.names()})
    subjects = [Subject.of(learner) for learner in named_learners(learners)]
    if mode == "strict":  # what verdicts compare with
        missing = [Subject.of(name) for name in (ERM, ORACLE) if name not in [s.name for s in subjects]]
        subjects = [*(s for s in missing if s.name == ERM), *subjects, *(s for s in missing if s.name == ORACLE)]
        for subject in subjects:
            if subject.name in (ERM, ORACLE) and type(subject.learner) is not registry.get(subject.name):
                raise ValueError(
                    f"a learner of your own is named {subject.name}, as the one that verdicts compare with: give it "
                    "another name, by an attribute `name` or as_learner(learner, name=...)"
                )
    twice = [s.name for s in subjects if [t.name for t in subjects].count(s.name) > 1]
    if twice:
        raise ValueError(f"learners must have names of their own; {twice[0]} comes {twice.count(twice[0])} times")
    todo = []
    learning: set[str] = set()
    for problem in chosen_problems:
        for environments in _several(n_env, "n_env"):
            for spurious in _several(d_spu, "d_spu"):
                # looks at the numbers
                made = problem_registry.make_problem(
                    problem,
                    d_inv=d_inv,
                    d_spu=spurious,
                    n_env=environments,
                    random_state=0,
                    rng=rng,
                    test_shuffle=test_shuffle,
                )
                able, said = _able(subjects, made)
                learning |= {subject.name for subject in able}
                notes += said
                here = engine
                lacking = not made.has_population and any(subject.learner.oracle for subject in able)
                if lacking and mode == "strict" and engine == "auto":
                    here = "samples"
                    notes.append(
                        f"{problem} with d_spu={spurious}: the Oracle of test_shuffle='2021' has no distribution to be "
                        "trained on; all learners are trained on rows"
                    )
                elif lacking and engine == "population":
                    raise ValueError(
                        f"{problem} with d_spu={spurious} and test_shuffle='2021' has no distribution that the Oracle "
                        "could be trained on: take engine='samples', or test_shuffle='invariant'"
                    )
                for replicate in range(n_replicates):
                    for subject in able:
                        on = _trained_on(subject, here, mode)
                        todo.append(
                            Job(
                                subject=subject,
                                problem=problem,
                                d_inv=int(d_inv),
                                d_spu=int(spurious),
                                n_env=int(environments),
                                mode=mode,
                                engine=on,
                                n=None if on == "population" else int(n),
                                n_trials=int(n_trials),
                                n_steps=int(n_steps),
                                rng=rng,
                                test_shuffle=test_shuffle,
                                seed=seed,
                                replicate=replicate,
                            )
                        )
    idle = [subject.name for subject in subjects if subject.name not in learning]
    if idle:
        raise ValueError(
            f"{', '.join(idle)} cannot learn any of the problems {', '.join(chosen_problems)}: {'; '.join(notes)}"
        )
    return todo, tuple(dict.fromkeys(notes))


def _able(subjects: Sequence[Subject], problem: Problem) -> tuple[list[Subject], list[str]]:
    """Learners that can learn a problem, and what to say of the others."""
    able, notes = list(subjects), []
    others = [s for s in able if problem.task not in s.learner.tasks]
    if others:
        names = ", ".join(s.name for s in others)
        notes.append(f"{problem.name} is a {problem.task}, which {names} cannot learn: left out")
        able = [s for s in able if s not in others]
    others = [s for s in able if s.learner.most_features is not None and problem.n_features > s.learner.most_features]
    if others:
        names = ", ".join(s.name for s in others)
        notes.append(f"{problem.n_features} features are more than {names} can look at: left out")
        able = [s for s in able if s not in others]
    return able, notes


def named_learners(given: Any) -> list[Any]:
    """Learners by name, by group or as objects, each once.

    Parameters
    ----------
    given : str, object or sequence of them

    Returns
    -------
    list

    Raises
    ------
    ValueError
        When there is none.
    """
    from milfast.invariance import learners as registry

    if isinstance(given, (list, tuple)) and not given:
        raise ValueError("learners must name one at least; got none")
    groups: dict[str, Sequence[str]] = {"all": registry.names(), "paper": PAPER}
    chosen: list[Any] = []
    for learner in given if isinstance(given, (list, tuple)) else [given]:
        chosen += groups[learner] if isinstance(learner, str) and learner in groups else [learner]
    names = dict.fromkeys(learner for learner in chosen if isinstance(learner, str))
    return [*names, *(learner for learner in chosen if not isinstance(learner, str))]


def _names(given: Any, known: Sequence[str], argument: str, groups: Mapping[str, Sequence[str]]) -> list[str]:
    if not isinstance(given, (str, list, tuple)):
        raise TypeError(f"{argument} must be a name or a list of names; got {given!r}")
    chosen: list[str] = []
    for name in [given] if isinstance(given, str) else given:
        chosen += groups.get(name, [name])
    if not chosen:
        raise ValueError(f"{argument} must name one at least of {', '.join(known)}")
    return list(dict.fromkeys(chosen))


def _several(given: int | Sequence[int], argument: str) -> list[Any]:
    values = list(given) if isinstance(given, (list, tuple, range, np.ndarray)) else [given]
    if not values:
        raise ValueError(f"{argument} must be an integer, or several; got none")
    return [value for i, value in enumerate(values) if value not in values[:i]]


def _trained_on(subject: Any, engine: str, mode: str) -> str:
    if subject.engine is None and engine == "population":
        raise ValueError(
            f"{subject.name} is fitted to rows, and engine='population' has none: take engine='auto' or 'samples'"
        )
    if engine != "auto":
        return engine
    return "population" if mode == "strict" and subject.engine is not None else "samples"


# -------------------------------------------------------------------- results


def combine(
    pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]],
    *,
    selection: Selection | None = None,
    tolerance: float = TOLERANCE,
    required: float = REQUIRED,
    alpha: float = ALPHA,
    notes: Sequence[str] = (),
) -> Battery:
    """Results from specifications and what they gave, of the replicates that are done.

    Parameters
    ----------
    pairs : iterable of (dict, dict)
    selection : {"per_replicate", "pooled"}, optional
        As the mode has it, unless told otherwise.
    tolerance, required, alpha : float
        As in `milfast.invariance.judge`.
    notes : sequence of str

    Returns
    -------
    Battery
        Cells in the order in which their first replicates come.
    """
    groups: dict[str, tuple[Mapping[str, Any], dict[int, Mapping[str, Any]]]] = {}
    for given, gave in pairs:
        key = json.dumps({name: value for name, value in given.items() if name not in BOUNDS}, sort_keys=True)
        # two objects may have one description but for the name
        groups.setdefault(key, (given, {}))[1][given["replicate"]] = gave
    cells = [_cell(given, gave, selection) for given, gave in groups.values()]
    arenas: dict[tuple[Any, ...], list[int]] = {}
    for index, (given, _) in enumerate(groups.values()):
        arenas.setdefault(tuple(given[name] for name in ARENA), []).append(index)
    judged = list(cells)
    for members in arenas.values():
        for index in members:
            judged[index] = _judged(cells[index], [cells[i] for i in members], tolerance, required, alpha)
    return Battery(tuple(_corrected(judged)), tuple(notes))


def _cell(given: Mapping[str, Any], gave: Mapping[int, Mapping[str, Any]], selection: str | None) -> Cell:
    replicates = tuple(sorted(gave))
    chosen = selection or ("pooled" if given["mode"] == "paper" else "per_replicate")
    results = [gave[replicate] for replicate in replicates]
    errors = np.stack([_array(result["validation"]).mean(axis=1) for result in results])  # (R, trials)
    errors[np.isnan(errors)] = np.inf  # never chosen
    pooled = np.full(len(results), int(errors.mean(axis=0).argmin()))
    choices = pooled if chosen == "pooled" else errors.argmin(axis=1)
    picks = np.arange(len(results)), choices
    exact, of_rows = (np.stack([_of_trials(result, kind) for result in results]) for kind in ("exact", "test"))
    known_of_rows = np.isfinite(of_rows[picks])
    # exact ones only where all chosen trials have them, but for those that diverged and so have neither
    sampled = bool(known_of_rows.any()) and (
        given["mode"] == "paper" or bool((known_of_rows & ~np.isfinite(exact[picks])).any())
    )
    measured = of_rows if sampled else exact
    known = published(given["name"], given["data"], n_env=given["n_env"], d_inv=given["d_inv"], d_spu=given["d_spu"])
    theirs = None
    trial = known.trial if known is not None and given["mode"] == "paper" and chosen == "pooled" else None
    if trial is not None and trial != int(choices[0]) and trial < measured.shape[1]:
        validation = errors.mean(axis=0)
        least = float(validation.min())
        margin = (float(validation[trial]) - least) / least if least else math.nan
        theirs = *_mean_sd(measured[:, trial]), margin
    picked = list(zip(results, choices.tolist(), strict=True))
    with np.errstate(invalid="ignore"):
        share = np.array([_array(result["share"])[k].mean() for result, k in picked])
    return Cell(
        learner=given["name"],
        problem=given["data"],
        d_inv=given["d_inv"],
        d_spu=given["d_spu"],
        n_env=given["n_env"],
        mode=given["mode"],
        engine=given["engine"],
        selection=chosen,
        risk="sampled" if sampled else "exact",
        rng=given["rng"],
        test_shuffle=given["test_shuffle"],
        n=given["n"],
        n_trials=given["n_trials"],
        n_steps=given["n_steps"],
        seed=given["seed"],
        risks=measured[picks],
        choices=choices,
        diverged=np.array([result["diverged"][k] for result, k in picked]),
        parameters=tuple(result["trials"][k] for result, k in picked),
        share=share,
        optimum=np.stack([_array(result["optimum"]) for result in results]),
        replicates=replicates,
        published=known,
        of_published_trial=theirs,
        seconds=sum(result["seconds"] for result in results),
    )


def _mean_sd(risks: NDArray[np.float64]) -> tuple[float, float]:
    """Mean, and the SD over replicates (ddof 0) in each environment, mean over environments: as published."""
    return float(risks.mean()), float(risks.std(axis=0).mean())


def _array(values: Any) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def _of_trials(result: Mapping[str, Any], kind: str) -> NDArray[np.float64]:
    """Errors of each trial in each environment, NaN where there are none."""
    if result[kind] is None:
        return np.full((len(result["trials"]), len(result["optimum"])), np.nan)
    return _array(result[kind])


def _judged(cell: Cell, arena: Sequence[Cell], tolerance: float, required: float, alpha: float) -> Cell:
    """A cell with its verdict, where it can have one."""
    if cell.mode != "strict":
        return cell
    erm, oracle = (_companion(cell, arena, name) for name in (ERM, ORACLE))
    if erm is None or oracle is None:
        return cell
    shared = [r for r in cell.replicates if r in erm.replicates and r in oracle.replicates]
    if len(shared) < 2:
        return cell

    def of(one: Cell, values: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = values[[one.replicates.index(r) for r in shared]]
        return found

    verdict = judge(
        of(cell, cell.risks.mean(axis=1)),
        of(erm, erm.risks.mean(axis=1)),
        of(oracle, oracle.risks.mean(axis=1)),
        of(cell, cell.optimum.mean(axis=1)),
        diverged=of(cell, cell.diverged),
        tolerance=tolerance,
        required=required,
        alpha=alpha,
    )
    return replace(cell, verdict=verdict)


def _companion(cell: Cell, arena: Sequence[Cell], name: str) -> Cell | None:
    """ERM or the Oracle beside a cell: trained on the same, or on the distribution; never on rows of another number."""
    there = {(other.engine, other.n): other for other in arena if other.learner == name}
    return there.get((cell.engine, cell.n), there.get(("population", None)))


def _corrected(cells: Sequence[Cell]) -> list[Cell]:
    """Cells with Holm's correction for the verdicts of one battery; those of ERM and the Oracle are no claims."""
    claims = [
        index
        for index, cell in enumerate(cells)
        if cell.verdict is not None and cell.verdict.outcome != "void" and cell.learner not in (ERM, ORACLE)
    ]
    found = list(cells)
    for name in ("log_p_pass", "log_p_fail", "log_p_better"):
        adjusted = holm([getattr(cells[index].verdict, name) for index in claims])
        for index, log_p in zip(claims, adjusted, strict=True):
            changed: dict[str, Any] = {name: log_p}
            found[index] = replace(found[index], **changed)
    return found
