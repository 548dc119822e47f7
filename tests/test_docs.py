"""Examples in docstrings, the README and the guides do what they say."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import re
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import ROOT

import milfast
from milfast import _core
from milfast.checks import CheckResult, catalogue, codes

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = doctest.NORMALIZE_WHITESPACE
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(milfast.__path__, "milfast.", onerror=lambda _: None)
    if module.name not in ("milfast._core", "milfast.__main__")
)
#: These import torch on their first line, and others show models that do.
NEEDS_TORCH = ("milfast.models.deep", "milfast.training")
TOOLS = sorted(path.stem for path in (ROOT / "docs" / "tools").glob("*.py"))
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))) if path.exists()]


def run(test: doctest.DocTest) -> None:
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    failures: list[str] = []
    runner.run(test, out=failures.append)
    assert not runner.summarize(verbose=False).failed, "".join(failures)


@pytest.mark.parametrize("name", ["milfast", *MODULES, *TOOLS])
def test_examples_of_a_module_hold(name: str) -> None:
    if name.startswith(NEEDS_TORCH):
        pytest.importorskip("torch")
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        for optional in ("pandas", "matplotlib", "PIL"):
            if optional in (test.docstring or ""):
                pytest.importorskip(optional)
        run(test)


@pytest.mark.parametrize("name", [n for n in _core.__all__ if not isinstance(getattr(_core, n), type)])
def test_examples_of_a_compiled_function_hold(name: str) -> None:
    # doctest's finder looks at Python functions only
    test = doctest.DocTestParser().get_doctest(getattr(_core, name).__doc__, {}, name, None, None)
    assert test.examples or name == "sample_bags"
    run(test)


def fenced(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_examples_of_a_page_hold(path: Path) -> None:
    """All examples of a page run in its order and share their names, as a reader would type them."""
    blocks = [block for block in fenced(path.read_text(encoding="utf-8"), "py(?:thon|con)") if ">>> " in block]
    if any("-Net" in block or "torch" in block for block in blocks):
        pytest.importorskip("torch")
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks, start=1):
        test = doctest.DocTestParser().get_doctest(block, names, f"{path.name}, block {number}", str(path), 0)
        test.globs = names
        runner = doctest.DocTestRunner(optionflags=FLAGS)
        failures: list[str] = []
        runner.run(test, out=failures.append, clear_globs=False)
        assert not runner.summarize(verbose=False).failed, "".join(failures)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_other_python_blocks_of_a_page_compile(path: Path) -> None:
    for block in fenced(path.read_text(encoding="utf-8"), "python"):
        if ">>> " not in block:
            assert isinstance(compile(block, str(path), "exec"), types.CodeType)


CHECKS_PAGE = ROOT / "docs" / "checks.md"


def test_every_code_has_a_heading_on_the_page_of_checks_and_no_other() -> None:
    entries = {entry.code: entry.name for entry in catalogue.registry.entries.values()}
    coded = {code: name for names in (codes.VERDICTS, codes.FLAGS) for name, code in names.items()}
    expected = entries | coded | {codes.OWN_RECIPE: "own-recipe", codes.IMPOSSIBLE_PAIR: "impossible-pair"}
    headings = re.findall(r"^### (MIL\S*) (.+)$", CHECKS_PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(dict(headings)) == len(headings)
    assert dict(headings) == expected


@pytest.mark.parametrize("check", catalogue.names())
def test_the_section_of_a_check_has_what_people_look_for(check: str) -> None:
    text = CHECKS_PAGE.read_text(encoding="utf-8")
    [section] = re.findall(rf"^### {catalogue.get(check).code} .*?(?=^##)", text, flags=re.MULTILINE | re.DOTALL)
    assert "**Learned instead:**" in section
    assert "**What to do:**" in section
    [picture] = re.findall(r"!\[.+\]\((.+)\)", section)
    assert picture == f"pictures/{check}.svg"
    assert (CHECKS_PAGE.parent / picture).exists()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_within_a_page_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors


def test_the_table_of_the_readme_is_the_recorded_result() -> None:
    rows = json.loads((ROOT / "docs" / "results" / "check-paper-fast.json").read_text(encoding="utf-8"))
    recorded = {(r["model"], r["check"]): [f"{r['train_auc']:.3f}", r["verdict"]] for r in rows}
    lines = re.findall(
        r"^\| (NSK|mi-SVM|mi-Net|MI-Net) \|(.*)\|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M
    )
    cells = {(model, (row := [c.strip(" *") for c in line.split("|")])[0]): [row[1], row[-1]] for model, line in lines}
    assert cells == recorded
    assert set(rows[0]) == set(CheckResult.__annotations__) - {"runs", "settled"} | {
        *(
            f"{name}_{side}"
            for name in ("train_auc", "fresh_auc", "test_auc", "worst_auc", "broken")
            for side in ("low", "high")
        ),
        "verdict_code",
    }


ROW = r"^\| `([\w-]+)` \| (?:`(\w+)`)? ?\| ([\d.]+) / ([\d.]+) \| ([\d.]+) / ([\d.]+) \| ([\d.]+) / ([\d.]+) \|$"


def test_what_can_be_reached_and_had_for_nothing_comes_out_again() -> None:
    rows = re.findall(ROW, CHECKS_PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    tasks = [check for check in map(catalogue.get, catalogue.names()) if not check.is_law]
    several = [(c.name, spelling if len(c.spellings) > 1 else "") for c in tasks for spelling in c.spellings]
    assert [(check, spelling) for check, spelling, *_ in rows] == several
    for check, spelling, *printed in rows:
        recipe = catalogue.get(check).recipe(spelling or None)
        found: dict[str, list[str]] = {"oracle": [], "size": [], "count": []}
        for training in (True, False):
            bags = recipe.sample(40_000, training=training, random_state=1)
            assert bags.kinds is not None
            kinds = (
                [c.concept is not None for c in recipe.components] if hasattr(recipe, "components") else [False, True]
            )
            shown = np.add.reduceat(np.array(kinds)[bags.kinds].astype(np.int64), bags.offsets[:-1])
            found["oracle"].append(f"{recipe.oracle_auc(bags):.4f}")
            found["size"].append(f"{milfast.auc(bags.sizes, bags.labels):.3f}")
            found["count"].append(f"{milfast.auc(shown, bags.labels):.3f}")
        assert printed == [*found["oracle"], *found["size"], *found["count"]], (check, spelling)


def recorded_verdicts(*names: str) -> dict[tuple[str, str], dict[str, str]]:
    """Rows of tables that `milfast show --format markdown` wrote, of the spelling "paper"."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        lines = (ROOT / "docs" / "results" / name).read_text(encoding="utf-8").splitlines()
        header, _, *rows = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in lines if line[:1] == "|"]
        for cells in rows:
            row = dict(zip(header, cells, strict=True))
            if row["recipe"] == "paper":
                found[row["model"], row["check"]] = row
    return found


