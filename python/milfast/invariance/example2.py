"""Example2: cows and camels, told apart by tiny animals on large backgrounds (classification)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.invariance.gaussian import disagree
from milfast.invariance.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.invariance.sources import Source

    Vector = NDArray[np.float64]

#: Of the first environments: how often animal and background match, and the share of cows.
MATCH = (0.95, 0.97, 0.99)
COWS = (0.3, 0.5, 0.7)
#: Of the four components, cow on grass, cow on sand, camel on sand, camel on grass: 1 for a cow, 1 for grass.
ANIMAL = np.array([1.0, 1.0, -1.0, -1.0])
BACKGROUND = np.array([1.0, -1.0, -1.0, 1.0])
#: Animals are this much smaller than backgrounds.
SMALL = 1e-2
#: Variance of a feature around the mean of its component, before animals are made small.
NOISE = 0.1


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Example2(Problem):
    """Cows and camels.

    Cows stand on grass and camels on sand, but for a few. x_inv = 0.01 (+-1 for the animal + noise), x_spu = +-1 for
    the background + noise, noise of variance 0.1, and the label is 1 where the sum of x_inv is above 0. Both tell the
    label; the background does with far larger margins, and not in the test.

    Attributes
    ----------
    match : ndarray of float64, shape (n_env,)
        Share of rows whose background is the animal's own: 0.95, 0.97 and 0.99, then uniform in [0.9, 1].
    cows : ndarray of float64, shape (n_env,)
        Share of cows: 0.3, 0.5 and 0.7, then uniform in [0.3, 0.7].
    """

    task: ClassVar[str] = "classification"

    match: Vector
    cows: Vector

    @classmethod
    def _parameters(cls, source: Source, d_inv: int, d_spu: int, n_env: int) -> dict[str, Any]:
        drawn = [(source.uniform(0.9, 1), source.uniform(0.3, 0.7)) for _ in range(len(MATCH), n_env)]
        return {
            "match": np.array([*MATCH[:n_env], *(match for match, _ in drawn)]),
            "cows": np.array([*COWS[:n_env], *(cows for _, cows in drawn)]),
        }

    @property
    def invariant_risk(self) -> Vector:
        """Error of the best predictor that uses x_inv only: 0, since the label is the sign of their sum."""
        return np.zeros(self.n_env)

    @property
    def _shortcut(self) -> Vector:
        return np.ones(self.d_spu)

    @property
    def probabilities(self) -> Vector:
        """Of cow on grass, cow on sand, camel on sand and camel on grass, of shape (n_env, 4)."""
        match, cows = self.match, self.cows
        return np.stack([match * cows, (1 - match) * cows, match * (1 - cows), (1 - match) * (1 - cows)], axis=1)

    @property
    def grass(self) -> Vector:
        """Share of rows on grass, of shape (n_env,)."""
        return self.match * self.cows + (1 - self.match) * (1 - self.cows)

    @property
    def _test_cut(self) -> int:
        """The first column that is permuted in the test."""
        return self.d_inv if self.test_shuffle == "invariant" else self.d_spu

    def _rows(self, source: Source, n: int, e: int, shuffled: bool) -> tuple[Any, Any]:
        match, cows = float(self.match[e]), float(self.cows[e])
        weights = (
            source.constant(np.array([match, 1 - match] * 2)) * source.constant(np.array([cows] * 2 + [1 - cows] * 2))
        ).tolist()
        component = source.components(weights, n)
        animals, backgrounds = (
            source.normal(n, columns) / math.sqrt(10) + source.constant(np.outer(means, np.ones(columns)))[component]
            for means, columns in ((ANIMAL, self.d_inv), (BACKGROUND, self.d_spu))
        )
        rows = source.beside(animals * SMALL, backgrounds)
        if shuffled:
            cut = self._test_cut
            rows[:, cut:] = rows[source.permutation(n), cut:]
        return rows, source.sums(rows[:, : self.d_inv]) > 0

    @property
    def has_population(self) -> bool:
        """Whether `population` has the Oracle's distribution too: not where the test mixes the animals of two rows."""
        return self._test_cut >= self.d_inv

    def _population(self, core: Any, oracle: bool) -> Any:
        return core.environments_from_mixtures(*self._mixtures(oracle))

    def _mixtures(self, oracle: bool) -> tuple[Vector, NDArray[np.int64], Vector, Vector]:
        """Probabilities and labels (n_env, n_components), means, and the covariance that all components share."""
        if not oracle:
            probabilities, animal = self.probabilities, ANIMAL
            means = _means(animal, BACKGROUND, self.d_inv, self.d_spu)
        else:
            cut = self._test_cut
            if not self.has_population:
                raise ValueError(
                    "the test shuffle of 2021 mixes the animals of two rows where d_spu < d_inv, so that no mixture "
                    "has the label; draw rows, or take test_shuffle='invariant'"
                )
            here, probabilities = np.arange(4), self.probabilities
            if cut == self.d_inv:  # no background stays with its animal
                here, probabilities = np.array([0, 2]), np.stack([self.cows, 1 - self.cows], axis=1)
            first, there = np.repeat(here, 2), np.tile([1.0, -1.0], len(here))
            grass = self.grass[:, None]
            probabilities = np.repeat(probabilities, 2, axis=1) * np.where(there > 0, grass, 1 - grass)
            animal = ANIMAL[first]
            means = _means(animal, there, self.d_inv, self.d_spu)
            means[:, self.d_inv : cut] = BACKGROUND[first][:, None]
        labels = np.broadcast_to((animal > 0) & (self.d_inv > 0), probabilities.shape).astype(np.int64)
        noise = np.repeat([NOISE * SMALL**2, NOISE], [self.d_inv, self.d_spu])
        return (
            probabilities,
            labels,
            np.broadcast_to(means @ self.scramble, (self.n_env, *means.shape)).copy(),
            self.scramble.T @ (noise[:, None] * self.scramble),
        )

    def _test_risk(self, w_inv: Vector, w_spu: Vector, intercept: Vector) -> Vector:
        return self._errors(w_inv, w_spu, intercept, self._test_cut)

    def _training_risk(self, w_inv: Vector, w_spu: Vector, intercept: Vector) -> Vector:
        return self._errors(w_inv, w_spu, intercept, self.n_features)

    def _errors(self, w_inv: Vector, w_spu: Vector, intercept: Vector, cut: int) -> Vector:
        """Share of wrong labels where columns from `cut` on come from another row, drawn independently."""
        kept = min(cut, self.d_inv)
        moved = max(cut - self.d_inv, 0)
        here, there = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
        probabilities = self.probabilities[:, here] * self.probabilities[:, there]
        means = (
            SMALL * (ANIMAL[here] * w_inv[..., :kept].sum(-1)[..., None])
            + SMALL * (ANIMAL[there] * w_inv[..., kept:].sum(-1)[..., None])
            + BACKGROUND[here] * w_spu[..., :moved].sum(-1)[..., None]
            + BACKGROUND[there] * w_spu[..., moved:].sum(-1)[..., None]
            + intercept[..., None]
        )
        label_means = SMALL * (kept * ANIMAL[here] + (self.d_inv - kept) * ANIMAL[there])
        # the noise of the label's sum, and what a predictor has of it and beside it
        label_deviation = SMALL * math.sqrt(NOISE * self.d_inv)
        middle = w_inv.mean(-1) if self.d_inv else np.zeros(w_inv.shape[:-1])
        beside = SMALL**2 * ((w_inv - middle[..., None]) ** 2).sum(-1) + (w_spu**2).sum(-1)
        wrong = disagree(
            means,
            np.sqrt(NOISE * beside)[..., None],
            label_means,
            label_deviation,
            (middle * label_deviation)[..., None],
        )
        total: Vector = wrong @ probabilities.T
        return total

    def _variances(self, w_inv: Vector, w_spu: Vector) -> tuple[Vector, Vector]:
        parts = []
        for weights, share, scale in ((w_inv, self.cows, SMALL), (w_spu, self.grass, 1.0)):
            between = 4 * share * (1 - share) * weights.sum(-1)[..., None] ** 2
            parts.append(scale**2 * (between + NOISE * (weights**2).sum(-1)[..., None]))
        return parts[0], parts[1]


def _means(animal: Vector, background: Vector, d_inv: int, d_spu: int) -> Vector:
    return np.concatenate([np.outer(SMALL * animal, np.ones(d_inv)), np.outer(background, np.ones(d_spu))], axis=1)
