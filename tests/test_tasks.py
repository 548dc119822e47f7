"""Checks beyond those of the paper: bag-size, label-swap and correlated."""

from __future__ import annotations

import itertools
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_models import Oracle, Scorer, Size
from scipy import stats
from sklearn.linear_model import LogisticRegression

import milfast as mf
from milfast import Bags
from milfast._core import delong
from milfast.checks.correlated import AdjacentBags
from milfast.checks.correlated import build as adjacent

if TYPE_CHECKING:
    from collections.abc import Callable

MORE: dict[str, Any] = {"n_train": 200, "n_test": 1000, "random_state": 0}


def largest(bags: Bags, values: Any) -> Any:
    return np.maximum.reduceat(np.asarray(values, dtype=np.float64), bags.offsets[:-1])


def summed(bags: Bags, values: Any) -> Any:
    return np.add.reduceat(np.asarray(values, dtype=np.float64), bags.offsets[:-1])


# ---------------------------------------------------------------- bag-size


def test_the_size_is_the_bait_of_bag_size_and_nothing_else() -> None:
    [size] = mf.check_model(Size(), checks="bag-size", **MORE)
    assert size.test_auc is not None
    assert (size.verdict, size.test_auc.estimate, size.fresh_auc.estimate) == ("fail", 0.0, 1.0)
    assert "learned instead: how large a bag is" in size.reason
    assert {"degraded", "size-cue"} <= set(size.flags)
    assert (size.size_auc, size.oracle_auc) == (0.0, 1.0)
    [oracle] = mf.check_model(Oracle(mf.checks.get("bag-size").recipe()), checks="bag-size", **MORE)
    assert (oracle.verdict, oracle.flags) == ("pass", ("one-fit",))
    assert oracle.test_auc is not None
    assert oracle.test_auc.estimate == 1.0


def test_a_sum_over_instances_learns_the_size_and_their_largest_does_not() -> None:
    class Sum(Scorer):
        def decision_function(self, bags: Bags) -> Any:
            return summed(bags, np.linalg.norm(bags.instances, axis=1))

    class Largest(Scorer):
        def decision_function(self, bags: Bags) -> Any:
            return largest(bags, bags.instances.sum(axis=1))

    verdicts = [mf.check_model(model, checks="bag-size", **MORE)[0].verdict for model in (Sum, Largest)]
    assert verdicts == ["fail", "pass"]


@pytest.mark.parametrize("training", [True, False])
def test_bags_of_bag_size_hold_what_is_described(training: bool) -> None:
    bags = mf.sample_bags("bag-size", 4000, training=training, random_state=1, n_features=2)
    assert bags.kinds is not None
    assert bags.labels is not None
    concept = summed(bags, bags.kinds == 1)
    background = bags.sizes - concept
    large, small = (background[bags.labels == (training == is_large)] for is_large in (True, False))
    assert set(large) == set(range(10, 15))
    assert set(small) == set(range(2, 7))
    assert set(concept[bags.labels == 1]) == {1, 2}
    assert set(concept[bags.labels == 0]) == {0}


# ---------------------------------------------------------------- label-swap

SWAP = mf.checks.get("label-swap").recipe(n_features=3)
SWAP_BAGS = SWAP.sample(3000, random_state=5)


@given(seed=st.integers(0, 2**32), pool=st.sampled_from([largest, summed]), width=st.integers(1, 10))
@settings(max_examples=40)
def test_no_score_that_cannot_fall_with_an_instance_ranks_bags_with_the_concept_below_others(
    seed: int, pool: Callable[[Bags, Any], Any], width: int
) -> None:
    generator = np.random.default_rng(seed)
    first, second = generator.normal(size=(3, width)), generator.normal(size=width)
    value = np.tanh(SWAP_BAGS.instances @ first) @ second
    # a sum cannot fall where every instance adds
    scores = pool(SWAP_BAGS, value - value.min() if pool is summed else value)
    auc, variance, *_ = delong(scores, SWAP_BAGS.labels)
    assert auc > 0.5 - 4.5 * math.sqrt(variance)


class OneSided(Scorer):
    """Tries directions, and keeps the one whose largest projection ranks the training bags best."""

    def fit(self, bags: Bags) -> Any:
        candidates = [*np.eye(bags.n_features), *-np.eye(bags.n_features), np.ones(bags.n_features)]
        self.axis = max(candidates, key=lambda axis: mf.auc(largest(bags, bags.instances @ axis), bags.labels))
        return self

    def decision_function(self, bags: Bags) -> Any:
        return largest(bags, bags.instances @ self.axis)


