"""Repeated cross-validation: against plain loops of scikit-learn, in any number of processes, resumed, and refused."""

from __future__ import annotations

import itertools
import json
import math
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from conftest import golden_path
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import milfast as mf
from milfast.consistency import CrossValidated, consistency_of, cross_validate_consistency, cross_validation, jobs
from milfast.consistency.agreement import summary
from milfast.consistency.cross_validation import in_processes, prepared, settled
from milfast.consistency.folds import Folds
from milfast.consistency.repeats import random_states
from milfast.seeding import seed_value
from milfast.study import Store, Study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

X, Y = make_classification(150, 5, n_informative=3, flip_y=0.2, random_state=0)
TREE = DecisionTreeClassifier(max_depth=3, max_features=2)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start processes even where they save no time."""
    monkeypatch.setattr(cross_validation, "WORTH_IT", -math.inf)


class Told(BaseEstimator, ClassifierMixin):
    """Predicts the first feature rounded, and writes down what it was given."""

    seen: list[tuple[list[Any], list[Any]]] = []  # noqa: RUF012  # of all copies, on purpose

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Told:
        self.classes_ = np.unique(y)
        self.rows_ = np.asarray(X)[:, 0].tolist()
        return self

    def predict(self, X: Any) -> Any:
        Told.seen.append((self.rows_, np.asarray(X)[:, 0].tolist()))
        return np.full(len(X), self.classes_[0])


@pytest.fixture
def seen() -> Iterator[list[tuple[list[Any], list[Any]]]]:
    Told.seen.clear()
    yield Told.seen
    Told.seen.clear()


# -------------------------------------------------------------------- folds


@given(
    st.lists(st.integers(0, 3), min_size=12, max_size=80),
    st.integers(2, 5),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_folds_are_those_of_scikit_learn(labels: list[int], n_folds: int, seed: int, stratify: bool) -> None:
    codes = np.unique(labels, return_inverse=True)[1]
    fold = Folds(codes, n_folds, stratify=stratify).dealt(seed)
    splitter = (StratifiedKFold if stratify else KFold)(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about classes with few samples, which are refused before
        try:
            splits = list(splitter.split(codes, codes))
        except ValueError:  # no class has as many samples as there are folds
            return
    for k, (train, test) in enumerate(splits):
        assert np.array_equal(np.flatnonzero(fold == k), np.sort(test))
        assert np.array_equal(np.flatnonzero(fold != k), np.sort(train))


@pytest.mark.parametrize("stratify", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_folds_of_groups_are_those_of_scikit_learn(stratify: bool, seed: int) -> None:
    groups = np.random.default_rng(seed).integers(0, 20, len(Y))
    fold = Folds(Y, 4, stratify=stratify, groups=groups).dealt(seed)
    splitter = (StratifiedGroupKFold if stratify else GroupKFold)(4, shuffle=True, random_state=seed)
    for k, (_, test) in enumerate(splitter.split(X, Y, groups)):
        assert np.array_equal(np.flatnonzero(fold == k), test)
    assert all(len(set(fold[groups == group])) == 1 for group in np.unique(groups))


# -------------------------------------------------------------------- against a plain loop


def plain_loop(estimator: Any, X: Any, y: Any, *, repeats: int, seed: int, folds: int = 5) -> np.ndarray:
    """What anybody would write down, with the seeds that are documented."""
    y = np.asarray(y)
    errors = []
    for repeat in range(repeats):
        wrong = np.zeros(len(y), dtype=bool)
        splitter = StratifiedKFold(folds, shuffle=True, random_state=seed_value(seed, repeat) % 2**32)
        for fold, (train, test) in enumerate(splitter.split(X, y)):
            model = clone(estimator)
            names = random_states(model)
            model.set_params(**{n: seed_value(seed, repeat, fold, i) % 2**31 for i, n in enumerate(names)})
            wrong[test] = model.fit(X[train], y[train]).predict(X[test]) != y[test]
        errors.append(wrong)
    return np.array(errors)


@pytest.mark.parametrize(
    "estimator",
    [
        TREE,
        make_pipeline(StandardScaler(), SGDClassifier(max_iter=50, tol=None)),
        BaggingClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_is_what_a_plain_loop_gives(estimator: Any) -> None:
    found = cross_validate_consistency(estimator, X, Y, repeats=4, random_state=3)
    expected = plain_loop(estimator, X, Y, repeats=4, seed=3)
    assert np.array_equal(found.error_sets(), expected)
    assert np.array_equal(found.errors, np.packbits(expected, axis=1))
    assert np.allclose(found.accuracies, 1 - expected.mean(axis=1), atol=1e-15)
    assert found.accuracy == pytest.approx(1 - expected.mean(), abs=1e-15)
    pairs = summary(expected)
    row = found.to_dict()
    assert (row["consistency"], row["consistency_sd"]) == (pairs.mean, pairs.sd)
    assert (found.n_sets, found.n_samples, found.repeats, found.folds, found.seed) == (4, len(Y), 4, 5, 3)
    assert found.majority == pytest.approx(np.bincount(Y).max() / len(Y))
    assert found.predicted.sum() == 4 * len(Y)


def test_test_samples_of_their_own_are_predicted_by_every_model() -> None:
    X_test, y_test = X[100:], Y[100:]
    found = cross_validate_consistency(
        TREE, X[:100], Y[:100], cv=3, repeats=4, X_test=X_test, y_test=y_test, random_state=5, keep_predictions=True
    )
    assert (found.approach, found.n_sets, found.n_samples) == ("external", 12, 50)
    rows = []
    for repeat in range(4):
        splitter = StratifiedKFold(3, shuffle=True, random_state=seed_value(5, repeat) % 2**32)
        for fold, (train, _) in enumerate(splitter.split(X[:100], Y[:100])):
            model = clone(TREE).set_params(random_state=seed_value(5, repeat, fold, 0) % 2**31)
            rows.append(model.fit(X[train], Y[train]).predict(X_test))
    assert np.array_equal(found.error_sets(), np.array(rows) != y_test)
    assert np.array_equal(found.classes[found.predictions], rows)
    assert found.majority == pytest.approx(max(y_test.mean(), 1 - y_test.mean()))
    assert "predicted by every model" in found.summary()


@pytest.mark.parametrize("m", [3, 4, 9])
def test_standard_deviations_over_runs_and_over_pairs(m: int) -> None:
    found = cross_validate_consistency(TREE, X, Y, repeats=m, random_state=1)
    accuracies = 1 - found.error_sets().mean(axis=1)
    pairs = [(a + b) / 2 for a, b in itertools.combinations(accuracies, 2)]
    assert found.accuracy_sd_runs == pytest.approx(np.std(accuracies, ddof=1), rel=1e-12)
    assert found.accuracy_sd_pairs == pytest.approx(np.std(pairs, ddof=1), rel=1e-12)


def test_one_repeat_has_no_standard_deviation_and_no_consistency() -> None:
    found = cross_validate_consistency(TREE, X, Y, repeats=1, random_state=1)
    row = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert row["accuracy_sd_runs"] is row["accuracy_sd_pairs"] is row["consistency"] is None


@pytest.mark.parametrize("name", ["diabetes", "parkinsons", "transfusion"])
def test_logistic_regression_repeats_the_golden_error_sets(
    name: str, mil_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Error sets that were made elsewhere, with another version of scikit-learn, on folds seeded 0, 1, ..."""
    golden = np.load(golden_path(f"golden_errors_{name}_lr.npy"))[:15]
    features, labels = mf.datasets.load("pima" if name == "diabetes" else name)
    monkeypatch.setattr("milfast.consistency.repeats.seed_value", lambda _seed, *path: path[0])
    found = cross_validate_consistency(
        LogisticRegression(max_iter=1000), StandardScaler().fit_transform(features), labels, repeats=15, random_state=0
    )
    assert np.array_equal(found.errors, golden)


