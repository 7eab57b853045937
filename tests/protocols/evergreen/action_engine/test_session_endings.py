"""`invoker.protocols.evergreen.action_engine.session`: how sessions end, and what peers are told then."""

from __future__ import annotations

import pytest

from invoker.core.steps import (
    Cancel,
    Close,
    Finished,
    Open,
    Wants,
)
from invoker.errors import (
    Cancelled,
    InvocationError,
    LimitExceeded,
    ProtocolViolation,
    ShuttingDown,
    Status,
)
from invoker.protocols.evergreen.action_engine.wire import (
    ABORT,
    HALF_CLOSE,
    Action,
    decode,
)
from tests.protocols.evergreen.action_engine.recordings import messages
from tests.protocols.evergreen.action_engine.sessions import ECHO, item, made, say, status


def test_a_half_close_waits_for_what_runs() -> None:
    """Then the session closes."""
    session = made()
    say(session, ECHO, item("A#x", last=True))
    assert list(session.receive(HALF_CLOSE)) == []
    assert session.hears_waits
    assert list(session.deliver(Finished("1")))[-1] == Close()


def test_a_half_close_of_an_idle_session_closes_it() -> None:
    """At once."""
    session = made()
    say(session, item("unused"))
    assert list(session.receive(HALF_CLOSE)) == [Close()]


def test_who_waits_for_what_never_comes_is_ended() -> None:
    """After the half-close; not before, and not while another action may still write it."""
    session = made()
    say(session, ECHO, Action("B", "echo", (("x", "A#y"),)))
    assert list(session.deliver(Wants("1", 0, waits=True))) == []
    session.half_close()
    (cancel,) = session.deliver(Wants("1", 0, waits=True))
    assert isinstance(cancel, Cancel)
    assert (cancel.error.status, "'A#x' is not complete" in str(cancel.error)) == (Status.FAILED_PRECONDITION, True)
    assert list(session.deliver(Wants("2", 0, waits=True))) == []


def test_an_abort_of_the_peer_ends_all() -> None:
    """Nobody is left to be told."""
    session = made()
    say(session, ECHO)
    cancel, close = say(session, status(ABORT))
    assert isinstance(cancel, Cancel)
    assert isinstance(close, Close)
    assert isinstance(close.error, Cancelled)
    assert session.farewell(close.error) == []


@pytest.mark.parametrize("error", [ProtocolViolation("bad"), LimitExceeded("much"), ShuttingDown("bye")])
def test_a_farewell_tells_each_action_then_aborts(error: InvocationError) -> None:
    """Peers do not show an abort to who waits for an action."""
    session = made()
    say(session, ECHO)
    ending, abort = map(decode, session.farewell(error))
    assert list(ending.fragments) == [status("A#y", error), status("A#__status__", error)]
    assert list(abort.fragments) == [status(ABORT, error)]


def test_an_id_that_runs_already_ends_the_session() -> None:
    """Its statuses could not be told apart; once it is over, it may be used again."""
    session = made(actions={"slow": "echo"})
    first, second, *_ = messages("same_id", ">")
    list(session.receive(first))
    with pytest.raises(ProtocolViolation, match="'A1' is running"):
        session.receive(second)
    session.deliver(Finished("1"))
    assert isinstance(next(iter(session.receive(second))), Open)


def test_what_is_no_message_ends_the_session() -> None:
    """Saying what was expected."""
    with pytest.raises(
        ProtocolViolation, match="3 bytes is not a valid WireMessage: byte 0xff was met at 0; bin was expected"
    ):
        made().receive(b"\xff\xfe\xfd")


def test_too_long_a_name_ends_the_session() -> None:
    """Peers keep such names, and so would we."""
    with pytest.raises(LimitExceeded, match="name of an action"):
        say(made(name_bytes=4), Action("A", "x" * 5))
