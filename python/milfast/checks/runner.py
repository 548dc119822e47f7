"""Runs models through checks."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from milfast import _core
from milfast.bags import Bags
from milfast.checks import catalogue
from milfast.checks.adapters import Subject, at, bag_scores, fit, share_right
from milfast.checks.estimate import Estimate
from milfast.checks.fitted import Fitted, best_cut, comparable
from milfast.checks.recipe import BagRecipe
from milfast.checks.sequential import schedule
from milfast.checks.sequential import until_decided as decide
from milfast.checks.together import read_together
from milfast.checks.verdict import CheckResult, Run
from milfast.seeding import root_seed, seed_sequence, seed_value
from milfast.workers import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.checks.task import Task
    from milfast.seeding import RandomState

#: Training bags of a run, by scale and family of the model (None: any other model).
SCALES: dict[str, dict[str | None, int]] = {
    "fast": {"svm": 200, "deep": 2_000, None: 1_000},
    "paper": {"svm": 1_000, "deep": 100_000, None: 10_000},
}
#: Fresh bags on which laws are tried.
LAW_BAGS = 2_000
#: A sort of shifted bags needs as many to be told apart from the others.
FEWEST_OF_A_SORT = 10


@dataclass(frozen=True)
class Job:
    """One fit, and the checks that it serves.

    Attributes
    ----------
    subject : Subject
    task, spelling : str
        Name and spelling of the check whose bags the model is fitted to.
    recipe : Task
        Those bags.
    checks : tuple of str
        What is looked at: the task itself, laws, or both.
    n_train, n_test : int
        Number of bags.
    seed : int
        Root seed of the whole call.
    run : int
        Number of the run, from 0.
    pad_to : int or None
    looks : int
        How often a sequential study looks at the verdict.
    """

    subject: Subject
    task: str
    spelling: str
    recipe: Task
    checks: tuple[str, ...]
    n_train: int
    n_test: int
    seed: int
    run: int
    pad_to: int | None
    looks: int = 1


def check_model(
    model: Any,
    *,
    checks: str | BagRecipe | Sequence[str | BagRecipe] = "all",
    recipe: str | Sequence[str] = "paper",
    scale: Literal["fast", "paper"] = "fast",
    n_train: int | None = None,
    n_test: int = 10_000,
    n_runs: int = 1,
    until_decided: bool = False,
    max_runs: int = 40,
    level: float = 0.95,
    n_features: int = 16,
    pad_to: int | None = None,
    direction: ArrayLike | int | None = None,
    style: str | None = None,
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
        fitting, ``labels``. A ``random_state`` of the model is set anew for each run. A model with ``fit(X, y)`` may
        take lists of arrays instead; and a torch module, its class, or a function of the number of features that makes
        one is trained by `milfast.models.deep.wrap.ModuleMIL`.
    checks : str, BagRecipe or sequence of them
        Names of checks or of groups of them ("paper": the three of Raff & Holt; "laws": those tried on a model that was
        fitted for another check), recipes of your own, or "all".
    recipe : str or sequence of str
        Spelling of the named checks: "paper", "notebook", "strict", or "all" of them; see `Check.recipe`. Checks that
        are not in the paper have one spelling, whatever is asked for.
    scale : {"fast", "paper"}
        How many training bags: 200 (SVM), 2,000 (deep), 1,000 (other models), or as many as in the paper.
    n_train : int, optional
        Number of training bags, whatever the scale.
    n_test : int
        Number of fresh bags, and of shifted bags.
    n_runs : int
        Independent runs. With one run an interval holds for that fit alone; a claim about a model needs at least five.
    until_decided : bool
        Whether to add runs, whatever `n_runs` says, until every verdict is a pass or a fail or hardly kept open.
        The verdicts are looked at after 5, 8, 12, 18, 27, ... runs, and each look gets an equal share of the error, so
        that looking often does not make wrong verdicts more likely than `level` says.
    max_runs : int
        Where to stop adding runs.
    level : float
        Level of the intervals. Each bound of a verdict is one-sided and errs at most about (1 - level) / 2 of the time
        where the AUCs of runs are about normal; rare outliers among the runs can make it more. docs/verdicts.md has the
        figures.
    n_features : int
        Number of features of the checks' bags.
    pad_to : int, optional
        Fill every bag with background up to this size.
    direction : int or array_like, optional
        Direction in which the components lie, or the seed of a random one; (1, ..., 1) by default.
    style : {"bags", "lists", "flat", "padded", "single"}, optional
        How the model takes bags, where that is not found out: an estimator as `Bags` or as a list of arrays, a torch
        module as (instances, offsets), as (x_padded, mask), or one bag of shape (n, n_features) at a time. Models are
        tried on a few small bags before any run.
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
        When the model lacks a method, or a torch module gives no logit for each bag.
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
        style=style,
        random_state=random_state,
        max_runs=max_runs if until_decided else None,
    )
    return results(jobs, level=level, n_jobs=n_jobs, callback=callback)


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
    max_runs: int | None = None,
    style: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[Job]:
    """All fits of a call, after every argument was looked at; parameters as in `check_model`.

    Those of all models are set by `settings`. With `max_runs` the study is a sequential one: there are jobs for as many
    runs, to be done as far as needed.

    Returns
    -------
    list of Job
        Model by model, task by task, run by run.
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
    if max_runs is not None:
        if isinstance(max_runs, bool) or not isinstance(max_runs, (int, np.integer)) or max_runs < 2:
            raise ValueError(f"max_runs must be an integer of at least 2; got {max_runs!r}")
        n_runs, looks = int(max_runs), len(schedule(int(max_runs)))
    else:
        looks = 1
    fits: dict[tuple[str, str], tuple[Task, list[str]]] = {}
    for check, task, spelling, made in _cells(checks, recipe, n_features):
        served = fits.setdefault((task, spelling), (made, []))[1]
        if check in served:
            raise ValueError(f"check {check!r} ({spelling}) is asked for twice: give each recipe a name of its own")
        served.append(check)
    if not fits or not recipe:
        raise ValueError("checks and recipe must name at least one check and one recipe")
    subjects = [Subject.of(model, style=style, settings=settings) for model in models]
    for width in dict.fromkeys(made.n_features for made, _ in fits.values()):
        subjects = [subject.tried(width) for subject in subjects]
    seed = root_seed(random_state)
    return [
        Job(
            subject=subject,
            task=task,
            spelling=spelling,
            recipe=made if direction is None else made.along(direction),
            checks=tuple(served),
            n_train=n_train or SCALES[scale].get(subject.family, SCALES[scale][None]),
            n_test=n_test,
            seed=seed,
            run=run,
            pad_to=pad_to,
            looks=looks,
        )
        for subject in subjects
        for (task, spelling), (made, served) in fits.items()
        for run in range(n_runs)
    ]


