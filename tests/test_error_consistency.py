"""Error consistency as a whole: against sets of Python, fractions, golden values; laws, identities, errors."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT, golden_path
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom
from sklearn.metrics import cohen_kappa_score

import milfast as mf
from milfast.consistency import (
    agreement_matrix,
    chance_level,
    error_consistency,
    jaccard_from_kappa,
    kappa_from_jaccard,
    summary,
)
from milfast.consistency.sampling_error import draws

METRICS = ("jaccard", "kappa", "dice", "double_fault", "q", "phi", "agreement")
RATIOS = ("jaccard", "kappa", "dice", "double_fault", "agreement")
SHARES = ("jaccard", "dice", "double_fault", "agreement")
NAN = math.nan


# ---------------------------------------------------------------- plain definitions


def fraction(metric: str, n: int, a: int, b: int, both: int, same: int | None = None) -> tuple[Any, Any]:
    """Numerator and denominator of a metric as it is written down."""
    same = both if same is None else same
    only_a, only_b = a - both, b - both
    union = a + only_b
    neither = n - union
    return {
        "jaccard": (same, union),
        "dice": (2 * same, a + b),
        "double_fault": (same, n),
        "agreement": (neither + same, n),
        # observed and expected agreement, times n^2
        "kappa": (n * (both + neither) - a * b - (n - a) * (n - b), n * n - a * b - (n - a) * (n - b)),
        "phi": (both * neither - only_a * only_b, math.sqrt(a * (n - a) * b * (n - b))),
        "q": (both * neither - only_a * only_b, both * neither + only_a * only_b),
    }[metric]


def ratio(above: Any, below: Any) -> float:
    return above / below if below else NAN


class Plain:
    """Everything from sets of sample numbers, one pair and one sample after the other."""

    def __init__(self, sets: Any, metric: str, predictions: Any = None) -> None:
        self.flags = np.asarray(sets, bool)
        self.m, self.n = self.flags.shape
        self.sets = [set(np.flatnonzero(row).tolist()) for row in self.flags]
        self.metric, self.predictions = metric, predictions

    def same(self, i: int, j: int) -> int:
        both = self.sets[i] & self.sets[j]
        if self.predictions is None:
            return len(both)
        return sum(self.predictions[i][s] == self.predictions[j][s] for s in both)

    def parts(self, i: int, j: int) -> tuple[Any, Any]:
        a, b = self.sets[i], self.sets[j]
        return fraction(self.metric, self.n, len(a), len(b), len(a & b), self.same(i, j))

    def pairs(self) -> list[float]:
        return [ratio(*self.parts(i, j)) for i, j in itertools.combinations(range(self.m), 2)]

    def mean(self, empty: float = NAN) -> float:
        values = [empty if math.isnan(x) else x for x in self.pairs()]
        known = [x for x in values if not math.isnan(x)]
        return math.fsum(known) / len(known) if known else NAN

    def micro(self) -> float:
        both = [self.parts(i, j) for i, j in itertools.combinations(range(self.m), 2)]
        return ratio(sum(x for x, _ in both), sum(x for _, x in both))

    def total(self, left_out: int | None = None) -> float:
        rows = [i for i in range(self.m) if i != left_out]
        if not rows:
            return NAN
        ever = set.union(*(self.sets[i] for i in rows))
        always = set.intersection(*(self.sets[i] for i in rows))
        if self.predictions is not None:
            always = {s for s in always if len({self.predictions[i][s] for i in rows}) == 1}
        return ratio(len(always), len(ever))


@st.composite
def error_sets(draw: st.DrawFn, least: int = 0) -> np.ndarray:
    """Sets of all densities, some empty, some full, some equal; up to several words of samples."""
    m, n = draw(st.integers(least, 12)), draw(st.sampled_from([0, 1, 3, 7, 8, 63, 64, 65, 130]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sets = rng.random((m, n)) < draw(st.sampled_from([0.02, 0.3, 0.9]))
    if m and n:
        if draw(st.booleans()):
            sets[rng.integers(0, m, draw(st.integers(1, 4)))] = draw(st.booleans())
        if draw(st.booleans()):
            sets[:, rng.integers(0, n, draw(st.integers(1, 60)))] = draw(st.booleans())
        if draw(st.booleans()):
            sets[rng.integers(0, m)] = sets[0]
    return sets


def simulated(m: int = 30, n: int = 300, seed: int = 0, **beta: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.random((m, n)) < rng.beta(beta.get("a", 0.4), beta.get("b", 1.6), n)


def same(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


# ---------------------------------------------------------------- the definition


@pytest.mark.parametrize("metric", METRICS)
@given(sets=error_sets(), empty=st.sampled_from(["nan", 0, 1]))
def test_figures_are_those_of_plain_sets(metric: str, sets: np.ndarray, empty: Any) -> None:
    plain, got = Plain(sets, metric), error_consistency(sets, metric, empty=empty)
    filled = NAN if empty == "nan" else float(empty)
    values = np.array(plain.pairs())
    assert (got.metric, got.n_sets, got.n_samples) == (metric, *sets.shape)
    assert got.n_undefined == np.isnan(values).sum()
    assert got.n_pairs == len(values) - (got.n_undefined if empty == "nan" else 0)
    values[np.isnan(values)] = filled
    same(got.matrix(condensed=True), values)
    known = values[~np.isnan(values)]
    if len(known):
        same([got.mean, got.min, got.max, got.median], [known.mean(), known.min(), known.max(), np.median(known)])
        same(got.quantile([0.1, 0.9]), np.quantile(known, [0.1, 0.9]))
        same(got.mean, plain.mean(filled))
    else:
        assert all(math.isnan(x) for x in (got.mean, got.min, got.max, got.median, got.quantile(0.2)))
    same(got.sd, known.std(ddof=1) if len(known) > 1 else NAN)
    np.testing.assert_array_equal(got.set_sizes, sets.sum(axis=1))
    np.testing.assert_array_equal(got.error_counts, sets.sum(axis=0))
    np.testing.assert_array_equal(got.error_sets(), sets)
    if sets.size:
        same(got.accuracies, 1 - sets.mean(axis=1))
        np.testing.assert_array_equal(got.unpredictable, np.flatnonzero(sets.all(axis=0)))


@given(sets=error_sets(), empty=st.sampled_from(["nan", 0, 1]))
def test_total_and_leave_one_out_are_those_of_plain_sets(sets: np.ndarray, empty: Any) -> None:
    plain, got = Plain(sets, "jaccard"), error_consistency(sets, empty=empty)
    filled = NAN if empty == "nan" else float(empty)

    def policy(x: float) -> float:
        return filled if math.isnan(x) else x

    if len(sets):
        same(got.total, policy(plain.total()))
    else:
        assert math.isnan(got.total)
    if len(sets) < 2:
        assert np.isnan(got.leave_one_out_values()).all()
        return
    want = [policy(plain.total(i)) for i in range(len(sets))]
    np.testing.assert_array_equal(got.leave_one_out_values(), want)
    known = [x for x in want if not math.isnan(x)]
    same(got.leave_one_out, math.fsum(known) / len(known) if known else NAN)


@pytest.mark.parametrize("metric", RATIOS)
@given(sets=error_sets(2))
def test_the_micro_average_is_a_ratio_of_sums_over_pairs(metric: str, sets: np.ndarray) -> None:
    same(error_consistency(sets, metric).micro, Plain(sets, metric).micro())


@pytest.mark.parametrize("metric", ["q", "phi"])
def test_measures_that_are_no_such_ratio_have_no_micro_average(metric: str) -> None:
    found = error_consistency(simulated(), metric)
    assert math.isnan(found.micro)
    for call in (found.interval, found.standard_error, found.replicates):
        with pytest.raises(ValueError, match=f"{metric} has no micro average: use of='mean'"):
            call(of="micro")


@pytest.mark.parametrize("metric", METRICS)
def test_the_matrix_is_that_of_the_kernel(metric: str) -> None:
    name = {"double_fault": "double-fault", "q": "yule-q"}.get(metric, metric)
    sets = simulated()
    found = error_consistency(sets, metric)
    np.testing.assert_array_equal(found.matrix(), agreement_matrix(sets, name))
    assert found.matrix(dtype="float32").dtype == np.float32
    assert (found.mean, found.sd, found.min, found.max) == tuple(
        getattr(summary(sets, name), figure)  # type: ignore[arg-type]
        for figure in ("mean", "sd", "min", "max")
    )
    assert error_consistency(sets, name).metric == metric  # both spellings


# ---------------------------------------------------------------- golden values


GOLDEN = ("diabetes", "parkinsons", "transfusion")
#: Research: 100 runs of logistic regression; standard errors over runs, naive, and over samples by the delta method.
ERRORS = {
    "diabetes": (0.0023, 0.0003, 0.0135, 0.0133, 0.0135),
    "parkinsons": (0.0055, 0.0008, 0.0428, 0.0438, 0.0428),
    "transfusion": (0.0014, 0.0002, 0.0081, 0.0083, 0.0084),
}


def golden(name: str) -> tuple[dict[str, Any], np.ndarray]:
    figures = json.loads(golden_path("golden_errors.json").read_text())[name]
    return figures, np.load(golden_path(f"golden_errors_{name}_lr.npy"))


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_values(name: str) -> None:
    figures, packed = golden(name)
    n = figures["n"]
    for found in (
        error_consistency(packed, n_samples=n),
        error_consistency(np.unpackbits(packed, axis=1, count=n).astype(bool)),
    ):
        got = {
            "m": found.n_sets,
            "AEC": found.mean,
            "AEC_sd": found.sd,
            "AEC_median": found.median,
            "AEC_min": found.min,
            "AEC_max": found.max,
            "AEC_micro": found.micro,
            "total_EC": found.total,
            "loo_EC": found.leave_one_out,
            "OA_mean": found.accuracies.mean(),
            "OA_sd_runs": found.accuracies.std(ddof=1),
            "always_wrong": len(found.unpredictable),
            "ever_wrong": (found.error_counts > 0).sum(),
        }
        for key, figure in got.items():
            assert figure == pytest.approx(figures[key], rel=0, abs=1e-12), key
        assert found.set_sizes[:5].tolist() == figures["first_errors"]
        assert abs(found.mean - found.micro) < 0.01
    for metric, key in (("kappa", "mean_kappa"), ("double_fault", "double_fault")):
        found = error_consistency(packed, metric, n_samples=n)
        assert found.mean == pytest.approx(figures[key], rel=0, abs=1e-12)


@pytest.mark.parametrize("name", GOLDEN)
def test_standard_errors_of_golden_runs(name: str) -> None:
    figures, packed = golden(name)
    found = error_consistency(packed, n_samples=figures["n"])
    runs, naive, delta, micro, macro = ERRORS[name]
    assert round(found.standard_error("runs"), 4) == runs
    assert round(found.sd / math.sqrt(found.n_pairs), 4) == naive
    assert round(found.standard_error(of="micro"), 4) == delta
    assert found.standard_error(of="micro", method="bootstrap", random_state=0) == pytest.approx(micro, rel=0.06)
    assert found.standard_error(random_state=0) == pytest.approx(macro, rel=0.06)


def test_the_errors_on_the_page_are_those_of_golden_runs() -> None:
    page = (ROOT / "docs" / "consistency.md").read_text(encoding="utf-8")
    factors = []
    for name, title in (("parkinsons", "Parkinsons"), ("diabetes", "Pima"), ("transfusion", "Transfusion")):
        figures, packed = golden(name)
        found = error_consistency(packed, n_samples=figures["n"])
        naive, runs = found.sd / math.sqrt(found.n_pairs), found.standard_error("runs")
        delta, interval = found.standard_error(of="micro"), found.interval(random_state=0)
        cells = [found.mean, found.micro, found.sd, naive, runs, delta, found.standard_error(random_state=0)]
        row = [title, str(found.n_samples), *(f"{x:.4f}" for x in cells), f"{interval.low:.3f} to {interval.high:.3f}"]
        assert f"| {' | '.join(row)} |" in page
        factors.append((round(delta / naive), round(delta / runs)))
        assert abs(found.mean - found.micro) < 0.003
    naive_factors, run_factors = zip(*factors, strict=True)
    text = " ".join(page.split())
    assert f"is {min(naive_factors)} to {max(naive_factors)} times SD / √pairs, and {min(run_factors)} to" in text
    assert f"{min(run_factors)} to {max(run_factors)} times the error over runs" in text


def test_chance_of_golden_runs() -> None:
    figures, packed = golden("diabetes")
    found = error_consistency(packed, n_samples=figures["n"])
    assert (round(found.chance, 3), round(found.corrected, 4)) == (0.128, 0.8802)


# ---------------------------------------------------------------- what was wrong in the reference


def test_models_that_never_err_are_left_out_and_counted() -> None:
    perfect = np.zeros((3, 9), bool)
    found = error_consistency(perfect)  # the reference: a NaN in the mean, or -0.0 by its fast path
    assert (found.n_pairs, found.n_undefined) == (0, 3)
    assert all(math.isnan(x) for x in (found.mean, found.sd, found.total, found.leave_one_out, found.micro))
    assert np.isnan(found.matrix()).all()
    for value in (0, 1):
        found = error_consistency(perfect, empty=value)
        assert (found.n_pairs, found.n_undefined) == (3, 3)
        figures = (found.mean, found.min, found.max, found.median, found.total, found.leave_one_out, found.micro)
        assert figures == (value,) * 7
        assert (found.sd, math.copysign(1, found.mean)) == (0, 1)
        assert (found.chance, found.highest) == (value, value)
        assert (found.matrix() == value).all()
    with pytest.raises(
        ValueError, match="jaccard is undefined for 3 of the pairs of error sets, 0 / 0: leave them out"
    ):
        error_consistency(perfect, empty="raise")


def test_one_empty_pair_does_not_spoil_the_others() -> None:
    sets = [[0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    left_out, zero, one = (error_consistency(sets, empty=empty) for empty in ("nan", 0, 1))
    assert (left_out.n_pairs, left_out.n_undefined, left_out.mean) == (5, 1, 0.1)
    assert (zero.n_pairs, zero.mean, one.mean) == (6, 0.5 / 6, 1.5 / 6)
    assert error_consistency(sets, "double_fault", empty="raise").n_undefined == 0


def test_leave_one_out_of_empty_unions_is_a_number_where_there_is_one() -> None:
    # without the second model no other errs: the reference returns None, or keeps None in its list and fails
    sets = [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(error_consistency(sets).leave_one_out_values(), [0, NAN, 0])
    assert [error_consistency(sets, empty=empty).leave_one_out for empty in ("nan", 0, 1)] == [0, 0, 1 / 3]


def test_leave_one_out_of_many_sets_takes_no_list_of_subsets() -> None:
    sets = simulated(400, 500, a=0.05, b=0.05)
    found = error_consistency(sets).leave_one_out_values()
    for i in (0, 7, 399):
        rest = np.delete(sets, i, axis=0)
        assert found[i] == rest.all(axis=0).sum() / rest.any(axis=0).sum()


# ---------------------------------------------------------------- identities


@given(error_sets(2))
def test_jaccard_dice_and_kappa_are_one_another(sets: np.ndarray) -> None:
    jaccard, dice, kappa = (error_consistency(sets, m).matrix(condensed=True) for m in ("jaccard", "dice", "kappa"))
    same(dice, 2 * jaccard / (1 + jaccard))
    if sets.shape[1]:
        i, j = np.triu_indices(len(sets), 1)
        p, q = sets.mean(axis=1)[i], sets.mean(axis=1)[j]
        same(kappa_from_jaccard(jaccard, p, q), kappa, 1e-9)
        defined = ~np.isnan(kappa)
        back = jaccard_from_kappa(kappa[defined], p[defined], q[defined])
        same(back, jaccard[defined], 1e-9)


@given(j=st.floats(0, 1), p=st.floats(0.01, 0.99), q=st.floats(0.01, 0.99))
def test_conversions_undo_each_other(j: float, p: float, q: float) -> None:
    kappa = kappa_from_jaccard(j, p, q)
    assert isinstance(kappa, float)
    if kappa >= -1:  # else there are no such sets
        assert jaccard_from_kappa(kappa, p, q) == pytest.approx(j, abs=1e-9)


def test_conversions_for_equal_rates_and_without_errors() -> None:
    assert kappa_from_jaccard(0.6, 0.2) == pytest.approx((1.2 / 1.6 - 0.2) / 0.8, abs=1e-15)
    assert kappa_from_jaccard(1.0, 0.2) == jaccard_from_kappa(1.0, 0.2) == 1
    for convert in (kappa_from_jaccard, jaccard_from_kappa):
        assert math.isnan(convert(0.5, 0.0))
        assert math.isnan(convert(0.5, 1.0))
        assert convert([0.1, 0.2], 0.3).shape == (2,)
    assert kappa_from_jaccard(0.0, 0.5) == -1


def test_a_worked_pair_agrees_with_scikit_learn() -> None:
    sets = simulated(2, 500)
    p, q = sets.mean(axis=1)
    jaccard = error_consistency(sets).mean
    assert kappa_from_jaccard(jaccard, p, q) == pytest.approx(cohen_kappa_score(sets[0], sets[1]), abs=1e-14)


# ---------------------------------------------------------------- laws


@given(sets=error_sets(2), seed=st.integers(0, 99), metric=st.sampled_from(METRICS))
def test_the_order_of_samples_and_of_runs_does_not_matter(sets: np.ndarray, seed: int, metric: str) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(sets)), rng.permutation(sets.shape[1])
    one, other = error_consistency(sets, metric), error_consistency(sets[rows][:, columns], metric)
    for figure in ("mean", "sd", "min", "max", "median", "micro", "total", "leave_one_out", "chance", "highest"):
        same(getattr(one, figure), getattr(other, figure))
    np.testing.assert_array_equal(one.error_counts[columns], other.error_counts)
    np.testing.assert_array_equal(one.set_sizes[rows], other.set_sizes)
    if metric in RATIOS:
        same(one.standard_error(of="micro"), other.standard_error(of="micro"), 1e-9)
    same(one.standard_error("runs"), other.standard_error("runs"), 1e-9)


def test_the_number_of_threads_does_not_matter() -> None:
    sets, before = simulated(300, 1000), mf.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            mf.set_num_threads(threads)
            e = error_consistency(sets)
            found.append((e.mean, e.sd, e.median, e.chance, *e.replicates(n_replicates=20, random_state=0).tolist()))
    finally:
        mf.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_forms_of_error_sets() -> None:
    sets = simulated(9, 77)
    want = error_consistency(sets)
    forms = [
        sets.tolist(),
        sets.astype(float),
        sets.astype("O"),
        pd.DataFrame(sets),
        np.asfortranarray(sets),
        sets.astype(np.uint8),
    ]
    for form in forms:
        found = error_consistency(form)
        np.testing.assert_array_equal(found.packed, want.packed)
        assert found.to_dict() == want.to_dict()
    packed = np.packbits(sets, axis=1)
    found = error_consistency(packed, n_samples=77)
    packed[:] = 0  # it is the caller's
    np.testing.assert_array_equal(found.packed, want.packed)
    for array in (found.packed, found.error_counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_constant_classifier_is_consistent_with_itself() -> None:
    labels = np.random.default_rng(4).integers(0, 2, 300)
    found = error_consistency(np.tile(labels == 1, (20, 1)))
    assert (found.mean, found.sd, found.micro, found.total, found.leave_one_out, found.corrected) == (1, 0, 1, 1, 1, 1)
    assert len(found.unpredictable) == labels.sum()
    interval = found.interval(of="micro")
    assert (interval.low, interval.high, interval.method) == (1, 1, "delta (variance 0)")


@pytest.mark.parametrize("n", [0, 5])
@pytest.mark.parametrize("m", [0, 1, 2])
def test_few_sets(m: int, n: int) -> None:
    found = error_consistency(np.ones((m, n), bool))
    assert found.n_pairs == (m == 2 and n == 5)
    assert (found.mean == 1) == (m == 2 and n == 5)
    assert (found.total == 1) == (m > 0 and n == 5)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()
    assert found.unpredictable.tolist() == (list(range(n)) if m else [])
    assert "ErrorConsistency" in repr(found)
    assert found.summary()
    for over in ("samples", "runs"):
        assert math.isnan(found.interval(over, of="mean", random_state=0).low) or (m == 2 and over == "samples")


# ---------------------------------------------------------------- chance


def enumerated(metric: str, n: int, a: int, b: int) -> float:
    """Mean over all numbers of shared samples, each as often as it can be made."""
    mean, total = 0.0, math.comb(n, b)
    for both in range(max(0, a + b - n), min(a, b) + 1):
        above, below = fraction(metric, n, a, b, both)
        if not below:
            return NAN
        mean += above / below * float(Fraction(math.comb(a, both) * math.comb(n - a, b - both), total))
    return mean


@pytest.mark.parametrize("metric", METRICS)
@given(n=st.integers(0, 40), data=st.data())
def test_the_chance_level_is_a_mean_over_all_placements(metric: str, n: int, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(0, n)), data.draw(st.integers(0, n))
    got = chance_level(n, a, b, metric)
    assert got.shape == ()
    same(got, enumerated(metric, n, a, b))


@pytest.mark.parametrize(("n", "a", "b"), [(3000, 400, 900), (100_000, 20_000, 15_000), (100_000, 7, 99_999)])
def test_the_chance_level_of_many_samples(n: int, a: int, b: int) -> None:
    law = hypergeom(n, a, b)
    middle, spread = law.mean(), 12 * law.std() + 2
    both = np.arange(max(0, a + b - n, int(middle - spread)), min(a, b, int(middle + spread)) + 1)
    weights = law.pmf(both)
    want = weights @ (both / (a + b - both)) / weights.sum()
    assert chance_level(n, a, b) == pytest.approx(want, rel=1e-9)  # scipy's probabilities hold no more digits


def test_the_chance_level_of_exact_fractions_with_many_samples() -> None:
    n, a, b = 2000, 300, 500
    want = sum(
        Fraction(math.comb(a, i) * math.comb(n - a, b - i), math.comb(n, b)) * Fraction(i, a + b - i)
        for i in range(min(a, b) + 1)
    )
    assert chance_level(n, a, b) == pytest.approx(float(want), rel=1e-14)


@pytest.mark.parametrize(
    ("n", "a", "b", "want"), [(20, 4, 4, 0.1237), (195, 24, 24, 0.0668), (768, 77, 77, 0.0531), (768, 230, 230, 0.1764)]
)
def test_known_chance_levels(n: int, a: int, b: int, want: float) -> None:
    assert round(float(chance_level(n, a, b)), 4) == want


@pytest.mark.parametrize("metric", METRICS)
@given(sets=error_sets(2), empty=st.sampled_from(["nan", 0, 1]))
def test_the_chance_of_all_pairs_is_their_mean(metric: str, sets: np.ndarray, empty: Any) -> None:
    found = error_consistency(sets, metric, empty=empty)
    n, sizes = sets.shape[1], sets.sum(axis=1).tolist()
    chances, highest = [], []
    for a, b in itertools.combinations(sizes, 2):
        if math.isnan(ratio(*fraction(metric, n, a, b, min(a, b)))):
            if empty != "nan":
                chances.append(empty)
                highest.append(empty)
        else:
            chances.append(enumerated(metric, n, a, b))
            highest.append(ratio(*fraction(metric, n, a, b, min(a, b))))
    if not chances:
        assert math.isnan(found.chance)
        assert math.isnan(found.corrected)
        return
    chance, most = np.mean(chances), np.mean(highest)
    same([found.chance, found.highest], [chance, most])
    if most - chance > 1e-6:
        same(found.corrected, (found.mean - chance) / (1 - chance), 1e-9)
        same(found.corrected_to_highest, (found.mean - chance) / (most - chance), 1e-6)
    assert found.mean <= found.highest + 1e-12


@pytest.mark.parametrize("metric", METRICS)
def test_sets_drawn_at_random_are_at_chance(metric: str) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(10, 50, 150)
    sets = np.zeros((150, 90), bool)
    for row, size in zip(sets, sizes, strict=True):
        row[rng.permutation(90)[:size]] = True
    found = error_consistency(sets, metric)
    assert found.mean == pytest.approx(found.chance, abs=5 * found.sd / math.sqrt(found.n_pairs))
    assert abs(found.corrected) < 0.02


def test_the_chance_of_2500_sets_does_not_take_all_pairs() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    packed = np.packbits(rng.random((2500, n), np.float32) < np.float32(0.1), axis=1)
    found = error_consistency(packed, n_samples=n)
    assert found.mean == pytest.approx(found.chance, abs=1e-4)


# ---------------------------------------------------------------- the same wrong answer


@st.composite
def answered(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of some classes, and which of them are wrong."""
    m, n = draw(st.integers(1, 8)), draw(st.sampled_from([1, 5, 63, 64, 70]))
    k = draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    labels = rng.integers(0, k, n)
    right = rng.random((m, n)) < draw(st.sampled_from([0.1, 0.6, 0.95]))
    predictions = np.where(right, labels, rng.integers(0, k, (m, n)))
    return predictions, predictions != labels


