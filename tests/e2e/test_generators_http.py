"""What generators answer at their own paths to whoever asks for no stream: each kind of them, by each kind of HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
from collections.abc import Iterator

import pytest

from tests.conftest import SLOW
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(30)

TEXT = "text/plain; charset=utf-8"
OCTETS = "application/octet-stream"
LINES = "application/x-ndjson"

FUNCTIONS = """
import asyncio, threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple
from invoker import Message, function

go_on = threading.Event()

VALUES = {
    "text": (str, ["a", "\\u00fc", "c"]), "data": (bytes, [b"\\x00a", b"b", b"\\xff"]), "number": (int, [1, 2, 3]),
    "table": (dict[str, int], [{"a": 1}, {}, {"b": 2}]), "bare": (Any, ["a", 1, None]),
    "either": (str | int, ["a", 2, "b"]), "maybe": (str | None, ["a", None, "c"]),
}

def made(name, kind, values, is_async):
    def sync(n: int, breaks: bool = False):
        yield from values[:n]
        if breaks:
            raise ValueError("broken")
    async def later(n: int, breaks: bool = False):
        for one in values[:n]:
            await asyncio.sleep(0)
            yield one
        if breaks:
            raise ValueError("broken")
    fn = later if is_async else sync
    fn.__name__ = fn.__qualname__ = name
    fn.__annotations__["return"] = (AsyncIterator if is_async else Iterator)[kind]
    return function(safe=True)(fn)

for name, (kind, values) in VALUES.items():
    globals()[name] = made(name, kind, values, False)
    globals()["a" + name] = made("a" + name, kind, values, True)

class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[int]

@function
def split(n: int) -> Split: return Split(iter(range(0, n, 2)), iter(range(1, n, 2)))

@function
def told(n: int) -> Iterator[Message[bytes]]:
    for index in range(n):
        yield Message(b"%d" % index, media_type="image/png", headers={"X-Http-Status": "201", "X-Own": str(index)})

@function
async def late(n: int) -> AsyncIterator[Message[str]]:
    await asyncio.sleep(0.8)  # behind the time when the head of a stream leaves
    yield Message("<b>", media_type="text/html")
    yield Message("x")

@function
def gated(n: int) -> Iterator[str]:
    yield "first"
    go_on.wait(20)
    yield "last"

@function
async def agated(n: int) -> AsyncIterator[str]:
    yield "first"
    while not go_on.is_set(): await asyncio.sleep(0.01)
    yield "last"

@function
def release(n: int) -> int:
    go_on.set()
    return n

@function
def hold(n: int) -> int:
    go_on.clear()
    return n

@function
def count(data: Iterator[bytes], k: int = 1) -> int: return sum(map(len, data)) * k
@function
async def acount(data: AsyncIterator[bytes]) -> int:
    total = 0
    async for one in data: total += len(one)
    return total
