"""Classifiers by name: stored parameters, printed figures, and what is refused."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from milfast.consistency import learners

if TYPE_CHECKING:
    from pathlib import Path

DATA = ("parkinsons", "spect", "transfusion", "pima")
X = np.random.default_rng(0).normal(size=(80, 5))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("name", learners.names())
@pytest.mark.parametrize("data", [*DATA, "diabetes130"])
def test_every_published_classifier_can_be_fitted(name: str, data: str) -> None:
    made = learners.make(name, data=data, parameters="published")
    many = np.tile(X, (4, 1))  # some leaves are to hold eleven samples of four in ten
    assert made.estimator.fit(many, np.tile(Y, 4)).predict(X).shape == (80,)
    expected = "chosen here" if data == "diabetes130" else f"stored in {learners.PUBLISHED[name]}"
    assert made.origin == expected


def test_stored_values_are_those_of_the_record() -> None:
    sgd = learners.make("lr", data="transfusion", parameters="2023").estimator
    assert isinstance(sgd, SGDClassifier)
    assert (sgd.loss, sgd.learning_rate, sgd.alpha, sgd.penalty, sgd.average) == (
        "log_loss",
        "adaptive",
        8.08e-4,
        "l1",
        True,
    )
    boosted = learners.make("gbt", data="parkinsons", parameters="published").estimator
    # 4 * 2.594, rounded up; boosting from a probability of one half
    assert (boosted.min_samples_leaf, boosted.init, boosted.learning_rate, boosted.max_depth) == (11, "zero", 0.408, 20)
    forest = learners.make("rf", data="pima", parameters="2021").estimator
    assert (forest.n_estimators, forest.min_samples_leaf, forest.max_features, forest.max_depth) == (400, 4, 0.25, 20)


@pytest.mark.parametrize(("data", "norm"), [("pima", "l1"), ("parkinsons", "l2")])
def test_the_penalty_of_the_first_search_is_said_as_the_installed_version_wants_it(data: str, norm: str) -> None:
    model = learners.make("lr", data=data, parameters="2021").estimator
    assert isinstance(model, LogisticRegression)
    noise = np.random.default_rng(1).normal(size=(80, 40))
    model.set_params(C=0.05).fit(np.c_[X, noise], Y)  # warnings are errors here
    assert (np.count_nonzero(model.coef_ == 0) > 10) == (norm == "l1")


def test_figures_of_the_paper() -> None:
    record = json.loads(files("milfast.consistency").joinpath("levman_2023.json").read_text(encoding="utf-8"))
    assert len(record["table"]) == 8
    for row in record["table"].values():
        assert set(row) == {"svm", "rf", "lr", "adaboost"}
        for accuracy, sd, consistency, consistency_sd in row.values():
            assert 50 < accuracy < 100
            assert 0 <= sd < 2
            assert 30 < consistency <= 100
            assert 0 <= consistency_sd < 12
    assert learners.printed("adaboost", "parkinsons") == learners.printed("gbt", "parkinsons") == (87, 1.2, 49, 7.8)
    assert learners.printed("svm", "UTI resistance") == (51, 1.1, 38, 3.3)
    assert learners.printed("svm", "elsewhere") is None
    assert learners.printed("mine:Model", "pima") is None


def test_settings_and_scaling() -> None:
    made = learners.make("svm", settings={"C": 7}, standardize="folds")
    assert isinstance(made.estimator, Pipeline)
    assert made.described() == "Pipeline(steps=[('standardscaler', StandardScaler()), ('svc', SVC(C=7))])"
    assert (made.name, made.origin) == ("svm", "scikit-learn's defaults")


def test_classifiers_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(
        "from sklearn.svm import SVC\n"
        "def few():\n    return SVC(C=0.1)\n"
        "ready = SVC(C=0.2)\n"
        "def needy(x):\n    return SVC()\n"
        "class Half:\n    def fit(self, X, y):\n        return self\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert learners.make("sklearn.svm:SVC").described() == "SVC()"
    assert learners.make("mine:few").estimator.C == 0.1
    assert learners.make("mine:ready", settings={"gamma": 2}).estimator.gamma == 2
    for reference, error, message in (
        ("mine:needy", TypeError, "could not be made without arguments"),
        ("mine:Half", TypeError, "Half lacks predict, get_params"),
        ("mine:none", ValueError, "has no 'none'"),
        ("nowhere:Model", ValueError, "there is no module nowhere"),
    ):
        with pytest.raises(error, match=message):
            learners.make(reference)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no classifier 'tree': known are lr, svm, rf, adaboost, gbt"):
        learners.make("tree")
    with pytest.raises(ValueError, match="SVC has no parameter 'c'; it has C, "):
        learners.make("svm", settings={"c": 3})
    with pytest.raises(ValueError, match="no parameters of gbt for pima were stored in 2021"):
        learners.make("gbt", data="pima", parameters="2021")
    with pytest.raises(ValueError, match=r"no parameters of lr for x\.csv were stored in 2023"):
        learners.make("lr", data="x.csv", parameters="published")
    with pytest.raises(ValueError, match="no parameters of lr for a table of your own"):
        learners.make("lr", parameters="published")
    with pytest.raises(ValueError, match=r"no stored parameters for sklearn\.svm:SVC"):
        learners.make("sklearn.svm:SVC", parameters="2021")
    with pytest.raises(ValueError, match="parameters must be one of"):
        learners.make("svm", parameters="2022")  # type: ignore[arg-type]


def test_a_description_holds_no_addresses() -> None:
    assert learners.described(SVC(kernel=lambda a, b: a @ b.T)).count("0x") == 0
    many = SVC(class_weight=dict.fromkeys(range(25), 1.5), gamma=0.25, C=3, coef0=1, shrinking=False, tol=0.1)
    assert learners.described(many).count("\n") == 0
    assert learners.described(many).count(": 1.5") == 25
