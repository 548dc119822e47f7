"""SVM models: right answers of an independent solver, laws, defects known from other packages, parameters, messages."""

from __future__ import annotations

import json
import pickle
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import golden_path
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.svm import SVC

import milfast as mf
from milfast import Bags
from milfast.gram import bag_gram, instance_gram
from milfast.models.svm.instance_mi_svm import InstanceMISVM
from milfast.models.svm.nsk import NSK

KINDS = (NSK, InstanceMISVM)
NORMALIZERS = {"NSK": None, "NSK_av": "average", "NSK_fs": "feature-space"}
TIGHT = 1e-10

# Bags of the instances i mod 4, by scikit-learn's SVC on kernel matrices that were summed by loops over all pairs.
BY_LOOPS = {
    None: [-1.0, 1.0, -0.7074971, 0.3248286, 1.0, -1.0],
    "average": [-0.9727478, 0.9727478, -0.5261816, -0.3242493, 0.7708155, -0.9727478],
    "feature-space": [-1.0, 1.0, -0.6344078, -0.2570152, 0.9088263, -1.0],
}


@cache
def reference(case: str) -> dict[str, Any]:
    values: dict[str, dict[str, Any]] = json.loads(golden_path("svm/reference.json").read_text())["values"]
    return values[case]


def golden_bags(number: int) -> Bags:
    with np.load(golden_path(f"svm/alg{number}_n30.npz")) as data:
        return Bags(data["X"], data["offsets"], data["y"])


def small(seed: int = 0, n: int = 40, dtype: str = "float64") -> Bags:
    return mf.sample_bags("presence", n, recipe="strict", n_features=3, random_state=seed, dtype=dtype)


def copied(bags: Bags, times: int) -> Bags:
    """Bags in which every instance occurs several times."""
    return Bags.from_list([np.concatenate([bag] * times) for bag in bags], bags.labels)


# ---------------------------------------------------------------- right answers


def intercepts(scores: np.ndarray, labels: np.ndarray, svm: SVC) -> tuple[float, float]:
    """The interval of intercepts that satisfy the optimality conditions; one point when a multiplier is free.

    `scores` are without intercept. At zero, y (f + b) >= 1; at the bound C = 1, y (f + b) <= 1; between, equality.
    """
    alpha = np.zeros(len(scores))
    alpha[svm.support_] = np.abs(svm.dual_coef_[0])
    sign = 2 * labels - 1
    at = sign - scores
    inside, below = alpha > 1e-7, alpha < 1 - 1e-7
    lower = at[(below & (sign > 0)) | (inside & (sign < 0))]
    upper = at[(inside & (sign > 0)) | (below & (sign < 0))]
    return float(lower.max()), float(upper.min())


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("variant", NORMALIZERS)
def test_nsk_solves_the_problem_like_an_interior_point_solver(variant: str, number: int) -> None:
    bags, expected = golden_bags(number), reference(f"alg{number}/{variant}")
    model = NSK(gamma=0.1, C=1.0, normalize=NORMALIZERS[variant], tol=TIGHT).fit(bags)
    assert model.objective_ == pytest.approx(expected["dual_objective"], rel=1e-6)
    intercept = model.svm_.intercept_[0]
    without = model.decision_function(bags) - intercept
    assert bags.labels is not None
    low, high = intercepts(without, bags.labels, model.svm_)
    if high - low > 1e-4:
        # no multiplier is free: any intercept of the interval is right, and the two solvers differ in their choice
        assert (variant, number) == ("NSK_av", 3)
        assert low < expected["b_kkt"] < high
        assert intercept == pytest.approx((low + high) / 2, rel=1e-6)
    else:
        assert intercept == pytest.approx(expected["b_kkt"], rel=1e-6, abs=1e-6)
    # the reference has six decimals
    wanted = np.array(expected["train_scores_with_kkt_b"]) - expected["b_kkt"]
    assert_allclose(without, wanted, rtol=1e-6, atol=2e-6)


