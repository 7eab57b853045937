"""Text reaches a function as it was sent, or is refused: forms, strange names, names of parts, byte order marks."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import typing
import uuid
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from invoker.author.prepare import prepare_function
from invoker.codecs.registry import builtin
from invoker.core.http import BodyChunk, RequestHead
from invoker.core.steps import Feed, Open, Send
from invoker.errors import DecodeError
from invoker.message import EMPTY
from invoker.protocols.web.fields import Signature, signature_of
from invoker.protocols.web.filling import fill, fill_parts
from invoker.protocols.web.http import HttpSession
from invoker.protocols.web.socket import SocketSession, shape_of
from invoker.protocols.web.stream import StreamSession
from tests.protocols.web.test_http_forms import form

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=xyz"


class Colour(enum.Enum):
    RED = "red"


TYPES = [
    str, int, float, bool, str | None, int | None, str | int, dt.date, dt.datetime | None, decimal.Decimal, uuid.UUID,
    Colour, typing.Literal["a", "b"], list[str], list[int], tuple[int, ...],
]  # fmt: skip
"""Parameters that take neither objects nor any bytes."""


def one(type_: Any) -> Callable[..., Any]:
    def fn(x: Any) -> int:
        return 0

    fn.__annotations__["x"] = type_
    return fn


def with_option(type_: Any) -> Callable[..., Any]:
    def fn(x: Any, times: int = 1) -> int:
        return 0

    fn.__annotations__["x"] = type_
    return fn


def option(type_: Any) -> Callable[..., Any]:
    def fn(x: Any = None) -> int:
        return 0

    fn.__annotations__["x"] = type_
    return fn


def several(type_: Any) -> Callable[..., Any]:
    def fn(*x: Any) -> int:
        return 0

    fn.__annotations__["x"] = type_
    return fn


def stream(type_: Any) -> Callable[..., Any]:
    def fn(x: Any, k: int = 1) -> Iterator[int]:
        yield 0

    fn.__annotations__["x"] = Iterator[type_]
    return fn


KINDS = [one, with_option, option, several, stream]


def read(fn: Callable[..., Any], *, drops: bool = False) -> Signature:
    return signature_of(prepare_function(fn).spec, builtin(entry_points=False), drops=drops)


def parts(*pairs: tuple[str, str]) -> bytes:
    return form(*((name, "", value.encode()) for name, value in pairs))


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("body", "type_of_form", "text"),
    [
        (b"x=%FF", FORM, "the form is not utf-8"),
        (b"x=\xff", FORM, "the form is not utf-8"),
        (b"x=a&y%FF=b", FORM, "the form is not utf-8"),
        (b"x=%81", f"{FORM}; charset=windows-1252", "the form is not cp1252"),
        (b"x=1" + b"&x=1" * 10_000, FORM, "the form has more than 10000 fields"),
    ],
    ids=["escaped", "bare", "name", "charset", "many"],
)
def test_H230_a_form_that_cannot_be_read_is_refused(kind, type_, body, type_of_form, text):
    """Whatever the parameter takes, it never gets the form as it was written."""
    with pytest.raises(DecodeError, match=text):
        fill(read(kind(type_)), "", type_of_form, body, EMPTY)


@pytest.mark.parametrize("kind", KINDS)
def test_H230_bytes_take_any_body_that_is_no_form_of_their_names(kind):
    """`curl --data-binary @FILE` calls every file a form; a form of the parameter's name is one."""
    signature = read(kind(bytes))
    for body in (b"\x00=\xff&%FF", b"a=%FF", b"&" * 20_000 + b"=", b"", b"\xff"):
        assert [message.payload for _, message in fill(signature, "", FORM, body, EMPTY)[1]] == [body]
    assert [message.payload for _, message in fill(signature, "", FORM, b"x=a%20b", EMPTY)[1]] == [b"a b"]
    with pytest.raises(DecodeError, match="the form is not utf-8"):
        fill(signature, "", FORM, b"x=%FF", EMPTY)


