"""Plain SVMs on a kernel matrix between bags."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from milfast.gram import bag_gram, bag_self_similarity
from milfast.models.svm.base import BagSVM
from milfast.models.svm.solver import BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.bags import Bags
    from milfast.gram import Normalization
    from milfast.models.svm.solver import InstanceKernel, Vector

__all__ = ["BagKernelSVM", "bag_lengths", "set_kernel"]

#: Steps of libsvm before it gives up: it does not answer Ctrl-C.
MOST_STEPS = 2_000_000


class BagKernelSVM(BagSVM):
    """A model that compares whole bags; a model adds `_gram`."""

    svm_: SVC
    support_bags_: Bags
    support_: NDArray[np.int64]
    dual_coef_: Vector

    @abstractmethod
    def _gram(self, a: Bags, b: Bags | None = None) -> Vector: ...

    def _points(self, bags: Bags) -> NDArray[Any]:
        """What the kernel compares."""
        return bags.instances

    def _fit(self, bags: Bags) -> None:
        assert bags.labels is not None
        gram = self._gram(bags)
        if callable(self.kernel):
            self._instance_kernel.check_symmetric(gram, self._points(bags))
        # without a seed scikit-learn would draw one from numpy's global generator, although nothing here is random
        svm = SVC(
            kernel="precomputed",
            C=self.C,
            class_weight=self.class_weight,
            tol=self.tol,
            max_iter=MOST_STEPS,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `fit` says it with advice
            self.svm_ = svm.fit(gram, bags.labels)
        self.support_ = svm.support_.astype(np.int64)
        self.support_bags_ = bags[self.support_]
        self.dual_coef_ = svm.dual_coef_[0]
        self.intercept_ = float(svm.intercept_[0])
        support = gram[np.ix_(self.support_, self.support_)]
        self.objective_ = float(np.abs(self.dual_coef_).sum() - 0.5 * self.dual_coef_ @ support @ self.dual_coef_)
        self.n_iter_ = 1
        self.converged_ = bool(svm.fit_status_ == 0)

    def _scores(self, bags: Bags) -> Vector:
        scores: Vector = self._gram(bags, self.support_bags_) @ self.dual_coef_
        scores += self.intercept_
        return scores


def set_kernel(a: Bags, b: Bags | None, kernel: InstanceKernel, normalize: Normalization) -> Vector:
    """Normalised set kernel between bags, as `milfast.bag_gram`, also from a kernel function.

    Parameters
    ----------
    a : Bags
    b : Bags or None
    kernel : InstanceKernel
    normalize : {"average", "feature-space"} or None

    Returns
    -------
    ndarray of float64, shape (len(a), len(b))

    Raises
    ------
    ValueError
        When a bag has no length in feature space and cannot be normalised.
    """
    if isinstance(kernel.kernel, str):
        kernel.check_size(a.instances, None if b is None else b.instances)
        return bag_gram(
            a,
            b,
            kernel=kernel.kernel,  # type: ignore[arg-type]  # checked in fit
            gamma=kernel.gamma,
            degree=kernel.degree,
            coef0=kernel.coef0,
            normalize=normalize,
        )
    other = a if b is None else b
    sums = np.empty((len(a), len(other)))
    first = 0
    while first < len(a):
        # as many bags as fit, and at least one
        reach = int(a.offsets[first]) + max(1, BLOCK // other.n_instances)
        last = max(first + 1, int(np.searchsorted(a.offsets, reach, side="right")) - 1)
        start = int(a.offsets[first])
        values = kernel.matrix(a.instances[start : int(a.offsets[last])], other.instances)
        columns = np.add.reduceat(values, other.offsets[:-1], axis=1)
        sums[first:last] = np.add.reduceat(columns, a.offsets[first:last] - start, axis=0)
        first = last
    if normalize is not None:
        lengths = bag_lengths(a, kernel, normalize)
        sums /= lengths[:, None] * (lengths if b is None else bag_lengths(b, kernel, normalize))
    return sums


def bag_lengths(
    bags: Bags,
    kernel: InstanceKernel,
    normalize: Normalization,
    *,
    numbers: NDArray[np.int64] | None = None,
    what: str = "bag",
) -> Vector:
    """What the sum over a bag is divided by.

    Parameters
    ----------
    bags : Bags
    kernel : InstanceKernel
    normalize : {"average", "feature-space"} or None
    numbers : ndarray of int64, shape (n_bags,), optional
        What the bags are called in a message, where they are a selection.
    what : str
        What they are in a message.

    Returns
    -------
    ndarray of float64, shape (n_bags,)

    Raises
    ------
    ValueError
        When a bag has no length in feature space.
    """
    if normalize is None:
        return np.ones(len(bags))
    if normalize == "average":
        return bags.sizes.astype(np.float64)
    if isinstance(kernel.kernel, str):
        options: dict[str, Any] = {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
        squares = bag_self_similarity(bags, kernel=kernel.kernel, **options)  # type: ignore[arg-type]
    else:
        squares = np.array([kernel.matrix(bag).sum() for bag in bags])
    if not (squares > 0).all():
        i = int(np.argmin(squares))
        number = i if numbers is None else int(numbers[i])
        raise ValueError(f"{what} {number} has length {squares[i]} in feature space: it cannot be normalised")
    return np.asarray(np.sqrt(squares))
