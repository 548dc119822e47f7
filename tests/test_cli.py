"""The command line, as a person would use it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import milfast as mf
import milfast.study
from milfast import cli, models
from milfast.checks import runner
from milfast.cli.arguments import setting
from milfast.report import terminal, verdicts

if TYPE_CHECKING:
    from pathlib import Path

RULES = '''
import numpy as np
from milfast.checks import get

class Oracle:
    """Knows the true rule of the presence check."""
    def fit(self, bags):
        return self
    def decision_function(self, bags):
        return get("presence").recipe("paper").oracle(bags)

class NoPoison:
    """Takes a bag without poison for positive."""
    def fit(self, bags):
        return self
    def decision_function(self, bags):
        return np.array([bag.mean(axis=1).min() for bag in bags])

class Broken:
    def fit(self, bags):
        raise ValueError("out of coffee")
    def predict(self, bags):
        return []

class Lost(Broken):
    def fit(self, bags):
        return {}["key"]

class Quitter(Broken):
    def fit(self, bags):
        raise SystemExit(0)

class QuitsEarly(Broken):
    def __init__(self):
        raise SystemExit(0)

class Chatty(NoPoison):
    name = "[/nope]"
    def fit(self, bags):
        print("fitting")
        return self

class Sets:
    """The largest instance of a bag, poison apart: what one concept needs, and all that it claims."""
    claims = "standard"
    def fit(self, bags):
        return self
    def decision_function(self, bags):
        means = bags.instances.mean(axis=1).astype(float)
        size = np.where(means < -5, 0, np.square(bags.instances).sum(axis=1))
        return np.maximum.reduceat(size, bags.offsets[:-1])

class Bold(Sets):
    claims = "threshold"

class Wrong(Sets):
    claims = "everything"

class Slow(NoPoison):
    def fit(self, bags):
        import time
        time.sleep(60)
'''

SMALL = ["--checks", "presence", "--test", "400", "--runs", "1", "--jobs", "1"]


@pytest.fixture(autouse=True)
def usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rules_for_cli.py").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def rows_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


# ---------------------------------------------------------------- check


def test_check_exits_with_0_when_all_pass_and_1_when_one_fails(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "rules_for_cli:Oracle", *SMALL]) == 0
    assert "pass" in capsys.readouterr().out
    assert cli.main(["check", "rules_for_cli:Oracle", "rules_for_cli:NoPoison", *SMALL]) == 1
    assert "fail" in capsys.readouterr().out
    assert cli.main(["check", "rules_for_cli:NoPoison", *SMALL, "--exit-zero"]) == 0


def test_check_as_json_is_a_list_of_flat_rows(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "rules_for_cli:NoPoison", *SMALL, "--format", "json", "--recipe", "all", "--seed", "3"])
    rows = rows_of(capsys)
    assert [row["recipe"] for row in rows] == ["paper", "notebook", "strict"]
    for row in rows:
        assert row["model"] == "NoPoison"
        assert row["verdict"] == row["paper_verdict"] == "fail"
        assert row["test_auc_low"] <= row["test_auc"] <= row["test_auc_high"] < 0.02  # the Wilson bound of 0 in 200
        assert all(not isinstance(value, (dict, list)) for value in row.values())


def test_the_same_seed_gives_the_same_rows(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = []
    for seed in ("1", "1", "2"):
        cli.main(["check", "NSK", *SMALL, "--train", "40", "--format", "json", "--seed", seed])
        seen.append([{**row, "seconds": 0} for row in rows_of(capsys)])
    assert seen[0] == seen[1] != seen[2]


def test_markdown_and_csv_hold_the_same_table(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "rules_for_cli:Oracle", *SMALL, "--format", "markdown"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| model | check | recipe |")
    assert lines[2].startswith("| Oracle | presence | paper |")
    cli.main(["check", "rules_for_cli:Oracle", *SMALL, "--format", "csv"])
    [row] = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert f"{float(row['oracle_auc']):.3f}" in lines[2]


def test_set_gives_all_models_a_parameter_and_tells_so(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "NSK", "STK", *SMALL, "--exit-zero", "--format", "json", "--set", "gamma=9"])
    assert [row["model"] for row in rows_of(capsys)] == ["NSK (gamma=9)", "STK (gamma=9)"]
    out = ["--out", "set.db", "--exit-zero", "--format", "json"]
    for extra in ([], ["--set", "gamma=9"], ["--set", "gamma=9"]):
        cli.main(["check", "SIL", *SMALL, *out, *extra])
        capsys.readouterr()
    cli.main(["show", "set.db", "--format", "json"])
    rows = rows_of(capsys)
    assert [row["model"] for row in rows] == ["SIL", "SIL (gamma=9)"]
    assert rows[0]["fresh_auc"] != rows[1]["fresh_auc"]
    cli.main(["show", "set.db", "--printed", "--format", "json"])
    assert [row["printed_test_auc"] for row in rows_of(capsys)] == [0.998, 0.998]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("epochs=5", ("epochs", 5)),
        ("lr=1e-3", ("lr", 0.001)),
        ("norm=False", ("norm", False)),
        ("device=cuda:1", ("device", "cuda:1")),
        ("faults=biased-split,sorted-batches", ("faults", ["biased-split", "sorted-batches"])),
    ],
)
def test_settings_are_plain_values(text: str, expected: tuple[str, Any]) -> None:
    assert setting(text) == expected


def test_a_setting_that_a_model_lacks_is_named(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "NSK", *SMALL, "--set", "epochs=3"]) == 2
    assert "NSK has no parameter 'epochs': it has C," in capsys.readouterr().err
    assert cli.main(["evaluate", "rules_for_cli:Oracle", "--data", "x.csv", "--set", "a=3"]) == 2
    with pytest.raises(SystemExit):
        cli.main(["check", "NSK", "--set", "epochs"])
    assert "'epochs' must be NAME=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("epochs=two", "epochs must be an integer; got 'two' (while setting parameters of mi-Net)"),
        ("epochs=0", "epochs must be at least 1; got 0"),
        ("lr=fast", "lr must be a number; got 'fast'"),
        ("faults=biased", "biased"),
        ("random_state=3", "on the command line --seed"),
        (
            "checkpoint=a.pt",
            "every run is another training, and one file can keep only one; on the command line, --out",
        ),
    ],
)
@pytest.mark.parametrize("verb", [["check"], ["evaluate", "--data", "bags.csv"]], ids=lambda verb: verb[0])
def test_settings_of_no_use_are_refused_before_anything_runs(
    verb: list[str],
    setting: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = pytest.importorskip("milfast.models.deep.base")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base.DeepMIL, "fit", lambda self, bags: pytest.fail("trained"))
    write(tmp_path / "bags.csv", "bag_id,label,f1\n" + "".join(f"{i},{i % 2},{i}.5\n" for i in range(20)))
    command = [verb[0], "mi-Net", *verb[1:], *(SMALL if verb[0] == "check" else []), "--set", setting]
    assert cli.main(command) == 2
    assert message in capsys.readouterr().err


def test_settings_of_other_models_are_looked_at_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "NSK", *SMALL, "--set", "C=-1"]) == 2
    assert "C must be" in capsys.readouterr().err


def test_results_that_the_paper_did_not_print_are_counted_and_named(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["check", "NSK", "rules_for_cli:Oracle", *SMALL, "--exit-zero", "--out", "both.db", "--format", "json"])
    capsys.readouterr()
    assert cli.main(["show", "both.db", "--printed", "--format", "json"]) == 0
    captured = capsys.readouterr()
    rows = json.loads(captured.out)
    assert {row["model"] for row in rows} == {"NSK"}
    others = set(captured.err.partition("results: ")[2].strip().split(", "))
    assert all(other.startswith("Oracle on ") for other in others)
    assert f"left out, as the paper printed no figures: {len(others)} of {len(others) + len(rows)} results" in (
        captured.err
    )


def test_options_reach_the_checks(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(
        [
            "check",
            "rules_for_cli:NoPoison",
            *SMALL,
            "--train",
            "30",
            "--pad-to",
            "25",
            "--features",
            "8",
            "--format",
            "json",
        ]
    )
    [row] = rows_of(capsys)
    assert row["n_train"] == 30
    assert row["size_auc"] == 0.5  # every bag is filled up to 25 instances
    # along a random direction the poison is no longer a low mean of the features, and the model has nothing to learn
    cli.main(["check", "rules_for_cli:NoPoison", *SMALL, "--direction", "5", "--format", "json"])
    [turned] = rows_of(capsys)
    assert turned["fresh_auc"] != row["fresh_auc"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "nsk"], "did you mean NSK or STK? known are "),
        (["check", "no.such.module:Model"], "there is no module no.such.module"),
        (["check", "rules_for_cli:Missing"], "has no 'Missing'"),
        (["check", "NSK", "--checks", "presense"], "did you mean presence"),
        (["check", "NSK", "--runs", "0"], "n_runs must be an integer of at least 1"),
        (["check", "NSK", "--train", "2"], "n_train must be an integer of at least 4"),
        (["check", "NSK", "--level", "2"], "level must lie strictly between 0 and 1"),
        (["check", "NSK", "--seed", "-1"], "random_state must not be negative"),
        (["check", "rules_for_cli:Broken", *SMALL], "out of coffee (while checking Broken on presence (paper), run 1)"),
        (["check", "NSK", "--out", "absent/s.db"], "cannot be written"),
        (["check", "NSK", "--out", "s.db", "--backend", "dask"], "needs scheduler="),
        (["check", "NSK", "--backend", "dask"], "say with --out in which file"),
        (["evaluate", "NSK", "--data", "musk1", "--backend", "dask"], "say with --out in which file"),
        (["check", "NSK", "--scheduler", "tcp://a:1"], "--scheduler is the address of a Dask cluster: add --backend"),
        (["check", "NSK", "--scheduler", "tcp://a:1", "--out", "s.db"], "add --backend dask"),
        (["check", "NSK", "--runs", "5", "--until-decided"], "leave one of them out, or say with --max-runs"),
        (["show", "absent.db"], "there is no study absent.db"),
        (["show", "rules_for_cli.py"], "not a study"),
        (["merge", "absent.db", "--out", "s.db"], "there is no study absent.db"),
        (["evaluate", "NSK", "--data", "musk3"], "did you mean"),
        (["evaluate", "NSK", "--data", "absent.csv"], "absent.csv"),
        (["auc", "absent.csv"], "absent.csv"),
        (["audit", "absent.csv"], "absent.csv"),
    ],
)
def test_wrong_use_exits_with_2_and_says_the_way_out(
    rules: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_a_model_that_ends_the_program_before_it_is_fitted_is_an_error(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rules / "ends_at_import.py").write_text("import sys\nsys.exit(0)\n")
    for model in ("ends_at_import:Model", "rules_for_cli:QuitsEarly"):
        for more in ([], ["--out", "s.db"]):
            assert cli.main(["check", model, *SMALL, *more]) == 2
            captured = capsys.readouterr()
            assert "the model ended the program: sys.exit(0)" in captured.err
            assert "Traceback" not in captured.err
        with pytest.raises(RuntimeError, match="the model ended the program"):
            cli.main(["check", model, *SMALL, "--traceback"])


@pytest.mark.parametrize("n_jobs", ["1", "2"])
@pytest.mark.parametrize(
    ("model", "message"),
    [("Lost", "KeyError: 'key' (while checking Lost"), ("Quitter", "the model ended the program: sys.exit(0)")],
)
def test_whatever_a_model_does_a_check_that_was_not_done_is_no_pass(
    rules: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    message: str,
    n_jobs: str,
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(rules), os.environ.get("PYTHONPATH", "")]))
    assert cli.main(["check", f"rules_for_cli:{model}", *SMALL[:-1], n_jobs]) == 2
    assert message in capsys.readouterr().err


def test_what_a_model_prints_and_is_called_does_not_get_into_the_output(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check", "rules_for_cli:Chatty", *SMALL, "--format", "json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)[0]["model"] == "[/nope]"
    assert "fitting" in captured.err
    assert cli.main(["check", "rules_for_cli:Chatty", *SMALL]) == 1
    assert "[/nope]" in capsys.readouterr().out


def test_a_narrow_terminal_loses_the_least_needed_columns_and_no_figure(
    rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "WIDE", 80)
    cli.main(["check", "rules_for_cli:NoPoison", *SMALL])
    table, line, _ = capsys.readouterr().out.partition("left out for the width: ")
    assert line
    for whole in ("fresh AUC", "shifted AUC", "verdict", "NoPoison", "0.000 [0.000, 0.019]"):
        assert whole in table
    assert "paper's rule" not in table
    assert max(map(len, table.splitlines())) <= 80


def test_columns_go_in_order_and_are_named_and_the_legend_goes_with_them(
    rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["check", "rules_for_cli:NoPoison", *SMALL, "--checks", "presence", "threshold-poison"]
    legends = {"paper's rule": "paper's rule: fail when", "oracle": "oracle: AUC", "size only": "size only: AUC"}
    legends["worst sort"] = "worst sort: AUC against"
    order = ["recipe", "paper's rule", "train AUC", "size only", "oracle", "worst sort", "flags"]
    lost: list[int] = []
    for recipes in (["paper"], ["paper", "strict"]):
        for width in (80, 90, 100, 110, 120, 130, 140, 200):
            monkeypatch.setenv("COLUMNS", str(width))
            assert cli.main([*command, "--recipe", *recipes]) == 1
            shown = capsys.readouterr().out
            head, text = shown.lstrip("\n").split("\n")[0], " ".join(shown.split())
            assert max(map(len, shown.splitlines())) <= width
            goes = order if len(recipes) == 1 else order[1:]
            gone = [title for title in order if title not in head]
            assert gone == goes[: len(gone)]
            said = text.partition("left out for the width: ")[2].partition("; --format markdown has every column")[0]
            assert sorted(filter(None, said.split(", "))) == sorted(gone)
            assert all((legend in text) == (title not in gone) for title, legend in legends.items())
            lost.append(len(gone))
    assert lost[7] == lost[15] == 0
    assert len(set(lost)) > 3


def test_flags_are_shown_by_number_and_named_below(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "rules_for_cli:NoPoison", *SMALL, "--checks", "presence", "--exit-zero"]
    assert cli.main(command) == 0
    shown = capsys.readouterr().out
    [row] = [line for line in shown.splitlines() if line.strip().startswith("NoPoison")]
    assert row.split()[-2:] == ["110", "111"]
    assert "flags: 110 degraded, 111 below-oracle." in shown


def test_flags_that_are_said_in_words_are_no_column(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "rules_for_cli:Oracle", *SMALL[:2], "--test", "4000", "--jobs", "1", "--recipe", "strict"]
    for runs, words in (("1", "all this is conditional on this fit"), ("2", "all this is from 2 runs")):
        assert cli.main([*command, "--runs", runs]) == 0
        shown = capsys.readouterr().out
        assert words in shown
        assert not {"flags", "one-fit", "few-runs"} & set(shown.split())
        cli.main([*command, "--runs", runs, "--format", "markdown"])
        assert {"one-fit", "few-runs"} & set(capsys.readouterr().out.split())


def test_a_table_of_nothing_says_so(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form, printed in (("table", "nothing to show"), ("json", "[]")):
        command = ["check", "rules_for_cli:Broken", *SMALL, "--runs", "3", "--out", f"{form}.db", "--format", form]
        assert cli.main(command) == 2
        captured = capsys.readouterr()
        assert captured.out.strip() == printed
        assert captured.err.count("failed: ") == captured.err.count("out of coffee") == 1
        assert "run 1 (and 2 more like this)" in captured.err


def test_no_verb_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "run models through the MIL unit tests" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a POSIX thing")
def test_sigterm_ends_the_workers_too(rules: Path) -> None:
    command = [sys.executable, "-m", "milfast", "check", "rules_for_cli:Slow", "rules_for_cli:Slow", *SMALL[:-1], "2"]
    with subprocess.Popen([*command, "--runs", "4"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        time.sleep(5)
        process.terminate()
        # the pipe is closed when the last process that holds it has ended
        out, _ = process.communicate(timeout=15)
    assert process.returncode == 128 + signal.SIGTERM, out


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break differently there")
@pytest.mark.parametrize("reader", ["true", "head -n 1"])
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_reader_that_leaves_does_not_turn_a_failure_into_a_success(rules: Path, form: str, reader: str) -> None:
    command = f"{sys.executable} -m milfast check rules_for_cli:NoPoison {' '.join(SMALL)} --format {form}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | {reader}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "error" not in done.stderr


def test_traceback_lets_the_error_through(rules: Path) -> None:
    with pytest.raises(ValueError, match="out of coffee"):
        cli.main(["check", "rules_for_cli:Broken", *SMALL, "--traceback"])


def test_ctrl_c_exits_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "results", interrupted)
    assert cli.main(["check", "NSK"]) == 130
    assert capsys.readouterr().err == "milfast: interrupted\n"


def test_ctrl_c_in_a_study_says_how_to_go_on(
    rules: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(milfast.study.Study, "run", interrupted)
    assert cli.main(["check", "NSK", *SMALL, "--out", "s.db"]) == 130
    assert "interrupted; what was done is kept in s.db: the same command goes on" in capsys.readouterr().err


def test_a_group_leaves_out_what_cannot_run_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = models.get

    def without_torch(name: str) -> Any:
        if models.registry[name].requires:
            raise ImportError(f"{name} needs torch")
        return real(name)

    monkeypatch.setattr(models, "get", without_torch)
    cli.main(["check", "all", *SMALL, "--train", "40", "--exit-zero", "--format", "json"])
    captured = capsys.readouterr()
    assert {row["model"] for row in json.loads(captured.out)} == {*models.names("svm"), *models.names("linear")}
    assert "left out: mi-Net needs torch" in captured.err


def test_a_model_named_twice_is_checked_once(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "NSK", "NSK", *SMALL, "--train", "40", "--exit-zero", "--format", "json"])
    assert len(rows_of(capsys)) == 1


# ---------------------------------------------------------------- what stands below a table


QUICK = ["--recipe", "strict", "--train", "20", "--test", "1000", "--jobs", "1"]


def test_groups_of_checks_can_be_asked_for(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {
        ("paper",): mf.checks.names("paper"),
        ("laws",): mf.checks.names("laws"),
        ("laws", "bag-size"): [*mf.checks.names("laws"), "bag-size"],
        ("presence", "laws"): ["presence", *mf.checks.names("laws")],
    }
    for group, names in asked.items():
        cli.main(
            [
                "check",
                "rules_for_cli:Sets",
                *QUICK,
                "--runs",
                "1",
                "--checks",
                *group,
                "--exit-zero",
                "--format",
                "json",
            ]
        )
        assert [row["check"] for row in rows_of(capsys)] == names


def test_all_checks_are_run_when_none_is_named(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "rules_for_cli:Sets", *QUICK, "--runs", "1", "--exit-zero", "--format", "json"])
    rows = rows_of(capsys)
    assert {row["check"] for row in rows} == set(mf.checks.names())
    assert len(rows) == 10
    for row in rows:
        assert row["code"] == mf.checks.get(row["check"]).code
        assert (row["broken"] is None) == (row["check"] not in mf.checks.names("laws"))
        assert (row["test_auc"] is None) == (row["check"] in mf.checks.names("laws"))
        assert row["claims"] == "standard"


def test_a_row_has_the_same_keys_whatever_the_check(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checks = ["presence", "monotonicity", "false-frequency", "label-swap"]
    command = ["check", "rules_for_cli:Sets", *QUICK, "--runs", "2", "--checks", *checks, "--exit-zero"]
    cli.main([*command, "--format", "json"])
    rows = rows_of(capsys)
    intervals = ("train_auc", "fresh_auc", "test_auc", "worst_auc", "broken")
    plain = "model check recipe code verdict verdict_code flags paper_verdict reason worst_stratum oracle_auc size_auc "
    plain += "train_accuracy fresh_accuracy test_accuracy "
    plain += "size_correlation assumption claims p_value p_holm needed_runs needed_test looks level n_train n_test "
    plain += "n_runs seed seconds"
    expected = {*plain.split(), *(f"{name}{part}" for name in intervals for part in ("", "_low", "_high"))}
    assert all(set(row) == expected for row in rows)
    assert all(row["n_runs"] == 2 and "few-runs" in row["flags"].split() for row in rows)
    cli.main([*command, "--format", "csv"])
    assert set(next(csv.reader(io.StringIO(capsys.readouterr().out)))) == expected


def test_a_failure_outside_of_what_the_model_claims_does_not_count(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*QUICK, "--runs", "1", "--checks", "presence", "false-frequency", "correlated"]
    for model, status in (("Sets", 0), ("Bold", 1)):
        assert cli.main(["check", f"rules_for_cli:{model}", *command, "--format", "json"]) == status
        rows = {row["check"]: row for row in rows_of(capsys)}
        assert rows["presence"]["verdict"] == "pass"
        assert rows["false-frequency"]["verdict"] == "fail"
        assert rows["correlated"]["verdict"] != "pass"
        assert ("outside-claim" in rows["false-frequency"]["flags"]) == (model == "Sets")
        assert "outside-claim" in rows["correlated"]["flags"]
    # what it claims does count
    assert cli.main(["check", "rules_for_cli:Sets", *QUICK, "--checks", "null-copies", "--runs", "5"]) == 0
    assert cli.main(["check", "rules_for_cli:Wrong", *QUICK, "--checks", "presence"]) == 2
    assert "Wrong.claims must be one of 'standard', 'threshold', 'correlated', None" in capsys.readouterr().err


def test_below_a_table_stands_what_its_columns_mean_and_why_a_check_was_not_passed(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["rules_for_cli:Sets", "rules_for_cli:NoPoison", *QUICK, "--checks", "presence", "false-frequency"]
    cli.main(["check", *command, "--runs", "1"])
    shown = " ".join(capsys.readouterr().out.split())
    for text in (
        "training bags: 20 (Sets, NoPoison).",
        "4 verdicts: 1 pass, 2 fail (1 outside the model's claim), 1 not-learned ",
        "95 % intervals, which hold for one fit.",
        "MIL001 fail: NoPoison on presence (strict): learned instead: that a bag lacks the poison",
        "MIL003 fail: Sets on false-frequency (strict): learned instead: how often concept instances occur",
        "not held against the model, which claims the standard assumption",
        "all this is conditional on this fit",
        "docs/checks.md has a paragraph for every code and flag",
    ):
        assert text in shown
    assert "Sets on presence (strict):" not in shown  # a plain pass explains itself
    assert shown.count("conditional on this fit") == 1  # said once, not in every reason
    cli.main(["check", *command[:1], *QUICK, "--checks", "presence", "--runs", "5", "--level", "0.9"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "90 % intervals over 5 runs." in shown
    assert "docs/checks.md" not in shown
    cli.main(["check", *command, "--runs", "1", "--format", "markdown"])
    assert "training bags" not in capsys.readouterr().out


def test_the_brackets_tell_their_level_and_the_verdicts_their_bar(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["check", "rules_for_cli:Sets", *QUICK, "--exit-zero", "--checks"]

    def said(*more: str) -> str:
        cli.main([*command, *more])
        return " ".join(capsys.readouterr().out.split())

    sequential = said("presence", "--until-decided", "--max-runs", "40")
    assert "99.2 % intervals (looked at up to 6 times, so that verdicts keep 95 %) over 5 runs." in sequential
    bars = said("presence", "label-swap", "correlated", "--runs", "1")
    assert "as shifted lies above or below 0.5 (0.45 for label-swap, 0.55 for correlated)." in bars
    assert "as shifted lies above or below 0.45 for label-swap." in said("label-swap", "--runs", "1")
    assert "then pass or fail as law broken lies below or above 0.01." in said("permutation", "--runs", "1")


def test_different_numbers_of_runs_are_named_once(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for runs, train, said in (
        ("2", "20", "all this is from 2 runs, and it takes 5"),
        ("1", "22", "all this is from 1 or 2 runs, and it takes 5"),
        ("5", "24", "some of this is from 1 or 2 runs, and it takes 5"),
    ):
        command = ["check", "rules_for_cli:Sets", *QUICK, "--checks", "presence", "--exit-zero", "--out", "s.db"]
        cli.main([*command, "--train", train, "--runs", runs])
        capsys.readouterr()
        cli.main(["show", "s.db"])
        shown = " ".join(capsys.readouterr().out.split())
        assert said in shown
        assert shown.count("this is") == 1
    assert "training bags: 20 (Sets), 22 (Sets), 24 (Sets)." in shown


def test_verdicts_that_do_not_stand_among_all_are_named(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "rules_for_cli:Sets", *QUICK[:-4], "--test", "40", "--jobs", "1", "--runs", "3"]
    named = 0
    for level in ("0.5", "0.95", "0.99", "0.999", "0.9999"):
        cli.main([*command, "--exit-zero", "--level", level, "--format", "json"])
        rows = rows_of(capsys)
        tail = (1 - float(level)) / 2
        weak = [row for row in rows if row["verdict"] in ("pass", "fail") and not row["p_holm"] < tail]
        assert all(row["p_value"] < tail for row in weak)
        cli.main([*command, "--exit-zero", "--level", level])
        shown = " ".join(capsys.readouterr().out.split())
        said = shown.partition(f"not among all {len(rows)} of this table (Holm): ")[2]
        assert all(f"{row['model']} on {row['check']} (strict)" in said for row in weak)
        assert bool(said) == bool(weak)
        named += len(weak)
    assert named


def test_long_tables_explain_the_first_thirty_and_say_how_many_are_left(
    rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "EXPLAINED", 1)
    cli.main(["check", "rules_for_cli:NoPoison", *QUICK, "--checks", "paper", "--runs", "1"])
    shown = capsys.readouterr().out
    assert "... and 2 more: --format json has the reason of every verdict" in shown
    assert "MIL001 fail" in shown
    assert "MIL002 fail" not in shown


def test_columns_that_say_nothing_are_left_out(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "rules_for_cli:Oracle", "--test", "400", "--jobs", "1", "--exit-zero", "--format", "markdown"]

    def heads(*more: str) -> list[str]:
        cli.main([*command, *more])
        return [head.strip() for head in capsys.readouterr().out.splitlines()[0].split("|")[1:-1]]

    law = heads("--checks", "permutation", "--runs", "1")
    assert "law broken" in law
    assert not {"shifted AUC", "worst sort", "oracle", "size only", "paper's rule"} & set(law)
    presence = heads("--checks", "presence", "--runs", "1")
    assert {"shifted AUC", "oracle", "size only", "paper's rule", "flags"} <= set(presence)
    assert not {"law broken", "worst sort"} & set(presence)
    assert "flags" not in heads("--checks", "permutation", "--runs", "5", "--test", "4000")
    both = heads("--checks", "permutation", "threshold-poison", "--runs", "1")
    assert {"law broken", "worst sort", "shifted AUC"} <= set(both)


# ---------------------------------------------------------------- studies


def test_a_study_resumes_shows_and_merges(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "rules_for_cli:NoPoison", "NSK", *SMALL, "--train", "40", "--exit-zero", "--format", "json"]

    def shown(*arguments: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        assert cli.main([*arguments, "--format", "json"]) == 0
        return rows_of(capsys)

    assert cli.main(command) == 0
    direct = [{**row, "seconds": 0} for row in rows_of(capsys)]
    assert cli.main([*command, "--out", "a.db"]) == 0
    captured = capsys.readouterr()
    assert [{**row, "seconds": 0} for row in json.loads(captured.out)] == direct
    assert captured.err == ""
    assert cli.main([*command, "--out", "a.db"]) == 0
    captured = capsys.readouterr()
    assert "2 of 2 jobs are done already" in captured.err
    assert [{**row, "seconds": 0} for row in json.loads(captured.out)] == direct

    cli.main([*command, "--out", "b.db", "--seed", "1"])
    assert cli.main(["merge", "a.db", "b.db", "--out", "all.db"]) == 0
    assert "4 done" in capsys.readouterr().out
    # runs that differ in nothing but their seed are runs of one result
    assert [(row["model"], row["n_runs"]) for row in shown("show", "all.db")] == [("NoPoison", 2), ("NSK", 2)]
    assert [row["model"] for row in shown("show", "all.db", "--model", "NSK")] == ["NSK"]
    assert len(shown("show", "all.db", "--model", "NSK", "NoPoison", "--verdict", "fail", "pass")) >= 1
    assert len(shown("show", "all.db", "--check", "MIL001")) == 2
    for what, name, known in (("model", "nsk", "NoPoison, NSK"), ("check", "correlated", "presence")):
        assert cli.main(["show", "all.db", f"--{what}", name]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert f"no result of {what} {name!r}; there are {known}" in captured.err
    with pytest.raises(SystemExit):
        cli.main(["show", "all.db", "--verdict", "passed"])
    assert "invalid choice: 'passed'" in capsys.readouterr().err
    assert shown("show", "a.db", "--verdict", "fail") == shown("show", "a.db", "--check", "presence")
    cli.main(["show", "a.db", "--verdict", "pass"])
    assert "no result to show" in capsys.readouterr().err
    cli.main(["show", "a.db", "--format", "latex"])
    assert capsys.readouterr().out.startswith("\\begin{tabular}{lllrrrrrlll}\n\\toprule\n")


def test_a_study_is_shown_at_any_level(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "rules_for_cli:Sets", *QUICK, "--checks", "presence", "monotonicity", "--runs", "2"]
    command += ["--exit-zero", "--format", "json"]

    def rows(*arguments: str) -> list[dict[str, Any]]:
        cli.main([*arguments, "--format", "json"])
        return [{**row, "seconds": 0} for row in rows_of(capsys)]

    cli.main([*command, "--out", "s.db"])
    capsys.readouterr()
    wide, narrow = rows("show", "s.db", "--level", "0.999"), rows("show", "s.db", "--level", "0.6")
    # the file keeps what was measured, not how it was read
    assert wide == rows(*command, "--level", "0.999")
    assert narrow == rows(*command, "--level", "0.6")
    assert rows("show", "s.db") == rows(*command)
    for one, other in zip(wide, narrow, strict=True):
        assert one["fresh_auc"] == other["fresh_auc"]
        assert one["fresh_auc_high"] - one["fresh_auc_low"] > other["fresh_auc_high"] - other["fresh_auc_low"]
    assert cli.main(["show", "s.db", "--level", "1.5"]) == 2
    assert "level must lie strictly between 0 and 1" in capsys.readouterr().err


def test_a_study_of_another_version_is_refused_in_plain_words(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "rules_for_cli:NoPoison", *SMALL, "--train", "40", "--exit-zero", "--out", "s.db"]
    cli.main(command)
    with sqlite3.connect("s.db") as connection:
        [(table, column)] = [
            (name, row[1])
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for row in connection.execute(f"PRAGMA table_info({name})").fetchall()
            if row[1] == "result"
        ]
        old = json.dumps({"train_auc": 1.0, "test_auc": 0.0})
        assert connection.execute(f"UPDATE {table} SET {column} = ?", (old,)).rowcount == 1
    capsys.readouterr()
    for again in (["show", "s.db"], command):
        assert cli.main(again) == 2
        captured = capsys.readouterr()
        assert "rules_for_cli:NoPoison on presence was checked by milfast" in captured.err
        assert "kept other figures: run the checks again into a new file" in captured.err
        assert captured.out == ""


def test_a_model_that_raises_leaves_the_others_in_the_study(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "rules_for_cli:Broken", "rules_for_cli:NoPoison", *SMALL, "--out", "s.db", "--format", "json"]
    assert cli.main(command) == 2
    captured = capsys.readouterr()
    assert [row["model"] for row in json.loads(captured.out)] == ["NoPoison"]
    assert "failed: rules_for_cli:Broken on presence" in captured.err
    assert "out of coffee" in captured.err
    cli.main(["show", "s.db"])
    assert "failed: rules_for_cli:Broken on presence" in capsys.readouterr().err


def test_evaluations_go_through_a_study_too(bags_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "NSK", "--data", str(bags_csv), "--repeats", "2", "--jobs", "1", "--format", "json"]
    cli.main(command)
    [direct] = rows_of(capsys)
    study = str(tmp_path / "e.db")
    assert cli.main([*command, "--out", study]) == 0
    [stored] = rows_of(capsys)
    assert {**stored, "seconds": 0} == {**direct, "seconds": 0}
    assert cli.main(["show", study, "--format", "json"]) == 0
    assert rows_of(capsys) == [stored]
    with bags_csv.open("a") as stream:
        stream.write("99,0,0,0,0\n")
    cli.main([*command, "--out", study])  # other contents are other jobs
    assert "done already" not in capsys.readouterr().err


# ---------------------------------------------------------------- evaluate


@pytest.fixture
def bags_csv(tmp_path: Path) -> Path:
    bags = mf.sample_bags("presence", 40, recipe="strict", n_features=3, random_state=0)
    assert bags.labels is not None
    path = tmp_path / "bags.csv"
    table = np.column_stack((bags.bag_index + 1, bags.labels[bags.bag_index], bags.instances))
    np.savetxt(
        path,
        table,
        delimiter=",",
        header="bag_id,label,f1,f2,f3",
        comments="",
        fmt=["%d", "%d", "%.9g", "%.9g", "%.9g"],
    )
    return path


def test_evaluate_reads_a_file_of_bags(bags_csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.main(["evaluate", "svm", "--data", str(bags_csv), "--repeats", "2", "--jobs", "1", "--format", "json"]) == 0
    )
    rows = rows_of(capsys)
    assert [row["model"] for row in rows] == models.names("svm")
    assert all(
        row["folds"] == 5 and row["repeats"] == 2 and row["auc_low"] <= row["auc"] <= row["auc_high"] for row in rows
    )


def test_evaluate_prints_the_interval_of_real_data(mil_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "NSK", "--data", "musk1", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "NSK" in out
    assert "musk1" in out
    assert "Nadeau" in out


# ---------------------------------------------------------------- auc


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_auc_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "p.csv", "id,score,label\na,0.1,0\nb,0.4,0\nc,0.35,1\nd,0.8,1\n")
    assert cli.main(["auc", file, "--format", "json", "--max-fpr", "0.5"]) == 0
    [row] = rows_of(capsys)
    assert row["auc"] == 0.75
    assert (row["n_pos"], row["n_neg"]) == (2, 2)
    assert row["partial_auc"] == mf.auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], max_fpr=0.5)
    assert cli.main(["auc", file]) == 0
    assert "0.750" in capsys.readouterr().out


def test_auc_of_named_columns_text_labels_gzip_and_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "﻿p_ill, diagnosis\n0.9,ill\n0.2,well\n\n0.7,ill\n"  # with a byte order mark, a space and an empty line
    with gzip.open(tmp_path / "p.csv.gz", "wt", encoding="utf-8") as stream:
        stream.write(text)
    named = ["--scores", "p_ill", "--labels", "diagnosis", "--pos-label", "ill", "--format", "json"]
    assert cli.main(["auc", str(tmp_path / "p.csv.gz"), *named]) == 0
    captured = capsys.readouterr()
    assert "milfast: warning: " in captured.err
    assert "one negative" in captured.err
    assert json.loads(captured.out)[0]["auc"] == 1.0
    monkeypatch.setattr(sys, "stdin", io.StringIO(text + "0.3,well\n"))
    cli.main(["auc", "-", *named])
    assert rows_of(capsys)[0]["n_neg"] == 2


def test_auc_of_rows_that_belong_together_warns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.csv"
    file.write_text("patient,label,score\na,1,0.9\na,1,0.4\nb,0,0.6\nc,0,0.1\n")
    assert cli.main(["auc", str(file)]) == 0
    assert (
        "column 'patient': 4 rows belong to 3, and the interval takes each row as independent"
        in capsys.readouterr().err
    )


def test_an_undefined_auc_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "one.csv", "score,label\n0.5,1\n0.7,1\n")
    assert cli.main(["auc", file, "--max-fpr", "0.1", "--format", "json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)[0]["auc"] is None
    assert "labels hold no negatives" in captured.err


def test_large_integers_in_a_file_are_not_rounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = "\n".join(f"{2**60 + score},{label}" for score, label in ((1, 0), (2, 1), (0, 0), (3, 1)))
    cli.main(["auc", write(tmp_path / "big.csv", f"score,label\n{cells}\n"), "--format", "json"])
    assert rows_of(capsys)[0]["auc"] == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("score,score,label\n1,2,0\n", "has 2 columns 'score'"),
        ("score;label\n1;0\n", "must be separated by commas"),
        ("score,label\n1_000,1\n", "'1_000' in column 'score' is not a number"),
        ("", "is empty"),
        ("score,label\n", "has a header but no rows"),
        ("a,b\n1,2\n", "has no column score or scores or prediction"),
        ("score,b\n1,2\n", "has no column label or labels or target or y"),
        ("score,label\n0.5\n", "line 2: 1 cells where the header has 2"),
        ("score,label\n0.5,1\nhigh,0\n", "line 3: 'high' in column 'score' is not a number"),
        ("score,label\n0.5,ill\n", "--pos-label"),
        ("score,label\nnan,1\n0.5,0\n", "scores[0] is NaN"),
        ("score,label\n0.1,1\n0.5,2\n", "pos_label"),
    ],
)
def test_auc_says_what_is_wrong_with_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    assert cli.main(["auc", write(tmp_path / "bad.csv", text)]) == 2
    assert message in capsys.readouterr().err


# ---------------------------------------------------------------- audit


TABLE = "model,train_acc,train_auc,test_acc,test_auc\nMI-Net,99.1%,0.807,0.000,0.827\nSTK,0.947,0.991,0.000,0.000\n"


def test_audit_prints_limits_and_exits_with_1_when_something_is_impossible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "t.csv", TABLE)
    assert cli.main(["audit", file, "--positive-fraction", "50%", "--format", "json"]) == 1
    rows = rows_of(capsys)
    assert [(row["name"], row["prefix"], row["verdict"]) for row in rows] == [
        ("MI-Net", "train", "impossible"),
        ("MI-Net", "test", "impossible"),
        ("STK", "train", "possible"),
        ("STK", "test", "possible"),
    ]
    assert (rows[0]["auc_low"], rows[1]["auc_high"]) == (0.981, 0.001)
    assert cli.main(["audit", file, "--positive-fraction", "0.5"]) == 1
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if "0.981" in line and "impossible" in line]) == 1
    assert "MI-Net, train: an AUC of 0.807 is below 0.9810, the least with accuracy 99.1%" in out
    assert cli.main(["audit", file, "--positive-fraction", "0.5", "--format", "markdown"]) == 1
    assert "| an AUC of 0.827 is above 0.0010" in capsys.readouterr().out


def test_audit_without_a_fraction_checks_nothing_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(TABLE))
    assert cli.main(["audit", "-"]) == 0
    out = capsys.readouterr().out
    assert out.count("unchecked") == 4
    assert "add the positive fraction" in out


def test_a_fraction_can_be_written_as_one_and_a_bad_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "t.csv", "acc,auc\n0.90,0.10\n")
    cli.main(["audit", file, "--positive-fraction", "49/129", "--format", "json"])
    [row] = rows_of(capsys)
    share = 49 / 129
    assert row["auc_low"] == pytest.approx((0.895 - (1 - share)) / share, abs=1e-12)
    assert "positive fraction 49/129" in row["reason"]
    for bad, message in (
        ("49/0", "--positive-fraction: '49/0' is no fraction"),
        ("a/b", "--positive-fraction: 'a/b' is no fraction"),
        ("129/49", "--positive-fraction: 129/49 is above 1"),
        ("0", "--positive-fraction must lie strictly between 0 and 1"),
        ("half", "--positive-fraction: 'half' is not a number"),
    ):
        assert cli.main(["audit", file, "--positive-fraction", bad]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert "t.csv" not in error
    assert cli.main(["audit", file, "--decimals", "13"]) == 2
    assert capsys.readouterr().err.startswith("milfast: error: --decimals must lie between")


def test_limits_in_the_table_are_those_of_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(
        tmp_path / "t.csv", "model,acc,auc,n_pos,n_neg\na,0.9,0.95,49,80\nb,0.91,0.3001,49,80\nc,0.1,0.9,49,80\n"
    )
    assert cli.main(["audit", file, "--format", "json"]) == 1
    rows = rows_of(capsys)
    assert cli.main(["audit", file, "--format", "markdown"]) == 1
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    checked = 0
    for row, cells in zip(rows, lines[2:], strict=True):
        least, most, reason = cells[2], cells[3], cells[5]
        assert float(least) <= row["auc_low"] < float(least) + 10 ** -row["decimals"]
        assert float(most) - 10 ** -row["decimals"] < row["auc_high"] <= float(most)
        assert len(least) == len(most) == 2 + row["decimals"]
        for limit, words in ((least, ("below", "may be")), (most, ("above", " to"))):
            checked += any(f"{word} {limit}" in reason for word in words)
    assert checked == 4  # both of the possible one, one of each impossible one


def test_audit_leaves_out_what_is_no_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "model,acc,std_acc,auc,std_auc,rank_auc,,\n"
    text += "a,0.90,12.5,0.95,3.1,2,,\nb,0.90,1,0.95,1,7,,note\nc,0.90,1,0.95,1,1\n"
    assert cli.main(["audit", write(tmp_path / "t.csv", text), "--format", "json"]) == 0
    assert [(row["name"], row["prefix"], row["auc"]) for row in rows_of(capsys)] == [
        ("a", "", 0.95),
        ("b", "", 0.95),
        ("c", "", 0.95),
    ]


def test_audit_options_reach_the_arithmetic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "t.csv", "acc,auc,n_pos,n_neg\n1,0.9,50,50\n")
    assert cli.main(["audit", file]) == 0
    assert cli.main(["audit", file, "--decimals", "3"]) == 1
    file = write(tmp_path / "m.csv", "name,tpr,tnr,auc\nmean of folds,0.500,0.500,0.000\n")
    assert cli.main(["audit", file]) == 1
    shown = " ".join(capsys.readouterr().out.split())  # as lines are folded
    assert "averages over folds or runs could be like this" in shown
    assert "MIL201 mean of folds" in shown
    assert cli.main(["audit", file, "--averaged"]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acc,auc\n99.1,0.9\n", "bad.csv: row 1, column 'acc': 99.1 is above 1: divide by 100, or write 99.1%"),
        ("acc,auc\n0.9\n", "line 2: 1 cells where the header has 2"),
        ("acc,auc\n0,9,0.9\n", "line 2: 3 cells where the header has 2"),
        ("acc,auc,\n0,9,0.9,1\n", "line 2: 4 cells where the header has 3"),
        ("acc,,auc,\n0.9,1,0.9,\n0.9\n", "line 3: 1 cells where the header has 4"),
        (",,\n1,2,3\n", "has a header without a name"),
        ("acc;auc\n0.9;0.9\n", "must be separated by commas"),
        ("acc,acc,auc\n0.9,0.9,0.9\n", "has 2 columns 'acc'"),
        ("acc,auc\n", "has a header but no rows"),
        ("", "is empty"),
        ("model,f1\na,0.9\n", "no column holds a figure; there are model, f1"),
    ],
)
def test_audit_says_what_is_wrong_with_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    assert cli.main(["audit", write(tmp_path / "bad.csv", text)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


# ---------------------------------------------------------------- ls, help, and the process


@pytest.mark.parametrize(("what", "names"), [("models", models.names()), ("checks", mf.checks.names())])
def test_ls_lists_every_name(what: str, names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ls", what, "--format", "json"]) == 0
    assert [row["name"] for row in rows_of(capsys)] == names
    assert cli.main(["ls", what]) == 0
    assert all(name in capsys.readouterr().out for name in names[:1])


def test_ls_models_tells_what_a_model_claims(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["ls", "models", "--format", "json"])
    rows = {row["name"]: row for row in rows_of(capsys)}
    assert {name: rows[name]["claims"] for name in ("MI-SVM", "mi-SVM", "NSK")} == {
        "MI-SVM": "standard",
        "mi-SVM": "standard",
        "NSK": "-",
    }
    pytest.importorskip("torch")
    for name, row in rows.items():
        assert row["claims"] == (models.get(name).claims if getattr(models.get(name), "claims", None) else "-")


def test_ls_datasets_prints_licences(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["ls", "datasets", "--format", "json"])
    assert all(row["licence"] for row in rows_of(capsys))


@pytest.mark.parametrize("verb", [[], ["check"], ["evaluate"], ["auc"], ["audit"], ["ls"]])
def test_help_is_there(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([*verb, "--help"])
    assert stop.value.code == 0
    assert "milfast" in capsys.readouterr().out


def test_listing_models_imports_neither_torch_nor_sklearn() -> None:
    code = "import sys, milfast.cli as c; c.main(['ls', 'models']); print({'torch', 'sklearn'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.rstrip().endswith("set()")


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "milfast", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"milfast {mf.__version__}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a POSIX thing")
def test_a_terminal_sees_a_bar_with_the_time_left() -> None:
    command = [sys.executable, "-m", "milfast", "check", "NSK", *SMALL, "--train", "40", "--exit-zero"]
    master, slave = pty.openpty()
    with subprocess.Popen(
        command, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    ) as process:
        os.close(slave)
        seen = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # the terminal is gone once the process has ended
                break
            if not chunk:
                break
            seen += chunk
    os.close(master)
    assert process.returncode == 0
    assert b"checking" in seen
    assert b"left" in seen
    assert b"verdict" in seen


# ---------------------------------------------------------------- models of other kinds

OTHERS = """
import numpy as np
from torch import nn

