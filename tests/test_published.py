"""Figures that cannot be true together: known tables, all small ROC curves, rounding, messages."""

from __future__ import annotations

import json
import math
from decimal import ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from milfast.uncertainty import Audit, auc_limits, audit

RATES = ("accuracy", "balanced_accuracy", "sensitivity", "specificity")

# ---------------------------------------------------------------- known tables


def published() -> list[dict[str, str]]:
    known = json.loads((ROOT / "python" / "milfast" / "checks" / "raff_holt_2023.json").read_text())
    return [
        {"model": model, "table": table, **dict(zip(known["columns"], figures, strict=True))}
        for table, rows in known["tables"].items()
        for model, figures in rows.items()
    ]


@pytest.mark.parametrize("train_fraction", [0.5, 0.375])
def test_three_of_the_84_pairs_of_raff_and_holt_are_impossible(train_fraction: float) -> None:
    rows = published()
    results = audit([{**row, "train_prevalence": Fraction(train_fraction)} for row in rows], positive_fraction=0.5)
    assert len(results) == 84
    refused = [(rows[r.row - 1]["table"], r.name, r.prefix, r.auc) for r in results if r.verdict == "impossible"]
    assert refused == [
        ("3", "MI-Net", "train", 0.807),
        ("3", "MI-Net", "test", 0.827),
        ("3", "NSK", "train", 0.889),
    ]
    assert all(r.verdict in ("possible", "impossible") for r in results)


def test_their_limits() -> None:
    assert auc_limits(accuracy="0.991", positive_fraction=0.5) == (0.981, 1.0)
    assert auc_limits(accuracy="0.991", positive_fraction=0.375)[0] == pytest.approx(0.9746666666666667, abs=1e-15)
    assert auc_limits(accuracy="0.000", positive_fraction=0.5) == (0.0, 0.001)
    assert auc_limits(accuracy="1.000", positive_fraction=0.5) == (0.999, 1.0)


# ---------------------------------------------------------------- all small ROC curves


@cache
def orders(n_pos: int, n_neg: int) -> list[list[tuple[int, int]]]:
    """Every way to rank items with ties: groups of (positives, negatives), the highest score first."""
    if n_pos == n_neg == 0:
        return [[]]
    return [
        [(i, j), *rest]
        for i in range(n_pos + 1)
        for j in range(n_neg + 1)
        if i + j > 0
        for rest in orders(n_pos - i, n_neg - j)
    ]


@cache
def points(n_pos: int, n_neg: int) -> frozenset[tuple[Fraction, Fraction, Fraction]]:
    """(t, 1 - f, AUC) of every threshold of every ranking."""
    found = set()
    for groups in orders(n_pos, n_neg):
        wins = Fraction(0)
        thresholds = [(0, 0)]
        for i, j in groups:
            t, f = thresholds[-1]
            wins += i * (n_neg - f - j) + Fraction(i * j, 2)
            thresholds.append((t + i, f + j))
        found |= {(Fraction(t, n_pos), 1 - Fraction(f, n_neg), wins / (n_pos * n_neg)) for t, f in thresholds}
    return frozenset(found)


SIZES = [(1, 1), (1, 4), (4, 1), (2, 3), (3, 3), (4, 3)]


@pytest.mark.parametrize(("n_pos", "n_neg"), SIZES)
def test_the_limits_are_the_extremes_of_all_curves(n_pos: int, n_neg: int) -> None:
    p = Fraction(n_pos, n_pos + n_neg)
    seen: dict[tuple[str, Any], list[Fraction]] = {}
    for u, v, area in points(n_pos, n_neg):
        seen.setdefault(("accuracy", p * u + (1 - p) * v), []).append(area)
        seen.setdefault(("balanced_accuracy", (u + v) / 2), []).append(area)
        seen.setdefault(("both", (u, v)), []).append(area)
    for (what, value), areas in seen.items():
        if what == "both":
            limits = auc_limits(sensitivity=value[0], specificity=value[1])
        else:
            limits = auc_limits(**{what: value}, positive_fraction=p)
        assert limits[0] <= float(min(areas))
        assert float(max(areas)) <= limits[1]
        # for a balanced accuracy the corner needs not be a whole number of items
        if what != "balanced_accuracy" or n_pos == n_neg:
            assert limits == (float(min(areas)), float(max(areas)))


