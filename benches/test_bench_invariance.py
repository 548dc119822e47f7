"""Training over environments beside a loop of torch, as the published linear unit tests write it.

The loop: one linear layer with all rows at once, derivatives of derivatives by autograd, Adam, float32, one run at a
time. Both sides get the same rows, starts and parameters, and the same number of steps. milfast trains the 20 trials of
a data set together; its time is that of all, the loop's that of one run times 20.

What bounds the logistic loss: of each row a step takes a multiply-add for each feature and pass, 6 for the exponential
function, and for each sum over the rows one for each feature. The floor is their number over the multiply-adds a second
that a matrix product of BLAS reaches in float32. Divisions, signs, range reduction and sums over blocks are not in it.
With squared error a step needs no row.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from milfast import _core

if TYPE_CHECKING:
    from collections.abc import Callable

torch = pytest.importorskip("torch", reason="the peer, torch, is absent")

N, D, TRIALS = 10_000, 10, 20
LOOP = "torch loop"
PARAMETERS = {
    "erm": (1e-3, 1e-3),
    "irmv1": (1e-3, 1e-3, 0.9),
    "iga": (1e-3, 1e-3, 1000.0),
    "and-mask": (1e-3, 1e-3, 0.9),
}
"""Learning rate, weight decay and, of the later ones, what they have of their own: the published defaults."""
MULTIPLY_ADDS = {"erm": 2 * D + 6, "irmv1": 4 * D + 6, "iga": 4 * D + 6, "and-mask": 2 * D + 6}
"""Of a row and step, with the logistic loss."""


def cause_and_effect(rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rows like those of Example1: noise differs between environments, effects of the target are features too."""
    a, b = rng.normal(size=(5, 5)) / 5, rng.normal(size=(5, 5)) / 5
    xs, ys = [], []
    for sigma in (0.1, 1.5, 2.0):
        causes = sigma * rng.normal(size=(N, 5))
        target = causes @ a + sigma * rng.normal(size=(N, 5))
        xs.append(np.hstack([causes, target @ b + rng.normal(size=(N, 5))]).astype(np.float32))
        ys.append(target.sum(1))
    return xs, ys


