"""Kernel matrices beside scikit-learn's rbf_kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import milfast as mf

rbf_kernel = pytest.importorskip("sklearn.metrics.pairwise", reason="the peer, scikit-learn, is absent").rbf_kernel

PEER = "sklearn rbf_kernel"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_matrix_of_instances(race: Any, dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((3000, 16)).astype(dtype)
    ours, peer = (lambda: mf.rbf_gram(x, gamma=0.05)), (lambda: rbf_kernel(x, gamma=0.05))
    np.testing.assert_allclose(ours(), peer(), rtol=0, atol=1e-12 if dtype == "float64" else 1e-5)
    race(f"rbf_gram_3000x16_{dtype}", ours, PEER, peer, enough=0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_matrix_of_bags(race: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 15, 300)
    bags = mf.Bags(rng.standard_normal((sizes.sum(), 16)).astype(dtype), np.cumsum([0, *sizes]))

    def peer() -> np.ndarray:
        starts = bags.offsets[:-1]
        columns = np.add.reduceat(rbf_kernel(bags.instances, gamma=0.05), starts, axis=1)
        return np.add.reduceat(columns, starts, axis=0)

    def ours() -> np.ndarray:
        return mf.bag_gram(bags, gamma=0.05)

    np.testing.assert_allclose(ours(), peer(), rtol=1e-9 if dtype == "float64" else 1e-4)
    race(f"bag_gram_300_{dtype}", ours, f"{PEER} + reduceat", peer)
