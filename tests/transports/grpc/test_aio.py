"""The gRPC: what holds for the public one and each kind of the fast one, with grpc's own client on loopback."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest

from invoker.core.steps import Close, Send
from invoker.errors import StartupError
from invoker.protocols.riff.service.method import riff_method
from invoker.transports.grpc.methods import CallMethod, LoopMethod
from invoker.transports.grpc.settings import GrpcSettings
from tests.conftest import SLOW
from tests.transports.riff import FAST, KINDS, Riff, data, eventually, form, start


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


async def agen(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for x in xs:
        yield x


def gen(xs: Iterator[bytes]) -> Iterator[bytes]:
    yield from xs


def total(seen, left):
    """A function that sums up, and tells whether it did and that it left."""

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        try:
            count = sum(1 for _ in xs)
            seen.append(count)
            yield str(count).encode()
        finally:
            left.release()

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            count = len([x async for x in xs])
            seen.append(count)
            yield str(count).encode()
        finally:
            left.release()

    return sync, asyn


def test_R006_a_taken_port_is_refused(kind):
    """Two servers never share a port by accident; the text names the address."""
    with Riff(kind, form(kind, gen, agen)) as riff:
        second = Riff(kind, form(kind, gen, agen))

        async def bind() -> None:
            transport = type(riff.transport)(second.driver, methods=())
            with pytest.raises(StartupError, match=rf"127\.0\.0\.1:{riff.port} .*in use"):
                transport.bind(f"127.0.0.1:{riff.port}")
            await transport.stop(0)

        riff.run(bind())


def test_R007_other_methods_are_unimplemented(kind):
    """Only /streaming.Riff/Invoke is served."""
    with Riff(kind, form(kind, gen, agen)) as riff:
        for path in ("/streaming.Riff/Other", "/other.Riff/Invoke"):
            assert riff.raw(path=path).half_close().code is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 3 * 1024 * 1024])
def test_payloads_of_any_size_come_back(kind, size):
    """From nothing to just below the limit."""
    with Riff(kind, form(kind, gen, agen)) as riff:
        payloads = [bytes([number]) * size for number in range(3)]
        assert riff.call(*payloads).rest() == payloads


@pytest.mark.timeout(15)
def test_the_order_of_many_frames_is_kept(kind):
    """2,000 frames, all under way at once."""
    with Riff(kind, form(kind, gen, agen)) as riff:
        payloads = [str(number).encode() for number in range(2000)]
        assert riff.call(*payloads).rest() == payloads


def test_R133_headers_leave_as_soon_as_the_start_frame_is_accepted(kind):
    """The client sees initial metadata before the first output, of a function that waits for input or for itself."""
    go = threading.Event()

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        go.wait(10)
        yield from xs

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        while not go.is_set():  # noqa: ASYNC110 - it is set by another thread
            await asyncio.sleep(0.01)
        async for x in xs:
            yield x

    with Riff(kind, form(kind, gen, agen), form(kind, sync, asyn)) as riff:
        for name in (form(kind, "gen", "agen"), form(kind, "sync", "asyn")):
            for _ in range(3):  # the first call of a transport is served otherwise than those that follow quick ones
                call = riff.call(metadata=(("invoker-function", name),), timeout=5)
                call.rpc.initial_metadata()
                assert call.rpc.is_active()  # the end of a call would bring them, too
                go.set()
                assert call.rest() == []
                go.clear()


def test_R109_a_cancelled_aggregator_never_commits(kind, request):
    """A cancel first looks like an end; the sum of a truncated stream must not be taken for the whole."""
    committed, left = [], threading.Semaphore(0)
    with Riff(kind, form(kind, *total(committed, left))) as riff:
        for number in range(20 if kind == "aio" else 200):
            call = riff.call()
            call.rpc.initial_metadata()
            for _ in range(3):
                call.data(b"1")
            if number % 2:
                time.sleep(0.0005)
            call.cancel()
            call.half_close()
            assert left.acquire(timeout=5)
        assert committed == []


def test_R109_an_end_completes_the_inputs(kind):
    """With frames and without."""
    seen, left = [], threading.Semaphore(0)
    with Riff(kind, form(kind, *total(seen, left))) as riff:
        assert riff.call(*[b"x"] * 7).rest() == [b"7"]
        assert riff.call().rest() == [b"0"]
        assert seen == [7, 0]


def test_R110_R115_a_cancel_fails_the_inputs_and_closes_the_function(kind):
    """A function that waits for input sees an error there, not an end; its `finally` runs within a second."""
    seen, left = [], threading.Semaphore(0)

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        try:
            for x in xs:
                seen.append(x)
                yield x
            seen.append(b"end")
        except BaseException as error:
            seen.append(type(error).__name__)
            raise
        finally:
            left.release()

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for x in xs:
                seen.append(x)
                yield x
            seen.append(b"end")
        except BaseException as error:
            seen.append(type(error).__name__)
            raise
        finally:
            left.release()

    with Riff(kind, form(kind, sync, asyn)) as riff:
        call = riff.call(b"x")
        assert call.read() == b"x"
        call.cancel()
        assert left.acquire(timeout=SLOW)
        assert seen == [b"x", "InputCancelled"]
        assert eventually(lambda: not riff.driver.engine.running)


def test_R113_what_was_emitted_before_an_error_is_delivered(kind):
    """Three frames, then UNKNOWN."""

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        yield from (b"1", b"2", b"3")
        raise ValueError("boom")

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        for one in (b"1", b"2", b"3"):
            yield one
        raise ValueError("boom")

    with Riff(kind, form(kind, sync, asyn)) as riff:
        for _ in range(5):
            payloads, code, text = riff.call().ending()
            assert payloads == [b"1", b"2", b"3"]
            assert (code, text) == (grpc.StatusCode.UNKNOWN, "Invoker: Unexpected Error: ValueError: boom")


def test_R114_a_function_may_end_before_its_input(kind):
    """The call ends with OK at once, while its client still writes."""

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        yield next(xs)

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        yield await anext(aiter(xs))

    with Riff(kind, form(kind, sync, asyn)) as riff:
        for _ in range(5):
            call = riff.call(*[b"x" * 1000] * 500)
            assert call.ending() == ([b"x" * 1000], grpc.StatusCode.OK, "")


def test_R120_garbage_on_the_wire_fails_this_call_only(kind):
    """Bytes that are no protobuf message are a Protocol Violation, as the first frame and later."""
    with Riff(kind, form(kind, gen, agen)) as riff:
        good = riff.call(b"x")
        for frames in ([b"\xff\xff\xff"], [start(), b"\xff\xff\xff"]):
            _, code, text = riff.raw(*frames).ending()
            assert code is grpc.StatusCode.UNKNOWN
            assert text.startswith("Invoker: Protocol Violation")
        assert good.rest() == [b"x"]


class Sizes:
    """A session that takes frames of any size, and tells theirs."""

    def receive(self, frame: bytes) -> list[Send | Close]:
        return [Send(b"%d" % len(frame)), Close()]

    def half_close(self) -> list[Close]:
        return []


def wide(_: object) -> Any:
    return Sizes()


@pytest.mark.parametrize("is_beside", [False, True], ids=["alone", "beside one that takes more"])
def test_R121_an_oversize_frame_is_an_error_for_the_function_too(kind, is_beside):
    """The client gets RESOURCE_EXHAUSTED; the function does not see a clean end; nor if another method takes more."""
    seen, left = [], threading.Semaphore(0)
    transport = {"settings": GrpcSettings(max_message_bytes=1000), "methods": [riff_method()]}
    if is_beside:
        transport["methods"].append(LoopMethod("a.B", "C", wide, max_message_bytes=100_000))
    with Riff(kind, form(kind, *total(seen, left)), transport=transport) as riff:
        for count in (0, 3, 40):
            call = riff.call(*[b"x"] * count)
            call.rpc.initial_metadata()
            call.data(bytes(5000))
            assert call.code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert left.acquire(timeout=5)
        assert seen == []
        assert riff.call(b"x").rest() == [b"1"]


def test_R121_an_oversize_first_frame_runs_nothing(kind):
    """Whether it is alone or the call comes whole; the text says both sizes, and the next call works."""
    ran: list[bytes] = []

    def sync(x: bytes) -> bytes:
        ran.append(x)
        return x

    async def asyn(x: bytes) -> bytes:
        ran.append(x)
        return x

    method = LoopMethod("a.B", "C", wide, max_message_bytes=100_000)
    transport = {"settings": GrpcSettings(max_message_bytes=1000), "methods": [riff_method(), method]}
    with Riff(kind, form(kind, sync, asyn), transport=transport) as riff:
        for _ in range(3):
            for frames in ([data(bytes(5000))], [start(), data(bytes(5000))]):
                _, code, text = riff.raw(*frames).half_close().ending()
                assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
                assert text.startswith("Invoker: Limit Exceeded: a message of 50")
                assert text.endswith(" bytes exceeds the limit of 1000 bytes of this method")
        assert ran == []
        assert riff.call(b"x").half_close().rest() == [b"x"]


def test_T163_a_method_may_take_larger_messages_than_others(kind):
    """As much as it says and not more, as a call of one invocation and on the loop."""
    methods = [one("a.B", name, wide, max_message_bytes=50_000) for name, one in METHODS.items()]
    transport = {"settings": GrpcSettings(max_message_bytes=1000), "methods": methods}
    with Riff(kind, form(kind, gen, agen), transport=transport) as riff:
        for name in METHODS:
            call = riff.channel.stream_stream(f"/a.B/{name}")
            assert list(call(iter([bytes(50_000)]), timeout=20)) == [b"50000"]
            with pytest.raises(grpc.RpcError) as caught:
                list(call(iter([bytes(50_001)]), timeout=20))
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


METHODS: dict[str, Any] = {"Call": CallMethod, "Loop": LoopMethod}


@pytest.mark.parametrize("is_endless", [False, True])
def test_R122_an_output_too_large_for_the_peer_ends_that_call_cleanly(kind, is_endless):
    """It is the peer's limit: its call fails, the generator is closed within a second, the server lives on."""
    closed = threading.Semaphore(0)

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        try:
            for x in xs:
                yield x
                while is_endless:
                    yield x
        finally:
            closed.release()

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for x in xs:
                yield x
                while is_endless:
                    yield x
        finally:
            closed.release()

    with Riff(kind, form(kind, sync, asyn)) as riff, riff.connect(max_receive_message_length=1000) as narrow:
        for _ in range(10):
            assert riff.call(bytes(5000), channel=narrow).code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert closed.acquire(timeout=SLOW)
        if not is_endless:
            assert riff.call(b"x").rest() == [b"x"]


