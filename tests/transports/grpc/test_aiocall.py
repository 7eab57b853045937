"""A grpc.aio call as the wire of a session, with a call in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest

from invoker.core.budget import ProcessBudget
from invoker.core.frames import SharedFrames
from invoker.core.steps import Close
from invoker.errors import Cancelled
from invoker.transports.grpc.aiocall import AioCall
from invoker.transports.grpc.outbox import ROOM_BYTES


class Call:
    """A call in memory: what the peer sends is put, what it gets is kept; a write sends headers that are due itself."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[Any] = asyncio.Queue()
        self.got: list[Any] = []
        self.takes = asyncio.Event()
        self.takes.set()
        self.is_broken = False
        self.trailers: Any = ()

    def set_trailing_metadata(self, trailers: Any) -> None:
        self.trailers = trailers

    async def read(self) -> Any:
        frame = await self.sent.get()
        if frame is grpc.aio.EOF:
            self.sent.put_nowait(frame)  # grpc.aio says it again
        return frame

    async def send_initial_metadata(self, headers: Any) -> None:
        await self.takes.wait()
        self.got.append(headers)

    def add_done_callback(self, done: Any) -> None:
        self.done = done

    async def write(self, message: bytes) -> None:
        await self.takes.wait()
        if self.is_broken:
            raise grpc.aio.InternalError("gone")
        self.got.append(message)


class Listener:
    """What the session's end of the call hears."""

    settles = True

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.is_gone = False
        self.wants_more = True
        self.ended = asyncio.Event()

    def arrived(self, frame: bytes | None) -> bool:
        self.heard.append(frame)
        if frame is None:
            self.ended.set()
        return self.wants_more

    def gone(self) -> None:
        self.is_gone = True


@pytest.fixture
async def ends():
    """A call, its call, who listens, and the running call."""
    call, listener = Call(), Listener()
    wire = AioCall(call, 0.001, joins=True)
    return call, wire, listener, asyncio.ensure_future(wire.run(listener))


async def test_E014_headers_leave_before_the_first_frame_and_once(ends):
    """Without any frame, too."""
    call, wire, _, run = ends
    wire.headers = (("a", "b"),)
    wire.accepted()
    wire.accepted()
    await asyncio.sleep(0.01)
    assert call.got == [(("a", "b"),)]
    wire.write(b"x")
    wire.close(Close())
    assert await run is None
    assert call.got == [(("a", "b"),), b"x"]


async def test_headers_leave_before_a_frame_of_a_session_that_opened_nothing(ends):
    """And trailers with the status."""
    call, wire, _, run = ends
    wire.headers = (("a", "b"),)
    wire.write(b"x")
    wire.close(Close(trailers=(("c", "d"),)))
    assert await run is None
    assert call.got == [(("a", "b"),), b"x"]
    assert call.trailers == (("c", "d"),)


async def test_what_a_turn_wrote_leaves_in_one_message_before_the_status(ends):
    """Nothing may be written after the end."""
    call, wire, _, run = ends
    error = Cancelled("enough")
    assert wire.write(b"a")
    assert wire.write(b"b")
    wire.close(Close(error))
    wire.close(Close())
    assert not wire.write(b"c")
    assert await run is error
    assert call.got == [b"ab"]


async def test_frames_and_the_half_close_reach_the_session(ends):
    """The half-close a little later, for it may be a cancel (E-010)."""
    call, wire, listener, run = ends
    for one in (b"a", b"b", grpc.aio.EOF):
        call.sent.put_nowait(one)
    await listener.ended.wait()
    assert listener.heard == [b"a", b"b", None]
    wire.close(Close())
    assert await run is None


async def test_E010_a_cancel_that_looked_like_an_end_is_none():
    """The session hears that the peer is gone, and nothing of a half-close."""
    call, listener = Call(), Listener()
    run = asyncio.ensure_future(AioCall(call, 0.05, joins=True).run(listener))
    call.sent.put_nowait(grpc.aio.EOF)
    await asyncio.sleep(0.01)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await asyncio.sleep(0.06)
    assert listener.is_gone
    assert listener.heard == []


