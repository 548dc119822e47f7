"""Error consistency beside matrix products, and beside numkong where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

import milfast as mf
from milfast.consistency import agreement_matrix, chance_level, error_consistency, summary
from milfast.consistency.sampling_error import draws

PEER = "numpy float32 matmul"


def error_sets(n_sets: int, n: int) -> np.ndarray:
    """Errors at a rate of one in ten, on samples of very different difficulty."""
    rng = np.random.default_rng(0)
    return rng.random((n_sets, n), dtype=np.float32) < rng.beta(0.2, 1.8, n).astype(np.float32)


def by_matmul(sets: np.ndarray) -> np.ndarray:
    """The fastest way without bits; exact up to 2^24 samples."""
    x = sets.astype(np.float32)
    both = x @ x.T
    sizes = np.diagonal(both)
    return both / (sizes[:, None] + sizes - both)


@pytest.mark.parametrize(("n_sets", "n", "rounds"), [(500, 768, 7), (2500, 10_000, 3), (1000, 100_000, 3)])
def test_jaccard_matrix(race: Any, n_sets: int, n: int, rounds: int) -> None:
    sets = error_sets(n_sets, n)
    np.testing.assert_allclose(mf.jaccard_matrix(sets), by_matmul(sets), rtol=1e-6)
    enough = 0.05 if n < 1000 else 0
    ours, peer = (lambda: mf.jaccard_matrix(sets)), (lambda: by_matmul(sets))
    race(f"jaccard_{n_sets}x{n}", ours, PEER, peer, rounds=rounds, enough=enough)


def test_summary_without_the_matrix(race: Any) -> None:
    sets = error_sets(2500, 4000)
    matrix = lambda: mf.jaccard_matrix(sets)  # noqa: E731
    assert summary(sets).mean == pytest.approx(agreement_matrix(sets, condensed=True).mean(), rel=1e-12)
    race("jaccard_summary_2500x4000", lambda: summary(sets), "mf.jaccard_matrix", matrix, enough=0)


@pytest.mark.parametrize(("n_sets", "n", "enough"), [(500, 768, 0.05), (2500, 10_000, 0)])
def test_jaccard_beside_numkong(race: Any, n_sets: int, n: int, enough: float) -> None:
    numkong = pytest.importorskip("numkong", reason="the peer, numkong, is absent: pip install numkong")
    packed = np.packbits(error_sets(n_sets, n), axis=1)

    def peer() -> Any:
        return numkong.jaccards_symmetric(packed, dtype="uint1")

    def ours() -> np.ndarray:
        return agreement_matrix(packed, condensed=True, n_samples=n, dtype="float32")

    # numkong gives distances, and only those above the diagonal
    np.testing.assert_allclose(ours(), 1 - np.asarray(peer())[np.triu_indices(n_sets, 1)], atol=1e-6)
    race(f"jaccard_{n_sets}x{n}_numkong", ours, "numkong, bits", peer, enough=enough)


def test_chance_levels(race: Any) -> None:
    """Of all pairs of 50 sizes, which 2,500 error sets of 768 samples may well have."""
    n, sizes = 768, np.arange(60, 110)
    i, j = np.triu_indices(len(sizes))
    a, b = sizes[i], sizes[j]

    logs = gammaln(np.arange(1, n + 2))  # of factorials
    both, first, second = np.arange(sizes.max() + 1), a[:, None], b[:, None]

    def choose(n: Any, k: Any) -> Any:
        return logs[n] - logs[k] - logs[np.maximum(n - k, 0)]

    def peer() -> np.ndarray:
        """All terms at once, by logarithms; scipy.stats.hypergeom takes some twenty times as long."""
        possible = (both <= first) & (both <= second)
        log = choose(first, both) + choose(n - first, np.maximum(second - both, 0)) - choose(n, second)
        return (np.where(possible, np.exp(log), 0) * (both / np.maximum(first + second - both, 1))).sum(axis=1)

    np.testing.assert_allclose(chance_level(n, a, b), peer(), rtol=1e-10)
    race("chance_levels_1275", lambda: chance_level(n, a, b), "numpy, logarithms", peer, enough=0.02)


def test_bootstrap_of_the_mean(race: Any) -> None:
    sets = error_sets(500, 768)
    found = error_consistency(sets)
    x = sets.astype(np.float32)

    def peer() -> np.ndarray:
        means = []
        for drawn in draws(768, 10, 0):
            weighted = x * drawn.astype(np.float32)
            both = weighted @ x.T
            sizes = both.diagonal()
            means.append((np.sum(both / (sizes[:, None] + sizes - both)) - 500) / (500 * 499))
        return np.array(means)

    def ours() -> np.ndarray:
        return found.replicates(n_replicates=10, random_state=0)

    np.testing.assert_allclose(ours(), peer(), rtol=1e-5)
    race("jaccard_bootstrap_500x768", ours, PEER, peer)
