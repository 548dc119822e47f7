"""A live study in the design of Steinbach et al. (2022): three small networks, five folds and six seeds on digits.

``python -m milfast.training.digits STUDY`` trains what is not in the study file yet, 90 trainings of half a second, and
compares the networks by `milfast.compare`. The data are the 1,797 handwritten digits that come with scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from milfast.report.terminal import progress
from milfast.seeding import seed_value
from milfast.study import Study
from milfast.uncertainty import ComparedModels, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from milfast.study import Record

FUNCTION = "milfast.training.digits:train"
SEEDS = (42, 1328, 1329, 1330, 1331, 1332)
FOLDS = 5
EPOCHS = 12


def network(name: str) -> nn.Module:
    """Make an untrained network; its weights come from torch's global generator.

    Parameters
    ----------
    name : {"linear", "hidden", "convolutional"}

    Returns
    -------
    torch.nn.Module
        From images, shape (n, 1, 8, 8), to the logits of ten classes.
    """
    return NETWORKS[name]()


NETWORKS = {
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 10)),
    "hidden": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10)),
    "convolutional": lambda: nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 16, 10),
    ),
}


@cache
def digits() -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Images, labels and folds: stratified, shuffled once, and the same for all networks and seeds.

    Returns
    -------
    tuple of ndarray
        Shapes (n, 1, 8, 8), (n,) and (n,).
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedKFold

    images, labels = load_digits(return_X_y=True)
    fold = np.empty(len(labels), dtype=np.int64)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(images, labels)
    for f, (_, tested) in enumerate(splits):
        fold[tested] = f
    return (images / 16).astype(np.float32).reshape(-1, 1, 8, 8), labels.astype(np.int64), fold


def train(spec: dict[str, Any]) -> dict[str, Any]:
    """Train a network on all folds but one, and predict that one: a job of the study.

    Parameters
    ----------
    spec : dict
        With ``model``, ``seed``, ``fold`` and ``epochs``.

    Returns
    -------
    dict
        ``predicted``, a class for each image of the fold in the order of the data, and ``accuracy``.
    """
    images, labels, folds = digits()
    tested = folds == spec["fold"]
    x, y = torch.from_numpy(images[~tested]), torch.from_numpy(labels[~tested])
    # the seed alone says how a network starts and in which order it sees the images, whatever was trained before
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_value(spec["seed"], spec["fold"], list(NETWORKS).index(spec["model"])))
        model = network(spec["model"])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
        for _ in range(spec["epochs"]):
            order = torch.randperm(len(x))
            for start in range(0, len(x), 64):
                batch = order[start : start + 64]
                loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
    with torch.inference_mode():
        predicted = model(torch.from_numpy(images[tested])).argmax(dim=1).numpy()
    return {"predicted": predicted.tolist(), "accuracy": float(np.mean(predicted == labels[tested]))}


def specifications(epochs: int = EPOCHS) -> list[dict[str, Any]]:
    """All jobs of the study.

    Parameters
    ----------
    epochs : int

    Returns
    -------
    list of dict
    """
    return [
        {"model": model, "data": "digits", "seed": seed, "fold": fold, "epochs": epochs}
        for model in NETWORKS
        for seed in SEEDS
        for fold in range(FOLDS)
    ]


def compared(records: Sequence[Record]) -> ComparedModels:
    """The networks by the results of the study.

    Parameters
    ----------
    records : sequence of Record
        Of all jobs, done.

    Returns
    -------
    ComparedModels
    """
    _, labels, folds = digits()
    predictions = {model: np.full((len(SEEDS), len(labels)), -1) for model in NETWORKS}
    for record in records:
        if record.result is None:
            raise ValueError(f"not all trainings are done: {record.spec} is {record.state}")
        row = predictions[record.spec["model"]][SEEDS.index(record.spec["seed"])]
        row[folds == record.spec["fold"]] = record.result["predicted"]
    return compare(predictions, labels, folds=folds, seeds=SEEDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is left to train, and compare.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        0, or 1 when a training failed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m milfast.training.digits",
        description="Train 3 networks on 5 folds with 6 seeds, and compare them. The same command resumes.",
    )
    parser.add_argument("study", metavar="STUDY", help="file that keeps the results")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one a processor)")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"of each training (default: {EPOCHS})")
    parser.add_argument(
        "--card", choices=("text", "markdown", "latex", "json"), default="text", help="form of the card"
    )
    parser.add_argument("--record", metavar="FILE", type=Path, help="also write figures and design to this JSON file")
    parser.add_argument("--plot", metavar="FILE", help="also draw intervals and paired differences into this file")
    options = parser.parse_args(arguments)
    with Study(options.study) as study:
        ids = study.add(FUNCTION, specifications(options.epochs))
        missing = sum(record.state != "done" for record in study.records(ids))
        if missing < len(ids):
            print(f"{len(ids) - missing} of {len(ids)} trainings are done already", file=sys.stderr)
        with progress("training", missing) as advance:
            study.run(ids, n_jobs=options.jobs, callback=lambda _done, _total, r: advance(r.spec["model"]))
        records = study.records(ids)
    failed = [record for record in records if record.state != "done"]
    if failed:
        print(f"{len(failed)} trainings failed: {failed[0].failure}", file=sys.stderr)
        return 1
    result = compared(records)
    if options.record is not None:
        seconds = sum(record.seconds or 0.0 for record in records)
        found = result.to_dict() | {"seconds_of_all_trainings": round(seconds, 1), "provenance": records[0].provenance}
        options.record.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    if options.plot is not None:
        from milfast.report.uncertainty_plots import comparison_picture

        comparison_picture(result).savefig(options.plot)
    print(result.card(options.card))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
