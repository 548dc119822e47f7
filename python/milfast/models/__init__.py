"""Models by name. Adding one is adding a file to `models/svm`, `models/linear` or `models/deep`."""

from __future__ import annotations

from typing import Any

from milfast.registry import Registry

__all__ = ["get", "name_of", "names"]

GROUPS = ("svm", "linear", "deep")
registry = Registry("model", *(f"milfast.models.{group}" for group in GROUPS))


def names(group: str | None = None) -> list[str]:
    """Names of all models, or those of a group.

    Parameters
    ----------
    group : {"svm", "linear", "deep"}, optional

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        When there is no such group.

    Examples
    --------
    >>> import milfast as mf
    >>> "NSK" in mf.models.names("svm")
    True
    """
    if group not in (None, *GROUPS):
        raise ValueError(f"group must be svm, linear or deep; got {group!r}")
    return [entry.name for entry in registry.entries.values() if group in (None, entry.group)]


def get(name: str) -> Any:
    """The class of a model.

    Parameters
    ----------
    name : str

    Returns
    -------
    type

    Raises
    ------
    ValueError
        When there is no such model; the message lists the known ones.
    ImportError
        When the model needs torch and torch is missing; the message says how to install it.

    Examples
    --------
    >>> import milfast as mf
    >>> mf.models.get("NSK")(C=1.0)
    NSK(C=1.0)
    """
    module = registry[name].load()
    (public,) = module.__all__
    return getattr(module, public)


def name_of(model: object) -> str:
    """Registered name of a model's class, else the name of the class.

    Parameters
    ----------
    model : object

    Returns
    -------
    str
    """
    kind = type(model)
    for entry in registry.entries.values():
        if entry.module == kind.__module__:
            return entry.name
    return kind.__name__
