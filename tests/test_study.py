"""Studies: what is stored, what is run, and what survives a kill."""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib.externals.loky import get_reusable_executor
from sklearn.base import BaseEstimator

from milfast.checks import jobs as check_jobs
from milfast.checks import runner
from milfast.checks.adapters import Subject
from milfast.study import Store, Study, StudyError
from milfast.study.store import canonical, job_id

if TYPE_CHECKING:
    from pathlib import Path

SQUARE = "milfast.study.example:square"

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of job functions, also for processes that are started later."""
    get_reusable_executor().shutdown()  # workers of earlier tests do not know the folder
    (tmp_path / "job_functions.py").write_text(
        """
import os, time

def log(spec):
    with open(spec["log"], "a") as stream:
        stream.write(f"{spec['n']}\\n")
    time.sleep(spec.get("seconds", 0))
    return {"square": spec["n"] ** 2}

def fail_on_odd(spec):
    if spec["n"] % 2 and not os.path.exists(spec["mended"]):
        raise RuntimeError(f"{spec['n']} is odd")
    return {"half": spec["n"] // 2}

class Wide:
    def fit(self, bags):
        return self
    def decision_function(self, bags):
        return [float(bag.max()) for bag in bags]

class Deadly(Wide):
    def fit(self, bags):
        os._exit(3)

def quit(spec):
    raise SystemExit(0)
"""
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    return "job_functions"


# ---------------------------------------------------------------- the file


@given(st.dictionaries(st.text(max_size=8), plain, max_size=4))
def test_the_id_of_a_job_does_not_depend_on_the_order_of_its_keys(spec: dict[str, Any]) -> None:
    assert job_id(spec) == job_id(dict(reversed(spec.items()))) == job_id(json.loads(canonical(spec)))


def test_other_values_give_other_ids() -> None:
    specs = [{"n": 1}, {"n": 1.5}, {"n": "1"}, {"n": True}, {"n": None}, {"m": 1}, {"n": [1]}, {}]
    assert len({job_id(spec) for spec in specs}) == len(specs)


def test_what_json_lacks_is_refused_before_anything_is_stored(path: Path) -> None:
    with Study(path) as study:
        for bad in (float("nan"), {1, 2}, np.float64("inf")):
            with pytest.raises((ValueError, TypeError)):
                study.add(SQUARE, [{"n": 1}, {"n": bad}])
        assert study.records() == []


def test_a_wrong_function_is_found_out_at_once(path: Path) -> None:
    with Study(path) as study:
        with pytest.raises(ImportError):
            study.add("no.such.module:f", [{}])
        with pytest.raises(AttributeError):
            study.add("milfast.study.example:cube", [{}])


def test_a_model_without_a_name_is_refused(path: Path) -> None:
    with Study(path) as study, pytest.raises(ValueError, match=r"handed over as an object: .*'package\.module:Name'"):
        study.add(SQUARE, [{"model": None}])


def test_adding_a_job_again_changes_nothing(path: Path) -> None:
    with Study(path) as study:
        first = study.add(SQUARE, [{"n": 2}, {"n": 3}])
        study.run(n_jobs=1)
        assert study.add(SQUARE, [{"n": 3}, {"n": 4}])[0] == first[1]
        assert [(r.spec["n"], r.state) for r in study.records()] == [(2, "done"), (3, "done"), (4, "todo")]


def test_a_second_writer_is_refused_and_a_reader_is_not(path: Path) -> None:
    with Study(path) as study:
        study.add(SQUARE, [{"n": 2}])
        with pytest.raises(StudyError, match=f"is being written by process {os.getpid()}"):
            Study(path)
        with Store(path, write=False) as reader:
            assert reader.counts()["todo"] == 1
    Study(path).close()  # the lock is gone with the study


def test_files_that_are_no_study_are_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database " * 100)
    with pytest.raises(StudyError, match="not a study file"):
        Study(text)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    before = other.read_bytes()
    with pytest.raises(StudyError, match="is not a study"):
        Study(other)
    assert other.read_bytes() == before
    with pytest.raises(StudyError, match="there is no study"):
        Store(tmp_path / "absent.db", write=False)
    with pytest.raises(StudyError, match="cannot be written"):
        Study(tmp_path / "absent" / "s.db")


def test_a_file_of_a_later_layout_is_refused(path: Path) -> None:
    Study(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StudyError, match="layout 99"):
        Study(path)


def test_a_full_disk_keeps_what_was_done(path: Path) -> None:
    with Study(path) as study:
        study.add(SQUARE, [{"n": n} for n in range(400)])
        pages = study.store._connection.execute("PRAGMA page_count").fetchone()[0]
        study.store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")  # what sqlite calls a full disk
        with pytest.raises(StudyError, match="the disk is full; what was finished is kept"):
            study.run(n_jobs=1)
    with Study(path) as study:
        kept = study.store.counts()["done"]
        assert 0 < kept < 400
        assert study.run(n_jobs=1)["done"] == 400
        assert all(r.result == {"square": r.spec["n"] ** 2} for r in study.records())


# ---------------------------------------------------------------- running


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_job_is_done_once(path: Path, tmp_path: Path, functions: str, n_jobs: int) -> None:
    log = tmp_path / "log"
    seen = []
    with Study(path) as study:
        ids = study.add(f"{functions}:log", [{"n": n, "log": str(log)} for n in range(30)])
        counts = study.run(
            ids, n_jobs=n_jobs, callback=lambda done, total, record: seen.append((done, total, record.state))
        )
        again = study.run(ids, n_jobs=n_jobs)
        records = study.records(ids)
    assert counts == again == {"todo": 0, "running": 0, "done": 30, "failed": 0}
    assert sorted(map(int, log.read_text().split())) == list(range(30))
    assert [r.result for r in records] == [{"square": n**2} for n in range(30)]
    assert seen == [(i, 30, "done") for i in range(1, 31)]
    provenance = records[0].provenance
    assert provenance is not None
    assert provenance["versions"]["numpy"] == np.__version__


def test_a_job_that_raises_takes_no_other_along_and_is_tried_again(path: Path, tmp_path: Path, functions: str) -> None:
    specs = [{"n": n, "mended": str(tmp_path / "mended")} for n in range(6)]
    with Study(path) as study:
        ids = study.add(f"{functions}:fail_on_odd", specs)
        assert study.run(ids, n_jobs=1) == {"todo": 0, "running": 0, "done": 3, "failed": 3}
        failed = [r for r in study.records(ids) if r.state == "failed"]
        assert all(r.result is None and "is odd" in (r.error or "") and "Traceback" in (r.error or "") for r in failed)
        assert study.run(ids, n_jobs=1, retry_failed=False)["failed"] == 3
        (tmp_path / "mended").touch()
        assert study.run(ids, n_jobs=1)["done"] == 6
        assert all(r.error is None for r in study.records(ids))


def test_a_job_that_ends_the_program_is_a_failed_job(path: Path, functions: str) -> None:
    with Study(path) as study:
        study.add(f"{functions}:quit", [{"n": 1}])
        assert study.run(n_jobs=1)["failed"] == 1
        assert (study.records()[0].error or "").endswith("the job ended the program: sys.exit(0)")


def test_a_model_that_kills_its_workers_loses_its_own_jobs_alone(path: Path, functions: str) -> None:
    jobs = runner.plan(
        [f"{functions}:Deadly", f"{functions}:Wide"],
        checks="presence",
        recipe="strict",
        scale="fast",
        n_train=10,
        n_test=20,
        n_runs=3,
        level=0.95,
        n_features=4,
        pad_to=None,
        direction=None,
        random_state=0,
    )
    seen: list[tuple[int, int, str]] = []
    with Study(path) as study:
        # those of the culprit are mixed with the others
        ids = study.add(check_jobs.FUNCTION, [check_jobs.describe(job) for job in sorted(jobs, key=lambda j: j.run)])
        for again in (False, True):
            seen.clear()
            counts = study.run(ids, n_jobs=2, callback=lambda *now: seen.append((now[0], now[1], now[2].state)))
            assert counts == {"todo": 0, "running": 0, "done": 3, "failed": 3}
            n = 3 if again else 6
            assert [(done, total) for done, total, _ in seen] == [(i, n) for i in range(1, n + 1)]
            for record in study.records(ids):
                culprit = record.spec["model"].endswith("Deadly")
                assert record.state == ("failed" if culprit else "done")
                assert ("a worker process died while this job was under way" in (record.error or "")) == culprit
                assert (record.result is None) == culprit


def test_unknown_ways_to_run_are_refused(path: Path) -> None:
    with Study(path) as study:
        study.add(SQUARE, [{"n": 1}])
        with pytest.raises(ValueError, match="backend must be processes or dask"):
            study.run(backend="slurm")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="needs scheduler="):
            study.run(backend="dask")


RUN = """
import sys
from milfast.study import Study
with Study(sys.argv[1]) as study:
    print("open", flush=True)
    study.run(n_jobs=int(sys.argv[2]))
"""


def killed(path: Path, n_jobs: int, seconds: float) -> None:
    """Run the study in a process group of its own and kill the group after a while."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(path), str(n_jobs)], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


@pytest.mark.skipif(sys.platform == "win32", reason="process groups are a POSIX thing")
def test_twenty_kills_lose_only_jobs_in_flight(path: Path, tmp_path: Path, functions: str) -> None:
    log = tmp_path / "log"
    n = 400
    with Study(path) as study:
        study.add(f"{functions}:log", [{"n": i, "log": str(log), "seconds": 0.01} for i in range(n)])
    rng = np.random.default_rng(0)
    done = 0
    for kill in range(20):
        killed(path, 1, rng.uniform(0, 0.25))
        with Store(path, write=False) as store:
            (verdict,) = store._connection.execute("PRAGMA integrity_check").fetchone()
            assert verdict == "ok"
            now = store.counts()["done"]
            assert now >= done, f"kill {kill} undid finished jobs"
            done = now
    with Study(path) as study:
        assert study.run(n_jobs=1)["done"] == n
        assert all(r.result == {"square": r.spec["n"] ** 2} for r in study.records())
    executed = np.bincount(list(map(int, log.read_text().split())), minlength=n)
    assert executed.min() == 1
    assert executed.sum() - n <= 20  # one worker, so at most the job in flight is done again after a kill


@pytest.mark.skipif(sys.platform == "win32", reason="process groups are a POSIX thing")
def test_a_study_on_two_workers_survives_a_kill(path: Path, tmp_path: Path, functions: str) -> None:
    log = tmp_path / "log"
    with Study(path) as study:
        study.add(f"{functions}:log", [{"n": i, "log": str(log), "seconds": 0.02} for i in range(150)])
    killed(path, 2, 1.5)
    with Study(path) as study:
        assert study.store.counts()["running"] == 0
        assert study.run(n_jobs=2)["done"] == 150
    assert len(set(log.read_text().split())) == 150


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a POSIX thing")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_soon_and_leaves_a_study_to_go_on_with(
    path: Path, tmp_path: Path, functions: str, n_jobs: int
) -> None:
    with Study(path) as study:
        study.add(f"{functions}:log", [{"n": i, "log": str(tmp_path / "log"), "seconds": 0.3} for i in range(200)])
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(path), str(n_jobs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(2.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert b"KeyboardInterrupt" in errors
    with Study(path) as study:
        counts = study.store.counts()
        assert counts["done"] >= 1
        assert counts["todo"] == 200 - counts["done"]


# ---------------------------------------------------------------- several files


def test_merging_counts_a_job_once_and_prefers_what_is_done(tmp_path: Path, functions: str) -> None:
    specs = [{"n": n, "mended": str(tmp_path / "mended")} for n in range(4)]
    with Study(tmp_path / "a.db") as study:
        study.run(study.add(f"{functions}:fail_on_odd", specs), n_jobs=1)  # 1 and 3 fail
    (tmp_path / "mended").touch()
    with Study(tmp_path / "b.db") as study:
        study.run(study.add(f"{functions}:fail_on_odd", specs[1:2]), n_jobs=1)
        study.add(f"{functions}:fail_on_odd", [{**specs[0], "n": 9}])
    with Store(tmp_path / "all.db") as target:
        for name, taken in (("a.db", 2), ("b.db", 1), ("a.db", 0)):
            with Store(tmp_path / name, write=False) as source:
                assert target.absorb(source) == taken
        states = {record.spec["n"]: record.state for record in target.records()}
    assert states == {0: "done", 1: "done", 2: "done", 3: "failed", 9: "todo"}


# ---------------------------------------------------------------- checks as jobs


def test_a_check_through_a_study_is_the_check(path: Path) -> None:
    jobs = runner.plan(
        ["NSK", "mi-SVM"],
        checks=["presence", "permutation", "bag-size", "correlated"],
        recipe="all",
        scale="fast",
        n_train=30,
        n_test=100,
        n_runs=2,
        level=0.9,
        n_features=4,
        pad_to=6,
        direction=3,
        random_state=5,
    )
    direct = runner.results(jobs, level=0.9)
    with Study(path) as study:
        ids = study.add(check_jobs.FUNCTION, [check_jobs.describe(job) for job in jobs])
        study.run(ids, n_jobs=2)
        pairs = [(r.spec, r.result) for r in study.records(ids) if r.result is not None]
        stored = check_jobs.combine(pairs, level=0.9)

    def facts(result: Any) -> dict[str, Any]:
        return {name: value for name, value in result.to_dict().items() if name != "seconds"}

    assert [facts(result) for result in stored] == [facts(result) for result in direct]
    # two models; presence and its law in three spellings, the others in one
    assert len(direct) == 2 * (2 * 3 + 2)
    assert len(pairs) == len(jobs) == 2 * (3 + 2) * 2  # one fit serves a check and its law
    # the level is not part of what is kept
    assert [facts(r) for r in check_jobs.combine(pairs, level=0.5)] == [
        facts(r) for r in runner.results(jobs, level=0.5)
    ]


# ---------------------------------------------------------------- Dask


def test_a_dask_worker_that_dies_loses_no_job_and_doubles_none(path: Path, tmp_path: Path, functions: str) -> None:
    distributed = pytest.importorskip("distributed")
    log = tmp_path / "log"
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        Study(path) as study,
    ):
        victim = next(iter(cluster.workers.values())).pid
        ids = study.add(f"{functions}:log", [{"n": n, "log": str(log), "seconds": 0.05} for n in range(60)])
        seen: list[int] = []

        def kill_once(done: int, _total: int, record: Any) -> None:
            seen.append(record.spec["n"])
            if done == 10:
                os.kill(victim, signal.SIGKILL)

        counts = study.run(ids, backend="dask", scheduler=cluster.scheduler_address, callback=kill_once)
        assert counts == {"todo": 0, "running": 0, "done": 60, "failed": 0}
        assert sorted(seen) == list(range(60))  # each result came in once
        assert [r.result for r in study.records(ids)] == [{"square": n**2} for n in range(60)]


def test_a_changed_model_of_ones_own_is_checked_again(tmp_path: Path) -> None:
    class Estimator(BaseEstimator):  # type: ignore[misc]
        def __init__(self, sign: object = 1) -> None:
            self.sign = sign

        def fit(self, bags: object) -> Estimator:
            return self

        def decision_function(self, bags: object) -> object:
            return None

    assert Subject.of(Estimator(np.int64(-1))).parameters() == {"sign": -1}
    assert Subject.of(Estimator(math.inf)).parameters() == {"sign": "inf"}
    assert Subject.of(Estimator(Estimator())).parameters()["sign__sign"] == 1
    file = tmp_path / "of_ones_own.py"
    sources = set()
    for sign in ("", "-"):
        file.write_text(
            "class Model:\n    def fit(self, bags): return self\n"
            f"    def decision_function(self, bags): return {sign}bags.sizes\n"
        )
        command = "from milfast.checks.adapters import Subject; print(Subject.of('of_ones_own:Model').source)"
        done = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
        sources.add(done.stdout)
    assert len(sources) == 2
    assert Subject.of("NSK").source is None
    # what only puts together what others wrote is the user's too
    for smoothing in (1, 2):
        (tmp_path / "put_together.py").write_text(
            "from sklearn.naive_bayes import BernoulliNB\n"
            f"def make():\n    return BernoulliNB(alpha={smoothing})\nmodel = BernoulliNB(alpha={smoothing})\n"
        )
        for name in ("make", "model"):
            command = f"from milfast.checks.adapters import Subject; print(Subject.of('put_together:{name}').source)"
            done = subprocess.run(
                [sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
            )
            sources.add(done.stdout)
    assert len(sources) == 4


def test_a_fit_is_the_same_job_in_whatever_order_its_checks_are_asked_for() -> None:
    def specifications(*checks: str) -> list[dict[str, Any]]:
        more: dict[str, Any] = {"recipe": "paper", "scale": "fast", "n_train": 20, "n_test": 50, "n_runs": 2}
        more |= {"level": 0.95, "n_features": 4, "pad_to": None, "direction": None, "random_state": 0}
        return [check_jobs.describe(job) for job in runner.plan(["NSK"], checks=checks, **more)]

    asked = ("permutation", "presence", "monotonicity")
    assert specifications(*asked) == specifications(*reversed(asked))
