"""Kernels between bags."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast import _core
from milfast.bags import Bags

if TYPE_CHECKING:
    from numpy.typing import NDArray

InstanceKernel: TypeAlias = Literal["rbf", "linear", "poly"]
SetKernel: TypeAlias = Literal["nsk", "sk", "match", "soft-match"]
Normalization: TypeAlias = Literal["average", "feature-space"] | None
Precision: TypeAlias = Literal["float32", "float64"] | None


def bag_gram(
    a: Bags,
    b: Bags | None = None,
    *,
    kernel: InstanceKernel = "rbf",
    gamma: float,
    degree: int = 3,
    coef0: float = 1.0,
    set_kernel: SetKernel = "nsk",
    sharpness: float = 10.0,
    normalize: Normalization = None,
    dtype: Precision = None,
) -> NDArray[np.float64]:
    """Kernel matrix between bags.

    Matrices of all instance pairs are never built. For an instance kernel k and bags A and B:

    - "nsk" is the sum of k over all instance pairs [1]_;
    - "sk", the statistics kernel, is k between the bags' feature-wise minima and maxima, laid side by side [1]_;
    - "match" looks for each instance's best partner in the other bag: half of mean_x max_y k(x, y) plus half of
      mean_y max_x k(x, y) [2]_. It need not be positive semidefinite;
    - "soft-match" is "match" with log(mean(exp(sharpness k))) / sharpness in place of the maximum: from the average of
      k for a sharpness near 0 to "match" for a large one.

    Parameters
    ----------
    a : Bags
        Rows.
    b : Bags, optional
        Columns; `a` by default.
    kernel : {"rbf", "linear", "poly"}
        exp(-gamma |x - y|^2); x.y; (gamma x.y + coef0)^degree.
    gamma : float
        Positive. Not used by the linear kernel.
    degree : int
        Not negative.
    coef0 : float
    set_kernel : {"nsk", "sk", "match", "soft-match"}
    sharpness : float
        Positive; of "soft-match".
    normalize : {"average", "feature-space"}, optional
        Divide by the product of the bag sizes, or by the square root of K(A, A) K(B, B). Only for "nsk".
    dtype : {"float32", "float64"}, optional
        What instance kernels are computed in: by default float32 for the RBF kernel of float32 bags ("sk" apart), else
        float64. Sums over bags are float64 in any case, except for those of up to four values.

    Returns
    -------
    ndarray of float64, shape (len(a), len(b))

    Raises
    ------
    ValueError
        When an option is unknown, a number is out of range or the bags differ in their number of features.
    TypeError
        When `degree` is not an integer.

    References
    ----------
    .. [1] Gärtner, Flach, Kowalczyk & Smola (2002), Multi-instance kernels.
    .. [2] Wallraven, Caputo & Graf (2003), Recognition with local features: the kernel recipe.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [0.0], [1.0]], [0, 2, 3])
    >>> mf.bag_gram(bags, gamma=1.0).round(4)
    array([[4.    , 0.7358],
           [0.7358, 1.    ]])
    >>> mf.bag_gram(bags, gamma=1.0, set_kernel="match").round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """
    if kernel not in ("rbf", "linear", "poly"):
        raise ValueError(f"kernel must be rbf, linear or poly; got {kernel!r}")
    if set_kernel not in ("nsk", "sk", "match", "soft-match"):
        raise ValueError(f"set_kernel must be nsk, sk, match or soft-match; got {set_kernel!r}")
    if normalize not in (None, "average", "feature-space"):
        raise ValueError(f"normalize must be None, average or feature-space; got {normalize!r}")
    if dtype not in (None, "float32", "float64"):
        raise ValueError(f"dtype must be None, float32 or float64; got {dtype!r}")
    if not (gamma > 0 and np.isfinite(gamma)):
        raise ValueError(f"gamma must be positive and finite; got {gamma}")
    if not np.isfinite(coef0):
        raise ValueError(f"coef0 must be finite; got {coef0}")
    if not (sharpness > 0 and np.isfinite(sharpness)):
        raise ValueError(f"sharpness must be positive and finite; got {sharpness}")
    if b is not None and b.n_features != a.n_features:
        raise ValueError(f"a and b must have as many features; got {a.n_features} and {b.n_features}")
    if normalize is not None and set_kernel != "nsk":
        raise ValueError("normalize applies to set_kernel='nsk' only")
    options: dict[str, Any] = {"kernel": kernel, "gamma": gamma, "degree": _checked_degree(degree), "coef0": coef0}
    if dtype is None and (kernel != "rbf" or set_kernel == "sk"):
        dtype = "float64"
    if dtype is not None:
        a, b = _as(a, dtype), None if b is None else _as(b, dtype)
    if set_kernel == "sk":
        a, b = extremes(a), None if b is None else extremes(b)
        if kernel == "rbf":
            gram = _core.rbf_gram(a.instances, None if b is None else b.instances, gamma=gamma)
            return np.asarray(gram, dtype=np.float64)
        set_kernel = "nsk"  # of bags that have one instance each
    if set_kernel == "nsk" and kernel == "linear":
        sums = _linear_sums(a, a if b is None else b)
    else:
        other = () if b is None else (b.instances, b.offsets)
        sums = _core.bag_kernel(a.instances, a.offsets, *other, set_kernel=set_kernel, sharpness=sharpness, **options)
    if normalize == "average":
        sums /= a.sizes[:, None] * (a if b is None else b).sizes
    elif normalize == "feature-space":
        rows = bag_self_similarity(a, **options)
        columns = rows if b is None else bag_self_similarity(b, **options)
        for name, diagonal in (("a", rows), ("b", columns)):
            if not (diagonal > 0).all():
                i = int(np.argmin(diagonal))
                raise ValueError(
                    f"bag {i} of {name} has length {diagonal[i]} in feature space: it cannot be normalised"
                )
        sums /= np.sqrt(rows)[:, None] * np.sqrt(columns)
    return sums


def bag_self_similarity(
    bags: Bags, *, kernel: InstanceKernel = "rbf", gamma: float, degree: int = 3, coef0: float = 1.0
) -> NDArray[np.float64]:
    """Diagonal of the unnormalised `bag_gram`.

    Parameters
    ----------
    bags : Bags
    kernel, gamma, degree, coef0
        As in `bag_gram`.

    Returns
    -------
    ndarray of float64, shape (n_bags,)

    Raises
    ------
    ValueError
        As `bag_gram`.
    """
    if kernel == "linear":
        totals = _totals(bags)
        return np.asarray((totals * totals).sum(axis=1))
    return _core.bag_kernel_diagonal(
        bags.instances, bags.offsets, kernel=kernel, gamma=gamma, degree=_checked_degree(degree), coef0=coef0
    )


def _checked_degree(degree: int) -> int:
    try:
        number = operator.index(degree)
    except TypeError:
        raise TypeError(f"degree must be an integer; got {degree!r}") from None
    if not 0 <= number < 1 << 32:
        raise ValueError(f"degree must be from 0 to 2**32 - 1; got {number}")
    return number


def _as(bags: Bags, dtype: str) -> Bags:
    return bags if bags.instances.dtype == dtype else bags.with_instances(bags.instances.astype(dtype))


def extremes(bags: Bags) -> Bags:
    """Minima and maxima of the features of bags: their statistics.

    Parameters
    ----------
    bags : Bags

    Returns
    -------
    Bags
        One instance for each bag, of 2 n_features features: the minima, then the maxima.
    """
    starts = bags.offsets[:-1]
    sides = (np.minimum.reduceat(bags.instances, starts), np.maximum.reduceat(bags.instances, starts))
    return Bags(np.hstack(sides), np.arange(len(bags) + 1))


def instance_gram(
    x: NDArray[Any],
    y: NDArray[Any] | None,
    kernel: str,
    gamma: float,
    degree: int,
    coef0: float,
) -> NDArray[np.float64]:
    """Kernel matrix between instances, in float64.

    Parameters
    ----------
    x, y : ndarray, shape (n, n_features) and (m, n_features)
        `x` takes the place of a `y` that is None.
    kernel : {"rbf", "linear", "poly"}
    gamma, degree, coef0
        As in `bag_gram`.

    Returns
    -------
    ndarray of float64, shape (n, m)
    """
    x = np.asarray(x, dtype=np.float64)
    y = None if y is None else np.asarray(y, dtype=np.float64)
    if kernel == "rbf":
        return _core.rbf_gram(x, y, gamma=gamma)
    product = x @ (x if y is None else y).T
    return np.asarray(product if kernel == "linear" else (gamma * product + coef0) ** degree)


def _totals(bags: Bags) -> NDArray[np.float64]:
    """Sum of the instances of each bag."""
    return np.asarray(np.add.reduceat(bags.instances.astype(np.float64, copy=False), bags.offsets[:-1]))


def _linear_sums(a: Bags, b: Bags) -> NDArray[np.float64]:
    """Sums of inner products over all pairs: inner products of sums."""
    return np.asarray(_totals(a) @ _totals(b).T)
