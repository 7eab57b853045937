"""`HoldingReactor`: a conversation that keeps the frames that it received until it is over.

The process counts the bytes of these frames (ADR 14). A plain `Reactor` counts only the messages that its invocations
have not read. That is too little for a session that opens its invocations one after the other, or passes parts of a
frame on to others: it holds the whole frame meanwhile, and a thousand such calls of 10 MiB hold 10 GB.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from invoker.core.budget import STEP_BYTES, Share
from invoker.core.steps import Close, Open
from invoker.errors import InvocationError
from invoker.execution.bodies.runner import later
from invoker.execution.loop.reactor import Reactor


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


class ArrivingReactor(Reactor):
    """A conversation with one large request that is read elsewhere before its invocation is opened; see `Reactor`.

    The request counts from its arrival on, before it is parsed. Once the invocation is opened, the messages that it is
    fed count instead. Of several requests that come at once, those that do not fit are refused before they are parsed.
    """

    def __init__(
        self, session: Any, wire: Any, driver: Any, on_close: Any, *, deadline: float | None = None, **more: Any
    ) -> None:
        self._arriving: Share | None = None
        super().__init__(session, wire, driver, on_close, deadline=deadline, **more)

    def arrived(self, frame: Any | None) -> bool:
        """Apply one frame, or the half-close (None); returns whether more is wanted now."""
        if frame is not None and len(frame) > STEP_BYTES and self._arriving is None and not self._is_closed:
            share = self._arriving = self.driver.engine.memory.share()
            share.end = partial(
                later, asyncio.get_running_loop(), self._leave
            )  # so that it can be ended to make room, as a running invocation can
            try:
                share.grow(len(frame))
            except InvocationError as error:
                self._leave(error)
                return True
        return super().arrived(frame)

    def _open(self, step: Open) -> None:
        self._settle()
        super()._open(step)

    def _close(self, close: Close) -> None:
        super()._close(close)
        self._settle()

    def _settle(self) -> None:
        if self._arriving is not None:
            self._arriving.close()
