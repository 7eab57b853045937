"""`Callbacks`: the other direction: this process calls the tools of a host, as a client of the host's own bridge.

There is one channel for each address, which all sessions of that address share; it is closed with the last of them. A
session lists the host's tools once, when it begins. The values that its tools give come as serialised ``Any``s.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError as WireError

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import ANY
from invoker.core.budget import ProcessBudget, Share
from invoker.execution.bodies.runner import later
from invoker.message import EMPTY, METADATA, Headers, Message
from invoker.protocols.toolbridge.service.addresses import Addresses
from invoker.protocols.toolbridge.service.hostreplies import (
    Count,
    Parts,
    by_name,
    failed,
    incomplete,
    read,
    remote,
    unlisted,
)

PREFIX: Final = "callback:"
"""The prefix of the names of the host's tools (T-171)."""

_PATH: Final = f"/{pb.DESCRIPTOR.services_by_name['SnakepitBridge'].full_name}/"
_LIST_S: Final = 5.0
_MOST_TOOLS: Final = 1000
"""The most tools of a host; they are kept as long as its session."""
_COPIES: Final = 3
"""Memory of a list of tools, as a multiple of its bytes: the list as read, with prefixes, and the messages around
it."""

_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),  # the address was checked, but a proxy would connect to another one
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),  # the connection is closed with its channel
    ("grpc.http2.bdp_probe", 0),  # without this a host gets a window of about 12 MiB for each unread stream
    ("grpc.http2.lookahead_bytes", 1024 * 1024),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
)
_WELL: Final = {
    grpc.ChannelConnectivity.READY: True,
    grpc.ChannelConnectivity.TRANSIENT_FAILURE: False,
    grpc.ChannelConnectivity.SHUTDOWN: False,
}


class Callbacks:
    """The channels of one process.

    Args:
        addresses: The addresses that may be called.
        message_bytes: Largest request and response.
        memory: The budget of the process; None: a budget of the default size.
    """

    def __init__(self, addresses: Addresses, message_bytes: int, memory: ProcessBudget | None = None) -> None:
        self._memory = memory or ProcessBudget()
        self._addresses = addresses
        sizes = [(f"grpc.max_{way}_message_length", message_bytes) for way in ("send", "receive")]
        self._options = (*_OPTIONS, *sizes)
        self._most_bytes = message_bytes
        self._links: dict[str, _Link] = {}

    async def connect(self, session_id: str, address: str) -> HostTools:
        """Connect to a host, and list its tools.

        Raises:
            BridgeError: The address is forbidden (T-170), or no server there lists tools within 5 s (T-169).
            Overloaded: The process holds too much already for the list of tools.
        """
        target = await self._addresses.target(address)
        link = self._links.get(target)
        if link is None:
            link = self._links[target] = _Link(grpc.aio.insecure_channel(target, self._options))
        link.users += 1
        share = self._memory.share()
        tools = HostTools(session_id, link, lambda: self._release(target, link), self._most_bytes, share)
        try:
            await tools.list()
        except BaseException:
            tools.close()
            raise
        return tools

    def _release(self, target: str, link: _Link) -> None:
        link.users -= 1
        if not link.users:
            del self._links[target]
            link.closing = asyncio.ensure_future(link.channel.close())

    def health(self) -> dict[str, bool | None]:
        """Whether each host can be reached; None while this is not known. The call starts to find it out (T-152)."""
        links = self._links.items()
        return {f"{PREFIX}{target}": _WELL.get(link.channel.get_state(try_to_connect=True)) for target, link in links}

    async def close(self) -> None:
        """Close the connections to all hosts."""
        links, self._links = list(self._links.values()), {}
        for link in links:
            await link.channel.close()


