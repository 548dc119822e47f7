"""Training over environments: against numpy, against autograd of torch in float64, laws, errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import milfast as mf
from milfast import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch", reason="the oracle, torch, is absent")

TASKS = ("regression", "classification")
PARAMETERS = {"erm": [0.01, 0.0], "irmv1": [0.01, 0.0, 0.7], "iga": [0.01, 0.0, 30.0], "and-mask": [0.01, 0.0, 0.3]}
"""Of the learners of the linear unit tests: learning rate, weight decay, and what each has of its own."""
ROUND = 2.0**-24
"""Half a unit in the last place of float32, relative."""


class Rows:
    """Rows of some environments, and what is made of them."""

    def __init__(self, rng: np.random.Generator, sizes: tuple[int, ...], d: int, task: str) -> None:
        self.task, self.d = task, d
        self.x = [(rng.normal(size=(n, d)) * (1 + e)).astype(np.float32) for e, n in enumerate(sizes)]
        self.y = [x @ rng.normal(size=d) + (1 + e) * rng.normal(size=len(x)) for e, x in enumerate(self.x)]
        if task == "classification":
            self.y = [(y > 0.3).astype(np.float64) for y in self.y]
        self.environments = _core.environments_from_samples(self.x, self.y, task)

    def ones(self) -> list[np.ndarray]:
        return [np.column_stack([x.astype(np.float64), np.ones(len(x))]) for x in self.x]


SIZES = [((1000, 777, 333), 10), ((40,), 1), ((100, 1), 23), ((300, 65, 64, 5), 3), ((512, 513), 70)]


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def losses(rows: Rows, theta: Any, scale: Any = 1.0, offset: Any = 0.0) -> list[Any]:
    """Mean losses of torch in float64."""
    loss = torch.nn.MSELoss() if rows.task == "regression" else torch.nn.BCEWithLogitsLoss()
    outputs = [(torch.tensor(x) @ theta) * scale + offset for x in rows.ones()]
    return [loss(output, torch.tensor(y)) for output, y in zip(outputs, rows.y, strict=True)]


def by_autograd(rows: Rows, learner: str, parameters: list[float], theta: np.ndarray) -> np.ndarray:
    """The direction of the first step as the learners are defined, with derivatives of derivatives by torch."""
    t = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
    dummies = [torch.ones(1, dtype=torch.float64, requires_grad=True), torch.zeros(1, dtype=torch.float64)]
    dummies[1].requires_grad_()
    risks = losses(rows, t, *dummies)
    if learner == "erm":
        n = [len(x) for x in rows.x]
        objective = sum(risk * k for risk, k in zip(risks, n, strict=True)) / sum(n)
    elif learner == "irmv1":
        slopes = [slope for risk in risks for slope in torch.autograd.grad(risk, dummies, create_graph=True)]
        penalty = sum(slope.pow(2).sum() for slope in slopes)
        objective = (1 - parameters[2]) * sum(risks) / len(risks) + parameters[2] * penalty
    else:
        gradients = [torch.autograd.grad(risk, t, create_graph=True)[0] for risk in risks]
        if learner == "and-mask":
            unit = torch.stack([torch.cat([g[:-1] / g[:-1].norm(), g[-1:]]) for g in gradients]).detach()
            return np.asarray((unit.sign().sum(0).abs() > parameters[2] * len(unit)) * unit.mean(0))
        mean = sum(gradients) / len(gradients)
        objective = sum(risks) / len(risks) + parameters[2] * sum((g - mean).pow(2).sum() for g in gradients)
    return np.asarray(torch.autograd.grad(objective, t)[0])


def sizes_of_terms(rows: Rows, learner: str, parameters: list[float], theta: np.ndarray) -> np.ndarray:
    """The learner's direction with every term of every sum taken at its size.

    What float32 loses is some tens of its roundings of that, and no less: to a residual the rounding of its logit goes,
    times the slope; to a gradient that of its residuals and of sums over blocks of rows; and so on.
    """
    out = np.zeros(rows.d + 1)
    n = len(rows.x)
    each = []
    for x, y in zip(rows.ones(), rows.y, strict=True):
        size = np.abs(x)
        z = x @ theta
        wrong = 1 / (1 + np.exp(np.where(y > 0.5, z, -z)))
        slope = wrong * (1 - wrong)
        logit = size @ np.abs(theta)
        gradient = ((wrong + slope * logit)[:, None] * size).mean(0)
        each.append((size, slope, logit, gradient, np.where(y > 0.5, -wrong, wrong) @ x / len(x)))
    mean = sum(g for *_, g in each) / n
    for share, (size, slope, logit, gradient, signed) in zip(
        [len(x) / sum(map(len, rows.x)) for x in rows.x], each, strict=True
    ):
        if learner == "erm":
            out += share * gradient
        elif learner == "and-mask":
            unit = np.append(np.full(rows.d, np.linalg.norm(signed[:-1])), 1.0)
            out += (gradient + np.linalg.norm(gradient[:-1]) * np.abs(signed) / unit) / unit / n
        elif learner == "irmv1":
            # the slope of the slope is as large as the slope
            along, bias = (((slope * (1 + logit) * factor)[:, None] * size).mean(0) for factor in (logit, 1.0))
            out += (1 - parameters[2]) * gradient / n
            out += 2 * parameters[2] * ((np.abs(theta) @ gradient) * (gradient + along) + gradient[-1] * bias)
        else:
            # directions are known as well as gradients are
            towards = np.abs(signed - mean) + gradient
            out += gradient / n
            out += 2 * parameters[2] * ((slope * (1 + logit) * (size @ towards))[:, None] * size).mean(0)
    return out


# ---------------------------------------------------------------- against definitions


@pytest.mark.parametrize(("sizes", "d"), SIZES)
def test_risks_and_gradients_are_those_of_torch(task: str, sizes: tuple[int, ...], d: int) -> None:
    rng = np.random.default_rng(d)
    rows = Rows(rng, sizes, d, task)
    thetas = rng.normal(size=(4, d + 1)) * [[0.1], [1.0], [3.0], [0.0]]
    risks, gradients = rows.environments.risks(thetas), rows.environments.gradients(thetas)
    assert risks.shape == (4, len(sizes))
    assert gradients.shape == (4, len(sizes), d + 1)
    for theta, risk, gradient in zip(thetas, risks, gradients, strict=True):
        t = torch.tensor(theta, requires_grad=True)
        for e, loss in enumerate(losses(rows, t)):
            (want,) = torch.autograd.grad(loss, t, retain_graph=True)
            if task == "regression":
                np.testing.assert_allclose(risk[e], loss.item(), rtol=1e-10)
                np.testing.assert_allclose(gradient[e], want, rtol=1e-10, atol=1e-10 * float(want.abs().max()))
            else:
                x = np.abs(rows.ones()[e])
                # the logit is a sum of d + 1 terms, each rounded; a loss and a residual move at most as much
                off = (d + 4) * ROUND * (x @ np.abs(theta))
                assert abs(risk[e] - loss.item()) <= (off + 8 * ROUND * (1 + x @ np.abs(theta))).mean()
                assert (np.abs(gradient[e] - np.asarray(want)) <= ((off / 4 + 40 * ROUND) @ x) / len(x)).all()


@pytest.mark.parametrize("learner", PARAMETERS)
@pytest.mark.parametrize(("sizes", "d"), SIZES)
def test_directions_are_those_of_autograd(task: str, learner: str, sizes: tuple[int, ...], d: int) -> None:
    rng = np.random.default_rng(d + 100)
    rows = Rows(rng, sizes, d, task)
    for scale in (0.3, 2.0):
        theta = scale * rng.normal(size=d + 1)
        parameters = PARAMETERS[learner]
        (got,) = rows.environments.objective_gradient(learner, [parameters], [theta])
        want = by_autograd(rows, learner, parameters, theta)
        assert np.abs(want).max() > 0
        if task == "regression":
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10 * np.abs(want).max())
        else:
            off = np.abs(got - want)
            assert (off <= (d + 60) * ROUND * sizes_of_terms(rows, learner, parameters, theta)).all()


def test_errors_are_those_of_numpy(task: str) -> None:
    rng = np.random.default_rng(5)
    rows = Rows(rng, (1000, 77, 33), 7, task)
    thetas = rng.normal(size=(5, 8))
    for theta, errors in zip(thetas, rows.environments.errors(thetas), strict=True):
        for x, y, error in zip(rows.ones(), rows.y, errors, strict=True):
            if task == "regression":
                np.testing.assert_allclose(error, np.mean((x @ theta - y) ** 2), rtol=1e-12)
            else:
                assert error == np.mean((x @ theta > 0) != y)


@given(seed=st.integers(0, 2**32), n=st.integers(1, 70), d=st.integers(1, 12))
def test_moments_say_as_much_as_rows(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    rows = Rows(rng, (n, n + 3), d, "regression")
    ones = rows.ones()
    s = [x.T @ x / len(x) for x in ones]
    c = [x.T @ y / len(x) for x, y in zip(ones, rows.y, strict=True)]
    same = _core.environments_from_moments(s, c, [np.mean(y**2) for y in rows.y], [n, n + 3])
    theta = rng.normal(size=(2, d + 1))
    for name in ("risks", "errors", "gradients"):
        a, b = getattr(rows.environments, name)(theta), getattr(same, name)(theta)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(a).max())
    for learner, parameters in PARAMETERS.items():
        a, b = (e.objective_gradient(learner, [parameters] * 2, theta) for e in (rows.environments, same))
        if learner != "and-mask":  # of one row or a few, a gradient may be 0 but for rounding
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9 * np.abs(a).max())


# ---------------------------------------------------------------- training


def by_torch(rows: Rows, learner: str, parameters: list[float], theta: np.ndarray, n_steps: int) -> np.ndarray:
    """A loop of torch in float64: Adam with its own code, the step of the AND-mask as it is written down."""
    lr, decay = parameters[:2]
    t = torch.tensor(theta, dtype=torch.float64)
    adam = torch.optim.Adam([t], lr=lr, weight_decay=decay)
    for _ in range(n_steps):
        direction = torch.tensor(by_autograd(rows, learner, parameters, t.numpy()))
        if learner == "and-mask":
            t.copy_(t - lr * direction - lr * decay * t)
        else:
            t.grad = direction
            adam.step()
    return np.asarray(t)


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("learner", PARAMETERS)
def test_steps_are_those_of_torch(task: str, learner: str, decay: float) -> None:
    rng = np.random.default_rng(8)
    rows = Rows(rng, (50, 40), 4, task)
    parameters = [0.02, decay, *PARAMETERS[learner][2:]]
    start = rng.normal(size=5)
    run = rows.environments.train(learner, [parameters], [start], 200)
    want = by_torch(rows, learner, parameters, start, 200)
    assert run["step"].tolist() == [200]
    assert not run["diverged"].any()
    # the direction of a plain step jumps where a sign changes, and there each rounding counts
    np.testing.assert_allclose(run["theta"][0], want, rtol=0, atol=1e-9 if task == "regression" else 2e-5)
    assert np.abs(want - start).max() > 0.1


def trained(rows: Rows, learner: str, n_runs: int = 7, n_steps: int = 30) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    parameters = np.tile(PARAMETERS[learner], (n_runs, 1))
    parameters[:, 0] *= np.arange(1, n_runs + 1)
    return rows.environments.train(learner, parameters, rng.normal(size=(n_runs, rows.d + 1)), n_steps)


@pytest.fixture
def threads() -> Iterator[None]:
    before = mf.get_num_threads()
    yield
    mf.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("learner", PARAMETERS)
def test_the_number_of_threads_and_other_runs_change_no_bit(task: str, learner: str) -> None:
    rows = Rows(np.random.default_rng(2), (700, 333), 11, task)
    mf.set_num_threads(1)
    want = trained(rows, learner)["theta"]
    assert np.isfinite(want).all()
    for n in (2, 3):
        mf.set_num_threads(n)
        assert (trained(rows, learner)["theta"] == want).all()
    for run in range(0, 7, 3):
        parameters = np.array(PARAMETERS[learner]) * [run + 1, *[1] * (len(PARAMETERS[learner]) - 1)]
        start = np.random.default_rng(3).normal(size=(7, 12))[run]
        alone = rows.environments.train(learner, [parameters], [start], 30)["theta"][0]
        assert (alone == want[run]).all()


LEVEL = """
import hashlib
import numpy as np
from milfast import _core

