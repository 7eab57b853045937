"""Invocations with a time limit, over every driver: the session is told, once, whatever the function does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from invoker import Context, InputCancelled, Status
from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.author.decorator import function
from invoker.core.limits import TimedOut
from invoker.core.steps import Close, Finished, Send
from invoker.errors import StatusError
from invoker.protocols.riff.session import RiffSession
from tests.execution.loopcalls import FakeCall, agen, until
from tests.execution.memory import driver_of
from tests.execution.wholes import LIMIT_S, WholeCall
from tests.execution.wires import Call, direct_driver

LATER_S = 3600.0


class InBand(RiffSession):
    """Answers an error by a frame, and ends well."""

    def deliver(self, event):
        if isinstance(event, Finished) and event.error is not None:
            return [Send(told(str(event.error))), Close()]
        return super().deliver(event)


def told(text: str) -> bytes:
    return pb.OutputSignal(data=pb.OutputFrame(payload=text.encode())).SerializeToString()


class Deaf:
    """A function that stays until it is let go; it gives some values before."""

    def __init__(self, count: int = 0, timeout_s: float = LATER_S) -> None:
        self.inside, self.go = threading.Event(), threading.Event()
        self.count, self.timeout_s = count, timeout_s

    @property
    def function(self):
        @function(timeout_s=self.timeout_s, max_calls=1)
        def deaf() -> Iterator[int]:
            yield from range(self.count)
            self.inside.set()
            assert self.go.wait(LIMIT_S)
            yield 99

        return deaf


def look(conversation, after_s: float = LATER_S + 1) -> None:
    """One look of the sweeper after so long."""
    conversation.sweep(time.monotonic() + after_s)


def test_T054_T057_a_whole_conversation_answers_while_its_function_is_deaf():
    """In-band, once, behind what was given before; the thread's result is dropped, its place is free when it left."""
    deaf = Deaf(count=2)
    call = WholeCall(direct_driver(deaf.function), session=InBand()).start().run()
    assert deaf.inside.wait(LIMIT_S)
    call.turn.busy.beat()
    look(call.whole, after_s=LATER_S - 1)
    assert not call.outlet.told
    look(call.whole)
    assert call.await_told().error is None
    early = call.early(3)
    assert early[:2] == [b"0", b"1"]
    assert b"took longer than the 3600 s that its function allows" in early[2]
    engine = call.driver.engine
    assert not engine.running
    assert engine.limiter.taken("deaf") == 1
    look(call.whole)
    deaf.go.set()
    assert call.end() is None
    assert call.payloads() == early
    assert engine.limiter.taken("deaf") == 0
    assert engine.counters.finished == {Status.DEADLINE_EXCEEDED: 1}


def test_T057_a_deaf_thread_of_a_timed_invocation_is_counted_until_it_leaves():
    """As one whose peer has gone."""
    deaf = Deaf()
    call = WholeCall(direct_driver(deaf.function), session=InBand()).start().run()
    assert deaf.inside.wait(LIMIT_S)
    call.turn.busy.beat()
    look(call.whole)
    look(call.whole, after_s=LATER_S + 60)
    assert call.driver.threads.stuck == 1
    deaf.go.set()
    call.end()
    assert call.driver.threads.stuck == 0


def test_T054_a_whole_generator_ends_by_itself_at_its_next_value():
    """Without the sweeper: what it gives is looked at."""

    @function(timeout_s=0.001)
    def fast() -> Iterator[int]:
        yield from range(10**9)

    call = WholeCall(direct_driver(fast)).start()
    error = call.end()
    assert isinstance(error, TimedOut)
    assert (error.timeout_s, error.is_functions) == (0.001, True)


def test_T054_a_whole_conversation_whose_peer_reads_nothing_is_cut():
    """Its thread waits for room, so nobody could send the answer; the second look cuts it."""

    @function(timeout_s=LATER_S)
    def much() -> Iterator[bytes]:
        for _ in range(100):
            yield bytes(100_000)

    call = WholeCall(direct_driver(much))
    call.outlet.has_room.clear()
    call.start("application/octet-stream").run()
    until_true(lambda: call.driver.sweeper.conversations and call.whole.sent)
    until_true(lambda: not free(call.whole.lock))
    look(call.whole)
    assert call.outlet.cuts == []
    look(call.whole)
    assert isinstance(call.outlet.cuts[0], TimedOut)
    call.outlet.has_room.set()
    assert isinstance(call.end(), TimedOut)


