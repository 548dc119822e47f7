"""Models evaluated as Zhu et al. (2023) evaluated theirs, and beside it with every bag tested."""

from __future__ import annotations

from milfast.protocol.results import ProtocolResult
from milfast.protocol.running import run

__all__ = ["ProtocolResult", "run"]
