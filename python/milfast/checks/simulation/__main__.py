"""Simulate what docs/verdicts.md says: ``python -m milfast.checks.simulation --out sims.db``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from milfast.checks.simulation import plan, report
from milfast.report import records
from milfast.study import Study
from milfast.study.run import provenance

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        Exit status: 0, or 1 when a job failed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m milfast.checks.simulation",
        description="Simulate how often verdicts err, and print the tables of docs/verdicts.md. The same command goes "
        "on where it was stopped.",
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="the study's file; made when absent")
    parser.add_argument("--seed", type=int, default=0, help="root seed (default: %(default)s)")
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions to make (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one per processor (default)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the power to this file; needs matplotlib")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables into the places marked in this file")
    options = parser.parse_args(arguments)
    results = simulate(options.out, seed=options.seed, share=options.share, n_jobs=options.jobs)
    if results["failed"]:
        print(f"{results['failed']} jobs failed; `milfast show {options.out}` says why", file=sys.stderr)
        return 1
    if options.json is not None:
        options.json.write_text(records.to_json(results), encoding="utf-8")
    if options.plot is not None:
        report.draw_power(results["cells"], options.plot)
    if options.page is not None:
        page = report.fill(options.page.read_text(encoding="utf-8"), results["cells"])
        options.page.write_text(page, encoding="utf-8")
    for name, text in report.tables(results["cells"]).items():
        print(f"{name}\n\n{text}\n")
    return 0


def simulate(path: str | Path, *, seed: int, share: float = 1.0, n_jobs: int = -1) -> dict[str, Any]:
    """Do what is left of a simulation and add up what is done.

    Parameters
    ----------
    path : path
        The study's file.
    seed : int
        Root seed.
    share : float
        Of the repetitions to make.
    n_jobs : int
        Processes.

    Returns
    -------
    dict
        "seed", "share", "versions", "failed", and "cells": for each its "part", "function", "given" and "counts".
    """
    with Study(path) as study:
        added = [(cell, study.add(cell.path, cell.specs(seed, share))) for cell in plan.cells()]
        study.run([job for _, ids in added for job in ids], n_jobs=n_jobs, callback=_progress)
        cells, failed = [], 0
        for cell, ids in added:
            counts: Counter[str] = Counter()
            for record in study.records(ids):
                failed += record.state != "done"
                counts.update(record.result or {})
            cells.append({"part": cell.part, "function": cell.function, "given": cell.given, "counts": dict(counts)})
    versions = {name: provenance()["versions"][name] for name in ("milfast", "numpy", "scipy")}
    return {"seed": seed, "share": share, "versions": versions, "failed": failed, "cells": cells}


def _progress(done: int, total: int, _: object) -> None:
    if sys.stderr.isatty() or done % 50 == 0 or done == total:
        print(f"{done} of {total} jobs", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
