"""A server that means no good: the client gives an array or `GraphPipeError`, in bounded memory and time."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from invoker.client.graphpipe import AsyncGraphPipe, GraphPipe, GraphPipeError
from invoker.protocols.graphpipe.client import http
from invoker.tensors import Code, Tensor, TensorType, write_error_response, write_infer_response
from invoker.tensors import GraphPipeError as StoreChanged
from invoker.tensors.arrays import to_tensor
from tests.conftest import SLOW
from tests.protocols.graphpipe.client.peer import LOOPBACK, Answer, page, serving
from tests.tensors.samples import OWN, Raw, numbers, strings

pytestmark = pytest.mark.timeout(15)

LIMIT = 1 << 17
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ASKED = np.float32([1, 2])

many = settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def asked(url: str, **more: Any) -> Any:
    """What one request comes to: its result, or the error, which is of the one documented class."""
    with GraphPipe(url, timeout_s=5, limit_bytes=LIMIT) as model:
        try:
            return model.infer(ASKED, **more)
        except GraphPipeError as error:
            return error


def is_usable(found: Any) -> bool:
    """Whether it is what `infer` may give, or raise."""
    several = found if isinstance(found, list) else [found]
    if isinstance(found, GraphPipeError):
        return bool(str(found)) and (found.http_status is None or 100 <= found.http_status <= 999)
    return bool(several) and all(isinstance(one, np.ndarray) for one in several)


@contextlib.contextmanager
def endless(first: bytes, more: bytes) -> Iterator[str]:
    """Serve one connection on which something comes until the client has enough."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen()

        def send() -> None:
            sock, _ = listener.accept()
            with sock, contextlib.suppress(OSError):
                sock.recv(1000)
                sock.sendall(first)
                while True:
                    sock.sendall(more)

        thread = threading.Thread(target=send, name="endless server")
        thread.start()
        yield f"{LOOPBACK}:{listener.getsockname()[1]}"
        thread.join(15)
        assert not thread.is_alive()