# -------------------------------------------------------------------- processes, order, resumption


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("stratify", [True, False])
@pytest.mark.parametrize("order", ["sorted", "mixed"])
def test_processes_give_the_same_bits(stratify: bool, order: str) -> None:
    """The reference shuffles the labels and then takes the folds for those of the samples when it runs in parallel."""
    place = np.argsort(Y, kind="stable") if order == "sorted" else np.arange(len(Y))
    model = make_pipeline(StandardScaler(), BaggingClassifier(TREE, n_estimators=2))
    one, two, three = (
        cross_validate_consistency(
            model, X[place], Y[place], repeats=9, stratify=stratify, random_state=7, n_jobs=n, keep_predictions=True
        )
        for n in ((1, 2, 3) if order == "sorted" else (1, 2, 2))
    )
    for other in (two, three):
        assert np.array_equal(one.errors, other.errors)
        assert np.array_equal(one.predictions, other.predictions)
        assert np.array_equal(one.predicted, other.predicted)
    assert one.accuracy_sd_runs > 0
    assert one.to_dict()["consistency"] < 0.9


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sorted_labels_cost_no_accuracy(n_jobs: int) -> None:
    """Contiguous folds of sorted labels, as of the reference in parallel, leave a class out of the training."""
    place = np.argsort(Y, kind="stable")
    mixed, in_order = (
        cross_validate_consistency(
            LogisticRegression(), X[rows], Y[rows], repeats=10, stratify=False, random_state=0, n_jobs=n_jobs
        )
        for rows in (np.arange(len(Y)), place)
    )
    assert in_order.accuracy == pytest.approx(mixed.accuracy, abs=0.02)
    assert 0 < in_order.accuracy_sd_runs < 0.03
    contiguous = np.concatenate(
        [
            LogisticRegression().fit(X[place][train], Y[place][train]).predict(X[place][test]) == Y[place][test]
            for train, test in KFold(5).split(X)
        ]
    )
    assert contiguous.mean() < in_order.accuracy - 0.03


