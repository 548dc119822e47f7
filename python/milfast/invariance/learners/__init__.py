"""Learners by name. Adding one is adding a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from milfast.registry import Registry

if TYPE_CHECKING:
    from milfast.invariance.learners.base import Learner

__all__ = ["get", "names"]

registry = Registry("learner", "milfast.invariance.learners")

#: Those of the paper, which its tables have; in its order.
PAPER = ("AND-mask", "ERM", "IGA", "IRMv1", "Oracle")


def names() -> list[str]:
    """Names of all learners.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from milfast.invariance import learners
    >>> "IRMv1" in learners.names()
    True
    """
    return registry.names()


def get(name: str) -> type[Learner]:
    """The class of a learner.

    Parameters
    ----------
    name : str

    Returns
    -------
    type

    Raises
    ------
    ValueError
        When there is no such learner; the message lists the known ones.

    Examples
    --------
    >>> from milfast.invariance import learners
    >>> learners.get("AND-mask")().default_params()
    {'lr': 0.001, 'weight_decay': 0.0, 'tau': 0.9}
    """
    module = registry[name].load()
    (public,) = module.__all__
    kind: type[Learner] = getattr(module, public)
    return kind
