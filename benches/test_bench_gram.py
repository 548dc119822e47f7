"""Kernel matrices beside scikit-learn's rbf_kernel and numpy's matmul and exp.

What bounds them: without fused multiply-add (whose bits differ), a pair of instances takes d + 17 additions in float64
and d + 12 in float32 (distance, range reduction, polynomial), and about as many multiplications beside them. A core
that adds one vector of 512 bits a cycle, as AVX-512 of Zen 4 does, adds 3.7 of them a nanosecond at best: 1.1 ns a
pair in float64 and 0.5 ns in float32 for d = 16, each pair of bags being computed once. The bench of 1,000 bags takes
1.9 ns and 0.9 ns on a busy machine, where long runs of nothing but such additions reach 2.1 to 3.2 a nanosecond (and so
bound a pair by 1.3 to 2.0 ns and 0.5 to 0.8 ns).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import milfast as mf

if TYPE_CHECKING:
    from collections.abc import Callable

rbf_kernel = pytest.importorskip("sklearn.metrics.pairwise", reason="the peer, scikit-learn, is absent").rbf_kernel

SKLEARN = "sklearn rbf_kernel"
NUMPY = "numpy matmul + exp"


def with_numpy(x: np.ndarray, gamma: float) -> np.ndarray:
    norms = np.einsum("ij,ij->i", x, x)
    k = x @ x.T
    k *= 2
    k -= norms
    k -= norms[:, None]
    k *= gamma
    return np.exp(k, out=k)


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n", "d"), [(4000, 16), (2500, 166)])
def test_matrix_of_instances(race: Any, n: int, d: int, dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    gamma = x.dtype.type(0.8 / d)
    peers = {SKLEARN: lambda: rbf_kernel(x, gamma=gamma), NUMPY: lambda: with_numpy(x, gamma)}

    def ours() -> np.ndarray:
        return mf.rbf_gram(x, gamma=gamma)

    k = ours()
    for peer in peers.values():
        np.testing.assert_allclose(k, peer(), rtol=0, atol=1e-12 if dtype == "float64" else 1e-5)
    assert (np.diagonal(k) == 1).all()
    faster = min(peers, key=lambda name: min(seconds_of(peers[name]) for _ in range(3)))
    race(f"rbf_gram_{n}x{d}_{dtype}", ours, faster, peers[faster], enough=0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_matrix_of_bags(race: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 15, 1000)
    bags = mf.Bags(rng.standard_normal((sizes.sum(), 16)).astype(dtype), np.cumsum([0, *sizes]))

    def peer() -> np.ndarray:
        """Blocks of rows, so that neither side needs the matrix of all pairs."""
        x, starts = bags.instances, bags.offsets[:-1]
        blocks = [
            np.add.reduceat(rbf_kernel(x[i : i + 2048], x, gamma=0.05), starts, axis=1) for i in range(0, len(x), 2048)
        ]
        return np.add.reduceat(np.concatenate(blocks), starts, axis=0)

    def ours() -> np.ndarray:
        return mf.bag_gram(bags, gamma=0.05)

    np.testing.assert_allclose(ours(), peer(), rtol=1e-9 if dtype == "float64" else 1e-4)
    race(f"bag_gram_1000_{dtype}", ours, f"{SKLEARN} + reduceat", peer, rounds=5, enough=0)


def test_matches_of_bags(race: Any) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 15, 300)
    bags = mf.Bags(rng.standard_normal((sizes.sum(), 16)), np.cumsum([0, *sizes]))

    def peer() -> np.ndarray:
        starts = bags.offsets[:-1]
        best = np.maximum.reduceat(rbf_kernel(bags.instances, gamma=0.05), starts, axis=1)
        means = np.add.reduceat(best, starts, axis=0) / bags.sizes[:, None]
        return (means + means.T) / 2

    def ours() -> np.ndarray:
        return mf.bag_gram(bags, gamma=0.05, set_kernel="match")

    np.testing.assert_allclose(ours(), peer(), rtol=1e-9)
    race("bag_match_300", ours, f"{SKLEARN} + reduceat", peer)
