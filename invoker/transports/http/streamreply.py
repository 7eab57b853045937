"""`StreamReply`: the response of an `InlineStream`, written by its thread and by the sweeper.

Theory. An item is sent at once, unless it follows closely after the previous one: then it is *held*, together with
later items, until they are large, or for two beats of the sweeper at most. Bytes that the client does not take at once
are written before later ones, and the function waits for that (R-127).

Streams that give many items without a pause take turns at the gate, since each would otherwise hold the interpreter's
lock for as long as possible. Between two turns they release the lock for threads that wait, such as the leader with a
new request.

The reply is *over* once the end of the response was written, or it was cut; its connection is not used from then on.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from invoker.core.http import BodyChunk, BodyParts, Response, ResponseHead
from invoker.core.invocation import Invocation
from invoker.core.peers import LEFT, Client
from invoker.core.steps import Close
from invoker.errors import Cancelled, DeadlineExceeded, InternalError, InvocationError
from invoker.execution.driver import Driver
from invoker.execution.pace.gate import Ticket
from invoker.execution.thread.leader_follower import Turn
from invoker.transports.http.inline_connection import GRACE_S, Connection, packed
from invoker.transports.http.packing import AT_ONCE_BYTES, Packer
from invoker.transports.http.plain import Plain
from invoker.transports.http.response_packing import begun
from invoker.transports.http.streamed import StreamingSession
from invoker.transports.http.writing import stream_head_bytes

log = logging.getLogger(__name__)

MOST_HELD: Final = 4 * 1024
"""Items are held until they have this many bytes, or until one of them was held for two beats."""

_PROMPT_S: Final = 200e-6
"""An item that follows the previous one within this many seconds is held."""
_LOOK_S: Final = 0.05
"""Seconds between two checks by the function's thread whether the client has left."""
_LAST: Final = b"0\r\n\r\n"


class ConnectionOps(Protocol):
    """The actions of the transport on the connections of its replies.

    Attributes:
        is_serving: Whether the leading thread has requests to serve, and should get the interpreter's lock soon.
        write_s: Seconds for which a client may take none of the written bytes.
    """

    is_serving: bool
    write_s: float

    def begins(self, connection: Connection) -> bool:
        """Whether the connection ends after the response that is about to begin."""

    def write(self, connection: Connection, plain: Plain, response: Response) -> None:
        """Write a whole response; the connection is free then."""

    def write_last(self, connection: Connection, data: bytes) -> None:
        """Write the end of a response; the connection is free then."""

    def end(self, connection: Connection) -> None:
        """Forget a connection, and close its socket."""