@pytest.mark.parametrize("metric", SHARES)
@given(case=answered(), empty=st.sampled_from(["nan", 0, 1]))
def test_the_same_wrong_answer(metric: str, case: tuple[np.ndarray, np.ndarray], empty: Any) -> None:
    predictions, sets = case
    plain = Plain(sets, metric, predictions)
    found = error_consistency(sets, metric, predictions=predictions, same_wrong=True, empty=empty)
    filled = NAN if empty == "nan" else float(empty)
    values = np.array(plain.pairs())
    assert found.n_undefined == np.isnan(values).sum()
    values[np.isnan(values)] = filled
    same(found.matrix(condensed=True), values)
    known = values[~np.isnan(values)]
    same(found.mean, known.mean() if len(known) else NAN)
    same(found.sd, known.std(ddof=1) if len(known) > 1 else NAN)
    square = found.matrix()
    same(square[np.triu_indices(len(sets), 1)], values)
    np.testing.assert_array_equal(square, square.T)
    total = plain.total()
    same(found.total, filled if math.isnan(total) else total)
    if len(sets) > 1:
        want = [filled if math.isnan(x) else x for x in (plain.total(i) for i in range(len(sets)))]
        np.testing.assert_array_equal(found.leave_one_out_values(), want)
        micro = plain.micro()
        same(found.micro, filled if math.isnan(micro) else micro)
    loose = error_consistency(sets, metric, empty=empty)
    assert not found.mean > loose.mean + 1e-15
    np.testing.assert_array_equal(found.error_counts, loose.error_counts)
    assert math.isnan(found.chance)


