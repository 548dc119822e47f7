"""LR: what it fits is what scikit-learn fits to pooled bags."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import milfast as mf
from milfast import Bags

LR = mf.models.get("LR")


def made(n: int = 40) -> Bags:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 5, n)
    instances = rng.normal(3.0, [1.0, 50.0, 0.01], (sizes.sum(), 3))
    labels = np.arange(n) % 2
    instances[:, 0] += 2 * np.repeat(labels, sizes)
    return Bags(instances, np.cumsum([0, *sizes]), labels)


@pytest.mark.parametrize("pooling", ["mean", "min-max"])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("C", [0.01, 10.0])
def test_it_is_scikit_learns_regression_of_pooled_bags(pooling: str, standardize: bool, C: float) -> None:
    bags, new = made(), made(50)
    scaler = StandardScaler().fit(bags.instances)

    def pooled(some: Bags) -> Any:
        rows = [scaler.transform(bag) if standardize else bag for bag in some]
        return [bag.mean(0) if pooling == "mean" else np.hstack([bag.min(0), bag.max(0)]) for bag in rows]

    expected = LogisticRegression(C=C, max_iter=1000).fit(pooled(bags), bags.labels)
    model = LR(pooling=pooling, standardize=standardize, C=C).fit(bags)
    assert_allclose(model.decision_function(new), expected.decision_function(pooled(new)), rtol=1e-6, atol=1e-9)
    assert_array_equal(model.predict(new), expected.predict(pooled(new)))
    assert_allclose(model.coef_, expected.coef_[0], rtol=1e-6, atol=1e-9)


def test_bags_of_one_instance_are_rows_of_a_pipeline() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 4)), np.arange(30) % 2
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=0.01)).fit(X, y)
    model = LR().fit(Bags(X, np.arange(31), y))
    assert_allclose(model.decision_function(Bags(X, np.arange(31))), pipeline.decision_function(X), rtol=1e-6)


def test_constant_features_and_float32_do_no_harm() -> None:
    bags = made()
    wide = Bags(
        np.column_stack([bags.instances, np.full(bags.n_instances, 7.0)]).astype(np.float32), bags.offsets, bags.labels
    )
    model = LR().fit(wide)
    assert model.coef_[3] == 0
    assert_allclose(model.decision_function(wide), LR().fit(bags).decision_function(bags), atol=1e-4)


def test_it_is_cloned_and_pickled() -> None:
    model = LR(C=0.5, pooling="min-max").fit(made())
    assert repr(clone(model)) == "LR(C=0.5, pooling='min-max')"
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(made()), model.decision_function(made()))


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ({"pooling": "max"}, ValueError, "pooling must be one of mean, min-max; got 'max'"),
        ({"C": 0}, ValueError, "C must be a positive number; got 0"),
        ({"standardize": 1}, TypeError, "standardize must be True or False; got 1"),
        ({"max_iter": 0.5}, ValueError, "max_iter must be a positive integer; got 0.5"),
    ],
)
def test_wrong_parameters_are_named(setting: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        LR(**setting).fit(made())


def test_wrong_bags_are_named() -> None:
    bags = made()
    with pytest.raises(NotFittedError):
        LR().predict(bags)
    with pytest.raises(TypeError, match=r"bags must be milfast\.Bags, got list"):
        LR().fit([[1.0]])
    with pytest.raises(TypeError, match="labels go into the bags"):
        LR().fit(bags, bags.labels)
    with pytest.raises(ValueError, match="bags carry no labels"):
        LR().fit(Bags([[1.0]], [0, 1]))
    with pytest.raises(ValueError, match="all 2 bags have label 1"):
        LR().fit(Bags([[1.0], [2.0]], [0, 1, 2], [1, 1]))
    model = LR().fit(bags)
    with pytest.raises(ValueError, match="bags have 1 features, the training bags had 3"):
        model.decision_function(Bags([[1.0]], [0, 1]))
    with pytest.raises(TypeError, match="got ndarray"):
        model.decision_function(bags.instances)


def test_it_ranks_musk_molecules_as_scikit_learn_did(mil_data: Any) -> None:
    # stratified 5-fold x 3, features scaled on the training instances: 0.886 ± 0.060 and 0.930 ± 0.042
    assert 0.83 < mf.evaluate("LR", "musk1").auc.estimate < 0.93
    assert 0.88 < mf.evaluate(LR(pooling="min-max"), "musk1").auc.estimate < 0.97
