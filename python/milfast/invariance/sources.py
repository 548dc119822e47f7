"""Where random numbers come from: the house's seeds with numpy, or torch's generator as the published code used it.

A problem is written once, against either source. The one of torch draws the published data bit for bit, for which the
order of draws and the kind of each product matter.
"""

from __future__ import annotations

import importlib.util
import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from milfast.seeding import seed_sequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: Where numbers can come from.
RNGS = ("native", "torch")


class Source(Protocol):
    """What a problem draws from. Arrays are float32, of numpy or of torch."""

    def normal(self, rows: int, columns: int) -> Any:
        """Standard normal numbers."""

    def uniform(self, low: float, high: float) -> float:
        """One number between two bounds."""

    def components(self, weights: Sequence[float], n: int) -> Any:
        """Numbers of components, drawn with replacement with probabilities in proportion to weights."""

    def permutation(self, n: int) -> Any:
        """Some order of n rows."""

    def product(self, rows: Any, matrix: Vector) -> Any:
        """Rows times a matrix."""

    def constant(self, values: Vector) -> Any:
        """A matrix as an array of this source."""

    def beside(self, left: Any, right: Any) -> Any:
        """Columns of two arrays."""

    def under(self, upper: Any, lower: Any) -> Any:
        """Rows of two arrays."""

    def sums(self, rows: Any) -> Any:
        """Sum of each row."""

    def array(self, values: Any) -> NDArray[np.float32]:
        """An array of this source as one of numpy."""


class NativeSource:
    """Numbers of numpy's PCG64 from a branch of the tree of seeds.

    Sums over columns are taken one column at a time, so that bits depend neither on threads nor on the instruction set.

    Parameters
    ----------
    seed : int
    *path : int
        The branch.
    """

    def __init__(self, seed: int, *path: int) -> None:
        self.generator = np.random.Generator(np.random.PCG64(seed_sequence(seed, *path)))

    def normal(self, rows: int, columns: int) -> Any:
        """Standard normal numbers."""
        return self.generator.standard_normal((rows, columns), dtype=np.float32)

    def uniform(self, low: float, high: float) -> float:
        """One number between two bounds."""
        return float(self.generator.uniform(low, high))

    def components(self, weights: Sequence[float], n: int) -> Any:
        """Numbers of components, drawn with replacement with probabilities in proportion to weights."""
        bounds = np.cumsum(weights)
        return np.searchsorted(bounds[:-1], self.generator.random(n) * bounds[-1], side="right")

    def permutation(self, n: int) -> Any:
        """Some order of n rows."""
        return self.generator.permutation(n)

    def product(self, rows: Any, matrix: Vector) -> Any:
        """Rows times a matrix."""
        narrow = matrix.astype(np.float32)
        total = np.zeros((len(rows), matrix.shape[1]), np.float32)
        for column, weights in zip(rows.T, narrow, strict=True):
            total += column[:, None] * weights
        return total

    def constant(self, values: Vector) -> Any:
        """A matrix as an array of this source."""
        return values.astype(np.float32)

    def beside(self, left: Any, right: Any) -> Any:
        """Columns of two arrays."""
        return np.concatenate((left, right), axis=1)

    def under(self, upper: Any, lower: Any) -> Any:
        """Rows of two arrays."""
        return np.concatenate((upper, lower))

    def sums(self, rows: Any) -> Any:
        """Sum of each row."""
        return self.product(rows, np.ones((rows.shape[1], 1)))[:, 0]

    def array(self, values: Any) -> NDArray[np.float32]:
        """An array of this source as one of numpy."""
        return np.asarray(values, np.float32)