@given(st.sampled_from(SIZES), st.data())
def test_no_curve_has_a_pair_that_is_refused(size: tuple[int, int], data: st.DataObject) -> None:
    n_pos, n_neg = size
    p = Fraction(n_pos, n_pos + n_neg)
    accuracy = Fraction(data.draw(st.integers(0, n_pos + n_neg)), n_pos + n_neg)
    area = Fraction(data.draw(st.integers(0, 2 * n_pos * n_neg)), 2 * n_pos * n_neg)
    [result] = audit([{"accuracy": accuracy, "auc": area, "n_pos": n_pos, "n_neg": n_neg}])
    exists = any(p * u + (1 - p) * v == accuracy and found == area for u, v, found in points(n_pos, n_neg))
    if result.verdict == "impossible":
        assert not exists
    elif area in (result.low, result.high):  # the limits themselves are reached
        assert exists


# ---------------------------------------------------------------- true figures, rounded


ROUNDINGS = st.sampled_from([ROUND_HALF_UP, ROUND_HALF_DOWN, ROUND_HALF_EVEN])


def rounded(value: Fraction, decimals: int, rounding: str, percent: bool) -> str:
    scaled = value * 100 if percent else value
    places = max(0, decimals - 2 * percent)
    exact = Decimal(scaled.numerator) / Decimal(scaled.denominator)
    return str(exact.quantize(Decimal(1).scaleb(-places), rounding)) + ("%" if percent else "")


def curve(scores: np.ndarray, labels: np.ndarray, threshold: int) -> dict[str, Fraction]:
    """Figures of scores by their definitions."""
    pos, neg = scores[labels == 1], scores[labels == 0]
    wins = sum(Fraction(int(2 * (a > b) + (a == b)), 2) for a in pos for b in neg)
    u, v = Fraction(int((pos >= threshold).sum()), len(pos)), Fraction(int((neg < threshold).sum()), len(neg))
    p = Fraction(len(pos), len(labels))
    return {
        "accuracy": p * u + (1 - p) * v,
        "balanced_accuracy": (u + v) / 2,
        "sensitivity": u,
        "specificity": v,
        "auc": wins / (len(pos) * len(neg)),
        "positive_fraction": p,
    }


@st.composite
def curves(draw: st.DrawFn, counts: tuple[int, int] | None = None) -> tuple[dict[str, Fraction], tuple[int, int]]:
    n_pos, n_neg = counts or (draw(st.integers(1, 12)), draw(st.integers(1, 12)))
    levels = draw(st.integers(1, 20))
    labels = np.repeat([1, 0], (n_pos, n_neg))
    scores = np.array(draw(st.lists(st.integers(0, levels), min_size=len(labels), max_size=len(labels))))
    if draw(st.booleans()):  # a good model, or one that is upside down: where the limits bite
        scores = scores + draw(st.sampled_from([-1, 1])) * draw(st.integers(0, 2 * levels)) * labels
    return curve(scores, labels, draw(st.integers(-levels, 2 * levels + 1))), (n_pos, n_neg)


@st.composite
def printed(draw: st.DrawFn, figures: dict[str, Fraction], counts: tuple[int, int]) -> dict[str, Any]:
    chosen = draw(st.sets(st.sampled_from(RATES), min_size=1)) | {"auc"}
    if draw(st.booleans()):
        chosen.add("positive_fraction")
    row: dict[str, Any] = {
        what: rounded(figures[what], draw(st.integers(0, 6)), draw(ROUNDINGS), draw(st.booleans())) for what in chosen
    }
    if draw(st.booleans()):
        row |= {"n_pos": counts[0], "n_neg": counts[1]}
    return row


