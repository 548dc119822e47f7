"""The area under the ROC curve: golden values, an oracle in fractions, laws, large input, weights, partial areas."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import golden_cases
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

import milfast as mf

INF = math.inf

#: Scores that collide often, and where a wrong order of bits would show: signs, zeros, infinities, denormals.
CROWDED = [-INF, -1e308, -2.5, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, np.nextafter(1.0, 2.0), 2.5, 1e308, INF]
SCORES = {
    "float64": st.sampled_from(CROWDED) | st.floats(allow_nan=False),
    "float32": st.sampled_from([-INF, -1.0, -0.0, 0.0, 1e-45, 1.0, INF]) | st.floats(allow_nan=False, width=32),
    "float16": st.sampled_from([-INF, -1.0, -0.0, 0.0, 6e-8, 1.0, INF]) | st.floats(allow_nan=False, width=16),
    "int64": st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 5) | st.integers(0, 2**64 - 1),
    "bool": st.booleans(),
}


def exact_auc(scores: Any, labels: Any, weights: Any = None) -> Fraction | None:
    """The definition, pair by pair, in fractions; None where there is no pair."""
    weights = [1] * len(scores) if weights is None else weights
    wins = total = Fraction(0)
    for p, y_p, w_p in zip(scores, labels, weights, strict=True):
        for n, y_n, w_n in zip(scores, labels, weights, strict=True):
            if y_p == 1 and y_n == 0:
                weight = Fraction(w_p) * Fraction(w_n)
                total += weight
                wins += weight if p > n else weight / 2 if p == n else 0
    return wins / total if total else None


def rank_auc(scores: np.ndarray, labels: np.ndarray) -> Fraction:
    """From midranks, in integers: quick enough for large input."""
    positive = labels == 1
    n_pos = int(positive.sum())
    doubled_ranks = int((2 * rankdata(scores)[positive]).astype(np.int64).sum())
    return Fraction(doubled_ranks - n_pos * (n_pos + 1), 2 * n_pos * (len(labels) - n_pos))


@st.composite
def scored(
    draw: st.DrawFn, dtypes: tuple[str, ...] = tuple(SCORES), max_size: int = 24
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of one dtype with at least one label of each class."""
    dtype = draw(st.sampled_from(dtypes))
    scores = draw(st.lists(SCORES[dtype], min_size=2, max_size=max_size))
    labels = draw(st.lists(st.integers(0, 1), min_size=len(scores), max_size=len(scores)))
    assume(0 < sum(labels) < len(labels))
    return np.array(scores, dtype=dtype), np.array(labels)


# ---------------------------------------------------------------- known values


def test_golden_values_are_hit_exactly() -> None:
    cases = golden_cases("auc")
    assert len(cases) == 16
    for case in cases:
        inputs = case["inputs"]
        got = mf.auc(inputs["scores"], inputs["labels"], sample_weight=inputs["weights"])
        assert abs(got - case["expected"]["auc"]) <= case["tol"], case["id"]
        assert abs(got - float(Fraction(case["expected"]["auc_exact_fraction"]))) <= case["tol"], case["id"]


@pytest.mark.parametrize("modulus", [None, 97], ids=["few-ties", "many-ties"])
def test_golden_values_of_300_000_scores_equal_the_exact_fraction(modulus: int | None) -> None:
    case = golden_cases("auc_generated")[0 if modulus is None else 1]
    i = np.arange(case["inputs"]["n"], dtype=np.uint64)
    scores = i * np.uint64(2654435761) % np.uint64(1000003)
    scores = scores if modulus is None else scores % np.uint64(modulus)
    labels = ((i * np.uint64(40503)) >> np.uint64(3)) & np.uint64(1)
    assert int(labels.sum()) == case["expected"]["n_pos"]
    want = float(Fraction(case["expected"]["auc_exact_fraction"]))
    assert mf.auc(scores, labels) == want
    assert mf.auc(scores.astype(np.float64), labels.astype(bool)) == want


