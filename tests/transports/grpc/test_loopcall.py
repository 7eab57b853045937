"""Calls on the loop: several outputs on one call, what leaves when, and peers that are gone."""

from __future__ import annotations

import asyncio
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable

import grpc
import pytest

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.budget import ProcessBudget
from invoker.core.frames import SharedFrames
from invoker.core.steps import Close
from invoker.errors import InternalError
from invoker.transports.grpc.loopcall import LITTLE_BYTES, LoopCall
from tests.conftest import SLOW
from tests.transports.grpc.posted import Event, Posted
from tests.transports.riff import FAST, Riff, data, eventually, form, start


@pytest.fixture(params=["lending", "uvloop"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def test_several_outputs_wait_for_the_same_line(kind):
    """A peer that reads slowly gets everything of both."""

    async def many(letter: bytes) -> AsyncIterator[bytes]:
        for _ in range(200):
            yield letter * 20_000

    def two(xs: AsyncIterator[bytes]) -> tuple[AsyncIterator[bytes], AsyncIterator[bytes]]:
        return many(b"a"), many(b"b")

    with Riff(kind, two) as riff:
        started = pb.InputSignal(start=pb.StartFrame(expectedContentTypes=["*/*", "*/*"])).SerializeToString()
        call = riff.raw(started, timeout=10)
        call.half_close()
        call.rpc.initial_metadata()
        time.sleep(0.1)
        payloads, code, _ = call.ending()
        assert code is grpc.StatusCode.OK
        assert sorted(one[:1] for one in payloads) == [b"a"] * 200 + [b"b"] * 200


@pytest.mark.parametrize("quick", [0, 1, 2, 3, 10])
def test_an_output_before_a_pause_leaves_at_once(kind, quick):
    """However many came quickly before it."""
    paused, go = threading.Event(), threading.Event()

    async def slow(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for _ in xs:
            for number in range(quick + 1):
                yield str(number).encode()
            paused.set()
            while not go.is_set():  # noqa: ASYNC110 - it is set by another thread
                await asyncio.sleep(0.005)
            yield b"last"

    with Riff(kind, slow) as riff:
        for _ in range(4):
            call = riff.call(b"x")
            assert paused.wait(2 * SLOW)
            began = time.monotonic()
            assert call.some(quick + 1)[-1] == str(quick).encode()
            assert time.monotonic() - began < 0.02 * SLOW
            go.set()
            assert call.rest() == [b"last"]
            paused.clear()
            go.clear()


def test_R122_an_endless_function_whose_peer_is_gone_stalls_nobody(kind):
    """It never waits by itself; the loop goes on all the same, and other calls are served."""

    async def endless(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        while True:
            yield bytes(16 * 1024)

    async def echo(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for x in xs:
            yield x

    with Riff(kind, endless, echo) as riff:
        for count in (0, 1, 50):
            call = riff.call(metadata=(("invoker-function", "endless"),))
            call.some(count)
            call.cancel()
            assert riff.call(b"x", timeout=5, metadata=(("invoker-function", "echo"),)).rest() == [b"x"]
            assert eventually(lambda: not riff.driver.engine.running, 1)


def test_R115_an_async_function_is_cancelled_where_it_waits(kind):
    """In user code and while it waits for room; its `finally` runs."""
    waits, left = threading.Event(), threading.Semaphore(0)

    async def sleeps(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            waits.set()
            await asyncio.sleep(3600)
            yield b""
        finally:
            left.release()

    async def emits(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            waits.set()
            while True:
                yield bytes(64 * 1024)
        finally:
            left.release()

    with Riff(kind, sleeps, emits) as riff:
        for name in ("sleeps", "emits"):
            call = riff.call(metadata=(("invoker-function", name),))
            assert waits.wait(2 * SLOW)  # a function that has not begun leaves nothing
            waits.clear()
            call.cancel()
            assert left.acquire(timeout=SLOW)


class _Frame(Event):
    success = True

    def message(self) -> bytes:
        return b"frame"


class _Hearer:
    settles = True

    def __init__(self) -> None:
        self.heard: list[bytes | None] = []

    def arrived(self, frame: bytes | None) -> bool:
        self.heard.append(frame)
        return True


@pytest.mark.parametrize("takes_one", [True, False])
def test_a_frame_that_is_the_last_one_is_the_end_as_well(takes_one):
    """Nothing more is received then; otherwise the next frame is asked for."""
    call, hearer = Posted(), _Hearer()
    wire = LoopCall(call, call, 0.002, takes_one=takes_one)
    wire.open(hearer)
    before = len(call.posted)
    wire._on_read(_Frame())
    assert hearer.heard == ([b"frame", None] if takes_one else [b"frame"])
    assert wire.is_ended == takes_one
    assert len(call.posted) - before == (not takes_one)


class _Turn(Posted):
    """A turn of the loop, whose end a test brings about."""

    def __init__(self) -> None:
        super().__init__()
        self.flushes: list[Callable[[], None]] = []
        self.memory = ProcessBudget()

    def later(self, flush: Callable[[], None]) -> None:
        self.flushes.append(flush)


@pytest.mark.parametrize("size", [10, 100_000])
def test_short_replies_leave_at_the_end_of_the_turn(size):
    """Together with those of other calls; a large one is not kept."""
    turn = _Turn()
    wire = LoopCall(turn, turn)
    wire.write(bytes(size))
    wire.finish(0, "")
    assert len(turn.posted) == (size > 64 * 1024)
    for flush in turn.flushes:
        flush()
    assert len(turn.posted) == 1


def copies(size: int) -> int:
    """How many blocks of at least this size there are."""
    return sum(one.size >= size for one in tracemalloc.take_snapshot().traces)


@pytest.mark.parametrize("transport", FAST)
def test_a_large_frame_is_not_kept_by_the_transport(transport):
    """While the function has it there is one copy of its payload, and none of the frame."""
    size, came, go = 3_000_000, threading.Event(), threading.Event()

    def hold(x: bytes) -> int:
        came.set()
        go.wait(20)
        return len(x)

    async def ahold(x: bytes) -> int:
        came.set()
        while not go.is_set():  # noqa: ASYNC110 - it is set by another thread
            await asyncio.sleep(0.01)
        return len(x)

    ahold.__name__ = "hold"
    with Riff(transport, form(transport, hold, ahold)) as riff:
        frames = (start(), data(bytes(size)))
        tracemalloc.start()
        try:
            call = riff.raw(*frames)
            assert came.wait(5 * SLOW)
            is_one = eventually(lambda: copies(size) <= 1)  # the transport lets go of the frame as the function begins
            go.set()
            call.rest()
        finally:
            tracemalloc.stop()
        assert is_one


@pytest.mark.parametrize("success", [True, False])
def test_a_shared_frame_is_kept_until_it_is_sent(success):
    """Also by a second one that waits for it, so that other calls find both; not if the peer is gone, nor longer."""
    turn, frames = _Turn(), SharedFrames()
    wire = LoopCall(turn, turn)
    for number in range(2):
        wire.write(frames.join(number, (bytes(100_000),)))
    turn.flushes.pop()()
    assert len(frames) == 2
    event = Event()
    event.success = success
    wire._on_sent(event)
    assert len(frames) == success
    if success:
        assert len(turn.posted) == 2
        wire._on_sent(event)
        assert len(frames) == 0


def test_a_shared_frame_may_be_the_last():
    """It leaves with the status, and is kept until both are sent."""
    turn, frames = _Turn(), SharedFrames()
    wire = LoopCall(turn, turn)
    wire.write(frames.join("a", (bytes(100_000),)))
    wire.finish(0, "")
    assert turn.posted == [wire._on_taken]
    assert len(frames) == 1
    wire._on_taken(Event())
    assert len(frames) == 0


class _Batches(_Turn):
    """Notes the operations of each batch, too."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []
        self.cancelled: list[object] = []

    def start_server_batch(self, operations: object, tag: object) -> None:
        super().start_server_batch(operations, tag)
        self.batches.append([type(one).__name__.removesuffix("Operation") for one in operations])

    def cancel(self, *status: object) -> None:
        self.cancelled.append(status)


HEADERS, MESSAGE, STATUS = "SendInitialMetadata", "SendMessage", "SendStatusFromServer"


@pytest.mark.parametrize("frames", [[], [b"x"]])
def test_a_reply_leaves_at_once_in_one_batch_and_tells_when_it_is_sent(frames):
    """A thread sends it, so it waits for no turn of the loop; nothing else is sent behind it."""
    turn = _Batches()
    wire = LoopCall(turn, turn)

    def done(_: object) -> None:
        """Is the tag of the batch."""

    wire.reply_at_once(frames, Close(), done)
    assert turn.posted == [done]
    assert turn.batches == [[HEADERS, *[MESSAGE] * len(frames), STATUS]]
    wire.reply([b"again"], Close(InternalError()))
    wire.finish(2, "again")
    wire.ask()
    for flush in turn.flushes:
        flush()
    assert len(turn.posted) == 1


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_reply_of_the_loop_leaves_at_the_end_of_the_turn(count):
    """The frames in their order, then the status; the first reply counts."""
    turn = _Batches()
    wire = LoopCall(turn, turn)
    wire.reply([b"x"] * count, Close())
    wire.reply([b"again"], Close(InternalError()))
    assert turn.batches == []
    while turn.flushes:
        turn.flushes.pop()()
    if count == 2:
        assert turn.batches == [[HEADERS, MESSAGE]]
        wire._on_sent(_Frame())
    assert [one for batch in turn.batches for one in batch] == [HEADERS, *[MESSAGE] * count, STATUS]


def test_a_large_reply_of_the_loop_leaves_at_once_and_is_counted():
    """Its bytes are those of the process until the peer has taken them."""
    turn = _Batches()
    wire = LoopCall(turn, turn)
    wire.reply([bytes(LITTLE_BYTES + 1)], Close())
    assert turn.batches == [[HEADERS, MESSAGE, STATUS]]
    assert turn.posted == [wire._on_taken]
    wire.cut(InternalError("cut"))
    assert turn.cancelled == [(13, str(InternalError("cut")))]


def test_another_listener_gets_what_still_comes_unless_the_call_is_over():
    """A call that is over refers to no listener any more."""
    turn, first, second = _Batches(), _Hearer(), _Hearer()
    wire = LoopCall(turn, turn)
    wire.open(first)
    wire.listen(second)
    wire._on_read(_Frame())
    assert (first.heard, second.heard) == ([], [b"frame"])
    wire._on_close(Event())
    wire.listen(first)
    wire._on_read(_Frame())
    assert (first.heard, second.heard) == ([], [b"frame"])


def test_a_listener_that_ends_its_call_is_asked_for_no_more():
    """Although it wants more frames: no receive is posted behind the status."""
    turn = _Batches()
    wire = LoopCall(turn, turn)

    class Ending(_Hearer):
        def arrived(self, frame: bytes | None) -> bool:
            wire.reply([], Close())
            return True

    wire.open(Ending())
    before = len(turn.posted)
    wire._on_read(_Frame())
    assert len(turn.posted) == before
