"""A worker process, seen from its supervisor."""

from __future__ import annotations

import asyncio
import resource
import signal
from types import SimpleNamespace

import pytest

from invoker.server import child as module
from invoker.server.child import Child, _ending
from invoker.server.ports import reserve
from invoker.server.worker import Assignment
from invoker.telemetry.board import Board, Row

pytestmark = pytest.mark.timeout(10)


@pytest.fixture
def place():
    """A place with ports of its own."""
    board = Board.make()
    ports = [reserve("127.0.0.1", 0, "a transport", "A_PORT") for _ in range(2)]
    yield Assignment(7, 1, -1, board.handle, *(port.getsockname()[1] for port in ports))
    for port in ports:
        port.close()
    board.close()


@pytest.fixture(autouse=True)
def _loopback(monkeypatch):
    monkeypatch.setenv("INVOKER_HOST", "127.0.0.1")


async def test_it_becomes_ready_and_drains(place):
    """Its line has the ports of its place, and a drain is exit code 0."""
    child = Child(place)
    await child.start(["functions.square:square", "--workers", "2"])
    living = asyncio.create_task(child.live())
    await child.settled.wait()
    assert child.is_ready
    assert f"grpc=127.0.0.1:{place.grpc_port} http=127.0.0.1:{place.http_port}" in child.line
    assert "2 workers" in child.line
    assert child.lived_s > 0
    child.order("drain")
    assert await living == 0
    assert (child.is_ready, child.is_over, child.end) == (False, True, "exit code 0")


async def test_it_says_why_it_cannot_start(place):
    """The sentence that one process would print, and its exit code; its standard error stays silent."""
    child = Child(place)
    await child.start(["functions.square:squar"])
    assert child.pid > 0
    assert await child.live() == 1
    assert child.settled.is_set()
    assert not child.is_ready
    assert "did you mean 'square'" in child.failure[0]
    assert child.failure[1] == 1
    assert child.end == child.failure[0]


async def test_one_that_is_not_ready_is_ended_by_an_order(place):
    """It serves nobody, and may not listen for long."""
    child = Child(place)
    await child.start(["functions.square:square"])
    living = asyncio.create_task(child.live())
    child.order("drain")
    assert await living in (0, -signal.SIGTERM)
    assert child.lived_s == 0


async def test_a_kill_is_named(place):
    """By the signal."""
    child = Child(place)
    assert child.pid == 0
    await child.start(["functions.square:square"])
    child.kill()
    assert await child.live() == -signal.SIGKILL
    assert child.end == "SIGKILL"
    child.kill()  # it is gone: nothing happens


def test_an_ending_without_a_name_has_its_number():
    """Some systems have signals that Python cannot name."""
    assert [_ending(code) for code in (0, 3, -6, -99)] == ["exit code 0", "exit code 3", "SIGABRT", "signal 99"]


@pytest.fixture
async def watched(place, monkeypatch):
    """A ready child whose abort is only counted."""
    child = Child(place)
    child.is_ready = True
    child.aborts = 0  # type: ignore[attr-defined]

    def abort() -> None:
        child.aborts += 1  # type: ignore[attr-defined]

    monkeypatch.setattr(child, "_abort", abort)
    return child


async def test_a_silent_worker_is_aborted_once(watched):
    """Four looks without a beat."""
    for _ in range(10):
        watched.look(Row(7, beat=5.0), 30.0)
    assert watched.aborts == 1
    assert watched.end == "its loop was stuck for 30 s"


async def test_a_beat_now_and_then_is_enough(watched):
    """Whatever the clock says in between."""
    for beat in range(10):
        for _ in range(4):
            watched.look(Row(7, beat=float(beat + 1)), 30.0)
    assert watched.aborts == 0


async def test_only_its_own_beats_count(watched):
    """Nothing in its row, or what another worker has left there, says nothing about it; nor while it starts."""
    for _ in range(10):
        watched.look(None, 30.0)
        watched.look(Row(6, beat=5.0), 30.0)
    watched.is_ready = False
    for _ in range(10):
        watched.look(Row(7, beat=5.0), 30.0)
    assert watched.aborts == 0


@pytest.fixture
def signalled(place, monkeypatch):
    """A child without a process, and the signals that it would get."""
    child, sent = Child(place), []
    monkeypatch.setattr(child, "_signal", sent.append)
    return child, sent


async def test_an_abort_that_does_not_help_is_followed_by_a_kill(signalled, monkeypatch):
    """Soon, and whatever keeps the process from showing where it is stuck."""
    child, sent = signalled
    killed = asyncio.Event()
    monkeypatch.setattr(child, "_signal", lambda number: sent.append(number) or (len(sent) > 1 and killed.set()))
    monkeypatch.setattr(module, "_ABORT_S", 0.01)
    child._abort()
    assert sent == [signal.SIGABRT]
    await killed.wait()
    assert sent == [signal.SIGABRT, signal.SIGKILL]


async def test_an_abort_leaves_no_core_file(signalled, monkeypatch):
    """It may hold all that the functions know."""
    child, _ = signalled
    limits = []
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.setattr(resource, "prlimit", lambda *given: limits.append(given), raising=False)
    child._abort()
    assert limits == []
    child._process = SimpleNamespace(pid=77)
    child._abort()
    assert limits == [(77, resource.RLIMIT_CORE, (0, 0))]


@pytest.mark.parametrize("is_ready", [True, False])
async def test_only_who_does_not_listen_yet_is_signalled(signalled, is_ready):
    """Who is ready hears the order, and may go on serving."""
    child, sent = signalled
    said = []
    child._writer, child.is_ready = SimpleNamespace(write=said.append), is_ready
    child.order("retire")
    assert said == [b"retire\n"]
    assert sent == ([] if is_ready else [signal.SIGTERM])