def test_a_repeat_depends_on_nothing_but_its_number() -> None:
    plan = prepared(TREE, X, Y, cv=5, stratify=True, random_state=11)
    whole = plan.run(0, 9)
    for first, last in ((0, 4), (4, 9), (8, 9)):
        assert np.array_equal(plan.run(first, last).errors, whole.errors[first:last])


def test_folds_and_models_have_seeds_of_their_own(seen: list[Any]) -> None:
    seeds = []

    class Seeded(Told):
        def fit(self, X: Any, y: Any) -> Seeded:
            seeds.append(self.random_state)
            super().fit(X, y)
            return self

    with pytest.warns(UserWarning, match="for every sample"):
        cross_validate_consistency(Seeded(random_state=1), X, Y, repeats=6, random_state=0)
    assert len(set(seeds)) == 30
    assert len({tuple(test) for _, test in seen}) == 30
    again: list[int] = seeds[:]
    seeds.clear()
    with pytest.warns(UserWarning, match="for every sample"):
        cross_validate_consistency(Seeded(), X, Y, repeats=6, random_state=0)
    assert seeds == again


def test_every_nested_random_state_is_seeded() -> None:
    model = make_pipeline(StandardScaler(), BaggingClassifier(RandomForestClassifier(n_estimators=2), n_estimators=2))
    names = random_states(model)
    assert names == ["baggingclassifier__estimator__random_state", "baggingclassifier__random_state"]
    found = [cross_validate_consistency(model, X, Y, cv=2, repeats=2, random_state=s).errors for s in (0, 0, 1)]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    assert all(value is None for name, value in model.get_params().items() if name in names)


def test_seeds_go_through_a_set_params_of_its_own() -> None:
    class Careful(DecisionTreeClassifier):
        def set_params(self, **params: Any) -> Careful:
            super().set_params(**params)
            self.told_ = params
            return self

        def fit(self, X: Any, y: Any) -> Careful:
            assert self.told_ == {"random_state": self.random_state}
            super().fit(X, y)
            return self

    models = (Careful(max_features=1), DecisionTreeClassifier(max_features=1))
    a, b = (cross_validate_consistency(model, X, Y, repeats=2, random_state=0).errors for model in models)
    assert np.array_equal(a, b)


def test_the_global_generator_is_left_alone() -> None:
    np.random.seed(3)
    before = np.random.get_state()[1]
    cross_validate_consistency(TREE, X, Y, repeats=2, random_state=0)
    assert np.array_equal(before, np.random.get_state()[1])


def test_none_seeds_afresh_and_says_with_what() -> None:
    a = cross_validate_consistency(TREE, X, Y, repeats=3)
    b = cross_validate_consistency(TREE, X, Y, repeats=3)
    again = cross_validate_consistency(TREE, X, Y, repeats=3, random_state=a.seed)
    assert not np.array_equal(a.errors, b.errors)
    assert np.array_equal(a.errors, again.errors)


def test_a_study_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    whole = cross_validate_consistency(TREE, X, Y, repeats=60, random_state=2)

    def stop(done: int, _total: int) -> None:
        if done >= 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_validate_consistency(TREE, X, Y, repeats=60, random_state=2, study=file, callback=stop)
    with Store(file, write=False) as store:
        assert store.counts() == {"todo": 1, "running": 0, "done": 2, "failed": 0}
    told: list[tuple[int, int]] = []
    resumed = cross_validate_consistency(
        TREE, X, Y, repeats=60, random_state=2, study=file, callback=lambda *pair: told.append(pair)
    )
    assert told == [(60, 60)]
    assert np.array_equal(resumed.errors, whole.errors)
    assert np.array_equal(resumed.predicted, whole.predicted)
    once_more = cross_validate_consistency(TREE, X, Y, repeats=60, random_state=2, study=file, callback=stop)
    assert np.array_equal(once_more.errors, whole.errors)
    fewer = cross_validate_consistency(TREE, X, Y, repeats=30, random_state=2, study=file)
    assert np.array_equal(fewer.errors, whole.errors[:30])


