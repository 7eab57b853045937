"""The objects of a leading thread for one client: its `Connection`, the `Reply` to a request, and `LateWrites`.

A reply is the outlet of the conversation that makes the response. It is written once: by the thread when the function
is over, or before by any thread if the time limit of the request or of the drain is reached, or if the response is
known although the function continues.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from invoker.core.budget import STEP_BYTES, ProcessBudget, Unread
from invoker.core.http import Response
from invoker.core.peers import LEFT, Client, peer_of
from invoker.core.steps import Close
from invoker.errors import DeadlineExceeded, InternalError, InvocationError
from invoker.execution.bodies.runner import later
from invoker.execution.thread.leader_follower import Turn
from invoker.transports.http.codings import IDENTITY
from invoker.transports.http.packing import LEAST_BYTES, pack
from invoker.transports.http.plain import Plain, PlainHeads
from invoker.transports.http.response_packing import ready

log = logging.getLogger(__name__)

GRACE_S: Final = 0.1
"""A client that has half-closed may still read: it gets the response if the function is done within this many
seconds."""

_PEEK_BYTES: Final = 4096

_lock = threading.Lock()


class Connection:
    """One connection of the inline server.

    Attributes:
        sock: A socket that does not block.
        heads: Reads its heads.
        since_s: When it became idle, or when its request began.
        begun: The bytes of an incomplete request.
        reads: In how many pieces the incomplete request came.
        is_new: Whether nothing has come yet.
        peer: The address of the client.
        ends: Whether the connection ends after the response that is being written.
        is_parked: Whether its incoming bytes are not watched; see `InlineHttp._park`.
    """

    __slots__ = ("begun", "ends", "fd", "heads", "is_new", "is_parked", "peer", "reads", "since_s", "sock")

    def __init__(self, sock: socket.socket, heads: PlainHeads) -> None:
        self.sock = sock
        self.peer = _peer(sock)
        self.fd = sock.fileno()
        self.heads = heads
        self.since_s = time.monotonic()
        self.begun = b""
        self.reads = 0
        self.is_new = True
        self.ends = False
        self.is_parked = False

    @property
    def is_gone(self) -> bool:
        """Whether the client has left; it may have sent its next request meanwhile."""
        try:
            return not self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def shut(self) -> None:
        """Shut the connection down; the client notices, and so does a thread that waits for the connection."""
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing to read, and the client is still there."""
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def has_part(self) -> bool:
        """Whether the bytes that can be read are only a part of a head."""
        try:
            data = self.sock.recv(_PEEK_BYTES, socket.MSG_PEEK)
        except OSError:
            return False
        return 0 < len(data) < _PEEK_BYTES and b"\r\n\r\n" not in data


def _peer(sock: socket.socket) -> str:
    try:
        return peer_of(sock.getpeername())
    except OSError:  # the client has left
        return ""


def evictable(idle: Sequence[Connection], since_s: float) -> Iterator[Connection]:
    """The connections that may be ended: first those with only a part of a head, then the silent ones.

    A connection from which a request may have come is not idle any more, even if no thread has read it yet.

    Args:
        idle: The idle connections, the longest idle first.
        since_s: A connection that has never sent a byte is spared if it is newer than ``since_s``.
    """
    poll = select.poll()
    for one in idle:
        poll.register(one.fd, select.POLLIN)
    ready = {fd for fd, _ in poll.poll(0)}
    for one in idle:
        if one.fd in ready and one.has_part:
            yield one
    for one in idle:
        if one.fd not in ready and (not one.is_new or one.since_s <= since_s) and one.is_silent:
            yield one


