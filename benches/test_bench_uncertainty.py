"""DeLong's variance and bootstrap replicates of the AUC beside the same in numpy and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from milfast._core import bootstrap_auc, delong, delong_covariance
from milfast.uncertainty import auc_interval, f1_interval

rankdata = pytest.importorskip("scipy.stats", reason="the peer, scipy, is absent").rankdata
roc_auc_score = pytest.importorskip("sklearn.metrics", reason="the peer, scikit-learn, is absent").roc_auc_score


def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, n)
    return rng.standard_normal(n) + labels, labels


def placed(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Placements from midranks, as Sun & Xu (2014)."""
    pos, neg = scores[labels == 1], scores[labels == 0]
    ranks = rankdata(np.concatenate([pos, neg]))
    of_pos = (ranks[: len(pos)] - rankdata(pos)) / len(neg)
    return of_pos, 1 - (ranks[len(pos) :] - rankdata(neg)) / len(pos)


def covariance(models: np.ndarray, labels: np.ndarray) -> np.ndarray:
    of_pos, of_neg = (np.array(side) for side in zip(*(placed(row, labels) for row in models), strict=True))
    return np.cov(of_pos) / of_pos.shape[1] + np.cov(of_neg) / of_neg.shape[1]


def test_variance(race: Any) -> None:
    scores, labels = drawn(100_000)
    peer = lambda: covariance(scores[None], labels)  # noqa: E731
    assert delong(scores, labels)[1] == pytest.approx(float(peer()), rel=1e-9)
    race("delong_1e5", lambda: delong(scores, labels), "scipy rankdata", peer, enough=0)


def test_covariance(race: Any) -> None:
    scores, labels = drawn(100_000)
    models = np.stack([scores, scores**3 + np.random.default_rng(1).standard_normal(len(scores)), -scores])
    peer = lambda: covariance(models, labels)  # noqa: E731
    np.testing.assert_allclose(delong_covariance(models, labels)[1], peer(), rtol=1e-9)
    race("delong_3x1e5", lambda: delong_covariance(models, labels), "scipy rankdata", peer, enough=0)


def test_bootstrap(race: Any) -> None:
    scores, labels = drawn(10_000)
    rng = np.random.default_rng(2)

    def peer() -> np.ndarray:
        """Sorted once; 100 of the 2,000 replicates are enough for the peer: it is a loop."""
        positive = labels[np.argsort(scores)]
        areas = np.empty(100)
        for i in range(100):
            times = np.bincount(rng.integers(0, len(scores), len(scores)), minlength=len(scores))
            pos = times * positive
            below = np.cumsum(times - pos)
            areas[i] = (pos * below).sum() / (pos.sum() * below[-1])
        return areas

    def ours() -> np.ndarray:
        return bootstrap_auc(scores, labels, 2000, stratified=False, random_state=0)

    found, wanted = ours(), peer()
    assert found.mean() == pytest.approx(wanted.mean(), abs=6 * wanted.std() / 100**0.5)
    assert found.std() == pytest.approx(wanted.std(), rel=0.3)
    race("bootstrap_1e4x2000", ours, "numpy sort and bincount", peer, rounds=40, enough=0, peer_scale=20)


def test_bootstrap_beside_a_loop(race: Any) -> None:
    scores, labels = drawn(10_000)
    rng = np.random.default_rng(2)

    def peer() -> list[float]:
        """As it is usually written; 10 of the 2,000 replicates."""
        chosen = (rng.integers(0, len(scores), len(scores)) for _ in range(10))
        return [roc_auc_score(labels[i], scores[i]) for i in chosen]

    def ours() -> np.ndarray:
        return bootstrap_auc(scores, labels, 2000, stratified=False, random_state=0)

    assert np.mean(peer()) == pytest.approx(ours().mean(), abs=6 * ours().std() / 10**0.5)
    race("bootstrap_1e4x2000_loop", ours, "loop of sklearn roc_auc_score", peer, rounds=5, enough=0, peer_scale=200)


def midranks(values: np.ndarray) -> np.ndarray:
    """Average ranks, group by group of ties, as packages that offer DeLong's test take them."""
    order = np.argsort(values)
    ordered = values[order]
    n = len(values)
    ranks = np.zeros(n)
    i = 0
    while i < n:
        j = i
        while j < n and ordered[j] == ordered[i]:
            j += 1
        ranks[i:j] = 0.5 * (i + j - 1) + 1
        i = j
    found = np.empty(n)
    found[order] = ranks
    return found