class _Link:
    """A channel with the number of sessions that use it."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self.users = 0
        self.closing: asyncio.Future[None] | None = None


class HostTools:
    """The tools of one host session's host.

    Attributes:
        specs: The tools that the host has listed, with names that begin with `PREFIX`.
    """

    def __init__(
        self, session_id: str, link: _Link, release: Callable[[], None], most_bytes: int, share: Share
    ) -> None:
        self._share = share
        self._most_bytes = most_bytes
        self.specs: tuple[pb.ToolSpec, ...] = ()
        self._session_id = session_id
        self._channel = link.channel
        self._loop = asyncio.get_running_loop()
        self._release: Callable[[], None] | None = release
        self._tools: dict[str, pb.ToolSpec] = {}

    async def list(self) -> None:
        """Ask the host for its tools.

        Raises:
            BridgeError: The host does not answer within 5 s, or its answer is no list of tools.
        """
        ask: Any = self._channel.unary_unary(
            f"{_PATH}GetSessionTools",
            request_serializer=pb.GetSessionToolsRequest.SerializeToString,
        )
        try:
            data = await ask(pb.GetSessionToolsRequest(session_id=self._session_id), timeout=_LIST_S)
        except grpc.aio.AioRpcError as error:
            raise unlisted(f"within {_LIST_S:g} s: {error.code().name}", "did not list its tools") from None
        try:
            response = pb.GetSessionToolsResponse.FromString(data)
        except WireError:
            raise unlisted("with bytes that are not a valid GetSessionToolsResponse") from None
        self._share.grow(_COPIES * len(data))
        if len(response.tools) > _MOST_TOOLS:
            raise unlisted(f"with {len(response.tools)} tools, and the limit is {_MOST_TOOLS}")
        self._tools = by_name(response.tools)
        self.specs = tuple(_renamed(one) for one in sorted(response.tools, key=lambda one: one.name))

    def find(self, name: str) -> pb.ToolSpec | None:
        """A tool by its name or id, with or without the prefix, as the host has listed it."""
        return self._tools.get(name.removeprefix(PREFIX))

    async def call(
        self,
        tool: pb.ToolSpec,
        args: Sequence[bytes],
        kwargs: Mapping[str, bytes],
        *,
        deadline: float | None,
        metadata: Mapping[str, str],
        begun: Callable[[Callable[[], object]], None] = lambda _: None,
    ) -> AsyncGenerator[Message[bytes], None]:
        """Call a tool of the host; gives each of its values as a serialised ``Any``, and its metadata by the header.

        Args:
            tool: The tool, as found by `find`.
            args: By position, each a serialised ``Any``.
            kwargs: By keyword, likewise.
            deadline: The deadline on the clock of ``time.monotonic``, or None.
            metadata: The metadata of the rpc.
            begun: Called with a function that cancels the rpc, once that has begun.

        Raises:
            NestedError: The call failed; the error is the host's (T-173).
        """
        given = [AnyMessage.FromString(one) for one in args]
        named = {key: AnyMessage.FromString(one) for key, one in kwargs.items()}
        timeout_s = None if deadline is None else max(0.0, deadline - time.monotonic())
        request: dict[str, Any] = {
            "session_id": self._session_id,
            "tool_id": tool.tool_id or tool.name,
            "args": given,
            "kwargs": named,
        }
        sent = tuple(metadata.items())
        try:
            if self.gives_stream(tool):
                asked = pb.ToolStreamRequest(**request)
                async with contextlib.aclosing(self._stream(asked, timeout_s, sent, begun)) as messages:
                    async for message in messages:
                        yield message
                return
            whole = pb.ToolCallRequest(**request, timeout_ms=int((timeout_s or 0) * 1000))
            ask: Any = self._channel.unary_unary(
                f"{_PATH}ExecuteTool",
                request_serializer=pb.ToolCallRequest.SerializeToString,
            )
            rpc = ask(whole, timeout=timeout_s, metadata=sent)
            begun(rpc.cancel)
            response = read(pb.ToolCallResponse, await rpc)
            if not response.success:
                raise remote(response.error)
            yield Message(response.result.SerializeToString(), EMPTY, ANY)
        except grpc.aio.AioRpcError as error:
            raise failed(error) from None

    def gives_stream(self, tool: pb.ToolSpec) -> bool:
        """Whether a tool is called by StreamTool."""
        return tool.type == pb.STREAMING

    async def _stream(
        self,
        request: pb.ToolStreamRequest,
        timeout_s: float | None,
        metadata: Any,
        begun: Callable[[Callable[[], object]], None],
    ) -> AsyncGenerator[Message[bytes], None]:
        ask: Any = self._channel.unary_stream(
            f"{_PATH}StreamTool",
            request_serializer=pb.ToolStreamRequest.SerializeToString,
        )
        rpc = ask(request, timeout=timeout_s, metadata=metadata)
        begun(rpc.cancel)
        parts, count = Parts(self._most_bytes), Count()
        try:
            async for data in rpc:
                chunk = read(pb.ToolStreamChunk, data)
                what = chunk.WhichOneof("content")
                count.take(chunk, what)
                if what == "data":
                    if (payload := parts.whole(chunk.data.SerializeToString())) is not None:
                        yield Message(payload, EMPTY, ANY)
                elif what == "metadata":
                    if not parts.begin(chunk.metadata):
                        payload = chunk.metadata.value.SerializeToString()
                        yield Message(payload, Headers({METADATA: chunk.metadata.key}), ANY)
                elif what == "error":
                    raise remote(chunk.error)
                elif what == "complete":
                    parts.check()
                    return
        finally:
            rpc.cancel()
        raise incomplete("has ended the stream of its tool without saying that it is complete")

    def close(self) -> None:
        """Close the tools, since the session is gone; may be called from any thread."""
        release, self._release = self._release, None
        # the session and its scope refer to each other, so this object stays alive for a while
        self.specs, self._tools = (), {}
        self._share.close()
        if release is not None:
            later(self._loop, release)

    def __del__(self) -> None:
        """Release the channel if the session was never made."""
        self.close()


def _renamed(spec: pb.ToolSpec) -> pb.ToolSpec:
    made = pb.ToolSpec()
    made.CopyFrom(spec)
    made.name = PREFIX + spec.name
    return made
