"""Kernels between bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.bags import Bags

InstanceKernel: TypeAlias = Literal["rbf", "linear", "poly"]
SetKernel: TypeAlias = Literal["nsk", "sk"]
Normalization: TypeAlias = Literal["average", "feature-space"] | None

#: Instance pairs of a polynomial kernel held at once.
BLOCK = 1 << 22


def bag_gram(
    a: Bags,
    b: Bags | None = None,
    *,
    kernel: InstanceKernel = "rbf",
    gamma: float,
    degree: int = 3,
    coef0: float = 1.0,
    set_kernel: SetKernel = "nsk",
    normalize: Normalization = None,
) -> NDArray[np.float64]:
    """Kernel matrix between bags.

    The set kernel "nsk" of Gärtner et al. (2002) is the sum of an instance kernel over all instance pairs of two bags;
    the statistics kernel "sk" is the instance kernel of the bags' feature-wise minima and maxima. Matrices of all
    instance pairs are never built.

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
    coef0 : float
    set_kernel : {"nsk", "sk"}
    normalize : {"average", "feature-space"}, optional
        Divide by the product of the bag sizes, or by the square root of K(A, A) K(B, B). Only for "nsk".

    Returns
    -------
    ndarray of float64, shape (len(a), len(b))

    Raises
    ------
    ValueError
        When an option is unknown, a number is out of range or the bags differ in their number of features.

    References
    ----------
    .. [1] Gärtner, Flach, Kowalczyk & Smola (2002), Multi-instance kernels.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [0.0], [1.0]], [0, 2, 3])
    >>> mf.bag_gram(bags, gamma=1.0).round(4)
    array([[4.    , 0.7358],
           [0.7358, 1.    ]])
    """
    if kernel not in ("rbf", "linear", "poly"):
        raise ValueError(f"kernel must be rbf, linear or poly; got {kernel!r}")
    if set_kernel not in ("nsk", "sk"):
        raise ValueError(f"set_kernel must be nsk or sk; got {set_kernel!r}")
    if normalize not in (None, "average", "feature-space"):
        raise ValueError(f"normalize must be None, average or feature-space; got {normalize!r}")
    if not (gamma > 0 and np.isfinite(gamma)):
        raise ValueError(f"gamma must be positive and finite; got {gamma}")
    if b is not None and b.n_features != a.n_features:
        raise ValueError(f"a and b must have as many features; got {a.n_features} and {b.n_features}")
    if set_kernel == "sk":
        if normalize is not None:
            raise ValueError("normalize applies to set_kernel='nsk' only")
        return instance_gram(_extremes(a), None if b is None else _extremes(b), kernel, gamma, degree, coef0)
    if kernel == "rbf":
        sums = (
            _core.rbf_bag_sums(a.instances, a.offsets, gamma=gamma)
            if b is None
            else _core.rbf_bag_sums(a.instances, a.offsets, b.instances, b.offsets, gamma=gamma)
        )
    else:
        sums = _sums(a, a if b is None else b, kernel, gamma, degree, coef0)
    if normalize == "average":
        sums /= a.sizes[:, None] * (a if b is None else b).sizes
    elif normalize == "feature-space":
        rows = bag_self_similarity(a, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0)
        columns = rows if b is None else bag_self_similarity(b, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0)
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
    if kernel == "rbf":
        return _core.rbf_bag_diagonal(bags.instances, bags.offsets, gamma=gamma)
    return np.array([instance_gram(bag, None, kernel, gamma, degree, coef0).sum() for bag in bags.to_list()])


def _extremes(bags: Bags) -> NDArray[Any]:
    starts = bags.offsets[:-1]
    return np.hstack(
        [np.minimum.reduceat(bags.instances, starts), np.maximum.reduceat(bags.instances, starts)], dtype=np.float64
    )


def instance_gram(
    x: NDArray[Any], y: NDArray[Any] | None, kernel: str, gamma: float, degree: int, coef0: float
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


def _sums(a: Bags, b: Bags, kernel: str, gamma: float, degree: int, coef0: float) -> NDArray[np.float64]:
    """Sums of a kernel that is a function of the inner product."""
    if kernel == "linear":
        totals = [np.add.reduceat(bags.instances.astype(np.float64), bags.offsets[:-1]) for bags in (a, b)]
        return np.asarray(totals[0] @ totals[1].T)
    y = b.instances
    sums = np.empty((len(a), len(b)))
    first = 0
    while first < len(a):
        last = int(np.searchsorted(a.offsets, a.offsets[first] + max(1, BLOCK // len(y)), side="right")) - 1
        last = max(last, first + 1)
        x = a.instances[a.offsets[first] : a.offsets[last]]
        block = np.add.reduceat(instance_gram(x, y, kernel, gamma, degree, coef0), b.offsets[:-1], axis=1)
        sums[first:last] = np.add.reduceat(block, a.offsets[first:last] - a.offsets[first], axis=0)
        first = last
    return sums
