"""How a check talks to a model: the few methods it needs, whatever the model is."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast import models

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.bags import Bags

NEEDED = "fit(bags) and one of decision_function(bags), predict_proba(bags) or predict(bags)"


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
    """

    name: str
    family: str | None
    prototype: Any

    @classmethod
    def of(cls, model: Any, *, tested: bool = True) -> Subject:
        """Make a subject of whatever the user handed over.

        Parameters
        ----------
        model : str, class, or object
            Name of a registered model; a class or function that makes a model when called; or an unfitted model.
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
            When there is no model of that name.
        ImportError
            When the model needs torch and torch is missing.
        """
        if isinstance(model, str):
            kind = models.get(model)
            return cls(model, kind.family, kind(**(getattr(kind, "tested", {}) if tested else {})))
        prototype = model() if isinstance(model, type) or (not hasattr(model, "fit") and callable(model)) else model
        scoring = ("decision_function", "predict_proba", "predict")
        if not hasattr(prototype, "fit") or not any(hasattr(prototype, method) for method in scoring):
            raise TypeError(f"a model to be checked needs {NEEDED}; {type(prototype).__name__} does not have them")
        name = getattr(prototype, "name", None)
        return cls(
            name if isinstance(name, str) else models.name_of(prototype),
            getattr(prototype, "family", None),
            prototype,
        )

    def fresh(self, seed: int) -> Any:
        """An unfitted copy whose `random_state`, where it or a part of it has one, is `seed`.

        Parameters
        ----------
        seed : int

        Returns
        -------
        object
        """
        if not hasattr(self.prototype, "get_params"):
            made = copy.deepcopy(self.prototype)
            if hasattr(made, "random_state"):
                made.random_state = seed
            return made
        from sklearn.base import clone

        made = clone(self.prototype)
        seeds = [key for key in made.get_params() if key.rpartition("__")[2] == "random_state"]
        return made.set_params(**dict.fromkeys(seeds, seed)) if seeds else made


def bag_scores(model: Any, bags: Bags, name: str) -> NDArray[np.float64]:
    """Scores of bags by the first scoring method that a fitted model has.

    Parameters
    ----------
    model : object
    bags : Bags
    name : str
        The model's name, for messages.

    Returns
    -------
    ndarray of float64, shape (n_bags,)

    Raises
    ------
    ValueError
        When the model does not return one number per bag, or a NaN.
    """
    if hasattr(model, "decision_function"):
        method = "decision_function"
        scores = np.asarray(model.decision_function(bags))
    elif hasattr(model, "predict_proba"):
        method = "predict_proba"
        scores = np.asarray(model.predict_proba(bags))
        if scores.ndim == 2 and scores.shape[1] == 2:
            scores = scores[:, 1]
    else:
        method = "predict"
        scores = np.asarray(model.predict(bags))
    if scores.shape == (len(bags), 1):
        scores = scores[:, 0]
    if scores.shape != (len(bags),):
        raise ValueError(
            f"{name}.{method} must return one score for each of {len(bags)} bags; got shape {scores.shape}"
        )
    scores = scores.astype(np.float64)
    if np.isnan(scores).any():
        raise ValueError(f"{name}.{method} returned NaN, first for bag {int(np.flatnonzero(np.isnan(scores))[0])}")
    return scores
