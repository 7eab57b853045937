"""StreamTool at each transport."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest

from invoker import Metadata
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.service.rpcs import SERVICE
from tests.transports.bridge import TRANSPORTS, Bridged, packed, unpacked
from tests.transports.riff import eventually, form

pytestmark = pytest.mark.parametrize("kind", TRANSPORTS)


def count(n: int) -> Iterator[int]:
    for one in range(n):
        yield one
        if one == 1:
            yield Metadata("progress", "half")


async def acount(n: int) -> AsyncIterator[int]:
    for one in range(n):
        yield one
        if one == 1:
            yield Metadata("progress", "half")


acount.__name__ = "count"


def stream(served: Bridged, tool: str, *args: Any, **more: Any) -> list[pb.ToolStreamChunk]:
    made: list[pb.ToolStreamChunk] = served.rpc(
        "StreamTool", session_id="s1", tool_id=tool, args=[packed(one) for one in args], **more
    )
    return made


def begin(served: Bridged, tool: str, *args: Any, **config: Any) -> Any:
    """A stream that the test reads as it likes."""
    request = pb.ToolStreamRequest(
        session_id="s1", tool_id=tool, args=[packed(one) for one in args], config=pb.StreamConfig(**config)
    )
    make = served.channel.unary_stream(
        f"/{SERVICE}/StreamTool", pb.ToolStreamRequest.SerializeToString, pb.ToolStreamChunk.FromString
    )
    return make(request, timeout=60)


def test_T076_T084_items_come_as_chunks(kind):
    """With metadata in their place, and one end."""
    with Bridged(kind, form(kind, count, acount)) as served:
        served.session()
        chunks = stream(served, "count", 3, stream_id="q")
        assert [one.WhichOneof("content") for one in chunks] == ["data", "data", "metadata", "data", "complete"]
        assert [one.sequence for one in chunks] == [0, 1, 2, 3, 4]
        assert chunks[-1].complete.total_chunks == 3
        assert unpacked(chunks[2].metadata.value) == "half"
        assert unpacked(served.execute("count", 3).result) == [0, 1, 2]


def test_T078_an_error_comes_behind_the_data(kind):
    """The rpc ends with OK."""

    def boom(n: int) -> Iterator[int]:
        yield from range(n)
        raise ValueError("no")

    async def aboom(n: int) -> AsyncIterator[int]:
        for one in range(n):
            yield one
        raise ValueError("no")

    aboom.__name__ = "boom"
    with Bridged(kind, form(kind, boom, aboom)) as served:
        served.session()
        chunks = stream(served, "boom", 3)
        assert [one.WhichOneof("content") for one in chunks] == ["data", "data", "data", "error"]
        assert (chunks[-1].error.type, chunks[-1].error.message) == ("InternalError", "no")


def test_T085_a_plain_function_gives_one_chunk(kind):
    """And the end."""

    def square(x: int) -> int:
        return x * x

    async def asquare(x: int) -> int:
        return x * x

    asquare.__name__ = "square"
    with Bridged(kind, form(kind, square, asquare)) as served:
        served.session()
        data, complete = stream(served, "square", 5)
        assert unpacked(data.data) == 25
        assert complete.complete.total_chunks == 1


def test_T080_bytes_come_whole(kind):
    """In chunks of 64 KiB."""
    data = bytes(range(256)) * 4096

    def blob(n: int) -> Iterator[bytes]:
        yield data

    async def ablob(n: int) -> AsyncIterator[bytes]:
        yield data

    ablob.__name__ = "blob"
    with Bridged(kind, form(kind, blob, ablob)) as served:
        served.session()
        chunks = stream(served, "blob", 1)
        assert b"".join(unpacked(one.data) for one in chunks if one.HasField("data")) == data
        assert chunks[-1].complete.total_chunks == 16


@pytest.mark.parametrize("backpressure_enabled", [False, True])
def test_T080_bytes_above_every_limit_come_whole(kind, backpressure_enabled):
    """Above the largest message of the bridge, and above what may wait to be sent; small values stand around them."""
    data = bytes(range(256)) * (24 << 12)

    def blob(n: int) -> Iterator[bytes]:
        for _ in range(n):
            yield b"small"
            yield data

    async def ablob(n: int) -> AsyncIterator[bytes]:
        for _ in range(n):
            yield b"small"
            yield data

    ablob.__name__ = "blob"
    with Bridged(kind, form(kind, blob, ablob)) as served:
        served.session()
        rest = bytearray()
        call = begin(served, "blob", 2, backpressure_enabled=backpressure_enabled)
        for chunk in call:
            assert not chunk.HasField("error"), chunk.error
            if chunk.HasField("data"):
                rest += unpacked(chunk.data)
        assert bytes(rest) == (b"small" + data) * 2


class Endless:
    """A tool that gives 64 KiB again and again, in both forms."""

    def __init__(self, limit: int = 1 << 30) -> None:
        self.given = 0
        self.closed = threading.Event()
        self.limit = limit

    def of(self, kind: str) -> Any:
        def endless(n: int) -> Iterator[bytes]:
            try:
                while self.given < self.limit:
                    self.given += 1
                    yield b"x" * 65_536
            finally:
                self.closed.set()

        async def aendless(n: int) -> AsyncIterator[bytes]:
            try:
                while self.given < self.limit:
                    self.given += 1
                    yield b"x" * 65_536
                    await asyncio.sleep(0)
            finally:
                self.closed.set()

        aendless.__name__ = "endless"
        return form(kind, endless, aendless)


def test_T081_a_stalled_reader_stalls_the_generator(kind):
    """What is under way in the transport, and little more, was made."""
    tool = Endless()
    with Bridged(kind, tool.of(kind)) as served:
        served.session()
        call = begin(served, "endless", 1, backpressure_enabled=True, buffer_size=4)
        next(call)
        seen = -1

        def stands_still() -> bool:
            nonlocal seen
            before, seen = seen, tool.given
            threading.Event().wait(0.2)
            return before == tool.given

        assert eventually(stands_still)
        assert tool.given < 400
        call.cancel()
        assert tool.closed.wait(20)


def test_T082_without_back_pressure_too_much_ends_the_stream(kind):
    """Ten megabytes wait at most; all of them come, and the error behind."""
    tool = Endless(1000)
    with Bridged(kind, tool.of(kind)) as served:
        served.session()
        call = begin(served, "endless", 1)
        assert tool.closed.wait(20)
        assert tool.given < 600
        chunks = list(call)
        assert chunks[-1].error.details["code"] == "stream_buffer"
        assert [one.sequence for one in chunks] == list(range(len(chunks)))
        assert 10_000_000 // 65_536 < len(chunks) <= tool.given + 1


def test_T083_a_cancel_closes_the_generator(kind):
    """Within a second; its session has nothing to do any more."""
    closed, entered = threading.Event(), threading.Event()

    def ticks(n: int) -> Iterator[int]:
        try:
            while True:
                entered.set()
                yield 1
                threading.Event().wait(0.05)
        finally:
            closed.set()

    async def aticks(n: int) -> AsyncIterator[int]:
        try:
            yield 1
            entered.set()
            await asyncio.sleep(3600)
        finally:
            closed.set()

    aticks.__name__ = "ticks"
    with Bridged(kind, form(kind, ticks, aticks)) as served:
        served.session()
        call = begin(served, "ticks", 1)
        next(call)
        assert entered.wait(20)
        call.cancel()
        assert closed.wait(1.0 if kind != "aio" else 2.0)
        assert eventually(lambda: not served.bridge.host_sessions.sessions["s1"].operations)
        with pytest.raises(grpc.RpcError):
            list(call)


def test_T014_a_forced_clean_up_ends_a_stream(kind):
    """With an error chunk; its ``finally`` has run."""
    tool = Endless()
    with Bridged(kind, tool.of(kind)) as served:
        served.session()
        call = begin(served, "endless", 1, backpressure_enabled=True)
        next(call)
        answers: list[Any] = []
        clean = threading.Thread(
            target=lambda: answers.append(served.rpc("CleanupSession", session_id="s1", force=True)), name="clean"
        )
        clean.start()
        chunks = list(call)
        assert chunks[-1].error.details["code"] == "cleaned"
        clean.join(20)
        assert answers[0].success
        assert tool.closed.is_set()


def test_T087_a_stream_that_takes_too_long_is_told(kind):
    """A tool may say so itself."""
    from invoker import function

    @function(timeout_s=0.2)
    def slow(n: int) -> Iterator[int]:
        yield 1
        threading.Event().wait(3)

    @function(timeout_s=0.2, name="slow")
    async def aslow(n: int) -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(3600)

    with Bridged(kind, form(kind, slow, aslow)) as served:
        served.session()
        chunks = stream(served, "slow", 1)
        assert [one.WhichOneof("content") for one in chunks] == ["data", "error"]
        assert chunks[-1].error.type == "TimeoutError"
        assert chunks[-1].error.details["timeout_ms"] == "200"
