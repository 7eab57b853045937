"""Attacks on the tool bridge over real gRPC: each fails alone, and what it took is given back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from benchmarks.http2 import Connection, _request_headers
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.client import ToolBridge, ToolExecutionError
from invoker.client.toolbridge import ToolSession
from tests.fuzz.toolbridge_requests import nested
from tests.serving import Served, serving
from tests.transports.bridge import SERVICE
from tests.transports.riff import PATH, data, start

pytestmark = pytest.mark.timeout(120)

MIB = 1 << 20
SETTINGS = {
    "INVOKER_PROTOCOLS": "riff,toolbridge",
    # What is freed goes back to the system, so that what is held can be seen.
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "MALLOC_MMAP_THRESHOLD_": "65536",
}


ASYNC = "functions.conformance_toolbridge"


@pytest.fixture(scope="module", params=[ASYNC, "tests.sync_toolbridge"])
def served(request: pytest.FixtureRequest) -> Any:
    with serving(request.param, env=SETTINGS) as running:
        yield running


@pytest.fixture
async def session(served: Served) -> AsyncIterator[ToolSession]:
    async with ToolBridge(served.grpc) as bridge, bridge.session() as made:
        yield made


async def marked(session: ToolSession, key: str) -> int:
    found: int = await session.call("marks", key)
    return found


async def reaches(session: ToolSession, key: str, count: int) -> None:
    """Ask until a mark is there; the limit of the test ends what never comes."""
    while await marked(session, key) < count:
        pass


async def execute(address: str, session: ToolSession, *values: AnyMessage) -> pb.ToolCallResponse:
    """A call of `echo` with values that the client would not pack."""
    request = pb.ToolCallRequest(session_id=session.id, tool_id="echo", args=values)
    async with grpc.aio.insecure_channel(address, options=[("grpc.max_send_message_length", -1)]) as channel:
        call: Any = channel.unary_unary("/dspex.bridge.SnakepitBridge/ExecuteTool")
        return pb.ToolCallResponse.FromString(await call(request.SerializeToString()))


def listed(payload: bytes) -> AnyMessage:
    return AnyMessage(type_url="type.googleapis.com/google.protobuf.ListValue", value=payload)


async def test_T053_nested_lists_are_refused(served: Served, session: ToolSession) -> None:
    """65 and 100,000 levels alike; the next call works."""
    for levels in (65, 1000, 100_000):
        answer = await execute(served.grpc, session, listed(nested(levels)))
        assert answer.error.details["code"] == "too_complex", levels
    answer = await execute(served.grpc, session, listed(nested(60)))
    assert answer.success
    assert await session.call("add", 1) == 3


async def test_T063_a_text_of_100_mb_does_not_get_in(served: Served, session: ToolSession) -> None:
    """The rpc is refused before the text is in memory."""
    text = AnyMessage(type_url="type.googleapis.com/google.protobuf.StringValue", value=bytes(100 * MIB))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await execute(served.grpc, session, text)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await session.call("add", 1) == 3


async def test_T163_requests_of_10_mb_get_in_without_a_setting(served: Served, session: ToolSession) -> None:
    """In and out by default, while a frame of riff may have 4 MiB beside it (R-121)."""
    most = 10 * MIB - 1024
    assert await session.call("size", bytes(most)) == most
    assert len(await session.call("octets", most)) == most
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        call: Any = channel.stream_stream(PATH)
        frames = [start("application/octet-stream"), data(bytes(5 * MIB))]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in call(iter(frames)):
                pass
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "4194304" in str(caught.value.details())


async def test_T083_a_storm_of_cancels_leaves_nothing(session: ToolSession) -> None:
    """Three hundred streams that are left after some items: each generator is closed."""
    before = {key: await marked(session, f"endless.{key}") for key in ("calls", "closed")}

    async def left() -> None:
        async with session.stream("endless") as stream:
            for _ in range(3):
                await anext(stream)

    for _ in range(10):
        await asyncio.gather(*(left() for _ in range(30)))
    calls = await marked(session, "endless.calls") - before["calls"]
    await reaches(session, "endless.closed", before["closed"] + calls)
    assert calls >= 300
    assert (await session.info()).active_operations == 0


async def test_T081_slow_readers_of_streams_hold_the_tool_back(session: ToolSession) -> None:
    """Twenty streams of 64 KiB blocks that nobody reads: the generators wait.

    How much they make before that depends on the window of the client, which grows with the time that a packet takes.
    """
    before = await marked(session, "blocks.items")
    streams = [session.stream("blocks", 10_000, 65_536) for _ in range(20)]
    try:
        for stream in streams:
            await anext(stream)
        made, earlier = 0, -1
        while made != earlier:
            earlier = made
            await asyncio.sleep(0.3)
            made = await marked(session, "blocks.items") - before
        assert made < 20 * 5_000
    finally:
        for stream in streams:
            await stream.close()


async def test_T130_slow_readers_of_watches_get_the_latest(session: ToolSession) -> None:
    """A watch that is not read while a variable of 100 kB is written 500 times: the last value comes."""
    watch = session.variables.watch("x", initial=True)
    await session.variables.set("x", -1)
    assert (await anext(watch)).value == -1
    for number in range(500):
        await session.variables.set("x", [number, "x" * 100_000])
    await session.variables.set("x", "last")
    async with watch:
        while (await anext(watch)).value != "last":
            pass


@pytest.mark.parametrize("served", [ASYNC], indirect=True)
async def test_T012_ten_thousand_sessions_are_the_most(served: Served) -> None:
    """One more is refused, those that are there work, and afterwards there is room again.

    The bridge keeps them, and asks no function: whether those are async makes no difference.
    All on one connection: rpcs that are over must let go of it, or gRPC refuses further ones after 20,000.
    """
    with closing(Connection(served.grpc)) as connection:
        connection.settle()
        made, refused = _crowded(served, connection)
        assert refused == {"session_quota"}
        assert 9_900 < len(made) <= 10_000
        async with ToolBridge(served.grpc) as bridge:
            with pytest.raises(ToolExecutionError) as caught:
                await bridge.session("one more").open()
            assert caught.value.code == "session_quota"
            assert await bridge.session(made[0]).call("add", 1) == 3
        left = [pb.CleanupSessionRequest(session_id=name) for name in made]
        replies = _asked(served, connection, "CleanupSession", left)
        assert all(pb.StatusResponse.FromString(one).success for one in replies)
    async with ToolBridge(served.grpc) as bridge, bridge.session() as session:
        assert await session.call("add", 1) == 3


def _crowded(served: Served, connection: Connection) -> tuple[list[str], set[str]]:
    """The names of sessions that were made until some were refused, and why they were."""
    made: list[str] = []
    refused: set[str] = set()
    while not refused and len(made) < 11_000:
        names = [f"crowd-{len(made)}-{one}" for one in range(100)]
        asked = [pb.InitializeSessionRequest(session_id=name) for name in names]
        for name, one in zip(names, _asked(served, connection, "InitializeSession", asked), strict=True):
            response = pb.InitializeSessionResponse.FromString(one)
            if response.success:
                made.append(name)
            else:
                refused.add(response.error.details["code"])
    return made, refused


def _asked(served: Served, connection: Connection, rpc: str, requests: list[Any]) -> list[bytes]:
    """The responses to these requests on one connection, a few at once; gRPC's own client takes five times as long."""
    connection._headers = _request_headers(served.grpc, f"/{SERVICE}/{rpc}")
    replies: list[bytes] = []
    for start_at in range(0, len(requests), 20):
        streams = []
        for one in requests[start_at : start_at + 20]:
            body = one.SerializeToString()
            stream = connection.open(b"\0" + len(body).to_bytes(4, "big") + body, half_close=True)
            stream.kept = bytearray()
            streams.append(stream)
        while not all(one.ended for one in streams):
            connection.turn()
        for one in streams:
            assert one.status == "0", one.status
            replies.append(bytes(one.kept or b"")[5:])
            del connection.streams[one.id]
    return replies