def test_a_study_knows_other_data_and_other_parameters(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    for model, labels, seed in (
        (TREE, Y, 0),
        (TREE, 1 - Y, 0),
        (clone(TREE).set_params(max_depth=2), Y, 0),
        (TREE, Y, 1),
    ):
        alone = cross_validate_consistency(model, X, labels, repeats=5, random_state=seed)
        kept = cross_validate_consistency(model, X, labels, repeats=5, random_state=seed, study=file)
        assert np.array_equal(alone.errors, kept.errors)
    with Study(file) as study:
        records = study.records()
        assert len(records) == 4
        # another process does not have the arrays
        specification = records[0].spec
    with pytest.raises(ValueError, match="call cross_validate_consistency with the same study again"):
        jobs.run_specification(specification)


def test_a_study_with_test_samples_and_processes(tmp_path: Path, eager: None) -> None:
    arguments: dict[str, Any] = {"cv": 2, "repeats": 30, "X_test": X[100:], "y_test": Y[100:], "random_state": 4}
    alone = cross_validate_consistency(TREE, X[:100], Y[:100], **arguments)
    kept = cross_validate_consistency(TREE, X[:100], Y[:100], study=tmp_path / "s.db", n_jobs=2, **arguments)
    again = cross_validate_consistency(TREE, X[:100], Y[:100], study=tmp_path / "s.db", **arguments)
    assert np.array_equal(alone.errors, kept.errors)
    assert np.array_equal(alone.errors, again.errors)
    with pytest.raises(ValueError, match="keep_predictions"):
        cross_validate_consistency(TREE, X[:100], Y[:100], study=tmp_path / "s.db", keep_predictions=True, **arguments)


def test_processes_are_not_started_where_they_save_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    original = cross_validation.stream

    def spy(function: Any, items: Any, *, n_jobs: int) -> Any:
        used.append(n_jobs)
        return original(function, items, n_jobs=n_jobs)

    monkeypatch.setattr(cross_validation, "stream", spy)
    model = DecisionTreeClassifier(max_depth=1)
    start = time.perf_counter()
    cross_validate_consistency(model, X, Y, cv=2, repeats=20, n_jobs=2, random_state=0)
    assert used == [1] or time.perf_counter() - start > cross_validation.WORTH_IT


def test_the_callback_counts_repeats() -> None:
    told: list[tuple[int, int]] = []
    cross_validate_consistency(TREE, X, Y, repeats=60, random_state=0, callback=lambda *pair: told.append(pair))
    assert told == [(25, 60), (50, 60), (60, 60)]


# -------------------------------------------------------------------- when to stop


def brute_force_errors(errors: np.ndarray, repeats: int) -> tuple[float, float]:
    """Standard errors over runs and over samples, from the definitions."""
    sets = np.unpackbits(errors, axis=1, count=len(Y)).astype(bool)
    owner = np.repeat(np.arange(repeats), len(sets) // repeats)

    def mean(rows: np.ndarray) -> float:
        values = [(a & b).sum() / (a | b).sum() for a, b in itertools.combinations(rows, 2)]
        return float(np.mean(values))

    left_out = np.array([mean(sets[owner != r]) for r in range(repeats)])
    of_runs = math.sqrt((repeats - 1) / repeats * ((left_out - left_out.mean()) ** 2).sum())
    pairs = list(itertools.combinations(sets, 2))
    both = sum((a & b).astype(float) for a, b in pairs)
    either = sum((a | b).astype(float) for a, b in pairs)
    residual = both - both.sum() / either.sum() * either
    return of_runs, float(residual.std(ddof=1) / (either.mean() * math.sqrt(len(Y))))


@pytest.mark.parametrize("sets_per_repeat", [1, 2])
def test_enough_is_a_tenth_of_the_error_of_the_samples(sets_per_repeat: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = prepared(TREE, X, Y, cv=5, stratify=True, random_state=1)
    errors, repeats = plan.run(0, 24).errors, 24 // sets_per_repeat
    of_runs, of_samples = brute_force_errors(errors, repeats)
    for ratio, answer in ((of_runs / of_samples * 1.0001, True), (of_runs / of_samples * 0.9999, False)):
        monkeypatch.setattr(cross_validation, "ENOUGH", ratio)
        assert settled(errors, len(Y), repeats) is answer


@pytest.mark.usefixtures("eager")
def test_it_stops_at_the_same_repeat_whatever_does_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_validation, "ENOUGH", 0.3)
    arguments: dict[str, Any] = {"repeats": 200, "random_state": 0, "stop": "auto", "cv": 3}
    one = cross_validate_consistency(TREE, X, Y, **arguments)
    assert one.stopped == "auto"
    assert 25 < one.repeats < 200
    assert one.repeats % 25 == 0
    whole = cross_validate_consistency(TREE, X, Y, cv=3, repeats=one.repeats, random_state=0)
    assert whole.stopped == "repeats"
    for other in (
        cross_validate_consistency(TREE, X, Y, n_jobs=2, **arguments),
        cross_validate_consistency(TREE, X, Y, study=tmp_path / "s.db", **arguments),
        cross_validate_consistency(TREE, X, Y, study=tmp_path / "s.db", n_jobs=2, **arguments),
    ):
        assert (other.stopped, other.repeats) == ("auto", one.repeats)
        assert np.array_equal(other.errors, whole.errors)
    before = one.errors[: one.repeats - 25]
    assert settled(one.errors, len(Y), one.repeats)
    assert not settled(before, len(Y), len(before))


# -------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    "names",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([0.0, 1.0]),
        np.array([-1.0, 2.0]),
        np.array([False, True]),
        np.array([-1, 1]),
        np.array([3, 700], dtype=np.uint16),
    ],
    ids=str,
)
def test_labels_may_be_anything_that_can_be_told_apart(names: Any) -> None:
    model = DecisionTreeClassifier(max_depth=3)
    expected = cross_validate_consistency(model, X, Y, repeats=3, random_state=0)
    found = cross_validate_consistency(model, X, names[Y], repeats=3, random_state=0)
    assert np.array_equal(found.errors, expected.errors)
    assert found.classes.tolist() == names.tolist()


