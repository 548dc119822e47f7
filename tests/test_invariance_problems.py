"""The six linear unit tests: samples against closed forms, published constants, and torch's draws told over again."""

from __future__ import annotations

import math
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from milfast.invariance import Environment, Problem, make_problem, names, stack
from milfast.invariance.gaussian import disagree, positive
from milfast.invariance.sources import initial_weights

CLASSIFICATION = ("Example2", "Example2s", "Example3", "Example3s")
#: Sizes that differ from the usual ones, and those at the edge.
SIZES = [
    {},
    {"d_inv": 2, "d_spu": 4, "n_env": 2},
    {"d_inv": 6, "d_spu": 3, "n_env": 12},
    {"d_inv": 3, "d_spu": 5, "n_env": 1, "test_shuffle": "2021"},
    {"d_inv": 4, "d_spu": 2, "test_shuffle": "2021"},
    {"d_inv": 1, "d_spu": 1},
    {"d_spu": 0},
    {"d_inv": 0, "d_spu": 2},
]
NAMES = pytest.mark.parametrize("name", names())
SIZED = pytest.mark.parametrize("sizes", SIZES, ids=str)
RNG = pytest.mark.parametrize("rng", ["native", "torch"])


def need(rng: str) -> None:
    if rng == "torch":
        pytest.importorskip("torch")