def test_variance_beside_a_loop_of_midranks(race: Any) -> None:
    scores, labels = drawn(100_000)

    def peer() -> float:
        pos, neg = scores[labels == 1], scores[labels == 0]
        ranks = midranks(np.concatenate([pos, neg]))
        of_pos = (ranks[: len(pos)] - midranks(pos)) / len(neg)
        of_neg = 1 - (ranks[len(pos) :] - midranks(neg)) / len(pos)
        return float(np.cov(of_pos) / len(pos) + np.cov(of_neg) / len(neg))

    assert auc_interval(scores, labels, method="delong").half_width == pytest.approx(
        1.959963984540054 * peer() ** 0.5, rel=1e-9
    )
    race("delong_1e5_loop", lambda: auc_interval(scores, labels), "loop of midranks", peer, rounds=5, enough=0)


def test_bca(race: Any) -> None:
    scores, labels = drawn(10_000)
    rng = np.random.default_rng(2)
    positive = labels[np.argsort(scores)]

    def peer() -> np.ndarray:
        """100 of the 2,000 replicates, and no jackknife, of which each value would take as long as a replicate."""
        areas = np.empty(100)
        for i in range(100):
            times = np.bincount(rng.integers(0, len(scores), len(scores)), minlength=len(scores))
            pos = times * positive
            below = np.cumsum(times - pos)
            areas[i] = (pos * below).sum() / (pos.sum() * below[-1])
        return areas

    def ours() -> Any:
        return auc_interval(scores, labels, method="bca")

    assert ours().half_width == pytest.approx(1.96 * peer().std(), rel=0.3)
    race("bca_1e4x2000", ours, "numpy, percentiles only", peer, rounds=20, enough=0, peer_scale=20)


def test_bca_beside_a_loop(race: Any) -> None:
    scores, labels = drawn(10_000)
    rng = np.random.default_rng(2)

    def peer() -> list[float]:
        """10 of the 12,000 calls that 2,000 replicates and the jackknife take."""
        chosen = (rng.integers(0, len(scores), len(scores)) for _ in range(10))
        return [roc_auc_score(labels[i], scores[i]) for i in chosen]

    assert np.mean(peer()) == pytest.approx(auc_interval(scores, labels).estimate, abs=0.02)
    race(
        "bca_1e4x2000_loop",
        lambda: auc_interval(scores, labels, method="bca"),
        "loop of sklearn roc_auc_score",
        peer,
        rounds=5,
        enough=0,
        peer_scale=1200,
    )


def test_resampled_f1(race: Any) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 4, 10_000)
    predictions = np.where(rng.random(10_000) < 0.8, labels, rng.integers(0, 4, 10_000))
    cell = 4 * labels + predictions

    def peer() -> list[float]:
        """100 of the 2,000 replicates, each of a table that numpy counts."""
        found = []
        for _ in range(100):
            table = np.bincount(cell[rng.integers(0, 10_000, 10_000)], minlength=16).reshape(4, 4)
            found.append(float(np.mean(2 * table.diagonal() / (table.sum(axis=0) + table.sum(axis=1)))))
        return found

    def ours() -> Any:
        return f1_interval(predictions, labels, average="macro", method="percentile")

    assert ours().half_width == pytest.approx(1.96 * np.std(peer()), rel=0.3)
    race("f1_1e4x2000", ours, "numpy, tables of resampled items", peer, rounds=10, enough=0, peer_scale=20)


def test_clustered_areas(race: Any) -> None:
    scores, labels = drawn(10_000)
    of = np.arange(10_000) // 10
    rng = np.random.default_rng(4)

    def peer() -> list[float]:
        """10 of the 500 replicates, each a gather of whole clusters."""
        found = []
        for _ in range(10):
            items = (10 * rng.integers(0, 1000, 1000)[:, None] + np.arange(10)).ravel()
            found.append(roc_auc_score(labels[items], scores[items]))
        return found

    def ours() -> Any:
        return auc_interval(scores, labels, clusters=of, method="percentile", n_boot=500)

    assert ours().half_width == pytest.approx(1.96 * np.std(peer()), rel=0.8)
    race("auc_clusters_1e4x500", ours, "loop of sklearn roc_auc_score", peer, rounds=3, enough=0, peer_scale=50)
