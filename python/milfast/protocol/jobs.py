"""Jobs of a protocol: one model, one data set and one seed, with all of its folds and margins."""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast import _core, evaluation, models
from milfast.bags import Bags
from milfast.checks.adapters import Subject, at, bag_scores, fit
from milfast.protocol.intervals import placements
from milfast.protocol.selection import TIES, choose
from milfast.protocol.splits import dealt, held_out
from milfast.seeding import root_seed, seed_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from milfast.lazy_bags import LazyBags
    from milfast.protocol.splits import Split
    from milfast.seeding import RandomState

#: What a study calls.
FUNCTION = "milfast.protocol.jobs:run_specification"
#: Protocols, and what they do.
PROTOCOLS = {
    "zhu2023": "a tenth of the bags tests all folds of a seed; margin and epoch are the best on the fold that did not "
    "train",
    "sound": "repeated stratified folds, every bag tested once a seed; margin and epoch are fixed, or chosen by inner "
    "folds",
}
#: Models that are trained many at a time, and what `fit_stacked` calls them.
STACKED = {"MIDAM-smx": "midam-smx", "MIDAM-att": "midam-att", "AUC-M": "auc-m", "CE": "ce"}
#: Of those, the ones whose loss has a margin.
WITH_MARGIN = ("midam-smx", "midam-att", "auc-m")
#: Parameters that the protocol decides about, whatever the model has.
DECIDED = ("epochs", "margins", "standardize", "evaluate_every", "random_state", "callback", "checkpoint")
#: Models without which no table of those is complete: they are cheap, and hard to beat.
BASELINES = ("NSK", "LR")
#: The margin where none is chosen: what LibAUC's tutorials take.
MARGIN = 1.0
#: How large each scale is.
SCALES: dict[str, dict[str, Any]] = {
    "fast": {"seeds": 3, "epochs": 20, "margins": (1.0,)},
    "paper": {"seeds": 3, "epochs": 100, "margins": (0.1, 0.5, 1.0)},
}


@dataclass(frozen=True)
class SeedJob:
    """One model, one data set, one seed of a protocol.

    Attributes
    ----------
    subject : Subject
    data : str
        Name of the data set.
    digest : str or None
        SHA-256 of its file, where it was read from one that milfast does not know.
    protocol : str
    number : int
        Which seed, from 0.
    seeds, folds : int
    epochs : int
        Of models that are trained many at a time.
    margins : tuple of float
        To choose from.
    selection : {"last", "inner"}
        Of the sound protocol.
    inner : int
        Inner folds.
    stratified : bool
        Of the protocol of Zhu et al.
    seed : int
        Root seed of the whole call.
    standardize : bool
    level : float
    """

    subject: Subject
    data: str
    digest: str | None
    protocol: str
    number: int
    seeds: int
    folds: int
    epochs: int
    margins: tuple[float, ...]
    selection: str
    inner: int
    stratified: bool
    seed: int
    standardize: bool
    level: float

    @property
    def method(self) -> str | None:
        """What `fit_stacked` calls the model; None for models that are fitted one by one."""
        return STACKED.get(title_of(self.subject.prototype))

    def splits(self, labels: NDArray[np.int64]) -> list[list[Split]]:
        """Splits of each fold; the last of a fold is the one whose model is tested."""
        if self.protocol == "zhu2023":
            found = held_out(labels, seed=self.seed, number=self.number, folds=self.folds, stratified=self.stratified)
            return [[split] for split in found]
        inner = self.inner if self.selection == "inner" and self.method is not None else 0
        return dealt(labels, seed=self.seed, number=self.number, folds=self.folds, inner=inner)

    @property
    def tried(self) -> tuple[float, ...]:
        """Margins that are trained."""
        if self.method not in WITH_MARGIN:
            return (MARGIN,)
        if self.protocol == "sound" and self.selection == "last" and len(self.margins) > 1:
            return (MARGIN,)
        return self.margins

    @property
    def how(self) -> str:
        """How margin and epoch come about."""
        if self.method is None:
            return "nothing to choose"
        if self.protocol == "zhu2023":
            return "best validation AUC"
        if self.selection == "inner":
            return f"best mean AUC of {self.inner} inner folds"
        margin = f", margin {self.tried[0]:g}" if self.method in WITH_MARGIN else ""
        return f"epoch {self.epochs}{margin}"


