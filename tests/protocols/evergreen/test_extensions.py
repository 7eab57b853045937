"""Extensions: negotiation, DROP, CANCEL and accept (E-118, E-119, E-122, E-124; ET-87, ET-90, ET-92)."""

from __future__ import annotations

import pytest
from google.protobuf import any_pb2, duration_pb2, struct_pb2

from invoker.core.steps import Cancel, CloseOutput
from invoker.errors import Cancelled, NotAcceptable, Status
from invoker.message import as_headers
from invoker.protocols.evergreen.extensions import accepted
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import relay, rows, split, ticks, upper
from tests.protocols.evergreen.models import each, source
from tests.protocols.evergreen.notation import A, F, K, M

UPPER = A("upper", {"x": "p"}, {"y": "r"})
TICKS = A("ticks", {}, {"y": "r"})
RELAY = A("relay", {"x": "p"}, {"y": "r"})


def drop(node):
    return A("DROP", {"node": node})


def cancel(node):
    return A("CANCEL", {"output": node})


# Negotiation.


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("", ()),
        ("drop", ("drop",)),
        ("discovery, cancel ,TTL", ("ttl", "cancel", "discovery")),
        ("nonsense, drop, drop;q=1,,", ("drop",)),
        ("drop, ttl, partial-failures, cancel, accept, discovery",
         ("drop", "ttl", "partial-failures", "cancel", "accept", "discovery")),
    ],
)  # fmt: skip
def test_E118_the_accepted_subset_is_told_at_once(asked, given):
    """Unknown tokens are ignored; the server answers in an order of its own."""
    session = Conversation(extensions=asked).session
    assert session.headers == ((("evergreen-extensions", ", ".join(given)),) if given else ())
    assert accepted(as_headers({"Evergreen-Extensions": asked})) == given


@pytest.mark.parametrize("name", ["DROP", "SET_TTL", "CANCEL", "__list_actions"])
def test_E118_without_negotiation_the_names_are_ordinary(name):
    """Not found; or a function of that name, also where another extension was negotiated."""
    action = A(name, {"x": "p"}, {"y": "r"})
    Conversation(upper, extensions="accept").send(action).fails("ANF", f"'{name}'")
    c = Conversation(upper, actions={name: "upper"}).send(action, F("p", 0, "hi"))
    assert c.texts("r") == ["HI"]


def test_E118_a_negotiated_name_hides_a_function_of_that_name():
    """The client asked for it."""
    c = Conversation(upper, actions={"DROP": "upper"}, extensions="drop").send(F("p", 0, "x"), drop("p"))
    assert c.session.graph.nodes["p"].is_dropped


def test_E118_actions_of_extensions_have_no_ordinal():
    """The session's own actions count."""
    Conversation(extensions="drop").send(drop("p"), drop("q"), A("nobody")).fails("ANF")
    c = Conversation(ticks, extensions="drop").send(drop("p"), A("ticks", {"z": "p"}))
    c.fails("ACT", "action 'ticks' #1 ")


# DROP.


def test_E119_a_dropped_node_is_released():
    """What it held is free again; its children are untouched."""
    c = Conversation(extensions="drop").send(K("p", 0, "a"), F("a", 0, "x" * 1000))
    before = c.session.graph.held
    c.send(drop("p"))
    assert 0 < before - c.session.graph.held < 200
    assert c.session.graph.nodes["a"].payload() == b"x" * 1000
    c.send(drop("a"))
    assert c.session.graph.held == 0


@pytest.mark.parametrize(
    ("part", "where"),
    [
        (K("q", 0, "p"), "node 'q', seq 0: its child"),
        (K("q", 3, "b", "p", more=True), "node 'q', seq 3: its child"),
        (A("upper", {"x": "p"}, {"y": "r"}), "action 'upper' #1, input 'x': node"),
    ],
)
def test_E119_later_use_of_a_dropped_node_aborts(part, where):
    """As a child or as an input, with where it is used."""
    c = Conversation(upper, extensions="drop").send(F("p", 0, "x"), drop("p")).send(part)
    assert str(c.fails("ACT")) == f"Evergreen: Invalid Action: {where} 'p' was dropped"


def test_E119_a_dropped_id_is_no_output_either():
    """It stays burnt."""
    c = Conversation(upper, extensions="drop").send(F("r", 0, "x"), F("p", 0, "y"), drop("r")).send(UPPER)
    c.fails("ACT", "output id already in use: 'r'")


