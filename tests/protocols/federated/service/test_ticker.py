"""One timer calls a coordinator when it is time, and no sooner."""

from __future__ import annotations

import asyncio
import time

import pytest

from invoker.protocols.federated.service.ticker import Ticker


class Coordinator:
    """It has times at which it wants to be called."""

    def __init__(self, *due: float) -> None:
        self.due = list(due)
        self.called: list[float] = []
        self.is_done = asyncio.Event()

    def next_tick(self) -> float | None:
        return self.due[0] if self.due else None

    def tick(self) -> None:
        self.called.append(time.monotonic())
        if self.due:
            self.due.pop(0)
        if not self.due:
            self.is_done.set()


async def test_it_calls_at_each_time_and_sleeps_between() -> None:
    """The coordinator has said the first time; the others follow by themselves."""
    now = time.monotonic()
    coordinator = Coordinator(now + 0.02, now + 0.06)
    ticker = Ticker(coordinator, time.monotonic)
    ticker.wake(now + 0.02)
    await coordinator.is_done.wait()
    first, second = coordinator.called
    assert first >= now + 0.019
    assert second >= now + 0.059


async def test_an_earlier_time_replaces_a_later_one() -> None:
    """A later one does not."""
    now = time.monotonic()
    coordinator = Coordinator()
    ticker = Ticker(coordinator, time.monotonic)
    ticker.wake(now + 60)
    ticker.wake(now)
    ticker.wake(now + 30)
    await coordinator.is_done.wait()
    assert time.monotonic() < now + 30
    ticker.stop()


async def test_it_goes_on_when_the_coordinator_fails(caplog: pytest.LogCaptureFixture) -> None:
    """That is logged; nothing else would call the coordinator ever again."""
    now = time.monotonic()
    coordinator = Coordinator(now, now)
    tick = coordinator.tick

    def failing() -> None:
        tick()
        raise ValueError("oops")

    coordinator.tick = failing  # type: ignore[method-assign]
    Ticker(coordinator, time.monotonic).wake(now)
    await coordinator.is_done.wait()
    await asyncio.sleep(0)
    assert caplog.text.count("the coordinator of federated rounds failed") == 2


async def test_a_stopped_one_never_calls() -> None:
    """Neither what was due, nor what is said later."""
    coordinator = Coordinator()
    ticker = Ticker(coordinator, time.monotonic)
    ticker.wake(time.monotonic() + 0.01)
    ticker.stop()
    ticker.wake(time.monotonic())
    await asyncio.sleep(0.03)
    assert not coordinator.called