def test_three_classes() -> None:
    features, labels = make_classification(120, 6, n_informative=4, n_classes=3, random_state=0)
    model = DecisionTreeClassifier(max_depth=4)
    ints = cross_validate_consistency(model, features, labels, repeats=3, random_state=0, keep_predictions=True)
    words = cross_validate_consistency(model, features, np.array(["a", "b", "c"])[labels], repeats=3, random_state=0)
    assert np.array_equal(ints.errors, words.errors)
    assert np.array_equal(ints.errors, np.packbits(ints.predictions != labels, axis=1))
    assert len(ints.predicted) == 3


def test_labels_that_round_to_the_same_number_are_different() -> None:
    """The reference casts labels to integers, so that 0.9 counts as 0."""
    labels = np.where(Y == 1, 0.9, 0.0)
    with pytest.warns(UserWarning, match=r"predicts 0\.0 for every sample"):
        found = cross_validate_consistency(Told(), X, labels, repeats=2, random_state=0)
    assert found.accuracy == pytest.approx((Y == 0).mean())


@pytest.mark.parametrize("size", [63, 64, 65, 130])
def test_numbers_of_samples_that_are_no_multiple_of_the_word(size: int) -> None:
    found = cross_validate_consistency(TREE, X[:size], Y[:size], repeats=3, random_state=0)
    assert np.array_equal(found.error_sets(), plain_loop(TREE, X[:size], Y[:size], repeats=3, seed=0))
    assert found.errors.nbytes == 3 * math.ceil(size / 8)


# -------------------------------------------------------------------- features


def test_features_in_any_form() -> None:
    expected = cross_validate_consistency(TREE, X, Y, repeats=2, random_state=0).errors
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(len(X))[::-1])
    for other, labels in (
        (X.tolist(), Y.tolist()),
        (frame, pd.Series(Y, index=frame.index)),
        (scipy.sparse.csr_array(X), Y),
        (scipy.sparse.coo_array(X), Y),
        (np.asfortranarray(X), Y),
        (X[:, ::-1][:, ::-1], tuple(Y)),
    ):
        assert np.array_equal(
            cross_validate_consistency(TREE, other, labels, repeats=2, random_state=0).errors, expected
        )


def test_a_frame_of_words_reaches_the_pipeline_as_a_frame() -> None:
    frame = pd.DataFrame({"word": np.array(["x", "y"])[Y], "other": "z"})
    model = make_pipeline(OneHotEncoder(), DecisionTreeClassifier())
    found = cross_validate_consistency(model, frame, Y, repeats=2, random_state=0)
    assert found.accuracy == 1


def test_missing_features_reach_only_models_that_take_them() -> None:
    holes = X.copy()
    holes[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"X\[7, 2\] is nan, and LogisticRegression takes finite numbers only"):
        cross_validate_consistency(LogisticRegression(), holes, Y, repeats=2)
    for model in (HistGradientBoostingClassifier(max_iter=2), make_pipeline(SimpleImputer(), LogisticRegression())):
        assert cross_validate_consistency(model, holes, Y, cv=2, repeats=1, random_state=0).n_sets == 1
    with pytest.raises(ValueError, match="contains NaN") as caught:
        cross_validate_consistency(make_pipeline(StandardScaler(), LogisticRegression()), holes, Y, repeats=2)
    assert caught.value.__notes__ == ["while cross-validating Pipeline, repeat 1, fold 1"]


def test_what_a_step_makes_of_finite_features_is_looked_at() -> None:
    below = np.abs(X)
    below[3, 1] = -1
    log = FunctionTransformer(lambda Z: np.log(np.where(Z < 0, np.nan, Z + 1)))
    with pytest.raises(ValueError, match="contains NaN"):
        cross_validate_consistency(make_pipeline(log, LogisticRegression()), below, Y, repeats=2, random_state=0)

    class Inside(LogisticRegression):
        def fit(self, X: Any, y: Any) -> Any:
            return super().fit(log.transform(X), y)

    with pytest.raises(ValueError, match="contains NaN"):
        cross_validate_consistency(Inside(), below, Y, repeats=2, random_state=0)