def test_some_right_answers_are_written_here_too() -> None:
    bags = mf.Bags(np.arange(10.0)[:, None] % 4, [0, 2, 3, 5, 6, 8, 10], [0, 1, 0, 1, 1, 0])
    for normalize, scores in BY_LOOPS.items():
        model = NSK(gamma=0.5, C=1.0, normalize=normalize, tol=TIGHT).fit(bags)
        assert_allclose(model.decision_function(bags), scores, atol=1e-6)


class MeanInterceptMISVM(InstanceMISVM):
    """With the intercept of the reference implementation: the mean over all support vectors, bounded ones too."""

    def _solve(self, gram: np.ndarray, labels: np.ndarray) -> SVC:
        svm = super()._solve(gram, labels)
        signs = 2.0 * labels[svm.support_] - 1
        scores = gram[np.ix_(svm.support_, svm.support_)] @ svm.dual_coef_[0]
        svm.intercept_ = np.array([np.mean(signs - scores)])
        return svm


@pytest.mark.parametrize("number", [1, 2, 3])
def test_mi_svm_takes_the_path_of_the_reference_when_given_its_intercept(number: int) -> None:
    # The reference relabels with an intercept that is not the optimal one, so that its rounds are not ours. With its
    # intercept put in, the rounds and the solution must agree.
    bags, expected = golden_bags(number), reference(f"alg{number}/mi-SVM")
    model = MeanInterceptMISVM(gamma=0.1, C=1.0, max_iter=250, tol=TIGHT).fit(bags)
    assert model.converged_
    assert model.n_iter_ == expected["n_qp"]
    assert model.objective_[-1] == pytest.approx(expected["dual_objective"], rel=1e-6)
    gram = instance_gram(bags.instances, None, "rbf", 0.1, 3, 1.0)
    optimal = InstanceMISVM(tol=TIGHT)._solve(gram, model.instance_labels_).intercept_[0]
    assert optimal == pytest.approx(expected["b_kkt"], abs=1e-6)
    scores = model.decision_function(bags) - model.svm_.intercept_[0] + optimal
    assert_allclose(scores, expected["train_scores_with_kkt_b"], rtol=1e-6, atol=2e-6)


def test_two_bags_have_the_solution_that_paper_gives() -> None:
    # Single instances 0 and 1: K = [[1, e], [e, 1]] with e = exp(-gamma). With one positive and one negative the
    # multipliers are equal, a = min(C, 1 / (1 - e)), and by symmetry b = 0.
    bags = Bags([[0.0], [1.0]], [0, 1, 2], [0, 1])
    e = np.exp(-0.5)
    for kind in KINDS:
        for c, a in ((10.0, 1 / (1 - e)), (0.5, 0.5)):  # libsvm keeps the kernel in single precision
            model = kind(gamma=0.5, C=c, tol=TIGHT).fit(bags)
            assert_allclose(model.svm_.dual_coef_[0], [-a, a], rtol=1e-7)
            assert model.svm_.intercept_[0] == pytest.approx(0, abs=1e-7)
            assert_allclose(model.decision_function(bags), [-a * (1 - e), a * (1 - e)], rtol=1e-7)
            objective = np.atleast_1d(model.objective_)[-1]
            assert objective == pytest.approx(a * a * (1 - e) - 2 * a)


