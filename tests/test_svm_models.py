"""What all SVM models share: scores, parameters, kernels, weights of classes, laws, edges, messages.

Right answers are in test_svm_golden.py, rounds in test_svm_alternating.py, the solver in test_svm_solver.py.
"""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.svm import SVC
from svm_oracles import ALTERNATING, NAMES, OF_BAGS, OF_WHOLES, bag_parts, few, objective, rbf, singletons, small

import milfast as mf
from milfast import Bags
from milfast.gram import bag_gram

GAMMA = 0.3
#: stMIL holds many instances at the margin, with which the solver is slow.
TIGHT = dict.fromkeys(NAMES, 1e-9) | {"stMIL": 1e-6}
every_model = pytest.mark.parametrize("name", NAMES)
instance_models = pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_WHOLES])


def kind(name: str) -> Any:
    return mf.models.get(name)


def fitted(name: str, bags: Bags, **parameters: Any) -> Any:
    return kind(name)(**{"gamma": GAMMA, "C": 1.0} | parameters).fit(bags)


def gaussian(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return rbf(x.astype(np.float64), y.astype(np.float64), GAMMA)


def lopsided(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return gaussian(x, y) + x[:, :1]


# ---------------------------------------------------------------- scores and labels


def test_there_are_ten_models() -> None:
    assert len(NAMES) == 10
    assert set(ALTERNATING) | set(OF_WHOLES) < set(NAMES)


@every_model
def test_predictions_are_labels_and_scores_are_scores(name: str) -> None:
    train, test = small(0, 60), small(1, 60)
    model = fitted(name, train)
    scores, labels = model.decision_function(test), model.predict(test)
    assert (scores.dtype, labels.dtype) == (np.float64, np.int64)
    assert scores.shape == labels.shape == (60,)
    assert_array_equal(labels, scores > 0)
    assert len(np.unique(scores.round(9))) > 20
    # stMIL calls all instances negative where positive bags are large and hold one positive instance
    if name != "stMIL":
        assert mf.auc(scores, test.labels) > 0.7
        assert mf.auc(model.decision_function(train), train.labels) > 0.8
    assert_array_equal(model.classes_, [0, 1])
    assert model.n_features_in_ == 3
    assert model.converged_ is True
    assert model.gamma_ == GAMMA


@every_model
def test_small_bags_with_a_shifted_instance_are_told_apart(name: str) -> None:
    model = fitted(name, few(0, 60))
    for seed, least in ((0, 0.88), (1, 0.87), (2, 0.8)):
        bags = few(seed, 60)
        assert mf.auc(model.decision_function(bags), bags.labels) > least


@every_model
def test_an_instance_scores_as_a_bag_that_holds_nothing_else(name: str) -> None:
    train, test = small(0), small(1)
    model = fitted(name, train)
    scores = model.instance_scores(test)
    assert scores.shape == (test.n_instances,)
    assert_allclose(scores, model.decision_function(singletons(test.instances)), rtol=1e-12, atol=1e-12)


@instance_models
def test_a_bag_scores_as_its_best_instance(name: str) -> None:
    train, test = small(0), small(1)
    model = fitted(name, train)
    best = [part.max() for part in bag_parts(test, model.instance_scores(test))]
    assert_array_equal(model.decision_function(test), best)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_BAGS])
