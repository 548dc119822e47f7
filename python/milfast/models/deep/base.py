"""What deep models share: a scikit-learn style estimator around a network for flat bags."""

from __future__ import annotations

import copy
import inspect
import math
from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import nn

from milfast.bags import Bags
from milfast.seeding import seed_value
from milfast.training import loop, notebook
from milfast.training.devices import device_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from milfast.seeding import RandomState

__all__ = ["BLOCK", "DeepMIL", "positive_number", "share", "whole_number"]

# Rows standardised or scored at once: bounds the extra memory, and is large enough for the cost per block to vanish.
BLOCK = 65536

_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

# Parameters with which a training may go on otherwise than it began; the loop looks at the seed itself.
_ANY_TIME = {"epochs", "patience", "tol", "callback", "checkpoint", "device", "random_state"}


class DeepMIL(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no type hints
    """Estimator of bag labels around a network; a model is a subclass with one method, `build`.

    The defaults are the settings of Raff & Holt's experiments (the notebook published with the paper): AdamW, 20 epochs
    of batches of 32 bags, gradient entries clamped to [-5, 5], features standardised over all training instances.

    Parameters
    ----------
    hidden : int
        Width of hidden layers.
    epochs, batch_size : int
        Passes over the training bags; bags per step.
    lr, weight_decay : float
        Of the optimiser.
    optimizer : {"adamw", "adam"}
        Raff & Holt's text says Adam, their code AdamW.
    clip_value : float or None
        Entries of the gradient are clamped to [-clip_value, clip_value] before each step, NaN to 0. None leaves them.
    clip_norm : float or None
        The gradient of all parameters together is scaled down to this Euclidean norm.
    dropout : float
        Probability of dropping a hidden unit while training, in [0, 1).
    patience : int or None
        Stop when the AUC of the training bags, as they were scored during training, has not become better for this many
        epochs. No bags are held out to validate. None never stops before `epochs`.
    tol : float
        What the AUC must gain to count as better.
    standardize : bool
        Give each feature mean 0 and standard deviation 1 over all training instances. A constant feature becomes 0.
    device : str or torch.device
        "cpu", "cuda", "cuda:1" or "mps".
    random_state : int, numpy.random.Generator, numpy.random.SeedSequence or None
        Decides initialisation, shuffling and dropout. The same integer gives the same bits on one machine's CPU.
        torch's global generators are left as they were found.
    deterministic : bool
        Whether torch is told to use only algorithms that give the same bits again; it makes a difference on a GPU.
    checkpoint : path, optional
        File that is written after each epoch of `fit`, and from which a `fit` with the same settings and bags goes on.
        `epochs`, `patience` and `tol` may be others, unless training would have stopped before the last epoch that the
        file holds. Needs an integer `random_state`.
    faults : str or sequence of str
        Faults of the training code behind the published tables, to be repeated: "biased-split", "sorted-batches",
        "unmasked-padding"; see `milfast.training.notebook`.
    callback : callable, optional
        ``callback(epoch, n_epochs, loss)`` after each epoch, counted from 1.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, in evaluation mode, which takes standardised float32 instances and offsets.
    mean_, scale_ : ndarray of float64, shape (n_features,)
        What features are standardised with; 0 and 1 without `standardize`.
    classes_ : ndarray of int64
        ``[0, 1]``.
    n_features_in_ : int
        Number of features of the training instances.
    loss_curve_, auc_curve_ : list of float
        Mean training loss of each epoch; AUC of the training bags as they were scored during training, with dropout.

    Notes
    -----
    A subclass with parameters of its own takes the others as ``**settings`` and passes them on; they are then, by
    keyword, parameters of the subclass as well. What it passes on with a value of its own is no parameter, and a class
    variable `_fixed` says so: scikit-learn's `clone` hands over every parameter, and for one that is fixed but not
    named there, Python says that it got multiple values.

    >>> class Narrow(DeepMIL):
    ...     _fixed = frozenset({"hidden"})
    ...     def __init__(self, depth=2, **settings):
    ...         super().__init__(hidden=8, **settings)
    ...         self.depth = depth
    ...     def build(self, n_features):
    ...         raise NotImplementedError
    >>> from sklearn.base import clone
    >>> narrow = clone(Narrow(depth=3, lr=0.1))
    >>> narrow, narrow.hidden, "hidden" in narrow.get_params()
    (Narrow(depth=3, lr=0.1), 8, False)

    References
    ----------
    .. [1] E. Raff, J. Holt, "Reproducibility in multiple instance learning: a case for algorithmic unit tests",
       NeurIPS 2023.

    Examples
    --------
    >>> import milfast as mf
    >>> from torch import nn
    >>> class First(nn.Linear):
    ...     def forward(self, instances, offsets):
    ...         return super().forward(instances[offsets[:-1]]).squeeze(1)
    >>> class FirstInstance(DeepMIL):
    ...     def build(self, n_features):
    ...         return First(n_features, 1)
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> FirstInstance(epochs=200, lr=0.05, random_state=0).fit(bags).predict(bags)
    array([0, 1])
    """

    family: ClassVar[str] = "deep"
    _fixed: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        *,
        hidden: int = 128,
        epochs: int = 20,
        batch_size: int = 32,
        lr: float = 1e-3,
        weight_decay: float = 1e-2,
        optimizer: str = "adamw",
        clip_value: float | None = 5.0,
        clip_norm: float | None = None,
        dropout: float = 0.5,
        patience: int | None = None,
        tol: float = 1e-4,
        standardize: bool = True,
        device: str | torch.device = "cpu",
        random_state: RandomState = None,
        deterministic: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        faults: str | Sequence[str] = (),
        callback: Callable[[int, int, float], object] | None = None,
    ) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.clip_value = clip_value
        self.clip_norm = clip_norm
        self.dropout = dropout
        self.patience = patience
        self.tol = tol
        self.standardize = standardize
        self.device = device
        self.random_state = random_state
        self.deterministic = deterministic
        self.checkpoint = checkpoint
        self.faults = faults
        self.callback = callback

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Give a model that adds parameters, and passes the others on as ``**settings``, one list of all of them."""
        super().__init_subclass__(**kwargs)
        own = vars(cls).get("__init__")
        if own is None or not _passes_on(own):
            return
        first, *parameters = inspect.signature(own).parameters.values()  # the instance, whatever it is called
        named = {p.name: p for p in parameters if p.kind not in _VARIABLE}
        fixed = set(vars(cls).get("_fixed", ()))
        for kind in cls.__mro__[1:]:
            passed = vars(kind).get("__init__")
            if passed is None or not issubclass(kind, DeepMIL):
                continue
            for parameter in list(inspect.signature(passed).parameters.values())[1:]:
                if parameter.kind not in _VARIABLE and parameter.name not in named and parameter.name not in fixed:
                    # what comes by **settings comes by keyword, with a default or without
                    named[parameter.name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            if not _passes_on(passed):
                break
            fixed |= set(vars(kind).get("_fixed", ()))
        # scikit-learn reads parameters and their defaults from the signature
        own.__signature__ = inspect.Signature([first, *named.values()])

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(p.name for p in inspect.signature(cls).parameters.values() if p.kind not in _VARIABLE)

    @abstractmethod
    def build(self, n_features: int) -> nn.Module:
        """Make the untrained network.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        torch.nn.Module
            On the CPU. ``module(instances, offsets)`` returns bag logits of shape (n_bags,). With a method
            ``instance_logits(instances)``, the estimator has `instance_scores`.

        Notes
        -----
        Called with torch's global generators seeded from `random_state`.
        """

    def fit(self, bags: Bags, y: None = None) -> Self:
        """Train on labelled bags.

        Parameters
        ----------
        bags : Bags
            With labels of both classes.
        y : None
            Labels are read from `bags`; here for scikit-learn's habit of passing it.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            When a parameter or `bags` cannot be used; nothing was done then.
        FloatingPointError
            When the training loss is not finite.
        """
        self._check_parameters()
        if y is not None:
            raise ValueError("y must be None: labels are part of bags, Bags(instances, offsets, labels)")
        _check_bags(bags)
        if bags.labels is None:
            raise ValueError("bags has no labels to learn from: make it with Bags(instances, offsets, labels)")
        positive = int(bags.labels.sum())
        if positive in (0, bags.n_bags):
            raise ValueError(
                f"all {bags.n_bags} labels in bags are {int(positive > 0)}: training needs bags of both classes"
            )
        device = _usable_device(self.device)
        seed = seed_value(self.random_state)

        mean, scale = np.zeros(bags.n_features), np.ones(bags.n_features)
        if self.standardize:
            mean, scale = _moments(bags.instances)
        instances = _standardized(bags, mean, scale)
        # Built on the CPU whatever the device, so that a seed means the same initial weights everywhere.
        with loop.seeded(seed_value(seed, 0)):
            module = self.build(bags.n_features)
        module.to(device)
        history = loop.fit(
            module,
            torch.from_numpy(instances),
            torch.tensor(bags.offsets),
            torch.tensor(bags.labels),
            epochs=int(self.epochs),
            batch_size=int(self.batch_size),
            lr=float(self.lr),
            weight_decay=float(self.weight_decay),
            optimizer=self.optimizer,
            clip_value=self.clip_value,
            clip_norm=self.clip_norm,
            patience=self.patience,
            tol=float(self.tol),
            seed=seed_value(seed, 1),
            deterministic=bool(self.deterministic),
            checkpoint=self.checkpoint,
            identity=None if self.checkpoint is None else self._identity(),
            faults=notebook.checked(self.faults),
            callback=self.callback,
        )
        self.module_ = module
        self.mean_, self.scale_ = mean, scale
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = bags.n_features
        self.loss_curve_, self.auc_curve_ = history
        return self

    def decision_function(self, bags: Bags) -> NDArray[np.float64]:
        """Bag logits; the score of a bag does not depend on the other bags.

        Parameters
        ----------
        bags : Bags
            With the number of features trained on.

        Returns
        -------
        ndarray of float64, shape (n_bags,)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            When `bags` or `device` cannot be used.
        FloatingPointError
            When a logit is NaN.
        """
        instances = self._prepare(bags)
        faulty = int(self.batch_size) if "unmasked-padding" in notebook.checked(self.faults) else None
        offsets = torch.tensor(bags.offsets)
        logits = loop.scores(self.module_, instances, offsets, batch_instances=BLOCK, faulty_batch=faulty)
        found: NDArray[np.float64] = logits.double().numpy()
        missing = np.isnan(found)
        if missing.any():
            raise FloatingPointError(
                f"the logit of bag {int(np.argmax(missing))} is NaN, the first of {int(missing.sum())} among "
                f"{bags.n_bags} bags: rescale the features, or train with standardize=True or a lower lr than {self.lr}"
            )
        return found

    def predict_proba(self, bags: Bags) -> NDArray[np.float64]:
        """Probabilities of the classes 0 and 1.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_bags, 2)

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError, FloatingPointError
            As `decision_function`.
        """
        logits = self.decision_function(bags)
        return np.stack((expit(-logits), expit(logits)), axis=1)

    def predict(self, bags: Bags) -> NDArray[np.int64]:
        """Labels in {0, 1}: 1 where the logit is above 0.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of int64, shape (n_bags,)

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError, FloatingPointError
            As `decision_function`.
        """
        return (self.decision_function(bags) > 0).astype(np.int64)

    def instance_scores(self, bags: Bags) -> NDArray[np.float64]:
        """Instance logits, for models that score instances one by one.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_instances,)

        Raises
        ------
        TypeError
            When the model scores only bags.
        sklearn.exceptions.NotFittedError, TypeError, ValueError, FloatingPointError
            As `decision_function`.
        """
        instances = self._prepare(bags)
        logits = getattr(self.module_, "instance_logits", None)
        if logits is None:
            raise TypeError(f"{type(self).__name__} scores bags only: it has no score for a single instance")
        device = device_of(self.module_)
        with loop.evaluating(self.module_):
            parts = [logits(rows.to(device)).cpu() for rows in torch.split(instances, BLOCK)]
        scores: NDArray[np.float64] = torch.cat(parts).double().numpy()
        return scores

    def _identity(self) -> dict[str, Any]:
        """What tells this estimator's training from another's in a checkpoint."""
        return {"class": type(self)} | {n: value for n, value in self.get_params().items() if n not in _ANY_TIME}

    def _prepare(self, bags: Bags) -> torch.Tensor:
        check_is_fitted(self, "module_")
        _check_bags(bags)
        if bags.n_features != self.n_features_in_:
            raise ValueError(
                f"bags has {bags.n_features} features, but {type(self).__name__} was fitted on {self.n_features_in_}: "
                "pass bags with the same features"
            )
        self.module_.to(_usable_device(self.device))
        return torch.from_numpy(_standardized(bags, self.mean_, self.scale_))

    def _check_parameters(self) -> None:
        self._check_hidden()
        for name in ("epochs", "batch_size"):
            whole_number(name, getattr(self, name))
        if self.patience is not None:
            whole_number("patience", self.patience)
        positive_number("lr", self.lr)
        for name in ("weight_decay", "tol"):
            positive_number(name, getattr(self, name), or_zero=True)
        for name in ("clip_value", "clip_norm"):
            if getattr(self, name) is not None:
                positive_number(name, getattr(self, name))
        share("dropout", self.dropout)
        if self.optimizer not in loop.OPTIMIZERS:
            raise ValueError(f"optimizer must be one of {', '.join(loop.OPTIMIZERS)}; got {self.optimizer!r}")
        for name in ("standardize", "deterministic"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise TypeError(f"{name} must be True or False; got {getattr(self, name)!r}")
        notebook.checked(self.faults)
        if self.checkpoint is not None and (
            isinstance(self.random_state, bool) or not isinstance(self.random_state, Integral)
        ):
            raise ValueError("checkpoint needs an integer random_state: with another seed a fit cannot go on")
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable as callback(epoch, n_epochs, loss); got {self.callback!r}")

    def _check_hidden(self) -> None:
        whole_number("hidden", self.hidden)

    def __getstate__(self) -> dict[str, Any]:
        # Pickles hold CPU tensors, so that a model trained on a GPU can be read where there is none.
        state: dict[str, Any] = dict(super().__getstate__())
        if "module_" in state:
            state["module_"] = copy.deepcopy(self.module_).cpu()
        return state


def _passes_on(function: Any) -> bool:
    """Whether a function was written with ``**settings``, whatever it says about its signature."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and bool(code.co_flags & inspect.CO_VARKEYWORDS)


