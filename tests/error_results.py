"""Results with error sets of one's own, for tests of what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from milfast.consistency import CrossValidated


def result(
    errors: Any, *, classes: Any = (0, 1), predictions: Any = None, predicted: Any = (1, 1), majority: float = 0.5
) -> CrossValidated:
    errors = np.asarray(errors, dtype=bool)
    return CrossValidated(
        model="model",
        classes=np.array(classes),
        errors=np.packbits(errors, axis=1),
        n_samples=errors.shape[1],
        predicted=np.array(predicted),
        majority=majority,
        approach="internal",
        repeats=len(errors),
        folds=5,
        stopped="repeats",
        seed=0,
        seconds=0.0,
        predictions=None if predictions is None else np.asarray(predictions),
    )


def runs(seed: int, *, m: int = 20, n: int = 400, easy: float = 0.3, hard: float = 1.2, base: Any = None) -> Any:
    """Error sets of runs whose samples differ in difficulty: low `easy` and `hard` for consistent errors."""
    rng = np.random.default_rng(seed)
    difficulty = rng.beta(easy, hard, n) if base is None else base
    return rng.random((m, n)) < difficulty


def certain(n: int, wrong: int, first: int = 0) -> Any:
    """Difficulties of which `wrong` are near 1, and the rest near 0."""
    base = np.full(n, 0.005)
    base[first : first + wrong] = 0.99
    return base
