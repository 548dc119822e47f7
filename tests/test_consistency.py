"""Error consistency: against fractions of plain counts, numpy, scipy, scikit-learn and golden values; laws, errors."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import golden_path
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import cohen_kappa_score, matthews_corrcoef

import milfast as mf
from milfast._core import agreement_summary
from milfast.consistency import AgreementSummary, agreement_matrix, intersections, sample_counts, summary

MEASURES: tuple[Any, ...] = ("jaccard", "dice", "kappa", "double-fault", "phi", "yule-q", "agreement")


def value(measure: str, x: Any, y: Any, weights: Any) -> float:
    """A measure as it is written down, from one sample after the other."""
    n = a = b = i = 0
    for err_x, err_y, weight in zip(x, y, weights, strict=True):
        n, a, b, i = n + weight, a + weight * err_x, b + weight * err_y, i + weight * (err_x and err_y)
    only_x, only_y, neither = a - i, b - i, n - a - b + i
    if measure == "phi":
        below = a * (n - a) * b * (n - b)
        return (i * neither - only_x * only_y) / math.sqrt(below) if below else math.nan
    above, below = {
        "jaccard": (i, i + only_x + only_y),
        "dice": (2 * i, a + b),
        "double-fault": (i, n),
        "agreement": (i + neither, n),
        "yule-q": (neither * i - only_x * only_y, neither * i + only_x * only_y),
        # (observed - expected) / (1 - expected), both times n^2
        "kappa": (n * (i + neither) - a * b - (n - a) * (n - b), n * n - a * b - (n - a) * (n - b)),
    }[measure]
    return float(Fraction(above, below)) if below else math.nan


def by_loop(measure: str, sets: Any, weights: Any = None) -> np.ndarray:
    sets = np.asarray(sets).astype(int).tolist()
    n = len(sets[0]) if sets else 0
    weights = [1] * n if weights is None else [int(w) for w in weights]
    return np.array([[value(measure, x, y, weights) for y in sets] for x in sets], dtype=float).reshape(
        len(sets), len(sets)
    )


@st.composite
def error_sets(draw: st.DrawFn) -> np.ndarray:
    """Few or many sets, on no samples up to several words of them; dense, sparse, with constant columns and rows."""
    n_sets, n = draw(st.integers(0, 40)), draw(st.sampled_from([0, 1, 2, 7, 63, 64, 65, 130, 600]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rate = draw(st.sampled_from([0.02, 0.3, 0.9]))
    sets = rng.random((n_sets, n)) < rate
    for kind, axis in itertools.product((False, True), (0, 1)):
        if draw(st.booleans()) and sets.size:
            lines = rng.integers(0, sets.shape[axis], draw(st.sampled_from([1, 5, 300])))
            sets[(lines, slice(None)) if axis == 0 else (slice(None), lines)] = kind
    return sets


small_sets = hnp.arrays(bool, st.tuples(st.integers(0, 9), st.integers(0, 70)))


def quiet(call: Any, *arguments: Any, **options: Any) -> Any:
    """The result; what is undefined is compared as NaN, and the warning has its own test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return call(*arguments, **options)


def bits(sets: np.ndarray) -> dict[str, Any]:
    return {"error_sets": np.packbits(sets, axis=1), "n_samples": sets.shape[1]}


# ---------------------------------------------------------------- the definition


@pytest.mark.parametrize("measure", MEASURES)
@given(sets=small_sets)
def test_measures_are_the_definition(measure: str, sets: np.ndarray) -> None:
    want = by_loop(measure, sets)
    got = quiet(agreement_matrix, sets, measure)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=2e-15, atol=1e-15)
    if measure in ("jaccard", "dice", "double-fault", "agreement"):  # one division of two integers
        np.testing.assert_array_equal(got, want)


@given(error_sets())
def test_intersections_are_those_of_numpy(sets: np.ndarray) -> None:
    counts = sets.astype(np.int64)
    got = intersections(sets)
    assert got.dtype == np.uint32
    np.testing.assert_array_equal(got, counts @ counts.T)
    np.testing.assert_array_equal(sample_counts(sets), counts.sum(axis=0))


@given(sets=error_sets(), seed=st.integers(0, 99), largest=st.sampled_from([0, 1, 2, 9, 2**16, 2**32 - 1]))
def test_weighted_intersections_are_those_of_numpy(sets: np.ndarray, seed: int, largest: int) -> None:
    weights = np.random.default_rng(seed).integers(0, largest, sets.shape[1], endpoint=True)
    got = intersections(sets, sample_weight=weights)
    assert got.dtype == np.uint64
    np.testing.assert_array_equal(got, (sets * weights) @ sets.astype(np.int64).T)


