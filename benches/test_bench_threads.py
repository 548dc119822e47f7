"""Two threads beside two calls that know nothing of each other.

What two threads gain over one depends on the machine, and on who else uses it. So each kernel is measured beside what
the machine gives at that moment: two calls of the same kernel at a time, each on one thread. They share nothing but the
machine, and on an idle one no program of two threads does better than half their time. Work of one thread, such calls
and work of two threads take turns, and the fastest of each counts.

The gate is three quarters of what such calls gain. Where neither they nor two threads gain 1.4 there are no two cores
to be had, and nothing to be said: work that has fallen back to one thread would reach three quarters too.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import milfast as mf
from milfast._core import bootstrap_auc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Turns: so many, and more while nothing has gained enough.
FEW, MOST = 30, 200
#: What two calls at the same time, or two threads, must gain.
BOTH_CORES = 1.4


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@pytest.fixture
def scaling(race: Any) -> Iterator[Callable[[str, Callable[[], Any]], None]]:
    if cores() < 2:
        pytest.skip(f"two threads need two cores: there is {cores()}")

    def measure(name: str, call: Callable[[], Any]) -> None:
        def on(threads: int) -> float:
            mf.set_num_threads(threads)
            return seconds(call)

        def both() -> float:
            mf.set_num_threads(1)
            return seconds(lambda: list(pool.map(lambda _: call(), range(2))))

        with ThreadPoolExecutor(2) as pool:
            on(2), both()  # threads are started, memory is warm
            one = two = apart = float("inf")
            for turn in range(MOST):
                one, two, apart = min(one, on(1)), min(two, on(2)), min(apart, both())
                gain = one / min(two, apart / 2)
                if turn >= FEW and gain >= BOTH_CORES:
                    break
        times = f"{short(one)} on one thread, {short(two)} on two, {short(apart)} for two calls at the same time"
        if gain < BOTH_CORES:
            pytest.skip(f"nothing gained {BOTH_CORES}, at most {gain:.2f}. {name}: {times}")
        print(f"{name}: {times}: gains {one / two:.2f} and {2 * one / apart:.2f}")
        race.record(name, two, "half of two calls", apart / 2)

    yield measure
    mf.set_num_threads(1)


def short(duration: float) -> str:
    return f"{duration * 1e3:.3g} ms"


def test_set_kernel(scaling: Any) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 15, 250)
    bags = mf.Bags(rng.standard_normal((sizes.sum(), 16)), np.cumsum([0, *sizes]))
    scaling("threads_bag_gram_250", lambda: mf.bag_gram(bags, gamma=0.05))


def test_many_areas(scaling: Any) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.standard_normal((2000, 200)), rng.integers(0, 2, 200)
    scaling("threads_auc_many_2000x200", lambda: mf.auc_many(scores, labels))


def test_bootstrap(scaling: Any) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 10_000)
    scores = rng.standard_normal(10_000) + labels
    scaling("threads_bootstrap_1e4x500", lambda: bootstrap_auc(scores, labels, 500, random_state=0))


def test_sampling(scaling: Any) -> None:
    # a call takes 0.15 ms of Python, on one thread whatever there is: nothing beside 100,000 bags, much beside 1,000
    scaling("threads_presence_20000", lambda: mf.sample_bags("presence", 20_000, random_state=0))


def test_jaccard_matrix(scaling: Any) -> None:
    sets = np.random.default_rng(0).random((800, 10_000), dtype=np.float32) < 0.1
    scaling("threads_jaccard_800x10000", lambda: mf.jaccard_matrix(sets))
