"""What the kernels accept and refuse: each accepted form gives the same bits, each refusal names the argument."""

from __future__ import annotations

import array
import datetime
import decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import milfast as mf
from milfast._core import binary_labels, delong

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Exact in float16, so that every float dtype holds the same scores; with ties, out of order.
VALUES = [0.5, -1.25, 3.0, 0.5, 2.0, -1.25, 8.0, 0.0, 3.0, 2.5]
LABELS = [0, 1, 1, 1, 0, 0, 1, 0, 0, 1]
AUC = 0.66  # 16.5 of 25 pairs


class Subclass(np.ndarray):
    """An array of another type with the same content."""


def strided(values: Any) -> np.ndarray:
    return np.repeat(values, 3)[::3]


def misaligned(values: Any) -> np.ndarray:
    """A contiguous array that starts at an odd address."""
    given = np.asarray(values)
    out = np.frombuffer(bytearray(given.nbytes + 1), dtype=given.dtype, offset=1)
    out[:] = given
    assert out.itemsize == 1 or not out.flags.aligned
    return out


def field(values: Any) -> np.ndarray:
    """One field of a packed record: neither contiguous nor aligned, and no whole number of items apart."""
    given = np.asarray(values)
    records = np.zeros(len(given), dtype=[("flag", "i1"), ("value", given.dtype), ("more", "i2")])
    records["value"] = given
    assert not records["value"].flags.aligned
    return records["value"]


def read_only(values: Any) -> np.ndarray:
    out = np.array(values)
    out.flags.writeable = False
    return out


def big_endian(values: Any) -> np.ndarray:
    given = np.asarray(values)
    return given.astype(given.dtype.newbyteorder(">"))


def reversed_twice(values: Any) -> np.ndarray:
    return np.array(values)[::-1].copy()[::-1]


#: Ways to hold the same numbers, for scores and labels alike.
FORMS: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "strided": strided,
    "negative-stride": reversed_twice,
    "fortran-column": lambda v: np.asfortranarray(np.column_stack([v, v]))[:, 1],
    "c-column": lambda v: np.column_stack([v, v])[:, 1],
    "read-only": read_only,
    "big-endian": big_endian,
    "misaligned": misaligned,
    "record-field": field,
    "subclass": lambda v: np.array(v).view(Subclass),
    "unmasked": lambda v: np.ma.masked_array(v, mask=False),
    "objects": lambda v: np.array(v, dtype=object),
    "numpy-scalars": lambda v: list(np.array(v)),
    "memoryview": lambda v: memoryview(np.array(v)),
    "pandas": pd.Series,
    "pandas-index": lambda v: pd.Series(v, index=range(len(v), 0, -1)),
    "pandas-category": lambda v: pd.Series(pd.Categorical(v)),
    "polars": pl.Series,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_bits(form: Callable[[Any], Any]) -> None:
    assert mf.auc(form(VALUES), form(LABELS)) == AUC
    assert mf.auc(form(VALUES), form(LABELS), sample_weight=form([2.0] * 10)) == AUC
    assert delong(form(VALUES), form(LABELS)) == delong(VALUES, LABELS)
    assert mf.auc_many([VALUES, VALUES], form(LABELS)).tolist() == [AUC, AUC]
    assert binary_labels(form(LABELS)).tolist() == [y == 1 for y in LABELS]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f2", ">f4", ">f8"])
@pytest.mark.parametrize("form", ["array", "strided", "misaligned", "record-field", "read-only"])
def test_every_float_dtype_gives_the_same_bits(dtype: str, form: str) -> None:
    assert mf.auc(FORMS[form](np.array(VALUES, dtype=dtype)), LABELS) == AUC


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8", np.longlong, np.ulonglong]
)
@pytest.mark.parametrize("form", ["array", "strided", "misaligned"])
def test_every_integer_dtype_gives_the_same_bits(dtype: Any, form: str) -> None:
    dense = np.unique(VALUES, return_inverse=True)[1]
    assert mf.auc(FORMS[form](dense.astype(dtype)), LABELS) == AUC


@pytest.mark.parametrize("size", [10, 3000])
def test_a_read_only_memory_map_is_accepted(tmp_path: Path, size: int) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.random(size), rng.integers(0, 2, size)
    for name, values in (("scores", scores), ("labels", labels)):
        np.save(tmp_path / f"{name}.npy", values)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("scores", "labels")]
    assert mf.auc(*mapped) == mf.auc(scores, labels)


