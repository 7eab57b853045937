"""Actions of a session: whose an output id is, and how many run at once (E-081 to E-084, E-089, E-091)."""

from __future__ import annotations

from itertools import permutations

import pytest
from google.protobuf import struct_pb2

from invoker.errors import FunctionError
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import constant, join, relay, rows, split, ticks, upper
from tests.protocols.evergreen.models import each, source
from tests.protocols.evergreen.notation import A, F, K

UPPER = A("upper", {"x": "p"}, {"y": "r"})
IN_USE = "output id already in use: "


def chained(count, *, actions_running, blocked=True):
    """A session in which ``count`` actions read each other's output, r0 that of r1 and so on."""
    c = Conversation(ticks, relay, models={"relay": each(str.upper)}, actions_running=actions_running)
    if blocked:
        c.send(*(A("ticks", {}, {"y": f"t{n}"}) for n in range(actions_running)))
    return c.send(*(A("relay", {"x": f"r{n + 1}"}, {"y": f"r{n}"}) for n in range(count)))


# Output ids.


def test_E081_a_received_node_is_no_output():
    """Whatever of it was received."""
    for part in (F("r", 0, "x"), F("r", 5, "x"), K("r", 0, "a"), F("r")):
        c = Conversation(upper).send(part).send(UPPER)
        c.fails("ACT", f"action 'upper' #1: {IN_USE}'r'")


@pytest.mark.parametrize("is_finished", [True, False])
def test_E081_an_output_of_another_action_is_no_output(is_finished):
    """Also when that has finished."""
    c = Conversation(ticks).send(A("ticks", {}, {"y": "r"}))
    if is_finished:
        c.emit("a1", "x").finish("a1")
    c.send(A("ticks", {}, {"y": "r"})).fails("ACT", f"action 'ticks' #2: {IN_USE}'r'")


def test_E081_one_id_is_not_two_outputs_of_one_action():
    """Each output needs a node."""
    c = Conversation(split).send(A("split", {"x": "p"}, {"left": "r", "right": "r"}))
    c.fails("ACT", f"action 'split' #1: {IN_USE}'r'")


@pytest.mark.parametrize("is_received", [True, False])
def test_E081_an_input_is_not_an_output_of_the_same_action(is_received):
    """Whether it has come or not."""
    c = Conversation(upper)
    if is_received:
        c.send(F("p", 0, "x"))
    c.send(A("upper", {"x": "p"}, {"y": "p"})).fails("ACT", f"action 'upper' #1: {IN_USE}'p'")


def test_E081_items_of_an_output_are_no_outputs():
    """They are somebody's already."""
    c = Conversation(rows, ticks).send(A("rows", {}, {"y": "r"})).emit("a1", {})
    c.send(A("ticks", {}, {"y": c.sent.ids[1]})).fails("ACT", IN_USE)


def test_E082_a_node_that_was_only_named_may_become_an_output():
    """As a child, or as an input of a waiting action, in any order."""
    parts = [K("q", 0, "r", "r"), A("upper", {"x": "r"}, {"y": "r2"}), A("upper", {"x": "q"}, {"y": "r3"})]
    for order in permutations([*parts, A("ticks", {}, {"y": "r"})]):
        c = Conversation(ticks, upper, models={"ticks": source("hi")}).send_each(*order).half_close()
        assert c.is_ok
        assert (c.texts("r2"), c.texts("r3")) == (["HI"], ["HI", "HI"])


@pytest.mark.parametrize("is_finished", [True, False])
def test_E083_a_client_does_not_write_into_an_output(is_finished):
    """Before or after it was produced; the text names node, seq and action (ET-45)."""
    c = Conversation(ticks).send(A("ticks", {}, {"y": "r"})).emit("a1", "x")
    if is_finished:
        c.finish("a1")
    c.send(F("r", 7, "x")).fails("FRAG", "node 'r', seq 7: it is an output of action 'ticks' #1")


def test_E084_the_same_action_again_is_no_retry():
    """Its output ids are taken."""
    c = Conversation(upper).send(F("p", 0, "hi"), UPPER).send(UPPER)
    c.fails("ACT", f"action 'upper' #2: {IN_USE}'r'")


def test_E084_an_action_without_outputs_runs_twice():
    """It has no id by which it would be known."""
    c = Conversation(constant).send(A("constant"), A("constant")).half_close()
    assert c.is_ok
    assert len(c.invocations) == 2