@pytest.mark.parametrize("kind", [int, str, object, float])
def test_of_two_classes_every_wrong_answer_is_the_same(kind: Any) -> None:
    labels = np.random.default_rng(0).integers(0, 2, 100)
    sets = simulated(6, 100)
    predictions = np.where(sets, 1 - labels, labels).astype(kind)
    for metric in SHARES:
        strict = error_consistency(sets, metric, predictions=predictions, same_wrong=True)
        loose = error_consistency(sets, metric)
        same([strict.mean, strict.sd, strict.micro, strict.total], [loose.mean, loose.sd, loose.micro, loose.total])
        same(strict.standard_error("runs"), loose.standard_error("runs"))
        replicates = (x.replicates(n_replicates=50, random_state=1) for x in (strict, loose))
        same(next(replicates), next(replicates))


def test_models_that_are_wrong_in_different_ways_do_not_agree() -> None:
    predictions = [["cat", "dog", "cow"], ["cow", "dog", "cow"]]
    errors = [[1, 1, 0], [1, 1, 0]]
    assert error_consistency(errors).mean == 1
    found = error_consistency(errors, predictions=predictions, same_wrong=True)
    assert (found.mean, found.total, found.same_wrong) == (0.5, 0.5, True)
    assert "same_wrong" in repr(found)
    assert "the same wrong answer" in found.summary()


