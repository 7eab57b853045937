"""`Ending` knows with which status a call really ended.

grpc.aio lets a write that comes too late replace the peer's status by INTERNAL, before or after that status has come
(grpc#36066; drop when grpcio has grpc#43486). A function may end while its caller still writes (R-114), so in riff
this is not a rare race but everyday life.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import grpc.aio

from invoker.errors import Status

__all__ = ["Ending"]

T = TypeVar("T")

STATUS_GRACE_S = 2.0
"""How long to wait for the peer's status when a write of ours has failed and the values have ended."""


class Ending:
    """The status that the peer sent, told from those that grpc.aio makes up when a write fails.

    gRPC reports every status to a callback at once. One that is reported by a task while it writes is made up.
    """

    def __init__(self) -> None:
        self._rpc: grpc.aio.StreamStreamCall[bytes, bytes] | None = None
        self._known: tuple[Status, str] | None = None
        self._made_up: tuple[Status, str] | None = None
        self._writer: asyncio.Task[Any] | None = None
        self._came = asyncio.Event()

    def watch(self, rpc: grpc.aio.StreamStreamCall[bytes, bytes]) -> None:
        """Begin with a call that was just made."""
        self._rpc = rpc
        rpc.add_done_callback(self._record)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Around a write of the current task; there is one at a time."""
        self._writer = asyncio.current_task()
        try:
            yield
        finally:
            self._writer = None

    async def status(self) -> tuple[Status, str]:
        """The peer's status and text; the made-up one when none comes although the values have ended."""
        if self._known is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STATUS_GRACE_S):
                    await self._came.wait()
        return self._known or self._made_up or (Status.UNKNOWN, "the call ended without a status")

    def _record(self, rpc: Any) -> None:
        status = Status(_now(rpc.code()).value[0]), _now(rpc.details()) or ""
        if self._writer is not None and _current_task() is self._writer:
            self._made_up = status
        elif self._known is None:
            self._known = status
            self._came.set()


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _now(answer: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that does not wait: a call that is done knows its status."""
    try:
        answer.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    answer.close()
    raise AssertionError("a call reported its end before it had a status")
