"""What learners of invariance step along: against automatic differentiation, differences, and a million rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal
from torch.nn.functional import binary_cross_entropy_with_logits

from milfast import _core

if TYPE_CHECKING:
    from collections.abc import Callable

torch.set_num_threads(1)

D, ROWS, N_ENV = 10, 200, 3
P = D + 1
Rows = list[tuple[torch.Tensor, torch.Tensor]]
LEARNERS = tuple(_core.invariance_learners())

#: Values of the parameters that learners have beside the learning rate and the weight decay.
VALUES = {
    "irmv1": (0.7,),
    "iga": (30.0,),
    "and-mask": (0.9,),
    "v-rex": (5.0,),
    "group-dro": (0.3,),
    "eqrm": (0.8, 0.0),
    "ib-erm": (0.4,),
    "ib-irm": (0.6, 0.3),
    "sd": (0.2,),
    "coral": (2.0,),
    "fishr": (50.0, 0.9, 0.0),
    "irm-domainbed": (20.0, 0.0),
    "v-rex-domainbed": (7.0, 0.0),
    "and-mask-domainbed": (0.3,),
    "eqrm-domainbed": (0.8, 0.0, 1e-3),
}


def rows_of(seed: int, task: str, n_env: int = N_ENV, n: tuple[int, ...] = (ROWS, ROWS, ROWS)) -> Rows:
    """Rows in float32, as float64 tensors: environments of different scales, means and sizes."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal(D) / math.sqrt(D)
    rows = []
    for e in range(n_env):
        x = (rng.standard_normal((n[e], D)) * rng.uniform(0.3, 2.0, D) + 0.5 * rng.standard_normal(D)).astype(
            np.float32
        )
        y = x @ weights + (0.3 + e) * rng.standard_normal(n[e])
        y = y > 0 if task == "classification" else y
        rows.append((torch.from_numpy(x).double(), torch.from_numpy(y.astype(np.float32)).double()))
    return rows


def environments(rows: Rows, task: str) -> _core.Environments:
    return _core.environments_from_samples(
        [x.numpy().astype(np.float32) for x, _ in rows], [y.numpy() for _, y in rows], task, squares=True
    )


