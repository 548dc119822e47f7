"""Kernel matrices between instances and between bags: against scikit-learn, against plain loops, laws, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import milfast as mf
from milfast import _core
from milfast.gram import bag_self_similarity

KERNELS = ("rbf", "linear", "poly")


def bag_of(rng: np.random.Generator, sizes: list[int], d: int, dtype: Any = np.float64) -> mf.Bags:
    return mf.Bags(rng.standard_normal((sum(sizes), d)).astype(dtype), np.cumsum([0, *sizes]))


def pairwise(
    x: np.ndarray, y: np.ndarray, kernel: str, gamma: float, degree: int = 3, coef0: float = 1.0
) -> np.ndarray:
    if kernel == "rbf":
        return np.exp(-gamma * ((x[:, None] - y) ** 2).sum(axis=2))
    if kernel == "linear":
        # with more digits than ours: sums over bags may cancel, and what is left is divided by what is left of others
        return np.asarray(x.astype(np.longdouble) @ y.astype(np.longdouble).T)
    return polynomial_kernel(x, y, gamma=gamma, degree=degree, coef0=coef0)


def by_loop(
    a: mf.Bags, b: mf.Bags, kernel: str, gamma: float, set_kernel: str, normalize: str | None, sharpness: float = 3.0
) -> np.ndarray:
    """The set kernels as they are written down, one pair of bags at a time."""
    rows, columns = ([bag.astype(np.float64) for bag in bags] for bags in (a, b))
    if set_kernel == "sk":
        rows, columns = ([np.concatenate([x.min(0), x.max(0)])[None] for x in bags] for bags in (rows, columns))
    out = np.empty((len(a), len(b)))
    for i, p in enumerate(rows):
        for j, q in enumerate(columns):
            k = pairwise(p, q, kernel, gamma)
            if set_kernel == "match":
                out[i, j] = (k.max(axis=1).mean() + k.max(axis=0).mean()) / 2
                continue
            if set_kernel == "soft-match":
                sides = (logsumexp(sharpness * k, axis=axis) - math.log(k.shape[axis]) for axis in (0, 1))
                out[i, j] = sum(side.mean() / sharpness for side in sides) / 2
                continue
            value = k.sum()
            if normalize == "average":
                value /= len(p) * len(q)
            elif normalize == "feature-space":
                value /= math.sqrt(pairwise(p, p, kernel, gamma).sum() * pairwise(q, q, kernel, gamma).sum())
            out[i, j] = value
    return out


def absolute(bags: mf.Bags) -> mf.Bags:
    """Bags whose kernels have terms of one sign, as large as the terms can be."""
    return bags.with_instances(np.abs(bags.instances))


@st.composite
def ragged(draw: st.DrawFn) -> tuple[mf.Bags, mf.Bags]:
    """Two groups of bags with sizes around the 16 columns that are computed side by side."""
    d = draw(st.integers(1, 5) | st.sampled_from([16, 17]))
    sizes = st.lists(st.integers(1, 4) | st.sampled_from([15, 16, 17, 33]), min_size=1, max_size=5)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return bag_of(rng, draw(sizes), d), bag_of(rng, draw(sizes), d)


# ---------------------------------------------------------------- between instances


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 16, 1), (3, 17, 5), (33, 15, 16), (100, 130, 7)], ids=str)
@pytest.mark.parametrize("gamma", [1e-3, 0.1, 1.0, 30.0])
def test_rbf_gram_equals_sklearn(shape: tuple[int, int, int], gamma: float) -> None:
    n, m, d = shape
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((n, d)), rng.standard_normal((m, d))
    np.testing.assert_allclose(mf.rbf_gram(x, y, gamma=gamma), rbf_kernel(x, y, gamma=gamma), rtol=0, atol=1e-13)
    np.testing.assert_allclose(mf.rbf_gram(x, gamma=gamma), rbf_kernel(x, gamma=gamma), rtol=0, atol=1e-13)


@given(ragged(), st.sampled_from([1e-3, 0.5, 20.0]))
def test_rbf_gram_is_the_definition_to_the_last_digits(bags: tuple[mf.Bags, mf.Bags], gamma: float) -> None:
    x, y = bags[0].instances, bags[1].instances
    want = pairwise(x, y, "rbf", gamma)
    # The exponent carries the rounding of its own size: 1e-16 of gamma |x - y|^2.
    np.testing.assert_allclose(mf.rbf_gram(x, y, gamma=gamma), want, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_matrix_is_exactly_symmetric_with_a_unit_diagonal(dtype: Any, scale: float) -> None:
    # Far from the origin, where |x|^2 + |y|^2 - 2 x.y loses all digits.
    x = (1e4 + scale * np.random.default_rng(0).standard_normal((70, 9))).astype(dtype)
    k = mf.rbf_gram(x, gamma=1 / scale**2)
    assert k.dtype == dtype
    np.testing.assert_array_equal(k, k.T)
    np.testing.assert_array_equal(np.diagonal(k), 1)
    assert (k >= 0).all()
    assert (k <= 1).all()
    np.testing.assert_array_equal(mf.rbf_gram(x, x.copy(), gamma=1 / scale**2), k)


def test_rbf_gram_of_float32_is_float32_and_close() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((40, 6)), rng.standard_normal((23, 6))
    narrow = mf.rbf_gram(x.astype(np.float32), y.astype(np.float32), gamma=0.3)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, mf.rbf_gram(x, y, gamma=0.3), rtol=0, atol=3e-7)
    mixed = mf.rbf_gram(x.astype(np.float32), y, gamma=0.3)
    assert mixed.dtype == np.float64
    np.testing.assert_array_equal(mixed, mf.rbf_gram(x.astype(np.float32).astype(np.float64), y, gamma=0.3))


@pytest.mark.parametrize(
    "form", [np.asfortranarray, lambda x: np.repeat(x, 2, axis=0)[::2], lambda x: x.astype(">f8"), list]
)
def test_rbf_gram_of_any_layout_gives_the_same_bits(form: Any) -> None:
    x = np.random.default_rng(2).standard_normal((19, 5))
    np.testing.assert_array_equal(mf.rbf_gram(form(x), gamma=0.2), mf.rbf_gram(x, gamma=0.2))
    np.testing.assert_array_equal(mf.rbf_gram(x[:4], form(x), gamma=0.2), mf.rbf_gram(x[:4], x, gamma=0.2))


def test_rbf_gram_takes_integers_and_booleans() -> None:
    x = np.array([[0, 1], [3, 1]])
    assert mf.rbf_gram(x, gamma=0.1)[0, 1] == pytest.approx(math.exp(-0.9), rel=1e-15)
    assert mf.rbf_gram(x > 0, gamma=0.1)[0, 1] == pytest.approx(math.exp(-0.1), rel=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [5e-324, 1e-50, 1.0, 1e39, 1e308])
def test_extreme_widths_and_distances_give_zeros_and_ones_rather_than_nan(dtype: Any, gamma: float) -> None:
    x = np.array([[1.0], [1.0], [-1.0]], dtype=dtype) * np.finfo(dtype).max
    assert mf.rbf_gram(x, gamma=gamma).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_no_rows_give_an_empty_matrix() -> None:
    assert mf.rbf_gram(np.empty((0, 3)), gamma=1.0).shape == (0, 0)
    assert mf.rbf_gram(np.empty((0, 3)), np.ones((2, 3)), gamma=1.0).shape == (0, 2)
    assert mf.rbf_gram(np.ones((2, 3)), np.empty((0, 3)), gamma=1.0).shape == (2, 0)


BAD_GRAMS: dict[str, tuple[tuple[Any, ...], float, str]] = {
    "columns": ((np.ones((2, 3)), np.ones((2, 4))), 1.0, "X and Y must have as many columns; got 3 and 4"),
    "nan": (([[0.0], [math.nan]],), 1.0, r"X\[1, 0\] is NaN"),
    "infinite": (([[0.0, math.inf]],), 1.0, r"X\[0, 1\] is inf"),
    "nan-y": (([[0.0]], [[math.nan]]), 1.0, r"Y\[0, 0\] is NaN"),
    "one-dimensional": (([0.0, 1.0],), 1.0, r"X must have shape"),
    "no-columns": ((np.empty((2, 0)),), 1.0, "X must have at least one column"),
    "gamma-zero": (([[0.0]],), 0.0, "gamma must be positive and finite; got 0"),
    "gamma-negative": (([[0.0]],), -1.0, "gamma must be positive and finite; got -1"),
    "gamma-nan": (([[0.0]],), math.nan, "gamma must be positive and finite; got NaN"),
    "gamma-infinite": (([[0.0]],), math.inf, "gamma must be positive and finite; got inf"),
}


@pytest.mark.parametrize(("arguments", "gamma", "message"), BAD_GRAMS.values(), ids=BAD_GRAMS)
def test_bad_instances_are_refused(arguments: tuple[Any, ...], gamma: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mf.rbf_gram(*arguments, gamma=gamma)


# ---------------------------------------------------------------- between bags

OPTIONS = [
    (kernel, set_kernel, normalize)
    for kernel in KERNELS
    for set_kernel, normalize in (
        ("nsk", None),
        ("nsk", "average"),
        ("nsk", "feature-space"),
        ("sk", None),
        ("match", None),
        ("soft-match", None),
    )
]


@pytest.mark.parametrize(("kernel", "set_kernel", "normalize"), OPTIONS)
@given(bags=ragged())
def test_bag_gram_is_the_definition(
    bags: tuple[mf.Bags, mf.Bags], kernel: Any, set_kernel: Any, normalize: Any
) -> None:
    a, b = bags
    options: dict[str, Any] = {"kernel": kernel, "gamma": 0.2, "set_kernel": set_kernel, "normalize": normalize}
    options["sharpness"] = 3.0
    for columns, got in ((a, mf.bag_gram(a, **options)), (b, mf.bag_gram(a, b, **options))):
        want = by_loop(a, columns, kernel, 0.2, set_kernel, normalize)
        # Sums of terms of both signs cancel: what counts is the size of the terms.
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11 * max(1.0, np.abs(want).max()))


@given(ragged())
def test_the_matrix_of_bags_with_themselves_is_exactly_symmetric(bags: tuple[mf.Bags, mf.Bags]) -> None:
    k = mf.bag_gram(bags[0], gamma=0.3)
    np.testing.assert_array_equal(k, k.T)
    np.testing.assert_allclose(np.diagonal(k), bag_self_similarity(bags[0], gamma=0.3), rtol=1e-13)


@given(ragged())
def test_symmetric_and_rectangular_matrices_agree(bags: tuple[mf.Bags, mf.Bags]) -> None:
    a, b = bags
    np.testing.assert_allclose(mf.bag_gram(a, gamma=0.3), mf.bag_gram(a, a, gamma=0.3), rtol=1e-13)
    np.testing.assert_allclose(mf.bag_gram(a, b, gamma=0.3), mf.bag_gram(b, a, gamma=0.3).T, rtol=1e-13)
    both = mf.Bags.from_list([*a, *b])
    whole = mf.bag_gram(both, gamma=0.3)
    np.testing.assert_allclose(whole[: len(a), len(a) :], mf.bag_gram(a, b, gamma=0.3), rtol=1e-13)


@pytest.mark.parametrize("set_kernel", ["nsk", "sk", "match", "soft-match"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(bags=ragged())
def test_symmetric_and_rectangular_matrices_agree_for_all_kernels(
    bags: tuple[mf.Bags, mf.Bags], kernel: Any, set_kernel: Any, dtype: Any
) -> None:
    a, b = bags
    options: dict[str, Any] = {"kernel": kernel, "gamma": 0.3, "set_kernel": set_kernel, "dtype": dtype}
    own = mf.bag_gram(a, **options)
    np.testing.assert_array_equal(own, own.T)
    again, cross, back = mf.bag_gram(a, a, **options), mf.bag_gram(a, b, **options), mf.bag_gram(b, a, **options)
    if set_kernel == "nsk":  # pairs are added up by rows of one bag or of the other
        size = mf.bag_gram(absolute(a), absolute(mf.Bags.from_list([*a, *b])), **options).max()
        tolerance = size * (1e-6 if dtype == "float32" else 1e-14)
        np.testing.assert_allclose(again, own, rtol=0, atol=tolerance)
        np.testing.assert_allclose(cross, back.T, rtol=0, atol=tolerance)
    else:
        np.testing.assert_array_equal(again, own)
        np.testing.assert_array_equal(cross, back.T)


@given(ragged())
def test_matches_lie_between_the_average_and_one(bags: tuple[mf.Bags, mf.Bags]) -> None:
    a, b = bags
    average = mf.bag_gram(a, b, gamma=0.3, normalize="average")
    match = mf.bag_gram(a, b, gamma=0.3, set_kernel="match")
    assert (match <= 1).all()
    np.testing.assert_array_equal(np.diagonal(mf.bag_gram(a, gamma=0.3, set_kernel="match")), 1)
    last = average
    for sharpness in (1e-3, 1.0, 30.0, 1e4):
        soft = mf.bag_gram(a, b, gamma=0.3, set_kernel="soft-match", sharpness=sharpness)
        assert (soft >= last - 1e-12).all()
        assert (soft <= match + 1e-12).all()
        last = soft
    # a mean of m exponentials is at least the largest one over m
    np.testing.assert_allclose(last, match, rtol=0, atol=math.log(33) / 1e4 + 1e-12)
    np.testing.assert_allclose(
        mf.bag_gram(a, b, gamma=0.3, set_kernel="soft-match", sharpness=1e-6), average, rtol=0, atol=1e-6
    )


def test_a_soft_match_of_large_kernel_values_does_not_overflow() -> None:
    a = mf.Bags([[30.0], [40.0], [10.0]], [0, 2, 3])
    got = mf.bag_gram(a, kernel="poly", gamma=1.0, degree=5, set_kernel="soft-match", sharpness=1e3)
    want = mf.bag_gram(a, kernel="poly", gamma=1.0, degree=5, set_kernel="match")
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("set_kernel", ["nsk", "sk", "match", "soft-match"])
def test_identical_instances_give_exactly_one_each(set_kernel: Any) -> None:
    for dtype in (np.float32, np.float64):
        for value in (0.0, 1e-30, 0.1, 1e30):
            bags = mf.Bags(np.full((9, 3), value, dtype), [0, 2, 9])
            got = mf.bag_gram(bags, gamma=0.7, set_kernel=set_kernel)
            want = [[4, 14], [14, 49]] if set_kernel == "nsk" else [[1, 1], [1, 1]]
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("gamma", [5e-324, 1e-50, 1e39, 1e308])
def test_extreme_widths_of_bags_give_no_nan(gamma: float) -> None:
    for dtype in (np.float32, np.float64):
        bags = mf.Bags(np.array([[1.0], [-1.0], [1.0]], dtype) * np.finfo(dtype).max, [0, 1, 3])
        with np.errstate(over="ignore"):
            assert mf.bag_gram(bags, gamma=gamma).tolist() == [[1, 1], [1, 2]]
        assert mf.bag_gram(bags, gamma=gamma, set_kernel="match").tolist() == [[1, 0.75], [0.75, 1]]


@pytest.mark.parametrize("kernel", KERNELS)
@given(bags=ragged(), seed=st.integers(0, 99))
def test_order_inside_a_bag_does_not_matter(bags: tuple[mf.Bags, mf.Bags], seed: int, kernel: Any) -> None:
    a, b = bags
    rng = np.random.default_rng(seed)
    mixed = mf.Bags.from_list([rng.permutation(bag) for bag in a])
    want = mf.bag_gram(a, b, kernel=kernel, gamma=0.2)
    size = np.abs(want).max()
    np.testing.assert_allclose(mf.bag_gram(mixed, b, kernel=kernel, gamma=0.2), want, rtol=1e-12, atol=1e-12 * size)
    np.testing.assert_allclose(
        mf.bag_gram(mixed, kernel=kernel, gamma=0.2),
        mf.bag_gram(a, kernel=kernel, gamma=0.2),
        rtol=1e-12,
        atol=1e-12 * max(1.0, np.abs(mf.bag_gram(a, kernel=kernel, gamma=0.2)).max()),
    )


@given(ragged())
def test_a_bag_and_its_copy_have_the_same_row(bags: tuple[mf.Bags, mf.Bags]) -> None:
    a, b = bags
    twice = mf.bag_gram(mf.Bags.from_list([*a, a[0]]), b, gamma=0.3)
    np.testing.assert_array_equal(twice[-1], twice[0])


def test_instances_held_twice_count_twice() -> None:
    rng = np.random.default_rng(3)
    a, b = bag_of(rng, [3, 5], 4), bag_of(rng, [2, 7], 4)
    double = mf.Bags.from_list([np.concatenate([bag, bag]) for bag in a])
    np.testing.assert_allclose(mf.bag_gram(double, b, gamma=0.2), 2 * mf.bag_gram(a, b, gamma=0.2), rtol=1e-14)
    for normalize in ("average", "feature-space"):
        want = mf.bag_gram(a, b, gamma=0.2, normalize=normalize)
        np.testing.assert_allclose(mf.bag_gram(double, b, gamma=0.2, normalize=normalize), want, rtol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_normalised_bags_have_unit_length(kernel: Any) -> None:
    a = bag_of(np.random.default_rng(4), [3, 1, 16, 9], 4)
    k = mf.bag_gram(a, kernel=kernel, gamma=0.2, normalize="feature-space")
    np.testing.assert_allclose(np.diagonal(k), 1, rtol=1e-13)


def test_bag_gram_of_float32_is_float64_and_close() -> None:
    rng = np.random.default_rng(5)
    sizes = [1, 40, 3, 17]
    wide = bag_of(rng, sizes, 6)
    narrow = wide.with_instances(wide.instances.astype(np.float32))
    for kernel in KERNELS:
        want = by_loop(narrow, narrow, kernel, 0.2, "nsk", None)
        got = mf.bag_gram(narrow, kernel=kernel, gamma=0.2)
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-12)
    np.testing.assert_allclose(mf.bag_gram(narrow, wide, gamma=0.2), mf.bag_gram(wide, gamma=0.2), rtol=1e-6)


@pytest.mark.parametrize("set_kernel", ["nsk", "sk", "match", "soft-match"])
@pytest.mark.parametrize("kernel", KERNELS)
@given(bags=ragged())
def test_float32_is_what_the_instance_kernel_is_computed_in(
    bags: tuple[mf.Bags, mf.Bags], kernel: Any, set_kernel: Any
) -> None:
    narrow, other = (each.with_instances(each.instances.astype(np.float32)) for each in bags)
    options: dict[str, Any] = {"kernel": kernel, "gamma": 0.1, "set_kernel": set_kernel, "sharpness": 3.0}
    want = by_loop(narrow, other, kernel, 0.1, set_kernel, None)
    single = mf.bag_gram(narrow, other, dtype="float32", **options)
    double = mf.bag_gram(narrow, other, dtype="float64", **options)
    size = max(1.0, by_loop(*map(absolute, (narrow, other)), kernel, 0.1, set_kernel, None).max())
    np.testing.assert_allclose(single, want, rtol=0, atol=2e-5 * size)
    np.testing.assert_allclose(double, want, rtol=0, atol=1e-12 * size)
    wide = [each.with_instances(each.instances.astype(np.float64)) for each in (narrow, other)]
    np.testing.assert_array_equal(mf.bag_gram(*wide, **options), double)
    np.testing.assert_array_equal(mf.bag_gram(*wide, dtype="float32", **options), single)
    by_default = single if kernel == "rbf" and set_kernel != "sk" else double
    np.testing.assert_array_equal(mf.bag_gram(narrow, other, **options), by_default)


def test_many_bags_cut_into_several_tasks_equal_single_rows() -> None:
    rng = np.random.default_rng(6)
    a = bag_of(rng, rng.integers(1, 20, 150).tolist(), 5)
    whole = mf.bag_gram(a, gamma=0.2)
    for i in (0, 1, 74, 149):
        np.testing.assert_allclose(mf.bag_gram(a[[i]], a, gamma=0.2)[0], whole[i], rtol=1e-13)


def test_the_parameters_of_the_polynomial_kernel_are_used() -> None:
    a = bag_of(np.random.default_rng(8), [2, 3], 3)
    got = mf.bag_gram(a, kernel="poly", gamma=0.7, degree=2, coef0=0.5)
    want = [[polynomial_kernel(p, q, gamma=0.7, degree=2, coef0=0.5).sum() for q in a] for p in a]
    np.testing.assert_allclose(got, want, rtol=1e-13)
    np.testing.assert_allclose(np.diagonal(got), bag_self_similarity(a, kernel="poly", gamma=0.7, degree=2, coef0=0.5))
    assert mf.bag_gram(a, kernel="poly", gamma=0.7, degree=0).tolist() == [[4, 6], [6, 9]]
    third = mf.bag_gram(a, kernel="poly", gamma=0.7, degree=np.int64(3))
    np.testing.assert_array_equal(third, mf.bag_gram(a, kernel="poly", gamma=0.7, degree=3))


ONE = mf.Bags([[0.0, 0.0], [1.0, 2.0]], [0, 1, 2])
BAD_OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "kernel": ({"kernel": "sigmoid"}, "kernel must be rbf, linear or poly; got 'sigmoid'"),
    "set-kernel": ({"set_kernel": "mean"}, "set_kernel must be nsk, sk, match or soft-match; got 'mean'"),
    "normalize": ({"normalize": "size"}, "normalize must be None, average or feature-space; got 'size'"),
    "normalize-match": ({"set_kernel": "match", "normalize": "average"}, "normalize applies to set_kernel='nsk' only"),
    "sharpness": ({"set_kernel": "soft-match", "sharpness": 0.0}, "sharpness must be positive and finite; got 0"),
    "dtype": ({"dtype": "float16"}, "dtype must be None, float32 or float64; got 'float16'"),
    "degree": ({"kernel": "poly", "degree": -1}, r"degree must be from 0 to 2\*\*32 - 1; got -1"),
    "coef0": ({"kernel": "poly", "coef0": math.inf}, "coef0 must be finite; got inf"),
    "normalize-sk": ({"set_kernel": "sk", "normalize": "average"}, "normalize applies to set_kernel='nsk' only"),
    "gamma-zero": ({"gamma": 0.0}, "gamma must be positive and finite; got 0"),
    "gamma-nan": ({"gamma": math.nan}, "gamma must be positive and finite"),
    "features": ({"b": mf.Bags([[0.0]], [0, 1])}, "a and b must have as many features; got 2 and 1"),
    "no-length": ({"kernel": "linear", "normalize": "feature-space"}, "bag 0 of a has length 0.0 in feature space"),
}


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mf.bag_gram(ONE, **{"gamma": 1.0, **options})


def test_a_degree_that_is_no_integer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"degree must be an integer; got 2\.5"):
        mf.bag_gram(ONE, kernel="poly", gamma=1.0, degree=2.5)  # type: ignore[arg-type]


X = np.ones((2, 2))
CUTS = np.array([0, 1, 2])
BAD_SUMS: dict[str, tuple[tuple[Any, ...], type[Exception], str]] = {
    "start": ((X, np.array([1, 2])), ValueError, "offsets must ascend from 0 to the number of instances, 2"),
    "end": ((X, np.array([0, 3])), ValueError, "offsets must ascend"),
    "descending": ((X, np.array([0, 3, 2])), ValueError, "offsets must ascend"),
    "no-offsets": ((X, np.array([], dtype=np.int64)), ValueError, "offsets must ascend"),
    "float-offsets": ((X, np.array([0.0, 2.0])), TypeError, "offsets must be int64"),
    "nan": (([[math.nan, 0.0]], np.array([0, 1])), ValueError, r"instances\[0, 0\] is NaN"),
    "half": ((X, CUTS, X), TypeError, "other_instances and other_offsets go together"),
    "features": ((X, CUTS, np.ones((2, 3)), CUTS), ValueError, "as many features; got 2 and 3"),
    "other-nan": ((X, CUTS, [[0.0, math.nan]], np.array([0, 1])), ValueError, r"other_instances\[0, 1\] is NaN"),
    "other-offsets": ((X, CUTS, X, np.array([0, 3])), ValueError, "other_offsets must ascend"),
}


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_SUMS.values(), ids=BAD_SUMS)
def test_bad_bags_are_refused_by_the_kernel_itself(
    arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        _core.bag_kernel(*arguments, gamma=1.0)


def test_an_empty_bag_sums_to_zero_in_the_kernel() -> None:
    sums = _core.bag_kernel(X, np.array([0, 0, 2]), gamma=1.0)
    assert sums.tolist() == [[0.0, 0.0], [0.0, 4.0]]
    assert _core.bag_kernel_diagonal(X, np.array([0, 0, 2]), gamma=1.0).tolist() == [0.0, 4.0]
    for set_kernel in ("match", "soft-match"):
        sums = _core.bag_kernel(X, np.array([0, 0, 2]), gamma=1.0, set_kernel=set_kernel)
        assert sums.tolist() == [[0.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("option", ["kernel", "set_kernel"])
def test_unknown_options_are_refused_by_the_kernel_itself(option: str) -> None:
    with pytest.raises(ValueError, match=f"{option} must be .* got .mean"):
        _core.bag_kernel(X, CUTS, **{option: "mean"})