rng = np.random.default_rng(0)
digest = hashlib.sha256()
for d, sizes in ((10, (300, 77)), (23, (65, 64, 1))):
    x = [rng.normal(size=(n, d)).astype(np.float32) for n in sizes]
    y = [x.sum(1) + rng.normal(size=len(x)) for x in x]
    for task in ("regression", "classification"):
        classes = task == "classification"
        data = _core.environments_from_samples(x, [y > 0 for y in y] if classes else y, task)
        theta = rng.normal(size=(3, d + 1))
        for found in (data.risks(theta), data.errors(theta), data.gradients(theta)):
            digest.update(found.tobytes())
        for learner, names in sorted(_core.invariance_learners().items()):
            if learner in ("erm", "irmv1", "iga", "and-mask"):
                parameters = np.full((3, len(names)), 0.3)
                digest.update(data.train(learner, parameters, theta, 5)["theta"].tobytes())
print(_core.simd_level(), digest.hexdigest())
"""


def test_levels_give_the_same_bits() -> None:
    found = {}
    for level in ("baseline", "avx2", "avx512"):
        done = subprocess.run(
            [sys.executable, "-c", LEVEL],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "MILFAST_SIMD": level, "MILFAST_NUM_THREADS": "1"},
        )
        name, digest = done.stdout.split()
        found[name] = digest
    assert "baseline" in found
    assert len(set(found.values())) == 1, found


def test_runs_that_diverge_stop_and_the_others_go_on(task: str) -> None:
    rows = Rows(np.random.default_rng(4), (60, 50), 3, task)
    parameters = [[0.01, 0.0, 0.9], [10.0, 1.0, 0.9], [0.02, 0.0, 0.9]]
    start = np.ones((3, 4))
    run = rows.environments.train("and-mask", parameters, start, 1000)
    assert run["diverged"].tolist() == [False, True, False]
    # weights are multiplied with -9 in each step, and the bias of a regression goes faster: past 1.8e308 after
    # some 210; logits are float32 and end at 3.4e38, after some 40
    assert run["step"][[0, 2]].tolist() == [1000, 1000]
    assert (200 < run["step"][1] < 330) if task == "regression" else (35 < run["step"][1] < 50)
    assert not np.isfinite(run["theta"][1]).all()
    assert np.isnan(rows.environments.errors(run["theta"])[1]).all()
    assert np.isnan(rows.environments.risks(run["theta"])[1]).all()
    assert np.isfinite(rows.environments.errors(run["theta"])[[0, 2]]).all()
    others = rows.environments.train("and-mask", [parameters[0], parameters[2]], start[:2], 1000)
    assert (others["theta"] == run["theta"][[0, 2]]).all()


def test_the_mask_stands_still_where_all_rows_are_right_beyond_doubt() -> None:
    """The published code divides 0 by 0 there: all parameters become NaN, and so predict class 0 without a word."""
    x = np.concatenate([np.ones((20, 2)), -np.ones((20, 2))]).astype(np.float32)
    y = np.repeat([1.0, 0.0], 20)
    data = _core.environments_from_samples([x, 2 * x], [y, y], "classification")
    theta = np.array([[200.0, 100.0, 0.0]])
    assert data.errors(theta).max() == 0
    assert (data.gradients(theta) == 0).all()
    # that one is in float64, which has room for smaller numbers
    assert (data.objective_gradient("and-mask", [[0.1, 0.0, 0.9]], 10 * theta) == 0).all()
    run = data.train("and-mask", [[0.1, 0.0, 0.9], [0.1, 0.01, 0.9]], np.tile(theta, (2, 1)), 100)
    assert not run["diverged"].any()
    assert (run["theta"][0] == theta).all()
    np.testing.assert_allclose(run["theta"][1], 0.999**100 * theta[0], rtol=1e-12)
    # what torch makes of it in float32
    linear = torch.nn.functional.linear(torch.tensor(x), torch.tensor([[200.0, 100.0]], requires_grad=True))
    assert (torch.sigmoid(linear)[:, 0] - torch.tensor(y) == 0).sum() >= 20


def test_environments_of_one_row_and_of_one() -> None:
    data = _core.environments_from_samples([np.array([[1, 2]], np.float32)], [[1]], "classification")
    assert data.n_environments == 1
    assert data.n_features == 2
    assert data.task == "classification"
    assert repr(data) == 'Environments(n_environments=1, n_features=2, task="classification")'
    run = data.train("iga", [[0.1, 0.0, 100.0]], [[0.0, 0.0, 0.0]], 500)
    assert data.risks(run["theta"])[0, 0] < 1e-3  # of one environment there is nothing to align


def test_pooled_rows_and_averaged_environments() -> None:
    """ERM counts rows, as it pools them; the others count environments."""
    x = [np.zeros((30, 1), np.float32), np.zeros((10, 1), np.float32)]
    data = _core.environments_from_samples(x, [np.zeros(30), np.ones(10)], "regression")
    start = [[0.0, 0.0]]
    assert data.train("erm", [[0.05, 0.0]], start, 3000)["theta"][0, 1] == pytest.approx(0.25, abs=1e-6)
    assert data.train("iga", [[0.05, 0.0, 0.0]], start, 3000)["theta"][0, 1] == pytest.approx(0.5, abs=1e-6)
    assert data.train("irmv1", [[0.05, 0.0, 0.0]], start, 3000)["theta"][0, 1] == pytest.approx(0.5, abs=1e-6)


# ---------------------------------------------------------------- arguments


def test_learners_and_their_parameters() -> None:
    learners = _core.invariance_learners()
    assert learners["erm"] == ("lr", "weight_decay")
    assert learners["irmv1"] == ("lr", "weight_decay", "penalty_weight")
    assert learners["iga"] == ("lr", "weight_decay", "penalty")
    assert learners["and-mask"] == ("lr", "weight_decay", "tau")


X, Y = np.zeros((3, 2), np.float32), np.array([0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("x", "y", "task", "error", "message"),
    [
        ([X], [Y], "ranking", ValueError, 'task must be regression or classification; got "ranking"'),
        ([], [], "regression", ValueError, "X must have at least one entry"),
        ([X], [Y, Y], "regression", ValueError, "X and y must have as many entries, one an environment; got 1 and 2"),
        ([X, X[:, :1]], [Y, Y], "regression", ValueError, r"X\[1\] must have as many columns as X\[0\]; got 1 and 2"),
        ([X], [Y[:2]], "regression", ValueError, r"X\[0\] and y\[0\] must have as many rows; got 3 and 2"),
        ([X, X + np.nan], [Y, Y], "classification", ValueError, r"X\[1\]\[0, 0\] is NaN"),
        ([X, X + np.inf], [Y, Y], "regression", ValueError, r"X\[1\]\[0, 0\] is inf"),
        ([X], [Y * np.nan], "regression", ValueError, r"y\[0\]\[0\] is NaN"),
        ([X], [Y * 2], "classification", ValueError, r"y\[0\]\[1\] is 2: classes must be 0 or 1"),
        ([X[:0]], [Y[:0]], "classification", ValueError, r"y\[0\] is empty"),
        ([X[0]], [Y], "regression", ValueError, r"X\[0\] must have shape"),
        (3, [Y], "regression", TypeError, "X must be a list, one entry an environment"),
        ([["a", "b"]], [Y], "regression", TypeError, r"X\[0\]"),
    ],
)
def test_rows_that_do_not_fit(x: Any, y: Any, task: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _core.environments_from_samples(x, y, task)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"S": np.eye(2)}, r"S must have shape \(2, 2, 2\)"),
        ({"S": [np.eye(2), 2 * np.eye(2)]}, r"S\[1\] must end in 1"),
        ({"S": [np.eye(2), [[1, 0.5], [0.4, 1]]]}, r"S\[1\] must be symmetric"),
        ({"c": [[0.0], [0.0]]}, "c must have a column a feature and one for the bias; got 1"),
        ({"v": [1.0]}, "v must have 2 entries, one an environment; got 1"),
        ({"v": [1.0, np.nan]}, r"v\[1\] has a value that is NaN"),
        ({"n": [1.0, 0.0]}, r"n\[1\] is 0: it must be positive and finite"),
    ],
)
def test_moments_that_do_not_fit(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"S": [np.eye(2)] * 2, "c": np.zeros((2, 2)), "v": [1.0, 1.0], "n": [1.0, 1.0]}
    _core.environments_from_moments(**good)
    with pytest.raises(ValueError, match=message):
        _core.environments_from_moments(**{**good, **change})


@pytest.mark.parametrize(
    ("learner", "parameters", "initial", "message"),
    [
        ("nobody", [[0.1, 0.0]], [[0.0] * 3], "learner must be one of erm, irmv1, iga, and-mask"),
        ("erm", [[0.1]], [[0.0] * 3], "parameters must have 2 columns, lr, weight_decay; got 1"),
        ("irmv1", [[0.1, 0.0]], [[0.0] * 3], "parameters must have 3 columns, lr, weight_decay, penalty_weight; got 2"),
        ("erm", [[0.1, 0.0]], [[0.0] * 2], "initial must have 3 columns, the weights of the features and the bias"),
        ("erm", [[0.1, 0.0]] * 2, [[0.0] * 3], "parameters and initial must have as many rows, one a run; got 2 and 1"),
        ("erm", [[-0.1, 0.0]], [[0.0] * 3], r"parameters\[0, 0\] is -0.1: lr must not be negative"),
        ("erm", [[0.1, np.inf]], [[0.0] * 3], r"parameters\[0, 1\] is inf: weight_decay must be finite"),
        ("irmv1", [[0.1, 0.0, 1.1]], [[0.0] * 3], r"parameters\[0, 2\] is 1.1: penalty_weight must lie in \[0, 1\]"),
        ("iga", [[0.1, 0.0, -1]], [[0.0] * 3], r"parameters\[0, 2\] is -1: penalty must not be negative"),
        ("and-mask", [[0.1, 0.0, 2]], [[0.0] * 3], r"parameters\[0, 2\] is 2: tau must lie in \[0, 1\]"),
        ("erm", [[0.1, 0.0]], [[0.0, np.nan, 0.0]], r"initial\[0, 1\] is NaN: it must be finite"),
    ],
)
def test_runs_that_do_not_fit(learner: str, parameters: Any, initial: Any, message: str) -> None:
    data = _core.environments_from_samples([X], [Y], "classification")
    with pytest.raises(ValueError, match=message):
        data.train(learner, parameters, initial, 3)


def test_predictors_that_do_not_fit() -> None:
    data = _core.environments_from_samples([X], [Y], "classification")
    for call in (data.risks, data.errors, data.gradients):
        with pytest.raises(
            ValueError, match="theta must have 3 columns, the weights of the features and the bias; got 2"
        ):
            call([[0.0, 0.0]])
    with pytest.raises(OverflowError):
        data.train("erm", [[0.1, 0.0]], [[0.0] * 3], -1)
    assert data.errors(np.zeros((0, 3))).shape == (0, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are raised otherwise there")
def test_ctrl_c_stops_training(task: str) -> None:
    rows = Rows(np.random.default_rng(1), (2000, 2000), 10, task)
    timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
    # What a shell runs in the background is started with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            rows.environments.train("erm", [[0.01, 0.0]] * 4, np.zeros((4, 11)), 2_000_000_000)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 10