@pytest.mark.parametrize("as_given", [np.asarray, pd.DataFrame, scipy.sparse.csr_array])
def test_models_that_work_in_place_change_nothing_for_others(as_given: Any) -> None:
    fresh = as_given(X[:60] * 3 + 1)
    before = np.array(fresh.todense() if scipy.sparse.issparse(fresh) else fresh)
    found = []
    for copied in (False, True):
        model = make_pipeline(StandardScaler(with_mean=False, copy=copied), LogisticRegression())
        models = [clone(model).fit(X[k:].copy(), Y[k:]) for k in (60, 80, 100)]
        found.append(
            (
                cross_validate_consistency(
                    model, X[60:], Y[60:], X_test=fresh, y_test=Y[:60], repeats=3, random_state=0
                ).errors,
                consistency_of(models, fresh, Y[:60]).errors,
            )
        )
        assert np.array_equal(fresh.todense() if scipy.sparse.issparse(fresh) else fresh, before)
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(*found, strict=True))


def test_lists_of_several_types_are_no_lists_of_strings() -> None:
    words = ["a", "b"] * 75
    for odd in (math.nan, None):
        with pytest.raises(ValueError, match=r"y\[4\] is (nan|None): a sample without one"):
            cross_validate_consistency(TREE, X, [*words[:4], odd, *words[5:]], repeats=1)
    with pytest.raises(TypeError, match="y must hold labels of one type; it has int and str"):
        cross_validate_consistency(TREE, X, [*words[:4], 1, *words[5:]], repeats=1)
    with pytest.raises(ValueError, match=r"groups\[0\] is nan"):
        cross_validate_consistency(TREE, X, Y, groups=[math.nan, *words[1:]], repeats=1)
    with pytest.raises(ValueError, match=r"y\[7\] is masked"):
        cross_validate_consistency(TREE, X, np.ma.masked_array(Y, mask=np.arange(150) == 7), repeats=1)
    ours = cross_validate_consistency(TREE, X, words, repeats=1, random_state=0)
    assert np.array_equal(
        ours.errors, cross_validate_consistency(TREE, X, np.array(words), repeats=1, random_state=0).errors
    )


def test_a_study_refuses_what_it_could_not_tell_from_others(tmp_path: Path) -> None:
    model = make_pipeline(FunctionTransformer(lambda Z: Z), LogisticRegression())
    with pytest.raises(TypeError, match="a study must tell Pipeline from others, and it cannot be pickled"):
        cross_validate_consistency(model, X, Y, repeats=2, study=tmp_path / "study.db")
    assert not list(tmp_path.iterdir())
    assert cross_validate_consistency(model, X, Y, repeats=2, random_state=0).n_sets == 2


def test_a_class_that_only_the_models_know_is_a_wrong_answer() -> None:
    labels = np.array(["a", "b", "c"])[np.arange(150) % 3]
    models = [DecisionTreeClassifier(max_depth=5, random_state=k).fit(X[k:], labels[k:]) for k in range(3)]
    some = labels != "c"
    found = consistency_of(models, X[some], labels[some])
    assert np.array_equal(found.error_sets(), [model.predict(X[some]) != labels[some] for model in models])
    assert found.classes.tolist() == ["a", "b", "c"]
    assert found.predicted.sum() == 3 * some.sum()
    assert found.predicted[2] > 0
    assert found.majority == 0.5
    with pytest.raises(ValueError, match="none of the labels"):
        consistency_of(models, X[some], np.where(labels[some] == "a", 0, 1))


def test_groups_stay_together(seen: list[Any]) -> None:
    groups = np.arange(len(Y)) // 6
    features = np.c_[groups, X]
    for stratify in (True, False):
        with pytest.warns(UserWarning, match="for every sample"):
            cross_validate_consistency(Told(), features, Y, groups=groups, stratify=stratify, repeats=3, random_state=0)
    assert len(seen) == 2 * 15
    assert all(not set(train) & set(test) for train, test in seen)
    assert all(set(train) | set(test) == set(groups.tolist()) for train, test in seen)


# -------------------------------------------------------------------- constants, warnings, errors of models


def test_a_constant_classifier_is_flagged() -> None:
    with pytest.warns(UserWarning, match="means nothing") as caught:
        found = cross_validate_consistency(DummyClassifier(), X, Y, repeats=5, random_state=0)
    assert caught[0].filename == __file__
    assert found.constant
    assert found.to_dict()["consistency"] == 1
    assert found.accuracy == pytest.approx(found.majority)
    assert found.predicted_share == 1
    assert "constant" in repr(found)
    assert "means nothing" in found.summary()
    honest = cross_validate_consistency(TREE, X, Y, repeats=5, random_state=0)
    assert not honest.constant
    assert "constant" not in repr(honest)


