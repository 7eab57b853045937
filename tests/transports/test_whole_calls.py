"""What a call keeps that is all here before its function runs, on each gRPC transport, by raw HTTP/2 frames."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar

import pytest

from invoker import Context, Status
from invoker.core.plan import Plan
from tests.conftest import SLOW
from tests.transports.rawpeer import RawPeer
from tests.transports.riff import PATH, Riff, data, eventually, form, start
from tests.transports.whole_calls import (
    CORE,
    OK,
    TRANSPORTS,
    UNKNOWN,
    aecho,
    echo,
    finished,
    named,
)


def _plans() -> int:
    gc.collect()
    return sum(type(one) is Plan for one in gc.get_objects())


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_a_whole_call_has_its_deadline(kind):
    """The context tells how much time is left."""

    def left(xs: Iterator[bytes], ctx: Context) -> Iterator[str]:
        yield from (str(0 < (ctx.remaining() or 0) <= 60) for _ in xs)

    async def aleft(xs: AsyncIterator[bytes], ctx: Context) -> AsyncIterator[str]:
        async for _ in xs:
            yield str(0 < (ctx.remaining() or 0) <= 60)

    with Riff(kind, form(kind, left, aleft)) as riff, RawPeer(riff.port, agent=CORE) as peer:
        for _ in range(3):
            stream = peer.whole(PATH, start(), data(b"a"), metadata=(("grpc-timeout", "60S"),))
            messages, status, _ = peer.await_reply(stream)
            assert status == OK
            assert b"True" in messages[0]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", TRANSPORTS)
def test_R127_a_slow_reader_holds_its_own_function_only(kind):
    """A whole call whose reply is far larger than any window: its function waits, and others are served."""
    made = [0]

    def pour(xs: Iterator[bytes]) -> Iterator[bytes]:
        for _ in xs:
            for number in range(400):
                made[0] = number + 1
                yield b"%06d" % number * 5000

    async def apour(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for _ in xs:
            for number in range(400):
                made[0] = number + 1
                yield b"%06d" % number * 5000

    apour.__name__ = "pour"
    functions = form(kind, pour, apour), form(kind, echo, aecho)
    with (
        Riff(kind, *functions) as riff,
        RawPeer(riff.port, agent=CORE) as slow,
        RawPeer(riff.port, agent=CORE) as quick,
    ):
        stream = slow.whole(PATH, start(), data(b"a"), metadata=named("pour"))
        assert eventually(lambda: made[0] > 0)
        for _ in range(50):
            reply = quick.await_reply(quick.whole(PATH, start(), data(b"a"), metadata=named("echo")))
            assert reply[1] == OK
        seen = made[0]
        assert seen < 400
        messages, status, _ = slow.await_reply(stream)
        assert status == OK
        assert [b"%06d" % number in one for number, one in enumerate(messages)] == [True] * 400


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_an_early_output_of_a_slow_whole_call_arrives_before_its_end(kind):
    """Again and again, so that nothing which is learned of a function's pace holds it back."""
    go = threading.Semaphore(0)

    def early(xs: Iterator[bytes]) -> Iterator[bytes]:
        yield b"early"
        assert go.acquire(timeout=5)
        yield b"late"

    async def aearly(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        yield b"early"
        assert await asyncio.to_thread(go.acquire, timeout=5)
        yield b"late"

    with Riff(kind, form(kind, early, aearly)) as riff, RawPeer(riff.port, agent=CORE) as peer:
        for _ in range(5):
            stream = peer.whole(PATH, start(), data(b"a"))
            peer.await_message(stream)
            go.release()
            peer.await_end(stream)
        assert finished(riff, 5) == {Status.OK: 5}


@pytest.mark.timeout(20)
def test_fifty_quick_whole_calls_do_not_wait_for_one_that_blocks():
    """The lead passes on: none of them waits for the second that the other sleeps."""
    asleep, wake = threading.Event(), threading.Event()

    def block(xs: Iterator[bytes]) -> Iterator[bytes]:
        asleep.set()
        wake.wait(10)
        yield b"awake"

    with (
        Riff("direct", echo, block) as riff,
        RawPeer(riff.port, agent=CORE) as long,
        RawPeer(riff.port, agent=CORE) as peer,
    ):
        for _ in range(3):
            stream = long.whole(PATH, start(), data(b"a"), metadata=named("block"))
            assert asleep.wait(5)
            began = time.monotonic()
            streams = [peer.whole(PATH, start(), data(b"a"), metadata=named("echo")) for _ in range(50)]
            assert {one[1] for one in peer.await_replies(streams).values()} == {OK}
            assert time.monotonic() - began < 1 * SLOW
            wake.set()
            assert long.await_reply(stream)[1] == OK
            asleep.clear()
            wake.clear()


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_R046_two_starts_in_one_write(kind):
    """The function does not run, and its caller is told why."""
    ran = []

    def note(xs: Iterator[bytes]) -> Iterator[bytes]:
        ran.extend(xs)
        yield b""

    async def anote(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        ran.extend([x async for x in xs])
        yield b""

    with Riff(kind, form(kind, note, anote)) as riff, RawPeer(riff.port, agent=CORE) as peer:
        for frames in ((start(), start()), (start(), start(), data(b"a"))):
            _, status, text = peer.await_reply(peer.whole(PATH, *frames))
            assert status == UNKNOWN
            assert "only once" in text
    assert ran == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["direct", "lending"])
def test_R011_hundreds_of_different_starts_leave_few_plans(kind):
    """What is kept of what callers ask for is bounded."""
    before = _plans()
    with Riff(kind, form(kind, echo, aecho)) as riff, RawPeer(riff.port, agent=CORE) as peer:
        for number in range(600):
            frames = start(f"*/*;q=0.{number:03}1, x-{number}/y"), data(b"a")
            assert peer.await_reply(peer.whole(PATH, *frames))[1] == OK
        assert _plans() - before < 300
        assert eventually(lambda: not riff.driver.engine.running)


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("place", ["call", "pool", "loop"])
def test_R012_context_variables_do_not_leak_into_the_next_call(place, is_whole):
    """Calls one after the other, on the same thread if there is one, of functions with one output and with two."""
    variable: ContextVar[str] = ContextVar("variable", default="nobody")

    def leave(xs: Iterator[bytes]) -> Iterator[str]:
        for x in xs:
            before = variable.get()
            variable.set(x.decode())
            yield before

    def twice(xs: Iterator[bytes]) -> tuple[Iterator[str], Iterator[str]]:
        return leave(xs), leave(iter([b"other"]))

    async def aleave(xs: AsyncIterator[bytes]) -> AsyncIterator[str]:
        async for x in xs:
            before = variable.get()
            variable.set(x.decode())
            yield before

    kind = "direct" if place == "call" else "lending"
    functions = {"call": (leave, twice), "pool": (leave, twice, aecho), "loop": (aleave, aecho)}[place]
    with Riff(kind, *functions) as riff, RawPeer(riff.port, agent=CORE) as peer:
        for number in range(10):
            one = functions[number % len(functions)]
            if one is aecho:
                continue
            frames = start(outputs=2 if one is twice else 1), data(b"caller %d" % number)
            if is_whole:
                stream = peer.whole(PATH, *frames, metadata=named(one.__name__))
            else:
                stream = peer.dribbled(PATH, *frames, metadata=named(one.__name__), pause_s=0.003)
            messages, status, _ = peer.await_reply(stream)
            assert status == OK
            assert all(b"nobody" in message for message in messages)
            assert messages
