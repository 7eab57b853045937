"""The client libraries that measure calls verify what comes back, and requests are judged by what they ask for."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.bodies import Body, WrongReplyError
from benchmarks.callers import NODE_CLIENTS, run
from benchmarks.load import measure
from benchmarks.posts import Question, question
from benchmarks.process import group_processor_s
from benchmarks.rows import ROWS, Row, row_named
from benchmarks.servers import PEERS, Series, all_series, serving


def _series(name: str) -> Series:
    return next(one for one in all_series("", "/older") if one.name == name)


class _Echo(BaseHTTPRequestHandler):
    """Sends the body back, and 418 for the path /tea."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # so that head and body leave at once

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(418 if self.path == "/tea" else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    """The address of an HTTP server that echoes."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("driver", ["socket", "http.client", "fetch"])
def test_a_client_of_http_compares_each_reply(echo: str, driver: str) -> None:
    """The right ones give figures; another body or status ends the measurement."""
    if driver == "fetch" and shutil.which("node") is None:
        pytest.skip("node is missing")
    more = {"path": "/", "headers": {"content-type": "text/plain"}}
    found = run(driver, echo, [b"12"], b"12", streams=1, calls=20, **more)
    assert 0 < found["p50"] <= found["p99"]
    assert found["seconds"] > 0
    with pytest.raises(WrongReplyError, match=driver):
        run(driver, echo, [b"12"], b"144", streams=1, calls=20, **more)
    with pytest.raises(WrongReplyError, match="418"):
        run(driver, echo, [b"12"], b"12", streams=1, calls=20, **more | {"path": "/tea"})


@pytest.mark.timeout(30)
def test_a_client_of_node_says_more_than_a_pipe_holds(echo: str) -> None:
    """Its process ends when all that it measured is written."""
    if shutil.which("node") is None:
        pytest.skip("node is missing")
    found = run("fetch", echo, [b"12"], b"12", streams=1, calls=4000, path="/", headers={})
    assert found["p50"] > 0


@pytest.mark.timeout(20)
@pytest.mark.parametrize("driver", ["grpc.aio", "grpc-js"])
def test_a_client_of_grpc_compares_each_reply(driver: str) -> None:
    """Calls of one frame to a bare echo."""
    if driver == "grpc-js" and not NODE_CLIENTS.exists():
        pytest.skip("grpc-js is not installed")
    row = Row("any", "", 4, 20, Body(1, b"x"), unit="calls/s", mode="calls", driver=driver)
    with serving(Series("bare", "", "bare").command("echo")) as (address, pid):
        figures = measure(address, row)
        assert set(figures) == {"rate", "p50", "p99"}
        assert group_processor_s(pid) >= 0
        sent = [row.body.start[5:], row.body.round[5:]]
        with pytest.raises(WrongReplyError, match=driver):
            run(driver, address, sent, b"another", streams=1, calls=4)


def test_requests_by_h2load_are_counted(echo: str) -> None:
    """Status and bytes of every reply."""
    if shutil.which("h2load") is None:
        pytest.skip("h2load is missing")
    row = Row("any", "", 2, 20, Body(1, b"x"), unit="requests/s", mode="posts")
    asked = Question(b"hello", "text/plain", lambda reply: reply == b"hello")
    assert measure(echo, row, asked)["rate"] > 0
    with pytest.raises(WrongReplyError, match="hello"):
        measure(echo, row, Question(b"hello", "text/plain", lambda reply: reply == b"bye"))
    with pytest.raises(WrongReplyError, match="418"):
        measure(echo, row, Question(b"hello", "text/plain", lambda _: True, "/tea"))


@pytest.mark.parametrize(
    ("row", "column", "right", "wrong"),
    [
        ("square", "reply", b"144", b"12"),
        ("square", "fastapi", b"144", b"145"),
        ("square", "uvicorn", b"12", b"144"),
        ("post-text-16", "areply", b"x" * 16, b'"xxxxxxxxxxxxxxxx"'),
        ("post-json-16", "afastapi", b'{"data": "xxxxx"}', b'{"data": "xxxx"}'),
        ("tensor", "litserve", b"[[1.0,2.5,3.0,4.0]]", b"[1.0,2.5,3.0,4.0]"),
    ],
)
def test_a_reply_is_judged_by_what_it_means(row: str, column: str, right: bytes, wrong: bytes) -> None:
    """JSON by its value, all else by its bytes; the bare echo has to echo."""
    asked = question(_series(column), row_named(row))
    assert asked.is_right(right)
    assert not asked.is_right(wrong)


def test_an_inference_is_asked_for_at_its_path() -> None:
    """A function of ours gets a GraphPipe request."""
    asked = question(_series("reply"), row_named("tensor"))
    assert asked.path == "/graphpipe"
    assert asked.body != question(_series("fastapi"), row_named("tensor")).body


def test_peers_serve_http_only() -> None:
    """What another framework cannot do has no figure."""
    for row in ROWS:
        served = {name for name in PEERS if _series(name).serves(row)}
        assert not served or row.transport == "http"
        assert ({"starlette", "astarlette"} >= served) is (not served or row.is_stream)
    assert not _series("functions").serves(row_named("tensor"))
    assert not _series("litserve").serves(row_named("post-text-16"))
    assert not _series("gen-aio").serves(row_named("calls-js"))


def test_an_older_invoker_is_a_column() -> None:
    """It serves the functions of this checkout."""
    command = _series("reply-before").command("square")
    assert command[:2] == ["/older/.venv/bin/invoker", "benchmarks.functions:reply_square"]
