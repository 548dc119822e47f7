"""Several models on several data sets: golden values, ranks by counting, laws of the range, groups."""

from __future__ import annotations

import json
import math
from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import golden_cases
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from milfast.uncertainty import friedman
from milfast.uncertainty.many import range_quantile, range_tail
from milfast.uncertainty.signed_rank import wilcoxon

TABLES = st.tuples(st.integers(3, 5), st.integers(2, 9)).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 6), min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
    )
)


def test_golden_friedman_and_nemenyi() -> None:
    [case] = golden_cases("friedman")
    result = friedman(np.transpose(case["inputs"]["scores"]))
    expected = case["expected"]
    assert result.statistic == pytest.approx(expected["chi2"], abs=case["tol"])
    assert result.p_value == pytest.approx(expected["p"], abs=case["tol"])
    for pair in result.pairs:
        i, j = (ord(name) - ord("A") for name in pair.names)
        assert pair.p_adjusted == pytest.approx(expected["nemenyi"][i][j], abs=case["tol"])


# ---------------------------------------------------------------- the law of the range


@pytest.mark.parametrize("q", [0.01, 0.5, 2.0, 5.0, 9.0])
def test_the_range_of_two_is_a_difference(q: float) -> None:
    assert range_tail(q, 2) == pytest.approx(math.log(2) + stats.norm.logsf(q / math.sqrt(2)), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("k", [3, 5, 20])
def test_the_range_is_that_of_scipy(k: int) -> None:
    for q in (0.5, 2.0, 4.0, 6.0):
        assert math.exp(range_tail(q, k)) == pytest.approx(stats.studentized_range.sf(q, k, np.inf), abs=1e-9)
    assert math.exp(range_tail(range_quantile(0.05, k), k)) == pytest.approx(0.05, rel=1e-9)


def test_far_tails_of_the_range_neither_vanish_nor_turn() -> None:
    tails = [range_tail(q, 6) for q in (0.0, 1.0, 5.0, 20.0, 40.0, 80.0, 160.0)]
    assert tails[0] == 0.0
    assert tails == sorted(tails, reverse=True)
    # for a far range only the two extremes matter: k (k - 1) / 2 pairs
    for q in (20.0, 80.0, 160.0):
        assert range_tail(q, 6) == pytest.approx(math.log(15) + range_tail(q, 2), rel=1e-6)
        assert range_tail(q, 2) == pytest.approx(math.log(2) + stats.norm.logsf(q / math.sqrt(2)), rel=1e-9)


def test_table_of_demsar() -> None:
    # critical values of the two-tailed Nemenyi test at 5 %, Demsar 2006, table 5
    for k, q in (
        (2, 1.960),
        (3, 2.343),
        (4, 2.569),
        (5, 2.728),
        (6, 2.850),
        (7, 2.949),
        (8, 3.031),
        (9, 3.102),
        (10, 3.164),
    ):
        assert range_quantile(0.05, k) / math.sqrt(2) == pytest.approx(q, abs=1.1e-3)


# ---------------------------------------------------------------- Friedman


@given(TABLES)
def test_the_statistic_is_that_of_scipy(table: list[list[int]]) -> None:
    result = friedman(table)
    want = [
        np.mean(
            [
                1 + sum(b > a for b in c) + (sum(b == a for b in c) - 1) / 2
                for a, c in zip(row, zip(*table, strict=True), strict=True)
            ]
        )
        for row in table
    ]
    assert result.estimates == pytest.approx(want)
    if any(len(set(column)) > 1 for column in zip(*table, strict=True)):
        found = stats.friedmanchisquare(*table)
        assert result.statistic == pytest.approx(found.statistic, rel=1e-9, abs=1e-9)
        assert result.p_value == pytest.approx(found.pvalue, rel=1e-8)
    else:
        assert (result.statistic, result.p_value) == (0.0, 1.0)
        assert "nothing tells them apart" in result.notes[0]
        assert all(pair.p_adjusted == 1.0 for pair in result.pairs)


@given(TABLES)
def test_lower_is_better_is_the_mirror(table: list[list[int]]) -> None:
    one, other = friedman(table), friedman(np.negative(table), higher_is_better=False)
    assert one == other
    up = friedman(table, higher_is_better=False)
    assert up.statistic == pytest.approx(one.statistic)
    assert np.add(up.estimates, one.estimates) == pytest.approx([len(table) + 1] * len(table))


def test_iman_and_davenport() -> None:
    rng = np.random.default_rng(0)
    table = rng.random((4, 10))
    chi2, f = friedman(table), friedman(table, method="f")
    assert f.statistic == pytest.approx(9 * chi2.statistic / (30 - chi2.statistic))
    assert f.p_value == pytest.approx(stats.f.sf(f.statistic, 3, 27))
    assert f.df == (3.0, 27.0)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_rankings_that_all_agree_are_no_certainty(n: int) -> None:
    result = friedman(np.repeat([[3.0], [2.0], [1.0]], n, axis=1), method="f")
    agree = sum(len(set(draw)) == 1 for draw in product(permutations(range(3)), repeat=n)) / 6**n
    assert result.p_value == pytest.approx(agree)
    tied = friedman(np.repeat([[3.0], [2.0], [2.0]], n, axis=1), method="f")
    assert tied.p_value == pytest.approx(3.0 ** -(n - 1))
    assert math.isnan(result.statistic)


# ---------------------------------------------------------------- pairs


def test_critical_difference_decides_as_the_p_value() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(6, 15)) + np.arange(6)[:, None] / 3
    result = friedman(table)
    apart = result.details["critical_difference"]
    assert apart == pytest.approx(2.850 * math.sqrt(6 * 7 / (6 * 15)), abs=2e-3)
    for pair in result.pairs:
        assert pair.difference is not None
        assert (abs(pair.difference.estimate) > apart) == ((pair.p_adjusted or 1) < 0.05)
        assert (0.0 in pair.difference) == ((pair.p_adjusted or 1) >= 0.05)
    order = sorted(result.names, key=lambda name: result.estimates[result.names.index(name)])
    for group in result.details["groups"]:
        places = [order.index(name) for name in group]
        assert places == list(range(places[0], places[-1] + 1))
        ranks = [result.estimates[result.names.index(name)] for name in group]
        assert ranks[-1] - ranks[0] <= apart
    assert {name for group in result.details["groups"] for name in group} == set(result.names)


