"""Stores that several processes share; `invoker.core.store` defines their interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invoker.core.spaces import MemoryStore
from invoker.errors import ConfigError

if TYPE_CHECKING:
    from invoker.core.store import Store

__all__ = ["store_of"]


def store_of(place: str) -> Store:
    """Make the store that a setting names, without starting it.

    Args:
        place: ``auto`` or ``memory``, ``sqlite:PATH``, or the URL of a Redis server.

    Raises:
        ConfigError: The extra ``redis`` is not installed.
    """
    if place in ("auto", "memory"):
        return MemoryStore()
    from invoker.stores.shared import SharedStore

    if place.startswith("sqlite:"):
        from pathlib import Path

        from invoker.stores.sqlite import SqliteBackend

        return SharedStore(SqliteBackend(Path(place.removeprefix("sqlite:"))))
    try:
        from invoker.stores.redis import RedisBackend
    except ImportError as error:
        raise ConfigError(f"INVOKER_STORE names a Redis server, which needs `stream-invoker[redis]`: {error}") from None
    return SharedStore(RedisBackend(place))