def test_E089_an_action_may_come_before_all_some_or_none_of_its_nodes():
    """In every order of four parts."""
    parts = [A("join", {"x": "p", "y": "q"}, {"out": "r"}), F("p", 0, "a"), K("q", 0, "b"), F("b", 0, "b")]
    for order in permutations(parts):
        c = Conversation(join).send_each(*order)
        one = c.invocations["a1"]
        assert (one.payloads(0), one.payloads(1), one.ended) == ([b"a"], [b"b"], {0, 1})


def test_E063_one_node_is_input_of_many_actions():
    """Each reads all of it, whenever it comes."""
    c = Conversation(upper).send(A("upper", {"x": "p"}, {"y": "r1"}), F("p", 0, "a", more=True))
    c.send(A("upper", {"x": "p"}, {"y": "r2"})).send(F("p", 1, "b")).send(A("upper", {"x": "p"}, {"y": "r3"}))
    assert [c.texts(f"r{n}") for n in (1, 2, 3)] == [["AB"]] * 3


# How many run.


def test_E091_a_slow_action_does_not_delay_a_quick_one():
    """Actions are opened when they come, not one after the other."""
    c = Conversation(ticks, upper).send(A("ticks", {}, {"y": "t"}), UPPER).send(F("p", 0, "hi"))
    assert c.texts("r") == ["HI"]
    assert c.invocations["a1"].is_finished is False


def test_E115_actions_beyond_the_limit_wait_for_one_to_end():
    """They start in the order in which they came."""
    c = Conversation(ticks, actions_running=2).send(*(A("ticks", {}, {"y": f"r{n}"}) for n in range(5)))
    assert list(c.invocations) == ["a1", "a2"]
    c.finish("a2")
    assert list(c.invocations) == ["a1", "a2", "a3"]
    c.finish("a1").finish("a3")
    assert list(c.invocations) == ["a1", "a2", "a3", "a4", "a5"]


def test_E115_more_than_may_wait_abort():
    """The text says how many run and wait."""
    c = Conversation(ticks, actions_running=2, actions_waiting=3)
    c.send(*(A("ticks", {}, {"y": f"r{n}"}) for n in range(5)))
    assert c.is_open
    c.send(A("ticks", {}, {"y": "r5"})).fails("LIM", "action 'ticks' #6: 2 actions run and 3 wait")


def test_E115_the_limits_are_64_and_1024():
    """Unless the operator says otherwise (0.2)."""
    c = Conversation(ticks).send(*(A("ticks", {}, {"y": f"r{n}"}) for n in range(64 + 1024)))
    assert (len(c.session.running), len(c.session.waiting)) == (64, 1024)
    c.send(A("ticks")).fails("LIM", "action 'ticks' #1089")


def test_E091_a_waiting_action_is_checked_when_it_comes():
    """Its output ids are its own from then on."""
    c = Conversation(ticks, actions_running=1).send(A("ticks", {}, {"y": "r1"}), A("ticks", {}, {"y": "r2"}))
    c.send(F("r2", 0, "x")).fails("FRAG", "node 'r2', seq 0: it is an output of action 'ticks' #2")


def test_E091_a_waiting_action_reads_what_came_meanwhile():
    """When its turn comes."""
    c = Conversation(ticks, upper, actions_running=1).send(A("ticks", {}, {"y": "t"}), UPPER, F("p", 0, "hi"))
    assert c.sent.of("r") == []
    c.finish("a1")
    assert c.texts("r") == ["HI"]


@pytest.mark.parametrize("is_consumer_first", [True, False])
def test_E091_who_is_waited_for_does_not_wait_for_its_turn(is_consumer_first):
    """Else nothing would ever go on: the producer starts beyond the limit."""
    consumer, producer = A("relay", {"x": "r"}, {"y": "r2"}), A("ticks", {}, {"y": "r"})
    models = {"relay": each(str.upper), "ticks": source("hi")}
    c = Conversation(relay, ticks, models=models, actions_running=1)
    c.send_each(*((consumer, producer) if is_consumer_first else (producer, consumer)))
    assert c.texts("r2") == ["HI"]


