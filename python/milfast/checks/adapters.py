"""How a check talks to a model: the few methods it needs, whatever the model is."""

from __future__ import annotations

import copy
import hashlib
import importlib
import importlib.util
import inspect
import json
import random
import sys
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast import models
from milfast.bags import Bags, to_host
from milfast.checks.catalogue import CLAIMED
from milfast.models.signatures import MODULE_STYLES, needed_by, title_of
from milfast.seeding import seed_sequence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

#: Ways to score, best first.
SCORING = ("decision_function", "predict_proba", "predict")
NEEDED = "fit(bags) or fit(bags, labels), and one of decision_function(bags), predict_proba(bags) or predict(bags)"
#: Ways to hand bags to an estimator.
ESTIMATOR_STYLES = ("bags", "lists")
#: Those, and the ways to hand them to a torch module.
STYLES = (*ESTIMATOR_STYLES, *MODULE_STYLES)


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
    style : str or None
        How it takes bags, where that was named or found out: "bags" or "lists" for an estimator, "flat", "padded" or
        "single" for a torch module.
    doubts : str
        What was raised by an estimator for which no style could be found.
    settings : dict
        Parameters that were set to other values than the model's own; its name tells them.
    """

    name: str
    family: str | None
    prototype: Any
    claims: str | None = None
    reference: str | None = None
    style: str | None = None
    doubts: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        tested: bool = True,
        style: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Subject:
        """Make a subject of whatever the user handed over.

        Parameters
        ----------
        model : str, class, or object
            Name of a registered model; "package.module:Name" of one of your own; a class or function that makes a model
            when called; or an unfitted model. A torch module, its class or a function of the number of features that
            makes one is trained by `milfast.models.deep.wrap.ModuleMIL`.
        tested : bool
            Whether a registered model is taken with the settings of Raff & Holt (2023) rather than with its defaults.
        style : {"bags", "lists", "flat", "padded", "single"}, optional
            How a model of one's own takes bags; found out otherwise, by `tried`. Registered models have theirs.
        settings : dict, optional
            Plain values by name of a parameter, for models with ``set_params``.

        Returns
        -------
        Subject

        Raises
        ------
        TypeError
            When the model lacks a method.
        ValueError
            When there is no model, module or attribute of that name, the model claims an assumption that is unknown, or
            no model of its kind can have the style.
        ImportError
            When the model needs torch and torch is missing.
        """
        if style is not None and style not in STYLES:
            raise ValueError(f"style must be one of {', '.join(STYLES)}; got {style!r}")
        if settings:
            return cls.of(model, tested=tested, style=style)._with(settings)
        if isinstance(model, str) and ":" in model:
            with at(f"while loading {model}"):
                return replace(cls.of(imported(model), style=style), reference=model)
        if isinstance(model, str):
            module, dot, attribute = model.rpartition(".")
            if dot and attribute.isidentifier() and model not in models.names():
                raise ValueError(f"there is no model {model!r}: one of your own is named {module}:{attribute}")
            kind = models.get(model)
            made = kind(**(getattr(kind, "tested", {}) if tested else {}))
            return cls(model, kind.family, made, _claims(made), model)
        prototype = model
        if _is_module(model) or _takes_one(model):
            prototype = _wrapped(model, style)
        elif isinstance(model, type) or (not hasattr(model, "fit") and callable(model)):
            try:
                with at(f"while making {getattr(model, '__name__', model)}"):
                    prototype = model()
            except TypeError as error:
                raise TypeError(
                    f"{getattr(model, '__name__', model)} could not be made without arguments ({error}): "
                    "hand over an unfitted model instead"
                ) from error
            if _is_module(prototype):
                prototype = _wrapped(model, style)  # made anew for each run
        if not _is_estimator(prototype):
            raise TypeError(f"a model to be checked needs {NEEDED}; {type(prototype).__name__} does not have them")
        name = getattr(prototype, "name", None)
        name = name if isinstance(name, str) else models.name_of(prototype)
        if style in MODULE_STYLES and not hasattr(prototype, "probe"):
            raise ValueError(
                f"style {style!r} is a way to call a torch module, and {name} is an estimator: name 'bags' or 'lists'"
            )
        return cls(name, getattr(prototype, "family", None), prototype, _claims(prototype), style=style)

    def _with(self, settings: Mapping[str, Any]) -> Subject:
        known = self.prototype.get_params() if hasattr(self.prototype, "get_params") else {}
        for name in settings:
            if name not in known:
                listed = f"it has {', '.join(sorted(known))}" if known else "it has no get_params and set_params"
                raise ValueError(f"{self.name} has no parameter {name!r}: {listed}")
            if name.rpartition("__")[2] == "random_state":
                raise ValueError(
                    f"{name} cannot be set: every run has its own, which comes from the seed of the whole; give that "
                    "by random_state=, on the command line --seed"
                )
            if name == "checkpoint" and settings[name] is not None:
                raise ValueError(
                    "checkpoint cannot be set: every run is another training, and one file can keep only one; on the "
                    "command line, --out FILE keeps what was done, and the same command goes on"
                )
        from sklearn.base import clone

        told = ", ".join(f"{name}={_told(value)}" for name, value in settings.items())
        made = clone(self.prototype).set_params(**settings)
        if hasattr(made, "_check_parameters"):
            with at(f"while setting parameters of {self.name}"):
                made._check_parameters()
        return replace(self, name=f"{self.name} ({told})", prototype=made, settings=dict(settings))

    def named(self) -> dict[str, Any]:
        """Plain values that `named_by` makes the same subject from, if it has a reference.

        Returns
        -------
        dict
            Without what is as it would be found.
        """
        style = {} if self.style in (None, "bags") else {"style": self.style}
        return {"model": self.reference} | style | ({"settings": dict(self.settings)} if self.settings else {})

    @classmethod
    def named_by(cls, values: Mapping[str, Any], *, tested: bool = True) -> Subject:
        """The subject that `named` described.

        Parameters
        ----------
        values : dict
            What `named` gave, among others.
        tested : bool
            As in `of`.

        Returns
        -------
        Subject
        """
        return cls.of(values["model"], tested=tested, style=values.get("style"), settings=values.get("settings"))

    def tried(self, n_features: int) -> Subject:
        """Try the model on a few small bags, before anything is trained that takes long.

        A torch module is made and called, not trained. An estimator with ``fit(X, y)`` may take `Bags` or a list of
        arrays, so a copy of it is fitted to eight small bags, and where it takes no `Bags`, to the list. Other models
        are not tried: one with ``fit(bags)``, or ``fit(bags, y=None)``, gets `Bags` unless its style is named.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        Subject
            With what was found out.

        Raises
        ------
        TypeError
            When a module cannot be made, or returns no logit for each bag in any style.
        Exception
            Whatever the module raises, with a note that says where.
        """
        if hasattr(self.prototype, "probe"):
            with at(f"while trying {self.name} on small bags"):
                self.prototype.probe(n_features)
            return self
        if not self._asks or len(needed_by(self.prototype.fit)) != 2:
            return self
        raised = {}
        bags = _small_bags(n_features)
        for style in ESTIMATOR_STYLES:
            try:
                with _unnoticed(), at(f"while trying {self.name}"):
                    model = self.fresh(0)
                    fit(model, bags, style)
                    bag_scores(model, bags, self.name, style)
            except Exception as error:
                raised[style] = f"{style!r} raised {type(error).__name__}: {error}"
            else:
                return replace(self, style=style)
        return replace(
            self,
            doubts=f"on {len(bags)} small bags the style {' and '.join(raised.values())}; it was handed Bags: name the "
            "style by style='lists', on the command line --style lists, when it takes a list of arrays",
        )

    @contextmanager
    def hinting(self) -> Iterator[None]:
        """Add to what an estimator raises inside what may be wrong with how bags were handed to it.

        Raises
        ------
        Exception
            What was raised.
        """
        try:
            yield
        except Exception as error:
            if self.doubts:
                error.add_note(self.doubts)
            elif self._asks and isinstance(error, (TypeError, AttributeError)):
                error.add_note(
                    "it was handed Bags: when it takes a list of arrays, say so by style='lists', on the command line "
                    "--style lists"
                )
            raise

    @property
    def _asks(self) -> bool:
        """Whether it is an estimator of the user's of which nobody said how it takes bags."""
        return self.style is None and self.family is None and not type(self.prototype).__module__.startswith("milfast.")

    @property
    def source(self) -> str | None:
        """Hash of the files in which a model of one's own is written, so that a study knows when it has changed.

        They are that of the module that the reference names, which may only put together what others wrote, and that of
        the model's class. None for registered models, which have the version of milfast.
        """
        if self.reference is None or ":" not in self.reference:
            return None
        digest = hashlib.sha256()
        own = getattr(self.prototype, "written_in", type(self.prototype))
        for written in (sys.modules[self.reference.partition(":")[0]], own):
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
                kind = value if inspect.isroutine(value) or isinstance(value, type) else type(value)
                value = repr(value) if isinstance(value, float) else f"{kind.__module__}.{kind.__qualname__}"
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


