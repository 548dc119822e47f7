"""How well models rank the bags of a data set: repeated stratified cross-validation."""

from __future__ import annotations

import hashlib
import html
import time
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast import _core
from milfast.bags import Bags
from milfast.checks.adapters import Subject, at, bag_scores, fit
from milfast.seeding import root_seed, seed_value
from milfast.uncertainty import Interval, mean_interval, proportion_interval
from milfast.workers import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from milfast.seeding import RandomState


#: What a study calls.
FUNCTION = "milfast.evaluation:run_specification"


@dataclass(frozen=True)
class Fold:
    """One fit: one model, one data set, one fold of one repeat.

    Attributes
    ----------
    subject : Subject
    data : str
        Name of the data set.
    digest : str or None
        SHA-256 of its file, where it was read from one that milfast does not know.
    folds, repeats : int
    repeat, fold : int
        Which one, from 0.
    seed : int
        Root seed of the whole call.
    standardize : bool
    level : float
        Level of the interval to be made of all folds.
    """

    subject: Subject
    data: str
    digest: str | None
    folds: int
    repeats: int
    repeat: int
    fold: int
    seed: int
    standardize: bool
    level: float


@dataclass(frozen=True, repr=False)
class EvaluationResult:
    """AUC of one model on one data set.

    Attributes
    ----------
    model, data : str
        Names.
    auc : Interval
        Mean AUC over all folds, with the corrected resampled t interval of Nadeau & Bengio (2003): folds share training
        bags, so the plain t interval would be too short.
    fold_aucs : ndarray of float64, shape (repeats, folds)
        AUC of each fold.
    folds, repeats : int
    seed : int
        `random_state` with which the result comes out again.
    seconds : float
        Time for fitting and scoring.
    """

    model: str
    data: str
    auc: Interval
    fold_aucs: NDArray[np.float64]
    folds: int
    repeats: int
    seed: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """One flat row of plain values.

        Returns
        -------
        dict
        """
        interval = self.auc.to_dict()
        return {
            "model": self.model,
            "data": self.data,
            "auc": interval["estimate"],
            "auc_low": interval["low"],
            "auc_high": interval["high"],
            "level": self.auc.level,
            "method": self.auc.method,
            "fold_sd": float(np.std(self.fold_aucs, ddof=1)),
            "folds": self.folds,
            "repeats": self.repeats,
            "seed": self.seed,
            "seconds": self.seconds,
        }

    def __repr__(self) -> str:
        return (
            f"EvaluationResult({self.model} on {self.data}: AUC {self.auc.estimate:.3f} "
            f"[{self.auc.low:.3f}, {self.auc.high:.3f}], {self.repeats} x {self.folds} folds)"
        )

    def _repr_html_(self) -> str:
        return f"<b>{html.escape(self.model)}</b> on {html.escape(self.data)}: {self.auc._repr_html_()}"


def evaluate(
    model: Any,
    data: str | Bags,
    *,
    folds: int = 5,
    repeats: int = 3,
    standardize: bool = True,
    level: float = 0.95,
    style: str | None = None,
    random_state: RandomState = 0,
    n_jobs: int = 1,
    callback: Callable[[int, int, str], object] | None = None,
) -> EvaluationResult:
    """Mean AUC of a model over repeated stratified cross-validation, every bag tested once per repeat.

    Parameters
    ----------
    model : str, class or object
        A registered name (taken with its default parameters), a class, an unfitted model, or a torch module; see
        `milfast.check_model`.
    data : str or Bags
        Name of a data set (see `milfast.datasets`) or labelled bags.
    folds : int
        Folds of a repeat.
    repeats : int
        How often the bags are dealt into folds anew, with as many seeds of the model.
    standardize : bool
        Give each feature mean 0 and variance 1 over the training instances of the fold.
    level : float
        Level of the interval.
    style : {"bags", "lists", "flat", "padded", "single"}, optional
        How the model takes bags, where that is not found out; see `milfast.check_model`.
    random_state : int, Generator, SeedSequence or None
        Seeds folds and models. All models see the same folds for the same integer.
    n_jobs : int
        Processes that share the fits; -1 for one per processor.
    callback : callable, optional
        Called as ``callback(done, total, model name)`` after each fit.

    Returns
    -------
    EvaluationResult

    Raises
    ------
    ValueError
        When labels are missing, a class has fewer bags than there are folds, or a number is out of range.
    FileNotFoundError
        When the data set is not on this machine; the message says how to get it.

    References
    ----------
    .. [1] Nadeau & Bengio (2003), Inference for the generalization error.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("presence", 60, random_state=0)
    >>> result = mf.evaluate("NSK", bags, repeats=2)
    >>> result.fold_aucs.shape, result.auc.estimate > 0.9
    ((2, 5), True)
    """
    [result] = evaluate_all(
        [model],
        data,
        folds=folds,
        repeats=repeats,
        standardize=standardize,
        level=level,
        style=style,
        random_state=random_state,
        n_jobs=n_jobs,
        callback=callback,
    )
    return result