@function
def words(lines: Iterator[str]) -> int: return sum(1 for _ in lines)
@function
def size(data: bytes) -> int: return len(data)
@function
def double(x: int) -> int: return x * 2
"""
EXPECTED: dict[str, tuple[str, list[bytes]]] = {
    "text": (TEXT, [b"a", "\u00fc".encode(), b"c"]),
    "data": (OCTETS, [b"\x00a", b"b", b"\xff"]),
    "number": (LINES, [b"1\n", b"2\n", b"3\n"]),
    "table": (LINES, [b'{"a":1}\n', b"{}\n", b'{"b":2}\n']),
    "bare": (LINES, [b'"a"\n', b"1\n", b"null\n"]),
    "either": (LINES, [b'"a"\n', b"2\n", b'"b"\n']),
    "maybe": (LINES, [b'"a"\n', b"null\n", b'"c"\n']),
}
KINDS = [*EXPECTED, *(f"a{name}" for name in EXPECTED)]
WIRES = [("--http1.1", 18), ("--http2-prior-knowledge", 92)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """All kinds of generators."""
    module = tmp_path_factory.mktemp("generators") / "generators.py"
    module.write_text(FUNCTIONS)
    with serving(str(module), "--max-message-bytes", "100000") as served:
        yield served


def curl(server: Served, path: str, *args: str, sent: bytes = b"") -> tuple[int, int, str, bytes]:
    """Exit code, status, media type and body."""
    command = ["curl", "-sS", "-N", "-w", "%{stderr}%{http_code} %{content_type}", f"http://{server.http}{path}", *args]
    done = subprocess.run(command, input=sent, capture_output=True, timeout=20 * SLOW, check=False)
    status, _, kind = done.stderr.decode().splitlines()[-1].partition(" ")
    return done.returncode, int(status), kind, done.stdout


@pytest.mark.parametrize(("wire", "cut"), WIRES)
@pytest.mark.parametrize("name", KINDS)
def test_H240_values_stream_in_the_form_that_suits_them(server, name, wire, cut):
    """None, one or several; an error behind the first breaks the response off, and before it is a status."""
    media_type, pieces = EXPECTED[name.removeprefix("a")] if name not in EXPECTED else EXPECTED[name]
    for count in (0, 1, 3):
        body = b"".join(pieces[:count])
        assert curl(server, f"/{name}", wire, "-d", str(count)) == (0, 200, media_type, body)
        if count:
            exit_code, status, kind, got = curl(server, f"/{name}?breaks=true", wire, "-d", str(count))
            assert exit_code == cut
            if cut == 18:  # over HTTP/2, curl forgets what has come together with the reset
                assert (status, kind, got[: len(body)]) == (200, media_type, body)
                assert (media_type == LINES) == (b'{"error":' in got[len(body) :])
        else:
            assert curl(server, f"/{name}?breaks=true", wire, "-d", "0")[:2] == (0, 500)
    assert curl(server, f"/{name}?n=2", wire) == (0, 200, media_type, b"".join(pieces[:2]))
    exit_code, status, kind, _ = curl(server, f"/{name}?n=2", wire, "-I")
    assert (exit_code, status, kind) == (0, 200, media_type)


@pytest.mark.parametrize(
    ("name", "accept", "kind"),
    [
        ("text", "*/*", TEXT),
        ("text", "text/*", TEXT),
        ("text", "application/json, text/plain, */*", TEXT),
        ("text", "application/*", LINES),
        ("text", "application/json", 406),
        ("text", "image/png", 406),
        ("number", "text/html,application/xhtml+xml,*/*;q=0.8", LINES),
        ("number", "text/plain", 406),
        ("number", "application/json", 406),
        ("data", "application/octet-stream", OCTETS),
        ("data", "image/png, */*;q=0", 406),
        ("split", "*/*", LINES),
        ("split", "application/json", 406),
        ("text", "text/event-stream", "text/event-stream"),
    ],
)
def test_H240_accept_decides_or_nothing_runs(server, name, accept, kind):
    """A stream is what the function gives, so what is no stream of it is refused before it runs."""
    _, status, media_type, body = curl(server, f"/{name}", "-d", "2", "-H", f"Accept: {accept}")
    if kind == 406:
        assert status == 406
        assert b"the function gives a stream of values" in body
    else:
        assert (status, media_type) == (200, kind)


def test_H240_several_outputs_are_lines_with_names(server):
    """Each says whose it is."""
    _, status, kind, body = curl(server, "/split", "-d", "3")
    assert (status, kind) == (200, LINES)
    assert sorted(body.splitlines()) == [b'{"even":0}', b'{"even":2}', b'{"odd":1}']


def test_H240_the_first_message_says_what_the_body_is(server):
    """However long it takes."""
    assert curl(server, "/told", "-d", "3") == (0, 201, "image/png", b"012")
    assert curl(server, "/told", "-d", "0")[1:3] == (200, OCTETS)
    assert curl(server, "/late", "-d", "1") == (0, 200, "text/html; charset=utf-8", b"<b>x")


@pytest.mark.parametrize("name", ["gated", "agated"])
def test_H240_a_piece_leaves_before_the_next_is_made(server, name):
    """Whatever runs the function."""
    assert curl(server, "/hold", "-d", "1")[1] == 200
    connection = http.client.HTTPConnection(server.http, timeout=20 * SLOW)
    connection.request("POST", f"/{name}", b"1", {"Content-Type": "text/plain"})
    response = connection.getresponse()
    assert response.read1(100) == b"first"
    assert curl(server, "/release", "-d", "1")[1] == 200
    assert response.read() == b"last"
    connection.close()


def test_R149_at_the_root_the_answer_is_one_value(server):
    """A second one is an error that names the path where all of them are given."""
    for name in ("text", "anumber"):
        args = ("-d", "2", "-H", f"Invoker-Function: {name}")
        _, status, _, body = curl(server, "/", *args)
        assert (status, f"call /{name}".encode() in body) == (500, True), body
    _, status, _, body = curl(server, "/", "-d", "1", "-H", "Invoker-Function: number")
    assert (status, body) == (200, b"1")
    assert b"call /split" in curl(server, "/", "-d", "1", "-H", "Invoker-Function: split")[3]


@pytest.mark.parametrize("wire", [wire for wire, _ in WIRES])
@pytest.mark.parametrize("name", ["count", "acount"])
@pytest.mark.parametrize("size", [0, 1, 99_999, 300_000])
def test_H241_an_upload_of_any_size_needs_no_accept(server, tmp_path, wire, name, size):
    """Of no announced length, or of any; a value of bytes has its limit."""
    file = tmp_path / "sent"
    file.write_bytes(bytes(size))
    answer = (0, 200, "application/json", str(size).encode())
    assert curl(server, f"/{name}", wire, "-X", "POST", "-T", "-", sent=bytes(size)) == answer
    assert curl(server, f"/{name}", wire, "-X", "POST", "-T", str(file)) == answer
    if size > 100_000:
        assert curl(server, "/size", wire, "-X", "POST", "-T", str(file))[1] == 413
        root = ("-H", f"Invoker-Function: {name}", "-H", "Content-Type:", "--data-binary", f"@{file}")
        assert curl(server, "/", wire, *root)[1] == 413


def test_H241_lines_are_items_where_no_length_is_announced(server):
    """And a body of NDJSON is values of a function that is called for each, which are lines, too."""
    assert curl(server, "/words", "-X", "POST", "-T", "-", sent=b"a\nb\nc")[3] == b"3"
    assert curl(server, "/words", "-d", "a")[3] == b"1"
    args = ("-H", f"Content-Type: {LINES}", "--data-binary", "@-")
    assert curl(server, "/double", *args, sent=b"1\n2\n")[1:] == (200, LINES, b"2\n4\n")
    assert curl(server, "/double", *args, "-H", "Accept: application/json", sent=b"1\n")[1:] == (
        200,
        "application/json",
        b"2",
    )


def _rest(wire: socket.socket) -> bytes:
    return b"".join(iter(lambda: wire.recv(1 << 16), b""))


def test_H240_http_1_0_has_a_reset_instead_of_an_end(server):
    """An end of the connection would be taken for that of the body."""
    host, port = server.http.rsplit(":", 1)
    for query, is_cut in (("", False), ("?breaks=true", True)):
        with socket.create_connection((host, int(port)), timeout=10 * SLOW) as wire:
            wire.sendall(f"POST /text{query} HTTP/1.0\r\nContent-Length: 1\r\n\r\n3".encode())
            if is_cut:
                with pytest.raises(ConnectionResetError):
                    _rest(wire)
            else:
                assert _rest(wire).endswith("a\u00fcc".encode())


def test_H240_the_description_promises_what_is_given(server):
    """The first media type of each function is the one that comes without Accept."""
    paths = json.loads(curl(server, "/openapi.json")[3])["paths"]
    for name in KINDS:
        content = paths[f"/{name}"]["post"]["responses"]["200"]["content"]
        media_type, _ = EXPECTED[name.removeprefix("a")] if name not in EXPECTED else EXPECTED[name]
        assert next(iter(content)) == media_type.partition(";")[0]
        for accept in content:
            assert curl(server, f"/{name}", "-d", "1", "-H", f"Accept: {accept}")[2].startswith(accept)


SYNC = """
import time
from collections.abc import Iterator
from invoker import Message, function