def spread(signature: Signature, wire: str) -> list[bytes]:
    """What a request gives that has a value for ``x``, and a name that is no parameter's."""
    if wire == "form":
        found = fill(signature, "", FORM, b"x=1&submit=Go", EMPTY)
    elif wire == "object":
        found = fill(signature, "", JSON, b'{"x": 1, "submit": "Go"}', EMPTY)
    else:
        found = fill(signature, "", PARTS, parts(("x", "1"), ("submit", "Go")), EMPTY)
    return [message.payload for _, message in found[1]]


@pytest.mark.parametrize("type_", [str, int, float, bool, str | None, int | None, str | int], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wire", ["form", "object", "parts"])
def test_H231_a_name_that_is_no_parameters_is_refused_or_ignored(kind, type_, wire):
    """By one rule for forms, parts and objects; further parts are further values of ``*args`` (H-210)."""
    if (kind, wire) != (several, "parts"):
        with pytest.raises(DecodeError, match=r"has no input 'submit'; it has \*?x"):
            spread(read(kind(type_)), wire)
    assert spread(read(kind(type_), drops=True), wire) == [b"1"]


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_H231_no_form_of_strange_names_becomes_a_value(kind, type_):
    """Of any type."""
    with pytest.raises(DecodeError, match=r"has no input 'y'; it has \*?x"):
        fill(read(kind(type_)), "", FORM, b"y=1", EMPTY)
    if kind not in (option, several, stream):
        with pytest.raises(DecodeError, match="needs its input 'x', which is not given"):
            fill(read(kind(type_), drops=True), "", FORM, b"y=1", EMPTY)


@pytest.mark.parametrize("drops", [False, True])
def test_H231_a_slip_of_the_pen_is_told_whatever_is_ignored(drops):
    """A name that is nearly one that is not given is no button."""

    def greet(name: str, times: int = 1) -> str:
        return name * times

    signature = read(greet, drops=drops)
    for content_type, body in ((FORM, b"name=Bob&tmies=2"), (JSON, b'{"name": "Bob", "tmies": 2}')):
        with pytest.raises(DecodeError, match="did you mean 'times'"):
            fill(signature, "", content_type, body, EMPTY)
    with pytest.raises(DecodeError, match="'tmies'"):
        fill(signature, "", PARTS, parts(("name", "Bob"), ("tmies", "2")), EMPTY)


def head(content_type: str, accept: str = "*/*", query: str = "") -> RequestHead:
    return RequestHead("POST", "/", query, "1.1", [("Content-Type", content_type), ("Accept", accept)])


def pair(words: Iterator[str], k: int = 1) -> Iterator[str]:
    yield from words


def both(a: Iterator[str], b: Iterator[str]) -> Iterator[str]:
    yield from a


@pytest.mark.parametrize("fn", [both])
@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("wire", ["lines", "parts"])
def test_H231_streams_refuse_or_ignore_the_same(fn, drops, wire):
    """Lines that name their inputs, and parts that are fed one by one."""
    signature = read(fn, drops=drops)
    lines = "application/x-ndjson"
    content_type = lines if wire == "lines" else PARTS
    body = b'{"a": "1", "submit": "Go"}\n' if wire == "lines" else parts(("a", "1"), ("submit", "Go"))
    steps = asked_steps(signature, head(content_type, lines), body)
    values = [step.message.payload for step in steps if isinstance(step, Feed)]
    refused = [step.frame.body for step in steps if isinstance(step, Send) and hasattr(step.frame, "body")]
    told = [
        *refused,
        *(step.frame.payload for step in steps if isinstance(step, Send) and not hasattr(step.frame, "body")),
    ]
    if drops:
        assert len(values) == 1
    else:
        assert any(b"'submit'" in one for one in told)


def asked_steps(signature: Signature, request: RequestHead, body: bytes) -> list[Any]:
    """All steps of a request whose body comes at once."""
    session: Any = HttpSession(lambda _: signature, max_body_bytes=1 << 20)
    steps = list(session.receive(request))
    if session.asked.streams:
        session = StreamSession(session.asked, most_bytes=1 << 20)
        steps = list(session.receive(request))
    return [*steps, *session.receive(BodyChunk(body)), *session.half_close()]


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("a%22b", 'a"b'),
        ("a%0D%0Ab", "a\r\nb"),
        ("a%20b", "a%20b"),  # a browser escapes three signs, and no per cent sign
        ("100%", "100%"),
        ("a%2522b", "a%2522b"),
        ("grüße", "grüße"),
    ],
)
def test_H232_names_of_parts_are_those_before_they_were_escaped(sent, name):
    """Of fields and of files, as browsers and curl write them."""

    def names(**parts: str) -> str:
        return ""

    signature = read(names)
    assert fill(signature, "", PARTS, parts((sent, "1")), EMPTY)[0] == (name,)
    from invoker.codecs import PartReader

    reader = PartReader(PARTS)
    body = f'--xyz\r\nContent-Disposition: form-data; name="f"; filename="{sent}"\r\n\r\n1\r\n--xyz--\r\n'
    assert [part.filename for part in reader.feed(body.encode())] == [name]
    assert fill_parts(signature, "", [], EMPTY)[0] == ()


