"""Bodies in child processes: they do what other bodies do, and a crash is that of one call."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from invoker.errors import DeadlineExceeded, FunctionError, LimitExceeded, Status
from invoker.execution.isolation.child import Child
from invoker.execution.isolation.faults import ChildDied, MemoryExceeded
from invoker.execution.isolation.frames import Stop
from tests.execution.isolation import functions as f
from tests.execution.isolation.world import serving, until

SLOW = float(os.environ.get("INVOKER_TEST_SLOW", "1"))


async def test_functions_of_every_shape_give_what_they_give_elsewhere() -> None:
    """Mapped, async, streaming, several inputs and outputs, options, classes."""
    shapes = (f.square, f.asquare, f.accumulate, f.evens, f.first_second, f.scaled, f.Model, f.thread_burst)
    async with serving(*shapes) as world:
        assert await world.call("square", [2, 3]) == ([4, 9], None)
        assert await world.call("asquare", [2, 3]) == ([4, 9], None)
        assert await world.call("accumulate", range(300)) == ([sum(range(n + 1)) for n in range(300)], None)
        values, error = await world.call("evens", range(5), outputs=2)
        assert (sorted(values), error) == ([(0, 0), (0, 2), (0, 4), (1, 1), (1, 3)], None)
        assert await world.call("scaled", [1, 2], [5], names=("xs", "factor")) == ([5, 10], None)
        assert await world.call("scaled", [1, 2], names=("xs",)) == ([2, 4], None)
        assert await world.call("Model", [1, 2]) == ([True, True], None)
        assert await world.call("thread_burst", [500]) == (list(range(500)), None)


async def test_an_input_that_is_read_late_does_not_stop_the_others() -> None:
    """The starvation rule holds over the pipe: more than a window waits for the first input meanwhile."""
    async with serving(f.first_second) as world:
        assert await world.call("first_second", range(3000), range(5)) == ([10, sum(range(3000))], None)


@pytest.mark.parametrize(("how", "words"), [("exit", "exit code 3"), ("segfault", "SIGSEGV"), ("kill", "SIGKILL")])
async def test_a_crash_is_that_of_one_call(how: str, words: str) -> None:
    """Others go on, and the next call finds a child."""
    async with serving(f.crash, f.accumulate, most=4) as world:
        others = [asyncio.create_task(world.call("accumulate", range(2000))) for _ in range(2)]
        values, error = await world.call("crash", [how])
        assert values == []
        assert isinstance(error, ChildDied)
        assert words in str(error)
        assert await world.call("crash", ["fine"]) == (["fine"], None)
        for one in others:
            assert (await one)[1] is None


async def test_an_exception_has_its_text_and_traceback() -> None:
    """What the author reads in the log names the author's line."""
    async with serving(f.crash) as world:
        _, error = await world.call("crash", ["raise"])
        assert isinstance(error, FunctionError)
        assert str(error) == "Invoker: Unexpected Error: ValueError: this one is bad"
        assert 'raise ValueError("this one is bad")' in str(error.__cause__)


async def test_T061_memory_past_the_limit_fails_that_call_only() -> None:
    """10 GiB are refused, the process lives, and the child is replaced."""
    async with serving(f.hog) as world:
        for _ in range(2):
            _, error = await world.call("hog", [10 * 2**30])
            assert isinstance(error, MemoryExceeded)
            assert isinstance(error, LimitExceeded)
            assert error.status is Status.RESOURCE_EXHAUSTED
            assert "268435456 bytes" in str(error)
        assert await world.call("hog", [1000]) == ([1000], None)