def test_E119_reading_a_parent_of_a_dropped_node_aborts():
    """It was a child before it was dropped."""
    c = Conversation(upper, extensions="drop").send(K("p", 0, "a", "b"), F("a", 0, "x"), F("b", 0, "y"), drop("b"))
    c.send(UPPER).fails("ACT", "node 'b' was dropped")


@pytest.mark.parametrize("fragment", [F("p", 1, "b"), F("p", 0, "z"), K("p", 9, "p"), F("p", 7, "x", type="a/b")])
def test_E119_later_fragments_of_a_dropped_node_are_ignored(fragment):
    """Whatever they hold."""
    c = Conversation(extensions="drop").send(F("p", 0, "x", more=True), drop("p")).send(fragment)
    assert c.is_open
    assert c.session.graph.held == 0


def test_E119_unknown_and_dropped_nodes_are_a_no_op():
    """A second time as well; an unknown one is not burnt."""
    c = Conversation(upper, extensions="drop").send(drop("p"), F("q", 0, "x"), drop("q"), drop("q")).send(drop("q"))
    assert c.is_open
    assert c.send(UPPER, F("p", 0, "hi")).texts("r") == ["HI"]


def test_E119_a_running_action_keeps_its_snapshot():
    """The node is released when that has ended (ET-87)."""
    c = Conversation(relay, extensions="drop", window=1).send(
        RELAY, K("p", 0, "a", "b"), F("a", 0, "1"), F("b", 0, "2")
    )
    held = c.session.graph.held
    c.send(drop("b"), drop("p"))
    assert c.session.graph.held == held
    c.wants("a1")
    assert c.invocations["a1"].payloads() == [b"1", b"2"]
    c.finish("a1").send(drop("a"))
    assert c.session.graph.held == 0


def test_E119_a_waiting_action_keeps_its_snapshot_too():
    """It was accepted before."""
    c = Conversation(ticks, upper, extensions="drop", actions_running=1).send(
        TICKS, A("upper", {"x": "p"}, {"y": "r2"})
    )
    c.send(F("p", 0, "hi"), drop("p")).finish("a1")
    assert c.texts("r2") == ["HI"]


def test_E119_dropping_what_is_still_read_and_not_complete_aborts_its_reader():
    """Nothing more can come of it."""
    c = Conversation(relay, extensions="drop").send(RELAY, F("p", 0, "x", more=True)).send(drop("p"))
    c.fails("MISS", "node 'p' was dropped before it was complete")


def test_E119_dropping_an_output_of_a_running_action_closes_it():
    """Nothing more of it is sent; the function's output is closed, the other one goes on."""
    c = Conversation(split, extensions="drop").send(A("split", {"x": "p"}, {"left": "r1", "right": "r2"}))
    c.emit("a1", "a", 0).emit("a1", "b", 1).send(drop("r1"))
    assert c.steps[-1] == CloseOutput("a1", 0)
    c.emit("a1", "late", 0).emit("a1", "c", 1).finish("a1")
    assert [data for _, data, _ in c.sent.shape("r1")] == [b"a"]
    assert c.texts("r2") == ["bc"]


def test_E119_the_function_of_a_dropped_output_ends():
    """It was its only one."""
    c = Conversation(relay, models={"relay": each(str.upper)}, extensions="drop").send(RELAY).send(drop("r"))
    assert c.send(F("p", 0, "x", more=True)).half_close().is_ok
    assert c.sent.of("r") == []


def test_E119_dropping_an_output_of_a_waiting_action_closes_it_when_that_starts():
    """Not before: there is no invocation yet."""
    c = Conversation(split, extensions="drop", actions_running=1).send(A("split", {"x": "p"}))
    c.send(A("split", {"x": "p"}, {"left": "r1", "right": "r2"})).send(drop("r1"))
    c.finish("a1").emit("a2", "L", 0).emit("a2", "R", 1).finish("a2")
    one = c.invocations["a2"]
    assert one.closed_outputs == {0} or one.open.unwanted == (0,)
    assert c.sent.of("r1") == []
    assert c.texts("r2") == ["R"]


