"""AUCs compared: golden values from R, the definition in fractions, laws, degenerate models."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import golden_cases
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import milfast as mf
from milfast._core import delong, delong_covariance, placements
from milfast.uncertainty import compare_auc, compare_aucs, equivalence_auc
from milfast.uncertainty.areas import variance_of


@st.composite
def models(draw: st.DrawFn, k: int = 2) -> tuple[list[list[int]], list[int]]:
    """Scores of `k` models with many ties, at least two of each class."""
    labels = list(draw(st.permutations([0, 0, 1, 1, *draw(st.lists(st.integers(0, 1), max_size=14))])))
    one = st.lists(st.integers(-4, 4) | st.integers(-(2**60), 2**60), min_size=len(labels), max_size=len(labels))
    return [draw(one) for _ in range(k)], labels


def exact(scores: list[list[int]], labels: list[int]) -> tuple[list[Fraction], list[list[Fraction]]]:
    """AUCs and DeLong's covariances as published, in fractions."""
    placed = []
    for row in scores:
        pos, neg = ([s for s, y in zip(row, labels, strict=True) if y == c] for c in (1, 0))
        win = [[Fraction(p > n) + Fraction(int(p == n), 2) for n in neg] for p in pos]
        placed.append(([sum(r) / len(neg) for r in win], [sum(c) / len(pos) for c in zip(*win, strict=True)]))
    aucs = [sum(of_pos) / len(of_pos) for of_pos, _ in placed]

    def shared(side: int, i: int, j: int) -> Fraction:
        n = len(placed[0][side])
        pairs = zip(placed[i][side], placed[j][side], strict=True)
        return sum(((x - aucs[i]) * (y - aucs[j]) for x, y in pairs), Fraction(0)) / (n - 1) / n

    k = len(scores)
    return aucs, [[shared(0, i, j) + shared(1, i, j) for j in range(k)] for i in range(k)]


# ---------------------------------------------------------------- values from elsewhere


def test_golden_comparisons() -> None:
    cases = golden_cases("delong")
    assert len(cases) == 4
    for case in cases:
        inputs, expected, tol = case["inputs"], case["expected"], case["tol"]
        two = compare_auc(inputs["score_a"], inputs["score_b"], inputs["labels"])
        assert two.statistic == pytest.approx(expected["z_ab"], abs=tol), case["id"]
        assert two.p_value == pytest.approx(expected["p_ab"], abs=tol)
        assert two.difference is not None
        half = NormalDist().inv_cdf(0.975) * math.sqrt(expected["var_diff_ab"])
        gap = expected["auc"][0] - expected["auc"][1]
        bounds = (two.difference.low, two.difference.high)
        assert bounds == pytest.approx((max(-1, gap - half), min(1, gap + half)), abs=tol)
        three = compare_aucs({key: inputs[key] for key in ("score_a", "score_b", "score_c")}, inputs["labels"])
        assert three.names == ("score_a", "score_b", "score_c")
        assert three.statistic == pytest.approx(expected["chi2_3way"], abs=tol)
        assert three.p_value == pytest.approx(expected["p_3way"], abs=tol)
        assert three.df == (2.0,)
        assert three.pairs[0].statistic == two.statistic


def test_golden_degenerate() -> None:
    identical = {case["id"]: case for case in golden_cases("delong_degenerate")}["delong_identical_models"]
    result = compare_auc(*(identical["inputs"][key] for key in ("score_a", "score_b", "labels")))
    assert result.p_value == identical["expected"]["p_ab"] == 1.0
    assert math.isnan(result.statistic)
    assert result.difference is not None
    assert (result.difference.low, result.difference.estimate, result.difference.high) == (0.0, 0.0, 0.0)
    assert result.method == "DeLong (variance 0)"


# ---------------------------------------------------------------- definitions and laws