async def test_E110_a_slow_peer_makes_writers_wait(ends):
    """Until what waits has left."""
    call, wire, _, run = ends
    call.takes.clear()
    wire.write(b"x")
    await asyncio.sleep(0.001)
    assert not wire.write(b"y" * ROOM_BYTES)
    waiting = asyncio.ensure_future(wire.room())
    await asyncio.sleep(0.001)
    assert not waiting.done()
    call.takes.set()
    await waiting
    wire.close(Close())
    await run
    assert call.got == [b"x", b"y" * ROOM_BYTES]


async def test_a_peer_that_is_gone_makes_nobody_wait(ends):
    """The call's own cancel comes in a moment."""
    call, wire, listener, run = ends
    call.takes.clear()
    wire.write(b"x")
    await asyncio.sleep(0.001)
    wire.write(b"y" * ROOM_BYTES)
    waiting = asyncio.ensure_future(wire.room())
    await asyncio.sleep(0)
    call.is_broken = True
    call.takes.set()
    await waiting
    await wire.room()
    assert wire.is_gone
    assert not wire.write(b"z")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert listener.is_gone


@pytest.mark.parametrize("begin", ["headers", "frame"])
async def test_R121_a_refused_call_ends_after_the_write_that_is_under_way(begin):
    """Not before: grpc.aio would send the headers twice, fail, and never send the status. What is due is dropped."""
    call, listener = Call(), Listener()
    call.takes.clear()
    wire = AioCall(call, 0.001, joins=False, most_bytes=3)
    run = asyncio.ensure_future(wire.run(listener))
    if begin == "headers":
        wire.accepted()
    else:
        wire.write(b"x")
    await asyncio.sleep(0.01)  # now it is under way
    wire.write(b"y")
    call.sent.put_nowait(b"four")
    await asyncio.sleep(0.01)
    assert listener.is_gone
    assert not wire.write(b"z")
    assert not run.done()
    call.takes.set()
    error = await run
    assert error is not None
    assert error.status.name == "RESOURCE_EXHAUSTED"
    assert call.got == [() if begin == "headers" else b"x"]


async def test_R128_nothing_is_read_until_it_is_asked_for(ends):
    """A conversation that wants no more leaves the rest with the transport."""
    call, wire, listener, run = ends
    listener.wants_more = False
    for one in (b"a", b"b", grpc.aio.EOF):
        call.sent.put_nowait(one)
    for expected in ([b"a"], [b"a", b"b"]):
        await asyncio.sleep(0.01)
        assert listener.heard == expected
        wire.ask()
    await listener.ended.wait()
    wire.close(Close())
    assert await run is None


async def test_R109_an_end_that_nobody_takes_with_care_is_told_at_once():
    """Whether the function would see a difference is asked when the end has come."""
    call, listener = Call(), Listener()
    listener.settles = False
    wire = AioCall(call, 3600, joins=False)
    run = asyncio.ensure_future(wire.run(listener))
    call.sent.put_nowait(grpc.aio.EOF)
    await asyncio.wait_for(listener.ended.wait(), 5)
    wire.close(Close())
    assert await run is None


async def test_R127_frames_that_may_not_be_joined_leave_one_by_one():
    """Whoever writes waits for those before."""
    call, listener = Call(), Listener()
    wire = AioCall(call, 0.001, joins=False)
    run = asyncio.ensure_future(wire.run(listener))
    call.takes.clear()
    assert wire.write(b"a")
    await asyncio.sleep(0.01)  # now it is under way
    assert wire.write(b"b")
    assert not wire.write(b"c")
    waiting = [asyncio.ensure_future(wire.room()) for _ in range(2)]
    await asyncio.sleep(0.01)
    assert not any(one.done() for one in waiting)
    call.takes.set()
    await asyncio.gather(*waiting)
    wire.close(Close())
    assert await run is None
    assert call.got == [b"a", b"b", b"c"]


