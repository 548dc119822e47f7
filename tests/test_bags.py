"""Bags: conversions, selections, laws of views and copies, accepted inputs, messages."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from milfast import Bags


@st.composite
def ragged(draw: st.DrawFn) -> Bags:
    """Labelled bags with kinds, of any sizes, precision and width."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from((np.float32, np.float64)))
    x = rng.normal(size=(sum(sizes), draw(st.integers(1, 4)))).astype(dtype)
    labels = rng.integers(0, 2, len(sizes))
    return Bags(x, np.cumsum([0, *sizes]), labels, rng.integers(0, 5, len(x)))


def assert_same(a: Bags, b: Bags, *, kinds: bool = True) -> None:
    for name in ("instances", "offsets", "labels", *(("kinds",) if kinds else ())):
        left, right = getattr(a, name), getattr(b, name)
        assert left.dtype == right.dtype, name
        assert_array_equal(left, right)


@pytest.fixture
def bags() -> Bags:
    x = np.arange(12, dtype=np.float64).reshape(6, 2)
    return Bags(x, [0, 1, 3, 6], [0, 1, 1], kinds=[0, 1, 2, 3, 4, 5])


# ---------------------------------------------------------------- round trips


@given(ragged())
def test_a_list_of_matrices_and_back_is_the_same(bags: Bags) -> None:
    assert_same(Bags.from_list(bags.to_list(), bags.labels), bags, kinds=False)
    assert_same(Bags.from_list(list(bags), bags.labels), bags, kinds=False)


@given(ragged(), st.sampled_from((0.0, -3.5, np.nan, np.inf)))
def test_padding_and_cutting_it_off_is_the_same_whatever_the_padding(bags: Bags, fill: float) -> None:
    x, mask = bags.to_padded(fill=fill)
    assert x.shape == (*mask.shape, bags.n_features)
    assert mask.shape == (len(bags), bags.sizes.max())
    assert_array_equal(mask.sum(axis=1), bags.sizes)
    assert_array_equal(x[~mask], np.full_like(x[~mask], fill))
    assert_same(Bags.from_padded(x, mask, bags.labels), bags, kinds=False)


@given(ragged(), st.sampled_from((pd.DataFrame, pl.DataFrame)), st.sampled_from((int, str)), st.randoms())
def test_a_frame_with_shuffled_rows_gives_the_bags_in_the_order_of_their_first_row(
    bags: Bags, frame_type: Any, name_type: type, random: Any
) -> None:
    assert bags.labels is not None
    order = list(range(bags.n_instances))
    random.shuffle(order)
    # names whose order is not that of the bags, so that sorting by name would be noticed
    names = np.array([name_type(1000 - i) for i in range(len(bags))])
    columns: dict[str, Any] = {
        "bag": names[bags.bag_index][order],
        "y": bags.labels[bags.bag_index][order],
        "row": np.arange(bags.n_instances, dtype=bags.instances.dtype)[order],
    }
    columns |= {f"f{j}": bags.instances[order, j] for j in range(bags.n_features)}
    made = Bags.from_frame(frame_type(columns), bag="bag", label="y")
    rows = made.instances[:, 0].astype(int)
    assert made.instances.dtype == bags.instances.dtype
    assert_array_equal(made.instances[:, 1:], bags.instances[rows])
    first_rows = list(dict.fromkeys(bags.bag_index[order].tolist()))
    assert_array_equal(bags.bag_index[rows], np.repeat(first_rows, made.sizes))
    assert_array_equal(made.labels, bags.labels[first_rows])
    for i, bag in enumerate(first_rows):
        # within a bag, rows keep their order in the frame
        assert made[i][:, 0].tolist() == [row for row in order if bags.bag_index[row] == bag]


def test_a_frame_can_be_read_in_part_and_by_column_names_that_are_no_strings() -> None:
    frame = pd.DataFrame({0: [1.0, 2.0, 3.0], 1: [4.0, 5.0, 6.0]}).assign(bag=["b", "a", "b"])
    assert_array_equal(Bags.from_frame(frame, bag="bag").instances, [[1, 4], [3, 6], [2, 5]])
    made = Bags.from_frame(frame, bag="bag", features=[1])
    assert_array_equal(made.instances, [[4], [6], [5]])
    assert made.labels is None


