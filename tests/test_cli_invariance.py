"""`milfast invariance`, and what `show` and `ls` say of it."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from milfast.cli import main
from milfast.invariance import learners, names

if TYPE_CHECKING:
    from pathlib import Path

#: As little as it takes.
SMALL = ["--trials", "2", "--steps", "600", "--jobs", "1"]


def run(*arguments: str) -> int:
    return main(["invariance", *arguments, *SMALL])


def test_what_fails_gives_exit_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("IRMv1", "--problems", "Example1", "--replicates", "8") == 1
    out = capsys.readouterr().out
    assert "IRMv1" in out
    assert "fail" in out
    assert "solved: replicates no farther from the oracle than 0.1 of ERM's way" in out
    assert "docs/invariance.md" in out
    assert run("IRMv1", "--problems", "Example1", "--replicates", "3", "--exit-zero") == 0


def test_the_oracle_does_not_count_and_is_not_asked_to_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("Oracle", "--problems", "Example1", "--replicates", "3") == 0
    assert "inconclusive" in capsys.readouterr().out


def test_paper_mode_stands_beside_published_figures(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["ERM", "--mode", "paper", "--rng", "native", "--problems", "Example1", "--replicates", "2"]
    assert run(*arguments) == 0
    out = capsys.readouterr().out
    assert "(13.3629)" in out
    assert "(1.4867)" in out
    assert run(*arguments, "--format", "markdown") == 0
    assert "| model | problem | error (published) |" in capsys.readouterr().out
    assert run(*arguments, "--format", "json") == 0
    [row] = json.loads(capsys.readouterr().out)
    assert (row["model"], row["published_mean"], row["replicates"]) == ("ERM", 13.3629, 2)
    assert run(*arguments, "--format", "csv", "--n-env", "2", "3", "--d-spu", "0", "5") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["n_env"], row["d_spu"]) for row in rows] == [("2", "0"), ("2", "5"), ("3", "0"), ("3", "5")]
    assert run(*arguments, "--format", "latex") == 0
    assert r"\begin{tabular}" in capsys.readouterr().out


def test_a_study_is_resumed_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "s.db")
    arguments = ["AND-mask", "--problems", "Example1", "Example1s", "--replicates", "3", "--out", out]
    assert run(*arguments) == 1
    first = capsys.readouterr().out
    assert run(*arguments) == 1
    again = capsys.readouterr()
    assert "18 of 18 jobs are done already" in again.err
    assert again.out == first
    assert main(["show", out]) == 0
    assert capsys.readouterr().out == first
    assert main(["show", out, "--model", "AND-mask", "--check", "Example1s"]) == 0
    shown = capsys.readouterr().out
    assert "Example1s" in shown
    assert "Oracle" not in shown
    assert main(["show", out, "--printed", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["published_mean"] for row in rows if row["model"] == "AND-mask"} == {10.594, 11.2397}
    assert main(["show", out, "--printed"]) == 0
    assert "(10.5940)" in capsys.readouterr().out
    assert main(["show", out, "--verdict", "void"]) == 0
    assert "no result to show" in capsys.readouterr().err
    assert main(["show", out, "--model", "IGA"]) == 2
    assert "no result of model 'IGA'; there are ERM, AND-mask, Oracle" in capsys.readouterr().err


def test_settings_that_differ_tell_rows_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "s.db")
    arguments = ["ERM", "--problems", "Example1", "--replicates", "2", "--trials", "1", "--out", out, "--exit-zero"]
    for more in (["--steps", "5"], ["--steps", "6", "--seed", "3"], ["--engine", "samples", "--rows", "40"]):
        assert main(["invariance", *arguments, *more, "--jobs", "1"]) == 0
    capsys.readouterr()
    assert main(["show", out, "--format", "markdown"]) == 0
    head = capsys.readouterr().out.splitlines()[0]
    assert "| model | problem | engine | steps | seed | error |" in head


def test_a_learner_that_can_learn_nothing_of_it_does_not_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sklearn.linear_model:LogisticRegression", "--problems", "Example1", "--replicates", "2") == 2
    assert "LogisticRegression cannot learn any of the problems Example1" in capsys.readouterr().err


def test_the_level_is_that_of_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "s.db")
    assert run("ERM", "--problems", "Example1", "--replicates", "8", "--out", out, "--level", "0.9") == 1
    assert "one-sided 90 % bounds" in capsys.readouterr().out
    assert main(["show", out, "--level", "0.99"]) == 0
    assert "one-sided 99 % bounds" in capsys.readouterr().out


def test_a_learner_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_learners.py").write_text(
        "import numpy as np\n\n\n"
        "class Causes:\n"
        "    '''Least squares on the first five features.'''\n\n"
        "    def fit(self, X, y, env):\n"
        "        self.coef_ = np.zeros(X.shape[1])\n"
        "        self.coef_[:5] = np.linalg.lstsq(X[:, :5].astype(float), y, rcond=None)[0]\n\n"
        "    def predict(self, X):\n"
        "        return X @ self.coef_\n\n\n"
        "class Broken(Causes):\n"
        "    def fit(self, X, y, env):\n"
        "        raise ValueError('not today')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    arguments = ["--problems", "Example1", "--replicates", "20", "--rows", "4000", "--steps", "4000"]
    assert main(["invariance", "own_learners:Causes", *arguments, "--trials", "1", "--jobs", "1"]) == 0
    assert "20/20" in capsys.readouterr().out
    out = str(tmp_path / "s.db")
    assert run("own_learners:Broken", "--problems", "Example1", "--replicates", "2", "--rows", "50", "--out", out) == 2
    captured = capsys.readouterr()
    assert "failed: own_learners:Broken on Example1: ValueError: not today" in captured.err
    assert "(and 1 more like this)" in captured.err
    assert "Oracle" in captured.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["IRMv2"], "there is no learner 'IRMv2'"),
        (["ERM", "--problems", "Example9"], "there is no problem 'Example9'"),
        (["ERM", "--replicates", "1"], "n_replicates must be an integer of at least 2; got 1"),
        (["ERM", "--level", "2"], "--level must lie strictly between 0 and 1; got 2"),
        (["ERM", "--backend", "dask"], "--backend dask runs the jobs of a study"),
    ],
)
def test_wrong_use_is_exit_status_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["invariance", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_problems_and_learners_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "problems", "--format", "json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == names()
    assert main(["ls", "learners", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == learners.names()
    assert {row["name"]: row["trained on"] for row in rows}["ICP"] == "rows"
    assert all(row["summary"] for row in rows)
