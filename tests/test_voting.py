"""Majority votes of runs: all ways to draw the voters are gone through by hand."""

from __future__ import annotations

import itertools
import json
import math
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from error_results import result
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from milfast.consistency import cross_validate_consistency, majority_vote, vote_gains
from milfast.consistency.voting import _right, _right_of_two


def by_hand(votes: list[int], k: int, ties: str) -> Fraction:
    """Share of all ways to draw k runs that elect class 0."""
    runs = [label for label, count in enumerate(votes) for _ in range(count)]
    elected, ways = Fraction(0), 0
    for drawn in itertools.combinations(runs, k):
        ways += 1
        counts = [drawn.count(label) for label in range(len(votes))]
        tied = counts.count(max(counts))
        if counts[0] == max(counts):
            elected += 1 if tied == 1 else {"coin": Fraction(1, tied), "wrong": Fraction(0), "right": Fraction(1)}[ties]
    return elected / ways


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=5), st.integers(1, 12), st.sampled_from(["coin", "wrong", "right"])
)
def test_one_sample_is_as_by_hand(votes: list[int], k: int, ties: str) -> None:
    assume(k <= sum(votes))
    assert _right(votes, k, ties) == float(by_hand(votes, k, ties))  # the same number, to the last bit


@given(st.integers(1, 40), st.data(), st.sampled_from(["coin", "wrong", "right"]))
def test_two_classes_have_a_way_of_their_own(m: int, data: st.DataObject, ties: str) -> None:
    k = data.draw(st.integers(1, m))
    assert _right_of_two(m, k, ties) == [_right([right, m - right], k, ties) for right in range(m + 1)]


def test_as_many_runs_as_the_paper_has_on_an_external_set_take_seconds() -> None:
    rng = np.random.default_rng(0)
    errors = rng.random((2500, 3000)) < rng.beta(0.3, 0.7, 3000)
    start = time.process_time()
    vote = majority_vote(result(errors))
    assert time.process_time() - start < 10  # a minute where each number of errors is gone through by itself
    assert vote.voters[-1] == 2500
    assert vote.accuracy[-1].estimate == np.where(errors.sum(axis=0) == 1250, 0.5, errors.sum(axis=0) < 1250).mean()


def test_many_runs_of_three_classes_take_seconds() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    given = np.where(rng.random((500, 300)) < rng.beta(0.5, 1, 300), rng.integers(3, size=(500, 300)), labels)
    start = time.process_time()
    vote = majority_vote(result(given != labels, classes=[0, 1, 2], predictions=given), ties="wrong")
    assert time.process_time() - start < 8  # ten times that where every coefficient of the polynomials is made
    votes = np.stack([(given == label).sum(axis=0) for label in range(3)])
    of_others = np.where(np.arange(3)[:, None] == labels, -1, votes).max(axis=0)
    assert vote.accuracy[-1].estimate == (votes[labels, np.arange(300)] > of_others).mean()


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 1000), st.sampled_from(["coin", "wrong", "right"]))
def test_two_classes_are_the_mean_over_all_draws(m: int, n: int, seed: int, ties: Any) -> None:
    errors = np.random.default_rng(seed).random((m, n)) < 0.4
    vote = majority_vote(result(errors), voters=range(1, m + 1), ties=ties)
    for k, accuracy, gain in zip(vote.voters, vote.accuracy, vote.gain, strict=True):
        wrong = [errors[list(drawn)].sum(axis=0) / k for drawn in itertools.combinations(range(m), k)]
        tied = {"coin": 0.5, "wrong": 0.0, "right": 1.0}[ties]
        right = np.array([np.where(w < 0.5, 1.0, np.where(w > 0.5, 0.0, tied)) for w in wrong]).mean(axis=0)
        assert accuracy.estimate == pytest.approx(right.mean(), abs=1e-12)
        each = right - (1 - errors.mean(axis=0))
        assert gain.estimate == pytest.approx(each.mean(), abs=1e-12)
        if n > 1:
            half = 1.959963984540054 * each.std(ddof=1) / math.sqrt(n)
            assert (gain.low, gain.high) == pytest.approx(
                (max(each.mean() - half, -1), min(each.mean() + half, 1)), abs=1e-9
            )
        else:
            assert math.isnan(gain.low)