# ---------------------------------------------------------------- intervals over samples


@pytest.mark.parametrize("metric", METRICS)
def test_replicates_are_figures_of_resampled_columns(metric: str) -> None:
    sets = simulated(7, 90)
    found = error_consistency(sets, metric)
    weights = list(draws(90, 12, 5))
    assert all(drawn.sum() == 90 for drawn in weights)
    repeated = [error_consistency(np.repeat(sets, drawn, axis=1), metric) for drawn in weights]
    same(found.replicates(n_replicates=12, random_state=5), [x.mean for x in repeated])
    if metric in RATIOS:
        same(found.replicates("micro", n_replicates=12, random_state=5), [x.micro for x in repeated])


@pytest.mark.parametrize("metric", SHARES)
def test_replicates_of_the_same_wrong_answer(metric: str) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 80)
    predictions = np.where(rng.random((6, 80)) < 0.6, labels, rng.integers(0, 4, (6, 80)))
    sets = predictions != labels
    found = error_consistency(sets, metric, predictions=predictions, same_wrong=True)
    for of in ("mean", "micro"):
        want = []
        for drawn in draws(80, 8, 3):
            repeated = (np.repeat(x, drawn, axis=1) for x in (sets, predictions))
            again = error_consistency(next(repeated), metric, predictions=next(repeated), same_wrong=True)
            want.append(getattr(again, of))
        same(found.replicates(of, n_replicates=8, random_state=3), want)


