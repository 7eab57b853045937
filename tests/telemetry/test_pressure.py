"""Which invocations are paused or blocked, and when the log says so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from invoker.execution.thread.direct import DirectConversation
from invoker.execution.whole import Whole
from invoker.telemetry.pressure import BLOCKED, PAUSED, Flow, Pressure, flows
from tests.execution.loopcalls import FakeCall, until
from tests.execution.memory import driver_of

HIGH = 256


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int, int]]:
    records = [one for one in caplog.records if one.name == "invoker.telemetry.pressure"]
    return [(one.getMessage(), vars(one)["queued_frames"], vars(one)["queued_bytes"]) for one in records]


async def test_R128_an_invocation_stays_paused_until_reading_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """From the mark down to its half, and not beyond; the log says it at the second look, and once."""
    caplog.set_level(logging.INFO)
    go = asyncio.Semaphore(0)

    async def slow(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        async for _ in xs:
            await go.acquire()
        yield 1

    driver = driver_of(slow)
    peer, pressure = FakeCall(driver).start(), Pressure(driver)
    for _ in range(2 * HIGH):
        peer.data(b"1")
    await until(lambda: flows(driver))
    (invocation,) = driver.engine.running.values()
    while invocation.budget.frames > HIGH // 2 + 1:
        go.release()
        left = invocation.budget.frames
        await until(lambda left=left: invocation.budget.frames < left)
        assert flows(driver)[invocation.id].is_paused
    pressure.look()
    assert lines(caplog) == []
    for _ in range(3):
        pressure.look()
    assert lines(caplog) == [(PAUSED, HIGH // 2 + 1, HIGH // 2 + 1)]
    go.release()
    await until(lambda: not flows(driver) or invocation.budget.frames > HIGH // 2 + 1)
    peer.half_close()
    for _ in range(2 * HIGH):
        go.release()
    assert await peer.end() is None
    assert flows(driver) == {}
    pressure.look()
    assert not pressure._told, "what has ended is forgotten"


async def test_R127_an_invocation_is_blocked_while_nobody_reads(caplog: pytest.LogCaptureFixture) -> None:
    """Told once; who was blocked at one look only is not told."""
    caplog.set_level(logging.INFO)

    async def fast() -> AsyncIterator[int]:
        while True:
            yield 1

    driver = driver_of(fast)
    peer, pressure = FakeCall(driver), Pressure(driver)
    peer.is_full = True
    peer.start().half_close()
    await peer.waits.wait()
    (invocation,) = driver.engine.running.values()
    pressure.look()
    invocation.blocked -= 1
    pressure.look()
    invocation.blocked += 1
    pressure.look()
    assert lines(caplog) == []
    for _ in range(3):
        pressure.look()
    assert lines(caplog) == [(BLOCKED, 0, 0)]
    peer.go()
    await peer.end()


class Kept(Whole):
    """A thread that had all of its input before it began, and whose peer may take nothing."""

    def __init__(self, id: str, *, is_open: bool, is_blocked: bool) -> None:
        self.is_open = is_open
        self.outlet: Any = SimpleNamespace(is_blocked=is_blocked)
        self.invocation: Any = SimpleNamespace(id=id)


class Direct(DirectConversation):
    """A thread that reads for its function; frames wait at its call."""

    def __init__(self, id: str, *waiting: bytes, is_idle: bool = False, is_blocked: bool = False) -> None:
        self.wire: Any = SimpleNamespace(waiting=waiting, is_idle=is_idle, is_blocked=is_blocked)
        self.invocation: Any = SimpleNamespace(id=id)


async def test_R127_R128_what_threads_wait_for_is_seen() -> None:
    """Of those that read for their functions, and of those that had all input before they began."""
    driver = driver_of()
    driver.direct |= {
        Kept("kept", is_open=True, is_blocked=True),
        Kept("taken", is_open=True, is_blocked=False),
        Kept("over", is_open=False, is_blocked=True),
        Direct("slow", b"abc", b"d"),
        Direct("idle", b"abc", is_idle=True),
        Direct("blocked", is_blocked=True),
    }
    assert flows(driver) == {
        "kept": Flow(is_blocked=True),
        "slow": Flow(is_paused=True, frames=2, bytes=4),
        "idle": Flow(frames=1, bytes=3),
        "blocked": Flow(is_blocked=True),
    }


async def test_it_looks_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Again and again; one that never began can be stopped, too."""
    monkeypatch.setattr("invoker.telemetry.pressure._LOOK_S", 0.001)
    looks: list[None] = []
    monkeypatch.setattr(Pressure, "look", lambda _: looks.append(None))
    pressure = Pressure(driver_of())
    pressure.stop()
    pressure.start()
    await until(lambda: len(looks) > 2)
    pressure.stop()
    count = len(looks)
    await asyncio.sleep(0.01)
    assert len(looks) == count