@given(st.data())
def test_what_was_computed_from_scores_is_never_refused(data: st.DataObject) -> None:
    figures, counts = data.draw(curves())
    row = data.draw(printed(figures, counts))
    [result] = audit([row])
    assert result.verdict != "impossible", result
    assert result.low is not None
    assert result.high is not None
    [whole] = audit([row], positive_fraction=figures["positive_fraction"])
    assert whole.verdict != "impossible", whole
    [loose] = audit([row], averaged=True)
    assert loose.low is not None
    assert loose.high is not None
    assert loose.low <= result.low <= result.high <= loose.high


@given(st.data())
def test_floats_are_never_refused_for_their_last_bits(data: st.DataObject) -> None:
    figures, _ = data.draw(curves())
    row = {what: float(value) for what, value in figures.items()}
    assert audit([row])[0].verdict == "possible"


@given(st.data())
def test_averages_over_folds_are_never_refused_as_averages(data: st.DataObject) -> None:
    counts = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    folds = [data.draw(curves(counts))[0] for _ in range(data.draw(st.integers(1, 4)))]
    means = {what: sum(fold[what] for fold in folds) / len(folds) for what in folds[0]}
    row = data.draw(printed(means, counts))
    [result] = audit([row], averaged=True)
    assert result.verdict != "impossible", result
    # an accuracy bounds an average as it bounds one curve: the bound is convex
    if "sensitivity" not in row and "specificity" not in row:
        assert audit([row])[0].verdict != "impossible"


def test_an_average_can_lie_where_no_single_curve_does() -> None:
    # two folds, (t, f) = (1, 1) and (0, 0), with AUC 0 in both
    row = {"sensitivity": "0.500", "specificity": "0.500", "auc": "0.000"}
    [single] = audit([row])
    assert single.verdict == "impossible"
    assert "averages over folds or runs could be like this" in single.reason
    assert audit([row], averaged=True)[0].verdict == "possible"
    [neither] = audit([{"sensitivity": "0.900", "specificity": "0.900", "auc": "0.500"}])
    assert neither.verdict == "impossible"
    assert "averages" not in neither.reason
    assert audit([{"sensitivity": "0.900", "specificity": "0.900", "auc": "0.500"}], averaged=True)[0] != neither


@given(
    st.fractions(0, 1, max_denominator=50),
    st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50),
)
def test_the_limits_of_an_accuracy_have_a_closed_form_and_a_mirror(a: Fraction, p: Fraction) -> None:
    m = max(p, 1 - p)
    low, high = auc_limits(accuracy=a, positive_fraction=p)
    assert low == float(max(0, (a - m) / (1 - m)))
    assert high == float(min(1, a / (1 - m)))
    assert auc_limits(accuracy=a, positive_fraction=1 - p) == (low, high)
    assert auc_limits(accuracy=1 - a, positive_fraction=p) == pytest.approx((1 - high, 1 - low), abs=1e-15)
    assert auc_limits(balanced_accuracy=a, positive_fraction=p) == auc_limits(accuracy=a, positive_fraction=0.5)
    assert auc_limits(accuracy=a, positive_fraction=p, averaged=True) == (low, high)


@given(st.fractions(0, 1, max_denominator=20), st.fractions(0, 1, max_denominator=20), st.integers(1, 3))
def test_the_corners_reach_as_far_as_a_fine_grid(u: Fraction, v: Fraction, decimals: int) -> None:
    half = Fraction(1, 2 * 10**decimals)
    sides = [[min(max(x + step * half / 5, Fraction(0)), Fraction(1)) for step in range(-5, 6)] for x in (u, v)]
    areas = [(a * b, a + b - a * b) for a in sides[0] for b in sides[1]]
    limits = auc_limits(sensitivity=u, specificity=v, decimals=decimals)
    assert limits == (float(min(low for low, _ in areas)), float(max(high for _, high in areas)))


