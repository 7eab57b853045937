"""`Exchange`: one request of the HTTP transport for its handler, over any version of HTTP.

Subclasses are `transports.http.request` for HTTP/1.1 and HTTP/2, and `transports.http.asgiexchange` for ASGI servers.
An exchange reads the body within its time limit and within the memory of the process.

A handler works in one of two ways: it reads the body in a task and returns the response, or it listens, and
everything happens in the callbacks that bring the body. In both it may `answer` with one response, or `begin` one that
it writes piece by piece, while the body may still come.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from invoker.core.budget import STEP_BYTES, ProcessBudget, Share, Unread
from invoker.core.http import BodyChunk, RequestHead, Response, ResponseHead
from invoker.core.peers import Client
from invoker.errors import Cancelled, DeadlineExceeded, InvocationError
from invoker.execution.bodies.runner import later
from invoker.transports.http.codings import PACKED, PLAIN
from invoker.transports.http.unpacking import STEPS, Unpacker


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The settings for HTTP requests.

    Attributes:
        idle_s: A connection without a running request ends after this many seconds; a head must also come within this
            time.
        body_s: The time limit of a body in seconds, extended by the time that its bytes take at ``body_bytes_per_s``; a
            later body is refused with 408.
        body_bytes_per_s: The slowest upload that is tolerated.
        write_s: A client that takes more seconds than this for a MiB of its response loses its connection.
        linger_s: Seconds for which the rest of a refused body is read and dropped, so that the client can read the
            refusal.
        origins: The origins of web pages that may call; see `Origins`.
        hosts: Names for a transport that is bound to loopback; see `Origins`.
        has_credentials: Whether pages of listed origins may send credentials such as cookies; see `Origins`.
        codings: The codings that responses may have, the best first; see `invoker.transports.http.packing`.
    """

    idle_s: float = 30.0
    body_s: float = 30.0
    body_bytes_per_s: float = 1024.0
    write_s: float = 60.0
    linger_s: float = 5.0
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    has_credentials: bool = False
    codings: tuple[str, ...] = PACKED


class Listener(Protocol):
    """Gets a request by callbacks as it comes; a reactor is a listener."""

    def arrived(self, frame: Any | None) -> bool:
        """Take a chunk of the body, or its end (None); returns whether more is wanted now."""

    def fail(self, error: InvocationError) -> None:
        """Take the error after which no more of the body comes: it is late, or exceeds the memory of the process."""

    def gone(self) -> None:
        """Called once when the client has left before the response was complete."""


class _Nobody:
    """Replaces a listener that has answered, so that the request does not keep that listener alive."""

    def arrived(self, frame: Any | None) -> bool:  # noqa: ARG002 - as `Listener`
        return True

    def fail(self, error: InvocationError) -> None:
        pass

    def gone(self) -> None:
        pass


NOBODY: Final[Listener] = _Nobody()