def test_warnings_of_fits_are_told_once() -> None:
    model = LogisticRegression(max_iter=1)
    with pytest.warns(ConvergenceWarning) as caught:
        cross_validate_consistency(model, X, Y, repeats=4, random_state=0)
    assert len(caught) == 1


def test_what_is_no_classifier_of_these_labels() -> None:
    with pytest.raises(ValueError, match=r"LinearRegression predicts .* none of the labels \(0, 1\)") as caught:
        cross_validate_consistency(LinearRegression(), X, Y, repeats=1, random_state=0)
    assert "repeat 1, fold 1" in caught.value.__notes__[0]

    class Short(Told):
        def predict(self, X: Any) -> Any:
            return [0]

    with pytest.raises(ValueError, match="one label a sample"):
        cross_validate_consistency(Short(), X, Y, repeats=1, random_state=0)


def test_errors_of_a_model_say_where() -> None:
    class Tired(Told):
        def fit(self, X: Any, y: Any) -> Tired:
            raise RuntimeError("out of coffee")

    with pytest.raises(RuntimeError, match="out of coffee") as caught:
        cross_validate_consistency(Tired(), X, Y, repeats=1)
    assert caught.value.__notes__ == ["while cross-validating Tired, repeat 1, fold 1"]


def test_wrong_parameters_of_the_model_are_found() -> None:
    with pytest.raises(ValueError, match="max_depth"):
        cross_validate_consistency(DecisionTreeClassifier(max_depth=-3), X, Y, repeats=1)


# -------------------------------------------------------------------- what is refused before any fit


def refuse(message: str, *arguments: Any, error: type[Exception] = ValueError, **named: Any) -> None:
    with pytest.raises(error, match=message):
        cross_validate_consistency(*arguments, **named)
    assert not Told.seen


def test_a_class_is_no_instance() -> None:
    """The reference takes classes and refuses instances; here it is the other way round, and said."""
    refuse("the class DecisionTreeClassifier: hand over an instance", DecisionTreeClassifier, X, Y, error=TypeError)
    refuse("lacks fit, predict, get_params", object(), X, Y, error=TypeError)


def replaced(values: Any, place: int, value: Any) -> Any:
    array = np.array(values, dtype=object if value is None or isinstance(value, str) else float)
    array[place] = value
    return array


@pytest.mark.parametrize("value", [None, np.nan])
def test_missing_labels(value: Any, seen: list[Any]) -> None:
    refuse(r"y\[9\] is (nan|None)", Told(), X, replaced(Y, 9, value))
    refuse(r"y\[4\] is (nan|<NA>)", Told(), X, pd.array([1, 0, 1, 0, None] * 30, dtype="Int64"))
    refuse(r"groups\[9\] is (nan|None)", Told(), X, Y, groups=replaced(Y, 9, value))
    refuse(r"y_test\[2\] is (nan|None)", Told(), X, Y, X_test=X, y_test=replaced(Y, 2, value))