class Net(nn.Module):
    def __init__(self, in_shape):
        super().__init__()
        self.score = nn.Linear(*in_shape, 1)
        print("made")

    def forward(self, bag):
        if bag.ndim != 2:
            raise KeyError("one bag at a time")
        return self.score(bag).max()

def net(n_features):
    return Net((n_features,))

class Lists:
    def fit(self, X, y=None):
        self.mean = np.mean([bag.mean(axis=0) for bag, label in zip(X + [], y) if label], axis=0)

    def predict(self, X):
        return [float((bag @ self.mean).max()) for bag in X + []]
"""


@pytest.fixture
def others(rules: Path) -> Path:
    pytest.importorskip("torch")
    (rules / "others_for_cli.py").write_text(OTHERS)
    return rules


def test_torch_modules_and_estimators_on_lists_are_checked(others: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = [*SMALL, "--train", "60", "--format", "json", "--exit-zero"]
    assert cli.main(["check", "others_for_cli:Net", "others_for_cli:net", "mi-Net", *small]) == 0
    captured = capsys.readouterr()
    assert "made" in captured.err  # what a model prints when it is tried does not get into the output
    found = json.loads(captured.out)
    assert [row["model"] for row in found] == ["Net", "net", "mi-Net"]
    # registered models have their style
    assert cli.main(["check", "others_for_cli:Net", "mi-Net", "--style", "single", *small]) == 0
    assert [row["test_auc"] for row in rows_of(capsys)] == [found[0]["test_auc"], found[2]["test_auc"]]
    assert cli.main(["check", "others_for_cli:Lists", "--style", "lists", *small]) == 0
    assert rows_of(capsys)[0]["model"] == "Lists"


def test_a_style_goes_into_the_study_and_out_of_it_again(others: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = [*SMALL, "--train", "60", "--format", "json", "--exit-zero", "--style", "lists"]
    assert cli.main(["check", "others_for_cli:Lists", *small]) == 0
    plain = [{**row, "seconds": 0} for row in rows_of(capsys)]
    for _ in range(2):
        assert cli.main(["check", "others_for_cli:Lists", *small, "--out", "styles.db"]) == 0
        captured = capsys.readouterr()
        assert [{**row, "seconds": 0} for row in json.loads(captured.out)] == plain
    assert "1 of 1 jobs are done already" in captured.err


def test_styles_are_known_to_evaluate(others: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["bag_id,label,f1,f2", *(f"{i // 2},{i // 2 % 2},{i % 5},{i // 2 % 2 + i % 3}" for i in range(40))]
    (others / "few.csv").write_text("\n".join(lines))
    few = ["--data", "few.csv", "--folds", "2", "--repeats", "1", "--jobs", "1", "--format", "json"]
    assert cli.main(["evaluate", "others_for_cli:Net", "others_for_cli:Lists", "--style", "lists", *few]) == 2
    assert "style 'lists' is a way to fit an estimator, and Net is a torch module" in capsys.readouterr().err
    assert cli.main(["evaluate", "others_for_cli:Lists", "--style", "lists", *few]) == 0
    assert rows_of(capsys)[0]["model"] == "Lists"
    for style in ([], ["--style", "single", "--out", "evaluated.db"]):
        assert cli.main(["evaluate", "others_for_cli:Net", *style, *few]) == 0
        assert rows_of(capsys)[0]["model"] == "Net"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["others_for_cli:Net", "--style", "padded"],
            "KeyError: 'one bag at a time' (Net gives no logit for each of two",
        ),
        (["others_for_cli:Net", "--style", "padded"], "(while trying Net on small bags); --traceback shows where"),
        (["others_for_cli:Lists"], "say so by style='lists', on the command line --style lists"),
        (["rules_for_cli:Oracle", "--style", "flat"], "Oracle is an estimator: name 'bags' or 'lists'"),
    ],
)
def test_a_wrong_style_says_what_was_tried(
    others: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert cli.main(["check", *arguments, *SMALL]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_an_unknown_style_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["check", "NSK", "--style", "list"])
    assert caught.value.code == 2
    assert "choose from" in capsys.readouterr().err