def test_ranges_and_standard_library_arrays_are_accepted() -> None:
    assert mf.auc(range(4), [0, 1, 0, 1]) == 0.75
    assert mf.auc(array.array("d", [0.0, 1.0, 2.0, 3.0]), array.array("b", [0, 1, 0, 1])) == 0.75


def test_booleans_are_scores_too() -> None:
    assert mf.auc([False, True, True, False], [0, 1, 0, 1]) == 0.5
    assert mf.auc(strided(np.array([False, True])), [0, 1]) == 1.0


@pytest.mark.parametrize("dtype", ["Float64", "Float32", "float64[pyarrow]", "object"])
def test_nullable_pandas_scores_are_accepted_when_none_is_missing(dtype: str) -> None:
    assert mf.auc(pd.Series(VALUES, dtype=dtype), LABELS) == AUC


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "Int8", "boolean", "Float64", "object", "bool"])
def test_nullable_pandas_labels_are_accepted_when_none_is_missing(dtype: str) -> None:
    assert mf.auc(VALUES, pd.Series(LABELS, dtype="Int64").astype(dtype)) == AUC


@pytest.mark.parametrize(
    "labels",
    [
        pd.Categorical(["b" if y else "a" for y in LABELS]),
        pd.Series(["b" if y else "a" for y in LABELS], dtype="string"),
    ],
    ids=["category", "string"],
)
def test_pandas_texts_are_accepted_with_pos_label(labels: Any) -> None:
    assert mf.auc(VALUES, labels, pos_label="b") == AUC
    with pytest.raises(ValueError, match=r"labels hold strings \('a', 'b'\)"):
        mf.auc(VALUES, labels)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_torch_tensors_are_accepted(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    scores = torch.tensor(VALUES, dtype=getattr(torch, dtype))
    for labels in (torch.tensor(LABELS), torch.tensor(LABELS, dtype=torch.uint8), torch.tensor(LABELS) > 0):
        assert mf.auc(scores, labels) == AUC
        assert mf.auc(scores.requires_grad_(), labels) == AUC
        assert mf.auc(scores, labels, pos_label=1) == AUC
    assert mf.auc(torch.tensor(VALUES).repeat_interleave(2)[::2], torch.tensor(LABELS).float().requires_grad_()) == AUC
    assert mf.auc(torch.tensor(VALUES), torch.tensor(LABELS).float().requires_grad_(), pos_label=1.0) == AUC


# ---------------------------------------------------------------- labels


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?", ">i2", ">f8"])
@pytest.mark.parametrize("form", ["array", "strided", "misaligned", "negative-stride"])
def test_labels_of_every_dtype_mean_the_same(dtype: str, form: str) -> None:
    assert mf.auc(VALUES, FORMS[form](np.array(LABELS, dtype=dtype))) == AUC


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "f2", "f4", "f8"])
def test_minus_one_is_the_negative_class(dtype: str) -> None:
    labels = (2 * np.array(LABELS) - 1).astype(dtype)
    assert mf.auc(VALUES, labels) == AUC
    assert mf.auc_many([VALUES], labels).tolist() == [AUC]


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
def test_the_largest_unsigned_value_is_not_minus_one(dtype: str) -> None:
    top = np.iinfo(dtype).max
    with pytest.raises(ValueError, match=f"labels hold {top} and 1, which does not say"):
        mf.auc([1, 2], np.array([top, 1], dtype=dtype))


@pytest.mark.parametrize("labels", [[-1, 0, 1], [0, 1, 2], [0.0, 0.5, 1.0], [0, 1, -128]], ids=str)
def test_three_labels_are_refused(labels: list[float]) -> None:
    for form in (np.array(labels), labels):
        with pytest.raises(ValueError, match=r"labels must be \{0, 1\}, \{-1, 1\} or bool, but hold"):
            mf.auc([1, 2, 3], form)


@pytest.mark.parametrize("labels", [[-1, 0], [0, -1], [-1.0, 0.0]], ids=str)
def test_minus_one_beside_zero_is_undecided(labels: list[float]) -> None:
    with pytest.raises(ValueError, match="which does not say which is the positive class: pass pos_label="):
        mf.auc([1, 2], labels)


# ---------------------------------------------------------------- refusals

