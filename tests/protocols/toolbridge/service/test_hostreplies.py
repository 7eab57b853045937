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
from invoker.execution.bodies.values import decode_value
from invoker.message import Metadata
from invoker.protocols.toolbridge.errors import BridgeError
from invoker.protocols.toolbridge.service.addresses import Addresses
from invoker.protocols.toolbridge.service.callback import Callbacks
from invoker.protocols.toolbridge.service.hostreplies import failed
from invoker.protocols.toolbridge.wire import TRAILER
from tests.protocols.toolbridge.service.hosts import any_of

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


ODD_NAMES = ("", " ", "a b", "-a", ".a", "gr\u00fc\u00dfe", "a\n", "a" * 65, "a/b", "callback:a")


def listed(*specs: pb.ToolSpec) -> bytes:
    return pb.GetSessionToolsResponse(tools=specs).SerializeToString()


async def test_T021_an_id_of_the_host_wins_over_a_name(raw: Raw, callbacks: Callbacks) -> None:
    raw.tools = listed(pb.ToolSpec(name="a", tool_id="b"), pb.ToolSpec(name="b", tool_id="H.\u00fc"))
    tools = await callbacks.connect("s", raw.address)
    found = {name: one.name for name in ("a", "b", "H.\u00fc", "callback:b") if (one := tools.find(name)) is not None}
    assert found == {"a": "a", "b": "a", "H.\u00fc": "b", "callback:b": "a"}
    tools.close()


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        (b"\xff\xff", "bytes that are not a valid GetSessionToolsResponse"),
        (b"\x0a\x04\x12\x02\xff\xfe", "bytes that are not a valid GetSessionToolsResponse"),
        (b"\x0a\x03\x12\x01a" * 1001, "1001 tools, and the limit is 1000"),
        *((listed(pb.ToolSpec(name=name)), "whose name is not valid: it must be 1 to 64 of") for name in ODD_NAMES),
        *((listed(pb.ToolSpec(name="a", tool_id=one)), "whose id is longer than 256") for one in ("x" * 257, "x\ny")),
        (listed(pb.ToolSpec(name="a", tool_id="1"), pb.ToolSpec(name="a", tool_id="2")), "two tools named 'a'"),
        (listed(pb.ToolSpec(name="a", tool_id="1"), pb.ToolSpec(name="b", tool_id="1")), "two tools with the id '1'"),
    ],
)
async def test_T169_a_host_that_lists_garbage_gets_no_session(
    raw: Raw, callbacks: Callbacks, tools: bytes, words: str
) -> None:
    """T-022: so does one whose tools have odd names, or one name twice. It is no bug of ours, and no list is kept."""
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
        ("plain", [b"\xff"], "bytes that are not a valid ToolCallResponse"),
        ("streams", [b"\xff"], "bytes that are not a valid ToolStreamChunk"),
        ("streams", [total(ODD)], "a value that cannot be read"),
        ("streams", [total(any_of(2**62))], "about to send 4611686018427387904 bytes"),
        ("streams", [total(any_of(5)), chunk(data=ODD)], "a value that cannot be read"),
        (
            "streams",
            [total(any_of(5)), chunk(data=any_of("x"))],
            "another value although bytes of the last one are missing",
        ),
        ("streams", [total(any_of(5)), chunk(data=any_of(b"123456"))], "6 bytes of a value of which 5 are missing"),
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


def numbered(*chunks: pb.ToolStreamChunk) -> list[pb.ToolStreamChunk]:
    for number, one in enumerate(chunks):
        one.sequence = number
    return list(chunks)


def whole(is_numbered: bool = True, says_total: bool = True) -> list[pb.ToolStreamChunk]:
    """A stream of every kind of chunk."""
    data = [pb.ToolStreamChunk(data=any_of(one)) for one in ("a", "b", b"123", b"45", "c")]
    told = pb.ToolStreamChunk(metadata=pb.StreamMetadata(key="progress", value=any_of(1)))
    parts = pb.ToolStreamChunk(metadata=pb.StreamMetadata(key="bytes_total", value=any_of(5)))
    complete = pb.ToolStreamChunk(complete=pb.CompleteSignal(total_chunks=5 * says_total))
    made = [*data[:2], told, parts, *data[2:], complete]
    return numbered(*made) if is_numbered else made


