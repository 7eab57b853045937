"""Reactors: conversations on the loop whose frames are brought by callbacks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from invoker import Context, InputCancelled, Status
from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.streams import Limits
from invoker.drive.reactor import Reactor
from invoker.errors import InternalError, InvocationError, LimitExceeded, ProtocolViolation, ShuttingDown
from invoker.protocols.riff.session import RiffSession
from tests.drive.memory import driver_of

JSON = "application/json"


class Line:
    """A transport in memory: brings a frame in a turn of the loop, as long as the reactor wants more.

    Attributes:
        is_full: The next frame that is written has to wait for room.
        unread: What the peer has sent and nobody has asked for.
        waits: Set while a body waits for room.
    """

    def __init__(self, driver: Any, *, deadline: float | None = None, session: Any = None) -> None:
        self.driver = driver
        self.is_gone = self.is_accepted = self.is_full = False
        self.unread: deque[bytes | None] = deque()
        self.got: list[pb.OutputFrame] = []
        self.waits = asyncio.Event()
        self.asks = 0
        self._has_room = asyncio.Event()
        self._is_reading = True
        self._closed: asyncio.Future[InvocationError | None] = asyncio.get_running_loop().create_future()
        self.reactor = Reactor(session or RiffSession(), self, driver, self._closed.set_result, deadline=deadline)

    # The reactor's side.

    def accepted(self) -> None:
        self.is_accepted = True

    def ask(self) -> None:
        assert not self._is_reading, "one receive at a time"
        self.asks += 1
        self._is_reading = True
        asyncio.get_running_loop().call_soon(self._bring)

    def write(self, frame: bytes) -> bool:
        assert not self._closed.done(), "a frame behind the status"
        self.got.append(pb.OutputSignal.FromString(frame).data)
        return not self.is_full

    async def room(self) -> None:
        self.waits.set()
        await self._has_room.wait()

    # The peer's side.

    def start(self, *types: str) -> Line:
        frame = pb.StartFrame(expectedContentTypes=types or (JSON,))
        return self.raw(pb.InputSignal(start=frame).SerializeToString())

    def data(self, payload: bytes, index: int = 0) -> Line:
        frame = pb.InputFrame(payload=payload, contentType=JSON, argIndex=index)
        return self.raw(pb.InputSignal(data=frame).SerializeToString())

    def half_close(self) -> Line:
        return self.raw(None)

    def raw(self, frame: bytes | None) -> Line:
        self.unread.append(frame)
        asyncio.get_running_loop().call_soon(self._bring)
        return self

    def go(self) -> None:
        """The peer is gone."""
        self.is_gone = True
        self._has_room.set()
        self.reactor.gone()

    def take(self) -> None:
        """The peer reads on."""
        self.is_full = False
        self._has_room.set()

    def _bring(self) -> None:
        if self._is_reading and self.unread:
            frame = self.unread.popleft()
            self._is_reading = False
            if self.reactor.arrived(frame) and frame is not None:
                self._is_reading = True
            if self.unread:
                asyncio.get_running_loop().call_soon(self._bring)

    async def end(self) -> InvocationError | None:
        """How the conversation ended, once its bodies have left too; nothing is left of it then."""
        error = await asyncio.wait_for(asyncio.shield(self._closed), 5)
        assert await self.driver.left(5)
        assert not self.driver.engine.running
        assert not self.driver.conversations
        assert not self.reactor.runners
        return error

    def payloads(self, index: int | None = None) -> list[bytes]:
        return [one.payload for one in self.got if index is None or one.resultIndex == index]


async def square(x: int) -> int:
    return x * x


async def agen(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x * x


def gen(xs: Iterator[int]) -> Iterator[int]:
    for x in xs:
        yield x * x


@pytest.mark.parametrize("function", [square, agen, gen])
async def test_every_style_answers_in_order(function):
    """Also a sync one, a hop away."""
    line = Line(driver_of(function)).start()
    for number in range(100):
        line.data(b"%d" % number)
    assert await line.half_close().end() is None
    assert line.payloads() == [b"%d" % (n * n) for n in range(100)]
    assert line.is_accepted


@pytest.mark.parametrize("function", [square, agen, gen])
async def test_R032_zero_inputs_give_zero_outputs(function):
    """A start and a half-close: OK."""
    line = Line(driver_of(function)).start().half_close()
    assert await line.end() is None
    assert line.got == []


async def test_R114_the_function_may_end_before_its_input():
    """The call ends with OK; the rest of the input is wanted, to be discarded."""

    async def first(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        async for x in xs:
            yield x
            return

    line = Line(driver_of(first)).start().data(b"1")
    assert await line.end() is None
    assert line.payloads() == [b"1"]
    assert line.reactor.arrived(b"\xff\xff\xff")
    assert line.reactor.arrived(None)


async def test_R114_a_reader_that_was_paused_is_resumed_at_the_end():
    """What is left of the input is discarded, so that the peer can get rid of it."""
    go = asyncio.Event()

    async def deaf(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        yield 1

    line = Line(driver_of(deaf, limits=Limits(high_frames=4))).start()
    for _ in range(10):
        line.data(b"1")
    await paused(line)
    go.set()
    assert await line.end() is None
    await until(lambda: not line.unread)
    assert line.asks == 1


async def until(fact: Callable[[], Any]) -> None:
    """Give turns to others until something is so."""
    async with asyncio.timeout(5):
        while not fact():  # noqa: ASYNC110 - facts of the code under test have no event
            await asyncio.sleep(0)


async def paused(line: Line) -> None:
    """Wait until the reactor wants no more."""
    await until(lambda: line.reactor.is_paused)


async def test_R128_reading_pauses_at_the_mark_and_goes_on_when_the_function_reads():
    """Frames beyond the mark stay with the transport."""
    go = asyncio.Event()

    async def late(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        yield sum([x async for x in xs])

    line = Line(driver_of(late, limits=Limits(high_frames=8))).start()
    for _ in range(100):
        line.data(b"1")
    await paused(line)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(line.unread) == 92
    go.set()
    assert await line.half_close().end() is None
    assert line.payloads() == [b"100"]
    assert line.asks >= 1


@pytest.mark.parametrize("is_async", [False, True])
async def test_R129_starvation_reads_on_beyond_the_mark(is_async):
    """A function that lists input 1 and then input 0 gets both."""

    def second_first(a: Iterator[int], b: Iterator[int]) -> Iterator[int]:
        yield len(list(b))
        yield len(list(a))

    async def asecond_first(a: AsyncIterator[int], b: AsyncIterator[int]) -> AsyncIterator[int]:
        yield len([x async for x in b])
        yield len([x async for x in a])

    line = Line(driver_of(asecond_first if is_async else second_first, limits=Limits(high_frames=8))).start()
    for _ in range(100):
        line.data(b"1", 0)
    for _ in range(100):
        line.data(b"1", 1)
    assert await line.half_close().end() is None
    assert line.payloads() == [b"100", b"100"]


async def test_R129_a_paused_reader_goes_on_when_somebody_begins_to_starve():
    """The mark was reached before the function came to wait for the other input."""
    go = asyncio.Event()

    async def second(a: AsyncIterator[int], b: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        async for x in b:
            yield x
            return

    line = Line(driver_of(second, limits=Limits(high_frames=4))).start()
    for _ in range(20):
        line.data(b"1", 0)
    await paused(line)
    go.set()
    assert await line.data(b"7", 1).end() is None
    assert line.payloads() == [b"7"]


async def test_R130_the_hard_cap_ends_a_starving_call():
    """Endless frames for an input that nobody reads."""

    async def other(a: AsyncIterator[int], b: AsyncIterator[int]) -> AsyncIterator[int]:
        async for x in b:
            yield x

    line = Line(driver_of(other, limits=Limits(high_frames=4, hard_frames=50))).start()
    for _ in range(60):
        line.data(b"1", 0)
    assert isinstance(await line.end(), LimitExceeded)


@pytest.mark.parametrize("frame", [b"\xff\xff\xff", b"\n\x00"])
@pytest.mark.parametrize("function", [agen, gen])
async def test_R046_R120_a_protocol_violation_while_a_function_runs(function, frame):
    """It ends the call, and the body leaves."""
    line = Line(driver_of(function)).start().raw(frame)
    assert isinstance(await line.end(), ProtocolViolation)


@pytest.mark.parametrize("frame", [b"\xff\xff\xff", b"\x12\x00", None])
async def test_R045_R048_R120_a_protocol_violation_before_the_start(frame):
    """Nothing runs, nothing is accepted."""
    line = Line(driver_of(agen)).raw(frame)
    assert isinstance(await line.end(), ProtocolViolation)
    assert not line.is_accepted


async def test_R025_the_engine_refuses_while_it_drains():
    """The status is the engine's."""
    driver = driver_of(agen)
    driver.engine.is_draining = True
    line = Line(driver).start()
    assert isinstance(await line.end(), ShuttingDown)
    assert not line.is_accepted


