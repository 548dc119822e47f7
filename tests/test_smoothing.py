"""LOWESS: the values that Cleveland and R print, a slow oracle, and laws."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milfast.consistency import lowess

#: The example that Cleveland gives with his program, "to check your implementation".
X = [1, 2, 3, 4, 5, *[6] * 10, 8, 10, 12, 14, 50]
Y = [18, 2, 15, 6, 10, 4, 16, 11, 7, 3, 14, 17, 20, 12, 9, 13, 1, 8, 5, 19]
PLAIN = [13.659, 11.145, 8.701, 9.722, 10.000, *[11.300] * 10, 13.000, 6.440, 5.596, 5.456, 18.998]
SKIPPED = [13.659, 12.347, 11.034, 9.722, 10.511, *[11.300] * 10, 13.000, 6.440, 5.596, 5.456, 18.998]
ROBUST = [14.811, 12.115, 8.984, 9.676, 10.000, *[11.346] * 10, 13.000, 6.734, 5.744, 5.415, 18.998]


@pytest.mark.parametrize(
    ("options", "printed"),
    [({"it": 0}, PLAIN), ({"it": 0, "delta": 3.0}, SKIPPED), ({"it": 2}, ROBUST)],
)
def test_the_example_of_the_author_comes_out(options: dict[str, Any], printed: list[float]) -> None:
    assert lowess(X, Y, frac=0.25, **options).round(3).tolist() == printed


def test_cars_come_out_as_in_r() -> None:
    """``lowess(cars)`` of R: speeds of cars and their stopping distances (Ezekiel 1930)."""
    cars = {
        4: [2, 10],
        7: [4, 22],
        8: [16],
        9: [10],
        10: [18, 26, 34],
        11: [17, 28],
        12: [14, 20, 24, 28],
        13: [26, 34, 34, 46],
        14: [26, 36, 60, 80],
        15: [20, 26, 54],
        16: [32, 40],
        17: [32, 40, 50],
        18: [42, 56, 76, 84],
        19: [36, 46, 68],
        20: [32, 48, 52, 56, 64],
        22: [66],
        23: [54],
        24: [70, 92, 93, 120],
        25: [85],
    }
    printed = [
        *[4.965459, 13.124495, 15.858633, 18.579691, 21.280313, 24.129277, 27.119549, 30.027276, 32.962506, 36.757728],
        *[40.435075, 43.463492, 46.885479, 50.793152, 56.491224, 67.585824, 73.079695, 78.643164, 84.328698],
    ]
    speeds = [speed for speed, found in cars.items() for _ in found]
    distances = [distance for found in cars.values() for distance in found]
    fitted = dict(zip(speeds, lowess(speeds, distances).round(6).tolist(), strict=True))
    assert fitted == dict(zip(cars, printed, strict=True))


# ---------------------------------------------------------------- oracle


def slow(x: list[float], y: list[float], frac: float, it: int) -> list[float]:
    """Cleveland (1979) point by point: nearest neighbours by sorting distances, the line by its normal equations."""
    n = len(x)
    if n == 1:
        return list(y)
    k = min(max(int(frac * n + 1e-7), 2), n)
    robust = [1.0] * n
    fitted: list[float] = []
    for _ in range(it + 1):
        fitted = []
        for i in range(n):
            h = sorted(abs(a - x[i]) for a in x)[k - 1]
            w = []
            for a, r in zip(x, robust, strict=True):
                d = abs(a - x[i])
                near = d <= h if h == 0 else d <= 0.999 * h
                w.append(r * (1.0 if d <= 0.001 * h else (1 - (d / h) ** 3) ** 3) if near else 0.0)
            total = math.fsum(w)
            if total <= 0:
                fitted.append(statistics.fmean(b for a, b in zip(x, y, strict=True) if a == x[i]))
                continue
            mean_x = math.fsum(v * a for v, a in zip(w, x, strict=True)) / total
            mean_y = math.fsum(v * b for v, b in zip(w, y, strict=True)) / total
            sxx = math.fsum(v * (a - mean_x) ** 2 for v, a in zip(w, x, strict=True)) / total
            sxy = math.fsum(v * (a - mean_x) * (b - mean_y) for v, a, b in zip(w, x, y, strict=True)) / total
            slope = sxy / sxx if h > 0 and math.sqrt(sxx) > 0.001 * (max(x) - min(x)) else 0.0
            fitted.append(mean_y + slope * (x[i] - mean_x))
        residuals = [abs(a - b) for a, b in zip(y, fitted, strict=True)]
        limit = 6 * statistics.median(residuals)
        if limit <= max(1e-7 * statistics.fmean(residuals), 1e-10 * max(map(abs, y))):
            break
        robust = [
            1.0 if r <= 0.001 * limit else (1 - (r / limit) ** 2) ** 2 if r <= 0.999 * limit else 0.0 for r in residuals
        ]
    return fitted


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(-50, 50)), min_size=1, max_size=30),
    st.floats(0.05, 1),
    st.integers(0, 4),
)
def test_the_slow_oracle_agrees(points: list[tuple[int, int]], frac: float, it: int) -> None:
    x, y = [float(a) for a, _ in points], [float(b) for _, b in points]
    # a weight may fall on either side of a cut where two distances are the same but for rounding; it weighs 4e-6 there
    np.testing.assert_allclose(lowess(x, y, frac=frac, it=it), slow(x, y, frac, it), rtol=0, atol=1e-3)


@pytest.mark.parametrize("n", [3, 40, 200])
@pytest.mark.parametrize("it", [0, 3])
def test_the_slow_oracle_agrees_to_rounding_on_points_in_general_position(n: int, it: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.random(n), rng.standard_cauchy(n)
    expected = slow(x.tolist(), y.tolist(), 2 / 3, it)
    np.testing.assert_allclose(lowess(x, y, it=it), expected, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- laws


def cloud(n: int = 120) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 40, n) / 8
    return x, np.sin(x) + rng.standard_normal(n)


def test_the_order_of_the_points_does_not_matter() -> None:
    x, y = cloud()
    order = np.random.default_rng(2).permutation(len(x))
    np.testing.assert_allclose(lowess(x[order], y[order]), lowess(x, y)[order], rtol=0, atol=1e-12)


def test_units_do_not_matter() -> None:
    x, y = cloud()
    np.testing.assert_allclose(lowess(64 * x - 32, 8 * y + 4), 8 * lowess(x, y) + 4, rtol=0, atol=1e-11)


def test_a_line_is_kept_and_an_outlier_is_not() -> None:
    x = np.arange(30.0)
    np.testing.assert_allclose(lowess(x, 3 * x + 1, frac=0.3), 3 * x + 1, rtol=1e-12)
    rng = np.random.default_rng(0)
    noisy = 3 * x + 1 + 0.1 * rng.standard_normal(30)
    spoilt = np.where(x == 15, 500, noisy)
    assert abs(lowess(x, spoilt, it=0)[15] - 46) > 5
    assert abs(lowess(x, spoilt)[15] - 46) < 0.2


def test_interpolation_of_close_points_is_near() -> None:
    rng = np.random.default_rng(3)
    x = rng.random(3000)
    y = np.sin(6 * x) + 0.3 * rng.standard_normal(3000)
    assert np.abs(lowess(x, y, frac=0.3, delta=0.01) - lowess(x, y, frac=0.3)).max() < 0.005
    np.testing.assert_array_equal(lowess(x[:50], y[:50], delta=0.0), lowess(x[:50], y[:50], delta=1e-12))


def test_small_inputs() -> None:
    assert lowess([3], [7]).tolist() == [7]
    assert lowess([1, 2], [5, 9]).tolist() == pytest.approx([5, 9])
    assert lowess([1, 1, 1, 1], [1, 2, 3, 4]).tolist() == [2.5] * 4
    assert lowess(range(9), [2.0] * 9).tolist() == pytest.approx([2.0] * 9)


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "message"),
    [
        ([], [], {}, ValueError, "x must hold at least one point"),
        ([1, 2], [1], {}, ValueError, "y must have one value a point, 2; got 1"),
        ([1, math.nan], [1, 2], {}, ValueError, r"x\[1\] is nan"),
        ([1, 2], [math.inf, 2], {}, ValueError, r"y\[0\] is inf"),
        ([[1, 2]], [1, 2], {}, ValueError, r"x must have shape \(n,\)"),
        (["a"], [1], {}, TypeError, "x cannot be read as numbers"),
        ([1, 2], [1, 2], {"frac": 0}, ValueError, "frac must lie above 0"),
        ([1, 2], [1, 2], {"frac": 1.1}, ValueError, "frac"),
        ([1, 2], [1, 2], {"it": -1}, ValueError, "it must be an integer that is not negative"),
        ([1, 2], [1, 2], {"it": True}, ValueError, "it must be"),
        ([1, 2], [1, 2], {"delta": -0.1}, ValueError, "delta must be finite and not negative"),
    ],
)
def test_wrong_arguments_are_refused(
    x: Any, y: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lowess(x, y, **options)
