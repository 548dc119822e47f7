"""Seeds and folds: golden values, the model simulated, balance; and normality with the right quantiles."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from conftest import golden_cases
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from milfast.uncertainty import normal_quantiles, normality, variance_components

TABLES = st.tuples(st.integers(2, 6), st.integers(2, 6)).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 1000), min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
    )
)

# ---------------------------------------------------------------- values from elsewhere


def test_golden_components() -> None:
    cases = golden_cases("variance_components")
    assert len(cases) == 3
    se = {"resnet50": 0.00278, "resnext50": 0.00243, "vit_small": 0.00392}
    shares = {"resnet50": (0.6, 83.6, 15.8), "resnext50": (2.4, 78.3, 19.3), "vit_small": (0.0, 69.3, 30.7)}
    for case in cases:
        found, expected = variance_components(case["inputs"]["acc_seed_by_fold"]), case["expected"]
        for name, key in (
            ("ms_seed", "ms_seed"),
            ("ms_fold", "ms_fold"),
            ("ms_rest", "ms_resid"),
            ("seed", "var_seed_anova"),
            ("fold", "var_fold_anova"),
            ("rest", "var_resid"),
            ("f_seed", "F_seed"),
            ("f_fold", "F_fold"),
            ("p_seed", "p_seed"),
            ("p_fold", "p_fold"),
            ("sd", "sd_all"),
        ):
            assert getattr(found, name) == pytest.approx(expected[key], rel=1e-9, abs=0), (case["id"], name)
        assert found.mean.estimate == pytest.approx(expected["grand_mean"], abs=case["tol"])
        arch = case["id"].removeprefix("variance_components_")
        assert round(found.se, 5) == se[arch]
        assert tuple(round(100 * share, 1) for share in found.shares) == shares[arch]
        assert 2.1 < found.se / found.naive_se < 2.4
        assert [np.std(row, ddof=1) for row in case["inputs"]["acc_seed_by_fold"]] == pytest.approx(
            expected["sd_per_seed"]
        )


def test_normality_of_real_runs() -> None:
    seed_42 = {"resnet50": 0.34, "resnext50": 0.34, "vit_small": 0.06}
    everything = {"resnet50": 5e-5, "resnext50": 6e-4, "vit_small": 6e-3}
    for case in golden_cases("variance_components"):
        arch = case["id"].removeprefix("variance_components_")
        values = np.array(case["inputs"]["acc_seed_by_fold"])
        one, all_runs = normality(values[0]), normality(values.ravel())
        assert float(f"{one.p_value:.1g}" if arch == "vit_small" else f"{one.p_value:.2g}") == seed_42[arch]
        assert float(f"{all_runs.p_value:.0e}") == everything[arch]
        # with percentages taken for quantiles it would be that of the lowest hundredth of a normal law
        assert all(0.93 < found.correlation < 0.99 for found in (one, all_runs))
        assert all_runs.skewness < 0


# ---------------------------------------------------------------- definitions and laws


@given(TABLES)
@pytest.mark.filterwarnings("ignore:nothing is left of the variance:RuntimeWarning")
def test_sums_of_squares_add_up(table: list[list[int]]) -> None:
    y = np.array(table) / 1000
    i, j = y.shape
    found = variance_components(y)
    total = (i - 1) * found.ms_seed + (j - 1) * found.ms_fold + (i - 1) * (j - 1) * found.ms_rest
    assert total == pytest.approx(((y - y.mean()) ** 2).sum(), abs=1e-12)
    turned = variance_components(y.T)
    assert (turned.seed, turned.fold, turned.se) == pytest.approx((found.fold, found.seed, found.se), abs=1e-15)
    seed, fold, rest = found.clipped
    assert found.se == pytest.approx(math.sqrt(seed / i + fold / j + rest / (i * j)))
    shifted = variance_components(y + 1)
    assert shifted.se == pytest.approx(found.se, abs=1e-12)
    if not math.isnan(found.p_seed) and np.var(y) > 0:
        fit = by_least_squares(y)
        assert found.f_seed == pytest.approx(fit, rel=1e-6, abs=1e-9)
        assert found.p_seed == pytest.approx(stats.f.sf(found.f_seed, i - 1, (i - 1) * (j - 1)), rel=1e-8)
        assert sum(found.shares) == pytest.approx(1)
    assert found.mean.low <= found.mean.estimate <= found.mean.high


def by_least_squares(y: np.ndarray) -> float:
    """F of seeds from two fits by least squares: with and without them."""
    i, j = y.shape
    seeds, folds = np.repeat(np.eye(i), j, axis=0), np.tile(np.eye(j), (i, 1))
    both, without = np.hstack((seeds, folds)), folds
    left = [np.sum((y.ravel() - x @ np.linalg.lstsq(x, y.ravel(), rcond=None)[0]) ** 2) for x in (both, without)]
    return float((left[1] - left[0]) / (i - 1) / (left[0] / ((i - 1) * (j - 1))))


def test_simulated_runs_give_their_variances_back() -> None:
    rng = np.random.default_rng(0)
    truth = np.array([0.3, 0.8, 0.5])
    drawn = []
    for _ in range(400):
        seed, fold, rest = (
            rng.normal(0, math.sqrt(v), s) for v, s in zip(truth, ((8, 1), (1, 10), (8, 10)), strict=True)
        )
        drawn.append(variance_components(seed + fold + rest))
    raw = np.array([(d.seed, d.fold, d.rest) for d in drawn])
    error = raw.std(0) / math.sqrt(len(raw))
    assert np.all(np.abs(raw.mean(0) - truth) < 4 * error)
    covered = np.mean([0.0 in d.mean for d in drawn])
    assert 0.91 < covered <= 0.99
    naive = np.mean([abs(d.mean.estimate) < 1.96 * d.naive_se for d in drawn])
    assert naive < 0.7


def test_what_more_seeds_or_folds_help() -> None:
    found = variance_components(np.random.default_rng(1).normal(size=(5, 7)) + 3 * np.arange(7))
    assert found.se_with() == found.se
    assert found.se_with(n_seeds=10**12) == pytest.approx(math.sqrt(found.clipped[1] / 7))
    assert found.se_with(n_folds=28) < found.se_with(n_folds=14) < found.se
    assert found.se_with(n_seeds=100) <= found.se
    with pytest.raises(ValueError, match="n_seeds must be at least 1; got 0"):
        found.se_with(n_seeds=0)


# ---------------------------------------------------------------- no variance, other forms, messages


def test_without_variance() -> None:
    for table in (np.full((3, 4), 0.9), np.add.outer([0.1, 0.2, 0.4], [0.3, 0.5, 0.61, 0.77])):
        with pytest.warns(RuntimeWarning, match="nothing is left of the variance"):
            found = variance_components(table)
        assert math.isnan(found.p_seed)
        assert math.isnan(found.p_fold)
        assert found.rest == 0.0
        written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert written["p_seed"] is None
    with pytest.warns(RuntimeWarning, match="nothing is left"):
        same = variance_components(np.full((3, 4), 0.9))
    assert (same.se, same.mean.low, same.mean.high) == (0.0, 0.9, 0.9)
    assert all(math.isnan(share) for share in same.shares)
    assert "seed undefined" in repr(same)


def test_a_negative_variance_is_kept_and_told() -> None:
    table = [[1.0, 2.0, 4.0], [4.0, 2.0, 1.0], [2.0, 4.0, 1.5]]
    found = variance_components(table)
    assert found.seed < 0 or found.fold < 0
    assert min(found.clipped) == 0.0
    assert "negative and counts as 0" in found.summary()
    assert found._repr_html_().startswith("<span>")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: variance_components([1, 2, 3]), ValueError, "dimension 2"),
        (lambda: variance_components([[1, 2, 3]]), ValueError, r"two of each or more; got shape \(1, 3\)"),
        (lambda: variance_components([[1, 2], [3, math.nan]]), ValueError, r"values\[1, 1\] is nan"),
        (lambda: variance_components([[1, 2], [3]]), TypeError, "values cannot be read"),
        (lambda: variance_components([[1, 2], [3, 4]], level=1), ValueError, "level"),
        (lambda: normality([1, 2]), ValueError, "three runs or more; got 2"),
        (lambda: normality([1, 2, math.inf]), ValueError, r"values\[2\] is inf"),
        (lambda: normal_quantiles(0), ValueError, "n must be at least 1"),
    ],
)
def test_messages(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("n", [3, 4, 50, 6000])
def test_quantiles_and_moments_are_those_of_scipy(n: int) -> None:
    x = np.random.default_rng(n).exponential(size=n)
    quantiles, ordered = stats.probplot(x, fit=False)
    np.testing.assert_allclose(normal_quantiles(n), quantiles, atol=1e-12)
    found = normality(x)
    assert found.correlation == pytest.approx(np.corrcoef(quantiles, ordered)[0, 1])
    assert found.skewness == pytest.approx(stats.skew(x))
    assert found.kurtosis == pytest.approx(stats.kurtosis(x))
    assert (found.lowest, found.highest) == pytest.approx(
        ((x.min() - x.mean()) / x.std(ddof=1), (x.max() - x.mean()) / x.std(ddof=1))
    )
    if n <= 5000:
        assert (found.statistic, found.p_value) == pytest.approx(tuple(stats.shapiro(x)), rel=1e-8)
        assert found.notes == ()
    else:
        assert "one in 2 ordered runs" in found.summary()
    tiny = normality(x * 1e-200)
    assert tiny.skewness == pytest.approx(found.skewness)


def test_runs_that_are_all_the_same_have_no_law() -> None:
    with pytest.warns(RuntimeWarning, match="all runs are the same"):
        found = normality([0.1 + 0.2, 0.3, 0.3, 0.3])
    assert math.isnan(found.p_value)
    assert math.isnan(found.correlation)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["p_value"] is None