@pytest.mark.parametrize("measure", MEASURES)
@given(sets=small_sets, seed=st.integers(0, 99), largest=st.sampled_from([0, 1, 9, 2**20]))
def test_weighted_measures_are_the_definition(measure: str, sets: np.ndarray, seed: int, largest: int) -> None:
    weights = np.random.default_rng(seed).integers(0, largest, sets.shape[1], endpoint=True)
    got = quiet(agreement_matrix, sets, measure, sample_weight=weights)
    np.testing.assert_allclose(got, by_loop(measure, sets, weights), rtol=1e-14, atol=1e-14)


@given(sets=error_sets(), seed=st.integers(0, 99))
def test_a_weight_is_a_sample_held_that_often(sets: np.ndarray, seed: int) -> None:
    weights = np.random.default_rng(seed).poisson(1.0, sets.shape[1])
    repeated = np.repeat(sets, weights, axis=1)
    np.testing.assert_array_equal(intersections(sets, sample_weight=weights), intersections(repeated))
    for measure in MEASURES:
        got = quiet(agreement_matrix, sets, measure, sample_weight=weights)
        np.testing.assert_array_equal(got, quiet(agreement_matrix, repeated, measure))
        assert repr(summary(sets, measure, sample_weight=weights)) == repr(summary(repeated, measure))


@pytest.mark.parametrize("measure", MEASURES)
@given(sets=error_sets())
def test_the_summary_is_that_of_the_pairs(measure: Any, sets: np.ndarray) -> None:
    pairs = quiet(agreement_matrix, sets, measure, condensed=True)
    known = pairs[~np.isnan(pairs)]
    got = summary(sets, measure)
    assert (got.n_pairs, got.n_undefined, got.measure) == (len(known), len(pairs) - len(known), measure)
    if len(known) == 0:
        assert all(math.isnan(x) for x in (got.mean, got.sd, got.min, got.max))
        return
    assert (got.min, got.max) == (known.min(), known.max())
    assert got.mean == pytest.approx(known.mean(), rel=1e-14, abs=1e-15)
    if len(known) == 1:
        assert math.isnan(got.sd)
    else:
        assert got.sd == pytest.approx(known.std(ddof=1), rel=1e-12, abs=1e-15)


def test_other_libraries_agree() -> None:
    sets = np.random.default_rng(0).random((30, 500)) < 0.3
    for measure in ("jaccard", "dice"):  # scipy's are distances
        got = agreement_matrix(sets, measure, condensed=True)
        np.testing.assert_allclose(got, 1 - pdist(sets, measure), rtol=0, atol=2.3e-16)
    np.testing.assert_allclose(agreement_matrix(sets, "phi"), np.corrcoef(sets), rtol=0, atol=1e-15)
    for i, j in [(0, 1), (4, 29), (7, 7)]:
        assert agreement_matrix(sets, "kappa")[i, j] == pytest.approx(cohen_kappa_score(sets[i], sets[j]), abs=1e-15)
        assert agreement_matrix(sets, "phi")[i, j] == pytest.approx(matthews_corrcoef(sets[i], sets[j]), abs=1e-15)


# ---------------------------------------------------------------- laws


@given(error_sets())
def test_square_and_condensed_hold_the_same(sets: np.ndarray) -> None:
    n = len(sets)
    above = np.triu_indices(n, 1)
    for measure in MEASURES:
        square = quiet(agreement_matrix, sets, measure)
        assert square.shape == (n, n)
        np.testing.assert_array_equal(square, square.T)
        condensed = quiet(agreement_matrix, sets, measure, condensed=True)
        np.testing.assert_array_equal(condensed, square[above])
        single = quiet(agreement_matrix, sets, measure, dtype="float32")
        assert single.dtype == np.float32
        np.testing.assert_array_equal(single, square.astype(np.float32))
    np.testing.assert_array_equal(intersections(sets, condensed=True), intersections(sets)[above])
    np.testing.assert_array_equal(quiet(mf.jaccard_matrix, sets), quiet(agreement_matrix, sets))


def test_the_order_of_pairs_is_that_of_scipy() -> None:
    sets = np.random.default_rng(1).random((9, 40)) < 0.4
    square = agreement_matrix(sets)
    np.testing.assert_array_equal(squareform(agreement_matrix(sets, condensed=True)) + np.eye(9), square)


