"""Cross-validations as jobs of a study: some repeats each, whose error sets are kept as bits."""

from __future__ import annotations

import base64
import json
import os
import pickle
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.consistency import learners
from milfast.consistency.cross_validation import LOOK, CrossValidated, in_processes, prepared, settled
from milfast.consistency.repeats import Part, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from milfast.datasets.tabular import Samples

#: What a study calls.
FUNCTION = "milfast.consistency.jobs:run_specification"
#: Repeats of a job, of data with more samples than this.
LARGE, FEW = 10_000, 5
#: What tells the jobs of one cross-validation apart.
_BOUNDS = ("first", "last")


@dataclass(frozen=True)
class Cell:
    """One classifier on one data set, with how it is cross-validated.

    Attributes
    ----------
    model : str
        A name of `learners.names`, or "package.module:Name".
    data : str
        Name of a data set, or of a CSV file.
    target, groups : str or None
        Columns of a CSV file.
    parameters : str
        As in `learners.make`.
    settings : dict
    standardize : {"folds", "all", "none"}
        Features get mean 0 and variance 1 over the training samples of each fit, over all samples, or not.
    folds : int
    stratify : bool
    seed : int
    """

    model: str
    data: str
    target: str | None
    groups: str | None
    parameters: learners.Parameters
    settings: Mapping[str, Any]
    standardize: learners.Standardize
    folds: int
    stratify: bool
    seed: int

    def plan(self) -> Plan:
        """Look at everything before any work is done.

        Returns
        -------
        Plan
        """
        samples = read(self.data, self.target, self.groups)
        X = samples.X
        if self.standardize == "all":
            from sklearn.preprocessing import StandardScaler

            X = StandardScaler().fit_transform(X)
        return prepared(
            self.learner().estimator,
            X,
            samples.y,
            cv=self.folds,
            stratify=self.stratify,
            groups=samples.groups,
            random_state=self.seed,
        )

    def learner(self) -> learners.Learner:
        """The classifier, and where its parameters come from.

        Returns
        -------
        Learner
        """
        return learners.make(
            self.model,
            data=self.data,
            parameters=self.parameters,
            settings=self.settings,
            standardize="folds" if self.standardize == "folds" else "none",
        )

    def describe(self) -> dict[str, Any]:
        """Everything that determines the repeats, as plain values.

        Returns
        -------
        dict
        """
        from milfast.evaluation import file_digest

        learner = self.learner()
        return {
            "model": self.model,
            "data": self.data,
            "target": self.target,
            "groups": self.groups,
            "parameters": self.parameters,
            "settings": dict(self.settings),
            "standardize": self.standardize,
            "folds": self.folds,
            "stratify": self.stratify,
            "seed": self.seed,
            "origin": learner.origin,
            "estimator": learner.described(),
            "digest": file_digest(self.data),
        }


def read(data: str, target: str | None, groups: str | None) -> Samples:
    """Samples of a data set by name, or of a CSV file.

    Parameters
    ----------
    data : str
    target, groups : str or None
        Columns of a CSV file.

    Returns
    -------
    Samples

    Raises
    ------
    ValueError
        When `data` is no table, or the columns do not fit.
    FileNotFoundError
        When it is not on this machine.
    """
    return _read(data, target, groups, _stamp(data))


def _stamp(data: str) -> tuple[int, int] | None:
    """What tells a file from one that was written over it."""
    try:
        found = os.stat(data)
    except OSError:  # a data set by name
        return None
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=2)
def _read(data: str, target: str | None, groups: str | None, _: object) -> Samples:
    from milfast import datasets

    if data.endswith((".csv", ".csv.gz")):
        if target is None:
            raise ValueError(f"{data}: say with target (--target) which column holds the labels")
        return datasets.read_table(data, target=target, groups=groups)
    if data in datasets.names("bags"):
        raise ValueError(
            f"the samples of {data} are bags, which scikit-learn's classifiers do not take: `milfast evaluate` and "
            f"consistency_of do; tables are {', '.join(datasets.names('table'))}"
        )
    X, y = datasets.load(data)
    if groups is not None or target not in (None, "target"):
        raise ValueError(f"{data} is known by name, with its labels and without groups: leave target and groups out")
    return datasets.Samples(X, y, names=())


def specifications(cell: Cell, repeats: int, *, start: int = 0) -> list[dict[str, Any]]:
    """Jobs that do all repeats of a cell.

    Parameters
    ----------
    cell : Cell
    repeats : int
    start : int
        The first repeat that is wanted.

    Returns
    -------
    list of dict
    """
    given = cell.describe()
    size = chunk(len(read(cell.data, cell.target, cell.groups).y))
    return [given | {"first": k, "last": min(k + size, repeats)} for k in range(start, repeats, size)]


def chunk(n_samples: int) -> int:
    """Repeats of a job.

    Parameters
    ----------
    n_samples : int

    Returns
    -------
    int
    """
    return FEW if n_samples > LARGE else LOOK


