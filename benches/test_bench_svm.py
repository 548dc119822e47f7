"""The SVM family: its solver beside libsvm and a general solver of quadratic programs, and the memory of set kernels.

The programs of MICA, MI-SVM and MissSVM are no plain SVMs. General solvers factorise matrices of all variables, a cubic
number of operations: on the first program of MissSVM piqp, the fastest of clarabel, piqp, osqp and cvxopt, took 0.30 s
of processor time for 100 bags (1,254 variables) and 2.1 s for 200; two variables at a time take 0.02 s and 0.07 s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import milfast as mf
from benches import svm_scaling
from milfast.models.svm.solver import Combinations, InstanceKernel, solve
from milfast.models.svm.witness import Split, uniform_weights


def test_single_instances(race: Any) -> None:
    svm = pytest.importorskip("sklearn.svm", reason="the peer, scikit-learn, is absent")
    bags = mf.sample_bags("presence", 400, random_state=0, dtype="float64")
    assert bags.labels is not None
    labels = np.repeat(bags.labels, bags.sizes)

    def ours() -> Any:
        return mf.models.get("SIL")(gamma=0.1).fit(bags)

    def peer() -> Any:
        return svm.SVC(gamma=0.1, cache_size=500).fit(bags.instances, labels)

    assert ours().intercept_ == pytest.approx(peer().intercept_[0], abs=2e-3)
    race("sil_400", ours, "sklearn SVC", peer, rounds=3, enough=0)


def test_first_program_of_miss_svm(race: Any) -> None:
    piqp = pytest.importorskip("piqp", reason="the peer, piqp, is absent")
    bags = mf.sample_bags("presence", 100, random_state=0, dtype="float64")
    split = Split(bags)
    n, inside, positive = len(split.negatives), len(split.positives), len(split.sizes)
    parts = [Combinations.alone(members) for members in (split.negatives, split.positives, split.positives)]
    combinations = Combinations.join(*parts, split.combinations(uniform_weights(split)))
    signs = np.repeat([-1.0, -1.0, 1.0, 1.0], [n, inside, inside, positive])
    limits = np.repeat([1.0, 0.5 * n / inside, 0.5 * n / inside, n / positive], [n, inside, inside, positive])
    kernel = InstanceKernel("rbf", 0.1, 3, 1.0)
    weights = np.zeros((len(signs), bags.n_instances))
    weights[np.repeat(np.arange(len(signs)), np.diff(combinations.starts)), combinations.members] = combinations.weights
    hessian = (weights @ kernel.matrix(bags.instances) @ weights.T) * np.outer(signs, signs)
    hessian += 1e-10 * np.eye(len(signs))

    def ours() -> Any:
        return solve(kernel.rows(bags.instances, 500), signs, limits, combinations=combinations, tol=1e-4)

    def peer() -> Any:
        solver = piqp.DenseSolver()
        zeros, ones = np.zeros(len(signs)), np.ones(len(signs))
        solver.setup(hessian, -ones, signs[None, :], np.zeros(1), None, None, None, zeros, limits)
        solver.solve()
        return np.array(solver.result.x)

    x = peer()
    assert ours().cost == pytest.approx(x.sum() - 0.5 * x @ hessian @ x, rel=1e-5)
    race("miss_svm_program_100", ours, "piqp", peer, rounds=3, enough=0)


@pytest.mark.parametrize("model", ["NSK", "STK"])
def test_set_kernels_need_no_more_than_three_matrices_of_bags(model: str) -> None:
    found = svm_scaling.measure(model, 2000)
    doubles = 3 * found["bags"] ** 2 + 8 * 16 * found["instances"]
    assert found["bytes"] <= 8 * doubles