def whole_number(name: str, value: object, *, least: int = 1) -> None:
    """Refuse a parameter that is no integer, or too small.

    Parameters
    ----------
    name : str
    value : object
    least : int

    Raises
    ------
    TypeError, ValueError
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer; got {value!r}")
    if int(value) < least:
        raise ValueError(f"{name} must be at least {least}; got {value!r}")


def positive_number(name: str, value: object, *, or_zero: bool = False) -> None:
    """Refuse a parameter that is no finite number above 0.

    Parameters
    ----------
    name : str
    value : object
    or_zero : bool
        Whether 0 is good too.

    Raises
    ------
    TypeError, ValueError
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r}")
    number = float(value)
    if not ((number > 0 or (or_zero and number == 0)) and math.isfinite(number)):
        raise ValueError(f"{name} must be {'at least' if or_zero else 'above'} 0 and finite; got {value!r}")


def share(name: str, value: object) -> None:
    """Refuse a parameter that is no number in [0, 1).

    Parameters
    ----------
    name : str
    value : object

    Raises
    ------
    TypeError, ValueError
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r}")
    if not 0 <= float(value) < 1:
        raise ValueError(f"{name} must be in [0, 1); got {value!r}")


def _check_bags(bags: Bags) -> None:
    if not isinstance(bags, Bags):
        raise TypeError(
            f"bags must be milfast.Bags; got {type(bags).__name__}: join a list of arrays by Bags.from_list"
        )


def _usable_device(device: str | torch.device) -> torch.device:
    if not isinstance(device, (str, torch.device)):
        raise TypeError(f"device must be a string or a torch.device; got {type(device).__name__}")
    try:
        found = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device {device!r} is unknown to torch: use 'cpu', 'cuda' or 'mps'") from None
    if found.type == "cuda":
        usable = torch.cuda.is_available() and (found.index or 0) < torch.cuda.device_count()
    elif found.type == "mps":
        usable = torch.backends.mps.is_available()
    else:
        usable = found.type == "cpu"
    if not usable:
        raise ValueError(f"device {str(device)!r} cannot be used on this machine: use device='cpu'")
    return found


def _moments(instances: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (1 for constant features) of each feature."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = instances.mean(axis=0, dtype=np.float64)
        scale = instances.std(axis=0, dtype=np.float64)
    wide = np.flatnonzero(~np.isfinite(scale))
    if len(wide):
        raise ValueError(f"feature {wide[0]} of bags is too large for its variance to be a number: rescale it first")
    # Rounding gives a constant feature a tiny deviation, which must not be divided by.
    scale[(instances.min(axis=0) == instances.max(axis=0)) | (scale == 0)] = 1.0
    return mean, scale


def _standardized(bags: Bags, mean: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float32]:
    result = np.empty(bags.instances.shape, dtype=np.float32)
    for first in range(0, len(result), BLOCK):
        rows = slice(first, first + BLOCK)
        with np.errstate(over="ignore"):
            result[rows] = (bags.instances[rows] - mean) / scale
    finite = np.isfinite(result).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"instances[{int(np.argmin(finite))}] of bags does not fit float32: rescale its features first"
        )
    return result
