"""Checks as tests: one test per model and check, for pytest."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from milfast.checks import catalogue
from milfast.checks.adapters import Subject
from milfast.checks.codes import FLAGS, VERDICTS
from milfast.checks.recipe import BagRecipe
from milfast.checks.runner import check_model
from milfast.pytest_plugin import SCALE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from milfast.checks.verdict import CheckResult

NEXT_STEP = {
    "fail": "The model does not respect what this check tests",
    "inconclusive": "More runs (n_runs) or more bags (n_test) would tell",
    "not-learned": "Nothing was learned that could be judged: train longer, or on more bags (n_train)",
}


@dataclass
class Fits:
    """Results of checks that are served by the same fits: they are fitted once, when the first of them is asked for.

    Attributes
    ----------
    checks : list
        Names, or one recipe.
    recipe : str
        Spelling of named checks.
    options : dict
        Passed to `milfast.check_model`.
    """

    checks: list[str | BagRecipe]
    recipe: str
    options: Mapping[str, Any]
    results: dict[str, CheckResult] | None = None
    model: Any = None

    def result(self, name: str, model: Any) -> CheckResult:
        """Result of one of the checks.

        Parameters
        ----------
        name : str
        model : object

        Returns
        -------
        CheckResult
        """
        if self.results is None or self.model is not model:
            options = {"scale": os.environ.get(SCALE_VARIABLE, "fast"), **self.options}
            self.model = model
            self.results = {r.check: r for r in check_model(model, checks=self.checks, recipe=self.recipe, **options)}
        return self.results[name]


@dataclass(frozen=True)
class ModelCheck:
    """A check that waits for its model.

    Attributes
    ----------
    name : str
        Name of the check.
    fits : Fits
        Where its result comes from.
    """

    name: str
    fits: Fits

    def __call__(self, model: Any) -> None:
        """Check the model.

        A check of something that the model does not claim is reported as an expected failure when it does not pass.

        Parameters
        ----------
        model : str, class or object
            As in `milfast.check_model`.

        Raises
        ------
        AssertionError
            When the verdict is not "pass"; the message says what the model learned and names the paragraph of the docs.
        """
        import pytest

        __tracebackhide__ = True  # what failed is the model, and pytest would show this function instead
        result = self.fits.result(self.name, model)
        if result.verdict != "pass":
            codes = ", ".join([result.code, VERDICTS[result.verdict], *(FLAGS[flag] for flag in result.flags)])
            message = f"{result}\n{NEXT_STEP[result.verdict]}. What it means and what to do: docs/checks.md, {codes}"
            if result.outside_claim:
                pytest.xfail(message)
            raise AssertionError(message)


def parametrize_with_checks(
    models: Sequence[Any],
    *,
    checks: str | BagRecipe | Sequence[str | BagRecipe] = "all",
    recipe: str | Sequence[str] = "paper",
    expected_failed_checks: Mapping[str, Mapping[str, str]] | None = None,
    n_runs: int = 5,
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
        Independent runs of each check; five at least speak for a model rather than for a few fits of it.
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
        shared: dict[tuple[str, str], Fits] = {}
        for check in checks:
            if isinstance(check, BagRecipe):
                title, task, spellings = check.name, check.name, ["own"]
            else:
                known_check = catalogue.get(check)
                # refuses unknown spellings now, not in the middle of a test run
                title, task, spellings = check, known_check.task, known_check.spelled(asked)
            for spelling in spellings:
                fits = shared.setdefault((task, spelling), Fits([], spelling, settings))
                fits.checks.append(check)
                marks = [pytest.mark.milfast]
                reason = expected.get(name, {}).get(title)
                if reason is not None:
                    marks.append(pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError))
                identity = f"{name}-{title}" if spelling == "own" else f"{name}-{title}-{spelling}"
                cases.append(pytest.param(model, ModelCheck(title, fits), id=identity, marks=marks))
    if not cases or not asked:
        raise ValueError("models, checks and recipe must name at least one model, one check and one recipe")
    known = sorted(name for name, _ in subjects)
    names = sorted(check.name if isinstance(check, BagRecipe) else check for check in checks)
    for name, reasons in expected.items():
        if name not in known:
            raise ValueError(f"expected_failed_checks names the model {name!r}; models are {', '.join(known)}")
        for check in reasons:
            if check not in names:
                raise ValueError(f"expected_failed_checks names the check {check!r}; checks are {', '.join(names)}")
    return pytest.mark.parametrize(("model", "check"), cases)
