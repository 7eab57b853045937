"""Outputs that end, or lose their reader, while their invocation goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from invoker import Context, Output, Status, function
from invoker.core.steps import CloseOutput, Emitted, Finished, Open, OutputEnded
from invoker.execution.bodies.thread import ThreadRunner
from invoker.protocols.riff.session import RiffSession
from tests.execution.loopcalls import FakeCall
from tests.execution.memory import driver_of
from tests.execution.wires import LIMIT_S, Call, direct_driver

JSON = "application/json"

Pair = tuple[Iterator[int], Iterator[int]]


class StoreChanged(RiffSession):
    """Keeps the events of its invocation; does what a test asks for when an output has given so many values."""

    def __init__(self, *, close: dict[int, int] | None = None, unwanted: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.events: list[Any] = []
        self._close = close or {}
        self._unwanted = unwanted

    def receive(self, frame: bytes) -> Any:
        return [
            Open(one.id, accepts=one.accepts, unwanted=self._unwanted) if type(one) is Open else one
            for one in super().receive(frame)
        ]

    def deliver(self, event: Any) -> Any:
        self.events.append(event)
        steps = list(super().deliver(event))
        given = sum(type(one) is Emitted and one.index == getattr(event, "index", None) for one in self.events)
        if type(event) is Emitted and self._close.get(event.index) == given:
            steps.append(CloseOutput(event.id, event.index))
        return steps

    def told(self) -> list[Any]:
        """Indexes of values, ``(index, "end")``, and how it finished."""
        short = {
            Emitted: lambda one: one.index,
            OutputEnded: lambda one: (one.index, "end"),
            Finished: lambda one: one.error,
        }
        return [short[type(one)](one) for one in self.events]


async def over(kind: str, fn: Any, session: StoreChanged, *data: bytes, half_closes: bool = True) -> list[Any]:
    """Run a function with two outputs to its end; what its session was told."""
    if kind == "direct":
        call = Call(direct_driver(fn), session=session).start(JSON, JSON)
    else:
        made = driver_of(fn)
        call = FakeCall(made, session=session).start(JSON, JSON)
    for payload in data:
        call.data(payload)
    if half_closes:
        call.half_close()
    if kind == "direct":
        await asyncio.to_thread(call.end)
    else:
        await asyncio.wait_for(call.end(), LIMIT_S)
        await call.driver.left(LIMIT_S)
        call.driver.threads.close()
    return session.told()


def unequal(xs: Iterator[int]) -> Pair:
    is_short_over = threading.Event()

    def short() -> Iterator[int]:
        yield 1
        yield 2
        is_short_over.set()

    def long() -> Iterator[int]:
        is_short_over.wait(LIMIT_S)
        yield from xs

    return short(), long()


async def aunequal(xs: AsyncIterator[int]) -> tuple[AsyncIterator[int], AsyncIterator[int]]:
    is_short_over = asyncio.Event()

    async def short() -> AsyncIterator[int]:
        yield 1
        yield 2
        is_short_over.set()

    async def long() -> AsyncIterator[int]:
        await is_short_over.wait()
        async for x in xs:
            yield x

    return short(), long()


every_way = pytest.mark.parametrize(
    ("kind", "fn"),
    [
        ("direct", unequal),
        ("reactor", unequal),
        ("reactor", aunequal),
    ],
)


@every_way
async def test_each_end_of_several_outputs_is_told_after_its_last_value(kind: str, fn: Any):
    """Once for each, before the end of the invocation, whatever the other outputs do meanwhile."""
    told = await over(kind, fn, StoreChanged(), b"5", b"6")
    assert [one for one in told if one in (0, (0, "end"))] == [0, 0, (0, "end")]
    assert [one for one in told if one in (1, (1, "end"))] == [1, 1, (1, "end")]
    assert told[-1] is None
    assert len(told) == 7


@every_way
async def test_E086_an_unwanted_output_is_drained_in_silence(kind: str, fn: Any):
    """Neither its values nor its end are told; the others are."""
    told = await over(kind, fn, StoreChanged(unwanted=(0,)), b"5")
    assert told == [1, (1, "end"), None]


@pytest.mark.parametrize("kind", ["direct", "reactor"])
async def test_the_end_of_an_output_that_the_function_ends_itself_is_told(kind: str):
    """A lone generator's other outputs end with the invocation."""

    @function(outputs=("a", "b"))
    def ends(xs: Iterator[int], ctx: Context) -> Iterator[Output]:
        ctx.outputs["b"].send(1)
        ctx.outputs["b"].end()
        yield Output("a", 1)

    told = await over(kind, ends, StoreChanged())
    assert [one for one in told if one != 0] == [1, (1, "end"), None]
    assert told.count(0) == 1