class TwoSided(Scorer):
    """A classifier of what bags look like on the whole, to which both labels are the same."""

    def fit(self, bags: Bags) -> Any:
        self.model = LogisticRegression().fit(self.features(bags), bags.labels)
        return self

    def features(self, bags: Bags) -> Any:
        return np.stack([bag.max(axis=0) for bag in bags])

    def decision_function(self, bags: Bags) -> Any:
        return self.model.decision_function(self.features(bags))


def test_a_model_that_can_be_taught_absence_fails_and_one_that_cannot_passes() -> None:
    [two] = mf.check_model(TwoSided(), checks="label-swap", **MORE)
    assert two.test_auc is not None
    assert two.verdict == "fail"
    assert two.test_auc.estimate < 0.05
    assert "learned instead: that a bag lacks the concept" in two.reason
    [one] = mf.check_model(OneSided(), checks="label-swap", **MORE)
    assert one.verdict == "pass"
    assert "could not be taught that absence is positive" in one.reason
    # no ceiling is known for the swapped task, and what falls from fresh to shifted bags is no loss
    for result in (one, two):
        assert result.oracle_auc is None
        assert not {"degraded", "below-oracle"} & set(result.flags)


def test_two_models_are_fitted_to_the_same_bags_and_the_second_to_swapped_labels() -> None:
    seen: list[Bags] = []

    class Spy(OneSided):
        def fit(self, bags: Bags) -> Any:
            seen.append(bags)
            return super().fit(bags)

    mf.check_model(Spy(), checks="label-swap", **MORE)
    first, second = seen
    np.testing.assert_array_equal(first.instances, second.instances)
    np.testing.assert_array_equal(first.labels, 1 - np.asarray(second.labels))


# ---------------------------------------------------------------- correlated


def raised(bags: Bags) -> list[np.ndarray]:
    """Places of the raised instances of each bag."""
    assert bags.kinds is not None
    return [np.flatnonzero(bags.kinds[a:b]) for a, b in itertools.pairwise(bags.offsets)]


@given(seed=st.integers(0, 2**32), window=st.integers(2, 5), spare=st.integers(0, 12), training=st.booleans())
def test_raised_instances_are_neighbours_in_positive_bags_and_nowhere_else(
    seed: int, window: int, spare: int, training: bool
) -> None:
    made = adjacent(window=window, size=(2 * window, 2 * window + spare), n_features=2)
    bags = made.sample(60, training=training, random_state=seed)
    assert bags.labels is not None
    assert bags.labels.sum() == 30
    assert 2 * window <= bags.sizes.min() <= bags.sizes.max() <= 2 * window + spare
    for label, places in zip(bags.labels, raised(bags), strict=True):
        gaps = np.diff(places)
        if label == 1:
            assert len(places) == window
            assert (gaps == 1).all()
        elif training:
            assert len(places) == 0
        else:
            assert len(places) == window
            assert (gaps >= 2).all()


def test_every_window_and_every_scattered_subset_is_as_likely() -> None:
    bags = adjacent(window=2, size=(6, 6), n_features=1).sample(20_000, training=False, random_state=1)
    found: dict[int, dict[tuple[int, ...], int]] = {0: {}, 1: {}}
    for label, places in zip(bags.labels, raised(bags), strict=True):  # type: ignore[arg-type]
        counts = found[int(label)]
        counts[tuple(places)] = counts.get(tuple(places), 0) + 1
    assert set(found[1]) == {(i, i + 1) for i in range(5)}
    assert set(found[0]) == {pair for pair in itertools.combinations(range(6), 2) if pair[1] - pair[0] > 1}
    for counts in found.values():
        assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_shifted_bags_of_both_classes_have_the_same_law_as_sets() -> None:
    made = adjacent(n_features=2)
    bags = made.sample(20_000, training=False, random_state=2)
    x = bags.instances[:, 0].astype(np.float64)
    blind = {
        "largest": largest(bags, x),
        "smallest": largest(bags, -x),
        "mean": summed(bags, x) / bags.sizes,
        "squares": summed(bags, x**2),
        "third": np.array([np.sort(bag[:, 0])[-3] for bag in bags]),
        "size": bags.sizes.astype(float),
        "the best set rule": made.set_oracle(bags),
        "other feature": summed(bags, bags.instances[:, 1]),
    }
    for name, values in blind.items():
        assert stats.ks_2samp(values[bags.labels == 1], values[bags.labels == 0]).pvalue > 1e-3, name
        auc, variance, *_ = delong(values, bags.labels)
        assert abs(auc - 0.5) < 4 * math.sqrt(variance), name
    # while the order tells them apart
    assert made.oracle_auc(bags) > 0.75


