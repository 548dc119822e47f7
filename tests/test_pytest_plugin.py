"""The pytest plugin, in a project of somebody else's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import milfast.checks
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
    assert "docs/checks.md, MIL001, MIL103" in out


def test_a_failure_that_was_not_expected_says_what_was_learned(tmp_path: Path) -> None:
    out = run(tmp_path, "-k", "NoPoison", expected="{}")
    assert "NoPoison on presence (paper): fail" in out
    assert "shifted 0.000" in out
    assert "learned instead: that a bag lacks the poison" in out
    assert "docs/checks.md, MIL001, MIL101" in out


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
    with pytest.raises(ValueError, match=r"names the check 'absence'; checks are bag-size, correlated, false-f"):
        parametrize_with_checks(["NSK"], expected_failed_checks={"NSK": {"absence": "why"}})
    with pytest.raises(ValueError, match="recipe must be one of"):
        parametrize_with_checks(["NSK"], recipe="poster")


def test_groups_and_checks_with_one_spelling_are_cases_too() -> None:
    def cases(**more: object) -> list[str]:
        return [case.id for case in parametrize_with_checks(["NSK"], **more).args[1]]  # type: ignore[arg-type]

    names = milfast.checks.names
    # what has one spelling is not asked for the paper's
    one = {name: milfast.checks.get(name).spellings[0] for name in names()}
    assert cases() == [f"NSK-{name}-{one[name]}" for name in names()]
    assert one["bag-size"] == one["label-swap"] == one["correlated"] == "strict"
    assert cases(checks="paper") == [f"NSK-{name}-paper" for name in names("paper")]
    assert cases(checks=["laws", "bag-size"], recipe=["strict", "notebook"]) == [
        *(f"NSK-{name}-{spelling}" for name in names("laws") for spelling in ("strict", "notebook")),
        "NSK-bag-size-strict",
    ]
    expected = {"NSK": {"monotonicity": "sums"}}
    [law] = parametrize_with_checks(["NSK"], checks=["monotonicity"], expected_failed_checks=expected).args[1]
    assert [mark.name for mark in law.marks] == ["milfast", "xfail"]


def test_a_check_outside_of_what_the_model_claims_is_an_expected_failure_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "test_claims.py").write_text(
        """
import numpy as np
from milfast.checks import parametrize_with_checks

class Highest:
    claims = "standard"
    def fit(self, bags):
        return self
    def decision_function(self, bags):
        return np.maximum.reduceat(np.asarray(bags.instances[:, 0], dtype=float), bags.offsets[:-1])

class Threshold(Highest):
    claims = "threshold"

@parametrize_with_checks([Highest(), Threshold()], checks=["correlated", "false-frequency"], n_test=400, n_train=20)
def test_mil(model, check):
    check(model)
"""
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-q", "test_claims.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "3 xfailed" in done.stdout
    assert "which claims the standard assumption and not what this check tests" in done.stdout
    assert "FAILED test_claims.py::test_mil[Threshold-false-frequency-paper]" in done.stdout
    assert done.returncode == 1


def test_checks_of_one_fit_share_it(tmp_path: Path) -> None:
    (tmp_path / "test_fits.py").write_text(
        """
import numpy as np
from milfast.checks import parametrize_with_checks

fits = []

class Highest:
    def fit(self, bags):
        fits.append(len(bags))
        return self
    def decision_function(self, bags):
        return np.maximum.reduceat(np.asarray(bags.instances[:, 0], dtype=float), bags.offsets[:-1])

@parametrize_with_checks([Highest()], checks=["presence", "laws"], n_test=400, n_train=20, n_runs=2)
def test_mil(model, check):
    try:
        check(model)
    except AssertionError:
        pass
    assert len(fits) == 2
"""
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "test_fits.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "4 passed" in done.stdout, done.stdout


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


def test_nothing_to_test_is_refused_and_another_model_is_checked_anew() -> None:
    for nothing in ({"checks": []}, {"recipe": []}):
        with pytest.raises(ValueError, match="must name at least one"):
            parametrize_with_checks(["NSK"], **nothing)
    with pytest.raises(ValueError, match="must name at least one"):
        parametrize_with_checks([])

    class Best:
        def fit(self, bags: milfast.Bags) -> Best:
            return self

        def decision_function(self, bags: milfast.Bags) -> object:
            return milfast.checks.get("presence").recipe("paper").oracle(bags)

    class Bait(Best):
        def decision_function(self, bags: milfast.Bags) -> object:
            return [bag.mean(axis=1).min() for bag in bags]

    mark = parametrize_with_checks([Best()], checks="presence", n_train=20, n_test=400, n_runs=2)
    [(model, check)] = [case.values for case in mark.args[1]]
    check(model)
    with pytest.raises(AssertionError, match="Bait on presence"):
        check(Bait())
