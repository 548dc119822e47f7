"""Protocols: splits, choices among ties, intervals for shared test sets, jobs, the command line, records."""

from __future__ import annotations

import functools
import json
import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import record_protocol as record
import record_protocol_coverage as coverage
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

import milfast as mf
from milfast import Bags, _core, cli
from milfast.lazy_bags import LazyBags
from milfast.protocol import jobs
from milfast.protocol.intervals import Placed, auc_over_bags, over_seeds, placements, variance_over_bags
from milfast.protocol.results import combine
from milfast.protocol.selection import TIES, choose
from milfast.protocol.splits import dealt, held_out
from milfast.report import records
from milfast.uncertainty import auc_interval, corrected_ttest, mean_interval, proportion_interval

if TYPE_CHECKING:
    from pathlib import Path


def labels_of(n: int, n_positive: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).permutation(np.repeat([0, 1], [n - n_positive, n_positive]))


def made(n: int = 60, n_positive: int = 27, seed: int = 0) -> Bags:
    """Bags of 1..3 instances with a signal in the first of three features."""
    rng = np.random.default_rng(seed)
    labels = labels_of(n, n_positive, seed)
    sizes = rng.integers(1, 4, n)
    bag = np.repeat(np.arange(n), sizes)
    return Bags(
        np.column_stack([labels[bag] + rng.normal(size=len(bag)), rng.normal(size=(len(bag), 2))]),
        np.cumsum([0, *sizes]),
        labels,
    )


# ---------------------------------------------------------------- splits


