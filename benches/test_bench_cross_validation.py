"""Repeated cross-validation beside the loop that one would write, which is also what the reference package does.

The time is that of fitting: both call the same scikit-learn. What can be saved is validation that is the same in every
fit, leave-one-out consistency by counts instead of a look at all other sets, and with two processes half of the rest.
Data of the size and kind of Pima (768 samples, 8 features, standardised), which are not part of the repository.
"""

from __future__ import annotations

import os
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from milfast.consistency import cross_validate_consistency

from .test_bench_threads import cores

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.conftest import Race

X, Y = make_classification(768, 8, n_informative=5, weights=[0.65], flip_y=0.3, random_state=0)
X = StandardScaler().fit_transform(X)
MODEL = LogisticRegression(max_iter=1000)


def ours(repeats: int, n_jobs: int) -> tuple[float, float, float]:
    found = cross_validate_consistency(MODEL, X, Y, repeats=repeats, n_jobs=n_jobs, random_state=0)
    return found.accuracy, found.consistency.mean, found.consistency.leave_one_out


def plain_loop(repeats: int) -> tuple[float, float, float]:
    errors = []
    for repeat in range(repeats):
        predicted = np.empty_like(Y)
        for train, test in StratifiedKFold(5, shuffle=True, random_state=repeat).split(X, Y):
            predicted[test] = clone(MODEL).fit(X[train], Y[train]).predict(X[test])
        errors.append(predicted != Y)
    sets = np.array(errors)
    numbers = sets.astype(np.float32)
    shared = numbers @ numbers.T
    sizes = numbers.sum(axis=1)
    jaccard = shared / (sizes[:, None] + sizes - shared)
    left_out = []
    for k in range(repeats):
        others = np.delete(sets, k, axis=0)
        left_out.append(others.all(axis=0).sum() / others.any(axis=0).sum())
    return 1 - sets.mean(), jaccard[np.triu_indices(repeats, 1)].mean(), float(np.mean(left_out))


def test_they_find_the_same() -> None:
    for found, expected in zip(ours(100, 1), plain_loop(100), strict=True):
        assert found == pytest.approx(expected, abs=0.02)


def race_of(race: Race, repeats: int, n_jobs: int, rounds: int, clock: Callable[[], float]) -> None:
    times = []
    ours(repeats, n_jobs)  # starts the processes
    for _ in range(rounds):
        row = []
        for call in (lambda: ours(repeats, n_jobs), lambda: plain_loop(repeats)):
            start = clock()
            call()
            row.append(clock() - start)
        times.append(row)
    best = [min(column) for column in zip(*times, strict=True)]
    race.record(f"cross_validate_{repeats}_jobs_{n_jobs}", best[0], "a plain loop", best[1])


def test_one_process(race: Race) -> None:
    """In processor time, which a busy machine stretches less."""
    race_of(race, 100, 1, 5, process_time)


def test_two_processes(race: Race) -> None:
    if cores() < 2 or os.getloadavg()[0] > 0.5:
        pytest.skip("two processes need two idle cores")
    race_of(race, 500, 2, 3, perf_counter)
