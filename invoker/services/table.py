"""The table of services: one row for each protocol that can be served."""

from __future__ import annotations

from invoker.config import Config
from invoker.services.action_engine import ActionEngineService
from invoker.services.evergreen.service import EvergreenService
from invoker.services.graphpipe.service import GraphPipeService
from invoker.services.riff.service import RiffHttpService, RiffService
from invoker.services.service import Service

__all__ = ["SERVICES", "served"]

SERVICES: tuple[type[Service], ...] = (
    RiffService,
    EvergreenService,
    RiffHttpService,
    GraphPipeService,
    ActionEngineService,
)
"""A later row is asked before an earlier one, so what no other service claims is left to the first rows."""


def served(config: Config) -> tuple[type[Service], ...]:
    """Those that the knobs choose, in the order of the table."""
    return tuple(one for one in SERVICES if config.serves(one.name))
