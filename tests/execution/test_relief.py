"""Invocations that hold too much together: the largest one ends, whichever driver runs it, and the others go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from invoker.core.budget import STEP_BYTES
from invoker.errors import InvocationError, Overloaded, Status
from invoker.execution.driver import Driver
from tests.execution.loopcalls import FakeCall
from tests.execution.memory import driver_of
from tests.execution.wires import Call, direct_driver

PADDED = b"1" + b" " * (2 * STEP_BYTES)


async def adeaf(xs: AsyncIterator[int], ys: AsyncIterator[int]) -> AsyncIterator[int]:
    """Its first input is not read before the second one has ended (R-129)."""
    async for y in ys:
        yield y
    async for x in xs:
        yield x


def deaf(xs: Iterator[int], ys: Iterator[int]) -> Iterator[int]:
    """The same in a thread."""
    yield from ys
    yield from xs


def narrow(driver: Driver) -> Driver:
    """A driver whose process may hold 43 frames. Holders are charged ahead: 24 frames count as 26, and 17 as 19."""
    driver.engine.memory.most_bytes = 43 * len(PADDED)
    return driver


def is_full(error: InvocationError | None) -> bool:
    """Whether it says whose limit was reached."""
    assert isinstance(error, Overloaded), error
    return error.status is Status.RESOURCE_EXHAUSTED and "INVOKER_MEMORY_BYTES" in str(error)


async def filled(made: FakeCall, frames: int) -> FakeCall:
    """A call whose first input has so many frames, all of which were taken."""
    made.start()
    for _ in range(frames):
        made.data(PADDED, 0)
    made.data(b"7", 1)
    return made


@pytest.mark.parametrize("function", [adeaf, deaf])
async def test_the_largest_invocation_ends_and_the_smaller_one_goes_on(function: Any) -> None:
    """On the loop, with a sync and an async body; nothing stays counted."""
    driver = narrow(driver_of(function))
    large = await filled(FakeCall(driver), 24)
    await seven(large)
    small = await filled(FakeCall(driver), 17)
    await seven(small)
    assert is_full(await large.ending())
    assert await small.half_close().end() is None
    assert len(small.payloads()) == 18
    assert driver.engine.memory.held == 0
    assert driver.engine.memory.ended == 1


async def seven(one: FakeCall) -> None:
    """The value of its second input came back, so all before it was taken."""
    assert await one.outputs(1) == [b"7"]


async def test_an_invocation_that_grows_largest_ends_itself() -> None:
    """Its frame is refused; the other one is not touched."""
    driver = narrow(driver_of(adeaf))
    small = await filled(FakeCall(driver), 12)
    await seven(small)
    large = await filled(FakeCall(driver), 31)
    assert is_full(await large.ending())
    assert await small.half_close().end() is None
    assert driver.engine.memory.ended == 0


def test_the_largest_direct_conversation_ends() -> None:
    """From the thread of another one; its peer is told before its own thread comes to know."""
    driver = narrow(direct_driver(deaf))
    large = Call(driver).start()
    small = Call(driver).start()
    for call, frames in ((large, 24), (small, 17)):
        for _ in range(frames):
            call.data(PADDED, 0)
        call.data(b"7", 1)
        assert call.outputs(1) == [b"7"]
    large._thread.join(5)
    assert is_full(large._result[0])
    assert large.wire.status is not None
    assert large.wire.status[0] == Status.RESOURCE_EXHAUSTED
    assert small.half_close().end() is None
    assert driver.engine.memory.held == 0