@given(models())
@pytest.mark.filterwarnings("ignore:the AUCs differ:RuntimeWarning")
def test_z_is_the_definition(data: tuple[list[list[int]], list[int]]) -> None:
    scores, labels = data
    result = compare_auc(*scores, labels)
    (a, b), covariance = exact(scores, labels)
    variance = covariance[0][0] + covariance[1][1] - 2 * covariance[0][1]
    assert result.estimates == (float(a), float(b))
    assert result.estimates == tuple(mf.auc(row, labels) for row in scores)
    assert result.difference is not None
    assert result.difference.estimate == pytest.approx(float(a - b), rel=1e-15)
    if variance:
        assert result.statistic == pytest.approx(float(a - b) / math.sqrt(variance), rel=1e-12, abs=1e-300)
        assert result.p_value == pytest.approx(math.erfc(abs(result.statistic) / math.sqrt(2)), rel=1e-9)
    else:
        # exactly: what rounding leaves of a variance must not become a z of 1e16
        assert result.method == ("undefined" if a != b else "DeLong (variance 0)")
        assert result.p_value == 1.0 or (a != b and math.isnan(result.p_value))


@given(models(k=3))
@pytest.mark.filterwarnings("ignore:.*AUCs differ|a combination of AUCs differs:RuntimeWarning")
def test_chi2_is_the_definition(data: tuple[list[list[int]], list[int]]) -> None:
    scores, labels = data
    result = compare_aucs(scores, labels)
    aucs, s = exact(scores, labels)
    d = [aucs[i] - aucs[2] for i in (0, 1)]
    v = [[s[i][j] - s[i][2] - s[2][j] + s[2][2] for j in (0, 1)] for i in (0, 1)]
    determinant = v[0][0] * v[1][1] - v[0][1] ** 2
    scale = v[0][0] * v[1][1]
    if determinant > scale / 10**6:
        want = (d[0] ** 2 * v[1][1] - 2 * d[0] * d[1] * v[0][1] + d[1] ** 2 * v[0][0]) / determinant
        assert result.statistic == pytest.approx(float(want), rel=1e-6, abs=1e-12)
        assert result.df == (2.0,)
    elif determinant == 0:
        assert result.df in ((), (1.0,))


@given(models(k=3))
@pytest.mark.filterwarnings("ignore:.*AUCs differ|a combination of AUCs differs:RuntimeWarning")
def test_the_order_of_models_and_monotone_scores_change_nothing(data: tuple[list[list[int]], list[int]]) -> None:
    scores, labels = data
    one = compare_aucs(scores, labels)
    other = compare_aucs([scores[1], scores[2], scores[0]], labels)
    if not math.isnan(one.log_p) and one.df == other.df:
        assert other.statistic == pytest.approx(one.statistic, rel=1e-6, abs=1e-9)
    dense = [np.exp(np.unique(row, return_inverse=True)[1] / 3) for row in scores]
    assert repr(compare_aucs(dense, labels)) == repr(one)
    swapped = compare_auc(scores[1], scores[0], labels)
    assert swapped.log_p == pytest.approx(compare_auc(scores[0], scores[1], labels).log_p, rel=1e-12, nan_ok=True)


def test_large_input_is_that_of_the_kernel() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 100_000)
    base = rng.normal(size=100_000) + labels
    scores = [base + rng.normal(size=100_000), base + rng.normal(size=100_000), rng.normal(size=100_000)]
    aucs, covariance, _, _ = delong_covariance(scores, labels)
    result = compare_auc(scores[0], scores[1], labels)
    se = math.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert result.statistic == pytest.approx((aucs[0] - aucs[1]) / se, rel=1e-8)
    all_three = compare_aucs(scores, labels)
    contrast = np.array([[1, 0, -1], [0, 1, -1]])
    gaps = contrast @ aucs
    want = gaps @ np.linalg.solve(contrast @ covariance @ contrast.T, gaps)
    assert all_three.statistic == pytest.approx(want, rel=1e-8)
    assert all_three.p_value == math.ulp(0.0)
    assert all_three.log_p < -1000


def test_independent_items() -> None:
    rng = np.random.default_rng(3)
    labels_a, labels_b = rng.integers(0, 2, 80), rng.integers(0, 2, 50)
    a, b = rng.normal(size=80) + labels_a, rng.normal(size=50)
    result = compare_auc(a, b, labels_a, labels_b)
    (auc_a, var_a, *_), (auc_b, var_b, *_) = delong(a, labels_a), delong(b, labels_b)
    assert result.statistic == pytest.approx((auc_a - auc_b) / math.sqrt(var_a + var_b), rel=1e-14)
    assert (result.paired, result.n) == (False, 130)
    assert "unpaired" in result.summary()


# ---------------------------------------------------------------- degenerate models


