"""The work of repeated cross-validation: fit, predict, and keep a bit a sample.

Repeat r depends on nothing but the seed and r. So it does not matter which process does it, after which, or when.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.consistency.folds import Folds
from milfast.seeding import seed_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of samples, and the classes they are of.

    Attributes
    ----------
    values : ndarray, shape (n_samples,)
        As they were given.
    classes : ndarray, shape (n_classes,)
        Different labels, sorted.
    codes : ndarray of int, shape (n_samples,)
        Place of each label among the classes.
    """

    values: NDArray[Any]
    classes: NDArray[Any]
    codes: NDArray[np.intp]

    @classmethod
    def of(cls, y: Any, name: str, n_samples: int, classes: NDArray[Any] | None = None) -> Labels:
        """Look at labels.

        Parameters
        ----------
        y : array_like, shape (n_samples,)
            Integers, floats, booleans or strings.
        name : str
            What to call them in messages.
        n_samples : int
            How many there must be.
        classes : ndarray, optional
            The only labels there may be.

        Returns
        -------
        Labels

        Raises
        ------
        ValueError
            When the shape is wrong, a label is missing (NaN, None), or none of `classes`.
        TypeError
            When labels cannot be put in order, as numbers and strings together.
        """
        values = _read(y, name)
        if values.ndim != 1:
            raise ValueError(f"{name} must have one label a sample, shape (n_samples,); its shape is {values.shape}")
        if len(values) != n_samples:
            samples = "X_test" if name == "y_test" else "X"
            raise ValueError(f"{name} has {len(values)} entries, {samples} has {n_samples} samples")
        for place in np.flatnonzero(missing(values)):
            raise ValueError(f"{name}[{place}] is {values[place]}: a sample without one cannot be used, leave it out")
        if classes is None:
            try:
                classes, codes = np.unique(values, return_inverse=True)
            except TypeError:
                kinds = sorted({type(value).__name__ for value in values})
                raise TypeError(f"{name} must hold labels of one type; it has {' and '.join(kinds)}") from None
            return cls(values, classes, codes)
        found = encoded(values, classes)
        for place in np.flatnonzero(found < 0):
            raise ValueError(
                f"{name}[{place}] is {values[place]!r}, which is none of the labels in y: no model can predict it"
            )
        return cls(values, classes, found)


def _read(y: Any, name: str) -> NDArray[Any]:
    """Labels as an array; a list of several types is not made one of strings, which would make labels of NaN or 1."""
    mask = np.ma.getmaskarray(y) if isinstance(y, np.ma.MaskedArray) else np.zeros(0, dtype=bool)
    for place in np.flatnonzero(mask):
        raise ValueError(f"{name}[{place}] is masked: a sample without a label cannot be used, leave it out")
    values = np.asarray(y)
    if values.dtype.kind in "US" and not isinstance(y, np.ndarray):
        given = np.asarray(y, dtype=object)
        if not all(isinstance(value, (str, bytes)) for value in given.flat):
            return given
    return values


def missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are none: NaN, None, or pandas' own signs for it."""
    if values.dtype.kind in "fc":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "M":
        return np.asarray(np.isnat(values))
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.array(
        [
            value is None
            or type(value).__name__ in ("NAType", "NaTType")
            or (isinstance(value, (float, np.floating)) and np.isnan(value))
            for value in values
        ],
        dtype=bool,
    )


