"""Models compared by any metric: golden replicates, all exchanges by brute force, agreement with formulas."""

from __future__ import annotations

import math
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import golden_cases
from hypothesis import given
from hypothesis import strategies as st

import milfast as mf
from milfast.uncertainty import compare_auc, compare_metric, mcnemar
from milfast.uncertainty.any_metric import _Gain
from milfast.uncertainty.resampling import bounds_of_replicates


def accuracy(predictions: Any, labels: Any) -> float:
    return float(np.mean(predictions == labels))


quick: dict[str, Any] = {"n_boot": 200, "method": "percentile"}


def test_golden_paired_bootstrap() -> None:
    [case] = golden_cases("paired_bootstrap")
    inputs, expected = case["inputs"], case["expected"]
    a, b, y = (np.array(inputs[key]) for key in ("score_a", "score_b", "labels"))
    gain = _Gain(mf.auc)
    assert gain(a, b, y) == pytest.approx(expected["point"], abs=case["tol"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = np.array([gain(a[i], b[i], y[i]) for i in map(np.array, inputs["indices"])])
    np.testing.assert_allclose(drawn, expected["diff"], rtol=0, atol=case["tol"])
    assert np.isnan(drawn).sum() == expected["n_undefined"]
    found = bounds_of_replicates(expected["point"], drawn[~np.isnan(drawn)], level=0.95, method="percentile")
    assert found[:2] == pytest.approx(expected["percentile95_skipna"], abs=case["tol"])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=9))
@pytest.mark.filterwarnings("ignore:all resamples gave:RuntimeWarning")
def test_few_exchanges_are_all_gone_through(rows: list[tuple[int, int, int]]) -> None:
    a, b, y = np.array(rows).T
    result = compare_metric(accuracy, a, b, y, **quick)
    own = abs(accuracy(a, y) - accuracy(b, y))
    gains = []
    for coins in product((False, True), repeat=len(rows)):
        first, second = np.where(coins, b, a), np.where(coins, a, b)
        gains.append(abs(accuracy(first, y) - accuracy(second, y)))
    assert result.p_value == pytest.approx(np.mean(np.array(gains) >= own - 1e-12))
    assert result.estimates == (accuracy(a, y), accuracy(b, y))
    # for accuracies this is McNemar's exact test
    assert result.p_value == pytest.approx(mcnemar(a == y, b == y, method="exact").p_value)


def test_many_exchanges_near_the_exact_test() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    a, b = (np.where(rng.random(200) < right, y, 1 - y) for right in (0.85, 0.78))
    result = compare_metric(accuracy, a, b, y, n_exchanges=3000, **quick)
    exact = mcnemar(a == y, b == y, method="exact").p_value
    assert result.p_value == pytest.approx(exact, abs=4 * math.sqrt(exact / 3000))
    assert result.method == "exchanged predictions"
    assert compare_metric(accuracy, a, 1 - y, y, n_exchanges=99, **quick).p_value == pytest.approx(1 / 100)


def test_aucs_agree_with_delong() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 120)
    base = rng.normal(size=120) + y
    a, b = base + rng.normal(size=120), base + 1.5 * rng.normal(size=120)
    ranks = [np.argsort(np.argsort(x)) for x in (a, b)]
    drawn, formula = compare_metric(mf.auc, *ranks, y, n_boot=1000, n_exchanges=1000), compare_auc(a, b, y)
    assert drawn.measure == "auc"
    assert drawn.p_value == pytest.approx(formula.p_value, abs=0.06)
    assert drawn.difference is not None
    assert formula.difference is not None
    assert drawn.difference.half_width == pytest.approx(formula.difference.half_width, rel=0.2)


def test_clusters_are_exchanged_whole() -> None:
    rng = np.random.default_rng(2)
    patient = np.repeat(np.arange(7), 4)
    y = rng.integers(0, 2, 28)
    a, b = (np.where(rng.random(28) < right, y, 1 - y) for right in (0.9, 0.6))
    result = compare_metric(accuracy, a, b, y, clusters=patient, **quick)
    assert result.p_value == pytest.approx(mcnemar(a == y, b == y, clusters=patient, method="exact").p_value)
    assert result.difference is not None
    assert result.difference.n_clusters == 7
    assert result.method == "exchanged predictions of clusters"
    assert "28 paired items in 7 clusters" in result.summary()


def test_processes_and_progress_change_nothing() -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 60)
    a, b = (np.where(rng.random(60) < 0.7, y, 1 - y) for _ in range(2))
    seen: list[tuple[int, int]] = []
    one = compare_metric(accuracy, a, b, y, n_exchanges=300, callback=lambda *at: seen.append(at), **quick)
    assert seen == sorted(seen)
    assert seen[-1] == (500, 500)
    assert {total for _, total in seen} == {500}
    assert compare_metric(accuracy, a, b, y, n_exchanges=300, n_jobs=2, **quick) == one
    assert compare_metric(accuracy, a, b, y, n_exchanges=300, random_state=1, **quick).log_p != one.log_p


