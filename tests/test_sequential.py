"""Sequential studies: when they look, how often they err, when they stop, and that a file keeps them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_models import Chance, NoPoison, facts
from scipy import stats

import milfast as mf
from milfast import cli
from milfast.checks import CheckResult, runner
from milfast.checks import jobs as check_jobs
from milfast.checks.estimate import Estimate
from milfast.checks.sequential import FIRST, GROWTH, schedule, until_decided
from milfast.checks.verdict import Run
from milfast.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


@given(st.integers(2, 5000))
def test_looks_grow_from_the_first_to_the_last_run(max_runs: int) -> None:
    looks = schedule(max_runs)
    assert looks[-1] == max_runs
    assert looks[0] == min(FIRST, max_runs)
    for before, after in pairwise(looks):
        assert before < after
        assert after == max_runs or after == round(before * GROWTH)
    assert len(looks) < 20


# ---------------------------------------------------------------- studies made of nothing but figures


@dataclass(frozen=True)
class Planned:
    group: int
    run: int
    looks: int


def plan(groups: int, max_runs: int) -> list[Planned]:
    looks = len(schedule(max_runs))
    return [Planned(group, run, looks) for group in range(groups) for run in range(max_runs)]


def gave(group: int, run: int, test: float, fresh: float = 0.9) -> Run:
    def estimate(value: float) -> Estimate:
        value = min(max(value, 0.001), 0.999)
        return Estimate(value, value * (1 - value) / 100, 200, 100, 100)

    return Run(
        model=f"m{group}",
        check="presence",
        recipe="strict",
        claims=None,
        train=estimate(0.9),
        fresh=estimate(fresh),
        test=estimate(test),
        strata={},
        worst=None,
        worst_auc=None,
        oracle_auc=1.0,
        size_auc=0.5,
        size_correlation=0.0,
        ceilings={},
        n_train=10,
        n_test=200,
        seed=0,
        run=run,
        seconds=0.0,
    )


def study(
    jobs: Sequence[Planned], draw: Callable[[Planned], Run], level: float = 0.95
) -> tuple[list[CheckResult], list[list[Planned]]]:
    batches: list[list[Planned]] = []

    def perform(batch: Sequence[Planned]) -> list[Run]:
        batches.append(list(batch))
        return [draw(job) for job in batch]

    def combined(done: Sequence[tuple[Planned, Run]]) -> list[CheckResult]:
        return runner.combine([(str(job.group), job.looks, run) for job, run in done], level=level)

    return until_decided(jobs, perform, combined), batches


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_looking_often_does_not_make_wrong_verdicts_more_likely_than_the_level_says(level: float) -> None:
    """A model whose shifted AUC is one half: both a pass and a fail are wrong."""
    generator = np.random.default_rng(0)
    n = 600
    wrong, looked = 0, 0
    # runs that vary more than their bags do, so that the margin of 0.02 hardly ever ends a study
    results, batches = study(plan(n, 27), lambda job: gave(job.group, job.run, generator.normal(0.5, 0.2)), level)
    assert len(results) == n
    wrong = sum(result.verdict in ("pass", "fail") for result in results)
    looked = sum(result.n_runs > FIRST for result in results)
    assert looked > 0.9 * n  # the studies did go on, otherwise this would show nothing
    assert len(batches) == len(schedule(27))
    assert wrong <= stats.binom.ppf(0.999, n, 1 - level)


def test_the_same_looks_without_the_price_would_err_too_often() -> None:
    generator = np.random.default_rng(1)
    n = 300
    values = generator.normal(0.5, 0.2, size=(n, 27))
    wrong = 0
    for study_values in values:
        runs = [gave(0, i, v) for i, v in enumerate(study_values)]
        verdicts = [CheckResult.of(runs[:look], level=0.95).verdict for look in schedule(27)]
        wrong += any(verdict in ("pass", "fail") for verdict in verdicts)
    assert wrong > stats.binom.ppf(0.999, n, 0.05)


def test_a_clear_case_ends_early_and_an_open_one_goes_on() -> None:
    generator = np.random.default_rng(2)
    means = [0.6, 0.4, 0.5, 0.95]

    def draw(job: Planned) -> Run:
        return gave(job.group, job.run, generator.normal(means[job.group], 0.03 if job.group != 2 else 0.3))

    results, batches = study(plan(4, 40), draw)
    assert [r.verdict for r in results] == ["pass", "fail", "inconclusive", "pass"]
    assert [r.model for r in results] == ["m0", "m1", "m2", "m3"]
    assert results[3].n_runs == FIRST
    assert FIRST <= results[0].n_runs < 40
    assert results[2].n_runs == 40
    # no run is done twice or left out, and none of a group that is settled
    done = [job for batch in batches for job in batch]
    assert len(set(done)) == len(done) == sum(r.n_runs for r in results)
    for group, result in enumerate(results):
        assert sorted(job.run for job in done if job.group == group) == list(range(result.n_runs))
        assert result.n_runs in schedule(40)
    assert [max(job.run for job in batch) + 1 for batch in batches] == schedule(40)


def test_a_study_ends_when_next_to_nothing_keeps_its_verdict_open() -> None:
    results, batches = study(plan(1, 40), lambda job: precise(job, 0.5))
    assert (results[0].verdict, results[0].n_runs, len(batches)) == ("inconclusive", FIRST, 1)
    # nothing learned: upside down, or so close to chance that more runs are in vain
    results, _ = study(plan(1, 40), lambda job: gave(job.group, job.run, 0.9, fresh=0.2))
    assert (results[0].verdict, results[0].n_runs) == ("not-learned", FIRST)


def precise(job: Planned, value: float) -> Run:
    run = gave(job.group, job.run, value)
    many = Estimate(value, value * (1 - value) / 10**6, 2 * 10**6, 10**6, 10**6)
    return Run(**{**{name: getattr(run, name) for name in run.__dataclass_fields__}, "test": many})


def test_a_plain_study_does_all_its_runs_at_once() -> None:
    jobs = [Planned(group, run, 1) for group in range(2) for run in range(7)]
    results, batches = study(jobs, lambda job: gave(job.group, job.run, 0.9))
    assert batches == [jobs]
    assert [(r.n_runs, r.looks) for r in results] == [(7, 1), (7, 1)]


def test_every_look_has_its_share_of_the_error() -> None:
    results, _ = study(plan(1, 40), lambda job: gave(job.group, job.run, 0.9))
    assert results[0].looks == len(schedule(40)) == 6
    assert results[0].fresh_auc.level == pytest.approx(1 - 0.05 / 6)
    assert results[0].level == 0.95


# ---------------------------------------------------------------- checks

MORE: dict[str, Any] = {"recipe": "strict", "n_train": 20, "n_test": 100, "random_state": 0}


def test_checks_of_one_fit_go_on_until_all_of_them_are_settled() -> None:
    told: list[tuple[int, int]] = []
    results = mf.check_model(
        NoPoison(),
        checks=["presence", "permutation"],
        until_decided=True,
        max_runs=8,
        callback=lambda done, total, _run: told.append((done, total)),
        **MORE,
    )
    # presence is clear after five runs; that so few bags were permuted in vain does not show a law yet
    assert [r.verdict for r in results] == ["fail", "inconclusive"]
    assert {r.n_runs for r in results} == {8}
    assert mf.check_model(NoPoison(), checks="presence", until_decided=True, max_runs=8, **MORE)[0].n_runs == 5
    assert results[0].looks == 2
    assert [done for done, _ in told] == list(range(1, results[0].n_runs + 1))
    assert len({r.n_runs for r in results}) == 1


def test_the_runs_of_a_sequential_study_are_those_of_a_plain_one() -> None:
    sequential = mf.check_model(Chance(), checks="presence", until_decided=True, max_runs=8, **MORE)[0]
    plain = mf.check_model(Chance(), checks="presence", n_runs=sequential.n_runs, **MORE)[0]
    assert sequential.n_runs == 8
    assert [run.test for run in sequential.runs] == [run.test for run in plain.runs]
    assert sequential.fresh_auc.half_width > plain.fresh_auc.half_width
    assert (sequential.looks, plain.looks) == (2, 1)


def test_a_sequential_study_with_no_more_than_the_first_look_is_a_plain_one() -> None:
    sequential = mf.check_model(Chance(), checks="presence", until_decided=True, max_runs=5, **MORE)
    assert facts(sequential) == facts(mf.check_model(Chance(), checks="presence", n_runs=5, **MORE))


# ---------------------------------------------------------------- in a file

RULES = '''
import numpy as np

class Coin:
    """Knows nothing, so that its verdict stays open."""
    def __init__(self, random_state=0):
        self.random_state = random_state
    def fit(self, bags):
        self.generator = np.random.default_rng(self.random_state)
        return self
    def decision_function(self, bags):
        return self.generator.normal(size=len(bags))

class Clear:
    def fit(self, bags):
        return self
    def decision_function(self, bags):
        return np.array([bag.mean(axis=1).min() for bag in bags])
'''
MODELS = ["rules_for_sequential:Coin", "rules_for_sequential:Clear"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rules_for_sequential.py").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def jobs_of(max_runs: int | None) -> list[runner.Job]:
    return runner.plan(
        MODELS,
        checks=["presence"],
        recipe=["strict"],
        scale="fast",
        n_train=20,
        n_test=100,
        n_runs=5,
        level=0.95,
        n_features=16,
        pad_to=None,
        direction=None,
        random_state=0,
        max_runs=max_runs,
    )


def test_a_study_in_a_file_resumes_and_shows_what_it_would_have_shown_in_one_go(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["check", *MODELS, "--checks", "presence", "--recipe", "strict", "--train", "20", "--test", "100"]
    command += ["--until-decided", "--max-runs", "8", "--jobs", "1", "--exit-zero", "--format", "json"]

    def shown(*arguments: str) -> list[dict[str, Any]]:
        assert cli.main([*arguments]) == 0
        rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return [{**row, "seconds": 0} for row in rows]

    direct = shown(*command)
    assert [(row["model"], row["n_runs"], row["looks"]) for row in direct] == [("Coin", 8, 2), ("Clear", 5, 2)]
    assert shown(*command, "--out", "whole.db") == direct
    # a study that was ended in the middle of its first look, for one model
    with Study("part.db") as study:
        study.run(study.add(check_jobs.FUNCTION, [check_jobs.describe(job) for job in jobs_of(8)[:3]]), n_jobs=1)
        assert study.store.counts()["done"] == 3
    assert shown(*command, "--out", "part.db") == direct
    with Study("part.db") as study:
        # 8 runs of the open one, 5 of the settled one, and nothing was planned that was not needed
        assert study.store.counts() == {"todo": 0, "running": 0, "done": 13, "failed": 0}
    for file in ("whole.db", "part.db"):
        assert shown("show", file, "--format", "json") == direct
        assert shown(*command, "--out", file) == direct


def test_jobs_of_a_sequential_study_are_not_those_of_a_plain_one(folder: Path) -> None:
    with Study("both.db") as study:
        plain = study.add(check_jobs.FUNCTION, [check_jobs.describe(job) for job in jobs_of(None)])
        sequential = study.add(check_jobs.FUNCTION, [check_jobs.describe(job) for job in jobs_of(8)])
        other = study.add(check_jobs.FUNCTION, [check_jobs.describe(job) for job in jobs_of(40)])
    assert len({*plain, *sequential, *other}) == len(plain) + len(sequential) + len(other)


def test_results_of_plain_and_sequential_studies_in_one_file_are_not_thrown_together(folder: Path) -> None:
    with Study("both.db") as study:
        jobs = [*jobs_of(None)[5:], *jobs_of(8)[8:13]]  # of the model whose verdict is clear
        ids = study.add(check_jobs.FUNCTION, [check_jobs.describe(job) for job in jobs])
        study.run(ids, n_jobs=1)
        results = check_jobs.combine((r.spec, r.result) for r in study.records(ids) if r.result is not None)
    assert [(r.model, r.n_runs, r.looks) for r in results] == [("Clear", 5, 1), ("Clear", 5, 2)]


def test_a_model_that_raises_in_a_sequential_study_ends_its_own_jobs_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "rules_that_raise.py").write_text(
        "class Raises:\n"
        "    def fit(self, bags):\n"
        "        raise ValueError('no')\n"
        "    def predict(self, bags):\n"
        "        pass\n"
    )
    command = ["check", "rules_that_raise:Raises", MODELS[1], "--checks", "presence", "--train", "20", "--test", "100"]
    command += ["--until-decided", "--jobs", "1", "--format", "json", "--out", "s.db"]
    assert cli.main(command) == 2
    captured = capsys.readouterr()
    assert [(row["model"], row["n_runs"]) for row in json.loads(captured.out)] == [("Clear", 5)]
    assert "failed: rules_that_raise:Raises on presence" in captured.err
