"""SVMs beside values of a dense interior-point solver, on three sets of bags.

The reference has six decimals of the scores and was solved to 1e-10.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from svm_oracles import bag_matrix, golden_bags, instance_sums, intercepts, objective, rbf, reference

import milfast as mf
from milfast import Bags
from milfast.models.svm.instance_mi_svm import InstanceMISVM
from milfast.models.svm.solver import InstanceKernel
from milfast.models.svm.witness import Split

if TYPE_CHECKING:
    from milfast.models.svm.base import Answer

TIGHT = 1e-10
CONVEX: dict[str, tuple[str, dict[str, Any]]] = {
    "SIL": ("SIL", {}),
    "NSK": ("NSK", {"normalize": None}),
    "NSK_av": ("NSK", {"normalize": "average"}),
    "NSK_fs": ("NSK", {"normalize": "feature-space"}),
    "STK": ("STK", {}),
    "sMIL_av": ("sMIL", {"normalize": "average"}),
    "sMIL": ("sMIL", {"normalize": None}),
    "sbMIL_eta0.3": ("sbMIL", {"eta": 0.3, "normalize": None}),
}
#: Where no multiplier is free any intercept of an interval is right, and solvers differ in their choice.
OPEN = {("NSK_av", 3), ("MI-SVM", 1), ("MI-SVM", 3)}

# Bags of the instances i mod 4, by scikit-learn's SVC on kernel matrices that were summed by loops over all pairs.
BY_LOOPS = {
    None: [-1.0, 1.0, -0.7074971, 0.3248286, 1.0, -1.0],
    "average": [-0.9727478, 0.9727478, -0.5261816, -0.3242493, 0.7708155, -0.9727478],
    "feature-space": [-1.0, 1.0, -0.6344078, -0.2570152, 0.9088263, -1.0],
}


def check_intercept(name: str, variant: str, number: int, model: Any, bags: Bags, wanted: float) -> None:
    """Equal to the reference, or one of an interval of right ones, as the reference is."""
    if (variant, number) not in OPEN:
        assert model.intercept_ == pytest.approx(wanted, rel=1e-6, abs=1e-6)
        return
    if name == "NSK":
        matrix = bag_matrix(name, bags, model.normalize, model.gamma_)
        sums = matrix[:, model.support_] @ model.dual_coef_
    else:
        sums = instance_sums(model, bags, model.gamma_)
    low, high = intercepts(lambda b: objective(name, model, bags, b), np.concatenate([1 - sums, -1 - sums]))
    assert high - low > 1e-3
    assert low - 1e-6 <= wanted <= high + 1e-6
    assert low - 1e-6 <= model.intercept_ <= high + 1e-6


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("variant", CONVEX)
def test_convex_models_end_where_an_interior_point_solver_ends(variant: str, number: int) -> None:
    bags, expected = golden_bags(number), reference(f"alg{number}/{variant}")
    name, parameters = CONVEX[variant]
    model = mf.models.get(name)(gamma=0.1, C=1.0, tol=TIGHT, **parameters).fit(bags)
    assert model.objective_ == pytest.approx(-expected["dual_objective"], rel=1e-6)
    assert objective(name, model, bags) == pytest.approx(model.objective_, rel=1e-6)
    check_intercept(name, variant, number, model, bags, expected["b_kkt"])
    wanted = np.array(expected["train_scores_with_kkt_b"]) - expected["b_kkt"]
    # the multipliers of SIL are free in directions that hardly matter
    assert_allclose(model.decision_function(bags) - model.intercept_, wanted, atol=3e-6 if name == "SIL" else 1e-6)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("name", ["MI-SVM", "MICA", "MissSVM"])
def test_alternating_models_end_where_the_reference_ends(name: str, number: int) -> None:
    bags, expected = golden_bags(number), reference(f"alg{number}/{name}")
    # In one bag of MissSVM two instances tie at the margin, so that rounding picks the witness: with a tolerance of
    # 1e-10 it picks another than the reference, and ends 6e-6 higher.
    tol = 1e-7 if (name, number) == ("MissSVM", 3) else TIGHT
    model = mf.models.get(name)(gamma=0.1, C=1.0, max_iter=250, tol=tol).fit(bags)
    assert model.converged_
    exact = (name, number) != ("MICA", 1)
    assert model.objective_[-1] == pytest.approx(-expected["dual_objective"], rel=1e-6 if exact else 1e-5)
    if not exact:
        # almost-ties, in which the linear program of the reference stopped at a mixture: ours is better
        assert model.objective_[-1] < -expected["dual_objective"]
    check_intercept(name, name, number, model, bags, expected["b_kkt"])
    wanted = np.array(expected["train_scores_with_kkt_b"]) - expected["b_kkt"]
    assert_allclose(model.decision_function(bags) - model.intercept_, wanted, atol=1e-6 if exact else 1e-4)
    if name != "MissSVM":
        assert model.n_iter_ == expected["n_qp"]


class MeanInterceptMISVM(InstanceMISVM):
    """With the intercept of the reference implementation: the mean over all support vectors, bounded ones too."""

    def _solve(self, split: Split, rows: Any, choice: Any, start: Any) -> Answer:
        answer, bags = super()._solve(split, rows, choice, start), split.bags
        held = np.flatnonzero(answer.coefficients)
        sums = rbf(bags.instances, bags.instances[held], self.gamma_) @ answer.coefficients[held]
        intercept = float(np.mean((2 * choice - 1 - sums)[held]))
        solution = replace(answer.solution, intercept=intercept)
        return replace(answer, solution=solution, scores=sums + intercept)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_mi_svm_takes_the_path_of_the_reference_when_given_its_intercept(number: int) -> None:
    # The reference relabels with an intercept that is not the optimal one, so that its rounds are not ours. With its
    # intercept put in, the rounds and the solution must agree.
    bags, expected = golden_bags(number), reference(f"alg{number}/mi-SVM")
    model = MeanInterceptMISVM(gamma=0.1, C=1.0, max_iter=250, tol=TIGHT).fit(bags)
    assert model.converged_
    assert model.n_iter_ == expected["n_qp"]
    assert model.objective_[-1] == pytest.approx(-expected["dual_objective"], rel=1e-6)
    rows = InstanceKernel("rbf", 0.1, 3, 1.0).rows(bags.instances, 500)
    optimal = InstanceMISVM(tol=TIGHT)._solve(Split(bags), rows, model.instance_labels_, None).solution.intercept
    assert optimal == pytest.approx(expected["b_kkt"], abs=1e-6)
    scores = model.decision_function(bags) - model.intercept_ + optimal
    assert_allclose(scores, expected["train_scores_with_kkt_b"], rtol=1e-6, atol=2e-6)


def test_some_right_answers_are_written_here_too() -> None:
    bags = mf.Bags(np.arange(10.0)[:, None] % 4, [0, 2, 3, 5, 6, 8, 10], [0, 1, 0, 1, 1, 0])
    for normalize, scores in BY_LOOPS.items():
        model = mf.models.get("NSK")(gamma=0.5, C=1.0, normalize=normalize, tol=TIGHT).fit(bags)
        assert_allclose(model.decision_function(bags), scores, atol=1e-6)


@pytest.mark.parametrize("name", ["SIL", "mi-SVM", "MI-SVM", "MICA", "NSK", "sMIL", "sbMIL"])
def test_two_bags_have_the_solution_that_paper_gives(name: str) -> None:
    # Single instances 0 and 1: K = [[1, e], [e, 1]] with e = exp(-gamma). With one positive and one negative the
    # multipliers are equal, a = min(C, 1 / (1 - e)), and by symmetry b = 0. A bag of one must reach 1 in sMIL too.
    bags = Bags([[0.0], [1.0]], [0, 1, 2], [0, 1])
    e = np.exp(-0.5)
    for c, a in ((10.0, 1 / (1 - e)), (0.5, 0.5)):  # libsvm keeps the kernel in single precision
        model = mf.models.get(name)(gamma=0.5, C=c, tol=TIGHT).fit(bags)
        assert_allclose(model.dual_coef_, [-a, a], rtol=1e-7)
        assert_allclose(model.support_, [0, 1])
        assert model.intercept_ == pytest.approx(0, abs=1e-7)
        assert_allclose(model.decision_function(bags), [-a * (1 - e), a * (1 - e)], rtol=1e-7)
        # w'w / 2 = a a (1 - e), and each of the two falls short of the margin by as much
        expected = a * a * (1 - e) + 2 * c * max(0.0, 1 - a * (1 - e))
        assert np.atleast_1d(model.objective_)[-1] == pytest.approx(expected)
