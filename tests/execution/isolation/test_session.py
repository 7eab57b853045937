"""The child's end of the pipe, as a pure session."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from invoker.core.steps import (
    Cancel,
    CloseOutput,
    Emitted,
    EndInput,
    Feed,
    Finished,
    Open,
    OutputEnded,
    Send,
    Terms,
    Wants,
)
from invoker.errors import Cancelled, LimitExceeded
from invoker.execution.isolation import frames
from invoker.execution.isolation.frames import Begin, End, Gave, Give, Over, Packed, Shut, Stop
from invoker.execution.isolation.session import WINDOW, ChildSession
from invoker.message import Message

ONE = Packed(b"1", "application/json")


SCOPE = SimpleNamespace()


def begin(given: int = 0) -> Begin:
    gives = [Give(0, ONE)] * given
    return Begin("i7", "f", ("*/*",), (), (), None, Terms.STRICT, (), {}, None, 0, [], gives, [1])


def session(done: list[object] | None = None) -> ChildSession:
    tell: list[object] = [] if done is None else done
    return ChildSession(SCOPE, tuple, tell.append)


def test_an_invocation_begins_with_what_there_is() -> None:
    """The messages and the ends that came with it are there before its body runs."""
    steps = session().receive(begin(given=2))
    assert [type(one) for one in steps] == [Open, Feed, Feed, EndInput]
    assert isinstance(steps[0], Open)
    assert (steps[0].id, steps[0].function, steps[0].scope) == ("i7", "f", SCOPE)


def test_each_frame_is_a_step() -> None:
    """Messages, ends, closed outputs, the stop."""
    one = session()
    one.receive(begin())
    assert one.receive(Give(0, ONE)) == (Feed("i7", 0, Message(b"1", {}, "application/json")),)
    assert one.receive(End(0)) == (EndInput("i7", 0),)
    assert one.receive(Shut(1)) == (CloseOutput("i7", 1),)
    (cancel,) = one.receive(Stop())
    assert isinstance(cancel, Cancel)
    assert one.half_close() == ()


def test_each_event_is_a_frame() -> None:
    """Messages, ends of outputs, the ending; after it nothing reaches the invocation."""
    done: list[object] = []
    one = session(done)
    one.receive(begin())
    assert one.deliver(Emitted("i7", 0, Message(b"2", {}, "a/b"))) == (Send(Gave(0, Packed(b"2", "a/b"))),)
    assert one.deliver(OutputEnded("i7", 1)) == (Send(Over(1)),)
    error = Cancelled("x")
    assert one.deliver(Finished("i7", error)) == ()
    assert done == [error]
    assert one.receive(Give(0, ONE)) == ()
    assert not one.stalled


def test_an_output_that_is_too_large_never_leaves_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 1 GiB held the serving process for two seconds, and took thrice its size there."""
    monkeypatch.setattr("invoker.execution.isolation.session.MOST_BYTES", 5)
    one = session()
    one.receive(begin())
    assert one.deliver(Emitted("i7", 0, Message(b"12345", {}, "a/b"))) == (Send(Gave(0, Packed(b"12345", "a/b"))),)
    (step,) = one.deliver(Emitted("i7", 0, Message(b"123456", {}, "a/b")))
    assert isinstance(step, Cancel)
    assert (step.id, type(step.error)) == ("i7", LimitExceeded)
    assert "gave 6 bytes at once, which exceeds the limit of 5 bytes" in step.error.detail


def test_it_says_how_much_was_taken() -> None:
    """All where the input is waited for, and all but half a window where it has room; each once."""
    one = session()
    one.receive(begin())
    for _ in range(WINDOW):
        one.receive(Give(0, ONE))
    assert one.deliver(Wants("i7", 0)) == (Send(frames.Wants(0, WINDOW // 2, False)),)
    assert one.deliver(Wants("i7", 0, waits=True)) == (Send(frames.Wants(0, WINDOW, True)),)
    assert one.deliver(Wants("i7", 0, waits=True)) == ()
    one.release()
