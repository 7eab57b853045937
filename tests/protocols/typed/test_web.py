"""Requests of Connect and gRPC-Web: frames of HTTP in, frames of HTTP out."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from gzip import compress
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker import function
from invoker.core.http import BodyChunk, RequestHead, Response, ResponseHead
from invoker.core.steps import Cancel, Close, Emitted, EndInput, Feed, Finished, Open, Send
from invoker.errors import DecodeError, FunctionError, Status
from invoker.message import EMPTY, Message
from invoker.protocols.typed.calls import calls_of
from invoker.protocols.typed.envelopes import COMPRESSED, END, TRAILERS, envelope
from invoker.protocols.typed.web import WebSession, timeout_of
from tests.protocols.typed.written import spec_of

A1 = b"\x08\x01"


@function(safe=True)
def add(a: int, b: int = 5) -> int: ...


def store(a: int) -> int: ...
def spell(word: str) -> Iterator[str]: ...
def total(xs: Iterator[int]) -> int: ...


def session_of(function, *, most_bytes: int = 1000) -> WebSession:
    """A request for it."""
    (call,) = calls_of([spec_of(function)])
    return WebSession(call, most_bytes=most_bytes)


def head(content_type: str = "", method: str = "POST", query: str = "", **headers: str) -> RequestHead:
    """The head of a request."""
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return RequestHead(method, "/x", query, headers=[("Content-Type", content_type)] * bool(content_type) + fields)


def begun(function, content_type: str, body: bytes, **headers: str):
    """A session that has got the whole request, and its steps."""
    session = session_of(function)
    steps = [*session.receive(head(content_type, **headers)), *session.receive(BodyChunk(body)), *session.half_close()]
    return session, steps


def fed(steps) -> list[bytes]:
    """What is given to inputs."""
    return [one.message.payload for one in steps if isinstance(one, Feed)]


def sent(steps) -> list:
    """What leaves."""
    return [one.frame for one in steps if isinstance(one, Send)]


def answered(session, *payloads: bytes, error=None) -> list:
    """What leaves when the function gives these, and ends."""
    steps = [one for each in payloads for one in session.deliver(emitted(each))]
    return sent([*steps, *session.deliver(Finished("typed", error))])


def emitted(payload: bytes) -> Emitted:
    """A value of the function."""
    return Emitted("typed", 0, Message(payload, EMPTY, "application/vnd.invoker.field"))


@pytest.mark.parametrize("content_type", ["application/proto", "Application/Proto ; x=y", "application/json"])
def test_H110_a_unary_request_is_the_message(content_type):
    """So is the response."""
    is_json = "json" in content_type
    session, steps = begun(add, content_type, b'{"a":1}' if is_json else A1)
    assert [type(one) for one in steps] == [Open, Feed, EndInput]
    assert fed(steps) == [b"1" if is_json else A1]
    essence = content_type.partition(" ")[0].lower()
    assert answered(session, b"out") == [Response(200, (("Content-Type", essence),), b"out")]


def test_H111_a_unary_error_is_a_status_and_json():
    """Whatever the form of the request is."""
    session, _ = begun(add, "application/proto", A1)
    (response,) = answered(session, error=DecodeError(" is odd"))
    assert (response.status, response.headers) == (400, (("Content-Type", "application/json"),))
    assert json.loads(response.body)["code"] == "invalid_argument"


@pytest.mark.parametrize("content_type", ["application/connect+proto", "application/connect+json"])
def test_H110_a_stream_has_envelopes(content_type):
    """Each message as it comes; the last one says how it ended."""
    bodies = [b'{"xs":1}', b"{}"] if "json" in content_type else [A1, b""]
    session, steps = begun(total, content_type, b"".join(envelope(one) for one in bodies))
    assert fed(steps) == ([b"1", b""] if "json" in content_type else bodies)
    assert answered(session, b"out") == [
        ResponseHead(200, (("Content-Type", content_type),)),
        BodyChunk(envelope(b"out")),
        BodyChunk(envelope(b"{}", END)),
    ]


def test_H110_responses_leave_as_they_are_given():
    """The head with the first one; an error comes after them."""
    session, _ = begun(spell, "application/connect+proto", envelope(b"\x0a\x02ab"))
    assert sent(session.deliver(emitted(b"a"))) == [
        ResponseHead(200, (("Content-Type", "application/connect+proto"),)), BodyChunk(envelope(b"a")),
    ]  # fmt: skip
    assert sent(session.deliver(emitted(b"b"))) == [BodyChunk(envelope(b"b"))]
    (last,) = sent(session.deliver(Finished("typed", FunctionError("no"))))
    assert last.payload[0] == END
    assert json.loads(last.payload[5:])["error"]["code"] == "unknown"
    assert session.is_told


def test_H111_an_error_before_the_first_message_of_a_stream_is_a_stream_too():
    """Its status is 200, as Connect wants it."""
    session, _ = begun(spell, "application/connect+json", envelope(b"{}"))
    (response,) = answered(session, error=FunctionError("no"))
    assert (response.status, response.headers) == (200, (("Content-Type", "application/connect+json"),))
    assert response.body[0] == END


@pytest.mark.parametrize("content_type", ["application/grpc-web", "application/grpc-web+proto"])
def test_H112_grpc_web_ends_with_trailers(content_type):
    """For every shape."""
    for one in (add, spell, total):
        session, steps = begun(one, content_type, envelope(A1))
        assert fed(steps) == [A1]
        *_, last = answered(session, b"out")
        assert last == BodyChunk(envelope(b"grpc-status: 0\r\n", TRAILERS))


def test_H112_grpc_web_text_is_base64_both_ways():
    """Each piece for itself."""
    session, steps = begun(add, "application/grpc-web-text+proto", b64encode(envelope(A1)))
    assert fed(steps) == [A1]
    _, message, last = answered(session, b"out")
    assert message == BodyChunk(b64encode(envelope(b"out")))
    assert last == BodyChunk(b64encode(envelope(b"grpc-status: 0\r\n", TRAILERS)))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("encoding=json&message=%7B%22a%22%3A1%7D&connect=v1", b"1"),
        ("encoding=json&base64=1&message=eyJhIjoxfQ", b"1"),
        ("encoding=proto&base64=1&message=CAE", A1),
        ("encoding=proto&message=%08%81%01", b"\x08\x81\x01"),
        ("encoding=json", b""),
    ],
)
def test_H113_a_safe_function_is_asked_by_get(query, found):
    """The message is in the query."""
    session = session_of(add)
    steps = [*session.receive(head(method="GET", query=query)), *session.half_close()]
    assert fed(steps) == [found]
    assert answered(session, b"out")[0].status == 200


@pytest.mark.parametrize("query", ["", "encoding=xml", "encoding=json&base64=1&message=a", "encoding=json&message=%7B"])
def test_H113_a_wrong_query_is_an_invalid_argument(query):
    """As JSON, with 400."""
    session = session_of(add)
    (response,) = sent([*session.receive(head(method="GET", query=query)), *session.half_close()])
    assert (response.status, json.loads(response.body)["code"]) == (400, "invalid_argument")


@pytest.mark.parametrize("function", [store, spell])
def test_H113_other_functions_are_not_asked_by_get(function):
    """A page or a cache could call them."""
    (response,) = sent(session_of(function).receive(head(method="GET", query="encoding=json&message=%7B%7D")))
    assert (response.status, response.headers[1]) == (405, ("Allow", "POST"))
    assert sent(session_of(add).receive(head(method="PUT")))[0].headers[1] == ("Allow", "GET, HEAD, POST")


@pytest.mark.parametrize(
    ("function", "content_type"),
    [
        (add, "text/plain"),
        (add, ""),
        (add, "application/grpc"),
        (add, "application/connect+json"),
        (spell, "application/json"),
    ],
)
def test_H110_another_content_type_is_415(function, content_type):
    """The header says which are taken."""
    (response,) = sent(session_of(function).receive(head(content_type)))
    assert response.status == 415
    assert response.headers[1][0] == "Accept-Post"


@pytest.mark.parametrize(
    ("function", "content_type", "headers", "code"),
    [
        (spell, "application/connect+json", {"Connect_Content_Encoding": "br"}, "unimplemented"),
        (add, "application/json", {"Connect_Protocol_Version": "2"}, "invalid_argument"),
    ],
)
def test_H110_what_is_not_spoken_is_told(function, content_type, headers, code):
    """An unknown compression, another version."""
    (response,) = sent(session_of(function).receive(head(content_type, **headers)))
    assert f'"code":"{code}"'.encode() in response.body


def test_H205_compressed_messages_need_a_coding_that_is_known():
    """Whether they were announced or not."""
    (response,) = sent(session_of(add).receive(head("application/grpc-web", Grpc_Encoding="br")))
    assert b"grpc-status: 12\r\n" in response.body
    assert b"plain or compressed by gzip, not by 'br'" in response.body
    _, steps = begun(add, "application/grpc-web", envelope(compress(A1), COMPRESSED))
    assert b"grpc-status: 3\r\n" in sent(steps)[0].body


@pytest.mark.parametrize(
    ("content_type", "headers"),
    [
        ("application/connect+proto", {"Connect_Content_Encoding": "gzip"}),
        ("application/grpc-web", {"Grpc_Encoding": "GZIP"}),
        ("application/grpc-web-text", {"Grpc_Encoding": "gzip"}),
    ],
)
def test_H205_messages_may_be_packed_by_gzip(content_type, headers):
    """Each by itself: those without the flag are as they are."""
    body = envelope(compress(A1), COMPRESSED) + envelope(A1) + envelope(compress(b""), COMPRESSED)
    body = b64encode(body) if "text" in content_type else body
    _, plain = begun(total, content_type, b64encode(envelope(A1)) if "text" in content_type else envelope(A1))
    _, steps = begun(total, content_type, body, **headers)
    assert fed(steps)[:2] == fed(plain) * 2
    assert any(isinstance(one, EndInput) for one in steps)


def test_H205_a_packed_message_that_is_none_is_told():
    """Or is longer than it may be, alone or with others of the same piece."""

    def code(body: bytes) -> bytes:
        session = session_of(total, most_bytes=100)
        session.receive(head("application/connect+proto", Connect_Content_Encoding="gzip"))
        return b"".join(getattr(one, "body", b"") for one in sent(session.receive(BodyChunk(body))))

    assert b"exceeds the limit of 100 bytes" in code(envelope(compress(bytes(101)), COMPRESSED))
    assert b"not gzip" in code(envelope(A1, COMPRESSED))
    long = compress(A1 * 50)  # 100 bytes, of fields that protobuf takes again and again
    assert code(envelope(long, COMPRESSED) * 4) == b""
    assert b"come together exceed the limit of" in code(envelope(long, COMPRESSED) * 5)


def test_H205_the_message_of_a_get_may_be_packed():
    """As the client of connect-python sends it; another coding is told."""

    def asked(**query: str) -> list[Any]:
        session = session_of(add)
        steps = session.receive(head(method="GET", query=urlencode({"encoding": "proto", "base64": "1", **query})))
        return [*steps, *session.half_close()]

    message = urlsafe_b64encode(compress(A1)).decode().rstrip("=")
    plain = urlsafe_b64encode(A1).decode()
    assert fed(asked(compression="gzip", message=message)) == fed(asked(message=plain)) != []
    assert b"unimplemented" in sent(asked(compression="br", message=message))[0].body
    assert b"not gzip" in sent(asked(compression="gzip", message=plain))[0].body


def test_H110_a_message_that_is_too_long_is_told():
    """In each form."""
    session = session_of(add, most_bytes=3)
    session.receive(head("application/json"))
    assert sent(session.receive(BodyChunk(b"1234")))[0].status == 429
    assert session.receive(BodyChunk(b"1234")) == session.half_close() == session.deliver(Finished("typed")) == ()
    session = session_of(spell, most_bytes=3)
    session.receive(head("application/connect+proto"))
    assert b"exceeds the limit of 3 bytes" in sent(session.receive(BodyChunk(envelope(b"1234"))))[0].body


def test_H110_a_body_that_ends_within_a_message_is_told():
    """A function that runs is cancelled."""
    session = session_of(total)
    session.receive(head("application/connect+proto"))
    session.receive(BodyChunk(envelope(A1) + b"\x00"))
    (step,) = session.half_close()
    assert isinstance(step, Cancel)
    assert step.error.status is Status.INVALID_ARGUMENT


def test_H110_headers_are_the_metadata_of_the_call():
    """In lower case; those of HTTP itself are left out."""
    session = session_of(add)
    session.receive(head("application/proto", X_Who="me", Accept_Encoding="gzip", Host="h"))
    session.receive(BodyChunk(A1))
    opening, *_ = session.half_close()
    assert dict(opening.metadata) == {"x-who": "me"}


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"Connect_Timeout_Ms": "1500"}, 1.5),
        ({"Grpc_Timeout": "10S"}, 10.0),
        ({"Grpc_Timeout": "5m"}, 0.005),
        ({"Grpc_Timeout": "1H"}, 3600.0),
        ({"Grpc_Timeout": "x"}, None),
        ({"Connect_Timeout_Ms": "12345678901"}, None),
        ({}, None),
    ],
)
def test_H114_timeouts_are_read(headers, found):
    """Of both protocols."""
    assert timeout_of(head(**headers)) == found


@given(
    st.sampled_from([add, store, spell, total]),
    st.sampled_from(["application/proto", "application/json", "application/connect+json", "application/grpc-web-text"]),
    st.lists(st.binary(max_size=30) | st.binary(max_size=8).map(envelope), max_size=4),
)
def test_H110_any_body_is_answered_once(function, content_type, bodies):
    """Nothing is raised; one invocation is opened at most, and nothing follows a Close."""
    session = session_of(function)
    steps = [*session.receive(head(content_type))]
    for body in bodies:
        steps += session.receive(BodyChunk(body))
    steps += session.half_close()
    if any(isinstance(one, Open) for one in steps) and not session.is_told:
        steps += session.deliver(Finished("typed", FunctionError("over")))
    kinds = [type(one) for one in steps]
    assert kinds.count(Open) <= 1
    assert kinds.index(Close) == len(kinds) - 1
