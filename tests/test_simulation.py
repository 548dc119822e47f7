"""How often verdicts err: small simulations against exact bounds, and the document against the recorded one."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from scipy.stats import binom

from milfast.checks.estimate import Pooled
from milfast.checks.simulation import __main__ as command
from milfast.checks.simulation import jobs, plan, report
from milfast.checks.simulation.draw import Scorer, law_run
from milfast.study import Store

RECORDED = ROOT / "docs" / "results" / "verdicts.json"
PAGE = ROOT / "docs" / "verdicts.md"
#: How seldom a right program may fall outside a bound.
SELDOM = 1e-4


def not_above(k: int, n: int, p: float) -> bool:
    """Whether a rate of at most `p` may well give as many as `k` of `n`."""
    return bool(binom.sf(k - 1, n, p) > SELDOM)


def not_below(k: int, n: int, p: float) -> bool:
    return bool(binom.cdf(k, n, p) > SELDOM)


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def cells_of(recorded: dict[str, Any], part: str) -> list[dict[str, Any]]:
    found = [cell for cell in recorded["cells"] if cell["part"] == part]
    assert found
    return found


def verdicts(n_runs: int, runs: tuple[int, ...] = (1, 5, 10), n_test: int = 200, **attributes: Any) -> dict[str, int]:
    scorer = plan.scorer(n_fresh=200, **attributes)
    given = {"scorer": scorer, "n_test": n_test, "runs": list(runs), "n_runs": n_runs, "seed": 1, "batch": 0}
    return jobs.verdicts(given)


# ---------------------------------------------------------------- what is drawn


@pytest.mark.parametrize("auc", [0.2, 0.5, 0.9])
def test_scores_have_the_auc_that_was_asked_for(auc: float) -> None:
    run, own = Scorer(shifted=auc).run(40_000, 0, np.random.default_rng(0))
    assert own == auc
    assert run.test is not None
    assert run.test.value == pytest.approx(auc, abs=4 * run.test.noise)
    assert run.fresh.value == pytest.approx(0.9, abs=4 * run.fresh.noise)


def test_sorts_of_bags_have_aucs_of_their_own() -> None:
    run, own = Scorer(strata=(0.3, 0.7)).run(40_000, 0, np.random.default_rng(0))
    assert (own, run.worst) == (0.3, "sort 1")
    for name, auc in (("sort 1", 0.3), ("sort 2", 0.7)):
        assert run.strata[name].value == pytest.approx(auc, abs=4 * run.strata[name].noise)
    assert run.worst_auc is not None
    assert run.worst_auc.n < run.strata["sort 1"].n


def test_memorised_bags_are_ranked_without_fault_and_fresh_ones_by_chance() -> None:
    run, _ = Scorer(train=1.0, fresh=0.5).run(10_000, 0, np.random.default_rng(0))
    assert run.train.value == 1.0
    assert run.fresh.value == pytest.approx(0.5, abs=4 * run.fresh.noise)


@pytest.mark.parametrize("attributes", [{"spread": 0.03}, {"outliers": 0.1, "gap": 0.1}])
def test_fits_differ_as_asked_and_agree_in_the_mean(attributes: dict[str, float]) -> None:
    generator = np.random.default_rng(0)
    own = [Scorer(**attributes).run(20, 0, generator)[1] for _ in range(2_000)]
    assert np.mean(own) == pytest.approx(0.5, abs=4 * 0.03 / np.sqrt(2_000))
    assert np.std(own) == pytest.approx(0.03, rel=0.1)


def test_hard_answers_have_two_values() -> None:
    run, _ = Scorer(flagged=0.05).run(20_000, 0, np.random.default_rng(0))
    assert run.test is not None
    # the variance of a difference of two shares, halved: far below that of scores without ties
    assert run.test.variance == pytest.approx(0.05 * 0.95 * 2 / 10_000 / 4, rel=0.1)


def test_a_law_is_broken_as_often_as_asked() -> None:
    generator = np.random.default_rng(0)
    shares = [e.value for _ in range(40) for e in law_run([0.02, 0.0], 0, generator).strata.values()]
    assert np.mean(shares[::2]) == pytest.approx(0.02, abs=4 * np.sqrt(0.02 * 0.98 / 40_000))
    assert not any(shares[1::2])


# ---------------------------------------------------------------- rates, anew


def test_a_model_at_chance_is_seldom_passed_or_failed() -> None:
    counts = verdicts(2_000)
    for runs in (1, 5, 10):
        n = counts[f"{runs} studies"]
        assert not_above(counts[f"{runs} pass"], n, 0.025)
        assert not_above(counts[f"{runs} fail"], n, 0.025)
        assert counts[f"{runs} not-learned"] == 0
        assert not_below(counts[f"{runs} paper fail"], n, 0.5)
        assert not_above(counts[f"{runs} paper fail"], n, 0.5)
    # with one run the error is not only bounded by 2.5 %: it is that
    assert not_below(counts["1 pass"], counts["1 studies"], 0.025)
    assert not_below(counts["1 fail"], counts["1 studies"], 0.025)


def test_fits_that_differ_make_one_run_err_about_the_model_but_not_several() -> None:
    counts = verdicts(1_000, n_test=2_000, spread=0.03)
    assert not not_above(counts["1 pass"] + counts["1 fail"], counts["1 studies"], 0.05)
    assert not_above(counts["1 contrary"], counts["1 studies"], 0.05)
    for runs in (5, 10):
        assert not_above(counts[f"{runs} pass"] + counts[f"{runs} fail"], counts[f"{runs} studies"], 0.05)


def test_sorts_at_chance_are_not_held_against_a_model_and_opposite_ones_are() -> None:
    even = verdicts(1_000, strata=(0.5, 0.5))
    for runs in (1, 5, 10):
        assert not_above(even[f"{runs} fail"], even[f"{runs} studies"], 0.025)
        assert not_above(even[f"{runs} pass"], even[f"{runs} studies"], 0.025)
    opposite = verdicts(100, n_test=1_000, strata=(0.2, 0.8))
    for runs in (1, 5, 10):
        assert opposite[f"{runs} fail"] == opposite[f"{runs} studies"]
    assert not_above(opposite["1 paper fail"], opposite["1 studies"], 0.5)


def test_a_memoriser_is_seldom_called_learned() -> None:
    given = {"scorer": plan.scorer(train=1.0, fresh=0.5), "n_test": 200, "runs": [1, 5, 10], "n_runs": 1_500}
    counts = jobs.verdicts({**given, "seed": 1, "batch": 0})
    for runs in (1, 5, 10):
        n = counts[f"{runs} studies"]
        assert not_above(n - counts[f"{runs} not-learned"], n, 0.025)
        assert not_below(counts[f"{runs} paper fail"], n, 0.5)
    assert not_below(counts["1 studies"] - counts["1 not-learned"], counts["1 studies"], 0.025)


def test_holm_keeps_a_whole_table_right() -> None:
    given = {"scorer": plan.scorer(n_fresh=200), "n_test": 200, "cells": 60, "runs": 1, "tables": 30}
    counts = jobs.tables({**given, "seed": 1, "batch": 0})
    assert not_above(counts["any holm"], counts["tables"], 0.05)
    assert not_below(counts["any"], counts["tables"], 1 - 0.95**60)
    assert counts["wrong"] >= counts["any"] >= counts["any holm"]


def test_looks_share_the_error_and_a_clear_case_needs_the_first_only() -> None:
    given = {"n_test": 200, "max_runs": 12, "shared": True, "seed": 1, "batch": 0}
    chance = jobs.sequential({**given, "scorer": plan.scorer(n_fresh=200, spread=0.03), "studies": 100})
    assert not_above(chance.get("pass", 0) + chance.get("fail", 0), chance["studies"], 0.05)
    clear = jobs.sequential({**given, "scorer": plan.scorer(n_fresh=200, shifted=0.1), "studies": 20})
    assert (clear["fail"], clear["runs"]) == (20, 100)


def test_a_law_that_holds_is_passed_and_one_at_the_limit_seldom() -> None:
    def counted(share: float, n_runs: int) -> dict[str, int]:
        return jobs.laws({"shares": [[1.0, [share, 0.0]]], "runs": [1, 5], "n_runs": n_runs, "seed": 1, "batch": 0})

    holds, limit, broken = counted(0.0, 50), counted(0.01, 1_000), counted(0.1, 50)
    assert (holds["1 pass"], broken["1 fail"], broken["5 fail"]) == (50, 50, 10)
    for runs in (1, 5):
        assert not_above(limit[f"{runs} fail"], limit[f"{runs} studies"], 0.025)
    # a count of ten bags is not quite normal
    assert not_above(limit["1 pass"], limit["1 studies"], 0.04)


# ---------------------------------------------------------------- the command


def test_no_job_is_planned_twice_and_fewer_are_a_part_of_all() -> None:
    def specs(share: float) -> list[str]:
        return [json.dumps([c.path, spec]) for c in plan.cells() for spec in c.specs(0, share)]

    assert len(set(specs(1.0))) == len(specs(1.0))
    assert set(specs(0.2)) < set(specs(1.0))
    assert all(c.given["n_runs"] % max(c.given["runs"]) == 0 for c in plan.cells() if "n_runs" in c.given)


def test_the_command_goes_on_where_it_was_stopped(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = plan.Cell("few-bags", "verdicts", {"scorer": {}, "n_test": 20, "runs": [1], "n_runs": 5}, 4)
    monkeypatch.setattr(plan, "cells", lambda: [few])
    out, figures = tmp_path / "sims.db", tmp_path / "verdicts.json"
    assert command.main(["--out", str(out), "--share", "0.5", "--jobs", "1"]) == 0
    assert command.main(["--out", str(out), "--jobs", "1", "--json", str(figures)]) == 0
    with Store(out, write=False) as store:
        assert store.counts()["done"] == 4
    [cell] = json.loads(figures.read_text())["cells"]
    assert cell["counts"]["1 studies"] == 20
    assert report.tables([cell])["few-bags"] in capsys.readouterr().out


def test_a_failed_job_is_told(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = plan.Cell("few-bags", "verdicts", {"scorer": {"colour": 1}, "n_test": 20, "runs": [1], "n_runs": 5}, 1)
    monkeypatch.setattr(plan, "cells", lambda: [wrong])
    assert command.main(["--out", str(tmp_path / "sims.db"), "--jobs", "1"]) == 1


# ---------------------------------------------------------------- the document


def test_the_tables_of_the_document_are_the_recorded_ones(recorded: dict[str, Any]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = dict(re.findall(r"<!-- simulated: ([\w-]+) -->\n(.*?)\n<!-- end -->", text, flags=re.DOTALL))
    assert shown == report.tables(recorded["cells"])
    assert report.fill(text, recorded["cells"]) == text


def test_a_page_without_a_place_for_a_table_is_refused(recorded: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must have a place <!-- simulated: chance -->"):
        report.fill("# Verdicts", recorded["cells"])


def test_what_is_recorded_is_all_that_is_planned(recorded: dict[str, Any]) -> None:
    planned = [(c.part, c.function, json.loads(json.dumps(c.given))) for c in plan.cells()]
    assert [(c["part"], c["function"], c["given"]) for c in recorded["cells"]] == planned
    assert (recorded["failed"], recorded["share"]) == (0, 1.0)


@pytest.mark.parametrize(
    ("part", "quick"),
    [
        ("power", lambda given: given["n_test"] == 200),
        # as many runs as the looks of a sequential study make of them
        ("sequential", lambda given: given["scorer"].get("shifted") == 0.55 and given["scorer"]["spread"] == 0.03),
    ],
)
def test_recorded_figures_come_out_again(recorded: dict[str, Any], part: str, quick: Any) -> None:
    cell = next(c for c in plan.cells() if c.part == part and quick(c.given))
    [known] = [c for c in recorded["cells"] if (c["part"], c["given"]) == (cell.part, cell.given)]
    again: dict[str, int] = {}
    for spec in cell.specs(recorded["seed"], 1.0):
        for name, count in jobs.FUNCTIONS[cell.function](spec).items():
            again[name] = again.get(name, 0) + count
    assert again == known["counts"]


def test_recorded_rates_are_those_that_are_promised(recorded: dict[str, Any]) -> None:
    def rates(part: str, *names: str, runs: tuple[int, ...] = (1, 5, 10)) -> list[tuple[dict[str, Any], int, int, int]]:
        return [
            (c["given"]["scorer"], n, sum(c["counts"][f"{n} {name}"] for name in names), c["counts"][f"{n} studies"])
            for c in cells_of(recorded, part)
            for n in runs
        ]

    for verdict in ("pass", "fail"):
        for scorer, runs, k, n in rates("chance", verdict):
            if runs > 1 or not scorer.get("spread"):
                assert not_above(k, n, 0.025), (scorer, runs)
    for scorer, runs, k, n in rates("strata", "fail"):
        if scorer["strata"] == [0.2, 0.8]:
            assert k == n, runs
        elif runs > 1 or not scorer.get("spread"):
            assert not_above(k, n, 0.025), (scorer, runs)
    for scorer, runs, k, n in rates("memoriser", "pass", "fail", "inconclusive"):
        if runs > 1 or not scorer.get("spread"):
            assert not_above(k, n, 0.025), (scorer, runs)
    for cell in cells_of(recorded, "chance"):
        assert not_above(cell["counts"]["1 contrary"], cell["counts"]["1 studies"], 0.05)
    for cell in cells_of(recorded, "sequential"):
        counts = cell["counts"]
        if cell["given"]["shared"] and "shifted" not in cell["given"]["scorer"]:
            assert not_above(counts.get("pass", 0) + counts.get("fail", 0), counts["studies"], 0.05)
    for cell in cells_of(recorded, "tables"):
        assert not_above(cell["counts"]["any holm"], cell["counts"]["tables"], 0.05)


def test_the_text_states_the_error_of_the_powers(recorded: dict[str, Any]) -> None:
    error = report.largest_error(cells_of(recorded, "power"))
    assert f"standard error at most {100 * error:.1f}" in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_power_is_drawn(recorded: dict[str, Any], tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    report.draw_power(recorded["cells"], tmp_path / "power.svg")
    assert "<svg" in (tmp_path / "power.svg").read_text()


def test_p_values_and_intervals_agree() -> None:
    generator = np.random.default_rng(0)
    for n_runs in (1, 2, 5):
        for _ in range(50):
            drawn = [Scorer(shifted=0.47).run(500, i, generator)[0].test for i in range(n_runs)]
            pooled = Pooled([estimate for estimate in drawn if estimate is not None])
            interval = pooled.interval(0.95)
            assert (pooled.p_below(0.5) < 0.025) == (interval.high < 0.5)
            assert (pooled.p_above(0.5) < 0.025) == (interval.low > 0.5)
