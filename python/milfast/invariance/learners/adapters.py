"""How learners that are not of this package are fitted, asked and read."""

from __future__ import annotations

import copy
import inspect
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from milfast.invariance.learners.base import TASKS, Learner, rows_of, task_of
from milfast.models.signatures import POSITIONAL, signature_of, title_of
from milfast.seeding import seed_sequence, seed_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from milfast.seeding import RandomState

    Vector = NDArray[np.float64]

#: What a learner may call the environments of rows, and the source of randomness.
ENVIRONMENTS = ("env", "envs", "environment", "environments", "groups", "group")
RANDOM = ("rng", "random_state", "seed")
NEEDED = "fit(X, y, env, rng=None, **params) or fit(X, y), and predict(X)"
#: Most rows that weights are compared with predictions on.
COMPARED = 1000


def as_learner(learner: Any, *, name: str | None = None) -> Learner:
    """A learner of whatever the user handed over.

    Parameters
    ----------
    learner : str, class, callable or object
        Name of a learner of this package; "package.module:Name" of one of your own; a class or a function that makes
        one when called without arguments; or an unfitted learner. A learner of your own has ``fit(X, y, env, rng=None,
        **params)`` and ``predict(X)``, as below; an estimator of scikit-learn is one as well.
    name : str, optional
        What it is called in tables; its class's name by default, or its attribute ``name``.

    Returns
    -------
    Learner
        For a learner of your own an `OwnLearner`.

    Raises
    ------
    TypeError
        When a method is missing or the learner cannot be made without arguments.
    ValueError
        When there is no learner, module or attribute of that name.

    Notes
    -----
    ``fit`` gets rows of all environments: X of shape (n, n_features), y of shape (n,), which is 0 or 1 for
    classification, and the number of each row's environment. Environments go to an argument called env, environments or
    groups, or to the third argument where that has no default; a ``fit`` without such an argument does not get them. An
    argument rng gets a ``numpy.random.Generator``, random_state and seed get an integer.

    ``predict`` returns values; for classification scores that are above 0 for label 1, or labels 0 and 1. Where there
    is ``decision_function`` or ``predict_proba``, that is asked instead. Regressors of scikit-learn are fitted to
    labels -1 and 1, so that 0 is halfway.

    ``coef_``, of shape (n_features,) or (1, n_features), and ``intercept_`` are believed where predictions agree with
    them: then risks are exact. ``default_params()`` and ``sample_params(rng)`` give keywords of ``fit`` (or of
    ``set_params``) for a search; without them there is one trial.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from milfast.invariance import as_learner, make_problem, stack
    >>> problem = make_problem("Example1", random_state=0)
    >>> fitted = as_learner(LinearRegression()).fit(*stack(problem.draw(1000).train))
    >>> fitted.name, fitted.coef_.shape, fitted.tasks
    ('LinearRegression', (10,), ('regression', 'classification'))
    """
    if isinstance(learner, str):
        return _named(learner, name)
    if isinstance(learner, type) and issubclass(learner, Learner):
        learner = learner()
    if isinstance(learner, Learner):
        known: Learner = learner if name is None else learner.fresh()
        known.name = name or known.name or title_of(type(known))
        return known
    make: Callable[[], Any] | None = None
    prototype = learner
    if isinstance(learner, type) or (callable(learner) and not hasattr(learner, "fit")):
        make, prototype = learner, _made(learner)
        if isinstance(prototype, Learner):
            return as_learner(prototype, name=name)
    missing = [method for method in ("fit", "predict") if not callable(getattr(prototype, method, None))]
    if "predict" in missing and hasattr(prototype, "decision_function"):
        missing.remove("predict")
    if missing:
        raise TypeError(
            f"a learner needs {NEEDED}; {title_of(type(prototype))} has no {' and no '.join(missing)}"
            + (" (a class or a function of your own must be named package.module:Name)" if prototype is None else "")
        )
    own = getattr(prototype, "name", None)
    return OwnLearner(prototype, name or (own if isinstance(own, str) and own else title_of(make or prototype)), make)


def _named(text: str, name: str | None) -> Learner:
    from milfast.checks.adapters import at, imported
    from milfast.invariance import learners

    if ":" in text:
        with at(f"while loading {text}"):
            found: Learner = as_learner(imported(text), name=name)
        found.reference = text
        return found
    module, dot, attribute = text.rpartition(".")
    if dot and attribute.isidentifier() and text not in learners.names():
        raise ValueError(f"there is no learner {text!r}: one of your own is named {module}:{attribute}")
    made = as_learner(learners.get(text), name=name)
    made.reference = text
    return made


