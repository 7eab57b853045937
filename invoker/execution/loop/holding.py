"""`HoldingReactor`: a conversation that keeps what it was sent until it is over; the process counts that (ADR 14).

A `Reactor` counts what its invocations have not read. A session that opens them one after the other, or asks others to
work with what it was sent, holds the frame itself all the while: a thousand such calls of 10 MiB are 10 GB.
"""

from __future__ import annotations

from typing import Any

from invoker.core.steps import Close
from invoker.errors import InvocationError
from invoker.execution.loop.reactor import Reactor

__all__ = ["HoldingReactor"]


class HoldingReactor(Reactor):
    """One session on one wire; see `Reactor`. A frame for which the process has no room ends the call."""

    def __init__(self, session: Any, wire: Any, driver: Any, on_close: Any, *, deadline: float | None = None) -> None:
        self._share = driver.engine.memory.share()
        self._held = 0
        super().__init__(session, wire, driver, on_close, deadline=deadline, is_counted=False)

    def arrived(self, frame: Any | None) -> bool:
        """Apply one frame, or the half-close (None); returns whether more is wanted now."""
        if frame is not None and not self._is_closed:
            try:
                self._share.grow(self._held + len(frame))
            except InvocationError as error:
                self._leave(error)
                return True
            self._held += len(frame)
        return super().arrived(frame)

    def _close(self, close: Close) -> None:
        super()._close(close)
        self._share.close()