def test_E091_a_running_action_that_comes_to_a_waiting_ones_output_starts_it():
    """Although it stood in the queue for long."""
    c = Conversation(upper, ticks, models={"ticks": source("hi")}, actions_running=1)
    c.send(UPPER, A("ticks", {}, {"y": "t"}))
    assert list(c.invocations) == ["a1"]
    c.send(K("p", 0, "a", "t"))
    assert list(c.invocations) == ["a1"]
    c.send(F("a", 0, "x"))
    assert c.texts("r") == ["X", "HI"]


@pytest.mark.parametrize("actions_running", [1, 2, 64])
@pytest.mark.parametrize("blocked", [True, False])
def test_E091_long_chains_of_actions_do_not_dead_lock(actions_running, blocked):
    """Each waits for the next one; the last for the client. A chain of 600 is no recursion."""
    count = 600 if blocked else 80
    c = chained(count, actions_running=actions_running, blocked=blocked).send(F(f"r{count}", 0, "hi"))
    if blocked:
        c.finish("a1")
    assert c.texts("r0") == ["HI"]


def test_E091_a_chain_of_waiting_actions_in_the_other_order():
    """Producers first."""
    c = Conversation(relay, models={"relay": each(str.upper)}, actions_running=1)
    c.send(*(A("relay", {"x": f"r{n + 1}"}, {"y": f"r{n}"}) for n in reversed(range(100))))
    assert list(c.invocations) == ["a1"]
    c.send(F("r100", 0, "hi"))
    assert c.half_close().is_ok
    assert c.texts("r0") == ["HI"]


def test_E091_a_status_node_that_is_waited_for_starts_its_action():
    """What says how an action ended may be waited for as any output."""
    c = Conversation(relay, ticks, models={"ticks": source("a")}, extensions="partial-failures", actions_running=1)
    c.send(A("relay", {"x": "s"}, {"y": "r"})).send(A("ticks", {}, {"__status__": "s"}))
    assert list(c.invocations) == ["a1", "a2"]


def test_E115_configurations_count_while_their_action_lives():
    """Of those that run and of those that wait; a cancelled one that never ran is released as well."""
    config = struct_pb2.Struct()
    config.update({"x": "y" * 1000})
    c = Conversation(ticks, extensions="cancel", actions_running=1, session_bytes=2500)
    c.send(*(A("ticks", {}, {"y": f"r{n}"}, configs=[config]) for n in range(2)))
    assert 2000 < c.session.graph.held < 2500
    c.send(A("CANCEL", {"output": "r1"})).finish("a1")
    assert c.session.graph.held == 0
    c.send(*(A("ticks", {}, {"y": f"q{n}"}, configs=[config]) for n in range(3))).fails("LIM", "would hold")


def test_E112_a_failure_drops_waiting_actions():
    """They are never opened."""
    c = Conversation(ticks, actions_running=1).send(A("ticks", {}, {"y": "r1"}), A("ticks", {}, {"y": "r2"}))
    c.finish("a1", FunctionError("no")).fails("FAIL")
    assert list(c.invocations) == ["a1"]
    assert not c.session.waiting


def test_E004_the_half_close_waits_for_actions_that_wait():
    """They run one after the other, then OK."""
    c = Conversation(ticks, actions_running=1).send(*(A("ticks", {}, {"y": f"r{n}"}) for n in range(3))).half_close()
    for key in ("a1", "a2", "a3"):
        assert c.is_open
        c.finish(key)
    assert c.is_ok


def test_E006_a_thousand_actions_in_one_session():
    """Small ones, one after the other (ET-84)."""
    c = Conversation(upper).send(F("p", 0, "hi"))
    for number in range(1000):
        c.send(A("upper", {"x": "p"}, {"y": f"r{number}"}))
    assert c.half_close().is_ok
    assert all(c.texts(f"r{number}") == ["HI"] for number in range(1000))


def test_the_ordinal_of_an_action_counts_all_of_the_session():
    """Also those that wait."""
    c = Conversation(ticks, actions_running=1).send(*(A("ticks", {}, {"y": f"r{n}"}) for n in range(3)), A("nobody"))
    c.fails("ANF")
    c = Conversation(ticks, actions_running=1).send(*(A("ticks", {}, {"y": f"r{n}"}) for n in range(3)))
    c.send(A("ticks", {"x": "p"})).fails("ACT", "action 'ticks' #4 ")