def encoded(values: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Place of each value among sorted classes, -1 where it is none of them.

    Parameters
    ----------
    values : ndarray, shape (n,)
    classes : ndarray, shape (n_classes,)

    Returns
    -------
    ndarray of int, shape (n,)
    """
    try:
        codes = np.searchsorted(classes, values)
    except TypeError:  # a string among numbers
        return np.full(len(values), -1)
    np.minimum(codes, len(classes) - 1, out=codes)
    same = np.asarray(classes[codes] == values)
    if same.shape == codes.shape and same.all():
        return codes
    return np.where(same, codes, -1)


@dataclass(frozen=True, eq=False)
class Part:
    """What some repeats gave.

    Attributes
    ----------
    first : int
        The first of them.
    errors : ndarray of uint8, shape (n_sets, ceil(n_samples / 8))
        Error sets as bits, as of ``np.packbits(errors, axis=1)``: one a repeat, or with test samples of their own one
        a fold.
    predicted : ndarray of uint32, shape (n_sets, n_classes)
        How often each class was predicted.
    predictions : ndarray of int or None, shape (n_sets, n_samples)
        Place of each prediction among the classes, where they were to be kept.
    warnings : tuple of (type, str)
        What was warned of, each once.
    """

    first: int
    errors: NDArray[np.uint8]
    predicted: NDArray[np.uint32]
    predictions: NDArray[Any] | None = None
    warnings: tuple[tuple[type[Warning], str], ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that repeats of a cross-validation depend on.

    Attributes
    ----------
    estimator : object
        Not fitted; every fold fits a copy.
    X : array_like, data frame or sparse matrix, n_samples rows
    y : Labels
    X_test : the same, or None
        Samples that all models predict; None to predict those that were left out of the training.
    y_test : Labels or None
    folds : int
    stratify : bool
    groups : ndarray or None
    seed : int
        Root seed.
    finite : bool
        Whether no fit has to look for NaN and infinity again: all features are known to be finite, and the estimator
        makes no others of them.
    keep_predictions : bool
    """

    estimator: Any
    X: Any
    y: Labels
    X_test: Any
    y_test: Labels | None
    folds: int
    stratify: bool
    groups: NDArray[Any] | None
    seed: int
    finite: bool
    keep_predictions: bool = False
    dealer: Folds = field(init=False, repr=False)

    def __post_init__(self) -> None:
        dealer = Folds(self.y.codes, self.folds, stratify=self.stratify, groups=self.groups)
        object.__setattr__(self, "dealer", dealer)

    @property
    def target(self) -> Labels:
        """Labels of the samples that are predicted."""
        return self.y if self.y_test is None else self.y_test

    @property
    def sets_per_repeat(self) -> int:
        """Error sets that a repeat gives."""
        return 1 if self.y_test is None else self.folds

    def run(self, first: int, last: int) -> Part:
        """Do repeats `first` to `last` - 1.

        Parameters
        ----------
        first, last : int

        Returns
        -------
        Part

        Raises
        ------
        ValueError
            When the estimator predicts something that is no label.
        Exception
            Whatever the estimator raises, with a note that says where.
        """
        import sklearn
        from threadpoolctl import threadpool_limits

        n_sets = (last - first) * self.sets_per_repeat
        n_samples, n_classes = len(self.target.codes), len(self.y.classes)
        kept = np.empty((n_sets, n_samples), dtype=np.min_scalar_type(n_classes)) if self.keep_predictions else None
        errors = np.empty((n_sets, (n_samples + 7) // 8), dtype=np.uint8)
        predicted = np.empty((n_sets, n_classes), dtype=np.uint32)
        row = 0
        # sums of BLAS depend on its number of threads, so here it is one, in whatever process
        with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
            fits = _Fits(self)
            for repeat in range(first, last):
                # parameters are looked at in the first fit, as they are the same in all others
                with sklearn.config_context(
                    assume_finite=self.finite or sklearn.get_config()["assume_finite"],
                    skip_parameter_validation=repeat > first,
                ):
                    for codes in fits.predictions(repeat):
                        errors[row] = np.packbits(codes != self.target.codes)
                        predicted[row] = np.bincount(codes, minlength=n_classes)
                        if kept is not None:
                            kept[row] = codes
                        row += 1
        told = tuple(dict.fromkeys((each.category, str(each.message)) for each in caught))
        return Part(first, errors, predicted, kept, told)


class _Fits:
    """Fits copies of the estimator of a plan, and predicts."""

    def __init__(self, plan: Plan) -> None:
        from sklearn.base import clone

        self.plan = plan
        self.fresh = clone(plan.estimator)
        self.random = random_states(self.fresh)
        self.owners = _owners(self.fresh, self.random)
        self.frame = not isinstance(plan.X, np.ndarray)

    def predictions(self, repeat: int) -> Iterator[NDArray[np.intp]]:
        """Codes of the predictions for each error set of a repeat."""
        from milfast.checks.adapters import at

        plan = self.plan
        fold_of = plan.dealer.dealt(seed_value(plan.seed, repeat) % 2**32)
        together = np.empty(len(plan.y.codes), dtype=np.intp)
        for fold in range(plan.folds):
            test = fold_of == fold
            train = np.flatnonzero(~test)
            test = np.flatnonzero(test)
            with at(f"while cross-validating {type(plan.estimator).__name__}, repeat {repeat + 1}, fold {fold + 1}"):
                model = self.copy(repeat, fold)
                model.fit(self.rows(train), plan.y.values[train])
                if plan.X_test is None:
                    together[test] = self.codes(model.predict(self.rows(test)), len(test))
                    continue
                codes = self.codes(model.predict(copied(plan.X_test)), len(plan.target.codes))
            yield codes
        if plan.X_test is None:
            yield together

    def copy(self, repeat: int, fold: int) -> Any:
        """An unfitted copy with seeds of its own."""
        copied: dict[int, Any] = {}
        model = copy.deepcopy(self.fresh, copied)  # as good as a clone, as nobody fits it, and faster
        path = (repeat, fold)
        seeds = [seed_value(self.plan.seed, *path, place) % 2**31 for place in range(len(self.random))]
        if self.owners is None:
            return model.set_params(**dict(zip(self.random, seeds, strict=True)))
        for owner, seed in zip(self.owners, seeds, strict=True):
            copied[id(owner)].random_state = seed  # all that its set_params does
        return model

    def rows(self, index: NDArray[np.intp]) -> Any:
        """A copy of some samples."""
        if not self.frame:
            return self.plan.X[index]
        from sklearn.utils import _safe_indexing

        return _safe_indexing(self.plan.X, index)

    def codes(self, predicted: Any, n_samples: int) -> NDArray[np.intp]:
        """Places of predictions among the classes."""
        classes = self.plan.y.classes
        return prediction_codes(predicted, classes, n_samples, type(self.plan.estimator).__name__)


def copied(X: Any) -> Any:
    """Samples that a model may change, as ``StandardScaler(copy=False)`` does, without any other one seeing it."""
    return X.copy() if isinstance(X, np.ndarray) or hasattr(X, "iloc") or hasattr(X, "tocsr") else X


def prediction_codes(predicted: Any, classes: NDArray[Any], n_samples: int, model: str) -> NDArray[np.intp]:
    """Places of predictions among the classes.

    Parameters
    ----------
    predicted : array_like
        What ``predict`` gave.
    classes : ndarray, shape (n_classes,)
    n_samples : int
        How many there must be.
    model : str
        What to call the model in messages.

    Returns
    -------
    ndarray of int, shape (n_samples,)

    Raises
    ------
    ValueError
        When there is not one prediction a sample, or one is no label.
    """
    values = np.asarray(predicted)
    if values.shape == (n_samples, 1):
        values = values[:, 0]
    if values.shape != (n_samples,):
        raise ValueError(f"{model}.predict must give one label a sample, {n_samples}; its shape is {values.shape}")
    codes = encoded(values, classes)
    for place in np.flatnonzero(codes < 0):
        known = ", ".join(repr(label) for label in classes[:5].tolist()) + (", ..." if len(classes) > 5 else "")
        raise ValueError(
            f"{model} predicts {values[place : place + 1].tolist()[0]!r} for sample {place}, which is none of the "
            f"labels ({known}): it must be a classifier of them"
        )
    return codes


def _owners(estimator: Any, names: list[str]) -> list[Any] | None:
    """What has each `random_state`, where setting a parameter is setting an attribute; None where it may be more."""
    from sklearn.base import BaseEstimator

    parameters = estimator.get_params(deep=True)
    owners = [
        estimator if name == "random_state" else parameters[name.removesuffix("__random_state")] for name in names
    ]
    usual = all(
        isinstance(owner, BaseEstimator)
        and type(owner).set_params is BaseEstimator.set_params
        and "random_state" in vars(owner)
        for owner in owners
    )
    return owners if usual else None


def random_states(estimator: Any) -> list[str]:
    """Names of all parameters, nested ones too, that seed an estimator.

    Parameters
    ----------
    estimator : object
        With ``get_params``.

    Returns
    -------
    list of str
        Sorted.

    Examples
    --------
    >>> from sklearn.ensemble import BaggingClassifier
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from milfast.consistency.repeats import random_states
    >>> random_states(make_pipeline(BaggingClassifier(SGDClassifier())))
    ['baggingclassifier__estimator__random_state', 'baggingclassifier__random_state']
    """
    names = estimator.get_params(deep=True)
    return sorted(name for name in names if name == "random_state" or name.endswith("__random_state"))
