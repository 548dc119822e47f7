"""The SVM family: its solver beside libsvm and a general solver of quadratic programs, and the memory of set kernels.

The programs of MICA, MI-SVM and MissSVM are no plain SVMs. General solvers factorise matrices of all variables, a cubic
number of operations: on the first program of MissSVM piqp, the fastest of clarabel, piqp, osqp and cvxopt, took 0.30 s
of processor time for 100 bags (1,254 variables) and 2.1 s for 200; two variables at a time take 0.02 s and 0.07 s
(python benches/qp_solvers.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import milfast as mf
from benches import qp_solvers, svm_scaling


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
    program = qp_solvers.Program(100)
    assert program.ours() == pytest.approx(program.objective(qp_solvers.with_piqp(piqp, program)), rel=1e-5)
    race("miss_svm_program_100", program.ours, "piqp", lambda: qp_solvers.with_piqp(piqp, program), rounds=3, enough=0)


@pytest.mark.parametrize("model", ["NSK", "STK"])
def test_set_kernels_need_no_more_than_three_matrices_of_bags(model: str) -> None:
    found = svm_scaling.measure(model, 2000)
    doubles = 3 * found["bags"] ** 2 + 8 * 16 * found["instances"]
    assert found["bytes"] <= 8 * doubles
