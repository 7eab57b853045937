"""The grpc.aio door, with grpc's own client on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import quote

import grpc
import grpc.aio
import pytest

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.errors import StartupError
from invoker.transports.details import DETAIL_BYTES, clip
from invoker.transports.grpc import GrpcDoor
from tests.drive.memory import driver_of

PATH = "/streaming.Riff/Invoke"


async def agen(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for x in xs:
        yield x


def start(accept="*/*"):
    return pb.InputSignal(start=pb.StartFrame(expectedContentTypes=[accept])).SerializeToString()


def data(payload):
    return pb.InputSignal(data=pb.InputFrame(payload=payload)).SerializeToString()


class Opened:
    def __init__(self, *functions, **settings):
        self.driver = driver_of(*functions)
        self.door = GrpcDoor(self.driver, **settings)

    async def __aenter__(self):
        self.port = self.door.bind("127.0.0.1:0")
        await self.door.start()
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{self.port}")
        return self

    async def __aexit__(self, *_):
        await self.channel.close()
        await self.door.stop(0)
        await self.driver.left(5)
        self.driver.threads.close()

    def call(self, **options):
        return self.channel.stream_stream(options.pop("path", PATH))(**options)


async def test_R006_a_taken_port_is_refused():
    """Two servers never share a port by accident; the text names the address."""
    async with Opened(agen) as first:
        second = GrpcDoor(first.driver)
        with pytest.raises(StartupError, match=rf"127\.0\.0\.1:{first.port} .*in use"):
            second.bind(f"127.0.0.1:{first.port}")
        await second.stop(0)


async def test_R007_other_methods_are_unimplemented():
    """Only /streaming.Riff/Invoke is served."""
    async with Opened(agen) as opened:
        for path in ("/streaming.Riff/Other", "/other.Riff/Invoke"):
            call = opened.call(path=path)
            assert await call.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_R133_headers_leave_as_soon_as_the_start_frame_is_accepted():
    """The client sees initial metadata before the first output."""
    async with Opened(agen) as opened:
        call = opened.call()
        await call.write(start())
        await asyncio.wait_for(call.initial_metadata(), 5)
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK


async def test_R109_a_cancelled_aggregator_never_commits():
    """A cancel first looks like an end; the sum of a truncated stream must not be taken for the whole."""
    committed, gone = [], asyncio.Semaphore(0)

    async def total(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            values = [x async for x in xs]
            committed.append(len(values))
            yield b"done"
        finally:
            gone.release()

    async with Opened(total) as opened:
        for _ in range(20):
            call = opened.call()
            await call.write(start())
            await call.initial_metadata()
            for _ in range(3):
                await call.write(data(b"1"))
            call.cancel()
            await asyncio.wait_for(gone.acquire(), 5)
        assert committed == []


async def test_R120_garbage_on_the_wire_fails_this_call_only():
    """Bytes that are no protobuf message are a Protocol Violation."""
    async with Opened(agen) as opened:
        call = opened.call()
        await call.write(b"\xff\xff\xff")
        assert await call.code() is grpc.StatusCode.UNKNOWN
        assert (await call.details()).startswith("Invoker: Protocol Violation")


async def test_R121_an_oversize_frame_is_an_error_for_the_function_too():
    """The client gets RESOURCE_EXHAUSTED; the function does not see a clean end."""
    seen, left = [], asyncio.Event()

    async def watch(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for _ in xs:
                seen.append("value")
            seen.append("end")
            yield b""
        finally:
            left.set()

    async with Opened(watch, max_message_bytes=1000) as opened:
        call = opened.call()
        await call.write(start())
        await call.initial_metadata()
        await call.write(data(bytes(5000)))
        assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await asyncio.wait_for(left.wait(), 5)
        assert seen == []


async def test_R122_an_output_too_large_for_the_peer_ends_that_call_cleanly():
    """It is the peer's limit: its call fails, the generator is closed, the server lives on."""
    closed = asyncio.Event()

    async def large(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for x in xs:
                yield x
        finally:
            closed.set()

    async with Opened(large) as opened:
        options = [("grpc.max_receive_message_length", 1000)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{opened.port}", options=options) as narrow:
            call = narrow.stream_stream(PATH)()
            await call.write(start())
            await call.write(data(bytes(5000)))
            with pytest.raises(grpc.aio.AioRpcError):
                await call.read()
            assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await asyncio.wait_for(closed.wait(), 5)
        call = opened.call()
        await call.write(start())
        await call.write(data(b"x"))
        await call.done_writing()
        assert pb.OutputSignal.FromString(await call.read()).data.payload == b"x"
        assert await call.code() is grpc.StatusCode.OK


async def test_R124_the_deadline_of_the_call_reaches_the_function():
    """The client sees DEADLINE_EXCEEDED and the function is stopped."""
    stopped = asyncio.Event()

    async def forever(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            await asyncio.sleep(3600)
            yield b""
        finally:
            stopped.set()

    async with Opened(forever) as opened:
        call = opened.call(timeout=0.2)
        await call.write(start())
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await asyncio.wait_for(stopped.wait(), 5)


@pytest.mark.parametrize("text", ["x" * 20_000, "日" * 20_000, "\n%\x00" * 5000, "a\ud800b" * 3000, "", "short"])
def test_R118_a_status_text_keeps_its_limit_on_a_character_boundary(text):
    """At most 4096 bytes once percent-encoded, and always encodable."""
    clipped = clip(text)
    safe = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
    assert len(quote(clipped, safe=safe)) <= DETAIL_BYTES
    assert clipped.encode().decode() == clipped
    if len(text) < 10:
        assert clipped == text


async def test_R118_a_long_error_keeps_its_status_at_the_client():
    """20 kB of error text arrive as UNKNOWN, cut, and not as RESOURCE_EXHAUSTED."""

    async def boom(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        raise ValueError("日" * 20_000)
        yield b""

    async with Opened(boom) as opened:
        call = opened.call()
        await call.write(start())
        assert await call.code() is grpc.StatusCode.UNKNOWN
        assert (await call.details()).startswith("Invoker: Unexpected Error: ValueError: 日日")


async def test_a_catalogue_is_chosen_by_metadata():
    """``invoker-function`` names the function; a wrong name lists what there is."""

    async def other(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        yield b"other"

    async with Opened(agen, other) as opened:
        call = opened.call(metadata=(("invoker-function", "other"),))
        await call.write(start())
        assert pb.OutputSignal.FromString(await call.read()).data.payload == b"other"
        call = opened.call(metadata=(("invoker-function", "nope"),))
        await call.write(start())
        assert "this invoker serves agen, other" in await call.details()
