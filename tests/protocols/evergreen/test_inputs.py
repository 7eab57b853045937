"""`Input`: how leaves reach a function (E-044, E-045, E-049, E-092 to E-095), and how far ahead of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest
from google.protobuf import any_pb2, timestamp_pb2

from invoker.author.spec import StreamSpec, Take
from invoker.core.steps import EndInput, Feed
from invoker.errors import UnsupportedMediaType
from invoker.message import Message
from invoker.protocols.evergreen.inputs import pieces_of
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import (
    add,
    blobs,
    join,
    messages,
    objects,
    raw,
    relay,
    several,
    sink,
    topk,
    upper,
)
from tests.protocols.evergreen.models import each, idle
from tests.protocols.evergreen.notation import END_OF_TURN, JSON, A, F, K

UPPER = A("upper", {"x": "p"}, {"y": "r"})
ADD = A("add", {"a": "p", "b": "q"}, {"y": "r"})


def number(name, value):
    return F(name, 0, str(value), type=JSON)


def test_E092_a_streaming_function_is_one_invocation_with_an_item_a_leaf():
    """Three leaves are three messages of one input, which then ends."""
    c = Conversation(objects).send(A("objects", {"x": "p"}, {"y": "r"}), K("p", 0, "a", "b", "c"))
    c.send(*(F(name, 0, "{}", type=JSON) for name in "abc"))
    assert list(c.invocations) == ["a1"]
    assert c.invocations["a1"].payloads() == [b"{}"] * 3
    assert c.steps[-1] == EndInput("a1", 0)


def test_E093_a_plain_function_is_mapped_over_its_leaves():
    """Results come in the order of the leaves."""
    c = Conversation(upper).send(UPPER, K("p", 0, "a", "b", "c"), *(F(name, 0, name) for name in "cba")).half_close()
    assert c.texts("r") == ["A", "B", "C"]


def test_E094_a_plain_function_of_several_parameters_takes_one_leaf_each():
    """A root may be the leaf, or hold just one."""
    c = Conversation(add).send(ADD, number("p", 2), K("q", 0, "b"), number("b", 3)).half_close()
    assert c.texts("r") == ["5"]


PARTS = [ADD, number("p", 1), K("q", 0, "a", "b"), number("a", 2), number("b", 3)]


@pytest.mark.parametrize("parts", [PARTS, PARTS[::-1], PARTS[1:] + PARTS[:1], PARTS[2:] + PARTS[:2]])
def test_E094_two_leaves_for_one_parameter_abort(parts):
    """The text names action, input and count; the order of arrival does not matter, nor does a half-close."""
    c = Conversation(add).send_each(*parts).half_close()
    c.fails("BAD", r"action 'add' #1, input 'b': expected 1 chunk, got 2")
    assert c.sent.fragments == []


def test_E094_a_leaf_that_may_have_followers_is_not_enough():
    """The function is not called before it is sure that its value is the only one (E-090)."""
    c = Conversation(add).send(ADD, number("p", 1), K("q", 0, "a", more=True), number("a", 2))
    assert c.sent.fragments == []
    c.send(K("q", 1, "b"), number("b", 3)).half_close()
    c.fails("BAD", "input 'b': expected 1 chunk, got 2")


def test_E094_no_leaf_for_a_parameter_aborts():
    """An empty node is not a value."""
    c = Conversation(add).send(ADD, number("p", 1), F("q")).half_close()
    c.fails("BAD", "action 'add' #1, input 'b': expected 1 chunk, got 0")


SPELL = A("spell", {"prompt": "p", "times": "q"}, {"out": "r"})


def spell(prompt: str, times: int = 1) -> Iterator[str]:
    yield from prompt * times


def test_E094_R168_a_value_of_a_streaming_function_is_one_leaf():
    """Several leaves are refused with their count, before the function is called; so are those of an option."""
    c = Conversation(spell).send(SPELL, F("p", 0, "ab"), number("q", 2)).half_close()
    assert (c.invocations["a1"].payloads(0), c.invocations["a1"].payloads(1)) == ([b"ab"], [b"2"])
    c = (
        Conversation(spell)
        .send(SPELL, K("p", 0, "a", "b"), F("a", 0, "x"), F("b", 0, "y"), number("q", 2))
        .half_close()
    )
    c.fails("BAD", "action 'spell' #1, input 'prompt': expected 1 chunk, got 2")
    assert c.sent.fragments == []
    c = (
        Conversation(spell)
        .send(SPELL, F("p", 0, "ab"), K("q", 0, "a", "b"), number("a", 2), number("b", 3))
        .half_close()
    )
    c.fails("BAD", "action 'spell' #1, input 'times': expected 1 chunk, got 2")


def test_E094_markers_do_not_count():
    """A prompt that ends its turn is one value."""
    c = Conversation(add).send(ADD, number("p", 1), K("q", 0, "a", "e"), number("a", 2), F("e", 0, type=END_OF_TURN))
    assert c.half_close().is_ok
    assert c.texts("r") == ["3"]


def test_E094_a_function_of_any_number_of_inputs_is_called_once():
    """Two of them are two parameters; names sort the further ones."""
    c = Conversation(several).send(A("several", {"b": "q", "a": "p"}, {"y": "r"}), F("p", 0, "1"), F("q", 0, "2"))
    assert c.half_close().is_ok
    assert c.texts("r") == ["12"]


def test_E095_text_comes_as_its_fragments_come():
    """The first piece reaches the function before the last fragment is sent."""
    c = Conversation(relay, models={"relay": each(str.upper)}).send(A("relay", {"x": "p"}, {"y": "r"}))
    c.send(F("p", 0, "first", more=True))
    assert c.sent.shape("r") == [(0, b"FIRST", True)]
    c.send(F("p", 1, "日".encode()[:1], more=True))
    assert len(c.sent.fragments) == 1
    c.send(F("p", 2, "日".encode()[1:]))
    assert c.sent.shape("r") == [(0, b"FIRST", True), (1, "日".encode(), True), (2, b"", False)]


def test_E095_bytes_come_as_their_fragments_come():
    """Whatever their type says, and cut anywhere."""
    c = Conversation(blobs).send(A("blobs", {"x": "p"}, {"y": "r"}), F("p", 0, b"\xe6", type="image/png", more=True))
    assert c.invocations["a1"].payloads() == [b"\xe6"]


def test_E095_pieces_carry_the_type_and_headers_of_their_leaf():
    """Those of seq 0."""
    c = Conversation(relay).send(A("relay", {"x": "p"}, {"y": "r"}), F("p", 0, "a", role="user", more=True))
    c.send(F("p", 1, "b"))
    assert [(one.media_type, dict(one.headers)) for one in c.invocations["a1"].fed[0]] == [
        ("text/plain", {"role": "user"})
    ] * 2


@pytest.mark.parametrize("media_type", ["text/plain; charset=utf-16", "application/json", "image/png"])
def test_E095_what_is_no_utf8_text_comes_whole(media_type):
    """A decoder of a whole leaf cannot go on from piece to piece."""
    c = Conversation(relay).send(A("relay", {"x": "p"}, {"y": "r"}), F("p", 0, b"ab", type=media_type, more=True))
    assert c.invocations["a1"].payloads() == []
    c.send(F("p", 1, b"c"))
    assert c.invocations["a1"].payloads() == [b"abc"]


@pytest.mark.parametrize(
    ("spec", "is_streaming", "pieces"),
    [
        (StreamSpec("x", str), True, "text"),
        (StreamSpec("x", bytes), True, "bytes"),
        (StreamSpec("x", bytearray), True, "bytes"),
        (StreamSpec("x", str), False, ""),
        (StreamSpec("x", str, single=True), True, ""),
        (StreamSpec("x", str, take=Take.MESSAGE), True, ""),
        (StreamSpec("x", dict), True, ""),
        (StreamSpec("x", Any), True, ""),
    ],
)
def test_E095_only_annotated_streams_of_text_and_bytes_take_pieces(spec, is_streaming, pieces):
    """Others get whole leaves."""
    assert pieces_of(spec, is_streaming=is_streaming) == pieces


def test_E095_a_single_value_beside_a_stream_comes_whole():
    """Its parameter is no iterator."""
    c = Conversation(topk).send(A("topk", {"x": "p", "k": "q"}, {"y": "r"}), F("q", 0, "1", type=JSON, more=True))
    c.send(F("p", 0, "a", more=True))
    assert c.invocations["a1"].payloads(0) == [b"a"]
    assert c.invocations["a1"].payloads(1) == []
    c.send(F("q", 1, "2"))
    assert c.invocations["a1"].payloads(1) == [b"12"]


def test_E049_a_marker_is_skipped_for_payload_parameters():
    """A prompt of text and a marker calls the function once with the text (ET-08)."""
    parts = [UPPER, K("p", 0, "a", "e"), F("a", 0, "hi"), F("e", 0, type=END_OF_TURN)]
    for order in permutations(parts):
        c = Conversation(upper).send_each(*order).half_close()
        assert c.is_ok
        assert c.texts("r") == ["HI"]


@pytest.mark.parametrize("media_type", [END_OF_TURN, "application/x-protobuf;type=EndOfTurn", END_OF_TURN + "; v=1"])
def test_E049_a_marker_is_visible_in_message_form(media_type):
    """The function sees two messages."""
    c = Conversation(messages).send(A("messages", {"x": "p"}, {"y": "r"}), K("p", 0, "a", "e"), F("a", 0, "hi"))
    c.send(F("e", 0, b"\x08\x01", type=media_type))
    assert [one.media_type for one in c.invocations["a1"].fed[0]] == ["text/plain", media_type]


def test_E049_other_messages_of_protobuf_are_no_markers():
    """They are leaves as any other."""
    c = Conversation(raw).send(
        A("raw", {"x": "p"}, {"y": "r"}), F("p", 0, b"ab", type="application/x-protobuf; type=X")
    )
    assert c.sent.flatten("r")[0].data == b"ba"


def test_E044_metadata_of_a_leaf_are_headers_of_its_message():
    """Role, name of the file, time of capture and what is experimental."""
    packed = any_pb2.Any(type_url="t/x", value=b"1")
    c = Conversation(messages).send(A("messages", {"x": "p"}, {"y": "r"}))
    c.send(
        F("p", 0, "x", role="user", original_file_name="a.txt", capture_time=timestamp_pb2.Timestamp(seconds=1),
          experimental=[packed, packed])
    )  # fmt: skip
    (message,) = c.invocations["a1"].fed[0]
    assert dict(message.headers) == {
        "role": "user",
        "original-file-name": "a.txt",
        "capture-time": "1970-01-01T00:00:01Z",
        "experimental": "CgN0L3gSATE=,CgN0L3gSATE=",
    }


def test_E045_the_time_of_capture_orders_nothing():
    """Leaves come depth first, whatever their clocks said."""
    c = Conversation(upper).send(UPPER, K("p", 0, "a", "b"))
    for name, seconds in (("b", 1), ("a", 9)):
        c.send(F(name, 0, name, capture_time=timestamp_pb2.Timestamp(seconds=seconds)))
    assert c.texts("r") == ["A", "B"]


@pytest.mark.parametrize(("data", "media_type"), [(b"\xff\xfe", "text/plain"), (b"{", JSON), (b"NaN x", JSON)])
def test_E048_a_payload_that_cannot_be_decoded_aborts(data, media_type):
    """INVALID_ARGUMENT, unlike riff; the text names the action and the input (ET-30)."""
    c = Conversation(upper).send(UPPER, F("p", 0, data, type=media_type))
    c.fails("BAD", "action 'upper' #1: input 'x'")


def test_E047_a_type_that_the_parameter_does_not_take_aborts():
    """Nobody but a function of bytes or of anything gets it raw (ET-71)."""
    c = Conversation(sink).send(A("sink", {"x": "p"}), F("p", 0, b"\x89", type="image/png"))
    c.finish("a1", UnsupportedMediaType("input 'x' got image/png")).fails(
        "BAD", "action 'sink' #1: input 'x' got image/png"
    )
    c = Conversation(raw).send(A("raw", {"x": "p"}, {"y": "r"}), F("p", 0, b"\x89P", type="image/png"))
    assert c.sent.flatten("r")[0].data == b"P\x89"


def test_E043_leaves_of_one_node_may_differ_in_type():
    """A mixed list reaches the function with the type of each leaf."""
    c = Conversation(messages).send(A("messages", {"x": "p"}, {"y": "r"}), K("p", 0, "a", "b"))
    c.send(F("a", 0, b"\x89", type="image/png"), F("b", 0, "hi"))
    assert [one.media_type for one in c.invocations["a1"].fed[0]] == ["image/png", "text/plain"]


def test_E079_one_node_may_be_two_inputs():
    """Both streams get its content."""
    c = Conversation(join).send(
        A("join", {"x": "p", "y": "p"}, {"out": "r"}), F("p", 0, "a", more=True), F("p", 1, "b")
    )
    assert c.invocations["a1"].payloads(0) == c.invocations["a1"].payloads(1) == [b"a", b"b"]


def test_inputs_end_one_by_one():
    """Each when its own root is exhausted."""
    c = Conversation(join).send(A("join", {"x": "p", "y": "q"}, {"out": "r"}), F("q", 0, "b"))
    assert c.invocations["a1"].ended == {1}
    c.send(F("p", 0, "a"))
    assert c.invocations["a1"].ended == {0, 1}


def many(count):
    return [K("p", 0, *(f"n{n}" for n in range(count))), *(F(f"n{n}", 0, str(n)) for n in range(count))]


def test_E110_an_input_is_fed_a_window_ahead_of_its_function():
    """The rest stays in the session until the function has taken most of it."""
    c = Conversation(sink, window=4).send(A("sink", {"x": "p"}), *many(10))
    one = c.invocations["a1"]
    assert (len(one.fed[0]), c.session.stalled) == (4, {("a1", 0)})
    c.wants("a1")
    assert (len(one.fed[0]), c.session.stalled) == (8, {("a1", 0)})
    c.wants("a1")
    assert (len(one.fed[0]), c.session.stalled, one.ended) == (10, set(), {0})


def test_E110_a_wish_for_more_where_all_was_fed_changes_nothing():
    """Nor does one for an input or an invocation that is not there."""
    c = Conversation(sink, window=4).send(A("sink", {"x": "p"}), *many(3))
    before = len(c.steps)
    c.wants("a1").wants("a1", 7)
    c.finish("a1")
    assert c.is_open
    assert not c.session.running
    assert len(c.steps) == before


def test_E110_a_stalled_input_is_forgotten_when_its_action_ends():
    """The driver is not asked to look after it."""
    c = Conversation(sink, window=2).send(A("sink", {"x": "p"}), *many(5)).finish("a1")
    assert c.session.stalled == set()


def test_a_window_of_one_still_feeds_all():
    """In order, one by one."""
    c = Conversation(relay, models={"relay": each(str)}, window=1).send(A("relay", {"x": "p"}, {"y": "r"}), *many(20))
    assert c.texts("r") == ["".join(map(str, range(20)))]


def test_a_reader_to_the_end_gives_nothing():
    """An input that is read for its own sake."""
    c = Conversation(sink, models={"sink": idle}, window=3).send(A("sink", {"x": "p"}), *many(10)).half_close()
    assert c.is_ok
    assert [type(step) for step in c.steps].count(Feed) == 10


def test_E042_a_message_of_a_function_of_messages_is_whole():
    """An iterator of messages takes leaves, not pieces."""

    def whole(x: Iterator[Message[str]]) -> None: ...

    c = Conversation(whole).send(A("whole", {"x": "p"}), F("p", 0, "a", more=True))
    assert c.invocations["a1"].payloads() == []
    c.send(F("p", 1, "b"))
    assert c.invocations["a1"].payloads() == [b"ab"]
