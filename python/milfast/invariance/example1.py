"""Example1: cause and effect of a target whose noise differs between environments (regression)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from milfast.invariance.problem import Problem, with_bias

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.invariance.sources import Source

    Vector = NDArray[np.float64]

#: Standard deviations of the first environments.
SIGMA = (0.1, 1.5, 2.0)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Example1(Problem):
    """Cause and effect.

    Causes x_inv are normal with standard deviation sigma_e. They give hidden t = x_inv A + sigma_e noise, these give
    effects x_spu = t B + noise, and the target is the sum of t. The regression of the target on the causes is the same
    in all environments; effects tell more than causes where sigma_e is large, and nothing in the test.

    Attributes
    ----------
    sigma : ndarray of float64, shape (n_env,)
        Standard deviations, 0.1, 1.5 and 2, then 10 to the power of uniform numbers in [-2, 1].
    to_target : ndarray of float64, shape (d_inv, d_inv)
        A, standard normal numbers divided by d_inv.
    to_effects : ndarray of float64, shape (d_inv, d_spu)
        B, standard normal numbers divided by d_spu.
    """

    task: ClassVar[str] = "regression"

    sigma: Vector
    to_target: Vector
    to_effects: Vector

    @classmethod
    def _parameters(cls, source: Source, d_inv: int, d_spu: int, n_env: int) -> dict[str, Any]:
        drawn = [10 ** source.uniform(-2, 1) for _ in range(len(SIGMA), n_env)]
        return {
            "sigma": np.array([*SIGMA[:n_env], *drawn]),
            "to_target": _matrix(source, d_inv, d_inv),
            "to_effects": _matrix(source, d_inv, d_spu),
        }

    @property
    def beta(self) -> Vector:
        """Regression of the target on x_inv, of shape (d_inv,)."""
        return np.asarray(self.to_target.sum(1))

    @property
    def invariant_risk(self) -> Vector:
        """Error of the best predictor that uses x_inv only: d_inv sigma_e^2, the variance of the noise.

        Examples
        --------
        >>> from milfast.invariance import make_problem
        >>> make_problem("Example1").invariant_risk.round(4).tolist()
        [0.05, 11.25, 20.0]
        """
        return self.d_inv * self.sigma**2

    @property
    def _shortcut(self) -> Vector:
        """Least squares on x_spu, over all environments."""
        variance, with_target, _ = self._effects()
        solved: Vector = np.linalg.solve(variance.sum(0), with_target.sum(0))
        return solved

    def _rows(self, source: Source, n: int, e: int, shuffled: bool) -> tuple[Any, Any]:
        sigma = float(self.sigma[e])
        causes = source.normal(n, self.d_inv) * sigma
        hidden = source.product(causes, self.to_target) + source.normal(n, self.d_inv) * sigma
        effects = source.product(hidden, self.to_effects) + source.normal(n, self.d_spu)
        if shuffled:
            effects = effects[source.permutation(n)]
        return source.beside(causes, effects), source.sums(hidden)

    def _effects(self) -> tuple[Vector, Vector, Vector]:
        """Covariance of x_spu, its covariance with the target, and the target's variance, in each environment."""
        scale = self.sigma[:, None, None] ** 2
        hidden = scale * (self.to_target.T @ self.to_target + np.eye(self.d_inv))
        with_target = self.to_effects.T @ hidden
        variance = with_target @ self.to_effects + np.eye(self.d_spu)
        return variance, with_target.sum(-1), hidden.sum((-1, -2))

    def _moments(self, oracle: bool) -> tuple[Vector, Vector, Vector]:
        """Second moments of (x, 1), those with the target, and of the target."""
        k = self.d_inv
        variance, with_target, target = self._effects()
        scale = self.sigma[:, None, None] ** 2
        covariance = np.zeros((self.n_env, self.n_features, self.n_features))
        covariance[:, :k, :k] = scale * np.eye(k)
        covariance[:, k:, k:] = variance
        cross = np.zeros((self.n_env, self.n_features))
        cross[:, :k] = scale[:, 0] * self.beta
        if not oracle:
            covariance[:, :k, k:] = scale * (self.to_target @ self.to_effects)
            covariance[:, k:, :k] = covariance[:, :k, k:].transpose(0, 2, 1)
            cross[:, k:] = with_target
        scrambled = with_bias(self.scramble.T @ covariance @ self.scramble)
        return scrambled, np.pad(cross @ self.scramble, ((0, 0), (0, 1))), target

    def _population(self, core: Any, oracle: bool) -> Any:
        return core.environments_from_moments(*self._moments(oracle), np.ones(self.n_env), normal=True)

    def _test_risk(self, w_inv: Vector, w_spu: Vector, intercept: Vector) -> Vector:
        backwards = w_spu @ self.to_effects.T  # weights of t in w_spu . x_spu
        from_causes = backwards @ self.to_target.T
        fixed = (w_spu**2).sum(-1) + intercept**2
        scaled = ((w_inv - self.beta) ** 2).sum(-1) + (from_causes**2).sum(-1) + (backwards**2).sum(-1) + self.d_inv
        return np.asarray(scaled[..., None] * self.sigma**2 + fixed[..., None])

    def _training_risk(self, w_inv: Vector, w_spu: Vector, intercept: Vector) -> Vector:
        left = 1 - w_spu @ self.to_effects.T  # what is left of each t once w_spu . x_spu has been taken from the target
        fixed = (w_spu**2).sum(-1) + intercept**2
        scaled = ((left @ self.to_target.T - w_inv) ** 2).sum(-1) + (left**2).sum(-1)
        return np.asarray(scaled[..., None] * self.sigma**2 + fixed[..., None])

    def _variances(self, w_inv: Vector, w_spu: Vector) -> tuple[Vector, Vector]:
        invariant = (w_inv**2).sum(-1)[..., None] * self.sigma**2
        spurious = np.einsum("...i,eij,...j->...e", w_spu, self._effects()[0], w_spu)
        return invariant, spurious


def _matrix(source: Source, rows: int, columns: int) -> Vector:
    drawn = source.normal(rows, columns)
    return np.asarray(source.array(drawn / columns if columns else drawn), np.float64)
