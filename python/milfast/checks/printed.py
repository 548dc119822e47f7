"""What Raff & Holt (2023) printed, beside what was found."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from milfast.checks.verdict import paper_rule

if TYPE_CHECKING:
    from milfast.checks.verdict import CheckResult

#: Tables of the paper by check.
TABLES = {"presence": "2", "threshold-poison": "3", "false-frequency": "4"}

#: What is shown of a result.
SHOWN = (
    *("model", "check", "recipe", "n_train", "n_runs", "train_accuracy", "train_auc", "fresh_auc"),
    *("test_accuracy", "test_auc", "test_auc_low", "test_auc_high", "verdict"),
)


@cache
def _tables() -> dict[str, dict[str, list[str]]]:
    text = files("milfast.checks").joinpath("raff_holt_2023.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, list[str]]] = json.loads(text)["tables"]
    return tables


def printed(model: str, check: str) -> tuple[float, float, float, float] | None:
    """Figures of tables 2 to 4 of Raff & Holt (2023).

    Parameters
    ----------
    model : str
        As the paper spells it; parameters behind it, in brackets, do not matter.
    check : str
        Name of a check.

    Returns
    -------
    tuple of float or None
        Training accuracy and AUC, test accuracy and AUC; None where the paper has no such cell.

    Examples
    --------
    >>> from milfast.checks.printed import printed
    >>> printed("MissSVM", "presence")
    (0.995, 1.0, 0.449, 0.551)
    """
    figures = _tables().get(TABLES.get(check, ""), {}).get(model.partition(" (")[0])
    if figures is None:
        return None
    train_accuracy, train_auc, test_accuracy, test_auc = map(float, figures)
    return train_accuracy, train_auc, test_accuracy, test_auc


def beside(result: CheckResult) -> dict[str, Any] | None:
    """A result and the paper's figures for it, as one flat row.

    Parameters
    ----------
    result : CheckResult

    Returns
    -------
    dict or None
        None where the paper has no such cell.
    """
    figures = printed(result.model, result.check)
    if figures is None:
        return None
    train_accuracy, train_auc, test_accuracy, test_auc = figures
    row = result.to_dict()
    return {key: row[key] for key in SHOWN} | {
        "printed_train_accuracy": train_accuracy,
        "printed_train_auc": train_auc,
        "printed_test_accuracy": test_accuracy,
        "printed_test_auc": test_auc,
        "printed_verdict": paper_rule(train_auc, test_auc),
    }