def test_golden_values_from_counts_are_exact_beyond_64_bits() -> None:
    cases = golden_cases("auc_from_counts")
    assert len(cases) == 4
    for case in cases:
        pos, neg = ([int(c) for c in case["inputs"][key]] for key in ("pos_counts", "neg_counts"))
        assert mf.auc_from_counts(pos, neg) == float(Fraction(case["expected"]["auc_exact_fraction"])), case["id"]


@pytest.mark.parametrize(
    ("scores", "labels", "want"),
    [
        ([0.5, 0.5], [0, 1], 0.5),
        ([0.5, 0.9, 0.5], [0, 1, 1], 0.75),
        ([1.2, 0.9678, 1.7], [1, 0, 1], 1.0),
        ([1.0, 0.5, 0.3], [-1, 1, 1], 0.0),
        (np.array([2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3]), [0, 1, 0, 1], 0.75),
        (np.array([2**64 - 1, 2**64 - 2, 2**64 - 3, 2**64 - 4], dtype=np.uint64), [1, 0, 1, 0], 0.75),
        (np.array([-(2**63), 2**63 - 1]), [0, 1], 1.0),
        (1.0 + np.arange(4) * 1e-9, [0, 1, 0, 1], 0.75),
        ([3.4000000000000004, 3.4], [1, 0], 1.0),
    ],
    ids=["tie", "tie-apart", "unsorted", "reversed", "above-2^53", "near-2^64", "int64-ends", "close", "last-bit"],
)
def test_cases_that_other_libraries_got_wrong(scores: Any, labels: Any, want: float) -> None:
    assert mf.auc(scores, labels) == want


# ---------------------------------------------------------------- against the definition


@given(scored())
def test_auc_is_the_definition_rounded_once(data: tuple[np.ndarray, np.ndarray]) -> None:
    scores, labels = data
    want = exact_auc(scores.tolist(), labels.tolist())
    assert want is not None
    assert mf.auc(scores, labels) == float(want)