class Exchange(ABC):
    """One request: its head and its body.

    Args:
        head: Everything but the body.
        settings: Limits.
        memory: Counts the body; None: no memory is counted.
        packed: The codings of the body; it is unpacked here, and the head does not mention them.

    Attributes:
        head: Everything but the body.
        choice: The coding of the response.
        path: The path of the request.
        peer: The caller, and the status that it got.
        is_gone: Whether the client has left.
        is_late: Whether the body has exceeded its time limit.
        is_stream: Whether the body may take any time; the listener sets it, and then counts what it holds itself.
        untaken: Counts the long parts of the response that the client has not taken; None: there is none.
    """

    def __init__(
        self,
        head: RequestHead,
        settings: HttpSettings,
        memory: ProcessBudget | None = None,
        packed: tuple[str, ...] = (),
    ) -> None:
        self.head = head
        self.path = head.path
        self.choice = PLAIN
        self.peer = Client("")
        self.is_gone = False
        self.is_late = False
        self.is_stream = False
        self._share: Share | None = None
        self.untaken: Unread | None = None
        self._memory = memory
        self._settings = settings
        self._is_headed = False
        self._is_complete = False  # whether all of the body was received
        self._received = 0
        self._unpacker = Unpacker(packed) if packed else None
        self._unpacked = 0
        self._is_unpacked = not packed
        self._started_s = asyncio.get_running_loop().time()
        # the task that reads the body; it is cancelled when the client leaves
        self._task: asyncio.Task[Any] | None = None
        self._is_reading = False
        self._late_timer: asyncio.TimerHandle | None = None

    @property
    def share(self) -> Share:
        """The body's share of the process's memory, until the response is made; short bodies need none."""
        if self._share is None:
            self._share = (self._memory or ProcessBudget()).share()
        return self._share

    async def read(self) -> RequestHead | BodyChunk | None:
        """The head, then the body's chunks, then None.

        Raises:
            Cancelled: The client has left.
            DeadlineExceeded: The body comes too slowly (408).
            Overloaded: The process holds too much already (503).
            DecodeError: The body is not packed as its head says (400).
        """
        if not self._is_headed:
            self._is_headed = True
            return self.head
        while not (self._is_complete and self._is_unpacked):
            body = await self._body()
            if body:
                return BodyChunk(body)
        self._completed()
        return None

    async def whole(self, most_bytes: int) -> bytearray | None:
        """The whole body, instead of its chunks; None as soon as it is longer than the limit.

        The array grows as bytes come: memory is taken for the bytes that were sent, not for the announced length.

        Raises:
            Cancelled: The client has left.
            DeadlineExceeded: The body comes too slowly (408).
            Overloaded: The process holds too much already (503).
            DecodeError: The body is not packed as its head says (400).
        """
        body = bytearray()
        while not (self._is_complete and self._is_unpacked):
            chunk = await self._body()
            if len(body) + len(chunk) > most_bytes:
                self._stop_timing()
                return None
            body += chunk
        self._completed()
        return body

    @abstractmethod
    def ask(self) -> None:
        """Continue to read the body, since the listener wants more of it."""

    @abstractmethod
    def answer(self, response: Response) -> None:
        """Write a whole response, unless the client has left; once."""

    @abstractmethod
    def begin(self, head: ResponseHead) -> None:
        """Write the head of a streamed response. Its pieces follow, then `end` or `cut`."""

    @abstractmethod
    def write(self, data: bytes | Iterator[bytes]) -> bool:
        """Write a piece of the body; False when the next one should wait for `room`.

        Pieces that are written within one turn of the loop may be sent together.

        Args:
            data: The piece; or the parts of a long one, which are taken when the client takes them.
        """

    @abstractmethod
    async def room(self) -> None:
        """Wait until the client has taken most of the written bytes, or has left."""

    @abstractmethod
    def end(self) -> None:
        """End the streamed response, which is complete."""

    @abstractmethod
    def cut(self) -> None:
        """End the streamed response so that the client sees that it is not complete."""

    def count(self, size: int) -> None:
        """Count a long piece of the response, until the client has taken all of it."""
        if size > STEP_BYTES and self._memory is not None:
            if self.untaken is None:
                self.untaken = Unread(self._memory)
            self.untaken.add(size, partial(later, asyncio.get_running_loop(), self._drop))

    @abstractmethod
    def _drop(self, error: InvocationError) -> None:
        """End the connection or stream of a client that takes nothing."""

    @abstractmethod
    async def _next(self) -> bytes:
        """Read more of the body; sets `_is_complete` with the last piece, and `is_gone` when the client has left."""

    def _completed(self) -> None:
        self._stop_timing()

    def close(self) -> None:
        """Release the memory, since the request is answered or dropped."""
        if self._share is not None:
            self._share.close()
        self._stop_timing()

    async def _body(self) -> bytes:
        self._task = task = asyncio.current_task()
        self._is_reading = True
        try:
            body = await (self._next() if self._unpacker is None else self._next_unpacked(self._unpacker))
        except asyncio.CancelledError:
            if task is None or not self.is_late or task.uncancel():
                raise
            raise self._late() from None
        finally:
            self._is_reading = False
        if self.is_gone:
            raise Cancelled("the client left before its request was complete")
        if self._unpacker is None:
            self._count(body)
        else:
            self._count_unpacked(body)
        return body

    async def _next_unpacked(self, unpacker: Unpacker) -> bytes:
        """Read more of the body, unpacked; sets `_is_unpacked` with the last piece."""
        while not self.is_gone:
            await asyncio.sleep(0)  # other tasks have a turn, since a few bytes may become very many
            piece = unpacker.steps(STEPS)
            if piece:
                return piece
            if piece is None:
                if self._is_complete:
                    unpacker.close()
                    self._is_unpacked = True
                    break
                body = await self._next()
                self._received += len(body)
                unpacker.feed(body)
        return b""

    def _count_unpacked(self, body: bytes) -> None:
        """Count a piece of the unpacked body; only received bytes extend the time limit of the body.

        Raises:
            Overloaded: The process holds too much already.
        """
        self._unpacked += len(body)
        if self._unpacked > STEP_BYTES and not self.is_stream:
            self.share.grow(self._unpacked)

    def _count(self, body: bytes) -> None:
        """Count a received piece of the body, and check the memory of the process.

        Raises:
            Overloaded: The process holds too much already.
        """
        self._received += len(body)
        if self._received > STEP_BYTES and not self.is_stream:
            self.share.grow(self._received)

    def _late(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"only {self._received} bytes of the body came in time")

    def _begin_timing(self) -> None:
        """Start the time limit of the body, because the code that reads the body has to wait."""
        if self._late_timer is None and not self.is_stream:
            self._late_timer = asyncio.get_running_loop().call_at(self._until_s, self._check_late)

    @property
    def _until_s(self) -> float:
        """The time limit of the body, on the loop's clock; each byte that has come extends it."""
        settings = self._settings
        return self._started_s + settings.body_s + self._received / settings.body_bytes_per_s

    def _check_late(self) -> None:
        """End the reading if the body is late. One timer serves all chunks; if it fires too early, it is set again."""
        self._late_timer = None
        loop, until_s = asyncio.get_running_loop(), self._until_s
        if until_s > loop.time():
            self._late_timer = loop.call_at(until_s, self._check_late)
        else:
            self._is_due()

    def _is_due(self) -> None:
        if self._is_reading and self._task is not None:  # otherwise the next read sets a timer that fires at once
            self.is_late = True
            self._task.cancel()

    def _stop_timing(self) -> None:
        if self._late_timer is not None:
            self._late_timer.cancel()
            self._late_timer = None
