"""What is simulated: the cells of the tables in docs/verdicts.md."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from milfast.checks.simulation.draw import Scorer
from milfast.checks.simulation.jobs import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Standard deviations of the AUC between fits: none, and what was seen of a model that learns nothing and of one that
#: does (MI-SVM and SIL on 200 bags of false-frequency).
SPREADS = (0.0, 0.006, 0.03)
BAGS = (1_000, 10_000)
#: Shifted bags whose effect on the power is shown.
SIZES = (200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 80_000)
#: Runs behind a verdict.
RUNS = (1, 5, 10)
#: Fresh bags where all that matters is that the model ranks them well.
FRESH = 500


@dataclass(frozen=True)
class Cell:
    """One thing to be simulated.

    Attributes
    ----------
    part : str
        The table it is for.
    function : str
        Name of the function in `jobs` that simulates it.
    given : dict
        Its specification, without "seed" and "batch".
    batches : int
        Jobs that share the work.
    """

    part: str
    function: str
    given: dict[str, Any]
    batches: int

    @property
    def path(self) -> str:
        """The function as a study names it."""
        return f"{FUNCTIONS[self.function].__module__}:{self.function}"

    def specs(self, seed: int, share: float) -> list[dict[str, Any]]:
        """Specifications of its jobs.

        Parameters
        ----------
        seed : int
        share : float
            Of the batches, rounded up to whole ones.

        Returns
        -------
        list of dict
        """
        return [{**self.given, "seed": seed, "batch": i} for i in range(max(1, round(share * self.batches)))]


def cells() -> list[Cell]:
    """All of them.

    Returns
    -------
    list of Cell
    """
    return [*_chance(), *_memoriser(), *_power(), *_sequential(), *_tables(), *_laws(), *_limits()]


def scorer(**attributes: Any) -> dict[str, Any]:
    """A scorer as plain values, without those attributes that are as usual.

    Parameters
    ----------
    **attributes
        Of a `Scorer`.

    Returns
    -------
    dict
    """
    usual = asdict(Scorer())
    given = asdict(Scorer(**attributes))
    return {name: list(v) if isinstance(v, tuple) else v for name, v in given.items() if v != usual[name]}


def _verdicts(
    part: str, n_runs: int, batches: int, *, n_test: int, runs: Iterable[int] = RUNS, **attributes: Any
) -> Cell:
    given = {"scorer": scorer(**attributes), "n_test": n_test, "runs": list(runs), "n_runs": n_runs}
    return Cell(part, "verdicts", given, batches)


def _fewer(batches: int, n_test: int) -> int:
    """Many bags take longer."""
    return batches if n_test <= BAGS[0] else round(0.6 * batches)


def _chance() -> Iterator[Cell]:
    for n_test in BAGS:
        for spread in SPREADS:
            yield _verdicts("chance", 2_000, 20, n_test=n_test, spread=spread, n_fresh=FRESH)
    for strata, spread in (((0.5, 0.5), 0.0), ((0.5, 0.5), 0.006), ((0.2, 0.8), 0.006)):
        for n_test in BAGS:
            batches = _fewer(15, n_test)
            yield _verdicts("strata", 1_000, batches, n_test=n_test, spread=spread, strata=strata, n_fresh=FRESH)


def _memoriser() -> Iterator[Cell]:
    for n_test in BAGS:
        for spread in SPREADS:
            yield _verdicts("memoriser", 1_000, _fewer(15, n_test), n_test=n_test, spread=spread, train=1.0, fresh=0.5)


def _power() -> Iterator[Cell]:
    for spread, aucs in ((0.006, (0.45, 0.48, 0.52, 0.55)), (0.03, (0.45, 0.48))):
        for auc in aucs:
            for n_test in SIZES:
                n_runs, batches = 1_000 if n_test <= 20_000 else 500, 4 if n_test <= 5_000 else 2
                yield _verdicts("power", n_runs, batches, n_test=n_test, spread=spread, shifted=auc, n_fresh=FRESH)


def _sequential() -> Iterator[Cell]:
    def cell(n_test: int, shared: bool, studies: int, batches: int, **attributes: Any) -> Cell:
        given = {
            "scorer": scorer(n_fresh=FRESH, **attributes),
            "n_test": n_test,
            "max_runs": 40,
            "studies": studies,
            "shared": shared,
        }
        return Cell("sequential", "sequential", given, batches)

    for n_test in BAGS:
        for spread in SPREADS[1:]:
            for shared in (True, False):
                yield cell(n_test, shared, 200, _fewer(8, n_test) if shared else 3, spread=spread)
    for spread in SPREADS[1:]:
        for auc in (0.45, 0.48, 0.55, 0.6):
            yield cell(BAGS[1], True, 250, 2, spread=spread, shifted=auc)


def _tables() -> Iterator[Cell]:
    for runs, spread, number in ((1, 0.0, 100), (5, 0.006, 50), (5, 0.03, 50)):
        given = {
            "scorer": scorer(spread=spread, n_fresh=FRESH),
            "n_test": BAGS[0],
            "cells": 60,
            "runs": runs,
            "tables": number,
        }
        yield Cell("tables", "tables", given, 12)


def _laws() -> Iterator[Cell]:
    whole = [[[1.0, [share, share]]] for share in (0.0, 0.005, 0.01, 0.02)]
    one_sort = [[[1.0, [0.01, 0.0]]]]
    uneven = [[[0.9, [0.0, 0.0]], [0.1, [0.1, 0.1]]]]
    for shares in (*whole, *one_sort, *uneven):
        yield Cell("laws", "laws", {"shares": shares, "runs": [*RUNS, 20], "n_runs": 2_000}, 5)


def _limits() -> Iterator[Cell]:
    for gap in (0.3, 0.1):
        yield _verdicts(
            "outliers", 2_000, 5, n_test=BAGS[1], runs=(5, 10, 20, 40), outliers=0.1, gap=gap, n_fresh=FRESH
        )
    for n_test in BAGS:
        for flagged in (0.5, 0.05, 0.005):
            yield _verdicts("ties", 2_000, 5, n_test=n_test, flagged=flagged, n_fresh=FRESH)
    for n_test in (20, 50, 100):
        yield _verdicts("few-bags", 2_000, 5, n_test=n_test, n_fresh=FRESH)
