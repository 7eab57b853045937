"""`Http2Stream`: one request of HTTP/2, and the response to it.

Theory. The states of a stream are those of a connection of HTTP/1.1 (`invoker.transports.http.h1`), without IDLE::

    state      what is awaited                          how long
    ---------  ---------------------------------------  --------------------------------------------------------------
    BUSY       the body, then the handler               body_s (`Exchange`)
    STREAMING  the function, maybe the body, too        any time; write_s if nothing is taken
    WRITING    the client takes the response            write_s for each part
    LINGERING  the rest of a body that is not wanted    write_s; then the stream is reset with NO_ERROR
    ENDING     the task of the request, if it has one   until it has noticed that the client is gone

Both directions are bounded by windows. The window of the body is opened again for the bytes that the request has taken,
in steps of 16 KiB; padding counts as taken at once. Up to 32 KiB of a response, or one part of a long one, wait here
for the client's window; after that the function waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from h2.errors import ErrorCodes

from invoker.core.http import Response, ResponseHead
from invoker.transports.http.alarm import Alarm, Soon
from invoker.transports.http.app import FAULT, Handler, HttpApp
from invoker.transports.http.cachedhead import CachedHead
from invoker.transports.http.connections import State
from invoker.transports.http.request import Request
from invoker.transports.http.writer import Writer
from invoker.transports.http.writing import BODILESS, response_fields, size_of

log = logging.getLogger(__name__)

_STREAMING: Final = State.STREAMING  # each item looks at it, and Python 3.11 finds members of an enum slowly
_STEP_BYTES: Final = 16 * 1024
"""The window of the body is opened again in steps of this many taken bytes; the whole window has four times as many."""
_HIGH_BYTES: Final = 32 * 1024
"""While this many bytes of a response wait for the client's window, the function waits."""
_LOW_BYTES: Final = 16 * 1024


class FrameSink(Protocol):
    """The connection of streams, which writes their frames.

    Attributes:
        app: Answers the requests.
        peer: The address of the client.
    """

    app: HttpApp
    peer: str

    def send_soon(self, stream: Http2Stream) -> None:
        """Send what waits in a stream, in this turn of the loop or the next."""

    def send(self, stream: Http2Stream) -> None:
        """Send what waits in a stream at once, as far as the client's windows allow."""

    def send_head(self, number: int, fields: Sequence[tuple[bytes, bytes]]) -> None:
        """Send a head, unless the client has reset the stream."""

    def reset(self, number: int, code: ErrorCodes) -> None:
        """Reset a stream, unless the client has reset it."""

    def open_window(self, size: int, number: int | None = None) -> None:
        """Let the client send more on one stream, or on all streams together."""

    def wait(self, change: int) -> None:
        """Note that ``change`` more streams wait for their bodies."""

    def leave(self, stream: Http2Stream) -> None:
        """Forget a stream that is over."""