def test_R124_the_deadline_of_the_call_reaches_the_function(kind):
    """The client sees DEADLINE_EXCEEDED; the function is stopped, and the ending says why."""
    left, endings = threading.Semaphore(0), []

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from xs
        finally:
            left.release()

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            await asyncio.sleep(3600)
            yield b""
        finally:
            left.release()

    with Riff(kind, form(kind, sync, asyn)) as riff:
        riff.driver.engine.on_close.append(lambda invocation: endings.append(type(invocation.error).__name__))
        call = riff.call(timeout=0.2)
        assert call.code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert left.acquire(timeout=2 * SLOW)
        assert eventually(lambda: endings)
        assert endings == ["DeadlineExceeded"]


def test_R118_a_long_error_keeps_its_status_at_the_client(kind):
    """20 kB of error text arrive as UNKNOWN, cut, and not as RESOURCE_EXHAUSTED."""

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        raise ValueError("日" * 20_000)
        yield b""

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        raise ValueError("日" * 20_000)
        yield b""

    with Riff(kind, form(kind, sync, asyn)) as riff:
        _, code, text = riff.call().ending()
        assert code is grpc.StatusCode.UNKNOWN
        assert text.startswith("Invoker: Unexpected Error: ValueError: 日日")


def test_a_catalogue_is_chosen_by_metadata(kind):
    """``invoker-function`` names the function; a wrong name lists what there is."""

    def other(xs: Iterator[bytes]) -> Iterator[bytes]:
        yield b"other"

    with Riff(kind, form(kind, gen, agen), other) as riff:
        assert riff.call(metadata=(("invoker-function", "other"),)).rest() == [b"other"]
        _, _, text = riff.call(metadata=(("invoker-function", "nope"),)).ending()
        assert f"this invoker serves {form(kind, 'gen', 'agen')}, other" in text


@pytest.mark.parametrize("fast", FAST)
def test_a_second_start_frame_fails_its_call_only(fast):
    """R-046 through the whole transport."""
    with Riff(fast, form(fast, gen, agen)) as riff:
        assert riff.raw(start(), start()).code is grpc.StatusCode.UNKNOWN
        assert riff.raw(data(b"x")).code is grpc.StatusCode.UNKNOWN
        assert riff.raw().half_close().code is not grpc.StatusCode.INTERNAL
        assert riff.call(b"x").rest() == [b"x"]
