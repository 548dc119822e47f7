"""How an untrained torch module is made anew for each run, from whatever the user handed over."""

from __future__ import annotations

import copy
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from milfast.models.signatures import POSITIONAL, signature_of, title_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["copied", "detach", "host_seeded", "make"]

#: Names of the argument that says how many features there are: as a shape, or as a number.
SHAPES = ("in_shape", "input_shape")
NUMBERS = (
    "n_features",
    "in_features",
    "num_features",
    "input_dim",
    "in_dim",
    "dim_in",
    "input_size",
    "in_size",
    "feature_dim",
    "feat_dim",
    "d_in",
    "n_inputs",
)


def make(source: Any, n_features: int) -> nn.Module:
    """A module whose parameters are new.

    Parameters
    ----------
    source : torch.nn.Module, class or callable
        A class or function is called: with ``in_shape=(n_features,)`` where it takes that, else with ``n_features``
        by a name that is usual for it, else with `n_features` as the one argument that it needs, else without
        arguments. A module is copied, and every part of the copy draws its parameters anew by its
        ``reset_parameters``, apart from frozen ones, which stay as they are.
    n_features : int

    Returns
    -------
    torch.nn.Module
        Shares nothing with `source`, nor with what an earlier call returned.

    Raises
    ------
    TypeError
        When a module has parameters that cannot be drawn anew, when a class or function needs other arguments, or when
        what it makes is no module.
    Exception
        Whatever the class or function raises, with a note that says how it was called.

    Examples
    --------
    >>> from torch import nn
    >>> from milfast.models.deep.making import make
    >>> make(lambda n_features: nn.Linear(n_features, 1), 3)
    Linear(in_features=3, out_features=1, bias=True)
    """
    if isinstance(source, nn.Module):
        return _reset(copied(source))
    name = title_of(source)
    arguments, options = _arguments(source, name, n_features)
    called = f"{name}({', '.join([*map(repr, arguments), *(f'{key}={value!r}' for key, value in options.items())])})"
    try:
        made = source(*arguments, **options)
    except Exception as error:
        error.add_note(f"while making {called}")
        raise
    if not isinstance(made, nn.Module):
        raise TypeError(
            f"{called} made {type(made).__name__}, which is no torch module: a function of the number of features must "
            "return one; a function that makes an estimator takes no arguments"
        )
    # a function may return the same module each time, and default arguments are shared by all that a class makes
    return copied(made)


def _arguments(source: Any, name: str, n_features: int) -> tuple[list[Any], dict[str, Any]]:
    parameters = signature_of(source)
    if parameters is None:  # a class without __init__ has that of nn.Module, which takes nothing
        return ([] if getattr(source, "__init__", None) is nn.Module.__init__ else [n_features]), {}
    names = {p.name for p in parameters if p.kind not in (p.POSITIONAL_ONLY, p.VAR_KEYWORD)}
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    given: dict[str, Any] = {}
    for known, value in (*((n, (n_features,)) for n in SHAPES), *((n, n_features) for n in NUMBERS)):
        if known in names:
            given = {known: value}
            break
    missing = [p for p in needed if p.name not in given]
    if not missing:
        return [], given
    if not given and len(missing) == 1 and missing[0].kind in POSITIONAL:
        return [n_features], {}
    others = ", ".join(p.name for p in missing)
    told = next(iter(given), None)
    known = f"the number of features is given as {told}" if told else f"no argument is called {', '.join(SHAPES)} or "
    known += "" if told else f"{', '.join(NUMBERS[:-1])} or {NUMBERS[-1]}"
    raise TypeError(
        f"{name} cannot be made from the number of features alone: {known}, and it needs {others}. Hand over a "
        f"function of the number of features that makes it, as lambda n_features: {name}(...)"
    )


