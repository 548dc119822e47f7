"""Bags of the presence check beside the same law written for numpy and torch, with and without a loop over bags.

What bounds them: each feature is a normal number, and each is written to memory that is new. The floor of a bench is
the time that as many normal numbers take where they stay in the cache and bags are few, and the time to fill a new
array of their size; plans, kinds, means and deviations are not in it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import milfast as mf
from milfast.checks import BagRecipe, Component, Draw

if TYPE_CHECKING:
    from collections.abc import Callable

N_BAGS = 100_000
N_FEATURES = 16
BACKGROUND, POISON, WIDE, SHIFTED = range(4)
MEANS = np.array([0.0, -10.0, 0.0, 1.0])
DEVIATIONS = np.sqrt([1.0, 0.1, 3.0, 1.0])


def with_numpy(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Instances, offsets and labels of training bags of the paper's recipe."""
    labels = rng.permutation(np.repeat([0, 1], N_BAGS // 2))
    background = rng.integers(1, 10, N_BAGS, endpoint=True)
    special = np.where(labels == 1, rng.integers(1, 4, N_BAGS, endpoint=True), 1)
    sizes = background + special
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    bag = np.repeat(np.arange(N_BAGS), sizes)
    place = np.arange(offsets[-1]) - offsets[bag]
    concept = rng.integers(WIDE, SHIFTED, len(bag), endpoint=True)
    kinds = np.where(place < background[bag], BACKGROUND, np.where(labels[bag] == 1, concept, POISON))
    kinds = kinds[np.lexsort((rng.random(len(bag)), bag))]  # shuffled within each bag
    x = rng.standard_normal((len(bag), N_FEATURES), dtype=dtype)
    x *= DEVIATIONS.astype(dtype)[kinds, None]
    x += MEANS.astype(dtype)[kinds, None]
    return x, offsets, labels


def with_torch(generator: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """The same with torch."""
    torch = pytest.importorskip("torch")

    def integers(low: int, high: int, n: int) -> Any:
        return torch.randint(low, high + 1, (n,), generator=generator)

    labels = torch.arange(N_BAGS)[torch.randperm(N_BAGS, generator=generator)] % 2
    background = integers(1, 10, N_BAGS)
    sizes = background + torch.where(labels == 1, integers(1, 4, N_BAGS), 1)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), torch.cumsum(sizes, 0)])
    n = int(offsets[-1])
    bag = torch.repeat_interleave(sizes)
    place = torch.arange(n) - offsets[bag]
    kinds = torch.where(
        place < background[bag], BACKGROUND, torch.where(labels[bag] == 1, integers(WIDE, SHIFTED, n), POISON)
    )
    kinds = kinds[torch.argsort(bag + torch.rand(n, generator=generator, dtype=torch.float64))]
    x = torch.randn((n, N_FEATURES), dtype=dtype, generator=generator)
    x *= torch.as_tensor(DEVIATIONS, dtype=dtype)[kinds, None]
    x += torch.as_tensor(MEANS, dtype=dtype)[kinds, None]
    return x, offsets, labels


def bag_by_bag(rng: np.random.Generator, n_bags: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same as one would write it down: a loop over bags, a call for each block of instances of one law."""
    bags = []
    labels = rng.permutation(np.repeat([0, 1], n_bags // 2))
    for label in labels:
        if label:
            wide = rng.binomial(special := rng.integers(1, 4, endpoint=True), 0.5)
            blocks = [(WIDE, wide), (SHIFTED, special - wide)]
        else:
            blocks = [(POISON, 1)]
        blocks.append((BACKGROUND, rng.integers(1, 10, endpoint=True)))
        parts = [rng.normal(MEANS[kind], DEVIATIONS[kind], (n, N_FEATURES)) for kind, n in blocks if n > 0]
        bag = np.concatenate(parts).astype(np.float32)
        rng.shuffle(bag)
        bags.append(bag)
    return np.concatenate(bags), np.cumsum([0, *map(len, bags)]), labels


def ours(dtype: str) -> mf.Bags:
    return mf.sample_bags("presence", N_BAGS, recipe="paper", random_state=0, dtype=dtype)


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def floor(dtype: str) -> float:
    """Seconds that the normal numbers of the bags and a first write of them take."""
    plain = (Component("background", concept="none"), Component("other"))
    rows = 4096
    recipe = BagRecipe(
        name="plain",
        components=plain,
        negative=(Draw("other", rows),),
        positive=(Draw("background", rows),),
        n_features=N_FEATURES,
    )
    few = min(seconds_of(lambda: recipe.sample(2, random_state=0, dtype=dtype)) for _ in range(100))
    size = ours(dtype).instances.size
    first_write = min(seconds_of(lambda: np.empty(size, dtype).fill(1)) for _ in range(7))
    return few / (2 * rows * N_FEATURES) * size + first_write


def same_law(bags: mf.Bags, x: Any, offsets: Any, labels: Any) -> None:
    """Sizes and features agree within six standard errors."""
    x, sizes, labels = np.asarray(x), np.diff(np.asarray(offsets)), np.asarray(labels)
    assert labels.mean() == bags.labels.mean() == 0.5
    assert sizes.mean() == pytest.approx(bags.sizes.mean(), abs=6 * 3.1 * (1 / len(sizes) + 1 / N_BAGS) ** 0.5)
    assert x.mean(dtype=float) == pytest.approx(bags.instances.mean(dtype=float), abs=0.06)
    assert x.std(dtype=float) == pytest.approx(bags.instances.std(dtype=float), rel=0.02)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_beside_numpy(race: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    same_law(ours(dtype), *with_numpy(rng, dtype))
    race(
        f"presence_1e5_{dtype}",
        lambda: ours(dtype),
        "numpy without loops",
        lambda: with_numpy(rng, dtype),
        enough=0,
        floor=floor(dtype),
    )


def test_beside_torch(race: Any) -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    same_law(ours("float32"), *with_torch(generator, torch.float32))
    race(
        "presence_1e5_torch",
        lambda: ours("float32"),
        "torch without loops",
        lambda: with_torch(generator, torch.float32),
        enough=0,
        floor=floor("float32"),
    )


def test_beside_a_loop_over_bags(race: Any) -> None:
    rng, few = np.random.default_rng(0), N_BAGS // 10
    same_law(ours("float32"), *bag_by_bag(rng, few))
    race(
        "presence_1e5_loop",
        lambda: ours("float32"),
        "numpy, one call a block",
        lambda: bag_by_bag(rng, few),
        rounds=5,
        enough=0,
        peer_scale=10,
    )