def made(name, kind, values, pause_s):
    def fn(n: int, breaks: bool = False):
        for one in values[:n]:
            yield one
            time.sleep(pause_s)
        if breaks:
            raise ValueError("broken")
    fn.__name__ = fn.__qualname__ = name
    fn.__annotations__["return"] = Iterator[kind]
    return function(fn)

for pause, pause_s in (("", 0), ("slow", 0.1)):
    for name, kind, values in (("text", str, "abc"), ("data", bytes, [b"a", b"b", b"c"]), ("number", int, [1, 2, 3])):
        globals()[pause + name] = made(pause + name, kind, values, pause_s)

@function
def told(n: int) -> Iterator[Message[bytes]]:
    time.sleep(0.8)
    yield Message(b"a", media_type="image/png", headers={"X-Http-Status": "201"})
"""


def test_H240_the_thread_that_has_read_the_request_answers_the_same(tmp_path):
    """Where every function is sync: at once, and when the response has gone on in a thread of its own."""
    (tmp_path / "threads.py").write_text(SYNC)
    with serving(f"{tmp_path}/threads.py") as served:
        for name, media_type, body in (
            ("text", TEXT, b"abc"), ("data", OCTETS, b"abc"), ("number", LINES, b"1\n2\n3\n"),
        ):  # fmt: skip
            for pause in ("", "slow"):
                assert curl(served, f"/{pause}{name}", "-d", "3") == (0, 200, media_type, body)
                exit_code, *told, got = curl(served, f"/{pause}{name}?breaks=true", "-d", "3")
                assert (exit_code, told, got[: len(body)]) == (18, [200, media_type], body)
                assert (media_type == LINES) == (b'{"error":' in got[len(body) :])
        assert curl(served, "/told", "-d", "1") == (0, 201, "image/png", b"a")
