"""Run what docs/consistency-studies.md shows: ``python -m milfast.consistency.studies --json FILE``."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.consistency.curve import ConsistencyCurve, consistency_curve
from milfast.consistency.voting import majority_vote, vote_gains
from milfast.seeding import seed_sequence
from milfast.study.run import provenance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from milfast.consistency.cross_validation import CrossValidated

#: Curves on the Pima data: scikit-learn's logistic regression, and the one that the code of the paper trained.
CURVES = {"lr": "default", "sgd": "2023"}
CURVE_DATA = "pima"
#: Data sets and models of the other studies; of the first set the error sets are kept.
DATA = ("parkinsons", "spect", "transfusion", "pima")
MODELS = ("lr", "svm", "rf", "adaboost")
SEED = 0


def curves(*, subsets: int, n_jobs: int) -> dict[str, Any]:
    """Accuracy and error consistency against the number of samples.

    Parameters
    ----------
    subsets : int
        Of each curve.
    n_jobs : int

    Returns
    -------
    dict
        Plain values, ready for JSON.
    """
    from milfast.consistency import learners

    X, y = _standardized()
    found = {}
    for name, parameters in CURVES.items():
        estimator = learners.make("lr", data=CURVE_DATA, parameters=parameters).estimator  # type: ignore[arg-type]
        curve = consistency_curve(
            estimator,
            X,
            y,
            proportions=subsets,
            n_jobs=n_jobs,
            random_state=SEED,
            callback=lambda done, total, _, name=name: _say(f"curve of {name}: {done} of {total} subsets"),  # type: ignore[misc]
        )
        found[name] = curve.to_dict()
    return {"curves": found}


def unsorted(*, subsets: int) -> dict[str, Any]:
    """What the correlations become where the predictions of runs are compared in the order in which runs made them.

    A stored version of the code of the paper's analyses (``src/analysis.py``, ``load_preds`` and ``Repeat.full_df``)
    puts the predictions of a run together fold after fold without sorting them, and compares all runs with the labels
    in the order of the first one. The same is done here, with runs that deal their samples anew.

    Parameters
    ----------
    subsets : int

    Returns
    -------
    dict
        Plain values, ready for JSON: a curve, as of `ConsistencyCurve.to_dict`.
    """
    from sklearn.model_selection import StratifiedKFold

    from milfast.consistency import learners

    X, y = _standardized()
    model = learners.make("lr").estimator
    runs, folds = 10, 5
    first, second = np.triu_indices(runs, 1)
    generator = np.random.Generator(np.random.PCG64(seed_sequence(SEED, 3)))
    shares = np.sort(generator.uniform(0.5, 0.9, subsets))
    errors = []
    for done, share in enumerate(shares.tolist()):
        _say(f"unsorted: {done} of {subsets} subsets")
        rows = np.concatenate([_some(np.flatnonzero(y == label), share, generator) for label in np.unique(y)])
        predictions, labels = [], []
        for _ in range(runs):
            dealt = generator.permutation(rows)
            for train, test in StratifiedKFold(folds).split(dealt, y[dealt]):
                model.fit(X[dealt[train]], y[dealt[train]])
                predictions.append(model.predict(X[dealt[test]]))
                labels.append(y[dealt[test]])
        labels_of_first = np.concatenate(labels[:folds])
        errors.append(np.concatenate(predictions).reshape(runs, -1) != labels_of_first)
    curve = ConsistencyCurve(
        model="LogisticRegression, unsorted",
        proportions=shares,
        n_samples=np.array([e.shape[1] for e in errors]),
        errors=np.stack([e.sum(axis=1) for e in errors]),
        intersections=np.stack([(e[first] & e[second]).sum(axis=1) for e in errors]),
        unions=np.stack([(e[first] | e[second]).sum(axis=1) for e in errors]),
        constant=np.zeros(subsets, dtype=bool),
        n_total=len(y),
        folds=folds,
        runs=runs,
        subset="shared",
        stratify=True,
        seed=SEED,
        seconds=0.0,
    )
    return {"unsorted": curve.to_dict()}


def _some(rows: NDArray[np.intp], share: float, generator: np.random.Generator) -> NDArray[np.intp]:
    return generator.permutation(rows)[: int(share * len(rows))]


def _standardized() -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Data of the curves, their features standardised over all samples as in the paper."""
    from sklearn.preprocessing import StandardScaler

    from milfast import datasets

    X, y = datasets.load(CURVE_DATA)
    return StandardScaler().fit_transform(X), y


def models(*, repeats: int, n_jobs: int) -> dict[str, Any]:
    """Error sets of several models, and what votes of them gain.

    Parameters
    ----------
    repeats : int
        Of the cross-validation of each model.
    n_jobs : int

    Returns
    -------
    dict
        Plain values, ready for JSON.
    """
    from milfast import datasets
    from milfast.consistency import learners
    from milfast.consistency.cross_validation import cross_validate_consistency

    kept, gains = {}, []
    for data in DATA:
        X, y = datasets.load(data)
        results = {}
        for name in MODELS:
            _say(f"{name} on {data}")
            estimator = learners.make(name, standardize="folds").estimator
            found = cross_validate_consistency(estimator, X, y, repeats=repeats, n_jobs=n_jobs, random_state=SEED)
            results[name] = replace(found, model=type(estimator[-1]).__name__)
        if data == DATA[0]:
            kept = {name: as_dict(result) for name, result in results.items()}
        gains += [{"data": data} | row for row in vote_gains(results)]
    return {"data": DATA[0], "results": kept, "gains": gains, "repeats": repeats}


