"""Runs the jobs of a study: on the processors of this machine, or on a Dask cluster."""

from __future__ import annotations

import importlib
import platform
import subprocess
import threading
import time
import traceback
from collections import deque
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from joblib.externals.loky.process_executor import TerminatedWorkerError

from milfast import _core
from milfast.study.store import Record, Store, job_id
from milfast.workers import stream

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

Outcome: TypeAlias = tuple[str, "dict[str, Any] | None", "str | None", float, "dict[str, Any]"]
Backend: TypeAlias = Literal["processes", "dask"]

#: How the error of a job begins that was under way when a worker process died.
DIED = "a worker process died while this job was under way"


class Study:
    """A grid of jobs in one file: run it, stop it, run it again.

    A job is a specification of plain values with a key ``function``, "package.module:name" of a function that takes the
    specification and returns a dictionary of plain values. The id of a job is the hash of its specification, so adding
    the same job twice changes nothing, and running a study again does what is left.

    Parameters
    ----------
    path : path
        The file; made when absent.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from milfast.study import Study
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Study(pathlib.Path(folder.name) / "squares.db") as study:
    ...     ids = study.add("milfast.study.example:square", [{"n": n} for n in range(3)])
    ...     counts = study.run(n_jobs=1)
    ...     results = [record.result for record in study.records(ids)]
    >>> counts["done"], results
    (3, [{'square': 0}, {'square': 1}, {'square': 4}])
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.store = Store(path)

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, function: str, specs: Iterable[dict[str, Any]]) -> list[str]:
        """Add jobs.

        Parameters
        ----------
        function : str
            "package.module:name"; looked up at once, so that a wrong name is not found out hours later.
        specs : iterable of dict
            What `function` is called with; the version of milfast is added, as results may depend on it.

        Returns
        -------
        list of str
            Ids, in the order of `specs`.

        Raises
        ------
        ValueError, TypeError
            When a specification has values that JSON lacks.
        ImportError, AttributeError
            When there is no such function.
        """
        _function(function)
        specs = list(specs)
        for spec in specs:
            if spec.get("model", "") is None:
                raise ValueError(
                    "a model was handed over as an object: a study needs a name, 'mi-Net' or 'package.module:Name', "
                    "because it is run, and run again, by processes that do not have the object"
                )
        full = [{**spec, "function": function, "milfast": version("milfast")} for spec in specs]
        self.store.add(full)
        return [job_id(spec) for spec in full]

    def records(self, ids: Iterable[str] | None = None) -> list[Record]:
        """Jobs and their results, in the order in which they were added.

        Parameters
        ----------
        ids : iterable of str, optional
            Only these.

        Returns
        -------
        list of Record
        """
        return list(self.store.records(ids))

    def run(
        self,
        ids: Iterable[str] | None = None,
        *,
        n_jobs: int = -1,
        backend: Backend = "processes",
        scheduler: str | None = None,
        retry_failed: bool = True,
        callback: Callable[[int, int, Record], object] | None = None,
    ) -> dict[str, int]:
        """Do the jobs that are not done.

        A job that raises is written down as failed, with its traceback, and the others go on. When a worker process
        dies, the jobs that were under way are written down as failed too; they are tried again last, one at a time, so
        that only the one that kills its process stays so. Whatever ends the call, finished jobs stay and the rest can
        be done by the same call later.

        Parameters
        ----------
        ids : iterable of str, optional
            Only these jobs; all by default.
        n_jobs : int
            Worker processes; -1 for one per processor. Each gets its share of the processors for native threads.
        backend : {"processes", "dask"}
            Where: on this machine, or on a Dask cluster (needs the extra ``dask``).
        scheduler : str, optional
            Address of the cluster, "tcp://...".
        retry_failed : bool
            Whether to try failed jobs again.
        callback : callable, optional
            ``callback(done, total, record)`` after each job, done or failed.

        Returns
        -------
        dict
            Number of the jobs in each state.

        Raises
        ------
        ValueError
            When `backend` is unknown or the scheduler's address is missing.
        StudyError
            When the file cannot be written any more.
        """
        wanted = None if ids is None else list(ids)
        suspects: set[str] = set()
        if retry_failed:
            failed = list(self.store.records(wanted, state="failed"))
            suspects = {record.id for record in failed if (record.error or "").startswith(DIED)}
            self.store.retry(record.id for record in failed)
        todo = list(self.store.records(wanted, state="todo"))
        if backend == "processes":
            outcomes = _on_processes(self.store, todo, n_jobs, suspects)
        elif backend == "dask":
            if scheduler is None:
                raise ValueError("backend='dask' needs scheduler='tcp://...', the address of a running Dask scheduler")
            outcomes = _on_dask(self.store, todo, scheduler)
        else:
            raise ValueError(f"backend must be processes or dask; got {backend!r}")
        for done, (job, result, error, seconds, provenance) in enumerate(outcomes, start=1):
            self.store.finish(job, result=result, error=error, seconds=seconds, provenance=provenance)
            if callback is not None:
                [record] = self.store.records([job])
                callback(done, len(todo), record)
        counts = {"todo": 0, "running": 0, "done": 0, "failed": 0}
        for record in self.store.records(wanted):
            counts[record.state] += 1
        return counts


@cache
def _function(path: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    module, _, name = path.partition(":")
    function: Callable[[dict[str, Any]], dict[str, Any]] = getattr(importlib.import_module(module), name)
    return function


def _perform(record: Record) -> Outcome:
    """One job, in a worker. Errors are data: they must not take the other jobs along."""
    start = time.perf_counter()
    try:
        result, error = _function(record.spec["function"])(record.spec), None
    except SystemExit as stop:
        result, error = None, f"{traceback.format_exc()}the job ended the program: sys.exit({stop.code!r})"
    except Exception:
        result, error = None, traceback.format_exc()
    return record.id, result, error, time.perf_counter() - start, provenance()


def _on_processes(store: Store, todo: list[Record], n_jobs: int, suspects: set[str]) -> Iterator[Outcome]:
    """Outcomes of jobs in worker processes; those that one died of, or may have died of, come last and alone."""
    left = deque(record for record in todo if record.id not in suspects)
    last = [record for record in todo if record.id in suspects]
    while left:
        batch = _Batch(store, left)
        try:
            for outcome in stream(_perform, batch, n_jobs=n_jobs):
                batch.under_way.pop(outcome[0])
                yield outcome
        except TerminatedWorkerError:
            under_way = batch.end()
            for record in under_way:
                store.finish(record.id, result=None, error=DIED, seconds=0.0, provenance=provenance())
            last += under_way
    for record in last:
        store.start([record.id])
        try:
            # with one process the job would be done in this one; the second has nothing to do
            yield from stream(_perform, [record], n_jobs=2)
        except TerminatedWorkerError as error:
            yield record.id, None, f"{DIED}, and no other was\n{error}", 0.0, provenance()


class _Batch:
    """Hands out the jobs that are left, and knows which are under way."""

    def __init__(self, store: Store, left: deque[Record]) -> None:
        self.under_way: dict[str, Record] = {}
        self._store = store
        self._left = left
        self._ended = False
        self._turn = threading.Lock()  # joblib asks for the next job from threads of its own

    def __iter__(self) -> Iterator[Record]:
        while True:
            with self._turn:
                if self._ended or not self._left:
                    return
                record = self._left.popleft()
                self.under_way[record.id] = record
                self._store.start([record.id])
            yield record

    def end(self) -> list[Record]:
        """Hand out no more; the jobs that are under way."""
        with self._turn:
            self._ended = True
            return list(self.under_way.values())


def _on_dask(store: Store, todo: list[Record], scheduler: str) -> Iterator[Outcome]:
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ImportError("backend='dask' needs Dask: pip install 'milfast[dask]'") from None
    with Client(scheduler) as client:
        store.start(record.id for record in todo)
        # a key per job: a worker that dies takes no job along, and none is done twice
        futures = [client.submit(_perform, record, key=f"milfast-{record.id}", pure=False) for record in todo]
        for future in as_completed(futures):
            yield future.result()


@cache
def provenance() -> dict[str, Any]:
    """Where a result came from: versions, processor and commit.

    Returns
    -------
    dict
    """
    versions = {}
    for distribution in ("milfast", "numpy", "scipy", "scikit-learn", "torch"):
        try:
            versions[distribution] = version(distribution)
        except PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "simd": _core.simd_level(),
        "commit": _commit(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """Commit of the current directory's checkout, where it is one."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
