"""General solvers of quadratic programs on the first program of MissSVM: python benches/qp_solvers.py [BAGS]

Solvers that are installed are timed, one thread each, by processor time: piqp, clarabel, osqp, cvxopt.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import milfast as mf
from milfast.models.svm.solver import Combinations, InstanceKernel, solve
from milfast.models.svm.witness import Split, first_weights

if TYPE_CHECKING:
    from collections.abc import Callable

GAMMA = 0.1


class Program:
    """Minimise a'Pa / 2 - sum(a) with signs'a = 0 and 0 <= a <= limits."""

    def __init__(self, n_bags: int) -> None:
        self.bags = mf.sample_bags("presence", n_bags, random_state=0, dtype="float64")
        split = Split(self.bags)
        n, inside, positive = len(split.negatives), len(split.positives), len(split.sizes)
        parts = [Combinations.alone(members) for members in (split.negatives, split.positives, split.positives)]
        self.combinations = Combinations.join(*parts, split.combinations(first_weights(split)))
        counts = [n, inside, inside, positive]
        self.signs = np.repeat([-1.0, -1.0, 1.0, 1.0], counts)
        self.limits = np.repeat([1.0, 0.5 * n / inside, 0.5 * n / inside, n / positive], counts)
        self.kernel = InstanceKernel("rbf", GAMMA, 3, 1.0)
        combined = (self.combinations.weights, self.combinations.members, self.combinations.starts)
        weights = sp.csr_matrix(combined, shape=(len(self.signs), self.bags.n_instances))
        gram = weights @ self.kernel.matrix(self.bags.instances) @ weights.T
        self.hessian = np.asarray(gram) * np.outer(self.signs, self.signs) + 1e-10 * np.eye(len(self.signs))

    def ours(self) -> float:
        rows = self.kernel.rows(self.bags.instances, 500)
        return -solve(rows, self.signs, self.limits, combinations=self.combinations, tol=1e-4).cost

    def objective(self, a: Any) -> float:
        a = np.asarray(a).ravel()
        return float(a @ self.hessian @ a / 2 - a.sum())


def with_piqp(piqp: Any, program: Program) -> Any:
    solver = piqp.DenseSolver()
    zeros, ones = np.zeros(len(program.signs)), np.ones(len(program.signs))
    equality = program.signs[None, :]
    solver.setup(program.hessian, -ones, equality, np.zeros(1), None, None, None, zeros, program.limits)
    solver.solve()
    return solver.result.x


def with_clarabel(clarabel: Any, program: Program) -> Any:
    n = len(program.signs)
    rows = sp.vstack([sp.csc_matrix(program.signs[None, :]), -sp.eye(n), sp.eye(n)]).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
    upper = sp.triu(sp.csc_matrix(program.hessian)).tocsc()
    bounds = np.concatenate([np.zeros(1 + n), program.limits])
    return clarabel.DefaultSolver(upper, -np.ones(n), rows, bounds, cones, settings).solve().x


def with_osqp(osqp: Any, program: Program) -> Any:
    n = len(program.signs)
    rows = sp.vstack([sp.csc_matrix(program.signs[None, :]), sp.eye(n)]).tocsc()
    solver = osqp.OSQP()
    upper = sp.triu(sp.csc_matrix(program.hessian)).tocsc()
    low, high = np.zeros(1 + n), np.concatenate([[0.0], program.limits])
    options = {"verbose": False, "eps_abs": 1e-4, "eps_rel": 1e-4, "max_iter": 20_000}
    solver.setup(upper, -np.ones(n), rows, low, high, **options)
    return solver.solve().x


def with_cvxopt(cvxopt: Any, program: Program) -> Any:
    n, matrix = len(program.signs), cvxopt.matrix
    inequalities = matrix(np.vstack([-np.eye(n), np.eye(n)]))
    bounds = matrix(np.concatenate([np.zeros(n), program.limits]))
    equality = matrix(program.signs[None, :])
    parts = (matrix(program.hessian), matrix(-np.ones(n)), inequalities, bounds, equality, matrix(0.0))
    return importlib.import_module("cvxopt.solvers").qp(*parts, options={"show_progress": False})["x"]


SOLVERS: dict[str, Callable[[Any, Program], Any]] = {
    "piqp": with_piqp,
    "clarabel": with_clarabel,
    "osqp": with_osqp,
    "cvxopt": with_cvxopt,
}


def main(n_bags: int) -> None:
    program = Program(n_bags)
    print(f"{n_bags} bags, {len(program.signs)} variables")
    with threadpool_limits(1):
        start = time.process_time()
        objective = program.ours()
        print(f"milfast   {time.process_time() - start:8.3f} s  objective {objective:.6f}")
        for name, run in SOLVERS.items():
            try:
                module = importlib.import_module(name)
            except ImportError:
                print(f"{name} is not installed")
                continue
            start = time.process_time()
            found = run(module, program)
            print(
                f"{name:9} {time.process_time() - start:8.3f} s  objective {program.objective(found):.6f}", flush=True
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
