"""Example3: a small invariant margin beside large spurious ones (classification)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.invariance.gaussian import positive
from milfast.invariance.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.invariance.sources import Source

    Vector = NDArray[np.float64]

#: Mean of each invariant feature for label 0; its negative for label 1.
MARGIN = 0.1
#: Standard deviation of all features.
DEVIATION = 0.1


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Example3(Problem):
    """Small margin.

    Half of the rows have label 0, x_inv around 0.1 and x_spu around a mean mu_e of their environment; the others label
    1 and both signs turned round. All features have standard deviation 0.1, so that x_spu tells the label without error
    within an environment, and nothing in the test.

    Attributes
    ----------
    means : ndarray of float64, shape (n_env, d_spu)
        mu_e, standard normal numbers.
    """

    task: ClassVar[str] = "classification"
    _fewest: ClassVar[int] = 2

    means: Vector

    @classmethod
    def _parameters(cls, source: Source, d_inv: int, d_spu: int, n_env: int) -> dict[str, Any]:
        drawn = [source.array(source.normal(1, d_spu)) for _ in range(n_env)]
        return {"means": np.concatenate(drawn).astype(np.float64)}

    @property
    def invariant_risk(self) -> Vector:
        """Error of the best predictor that uses x_inv only: Phi(-sqrt(d_inv)).

        Examples
        --------
        >>> from milfast.invariance import make_problem
        >>> make_problem("Example3").invariant_risk.round(5).tolist()
        [0.01267, 0.01267, 0.01267]
        """
        best = positive(np.array(-MARGIN * math.sqrt(self.d_inv)), np.array(DEVIATION))
        return np.repeat(best, self.n_env)

    @property
    def _shortcut(self) -> Vector:
        return np.asarray(-self.means.sum(0))

    def _rows(self, source: Source, n: int, e: int, shuffled: bool) -> tuple[Any, Any]:
        half = n // 2
        margin = source.constant(np.full((1, self.d_inv), MARGIN))
        mean = source.constant(self.means[e : e + 1])
        invariant = [source.normal(half, self.d_inv) * DEVIATION + margin]
        invariant.append(source.normal(half, self.d_inv) * DEVIATION - margin)
        spurious = [source.normal(half, self.d_spu) * DEVIATION + mean]
        spurious.append(source.normal(half, self.d_spu) * DEVIATION - mean)
        rows = source.under(*map(source.beside, invariant, spurious))
        if shuffled:
            rows[:, self.d_inv :] = rows[source.permutation(2 * half), self.d_inv :]
        return rows, source.constant(np.repeat([0.0, 1.0], half))

    def _population(self, core: Any, oracle: bool) -> Any:
        return core.environments_from_mixtures(*self._mixtures(oracle))

    def _mixtures(self, oracle: bool) -> tuple[Vector, NDArray[np.int64], Vector, Vector]:
        """Probabilities and labels (n_env, n_components), means, and the covariance that all components share."""
        labels = np.array([0, 1, 0, 1] if oracle else [0, 1])
        spurious = np.array([1.0, 1.0, -1.0, -1.0] if oracle else [1.0, -1.0])
        means = np.empty((self.n_env, len(labels), self.n_features))
        means[..., : self.d_inv] = (MARGIN * (1 - 2 * labels))[:, None]
        means[..., self.d_inv :] = spurious[:, None] * self.means[:, None, :]
        shape = (self.n_env, len(labels))
        return (
            np.full(shape, 1 / len(labels)),
            np.broadcast_to(labels, shape).copy(),
            np.asarray(means @ self.scramble),
            DEVIATION**2 * (self.scramble.T @ self.scramble),
        )

    def _test_risk(self, w_inv: Vector, w_spu: Vector, intercept: Vector) -> Vector:
        return self._errors(w_inv, w_spu, intercept, (1.0, -1.0))

    def _training_risk(self, w_inv: Vector, w_spu: Vector, intercept: Vector) -> Vector:
        return self._errors(w_inv, w_spu, intercept, (1.0,))

    def _errors(self, w_inv: Vector, w_spu: Vector, intercept: Vector, signs: tuple[float, ...]) -> Vector:
        """Share of wrong labels where x_spu has the sign of its class, times each of `signs` equally often."""
        deviation = (DEVIATION * np.sqrt((w_inv**2).sum(-1) + (w_spu**2).sum(-1)))[..., None]
        invariant = MARGIN * w_inv.sum(-1)[..., None]
        bias = intercept[..., None]
        wrong = []
        for sign in signs:
            spurious = sign * (w_spu @ self.means.T)
            wrong.append(positive(invariant + spurious + bias, deviation))
            wrong.append(1 - positive(-invariant - spurious + bias, deviation))
        return np.asarray(np.mean(wrong, axis=0))

    def _variances(self, w_inv: Vector, w_spu: Vector) -> tuple[Vector, Vector]:
        invariant = MARGIN**2 * w_inv.sum(-1) ** 2 + DEVIATION**2 * (w_inv**2).sum(-1)
        spurious = (w_spu @ self.means.T) ** 2 + DEVIATION**2 * (w_spu**2).sum(-1)[..., None]
        return np.broadcast_to(invariant[..., None], spurious.shape), spurious
