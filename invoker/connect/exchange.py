"""`Exchange`: one streaming call; it sends the inputs, returns the responses and ends once.

Theory. Two parties work on the gRPC call: the *reader* is the task that awaits `read`; the *feeder* is a
task that writes the first message, then those of all inputs as they become available, then half-closes::

    state  ends by                                 then
    -----  --------------------------------------  --------------------------------------------------
    FRESH  open()                                  the gRPC call and the feeder run: OPEN
    OPEN   the peer's status                       feeder stopped; read() gives None or CallFailed
    OPEN   cancel()                                gRPC call and feeder stopped; CallFailed(CANCELLED)
    OPEN   an input raises                         as cancel(); read() raises what the input raised
    OPEN   the reader's task is cancelled          as cancel(); CancelledError goes on
    OVER   -                                       read() gives None

The peer may end the call while we still write (R-114): late writes fail locally and are ignored; only the status
counts. gRPC provides the back-pressure in both directions: nothing is queued here.

Once a late write has failed, the ``read()`` of grpc.aio drops values that have already arrived (grpc#36066; see
`Ending`). So outputs are read by iteration, which continues to the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeAlias

import grpc
import grpc.aio

from invoker.connect.ending import Ending
from invoker.connect.failure import CallFailed, ConnectFailed, explained
from invoker.connect.feeds import close
from invoker.errors import Status, let_go

Feed: TypeAlias = AsyncGenerator[bytes, None]
"""The serialised messages of one or more inputs."""

CLOSE_GRACE_S = 2.0
"""Seconds that the iterators of inputs may take to close once the call is over."""


class Exchange:
    """One call; it is opened once, then read to its end or cancelled.

    Args:
        channel: The channel of the call; used only for its connectivity state.
        start: Makes the gRPC call.
        first: Makes the serialised message that opens the conversation, once connected; None: there is none.
        feeds: The messages of the inputs; feeds are written concurrently, each in its own order.
        target: The address that is called, for error texts.
        connect_timeout_s: Seconds to wait for a connection.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        start: Callable[[], grpc.aio.StreamStreamCall[bytes, bytes]],
        first: Callable[[], Awaitable[bytes]] | None,
        feeds: Sequence[Feed],
        *,
        target: str,
        connect_timeout_s: float,
    ) -> None:
        self._channel = channel
        self._start = start
        self._first = first
        self._feeds = feeds
        self._target = target
        self._connect_timeout_s = connect_timeout_s
        self._rpc: grpc.aio.StreamStreamCall[bytes, bytes] | None = None
        self._feeder: asyncio.Task[None] | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._responses: AsyncIterator[bytes] | None = None
        self._ending = Ending()
        self._connected = False
        self._reading = False
        self._writing = asyncio.Lock()
        self._cancelled = False
        self._over = False
        self._input_error: BaseException | None = None

    @property
    def over(self) -> bool:
        """Whether the call has ended or was cancelled."""
        return self._over or self._cancelled

    @property
    def is_connected(self) -> bool:
        """Whether there was a connection when the call was opened; if not, reading raises the reason."""
        return self._connected

    async def open(self) -> None:
        """Start the call and wait for the connection, or until it is clear that there will be none.

        Raises:
            ConnectFailed: There is no connection within the time limit.
            CallFailed: The call was already cancelled.
        """
        if self._cancelled:
            self._over = True
            raise CallFailed.by_caller()
        rpc = self._rpc = self._start()
        self._ending.watch(rpc)
        try:
            if not self._is_connected():
                await self._connect(rpc)
        except BaseException:
            self.cancel()
            self._over = True
            raise
        self._connected = self._is_connected()
        self._responses = aiter(rpc)
        self._feeder = asyncio.create_task(self._feed(rpc), name="invoker-client-feeder")
        self._feeder.add_done_callback(self._fed)

    async def read(self) -> bytes | None:
        """Wait for the next serialised message; None: the call ended with OK.

        Raises:
            CallFailed: The call ended with another status.
            Exception: The error that an input raised, for which the call was cancelled.
        """
        if self._over:
            return None
        if self._responses is None and self._cancelled:
            raise CallFailed.by_caller()
        return await self._read()

    async def refuse(self, what: str) -> CallFailed:
        """Cancel the call because the peer sent something invalid, and return the error for that."""
        self.cancel()
        await self._end()
        return CallFailed(Status.INTERNAL, f"{self._target} sent {what}")

    async def headers(self) -> tuple[tuple[str, str | bytes], ...]:
        """The peer's initial metadata, once they have come; empty if the call ends without them."""
        assert self._rpc is not None, "open() comes first"
        try:
            return tuple((key, value) for key, value in await self._rpc.initial_metadata() or ())
        except grpc.aio.AioRpcError:
            return ()

    def cancel(self) -> None:
        """Cancel the call, at any time and any number of times; wakes the reader and stops the feeder."""
        if self.over:
            return
        self._cancelled = True
        for part in (self._rpc, self._feeder, self._connecting):
            if part is not None:
                part.cancel()

    async def close(self) -> None:
        """Cancel the call if it still runs, and wait for a bounded time until the inputs are closed."""
        self.cancel()
        await self._stop_feeding()
        if self._responses is not None and not self._reading:
            await close(self._responses)
        if not self._reading:
            # This object and the call refer to each other, and the call's connection lives as long as the call does.
            self._rpc = self._responses = self._feeder = None
            self._ending.forget()

    async def _connect(self, rpc: grpc.aio.StreamStreamCall[bytes, bytes]) -> None:
        self._connecting = asyncio.create_task(_wait_for_connection(rpc), name="invoker-client-connect")
        try:
            done, _ = await asyncio.wait({self._connecting}, timeout=self._connect_timeout_s)
        finally:
            self._connecting.cancel()
        if not done and not self._is_connected():
            raise _no_connection(self._target, self._connect_timeout_s)

    def _is_connected(self) -> bool:
        return self._channel.get_state() is grpc.ChannelConnectivity.READY

    async def _read(self) -> bytes | None:
        """Read one message; None when there is no more."""
        assert self._responses is not None, "open() comes first"
        task = asyncio.current_task()
        cancels = task.cancelling() if task is not None else 0
        self._reading = True
        try:
            return await anext(self._responses)
        except (StopAsyncIteration, grpc.aio.AioRpcError):
            pass  # raising gRPC's error here would keep the call and its connection alive
        except asyncio.CancelledError:
            ours = self._cancelled and (task is None or task.cancelling() == cancels)
            self.cancel()
            if not ours:
                raise  # the reader's own task is cancelled
            await self._end()
            raise (self._input_error or CallFailed.by_caller()) from None
        finally:
            self._reading = False
        await self._ended()
        return None

    async def _ended(self) -> None:
        """Close the exchange; raises `CallFailed` or `ConnectFailed` unless the status is OK."""
        status, detail = await self._ending.status()
        await self._end()
        if status is not Status.OK:
            refused = status is Status.UNAVAILABLE and not self._connected
            raise (ConnectFailed if refused else CallFailed)(status, explained(status, detail, self._target))

    async def _end(self) -> None:
        self._over = True
        await self._stop_feeding()

    async def _stop_feeding(self) -> None:
        if self._feeder is not None:
            self._feeder.cancel()
            await asyncio.wait({self._feeder}, timeout=CLOSE_GRACE_S)
        else:
            for feed in self._feeds:
                await feed.aclose()  # closing a feed that never began runs none of its code

    async def _feed(self, rpc: grpc.aio.StreamStreamCall[bytes, bytes]) -> None:
        if self._first is not None and not await self._write(rpc, await self._first()):
            return
        try:
            async with asyncio.TaskGroup() as group:
                for feed in self._feeds:
                    group.create_task(self._pump(rpc, feed), name="invoker-client-input")
        finally:
            for feed in self._feeds:
                await feed.aclose()  # it may belong to a pump that was stopped before its first step
        try:
            await rpc.done_writing()
        except (grpc.aio.AioRpcError, grpc.aio.InternalError, asyncio.InvalidStateError):
            return  # the peer ended first, or the deadline has passed (InternalError)

    async def _pump(self, rpc: grpc.aio.StreamStreamCall[bytes, bytes], feed: Feed) -> None:
        try:
            async with aclosing(feed):
                async for signal in feed:
                    if not await self._write(rpc, signal):
                        return
        except asyncio.CancelledError:
            # A cancelled input must not look like an ended one: the function would take the received part for the
            # whole.
            self._fail(CallFailed(Status.CANCELLED, "an input was cancelled"))
            raise
        except Exception as error:  # noqa: BLE001 - around the caller's iterables
            self._fail(error)

    def _fed(self, feeder: asyncio.Task[None]) -> None:
        try:
            error = feeder.exception()
        except asyncio.CancelledError as cancelled:
            let_go(cancelled)  # the frames of the traceback hold the error, each other, and the call
            return
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self.over:
            self._input_error = error
            self.cancel()

    async def _write(self, rpc: grpc.aio.StreamStreamCall[bytes, bytes], signal: bytes) -> bool:
        """Write a signal; False when the call is over."""
        try:
            async with self._writing:
                with self._ending.writing():
                    await rpc.write(signal)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return False
        return True


async def _wait_for_connection(rpc: grpc.aio.StreamStreamCall[bytes, bytes]) -> None:
    with contextlib.suppress(grpc.aio.AioRpcError):  # read() raises the call's ending
        await rpc.wait_for_connection()


async def connected(channel: grpc.aio.Channel, target: str, timeout_s: float) -> bool:
    """Wait until there is a connection; returns False when connecting has failed; a call then gets the reason.

    Raises:
        ConnectFailed: There is neither a connection nor a failure within the time limit.
    """
    waiting = (grpc.ChannelConnectivity.IDLE, grpc.ChannelConnectivity.CONNECTING)
    try:
        async with asyncio.timeout(timeout_s):
            while (state := channel.get_state(try_to_connect=True)) in waiting:
                await channel.wait_for_state_change(state)
    except TimeoutError:
        raise _no_connection(target, timeout_s) from None
    return state is grpc.ChannelConnectivity.READY


def _no_connection(target: str, timeout_s: float) -> ConnectFailed:
    return ConnectFailed(Status.UNAVAILABLE, f"no connection to {target} within {timeout_s:g} s")
