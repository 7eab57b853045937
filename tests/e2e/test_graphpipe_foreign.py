"""What GraphPipe clients in other languages send, byte by byte, and what they can read of the answers.

Requests are recordings of the clients themselves, heads and bodies: tests/data/graphpipe/README.md. The clients read
answers in their own ways: that of Go shows the body of whatever has not status 200; that of Java looks at no status,
and takes each body for an InferResponse, of which it reads the tensors only.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from invoker.tensors import Code
from invoker.tensors.arrays import to_array
from tests.conftest import SLOW
from tests.protocols.graphpipe.asking import code_of, received
from tests.serving import Served, serving
from tests.tensors.samples import DATA, fixture

TIMEOUT_S = 10 * SLOW

CLASSES = [("<i8", [1, 0]), ("<f4", [1, 2])]
TEN_TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
ASKED = {
    "go_float32": ("echo", [("<f4", [[1, 2]])]),
    "go_float16": ("echo", [("<f2", np.array([0, 0x3E, 1, 0x7E], "u1").view("<f2"))]),
    "go_scalar": ("echo", [("<i8", 7)]),
    "go_string_scalar": ("speak", [("|O", b"one")]),
    "go_empty": ("echo", [("<f4", np.zeros((0, 3)))]),
    "go_named": ("pair", [("<f4", [-2, -1])]),
    "go_config": ("pair", [("<f4", [-1, 1])]),
    "go_outputs": ("classify", CLASSES),
    "go_strings": ("speak", [("|O", [b"a", b"", b"four"])]),
    "go_strings_2d": ("speak", [("|O", [[b"a\0", b"\xff\xfe"], [b"x\0y", "é".encode()]])]),
    "go_all_types": ("types", TEN_TYPES),
    "java_float32": ("echo", [("<f4", [[1, 2]])]),
    "java_scalar": ("echo", [("<f4", 7)]),
    "java_empty": ("echo", [("<f4", np.zeros((0, 3)))]),
    "java_named": ("pair", [("<f4", [-1, 1])]),
    "java_outputs": ("classify", CLASSES),
    "java_strings": ("speak", [("|O", [[b"a", b""], [b"x\0y", "é😀".encode()]])]),
    "java_all_types": ("types", TEN_TYPES[1::2][:4] + TEN_TYPES[8:]),
    "js_named": ("classify", CLASSES[::-1]),
}
"""Of each request: the model, and its outputs; for `types`, what it was sent."""


class Answer(NamedTuple):
    """What has come back."""

    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """The models, the first at the root."""
    with serving("tests.e2e.foreign_models", "--http-root", "graphpipe") as found:
        yield found


@pytest.fixture
def line(served: Served) -> Iterator[socket.socket]:
    """A connection to the HTTP transport."""
    host, _, port = served.http.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield sock


def parts(name: str, path: str) -> tuple[bytes, bytes]:
    """Head and body of a request as its client sends them."""
    client, _, _ = name.partition("_")
    body = fixture(name)
    head = (DATA / f"{client}_head.txt").read_text().format(path=path, host="127.0.0.1:9000", length=len(body))
    return head.replace("\n", "\r\n").encode() + b"\r\n", body


def answer(sock: socket.socket) -> Answer:
    """The next one on a connection."""
    response = http.client.HTTPResponse(sock)
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def asked(sock: socket.socket, name: str, path: str) -> Answer:
    """Send a request at once, as the Go client does when it is small, and take its answer."""
    sock.sendall(b"".join(parts(name, path)))
    return answer(sock)


def check(got: Answer, expected: list[Any]) -> None:
    """An answer is what the client can take: one buffer of the length that is said, neither packed nor in chunks."""
    assert got.status == 200, got.body
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-length"] == str(len(got.body))
    assert not {"content-encoding", "transfer-encoding"} & set(got.headers)
    if isinstance(expected[0], str):
        said = [f"{name} {np.array([0, 1, 100], name).tolist()}".encode() for name in expected]
        expected = [("|O", said)]
    assert received(got.body).errors == ()
    found = [to_array(one) for one in received(got.body).tensors]
    assert [one.dtype.str for one in found] == [dtype for dtype, _ in expected]
    for one, (dtype, value) in zip(found, expected, strict=True):
        wanted = np.array(value, dtype)
        assert (one.dtype, one.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(one, wanted)


@pytest.mark.parametrize("name", ASKED)
def test_G001_G012_requests_of_other_clients(line: socket.socket, name: str) -> None:
    """Twice on one connection: in one piece, and the body after its head."""
    model, expected = ASKED[name]
    check(asked(line, name, f"/graphpipe/{model}"), expected)
    for part in parts(name, f"/graphpipe/{model}"):
        line.sendall(part)
    check(answer(line), expected)


@pytest.mark.parametrize("client", ["go", "java"])
def test_G009_at_the_root(line: socket.socket, client: str) -> None:
    """Where their examples ask."""
    check(asked(line, f"{client}_float32", "/"), [("<f4", [[1, 2]])])


@pytest.mark.parametrize("path", ["/graphpipe/classify", "/graphpipe/fail"])
def test_GT46_go_shows_why_it_failed(line: socket.socket, path: str) -> None:
    """A program prints the body behind the status: the reason is in it, as text; the next request is served."""
    got = asked(line, "go_wrong_type", path)
    assert got.status == (400 if "classify" in path else 500)
    reason = (
        b"input 'rows' is Float64, and Float32 is declared"
        if "classify" in path
        else b"nothing can be made of 2 elements"
    )
    assert reason in got.body
    check(asked(line, "go_float32", "/graphpipe/echo"), [("<f4", [[1, 2]])])


def test_G009_go_shows_where_the_models_are(line: socket.socket) -> None:
    """An unknown path is told in text."""
    got = asked(line, "go_float32", "/nowhere")
    assert (got.status, got.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert b"/graphpipe/echo" in got.body


@pytest.mark.parametrize("path", ["/graphpipe/classify", "/graphpipe/fail"])
def test_G064_G082_java_gets_no_tensors_of_an_error(line: socket.socket, path: str) -> None:
    """It reads the body of each status as an InferResponse: a list without elements, and nothing that is not there."""
    got = asked(line, "java_wrong_type", path)
    assert received(got.body).tensors == ()
    assert code_of(got.body) is (Code.TYPE_MISMATCH if "classify" in path else Code.FUNCTION_FAILED)
    check(asked(line, "java_float32", "/graphpipe/echo"), [("<f4", [[1, 2]])])