def plan(
    chosen: Sequence[Any],
    bags: Bags | LazyBags,
    *,
    title: str,
    digest: str | None,
    protocol: str,
    scale: str = "paper",
    seeds: int | None = None,
    folds: int = 5,
    epochs: int | None = None,
    margins: Sequence[float] | None = None,
    selection: str = "last",
    inner: int = 3,
    stratified: bool = False,
    standardize: bool = True,
    level: float = 0.95,
    random_state: RandomState = 0,
    style: str | None = None,
    settings: Mapping[str, Any] | None = None,
    added: Sequence[str] = (),
) -> list[SeedJob]:
    """All jobs of a call, after every argument was looked at; parameters as in `milfast.protocol.run`.

    Parameters
    ----------
    title : str
        Name of the data set.
    digest : str or None
        SHA-256 of its file.
    added : sequence of str
        Models among `chosen` that nobody asked for: `settings` are not for them.

    Returns
    -------
    list of SeedJob
        Model by model, seed by seed.
    """
    for name, asked, known in (
        ("protocol", protocol, tuple(PROTOCOLS)),
        ("scale", scale, tuple(SCALES)),
        ("selection", selection, ("last", "inner")),
    ):
        if asked not in known:
            raise ValueError(f"{name} must be {' or '.join(known)}; got {asked!r}")
    sizes = SCALES[scale]
    seeds = sizes["seeds"] if seeds is None else seeds
    for name, value, least in (("folds", folds, 2), ("seeds", seeds, 1), ("inner", inner, 2)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")
    if epochs is not None and (isinstance(epochs, bool) or not isinstance(epochs, (int, np.integer)) or epochs < 1):
        raise ValueError(f"epochs must be an integer of at least 1; got {epochs!r}")
    tried = _margins(sizes["margins"] if margins is None else margins)
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1; got {level}")
    if bags.labels is None:
        raise ValueError("bags carry no labels: give them with Bags(..., labels=...)")
    given = dict(settings or {})
    for name, option in (("epochs", "epochs"), ("margin", "margins")):
        if name in given and any(title_of(model) in STACKED for model in chosen):
            raise ValueError(_decided(name, option))
    subjects = [
        Subject.of(model, tested=False)
        if isinstance(model, str) and model in added
        else Subject.of(model, tested=False, style=style, settings=given)
        for model in chosen
    ]
    subjects = [subject.tried(bags.n_features) for subject in subjects]
    seed = root_seed(random_state)
    jobs = [
        SeedJob(
            subject=subject,
            data=title,
            digest=digest,
            protocol=protocol,
            number=number,
            seeds=int(seeds),
            folds=int(folds),
            epochs=int(epochs or sizes["epochs"]),
            margins=tried,
            selection=selection,
            inner=int(inner),
            stratified=bool(stratified),
            seed=seed,
            standardize=bool(standardize),
            level=level,
        )
        for subject in subjects
        for number in range(seeds)
    ]
    for job in jobs[:: int(seeds)]:
        idle = _idle(job)
        if idle and idle[0] in _ELSEWHERE:
            raise ValueError(_decided(idle[0], _ELSEWHERE[idle[0]]))
        if idle:
            raise ValueError(
                f"{idle[0]} is of no use here: {job.subject.name} is trained with many others at once, and takes "
                f"{', '.join(sorted(_options()))}"
            )
    seen = set()
    for job in jobs:  # a fold without a class is found out now, not hours later
        kind = (job.number, job.method is None)
        if kind not in seen:
            seen.add(kind)
            job.splits(bags.labels)
    return jobs


#: What a model is told elsewhere, and by which argument of a protocol it is.
_ELSEWHERE = {"epochs": "epochs", "margin": "margins", "standardize": "standardize"}


def _decided(name: str, option: str) -> str:
    told = "" if option == "standardize" else f", on the command line --{option}"
    return f"{name} is no setting of a model here, as the protocol decides about it: give {option}={told}"


def _idle(job: SeedJob) -> list[str]:
    """Parameters of a model that is trained with others which were set, and would do nothing."""
    if job.method is None:
        return []
    model = job.subject.prototype
    usual = type(model)().get_params()
    unseen = _options() | {"random_state", "callback"}
    asked = model.get_params().items()
    return [name for name, value in asked if name not in unseen and (name not in usual or value != usual[name])]


def _margins(given: Any) -> tuple[float, ...]:
    values = [given] if isinstance(given, (int, float)) else list(given)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
            raise ValueError(f"margins must be finite positive numbers; got {value!r}")
    if not values or len(set(values)) < len(values):
        raise ValueError(f"margins must be different numbers, at least one; got {given!r}")
    return tuple(sorted(float(value) for value in values))


def title_of(model: Any) -> str:
    """Registered name of a model, whether it is given by name, as a class or as an object.

    Parameters
    ----------
    model : str, type or object

    Returns
    -------
    str
        Where it is no registered model, its name or that of its class.

    Examples
    --------
    >>> import milfast as mf
    >>> from milfast.protocol.jobs import title_of
    >>> kind = mf.models.get("NSK")
    >>> title_of("NSK"), title_of(kind), title_of(kind(C=1.0))
    ('NSK', 'NSK', 'NSK')
    """
    if isinstance(model, str):
        return model
    kind = model if isinstance(model, type) else type(model)
    known = (entry.name for entry in models.registry.entries.values() if entry.module == kind.__module__)
    return next(known, kind.__name__)


def with_baselines(chosen: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """The models, and where one of `STACKED` is among them also those of `BASELINES` that are not.

    Parameters
    ----------
    chosen : sequence

    Returns
    -------
    all : list
    added : list of str

    Examples
    --------
    >>> from milfast.protocol.jobs import with_baselines
    >>> with_baselines(["MIDAM-att", "LR"])
    (['MIDAM-att', 'LR', 'NSK'], ['NSK'])
    >>> with_baselines(["mi-SVM"])
    (['mi-SVM'], [])
    """
    given = list(chosen)
    titles = [title_of(model) for model in given]
    if not set(titles) & set(STACKED):
        return given, []
    added = [name for name in BASELINES if name not in titles]
    return given + added, added


def describe(job: SeedJob) -> dict[str, Any]:
    """Everything that determines the result of a job, as plain values.

    Parameters
    ----------
    job : SeedJob

    Returns
    -------
    dict
    """
    return job.subject.named() | {
        "name": job.subject.name,
        "parameters": job.subject.parameters(),
        "source": job.subject.source,
        "margins": list(job.margins),
        **{name: getattr(job, name) for name in _PLAIN},
    }


_PLAIN = (
    "data",
    "digest",
    "protocol",
    "number",
    "seeds",
    "folds",
    "epochs",
    "selection",
    "inner",
    "stratified",
    "seed",
    "standardize",
    "level",
)


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
        When the data file is no longer the one that the job was made for.
    """
    data, digest = specification["data"], specification["digest"]
    if digest is not None and evaluation.file_digest(data) != digest:
        raise ValueError(f"{data} has changed since the study was begun: begin a new one")
    subject = Subject.named_by(specification, tested=False)
    plain = {name: specification[name] for name in _PLAIN}
    return run_job(SeedJob(subject=subject, margins=tuple(specification["margins"]), **plain), _cached(data))


_cached = cache(evaluation.load)


def run_job(job: SeedJob, bags: Bags | LazyBags) -> dict[str, Any]:
    """Fit on every fold with every margin, choose by every rule, and test.

    Parameters
    ----------
    job : SeedJob
    bags : Bags or LazyBags
        The data set.

    Returns
    -------
    dict
        ``trials``: for each rule of `milfast.protocol.selection.TIES`, or ``"only"`` where nothing is chosen, a list
        with a dict for each fold; ``n_candidates``, ``selection`` and ``seconds``.

    Raises
    ------
    ValueError
        When a score is NaN or infinite, which names the fold.
    Exception
        Whatever the model raises, with a note that says where.
    """
    start = time.perf_counter()
    labels = bags.labels
    assert labels is not None
    splits = job.splits(labels)
    place = f"while evaluating {job.subject.name} on {job.data} by {job.protocol}, seed {job.number + 1}"
    with at(place), job.subject.hinting():
        if job.method is None:
            whole = bags if isinstance(bags, Bags) else bags.to_bags()  # once, not for each fold
            scores: list[list[NDArray[Any]]] = [
                [_fitted(job, whole, split, fold)] for fold, (split,) in enumerate(splits)
            ]
        else:
            scores = _stacked(job, bags, splits)
    rules = tuple(TIES)
    if job.method is None or not len(splits[0][0].validation):
        rules = ("only",)
    trials: dict[str, list[dict[str, Any]]] = {rule: [] for rule in rules}
    for fold, parts in enumerate(splits):
        for rule, trial in _trials(job, parts, scores[fold], labels, rules).items():
            trials[rule].append(trial)
    _, n_margins, n_epochs, _ = np.shape(scores[0])
    return {
        "trials": trials,
        "n_candidates": n_margins * n_epochs,
        "selection": job.how,
        "seconds": time.perf_counter() - start,
    }


def run_numbered(item: tuple[int, SeedJob], data: Mapping[str, Bags | LazyBags]) -> tuple[int, dict[str, Any]]:
    """`run_job` for a numbered job, with its data set among several.

    Parameters
    ----------
    item : (int, SeedJob)
    data : mapping of str to Bags or LazyBags

    Returns
    -------
    (int, dict)
    """
    return item[0], run_job(item[1], data[item[1].data])


def _trials(
    job: SeedJob,
    parts: Sequence[Split],
    scores: Sequence[NDArray[Any]],
    labels: NDArray[np.int64],
    rules: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """What each rule takes in one fold; `scores` has a table (margins, epochs, bags) for each split of it."""
    tested, table = parts[-1], scores[-1]
    n_margins, n_epochs, _ = table.shape
    # only one model: its scores are those of the last epoch, whatever was recorded
    epochs = range(job.epochs - n_epochs + 1, job.epochs + 1)

    def aucs(split_scores: NDArray[Any], which: NDArray[np.int64]) -> NDArray[np.float64]:
        chosen = np.ascontiguousarray(split_scores[:, :, which].reshape(-1, len(which)))
        return _core.auc_many(chosen, labels[which]).reshape(n_margins, n_epochs)

    test, train = aucs(table, tested.test), aucs(table, tested.train)
    validation = None
    if rules != ("only",):
        choosing = [(split, part) for split, part in zip(parts, scores, strict=True) if len(split.validation)]
        validation = np.mean([aucs(part, split.validation) for split, part in choosing], axis=0)
    found = {}
    positive = labels[tested.test] == 1
    for rule in rules:
        if validation is None:
            taken = tied = np.array([[n_margins - 1, n_epochs - 1]])
            value = None
        else:
            choice = choose(validation, rule)
            taken, tied, value = choice.taken, choice.tied, choice.value
        places = tuple(taken.T)
        of_test = table[places][:, tested.test]
        margins = [job.tried[margin] for margin in places[0]] if job.method in WITH_MARGIN else []
        found[rule] = {
            "auc": float(np.mean(test[places])),
            "train_auc": float(np.mean(train[places])),
            "validation_auc": value,
            "epoch": None if job.method is None else float(np.mean([epochs[epoch] for epoch in places[1]])),
            "margin": float(np.mean(margins)) if margins else None,
            "n_ties": len(tied),
            "tie_gap": float(np.ptp(test[tuple(tied.T)])),
            "test": tested.test.tolist(),
            "positive": positive.astype(int).tolist(),
            "placements": np.mean([placements(row, positive) for row in of_test], axis=0).tolist(),
            "scores": np.mean(of_test, axis=0, dtype=np.float64).tolist(),
        }
    return found


def _fitted(job: SeedJob, whole: Bags, split: Split, fold: int) -> NDArray[np.float64]:
    """Scores of all bags by a model of its own, shape (1, 1, n_bags)."""
    training = whole[split.train]
    if job.standardize:
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(training.instances)
        training = training.with_instances(scaler.transform(training.instances))
        whole = whole.with_instances(scaler.transform(whole.instances))
    model = job.subject.fresh(seed_value(job.seed, job.number, fold))
    fit(model, training, job.subject.style)
    scores = np.asarray(bag_scores(model, whole, job.subject.name, job.subject.style), dtype=np.float64)
    return _finite(scores[None, None], job, fold)


def _options() -> frozenset[str]:
    """Parameters of models that reach those that are trained at once."""
    from milfast.training.stacked import fit_stacked

    taken = ("bags", "labels", "train", "method", "identity", "stop", "checkpoint_every")
    return frozenset(inspect.signature(fit_stacked).parameters) - {*DECIDED, *taken}


def _stacked(job: SeedJob, bags: Bags | LazyBags, splits: Sequence[Sequence[Split]]) -> list[list[NDArray[Any]]]:
    """Scores of all bags by every model, trained side by side: for each fold and split (margins, epochs, n_bags)."""
    from milfast.training.stacked import fit_stacked

    assert job.method is not None
    flat = [(fold, split) for fold, parts in enumerate(splits) for split in parts]
    trains = [split.train for _, split in flat for _ in job.tried]
    margins = np.array([margin for _ in flat for margin in job.tried])
    options = {name: value for name, value in job.subject.prototype.get_params().items() if name in _options()}
    if options.get("clip_value", 1.0) is None:  # no limit for the model, where `fit_stacked` takes what is usual
        options["clip_value"] = np.inf
    found = fit_stacked(
        bags,
        bags.labels,
        trains,
        method=job.method,
        margins=margins,
        epochs=job.epochs,
        standardize=job.standardize,
        evaluate_every=1 if any(len(split.validation) for _, split in flat) else None,
        random_state=seed_value(job.seed, job.number),
        **options,
    )
    scores = np.asarray(found.scores)
    tables: list[list[NDArray[Any]]] = []
    for fold, parts in enumerate(splits):
        tables.append([])
        for _ in parts:
            done, scores = scores[: len(job.tried)], scores[len(job.tried) :]
            tables[fold].append(_finite(done, job, fold))
    return tables


def _finite(scores: NDArray[Any], job: SeedJob, fold: int) -> NDArray[Any]:
    """The scores, if they are numbers."""
    if not np.isfinite(scores).all():
        margin, epoch, bag = np.argwhere(~np.isfinite(scores))[0]
        what = f", margin {job.tried[margin]:g}, epoch {epoch + 1}" if job.method else ""
        raise ValueError(
            f"{job.subject.name} scores bag {bag} with {scores[margin, epoch, bag]} (fold {fold + 1}{what}): training "
            "has gone astray"
        )
    return scores