async def test_no_thread_for_a_sync_function_is_an_ending():
    """The pool is full; the invocation was admitted, and is closed again."""
    driver = driver_of(gen, threads=1)
    driver.threads.enter()
    assert isinstance(await Line(driver).start().end(), LimitExceeded)
    driver.threads.leave()


async def test_a_session_that_fails_is_our_error(caplog):
    """The peer learns no detail, the log does."""

    class Broken(RiffSession):
        def receive(self, frame):
            raise RuntimeError("secret")

    error = await Line(driver_of(agen), session=Broken()).start().end()
    assert isinstance(error, InternalError)
    assert "secret" not in str(error)
    assert "secret" in caplog.text


@pytest.mark.parametrize(("left_s", "status"), [(None, "CANCELLED"), (60.0, "CANCELLED"), (-1.0, "DEADLINE_EXCEEDED")])
async def test_R110_R115_R124_a_cancel_or_a_deadline_while_a_function_pulls(left_s, status):
    """The read wakes with InputCancelled, and ``finally`` runs."""
    seen, pulls = [], asyncio.Event()

    async def watch(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        try:
            pulls.set()
            async for x in xs:
                yield x
        except InputCancelled as error:
            seen.append(error.error.status.name)
            raise
        finally:
            seen.append("left")

    line = Line(driver_of(watch), deadline=None if left_s is None else time.monotonic() + left_s).start()
    await pulls.wait()
    line.go()
    assert (await line.end()).status is Status[status]
    assert seen == [status, "left"]
    line.reactor.gone()  # once more is harmless


async def test_R115_a_cancel_while_user_code_waits_elsewhere():
    """It is cancelled there, and the context tells it."""
    inside, seen = asyncio.Event(), []

    async def busy(context: Context) -> AsyncIterator[int]:
        try:
            seen.append(context.cancelled)
            inside.set()
            await asyncio.Event().wait()
            yield 1
        finally:
            seen.append(context.cancelled)

    line = Line(driver_of(busy)).start()
    await inside.wait()
    line.go()
    assert (await line.end()).status is Status.CANCELLED
    assert seen == [False, True]
    assert line.got == []


async def test_R115_a_cancel_while_a_sync_function_works():
    """Its next emit is its last."""
    inside, go, left = asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    def busy() -> Iterator[int]:
        try:
            loop.call_soon_threadsafe(inside.set)
            go.wait(5)
            yield 1
            left.append("went on")
        finally:
            left.append("left")

    line = Line(driver_of(busy)).start()
    await inside.wait()
    line.go()
    go.set()
    assert (await line.end()).status is Status.CANCELLED
    assert left == ["left"]
    assert line.got == []


async def test_an_emit_after_the_end_raises_what_except_exception_cannot_eat():
    """A body that swallows its cancel and goes on is stopped at its next emit."""
    inside, seen = asyncio.Event(), []

    async def stubborn() -> AsyncIterator[int]:
        try:
            inside.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
        try:
            yield 1
        except Exception:
            seen.append("eaten")

    line = Line(driver_of(stubborn)).start()
    await inside.wait()
    (runner,) = line.reactor.runners.values()
    line.go()
    assert (await line.end()).status is Status.CANCELLED
    assert seen == ["cancelled"]
    assert line.got == []
    message = runner.invocation.outputs[0].encode(1)
    with pytest.raises(BaseException, match="the invocation is over") as raised:
        await line.reactor.emitted(runner.invocation, 0, message)
    assert not isinstance(raised.value, Exception)
    await line.reactor.finished(runner.invocation, ProtocolViolation("late"))  # the first ending stays
    assert runner.invocation.error.status is Status.CANCELLED


@pytest.mark.parametrize("function", [agen, gen])
async def test_R025_a_call_that_the_drain_cuts(function):
    """The drain's patience is over."""
    driver = driver_of(function)
    line = Line(driver).start().data(b"2")
    await until(lambda: line.got)
    assert not await driver.drain(0.0)
    assert isinstance(await line.end(), ShuttingDown)


async def test_R127_a_slow_reader_suspends_the_function():
    """It goes on when there is room."""
    made = []

    async def numbers() -> AsyncIterator[int]:
        for number in range(10):
            made.append(number)
            yield number

    line = Line(driver_of(numbers))
    line.is_full = True
    line.start()
    await line.waits.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert made == [0]
    line.take()
    assert await line.end() is None
    assert len(line.got) == 10


async def test_R127_a_cancel_frees_a_function_that_waits_for_room():
    """The peer that did not read is gone."""

    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2

    line = Line(driver_of(numbers))
    line.is_full = True
    line.start()
    await line.waits.wait()
    line.go()
    assert (await line.end()).status is Status.CANCELLED
    assert line.payloads() == [b"1"]


async def test_R131_a_body_that_never_waits_lets_others_have_turns():
    """Neither another call nor the loop's own timers starve."""

    async def endless() -> AsyncIterator[int]:
        while True:
            yield 0

    driver = driver_of(endless)
    line, other = Line(driver).start(), Line(driver).start()
    await until(lambda: line.got and other.got)
    had = len(line.got)
    await asyncio.sleep(0)
    assert len(line.got) - had <= 64
    line.go()
    other.go()
    await line.end()
    await other.end()


async def test_R112_an_error_on_one_output_ends_the_call_at_once():
    """Although the other one pulls."""
    seen = []

    async def both(xs: AsyncIterator[int]) -> tuple[AsyncIterator[int], AsyncIterator[int]]:
        async def pulling():
            try:
                async for x in xs:
                    yield x
            except InputCancelled as error:
                seen.append(str(error))
                raise

        async def broken():
            yield 1
            raise ValueError("boom")

        return pulling(), broken()

    line = Line(driver_of(both)).start(JSON, JSON)
    assert str(await line.end()) == "Invoker: Unexpected Error: ValueError: boom"
    assert seen == ["Invoker: Unexpected Error: ValueError: boom"]
    assert line.payloads(1) == [b"1"]


async def test_R134_a_call_that_outlives_its_inputs_is_logged(caplog):
    """And a call that does not, is not."""
    go = asyncio.Event()

    async def hang(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        yield 1

    driver = driver_of(hang, lingering_s=0.01)
    line = Line(driver).start().half_close()
    await until(lambda: "goes on although its inputs ended" in caplog.text)
    go.set()
    assert await line.end() is None
    assert caplog.text.count("goes on although") == 1
