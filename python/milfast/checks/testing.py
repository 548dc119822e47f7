"""Checks as tests: one test per model and check, for pytest."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from milfast.checks import catalogue
from milfast.checks.adapters import Subject
from milfast.checks.recipe import BagRecipe
from milfast.checks.runner import check_model
from milfast.pytest_plugin import SCALE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

NEXT_STEP = {
    "fail": "Something that the MIL assumption rules out was taken for evidence",
    "inconclusive": "More runs (n_runs) or more bags (n_test) would tell",
    "not-learned": "Nothing was learned that could be judged: train longer, or on more bags (n_train)",
}


@dataclass(frozen=True)
class ModelCheck:
    """A check that waits for its model.

    Attributes
    ----------
    check : str or BagRecipe
    recipe : str
        Spelling of a named check.
    options : dict
        Passed to `milfast.check_model`.
    """

    check: str | BagRecipe
    recipe: str
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the check."""
        return self.check.name if isinstance(self.check, BagRecipe) else self.check

    def __call__(self, model: Any) -> None:
        """Check the model.

        Parameters
        ----------
        model : str, class or object
            As in `milfast.check_model`.

        Raises
        ------
        AssertionError
            When the verdict is not "pass"; the message says what was found. The test is skipped instead where the check
            is outside of what the model claims.
        """
        scale = os.environ.get(SCALE_VARIABLE, "fast")
        [result] = check_model(model, checks=[self.check], recipe=self.recipe, **{"scale": scale, **self.options})
        if result.verdict != "pass" and result.outside_claim:
            import pytest

            pytest.skip(str(result))
        if result.verdict != "pass":
            raise AssertionError(
                f"{result}\n{NEXT_STEP[result.verdict]}. The check: docs/checks.md, section {self.name}"
            )


def parametrize_with_checks(
    models: Sequence[Any],
    *,
    checks: str | BagRecipe | Sequence[str | BagRecipe] = "all",
    recipe: str | Sequence[str] = "paper",
    expected_failed_checks: Mapping[str, Mapping[str, str]] | None = None,
    n_runs: int = 3,
    random_state: int = 0,
    **options: Any,
) -> pytest.MarkDecorator:
    """Parametrize a test over models and checks.

    The test gets a model and a check, and calls ``check(model)``. Every case carries the marker ``milfast``, so
    ``pytest -m "not milfast"`` leaves them out, and ``pytest --milfast-scale paper`` runs them at the paper's size.

    Parameters
    ----------
    models : sequence
        Names, classes or unfitted models; see `milfast.check_model`.
    checks, recipe
        As in `milfast.check_model`.
    expected_failed_checks : dict, optional
        ``{model name: {check name: reason}}``: these are expected to fail, and reported when they do not.
    n_runs : int
        Independent runs of each check.
    random_state : int
        Seeds data and models.
    **options
        More of `milfast.check_model`, such as ``n_train``.

    Returns
    -------
    pytest.MarkDecorator

    Raises
    ------
    ValueError
        When a name is unknown, also among the expected failures.
    TypeError
        When a model lacks a method.

    Examples
    --------
    >>> import milfast.checks
    >>> @milfast.checks.parametrize_with_checks(["mi-SVM"], checks="presence")
    ... def test_mil(model, check):
    ...     check(model)
    """
    import pytest

    checks = catalogue.expand([checks] if isinstance(checks, (str, BagRecipe)) else checks)
    asked: Sequence[str] = [recipe] if isinstance(recipe, str) else recipe
    settings = {"n_runs": n_runs, "random_state": random_state, **options}
    expected = {name: dict(reasons) for name, reasons in (expected_failed_checks or {}).items()}
    subjects = [(Subject.of(model).name, model) for model in models]
    cases = []
    for name, model in subjects:
        for check in checks:
            own = isinstance(check, BagRecipe)
            # refused here when unknown, not in the middle of a test run
            spellings = ["own"] if isinstance(check, BagRecipe) else catalogue.get(check).spelled(asked)
            for spelling in spellings:
                bound = ModelCheck(check, spelling, settings)
                marks = [pytest.mark.milfast]
                reason = expected.get(name, {}).get(bound.name)
                if reason is not None:
                    marks.append(pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError))
                identity = f"{name}-{bound.name}" if own else f"{name}-{bound.name}-{spelling}"
                cases.append(pytest.param(model, bound, id=identity, marks=marks))
    known = sorted(name for name, _ in subjects)
    names = sorted(check.name if isinstance(check, BagRecipe) else check for check in checks)
    for name, reasons in expected.items():
        if name not in known:
            raise ValueError(f"expected_failed_checks names the model {name!r}; models are {', '.join(known)}")
        for check in reasons:
            if check not in names:
                raise ValueError(f"expected_failed_checks names the check {check!r}; checks are {', '.join(names)}")
    return pytest.mark.parametrize(("model", "check"), cases)
