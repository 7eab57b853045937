"""Sync bodies in threads."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from invoker import Context, Output, function
from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.steps import CallStep, Event, OutputEnded, Send
from invoker.execution.bodies.thread import OUTPUT_QUEUE, ThreadRunner
from invoker.execution.bodies.turns import LARGE_BYTES
from invoker.protocols.riff.session import RiffSession, State
from tests.execution.loopcalls import JSON, FakeCall, until
from tests.execution.memory import driver_of


async def test_a_stopped_emit_raises_what_except_exception_cannot_eat():
    """The next emit of a body whose invocation is over raises StopInvocation."""
    seen, left = [], threading.Event()

    def stubborn() -> Iterator[int]:
        try:
            while True:
                try:
                    yield 1
                except Exception:
                    seen.append("eaten")
        finally:
            left.set()

    peer = FakeCall(driver_of(stubborn)).start()
    await peer.outputs(3)
    peer.go()
    await peer.end()
    assert await asyncio.to_thread(left.wait, 5)
    assert await peer.driver.left(5)
    assert seen == []
    peer.driver.threads.close()


async def test_the_queue_to_the_wire_is_bounded():
    """A body is never further ahead than the queue and one batch."""
    made = []

    def numbers() -> Iterator[int]:
        for number in range(1000):
            made.append(number)
            yield number

    peer = FakeCall(driver_of(numbers))
    peer.is_full = True
    peer.start()
    await asyncio.sleep(0.1)
    assert len(made) <= 3 * OUTPUT_QUEUE
    peer.take()
    assert await peer.end() is None
    assert len(peer.got) == 1000
    peer.driver.threads.close()


@pytest.mark.parametrize("ends_one", [False, True])
@pytest.mark.parametrize("pattern", [*map("".join, itertools.product("ab", repeat=4)), "b" * 15 + "a" * 15, "ba" * 15])
async def test_H045_outputs_leave_as_their_generator_gives_them(pattern: str, ends_one: bool):
    """Also what it gives while the loop is busy, as it is at the start of a call; and the end of one of them."""
    go, made = threading.Event(), threading.Event()

    @function(outputs=("a", "b"))
    def gives(ctx: Context) -> Iterator[Output]:
        go.wait(5)
        for number, name in enumerate(pattern):
            yield Output(name, number)
        if ends_one:
            ctx.outputs["a"].end()
        yield Output("b", -1)
        made.set()

    peer = FakeCall(driver_of(gives), session=Ends()).start(JSON, JSON).half_close()
    await until(lambda: peer.driver.engine.running)
    go.set()
    assert made.wait(5)  # this blocks the loop
    assert await peer.end() is None
    end = [b"end of 0"] if ends_one else []
    assert peer.payloads() == [*(b"%d" % number for number in range(len(pattern))), *end, b"-1"]
    assert [one.resultIndex for one in peer.got if b"end" not in one.payload] == ["ab".index(x) for x in pattern + "b"]
    peer.driver.threads.close()


async def test_H045_what_is_given_while_the_loop_looks_leaves_once(monkeypatch: pytest.MonkeyPatch):
    """The loop finds nothing, and before it waits the function gives more."""
    go, made = threading.Event(), threading.Event()
    look = ThreadRunner._batch

    def slowly(runner: ThreadRunner) -> object:
        batch = look(runner)
        if batch == [] and not go.is_set():
            go.set()
            assert made.wait(5)
        return batch

    def gives(xs: Iterator[int]) -> Iterator[int]:
        yield -1  # so that the loop looks for more
        go.wait(5)
        yield from range(10)
        made.set()
        yield 10

    monkeypatch.setattr(ThreadRunner, "_batch", slowly)
    peer = FakeCall(driver_of(gives)).start(JSON).half_close()
    assert await peer.end() is None
    assert peer.payloads() == [b"%d" % number for number in range(-1, 11)]
    assert go.is_set()
    peer.driver.threads.close()


class Ends(RiffSession):
    """Tells the end of an output by a frame."""

    def deliver(self, event: Event) -> Sequence[CallStep]:
        if type(event) is OutputEnded and self.state is not State.CLOSED:
            data = pb.OutputFrame(payload=b"end of %d" % event.index)
            return (Send(pb.OutputSignal(data=data).SerializeToString()),)
        return super().deliver(event)


async def test_R036_a_blocking_function_does_not_stall_the_loop():
    """While one call blocks its thread, another one is answered."""
    go = threading.Event()

    def wait(xs: Iterator[int]) -> Iterator[int]:
        for x in xs:
            if x == 0:
                go.wait(10)
            yield x

    driver = driver_of(wait)
    slow = FakeCall(driver).start().data(b"0").half_close()
    quick = FakeCall(driver).start().data(b"1").half_close()
    assert await asyncio.wait_for(quick.ending(), 5) is None
    assert not slow.is_over
    go.set()
    assert await slow.end() is None
    driver.threads.close()


async def test_the_only_value_of_a_call_and_its_end_wake_the_loop_once(monkeypatch: pytest.MonkeyPatch):
    """No code of the author runs between the two, so nobody waits for the value."""
    woken: list[Callable[[], None]] = []
    call_on_loop = ThreadRunner.call_on_loop

    def counted(self: ThreadRunner, callback: Callable[[], None]) -> None:
        woken.append(callback)
        call_on_loop(self, callback)

    monkeypatch.setattr(ThreadRunner, "call_on_loop", counted)

    def square(x: int) -> int:
        return x * x

    line = FakeCall(driver_of(square))
    line.start().data(b"3").half_close()
    assert await line.end() is None
    assert line.got[0].payload == b"9"
    assert len(woken) == 1
    line.driver.threads.close()


@pytest.mark.parametrize("kind", ["sent", "mapped", "streamed"])
async def test_a_value_leaves_at_once_while_the_function_goes_on(kind: str):
    """Whether it sends the value by its context, is called for the next input, or is in its own loop."""
    go = threading.Event()

    def sent(x: int, ctx: Context) -> int:
        ctx.outputs[0].send(x)
        assert go.wait(10)
        return x

    def mapped(x: int) -> int:
        if x == 2:
            assert go.wait(10)
        return x

    def streamed(xs: Iterator[int]) -> Iterator[int]:
        yield from xs
        assert go.wait(10)
        yield 0

    line = FakeCall(driver_of({"sent": sent, "mapped": mapped, "streamed": streamed}[kind]))
    line.start().data(b"1")
    if kind == "mapped":
        line.data(b"2")
    line.half_close()
    assert await line.outputs(1) == [b"1"]
    go.set()
    assert await line.end() is None
    assert len(line.got) == 2
    line.driver.threads.close()


async def test_H171_behind_a_large_value_nothing_waits_for_the_wire():
    """A body is one large value ahead, and one in the batch, however many small ones it might be."""
    made = []

    def large() -> Iterator[str]:
        for number in range(20):
            made.append(number)
            yield "x" * 300_000

    peer = FakeCall(driver_of(large))
    peer.is_full = True
    peer.start()
    await asyncio.sleep(0.2)
    assert len(made) <= 4
    peer.take()
    assert await peer.end() is None
    assert len(peer.got) == 20
    peer.driver.threads.close()


async def test_large_values_ahead_of_the_wire_count_and_are_few():
    """One more is made while the peer has no room for the next; both count until the wire has them or the call ends."""
    made = []

    def large() -> Iterator[bytes]:
        for number in range(8):
            made.append(number)
            yield bytes(LARGE_BYTES + 1)

    peer = FakeCall(driver_of(large))
    memory = peer.driver.engine.memory
    peer.is_full = True
    peer.start("application/octet-stream")
    await until(lambda: memory.held > LARGE_BYTES)
    await asyncio.sleep(0.05)
    assert len(made) == 2
    peer.take()
    assert await peer.end() is None
    assert len(peer.got) == 8
    assert memory.held == 0
    peer.driver.threads.close()


async def test_large_values_of_a_call_that_ends_are_given_back():
    """Also the one whose thread waits for room."""
    left = threading.Event()

    def large() -> Iterator[bytes]:
        try:
            while True:
                yield bytes(LARGE_BYTES + 1)
        finally:
            left.set()

    peer = FakeCall(driver_of(large))
    memory = peer.driver.engine.memory
    peer.is_full = True
    peer.start("application/octet-stream")
    await until(lambda: memory.held > LARGE_BYTES)
    peer.go()
    await peer.end()
    await until(left.is_set)
    assert memory.held == 0
    peer.driver.threads.close()