def a_predictor(problem: Problem, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Weights under which both sorts of features matter, whatever their scale."""
    scale = np.ones(problem.n_features)
    if problem.name.startswith("Example2"):
        scale = np.repeat([30.0, 0.3], [problem.d_inv, problem.d_spu])
    weights = rng.normal(size=problem.n_features) * scale
    return np.linalg.solve(problem.scramble, weights), float(rng.normal() * 0.1)


def losses(problem: Problem, rows: Environment, coef: np.ndarray, intercept: float) -> np.ndarray:
    score = rows.X.astype(np.float64) @ coef + intercept
    return (score - rows.y) ** 2 if problem.task == "regression" else ((score > 0) != (rows.y == 1)).astype(float)


def agrees(sampled: np.ndarray, exact: float) -> bool:
    """Whether a mean of losses is as near to its expectation as chance lets it be (5 standard errors)."""
    spread = max(sampled.std(), math.sqrt(max(exact * (1 - exact), 0)) if set(np.unique(sampled)) <= {0, 1} else 0)
    return abs(sampled.mean() - exact) <= 5 * spread / math.sqrt(len(sampled)) + 2 / len(sampled) + 1e-6 * exact


def test_published_constants() -> None:
    assert make_problem("Example1").invariant_risk.mean() == pytest.approx(10.4333, abs=5e-5)
    assert make_problem("Example1s").invariant_risk == pytest.approx([0.05, 11.25, 20.0])
    shortcut = make_problem("Example2").shortcut_risk
    assert shortcut == pytest.approx([0.428, 0.5, 0.4216], abs=5e-5)
    assert shortcut.mean() == pytest.approx(0.4499, abs=5e-5)
    assert make_problem("Example2s").invariant_risk.tolist() == [0, 0, 0]
    assert make_problem("Example3").invariant_risk == pytest.approx([0.01267] * 3, abs=5e-6)
    assert make_problem("Example3s").shortcut_risk == pytest.approx([0.5] * 3)


@NAMES
@SIZED
@RNG
def test_the_exact_risk_is_what_samples_come_near_to(name: str, sizes: dict[str, Any], rng: str) -> None:
    need(rng)
    problem = make_problem(name, random_state=5, rng=rng, **sizes)
    draw = problem.draw(6000)
    generator = np.random.default_rng(1)
    for _ in range(2):
        coef, intercept = a_predictor(problem, generator)
        for split, exact in (
            (draw.train, problem.training_risk(coef, intercept)),
            (draw.validation, problem.training_risk(coef, intercept)),
            (draw.test, problem.risk(coef, intercept)),
            (draw.oracle_train, problem.training_risk(coef, intercept, oracle=True)),
            (draw.oracle_test, problem.risk(coef, intercept)),
        ):
            assert exact.shape == (problem.n_env,)
            for rows, expected in zip(split, exact, strict=True):
                assert agrees(losses(problem, rows, coef, intercept), expected)


@NAMES
@SIZED
@pytest.mark.parametrize("oracle", [False, True])
def test_the_population_has_the_moments_of_the_rows(name: str, sizes: dict[str, Any], oracle: bool) -> None:
    problem = make_problem(name, random_state=2, **sizes)
    mixed = sizes.get("test_shuffle") == "2021" and problem.d_spu < problem.d_inv
    if oracle and mixed and name.startswith("Example2"):
        with pytest.raises(ValueError, match="mixes the animals"):
            problem._mixtures(oracle)
        return
    n = 10_000
    draw = problem.draw(n)
    if problem.task == "regression":
        second, cross, square = problem._moments(oracle)
    else:
        probabilities, labels, means, covariance = problem._mixtures(oracle)
        assert probabilities.sum(1) == pytest.approx(np.ones(problem.n_env))
        wide = np.concatenate([means, np.ones((*means.shape[:2], 1))], axis=2)
        second = np.einsum("ec,eci,ecj->eij", probabilities, wide, wide)
        second[:, :-1, :-1] += covariance
        cross = np.einsum("ec,ec,eci->ei", probabilities, labels, wide)
        square = (probabilities * labels).sum(1)
    for e, rows in enumerate(draw.oracle_validation if oracle else draw.validation):
        x = np.column_stack([rows.X.astype(np.float64), np.ones(len(rows.y))])
        for found, expected, products in (
            (x.T @ x / len(x), second[e], x[:, :, None] * x[:, None, :]),
            (x.T @ rows.y / len(x), cross[e], x * rows.y[:, None]),
            ((rows.y**2).mean(), square[e], rows.y.astype(np.float64) ** 2),
        ):
            # the mixture of Example2 takes the animal for the label, which is wrong in Phi(-sqrt(10 d_inv)) of rows
            slack = 2 * norm.sf(math.sqrt(10 * problem.d_inv)) if name.startswith("Example2") and problem.d_inv else 0
            assert np.all(np.abs(found - expected) <= 5.5 * products.std(0) / math.sqrt(n) + slack + 1e-5)


@NAMES
@SIZED
@pytest.mark.parametrize("oracle", [False, True])
def test_the_engine_finds_the_same_errors_in_a_population(name: str, sizes: dict[str, Any], oracle: bool) -> None:
    """Two computations: closed forms of errors here, errors from moments or from each component in the engine."""
    problem = make_problem(name, random_state=6, **sizes)
    if oracle and name.startswith("Example2") and problem.test_shuffle == "2021" and problem.d_spu < problem.d_inv:
        with pytest.raises(ValueError, match="take test_shuffle='invariant'"):
            problem.population(oracle)
        return
    population = problem.population(oracle)
    assert (population.n_environments, population.n_features) == (problem.n_env, problem.n_features)
    assert population.task == problem.task
    generator = np.random.default_rng(3)
    predictors = [a_predictor(problem, generator) for _ in range(4)]
    theta = np.array([[*coef, intercept] for coef, intercept in predictors])
    exact = problem.training_risk(theta[:, :-1], theta[:, -1], oracle=oracle)
    # Example2's population takes the animal for the label
    slack = norm.sf(math.sqrt(10 * problem.d_inv)) if name.startswith("Example2") and problem.d_inv else 0
    assert np.all(np.abs(population.errors(theta) - exact) <= 1.01 * slack + 1e-10 * np.maximum(exact, 1))


@NAMES
def test_risks_of_many_predictors_are_those_of_each(name: str) -> None:
    problem = make_problem(name, random_state=0, n_env=4, d_spu=3)
    generator = np.random.default_rng(0)
    coef, intercept = generator.normal(size=(2, 5, 8)), generator.normal(size=5)
    for ask in (problem.risk, problem.training_risk):
        many = ask(coef, intercept)
        assert many.shape == (2, 5, 4)
        for i in range(2):
            for j in range(5):
                assert many[i, j] == pytest.approx(ask(coef[i, j], intercept[j]), rel=1e-12)
    assert problem.spurious_share(coef)[1, 2] == pytest.approx(problem.spurious_share(coef[1, 2]), rel=1e-12)


@NAMES
def test_the_spurious_share_is_that_of_the_variance(name: str) -> None:
    problem = make_problem(name, random_state=3, n_env=4, d_spu=4)
    coef, _ = a_predictor(problem, np.random.default_rng(0))
    w_inv, w_spu = problem.split(coef)
    for e, rows in enumerate(problem.draw(40_000).train):
        plain = rows.X.astype(np.float64) @ np.linalg.inv(problem.scramble)
        invariant, spurious = np.var(plain[:, :5] @ w_inv), np.var(plain[:, 5:] @ w_spu)
        assert problem.spurious_share(coef)[e] == pytest.approx(spurious / (invariant + spurious), abs=0.02)
    assert np.isnan(problem.spurious_share(np.zeros(9))).all()


@NAMES
def test_no_predictor_of_invariant_features_beats_the_invariant_optimum(name: str) -> None:
    problem = make_problem(name, random_state=0)
    weights = np.zeros((200, 10))
    weights[:, :5] = np.random.default_rng(0).normal(size=(200, 5)) + {"1": 0, "2": 1, "3": -1}[name[7]]
    risks = problem.risk(np.linalg.solve(problem.scramble, weights.T).T)
    assert (risks >= problem.invariant_risk - 1e-12).all()
    best = {"1": getattr(problem, "beta", None), "2": np.ones(5), "3": -np.ones(5)}[name[7]]
    optimum = np.linalg.solve(problem.scramble, np.append(best, np.zeros(5)))
    assert problem.risk(optimum) == pytest.approx(problem.invariant_risk, abs=1e-6)


def test_the_shortcut_of_example1_is_the_least_squares_fit_to_the_spurious_features() -> None:
    problem = make_problem("Example1", random_state=0)
    X, y, _ = stack(problem.draw(100_000).train)
    fitted = np.linalg.lstsq(X[:, 5:].astype(np.float64), y, rcond=None)[0]
    assert problem.risk(np.append(np.zeros(5), fitted)) == pytest.approx(problem.shortcut_risk, rel=0.02)


@pytest.mark.parametrize("name", [name for name in names() if make_problem(name).task == "classification"])
@pytest.mark.parametrize("power", [-1000, -600, 3, 600, 1000])
def test_labels_are_the_same_at_any_scale(name: str, power: int) -> None:
    problem = make_problem(name, random_state=2)
    coef, intercept = np.random.default_rng(0).normal(size=10), 0.3
    scale = 2.0**power
    for risk in (problem.risk, problem.training_risk):
        np.testing.assert_array_equal(risk(scale * coef, scale * intercept), risk(coef, intercept))
    np.testing.assert_array_equal(problem.spurious_share(scale * coef), problem.spurious_share(coef))
    np.testing.assert_array_equal(problem.risk(0 * coef), problem.risk(0 * coef, 0.0))


def test_predictors_that_are_not_finite_have_no_risk() -> None:
    for name in names():
        problem = make_problem(name, random_state=0)
        coef = np.ones((3, 10))
        coef[0, 3], coef[1, 7] = np.nan, np.inf
        for ask in (problem.risk, problem.training_risk):
            risks = ask(coef, [0.0, 0.0, 1.0])
            assert np.isnan(risks[:2]).all()
            assert np.isfinite(risks[2]).all()
        assert np.isnan(problem.risk(np.ones(10), np.nan)).all()
        assert np.isnan(problem.spurious_share(coef[:2])).all()


def test_a_constant_predictor_errs_on_the_other_class() -> None:
    problem = make_problem("Example2", random_state=0)
    assert problem.risk(np.zeros(10), -1.0) == pytest.approx([0.3, 0.5, 0.7])
    assert problem.risk(np.zeros(10), 1.0) == pytest.approx([0.7, 0.5, 0.3])
    assert problem.risk(np.zeros(10), 0.0) == pytest.approx([0.3, 0.5, 0.7])  # 0 is not above 0
    assert make_problem("Example3").risk(np.zeros(10), 1.0) == pytest.approx([0.5] * 3)


# the fault of 2021 ----------------------------------------------------------------------------------------------------


def test_the_shuffle_of_2021_differs_where_sizes_do_and_in_example2_only() -> None:
    for name in names():
        for d_spu in (2, 5, 8):
            now, then = (
                make_problem(name, d_spu=d_spu, random_state=1, test_shuffle=shuffle).draw(300)
                for shuffle in ("invariant", "2021")
            )
            same = name[:8] != "Example2" or d_spu == 5
            assert np.array_equal(now.test[0].X, then.test[0].X) == same
            assert np.array_equal(now.oracle_train[1].X, then.oracle_train[1].X) == same
            assert np.array_equal(now.train[2].X, then.train[2].X)


def test_a_shortcut_seems_to_have_been_dropped_under_the_shuffle_of_2021() -> None:
    """Published ERM at d_spu = 10: 0.0129 where 0.433 is right. A predictor by the background alone shows why."""
    coef = np.repeat([0.0, 1.0], [5, 10])
    right = make_problem("Example2", d_spu=10)
    faulty = make_problem("Example2", d_spu=10, test_shuffle="2021")
    assert right.risk(coef).mean() == pytest.approx(0.4499, abs=5e-4)
    left_in_place = np.repeat([0.0, 1.0, 0.0], [5, 5, 5])  # five background columns stay with their animals
    assert faulty.risk(left_in_place) == pytest.approx([0.05, 0.03, 0.01], abs=1e-6)
    assert right.risk(left_in_place) == pytest.approx(right.risk(coef), abs=1e-6)


def test_the_optimum_of_x_inv_stays_right_under_the_shuffle_of_2021() -> None:
    coef = np.repeat([1.0, 0.0], [5, 2])
    assert make_problem("Example2", d_spu=2, test_shuffle="2021").risk(coef) == pytest.approx(np.zeros(3), abs=1e-12)


# torch ----------------------------------------------------------------------------------------------------------------


def told_again(name: str, seed: int, n: int, d_inv: int, d_spu: int, n_env: int, cut: int, oracle: bool) -> list[Any]:
    """The published data, written from the description of the draws, on torch's global generator."""
    import torch

    torch.manual_seed(seed)
    number, scrambled = name[7], name.endswith("s")
    kept: list[Any] = []
    if number == "1":
        sigmas = [0.1, 1.5, 2][:n_env] + [10 ** torch.zeros(1).uniform_(-2, 1).item() for _ in range(3, n_env)]
        to_target = torch.randn(d_inv, d_inv) / d_inv
        to_effects = torch.randn(d_inv, d_spu) / d_spu
    elif number == "2":
        kept = [(0.95, 0.3), (0.97, 0.5), (0.99, 0.7)][:n_env]
        for _ in range(3, n_env):
            match = torch.zeros(1).uniform_(0.9, 1).item()
            kept.append((match, torch.zeros(1).uniform_(0.3, 0.7).item()))
    else:
        kept = [torch.randn(1, d_spu) for _ in range(n_env)]
    matrix = torch.eye(d_inv + d_spu)
    if scrambled:
        matrix = torch.linalg.qr(torch.randn(d_inv + d_spu, d_inv + d_spu)).Q
    splits = []
    for split in ("train", "validation", "test"):
        environments = []
        for e in range(n_env):
            test = oracle or split == "test"
            if number == "1":
                a = torch.randn(n, d_inv) * sigmas[e]
                t = a @ to_target + torch.randn(n, d_inv) * sigmas[e]
                b = t @ to_effects + torch.randn(n, d_spu)
                b = b[torch.randperm(n)] if test else b
                rows, y = torch.cat([a, b], dim=1), t.sum(1)
            elif number == "2":
                match, cows = kept[e]
                weights = torch.tensor([match, 1 - match, match, 1 - match]) * torch.tensor(
                    [cows, cows, 1 - cows, 1 - cows]
                )
                which = torch.multinomial(weights, n, replacement=True)
                animal = torch.tensor([1.0, 1.0, -1.0, -1.0])[which, None]
                ground = torch.tensor([1.0, -1.0, -1.0, 1.0])[which, None]
                a = (torch.randn(n, d_inv) / math.sqrt(10) + animal) * 0.01
                rows = torch.cat([a, torch.randn(n, d_spu) / math.sqrt(10) + ground], dim=1)
                if test:
                    order = torch.randperm(n)
                    rows = torch.cat([rows[:, :cut], rows[order][:, cut:]], dim=1)
                y = (rows[:, :d_inv].sum(1) > 0).float()
            else:
                half = n // 2
                a = torch.cat([torch.randn(half, d_inv) * 0.1 + 0.1, torch.randn(half, d_inv) * 0.1 - 0.1])
                b = torch.cat([torch.randn(half, d_spu) * 0.1 + kept[e], torch.randn(half, d_spu) * 0.1 - kept[e]])
                b = b[torch.randperm(2 * half)] if test else b
                rows, y = torch.cat([a, b], dim=1), torch.arange(2).repeat_interleave(half)
            environments.append(((rows @ matrix).numpy(), y.numpy()))
        splits.append(environments)
    return splits


@NAMES
@pytest.mark.parametrize("seed", [0, 49])
@pytest.mark.parametrize(
    "sizes", [{}, {"n_env": 12}, {"d_inv": 3, "n_env": 2}, {"d_spu": 2, "test_shuffle": "2021"}, {"d_spu": 0}], ids=str
)
def test_torch_draws_the_published_rows_bit_for_bit(name: str, seed: int, sizes: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    problem = make_problem(name, random_state=seed, rng="torch", **sizes)
    n = 1001  # odd, for Example3
    draw = problem.draw(n)
    cut = problem.d_spu if sizes.get("test_shuffle") == "2021" else problem.d_inv
    state = torch.get_rng_state()
    try:
        passes = {
            oracle: told_again(name, seed, n, problem.d_inv, problem.d_spu, problem.n_env, cut, oracle)
            for oracle in (False, True)
        }
    finally:
        torch.set_rng_state(state)
    ours = (draw.train, draw.validation, draw.test), (draw.oracle_train, draw.oracle_validation, draw.oracle_test)
    for oracle in (False, True):
        for found, expected in zip(ours[oracle], passes[oracle], strict=True):
            assert len(found) == len(expected) == problem.n_env
            for rows, (x, y) in zip(found, expected, strict=True):
                assert rows.X.dtype == np.float32
                assert np.array_equal(rows.X, x)
                assert np.array_equal(rows.y, y)


def test_a_layer_of_torch_starts_where_ours_does() -> None:
    torch = pytest.importorskip("torch")
    for d in (1, 7, 10, 15):
        ours = initial_weights(d, 1004, "torch")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1004)
            layer = torch.nn.Linear(d, 1)
        assert ours[:-1].tolist() == layer.weight[0].tolist()
        assert ours[-1] == layer.bias.item()


@RNG
def test_global_generators_are_left_alone(rng: str) -> None:
    need(rng)
    states = random.getstate(), np.random.get_state()[1].tolist()
    if rng == "torch":
        import torch

        torch.manual_seed(7)
        before = torch.get_rng_state()
    for name in names():
        draw = make_problem(name, rng=rng, random_state=0, n_env=4).draw(50)
        assert draw.test
        assert draw.oracle_train
    initial_weights(10, 0, rng)
    assert random.getstate() == states[0]
    assert np.random.get_state()[1].tolist() == states[1]
    if rng == "torch":
        assert torch.equal(torch.get_rng_state(), before)


# the native sampler ---------------------------------------------------------------------------------------------------


@NAMES
def test_a_split_is_the_same_alone_and_after_others(name: str) -> None:
    alone = make_problem(name, random_state=4).draw(500).test
    draw = make_problem(name, random_state=4).draw(500)
    for split in (draw.train, draw.validation, draw.oracle_train, draw.test):
        assert len(split) == 3
    for a, b in zip(alone, draw.test, strict=True):
        assert np.array_equal(a.X, b.X)
        assert np.array_equal(a.y, b.y)
    assert not np.array_equal(draw.train[0].X, draw.validation[0].X)
    assert not np.array_equal(draw.train[0].X, make_problem(name, random_state=5).draw(500).train[0].X)


@NAMES
def test_the_rows_of_the_oracle_are_those_of_the_others_with_spurious_features_permuted(name: str) -> None:
    problem = make_problem(name, random_state=4, d_spu=3)
    draw = problem.draw(501)
    back = np.linalg.inv(problem.scramble)
    for plain, permuted in zip(draw.train, draw.oracle_train, strict=True):
        a, b = plain.X @ back, permuted.X @ back
        assert np.array_equal(plain.y, permuted.y)
        assert np.allclose(a[:, :5], b[:, :5], atol=1e-5)
        assert not np.allclose(a[:, 5:], b[:, 5:], atol=1e-2)
        order_a, order_b = (np.lexsort(np.round(m[:, 5:].T, 3)) for m in (a, b))
        assert np.allclose(a[order_a, 5:], b[order_b, 5:], atol=2e-3)
    assert draw.oracle_test is draw.test


def test_parameters_of_environments_beyond_the_third_come_from_their_ranges() -> None:
    problem: Any = make_problem("Example1", n_env=400, random_state=0)
    assert problem.sigma[:3].tolist() == [0.1, 1.5, 2.0]
    exponents = np.log10(problem.sigma[3:])
    assert -2 <= exponents.min() <= exponents.max() <= 1
    assert exponents.mean() == pytest.approx(-0.5, abs=0.2)
    problem = make_problem("Example2", n_env=400, random_state=0)
    assert (problem.match[:3].tolist(), problem.cows[:3].tolist()) == ([0.95, 0.97, 0.99], [0.3, 0.5, 0.7])
    assert 0.9 <= problem.match[3:].min() <= problem.match[3:].max() <= 1
    assert problem.match[3:].mean() == pytest.approx(0.95, abs=0.01)
    assert 0.3 <= problem.cows[3:].min() <= problem.cows[3:].max() <= 0.7
    assert problem.cows[3:].mean() == pytest.approx(0.5, abs=0.03)
    problem = make_problem("Example3", n_env=400, random_state=0)
    assert problem.means.shape == (400, 5)
    assert problem.means.std() == pytest.approx(1, abs=0.1)


def test_matrices_are_scaled_by_their_columns_and_scrambles_are_orthogonal() -> None:
    problem: Any = make_problem("Example1s", d_inv=60, d_spu=90, random_state=0)
    assert problem.to_target.std() * 60 == pytest.approx(1, abs=0.05)
    assert problem.to_effects.std() * 90 == pytest.approx(1, abs=0.05)
    assert np.allclose(problem.scramble @ problem.scramble.T, np.eye(150), atol=1e-6)
    assert not np.allclose(problem.scramble, np.eye(150))
    assert np.array_equal(make_problem("Example1").scramble, np.eye(10))


def test_an_odd_number_of_rows_gives_example3_one_less() -> None:
    rows = make_problem("Example3", random_state=0).draw(1001).train[0]
    assert rows.X.shape == (1000, 10)
    assert rows.y.tolist() == [0] * 500 + [1] * 500
    assert make_problem("Example2", random_state=0).draw(1001).train[0].X.shape == (1001, 10)
    with pytest.raises(ValueError, match="at least 2 rows"):
        make_problem("Example3").draw(1)


def test_rows_of_all_environments_are_stacked_in_order() -> None:
    split = make_problem("Example2", n_env=2, random_state=0).draw(30).train
    X, y, env = stack(split)
    assert env.tolist() == [0] * 30 + [1] * 30
    assert np.array_equal(X[30:], split[1].X)
    assert np.array_equal(y[:30], split[0].y)
    assert y.dtype == np.int64


@NAMES
def test_a_problem_comes_back_from_a_pickle(name: str) -> None:
    problem = make_problem(name, random_state=9, n_env=4)
    again = pickle.loads(pickle.dumps(problem))
    assert np.array_equal(again.draw(40).test[3].X, problem.draw(40).test[3].X)


def test_without_a_seed_each_problem_is_another() -> None:
    a, b = make_problem("Example1"), make_problem("Example1")
    assert a.random_state != b.random_state
    assert np.array_equal(a.draw(9).test[0].X, make_problem("Example1", random_state=a.random_state).draw(9).test[0].X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Example1x"}, "did you mean Example1"),
        ({"name": 3}, "there is no problem 3"),
        ({"d_inv": -1}, "d_inv must be an integer of at least 0; got -1"),
        ({"d_spu": 2.0}, "d_spu must be an integer of at least 0"),
        ({"n_env": 0}, "n_env must be an integer of at least 1"),
        ({"n_env": True}, "n_env must be an integer of at least 1"),
        ({"d_inv": 0, "d_spu": 0}, "both 0"),
        ({"rng": "numpy"}, "rng must be one of native, torch"),
        ({"test_shuffle": "2020"}, "test_shuffle must be one of invariant, 2021"),
        ({"random_state": -1}, "random_state must not be negative"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_problem(**{"name": "Example1", **change})


def test_bad_numbers_of_rows_and_weights_are_named() -> None:
    problem = make_problem("Example1")
    for n in (0, 2.5, True):
        with pytest.raises(ValueError, match="n must be an integer of at least 1"):
            problem.draw(n)
    with pytest.raises(ValueError, match=r"intercept must be one number for each .* shape \(3,\); got \(2,\)"):
        problem.risk(np.ones((3, 10)), np.zeros(2))
    with pytest.raises(ValueError, match=r"coef must have 10 weights .* got shape \(9,\)"):
        problem.risk(np.ones(9))


# two normal variables -------------------------------------------------------------------------------------------------

#: Numbers around 0, with 0 and both of its signs among them.
some = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0]), st.integers(-4000, 4000).map(lambda i: i / 1000))
QUANTILES = norm.ppf((np.arange(50_000) + 0.5) / 50_000)


