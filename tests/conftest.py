"""What all tests share: where the big golden files and data sets are, and how hard hypothesis tries."""

from __future__ import annotations

import json
import os

# Tensors in tests are small: on a busy machine several threads wait for each other far longer than they work. Before
# the first import of numpy or torch.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

settings.register_profile("fast", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("slow", parent=settings.get_profile("fast"), max_examples=2000)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fast")
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests out that are marked as slow, unless slow ones are asked for."""
    if PROFILE != "slow":
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="slow: set HYPOTHESIS_PROFILE=slow"))


def golden_path(name: str) -> Path:
    """A file of right answers from other libraries; the test is skipped where it is absent."""
    path = Path(os.environ.get("MILFAST_GOLDEN", SHARED / "golden")) / name
    if not path.exists():
        pytest.skip(f"{name} is absent: set MILFAST_GOLDEN to the folder that holds it")
    return path


@cache
def golden_cases(method: str) -> list[dict[str, Any]]:
    """Cases of one method in uncertainty.json, with its strings for NaN and infinities made numbers."""
    cases: list[dict[str, Any]] = json.loads(golden_path("uncertainty.json").read_text())["cases"]
    return [_numbers(case) for case in cases if case["method"] == method]


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return (
        {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.get(value, value)
        if isinstance(value, str)
        else value
    )


@pytest.fixture
def mil_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real data sets, made known to milfast; the test is skipped where it is absent."""
    path = Path(os.environ.get("MILFAST_DATA", SHARED / "data"))
    if not path.exists():
        pytest.skip("real data sets are absent: set MILFAST_DATA to the folder that holds them")
    monkeypatch.setenv("MILFAST_DATA", str(path))
    return path
