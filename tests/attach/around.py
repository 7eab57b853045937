"""What a service finds around it, for the tests of services."""

from __future__ import annotations

from typing import Any

from invoker.attach.service import Surroundings
from invoker.server.table import TABLE
from invoker.telemetry.board import Numbers
from tests.execution.memory import driver_of


async def _is_ready() -> bool:
    return True


def _numbers() -> Numbers:
    return Numbers({"invoker_frames_in": 3.0}, {})


def around(*functions: Any, **settings: Any) -> Surroundings:
    """The surroundings in a process that serves functions, with some settings."""
    return Surroundings(TABLE.configured(**settings), driver_of(*functions), {}, _is_ready, _numbers)