def test_T014_a_timed_conversation_can_be_stopped_with_another_error_from_any_thread():
    """Its session is told as if its time were over."""
    deaf = Deaf()
    call = WholeCall(direct_driver(deaf.function), session=InBand()).start().run()
    assert deaf.inside.wait(LIMIT_S)
    call.turn.busy.beat()
    call.whole.invocation.stop(StatusError(Status.ABORTED, "cleaned up"))
    look(call.whole, after_s=0)
    assert call.early(1) == [b"cleaned up"]
    deaf.go.set()
    call.end()


def test_T054_several_outputs_of_a_whole_conversation():
    """Each has a thread of its own; none of them can tell the session what comes later."""
    inside, go = threading.Barrier(3), threading.Event()

    def stay() -> Iterator[int]:
        inside.wait(LIMIT_S)
        assert go.wait(LIMIT_S)
        yield 1

    @function(timeout_s=LATER_S)
    def two() -> tuple[Iterator[int], Iterator[int]]:
        return stay(), stay()

    call = WholeCall(direct_driver(two), session=InBand()).start("application/json", "application/json").run()
    inside.wait(LIMIT_S)
    look(call.whole)
    assert b"took longer" in call.early(1)[0]
    go.set()
    call.end()
    assert len(call.payloads()) == 1


def test_T054_a_direct_conversation_answers_while_its_function_is_deaf():
    """In-band, and the status at once."""
    deaf = Deaf(count=1)
    call = Call(direct_driver(deaf.function), session=InBand()).start()
    assert deaf.inside.wait(LIMIT_S)
    look(call.conversation, after_s=1)
    assert call.wire.status is None
    look(call.conversation)
    assert call.wire.status == (0, "")
    assert b"took longer" in call.outputs(2)[1]
    assert call.driver.engine.limiter.taken("deaf") == 1
    deaf.go.set()
    assert call.end() is None
    assert len(call.payloads()) == 2
    assert call.driver.engine.limiter.taken("deaf") == 0


def test_T054_a_direct_function_that_waits_for_input_sees_the_end():
    """The reader gets InputCancelled; the peer its answer."""
    seen = []

    @function(timeout_s=LATER_S)
    def reads(xs: Iterator[int]) -> Iterator[int]:
        try:
            yield from xs
        except InputCancelled as stop:
            seen.append(stop.error)
            raise

    call = Call(direct_driver(reads), session=InBand()).start().data(b"5")
    assert call.outputs(1) == [b"5"]
    call.await_pull()
    look(call.conversation)
    assert b"took longer" in call.outputs(2)[1]
    call.end()
    assert isinstance(seen[0], TimedOut)
    assert call.wire.status == (0, "")


def test_T054_a_direct_generator_ends_by_itself_at_its_next_value():
    """Without the sweeper."""

    @function(timeout_s=0.001)
    def fast() -> Iterator[int]:
        yield from range(10**9)

    call = Call(direct_driver(fast), session=InBand()).start()
    assert call.end() is None
    assert b"took longer" in call.payloads()[-1]


def test_T054_a_direct_conversation_whose_peer_reads_nothing():
    """While the function waits for room the second look cuts it; while it is elsewhere the answer waits for room."""
    deaf = Deaf(count=1)
    call = Call(direct_driver(deaf.function), session=InBand(), is_slow=True).start()
    assert deaf.inside.wait(LIMIT_S)
    look(call.conversation)
    assert len(call.payloads()) == 1
    call.wire.take()
    look(call.conversation)
    assert len(call.payloads()) == 2
    assert call.wire.status == (0, "")
    deaf.go.set()
    call.end()
    much = Deaf(count=2)
    call = Call(direct_driver(much.function), session=InBand(), is_slow=True).start()
    call.outputs(1)
    call.await_pull()
    until_true(lambda: call.conversation._guard is not None and not free(call.conversation._guard))
    look(call.conversation)
    assert call.wire.status is None
    look(call.conversation)
    assert isinstance(call.end(), TimedOut)


