"""`RunningAction`: what is known of an action until it has finished."""

from __future__ import annotations

from invoker.errors import FunctionError
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import join, relay, split, ticks, upper
from tests.protocols.evergreen.notation import A, F


def running(c, key="a1"):
    return c.session.running[key]


def test_an_action_is_named_by_its_ordinal_in_the_session():
    """For the machinery and for people."""
    c = Conversation(relay, ticks).send(A("ticks", {}, {"y": "r"}), A("relay", {"x": "p"}, {"y": "r2"}))
    assert [(one.key, one.where) for one in c.session.running.values()] == [
        ("a1", "action 'ticks' #1"),
        ("a2", "action 'relay' #2"),
    ]


def test_a_long_name_is_shown_in_part():
    """64 characters of it, escaped."""
    c = (
        Conversation(ticks, actions={"x\n" * 100: "ticks"})
        .send(A("x\n" * 100, {}, {"y": "r"}))
        .finish("a1", FunctionError("no"))
    )
    error = c.fails("FAIL", "#1: no")
    assert repr("x\n" * 32 + "...") in str(error)


def test_its_nodes_are_its_listed_outputs():
    """Somebody who waits for one of them awaits the action."""
    c = Conversation(split, relay).send(A("split", {"x": "p"}, {"right": "r", "left": "r2"}))
    one = running(c)
    assert {node.id for node in one.nodes} == {"r", "r2"}
    assert not one.is_awaited
    c.send(A("relay", {"x": "r"}, {"y": "r3"}))
    assert one.is_awaited


def test_it_awaits_what_its_function_waits_for():
    """None while it may go on by itself; the inputs that are waited for else."""
    c = Conversation(join).send(A("join", {"x": "p", "y": "q"}, {"out": "r"}))
    one = running(c)
    assert one.awaits is None
    c.session.is_half_closed = True
    one.inputs[1].is_waited_for = True
    assert one.awaits == [one.inputs[1]]


def test_it_awaits_nothing_while_a_reference_is_on_its_way():
    """The driver will bring it."""
    c = Conversation(upper).send(A("upper", {"x": "p"}, {"y": "r"}), F("p", 0, ref="https://example.org/x"))
    one = running(c)
    one.inputs[0].is_waited_for = True
    assert one.awaits is None


def test_once_it_is_over_its_inputs_are_closed():
    """They read nothing more."""
    c = Conversation(relay).send(A("relay", {"x": "p"}, {"y": "r"}), F("p", 0, "x", more=True))
    one = running(c)
    c.finish("a1")
    assert all(each.is_ended and each.cursor.is_closed for each in one.inputs)
    c.send(F("p", 1, "y"))
    assert c.invocations["a1"].payloads() == [b"x"]
