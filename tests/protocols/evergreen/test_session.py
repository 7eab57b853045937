"""The session as a conversation: beginnings, endings, and what each message may do (E-001 to E-016, E-109 to E-117)."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from invoker._pb.evergreen import evergreen_service_pb2
from invoker.author.reader import read
from invoker.core.steps import Cancel, Close, Emitted, Finished, Send
from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    FunctionError,
    InternalError,
    InvocationError,
    LimitExceeded,
    NotAcceptable,
    ShuttingDown,
    Status,
    StatusError,
    UnsupportedMediaType,
)
from invoker.protocols.evergreen.errors import bad_input
from invoker.protocols.evergreen.session import METHOD, SERVICE, EvergreenSession
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.protocols.evergreen.table import Table
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import join, raw, relay, rows, sink, split, ticks, upper
from tests.protocols.evergreen.models import each, message_of, source
from tests.protocols.evergreen.notation import A, F, K, M

UPPER = A("upper", {"x": "p"}, {"y": "r"})
TICKS = A("ticks", {}, {"y": "r"})


def test_E001_the_path_is_that_of_the_published_service():
    """One method, both ways."""
    (service,) = evergreen_service_pb2.DESCRIPTOR.services_by_name.values()
    assert (service.full_name, [method.name for method in service.methods]) == (SERVICE, [METHOD])


def test_E002_equal_ids_in_two_sessions_are_unrelated():
    """Each has nodes of its own, also where they share a table."""
    table = Table([read(upper)], EvergreenSettings())
    one, other = EvergreenSession(table), EvergreenSession(table)
    one.receive(M(F("p", 0, "x")))
    assert one.settings is other.settings is table.settings
    assert (list(one.graph.nodes), list(other.graph.nodes)) == (["p"], [])


def test_E012_one_sessions_abort_leaves_others_intact():
    """They share the table and nothing else."""
    table = Table([read(upper)], EvergreenSettings())
    one, other = EvergreenSession(table), EvergreenSession(table)
    for session in (one, other):
        session.receive(M(UPPER))
    one.receive(b"garbage")
    assert one.is_closed
    fed, ended = other.receive(M(F("p", 0, "hi")))
    assert (fed.message.payload, ended.index) == (b"hi", 0)


@pytest.mark.parametrize("ending", ["half-close", "abort"])
def test_E003_nodes_are_released_when_the_session_ends(ending):
    """However it ends."""
    c = Conversation(upper, relay).send(UPPER, F("p", 0, "hi"), K("q", 0, "p"), A("relay", {"x": "q"}, {"y": "r2"}))
    assert c.session.graph.held > 0
    if ending == "abort":
        c.send(F("", 0))
    else:
        c.finish("a2").half_close()
    graph, session = c.session.graph, c.session
    assert (graph.nodes, graph.held, graph.woken) == ({}, 0, [])
    assert (session.running, list(session.waiting), session.stalled) == ({}, [], set())
    assert session.is_closed


def test_E004_after_the_half_close_running_actions_finish():
    """Their outputs are sent, then OK."""
    c = Conversation(ticks).send(TICKS).half_close()
    assert c.is_open
    c.emit("a1", "a").emit("a1", "b")
    assert c.is_open
    c.finish("a1")
    assert c.is_ok
    assert c.texts("r") == ["ab"]


@pytest.mark.parametrize("frames", [[], [b""], [M(F("p", 0, "x"))], [M(F("p", 3, "x"))]])
def test_E005_a_half_close_without_actions_is_ok_at_once(frames):
    """With or without nodes; nothing is sent."""
    c = Conversation(upper)
    for frame in frames:
        c.receive(frame)
    assert c.half_close().steps == [Close(None)]


def test_E006_finished_actions_do_not_end_the_session():
    """It stays open for more."""
    c = Conversation(upper).send(UPPER, F("p", 0, "one"))
    assert c.texts("r") == ["ONE"]
    assert c.is_open
    c.send(A("upper", {"x": "q"}, {"y": "r2"}), F("q", 0, "two"))
    assert c.texts("r2") == ["TWO"]
    assert c.half_close().is_ok


def test_E007_later_actions_use_earlier_nodes():
    """Inputs and outputs of the first turn, in the second one (E-068)."""
    c = Conversation(upper).send(F("p1", 0, "hi"), A("upper", {"x": "p1"}, {"y": "r1"}))
    c.send(K("p2", 0, "p1", "r1", "q"), F("q", 0, "more"), A("upper", {"x": "p2"}, {"y": "r2"}))
    assert c.texts("r2") == ["HI", "HI", "MORE"]


def test_E008_an_empty_message_is_ignored():
    """Anywhere; it is no half-close."""
    c = Conversation(upper).receive(b"").receive(b"").send(UPPER).receive(b"").send(F("p", 0, "hi")).receive(b"")
    assert c.is_open
    assert c.texts("r") == ["HI"]


@pytest.mark.parametrize("is_one_message", [True, False])
def test_E009_order_between_fragments_and_actions_does_not_matter(is_one_message):
    """In one message, or in messages of any order."""
    parts = [UPPER, K("p", 0, "a", "r0"), F("a", 0, "x"), A("upper", {"x": "a"}, {"y": "r0"})]
    for order in permutations(parts):
        c = Conversation(upper)
        _ = c.send(*order) if is_one_message else c.send_each(*order)
        assert c.texts("r") == ["X", "X"]
        assert c.half_close().is_ok


def test_E009_fragments_of_a_message_come_before_its_actions():
    """A node that is sent beside the action whose output it would be is a node."""
    Conversation(ticks).send(TICKS, F("r", 0, "x")).fails("ACT", "action 'ticks' #1: output id already in use: 'r'")


def test_E011_an_abort_is_one_status_and_nothing_more():
    """Whatever comes then is not looked at."""
    c = Conversation(ticks).send(TICKS).emit("a1", "a").send(F("p", -1))
    c.fails("FRAG")
    assert c.session.receive(M(UPPER)) == []
    assert c.session.half_close() == []
    assert c.session.deliver(Emitted("a1", 0, M)) == []
    assert c.session.deliver(Finished("a1")) == []


def test_E011_what_was_done_before_the_mistake_in_a_message_comes_before_its_status():
    """Actions before it were opened, and are cancelled."""
    c = Conversation(ticks).send(TICKS, A("nobody"))
    assert [type(step).__name__ for step in c.steps] == ["Open", "Cancel", "Close"]
    c.fails("ANF")


@pytest.mark.parametrize("frame", [b"\xff", b"\n\xff\xff", b"garbage on the wire", b"\n\x03\n\x01\xff"])
def test_E013_bytes_that_are_no_message_abort(frame):
    """An id that is no UTF-8 is none either (ET-86)."""
    c = Conversation().receive(frame)
    c.fails("FRAG", f"{len(frame)} bytes were received that are not a valid SessionMessage")


def test_E014_without_extensions_there_is_no_metadata_to_send():
    """Headers are known as soon as the session is made."""
    assert Conversation().session.headers == ()
    assert Conversation(extensions="drop").session.headers == (("evergreen-extensions", "drop"),)


def test_E015_no_action_is_ever_sent():
    """Neither on success nor on failure; `Sent` refuses one, here by hand."""
    c = Conversation(upper).send(UPPER, F("p", 0, "hi")).half_close()
    assert len(c.sent.fragments) == 1
    with pytest.raises(AssertionError, match="never sent"):
        c.sent.take(M(UPPER))


def test_E016_ids_carry_no_meaning():
    """A conversation with other ids has the same outcome, whatever they look like."""
    outcomes = []
    for a, b, r in (("p", "q", "r"), ("\n", "日" * 300, " "), ("../x", "%00", "a1"), ("r1", "__status__", "DROP")):
        c = Conversation(upper).send(A("upper", {"x": b}, {"y": r}), K(b, 0, a, a), F(a, 0, "hi")).half_close()
        outcomes.append((c.is_ok, c.texts(r)))
    assert outcomes == [(True, ["HI", "HI"])] * 4


def test_E090_the_first_output_leaves_before_the_last_input_is_there():
    """A stream starts with its action."""
    c = Conversation(relay, models={"relay": each(str.upper)}).send(A("relay", {"x": "p"}, {"y": "r"}))
    assert list(c.invocations) == ["a1"]
    c.send(F("p", 0, "a", more=True))
    assert c.sent.shape("r") == [(0, b"A", True)]


def test_E068_an_output_streams_into_another_action():
    """While both still run (ET-42, ET-43)."""
    first, second = A("ticks", {}, {"y": "r"}), A("relay", {"x": "r"}, {"y": "r2"})
    for order in ((first, second), (second, first)):
        c = Conversation(ticks, relay, models={"relay": each(str.upper)}).send_each(*order)
        key = next(key for key, one in c.invocations.items() if one.open.function == "ticks")
        c.emit(key, "a")
        assert c.sent.shape("r2") == [(0, b"A", True)]
        c.emit(key, "b").finish(key)
        assert c.texts("r2") == ["AB"]


def test_E068_items_of_an_output_stream_into_another_action():
    """Each as it comes."""
    c = Conversation(rows, sink).send(A("rows", {}, {"y": "r"}), A("sink", {"x": "r"})).emit("a1", {"k": 1})
    assert c.invocations["a2"].payloads() == [b'{"k": 1}']
    assert c.emit("a1", {}).finish("a1").invocations["a2"].ended == {0}


def test_E109_concurrent_actions_interleave():
    """Each node in its own order."""
    c = Conversation(ticks).send(TICKS, A("ticks", {}, {"y": "r2"}))
    for number in range(3):
        c.emit("a1", f"a{number}").emit("a2", f"b{number}")
    c.finish("a2").finish("a1")
    assert [one.id for one in c.sent.fragments[:6]] == ["r", "r2"] * 3
    assert (c.texts("r"), c.texts("r2")) == (["a0a1a2"], ["b0b1b2"])


@pytest.mark.parametrize("is_half_closed", [True, False])
def test_E111_a_function_may_end_without_reading_all(is_half_closed):
    """Also where an input is not complete (ET-64)."""
    c = Conversation(join).send(A("join", {"x": "p", "y": "nothing"}, {"out": "r"}), F("p", 0, "x", more=True))
    if is_half_closed:
        c.half_close()
    c.emit("a1", "early").finish("a1")
    assert c.is_ok is is_half_closed
    assert c.texts("r") == ["early"]


def test_E112_a_failing_action_aborts_and_cancels_the_others():
    """Its fragments come first, then the status (ET-61)."""
    c = Conversation(ticks, relay).send(TICKS, A("relay", {"x": "p"}, {"y": "r2"})).emit("a1", "a")
    c.finish("a1", FunctionError("ValueError: why")).fails("FAIL", "action 'ticks' #1: ValueError: why")
    assert [type(step) for step in c.steps[-3:]] == [Send, Cancel, Close]
    assert isinstance(c.invocations["a2"].cancelled, Cancelled)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnsupportedMediaType("image/png"), "BAD"),
        (DecodeError("no UTF-8"), "BAD"),
        (bad_input("x"), "BAD"),
        (FunctionError("ValueError: x"), "FAIL"),
        (EncodeError("nan"), "FAIL"),
        (LimitExceeded("too much"), "LIM"),
    ],
)
def test_E113_errors_of_the_machinery_have_words_of_this_protocol(error, kind):
    """Status and prefix of table 0.1; neither traceback nor path (E-116)."""
    Conversation(ticks).send(TICKS).finish("a1", error).fails(kind, error.detail)


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (NotAcceptable("output 0"), Status.INVALID_ARGUMENT, "Evergreen: Not Acceptable: action 'ticks' #1: output 0"),
        (ShuttingDown("draining"), Status.UNAVAILABLE, "Evergreen: Shutting Down: action 'ticks' #1: draining"),
        (StatusError(Status.ALREADY_EXISTS, "my words"), Status.ALREADY_EXISTS, "my words"),
        (DeadlineExceeded("late"), Status.DEADLINE_EXCEEDED, str(DeadlineExceeded("late"))),
    ],
)
def test_E113_other_endings_keep_what_they_say(error, status, text):
    """A status that the function chose, and ends of the call."""
    ending = Conversation(ticks).send(TICKS).finish("a1", error).ending
    assert (ending.error.status, str(ending.error)) == (status, text)


def test_E116_our_own_mistakes_withhold_their_detail():
    """The client hears of an internal error only."""
    ending = Conversation(ticks).send(TICKS).finish("a1", InternalError()).ending
    assert ending.error.status is Status.INTERNAL


@pytest.mark.parametrize("setting", ["session_bytes", "nodes"])
def test_E115_limits_of_the_session_abort(setting):
    """Bytes that it holds, and nodes (ET-77)."""
    c = Conversation(upper, **{setting: 3000 if setting == "session_bytes" else 3})
    c.send(F("a", 0, "x" * 900), F("b", 0, "x" * 900), F("c", 0, "x" * 900))
    assert c.is_open
    c.send(F("d", 0, "x" * 900)).fails("LIM", "node 'd'")


def test_E115_empty_fragments_cannot_fill_the_memory():
    """What is stored for them counts as well."""
    c = Conversation(session_bytes=10_000).send(*(F("p", seq, more=True) for seq in range(1, 1000)))
    c.fails("LIM", "node 'p'")


@pytest.mark.parametrize("field", ["role", "original_file_name", "mimetype"])
def test_E115_metadata_cannot_fill_the_memory(field):
    """They are kept with their leaf, so they count."""
    Conversation(session_bytes=10_000).send(F("p", 0, "x", **{field: "y" * 20_000})).fails("LIM", "node 'p'")


def test_E115_names_of_nodes_cannot_fill_the_memory():
    """Nodes that are only named count as nodes."""
    Conversation(nodes=10).send(K("p", 0, *"abcdefghij")).fails("LIM", "11 nodes|10")
    Conversation(relay, nodes=2).send(A("relay", {"x": "p"}, {"y": "r"}), A("relay", {"x": "q"})).fails("LIM", "'q'")


def test_E115_outputs_count_as_nodes():
    """Items too."""
    Conversation(rows, models={"rows": source({}, {}, {})}, nodes=3).send(A("rows", {}, {"y": "r"})).fails(
        "LIM", "node"
    )


def test_events_of_unknown_invocations_and_outputs_are_ignored():
    """They may have been on their way."""
    c = Conversation(split).send(A("split", {"x": "p"}, {"left": "r"}))
    c.emit("a9", "x").tell(Finished("a9")).emit("a1", "x", 7)
    assert c.is_open
    assert c.sent.fragments == []


def test_what_a_failing_action_still_gives_is_not_sent():
    """It was told to end."""
    c = Conversation(ticks)
    c.session.receive(M(TICKS))
    first = c.session.deliver(Emitted("a1", 0, message_of("a")))
    refused = c.session.deliver(Emitted("a1", 0, message_of({})))
    assert [type(step) for step in (*first, *refused)] == [Send, Cancel]
    assert c.session.deliver(Emitted("a1", 0, message_of("b"))) == []
    (close,) = c.session.deliver(Finished("a1", refused[0].error))
    assert (close.error.status, str(close.error).partition(":")[0]) == (Status.UNKNOWN, "Evergreen")


def test_E033_a_whole_conversation_may_be_sent_in_any_order():
    """Twenty nodes and five actions, shuffled: the outcome is that of the first order."""
    parts = [K("p", 0, *(f"n{n}" for n in range(10)), more=True), K("p", 1, *(f"m{n}" for n in range(5)))]
    for number in range(10):
        parts += [F(f"n{number}", 0, f"{number}", more=True), F(f"n{number}", 1, ";")]
    parts += [K(f"m{n}", 0, f"r{n}", "n0") for n in range(5)]
    parts += [A("upper", {"x": f"n{n}"}, {"y": f"r{n}"}) for n in range(5)] + [UPPER]
    ordered = Conversation(upper).send(*parts).half_close().texts("r")
    assert len(ordered) == 20
    for seed in range(10):
        random.Random(seed).shuffle(parts)
        c = Conversation(upper).send_each(*parts).half_close()
        assert c.is_ok
        assert c.texts("r") == ordered


def test_errors_of_a_session_are_invocation_errors():
    """The driver reads their status and text."""
    c = Conversation().send(F("p", -1))
    assert isinstance(c.ending.error, InvocationError)
    assert c.ending.error.status is Status.INVALID_ARGUMENT


def test_E040_splitting_a_leaf_anew_changes_nothing():
    """Whole and byte by byte, through a function of bytes."""
    data = bytes(range(256))
    whole = Conversation(raw).send(A("raw", {"x": "p"}, {"y": "r"}), F("p", 0, data, type="a/b"))
    parts = [F("p", n, data[n : n + 1], type="a/b" if n == 0 else "", more=n < 255) for n in range(256)]
    split_up = Conversation(raw).send(A("raw", {"x": "p"}, {"y": "r"}), *parts)
    assert whole.sent.flatten("r")[0].data == split_up.sent.flatten("r")[0].data == data[::-1]
