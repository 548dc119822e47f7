"""The public surface: everything named is there, documented, and typed as it is."""

from __future__ import annotations

import ast
import importlib
import inspect
import types
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import milfast
import milfast.invariance
from milfast import _core

STUB = Path(milfast.__file__).with_name("_core.pyi")
#: Compiled functions; classes are for other modules to wrap.
FUNCTIONS = [name for name in _core.__all__ if not isinstance(getattr(_core, name), type)]
PACKAGES = (
    "milfast",
    "milfast.checks",
    "milfast.consistency",
    "milfast.uncertainty",
    "milfast.datasets",
    "milfast.models",
    "milfast.invariance",
    "milfast.invariance.learners",
    "milfast.protocol",
)


def public_objects() -> list[Any]:
    """Functions and classes that are public by `__all__`, models, and public methods of all those classes.

    Each with its documentation: its own, and that of what it extends or overrides.
    """
    found: dict[str, Any] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                found.setdefault(f"{getattr(value, '__module__', package)}.{value.__name__}", value)
    for name in milfast.models.names():
        try:
            kind = milfast.models.get(name)
        except ImportError:  # torch is missing; its models are looked at where it is there
            continue
        found[f"model {name}"] = kind
    for name in milfast.invariance.learners.names():
        found[f"learner {name}"] = milfast.invariance.learners.get(name)
    documentation = {name: [inspect.getdoc(value)] for name, value in found.items()}
    for name, value in list(found.items()):
        if inspect.isclass(value):
            documentation[name] += [base.__doc__ for base in value.__mro__[1:] if base.__module__.startswith("milfast")]
            for attribute in dir(value):
                member = getattr(value, attribute)
                if attribute.startswith("_") or not (inspect.isroutine(member) or isinstance(member, property)):
                    continue
                if "milfast" in getattr(getattr(member, "fget", member), "__module__", ""):
                    found[f"{name}.{attribute}"] = member
                    documentation[f"{name}.{attribute}"] = [
                        vars(base)[attribute].__doc__ for base in value.__mro__ if attribute in vars(base)
                    ]
    return [pytest.param(value, [doc or "" for doc in documentation[name]], id=name) for name, value in found.items()]


def parameters_of(value: Any) -> list[str]:
    if isinstance(value, property):
        return []
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls") and name[0] != "_"]


def returns_something(value: Any) -> bool:
    if isinstance(value, property) or inspect.isclass(value):
        return False
    returned = getattr(value, "__annotations__", {}).get("return")
    if returned is None:  # a compiled function: ask the stub
        returned = stub_functions()[value.__name__].returns
        returned = ast.unparse(returned) if returned is not None else "None"
    return str(returned) != "None"


def stub_functions() -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("package", PACKAGES)
def test_everything_in_all_can_be_imported_and_is_sorted(package: str) -> None:
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'milfast' has no attribute 'nothing'"):
        milfast.nothing  # noqa: B018


@pytest.mark.parametrize(("value", "docs"), public_objects())
def test_what_is_public_is_documented_in_the_sections_of_numpydoc(value: Any, docs: list[str]) -> None:
    summary = docs[0].strip().split("\n")[0]
    assert len(summary.split()) > 1
    lines = [line.strip() for doc in docs for line in inspect.cleandoc(doc).splitlines()]
    headings = {above for above, below in pairwise(lines) if above and set(below) == {"-"}}
    parameters = parameters_of(value)
    if parameters:
        is_result = inspect.isclass(value) and "__dataclass_fields__" in vars(value)
        assert "Parameters" in headings or (is_result and "Attributes" in headings)
    # names stand in lines of their own: "bags : Bags", "degree, coef0", "**options"
    described = {name.lstrip("*") for line in lines for name in line.split(" :")[0].split(", ")}
    assert set(parameters) <= described
    if returns_something(value):
        assert headings & {"Returns", "Yields"}


def test_every_compiled_function_is_in_the_stub_and_no_other() -> None:
    compiled = {name for name, value in vars(_core).items() if isinstance(value, types.BuiltinFunctionType)}
    assert compiled == set(stub_functions()) == set(FUNCTIONS)
    classes = {name for name, value in vars(_core).items() if isinstance(value, type)}
    assert compiled | classes == set(_core.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_signature_of_a_compiled_function_is_that_of_the_stub(name: str) -> None:
    arguments = stub_functions()[name].args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    defaults: list[Any] = [inspect.Parameter.empty] * (len(positional) - len(arguments.defaults)) + [
        ast.literal_eval(default) for default in arguments.defaults
    ]
    expected = [
        (p, inspect.Parameter.POSITIONAL_OR_KEYWORD, default) for p, default in zip(positional, defaults, strict=True)
    ]
    expected += [
        (p.arg, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty if d is None else ast.literal_eval(d))
        for p, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    signature = inspect.signature(getattr(_core, name))
    assert [(p.name, p.kind, p.default) for p in signature.parameters.values()] == expected


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert milfast.__version__ == version("milfast")