def test_holm_and_a_control() -> None:
    rng = np.random.default_rng(2)
    table = dict(zip("vwxyz", rng.normal(size=(5, 12)) + np.arange(5)[:, None] / 2, strict=True))
    for posthoc in ("holm", "wilcoxon"):
        all_pairs, against = friedman(table, posthoc=posthoc), friedman(table, posthoc=posthoc, control="x")
        assert len(all_pairs.pairs) == 10
        assert [pair.names for pair in against.pairs] == [("x", "v"), ("x", "w"), ("x", "y"), ("x", "z")]
        assert "groups" not in against.details
        same = {frozenset(pair.names): pair.log_p for pair in all_pairs.pairs}
        for pair in against.pairs:
            assert pair.log_p == pytest.approx(same[frozenset(pair.names)])
            assert pair.log_p <= (pair.log_p_adjusted or 0)
    z = friedman(table, posthoc="holm").pairs[0]
    assert z.p_value == pytest.approx(
        2 * stats.norm.sf(abs(z.estimates[0] - z.estimates[1]) / math.sqrt(5 * 6 / (6 * 12)))
    )


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=10))
def test_wilcoxon_is_the_count_of_all_signs(d: list[int]) -> None:
    statistic, log_p = wilcoxon(np.array(d, dtype=float))
    moved = [x for x in d if x]
    ranks = stats.rankdata(np.abs(moved)) if moved else []
    won = sum(r for r, x in zip(ranks, moved, strict=True) if x > 0)
    less = min(won, sum(ranks) - won)
    assert statistic == less
    share = np.mean([np.dot(signs, ranks) <= less for signs in product((0, 1), repeat=len(moved))]) if moved else 1.0
    assert math.exp(log_p) == pytest.approx(min(1.0, 2 * share))


def test_long_wilcoxon_is_that_of_scipy() -> None:
    d = np.random.default_rng(3).normal(0.3, 1, 200)
    found = stats.wilcoxon(d, method="approx", correction=False)
    assert wilcoxon(d) == pytest.approx((found.statistic, math.log(found.pvalue)))
    short = d[:60]
    assert math.exp(wilcoxon(short)[1]) == pytest.approx(stats.wilcoxon(short, method="exact").pvalue)


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: friedman([[1, 2, 3]]), ValueError, r"two of each or more; got \(1, 3\)"),
        (lambda: friedman([[1], [2]]), ValueError, "a column a data set"),
        (lambda: friedman([1, 2, 3]), ValueError, "dimension 2"),
        (lambda: friedman([[1, 2], [math.nan, 3]]), ValueError, r"values\[1, 0\] is nan"),
        (lambda: friedman({"a": [1, 2], "b": [1, 2, 3]}), ValueError, "got 2 for 'a' and 3 for 'b'"),
        (lambda: friedman({"a": [1, 2], "b": [1, 2]}, names=("c", "d")), TypeError, "its keys are the names"),
        (lambda: friedman([[1, 2], [3, 4]], posthoc="tukey"), ValueError, "posthoc must be one of nemenyi"),
        (lambda: friedman([[1, 2], [3, 4]], method="z"), ValueError, "method must be one of chi2, f"),
        (lambda: friedman([[1, 2], [3, 4]], control="A"), ValueError, "use 'holm' or 'wilcoxon' with a control"),
        (lambda: friedman([[1, 2], [3, 4]], control="Z", posthoc="holm"), ValueError, "control must be one of A, B"),
    ],
)
def test_messages(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_columns_of_a_data_frame_are_models() -> None:
    table = {"a": [1, 2, 3, 5], "b": [2, 3, 5, 1], "c": [3, 1, 4, 0]}
    assert friedman(pd.DataFrame(table)) == friedman(table) == friedman(list(table.values()), names=("a", "b", "c"))


def test_results_can_be_written() -> None:
    result = friedman([[1, 2, 3], [2, 3, 5], [3, 1, 4]])
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["details"]["groups"] == [["B", "C", "A"]]
    assert "mean rank: A" in result.summary()
