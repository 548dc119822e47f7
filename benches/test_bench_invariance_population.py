"""Training on the population of a logistic problem beside numpy, all trials of a problem at once.

The peer computes the same expectations with a rule of Gauss and Hermite of 64 nodes, in arrays over trials, components
and nodes: nothing in it is a loop but the steps. Both sides make the same steps with Adam; where logits vary little the
rule is right, and so both must arrive at the same place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from milfast import _core

D, TRIALS, STEPS, FEW = 10, 20, 2000, 50
NUMPY = "numpy, 64 nodes"
PARAMETERS = {"erm": (1e-3, 1e-3), "irmv1": (1e-3, 1e-3, 0.9)}


def cows_and_camels(_rng: np.random.Generator) -> tuple[Any, ...]:
    """Example2: the animal is hard to see, and the background mostly goes with it."""
    probabilities = [
        [p * s, (1 - p) * s, p * (1 - s), (1 - p) * (1 - s)] for p, s in ((0.95, 0.3), (0.97, 0.5), (0.99, 0.7))
    ]
    means = [np.repeat([0.01 * animal, ground], 5) for animal, ground in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
    return (
        np.array(probabilities),
        np.tile([1, 1, 0, 0], (3, 1)),
        np.tile(means, (3, 1, 1)),
        np.diag(np.repeat([1e-5, 0.1], 5)),
    )


def small_margin(rng: np.random.Generator) -> tuple[Any, ...]:
    """Example3: classes a little apart in the causes, and far apart elsewhere in each environment."""
    centres = [np.append(np.full(5, 0.1), rng.standard_normal(5)) for _ in range(3)]
    means = np.array([[centre, -centre] for centre in centres])
    return np.full((3, 2), 0.5), np.tile([0, 1], (3, 1)), means, 0.01 * np.eye(D)


class InNumpy:
    """Steps of all trials."""

    def __init__(self, probabilities: Any, labels: Any, means: Any, covariance: Any, learner: str) -> None:
        self.probabilities, self.labels, self.means, self.covariance = probabilities, labels, means, covariance
        nodes, weights = np.polynomial.hermite_e.hermegauss(64)
        self.nodes, self.weights = nodes, weights / weights.sum()
        self.learner, (self.lr, self.decay, *self.own) = learner, PARAMETERS[learner]

    def direction(self, theta: np.ndarray) -> np.ndarray:
        w = theta[:, :D]
        k = w @ self.covariance
        variance = (w * k).sum(1)
        mu = np.einsum("ecd,rd->rec", self.means, w) + theta[:, D, None, None]
        s = expit(mu[..., None] + np.sqrt(variance)[:, None, None, None] * self.nodes)
        slope = s * (1 - s)
        s1 = self.probabilities * (slope @ self.weights)
        a = self.probabilities * (s @ self.weights - self.labels)
        gradients = np.concatenate(
            [np.einsum("rec,ecd->red", a, self.means) + s1.sum(2)[..., None] * k[:, None], a.sum(2)[..., None]], 2
        )
        if self.learner == "erm":
            return gradients.mean(1)
        s2 = self.probabilities * ((slope * (1 - 2 * s)) @ self.weights)
        s3 = self.probabilities * ((slope * (1 - 6 * slope)) @ self.weights)
        v = variance[:, None, None]
        along = []
        for u, t in ((s1 * mu + s2 * v, s1 + s2 * mu + s3 * v), (s1, s2)):
            part = np.einsum("rec,ecd->red", u, self.means) + t.sum(2)[..., None] * k[:, None]
            along.append(np.concatenate([part, u.sum(2)[..., None]], 2))
        scale = 2 * np.einsum("rep,rp->re", gradients, theta)[..., None]
        penalty = scale * (gradients + along[0]) + 2 * gradients[..., -1:] * along[1]
        return (1 - self.own[0]) * gradients.mean(1) + self.own[0] * penalty.sum(1)

    def train(self, theta: np.ndarray, n_steps: int) -> np.ndarray:
        m, v = np.zeros_like(theta), np.zeros_like(theta)
        for t in range(1, n_steps + 1):
            g = self.direction(theta) + self.decay * theta
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            theta = theta - self.lr / (1 - 0.9**t) * m / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        return theta


@pytest.mark.parametrize("learner", PARAMETERS)
@pytest.mark.parametrize("draw", [cows_and_camels, small_margin])
def test_population(race: Any, draw: Any, learner: str) -> None:
    rng = np.random.default_rng(0)
    problem = draw(rng)
    population, peer = _core.environments_from_mixtures(*problem), InNumpy(*problem, learner)
    start = rng.uniform(-1, 1, (TRIALS, D + 1)) / np.sqrt(D)
    parameters = np.tile(PARAMETERS[learner], (TRIALS, 1))

    def ours(steps: int) -> np.ndarray:
        return population.train(learner, parameters, start, steps)["theta"]

    np.testing.assert_allclose(ours(FEW), peer.train(start, FEW), rtol=0, atol=1e-9)
    race(
        f"invariance_population_{draw.__name__}_{learner}",
        lambda: ours(STEPS),
        NUMPY,
        lambda: peer.train(start, FEW),
        enough=0,
        peer_scale=STEPS / FEW,
    )