async def test_a_frame_is_on_its_way_when_it_is_written_unless_another_one_is():
    """Nobody has to be woken for it; the second one follows the first."""
    call, listener = Call(), Listener()
    wire = AioCall(call, 0.001, joins=False)
    run = asyncio.ensure_future(wire.run(listener))
    wire.write(b"a")
    assert call.got == [b"a"]
    call.takes.clear()
    wire.write(b"b")
    wire.write(b"c")
    assert call.got == [b"a"]
    call.takes.set()
    wire.close(Close())
    assert await run is None
    assert call.got == [b"a", b"b", b"c"]


async def test_a_write_that_fails_for_a_reason_of_ours_fails_the_call(ends):
    """The transport logs it, and tells the peer."""
    call, wire, _, run = ends

    async def broken(_: bytes) -> None:
        raise ValueError("no bytes")

    call.write = broken
    wire.write(b"x")
    with pytest.raises(ValueError, match="no bytes"):
        await run
    assert wire.is_gone


async def test_a_large_frame_counts_until_the_call_is_done():
    """What grpc.aio has taken, it keeps until the peer takes it: only the end of the call tells."""
    call, memory = Call(), ProcessBudget()
    wire = AioCall(call, 0.001, joins=False, memory=memory)
    run = asyncio.ensure_future(wire.run(Listener()))
    await asyncio.sleep(0)
    wire.write(bytes(1_000_000))
    await asyncio.sleep(0.01)
    assert 1_000_000 <= memory.held < 1_200_000
    wire.close(Close())
    assert await run is None
    assert (memory.held >= 1_000_000, memory.unread) == (True, 1)
    call.done(None)
    assert (memory.held, memory.unread) == (0, 0)


@pytest.mark.parametrize("ends_first", [False, True])
async def test_a_large_frame_that_does_not_fit_ends_its_own_call_before_grpc_takes_it(ends_first):
    """For grpc.aio ends no call whose message it has taken. Also the only message of a call that is over by then."""
    memory, listener = ProcessBudget(2_500_000), Listener()
    wires = []
    for _ in range(2):
        call = Call()
        wire = AioCall(call, 0.001, joins=False, memory=memory)
        wires.append((call, wire, asyncio.ensure_future(wire.run(listener))))
    await asyncio.sleep(0)
    (first, wire, taken), (second, other, refused) = wires
    first.takes.clear()
    assert wire.write(bytes(1_000_000))
    if ends_first:
        second.takes.clear()
        other.accepted()
        await asyncio.sleep(0.01)  # the headers are under way, so the frame waits
        other.write(bytes(1_000_000))
        other.close(Close())
        second.takes.set()
    else:
        other.write(bytes(1_000_000))
    error = await asyncio.wait_for(refused, 5)
    assert error is not None
    assert error.status.name == "RESOURCE_EXHAUSTED"
    assert not other.write(b"more")
    assert [one for one in second.got if one != ()] == []
    await asyncio.sleep(0)
    assert listener.is_gone is not ends_first
    assert memory.held < 2_500_000
    second.done(None)
    first.takes.set()
    wire.close(Close())
    assert await taken is None
    first.done(None)
    assert (memory.held, memory.unread) == (0, 0)


@pytest.mark.parametrize("is_broken", [False, True])
async def test_a_shared_frame_is_kept_until_it_is_sent(is_broken):
    """While it is being sent, other calls find it, and not for longer; nor once the peer is gone."""
    call, frames = Call(), SharedFrames()
    wire = AioCall(call, 0.001, joins=False)
    run = asyncio.ensure_future(wire.run(Listener()))
    await asyncio.sleep(0)
    call.takes.clear()
    wire.write(frames.join("a", (b"he", b"llo")))
    await asyncio.sleep(0.01)
    assert len(frames) == 1
    call.is_broken = is_broken
    call.takes.set()
    await asyncio.sleep(0.01)
    assert call.got == ([] if is_broken else [b"hello"])
    assert len(frames) == 0
    wire.close(Close())
    assert await run is None
