"""What all benches share: races against the best peer, thresholds, the table at the end.

Times are compared within one process and one run, in turns: a ratio means the same on a fast and on a busy machine.
Kernels and peers run on one thread each, but for the two threads of test_bench_threads.py.
"""

from __future__ import annotations

import gc
import json
import platform
import time
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import milfast as mf
from milfast._core import simd_level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THRESHOLDS: dict[str, float] = tomllib.loads((Path(__file__).parent / "thresholds.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Result:
    """One race: seconds a call, the ratio it must reach, and the seconds that no program on this machine undercuts."""

    name: str
    ours: float
    peer_name: str
    peer: float
    threshold: float
    floor: float | None = None

    @property
    def ratio(self) -> float:
        return self.peer / self.ours


@dataclass(frozen=True)
class Floor:
    """Seconds that no program undercuts: as many as some calls of `unit` take, and some more."""

    unit: Callable[[], object]
    calls: float
    more: float = 0.0


results: list[Result] = []


def seconds(call: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def calls_for(call: Callable[[], object], enough: float) -> int:
    """How many calls in a row take about `enough` seconds; the call is warm afterwards."""
    call()
    times = 1
    while times < 1_000_000 and (taken := seconds(call, times) * times) < enough:
        times = int(times * min(10.0, 1.2 * enough / max(taken, 1e-9))) + 1
    return times


class Race:
    """Time ours and the peer in turns, keep the fastest of each, and demand the ratio of thresholds.toml."""

    def __call__(
        self,
        name: str,
        ours: Callable[[], object],
        peer_name: str,
        peer: Callable[[], object],
        *,
        rounds: int = 7,
        enough: float = 0.05,
        repeats: int = 1,
        peer_scale: float = 1.0,
        floor: Floor | float | None = None,
    ) -> None:
        """`peer_scale` is how many times the work of the peer's call ours does.

        With more than one of `repeats` a turn keeps the fastest of as many: the first call after those of the other one
        finds none of its data in the caches, and its memory given back to the system.

        The unit of a `Floor` is timed in the same turns, for a busy machine slows it as well.
        """
        unit_of_floor = floor.unit if isinstance(floor, Floor) else lambda: None
        ours_times, peer_times = calls_for(ours, enough), calls_for(peer, enough)
        gc.collect()
        gc.disable()
        try:
            turns = []
            for _ in range(rounds):
                unit = min(seconds(unit_of_floor, 1) for _ in range(5))
                of_ours = min(seconds(ours, ours_times) for _ in range(repeats))
                turns.append((unit, of_ours, min(seconds(peer, peer_times) for _ in range(repeats))))
        finally:
            gc.enable()
        unit, of_ours, of_peer = (min(column) for column in zip(*turns, strict=True))
        if isinstance(floor, Floor):
            floor = unit * floor.calls + floor.more
        self.record(name, of_ours, peer_name, of_peer * peer_scale, floor)

    @staticmethod
    def record(name: str, ours: float, peer_name: str, peer: float, floor: float | None = None) -> None:
        result = Result(name, ours, peer_name, peer, THRESHOLDS[name], floor)
        results.append(result)
        assert result.ratio >= result.threshold, (
            f"{name}: {peer_name} takes {result.ratio:.3g} times as long as milfast, less than {result.threshold} times"
        )


@pytest.fixture
def race() -> Race:
    return Race()


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = mf.get_num_threads()
    mf.set_num_threads(1)
    with threadpool_limits(1):
        yield
    mf.set_num_threads(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bench-json", metavar="PATH", type=Path, help="write the times of the benches as JSON")


def short(duration: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if duration >= size:
            return f"{duration / size:.3g} {unit}"
    return f"{duration * 1e9:.3g} ns"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not results:
        return
    rows = [("bench", "milfast", "peer", "", "ratio", "at least", "times the floor")]
    for r in results:
        ratio = f"{r.ratio:.3g}" + ("" if r.ratio >= r.threshold else " !")
        floor = "" if r.floor is None else f"{r.ours / r.floor:.3g}"
        rows.append((r.name, short(r.ours), short(r.peer), r.peer_name, ratio, f"{r.threshold:g}", floor))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    terminalreporter.section(f"one thread (threads_*: two), {simd_level()}")
    for row in rows:
        terminalreporter.write_line(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    path = config.getoption("--bench-json")
    if path is not None:
        machine = {"simd": simd_level(), "machine": platform.machine(), "system": platform.system()}
        versions = {"python": platform.python_version(), "numpy": np.__version__, "milfast": mf.__version__}
        report = {**machine, **versions, "benches": [{**asdict(r), "ratio": r.ratio} for r in results]}
        path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
