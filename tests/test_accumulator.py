"""AUC accumulators: bounds against the exact AUC, merging, state, errors."""

from __future__ import annotations

import json
import math
import pickle
import struct
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import milfast as mf
from milfast.accumulator import AccumulatedAUC

SCORES = {
    "float64": st.sampled_from([-math.inf, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.0001, 1.5, math.inf])
    | st.floats(allow_nan=False),
    "float32": st.sampled_from([-1.0, 0.0, 0.5, 0.75]) | st.floats(allow_nan=False, width=32),
    "int64": st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 5) | st.integers(2**64 - 9, 2**64 - 1),
}


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[np.ndarray, np.ndarray]]:
    """Batches of one dtype, with both classes in all of them together."""
    dtype = draw(st.sampled_from(sorted(SCORES)))
    n = draw(st.integers(2, 40))
    scores = np.array(draw(st.lists(SCORES[dtype], min_size=n, max_size=n)), dtype=dtype)
    labels = np.array([0, 1, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return list(zip(np.split(scores, cuts), np.split(labels, cuts), strict=True))


def filled(parts: list[tuple[np.ndarray, np.ndarray]], **options: Any) -> mf.AUCAccumulator:
    accumulator = mf.AUCAccumulator(**options)
    for scores, labels in parts:
        accumulator.update(scores, labels)
    return accumulator


def auc_of(parts: list[tuple[np.ndarray, np.ndarray]]) -> float:
    return mf.auc(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def bin_of(score: float, bins: int) -> tuple[bool, int]:
    """The documented bin of a score: its sign, and the exponent and the first bits of the mantissa."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", abs(score)))
    return (score < 0, bits >> (52 - bins.bit_length() + 1))


# ---------------------------------------------------------------- bounds


@given(batches(), st.sampled_from([1, 8, 1024, 65536]))
def test_the_exact_area_lies_within_the_bounds(parts: list[tuple[np.ndarray, np.ndarray]], bins: int) -> None:
    result = filled(parts, bins=bins).result()
    assert result.low <= auc_of(parts) <= result.high
    assert result.low <= result.auc <= result.high
    labels = np.concatenate([y for _, y in parts])
    assert (result.n_pos, result.n_neg) == (labels.sum(), (1 - labels).sum())


@given(batches(), st.sampled_from([1, 8, 1024]))
def test_only_pairs_of_different_scores_in_one_bin_are_unknown(parts: Any, bins: int) -> None:
    scores, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    if scores.dtype.kind != "f":
        return
    groups: dict[tuple[bool, int], list[int]] = {}
    for i, score in enumerate(scores.tolist()):
        groups.setdefault(bin_of(score, bins), []).append(i)
    unknown = sum(
        int(labels[i].sum()) * int((1 - labels[i]).sum()) for i in groups.values() if len(np.unique(scores[i])) > 1
    )
    result = filled(parts, bins=bins).result()
    assert result.high - result.low == pytest.approx(unknown / (result.n_pos * result.n_neg), abs=1e-12)


@given(batches())
def test_exact_accumulators_give_the_area_itself(parts: list[tuple[np.ndarray, np.ndarray]]) -> None:
    if parts[0][0].dtype.kind != "f" and any(np.abs(s.astype(object)).max(initial=0) >= 2**53 for s, _ in parts):
        return
    result = filled(parts, exact=True).result()
    assert result.low == result.auc == result.high == auc_of(parts)


def test_ties_are_exact_and_more_bins_bound_more_closely() -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.standard_normal(50_000), rng.integers(0, 2, 50_000)
    tied = filled([(np.round(scores, 2), labels)]).result()
    assert tied.low == tied.auc == tied.high == mf.auc(np.round(scores, 2), labels)
    widths = [(r := filled([(scores, labels)], bins=b).result()).high - r.low for b in (1, 32, 1024, 65536)]
    assert widths == sorted(widths, reverse=True)
    assert widths[2] < 1e-3
    assert widths[3] < 3e-5


def test_long_integers_that_are_one_float64_are_no_tie() -> None:
    result = filled([(np.array([2**60, 2**60 + 1]), np.array([1, 0]))], bins=65536).result()
    assert (result.low, result.auc, result.high) == (0.0, 0.5, 1.0)


# ---------------------------------------------------------------- merging and state


@given(batches(), st.booleans(), st.randoms(use_true_random=False))
def test_merged_parts_are_the_whole_in_any_order(parts: Any, exact: bool, random: Any) -> None:
    if exact:
        parts = [(s.astype(float), y) for s, y in parts]
    options: dict[str, Any] = {"exact": True} if exact else {"bins": 16}
    whole = filled(parts, **options)
    shards = [filled([part], **options) for part in parts]
    random.shuffle(shards)
    merged = mf.AUCAccumulator(**options)
    for shard in shards:
        merged.merge(shard)
    assert merged.result() == whole.result()
    if not exact:
        assert merged.to_dict() == whole.to_dict()


@given(batches(), st.booleans())
def test_state_travels_by_pickle_and_json(parts: Any, exact: bool) -> None:
    if exact:
        parts = [(s.astype(float), y) for s, y in parts]
    accumulator = filled(parts, **({"exact": True} if exact else {"bins": 4}))
    for copy in (
        pickle.loads(pickle.dumps(accumulator)),
        mf.AUCAccumulator.from_dict(json.loads(json.dumps(accumulator.to_dict()))),
    ):
        assert (copy.exact, copy.bins) == (accumulator.exact, accumulator.bins)
        assert copy.to_dict() == accumulator.to_dict()
        assert copy.result() == accumulator.result()
        copy.merge(accumulator)
        assert copy.result().n_pos == 2 * accumulator.result().n_pos


def test_counts_and_pairs_go_beyond_64_bits() -> None:
    accumulator = filled([(np.array([0.0, 1.0, 3.0]), np.array([0, 1, 0]))])
    for _ in range(61):
        accumulator.merge(accumulator)
    assert accumulator.result() == AccumulatedAUC(0.5, 0.5, 0.5, 2**61, 2**62)
    before = accumulator.to_dict()
    with pytest.raises(ValueError, match=r"at most 2\*\*63 - 1 members"):
        accumulator.merge(accumulator)
    assert accumulator.to_dict() == before


def test_threads_may_update_one_accumulator() -> None:
    rng = np.random.default_rng(1)
    scores, labels = rng.standard_normal((8, 20_000)), rng.integers(0, 2, (8, 20_000))
    shared = mf.AUCAccumulator()
    threads = [threading.Thread(target=shared.update, args=part) for part in zip(scores, labels, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared.to_dict() == filled([(scores.ravel(), labels.ravel())]).to_dict()


# ---------------------------------------------------------------- undefined values and wrong input


@pytest.mark.parametrize("exact", [False, True])
def test_without_both_classes_the_area_is_undefined(exact: bool) -> None:
    accumulator = mf.AUCAccumulator(exact=exact)
    accumulator.update([], [])
    accumulator.update([1.0, 2.0], [1, 1])
    result = accumulator.result()
    assert all(math.isnan(value) for value in (result.auc, result.low, result.high))
    assert (result.n_pos, result.n_neg) == (2, 0)
    assert result.to_dict() == {"auc": None, "low": None, "high": None, "n_pos": 2, "n_neg": 0}
    assert "n_pos=2" in repr(accumulator)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1.0, math.nan], [0, 1], r"scores\[1\] is NaN"),
        ([1.0, 2.0], [0, 1, 1], "scores has 2 entries, labels has 3"),
        ([1.0, 2.0], [0, 3], "pos_label"),
        ([0, 1, 1], [0.1, 0.2, 0.3], "swapped"),
    ],
    ids=["nan", "length", "labels", "swapped"],
)
def test_an_update_that_is_refused_changes_nothing(exact: bool, scores: Any, labels: Any, message: str) -> None:
    accumulator = mf.AUCAccumulator(exact=exact)
    accumulator.update([0.1, 0.4, 0.35, 0.8], ["a", "a", "b", "b"], pos_label="b")
    before = accumulator.to_dict()
    with pytest.raises(ValueError, match=message):
        accumulator.update(scores, labels)
    assert accumulator.to_dict() == before
    assert accumulator.result().auc == 0.75


@pytest.mark.parametrize("bins", [0, 3, -4, 131072, 2**70])
def test_bins_must_be_a_power_of_two(bins: int) -> None:
    with pytest.raises(ValueError, match="bins must be a power of two from 1 to 65536"):
        mf.AUCAccumulator(bins=bins)


def test_what_does_not_go_together_is_refused() -> None:
    accumulator = mf.AUCAccumulator()
    with pytest.raises(TypeError, match="bins must be an integer"):
        mf.AUCAccumulator(bins=2.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bins=1024 and bins=8"):
        accumulator.merge(mf.AUCAccumulator(bins=8))
    with pytest.raises(ValueError, match="give both the same exact"):
        accumulator.merge(mf.AUCAccumulator(exact=True))
    with pytest.raises(TypeError, match="other must be an AUCAccumulator; got dict"):
        accumulator.merge({})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"scores\[1\] is 9007199254740993"):
        mf.AUCAccumulator(exact=True).update([1, 2**53 + 1], [0, 1])


@pytest.mark.parametrize(
    "change",
    [
        {"number": [0]},
        {"value": [7.0]},
        {"pos": [-1]},
        {"pos": [0], "neg": [0]},
        {"pos": [1, 1]},
        {"bins": 5},
        {"bins": None},
        {"more": 1},
    ],
    ids=str,
)
def test_a_state_that_contradicts_itself_is_refused(change: dict[str, Any]) -> None:
    state = filled([(np.array([1.0]), np.array([1]))]).to_dict()
    with pytest.raises(ValueError):
        mf.AUCAccumulator.from_dict(state | change)


def test_shards_are_counted_on_a_cluster_and_put_together() -> None:
    distributed = pytest.importorskip("distributed")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 4000)
    scores = rng.standard_normal(4000) + labels

    def count(part: int) -> mf.AUCAccumulator:
        shard = mf.AUCAccumulator()
        shard.update(scores[part::4], labels[part::4])
        return shard

    total = mf.AUCAccumulator()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        for _, shard in distributed.as_completed(client.map(count, range(4)), with_results=True):
            total.merge(shard)
    result = total.result()
    assert result.low <= mf.auc(scores, labels) <= result.high
    assert result.high - result.low < 0.001
    at_once = mf.AUCAccumulator()
    at_once.update(scores, labels)
    assert at_once.result() == result
