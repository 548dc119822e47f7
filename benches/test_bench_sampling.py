"""Bags of the presence check beside the same law written for numpy, without a loop over bags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import milfast as mf

N_BAGS = 20_000
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
    x = rng.standard_normal((len(bag), 16), dtype=dtype)
    x *= DEVIATIONS.astype(dtype)[kinds, None]
    x += MEANS.astype(dtype)[kinds, None]
    return x, offsets, labels


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sampling(race: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)

    def ours() -> mf.Bags:
        return mf.sample_bags("presence", N_BAGS, recipe="paper", random_state=0, dtype=dtype)

    def peer() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return with_numpy(rng, dtype)

    # The same law: sizes and features agree within six standard errors.
    bags, (x, offsets, labels) = ours(), peer()
    assert labels.sum() == bags.labels.sum()
    assert np.diff(offsets).mean() == pytest.approx(bags.sizes.mean(), abs=6 * 3.1 * (2 / N_BAGS) ** 0.5)
    assert x.mean(dtype=float) == pytest.approx(bags.instances.mean(dtype=float), abs=0.02)
    assert x.std(dtype=float) == pytest.approx(bags.instances.std(dtype=float), rel=0.02)
    race(f"presence_20000_{dtype}", ours, "numpy without loops", peer, enough=0)
