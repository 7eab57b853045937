"""After the half-close: when nothing can go on any more (E-114, ET-62 to ET-64)."""

from __future__ import annotations

import pytest

from invoker.core.steps import Close
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import add, join, relay, ticks, topk, upper
from tests.protocols.evergreen.models import Give, Take, each, source
from tests.protocols.evergreen.notation import JSON, A, F, K

UPPER = A("upper", {"x": "p"}, {"y": "r"})
RELAYS = {"relay": each(str.upper)}


def test_E114_a_node_that_never_came_aborts_after_the_half_close():
    """Not before: the client may still send."""
    c = Conversation(upper).send(UPPER)
    assert c.is_open
    c.half_close().fails("MISS", "node 'p' never came, and action 'upper' #1 needs it for its input 'x'")


@pytest.mark.parametrize("part", [F("p", 0, "a", more=True), F("p", 1, "b"), F("p", 0, more=True)])
def test_E114_a_node_that_is_not_complete_aborts(part):
    """The text says which seq it lacks."""
    c = Conversation(upper).send(UPPER, part).half_close()
    c.fails("MISS", f"node 'p' lacks seq {0 if part.seq else 1}, and action 'upper' #1")


def test_E114_a_child_that_never_came_is_named():
    """Not its root."""
    Conversation(upper).send(UPPER, K("p", 0, "a", "b"), F("a", 0, "x")).half_close().fails(
        "MISS", "node 'b' never came"
    )


def test_E114_a_stream_that_has_read_what_there_is_aborts():
    """What it gave before is sent first."""
    c = (
        Conversation(relay, models=RELAYS)
        .send(A("relay", {"x": "p"}, {"y": "r"}), F("p", 0, "a", more=True))
        .half_close()
    )
    assert c.sent.shape("r") == [(0, b"A", True)]
    c.fails("MISS", "node 'p' lacks seq 1, and action 'relay' #1 needs it for its input 'x'")


@pytest.mark.parametrize("length", [2, 5, 30])
def test_E114_chains_of_actions_name_the_node_without_a_producer(length):
    """Those that wait for others are not to blame (ET-62)."""
    c = Conversation(relay, models=RELAYS)
    c.send(*(A("relay", {"x": f"r{n + 1}"}, {"y": f"r{n}"}) for n in range(length))).half_close()
    c.fails("MISS", f"node 'r{length}' never came, and action 'relay' #{length} needs it")


@pytest.mark.parametrize("actions_running", [1, 2])
def test_E114_chains_longer_than_may_run_are_found_as_well(actions_running):
    """Waiting actions are started first: they may be what is waited for."""
    c = Conversation(relay, models=RELAYS, actions_running=actions_running)
    c.send(*(A("relay", {"x": f"p{n}"}, {"y": f"r{n}"}) for n in range(6))).half_close()
    c.fails("MISS", "node 'p.' never came")
    assert len(c.invocations) == 6


def test_E114_an_action_that_still_runs_keeps_the_session_open():
    """Others wait for nobody, but it may take long."""
    c = Conversation(upper, ticks).send(UPPER, A("ticks", {}, {"y": "t"})).half_close()
    assert c.is_open
    c.emit("a2", "x")
    assert c.is_open
    c.finish("a2").fails("MISS", "node 'p' never came")


def test_E114_a_producer_that_still_runs_is_waited_for():
    """Its reader goes on when it does."""
    c = Conversation(upper, ticks).send(A("upper", {"x": "t"}, {"y": "r"}), A("ticks", {}, {"y": "t"})).half_close()
    assert c.is_open
    c.emit("a2", "hi").finish("a2")
    assert c.is_ok
    assert c.texts("r") == ["HI"]


def test_E114_a_function_that_ignores_an_incomplete_input_is_not_hopeless():
    """It is asked nothing (ET-64)."""
    c = (
        Conversation(join, models={"join": source("a")})
        .send(A("join", {"x": "p", "y": "q"}, {"out": "r"}))
        .half_close()
    )
    assert c.is_ok
    assert c.texts("r") == ["a"]


def test_E114_a_function_that_reads_another_input_is_not_hopeless():
    """Only what it waits for counts."""

    def second(_):
        message = yield Take(1)
        yield Give(message.payload)

    c = Conversation(join, models={"join": second}).send(A("join", {"x": "p", "y": "q"}, {"out": "r"}), F("q", 0, "b"))
    assert c.half_close().is_ok
    assert c.sent.flatten("r")[0].data == b"b"


def test_E114_a_single_value_that_never_comes_is_hopeless():
    """A value beside a stream, and the second of two values."""
    c = Conversation(topk, models={"topk": lambda _: (yield Take(1))}).send(A("topk", {"x": "p", "k": "k"}, {"y": "r"}))
    c.half_close().fails("MISS", "node 'k' never came, and action 'topk' #1 needs it for its input 'k'")
    c = Conversation(add).send(A("add", {"a": "p", "b": "q"}, {"y": "r"}), F("p", 0, "1", type=JSON)).half_close()
    c.fails("MISS", "node 'q' never came, and action 'add' #1 needs it for its input 'b'")


def test_E114_a_function_that_was_not_heard_to_wait_is_not_hopeless():
    """It may be about to end."""
    c = Conversation(relay).send(A("relay", {"x": "p"}, {"y": "r"})).half_close()
    assert c.is_open
    c.wants("a1", waits=True).fails("MISS", "node 'p' never came")


def test_E114_a_wish_before_the_half_close_is_remembered_no_longer_than_it_holds():
    """A function that waited, was fed and waits no more is not hopeless."""
    c = Conversation(relay).send(A("relay", {"x": "p"}, {"y": "r"})).wants("a1", waits=True)
    assert c.is_open
    c.send(F("p", 0, "a", more=True)).half_close()
    assert c.is_open
    c.wants("a1", waits=False)
    assert c.is_open
    c.wants("a1", waits=True).fails("MISS", "node 'p' lacks seq 1")


def test_E114_an_input_that_is_behind_is_not_hopeless():
    """There is more for it than was fed."""
    leaves = [K("p", 0, *(f"n{n}" for n in range(9))), *(F(f"n{n}", 0, str(n)) for n in range(9))]
    c = Conversation(relay, models=RELAYS, window=2).send(A("relay", {"x": "p"}, {"y": "r"}), *leaves).half_close()
    assert c.is_ok
    assert c.texts("r") == ["012345678"]


def test_E005_the_half_close_ends_at_once_when_all_has_finished():
    """With one status."""
    c = Conversation(upper).send(UPPER, F("p", 0, "hi"))
    assert c.is_open
    assert c.half_close().steps[-1] == Close(None)


def test_E032_nodes_that_lack_something_are_no_error_where_nobody_waits():
    """Even beside an action that runs to its end."""
    c = Conversation(upper).send(UPPER, F("p", 0, "hi"), F("q", 3, "x"), K("w", 0, "never")).half_close()
    assert c.is_ok


def test_E114_partial_failures_end_only_those_that_are_hopeless():
    """Each with its status; who reads them fails as well, and the session is OK."""
    c = Conversation(relay, models=RELAYS, extensions="partial-failures")
    c.send(
        A("relay", {"x": "p"}, {"y": "r", "__status__": "s"}), A("relay", {"x": "r"}, {"y": "r2", "__status__": "s2"})
    )
    c.half_close()
    assert c.is_ok
    assert b"node 'p' never came, and action 'relay' #1" in c.sent.flatten("s")[0].data
    assert b"node 'r' is an output of action 'relay' #1, which failed" in c.sent.flatten("s2")[0].data
