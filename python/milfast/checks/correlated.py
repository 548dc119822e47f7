"""Neighbours must matter: a positive bag holds raised instances side by side (Harvey, Loevlie & Hughes 2025).

All instances are noise but for a window of adjacent ones in positive bags, whose mean is raised along one direction:
the shifted-mean task of arXiv 2510.25759. No single instance decides, and two bounds say what can be reached: that of
Bayes' rule, which knows that the raised instances are neighbours, and that of the best rule that takes a bag as a set.
In testing the negative bags hold as many raised instances, scattered so that no two are neighbours. As sets, positive
and negative bags then have the same law: whoever ignores the order ranks them at 0.5.

A model that claims a MIL assumption for sets is expected to fail here; the check is for models that claim more.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast import _core
from milfast.bags import Bags
from milfast.checks.arguments import is_integer, require_unit_vector, sampling_dtype, unit_vector
from milfast.checks.task import Task
from milfast.seeding import seed_sequence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from milfast.checks.recipe import Range
    from milfast.seeding import RandomState

NAME = "correlated"
CODE = "MIL009"
ASSUMPTION = "correlated"
LEARNED = "which instances a bag holds, not which of them are neighbours"

SPELLINGS: dict[str, dict[str, Any]] = {"strict": {}}

#: Ignoring the order gives 0.5, so that a pass needs a little more.
BAR = 0.55


@dataclass(frozen=True)
class AdjacentBags(Task):
    """Bags whose label depends on which instances are neighbours; see `build` for the parameters."""

    window: int = 3
    shift: float = 2.0
    size: tuple[int, int] = (15, 45)
    n_features: int = 16
    direction: tuple[float, ...] | None = None
    name: str = NAME

    def __post_init__(self) -> None:
        if not is_integer(self.window) or self.window < 2:
            raise ValueError(
                f"window must be an integer of at least 2, or there are no neighbours; got {self.window!r}"
            )
        if not (
            len(self.size) == 2
            and all(is_integer(v) for v in self.size)
            and 2 * self.window <= self.size[0] <= self.size[1]
        ):
            raise ValueError(
                f"size must be a range low..high of at least twice the window, {2 * self.window}; got {self.size}"
            )
        if not (np.isfinite(self.shift) and self.shift > 0):
            raise ValueError(f"shift must be a positive number; got {self.shift}")
        if not is_integer(self.n_features) or self.n_features < 1:
            raise ValueError(f"n_features must be a positive integer; got {self.n_features!r}")
        require_unit_vector(self.direction, self.n_features)

    @property
    def axis(self) -> NDArray[np.float64]:
        """Unit vector along which instances are raised; the first feature by default."""
        return np.eye(self.n_features)[0] if self.direction is None else np.asarray(self.direction)

    def along(self, direction: ArrayLike | int) -> AdjacentBags:
        """The same bags, raised along another direction.

        Parameters
        ----------
        direction : int or array_like, shape (n_features,)
            A vector, or the seed of a random direction.

        Returns
        -------
        AdjacentBags
        """
        return dataclasses.replace(self, direction=unit_vector(direction, self.n_features))

    def sample(
        self,
        n_bags: int,
        *,
        training: bool = True,
        positive_fraction: float = 0.5,
        pad_to: int | None = None,
        random_state: RandomState = None,
        dtype: str | type[np.floating[Any]] | np.dtype[Any] = "float32",
    ) -> Bags:
        """Draw bags.

        Parameters
        ----------
        n_bags : int
        training : bool
            Whether negative bags are noise alone; otherwise they hold raised instances that are no neighbours.
        positive_fraction : float
            Share of positive bags, met to the nearest bag.
        pad_to : int, optional
            Lengthen every bag with noise at its end to this size.
        random_state : int, Generator, SeedSequence or None
        dtype : {"float32", "float64"}

        Returns
        -------
        Bags
            With labels, and kinds: 1 for raised instances.
        """
        precision = sampling_dtype(n_bags, positive_fraction, pad_to, dtype)
        generator = np.random.Generator(np.random.PCG64(seed_sequence(random_state)))
        n_positive = int(np.floor(n_bags * positive_fraction + 0.5))
        labels = np.zeros(n_bags, dtype=np.int64)
        labels[generator.permutation(n_bags)[:n_positive]] = 1
        drawn = generator.integers(self.size[0], self.size[1], size=n_bags, endpoint=True)
        sizes = np.maximum(drawn, pad_to or 0)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        room = drawn - self.window + 1
        first = np.floor(generator.random(n_bags) * room).astype(np.int64)
        steps = np.arange(self.window)
        together = first[:, None] + steps
        apart = _choices(generator, room, self.window) + steps  # the steps put a gap between any two of them
        chosen = np.where(labels[:, None] == 1, together, apart)
        concerned = np.ones(n_bags, dtype=bool) if not training else labels == 1
        kinds = np.zeros(int(offsets[-1]), dtype=np.int16)
        kinds[(offsets[:-1, None] + chosen)[concerned].ravel()] = 1
        instances = generator.standard_normal((len(kinds), self.n_features))
        instances[kinds == 1] += self.shift * self.axis
        return Bags._trusted(instances.astype(precision), offsets, labels, kinds)

    def oracle(self, bags: Bags) -> NDArray[np.float64]:
        """Log-likelihood ratio of a bag with a window of raised neighbours against noise: Bayes' rule of the paper.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_bags,)
        """
        evidence = self._evidence(bags)
        sums = np.convolve(evidence, np.ones(self.window), mode="valid")
        starts = np.arange(len(sums))
        inside = starts + self.window <= bags.offsets[1:][bags.bag_index[: len(sums)]]
        sums = np.where(inside, sums, -np.inf)
        total = np.logaddexp.reduceat(np.append(sums, np.full(self.window - 1, -np.inf)), bags.offsets[:-1])
        places: NDArray[np.float64] = total - np.log(bags.sizes - self.window + 1)
        return places

    def set_oracle(self, bags: Bags) -> NDArray[np.float64]:
        """The best that can be done without the order: any `window` of the instances may be the raised ones.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_bags,)
            Logarithm of the mean likelihood ratio over all subsets of `window` instances.
        """
        ratios = np.exp(self._evidence(bags))
        # elementary symmetric polynomials, all bags at once; divided by the binomials they are means and stay in range
        means = np.zeros((len(bags), self.window + 1))
        means[:, 0] = 1.0
        order = np.arange(1, self.window + 1)
        for seen in range(1, int(bags.sizes.max()) + 1):
            longer = bags.sizes >= seen
            ratio = ratios[bags.offsets[:-1][longer] + seen - 1, None]
            share = np.minimum(order / seen, 1.0)
            means[longer, 1:] = (1 - share) * means[longer, 1:] + share * ratio * means[longer, :-1]
        scores: NDArray[np.float64] = np.log(means[:, self.window])
        return scores

    def ceilings(self, bags: Bags) -> dict[str, float]:
        """AUC of both bounds on labelled bags of the training distribution.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        dict of str to float
        """
        assert bags.labels is not None
        return {
            "Bayes' rule": self.oracle_auc(bags),
            "the best rule that ignores the order": _core.auc(self.set_oracle(bags), bags.labels),
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything that determines the bags, as plain values.

        Returns
        -------
        dict
        """
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> AdjacentBags:
        """The bags that `to_dict` described.

        Parameters
        ----------
        values : dict

        Returns
        -------
        AdjacentBags
        """
        read: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**read)

    def _evidence(self, bags: Bags) -> NDArray[np.float64]:
        """Log-likelihood ratio of each instance, raised against not."""
        raised = bags.instances.astype(np.float64) @ self.axis
        evidence: NDArray[np.float64] = self.shift * raised - self.shift**2 / 2
        return evidence


def _choices(generator: np.random.Generator, room: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Ascending distinct numbers below each entry of `room`, shape (len(room), k), every subset as likely."""
    keys = generator.random((len(room), int(room.max())))
    keys[np.arange(keys.shape[1]) >= room[:, None]] = 2.0
    return np.sort(np.argsort(keys, axis=1)[:, :k], axis=1)


def build(*, window: int = 3, shift: float = 2.0, size: Range = (15, 45), n_features: int = 16) -> AdjacentBags:
    """Bags of the check.

    Parameters
    ----------
    window : int
        Number of neighbours that are raised.
    shift : float
        By how much, in standard deviations of the noise.
    size : (low, high)
        Number of instances in a bag.
    n_features : int
        Number of features, of which one is raised (the paper has 768).

    Returns
    -------
    AdjacentBags
    """
    return AdjacentBags(window, shift, tuple(size), n_features)  # type: ignore[arg-type]
