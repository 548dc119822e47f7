"""Cross-validation: folds, seeds, intervals, published figures, messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator

import milfast as mf
from milfast import Bags
from milfast.evaluation import EvaluationResult, evaluate_all
from milfast.uncertainty import mean_interval, proportion_interval

if TYPE_CHECKING:
    from pathlib import Path


class Watched(BaseEstimator):
    """Scores by the first feature, and notes what it is given; a bag is known by its second feature."""

    def __init__(self, random_state: int | None = None, log: Any = None) -> None:
        self.random_state = random_state
        self.log = log

    def __sklearn_clone__(self) -> Watched:
        # cloning would copy the log
        return Watched(self.random_state, self.log)

    def fit(self, bags: Bags, y: Any = None) -> Watched:
        self.seen = set(np.concatenate([bag[:1, 1] for bag in bags]).tolist())
        self.instances = bags.instances
        return self

    def decision_function(self, bags: Bags) -> Any:
        tested = [float(bag[0, 1]) for bag in bags]
        if self.log is not None:
            self.log.append((self.seen, tested, bags.labels, self.random_state, self.instances))
        return [bag[0, 0] for bag in bags]


def numbered(n: int = 23, n_positive: int = 9) -> Bags:
    """Bags of 1..3 instances; the first feature is informative, the second says which bag it is."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, n)
    labels = rng.permutation(np.repeat([0, 1], [n - n_positive, n_positive]))
    bag = np.repeat(np.arange(n), sizes)
    return Bags(np.column_stack([labels[bag] + rng.normal(size=len(bag)), bag]), np.cumsum([0, *sizes]), labels)


def facts(result: EvaluationResult) -> dict[str, Any]:
    return {key: value for key, value in result.to_dict().items() if key != "seconds"}


@pytest.mark.parametrize(("folds", "repeats"), [(2, 1), (3, 2), (5, 3), (9, 1)])
def test_every_bag_is_tested_once_a_repeat_and_never_trained_on_then(folds: int, repeats: int) -> None:
    bags, log = numbered(), []  # type: ignore[var-annotated]
    result = mf.evaluate(Watched(log=log), bags, folds=folds, repeats=repeats, standardize=False)
    assert result.fold_aucs.shape == (repeats, folds)
    assert len(log) == folds * repeats
    deals = set()
    for repeat in range(repeats):
        part = log[repeat * folds : (repeat + 1) * folds]
        assert sorted(bag for _, tested, *_ in part for bag in tested) == list(range(23))
        for seen, tested, *_ in part:
            labels = bags.labels[np.array(tested, dtype=int)]  # type: ignore[index]
            assert seen == set(range(23)) - set(tested)
            # both classes are shared out evenly
            assert 9 // folds <= labels.sum() <= -(-9 // folds)
            assert 14 // folds <= (labels == 0).sum() <= -(-14 // folds)
        deals.add(tuple(tuple(tested) for _, tested, *_ in part))
    # every repeat deals anew, and every fit has a seed of its own
    assert len(deals) == repeats
    assert len({seed for *_, seed, _ in log}) == folds * repeats


def test_aucs_are_those_of_the_folds() -> None:
    bags, log = numbered(), []  # type: ignore[var-annotated]
    result = mf.evaluate(Watched(log=log), bags, repeats=2, standardize=False)
    first = np.array([bag[0, 0] for bag in bags])
    assert bags.labels is not None
    for got, (_, tested, shown, *_) in zip(result.fold_aucs.ravel(), log, strict=True):
        chosen = np.array(tested, dtype=int)
        assert got == mf.auc(first[chosen], bags.labels[chosen])
        assert shown is None  # whoever is scored does not see the labels


def test_folds_without_spread_do_not_make_a_point_of_an_interval() -> None:
    bags = Bags(np.arange(20.0)[:, None], range(21), [0] * 10 + [1] * 10)
    result = mf.evaluate(FirstFeature(), bags)
    assert result.auc.estimate == 1.0
    assert (result.auc.low, result.auc.high) == (proportion_interval(10, 10).low, 1.0)


