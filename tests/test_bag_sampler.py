"""Batches of bags with both classes in them, and instances drawn from each bag."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

pytest.importorskip("torch")

from milfast.training.bag_sampler import BalancedBagSampler
from milfast.training.instance_sampler import sample_instances


def labels_of(positive: int, negative: int, seed: int = 0) -> np.ndarray:
    labels = np.array([1] * positive + [0] * negative)
    return np.random.default_rng(seed).permutation(labels)


# ---------------------------------------------------------------- bags


@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 40), st.floats(0.05, 0.95), st.integers(0, 99))
def test_what_every_epoch_holds(positive: int, negative: int, batch_size: int, share: float, seed: int) -> None:
    labels = labels_of(positive, negative, seed)
    sampler = BalancedBagSampler(labels, batch_size, positive_share=share, random_state=seed)
    batches = sampler.batches(seed)
    assert len(batches) == len(sampler) >= 1
    counts = np.bincount(np.concatenate(batches), minlength=len(labels))
    wanted = min(max(round(batch_size * share), 1), batch_size - 1)
    needs = []
    for label, quota in ((0, batch_size - wanted), (1, wanted)):
        size = int((labels == label).sum())
        needs.append(-(-size // min(quota, size)))
        of_class = [int((labels[batch] == label).sum()) for batch in batches]
        assert min(of_class) >= 1
        assert max(of_class) <= quota
        if needs[-1] == len(batches):  # the longer class: exactly once
            assert (counts[labels == label] == 1).all()
        else:
            assert np.ptp(counts[labels == label]) <= 1
            assert counts[labels == label].min() >= 1
    assert max(needs) == len(batches)
    assert all(len(np.unique(batch)) == len(batch) for batch in batches)


@pytest.mark.parametrize(
    ("positive", "negative", "n_batches"), [(5, 5, 1), (20, 3, 3), (3, 20, 3), (36, 55, 7), (1, 1, 1)]
)
def test_class_sizes_that_other_samplers_stumble_over(positive: int, negative: int, n_batches: int) -> None:
    batches = BalancedBagSampler(labels_of(positive, negative), 16, random_state=0).batches(0)
    assert len(batches) == n_batches
    assert set(np.concatenate(batches)) == set(range(positive + negative))


def test_the_same_seed_gives_the_same_batches_and_no_global_generator_is_touched() -> None:
    np.random.seed(7)
    before = np.random.get_state()[1].tolist()
    labels = labels_of(30, 20)
    sampler = BalancedBagSampler(labels, 8, random_state=3)
    first, second = list(sampler), list(sampler)
    assert first == [batch.tolist() for batch in sampler.batches(0)]
    assert second == [batch.tolist() for batch in sampler.batches(1)]
    assert first != second
    assert list(BalancedBagSampler(labels, 8, random_state=3)) == first
    assert list(BalancedBagSampler(labels, 8, random_state=4)) != first
    assert list(BalancedBagSampler(2 * labels - 1, 8, random_state=3)) == first
    assert list(BalancedBagSampler(labels == 1, 8, random_state=3)) == first
    assert np.random.get_state()[1].tolist() == before


def test_some_of_the_bags_only() -> None:
    labels = labels_of(10, 10)
    some = np.flatnonzero(np.arange(20) % 3)
    batches = BalancedBagSampler(labels, 4, random_state=0, bags=some).batches(0)
    assert set(np.concatenate(batches)) == set(some)


@pytest.mark.parametrize(
    ("bags", "error", "message"),
    [
        ([0, 0, 1], ValueError, "bags names a bag more than once"),
        ([0, 4], ValueError, "bags must be numbers from 0 to 3"),
        ([-1, 0], ValueError, "bags must be numbers from 0 to 3"),
        ([[0, 1]], ValueError, "in one dimension"),
        ([True, True, False, False], TypeError, "bags must be numbers of bags, integers; got dtype bool"),
        ([], ValueError, "both classes"),
    ],
)
def test_bags_that_cannot_be_drawn_from(bags: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BalancedBagSampler([0, 1, 0, 1], 4, bags=bags)
    with pytest.raises(ValueError, match="labels must have shape"):
        BalancedBagSampler([[0, 1]], 4)


def test_a_loader_of_torch_takes_it() -> None:
    import torch

    labels = labels_of(9, 6)
    loader = torch.utils.data.DataLoader(torch.arange(15), batch_sampler=BalancedBagSampler(labels, 6, random_state=0))
    batches = [batch.numpy() for batch in loader]
    assert len(batches) == 3
    assert all(set(labels[batch]) == {0, 1} for batch in batches)


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1], [-1, -1], []])
def test_a_class_without_bags(labels: list[int]) -> None:
    with pytest.raises(ValueError, match="both classes"):
        BalancedBagSampler(labels, 4)


@pytest.mark.parametrize(("name", "value"), [("batch_size", 1), ("batch_size", 2.5), ("positive_share", 1.0)])
def test_parameters_out_of_range(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        BalancedBagSampler([0, 1], **{name: value})


# ---------------------------------------------------------------- instances


@pytest.mark.parametrize(("n", "k"), [(6, 3), (5, 1), (7, 6)])
def test_every_subset_comes_as_often(n: int, k: int) -> None:
    n_draws = 30_000
    rows, mask = sample_instances([0, n], np.zeros(n_draws, dtype=int), k, np.random.default_rng(0))
    assert mask.all()
    subsets = dict.fromkeys(itertools.combinations(range(n), k), 0)
    for row in np.sort(rows, axis=1):
        subsets[tuple(row.tolist())] += 1  # without replacement, or this is no subset
    assert stats.chisquare(list(subsets.values())).pvalue > 1e-3


def test_large_draws_by_keys_are_uniform_too() -> None:
    n, k, n_draws = 30, 28, 4000
    assert k * k > 20 * n
    rows, _ = sample_instances([0, n], np.zeros(n_draws, dtype=int), k, np.random.default_rng(0))
    assert all(len(np.unique(row)) == k for row in rows)
    left = np.array([np.setdiff1d(np.arange(n), row) for row in rows])
    pairs = np.bincount(left[:, 0] * n + left[:, 1], minlength=n * n).reshape(n, n)[np.triu_indices(n, 1)]
    assert stats.chisquare(pairs).pvalue > 1e-3


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(1, 50), st.integers(0, 99))
def test_rows_belong_to_their_bag_and_differ(sizes: list[int], k: int, seed: int) -> None:
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    bags = np.random.default_rng(seed).integers(-1, len(sizes), size=(3, 7))
    rows, mask = sample_instances(offsets, bags, k, np.random.default_rng(seed))
    assert rows.shape == mask.shape == (3, 7, k)
    for place in np.ndindex(3, 7):
        bag, drawn = bags[place], rows[place][mask[place]]
        if bag < 0:
            assert not len(drawn)
            continue
        assert len(drawn) == min(k, sizes[bag]) == len(np.unique(drawn))
        assert ((rows[place] >= offsets[bag]) & (rows[place] < offsets[bag + 1])).all()


def test_with_a_generator_each_entries_do_not_depend_on_each_other() -> None:
    offsets = np.concatenate(([0], np.cumsum([50, 3, 40, 7])))
    bags = np.array([[0, 1, 2], [3, 2, -1]])
    together, _ = sample_instances(offsets, bags, 5, [np.random.default_rng(s) for s in (1, 2)])
    for entry, seed in enumerate((1, 2)):
        alone, _ = sample_instances(offsets, bags[entry : entry + 1], 5, [np.random.default_rng(seed)])
        np.testing.assert_array_equal(alone[0], together[entry])
    # what stands for no bag draws nothing
    fewer, _ = sample_instances(offsets, bags[1:, :2], 5, [np.random.default_rng(2)])
    np.testing.assert_array_equal(fewer[0], together[1, :2])


def test_what_cannot_be_drawn() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="n_sampled"):
        sample_instances([0, 2], [0], 0, rng)
    with pytest.raises(ValueError, match=r"n_sampled must be an integer of at least 1; got 1\.5"):
        sample_instances([0, 2], [0], 1.5, rng)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator, or a list of them; got int"):
        sample_instances([0, 2], [0], 1, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bag 1 is empty"):
        sample_instances([0, 2, 2], [0, 1], 1, rng)
    with pytest.raises(IndexError, match="bag 1 is out of range for 1 bags"):
        sample_instances([0, 2], [1], 1, rng)
    with pytest.raises(ValueError, match="1 generators for 2 entries"):
        sample_instances([0, 2], [[0], [0]], 1, [rng])
    rows, mask = sample_instances([0, 2], np.zeros((0, 3), dtype=int), 4, rng)
    assert rows.shape == mask.shape == (0, 3, 4)
