"""How a check talks to a model: the few methods it needs, whatever the model is."""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import json
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast import models
from milfast.bags import Bags, to_host
from milfast.checks.catalogue import CLAIMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

#: Ways to score, best first.
SCORING = ("decision_function", "predict_proba", "predict")
NEEDED = "fit(bags) or fit(bags, labels), and one of decision_function(bags), predict_proba(bags) or predict(bags)"


@dataclass(frozen=True)
class Subject:
    """A model to be checked, before it is fitted.

    Attributes
    ----------
    name : str
        What it is called in results.
    family : str or None
        "svm" or "deep" for models that say so: decides how many training bags a scale gives.
    prototype : object
        An unfitted model, of which every run gets a copy.
    claims : str or None
        The assumption that the model's attribute `claims` says it respects: "standard", "threshold" or "correlated".
    reference : str or None
        Text that `of` makes the same subject from, where there is one: a registered name or "package.module:Name".
    """

    name: str
    family: str | None
    prototype: Any
    claims: str | None = None
    reference: str | None = None

    @classmethod
    def of(cls, model: Any, *, tested: bool = True) -> Subject:
        """Make a subject of whatever the user handed over.

        Parameters
        ----------
        model : str, class, or object
            Name of a registered model; "package.module:Name" of one of your own; a class or function that makes a model
            when called; or an unfitted model.
        tested : bool
            Whether a registered model is taken with the settings of Raff & Holt (2023) rather than with its defaults.

        Returns
        -------
        Subject

        Raises
        ------
        TypeError
            When the model lacks a method.
        ValueError
            When there is no model, module or attribute of that name, or the model claims an assumption that is unknown.
        ImportError
            When the model needs torch and torch is missing.
        """
        if isinstance(model, str) and ":" in model:
            with at(f"while loading {model}"):
                return replace(cls.of(_imported(model)), reference=model)
        if isinstance(model, str):
            module, dot, attribute = model.rpartition(".")
            if dot and attribute.isidentifier() and model not in models.names():
                raise ValueError(f"there is no model {model!r}: one of your own is named {module}:{attribute}")
            kind = models.get(model)
            made = kind(**(getattr(kind, "tested", {}) if tested else {}))
            return cls(model, kind.family, made, _claims(made), model)
        prototype = model
        _refuse_module(model)
        if isinstance(model, type) or (not hasattr(model, "fit") and callable(model)):
            try:
                with at(f"while making {getattr(model, '__name__', model)}"):
                    prototype = model()
            except TypeError as error:
                raise TypeError(
                    f"{getattr(model, '__name__', model)} could not be made without arguments ({error}): "
                    "hand over an unfitted model instead"
                ) from error
        if not hasattr(prototype, "fit") or not any(hasattr(prototype, method) for method in SCORING):
            raise TypeError(f"a model to be checked needs {NEEDED}; {type(prototype).__name__} does not have them")
        name = getattr(prototype, "name", None)
        return cls(
            name if isinstance(name, str) else models.name_of(prototype),
            getattr(prototype, "family", None),
            prototype,
            _claims(prototype),
        )

    @property
    def source(self) -> str | None:
        """Hash of the files in which a model of one's own is written, so that a study knows when it has changed.

        They are that of the module that the reference names, which may only put together what others wrote, and that of
        the model's class. None for registered models, which have the version of milfast.
        """
        if self.reference is None or ":" not in self.reference:
            return None
        digest = hashlib.sha256()
        for written in (sys.modules[self.reference.partition(":")[0]], type(self.prototype)):
            with suppress(TypeError, OSError):  # what is built in, or was typed at a prompt, has no file
                digest.update(Path(inspect.getsourcefile(written) or "").read_bytes())
        return digest.hexdigest()

    def parameters(self) -> dict[str, Any]:
        """Parameters as plain values: they tell models apart in a study.

        What is no plain value, such as an estimator within an estimator, is named by its type; its own parameters are
        listed beside it by scikit-learn's rules.

        Returns
        -------
        dict
        """
        if not hasattr(self.prototype, "get_params"):
            return {}
        plain = {}
        for name, given in self.prototype.get_params().items():
            value = given.item() if isinstance(given, np.generic) else given
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                value = (
                    repr(value) if isinstance(value, float) else f"{type(value).__module__}.{type(value).__qualname__}"
                )
            plain[name] = value
        return plain

    def fresh(self, seed: int) -> Any:
        """An unfitted copy whose `random_state`, where it or a part of it has one, comes from `seed`.

        Parameters
        ----------
        seed : int
            Brought down to 32 bits: scikit-learn and `numpy.random.RandomState` take no more.

        Returns
        -------
        object
        """
        seed %= 2**32
        if not hasattr(self.prototype, "get_params"):
            made = copy.deepcopy(self.prototype)
            if hasattr(made, "random_state"):
                made.random_state = seed
            return made
        from sklearn.base import clone

        made = clone(self.prototype)
        seeds = [key for key in made.get_params() if key.rpartition("__")[2] == "random_state"]
        return made.set_params(**dict.fromkeys(seeds, seed)) if seeds else made


