"""`invoker.protocols.evergreen.action_engine.session`: windows, pauses and limits, and whatever comes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.core.steps import (
    Cancel,
    Close,
    Emitted,
    EndInput,
    Feed,
    Finished,
    OutputEnded,
    Send,
    Wants,
)
from invoker.errors import (
    FunctionError,
    LimitExceeded,
    ProtocolViolation,
    Status,
)
from invoker.protocols.evergreen.action_engine.statuses import status_chunk
from invoker.protocols.evergreen.action_engine.wire import (
    ABORT,
    END,
    Action,
    Chunk,
    Fragment,
    decode,
    encode,
)
from tests.protocols.evergreen.action_engine.recordings import LAYOUTS
from tests.protocols.evergreen.action_engine.sessions import ECHO, TEXT, fed, item, made, say, status, text, told


def test_an_input_is_fed_a_window_ahead() -> None:
    """More when the function has taken most of it."""
    session = made(window=2)
    say(session, ECHO)
    steps = say(session, *(item("A#x", seq, b"%d" % seq) for seq in range(5)))
    assert (fed(steps), session.stalled) == ([b"0", b"1"], {("1", 0)})
    assert fed(session.deliver(Wants("1", 0))) == [b"2", b"3"]
    assert session.stalled == {("1", 0)}
    assert fed(session.deliver(Wants("1", 0))) == [b"4"]
    assert session.stalled == set()
    assert fed(say(session, item("A#x", 5, b"5"))) == [b"5"]


def test_reading_stops_while_functions_are_behind() -> None:
    """And goes on when half of it is taken."""
    session = made(window=1, high_bytes=1000)
    say(session, ECHO)
    for seq in range(10):
        say(session, item("A#x", seq))
    assert session.is_full
    assert session.hears_waits, "so that the driver tells who waits"
    was_full = []
    for _ in range(9):
        assert fed(session.deliver(Wants("1", 0))) == [b"x"]
        was_full.append(session.is_full)
    assert was_full == sorted(was_full, reverse=True), "it does not flap"
    assert set(was_full) == {True, False}
    assert not session.hears_waits


def test_reading_goes_on_for_who_waits() -> None:
    """What an input waits for may stand behind what another does not take."""
    session = made(window=1, high_bytes=1000)
    say(session, Action("A", "concat", (("a", "A#a"), ("b", "A#b"))))
    for seq in range(10):
        say(session, item("A#b", seq))
    assert session.is_full
    assert list(session.deliver(Wants("1", 0, waits=True))) == []
    assert not session.is_full
    steps = say(session, item("A#a"))
    assert fed(steps) == [b"x"]
    assert session.is_full


def test_what_no_action_reads_does_not_stop_the_reading() -> None:
    """The action may be what comes next; but it is limited."""
    session = made(high_bytes=1000, session_bytes=5000)
    for seq in range(30):
        say(session, item("n", seq))
    assert not session.is_full
    with pytest.raises(LimitExceeded, match="the session holds"):
        say(session, *(item("n", seq) for seq in range(30, 100)))


def test_an_item_that_no_peer_would_take_ends_its_action() -> None:
    """It would cost them the connection, and who waits for it would wait for ever."""
    session = made(item_bytes=100)
    say(session, ECHO)
    assert len(told(session.deliver(Emitted("1", 0, text(bytes(100)))))) == 1
    (cancel,) = session.deliver(Emitted("1", 0, text(bytes(101))))
    assert isinstance(cancel, Cancel)
    assert (cancel.error.status, "101 bytes" in str(cancel.error)) == (Status.RESOURCE_EXHAUSTED, True)


def test_an_action_that_ends_lets_go() -> None:
    """Of what it did not read; what still comes for it is dropped."""
    session = made(window=1, high_bytes=1000)
    say(session, ECHO)
    for seq in range(10):
        say(session, item("A#x", seq))
    assert session.is_full
    session.deliver(Finished("1"))
    assert (session.stalled, session.is_full) == (set(), False)
    assert say(session, item("A#x", 10)) == []
    assert list(session.deliver(Wants("1", 0))) == []


# Whatever comes

PARTS = st.one_of(
    st.sampled_from([ECHO, Action("B", "concat"), Action("C", "none"), Action("", "split"), status(ABORT)]),
    st.builds(
        Fragment,
        st.sampled_from(["A#x", "B#a", "B#b", "A#y", "n"]),
        st.sampled_from([END, Chunk(), Chunk(b"x", metadata=TEXT), Chunk(ref="r"), status_chunk(None)]),
        st.none() | st.integers(-2, 5),
        st.booleans(),
    ),
)
MESSAGES = st.one_of(
    st.lists(PARTS, max_size=4).map(
        lambda parts: encode(
            [one for one in parts if isinstance(one, Fragment)], [one for one in parts if isinstance(one, Action)]
        )
    ),
    st.sampled_from(list(LAYOUTS.values())),
    st.binary(max_size=20),
)
EVENTS = st.one_of(
    st.builds(Wants, st.sampled_from("12"), st.integers(0, 1), st.booleans()),
    st.builds(Emitted, st.sampled_from("12"), st.integers(0, 1), st.just(text(b"x"))),
    st.builds(OutputEnded, st.sampled_from("12"), st.integers(0, 1)),
    st.builds(Finished, st.sampled_from("12"), st.none() | st.just(FunctionError("boom"))),
)


@given(st.lists(MESSAGES | EVENTS, max_size=30))
def test_any_messages_and_events_are_steps_or_an_error_of_the_peer(said: list[Any]) -> None:
    """Nothing else is raised; what is held stays accounted for; no input is fed after its end."""
    session = made(window=2, high_bytes=500)
    ended: set[tuple[str, int]] = set()
    for one in said:
        try:
            steps = list(session.receive(one) if isinstance(one, bytes) else session.deliver(one))
        except (ProtocolViolation, LimitExceeded) as error:
            for frame in session.farewell(error):
                decode(frame)
            return
        for step in steps:
            if isinstance(step, Send):
                decode(step.frame)
            elif isinstance(step, Feed):
                assert (step.id, step.index) not in ended
            elif isinstance(step, EndInput):
                ended.add((step.id, step.index))
            elif isinstance(step, Close):
                return
        assert session._store.size >= 0
        assert session._store.size == sum(node.size for node in session._store._nodes.values())