def test_E119_a_node_that_was_kept_for_an_action_that_never_ran_is_released():
    """The action waited, and was cancelled."""
    c = Conversation(ticks, upper, extensions="drop, cancel", actions_running=1).send(TICKS)
    c.send(A("upper", {"x": "p"}, {"y": "r2"}), F("p", 0, "hi")).send(drop("p"))
    assert c.session.graph.held > 0
    c.send(cancel("r2"))
    assert c.session.graph.held == 0


def test_E119_bytes_that_come_for_a_dropped_reference_are_not_kept():
    """Its fetch may still run."""
    c = Conversation(relay, extensions="drop").send(RELAY, F("p", 0, ref="https://example.org/x"))
    c.finish("a1").send(drop("p")).fetched(b"x" * 1000, last=False).fetched(b"x" * 1000)
    assert c.session.graph.held == 0


def test_E119_a_finished_output_can_be_dropped():
    """Its items are nodes of their own."""
    c = Conversation(rows, models={"rows": source({"k": "x" * 100})}, extensions="drop").send(A("rows", {}, {"y": "r"}))
    item = c.sent.ids[1]
    c.send(drop("r"))
    assert c.session.graph.held >= 100
    c.send(drop(item))
    assert c.session.graph.held == 0


@pytest.mark.parametrize(
    "action",
    [
        A("DROP"),
        A("DROP", {"nodes": "p"}),
        A("DROP", {"node": ""}),
        A("DROP", {"node": "p"}, {"y": "r"}),
        A("DROP", [("node", "p"), ("node", "q")]),
        A("CANCEL", {"node": "p"}),
        A("CANCEL"),
        A("SET_TTL", {"output": "p"}, configs=[duration_pb2.Duration(seconds=1)]),
    ],
)
def test_E119_actions_of_extensions_take_one_input_and_have_no_outputs(action):
    """Others abort."""
    c = Conversation(extensions="drop, cancel, ttl").send(F("p", 0, "x")).send(action)
    c.fails("ACT", f"action '{action.name}' takes one input '(node|output)' and has no outputs")


def test_E118_actions_of_extensions_take_effect_in_their_order():
    """A node is read by the action before DROP, not by the one behind it."""
    c = Conversation(upper, extensions="drop").send(F("p", 0, "hi"), UPPER, drop("p"))
    assert c.texts("r") == ["HI"]
    Conversation(upper, extensions="drop").send(F("p", 0, "hi"), drop("p"), UPPER).fails("ACT")


# CANCEL.


@pytest.mark.parametrize("output", ["r1", "r2"])
def test_E122_an_action_is_cancelled_by_any_of_its_outputs(output):
    """Its outputs get terminators; the session goes on."""
    c = Conversation(split, extensions="cancel").send(A("split", {"x": "p"}, {"left": "r1", "right": "r2"}))
    c.emit("a1", "a", 0).send(cancel(output))
    assert isinstance(c.invocations["a1"].cancelled, Cancelled)
    assert (c.texts("r1"), c.sent.shape("r2")) == (["a"], [(0, None, False)])
    assert c.half_close().is_ok


def test_E122_an_item_names_its_action_as_well():
    """It is an output's part."""
    c = Conversation(rows, extensions="cancel").send(A("rows", {}, {"y": "r"})).emit("a1", {})
    c.send(cancel(c.sent.ids[1]))
    assert c.invocations["a1"].cancelled is not None


def test_E122_finished_and_unknown_actions_are_a_no_op():
    """So are nodes of the client, and a second time."""
    c = Conversation(upper, ticks, extensions="cancel").send(UPPER, F("p", 0, "hi")).send(cancel("r"), cancel("p"))
    c.send(cancel("nobody"), A("ticks", {}, {"y": "t"})).send(cancel("t"), cancel("t")).send(cancel("t"))
    assert sum(isinstance(step, Cancel) for step in c.steps) == 1
    assert c.half_close().is_ok


def test_E122_a_reader_of_a_cancelled_output_sees_it_short_but_complete():
    """Without partial failures."""
    c = Conversation(ticks, relay, models={"relay": each(str.upper)}, extensions="cancel")
    c.send(TICKS, A("relay", {"x": "r"}, {"y": "r2"})).emit("a1", "a").send(cancel("r"))
    assert c.half_close().is_ok
    assert c.texts("r2") == ["A"]


