"""Worker processes, each with its share of the processors."""

from __future__ import annotations

import operator
import os
import sys
import threading
import time
from contextlib import redirect_stdout
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from milfast import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")

#: The path of the workers that were asked for last, where there are any.
_started_with: list[tuple[str, ...]] = []


def stream(function: Callable[[T], R], items: Iterable[T], *, n_jobs: int) -> Iterator[R]:
    """Results in the order in which they are finished.

    Parameters
    ----------
    function : callable
        Called with each item; must be importable or picklable by value.
    items : iterable
        Asked for one after the other, a few ahead of the workers.
    n_jobs : int
        Processes; -1 for one per processor. With 1 everything happens in this process.

    Yields
    ------
    object
        ``function(item)``. An exception of one call ends the stream.

    Raises
    ------
    ValueError, TypeError
        As `number`.

    Examples
    --------
    >>> from milfast.workers import stream
    >>> list(stream(abs, [-1, 2], n_jobs=1))
    [1, 2]
    """
    import joblib

    n_workers = number(n_jobs)
    if n_workers == 1:
        yield from map(function, items)
        return
    threads = max(1, joblib.cpu_count() // n_workers)
    # joblib caps the threads of BLAS and OpenMP libraries in its workers, but does not know ours
    with joblib.parallel_config(backend="loky", inner_max_num_threads=threads):
        parallel = joblib.Parallel(n_jobs=n_workers, return_as="generator_unordered", batch_size=1)
    # what is printed goes where it would go without workers: a caller whose output is a table has redirected it
    aside = sys.stdout is sys.stderr
    _renew(tuple(sys.path))
    caller = _Caller(os.getpid(), threads, aside)
    yield from parallel(joblib.delayed(_call)(function, item, caller) for item in items)


def number(n_jobs: int | None) -> int:
    """Number of processes.

    Parameters
    ----------
    n_jobs : int or None
        -1 for one per processor; None leaves it to `joblib.parallel_config`, or is 1.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        When `n_jobs` is 0.
    TypeError
        When it is no integer.

    Examples
    --------
    >>> from milfast.workers import number
    >>> number(2)
    2
    """
    import joblib

    if n_jobs is not None:
        if isinstance(n_jobs, bool):
            raise TypeError(f"n_jobs must be an integer, the number of processes; got {n_jobs!r}")
        try:
            n_jobs = operator.index(n_jobs)
        except TypeError:
            raise TypeError(f"n_jobs must be an integer, the number of processes; got {n_jobs!r}") from None
        if n_jobs == 0:
            raise ValueError("n_jobs must be a number of processes, or -1 for one per processor; got 0")
    return int(joblib.effective_n_jobs(n_jobs))


def _renew(path: tuple[str, ...]) -> None:
    """End workers that were started with another path: joblib uses them again, and they would not find new modules."""
    from joblib.externals.loky import get_reusable_executor

    if _started_with not in ([], [path]):
        get_reusable_executor().shutdown(wait=True)
    _started_with[:] = [path]


class _Caller(NamedTuple):
    """What a worker has to know of the process that it works for."""

    pid: int
    threads: int
    aside: bool


def _call(function: Callable[[T], R], item: T, caller: _Caller) -> R:
    _end_with(caller.pid)
    _core.set_num_threads(caller.threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(caller.threads)
    with redirect_stdout(sys.stderr if caller.aside else sys.stdout):
        return function(item)


@cache
def _end_with(parent: int) -> None:
    """End this process when its parent is gone: one that was killed cannot stop its workers in the middle of a job."""
    if os.getppid() != parent:  # not started by the process that handed out the work
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="milfast-watch-parent").start()