@pytest.mark.parametrize("dtype", ["bool", "u1", "i1", "u2", "i4", ">i8", "u8", "f2", "f4", ">f8", "O"])
@given(sets=small_sets)
def test_every_dtype_gives_the_same_bits(dtype: str, sets: np.ndarray) -> None:
    if dtype == "O" and not sets.size:
        sets = np.zeros((1, 1), bool)
    given_sets = sets.astype(dtype)
    np.testing.assert_array_equal(intersections(given_sets), intersections(sets))
    np.testing.assert_array_equal(sample_counts(given_sets), sets.sum(axis=0))


@given(error_sets())
def test_packed_bits_give_the_same(sets: np.ndarray) -> None:
    np.testing.assert_array_equal(intersections(**bits(sets)), intersections(sets))
    np.testing.assert_array_equal(sample_counts(**bits(sets)), sample_counts(sets))
    np.testing.assert_array_equal(quiet(mf.jaccard_matrix, **bits(sets)), quiet(mf.jaccard_matrix, sets))
    assert repr(summary(**bits(sets))) == repr(summary(sets))


def test_every_form_gives_the_same_bits() -> None:
    sets = np.random.default_rng(2).random((11, 150)) < 0.3
    want = mf.jaccard_matrix(sets)
    wide = np.zeros((11, 300), bool)
    wide[:, ::2] = sets
    read_only = sets.copy()
    read_only.flags.writeable = False
    forms = [
        sets.tolist(),
        np.asfortranarray(sets),
        wide[:, ::2],
        sets[::-1].copy()[::-1],
        read_only,
        pd.DataFrame(sets),
        pd.DataFrame(sets.astype(int)),
        np.ma.masked_array(sets, mask=False),
        np.frombuffer(b"\0" + sets.tobytes(), bool, offset=1).reshape(sets.shape),
    ]
    for form in forms:
        np.testing.assert_array_equal(mf.jaccard_matrix(form), want)
    strided = np.repeat(np.packbits(sets, axis=1), 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(mf.jaccard_matrix(strided, n_samples=150), want)


def test_tensors_are_accepted() -> None:
    torch = pytest.importorskip("torch")
    sets = np.random.default_rng(2).random((5, 99)) < 0.3
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float32):
        np.testing.assert_array_equal(intersections(torch.tensor(sets).to(dtype)), intersections(sets))


@given(sets=error_sets(), seed=st.integers(0, 99))
def test_order_does_not_matter(sets: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(sets)), rng.permutation(sets.shape[1])
    got = quiet(mf.jaccard_matrix, sets[rows][:, columns])
    np.testing.assert_array_equal(got, quiet(mf.jaccard_matrix, sets)[np.ix_(rows, rows)])


@given(error_sets())
def test_measures_are_tied_together(sets: np.ndarray) -> None:
    jaccard, dice, kappa = (quiet(agreement_matrix, sets, measure) for measure in ("jaccard", "dice", "kappa"))
    np.testing.assert_allclose(dice, 2 * jaccard / (1 + jaccard), rtol=1e-15)
    # kappa is Dice corrected for chance
    rates = sets.mean(axis=1)[:, None] if sets.shape[1] else np.full((len(sets), 1), np.nan)
    with np.errstate(all="ignore"):
        chance = 2 * rates * rates.T / (rates + rates.T)
        np.testing.assert_allclose(kappa, (dice - chance) / (1 - chance), rtol=1e-9, atol=1e-12)


@given(error_sets())
def test_errors_and_successes_swapped_leave_the_symmetric_measures(sets: np.ndarray) -> None:
    for measure in ("kappa", "phi", "yule-q", "agreement"):
        got, want = (quiet(agreement_matrix, s, measure) for s in (~sets, sets))
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


@given(error_sets())
def test_samples_on_which_no_model_errs_leave_jaccard(sets: np.ndarray) -> None:
    more = np.concatenate([sets, np.zeros((len(sets), 77), bool)], axis=1)
    np.testing.assert_array_equal(quiet(mf.jaccard_matrix, more), quiet(mf.jaccard_matrix, sets))


@pytest.mark.parametrize("shape", [(100, 3000), (33, 20_000), (257, 64)])
def test_many_sets_and_samples(shape: tuple[int, int]) -> None:
    sets = np.random.default_rng(3).random(shape) < 0.3
    x = sets.astype(np.float64)
    both, sizes = x @ x.T, x.sum(axis=1)
    np.testing.assert_array_equal(mf.jaccard_matrix(sets), both / (sizes[:, None] + sizes - both))
    np.testing.assert_array_equal(sample_counts(sets), x.sum(axis=0))