@pytest.mark.filterwarnings("ignore:all resamples gave:RuntimeWarning")
def test_metrics_without_a_value_err_on_the_safe_side() -> None:
    def precision(predictions: Any, labels: Any) -> float:
        if not predictions.any():
            raise ZeroDivisionError("no positive prediction")
        return float(np.mean(labels[predictions == 1]))

    a, b, y = np.array([1, 0, 1, 1]), np.array([0, 1, 0, 0]), np.array([1, 0, 1, 0])
    with pytest.warns(RuntimeWarning, match="no value on 2 of 16 exchanges: they count as large"):
        result = compare_metric(precision, a, b, y, stratify=[0, 1, 2, 3], **quick)
    gains = []
    for coins in product((False, True), repeat=4):
        first, second = np.where(coins, b, a), np.where(coins, a, b)
        gains.append(abs(precision(first, y) - precision(second, y)) if first.any() and second.any() else math.inf)
    assert result.p_value == pytest.approx(np.mean(np.array(gains) >= 2 / 3 - 1e-9))


def test_models_that_say_the_same_and_no_test() -> None:
    y = np.array([0, 1, 1, 0, 1])
    with pytest.warns(RuntimeWarning, match="all resamples gave 0"):
        same = compare_metric(accuracy, y, y, y, **quick)
    assert (same.p_value, len(same.notes)) == (1.0, 1)
    probabilities = np.array([0.1, 0.8, 0.6, 0.3, 0.4])

    def brier(p: Any, labels: Any) -> float:
        return float(np.mean((p - labels) ** 2))

    untested = compare_metric(brier, probabilities, np.full(5, 0.5), y, test="none", **quick)
    assert math.isnan(untested.p_value)
    assert "p undefined (no test" in untested.summary()


def refusing(predictions: Any, labels: Any) -> float:
    raise ValueError("only one class")


@pytest.mark.parametrize(
    "options", [{"n_boot": "many"}, {"n_boot": 0}, {"method": "t"}, {"bounds": (1, 0)}, {"names": ("a", "a")}]
)
def test_options_are_looked_at_before_anything_is_exchanged(options: dict[str, Any]) -> None:
    calls = []

    def counted(predictions: Any, labels: Any) -> float:
        calls.append(1)
        return accuracy(predictions, labels)

    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        compare_metric(counted, [1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1], **options)
    assert len(calls) <= 2


def test_a_number_in_an_array_is_a_number() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 40)
    a, b = (np.where(rng.random(40) < right, y, 1 - y) for right in (0.9, 0.7))
    options: dict[str, Any] = {"n_boot": 200, "n_exchanges": 200, "measure": "accuracy"}
    boxed = compare_metric(lambda p, labels: np.array([accuracy(p, labels)]), a, b, y, **options)
    assert boxed == compare_metric(accuracy, a, b, y, **options)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: compare_metric("f1", [1], [1], [1]), TypeError, "metric must be callable"),
        (
            lambda: compare_metric(accuracy, [1, 0], [1], [1, 0]),
            ValueError,
            "predictions_b has 1 entries and labels has 2",
        ),
        (lambda: compare_metric(accuracy, [], [], []), ValueError, "predictions_a must hold an entry an item"),
        (lambda: compare_metric(accuracy, [[1], [0]], [1, 0], [1, 0]), ValueError, "must be alike"),
        (lambda: compare_metric(accuracy, [1], [0], [1], test="t"), ValueError, "test must be one of exchange, none"),
        (lambda: compare_metric(accuracy, [1], [0], [1], n_exchanges=0), ValueError, "n_exchanges must be at least 1"),
        (lambda: compare_metric(accuracy, [1], [0], [1], n_exchanges=1.5), TypeError, "n_exchanges must be an integer"),
        (lambda: compare_metric(lambda p, y: math.nan, [1], [0], [1]), ValueError, "gives nan for predictions_a"),
        (lambda: compare_metric(lambda p, y: "x", [1], [0], [1]), TypeError, "metric must return one number; got str"),
        (lambda: compare_metric(lambda p, y: p, [1, 0], [0, 1], [1, 1]), TypeError, r"one number; got shape \(2,\)"),
        (lambda: compare_metric(lambda p, y: 1j, [1], [0], [1]), TypeError, "one number; got complex"),
        (lambda: compare_metric(refusing, [1], [0], [1]), ValueError, "only one class"),
        (lambda: compare_metric(accuracy, [1, 0], [0, 1], [1, 1], clusters=[3, 3]), ValueError, "one cluster"),
    ],
)
def test_messages(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
