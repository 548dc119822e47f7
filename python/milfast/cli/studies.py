"""Verbs that keep their results in a study file."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from milfast.report.terminal import progress

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterator

    from milfast.study import Record


def require_study(options: argparse.Namespace) -> None:
    """Refuse options that would do nothing because of one that is missing."""
    if options.scheduler is not None and options.backend != "dask":
        raise ValueError("--scheduler is the address of a Dask cluster: add --backend dask")
    if options.backend == "dask" and options.out is None:
        raise ValueError("--backend dask runs the jobs of a study: say with --out in which file it keeps them")


@contextmanager
def study(options: argparse.Namespace) -> Iterator[Callable[[str, list[dict[str, Any]]], list[Record]]]:
    """Open the study of ``--out``; gives a function that does the jobs that are not done and returns all records."""
    from milfast.study import Study

    seen: dict[str, Record] = {}
    with Study(options.out) as study:

        def through(function: str, specifications: list[dict[str, Any]]) -> list[Record]:
            ids = study.add(function, specifications)
            missing = sum(record.state != "done" for record in study.records(ids))
            if missing < len(ids):
                print(f"milfast: {len(ids) - missing} of {len(ids)} jobs are done already", file=sys.stderr)
            with progress("running", missing) as advance, redirect_stdout(sys.stderr):
                study.run(
                    ids,
                    n_jobs=options.jobs,
                    backend=options.backend,
                    scheduler=options.scheduler,
                    callback=lambda _done, _total, record: advance(_job_title(record.spec)),
                )
            found = {record.id: record for record in study.records(ids)}
            seen.update(found)
            # in the order of the jobs: the file has that in which they were added, perhaps by other commands
            return [found[i] for i in ids]

        yield through
    report_unfinished(seen.values())


def _job_title(specification: dict[str, Any]) -> str:
    by = f" by {specification['protocol']}" if "protocol" in specification else ""
    return f"{specification['model']} on {specification.get('check', specification.get('data'))}{by}"


def report_unfinished(records: Collection[Record]) -> None:
    """Say which jobs failed and why, those that failed alike in one line, and how many are left."""
    alike: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if record.state == "failed":
            key = _job_title(record.spec), re.sub(r"\b(run|replicate) \d+", "", record.failure)
            alike.setdefault(key, []).append(record.failure)
    for (title, _), messages in alike.items():
        more = f" (and {len(messages) - 1} more like this)" if len(messages) > 1 else ""
        print(f"milfast: failed: {title}: {messages[0]}{more}", file=sys.stderr)
    left = sum(record.state in ("todo", "running") for record in records)
    if left:
        print(f"milfast: {left} of {len(records)} jobs are still to be done", file=sys.stderr)
