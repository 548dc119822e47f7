"""The area under the ROC curve beside scikit-learn's, and beside a sort and a scan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import milfast as mf

roc_auc_score = pytest.importorskip("sklearn.metrics", reason="the peer, scikit-learn, is absent").roc_auc_score

PEER = "sklearn roc_auc_score"


def data(kind: str, n: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, n)
    scores = rng.standard_normal(n) + 0.5 * labels
    if kind == "tied":
        scores = np.round(scores, 2)
    elif kind == "saturated":
        scores = 1 / (1 + np.exp(-12 * scores))
    return scores.astype(dtype), labels


@pytest.mark.parametrize(
    ("name", "n", "enough"), [("auc_100", 100, 0.05), ("auc_1e4", 10_000, 0.05), ("auc_1e6", 10**6, 0)]
)
def test_auc(race: Any, name: str, n: int, enough: float) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.standard_normal(n), rng.integers(0, 2, n)
    assert mf.auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    race(name, lambda: mf.auc(scores, labels), PEER, lambda: roc_auc_score(labels, scores), enough=enough)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["continuous", "tied", "saturated"])
def test_auc_of_hard_and_easy_scores(race: Any, kind: str, dtype: str) -> None:
    scores, labels = data(kind, 100_000, dtype)
    assert mf.auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    ours, peer = (lambda: mf.auc(scores, labels)), (lambda: roc_auc_score(labels, scores))
    race(f"auc_1e5_{kind}_{dtype}", ours, PEER, peer, enough=0.01)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["continuous", "tied", "saturated"])
def test_auc_beside_an_argsort(race: Any, kind: str, dtype: str) -> None:
    # The fastest other way is to sort with numpy and to scan in compiled code: not even its sort may be as fast.
    scores, labels = data(kind, 10**6, dtype)
    race(f"argsort_1e6_{kind}_{dtype}", lambda: mf.auc(scores, labels), "numpy argsort", scores.argsort, enough=0)


def test_auc_of_many_rows(race: Any) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.standard_normal((2000, 200)), rng.integers(0, 2, 200)

    def peer() -> list[float]:
        return [roc_auc_score(labels, row) for row in scores[:100]]

    np.testing.assert_allclose(mf.auc_many(scores[:100], labels), peer(), rtol=0, atol=1e-12)
    # 100 rows of 2,000 are enough for the peer: it is a loop.
    ours = lambda: mf.auc_many(scores, labels)  # noqa: E731
    race("auc_many_2000x200", ours, f"loop of {PEER}", peer, rounds=5, peer_scale=20)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_auc_of_many_rows_beside_an_argsort(race: Any, dtype: str) -> None:
    # The fastest other way to rank many short rows, and it does not even look at ties.
    rng = np.random.default_rng(0)
    scores, labels = rng.standard_normal((10_000, 200)).astype(dtype), rng.integers(0, 2, 200)
    ours, peer = (lambda: mf.auc_many(scores, labels)), (lambda: np.argsort(scores, axis=1))
    race(f"argsort_10000x200_{dtype}", ours, "numpy argsort of rows", peer, enough=0)


def test_accumulator(race: Any) -> None:
    scores, labels = data("continuous", 10**6, "float64")

    def ours() -> mf.AUCAccumulator:
        accumulator = mf.AUCAccumulator()
        accumulator.update(scores, labels)
        return accumulator

    result = ours().result()
    assert result.low <= roc_auc_score(labels, scores) <= result.high
    race("accumulator_1e6", lambda: ours().result(), PEER, lambda: roc_auc_score(labels, scores), enough=0)
