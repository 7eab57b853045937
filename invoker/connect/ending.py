"""`Ending`: finds the status with which the peer ended a call.

In grpc.aio, a write after the peer's end replaces the peer's status by INTERNAL, before or after that status has come
(grpc#36066; drop when grpcio has grpc#43486). A function may end while its caller still writes (R-114), so in riff this
happens all the time. After such a write ``read()`` also drops values that have already arrived; iteration over the call
does not, so values are read by iteration.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import grpc.aio

from invoker.errors import Status

T = TypeVar("T")

STATUS_GRACE_S = 2.0
"""Seconds to wait for the peer's status after a write has failed and the values have ended."""

POLL_S = 0.005


class Ending:
    """Finds the status that the peer sent, instead of the one that grpc.aio makes up when a write fails.

    gRPC reports the first status of a call to a callback, at once. If the callback runs in the task that is writing,
    the status is made up; the peer's status replaces it later, without a callback.
    """

    def __init__(self) -> None:
        self._rpc: grpc.aio.StreamStreamCall[bytes, bytes] | None = None
        self._known: tuple[Status, str] | None = None
        self._made_up: tuple[Status, str] | None = None
        self._writer: asyncio.Task[Any] | None = None

    def watch(self, rpc: grpc.aio.StreamStreamCall[bytes, bytes]) -> None:
        """Watch a call that was just made."""
        self._rpc = rpc
        rpc.add_done_callback(self._record)

    def forget(self) -> None:
        """Release the call, once its status is no longer needed."""
        self._rpc = None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A context for a write of the current task; only one write runs at a time."""
        self._writer = asyncio.current_task()
        try:
            yield
        finally:
            self._writer = None

    async def status(self) -> tuple[Status, str]:
        """The peer's status and text, once the values have ended; the made-up status if the peer's does not come."""
        assert self._rpc is not None, "watch() comes first"
        if self._known is None:
            self._known = await _status_of(self._rpc)
        ends = time.monotonic() + STATUS_GRACE_S
        while self._known == self._made_up and time.monotonic() < ends:
            await asyncio.sleep(POLL_S)  # grpc.aio replaces the status without a notice
            self._known = await _status_of(self._rpc)
        return self._known

    def _record(self, rpc: Any) -> None:
        status = _now(_status_of(rpc))
        if self._writer is not None and _current_task() is self._writer:
            self._made_up = status
        elif self._known is None:
            self._known = status


async def _status_of(rpc: grpc.aio.StreamStreamCall[bytes, bytes]) -> tuple[Status, str]:
    number: int = (await rpc.code()).value[0]
    return Status(number), await rpc.details() or ""


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _now(answer: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that does not wait, such as the status of a call that is done, and return its result."""
    try:
        answer.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    answer.close()
    raise AssertionError("a call reported its end before it had a status")
