"""Cross-validation again and again: how accurate a model is, and how alike its errors are from one time to the next."""

from __future__ import annotations

import html
import math
import time
import warnings
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast.consistency.error_consistency import ErrorConsistency, error_consistency
from milfast.consistency.repeats import Labels, Part, Plan, copied, encoded, prediction_codes
from milfast.seeding import root_seed
from milfast.workers import number, stream

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.seeding import RandomState

__all__ = ["CrossValidated", "consistency_of", "cross_validate_consistency"]

Approach: TypeAlias = Literal["internal", "external", "fitted"]

#: Repeats after which it is looked whether there are enough, and which a job of a study does.
LOOK = 25
#: The error of the repeats is small enough when it is this part of the error of the samples.
ENOUGH = 0.1
#: Ones among the bits of a byte.
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)
#: Seconds that processes must save to be started.
WORTH_IT = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidated:
    """Accuracy and error consistency of a model.

    Attributes
    ----------
    model : str
        What it is called.
    classes : ndarray, shape (n_classes,)
        Labels, sorted.
    errors : ndarray of uint8, shape (n_sets, ceil(n_samples / 8))
        Error sets as bits; `error_sets` gives them as booleans.
    n_samples : int
        Samples that were predicted.
    predicted : ndarray of int64, shape (n_classes,)
        How often each class was predicted, over all error sets.
    majority : float
        Share of the most frequent class of the samples: the accuracy of a model that always predicts it.
    approach : {"internal", "external", "fitted"}
        Whether samples were predicted by the models that did not see them, one error set a repeat; or test samples of
        their own by each model, one error set a fold; or by models that were fitted before.
    repeats, folds : int
        How often the samples were dealt into how many folds; 0 for models that were fitted before.
    stopped : {"repeats", "auto"}
        Whether all repeats that were asked for were done, or ``stop="auto"`` found that fewer were enough.
    seed : int or None
        `random_state` with which the result comes out again.
    seconds : float
        Time that it took.
    predictions : ndarray of int or None, shape (n_sets, n_samples)
        Place of each prediction among the classes, where they were to be kept.
    """

    model: str
    classes: NDArray[Any]
    errors: NDArray[np.uint8]
    n_samples: int
    predicted: NDArray[np.int64]
    majority: float
    approach: Approach
    repeats: int
    folds: int
    stopped: Literal["repeats", "auto"]
    seed: int | None
    seconds: float
    predictions: NDArray[Any] | None = None

    @property
    def n_sets(self) -> int:
        """Number of error sets."""
        return len(self.errors)

    @cached_property
    def accuracies(self) -> NDArray[np.float64]:
        """Accuracy of each error set, shape (n_sets,)."""
        return np.asarray(1 - _ONES[self.errors].sum(axis=1, dtype=np.int64) / self.n_samples)

    @property
    def accuracy(self) -> float:
        """Mean accuracy, the overall accuracy (OA)."""
        return float(self.accuracies.mean())

    @property
    def accuracy_sd_runs(self) -> float:
        """Standard deviation of the accuracies over the error sets, with n - 1; NaN for one set."""
        return float(self.accuracies.std(ddof=1)) if self.n_sets > 1 else math.nan

    @property
    def accuracy_sd_pairs(self) -> float:
        """Standard deviation of the mean accuracy of two error sets over all pairs, with n - 1.

        What Levman et al. (2023) print; about `accuracy_sd_runs` divided by the square root of 2. NaN for fewer than
        three sets.
        """
        if self.n_sets < 3:
            return math.nan
        # the sum over pairs of ((a_i + a_j) / 2 - mean)^2 is (m - 2) / 4 times the sum over sets of (a_i - mean)^2
        deviations = self.accuracies - self.accuracies.mean()
        return math.sqrt(float(deviations @ deviations) / (2 * (self.n_sets + 1)))

    @property
    def predicted_share(self) -> float:
        """Share of the class that is predicted most often among all predictions; 1 for a constant classifier."""
        return float(self.predicted.max() / self.predicted.sum())

    @property
    def constant(self) -> bool:
        """Whether all predictions are the same class. Its errors are then always the same, and that means nothing."""
        return bool(np.count_nonzero(self.predicted) == 1)

    @cached_property
    def consistency(self) -> ErrorConsistency:
        """Error consistency of the error sets: the Jaccard index, of all pairs."""
        return error_consistency(self.errors, n_samples=self.n_samples)

    def error_sets(self) -> NDArray[np.bool_]:
        """Error sets as booleans.

        Returns
        -------
        ndarray of bool, shape (n_sets, n_samples)
            True where a prediction is wrong.
        """
        return self.consistency.error_sets()

    def to_dict(self) -> dict[str, Any]:
        """One flat row of plain values.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.
        """
        row = {
            "model": self.model,
            "accuracy": self.accuracy,
            "accuracy_sd_runs": self.accuracy_sd_runs,
            "accuracy_sd_pairs": self.accuracy_sd_pairs,
            "consistency": self.consistency.mean,
            "consistency_sd": self.consistency.sd,
            "n_undefined": self.consistency.n_undefined,
            "majority": self.majority,
            "predicted_share": self.predicted_share,
            "constant": self.constant,
            "approach": self.approach,
            "folds": self.folds,
            "repeats": self.repeats,
            "stopped": self.stopped,
            "n_sets": self.n_sets,
            "n_samples": self.n_samples,
            "seed": self.seed,
            "seconds": self.seconds,
        }
        return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}

    def summary(self) -> str:
        """What was found, in some lines.

        Returns
        -------
        str
        """
        pairs = self.consistency
        how = {
            "internal": f"{self.repeats} repeats of {self.folds} folds, each sample predicted once a repeat",
            "external": f"{self.repeats} repeats of {self.folds} folds, the test samples predicted by every model",
            "fitted": f"{self.n_sets} fitted models",
        }[self.approach]
        spread = f"SD over runs {self.accuracy_sd_runs:.4f}, over pairs of runs {self.accuracy_sd_pairs:.4f}"
        lines = [
            f"{self.model}: {how}, {self.n_samples} samples",
            f"accuracy           {self.accuracy:.4f}, {spread}; the most frequent class has {self.majority:.4f}",
            f"error consistency  {pairs.mean:.4f}, SD over pairs {pairs.sd:.4f}"
            + (f"; {pairs.n_undefined} pairs without any error left out" if pairs.n_undefined else ""),
        ]
        if self.stopped == "auto":
            lines.append(f"stopped when the error of the runs fell below {ENOUGH:g} times that of the samples")
        if self.constant:
            lines.append("constant: every prediction is the same class, so the error consistency means nothing")
        return "\n".join(lines)

    def __repr__(self) -> str:
        pairs = self.consistency
        constant = ", constant" if self.constant else ""
        return (
            f"CrossValidated({self.model}: accuracy {self.accuracy:.4f}, error consistency {pairs.mean:.4f}, "
            f"n_sets={self.n_sets}, n_samples={self.n_samples}{constant})"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"


def cross_validate_consistency(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    cv: int = 5,
    repeats: int = 500,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    stratify: bool = True,
    n_jobs: int = 1,
    random_state: RandomState = None,
    stop: Literal["auto"] | None = None,
    keep_predictions: bool = False,
    callback: Callable[[int, int], object] | None = None,
    study: str | os.PathLike[str] | None = None,
) -> CrossValidated:
    """Cross-validate a model many times, and compare on which samples it errs.

    Without test samples every repeat predicts each sample once, by the model that was trained without its fold: one
    error set a repeat. With them, each model of each repeat predicts all of them: one error set a fold.

    Repeat r depends on nothing but `random_state` and r: its folds, and the seeds of its models. Any number of
    processes gives the same bits.

    Parameters
    ----------
    estimator : object
        A scikit-learn classifier or `Pipeline`, not fitted; anything that `sklearn.base.clone` copies and that has
        ``fit(X, y)`` and ``predict(X)``. All of its parameters named ``random_state``, also those of what it is made
        of, get a seed for each fit, whatever they are.
    X : array_like, data frame or sparse matrix, n_samples rows
    y : array_like, shape (n_samples,)
        Labels of two or more classes: integers, floats, booleans or strings.
    cv : int
        Number of folds.
    repeats : int
        How often the samples are dealt into folds anew.
    X_test : like `X`, optional
        Test samples of their own, which no model is trained on.
    y_test : array_like, optional
        Their labels.
    groups : array_like, shape (n_samples,), optional
        Samples of one group, one patient say, stay in one fold.
    stratify : bool
        Whether each fold gets its share of every class.
    n_jobs : int
        Processes; -1 for one per processor. They are only started where they save time.
    random_state : int, Generator, SeedSequence or None
        Seeds folds and models.
    stop : {"auto"}, optional
        Stop as soon as more repeats would say little: when the standard error of the error consistency over runs
        (jackknife) is below a tenth of that over samples (delta method). This is looked at every 25 repeats.
    keep_predictions : bool
        Keep what was predicted, not only where it was wrong.
    callback : callable, optional
        Called as ``callback(repeats done, repeats)``.
    study : path, optional
        File in which to keep what is done: the same call goes on where it was stopped.

    Returns
    -------
    CrossValidated
        Held in memory is a bit for each sample and error set.

    Raises
    ------
    ValueError
        When `y` has missing labels, lengths differ, a class or the groups are too few for the folds, or a number is out
        of range: all before the first fit. When the model predicts something that is no label.
    TypeError
        When `estimator` is a class, or lacks a method.
    Exception
        Whatever the model raises, with a note that says in which repeat and fold.

    Warns
    -----
    UserWarning
        When every prediction is the same class. The error consistency is then 1 and means nothing.

    References
    ----------
    .. [1] Levman, Ewenson, Apaloo, Berger & Tyrrell (2023), Error consistency for machine learning evaluation and
       validation with application to biomedical diagnostics, Diagnostics 13(7), 1315.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from milfast.consistency import cross_validate_consistency
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> result = cross_validate_consistency(model, X, y, repeats=5, random_state=0)
    >>> result.n_sets, result.accuracy > 0.97, result.constant
    (5, True, False)
    """
    if stop not in (None, "auto"):
        raise ValueError(f'stop must be None or "auto"; got {stop!r}')
    if isinstance(repeats, bool) or not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise ValueError(f"repeats must be an integer of at least 1; got {repeats!r}")
    plan = prepared(
        estimator,
        X,
        y,
        cv=cv,
        X_test=X_test,
        y_test=y_test,
        groups=groups,
        stratify=stratify,
        random_state=random_state,
        keep_predictions=keep_predictions,
    )
    start = time.perf_counter()
    progress = None if callback is None else partial(_told, callback, int(repeats))
    if study is None:
        parts = in_processes(plan, int(repeats), stop=stop, n_jobs=n_jobs, callback=progress)
    else:
        from milfast.consistency.jobs import in_study

        parts = in_study(study, plan, int(repeats), stop=stop, n_jobs=n_jobs, callback=progress)
    result = assembled(
        parts,
        model=type(estimator).__name__,
        target=plan.target,
        classes=plan.y.classes,
        approach="internal" if plan.y_test is None else "external",
        folds=plan.folds,
        asked=int(repeats),
        seed=plan.seed,
        seconds=time.perf_counter() - start,
    )
    for category, text in dict.fromkeys(told for part in parts for told in part.warnings):
        warnings.warn(text, category, stacklevel=2)
    if result.constant:
        _warn_of_constant(result)
    return result


def consistency_of(models: Iterable[Any], X: Any, y: ArrayLike | None = None) -> CrossValidated:
    """Accuracy and error consistency of models that are fitted already.

    Parameters
    ----------
    models : iterable of object
        Each with ``predict``.
    X : array_like, data frame, sparse matrix or Bags
        Samples that none of the models was trained on. With `milfast.Bags` the bags are the samples.
    y : array_like, shape (n_samples,), optional
        Labels; for bags by default theirs. Classes that only the models know, by their ``classes_``, may be predicted,
        and are wrong.

    Returns
    -------
    CrossValidated
        One error set a model.

    Raises
    ------
    ValueError
        When there is no model, labels are missing, lengths differ, or a model predicts something that is no label.
    TypeError
        When a model has no ``predict``.

    Examples
    --------
    >>> import milfast as mf
    >>> from milfast.consistency import consistency_of
    >>> training, fresh = (mf.sample_bags("presence", 80, random_state=seed) for seed in (0, 1))
    >>> models = [mf.models.get(name)().fit(training) for name in ("NSK", "STK")]
    >>> consistency_of(models, fresh).n_sets
    2
    """
    from milfast.bags import Bags

    start = time.perf_counter()
    models = list(models)
    if not models:
        raise ValueError("models is empty: at least one fitted model is needed")
    for place, model in enumerate(models):
        _check_methods(model, f"models[{place}]", ("predict",))
    if isinstance(X, Bags):
        n_samples = X.n_bags
        if y is None:
            if X.labels is None:
                raise ValueError("X carries no labels: give them with Bags(..., labels=...), or as y")
            y = X.labels
    elif y is None:
        raise ValueError("y is missing: only bags carry labels of their own")
    else:
        X, n_samples = _samples(X, "X")
    target = Labels.of(y, "y", n_samples)
    more = _known_only_to(models, target.classes)
    if len(more):
        target = Labels.of(target.values, "y", n_samples, np.union1d(target.classes, more))
    errors = np.empty((len(models), (n_samples + 7) // 8), dtype=np.uint8)
    predicted = np.zeros(len(target.classes), dtype=np.int64)
    for row, model in enumerate(models):
        try:
            codes = prediction_codes(model.predict(copied(X)), target.classes, n_samples, type(model).__name__)
        except Exception as error:
            error.add_note(f"while predicting with models[{row}]")
            raise
        errors[row] = np.packbits(codes != target.codes)
        predicted += np.bincount(codes, minlength=len(predicted))
    result = CrossValidated(
        model=", ".join(dict.fromkeys(type(model).__name__ for model in models)),
        classes=target.classes,
        errors=errors,
        n_samples=n_samples,
        predicted=predicted,
        majority=float(np.bincount(target.codes).max() / n_samples),
        approach="fitted",
        repeats=0,
        folds=0,
        stopped="repeats",
        seed=None,
        seconds=time.perf_counter() - start,
    )
    if result.constant:
        _warn_of_constant(result)
    return result


def _known_only_to(models: Iterable[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Classes of models that no sample has: to predict them is an error, and not a model of something else."""
    found = classes[:0]
    for model in models:
        own = getattr(model, "classes_", None)
        if isinstance(own, np.ndarray) and own.ndim == 1 and _kind(own) == _kind(classes):
            found = np.union1d(found, own[encoded(own, classes) < 0])
    return found


def _kind(labels: NDArray[Any]) -> str:
    """Numbers can be put in order with numbers, and strings with strings."""
    return "number" if labels.dtype.kind in "biuf" else labels.dtype.kind


def _told(callback: Callable[[int, int], object], total: int, done: int) -> None:
    callback(done, total)


def _warn_of_constant(result: CrossValidated) -> None:
    [label] = result.classes[result.predicted > 0].tolist()
    warnings.warn(
        f"{result.model} predicts {label!r} for every sample, always: its error consistency is that of a constant and "
        f"means nothing, and its accuracy is the share of that class",
        UserWarning,
        stacklevel=3,
    )


# -------------------------------------------------------------------- looking at what was given


def prepared(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: int,
    stratify: bool,
    random_state: RandomState,
    X_test: Any = None,
    y_test: Any = None,
    groups: Any = None,
    keep_predictions: bool = False,
) -> Plan:
    """Look at all arguments before any work is done; they are those of `cross_validate_consistency`.

    Returns
    -------
    Plan
    """
    if isinstance(estimator, type):
        raise TypeError(f"estimator is the class {estimator.__name__}: hand over an instance, {estimator.__name__}()")
    _check_methods(estimator, "estimator", ("fit", "predict", "get_params"))
    if isinstance(cv, bool) or not isinstance(cv, (int, np.integer)):
        raise TypeError(
            f"cv must be a number of folds, as the samples are dealt anew in each repeat; got {type(cv).__name__}"
        )
    if cv < 2:
        raise ValueError(f"cv must be at least 2 folds; got {cv}")
    if (X_test is None) != (y_test is None):
        missing, given = ("X_test", "y_test") if X_test is None else ("y_test", "X_test")
        raise ValueError(f"{given} needs {missing}: test samples have features and labels")
    X, n_samples = _samples(X, "X")
    labels = Labels.of(y, "y", n_samples)
    if len(labels.classes) < 2:
        raise ValueError(f"y has one class only, {labels.classes.tolist()}: there is nothing to tell apart")
    if stratify:
        counts = np.bincount(labels.codes)
        smallest = int(counts.argmin())
        if counts[smallest] < cv:
            raise ValueError(
                f"class {labels.classes.tolist()[smallest]!r} has {counts[smallest]} samples, too few for cv={cv} "
                "folds: take fewer folds, leave the class out, or say stratify=False"
            )
    test_labels = None
    if X_test is not None:
        X_test, n_test = _samples(X_test, "X_test")
        width, test_width = (getattr(data, "shape", (0,))[1:] for data in (X, X_test))
        if width != test_width:
            raise ValueError(f"X_test has shape {X_test.shape}, X has {X.shape}: they must have the same features")
        test_labels = Labels.of(y_test, "y_test", n_test, labels.classes)
    grouped = None
    if groups is not None:
        grouped = Labels.of(groups, "groups", n_samples).codes
    finite = _finite(X, "X", estimator)
    if X_test is not None:
        finite = _finite(X_test, "X_test", estimator) and finite
    return Plan(
        estimator=estimator,
        X=X,
        y=labels,
        X_test=X_test,
        y_test=test_labels,
        folds=int(cv),
        stratify=bool(stratify),
        groups=grouped,
        seed=root_seed(random_state),
        finite=finite,
        keep_predictions=keep_predictions,
    )


def _check_methods(model: Any, name: str, methods: Sequence[str]) -> None:
    if isinstance(model, type):
        raise TypeError(f"{name} is the class {model.__name__}: hand over an instance")
    lacking = [method for method in methods if not callable(getattr(model, method, None))]
    if lacking:
        raise TypeError(f"{name} must have {' and '.join(methods)}; {type(model).__name__} lacks {', '.join(lacking)}")


def _samples(X: Any, name: str) -> tuple[Any, int]:
    """Features that rows can be taken from, and the number of rows."""
    from sklearn.utils import indexable

    if isinstance(X, (list, tuple)):
        X = np.asarray(X)
    if not hasattr(X, "__len__") and not getattr(X, "shape", ()):
        raise TypeError(f"{name} must hold one row a sample; got {type(X).__name__}")
    [X] = indexable(X)
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_samples == 0:
        raise ValueError(f"{name} is empty: at least one sample is needed")
    if type(X) is np.ndarray:
        X = np.ascontiguousarray(X)
    return X, int(n_samples)


def _finite(X: Any, name: str, estimator: Any) -> bool:
    """Whether no fit has to look for NaN and infinity again; refuses them where the estimator cannot take them."""
    if type(X) is not np.ndarray or X.dtype.kind not in "biuf":
        return False
    composite = any("__" in parameter for parameter in estimator.get_params(deep=True))
    odd = np.argwhere(~np.isfinite(X)) if X.dtype.kind == "f" else np.empty((0, X.ndim), dtype=int)
    if not len(odd):
        # steps of a pipeline, and what others wrote, may make NaN of finite numbers, which the next one has to refuse
        return not composite and type(estimator).__module__.startswith("sklearn.")
    if not composite and not _takes_nan(estimator):
        place = tuple(odd[0].tolist())
        raise ValueError(
            f"{name}[{', '.join(map(str, place))}] is {X[place]}, and {type(estimator).__name__} takes finite numbers "
            "only: impute it, in a Pipeline say"
        )
    return False


def _takes_nan(estimator: Any) -> bool:
    """Whether an estimator says that it takes NaN; True where nothing is known."""
    try:
        from sklearn.utils import get_tags

        return bool(get_tags(estimator).input_tags.allow_nan)
    except Exception:
        return True


# -------------------------------------------------------------------- doing the repeats


def in_processes(
    plan: Plan,
    repeats: int,
    *,
    stop: str | None,
    n_jobs: int,
    callback: Callable[[int], object] | None = None,
    done: Iterable[Part] = (),
    keep: Callable[[Part], object] | None = None,
    size: int | None = None,
) -> list[Part]:
    """Parts of a plan, in order, as many as it takes.

    Parameters
    ----------
    plan : Plan
    repeats : int
        At most so many.
    stop : {"auto"} or None
    n_jobs : int
    callback : callable, optional
        ``callback(repeats done)``.
    done : iterable of Part, optional
        What is there already.
    keep : callable, optional
        Called with each new part at once.
    size : int, optional
        Repeats of a part; by default what suits the number of processes.

    Returns
    -------
    list of Part
    """
    workers = number(n_jobs)
    progress = _Progress(plan, repeats, stop, done)
    if size is None and workers > 1:
        # what comes first is done here: it shows whether processes pay
        began = time.perf_counter()
        for last in (1, 5):
            if progress.wanted(last):
                progress.add(plan.run(progress.reached, last), callback)
        each = (time.perf_counter() - began) / max(progress.reached, 1)
        if each * (repeats - progress.reached) * (1 - 1 / workers) < WORTH_IT:
            workers = 1
    step = size or (LOOK if workers == 1 else max(1, min(LOOK, math.ceil(repeats / (4 * workers)))))
    for part in stream(partial(_run, plan), progress.left(step), n_jobs=workers):
        if keep is not None:
            keep(part)
        progress.add(part, callback)
    return progress.parts()


def _run(plan: Plan, bounds: tuple[int, int]) -> Part:
    return plan.run(*bounds)


class _Progress:
    """Repeats that are done, and whether there are enough of them."""

    def __init__(self, plan: Plan, repeats: int, stop: str | None, done: Iterable[Part]) -> None:
        self.plan = plan
        self.repeats = repeats
        self.auto = stop == "auto"
        self.reached = 0
        self.enough: int | None = None
        self._count = 0
        self._parts: dict[int, Part] = {}
        for part in done:
            self.add(part, None)

    def wanted(self, last: int) -> bool:
        """Whether repeats up to this one are still to be done."""
        return self.enough is None and self.reached < last <= self.repeats

    def add(self, part: Part, callback: Callable[[int], object] | None) -> None:
        """Take a part, in whatever order they come."""
        self._parts[part.first] = part
        self._count += self._length(part)
        before = self.reached
        while self.reached in self._parts:
            self.reached += self._length(self._parts[self.reached])
        if callback is not None:
            callback(min(self._count, self.repeats))
        # looked at after 25, 50, ... repeats, so that the answer does not depend on how they are handed out
        for look in range(before // LOOK + 1, self.reached // LOOK + 1):
            if self.auto and self.enough is None and look * LOOK < self.repeats and self._settled(look * LOOK):
                self.enough = look * LOOK

    def left(self, step: int) -> Iterator[tuple[int, int]]:
        """Bounds of parts that are to be done; ends as soon as there is enough."""
        first = self.reached
        while first < self.repeats and self.enough is None:
            # parts end where is looked
            last = min(self.repeats, first + step, (first // LOOK + 1) * LOOK)
            if first not in self._parts:
                yield first, last
            else:
                last = first + self._length(self._parts[first])
            first = last

    def parts(self) -> list[Part]:
        """What counts, in order."""
        last = self.repeats if self.enough is None else self.enough
        return [part for first, part in sorted(self._parts.items()) if first < last]

    def _length(self, part: Part) -> int:
        return len(part.errors) // self.plan.sets_per_repeat

    def _settled(self, repeats: int) -> bool:
        errors = np.concatenate([part.errors for first, part in sorted(self._parts.items()) if first < repeats])
        return settled(errors[: repeats * self.plan.sets_per_repeat], len(self.plan.target.codes), repeats)


def settled(errors: NDArray[np.uint8], n_samples: int, repeats: int) -> bool:
    """Whether more repeats would say little about the error consistency.

    Parameters
    ----------
    errors : ndarray of uint8, shape (n_sets, ceil(n_samples / 8))
        Bits; the sets of one repeat are neighbours.
    n_samples : int
    repeats : int

    Returns
    -------
    bool
        Whether the standard error over repeats, by a jackknife that leaves out one at a time, is at most a tenth of
        that over samples, by the delta method for the micro average.
    """
    found = error_consistency(errors, n_samples=n_samples)
    owner = np.repeat(np.arange(repeats), len(errors) // repeats)
    return found.standard_error("runs", groups=owner) <= ENOUGH * found.standard_error("samples", of="micro")


def assembled(
    parts: Sequence[Part],
    *,
    model: str,
    target: Labels,
    classes: NDArray[Any],
    approach: Approach,
    folds: int,
    asked: int,
    seed: int,
    seconds: float,
) -> CrossValidated:
    """The result of all parts.

    Parameters
    ----------
    parts : sequence of Part
        In order.
    model : str
    target : Labels
        Of the samples that were predicted.
    classes : ndarray
    approach : {"internal", "external"}
    folds : int
    asked : int
        Repeats that were asked for.
    seed : int
    seconds : float

    Returns
    -------
    CrossValidated
    """
    errors = np.concatenate([part.errors for part in parts])
    repeats = len(errors) // (1 if approach == "internal" else folds)
    kept = [part.predictions for part in parts if part.predictions is not None]
    return CrossValidated(
        model=model,
        classes=classes,
        errors=errors,
        n_samples=len(target.codes),
        predicted=np.concatenate([part.predicted for part in parts]).sum(axis=0, dtype=np.int64),
        majority=float(np.bincount(target.codes).max() / len(target.codes)),
        approach=approach,
        repeats=repeats,
        folds=folds,
        stopped="auto" if repeats < asked else "repeats",
        seed=seed,
        seconds=seconds,
        predictions=np.concatenate(kept) if kept else None,
    )
