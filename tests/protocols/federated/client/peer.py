"""A bare server of federated compute on grpc.aio: it follows a script, and notes what it is sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from invoker._pb.federated import federated_api_pb2 as pb

METHOD = "Session"
SERVICE = "google.internal.federatedml.v2.FederatedTrainingApi"


@dataclass
class PeerCall:
    """The server's end of one conversation.

    Attributes:
        context: Of gRPC.
        heard: Messages that have come.
        ended: Set when the client has half-closed or is gone.
    """

    requests: AsyncIterator[pb.ClientStreamMessage]
    context: Any
    heard: list[pb.ClientStreamMessage] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def hear(self) -> pb.ClientStreamMessage | None:
        """The next message; None: the client has half-closed."""
        try:
            message = await anext(self.requests)
        except StopAsyncIteration:
            self.ended.set()
            return None
        self.heard.append(message)
        return message

    async def say(self, *messages: pb.ServerStreamMessage) -> None:
        """Send messages."""
        for message in messages:
            await self.context.write(message)


Script = Callable[[PeerCall], Awaitable[None]]


@dataclass
class Peer:
    """A running peer.

    Attributes:
        target: ``localhost:port``.
        calls: The conversations, in order.
        metadata: Of each.
    """

    script: Script
    target: str = ""
    calls: list[PeerCall] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)

    async def talk(self, requests: AsyncIterator[pb.ClientStreamMessage], context: Any) -> None:
        """Follow the script."""
        call = PeerCall(aiter(requests), context)
        self.calls.append(call)
        self.metadata.append(dict(context.invocation_metadata()))
        try:
            await self.script(call)
        except asyncio.CancelledError:
            call.ended.set()
            raise


@contextlib.asynccontextmanager
async def serving(script: Script, credentials: grpc.ServerCredentials | None = None) -> AsyncIterator[Peer]:
    """Serve on a free port, in plain text or by TLS."""
    peer = Peer(script)
    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(
        peer.talk, pb.ClientStreamMessage.FromString, pb.ServerStreamMessage.SerializeToString
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
    address = "127.0.0.1:0"
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    peer.target = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield peer
    finally:
        await server.stop(0)
