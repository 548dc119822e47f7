"""DeLong's variance and bootstrap replicates of the AUC beside the same in numpy and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from milfast._core import bootstrap_auc, delong, delong_covariance

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