def test_scores_are_made_of_the_support(name: str) -> None:
    train, test = small(0), small(1)
    model = fitted(name, train)
    assert len(model.support_) == len(model.dual_coef_) == len(model.support_vectors_) < train.n_instances
    assert_array_equal(model.support_vectors_, train.instances[model.support_])
    assert (model.dual_coef_ != 0).all()
    assert model.dual_coef_.sum() == pytest.approx(0, abs=1e-9) or name in ("stMIL", "sMIL", "sbMIL")
    expected = rbf(test.instances, model.support_vectors_, GAMMA) @ model.dual_coef_ + model.intercept_
    if name == "sMIL":
        expected = np.add.reduceat(expected - model.intercept_, test.offsets[:-1]) / test.sizes + model.intercept_
        assert_allclose(model.decision_function(test), expected, rtol=1e-12, atol=1e-12)
    else:
        assert_allclose(model.instance_scores(test), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", OF_BAGS)
def test_scores_of_models_of_bags_are_made_of_support_bags(name: str) -> None:
    bags = small()
    model = fitted(name, bags)
    assert len(model.support_) == len(model.support_bags_) == len(model.dual_coef_) <= len(bags)
    assert_array_equal(model.support_bags_.sizes, bags.sizes[model.support_])
    assert_array_equal(model.support_, model.svm_.support_)
    assert_array_equal(model.dual_coef_, model.svm_.dual_coef_[0])
    assert model.intercept_ == model.svm_.intercept_[0]
    assert np.abs(model.dual_coef_).max() <= 1.0  # C, and no share of it


@pytest.mark.parametrize("name", ["SIL", "NSK", "STK", "sMIL", "sbMIL"])
def test_the_objective_of_a_convex_model_is_the_one_of_the_docstring(name: str) -> None:
    for seed in range(3):
        bags = small(seed)
        model = fitted(name, bags, tol=1e-9)
        assert model.objective_ == pytest.approx(objective(name, model, bags), rel=1e-6)
        assert model.n_iter_ == (2 if name == "sbMIL" else 1)
        other = fitted(name, bags, tol=1e-9, C=2.0)
        # equal where no multiplier is at its bound
        assert other.objective_ >= model.objective_ - 1e-9


def test_sil_is_a_plain_svm_on_instances() -> None:
    train, test = small(0), small(1)
    model = fitted("SIL", train, tol=1e-9, class_weight={0: 0.5})
    labels = np.repeat(train.labels, train.sizes)  # type: ignore[arg-type]
    plain = SVC(gamma=GAMMA, tol=1e-9, class_weight={0: 0.5}).fit(train.instances, labels)
    assert_allclose(model.instance_scores(test), plain.decision_function(test.instances), atol=1e-5)


@pytest.mark.parametrize("eta", [0.0, 0.4, 1.0])
def test_sb_mil_takes_the_best_instances_of_s_mil_for_positive(eta: float) -> None:
    train, test = small(0), small(1)
    model = fitted("sbMIL", train, eta=eta, tol=1e-9)
    inside = np.repeat(train.labels == 1, train.sizes)
    count = max(int(train.labels.sum()), round(eta * inside.sum()))  # type: ignore[union-attr]
    assert model.instance_labels_.sum() == count
    assert not model.instance_labels_[~inside].any()
    first = fitted("sMIL", train, tol=1e-9).instance_scores(train)
    chosen = model.instance_labels_ == 1
    assert eta == 1 or first[chosen].min() >= first[inside & ~chosen].max()
    plain = SVC(gamma=GAMMA, tol=1e-9).fit(train.instances, model.instance_labels_)
    assert_allclose(model.instance_scores(test), plain.decision_function(test.instances), atol=1e-5)


@pytest.mark.parametrize("name", ["sMIL", "stMIL"])
def test_the_weight_of_the_slack_is_divided_by_counts_when_asked_for(name: str) -> None:
    bags = small()
    inside = int(bags.sizes[bags.labels == 1].sum())
    limits = 1 / (bags.n_instances - inside), 1 / 15 / 3
    model = fitted(name, bags, scale_C=True)
    outside = np.repeat(bags.labels == 0, bags.sizes)[model.support_]
    assert np.abs(model.dual_coef_[outside]).max() == pytest.approx(limits[0])
    plain = fitted(name, bags)
    outside = np.repeat(bags.labels == 0, bags.sizes)[plain.support_]
    assert np.abs(plain.dual_coef_[outside]).max() > 0.3


# ---------------------------------------------------------------- parameters


@every_model
def test_parameters_can_be_read_set_cloned_and_searched(name: str) -> None:
    train, test = small(0), small(1)
    model = kind(name)(C=3.0, gamma=0.2)
    again = clone(model)
    assert again is not model
    assert again.get_params() == model.get_params()
    assert set(model.get_params()) >= {"kernel", "gamma", "degree", "coef0", "C", "class_weight", "tol"}
    assert repr(model) == f"{type(model).__name__}(C=3.0, gamma=0.2)"
    reached = set()
    for setting in ParameterGrid({"C": [0.01, 1.0], "gamma": [0.01, 0.3]}):
        found = clone(model).set_params(**setting).fit(train)
        assert found.get_params()["C"] == setting["C"]
        reached.add(found.decision_function(test).tobytes())
    assert len(reached) == 4
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        model.set_params(colour=1)


@every_model
def test_a_pickled_model_scores_the_same(name: str) -> None:
    bags = small()
    model = fitted(name, bags)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(bags), model.decision_function(bags))
    assert again.get_params() == model.get_params()
    assert (
        kind(name)(gamma=GAMMA, C=1.0).fit(bags).decision_function(bags).tolist()
        == again.decision_function(bags).tolist()
    )


