"""Bootstrap replicates of the AUC: laws, pairing, threads, degenerate cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import milfast as mf
from milfast._core import bootstrap_auc, delong


def drawn(n: int, seed: int = 0, levels: int = 10**6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 3 == 0).astype(int)
    return rng.integers(0, levels, n) + labels * levels // 3, labels


@given(st.integers(2, 6), st.data())
def test_every_replicate_is_the_area_of_some_resample(n: int, data: st.DataObject) -> None:
    scores = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    labels = data.draw(st.permutations([0, 1, *data.draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))]))
    pos, neg = ([s for s, y in zip(scores, labels, strict=True) if y == c] for c in (1, 0))

    def weights(m: int) -> list[tuple[int, ...]]:
        return [w for w in np.ndindex(*[m + 1] * m) if sum(w) == m]

    def area(p: tuple[int, ...], q: tuple[int, ...]) -> float:
        wins = sum(
            a * b * (2 * (x > z) + (x == z)) for a, x in zip(p, pos, strict=True) for b, z in zip(q, neg, strict=True)
        )
        return wins / (2 * len(pos) * len(neg))

    possible = {area(p, q) for p in weights(len(pos)) for q in weights(len(neg))}
    assert set(bootstrap_auc(scores, labels, 200, random_state=1).tolist()) <= possible


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("levels", [12, 10**6])
def test_mean_and_spread_are_those_of_the_area(stratified: bool, levels: int) -> None:
    scores, labels = drawn(600, levels=levels)
    replicates = bootstrap_auc(scores, labels, 4000, stratified=stratified, random_state=3)
    auc, variance, _, _ = delong(scores, labels)
    error = (variance / 4000) ** 0.5
    assert abs(replicates.mean() - auc) < 5 * error
    # The bootstrap's own variance is DeLong's but for terms of one over the class size.
    assert replicates.var() == pytest.approx(variance, rel=5 * (2 / 4000) ** 0.5 + 0.01)


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint64"])
def test_only_the_order_of_the_scores_matters(stratified: bool, dtype: str) -> None:
    scores, labels = drawn(500, levels=100)
    want = bootstrap_auc(scores, labels, 50, stratified=stratified, random_state=5)
    got = bootstrap_auc((scores * 3).astype(dtype), labels, 50, stratified=stratified, random_state=5)
    np.testing.assert_array_equal(got, want)
    negated = bootstrap_auc(-scores.astype(float), labels, 50, stratified=stratified, random_state=5)
    np.testing.assert_allclose(negated, 1 - want, rtol=0, atol=1e-15)


@pytest.mark.parametrize("stratified", [True, False])
def test_models_are_resampled_together_and_runs_continue(stratified: bool) -> None:
    models = np.stack([drawn(300, seed)[0] for seed in range(3)])
    labels = drawn(300)[1]
    together = bootstrap_auc(models, labels, 40, stratified=stratified, random_state=7)
    assert together.shape == (3, 40)
    for row, scores in zip(together, models, strict=True):
        alone = bootstrap_auc(scores, labels, 40, stratified=stratified, random_state=7)
        np.testing.assert_array_equal(alone, row)
    longer = bootstrap_auc(models, labels, 60, stratified=stratified, random_state=7)
    np.testing.assert_array_equal(longer[:, :40], together)
    other = bootstrap_auc(models, labels, 40, stratified=stratified, random_state=8)
    assert (other != together).mean() > 0.9


def test_the_number_of_threads_changes_no_bit() -> None:
    scores, labels = drawn(20_000)
    before = mf.get_num_threads()
    try:
        found = []
        for n in (1, 2, 3):
            mf.set_num_threads(n)
            found.append(bootstrap_auc(np.stack([scores, -scores]), labels, 30, random_state=2**64 - 1).tobytes())
    finally:
        mf.set_num_threads(before)
    assert len(set(found)) == 1


def test_a_plain_resample_without_a_class_has_no_area() -> None:
    replicates = bootstrap_auc([1, 2, 3], [0, 1, 0], 300, stratified=False, random_state=0)
    # It holds no positive with a chance of 8 in 27, and no negative with 1 in 27.
    assert np.isnan(replicates).mean() == pytest.approx(1 / 3, abs=0.14)
    assert not np.isnan(bootstrap_auc([1, 2, 3], [0, 1, 0], 300, random_state=0)).any()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1, 2], [1, 1], 5), ValueError, "one class only"),
        (([1.0, float("nan")], [0, 1], 5), ValueError, r"scores\[1\] is NaN"),
        (([[1.0, 2.0], [1.0, float("nan")]], [0, 1], 5), ValueError, r"scores\[1, 1\] is NaN"),
        (([1, 2, 3], [0, 1], 5), ValueError, r"labels must have shape \[3\]"),
        (([], [], 5), ValueError, "must not be empty"),
        (([[[1, 2]]], [0, 1], 5), ValueError, "scores must have shape"),
        (([1, 2], [0, 1], -1), ValueError, "n_replicates must not be negative; got -1"),
        (([1, 2], [0, 2], 5), ValueError, "pos_label"),
    ],
    ids=["class", "nan", "nan-row", "length", "empty", "shape", "negative", "labels"],
)
def test_wrong_input_is_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        bootstrap_auc(*arguments, random_state=0)
    assert bootstrap_auc([1, 2], [0, 1], 0, random_state=0).shape == (0,)