def copied(module: nn.Module) -> nn.Module:
    """A copy of a module, also of one that holds what torch does not copy.

    Tensors that were computed from parameters, such as the weight of `torch.nn.utils.weight_norm` or an attention that
    was kept, are copied as plain numbers. Buffers of lazy parts stay without a shape.

    Parameters
    ----------
    module : torch.nn.Module

    Returns
    -------
    torch.nn.Module

    Raises
    ------
    Exception
        Whatever else cannot be copied raises, with a note.

    Examples
    --------
    >>> from torch import nn
    >>> from milfast.models.deep.making import copied
    >>> layer = nn.Linear(2, 1)
    >>> layer.kept = 2 * layer.weight
    >>> copied(layer).kept.requires_grad
    False
    """
    memo: dict[int, Any] = {}
    detach(module, memo)
    try:
        return copy.deepcopy(module, memo)
    except Exception as error:
        error.add_note(
            f"while copying {type(module).__name__}, of which every run needs one of its own: hand over the class or a "
            "function of the number of features that makes it, and keep nothing in it that copy.deepcopy cannot copy"
        )
        raise


def detach(module: nn.Module, memo: dict[int, Any]) -> None:
    """Write copies of what torch does not copy down where `copy.deepcopy` looks first.

    Parameters
    ----------
    module : torch.nn.Module
    memo : dict
        The second argument of `copy.deepcopy`.
    """
    for tensor in _held(module):
        if isinstance(tensor, nn.parameter.UninitializedBuffer):
            kind: Any = type(tensor)  # torch's stubs have the arguments of something else
            empty = kind(tensor.requires_grad, tensor.data.device, tensor.data.dtype)
            if hasattr(tensor, "persistent"):
                empty.persistent = tensor.persistent
            memo.setdefault(id(tensor), empty)
        elif not tensor.is_leaf:
            memo.setdefault(id(tensor), tensor.detach().clone())


def _held(module: nn.Module) -> Iterator[Tensor]:
    """Tensors that the parts of a module hold, also within lists and dicts."""
    left: list[Any] = [vars(part) for part in module.modules()]
    seen: set[int] = set()
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, dict):
            left += value.values()
        elif isinstance(value, (list, tuple)):
            left += value


def _reset(module: nn.Module) -> nn.Module:
    # lazy parameters are drawn when the module is first called
    there = {name: p for name, p in module.named_parameters() if not nn.parameter.is_lazy(p)}
    frozen = [(p, p.detach().clone()) for p in there.values() if not p.requires_grad]
    failed: Exception | None = None
    with torch.no_grad():
        for parameter in there.values():
            if parameter.requires_grad:
                parameter.fill_(torch.nan)  # what is left of it has not been drawn
    # parts before the whole, in the order in which they were made: a whole may draw parameters of its parts again
    for part in reversed(list(module.modules())):
        parameters = list(part.parameters())
        if parameters and not any(p.requires_grad for p in parameters):
            continue  # frozen: what it knows is part of the model
        reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
        if callable(reset):
            try:
                reset()
            except Exception as error:
                failed = failed or error
    with torch.no_grad():
        for parameter, value in frozen:
            parameter.copy_(value)
    drawn = {name: p for name, p in module.named_parameters() if name in there and p.requires_grad}
    stuck = [name for name, p in drawn.items() if bool(p.isnan().any())]
    if failed is not None and not stuck:
        raise failed
    if stuck:
        name = type(module).__name__
        raise TypeError(
            f"every run starts from new parameters, but {', '.join(sorted(stuck))} of this {name} cannot be drawn "
            "anew: what holds them has no reset_parameters() that draws them. Hand over a class or a function of the "
            f"number of features that makes a {name}; one that returns a copy of yours starts every run from its "
            "weights"
        ) from failed
    return module


@contextmanager
def host_seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of numpy and `random` inside; leave them as they were found.

    Parameters
    ----------
    seed : int
        In [0, 2**32).

    Examples
    --------
    >>> import random
    >>> from milfast.models.deep.making import host_seeded
    >>> before = random.getstate()
    >>> with host_seeded(0):
    ...     first = random.random()
    >>> with host_seeded(0):
    ...     random.random() == first
    True
    >>> random.getstate() == before
    True
    """
    states = np.random.get_state(), random.getstate()  # noqa: NPY002  # modules of others draw from it
    try:
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        yield
    finally:
        np.random.set_state(states[0])  # noqa: NPY002
        random.setstate(states[1])
