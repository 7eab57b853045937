"""The table of services: one row for each protocol that can be served."""

from __future__ import annotations

from invoker.config import Config
from invoker.services.evergreen.service import EvergreenService
from invoker.services.riff.service import RiffService
from invoker.services.service import Service

__all__ = ["SERVICES", "served"]

SERVICES: tuple[type[Service], ...] = (RiffService, EvergreenService)


def served(config: Config) -> tuple[type[Service], ...]:
    """Those that the knobs choose, in the order of the table."""
    return tuple(one for one in SERVICES if config.serves(one.name))
