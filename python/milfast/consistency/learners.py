"""Classifiers by name, with scikit-learn's parameters or those that Levman et al. (2023) stored for their data sets."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Learner", "make", "names", "printed"]

Parameters: TypeAlias = Literal["default", "2021", "2023", "published"]
Standardize: TypeAlias = Literal["folds", "all", "none"]

PARAMETERS: tuple[Parameters, ...] = ("default", "2021", "2023", "published")
STANDARDIZE: tuple[Standardize, ...] = ("folds", "all", "none")

#: scikit-learn's own, by name.
DEFAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "lr": ("sklearn.linear_model:LogisticRegression", {"max_iter": 1000}),
    "svm": ("sklearn.svm:SVC", {}),
    "rf": ("sklearn.ensemble:RandomForestClassifier", {}),
    "adaboost": ("sklearn.ensemble:AdaBoostClassifier", {}),
    "gbt": ("sklearn.ensemble:GradientBoostingClassifier", {}),
}
#: Which of the stored values are nearest to what was printed: logistic regression and boosted trees of the later code.
PUBLISHED: dict[str, Literal["2021", "2023"]] = {
    "lr": "2023",
    "svm": "2021",
    "rf": "2021",
    "adaboost": "2021",
    "gbt": "2023",
}
#: Data sets whose features the paper did not standardise.
NOT_STANDARDIZED = ("spect",)


@dataclass(frozen=True)
class Learner:
    """A classifier that is ready to be fitted.

    Attributes
    ----------
    name : str
        What it was asked for as.
    origin : str
        Where its parameters come from.
    estimator : object
    """

    name: str
    origin: str
    estimator: Any

    def described(self) -> str:
        """Everything that tells it from other estimators, as text that is the same in every process.

        Returns
        -------
        str
        """
        return described(self.estimator)


def described(estimator: Any) -> str:
    """Classes and parameters of an estimator as text.

    Parameters
    ----------
    estimator : object

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from milfast.consistency.learners import described
    >>> described(SVC(C=2))
    'SVC(C=2)'
    """
    try:
        text = estimator.__repr__(N_CHAR_MAX=1 << 30)
    except TypeError:
        text = repr(estimator)
    return re.sub(r"\s+", " ", re.sub(r" at 0x[0-9a-f]+", "", text))


def names() -> list[str]:
    """Names that `make` knows.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from milfast.consistency import learners
    >>> learners.names()
    ['lr', 'svm', 'rf', 'adaboost', 'gbt']
    """
    return list(DEFAULTS)


def make(
    name: str,
    *,
    data: str | None = None,
    parameters: Parameters = "default",
    settings: Mapping[str, Any] | None = None,
    standardize: Standardize = "none",
) -> Learner:
    """Make a classifier.

    Parameters
    ----------
    name : str
        One of `names`, or "package.module:Name" of a class or function of your own that makes one.
    data : str, optional
        Name of the data set whose stored parameters are wanted.
    parameters : {"default", "2021", "2023", "published"}
        Scikit-learn's own; or those that the authors of the paper stored for this data set, of their first search
        (2021) or of the later one (2023); or for each classifier the ones nearest to the printed table. Only the first
        for classes of your own.
    settings : dict, optional
        Parameters to be set, by name.
    standardize : {"none", "folds"}
        With "folds" features get mean 0 and variance 1 over the training samples of each fit.

    Returns
    -------
    Learner

    Raises
    ------
    ValueError
        When there is no such classifier or parameter, or none were stored.
    TypeError
        When what the name stands for is no classifier.

    Examples
    --------
    >>> from milfast.consistency import learners
    >>> learners.make("svm", data="parkinsons", parameters="2021").estimator
    SVC(C=52)
    """
    if parameters not in PARAMETERS:
        raise ValueError(f"parameters must be one of {', '.join(PARAMETERS)}; got {parameters!r}")
    if ":" in name:
        if parameters != "default":
            raise ValueError(f"there are no stored parameters for {name}: leave them at their defaults")
        estimator, origin = _own(name), "its own defaults"
    elif name not in DEFAULTS:
        raise ValueError(
            f"there is no classifier {name!r}: known are {', '.join(names())}; one of your own is named "
            "package.module:Name"
        )
    elif parameters == "default":
        path, given = DEFAULTS[name]
        estimator, origin = _made(path, given), "scikit-learn's defaults"
    else:
        estimator, origin = _stored(name, data, parameters)
    if settings:
        known = estimator.get_params(deep=True)
        for key in settings:
            if key not in known:
                raise ValueError(
                    f"{type(estimator).__name__} has no parameter {key!r}; it has {', '.join(sorted(known))}"
                )
        estimator = estimator.set_params(**settings)
    if standardize == "folds":
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        estimator = make_pipeline(StandardScaler(), estimator)
    return Learner(name, origin, estimator)


def printed(model: str, data: str) -> tuple[float, float, float, float] | None:
    """Figures of table 1 of Levman et al. (2023), in percent.

    Parameters
    ----------
    model : str
        "svm", "rf", "lr" or "adaboost"; "gbt" is beside "adaboost" too, as the code of 2023 has boosted trees there.
    data : str
        Name of a data set.

    Returns
    -------
    tuple of float or None
        Overall accuracy, its SD, average error consistency, its SD; None where the paper has no such cell.

    Examples
    --------
    >>> from milfast.consistency import learners
    >>> learners.printed("lr", "pima")
    (77.0, 0.3, 90.0, 2.1)
    """
    cell = _record()["table"].get(data, {}).get("adaboost" if model == "gbt" else model)
    if cell is None:
        return None
    accuracy, accuracy_sd, consistency, consistency_sd = map(float, cell)
    return accuracy, accuracy_sd, consistency, consistency_sd


@cache
def _record() -> dict[str, Any]:
    text = files("milfast.consistency").joinpath("levman_2023.json").read_text(encoding="utf-8")
    record: dict[str, Any] = json.loads(text)
    return record


def _stored(name: str, data: str | None, parameters: str) -> tuple[Any, str]:
    """An estimator with parameters of the record, and where they come from."""
    large = _record()["large"]
    if data == "diabetes130" and parameters == "published":
        entry = large[name]
        estimator = _made(entry["class"], entry["parameters"])
        if "nystroem" in entry:
            from sklearn.kernel_approximation import Nystroem
            from sklearn.pipeline import make_pipeline

            estimator = make_pipeline(Nystroem(n_components=entry["nystroem"]), estimator)
        return estimator, "chosen here"
    year = PUBLISHED[name] if parameters == "published" else parameters
    entry = _record()["stored"][year].get(name, {})
    if data not in entry:
        where = "a table of your own" if data is None else data
        raise ValueError(f"no parameters of {name} for {where} were stored in {year}: leave them at their defaults")
    return _made(entry["class"], entry["common"] | entry[data]), f"stored in {year}"


def _made(path: str, given: Mapping[str, Any]) -> Any:
    module, _, name = path.partition(":")
    kind = getattr(importlib.import_module(module), name)
    given = dict(given)
    if name == "LogisticRegression" and "penalty" in given:
        default = inspect.signature(kind).parameters["penalty"].default
        if default == "deprecated":  # scikit-learn 1.8 and later say it by the share of the L1 norm
            given["l1_ratio"] = {"l1": 1.0, "l2": 0.0}[given.pop("penalty")]
    return kind(**given)


def _own(reference: str) -> Any:
    from milfast.checks.adapters import at, imported

    with at(f"while loading {reference}"):
        made = imported(reference)
    if isinstance(made, type) or not hasattr(made, "fit"):
        try:
            with at(f"while making {reference}"):
                made = made()
        except TypeError as error:
            raise TypeError(
                f"{reference} could not be made without arguments ({error}): name a function that makes one"
            ) from error
    lacking = [name for name in ("fit", "predict", "get_params") if not hasattr(made, name)]
    if lacking:
        raise TypeError(
            f"a classifier needs fit, predict and get_params; {type(made).__name__} lacks {', '.join(lacking)}"
        )
    return made