def test_E122_an_action_that_waits_for_its_turn_is_cancelled_too():
    """It is never opened; its outputs end."""
    c = Conversation(ticks, extensions="cancel, partial-failures", actions_running=1)
    c.send(TICKS, A("ticks", {}, {"y": "r2", "__status__": "s"})).send(cancel("r2"))
    assert list(c.invocations) == ["a1"]
    assert c.sent.shape("r2") == [(0, None, False)]
    assert c.sent.flatten("s")[0].data[:2] == b"\x08\x01"
    c.finish("a1")
    assert list(c.invocations) == ["a1"]
    assert c.half_close().is_ok


def test_E122_a_cancelled_action_after_the_half_close_still_ends_the_session():
    """With OK, once its function has ended."""
    c = Conversation(ticks, extensions="cancel").send(TICKS)
    c.session.receive(M(cancel("r")))
    assert c.half_close().is_open
    assert c.finish("a1", Cancelled("done")).is_ok


# accept.


def accepts(value):
    struct = struct_pb2.Struct()
    struct.update({"accept": value})
    return struct


def test_E124_a_configuration_says_which_types_are_wanted():
    """By the name of the output; others take anything (ET-92)."""
    c = Conversation(split, extensions="accept")
    wanted = accepts({"right": "application/json, text/*;q=0.5"})
    c.send(A("split", {"x": "p"}, {"left": "r1", "right": "r2"}, configs=[wanted]))
    assert c.invocations["a1"].open.accepts == ("*/*", "application/json, text/*;q=0.5")
    assert len(c.invocations["a1"].open.configs) == 1


def test_E124_the_only_output_goes_by_the_name_that_the_client_gave_it():
    """Any name is allowed for it."""
    c = Conversation(upper, extensions="accept").send(
        A("upper", {"x": "p"}, {"answer": "r"}, configs=[accepts({"answer": "text/html"})])
    )
    assert c.invocations["a1"].open.accepts == ("text/html",)


def test_E124_nothing_that_fits_is_not_acceptable():
    """INVALID_ARGUMENT with words of its own."""
    c = Conversation(upper, extensions="accept").send(UPPER).finish("a1", NotAcceptable("output 0 'y' wants image/png"))
    assert c.ending.error.status is Status.INVALID_ARGUMENT
    assert str(c.ending.error) == "Evergreen: Not Acceptable: action 'upper' #1: output 0 'y' wants image/png"


@pytest.mark.parametrize("extensions", ["", "drop"])
def test_E105_without_negotiation_there_is_no_wish_list(extensions):
    """The configuration is one as any other."""
    c = Conversation(upper, extensions=extensions)
    c.send(A("upper", {"x": "p"}, {"y": "r"}, configs=[accepts({"y": "image/png"})]))
    assert c.invocations["a1"].open.accepts == ("*/*",)


@pytest.mark.parametrize("value", ["text/plain", ["text/plain"], 1, True, {"y": 1}, {"y": ["text/plain"]}])
def test_E124_a_malformed_wish_list_aborts(value):
    """It must map outputs to lists of media ranges."""
    c = Conversation(upper, extensions="accept").send(A("upper", {"x": "p"}, {"y": "r"}, configs=[accepts(value)]))
    c.fails("ACT", "action 'upper' #1: the configuration 'accept'")


@pytest.mark.parametrize("value", [b"\xff\xff", b"\n\x0e\n\x01x\x12\x09\x11\x00\x00\x00\x00\x00\x00\xf8\x7f"])
def test_E124_a_struct_that_cannot_be_read_aborts(value):
    """Bytes that are none, or a number that JSON lacks."""
    action = A("upper", {"x": "p"}, {"y": "r"})
    action.configs.append(any_pb2.Any(type_url="type.googleapis.com/google.protobuf.Struct", value=value))
    Conversation(upper, extensions="accept").send(action).fails("ACT", "action 'upper' #1: ")
    assert Conversation(upper).send(action).is_open


def test_E124_other_configurations_are_passed_over():
    """And a Struct without the word."""
    other = struct_pb2.Struct()
    other.update({"temperature": 1})
    configs = [other, duration_pb2.Duration(seconds=1), accepts(None), accepts({"y": "text/html"})]
    c = Conversation(upper, extensions="accept").send(A("upper", {"x": "p"}, {"y": "r"}, configs=configs))
    assert c.invocations["a1"].open.accepts == ("text/html",)