def test_a_constant_shift_of_placements_has_no_variance() -> None:
    # every positive beats two thirds more of the negatives in one model: thirds are no doubles
    labels = [0, 0, 0, 1, 1]
    perfect, third = [1, 1, 1, 2, 2], [2, 2, 0, 1, 1]
    with pytest.warns(RuntimeWarning, match="no item shows any spread|differ"):
        result = compare_auc(perfect, [0] * 5, labels)
    assert math.isnan(result.p_value)
    assert result.estimates == (1.0, 0.5)
    assert result.difference is not None
    assert result.difference.estimate == 0.5
    assert math.isnan(result.difference.low)
    assert 0 < compare_auc(perfect, third, labels).p_value < 1


def test_models_that_rank_alike_count_once() -> None:
    rng = np.random.default_rng(5)
    labels = np.repeat([0, 1], 20)
    a, b = rng.normal(size=40) + labels, rng.normal(size=40)
    two = compare_auc(a, b, labels)
    three = compare_aucs([a, b, np.exp(a)], labels)
    assert three.df == (1.0,)
    assert three.log_p == pytest.approx(two.log_p, rel=1e-9)
    assert "1 of 3 models say nothing that others do not" in three.notes
    same = compare_aucs([a, a, a], labels)
    assert (same.p_value, same.df) == (1.0, ())


@pytest.mark.parametrize(("labels", "reason"), [([0, 1, 0, 0, 0], "one positive"), ([1, 0, 1, 1, 1], "one negative")])
def test_class_of_one(labels: list[int], reason: str) -> None:
    scores = [0.1, 0.35, 0.4, 0.3, 0.2], [0.3, 0.2, 0.1, 0.5, 0.4]
    for call in (lambda: compare_auc(*scores, labels), lambda: compare_aucs(list(scores), labels)):
        with pytest.warns(RuntimeWarning, match=f"labels hold {reason}: the spread of the AUCs is undefined"):
            result = call()
        assert math.isnan(result.p_value)
        assert result.estimates == tuple(mf.auc(row, labels) for row in scores)
    with pytest.warns(RuntimeWarning, match="labels_b hold"):
        assert math.isnan(compare_auc([1, 2, 3, 4], scores[0], [0, 0, 1, 1], labels).p_value)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class(label: int) -> None:
    with pytest.warns(RuntimeWarning, match="labels hold no"):
        result = compare_auc([1, 2, 3], [3, 2, 1], [label] * 3)
    assert all(math.isnan(x) for x in (*result.estimates, result.p_value))
    assert result.to_dict()["estimates"] == [None, None]


def test_a_perfect_model_is_named() -> None:
    labels = [0, 0, 0, 1, 1, 1]
    assert any(
        "surer than the data" in note for note in compare_auc([1, 2, 3, 4, 5, 6], [1, 5, 2, 4, 3, 6], labels).notes
    )
    unpaired = compare_auc([1, 2, 3, 4, 5, 6], [1, 5, 2, 4, 3, 6], labels, labels)
    assert any("surer than the data" in note for note in unpaired.notes)


