"""Kernel matrices beside scikit-learn's rbf_kernel and numpy's matmul and exp.

What bounds them: a pair of instances takes a multiply-add for each feature and one for each coefficient of the
exponential function, 11 in float64 and 6 in float32. The floor of a bench is their number, each unordered pair counted
once, over the multiply-adds a second that a matrix product of BLAS reaches beside it. The matrix that is returned has
to be written as well, to memory that is new: the time to fill a new array of its size is in the floor. Nothing else
that has to be done (distances, range reduction, sums, the mirror image) is. The table says how many times the floor
milfast takes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import milfast as mf
from benches.conftest import Floor

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


def floor(pairs: float, d: int, dtype: str, n_written: int, written: str) -> Floor:
    """Multiply-adds of `pairs` kernel values at the speed of a matrix product, and the first write of the matrix."""
    n = 768
    a = np.random.default_rng(0).standard_normal((n, n)).astype(dtype)
    out = np.empty_like(a)
    calls = pairs * (d + (11 if dtype == "float64" else 6)) / n**3
    return Floor(lambda: np.matmul(a, a, out=out), calls, first_write(n_written, written))


def first_write(n: int, dtype: str) -> float:
    """Seconds that it takes to fill a new matrix."""
    return min(seconds_of(lambda: np.empty((n, n), dtype).fill(1)) for _ in range(5))


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n", "d"), [(10000, 16), (5000, 166)])
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
    del k
    faster = min(peers, key=lambda name: min(seconds_of(peers[name]) for _ in range(2)))
    bound = floor(n * (n + 1) / 2, d, dtype, n, dtype)
    race(f"rbf_gram_{n}x{d}_{dtype}", ours, faster, peers[faster], rounds=5, enough=0, floor=bound)


def bags_of(n: int, dtype: str) -> mf.Bags:
    """Bags of 2 to 14 instances, as those of the presence check."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 15, n)
    return mf.Bags(rng.standard_normal((sizes.sum(), 16)).astype(dtype), np.cumsum([0, *sizes]))


def summed(bags: mf.Bags, rows: int) -> np.ndarray:
    """Sums over the columns of each bag in blocks of rows, so that neither side needs the matrix of all pairs."""
    x, starts = bags.instances, bags.offsets[:-1]
    blocks = [np.add.reduceat(rbf_kernel(x[i : i + 2048], x, gamma=0.05), starts, axis=1) for i in range(0, rows, 2048)]
    return np.concatenate(blocks)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1000, 5000])
def test_matrix_of_bags(race: Any, n: int, dtype: str) -> None:
    bags = bags_of(n, dtype)
    rows = len(bags.instances)
    # of 5,000 bags the peer gets every fifth block of rows, which take it seconds: all of them are as many times that
    some = min(rows, 8192)

    def peer() -> np.ndarray:
        return np.add.reduceat(summed(bags, some), bags.offsets[:-1][bags.offsets[:-1] < some], axis=0)

    def ours() -> np.ndarray:
        return mf.bag_gram(bags, gamma=0.05)

    whole = int((bags.offsets[1:] <= some).sum())
    np.testing.assert_allclose(ours()[:whole], peer()[:whole], rtol=1e-9 if dtype == "float64" else 1e-4)
    bound = floor(rows * (rows + 1) / 2, 16, dtype, n, "float64")
    turns = {"rounds": 12, "repeats": 2} if n == 1000 else {"rounds": 3}
    name, scale = f"bag_gram_{n}_{dtype}", rows / some
    race(name, ours, f"{SKLEARN} + reduceat", peer, enough=0, peer_scale=scale, floor=bound, **turns)


MEMORY = """
import resource
import numpy as np
import milfast as mf

rng = np.random.default_rng(0)
sizes = rng.integers(2, 15, 5000)
bags = mf.Bags(rng.standard_normal((sizes.sum(), 16)), np.cumsum([0, *sizes]))
mf.bag_gram(bags[:50], gamma=0.05)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
mf.bag_gram(bags, gamma=0.05)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the peak is not in KiB, or not known")
def test_memory_of_5000_bags() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    # the result alone is 0.2 GB; the matrix of all pairs of instances would be 12.7 GB
    assert int(done.stdout) * 1024 < 0.23e9


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