def test_replicates_without_a_value_are_what_empty_says() -> None:
    sets = np.zeros((3, 4), bool)
    sets[:, 0] = True
    for empty, filled in (("nan", NAN), (0, 0.0), (1, 1.0)):
        found = error_consistency(sets, empty=empty)
        for of in ("mean", "micro"):
            replicates = found.replicates(of, n_replicates=50, random_state=0)
            drawn = np.array([w[0] > 0 for w in draws(4, 50, 0)])
            assert 0 < drawn.sum() < 50
            np.testing.assert_array_equal(replicates, np.where(drawn, 1.0, filled))
    assert error_consistency(sets).interval(random_state=0).low == 1


def test_the_same_seed_draws_the_same_samples_for_every_model() -> None:
    a, b = (error_consistency(simulated(9, 120, seed)) for seed in (0, 1))
    both = error_consistency(np.concatenate([a.error_sets(), b.error_sets()], axis=1))
    assert both.n_samples == 240
    one, other = (x.interval(random_state=3, n_replicates=100) for x in (a, a))
    assert one == other
    sequence = np.random.SeedSequence(3)
    assert a.interval(random_state=sequence, n_replicates=100) == a.interval(random_state=sequence, n_replicates=100)
    generator = np.random.default_rng(3)
    assert a.interval(random_state=generator) != a.interval(random_state=generator)
    draws_of = [[w.tolist() for w in draws(120, 3, 7)] for _ in range(2)]
    assert draws_of[0] == draws_of[1]