class FirstFeature(BaseEstimator):
    def fit(self, bags: Bags) -> None:
        pass

    def decision_function(self, bags: Bags) -> Any:
        return [bag[0, 0] for bag in bags]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_is_corrected_for_shared_training_bags(level: float) -> None:
    for folds in (3, 5):
        result = mf.evaluate("NSK", numbered(), folds=folds, repeats=2, level=level)
        values = result.fold_aucs.ravel()
        corrected = mean_interval(values, level=level, test_train_ratio=1 / (folds - 1), bounds=(0.0, 1.0))
        assert result.auc == corrected
        assert result.auc.estimate == pytest.approx(values.mean())
        plain = mean_interval(values, level=level, bounds=(0.0, 1.0))
        assert corrected.high - corrected.low > plain.high - plain.low


def test_all_models_get_the_same_folds_and_keep_their_order() -> None:
    bags = numbered()
    logs: list[list[Any]] = [[], []]
    results = evaluate_all(
        [Watched(log=logs[0]), "NSK", Watched(log=logs[1])],
        bags,
        folds=4,
        repeats=2,
        standardize=True,
        level=0.95,
        random_state=3,
        n_jobs=1,
        callback=None,
    )
    assert [result.model for result in results] == ["Watched", "NSK", "Watched"]
    assert [entry[1] for entry in logs[0]] == [entry[1] for entry in logs[1]]
    assert facts(results[0]) == facts(results[2])
    assert facts(results[1]) == facts(mf.evaluate("NSK", bags, folds=4, repeats=2, random_state=3))


def test_one_process_and_two_give_the_same() -> None:
    first, second = (mf.evaluate("NSK", numbered(), repeats=2, n_jobs=n) for n in (1, 2))
    assert facts(first) == facts(second)
    assert_array_equal(first.fold_aucs, second.fold_aucs)


@pytest.mark.parametrize("random_state", [5, None, np.random.SeedSequence(1)], ids=str)
def test_the_seed_of_a_result_brings_the_result_back(random_state: Any) -> None:
    first = mf.evaluate(Watched(), numbered(), random_state=random_state)
    if random_state == 5:
        assert first.seed == 5
    assert_array_equal(mf.evaluate(Watched(), numbered(), random_state=first.seed).fold_aucs, first.fold_aucs)
    assert not np.array_equal(mf.evaluate(Watched(), numbered(), random_state=6).fold_aucs, first.fold_aucs)


def test_features_are_scaled_by_the_training_instances_alone() -> None:
    bags, log = numbered(), []  # type: ignore[var-annotated]
    far = bags.with_instances(bags.instances * [5.0, 1.0] + [100.0, 0.0])
    mf.evaluate(Watched(log=log), far, folds=3, repeats=1)
    for *_, instances in log:
        assert_allclose(instances.mean(axis=0), 0, atol=1e-12)
        assert_allclose(instances.std(axis=0), 1)
    log.clear()
    mf.evaluate(Watched(log=log), far, folds=3, repeats=1, standardize=False)
    assert all(instances[:, 0].mean() > 90 for *_, instances in log)


def test_progress_is_told_after_each_fit() -> None:
    told: list[tuple[int, int, str]] = []
    mf.evaluate("NSK", numbered(), folds=3, repeats=2, callback=lambda *args: told.append(args))
    assert told == [(done, 6, "NSK") for done in range(1, 7)]


def test_a_registered_name_is_taken_with_its_defaults() -> None:
    kind = mf.models.get("NSK")
    named, default, published = (
        mf.evaluate(model, numbered(), repeats=1).fold_aucs for model in ("NSK", kind(), kind(**kind.tested))
    )
    assert_array_equal(named, default)
    assert not np.array_equal(named, published)


def test_data_can_be_a_file(tmp_path: Path) -> None:
    bags = numbered()
    assert bags.labels is not None
    rows = [
        f"{bag},{bags.labels[bag]},{','.join(repr(float(v)) for v in row)}"
        for bag, row in zip(bags.bag_index, bags.instances, strict=True)
    ]
    path = tmp_path / "bags.csv"
    path.write_text("\n".join(["bag_id,label,f1,f2", *rows]) + "\n")
    result = mf.evaluate("NSK", str(path))
    assert result.data == str(path)
    assert_array_equal(result.fold_aucs, mf.evaluate("NSK", bags).fold_aucs)