def brute_force(made: AdjacentBags, bags: Bags) -> tuple[list[float], list[float]]:
    """Mean likelihood ratio over all windows, and over all subsets, each written out."""
    windows, subsets = [], []
    for bag in bags:
        x = bag.astype(np.float64) @ made.axis
        ratio = stats.norm.pdf(x, made.shift) / stats.norm.pdf(x)
        n, k = len(x), made.window
        windows.append(math.log(np.mean([np.prod(ratio[i : i + k]) for i in range(n - k + 1)])))
        subsets.append(math.log(np.mean([np.prod(ratio[list(c)]) for c in itertools.combinations(range(n), k)])))
    return windows, subsets


@given(
    seed=st.integers(0, 2**32),
    window=st.integers(2, 4),
    spare=st.integers(0, 3),
    shift=st.floats(0.1, 4),
    training=st.booleans(),
    turned=st.booleans(),
)
@settings(max_examples=30)
def test_both_bounds_are_the_means_of_likelihood_ratios(
    seed: int, window: int, spare: int, shift: float, training: bool, turned: bool
) -> None:
    made = adjacent(window=window, shift=shift, size=(2 * window, 2 * window + spare), n_features=3)
    made = made.along(seed) if turned else made
    bags = made.sample(12, training=training, random_state=seed, dtype="float64")
    windows, subsets = brute_force(made, bags)
    np.testing.assert_allclose(made.oracle(bags), windows, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(made.set_oracle(bags), subsets, rtol=1e-9, atol=1e-9)


def test_bounds_stay_finite_for_large_bags() -> None:
    bags = adjacent(window=10, shift=5.0, size=(400, 500), n_features=1).sample(20, random_state=0)
    made = adjacent(window=10, shift=5.0, size=(400, 500), n_features=1)
    assert np.isfinite(made.oracle(bags)).all()
    assert np.isfinite(made.set_oracle(bags)).all()


class MovingAverage(Scorer):
    """The largest mean of neighbours along the first feature; what a convolution can do."""

    def decision_function(self, bags: Bags) -> Any:
        return [np.convolve(bag[:, 0], np.ones(3), mode="valid").max() for bag in bags]


class BestSet(Scorer):
    def decision_function(self, bags: Bags) -> Any:
        return adjacent().set_oracle(bags)


def test_a_model_of_neighbours_passes_and_the_best_one_of_sets_fails() -> None:
    more: dict[str, Any] = {"checks": "correlated", "n_train": 50, "n_test": 4000, "n_runs": 5, "random_state": 0}
    [window] = mf.check_model(MovingAverage(), **more)
    [sets] = mf.check_model(BestSet(), **more)
    [bayes] = mf.check_model(Oracle(adjacent()), **more)  # type: ignore[arg-type]
    assert (window.verdict, sets.verdict, bayes.verdict) == ("pass", "fail", "pass")
    assert sets.test_auc is not None
    assert sets.test_auc.low < 0.5 < sets.test_auc.high + 0.01
    assert "which instances a bag holds, not which of them are neighbours" in sets.reason
    # neither claims neighbours, so that nothing is held against a model of sets
    assert sets.outside_claim
    assert window.oracle_auc is not None
    assert bayes.test_auc is not None
    assert bayes.test_auc.estimate == pytest.approx(window.oracle_auc)
    # ceilings of the fresh bags: knowing the order, and not
    ceilings = [list(run.ceilings.values()) for run in window.runs]
    assert all(best > best_set for best, best_set in ceilings)
    assert bayes.fresh_auc.estimate == pytest.approx(np.mean([c[0] for c in ceilings]))
    assert sets.fresh_auc.estimate == pytest.approx(np.mean([c[1] for c in ceilings]))
    assert window.fresh_auc.estimate <= bayes.fresh_auc.estimate
    assert f"fresh bags can be ranked with an AUC of {bayes.fresh_auc.estimate:.3f} by Bayes' rule" in sets.reason


def test_a_model_that_claims_neighbours_is_held_to_them() -> None:
    class Claims(BestSet):
        claims = "correlated"

    [result] = mf.check_model(Claims(), checks="correlated", **MORE)
    assert (result.verdict, result.outside_claim) == ("fail", False)


def test_the_same_seed_gives_the_same_bags_and_single_precision_is_double_rounded() -> None:
    one, again, other = (mf.sample_bags("correlated", 200, random_state=seed, dtype="float64") for seed in (1, 1, 2))
    for name in ("instances", "offsets", "labels", "kinds"):
        np.testing.assert_array_equal(getattr(one, name), getattr(again, name))
    assert not np.isin(one.instances, other.instances).any()
    single = mf.sample_bags("correlated", 200, random_state=1)
    assert single.instances.dtype == np.float32
    np.testing.assert_array_equal(single.instances, one.instances.astype(np.float32))


def test_padding_lengthens_bags_with_noise_at_their_end() -> None:
    for training in (True, False):
        made = adjacent(n_features=2)
        free = made.sample(300, training=training, random_state=4)
        padded = made.sample(300, training=training, random_state=4, pad_to=40)
        np.testing.assert_array_equal(padded.sizes, np.maximum(free.sizes, 40))
        for before, after in zip(raised(free), raised(padded), strict=True):
            np.testing.assert_array_equal(before, after)


def test_bags_are_raised_along_the_direction_asked_for() -> None:
    vector = np.array([3.0, 0.0, -4.0])
    made = adjacent(n_features=3).along(vector)
    np.testing.assert_allclose(made.axis, vector / 5)
    bags = mf.sample_bags("correlated", 4000, n_features=3, direction=vector, random_state=0)
    up = bags.instances[bags.kinds == 1]
    np.testing.assert_allclose(up.mean(axis=0), 2 * vector / 5, atol=5 / math.sqrt(len(up)))
    down = bags.instances[bags.kinds == 0]
    np.testing.assert_allclose(down.mean(axis=0), 0, atol=5 / math.sqrt(len(down)))
    np.testing.assert_allclose(np.cov(up, rowvar=False), np.eye(3), atol=8 / math.sqrt(len(up)))
    again = AdjacentBags.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    # as hard along any direction: the same noise turned would give the same AUC, other noise gives nearly that
    plain = adjacent(n_features=3)
    assert made.oracle_auc(bags) == pytest.approx(plain.oracle_auc(plain.sample(4000, random_state=1)), abs=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: adjacent(window=1), "window must be an integer of at least 2, .*; got 1"),
        (lambda: adjacent(window=2.5), "window must be an integer of at least 2, .*; got 2.5"),
        (lambda: adjacent(size=(5, 9)), r"size must be a range .* of at least twice the window, 6; got \(5, 9\)"),
        (lambda: adjacent(size=(9, 8)), r"size must be a range .*; got \(9, 8\)"),
        (lambda: adjacent(size=(9,)), r"size must be a range .*; got \(9,\)"),
        (lambda: adjacent(size=(9.5, 12)), r"size must be a range .*; got \(9.5, 12\)"),
        (lambda: adjacent(shift=0.0), "shift must be a positive number; got 0.0"),
        (lambda: adjacent(shift=math.nan), "shift must be a positive number; got nan"),
        (lambda: adjacent(n_features=0), "n_features must be a positive integer; got 0"),
        (lambda: adjacent(n_features=1.5), "n_features must be a positive integer; got 1.5"),
        (lambda: adjacent().along([1.0]), "direction must be a vector of 16 numbers"),
        (lambda: adjacent().sample(0), "n_bags must be a positive integer up to .*; got 0"),
        (lambda: adjacent().sample(2.0), "n_bags must be a positive integer up to .*; got 2.0"),
        (lambda: adjacent().sample(2, positive_fraction=1.5), r"positive_fraction must lie in \[0, 1\]; got 1.5"),
        (lambda: adjacent().sample(2, pad_to=0), "pad_to must be a positive integer up to .*; got 0"),
        (lambda: adjacent().sample(2, dtype=int), "dtype must be float32 or float64; got int64"),
        (lambda: adjacent().oracle_auc(Bags(np.zeros((8, 16)), [0, 8])), "bags carry no labels"),
        (
            lambda: mf.sample_bags("correlated", 2, colour=1),
            "correlated has no option 'colour'; its options are window",
        ),
        (
            lambda: mf.sample_bags("correlated", 2, recipe="paper"),
            "recipe must be one of strict for correlated; got 'pa",
        ),
    ],
)
def test_what_is_wrong_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