def _cells(
    checks: str | BagRecipe | Sequence[str | BagRecipe], recipe: str | Sequence[str], n_features: int
) -> Iterator[tuple[str, str, str, Task]]:
    """Check, the task whose bags it needs, spelling, and those bags."""
    asked: list[Any] = [checks] if isinstance(checks, (str, BagRecipe)) else list(checks)
    for check in catalogue.expand(asked):
        if isinstance(check, BagRecipe):
            yield check.name, check.name, "own", check
        elif not isinstance(check, str):
            raise TypeError(f"checks must be names or BagRecipe objects; got {type(check).__name__}")
        else:
            known = catalogue.get(check)
            for spelling in known.spelled([recipe] if isinstance(recipe, str) else recipe):
                yield check, known.task, spelling, known.recipe(spelling, n_features=n_features)


def run_job(job: Job) -> list[Run]:
    """Draw, fit and score.

    Parameters
    ----------
    job : Job

    Returns
    -------
    list of Run
        One for each check that the fit serves.

    Raises
    ------
    Exception
        Whatever the model raises, with a note that says where.
    """
    about = catalogue.about(job.task, job.spelling)

    def seed(part: int) -> int:
        # not a function of the model, so that all models see the same bags
        return seed_value(seed_sequence(job.seed, zlib.crc32(f"{job.task}/{job.spelling}".encode()), job.run, part))

    def sample(part: int, n_bags: int, training: bool) -> tuple[Bags, NDArray[np.int64]]:
        # the order of bags that are scored must not tell their class, as that of training bags may
        recipe = job.recipe
        if part > 0 and isinstance(recipe, BagRecipe):
            recipe = replace(recipe, order="shuffled")
        bags = recipe.sample(n_bags, training=training, pad_to=job.pad_to, random_state=seed(part))
        assert bags.labels is not None
        return bags, bags.labels

    def fitted_to(labels: NDArray[np.int64], part: int) -> Any:
        model = job.subject.fresh(seed(part))
        # a model sees labels where it learns, and kinds nowhere
        fit(model, Bags._trusted(train.instances, train.offsets, labels.copy(), None), job.subject.style)
        return model

    def scores_of(model: Any, bags: Bags) -> NDArray[Any]:
        return bag_scores(model, bags, job.subject.name, job.subject.style)

    train, train_labels = sample(0, job.n_train, True)
    fresh, fresh_labels = sample(1, job.n_test, True)
    start = time.perf_counter()
    place = f"while checking {job.subject.name} on {job.task} ({job.spelling}), run {job.run + 1}"
    with at(place), job.subject.hinting():
        model = fitted_to(train_labels, 3)
        train_scores, fresh_scores = scores_of(model, train), scores_of(model, fresh)
        train_auc = Estimate.of_scores(train_scores, train_labels)
        fresh_auc = Estimate.of_scores(fresh_scores, fresh_labels)
        found: dict[str, dict[str, Any]] = {}
        if job.task in job.checks:
            test, test_labels = sample(2, job.n_test, False)
            tested = fitted_to(1 - train_labels, 4) if about.swapped else model
            test_scores = scores_of(tested, test)
            found[job.task] = _shifted(job, test, test_labels, test_scores, about.swapped)
            if not about.swapped:
                found[job.task]["test_accuracy"] = share_right(tested, test_scores, test_labels)
        if laws := [check for check in job.checks if check != job.task]:
            found |= _laws(job, laws, partial(scores_of, model), fresh, fresh_labels, fresh_scores, seed(5))
    seconds = time.perf_counter() - start
    return [
        Run(
            model=job.subject.name,
            check=check,
            recipe=job.spelling,
            claims=job.subject.claims,
            train=train_auc,
            fresh=fresh_auc,
            ceilings=job.recipe.ceilings(fresh) if check == job.task else {},
            n_train=job.n_train,
            n_test=job.n_test,
            seed=job.seed,
            run=job.run,
            seconds=seconds,
            train_accuracy=share_right(model, train_scores, train_labels),
            fresh_accuracy=share_right(model, fresh_scores, fresh_labels),
            notes=tuple(getattr(model, "findings_", ())),
            **found[check],
        )
        for check in job.checks
    ]