@every_model
def test_a_second_fit_forgets_the_first(name: str) -> None:
    one, two = small(0), few(0)
    model = fitted(name, one).fit(two)
    assert_array_equal(model.decision_function(two), fitted(name, two).decision_function(two))


@every_model
def test_gamma_scale_is_that_of_scikit_learn(name: str) -> None:
    bags = small(dtype="float32")
    x = np.array([[*bag.min(axis=0), *bag.max(axis=0)] for bag in bags]) if name == "STK" else bags.instances
    plain = SVC(gamma="scale").fit(x, np.arange(len(x)) % 2)
    model = kind(name)().fit(bags)
    assert model.gamma == "scale"
    assert model.gamma_ == pytest.approx(plain._gamma, rel=1e-5)
    assert kind(name)(gamma=2).fit(bags).gamma_ == 2.0
    assert_allclose(kind(name)(gamma=model.gamma_).fit(bags).decision_function(bags), model.decision_function(bags))


# ---------------------------------------------------------------- kernels


@every_model
def test_a_function_that_is_the_gaussian_kernel_gives_its_scores(name: str) -> None:
    train, test = few(0, 16), few(1)
    tol = TIGHT[name]
    named, called = (fitted(name, train, kernel=kernel, tol=tol) for kernel in ("rbf", gaussian))
    atol = 1e-3 if name == "stMIL" else 1e-6
    assert_allclose(called.decision_function(test), named.decision_function(test), atol=atol)
    assert_allclose(called.instance_scores(test), named.instance_scores(test), atol=atol)
    assert_allclose(called.objective_, named.objective_, rtol=1e-5 if name == "stMIL" else 1e-6)


@pytest.mark.parametrize("name", ["NSK", "sMIL", "sbMIL", "stMIL"])
def test_a_kernel_function_can_be_normalised_by_length(name: str) -> None:
    bags = few(1)
    named, called = (
        fitted(name, bags, kernel=kernel, tol=TIGHT[name], normalize="feature-space") for kernel in ("rbf", gaussian)
    )
    assert_allclose(
        called.decision_function(bags), named.decision_function(bags), atol=1e-3 if name == "stMIL" else 1e-6
    )


def test_set_kernels_of_functions_are_summed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = small(0), small(1)
    model = fitted("NSK", train, kernel=gaussian)
    whole = model.decision_function(test)
    for block in (1, 40 * test.n_instances):
        monkeypatch.setattr("milfast.models.svm.bag_kernel.BLOCK", block)
        assert_allclose(model.decision_function(test), whole, rtol=1e-12, atol=1e-12)