@settings(max_examples=30)
@given(some, st.floats(0.05, 3), some, st.floats(0.1, 2), some)
@example(0.0, 1.0, 2.731, 0.125, 1.0)
def test_how_often_two_normal_variables_disagree_in_sign(m: float, s: float, k: float, t: float, shared: float) -> None:
    end = 9.0  # of the noise: beyond it lies 1e-19; over an infinite interval the quadrature can miss where the mass is
    turn = min(max(-k / t, -end), end)  # of the second variable's noise
    expected = (
        quad(lambda z: norm.pdf(z) * norm.cdf(-(m + shared * z) / s), turn, end, epsabs=1e-11)[0]
        + quad(lambda z: norm.pdf(z) * norm.cdf((m + shared * z) / s), -end, turn, epsabs=1e-11)[0]
    )
    found = disagree(np.array(m), np.array(s), np.array(k), t, np.array(shared))
    assert float(found) == pytest.approx(expected, abs=1e-8)


@given(some, st.floats(0.2, 2), some, some)
def test_variables_that_are_as_good_as_one_disagree_between_their_thresholds(
    m: float, t: float, k: float, shared: float
) -> None:
    found = float(disagree(np.array(m), np.array(0.0), np.array(k), t, np.array(shared)))
    z = QUANTILES
    assert found == pytest.approx(np.mean((m + shared * z > 0) != (k + t * z > 0)), abs=8e-5)


def test_constant_variables_have_their_sign() -> None:
    zero = np.array(0.0)
    assert positive(np.array([-1.0, 0.0, 1.0]), zero).tolist() == [0, 0, 1]
    assert disagree(np.array([-1.0, 1.0]), zero, np.array(-2.0), 0.0, zero).tolist() == [0, 1]
    assert disagree(np.array([-1.0, 1.0]), zero, np.array(0.0), 1.0, zero) == pytest.approx([0.5, 0.5])
    assert disagree(zero, np.array(1.0), np.array(0.0), 0.0, zero) == pytest.approx(0.5)