def run_specification(specification: dict[str, Any]) -> dict[str, Any]:
    """Do the repeats that a specification tells.

    Parameters
    ----------
    specification : dict

    Returns
    -------
    dict
        Error sets as bits, how often each class was predicted, and what the data are.

    Raises
    ------
    ValueError
        When the data are no longer those that the job was made for, or were never in a file.
    """
    if specification.get("digest") is not None:
        from milfast.evaluation import file_digest

        data = specification["data"]
        if data is None:
            raise ValueError(
                "these repeats are of arrays in memory: call cross_validate_consistency with the same study again"
            )
        if file_digest(data) != specification["digest"]:
            raise ValueError(f"{data} has changed since the study was begun: begin a new one")
    start = time.perf_counter()
    plan = _plan(json.dumps({key: value for key, value in specification.items() if key not in _BOUNDS}, sort_keys=True))
    part = plan.run(specification["first"], specification["last"])
    return plain(part, plan) | {"seconds": time.perf_counter() - start}


@lru_cache(maxsize=4)
def _plan(text: str) -> Plan:
    given = json.loads(text)
    return Cell(**{name: given[name] for name in Cell.__dataclass_fields__}).plan()


def plain(part: Part, plan: Plan) -> dict[str, Any]:
    """A part as plain values, for a study.

    Parameters
    ----------
    part : Part
    plan : Plan

    Returns
    -------
    dict
    """
    target = plan.target
    return {
        "errors": [base64.b64encode(row.tobytes()).decode("ascii") for row in part.errors],
        "predicted": part.predicted.tolist(),
        "classes": [str(label) if isinstance(label, bytes) else label for label in plan.y.classes.tolist()],
        "n_samples": len(target.codes),
        "n_most": int(np.bincount(target.codes).max()),
        "warnings": [f"{category.__name__}: {text}" for category, text in part.warnings],
    }


def parsed(first: int, gave: Mapping[str, Any]) -> Part:
    """A part from what a study kept.

    Parameters
    ----------
    first : int
        Its first repeat.
    gave : dict

    Returns
    -------
    Part
    """
    rows = [np.frombuffer(base64.b64decode(text), dtype=np.uint8) for text in gave["errors"]]
    return Part(
        first,
        np.stack(rows),
        np.array(gave["predicted"], dtype=np.uint32),
        warnings=tuple((UserWarning, text) for text in gave["warnings"]),
    )


def in_study(
    path: str | os.PathLike[str],
    plan: Plan,
    repeats: int,
    *,
    stop: str | None,
    n_jobs: int,
    callback: Callable[[int], object] | None,
) -> list[Part]:
    """Parts of a plan of arrays in memory, kept in the file of a study; what is there already is not done again.

    Parameters
    ----------
    path : path
    plan : Plan
    repeats : int
    stop : {"auto"} or None
    n_jobs : int
    callback : callable or None

    Returns
    -------
    list of Part

    Raises
    ------
    ValueError
        When predictions were to be kept, which a study does not.
    TypeError
        When the estimator cannot be pickled, so that it cannot be told from others.
    """
    import joblib

    from milfast.study import Study
    from milfast.study.run import provenance

    if plan.keep_predictions:
        raise ValueError("a study keeps where predictions are wrong, not what they are: leave keep_predictions out")
    try:
        estimator_digest = joblib.hash(plan.estimator)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"a study must tell {type(plan.estimator).__name__} from others, and it cannot be pickled: put functions "
            f"of its own into a module, or leave study out ({error.args[0] if error.args else error})"
        ) from error
    given = {
        "model": type(plan.estimator).__name__,
        "data": None,
        "estimator": learners.described(plan.estimator),
        "digest": joblib.hash(
            (plan.X, plan.y.values, plan.X_test, None if plan.y_test is None else plan.y_test.values, plan.groups)
        ),
        "estimator_digest": estimator_digest,
        "approach": "internal" if plan.y_test is None else "external",
        "folds": plan.folds,
        "stratify": plan.stratify,
        "seed": plan.seed,
    }
    size = chunk(len(plan.y.codes))
    # parts end where `stop` looks, and where a longer study would end them
    bounds = [(k, min(k + size, repeats)) for k in range(0, repeats, size)]
    with Study(path) as study:
        ids = study.add(FUNCTION, [given | {"first": first, "last": last} for first, last in bounds])
        records = {record.id: record for record in study.records(ids)}
        id_of = dict(zip([first for first, _ in bounds], ids, strict=True))
        done = [parsed(first, records[i].result or {}) for first, i in id_of.items() if records[i].state == "done"]
        began = time.perf_counter()

        def keep(part: Part) -> None:
            nonlocal began
            now = time.perf_counter()
            study.store.finish(
                id_of[part.first],
                result=plain(part, plan) | {"seconds": now - began},
                error=None,
                seconds=now - began,
                provenance=provenance(),
            )
            began = now

        return in_processes(plan, repeats, stop=stop, n_jobs=n_jobs, callback=callback, done=done, keep=keep, size=size)


