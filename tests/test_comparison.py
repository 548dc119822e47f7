"""Comparison itself, Holm's correction, and tails in log space against closed forms."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from milfast.uncertainty import Comparison, Interval, cochran_q, compare_aucs, equivalence, mcnemar_from_counts
from milfast.uncertainty.comparison import adjust, holm, read_names, show_p
from milfast.uncertainty.tails import (
    log_beta,
    log_binomial_tail,
    log_two_sided_normal,
    log_two_sided_t,
    log_upper_chi2,
    log_upper_f,
    log_upper_normal,
)


def close(expected: float) -> object:
    """Equal as logarithms: a relative error of the p-value of 1e-11 at most, in the far tails of the logarithm."""
    return pytest.approx(expected, rel=1e-13, abs=1e-11)


# ---------------------------------------------------------------- tails


@pytest.mark.parametrize("x", [0.0, 1e-9, 0.3, 5.0, 400.0, 1300.0, 5000.0, 1e7])
def test_chi2_has_closed_forms(x: float) -> None:
    assert log_upper_chi2(x, 2) == close(-x / 2)
    assert log_upper_chi2(x, 4) == close(-x / 2 + math.log1p(x / 2))
    assert log_upper_chi2(x, 6) == close(-x / 2 + math.log(1 + x / 2 + x * x / 8))
    assert log_upper_chi2(x, 1) == close(log_two_sided_normal(math.sqrt(x)))


@pytest.mark.parametrize("df", [1.0, 2.0, 9.0, 150.0])
@pytest.mark.parametrize("f", [0.0, 0.1, 1.0, 30.0, 1e6, 1e300])
def test_f_and_t_have_closed_forms(f: float, df: float) -> None:
    ratio = df / (df + 2 * f)
    assert log_upper_f(f, 2, df) == close(df / 2 * math.log(ratio))
    ratio4 = df / (df + 4 * f)
    assert log_upper_f(f, 4, df) == close(df / 2 * math.log(ratio4) + math.log1p(df / 2 * (1 - ratio4)))
    assert log_two_sided_t(math.sqrt(f), df) == close(log_upper_f(f, 1, df))
    if df == 1:
        assert math.exp(log_two_sided_t(f, 1)) == pytest.approx(2 / math.pi * math.atan2(1, f), rel=1e-12)


@pytest.mark.parametrize("t", [20.0, 37.0, 38.0, 39.0, 60.0, 300.0])
def test_the_t_of_many_degrees_nears_the_normal(t: float) -> None:
    # ratio of the tails: exp(-t^4 / (4 df)) to first order
    df = 1e13
    assert log_two_sided_t(t, df) == pytest.approx(log_two_sided_normal(t) + t**4 / (4 * df), rel=1e-6)


@given(st.integers(1, 3000), st.data())
def test_the_binomial_tail_is_the_sum(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n // 2))
    tail, point = log_binomial_tail(k, n)
    terms = [math.comb(n, i) for i in range(k + 1)]
    assert tail == close(math.log(sum(terms)) - n * math.log(2))
    assert point == pytest.approx(math.log(terms[-1]) - n * math.log(2), rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("n", [10**6, 10**9, 10**12, 10**16])
def test_points_of_many_tosses_keep_their_digits(n: int) -> None:
    # in the middle sqrt(2 / (pi n)) (1 - 1 / (4 n)), and from there on the products of neighbours
    _, middle = log_binomial_tail(n // 2, n)
    assert middle == pytest.approx(math.log(2 / math.pi / n) / 2 + math.log1p(-1 / (4 * n)), rel=1e-14)
    _, beside = log_binomial_tail(n // 2 - 3, n)
    steps = [(n // 2 - i) / (n // 2 + i + 1) for i in range(3)]
    assert beside - middle == pytest.approx(sum(map(math.log, steps)), abs=1e-13)
    if n == 10**6:
        for k in (0, 1, 2, 1000, 250_000, 400_000):
            exact = math.log(math.comb(n, k)) - n * math.log(2)
            assert log_binomial_tail(k, n)[1] == pytest.approx(exact, rel=1e-13)


def test_mcnemar_of_astronomical_counts() -> None:
    for b, c in ((10**18, 10**17), (10**15, 10**15 - 10**8), (10**12, 10**12 - 10**6)):
        mid, exact, chi2 = (
            mcnemar_from_counts(10**18, b, c, 3, method=method).log_p for method in ("mid-p", "exact", "chi2")
        )
        assert mid <= exact <= 0
        # the normal law is as good as exact near the middle
        assert c == 10**17 or mid == pytest.approx(chi2, rel=1e-5)


def test_ordinary_tails_are_those_of_scipy() -> None:
    for x in (-3.0, 0.0, 1.5, 8.0):
        assert log_upper_normal(x) == close(stats.norm.logsf(x))
    for t in (0.0, 0.5, -2.3, 9.0):
        assert math.exp(log_two_sided_t(t, 7)) == pytest.approx(2 * stats.t.sf(abs(t), 7), rel=1e-12)
    for x in (0.5, 3.0, 40.0):
        assert math.exp(log_upper_f(x, 5, 11)) == pytest.approx(stats.f.sf(x, 5, 11), rel=1e-12)
        assert math.exp(log_upper_chi2(x, 5)) == pytest.approx(stats.chi2.sf(x, 5), rel=1e-12)


def test_undefined_and_infinite_statistics() -> None:
    for tail in (
        log_two_sided_normal(math.nan),
        log_two_sided_t(math.nan, 3),
        log_upper_f(math.nan, 1, 2),
        log_upper_chi2(math.nan, 2),
    ):
        assert math.isnan(tail)
    assert log_two_sided_t(math.inf, 3) == log_upper_f(math.inf, 1, 2) == log_upper_chi2(math.inf, 2) == -math.inf
    assert log_beta(2, 3, 0.0, 1.0) == -math.inf
    assert log_beta(2, 3, 1.0, 0.0) == 0.0


# ---------------------------------------------------------------- p-values for people


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (1.0, "p = 1"),
        (0.9999, "p = 1"),
        (0.26324, "p = 0.26"),
        (0.0996, "p = 0.0996"),
        (0.10, "p = 0.10"),
        (0.0499, "p = 0.0499"),
        (0.04999, "p = 0.04999"),
        (0.0501, "p = 0.050"),
        (0.00996, "p = 0.00996"),
        (0.0028023, "p = 0.0028"),
        (0.000999, "p = 0.000999"),
        (1.6965e-44, "p = 1.7e-44"),
        (1.1e-300, "p = 1.1e-300"),
        (0.9e-300, "p < 1e-300"),
    ],
)
def test_p_values_keep_their_side(p: float, text: str) -> None:
    assert show_p(math.log(p)) == text


@given(st.floats(-800, 0))
def test_no_p_value_is_shown_as_nought_or_on_the_wrong_side(log_p: float) -> None:
    shown = show_p(log_p)
    value = float(shown[4:])
    assert value > 0
    if shown[2] == "=":
        assert value == pytest.approx(math.exp(log_p), rel=0.06)
        for limit in (0.05, 0.01, 0.001):
            # within a millionth of a limit six digits are not enough either
            if abs(math.exp(log_p) / limit - 1) > 1e-5:
                assert (value < limit) == (math.exp(log_p) < limit)
    else:
        assert log_p < math.log(1e-300)


# ---------------------------------------------------------------- Holm


@given(st.lists(st.fractions(Fraction(1, 10**6), 1), min_size=1, max_size=12))
def test_holm_is_the_definition(p: list[Fraction]) -> None:
    adjusted = holm([math.log(x) for x in p])
    order = sorted(range(len(p)), key=lambda i: p[i])
    for rank, i in enumerate(order):
        expected = max(min(Fraction(1), (len(p) - earlier) * p[order[earlier]]) for earlier in range(rank + 1))
        assert math.exp(adjusted[i]) == pytest.approx(float(expected), rel=1e-12)


def test_holm_on_a_known_example() -> None:
    adjusted = [math.exp(p) for p in holm([math.log(p) for p in (0.01, 0.04, 0.03, 0.005)])]
    assert adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([math.log(0.5), math.log(0.9)]) == [0.0, 0.0]


def test_holm_leaves_undefined_tests_out() -> None:
    adjusted = holm([math.log(0.02), math.nan, math.log(0.04)])
    assert math.isnan(adjusted[1])
    assert [math.exp(adjusted[i]) for i in (0, 2)] == pytest.approx([0.04, 0.04])
    assert holm([]) == []
    assert adjust([]) == ()


# ---------------------------------------------------------------- Comparison


def test_a_p_value_is_never_nought() -> None:
    result = mcnemar_from_counts(0, 50_000, 10_000, 0)
    assert result.p_value == math.ulp(0.0)
    assert -math.inf < result.log_p < -9000
    assert "p < 1e-300" in repr(result)
    assert "p < 1e-300" in result.summary()
    assert result.to_dict()["p_value"] > 0


def test_other_forms_and_the_way_back() -> None:
    rng = np.random.default_rng(1)
    correct = rng.random((3, 40)) < 0.7
    undefined = Comparison(
        ("A<", "B"),
        (math.nan, 0.5),
        Interval(math.nan, math.nan, math.nan, 0.95, "undefined", 3),
        math.nan,
        math.nan,
        (),
        "undefined",
        1,
        unit="runs",
        notes=("why & how",),
    )
    several = cochran_q(correct)
    inferior = equivalence(correct[0], correct[1], (-0.3, math.inf))
    assert Comparison.from_dict(json.loads(json.dumps(inferior.to_dict()))) == inferior
    for result in (mcnemar_from_counts(5, 3, 1, 2), several, undefined):
        written = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        again = Comparison.from_dict(written)
        assert json.dumps(again.to_dict()) == json.dumps(result.to_dict())
        assert repr(pickle.loads(pickle.dumps(result))) == repr(result)
        assert isinstance(hash(mcnemar_from_counts(5, 3, 1, 2)), int)
    assert undefined.summary() == (
        "accuracy: A< nan, B 0.500; difference nan, 95 % interval undefined (undefined); p undefined "
        "(undefined, 1 paired run)\nwhy & how"
    )
    html = undefined._repr_html_()
    assert "A&lt;" in html
    assert "why &amp; how" in html
    several = cochran_q(correct, names=("x", "y", "z"))
    assert several.summary().count("\n  accuracy: ") == 3
    assert "adjusted p = " in repr(several.pairs[0])
    assert several.pairs[0].p_adjusted == pytest.approx(math.exp(several.pairs[0].log_p_adjusted or 0))
    assert several.p_adjusted is None


def test_names() -> None:
    assert read_names(None, 3) == ("A", "B", "C")
    assert read_names(None, 27)[26] == "model 27"
    with pytest.raises(TypeError, match="names must be a sequence of 2 strings"):
        read_names("ab", 2)
    with pytest.raises(ValueError, match="one name a model: 2; got 1"):
        read_names(["a"], 2)
    with pytest.raises(ValueError, match="names must differ; got a, a"):
        read_names(["a", "a"], 2)
    with pytest.raises(TypeError, match="its keys are the names"):
        compare_aucs({"a": [1, 2], "b": [2, 1]}, [0, 1], names=("c", "d"))


def test_the_package_is_imported_without_scipy() -> None:
    code = "import sys, milfast.uncertainty; sys.exit('scipy' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