@pytest.mark.parametrize("metric", RATIOS)
def test_the_delta_method_is_the_derivative_by_weights(metric: str) -> None:
    sets = simulated(6, 50)
    sums = error_consistency(sets, metric)._micro_sums()
    many = 10**6
    every = np.full(50, many)
    weights = [every, *(every + np.eye(50, dtype=int)[s] for s in range(50))]
    values = sums.resampled(iter(weights), 51) if metric != "kappa" else weighted_kappas(sets, weights)
    slopes = (values[1:] - values[0]) * many * 50
    np.testing.assert_allclose(sums.influence(), slopes, rtol=1e-3, atol=1e-3)
    assert sums.influence().mean() == pytest.approx(0, abs=1e-12)
    assert sums.delta_error() == pytest.approx(slopes.std(ddof=1) / math.sqrt(50), rel=1e-3)


def weighted_kappas(sets: np.ndarray, weights: Any) -> np.ndarray:
    """Numerators over denominators of all pairs, where weights do not add up to the number of samples."""
    found = []
    for w in weights:
        n, above, below = int(w.sum()), 0, 0
        for x, y in itertools.combinations(sets, 2):
            up, down = fraction("kappa", n, int(w @ x), int(w @ y), int(w @ (x & y)))
            above, below = above + up, below + down
        found.append(above / below)
    return np.array(found)