@given(ragged())
def test_torch_tensors_are_copies_that_lead_back_to_the_same_bags(bags: Bags) -> None:
    torch = pytest.importorskip("torch")
    instances, offsets, labels = bags.to_torch()
    assert (labels.dtype, offsets.dtype) == (torch.float32, torch.int64)
    assert_same(Bags(instances, offsets, labels, torch.tensor(bags.kinds)), bags)
    before = bags.instances.copy()
    instances += 1
    assert_array_equal(bags.instances, before)
    assert Bags(bags.instances, bags.offsets).to_torch("cpu")[2] is None


def test_a_tensor_with_a_gradient_is_read() -> None:
    torch = pytest.importorskip("torch")
    assert Bags(torch.ones(2, 1, requires_grad=True), [0, 2]).n_instances == 2


@given(ragged())
def test_copies_and_pickles_are_the_same_and_still_read_only(bags: Bags) -> None:
    for again in (copy.copy(bags), copy.deepcopy(bags), pickle.loads(pickle.dumps(bags))):
        assert_same(again, bags)
        assert not again.instances.flags.writeable
    bare = pickle.loads(pickle.dumps(Bags(bags.instances, bags.offsets)))
    assert bare.labels is None
    assert bare.kinds is None


# ---------------------------------------------------------------- looking inside and selecting


@given(ragged())
def test_sizes_and_indices_agree_with_the_bags(bags: Bags) -> None:
    assert bags.n_bags == len(bags) == len(bags.to_list())
    assert_array_equal(bags.sizes, [len(bag) for bag in bags])
    assert bags.n_instances == bags.sizes.sum() == len(bags.bag_index)
    assert_array_equal(np.bincount(bags.bag_index), bags.sizes)
    for i, bag in enumerate(bags):
        assert_array_equal(bags[i], bag)
        assert_array_equal(bags[i - len(bags)], bag)
        assert_array_equal(bags[np.int32(i)], bag)
        assert_array_equal(bags.instances[bags.bag_index == i], bag)


@given(ragged(), st.data())
def test_any_selection_takes_labels_and_kinds_along(bags: Bags, data: st.DataObject) -> None:
    n = len(bags)
    index = data.draw(
        st.one_of(
            st.slices(n),
            st.lists(st.integers(-n, n - 1), min_size=1, max_size=10),
            st.lists(st.integers(-n, n - 1), min_size=1, max_size=10).map(np.array),
            st.lists(st.booleans(), min_size=n, max_size=n).map(np.array),
        )
    )
    chosen = np.arange(n)[index]
    if len(chosen) == 0:
        with pytest.raises(IndexError, match="at least one bag"):
            bags[index]
        return
    part = bags[index]
    assert bags.labels is not None
    assert bags.kinds is not None
    assert part.kinds is not None
    assert_array_equal(part.labels, bags.labels[chosen])
    kinds = np.split(bags.kinds, bags.offsets[1:-1])
    assert_array_equal(part.kinds, np.concatenate([kinds[i] for i in chosen]))
    assert part.offsets[0] == 0
    for got, i in zip(part, chosen, strict=True):
        assert_array_equal(got, bags[int(i)])


def test_a_selection_of_bags_without_labels_has_none(bags: Bags) -> None:
    part = Bags(bags.instances, bags.offsets)[1:]
    assert part.labels is None
    assert part.kinds is None


@pytest.mark.parametrize("index", [3, -4, np.int64(7)])
def test_a_bag_out_of_range_is_named(bags: Bags, index: int) -> None:
    with pytest.raises(IndexError, match=f"bag {index} is out of range for 3 bags"):
        bags[index]


@pytest.mark.parametrize("index", [[], [False, False, False], slice(2, 1), [[0, 1]], True])
def test_a_selection_that_is_no_list_of_bags_is_refused(bags: Bags, index: Any) -> None:
    with pytest.raises(IndexError, match="one-dimensional and hold at least one bag"):
        bags[index]


@pytest.mark.parametrize("index", [[0, 3], np.array([0.0]), [True, False]])
def test_indices_that_numpy_refuses_are_refused(bags: Bags, index: Any) -> None:
    with pytest.raises(IndexError):
        bags[index]