@every_model
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_linear_and_polynomial_kernels_are_those_of_functions(name: str, kernel: str) -> None:
    train, test = few(0, 16), few(1)

    def function(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        product = x @ y.T
        return product if kernel == "linear" else (0.2 * product + 0.5) ** 2

    tol = 1e-5
    options = {"gamma": 0.2, "degree": 2, "coef0": 0.5, "C": 0.2, "tol": tol}
    named, called = (fitted(name, train, kernel=k, **options) for k in (kernel, function))
    assert_allclose(np.atleast_1d(called.objective_)[-1], np.atleast_1d(named.objective_)[-1], rtol=1e-3)
    assert_allclose(called.decision_function(test), named.decision_function(test), atol=0.02)
    assert np.ptp(named.decision_function(test)) > 0.02 or name == "stMIL"


@every_model
def test_kernel_functions_that_are_no_kernels_are_refused(name: str) -> None:
    bags = small(0, 10)
    with pytest.raises(ValueError, match=r"kernel must be symmetric: kernel\(x, y\) and kernel\(y, x\) differ"):
        fitted(name, bags, kernel=lopsided)
    with pytest.raises(ValueError, match="kernel must return finite numbers"):
        fitted(name, bags, kernel=lambda x, y: np.full((len(x), len(y)), np.nan))
    with pytest.raises(ValueError, match=r"kernel must return shape \(\d+, \d+\); got \(\)"):
        fitted(name, bags, kernel=lambda x, y: 1.0)


@every_model
def test_kernels_beyond_floating_point_are_refused(name: str) -> None:
    bags = small(0, 10)
    large = bags.with_instances(bags.instances * 1e120)
    with pytest.raises(
        ValueError, match=r"the linear kernel of these instances may exceed 1e\+150: scale the features"
    ):
        fitted(name, large, kernel="linear")
    with pytest.raises(ValueError, match="the poly kernel of these instances may exceed"):
        fitted(name, bags, kernel="poly", degree=4000)
    model = fitted(name, bags, kernel="linear")
    with pytest.raises(ValueError, match="the linear kernel of these instances may exceed"):
        model.decision_function(bags.with_instances(bags.instances * 1e150 * 1e100))


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
    model = fitted("NSK", train, **parameters, normalize=normalize, tol=1e-10)

    def pooled(bags: Bags) -> np.ndarray:
        mapped = np.add.reduceat(features_of(kernel, bags.instances), bags.offsets[:-1])
        return mapped if normalize is None else mapped / bags.sizes[:, None]

    plain = SVC(kernel="linear", C=0.3, tol=1e-10).fit(pooled(train), train.labels)
    assert_allclose(model.decision_function(test), plain.decision_function(pooled(test)), rtol=1e-6, atol=1e-6)


def test_the_set_kernel_is_divided_by_what_was_asked_for_and_else_not() -> None:
    bags = small()
    raw = bag_gram(bags, gamma=GAMMA)
    expected = {
        None: 1.0,
        "average": 1 / np.outer(bags.sizes, bags.sizes),
        "feature-space": 1 / np.sqrt(np.outer(raw.diagonal(), raw.diagonal())),
    }
    for normalize, factor in expected.items():
        model = fitted("NSK", bags, normalize=normalize, tol=1e-10)
        plain = SVC(kernel="precomputed", tol=1e-10).fit(raw * factor, bags.labels)
        assert_allclose(model.decision_function(bags), plain.decision_function(raw * factor), rtol=1e-6, atol=1e-6)
    assert kind("NSK")().normalize == "average"
    assert kind("NSK").tested["normalize"] is None


def test_bags_without_length_in_feature_space_are_named_by_their_number() -> None:
    options: dict[str, Any] = {"kernel": "linear", "normalize": "feature-space"}
    cancelling = [np.array([[1.0], [-1.0]]), np.array([[2.0]])]
    ones = [np.array([[1.0]]), np.array([[3.0]])]
    positive = Bags.from_list([*ones, *cancelling], [0, 1, 1, 0])
    with pytest.raises(ValueError, match=r"bag 2 of a has length 0\.0 in feature space"):
        fitted("NSK", positive, **options)
    for name in ("sMIL", "sbMIL", "stMIL"):
        with pytest.raises(ValueError, match=r"bag 2 has length 0\.0 in feature space: it cannot be normalised"):
            fitted(name, positive, **options)
    zero = Bags([[1.0], [0.0], [2.0]], [0, 1, 2, 3], [1, 0, 1])
    with pytest.raises(ValueError, match=r"instance 1 has length 0\.0 in feature space: it cannot be normalised"):
        fitted("sMIL", zero, **options)
    with pytest.raises(ValueError, match=r"bag 2 has length 0\.0 in feature space"):
        fitted("NSK", positive, **options | {"kernel": lambda x, y: x @ y.T})


# ---------------------------------------------------------------- defects of other packages that must not be here


@every_model
def test_a_fitted_model_never_scores_zeros_for_want_of_a_number(name: str) -> None:
    # Elsewhere newer versions of NumPy refuse to turn a matrix into a number, and the error is swallowed.
    bags = small()
    model = fitted(name, bags)
    assert type(model.intercept_) is float
    assert all(type(cost) is float for cost in np.atleast_1d(np.array(model.objective_, dtype=object)))
    assert np.isfinite(model.decision_function(bags)).all()
    assert np.ptp(model.decision_function(bags)) > 1e-4


@pytest.mark.parametrize("name", ["SIL", "sbMIL", "NSK", "STK"])
def test_the_intercept_fits_the_free_support_vectors_and_not_the_mean_of_all(name: str) -> None:
    bags = small()
    c = 0.05 if name == "NSK" else 0.5
    model = fitted(name, bags, C=c, tol=1e-9, **({"normalize": None} if name == "NSK" else {}))
    assert bags.labels is not None
    if name in OF_BAGS:
        scores, labels = model.decision_function(bags), bags.labels
    else:
        scores = model.instance_scores(bags)
        labels = np.repeat(bags.labels, bags.sizes) if name == "SIL" else model.instance_labels_
    margins = (2 * labels - 1) * scores
    held = np.zeros(len(scores))
    held[model.support_] = np.abs(model.dual_coef_)
    free, bounded = (held > 1e-7) & (held < c * (1 - 1e-6)), held >= c * (1 - 1e-6)
    assert free.any()
    assert bounded.any()
    assert_allclose(margins[free], 1, atol=1e-5)
    # optimality of the others: inside the margin at the bound, outside it at zero
    assert margins[bounded].max() <= 1 + 1e-5
    assert margins[held <= 1e-7].min() >= 1 - 1e-5
    assert abs(np.mean(1 - margins[held > 1e-7])) > 1e-3


@every_model
def test_an_error_while_fitting_is_heard(name: str) -> None:
    def fails(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        raise ArithmeticError("no solution")

    model = kind(name)(kernel=fails)
    with pytest.raises(ArithmeticError, match="no solution"):
        model.fit(small())
    with pytest.raises(NotFittedError):
        model.predict(small())


# ---------------------------------------------------------------- weights of classes


@every_model
def test_equal_weights_of_classes_change_nothing_and_a_heavy_class_pulls(name: str) -> None:
    bags = mf.sample_bags("presence", 30, recipe="strict", n_features=3, random_state=0, positive_fraction=0.3)

    def scores(class_weight: Any) -> np.ndarray:
        # a small C leaves errors, over which the classes quarrel
        model = fitted(name, bags, C=0.02, class_weight=class_weight, tol=1e-4)
        return np.asarray(model.decision_function(bags))

    plain = scores(None)
    assert_allclose(scores({0: 1.0, 1: 1.0}), plain, atol=1e-9)
    assert_allclose(scores({}), plain, atol=1e-9)
    heavy = scores({1: 20.0})
    # the positive bags of sMIL are content as it is
    assert (heavy - plain).mean() > 1e-3 or name in ("sMIL", "stMIL")
    assert_allclose(scores({0: 1, 1: np.float32(20)}), heavy, atol=1e-9)


@pytest.mark.parametrize("name", ["SIL", "NSK", "STK", "MI-SVM", "sMIL", "MICA", "MissSVM"])
def test_balanced_weights_are_those_of_scikit_learn(name: str) -> None:
    bags = mf.sample_bags("presence", 30, recipe="strict", n_features=3, random_state=0, positive_fraction=0.2)
    assert bags.labels is not None
    inside = int(bags.sizes[bags.labels == 1].sum())
    p, n = int(bags.labels.sum()), int((bags.labels == 0).sum())
    if name == "SIL":
        p, n = inside, bags.n_instances - inside
    elif name in ("sMIL", "MICA"):
        n = bags.n_instances - inside
    by_hand = {0: (p + n) / (2 * n), 1: (p + n) / (2 * p)}
    one, other = (fitted(name, bags, C=0.2, tol=1e-9, class_weight=weight) for weight in ("balanced", by_hand))
    assert_allclose(one.decision_function(bags), other.decision_function(bags), atol=1e-6)
    assert np.abs(one.decision_function(bags) - fitted(name, bags, C=0.2).decision_function(bags)).max() > 1e-3


# ---------------------------------------------------------------- laws


@every_model
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_order_of_instances_and_of_bags_means_nothing(name: str, kernel: str) -> None:
    train, test = small(0, 20), small(1, 20)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(train))

    def shuffled(bags: Bags) -> Bags:
        return Bags.from_list([rng.permutation(bag) for bag in bags], bags.labels)

    options = {"kernel": kernel, "tol": TIGHT[name] if kernel == "rbf" else 1e-5, "C": 0.5}
    model = fitted(name, train, **options)
    scores = model.decision_function(test)
    assert_allclose(model.decision_function(shuffled(test)), scores, rtol=1e-9, atol=1e-9)
    assert_allclose(model.decision_function(test[::-1]), scores[::-1], rtol=1e-9, atol=1e-9)
    again = fitted(name, shuffled(train)[order], **options)
    tight = kernel == "rbf" and name != "stMIL"
    assert_allclose(
        np.atleast_1d(again.objective_)[-1], np.atleast_1d(model.objective_)[-1], rtol=1e-6 if tight else 1e-3
    )
    if name != "MI-SVM":  # whose intercept is often one of many
        assert_allclose(again.decision_function(test), scores, atol=1e-5 if tight else 2e-2)


@every_model
def test_the_score_of_a_bag_does_not_depend_on_its_company(name: str) -> None:
    model, test = fitted(name, small(0)), small(1)
    together = model.decision_function(test)
    alone = [model.decision_function(test[[i]])[0] for i in range(len(test))]
    assert_allclose(alone, together, rtol=1e-12, atol=1e-12)


@every_model
def test_copies_of_all_instances_of_a_bag_leave_averaged_and_best_scores_alone(name: str) -> None:
    model, test = fitted(name, small(0)), small(1)
    copied = Bags.from_list([np.concatenate([bag] * 3) for bag in test])
    assert_allclose(model.decision_function(copied), model.decision_function(test), rtol=1e-9, atol=1e-9)


def test_plain_sums_grow_with_the_bag() -> None:
    test = small(1)
    copied = Bags.from_list([np.concatenate([bag] * 3) for bag in test])
    for name in ("NSK", "sMIL"):
        model = fitted(name, small(0), normalize=None)
        grown = model.decision_function(copied) - model.intercept_
        assert_allclose(grown, 3 * (model.decision_function(test) - model.intercept_), rtol=1e-9, atol=1e-9)


@instance_models
def test_an_instance_more_never_lowers_the_score_of_a_model_of_instances(name: str) -> None:
    test, rng = small(1), np.random.default_rng(0)
    more = Bags.from_list([np.vstack([bag, 3 * rng.normal(size=(1, 3))]) for bag in test])
    model = fitted(name, small(0))
    before, after = model.decision_function(test), model.decision_function(more)
    assert (after >= before - 1e-12).all()
    assert (after > before + 1e-3).any()


@pytest.mark.parametrize("name", OF_WHOLES)
def test_an_instance_more_may_lower_the_score_of_a_model_of_wholes(name: str) -> None:
    test, rng = small(1), np.random.default_rng(0)
    more = Bags.from_list([np.vstack([bag, 3 * rng.normal(size=(1, 3))]) for bag in test])
    model = fitted(name, small(0))
    assert (model.decision_function(more) < model.decision_function(test) - 1e-3).any()


@every_model
def test_threads_change_no_bit(name: str) -> None:
    train, test = small(0, 60), small(1, 60)
    before = mf.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            mf.set_num_threads(threads)
            model = fitted(name, train)
            results.append((model.decision_function(test).tobytes(), model.dual_coef_.tobytes(), model.intercept_))
    finally:
        mf.set_num_threads(before)
    assert results[0] == results[1]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_BAGS])