# ---------------------------------------------------------------- messages and kinds of input


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: compare_auc([1, math.nan], [1, 2], [0, 1]), ValueError, r"scores_a\[1\] is NaN"),
        (lambda: compare_auc([1, 2], [math.nan, 2], [0, 1]), ValueError, r"scores_b\[0\] is NaN"),
        (lambda: compare_auc([1, 2], [1, 2, 3], [0, 1]), ValueError, "scores_b has 3 entries, labels has 2"),
        (lambda: compare_auc([1, 2], [1, 2], [0, 1], [0, 1, 1]), ValueError, "labels_b has 3"),
        (lambda: compare_auc([1, 2], [1, 2], [0, 2]), ValueError, "labels"),
        (lambda: compare_auc([1, 2], [1, 2], [0, 1], level=2), ValueError, "level"),
        (lambda: compare_aucs([[1, 2]], [0, 1]), ValueError, "two models or more; got 1"),
        (lambda: compare_aucs({"a": [1, 2], "b": [1, math.nan]}, [0, 1]), ValueError, r"scores\['b'\]\[1\] is NaN"),
        (lambda: compare_aucs([[1, 2], [2, 1], [2, math.nan]], [0, 1]), ValueError, r"scores\[2\]\[1\] is NaN"),
    ],
)
def test_messages(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_columns_of_a_data_frame_are_models() -> None:
    table = {"a": [1, 2, 3, 5, 4], "b": [2, 3, 5, 1, 4], "c": [3, 1, 4, 0, 2]}
    labels = [0, 1, 1, 0, 1]
    want = compare_aucs(table, labels)
    assert compare_aucs(pd.DataFrame(table), pd.Series(labels)) == want
    assert compare_aucs(np.array(list(table.values())), labels, names=("a", "b", "c")) == want


def test_kinds_of_input() -> None:
    labels = [0, 0, 1, 1, 1, 0]
    a, b = np.array([1, 4, 3, 5, 6, 2]), np.array([3, 1, 2, 6, 5, 4])
    want = compare_auc(a, b, labels)
    assert compare_auc(a.astype(">f4"), b.astype(np.uint64), np.array(labels, dtype=bool)) == want
    assert compare_auc(np.repeat(a, 2)[::2], b[::-1][::-1], ["p" if y else "n" for y in labels], pos_label="p") == want
    big = 2**53
    assert compare_auc(a + big, b + big, labels) == want
    infinite = a.astype(float)
    infinite[4] = math.inf
    assert compare_auc(infinite, b, labels) == want


# ---------------------------------------------------------------- clusters


@given(models(k=3))
@pytest.mark.filterwarnings("ignore:.*AUCs differ|a combination of AUCs differs|[0-9]+ clusters with:RuntimeWarning")
def test_clusters_of_one_item_change_the_law_alone(data: tuple[list[list[int]], list[int]]) -> None:
    scores, labels = data
    each = list(range(len(labels)))
    plain, clustered = compare_auc(*scores[:2], labels), compare_auc(*scores[:2], labels, clusters=each)
    assert clustered.statistic == pytest.approx(plain.statistic, rel=1e-9, nan_ok=True)
    if not math.isnan(plain.statistic):
        t = stats.t.sf(abs(plain.statistic), min(sum(labels), len(labels) - sum(labels)) - 1)
        assert clustered.p_value == pytest.approx(2 * t, rel=1e-8, abs=1e-300)
    assert math.isnan(clustered.p_value) == math.isnan(plain.p_value)
    several, of_items = compare_aucs(scores, labels), compare_aucs(scores, labels, clusters=each)
    if several.df and of_items.df and several.df[0] == of_items.df[0] and several.statistic < 1e6:
        rank, n = several.df[0], min(sum(labels), len(labels) - sum(labels))
        assert of_items.statistic == pytest.approx(
            several.statistic * (n - rank) / (rank * (n - 1)), rel=1e-6, abs=1e-9
        )
        assert of_items.df == (rank, n - rank)


def test_clusters_have_the_variance_of_obuchowski() -> None:
    rng = np.random.default_rng(6)
    patient = rng.integers(0, 25, 200)
    labels = rng.integers(0, 2, 200)
    scores = rng.normal(size=(2, 200)) + labels + rng.normal(size=25)[patient]
    result = compare_auc(*scores, labels, clusters=[f"p{i}" for i in patient])
    placed = [placements(row, labels) for row in scores]
    influence = np.zeros(200)
    for side, member in ((0, labels == 1), (1, labels == 0)):
        d = placed[0][side] - placed[1][side]
        influence[member] = (d - d.mean()) / member.sum()
    variance = variance_of(influence, labels, patient)
    assert result.difference is not None
    assert result.statistic == pytest.approx(result.difference.estimate / math.sqrt(variance), rel=1e-10)
    assert (result.df, result.difference.n_clusters, result.details["n_clusters"]) == ((24.0,), 25, 25)
    assert result.summary().splitlines()[0].endswith("(DeLong of clusters, 200 paired items in 25 clusters)")
    half = stats.t.ppf(0.975, 24) * math.sqrt(variance)
    assert result.difference.half_width == pytest.approx(half, rel=1e-10)


def test_clusters_that_cancel_leave_no_variance() -> None:
    # within each patient one model gains what it loses
    labels = [1, 1, 0, 0, 1, 1, 0, 0]
    a, b = [5, 1, 0, 3, 5, 1, 0, 3], [1, 5, 3, 0, 1, 5, 3, 0]
    result = compare_auc(a, b, labels, clusters=[0, 0, 0, 0, 1, 1, 1, 1])
    assert (result.p_value, result.method) == (1.0, "DeLong of clusters (variance 0)")
    assert "2 clusters with a class are few" in result.notes[-1]


def test_clusters_that_say_too_little() -> None:
    labels = [0, 0, 1, 1, 0, 1]
    scores = np.random.default_rng(0).normal(size=(3, 6))
    with pytest.warns(RuntimeWarning, match="all positives in one cluster"):
        result = compare_auc(*scores[:2], labels, clusters=[0, 1, 2, 2, 3, 2])
    assert math.isnan(result.p_value)
    with pytest.warns(RuntimeWarning, match="2 clusters with a class are too few to compare 3 models"):
        assert math.isnan(compare_aucs(scores, labels, clusters=[0, 0, 0, 1, 1, 1]).p_value)
    with pytest.raises(ValueError, match="one cluster shows no spread"):
        compare_auc(*scores[:2], labels, clusters=[1] * 6)
    with pytest.raises(ValueError, match="must not be given with labels_b"):
        compare_auc(*scores[:2], labels, labels, clusters=[0, 0, 0, 1, 1, 1])


def test_items_of_bags() -> None:
    rng = np.random.default_rng(8)
    bags = mf.Bags.from_list([rng.normal(size=(n, 2)) for n in rng.integers(2, 6, 30)], rng.integers(0, 2, 30))
    of = np.repeat(np.arange(30), bags.sizes)
    labels = rng.integers(0, 2, len(of))
    scores = rng.normal(size=(2, len(of))) + labels
    assert compare_auc(*scores, labels, clusters=bags) == compare_auc(*scores, labels, clusters=of)


def test_the_clustered_test_holds_its_level() -> None:
    rng = np.random.default_rng(9)
    wrong, plain = 0, 0
    for _ in range(300):
        patient = np.repeat(np.arange(30), 6)
        labels = np.tile([0, 1], 90)
        shared = rng.normal(size=(2, 30))[:, patient] * np.where(labels, 1.5, -1.5)
        scores = shared + 0.5 * rng.normal(size=(2, 180)) + labels
        wrong += compare_auc(*scores, labels, clusters=patient).p_value < 0.05
        plain += compare_auc(*scores, labels).p_value < 0.05
    assert wrong <= stats.binom.ppf(0.9999, 300, 0.07)
    assert plain > 60


# ---------------------------------------------------------------- equivalence


@given(models(), st.floats(0.01, 0.9), st.floats(0.6, 0.99))
@pytest.mark.filterwarnings("ignore:the AUCs differ|both AUCs are equal:RuntimeWarning")
def test_equivalence_is_an_interval_within_the_margins(
    data: tuple[list[list[int]], list[int]], margin: float, level: float
) -> None:
    scores, labels = data
    result = equivalence_auc(*scores, labels, margin, level=level)
    assert result.difference is not None
    if math.isnan(result.p_value):
        assert "se" not in result.details
        return
    assert result.difference.level == pytest.approx(2 * level - 1)
    within = -margin < result.difference.low and result.difference.high < margin
    if abs(result.p_value - (1 - level)) > 1e-6:
        assert within == (result.p_value < 1 - level)
    lower = equivalence_auc(*scores, labels, (-margin, math.inf), level=level)
    upper = equivalence_auc(*scores, labels, (-math.inf, margin), level=level)
    assert result.p_value == max(lower.p_value, upper.p_value)


def test_equivalence_of_clustered_scores_and_of_models_that_rank_alike() -> None:
    rng = np.random.default_rng(4)
    patient, labels = np.repeat(np.arange(20), 5), rng.integers(0, 2, 100)
    a = rng.normal(size=100) + labels
    b = a + 0.3 * rng.normal(size=100)
    plain = compare_auc(a, b, labels, clusters=patient)
    result = equivalence_auc(a, b, labels, 0.05, clusters=patient)
    gap, se = plain.estimates[0] - plain.estimates[1], plain.details["se"]
    assert result.p_value == pytest.approx(stats.t.sf((0.05 - abs(gap)) / se, plain.df[0]))
    with pytest.warns(RuntimeWarning, match="the test of equivalence is undefined"):
        assert math.isnan(equivalence_auc(a, np.exp(a), labels, 0.05).p_value)
    with pytest.raises(ValueError, match="margin must reach below and above 0"):
        equivalence_auc(a, b, labels, -0.05)
    with pytest.raises(ValueError, match="level must be above"):
        equivalence_auc(a, b, labels, 0.05, level=0.3)
