"""Studies that add runs until their verdicts are settled, without erring more often for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from milfast.checks.verdict import CheckResult

    class Planned(Protocol):
        """A job of a study, as far as the order of doing is concerned."""

        @property
        def run(self) -> int:
            """Number of the run, from 0."""

        @property
        def looks(self) -> int:
            """How often the study looks at its verdicts."""


JobT = TypeVar("JobT", bound="Planned")
GaveT = TypeVar("GaveT")

#: Runs before the first look, and by how much their number grows until the next.
FIRST = 5
GROWTH = 1.5


def schedule(max_runs: int) -> list[int]:
    """After how many runs a sequential study looks at its verdicts.

    Parameters
    ----------
    max_runs : int

    Returns
    -------
    list of int
        Ascending; the last is `max_runs`.

    Examples
    --------
    >>> from milfast.checks.sequential import schedule
    >>> schedule(40)
    [5, 8, 12, 18, 27, 40]
    """
    looks: list[int] = []
    runs = FIRST
    while runs < max_runs:
        looks.append(runs)
        runs = round(runs * GROWTH)
    return [*looks, max_runs]


def until_decided(
    jobs: Sequence[JobT],
    perform: Callable[[Sequence[JobT]], Sequence[GaveT]],
    combined: Callable[[Sequence[tuple[JobT, GaveT]]], list[CheckResult]],
) -> list[CheckResult]:
    """Do jobs look by look, leaving out those whose verdicts are settled.

    Jobs of a plain study have one look and are all done at once. In a sequential study the error that a verdict may
    make is shared equally among the looks (Bonferroni's inequality), so that the chance of a wrong verdict at any of
    them is not above what the level says, whatever the runs have in common.

    Parameters
    ----------
    jobs : sequence
        Jobs with `run` and `looks`.
    perform : callable
        Does jobs and returns what each gave.
    combined : callable
        Results from jobs with what they gave.

    Returns
    -------
    list of CheckResult
        In the order of the jobs.
    """
    if all(job.looks == 1 for job in jobs):
        return combined(list(zip(jobs, perform(jobs), strict=True)))
    groups = _groups(jobs)
    done: dict[int, list[tuple[JobT, GaveT]]] = {group: [] for group in range(len(groups))}
    going = set(done)
    looks = schedule(max(job.run for job in jobs) + 1)
    for before, look in zip([0, *looks[:-1]], looks, strict=True):
        batch = [(group, job) for group in sorted(going) for job in groups[group] if before <= job.run < look]
        for (group, job), gave in zip(batch, perform([job for _, job in batch]), strict=True):
            done[group].append((job, gave))
        going = {group for group in going if not all(result.settled for result in combined(done[group]))}
        if not going:
            break
    return combined([pair for group in range(len(groups)) for pair in done[group]])


def _groups(jobs: Sequence[JobT]) -> list[list[JobT]]:
    """Jobs that differ in their run alone; they come one after the other, from run 0 on."""
    groups: list[list[JobT]] = []
    for job in jobs:
        if job.run == 0:
            groups.append([])
        groups[-1].append(job)
    return groups