class TorchSource:
    """Numbers of a generator of torch's own, which gives what the global one gives after `torch.manual_seed`.

    The global generator is not touched.

    Parameters
    ----------
    seed : int

    Raises
    ------
    ImportError
        When torch is missing.
    ValueError
        When torch has no such seed.
    """

    def __init__(self, seed: int) -> None:
        require_torch()
        import torch

        if seed >= 2**63:
            raise ValueError(f"random_state must be below 2**63 for the draws of torch; got {seed}")
        self.torch = torch
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, rows: int, columns: int) -> Any:
        """Standard normal numbers."""
        return self.torch.randn(rows, columns, generator=self.generator, dtype=self.torch.float32)

    def uniform(self, low: float, high: float) -> float:
        """One number between two bounds."""
        drawn = self.torch.zeros(1, dtype=self.torch.float32).uniform_(low, high, generator=self.generator)
        return float(drawn.item())

    def components(self, weights: Sequence[float], n: int) -> Any:
        """Numbers of components, drawn with replacement with probabilities in proportion to weights."""
        narrow = self.torch.tensor(weights, dtype=self.torch.float32)
        return self.torch.multinomial(narrow, n, replacement=True, generator=self.generator)

    def permutation(self, n: int) -> Any:
        """Some order of n rows."""
        return self.torch.randperm(n, generator=self.generator)

    def product(self, rows: Any, matrix: Vector) -> Any:
        """Rows times a matrix."""
        return rows @ self.constant(matrix)

    def constant(self, values: Vector) -> Any:
        """A matrix as an array of this source, with its strides: on them the last bits of a product depend."""
        return self.torch.from_numpy(values.astype(np.float32, order="K"))

    def beside(self, left: Any, right: Any) -> Any:
        """Columns of two arrays."""
        return self.torch.cat((left, right), -1)

    def under(self, upper: Any, lower: Any) -> Any:
        """Rows of two arrays."""
        return self.torch.cat((upper, lower))

    def sums(self, rows: Any) -> Any:
        """Sum of each row."""
        return rows.sum(1)

    def array(self, values: Any) -> NDArray[np.float32]:
        """An array of this source as one of numpy."""
        narrow: NDArray[np.float32] = values.numpy()
        return narrow


def orthogonal(source: Source, n: int) -> Vector:
    """The Q of a QR decomposition of a normal matrix.

    Parameters
    ----------
    source : Source
    n : int

    Returns
    -------
    ndarray of float64, shape (n, n)
        Signs of the columns are as LAPACK leaves them. In Fortran's order, as LAPACK and torch have it.
    """
    drawn = source.normal(n, n)
    if isinstance(source, TorchSource):
        return np.asfortranarray(source.torch.linalg.qr(drawn)[0].numpy().astype(np.float64))
    return np.asfortranarray(np.linalg.qr(np.asarray(drawn, np.float64))[0])


def initial_weights(n_features: int, seed: int, rng: str = "native") -> Vector:
    """Weights and bias that a linear model starts from, uniform within 1 / sqrt(n_features) of 0.

    Parameters
    ----------
    n_features : int
    seed : int
        With "torch" what `torch.manual_seed` was given before the layer was made; 1000 + k for trial k of the paper.
    rng : {"native", "torch"}
        "torch" gives the bits of a fresh `torch.nn.Linear(n_features, 1)`.

    Returns
    -------
    ndarray of float64, shape (n_features + 1,)
        The bias comes last.

    Examples
    --------
    >>> start = initial_weights(4, 0)
    >>> start.shape, bool(abs(start).max() <= 0.5)
    ((5,), True)
    """
    bound = 1 / math.sqrt(n_features)
    if rng == "native":
        generator = np.random.Generator(np.random.PCG64(seed_sequence(seed)))
        return generator.uniform(-bound, bound, n_features + 1)
    source = TorchSource(seed)
    weights = source.torch.empty(1, n_features, dtype=source.torch.float32)
    source.torch.nn.init.kaiming_uniform_(weights, a=math.sqrt(5), generator=source.generator)
    return np.append(weights.numpy()[0].astype(np.float64), source.uniform(-bound, bound))


def require_torch() -> None:
    """Say how to get torch where it is missing.

    Raises
    ------
    ImportError
    """
    if importlib.util.find_spec("torch") is None:
        raise ImportError("rng='torch' needs torch, which is not installed: pip install 'milfast[torch]'")