def _made(source: Any) -> Any:
    from milfast.checks.adapters import at

    try:
        with at(f"while making {title_of(source)}"):
            return source()
    except TypeError as error:
        raise TypeError(
            f"{title_of(source)} could not be made without arguments ({error}): hand over an unfitted learner instead"
        ) from error


class OwnLearner(Learner):
    """A learner that is not of this package; see `as_learner`.

    Parameters
    ----------
    prototype : object
        Unfitted; each fit works on a copy.
    name : str
    make : callable, optional
        Makes a copy where it was a class or a function that was handed over.

    Attributes
    ----------
    searches : bool
        Whether it has ``sample_params``.
    takes_environments : bool
        Whether its ``fit`` gets the environments of rows.
    model_ : object
        The fitted copy.
    note_ : str
        Why ``coef_`` is None where the fitted copy has one.
    """

    def __init__(self, prototype: Any, name: str, make: Callable[[], Any] | None = None) -> None:
        self.prototype = prototype
        self.name = name
        self.make = make
        self.searches = callable(getattr(prototype, "sample_params", None))
        self.kind = _kind(prototype)
        only = self.kind == "classifier" or not hasattr(prototype, "predict")
        self.tasks = ("classification",) if only else TASKS
        self._arguments = _arguments(prototype.fit, name)
        self.takes_environments = self._arguments[0] is not None

    def default_params(self) -> dict[str, Any]:
        """Parameters of the first trial of a search.

        Returns
        -------
        dict
            What the learner's own ``default_params()`` says; nothing without it.
        """
        own = getattr(self.prototype, "default_params", None)
        return _as_dict(own() if callable(own) else {} if own is None else own, f"default_params of {self.name}")

    def sample_params(self, rng: np.random.Generator) -> dict[str, Any]:
        """Parameters of another trial.

        Parameters
        ----------
        rng : numpy.random.Generator

        Returns
        -------
        dict
            What the learner's own ``sample_params(rng)`` says; the default ones without it.
        """
        if not self.searches:
            return self.default_params()
        return _as_dict(self.prototype.sample_params(rng), f"sample_params of {self.name}")

    def fit(self, X: ArrayLike, y: ArrayLike, env: ArrayLike, rng: RandomState = None, **params: Any) -> Self:
        """Fit a copy of the learner.

        Parameters
        ----------
        X : array_like, shape (n, n_features)
        y : array_like, shape (n,)
        env : array_like of int, shape (n,)
        rng : int, numpy.random.Generator, numpy.random.SeedSequence or None
        **params
            Keywords of the learner's ``fit``, or of its ``set_params``; ``task``, where it takes none such, says what
            there is to learn.

        Returns
        -------
        OwnLearner
            The learner itself.

        Raises
        ------
        ValueError
            When the task is not one that it can learn, or what it learned cannot be read.
        TypeError
            When it has no such parameter.
        """
        from milfast.checks.adapters import at

        rows, targets, of_row = rows_of(X, y, env)
        task = task_of(targets, params.get("task") if "task" in self._arguments[2] else params.pop("task", None))
        if task not in self.tasks:
            raise ValueError(
                f"{self.name} is a classifier and cannot learn a regression such as Example1: leave out those problems"
            )
        if task == "classification":
            targets = targets.astype(np.int64)
            if self.kind == "regressor":
                targets = 2 * targets - 1
        seed = seed_value(rng)
        model = self._copy(seed)
        keywords = self._set(model, params)
        environments, randomness, _, _ = self._arguments
        if randomness is not None:
            keywords[randomness] = (
                np.random.Generator(np.random.PCG64(seed_sequence(seed))) if randomness == "rng" else seed % 2**32
            )
        # copies, as a learner may work in place, and the next trial and the next learner have the same rows
        given: list[Any] = [rows.copy(), targets.copy()]
        if isinstance(environments, str):
            keywords[environments] = of_row.copy()
        elif environments is not None:
            given.append(of_row.copy())
        with at(f"while fitting {self.name}"):
            model.fit(*given, **keywords)
        self.model_ = model
        self.task_ = task
        self._read(rows)
        return self

    def predict(self, X: ArrayLike) -> Vector:
        """Predicted values, or for classification scores that are above 0 for label 1.

        Parameters
        ----------
        X : array_like, shape (n, n_features)

        Returns
        -------
        ndarray of float64, shape (n,)

        Raises
        ------
        ValueError
            When the learner has not been fitted, or what it returns has another shape or is no number.
        """
        if not hasattr(self, "model_"):
            raise ValueError(f"{self.name} has not been fitted: call fit first")
        from milfast.checks.adapters import at

        rows = np.array(X)  # a copy, as in `fit`
        classification = self.task_ == "classification"
        model = self.model_
        method = "predict"
        if classification:
            known = ("decision_function", "predict_proba", "predict")
            method = next(m for m in known if callable(getattr(model, m, None)))
        with at(f"while {self.name} predicts"):
            returned = getattr(model, method)(rows)
        values = np.asarray(_plain(returned))
        if values.dtype.kind not in "biuf":
            raise ValueError(f"{method} of {self.name} must return real numbers; got dtype {values.dtype}")
        if method == "predict_proba":
            return self._of_probabilities(values, len(rows))
        if values.shape == (len(rows), 1):
            values = values[:, 0]
        if values.shape != (len(rows),):
            raise ValueError(
                f"{method} of {self.name} must return an array of shape ({len(rows)},), one value for each row; "
                f"got {values.shape}"
            )
        labels = classification and method == "predict" and bool(np.isin(values, (0, 1)).all())
        return values.astype(np.float64) - (0.5 if labels and self.kind != "regressor" else 0.0)

    def fresh(self) -> Learner:
        """An unfitted copy.

        Returns
        -------
        Learner
        """
        made = OwnLearner(self.prototype, self.name, self.make)
        made.reference = self.reference
        return made

    def _of_probabilities(self, values: NDArray[Any], n: int) -> Vector:
        classes = np.asarray(getattr(self.model_, "classes_", [0, 1])).tolist()
        if values.shape != (n, len(classes)) or not set(classes) <= {0, 1}:
            raise ValueError(
                f"predict_proba of {self.name} must return an array of shape ({n}, 2), the probabilities of labels 0 "
                f"and 1; got shape {values.shape} for classes {classes}"
            )
        of_one = values[:, classes.index(1)] if 1 in classes else np.zeros(n)
        return np.asarray(of_one, dtype=np.float64) - 0.5

    def _copy(self, seed: int) -> Any:
        if hasattr(self.prototype, "get_params") and hasattr(self.prototype, "set_params"):
            from sklearn.base import clone

            made = clone(self.prototype)
            seeds = [key for key in made.get_params() if key.rpartition("__")[2] == "random_state"]
            return made.set_params(**dict.fromkeys(seeds, seed % 2**32)) if seeds else made
        if self.make is not None:
            return _made(self.make)
        try:
            made = copy.deepcopy(self.prototype)
        except Exception as error:
            error.add_note(f"while copying {self.name}: hand over a function that makes it instead")
            raise
        if hasattr(made, "random_state"):
            made.random_state = seed % 2**32
        return made

    def _set(self, model: Any, params: dict[str, Any]) -> dict[str, Any]:
        """Keywords for `fit`, once those for `set_params` have been set."""
        _, _, named, any_keyword = self._arguments
        settable = model.get_params() if hasattr(model, "get_params") and hasattr(model, "set_params") else {}
        outer = {key: value for key, value in params.items() if key in settable}
        if outer:
            model.set_params(**outer)
        keywords = {key: value for key, value in params.items() if key not in outer}
        unknown = [key for key in keywords if key not in named and not any_keyword]
        if unknown:
            known = ", ".join((*named, *settable)) or "none"
            raise TypeError(f"{self.name} has no parameter {unknown[0]!r}: fit and set_params take {known}")
        return keywords

    def _read(self, rows: NDArray[Any]) -> None:
        """Weights of the fitted copy, where it has some and predicts by them."""
        self.coef_, self.intercept_, self.note_ = None, 0.0, ""
        few = rows[np.linspace(0, len(rows) - 1, min(len(rows), COMPARED)).astype(int)]
        predicted = self.predict(few)
        self.diverged_ = not bool(np.isfinite(predicted).all())
        found = getattr(self.model_, "coef_", None)
        if self.task_ == "classification" and self.kind is None and found is None:
            self._warn_of_probabilities(predicted)
        if found is None:
            return
        coef = np.asarray(_plain(found))
        if coef.shape not in ((rows.shape[1],), (1, rows.shape[1])) or coef.dtype.kind not in "biuf":
            raise ValueError(
                f"coef_ of {self.name} must be real numbers of shape ({rows.shape[1]},) or (1, {rows.shape[1]}); got "
                f"shape {coef.shape}, dtype {coef.dtype}"
            )
        intercept = np.asarray(_plain(getattr(self.model_, "intercept_", 0.0)))
        if intercept.size != 1 or intercept.dtype.kind not in "biuf":
            raise ValueError(f"intercept_ of {self.name} must be one real number; got shape {intercept.shape}")
        weights, bias = coef.reshape(-1).astype(np.float64), float(intercept.reshape(-1)[0])
        if not (np.isfinite(weights).all() and np.isfinite(bias)):
            self.coef_, self.intercept_, self.diverged_ = weights, bias, True
            return
        linear = few.astype(np.float64) @ weights + bias
        near = 1e-4 * (np.abs(few.astype(np.float64)) @ np.abs(weights) + abs(bias)) + 1e-12
        if self.task_ == "classification":
            agree = ((linear > 0) == (predicted > 0)) | (np.abs(linear) <= near)
        else:
            agree = np.abs(linear - predicted) <= near
        if agree.all():
            self.coef_, self.intercept_ = weights, bias
        else:
            self.note_ = (
                f"predictions of {self.name} are not X @ coef_ + intercept_ in {np.count_nonzero(~agree)} of "
                f"{len(few)} rows: risks are measured on rows instead"
            )

    def _warn_of_probabilities(self, predicted: Vector) -> None:
        inside = (predicted > 0) & (predicted < 1)
        if inside.all() and predicted.min() < 0.5 < predicted.max():
            warnings.warn(
                f"all that {self.name} predicts lies between 0 and 1, as probabilities do: scores are compared with 0. "
                "Return logits or labels, or name the method predict_proba",
                stacklevel=4,
            )