EVENT = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":"a"}'
MARKED = {
    "object": (JSON, b'{"text": "a"}'),
    "value": (JSON, b'"a"'),
    "event": ("application/cloudevents+json", EVENT),
    "batch": ("application/cloudevents-batch+json", b"[%b]" % EVENT),
    "form": (FORM, b"text=a"),
    "plain": ("text/plain", b"a"),
}


@pytest.mark.parametrize(("content_type", "body"), MARKED.values(), ids=MARKED)
@pytest.mark.parametrize("is_open", [False, True])
def test_H233_a_byte_order_mark_is_no_part_of_a_body(content_type, body, is_open):
    """Of any kind of body; what reaches the function is the same with and without it."""

    def fixed(text: str) -> str:
        return text

    def varied(*text: str) -> str:
        return ""

    registry = builtin(entry_points=False)
    for payload in (body, BOM_UTF8 + body):
        steps = asked_steps(read(varied if is_open else fixed), head(content_type), payload)
        (message,) = [step.message for step in steps if isinstance(step, Feed)]
        assert registry.decoder(message.media_type, str)(message) == "a"


def test_H233_a_byte_order_mark_is_no_part_of_a_line():
    """Of NDJSON, named or not."""
    for fn, line in ((pair, b'"a"\n'), (both, b'{"a": "a"}\n')):
        steps = asked_steps(read(fn), head("application/x-ndjson", "application/x-ndjson"), BOM_UTF8 + line)
        (message,) = [step.message for step in steps if isinstance(step, Feed)]
        assert builtin(entry_points=False).decoder(message.media_type, str)(message) == "a"


def test_H233_a_byte_order_mark_is_no_part_of_a_frame():
    """Of a WebSocket."""
    session = SocketSession(shape_of(prepare_function(pair).spec, builtin(entry_points=False)))
    assert isinstance(session.receive(RequestHead("GET", "/pair/ws", "", "1.1", []))[0], Open)
    (feed,) = session.receive("\ufeff" + json.dumps({"data": "a"}))
    assert isinstance(feed, Feed)
    assert feed.message.payload == b'"a"'


def test_H233_a_byte_order_mark_is_no_part_of_a_json_part():
    """That is decoded with its form."""
    body = form(("x", "Content-Type: application/json\r\n", BOM_UTF8 + b"[1]"))
    (message,) = [
        step.message for step in asked_steps(read(one(dict[str, Any])), head(PARTS), body) if isinstance(step, Feed)
    ]
    assert builtin(entry_points=False).decoder(message.media_type, dict[str, Any])(message) == {"x": [1]}
