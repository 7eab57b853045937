"""`invoker.protocols.web.formats`: which stream is meant, and what each item looks like in it."""

from __future__ import annotations

import base64
import json
from email.parser import BytesParser
from email.policy import HTTP

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import EncodeError
from invoker.message import Headers, Message
from invoker.protocols.web.formats import EVENTS, LINES, MIXED, accepted, as_json, format_of

JSON = "application/json"
PROBLEM = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": "no", "code": "INVALID_ARGUMENT"}


@pytest.mark.parametrize(
    ("accept", "is_several", "kind"),
    [
        ("text/event-stream", False, EVENTS),
        ("Text/Event-Stream; charset=utf-8", True, EVENTS),
        ("application/x-ndjson", False, LINES),
        ("application/ndjson, */*;q=0.1", False, LINES),
        ("application/jsonl", False, LINES),
        ("multipart/mixed", False, MIXED),
        ("application/json, text/event-stream", True, EVENTS),
        ("application/json, text/event-stream", False, None),
        ("application/json;q=0.5, text/event-stream", False, EVENTS),
        ("text/event-stream;q=0.2, multipart/mixed;q=0.9", True, MIXED),
        ("text/event-stream;q=0", True, None),
        ("*/*", True, None),
        ("text/*", True, None),
        ("application/*, multipart/*", True, None),
        ("", True, None),
        ("!!", True, None),
    ],
)
def test_H006_a_stream_is_asked_for_by_name(accept: str, is_several: bool, kind: str | None) -> None:
    """A wildcard never does it; beside other types it counts if it comes first, or if there may be several values."""
    found = accepted(accept, is_several=is_several)
    assert (None if found is None else found[0]) == kind


@pytest.mark.parametrize(
    ("accept", "items"),
    [
        ("text/event-stream", "application/json, */*;q=0.1"),
        ("text/event-stream, text/plain", "text/plain, application/json;q=0.9, */*;q=0.1"),
        ("multipart/mixed", "*/*"),
        ("multipart/mixed, image/png;q=0.5, text/plain", "text/plain;q=1, image/png;q=0.5"),
    ],
)
def test_H006_the_rest_of_the_list_is_for_the_items(accept: str, items: str) -> None:
    """In streams that are made of JSON it only says whether text comes as such."""
    found = accepted(accept, is_several=True)
    assert found is not None
    assert found[1] == items


def test_H008_a_value_is_json_on_one_line() -> None:
    """What is no JSON is packed with its media type."""
    assert as_json(Message(b"[1, 2]", Headers(), JSON)) == b"[1, 2]"
    assert as_json(Message(b'{\n "a": 1\n}', Headers(), JSON)) == b'{"a":1}'
    assert as_json(Message(b'{"a":\n1}', Headers(), "application/ld+json")) == b'{"a":1}'
    packed = json.loads(as_json(Message(b"\x89PNG", Headers(), "image/png")))
    assert packed == {"contentType": "image/png", "base64": base64.b64encode(b"\x89PNG").decode()}
    with pytest.raises(EncodeError, match="is not JSON"):
        as_json(Message(b'{"a":\n', Headers(), "application/ld+json"))


def test_H008_events_are_numbered_and_named_where_there_are_several_outputs() -> None:
    """So that EventSource finds its place, and a page its output."""
    one, two = format_of(EVENTS, ("out",)), format_of(EVENTS, ("even", "odd"))
    assert one.item(0, Message(b"4", Headers(), JSON)) == b"id: 1\ndata: 4\n\n"
    assert one.item(0, Message(b"9", Headers(), JSON)) == b"id: 2\ndata: 9\n\n"
    assert two.item(1, Message(b"3", Headers(), JSON)) == b"event: odd\nid: 1\ndata: 3\n\n"
    assert one.end() == b"event: end\ndata: {}\n\n"
    assert one.error(PROBLEM) == b"event: error\ndata: " + msgspec.json.encode(PROBLEM) + b"\n\n"
    assert one.heartbeat == b":\n\n"


