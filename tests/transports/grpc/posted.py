"""What a call of the loop's completion queue posts, and the events of it, for tests without gRPC."""

from __future__ import annotations

from collections.abc import Callable


class Posted:
    """A call of which nothing ever comes back, and whoever brings its events."""

    def __init__(self) -> None:
        self.posted: list[object] = []

    def start_server_batch(self, operations: object, tag: object) -> None:
        self.posted.append(tag)

    def later(self, flush: Callable[[], None]) -> None:
        flush()

    def opened(self) -> None:
        """It begins."""

    def closed(self) -> None:
        """It has heard of its end."""


class Event:
    success = False

    def __init__(self, *, is_cancelled: bool = False) -> None:
        self.batch_operations = [self]
        self._is_cancelled = is_cancelled

    def cancelled(self) -> bool:
        return self._is_cancelled
