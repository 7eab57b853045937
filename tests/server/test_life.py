"""The parts of a server's life; whole processes live in tests/e2e."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

import pytest

from invoker.cli.main import build
from invoker.errors import StartupError
from invoker.server import life
from invoker.server.stopping import Signals
from invoker.settings import Config

CONFIG = Config(host="127.0.0.1", grpc_port=0, port=0, lame_duck_s=3600.0)


async def test_who_is_told_to_end_gives_up_its_start(monkeypatch):
    """And whoever is not told starts."""
    server = build(CONFIG, "functions.square:square")
    assert await life.begin(server, asyncio.Event())
    assert await life.end(server, 0.0) == 0
    server, told = build(CONFIG, "functions.square:square"), asyncio.Event()

    async def for_ever():
        told.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(server, "start", for_ever)
    assert not await life.begin(server, told)


async def test_a_start_that_fails_or_is_cancelled_is_no_end_that_was_asked_for(monkeypatch):
    """Both are told to the caller, after the stop hooks; nothing waits for a signal any more."""
    for error in (StartupError("no model"), asyncio.CancelledError()):
        server = build(CONFIG, "functions.square:square")
        stops: list[float] = []

        async def fail(error=error):
            raise error

        async def stop(*, drain_s, stops=stops):
            stops.append(drain_s)

        monkeypatch.setattr(server, "start", fail)
        monkeypatch.setattr(server, "stop", stop)
        with pytest.raises(type(error)):
            await life.begin(server, asyncio.Event())
        assert stops == [0]
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_R024_a_lame_duck_lives_until_the_drain():
    """It is not ready from the signal on, while its engine admits; SIGINT makes none."""
    server = build(CONFIG, "functions.square:square")
    assert await life.begin(server, asyncio.Event())
    assert await server.is_ready()
    signals = Signals(CONFIG.lame_duck_s)
    signals._interrupted(signal.SIGTERM, None)
    lame = asyncio.create_task(life.lame_duck(server, signals))
    await asyncio.sleep(0)
    assert not await server.is_ready()
    assert not server.engine.is_draining
    assert not lame.done()
    signals._interrupted(signal.SIGTERM, None)
    await lame
    await life.lame_duck(server, signals)  # over at once
    await server.stop(drain_s=0)


@pytest.fixture
def _signals_as_before():
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals_as_before")
@pytest.mark.parametrize("hangup_drain_s", [None, 7.0])
async def test_R016_R024_a_life_from_the_ready_line_to_the_end(monkeypatch, hangup_drain_s):
    """It is announced, a lame duck, and drained; nothing that could end the process is armed behind it."""
    server = build(replace(CONFIG, drain_s=3.0), "functions.square:square")
    drains: list[float] = []
    announced, told, armed = asyncio.Event(), asyncio.Event(), []
    stop, arm = server.stop, server.guard.arm

    async def stopped(*, drain_s):
        drains.append(drain_s)
        return await stop(drain_s=drain_s)

    monkeypatch.setattr(life, "announce", lambda line: announced.set())

    async def tell():
        told.set()

    monkeypatch.setattr(server, "stop", stopped)
    monkeypatch.setattr(server, "refresh_health", tell)
    monkeypatch.setattr(server.guard, "arm", lambda *given: (armed.append(given), arm(*given)))
    running = asyncio.create_task(life.run(server, hangup_drain_s=hangup_drain_s))
    await announced.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    await told.wait()
    assert server.is_lame
    assert not server.engine.is_draining
    os.kill(os.getpid(), signal.SIGINT if hangup_drain_s is None else signal.SIGHUP)
    assert await running == 0
    assert drains == [3.0 if hangup_drain_s is None else 7.0]
    assert armed
    assert server.guard._disarmed.is_set()


def test_a_loop_that_was_run_to_its_end_leaves_no_guard_armed():
    """Else the process would be ended by force while it goes on with something else."""
    server = build(CONFIG, "functions.square:square")

    async def main():
        return 5

    assert life.run_to_end(server, main, None) == 5
    assert server.guard._disarmed.is_set()


async def test_a_failure_is_told_although_the_end_was_asked_for(monkeypatch):
    """Only a start that was given up is no failure."""
    server, told = build(CONFIG, "functions.square:square"), asyncio.Event()

    async def fail():
        told.set()
        raise StartupError("no model")

    monkeypatch.setattr(server, "start", fail)
    with pytest.raises(StartupError, match="no model"):
        await life.begin(server, told)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 invocations are"), (1, "1 invocation is"), (2, "2 invocations are")]
)
async def test_calls_are_refused_before_the_stop_is_told(monkeypatch, caplog, count, text):
    """Who reads the line may count on it; the exit code says whether all ended in time."""
    server = build(CONFIG, "functions.square:square")
    server.engine.running.update({str(number): None for number in range(count)})

    async def stop(*, drain_s):
        assert server.engine.is_draining
        assert caplog.messages == [f"stopping: {text} running"]
        return count < 2

    monkeypatch.setattr(server, "stop", stop)
    caplog.set_level("INFO", "invoker.server.life")
    assert await life.end(server, 0.0) == (0 if count < 2 else 1)
