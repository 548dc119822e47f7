"""How often comparisons err: ``python -m milfast.uncertainty.error_rates`` counts it.

In each design the models are equally good (for equivalence: as different as the margin), so that every finding is an
error; a nominal 5 % is what each rule promises. Where all outcomes can be gone through the rates are exact, else they
come from samples, of which each rule sees the same.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.report import records
from milfast.uncertainty.aucs import compare_auc
from milfast.uncertainty.cross_validation import corrected_ttest, five_by_two, probability_of_improvement
from milfast.uncertainty.many import friedman
from milfast.uncertainty.paired import PAIRED_RULES, log_binomial_p, mcnemar, score_statistic
from milfast.uncertainty.tails import log_upper_chi2, t_quantile
from milfast.uncertainty.variance import variance_components

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

#: Samples of a design that is not gone through.
RUNS = 4000
#: The tables, what tells the designs of each apart, and which share of `RUNS` its samples are.
PARTS: dict[str, tuple[tuple[str, ...], float]] = {
    "mcnemar": (("n", "discordant"), 0),
    "mcnemar-clusters": (("n_clusters", "alike"), 0.5),
    "equivalence": (("n", "margin", "discordant"), 0),
    "auc": (("n_pos", "n_neg", "auc"), 1),
    "auc-clusters": (("n_clusters", "alike"), 0.5),
    "cross-validation": (("n", "folds"), 0.5),
    "improvement": (("pairs",), 0),
    "friedman": (("models", "data_sets"), 0.5),
    "seeds-and-folds": (("n_seeds", "n_folds", "shares"), 1),
}
#: Error rate that every rule promises.
NOMINAL = 0.05


@dataclass(frozen=True)
class Cell:
    """A design."""

    part: str
    given: dict[str, Any]


def cells() -> list[Cell]:
    """All designs.

    Returns
    -------
    list of Cell
    """
    found = [Cell("mcnemar", {"n": n, "discordant": d}) for n in (50, 200, 1000) for d in (0.05, 0.1, 0.3)]
    found += [Cell("mcnemar-clusters", {"n_clusters": k, "alike": a}) for k in (10, 20, 50) for a in (0.0, 1.0)]
    found += [
        Cell("equivalence", {"n": n, "margin": m, "discordant": d})
        for n, m, d in ((100, 0.1, 0.12), (100, 0.1, 0.3), (500, 0.05, 0.06), (500, 0.05, 0.2), (500, 0.02, 0.1))
    ]
    sizes = ((20, 20), (47, 45), (200, 200))
    found += [Cell("auc", {"n_pos": m, "n_neg": n, "auc": a}) for m, n in sizes for a in (0.7, 0.9, 0.97)]
    found += [Cell("auc-clusters", {"n_clusters": k, "alike": 0.5}) for k in (10, 20, 50)]
    found += [Cell("cross-validation", {"n": n, "folds": f}) for n in (100, 300) for f in ("10", "10 x 10", "5 x 2")]
    found += [Cell("improvement", {"pairs": n}) for n in (10, 29, 100)]
    found += [Cell("friedman", {"models": k, "data_sets": n}) for k, n in ((3, 10), (5, 10), (5, 30))]
    found += [
        Cell("seeds-and-folds", {"n_seeds": i, "n_folds": j, "shares": shares})
        for i, j in ((3, 5), (6, 20))
        for shares in ([0.02, 0.78, 0.2], [0.4, 0.2, 0.4])
    ]
    return found


def simulate(
    *,
    seed: int = 0,
    runs: int = RUNS,
    parts: Iterable[str] | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> dict[str, Any]:
    """Count how often each rule errs.

    Parameters
    ----------
    seed : int
        Each design has its own numbers, whatever others are simulated.
    runs : int
        Samples of a design; slow ones take a half of them.
    parts : iterable of str, optional
        Those of `PARTS` by default.
    callback : callable, optional
        Called as ``callback(done, total)`` after each design.

    Returns
    -------
    dict
        "seed", "runs", "nominal", "versions", and "cells": for each its "part", "given", "runs" (0: exact) and "rules",
        the rate of errors by rule, the default first.

    Raises
    ------
    ValueError
        When there is no such part.

    Examples
    --------
    >>> from milfast.uncertainty.error_rates import simulate
    >>> found = simulate(parts=["improvement"])["cells"][0]
    >>> found["given"], {rule: round(rate, 3) for rule, rate in found["rules"].items()}
    ({'pairs': 10}, {'bootstrap, lower bound above 0.5': 0.021})
    """
    from scipy import __version__ as scipy_version

    from milfast import __version__

    wanted = set(PARTS) if parts is None else set(parts)
    if not wanted <= set(PARTS):
        raise ValueError(f"parts must be of {', '.join(PARTS)}; got {', '.join(sorted(wanted - set(PARTS)))}")
    chosen = [(number, cell) for number, cell in enumerate(cells()) if cell.part in wanted]
    found = []
    for done, (number, cell) in enumerate(chosen, start=1):
        share = PARTS[cell.part][1]
        if share:
            size = max(1, round(runs * share))
            rules = _mean(_SAMPLED[cell.part](np.random.default_rng([seed, number]), **cell.given), size)
        else:
            size, rules = 0, _EXACT[cell.part](**cell.given)
        found.append({"part": cell.part, "given": cell.given, "runs": size, "rules": rules})
        if callback is not None:
            callback(done, len(chosen))
    versions = {"milfast": __version__, "numpy": np.__version__, "scipy": scipy_version}
    return {"seed": seed, "runs": runs, "nominal": NOMINAL, "versions": versions, "cells": found}


def tables(results: dict[str, Any]) -> dict[str, str]:
    """The results as Markdown, a table a part.

    Parameters
    ----------
    results : dict
        As from `simulate`.

    Returns
    -------
    dict of str
        By part; each entry is a rate of errors in percent.
    """
    texts = {}
    for part, (keys, _) in PARTS.items():
        rows = [cell for cell in results["cells"] if cell["part"] == part]
        if not rows:
            continue
        rules = list(dict.fromkeys(rule for cell in rows for rule in cell["rules"]))
        lines = ["| " + " | ".join((*(key.replace("_", " ") for key in keys), *rules)) + " |"]
        lines.append("|" + " --- |" * (len(keys) + len(rules)))
        for cell in rows:
            design = [", ".join(map(str, v)) if isinstance(v := cell["given"][key], list) else str(v) for key in keys]
            shown = ["" if (rate := cell["rules"].get(rule)) is None else f"{100 * rate:.1f}" for rule in rules]
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
        prog="python -m milfast.uncertainty.error_rates",
        description="Count how often comparisons err, and print the tables of docs/uncertainty.md.",
    )
    parser.add_argument("--seed", type=int, default=0, help="root seed (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=RUNS, help="samples of each design (default: %(default)s)")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), help="tables to make (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rates to this file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables into the places marked in this file")
    options = parser.parse_args(arguments)
    results = simulate(seed=options.seed, runs=options.runs, parts=options.parts, callback=_progress)
    if options.json is not None:
        options.json.write_text(records.to_json(results), encoding="utf-8")
    if options.page is not None:
        page = options.page.read_text(encoding="utf-8")
        options.page.write_text(records.fill(page, "error-rates", tables(results)), encoding="utf-8")
    for part, text in tables(results).items():
        print(f"{part}\n\n{text}\n")
    return 0


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total:
        print(f"{done} of {total} designs", file=sys.stderr)


def _mean(samples: Iterator[dict[str, bool]], size: int) -> dict[str, float]:
    """Rate of errors by rule among the first `size` samples."""
    counts: dict[str, int] = {}
    for _ in range(size):
        for rule, erred in next(samples).items():
            counts[rule] = counts.get(rule, 0) + bool(erred)
    return {rule: count / size for rule, count in counts.items()}


# -------------------------------------------------------------------- all outcomes gone through


def _mcnemar(n: int, discordant: float) -> dict[str, float]:
    """Both right or both wrong with 1 - discordant, and otherwise each with one half."""
    from scipy.stats import binom

    limit = math.log(NOMINAL)
    rates = {"mid-p": 0.0, "exact": 0.0, "chi2": 0.0, "chi2-corrected": 0.0}
    for m, chance in enumerate(binom.pmf(np.arange(n + 1), n, discordant).tolist()):
        if chance < 1e-12 or m == 0:
            continue
        tails = np.cumsum(binom.pmf(np.arange(m + 1), m, 0.5))
        # each rule rejects from some count down; the probability of both sides
        for rule in rates:
            count = -1
            while 2 * (count + 1) < m and _log_p(rule, count + 1, m - count - 1) < limit:
                count += 1
            if count >= 0:
                rates[rule] += chance * 2 * float(tails[count])
    return rates


def _log_p(rule: str, b: int, c: int) -> float:
    if rule in ("mid-p", "exact"):
        return log_binomial_p(b, c, mid=rule == "mid-p")
    gap = abs(b - c) - (rule == "chi2-corrected")
    return log_upper_chi2(gap * gap / (b + c), 1)


def _equivalence(n: int, margin: float, discordant: float) -> dict[str, float]:
    """The first is better by just the margin: whoever finds them equivalent errs."""
    from scipy.special import gammaln

    z = NormalDist().inv_cdf(1 - NOMINAL)
    p_b, p_c = (discordant + margin) / 2, (discordant - margin) / 2
    rates = {"score": 0.0, "wald": 0.0}
    most = [int(n * p + 9 * math.sqrt(n * p) + 9) for p in (p_b, p_c)]
    for b in range(min(n, most[0]) + 1):
        for c in range(min(n - b, most[1]) + 1):
            rest = n - b - c
            log = gammaln(n + 1) - gammaln(b + 1) - gammaln(c + 1) - gammaln(rest + 1)
            log += b * math.log(p_b) + c * math.log(p_c) + rest * math.log(1 - discordant)
            if log < -30:
                continue
            if score_statistic(b, c, n, -margin) > z and -score_statistic(b, c, n, margin) > z:
                rates["score"] += math.exp(log)
            low, high = PAIRED_RULES["wald"](0, b, c, rest, 1 - 2 * NOMINAL)
            if -margin < low and high < margin:
                rates["wald"] += math.exp(log)
    return rates


def _improvement(pairs: int) -> dict[str, float]:
    """Each model wins a pair with one half; a lower bound above 0.5 for either is an error."""
    rate = 0.0
    for won in range(pairs + 1):
        outcome = [1.0] * won + [0.0] * (pairs - won)
        for sides in ((outcome, [0.5] * pairs), ([0.5] * pairs, outcome)):
            if probability_of_improvement(*sides, level=1 - NOMINAL).significant:
                rate += math.comb(pairs, won) / 2**pairs
    return {"bootstrap, lower bound above 0.5": rate}


_EXACT: dict[str, Callable[..., dict[str, float]]] = {
    "mcnemar": _mcnemar,
    "equivalence": _equivalence,
    "improvement": _improvement,
}


# -------------------------------------------------------------------- samples


def _mcnemar_clusters(rng: np.random.Generator, n_clusters: int, alike: float) -> Iterator[dict[str, bool]]:
    """Clusters of five; with `alike` 1 the models differ in one direction within a cluster, in either by chance."""
    cluster = np.repeat(np.arange(n_clusters), 5)
    while True:
        lean = rng.choice([-alike, alike], n_clusters)[cluster]
        differ = rng.random(len(cluster)) < 0.5
        first_right = rng.random(len(cluster)) < (1 + lean) / 2
        a, b = np.where(differ, first_right, True), np.where(differ, ~first_right, True)
        yield {
            "mid-p of clusters": mcnemar(a, b, clusters=cluster).p_value < NOMINAL,
            "exact of clusters": mcnemar(a, b, clusters=cluster, method="exact").p_value < NOMINAL,
            "chi2 of clusters": mcnemar(a, b, clusters=cluster, method="chi2").p_value < NOMINAL,
            "clusters ignored": mcnemar(a, b).p_value < NOMINAL,
        }


def _auc(rng: np.random.Generator, n_pos: int, n_neg: int, auc: float) -> Iterator[dict[str, bool]]:
    """Two models with normal scores, correlated by one half."""
    labels = np.repeat([1, 0], (n_pos, n_neg))
    shift = math.sqrt(2) * NormalDist().inv_cdf(auc) * labels
    while True:
        shared, *own = rng.normal(size=(3, n_pos + n_neg)) * math.sqrt(0.5)
        a, b = (shared + x + shift for x in own)
        paired, unpaired = compare_auc(a, b, labels), compare_auc(a, b, labels, labels)
        yield {"paired DeLong": paired.p_value < NOMINAL, "pairing ignored": unpaired.p_value < NOMINAL}


def _auc_clusters(rng: np.random.Generator, n_clusters: int, alike: float) -> Iterator[dict[str, bool]]:
    """Six items a cluster, three of each class; scores of a class are alike within a cluster."""
    cluster, labels = np.repeat(np.arange(n_clusters), 6), np.tile([0, 1], 3 * n_clusters)
    while True:
        common = rng.normal(size=(2, 2, n_clusters))[:, labels, cluster]
        a, b = math.sqrt(alike) * common + math.sqrt(1 - alike) * rng.normal(size=(2, len(labels))) + 1.2 * labels
        yield {
            "DeLong of clusters": compare_auc(a, b, labels, clusters=cluster).p_value < NOMINAL,
            "clusters ignored": compare_auc(a, b, labels).p_value < NOMINAL,
        }


def _cross_validation(rng: np.random.Generator, n: int, folds: str) -> Iterator[dict[str, bool]]:
    """Two nearest-centroid classifiers, each with five features of its own, of the same law."""
    repeats, k = {"10": (1, 10), "10 x 10": (10, 10), "5 x 2": (5, 2)}[folds]
    labels = np.arange(n) % 2
    while True:
        features = rng.normal(size=(2, n, 5)) + 0.35 * labels[:, None]
        right = np.empty((2, repeats, k))
        for i in range(repeats):
            # both classes in equal numbers in each fold, as far as they go
            fold = np.empty(n, dtype=np.int64)
            for label in (0, 1):
                fold[rng.permutation(np.flatnonzero(labels == label))] = np.arange(n // 2) % k
            for model in (0, 1):
                right[model, i] = _centroids(features[model], labels, fold, k)
        if folds == "5 x 2":
            yield {
                "5x2cv F": five_by_two(*right).p_value < NOMINAL,
                "5x2cv t": five_by_two(*right, method="t").p_value < NOMINAL,
            }
        else:
            yield {
                "corrected t": corrected_ttest(*right).p_value < NOMINAL,
                "plain paired t": corrected_ttest(*right, test_train_ratio=0).p_value < NOMINAL,
            }


def _centroids(
    x: NDArray[np.float64], labels: NDArray[np.int64], fold: NDArray[np.int64], k: int
) -> NDArray[np.float64]:
    """Accuracy on each fold of the rule that the other folds give."""
    place = fold * 2 + labels
    sums = np.zeros((2 * k, x.shape[1]))
    np.add.at(sums, place, x)
    counts = np.bincount(place, minlength=2 * k).reshape(k, 2)
    left = sums.reshape(k, 2, -1)
    centres = (left.sum(0) - left) / (counts.sum(0) - counts)[:, :, None]
    far = ((x[:, None, :] - centres[fold]) ** 2).sum(2)
    accuracies: NDArray[np.float64] = np.bincount(fold, (far[:, 1] < far[:, 0]) == labels, k) / counts.sum(1)
    return accuracies


def _friedman(rng: np.random.Generator, models: int, data_sets: int) -> Iterator[dict[str, bool]]:
    """Figures of the same law."""
    limit = math.log(NOMINAL)
    while True:
        table = rng.normal(size=(models, data_sets))
        chi2, f = friedman(table), friedman(table, method="f", posthoc="holm")
        signed = friedman(table, posthoc="wilcoxon")
        yield {
            "Friedman": chi2.log_p < limit,
            "Iman-Davenport": f.log_p < limit,
            **{
                f"any pair, {name}": min(pair.log_p_adjusted or 0.0 for pair in found.pairs) < limit
                for name, found in (("Nemenyi", chi2), ("Holm", f), ("Wilcoxon", signed))
            },
        }


def _seeds_and_folds(
    rng: np.random.Generator, n_seeds: int, n_folds: int, shares: list[float]
) -> Iterator[dict[str, bool]]:
    """A mean of 0 that the interval misses; `shares` of the variance are those of seeds, folds and the rest."""
    z = t_quantile(n_seeds * n_folds - 1, 1 - NOMINAL)
    seed, fold, rest = (math.sqrt(share) for share in shares)
    while True:
        y = (
            seed * rng.normal(size=(n_seeds, 1))
            + fold * rng.normal(size=n_folds)
            + rest * rng.normal(size=(n_seeds, n_folds))
        )
        found = variance_components(y, level=1 - NOMINAL)
        yield {
            "crossed random effects": 0.0 not in found.mean,
            "deviation over root of runs": abs(found.mean.estimate) > z * found.naive_se,
        }


_SAMPLED: dict[str, Callable[..., Iterator[dict[str, bool]]]] = {
    "mcnemar-clusters": _mcnemar_clusters,
    "auc": _auc,
    "auc-clusters": _auc_clusters,
    "cross-validation": _cross_validation,
    "friedman": _friedman,
    "seeds-and-folds": _seeds_and_folds,
}


if __name__ == "__main__":
    sys.exit(main())
