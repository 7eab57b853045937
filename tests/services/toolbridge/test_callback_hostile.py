"""Hosts that are called back and answer garbage, or too much: the call fails by itself, and says whose fault it is."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.errors import NestedError
from invoker.protocols.toolbridge.errors import BridgeError
from invoker.services.toolbridge.addresses import Addresses
from invoker.services.toolbridge.callback import Callbacks
from tests.services.toolbridge.hosts import any_of

TOOLS = [pb.ToolSpec(name="plain"), pb.ToolSpec(name="streams", type=pb.STREAMING)]
ODD = AnyMessage(type_url="odd", value=b"\xff")


class Raw(grpc.GenericRpcHandler):
    """A host that answers with the bytes of a test."""

    def __init__(self) -> None:
        self.tools = pb.GetSessionToolsResponse(tools=TOOLS).SerializeToString()
        self.frames: list[bytes] = []
        self.address = ""

    def service(self, details: Any) -> Any:
        if details.method.endswith("/StreamTool"):
            return grpc.unary_stream_rpc_method_handler(self._stream)
        return grpc.unary_unary_rpc_method_handler(self._list if details.method.endswith("Tools") else self._call)

    async def _list(self, _request: bytes, _context: Any) -> bytes:
        return self.tools

    async def _call(self, _request: bytes, _context: Any) -> bytes:
        return self.frames[0]

    async def _stream(self, _request: bytes, _context: Any) -> AsyncIterator[bytes]:
        for frame in self.frames:
            yield frame


@pytest.fixture
async def raw() -> AsyncIterator[Raw]:
    server, made = grpc.aio.server(options=(("grpc.so_reuseport", 0),)), Raw()
    server.add_generic_rpc_handlers((made,))
    made.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    yield made
    await server.stop(0)


@pytest.fixture
async def callbacks() -> AsyncIterator[Callbacks]:
    made = Callbacks(Addresses("loopback"), 1024 * 1024)
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        (b"\xff\xff", "what is no GetSessionToolsResponse"),
        (b"\x0a\x04\x12\x02\xff\xfe", "what is no GetSessionToolsResponse"),
        (b"\x0a\x03\x12\x01a" * 1001, "1001 tools, and 1000 are the most"),
    ],
)
async def test_T169_a_host_that_lists_garbage_gets_no_session(
    raw: Raw, callbacks: Callbacks, tools: bytes, words: str
) -> None:
    """It is no bug of ours, and its list is not kept."""
    raw.tools = tools
    with pytest.raises(BridgeError, match=words) as caught:
        await callbacks.connect("s", raw.address)
    assert caught.value.details["code"] == "callback_unreachable"
    raw.tools = tools[:5] if len(tools) > 1000 else b""
    (await callbacks.connect("s", raw.address)).close()


def chunk(**content: Any) -> bytes:
    return pb.ToolStreamChunk(**content).SerializeToString()


def total(value: AnyMessage) -> bytes:
    return chunk(metadata=pb.StreamMetadata(key="bytes_total", value=value))


@pytest.mark.parametrize(
    ("tool", "frames", "words"),
    [
        ("plain", [b"\xff"], "what is no ToolCallResponse"),
        ("streams", [b"\xff"], "what is no ToolStreamChunk"),
        ("streams", [total(ODD)], "what cannot be read"),
        ("streams", [total(any_of(2**62))], "about to send 4611686018427387904 bytes"),
        ("streams", [total(any_of(5)), chunk(data=ODD)], "what cannot be read"),
        ("streams", [total(any_of(5)), chunk(data=any_of("x"))], "no bytes where some are missing"),
    ],
)
async def test_T173_a_host_that_answers_garbage_is_told_as_such(
    raw: Raw, callbacks: Callbacks, tool: str, frames: list[bytes], words: str
) -> None:
    """Neither as a bug of ours nor as a wrong argument of the caller's."""
    raw.frames = frames
    tools = await callbacks.connect("s", raw.address)
    found = tools.find(tool)
    assert found is not None
    with pytest.raises(NestedError, match=words) as caught:
        await anext(tools.call(found, [], {}, deadline=None, metadata={}))
    error = caught.value
    told = (error.kind, error.details["code"], error.details["remote"])
    assert told == ("InternalError", "callback_failed", "true")
    tools.close()


async def test_bytes_in_chunks_are_put_together_up_to_the_largest_message(raw: Raw, callbacks: Callbacks) -> None:
    """One byte less than what is refused."""
    half = b"x" * 512 * 1024
    raw.frames = [total(any_of(2 * len(half))), *[chunk(data=any_of(half))] * 2, chunk(complete=pb.CompleteSignal())]
    tools = await callbacks.connect("s", raw.address)
    found = tools.find("streams")
    assert found is not None
    async with contextlib.aclosing(tools.call(found, [], {}, deadline=None, metadata={})) as values:
        sizes = [len(one.payload) async for one in values]
    assert len(sizes) == 1
    assert sizes[0] > 2 * len(half)
    tools.close()
