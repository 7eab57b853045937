"""`Link`: the connection of a client to one bridge; makes rpcs, and raises exceptions for their errors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.connect.metadata import metadata_pairs
from invoker.connect.tls import Tls, open_channel
from invoker.errors import Status
from invoker.protocols.toolbridge.client.failure import from_status, status_of

M = TypeVar("M", bound=Message)

RETRIED = (Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED)

KEEPALIVE_MS = 30_000
ACK_MS = 10_000

_SERVICE = pb.DESCRIPTOR.services_by_name["SnakepitBridge"]


class Link:
    """A gRPC channel to a bridge, with methods for each form of rpc.

    Args:
        target: ``host:port``, or any name that gRPC understands.
        tls: The TLS settings of the connection; None: plain text.
        metadata: Sent with every rpc.
        max_output_bytes: The largest message that is accepted, in bytes.
        retry_waits_s: The waits in seconds before each retry of a call that may be repeated.
    """

    def __init__(
        self,
        target: str,
        *,
        tls: Tls | None,
        metadata: Mapping[str, str | bytes],
        max_output_bytes: int,
        retry_waits_s: Sequence[float],
    ) -> None:
        self.target = target
        self._metadata = metadata_pairs(metadata)
        self._retry_waits_s = tuple(retry_waits_s)
        self._methods: dict[str, Any] = {}
        # T-163: keepalive notices a bridge that has vanished
        alive = ("grpc.keepalive_time_ms", KEEPALIVE_MS), ("grpc.keepalive_timeout_ms", ACK_MS)
        self._channel = open_channel(target, tls, max_output_bytes, *alive)

    async def ask(
        self, method: str, request: Message, answer: type[M], *, tool: str = "", deadline_s: float | None = None
    ) -> M:
        """Make a unary rpc.

        Raises:
            ToolExecutionError: The bridge answered with an error.
            ToolCommunicationError: The rpc failed.
        """
        try:
            return await self._once(method, request, answer, deadline_s)
        except grpc.RpcError as error:
            raise from_status(tool, error, self.target) from None

    async def insist(
        self, method: str, request: Message, answer: type[M], *, tool: str, deadline_s: float | None = None
    ) -> M:
        """Make a unary rpc as `ask` does, but retry if it is unknown whether the bridge got the request (T-162)."""
        for wait_s in self._retry_waits_s:
            try:
                return await self._once(method, request, answer, deadline_s)
            except grpc.RpcError as error:
                if status_of(error) not in RETRIED:
                    raise from_status(tool, error, self.target) from None
            await asyncio.sleep(wait_s)
        return await self.ask(method, request, answer, tool=tool, deadline_s=deadline_s)

    def listen(
        self, method: str, request: Message, answer: type[M], *, deadline_s: float | None = None
    ) -> grpc.aio.UnaryStreamCall[Message, M]:
        """Make an rpc whose response is a stream."""
        call = self._methods.get(method)
        if call is None:
            call = self._methods[method] = self._channel.unary_stream(
                _path(method),
                request_serializer=type(request).SerializeToString,
                response_deserializer=answer.FromString,
            )
        made: grpc.aio.UnaryStreamCall[Message, M] = call(request, metadata=self._metadata, timeout=deadline_s)
        return made

    async def close(self) -> None:
        """Cancel the running calls and close the connection."""
        await self._channel.close()

    async def _once(self, method: str, request: Message, answer: type[M], deadline_s: float | None) -> M:
        call = self._methods.get(method)
        if call is None:
            call = self._methods[method] = self._channel.unary_unary(
                _path(method),
                request_serializer=type(request).SerializeToString,
                response_deserializer=answer.FromString,
            )
        made: M = await call(request, metadata=self._metadata, timeout=deadline_s)
        return made


def _path(method: str) -> str:
    return f"/{_SERVICE.full_name}/{_SERVICE.methods_by_name[method].name}"