# ---------------------------------------------------------------- unknown fraction


def test_without_the_fraction_only_what_holds_for_every_fraction_is_refused() -> None:
    [result] = audit([{"acc": "0.991", "auc": "0.100"}])
    assert (result.verdict, result.low, result.high) == ("unchecked", 0.0, 1.0)
    assert "add the positive fraction" in result.reason
    # indeed: 991 of 1000 items are negative and all are called negative; the one curve may be anything
    assert audit([{"acc": "0.991", "auc": "0.100"}], positive_fraction="0.9%")[0].verdict == "possible"
    # exact, every fraction agrees on a perfect and on a wholly wrong threshold
    assert auc_limits(accuracy=1.0) == (1.0, 1.0)
    assert auc_limits(accuracy=0.0) == (0.0, 0.0)
    assert auc_limits(accuracy=0.999) == (0.0, 1.0)
    # figures that do not lean on the fraction bound as ever
    assert auc_limits(balanced_accuracy=0.75) == (0.5, 1.0)
    assert auc_limits(sensitivity=0.9, specificity=0.9) == pytest.approx((0.81, 0.99), abs=1e-15)
    # an accuracy lies between sensitivity and specificity
    [outside] = audit([{"acc": "0.95", "tpr": "0.80", "tnr": "0.90", "auc": "0.90"}])
    assert outside.verdict == "impossible"
    assert outside.low is None
    assert audit([{"acc": "0.85", "tpr": "0.80", "tnr": "0.90", "auc": "0.90"}])[0].verdict == "possible"


UNITS = st.fractions(0, 1, max_denominator=12)


@given(UNITS, UNITS)
def test_an_accuracy_beside_a_sensitivity_bounds_without_the_fraction(a: Fraction, u: Fraction) -> None:
    # the specificity lies beyond the accuracy, seen from the sensitivity
    if a == u:
        expected = a * a, 2 * a - a * a
    elif 0 < a < u:
        expected = Fraction(0), u + a - u * a
    elif u < a < 1:
        expected = u * a, Fraction(1)
    else:
        with pytest.raises(ValueError, match="no threshold has this accuracy and sensitivity together"):
            auc_limits(accuracy=a, sensitivity=u)
        return
    assert auc_limits(accuracy=a, sensitivity=u) == tuple(map(float, expected))
    assert auc_limits(accuracy=a, specificity=u) == tuple(map(float, expected))


@given(UNITS, st.sampled_from([Fraction(1, 10**k) for k in (1, 3, 6)]))
def test_a_fraction_within_a_range_leaves_what_any_of_them_leaves(a: Fraction, edge: Fraction) -> None:
    ends = [auc_limits(accuracy=a, positive_fraction=p) for p in (edge, Fraction(1, 2), 1 - edge)]
    wide = auc_limits(accuracy=a, positive_fraction=(edge, 1 - edge))
    assert wide == (min(low for low, _ in ends), max(high for _, high in ends))
    unknown = auc_limits(accuracy=a, positive_fraction=(0, 1))
    assert unknown == auc_limits(accuracy=a)
    assert unknown[0] <= wide[0] <= wide[1] <= unknown[1]


# ---------------------------------------------------------------- rounding and reading


@pytest.mark.parametrize(
    ("auc", "verdict"),
    [
        ("0.98", "possible"),
        ("0.980", "impossible"),
        ("0.981", "possible"),
        ("0.9804", "impossible"),
        ("98%", "possible"),
        ("98.0%", "impossible"),
    ],
)
def test_decimals_are_those_that_are_written(auc: str, verdict: str) -> None:
    assert audit([{"acc": "0.991", "auc": auc}], positive_fraction=0.5)[0].verdict == verdict