def test_T054_what_the_sweeper_could_not_send_leaves_when_the_function_is_back():
    """Its thread waits for the room then."""
    deaf = Deaf(count=1)
    call = Call(direct_driver(deaf.function), session=InBand(), is_slow=True).start()
    assert deaf.inside.wait(LIMIT_S)
    look(call.conversation)
    deaf.go.set()
    call.await_pull()
    call.wire.take()
    assert call.end() is None
    assert len(call.payloads()) == 2
    assert call.wire.status == (0, "")


def test_T054_several_outputs_of_a_direct_conversation():
    """They take turns under the lock of the wire, and so does the sweeper."""
    inside, go = threading.Barrier(3), threading.Event()

    def stay() -> Iterator[int]:
        inside.wait(LIMIT_S)
        assert go.wait(LIMIT_S)
        yield 1

    @function(timeout_s=LATER_S)
    def two() -> tuple[Iterator[int], Iterator[int]]:
        return stay(), stay()

    call = Call(direct_driver(two), session=InBand()).start("application/json", "application/json")
    inside.wait(LIMIT_S)
    look(call.conversation)
    assert call.wire.status == (0, "")
    assert b"took longer" in call.outputs(1)[0]
    go.set()
    call.end()
    assert len(call.payloads()) == 1


def test_T054_a_direct_call_that_never_sends_its_input_is_cut():
    """Its function has not begun, so its caller gets a status."""

    @function(timeout_s=LATER_S)
    def wants(xs: Iterator[int], y: int) -> Iterator[int]:
        yield y

    call = Call(direct_driver(wants)).start()
    until_true(lambda: call.conversation.invocation is not None)
    look(call.conversation)
    assert isinstance(call.end(), TimedOut)
    assert call.wire.status is not None
    assert call.wire.status[0] == Status.DEADLINE_EXCEEDED


@pytest.mark.parametrize("is_started", [True, False])
async def test_T057_an_async_function_is_cancelled(is_started):
    """Its caller is told by its session, after the time and not before."""
    cancelled = asyncio.Event()

    @function(timeout_s=0.05, max_calls=1)
    async def sleeps(context: Context) -> AsyncIterator[int]:
        assert context.deadline is not None
        yield 1
        try:
            await asyncio.sleep(LATER_S)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    @function(timeout_s=0.05, max_calls=1, name="sleeps")
    async def waits(xs: AsyncIterator[int], y: int) -> AsyncIterator[int]:
        yield y

    began = time.monotonic()
    driver = driver_of(sleeps if is_started else waits)
    peer = FakeCall(driver, session=InBand()).start()
    assert await peer.end() is None
    assert time.monotonic() - began >= 0.05
    assert b"took longer than the 0.05 s" in peer.got[-1].payload
    if is_started:
        assert await asyncio.wait_for(cancelled.wait(), LIMIT_S)
    await until(lambda: not driver.engine.limiter.taken("sleeps"))
    assert not driver.engine.running


async def test_T057_a_sync_function_in_a_thread_of_the_pool_goes_on_without_its_caller():
    """Its place is free when it has left."""
    deaf = Deaf(timeout_s=0.05)
    driver = driver_of(deaf.function)
    peer = FakeCall(driver, session=InBand()).start()
    assert await peer.ending() is None
    assert b"took longer" in peer.got[-1].payload
    assert driver.engine.limiter.taken("deaf") == 1
    deaf.go.set()
    await until(lambda: not driver.engine.limiter.taken("deaf"))
    assert len(peer.got) == 1


async def test_an_invocation_that_ends_in_time_leaves_no_timer():
    """It would hold what it was given for as long."""

    @function(timeout_s=LATER_S)
    async def quick(x: int) -> int:
        return x

    driver = driver_of(quick)
    peer = FakeCall(driver).start().data(b"1").half_close()
    assert await peer.end() is None
    assert not driver.alarm.limits
    assert await FakeCall(driver_of(agen)).start().data(b"1").half_close().end() is None


def free(lock) -> bool:
    if lock.acquire(blocking=False):
        lock.release()
        return True
    return False


def until_true(condition) -> None:
    """Wait for another thread."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)
