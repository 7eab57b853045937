"""`Relay`: carries the frames of a conversation between a device and the leader, which is another process.

The leader accepts it at a socket of its own (`protocols.federated.service.relay_listener`), like a device. Frames are
passed on unchanged. While one side does not take frames, no more are read from the other. If the leader is lost, the
device gets UNAVAILABLE. If the leader ends the call while a frame is sent to it, the device still gets the frames that
the leader sent before, and the leader's status (see `Ending`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any, Final

import grpc
import grpc.aio

from invoker.connect.ending import Ending
from invoker.core.peers import IDENTITY, PEER
from invoker.core.steps import Close
from invoker.errors import InvocationError, Status, StatusError
from invoker.execution.driver import Driver
from invoker.execution.loop.wire import Wire
from invoker.protocols.federated.service.round_leadership import Leader
from invoker.transports.grpc.methods import OnClose

log = logging.getLogger(__name__)

PASS: Final = "x-invoker-relay"  # noqa: S105 - the name of the metadata
"""The key of the metadata with the token that other processes of the same service have."""

RELAYED_PEER: Final = "x-invoker-relayed-peer"
"""The key of the metadata with the address of the device."""

_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
_DROPPED: Final = (PEER, IDENTITY, PASS, RELAYED_PEER, "user-agent", "te", "content-type")


class Links:
    """Keeps channels to leaders, at most one for each leader."""

    def __init__(self) -> None:
        self._channels: dict[str, grpc.aio.Channel] = {}

    def channel(self, leader: Leader) -> grpc.aio.Channel:
        """The gRPC channel to a leader; it is opened once."""
        found = self._channels.get(leader.address)
        if found is None:
            found = self._channels[leader.address] = grpc.aio.insecure_channel(f"unix:{leader.address}", _OPTIONS)
        return found

    async def close(self) -> None:
        """Close all channels, which ends the conversations on them."""
        channels, self._channels = self._channels, {}
        for one in channels.values():
            await one.close()


class Relay:
    """Carries the frames of one conversation in both directions.

    Args:
        path: The path of the method.
        channel: The channel to the leader.
        leader: The leader.
        metadata: The metadata of the device's call.
        wire: Sends a frame to the device.
        driver: Waits for the relay at the end of the process.
        on_close: Called once with the end.
        deadline_s: Seconds until the deadline of the device's call; None: there is none.
    """

    settles = True

    def __init__(
        self,
        path: str,
        channel: grpc.aio.Channel,
        leader: Leader,
        metadata: Mapping[str, str],
        wire: Wire,
        driver: Driver,
        on_close: OnClose,
        *,
        deadline_s: float | None = None,
    ) -> None:
        kept = [(name, value) for name, value in metadata.items() if name not in _DROPPED]
        sent = [(name, value) for name, value in kept if not name.startswith("grpc-")]
        own = ((PASS, leader.token), (RELAYED_PEER, metadata.get(PEER, "")))
        call: Any = channel.stream_stream(path)
        self._call: grpc.aio.StreamStreamCall[bytes, bytes] = call(metadata=(*sent, *own), timeout=deadline_s)
        self._ending = Ending()
        self._ending.watch(self._call)
        self._wire = wire
        self._driver = driver
        self._on_close = on_close
        self._is_closed = False
        self._frames: list[bytes | None] = []
        self._loop = asyncio.get_running_loop()
        self._up: asyncio.Task[None] | None = None
        self._down = self._loop.create_task(self._carry_down(), name="relay")
        driver.entered(self)

    # The listener of the call.

    def arrived(self, frame: bytes | None) -> bool:
        """Carry a frame, or a half-close, to the leader; reading pauses until the leader has taken it."""
        if self._is_closed:
            return True
        self._frames.append(frame)
        if self._up is None:
            self._up = self._loop.create_task(self._carry_up(), name="relay")
        return False

    def gone(self) -> None:
        """Cancel the call to the leader, because the device has left."""
        self._end(None)

    def fail(self, error: InvocationError) -> None:
        """End the conversation with an error, since this process ends."""
        self._end(Close(error))

    # Both directions.

    async def _carry_up(self) -> None:
        try:
            while self._frames:
                frame = self._frames.pop(0)
                if frame is None:
                    await self._call.done_writing()
                else:
                    with self._ending.writing():
                        await self._call.write(frame)
        except (grpc.aio.AioRpcError, grpc.aio.InternalError, asyncio.InvalidStateError):
            return  # the call has ended; the other task reports how
        finally:
            self._up = None
        if not self._is_closed:
            self._wire.ask()

    async def _carry_down(self) -> None:
        said: Any = aiter(self._call)  # `read()` is not used, since it fails after a write that comes too late
        with suppress(grpc.aio.AioRpcError):  # the status of an error is sent below, like that of a normal end
            async with aclosing(said):
                async for frame in said:
                    if not self._wire.write(frame):
                        await self._wire.room()
        status, detail = await self._ending.status()
        if status is Status.UNAVAILABLE:  # replaced, since grpcio's text names the socket
            detail = "the process that runs the rounds of this population is gone; try again"
        self._end(Close(None if status is Status.OK else StatusError(status, detail)))

    def _end(self, close: Close | None) -> None:
        """End both calls; None: the device has left, so no status is sent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._frames.clear()
        self._call.cancel()
        for task in (self._up, self._down):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        if close is not None:
            self._on_close(close)
        self._driver.exited(self)