def test_an_end_of_the_rounding_is_enough() -> None:
    # 0.9905 allows 0.981; an AUC printed as 0.9805 may have been 0.98055 at most, and 0.980 0.9805
    [below] = audit([{"acc": "0.991", "auc": "0.9809"}], positive_fraction=0.5)
    assert below.verdict == "impossible"
    assert "is below 0.98100" in below.reason
    assert audit([{"acc": "0.9905", "auc": "0.9809"}], positive_fraction=0.5)[0].verdict == "possible"


def test_zeros_that_were_lost_can_be_given_back() -> None:
    row = {"acc": 0.99, "auc": 0.9}
    assert audit([row], positive_fraction=0.5)[0].verdict == "impossible"
    assert audit([{"acc": 1.0, "auc": 0.9}], positive_fraction=0.5)[0].verdict == "possible"
    assert audit([{"acc": 1.0, "auc": 0.9}], positive_fraction=0.5, decimals=3)[0].verdict == "impossible"
    assert auc_limits(accuracy=1.0, positive_fraction=0.5, decimals=3) == (0.999, 1.0)


@pytest.mark.parametrize("value", [0.991, np.float64(0.991), np.float32(0.991), Decimal("0.991"), " 0.991 ", "9.91e-1"])
def test_a_figure_may_be_any_number_or_text(value: Any) -> None:
    assert audit([{"acc": value, "auc": "0.807"}], positive_fraction=0.5)[0].low == 0.981


@pytest.mark.parametrize("value", [None, "", "-", "–", "NaN", math.nan, np.nan, pd.NA, "n/a"])
def test_a_missing_figure_leaves_nothing_to_check(value: Any) -> None:
    [result] = audit([{"acc": "0.991", "auc": value}], positive_fraction=0.5)
    assert (result.verdict, result.auc, result.low) == ("unchecked", None, 0.981)
    [result] = audit([{"acc": value, "auc": "0.9"}], positive_fraction=0.5)
    assert (result.verdict, result.reason) == ("unchecked", "nothing stands beside the AUC")


def test_a_data_frame_by_its_records() -> None:
    frame = pd.DataFrame({"model": ["a", "b"], "Accuracy": [0.991, None], "AUROC": [0.807, 0.9], "n_pos": [50, None]})
    frame["n_neg"] = frame["n_pos"]
    results = audit(frame.to_dict("records"))
    assert [(r.name, r.verdict) for r in results] == [("a", "impossible"), ("b", "unchecked")]


def test_prefixes_and_spellings_of_columns() -> None:
    row = {
        "Model": "NSK",
        "Train Acc.": "1.000",
        "Train AUC": "0.889",
        "test-balanced-accuracy": "0.9",
        "test_ROC_AUC": "0.9",
        "val_TPR": "0.9",
        "val_tnr": "0.9",
        "val_auroc": "0.1",
        "n_pos": "10",
        "n_neg": "10",
        "val_recall_at_5": "0.3",
    }
    results = audit([row])
    assert [(r.name, r.prefix, r.verdict) for r in results] == [
        ("NSK", "train", "impossible"),
        ("NSK", "test", "possible"),
        ("NSK", "val", "impossible"),
    ]


def test_a_prefixed_fraction_wins_over_that_of_the_row_and_that_over_the_argument() -> None:
    row = {
        "acc": "0.900",
        "auc": "0.700",
        "train_acc": "0.900",
        "train_auc": "0.700",
        "train_n_pos": 1,
        "train_n_neg": 9,
    }
    assert [r.verdict for r in audit([row], positive_fraction=0.5)] == ["impossible", "possible"]
    assert [r.verdict for r in audit([{**row, "prevalence": "10%"}], positive_fraction=0.5)] == ["possible", "possible"]
    assert [r.verdict for r in audit([{**row, "prevalence": "50%"}], positive_fraction=0.1)] == [
        "impossible",
        "possible",
    ]
    # a printed 0.00 is a small fraction, not none
    assert audit([{"acc": "0.900", "auc": "0.9", "prevalence": "0.00"}])[0].verdict == "possible"
    assert [r.verdict for r in audit([row], positive_fraction=(0.1, 0.5))] == ["possible", "possible"]


