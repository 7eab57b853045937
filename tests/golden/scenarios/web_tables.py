"""What requests of the HTTP API are made of: bodies for functions, heads, and answers of functions."""

from __future__ import annotations

from typing import Any

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
    NotReady,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
    Status,
    StatusError,
    UnacceptedType,
    UnsupportedMediaType,
)
from invoker.errors.wording import Place

JSON, TEXT, OCTETS, LINES = "application/json", "text/plain", "application/octet-stream", "application/x-ndjson"
EVENTS, MIXED = "text/event-stream", "multipart/mixed"
FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data; boundary=xyz"
EVENT, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"

TURNS = ("", LINES, JSON, EVENTS, "text/plain", MIXED)
"""What the requests of `BODIES` accept, by turns."""


def parts(*given: tuple[str, str, bytes]) -> bytes:
    """A body with parts of a name, further header lines, and a payload."""
    heads = (
        (f'--xyz\r\nContent-Disposition: form-data; name="{one}"\r\n{more}\r\n', data) for one, more, data in given
    )
    return b"".join(head.encode() + data + b"\r\n" for head, data in heads) + b"--xyz--\r\n"


_FILE = "Content-Type: image/png\r\n"
_NEEDED = b'"specversion":"1.0","id":"1","source":"/shop","type":"sold"'

