"""Accuracies of checks, and results beside what a paper printed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import ROOT

import milfast as mf
from milfast import cli
from milfast.checks.adapters import share_right
from milfast.checks.printed import TABLES, beside, printed

if TYPE_CHECKING:
    from pathlib import Path

RECORDED: list[dict[str, Any]] = json.loads((ROOT / "docs" / "results" / "svm-paper.json").read_text(encoding="utf-8"))
DEEP: dict[str, list[dict[str, Any]]] = json.loads(
    (ROOT / "docs" / "results" / "deep-paper.json").read_text(encoding="utf-8")
)
SINGLE_FAULTS = DEEP.pop("deep-single-faults")
BENCHMARKS: list[dict[str, Any]] = json.loads(
    (ROOT / "docs" / "results" / "svm-benchmarks.json").read_text(encoding="utf-8")
)


class Decides:
    def decision_function(self, bags: object) -> None: ...


class Weighs:
    def predict_proba(self, bags: object) -> None: ...


class Labels:
    def predict(self, bags: object) -> None: ...


@pytest.mark.parametrize(
    ("model", "scores", "right"),
    [
        (Decides(), [-0.1, 0.1, 0.4, 2.0], [1, 1, 1, 0]),
        (Decides(), [0.0, 0.0, 0.6, 0.6], [1, 0, 1, 0]),
        (Weighs(), [0.4, 0.6, 0.5, 0.9], [1, 1, 0, 0]),
        (Labels(), [0, 1, 0, 1], [1, 1, 0, 0]),
        (Labels(), [-1, 1, -1, 1], [1, 1, 0, 0]),
    ],
)
def test_scores_stand_for_labels(model: object, scores: list[float], right: list[int]) -> None:
    assert share_right(model, np.array(scores), np.array([0, 1, 1, 0])) == np.mean(right)


def test_a_result_has_the_accuracies_of_its_runs() -> None:
    options: dict[str, Any] = {"n_train": 60, "n_test": 500, "n_runs": 2, "random_state": 0}
    shifted, law = mf.check_model("SIL", checks=["presence", "permutation"], **options)
    for name in ("train_accuracy", "fresh_accuracy", "test_accuracy"):
        values = [getattr(run, name) for run in shifted.runs]
        assert getattr(shifted, name) == pytest.approx(np.mean(values))
        assert all(0 <= value <= 1 for value in values)
        assert shifted.to_dict()[name] == getattr(shifted, name)
    assert law.test_accuracy is None
    assert law.train_accuracy is not None
    # from scratch, for one model and bags of its own
    train = mf.sample_bags("presence", 60, random_state=1)
    model = mf.models.get("SIL")(gamma=0.1).fit(train)
    assert share_right(model, model.decision_function(train), train.labels) == np.mean(
        model.predict(train) == train.labels
    )


def test_figures_of_the_paper_are_found_by_model_and_check() -> None:
    assert printed("MICA", "presence") == (0.5, 1.0, 0.5, 1.0)
    assert printed("mi-SVM", "false-frequency") == (0.5, 0.738, 0.5, 0.054)
    assert printed("sMIL", "presence") is None
    assert printed("MICA", "monotonicity") is None
    models = {m for m in mf.models.names() if printed(m, "presence")}
    svms = {"NSK", "STK", "SIL", "mi-SVM", "MI-SVM", "MICA", "MissSVM"}
    assert models == svms | {"mi-Net", "MI-Net", "MIL-Pooling", "Tran-MIL", "GNN-MIL", "CausalMIL", "Hopfield"}
    [result] = mf.check_model("STK", checks="presence", n_train=60, n_test=500, random_state=0)
    row = beside(result)
    assert row is not None
    assert (row["printed_test_accuracy"], row["printed_test_auc"], row["printed_verdict"]) == (0.466, 0.0, "fail")
    assert row["test_auc"] == result.to_dict()["test_auc"]
    [other] = mf.check_model("sMIL", checks="presence", n_train=60, n_test=500, random_state=0)
    assert beside(other) is None


def test_a_study_is_shown_beside_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = [
        "check",
        "STK",
        "sMIL",
        "--checks",
        "paper",
        "--train",
        "60",
        "--test",
        "500",
        "--runs",
        "1",
        "--jobs",
        "1",
    ]
    cli.main([*command, "--out", "s.db", "--exit-zero"])
    capsys.readouterr()
    assert cli.main(["show", "s.db", "--printed"]) == 0
    shown = capsys.readouterr().out
    assert "(0.466)" in shown
    assert "sMIL" not in shown
    assert cli.main(["show", "s.db", "--printed", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["check"] for row in rows] == list(TABLES)


# ---------------------------------------------------------------- what the pages print


PAGE: dict[str, list[dict[str, Any]]] = {
    spelling: [row for row in RECORDED if row["recipe"] == spelling] for spelling in ("notebook", "paper")
} | DEEP


@pytest.mark.parametrize("name", PAGE)
def test_the_tables_of_the_reproduction_are_the_recorded_results(name: str) -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    table = page[page.index(f"<!-- table {name} -->") : page.index(f"<!-- end {name} -->")]
    found = {}
    for check, model, *cells in re.findall(r"^\| `([\w-]+)` \| ([\w-]+) \|" + r" ([^|]+) \|" * 6 + "$", table, re.M):
        found[check, model] = cells
    expected = {}
    for row in PAGE[name]:
        both = [f"{row[k]:.3f} ({row[f'printed_{k}']:.3f})" for k in ("train_accuracy", "train_auc")]
        both += [f"{row['fresh_auc']:.3f}"]
        both += [f"{row[k]:.3f} ({row[f'printed_{k}']:.3f})" for k in ("test_accuracy", "test_auc")]
        model = row["model"].partition(" (")[0]
        expected[row["check"], model] = [*both, f"{row['verdict']} ({row['printed_verdict']})"]
    assert found == expected
    assert len(found) == (18 if name == "deep-faults" else 21)


def test_the_table_of_single_faults_is_the_recorded_one() -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    table = page[page.index("<!-- table deep-single-faults -->") : page.index("<!-- end deep-single-faults -->")]
    pattern = r"^\| `([\w-]+)` \| ([\w-]+) \| `([\w-]+)` \|" + r" ([^|]+) \|" * 3 + "$"
    found = [tuple(row) for row in re.findall(pattern, table, re.M)]
    expected = []
    for row in SINGLE_FAULTS:
        model, _, fault = row["model"].rstrip(")").partition(" (faults=")
        figures = [f"{row[k]:.3f} ({row[f'printed_{k}']:.3f})" for k in ("train_accuracy", "test_accuracy", "test_auc")]
        expected.append((row["check"], model, fault, *figures))
    assert found == expected
    assert len({row[1:3] for row in found}) == 6
    assert {row["n_train"] for row in SINGLE_FAULTS} == {10_000}


def test_the_benchmarks_of_monotone_mil_are_the_recorded_ones() -> None:
    rows = json.loads((ROOT / "docs" / "results" / "monotone-benchmarks.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "monotone.md").read_text(encoding="utf-8")
    table = page[page.index("<!-- benchmarks -->") : page.index("<!-- end benchmarks -->")].splitlines()[1:]
    header, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    found = {(model, data): cell for model, *cells in lines for data, cell in zip(header[1:], cells, strict=True)}
    figures = {(r["model"], r["data"]): (r["auc"], r["auc_low"], r["auc_high"]) for r in rows}
    assert found == {key: "{:.2f} [{:.2f}, {:.2f}]".format(*value) for key, value in figures.items()}
    assert len(found) == 20


def test_the_deep_record_was_made_at_the_size_of_the_paper_and_has_its_figures() -> None:
    sizes = {name: {row["n_train"] for row in rows} for name, rows in DEEP.items()}
    assert sizes == {"deep-notebook": {100_000}, "deep-paper": {5_000}, "deep-faults": {10_000}}
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert "with 5,000 training bags" in page
    assert "--recipe paper --train 5000" in page
    assert "--recipe notebook --train 10000" in page
    for row in (row for rows in DEEP.values() for row in rows):
        names = ("train_accuracy", "train_auc", "test_accuracy", "test_auc")
        assert tuple(row[f"printed_{name}"] for name in names) == printed(row["model"], row["check"])


def test_the_record_was_made_at_the_size_of_the_paper_and_has_its_figures() -> None:
    for row in RECORDED:
        assert (row["n_train"], row["n_runs"]) == (1000, 5)
        names = ("train_accuracy", "train_auc", "test_accuracy", "test_auc")
        assert tuple(row[f"printed_{name}"] for name in names) == printed(row["model"], row["check"])


@pytest.mark.parametrize(
    ("model", "check"), [("STK", "presence"), ("SIL", "false-frequency"), ("MICA", "false-frequency")]
)
def test_a_run_of_the_record_comes_out_again(model: str, check: str) -> None:
    """One of the five runs, with fewer bags to be scored: within what five runs differ by."""
    [result] = mf.check_model(model, checks=check, recipe="notebook", n_train=1000, n_test=4000, random_state=7)
    [row] = [r for r in RECORDED if (r["model"], r["check"], r["recipe"]) == (model, check, "notebook")]
    assert result.train_auc.estimate == pytest.approx(row["train_auc"], abs=0.02)
    assert result.fresh_auc.estimate == pytest.approx(row["fresh_auc"], abs=0.03)
    assert result.test_auc is not None
    assert result.test_auc.estimate == pytest.approx(row["test_auc"], abs=0.05)


def test_the_table_of_the_benchmarks_is_the_recorded_result() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    table = page.partition("<!-- table bench -->")[2].partition("<!-- end bench -->")[0]
    lines = re.findall(r"^\| ([\w-]+) \|(.* \[.*)\|$", table, re.M)
    found = {model: [cell.strip() for cell in line.split("|")] for model, line in lines}
    assert set(found) == set(mf.models.names("svm"))
    for model, cells in found.items():
        for name, cell in zip(("musk1", "musk2", "elephant", "fox", "tiger"), cells, strict=True):
            [row] = [r for r in BENCHMARKS if (r["model"], r["data"]) == (model, name)]
            assert cell == f"{row['auc']:.3f} [{row['auc_low']:.3f}, {row['auc_high']:.3f}]"
            assert (row["folds"], row["repeats"]) == (5, 3)


def test_the_solvers_and_the_scaling_that_the_page_shows_are_recorded() -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    blocks = (ROOT / "docs" / "results" / "qp-solvers.txt").read_text(encoding="utf-8").split(" bags, ")[1:]
    times = [re.findall(r"^\w+ +([\d.]+) s", block, re.M) for block in blocks]
    variables = [f"{int(block.split()[0]):,}" for block in blocks]
    for n, count, row in zip(("100", "200"), variables, times, strict=True):
        assert f"| {n} | {count} | {' | '.join(row)} |" in page

    record = (ROOT / "docs" / "results" / "svm-scaling.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in record.splitlines()[2:]]
    assert {row[0] for row in rows} == set(mf.models.names("svm"))
    shown = re.findall(r"^\| ([\w-]+) \|" + r" ([\d.]+) \|" * 5 + r" (\d+) \| ([\d.]+) \|$", page, re.M)
    assert {name for name, *_ in shown} == set(mf.models.names("svm"))
    for name, *cells in shown:
        own = [row for row in rows if row[0] == name]
        assert cells == [*(row[4] for row in own), own[-1][5], own[-1][6]]
