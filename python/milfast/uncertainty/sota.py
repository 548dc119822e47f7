"""The 360 trainings behind "Machine Learning State-of-the-Art with Uncertainties", reproduced and looked at again.

Three image classifiers, six seeds and 20 folds, with what each training said of each image: Steinbach, Gernhardt,
Tanveer, Schmerler and Starke 2022, arXiv 2204.05173, whose workflow (github.com/psteinb/sota_on_uncertainties, BSD 3)
holds the predictions. ``python -m milfast.uncertainty.sota FOLDER`` draws figures 1 to 5 of the paper and writes every
number beside them into a record; docs/findings.md says what follows.

The predictions are not shipped: ``sota_predictions.npz`` and ``park_kim_2202.06709_fig12a.csv`` are looked for in the
folders of ``MILFAST_DATA`` and in their subfolders ``uncertainty``.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.uncertainty.cross_validation import corrected_ttest, probability_of_improvement
from milfast.uncertainty.paired import mcnemar
from milfast.uncertainty.proportions import compare_proportions
from milfast.uncertainty.variance import normality, variance_components

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from milfast.uncertainty.intervals import Interval

PREDICTIONS, PARK_KIM = "sota_predictions.npz", "park_kim_2202.06709_fig12a.csv"
RECORD = "sota-uncertainties.json"
#: Items of the test set of CIFAR-100, on which Park & Kim (2022) report.
CIFAR_100 = 10_000
#: The level of the intervals of one and of two standard deviations that the paper draws.
SIGMA = {z: math.erf(z / math.sqrt(2)) for z in (1, 2)}


@dataclass(frozen=True)
class Trainings:
    """What each training got right.

    Attributes
    ----------
    archs : tuple of str
        The architectures.
    seeds : tuple of int
        The first is 42, with which the paper shows "one seed".
    fold : ndarray of int, shape (n_images,)
        The fold in which each image was tested.
    class_sizes : tuple of int
        Images of each class.
    right, right_best : ndarray of bool, shape (n_archs, n_seeds, n_images)
        Of the last checkpoint, which the paper's figures use, and of the one that is best on the tested fold.
    points : tuple of dict
        Figure 12a of Park & Kim (2022) as it was read off: number of MSAs, label and accuracy.
    """

    archs: tuple[str, ...]
    seeds: tuple[int, ...]
    fold: NDArray[np.intp]
    class_sizes: tuple[int, ...]
    right: NDArray[np.bool_]
    right_best: NDArray[np.bool_]
    points: tuple[dict[str, Any], ...]

    @property
    def n_folds(self) -> int:
        """Folds."""
        return int(self.fold.max()) + 1

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Images of each fold."""
        return np.bincount(self.fold)

    def counts(self, right: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Images that each training got right in its fold.

        Parameters
        ----------
        right : ndarray of bool, shape (n_archs, n_seeds, n_images), optional
            Those of the last checkpoint by default.

        Returns
        -------
        ndarray of int64, shape (n_archs, n_seeds, n_folds)
        """
        given = self.right if right is None else right
        return np.stack([given[:, :, self.fold == f].sum(axis=2) for f in range(self.n_folds)], axis=2)


def load(folder: str | Path | None = None) -> Trainings:
    """Read the stored predictions.

    Parameters
    ----------
    folder : path, optional
        Where they are; the folders of ``MILFAST_DATA`` otherwise.

    Returns
    -------
    Trainings

    Raises
    ------
    FileNotFoundError
        When they are nowhere, with where they come from.
    """
    with np.load(_find(PREDICTIONS, folder)) as stored:
        labels = stored["gtlabel"]
        return Trainings(
            archs=tuple(str(arch) for arch in stored["archs"]),
            seeds=tuple(int(seed) for seed in stored["seeds"]),
            fold=stored["fold"].astype(np.intp),
            class_sizes=tuple(np.bincount(labels).tolist()),
            right=stored["pred_last"] == labels,
            right_best=stored["pred_best"] == labels,
            points=_points(_find(PARK_KIM, folder)),
        )


def _find(name: str, folder: str | Path | None) -> Path:
    from milfast.datasets.classic_mil import _folders

    folders = _folders() if folder is None else [Path(folder)]
    for place in folders:
        for file in (place / name, place / "uncertainty" / name):
            if file.is_file():
                return file
    raise FileNotFoundError(
        f"{name} is not in {', '.join(str(place) for place in folders)} or a subfolder uncertainty: set MILFAST_DATA "
        "to the folder that holds it. It is made of the files topk_ids.csv in github.com/psteinb/sota_on_uncertainties"
    )


def _points(path: Path) -> tuple[dict[str, Any], ...]:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = [
            {
                "msa": round(float(row["msa_number"])),
                "label": row["label"],
                "accuracy": float(row["accuracy_percent"]) / 100,
            }
            for row in csv.DictReader(stream)
        ]
    return tuple(sorted(rows, key=lambda row: (row["msa"], row["accuracy"])))


# -------------------------------------------------------------------- the numbers


def record(trainings: Trainings) -> dict[str, Any]:
    """Every number of the figures and of docs/findings.md.

    Parameters
    ----------
    trainings : Trainings

    Returns
    -------
    dict
        Plain values; with the counts of right answers of each training, from which most of it can be computed again.
    """
    counts = trainings.counts()
    return {
        "source": "github.com/psteinb/sota_on_uncertainties, commit cf1efa7 (BSD 3-Clause, 2022 Peter Steinbach)",
        "command": "python -m milfast.uncertainty.sota FOLDER",
        "archs": list(trainings.archs),
        "seeds": list(trainings.seeds),
        "fold_sizes": trainings.sizes.tolist(),
        "class_sizes": list(trainings.class_sizes),
        "right": dict(zip(trainings.archs, counts.tolist(), strict=True)),
        "figure_1": figure_1(trainings),
        "figure_2": figure_2(trainings),
        "figure_4": figure_4(trainings),
        "figure_5": figure_5(trainings),
        "paired": paired(trainings),
        "variance": variance(trainings),
        "checkpoints": checkpoints(trainings),
        "seeds_alike": seeds_alike(trainings),
    }


def accuracies(trainings: Trainings) -> NDArray[np.float64]:
    """Accuracy of each training on its fold.

    Parameters
    ----------
    trainings : Trainings

    Returns
    -------
    ndarray of float64, shape (n_archs, n_seeds, n_folds)
    """
    return np.asarray(trainings.counts() / trainings.sizes)


def equation_1(accuracy: float, n: int, z: float = 1.0) -> float:
    """Half-width by equation 1 of the paper, z sqrt(accuracy (1 - accuracy) / n).

    Parameters
    ----------
    accuracy : float
    n : int
    z : float

    Returns
    -------
    float

    Examples
    --------
    >>> from milfast.uncertainty.sota import equation_1
    >>> round(equation_1(0.9, 900), 6)
    0.01
    """
    return z * math.sqrt(accuracy * (1 - accuracy) / n)


def figure_1(trainings: Trainings) -> dict[str, dict[str, float]]:
    """Mean and standard deviation over the folds of seed 42.

    Parameters
    ----------
    trainings : Trainings

    Returns
    -------
    dict
        For each architecture.
    """
    found = {}
    for arch, table in zip(trainings.archs, accuracies(trainings), strict=True):
        mean, sd = float(table[0].mean()), float(table[0].std(ddof=1))
        found[arch] = {"mean": mean, "sd": sd, "low": mean - sd, "high": mean + sd}
    return found


def figure_2(trainings: Trainings) -> list[dict[str, Any]]:
    """Figure 12a of Park & Kim (2022) with intervals, each point beside the one without MSA.

    Parameters
    ----------
    trainings : Trainings

    Returns
    -------
    list of dict
        Intervals of one and two standard deviations by equation 1 with n = 10,000; whether that of two overlaps the one
        of the point without MSA; and the two-proportion z test against it.
    """
    [base] = [point for point in trainings.points if point["msa"] == 0]
    rows = []
    for point in trainings.points:
        row = dict(point)
        for z in (1, 2):
            half = equation_1(point["accuracy"], CIFAR_100, z)
            row |= {f"low_{z}": point["accuracy"] - half, f"high_{z}": point["accuracy"] + half}
        if point["msa"]:
            test = compare_proportions(
                point["accuracy"] * CIFAR_100, CIFAR_100, base["accuracy"] * CIFAR_100, CIFAR_100
            )
            assert test.difference is not None
            edge = base["accuracy"] + equation_1(base["accuracy"], CIFAR_100, 2)
            row |= {"overlaps": row["low_2"] <= edge, "p_value": test.p_value, "difference": test.difference.to_dict()}
        rows.append(row)
    return rows


def figure_4(trainings: Trainings) -> dict[str, dict[str, Any]]:
    """Whether the accuracies look normal, one seed and all: Shapiro and Wilk's test, correlation of the Q-Q plot.

    Parameters
    ----------
    trainings : Trainings

    Returns
    -------
    dict
        For each architecture, with the lowest fold over all seeds.
    """
    found = {}
    for arch, table in zip(trainings.archs, accuracies(trainings), strict=True):
        folds = table.mean(axis=0)
        found[arch] = {
            "seed_42": normality(table[0]).to_dict(),
            "all": normality(table.ravel()).to_dict(),
            "lowest_fold": int(folds.argmin()),
            "lowest_fold_mean": float(folds.min()),
        }
    return found


def figure_5(trainings: Trainings) -> dict[str, dict[str, Any]]:
    """Standard deviation over folds beside equation 1, for seed 42 and for all trainings.

    Parameters
    ----------
    trainings : Trainings

    Returns
    -------
    dict
        For each architecture, with the ratio of the two for every seed, and the range that 95 % of such ratios have by
        chance when equation 1 holds.
    """
    from scipy.stats import chi2

    n = int(trainings.sizes.max())
    free = trainings.n_folds - 1
    chance = [math.sqrt(float(chi2.ppf(q, free)) / free) for q in (0.025, 0.975)]
    found = {}
    for arch, table in zip(trainings.archs, accuracies(trainings), strict=True):
        row: dict[str, Any] = {}
        for name, runs in (("seed_42", table[0]), ("all", table.ravel())):
            mean, sd = float(runs.mean()), float(runs.std(ddof=1))
            expected = equation_1(mean, n)
            row[name] = {"mean": mean, "sd": sd, "equation_1": expected, "ratio": sd / expected}
        row["seed_means"] = table.mean(axis=1).tolist()
        row["seed_ratios"] = [float(runs.std(ddof=1)) / equation_1(float(runs.mean()), n) for runs in table]
        row["ratio_by_chance"] = chance
        found[arch] = row
    return found


def paired(trainings: Trainings, first: str = "resnext50", second: str = "resnet50") -> dict[str, Any]:
    """Two architectures on the same images: what intervals side by side leave out.

    Parameters
    ----------
    trainings : Trainings
    first, second : str
        Architectures.

    Returns
    -------
    dict
    """
    a, b = (trainings.archs.index(name) for name in (first, second))
    table = accuracies(trainings)
    right_a, right_b = trainings.right[a, 0], trainings.right[b, 0]
    n = len(right_a)
    whole = mcnemar(right_a, right_b, method="exact", interval="wald", names=(first, second))
    assert whole.difference is not None
    folds, disjoint = [], 0
    for f, size in enumerate(trainings.sizes.tolist()):
        inside = trainings.fold == f
        test = mcnemar(right_a[inside], right_b[inside], method="exact")
        folds.append(test.details | {"p_value": test.p_value})
        reach = [equation_1(estimate, size) for estimate in test.estimates]
        disjoint += abs(test.estimates[0] - test.estimates[1]) > sum(reach)
    corrected = corrected_ttest(table[a, 0], table[b, 0], folds=trainings.n_folds, names=(first, second))
    naive = corrected_ttest(table[a, 0], table[b, 0], test_train_ratio=0, names=(first, second))
    by_fold = probability_of_improvement(table[a], table[b], names=(first, second))
    ignoring = probability_of_improvement(table[a].ravel(), table[b].ravel(), paired=False, names=(first, second))
    unpaired = math.sqrt(sum(equation_1(estimate, n) ** 2 for estimate in whole.estimates))
    return {
        "first": first,
        "second": second,
        "mcnemar": whole.to_dict(),
        "paired_se": _standard_error(whole.difference),
        "unpaired_se": unpaired,
        "folds": folds,
        "folds_below_0.05": sum(fold["p_value"] < 0.05 for fold in folds),
        "folds_disjoint_1_sigma": disjoint,
        "corrected_t": corrected.to_dict(),
        "naive_t": naive.to_dict(),
        "same_fold_any_seeds": by_fold.to_dict(),
        "any_fold_any_seeds": ignoring.to_dict(),
        "correlation_of_folds": {
            f"{trainings.archs[i]} - {trainings.archs[j]}": float(np.corrcoef(table[i].mean(0), table[j].mean(0))[0, 1])
            for i, j in combinations(range(len(trainings.archs)), 2)
        },
    }


def _standard_error(interval: Interval) -> float:
    from statistics import NormalDist

    return interval.half_width / NormalDist().inv_cdf((1 + interval.level) / 2)


def variance(trainings: Trainings, *, n_deals: int = 2000, random_state: int = 0) -> dict[str, dict[str, Any]]:
    """Where the spread of the 120 accuracies of an architecture comes from, and three standard errors of their mean.

    Parameters
    ----------
    trainings : Trainings
    n_deals : int
        How often the images are dealt to folds at random.
    random_state : int
        Of the deals.

    Returns
    -------
    dict
        For each architecture: components over seeds and folds; the standard error of the mean as crossed random effects
        have it, as runs that were independent would, and by equation 1 on all images; and the standard deviation of the
        means of the folds, observed and when the same images are dealt to folds at random.
    """
    rng = np.random.default_rng(random_state)
    n = len(trainings.fold)
    starts = np.concatenate([[0], np.cumsum(trainings.sizes)[:-1]])
    orders = [rng.permutation(n) for _ in range(n_deals)]
    found = {}
    for arch, table, right in zip(trainings.archs, accuracies(trainings), trainings.right, strict=True):
        parts = variance_components(table)
        of_image = right.mean(axis=0)
        dealt = [np.add.reduceat(of_image[order], starts) / trainings.sizes for order in orders]
        spread = np.std(dealt, axis=1, ddof=1)
        found[arch] = parts.to_dict() | {
            "binomial_se": equation_1(float(right.mean()), n),
            "sd_of_folds": float(table.mean(axis=0).std(ddof=1)),
            "sd_of_dealt_folds": [float(np.mean(spread)), *np.quantile(spread, [0.025, 0.975]).tolist()],
        }
    return found


def checkpoints(trainings: Trainings) -> dict[str, float]:
    """How much better the checkpoint looks that is the best on the very fold it is tested on.

    Parameters
    ----------
    trainings : Trainings

    Returns
    -------
    dict
        Mean gain for each architecture.
    """
    gain = (trainings.counts(trainings.right_best) - trainings.counts()) / trainings.sizes
    return dict(zip(trainings.archs, gain.mean(axis=(1, 2)).tolist(), strict=True))


def seeds_alike(trainings: Trainings) -> dict[str, dict[str, Any]]:
    """How much the seeds of an architecture err on the same images, and how many pairs McNemar's test tells apart.

    Parameters
    ----------
    trainings : Trainings

    Returns
    -------
    dict
        For each architecture: mean errors, mean Jaccard index of the error sets of two seeds, pairs with p < 0.05.
    """
    from milfast._core import jaccard_matrix

    found = {}
    for arch, right in zip(trainings.archs, trainings.right, strict=True):
        matrix = jaccard_matrix(~right)
        pairs = list(combinations(range(len(right)), 2))
        tests = [mcnemar(right[i], right[j], method="exact") for i, j in pairs]
        found[arch] = {
            "mean_errors": float((~right).sum(axis=1).mean()),
            "jaccard": float(np.mean([matrix[i, j] for i, j in pairs])),
            "pairs": len(pairs),
            "pairs_below_0.05": sum(test.p_value < 0.05 for test in tests),
        }
    return found


# -------------------------------------------------------------------- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the figures and write the record.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        0.
    """
    parser = argparse.ArgumentParser(
        prog="python -m milfast.uncertainty.sota",
        description="Reproduce the figures of Steinbach et al. (2022) from their stored predictions.",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where to; it is made where it is not there")
    parser.add_argument("--data", metavar="FOLDER", help=f"where {PREDICTIONS} is (default: MILFAST_DATA)")
    parser.add_argument("--no-figures", action="store_true", help="write the record only; needs no matplotlib")
    options = parser.parse_args(arguments)
    try:
        trainings = load(options.data)
    except FileNotFoundError as error:
        parser.error(str(error))
    found = record(trainings)
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / RECORD
    path.write_text(to_text(found), encoding="utf-8")
    print(path)
    if not options.no_figures:
        from milfast.report.sota_figures import write

        for written in write(found, options.folder):
            print(written)
    for line in table(found):
        print(line)
    return 0


def to_text(found: dict[str, Any]) -> str:
    """The record as JSON, lists of numbers on one line.

    Parameters
    ----------
    found : dict

    Returns
    -------
    str
    """
    import re

    text = json.dumps(found, indent=1, allow_nan=False)
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda m: "[" + re.sub(r",\s+", ", ", m[1]) + "]", text) + "\n"


def table(found: dict[str, Any]) -> list[str]:
    """The numbers of figures 1 and 5 for people, line by line.

    Parameters
    ----------
    found : dict
        As `record` returns it.

    Returns
    -------
    list of str
    """
    lines = ["architecture  runs     mean      SD        equation 1  ratio"]
    for arch, row in found["figure_5"].items():
        for name in ("seed_42", "all"):
            r = row[name]
            title = name.replace("_", " ")
            lines.append(
                f"{arch:12}  {title:7}  {r['mean']:.6f}  {r['sd']:.6f}  {r['equation_1']:.6f}    {r['ratio']:.3f}"
            )
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
