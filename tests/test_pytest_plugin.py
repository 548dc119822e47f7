"""The pytest plugin, in a project of somebody else's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from milfast.checks import BagRecipe, Component, Draw, parametrize_with_checks

if TYPE_CHECKING:
    from pathlib import Path

DOWNSTREAM = '''
import numpy as np
import milfast
from milfast.checks import parametrize_with_checks

class BestInstance:
    """Knows the concept of the presence check: its wide or shifted instances."""
    def fit(self, bags):
        self.n_train = len(bags)
        return self
    def decision_function(self, bags):
        return milfast.checks.get("presence").recipe("paper").oracle(bags)

class NoPoison:
    def fit(self, bags):
        return self
    def decision_function(self, bags):
        return np.array([bag.mean(axis=1).min() for bag in bags])

class Coin:
    def fit(self, bags):
        return self
    def decision_function(self, bags):
        return np.random.default_rng(0).normal(size=len(bags))

@parametrize_with_checks(
    [BestInstance(), NoPoison(), Coin()],
    checks="presence",
    n_test=400,
    expected_failed_checks={"NoPoison": EXPECTED},
)
def test_mil(model, check):
    check(model)
'''


def run(folder: Path, *arguments: str, expected: str = "{'presence': 'looks for the poison'}") -> str:
    (folder / "test_mil.py").write_text(DOWNSTREAM.replace("EXPECTED", expected))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "MILFAST_SCALE"))
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-rA", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    return done.stdout + done.stderr


def test_each_model_and_check_is_a_test_of_its_own(tmp_path: Path) -> None:
    out = run(tmp_path)
    assert re.search(r"PASSED test_mil\.py::test_mil\[BestInstance-presence-paper\]", out)
    assert re.search(r"XFAIL test_mil\.py::test_mil\[NoPoison-presence-paper\] - looks for the poison", out)
    assert re.search(r"FAILED test_mil\.py::test_mil\[Coin-presence-paper\]", out)
    assert "Coin on presence (paper): not-learned" in out
    assert "docs/checks.md, section presence" in out


def test_a_failure_that_was_not_expected_says_what_was_learned(tmp_path: Path) -> None:
    out = run(tmp_path, "-k", "NoPoison", expected="{}")
    assert "NoPoison on presence (paper): fail" in out
    assert "shifted 0.000" in out
    assert "rules out was taken for evidence" in out


def test_an_expected_failure_that_passes_is_reported(tmp_path: Path) -> None:
    out = run(tmp_path, "-k", "BestInstance", expected="{}").replace("\n", " ")
    assert "1 passed" in out
    (tmp_path / "test_mil.py").write_text(
        DOWNSTREAM.replace('{"NoPoison": EXPECTED}', '{"BestInstance": {"presence": "was broken once"}}')
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "BestInstance"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "XPASS(strict)" in done.stdout


def test_the_marker_leaves_checks_out_and_the_option_sets_the_scale(tmp_path: Path) -> None:
    assert "3 deselected" in run(tmp_path, "-m", "not milfast")
    (tmp_path / "conftest.py").write_text(
        "import os\ndef pytest_sessionfinish(session):\n    print('scale is', os.environ.get('MILFAST_SCALE'))\n"
    )
    assert "scale is paper" in run(tmp_path, "--milfast-scale", "paper", "-k", "BestInstance")
    assert "scale is None" in run(tmp_path, "-k", "BestInstance")
    assert "--milfast-scale" in run(tmp_path, "--help")


def test_starting_pytest_imports_no_more_of_milfast_than_the_package_itself(tmp_path: Path) -> None:
    (tmp_path / "test_imports.py").write_text(
        "import sys\n"
        "def test_imports():\n"
        "    heavy = {'torch', 'sklearn', 'scipy', 'joblib', 'milfast.checks', 'milfast.models'}\n"
        "    assert 'milfast.pytest_plugin' in sys.modules\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "test_imports.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_wrong_names_are_refused_while_tests_are_collected() -> None:
    with pytest.raises(ValueError, match="did you mean presence"):
        parametrize_with_checks(["NSK"], checks="presense")
    with pytest.raises(ValueError, match=r"names the model 'nsk'; models are NSK"):
        parametrize_with_checks(["NSK"], expected_failed_checks={"nsk": {}})
    with pytest.raises(ValueError, match=r"names the check 'absence'; checks are false-frequency, presence"):
        parametrize_with_checks(["NSK"], expected_failed_checks={"NSK": {"absence": "why"}})
    with pytest.raises(ValueError, match="recipe must be one of"):
        parametrize_with_checks(["NSK"], recipe="poster")


def test_recipes_of_ones_own_are_cases_too() -> None:
    own = BagRecipe(
        "own",
        (Component("background"), Component("signal", 3.0, concept="signal")),
        negative=(Draw("background", (2, 4)),),
        positive=(Draw("signal"), Draw("background", (1, 3))),
    )
    mark = parametrize_with_checks(["NSK"], checks=[own, "presence"], recipe="all")
    assert [case.id for case in mark.args[1]] == [
        "NSK-own",
        "NSK-presence-paper",
        "NSK-presence-notebook",
        "NSK-presence-strict",
    ]