def test_figures_check_one_another_without_an_auc() -> None:
    row = {"acc": "0.900", "tpr": "0.500", "tnr": "0.950", "n_pos": 50, "n_neg": 50}
    [result] = audit([row])
    assert result.verdict == "impossible"
    assert result.reason == (
        "no threshold has accuracy 0.900, sensitivity 0.500, specificity 0.950, 50 positives and 50 negatives together"
    )
    assert audit([{**row, "acc": "0.725"}])[0].verdict == "possible"
    assert audit([{"acc": "0.725", "tpr": "0.5", "auc": "-"}], positive_fraction=0.5)[0].verdict == "possible"
    assert audit([{"tpr": "0.5", "tnr": "0.5", "auc": ""}])[0].verdict == "unchecked"
    [counts] = audit([{"acc": "0.9", "auc": "0.9", "prevalence": "0.3", "n_pos": 50, "n_neg": 50}])
    assert counts.verdict == "impossible"
    assert counts.reason == "50 positives and 50 negatives do not make a fraction of 0.3"


def test_an_audit_prints_and_goes_to_json() -> None:
    [result] = audit([{"m": "<b>", "train_acc": "0.991", "train_auc": "0.807"}], positive_fraction=0.5)
    assert repr(result).startswith("Audit(<b>, train: impossible; an AUC of 0.807 is below 0.9810")
    assert "&lt;b&gt;" in result._repr_html_()
    assert json.loads(json.dumps(result.to_dict()))["auc_low"] == 0.981
    assert isinstance(result, Audit)
    assert audit([]) == []


@pytest.mark.parametrize("word", ["std", "SD", "se", "ci", "rank"])
def test_spreads_and_ranks_are_no_figures(word: str) -> None:
    row = {f"{word}_acc": "12.5", "model": "a", "acc": "0.9", f"test_{word}_auc": "±3", f"{word} AUC": 40, "auc": "0.5"}
    [result] = audit([row])
    assert (result.name, result.prefix, result.auc) == ("a", "", 0.5)
    with pytest.raises(ValueError, match="no column holds a figure"):
        audit([{f"{word}_acc": "0.1"}])
    # only as a word of its own
    assert audit([{"acc": "0.9", "standard_auc": "0.8"}])[1].prefix == "standard"


@pytest.mark.parametrize(("given", "other"), [("n_pos", "n_neg"), ("n_neg", "n_pos")])
def test_one_count_without_the_other_is_said(given: str, other: str) -> None:
    row = {"acc": "0.9", "auc": "0.5", given: "50"}
    said = f"{given} stands without {other}"
    assert said in audit([row])[0].reason
    assert said in audit([{**row, other: "-"}])[0].reason
    assert said not in audit([{**row, other: "50"}])[0].reason
    assert said not in audit([row], positive_fraction=0.5)[0].reason