class StreamReply:
    """One reply, made in the thread that answers. The sweeper watches it while items are held.

    Args:
        ops: The transport's actions on its connections.
        connection: The connection to write to.
        plain: The request's head.
        session: The session of the conversation.
        driver: The driver, whose sweeper sends held items.
        deadline: When the request times out, on the clock of ``time.monotonic``; None: never.

    Attributes:
        held: The unwritten bytes; each write replaces the list by a new one.
        invocation: The invocation, which counts as blocked while the client is slow; None before its first item.
        is_over: Whether the response is over.
        is_swept: Whether the sweeper watches the held items.
        lock: Held by the thread that writes.
        seen: The held items that the sweeper saw.
        wrote_s: Time of the last write.
    """

    __slots__ = (
        *("_connection", "_deadline", "_driver", "_has_begun", "_head", "_is_lost", "_looks_s", "_packer", "_plain"),
        *("_prompt_s", "_rest", "_session", "_size", "_thread", "_ticket", "_ops", "held", "invocation", "is_over"),
        *("is_swept", "lock", "moves", "peer", "seen", "wrote_s"),
    )

    settle_s, is_blocked = 0.0, False

    def __init__(
        self,
        ops: ConnectionOps,
        connection: Connection,
        plain: Plain,
        session: StreamingSession,
        driver: Driver,
        deadline: float | None,
    ) -> None:
        self._ops = ops
        self._connection, self.peer = connection, Client(connection.peer)
        self._plain, self._session = plain, session
        self._driver, self._deadline = driver, deadline
        self._thread = threading.get_ident()
        self.lock = threading.Lock()
        self.held: list[bytes] | None = None
        self.seen: list[bytes] | None = None
        self.invocation: Invocation | None = None
        self.is_over = self.is_swept = self._has_begun = self._is_lost = False
        self._head = self._rest = b""
        self._size = self.moves = 0
        self._ticket: Ticket | None = None
        self._packer: Packer | None = None
        self._looks_s = time.monotonic() + GRACE_S
        self._prompt_s = self.wrote_s = 0.0

    # The conversation calls these.

    def await_end(self) -> None:
        """Return at once, since the head has given the length of the body and all of it has come."""

    def is_gone(self) -> bool:
        """Whether the function's values are no longer needed: the client has left, or its response is over."""
        if self.is_over or self._is_lost:
            return True
        now = time.monotonic()
        if self._deadline is not None and now >= self._deadline:
            self.cut(DeadlineExceeded())
            return True
        if now < self._looks_s:
            return False
        self._looks_s = now + _LOOK_S
        self._is_lost = self._connection.is_gone
        return self._is_lost

    def early(self, frames: list[Any], close: Close | None = None, *, may_wait: bool = False) -> None:
        """Write frames while the function is still busy. A whole response is left to the function's own thread."""
        if may_wait:
            parts = frames.pop().parts if frames and type(frames[-1]) is BodyParts else ()
            self._go_on(frames)
            self._make(parts)
            return
        last = b""
        with self.lock:
            if self.is_over or self._is_lost:
                frames.clear()
                return
            response = self._refusal(frames, close)
            if response is not None:
                self.is_over = True
                frames.clear()
            elif not self._has_begun and (not frames or type(frames[0]) is Response):
                return
            else:
                self._push(b"")
                if self._rest:
                    return
                self._take(frames)
                if close is None:
                    self._flush()
                    return
                self.is_over = True
                last = self._end(close)
        if response is not None:
            self._write(response)
        else:
            self._ops.write_last(self._connection, last)

    def cut(self, error: InvocationError) -> None:
        """Send an error to the client, whatever the function does; may be called from any thread."""
        last = b""
        with self.lock:
            if self.is_over:
                return
            self.is_over = True
            has_begun, is_clean = self._has_begun, not (self._rest or self._is_lost or self._session.is_told)
            if has_begun and is_clean:
                last = self._end(Close(error))
        if not has_begun:
            self._write(self._session.refusal(error))
        elif is_clean:
            self._ops.write_last(self._connection, last)
        else:
            self._connection.shut()  # a normal end of the connection would look like the end of the stream
            self._ops.end(self._connection)

    # These methods run in the conversation's thread, after the function has returned.

    def finish(self, frames: Sequence[Any], close: Close, turn: Turn) -> None:
        """Write the unwritten bytes, and the end of the response."""
        last, response = b"", None
        with self.lock:
            if self.is_over:
                return
            self.is_over = True
            if not self._has_begun and not (frames and type(frames[0]) is ResponseHead):
                response = frames[0] if frames else self._session.refusal(close.error or InternalError())
            elif not self._is_lost:
                self._take(frames)
                if self._packer is not None and self._size > AT_ONCE_BYTES:
                    turn.pass_on()
                last = self._end(close)
        if self._is_lost:
            self.peer.got(LEFT)
            self._ops.end(self._connection)
        elif response is not None:
            self._write(response, turn)
        else:
            self._ops.write_last(self._connection, last)

    def _write(self, response: Response, turn: Turn | None = None) -> None:
        """Write a whole response, packed as `packed` does."""
        self.peer.got(response.status)
        self._ops.write(self._connection, self._plain, packed(response, self._plain, turn))

    # The sweeper calls this, with the lock held.

    def flush(self) -> None:
        """Write the held items, if the client has taken all earlier bytes."""
        if not self.is_over:
            self._push(b"")
            if not self._rest:
                self._flush()

    # These methods are internal; all but `_go_on` and `_wait` need the lock.

    def _go_on(self, frames: list[Any]) -> None:
        """Write frames, or hold them; wait while the client takes too little."""
        with self.lock:
            if self.is_over or self._is_lost:
                frames.clear()
                raise _gone()
            if frames and type(frames[0]) is Response:
                return
            self._take(frames)
            now = time.monotonic()
            is_prompt, self._prompt_s = now - self._prompt_s < _PROMPT_S, now
            is_full = self._size >= MOST_HELD
            is_hot = is_prompt and (is_full or self._ticket is None)
            if self.held is not None and (self._head or is_full or not is_prompt):
                self._flush()  # the head is sent with the first item
            is_watched, waits = self.held is None or self.is_swept, bool(self._rest)
        self.moves += 1
        if self._ops.is_serving:
            os.sched_yield()
        if waits or not is_prompt:
            self.leave_gate()
        if not is_watched:
            self._driver.sweeper.watch(self)
        if waits:
            self._wait()
        elif is_hot:
            self._take_turn()

    def _make(self, parts: Iterable[bytes]) -> None:
        """Write a long item while it is made."""
        try:
            for part in parts:
                self._go_on([BodyChunk(part)])
        except Cancelled:
            raise
        except Exception:
            log.exception("a response failed")
            self._is_lost = True  # the response must not look complete
            raise _gone() from None

    def _take_turn(self) -> None:
        """Give other busy streams, and requests that have just come, their turns."""
        gate = self._driver.sweeper.gate
        os.sched_yield()
        if self._ticket is None:
            self._ticket = Ticket(work=self)
        elif gate.is_waited_for:
            gate.leave(self._ticket)
        gate.enter(self._ticket)

    def leave_gate(self) -> None:
        """Leave the gate, so that other streams have their turns, since this one waits or is over."""
        if self._ticket is not None:
            self._driver.sweeper.gate.leave(self._ticket)

    def __len__(self) -> int:
        """The number of sends and holds of items; the gate sees from its growth that the function does not block."""
        return self.moves

    def _wait(self) -> None:
        """Wait until the client has taken the written bytes; the invocation counts as blocked meanwhile."""
        invocation = self.invocation
        if invocation is None:
            self._await_room()
            return
        invocation.blocked += 1
        try:
            self._await_room()
        finally:
            invocation.blocked -= 1

    def _await_room(self) -> None:
        poll = select.poll()
        with self.lock:
            if self.is_over:
                raise _gone()
            poll.register(self._connection.fd, select.POLLOUT)
        while True:
            is_ready = poll.poll(self._ops.write_s * 1000)
            with self.lock:
                if self.is_over:
                    raise _gone()
                if is_ready:
                    self._push(b"")
                else:
                    log.warning("a client did not read its response within %s s", self._ops.write_s)
                    self._is_lost = True
                if self._is_lost:
                    raise _gone()
                if not self._rest:
                    return

    def _refusal(self, frames: list[Any], close: Close | None) -> Response | None:
        """The whole response that another thread than the function's must write."""
        if self._has_begun or threading.get_ident() == self._thread:
            return None
        if frames:
            return frames[0] if type(frames[0]) is Response else None
        return None if close is None else self._session.refusal(close.error or InternalError())

    def _take(self, frames: Sequence[Any]) -> None:
        taken = list(frames)
        if isinstance(frames, list):
            del frames[: len(taken)]  # the function's thread may append to it meanwhile
        for frame in taken:
            if type(frame) is BodyChunk:
                self._hold(frame.payload)
            else:
                self._begin(frame)

    def _begin(self, head: ResponseHead) -> None:
        self._has_begun = True
        self.peer.got(head.status)
        head, self._packer = begun(head, self._plain.choice)
        ends = self._ops.begins(self._connection)
        self._head = stream_head_bytes(head, close=ends, is_chunked=True, headers=self._plain.headers)

    def _hold(self, payload: bytes) -> None:
        if self.held is None:
            self.held = [payload]
        else:
            self.held.append(payload)
        self._size += len(payload)

    def _flush(self) -> None:
        if self.held is not None or self._head:
            self.wrote_s = time.monotonic()
            self._push(self._pieces())

    def _end(self, close: Close) -> bytes:
        if close.error is not None and not self._session.is_told:
            self._hold(self._session.farewell(close.error))
        self._connection.ends |= (is_cut := close.error is not None and self._session.cuts)
        return self._rest + self._pieces(is_last=not is_cut)

    def _pieces(self, *, is_last: bool = False) -> bytes:
        """The items that are held, as one chunk."""
        head, held, packer = self._head, self.held, self._packer
        self._head, self.held, self._size = b"", None, 0
        body = b"" if held is None else held[0] if len(held) == 1 else b"".join(held)
        if packer is not None:
            body = packer.pack(body) + (packer.end() if is_last else packer.flush())
        last = _LAST if is_last else b""
        return b"%b%x\r\n%b\r\n%b" % (head, len(body), body, last) if body else head + last

    def _push(self, data: bytes) -> None:
        """Write as much as the client takes."""
        data = self._rest + data if self._rest else data
        while data:
            try:
                data = data[self._connection.sock.send(data) :]
            except BlockingIOError:
                break
            except OSError:
                self._is_lost, data = True, b""
        self._rest = data


def _gone() -> Cancelled:
    return Cancelled()