def evaluate_all(
    models: Sequence[Any],
    data: str | Bags,
    *,
    folds: int,
    repeats: int,
    standardize: bool,
    level: float,
    random_state: RandomState,
    n_jobs: int,
    callback: Callable[[int, int, str], object] | None,
    style: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[EvaluationResult]:
    """Several models on the same folds, with `settings` for all of them; other parameters as in `evaluate`.

    Returns
    -------
    list of EvaluationResult
        In the order of `models`.
    """
    bags = load(data)
    jobs = plan(
        models,
        bags,
        title=data if isinstance(data, str) else "bags",
        digest=None,
        folds=folds,
        repeats=repeats,
        standardize=standardize,
        level=level,
        style=style,
        random_state=random_state,
        settings=settings,
    )
    outcomes: dict[int, dict[str, Any]] = {}
    for index, outcome in stream(partial(_numbered, bags=bags), enumerate(jobs), n_jobs=n_jobs):
        outcomes[index] = outcome
        if callback is not None:
            callback(len(outcomes), len(jobs), jobs[index].subject.name)
    results = []
    for first in range(0, len(jobs), folds * repeats):  # model by model: two objects may have one description
        part = range(first, first + folds * repeats)
        results += combine((describe(jobs[index]), outcomes[index]) for index in part)
    return results


def plan(
    models: Sequence[Any],
    bags: Bags,
    *,
    title: str,
    digest: str | None,
    folds: int,
    repeats: int,
    standardize: bool,
    level: float,
    random_state: RandomState,
    style: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[Fold]:
    """All fits of a call, after every argument was looked at; parameters as in `evaluate`.

    Parameters
    ----------
    title : str
        Name of the data set.
    digest : str or None
        SHA-256 of its file.
    settings : dict, optional
        Parameters of all models, by name.

    Returns
    -------
    list of Fold
        Model by model, repeat by repeat, fold by fold.
    """
    for name, value, least in (("folds", folds, 2), ("repeats", repeats, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1; got {level}")
    subjects = [Subject.of(model, tested=False, style=style, settings=settings) for model in models]
    if bags.labels is None:
        raise ValueError("bags carry no labels: give them with Bags(..., labels=...)")
    smallest = int(np.bincount(bags.labels, minlength=2).min())
    if smallest < folds:
        raise ValueError(f"the smaller class has {smallest} bags, too few for {folds} folds")
    subjects = [subject.tried(bags.n_features) for subject in subjects]
    seed = root_seed(random_state)
    return [
        Fold(subject, title, digest, int(folds), int(repeats), repeat, fold, seed, standardize, level)
        for subject in subjects
        for repeat in range(repeats)
        for fold in range(folds)
    ]


def describe(job: Fold) -> dict[str, Any]:
    """Everything that determines the result of a job, as plain values.

    Parameters
    ----------
    job : Fold

    Returns
    -------
    dict
    """
    return job.subject.named() | {
        "name": job.subject.name,
        "parameters": job.subject.parameters(),
        "source": job.subject.source,
        "data": job.data,
        "digest": job.digest,
        "folds": job.folds,
        "repeats": job.repeats,
        "repeat": job.repeat,
        "fold": job.fold,
        "seed": job.seed,
        "standardize": job.standardize,
        "level": job.level,
    }


def run_specification(specification: dict[str, Any]) -> dict[str, Any]:
    """Do the job that `describe` described.

    Parameters
    ----------
    specification : dict

    Returns
    -------
    dict
        ``auc``, ``n_pos``, ``n_neg`` and ``seconds``.

    Raises
    ------
    ValueError
        When the data file is no longer the one that the job was made for.
    """
    data, digest = specification["data"], specification["digest"]
    if digest is not None and file_digest(data) != digest:
        raise ValueError(f"{data} has changed since the study was begun: begin a new one")
    names = ("data", "digest", "folds", "repeats", "repeat", "fold", "seed", "standardize", "level")
    subject = Subject.named_by(specification, tested=False)
    return run_fold(Fold(subject, **{name: specification[name] for name in names}), _cached(data))


def file_digest(data: str) -> str | None:
    """SHA-256 of a file of bags; None for a data set that milfast knows, as those are verified when they are read.

    Parameters
    ----------
    data : str
        Name of a data set, or of a CSV file.

    Returns
    -------
    str or None
    """
    return hashlib.sha256(Path(data).read_bytes()).hexdigest() if _is_file(data) else None


def combine(pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> list[EvaluationResult]:
    """Results from specifications and what they gave.

    Parameters
    ----------
    pairs : iterable of (dict, dict)

    Returns
    -------
    list of EvaluationResult
        In the order in which their first folds come. A model without all of its folds is left out: the mean of some is
        not that of all.
    """
    groups: dict[str, tuple[dict[str, Any], dict[tuple[int, int], dict[str, Any]]]] = {}
    for given, gave in pairs:
        key = str(sorted((name, str(value)) for name, value in given.items() if name not in ("repeat", "fold")))
        groups.setdefault(key, (given, {}))[1][given["repeat"], given["fold"]] = gave
    results = []
    for given, outcomes in groups.values():
        folds, repeats = given["folds"], given["repeats"]
        if len(outcomes) < folds * repeats:
            continue
        aucs = np.array([[outcomes[repeat, fold]["auc"] for fold in range(folds)] for repeat in range(repeats)])
        interval = mean_interval(
            aucs.ravel(), level=given["level"], test_train_ratio=1 / (folds - 1), bounds=(0.0, 1.0)
        )
        if interval.low == interval.high and interval.estimate in (0.0, 1.0):
            # a spread of 0 says nothing: what remains is the bound for as many bags as the smaller class has
            first = [outcome for (repeat, _), outcome in outcomes.items() if repeat == 0]
            n = min(sum(outcome[count] for outcome in first) for count in ("n_pos", "n_neg"))
            bound = proportion_interval(round(interval.estimate) * n, n, level=given["level"])
            interval = replace(interval, low=bound.low, high=bound.high, method="wilson bound")
        results.append(
            EvaluationResult(
                model=given["name"],
                data=given["data"],
                auc=interval,
                fold_aucs=aucs,
                folds=folds,
                repeats=repeats,
                seed=given["seed"],
                seconds=sum(outcome["seconds"] for outcome in outcomes.values()),
            )
        )
    return results


def _is_file(data: str) -> bool:
    return data.endswith((".csv", ".csv.gz"))


def load(data: object) -> Bags:
    """Bags of a data set, of a CSV file, or themselves.

    Parameters
    ----------
    data : str or Bags

    Returns
    -------
    Bags

    Raises
    ------
    TypeError
        When `data` is something else.
    ValueError, FileNotFoundError
        As `milfast.datasets.load` and `read_csv`.
    """
    if isinstance(data, Bags):
        return data
    if not isinstance(data, str):
        raise TypeError(f"data must be the name of a data set or milfast.Bags; got {type(data).__name__}")
    from milfast import datasets

    if data in datasets.names("table"):
        raise ValueError(
            f"the samples of {data} are rows of a table, and this is about bags: `milfast consistency` takes tables; "
            f"bags are {', '.join(datasets.names('bags'))}"
        )
    bags: Bags = datasets.read_csv(data) if _is_file(data) else datasets.load(data)
    return bags


_cached = cache(load)


def _numbered(item: tuple[int, Fold], bags: Bags) -> tuple[int, dict[str, Any]]:
    return item[0], run_fold(item[1], bags)


def run_fold(job: Fold, bags: Bags) -> dict[str, Any]:
    """Fit on the other folds, and score this one.

    Parameters
    ----------
    job : Fold
    bags : Bags
        The data set.

    Returns
    -------
    dict
        ``auc``, ``n_pos``, ``n_neg`` and ``seconds``.

    Raises
    ------
    Exception
        Whatever the model raises, with a note that says where.
    """
    from sklearn.model_selection import StratifiedKFold

    start = time.perf_counter()
    splitter = StratifiedKFold(job.folds, shuffle=True, random_state=seed_value(job.seed, job.repeat) % 2**32)
    train, test = list(splitter.split(bags.labels, bags.labels))[job.fold]
    training, held_out = bags[train], bags[test]
    if job.standardize:
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(training.instances)
        training = training.with_instances(scaler.transform(training.instances))
        held_out = held_out.with_instances(scaler.transform(held_out.instances))
    place = f"while evaluating {job.subject.name} on {job.data}, repeat {job.repeat + 1}, fold {job.fold + 1}"
    with at(place), job.subject.hinting():
        model = job.subject.fresh(seed_value(job.seed, job.repeat, job.fold))
        fit(model, training, job.subject.style)
        scores = bag_scores(model, held_out, job.subject.name, job.subject.style)
    assert held_out.labels is not None
    return {
        "auc": _core.auc(scores, held_out.labels),
        "n_pos": int(held_out.labels.sum()),
        "n_neg": int((held_out.labels == 0).sum()),
        "seconds": time.perf_counter() - start,
    }