def test_a_result_is_one_flat_row_of_plain_values() -> None:
    result = mf.evaluate("NSK", numbered(), folds=3, repeats=2, level=0.9)
    row = result.to_dict()
    assert all(type(value) in (str, int, float) for value in row.values()), row
    assert (row["model"], row["data"], row["folds"], row["repeats"], row["level"]) == ("NSK", "bags", 3, 2, 0.9)
    assert (row["auc"], row["auc_low"], row["auc_high"]) == (result.auc.estimate, result.auc.low, result.auc.high)
    assert row["fold_sd"] == pytest.approx(np.std(result.fold_aucs, ddof=1))
    assert repr(result) == (
        f"EvaluationResult(NSK on bags: AUC {row['auc']:.3f} [{row['auc_low']:.3f}, {row['auc_high']:.3f}], "
        "2 x 3 folds)"
    )
    assert "<b>NSK</b> on bags: " in result._repr_html_()


# ---------------------------------------------------------------- published figures


def test_nsk_ranks_the_musk_molecules_as_published(mil_data: Path) -> None:
    # 15 folds with features scaled as here, gamma = 1 / d, C = 10: 0.955, standard deviation 0.042
    model = mf.models.get("NSK")(gamma=1 / 166, C=10.0, normalize="average")
    result = mf.evaluate(model, "musk1")
    assert 0.93 < result.auc.estimate < 0.98
    assert 0.02 < np.std(result.fold_aucs) < 0.07


def test_mi_svm_ranks_the_musk_molecules(mil_data: Path) -> None:
    assert mf.evaluate("mi-SVM", "musk1", repeats=1).auc.estimate > 0.88


# ---------------------------------------------------------------- messages


class Broken:
    def fit(self, bags: Bags) -> None:
        raise ZeroDivisionError("of the model itself")

    predict = fit


@pytest.mark.parametrize(
    ("data", "more", "error", "message"),
    [
        (numbered(), {"folds": 1}, ValueError, "folds must be an integer of at least 2; got 1"),
        (numbered(), {"folds": 2.0}, ValueError, r"folds must be an integer of at least 2; got 2\.0"),
        (numbered(), {"repeats": 0}, ValueError, "repeats must be an integer of at least 1; got 0"),
        (numbered(), {"repeats": True}, ValueError, "repeats must be an integer of at least 1; got True"),
        (numbered(), {"level": 1}, ValueError, "level must lie strictly between 0 and 1; got 1"),
        (numbered(), {"folds": 10}, ValueError, "the smaller class has 9 bags, too few for 10 folds"),
        (numbered(), {"random_state": -1}, ValueError, "random_state must not be negative"),
        (numbered(), {"n_jobs": 0}, ValueError, "n_jobs"),
        (Bags([[1.0]], [0, 1]), {}, ValueError, "bags carry no labels"),
        (Bags([[1.0]] * 6, range(7), [1] * 6), {}, ValueError, "the smaller class has 0 bags"),
        ([[1.0]], {}, TypeError, r"data must be the name of a data set or milfast\.Bags; got list"),
        ("musk", {}, ValueError, "musk1"),
        ("no/such/file.csv", {}, FileNotFoundError, "file.csv"),
    ],
)
def test_what_is_wrong_is_named(data: Any, more: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mf.evaluate("NSK", data, **more)


def test_a_wrong_model_is_named() -> None:
    with pytest.raises(ValueError, match="there is no model 'NKS': did you mean NSK"):
        mf.evaluate("NKS", numbered())
    with pytest.raises(TypeError, match="object does not have them"):
        mf.evaluate(object(), numbered())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_of_a_model_says_where_it_happened(n_jobs: int) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        mf.evaluate(Broken(), numbered(), repeats=1, n_jobs=n_jobs)
    assert any(note.startswith("while evaluating Broken on bags, repeat 1, fold ") for note in caught.value.__notes__)