def cows_and_camels(rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rows like those of Example2: the animal is hard to see, and the background mostly goes with it."""
    xs, ys = [], []
    for p, share in ((0.95, 0.3), (0.97, 0.5), (0.99, 0.7)):
        animal = np.where(rng.random(N) < share, 1.0, -1.0)
        background = np.where(rng.random(N) < p, animal, -animal)
        causes = 0.01 * (animal[:, None] + rng.normal(size=(N, 5)) / np.sqrt(10))
        xs.append(np.hstack([causes, background[:, None] + rng.normal(size=(N, 5)) / np.sqrt(10)]).astype(np.float32))
        ys.append((causes.sum(1) > 0).astype(np.float64))
    return xs, ys


def small_margin(rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rows like those of Example3: classes a little apart in the causes, far apart elsewhere in each environment."""
    xs, ys = [], []
    for _ in range(3):
        label = np.repeat([0.0, 1.0], N // 2)
        centre = np.append(np.full(5, 0.1), rng.normal(size=5))
        xs.append(((1 - 2 * label)[:, None] * centre + 0.1 * rng.normal(size=(N, D))).astype(np.float32))
        ys.append(label)
    return xs, ys


PROBLEMS = {
    "cause_and_effect": (cause_and_effect, "regression"),
    "cows_and_camels": (cows_and_camels, "classification"),
    "small_margin": (small_margin, "classification"),
}


class Loop:
    """Full-batch training of one linear layer."""

    def __init__(self, xs: list[np.ndarray], ys: list[np.ndarray], task: str, learner: str) -> None:
        self.data = [
            (torch.tensor(x), torch.tensor(y, dtype=torch.float32)[:, None]) for x, y in zip(xs, ys, strict=True)
        ]
        self.pooled = [torch.cat(part) for part in zip(*self.data, strict=True)]
        self.loss = torch.nn.MSELoss() if task == "regression" else torch.nn.BCEWithLogitsLoss()
        self.learner = learner
        self.lr, self.decay, *self.own = PARAMETERS[learner]

    def train(self, start: np.ndarray, n_steps: int) -> np.ndarray:
        network = torch.nn.Linear(D, 1)
        with torch.no_grad():
            network.weight.copy_(torch.tensor(start[None, :D]))
            network.bias.copy_(torch.tensor(start[D:]))
        adam = torch.optim.Adam(network.parameters(), lr=self.lr, weight_decay=self.decay)
        for _ in range(n_steps):
            if self.learner == "and-mask":
                self.masked_step(network)
            else:
                adam.zero_grad()
                getattr(self, self.learner)(network).backward()
                adam.step()
        with torch.no_grad():
            return np.append(network.weight.numpy(), network.bias.numpy())

    def erm(self, network: Any) -> Any:
        x, y = self.pooled
        return self.loss(network(x), y)

    def irmv1(self, network: Any) -> Any:
        scale, offset = torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)
        risks = [self.loss(network(x) * scale + offset, y) for x, y in self.data]
        slopes = [torch.autograd.grad(risk, [scale, offset], create_graph=True) for risk in risks]
        penalty = sum(slope.pow(2).sum() for pair in slopes for slope in pair)
        return (1 - self.own[0]) * sum(risks) / len(risks) + self.own[0] * penalty

    def iga(self, network: Any) -> Any:
        risks = [self.loss(network(x), y) for x, y in self.data]
        gradients = [torch.autograd.grad(risk, network.parameters(), create_graph=True) for risk in risks]
        mean_risk = sum(risks) / len(risks)
        mean = torch.autograd.grad(mean_risk, network.parameters(), create_graph=True)
        penalty = sum((g - m).pow(2).sum() for gradient in gradients for g, m in zip(gradient, mean, strict=True))
        return mean_risk + self.own[0] * penalty

    def masked_step(self, network: Any) -> None:
        gradients = [
            torch.autograd.grad(self.loss(network(x), y), [network.weight, network.bias]) for x, y in self.data
        ]
        with torch.no_grad():
            both = [torch.cat([w / w.norm() for w, _ in gradients]), torch.stack([b for _, b in gradients])]
            for parameter, all_environments in zip([network.weight, network.bias], both, strict=True):
                agreed = all_environments.sign().sum(0).abs() > self.own[0] * len(self.data)
                step = (agreed * all_environments.mean(0)).reshape(parameter.shape)
                parameter.copy_(parameter - self.lr * step - self.lr * self.decay * parameter)


def floor(steps: int, learner: str) -> float:
    """Seconds that the multiply-adds of all trials take at the speed of a matrix product."""
    n = 768
    a = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
    out = np.empty_like(a)
    fastest = min(seconds_of(lambda: np.matmul(a, a, out=out)) for _ in range(15))
    return TRIALS * steps * 3 * N * MULTIPLY_ADDS[learner] * fastest / n**3


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@pytest.mark.parametrize("learner", PARAMETERS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_training(race: Any, problem: str, learner: str) -> None:
    draw, task = PROBLEMS[problem]
    rng = np.random.default_rng(0)
    xs, ys = draw(rng)
    environments = _core.environments_from_samples(xs, ys, task)
    loop = Loop(xs, ys, task, learner)
    starts = rng.uniform(-1, 1, size=(TRIALS, D + 1)) / np.sqrt(D)
    parameters = np.tile(PARAMETERS[learner], (TRIALS, 1))

    def ours(steps: int) -> np.ndarray:
        return environments.train(learner, parameters, starts, steps)["theta"]

    torch.set_num_threads(1)
    np.testing.assert_allclose(ours(25)[3], loop.train(starts[3], 25), rtol=0, atol=2e-4)
    steps, loop_steps = (2000, 8) if task == "regression" else (10, 8)
    bound = None if task == "regression" else floor(steps, learner)
    race(
        f"invariance_{problem}_{learner}",
        lambda: ours(steps),
        LOOP,
        lambda: loop.train(starts[0], loop_steps),
        rounds=9,
        enough=0,
        peer_scale=TRIALS * steps / loop_steps,
        floor=bound,
    )