class Http2Stream:
    """One request. It brings the body of the request, and writes its response.

    Args:
        connection: The connection.
        number: The number of the stream.
        known: The head of the request.

    Attributes:
        number: The number of the stream.
        peer: The address of the client.
        waiting: Bytes of the response that wait for the client's window.
        is_complete: Whether the response is complete, so that END_STREAM follows the bytes that wait.
        is_whole: Whether all of the request has come.
        is_over: Whether nothing more can be sent or received.
        is_slow: Whether it waits for the rest of its body while no function runs for it: either none has begun, or the
            response is sent already.
    """

    __slots__ = (
        "_alarm", "_body", "_connection", "_has_met", "_is_watched", "_known", "_left", "_lingers", "_received",
        "_request", "_returned", "_soon", "_state", "_waits", "_writer",
        "is_complete", "is_over", "is_slow", "is_whole", "number", "peer", "waiting",
    )  # fmt: skip

    def __init__(self, connection: FrameSink, number: int, known: CachedHead) -> None:
        self.number = number
        self.peer = connection.peer
        self.waiting = bytearray()
        self.is_complete = self.is_whole = self.is_over = self.is_slow = False
        self._connection = connection
        self._known = known
        self._state = State.BUSY
        self._has_met = False  # whether the request has begun
        self._waits = known.head.waits  # whether the client waits for 100 Continue
        self._is_watched = False  # whether the client has to take the last bytes in time
        self._lingers = False  # whether the rest of the request is read before its response ends
        self._body = bytearray()  # bytes of the body that were not yet given to the request
        self._left = known.head.length  # how many announced bytes have not come yet
        self._received = self._returned = 0  # bytes of the client's window that are used up, and that are opened again
        self._alarm, self._soon = Alarm(), Soon()
        self._writer: Writer | None = None  # only for responses that are long or streamed
        app = connection.app
        self._request = Request(known.head, self, app.settings, app.driver.engine.memory, known.packed)

    # The connection calls these.

    def received(self, data: bytes, size: int) -> None:
        """Take some of the body. With its padding it has used ``size`` bytes of the windows."""
        self._received += size
        if self._is_open:
            self._waits = False
            self._body += data
            if self._left is not None:
                self._left -= len(data)
            self._pass_on()
        else:
            self._open_window()

    def whole(self) -> None:
        """Note that all of the request has come."""
        if self._left and self._is_open:
            # RFC 9113, 8.1.1. h2 looks at lengths only where a body ends with DATA, not with a head or trailers.
            self._connection.reset(self.number, ErrorCodes.PROTOCOL_ERROR)
            self.lose()
            return
        self.is_whole = True
        if self.is_slow:
            self.is_slow = False
            self._connection.wait(-1)
        if self._state is State.LINGERING:
            self._finish()
        else:
            self._pass_on()

    def meet(self) -> None:
        """Begin the request, with what has come of its body."""
        if self.is_over:
            return  # the client has reset the stream already
        self._has_met = True
        self._pass_on()
        request = self._request
        handler = self._known.meet(request, self._connection.app)
        if handler is not None:
            request.task = asyncio.get_running_loop().create_task(self._answer(request, handler), name="request")
        elif not (self.is_whole or request.is_stream) and self._state is State.BUSY:
            self.is_slow = True
            self._connection.wait(1)

    def taken(self, size: int) -> None:
        """Note that this number of the waiting bytes was sent."""
        del self.waiting[:size]
        if self._state is State.LINGERING:
            self._make_way()
        writer = self._writer
        if writer is not None and writer.is_full and len(self.waiting) < _LOW_BYTES:
            writer.go_on()
            self._soon.do(self._go_on)

    def blocked(self) -> None:
        """Note that the client's window is full.

        If the response is complete, the client has limited time to take the rest.
        """
        if self.is_complete and not self._is_watched:
            self._is_watched = True
            self._alarm.set(self._connection.app.settings.write_s, self._not_taken)

    def sent(self) -> None:
        """Note that all of the response was sent."""
        self._state, self.is_over = State.ENDING, True
        self._alarm.close()
        self._connection.leave(self)

    def lose(self) -> None:
        """Drop everything, and notify the request, because the client has reset the stream or is gone."""
        if self.is_over:
            return
        self._state, self.is_over = State.ENDING, True
        self._body.clear()
        self.waiting.clear()
        self._alarm.close()
        if self._writer is not None:
            self._writer.drop()
        request = self._request
        request.leave()
        if request.task is None or request.task.done():
            self._connection.leave(self)

    # The request calls these.

    def ask(self) -> None:
        """Give the request more of its body, and let the client send more."""
        if self._waits:
            self._waits = False
            if not self.is_whole:
                self._connection.send_head(self.number, [(b":status", b"100")])
        self._pass_on()

    def answered(self, request: Request, response: Response) -> None:
        """Write the whole response."""
        if self.is_over:
            self._connection.leave(self)
        elif self._state is State.STREAMING:
            self._break_off()
        elif self._state is State.BUSY:
            self._state, self._lingers = State.WRITING, True
            size = size_of(response)
            self._send_head(response.status, response.headers, size)
            if size > _HIGH_BYTES:
                self._made_writer().body(response, request)
                return
            if not (request.head.method == "HEAD" or response.status in BODILESS):
                self.waiting += b"".join((response.body, *response.pieces)) if response.pieces else response.body
            self._written()

    def begun(self, request: Request, head: ResponseHead) -> None:
        """Write the head of a streamed response."""
        if self._state is State.BUSY:
            self._state = State.STREAMING
            self._send_head(head.status, head.headers, None)
            self._made_writer().begin(head, request, close=False, is_chunked=False, is_headed=True)

    def streamed(self, data: bytes | Iterator[bytes]) -> bool:
        """Write a piece of the streamed body; returns whether the client takes more at once."""
        return self._state is not _STREAMING or self._made_writer().write(data)

    def ended(self, *, is_whole: bool) -> None:
        """End a streamed response; if it is not whole, reset the stream so that the client sees it."""
        if self._state is not State.STREAMING:
            return
        writer = self._made_writer()
        if is_whole:
            self._state = State.WRITING
            writer.end()
        else:
            writer.flush()
            self._connection.send(self)
            self._break_off()

    def leave_to(self, take: Callable[[asyncio.Transport, bytes], None]) -> None:  # noqa: ARG002
        """Refuse, since WebSocket is not offered over HTTP/2; never called."""
        raise AssertionError("a stream cannot change its protocol")

    def abort(self) -> None:
        """Reset the stream, because the client takes nothing of it, or its response cannot be made."""
        self._connection.reset(self.number, ErrorCodes.CANCEL)
        self.lose()

    # The writer calls these.

    def write(self, data: bytes) -> None:
        """Send some of the body when the windows allow it."""
        if self.is_over:
            return
        self.waiting += data
        writer = self._writer
        if writer is not None and not writer.is_full and len(self.waiting) >= _HIGH_BYTES:
            writer.is_full = True
            if self._state is State.STREAMING:
                writer.watch()
        self._connection.send_soon(self)

    def is_closing(self) -> bool:
        """Whether nothing can be sent any more."""
        return self.is_over

    def _made_writer(self) -> Writer:
        writer = self._writer
        if writer is None:
            write_s = self._connection.app.settings.write_s
            writer = Writer(self, self._alarm, write_s, self.abort, self._written, self._go_on)
            self._writer = writer
        return writer

    def _written(self) -> None:
        """End the response after its last bytes.

        A whole response ends only when the rest of the request was read, too.
        """
        if self.is_whole or not self._lingers:
            self._finish()
            return
        # RFC 9113, 8.1 allows the server to reset the stream now, but some clients treat that as a failure, and drop
        # the response.
        self._state = State.LINGERING
        self._body.clear()
        self._alarm.set(self._connection.app.settings.write_s, self._finish)
        self._open_window()
        self._make_way()
        self._connection.send_soon(self)

    def _make_way(self) -> None:
        """H-173: Let the connection be ended for others once the response is sent, although its body still comes."""
        if not (self.waiting or self.is_slow):
            self.is_slow = True
            self._connection.wait(1)

    def _finish(self) -> None:
        self.is_complete = True
        self._state = State.WRITING
        self._connection.send_soon(self)

    def _go_on(self) -> None:
        """Continue a response, since the client has taken enough of it."""
        writer = self._writer
        if self.is_over or writer is None or writer.is_full:
            return
        if self._state is State.STREAMING:
            self._alarm.unset()
            self._request.has_room()
        elif self._state is State.WRITING and not self.is_complete:
            writer.pump()

    def _not_taken(self) -> None:
        log.warning("a client did not read its response within %s s", self._connection.app.settings.write_s)
        self.abort()

    def _break_off(self) -> None:
        self._connection.reset(self.number, ErrorCodes.INTERNAL_ERROR)
        self.lose()

    def _send_head(self, status: int, own: tuple[tuple[str, str], ...], size: int | None) -> None:
        self._connection.send_head(self.number, response_fields(status, own, size, self._request.headers))

    # The body.

    @property
    def _is_open(self) -> bool:
        """Whether the request takes more of its body."""
        return self._state is State.BUSY or self._state is State.STREAMING

    def _pass_on(self) -> None:
        """Give the request what has come, in one piece, once it has taken the piece before."""
        request, body = self._request, self._body
        if self._has_met and self._is_open and not request.unread and (body or self.is_whole > request.is_whole):
            data = bytes(body)
            body.clear()
            request.feed(data, is_last=self.is_whole)
        self._open_window()

    def _open_window(self) -> None:
        """Let the client send more, for the bytes that were taken."""
        held = len(self._body) + self._request.unread if self._is_open else 0
        size = self._received - self._returned - held
        if size >= _STEP_BYTES and not self.is_whole:
            self._returned += size
            self._connection.open_window(size, self.number)

    async def _answer(self, request: Request, handler: Handler) -> None:
        app = self._connection.app
        try:
            response = await app.answer(request, handler)
        except asyncio.CancelledError:
            response = None  # the client has left, or the transport has cut it; no other code cancels this task
        except Exception:  # a fault of a handler; its text must not reach the peer
            log.exception("a request failed")
            response = FAULT
        if self.is_over:
            self._connection.leave(self)
        elif response is not None:
            request.respond(response)
        elif self._is_open:
            self._break_off()