SHAPES = {
    "0-d": (3.0, r"scores must be one-dimensional; got shape \[\]"),
    "0-d-array": (np.array(3.0), r"scores must be one-dimensional; got shape \[\]"),
    "2-d": (np.ones((2, 2)), r"scores must be one-dimensional; got shape \[2, 2\]: pass one column, such as x\[:, 1\]"),
    "column": (
        np.ones((2, 1)),
        r"scores must be one-dimensional; got shape \[2, 1\]: pass its column, x\[:, 0\]",
    ),
    "row": ([[1.0, 2.0]], r"scores must be one-dimensional; got shape \[1, 2\]"),
    "3-d": (np.ones((2, 1, 1)), r"scores must be one-dimensional; got shape \[2, 1, 1\]$"),
    "frame": (pd.DataFrame({"p": [0.1, 0.2], "q": [0.9, 0.8]}), "pass one column"),
    "one-column-frame": (pd.DataFrame({"p": [0.1, 0.2]}), "pass its column"),
}
TYPES = {
    "text": ("ab", "scores must hold real numbers; got str of dtype <U2"),
    "texts": (["1", "2"], "scores must hold real numbers; got list of dtype <U1"),
    "bytes": ([b"1", b"2"], "scores must hold real numbers"),
    "none": (None, "scores must hold real numbers; got NoneType of dtype object"),
    "object": (object(), "scores must hold real numbers; got object"),
    "dict": ({0: 1.0, 1: 2.0}, "scores must hold real numbers; got dict"),
    "set": ({1.0, 2.0}, "scores must hold real numbers; got set"),
    "generator": ((x for x in (1.0, 2.0)), "scores must hold real numbers; got generator"),
    "complex": ([1j, 2.0], "scores must hold real numbers; got list of dtype complex128"),
    "complex64": (np.ones(2, dtype="c8"), "scores must hold real numbers; got ndarray of dtype complex64"),
    "datetime": (
        np.array(["2020", "2021"], dtype="M8[Y]"),
        r"scores must hold real numbers; got ndarray of dtype datetime64",
    ),
    "timedelta": (np.array([1, 2], dtype="m8[s]"), "scores must hold real numbers; got ndarray of dtype timedelta64"),
    "dates": (
        [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)],
        "scores must hold real numbers; got list of dtype object",
    ),
    "decimals": ([decimal.Decimal(1), decimal.Decimal(2)], "scores must hold real numbers; got list of dtype object"),
    "records": (np.zeros(2, dtype=[("a", "f8"), ("b", "f8")]), "scores must hold real numbers; got ndarray"),
    "huge": ([2**64, 1], "scores must hold real numbers; got list of dtype object"),
    "ragged": ([[1.0], [1.0, 2.0]], "scores cannot be read as a numeric array"),
}