@pytest.mark.parametrize("n", [2, 63, 64, 65, 127, 128, 129, 511, 512, 513, 700])
@pytest.mark.parametrize("levels", [1, 3, 10**6])
def test_every_size_near_a_change_of_method_is_exact(n: int, levels: int) -> None:
    rng = np.random.default_rng(n + levels)
    scores = rng.integers(0, levels, n) / 7
    labels = rng.permutation(np.arange(n) % 2)
    assert mf.auc(scores, labels) == float(rank_auc(scores, labels))
    rare = (np.arange(n) == n // 2).astype(int)
    assert mf.auc(scores, rare) == float(rank_auc(scores, rare))


@given(scored(), st.randoms(use_true_random=False))
def test_order_of_the_input_changes_no_bit(data: tuple[np.ndarray, np.ndarray], random: Any) -> None:
    scores, labels = data
    order = list(range(len(scores)))
    random.shuffle(order)
    assert mf.auc(scores[order], labels[order]) == mf.auc(scores, labels)


@given(scored(("float64",)))
def test_a_strictly_monotone_transform_changes_no_bit(data: tuple[np.ndarray, np.ndarray]) -> None:
    scores, labels = data
    dense = np.unique(scores, return_inverse=True)[1]
    for transformed in (dense, dense.astype(np.float32) - 3, np.exp(dense / 4), -1.0 / (dense + 1.0), dense - 2**62):
        assert mf.auc(transformed, labels) == mf.auc(scores, labels)


@given(scored(("float64", "float32")))
def test_swapping_the_classes_or_the_sign_gives_the_complement(data: tuple[np.ndarray, np.ndarray]) -> None:
    scores, labels = data
    want = exact_auc(scores.tolist(), labels.tolist())
    assert want is not None
    assert mf.auc(scores, 1 - labels) == float(1 - want)
    assert mf.auc(-scores, labels) == float(1 - want)
    assert mf.auc(-scores, 1 - labels) == float(want)


@given(scored(("int64",)), st.integers(2, 5))
def test_repeating_the_data_changes_no_bit(data: tuple[np.ndarray, np.ndarray], times: int) -> None:
    scores, labels = data
    assert mf.auc(np.tile(scores, times), np.tile(labels, times)) == mf.auc(scores, labels)


@given(scored(("float64",), max_size=12), scored(("float64",), max_size=12))
def test_a_block_above_another_adds_the_pairs_between_them(
    low: tuple[np.ndarray, np.ndarray], high: tuple[np.ndarray, np.ndarray]
) -> None:
    ranks = [np.unique(scores, return_inverse=True)[1] for scores, _ in (low, high)]
    labels = [block[1] for block in (low, high)]
    pos, neg = ([int((y == c).sum()) for y in labels] for c in (1, 0))
    inside = [exact_auc(r.tolist(), y.tolist()) for r, y in zip(ranks, labels, strict=True)]
    assert inside[0] is not None
    assert inside[1] is not None
    wins = inside[0] * pos[0] * neg[0] + inside[1] * pos[1] * neg[1] + pos[1] * neg[0]
    scores = np.concatenate([ranks[0], ranks[1] + 100])
    assert mf.auc(scores, np.concatenate(labels)) == float(wins / (sum(pos) * sum(neg)))


@given(scored(("int64",)))
def test_counts_at_each_score_say_the_same(data: tuple[np.ndarray, np.ndarray]) -> None:
    scores, labels = data
    values = np.unique(scores)
    pos, neg = ([int(((scores == v) & (labels == c)).sum()) for v in values] for c in (1, 0))
    assert mf.auc_from_counts(pos, neg) == mf.auc(scores, labels)


# ---------------------------------------------------------------- beyond the size where keys go into buckets

LARGE = 70_001


def large_scores() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(LARGE)
    return {
        "all-ties": np.zeros(LARGE),
        "two-values": rng.integers(0, 2, LARGE).astype(float),
        "saturated": 1 / (1 + np.exp(-60 * normal)),
        "sorted": np.sort(normal),
        "reversed": np.sort(normal)[::-1],
        "float32": normal.astype(np.float32),
        "integers": rng.integers(-1000, 1000, LARGE),
        "unsigned": rng.integers(2**64 - 500, 2**64, LARGE, dtype=np.uint64, endpoint=False),
        "periodic": np.arange(LARGE) % 17 * 1.0,
        "one-spike": np.where(rng.random(LARGE) < 0.99, 0.0, normal),
        "infinities": np.where(normal > 0.5, INF, np.where(normal < -0.5, -INF, normal)),
    }


@pytest.mark.parametrize("name", list(large_scores()))
@pytest.mark.parametrize("positives", ["half", "one", "five", "all-but-one", "best"])
def test_large_input_equals_the_midranks(name: str, positives: str) -> None:
    scores = large_scores()[name]
    rng = np.random.default_rng(1)
    labels = np.zeros(LARGE, dtype=np.int64)
    if positives == "half":
        labels[rng.random(LARGE) < 0.5] = 1
    elif positives == "best":  # the classes do not overlap but for ties
        labels[np.argsort(scores, kind="stable")[LARGE // 3 :]] = 1
    else:
        labels[rng.choice(LARGE, {"one": 1, "five": 5, "all-but-one": LARGE - 1}[positives], replace=False)] = 1
    # Midranks of uint64 would be taken of rounded float64 values: their dense ranks are in the same order.
    dense = np.unique(scores, return_inverse=True)[1]
    assert mf.auc(scores, labels) == float(rank_auc(dense, labels))


@pytest.mark.parametrize("n", [65_535, 65_536, 65_537])
def test_the_threshold_itself_is_exact(n: int) -> None:
    rng = np.random.default_rng(n)
    scores = rng.integers(0, 5000, n)
    labels = rng.integers(0, 2, n)
    assert mf.auc(scores, labels) == float(rank_auc(scores, labels))


def test_pair_counts_beyond_32_bits_are_right() -> None:
    n = 250_000
    scores = np.arange(n)
    assert mf.auc(scores, scores % 2) == float(rank_auc(scores, scores % 2))


# ---------------------------------------------------------------- undefined values and wrong input


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1], [-1, -1, -1], [True] * 3], ids=str)
def test_one_class_gives_nan_with_a_warning(labels: list[Any]) -> None:
    with pytest.warns(RuntimeWarning, match=r"the AUC is undefined \(NaN\): one class is absent"):
        assert math.isnan(mf.auc([0.1, 0.2, 0.3], labels))