def _told(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _claims(model: Any) -> str | None:
    claims = getattr(model, "claims", None)
    if not (claims is None or isinstance(claims, str)) or claims not in CLAIMED:
        known = ", ".join(repr(claim) for claim in CLAIMED)
        name = title_of(getattr(model, "written_in", type(model)))
        raise ValueError(f"{name}.claims must be one of {known}; got {claims!r}")
    return claims


def _is_estimator(model: Any) -> bool:
    return hasattr(model, "fit") and any(hasattr(model, method) for method in SCORING)


def _is_module(model: Any) -> bool:
    """Whether it is a torch module or makes one, and cannot train itself."""
    torch = sys.modules.get("torch")  # whoever hands a module over has imported it
    if torch is None:
        return False
    made = getattr(model, "func", model)  # of functools.partial
    kind = made if isinstance(made, type) else type(made)
    return issubclass(kind, torch.nn.Module) and not _is_estimator(kind)


def _takes_one(model: Any) -> bool:
    """Whether it is a function of one argument, which can only be the number of features."""
    if isinstance(model, type) or hasattr(model, "fit") or not callable(model) or isinstance(model, str):
        return False
    return len(needed_by(model)) == 1


def _wrapped(model: Any, style: str | None) -> Any:
    name = title_of(model)
    if style in ESTIMATOR_STYLES:
        raise ValueError(
            f"style {style!r} is a way to fit an estimator, and {name} is a torch module or a function that makes one: "
            f"it takes {', '.join(map(repr, MODULE_STYLES[:-1]))} or {MODULE_STYLES[-1]!r}"
        )
    if importlib.util.find_spec("torch") is None:
        raise ImportError(
            f"{name} is a function of one argument, which makes a torch module, and torch is not installed: "
            "pip install 'milfast[torch]'"
        )
    from milfast.models.deep.wrap import ModuleMIL

    return ModuleMIL(model, style)


def _small_bags(n_features: int) -> Bags:
    """Eight bags of normal numbers, those of the positive ones around 1."""
    generator = np.random.Generator(np.random.PCG64(seed_sequence(0)))
    labels = np.arange(8) % 2
    offsets = np.cumsum([0, 3, 5, 2, 4, 1, 3, 5, 2])
    instances = generator.normal(size=(int(offsets[-1]), n_features)) + np.repeat(labels, np.diff(offsets))[:, None]
    return Bags(instances.astype(np.float32), offsets, labels)


@contextmanager
def _unnoticed() -> Iterator[None]:
    """Leave no trace of a trial: no warnings, and the global generators as they were found."""
    torch = sys.modules.get("torch")
    states = np.random.get_state(), random.getstate(), None if torch is None else torch.get_rng_state()  # noqa: NPY002
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(states[0])  # noqa: NPY002
        random.setstate(states[1])
        if torch is not None:
            torch.set_rng_state(states[2])


def fit(model: Any, bags: Bags, style: str | None = None) -> None:
    """Fit a model, whether it takes bags alone or bags and labels.

    Parameters
    ----------
    model : object
    bags : Bags
        With labels.
    style : str, optional
        "lists" for a model that takes a list of arrays and labels.
    """
    if style == "lists":
        model.fit(bags.to_list(), bags.labels)
    elif len(needed_by(model.fit)) == 2:
        model.fit(bags, bags.labels)
    else:
        model.fit(bags)


def imported(path: str) -> Any:
    """What "package.module:Name" names.

    Parameters
    ----------
    path : str

    Returns
    -------
    object

    Raises
    ------
    ValueError
        When there is no such module, or it has no such name.
    """
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


def bag_scores(model: Any, bags: Bags, name: str, style: str | None = None) -> NDArray[Any]:
    """Scores of bags by the first scoring method that a fitted model has.

    Parameters
    ----------
    model : object
    bags : Bags
        Handed over without labels and kinds.
    name : str
        The model's name, for messages.
    style : str, optional
        "lists" for a model that takes a list of arrays.

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
    unlabelled = Bags._trusted(bags.instances, bags.offsets, None, None)
    returned = getattr(model, method)(unlabelled.to_list() if style == "lists" else unlabelled)
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
