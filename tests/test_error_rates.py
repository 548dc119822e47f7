"""How often comparisons err: exact rates by brute force, samples against bounds, and the page against the record."""

from __future__ import annotations

import json
import re
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from scipy.stats import binom

from milfast.report import records
from milfast.uncertainty import equivalence, mcnemar_from_counts
from milfast.uncertainty import error_rates as rates

RECORD = ROOT / "docs" / "results" / "comparison-error-rates.json"
PAGE = ROOT / "docs" / "uncertainty.md"


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def of(recorded: dict[str, Any], part: str) -> list[dict[str, Any]]:
    found = [cell for cell in recorded["cells"] if cell["part"] == part]
    assert found
    return found


# ---------------------------------------------------------------- exact rates


@pytest.mark.parametrize("discordant", [0.2, 0.7])
def test_rates_of_mcnemar_are_sums_over_all_tables(discordant: float) -> None:
    n = 14
    want = dict.fromkeys(("mid-p", "exact", "chi2", "chi2-corrected"), 0.0)
    for b, c in product(range(n + 1), repeat=2):
        if b + c <= n:
            chance = comb(n, b) * comb(n - b, c) * (discordant / 2) ** (b + c) * (1 - discordant) ** (n - b - c)
            for method in want:
                p = mcnemar_from_counts(n - b - c, b, c, 0, method=method).p_value
                want[method] += chance * (p < 0.05)
    assert rates._mcnemar(n, discordant) == pytest.approx(want, abs=1e-9)


def test_rates_of_equivalence_are_sums_over_all_tables() -> None:
    n, margin, discordant = 30, 0.3, 0.4
    want = 0.0
    for b, c in product(range(n + 1), repeat=2):
        if b + c <= n:
            rest = n - b - c
            chance = comb(n, b) * comb(n - b, c) * 0.35**b * 0.05**c * 0.6**rest
            first = np.repeat([True, False, True], (b, c, rest))
            second = np.repeat([False, True, True], (b, c, rest))
            if chance > 1e-9:
                want += chance * (equivalence(first, second, margin).p_value < 0.05)
    assert rates._equivalence(n, margin, discordant)["score"] == pytest.approx(want, abs=1e-6)


# ---------------------------------------------------------------- what is drawn


def test_centroids_are_those_of_the_other_folds() -> None:
    rng = np.random.default_rng(0)
    x, labels, fold = rng.normal(size=(40, 3)), np.arange(40) % 2, rng.permutation(40) // 2 % 4
    found = rates._centroids(x, labels, fold, 4)
    for k in range(4):
        centre = [x[(fold != k) & (labels == label)].mean(0) for label in (0, 1)]
        near = [np.argmin([((row - c) ** 2).sum() for c in centre]) for row in x[fold == k]]
        assert found[k] == pytest.approx(np.mean(near == labels[fold == k]))


def test_the_halves_of_a_repeat_go_together_on_few_items() -> None:
    """Why 5x2cv tests err: they presume that the differences of the two halves vary independently."""
    rng = np.random.default_rng(0)
    labels = np.arange(100) % 2
    halves = []
    for _ in range(500):
        features = rng.normal(size=(2, 100, 5)) + 0.35 * labels[:, None]
        fold = np.empty(100, dtype=np.int64)
        for label in (0, 1):
            fold[labels == label] = rng.permutation(50) % 2
        first, second = (rates._centroids(x, labels, fold, 2) for x in features)
        halves.append(first - second)
    # 0 gives above 0.17 once in 10,000 times
    assert np.corrcoef(np.transpose(halves))[0, 1] > 0.25


def test_each_design_has_its_own_numbers() -> None:
    one = rates.simulate(runs=20, parts=["friedman", "auc"])["cells"]
    other = rates.simulate(runs=20, parts=["friedman"])["cells"]
    assert [cell for cell in one if cell["part"] == "friedman"] == other
    assert rates.simulate(runs=20, parts=["friedman"], seed=1)["cells"] != other
    with pytest.raises(ValueError, match="parts must be of mcnemar"):
        rates.simulate(parts=["anova"])


# ---------------------------------------------------------------- the command, the record and the page


