"""Registries read from the files of a package: adding an entry is adding a file."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


@dataclass(frozen=True)
class Entry:
    """One file of a registry.

    Attributes
    ----------
    name : str
        Value of ``NAME`` in the file.
    summary : str
        First line of the file's docstring.
    group : str
        Last part of the package the file lives in.
    module : str
        Full name of the module.
    requires : tuple of str
        Value of ``REQUIRES`` in the file: distributions beyond the base install.
    code : str
        Value of ``CODE`` in the file, where it has one.
    claims : str or None
        What the class attribute `claims` of the file's one public class says, where it has one.
    """

    name: str
    summary: str
    group: str
    module: str
    requires: tuple[str, ...] = ()
    code: str = ""
    claims: str | None = None

    def load(self) -> ModuleType:
        """Import the file.

        Raises
        ------
        ImportError
            When a distribution it needs is missing; the message says how to install it.
        """
        for distribution in self.requires:
            if importlib.util.find_spec(distribution) is None:
                raise ImportError(
                    f"{self.name} needs {distribution}, which is not installed: pip install 'milfast[{distribution}]'"
                )
        return importlib.import_module(self.module)


class Registry:
    """Named entries found in the files of some packages, without importing them.

    A file belongs to the registry when it assigns a string to ``NAME`` at its top level.

    Parameters
    ----------
    noun : str
        What an entry is called in messages.
    packages : str
        Packages to read.
    """

    def __init__(self, noun: str, *packages: str) -> None:
        self.noun = noun
        self.packages = packages

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Entries by name, in the order of packages, codes and names."""
        found: dict[str, Entry] = {}
        for package in self.packages:
            paths = [path for path in files(package).iterdir() if path.name.endswith(".py")]
            read = (_read(p.read_text(encoding="utf-8"), f"{package}.{p.name.removesuffix('.py')}") for p in paths)
            for entry in sorted(
                filter(None, read), key=lambda entry: (entry.code, entry.name.casefold(), entry.module)
            ):
                if entry.name in found:
                    raise ValueError(f"{entry.module} and {found[entry.name].module} share a name")
                found[entry.name] = entry
        return found

    def names(self) -> list[str]:
        """Names of all entries."""
        return list(self.entries)

    def named(self, text: str) -> str:
        """The name that a code stands for; any other text as it is."""
        return next((entry.name for entry in self.entries.values() if entry.code and entry.code == text), text)

    def __getitem__(self, name: str) -> Entry:
        try:
            return self.entries[name]
        except KeyError:
            lower = difflib.get_close_matches(name.lower(), {n.lower() for n in self.names()}, n=2)
            near = [known for known in self.names() if known.lower() in lower]
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise ValueError(f"there is no {self.noun} {name!r}: {hint}known are {', '.join(self.names())}") from None


def _read(source: str, module: str) -> Entry | None:
    """Read an entry's constants from the syntax tree, so that listing a model does not import torch."""
    tree = ast.parse(source, filename=module)
    constants: dict[str, object] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and target.id in ("NAME", "REQUIRES", "CODE", "__all__"):
                value = getattr(node, "value", None)
                try:
                    constants[target.id] = ast.literal_eval(value) if isinstance(value, ast.AST) else None
                except ValueError:
                    raise ValueError(f"{target.id} in {module} must be written out: it is read, not run") from None
    name = constants.get("NAME")
    if not isinstance(name, str):
        return None
    requires = constants.get("REQUIRES", ())
    if not isinstance(requires, tuple):
        raise ValueError(f"REQUIRES in {module} must be a tuple of distributions; got {requires!r}")
    summary = (ast.get_docstring(tree) or "").split("\n", 1)[0].rstrip(".")
    code = constants.get("CODE", "")
    if not isinstance(code, str):
        raise ValueError(f"CODE in {module} must be a string; got {code!r}")
    public = constants.get("__all__")
    told = _class_constant(tree, module, public[0], "claims") if isinstance(public, list) and public else None
    claims = None if told is None else told[0]
    if not (claims is None or isinstance(claims, str)):
        raise ValueError(f"claims in {module} must be a string or None; got {claims!r}")
    return Entry(name, summary, module.split(".")[-2], module, requires, code, claims)


def _class_constant(tree: ast.Module, module: str, kind: str, wanted: str) -> tuple[object] | None:
    """A constant of a class or of those that it is derived from, which may be in other files of the distribution."""
    own = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind), None)
    if own is None:
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == module.partition(".")[0]:
                for alias in node.names:
                    if (alias.asname or alias.name) == kind:
                        source = _source(str(node.module))
                        return _class_constant(ast.parse(source), str(node.module), alias.name, wanted)
        return None
    for statement in own.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        value = getattr(statement, "value", None)
        if isinstance(value, ast.expr) and any(isinstance(t, ast.Name) and t.id == wanted for t in targets):
            try:
                return (ast.literal_eval(value),)
            except ValueError:
                raise ValueError(f"{wanted} of {kind} in {module} must be written out: it is read, not run") from None
    bases = (base for base in own.bases if isinstance(base, ast.Name))
    return next(filter(None, (_class_constant(tree, module, base.id, wanted) for base in bases)), None)


def _source(module: str) -> str:
    package, _, stem = module.rpartition(".")
    try:
        return files(package).joinpath(f"{stem}.py").read_text(encoding="utf-8")
    except (FileNotFoundError, ModuleNotFoundError):  # a package, which is no file: nothing is known of it
        return ""
