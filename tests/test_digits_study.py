"""The live study on digits: resumable, the same each time, and compared from what it kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import ROOT

from milfast.study import Study
from milfast.uncertainty import variance_components

pytest.importorskip("torch")
digits: Any = pytest.importorskip("milfast.training.digits")

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def few_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits, "SEEDS", (42, 7))


def test_a_training_depends_on_its_specification_alone() -> None:
    spec = {"model": "hidden", "seed": 42, "fold": 1, "epochs": 2}
    first = digits.train(spec)
    digits.train(spec | {"seed": 43})
    assert digits.train(spec) == first
    assert digits.train(spec | {"seed": 43}) != first
    _, labels, folds = digits.digits()
    assert first["accuracy"] == np.mean(np.array(first["predicted"]) == labels[folds == 1])
    assert first["accuracy"] > 0.6


@pytest.mark.usefixtures("few_seeds")
def test_the_study_resumes_and_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, record = str(tmp_path / "digits.db"), tmp_path / "digits.json"
    with Study(file) as study:
        ids = study.add(digits.FUNCTION, digits.specifications(1))
        study.run(ids[:4], n_jobs=1)
    assert digits.main([file, "--jobs", "1", "--epochs", "1", "--record", str(record)]) == 0
    out, err = capsys.readouterr()
    assert "4 of 30 trainings are done already" in err
    assert "convolutional" in out
    found = json.loads(record.read_text())
    assert np.shape(found["runs"]) == (3, 2, 5)
    with Study(file) as study:
        kept = {(r.spec["model"], r.spec["seed"], r.spec["fold"]): r.result["accuracy"] for r in study.records(ids)}
    for m, name in enumerate(found["names"]):
        for s, seed in enumerate((42, 7)):
            for f in range(5):
                assert found["runs"][m][s][f] == kept[name, seed, f]
    assert digits.main([file, "--jobs", "1", "--epochs", "1", "--card", "json"]) == 0
    out, err = capsys.readouterr()
    assert "30 of 30 trainings are done already" in err
    assert json.loads(out)["n_seeds"] == 2


@pytest.mark.usefixtures("few_seeds")
def test_a_study_that_is_not_done_is_not_compared(tmp_path: Path) -> None:
    with Study(tmp_path / "digits.db") as study:
        study.add(digits.FUNCTION, digits.specifications(1))
        with pytest.raises(ValueError, match="not all trainings are done"):
            digits.compared(study.records())


def test_the_record_is_of_the_whole_design() -> None:
    found = json.loads((ROOT / "docs" / "results" / "digits-study.json").read_text(encoding="utf-8"))
    runs = np.array(found["runs"])
    assert runs.shape == (3, 6, 5)
    assert found["names"] == list(digits.NETWORKS)
    assert found["design"]["seeds"] == [str(seed) for seed in digits.SEEDS]
    assert found["seconds_of_all_trainings"] < 600
    for table, parts in zip(runs, found["variances"], strict=True):
        assert variance_components(table).se == pytest.approx(parts["se"], rel=1e-9)