def test_new_features_keep_labels_and_kinds(bags: Bags) -> None:
    wide = bags.with_instances(np.ones((6, 5), dtype=np.float32))
    assert wide.n_features == 5
    assert_array_equal(wide.labels, bags.labels)
    assert_array_equal(wide.kinds, bags.kinds)
    with pytest.raises(ValueError, match="end with 5"):
        bags.with_instances(np.ones((5, 2)))


def test_the_text_form_says_what_is_inside(bags: Bags) -> None:
    assert repr(bags) == ("Bags(n_bags=3, n_instances=6, n_features=2, dtype=float64, positive=2, sizes=1..3)")
    assert "positive" not in repr(Bags(bags.instances, bags.offsets))


# ---------------------------------------------------------------- views and copies


def test_everything_is_read_only(bags: Bags) -> None:
    assert bags.labels is not None
    assert bags.kinds is not None
    for array in (bags.instances, bags.offsets, bags.labels, bags.kinds, bags[0], bags.to_list()[1], bags[:2].kinds):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for name in ("instances", "labels", "anything"):
        with pytest.raises(AttributeError, match=f"read-only: make a new Bags instead of setting '{name}'"):
            setattr(bags, name, None)


def test_single_bags_lists_and_fitting_inputs_are_views(bags: Bags) -> None:
    assert np.shares_memory(bags[1], bags.instances)
    assert all(np.shares_memory(bag, bags.instances) for bag in bags.to_list())
    x = np.ones((2, 3), dtype=np.float32)
    assert np.shares_memory(Bags(x, [0, 2]).instances, x)
    # the caller's own array stays as writable as it was
    assert x.flags.writeable


def test_selections_and_paddings_are_copies(bags: Bags) -> None:
    assert not np.shares_memory(bags[:].instances, bags.instances)
    padded, _ = bags.to_padded()
    padded += 1
    assert_array_equal(bags.instances, np.arange(12).reshape(6, 2))


def test_labels_and_offsets_do_not_follow_the_callers_arrays() -> None:
    offsets, labels, kinds = np.array([0, 1, 2]), np.array([0, 1]), np.array([3, 4], dtype=np.int16)
    bags = Bags(np.ones((2, 1)), offsets, labels, kinds)
    offsets[1], labels[0], kinds[0] = 0, 1, 9
    assert (bags.offsets.tolist(), bags.labels.tolist(), bags.kinds.tolist()) == ([0, 1, 2], [0, 1], [3, 4])


# ---------------------------------------------------------------- accepted inputs

VALUES = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("given_values", "dtype"),
    [
        (VALUES.astype(np.float32), "float32"),
        (VALUES, "float64"),
        (VALUES.astype(np.float16), "float32"),
        (VALUES.astype(np.int8), "float64"),
        (VALUES.astype(np.uint64), "float64"),
        (VALUES.astype(">f8"), "float64"),
        (VALUES.astype(">f4"), "float32"),
        (VALUES.astype(">i2"), "float64"),
        (np.asfortranarray(VALUES), "float64"),
        (np.repeat(np.repeat(VALUES, 3, axis=0), 2, axis=1)[::3, ::2], "float64"),
        (VALUES[::-1][::-1], "float64"),
        (VALUES.tolist(), "float64"),
        ([[int(v) for v in row] for row in VALUES], "float64"),
        (pd.DataFrame(VALUES), "float64"),
        (pl.DataFrame(VALUES), "float64"),
    ],
    ids=str,
)
def test_instances_of_many_forms_are_read(given_values: Any, dtype: str) -> None:
    bags = Bags(given_values, [0, 1, 3])
    assert bags.instances.dtype == np.dtype(dtype)
    assert bags.instances.dtype.isnative
    assert bags.instances.flags.c_contiguous
    assert_array_equal(bags.instances, VALUES)


def test_booleans_become_numbers() -> None:
    bags = Bags([[True, False]], [0, 1])
    assert bags.instances.dtype == np.float64
    assert_array_equal(bags.instances, [[1, 0]])


def test_matrices_of_several_precisions_meet_in_the_widest() -> None:
    made = Bags.from_list([np.ones((1, 1), np.float32), np.full((1, 1), 0.1)])
    assert made.instances.tolist() == [[1.0], [0.1]]