class LateWrites:
    """Writes on the loop the bytes that clients did not take at once, so that no thread waits for them.

    Args:
        write_s: Seconds that a client may take for one part of the response.
        written: Called when everything is written.
        end: Called when the connection cannot be used any more.
        memory: Counts long responses.
    """

    def __init__(
        self,
        write_s: float,
        written: Callable[[Connection], object],
        end: Callable[[Connection], object],
        memory: ProcessBudget,
    ) -> None:
        self._memory = memory
        self._write_s = write_s
        self._written = written
        self._end = end
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def write(self, connection: Connection, parts: Iterator[bytes], size: int) -> None:
        """Begin to write; ``size`` bytes are kept until the client has taken them."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._write(connection, parts), name="response")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if size > STEP_BYTES:
            unread = Unread(self._memory)
            unread.part()
            task.add_done_callback(lambda _: unread.take())
            unread.add(size, lambda _: later(loop, task.cancel))

    def cancel(self) -> None:
        """End all connections whose response still waits to be written."""
        for task in self._tasks:
            task.cancel()

    async def _write(self, connection: Connection, parts: Iterator[bytes]) -> None:
        loop = asyncio.get_running_loop()
        try:
            for part in parts:
                async with asyncio.timeout(self._write_s):
                    await loop.sock_sendall(connection.sock, part)
        except TimeoutError:
            log.warning("a client did not read its response within %s s", self._write_s)
            self._end(connection)
        except OSError:
            self._end(connection)
        except asyncio.CancelledError:
            self._end(connection)
            raise
        else:
            self._written(connection)


Write: TypeAlias = Callable[[Connection, Plain, Response], None]


class Reply:
    """The reply to one request, made in the thread that answers.

    Args:
        write: Writes the response.
        connection: The connection to write to.
        plain: The head of the request.
        deadline: When the request times out, on the clock of ``time.monotonic``; None: never.

    Attributes:
        is_over: Whether the response was written.
        peer: The caller, and the status that it got.
        refusal: Makes the response for an error.
    """

    __slots__ = ("_began_s", "_connection", "_deadline", "_plain", "_thread", "_write", "is_over", "peer", "refusal")

    settle_s = 0.0
    is_blocked = False

    def __init__(self, write: Write, connection: Connection, plain: Plain, deadline: float | None) -> None:
        self._write = write
        self._connection, self.peer = connection, Client(connection.peer)
        self._plain = plain
        self._deadline = deadline
        self.refusal: Callable[[InvocationError], Response] = plain.prepared.refusal
        self._thread = threading.get_ident()
        self._began_s = time.monotonic()
        self.is_over = False

    def answer(self, response: Response) -> None:
        """Write the response, unless one was written."""
        with _lock:
            if self.is_over:
                return
            self.is_over = True
        self.peer.number = self.peer.number or response.status
        self._write(self._connection, self._plain, response)

    # The methods of `Outlet`, which the conversation calls.

    def await_end(self) -> None:
        """Return at once, since the head has given the length of the body and all of it has come."""

    def is_gone(self) -> bool:
        """Whether the function's result is no longer needed: the client has left, or got its response."""
        if self.is_over:
            return True
        now = time.monotonic()
        if self._deadline is not None and now >= self._deadline:
            self.cut(DeadlineExceeded())
            return True
        if now - self._began_s < GRACE_S or not self._connection.is_gone:
            return False
        self.peer.got(LEFT)
        return True

    def early(self, frames: list[Any], close: Close | None = None, *, may_wait: bool = False) -> None:  # noqa: ARG002 - the interface
        """Write the response while the function is still busy.

        In the function's own thread this does nothing, since that thread writes the response later.
        """
        if threading.get_ident() == self._thread:
            return
        if frames:
            self.answer(packed(frames.pop(0), self._plain, None))
        elif close is not None:
            self.cut(close.error or InternalError())

    def cut(self, error: InvocationError) -> None:
        """Send an error to the client, whatever the function does."""
        self.answer(self.refusal(error))


def packed(response: Response, plain: Plain, turn: Turn | None) -> Response:
    """The response as it is sent; if a long response has to be packed, another thread leads meanwhile.

    Args:
        response: The response to be packed.
        plain: The head of its request.
        turn: The turn of the thread that leads; None: the thread has other requests to serve, so a long response is not
            packed.
    """
    if response.status == 200 and len(response.body) < LEAST_BYTES and not (response.pieces or plain.choice.is_forced):
        return response
    at_once = ready(response, plain.choice, plain.head)
    if at_once is not None:
        return at_once
    if turn is None:
        return pack(response, IDENTITY)
    turn.pass_on()
    return pack(response, plain.choice.coding)