def _kind(model: Any) -> str | None:
    """Whether scikit-learn would call it a classifier or a regressor."""
    if not (hasattr(model, "__sklearn_tags__") or hasattr(model, "_estimator_type")):
        return None
    from sklearn.base import is_classifier, is_regressor

    try:
        return "classifier" if is_classifier(model) else "regressor" if is_regressor(model) else None
    except (AttributeError, TypeError):  # something else that has such an attribute
        return None


def _arguments(fit: Callable[..., Any], name: str) -> tuple[str | int | None, str | None, tuple[str, ...], bool]:
    """Where environments go, where randomness goes, the names of other arguments, and whether any keyword goes."""
    parameters = signature_of(fit)
    if parameters is None:  # it does not say what it takes: what the interface has
        return 2, None, (), True
    placed = [p for p in parameters if p.kind in POSITIONAL]
    any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
    if len(placed) < 2:
        raise TypeError(f"fit of {name} must take X and y; it takes {', '.join(p.name for p in placed) or 'nothing'}")
    others = [p for p in parameters if p not in placed[:2] and p.kind is not p.VAR_KEYWORD]
    keywords = [p.name for p in others if p.kind is not p.POSITIONAL_ONLY]
    environments: str | int | None = next((known for known in ENVIRONMENTS if known in keywords), None)
    if environments is None and len(placed) > 2 and placed[2].default is inspect.Parameter.empty:
        environments = 2
    randomness = next((known for known in RANDOM if known in keywords), None)
    taken = {environments, randomness, placed[2].name if environments == 2 and len(placed) > 2 else None}
    left = [p for p in others if p.name not in taken]
    required = [p.name for p in left if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    if required:
        raise TypeError(f"fit of {name} needs {required[0]!r}, which nothing is known for: give it a default")
    return environments, randomness, tuple(name for name in keywords if name not in taken), any_keyword


def _as_dict(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"{what} must be a dict of keywords of fit; got {type(value).__name__}")
    return dict(value)


def _plain(value: Any) -> Any:
    """An array of numpy of one that may be a tensor, sparse or a table."""
    for step in ("detach", "cpu", "toarray"):
        value = getattr(value, step)() if callable(getattr(value, step, None)) else value
    return value