def _laws(
    job: Job,
    laws: Sequence[str],
    score: Callable[[Bags], NDArray[Any]],
    fresh: Bags,
    labels: NDArray[np.int64],
    scores: NDArray[Any],
    seed: int,
) -> dict[str, dict[str, Any]]:
    """What laws say of a fitted model."""
    assert isinstance(job.recipe, BagRecipe)
    chosen = np.concatenate([np.flatnonzero(labels == label)[: LAW_BAGS // 2] for label in (0, 1)])
    few = fresh[chosen]

    def law_score(bags: Bags) -> NDArray[np.float64]:
        return comparable(score(bags), scores)

    # in a call of their own, as the changed bags will be: who is scored along must make no difference
    few_scores = law_score(few)
    plain = comparable(scores, scores)
    cut = best_cut(plain, labels)
    correlation = _size_correlation(few_scores, few.sizes, labels[chosen])
    found = {}
    for law in laws:
        generator = np.random.Generator(np.random.PCG64(seed_sequence(seed, zlib.crc32(law.encode()))))
        fitted = Fitted(law_score, few, few_scores, job.recipe, cut, generator)
        found[law] = {
            "test": None,
            "strata": {name: Estimate.of_flags(flags) for name, flags in catalogue.get(law).broken(fitted).items()},
            "worst": None,
            "worst_auc": None,
            "oracle_auc": None,
            "size_auc": None,
            "size_correlation": correlation,
            "unstable": float(fitted.changed(plain[chosen]).mean()),
        }
    return found


def _shifted(job: Job, bags: Bags, labels: NDArray[np.int64], scores: NDArray[Any], swapped: bool) -> dict[str, Any]:
    """What the shifted bags say, all together and by the sort of the negative ones."""
    strata, worst, worst_auc = by_sort(scores, labels, job.recipe.strata(bags))
    return {
        "test": Estimate.of_scores(scores, labels),
        "strata": strata,
        "worst": worst,
        "worst_auc": worst_auc,
        # what a score that respects the assumption reaches on swapped labels is no single figure
        "oracle_auc": None if swapped else job.recipe.oracle_auc(bags),
        "size_auc": _core.auc(bags.sizes, labels),
        "size_correlation": _size_correlation(scores, bags.sizes, labels),
        "unstable": None,
    }


def by_sort(
    scores: NDArray[Any], labels: NDArray[np.int64], sorts: dict[str, NDArray[np.bool_]]
) -> tuple[dict[str, Estimate], str | None, Estimate | None]:
    """How well each sort of negative bags is told from the positive ones.

    Parameters
    ----------
    scores : ndarray, shape (n_bags,)
    labels : ndarray of int, shape (n_bags,)
    sorts : dict of str to ndarray of bool
        Which bags are negative ones of that sort.

    Returns
    -------
    strata : dict of str to Estimate
    worst : str or None
        The sort with the lowest AUC on one half of the bags.
    worst_auc : Estimate or None
        Its AUC on the other half. A sort of fewer than ten bags is left out.
    """
    sorts = {name: members for name, members in sorts.items() if np.count_nonzero(members) >= FEWEST_OF_A_SORT}
    if not sorts:
        return {}, None, None

    def against(members: NDArray[np.bool_]) -> Estimate:
        return Estimate.of_scores(scores[members], labels[members])

    half = np.zeros(len(labels), dtype=bool)
    for members in (*sorts.values(), labels == 1):
        half[np.flatnonzero(members)[::2]] = True
    worst = min(sorts, key=lambda name: against(half & (sorts[name] | (labels == 1))).value)
    worst_auc = against(~half & (sorts[worst] | (labels == 1)))
    return {name: against(members | (labels == 1)) for name, members in sorts.items()}, worst, worst_auc


def _size_correlation(scores: NDArray[Any], sizes: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Rank correlation of score and bag size, mean of both classes; 0 where either does not vary."""
    from scipy.stats import rankdata

    found = []
    for label in (0, 1):
        ranks = np.stack([rankdata(values[labels == label]) for values in (scores, sizes)])
        varies = (np.ptp(ranks, axis=1) > 0).all()
        found.append(float(np.corrcoef(ranks)[0, 1]) if varies else 0.0)
    return sum(found) / 2


def results(
    jobs: Sequence[Job],
    *,
    level: float,
    n_jobs: int = 1,
    callback: Callable[[int, int, Run], object] | None = None,
) -> list[CheckResult]:
    """Run the jobs and combine the runs of each model under each check.

    Parameters
    ----------
    jobs : sequence of Job
        All of them are run, unless they are those of a sequential study.
    level : float
        Level of the intervals.
    n_jobs : int
        Processes; -1 for one per processor.
    callback : callable, optional
        ``callback(done, total, run)`` after each fit; `run` is that of its first check.

    Returns
    -------
    list of CheckResult
        In the order of the jobs.

    Raises
    ------
    ValueError
        When `n_jobs` is 0.
    """
    done = 0

    def perform(batch: Sequence[Job]) -> list[list[Run]]:
        nonlocal done
        gave: dict[int, list[Run]] = {}
        total = done + len(batch)
        for index, runs in stream(_numbered, enumerate(batch), n_jobs=n_jobs):
            gave[index] = runs
            done += 1
            if callback is not None:
                callback(done, total, runs[0])
        return [gave[index] for index in range(len(batch))]

    def combined(done: Sequence[tuple[Job, list[Run]]]) -> list[CheckResult]:
        return combine([(str(id(job.subject)), job.looks, run) for job, runs in done for run in runs], level=level)

    return decide(jobs, perform, combined)


def combine(runs: Sequence[tuple[str, int, Run]], *, level: float) -> list[CheckResult]:
    """Results of checks from their runs.

    Parameters
    ----------
    runs : sequence of (str, int, Run)
        Each run with what tells its model and setting from others, and with the looks of its study.
    level : float

    Returns
    -------
    list of CheckResult
        Read together, in the order in which their first runs come.
    """
    grouped: dict[tuple[str, int, str, str], dict[tuple[int, int], Run]] = {}
    for setting, looks, run in runs:
        grouped.setdefault((setting, looks, run.check, run.recipe), {}).setdefault((run.seed, run.run), run)
    found = [
        CheckResult.of([members[key] for key in sorted(members)], level=level, looks=looks)
        for (_, looks, _, _), members in grouped.items()
    ]
    return read_together(found, settings=[setting for setting, *_ in grouped])


def _numbered(item: tuple[int, Job]) -> tuple[int, list[Run]]:
    return item[0], run_job(item[1])
