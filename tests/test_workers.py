"""Worker processes: what becomes of them when the process that started them is killed."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from joblib.externals.loky import get_reusable_executor

from milfast.workers import stream

PROGRAM = """
import os, sys, time
from milfast.workers import stream

def work(folder):
    open(os.path.join(folder, str(os.getpid())), "w").close()
    time.sleep(120)

for _ in stream(work, [sys.argv[1]] * 2, n_jobs=2):
    pass
"""


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True])
def test_what_is_no_number_of_processes_is_refused(n_jobs: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^n_jobs must be .*; got {n_jobs!r}$"):
        list(stream(abs, [1], n_jobs=n_jobs))


def test_workers_print_where_their_caller_does(capfd: pytest.CaptureFixture[str]) -> None:
    get_reusable_executor().shutdown()  # workers of earlier tests have the output of these
    list(stream(print, ["to stdout"] * 3, n_jobs=2))
    with redirect_stdout(sys.stderr):
        list(stream(print, ["to stderr"] * 3, n_jobs=2))
    out, err = capfd.readouterr()
    assert (out.count("to stdout"), out.count("to stderr")) == (3, 0)
    assert (err.count("to stdout"), err.count("to stderr")) == (0, 3)


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_workers_end_when_their_parent_is_killed_in_the_middle_of_a_job(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)])
    workers: list[int] = []
    try:
        until = time.monotonic() + 60
        while len(workers) < 2 and time.monotonic() < until:
            time.sleep(0.1)
            workers = [int(path.name) for path in tmp_path.iterdir()]
        assert len(workers) == 2
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        until = time.monotonic() + 30
        while any(map(alive, workers)) and time.monotonic() < until:
            time.sleep(0.1)
        assert not any(map(alive, workers))
    finally:
        parent.kill()
        for pid in filter(alive, workers):
            os.kill(pid, signal.SIGKILL)


def named(module: str) -> int:
    """A number from a module that is looked up by name, as the functions of a study are."""
    return int(importlib.import_module(module).NUMBER)


def test_workers_that_are_used_again_know_modules_that_came_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sorted(stream(abs, [-1, 2], n_jobs=2)) == [1, 2]
    (tmp_path / "module_that_came_later.py").write_text("NUMBER = 7\n\nclass Object:\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(stream(named, ["module_that_came_later"] * 2, n_jobs=2)) == [7, 7]
    objects = [importlib.import_module("module_that_came_later").Object()] * 2
    assert list(stream(type, objects, n_jobs=2)) == [type(objects[0])] * 2