@pytest.mark.parametrize(
    "labels",
    [[0, 1], [False, True], [-1, 1], np.array([0.0, 1.0]), np.array([0, 1], dtype=np.uint8), pd.Series([-1, 1])],
    ids=str,
)
def test_labels_of_many_forms_are_read(labels: Any) -> None:
    bags = Bags([[1.0], [2.0]], [0, 1, 2], labels)
    assert bags.labels is not None
    assert bags.labels.dtype == np.int64
    assert bags.labels.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.int32, np.uint16, ">i8", np.int64])
def test_offsets_of_any_integer_type_are_read(dtype: Any) -> None:
    bags = Bags([[1.0], [2.0]], np.array([0, 1, 2], dtype=dtype))
    assert bags.offsets.dtype == np.int64
    assert bags.offsets.tolist() == [0, 1, 2]


# ---------------------------------------------------------------- messages


class ElsewhereTensor:
    """What a tensor on a graphics card looks like from outside."""

    class Device:
        type = "cuda"

        def __str__(self) -> str:
            return "cuda:0"

    device = Device()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Bags([[1.0], [2.0]], [0, 0, 2]), ValueError, r"bag 0 is empty \(offsets\[0\]=0, offsets\[1\]=0\)"),
        (lambda: Bags([[1.0], [2.0]], [0, 2, 1, 2]), ValueError, "bag 1 is empty"),
        (lambda: Bags([[1.0], [2.0]], [0, 1]), ValueError, "start with 0 and end with 2; they run from 0 to 1"),
        (lambda: Bags([[1.0], [2.0]], [1, 2]), ValueError, "start with 0 and end with 2; they run from 1 to 2"),
        (lambda: Bags([[1.0]], [0]), ValueError, r"for at least one bag; got shape \(1,\)"),
        (lambda: Bags(np.ones((0, 2)), [0]), ValueError, "at least one bag"),
        (lambda: Bags([[1.0]], [[0, 1]]), ValueError, "offsets must have shape"),
        (lambda: Bags([[1.0]], [0.0, 1.0]), TypeError, "offsets must be integers; got dtype float64"),
        (lambda: Bags([1.0, 2.0], [0, 2]), ValueError, r"instances must have shape .* got \(2,\)"),
        (lambda: Bags(np.ones((2, 0)), [0, 2]), ValueError, r"at least one feature; got \(2, 0\)"),
        (lambda: Bags([["a"]], [0, 1]), TypeError, "instances"),
        (lambda: Bags([[1j]], [0, 1]), TypeError, "real numbers .* complex128"),
        (lambda: Bags([[None]], [0, 1]), ValueError, r"instances\[0, 0\] .* is nan"),
        (lambda: Bags([[1.0], [2.0, 3.0]], [0, 2]), TypeError, "instances cannot be read as an array of numbers"),
        (lambda: Bags(np.ones((1, 1), np.longdouble), [0, 1]), TypeError, "real numbers"),
        (lambda: Bags([[1.0]], [0, 1], [0, 1]), ValueError, "labels has 2 entries for 1 bags"),
        (lambda: Bags([[1.0], [1.0]], [0, 1, 2], [1, 2]), ValueError, "labels"),
        (lambda: Bags([[1.0], [1.0]], [0, 1, 2], [[0], [1]]), ValueError, "labels"),
        (lambda: Bags([[1.0]], [0, 1], kinds=[0, 1]), ValueError, r"kinds must hold one integer .* got shape \(2,\)"),
        (lambda: Bags([[1.0]], [0, 1], kinds=[0.5]), ValueError, "got shape .* dtype float64"),
        (lambda: Bags([[1.0]], [0, 1], kinds=[40_000]), ValueError, r"0\.\.32767; they run from 40000 to 40000"),
        (lambda: Bags([[1.0]], [0, 1], kinds=[-1]), ValueError, r"0\.\.32767; they run from -1"),
        (lambda: Bags(ElsewhereTensor(), [0, 1]), TypeError, r"instances lives on cuda:0: call \.cpu\(\) first"),
        (lambda: Bags([[1.0]], ElsewhereTensor()), TypeError, "offsets lives on cuda:0"),
        (lambda: Bags([[1.0]], [0, 1], kinds=ElsewhereTensor()), TypeError, "kinds lives on cuda:0"),
        (lambda: Bags.from_padded([[[1.0]]], ElsewhereTensor()), TypeError, "mask lives on cuda:0"),
        (lambda: Bags(np.ma.masked_equal([[1.0]], 1.0), [0, 1]), ValueError, "instances has masked values"),
        (lambda: Bags.from_list([]), ValueError, "at least one bag"),
        (lambda: Bags.from_list([[[1.0]], [[1.0, 2.0]]]), ValueError, r"bags\[1\] has 2 features, but bags\[0\] has 1"),
        (lambda: Bags.from_list([[[1.0]], np.ones((0, 1))]), ValueError, r"bags\[1\] is empty"),
        (lambda: Bags.from_list([[[1.0]], [1.0]]), ValueError, r"bags\[1\] must have shape"),
        (lambda: Bags.from_list([[[1.0]]], [0, 1]), ValueError, "labels has 2 entries"),
        (lambda: Bags.from_padded([[1.0]], [[True]]), ValueError, r"x must have shape .* got \(1, 1\)"),
        (lambda: Bags.from_padded([[[1.0]]], [True]), ValueError, r"mask must have shape \(1, 1\) like x; got \(1,\)"),
        (lambda: Bags.from_padded([[[1.0]], [[2.0]]], [[1], [0]]), ValueError, "bag 1 is all padding"),
        (lambda: Bags.from_frame(pd.DataFrame({"b": [1]}), bag="b"), ValueError, "no feature columns"),
        (lambda: Bags.from_frame(pd.DataFrame({"b": [], "f": []}), bag="b"), ValueError, "no rows"),
        (
            lambda: Bags.from_frame(pd.DataFrame({"b": [1], 0: [1.0]}), bag="bag"),
            ValueError,
            "no column 'bag'; its columns are b, 0",
        ),
        (
            lambda: Bags.from_frame(pd.DataFrame({"b": [1], "f": ["x"]}), bag="b"),
            TypeError,
            "'f'",
        ),
        (
            lambda: Bags.from_frame(pd.DataFrame({"b": [1, 2, 1], "y": [0, 1, 1], "f": [0.0] * 3}), bag="b", label="y"),
            ValueError,
            "row 2 gives bag 1 the label 1, the first row of that bag gives it 0",
        ),
    ],
)
def test_what_is_wrong_is_named(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "names",
    [
        pd.Series([1.0, np.nan, 1.0]),
        pd.Series(["a", None, "a"]),
        pd.Series(["a", None, "a"], dtype=object),
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01"])),
        pl.Series([1, None, 1]),
        pl.Series(["a", None, "a"]),
        pl.Series([1.0, float("nan"), 1.0]),
    ],
    ids=lambda names: f"{type(names).__module__.split('.')[0]}-{names.dtype}",
)
def test_a_row_without_a_bag_is_named(names: Any) -> None:
    frame_type = pd.DataFrame if isinstance(names, pd.Series) else pl.DataFrame
    with pytest.raises(ValueError, match="row 1 has no value in column 'bag'"):
        Bags.from_frame(frame_type({"bag": names, "f": [1.0, 2.0, 3.0]}), bag="bag")


@given(ragged(), st.sampled_from((np.nan, np.inf, -np.inf)), st.data())
def test_a_value_that_is_not_finite_is_located_by_row_bag_and_place_in_the_bag(
    bags: Bags, value: float, data: st.DataObject
) -> None:
    x = bags.instances.copy()
    row = data.draw(st.integers(0, len(x) - 1))
    column = data.draw(st.integers(0, bags.n_features - 1))
    x[row, column] = value
    bag = bags.bag_index[row]
    place = row - bags.offsets[bag]
    expected = rf"instances\[{row}, {column}\] \(bag {bag}, its instance {place}\) is {value}: impute or drop"
    with pytest.raises(ValueError, match=expected):
        Bags(x, bags.offsets)
    with pytest.raises(ValueError, match=expected):
        bags.with_instances(x)


@pytest.mark.parametrize("labels", [["ill", "well"], [1, 2], [0.5, 2.0]])
def test_labels_of_other_names_are_refused_with_a_way_that_bags_have(labels: list[Any]) -> None:
    with pytest.raises(ValueError, match="turn others into bool first, labels == the positive one"):
        Bags([[0.0], [1.0]], [0, 1, 2], labels)
