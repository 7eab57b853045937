"""`Inbox`: the nodes that a session has received, the readers that wait for more, and the end of the session.

Theory. One reader task takes messages from the call and passes them to `receive`; the readers of outputs wait in
`arrival`. Between two messages the reader task awaits `may_read`, which applies back-pressure::

    held bytes       a reader waits for a missing part       the call is
    ---------------  --------------------------------------  ---------------------------------------------
    below the mark   either                                  read
    above the mark   no                                      not read, so that the server's function waits
    above the mark   yes                                     read: an output may come behind all of another
    above the limit  either                                  failed with RESOURCE_EXHAUSTED

A task that waits to *write* counts as a waiting reader, too, as long as no output is being read. So a caller may first
send everything and then read, up to the limit; but a slow reader next to a fast writer slows the server down. While the
session is being closed, the mark is ignored, since unread outputs are dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.connect.failure import CallFailed
from invoker.errors import Status
from invoker.protocols.evergreen.client.arrivals import Arrivals

HIGH_BYTES = 4 << 20
"""The mark; it is a quarter of the limit if that is less."""


class Inbox:
    """The receiving half of a session, without the gRPC call itself.

    Args:
        target: The address of the server, for texts of errors.
        held_bytes: The limit: how many unread bytes may be held.

    Attributes:
        arrivals: The nodes that have come.
        is_closing: Whether the session is being closed.
        is_told: Whether the failure of the session was raised to the caller already.
        ended: Set when the session has ended.
        grown: Set whenever a message comes.
    """

    def __init__(self, target: str, *, held_bytes: int) -> None:
        self.target = target
        self.arrivals = Arrivals()
        self.is_closing = False
        self.is_told = False
        self._is_lifted = False
        self._high_bytes = min(HIGH_BYTES, held_bytes // 4)
        self._limit_bytes = held_bytes
        self._failure: CallFailed | None = None
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._writers = 0
        self._unread: set[str] = set()
        self._reading: set[str] = set()
        self._go_on = asyncio.Event()
        self.ended = asyncio.Event()
        self.grown = asyncio.Event()

    def expect(self, root: str) -> None:
        """Register an output, which is then held for its reader."""
        self._unread.add(root)
        self.arrivals.list(root)

    def begin(self, root: str) -> bool:
        """Begin to read an output; False if its reading has begun before, or it was discarded."""
        if root not in self._unread:
            return False
        self._unread.discard(root)
        self._reading.add(root)
        return True

    def finish(self, root: str) -> None:
        """Stop reading an output, at its end or before. The reader has already dropped the unread nodes."""
        self._reading.discard(root)
        self._go_on.set()

    def discard(self, root: str) -> None:
        """Discard an output that is not being read."""
        if root in self._unread:
            self._unread.discard(root)
            self.arrivals.drop(root)
            self._go_on.set()

    def close(self) -> None:
        """Drop the outputs that are not being read, because the session is being closed.

        From then on `may_read` does not wait.
        """
        self.is_closing = True
        for root in tuple(self._unread):
            self.discard(root)
        self._go_on.set()

    def receive(self, message: pb.SessionMessage) -> None:
        """Store the fragments of a message from the server.

        Raises:
            BadNode: The message breaks a rule of the protocol.
            CallFailed: The inbox holds more bytes than the limit.
        """
        for fragment in message.node_fragments:
            self.arrivals.receive(fragment)
            self.wake(fragment.id)
        self.grown.set()
        if self.arrivals.held_bytes > self._limit_bytes:
            text = f"more than {self._limit_bytes} bytes wait unread; read outputs at the same time, or discard them"
            raise CallFailed(Status.RESOURCE_EXHAUSTED, text)

    def lift(self) -> None:
        """Continue to read without a mark.

        The server has stopped reading; only the rest of its messages shows how the session ended.
        """
        self._is_lifted = True
        self._go_on.set()

    async def may_read(self) -> None:
        """Wait while the held bytes are above the mark and no reader waits for a missing part."""
        while self.arrivals.held_bytes >= self._high_bytes and not self._must_read():
            self._go_on.clear()
            await self._go_on.wait()

    def went(self) -> None:
        """Let `may_read` check again, because a part was read."""
        self._go_on.set()

    async def arrival(self, id_: str) -> None:
        """Wait for more of a node, or for the end of the session."""
        if self.ended.is_set():
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id_, set()).add(future)
        self._go_on.set()
        try:
            await future
        finally:
            waiting = self._waiting.get(id_, set())
            waiting.discard(future)
            if not waiting:
                self._waiting.pop(id_, None)

    def wake(self, id_: str) -> None:
        """Let the readers that wait for a node check again."""
        for future in self._waiting.pop(id_, ()):
            if not future.done():
                future.set_result(None)

    def wake_all(self) -> None:
        """Let all readers that wait check again."""
        for id_ in tuple(self._waiting):
            self.wake(id_)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A context for the time in which the caller waits for room to write; reading continues meanwhile."""
        self._writers += 1
        self._go_on.set()
        try:
            yield
        finally:
            self._writers -= 1

    def end(self, failure: CallFailed | None) -> None:
        """End the session, without a failure if it is None; only the first call counts."""
        if not self.ended.is_set():
            self._failure = failure
            self.ended.set()
            self.grown.set()
            self._go_on.set()
            self.wake_all()

    def failure(self) -> CallFailed | None:
        """Make a new error that says why the session failed; None if it did not fail."""
        if self._failure is None:
            return None
        self.is_told = True
        made = type(self._failure)(self._failure.status, self._failure.detail)
        made.__cause__ = self._failure.__cause__
        return made

    def check(self) -> None:
        """Raise an error if the session has ended.

        Raises:
            CallFailed: The session has ended, with or without a failure.
        """
        if self.ended.is_set():
            raise self.failure() or CallFailed(Status.CANCELLED, "the session has ended")

    def incomplete(self, output: str, id_: str) -> CallFailed:
        """The error for an output that will never be complete."""
        failure = self.failure()
        if failure is not None:
            return failure
        lack = self.arrivals.missing(id_)
        text = f"{self.target} ended the session with OK, but in output {output!r} the node {id_!r} {lack}"
        return CallFailed(Status.INTERNAL, text)

    def _must_read(self) -> bool:
        is_stalled = self._writers > 0 and not self._reading
        return bool(self._waiting) or is_stalled or self.is_closing or self._is_lifted or self.ended.is_set()
