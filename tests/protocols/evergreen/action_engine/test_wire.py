"""`invoker.protocols.evergreen.action_engine.wire`: what peers have written is read, and written byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.protocols.evergreen.action_engine.box import WireError, boxed
from invoker.protocols.evergreen.action_engine.wire import (
    BYTES,
    END,
    HALF_CLOSE,
    STATUS,
    Action,
    Chunk,
    Fragment,
    Metadata,
    NodeRef,
    WireMessage,
    decode,
    encode,
)
from tests.protocols.evergreen.action_engine.recordings import CONVERSATIONS, LAYOUTS, conversation

TEXT = Metadata("text/plain")


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_the_peers_are_written_byte_for_byte(name: str) -> None:
    """What was read says all that was there."""
    message = decode(LAYOUTS[name])
    assert encode(message.fragments, message.actions, message.headers) == LAYOUTS[name]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversations_of_the_peers_are_written_byte_for_byte(name: str) -> None:
    """Both sides of each."""
    said = conversation(name)
    assert said
    for _, packed in said:
        message = decode(packed)
        assert encode(message.fragments, message.actions, message.headers) == packed


def test_the_fields_are_where_they_belong() -> None:
    """One message with everything."""
    fragment = Fragment("n", Chunk(b"hi", metadata=TEXT))
    headers = {"hk": "hv"}
    action = Action("ID", "act", (("x", "ID#x"), ("z", "ID#z")), (("y", "ID#y"),), headers)
    assert decode(LAYOUTS["headers"]) == WireMessage((fragment,), (action,), {"wk": "w\udcff"})


def test_fragments_say_their_place_and_whether_more_follow() -> None:
    """Also when the place is left open."""
    (found,) = decode(LAYOUTS["fragment"]).fragments
    assert (found.seq, found.continued, found.is_last) == (3, True, False)
    (bare,) = decode(LAYOUTS["bare-chunk-no-seq"]).fragments
    assert (bare.seq, bare.content, bare.is_end, bare.is_last) == (None, Chunk(), True, True)


def test_references_to_nodes_are_read() -> None:
    """With and without a length."""
    assert decode(LAYOUTS["node-ref"]).fragments[0].content == NodeRef("x", 2, 7)
    assert decode(LAYOUTS["node-ref-open"]).fragments[0].content == NodeRef("x", 2)


def test_metadata_have_a_time_and_attributes() -> None:
    """Microseconds; values of attributes may be any bytes."""
    (timed,) = decode(LAYOUTS["timestamp"]).fragments
    assert timed.content == Chunk(b"hi", metadata=Metadata("text/plain", 1767323045678901))
    (told,) = decode(LAYOUTS["attributes-and-ref"]).fragments
    assert told.content == Chunk(ref="u://r", metadata=Metadata("text/plain", None, {"k": "v\udcff"}))


def test_an_empty_message_is_the_half_close() -> None:
    """As the peers write it."""
    assert LAYOUTS["empty"] == HALF_CLOSE
    assert decode(HALF_CLOSE) == WireMessage()


def test_a_time_may_be_a_box_with_nil() -> None:
    """As the peers' JavaScript writes it."""
    plain = encode([Fragment("n", Chunk(b"hi", metadata=TEXT))])
    chunk = boxed(boxed(b"hi") + b"\xa0" + boxed(b"\xaatext/plain" + boxed(b"\xc0") + b"\x00"))
    message = boxed(b"\x91" + boxed(b"\x00" + chunk + b"\xc2\xa1n\x00") + b"\x90\x00")
    assert message != plain
    assert decode(message) == decode(plain)


def test_messages_without_headers_are_read() -> None:
    """They were so before 0.4."""
    action = boxed(b"\xa1i\xa3act\x90\x90")
    assert decode(boxed(b"\x90\x91" + action)).actions == (Action("i", "act"),)


def test_fields_that_later_versions_append_are_passed_over() -> None:
    """In every box but around the message."""
    action = boxed(b"\xa1i\xa3act\x90\x90\x00\xc3\xc3")
    assert decode(boxed(b"\x90\x91" + action + b"\x00\xc3")).actions == (Action("i", "act"),)
    with pytest.raises(WireError, match="bytes follow the message"):
        decode(HALF_CLOSE + b"\x00")


@pytest.mark.parametrize(
    ("chunk", "is_null"),
    [
        (END, True),
        (Chunk(), True),
        (Chunk(metadata=TEXT), False),
        (Chunk(b"x", metadata=Metadata(BYTES)), False),
        (Chunk(ref="r"), False),
        (Chunk(metadata=Metadata(STATUS)), False),
    ],
)
def test_a_null_chunk_is_empty_bytes(chunk: Chunk, is_null: bool) -> None:
    """Without data, reference, and any other media type."""
    assert chunk.is_null is is_null


def test_fragments_are_of_two_kinds() -> None:
    """Others are refused."""
    with pytest.raises(WireError, match="kind 2"):
        decode(boxed(b"\x91" + boxed(b"\x02\xc4\x00\xc2\xa1n\x00") + b"\x90\x00"))


@given(st.binary(max_size=200))
def test_garbage_is_refused(data: bytes) -> None:
    """Nothing but WireError comes of it."""
    try:
        message = decode(data)
    except WireError:
        return
    assert isinstance(message, WireMessage)


@given(st.sampled_from([*LAYOUTS.values()]), st.data())
def test_damaged_messages_are_refused_or_read(packed: bytes, data: st.DataObject) -> None:
    """Bytes changed, taken away or put in: nothing but WireError comes of it."""
    at = data.draw(st.integers(0, len(packed) - 1))
    damaged = packed[:at] + data.draw(st.binary(max_size=3)) + packed[at + data.draw(st.integers(0, 3)) :]
    try:
        message = decode(damaged)
    except WireError:
        return
    again = decode(encode(message.fragments, message.actions, message.headers))
    assert again == message
