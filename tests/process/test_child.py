"""A worker process, seen from its supervisor."""

from __future__ import annotations

import asyncio
import signal

import pytest

from invoker.ops.board import Board, Row
from invoker.process.child import Child, _ending
from invoker.process.ports import reserve
from invoker.process.worker import Place

pytestmark = pytest.mark.timeout(10)


@pytest.fixture
def place():
    """A place with ports of its own."""
    board = Board.make()
    ports = [reserve("127.0.0.1", 0, "a door", "A_PORT") for _ in range(2)]
    yield Place(7, 1, -1, board.handle, *(port.getsockname()[1] for port in ports))
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