def test_a_constant_classifier_is_consistent_with_itself() -> None:
    y = np.random.default_rng(4).integers(0, 2, 300)
    sets = np.tile(y == 1, (20, 1))
    got = summary(sets)
    assert (got.mean, got.sd, got.min, got.max, got.n_pairs) == (1, 0, 1, 1, 190)


# ---------------------------------------------------------------- what is 0 / 0

EMPTY = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]]


@pytest.mark.parametrize(("measure", "pairs"), [("jaccard", 1), ("dice", 1), ("kappa", 2), ("phi", 10), ("yule-q", 10)])
def test_an_undefined_pair_is_nan_with_a_warning(measure: Any, pairs: int) -> None:
    message = rf"{measure} is undefined \(NaN\) for {pairs} of the pairs of error sets: 0 / 0"
    with pytest.warns(RuntimeWarning, match=message):
        got = agreement_matrix(EMPTY, measure, condensed=True)
    assert np.isnan(got).sum() == pairs
    assert summary(EMPTY, measure).n_undefined == pairs


@pytest.mark.parametrize("measure", ["double-fault", "agreement"])
def test_shares_of_samples_are_defined_when_there_are_samples(measure: Any) -> None:
    assert not np.isnan(agreement_matrix(EMPTY, measure)).any()
    with pytest.warns(RuntimeWarning, match="for 1 of the pairs"):
        assert np.isnan(agreement_matrix(np.zeros((2, 0)), measure)).all()


def test_an_empty_set_has_no_value_with_itself_either() -> None:
    assert np.isnan(mf.jaccard_matrix([[0, 0], [1, 0]])[0, 0])  # no pair of two sets is undefined: no warning


@pytest.mark.parametrize("n", [0, 5, 64])
@pytest.mark.parametrize("n_sets", [0, 1])
def test_no_pairs(n_sets: int, n: int) -> None:
    sets = np.ones((n_sets, n), bool)
    assert agreement_matrix(sets, condensed=True).shape == (0,)
    assert intersections(sets).tolist() == [[n]] * n_sets
    got = summary(sets)
    assert (got.n_pairs, got.n_undefined) == (0, 0)
    assert math.isnan(got.mean)
    assert got.to_dict() == dict.fromkeys(("mean", "sd", "min", "max")) | {
        "measure": "jaccard",
        "n_pairs": 0,
        "n_undefined": 0,
    }


def test_the_summary_can_be_read() -> None:
    assert repr(summary(EMPTY)) == "AgreementSummary(jaccard: mean 0.2222, SD 0.3632, 0 to 1, n_pairs=9, n_undefined=1)"
    assert summary([[1, 0], [1, 1]]) == AgreementSummary(
        "jaccard", 0.5, pytest.approx(math.nan, nan_ok=True), 0.5, 0.5, 1, 0
    )


# ---------------------------------------------------------------- golden values


@pytest.mark.parametrize("name", ["diabetes", "parkinsons", "transfusion"])
def test_golden_values(name: str) -> None:
    golden = json.loads(golden_path("golden_errors.json").read_text())[name]
    packed = np.load(golden_path(f"golden_errors_{name}_lr.npy"))
    m, n = golden["m"], golden["n"]
    sets = np.unpackbits(packed, axis=1, count=n).astype(bool)
    for given_sets, options in ((packed, {"n_samples": n}), (sets, {})):
        got = summary(given_sets, **options)
        assert got.n_pairs == m * (m - 1) // 2
        assert got.mean == pytest.approx(golden["AEC"], abs=1e-14)
        assert got.sd == pytest.approx(golden["AEC_sd"], abs=1e-14)
        assert (got.min, got.max) == (golden["AEC_min"], golden["AEC_max"])
        kappa, both = (summary(given_sets, measure, **options) for measure in ("kappa", "double-fault"))
        assert kappa.mean == pytest.approx(golden["mean_kappa"], abs=1e-13)
        assert both.mean == pytest.approx(golden["double_fault"], abs=1e-14)
        counts = intersections(given_sets, **options)
        assert counts.diagonal()[:5].tolist() == golden["first_errors"]
        assert counts[0, 1] == golden["I_0_1"]
        assert intersections(given_sets, condensed=True, **options).sum() == golden["intersection_sum"]
        samples = sample_counts(given_sets, **options)
        assert (samples == m).sum() == golden["always_wrong"]
        assert (samples > 0).sum() == golden["ever_wrong"]
        assert (samples == m).sum() / (samples > 0).sum() == golden["total_EC"]
    assert np.median(agreement_matrix(sets, condensed=True)) == golden["AEC_median"]


# ---------------------------------------------------------------- errors

