"""Calls of typed methods, on gRPC and as requests of Connect and gRPC-Web."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from invoker import function
from invoker.core.http import BodyChunk, RequestHead
from invoker.core.steps import Emitted, Finished, OutputEnded
from invoker.errors import (
    CallError,
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    FunctionError,
    InternalError,
    LimitExceeded,
    NotAcceptable,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
    Status,
    StatusError,
    UnsupportedMediaType,
)
from invoker.errors.wording import Place
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.typed.calls import calls_of
from invoker.protocols.typed.envelopes import COMPRESSED, envelope
from invoker.protocols.typed.session import TypedSession
from invoker.protocols.typed.web import WebSession, timeout_of
from tests.golden.recorder import HALF_CLOSE, Scenario, Trace, play
from tests.protocols.typed.written import spec_of


def _gzip(data: bytes) -> bytes:
    """The same bytes by each Python: the tenth names the operating system, and Python 3.12 and later name none."""
    made = gzip.compress(data, mtime=0)
    return made[:9] + b"\x03" + made[10:]


A1, B2 = b"\x08\x01", b"\x10\x02"
"""Fields 1 and 2 with the numbers 1 and 2."""
C3 = b"\x12\x05\x0a\x01c\x10\x03"
"""Field 2, a map, with 3 for c."""


@function(safe=True)
def add(a: int, b: int = 5) -> int: ...
def many(*xs: int) -> int: ...
def named(a: int, **more: int) -> int: ...
def now() -> str: ...
def ticks() -> Iterator[int]: ...
def total(xs: Iterator[int]) -> int: ...
def top(xs: Iterator[int], k: int, by: str = "") -> Iterator[int]: ...
def repeat(words: Iterator[int], counts: Iterator[int]) -> Iterator[int]: ...
def late(prefix: str = "", xs: Iterator[int] = ()) -> Iterator[int]: ...  # type: ignore[assignment]
def spell(word: str) -> Iterator[str]: ...
def store(a: int) -> None: ...
def greet(first_name: str, tags: list[str]) -> dict[str, str]: ...
@function(outputs=("low", "high"))
def bounds(xs: list[int]) -> tuple[int, int]: ...


_FUNCTIONS = (add, many, named, now, ticks, total, top, repeat, late, spell, store, greet, bounds)

_MESSAGES: dict[str, list[Any]] = {
    "one field": [A1, HALF_CLOSE],
    "both fields": [B2 + A1 + b"\x18\x09", HALF_CLOSE],
    "the second field": [B2, HALF_CLOSE],
    "empty": [b"", HALF_CLOSE],
    "nothing": [HALF_CLOSE, HALF_CLOSE],
    "three messages": [A1, B2, A1 + B2, HALF_CLOSE],
    "a third field": [A1 + b"\x1a\x01x", b"\x1a\x01y", HALF_CLOSE],
    "a packed field": [b"\x0a\x02\x01\x02\x08\x03", HALF_CLOSE],
    "a map": [A1 + C3 + C3.replace(b"c", b"d"), HALF_CLOSE],
    "a map with the key a": [A1 + C3.replace(b"c", b"a"), HALF_CLOSE],
    "cut off": [b"\x08", HALF_CLOSE],
    "cut off later": [A1, b"\x12\x05x", HALF_CLOSE],
    "a group": [b"\x0b\x0c"],
    "fixed numbers": [b"\x0d\x01\x02\x03\x04\x11\x01\x02\x03\x04\x05\x06\x07\x08", HALF_CLOSE],
}

_JSON: dict[str, list[Any]] = {
    "one field": [b'{"a": 1}', b'{"xs": 2}', HALF_CLOSE],
    "both names": [b'{"first_name": "a", "firstName": "b", "tags": ["x"]}', HALF_CLOSE],
    "lists": [b'{"xs": [1, [2]], "more": {"c": 3, "d": [4]}, "a": 1}', HALF_CLOSE],
    "null": [b'{"a": 1, "b": null, "x": {}}', HALF_CLOSE],
    "empty": [b"", HALF_CLOSE],
    "a mark of byte order": [b'\xef\xbb\xbf{"a": 7}', b"\xef\xbb\xbf", HALF_CLOSE],
    "the key a": [b'{"a": 1, "more": {"a": 3}}'],
    "an empty key": [b'{"a": 1, "more": {"": 3}}'],
    "too many keys": [json.dumps({"a": 1, "more": {f"k{n}": n for n in range(1000)}}).encode()],
    "as many keys as may be": [json.dumps({"a": 1, "more": {f"k{n}": n for n in range(100)}}).encode()],
    **{f"wrong {number}": [one] for number, one in enumerate([b"[", b"[]", b"3", b'{"a": }', b"\xff",
        b'{"more": 3}', b'{"xs": {}}'])},
    "streams": [b'{"xs": 1, "k": 2}', b'{"xs": 3, "by": "z"}', b'{"words": 1}', b'{"counts": 2}', HALF_CLOSE],
}  # fmt: skip

_ERRORS = [
    DecodeError(" is wrong", place=Place("input", 0, "a")), DecodeError("{"), CallError("x"), LimitExceeded("x"),
    InternalError("x"),
    FunctionError("boom"), DeadlineExceeded("x"), Overloaded("x"), ShuttingDown("x"), Cancelled("x"),
    ProtocolViolation("x"),
    NotAcceptable("x"), UnsupportedMediaType("x"), StatusError(Status.NOT_FOUND, "x\r\ny ü"),
    EncodeError(" odd", place=Place("output", 0)),
    StatusError(Status.UNAUTHENTICATED, ""), StatusError(Status.ABORTED, "x"), StatusError(Status.OUT_OF_RANGE, "x"),
]  # fmt: skip


def _out(payload: bytes, index: int = 0, media_type: str = "application/vnd.invoker.field;of=x;out=1") -> Emitted:
    return Emitted("typed", index, Message(payload, EMPTY, media_type))


_GIVEN: dict[str, list[Any]] = {
    "nothing": [],
    "a value": [_out(b"\x08\x07"), OutputEnded("typed", 0)],
    "two values": [_out(b"a"), _out(b"b")],
    "two outputs": [_out(b"2", 1), _out(b"1", 0)],
    "json": [_out(b'{"low":1}', 0, "application/vnd.invoker.field+json;of=x"),
        _out(b"{}", 1, "application/vnd.invoker.field+json;of=x")],
    "another type": [_out(b"abc", 0, "text/plain")],
    "a charset": [_out(b"\xfc", 0, "text/plain; charset=latin-1")],
    "no text": [_out(b"\xff", 0, "text/plain")],
    "bytes": [_out(b"\x00\xff", 0, "application/octet-stream")],
}  # fmt: skip


_AS_JSON = ("nothing", "json", "another type", "a charset", "no text", "bytes")
"""What a function may give to a caller who takes JSON."""


def scenarios() -> dict[str, Scenario]:
    """By messages, by what functions give, by error; then those of the web."""
    made: dict[str, Scenario] = {}
    for is_json, table in ((False, _MESSAGES), (True, _JSON)):
        kind = "json" if is_json else "protobuf"
        end = [_out(b"{}" if is_json else b"late"), Finished("typed"), A1, HALF_CLOSE]
        for turn, (name, acts) in enumerate(table.items()):
            for at, one in enumerate(_FUNCTIONS):
                if (at + turn) % 2:
                    continue
                made[f"{kind}: {one.__name__}: {name}"] = _played(
                    one, [*acts, *(end if at % 3 == 0 else [])], is_json=is_json
                )
    for given, events in _GIVEN.items():
        for one in (add, bounds, spell, store):
            for is_json in (False, True) if given in _AS_JSON else (False,):
                acts = [b"{}" if is_json else A1, HALF_CLOSE, *events, Finished("typed"), Finished("typed")]
                made[f"{one.__name__} gives {given}{' in json' * is_json}"] = _played(one, acts, is_json=is_json)
    for turn, error in enumerate(_ERRORS):
        made[f"add ends with {turn} {error.status.name}"] = _played(add, [A1, Finished("typed", error)])
    return made | _web()


def _played(one: Any, acts: Sequence[Any], *, is_json: bool = False) -> Scenario:
    def scenario(trace: Trace) -> None:
        (call,) = calls_of([spec_of(one)])
        session = TypedSession(call, Headers({"a": "b"}), is_json=is_json)
        play(trace.session(session), acts)
        trace.write(f"state {session.state.name}")

    return scenario


# Connect and gRPC-Web.


def _head(content_type: str = "", method: str = "POST", query: str = "", **headers: str) -> RequestHead:
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return RequestHead(method, "/x", query, headers=[("Content-Type", content_type)] * bool(content_type) + fields)


def _request(
    one: Any, head: RequestHead, pieces: Sequence[bytes], acts: Sequence[Any], most_bytes: int = 1000
) -> Scenario:
    def scenario(trace: Trace) -> None:
        (call,) = calls_of([spec_of(one)])
        session = WebSession(call, most_bytes=most_bytes)
        play(
            trace.session(session),
            [head, *map(BodyChunk, pieces), HALF_CLOSE, *acts, *acts[-1:], BodyChunk(b"late"), HALF_CLOSE],
        )
        trace.write(
            f"told {session.is_told}, begun {session.has_begun}, held {session.held}, timeout {timeout_of(head)}"
        )

    return scenario


_TYPES = [
    "application/proto", "application/json", "Application/Proto ; x=y", "application/connect+proto",
    "application/connect+json",
    "application/grpc-web", "application/grpc-web+json", "application/grpc-web-text+proto", "text/plain", "",
    "application/grpc",
]  # fmt: skip

_HEADERS: list[dict[str, str]] = [
    {"Connect_Protocol_Version": "1"}, {"Connect_Protocol_Version": "2"}, {"Connect_Content_Encoding": "br"},
    {"Connect_Content_Encoding": "gzip"}, {"Grpc_Encoding": "br"}, {"Grpc_Encoding": "GZIP"},
    {"Content_Encoding": "gzip"},
    {"Content_Encoding": "br"}, {"Connect_Timeout_Ms": "1500"}, {"Connect_Timeout_Ms": "12345678901"},
    {"Grpc_Timeout": "5m"},
    {"Grpc_Timeout": "1H"}, {"Grpc_Timeout": "x"},
    {"X_Who": "me", "Accept_Encoding": "gzip", "Host": "h", "x-who": "you"},
]  # fmt: skip

_QUERIES = [
    "encoding=json&message=%7B%22a%22%3A1%7D&connect=v1", "encoding=json&base64=1&message=eyJhIjoxfQ",
    "encoding=json",
    "encoding=proto&base64=1&message=CAE", "encoding=proto&message=%08%81%01", "", "encoding=xml",
    "encoding=json&message=%7B",
    "encoding=json&base64=1&message=a", "encoding=json&message=%7B%7D&connect=v2",
    *(urlencode({"encoding": "proto", "base64": "1", "compression": one,
        "message": urlsafe_b64encode(_gzip(A1))}) for one in ("gzip", "br", "identity", "")),
    urlencode({"encoding": "proto", "base64": "1", "compression": "gzip", "message": urlsafe_b64encode(A1)}),
]  # fmt: skip


def _web() -> dict[str, Scenario]:
    made: dict[str, Scenario] = {}
    ok = [_out(b"out"), Finished("typed")]
    for content_type in _TYPES:
        for one in (add, spell, total, store):
            made[f"web: {one.__name__} as {content_type or 'nothing'}"] = _request(
                one, _head(content_type), _body(content_type), ok
            )
    for turn, headers in enumerate(_HEADERS):
        for content_type in ("application/json", "application/connect+proto", "application/grpc-web"):
            head = _head(content_type, **headers)
            made[f"web: {content_type} headers {turn}"] = _request(
                total if "/c" in content_type else add, head, _body(content_type), ok
            )
    for turn, query in enumerate(_QUERIES):
        made[f"web: query {turn}"] = _request(add, _head(method="GET", query=query), [], ok)
    for method, one in (("GET", store), ("GET", spell), ("GET", total), ("PUT", add), ("PUT", store), ("HEAD", add)):
        made[f"web: {method} of {one.__name__}"] = _request(one, _head(method=method, query=_QUERIES[0]), [], ok)
    for turn, error in enumerate(_ERRORS):
        for content_type in (
            "application/json",
            "application/connect+json",
            "application/grpc-web",
            "application/grpc-web-text",
        ):
            begins = [_out(b"1")] if turn % 2 else []
            acts = [*begins, Finished("typed", error)]
            one = add if content_type == "application/json" else spell
            made[f"web: {content_type} ends with {turn} {error.status.name}"] = _request(
                one, _head(content_type), _body(content_type), acts
            )
    return made | _wrong() | {"web: refusals": _refusals}


def _body(content_type: str) -> list[bytes]:
    message = b'{"a":1}' if "json" in content_type else A1
    if "connect" not in content_type and "grpc-web" not in content_type:
        return [message]
    whole = envelope(message)
    return [b64encode(whole)] if "text" in content_type else [whole[:3], whole[3:]]


def _wrong() -> dict[str, Scenario]:
    packed, long = envelope(_gzip(A1), COMPRESSED), _gzip(A1 * 50)
    connect = _head("application/connect+proto", Connect_Content_Encoding="gzip")
    bodies: dict[str, list[bytes]] = {
        "packed": [packed, envelope(A1), envelope(_gzip(b""), COMPRESSED)],
        "no gzip": [envelope(A1, COMPRESSED)],
        "too long when unpacked": [envelope(_gzip(bytes(101)), COMPRESSED)],
        "four long ones": [envelope(long, COMPRESSED) * 4],
        "five long ones": [envelope(long, COMPRESSED) * 5],
        "too long": [envelope(bytes(101))],
        "as long as may be": [envelope(b"\x0a\x62" + bytes(98))],
        "ends within a message": [envelope(A1) + b"\x00"],
        "several at once": [envelope(A1) * 3],
        "unknown flags": [envelope(A1, 4)],
        "an end": [envelope(b"{}", 2)],
    }
    made = {
        f"web: body {name}": _request(total, connect, pieces, [Finished("typed")], 100)
        for name, pieces in bodies.items()
    }
    made["web: packed without notice"] = _request(add, _head("application/grpc-web"), [packed], [Finished("typed")])
    made["web: text cut anywhere"] = _request(
        total,
        _head("application/grpc-web-text"),
        [b64encode(envelope(A1))[at : at + 3] for at in range(0, 12, 3)],
        [Finished("typed")],
    )
    made["web: text that is none"] = _request(total, _head("application/grpc-web-text"), [b"!!!!"], [Finished("typed")])
    made["web: text ends within"] = _request(total, _head("application/grpc-web-text"), [b"AA"], [Finished("typed")])
    for size in (99, 100, 101):
        made[f"web: {size} bytes"] = _request(
            add, _head("application/json"), [b" " * 50, b" " * (size - 50)], [Finished("typed")], 100
        )
    return made


def _refusals(trace: Trace) -> None:
    for content_type in (
        "application/json",
        "application/connect+proto",
        "application/grpc-web",
        "application/grpc-web-text",
    ):
        for error in _ERRORS:
            (call,) = calls_of([spec_of(spell if "/json" not in content_type else add)])
            session = WebSession(call, most_bytes=100)
            session.receive(_head(content_type))
            trace.write(f"refusal {trace.shown(session.refusal(error))}")
            trace.write(f"farewell {trace.shown(session.farewell(error))}")
