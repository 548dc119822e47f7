"""Runs models through checks."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from milfast import _core
from milfast.bags import Bags
from milfast.checks import catalogue
from milfast.checks.adapters import Subject, at, bag_scores, fit
from milfast.checks.recipe import BagRecipe
from milfast.checks.verdict import CheckResult
from milfast.seeding import root_seed, seed_sequence, seed_value
from milfast.uncertainty import Interval, auc_interval
from milfast.workers import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.seeding import RandomState

#: Training bags of a run, by scale and family of the model (None: any other model).
SCALES: dict[str, dict[str | None, int]] = {
    "fast": {"svm": 200, "deep": 2_000, None: 1_000},
    "paper": {"svm": 1_000, "deep": 100_000, None: 10_000},
}


@dataclass(frozen=True)
class Job:
    """One fit: one model, one check, one run.

    Attributes
    ----------
    subject : Subject
    check, spelling : str
        Names of the check and of its recipe.
    recipe : BagRecipe
    n_train, n_test : int
        Number of bags.
    seed : int
        Root seed of the whole call.
    run : int
        Number of the run, from 0.
    pad_to : int or None
    level : float
        Level of the intervals.
    """

    subject: Subject
    check: str
    spelling: str
    recipe: BagRecipe
    n_train: int
    n_test: int
    seed: int
    run: int
    pad_to: int | None
    level: float


@dataclass(frozen=True)
class Run:
    """What one fit gave.

    Attributes
    ----------
    model, check, recipe : str
        Names.
    train, fresh, test : Interval
        AUC on the training bags, on fresh bags of their distribution, and on bags of the shifted distribution; the
        intervals hold for this fit alone.
    oracle_auc, size_auc : float
        AUC of the true rule and of the bag size on the shifted bags.
    n_train, n_test : int
        Number of bags.
    seed, run : int
        Root seed, and number of the run.
    seconds : float
        Time for fitting and scoring.
    """

    model: str
    check: str
    recipe: str
    train: Interval
    fresh: Interval
    test: Interval
    oracle_auc: float
    size_auc: float
    n_train: int
    n_test: int
    seed: int
    run: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Every attribute as plain values.

        Returns
        -------
        dict
        """
        return {f.name: v.to_dict() if isinstance(v := getattr(self, f.name), Interval) else v for f in fields(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Run:
        """The run that `to_dict` described.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Run
        """
        read: dict[str, Any] = {n: Interval.from_dict(v) if isinstance(v, dict) else v for n, v in values.items()}
        return cls(**read)


def check_model(
    model: Any,
    *,
    checks: str | BagRecipe | Sequence[str | BagRecipe] = "all",
    recipe: str | Sequence[str] = "paper",
    scale: Literal["fast", "paper"] = "fast",
    n_train: int | None = None,
    n_test: int = 10_000,
    n_runs: int = 1,
    level: float = 0.95,
    n_features: int = 16,
    pad_to: int | None = None,
    direction: ArrayLike | int | None = None,
    random_state: RandomState = None,
    n_jobs: int = 1,
    callback: Callable[[int, int, Run], object] | None = None,
) -> list[CheckResult]:
    """Check whether a model respects the MIL assumption.

    Each run draws bags, fits the model, and scores fresh bags of the training distribution and bags of the shifted one,
    which come without labels.

    Parameters
    ----------
    model : str, class or object
        A registered name ("mi-Net"; see `milfast.models.names`), "package.module:Name", a class, or an unfitted model
        with ``fit(bags)`` or ``fit(bags, labels)`` and one of ``decision_function(bags)``, ``predict_proba(bags)`` or
        ``predict(bags)``. Iterating over `Bags` gives one matrix a bag; they have ``instances``, ``offsets`` and, for
        fitting, ``labels``. A ``random_state`` of the model is set anew for each run.
    checks : str, BagRecipe or sequence of them
        Names of checks, recipes of your own, or "all".
    recipe : str or sequence of str
        Spelling of the named checks: "paper", "notebook", "strict", or "all" of them; see `Check.recipe`.
    scale : {"fast", "paper"}
        How many training bags: 200 (SVM), 2,000 (deep), 1,000 (other models), or as many as in the paper.
    n_train : int, optional
        Number of training bags, whatever the scale.
    n_test : int
        Number of fresh bags, and of shifted bags.
    n_runs : int
        Independent runs. With one run an interval holds for that fit alone; a claim about a model needs several.
    level : float
        Level of the intervals. Each bound of a verdict is one-sided and errs about (1 - level) / 2 of the time where
        the AUCs of runs are about normal; rare outliers among the runs, or scores with few distinct values, can make it
        more.
    n_features : int
        Number of features of the checks' bags.
    pad_to : int, optional
        Fill every bag with background up to this size.
    direction : int or array_like, optional
        Direction in which the components lie, or the seed of a random one; (1, ..., 1) by default.
    random_state : int, Generator, SeedSequence or None
        Seeds data and models. All models see the same bags for the same integer and the same numbers of bags.
    n_jobs : int
        Processes that share the runs; -1 for one per processor.
    callback : callable, optional
        Called as ``callback(done, total, run)`` after each run.

    Returns
    -------
    list of CheckResult
        One per check and recipe.

    Raises
    ------
    ValueError
        When a name or number is out of range, or the model returns something else than a score per bag.
    TypeError
        When the model lacks a method.
    ImportError
        When the model needs torch and torch is missing.

    References
    ----------
    .. [1] Raff & Holt (2023), Reproducibility in Multiple Instance Learning: A Case For Algorithmic Unit Tests.

    Examples
    --------
    >>> import milfast as mf
    >>> class LargestMean:
    ...     def fit(self, bags):
    ...         return self
    ...     def decision_function(self, bags):
    ...         return [bag.mean(axis=1).max() for bag in bags]
    >>> [result] = mf.check_model(LargestMean(), checks="presence", n_test=1000, random_state=0)
    >>> result.verdict
    'pass'
    """
    jobs = plan(
        [model],
        checks=checks,
        recipe=recipe,
        scale=scale,
        n_train=n_train,
        n_test=n_test,
        n_runs=n_runs,
        level=level,
        n_features=n_features,
        pad_to=pad_to,
        direction=direction,
        random_state=random_state,
    )
    return results(jobs, n_jobs=n_jobs, callback=callback)


def plan(
    models: Sequence[Any],
    *,
    checks: str | BagRecipe | Sequence[str | BagRecipe],
    recipe: str | Sequence[str],
    scale: str,
    n_train: int | None,
    n_test: int,
    n_runs: int,
    level: float,
    n_features: int,
    pad_to: int | None,
    direction: ArrayLike | int | None,
    random_state: RandomState,
) -> list[Job]:
    """All fits of a call, after every argument was looked at; parameters as in `check_model`.

    Returns
    -------
    list of Job
        Model by model, check by check, recipe by recipe, run by run.
    """
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}; got {scale!r}")
    if isinstance(level, bool) or not isinstance(level, (int, float, np.integer, np.floating)):
        raise TypeError(f"level must be a number; got {level!r}")
    for name, value, least in (("n_train", n_train, 4), ("n_test", n_test, 20), ("n_runs", n_runs, 1)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least):
            raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1; got {level}")
    cells = list(_cells(checks, recipe, n_features))
    if not cells:
        raise ValueError("checks and recipe must name at least one check and one recipe")
    seen = set()
    for check, spelling, _ in cells:
        if (check, spelling) in seen:
            raise ValueError(f"check {check!r} ({spelling}) is asked for twice: give each recipe a name of its own")
        seen.add((check, spelling))
    if direction is not None:
        cells = [(check, spelling, made.along(direction)) for check, spelling, made in cells]
    subjects = [Subject.of(model) for model in models]
    seed = root_seed(random_state)
    return [
        Job(
            subject=subject,
            check=check,
            spelling=spelling,
            recipe=made,
            n_train=n_train or SCALES[scale].get(subject.family, SCALES[scale][None]),
            n_test=n_test,
            seed=seed,
            run=run,
            pad_to=pad_to,
            level=level,
        )
        for subject in subjects
        for check, spelling, made in cells
        for run in range(n_runs)
    ]


def _cells(
    checks: str | BagRecipe | Sequence[str | BagRecipe], recipe: str | Sequence[str], n_features: int
) -> Iterator[tuple[str, str, BagRecipe]]:
    if isinstance(checks, (str, BagRecipe)):
        checks = catalogue.names() if checks == "all" else [checks]
    for check in checks:
        if isinstance(check, BagRecipe):
            yield check.name, "own", check
        elif not isinstance(check, str):
            raise TypeError(f"checks must be names or BagRecipe objects; got {type(check).__name__}")
        else:
            spellings = [recipe] if isinstance(recipe, str) else recipe
            for spelling in catalogue.get(check).spellings if "all" in spellings else spellings:
                yield check, spelling, catalogue.get(check).recipe(spelling, n_features=n_features)


def run_job(job: Job) -> Run:
    """Draw, fit and score.

    Parameters
    ----------
    job : Job

    Returns
    -------
    Run

    Raises
    ------
    Exception
        Whatever the model raises, with a note that says where.
    """

    def seed(part: int) -> int:
        # not a function of the model, so that all models see the same bags
        return seed_value(seed_sequence(job.seed, zlib.crc32(f"{job.check}/{job.spelling}".encode()), job.run, part))

    def sample(part: int, n_bags: int, training: bool) -> tuple[Bags, NDArray[np.int64]]:
        bags = job.recipe.sample(n_bags, training=training, pad_to=job.pad_to, random_state=seed(part))
        assert bags.labels is not None
        return bags, bags.labels

    train, train_labels = sample(0, job.n_train, True)
    fresh, fresh_labels = sample(1, job.n_test, True)
    test, test_labels = sample(2, job.n_test, False)
    start = time.perf_counter()
    with at(f"while checking {job.subject.name} on {job.check} ({job.spelling}), run {job.run + 1}"):
        model = job.subject.fresh(seed(3))
        # a model sees labels where it learns, and kinds nowhere
        fit(model, Bags._trusted(train.instances, train.offsets, train_labels.copy(), None))
        train_auc, fresh_auc, test_auc = (
            auc_interval(bag_scores(model, bags, job.subject.name), labels, level=job.level)
            for bags, labels in ((train, train_labels), (fresh, fresh_labels), (test, test_labels))
        )
    return Run(
        model=job.subject.name,
        check=job.check,
        recipe=job.spelling,
        train=train_auc,
        fresh=fresh_auc,
        test=test_auc,
        oracle_auc=_core.auc(job.recipe.oracle(test), test_labels),
        size_auc=_core.auc(test.sizes, test_labels),
        n_train=job.n_train,
        n_test=job.n_test,
        seed=job.seed,
        run=job.run,
        seconds=time.perf_counter() - start,
    )


def results(
    jobs: Sequence[Job], *, n_jobs: int = 1, callback: Callable[[int, int, Run], object] | None = None
) -> list[CheckResult]:
    """Run all jobs and combine the runs of each model under each check.

    Parameters
    ----------
    jobs : sequence of Job
    n_jobs : int
        Processes; -1 for one per processor.
    callback : callable, optional
        ``callback(done, total, run)``.

    Returns
    -------
    list of CheckResult
        In the order of the jobs.

    Raises
    ------
    ValueError
        When `n_jobs` is 0.
    """
    runs: dict[int, Run] = {}
    for index, run in stream(_numbered, enumerate(jobs), n_jobs=n_jobs):
        runs[index] = run
        if callback is not None:
            callback(len(runs), len(jobs), run)
    grouped: dict[tuple[int, str, str], list[Run]] = {}
    for index, job in enumerate(jobs):
        grouped.setdefault((id(job.subject), job.check, job.spelling), []).append(runs[index])
    return [CheckResult.of(group, level=jobs[0].level) for group in grouped.values()]


def _numbered(item: tuple[int, Job]) -> tuple[int, Run]:
    return item[0], run_job(item[1])
