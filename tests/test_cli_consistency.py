"""The verb `consistency`, as a person would use it."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import ROOT
from joblib.externals.loky import get_reusable_executor
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from milfast import cli
from milfast.consistency import cross_validate_consistency, cross_validation, jobs, learners
from milfast.report.table import PRINTED_CONSISTENCY_COLUMNS, markdown, telling
from milfast.study import Store

if TYPE_CHECKING:
    from pathlib import Path

X, Y = make_classification(120, 4, n_informative=3, n_redundant=1, flip_y=0.2, random_state=0)
GROUPS = np.array([f"p{k // 4}" for k in range(len(Y))])
OWN = """
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

class Broken(SVC):
    def fit(self, X, y):
        raise ValueError("out of coffee")

class Quitter(SVC):
    def fit(self, X, y):
        raise SystemExit(0)

class Chatty(SVC):
    def fit(self, X, y):
        print("fitting")
        return super().fit(X, y)

class Hasty(LogisticRegression):
    def __init__(self, max_iter=1):
        super().__init__(max_iter=max_iter)

def constant():
    return DummyClassifier()
"""
ONE = ["--jobs", "1"]
FEW = ["--repeats", "4", *ONE]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_for_consistency.py").write_text(OWN)
    write_table(tmp_path, Y)
    return tmp_path


def write_table(folder: Path, labels: Any) -> None:
    lines = ["a,b,c,d,person,ill"]
    lines += [
        ",".join([*map(repr, row.tolist()), f"p{k // 4}", "yes" if label else "no"])
        for k, (row, label) in enumerate(zip(X, labels, strict=True))
    ]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")


def run(*arguments: str) -> int:
    return cli.main(["consistency", *arguments])


def table(*arguments: str) -> int:
    return run("table.csv", "--target", "ill", "--groups", "person", "--model", *arguments)


def rows_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def test_it_is_what_the_library_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert table("lr", *FEW, "--seed", "3", "--folds", "4", "--no-stratify", "--format", "json") == 0
    [row] = rows_of(capsys)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    expected = cross_validate_consistency(model, X, Y, cv=4, repeats=4, groups=GROUPS, stratify=False, random_state=3)
    for name, value in expected.to_dict().items():
        if name not in ("model", "seconds"):
            assert row[name] == value, name
    interval = expected.consistency.interval(of="micro")
    assert (row["micro"], row["micro_low"], row["micro_high"]) == (interval.estimate, interval.low, interval.high)
    assert (row["model"], row["data"], row["standardize"]) == ("lr", "table.csv", "folds")
    assert all(not isinstance(value, (dict, list)) for value in row.values())


def test_every_form_of_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert table("lr", "svm", *FEW) == 0
    shown = capsys.readouterr().out
    assert "error consistency" in shown
    assert "95 % interval over samples" in shown
    assert table("lr", "svm", *FEW, "--format", "markdown") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| model | data | accuracy | SD |")
    assert lines[3].startswith("| svm | table.csv |")
    assert table("lr", "svm", *FEW, "--format", "latex") == 0
    assert r"\begin{tabular}" in capsys.readouterr().out
    assert table("lr", "svm", *FEW, "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert f"{float(rows[1]['consistency']):.3f}" in lines[3]


def test_processes_and_a_study_give_the_same_rows(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    # by its whole name, as processes that another test has started are in another folder
    given = [str(here / "table.csv"), "--target", "ill", "--model", "svm", "sklearn.tree:DecisionTreeClassifier"]
    seen = []
    for more in (ONE, ["--jobs", "2"], [*ONE, "--out", "s.db"], [*ONE, "--out", "s.db"]):
        assert run(*given, "--repeats", "30", "--format", "json", *more) == 0
        captured = capsys.readouterr()
        seen.append([{**row, "seconds": 0} for row in json.loads(captured.out)])
    assert all(rows == seen[0] for rows in seen)
    assert "4 of 4 jobs are done already" in captured.err


def test_more_repeats_go_on_from_fewer(capsys: pytest.CaptureFixture[str]) -> None:
    assert table("svm", "--repeats", "60", *ONE, "--format", "json") == 0
    [expected] = rows_of(capsys)
    for repeats in ("30", "60"):
        assert table("svm", "--repeats", repeats, *ONE, "--out", "s.db", "--format", "json") == 0
        captured = capsys.readouterr()
    assert "1 of 3 jobs are done already" in captured.err
    [found] = json.loads(captured.out)
    assert {**found, "seconds": 0} == {**expected, "seconds": 0}
    # what the file holds is counted once, though repeats 25 to 30 are in two jobs
    assert cli.main(["show", "s.db", "--format", "json"]) == 0
    [shown] = rows_of(capsys)
    assert {**shown, "seconds": 0} == {**expected, "seconds": 0}


def test_show_and_merge_know_such_studies(capsys: pytest.CaptureFixture[str]) -> None:
    table("lr", *FEW, "--out", "a.db")
    table("svm", *FEW, "--out", "b.db")
    assert cli.main(["merge", "a.db", "b.db", "--out", "all.db"]) == 0
    capsys.readouterr()
    assert cli.main(["show", "all.db"]) == 0
    captured = capsys.readouterr()
    assert "error consistency" in captured.out
    assert captured.err == ""
    cli.main(["show", "all.db", "--format", "json", "--model", "svm"])
    assert [row["model"] for row in rows_of(capsys)] == ["svm"]
    assert cli.main(["show", "all.db", "--model", "rf"]) == 2
    assert "no result of model 'rf'; there are lr, svm" in capsys.readouterr().err
    assert cli.main(["show", "all.db", "--printed", "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == []
    assert "the paper printed no figures: 2 results" in captured.err


def test_a_study_of_arrays_is_shown_too(capsys: pytest.CaptureFixture[str]) -> None:
    cross_validate_consistency(LogisticRegression(), X, Y, repeats=3, random_state=0, study="s.db")
    assert cli.main(["show", "s.db", "--format", "json"]) == 0
    [row] = rows_of(capsys)
    assert (row["model"], row["data"], row["repeats"]) == ("LogisticRegression", "arrays", 3)


def test_stop_auto_is_that_of_the_library(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_validation, "ENOUGH", 0.2)
    expected = cross_validate_consistency(
        make_pipeline(StandardScaler(), SVC()),
        X,
        np.where(Y == 1, "yes", "no"),
        groups=GROUPS,
        repeats=300,
        random_state=0,
        stop="auto",
    )
    assert expected.stopped == "auto"
    for more in ([], ["--out", "s.db"], ["--out", "s.db"]):
        assert table("svm", "--repeats", "300", "--stop", "auto", *ONE, "--format", "json", *more) == 0
        [row] = rows_of(capsys)
        assert (row["stopped"], row["repeats"]) == ("auto", expected.repeats)
        assert row["consistency"] == expected.consistency.mean


def test_one_data_set_may_have_fewer_repeats(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "other.csv").write_bytes((here / "table.csv").read_bytes())
    arguments = ["table.csv", "other.csv", "--target", "ill", "--groups", "person", "--model", "lr", *FEW]
    assert run(*arguments, "--repeats-of", "other.csv=2", "--format", "json") == 0
    assert [(row["data"], row["repeats"]) for row in rows_of(capsys)] == [("table.csv", 4), ("other.csv", 2)]


def test_a_constant_classifier_is_flagged(capsys: pytest.CaptureFixture[str]) -> None:
    assert table("own_for_consistency:constant", *FEW) == 0
    shown = capsys.readouterr().out
    assert "constant: all predictions are one class" in shown
    assert table("own_for_consistency:constant", "lr", *FEW, "--format", "json") == 0
    assert [(row["flags"], row["constant"]) for row in rows_of(capsys)] == [("constant", True), ("", False)]


def test_what_a_model_prints_stays_out_of_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert table("own_for_consistency:Chatty", *FEW, "--format", "json") == 0
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)) == 1
    assert "fitting" in captured.err


def test_what_models_print_in_workers_does_not_go_among_the_results(capfd: pytest.CaptureFixture[str]) -> None:
    get_reusable_executor().shutdown()  # workers of earlier tests have the output of these
    assert table("own_for_consistency:Chatty", "--repeats", "50", "--jobs", "2", "--format", "json") == 0
    captured = capfd.readouterr()
    assert len(json.loads(captured.out)) == 1
    assert captured.err.count("fitting") == 250


def test_a_table_that_was_written_anew_is_read_anew(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def accuracy() -> float:
        assert table("lr", *FEW, "--format", "json") == 0
        [row] = rows_of(capsys)
        return float(row["accuracy"])

    before = accuracy()
    write_table(here, Y[::-1])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    fresh = cross_validate_consistency(model, X, Y[::-1], repeats=4, groups=GROUPS, random_state=0)
    assert accuracy() == fresh.accuracy != before


@pytest.mark.filterwarnings("default")
def test_warnings_of_fits_are_told_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert table("own_for_consistency:Hasty", *FEW) == 0
    assert "milfast: warning: own_for_consistency:Hasty on table.csv: ConvergenceWarning: " in capsys.readouterr().err


def test_columns_that_hardly_are_features_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("table.csv", "--target", "ill", "--model", "lr", *FEW, "--set", "C=2", "--format", "json") == 0
    captured = capsys.readouterr()
    assert "table.csv: the column 'person' is " in captured.err
    assert "say with --groups" in captured.err
    assert json.loads(captured.out)[0]["parameters"] == "scikit-learn's defaults, C=2"
    assert table("lr", *FEW) == 0
    assert "warning" not in capsys.readouterr().err


def test_settings_reach_the_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert table("svm", *FEW, "--set", "C=0.01", "--standardize", "none", "--format", "json") == 0
    [row] = rows_of(capsys)
    assert row["estimator"] == "SVC(C=0.01)"
    assert table("svm", *FEW, "--standardize", "all", "--format", "json") == 0
    [scaled] = rows_of(capsys)
    assert (scaled["estimator"], scaled["standardize"]) == ("SVC()", "all")
    assert scaled["accuracy"] != row["accuracy"]


def test_a_job_that_fails_makes_the_status_2_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert table("own_for_consistency:Broken", "lr", *FEW, "--out", "s.db", "--format", "json") == 2
    captured = capsys.readouterr()
    assert [row["model"] for row in json.loads(captured.out)] == ["lr"]
    assert "failed: own_for_consistency:Broken on table.csv: ValueError: out of coffee" in captured.err
    with Store("s.db", write=False) as store:
        assert store.counts()["failed"] == 1
    assert table("own_for_consistency:Broken", "lr", *ONE, "--out", "t.db", "--stop", "auto", "--repeats", "50") == 2
    assert "out of coffee" in capsys.readouterr().err


def test_data_that_have_changed_are_noticed(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    table("lr", *FEW, "--out", "s.db")
    with Store("s.db", write=False) as store:
        [record] = store.records()
    (here / "table.csv").write_text((here / "table.csv").read_text().replace("yes", "no", 1))
    with pytest.raises(ValueError, match=r"table\.csv has changed since the study was begun"):
        jobs.run_specification(record.spec)
    capsys.readouterr()
    jobs._read.cache_clear()
    table("lr", *FEW, "--out", "s.db")
    assert "done already" not in capsys.readouterr().err


@pytest.mark.usefixtures("mil_data")
def test_as_published(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run("parkinsons", "spect", "--model", "lr", *ONE, "--repeats", "50", "--as-published", "--format", "json") == 0
    )
    parkinsons, spect = rows_of(capsys)
    assert (parkinsons["standardize"], spect["standardize"]) == ("all", "none")
    for row, accuracy, consistency in ((parkinsons, 0.85, 0.90), (spect, 0.84, 0.82)):
        assert (row["printed_accuracy"], row["printed_consistency"]) == (accuracy, consistency)
        assert row["accuracy_difference"] == pytest.approx(row["accuracy"] - accuracy)
        assert abs(row["accuracy_difference"]) < 0.015
        assert abs(row["consistency_difference"]) < 0.03
    assert run("spect", "--model", "lr", *FEW, "--as-published") == 0
    assert "(0.820)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.csv", "--target", "y", "--model", "lr"], "absent.csv"),
        (["table.csv", "--model", "lr"], "say with target (--target) which column"),
        (["table.csv", "--target", "il", "--model", "lr"], "has no column 'il'; it has a, b, c, d, person, ill"),
        (["table.csv", "--target", "a", "--model", "lr"], "too few for cv=5 folds"),
        (["parkinson", "--model", "lr"], "did you mean parkinsons"),
        (["musk1", "--model", "lr"], "the samples of musk1 are bags"),
        (["pima", "--target", "y", "--model", "lr"], "--target is a column of a CSV file"),
        (["table.csv", "--target", "ill", "--model", "tree"], "there is no classifier 'tree'"),
        (["table.csv", "--target", "ill", "--model", "lr", "--set", "c=3"], "has no parameter 'c'"),
        (["table.csv", "--target", "ill", "--model", "rf", "--set", "random_state=3"], "from --seed"),
        (["table.csv", "--target", "ill", "--model", "lr", "--as-published"], "no parameters of lr for table.csv"),
        (["table.csv", "--target", "ill", "--model", "lr", "--repeats", "0"], "--repeats must be at least 1; got 0"),
        (["table.csv", "--target", "ill", "--model", "lr", "--folds", "1"], "cv must be at least 2"),
        (["table.csv", "--target", "ill", "--model", "lr", "--seed", "-1"], "must not be negative"),
        (["table.csv", "--target", "ill", "--model", "lr", "--level", "2"], "level must"),
        (["table.csv", "--target", "ill", "--model", "lr", "--repeats-of", "pima=3"], "none of the data sets"),
        (["table.csv", "--target", "ill", "--model", "lr", "--repeats-of", "table.csv"], "must be DATA=N"),
        (["spect", "--model", "lr", "--as-published", "--standardize", "all"], "leave one of them out"),
        (["spect", "--model", "lr", "--as-published", "--parameters", "2021"], "leave one of them out"),
        (["table.csv", "--target", "ill", "--model", "lr", "--backend", "dask"], "say with --out in which file"),
        (["table.csv", "--target", "ill", "--model", "own_for_consistency:Broken"], "out of coffee (while cross-"),
        (["table.csv", "--target", "ill", "--model", "own_for_consistency:Quitter"], "the model ended the program"),
    ],
)
def test_wrong_use_exits_with_2_and_says_the_way_out(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(*arguments, *ONE) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_bags_and_tables_are_not_mixed_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "NSK", "--data", "pima"]) == 2
    assert "the samples of pima are rows of a table" in capsys.readouterr().err


def test_ls_tells_tables_from_bags(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["ls", "datasets", "--format", "json"])
    rows = {row["name"]: row for row in rows_of(capsys)}
    assert (rows["pima"]["kind"], rows["pima"]["samples"], rows["pima"]["instances"]) == ("table", 768, None)
    assert (rows["musk1"]["kind"], rows["musk1"]["samples"], rows["musk1"]["instances"]) == ("bags", 92, 476)


def test_help_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run("--help")
    assert stop.value.code == 0
    assert "--as-published" in capsys.readouterr().out


# -------------------------------------------------------------------- the reproduction of table 1

RECORD: dict[str, list[dict[str, Any]]] = json.loads(
    (ROOT / "docs" / "results" / "error-consistency.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", ["as_published", "other"])
def test_the_tables_of_the_reproduction_are_the_recorded_results(name: str) -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    tag = f"ec-{name.replace('_', '-')}"
    found = page.partition(f"<!-- table {tag} -->\n")[2].partition(f"\n<!-- end {tag} -->")[0]
    rows = RECORD[name]
    assert found == markdown(rows, telling(rows, PRINTED_CONSISTENCY_COLUMNS))


def test_the_record_has_the_figures_of_the_paper_and_logistic_regression_meets_them() -> None:
    rows = {(row["data"], row["model"]): row for row in RECORD["as_published"]}
    names = ("printed_accuracy", "printed_accuracy_sd", "printed_consistency", "printed_consistency_sd")
    for (data, model), row in rows.items():
        assert tuple(round(100 * row[name], 6) for name in names) == learners.printed(model, data)
        assert (row["folds"], row["standardize"]) == (5, "none" if data == "spect" else "all")
        assert row["estimator"] == learners.make(model, data=data, parameters="published").described()
    assert len(rows) == 25
    for data in ("parkinsons", "spect", "transfusion", "pima"):
        row = rows[data, "lr"]
        assert row["repeats"] == 500
        assert abs(row["accuracy_difference"]) < 0.015
        assert abs(row["consistency_difference"]) < 0.015


@pytest.mark.usefixtures("mil_data")
def test_a_row_of_the_record_comes_out_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A tenth of the repeats: within some errors over runs."""
    assert run("pima", "--model", "lr", *ONE, "--repeats", "50", "--as-published", "--format", "json") == 0
    [found] = rows_of(capsys)
    [row] = [r for r in RECORD["as_published"] if (r["data"], r["model"]) == ("pima", "lr")]
    assert found["estimator"] == row["estimator"]
    assert found["accuracy"] == pytest.approx(row["accuracy"], abs=0.002)
    assert found["consistency"] == pytest.approx(row["consistency"], abs=0.012)
