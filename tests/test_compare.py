"""mf.compare: the right test for a design, what it has to say against it, and cards."""

from __future__ import annotations

import json
import math
import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import ROOT, golden_cases
from hypothesis import given
from hypothesis import strategies as st

import milfast as mf
from milfast import _core
from milfast.uncertainty import (
    accuracy_interval,
    auc_interval,
    cochran_q,
    compare_auc,
    compare_aucs,
    corrected_ttest,
    equivalence,
    equivalence_auc,
    mcnemar,
    mean_interval,
    probability_of_improvement,
    proportion_interval,
    variance_components,
)
from milfast.uncertainty.design import read

if TYPE_CHECKING:
    from pathlib import Path


def data(seed: int = 0, n: int = 240, n_models: int = 2, n_seeds: int | None = None) -> tuple[dict[str, Any], Any]:
    """Scores of models that get worse, and labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    shared = rng.normal(size=n)
    scores = {}
    for m in range(n_models):
        shape = (n,) if n_seeds is None else (n_seeds, n)
        scores["abcdefg"[m]] = (2 - 0.4 * m) * labels + 0.8 * shared + 0.7 * rng.normal(size=shape)
    return scores, labels


def decided(scores: dict[str, Any]) -> dict[str, Any]:
    return {name: (values > 1).astype(int) for name, values in scores.items()}


def codes(result: Any) -> list[str]:
    return [doubt.code for doubt in result.warnings]


def design(predictions: Any, labels: Any, **options: Any) -> Any:
    given = {"kind": None, "folds": None, "seeds": None, "clusters": None, "pos_label": None} | options
    return read(predictions, labels, **given)


# ---------------------------------------------------------------- one run a model


def test_scores_of_two_models_get_delong() -> None:
    scores, labels = data()
    result = mf.compare(scores, labels)
    assert result.measure == "AUC"
    assert result.estimates == tuple(auc_interval(values, labels) for values in scores.values())
    assert result.pairs == (compare_auc(scores["a"], scores["b"], labels, names=("a", "b")),)
    assert result.joint is None
    assert result.improvements == ()


def test_scores_of_three_models_get_the_joint_test_and_holm() -> None:
    scores, labels = data(n_models=3)
    result = mf.compare(scores, labels)
    whole = compare_aucs(scores, labels)
    assert result.joint == whole
    assert [pair.log_p_adjusted for pair in result.pairs] == [pair.log_p_adjusted for pair in whole.pairs]
    assert [pair.names for pair in result.pairs] == list(combinations("abc", 2))


def test_labels_get_mcnemar_and_cochran() -> None:
    scores, labels = data(n_models=3)
    predicted = decided(scores)
    result = mf.compare(predicted, labels)
    right = np.array([values == labels for values in predicted.values()])
    assert result.measure == "accuracy"
    assert result.estimates == tuple(proportion_interval(int(row.sum()), len(labels)) for row in right)
    assert result.joint == cochran_q(right, names=("a", "b", "c"))
    plain = mcnemar(right[0], right[1], names=("a", "b"))
    assert (result.pairs[0].log_p, result.pairs[0].difference) == (plain.log_p, plain.difference)


def test_classes_may_be_words() -> None:
    labels = np.array(["cat", "dog", "cow"] * 20)
    ours, theirs = labels.copy(), labels.copy()
    ours[:5], theirs[:17] = "cow", "yak"
    result = mf.compare({"ours": ours, "theirs": theirs}, labels)
    assert result.pairs[0].estimates == (56 / 60, 43 / 60)
    assert result.design["n_classes"] == 3


def test_kind_is_found_out_and_can_be_said() -> None:
    scores, labels = data()
    assert mf.compare(decided(scores), labels).measure == "accuracy"
    assert mf.compare(decided(scores), labels, kind="scores").measure == "AUC"
    assert mf.compare(scores, labels).measure == "AUC"
    assert mf.compare(scores, np.where(labels == 1, "ill", "well"), kind="scores", pos_label="ill").pairs == (
        mf.compare(scores, labels).pairs
    )
    # a class may be predicted that no item has
    assert mf.compare({"a": [0, 1, 2, 3], "b": [0, 1, 2, 2]}, [0, 1, 2, 2]).measure == "accuracy"


@given(st.integers(0, 10_000))
def test_swapping_models_turns_the_difference_round_and_order_of_items_is_of_no_weight(seed: int) -> None:
    scores, labels = data(seed, n=40)
    scores = {name: np.round(values, 1) for name, values in scores.items()}
    order = np.random.default_rng(seed).permutation(40)
    plain = mf.compare(scores, labels).pairs[0]
    turned = mf.compare({"b": scores["b"], "a": scores["a"]}, labels).pairs[0]
    moved = mf.compare({name: values[order] for name, values in scores.items()}, labels[order]).pairs[0]
    assert plain.difference is not None
    assert turned.difference is not None
    assert turned.difference.estimate == -plain.difference.estimate
    assert math.isclose(turned.difference.low, -plain.difference.high, abs_tol=1e-12)
    assert math.isclose(turned.log_p, plain.log_p, rel_tol=1e-9)
    assert math.isclose(moved.log_p, plain.log_p, rel_tol=1e-9)


def test_one_model_has_an_estimate_and_no_pair() -> None:
    scores, labels = data()
    result = mf.compare({"a": scores["a"]}, labels)
    assert result.pairs == ()
    assert result.estimates == (auc_interval(scores["a"], labels),)
    assert "Comparison" not in repr(result)


def test_equal_models_have_p_1() -> None:
    scores, labels = data()
    for predictions in (scores, decided(scores)):
        result = mf.compare({"a": predictions["a"], "b": predictions["a"]}, labels)
        assert result.pairs[0].p_value == 1
        assert result.pairs[0].difference is not None
        assert result.pairs[0].difference.estimate == 0


# ---------------------------------------------------------------- seeds


@pytest.mark.parametrize("clusters", [None, np.arange(240) // 8])
def test_influences_give_the_covariances_of_the_figures(clusters: Any) -> None:
    scores, labels = data(n_seeds=3)
    ours = design(scores, labels, clusters=clusters)
    if clusters is None:
        _, expected, _, _ = _core.delong_covariance(np.concatenate(list(scores.values())), labels)
        np.testing.assert_allclose(ours.covariance(), expected, rtol=1e-12, atol=1e-18)
    predicted = decided(scores)
    right = np.array([values == labels for values in predicted.values()]).reshape(6, -1).astype(float)
    if clusters is None:
        expected = np.cov(right) / right.shape[1]
    else:
        residual = (right - right.mean(1, keepdims=True)) / math.sqrt(240 * 239)
        sums = np.array([[row[clusters == c].sum() for c in range(30)] for row in residual])
        expected = sums @ sums.T * 30 / 29
    np.testing.assert_allclose(
        design(predicted, labels, clusters=clusters).covariance(), expected, rtol=1e-10, atol=1e-18
    )


def test_items_and_seeds_add_up() -> None:
    scores, labels = data(n_seeds=5)
    result = mf.compare(scores, labels, seeds=[7, 8, 9, 10, 11])
    aucs, whole, _, _ = _core.delong_covariance(np.concatenate(list(scores.values())), labels)
    weights = np.repeat([0.2, -0.2], 5)
    variance, below = float(weights @ whole @ weights), 0.0
    for m in range(2):
        own, figures = whole[5 * m : 5 * m + 5, 5 * m : 5 * m + 5], aucs[5 * m : 5 * m + 5]
        of_items = np.trace(own) / 5 - (own.sum() - np.trace(own)) / 20
        variance += max(0.0, np.var(figures, ddof=1) - of_items) / 5
        below += (np.var(figures, ddof=1) / 5) ** 2 / 4
    below += float(weights @ whole @ weights) ** 2 / 239
    [pair] = result.pairs
    assert pair.method == "t on items and seeds"
    assert math.isclose(pair.statistic, (aucs[:5].mean() - aucs[5:].mean()) / math.sqrt(variance), rel_tol=1e-10)
    assert math.isclose(pair.df[0], variance**2 / below, rel_tol=1e-10)
    assert result.improvements == (
        probability_of_improvement(aucs[:5], aucs[5:], paired=False, names=("a", "b")).__class__(
            **{
                **vars(probability_of_improvement(aucs[:5], aucs[5:], paired=False, names=("a", "b"))),
                "notes": ("each seed of one against each of the other",),
            }
        ),
    )
    assert result.design["seeds"] == ["7", "8", "9", "10", "11"]


@pytest.mark.parametrize("kind", ["scores", "labels"])
def test_the_interval_for_items_and_seeds_covers(kind: str) -> None:
    """Both models are equally good on average; items are drawn, and so is what each seed has learned."""
    rng = np.random.default_rng(1)
    inside = 0
    runs = 250
    for _ in range(runs):
        labels = np.arange(160) % 2
        shared = rng.normal(size=160)
        predictions = {}
        for name in "ab":
            skill = 1.2 + 0.35 * rng.normal(size=(4, 1))  # a seed's
            made = skill * (2 * labels - 1) + shared + rng.normal(size=(4, 160))
            predictions[name] = made if kind == "scores" else (made > 0).astype(int)
        difference = mf.compare(predictions, labels).pairs[0].difference
        assert difference is not None
        inside += 0 in difference
    # 95 % of 250 are 237.5, with a standard deviation of 3.4
    assert 226 <= inside <= 249


def test_the_test_of_all_models_errs_as_often_as_it_says() -> None:
    """Three models that are equally good on average, with four seeds each."""
    rng = np.random.default_rng(4)
    runs, below = 250, 0
    for _ in range(runs):
        labels = np.arange(120) % 2
        shared = rng.normal(size=120)
        predictions = {}
        for name in "abc":
            skill = 1.2 + 0.35 * rng.normal(size=(4, 1))
            predictions[name] = skill * (2 * labels - 1) + shared + rng.normal(size=(4, 120))
        joint = mf.compare(predictions, labels).joint
        assert joint is not None
        below += joint.p_value < 0.05
    # 5 % of 250 are 12.5, with a standard deviation of 3.4; the chi-squared law would give about 34
    assert 1 <= below <= 22


def test_repeats_of_one_seed_are_no_evidence() -> None:
    scores, labels = data()
    once = mf.compare(scores, labels)
    often = mf.compare({name: np.stack([values] * 8) for name, values in scores.items()}, labels)
    assert once.pairs[0].difference is not None
    assert often.pairs[0].difference is not None
    # the same predictions eight times: the variance of the items is all there is, and the interval is no narrower
    assert math.isclose(often.pairs[0].difference.half_width, once.pairs[0].difference.half_width, rel_tol=0.02)


# ---------------------------------------------------------------- folds


def test_folds_get_the_corrected_t_test_on_their_figures() -> None:
    scores, labels = data()
    folds = np.arange(240) // 48
    result = mf.compare(scores, labels, folds=folds)
    figures = {n: [mf.auc(v[folds == f], labels[folds == f]) for f in range(5)] for n, v in scores.items()}
    expected = corrected_ttest(figures["a"], figures["b"], folds=5, measure="AUC", names=("a", "b"))
    assert result.pairs == (expected,)
    assert result.estimates[0] == mean_interval(figures["a"], test_train_ratio=1 / 4, bounds=(0, 1))
    assert [other.method for other in result.others[0]] == ["DeLong within folds"]
    assert result.improvements[0].probability.estimate == np.mean(np.array(figures["a"]) > figures["b"])
    np.testing.assert_array_equal(result.runs[0, 0], figures["a"])


def test_delong_within_folds_is_the_mean_of_the_folds() -> None:
    scores, labels = data()
    folds = np.arange(240) // 48
    [[within]] = mf.compare(scores, labels, folds=folds).others
    parts = [compare_auc(scores["a"][folds == f], scores["b"][folds == f], labels[folds == f]) for f in range(5)]
    gaps = [part.estimates[0] - part.estimates[1] for part in parts]
    errors = [gap / part.statistic for gap, part in zip(gaps, parts, strict=True)]
    assert math.isclose(within.statistic, np.mean(gaps) / math.sqrt(np.sum(np.square(errors)) / 25), rel_tol=1e-9)


def test_seeds_that_share_folds_count_once_a_fold() -> None:
    scores, labels = data(n_seeds=3)
    folds = np.arange(240) % 6 // 2  # of both classes
    result = mf.compare(decided(scores), labels, folds=folds)
    runs = result.runs
    assert runs.shape == (2, 3, 3)
    expected = corrected_ttest(runs[0].mean(0), runs[1].mean(0), folds=3, measure="accuracy", names=("a", "b"))
    assert math.isclose(result.pairs[0].log_p, expected.log_p, rel_tol=1e-12)
    assert result.variances == tuple(variance_components(table) for table in runs)
    assert result.design["shared_folds"] is True
    assert "shared-folds" in codes(result)
    paired = probability_of_improvement(runs[0], runs[1], names=("a", "b"))
    assert result.improvements[0].probability == paired.probability


def test_folds_of_their_own_are_repeats() -> None:
    scores, labels = data(n_seeds=2)
    rng = np.random.default_rng(0)
    folds = np.stack([rng.permutation(np.arange(240) % 4) for _ in range(2)])
    result = mf.compare(decided(scores), labels, folds=folds)
    expected = corrected_ttest(result.runs[0], result.runs[1], measure="accuracy", names=("a", "b"))
    assert result.pairs == (expected,)
    assert result.pairs[0].n == 8
    assert result.design["shared_folds"] is False
    assert result.variances == ()
    assert "shared-folds" not in codes(result)
    # the same split for both seeds is a shared one, however it is written down
    assert mf.compare(decided(scores), labels, folds=folds[[0, 0]]).design["shared_folds"] is True


def test_folds_without_a_class_are_left_out_and_counted() -> None:
    scores, labels = data(n=60)
    folds = np.arange(60) // 10
    labels = labels.copy()
    labels[:10] = 0
    result = mf.compare(scores, labels, folds=folds)
    assert result.design["n_undefined_runs"] == 1
    assert np.isnan(result.runs[:, 0, 0]).all()
    assert result.pairs[0].n == 5
    assert "undefined-runs" in codes(result)
    none = mf.compare(scores, np.repeat([0, 1], 30), folds=folds)
    assert math.isnan(none.pairs[0].log_p)
    assert none.to_dict()["pairs"][0]["p_value"] is None


# ---------------------------------------------------------------- clusters


def test_clusters_get_the_test_by_their_variance_and_beside_it_the_cluster_bootstrap() -> None:
    scores, labels = data()
    clusters = np.arange(240) // 8
    result = mf.compare(decided(scores), labels, clusters=clusters, n_boot=4000, random_state=3)
    [[pair]] = result.others
    assert pair.method == "cluster bootstrap"
    assert pair.difference is not None
    assert (pair.difference.n_clusters, pair.difference.n_boot, pair.difference.seed) == (30, 4000, 3)
    gain = (decided(scores)["a"] == labels).astype(float) - (decided(scores)["b"] == labels)
    sums = gain.reshape(30, 8).sum(1)
    drawn = np.random.default_rng(5).integers(0, 30, (40_000, 30))
    low, high = np.quantile(sums[drawn].sum(1) / 240, [0.025, 0.975])
    # the replicates are whole items, so that quantiles may differ by one
    assert math.isclose(pair.difference.low, low, abs_tol=1.01 / 240)
    assert math.isclose(pair.difference.high, high, abs_tol=1.01 / 240)
    [test] = result.pairs
    right = [decided(scores)[name] == labels for name in "ab"]
    assert test.log_p == mcnemar(*right, clusters=clusters).log_p
    assert test.difference == mcnemar(*right, clusters=clusters).difference
    assert result.estimates[0] == accuracy_interval(decided(scores)["a"], labels, clusters=clusters)
    again = mf.compare(decided(scores), labels, clusters=clusters, n_boot=4000, random_state=3)
    assert again.to_dict() == result.to_dict()


def test_copies_of_items_widen_the_interval_of_clusters_to_that_of_the_items() -> None:
    scores, labels = data(n=100)
    copies = {name: np.repeat(values, 5) for name, values in scores.items()}
    once = mf.compare(scores, labels, clusters=np.arange(100))
    again = mf.compare(copies, np.repeat(labels, 5), clusters=np.repeat(np.arange(100), 5))
    naive = mf.compare(copies, np.repeat(labels, 5)).pairs[0].difference
    assert naive is not None
    for plain, found in ((once.pairs[0], again.pairs[0]), (once.others[0][0], again.others[0][0])):
        assert plain.difference is not None
        assert found.difference is not None
        assert found.difference.low == pytest.approx(plain.difference.low, rel=1e-12)
        assert found.difference.high == pytest.approx(plain.difference.high, rel=1e-12)
        assert naive.half_width < 0.6 * found.difference.half_width


def test_p_of_a_bootstrap_is_never_0_and_agrees_with_its_interval() -> None:
    scores, labels = data(n_models=3)
    result = mf.compare(scores, labels, clusters=np.arange(240) // 4, n_boot=1000)
    for [pair] in result.others:
        assert pair.difference is not None
        assert 0 < pair.p_value <= 1
        assert (pair.p_value < 0.05) == (0 not in pair.difference)
    assert result.others[1][0].p_value == pytest.approx(2 / 1001)
    assert "no smaller p-value" in result.others[1][0].notes[0]
    assert result.estimates[0] == auc_interval(scores["a"], labels, clusters=np.arange(240) // 4)
    assert result.joint == compare_aucs(scores, labels, clusters=np.arange(240) // 4)
    assert result.pairs[1].log_p == compare_auc(scores["a"], scores["c"], labels, clusters=np.arange(240) // 4).log_p


def test_clusters_with_seeds_and_with_folds_still_have_a_bootstrap() -> None:
    scores, labels = data(n_seeds=3)
    clusters = np.arange(240) // 8
    result = mf.compare(scores, labels, clusters=clusters)
    assert result.pairs[0].method == "t on items and seeds"
    assert [other.method for other in result.others[0]] == ["cluster bootstrap"]
    once = {name: values[0] for name, values in scores.items()}
    folded = mf.compare(once, labels, clusters=clusters, folds=clusters % 5)
    assert folded.pairs[0].method == "corrected resampled t"
    assert [other.method for other in folded.others[0]] == ["cluster bootstrap"]
    assert "torn-clusters" not in codes(folded)
    torn = mf.compare(once, labels, clusters=clusters, folds=np.arange(240) // 2 % 5)
    assert "torn-clusters" in codes(torn)


def test_bags_are_clusters() -> None:
    scores, labels = data(n=40)
    bags = mf.Bags(np.zeros((40, 1)), np.arange(0, 41, 4), None)
    assert mf.compare(scores, labels, clusters=bags).pairs == (
        mf.compare(scores, labels, clusters=np.arange(40) // 4).pairs
    )


@pytest.mark.parametrize("kind", ["scores", "labels"])
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_runs_that_are_all_alike_are_not_sure(kind: Any, folded: bool, clustered: bool) -> None:
    labels = np.arange(120) % 2
    options: dict[str, Any] = {"folds": np.arange(120) // 24} if folded else {}
    if clustered:
        options["clusters"] = np.arange(120) // 4
    result = mf.compare({"a": np.stack([labels] * 3), "b": np.stack([labels] * 3)}, labels, kind=kind, **options)
    trials = 30 if clustered else 60 if kind == "scores" else 120
    expected = proportion_interval(trials, trials)
    for found in result.estimates:
        assert found.method == f"wilson (all {'folds' if folded else 'seeds'} alike)"
        assert (found.estimate, found.low, found.high) == (1, expected.low, expected.high)


def test_all_models_are_not_tested_without_what_no_spread_is_known_of() -> None:
    labels = np.arange(60) % 2
    noise = np.random.default_rng(3).normal(size=(3, 60))
    sure = {"up": np.stack([labels] * 3) + 0.5, "down": 0.5 - np.stack([labels] * 3), "some": noise + labels}
    result = mf.compare(sure, labels)
    assert result.joint is not None
    assert math.isnan(result.joint.log_p)
    assert result.joint.notes == ("a combination of the figures differs but nothing shows any spread of it",)
    # copies say nothing new, which is no reason not to test
    copies = mf.compare({"a": noise + labels, "b": noise + labels, "c": noise[::-1] + 2 * labels}, labels).joint
    assert copies is not None
    assert copies.log_p < 0


def test_a_class_within_one_cluster_leaves_the_difference_undefined() -> None:
    scores, labels = data()
    result = mf.compare(scores, labels, clusters=labels, margin=0.1)
    assert math.isnan(result.pairs[0].log_p)
    assert "all positives in one cluster" in result.pairs[0].notes[0]
    assert result.others[0][0].notes[0] == "all items of a class lie in one cluster"
    assert math.isnan(result.equivalences[0].log_p)


def test_clusters_that_all_differ_alike_show_no_spread() -> None:
    labels = np.ones(40, dtype=int)
    worse = np.where(np.arange(40) % 4 == 0, 0, 1)
    result = mf.compare({"a": labels, "b": worse}, labels, kind="labels", clusters=np.arange(40) // 4)
    assert math.isnan(result.others[0][0].log_p)
    for pair in (result.pairs[0], result.others[0][0]):
        assert pair.difference is not None
        assert math.isnan(pair.difference.low)
    # that all ten favour one model happens by chance as often as heads ten times, half of which is the mid-p value
    assert result.pairs[0].p_value == pytest.approx(2.0**-10)


def test_few_clusters_cannot_be_surer_than_their_signs() -> None:
    labels = np.ones(40, dtype=int)
    for n_clusters in (2, 4, 5):
        of = np.arange(40) % n_clusters
        worse = np.where(np.arange(40) // n_clusters <= of, 0, 1)  # in each cluster, here more and there less
        result = mf.compare({"a": labels, "b": worse}, labels, kind="labels", clusters=of)
        [[pair]] = result.others
        assert pair.p_value == pytest.approx(2.0 ** (1 - n_clusters))
        assert pair.notes[0] == f"no smaller p-value can come out of {n_clusters} clusters"
        assert result.pairs[0].p_value == pytest.approx(2.0**-n_clusters)
        exact = mcnemar(labels == 1, worse == 1, method="exact", clusters=of)
        assert exact.p_value == pytest.approx(pair.p_value)


# ---------------------------------------------------------------- equivalence


def test_a_margin_adds_tests_of_equivalence() -> None:
    scores, labels = data()
    predicted = decided(scores)
    result = mf.compare(predicted, labels, margin=0.2)
    expected = equivalence(predicted["a"] == labels, predicted["b"] == labels, 0.2, names=("a", "b"))
    assert result.equivalences == (expected,)
    [found] = mf.compare(scores, labels, margin=(-0.3, 0.3)).equivalences
    plain = compare_auc(scores["a"], scores["b"], labels, level=0.9)
    assert found.difference is not None
    assert plain.difference is not None
    assert math.isclose(found.difference.low, plain.difference.low, rel_tol=1e-9)
    inside = found.difference.low > -0.3 and found.difference.high < 0.3
    assert inside == (found.p_value < 0.05)
    for margin in (0.001, 0.05, 0.1, 0.4):
        for options in ({"folds": np.arange(240) // 48}, {"clusters": np.arange(240) // 8}):
            [found] = mf.compare(scores, labels, margin=margin, **options).equivalences
            assert found.difference is not None
            inside = -margin < found.difference.low and found.difference.high < margin
            assert inside == (found.p_value < 0.05)


def test_equivalence_takes_the_standard_error_and_not_bounds_that_were_cut() -> None:
    labels = np.repeat([0, 1], 4)
    scores = {"a": [1, 2, 3, 5, 4, 6, 7, 8], "b": [6, 7, 3, 4, 5, 1, 2, 3.5]}
    result = mf.compare(scores, labels, margin=0.9)
    assert result.pairs[0].difference is not None
    assert result.pairs[0].difference.high == 1
    expected = equivalence_auc(scores["a"], scores["b"], labels, 0.9)
    assert math.isclose(result.equivalences[0].log_p, expected.log_p, rel_tol=1e-9)
    assert result.equivalences[0].difference is not None
    assert result.equivalences[0].difference.high <= 1


@pytest.mark.parametrize("design", ["plain", "folds", "clusters", "seeds"])
def test_a_margin_may_be_open_on_one_side(design: str) -> None:
    scores, labels = data(n_seeds=3 if design == "seeds" else None)
    options: dict[str, Any] = {"folds": {"folds": np.arange(240) // 48}, "clusters": {"clusters": np.arange(240) // 8}}
    for margin, shown, title in (
        ((-0.05, math.inf), [-0.05, None], "non-inferiority, margin -0.05"),
        ((-math.inf, 0.05), [None, 0.05], "non-superiority, margin 0.05"),
    ):
        result = mf.compare(scores, labels, margin=margin, n_boot=200, **options.get(design, {}))
        assert result.equivalences[0].method == title
        assert json.loads(result.card("json"))["margin"] == shown
        json.dumps(result.to_dict(), allow_nan=False)
        assert "inf" not in re.sub("inferior", "", result.card())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 2}, "margin is a difference of figures between 0 and 1"),
        ({"margin": (-math.inf, math.inf)}, "margin must be finite on one side at least"),
        ({"margin": 0.1, "level": 0.4}, "level must be above 0.5"),
    ],
)
def test_margins_are_looked_at_before_anything_is_computed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mf.compare({"a": [0.1, math.nan], "b": [0.1, 0.3]}, [0, 1], **options)


# ---------------------------------------------------------------- doubts


def test_a_sound_design_raises_no_doubt_but_that_of_one_seed() -> None:
    scores, labels = data(n=2000, n_models=2)
    assert codes(mf.compare(scores, labels)) == ["one-seed"]
    scores, labels = data(n=2000, n_models=2, n_seeds=6)
    assert codes(mf.compare(scores, labels)) == []


def few_items() -> Any:
    return mf.compare({"a": [0.1, 0.2, 0.9, 0.8], "b": [0.3, 0.1, 0.2, 0.9]}, [0, 0, 1, 1])


def rare_class() -> Any:
    scores, labels = data(n=200)
    return mf.compare(scores, np.where(np.arange(200) < 5, 1, 0) + 0 * labels)


def rare_label() -> Any:
    labels = np.where(np.arange(200) < 5, 2, np.arange(200) % 2)
    return mf.compare({"a": labels, "b": labels[::-1]}, labels)


def two_values() -> Any:
    scores, labels = data()
    return mf.compare(decided(scores), labels, kind="scores")


def majority() -> Any:
    labels = np.where(np.arange(200) < 180, 0, 1)
    return mf.compare({"a": 0 * labels, "b": labels}, labels)


def few_discordant() -> Any:
    labels = np.arange(200) % 2
    ours = labels.copy()
    ours[:4] = 1 - ours[:4]
    return mf.compare({"a": ours, "b": labels}, labels)


def overlap() -> Any:
    labels = np.arange(400) % 2
    ours, theirs = labels.copy(), labels.copy()
    ours[:60], theirs[:75] = 1 - ours[:60], 1 - theirs[:75]
    return mf.compare({"a": ours, "b": theirs}, labels)


def nothing() -> Any:
    labels = np.arange(400) % 2
    ours, theirs = labels.copy(), labels.copy()
    ours[:60], theirs[5:66] = 1 - ours[:60], 1 - theirs[5:66]
    return mf.compare({"a": ours, "b": theirs}, labels)


def selected() -> Any:
    scores, labels = data()
    return mf.compare(scores, labels, selected_on_test=True)


def many() -> Any:
    scores, labels = data(n_models=4)
    return mf.compare(scores, labels)


def few_seeds() -> Any:
    scores, labels = data(n_seeds=2)
    return mf.compare(scores, labels)


def few_clusters() -> Any:
    scores, labels = data()
    return mf.compare(scores, labels, clusters=np.arange(240) // 40)


def clusters_of_one() -> Any:
    scores, labels = data()
    return mf.compare(scores, labels, clusters=np.arange(240))


def leave_one_out() -> Any:
    scores, labels = data(n=60)
    return mf.compare(decided(scores), labels, folds=np.arange(60))


@pytest.mark.parametrize(
    ("make", "code", "says"),
    [
        (few_items, "few-items", "4 items"),
        (rare_class, "rare-class", "5 positive items"),
        (rare_label, "rare-class", "5 items of class 2"),
        (two_values, "two-valued-scores", "a and b have two values"),
        (majority, "majority", "0.9 of the items; not shown to beat that: a"),
        (few_discordant, "few-discordant", "only 4 of 200"),
        (overlap, "overlap", "a and b overlap"),
        (nothing, "no-difference-shown", "anything from -0.01"),
        (selected, "selected-on-test", "too good"),
        (many, "many-comparisons", "6 pairs"),
        (few_seeds, "few-seeds", "2 seeds"),
        (few_clusters, "few-clusters", "6 clusters"),
        (clusters_of_one, "clusters-of-one", "change nothing"),
        (leave_one_out, "leave-one-out", "one item"),
    ],
)
def test_doubts_are_raised(make: Any, code: str, says: str) -> None:
    result = make()
    found = [doubt.text for doubt in result.warnings if doubt.code == code]
    assert len(found) == 1, codes(result)
    assert says in found[0]
    for form in ("text", "markdown", "latex", "json"):
        assert re.sub(r"\W", "", says) in re.sub(r"\W", "", result.card(form))


def test_what_a_test_warns_of_becomes_a_doubt() -> None:
    result = mf.compare({"a": [0.1, 0.4, 0.3, 0.8], "b": [0.2, 0.4, 0.1, 0.9]}, [0, 0, 0, 1])
    assert math.isnan(result.pairs[0].log_p)
    assert "said-by-a-test" in codes(result)


# ---------------------------------------------------------------- what comes out


def everything() -> Any:
    scores, labels = data(n_models=3, n_seeds=3, n=300)
    clusters = np.arange(300) // 6
    return mf.compare(scores, labels, folds=clusters % 5, clusters=clusters, margin=0.1, selected_on_test=True)


def test_the_card_has_every_field_in_every_form() -> None:
    result = everything()
    fields = json.loads(result.card("json"))
    assert {
        "metric", "models", "comparisons", "n_items", "n_pos", "n_neg", "n_folds", "n_seeds", "shared_folds", "paired",
        "n_undefined_runs", "bootstrap_seed", "milfast", "variances", "level", "warnings",
    } <= set(fields)  # fmt: skip
    assert set(fields["models"][0]) == {"name", "point", "low", "high", "level", "method"}
    for comparison in fields["comparisons"]:
        assert {"test", "p_value", "p_adjusted", "effect", "p_first_better", "equivalence"} <= set(comparison)
    for form in ("text", "markdown", "latex"):
        text = result.card(form)
        for words in ("AUC", "95", "300", "150 positive, 150 negative", "folds", "shared folds", "paired", "Holm",
                      "corrected resampled t", "variance of a", "standard error of the mean", "runs without a value",
                      "better", mf.__version__):  # fmt: skip
            assert words in text, (form, words)
    with pytest.raises(ValueError, match="format must be one of"):
        result.card("html")


def test_no_figure_has_more_digits_than_its_interval_supports() -> None:
    for result in (everything(), mf.compare(*data())):
        for _, value in re.findall(r"^(.+?)  +(\S.*)$", result.card(), flags=re.MULTILINE):
            for estimate, low, high in re.findall(r"(-?\d\.\d+) \[(-?\d\.\d+), (-?\d\.\d+)\]", value):
                half = (float(high) - float(low)) / 2
                decimals = len(estimate.split(".")[1])
                assert decimals == len(low.split(".")[1]) == len(high.split(".")[1])
                # the last digit is no less than a hundredth of the half-width, but for two decimals of a rate
                assert half < 0.005 or 10**-decimals >= half / 36 or decimals == 2


def test_names_cannot_break_the_tables_of_a_card() -> None:
    scores, labels = data(n_models=4)
    names = ["two\n\nlines", "*bold* `code`", "[1] _it_ a_b", "back\\slash|bar"]
    result = mf.compare(dict(zip(names, scores.values(), strict=True)), labels)
    marked = result.card("markdown")
    for block in marked.split("\n\n")[:2]:
        for line in block.splitlines():
            assert re.sub(r"\\.", "", line).count("|") == 3
    assert r"| \*bold\* \`code\` |" in marked
    assert r"| [1] \_it\_ a_b |" in marked
    assert r"| back\\slash\|bar |" in marked
    assert "| two lines |" in marked
    latex = result.card("latex").splitlines()
    assert "" not in latex
    assert not any(line.startswith(("[", "*")) for line in latex)
    assert any(line.startswith(r"back\textbackslash{}slash\textbar{}bar & ") for line in latex)


def test_table_and_dict_are_plain_and_complete() -> None:
    result = everything()
    rows = result.table()
    assert [row["kind"] for row in rows] == ["model"] * 3 + ["pair"] * 3 + ["all"]
    assert len({tuple(row) for row in rows}) == 1
    json.dumps(rows, allow_nan=False)
    json.dumps(result.to_dict(), allow_nan=False)
    for row, improvement, pair in zip(rows[3:6], result.improvements, result.pairs, strict=True):
        swapped = improvement.names != pair.names
        chance = improvement.probability.estimate
        assert row["p_better"] == pytest.approx(1 - chance if swapped else chance)
        assert row["p_better_low"] <= row["p_better"] <= row["p_better_high"]
    assert "<table>" in result._repr_html_()
    assert result.summary().startswith("AUC of 3 models on 300 items in 50 clusters, 5 folds, 3 seeds")


def test_names_are_escaped() -> None:
    scores, labels = data()
    result = mf.compare({"a_b & <c>": scores["a"], "d|e": scores["b"]}, labels)
    assert r"a\_b \& $<$c$>$" in result.card("latex")
    assert r"d\|e" in result.card("markdown")
    assert "&lt;c&gt;" in result._repr_html_()


# ---------------------------------------------------------------- wrong use


@pytest.mark.parametrize(
    ("predictions", "labels", "options", "message"),
    [
        ({}, [0, 1], {}, "predictions is empty"),
        ([1, 2], [0, 1], {}, "predictions must map"),
        ({"a": [0.1, 0.2, 0.3]}, [0, 1], {}, r"predictions\['a'\] must have shape \(2,\)"),
        ({"a": [[0.1, 0.9], [0.2, 0.8], [0.4, 0.6]]}, [0, 1, 1], {}, "argmax"),
        ({"a": [0.1, math.nan]}, [0, 1], {}, r"predictions\['a'\]\[1\] is NaN"),
        ({"a": [[0.1, 0.2], [0.3, math.nan]]}, [0, 1], {}, r"predictions\['a'\]\[1, 1\] is NaN"),
        ({"a": [0.1, 0.2]}, [0, math.nan], {}, r"labels\[1\] is NaN"),
        ({"a": [0.1, 0.2], "b": [[0.1, 0.2]] * 2}, [0, 1], {}, "same number of training runs"),
        ({"a": ["x", "y"]}, [0, 1], {"kind": "labels"}, "share no value"),
        ({"a": [0.5, 1.5, 2.5]}, [0, 1, 2], {}, "which is no label"),
        ({"a": [0.1, 0.2]}, [0, 1], {"kind": "ranks"}, "kind must be"),
        ({"a": [0.1, 0.2]}, [0, 1], {"level": 2}, "level"),
        ({"a": [0.1, 0.2]}, [0, 1], {"folds": [0, 0]}, "folds are all the same"),
        ({"a": [0.1, 0.2]}, [0, 1], {"folds": [0, 1, 2]}, "folds must hold"),
        ({"a": [0.1, 0.2]}, [0, 1], {"folds": [[0, 1]] * 2}, "folds must have shape"),
        ({"a": [0.1, 0.2]}, [0, 1], {"seeds": [1, 2]}, "seeds must name the 1"),
        ({"a": [[0.1, 0.2]] * 2}, [0, 1], {"seeds": [1, 1]}, "seeds must differ"),
        ({"a": [0.1, 0.2]}, [0, 1], {"clusters": [0, 0]}, "clusters are all the same"),
        ({"a": [0.1, 0.2]}, [0, 1], {"clusters": [0, 1, 2]}, "clusters must hold"),
        ({"a": [0.1, 0.2], "b": [0.1, 0.3]}, [0, 1], {"margin": -0.1}, "margin"),
        ({"a": [0.1, 0.2]}, [0, 1], {"clusters": [0, 1], "n_boot": 0}, "n_boot"),
        ({"a": ["x", "y"]}, [0, 1], {"kind": "scores"}, "must be numbers"),
        ({1: [0.1, 0.2], "1": [0.1, 0.2]}, [0, 1], {}, "different names"),
        ({"a": []}, [], {}, "labels must hold"),
        ({"a": [0.1, 0.2, 0.3]}, [0, 1, 2], {"kind": "scores"}, "labels"),
    ],
)
def test_wrong_use_is_refused_by_name(predictions: Any, labels: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        mf.compare(predictions, labels, **options)


@given(st.integers(0, 2**32 - 1))
def test_no_design_however_poor_breaks_anything(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_models, n_seeds = int(rng.integers(1, 25)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    kind = "scores" if rng.random() < 0.5 else "labels"
    n_classes = 2 if kind == "scores" else int(rng.integers(1, 4))
    labels = rng.integers(0, n_classes, n) if rng.random() < 0.85 else np.full(n, rng.integers(0, 2))
    predictions = {}
    for name in "abcd"[:n_models]:
        sort = rng.integers(0, 5)
        if kind == "labels":
            guessed = np.where(rng.random((n_seeds, n)) < 0.7, labels, rng.integers(0, max(n_classes, 2), (n_seeds, n)))
            made = guessed if sort else np.tile(labels, (n_seeds, 1))
        elif sort == 0:
            made = np.tile(labels.astype(float), (n_seeds, 1))
        elif sort == 1:
            made = np.zeros((n_seeds, n))
        elif sort == 2:
            made = rng.choice([-np.inf, 0, 1, np.inf], size=(n_seeds, n))
        else:
            made = rng.normal(size=(n_seeds, n))
        predictions[name] = made
    options: dict[str, Any] = {"kind": kind, "n_boot": 200}
    if rng.random() < 0.5:
        options["folds"] = rng.integers(0, 3, n) if rng.random() < 0.7 else rng.integers(0, 2, (n_seeds, n))
    if rng.random() < 0.5:
        options["clusters"] = rng.integers(0, int(rng.integers(2, 9)), n)
    if rng.random() < 0.3:
        options["margin"] = 0.1
    try:
        result = mf.compare(predictions, labels, **options)
    except ValueError as error:
        assert re.search("are all the same|share no value|as many for each seed", str(error))  # noqa: PT017
        return
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.summary()
    for form in ("text", "markdown", "latex", "json"):
        assert not re.search(r"\bnan\b", result.card(form), flags=re.IGNORECASE)
    for pair in result.pairs:
        assert pair.difference is not None
        assert math.isnan(pair.log_p) or pair.log_p <= 1e-12
        if not math.isnan(pair.difference.low):
            assert pair.difference.low <= pair.difference.estimate + 1e-9
            assert pair.difference.estimate <= pair.difference.high + 1e-9
    for interval in result.estimates:
        if not math.isnan(interval.low):
            assert -1e-12 <= interval.low <= interval.estimate + 1e-9
            assert interval.estimate - 1e-9 <= interval.high <= 1 + 1e-12


# ---------------------------------------------------------------- the 360 trainings of Steinbach et al. (2022)


def test_mcnemar_on_the_images_of_seed_42(mil_data: Path) -> None:
    stored = np.load(mil_data / "uncertainty" / "sota_predictions.npz")
    [case] = golden_cases("seed_data")
    predictions = dict(zip(stored["archs"].tolist(), stored["pred_last"][:, 0], strict=True))
    result = mf.compare({name: predictions[name] for name in ("resnext50", "resnet50")}, stored["gtlabel"])
    [pair] = result.pairs
    expected = case["expected"]
    assert (pair.details["first_only"], pair.details["second_only"]) == (expected["b"], expected["c"])
    assert pair.estimates == pytest.approx((expected["acc_a"], expected["acc_b"]), rel=1e-12)
    exact = mcnemar(
        predictions["resnext50"] == stored["gtlabel"], predictions["resnet50"] == stored["gtlabel"], method="exact"
    )
    assert exact.p_value == pytest.approx(expected["exact_p"], rel=1e-9)


def test_the_page_explains_every_code() -> None:
    text = (ROOT / "docs" / "uncertainty.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| `([a-z-]+)` \| .+ \|$", text.split("## One call")[1], flags=re.MULTILINE)
    source = (ROOT / "python" / "milfast" / "uncertainty" / "doubts.py").read_text(encoding="utf-8")
    assert sorted(explained) == sorted(set(re.findall(r'Doubt\(\s*"([a-z-]+)"', source)))