@given(st.text())
def test_H008_text_in_events_keeps_its_lines(text: str) -> None:
    """A reader joins the lines of an event by LF, whatever ended them."""
    event = format_of(EVENTS, ("out",)).item(0, Message(text.encode(), Headers(), "text/plain")).decode()
    lines = event.removesuffix("\n\n").split("\n")
    assert lines[0] == "id: 1"
    read = "\n".join(line.removeprefix("data: ") for line in lines[1:])
    assert read == text.replace("\r\n", "\n").replace("\r", "\n")


def test_H008_lines_name_their_output_where_there_are_several() -> None:
    """Each is one value of JSON; there is nothing at the end."""
    one, two = format_of(LINES, ("out",)), format_of(LINES, ("even", 'o"d'))
    assert one.item(0, Message(b"4", Headers(), JSON)) == b"4\n"
    assert one.item(0, Message(b"a\nb", Headers(), "text/plain")) == b'"a\\nb"\n'
    assert json.loads(two.item(1, Message(b"3", Headers(), JSON))) == {'o"d': 3}
    assert (one.end(), one.heartbeat) == (b"", b"")
    assert json.loads(one.error(PROBLEM)) == {"error": PROBLEM}


def test_H008_parts_have_their_own_types_and_headers() -> None:
    """And are closed at once by the next delimiter, which the standard library reads as well."""
    made = format_of(MIXED, ("thumb", 'a"b\n'))
    parts = [
        made.item(0, Message(b"\r\n--x\r\n", Headers({"X-Size": "3"}), "image/png")),
        made.item(1, Message(b"", Headers(), "")),
        made.error(PROBLEM),
    ]
    boundary = made.headers[0][1].partition("boundary=")[2].encode()
    assert parts[0].endswith(b"\r\n--" + boundary)
    head = f"Content-Type: {made.headers[0][1]}\r\n\r\n".encode()
    read = BytesParser(policy=HTTP).parsebytes(head + b"".join(parts))
    first, second, last = read.iter_parts()
    assert first.get_payload(decode=True) == b"\r\n--x\r\n"
    assert (first["content-type"], first["x-size"], first["content-length"]) == ("image/png", "3", "7")
    assert first["content-disposition"].params["name"] == "thumb"
    assert second["content-disposition"].params["name"] == "a%22b%0A"
    assert last.get_content_type() == "application/problem+json"
    assert b"".join(parts).endswith(b"--" + boundary + b"--\r\n")


@pytest.mark.parametrize("name", ["%22", "a%0Ab", 'a%0D"'])
def test_H008_a_name_that_would_be_read_as_another_one_is_refused(name: str) -> None:
    """Of a part, as of a form that is written; a sign that is escaped and a percent sign alone are not."""
    with pytest.raises(
        EncodeError, match="cannot name a part of multipart/mixed: %22, %0D, %0A stand for other characters"
    ):
        format_of(MIXED, (name, "out")).item(0, Message(b"", Headers(), "text/plain"))
    for fine in ("100%", "%20", 'a"b', "a\nb"):
        format_of(MIXED, (fine, "out")).item(0, Message(b"", Headers(), "text/plain"))


def test_H008_parts_of_nothing_are_closed() -> None:
    """An answer without items is well-formed."""
    made = format_of(MIXED, ("out",))
    boundary = made.headers[0][1].partition("boundary=")[2].encode()
    assert made.end() == b"--" + boundary + b"--\r\n"


def test_headers_of_a_part_cannot_begin_another_part() -> None:
    """R-152: a CR or LF in one is refused."""
    with pytest.raises(EncodeError, match="control"):
        format_of(MIXED, ("out",)).item(0, Message(b"", Headers({"X-A": "a\r\n\r\nb"}), "text/plain"))