async def test_a_function_that_spins_is_told_of_at_once_and_killed_within_a_second(tmp_path: Path) -> None:
    """Its caller hears of the time limit; the process ends, though it never gives up its thread."""
    path, busy = tmp_path / "began", None
    async with serving(f.deaf, f.square) as world:
        children = world.driver.children
        while not path.exists():  # on a busy machine its time may be over before its process has begun it
            began = time.monotonic()
            deaf, ended = asyncio.create_task(world.call("deaf", [str(path)])), list[float]()
            deaf.add_done_callback(lambda _, ended=ended: ended.append(time.monotonic()))
            await until(lambda: children.busy)
            (busy,) = children.busy
            assert (await world.call("square", [3]))[0] == [9]
            _, error = await deaf
            assert isinstance(error, DeadlineExceeded)
            assert ended[0] - began < 0.3 + 0.25 * SLOW
            await until(lambda busy=busy: busy not in children.busy, 1.0 * SLOW)
        assert busy is not None
        assert busy.pid not in children.pids
        await until(lambda: not world.driver.leaving)


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_function_whose_time_is_over_before_it_begins_never_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_told: bool
) -> None:
    """Its process came to it late; if it says so in time, it is not killed, and the next call is served.

    It need not be told that the call is over: that may come to it later than the call.
    """
    send = Child.send
    if not is_told:
        monkeypatch.setattr(Child, "send", lambda child, frame: isinstance(frame, Stop) or send(child, frame))
    monkeypatch.setattr("invoker.execution.bodies.process._LATE_S", 60)  # it is stopped for a part of this
    path = tmp_path / "began"
    async with serving(f.deaf, f.square, grace_s=60) as world:
        (number,) = world.driver.children.pids
        os.kill(number, signal.SIGSTOP)
        try:
            _, error = await world.call("deaf", [str(path)])
        finally:
            os.kill(number, signal.SIGCONT)
        assert isinstance(error, DeadlineExceeded)
        await until(lambda: not world.driver.children.busy, 10.0 * SLOW)
        assert number in world.driver.children.pids
        assert await world.call("square", [3]) == ([9], None)
        assert not path.exists()


async def test_a_caller_that_leaves_ends_a_deaf_function(tmp_path: Path) -> None:
    """The child is killed after the grace; nothing of it stays."""
    path = tmp_path / "pid"
    async with serving(f.nap, grace_s=0.2) as world:
        task = asyncio.create_task(world.call("nap", [str(path)]))
        await until(lambda: path.exists() and path.read_text())
        number = int(path.read_text())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: number not in world.driver.children.pids, 2.0 * SLOW)
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


async def test_an_async_function_cleans_up_when_its_caller_leaves(capfd: pytest.CaptureFixture[str]) -> None:
    """It is told first, so its ``finally`` runs and its child is used again."""
    async with serving(f.stop_after, f.pid, most=1) as world:
        forever = iter(range(10**9))
        task = asyncio.create_task(world.call("stop_after", forever))
        await until(lambda: world.driver.children.busy)
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not world.driver.children.busy)
        assert (await world.call("pid", [1]))[1] is None
    assert "finally" in capfd.readouterr().err


async def test_a_child_that_writes_rubbish_is_killed() -> None:
    """Its call fails, and the process goes on."""
    async with serving(f.rubbish, f.square) as world:
        _, error = await world.call("rubbish", [1])
        assert isinstance(error, ChildDied)
        assert await world.call("square", [4]) == ([16], None)


async def test_the_context_is_that_of_the_call() -> None:
    """Metadata, deadline and function cross the pipe."""
    async with serving(f.tell) as world:
        values, error = await world.call("tell", [1], metadata={"who": "me"}, deadline=time.monotonic() + 30)
        assert (values, error) == ([[1, "tell", "me", True, None]], None)


async def test_functions_in_children_call_others() -> None:
    """`Context.call` and `Context.stream` go over the pipe, with values and with iterators."""
    async with serving(f.calls_it, f.streams_it, f.label) as world:
        assert await world.call("calls_it", [1]) == ([13], None)
        assert await world.call("streams_it", [1, 2, 3]) == ([101, 102, 103], None)


async def test_one_child_serves_many_calls() -> None:
    """It is given back, and used again."""
    async with serving(f.pid, most=2) as world:
        seen = {(await world.call("pid", [1]))[0][0] for _ in range(8)}
        assert len(seen) <= 2
        assert os.getpid() not in seen


async def test_T064_a_child_tells_what_its_invocation_took() -> None:
    """Its processor time, and its memory at most: of this call, whatever the child has done before."""
    seen: list[tuple[int, int]] = []
    async with serving(f.spends, f.square, most=1) as world:
        world.driver.engine.on_close.append(lambda one: seen.append((one.cpu_ns, one.memory_bytes)))
        assert await world.call("spends", [100]) == ([100 << 20], None)
        assert await world.call("square", [2]) == ([4], None)
    (much_ns, much_bytes), (little_ns, little_bytes) = seen
    assert much_ns >= 30_000_000
    assert 0 < little_ns < 30_000_000
    assert much_bytes > 100 << 20
    assert 1 << 20 < little_bytes < much_bytes - (50 << 20)