def test_the_cache_changes_no_bit(name: str) -> None:
    bags = small()
    results = [fitted(name, bags, cache_size=size).decision_function(bags) for size in (1e-6, 0.01, 500, 1e300)]
    for result in results[1:]:
        assert_array_equal(result, results[0])


@every_model
def test_single_precision_bags_give_nearly_the_scores_of_double_precision(name: str) -> None:
    single = small(0, dtype="float32")
    double = single.with_instances(single.instances.astype(np.float64))
    one, other = (fitted(name, bags, tol=1e-5) for bags in (single, double))
    assert one.decision_function(single).dtype == np.float64
    assert_allclose(one.decision_function(single), other.decision_function(double), atol=2e-3)


# ---------------------------------------------------------------- edges


@every_model
def test_bags_of_one_instance_are_a_plain_svm(name: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    labels = (x[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)
    model = fitted(name, Bags(x, np.arange(41), labels), tol=1e-6)
    assert model.converged_
    scores = model.instance_scores(Bags(x, np.arange(41)))
    assert_array_equal(model.decision_function(Bags(x, np.arange(41))), scores)
    assert mf.auc(scores, labels) > 0.9
    if name in ("SIL", "NSK", "sMIL", "sbMIL", "MICA", "MI-SVM"):  # the others compare minima too, or hold both signs
        plain = SVC(gamma=GAMMA, tol=1e-6).fit(x, labels)
        assert_allclose(scores, plain.decision_function(x), atol=1e-4)


@every_model
def test_features_without_spread_give_one_score(name: str) -> None:
    bags = Bags(np.ones((6, 2)), [0, 1, 3, 4, 6], [0, 1, 1, 0])
    model = kind(name)().fit(bags)
    assert model.gamma_ == 1.0
    assert_allclose(model.decision_function(bags), model.decision_function(bags)[0], atol=1e-9)
    assert np.isfinite(model.decision_function(bags)).all()
    # one feature of several
    few_bags = few(0)
    constant = few_bags.with_instances(np.column_stack([few_bags.instances, np.full(few_bags.n_instances, 7.0)]))
    one, other = (fitted(name, each, tol=1e-6) for each in (few_bags, constant))
    assert_allclose(one.decision_function(few_bags), other.decision_function(constant), atol=1e-6)


@every_model
def test_bags_may_occur_twice_with_either_label(name: str) -> None:
    bags = few(0)
    twice = Bags.from_list([*bags, *bags], np.concatenate([bags.labels, bags.labels]))  # type: ignore[list-item]
    half = fitted(name, twice, C=0.5, tol=1e-6)
    scores = half.decision_function(bags)
    assert np.isfinite(scores).all()
    assert mf.auc(scores, bags.labels) > 0.6
    # each sample at half the weight is each once; the counts of MissSVM and stMIL agree too
    whole = fitted(name, bags, C=1.0, tol=1e-6)
    assert_allclose(np.atleast_1d(half.objective_)[-1], np.atleast_1d(whole.objective_)[-1], rtol=1e-4)
    contradictory = Bags.from_list([*bags, *bags], np.concatenate([bags.labels, 1 - bags.labels]))  # type: ignore[list-item,operator]
    assert np.isfinite(fitted(name, contradictory).decision_function(bags)).all()


@every_model
def test_the_weight_of_the_slack_may_be_tiny_or_huge(name: str) -> None:
    bags = few(2)
    tiny = fitted(name, bags, C=1e-9)
    assert np.ptp(tiny.decision_function(bags)) < 1e-6
    huge = fitted(name, bags, C=1e4, tol=1e-2)
    assert huge.converged_
    assert np.isfinite(huge.decision_function(bags)).all()
    assert mf.auc(huge.decision_function(bags), bags.labels) > 0.9


# ---------------------------------------------------------------- messages

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "kernel": ({"kernel": "sigmoid"}, "kernel must be rbf, linear, poly or a function of two matrices; got 'sigmoid'"),
    "kernel-number": ({"kernel": 3}, "kernel must be rbf, linear, poly or a function of two matrices; got 3"),
    "gamma": ({"gamma": 0.0}, "gamma must be 'scale' or a positive number; got 0.0"),
    "gamma-auto": ({"gamma": "auto"}, "gamma must be 'scale' or a positive number; got 'auto'"),
    "gamma-nan": ({"gamma": np.nan}, "gamma must be 'scale' or a positive number; got nan"),
    "gamma-bool": ({"gamma": True}, "gamma must be 'scale' or a positive number; got True"),
    "C": ({"C": 0}, "C must be a positive number; got 0"),
    "C-inf": ({"C": np.inf}, "C must be a positive number; got inf"),
    "C-text": ({"C": "1"}, "C must be a positive number; got '1'"),
    "tol": ({"tol": -1e-3}, "tol must be a positive number; got -0.001"),
    "tol-none": ({"tol": None}, "tol must be a positive number; got None"),
    "tol-large": ({"tol": 1}, "tol must be below 1, the margin: nothing would be fitted; got 1"),
    "coef0": ({"coef0": np.nan}, "coef0 must be a number; got nan"),
    "coef0-none": ({"coef0": None}, "coef0 must be a number; got None"),
    "degree": ({"degree": 0}, r"degree must be a positive integer below 2\*\*32; got 0"),
    "degree-float": ({"degree": 2.0}, r"degree must be a positive integer below 2\*\*32; got 2\.0"),
    "degree-bool": ({"degree": True}, r"degree must be a positive integer below 2\*\*32; got True"),
    "degree-large": ({"degree": 1 << 32}, r"degree must be a positive integer below 2\*\*32; got 4294967296"),
    "weight": ({"class_weight": "heavy"}, "class_weight must be a dictionary, 'balanced' or None; got 'heavy'"),
    "weight-array": ({"class_weight": np.ones(2)}, r"class_weight must be a dictionary, 'balanced' or None; got array"),
    "weight-zero": ({"class_weight": {0: 0.0}}, r"class_weight must give classes 0 and 1 positive numbers; got \{0: 0"),
    "weight-class": ({"class_weight": {2: 1.0}}, "class_weight must give classes 0 and 1 positive numbers; got"),
    "weight-nan": ({"class_weight": {1: np.nan}}, "class_weight must give classes 0 and 1 positive numbers; got"),
}
BAD_OF_SOME: list[tuple[str, dict[str, Any], str]] = [
    *[
        (name, {"normalize": "sum"}, "normalize must be None, average or feature-space; got 'sum'")
        for name in NAMES
        if "normalize" in kind(name)().get_params()
    ],
    *[
        (name, {"cache_size": size}, "cache_size must be a positive number of megabytes; got")
        for size in (0, np.inf, "1")
        for name in NAMES
        if name not in OF_BAGS
    ],
    *[(name, {"scale_C": 2}, "scale_C must be True or False; got 2") for name in ("sMIL", "sbMIL", "stMIL")],
    *[("sbMIL", {"eta": eta}, "eta must be from 0 to 1; got") for eta in (-0.1, 1.5, np.nan, True, None)],
]


@every_model
@pytest.mark.parametrize(("parameters", "message"), BAD.values(), ids=BAD)
def test_a_parameter_out_of_range_is_named(name: str, parameters: dict[str, Any], message: str) -> None:
    model = kind(name)(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(small(0, 8))
    with pytest.raises(NotFittedError):
        model.decision_function(small(0, 8))


@pytest.mark.parametrize(("name", "parameters", "message"), BAD_OF_SOME)
def test_a_parameter_of_some_models_out_of_range_is_named(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(name)(**parameters).fit(small(0, 8))


@every_model
def test_bags_that_cannot_be_used_are_refused(name: str) -> None:
    bags = small()
    model = kind(name)(gamma=GAMMA)
    for method in (model.decision_function, model.predict, model.instance_scores):
        with pytest.raises(NotFittedError):
            method(bags)
    with pytest.raises(TypeError, match=r"bags must be milfast\.Bags, got list: see Bags\.from_list"):
        model.fit(bags.to_list())
    with pytest.raises(TypeError, match="labels go into the bags"):
        model.fit(bags, bags.labels)
    with pytest.raises(ValueError, match="bags carry no labels"):
        model.fit(Bags(bags.instances, bags.offsets))
    for label in (0, 1):
        with pytest.raises(ValueError, match=f"all 15 bags have label {label}: both classes are needed"):
            model.fit(bags[bags.labels == label])
    model.fit(bags)
    for method in (model.decision_function, model.predict, model.instance_scores):
        with pytest.raises(TypeError, match=r"bags must be milfast\.Bags, got ndarray"):
            method(bags.instances)
        with pytest.raises(ValueError, match="bags have 2 features, the training bags had 3"):
            method(bags.with_instances(bags.instances[:, :2]))


def test_bags_with_gaps_do_not_reach_a_model() -> None:
    with pytest.raises(ValueError, match=r"instances\[1, 0\] .* is nan"):
        Bags([[0.0], [np.nan]], [0, 1, 2], [0, 1])
    with pytest.raises(ValueError, match="bag 1 is empty"):
        Bags([[0.0], [1.0]], [0, 1, 1, 2], [0, 1, 1])


@every_model
def test_a_good_fit_warns_of_nothing(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        fitted(name, small())


# ---------------------------------------------------------------- where it ends early, and what cannot be fitted


@every_model
def test_a_model_whose_solver_gives_up_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("milfast.models.svm.solver.MOST_STEPS", 3)
    monkeypatch.setattr("milfast.models.svm.bag_kernel.MOST_STEPS", 3)
    with pytest.warns(ConvergenceWarning, match=f"the solver of {name} ran out of steps: scale the features") as caught:
        model = fitted(name, small(0, 30), tol=1e-8)
    assert len([w for w in caught if w.category is ConvergenceWarning]) == 1
    assert model.converged_ is False
    if name in ALTERNATING:
        assert model.n_iter_ == 1  # what follows a program that was not solved would mean nothing


@every_model
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e158])
def test_features_without_a_scale_are_refused_where_gamma_is_to_follow_it(name: str, scale: float) -> None:
    bags = small(0, 10)
    with pytest.raises(ValueError, match="gamma='scale' needs features of a sensible size"):
        mf.models.get(name)().fit(bags.with_instances(bags.instances * scale))


@every_model
def test_a_kernel_function_may_be_off_by_the_rounding_of_its_own_precision(name: str) -> None:
    bags = small(0, 16)
    rng = np.random.default_rng(0)
    m = rng.normal(size=(8, 3 if name != "STK" else 6))
    metric = (m.T @ m).astype(np.float32)

    def single(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(x.astype(np.float32) @ metric @ y.astype(np.float32).T) / 50

    model = fitted(name, bags, kernel=single, tol=1e-2)
    assert np.isfinite(model.decision_function(bags)).all()

    def lopsided_by_little(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(x @ y.T * (1 + 1e-6 * (x[:, :1] > y[:, 0])))

    with pytest.raises(ValueError, match="kernel must be symmetric"):
        fitted(name, bags, kernel=lopsided_by_little)
    with pytest.raises(ValueError, match="kernel must return numbers up to"):
        fitted(name, bags, kernel=lambda x, y: 1e200 * (x @ y.T))