def _claims(model: Any) -> str | None:
    claims = getattr(model, "claims", None)
    if not (claims is None or isinstance(claims, str)) or claims not in CLAIMED:
        known = ", ".join(repr(claim) for claim in CLAIMED)
        raise ValueError(f"{type(model).__name__}.claims must be one of {known}; got {claims!r}")
    return claims


def _refuse_module(model: Any) -> None:
    torch = sys.modules.get("torch")  # whoever hands a module over has imported it
    if torch is None:
        return
    kind = model if isinstance(model, type) else type(model)
    if issubclass(kind, torch.nn.Module):
        raise TypeError(
            f"{kind.__name__} is a torch module, which does not train itself: make a subclass of "
            "milfast.models.deep.base.DeepMIL whose build(n_features) returns one that takes (instances, offsets) and "
            "returns one logit a bag"
        )


def fit(model: Any, bags: Bags) -> None:
    """Fit a model, whether it takes bags alone or bags and labels.

    Parameters
    ----------
    model : object
    bags : Bags
        With labels.
    """
    try:
        needed = [
            p
            for p in inspect.signature(model.fit).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):  # a compiled function may have no signature
        needed = []
    if len(needed) == 2:
        model.fit(bags, bags.labels)
    else:
        model.fit(bags)


def _imported(path: str) -> Any:
    module_name, _, attribute = path.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a model beside the current directory, as with `python -m`
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ValueError(f"{path}: there is no module {module_name} here or among the installed ones") from None
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise ValueError(f"{path}: module {module_name} has no {attribute!r}") from None


@contextmanager
def at(place: str) -> Iterator[None]:
    """Add a note to whatever a model raises inside, and stop it from ending the program.

    Parameters
    ----------
    place : str
        The note.

    Raises
    ------
    RuntimeError
        When the model called `sys.exit`: a check that was not done must not look like one that went well.
    """
    try:
        yield
    except SystemExit as stop:
        error = RuntimeError(f"the model ended the program: sys.exit({stop.code!r})")
        error.add_note(place)
        raise error from stop
    except Exception as error:
        error.add_note(place)
        raise


def share_right(model: Any, scores: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """Accuracy of the labels that scores of a model stand for.

    A decision above 0, a probability above 0.5 and a predicted label above the middle of its two values are positive.

    Parameters
    ----------
    model : object
    scores : ndarray, shape (n_bags,)
        As `bag_scores` gives them.
    labels : ndarray of int, shape (n_bags,)

    Returns
    -------
    float
    """
    method = next(m for m in SCORING if hasattr(model, m))
    halfway = method == "predict_proba" or (method == "predict" and scores.min() >= 0)
    return float(np.mean((scores > (0.5 if halfway else 0.0)) == (labels == 1)))


def bag_scores(model: Any, bags: Bags, name: str) -> NDArray[Any]:
    """Scores of bags by the first scoring method that a fitted model has.

    Parameters
    ----------
    model : object
    bags : Bags
        Handed over without labels and kinds.
    name : str
        The model's name, for messages.

    Returns
    -------
    ndarray of numbers, shape (n_bags,)
        In the dtype of the model: integers are not rounded.

    Raises
    ------
    TypeError
        When the model returns something else than real numbers.
    ValueError
        When it does not return one number per bag, or a NaN.
    """
    method = next(m for m in SCORING if hasattr(model, m))
    returned = getattr(model, method)(Bags._trusted(bags.instances, bags.offsets, None, None))
    try:
        scores = np.asarray(to_host(returned, f"what {name}.{method} returned"))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}.{method} must return an array of numbers: {error}") from None
    if scores.dtype.kind not in "biuf" or np.ma.isMaskedArray(returned):
        raise TypeError(f"{name}.{method} must return real numbers, nothing masked; got dtype {scores.dtype}")
    if method == "predict_proba" and scores.ndim == 2 and scores.shape[1] == 2:
        scores = scores[:, 1]
    if scores.shape == (len(bags), 1):
        scores = scores[:, 0]
    if scores.shape != (len(bags),):
        raise ValueError(
            f"{name}.{method} must return one score for each of {len(bags)} bags; got shape {scores.shape}"
        )
    if scores.dtype.kind == "f" and np.isnan(scores).any():
        raise ValueError(f"{name}.{method} returned NaN, first for bag {int(np.argmax(np.isnan(scores)))}")
    return scores