def table_of(page: str, columns: int) -> list[list[str]]:
    """Rows of the only table of a page that has so many columns, below its header."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    return [row for row in rows if len(row) == columns and not row[0].startswith("-")][1:]


def test_the_page_of_deep_models_has_them_all_with_the_recorded_verdicts() -> None:
    pytest.importorskip("torch")
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    recorded = recorded_verdicts("published-models.md", "monotone-mil.md")
    rows = table_of(page, 6)
    assert sorted(row[0] for row in rows) == sorted(milfast.models.names("deep"))
    checks = ("presence", "threshold-poison", "false-frequency")
    for model, claims, _, *cells in rows:
        assert claims == (getattr(milfast.models.get(model), "claims", None) or "nothing")
        for check, cell in zip(checks, cells, strict=True):
            row = recorded.get((model, check))
            if row is None:
                assert cell == "-", (model, check)
                continue
            expected = f"{row['verdict']} {row['shifted AUC'].split()[0]}"
            if "worst-stratum" in row["flags"].split():
                expected += f", worst {row['worst sort'].split()[0]}"
            assert cell == expected, (model, check)
    for model, *cells in table_of(page, 7):
        for check, ours in zip(checks, cells[1::2], strict=True):
            row = recorded.get((model, check))
            assert ours == (f"{row['train AUC']} / {row['shifted AUC'].split()[0]}" if row else "-"), (model, check)