@given(st.integers(2, 5), st.integers(1, 6), st.integers(3, 4), st.integers(0, 1000))
def test_several_classes_are_the_mean_over_all_draws(m: int, n: int, n_classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    predictions = np.where(rng.random((m, n)) < 0.4, labels, rng.integers(0, n_classes, (m, n)))
    made = result(predictions != labels, classes=range(n_classes), predictions=predictions)
    vote = majority_vote(made, voters=range(1, m + 1))
    for k, accuracy in zip(vote.voters, vote.accuracy, strict=True):
        total = Fraction(0)
        for drawn in itertools.combinations(range(m), k):
            for sample in range(n):
                counts = np.bincount(predictions[list(drawn), sample], minlength=n_classes)
                if counts[labels[sample]] == counts.max():
                    total += Fraction(1, int((counts == counts.max()).sum()))
        assert accuracy.estimate == pytest.approx(float(total / math.comb(m, k) / n), abs=1e-12)


# ---------------------------------------------------------------- laws


def test_one_voter_gains_nothing_and_equal_runs_gain_nothing() -> None:
    rng = np.random.default_rng(0)
    errors = rng.random((40, 300)) < rng.beta(0.3, 0.9, 300)
    vote = majority_vote(result(errors), voters=1)
    assert vote.gain[0].estimate == 0
    assert vote.accuracy[0].estimate == pytest.approx(1 - errors.mean(), rel=1e-12)
    same = majority_vote(result(np.repeat(errors[:1], 40, axis=0)))
    assert {gain.estimate for gain in same.gain} == {0.0}
    assert same.consistency == 1.0


def test_the_order_of_runs_and_samples_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    errors = rng.random((15, 100)) < rng.beta(0.3, 0.9, 100)
    shuffled = errors[np.ix_(rng.permutation(15), rng.permutation(100))]
    one, two = (majority_vote(result(e)) for e in (errors, shuffled))
    for a, b in zip(one.accuracy + one.gain, two.accuracy + two.gain, strict=True):
        assert (a.estimate, a.low, a.high) == pytest.approx((b.estimate, b.low, b.high), abs=1e-12)


def test_an_even_number_of_voters_with_a_coin_is_as_good_as_one_less() -> None:
    errors = np.random.default_rng(2).random((12, 50)) < 0.35
    vote = majority_vote(result(errors), voters=[3, 4, 7, 8])
    accuracy = dict(zip(vote.voters, (interval.estimate for interval in vote.accuracy), strict=True))
    assert accuracy[4] == pytest.approx(accuracy[3], abs=1e-12)
    assert accuracy[8] == pytest.approx(accuracy[7], abs=1e-12)


def test_independent_errors_gain_what_condorcet_says() -> None:
    rng = np.random.default_rng(3)
    errors = rng.random((301, 2000)) < 0.3
    vote = majority_vote(result(errors), voters=[1, 5, 301])
    five = sum(math.comb(5, i) * 0.3**i * 0.7 ** (5 - i) for i in range(3))
    assert vote.accuracy[1].estimate == pytest.approx(five, abs=0.002)
    assert vote.accuracy[2].estimate == 1.0
    assert "a gain" in vote.summary()


def test_errors_that_differ_lose_the_vote_of_several_classes_only_where_they_agree() -> None:
    labels = np.zeros(4, dtype=int)
    agree = np.array([[1] * 4, [1] * 4, [0] * 4])
    differ = np.array([[1] * 4, [2] * 4, [0] * 4])
    votes = [
        majority_vote(result(p != labels, classes=[0, 1, 2], predictions=p), voters=3).accuracy[0].estimate
        for p in (agree, differ)
    ]
    assert votes == pytest.approx([0, 1 / 3])


def test_real_runs_of_several_classes() -> None:
    X, y = load_iris(return_X_y=True)
    found = cross_validate_consistency(
        DecisionTreeClassifier(max_depth=2), X, y, repeats=9, random_state=0, keep_predictions=True
    )
    vote = majority_vote(found)
    assert vote.voters == (1, 3, 5, 7, 9)
    predictions = np.asarray(found.predictions)
    counts = np.array([(predictions == code).sum(axis=0) for code in range(3)])
    best = counts == counts.max(axis=0)
    expected = (best[y, np.arange(len(y))] / best.sum(axis=0)).mean()
    assert vote.accuracy[-1].estimate == pytest.approx(expected, abs=1e-12)
    bare = cross_validate_consistency(DecisionTreeClassifier(max_depth=2), X, y, repeats=9, random_state=0)
    with pytest.raises(ValueError, match=r"3 classes need the predictions.*keep_predictions=True"):
        majority_vote(bare)


# ---------------------------------------------------------------- several models, texts, arguments


def test_gains_of_several_models_are_sorted_by_consistency() -> None:
    X, y = make_classification(150, flip_y=0.2, random_state=0)
    results = {
        "tree": cross_validate_consistency(DecisionTreeClassifier(), X, y, repeats=15, random_state=0),
        "Bayes": cross_validate_consistency(GaussianNB(), X, y, repeats=15, random_state=0),
        "right": result(np.zeros((3, 20), dtype=bool)),
    }
    rows = vote_gains(results, voters=3)
    assert [row["name"] for row in rows] == ["tree", "Bayes", "right"]
    assert rows[0]["gain"] > rows[1]["gain"]
    assert (rows[2]["consistency"], rows[2]["healed"], rows[2]["gain"]) == (None, None, 0.0)
    vote = majority_vote(results["tree"], voters=3)
    assert rows[0]["gain"] == vote.gain[0].estimate
    assert rows[0]["healed"] == pytest.approx(vote.gain[0].estimate / (1 - vote.mean_accuracy))
    json.dumps(rows, allow_nan=False)
    assert vote_gains(results)[0]["voters"] == 15
    with pytest.raises(ValueError, match="results is empty"):
        vote_gains({})


def test_texts() -> None:
    errors = np.random.default_rng(0).random((5, 30)) < 0.3
    vote = majority_vote(result(errors))
    assert vote.voters == (1, 3, 5)
    assert repr(vote).startswith("MajorityVote(model: mean accuracy 0.")
    assert "a vote of 5 runs has accuracy" in vote.summary()
    assert vote._repr_html_() == f"<span>{vote.summary()}</span>"
    json.dumps(vote.to_dict(), allow_nan=False)
    worse = majority_vote(result(np.random.default_rng(0).random((9, 400)) < 0.8), voters=9)
    assert "a loss" in worse.summary()
    none = majority_vote(result(np.zeros((2, 5), dtype=bool)))
    assert none.to_dict()["consistency"] is None
    assert "no gain that the samples could show" in none.summary()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"voters": 0}, "voters must lie between 1 and the number of runs, 4; got 0"),
        ({"voters": [1, 5]}, "got 5"),
        ({"voters": 2.5}, "voters must be integers of at least 1; got 2.5"),
        ({"voters": True}, "voters must be integers"),
        ({"voters": []}, "voters is empty"),
        ({"ties": "lot"}, "ties must be one of coin, wrong, right; got 'lot'"),
        ({"level": 0}, "level must lie strictly between 0 and 1; got 0"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        majority_vote(result(np.eye(4)), **options)
