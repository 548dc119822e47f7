"""How often intervals hold the truth: ``python docs/tools/record_interval_coverage.py`` simulates it.

A cell is a design and the rules that are tried on it; each rule sees the same samples. Of every sample it is counted
whether the interval holds the truth, or lies below or above it. A nominal 95 % is 2.5 % on either side.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.report import records
from milfast.uncertainty.areas import multiclass_auc_interval
from milfast.uncertainty.classification import accuracy_interval, balanced_accuracy_interval, f1_interval
from milfast.uncertainty.intervals import Interval, auc_interval, mean_interval, proportion_interval
from milfast.uncertainty.resampling import METHODS, acceleration, bounds_of_replicates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

#: Samples of a cell; a bootstrap, which takes a hundred times as long, gets a tenth of them.
RUNS = 4000
#: Resamples of a bootstrap here. Fewer than by default, which makes it cover a little less.
N_BOOT = 1000
#: Heading of each part's table, and what tells its designs apart.
PARTS: dict[str, tuple[str, ...]] = {
    "proportion": ("n", "p"),
    "auc": ("n_pos", "n_neg", "auc"),
    "partial": ("n_pos", "n_neg", "auc", "max_fpr"),
    "clusters": ("n_clusters", "auc", "alike"),
    "classes": ("n", "auc"),
    "accuracy": ("n_clusters", "p", "alike"),
    "balanced": ("n_pos", "n_neg", "recalls"),
    "balanced-clusters": ("n_clusters", "recalls", "alike"),
    "f1": ("n", "positive", "sensitivity", "specificity"),
    "macro": ("n", "right"),
    "mean": ("n", "law"),
}


@dataclass(frozen=True)
class Cell:
    """A design, and the rules that are tried on it, the default first."""

    part: str
    given: dict[str, Any]
    rules: tuple[str, ...]


def cells() -> list[Cell]:
    """All that is simulated.

    Returns
    -------
    list of Cell

    Examples
    --------
    >>> from record_interval_coverage import cells
    >>> cells()[0]
    Cell(part='proportion', given={'n': 20, 'p': 0.7}, rules=('wilson', 'normal', 'agresti-coull', 'clopper-pearson',
    'jeffreys'))
    """
    five = ("wilson", "normal", "agresti-coull", "clopper-pearson", "jeffreys")
    areas, boot = ("logit", "delong", "hanley-mcneil"), ("bca", "percentile")
    given: dict[str, Any]
    found = [Cell("proportion", {"n": n, "p": p}, five) for n in (20, 100, 670) for p in (0.7, 0.9, 0.95, 0.99)]
    for n_pos, n_neg in ((10, 10), (20, 20), (47, 45), (100, 400)):
        for auc in (0.7, 0.8, 0.9, 0.95, 0.97):
            rules = (*areas, *boot) if n_pos == 47 else areas
            found.append(Cell("auc", {"n_pos": n_pos, "n_neg": n_neg, "auc": auc}, rules))
    for n_pos, n_neg in ((47, 45), (200, 200)):
        for auc in (0.8, 0.9):
            given = {"n_pos": n_pos, "n_neg": n_neg, "auc": auc, "max_fpr": 0.2}
            found.append(Cell("partial", given, ("logit", "delong", "bca")))
    for n_clusters in (20, 50):
        for auc in (0.7, 0.9):
            for alike in (0.2, 0.5):
                given = {"n_clusters": n_clusters, "auc": auc, "alike": alike}
                found.append(Cell("clusters", given, ("logit", "delong", *boot, "clusters ignored")))
    found += [
        Cell("classes", {"n": n, "auc": auc}, ("logit", "delong", "bca")) for n in (60, 150) for auc in (0.8, 0.95)
    ]
    for n_clusters in (10, 20, 50):
        for p in (0.7, 0.9):
            given = {"n_clusters": n_clusters, "p": p, "alike": 0.2}
            found.append(Cell("accuracy", given, ("wilson", "bca", "clusters ignored")))
    for n_pos, n_neg in ((20, 20), (20, 180), (100, 100)):
        for recalls in ((0.7, 0.8), (0.9, 0.95)):
            given = {"n_pos": n_pos, "n_neg": n_neg, "recalls": list(recalls)}
            found.append(Cell("balanced", given, ("mover", "logit", "delta", "bca")))
    for n_clusters in (20, 50):
        for recalls in ((0.7, 0.8), (0.9, 0.95)):
            given = {"n_clusters": n_clusters, "recalls": list(recalls), "alike": 0.2}
            found.append(Cell("balanced-clusters", given, ("mover", "logit", "bca", "clusters ignored")))
    for n in (50, 200):
        for positive in (0.2, 0.5):
            given = {"n": n, "positive": positive, "sensitivity": 0.8, "specificity": 0.9}
            found.append(Cell("f1", given, ("wilson", "logit", "delta", "bca")))
    found += [Cell("macro", {"n": n, "right": r}, ("logit", "delta", "bca")) for n in (60, 200) for r in (0.7, 0.9)]
    found += [
        Cell("mean", {"n": n, "law": law}, (*METHODS, "t")) for law in ("normal", "exponential") for n in (20, 50, 200)
    ]
    return found


def simulate(
    *,
    seed: int = 0,
    runs: int = RUNS,
    level: float = 0.95,
    parts: Iterable[str] | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> dict[str, Any]:
    """Count how often each rule holds the truth.

    Parameters
    ----------
    seed : int
        Each cell has its own numbers, whatever others are simulated.
    runs : int
        Samples of a cell. The proportions take none: their coverage is a sum.
    level : float
        Nominal coverage.
    parts : iterable of str, optional
        Those of `PARTS` by default.
    callback : callable, optional
        Called as ``callback(done, total)`` after each cell.

    Returns
    -------
    dict
        "seed", "runs", "level", "n_boot", "versions", and "cells": for each its "part", "given" and "rules", which hold
        for each rule its "runs" and the shares "covered", "below" and "above" (the interval lies below or above the
        truth).

    Raises
    ------
    ValueError
        When there is no such part.

    Examples
    --------
    >>> from record_interval_coverage import simulate
    >>> found = simulate(parts=["proportion"])["cells"][0]
    >>> {rule: round(share["covered"], 3) for rule, share in found["rules"].items()}["wilson"]
    0.975
    """
    from scipy import __version__ as scipy_version

    from milfast import __version__

    wanted = set(PARTS) if parts is None else set(parts)
    if not wanted <= set(PARTS):
        raise ValueError(f"parts must be of {', '.join(PARTS)}; got {', '.join(sorted(wanted - set(PARTS)))}")
    chosen = [(number, cell) for number, cell in enumerate(cells()) if cell.part in wanted]
    found = []
    for done, (number, cell) in enumerate(chosen, start=1):
        rules = _exact(cell, level) if cell.part == "proportion" else _counted(cell, [seed, number], runs, level)
        found.append({"part": cell.part, "given": cell.given, "rules": rules})
        if callback is not None:
            callback(done, len(chosen))
    versions = {"milfast": __version__, "numpy": np.__version__, "scipy": scipy_version}
    return {"seed": seed, "runs": runs, "level": level, "n_boot": N_BOOT, "versions": versions, "cells": found}


def tables(results: dict[str, Any]) -> dict[str, str]:
    """The results as Markdown, a table a part.

    Parameters
    ----------
    results : dict
        As from `simulate`.

    Returns
    -------
    dict of str
        By part; each entry is the coverage in percent and, in brackets, how often the interval lies below and above the
        truth.
    """
    texts = {}
    for part, keys in PARTS.items():
        rows = [cell for cell in results["cells"] if cell["part"] == part]
        if not rows:
            continue
        rules = list(dict.fromkeys(rule for cell in rows for rule in cell["rules"]))
        lines = ["| " + " | ".join((*(key.replace("_", " ") for key in keys), *rules)) + " |"]
        lines.append("|" + " --- |" * (len(keys) + len(rules)))
        for cell in rows:
            design = [", ".join(map(str, v)) if isinstance(v := cell["given"][key], list) else str(v) for key in keys]
            shares = [cell["rules"].get(rule) for rule in rules]
            shown = [
                "" if s is None else f"{100 * s['covered']:.1f} ({100 * s['below']:.1f}, {100 * s['above']:.1f})"
                for s in shares
            ]
            lines.append("| " + " | ".join((*design, *shown)) + " |")
        texts[part] = "\n".join(lines)
    return texts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        Exit status 0.
    """
    parser = argparse.ArgumentParser(
        prog="python docs/tools/record_interval_coverage.py",
        description="Simulate how often intervals hold the truth, and print the tables of docs/uncertainty.md.",
    )
    parser.add_argument("--seed", type=int, default=0, help="root seed (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=RUNS, help="samples of each design (default: %(default)s)")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), help="tables to make (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the shares to this file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables into the places marked in this file")
    options = parser.parse_args(arguments)
    results = simulate(seed=options.seed, runs=options.runs, parts=options.parts, callback=_progress)
    if options.json is not None:
        options.json.write_text(records.to_json(results), encoding="utf-8")
    if options.page is not None:
        page = options.page.read_text(encoding="utf-8")
        options.page.write_text(records.fill(page, "coverage", tables(results)), encoding="utf-8")
    for part, text in tables(results).items():
        print(f"{part}\n\n{text}\n")
    return 0


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total:
        print(f"{done} of {total} designs", file=sys.stderr)


# -------------------------------------------------------------------- counting


def _exact(cell: Cell, level: float) -> dict[str, dict[str, float]]:
    """Coverage of the rules for a proportion: all counts there can be, with their chances."""
    # Imported here because scipy takes longer to load than the rest of milfast.
    from scipy.stats import binom

    n, p = cell.given["n"], cell.given["p"]
    chances = binom.pmf(np.arange(n + 1), n, p)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the normal interval says that counts are small
        for rule in cell.rules:
            intervals = [proportion_interval(k, n, level=level, method=rule) for k in range(n + 1)]
            below = sum(float(c) for c, i in zip(chances, intervals, strict=True) if i.high < p)
            above = sum(float(c) for c, i in zip(chances, intervals, strict=True) if i.low > p)
            found[rule] = {"runs": 0, "covered": 1 - below - above, "below": below, "above": above}
    return found


def _counted(cell: Cell, seed: list[int], runs: int, level: float) -> dict[str, dict[str, float]]:
    truth, draw = _DESIGNS[cell.part](**cell.given)
    rng = np.random.default_rng(seed)
    tried = {rule: max(1, runs // 10) if rule in METHODS else runs for rule in cell.rules}
    missed = {rule: [0, 0, 0] for rule in cell.rules}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what is undefined is counted as not covered
        for run in range(runs):
            interval = draw(rng, level)
            for rule, wanted in tried.items():
                if run < wanted:
                    try:
                        made = interval(rule, run)
                    except ValueError:  # a sample without a class
                        made = None
                    if made is None or math.isnan(made.low):
                        missed[rule][2] += 1
                    else:
                        missed[rule][0] += made.high < truth
                        missed[rule][1] += made.low > truth
    return {
        rule: {
            "runs": tried[rule],
            "covered": 1 - sum(counts) / tried[rule],
            "below": counts[0] / tried[rule],
            "above": counts[1] / tried[rule],
        }
        for rule, counts in missed.items()
    }


# -------------------------------------------------------------------- designs: the truth, and what draws a sample

if TYPE_CHECKING:
    Rule = Callable[[str, int], Interval]
    Draw = Callable[[np.random.Generator, float], Rule]
    Design = tuple[float, Draw]


def _shift(auc: float) -> float:
    return math.sqrt(2) * NormalDist().inv_cdf(auc)


def _binormal(n_pos: int, n_neg: int, auc: float, max_fpr: float | None = None) -> Design:
    labels = np.repeat([1, 0], (n_pos, n_neg))

    def draw(rng: np.random.Generator, level: float) -> Rule:
        scores = rng.normal(size=len(labels)) + _shift(auc) * labels
        return lambda rule, run: auc_interval(
            scores,
            labels,
            level=level,
            method=rule,
            max_fpr=max_fpr,
            standardize=False,
            n_boot=N_BOOT,
            random_state=run,
        )

    if max_fpr is None:
        return auc, draw
    # The curve is Phi(shift + Phi^-1(t)); the midpoint rule errs by less than 1e-6 here.
    normal, n = NormalDist(), 20_000
    heights = [normal.cdf(_shift(auc) + normal.inv_cdf((i + 0.5) * max_fpr / n)) for i in range(n)]
    return max_fpr * math.fsum(heights) / n, draw


def _patients(rng: np.random.Generator, n_clusters: int) -> NDArray[np.intp]:
    """Clusters of 1 to 10 items."""
    return np.repeat(np.arange(n_clusters), rng.integers(1, 11, n_clusters))


def _clustered(n_clusters: int, auc: float, alike: float) -> Design:
    """`alike` is the share of the variance that items of a cluster have in common."""

    def draw(rng: np.random.Generator, level: float) -> Rule:
        of = _patients(rng, n_clusters)
        labels = rng.integers(0, 2, len(of))
        common = rng.normal(size=n_clusters)[of]
        scores = math.sqrt(alike) * common + math.sqrt(1 - alike) * rng.normal(size=len(of)) + _shift(auc) * labels

        def interval(rule: str, run: int) -> Interval:
            if rule == "clusters ignored":
                return auc_interval(scores, labels, level=level)
            return auc_interval(scores, labels, level=level, method=rule, clusters=of, n_boot=N_BOOT, random_state=run)

        return interval

    return auc, draw


def _classes(n: int, auc: float) -> Design:
    """Three classes of a third each; the column of the true one is shifted."""
    labels = np.arange(n) % 3

    def draw(rng: np.random.Generator, level: float) -> Rule:
        scores = rng.normal(size=(n, 3)) + _shift(auc) * (labels[:, None] == np.arange(3))
        return lambda rule, run: multiclass_auc_interval(
            scores, labels, level=level, method=rule, n_boot=N_BOOT, random_state=run
        )

    return auc, draw


def _clustered_accuracy(n_clusters: int, p: float, alike: float) -> Design:
    """The accuracy of each cluster is drawn from a beta law; `alike` is the correlation of two of its items."""
    strength = 1 / alike - 1

    def draw(rng: np.random.Generator, level: float) -> Rule:
        of = _patients(rng, n_clusters)
        rates = rng.beta(p * strength, (1 - p) * strength, n_clusters)[of]
        right, all_right = (rng.random(len(of)) < rates).astype(int), np.ones(len(of), dtype=int)

        def interval(rule: str, run: int) -> Interval:
            if rule == "clusters ignored":
                return accuracy_interval(right, all_right, level=level)
            return accuracy_interval(
                right, all_right, level=level, method=rule, clusters=of, n_boot=N_BOOT, random_state=run
            )

        return interval

    return p, draw


def _balanced(n_pos: int, n_neg: int, recalls: list[float]) -> Design:
    labels = np.repeat([1, 0], (n_pos, n_neg))
    rates = np.repeat(recalls, (n_pos, n_neg))

    def draw(rng: np.random.Generator, level: float) -> Rule:
        predictions = np.where(rng.random(len(labels)) < rates, labels, 1 - labels)
        return lambda rule, run: balanced_accuracy_interval(
            predictions, labels, level=level, method=rule, n_boot=N_BOOT, random_state=run
        )

    return sum(recalls) / 2, draw


def _balanced_clusters(n_clusters: int, recalls: list[float], alike: float) -> Design:
    """As the accuracy in clusters, of two classes; how much better or worse a cluster is holds for both."""
    strength = 1 / alike - 1

    def draw(rng: np.random.Generator, level: float) -> Rule:
        # Imported here because scipy takes longer to load than the rest of milfast.
        from scipy.special import betaincinv

        of = _patients(rng, n_clusters)
        labels = rng.integers(0, 2, len(of))
        p = np.where(labels == 1, *recalls)
        rates = betaincinv(p * strength, (1 - p) * strength, rng.random(n_clusters)[of])
        predictions = np.where(rng.random(len(of)) < rates, labels, 1 - labels)

        def interval(rule: str, run: int) -> Interval:
            if rule == "clusters ignored":
                return balanced_accuracy_interval(predictions, labels, level=level)
            return balanced_accuracy_interval(
                predictions, labels, level=level, method=rule, clusters=of, n_boot=N_BOOT, random_state=run
            )

        return interval

    return sum(recalls) / 2, draw


def _f1(n: int, positive: float, sensitivity: float, specificity: float) -> Design:
    hit, false_alarm = positive * sensitivity, (1 - positive) * (1 - specificity)

    def draw(rng: np.random.Generator, level: float) -> Rule:
        labels = (rng.random(n) < positive).astype(int)
        predictions = (rng.random(n) < np.where(labels == 1, sensitivity, 1 - specificity)).astype(int)
        return lambda rule, run: f1_interval(
            predictions, labels, level=level, method=rule, n_boot=N_BOOT, random_state=run
        )

    return 2 * hit / (hit + false_alarm + positive), draw


def _macro(n: int, right: float) -> Design:
    """Four classes with shares of 0.4, 0.3, 0.2 and 0.1; what is wrong is called one of the others, each as often."""
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    table = shares[:, None] * np.where(np.eye(4) == 1, right, (1 - right) / 3)
    truth = np.mean(2 * np.diagonal(table) / (table.sum(axis=0) + shares))

    def draw(rng: np.random.Generator, level: float) -> Rule:
        labels, predictions = np.divmod(rng.choice(16, size=n, p=table.ravel()), 4)
        return lambda rule, run: f1_interval(
            predictions, labels, average="macro", level=level, method=rule, n_boot=N_BOOT, random_state=run
        )

    return float(truth), draw


def _mean(n: int, law: str) -> Design:
    def draw(rng: np.random.Generator, level: float) -> Rule:
        values = rng.normal(size=n) if law == "normal" else rng.exponential(size=n) - 1

        def interval(rule: str, run: int) -> Interval:
            if rule == "t":
                return mean_interval(values, level=level)
            # all resamples in one call; their bounds as in bootstrap_interval
            drawn = np.random.default_rng(run).integers(0, n, (N_BOOT, n))
            without = (values.sum() - values) / (n - 1)
            low, high, _ = bounds_of_replicates(
                float(values.mean()),
                values[drawn].mean(axis=1),
                level=level,
                method=rule,
                acceleration=acceleration((without, None)),
            )
            return Interval(float(values.mean()), low, high, level, rule, n)

        return interval

    return 0.0, draw


_DESIGNS: dict[str, Callable[..., Design]] = {
    "auc": _binormal,
    "partial": _binormal,
    "clusters": _clustered,
    "classes": _classes,
    "accuracy": _clustered_accuracy,
    "balanced": _balanced,
    "balanced-clusters": _balanced_clusters,
    "f1": _f1,
    "macro": _macro,
    "mean": _mean,
}


if __name__ == "__main__":
    sys.exit(main())
