"""How often intervals of error consistency hold the truth: small simulations, and the page against the recorded one."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from scipy.stats import binom

from milfast.consistency import coverage
from milfast.report import records
from milfast.study import Store

RECORDED = ROOT / "docs" / "results" / "consistency-coverage.json"
PAGE = ROOT / "docs" / "consistency.md"
#: Coverage that is promised at the level of 95 %.
PROMISED = (0.92, 0.97)


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def within(k: int, n: int, seldom: float = 1e-3) -> bool:
    """Whether a coverage within what is promised may well give `k` of `n`."""
    low, high = PROMISED
    return bool(binom.cdf(k, n, low) > seldom and binom.sf(k - 1, n, high) > seldom)


def test_the_bounds_of_this_test_would_show_a_wrong_interval() -> None:
    assert within(475, 500)
    assert not within(430, 500)
    assert not within(500, 500)


@pytest.mark.parametrize("beta", coverage.DIFFICULTIES)
def test_the_truth_is_that_of_very_many_samples(beta: tuple[float, float]) -> None:
    d = np.random.default_rng(0).beta(*beta, 10**6)
    assert coverage.truth(*beta) == pytest.approx((d * d).mean() / (2 * d - d * d).mean(), abs=0.005)


def test_intervals_of_few_simulations_hold_the_truth_as_often_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    for how in coverage.METHODS.values():
        if "n_replicates" in how:
            monkeypatch.setitem(how, "n_replicates", 200)
    monkeypatch.setattr(coverage, "MANY_RUNS", 4000)
    # all jobs of a row share no sample
    counts = coverage.total(
        {
            "batches": [
                coverage.simulate(
                    {"difficulty": [0.4, 1.6], "n_samples": 195, "n_sets": 20, "simulations": 25, "seed": 7, "batch": i}
                )
                for i in range(8)
            ]
        }
    )
    assert counts["simulations"] == 200
    for name in coverage.METHODS:
        assert within(counts[name], 200), (name, counts[name])


def test_an_interval_from_pairs_as_if_they_were_independent_holds_the_truth_seldom() -> None:
    """What the standard deviation over pairs is not: an error of the mean."""
    rng = np.random.default_rng(0)
    truth, held = coverage.truth(0.4, 1.6), 0
    for _ in range(100):
        found = coverage.error_consistency(rng.random((100, 195)) < rng.beta(0.4, 1.6, 195))
        held += abs(found.mean - truth) < 1.96 * found.sd / np.sqrt(found.n_pairs)
    assert held < 20


@pytest.mark.slow
@pytest.mark.parametrize("cell", coverage.cells(), ids=repr)
def test_intervals_hold_the_truth_as_often_as_promised(cell: coverage.Cell) -> None:
    # another seed than that of the record
    counts = coverage.total({"batches": [coverage.simulate(spec) for spec in cell.specs(1, 1.0)]})
    assert counts["simulations"] == 500
    for name in coverage.METHODS:
        assert within(counts[name], counts["simulations"]), (name, counts[name])


# ---------------------------------------------------------------- the command


def test_the_command_goes_on_where_it_was_stopped(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(coverage, "cells", lambda: [coverage.Cell((0.4, 1.6), 20, 5)])
    monkeypatch.setattr(coverage, "BATCHES", 2)
    monkeypatch.setattr(coverage, "SIMULATIONS", 2)
    monkeypatch.setattr(coverage, "MANY_RUNS", 100)
    out, figures, page = tmp_path / "sims.db", tmp_path / "coverage.json", tmp_path / "page.md"
    page.write_text("before\n<!-- simulated: coverage -->\n<!-- end -->\nafter\n")
    assert coverage.main(["--out", str(out), "--share", "0.5", "--jobs", "1"]) == 0
    assert coverage.main(["--out", str(out), "--jobs", "1", "--json", str(figures), "--page", str(page)]) == 0
    with Store(out, write=False) as store:
        assert store.counts()["done"] == 2
    [cell] = json.loads(figures.read_text())["cells"]
    assert coverage.total(cell)["simulations"] == 4
    shown = coverage.table([cell])
    assert shown in capsys.readouterr().out
    assert page.read_text() == f"before\n<!-- simulated: coverage -->\n{shown}\n<!-- end -->\nafter\n"


def test_a_failed_job_is_told(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "cells", lambda: [coverage.Cell((-1.0, 1.6), 20, 5)])
    assert coverage.main(["--out", str(tmp_path / "sims.db"), "--share", "0.01", "--jobs", "1"]) == 1


# ---------------------------------------------------------------- the page


def test_the_table_of_the_page_is_the_recorded_one(recorded: dict[str, Any]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    [shown] = re.findall(r"<!-- simulated: coverage -->\n(.*?)\n<!-- end -->", text, flags=re.DOTALL)
    assert shown == coverage.table(recorded["cells"])
    tables = {"coverage": coverage.table(recorded["cells"])}
    assert records.fill(text, "simulated", tables) == text
    with pytest.raises(ValueError, match="must have a place <!-- simulated: coverage -->"):
        records.fill("# Error consistency", "simulated", tables)


def test_what_is_recorded_is_all_that_is_planned_and_what_is_promised(recorded: dict[str, Any]) -> None:
    assert [cell["given"] for cell in recorded["cells"]] == [cell.given for cell in coverage.cells()]
    assert (recorded["failed"], recorded["share"], recorded["level"]) == (0, 1.0, 0.95)
    low, high = PROMISED
    for cell in recorded["cells"]:
        counts = coverage.total(cell)
        assert counts["simulations"] == coverage.BATCHES * coverage.SIMULATIONS >= 400
        for name in coverage.METHODS:
            assert low <= counts[name] / counts["simulations"] <= high, (name, cell["given"])


def test_recorded_figures_come_out_again(recorded: dict[str, Any]) -> None:
    [(cell, known)] = [
        (c, r) for c, r in zip(coverage.cells(), recorded["cells"], strict=True) if (c.n_samples, c.n_sets) == (195, 20)
    ][:1]
    spec = cell.specs(recorded["seed"], 1.0)[3]
    assert coverage.simulate(spec) == known["batches"][3]
