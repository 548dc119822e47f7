"""Registries: names without imports, one new file is enough, clashes, missing distributions, near misses."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from milfast import models
from milfast.registry import Entry, Registry

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that writes files of a package and returns a registry of it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made: list[str] = []

    def write(name: str = "zoo_of_models", **files: str) -> Registry:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("")
        for stem, text in files.items():
            (folder / f"{stem}.py").write_text(text)
        made.append(name)
        return Registry("animal", name)

    yield write
    for name in list(sys.modules):
        if name.split(".")[0] in made:
            del sys.modules[name]


def test_names_are_found_without_importing_torch_or_scikit_learn() -> None:
    script = (
        "import sys, milfast\n"
        "assert {'mi-Net', 'MI-Net', 'mi-SVM', 'NSK'} <= set(milfast.models.names())\n"
        "assert milfast.models.registry['mi-Net'].summary\n"
        "heavy = {'torch', 'sklearn', 'scipy', 'pandas', 'joblib', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_importing_milfast_imports_numpy_alone() -> None:
    script = (
        "import sys, numpy\n"
        "before = {name.split('.')[0] for name in sys.modules}\n"
        "import milfast\n"
        "after = {name.split('.')[0] for name in sys.modules} - before\n"
        "assert after - set(sys.stdlib_module_names) == {'milfast'}, after\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_groups_are_the_packages_of_the_files() -> None:
    svm = ["MI-SVM", "mi-SVM", "MICA", "MissSVM", "NSK", "sbMIL", "SIL", "sMIL", "STK", "stMIL"]
    assert models.names("svm") == svm
    assert models.names("linear") == ["LR"]
    assert models.names("svm") + models.names("linear") + models.names("deep") == models.names()
    with pytest.raises(ValueError, match="group must be svm, linear or deep; got 'tree'"):
        models.names("tree")


def test_every_registered_model_has_a_summary_and_loads_by_its_name() -> None:
    for name in models.names():
        entry = models.registry[name]
        assert entry.summary
        assert not entry.summary.endswith(".")
        if "torch" in entry.requires:
            pytest.importorskip("torch")
        kind = models.get(name)
        assert kind.family == entry.group
        assert models.name_of(kind()) == name
    assert models.name_of(object()) == "object"


def test_one_new_file_is_a_new_entry(package: Any) -> None:
    registry = package(
        ant='"""Ant: small, and many.\n\nMore text.\n"""\nNAME = "Ant"\n',
        bee='"""Bee"""\nfrom typing import Final\nNAME: Final = "bee"\nREQUIRES = ("torch",)\nimport no_such_module\n',
        helper="THING = 1\n",
        nameless="NAME = None\n",
        inner='def f():\n    NAME = "hidden"\n',
    )
    assert registry.names() == ["Ant", "bee"]
    assert registry["Ant"] == Entry("Ant", "Ant: small, and many", "zoo_of_models", "zoo_of_models.ant")
    assert registry["bee"].requires == ("torch",)
    assert registry["Ant"].load().NAME == "Ant"
    # a file added later is seen by the next registry
    assert package(cat='NAME = "cat"\n').names() == ["Ant", "bee", "cat"]


def test_what_a_class_claims_is_read_from_its_file_or_from_those_that_it_is_derived_from(package: Any) -> None:
    ant = "NAME = 'ant'\n__all__ = ['Ant']\nfrom typing import ClassVar\n"
    ant += "class Base:\n    claims: ClassVar[str] = 'standard'\n"
    ant += "class Ant(Base):\n    claims = None\nclass Other:\n    claims = 'x'\n"
    derived = "from zoo_of_models.ant import Base as Insect\n__all__ = ['Bee']\nclass Bee(Insect, metaclass=type):\n"
    registry = package(
        ant=ant,
        bee=f"import no_such_module\nNAME = 'bee'\n{derived}    legs = 6\n",
        cow=f"NAME = 'cow'\n{derived.replace('Bee', 'Cow')}    claims = 'threshold'\n",
        dog="NAME = 'dog'\nfrom json import JSONEncoder\n__all__ = ['Dog']\nclass Dog(JSONEncoder):\n    pass\n",
    )
    claims = {name: registry[name].claims for name in registry.names()}
    assert claims == {"ant": None, "bee": "standard", "cow": "threshold", "dog": None}
    with pytest.raises(ValueError, match=r"claims of Elk in zoo_of_models\.elk must be written out"):
        package(elk="NAME = 'elk'\n__all__ = ['Elk']\nclass Elk:\n    claims = str(1)\n").names()


def test_entries_without_a_code_are_sorted_by_name(package: Any) -> None:
    registry = package(zebra="NAME = 'Ant'\n", ant="NAME = 'bee'\n", yak="NAME = 'cow'\nCODE = 'A1'\n")
    assert registry.names() == ["Ant", "bee", "cow"]


def test_a_name_taken_twice_is_refused(package: Any) -> None:
    registry = package(ant='NAME = "x"\n', bee='NAME = "x"\n')
    with pytest.raises(ValueError, match=r"zoo_of_models\.bee and zoo_of_models\.ant share a name"):
        registry.names()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('NAME = "a" + str(1)\n', ValueError, r"NAME in zoo_of_models\.ant must be written out"),
        ('NAME = "a"\nREQUIRES = list()\n', ValueError, r"REQUIRES in zoo_of_models\.ant must be written out"),
        ('NAME = "a"\nREQUIRES = "torch"\n', ValueError, r"REQUIRES in zoo_of_models\.ant must be a tuple .* 'torch'"),
        ("NAME = \n", SyntaxError, r"zoo_of_models\.ant"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(package: Any, text: str, error: type[Exception], message: str) -> None:
    registry = package(ant=text)
    with pytest.raises(error, match=message):
        registry.names()


def test_a_missing_distribution_comes_with_the_line_that_installs_it(package: Any) -> None:
    registry = package(ant='NAME = "Ant"\nREQUIRES = ("no_such_thing",)\n')
    with pytest.raises(ImportError, match=r"Ant needs no_such_thing, .* pip install 'milfast\[no_such_thing\]'"):
        registry["Ant"].load()


def test_a_deep_model_without_torch_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else find(name, *rest))
    with pytest.raises(ImportError, match=r"mi-Net needs torch, .* pip install 'milfast\[torch\]'"):
        models.get("mi-Net")


def test_near_misses_are_suggested_and_all_names_listed(package: Any) -> None:
    registry = package(ant='NAME = "Ant"\n', bee='NAME = "bee"\n', x='NAME = "w-a"\n', y='NAME = "W-a"\n')
    with pytest.raises(ValueError, match=r"there is no animal 'ant': did you mean Ant\? known are Ant, bee, w-a, W-a"):
        registry["ant"]
    with pytest.raises(ValueError, match="there is no animal 'zzz': known are Ant, bee, w-a, W-a"):
        registry["zzz"]
    with pytest.raises(ValueError, match=r"did you mean w-a or W-a\?"):
        registry["W-A"]
