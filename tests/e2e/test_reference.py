"""Each row of the tables of docs/reference/http.md, asked of a server that runs."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import SLOW
from tests.e2e.process import started
from tests.e2e.rawhttp import RawHttp
from tests.e2e.reference_transport import JSON, MIXED, NDJSON, SSE, Transport
from tests.httpdoc import tables

pytestmark = pytest.mark.timeout(30)

ORIGIN = "https://pages.example"
FLAGS = (
    "--protocols", "riff,http,typed,graphpipe,action-engine", "--allowed-origin", ORIGIN, "--max-message-bytes", "4096",
    "--graphpipe-bytes", "4096", "--http-timeout-s", f"{0.5 * SLOW}", "--page", "on", "--max-invocations", "8",
)  # fmt: skip


@pytest.fixture(scope="module")
def port() -> Iterator[Transport]:
    """One server for all rows."""
    with started("tests.e2e.reference_functions", *FLAGS) as process:
        yield Transport(process.ready()[1])


Question = Callable[[Transport], bool]


def _is(status: int, path: str, method: str = "GET", **headers: str) -> Question:
    return lambda port: port.ask(method, path, **headers).status == status


def _posts(status: int, path: str, body: bytes = b"3", accept: str = JSON, type_: str = JSON) -> Question:
    return lambda port: port.post(path, body, accept, type_).status == status


def _gives(body: bytes, path: str, sent: bytes, accept: str = NDJSON, type_: str = JSON) -> Question:
    return lambda port: port.post(path, sent, accept, type_).body == body


def _streams(body: bytes, path: str, *sent: bytes, type_: str = "") -> Question:
    return lambda port: port.stream(path, *sent, type_=type_) == body


def _events(port: Transport) -> bool:
    one = port.post("/count", b"1", SSE).body
    two = port.post("/split", b"2", SSE).body
    bad = port.post("/failing", b"1", SSE).body
    assert two.count(b"event: even\nid: ") == two.count(b"event: odd\nid: ") == 1
    assert b"event: error\ndata: {" in bad
    assert b"event: end" not in bad
    return one == b"id: 1\ndata: 1\n\nevent: end\ndata: {}\n\n"


def _lines(port: Transport) -> bool:
    bad = port.post("/failing", b"1").body.splitlines()
    assert sorted(port.post("/split", b"2").body.splitlines()) == [b'{"even":2}', b'{"odd":1}']
    assert (bad[0], json.loads(bad[1])["error"]["status"], len(bad)) == (b"1", 500, 2)
    return port.post("/count", b"2").body == b"1\n2\n"


def _parts(port: Transport) -> bool:
    one, two, bad = (port.post(path, b"1", MIXED) for path in ("/count", "/split", "/failing"))
    assert b'Content-Disposition: inline; name="odd"' in two.body
    assert bad.body.count(b"Content-Type: application/problem+json") == 1
    boundary = one.headers["content-type"].partition("boundary=")[2].encode()
    return b"Content-Type: application/json" in one.body and one.body.endswith(b"--" + boundary + b"--\r\n")


def _pieces(path: str, sent: bytes, body: bytes, type_: str) -> Question:
    def ask(port: Transport) -> bool:
        found = port.ask("POST", path, sent, Content_Type="text/plain")
        return (found.status, found.body, found.headers["content-type"]) == (200, body, type_)

    return ask


def _form(*fields: tuple[str, str]) -> tuple[bytes, str]:
    parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields]
    return ("".join(parts) + "--b--\r\n").encode(), "multipart/form-data; boundary=b"


def _of_form(port: Transport) -> bool:
    body, type_ = _form(("words", "a"), ("counts", "2"), ("words", "b"), ("counts", "1"))
    return port.post("/repeat", body, NDJSON, type_).body == b'"aa"\n"b"\n'


def _unchanged(port: Transport) -> bool:
    tag = port.ask("GET", "/functions").headers["etag"]
    return port.ask("GET", "/functions", If_None_Match=tag).status == 304


def _has(name: str, value: str, path: str = "/square", **headers: str) -> Question:
    def ask(port: Transport) -> bool:
        found = port.ask("POST", path, b"3", Content_Type=JSON, **headers).headers.get(name, "")
        return value in [one.strip() for one in found.split(",")]

    return ask


def _has_length(port: Transport) -> bool:
    whole, empty = port.post("/square", b"3", JSON), port.ask("GET", "/count?to=1", Accept=SSE, Last_Event_ID="1")
    return whole.headers["content-length"] == "1" and "content-length" not in empty.headers


def _streams_with(accept: str) -> Question:
    def ask(port: Transport) -> bool:
        row = next(row for row in tables()["stream-headers"].rows if row[0] == f"`{accept}`")
        told = dict(one.strip("`").split(": ") for one in row[1].split(", "))
        found = port.post("/count", b"1", accept).headers
        return bool(told) and all(found[name.lower()] == value for name, value in told.items())

    return ask


def _traced(port: Transport) -> bool:
    found = port.ask("POST", "/square", b"3", Content_Type=JSON, Traceparent=TRACE).headers
    return {found[name].split("-")[1] for name in ("traceparent", "traceresponse")} == {TRACE.split("-")[1]}


def _rare(port: Transport) -> bool:
    statuses = [port.post("/rare", b"1", JSON) for _ in range(2)]
    return statuses[-1].status == 429 and int(statuses[-1].headers["retry-after"]) > 0


def _chosen(status: int) -> Question:
    def ask(port: Transport) -> bool:
        row = next(row for row in tables()["chosen"].rows if row[0] == str(status))
        names = [one.strip("`") for one in row[1].split(", ")]
        return {port.post("/choose", json.dumps(name).encode(), JSON).status for name in names} == {status}

    return ask


def _head(size: int = 0, fields: int = 0) -> bytes:
    lines = [
        "GET /livez HTTP/1.1",
        "Host: localhost",
        f"X-Long: {'x' * size}",
        *("X: y" for _ in range(fields)),
        "",
        "",
    ]
    return "\r\n".join(lines).encode()


def _drains(_: Transport) -> bool:
    """A server of its own, which ends while a connection is kept."""
    with started("tests.e2e.reference_functions") as process, RawHttp(process.ready()[1]) as connection:
        body = b"POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n"
        connection.send(body)
        connection.send(b"1")
        port = Transport(process.ready()[1])
        while json.loads(port.ask("GET", "/invocations").body)["counts"]["running"] == 0:
            pass
        process.send(signal.SIGTERM)
        return connection.read().head["connection"] == "close"


def _full(_: Transport) -> bool:
    """A server of its own, whose only place is taken."""
    with started("tests.e2e.reference_functions", "--max-invocations", "1") as process:
        port = Transport(process.ready()[1])
        with RawHttp(port.address) as connection:
            connection.send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n")
            connection.send(b"Transfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n")
            while b'"a"' not in connection.socket.recv(4096):
                pass
            answer = port.post("/square", b"3", JSON)
        return answer.status == 503 and "retry-after" in answer.headers


def _long_item(port: Transport) -> bool:
    many = port.stream("/echo", *(b"x" * 99 + b"\n" for _ in range(100)))
    assert many.count(b"\n") == 100
    return port.ask("POST", "/echo", iter([b"x" * 5000]), encode_chunked=True, Accept=NDJSON).status == 413


def _watched(port: Transport) -> bool:
    from invoker.protocols.web.service.page.handlers import MOST_WATCHERS

    connections = [RawHttp(port.address) for _ in range(MOST_WATCHERS)]
    try:
        for one in connections:
            one.send(b"GET /invocations HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
            assert b"200" in one.socket.recv(4096)
        return port.ask("GET", "/invocations", Accept=SSE).status == 503
    finally:
        for one in connections:
            one.socket.close()


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TYPED = "/tests.e2e.reference_functions.ReferenceFunctionsService/Square"
GRAPHPIPE = "`/graphpipe`, `/graphpipe/NAME`"
QUESTIONS: dict[str, dict[str, Question]] = {
    "paths": {
        "`/NAME` POST": _gives(b"9", "/square", b"3", JSON),
        "`/NAME` GET, HEAD": lambda port: port.ask("GET", "/square?x=3").body == b"9"
        and port.ask("HEAD", "/square?x=3")[::2] == (200, b""),
        "`/NAME/ws` WebSocket": lambda port: b" 101 " in port.socket("/square/ws"),
        "`/` POST": lambda port: port.ask("POST", "/", b"3", Content_Type=JSON, Invoker_Function="square").body == b"9",
        "`/` WebSocket": lambda port: b" 101 " in port.socket("/"),
        "`/` GET, HEAD": lambda port: b"<html" in port.ask("GET", "/", Accept="text/html").body.lower()
        and port.ask("HEAD", "/", Accept="text/html").status == 200,
        "`/PACKAGE.SERVICE/METHOD` POST": lambda port: (
            json.loads(port.post(TYPED, b'{"x": "3"}', JSON).body) == {"out": "9"}
        ),
        "`/PACKAGE.SERVICE/METHOD` GET": lambda port: (
            json.loads(port.ask("GET", f"{TYPED}?connect=v1&encoding=json&message=%7B%22x%22%3A%223%22%7D").body)
            == {"out": "9"}
        ),
        "`/invocations` GET, HEAD": lambda port: b'"invocations"' in port.ask("GET", "/invocations").body,
        "`/functions` GET, HEAD": lambda port: b'"square"' in port.ask("GET", "/functions").body,
        "`/openapi.json` GET, HEAD": lambda port: json.loads(port.ask("GET", "/openapi.json").body)["openapi"] >= "3.1",
        f"{GRAPHPIPE} POST": _posts(400, "/graphpipe/square", b"no tensor", "*/*", "application/octet-stream"),
        f"{GRAPHPIPE} GET, HEAD": _is(200, "/graphpipe/square"),
        "`/livez`, `/healthz` GET, HEAD": lambda port: _is(200, "/livez")(port) and _is(200, "/healthz", "HEAD")(port),
        "`/readyz` GET, HEAD": _is(200, "/readyz"),
        "`/control/is_alive`, `/control/is_ready` GET, HEAD": lambda port: _is(200, "/control/is_alive")(port)
        and _is(200, "/control/is_ready")(port),
        "`/metrics` GET, HEAD": lambda port: b"invoker_" in port.ask("GET", "/metrics").body,
    },
    "formats": {
        f"`{SSE}`": _events,
        f"`{NDJSON}`": _lines,
        f"`{MIXED}`": _parts,
        "none of these, at `/NAME`, of `str`": _pieces("/echo", b"a b", b"a b", "text/plain; charset=utf-8"),
        "none of these, at `/NAME`, of `bytes`": _pieces("/same", b"a b", b"a b", "application/octet-stream"),
        "none of these, at `/NAME`, of anything else": lambda port: (
            _pieces("/count", b"2", b"1\n2\n", NDJSON)(port) and _pieces("/split", b"1", b'{"odd":1}\n', NDJSON)(port)
        ),
    },
    "bodies": {
        "a value of any media type": _gives(b'"a b"\n', "/echo", b"a b", NDJSON, "text/plain"),
        "a JSON object, or a form, of parameters' names": _gives(b"9", "/square", b'{"x": 3}', JSON),
        "`application/x-ndjson` (`application/ndjson`, `application/jsonl`)": lambda port: all(
            port.post("/echo", b'"a"\n"b"\n', NDJSON, type_).body == b'"a"\n"b"\n'
            for type_ in (NDJSON, "application/ndjson", "application/jsonl")
        ),
        "the same, for several inputs": _gives(b'"aa"\n', "/repeat", b'{"words": "a"}\n{"counts": 2}', NDJSON, NDJSON),
        "`multipart/form-data`, where a stream is asked for": _of_form,
        "no announced length, of no type or `text/plain`, where a stream is asked for, or at `/NAME`": lambda port: (
            _streams(b'"a"\n"b"\n', "/echo", b"a\nb\n")(port)
            and _streams(b'"a"\n', "/echo", b"a\n", type_="text/plain")(port)
            and _streams(b"1\n0\n", "/objects", b'{"a": 1}\n{}\n')(port)
        ),
        "the same or `application/octet-stream`, for an input of bytes": lambda port: sum(
            map(int, port.stream("/sizes", b"abc", b"de", type_="application/octet-stream").split())
        )
        == 5,
        "`application/octet-stream`, or no type, longer than a message may be, for an input of bytes": lambda port: (
            sum(map(int, port.ask("POST", "/sizes", bytes(5 << 20)).body.split())) == 5 << 20
        ),
    },
    "statuses": {
        "200": lambda port: _posts(200, "/square")(port) and _posts(200, "/count", accept=SSE)(port),
        "204": lambda port: _is(204, "/count?to=1", Accept=SSE, Last_Event_ID="1")(port)
        and _posts(204, "/sink")(port)
        and _is(204, "/square", "OPTIONS", Origin=ORIGIN, Access_Control_Request_Method="POST")(port),
        "304": _unchanged,
        "400": _posts(400, "/square", b'"no number"'),
        "403": _is(403, "/square?x=3", Origin="https://evil.example"),
        "404": _posts(404, "/nothing"),
        "405": lambda port: (answer := port.ask("GET", "/echo")).status == 405 and "POST" in answer.headers["allow"],
        "406": _posts(406, "/square", accept="image/png"),
        "413": _posts(413, "/square", b"1" * 5000),
        "415": _posts(415, "/square", type_="image/png"),
        "426": _is(426, "/square/ws"),
        "429": _rare,
        "431": lambda port: port.raw(_head(size=20_000)) == 431,
        "500": lambda port: _posts(500, "/failing", b"0", "*/*")(port)
        and port.ask("POST", "/", b"2", Content_Type=JSON, Invoker_Function="count").status == 500,
        "501": lambda port: port.raw(
            b"POST /square HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n"
        ) == 501,
        "503": _full,
        "504": _posts(504, "/slow", b"%d" % (SLOW + 1)),
        "505": lambda port: port.raw(b"GET /livez HTTP/3.0\r\nHost: localhost\r\n\r\n") == 505,
    },
    "chosen": {
        str(status): _chosen(status) for status in (400, 401, 403, 404, 409, 429, 499, 500, 501, 503, 504)
    },
    "headers": {
        "`Content-Length`": _has_length,
        "`Content-Type`": _has("content-type", "text/plain; charset=utf-8", Accept="text/plain"),
        "`X-Content-Type-Options`": _has("x-content-type-options", "nosniff"),
        "`Connection: close`": _drains,
        "`Retry-After`": _rare,
        "`traceparent`, `traceresponse`": _traced,
        "`Vary: Origin`": _has("vary", "Origin"),
        "`Access-Control-Allow-Origin`": _has("access-control-allow-origin", ORIGIN, Origin=ORIGIN),
        "`Access-Control-Expose-Headers`": _has("access-control-expose-headers", "*", Origin=ORIGIN),
    },
    "stream-headers": {f"`{accept}`": _streams_with(accept) for accept in (SSE, NDJSON, MIXED)},
    "limits": {
        "a body that is one value": _posts(413, "/square", b"1" * 5000),
        "an item of a body that streams in": _long_item,
        "a body of `/graphpipe`": _posts(413, "/graphpipe/square", b"1" * 5000, "*/*", "application/octet-stream"),
        "the head of a request": lambda port: [port.raw(_head(size=n)) for n in (15_000, 17_000)] == [200, 431],
        "fields of a head of HTTP/1": lambda port: [port.raw(_head(fields=n)) for n in (490, 500)] == [200, 431],
        "watchers of `/invocations` at once, as events": _watched,
    },
}  # fmt: skip
ELSEWHERE = {
    "statuses": {"408": "tests/transports/http/test_exchange.py"},
    "limits": {
        "requests of HTTP/1 behind the one that is answered": "tests/transports/http/test_h1.py",
        "a connection without a request": "tests/transports/http/test_h1.py",
        "a body that is one value, in time": "tests/transports/http/test_exchange.py",
        "the head of a stream": "tests/transports/http/test_streamed.py",
        "events without an item": "tests/transports/http/test_streamed.py",
        "a client that takes nothing of its response": "tests/transports/http/test_h1.py",
        "a message of WebSocket": "tests/protocols/web/service/test_sockets.py",
        "a WebSocket on which nothing comes": "tests/transports/http/test_socketconnection.py",
        "a WebSocket that takes nothing of what is sent": "tests/transports/http/test_socketconnection.py",
        "a peer whose machine is gone": "tests/transports/test_sockets.py",
        "requests at once on a connection of HTTP/2": "tests/transports/http/test_h2.py",
        "frames of HTTP/2 that ask for nothing": "tests/transports/http/test_h2.py",
        "CONTINUATION frames of one head": "tests/transports/http/test_h2.py",
        "connections": "tests/transports/http/test_connections.py",
        "connections with requests": "tests/attack/test_crowds.py",
    },
}
"""Rows that take a clock of one's own, or another client; each with its tests."""


@pytest.mark.parametrize("name", sorted(tables()))
def test_each_row_is_asked_for(name: str) -> None:
    """A row without a question, and a question without a row, fail here."""
    assert sorted(tables()[name].keys) == sorted([*QUESTIONS[name], *ELSEWHERE.get(name, ())])


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, rows in QUESTIONS.items() for row in rows])
def test_the_server_does_what_the_row_says(port: Transport, name: str, row: str) -> None:
    """Asked as a client would."""
    assert QUESTIONS[name][row](port)
