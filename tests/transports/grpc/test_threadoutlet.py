"""The outlet of a sync function beside the loop: who sends what, and who waits for the thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from invoker.core.steps import Close
from invoker.errors import Cancelled, InternalError, InvocationError, Overloaded
from invoker.execution.driver import Driver
from invoker.transports.grpc.loopcall import LITTLE_BYTES
from invoker.transports.grpc.threadoutlet import ThreadOutlet
from tests.execution.memory import driver_of


class Call:
    """A call that notes what is asked of it, and in which thread."""

    peer = "ipv4:127.0.0.1:1"
    is_gone = False

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.threads: list[int] = []
        self.listener: Any = None
        self.came = asyncio.Event()

    def listen(self, listener: Any) -> None:
        self.listener = listener

    def _note(self, *asked: Any) -> None:
        self.asked.append(asked)
        self.threads.append(threading.get_ident())

    def accepted(self) -> None:
        self._note("accepted")

    def write(self, frame: bytes) -> None:
        self._note("write", frame)

    def reply(self, frames: list[bytes], close: Close) -> None:
        self._note("reply", frames, close)
        self.came.set()

    def reply_at_once(self, frames: list[bytes], close: Close, done: Any) -> None:
        self._note("at once", frames, close)
        self.done = done

    def cut(self, error: Exception) -> None:
        self._note("cut", error)


class Poller:
    """Counts the calls that may post."""

    calls = 0

    def opened(self) -> None:
        self.calls += 1

    def closed(self) -> None:
        self.calls -= 1


class Whole:
    """A conversation whose function waits for a test."""

    def __init__(self, *frames: bytes) -> None:
        self.sent = list(frames)
        self.began, self.go = threading.Event(), threading.Event()
        self.slots: int | None = None
        self.is_gone = False
        self.close = Close()

    def run(self) -> Close:
        self.began.set()
        assert self.go.wait(5)
        return self.close

    def break_off(self, error: InvocationError) -> None:
        self.is_gone = isinstance(error, Cancelled)


class World:
    """An outlet, and what is around it."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.call, self.poller = driver, Call(), Poller()
        self.outlet = ThreadOutlet(self.call, self.poller, driver)  # type: ignore[arg-type]

    async def run(self, whole: Whole) -> None:
        """Start a conversation, and wait until its thread is free."""
        self.outlet.start(whole)  # type: ignore[arg-type]
        assert await asyncio.to_thread(whole.began.wait, 5)
        assert (self.poller.calls, self.driver.threads.busy) == (1, 1)
        whole.go.set()
        while self.driver.threads.busy or not self.call.asked:  # noqa: ASYNC110 - another thread changes it
            await asyncio.sleep(0.001)


def identity(x: int) -> int:
    return x


@pytest.fixture
async def world() -> AsyncIterator[World]:
    driver = driver_of(identity, threads=1)
    yield World(driver)
    driver.close()


@pytest.mark.parametrize("frames", [(), (b"",), (b"x" * LITTLE_BYTES,)])
async def test_the_thread_sends_a_small_reply_itself(world: World, frames: tuple[bytes, ...]) -> None:
    """The transport waits for the call until that has been sent."""
    whole = Whole(*frames)
    await world.run(whole)
    assert world.call.asked == [("at once", [*frames], whole.close)]
    assert world.call.threads != [threading.get_ident()]
    assert world.poller.calls == 1
    world.call.done(None)
    assert world.poller.calls == 0


@pytest.mark.parametrize("frames", [(b"x" * (LITTLE_BYTES + 1),), (b"1", b"2")])
async def test_the_loop_sends_a_large_reply_and_one_of_several_frames(world: World, frames: tuple[bytes, ...]) -> None:
    """Such a reply is counted, or needs more than one operation."""
    whole = Whole(*frames)
    await world.run(whole)
    await asyncio.wait_for(world.call.came.wait(), 5)
    assert world.call.asked == [("reply", [*frames], whole.close)]
    assert world.call.threads == [threading.get_ident()]
    assert world.poller.calls == 0


async def test_the_loop_sends_what_follows_on_something_that_was_sent_early(world: World) -> None:
    """The headers, then the frames in their order; what was taken is not sent again."""
    whole, early = Whole(b"1"), [b"0"]
    world.outlet.early(early)
    assert early == []
    await world.run(whole)
    await asyncio.wait_for(world.call.came.wait(), 5)
    assert world.call.asked == [("accepted",), ("write", b"0"), ("reply", [b"1"], whole.close)]
    assert set(world.call.threads) == {threading.get_ident()}


async def test_an_ending_may_be_sent_while_the_function_still_runs(world: World) -> None:
    """Its time limit has passed; the reply of the function is left to the call, which takes the first one."""
    close = Close(InternalError())
    world.outlet.early([b"0"], close)
    await asyncio.wait_for(world.call.came.wait(), 5)
    assert world.call.asked == [("accepted",), ("write", b"0"), ("reply", [], close)]


async def test_nothing_is_sent_early_to_a_peer_that_has_left(world: World) -> None:
    """The function hears of it only if it would have to wait otherwise."""
    world.call.is_gone = True
    assert world.outlet.is_gone()
    with pytest.raises(Cancelled):
        world.outlet.early([b"0"], may_wait=True)
    world.outlet.early([])
    assert world.outlet.peer == Call.peer
    world.outlet.cut(error := InternalError())
    assert world.call.asked == [("cut", error)]


async def test_R115_the_conversation_hears_of_a_peer_that_leaves_while_the_function_runs(world: World) -> None:
    """The outlet listens to its call, wants no frame, and forgets the conversation when that is over."""
    whole, second = Whole(), Whole()
    world.outlet.gone()
    world.outlet.start(whole)  # type: ignore[arg-type]
    assert world.call.listener is world.outlet
    assert not world.outlet.settles
    assert not world.outlet.arrived(None)
    assert not whole.is_gone
    world.outlet.gone()
    assert whole.is_gone
    whole.go.set()
    while world.driver.threads.busy or not world.call.asked:  # noqa: ASYNC110 - another thread changes it
        await asyncio.sleep(0.001)
    world.call.done(None)
    await world.run(second)
    world.outlet.gone()
    assert not second.is_gone


async def test_R132_without_a_thread_nothing_is_left(world: World) -> None:
    """Neither a slot that is taken nor a call for which the transport waits."""
    world.driver.threads.enter()
    whole = Whole()
    with pytest.raises(Overloaded):
        world.outlet.start(whole)  # type: ignore[arg-type]
    world.driver.threads.leave()
    assert (world.poller.calls, world.driver.threads.busy) == (0, 0)
    world.outlet.gone()
    assert not whole.is_gone
