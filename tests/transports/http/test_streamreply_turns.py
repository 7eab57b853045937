"""`invoker.transports.http.streamreply`: whose turn at the gate it is, and when a stream has one, step by step."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest

from invoker.core.http import BodyChunk, Response, ResponseHead
from invoker.execution.pace.gate import Gate, Ticket
from invoker.transports.http.plain import Plain
from invoker.transports.http.streamreply import MOST_HELD, StreamReply
from tests.transports.http.test_inline_connection import Stage, Tells

MUCH = b"x" * MOST_HELD


class ConnectionOps:
    """A transport that writes nothing else."""

    is_serving = False
    write_s = 5.0

    def begins(self, connection: Any) -> bool:
        return False

    def write(self, connection: Any, plain: Plain, response: Response) -> None:
        raise AssertionError("no whole response is written here")

    def write_last(self, connection: Any, data: bytes) -> None:
        raise AssertionError("no end is written here")

    def end(self, connection: Any) -> None:
        raise AssertionError("nobody leaves here")


class Streaming(Stage):
    """A stream at a gate, on a clock that stands still."""

    now_s = 100.0

    def __init__(self) -> None:
        super().__init__()
        self.came = threading.Semaphore(0)  # somebody has a turn, or waits for one
        self.gate = Gate(self.came.release)
        sweeper = SimpleNamespace(gate=self.gate, watch=lambda one: setattr(one, "is_swept", True))
        driver = cast("Any", SimpleNamespace(sweeper=sweeper))
        session = cast("Any", SimpleNamespace(is_told=False))
        self.one = StreamReply(ConnectionOps(), self.connection, Plain(1, 1, Tells(), ()), session, driver, None)
        self.gives(ResponseHead(200, ()), BodyChunk(b"1"))

    def gives(self, *frames: Any, after_s: float = 0.0) -> None:
        """The function gives an item, so long after the one before."""
        Streaming.now_s += after_s
        self.one.early(list(frames), may_wait=True)

    @property
    def has_turn(self) -> bool:
        return self.gate._owner is not None and self.gate._owner is self.one._ticket


@pytest.fixture
def stream() -> Iterator[Streaming]:
    clock = SimpleNamespace(monotonic=lambda: Streaming.now_s)
    with patch("invoker.transports.http.streamreply.time", clock):
        yield (one := Streaming())
    one.client.close()
    one.connection.sock.close()


def test_H223_a_stream_takes_a_turn_once_an_item_follows_closely(stream: Streaming) -> None:
    """One that pauses takes none, and ends the one that it has."""
    assert not stream.has_turn
    stream.gives(BodyChunk(b"2"), after_s=0.001)
    assert not stream.has_turn
    stream.gives(BodyChunk(b"3"))
    assert stream.has_turn
    stream.gives(BodyChunk(b"4"), after_s=0.001)
    assert not stream.has_turn
    stream.gives(BodyChunk(b"5"))
    assert not stream.has_turn  # little does not pay
    stream.gives(BodyChunk(MUCH))
    assert stream.has_turn


def test_H223_who_has_a_turn_passes_it_on_to_whoever_waits(stream: Streaming) -> None:
    """And comes back behind them; it keeps the turn where nobody waits, and until much is held."""
    stream.gives(BodyChunk(b"2"))
    assert stream.has_turn
    assert stream.came.acquire(timeout=5)
    other, order = Ticket(), list[str]()

    def visit() -> None:
        stream.gate.enter(other)
        order.append("other")
        stream.gate.leave(other)

    guest = threading.Thread(target=visit)
    guest.start()
    assert stream.came.acquire(timeout=5)  # it waits
    stream.gives(BodyChunk(b"3"))
    assert (stream.has_turn, order) == (True, [])
    stream.gives(BodyChunk(MUCH))
    assert (stream.has_turn, order) == (True, ["other"])
    guest.join(5)
    stream.gives(BodyChunk(MUCH))
    assert stream.has_turn
    stream.one.leave_gate()
    assert not stream.has_turn


def test_H223_a_stream_that_gives_is_not_one_that_blocks(stream: Streaming) -> None:
    """Its turn lasts for as many beats as it gives items; without one it ends with the second beat."""
    stream.gives(BodyChunk(b"2"))
    for _ in range(5):
        stream.gives(BodyChunk(b"3"))
        assert stream.gate.beat()
    assert stream.gate.beat()
    assert not stream.gate.beat()


def test_H223_a_stream_that_waits_for_its_client_has_no_turn(stream: Streaming) -> None:
    """Others go on meanwhile."""
    stream.gives(BodyChunk(b"2"))
    assert stream.has_turn
    had: list[bool] = []
    stream.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    class Poll:
        def register(self, fd: int, events: int) -> None:
            pass

        def poll(self, timeout: float) -> bool:
            had.append(stream.has_turn)
            stream.client.recv(1 << 20)
            return True

    with patch("invoker.transports.http.streamreply.select", SimpleNamespace(poll=Poll, POLLOUT=select.POLLOUT)):
        stream.gives(BodyChunk(b"x" * (1 << 20)))  # much, and promptly
    assert had
    assert not any(had)
    assert not stream.has_turn


def test_H223_a_turn_is_left_for_whoever_has_requests(stream: Streaming) -> None:
    """The interpreter is yielded once with each turn, and with each item while the leading thread has requests."""
    yields: list[None] = []
    with patch("invoker.transports.http.streamreply.os.sched_yield", lambda: yields.append(None)):
        stream.gives(BodyChunk(b"2"))
        assert len(yields) == 1
        stream.gives(BodyChunk(b"3"))
        assert len(yields) == 1
        stream.gives(BodyChunk(MUCH))
        assert len(yields) == 2
        stream.one._ops.is_serving = True
        stream.gives(BodyChunk(b"4"))
        assert len(yields) == 3
