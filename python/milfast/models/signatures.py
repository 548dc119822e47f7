"""What a callable says of itself: its name, and the arguments that it takes. Nothing here needs torch."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MODULE_STYLES", "POSITIONAL", "needed_by", "signature_of", "title_of"]

#: Ways to hand bags to a torch module.
MODULE_STYLES = ("flat", "padded", "single")
#: Kinds of parameters that may be given by their place.
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def title_of(source: Any) -> str:
    """What a module, its class or a function that makes it is called.

    Parameters
    ----------
    source : torch.nn.Module, class or callable

    Returns
    -------
    str
    """
    inner = getattr(source, "func", source)  # of functools.partial
    return getattr(inner, "__name__", None) or type(inner).__name__


def signature_of(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Parameters of a callable; None where it does not say which it takes.

    Parameters
    ----------
    function : callable

    Returns
    -------
    list of inspect.Parameter or None
        Also None where it takes any number of them.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # what is compiled may have no signature
        return None
    return None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else parameters


def needed_by(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Arguments of a callable that have no default and may be given by their place.

    Parameters
    ----------
    function : callable

    Returns
    -------
    list of inspect.Parameter
        None where it does not say which it takes.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # what is compiled may have no signature
        return []
    return [p for p in parameters if p.default is p.empty and p.kind in POSITIONAL]
