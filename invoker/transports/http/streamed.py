"""`Streamed`: the wire of a conversation whose request or response streams over HTTP.

The body is given to the reactor in small pieces, since each may hold many items and the reactor only stops between two
of them; other tasks get a turn when this has taken a moment. The function's values are written at once.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, Protocol

from invoker.core.http import LONG_BYTES, BodyChunk, BodyParts, Response, ResponseHead
from invoker.core.peers import Client
from invoker.core.session import CallSession
from invoker.core.steps import Close, Elapsed
from invoker.errors import DeadlineExceeded, InternalError, InvocationError
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from invoker.transports.http.exchange import Exchange

HEAD_S: Final = 0.5
"""Seconds after which the head of a stream is sent even without an item; until then an error gets its own HTTP
status."""
HEARTBEAT_S: Final = 15.0
"""Seconds without a write after which a stream gets a heartbeat, if its format has one."""
_MOST_BYTES: Final = 2048
_TURN_S: Final = 0.002
"""Seconds of work on a body after which other tasks can run: it may have a hundred thousand blank lines, or parts of
one byte."""


class StreamingSession(CallSession, Protocol):
    """Translates one request that streams: it sends one `Response`, or a `ResponseHead` and pieces.

    Attributes:
        has_begun: Whether the head of a streamed response was sent.
        is_told: Whether the session has sent the end of the response.
        held: Bytes of the body that it keeps.
        cuts: Whether a response that fails after it has begun must look incomplete to the client.
    """

    @property
    def cuts(self) -> bool: ...  # noqa: D102 - above
    @property
    def has_begun(self) -> bool: ...  # noqa: D102 - above
    @property
    def is_told(self) -> bool: ...  # noqa: D102 - above
    @property
    def held(self) -> int: ...  # noqa: D102 - above

    def refusal(self, error: InvocationError, *, status: int = 0) -> Response:
        """The response for an ending before anything was sent."""

    def farewell(self, error: InvocationError) -> bytes:
        """The last bytes of a response that has begun, when its conversation ends without notice to the session."""


class Streamed:
    """One request; it is the listener of its exchange, too.

    Args:
        exchange: Reads the request and writes the response.
        session: Translates the request.
        driver: Runs the function.
        streams_in: Whether the body is fed as it comes; otherwise the session keeps it until its end.
        has_beats: Whether the session wants regular `Elapsed` events.
        settle_s: How long to wait before the end of a body over HTTP/2 is believed, if the function acts on that end:
            some clients end a stream just before they reset it (R-109).
        deadline: The deadline on the clock of ``time.monotonic``, or None.
    """

    def __init__(
        self,
        exchange: Exchange,
        session: StreamingSession,
        driver: Driver,
        *,
        streams_in: bool,
        has_beats: bool = False,
        settle_s: float,
        deadline: float | None,
    ) -> None:
        exchange.is_stream = streams_in
        self._has_beats = has_beats
        self._is_whole = not streams_in  # the exchange counts the body
        self._exchange = exchange
        self._session = session
        self._settle_s = settle_s if exchange.head.http_version == "2" else 0.0
        self._loop = asyncio.get_running_loop()
        limits = driver.engine.limits
        # An item has at least a byte, so one piece never brings more items than an invocation may hold.
        self._piece_bytes = max(1, min(_MOST_BYTES, limits.hard_frames - limits.high_frames))
        self._held = b""  # bytes of the body, until the reactor wants more
        self._at = 0  # the index in these bytes at which to continue
        self._held_end = False
        self._timers: list[asyncio.TimerHandle] = []
        self._written_s = 0.0
        self._response: Response | None = None
        self._is_over = False
        self._reactor = Reactor(session, self, driver, self._close, deadline=deadline, is_counted=streams_in)
        if deadline is not None:
            late = DeadlineExceeded()
            self._timers.append(self._loop.call_later(deadline - time.monotonic(), self._reactor.fail, late))
        self._reactor.arrived(exchange.head)

    @property
    def is_gone(self) -> bool:
        """Whether the client gets nothing any more."""
        return self._exchange.is_gone

    @property
    def peer(self) -> Client:
        """The caller, and the status that it got."""
        return self._exchange.peer

    # The listener of the exchange.

    def arrived(self, frame: Any | None) -> bool:
        """Take a chunk of the body, or its end; returns whether more is wanted now."""
        if frame is None:
            if self._settle_s and self._reactor.settles:
                self._timers.append(self._loop.call_later(self._settle_s, self._end))
                return True
            return self._end()
        wants_more = self._bring(frame.payload)
        self._count()
        return wants_more

    def fail(self, error: InvocationError) -> None:
        """Note that no more of the body will come."""
        self._reactor.fail(error)

    def gone(self) -> None:
        """End the conversation, since the client has left."""
        self._reactor.gone()

    def _end(self) -> bool:
        if self._held:
            self._held_end = True
            return False
        return self._reactor.arrived(None)

    def _bring(self, data: bytes, begin: int = 0) -> bool:
        until_s = self._loop.time() + _TURN_S
        size = self._piece_bytes
        for at in range(begin, len(data), size):
            wants_more = self._reactor.arrived(BodyChunk(data[at : at + size]))
            following = at + size
            is_long = wants_more and following < len(data) and self._loop.time() > until_s
            if is_long or not wants_more:
                self._at = following
                self._held = data if following < len(data) else b""
                if is_long:
                    self._loop.call_soon(self.ask)
                return False
        return True

    def _count(self) -> None:
        """Count the held bytes of the body against the memory of the process (H-162)."""
        held, share = self._session.held + len(self._held), self._exchange.share
        try:
            if held > share.mark:
                share.grow(held)
            elif share.charged and not self._is_whole:
                share.shrink(held)
        except InvocationError as error:
            self._reactor.fail(error)

    # The wire of the reactor.

    def accepted(self) -> None:
        """Note that the function runs: the head is sent after a moment, and heartbeats follow regularly."""
        if self._has_beats:
            self._loop.call_soon(self._wind)  # most requests are over in the next turn, and a timer would cost more

    def _wind(self) -> None:
        if not self._is_over:
            self._timers.append(self._loop.call_later(HEAD_S, self._beat))

    def ask(self) -> None:
        """Continue with the held bytes, then with those that come."""
        held, self._held = self._held, b""
        if held:
            wants_more = self._bring(held, self._at)
            self._count()
            if not wants_more:
                return
        if self._held_end:
            self._held_end = False
            self._reactor.arrived(None)
        else:
            self._exchange.ask()

    def write(self, frame: Any) -> bool:
        """Write a head, a piece or a whole response; returns whether the client takes more at once."""
        if type(frame) is BodyChunk:
            self._written_s = time.monotonic()
            return self._write(frame.payload)
        if type(frame) is BodyParts:
            self._written_s = time.monotonic()
            self._exchange.count(frame.size)
            return self._exchange.write(frame.parts)
        if type(frame) is ResponseHead:
            self._exchange.begin(frame)
        else:
            self._response = frame
        return True

    def _write(self, data: bytes) -> bool:
        if len(data) <= LONG_BYTES:
            return self._exchange.write(data)
        self._exchange.count(len(data))
        view = memoryview(data)
        return self._exchange.write(bytes(view[at : at + LONG_BYTES]) for at in range(0, len(view), LONG_BYTES))

    async def room(self) -> None:
        """Wait until the client takes more."""
        await self._exchange.room()

    def _beat(self) -> None:
        if self._is_over:
            return
        quiet_s = time.monotonic() - self._written_s
        if not self._session.has_begun or quiet_s >= HEARTBEAT_S:
            quiet_s = 0.0
            self._reactor.tell(Elapsed())
        self._timers = [one for one in self._timers if not one.cancelled() and one.when() > self._loop.time()]
        self._timers.append(self._loop.call_later(HEARTBEAT_S - quiet_s, self._beat))

    def _close(self, close: Close) -> None:
        self._is_over = True
        for timer in self._timers:
            timer.cancel()
        exchange, error = self._exchange, close.error
        if self._response is not None:
            exchange.answer(self._response)
        elif not self._session.has_begun:
            exchange.answer(self._session.refusal(error or InternalError(), status=408 if exchange.is_late else 0))
        else:
            if error is not None and not self._session.is_told:
                exchange.write(self._session.farewell(error))
            if error is not None and self._session.cuts:
                exchange.cut()
            else:
                exchange.end()
