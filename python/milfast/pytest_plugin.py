"""What milfast adds to pytest: an option and a marker. Importing this imports nothing else of milfast's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

#: Environment variable that holds the scale.
SCALE_VARIABLE = "MILFAST_SCALE"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--milfast-scale``.

    Parameters
    ----------
    parser : pytest.Parser
    """
    parser.getgroup("milfast").addoption(
        "--milfast-scale",
        choices=("fast", "paper"),
        help="number of training bags of MIL checks: fast (the default), or as many as in the paper",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and hand the scale on to checks, also in worker processes.

    Parameters
    ----------
    config : pytest.Config
    """
    config.addinivalue_line("markers", "milfast: a MIL check of milfast.checks.parametrize_with_checks")
    scale = config.getoption("--milfast-scale")
    if scale is not None:
        before = os.environ.get(SCALE_VARIABLE)
        os.environ[SCALE_VARIABLE] = scale
        config.add_cleanup(lambda: _restore(before))


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(SCALE_VARIABLE, None)
    else:
        os.environ[SCALE_VARIABLE] = before
