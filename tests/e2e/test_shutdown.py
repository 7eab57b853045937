"""A process from its signal to its exit code: drain, cut, destroy hook."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from invoker.client import CallFailed, SyncRiffClient
from invoker.errors import Status
from tests.conftest import SLOW
from tests.e2e.process import Process, started

pytestmark = pytest.mark.timeout(15)

JSON = "application/json"
MODULE = """
import os, sys
from collections.abc import Iterator
from itertools import count
from invoker import function

def say(text):
    sys.stderr.write(f"{text}\\n")  # at once, so that no other thread writes between

def destroy():
    say("destroyed")
    if "FAIL" in os.environ:
        raise RuntimeError("no goodbye")

@function(destroy=destroy)
def copy(values: Iterator[int]) -> Iterator[int]:
    try:
        yield from values
    finally:
        say("left")

@function
def endless(values: Iterator[int]) -> Iterator[str]:
    try:
        for number in count():
            yield f"{number:>10000}"  # what is on its way is few values
    finally:
        say("left")
"""


class Gate:
    """An input: 1, then 2 when it is opened."""

    def __init__(self) -> None:
        self._opened = threading.Event()

    def __iter__(self) -> Iterator[int]:
        yield 1
        self._opened.wait(5 * SLOW)
        yield 2

    def open(self) -> None:
        self._opened.set()


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A directory with the module `stopping`."""
    (tmp_path / "stopping.py").write_text(MODULE)
    return tmp_path


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Opened at the end, whatever happens."""
    made = Gate()
    yield made
    made.open()


def invoke(client: SyncRiffClient, values: object, function: str = "copy") -> Iterator[int]:
    """The values that a function gives, as they come."""
    for out in client.invoke([values], accept=JSON, content_type=JSON, function=function):  # type: ignore[list-item]
        yield out.value


def at(process: Process, line: str) -> int:
    """Where a text first stands in the log."""
    return next(number for number, each in enumerate(process.lines) if line in each)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_R024_a_signal_lets_running_calls_finish(module: Path, gate: Gate, number: signal.Signals) -> None:
    """New calls are refused, the running one ends as if nothing were, then destroy runs, then exit 0 (R-024, R-018)."""
    with started("stopping", cwd=module) as process, SyncRiffClient(process.ready()[0]) as client:
        running = invoke(client, gate)
        assert next(running) == 1
        process.send(number)
        process.wait_for("stopping: ")
        with pytest.raises(CallFailed) as refused:
            list(invoke(client, [7]))
        assert refused.value.status is Status.UNAVAILABLE
        assert "destroyed\n" not in process.lines
        gate.open()
        assert list(running) == [2]
        assert process.exit_code() == 0
        assert at(process, "left") < at(process, "destroyed")


def test_R018_destroy_runs_once_after_all_invocations(module: Path) -> None:
    """Two invocations, one destroy, and it comes after both (R-018)."""
    with started("stopping", cwd=module) as process:
        with SyncRiffClient(process.ready()[0]) as client:
            assert [list(invoke(client, [number])) for number in (1, 2)] == [[1], [2]]
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
        said = [line.strip() for line in process.lines if line in ("left\n", "destroyed\n")]
        assert said == ["left", "left", "destroyed"]


def test_R025_the_drain_is_bounded(module: Path, gate: Gate) -> None:
    """A call that outlives the drain is cut with UNAVAILABLE; the function still leaves by its `finally` (R-025)."""
    env = {"INVOKER_DRAIN_S": "0.1"}
    with started("stopping", cwd=module, env=env) as process, SyncRiffClient(process.ready()[0]) as client:
        running = invoke(client, gate)
        assert next(running) == 1
        process.send(signal.SIGTERM)
        process.wait_for("left")
        gate.open()
        with pytest.raises(CallFailed) as cut:
            list(running)
        assert cut.value.status is Status.UNAVAILABLE
        assert process.exit_code() == 1


def test_R026_a_second_signal_skips_the_drain(module: Path, gate: Gate) -> None:
    """The second signal ends the process at once, with 128 plus its number (R-026)."""
    with started("stopping", cwd=module) as process, SyncRiffClient(process.ready()[0]) as client:
        running = invoke(client, gate)
        assert next(running) == 1
        process.send(signal.SIGTERM)
        process.wait_for("stopping: ")
        process.send(signal.SIGTERM)
        assert process.exit_code() == 128 + signal.SIGTERM
        assert "a second signal" in process.log
        gate.open()
        with pytest.raises(CallFailed):
            list(running)


def test_R027_a_drain_that_had_to_cut_runs_destroy_and_exits_1(module: Path, gate: Gate) -> None:
    """When calls were cut, destroy still runs after them, and the exit code says so (R-027)."""
    env = {"INVOKER_DRAIN_S": "0"}
    with started("stopping", cwd=module, env=env) as process, SyncRiffClient(process.ready()[0]) as client:
        running = invoke(client, gate)
        assert next(running) == 1
        process.send(signal.SIGTERM)
        assert process.exit_code() == 1
        assert at(process, "left") < at(process, "destroyed")
        gate.open()
        with pytest.raises(CallFailed):
            list(running)


def test_R027_a_destroy_hook_that_raises_makes_the_exit_code_1(module: Path) -> None:
    """A clean drain with a failing destroy is not a clean stop (R-027)."""
    with started("stopping", cwd=module, env={"FAIL": "1"}) as process:
        process.ready()
        process.send(signal.SIGTERM)
        assert process.exit_code() == 1
        assert "no goodbye" in process.log


def test_R028_an_infinite_function_does_not_defeat_the_shutdown(module: Path) -> None:
    """A function that emits without end is closed at the drain limit, and the process ends (R-028)."""
    env = {"INVOKER_DRAIN_S": "0.1"}
    with started("stopping", cwd=module, env=env) as process, SyncRiffClient(process.ready()[0]) as client:
        numbers = invoke(client, [], "endless")
        assert [int(next(numbers)) for _ in range(3)] == [0, 1, 2]
        process.send(signal.SIGTERM)
        assert process.exit_code() == 1
        assert at(process, "left") < at(process, "destroyed")
        with pytest.raises(CallFailed):
            list(numbers)
