"""`invoker.protocols.evergreen.action_engine.session`: messages in, steps out."""

from __future__ import annotations

from invoker.core.steps import (
    Cancel,
    Close,
    Emitted,
    EndInput,
    Feed,
    Finished,
    Open,
    OutputEnded,
    Send,
    Terms,
)
from invoker.errors import (
    FunctionError,
    Status,
)
from invoker.message import EMPTY, Message
from invoker.protocols.evergreen.action_engine.wire import (
    END,
    STATUS,
    Action,
    Chunk,
    Fragment,
    Metadata,
    decode,
    encode,
)
from tests.protocols.evergreen.action_engine.functions import echo
from tests.protocols.evergreen.action_engine.recordings import messages
from tests.protocols.evergreen.action_engine.sessions import ECHO, fed, item, made, say, status, text, told

# What a peer says


def test_an_action_opens_an_invocation() -> None:
    """With inputs by name, media types by value, and metadata of handshake, message and action."""
    session = made(metadata={"user-agent": "test"})
    action = Action("A", "concat", (("b", "A#b"), ("a", "A#a")), (("y", "A#y"),), {"hk": "hv"})
    steps = list(session.receive(encode((), (action,), {"wk": "wv"})))
    assert steps[0] == Open(
        "1",
        "concat",
        metadata={"user-agent": "test", "wk": "wv", "hk": "hv"},
        bound=("a", "b"),
        terms=Terms.LOOSE,
        protocol="action-engine",
    )
    assert told(steps) == [status("A#__dispatch_status__")]


def test_what_a_peer_sends_reaches_the_function() -> None:
    """As recorded: a call, one item that is the last, and an answer."""
    call, put, half_close = messages("single", ">")
    session = made(actions={"single": "echo"})
    list(session.receive(call))
    assert list(session.receive(put)) == [Feed("1", 0, Message(b"hello", {}, "text/plain")), EndInput("1", 0)]
    answered = told(session.deliver(Emitted("1", 0, text(b"HELLO"))))
    recorded = decode(messages("single", "<")[0]).fragments[0]
    assert [(one.id, one.content, one.seq) for one in answered] == [(recorded.id, recorded.content, recorded.seq)]
    ended = told(session.deliver(Finished("1")))
    assert ended == [Fragment("A1#y", END, 1), status("A1#__status__")]
    assert list(session.receive(half_close)) == [Close()]


def test_fragments_may_come_before_their_action_or_with_it() -> None:
    """And in any order."""
    session = made()
    assert say(session, item("A#x", 1, b"b")) == []
    steps = say(session, ECHO, item("A#x", 0, b"a"))
    assert fed(steps) == [b"a", b"b"]
    assert fed(say(session, item("A#x", 3, b"d", last=True))) == []
    steps = say(session, item("A#x", 2, b"c"))
    assert fed(steps) == [b"c", b"d"]
    assert steps[-1] == EndInput("1", 0)


def test_attributes_are_headers_of_items() -> None:
    """Both ways."""
    session = made()
    say(session, ECHO)
    chunk = Chunk(b"x", metadata=Metadata("text/plain", None, {"role": "user"}))
    (step,) = say(session, Fragment("A#x", chunk, 0, continued=True))
    assert step == Feed("1", 0, Message(b"x", {"role": "user"}, "text/plain"))
    (fragment,) = told(session.deliver(Emitted("1", 0, Message(b"x", {"role": "user"}, "text/plain"))))
    assert fragment.content == chunk


def test_one_node_may_feed_several_inputs() -> None:
    """Of one action and of two."""
    session = made()
    say(session, Action("A", "concat", (("a", "n"), ("b", "n"))), Action("B", "echo", (("x", "n"),)))
    steps = say(session, item("n", last=True))
    assert [(step.id, step.index) for step in steps if isinstance(step, Feed)] == [("1", 0), ("1", 1), ("2", 0)]


