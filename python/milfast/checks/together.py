"""Results read together: what a table of verdicts allows one to say that a single verdict does not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from milfast.checks.verdict import CheckResult


def read_together(results: Sequence[CheckResult], *, settings: Sequence[str] | None = None) -> list[CheckResult]:
    """Correct p-values for the number of results, and take presence into account.

    A table of many verdicts holds wrong ones by chance alone. Holm's correction (Holm 1979, Scand. J. Stat. 6) gives
    each verdict the p-value with which it can be read among the others: where `p_holm` is below (1 - level) / 2, all
    such verdicts of the table are right at once, but for that error. And a model that fails presence fails every MIL
    hypothesis, so its passes of other checks with the same recipe and numbers of bags carry the flag
    ``presence-failed``.

    Parameters
    ----------
    results : sequence of CheckResult
    settings : sequence of str, optional
        For each result, what tells its model and setting from others; the model's name and the numbers of bags by
        default.

    Returns
    -------
    list of CheckResult
        In the same order.
    """
    if settings is None:
        settings = [f"{result.model}/{result.n_train}/{result.n_test}" for result in results]
    ranked = sorted(range(len(results)), key=lambda i: results[i].p_value)
    corrected = [1.0] * len(results)
    largest = 0.0
    for rank, index in enumerate(ranked):
        largest = max(largest, min(1.0, (len(results) - rank) * results[index].p_value))
        corrected[index] = largest
    where = [(setting, result.recipe) for setting, result in zip(settings, results, strict=True)]
    failed = {
        place
        for place, result in zip(where, results, strict=True)
        if result.check == "presence" and result.verdict == "fail"
    }
    read = []
    for result, p_holm, place in zip(results, corrected, where, strict=True):
        changes: dict[str, Any] = {"p_holm": p_holm}
        if result.verdict == "pass" and result.assumption == "threshold" and place in failed:
            flags = tuple(dict.fromkeys((*result.flags, "presence-failed")))
            reason = result.reason.removesuffix(f"; {result.caveat}" if result.caveat else "")
            reason += "; but the model fails presence, and with it every MIL hypothesis"
            reason += f"; {result.caveat}" if result.caveat else ""
            read.append(replace(result, flags=flags, reason=reason, **changes))
        else:
            read.append(replace(result, **changes))
    return read


def stands(result: CheckResult) -> bool:
    """Whether the verdict holds among all those it was read together with.

    Parameters
    ----------
    result : CheckResult

    Returns
    -------
    bool
        True also for verdicts that claim nothing.
    """
    return result.verdict not in ("pass", "fail") or result.p_holm < (1 - result.level) / 2
