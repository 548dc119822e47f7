"""DeLong's variance of the AUC: golden values from R, the definition by placements, laws, degenerate cases."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import golden_cases
from hypothesis import given
from hypothesis import strategies as st

import milfast as mf
from milfast._core import auc_jackknife, delong, delong_covariance, placements


def by_placements(scores: list[Any], labels: list[int]) -> Fraction:
    """DeLong's variance as published, in fractions."""
    pos, neg = ([Fraction(s) for s, y in zip(scores, labels, strict=True) if y == c] for c in (1, 0))
    win = [[Fraction(1 if p > n else 0) + Fraction(1, 2) * (p == n) for n in neg] for p in pos]
    of_pos = [sum(row) / len(neg) for row in win]
    of_neg = [sum(column) / len(pos) for column in zip(*win, strict=True)]

    def spread(values: list[Fraction]) -> Fraction:
        mean = sum(values) / len(values)
        return sum(((v - mean) ** 2 for v in values), Fraction(0)) / (len(values) - 1) / len(values)

    return spread(of_pos) + spread(of_neg)


@st.composite
def two_of_each(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Scores with many ties, at least two of each class."""
    labels = draw(st.permutations([0, 0, 1, 1, *draw(st.lists(st.integers(0, 1), max_size=20))]))
    values = st.integers(-4, 4) | st.integers(-(2**60), 2**60)
    return draw(st.lists(values, min_size=len(labels), max_size=len(labels))), list(labels)


def test_golden_variances_and_areas_of_all_scores() -> None:
    cases = golden_cases("delong")
    assert len(cases) == 4
    for case in cases:
        expected = case["expected"]
        for i, key in enumerate(("score_a", "score_b", "score_c")):
            auc, variance, n_pos, n_neg = delong(case["inputs"][key], case["inputs"]["labels"])
            assert auc == pytest.approx(expected["auc"][i], rel=0, abs=case["tol"]), (case["id"], key)
            assert variance == pytest.approx(expected["cov"][i][i], rel=0, abs=case["tol"]), (case["id"], key)
            assert (n_pos, n_neg) == (sum(case["inputs"]["labels"]), case["inputs"]["labels"].count(0))


def test_golden_degenerate_cases() -> None:
    by_name = {case["id"]: case for case in golden_cases("delong_degenerate")}
    perfect = by_name["delong_perfect_separation"]["inputs"]
    assert delong(perfect["score_a"], perfect["labels"]) == (1.0, 0.0, 2, 2)
    single = by_name["delong_npos1"]["inputs"]
    auc, variance, n_pos, n_neg = delong(single["score_a"], single["labels"])
    assert (auc, n_pos, n_neg) == (0.75, 1, 4)
    assert math.isnan(variance)


@given(two_of_each())
def test_variance_is_the_definition(data: tuple[list[int], list[int]]) -> None:
    scores, labels = data
    auc, variance, n_pos, n_neg = delong(scores, labels)
    assert auc == mf.auc(scores, labels)
    assert (n_pos, n_neg) == (sum(labels), len(labels) - sum(labels))
    assert variance == pytest.approx(float(by_placements(scores, labels)), rel=1e-14, abs=0)


@given(two_of_each())
def test_a_strictly_monotone_transform_changes_no_bit(data: tuple[list[int], list[int]]) -> None:
    scores, labels = data
    dense = np.unique(scores, return_inverse=True)[1]
    assert delong(np.exp(dense / 3), labels) == delong(scores, labels)
    assert delong(dense.astype(np.float32), labels) == delong(scores, labels)


@given(two_of_each())
def test_swapping_the_classes_keeps_the_variance(data: tuple[list[int], list[int]]) -> None:
    scores, labels = data
    _, variance, n_pos, n_neg = delong(scores, labels)
    swapped = delong(scores, [1 - y for y in labels])
    assert swapped[1:] == (variance, n_neg, n_pos)
    assert delong([-s for s in scores], labels)[1] == variance


@given(two_of_each(), st.randoms(use_true_random=False))
def test_order_of_the_input_changes_no_bit(data: tuple[list[int], list[int]], random: Any) -> None:
    pairs = list(zip(*data, strict=True))
    random.shuffle(pairs)
    scores, labels = (list(column) for column in zip(*pairs, strict=True))
    assert delong(scores, labels) == delong(*data)


def test_large_input_equals_midranks() -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.integers(0, 30_000, 80_000), rng.integers(0, 2, 80_000)
    pos, neg = np.sort(scores[labels == 1]), np.sort(scores[labels == 0])

    def placements(own: np.ndarray, other: np.ndarray) -> np.ndarray:
        return (np.searchsorted(other, own, "left") + np.searchsorted(other, own, "right")) / (2 * len(other))

    want = placements(pos, neg).var(ddof=1) / len(pos) + placements(neg, pos).var(ddof=1) / len(neg)
    auc, variance, _, _ = delong(scores, labels)
    assert variance == pytest.approx(want, rel=1e-12)
    assert auc == mf.auc(scores, labels)


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1]], ids=str)
def test_one_class_has_neither_area_nor_variance(labels: list[int]) -> None:
    auc, variance, n_pos, n_neg = delong([1, 2, 3], labels)
    assert math.isnan(auc)
    assert math.isnan(variance)
    assert (n_pos, n_neg) == (sum(labels), 3 - sum(labels))


@pytest.mark.parametrize("labels", [[0, 1, 1, 1], [1, 0, 0, 0]], ids=str)
def test_one_member_of_a_class_leaves_the_area_defined(labels: list[int]) -> None:
    auc, variance, _, _ = delong([1, 2, 3, 4], labels)
    assert auc == mf.auc([1, 2, 3, 4], labels)
    assert math.isnan(variance)


def test_all_ties_have_no_variance() -> None:
    assert delong([7, 7, 7, 7], [0, 1, 0, 1]) == (0.5, 0.0, 2, 2)


def test_pos_label_and_errors_are_those_of_the_area() -> None:
    assert delong([1, 2, 3, 4], ["a", "b", "a", "b"], pos_label="b") == delong([1, 2, 3, 4], [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"scores\[1\] is NaN"):
        delong([1, math.nan], [0, 1])
    with pytest.raises(ValueError, match="scores has 2 entries, labels has 3"):
        delong([1, 2], [0, 1, 1])
    with pytest.raises(ValueError, match="swapped"):
        delong([0, 1, 1], [0.2, 0.3, 0.4])


# ---------------------------------------------------------------- several models


def wins(scores: Any, labels: list[int]) -> np.ndarray:
    """For each positive and each negative 1, 1/2 or 0, in floats that are exact."""
    pos, neg = (np.array([s for s, y in zip(scores, labels, strict=True) if y == c], dtype=object) for c in (1, 0))
    return np.array([[float(p > n) + 0.5 * float(p == n) for n in neg] for p in pos])


def test_golden_covariances() -> None:
    cases = golden_cases("delong")
    assert len(cases) == 4
    for case in cases:
        inputs, expected = case["inputs"], case["expected"]
        models = [inputs[key] for key in ("score_a", "score_b", "score_c")]
        aucs, covariance, n_pos, n_neg = delong_covariance(models, inputs["labels"])
        np.testing.assert_allclose(aucs, expected["auc"], rtol=0, atol=case["tol"])
        np.testing.assert_allclose(covariance, expected["cov"], rtol=0, atol=case["tol"])
        assert (n_pos, n_neg) == (sum(inputs["labels"]), inputs["labels"].count(0))


def test_golden_jackknife() -> None:
    (case,) = golden_cases("auc_jackknife")
    inputs = {**case["inputs"]}
    got = auc_jackknife(inputs.get("scores", inputs.get("score_a")), inputs["labels"])
    np.testing.assert_allclose(got, case["expected"]["leave_one_out_auc"], rtol=0, atol=case["tol"])


@given(two_of_each(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_covariances_are_the_definition(data: tuple[list[int], list[int]], k: int, random: Any) -> None:
    scores, labels = data
    models = [random.sample(scores, len(scores)) for _ in range(k)]
    aucs, covariance, _, _ = delong_covariance(models, labels)
    won = [wins(row, labels) for row in models]
    of_pos, of_neg = np.atleast_2d([w.mean(1) for w in won]), np.atleast_2d([w.mean(0) for w in won])
    want = np.cov(of_pos) / of_pos.shape[1] + np.cov(of_neg) / of_neg.shape[1]
    np.testing.assert_allclose(covariance, np.reshape(want, (k, k)), rtol=0, atol=1e-14)
    assert aucs.tolist() == [mf.auc(row, labels) for row in models]
    np.testing.assert_array_equal(covariance, covariance.T)
    assert covariance[0, 0] == pytest.approx(delong(models[0], labels)[1], rel=1e-14)


@given(two_of_each())
def test_placements_are_means_of_wins_in_the_order_of_the_input(data: tuple[list[int], list[int]]) -> None:
    of_pos, of_neg = placements(*data)
    won = wins(*data)
    np.testing.assert_array_equal(of_pos, won.sum(1) / won.shape[1])
    np.testing.assert_array_equal(of_neg, won.sum(0) / won.shape[0])


@given(two_of_each())
def test_the_jackknife_leaves_each_score_out(data: tuple[list[int], list[int]]) -> None:
    scores, labels = data
    got = auc_jackknife(scores, labels)
    for i in range(len(scores)):
        assert got[i] == mf.auc(scores[:i] + scores[i + 1 :], labels[:i] + labels[i + 1 :])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint64"])
def test_large_models_and_threads_change_no_bit(dtype: str) -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 50_000)
    models = (rng.integers(0, 40_000, (3, 50_000)) + 9000 * labels).astype(dtype)
    before = mf.get_num_threads()
    try:
        found = []
        for n in (1, 2, 3):
            mf.set_num_threads(n)
            found.append(b"".join(part.tobytes() for part in delong_covariance(models, labels)[:2]))
    finally:
        mf.set_num_threads(before)
    assert len(set(found)) == 1
    aucs, covariance, _, _ = delong_covariance(models, labels)
    for i in range(3):
        of_pos, of_neg = placements(models[i], labels)
        assert aucs[i] == mf.auc(models[i], labels)
        assert of_pos.mean() == pytest.approx(aucs[i], rel=1e-12)
        for j in range(3):
            others = placements(models[j], labels)
            want = sum(np.cov(a, b)[0, 1] / len(a) for a, b in zip((of_pos, of_neg), others, strict=True))
            assert covariance[i, j] == pytest.approx(want, rel=1e-9, abs=1e-15)


def test_degenerate_models() -> None:
    aucs, covariance, n_pos, n_neg = delong_covariance([[1, 2, 3], [3, 2, 1]], [0, 1, 0])
    assert aucs.tolist() == [0.5, 0.5]
    assert np.isnan(covariance).all()
    assert (n_pos, n_neg) == (1, 2)
    identical = golden_cases("delong_degenerate")[1]["inputs"]
    _, covariance, _, _ = delong_covariance([identical["score_a"], identical["score_b"]], identical["labels"])
    assert covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1] == 0.0
    assert np.isnan(auc_jackknife([1, 2, 3], [0, 1, 0])).tolist() == [False, True, False]
    with pytest.raises(ValueError, match=r"scores\[1, 0\] is NaN"):
        delong_covariance([[1.0, 2.0], [math.nan, 1.0]], [0, 1])
    with pytest.raises(ValueError, match=r"labels must have shape \[2\]"):
        delong_covariance([[1.0, 2.0], [2.0, 1.0]], [0, 1, 1])
    with pytest.raises(ValueError, match="must not be empty"):
        delong_covariance(np.zeros((0, 3)), [0, 1, 1])
