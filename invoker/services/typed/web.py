"""Typed methods on the HTTP door, for Connect and gRPC-Web: one request, one conversation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from invoker.core.http import BodyChunk, RequestHead, Response, ResponseHead
from invoker.core.steps import Close
from invoker.doors.http.app import Begin, PromptFront
from invoker.doors.http.exchange import Exchange
from invoker.drive.driver import Driver
from invoker.drive.loop.reactor import Reactor
from invoker.errors import DeadlineExceeded, InternalError, InvocationError
from invoker.protocols.typed.calls import Call
from invoker.protocols.typed.web import WebSession, timeout_of

__all__ = ["MethodFront", "fronts_of"]

_PIECE_BYTES: Final = 1024
_WHOLE: Final = 1 << 30


class MethodFront(PromptFront):
    """Answers requests for one method.

    Args:
        call: The method.
        driver: Runs the function.
        most_bytes: Of one message.
    """

    def __init__(self, call: Call, driver: Driver, *, most_bytes: int) -> None:
        self._call = call
        self._driver = driver
        self._most_bytes = most_bytes

    def prompt(self, head: RequestHead) -> Begin:  # noqa: ARG002 - whatever the head says
        """No request needs a task of its own."""
        return self._begin

    async def answer(self, exchange: Exchange) -> Response:  # noqa: ARG002 - as `Front`
        """Never called."""
        raise AssertionError("prompt() answers every request")

    def _begin(self, exchange: Exchange) -> _Line:
        session = WebSession(self._call, most_bytes=self._most_bytes)
        return _Line(exchange, session, self._driver, is_stream=self._call.streams_in)


class _Line:
    """One request: the listener of its exchange, and the wire of its reactor."""

    def __init__(self, exchange: Exchange, session: WebSession, driver: Driver, *, is_stream: bool) -> None:
        exchange.is_stream = is_stream
        self._exchange = exchange
        self._session = session
        self._piece_bytes = _PIECE_BYTES if is_stream else _WHOLE
        self._response: Response | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_begun = False
        self._held = b""  # of the body, until the reactor wants more
        self._at = 0  # where it goes on
        self._held_end = False
        timeout_s = timeout_of(exchange.head)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._reactor = Reactor(session, self, driver, self._close, deadline=deadline, is_counted=is_stream)
        if timeout_s is not None:
            late = DeadlineExceeded("the deadline has passed")
            self._timer = asyncio.get_running_loop().call_later(timeout_s, self._reactor.fail, late)
        self._reactor.arrived(exchange.head)

    @property
    def is_gone(self) -> bool:
        """Whether the client gets nothing any more."""
        return self._exchange.is_gone

    # The listener of the exchange.

    def arrived(self, frame: Any | None) -> bool:
        """Take a piece of the body, or its end; whether more is wanted now."""
        if frame is not None:
            return self._bring(frame.payload)
        if self._held:
            self._held_end = True
            return False
        return self._reactor.arrived(None)

    def fail(self, error: InvocationError) -> None:
        """There will be no more of the body."""
        self._reactor.fail(error)

    def gone(self) -> None:
        """The client has left."""
        self._reactor.gone()

    def _bring(self, data: bytes, begin: int = 0) -> bool:
        """Give it bit by bit: each may hold many messages, and the reactor only stops between two of them."""
        for at in range(begin, len(data), self._piece_bytes):
            if not self._reactor.arrived(BodyChunk(data[at : at + self._piece_bytes])):
                self._at = at + self._piece_bytes
                self._held = data if self._at < len(data) else b""
                return False
        return True

    # The wire of the reactor.

    def accepted(self) -> None:
        """Do nothing: the head leaves with the first message."""

    def ask(self) -> None:
        """Go on with what is held, then with what comes."""
        held, self._held = self._held, b""
        if held and not self._bring(held, self._at):
            return
        if self._held_end:
            self._held_end = False
            self._reactor.arrived(None)
        else:
            self._exchange.ask()

    def write(self, frame: Any) -> bool:
        """Write a head, a piece or a whole response; whether the client takes more at once."""
        if type(frame) is BodyChunk:
            return self._exchange.write(frame.payload)
        if type(frame) is ResponseHead:
            self._is_begun = True
            self._exchange.begin(frame)
        else:
            self._response = frame
        return True

    async def room(self) -> None:
        """Wait until the client takes more."""
        await self._exchange.room()

    def _close(self, close: Close) -> None:
        if self._timer is not None:
            self._timer.cancel()
        exchange, error = self._exchange, close.error
        if self._response is not None:
            exchange.answer(self._response)
        elif not self._is_begun:
            exchange.answer(self._session.refusal(error or InternalError()))
        else:
            if not self._session.is_told:
                exchange.write(self._session.farewell(error or InternalError()))
            exchange.end()


def fronts_of(calls: Sequence[Call], driver: Driver, *, most_bytes: int) -> dict[str, MethodFront]:
    """Who answers which path."""
    return {one.path: MethodFront(one, driver, most_bytes=most_bytes) for one in calls}
