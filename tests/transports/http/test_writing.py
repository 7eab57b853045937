"""`invoker.transports.http.writing`: the bytes of responses."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

import h11
import pytest

from invoker.core.http import Response
from invoker.transports.http import writing
from invoker.transports.http.writing import PIECE_BYTES, fields_of, parts_of, response_bytes

OK = Response(200, (("Content-Type", "text/plain"),), b"ok\n")


def parsed(data: bytes, method: str = "GET") -> tuple[h11.Response, bytes]:
    """As a client reads it, to its end."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("Host", "localhost")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    response, body = client.next_event(), b""
    assert isinstance(response, h11.Response)
    while isinstance(event := client.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert client.trailing_data[0] == b""
    return response, body


def test_a_response() -> None:
    """Its status with its phrase, its headers, what is always added, its length, the date."""
    response, body = parsed(response_bytes(OK))
    assert (response.status_code, response.reason, body) == (200, b"OK", b"ok\n")
    headers = dict(response.headers)
    assert abs(parsedate_to_datetime(headers.pop(b"date").decode()).timestamp() - time.time()) < 5
    text = b"text/plain; charset=utf-8"
    assert headers == {b"content-type": text, b"x-content-type-options": b"nosniff", b"content-length": b"3"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("text/plain", b"text/plain; charset=utf-8"),
        ("text/plain; charset=latin-1", b"text/plain; charset=latin-1"),
        ("text/plain; version=0.0.4", b"text/plain; version=0.0.4"),
        ("application/json", b"application/json"),
    ],
)
def test_H206_text_says_that_it_is_utf_8(said: str, told: bytes) -> None:
    """Where it says nothing else; other types are as they were given."""
    assert dict(fields_of([("Content-Type", said)], ()))[b"content-type"] == told
    assert fields_of([("X-Said", "text/plain")], ()) == [(b"x-said", b"text/plain")]


@pytest.mark.parametrize(("response", "close"), [(OK, True), (Response(200, (), b"", close=True), False)])
def test_an_end_of_the_connection_is_said(response: Response, close: bool) -> None:
    """Whoever wants it."""
    assert (b"connection", b"close") in parsed(response_bytes(response, close=close))[0].headers
    assert b"connection" not in response_bytes(OK)


@pytest.mark.parametrize("status", [204, 304])
def test_responses_without_a_body_say_no_length(status: int) -> None:
    """RFC 9110, 8.6."""
    data = response_bytes(Response(status, (), b"ignored"))
    assert data.endswith(b"\r\n\r\n")
    assert b"content-length" not in data


def test_a_head_is_answered_without_the_body() -> None:
    """The length is that which a GET would have."""
    response, body = parsed(response_bytes(OK, is_head=True), "HEAD")
    assert (dict(response.headers)[b"content-length"], body) == (b"3", b"")


def test_pieces_are_a_part_of_the_body() -> None:
    """And of its length."""
    response = Response(200, (), b"a", (bytearray(b"bc"), memoryview(b"def")))
    assert parsed(response_bytes(response))[1] == b"abcdef"
    assert b"".join(parts_of(response)) == b"abcdef"
    large = Response(200, (), b"a", (bytes(3 * PIECE_BYTES + 1), b"b", b"c"))
    parts = list(parts_of(large))
    assert b"".join(parts) == b"a" + bytes(3 * PIECE_BYTES + 1) + b"bc"
    assert max(map(len, parts)) == PIECE_BYTES


def test_ours_replace_those_of_the_function() -> None:
    """But `Vary` may come twice."""
    given = Response(200, (("x-content-type-options", "none"), ("Vary", "Accept")), b"")
    lines = response_bytes(given, headers=(("Vary", "Origin"),)).split(b"\r\n")
    assert lines[1:4] == [b"vary: Accept", b"vary: Origin", b"x-content-type-options: nosniff"]


def test_a_status_without_a_phrase_is_written_nevertheless() -> None:
    """The blank behind the number stays (RFC 9112, 4)."""
    assert response_bytes(Response(599, (), b"")).startswith(b"HTTP/1.1 599 \r\n")


def test_few_heads_are_kept_and_only_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What functions and peers choose does not fill the memory."""
    monkeypatch.setattr(writing, "_lines", {})
    for number in range(3 * writing._KEPT):
        assert b"x: %d\r\n" % number in response_bytes(Response(200, (("X", f"{number}"),), b""))
    assert 0 < len(writing._lines) <= writing._KEPT
    long = Response(200, (("X", "x" * 1000),), b"")
    assert response_bytes(long) == response_bytes(long)
    assert (200, long.headers, ()) not in writing._lines


def test_the_date_moves_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the seconds."""
    monkeypatch.setattr("time.time", lambda: 0.5)
    assert b"date: Thu, 01 Jan 1970 00:00:00 GMT\r\n" in response_bytes(OK)
    monkeypatch.setattr("time.time", lambda: 61.0)
    assert b"date: Thu, 01 Jan 1970 00:01:01 GMT\r\n" in response_bytes(OK)


def test_the_fields_of_http_2_are_those_of_http_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its status comes first; no length where none is known, or where the status has none."""
    monkeypatch.setattr("time.time", lambda: 0.5)
    always = (b"x-content-type-options", b"nosniff")
    date = (b"date", b"Thu, 01 Jan 1970 00:00:00 GMT")
    own = (("X-A", "1"),)
    fields = writing.response_fields(200, own, 3, (("Vary", "Origin"),))
    length = (b"content-length", b"3")
    assert fields == [(b":status", b"200"), (b"x-a", b"1"), (b"vary", b"Origin"), always, length, date]
    assert writing.response_fields(200, own, None) == [(b":status", b"200"), (b"x-a", b"1"), always, date]
    assert writing.response_fields(204, (), 0) == [(b":status", b"204"), always, date]


def test_the_last_part_is_not_kept_while_the_client_takes_it() -> None:
    """What cuts the body holds no copy of it."""
    response = Response(200, (), bytes(100_000))
    parts = parts_of(response)
    assert len(next(parts)) == 100_000
    kept = [one for one in parts.gi_frame.f_locals.values() if isinstance(one, (bytes, bytearray, list))]
    assert [one for one in kept if one and one is not response.body] == []
