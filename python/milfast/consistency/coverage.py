"""How often intervals of error consistency hold the truth: ``python -m milfast.consistency.coverage --out sims.db``.

Each sample has a difficulty, drawn from a Beta law, and each model errs on it with that probability. So the truth is
known: over samples it is E d^2 / (2 E d - E d^2) with the difficulty d, for the mean over pairs and the micro average;
over runs it is the mean over the pairs of very many runs on the same samples.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.consistency.error_consistency import error_consistency
from milfast.report import records
from milfast.seeding import seed_sequence

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95
DIFFICULTIES = ((0.1, 0.5), (0.4, 1.6))
SAMPLES = (195, 768)
SETS = (20, 100)
#: Simulations of a job, all with the samples of the first where runs are what varies; and jobs of a cell.
SIMULATIONS = 50
BATCHES = 10
REPLICATES = 1000
#: Runs whose mean is taken for the truth.
MANY_RUNS = 20_000
#: What intervals are made by: the name of a column, and how to ask for it.
METHODS: dict[str, dict[str, Any]] = {
    "delta, micro": {"of": "micro", "method": "delta"},
    "bootstrap, micro": {"of": "micro", "method": "bootstrap", "n_replicates": REPLICATES},
    "bootstrap, mean": {"of": "mean", "method": "bootstrap", "n_replicates": REPLICATES},
    "jackknife over runs, mean": {"over": "runs"},
}


@dataclass(frozen=True)
class Cell:
    """One row of the table.

    Attributes
    ----------
    difficulty : tuple of float
        Of the Beta law.
    n_samples, n_sets : int
    """

    difficulty: tuple[float, float]
    n_samples: int
    n_sets: int

    @property
    def given(self) -> dict[str, Any]:
        """As plain values."""
        return {"difficulty": list(self.difficulty), "n_samples": self.n_samples, "n_sets": self.n_sets}

    def specs(self, seed: int, share: float) -> list[dict[str, Any]]:
        """Specifications of its jobs.

        Parameters
        ----------
        seed : int
        share : float
            Of the jobs, at least one.

        Returns
        -------
        list of dict
        """
        n = max(1, round(share * BATCHES))
        return [{**self.given, "simulations": SIMULATIONS, "seed": seed, "batch": i} for i in range(n)]


def cells() -> list[Cell]:
    """All rows.

    Returns
    -------
    list of Cell
    """
    return [Cell(difficulty, n, m) for difficulty in DIFFICULTIES for n in SAMPLES for m in SETS]


def truth(alpha: float, beta: float) -> float:
    """Error consistency on infinitely many samples with difficulties of a Beta law.

    Parameters
    ----------
    alpha, beta : float

    Returns
    -------
    float
    """
    total = alpha + beta
    mean, square = alpha / total, alpha * (alpha + 1) / (total * (total + 1))
    return square / (2 * mean - square)


def simulate(spec: dict[str, Any]) -> dict[str, int]:
    """Count how many intervals hold the truth.

    Parameters
    ----------
    spec : dict
        "difficulty", "n_samples", "n_sets", "simulations", "seed" and "batch".

    Returns
    -------
    dict of str to int
        "simulations", and for each of `METHODS` the intervals that hold it.
    """
    given = {name: spec[name] for name in ("difficulty", "n_samples", "n_sets", "simulations")}
    branch = zlib.crc32(json.dumps(given, sort_keys=True).encode())
    generator = np.random.Generator(np.random.PCG64(seed_sequence(spec["seed"], branch, spec["batch"])))
    n, m = spec["n_samples"], spec["n_sets"]
    alpha, beta = spec["difficulty"]
    over_samples = truth(alpha, beta)
    same = generator.beta(alpha, beta, n)
    over_runs = error_consistency(_runs(same, MANY_RUNS, generator), n_samples=n).mean
    counts = Counter({"simulations": 0, **dict.fromkeys(METHODS, 0)})
    for _ in range(spec["simulations"]):
        fresh = error_consistency(_runs(generator.beta(alpha, beta, n), m, generator), n_samples=n, level=LEVEL)
        again = error_consistency(_runs(same, m, generator), n_samples=n, level=LEVEL)
        counts["simulations"] += 1
        for name, how in METHODS.items():
            if how.get("over") == "runs":
                counts[name] += over_runs in again.interval(**how)
            else:
                counts[name] += over_samples in fresh.interval(**how, random_state=generator)
    return dict(counts)


def _runs(difficulties: Any, n_runs: int, generator: np.random.Generator) -> Any:
    """Error sets as bits."""
    blocks = [
        np.packbits(generator.random((min(1000, n_runs - first), len(difficulties))) < difficulties, axis=1)
        for first in range(0, n_runs, 1000)
    ]
    return np.concatenate(blocks)


def table(found: Sequence[dict[str, Any]]) -> str:
    """The table of docs/consistency.md.

    Parameters
    ----------
    found : sequence of dict
        Each with what was "given" and the counts of its "batches".

    Returns
    -------
    str
        Markdown; shares in per cent with their standard errors.
    """
    lines = [["difficulty", "samples", "runs", "AEC", "simulations", *METHODS]]
    lines.append(["---"] * len(lines[0]))
    for cell in found:
        given = cell["given"]
        counts = total(cell)
        n = counts["simulations"]
        lines.append(
            [
                "Beta({:g}, {:g})".format(*given["difficulty"]),
                str(given["n_samples"]),
                str(given["n_sets"]),
                f"{truth(*given['difficulty']):.3f}",
                f"{n:,}",
                *(_percent(counts[name], n) for name in METHODS),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def total(cell: dict[str, Any]) -> dict[str, int]:
    """The counts of all batches of a row.

    Parameters
    ----------
    cell : dict

    Returns
    -------
    dict of str to int
    """
    counts: Counter[str] = Counter()
    for batch in cell["batches"]:
        counts.update(batch)
    return dict(counts)


def _percent(k: int, n: int) -> str:
    p = k / n
    return f"{100 * p:.1f} ± {100 * math.sqrt(p * (1 - p) / n):.1f}"


def run(path: str | Path, *, seed: int, share: float = 1.0, n_jobs: int = -1) -> dict[str, Any]:
    """Do what is left of the simulation.

    Parameters
    ----------
    path : path
        The study's file.
    seed : int
    share : float
        Of the jobs to do.
    n_jobs : int
        Processes.

    Returns
    -------
    dict
        "seed", "share", "level", "versions", "failed", and "cells": each with its "given" and the counts of its
        "batches".
    """
    # Imported here because the study is needed for nothing else.
    from milfast.study import Study
    from milfast.study.run import provenance

    with Study(path) as study:
        added = [
            (cell, study.add("milfast.consistency.coverage:simulate", cell.specs(seed, share))) for cell in cells()
        ]
        study.run([job for _, ids in added for job in ids], n_jobs=n_jobs, callback=_progress)
        found, failed = [], 0
        for cell, ids in added:
            records = study.records(ids)
            failed += sum(record.state != "done" for record in records)
            found.append({"given": cell.given, "batches": [record.result or {} for record in records]})
    versions = {name: provenance()["versions"][name] for name in ("milfast", "numpy", "scipy")}
    return {"seed": seed, "share": share, "level": LEVEL, "versions": versions, "failed": failed, "cells": found}


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
        prog="python -m milfast.consistency.coverage",
        description="Simulate how often intervals of error consistency hold the truth, and print the table of "
        "docs/consistency.md. The same command goes on where it was stopped.",
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="the study's file; made when absent")
    parser.add_argument("--seed", type=int, default=0, help="root seed (default: %(default)s)")
    parser.add_argument("--share", type=float, default=1.0, help="of the simulations to make (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one per processor (default)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts to this file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the table into the place marked in this file")
    options = parser.parse_args(arguments)
    results = run(options.out, seed=options.seed, share=options.share, n_jobs=options.jobs)
    if results["failed"]:
        print(f"{results['failed']} jobs failed; `milfast show {options.out}` says why", file=sys.stderr)
        return 1
    if options.json is not None:
        options.json.write_text(records.to_json(results), encoding="utf-8")
    if options.page is not None:
        page = options.page.read_text(encoding="utf-8")
        tables = {"coverage": table(results["cells"])}
        options.page.write_text(records.fill(page, "simulated", tables), encoding="utf-8")
    print(table(results["cells"]))
    return 0


def _progress(done: int, total: int, _: object) -> None:
    if sys.stderr.isatty() or done % 20 == 0 or done == total:
        print(f"{done} of {total} jobs", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
