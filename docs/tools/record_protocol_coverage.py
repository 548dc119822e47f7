"""How often intervals for trials that share test sets hold the truth, simulated, and the table of docs/benchmarks.md.

Scores follow two normal laws, so that the AUC of all bags there could be is known. The five models of a seed score the
bags of one test set alike, with a noise of their own; the three test sets are drawn from the bags of one data set.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.protocol.intervals import Placed, auc_over_bags, over_seeds, placements
from milfast.report import records
from milfast.seeding import seed_sequence
from milfast.uncertainty import mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95
SEEDS, FOLDS = 3, 5
#: Correlation between the scores of two models of a seed, within a class.
ALIKE = 0.81
#: Names of the columns.
METHODS = ("t over 15 trials", "t over seeds", "over bags")


@dataclass(frozen=True)
class Cell:
    """One row of the table.

    Attributes
    ----------
    n_bags, n_positive : int
        Of the data set.
    shift : float
        Of the positive bags, in standard deviations.
    """

    n_bags: int
    n_positive: int
    shift: float

    @property
    def truth(self) -> float:
        """AUC of all bags that there could be."""
        return 0.5 * (1 + math.erf(self.shift / 2))


def cells() -> list[Cell]:
    """All rows: as many bags as MUSK2 and as the sets of animals have.

    Returns
    -------
    list of Cell
    """
    return [Cell(n, k, shift) for n, k in ((102, 39), (200, 100)) for shift in (0.3, 1.2, 2.0)]


def simulate(cell: Cell, *, simulations: int, seed: int) -> dict[str, Any]:
    """Count how many intervals hold the truth.

    Parameters
    ----------
    cell : Cell
    simulations : int
    seed : int

    Returns
    -------
    dict
        What was given, and for each method "held" and the mean "width".
    """
    rng = np.random.Generator(np.random.PCG64(seed_sequence(seed, cell.n_bags, round(10 * cell.shift))))
    held, width = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0.0)
    positive = np.arange(cell.n_bags) < cell.n_positive
    n_test = cell.n_bags - int(0.9 * cell.n_bags)
    for _ in range(simulations):
        shared = cell.shift * positive + math.sqrt(ALIKE) * rng.normal(size=cell.n_bags)
        sets: list[Placed] = []
        trials: list[float] = []
        while len(sets) < SEEDS:
            bags = rng.permutation(cell.n_bags)[:n_test]
            mine = positive[bags]
            if not 0 < mine.sum() < n_test:
                continue  # the protocol refuses such a split
            scores = shared[bags] + math.sqrt(1 - ALIKE) * rng.normal(size=(FOLDS, n_test))
            places = np.array([placements(row, mine) for row in scores])
            sets.append(Placed(bags, mine, places.mean(axis=0)))
            trials += places[:, mine].mean(axis=1).tolist()
        found = (
            mean_interval(trials, level=LEVEL, bounds=(0.0, 1.0)),
            over_seeds(sets, level=LEVEL),
            auc_over_bags(sets, level=LEVEL),
        )
        for name, interval in zip(METHODS, found, strict=True):
            held[name] += cell.truth in interval
            width[name] += (interval.high - interval.low) / simulations
    given = {"n_bags": cell.n_bags, "n_positive": cell.n_positive, "shift": cell.shift, "truth": cell.truth}
    return given | {"simulations": simulations, "held": held, "width": width}


def table(found: Sequence[dict[str, Any]]) -> str:
    """The table of docs/benchmarks.md.

    Parameters
    ----------
    found : sequence of dict
        As `simulate` gives them.

    Returns
    -------
    str
        Markdown; per cent that hold the truth, and the mean width in brackets.
    """
    lines = [["bags", "positive", "true AUC", *METHODS], ["---"] * (3 + len(METHODS))]
    lines += [
        [
            str(cell["n_bags"]),
            str(cell["n_positive"]),
            f"{cell['truth']:.3f}",
            *(f"{100 * cell['held'][m] / cell['simulations']:.1f} ({cell['width'][m]:.2f})" for m in METHODS),
        ]
        for cell in found
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        Exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python docs/tools/record_protocol_coverage.py",
        description="Simulate how often intervals for trials that share test sets hold the truth.",
    )
    parser.add_argument("--simulations", type=int, default=2000, metavar="N", help="of each row (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="root seed (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts to this file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the table into the place marked in this file")
    options = parser.parse_args(arguments)
    found = [simulate(cell, simulations=options.simulations, seed=options.seed) for cell in cells()]
    recorded = {"seed": options.seed, "level": LEVEL, "seeds": SEEDS, "folds": FOLDS, "alike": ALIKE, "cells": found}
    if options.json is not None:
        options.json.write_text(records.to_json(recorded), encoding="utf-8")
    if options.page is not None:
        page = options.page.read_text(encoding="utf-8")
        options.page.write_text(records.fill(page, "midam", {"coverage": table(found)}), encoding="utf-8")
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
