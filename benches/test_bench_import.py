"""The time that importing milfast takes beside that of numpy, which it cannot do without."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

ROUNDS = 12
CODE = """
import time
start = time.perf_counter()
import numpy
numpy_is_there = time.perf_counter()
import milfast
print(numpy_is_there - start, time.perf_counter() - numpy_is_there)
"""


def test_import(race: Any) -> None:
    # Both in one interpreter: what milfast adds is too little to show between two of them on a busy machine.
    runs = [
        subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True) for _ in range(ROUNDS)
    ]
    numpy, rest = (min(column) for column in zip(*(map(float, run.stdout.split()) for run in runs), strict=True))
    race.record("import", numpy + rest, "import numpy", numpy)