@dataclass(frozen=True, eq=False, repr=False)
class CellResult:
    """What one classifier came to on one data set.

    Attributes
    ----------
    model, data : str
        Names.
    origin : str
        Where the parameters come from, and those that were set.
    estimator : str
        The classifier, as text.
    standardize : str
    result : CrossValidated
    warnings : tuple of str
        What fits warned of.
    """

    model: str
    data: str
    origin: str
    estimator: str
    standardize: str
    result: CrossValidated
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        return f"CellResult({self.model} on {self.data}: {self.result!r})"

    def to_dict(self, *, level: float = 0.95) -> dict[str, Any]:
        """One flat row of plain values.

        Parameters
        ----------
        level : float
            Of the interval of the micro average, over samples.

        Returns
        -------
        dict
        """
        row = self.result.to_dict()
        micro = self.result.consistency.interval(of="micro", level=level).to_dict()
        interval = {"micro": micro["estimate"], "micro_low": micro["low"], "micro_high": micro["high"], "level": level}
        flag = "constant" if self.result.constant else "nearly constant" if self.result.predicted_share > 0.99 else ""
        own = {"parameters": self.origin, "estimator": self.estimator, "standardize": self.standardize}
        return {"model": self.model, "data": self.data} | row | {"model": self.model} | interval | {"flags": flag} | own

    def beside(self, *, level: float = 0.95) -> dict[str, Any] | None:
        """The same, and the figures of table 1 of Levman et al. (2023).

        Parameters
        ----------
        level : float
            As in `to_dict`.

        Returns
        -------
        dict or None
            None where the paper has no such cell.
        """
        figures = learners.printed(self.model, self.data)
        if figures is None:
            return None
        accuracy, accuracy_sd, consistency, consistency_sd = (figure / 100 for figure in figures)
        row = self.to_dict(level=level)
        found = row["consistency"]
        return row | {
            "printed_accuracy": accuracy,
            "printed_accuracy_sd": accuracy_sd,
            "printed_consistency": consistency,
            "printed_consistency_sd": consistency_sd,
            "accuracy_difference": row["accuracy"] - accuracy,
            "consistency_difference": None if found is None else found - consistency,
        }


def combine(pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]], *, auto: bool = False) -> list[CellResult]:
    """Results from specifications and what they gave.

    Parameters
    ----------
    pairs : iterable of (dict, dict)
    auto : bool
        Whether there are as many repeats as ``stop="auto"`` found enough.

    Returns
    -------
    list of CellResult
        In the order in which their first repeats come, each of the repeats that are done.
    """
    groups: dict[str, tuple[dict[str, Any], list[tuple[int, dict[str, Any]]]]] = {}
    for given, gave in pairs:
        key = json.dumps({name: value for name, value in given.items() if name not in _BOUNDS}, sort_keys=True)
        groups.setdefault(key, (given, []))[1].append((given["first"], gave))
    return [_combined(given, gave, auto) for given, gave in groups.values()]


def _combined(given: Mapping[str, Any], gave: Sequence[tuple[int, dict[str, Any]]], auto: bool) -> CellResult:
    external = given.get("approach") == "external"
    sets = given["folds"] if external else 1
    rows: dict[int, tuple[Any, Any]] = {}
    for first, kept in gave:
        part = parsed(first, kept)
        for k in range(len(part.errors) // sets):
            # the same repeat may be in two jobs, when another number of repeats was asked for
            rows.setdefault(
                first + k, (part.errors[k * sets : (k + 1) * sets], part.predicted[k * sets : (k + 1) * sets])
            )
    repeats = sorted(rows)
    facts = gave[0][1]
    result = CrossValidated(
        model=given["model"],
        classes=np.array(facts["classes"]),
        errors=np.concatenate([rows[repeat][0] for repeat in repeats]),
        n_samples=facts["n_samples"],
        predicted=np.concatenate([rows[repeat][1] for repeat in repeats]).sum(axis=0, dtype=np.int64),
        majority=facts["n_most"] / facts["n_samples"],
        approach="external" if external else "internal",
        repeats=len(repeats),
        folds=given["folds"],
        stopped="auto" if auto else "repeats",
        seed=given["seed"],
        seconds=sum(kept["seconds"] for _, kept in gave),
    )
    return CellResult(
        model=given["model"],
        data=given["data"] or "arrays",
        origin=", ".join(
            [
                given.get("origin", "as handed over"),
                *(f"{key}={value}" for key, value in given.get("settings", {}).items()),
            ]
        ),
        estimator=given["estimator"],
        standardize=given.get("standardize", "as handed over"),
        result=result,
        warnings=tuple(dict.fromkeys(text for _, kept in gave for text in kept["warnings"])),
    )


def enough(result: CrossValidated) -> bool:
    """Whether ``stop="auto"`` would stop here.

    Parameters
    ----------
    result : CrossValidated

    Returns
    -------
    bool
    """
    return settled(result.errors, result.n_samples, result.repeats)
