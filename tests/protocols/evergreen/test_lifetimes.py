"""`Lifetimes` and SET_TTL: nodes that are released after a time (E-120; ET-88)."""

from __future__ import annotations

import pytest
from google.protobuf import any_pb2, duration_pb2, struct_pb2

from invoker.core.steps import Timer
from tests.conftest import cpu_within
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import messages, relay, rows, ticks, upper
from tests.protocols.evergreen.models import each, source
from tests.protocols.evergreen.notation import A, F, K


class Clock:
    """Goes on when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Timed(Conversation):
    """A conversation whose time the test makes."""

    def __init__(self, *functions, **rest):
        self.clock = Clock()
        super().__init__(*functions, extensions="ttl, drop", clock=self.clock, **rest)

    def after(self, seconds):
        """Let time pass; the timer goes off if it is due."""
        self.clock.now += seconds
        if self.timer is not None and self.timer.delay_s <= seconds:
            self.elapse()
        return self

    def gone(self):
        """Nodes that were dropped."""
        return {name for name, node in self.session.graph.nodes.items() if node.is_dropped}


def ttl(node, seconds, nanos=0):
    return A("SET_TTL", {"node": node}, configs=[duration_pb2.Duration(seconds=seconds, nanos=nanos)])


TREE = [K("p", 0, "q", "a"), K("q", 0, "b"), F("a", 0, "a"), F("b", 0, "b")]


def test_E120_a_node_and_all_below_it_expire():
    """After the time, not before; then use of them aborts."""
    c = Timed(upper).send(*TREE, ttl("p", 5))
    assert c.timer == Timer(5.0)
    assert c.after(4.9).gone() == set()
    c.timer = Timer(0.1)
    assert c.after(0.1).gone() == {"p", "q", "a", "b"}
    assert c.session.graph.held == 0
    c.send(A("upper", {"x": "b"}, {"y": "r"})).fails("ACT", "input 'x': node 'b' was dropped")


def test_E120_an_early_timer_expires_nothing_and_is_set_anew():
    """A clock may be read a little early."""
    c = Timed().send(*TREE, ttl("p", 5))
    c.clock.now += 4
    c.elapse()
    assert c.gone() == set()
    assert c.timer == Timer(1.0)


def test_E120_nodes_that_something_else_holds_are_kept():
    """A parent without expiry holds its children, and what is below them."""
    c = Timed().send(*TREE, K("other", 0, "q"), ttl("p", 5)).after(5)
    assert c.gone() == {"p", "a"}


@pytest.mark.parametrize("is_later", [True, False])
def test_E120_a_later_expiry_holds_and_an_earlier_one_does_not(is_later):
    """Whoever holds it longest decides."""
    c = Timed().send(*TREE, K("other", 0, "q"), ttl("p", 5), ttl("other", 9 if is_later else 3))
    c.after(5)
    assert c.gone() == ({"p", "a"} if is_later else {"p", "a", "q", "b", "other"})
    c.after(9)
    assert c.gone() == {"p", "a", "q", "b", "other"}


def test_E120_a_node_with_a_later_expiry_of_its_own_is_kept_until_then():
    """With what is below it."""
    c = Timed().send(*TREE, ttl("q", 8), ttl("p", 5)).after(5)
    assert c.gone() == {"p", "a"}
    assert c.timer == Timer(3.0)
    assert c.after(3).gone() == {"p", "a", "q", "b"}
    assert c.timer is None


def test_E120_a_node_that_was_given_a_shorter_time_than_its_parent_goes_first():
    """Its parent cannot be read any more."""
    c = Timed(upper).send(*TREE, ttl("p", 8), ttl("b", 5)).after(5)
    assert c.gone() == {"b"}
    c.send(A("upper", {"x": "p"}, {"y": "r"})).fails("ACT", "node 'b' was dropped")


@pytest.mark.parametrize(("first", "second", "gone_after"), [(3, 9, 9), (9, 3, 3)])
def test_E120_the_last_call_wins(first, second, gone_after):
    """It may be longer or shorter."""
    c = Timed().send(F("p", 0, "x"), ttl("p", first)).send(ttl("p", second))
    assert c.timer == Timer(float(second))
    assert c.after(gone_after).gone() == {"p"}


@pytest.mark.parametrize(("seconds", "nanos"), [(0, 0), (-1, 0), (0, -1)])
def test_E120_zero_and_less_are_now(seconds, nanos):
    """In the same message."""
    c = Timed().send(*TREE, ttl("p", seconds, nanos))
    assert c.gone() == {"p", "q", "a", "b"}
    assert c.timer is None


def test_E120_parts_of_a_second_count():
    """Nanoseconds are a fraction."""
    assert Timed().send(F("p", 0, "x"), ttl("p", 1, 500_000_000)).timer == Timer(1.5)


def malformed(type_name, value):
    action = A("SET_TTL", {"node": "p"})
    action.configs.append(any_pb2.Any(type_url=f"type.googleapis.com/{type_name}", value=value))
    return action


@pytest.mark.parametrize(
    "action",
    [
        A("SET_TTL", {"node": "p"}),
        A("SET_TTL", {"node": "p"}, configs=[struct_pb2.Struct()]),
        A("SET_TTL", {"node": "p"}, configs=[duration_pb2.Duration(seconds=1)] * 2),
        malformed("google.protobuf.Duration", b"\xff\xff"),
        malformed("", b""),
    ],
    ids=["none", "another", "two", "unreadable", "untyped"],
)
def test_E120_another_configuration_aborts(action):
    """One duration is needed."""
    c = Timed().send(F("p", 0, "x"), action)
    c.fails("ACT", "action 'SET_TTL' on node 'p' needs one configuration of type google.protobuf.Duration")


def test_E120_unknown_and_dropped_nodes_are_a_no_op():
    """As for DROP."""
    c = Timed().send(F("p", 0, "x"), A("DROP", {"node": "p"}), ttl("p", 5), ttl("nobody", 5))
    assert c.is_open
    assert c.timer is None
    assert "nobody" not in c.session.graph.nodes


def test_E120_a_node_that_was_dropped_does_not_expire_again():
    """The timer may still go off."""
    c = Timed().send(F("p", 0, "x"), ttl("p", 5)).send(A("DROP", {"node": "p"}))
    assert c.after(5).gone() == {"p"}
    assert c.timer is None


def test_E120_a_running_action_keeps_what_it_reads():
    """It is released when that has ended, as by DROP."""
    c = Timed(relay, window=1).send(A("relay", {"x": "p"}, {"y": "r"}), *TREE, ttl("p", 5)).after(5)
    assert c.gone() == {"p", "q", "a", "b"}
    assert c.session.graph.held > 0
    assert c.wants("a1").invocations["a1"].payloads() == [b"b", b"a"]
    c.finish("a1")
    assert c.session.graph.held == 0


def test_E120_items_of_an_output_expire_with_it():
    """They are below it."""
    c = Timed(rows, models={"rows": source({}, {})}).send(A("rows", {}, {"y": "r"})).send(ttl("r", 1)).after(1)
    assert c.gone() == set(c.sent.ids)
    assert c.session.graph.held == 0


def test_E120_an_output_of_a_running_action_expires():
    """It is closed in the function."""
    c = Timed(ticks).send(A("ticks", {}, {"y": "r"})).emit("a1", "a").send(ttl("r", 1)).after(1)
    assert c.invocations["a1"].closed_outputs == {0}
    c.emit("a1", "late").finish("a1")
    assert [data for _, data, _ in c.sent.shape("r")] == [b"a"]


def test_E120_the_end_of_the_session_overrides():
    """Nothing waits for the timer."""
    c = Timed(upper).send(F("p", 0, "x"), ttl("p", 500)).half_close()
    assert c.is_ok
    assert c.elapse().steps[-1].error is None


def test_E120_one_timer_stands_for_the_next_of_many():
    """A later one replaces it."""
    c = Timed().send(*(F(f"p{n}", 0, "x") for n in range(5)), *(ttl(f"p{n}", 10 - n) for n in range(5)))
    assert c.timer == Timer(6.0)
    for number in (4, 3, 2, 1, 0):
        c.after(c.timer.delay_s)
        assert f"p{number}" in c.gone()
    assert c.timer is None


def test_E120_thousands_of_expiries_cost_little(slow):
    """Set in one message; a client may not block the others by them."""
    count = 15_000
    c = Timed().send(*(F(f"p{n}", 0, "x") for n in range(count)))
    with cpu_within(1.0 * slow):
        c.send(*(ttl(f"p{n}", 5) for n in range(count)))
        assert c.timer == Timer(5.0)
        assert len(c.after(5).gone()) == count


def test_E120_thousands_of_nodes_that_are_kept_for_a_reader_cost_little(slow):
    """Whenever another reader ends."""
    names = [f"n{n}" for n in range(30_000)]
    c = Timed(messages, window=1).send(K("p", 0, *names), *(F(name, 0, "x") for name in names))
    c.send(A("messages", {"x": "p"}, {"y": "r1"}), A("messages", {"x": "p"}, {"y": "r2"}), ttl("p", 0))
    with cpu_within(1.0 * slow):
        c.finish("a1")
        assert c.session.graph.held > 0
        c.finish("a2")
        assert c.session.graph.held == 0


def test_E120_a_shared_child_goes_with_its_last_parent():
    """A diamond of two nodes that expire one after the other."""
    c = Timed().send(K("p", 0, "a"), K("q", 0, "a"), F("a", 0, "x"), ttl("p", 1), ttl("q", 2))
    assert c.after(1).gone() == {"p"}
    assert c.after(1).gone() == {"p", "q", "a"}


def test_E120_readers_of_a_node_that_expired_before_it_was_complete_fail():
    """Nothing more can come of it."""
    c = Timed(relay, models={"relay": each(str)}).send(A("relay", {"x": "p"}, {"y": "r"}), F("p", 0, "x", more=True))
    c.send(ttl("p", 1)).after(1).fails("MISS", "node 'p' was dropped before it was complete")