BODIES: list[tuple[str, str, bytes]] = [
    ("/square", JSON, b"3"), ("/square", JSON, b'{"x": 3}'), ("/square", JSON, b'{"y": 3}'), ("/square", TEXT, b"3"),
    ("/square", "", b"3"), ("/square", FORM, b"x=3"), ("/square", FORM, b"x=3&x=4"), ("/square", FORM, b"y=%zz"),
    ("/square", PARTS, parts(("x", "", b"3"))), ("/square?x=3", JSON, b""), ("/square?x=3", JSON, b"4"),
    ("/square?y=3", JSON, b"4"), ("/square", JSON, b""), ("/square", JSON, b"{"), ("/square", JSON, b"1" * 2001),
    ("/add", JSON, b'{"a": 1, "b": 2}'), ("/add", JSON, b'{"a": 1}'), ("/add", JSON, b'{"b": 1}'),
    ("/add", JSON, b"1"),
    ("/add", JSON, b'{"a": 1, "c": 2}'), ("/add", JSON, b'{"A": 1}'), ("/add?b=2", JSON, b"1"),
    ("/add", JSON, b"[1, 2]"),
    ("/add?b=2&b=3", JSON, b"1"), ("/add?a=1&b=2", "", b""), ("/add", FORM, b"a=1&b=2"), ("/add", FORM, b"a=1&c=2"),
    ("/add", PARTS, parts(("a", "", b"1"), ("b", "Content-Type: application/json\r\n", b"2"))),
    ("/add", PARTS, parts(("a", "", b"1"), ("", "", b"2"))), ("/add", PARTS, b"garbage"),
    ("/add", PARTS, parts(("a", "", b"1"))[:-9]), ("/add", "multipart/form-data", b""), ("/add?b=%ff", JSON, b"1"),
    ("/greet", JSON, b'"ann"'), ("/greet", TEXT, b"ann"), ("/greet", "text/html", b"<b>"),
    ("/greet", FORM, b"name=ann"),
    ("/greet", FORM, b"name=ann&polite=true"), ("/greet?polite=true", TEXT, b"ann"), ("/greet", OCTETS, b"\xff"),
    ("/greet", "", b"name=ann"), ("/greet", TEXT, b"\xef\xbb\xbfann"), ("/greet?name=%C3%BC", "", b""),
    ("/greet", PARTS, parts(("name", "", b"ann"), ("polite", "", b""))),
    ("/picture", "image/png", b"\x89PNG"), ("/picture", "", b"\x00"), ("/picture", JSON, b'{"x":"AA=="}'),
    ("/picture", PARTS, parts(("x", 'X-A: 1\r\n' + _FILE, b"\x89PNG"))), ("/picture", FORM, b"x=1"),
    ("/summed", JSON, b"[1, 2, 3]"), ("/summed", FORM, b"xs=1&xs=2&scale=3"),
    ("/summed?scale=2", JSON, b'{"xs": [1]}'),
    ("/summed?xs=1&xs=2", "", b""), ("/summed", PARTS, parts(("xs", "", b"1"), ("xs", "", b"2"), ("scale", "", b""))),
    ("/summed", PARTS, parts(("xs", "Content-Type: application/json\r\n", b"[1,2]"))),
    ("/summed", JSON, b'{"scale": 2}'),
    ("/place", JSON, b'{"item": 1}'), ("/place", JSON, b'{"order": {"item": 1}}'), ("/place", FORM, b"item=1"),
    ("/many", JSON, b"[1, 2]"), ("/many", JSON, b'{"xs": [1, 2]}'), ("/many", JSON, b'{"p": 1, "q": 2}'),
    ("/many?xs=1&xs=2", "", b""), ("/many", FORM, b"xs=1&xs=2"), ("/many", JSON, b"1"),
    ("/many", PARTS, parts(("b", "", b"1"), ("a", "", b"2"), ("b", "", b"3"))),
    ("/many?inputs=a,b", JSON, b'{"a":1,"b":2}'),
    ("/named", JSON, b'{"first": "a", "x": "b", "y": "c"}'), ("/named?x=1", JSON, b'"a"'),
    ("/named", FORM, b"first=1&z=2"),
    ("/named", JSON, b'{"x": "b"}'), ("/named", PARTS, parts(("first", "", b"1"), ("z", "", b"2"))),
    ("/now", "", b""), ("/now", JSON, b"null"), ("/now", JSON, b'{"x": 1}'), ("/now?x=1", "", b""),
    ("/store", LINES, b"1\n2\n3"), ("/store", JSON, b"[1, 2]"), ("/store", "", b""),
    ("/scale", LINES, b"1\n2\n\n3"), ("/scale?k=3", LINES, b"1\r\n2\r\n"),
    ("/scale", LINES, b'{"xs": 1}\n{"k": 4}\n'),
    ("/scale", LINES, b'{"k": 4}\n{"xs": 1}\n'), ("/scale", LINES, b'{"no": 4}\n'), ("/scale", LINES, b"x" * 2001),
    ("/scale", LINES, b"{\n1"), ("/scale", JSON, b"[1, 2]"), ("/scale", JSON, b'{"xs": [1, 2], "k": 3}'),
    ("/scale", TEXT, b"1\n2\n"), ("/scale", EVENTS, b"data: 1\n\n"), ("/scale?xs=1&xs=2&k=3", "", b""),
    ("/scale", PARTS, parts(("xs", "", b"1"), ("k", "", b"2"), ("xs", "", b"3"))), ("/scale?k=x&k=y", LINES, b"1"),
    ("/scale", MIXED + "; boundary=xyz", b"--xyz\r\n\r\n1\r\n--xyz\r\n\r\n2\r\n--xyz--\r\n"),
    ("/scale", FORM, b"xs=1&xs=2"),
    ("/repeat", LINES, b'{"words": "a"}\n{"counts": 2}\n{"words": "b", "counts": 3}\n'), ("/repeat", LINES, b'"a"\n'),
    ("/repeat", LINES, b'{"sep": "-"}\n{"words": "a"}\n{"counts": 2}'),
    ("/repeat", LINES, b'{"words": "a"}\n{"sep": 1}\n'),
    ("/repeat", LINES, b'{"sep": 1}\n' * 300), ("/repeat", LINES, b""), ("/repeat", LINES, b'{"nope": 1}\n'),
    ("/repeat", PARTS, parts(("words", "", b"a"), ("counts", "", b"2"), ("sep", "", b"-"))),
    ("/repeat", PARTS, parts(("sep", "", b"-"), ("words", "", b"a"), ("counts", "", b"2"))),
    ("/repeat?sep=-", JSON, b'{"words": ["a"], "counts": [1]}'),
    ("/repeat", PARTS, parts(("words", "", b"a" * 2100))),
    ("/split", LINES, b"1\n2\n"), ("/split", JSON, b"[1,2]"), ("/blobs", OCTETS, b"\x00\xff" * 30),
    ("/blobs", LINES, b'"a"\n'), ("/ticks", "", b""), ("/ticks", JSON, b"{}"), ("/total", LINES, b"1\n2\n"),
    ("/total", JSON, b"[1, 2]"), ("/order", JSON, b'{"item": "a", "count": 2}'),
    ("/order", JSON, b'{"it": {"item": "a"}}'),
    ("/order", JSON, b'["a", 2]'), ("/anything", JSON, b'{"x": 1}'), ("/anything", "image/png", b"\x00"),
    ("/square", EVENT, b'{%b,"data":3}' % _NEEDED), ("/square", EVENT, b'{%b,"data_base64":"Mw=="}' % _NEEDED),
    ("/square", EVENT, b'{"id":"1"}'), ("/square", EVENT, b"[]"), ("/square", EVENT, b'{%b,"time":"noon"}' % _NEEDED),
    ("/add", EVENT, b'{%b,"data":{"a":1,"b":2}}' % _NEEDED), ("/greet", EVENT, b'{%b,"data":"ann"}' % _NEEDED),
    ("/greet", EVENT, b'{%b,"datacontenttype":"text/plain","data":"ann"}' % _NEEDED),
    ("/now", EVENT, b'{%b}' % _NEEDED),
    ("/scale", BATCH, b'[{%b,"data":1},{%b,"data":2}]' % (_NEEDED, _NEEDED)),
    ("/scale", EVENT, b'{%b,"data":1}' % _NEEDED),
    ("/square", BATCH, b'[{%b,"data":1}]' % _NEEDED), ("/summed", BATCH, b'[{%b,"data":1}]' % _NEEDED),
]  # fmt: skip
"""Path with query, Content-Type, body."""

