"""`converse`: one conversation on the loop, in the task of the request that it answers; `carry_on`: the rest of one.

A request whose task reads it needs no call of its own: the task gives each frame to a `Reactor`, waits while the
reactor wants none, and then waits until the conversation is over. The caller keeps what the session sends and writes it
afterwards, so that a slow client holds no invocation.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from invoker.core.peers import Client
from invoker.core.session import Session
from invoker.core.steps import Close, Event, Step
from invoker.errors import DeadlineExceeded, InternalError, InvocationError
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor

log = logging.getLogger(__name__)


async def converse(
    session: Session,
    driver: Driver,
    read: Callable[[], Awaitable[Any | None]],
    keep: Callable[[Any], object],
    *,
    deadline: float | None = None,
    is_counted: bool = True,
    is_early: bool = False,
    peer: str | Client = "",
) -> InvocationError | None:
    """Run one conversation to its end.

    Args:
        session: Translates the frames.
        driver: Runs bodies.
        read: Gives the peer's next frame, None when it has half-closed; raises InvocationError when the peer is gone
            or sent what the transport refuses. It is cancelled when the conversation ends while it waits.
        keep: Takes what the session sends; it must not wait.
        deadline: The deadline on the clock of ``time.monotonic``, or None.
        is_counted: Whether the driver counts the bytes that invocations hold; otherwise the caller does.
        is_early: Whether the conversation began before the drain, which then does not refuse its invocations (G-104).
        peer: The caller, for the log.

    Returns:
        The error to send to the peer as the conversation's status; None for OK.

    Raises:
        asyncio.CancelledError: The awaiting task was cancelled (the peer is gone); every invocation was cancelled too.
    """
    wire = _Request(keep, peer)
    reactor = Reactor(session, wire, driver, wire.close, deadline=deadline, is_counted=is_counted, is_early=is_early)
    until = None if deadline is None else asyncio.get_running_loop().time() + deadline - time.monotonic()
    limit = asyncio.timeout_at(until)
    try:
        try:
            async with limit:
                await wire.bring(reactor, read, limit)
        except InvocationError as error:
            reactor.fail(error)
        except Exception:
            if not limit.expired():
                log.exception("a session or request failed")
                reactor.fail(InternalError())
            elif not wire.is_closed:  # otherwise only reading was interrupted
                reactor.fail(DeadlineExceeded())
        return wire.error
    finally:
        if not wire.is_closed:
            reactor.gone()


async def carry_on(
    session: Session,
    steps: Iterable[Step],
    driver: Driver,
    keep: Callable[[Any], object],
    *,
    deadline: float | None = None,
    is_counted: bool = True,
    is_early: bool = False,
) -> Close:
    """Run the rest of a conversation that began in a thread, and all of whose frames have arrived.

    Args:
        session: Translates; it has translated every frame, but not their end.
        steps: The steps that the session gave for the last frame.
        driver: As `converse`.
        keep: As `converse`.
        deadline: The deadline on the clock of ``time.monotonic``, or None; enforced by the task that waits here.
        is_counted: As `converse`.
        is_early: As `converse`.

    Returns:
        How it ended.
    """
    wire = _Request(keep)
    begun = _Begun(session, steps)
    reactor = Reactor(begun, wire, driver, wire.close, deadline=deadline, is_counted=is_counted, is_early=is_early)
    try:
        reactor.arrived(b"")
        if not wire.is_closed:
            reactor.arrived(None)
        await wire.over()
        assert wire.closed is not None
        return wire.closed
    finally:
        if not wire.is_closed:
            reactor.gone()


class _Begun:
    """Wraps a session whose first steps are already known."""

    def __init__(self, session: Session, steps: Iterable[Step]) -> None:
        self._steps = steps
        self.half_close = session.half_close
        self.deliver: Callable[[Event], Iterable[Step]] = session.deliver

    def receive(self, frame: Any) -> Iterable[Step]:  # noqa: ARG002 - the frame was translated already
        return self._steps


class _Request:
    """The wire of a conversation whose frames come from its own task."""

    is_gone = False

    def __init__(self, keep: Callable[[Any], object], peer: str | Client = "") -> None:
        self.peer = peer
        self.is_closed = False
        self.error: InvocationError | None = None
        self.closed: Close | None = None
        self._keep = keep
        self._limit: asyncio.Timeout | None = None  # the limit of the running read
        self._waiter: asyncio.Future[None] | None = None

    # These methods are called by the reactor.

    def accepted(self) -> None:
        """Do nothing: nothing is sent to the peer before the conversation is over."""

    def ask(self) -> None:
        self._wake()

    def write(self, frame: Any) -> bool:
        self._keep(frame)
        return True

    async def room(self) -> None:
        raise AssertionError("there is always room")

    def close(self, close: Close) -> None:
        self.is_closed, self.error, self.closed = True, close.error, close
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())
        self._wake()

    # These methods are called by the task.

    async def bring(self, reactor: Reactor, read: Callable[[], Awaitable[Any | None]], limit: asyncio.Timeout) -> None:
        """Give the reactor every frame; returns once the conversation is over."""
        while not self.is_closed:
            self._limit = limit
            try:
                frame = await read()
            finally:
                self._limit = None
            wants_more = reactor.arrived(frame)
            if frame is None:
                break
            if not wants_more:
                await self._wait()
        await self.over()

    async def over(self) -> None:
        """Wait until the conversation is over."""
        while not self.is_closed:
            await self._wait()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        """Wait until the reactor asks for more, or the conversation is over."""
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter
        self._waiter = None