@pytest.mark.parametrize(("scores", "message"), SHAPES.values(), ids=SHAPES)
def test_scores_of_another_shape_are_refused_with_advice(scores: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mf.auc(scores, [0, 1])


@pytest.mark.parametrize(("scores", "message"), TYPES.values(), ids=TYPES)
def test_scores_that_are_no_real_numbers_are_refused(scores: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        mf.auc(scores, [0, 1])


def test_what_is_refused_as_scores_is_refused_as_labels_weights_and_rows() -> None:
    for bad in (None, object(), [1j, 2.0], np.array([1, 2], dtype="m8[s]")):
        with pytest.raises(TypeError, match="labels must hold real numbers"):
            mf.auc([1, 2], bad)
        if bad is not None:  # which stands for no weights
            with pytest.raises(TypeError, match="sample_weight must hold real numbers"):
                mf.auc([1, 2], [0, 1], sample_weight=bad)
        with pytest.raises(TypeError, match="scores must hold real numbers"):
            mf.auc_many(bad, [0, 1])
        with pytest.raises(TypeError, match="X must hold real numbers"):
            mf.rbf_gram(bad, gamma=1.0)
        with pytest.raises(TypeError, match="pos must hold real numbers"):
            mf.auc_from_counts(bad, [0, 1])


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is double here")
def test_floats_wider_than_float64_are_refused_rather_than_rounded() -> None:
    with pytest.raises(TypeError, match=r"scores has dtype .* wider than float64: convert it with \.astype"):
        mf.auc(np.array([1, 2], dtype=np.longdouble), [0, 1])


@pytest.mark.parametrize("labels", [1, [[0], [1]], np.ones((1, 2)), np.ones((2, 1), dtype=bool)], ids=repr)
def test_labels_of_another_shape_are_refused(labels: Any) -> None:
    for call in (lambda: mf.auc([1, 2], labels), lambda: delong([1, 2], labels), lambda: binary_labels(labels)):
        with pytest.raises(ValueError, match="labels must be one-dimensional; got shape"):
            call()


MISSING = {
    "none": [1.0, None],
    "none-integers": [1, None],
    "object-nan": np.array([1, float("nan")], dtype=object),
    "pandas-na": [1, pd.NA],
    "Int64": pd.array([1, None], dtype="Int64"),
    "Float64": pd.Series([1.0, None], dtype="Float64"),
    "boolean": pd.array([True, None], dtype="boolean"),
    "polars-int": pl.Series([1, None]),
    "polars-bool": pl.Series([True, None]),
    "polars-float": pl.Series([1.0, None]),
}


@pytest.mark.parametrize("values", MISSING.values(), ids=MISSING)
def test_missing_values_are_refused_with_their_position(values: Any) -> None:
    with pytest.raises(ValueError, match=r"scores\[1\] is (missing|NaN)"):
        mf.auc(values, [0, 1])
    with pytest.raises(ValueError, match=r"labels\[1\] is (missing|NaN)"):
        mf.auc([0.1, 0.2], values)
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is (missing|NaN)"):
        mf.auc([0.1, 0.2], [0, 1], sample_weight=values)


def test_masked_values_are_refused_rather_than_used() -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[True, False, False])
    with pytest.raises(ValueError, match="scores has masked values: drop or impute them first"):
        mf.auc(masked, [0, 1, 0])
    labels = np.ma.masked_array([0, 1, 0], mask=[False, False, True])
    for extra in ({}, {"pos_label": 1}):
        with pytest.raises(ValueError, match="labels has masked values"):
            mf.auc([1, 2, 3], labels, **extra)
    with pytest.raises(ValueError, match="X has masked values"):
        mf.rbf_gram(masked[:, None], gamma=1.0)


class CudaDevice:
    type = "cuda"

    def __str__(self) -> str:
        return "cuda:0"


class OnCuda:
    """Looks like a tensor on an accelerator: it cannot become an array."""

    device = CudaDevice()

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def test_tensors_off_the_cpu_are_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"scores lives on cuda:0: call .cpu\(\) first"):
        mf.auc(OnCuda(), [0, 1])
    for extra in ({}, {"pos_label": 1}):
        with pytest.raises(TypeError, match=r"labels lives on cuda:0: call .cpu\(\) first"):
            mf.auc([0.1, 0.2], OnCuda(), **extra)
    with pytest.raises(TypeError, match=r"X lives on cuda:0"):
        mf.rbf_gram(OnCuda(), gamma=1.0)


def test_a_tensor_on_the_meta_device_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="scores lives on meta"):
        mf.auc(torch.ones(2, device="meta"), [0, 1])


def test_an_array_that_raises_while_it_is_read_is_reported_by_name() -> None:
    class Broken:
        def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
            raise RuntimeError("the file is gone")

    with pytest.raises(TypeError, match=r"scores cannot be read as a numeric array \(RuntimeError: the file is gone\)"):
        mf.auc(Broken(), [0, 1])


def test_arguments_are_left_as_they_were() -> None:
    scores, labels, weights = np.array(VALUES), np.array(LABELS), np.ones(10)
    before = [a.copy() for a in (scores, labels, weights)]
    mf.auc(scores, labels)
    mf.auc(scores, labels, sample_weight=weights, max_fpr=0.5)
    delong(scores, labels)
    mf.auc_many(scores[None], labels)
    for array_, copy in zip((scores, labels, weights), before, strict=True):
        np.testing.assert_array_equal(array_, copy)
        array_[0] = 7  # and no kernel keeps them locked


def test_the_same_array_may_be_given_twice() -> None:
    both = np.array([0, 1, 0, 1])
    assert mf.auc(both, both) == 1.0
    x = np.ones((2, 2))
    assert mf.rbf_gram(x, x, gamma=1.0).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_options_are_keyword_only() -> None:
    for call in (lambda: mf.auc([1, 2], [0, 1], [1, 1]), lambda: mf.rbf_gram([[1.0]], [[1.0]], 1.0)):
        with pytest.raises(TypeError, match="positional arguments"):
            call()
