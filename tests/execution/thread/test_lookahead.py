"""Frames that wait for a function that does not pull are judged, once, and left where they are."""

from __future__ import annotations

from typing import Any

import pytest

from invoker.errors import ProtocolViolation
from invoker.execution.thread.lookahead import LookaheadValidator
from invoker.protocols.riff.session import RiffSession, State
from tests.execution.memory import driver_of
from tests.transports.riff import data, start


class Waiting:
    """A wire whose frames wait."""

    def __init__(self, *frames: bytes) -> None:
        self.frames = list(frames)

    def look_ahead(self) -> tuple[bytes, ...]:
        return tuple(self.frames)


class Judged(RiffSession):
    """A session that counts what it, and each copy of it, is given."""

    given: list[bytes]

    def receive(self, frame: bytes) -> Any:
        self.given.append(frame)
        return super().receive(frame)


@pytest.fixture
def session() -> Judged:
    made = Judged()
    made.given = []
    made.receive(start())
    made.given.clear()
    return made


@pytest.fixture
def invocation() -> Any:
    def square(x: int) -> int:
        return x * x

    (opened,) = RiffSession().receive(start())
    return driver_of(square).engine.open(opened)


def test_R064_a_stray_frame_is_found_at_the_second_look(session, invocation):
    """A function that pulls would have taken it by then."""
    lookahead, wire = LookaheadValidator(), Waiting(data(b"1"), data(b"2", 5))
    assert lookahead.look(wire, session, invocation) is None
    wrong = lookahead.look(wire, session, invocation)
    assert isinstance(wrong, ProtocolViolation)
    assert "argIndex 5 out of range" in str(wrong)
    assert len(wire.frames) == 2


def test_each_frame_is_judged_once(session, invocation):
    """However long they wait."""
    lookahead, wire = LookaheadValidator(), Waiting(data(b"1"), data(b"2"))
    for _ in range(4):
        assert lookahead.look(wire, session, invocation) is None
    wire.frames.append(data(b"3"))
    for _ in range(2):
        assert lookahead.look(wire, session, invocation) is None
    assert session.given == wire.frames


def test_nothing_is_judged_of_a_function_that_pulls(session, invocation):
    """Its oldest frame is another one at each look."""
    lookahead, wire = LookaheadValidator(), Waiting(data(b"1"), data(b"2", 5))
    assert lookahead.look(wire, session, invocation) is None
    wire.frames.pop(0)
    assert lookahead.look(wire, session, invocation) is None
    wire.frames.clear()
    assert lookahead.look(wire, session, invocation) is None
    assert session.given == []


def test_the_session_itself_is_left_as_it_is(session, invocation):
    """It belongs to the thread of the function."""
    lookahead, wire = LookaheadValidator(), Waiting(data(b"1"))
    for _ in range(2):
        lookahead.look(wire, session, invocation)
    assert session.state is State.OPENING
    assert invocation.inputs[0].fed == 0
