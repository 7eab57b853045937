"""`JoiningCall`: a gRPC call on the loop's completion queue whose frames may be joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from invoker.transports.grpc.cygrpc import NO_FLAGS
from invoker.transports.grpc.loopcall import LITTLE_BYTES, LoopCall
from invoker.transports.grpc.outbox import Outbox
from invoker.transports.grpc.queue_poller import QueuePoller
from invoker.transports.grpc.settings import UNCHECKED


def nothing() -> None:
    """Default for `over`: does nothing."""


class JoiningCall(LoopCall):
    """A call whose frames may be joined (see `Outbox`). All frames of one turn of the loop are sent together.

    Args:
        call: The call as grpcio's private layer gives it.
        queue_poller: Brings the call's events.
        settle_s: As `LoopCall`.
        most_bytes: As `LoopCall`.

    Attributes:
        over: Called once, when almost nothing remains to be sent before the status, or when the peer is gone.
    """

    __slots__ = ("_outbox", "over")

    def __init__(
        self, call: Any, queue_poller: QueuePoller, settle_s: float = 0.0, most_bytes: int = UNCHECKED
    ) -> None:
        super().__init__(call, queue_poller, settle_s, most_bytes)
        self.over: Callable[[], None] = nothing
        self._outbox = Outbox()

    def write(self, frame: bytes) -> bool:
        """Send one frame; False when the next one should wait for `room`."""
        if self.is_gone:
            return False
        self._outbox.put(frame)
        self._list()
        return self._outbox.has_room

    def _has_room(self) -> bool:
        return self._outbox.has_room

    def _drop(self) -> None:
        self._outbox.clear()
        if self._status is not None:  # the event of the running operation may never come if the transport stops
            self._is_over()

    def _is_over(self) -> None:
        over, self.over = self.over, nothing
        over()

    def _advance(self) -> None:
        """Send the waiting frames, as far as possible now."""
        if self.is_gone:
            self._drop()
        if self._sending:
            self._is_due = True
            return
        last = self._outbox.take() if self._outbox else None
        is_little = last is None or len(last) <= LITTLE_BYTES
        if self._status is not None and not self._outbox and is_little:
            self._end(last)
            self._is_over()
        elif last is not None:
            self._is_due = bool(self._outbox) or self._status is not None
            self._send(last, NO_FLAGS)
