"""The quadratic program and its kernel: against SciPy, optimality from scratch, any cache and start, errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from svm_oracles import multiplier, quadratic_program, rbf

import milfast as mf
from milfast._core import KernelRows, kernel_sums
from milfast.gram import instance_gram
from milfast.models.svm.solver import Combinations, InstanceKernel, solve

GAMMA = 0.5


@dataclass(frozen=True)
class Problem:
    x: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    linear: np.ndarray
    weights: np.ndarray | None  # (variables, instances)
    groups: np.ndarray | None
    limits: np.ndarray | None
    start: np.ndarray | None

    @property
    def kernel(self) -> np.ndarray:
        """Between variables."""
        matrix = rbf(self.x, self.x, GAMMA)
        return matrix if self.weights is None else self.weights @ matrix @ self.weights.T

    def solve(self, tol: float = 1e-10, cache_bytes: int = 1 << 20, **options: Any) -> tuple[Any, ...]:
        if self.weights is not None:
            counts = (self.weights != 0).sum(axis=1)
            members = np.nonzero(self.weights)[1]
            options |= {"starts": np.concatenate([[0], np.cumsum(counts)]), "members": members}
            options["weights"] = self.weights[self.weights != 0]
        if self.groups is not None:
            options |= {"groups": self.groups, "limits": self.limits}
        rows = KernelRows(self.x, gamma=GAMMA, cache_bytes=cache_bytes)
        return rows.solve(self.lower, self.upper, self.linear, start=self.start, tol=tol, **options)


@st.composite
def problems(draw: st.DrawFn, most: int = 7) -> Problem:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, most))
    n_instances = n if not draw(st.booleans()) else draw(st.integers(1, most))
    # instances may coincide, so that the kernel has no inverse
    x = rng.integers(-2, 3, (n_instances, 2)) * 0.7 if draw(st.booleans()) else rng.normal(size=(n_instances, 2))
    sizes = rng.choice([0.0, 0.5, 1.0, 3.0], n) if draw(st.booleans()) else 2 * rng.random(n)
    signs = rng.choice([-1, 1], n)
    lower, upper = np.where(signs < 0, -sizes, 0.0), np.where(signs > 0, sizes, 0.0)
    groups = limits = weights = None
    if draw(st.booleans()):
        groups = np.where(signs < 0, rng.integers(-1, 3, n), -1)
        limits = rng.choice([0.0, 0.4, 1.5], 3)
    elif draw(st.booleans()):
        upper += rng.choice([0.0, 1.0], n)  # not only one side
    if n_instances != n or draw(st.booleans()):
        weights = rng.choice([0.0, 0.3, 1.0, -0.5], (n, n_instances))
        weights[np.arange(n), rng.integers(n_instances, size=n)] = 1.0
    linear = -signs * rng.choice([1.0, 0.4, -0.2], n) if draw(st.booleans()) else rng.normal(size=n)
    start = draw(st.sampled_from([None, 0.3, 5.0]))
    return Problem(x, lower, upper, linear, weights, groups, limits, start and start * rng.normal(size=n))


def left(problem: Problem, values: np.ndarray) -> np.ndarray:
    """What the group of each variable has left; infinite without a group."""
    out = np.full(len(values), np.inf)
    if problem.groups is not None and problem.limits is not None:
        for g, limit in enumerate(problem.limits):
            out[problem.groups == g] = limit + values[problem.groups == g].sum()
    return out


def violation(problem: Problem, values: np.ndarray) -> float:
    """Over all pairs that may move against each other: how fast the objective falls when they do."""
    gradient = problem.kernel @ values + problem.linear
    rises, falls, room = values < problem.upper, values > problem.lower, left(problem, values)
    worst = 0.0
    for i in np.flatnonzero(rises):
        for j in np.flatnonzero(falls):
            same = problem.groups is not None and problem.groups[i] == problem.groups[j] >= 0
            if same or room[j] > 1e-12:
                worst = max(worst, gradient[j] - gradient[i])
    return worst


def value(problem: Problem, values: np.ndarray) -> float:
    return float(values @ problem.kernel @ values / 2 + problem.linear @ values)


# ---------------------------------------------------------------- right answers


@given(problems())
def test_solutions_are_those_of_scipy(problem: Problem) -> None:
    values, _, _, least, _, _ = problem.solve()
    args = (problem.lower, problem.upper, problem.linear, problem.groups, problem.limits)
    wanted = value(problem, quadratic_program(problem.kernel, *args))
    assert least == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert least <= 1e-9  # what zeros give
    assert least == pytest.approx(value(problem, values), rel=1e-9, abs=1e-10)


@given(problems(), st.sampled_from([1e-3, 1e-7, 1e-10]))
def test_solutions_are_allowed_and_optimal_by_definition(problem: Problem, tol: float) -> None:
    values, scores, intercept, _, gap, steps = problem.solve(tol)
    assert (values >= problem.lower).all()
    assert (values <= problem.upper).all()
    assert abs(values.sum()) < 1e-12
    assert (left(problem, values) > -1e-12).all()
    assert_allclose(scores, problem.kernel @ values, rtol=1e-10, atol=1e-11)
    assert 0 <= gap <= tol
    assert violation(problem, values) <= 1.01 * tol + 1e-11
    assert steps < 1_000_000
    # the intercept lies between what rises and what falls
    gradient = problem.kernel @ values + problem.linear
    # (a bound that a value misses by rounding has been reached)
    little = 1e-9 * (problem.upper - problem.lower)
    rises = problem.upper - values > little
    falls = (values - problem.lower > little) & (
        left(problem, values) > 1e-9 * np.max(0.0 if problem.limits is None else problem.limits, initial=1.0)
    )
    assert -intercept <= gradient[rises].min(initial=np.inf) + tol + 1e-11
    assert -intercept >= gradient[falls].max(initial=-np.inf) - tol - 1e-11


def test_the_intercept_is_the_middle_of_its_interval_where_nothing_is_free() -> None:
    # two against two at their bounds: any intercept between those of the two sides is right
    x = np.array([[0.0], [0.5], [3.0], [3.5]])
    lower, upper = np.array([-0.1, -0.1, 0.0, 0.0]), np.array([0.0, 0.0, 0.1, 0.1])
    linear = np.array([1.0, 1.0, -1.0, -1.0])
    values, scores, intercept, _, _, _ = KernelRows(x, gamma=GAMMA).solve(lower, upper, linear)
    assert_allclose(values, [-0.1, -0.1, 0.1, 0.1])
    assert intercept == pytest.approx(multiplier(scores + linear, values, lower, upper))
    assert intercept == pytest.approx(0, abs=1e-12)
    values, scores, intercept, _, _, _ = KernelRows(x, gamma=GAMMA).solve(
        lower, upper, linear + np.array([0, 0, 0, 0.3])
    )
    ends = scores[0] + 1, scores[3] - 0.7
    assert intercept == pytest.approx(-np.mean(ends))


def test_what_rounding_leaves_of_a_bound_is_not_free() -> None:
    # three groups of negatives share 0.1 each and three positives take 0.1 each, so that nothing is free
    rng = np.random.default_rng(8)
    bounds = []
    for _ in range(20):
        x = np.concatenate([rng.normal(size=(9, 1)), 3 + rng.normal(size=(3, 1))])
        signs, groups = np.repeat([-1.0, 1.0], [9, 3]), np.concatenate([np.repeat([0, 1, 2], 3), np.full(3, -1)])
        limits = np.full(3, 0.1)
        options = {"groups": groups, "limits": limits, "tol": 1e-10}
        rows = KernelRows(x, gamma=GAMMA)
        values, scores, intercept, _, _, _ = rows.solve(
            np.minimum(0.1 * signs, 0), np.maximum(0.1 * signs, 0), -signs, **options
        )
        assert_allclose(values[9:], 0.1)
        full = np.append(np.ones(9), np.zeros(3)) > 0
        wanted = multiplier(scores - signs, values, np.minimum(0.1 * signs, 0), np.maximum(0.1 * signs, 0), full)
        bounds.append(abs(intercept - wanted))
    assert max(bounds) < 1e-9


@given(problems(), st.sampled_from([0, 1000, 1 << 16]))
def test_the_cache_changes_no_bit(problem: Problem, cache_bytes: int) -> None:
    results = [problem.solve(cache_bytes=size) for size in (cache_bytes, 1 << 24)]
    for one, other in zip(*results, strict=True):
        assert_array_equal(one, other)


@given(problems())
def test_the_start_changes_nothing_but_the_way(problem: Problem) -> None:
    cold = replace(problem, start=None).solve(1e-9)
    warm = problem.solve(1e-9)
    again = replace(problem, start=cold[0]).solve(1e-9)
    assert warm[3] == pytest.approx(cold[3], rel=1e-7, abs=1e-7)
    assert again[3] == pytest.approx(cold[3], rel=1e-9, abs=1e-9)
    assert again[5] <= 2 + cold[5] // 2


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("cache_bytes", [0, 8 * 448 * 7, 1 << 24])
def test_larger_problems_are_solved_with_a_cache_of_any_size(kernel: str, cache_bytes: int) -> None:
    rng = np.random.default_rng(1)
    n = 400
    x = rng.normal(size=(n, 5))
    signs = np.where(x[:, 0] + rng.normal(size=n) > 0, 1, -1)
    options: dict[str, Any] = {"kernel": kernel, "gamma": 0.2, "degree": 2, "coef0": 1.0}
    rows = KernelRows(x, cache_bytes=cache_bytes, **options)
    values, scores, intercept, least, gap, _ = rows.solve(np.minimum(signs, 0), np.maximum(signs, 0), -signs, tol=1e-6)
    matrix = instance_gram(x, None, kernel, 0.2, 2, 1.0)  # type: ignore[arg-type]
    assert_allclose(scores, matrix @ values, atol=1e-9)
    assert gap <= 1e-6
    problem = Problem(x, np.minimum(signs, 0), np.maximum(signs, 0), -signs, None, None, None, None)
    gradient = matrix @ values - signs
    assert gradient[values > problem.lower].max() - gradient[values < problem.upper].min() <= 1.01e-6
    # no gap between it and the problem whose dual it is
    cost = values @ scores / 2 + np.maximum(0, 1 - signs * (scores + intercept)).sum()
    assert cost == pytest.approx(-least, rel=1e-6)
    # the whole matrix gives the same
    whole = KernelRows(matrix, kernel="precomputed")
    other = whole.solve(np.minimum(signs, 0), np.maximum(signs, 0), -signs, tol=1e-6)
    assert other[3] == pytest.approx(least, rel=1e-8)
    assert_allclose(whole.times(values), rows.times(values), atol=1e-9)
    assert len(rows) == len(whole) == n


def test_scores_do_not_drift_over_many_steps() -> None:
    rng = np.random.default_rng(2)
    x, signs = rng.normal(size=(150, 2)), rng.choice([-1.0, 1.0], 150)
    rows = KernelRows(x, gamma=1.0)
    c = 1e4
    values, scores, _, _, gap, steps = rows.solve(np.minimum(c * signs, 0), np.maximum(c * signs, 0), -signs, tol=1e-2)
    assert steps > 20_000
    assert gap <= 1e-2
    assert_allclose(scores, rbf(x, x, 1.0) @ values, atol=1e-8)


def test_too_few_steps_are_told_by_the_gap() -> None:
    rng = np.random.default_rng(0)
    x, signs = rng.normal(size=(50, 2)), np.repeat([-1.0, 1.0], 25)
    rows = KernelRows(x, gamma=1.0)
    gaps = []
    for most in (0, 3, 1000):
        values, scores, _, least, gap, steps = rows.solve(
            np.minimum(signs, 0), np.maximum(signs, 0), -signs, max_steps=most
        )
        assert steps <= most
        assert_allclose(scores, rbf(x, x, 1.0) @ values, atol=1e-12)
        assert least == pytest.approx(values @ scores / 2 - signs @ values, abs=1e-12)
        gaps.append(gap)
    assert gaps[0] == 2
    assert gaps[1] > 1e-3 >= gaps[2]


# ---------------------------------------------------------------- the same from Python


def test_solve_takes_signs_limits_and_margins() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(9, 2))
    signs, limits, margins = rng.choice([-1, 1], 9), 1 + rng.random(9), rng.random(9)
    solution = solve(KernelRows(x, gamma=GAMMA), signs, limits, margins=margins, tol=1e-10)
    slack = np.maximum(0, margins - signs * (solution.scores + solution.intercept))
    assert solution.cost == pytest.approx(solution.values @ solution.scores / 2 + limits @ slack, rel=1e-8)
    lower, upper = np.where(signs < 0, -limits, 0.0), np.where(signs > 0, limits, 0.0)
    wanted = quadratic_program(rbf(x, x, GAMMA), lower, upper, -signs * margins)
    assert_allclose(solution.scores, rbf(x, x, GAMMA) @ wanted, atol=1e-5)
    plain = solve(KernelRows(x, gamma=GAMMA), signs, limits, tol=1e-10)
    ones = solve(KernelRows(x, gamma=GAMMA), signs, limits, margins=np.ones(9), tol=1e-10)
    assert_array_equal(plain.values, ones.values)


def test_groups_have_one_slack_each() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(12, 2))
    signs = np.repeat([-1, 1], [9, 3])
    groups = np.concatenate([np.repeat([0, 1, 2], 3), np.full(3, -1)])
    own = np.array([0.5, 1.0, 0.2])
    limits = np.concatenate([np.repeat(own, 3), np.ones(3)])
    solution = solve(KernelRows(x, gamma=GAMMA), signs, limits, groups=groups, group_limits=own, tol=1e-10)
    scores = solution.scores + solution.intercept
    slack = own @ np.maximum(0, 1 + scores[:9].reshape(3, 3).max(axis=1)) + np.maximum(0, 1 - scores[9:]).sum()
    assert solution.cost == pytest.approx(solution.values @ solution.scores / 2 + slack, rel=1e-8)
    alone = solve(KernelRows(x, gamma=GAMMA), signs, limits, tol=1e-10)
    assert solution.cost < alone.cost - 1e-3


def test_combinations_stand_for_sums_of_instances() -> None:
    parts = Combinations.alone(np.array([3, 1])), Combinations(np.array([0, 2]), np.array([0, 3]), np.array([0.5, 2.0]))
    joined = Combinations.join(*parts)
    assert joined.starts.tolist() == [0, 1, 2, 4]
    assert joined.members.tolist() == [3, 1, 0, 3]
    assert joined.weights.tolist() == [1.0, 1.0, 0.5, 2.0]
    assert joined.spread(np.array([1.0, 10.0, 100.0]), 5).tolist() == [50.0, 10.0, 0.0, 201.0, 0.0]


# ---------------------------------------------------------------- kernels


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 17, 3), (300, 129, 8)], ids=str)
def test_sums_are_those_of_the_kernel_matrix(kernel: str, shape: tuple[int, int, int]) -> None:
    n, m, d = shape
    rng = np.random.default_rng(n)
    x, y, coefficients = rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=m)
    options: dict[str, Any] = {"gamma": 0.3, "degree": 2, "coef0": 0.7}
    matrix = instance_gram(x, y, kernel, **options)  # type: ignore[arg-type]
    wanted = matrix @ coefficients
    size = np.abs(matrix) @ np.abs(coefficients)
    assert (np.abs(kernel_sums(x, y, coefficients, kernel=kernel, **options) - wanted) <= 1e-13 * size).all()
    if kernel == "rbf":
        assert_allclose(mf.rbf_gram(x, y, gamma=0.3) @ coefficients, wanted, atol=1e-13 * size.max())
    own = kernel_sums(y, y, coefficients, kernel=kernel, **options)
    assert_allclose(KernelRows(y, kernel=kernel, **options).times(coefficients), own, rtol=1e-12, atol=1e-12)
    # a kernel as a function of Python is summed in blocks
    function = InstanceKernel(lambda a, b: instance_gram(a, b, kernel, **options), 1.0, 3, 1.0)  # type: ignore[arg-type]
    assert_allclose(function.sums(x, y, coefficients), wanted, rtol=1e-12, atol=1e-12)


def test_kernel_functions_are_summed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y, coefficients = rng.normal(size=(20, 2)), rng.normal(size=(6, 2)), rng.normal(size=6)
    calls: list[int] = []

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        calls.append(len(a))
        return rbf(a, b, GAMMA)

    monkeypatch.setattr("milfast.models.svm.solver.BLOCK", 7 * 6)
    sums = InstanceKernel(kernel, 1.0, 3, 1.0).sums(x, y, coefficients)
    assert calls == [7, 7, 6]
    assert_allclose(sums, rbf(x, y, GAMMA) @ coefficients)


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(0)
    x, y, coefficients = rng.normal(size=(900, 20)), rng.normal(size=(400, 20)), rng.normal(size=400)
    before = mf.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 5):
            mf.set_num_threads(threads)
            results.append(kernel_sums(x, y, coefficients, gamma=0.05).tobytes())
    finally:
        mf.set_num_threads(before)
    assert len(set(results)) == 1


# ---------------------------------------------------------------- what is refused

NAN = float("nan")
BAD_PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "lower-length": ({"lower": [-1.0, -1.0, 0.0]}, "linear has 4 entries, lower has 3"),
    "upper-length": ({"upper": [0.0] * 5}, "linear has 4 entries, upper has 5"),
    "rows": ({"lower": [0.0], "upper": [0.0], "linear": [0.0]}, "linear has 1 entries, the rows of the kernel has 4"),
    "start-length": ({"start": [0.0]}, "linear has 4 entries, start has 1"),
    "groups-length": ({"groups": np.array([0]), "limits": [1.0]}, "linear has 4 entries, groups has 1"),
    "nan-lower": ({"lower": [NAN, -1.0, 0.0, 0.0]}, "variable 0 must have finite values and bounds"),
    "nan-linear": ({"linear": [1.0, 1.0, NAN, -1.0]}, "variable 2 must have finite values and bounds"),
    "nan-start": ({"start": [0.0, NAN, 0.0, 0.0]}, "variable 1 must have finite values and bounds"),
    "infinite": ({"upper": [0.0, 0.0, 1.0, np.inf]}, "variable 3 must have .* got bounds 0 and inf"),
    "above-0": ({"lower": [-1.0, -1.0, 0.5, 0.0]}, "variable 2 must have .* 0 between them; got bounds 0.5 and 1"),
    "below-0": ({"upper": [0.0, -0.5, 1.0, 1.0]}, "variable 1 must have .* 0 between them; got bounds -1 and -0.5"),
    "tol": ({"tol": 0.0}, "tolerance must be positive; got 0"),
    "tol-nan": ({"tol": NAN}, "tolerance must be positive; got NaN"),
    "group": (
        {"groups": np.array([0, 1, -1, -1]), "limits": [1.0]},
        r"groups\[1\] is 1: it must be from 0 to 0 or, for none, -1",
    ),
    "no limits": ({"groups": np.array([0, 0, -1, -1])}, "groups and limits go together"),
    "no members": ({"starts": np.arange(5)}, "starts, members and weights go together"),
    "group-above": ({"groups": np.array([0, 0, 0, -1]), "limits": [1.0]}, "variable 2 must be .* never above 0"),
    "limit": ({"groups": np.array([0, 0, -1, -1]), "limits": [-1.0]}, "limit of group 0 must be finite and not neg"),
    "limit-nan": ({"groups": np.array([0, 0, -1, -1]), "limits": [NAN]}, "limit of group 0 must be finite"),
}
BAD_COMBINATIONS: dict[str, tuple[list[int], list[int], list[float]]] = {
    "beyond": ([0, 1, 2, 3, 4], [0, 1, 2, 4], [1.0] * 4),
    "negative": ([0, 1, 2, 3, 4], [0, 1, -1, 3], [1.0] * 4),
    "empty": ([0, 1, 1, 3, 4], [0, 1, 2, 3], [1.0] * 4),
    "end": ([0, 1, 2, 3, 5], [0, 1, 2, 3], [1.0] * 4),
    "begin": ([1, 2, 3, 4, 5], [0, 1, 2, 3], [1.0] * 4),
    "few-weights": ([0, 1, 2, 3, 4], [0, 1, 2, 3], [1.0] * 3),
    "nan": ([0, 1, 2, 3, 4], [0, 1, 2, 3], [1.0, NAN, 1.0, 1.0]),
}


def solve_four(**changes: Any) -> Any:
    arguments: dict[str, Any] = {
        "lower": [-1.0, -1.0, 0.0, 0.0],
        "upper": [0.0, 0.0, 1.0, 1.0],
        "linear": [1.0, 1.0, -1.0, -1.0],
    }
    return KernelRows(np.arange(8.0).reshape(4, 2)).solve(**arguments | changes)


@pytest.mark.parametrize(("changes", "message"), BAD_PROBLEMS.values(), ids=BAD_PROBLEMS)
def test_problems_that_do_not_fit_together_are_refused(changes: dict[str, Any], message: str) -> None:
    assert solve_four()[4] <= 1e-3
    with pytest.raises(ValueError, match=message):
        solve_four(**changes)


@pytest.mark.parametrize(("starts", "members", "weights"), BAD_COMBINATIONS.values(), ids=BAD_COMBINATIONS)
def test_combinations_of_no_instances_are_refused(starts: list[int], members: list[int], weights: list[float]) -> None:
    with pytest.raises(ValueError, match="starts must ascend from 0 to the number of members, and members be rows"):
        solve_four(starts=np.array(starts), members=np.array(members), weights=weights)


def test_matrices_that_are_no_kernel_are_refused() -> None:
    with pytest.raises(ValueError, match=r"instances\[1, 0\] is NaN"):
        KernelRows([[0.0], [NAN]])
    with pytest.raises(ValueError, match=r"matrix\[0, 1\] is inf"):
        KernelRows([[0.0, np.inf], [0.0, 0.0]], kernel="precomputed")
    with pytest.raises(ValueError, match="matrix must be square; got 1 rows of 2 values"):
        KernelRows([[0.0, 1.0]], kernel="precomputed")
    with pytest.raises(ValueError, match='kernel must be rbf, linear or poly; got "sigmoid"'):
        KernelRows([[0.0]], kernel="sigmoid")
    with pytest.raises(ValueError, match="gamma must be positive and finite; got 0"):
        KernelRows([[0.0]], gamma=0.0)
    with pytest.raises(ValueError, match="coefficients has 2 entries, the rows of the kernel has 1"):
        KernelRows([[0.0]]).times([1.0, 2.0])
    with pytest.raises(ValueError, match="there must be at least one variable"):
        KernelRows(np.empty((0, 2))).solve([], [], [])


def test_sums_of_what_does_not_fit_together_are_refused() -> None:
    x = np.ones((3, 2))
    with pytest.raises(ValueError, match="X and Y must have as many columns; got 2 and 1"):
        kernel_sums(x, x[:, :1], np.ones(3))
    with pytest.raises(ValueError, match="Y has 3 rows, coefficients has 2 entries"):
        kernel_sums(x, x, np.ones(2))
    with pytest.raises(ValueError, match=r"coefficients.* is NaN"):
        kernel_sums(x, x, [1.0, NAN, 1.0])
    with pytest.raises(ValueError, match=r"X\[0, 1\] is NaN"):
        kernel_sums([[0.0, NAN]], x, np.ones(3))
    with pytest.raises(ValueError, match='kernel must be rbf, linear or poly; got "sigmoid"'):
        kernel_sums(x, x, np.ones(3), kernel="sigmoid")


def test_kernel_functions_must_return_a_symmetric_matrix_of_finite_numbers() -> None:
    x = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match=r"kernel must return shape \(3, 3\); got \(3, 1\)"):
        InstanceKernel(lambda a, b: a[:, :1], 1.0, 3, 1.0).matrix(x)
    with pytest.raises(ValueError, match="kernel must return finite numbers"):
        InstanceKernel(lambda a, b: a @ b.T * np.inf, 1.0, 3, 1.0).matrix(x + 1)
    with pytest.raises(ValueError, match="kernel must be symmetric"):
        InstanceKernel(lambda a, b: a @ b.T + a[:, :1], 1.0, 3, 1.0).rows(x, 1.0)
    # off by the rounding of double precision, by that of single precision, and by more
    for precision, excess, fits in (
        (np.float64, 1e-13, True),
        (np.float64, 1e-7, False),
        (np.float32, 1e-7, True),
        (np.float32, 1e-3, False),
    ):
        kernel = InstanceKernel(lambda a, b, p=precision: (a @ b.T).astype(p), 1.0, 3, 1.0)
        gram = np.array([[1.0, 2.0], [2.0 + excess, 3.0]])
        if fits:
            kernel.check_symmetric(gram, x)
        else:
            with pytest.raises(ValueError, match="kernel must be symmetric"):
                kernel.check_symmetric(gram, x)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_kernels_beyond_floating_point_are_refused(kernel: str) -> None:
    large = InstanceKernel(kernel, 1.0, 3, 1.0)
    x = np.full((2, 2), 1e160)
    for call in (lambda: large.matrix(x), lambda: large.rows(x, 1.0), lambda: large.sums(x[:1], x, np.ones(2))):
        with pytest.raises(ValueError, match=rf"the {kernel} kernel of these instances may exceed 1e\+150: scale"):
            call()
    assert np.isfinite(large.matrix(x / 1e140)).all()
    assert np.isfinite(InstanceKernel("rbf", 1.0, 3, 1.0).matrix(x)).all()


def test_a_cache_of_any_size_can_be_asked_for() -> None:
    for size in (1e-9, 500, 1e300):
        assert len(InstanceKernel("rbf", 1.0, 3, 1.0).rows(np.ones((3, 1)), size)) == 3