@pytest.mark.parametrize(("n", "test"), [(92, 10), (102, 11), (200, 20), (58, 6)])
def test_a_tenth_tests_all_folds_of_a_seed_as_in_the_authors_code(n: int, test: int) -> None:
    labels = labels_of(n, n // 2)
    seen = set()
    for number in range(3):
        splits = held_out(labels, seed=1, number=number, folds=5, stratified=n < 60)
        n_train = int(0.9 * n)
        assert {tuple(split.test) for split in splits} == {tuple(splits[0].test)}
        assert len(splits[0].test) == test == n - n_train
        seen.add(tuple(splits[0].test))
        rest = np.concatenate([split.validation for split in splits])
        assert sorted([*rest, *splits[0].test]) == list(range(n))
        assert {len(split.validation) for split in splits} <= {n_train // 5, n_train // 5 + 1}
        for split in splits:
            assert sorted([*split.train, *split.validation, *split.test]) == list(range(n))
    assert len(seen) == 3


def test_folds_are_those_of_an_unshuffled_kfold_of_the_permuted_bags() -> None:
    from sklearn.model_selection import KFold

    labels = labels_of(92, 47)
    splits = held_out(labels, seed=3, number=2, folds=5, stratified=False)
    order = np.concatenate([split.validation for split in splits])
    for split, (train, validation) in zip(splits, KFold(5).split(order), strict=True):
        assert_array_equal(split.validation, order[validation])
        assert_array_equal(split.train, order[train])


def test_stratified_splits_share_classes_out() -> None:
    labels = labels_of(102, 39)
    for number in range(3):
        splits = held_out(labels, seed=0, number=number, folds=5, stratified=True)
        assert labels[splits[0].test].sum() in (4, 5)
        assert all(6 <= labels[split.validation].sum() <= 8 for split in splits)


def test_a_part_without_a_class_is_refused_with_the_way_out() -> None:
    labels = labels_of(40, 2)
    with pytest.raises(ValueError, match=r"of seed 1 has \d+ bags, all of one class: .* --stratified"):
        held_out(labels, seed=0, number=0, folds=5, stratified=False)
    # class by class was asked for already
    for n, few in ((40, 2), (40, 1), (40, 5), (10, 5), (40, 0)):
        with pytest.raises(ValueError, match=rf"the smaller class has {few} bags, too few to be in a test set of \d+"):
            held_out(labels_of(n, few), seed=0, number=0, folds=5, stratified=True)


@pytest.mark.parametrize("inner", [0, 3])
def test_every_bag_is_tested_once_a_seed_and_chosen_without(inner: int) -> None:
    labels = labels_of(60, 27)
    outer = dealt(labels, seed=0, number=1, folds=5, inner=inner)
    assert sorted(bag for parts in outer for bag in parts[-1].test) == list(range(60))
    for parts in outer:
        assert len(parts) == inner + 1
        assert len(parts[-1].validation) == 0
        assert sorted([*parts[-1].train, *parts[-1].test]) == list(range(60))
        if inner:
            validated = [bag for split in parts[:-1] for bag in split.validation]
            assert sorted(validated) == sorted(parts[-1].train)
        for split in parts[:-1]:
            assert_array_equal(split.test, parts[-1].test)
            assert not set(split.train) & {*split.validation, *split.test}
            assert sorted([*split.train, *split.validation]) == sorted(parts[-1].train)
    # what is tested does not depend on how margins are chosen
    plain = dealt(labels, seed=0, number=1, folds=5, inner=0)
    assert [parts[-1].test.tolist() for parts in outer] == [parts[-1].test.tolist() for parts in plain]


@pytest.mark.parametrize(("folds", "inner", "message"), [(6, 0, "$"), (5, 5, " of 5 inner ones$")])
def test_too_few_bags_for_the_folds(folds: int, inner: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"the smaller class has 5 bags, too few for {folds} folds{message}"):
        dealt(labels_of(40, 5), seed=0, number=0, folds=folds, inner=inner)


# ---------------------------------------------------------------- choices


@given(arrays(np.float64, (3, 7), elements=st.sampled_from([0.5, 0.8, 0.9])), st.sampled_from(sorted(TIES)))
def test_every_rule_takes_what_it_says(values: Any, rule: str) -> None:
    allowed = [(m, e) for e in range(7) for m in range(3) if rule != "final" or e == 6]
    best = max(values[place] for place in allowed)
    tied = [place for place in allowed if values[place] == best]
    choice = choose(values, rule)
    expected = {"first": tied[:1], "final": tied[:1], "last": tied[-1:], "mean": tied}[rule]
    assert [tuple(place) for place in choice.taken] == expected
    assert [tuple(place) for place in choice.tied] == tied
    assert (choice.n_ties, choice.value) == (len(tied), best)


def test_nothing_is_chosen_by_a_nan() -> None:
    values = np.full((2, 3), 0.5)
    values[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"values\[1, 2\] is NaN"):
        choose(values)
    with pytest.raises(ValueError, match="ties must be one of first, last, mean, final; got 'best'"):
        choose(values, "best")
    with pytest.raises(ValueError, match="neither 0; got"):
        choose(np.zeros((2, 0)))


# ---------------------------------------------------------------- intervals


@given(arrays(np.int64, 12, elements=st.integers(0, 4)), st.integers(2, 10))
def test_with_one_test_set_the_variance_is_that_of_delong(scores: Any, n_positive: int) -> None:
    positive = np.arange(12) < n_positive
    test = Placed(np.arange(12), positive, placements(scores, positive))
    auc, variance, *_ = _core.delong(scores, positive)
    assert test.auc == pytest.approx(auc)
    assert variance_over_bags([test]) == pytest.approx(variance, abs=1e-12)
    found, plain = auc_over_bags([test], level=0.9), auc_interval(scores, positive, level=0.9)
    assert_allclose([found.low, found.high], [plain.low, plain.high], atol=1e-9)


def test_the_mean_of_models_on_one_test_set_has_the_variance_of_their_covariances() -> None:
    rng = np.random.default_rng(0)
    positive = np.arange(30) < 13
    scores = positive + rng.normal(size=30) + rng.normal(size=(5, 30))
    _, covariance, *_ = _core.delong_covariance(scores, positive)
    mean = np.mean([placements(row, positive) for row in scores], axis=0)
    test = Placed(np.arange(30), positive, mean)
    assert test.auc == pytest.approx(np.mean(_core.auc_many(scores, positive)))
    assert variance_over_bags([test]) == pytest.approx(np.mean(covariance))


def test_a_test_set_that_comes_again_shows_nothing_new() -> None:
    rng = np.random.default_rng(1)
    positive = np.arange(25) < 11
    test = Placed(np.arange(25), positive, placements(positive + rng.normal(size=25), positive))
    apart = Placed(np.arange(25) + 25, positive, test.placements)
    # pooling over two sets has two degrees of freedom less, not one in each class
    same = variance_over_bags([test, test])
    assert same == pytest.approx(variance_over_bags([test]))
    assert variance_over_bags([test, apart]) == pytest.approx(same / 2)


def test_bags_that_tell_opposite_things_in_two_sets_do_not_narrow_the_interval() -> None:
    positive = np.arange(20) < 10
    up = np.where(positive, np.arange(20) / 20, 0.5)
    down = np.where(positive, (9 - np.arange(20)) / 20, 0.5)
    pair = [Placed(np.arange(20), positive, values) for values in (up, down)]
    apart = [pair[0], Placed(np.arange(20) + 20, positive, down)]
    assert variance_over_bags(pair) == pytest.approx(variance_over_bags(apart))


def test_intervals_over_bags_hold_the_mean_auc_as_often_as_they_say() -> None:
    """Fixed models, and test sets that share bags: the truth is the AUC of the two normal laws."""
    rng = np.random.default_rng(5)
    truth = 0.5 * (1 + math.erf(1.2 / 2))
    held = 0
    for _ in range(400):
        labels = np.repeat([0, 1], [60, 60])
        base = 1.2 * labels + rng.normal(size=120)
        tests = []
        for _ in range(3):
            bags = rng.permutation(120)[:40]
            positive = labels[bags] == 1
            tests.append(Placed(bags, positive, placements(base[bags], positive)))
        held += truth in auc_over_bags(tests, level=0.9)
    assert 0.86 <= held / 400 <= 0.95


def test_the_folds_of_a_seed_are_no_trials() -> None:
    rng = np.random.default_rng(2)
    tests = []
    for _ in range(3):
        bags = rng.permutation(60)[:20]
        positive = bags < 30
        tests.append(Placed(bags, positive, placements(positive + rng.normal(size=20), positive)))
    found = over_seeds(tests, level=0.95)
    means = np.array([test.auc for test in tests])
    own = math.sqrt(np.mean([variance_over_bags([test]) for test in tests]))
    assert found.estimate == pytest.approx(means.mean())
    assert (found.n, found.method) == (3, "t over seeds")
    expected = mean_interval(means, least_deviation=own, bounds=(0, 1))
    assert (found.low, found.high) == (expected.low, expected.high)
    # three means that agree by chance do not make a narrow interval
    alike = [Placed(test.bags, test.positive, tests[0].placements) for test in [tests[0]] * 3]
    narrow = over_seeds(alike, level=0.95)
    assert narrow.high - narrow.low > 0.1


def test_means_without_spread_get_the_bound_of_their_bags() -> None:
    positive = np.arange(10) < 4
    perfect = [Placed(np.arange(10) + 10 * i, positive, np.ones(10)) for i in range(3)]
    found = over_seeds(perfect, level=0.95)
    assert (found.estimate, found.high, found.method) == (1.0, 1.0, "wilson bound")
    assert found.low == proportion_interval(12, 12).low
    assert auc_over_bags(perfect, level=0.95).low == pytest.approx(found.low)
    # two thirds each time, by one positive bag among three others: no spread, and no certainty
    single = np.arange(4) == 0
    alike = [Placed(np.arange(4) + 4 * i, single, np.array([2 / 3, 1.0, 1.0, 0.0])) for i in range(2)]
    wide = over_seeds(alike, level=0.95)
    largest = math.sqrt(2 / 3 * 1 / 3)
    expected = mean_interval([2 / 3, 2 / 3], least_deviation=largest, bounds=(0, 1))
    assert (wide.low, wide.high) == pytest.approx((expected.low, expected.high))
    assert wide.high - wide.low > 0.5
    one = [Placed(np.arange(2), np.array([True, False]), np.ones(2))]
    undefined = auc_over_bags(one, level=0.95)
    assert math.isnan(undefined.low)
    assert undefined.method == "undefined (one bag of a class)"


# ---------------------------------------------------------------- jobs


def test_what_is_chosen_is_scored_as_an_obvious_loop_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way from scores to trials, with scores of its own."""
    bags = made()
    labels = bags.labels
    assert labels is not None
    rng = np.random.default_rng(0)
    # rounded, so that there are ties
    table = np.round(0.5 * labels + rng.normal(size=(5, 3, 6, 60)), 0).astype(np.float32)
    monkeypatch.setattr(jobs, "_stacked", lambda _job, _bags, _splits: [[table[fold]] for fold in range(5)])
    [job] = plan_of("AUC-M", bags, seeds=1, epochs=6)
    got = jobs.run_job(job, bags)
    assert got["n_candidates"] == 18
    for fold, [split] in enumerate(job.splits(labels)):

        def auc(margin: int, epoch: int, part: Any, fold: int = fold) -> float:
            return mf.auc(table[fold, margin, epoch][part], labels[part])

        everything = [(m, e) for e in range(6) for m in range(3)]
        best = max(auc(m, e, split.validation) for m, e in everything)
        tied = [(m, e) for m, e in everything if auc(m, e, split.validation) == best]
        tests = [auc(m, e, split.test) for m, e in tied]
        first, last, mean = (got["trials"][rule][fold] for rule in ("first", "last", "mean"))
        assert first["auc"] == tests[0]
        assert (first["epoch"], first["margin"]) == (tied[0][1] + 1, (0.1, 0.5, 1.0)[tied[0][0]])
        assert last["auc"] == tests[-1]
        assert mean["auc"] == pytest.approx(np.mean(tests))
        assert mean["epoch"] == pytest.approx(np.mean([e + 1 for _, e in tied]))
        assert first["train_auc"] == auc(*tied[0], split.train)
        assert first["n_ties"] == mean["n_ties"] == len(tied)
        assert first["tie_gap"] == pytest.approx(max(tests) - min(tests))
        assert first["validation_auc"] == best
        final = max(auc(m, 5, split.validation) for m in range(3))
        assert got["trials"]["final"][fold]["validation_auc"] == final
        assert got["trials"]["final"][fold]["epoch"] == 6
        for trial in (first, last, mean):
            positive = np.array(trial["positive"]) == 1
            assert np.mean(np.array(trial["placements"])[positive]) == pytest.approx(trial["auc"])


def plan_of(model: Any, bags: Bags, **more: Any) -> list[jobs.SeedJob]:
    return jobs.plan([model], bags, title="bags", digest=None, **{"protocol": "zhu2023", **more})


def test_a_score_that_is_no_number_is_an_error_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    stacked = pytest.importorskip("milfast.training.stacked")

    class Astray:
        scores = np.zeros((15, 4, 60), dtype=np.float32)

    Astray.scores[7, 2, 11] = np.nan
    monkeypatch.setattr(stacked, "fit_stacked", lambda *_, **__: Astray)
    bags = made()
    [job] = plan_of("MIDAM-att", bags, seeds=1, epochs=4)
    with pytest.raises(ValueError, match=r"scores bag 11 with nan \(fold 3, margin 0\.5, epoch 3\)") as caught:
        jobs.run_job(job, bags)
    assert "while evaluating MIDAM-att on bags by zhu2023, seed 1" in caught.value.__notes__


def test_models_without_epochs_are_fitted_to_each_training_part() -> None:
    bags = made()
    assert bags.labels is not None
    [zhu] = mf.protocol.run(["LR"], bags, random_state=4)
    for number, row in enumerate(zhu.aucs):
        for auc, split in zip(
            row, held_out(bags.labels, seed=4, number=number, folds=5, stratified=False), strict=True
        ):
            model = mf.models.get("LR")().fit(bags[split.train])
            assert auc == mf.auc(model.decision_function(bags[split.test]), bags.labels[split.test])
    assert (zhu.ties, zhu.n_candidates, zhu.selection) == (None, 1, "nothing to choose")
    assert zhu.auc.estimate == pytest.approx(zhu.aucs.mean())
    [sound] = mf.protocol.run(["LR"], bags, protocol="sound", random_state=4)
    assert sound.auc == mean_interval(sound.aucs.ravel(), test_train_ratio=1 / 4, bounds=(0, 1))
    assert sound.pooled is not None
    assert (sound.pooled.n_pos, sound.pooled.n_neg) == (27, 33)
    assert sound.over_bags.estimate == pytest.approx(sound.aucs.mean())


@pytest.mark.parametrize("protocol", list(jobs.PROTOCOLS))
def test_the_same_seed_the_same_result_in_any_number_of_processes(protocol: str) -> None:
    bags = made()
    first, second, other = (
        mf.protocol.run(["NSK"], bags, protocol=protocol, random_state=seed, n_jobs=n)[0].details() | {"seconds": 0}
        for seed, n in ((1, 1), (1, 2), (2, 1))
    )
    assert first == second
    assert first["trial_auc"] != other["trial_auc"]
    json.dumps(first, allow_nan=False)


def test_a_model_without_all_of_its_seeds_is_left_out() -> None:
    bags = made()
    planned = plan_of("LR", bags, seeds=3)
    pairs = [(jobs.describe(job), jobs.run_job(job, bags)) for job in planned]
    assert len(combine(pairs)) == 1
    assert combine(pairs[:2]) == []
    with pytest.raises(ValueError, match="ties must be one of"):
        combine(pairs, ties="best")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"protocol": "zhu"}, "protocol must be zhu2023 or sound; got 'zhu'"),
        ({"scale": "large"}, "scale must be fast or paper; got 'large'"),
        ({"selection": "best"}, "selection must be last or inner; got 'best'"),
        ({"folds": 1}, "folds must be an integer of at least 2; got 1"),
        ({"seeds": 0}, "seeds must be an integer of at least 1; got 0"),
        ({"inner": 1}, "inner must be an integer of at least 2; got 1"),
        ({"epochs": 0}, "epochs must be an integer of at least 1; got 0"),
        ({"margins": []}, "margins must be different numbers, at least one"),
        ({"margins": [0.5, 0.5]}, "margins must be different numbers, at least one"),
        ({"margins": [0.5, -1]}, "margins must be finite positive numbers; got -1"),
        ({"level": 95}, "level must lie strictly between 0 and 1; got 95"),
        (
            {"settings": {"epochs": 3}},
            "epochs is no setting of a model here.* give epochs=, on the command line --epochs",
        ),
        ({"selection": "inner"}, "selection is of the sound protocol"),
        ({"settings": {"margin": 3}}, "margin is no setting of a model here.* give margins="),
        ({"ties": "best"}, "ties must be one of first, last, mean, final; got 'best'"),
    ],
)
def test_wrong_options_are_named(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mf.protocol.run(["CE" if "settings" in more else "LR"], made(), **more)


def test_labels_and_classes_are_looked_at_before_anything_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "run_job", lambda *_: pytest.fail("fitted"))
    with pytest.raises(ValueError, match="bags carry no labels"):
        mf.protocol.run(["LR"], Bags([[1.0]], [0, 1]))
    few = made(40, 2)
    with pytest.raises(ValueError, match="all of one class"):
        mf.protocol.run(["LR"], few)
    with pytest.raises(ValueError, match="the smaller class has 2 bags"):
        mf.protocol.run(["LR"], few, protocol="sound")


def test_baselines_stand_beside() -> None:
    assert jobs.with_baselines(["CE", "NSK"]) == (["CE", "NSK", "LR"], ["LR"])
    for model in jobs.STACKED:
        assert jobs.with_baselines([model])[1] == ["NSK", "LR"]


# ---------------------------------------------------------------- the command line


@pytest.fixture
def bags_csv(tmp_path: Path) -> str:
    bags = made()
    assert bags.labels is not None
    rows = np.column_stack((bags.bag_index, bags.labels[bags.bag_index], bags.instances))
    path = tmp_path / "bags.csv"
    np.savetxt(path, rows, delimiter=",", header="bag_id,label,f1,f2,f3", comments="", fmt=["%d", "%d"] + ["%.9g"] * 3)
    return str(path)


def rows_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_both_protocols_go_through_a_study_and_are_resumed(
    bags_csv: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", "NSK", "LR", "--data", bags_csv, "--scale", "paper", "--jobs", "1", "--format", "json"]
    assert cli.main(command) == 0
    direct = rows_of(capsys)
    assert [(row["model"], row["protocol"]) for row in direct] == [
        (model, protocol) for protocol in ("zhu2023", "sound") for model in ("NSK", "LR")
    ]
    study = str(tmp_path / "p.db")
    assert cli.main([*command, "--out", study]) == 0
    stored = rows_of(capsys)
    assert [row | {"seconds": 0} for row in stored] == [row | {"seconds": 0} for row in direct]
    assert cli.main([*command, "--out", study]) == 0
    captured = capsys.readouterr()
    assert "12 of 12 jobs are done already" in captured.err
    assert cli.main(["show", study, "--format", "json"]) == 0
    assert rows_of(capsys) == stored
    assert cli.main(["show", study, "--format", "markdown", "--model", "LR"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("| LR |") == 2
    assert "NSK" not in shown
    assert cli.main(["show", study]) == 0
    shown = capsys.readouterr().out
    assert "Student's t over the seeds, as the folds of a seed share one test set" in shown
    assert "Nadeau & Bengio" in shown


def test_options_of_a_protocol_need_one(bags_csv: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in (
        ["--ties", "last"],
        ["--epochs", "3"],
        ["--stratified"],
        ["--selection", "inner"],
        ["--margins", "1"],
    ):
        assert cli.main(["evaluate", "NSK", "--data", bags_csv, *option]) == 2
        assert f"{option[0]} belongs to a protocol: add --protocol or --scale" in capsys.readouterr().err
    for option, message in (
        (["--protocol", "zhu2023", "--selection", "inner"], "--selection inner is of the sound protocol"),
        (["--protocol", "sound", "--inner", "2"], "--inner counts the folds of --selection inner"),
    ):
        assert cli.main(["evaluate", "NSK", "--data", bags_csv, *option]) == 2
        assert message in capsys.readouterr().err


# ---------------------------------------------------------------- models that are trained many at a time


STACKED = pytest.mark.parametrize("model", list(jobs.STACKED))


@STACKED
@pytest.mark.parametrize(("protocol", "selection"), [("zhu2023", "last"), ("sound", "last"), ("sound", "inner")])
def test_stacked_models_go_the_whole_way(model: str, protocol: str, selection: str) -> None:
    pytest.importorskip("torch")
    bags = made()
    results = mf.protocol.run(
        [model], bags, protocol=protocol, selection=selection, scale="fast", seeds=2, epochs=5, margins=(0.5, 1.0)
    )
    assert [result.model for result in results] == [model, "NSK", "LR"]
    result = results[0]
    assert result.aucs.shape == (2, 5)
    assert np.isfinite(result.aucs).all()
    assert ((result.epochs >= 1) & (result.epochs <= 5)).all()
    margins = (0.5, 1.0) if model != "CE" else ()
    if protocol == "sound" and selection == "last":
        assert (result.ties, result.n_candidates) == (None, 1)
        assert (result.epochs == 5).all()
        margins = (1.0,) if margins else ()
    else:
        assert result.ties == "first"
        assert result.n_candidates == 5 * max(1, len(margins))
        assert (result.n_ties >= 1).all()
        assert not np.isnan(result.validation_aucs).any()
    assert set(result.margins[~np.isnan(result.margins)]) <= set(margins)
    assert np.isnan(result.margins).all() == (model == "CE")


def test_objects_with_settings_are_trained_at_once_too() -> None:
    pytest.importorskip("torch")
    kind = mf.models.get("CE")
    results = mf.protocol.run([kind(pooling="max"), kind, "CE"], made(), scale="fast", seeds=1, epochs=3, margins=[1.0])
    assert [result.model for result in results] == ["CE", "CE", "CE", "NSK", "LR"]
    assert [result.n_candidates for result in results] == [3, 3, 3, 1, 1]
    assert all(result.auc == result.over_bags for result in results)  # one seed shows no spread
    assert_array_equal(results[1].aucs, results[2].aucs)
    assert not np.array_equal(results[0].aucs, results[1].aucs)


def test_settings_that_would_do_nothing_are_refused() -> None:
    pytest.importorskip("torch")
    few = {"scale": "fast", "seeds": 1, "epochs": 2}
    named = [r.model for r in mf.protocol.run(["CE"], made(), settings={"pooling": "max"}, **few)]  # type: ignore[arg-type]
    assert named == ["CE (pooling=max)", "NSK", "LR"]
    with pytest.raises(ValueError, match=r"patience is of no use here: CE \(patience=3\) is trained with many others"):
        mf.protocol.run(["CE"], made(), settings={"patience": 3})
    smx = mf.models.get("MIDAM-smx")
    for wrong, message in (
        ({"epochs": 7}, "epochs is no setting of a model here, .* give epochs="),
        ({"margin": 0.3}, "margin is no setting of a model here, .* give margins="),
        ({"standardize": False}, "standardize is no setting of a model here, .* give standardize=$"),
        ({"patience": 3}, "patience is of no use here: MIDAM-smx is trained with many others"),
    ):
        with pytest.raises(ValueError, match=message):
            mf.protocol.run([smx(**wrong)], made())
    [result, *_] = mf.protocol.run(smx(random_state=3, tau=0.5), made(), **few)  # type: ignore[arg-type]
    assert result.model == "MIDAM-smx"


def test_epochs_are_a_setting_of_networks_that_are_fitted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    trained = []

    def look(model: Any, bags: Bags, style: Any) -> None:
        model.fit(bags)
        trained.append(len(model.loss_curve_))

    monkeypatch.setattr(jobs, "fit", look)
    [result] = mf.protocol.run("ABMIL", made(), settings={"epochs": 2}, seeds=1, folds=2)
    assert result.model == "ABMIL (epochs=2)"
    assert trained == [2, 2]


def test_no_clipping_is_no_clipping(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from milfast.training import stacked

    train, seen = stacked.fit_stacked, []

    @functools.wraps(train)
    def look(*arguments: Any, **settings: Any) -> Any:
        seen.append(settings["clip_value"])
        return train(*arguments, **settings)

    monkeypatch.setattr(stacked, "fit_stacked", look)
    kind = mf.models.get("AUC-M")
    mf.protocol.run([kind(clip_value=None), kind, "CE"], made(), scale="fast", seeds=1, epochs=1)
    assert seen == [np.inf, 1.0, np.inf]


def test_lazy_bags_are_read_into_memory_once_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    bags, read = made(), []
    lazy = LazyBags(list(bags), bags.labels)
    monkeypatch.setattr(LazyBags, "to_bags", lambda self: read.append(1) or bags)
    [of_lazy], [of_all] = (mf.protocol.run("LR", data, seeds=2) for data in (lazy, bags))
    assert len(read) == 2
    assert_array_equal(of_lazy.aucs, of_all.aucs)


def test_the_table_gets_its_baselines_and_says_so(bags_csv: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    command = ["evaluate", "CE", "--data", bags_csv, "--protocol", "zhu2023", "--epochs", "3", "--jobs", "1"]
    assert cli.main(command) == 0
    captured = capsys.readouterr()
    assert "added, as the table must have them beside: NSK, LR" in captured.err
    assert "taken: of the best epochs the earliest" in captured.out
    assert all(name in captured.out for name in ("CE", "NSK", "LR"))


# ---------------------------------------------------------------- records


def test_a_record_keeps_every_trial_and_every_rule(
    bags_csv: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    study = tmp_path / "p.db"
    cli.main(["evaluate", "MIDAM-att", "--data", bags_csv, "--scale", "fast", "--jobs", "1", "--out", str(study)])
    names = (
        *("zhu2023", "seeds", "sound", "pooled", "training", "ties", "rules", "differences"),
        *("verdict", "trained", "conditions"),
    )
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- midam: {name} -->\n<!-- end -->\n" for name in names))
    capsys.readouterr()
    assert record.main([str(study), "--json", str(tmp_path / "r.json"), "--page", str(page)]) == 0
    recorded = json.loads((tmp_path / "r.json").read_text())
    assert len(recorded["cells"]) == 6
    assert recorded["unfinished"] == 0
    assert page.read_text() == filled(names, recorded)
    [midam] = [c for c in recorded["cells"] if (c["model"], c["protocol"]) == ("MIDAM-att", "zhu2023")]
    assert set(midam["by_rule"]) == set(TIES)
    assert midam["by_rule"]["first"]["auc"] == midam["auc"] == pytest.approx(np.mean(midam["trial_auc"]))
    tests = record.differences(recorded)
    assert [test.names for _, test in tests] == [("MIDAM-att", "NSK"), ("MIDAM-att", "LR")]
    sound = {c["model"]: c["trial_auc"] for c in recorded["cells"] if c["protocol"] == "sound"}
    assert tests[0][1].log_p == corrected_ttest(sound["MIDAM-att"], sound["NSK"]).log_p


def test_verdicts_name_what_is_beyond_chance() -> None:
    rng = np.random.default_rng(0)
    base = 0.8 + 0.02 * rng.normal(size=(3, 5))
    cells = [
        {"model": model, "data": data, "protocol": "sound", "trial_auc": (base + gap).tolist()}
        for data, gaps in (("musk1", (0.1, 0.0)), ("fox", (0.002, 0.0)))
        for model, gap in zip(("MIDAM-att", "CE"), gaps, strict=True)
    ]
    noise = iter(0.004 * rng.normal(size=(4, 3, 5)))
    for cell in cells:
        cell["trial_auc"] = (np.array(cell["trial_auc"]) + next(noise)).tolist()
    assert record._verdict({"cells": cells}) == (
        "- **MIDAM-att** has a higher mean AUC than CE on 2 of 2 sets; beyond chance: above it on musk1."
    )
    swapped = [{**c, "model": {"MIDAM-att": "CE", "CE": "MIDAM-att"}[c["model"]]} for c in cells]
    assert record._verdict({"cells": swapped}) == (
        "- **MIDAM-att** has a higher mean AUC than CE on 0 of 2 sets; beyond chance: below it on musk1."
    )


def filled(names: Any, recorded: dict[str, Any]) -> str:
    made = record.tables(recorded)
    return "".join(f"<!-- midam: {name} -->\n{made[name]}\n<!-- end -->\n" for name in names)


def test_an_unfinished_study_is_no_record(bags_csv: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from milfast.study import Study

    bags = mf.datasets.read_csv(bags_csv)
    with Study(tmp_path / "p.db") as study:
        planned = jobs.plan(["LR"], bags, title=bags_csv, digest=None, protocol="sound")
        study.add(jobs.FUNCTION, [jobs.describe(job) for job in planned])
    assert record.main([str(tmp_path / "p.db")]) == 1
    assert "3 jobs are not done" in capsys.readouterr().err


def test_fifteen_trials_are_taken_for_more_than_they_are() -> None:
    """The table of docs/benchmarks.md, on fewer simulations."""
    cell = coverage.Cell(200, 100, 1.2)
    found = coverage.simulate(cell, simulations=200, seed=1)
    plain, seeds, bags = (found["held"][name] / 200 for name in coverage.METHODS)
    assert plain < 0.7
    assert seeds > 0.93
    assert 0.89 < bags < 0.99
    assert found["width"]["t over seeds"] > found["width"]["over bags"] > found["width"]["t over 15 trials"]


def test_the_page_shows_what_was_simulated() -> None:
    recorded = json.loads((ROOT / "docs" / "results" / "protocol-coverage.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert records.fill(page, "midam", {"coverage": coverage.table(recorded["cells"])}) == page


def test_pairs_of_seeds_share_few_test_bags() -> None:
    """What Student's t over the seeds rests on: their test sets are drawn apart from each other."""
    labels = labels_of(200, 100)
    tests = [set(held_out(labels, seed=0, number=i, folds=5, stratified=False)[0].test.tolist()) for i in range(40)]
    shared = np.mean([len(a & b) for a, b in combinations(tests, 2)])
    assert 1.6 < shared < 2.4  # 20 * 20 / 200


RECORD = ROOT / "docs" / "results" / "midam-benchmarks.json"


@pytest.fixture
def recorded() -> dict[str, Any]:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    if not RECORD.exists() and "<!-- midam: zhu2023 -->\n<!-- end -->" in page:
        pytest.skip("the benchmarks were not recorded yet, and the page shows none")
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def test_the_page_shows_the_record(recorded: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert records.fill(page, "midam", record.tables(recorded)) == page


def test_the_record_is_complete_and_midam_has_learned(recorded: dict[str, Any]) -> None:
    assert recorded["unfinished"] == 0
    cells = {(c["model"], c["data"], c["protocol"]): c for c in recorded["cells"]}
    data = ("musk1", "musk2", "elephant", "fox", "tiger")
    models = ("MIDAM-smx", "MIDAM-att", "CE", "AUC-M", "NSK", "LR")
    assert set(cells) == {(m, d, p) for m in models for d in data for p in jobs.PROTOCOLS}
    for cell in cells.values():
        trials = np.array(cell["trial_auc"], dtype=float)
        assert trials.shape == (3, 5)
        assert np.isfinite(trials).all()
        assert cell["auc"] == pytest.approx(trials.mean())
        assert cell["auc_low"] <= cell["auc"] <= cell["auc_high"]
    for model in ("MIDAM-smx", "MIDAM-att"):
        for name in ("musk1", "musk2"):
            assert cells[model, name, "sound"]["train_auc"] > 0.95
