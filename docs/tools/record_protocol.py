"""The record of a study of protocols, and the tables of docs/benchmarks.md made of it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from milfast.protocol import jobs
from milfast.protocol.results import combine
from milfast.protocol.selection import TIES
from milfast.report import records
from milfast.uncertainty import corrected_ttest
from milfast.uncertainty.comparison import adjust

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from milfast.uncertainty import Comparison

#: Compared with all others.
OURS = ("MIDAM-smx", "MIDAM-att")
#: Of all comparisons together.
ERROR = 0.05


def results_of(path: str | Path) -> dict[str, Any]:
    """What a study holds of protocols.

    Parameters
    ----------
    path : path
        The study's file.

    Returns
    -------
    dict
        "cells", one for each model, data set and protocol, with the figures of every trial, and what the other rules
        for ties give; "unfinished", the number of jobs that are not done; "seconds" of all jobs together; "provenance".
    """
    from milfast.study import Store

    with Store(path, write=False) as store:
        found = [record for record in store.records() if record.spec["function"] == jobs.FUNCTION]
    pairs = [(record.spec, record.result) for record in found if record.result is not None]
    by_rule = {rule: combine(pairs, ties=rule) for rule in TIES}
    cells = []
    for i, result in enumerate(by_rule["first"]):
        cell = result.details()
        if result.ties is not None:
            cell["by_rule"] = {
                rule: {"auc": by_rule[rule][i].auc.estimate, "trial_sd": by_rule[rule][i].sd} for rule in TIES
            }
        cells.append(cell)
    return {
        "unfinished": len(found) - len(pairs),
        "seconds": round(sum(record.seconds or 0.0 for record in found), 1),
        "provenance": next((record.provenance for record in found if record.provenance is not None), None),
        "cells": cells,
    }


def tables(recorded: dict[str, Any]) -> dict[str, str]:
    """The tables of docs/benchmarks.md.

    Parameters
    ----------
    recorded : dict
        As `results_of` gives it.

    Returns
    -------
    dict of str to str
        Markdown by the name of a table.
    """
    zhu, sound = ([cell for cell in recorded["cells"] if cell["protocol"] == name] for name in ("zhu2023", "sound"))
    chosen = [cell for cell in zhu if cell["ties"] is not None]
    return {
        "zhu2023": _grid(zhu, lambda c: f"{c['auc']:.3f} ± {c['trial_sd']:.3f} {_bounds(c, 'auc')}"),
        "seeds": _grid(zhu, lambda c: c["seed_aucs"]),
        "sound": _grid(sound, lambda c: f"{c['auc']:.3f} {_bounds(c, 'auc')}"),
        "pooled": _grid(sound, lambda c: f"{c['pooled_auc']:.3f} {_bounds(c, 'pooled_auc')}"),
        "training": _grid(
            [cell for cell in zhu + sound if cell["epoch"] is not None],
            lambda c: f"{c['train_auc']:.3f} ({c['least_train_auc']:.3f})",
            by_protocol=True,
        ),
        "ties": _grid(
            chosen,
            lambda c: f"{c['n_ties']:.0f} of {c['n_candidates']}, {c['tie_gap']:.2f}, epoch {c['epoch']:.0f}",
        ),
        "rules": _grid(chosen, lambda c: " / ".join(f"{rule['auc']:.3f}" for rule in c["by_rule"].values())),
        "differences": _differences(recorded),
        "verdict": _verdict(recorded),
        "trained": _trained(recorded["cells"]),
        "conditions": _conditions(recorded),
    }


def _bounds(cell: dict[str, Any], name: str) -> str:
    return f"[{cell[f'{name}_low']:.3f}, {cell[f'{name}_high']:.3f}]"


def _grid(cells: Sequence[dict[str, Any]], text: Callable[[dict[str, Any]], str], *, by_protocol: bool = False) -> str:
    """A table with a row for each model and a column for each data set."""
    data = list(dict.fromkeys(cell["data"] for cell in cells))
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for cell in cells:
        key = (cell["model"], cell["protocol"]) if by_protocol else (cell["model"],)
        rows.setdefault(key, {})[cell["data"]] = text(cell)
    return _lines(["model", *(["protocol"] if by_protocol else [])], data, rows)


def _lines(titles: Sequence[str], data: Sequence[str], rows: Mapping[tuple[str, ...], Mapping[str, str]]) -> str:
    head = [*titles, *data]
    lines = [head, ["---"] * len(head), *([*key, *(row.get(name, "-") for name in data)] for key, row in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def differences(recorded: dict[str, Any]) -> list[tuple[str, Comparison]]:
    """MIDAM against each other model on each data set, by the folds of the sound protocol.

    Parameters
    ----------
    recorded : dict
        As `results_of` gives it.

    Returns
    -------
    list of (str, Comparison)
        Names of the data sets and corrected resampled t-tests, with Holm's correction for all of them together.
    """
    cells = [cell for cell in recorded["cells"] if cell["protocol"] == "sound"]
    aucs = {(cell["model"], cell["data"]): cell["trial_auc"] for cell in cells}
    others = [model for model in dict.fromkeys(model for model, _ in aucs) if model not in OURS]
    tests = [
        (data, corrected_ttest(aucs[model, data], aucs[other, data], names=(model, other), measure="AUC"))
        for model, data in aucs
        if model in OURS
        for other in others
        if (other, data) in aucs
    ]
    return list(zip((data for data, _ in tests), adjust(test for _, test in tests), strict=True))


def _differences(recorded: dict[str, Any]) -> str:
    found = differences(recorded)
    data = list(dict.fromkeys(name for name, _ in found))
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for name, test in found:
        assert test.difference is not None
        text = f"{test.difference.estimate:+.3f} [{test.difference.low:+.3f}, {test.difference.high:+.3f}]"
        found_out = test.p_adjusted is not None and test.p_adjusted < ERROR
        rows.setdefault(test.names, {})[name] = f"**{text}**" if found_out else text
    return _lines(["model", "minus"], data, rows)


def _verdict(recorded: dict[str, Any]) -> str:
    """Against which models MIDAM wins, in sentences."""
    rows: dict[tuple[str, ...], list[tuple[str, Comparison]]] = {}
    for data, test in differences(recorded):
        rows.setdefault(test.names, []).append((data, test))
    lines = []
    for (model, other), tests in rows.items():
        sides: dict[str, list[str]] = {"above": [], "below": []}
        higher = 0
        for data, test in tests:
            assert test.difference is not None
            higher += test.difference.estimate > 0
            if test.p_adjusted is not None and test.p_adjusted < ERROR:
                sides["above" if test.difference.estimate > 0 else "below"].append(data)
        found = ", ".join(f"{side} it on {' and '.join(sets)}" for side, sets in sides.items() if sets)
        lines.append(
            f"- **{model}** has a higher mean AUC than {other} on {higher} of {len(tests)} sets; "
            + (f"beyond chance: {found}." if found else "no difference is beyond chance.")
        )
    return "\n".join(lines)


def _trained(cells: Sequence[dict[str, Any]]) -> str:
    """How far MIDAM was trained on MUSK, and that every score is a number."""
    aucs = [
        cell["train_auc"]
        for cell in cells
        if cell["model"] in OURS and cell["data"].startswith("musk") and cell["protocol"] == "sound"
    ]
    least = f"On MUSK the mean training AUC of MIDAM after the last epoch is at least {min(aucs):.3f}. " if aucs else ""
    return (
        f"{least}No score of a bag was NaN or infinite, in any epoch of any model: a job that meets one fails and says "
        "so, and none failed."
    )


def _conditions(recorded: dict[str, Any]) -> str:
    """What it ran on, and how long."""
    known = recorded["provenance"] or {}
    versions = known.get("versions", {})
    told = ", ".join(f"{name} {versions[name]}" for name in ("torch", "numpy", "scikit-learn") if name in versions)
    return (
        f"All jobs together took {recorded['seconds'] / 60:.0f} minutes, each on one thread of "
        f"{known.get('processor', 'an unknown processor')} ({told})."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        Exit status: 0, or 1 when jobs are not done.
    """
    parser = argparse.ArgumentParser(
        prog="python docs/tools/record_protocol.py",
        description="Write what a study found by protocols to a file, and its tables into a page.",
    )
    parser.add_argument("study", type=Path, help="file that `milfast evaluate --scale paper --out` has made")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables into the places marked in this file")
    options = parser.parse_args(arguments)
    recorded = results_of(options.study)
    if recorded["unfinished"] or not recorded["cells"]:
        print(f"{recorded['unfinished']} jobs are not done; run the same `milfast evaluate` again", file=sys.stderr)
        return 1
    if options.json is not None:
        options.json.write_text(records.to_json(recorded), encoding="utf-8")
    made = tables(recorded)
    if options.page is not None:
        page = options.page.read_text(encoding="utf-8")
        options.page.write_text(records.fill(page, "midam", made), encoding="utf-8")
    for name, text in made.items():
        print(f"{name}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