def logit(theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return x @ theta[:-1] + theta[-1]


def losses(theta: torch.Tensor, rows: Rows, task: str) -> list[torch.Tensor]:
    """The mean loss of each environment."""
    if task == "regression":
        return [((logit(theta, x) - y) ** 2).mean() for x, y in rows]
    return [binary_cross_entropy_with_logits(logit(theta, x), y) for x, y in rows]


def pooled(theta: torch.Tensor, rows: Rows, task: str) -> torch.Tensor:
    return losses(theta, [(torch.cat([x for x, _ in rows]), torch.cat([y for _, y in rows]))], task)[0]


def mean(values: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(values).mean()


def variance(values: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(values).var(unbiased=False)


def dummies(theta: torch.Tensor, rows: Rows, task: str) -> list[torch.Tensor]:
    """Derivatives of each environment's risk by a scale and an offset of the output."""
    one = torch.ones((), dtype=theta.dtype, requires_grad=True)
    zero = torch.zeros((), dtype=theta.dtype, requires_grad=True)
    moved = torch.cat([theta[:-1] * one, (theta[-1] * one + zero)[None]])
    return [
        torch.stack(torch.autograd.grad(loss, (one, zero), create_graph=True)) for loss in losses(moved, rows, task)
    ]


def irmv1(theta: torch.Tensor, rows: Rows, task: str, lam: float) -> torch.Tensor:
    penalty = sum((g**2).sum() for g in dummies(theta, rows, task))
    return (1 - lam) * mean(losses(theta, rows, task)) + lam * penalty


def iga(theta: torch.Tensor, rows: Rows, task: str, penalty: float) -> torch.Tensor:
    risks = losses(theta, rows, task)
    gradients = [torch.autograd.grad(risk, theta, create_graph=True)[0] for risk in risks]
    centre = torch.autograd.grad(mean(risks), theta, create_graph=True)[0]
    distances = torch.stack([((g - centre) ** 2).sum() for g in gradients])
    return mean(risks) + penalty * distances.sum()


def group_dro(theta: torch.Tensor, rows: Rows, task: str, eta: float) -> torch.Tensor:
    risks = torch.stack(losses(theta, rows, task))
    q = torch.ones(len(rows), dtype=theta.dtype) * (eta * risks.detach()).exp()
    return risks @ (q / q.sum())


class Kernels:
    """Gaussian kernels at risks with the bandwidth of EQRM's authors."""

    def __init__(self, risks: list[torch.Tensor]) -> None:
        self.risks = torch.sort(torch.stack(risks)).values
        self.width = 1.06 * self.risks.std() * len(risks) ** -0.2

    def below(self, v: torch.Tensor) -> torch.Tensor:
        return Normal(self.risks, self.width).cdf(v).mean()

    def bisected(self, q: float) -> torch.Tensor:
        """As in the authors' code: derivatives go through the ends of the bisection."""
        level = torch.tensor(q, dtype=torch.float64)
        ends = [Normal(self.risks[i], self.width).icdf(level) for i in (0, -1)]
        k = 0.5 * (ends[0] + ends[1])
        for _ in range(32):
            ends[int(self.below(k) > q)] = k
            following = 0.5 * (ends[0] + ends[1])
            if following == k:
                break
            k = following
        return k

    def quantile(self, q: float) -> torch.Tensor:
        """The value a share q lies below; one step of Newton makes a root one that can be differentiated."""
        low, high = (
            self.risks[0].detach() - 50 * self.width.detach(),
            self.risks[-1].detach() + 50 * self.width.detach(),
        )
        for _ in range(200):
            v = 0.5 * (low + high)
            low, high = (low, v) if self.below(v) > q else (v, high)
        density = Normal(self.risks, self.width).log_prob(v).exp().mean().detach()
        return v - (self.below(v) - q) / density


def eqrm(theta: torch.Tensor, rows: Rows, task: str, q: float, _burn_in: float) -> torch.Tensor:
    kernels = Kernels(losses(theta, rows, task))
    if q < 0:
        return (kernels.risks + kernels.width * math.sqrt(-2 * q)).mean()
    return kernels.quantile(q)


def eqrm_domainbed(theta: torch.Tensor, rows: Rows, task: str, q: float, _burn_in: float, _lr: float) -> torch.Tensor:
    return eqrm(theta, rows, task, q, 0) if q < 0 else Kernels(losses(theta, rows, task)).bisected(q)


def ib_erm(theta: torch.Tensor, rows: Rows, task: str, bottleneck: float) -> torch.Tensor:
    return pooled(theta, rows, task) + bottleneck * torch.cat([logit(theta, x) for x, _ in rows]).var()


def ib_irm(theta: torch.Tensor, rows: Rows, task: str, lam: float, bottleneck: float) -> torch.Tensor:
    return irmv1(theta, rows, task, lam) + bottleneck * mean([logit(theta, x).var() for x, _ in rows])


def sd(theta: torch.Tensor, rows: Rows, task: str, penalty: float) -> torch.Tensor:
    return pooled(theta, rows, task) + penalty * (torch.cat([logit(theta, x) for x, _ in rows]) ** 2).mean()


def coral(theta: torch.Tensor, rows: Rows, task: str, penalty: float) -> torch.Tensor:
    logits = [logit(theta, x) for x, _ in rows]
    pairs = [
        (a.mean() - b.mean()) ** 2 + (a.var() - b.var()) ** 2 for i, a in enumerate(logits) for b in logits[i + 1 :]
    ]
    return mean(losses(theta, rows, task)) + penalty * mean(pairs)


def gradient_variances(theta: torch.Tensor, rows: Rows, task: str) -> torch.Tensor:
    """Variances of the derivatives of single rows' losses, (E, p)."""
    out = []
    for x, y in rows:
        z = logit(theta, x)
        residual = 2 * (z - y) if task == "regression" else torch.sigmoid(z) - y
        out.append((residual[:, None] * torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], 1)).var(0, unbiased=False))
    return torch.stack(out)


def fishr(theta: torch.Tensor, rows: Rows, task: str, penalty: float, _ema: float, _anneal: float) -> torch.Tensor:
    v = gradient_variances(theta, rows, task)
    return pooled(theta, rows, task) + penalty * ((v - v.mean(0)) ** 2).mean()


def irm_domainbed(theta: torch.Tensor, rows: Rows, task: str, penalty: float, _anneal: float) -> torch.Tensor:
    return mean(losses(theta, rows, task)) + penalty * mean([g[0] ** 2 for g in dummies(theta, rows, task)])


def v_rex(theta: torch.Tensor, rows: Rows, task: str, penalty: float, _anneal: float = 0) -> torch.Tensor:
    risks = losses(theta, rows, task)
    return mean(risks) + penalty * variance(risks)


OBJECTIVES: dict[str, Callable[..., torch.Tensor]] = {
    "erm": pooled,
    "irmv1": irmv1,
    "iga": iga,
    "v-rex": v_rex,
    "group-dro": group_dro,
    "eqrm": eqrm,
    "ib-erm": ib_erm,
    "ib-irm": ib_irm,
    "sd": sd,
    "coral": coral,
    "fishr": fishr,
    "irm-domainbed": irm_domainbed,
    "v-rex-domainbed": v_rex,
    "eqrm-domainbed": eqrm_domainbed,
}


def and_mask(gradients: torch.Tensor, tau: float) -> torch.Tensor:
    """The linear unit tests' step, from gradients (E, p)."""
    scaled = torch.cat([gradients[:, :-1] / gradients[:, :-1].norm(dim=1, keepdim=True), gradients[:, -1:]], 1)
    return (scaled.sign().sum(0).abs() > tau * len(gradients)) * scaled.mean(0)


def and_mask_domainbed(gradients: torch.Tensor, tau: float) -> torch.Tensor:
    """DomainBed's, for the weights and for the bias."""
    mask = (gradients.sign().mean(0).abs() >= tau).double()
    parts = [slice(0, -1), slice(-1, None)]
    return torch.cat([(mask * gradients.mean(0))[part] / (1e-10 + mask[part].mean()) for part in parts])


MASKS = {"and-mask": and_mask, "and-mask-domainbed": and_mask_domainbed}


def by_autograd(learner: str, theta: np.ndarray, rows: Rows, task: str, values: tuple[float, ...]) -> np.ndarray:
    at = torch.tensor(theta, requires_grad=True)
    if learner in MASKS:
        each = torch.stack([torch.autograd.grad(risk, at, retain_graph=True)[0] for risk in losses(at, rows, task)])
        return MASKS[learner](each, *values).numpy()
    gradient = torch.autograd.grad(OBJECTIVES[learner](at, rows, task, *values), at)[0]
    return gradient.numpy()


def step_along(data: _core.Environments, learner: str, theta: np.ndarray, values: tuple[float, ...]) -> np.ndarray:
    return data.objective_gradient(learner, [[1e-3, 0.0, *values]], theta[None])[0]


def test_every_learner_is_tried() -> None:
    assert {*OBJECTIVES, *MASKS} == set(LEARNERS)
    assert set(VALUES) == set(LEARNERS) - {"erm"}
    for learner, names in _core.invariance_learners().items():
        assert names[:2] == ("lr", "weight_decay")
        assert len(names) == 2 + len(VALUES.get(learner, ()))


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_gradients_are_those_of_autograd(learner: str, task: str) -> None:
    for seed in range(12):
        sizes = (ROWS, ROWS, ROWS) if seed % 3 else (ROWS, ROWS // 2, 57)
        rows = rows_of(seed, task, n=sizes)
        theta = np.random.default_rng(1000 + seed).standard_normal(P) * (0.2, 1.0, 3.0)[seed % 3]
        got = step_along(environments(rows, task), learner, theta, VALUES.get(learner, ()))
        want = by_autograd(learner, theta, rows, task, VALUES.get(learner, ()))
        assert np.abs(got - want).max() <= 1e-10 * np.abs(want).max(), (seed, got, want)


@pytest.mark.parametrize("learner", LEARNERS)
def test_more_and_fewer_environments(learner: str) -> None:
    for n_env in (2, 5, 11):
        rows = rows_of(n_env, "classification", n_env, (90,) * n_env)
        theta = np.random.default_rng(n_env).standard_normal(P)
        got = step_along(environments(rows, "classification"), learner, theta, VALUES.get(learner, ()))
        want = by_autograd(learner, theta, rows, "classification", VALUES.get(learner, ()))
        assert np.abs(got - want).max() <= 1e-10 * np.abs(want).max(), (n_env, got, want)


@pytest.mark.parametrize("learner", ["eqrm", "eqrm-domainbed"])
@pytest.mark.parametrize("q", [-1000.0, -0.7, 0.05, 0.5, 0.999])
def test_levels_of_eqrm(learner: str, q: float) -> None:
    rows = rows_of(7, "regression")
    theta = np.random.default_rng(7).standard_normal(P)
    values = (q, *VALUES[learner][1:])
    got = step_along(environments(rows, "regression"), learner, theta, values)
    want = by_autograd(learner, theta, rows, "regression", values)
    assert np.abs(got - want).max() <= 1e-10 * np.abs(want).max()


@pytest.mark.parametrize("learner", LEARNERS)
def test_one_environment(learner: str) -> None:
    """Penalties on differences are gone; where nothing varies the quantile is the mean."""
    rows = rows_of(3, "regression", 1)
    theta = np.random.default_rng(3).standard_normal(P)
    values = VALUES.get(learner, ())
    got = step_along(environments(rows, "regression"), learner, theta, values)
    if learner.startswith("eqrm") or learner == "coral":
        want = by_autograd("erm", theta, rows, "regression", ())
    else:
        want = by_autograd(learner, theta, rows, "regression", values)
    assert np.abs(got - want).max() <= 1e-10 * np.abs(want).max()


def test_gradients_and_risks_of_environments() -> None:
    for task, limit in (("regression", 1e-12), ("classification", 2e-6)):  # rows of classes pass by in float32
        rows = rows_of(5, task)
        theta = np.random.default_rng(5).standard_normal((4, P))
        data = environments(rows, task)
        for t, risks, gradients in zip(theta, data.risks(theta), data.gradients(theta), strict=True):
            at = torch.tensor(t, requires_grad=True)
            want = losses(at, rows, task)
            np.testing.assert_allclose(risks, [float(risk.detach()) for risk in want], rtol=limit)
            for e, risk in enumerate(want):
                exact = torch.autograd.grad(risk, at)[0].numpy()
                assert np.abs(gradients[e] - exact).max() <= limit * max(1.0, np.abs(exact).max())


def by_torch(learner: str, rows: Rows, start: np.ndarray, values: tuple[float, ...], steps: int) -> np.ndarray:
    """Steps of torch's Adam along the objective, with what changes on the way."""
    lr, decay = 0.03, 0.01
    names = _core.invariance_learners()[learner][2:]
    named = dict(zip(names, values, strict=True))
    theta = torch.tensor(start, requires_grad=True)
    adam = torch.optim.Adam([theta], lr=lr, weight_decay=decay)
    begin = named.get("anneal", named.get("burn_in", 0))
    q = torch.ones(len(rows), dtype=torch.float64)
    averages = torch.zeros(len(rows), P, dtype=torch.float64)
    for step in range(steps):
        risks = losses(theta, rows, "regression")
        if step == begin and step:
            adam = torch.optim.Adam([theta], lr=named.get("late_lr", lr), weight_decay=decay)
        if learner == "group-dro":
            q = q * (named["eta"] * torch.stack(risks).detach()).exp()
            q = q / q.sum()
            objective = q @ torch.stack(risks)
        elif learner == "fishr":
            ema = named["ema"]
            moved = ema * averages + (1 - ema) * gradient_variances(theta, rows, "regression")
            averages = moved.detach()
            v = moved / (1 - ema)
            weight = named["penalty"] if step >= begin else 0.0
            objective = pooled(theta, rows, "regression") + weight * ((v - v.mean(0)) ** 2).mean()
        elif step < begin:
            first = (1.0, *values[1:]) if "penalty" in named else values
            objective = OBJECTIVES[learner](theta, rows, "regression", *first) if "penalty" in named else mean(risks)
        else:
            objective = OBJECTIVES[learner](theta, rows, "regression", *values)
        adam.zero_grad()
        objective.backward()
        adam.step()
    return theta.detach().numpy()


@pytest.mark.parametrize(
    ("learner", "values"),
    [
        ("irm-domainbed", (9.0, 3.0)),
        ("irm-domainbed", (9.0, 2.5)),
        ("v-rex-domainbed", (4.0, 5.0)),
        ("fishr", (0.01, 0.8, 4.0)),
        ("fishr", (0.01, 0.0, 0.0)),
        ("group-dro", (0.2,)),
        ("eqrm", (0.9, 3.0)),
        ("eqrm-domainbed", (0.9, 3.0, 1e-3)),
        ("coral", (0.3,)),
        ("ib-irm", (0.5, 0.2)),
    ],
)
def test_what_changes_during_training(learner: str, values: tuple[float, ...]) -> None:
    rows = rows_of(11, "regression")
    start = np.random.default_rng(11).standard_normal(P)
    expected = (*values[:1], 3.0) if values[1:] == (2.5,) else values  # a fraction counts as a step
    want = by_torch(learner, rows, start, expected, 9)
    run = environments(rows, "regression").train(learner, [[0.03, 0.01, *values]], start[None], 9)
    assert not run["diverged"][0]
    np.testing.assert_allclose(run["theta"][0], want, rtol=0, atol=1e-9)


# Populations


def mixture(seed: int) -> dict[str, np.ndarray]:
    """Three environments of four components; one covariance, not diagonal."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((D, D)) / math.sqrt(D)
    return {
        "probabilities": rng.dirichlet(np.full(4, 3.0), N_ENV),
        "labels": np.array([[1, 1, 0, 0], [1, 0, 0, 1], [0, 1, 0, 1]]),
        "means": 0.7 * rng.standard_normal((N_ENV, 4, D)),
        "covariance": 0.5 * root @ root.T,
    }


def drawn(parts: dict[str, np.ndarray], n: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(parts["covariance"])
    features, classes = [], []
    for probabilities, labels, means in zip(parts["probabilities"], parts["labels"], parts["means"], strict=True):
        component = rng.choice(4, n, p=probabilities)
        x = means[component] + rng.standard_normal((n, D)) @ root.T
        features.append(x.astype(np.float32))
        classes.append(labels[component])
    return features, classes


@pytest.fixture(scope="module")
def million() -> tuple[_core.Environments, _core.Environments, list[_core.Environments]]:
    """A population, a million rows of it (by environments), and the same in ten parts."""
    parts = mixture(0)
    tenths = [drawn(parts, 100_000 // N_ENV, seed) for seed in range(30)]
    together = [[np.concatenate([tenth[i][e] for tenth in tenths]) for e in range(N_ENV)] for i in (0, 1)]
    return (
        _core.environments_from_mixtures(**parts),
        _core.environments_from_samples(*together, "classification"),
        [_core.environments_from_samples(*tenth, "classification") for tenth in tenths],
    )


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_populations_are_what_rows_tend_to(
    learner: str, scale: float, million: tuple[_core.Environments, _core.Environments, list[_core.Environments]]
) -> None:
    population, sample, tenths = million
    theta = scale * np.random.default_rng(8).standard_normal(P)
    values = VALUES.get(learner, ())
    got = step_along(population, learner, theta, values)
    want = step_along(sample, learner, theta, values)
    each = np.array([step_along(tenth, learner, theta, values) for tenth in tenths])
    error = each.std(0, ddof=1) / math.sqrt(len(tenths))
    # components of a mask that is not decided would jump; here none does
    assert (np.abs(got - want) <= 5 * error + 1e-12).all(), (got - want) / error
    assert np.abs(want).max() > 10 * error.max()  # there is something to see


def test_risks_errors_and_gradients_are_what_rows_tend_to(
    million: tuple[_core.Environments, _core.Environments, list[_core.Environments]],
) -> None:
    population, sample, tenths = million
    theta = np.concatenate([[np.zeros(P)], np.random.default_rng(9).standard_normal((3, P)) * [[0.2], [1.0], [4.0]]])
    for of in ("risks", "errors", "gradients"):
        got, want = getattr(population, of)(theta), getattr(sample, of)(theta)
        error = np.std([getattr(tenth, of)(theta) for tenth in tenths], axis=0, ddof=1) / math.sqrt(len(tenths))
        assert (np.abs(got - want) <= 5 * error + 1e-6).all(), of


def difference(of: Callable[[np.ndarray], float], theta: np.ndarray) -> np.ndarray:
    """Central differences of the fourth order."""
    out = np.zeros(P)
    for j in range(P):
        step = np.zeros(P)
        step[j] = 2e-3
        out[j] = (8 * (of(theta + step) - of(theta - step)) - of(theta + 2 * step) + of(theta - 2 * step)) / 0.024
    return out


@pytest.mark.parametrize("scale", [0.3, 1.5, 6.0])  # logits narrow and wide
def test_products_with_hessians_agree_with_differences(scale: float) -> None:
    data = _core.environments_from_mixtures(**mixture(4))
    theta = scale * np.random.default_rng(4).standard_normal(P) / math.sqrt(D)

    def at(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return data.risks(t[None])[0], data.gradients(t[None])[0]

    def value_irm(t: np.ndarray) -> float:
        risks, g = at(t)
        return float(0.3 * risks.mean() + 0.7 * ((g @ t) ** 2 + g[:, -1] ** 2).sum())

    def value_iga(t: np.ndarray) -> float:
        risks, g = at(t)
        return float(risks.mean() + 30.0 * ((g - g.mean(0)) ** 2).sum())

    def value_domainbed(t: np.ndarray) -> float:
        risks, g = at(t)
        return float(risks.mean() + 20.0 * ((g @ t) ** 2).mean())

    def value_rex(t: np.ndarray) -> float:
        risks, _ = at(t)
        return float(risks.mean() + 5.0 * risks.var())

    for learner, of in (
        ("irmv1", value_irm),
        ("iga", value_iga),
        ("irm-domainbed", value_domainbed),
        ("v-rex", value_rex),
    ):
        got, want = step_along(data, learner, theta, VALUES[learner]), difference(of, theta)
        assert np.abs(got - want).max() < 1e-8 * np.abs(want).max(), (learner, got, want)


def test_normal_regressions_are_what_rows_tend_to() -> None:
    """Fourth moments of a normal population follow from the second."""
    rng = np.random.default_rng(2)
    roots = [np.tril(rng.standard_normal((D + 1, D + 1))) / 3 for _ in range(N_ENV)]
    centres = rng.standard_normal((N_ENV, D + 1)) / 2
    theta = rng.standard_normal(P)
    moments = []
    for root, centre in zip(roots, centres, strict=True):
        mean_of = np.insert(centre, D, 1.0)  # of (x, 1, y)
        moments.append(np.outer(mean_of, mean_of))
        keep = np.delete(np.arange(D + 2), D)
        moments[-1][np.ix_(keep, keep)] += root @ root.T
    all_of = np.array(moments)
    args = all_of[:, :P, :P], all_of[:, :P, P], all_of[:, P, P], np.ones(N_ENV)
    got = step_along(_core.environments_from_moments(*args, normal=True), "fishr", theta, (1.0, 0.0, 0.0))
    each = []
    for _ in range(30):
        rows = [
            rng.standard_normal((30_000, D + 1)) @ root.T + centre for root, centre in zip(roots, centres, strict=True)
        ]
        data = _core.environments_from_samples(
            [r[:, :D] for r in rows], [r[:, D] for r in rows], "regression", squares=True
        )
        each.append(step_along(data, "fishr", theta, (1.0, 0.0, 0.0)))
    error = np.std(each, axis=0, ddof=1) / math.sqrt(30)
    bias = 0.02 * np.abs(got).max()  # the square of a variance's own error
    assert (np.abs(got - np.mean(each, axis=0)) <= 5 * error + bias).all()
    with pytest.raises(ValueError, match="second moments do not tell"):
        step_along(_core.environments_from_moments(*args), "fishr", theta, (1.0, 0.0, 0.0))


def test_a_population_has_no_rows_to_lose() -> None:
    """The variance of the logit is divided by n - 1 where there are rows; weights of 1 are those of a population."""
    rows = rows_of(1, "regression")
    S = np.array([[np.mean([np.outer(r, r) for r in np.c_[x, np.ones(ROWS)]], axis=0)] for x, _ in rows])[:, 0]
    c = np.array([(np.c_[x, np.ones(ROWS)] * y.numpy()[:, None]).mean(0) for x, y in rows])
    v = np.array([float((y**2).mean()) for _, y in rows])
    theta = np.random.default_rng(1).standard_normal(P)
    plain = step_along(_core.environments_from_moments(S, c, v, np.full(N_ENV, ROWS)), "erm", theta, ())
    for learner in ("ib-erm", "ib-irm"):
        values = (0.4,) if learner == "ib-erm" else (0.0, 0.4)
        few, many = (
            step_along(_core.environments_from_moments(S, c, v, np.full(N_ENV, n)), learner, theta, values) - plain
            for n in (ROWS, 1.0)
        )
        n = ROWS * (N_ENV if learner == "ib-erm" else 1)
        np.testing.assert_allclose(few * (n - 1) / n, many, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("learner", "values", "what"),
    [
        ("v-rex", (-1.0,), "penalty must not be negative"),
        ("group-dro", (-1.0,), "eta must not be negative"),
        ("eqrm", (1.0, 0.0), "quantile must lie between 0 and 1"),
        ("eqrm", (0.0, 0.0), "quantile must lie between 0 and 1"),
        ("eqrm", (0.5, -1.0), "burn_in must not be negative"),
        ("eqrm-domainbed", (0.5, 0.0, -1.0), "late_lr must not be negative"),
        ("ib-irm", (1.5, 0.0), r"penalty_weight must lie in \[0, 1\]"),
        ("ib-irm", (0.5, -1.0), "bottleneck must not be negative"),
        ("fishr", (1.0, 1.0, 0.0), r"ema must lie in \[0, 1\)"),
        ("fishr", (1.0, 0.5, math.nan), "anneal must be finite"),
        ("and-mask-domainbed", (2.0,), r"tau must lie in \[0, 1\]"),
    ],
)
def test_values_that_make_no_sense_are_refused(learner: str, values: tuple[float, ...], what: str) -> None:
    data = _core.environments_from_mixtures(**mixture(0))
    with pytest.raises(ValueError, match=what):
        data.train(learner, [[1e-3, 0.0, *values]], np.zeros((1, P)), 1)


def test_mixtures_that_make_no_sense_are_refused() -> None:
    def refused(what: str, **changed: Any) -> None:
        with pytest.raises(ValueError, match=what):
            _core.environments_from_mixtures(**{**mixture(0), **changed})

    refused("labels must have the shape", labels=np.zeros((3, 3)))
    refused(r"labels\[0, 0\] is 2", labels=np.full((3, 4), 2))
    refused("probabilities.0. sum up to", probabilities=np.full((3, 4), 0.3))
    refused(r"means must have shape \(3, 4, d\)", means=np.zeros((3, 2, D)))
    refused("means must have shape", means=np.zeros((3, 4)))
    refused(r"covariance must have shape \(10, 10\)", covariance=np.eye(9))
    refused("covariance must not have a negative eigenvalue", covariance=np.eye(D) - 0.5)
    refused(r"means\[0, 0, 0\] is nan|NaN", means=np.full((3, 4, D), np.nan))


@pytest.mark.parametrize("learner", LEARNERS)
def test_populations_do_not_depend_on_threads_or_company(learner: str) -> None:
    data = _core.environments_from_mixtures(**mixture(6))
    rng = np.random.default_rng(6)
    start = rng.standard_normal((9, P))
    parameters = np.tile([0.01, 1e-4, *VALUES.get(learner, ())], (9, 1))
    threads = _core.get_num_threads()
    try:
        _core.set_num_threads(1)
        alone = [data.train(learner, parameters[i : i + 1], start[i : i + 1], 40)["theta"][0] for i in range(9)]
        _core.set_num_threads(3)
        together = data.train(learner, parameters, start, 40)["theta"]
    finally:
        _core.set_num_threads(threads)
    assert np.isfinite(together).all()
    np.testing.assert_array_equal(together, np.array(alone))
