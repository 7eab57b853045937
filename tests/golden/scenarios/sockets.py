"""Connections of WebSocket: handshakes, messages, and what functions give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from invoker.author.reader import read
from invoker.codecs import builtin
from invoker.core.http import RequestHead
from invoker.core.steps import Emitted, Finished, OutputEnded
from invoker.errors import DecodeError, FunctionError, LimitExceeded, ProtocolViolation
from invoker.errors.wording import Place
from invoker.message import EMPTY, Message, Output
from invoker.protocols.web.socket import SocketSession, shape_of
from tests.golden.recorder import HALF_CLOSE, Scenario, Trace, play


class Split(NamedTuple):
    """Two outputs."""

    even: Iterator[int]
    odd: Iterator[int]


def square(x: int) -> int: ...
def add(a: int, b: int) -> int: ...
def scale(xs: Iterator[int], k: int = 2) -> Iterator[int]: ...
def topk(items: Iterator[str], k: int) -> Iterator[str]: ...
def split(xs: Iterator[int]) -> Split: ...
def text(x: str) -> bytes: ...
def now() -> str: ...
def at(hour: int = 12) -> str: ...
def ticks() -> Iterator[int]: ...
def many(*xs: int, k: int = 2) -> int: ...
def words(**xs: str) -> str: ...
def tag(xs: Iterator[str]) -> Iterator[Output]: ...


_HANDSHAKES: list[tuple[Any, str]] = [
    (square, ""), (add, ""), (add, "a=1"), (scale, "k=5&other=1"), (scale, "xs=1&xs=2"), (scale, "k=1&k=2"),
    (scale, "k=%ff"), (topk, "k=2"), (split, ""), (text, ""), (now, ""), (at, ""), (at, "hour=3"), (ticks, ""),
    (many, ""), (many, "inputs=a,b&k=3"), (many, "inputs=a,a"), (many, "inputs=a,,b"), (words, "a=1&b=2"),
    (words, ""),
    (tag, ""), (tag, "outputs=a,b"), (tag, "outputs=a,a"), (many, "inputs=" + ",".join(map(str, range(2000)))),
]  # fmt: skip

_MESSAGES: dict[str, list[Any]] = {
    "data": ['{"data":3}', '{"data": {"a": [1, null]}}', '{"data":null}', '{"data":"\u00fc"}'],
    "a mark of byte order": ['\ufeff{"data":3}'],
    "typed texts": ['{"data":"a\\nb","contentType":"text/csv"}', '{"data":"a","contentType":"text/html"}'],
    "base64": ['{"base64":"AP8="}', '{"base64":"AP8=","contentType":"image/png"}'],
    "headers": ['{"data":1,"headers":{"a":"b","X-Http-Path":"/no"}}'],
    "binary": [b"\x00\xff", b""],
    "announced": ['{"contentType":"image/png","headers":{"a":"b"}}', b"png", b"bare"],
    "announced, then text": ['{"contentType":"image/png"}', '{"data":1}'],
    "announced, then the end": ['{"contentType":"image/png"}', HALF_CLOSE],
    "second input": [
        '{"input":"b","data":4}',
        '{"input":"b","contentType":"a/b"}',
        b"x",
        '{"end":"b"}',
        '{"end":true}',
    ],
    "the end": ['{"end":true}', '{"data":1}'],
    "half-closed": ['{"data":1}', HALF_CLOSE, HALF_CLOSE, b"x"],
    "a second handshake": [RequestHead("GET", "/square/ws")],
    "an option as an input": ['{"input":"k","data":3}'],
    "first input by name": ['{"input":"xs","data":3}', '{"input":"x","data":3}', '{"input":"X","data":3}'],
}

_WRONG = [
    "3", '"data"', "{no", "", '{"data":1} {"data":2}', '{"dat":1}', "{}", '{"input":"a"}', '{"input":3,"data":1}',
    '{"input":"c","data":1}', '{"data":1,"base64":"AA=="}', '{"base64":"A"}', '{"base64":"A A="}',
    '{"data":1,"contentType":"text/plain"}', '{"data":1,"headers":{"a":1}}', '{"end":false}', '{"end":true,"data":1}',
    '{"end":"c"}', "[" * 100_000, '{"data":"\\ud800","contentType":"text/plain"}',
]  # fmt: skip

_LONG = b'"' + b"x" * 300_000 + b'"'
_GIVEN: list[tuple[bytes, str, dict[str, str]]] = [
    (b"9", "application/json", {}), ('"\u00fc"'.encode(), "application/json", {}),
    (b"9", "application/json", {"a": "b"}),
    (b"png", "image/png", {}), (b"png", "image/png", {"a": "b"}), (b"\xff", "application/json", {}), (b"x", "", {}),
    (b"\xff", "application/json", {"a": "b"}), (_LONG, "application/json", {}),
    (_LONG, "application/json", {"a": "b"}),
    (_LONG, "image/png", {}), (b"\xff" * 300_000, "application/json", {"a": "b"}),
]  # fmt: skip

_ERRORS = [
    None, FunctionError("no"), DecodeError(" is no int", place=Place("input", 1)), ProtocolViolation("odd"),
    LimitExceeded("long"), DecodeError(" is no int", place=Place("input", 0)),
]  # fmt: skip


def scenarios() -> dict[str, Scenario]:
    """By handshake, by messages, by what is wrong with one, and by output."""
    made: dict[str, Scenario] = {}
    for turn, (function, query) in enumerate(_HANDSHAKES):
        acts = ['{"data":1}', '{"end":true}', Finished("socket")]
        made[f"socket: handshake {turn}: {function.__name__}?{query}"[:80]] = _played(function, query, acts)
    for name, messages in _MESSAGES.items():
        for function in (square, add, scale, text, now, ticks):
            made[f"socket: {function.__name__}: {name}"] = _played(function, "", messages)
    for number, wrong in enumerate(_WRONG):
        made[f"socket: wrong {number}"] = _played(add, "", [wrong, '{"data":1}'])
    for function in (square, split):
        made[f"socket: outputs of {function.__name__}"] = _played(function, "", _outputs(function is split))
    made["socket: before the handshake"] = _unbegun
    made["socket: endings"] = _endings
    return made


def _outputs(is_several: bool) -> list[Any]:
    given = [Emitted("socket", 0, Message(data, headers or EMPTY, kind)) for data, kind, headers in _GIVEN]
    more = [Emitted("socket", 1, Message(b"1", EMPTY, "application/json")), OutputEnded("socket", 1)]
    return [
        *given,
        *(more if is_several else []),
        OutputEnded("socket", 0),
        Finished("socket"),
        *given[:1],
        "{}",
        HALF_CLOSE,
    ]


def _session(function: Any) -> SocketSession:
    return SocketSession(shape_of(read(function), builtin(entry_points=False)))


def _head(query: str) -> RequestHead:
    headers = [
        ("host", "here"),
        ("upgrade", "websocket"),
        ("sec-websocket-key", "k"),
        ("x-a", "1"),
        ("x-a", "2"),
        ("accept", "*/*"),
    ]
    return RequestHead("GET", "/f/ws", query, "1.1", headers)


def _played(function: Any, query: str, acts: list[Any]) -> Scenario:
    def scenario(trace: Trace) -> None:
        session = _session(function)
        play(trace.session(session), [_head(query), *acts])
        trace.write(f"state {session.state.name}")

    return scenario


def _unbegun(trace: Trace) -> None:
    play(trace.session(_session(square)), ['{"data":1}', b"x", HALF_CLOSE])


def _endings(trace: Trace) -> None:
    for error in _ERRORS:
        session = _session(add)
        play(trace.session(session), [_head(""), Finished("socket", error)])
        trace.write(f"farewell {trace.shown(session.farewell(error))}")
