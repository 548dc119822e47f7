"""How often intervals hold the truth: published sums, small simulations, and the page against the record."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import record_interval_coverage as coverage
from conftest import ROOT
from scipy.stats import binom

from milfast.report import records

RECORDED = ROOT / "docs" / "results" / "interval-coverage.json"
PAGE = ROOT / "docs" / "uncertainty.md"


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def of_part(results: dict[str, Any], part: str) -> list[dict[str, Any]]:
    found = [cell for cell in results["cells"] if cell["part"] == part]
    assert found
    return found


def default(cell: dict[str, Any]) -> dict[str, float]:
    """The first rule of a cell."""
    shares: dict[str, float] = next(iter(cell["rules"].values()))
    return shares


def test_sums_over_all_counts_are_those_of_a_published_table(recorded: dict[str, Any]) -> None:
    known = {
        (0.95, 20): (0.639, 0.925, 0.984),
        (0.95, 100): (0.878, 0.966, 0.983),
        (0.95, 670): (0.936, 0.950, 0.959),
        (0.9, 670): (0.943, 0.954, 0.961),
        (0.99, 670): (0.894, 0.951, 0.971),
    }
    for cell in of_part(recorded, "proportion"):
        expected = known.get((cell["given"]["p"], cell["given"]["n"]))
        if expected is not None:
            got = [cell["rules"][rule]["covered"] for rule in ("normal", "wilson", "clopper-pearson")]
            assert got == pytest.approx(expected, abs=6e-4)
        assert cell["rules"]["clopper-pearson"]["covered"] >= 0.95
    again = coverage.simulate(parts=["proportion"])["cells"]
    for here, there in zip(again, of_part(recorded, "proportion"), strict=True):
        assert here["given"] == there["given"]
        for rule, shares in here["rules"].items():
            assert shares == pytest.approx(there["rules"][rule], abs=1e-9)


def test_what_is_recorded_is_all_that_is_planned(recorded: dict[str, Any]) -> None:
    planned = [(cell.part, cell.given, list(cell.rules)) for cell in coverage.cells()]
    assert [(c["part"], c["given"], list(c["rules"])) for c in recorded["cells"]] == planned
    assert (recorded["runs"], recorded["n_boot"], recorded["level"]) == (coverage.RUNS, coverage.N_BOOT, 0.95)
    for cell in recorded["cells"]:
        for shares in cell["rules"].values():
            assert 0 <= shares["covered"] <= 1
            assert shares["covered"] + shares["below"] + shares["above"] <= 1 + 1e-9


def test_the_tables_of_the_page_are_the_recorded_ones(recorded: dict[str, Any]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert records.fill(page, "coverage", coverage.tables(recorded)) == page
    shown = dict(re.findall(r"<!-- coverage: (\S+) -->\n(.*?)\n<!-- end -->", page, flags=re.DOTALL))
    assert shown == coverage.tables(recorded)
    with pytest.raises(ValueError, match="the page must have a place"):
        records.fill("# Uncertainty", "coverage", coverage.tables(recorded))


def test_the_logit_interval_holds_what_is_promised_on_data_of_the_size_of_musk1(recorded: dict[str, Any]) -> None:
    cells = [cell for cell in of_part(recorded, "auc") if cell["given"]["n_pos"] == 47]
    assert [cell["given"]["auc"] for cell in cells] == [0.7, 0.8, 0.9, 0.95, 0.97]
    for cell in cells:
        assert 0.93 <= cell["rules"]["logit"]["covered"] <= 0.97
    # what the page says of DeLong's own interval
    assert cells[-1]["rules"]["delong"]["covered"] < 0.93
    assert all(cell["rules"]["delong"]["above"] > cell["rules"]["delong"]["below"] for cell in cells)


@pytest.mark.parametrize("part", [part for part in coverage.PARTS if part not in ("proportion", "mean")])
def test_defaults_hold_about_what_they_promise(part: str, recorded: dict[str, Any]) -> None:
    for cell in of_part(recorded, part):
        assert 0.92 <= default(cell)["covered"] <= 0.985, cell["given"]
        if "clusters ignored" in cell["rules"] and cell["part"] != "clusters":
            assert cell["rules"]["clusters ignored"]["covered"] < 0.9


QUICK = ("auc", "partial", "clusters", "classes", "accuracy", "balanced", "balanced-clusters", "f1", "macro", "mean")


@pytest.mark.parametrize("part", QUICK)
def test_recorded_shares_come_out_again(part: str, recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Other samples of the first design, closed rules only: as many as chance allows are covered."""
    first = next(cell for cell in coverage.cells() if cell.part == part)
    rules = tuple(rule for rule in first.rules if rule not in coverage.METHODS)
    cell = coverage.Cell(first.part, first.given, rules)
    monkeypatch.setattr(coverage, "cells", lambda: [cell])
    runs = 300
    [found] = coverage.simulate(seed=1, runs=runs)["cells"]
    [known] = [c for c in of_part(recorded, part) if c["given"] == first.given]
    for rule in rules:
        covered, p = round(found["rules"][rule]["covered"] * runs), known["rules"][rule]["covered"]
        # a right program leaves these bounds once in ten thousand times; the record has an error of its own
        low, high = binom.ppf(5e-5, runs, max(0.0, p - 0.015)), binom.ppf(1 - 5e-5, runs, min(1.0, p + 0.015))
        assert low <= covered <= high


def test_a_bootstrap_is_tried_on_a_tenth_of_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"n": 30, "law": "normal"}
    monkeypatch.setattr(coverage, "cells", lambda: [coverage.Cell("mean", given, ("bca", "basic", "t"))])
    [cell] = coverage.simulate(runs=40)["cells"]
    assert [shares["runs"] for shares in cell["rules"].values()] == [4, 4, 40]
    assert coverage.simulate(runs=40)["cells"] == [cell]


def test_the_command(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n<!-- coverage: proportion -->\n<!-- end -->\n", encoding="utf-8")
    arguments = ["--parts", "proportion", "--json", str(tmp_path / "found.json"), "--page", str(page)]
    assert coverage.main(arguments) == 0
    results = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    [table] = coverage.tables(results).values()
    assert table in capsys.readouterr().out
    assert f"-->\n{table}\n<!-- end -->" in page.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="parts must be of proportion, auc"):
        coverage.simulate(parts=["nothing"])


@pytest.mark.slow
def test_all_of_the_record_comes_out_again(recorded: dict[str, Any]) -> None:
    again = coverage.simulate(seed=recorded["seed"], runs=recorded["runs"])
    for here, there in zip(again["cells"], recorded["cells"], strict=True):
        assert (here["part"], here["given"]) == (there["part"], there["given"])
        for rule, shares in here["rules"].items():
            # the same numbers are drawn; another numpy or processor may round a bound to the other side of the truth
            assert shares == pytest.approx(there["rules"][rule], abs=0.005)