@pytest.mark.parametrize("metric", RATIOS)
def test_delta_and_bootstrap_agree(metric: str) -> None:
    found = error_consistency(simulated(25, 800), metric)
    delta = found.standard_error(of="micro")
    for of in ("micro", "mean"):
        bootstrap = found.standard_error(of=of, method="bootstrap", random_state=0)
        assert bootstrap == pytest.approx(delta, rel=0.1)


def test_the_bootstrap_of_many_sets_is_quick_enough_to_be_used() -> None:
    found = error_consistency(simulated(500, 768))
    interval = found.interval(random_state=0, n_replicates=100)
    assert interval.low < found.mean < interval.high


# ---------------------------------------------------------------- intervals over runs


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("of", ["mean", "micro"])
@given(sets=error_sets(3), grouped=st.booleans())
def test_the_jackknife_leaves_runs_out(metric: str, of: Any, sets: np.ndarray, grouped: bool) -> None:
    if of == "micro" and metric not in RATIOS:
        return
    m = len(sets)
    groups = np.arange(m) // 2 if grouped else np.arange(m)
    found = error_consistency(sets, metric)
    n = int(groups.max()) + 1
    without = np.array([getattr(error_consistency(sets[groups != g], metric), of) for g in range(n)])
    want = math.sqrt((n - 1) / n * np.square(without - without.mean()).sum()) if n > 1 else NAN
    given_groups = [f"run {g}" for g in groups] if grouped else None
    got = found.standard_error("runs", of=of, groups=given_groups)
    same(got, want, 1e-7)
    interval = found.interval("runs", of=of, groups=given_groups)
    assert (interval.n, interval.unit) == (n, "runs")
    assert math.isnan(interval.low) == math.isnan(want)


def test_the_jackknife_of_runs_fills_what_is_undefined() -> None:
    sets = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 1, 0]], bool)
    for empty in (0, 1):
        without = [error_consistency(np.delete(sets, i, axis=0), empty=empty).mean for i in range(5)]
        want = math.sqrt(4 / 5 * np.square(without - np.mean(without)).sum())
        same(error_consistency(sets, empty=empty).standard_error("runs"), want)


def test_copies_of_runs_are_no_more_information_when_they_are_grouped() -> None:
    sets = simulated(20, 200)
    copies = error_consistency(np.repeat(sets, 3, axis=0))
    grouped = copies.standard_error("runs", groups=np.repeat(np.arange(20), 3))
    alone = copies.standard_error("runs")
    assert grouped == pytest.approx(error_consistency(sets).standard_error("runs"), rel=0.1)
    assert alone < 0.7 * grouped


def test_an_interval_says_what_it_is_of() -> None:
    found = error_consistency(simulated(), level=0.9)
    for over, method, of, unit, n in (
        ("samples", "bootstrap", "mean", "items", 300),
        ("samples", "delta", "micro", "items", 300),
        ("samples", "bootstrap", "micro", "items", 300),
        ("runs", "jackknife", "mean", "runs", 30),
        ("runs", "jackknife", "micro", "runs", 30),
    ):
        interval = found.interval(over, method, of, random_state=0)
        assert (interval.method, interval.unit, interval.n, interval.level) == (method, unit, n, 0.9)
        assert interval.estimate == getattr(found, of)
        wider = found.interval(over, method, of, random_state=0, level=0.99)
        assert 0 <= wider.low < interval.low < interval.estimate < interval.high < wider.high <= 1
    assert found.interval() != found.interval(level=0.99)


def test_intervals_are_cut_to_what_is_possible() -> None:
    few = np.zeros((4, 30), bool)
    few[:, 0], few[:3, 1], few[2:, 2] = True, True, True
    interval = error_consistency(few).interval(of="micro")
    assert (interval.low >= 0, interval.high <= 1) == (True, True)
    assert error_consistency(few, "kappa").interval(of="micro").low >= -1


# ---------------------------------------------------------------- to read