def test_an_action_may_read_what_another_writes() -> None:
    """While both run; the peer sees it, too."""
    session = made()
    say(session, Action("A", "echo", (("x", "in"),), (("y", "mid"),)), Action("B", "echo", (("x", "mid"),)))
    steps = list(session.deliver(Emitted("1", 0, text(b"a"))))
    assert fed(steps) == [b"a"]
    assert [one.id for one in told(steps)] == ["mid"]
    steps = list(session.deliver(Finished("1")))
    assert EndInput("2", 0) in steps


def test_the_failure_of_what_is_read_is_that_of_the_reader() -> None:
    """With its status and text."""
    session = made()
    say(session, Action("A", "echo", (("x", "in"),), (("y", "mid"),)), Action("B", "echo", (("x", "mid"),)))
    steps = list(session.deliver(Finished("1", FunctionError("ValueError: boom"))))
    (cancel,) = [step for step in steps if isinstance(step, Cancel)]
    assert (cancel.id, cancel.error.status) == ("2", Status.UNKNOWN)
    assert str(cancel.error).endswith("ValueError: boom")


# What a peer is told


def test_outputs_end_by_themselves_or_with_the_action() -> None:
    """Each by a null chunk at its next place."""
    session = made()
    say(session, Action("A", "split", (("xs", "A#xs"),)))
    assert told(session.deliver(Emitted("1", 1, text(b"x"))))[0].id == "A#odd"
    assert told(session.deliver(OutputEnded("1", 1))) == [Fragment("A#odd", END, 1)]
    assert told(session.deliver(Finished("1"))) == [Fragment("A#even", END, 0), status("A#__status__")]


def test_a_failure_ends_the_action_and_not_the_session() -> None:
    """Outputs and status tell it."""
    session = made()
    say(session, ECHO)
    error = FunctionError("ValueError: boom")
    steps = list(session.deliver(Finished("1", error)))
    assert told(steps) == [status("A#y", error), status("A#__status__", error)]
    assert not [step for step in steps if isinstance(step, Close)]
    assert isinstance(say(session, ECHO)[0], Open)


def test_an_unknown_action_is_told_by_statuses() -> None:
    """Two, as the peers do, and one for each output; the session goes on."""
    session = made()
    (call, put, _) = messages("unknown", ">")
    steps = list(session.receive(call))
    recorded = decode(messages("unknown", "<")[0]).fragments
    assert [one.id for one in told(steps)] == ["A1#y", *(one.id for one in recorded)]
    for fragment in told(steps):
        assert isinstance(fragment.content, Chunk)
        assert (fragment.content.media_type, fragment.content.data[0]) == (STATUS, Status.NOT_FOUND)
    assert list(session.receive(put)) == []
    assert isinstance(say(session, ECHO)[0], Open)


def test_an_action_with_wrong_ports_is_told_so() -> None:
    """INVALID_ARGUMENT, and nothing else happens."""
    steps = say(made(), Action("A", "split", (("xs", "n"),), (("nope", "m"),)))
    assert [type(step) for step in steps] == [Send]
    assert {one.content.data[0] for one in told(steps) if isinstance(one.content, Chunk)} == {3}


def test_actions_of_a_session_are_limited() -> None:
    """One more is refused; there is room again when one ends."""
    session = made(actions_running=1)
    say(session, ECHO)
    steps = say(session, Action("B", "echo"))
    assert {one.content.data[0] for one in told(steps) if isinstance(one.content, Chunk)} == {8}
    session.deliver(Finished("1"))
    assert isinstance(say(session, Action("B", "echo"))[0], Open)


def test_the_listing_is_answered_at_once() -> None:
    """Items, their end, and the status, as recorded."""
    (call, _) = messages("list_actions", ">")
    fragments = told(made(echo).receive(call))
    assert [one.id for one in fragments] == ["A1#__dispatch_status__", "A1#actions", "A1#actions", "A1#__status__"]
    assert [one.seq for one in fragments] == [0, 0, 1, 0]
    assert fragments[2].content == END


def test_empty_bytes_are_not_sent() -> None:
    """They would end the output."""
    session = made()
    say(session, ECHO)
    assert list(session.deliver(Emitted("1", 0, Message(b"")))) == []
    assert told(session.deliver(Emitted("1", 0, Message(b"", EMPTY, "text/plain"))))[0].seq == 0