left: list[str] = []


def endless(xs: Iterator[int]) -> Pair:
    is_closed = threading.Event()

    def first() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            left.append("first")
            is_closed.set()

    def second() -> Iterator[int]:
        is_closed.wait(LIMIT_S)
        yield 2

    return first(), second()


async def aendless(xs: AsyncIterator[int]) -> tuple[AsyncIterator[int], AsyncIterator[int]]:
    is_closed = asyncio.Event()

    async def first() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            left.append("first")
            is_closed.set()

    async def second() -> AsyncIterator[int]:
        await is_closed.wait()
        yield 2

    return first(), second()


@function(outputs=("a", "b"))
def endless_lone(xs: Iterator[int], ctx: Context) -> Iterator[Output]:
    try:
        while True:
            yield Output("a", 1)
            if not ctx.wants("a"):
                yield Output("b", 2)
    finally:
        left.append("first")


@function(outputs=("a", "b"))
async def endless_sends(xs: AsyncIterator[int], ctx: Context) -> None:
    try:
        while True:
            await ctx.outputs["a"].send(1)
            if not ctx.wants("a"):
                await ctx.outputs["b"].send(2)
    finally:
        left.append("first")


@pytest.mark.parametrize("kind", ["pump", "reactor"])
@pytest.mark.parametrize("fn", [endless, aendless])
async def test_E119_an_output_without_reader_is_closed_in_the_function(kind: str, fn: Any):
    """Its ``finally`` runs, the other output goes on, and the invocation ends normally."""
    left.clear()
    told = await over(kind, fn, StoreChanged(close={0: 3}), half_closes=False)
    assert left == ["first"]
    assert [one for one in told if one != 0] == [1, (1, "end"), None]
    assert told.count(0) >= 3


@pytest.mark.parametrize("kind", ["pump", "reactor"])
@pytest.mark.parametrize("fn", [endless_lone, endless_sends])
async def test_E119_who_gives_several_outputs_goes_on_until_none_is_read(kind: str, fn: Any):
    """It may ask its context whether an output is wanted."""
    left.clear()
    told = await over(kind, fn, StoreChanged(close={0: 3, 1: 2}), half_closes=False)
    assert left == ["first"]
    assert told[-1] is None
    assert told.count(1) >= 2


async def endless_adrops(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    while True:
        yield 1


def endless_drops(xs: Iterator[int]) -> Iterator[int]:
    while True:
        yield 1


@pytest.mark.parametrize("fn", [endless_adrops, endless_drops])
async def test_R115_an_endless_unwanted_output_can_be_cancelled(fn: Any):
    """Nothing waits for the wire any more, so dropping itself must look."""
    peer = FakeCall(driver_of(fn, grace_s=LIMIT_S), session=StoreChanged(unwanted=(0,))).start(JSON)
    await asyncio.sleep(0)
    peer.go()
    assert (await peer.end()).status is Status.CANCELLED
    assert await peer.driver.left(LIMIT_S)
    peer.driver.threads.close()


async def test_a_host_that_hears_waits_is_told_of_every_waiting_reader():
    """Although nothing has paused; others are left in peace."""

    def take(xs: Iterator[int]) -> Iterator[int]:
        yield from xs

    class Host:
        is_paused = False
        hears_waits = True

        def __init__(self) -> None:
            self.heard = asyncio.Event()

        def resume(self) -> None:
            self.heard.set()

        def finished(self, *_: Any) -> None:
            return None

    driver, host = driver_of(take), Host()
    invocation = driver.engine.open(Open("a"))
    left = asyncio.Event()
    runner = ThreadRunner(
        invocation,
        host,
        threads=driver.threads,
        grace_s=LIMIT_S,
        on_left=lambda _: left.set(),  # type: ignore[arg-type]
    )
    runner.start()
    await asyncio.wait_for(host.heard.wait(), LIMIT_S)
    runner.finish(None)
    runner.stop()
    await asyncio.wait_for(left.wait(), LIMIT_S)
    driver.threads.close()