def features_of(kernel: str, x: np.ndarray) -> np.ndarray:
    """Features whose inner product is the kernel, for gamma 0.5, degree 2 and coef0 1."""
    if kernel == "linear":
        return x
    x = np.sqrt(0.5) * x
    pairs = np.stack([np.outer(row, row).ravel() for row in x])
    return np.hstack([pairs, np.sqrt(2) * x, np.ones((len(x), 1))])


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("normalize", [None, "average"])
def test_nsk_is_a_plain_svm_on_summed_features(kernel: str, normalize: Any) -> None:
    train, test = small(0), small(1)
    parameters = {"kernel": kernel, "gamma": 0.5, "degree": 2, "coef0": 1.0, "C": 0.3}
    model = NSK(**parameters, normalize=normalize, tol=TIGHT).fit(train)

    def pooled(bags: Bags) -> np.ndarray:
        mapped = np.add.reduceat(features_of(kernel, bags.instances), bags.offsets[:-1])
        return mapped if normalize is None else mapped / bags.sizes[:, None]

    plain = SVC(kernel="linear", C=0.3, tol=TIGHT).fit(pooled(train), train.labels)
    assert_allclose(model.decision_function(test), plain.decision_function(pooled(test)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_mi_svm_ends_in_a_plain_svm_on_its_own_instance_labels(kernel: str) -> None:
    train, test = small(0), small(1)
    model = InstanceMISVM(kernel=kernel, gamma=0.5, degree=2, C=0.3, tol=1e-8, max_iter=200).fit(train)
    assert model.converged_
    plain = SVC(kernel="linear", C=0.3, tol=1e-8).fit(features_of(kernel, train.instances), model.instance_labels_)
    expected = plain.decision_function(features_of(kernel, test.instances))
    assert_allclose(model.instance_scores(test), expected, rtol=1e-5, atol=1e-5)


def test_gamma_scale_is_that_of_scikit_learn() -> None:
    bags = small(dtype="float32")
    plain = SVC(gamma="scale").fit(bags.instances, np.arange(bags.n_instances) % 2)
    for kind in KINDS:
        assert kind().fit(bags).gamma_ == pytest.approx(plain._gamma, rel=1e-5)
        assert kind(gamma=2).fit(bags).gamma_ == 2.0
        # features without spread
        assert kind().fit(Bags([[1.0], [1.0]], [0, 1, 2], [0, 1])).gamma_ == 1.0


# ---------------------------------------------------------------- defects of other packages that must not be here


@pytest.mark.parametrize("kind", KINDS)
def test_the_intercept_fits_the_free_support_vectors_and_not_the_mean_of_all(kind: type) -> None:
    bags = small()
    model = NSK(gamma=0.3, C=0.05, normalize=None, tol=TIGHT) if kind is NSK else kind(gamma=0.3, C=0.5, tol=TIGHT)
    svm = model.fit(bags).svm_
    free = np.abs(svm.dual_coef_[0]) < model.C * (1 - 1e-6)
    assert 0 < free.sum() < len(free)
    if kind is NSK:
        scores, labels = model.decision_function(bags), bags.labels
    else:
        scores, labels = model.instance_scores(bags), model.instance_labels_
    signs = 2 * labels[svm.support_] - 1
    assert_allclose((signs * scores[svm.support_])[free], 1, atol=1e-6)
    # optimality of the others: inside the margin at the bound, outside it at zero
    assert (signs * scores[svm.support_])[~free].max() <= 1 + 1e-6
    outside = np.setdiff1d(np.arange(len(scores)), svm.support_)
    assert ((2 * labels[outside] - 1) * scores[outside]).min() >= 1 - 1e-6
    assert abs(np.mean(signs - (scores[svm.support_] - svm.intercept_[0])) - svm.intercept_[0]) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_labels_and_scores_are_scores(kind: type) -> None:
    train, test = small(0, 60), small(1, 60)
    model = kind(gamma=0.3).fit(train)
    scores, labels = model.decision_function(test), model.predict(test)
    assert (scores.dtype, labels.dtype) == (np.float64, np.int64)
    assert scores.shape == labels.shape == (60,)
    assert_array_equal(labels, scores > 0)
    assert set(labels) == {0, 1}
    assert len(np.unique(scores)) > 50
    assert mf.auc(scores, test.labels) > 0.7
    assert_array_equal(model.classes_, [0, 1])


def test_nothing_is_normalised_unless_asked_for() -> None:
    bags = small()
    expected = {None: 1.0, "average": 1 / np.outer(bags.sizes, bags.sizes)}
    raw = bag_gram(bags, gamma=0.3)
    expected["feature-space"] = 1 / np.sqrt(np.outer(raw.diagonal(), raw.diagonal()))
    for normalize, factor in expected.items():
        model = NSK(gamma=0.3, C=1.0, normalize=normalize, tol=TIGHT).fit(bags)
        plain = SVC(kernel="precomputed", tol=TIGHT).fit(raw * factor, bags.labels)
        assert_allclose(model.decision_function(bags), plain.decision_function(raw * factor), rtol=1e-6, atol=1e-6)
    assert NSK().normalize == "average"
    assert NSK.tested["normalize"] is None


def test_the_weight_of_the_slack_is_not_divided_by_the_number_of_bags() -> None:
    model = NSK(gamma=0.3, C=0.01).fit(small())
    assert np.abs(model.svm_.dual_coef_).max() == pytest.approx(0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_a_solver_that_fails_is_heard(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ArithmeticError("no solution")

    monkeypatch.setattr("milfast.models.svm.base.SVC.fit", fails)
    with pytest.raises(ArithmeticError, match="no solution"):
        kind().fit(small())


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_can_be_read_set_cloned_and_searched(kind: type) -> None:
    train, test = small(0), small(1)
    model = kind(C=3.0, gamma=0.2)
    again = clone(model)
    assert again is not model
    assert again.get_params() == model.get_params()
    assert set(model.get_params()) >= {"kernel", "gamma", "degree", "coef0", "C", "class_weight", "tol"}
    assert repr(model) == f"{kind.__name__}(C=3.0, gamma=0.2)"
    reached = set()
    for setting in ParameterGrid({"C": [0.01, 1.0], "gamma": [0.01, 0.3]}):
        scores = clone(model).set_params(**setting).fit(train).decision_function(test)
        reached.add(mf.auc(scores, test.labels))
    assert len(reached) > 1
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        model.set_params(colour=1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickled_model_scores_the_same(kind: type) -> None:
    bags = small()
    model = kind(gamma=0.3).fit(bags)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(bags), model.decision_function(bags))


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_order_of_instances_and_of_bags_means_nothing(kind: type, kernel: str) -> None:
    train, test = small(0), small(1)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(train))

    def shuffled(bags: Bags) -> Bags:
        return Bags.from_list([rng.permutation(bag) for bag in bags], bags.labels)

    model = kind(kernel=kernel, gamma=0.3, tol=TIGHT).fit(train)
    scores = model.decision_function(test)
    assert_allclose(model.decision_function(shuffled(test)), scores, rtol=1e-9, atol=1e-9)
    assert_allclose(model.decision_function(test[::-1]), scores[::-1], rtol=1e-9, atol=1e-9)
    again = kind(kernel=kernel, gamma=0.3, tol=TIGHT).fit(shuffled(train)[order])
    assert_allclose(again.decision_function(test), scores, rtol=1e-5, atol=1e-5)


def test_copies_of_all_instances_of_a_bag_leave_averaged_and_best_scores_alone() -> None:
    train, test = small(0), small(1)
    for normalize in ("average", "feature-space"):
        model = NSK(gamma=0.3, C=1.0, normalize=normalize, tol=TIGHT).fit(train)
        scores = model.decision_function(test)
        assert_allclose(model.decision_function(copied(test, 3)), scores, rtol=1e-9, atol=1e-9)
        again = NSK(gamma=0.3, C=1.0, normalize=normalize, tol=TIGHT).fit(copied(train, 2))
        assert_allclose(again.decision_function(test), scores, rtol=1e-6, atol=1e-6)
    model = InstanceMISVM(gamma=0.3).fit(train)
    assert_allclose(model.decision_function(copied(test, 3)), model.decision_function(test), rtol=1e-9)
    # the plain sum grows with the bag
    model = NSK(gamma=0.3, normalize=None).fit(train)
    grown = model.decision_function(copied(test, 3)) - model.svm_.intercept_[0]
    assert_allclose(grown, 3 * (model.decision_function(test) - model.svm_.intercept_[0]), rtol=1e-9, atol=1e-9)


def test_the_score_of_a_bag_does_not_depend_on_its_company() -> None:
    train, test = small(0), small(1)
    for kind in KINDS:
        model = kind(gamma=0.3).fit(train)
        together = model.decision_function(test)
        alone = [model.decision_function(test[[i]])[0] for i in range(len(test))]
        assert_allclose(alone, together, rtol=1e-12, atol=1e-12)


def test_mi_svm_scores_a_bag_by_its_best_instance() -> None:
    train, test = small(0), small(1)
    model = InstanceMISVM(gamma=0.3).fit(train)
    scores = model.instance_scores(test)
    assert scores.shape == (test.n_instances,)
    best = [part.max() for part in np.split(scores, test.offsets[1:-1])]
    assert_array_equal(model.decision_function(test), best)
    expected = (
        instance_gram(test.instances, train.instances[model.svm_.support_], "rbf", 0.3, 3, 1.0)
        @ model.svm_.dual_coef_[0]
        + model.svm_.intercept_[0]
    )
    assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


def test_an_instance_more_never_lowers_the_score_of_mi_svm_but_may_lower_that_of_nsk() -> None:
    train, test = small(0), small(1)
    rng = np.random.default_rng(0)
    more = Bags.from_list([np.vstack([bag, 3 * rng.normal(size=(1, 3))]) for bag in test])
    before, after = (InstanceMISVM(gamma=0.3).fit(train).decision_function(b) for b in (test, more))
    assert (after >= before - 1e-12).all()
    assert (after > before + 1e-3).any()
    before, after = (NSK(gamma=0.3).fit(train).decision_function(b) for b in (test, more))
    assert (after < before - 1e-3).any()


def test_instances_can_be_scored_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = small(0), small(1)
    model = InstanceMISVM(gamma=0.3).fit(train)
    whole = model.instance_scores(test)
    monkeypatch.setattr("milfast.models.svm.instance_mi_svm.BLOCK", 7 * len(model.support_vectors_))
    assert_allclose(model.instance_scores(test), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("max_iter", [1, 2, 50])
@pytest.mark.parametrize("spelling", ["paper", "strict"])
def test_negative_bags_have_no_positive_instance_and_positive_bags_at_least_one(spelling: str, max_iter: int) -> None:
    bags = mf.sample_bags("presence", 40, recipe=spelling, n_features=3, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = InstanceMISVM(gamma=0.3, max_iter=max_iter).fit(bags)
    assert model.n_iter_ == len(model.objective_) <= max_iter
    assert set(model.instance_labels_) == {0, 1}
    positives = np.add.reduceat(model.instance_labels_, bags.offsets[:-1])
    assert_array_equal(positives > 0, bags.labels == 1)


def test_a_converged_mi_svm_agrees_with_its_own_labels() -> None:
    bags = small(2)
    model = InstanceMISVM(gamma=0.3, C=0.1, tol=1e-8).fit(bags)
    assert model.converged_
    scores = model.instance_scores(bags)
    in_positive = np.repeat(bags.labels == 1, bags.sizes)
    best = np.zeros(len(scores), dtype=bool)
    for first, last in zip(bags.offsets[:-1], bags.offsets[1:], strict=True):
        best[first + np.argmax(scores[first:last])] = True
    clear = np.abs(scores) > 1e-6
    expected = in_positive & ((scores >= 0) | best)
    assert_array_equal(model.instance_labels_[clear], expected[clear])
    # small C: some positive bag lies wholly below zero, and is positive by its best instance alone
    assert (np.maximum.reduceat(scores, bags.offsets[:-1])[bags.labels == 1] < 0).any()


def test_mi_svm_says_when_it_was_stopped() -> None:
    bags = small()
    with pytest.warns(ConvergenceWarning, match="stopped after 1 rounds while instance labels still changed") as caught:
        model = InstanceMISVM(gamma=0.3, max_iter=1).fit(bags)
    assert caught[0].filename == __file__
    assert not model.converged_
    assert model.n_iter_ == 1
    assert InstanceMISVM(gamma=0.3).fit(bags).converged_


@pytest.mark.parametrize("kind", KINDS)
def test_class_weights_are_those_of_scikit_learn(kind: type) -> None:
    bags = mf.sample_bags("presence", 40, recipe="strict", n_features=3, random_state=0, positive_fraction=0.2)

    def scores(class_weight: Any) -> np.ndarray:
        model = kind(gamma=0.3, C=0.2, class_weight=class_weight, tol=1e-8).fit(bags)
        return np.asarray(model.decision_function(bags))

    plain, heavy = scores(None), scores({1: 10.0})
    assert heavy.mean() > plain.mean() + 0.1
    assert_allclose(scores({0: 1.0, 1: 1.0}), plain, atol=1e-6)
    if kind is NSK:
        assert_allclose(scores("balanced"), scores({0: 40 / 64, 1: 40 / 16}), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_bags_give_nearly_the_scores_of_double_precision(kind: type) -> None:
    single = small(0, dtype="float32")
    double = single.with_instances(single.instances.astype(np.float64))
    scores = [kind(gamma=0.3, tol=1e-8).fit(bags).decision_function(bags) for bags in (single, double)]
    assert_allclose(*scores, atol=1e-4)


def test_support_is_kept_and_no_more() -> None:
    bags = small()
    model = NSK(gamma=0.3).fit(bags)
    assert len(model.support_bags_) == len(model.svm_.support_) < len(bags) + 1
    assert_array_equal(model.support_bags_.sizes, bags.sizes[model.svm_.support_])
    other = InstanceMISVM(gamma=0.3).fit(bags)
    assert_array_equal(other.support_vectors_, bags.instances[other.svm_.support_])
    assert (model.n_features_in_, other.n_features_in_) == (3, 3)


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "sigmoid"}, "kernel must be rbf, linear or poly; got 'sigmoid'"),
        ({"gamma": 0.0}, "gamma must be 'scale' or a positive number; got 0.0"),
        ({"gamma": "auto"}, "gamma must be 'scale' or a positive number; got 'auto'"),
        ({"gamma": np.nan}, "gamma must be 'scale' or a positive number; got nan"),
        ({"gamma": True}, "gamma must be 'scale' or a positive number; got True"),
        ({"C": 0}, "C must be a positive number; got 0"),
        ({"C": np.inf}, "C must be a positive number; got inf"),
        ({"C": "1"}, "C must be a positive number; got '1'"),
        ({"tol": -1e-3}, "tol must be a positive number; got -0.001"),
        ({"coef0": np.nan}, "coef0 must be a number; got nan"),
        ({"coef0": None}, "coef0 must be a number; got None"),
        ({"degree": 0}, "degree must be a positive integer; got 0"),
        ({"degree": 2.0}, "degree must be a positive integer; got 2.0"),
        ({"degree": True}, "degree must be a positive integer; got True"),
        ({"class_weight": "heavy"}, "class_weight"),
    ],
)
def test_a_parameter_out_of_range_is_named(kind: type, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**parameters).fit(small())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NSK(normalize="sum"), "normalize must be None, average or feature-space; got 'sum'"),
        (InstanceMISVM(max_iter=0), "max_iter must be a positive integer; got 0"),
        (InstanceMISVM(max_iter=2.5), "max_iter must be a positive integer; got 2.5"),
        (InstanceMISVM(max_iter=True), "max_iter must be a positive integer; got True"),
    ],
)
def test_a_parameter_of_one_model_out_of_range_is_named(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(small())
    with pytest.raises(NotFittedError):
        model.decision_function(small())


def test_a_bag_without_length_in_feature_space_is_named() -> None:
    bags = Bags([[1.0], [-1.0], [1.0]], [0, 2, 3], [0, 1])
    with pytest.raises(ValueError, match=r"bag 0 of a has length 0\.0 in feature space"):
        NSK(kernel="linear", normalize="feature-space").fit(bags)


@pytest.mark.parametrize("kind", KINDS)
def test_bags_that_cannot_be_used_are_refused(kind: type) -> None:
    bags = small()
    model = kind(gamma=0.3)
    with pytest.raises(NotFittedError):
        model.decision_function(bags)
    with pytest.raises(TypeError, match=r"bags must be milfast\.Bags, got list: see Bags\.from_list"):
        model.fit(bags.to_list())
    with pytest.raises(TypeError, match="labels go into the bags"):
        model.fit(bags, bags.labels)
    with pytest.raises(ValueError, match="bags carry no labels"):
        model.fit(Bags(bags.instances, bags.offsets))
    with pytest.raises(ValueError, match="all 20 bags have label 1: both classes are needed"):
        model.fit(bags[bags.labels == 1])
    model.fit(bags)
    with pytest.raises(TypeError, match=r"bags must be milfast\.Bags, got ndarray"):
        model.predict(bags.instances)
    with pytest.raises(ValueError, match="bags have 2 features, the training bags had 3"):
        model.decision_function(bags.with_instances(bags.instances[:, :2]))