@given(st.integers(0, 1000), st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=500))
def test_limits_as_text_are_rounded_outwards(thousandths: int, fraction: Fraction) -> None:
    [result] = audit([{"acc": f"{thousandths / 1000:.3f}", "auc": "0.1234"}], positive_fraction=fraction)
    assert result.low is not None
    assert result.high is not None
    assert result.at_least is not None
    assert result.at_most is not None
    assert result.decimals == 5
    ulp = Decimal("0.00001")
    assert Decimal(result.at_least) <= Decimal(repr(result.low)) < Decimal(result.at_least) + ulp
    assert Decimal(result.at_most) - ulp < Decimal(repr(result.high)) <= Decimal(result.at_most)
    assert len(result.at_least) == len(result.at_most) == 7
    if result.verdict == "impossible":
        assert f"below {result.at_least}," in result.reason or f"above {result.at_most}," in result.reason


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"acc": "99.1", "auc": "0.8"}, "row 2, column 'acc': 99.1 is above 1: divide by 100, or write 99.1%"),
        ({"acc": 0.9, "test_auc": 80}, "row 2, column 'test_auc': 80 is above 1: divide by 100, or write 80%"),
        ({"acc": "100.1%", "auc": "0.8"}, "row 2, column 'acc': 100.1% is above 100%"),
        ({"acc": "-0.1", "auc": "0.8"}, "row 2, column 'acc': -0.1 is below 0"),
        ({"acc": "0,99"}, "row 2, column 'acc': '0,99' is not a number: write it alone, as 0.991 or 99.1%"),
        ({"acc": "0.9 ± 0.1"}, "write it alone"),
        ({"acc": "1_0"}, "is not a number"),
        ({"acc": math.inf}, "is not a number"),
        ({"acc": "٠.9"}, "is not a number"),
        ({"acc": "0.9", "accuracy": "0.9"}, "columns 'acc' and 'accuracy' both hold accuracy: rename one"),
        ({"acc": "0.9", "n_pos": "0", "n_neg": "5"}, "column 'n_pos': 0 is not a number of items"),
        ({"acc": "0.9", "n_pos": "2.5", "n_neg": "5"}, "column 'n_pos': 2.5 is not a number of items"),
        ({"acc": "0.9", "prevalence": "30"}, "column 'prevalence': 30 is above 1"),
        (
            {"acc": "0.9", "prevalence": Fraction(0)},
            "column 'prevalence': an AUC needs both classes; got a fraction of 0",
        ),
    ],
)
def test_what_is_wrong_with_a_row_is_said_by_row_and_column(row: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        audit([{"acc": "0.9", "auc": "0.9"}, row])
    assert message in str(caught.value)


def test_rows_without_a_known_column_are_refused() -> None:
    with pytest.raises(ValueError, match="no column holds a figure; there are model, precision: call them auc"):
        audit([{"model": "a", "precision": 0.3}])
    with pytest.raises(TypeError, match=r"row 1 must map column names to figures; got str: .*to_dict\('records'\)"):
        audit(pd.DataFrame({"acc": [0.9]}))
    with pytest.raises(TypeError, match="row 1, column 'acc' must be a number or text; got bool"):
        audit([{"acc": True}])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"accuracy": 99.1}, ValueError, "accuracy: 99.1 is above 1: divide by 100"),
        ({"accuracy": "-"}, ValueError, "accuracy: '-' is not a number: leave it out"),
        ({"accuracy": [0.9]}, TypeError, "accuracy must be a number or text; got list"),
        ({"accuracy": (0.9, 0.8)}, ValueError, "accuracy must be in ascending order"),
        ({"accuracy": (0.9,)}, ValueError, "must be a number or a pair"),
        ({"accuracy": math.nan}, ValueError, "accuracy: 'nan' is not a number"),
        ({"accuracy": 0.9, "positive_fraction": 1}, ValueError, "positive_fraction must lie strictly between 0 and 1"),
        ({"accuracy": 0.9, "positive_fraction": 50}, ValueError, "positive_fraction: 50 is above 1"),
        ({"accuracy": 0.9, "decimals": 2.0}, TypeError, "decimals must be an integer"),
        ({"accuracy": 0.9, "decimals": True}, TypeError, "decimals must be an integer"),
        ({"accuracy": 0.9, "decimals": 13}, ValueError, "decimals must lie between 0 and 12"),
        (
            {"accuracy": 0.9, "sensitivity": 0.5, "specificity": 0.5},
            ValueError,
            "no threshold has this accuracy, sensitivity and specificity together",
        ),
    ],
)
def test_auc_limits_says_what_is_wrong(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        auc_limits(**arguments)
    assert message in str(caught.value)
