"""How well models rank the bags of a data set: repeated stratified cross-validation."""

from __future__ import annotations

import html
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast import _core
from milfast.bags import Bags
from milfast.checks.adapters import Subject, bag_scores
from milfast.seeding import root_seed, seed_value
from milfast.uncertainty import Interval, mean_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from milfast.seeding import RandomState


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
    random_state: RandomState = 0,
    n_jobs: int = 1,
    callback: Callable[[int, int, str], object] | None = None,
) -> EvaluationResult:
    """Mean AUC of a model over repeated stratified cross-validation, every bag tested once per repeat.

    Parameters
    ----------
    model : str, class or object
        A registered name (taken with its default parameters), a class, or an unfitted model; see
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
) -> list[EvaluationResult]:
    """Several models on the same folds; parameters as in `evaluate`.

    Returns
    -------
    list of EvaluationResult
        In the order of `models`.
    """
    from sklearn.model_selection import StratifiedKFold

    for name, value, least in (("folds", folds, 2), ("repeats", repeats, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1; got {level}")
    subjects = [Subject.of(model, tested=False) for model in models]
    bags, title = _load(data)
    if bags.labels is None:
        raise ValueError("bags carry no labels: give them with Bags(..., labels=...)")
    smallest = int(np.bincount(bags.labels, minlength=2).min())
    if smallest < folds:
        raise ValueError(f"the smaller class has {smallest} bags, too few for {folds} folds")
    seed = root_seed(random_state)
    jobs = []
    for index, subject in enumerate(subjects):
        for repeat in range(repeats):
            splitter = StratifiedKFold(folds, shuffle=True, random_state=seed_value(seed, repeat) % 2**32)
            for fold, (train, test) in enumerate(splitter.split(bags.labels, bags.labels)):
                jobs.append((index, repeat, fold, subject, train, test, seed_value(seed, repeat, fold)))
    aucs = np.empty((len(subjects), repeats, folds))
    seconds = np.zeros(len(subjects))
    for done, (index, repeat, fold, auc, spent) in enumerate(_stream(jobs, bags, standardize, n_jobs), start=1):
        aucs[index, repeat, fold] = auc
        seconds[index] += spent
        if callback is not None:
            callback(done, len(jobs), subjects[index].name)
    return [
        EvaluationResult(
            model=subject.name,
            data=title,
            auc=mean_interval(values.ravel(), level=level, test_train_ratio=1 / (folds - 1), bounds=(0.0, 1.0)),
            fold_aucs=values,
            folds=folds,
            repeats=repeats,
            seed=seed,
            seconds=float(spent),
        )
        for subject, values, spent in zip(subjects, aucs, seconds, strict=True)
    ]


def _load(data: object) -> tuple[Bags, str]:
    if isinstance(data, Bags):
        return data, "bags"
    if not isinstance(data, str):
        raise TypeError(f"data must be the name of a data set or milfast.Bags; got {type(data).__name__}")
    from milfast import datasets

    if data.endswith((".csv", ".csv.gz")):
        return datasets.read_csv(data), data
    return datasets.load(data), data


def _stream(
    jobs: list[tuple[Any, ...]], bags: Bags, standardize: bool, n_jobs: int
) -> Iterator[tuple[int, int, int, float, float]]:
    if n_jobs == 1:
        for job in jobs:
            yield _fold(job, bags, standardize, None)
        return
    import joblib

    workers = joblib.effective_n_jobs(n_jobs)
    threads = max(1, joblib.cpu_count() // workers)
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    yield from parallel(joblib.delayed(_fold)(job, bags, standardize, threads) for job in jobs)


def _fold(
    job: tuple[Any, ...], bags: Bags, standardize: bool, threads: int | None
) -> tuple[int, int, int, float, float]:
    index, repeat, fold, subject, train, test, seed = job
    if threads is not None:
        _core.set_num_threads(threads)
    start = time.perf_counter()
    fit, held_out = bags[train], bags[test]
    if standardize:
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(fit.instances)
        fit = fit.with_instances(scaler.transform(fit.instances))
        held_out = held_out.with_instances(scaler.transform(held_out.instances))
    try:
        model = subject.fresh(seed)
        model.fit(fit)
        scores = bag_scores(model, held_out, subject.name)
    except Exception as error:
        error.add_note(f"while evaluating {subject.name}, repeat {repeat + 1}, fold {fold + 1}")
        raise
    assert held_out.labels is not None
    return index, repeat, fold, _core.auc(scores, held_out.labels), time.perf_counter() - start