_CE = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/shop", "ce_type": "sold"}

HEADS: list[tuple[str, dict[str, str]]] = [
    *(("/square", {"method": one}) for one in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post", "")),
    *(("/add", {"method": one}) for one in ("GET", "HEAD", "PUT")),
    *((path, {"method": "GET"}) for path in ("/square?x=3", "/scale?xs=1&xs=2", "/ticks", "/nobody", "/", "//", "")),
    ("/nobody", {}), ("/square/", {}), ("/", {"invoker_function": "square"}), ("/", {"invoker_function": "nobody"}),
    ("/square", {"invoker_function": "square"}), ("/square", {"invoker_function": "add"}), ("/", {}),
    *(("/square", {"content_encoding": one}) for one in ("gzip", "identity", "Identity", "", "identity, gzip")),
    *(("/square", {"content_length": one}) for one in ("2000", "2001", "x", "9" * 30)),
    ("/scale", {"content_length": "2001", "content_type": LINES}),
    ("/scale", {"content_type": LINES, "content_length": "5"}),
    *(("/square", {"accept": one}) for one in ("", "*/*", "image/png", "application/json;q=0.2, text/plain", LINES,
        EVENT)),
    *(("/scale", {"accept": one}) for one in ("*/*", LINES, EVENTS, MIXED, "a/b, text/event-stream;q=0.5", JSON,
        EVENT)),
    ("/scale", {"accept": EVENTS, "last_event_id": "3"}),
    ("/scale?xs=1", {"accept": EVENTS, "last_event_id": "3", "method": "GET"}),
    ("/square", {"x_many": "1", "X_Many": "2", "x_http_method": "FORGED", "x_http_content_type": "FORGED"}),
    ("/square", {"cookie": "a=1", "Cookie": "b=2", "version": "2", "content_type": "Text/Plain; charset=UTF-16"}),
    ("/square", {"version": "1.0"}), ("/square", _CE), ("/square", {**_CE, "accept": EVENT}),
    ("/square", {**_CE, "ce_time": "noon"}),
    ("/square", {**_CE, "ce_type": ""}), ("/square", {**_CE, "ce_subject": "a%20%E2%82%AC"}),
    ("/scale", {**_CE, "accept": LINES}),
    ("/scale", {"expect": "100-continue"}), ("/store", {"accept": LINES}), ("/blobs", {}),
    ("/blobs", {"accept": JSON}),
    ("/split", {}), ("/split", {"accept": JSON}), ("/split", {"accept": MIXED}), ("/now", {"method": "GET"}),
]  # fmt: skip
"""Path with query, and headers with ``_`` for ``-``; ``method`` and ``version`` are those of the request."""

ANSWERS = [
    ("/square", ""), ("/square", JSON), ("/square", EVENT), ("/scale", LINES), ("/scale", EVENTS), ("/scale", MIXED),
    ("/scale", ""), ("/split", LINES), ("/scale", JSON), ("/store", ""), ("/blobs", ""),
]  # fmt: skip

COURSES: dict[str, list[Any]] = {
    "values of each kind": [
        (b"1",), (b'"a"',), (b"text", TEXT), (b"two\nlines", TEXT), (b"\x00\xff", OCTETS), (b"png", "image/png"),
        (b"", TEXT),
        (b'{"a":\n1}',), (b"x" * 300, TEXT), (b"1", JSON, 0, ("X-A", "b")), (b"1", "", 0),
    ],
    "time passes": ["time", (b"1",), "time", "end", "time"],
    "time passes twice": ["time", "time", (b"2",)],
    "chosen status": [(b"made", TEXT, 0, ("X-Http-Status", "201"), ("X-Other", "1"))],
    "bad status": [(b"made", TEXT, 0, ("x-http-status", "teapot"))],
    "status 199": [(b"made", TEXT, 0, ("x-http-status", "199"))],
    "status 599": [(b"made", TEXT, 0, ("x-http-status", "599"))],
    "status 600": [(b"made", TEXT, 0, ("x-http-status", "600"))],
    "bad header": [(b"x", TEXT, 0, ("X-A", "1\r\nX-Evil: 1"))],
    "headers that clash": [(b"x", TEXT, 0, ("Content-Length", "9"), ("Keep-Alive", "1"), ("X-Other", "ü"))],
    "an event": [(b"1", JSON, 0, ("ce-type", "paid"), ("ce-source", "/pay"), ("ce-subject", "Grüße"))],
    "a bad event": [(b"1", JSON, 0, ("ce-type", "paid"), ("ce-time", "noon"))],
    "broken json": [(b"{\n",)],
    "a second output": [(b"1", JSON, 1), (b"2", JSON, 0)],
    "a charset": [(b"a", "text/csv; charset=latin-1"), (b"b", "text/html")],
    "no utf-8": [(b"\xff", TEXT), (b"\xff", JSON)],
}  # fmt: skip
"""What a function does before its end: messages as payload, media type, output and headers; ``time`` and ``end``."""

ERRORS = [
    UnsupportedMediaType("'a/b'"), NotAcceptable("'a/b'"), DecodeError("{"), FunctionError("boom"), CallError("boom"),
    ProtocolViolation("2 inputs"), InternalError(), DeadlineExceeded("late"), Overloaded("full"),
    LimitExceeded("long"),
    ShuttingDown("bye"), StatusError(Status.NOT_FOUND, "no such row"), NotReady("soon"), Cancelled("gone"),
    EncodeError("odd"), UnacceptedType("image/png"), StatusError(Status.PERMISSION_DENIED, "no"),
    FunctionError("\ud800"),
    DecodeError(" is no int", place=Place("input", 0), met="text/plain"),
    DecodeError(" is bad", place=Place("input", 1)),
    StatusError(Status.DATA_LOSS, ""), StatusError(Status.UNAUTHENTICATED, "who"),
]  # fmt: skip