ENDLESS = {
    "a body": (HEAD + b"\r\n", b"x" * 65536),
    "a body of fewer than no bytes": (HEAD + b"Content-Length: -7\r\n\r\n", b"x" * 65536),
    "a body of more digits than a number has": (HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", b"x" * 65536),
    "chunks": (CHUNKED, b"1\r\nx\r\n" * 10_000),
    "chunks with notes": (CHUNKED, b"1;" + b"e" * 60_000 + b"\r\nx\r\n"),
    "a chunk of -1 bytes": (CHUNKED + b"-1\r\n", b"x" * 65536),
    "a chunk of -5 bytes": (CHUNKED + b"-5\r\n", b"x" * 65536),
    "a chunk of very many bytes": (CHUNKED + b"f" * 60_000 + b"\r\n", b"x" * 65536),
    "a size of a chunk": (CHUNKED, b"0" * 65536),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n" * 10_000),
    "headers": (HEAD, b"a: b\r\n" * 10_000),
    "a header": (HEAD, b"a" * 65536),
    "a status": (b"HTTP/1.1 200 ", b"a" * 65536),
    "announcements": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 5000),
    "an encoding nobody asked for": (HEAD + b"Content-Encoding: gzip\r\n\r\n", b"x" * 65536),
    "another protocol": (b"220 mail.test ESMTP\r\n", b"250 OK\r\n" * 5000),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_G096_G112_what_does_not_end_is_cut(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In time, and in memory: a few limits, whatever is said of sizes."""
    monkeypatch.setattr(http, "_HEADS_BYTES", 1 << 17)
    with endless(*ENDLESS[what]) as address:
        tracemalloc.start()
        began = time.process_time()
        try:
            found = asked(f"http://{address}")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert isinstance(found, GraphPipeError)
    assert not found.is_retryable
    assert time.process_time() - began < SLOW
    assert peak < 4 * LIMIT + (1 << 21)


@pytest.mark.parametrize("size", [0, LIMIT + 1, 2**31, 2**32 - 1])
def test_G096_G017_a_frame_of_a_size_that_is_none(size: int) -> None:
    """Nothing is set aside for it."""
    with endless(struct.pack("<I", size), b"x" * 65536) as address:
        tracemalloc.start()
        try:
            found = asked(f"tcp://{address}")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert isinstance(found, GraphPipeError)
    assert found.code == (Code.TOO_LARGE if size else Code.MALFORMED)
    assert peak < LIMIT + (1 << 21)


GOOD = bytes(write_infer_response([numbers(TensorType.FLOAT32), strings(b"a\0", b"")]))
ERRORS = write_error_response(StoreChanged(Code.SHAPE, "it is round"))
LINES = st.sampled_from(
    [b"Content-Length: 8", b"Content-Length: x", b"Content-Length: 1_0", b"Content-Length: %d" % len(GOOD), b"",
     b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Content-Encoding: br", b"Connection: close",
     b"X-GraphPipe-Error: 4", b"X-GraphPipe-Error: \xff", b" folded", b"no colon", b":", b"\0: \0", b"Upgrade: h2c",
     b"Content-Type: multipart/mixed; boundary=x", b"X: =?utf-8?b?/w==?="]
)  # fmt: skip
HEADS = st.builds(
    lambda version, status, lines: b"\r\n".join([version + b" " + status, *lines, b"", b""]),
    st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2", b"ICY", b"HTTP/1.1 "]),
    st.sampled_from([b"200 OK", b"200", b"200 \xff\0", b"99 x", b"1000 x", b"-1 x", b"500 No", b"204 x", b"304 x",
                     b"100 x", b"101 x", b"301 x", b"x"]),
    st.lists(LINES, max_size=4),
)  # fmt: skip


def flipped(whole: bytes) -> st.SearchStrategy[bytes]:
    """The same with a few bits of it turned, or cut."""

    def turned(bits: list[int], end: int) -> bytes:
        buffer = bytearray(whole)
        for bit in bits:
            buffer[bit // 8] ^= 1 << bit % 8
        return bytes(buffer[:end])

    last = len(whole)
    return st.builds(
        turned, st.lists(st.integers(0, 8 * last - 1), max_size=3), st.sampled_from([last] * 4) | st.integers(0, last)
    )


BODIES = st.one_of(st.binary(max_size=60), *map(flipped, (GOOD, ERRORS, OWN["metadata"], OWN["request"])))
ANY = st.builds(lambda head, body: head + body, HEADS, BODIES) | st.binary(max_size=60)


@contextlib.contextmanager
def saying(*, is_raw: bool = False) -> Iterator[tuple[str, list[bytes]]]:
    """A server that says the last thing in a list, and closes."""
    said: list[bytes] = [b""]
    with serving(lambda _: Answer(said[-1], "closed"), is_raw=is_raw) as peer:
        yield f"{'tcp' if is_raw else 'http'}://{peer.address}", said


def test_G096_any_answer_by_HTTP_is_an_array_or_an_error() -> None:
    """Any head, any body."""
    with saying() as (url, said):

        @many
        @given(ANY)
        @example(b"")
        @example(HEAD + b"\r\n" + GOOD)
        @example(CHUNKED + b"-1\r\n")
        @example(CHUNKED + b"zz\r\n")
        def check(raw: bytes) -> None:
            said.append(raw)
            assert is_usable(asked(url))

        check()
        said.append(HEAD + b"\r\n" + GOOD)
        assert isinstance(asked(url), list)


def test_G096_any_answer_by_a_raw_socket_is_an_array_or_an_error() -> None:
    """Any length before any body."""
    with saying(is_raw=True) as (url, said):

        @many
        @given(st.binary(max_size=4) | BODIES.map(lambda body: struct.pack("<I", len(body)) + body) | BODIES)
        def check(raw: bytes) -> None:
            said.append(raw)
            assert is_usable(asked(url))

        check()


def test_G087_any_description_is_read_or_refused() -> None:
    """Also one that is an error, or something else."""
    with saying() as (url, said), GraphPipe(url, timeout_s=5, limit_bytes=LIMIT) as model:

        @many
        @given(BODIES)
        def check(body: bytes) -> None:
            said.append(page(body).raw)
            with contextlib.suppress(GraphPipeError):
                found = model.metadata()
                assert all(isinstance(one.name, str) for one in (*found.inputs, *found.outputs))

        check()


@pytest.mark.parametrize(
    "status", [101, 199, 200, 201, 206, 226, 299, 301, 307, 400, 404, 413, 418, 499, 500, 503, 599, 999]
)
def test_G085_G086_any_status_with_any_kind_of_body(status: int) -> None:
    """Errors of a body count before its status; results only with 200."""
    is_read = status >= 200
    for body, code, text in ((ERRORS, Code.SHAPE, "it is round"), (GOOD, None, ""), (b"oops\n", None, "oops")):
        with serving(page(body, f"{status} Whatever", ending="closed")) as peer:
            found = asked(peer.http)
        if status == 200 and body is GOOD:
            assert [one.tolist() for one in found] == [[[0, 1, 2], [3, 4, 5]], [b"a\0", b""]]
            continue
        assert isinstance(found, GraphPipeError)
        assert found.http_status == status
        assert found.code == (Code.MALFORMED if status == 200 and body == b"oops\n" else code if is_read else None)
        assert text in found.message or not is_read or status == 200


@pytest.mark.parametrize("outputs", [1, 3, 1000])
@pytest.mark.parametrize("wanted", [None, "y", ["y"], ["y", "z"], []])
def test_G098_another_number_of_outputs(outputs: int, wanted: Any) -> None:
    """Is an error where some were named."""
    body = bytes(write_infer_response([to_tensor([float(number)]) for number in range(outputs)]))
    with serving(page(body)) as peer:
        found = asked(peer.http, outputs=wanted)
    names = [wanted] if isinstance(wanted, str) else wanted or []
    if names and len(names) != outputs:
        assert isinstance(found, GraphPipeError)
        assert found.code == Code.BAD_OUTPUT
    elif isinstance(wanted, list) and names:
        assert found["y"].tolist() == [0.0]
    else:
        assert is_usable(found)
        assert isinstance(found, list) == (outputs > 1)


def bomb(count: int, slot: int, field: int, octets: bytes) -> bytes:
    """A response with many references to one tensor, or one error, that holds so many bytes."""
    raw = Raw()
    root = raw.table([None] * slot + [bytes(4)])
    vector = raw.open(count)
    raw.link(root + 4, vector)
    fields: list[bytes | None] = [b"\1\0\0\0", bytes(4), bytes(4)] if slot == 0 else [bytes(8), bytes(4)]
    table = raw.table(fields)
    if slot == 0:
        raw.link(table + 8, raw.shape(len(octets)))
    raw.link(table + field, raw.octets(octets))
    for at in range(vector + 4, vector + 4 + 4 * count, 4):
        raw.link(at, table)
    return raw.root(root)


BOMBS = {
    "1000 references to one tensor": bomb(1000, 0, 12, bytes(LIMIT - 6000)),
    "1024 references to one text": bomb(1024, 1, 12, b"x" * (LIMIT - 6000)),
    "3 references to one text that is none": bomb(3, 1, 12, b"\xff" * (LIMIT - 6000)),
    "one wide text": bomb(1, 1, 12, b"x" * (LIMIT - 6000) + "\U0001f600".encode()),
    "1025 tensors": bomb(1025, 0, 12, b""),
    "a shape of too many sizes": bytes(write_infer_response([Tensor(TensorType.INT8, (0,) * 33, memoryview(b""))])),
    "a shape beyond all bounds": bytes(
        write_infer_response([Tensor(TensorType.INT8, (2**62, 2**62, 0), memoryview(b""))])
    ),
    "a shape that overflows": bytes(write_infer_response([Tensor(TensorType.INT8, (2**40, 2**40), memoryview(b""))])),
    "a shape below zero": bytes(write_infer_response([Tensor(TensorType.INT8, (-1, -1), memoryview(b"x"))])),
    "a type that is none": GOOD.replace(b"\x0a\0\0\0", b"\x0d\0\0\0"),
}


@pytest.mark.parametrize("what", BOMBS)
@pytest.mark.parametrize("is_raw", [True, False])
async def test_G096_a_bomb_is_refused(what: str, is_raw: bool) -> None:
    """In the bounds that a server keeps to; by both clients."""
    body = BOMBS[what]
    answer = Answer(struct.pack("<I", len(body)) + body) if is_raw else page(body)
    with serving(answer, is_raw=is_raw) as peer:
        url = f"tcp://{peer.address}" if is_raw else peer.http
        tracemalloc.start()
        try:
            found = asked(url)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        async with AsyncGraphPipe(url, limit_bytes=LIMIT) as model:
            with pytest.raises(GraphPipeError):
                await model.infer(ASKED)
    assert isinstance(found, GraphPipeError)
    assert peak < 8 * LIMIT + (1 << 21)