def test_the_result_can_be_read_and_kept() -> None:
    found = error_consistency([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    assert repr(found) == (
        "ErrorConsistency(jaccard: mean 0.1, SD 0.2236, 5 pairs of 4 sets, n_samples=4, n_undefined=1)"
    )
    assert "1 pair has no value, 0 / 0 (empty='nan')" in found.summary()
    assert "<td>0.1</td>" in found._repr_html_()
    figures = found.to_dict()
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert (figures["mean"], figures["n_undefined"], figures["quantiles"]["0.5"]) == (0.1, 1, 0.0)
    again = pickle.loads(pickle.dumps(found))
    assert again.to_dict() == figures
    with pytest.raises(AttributeError):
        found.mean = 1.0  # type: ignore[misc]


# ---------------------------------------------------------------- errors

GOOD = np.array([[0, 1, 1], [1, 0, 0]])
BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "metric": ({"metric": "cosine"}, ValueError, "metric must be one of jaccard, kappa, .*; got 'cosine'"),
    "empty": ({"empty": "drop"}, ValueError, "empty must be 'nan', 0, 1 or 'raise'; got 'drop'"),
    "empty-half": ({"empty": 0.5}, ValueError, "empty must be .*; got 0.5"),
    "empty-bool": ({"empty": True}, ValueError, "empty must be .*; got True"),
    "empty-none": ({"empty": None}, ValueError, "empty must be .*; got None"),
    "level": ({"level": 95}, ValueError, r"level must lie strictly between 0 and 1 \(0.95 for 95 %\); got 95"),
    "no-predictions": ({"same_wrong": True}, ValueError, "same_wrong needs predictions"),
    "predictions": ({"predictions": GOOD}, ValueError, "predictions are for same_wrong=True only"),
    "kappa": (
        {"same_wrong": True, "predictions": GOOD, "metric": "kappa"},
        ValueError,
        "same_wrong asks for one of jaccard, dice, double_fault, agreement; kappa is of a two-by-two table",
    ),
    "shape": (
        {"same_wrong": True, "predictions": [1, 2, 3]},
        ValueError,
        r"predictions must have the shape of error_sets, \(2, 3\); got \(3,\)",
    ),
    "nan-answer": (
        {"same_wrong": True, "predictions": [[0.0, 1.0, 1.0], [1.0, NAN, 0.0]]},
        ValueError,
        r"predictions\[1, 1\] is NaN: a model must answer every sample",
    ),
    "no-error": (
        {"same_wrong": True, "predictions": [[0, 1, 1], [1, 0, 1]]},
        ValueError,
        r"predictions\[0, 2\] is .*1.*: it is an error but equals predictions\[1, 2\], which is right: error_sets",
    ),
}


@pytest.mark.parametrize(("options", "error", "message"), BAD.values(), ids=BAD)
def test_bad_options_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        error_consistency(GOOD, **options)


def test_predictions_that_differ_without_an_error_are_refused() -> None:
    sets, predictions = [[0, 0], [0, 0], [1, 0]], [[5, 1], [5, 2], [4, 1]]
    with pytest.raises(ValueError, match=r"predictions\[1, 1\] is .*2.*: it is no error but differs from predictions"):
        error_consistency(sets, predictions=predictions, same_wrong=True)


BAD_INTERVALS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "over": ({"over": "folds"}, ValueError, "over must be 'samples' or 'runs'; got 'folds'"),
    "of": ({"of": "median"}, ValueError, "of must be 'mean' or 'micro'; got 'median'"),
    "delta": ({"method": "delta"}, ValueError, "method must be 'bootstrap' for the mean over samples; got 'delta'"),
    "jackknife": (
        {"method": "jackknife", "of": "micro"},
        ValueError,
        "method must be 'delta' or 'bootstrap' for the micro over samples; got 'jackknife'",
    ),
    "bootstrap": ({"over": "runs", "method": "bootstrap"}, ValueError, "method must be 'jackknife' for the mean over"),
    "groups": ({"groups": [0, 1]}, ValueError, "groups are of runs"),
    "groups-short": ({"over": "runs", "groups": [0]}, ValueError, r"groups must have one entry an error set, .*\(2,\)"),
    "none": ({"n_replicates": 0}, ValueError, "n_replicates must be at least 1; got 0"),
    "fraction": ({"n_replicates": 9.5}, TypeError, "n_replicates must be an integer; got 9.5"),
    "state": ({"random_state": "x"}, TypeError, "random_state must be an integer"),
}


@pytest.mark.parametrize(("options", "error", "message"), BAD_INTERVALS.values(), ids=BAD_INTERVALS)
def test_bad_intervals_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    found = error_consistency(GOOD)
    for call in (found.interval, found.standard_error):
        with pytest.raises(error, match=message):
            call(**options)
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        found.interval(level=1.0)
    with pytest.raises(ValueError, match="q must lie between 0 and 1; got 2"):
        found.quantile(2)


def test_bad_sizes_and_rates_are_refused() -> None:
    for arguments, message in (((5, 6, 1), "a must lie between 0 and n_samples=5; got 6"), ((5, 1, -1), "b must lie")):
        with pytest.raises(ValueError, match=message):
            chance_level(*arguments)
    with pytest.raises(TypeError, match="a must be integers, numbers of errors; got float64"):
        chance_level(5, 0.5, 1)
    for odd in (10.5, "10", True, None, [10]):
        with pytest.raises(TypeError, match="n_samples must be an integer"):
            chance_level(odd, 1, 1)  # type: ignore[arg-type]
    for odd in (-1, 2**64):
        with pytest.raises(ValueError, match="n_samples must not be negative and be below"):
            chance_level(odd, 0, 0)
    with pytest.raises(ValueError, match="metric must be one of"):
        chance_level(5, 1, 1, "cosine")
    for convert, name in ((kappa_from_jaccard, "jaccard"), (jaccard_from_kappa, "kappa")):
        with pytest.raises(ValueError, match=f"{name} must lie between"):
            convert(1.5, 0.2)
        with pytest.raises(ValueError, match="q must lie between 0 and 1; got 2"):
            convert(0.5, 0.2, 2)
        with pytest.raises(TypeError, match="p cannot be read as numbers"):
            convert(0.5, "a")
