"""`Writer`: several outputs, what is kept of them, and references among them (E-059, E-107 to E-109)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import FunctionError
from invoker.message import REFERENCE, Message
from tests.protocols.evergreen.conversation import Conversation, spec_of
from tests.protocols.evergreen.functions import (
    constant,
    either,
    messages,
    rows,
    split,
    ticks,
    upper,
)
from tests.protocols.evergreen.models import End, Give, each, source
from tests.protocols.evergreen.notation import A, F, K

TICKS = A("ticks", {}, {"y": "r"})
ROWS = A("rows", {}, {"y": "r"})
UPPER = A("upper", {"x": "p"}, {"y": "r"})


def ran(function, *values, **settings):
    """A source that gave these values and ended."""
    name = getattr(function, "__name__", "") or function.name
    return Conversation(function, models={name: source(*values)}, **settings).send(A(name, {}, {"y": "r"}))


# Several outputs.


def test_E109_outputs_interleave_and_keep_their_own_order():
    """Each is a node with seqs of its own; one may end while the other goes on."""
    body = [Give("L1", 0), Give("R1", 1), Give("L2", 0), End(0), Give("R2", 1)]
    c = Conversation(split, models={"split": lambda _: (yield from body)})
    c.send(A("split", {"x": "p"}, {"left": "r1", "right": "r2"}))
    assert [one.id for one in c.sent.fragments] == ["r1", "r2", "r1", "r1", "r2", "r2"]
    assert (c.texts("r1"), c.texts("r2")) == (["L1L2"], ["R1R2"])


def test_E130_values_after_the_end_of_an_output_are_not_sent():
    """The machinery refuses them; the session sends nothing after the final fragment."""
    c = Conversation(constant, split).send(A("split", {"x": "p"}, {"left": "r1", "right": "r2"}))
    c.emit("a1", "L", 0).finish("a1")
    c.emit("a1", "late", 0)
    assert c.texts("r1") == ["L"]
    assert c.is_open


# Retaining.


def test_E107_outputs_are_kept_for_later_actions():
    """Each shape is read as it was sent."""
    for function, values, model in ((ticks, ("a", "b"), upper), (rows, ({"k": 1}, {}), either)):
        c = Conversation(function, model, models={function.__name__: source(*values)})
        c.send(A(function.__name__, {}, {"y": "r"})).send(A(model.__name__, {"x": "r"}, {"y": "r2"}))
        assert [text.lower() for text in c.texts("r2")] == c.texts("r")


def test_E107_what_is_kept_counts_and_so_ends_an_endless_output():
    """At the session's limit (ET-76)."""

    def endless(_):
        while True:
            yield Give("x" * 100)

    c = Conversation(ticks, models={"ticks": endless}, session_bytes=5000).send(TICKS)
    c.fails("LIM", "node 'r': the session would hold")
    assert 20 < len(c.sent.of("r")) < 50


@pytest.mark.parametrize("function", [ticks, rows])
def test_E107_an_output_that_is_not_retained_holds_nothing(function):
    """However much it gives."""
    c = Conversation(spec_of(function, retain=False), session_bytes=100).send(A(function.__name__, {}, {"y": "r"}))
    for _ in range(100):
        c.emit("a1", "x" * 50 if function is ticks else {"k": "x" * 50})
    assert c.is_open
    assert c.session.graph.held == 0
    assert c.finish("a1").sent.is_complete("r")


@pytest.mark.parametrize("is_reader_first", [True, False])
@pytest.mark.parametrize("function", [ticks, rows])
def test_E108_reading_an_output_that_is_not_retained_aborts(is_reader_first, function):
    """Whether its reader came before or after, and below an interior node too."""
    for node in ("r", "parent"):
        producer = A(function.__name__, {}, {"y": "r"})
        parts = [producer, A("either", {"x": node}, {"y": "r2"})]
        c = Conversation(spec_of(function, retain=False), either).send(K("parent", 0, "r"))
        c.send_each(*(parts[::-1] if is_reader_first else parts))
        c.fails("MISS", f"node 'r' is an output of action '{function.__name__}' #., which does not retain it")


def test_E108_one_value_is_not_retained_either():
    """A plain function's output."""
    c = Conversation(spec_of(upper, retain=False), either).send(UPPER, F("p", 0, "x"))
    assert c.emit("a1", "X").finish("a1").texts("r") == ["X"]
    c.send(A("either", {"x": "r"}, {"y": "r2"})).fails("MISS", "does not retain")


# References.


def test_E059_a_reference_that_a_function_gives_is_sent_as_one():
    """Its header becomes the payload; later actions resolve it (E-056)."""
    linked = Message(b"", {REFERENCE: "data:,hi", "role": "model"}, "text/plain")
    c = Conversation(messages, upper, models={"messages": source(linked)})
    c.send(A("messages", {"x": "p"}, {"y": "r"}), A("upper", {"x": "r"}, {"y": "r2"}))
    (leaf,) = c.sent.flatten("r")
    assert (leaf.ref, leaf.data, leaf.metadata.role) == ("data:,hi", b"", "model")
    assert c.texts("r2") == ["HI"]


def test_E106_a_reference_that_is_no_unicode_fails():
    """As any result that is not serialisable."""
    c = Conversation(messages).send(A("messages", {"x": "p"}, {"y": "r"}))
    c.emit("a1", Message(b"", {REFERENCE: "data:,\ud800"}, "text/plain")).fails("FAIL", "action 'messages' #1")


def test_E059_a_reference_is_no_piece_of_a_leaf():
    """An output of text pieces cannot hold one."""
    ran(ticks, Message(b"", {REFERENCE: "data:,hi"}, "text/plain")).fails("FAIL", "sequence=True")


@given(st.lists(st.text(max_size=20), max_size=6), st.integers(1, 9))
def test_E098_any_texts_are_the_leaf_that_they_make(texts, size):
    """With fragments of any size, and as read by another action."""
    c = Conversation(ticks, upper, models={"ticks": source(*texts), "upper": each(str)}, fragment_bytes=size)
    c.send(A("upper", {"x": "r"}, {"y": "r2"}), TICKS).half_close()
    assert c.is_ok
    assert "".join(c.texts("r")) == "".join(c.texts("r2")) == "".join(texts)


def test_E112_a_failure_comes_after_what_was_given():
    """Three fragments, then the status (ET-60)."""
    c = ran(ticks, "a", "b", "c", FunctionError("ValueError: why"))
    assert [data for _, data, _ in c.sent.shape("r")] == [b"a", b"b", b"c"]
    c.fails("FAIL", "action 'ticks' #1: ValueError: why")


def test_E096_values_for_any_output_of_any_type_have_the_actions_id():
    """A mapped function's too."""

    def wide(x: Any) -> Iterator[Any]:
        yield x

    c = Conversation(wide, models={"wide": source(1)}).send(A("wide", {"x": "p"}, {"y": "日 r"}))
    assert c.texts("日 r") == ["1"]