def test_arguments_that_do_not_fit(seen: list[Any]) -> None:
    few = np.array([0] * 147 + [1] * 3)
    refuse("y has 149 entries, X has 150 samples", Told(), X, Y[:-1])
    refuse(r"y must have one label a sample.*\(150, 1\)", Told(), X, Y[:, None])
    refuse("labels of one type; it has int and str", Told(), X, replaced(Y.tolist(), 3, "a"), error=TypeError)
    refuse("y has one class only", Told(), X, np.zeros(150))
    refuse("class 1 has 3 samples, too few for cv=5 folds", Told(), X, few)
    refuse("class 'b' has 3 samples", Told(), X, np.array(["a", "b"])[few])
    refuse("151 folds", Told(), X, Y, cv=151, stratify=False)
    refuse("groups has 3 different groups, too few for cv=5", Told(), X, Y, groups=np.arange(150) // 50)
    refuse("groups has 10 entries", Told(), X, Y, groups=np.arange(10))
    refuse("X_test needs y_test", Told(), X, Y, X_test=X)
    refuse("y_test needs X_test", Told(), X, Y, y_test=Y)
    refuse("y_test has 10 entries, X_test has 150 samples", Told(), X, Y, X_test=X, y_test=Y[:10])
    refuse("X_test has shape", Told(), X, Y, X_test=X[:, :2], y_test=Y)
    refuse(r"y_test\[1\] is .*none of the labels in y", Told(), X, Y, X_test=X[:2], y_test=[0, 2])
    refuse(r"y_test\[0\] is .*none of the labels in y", Told(), X, Y, X_test=X[:2], y_test=["0", "1"])
    refuse("X is empty", Told(), X[:0], Y[:0])
    refuse("one row a sample", Told(), 3.0, Y, error=TypeError)
    for value in (0, -1, 1.5, True):
        refuse("repeats must be an integer of at least 1", Told(), X, Y, repeats=value)
    refuse("cv must be at least 2", Told(), X, Y, cv=1)
    refuse("cv must be a number of folds", Told(), X, Y, cv=KFold(5), error=TypeError)
    refuse("stop must be", Told(), X, Y, stop="soon")
    refuse("random_state", Told(), X, Y, random_state="a", error=TypeError)


def test_few_samples_of_a_class_are_fine_without_stratification() -> None:
    few = np.array([0] * 147 + [1] * 3)
    found = cross_validate_consistency(TREE, X, few, stratify=False, repeats=2, random_state=0)
    assert found.n_sets == 2


# -------------------------------------------------------------------- results


def test_all_right_and_all_wrong() -> None:
    """No errors at all have no consistency; errors everywhere are consistent."""

    class Knows(Told):
        def __init__(self, flip: bool = False, random_state: int | None = None) -> None:
            super().__init__(random_state)
            self.flip = flip

        def predict(self, X: Any) -> Any:
            return (np.asarray(X)[:, -1] > 0) != self.flip

    features = np.c_[X, Y]
    labels = Y.astype(bool)
    right = cross_validate_consistency(Knows(), features, labels, repeats=3, random_state=0)
    assert right.accuracy == 1
    assert right.to_dict()["consistency"] is None
    assert right.to_dict()["n_undefined"] == 3
    assert "3 pairs without any error left out" in right.summary()
    wrong = cross_validate_consistency(Knows(flip=True), features, labels, repeats=3, random_state=0)
    assert (wrong.accuracy, wrong.to_dict()["consistency"]) == (0, 1)


def test_a_result_shows_itself() -> None:
    found = cross_validate_consistency(TREE, X, Y, repeats=3, random_state=0)
    assert repr(found).startswith("CrossValidated(DecisionTreeClassifier: accuracy 0.")
    assert found._repr_html_() == f"<pre>{found.summary()}</pre>"
    row = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert row["approach"] == "internal"
    assert row["n_sets"] == 3
    with pytest.raises(AttributeError):
        found.seed = 3  # type: ignore[misc]


def test_memory_is_a_bit_a_sample() -> None:
    found = cross_validate_consistency(TREE, X, Y, repeats=50, random_state=0)
    assert found.predictions is None
    assert found.errors.nbytes == 50 * 19
    plan = prepared(TREE, X, Y, cv=5, stratify=True, random_state=0)
    parts = in_processes(plan, 50, stop=None, n_jobs=1)
    assert sum(part.errors.nbytes for part in parts) == 50 * 19


# -------------------------------------------------------------------- fitted models


def test_fitted_models() -> None:
    models = [clone(TREE).set_params(random_state=k).fit(X[:80], Y[:80]) for k in range(4)]
    found = consistency_of(models, X[80:], Y[80:])
    expected = np.array([model.predict(X[80:]) != Y[80:] for model in models])
    assert np.array_equal(found.error_sets(), expected)
    assert (found.approach, found.repeats, found.folds, found.seed) == ("fitted", 0, 0, None)
    assert "4 fitted models" in found.summary()
    assert isinstance(found, CrossValidated)
    assert np.array_equal(consistency_of(iter(models), pd.DataFrame(X[80:]), list(Y[80:])).errors, found.errors)


def test_fitted_models_of_bags() -> None:
    training, fresh = (mf.sample_bags("presence", 60, random_state=seed) for seed in (0, 1))
    models = [mf.models.get(name)().fit(training) for name in ("NSK", "STK", "mi-SVM")]
    found = consistency_of(models, fresh)
    assert found.n_samples == 60
    expected = np.array([model.predict(fresh) != fresh.labels for model in models])
    assert np.array_equal(found.error_sets(), expected)
    assert np.array_equal(consistency_of(models, fresh, fresh.labels).errors, found.errors)


def test_fitted_models_that_are_refused() -> None:
    model = clone(TREE).fit(X, Y)
    with pytest.raises(ValueError, match="models is empty"):
        consistency_of([], X, Y)
    with pytest.raises(TypeError, match=r"models\[1\] is the class"):
        consistency_of([model, DecisionTreeClassifier], X, Y)
    with pytest.raises(TypeError, match=r"models\[0\] must have predict; int lacks predict"):
        consistency_of([3], X, Y)
    with pytest.raises(ValueError, match="y is missing"):
        consistency_of([model], X)
    with pytest.raises(ValueError, match="X carries no labels"):
        consistency_of([model], mf.Bags(np.ones((3, 2)), [0, 1, 3]))
    with pytest.raises(ValueError, match="y has 3 entries"):
        consistency_of([model], X, Y[:3])
    with pytest.raises(ValueError, match="none of the labels") as caught:
        consistency_of([model], X, np.where(Y == 1, "a", "b"))
    assert caught.value.__notes__ == ["while predicting with models[0]"]
    with pytest.warns(UserWarning, match="means nothing"):
        assert consistency_of([DummyClassifier().fit(X, Y)], X, Y).constant
