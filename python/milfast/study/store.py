"""One SQLite file that remembers the jobs of a study and what came out of them."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sqlite3
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

State: TypeAlias = Literal["todo", "running", "done", "failed"]

#: Marks the file as ours, so that another program's database is not written into ("milf" in ASCII).
APPLICATION = 0x6D696C66
#: So many jobs at most are asked for by name, which is what every SQLite takes.
FEW = 900
#: Layout of the tables; files of another layout are refused.
LAYOUT = 1

TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    spec TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('todo', 'running', 'done', 'failed')),
    result TEXT,
    error TEXT,
    seconds REAL,
    provenance TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_state ON jobs (state, position);
"""


class StudyError(OSError):
    """A study file cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Record:
    """One job of a study.

    Attributes
    ----------
    id : str
        Hash of the specification.
    spec : dict
        Everything that determines the result, as plain values.
    state : {"todo", "running", "done", "failed"}
    result : dict or None
        What the job returned, when done.
    error : str or None
        Its traceback, when failed.
    seconds : float or None
        How long it took.
    provenance : dict or None
        Versions, processor and commit it ran with.
    """

    id: str
    spec: dict[str, Any]
    state: State
    result: dict[str, Any] | None
    error: str | None
    seconds: float | None
    provenance: dict[str, Any] | None

    @property
    def failure(self) -> str:
        """What the job raised, with its notes, in one line; empty where it did not fail."""
        lines = (self.error or "").strip().splitlines()
        # what stands below the last frame: the exception and its notes
        below = list(itertools.takewhile(lambda line: not line.startswith(" "), reversed(lines)))
        return "; ".join(reversed(below))


def canonical(spec: dict[str, Any]) -> str:
    """The one JSON text of a specification: sorted keys, no spaces, no NaN.

    Parameters
    ----------
    spec : dict
        Of plain values.

    Returns
    -------
    str

    Raises
    ------
    ValueError, TypeError
        When a value has no place in JSON.

    Examples
    --------
    >>> from milfast.study.store import canonical
    >>> canonical({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return json.dumps(spec, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def job_id(spec: dict[str, Any]) -> str:
    """SHA-256 of the canonical specification: the same job has the same id on every machine.

    Parameters
    ----------
    spec : dict

    Returns
    -------
    str
        32 hexadecimal digits.

    Examples
    --------
    >>> from milfast.study.store import job_id
    >>> job_id({"b": 1, "a": 2}) == job_id({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(canonical(spec).encode()).hexdigest()[:32]


class Store:
    """The file of a study.

    One process at a time may write; others may read meanwhile. A process that dies leaves every finished job in
    place: a job is done when its row says so, and rows are written in transactions that reach the disk.

    Parameters
    ----------
    path : path
        Made when absent.
    write : bool
        False to look only.

    Raises
    ------
    StudyError
        When the file is another program's, of another layout, read-only, or being written by another process.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from milfast.study.store import Store
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store(pathlib.Path(folder.name) / "s.db") as store:
    ...     new = store.add([{"n": 1}, {"n": 2}, {"n": 1}])
    ...     counts = store.counts()
    >>> new, counts
    (2, {'todo': 2, 'running': 0, 'done': 0, 'failed': 0})
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, write: bool = True) -> None:
        self.path = Path(path)
        self._lock: IO[str] | None = None
        self._turn = threading.RLock()  # joblib asks for the next job from threads of its own
        if not write and not self.path.exists():
            raise StudyError(f"there is no study {self.path}")
        if write:
            self._lock = _lock(self.path)
        try:
            self._connection = self._open(write)
        except BaseException:
            self._unlock()
            raise

    def _open(self, write: bool) -> sqlite3.Connection:
        with _explained(self.path):
            if write:
                connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            else:
                connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
            try:
                (application,) = connection.execute("PRAGMA application_id").fetchone()
                (layout,) = connection.execute("PRAGMA user_version").fetchone()
                tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                if application != APPLICATION and (tables or application or not write):
                    raise StudyError(f"{self.path} is not a study: choose another name for --out")
                if application == APPLICATION and layout != LAYOUT:
                    raise StudyError(f"{self.path} has layout {layout}, this version of milfast reads {LAYOUT}")
                if write:
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.execute("PRAGMA synchronous = FULL")
                    connection.execute("BEGIN IMMEDIATE")
                    for statement in TABLES.split(";"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {LAYOUT}")
                    # whoever had these jobs in hand is gone, or the lock would not be ours
                    connection.execute("UPDATE jobs SET state = 'todo' WHERE state = 'running'")
                    connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
        return connection

    def close(self) -> None:
        """Close the file, and let others write."""
        self._connection.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, specs: Iterable[dict[str, Any]]) -> int:
        """Add jobs that are not there yet; those that are keep their state.

        Parameters
        ----------
        specs : iterable of dict

        Returns
        -------
        int
            How many are new.
        """
        with self._transaction():
            (last,) = self._connection.execute("SELECT coalesce(max(position), -1) FROM jobs").fetchone()
            new = 0
            for spec in specs:
                cursor = self._connection.execute(
                    "INSERT INTO jobs (id, position, spec, state) VALUES (?, ?, ?, 'todo') ON CONFLICT DO NOTHING",
                    (job_id(spec), last + 1 + new, canonical(spec)),
                )
                new += cursor.rowcount
        return new

    def retry(self, ids: Iterable[str]) -> None:
        """Make failed jobs jobs to do.

        Parameters
        ----------
        ids : iterable of str
        """
        with self._transaction():
            self._connection.executemany(
                "UPDATE jobs SET state = 'todo', error = NULL WHERE state = 'failed' AND id = ?", [(i,) for i in ids]
            )

    def start(self, ids: Iterable[str]) -> None:
        """Mark jobs as running.

        Parameters
        ----------
        ids : iterable of str
        """
        with self._turn:
            # results have to survive a power cut, but not this: a job that was under way is done again anyway
            self._connection.execute("PRAGMA synchronous = NORMAL")
            try:
                with self._transaction():
                    self._connection.executemany("UPDATE jobs SET state = 'running' WHERE id = ?", [(i,) for i in ids])
            finally:
                self._connection.execute("PRAGMA synchronous = FULL")

    def finish(
        self,
        id: str,  # noqa: A002  # the field's own name
        *,
        result: dict[str, Any] | None,
        error: str | None,
        seconds: float,
        provenance: dict[str, Any],
    ) -> None:
        """Write down what came out of a job.

        Parameters
        ----------
        id : str
        result : dict or None
            None for a failed job.
        error : str or None
            Traceback of a failed job.
        seconds : float
        provenance : dict
        """
        with self._transaction():
            self._connection.execute(
                "UPDATE jobs SET state = ?, result = ?, error = ?, seconds = ?, provenance = ? WHERE id = ?",
                (
                    "failed" if result is None else "done",
                    None if result is None else canonical(result),
                    error,
                    seconds,
                    canonical(provenance),
                    id,
                ),
            )

    def absorb(self, other: Store) -> int:
        """Take over the jobs of another study; what is done here stays.

        Parameters
        ----------
        other : Store

        Returns
        -------
        int
            How many results came in.
        """
        taken = 0
        with self._transaction():
            (last,) = self._connection.execute("SELECT coalesce(max(position), -1) FROM jobs").fetchone()
            for record in other.records():
                state = "todo" if record.state == "running" else record.state
                cursor = self._connection.execute(
                    "INSERT INTO jobs (id, position, spec, state, result, error, seconds, provenance) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state, "
                    "result = excluded.result, error = excluded.error, seconds = excluded.seconds, "
                    "provenance = excluded.provenance "
                    "WHERE jobs.state != 'done' AND (excluded.state = 'done' "
                    "OR jobs.state = 'todo' AND excluded.state = 'failed')",
                    (
                        record.id,
                        (last := last + 1),
                        canonical(record.spec),
                        state,
                        None if record.result is None else canonical(record.result),
                        record.error,
                        record.seconds,
                        None if record.provenance is None else canonical(record.provenance),
                    ),
                )
                taken += cursor.rowcount if state == "done" else 0
        return taken

    def records(self, ids: Iterable[str] | None = None, *, state: State | None = None) -> Iterator[Record]:
        """Jobs in the order in which they were added.

        Parameters
        ----------
        ids : iterable of str, optional
            Only these.
        state : {"todo", "running", "done", "failed"}, optional
            Only those in this state.

        Yields
        ------
        Record
        """
        wanted = None if ids is None else set(ids)
        few = sorted(wanted) if wanted is not None and len(wanted) <= FEW else []
        # one job of thousands is looked up, as all of them with their results may not fit into memory to be sorted
        among = f"AND id IN ({', '.join('?' * len(few))}) " if few else ""
        with _explained(self.path):
            rows = self._connection.execute(
                "SELECT id, spec, state, result, error, seconds, provenance FROM jobs "
                f"WHERE (? IS NULL OR state = ?) {among}ORDER BY position",
                (state, state, *few),
            ).fetchall()
        for row in rows:
            if wanted is None or row[0] in wanted:
                yield Record(
                    id=row[0],
                    spec=json.loads(row[1]),
                    state=row[2],
                    result=None if row[3] is None else json.loads(row[3]),
                    error=row[4],
                    seconds=row[5],
                    provenance=None if row[6] is None else json.loads(row[6]),
                )

    def counts(self) -> dict[State, int]:
        """Number of jobs in each state.

        Returns
        -------
        dict
        """
        with _explained(self.path):
            found = dict(self._connection.execute("SELECT state, count(*) FROM jobs GROUP BY state"))
        states: tuple[State, ...] = ("todo", "running", "done", "failed")
        return {state: found.get(state, 0) for state in states}

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._turn, _explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # sqlite has rolled back by itself when the disk is full
                    self._connection.execute("ROLLBACK")
                raise


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn errors of sqlite into a sentence that helps."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "full" in text:
            advice = "the disk is full; what was finished is kept: make room and run the same command again"
        elif "readonly" in text or "unable to open" in text:
            advice = "it cannot be written: check the folder and the permissions, or choose another --out"
        elif "not a database" in text or "malformed" in text:
            advice = "it is not a study file, or damaged: choose another"
        elif "locked" in text:
            advice = "another program holds it"
        else:
            advice = "it cannot be used"
        raise StudyError(f"{path}: {advice} ({text})") from error


def _lock(path: Path) -> IO[str]:
    """Hold a lock file beside the study; the system lets go of it when the process ends, however it ends."""
    name = path.with_name(path.name + ".lock")
    try:
        handle = open(name, "a+", encoding="utf-8")  # noqa: SIM115  # open as long as the study is
    except OSError as error:
        raise StudyError(
            f"{path}: it cannot be written: check the folder and the permissions, or choose another --out ({error})"
        ) from error
    try:
        if sys.platform == "win32":
            import msvcrt

            handle.seek(1 << 20)  # a byte nobody reads, so that the holder's name stays readable
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.seek(0)
        holder = handle.read().strip() or "another process"
        handle.close()
        raise StudyError(f"{path} is being written by {holder}: wait for it, or use another file and merge") from None
    handle.seek(0)
    handle.truncate()
    handle.write(f"process {os.getpid()}")
    handle.flush()
    return handle
