"""The area under the ROC curve beside scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import milfast as mf

roc_auc_score = pytest.importorskip("sklearn.metrics", reason="the peer, scikit-learn, is absent").roc_auc_score

PEER = "sklearn roc_auc_score"


@pytest.mark.parametrize(
    ("name", "n", "enough"), [("auc_100", 100, 0.05), ("auc_1e4", 10_000, 0.05), ("auc_1e6", 10**6, 0)]
)
def test_auc(race: Any, name: str, n: int, enough: float) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.standard_normal(n), rng.integers(0, 2, n)
    assert mf.auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    race(name, lambda: mf.auc(scores, labels), PEER, lambda: roc_auc_score(labels, scores), enough=enough)


def test_auc_of_many_rows(race: Any) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.standard_normal((2000, 200)), rng.integers(0, 2, 200)

    def peer() -> list[float]:
        return [roc_auc_score(labels, row) for row in scores[:100]]

    np.testing.assert_allclose(mf.auc_many(scores[:100], labels), peer(), rtol=0, atol=1e-12)
    # 100 rows of 2,000 are enough for the peer: it is a loop.
    ours = lambda: mf.auc_many(scores, labels)  # noqa: E731
    race("auc_many_2000x200", ours, f"loop of {PEER}", peer, rounds=5, peer_scale=20)