def test_the_command_writes_record_and_page(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    out, page = tmp_path / "rates.json", tmp_path / "page.md"
    page.write_text("<!-- error-rates: improvement -->\nold\n<!-- end -->\n", encoding="utf-8")
    assert rates.main(["--parts", "improvement", "--json", str(out), "--page", str(page)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    table = rates.tables(found)["improvement"]
    assert table in page.read_text(encoding="utf-8")
    assert "old" not in page.read_text(encoding="utf-8")
    assert table in capsys.readouterr().out
    with pytest.raises(ValueError, match="must have a place <!-- error-rates: improvement -->"):
        records.fill("# Uncertainty", "error-rates", rates.tables(found))


def test_what_is_recorded_is_all_that_there_is(recorded: dict[str, Any]) -> None:
    cells = [(cell.part, json.loads(json.dumps(cell.given))) for cell in rates.cells()]
    assert [(cell["part"], cell["given"]) for cell in recorded["cells"]] == cells
    assert (recorded["runs"], recorded["seed"], recorded["nominal"]) == (rates.RUNS, 0, 0.05)


def test_exact_rates_come_out_again(recorded: dict[str, Any]) -> None:
    for part in ("mcnemar", "improvement"):
        for cell in of(recorded, part)[:3]:
            assert rates._EXACT[part](**cell["given"]) == pytest.approx(cell["rules"], abs=1e-12)


def test_samples_come_out_again(recorded: dict[str, Any]) -> None:
    cell = of(recorded, "seeds-and-folds")[0]
    again = rates.simulate(parts=["seeds-and-folds"])["cells"][0]
    assert again == cell


def test_tables_of_the_page_are_the_recorded_ones(recorded: dict[str, Any]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = dict(re.findall(r"<!-- error-rates: ([\w-]+) -->\n(.*?)\n<!-- end -->", text, flags=re.DOTALL))
    assert shown == rates.tables(recorded)


def test_defaults_keep_their_level(recorded: dict[str, Any]) -> None:
    def worst(part: str, rule: str, limit: float, **given: Any) -> None:
        for cell in of(recorded, part):
            if all(cell["given"][name] == value for name, value in given.items()):
                rate, runs = cell["rules"][rule], cell["runs"]
                allowed = limit if runs == 0 else binom.ppf(1 - 1e-4, runs, limit) / runs
                assert rate <= allowed, (part, cell["given"], rate)

    worst("mcnemar", "mid-p", 0.0525)
    worst("mcnemar", "exact", 0.05)
    worst("mcnemar-clusters", "exact of clusters", 0.05)
    worst("mcnemar-clusters", "mid-p of clusters", 0.055)
    worst("equivalence", "score", 0.055)
    worst("auc", "paired DeLong", 0.055)
    worst("auc-clusters", "DeLong of clusters", 0.06, n_clusters=50)
    worst("friedman", "Friedman", 0.05)
    worst("friedman", "any pair, Nemenyi", 0.05)
    worst("seeds-and-folds", "crossed random effects", 0.06)
    worst("cross-validation", "corrected t", 0.06, folds="10")
    worst("cross-validation", "corrected t", 0.06, folds="10 x 10")


def test_what_the_page_says_of_the_others_is_recorded(recorded: dict[str, Any]) -> None:
    cross = {(cell["given"]["n"], cell["given"]["folds"]): cell["rules"] for cell in of(recorded, "cross-validation")}
    for n in (100, 300):
        once, often = cross[n, "10"], cross[n, "10 x 10"]
        assert 0.05 < once["plain paired t"] < 0.2 < 0.5 < often["plain paired t"]
    for rule in ("5x2cv F", "5x2cv t"):
        assert cross[100, "5 x 2"][rule] > binom.ppf(1 - 1e-4, 2000, 0.05) / 2000
        assert cross[300, "5 x 2"][rule] < cross[100, "5 x 2"][rule]
    assert max(cell["rules"]["wald"] for cell in of(recorded, "equivalence")) > 0.08
    assert all(cell["rules"]["clusters ignored"] > 0.15 for cell in of(recorded, "auc-clusters"))
    assert all(cell["rules"]["pairing ignored"] < 0.02 for cell in of(recorded, "auc"))
    assert all(cell["rules"]["deviation over root of runs"] > 0.25 for cell in of(recorded, "seeds-and-folds"))
