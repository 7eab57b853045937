"""`Http1`: one connection of HTTP/1.1, or of HTTP/1.0.

Theory. Requests are answered one after another; what comes behind one is read ahead, but not looked at before it is
answered::

    state     what is awaited                  how long                then
    --------  -------------------------------  ----------------------  ----------------------------------------------
    IDLE      a head, or the rest of one       idle_s                  BUSY; the connection ends when time is up
    BUSY      the body, then the front         body_s (`Exchange`)     WRITING
    WRITING   the client takes the response    write_s for each part   LINGERING if the body is not here, else IDLE
    LINGERING the rest of a refused body       linger_s                IDLE
    ENDING    the client sees the last bytes   _FAREWELL_S             the connection is closed

A connection whose first bytes are the preface of HTTP/2, or on which a handshake of WebSocket comes, is handed over.
One timer serves all states: it is not set anew for each request, but looks, when it rings, whether it is due.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

from invoker.core.http import Response
from invoker.doors.http.app import HttpApp
from invoker.doors.http.chunks import Chunks
from invoker.doors.http.connections import Connections
from invoker.doors.http.heads import MOST_BYTES, Head, RefusedError, read_head
from invoker.doors.http.request import HIGH_BYTES, Request
from invoker.doors.http.writing import BODILESS, PIECE_BYTES, head_bytes, parts_of, response_bytes, size_of
from invoker.doors.sockets import ask_whether_alive

__all__ = ["PREFACE", "HandOver", "Http1"]

log = logging.getLogger(__name__)

HandOver = Callable[[asyncio.Transport, bytes], None]

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

_CLOSE_S: Final = 5.0
"""How long the last bytes may wait to be taken."""
_FAREWELL_S: Final = 1.0
_FAREWELL_BYTES: Final = 4 << 20
"""Behind a refusal this much is still read and for this long: a reset could overtake it."""
_IMPATIENT_S: Final = 1.0
"""A client that is refused before it was told to send its body may send it nevertheless; it has this long to begin."""
_GO_ON: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class State(enum.Enum):
    """Where a connection stands."""

    IDLE = "between requests"
    BUSY = "a request is under way"
    WRITING = "its response is written"
    LINGERING = "the rest of its body is dropped"
    ENDING = "nothing more is taken"


class Http1(asyncio.Protocol):
    """One connection.

    Args:
        app: Answers.
        connections: Of the door.
        hand_over: Takes a connection that speaks something else, with what was read of it.
        early: What was read before the connection came here.
    """

    def __init__(self, app: HttpApp, connections: Connections, hand_over: HandOver, early: bytes = b"") -> None:
        self._app = app
        self._connections = connections
        self._hand_over = hand_over
        self._early = early
        self._loop = asyncio.get_running_loop()
        self._settings = app.settings
        self._transport: Any = None
        self._state = State.IDLE
        self._is_local = False
        self._is_tls = False
        self._is_fresh = True
        self._is_lost = False
        self._ends = False  # behind the response that is written now, or the next one
        self._data = b""  # that has not been taken
        self._seen = 0  # bytes of it that are no head yet
        self._is_paused = False
        self._is_full = False
        self._dropped = 0
        self._request: Request | None = None
        self._left: int | Chunks = 0  # of the body
        self._waits = False  # whether the client waits for 100
        self._parts: Iterator[bytes] = iter(())
        self._known: tuple[bytes, Head] | None = None  # the last head
        self._timer: asyncio.TimerHandle | None = None
        self._rings_s = 0.0
        self._due_s = 0.0
        self._on_due: Callable[[], None] | None = None

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport
        sock = transport.get_extra_info("socket")
        self._is_local = sock.family == socket.AF_UNIX
        if not self._is_local:
            ask_whether_alive(sock)
        tls = transport.get_extra_info("ssl_object")
        self._is_tls = tls is not None
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            self._leave_to(b"")
            return
        self._connections.idle[self] = None
        self._connections.enter(self)
        self._arm(self._settings.idle_s, self._close)
        if self._early:
            early, self._early = self._early, b""
            self.data_received(early)

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        state = self._state
        if state is State.ENDING:
            self._dropped += len(data)
            if self._dropped > _FAREWELL_BYTES:
                self.abort()
            return
        self._data = self._data + data if self._data else data
        if state is State.IDLE:
            self._look()
        elif self._request is not None and not self._request.is_whole:
            self._bring()
        elif len(self._data) > HIGH_BYTES:
            self._pause()

    def eof_received(self) -> bool:
        """The client sends no more, which counts as its leaving unless it is being answered."""
        if self._state is State.WRITING:
            self._ends = True
            return not self._is_tls  # which cannot be half closed
        if self._request is not None:
            self._request.leave()
        self._state = State.ENDING
        self._arm(_CLOSE_S, self.abort)
        return False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        """The end."""
        self._is_lost = True
        self._data = b""
        self._on_due = None
        if self._timer is not None:
            self._timer.cancel()
        request = self._request
        if request is not None and not request.is_gone:
            request.leave()
        if request is None or request.task is None or request.task.done():
            self._connections.leave(self)
        self._connections.idle.pop(self, None)

    def pause_writing(self) -> None:
        """The client takes too little."""
        self._is_full = True

    def resume_writing(self) -> None:
        """It has taken most of it."""
        self._is_full = False
        self._loop.call_soon(self._go_on)  # asyncio 3.11 closes twice when it is told to within this call

    # Called by the door.

    def end_when_idle(self) -> None:
        """End now, or with the request that is under way."""
        self._ends = True
        if self._state is State.IDLE:
            self._close()

    def abort(self) -> None:
        """End now, without ceremony."""
        # asyncio 3.11 fails at an abort behind a close that had to wait for its last writes
        if not self._is_lost and self._transport.get_extra_info("socket").fileno() >= 0:
            self._transport.abort()

    cut = abort  # the end of the connection ends its request

    # Heads.

    def _look(self) -> None:
        """Begin the next request if its head is here."""
        data, seen = self._data, self._seen
        if self._is_fresh and data[:1] == b"P":
            if data.startswith(PREFACE):
                self._leave_to(data)
                return
            if PREFACE.startswith(data):
                return
        try:
            end = data.find(b"\r\n\r\n", max(0, seen - 3))
            if end < 0:
                _check_begun(data, seen)
                self._seen = len(data)
                return
            end += 4
            head, known = data[:end], self._known
            if known is None or known[0] != head:
                known = self._known = (head, read_head(head))
        except RefusedError as refused:
            self._refuse(refused)
            return
        self._is_fresh = False
        if known[1].is_socket:
            self._leave_to(data)
            return
        self._data, self._seen = data[end:], 0
        self._begin(known[1])

    def _begin(self, head: Head) -> None:
        self._state = State.BUSY
        self._connections.idle.pop(self, None)
        self._on_due = None
        app = self._app
        request = self._request = Request(head, self, self._settings, app.driver.engine.memory)
        self._left = Chunks() if head.length is None else head.length
        self._waits = head.waits and head.length != 0
        self._ends = self._ends or not head.is_kept
        self._bring()
        if request.is_gone:
            return  # its body is refused
        verdict = app.judge(head.request, host=head.host, is_local=self._is_local)
        if verdict.response is not None:
            request.close()
            self._respond(verdict.response, verdict.headers)
            return
        request.task = self._loop.create_task(self._answer(request, verdict.headers), name="request")

    async def _answer(self, request: Request, headers: tuple[tuple[str, str], ...]) -> None:
        try:
            response = await self._app.answer(request)
        except asyncio.CancelledError:
            response = None  # the client has left, or the door has cut it; nobody else knows this task
        except Exception:  # a front is at fault, and nothing of it may reach the peer
            log.exception("a request failed")
            response = Response(500, (), b"", close=True)
        if self._is_lost:
            self._connections.leave(self)
        elif self._state is State.BUSY and response is not None:
            self._respond(response, headers)
        elif self._state is State.BUSY:
            self.abort()

    # Bodies.

    def ask(self) -> None:
        """Somebody waits for the body of the request."""
        if self._waits:
            self._waits = False
            self._transport.write(_GO_ON)
        self._resume()

    def _bring(self) -> None:
        """Give the request what has come of its body."""
        request, left = self._request, self._left
        assert request is not None
        data, self._data = self._data, b""
        has_begun = self._waits and bool(data)
        if has_begun:
            self._waits = False
        if isinstance(left, Chunks):
            try:
                body = left.take(data)
            except RefusedError as refused:
                self._refuse(refused)
                return
            is_last, self._data = left.is_over, left.rest
        else:
            body, self._data = data[:left], data[left:]
            self._left = left = left - len(body)
            is_last = left == 0
        if self._state is State.BUSY:
            request.feed(body, is_last=is_last)
            if request.unread > HIGH_BYTES:
                self._pause()
            return
        request.is_whole = is_last  # it is answered already
        if self._state is not State.LINGERING:
            return
        if is_last:
            self._next()
        elif has_begun:
            self._arm(self._settings.linger_s, self.abort)

    # Responses.

    def _respond(self, response: Response, headers: tuple[tuple[str, str], ...]) -> None:
        request = self._request
        assert request is not None
        self._state = State.WRITING
        self._ends = self._ends or response.close or self._waits or self._app.is_closing
        is_head = request.head.method == "HEAD" or response.status in BODILESS
        if is_head or size_of(response) <= PIECE_BYTES:
            self._transport.write(response_bytes(response, is_head=is_head, close=self._ends, headers=headers))
        else:
            self._transport.write(head_bytes(response, close=self._ends, headers=headers))
            self._parts = parts_of(response)
        self._pump()

    def _pump(self) -> None:
        """Write the next part, as long as the client takes them."""
        while not self._is_full:
            part = next(self._parts, None)
            if part is None:
                self._written()
                return
            self._transport.write(part)
        self._arm(self._settings.write_s, self._not_taken)

    def _not_taken(self) -> None:
        log.warning("a client did not take its response within %s s", self._settings.write_s)
        self.abort()

    def _written(self) -> None:
        request = self._request
        assert request is not None
        if request.is_whole:
            self._next()
            return
        # Closing now would reset the connection, maybe before the response is read.
        self._state = State.LINGERING
        if self._waits:
            self._arm(_IMPATIENT_S, self._close)
        else:
            self._arm(self._settings.linger_s, self.abort)
        self._resume()

    def _next(self) -> None:
        """The request is over."""
        self._request = None
        self._state = State.IDLE
        if self._ends:
            self._close()
            return
        self._connections.idle[self] = None
        self._arm(self._settings.idle_s, self._close)
        if self._data:
            self._loop.call_soon(self._go_on)  # others have a turn between two of its requests
        self._resume()

    def _go_on(self) -> None:
        """Do what the connection waits for, unless it was done meanwhile."""
        if self._is_lost:
            return
        if self._state is State.WRITING:
            self._pump()
        elif self._state is State.IDLE and self._data:
            self._look()

    # The end.

    def _refuse(self, refused: RefusedError) -> None:
        """Answer bytes that are no request; nothing behind them is taken."""
        log.debug("a connection is ended: %s", refused)
        is_answered = self._state in (State.WRITING, State.LINGERING)
        request = self._request
        if not is_answered:
            self._transport.write(response_bytes(Response(refused.status, (), b"", close=True)))
        self._bid_farewell()
        if request is not None:
            request.leave()

    def _close(self) -> None:
        """Close once everything is written."""
        if self._data:
            self._bid_farewell()
            return
        self._end()
        self._transport.close()  # waits for what is written to be taken, which a client can delay for ever
        self._arm(_CLOSE_S, self.abort)

    def _bid_farewell(self) -> None:
        """Close, but read for a moment what still comes, since it would reset the connection."""
        self._end()
        if not self._transport.can_write_eof():
            self._transport.close()
            self._arm(_CLOSE_S, self.abort)
            return
        self._transport.write_eof()
        self._arm(_FAREWELL_S, self.abort)
        self._resume()

    def _end(self) -> None:
        self._state = State.ENDING
        self._connections.idle.pop(self, None)
        self._data = b""

    def _leave_to(self, data: bytes) -> None:
        """Leave the connection to who speaks something else."""
        self._on_due = None
        if self._timer is not None:
            self._timer.cancel()
        self._connections.leave(self)
        self._resume()
        self._hand_over(self._transport, data)

    # Reading and timing.

    def _pause(self) -> None:
        if not self._is_paused and not self._is_lost:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._is_paused and not self._is_lost:
            self._is_paused = False
            self._transport.resume_reading()

    def _arm(self, delay_s: float, action: Callable[[], None]) -> None:
        """Do this then, unless something else happens; it replaces what was to be done."""
        self._on_due = action
        self._due_s = due_s = self._loop.time() + delay_s
        if self._timer is not None:
            if self._rings_s <= due_s:
                return
            self._timer.cancel()
        self._rings_s = due_s
        self._timer = self._loop.call_at(due_s, self._ring)

    def _ring(self) -> None:
        self._timer = None
        action = self._on_due
        if action is None:
            return
        if self._due_s > self._rings_s:
            self._rings_s = self._due_s
            self._timer = self._loop.call_at(self._due_s, self._ring)
            return
        self._on_due = None
        action()


def _check_begun(data: bytes, at: int) -> None:
    """Refuse early what cannot become a head.

    Raises:
        RefusedError: It is too long, or nobody would end its lines so.
    """
    if len(data) >= MOST_BYTES:
        raise RefusedError("the head is too long", 431)
    if data[0] < 0x21 or data[0] > 0x7E:
        raise RefusedError("this is not HTTP")
    line = data.find(b"\n", at)
    if line > 0 and data[line - 1] != 0x0D:
        raise RefusedError("a line ends with a bare LF")
