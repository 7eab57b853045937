"""`invoker.protocols.evergreen.action_engine.items`: chunks and messages of the house are each other's image."""

from __future__ import annotations

import pytest

from invoker.errors import Status, StatusError
from invoker.message import EMPTY, Message
from invoker.protocols.evergreen.action_engine.items import chunk_of, message_of, texts
from invoker.protocols.evergreen.action_engine.wire import BYTES, STATUS, Chunk, Metadata, NodeRef


def test_a_chunk_without_metadata_is_bytes() -> None:
    """Whatever it is."""
    assert message_of(Chunk(b"x")) == Message(b"x", EMPTY, BYTES)


def test_attributes_and_time_are_headers() -> None:
    """Both ways."""
    chunk = Chunk(b"x", metadata=Metadata("text/plain", 1767323045678901, {"role": "user"}))
    message = Message(b"x", {"role": "user", "capture-time": "2026-01-02T03:04:05.678901Z"}, "text/plain")
    assert message_of(chunk) == message
    assert chunk_of(message) == chunk


def test_a_time_that_no_calendar_has_is_left_out() -> None:
    """The item is what matters."""
    assert message_of(Chunk(b"x", metadata=Metadata("text/plain", 2**62))).headers == EMPTY


def test_a_header_that_is_no_time_stays_an_attribute() -> None:
    """A function may call it what it likes; a time without a zone is taken for UTC."""
    told = chunk_of(Message(b"x", {"capture-time": "noon"}, "text/plain")).metadata
    assert told == Metadata("text/plain", None, {"capture-time": "noon"})
    assert chunk_of(Message(b"x", {"capture-time": "1970-01-01T00:00:01"})).metadata == Metadata(BYTES, 1_000_000)


@pytest.mark.parametrize(
    ("media_type", "told"),
    [
        ("", BYTES),
        ("text/plain; charset=utf-8", "text/plain"),
        ("text/plain;charset=UTF-8", "text/plain"),
        ("text/plain; charset=latin-1", "text/plain; charset=latin-1"),
        ("application/json", "application/json"),
    ],
)
def test_peers_know_no_parameter(media_type: str, told: str) -> None:
    """They compare media types as strings, so the charset that is the default anyway is not said."""
    assert chunk_of(Message(b"x", EMPTY, media_type)).media_type == told


@pytest.mark.parametrize(
    ("content", "status", "text"),
    [
        (NodeRef("n"), Status.UNIMPLEMENTED, "node 'n'"),
        (Chunk(ref="data:,x"), Status.UNIMPLEMENTED, "data elsewhere"),
        (Chunk(b"\x05gone", metadata=Metadata(STATUS)), Status.NOT_FOUND, "gone"),
        (Chunk(b"\x00", metadata=Metadata(STATUS)), Status.INVALID_ARGUMENT, "the status OK"),
    ],
)
def test_what_is_no_value_is_refused(content: Chunk | NodeRef, status: Status, text: str) -> None:
    """A failure upstream stays what it was."""
    with pytest.raises(StatusError, match=text) as met:
        message_of(content)
    assert met.value.status == status


def test_pairs_that_are_no_text_are_told_in_base64() -> None:
    """Under the name with `-bin`; a name that is no text cannot be told."""
    assert texts({"a": "b", "k": "w\udcff", "\udcff": "x", "": "y"}) == {"a": "b", "k-bin": "d/8="}


def test_a_media_type_that_is_no_text_can_be_told_in_an_error() -> None:
    """So that whoever refuses it can say so."""
    message_of(Chunk(b"x", metadata=Metadata("a\udcff"))).media_type.encode()
