"""Jobs of a study that count verdicts on drawn scores: plain values in, counts out, to be added over batches."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.checks.codes import VERDICTS
from milfast.checks.sequential import schedule, until_decided
from milfast.checks.simulation.draw import Scorer, law_run
from milfast.checks.together import read_together, stands
from milfast.checks.verdict import CheckResult
from milfast.seeding import seed_sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from milfast.checks.verdict import Run

LEVEL = 0.95
#: What decides about a job beside what it simulates.
BOOKKEEPING = ("function", "milfast", "seed", "batch")


def verdicts(spec: dict[str, Any]) -> dict[str, int]:
    """Verdicts on a scorer from several numbers of runs; the same runs serve all of them.

    Parameters
    ----------
    spec : dict
        "scorer": attributes of a `Scorer`; "n_test": shifted bags; "runs": numbers of runs; "n_runs": runs drawn, which
        a verdict from few runs is taken from more often; "seed" and "batch".

    Returns
    -------
    dict of str to int
        Keys are "1 studies" for verdicts from one run, "1 pass" and so on, "1 paper fail" for fails by the paper's
        rule, "1 contrary" for passes of fits with an AUC of at most 0.5 and fails of fits with at least 0.5.
    """
    generator, scorer = _generator(spec), Scorer(**spec["scorer"])
    drawn = [scorer.run(spec["n_test"], number, generator) for number in range(spec["n_runs"])]
    return dict(_judged([run for run, _ in drawn], spec["runs"], [own for _, own in drawn]))


def laws(spec: dict[str, Any]) -> dict[str, int]:
    """Verdicts on a scorer that breaks a law.

    Parameters
    ----------
    spec : dict
        "shares": lists of shares, each with how likely a fit is to break the law for such shares of the sorts of bags;
        "runs", "n_runs", "seed" and "batch" as for `verdicts`.

    Returns
    -------
    dict of str to int
        As from `verdicts`.
    """
    generator = _generator(spec)
    chances, shares = zip(*spec["shares"], strict=True)
    kinds = generator.choice(len(chances), size=spec["n_runs"], p=chances)
    return dict(_judged([law_run(shares[kind], i, generator) for i, kind in enumerate(kinds)], spec["runs"]))


def sequential(spec: dict[str, Any]) -> dict[str, int]:
    """Verdicts of studies that add runs until they are decided.

    Parameters
    ----------
    spec : dict
        "scorer" and "n_test" as for `verdicts`; "max_runs"; "studies": how many; "shared": whether the looks share the
        error, as they must; "seed" and "batch".

    Returns
    -------
    dict of str to int
        "studies", number of each verdict, and "runs" of all studies.
    """
    generator, scorer = _generator(spec), Scorer(**spec["scorer"])
    looks = len(schedule(spec["max_runs"]))
    counts: Counter[str] = Counter()

    def perform(batch: Sequence[_Planned]) -> list[Run]:
        return [scorer.run(spec["n_test"], job.run, generator)[0] for job in batch]

    def combined(done: Sequence[tuple[_Planned, Run]]) -> list[CheckResult]:
        return [CheckResult.of([run for _, run in done], level=LEVEL, looks=looks if spec["shared"] else 1)]

    for _ in range(spec["studies"]):
        [result] = until_decided([_Planned(run, looks) for run in range(spec["max_runs"])], perform, combined)
        counts += Counter({"studies": 1, result.verdict: 1, "runs": result.n_runs})
    return dict(counts)


def tables(spec: dict[str, Any]) -> dict[str, int]:
    """Tables of verdicts, read one by one and together.

    Parameters
    ----------
    spec : dict
        "scorer" and "n_test" as for `verdicts`; "cells" of a table; "runs" behind each; "tables": how many; "seed" and
        "batch".

    Returns
    -------
    dict of str to int
        "tables"; those with any pass or fail, "any", and with any that stands after Holm's correction, "any holm"; and
        the number of passes and fails, "wrong".
    """
    generator, scorer = _generator(spec), Scorer(**spec["scorer"])

    def cell() -> CheckResult:
        return CheckResult.of(
            [scorer.run(spec["n_test"], run, generator)[0] for run in range(spec["runs"])], level=LEVEL
        )

    counts: Counter[str] = Counter()
    for _ in range(spec["tables"]):
        claims = [r for r in read_together([cell() for _ in range(spec["cells"])]) if r.verdict in ("pass", "fail")]
        counts += Counter(
            {"tables": 1, "any": bool(claims), "any holm": any(map(stands, claims)), "wrong": len(claims)}
        )
    return {name: counts[name] for name in ("tables", "any", "any holm", "wrong")}


#: The functions by name.
FUNCTIONS: dict[str, Callable[[dict[str, Any]], dict[str, int]]] = {
    function.__name__: function for function in (verdicts, laws, sequential, tables)
}


@dataclass(frozen=True)
class _Planned:
    run: int
    looks: int


def _judged(drawn: Sequence[Run], sizes: Sequence[int], own: Sequence[float] = ()) -> Counter[str]:
    """Verdicts from as many disjoint groups of the runs as there are, for each size of a group.

    With the AUCs of the very fits, also verdicts from one run that are wrong about its fit.
    """
    counts: Counter[str] = Counter()
    for size in sizes:
        for name in ("studies", *VERDICTS, "paper fail"):
            counts[f"{size} {name}"] = 0
        for first in range(0, len(drawn) - size + 1, size):
            result = CheckResult.of(drawn[first : first + size], level=LEVEL)
            counts[f"{size} studies"] += 1
            counts[f"{size} {result.verdict}"] += 1
            counts[f"{size} paper fail"] += result.paper_verdict == "fail"
            if size == 1 and own:
                wrong = {"pass": own[first] <= 0.5, "fail": own[first] >= 0.5}
                counts["1 contrary"] += wrong.get(result.verdict, False)
    return counts


def _generator(spec: dict[str, Any]) -> np.random.Generator:
    """One stream for each batch of each thing that is simulated."""
    given = json.dumps({k: v for k, v in spec.items() if k not in BOOKKEEPING}, sort_keys=True)
    return np.random.Generator(np.random.PCG64(seed_sequence(spec["seed"], zlib.crc32(given.encode()), spec["batch"])))