def as_dict(result: CrossValidated) -> dict[str, Any]:
    """A result as plain values, its error sets too.

    Parameters
    ----------
    result : CrossValidated

    Returns
    -------
    dict
    """
    return {
        "model": result.model,
        "classes": result.classes.tolist(),
        "errors": base64.b64encode(result.errors.tobytes()).decode("ascii"),
        "n_samples": result.n_samples,
        "predicted": result.predicted.tolist(),
        "majority": result.majority,
        "approach": result.approach,
        "repeats": result.repeats,
        "folds": result.folds,
        "stopped": result.stopped,
        "seed": result.seed,
        "seconds": result.seconds,
    }


def from_dict(values: dict[str, Any]) -> CrossValidated:
    """The result that `as_dict` described.

    Parameters
    ----------
    values : dict

    Returns
    -------
    CrossValidated
    """
    from milfast.consistency.cross_validation import CrossValidated

    width = (values["n_samples"] + 7) // 8
    return CrossValidated(
        **values
        | {
            "classes": np.array(values["classes"]),
            "errors": np.frombuffer(base64.b64decode(values["errors"]), dtype=np.uint8).reshape(-1, width),
            "predicted": np.array(values["predicted"], dtype=np.int64),
        }
    )


def tables(record: dict[str, Any]) -> str:
    """The figures of the page, from a record.

    Parameters
    ----------
    record : dict
        Of `run`.

    Returns
    -------
    str
        Markdown.
    """
    from milfast.consistency.selection import select_model

    lines = ["| curve | points | accuracy, AEC | proportion, accuracy | proportion, AEC |", "|---|---|---|---|---|"]
    for name, values in (record["curves"] | {"unsorted": record["unsorted"]}).items():
        for of, found in ConsistencyCurve.from_dict(values).correlations().items():
            lines.append(f"| {name} | {of} | " + " | ".join(f"{r:.3f}" for r in found.values()) + " |")
    results = {name: from_dict(values) for name, values in record["results"].items()}
    selection = select_model(results, random_state=SEED)
    lines += ["", "| model | accuracy | AEC | on the front |", "|---|---|---|---|"]
    for score in selection.scores:
        cells = [f"{i.estimate:.3f} [{i.low:.3f}, {i.high:.3f}]" for i in (score.accuracy, score.consistency)]
        lines.append(f"| {score.name} | {' | '.join(cells)} | {100 * score.front_frequency:.0f} % |")
    lines += ["", selection.reason, "", "| data | model | AEC | one run | vote | gain | errors healed |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for row in sorted(record["gains"], key=lambda row: row["consistency"]):
        gain = f"{100 * row['gain']:+.2f} [{100 * row['gain_low']:+.2f}, {100 * row['gain_high']:+.2f}]"
        lines.append(
            f"| {row['data']} | {row['name']} | {100 * row['consistency']:.1f} | {100 * row['mean_accuracy']:.2f} | "
            f"{100 * row['vote_accuracy']:.2f} | {gain} | {100 * row['healed']:.0f} % |"
        )
    votes = [majority_vote(result).summary() for result in results.values()]
    return "\n".join([*lines, "", *votes])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

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
        prog="python -m milfast.consistency.studies",
        description="Run the studies of docs/consistency-studies.md, and print their figures. Needs the data sets.",
    )
    parser.add_argument(
        "--json", type=Path, required=True, metavar="FILE", help="the record; what it has is not run again"
    )
    parser.add_argument("--repeats", type=int, default=100, help="runs of each model (default: %(default)s)")
    parser.add_argument("--subsets", type=int, default=200, help="of each curve (default: %(default)s)")
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes; -1 for one per processor (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    record: dict[str, Any] = {}
    if options.json.exists():
        record = json.loads(options.json.read_text(encoding="utf-8"))
    for part, make in (
        ("curves", lambda: curves(subsets=options.subsets, n_jobs=options.jobs)),
        ("unsorted", lambda: unsorted(subsets=options.subsets)),
        ("results", lambda: models(repeats=options.repeats, n_jobs=options.jobs)),
        ("provenance", lambda: {"provenance": provenance()}),
    ):
        if part not in record:
            record |= make()
            options.json.write_text(_one_line_each(record) + "\n", encoding="utf-8")
    print(tables(record))
    return 0


def _one_line_each(record: dict[str, Any]) -> str:
    """JSON with a line for each value of the two upper levels."""

    def lines(value: Any, depth: int) -> str:
        if not isinstance(value, dict) or depth == 0:
            return json.dumps(value, allow_nan=False, separators=(",", ":"))
        pad = "  " * (3 - depth)
        inside = ",\n".join(f"{pad}{json.dumps(key)}: {lines(item, depth - 1)}" for key, item in value.items())
        return f"{{\n{inside}\n{pad[2:]}}}"

    return lines(record, 2)


def _say(text: str) -> None:
    print(f"\r{text}\033[K", end="", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