def test_no_scores_give_nan_with_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="there are no scores"):
        assert math.isnan(mf.auc([], []))


@pytest.mark.parametrize("n", [4, 600, LARGE])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_nan_is_refused_with_its_position(n: int, dtype: str) -> None:
    scores = np.zeros(n, dtype=dtype)
    scores[n - 2] = np.nan
    with pytest.raises(ValueError, match=rf"^scores\[{n - 2}\] is NaN"):
        mf.auc(scores, np.arange(n) % 2)


def test_nan_of_either_sign_and_any_payload_is_refused() -> None:
    odd = np.array([0x7FF0000000000001, 0xFFF8000000000000, 0xFFFFFFFFFFFFFFFF], dtype=np.uint64).view(np.float64)
    for value in odd:
        with pytest.raises(ValueError, match=r"scores\[1\] is NaN"):
            mf.auc(np.array([0.0, value]), [0, 1])


@pytest.mark.parametrize("n", [600, 5000, LARGE, 8 * LARGE])
@pytest.mark.parametrize(
    ("payloads", "dtype"),
    [
        ([0x7FF8000000001234, 0x7FF8000000003FFF, 0xFFF8000000007FFF, 0x7FF800000000FFFF], "float64"),
        ([0x7FC01234, 0x7FC03FFF, 0xFFC07FFF, 0x7FC0FFFF], "float32"),
    ],
    ids=["float64", "float32"],
)
def test_a_payload_of_a_nan_never_is_a_bin(payloads: list[int], dtype: str, n: int) -> None:
    """What bits of a NaN say led out of the tables of large input."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    for scores in (rng.normal(size=n), rng.integers(0, 50, n), np.where(rng.random(n) < 0.5, 0, rng.normal(size=n))):
        for payload in payloads:
            with_nan = scores.astype(dtype)
            with_nan.view(f"u{with_nan.itemsize}")[n // 3] = payload
            with pytest.raises(ValueError, match=rf"^scores\[{n // 3}\] is NaN"):
                mf.auc(with_nan, labels)
            with pytest.raises(ValueError, match=rf"^scores\[0, {n // 3}\] is NaN"):
                mf.auc_many(with_nan[None], labels)


@pytest.mark.parametrize(
    "extra", [{}, {"sample_weight": [1.0, 1.0]}, {"max_fpr": 0.5}], ids=["plain", "weights", "fpr"]
)
def test_lengths_must_agree(extra: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="scores has 2 entries, labels has 3"):
        mf.auc([0.1, 0.2], [0, 1, 1], **extra)


@pytest.mark.parametrize("extra", [{}, {"sample_weight": [1.0] * 4}, {"max_fpr": 0.5}], ids=["plain", "weights", "fpr"])
@pytest.mark.parametrize("scores", [[0.1, 0.4, 0.35, 0.8], [10, 40, 35, 80]], ids=["floats", "integers"])
def test_swapped_arguments_are_recognised(scores: list[float], extra: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"swapped: the order is \(scores, labels\)"):
        mf.auc([0, 0, 1, 1], scores, **extra)


def test_wrong_labels_beside_real_scores_do_not_look_swapped() -> None:
    with pytest.raises(ValueError, match="position 2, 2") as caught:
        mf.auc([0.1, 0.4, 0.35], [0, 1, 2])
    assert "swapped" not in str(caught.value)


# ---------------------------------------------------------------- pos_label


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        (["well", "ill", "ill", "well"], "ill"),
        (np.array(["well", "ill", "ill", "well"], dtype=object), "ill"),
        ([1, 2, 2, 1], 2),
        ([0.5, 1.5, 1.5, 0.5], 1.5),
        ([1, 0, 0, 1], 0),
        ([False, True, True, False], True),
        ([b"a", b"b", b"b", b"a"], b"b"),
    ],
    ids=["str", "object", "int", "float", "zero", "bool", "bytes"],
)
def test_pos_label_names_the_positive_class(labels: Any, pos_label: Any) -> None:
    scores = [0.3, 0.1, 0.9, 0.2]
    want = mf.auc(scores, [0, 1, 1, 0])
    assert mf.auc(scores, labels, pos_label=pos_label) == want == 0.5
    assert mf.auc_many([scores, scores], labels, pos_label=pos_label).tolist() == [want, want]


@pytest.mark.parametrize(
    ("labels", "pos_label", "message"),
    [
        (["a", "b", "c"], "a", "beside pos_label='a' must all be the same, but hold 'b' and, at position 2, 'c'"),
        ([0, 1, 2], 1, "beside pos_label=1 must all be the same, but hold 0 and, at position 2, 2"),
        ([0, 1, 0], 2, "beside pos_label=2 must all be the same"),
        (["ill", None, None], "ill", r"labels\[1\] is missing"),
        ([1.0, 1.0, math.nan], 1, r"labels\[2\] is missing"),
    ],
    ids=["strings", "integers", "absent", "none", "nan"],
)
def test_a_third_or_missing_label_beside_pos_label_is_refused(labels: Any, pos_label: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mf.auc([0.1, 0.2, 0.3], labels, pos_label=pos_label)


def test_pos_label_must_be_one_label() -> None:
    with pytest.raises(TypeError, match="pos_label must be one label"):
        mf.auc([1, 2, 3], [1, 0, 1], pos_label=[1, 1, 1])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2], "labels hold 1 and 2, which does not say which is the positive class: pass pos_label=2"),
        ([-1, 0], "pass pos_label="),
        (["no", "yes"], r"labels hold strings \('no', 'yes'\): say which one is positive with pos_label"),
        ([0.0, math.nan], r"labels\[1\] is NaN"),
    ],
    ids=["one-two", "minus-zero", "strings", "nan"],
)
def test_labels_that_do_not_say_which_is_positive_are_refused_with_a_way_out(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mf.auc([0.1, 0.2], labels)


# ---------------------------------------------------------------- weights

WEIGHTS = st.sampled_from([0.0, 0.1, 0.25, 1.0, 3.0, 1e-3, 1e6]) | st.floats(0, 100)


@given(scored(("float64", "float32", "int64"), max_size=16), st.data())
def test_weighted_auc_is_the_definition(data: tuple[np.ndarray, np.ndarray], draw: st.DataObject) -> None:
    scores, labels = data
    weights = draw.draw(st.lists(WEIGHTS, min_size=len(scores), max_size=len(scores)))
    want = exact_auc(scores.tolist(), labels.tolist(), weights)
    if want is None:
        with pytest.warns(RuntimeWarning, match="has no weight"):
            assert math.isnan(mf.auc(scores, labels, sample_weight=weights))
    else:
        assert mf.auc(scores, labels, sample_weight=weights) == pytest.approx(float(want), rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_weighted_auc_equals_sklearn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, labels, weights = rng.integers(0, 40, 300), rng.integers(0, 2, 300), rng.exponential(size=300)
    want = roc_auc_score(labels, scores, sample_weight=weights)
    assert mf.auc(scores, labels, sample_weight=weights) == pytest.approx(want, abs=1e-14)
    assert mf.auc(scores, labels, sample_weight=weights.astype(np.float32)) == pytest.approx(want, abs=1e-6)


@given(scored(), st.sampled_from([1, 1.0, True, 0.5, 4.0, 5e-324, 1e-200, 1e200, 1.7e308]))
def test_equal_weights_change_nothing(data: tuple[np.ndarray, np.ndarray], weight: float) -> None:
    scores, labels = data
    got = mf.auc(scores, labels, sample_weight=[weight] * len(scores))
    assert got == pytest.approx(mf.auc(scores, labels), abs=1e-15)


@given(scored(("float64",)), st.data())
def test_integer_weights_are_repetitions(data: tuple[np.ndarray, np.ndarray], draw: st.DataObject) -> None:
    scores, labels = data
    times = np.array(draw.draw(st.lists(st.integers(1, 4), min_size=len(scores), max_size=len(scores))))
    want = mf.auc(np.repeat(scores, times), np.repeat(labels, times))
    assert mf.auc(scores, labels, sample_weight=times) == want


def test_a_score_of_weight_zero_is_as_good_as_absent() -> None:
    scores, labels = [0.1, 0.4, 0.35, 0.8, 0.35], [0, 0, 1, 1, 0]
    assert mf.auc(scores, labels, sample_weight=[1, 0, 1, 1, 1]) == mf.auc([0.1, 0.35, 0.8, 0.35], [0, 1, 1, 0])


def test_many_float32_weights_of_one_do_not_lose_count() -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.random(200_000, dtype=np.float32), rng.integers(0, 2, 200_000)
    got = mf.auc(scores, labels, sample_weight=np.ones(200_000, dtype=np.float32))
    assert got == mf.auc(scores, labels)


@given(scored(("float64",)), st.data())
def test_a_perfect_weighted_ranking_is_exactly_one(data: tuple[np.ndarray, np.ndarray], draw: st.DataObject) -> None:
    _, labels = data
    weights = draw.draw(st.lists(st.floats(0.001, 10), min_size=len(labels), max_size=len(labels)))
    assert 1 - 1e-15 <= mf.auc(labels, labels, sample_weight=weights) <= 1.0


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -0.5, 1], r"sample_weight\[1\] is -0.5: weights must not be negative"),
        ([1, 1, math.nan], r"sample_weight\[2\] is NaN"),
        ([INF, 1, 1], r"sample_weight\[0\] is inf"),
        ([1, 1], "sample_weight has 2"),
    ],
    ids=["negative", "nan", "infinite", "short"],
)
def test_bad_weights_are_refused(weights: list[float], message: str) -> None:
    for extra in ({}, {"max_fpr": 0.5}):
        with pytest.raises(ValueError, match=message):
            mf.auc([0.1, 0.2, 0.3], [0, 1, 0], sample_weight=weights, **extra)


# ---------------------------------------------------------------- partial areas


def exact_partial(scores: Any, labels: Any, max_fpr: Fraction) -> Fraction:
    """Trapezoids under the ROC curve up to `max_fpr`, in fractions."""
    n_pos, n_neg = sum(labels), len(labels) - sum(labels)
    area = tp = fp = Fraction(0)
    for value in sorted(set(scores), reverse=True):
        rise = Fraction(sum(y for s, y in zip(scores, labels, strict=True) if s == value), n_pos)
        run = Fraction(sum(1 - y for s, y in zip(scores, labels, strict=True) if s == value), n_neg)
        width = min(run, max_fpr - fp)
        if run and width > 0:
            area += width * (tp + rise * width / run / 2)
        tp, fp = tp + rise, fp + run
    return area


@given(scored(max_size=16), st.fractions("1/100", 1, max_denominator=100))
def test_partial_area_is_the_definition(data: tuple[np.ndarray, np.ndarray], max_fpr: Fraction) -> None:
    scores, labels = data
    want = exact_partial(scores.tolist(), labels.tolist(), max_fpr)
    chance = max_fpr**2 / 2
    assert mf.auc(scores, labels, max_fpr=float(max_fpr), standardize=False) == pytest.approx(float(want), abs=1e-14)
    scaled = (1 + (want - chance) / (max_fpr - chance)) / 2
    assert mf.auc(scores, labels, max_fpr=float(max_fpr)) == pytest.approx(float(scaled), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("max_fpr", [0.01, 0.1, 0.3, 0.5, 0.999, 1.0])
def test_partial_area_equals_sklearn(weighted: bool, max_fpr: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 400))
        scores, labels = rng.integers(0, 30, n), rng.permutation(np.arange(n) % 3 // 2)
        weights = rng.exponential(size=n) if weighted else None
        want = roc_auc_score(labels, scores, sample_weight=weights, max_fpr=max_fpr)
        assert mf.auc(scores, labels, sample_weight=weights, max_fpr=max_fpr) == pytest.approx(want, abs=1e-13)


def test_published_partial_areas() -> None:
    assert mf.auc([0.1, 0, 0.1, 0.01], [0, 0, 1, 1], max_fpr=0.3) == pytest.approx(0.5, abs=1e-15)
    # A reversed ranking falls below one half: the standardised area is not folded up.
    assert mf.auc([4, 3, 2, 1], [0, 0, 1, 1], max_fpr=0.5) == pytest.approx(1 / 3, abs=1e-15)


@given(scored())
def test_the_whole_curve_is_the_auc(data: tuple[np.ndarray, np.ndarray]) -> None:
    scores, labels = data
    for standardize in (True, False):
        got = mf.auc(scores, labels, max_fpr=1, standardize=standardize)
        assert got == pytest.approx(mf.auc(scores, labels), abs=1e-15)


@pytest.mark.parametrize("max_fpr", [0.0, -0.1, 1.0001, math.nan, INF])
def test_max_fpr_out_of_range_is_refused(max_fpr: float) -> None:
    with pytest.raises(ValueError, match=r"max_fpr must lie in \(0, 1\]; got"):
        mf.auc([1, 2], [0, 1], max_fpr=max_fpr)


def test_partial_area_of_one_class_is_nan_with_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="undefined"):
        assert math.isnan(mf.auc([1, 2], [1, 1], max_fpr=0.5))


# ---------------------------------------------------------------- many rows


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(1, 2), (7, 5), (300, 20), (40, 511), (9, 513), (3, 4097)], ids=str)
def test_rows_equal_single_calls(dtype: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    scores = rng.integers(0, 2 if dtype == "bool" else 12, shape).astype(dtype)
    own = rng.permuted(np.broadcast_to(np.arange(shape[1]) % 2, shape), axis=1)
    shared = own[0]
    assert mf.auc_many(scores, shared).tolist() == [mf.auc(row, shared) for row in scores]
    assert mf.auc_many(scores, own).tolist() == [mf.auc(row, y) for row, y in zip(scores, own, strict=True)]
    assert mf.auc_many(scores, own > 0).tolist() == mf.auc_many(scores, own).tolist()


def test_rows_wider_than_the_bucket_threshold_equal_single_calls() -> None:
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 9999, (3, 66_000)) / 7
    labels = rng.integers(0, 2, 66_000)
    assert mf.auc_many(scores, labels).tolist() == [mf.auc(row, labels) for row in scores]


@pytest.mark.parametrize("order", ["F", "strided", "reversed"])
def test_rows_of_any_layout_equal_single_calls(order: str) -> None:
    rng = np.random.default_rng(6)
    base = rng.random((8, 40))
    scores = {"F": np.asfortranarray(base), "strided": base[::2, ::3], "reversed": base[::-1, ::-1]}[order]
    labels = np.arange(scores.shape[1]) % 2
    assert mf.auc_many(scores, labels).tolist() == [mf.auc(row, labels) for row in scores]


def test_undefined_rows_warn_once_and_leave_the_others() -> None:
    with pytest.warns(RuntimeWarning, match=r"the AUC of 2 rows is undefined \(NaN\), first of row 1") as caught:
        values = mf.auc_many([[1, 2], [1, 2], [2, 1], [1, 2]], [[0, 1], [1, 1], [0, 1], [0, 0]])
    assert len(caught) == 1
    np.testing.assert_array_equal(values, [1.0, math.nan, 0.0, math.nan])


def test_no_rows_give_no_values() -> None:
    assert mf.auc_many(np.empty((0, 3)), [0, 1, 1]).shape == (0,)


def test_rows_of_no_scores_are_undefined() -> None:
    with pytest.warns(RuntimeWarning, match="undefined"):
        assert np.isnan(mf.auc_many(np.empty((2, 0)), np.empty(0, dtype=int))).tolist() == [True, True]


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([[1, 2], [2, math.nan]], [0, 1], r"scores\[1, 1\] is NaN"),
        ([[1, 2], [2, 3]], [[0, 1], [0, 2]], "row 1: labels hold 0 and 2"),
        ([[1, 2], [2, 3]], [0, 1, 1], r"labels must have shape \(2,\) or \(2, 2\)"),
        ([[1, 2], [2, 3]], [[0, 1]], r"labels must have shape \(2,\) or \(2, 2\)"),
        ([1, 2], [0, 1], r"scores must have shape \(rows, scores of a row\); got shape \[2\]"),
    ],
    ids=["nan", "label", "long", "rows", "one-dimensional"],
)
def test_errors_of_many_rows_name_the_row(scores: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mf.auc_many(scores, labels)


# ---------------------------------------------------------------- counts


@pytest.mark.parametrize(
    ("pos", "neg", "error", "message"),
    [
        ([1, -1], [1, 1], ValueError, r"pos\[1\] is -1: counts must not be negative"),
        ([1, 1], [1, -2], ValueError, r"neg\[1\] is -2: counts must not be negative"),
        ([1.0], [1], TypeError, "pos must be integers"),
        ([1], np.ones(1, dtype=np.float32), TypeError, "neg must be integers"),
        ([1, 2], [1], ValueError, "pos has 2 entries, neg has 1"),
        ([2**63], [1], ValueError, r"pos sums to 9223372036854775808: at most 2\*\*63 - 1"),
        ([1, 1], [2**62, 2**62], ValueError, "neg sums to 9223372036854775808"),
        ([2**64], [1], TypeError, "pos"),
        ([[1, 2]], [[1, 2]], ValueError, "pos must be one-dimensional"),
    ],
    ids=["negative-pos", "negative-neg", "float", "float32", "length", "2^63", "sum", "2^64", "two-dimensional"],
)
def test_counts_that_are_none_are_refused(pos: Any, neg: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mf.auc_from_counts(pos, neg)


def test_the_largest_counts_are_exact() -> None:
    top = 2**63 - 1
    assert mf.auc_from_counts([0, top], [top, 0]) == 1.0
    assert mf.auc_from_counts([top], [top]) == 0.5
    assert mf.auc_from_counts(np.array([top, 0], dtype=np.uint64), [0, top]) == 0.0


@pytest.mark.parametrize(("pos", "neg"), [([0, 0], [1, 2]), ([3], [0]), ([], [])], ids=["no-pos", "no-neg", "empty"])
def test_counts_of_one_class_give_nan_with_a_warning(pos: list[int], neg: list[int]) -> None:
    with pytest.warns(RuntimeWarning, match="undefined"):
        assert math.isnan(mf.auc_from_counts(pos, neg))


def test_a_defined_value_never_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mf.auc([INF, INF, INF, INF], [0, 0, 1, 1]) == 0.5