async def streamed(raw: Raw, callbacks: Callbacks, chunks: list[pb.ToolStreamChunk]) -> list[Any]:
    raw.frames = [one.SerializeToString() for one in chunks]
    tools = await callbacks.connect("s", raw.address)
    found = tools.find("streams")
    assert found is not None
    try:
        async with contextlib.aclosing(tools.call(found, [], {}, deadline=None, metadata={})) as values:
            return [decode_value(one) async for one in values]
    finally:
        tools.close()


@pytest.mark.parametrize("is_numbered", [True, False])
@pytest.mark.parametrize("says_total", [True, False])
async def test_T076_T077_a_whole_stream_of_a_host_is_taken(
    raw: Raw, callbacks: Callbacks, is_numbered: bool, says_total: bool
) -> None:
    """Also of one that numbers nothing, or does not say how many chunks there were."""
    values = await streamed(raw, callbacks, whole(is_numbered, says_total))
    assert values == ["a", "b", Metadata("progress", 1), b"12345", "c"]


def broken() -> dict[str, list[pb.ToolStreamChunk]]:
    """What a host may do to a stream of its: each chunk lost, twice, or too early; wrong totals; no end."""
    made = {}
    for at in range(8):
        chunks = whole()
        made[f"lost {at}"] = chunks[:at] + chunks[at + 1 :]
        made[f"twice {at}"] = [*chunks[: at + 1], *chunks[at:]]
        if at < 7:
            made[f"early {at}"] = [*chunks[:at], chunks[at + 1], chunks[at], *chunks[at + 2 :]]
    for at in (0, 1, 4, 5, 6):  # the same without numbers; only data that are lost can be seen
        chunks = whole(is_numbered=False)
        made[f"lost {at} without numbers"] = chunks[:at] + chunks[at + 1 :]
    made["no end"] = whole()[:-1]
    made["too many"] = numbered(*whole()[:-1], pb.ToolStreamChunk(complete=pb.CompleteSignal(total_chunks=4)))
    made["too few"] = numbered(*whole()[:-1], pb.ToolStreamChunk(complete=pb.CompleteSignal(total_chunks=6)))
    short = whole(is_numbered=False, says_total=False)
    made["bytes missing"] = short[:5] + short[7:]
    made["bytes missing before others"] = [*short[:5], short[3], *short[4:]]
    return made


@pytest.mark.parametrize("name", broken())
async def test_T076_a_stream_with_a_gap_is_no_complete_one(raw: Raw, callbacks: Callbacks, name: str) -> None:
    """Whatever is missing, the function hears of it, and that it is the host's fault."""
    if name == "twice 7":
        return  # nothing is read behind the end
    with pytest.raises(NestedError) as caught:
        await streamed(raw, callbacks, broken()[name])
    error = caught.value
    assert (error.kind, error.details["remote"]) == ("InternalError", "true")
    assert error.details["code"] in ("callback_incomplete", "callback_failed")


@pytest.mark.parametrize(
    ("trailer", "kind", "text"),
    [
        (pb.ErrorInfo(type="TimeoutError", message="slow").SerializeToString(), "TimeoutError", "slow"),
        (b"\xff", "ToolNotFound", "no tool"),
    ],
)
def test_T173_the_error_of_a_failed_rpc_is_that_of_its_trailer_or_of_its_status(
    trailer: bytes, kind: str, text: str
) -> None:
    metadata = grpc.aio.Metadata((TRAILER, trailer))
    error = failed(grpc.aio.AioRpcError(grpc.StatusCode.NOT_FOUND, grpc.aio.Metadata(), metadata, "no tool"))
    assert (error.kind, error.detail, error.details["remote"]) == (kind, text, "true")