GOOD = np.array([[0, 1, 1], [1, 0, 0]])
BAD: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "two": ([[0, 1], [2, 0]], {}, ValueError, r"error_sets\[1, 0\] is 2: pass 1 or True where the model errs"),
    "bytes": (np.array([[0, 3]], np.uint8), {}, ValueError, r"error_sets\[0, 1\] is 3: .*n_samples, eight samples"),
    "no-bool": (np.array([[1, 7]], np.uint8).view(bool), {}, ValueError, r"error_sets\[0, 1\] is 7"),
    "minus": ([[0, 1], [1, -1]], {}, ValueError, r"error_sets\[1, 1\] is -1"),
    "half": ([[0.5]], {}, ValueError, r"error_sets\[0, 0\] is 0.5"),
    "nan": ([[0.0, 1.0], [0.0, math.nan]], {}, ValueError, r"error_sets\[1, 1\] is NaN: drop or impute it first"),
    "one-dimensional": ([0, 1], {}, ValueError, r"error_sets must have shape \(n_sets, n_samples\); got shape \[2\]"),
    "cube": (np.zeros((2, 2, 2)), {}, ValueError, r"got shape \[2, 2, 2\]"),
    "scalar": (1, {}, ValueError, r"got shape \[\]"),
    "strings": ([["a"]], {}, TypeError, "error_sets must hold real numbers"),
    "ragged": ([[0], [0, 1]], {}, TypeError, "error_sets cannot be read as a numeric array"),
    "masked": (np.ma.masked_array(GOOD, GOOD == 1), {}, ValueError, "error_sets has masked values"),
    "width": (np.zeros((2, 3), np.uint8), {"n_samples": 25}, ValueError, "must have 4 bytes a row for n_samples=25"),
    "unpacked": (
        np.zeros((2, 9), np.uint8),
        {"n_samples": 9},
        ValueError,
        "must have 2 bytes a row .*got 9: pack with",
    ),
    "bits": (
        np.array([[0], [1]], np.uint8),
        {"n_samples": 7},
        ValueError,
        r"error_sets\[1, 0\] has bits set behind sample 7",
    ),
    "bool": (
        np.zeros((2, 1), bool),
        {"n_samples": 7},
        TypeError,
        "uint8 where n_samples is given: leave n_samples out",
    ),
    "floats": (np.zeros((2, 1)), {"n_samples": 7}, TypeError, "error_sets must be uint8 where n_samples is given"),
    "negative": (np.zeros((2, 1), np.uint8), {"n_samples": -1}, ValueError, "n_samples must not be negative; got -1"),
}


@pytest.mark.parametrize(("sets", "options", "error", "message"), BAD.values(), ids=BAD)
def test_bad_error_sets_are_refused(sets: Any, options: Any, error: type[Exception], message: str) -> None:
    for call in (mf.jaccard_matrix, agreement_matrix, intersections, sample_counts, summary, agreement_summary):
        with pytest.raises(error, match=message):
            call(sets, **options)


BAD_OPTIONS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "measure": ({"measure": "cosine"}, ValueError, "measure must be one of jaccard, dice, kappa, .*; got 'cosine'"),
    "short": ({"sample_weight": [1, 2]}, ValueError, "sample_weight must have one entry a sample, 3; got 2"),
    "negative": ({"sample_weight": [1, -2, 0]}, ValueError, r"sample_weight\[1\] is -2: counts must not be negative"),
    "fractions": ({"sample_weight": [0.5, 1.0, 2.0]}, TypeError, "sample_weight must be integers"),
    "large": ({"sample_weight": [0, 2**32, 1]}, ValueError, r"sample_weight\[1\] is 4294967296: weights must be less"),
    "matrix": ({"sample_weight": [[1, 2, 3]]}, ValueError, "sample_weight must be one-dimensional"),
}


@pytest.mark.parametrize(("options", "error", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_are_refused(options: Any, error: type[Exception], message: str) -> None:
    for call in (agreement_matrix, summary):
        with pytest.raises(error, match=message):
            call(GOOD, **options)


@pytest.mark.parametrize("dtype", ["float16", np.int64, None, "no dtype", 3])
def test_an_unknown_dtype_is_refused(dtype: Any) -> None:
    with pytest.raises(ValueError, match="dtype must be float32 or float64; got "):
        agreement_matrix(GOOD, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "f4", np.float32, np.dtype("f4"), ">f4"])
def test_a_dtype_is_whatever_numpy_takes(dtype: Any) -> None:
    assert agreement_matrix(GOOD, dtype=dtype).dtype == np.float32
    assert agreement_matrix(GOOD, dtype=float).dtype == np.float64
