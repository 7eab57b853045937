"""`invoker.transports.http.plain`: which requests a thread may answer by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from invoker.core.http import RequestHead, Response
from invoker.errors import InvocationError
from invoker.transports.http.app import Handler, PreparedRequest, RequestSession, WholeHandler
from invoker.transports.http.exchange import Exchange
from invoker.transports.http.origins import Origins
from invoker.transports.http.plain import MOST_BODY_BYTES, PlainHeads
from tests.attack.smuggling import SMUGGLED

LINE = "POST / HTTP/1.1\r\n"
HOST = "Host: localhost\r\n"


class Some(PreparedRequest):
    """Requests with a head."""

    timeout_s = None

    def __init__(self, head: RequestHead) -> None:
        self.head = head

    def begin(self, body: bytes) -> tuple[RequestSession, Sequence[Any]]:
        raise AssertionError("nobody begins one here")

    def refusal(self, error: InvocationError) -> Response:
        raise AssertionError("nor refuses one")


class Counting(WholeHandler):
    """Answers every head, and counts them."""

    def __init__(self) -> None:
        self.heads: list[RequestHead] = []

    async def answer(self, exchange: Exchange) -> Response:
        raise AssertionError("this is not for the loop")

    def whole(self, head: RequestHead) -> PreparedRequest:
        self.heads.append(head)
        return Some(head)


def heads_of(handler: Handler | None, *, is_local: bool = False, origins: Sequence[str] = ()) -> PlainHeads:
    judge = Origins(origins)
    judge.bind("127.0.0.1", is_loopback=True)
    return PlainHeads(lambda _: handler, judge, is_local=is_local)


def is_plain(text: str) -> bool:
    return heads_of(Counting()).read(text.encode("latin-1")) is not None


def test_a_plain_head_is_read() -> None:
    """How long the request is, and what its handler made of the head."""
    text = f"POST /a?b=c HTTP/1.1\r\n{HOST}X-A: b\r\nContent-Length: 2\r\n\r\n"
    handler = Counting()
    plain = heads_of(handler).read(f"{text}91POST".encode())
    assert plain is not None
    assert (plain.size, plain.whole, plain.headers) == (len(text), len(text) + 2, ())
    headers = [("host", "localhost"), ("x-a", "b"), ("content-length", "2")]
    assert handler.heads == [RequestHead("POST", "/a", "b=c", "1.1", headers)]
    assert isinstance(plain.prepared, Some)


def test_the_same_bytes_are_read_once() -> None:
    """Whatever the body is; any other byte makes another head."""
    handler = Counting()
    heads = heads_of(handler)
    head = f"{LINE}{HOST}Content-Length: 1\r\n\r\n".encode()
    assert heads.read(head + b"1") is heads.read(head + b"2")
    assert heads.read(head.replace(b"localhost", b"127.0.0.1") + b"2") is not heads.read(head)
    assert len(handler.heads) == 2


def test_heads_that_never_come_again_do_not_fill_the_memory() -> None:
    """A client that makes up heads pushes out what was kept, and no more."""
    heads = heads_of(Counting())
    for number in range(5000):
        assert heads.read(f"{LINE}{HOST}X: {number}\r\nContent-Length: 1\r\n\r\n".encode()) is not None
    assert len(heads._kept) <= 512
    for number in range(200):
        assert heads.read(f"{LINE}{HOST}X: {number:09999}\r\nContent-Length: 1\r\n\r\n".encode()) is not None
    assert len(heads._kept) < 300  # 10 kB each, of which little more than 1 MiB is kept in each generation


@pytest.mark.parametrize(
    "text",
    [
        f"GET / HTTP/1.1\r\n{HOST}\r\n",
        f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 0\r\n\r\n",
        f"POST / HTTP/1.0\r\n{HOST}Content-Length: 0\r\n\r\n",
        f"POST / HTTP/1.0\r\n{HOST}Connection: keep-alive\r\nContent-Length: 0\r\n\r\n",
        f"POST http://localhost/ HTTP/1.1\r\n{HOST}Content-Length: 0\r\n\r\n",
        f"{LINE}{HOST}Content-Length: {MOST_BODY_BYTES + 1}\r\n\r\n",
        f"{LINE}{HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        f"{LINE}{HOST}Connection: close\r\nContent-Length: 0\r\n\r\n",
        f"{LINE}{HOST}Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n",
        f"{LINE}{HOST}Upgrade: websocket\r\nContent-Length: 0\r\n\r\n",
        f"{LINE}{HOST}Expect: 100-continue\r\nContent-Length: 0\r\n\r\n",
        f"{LINE}{HOST}Expect: something\r\nContent-Length: 0\r\n\r\n",
        f"{LINE}{HOST}HTTP2-Settings: x\r\nContent-Length: 0\r\n\r\n",
        f"{LINE}Content-Length: 0\r\n\r\n",
        f"{LINE}{HOST}Content-Length: 0\r\n",
        f"{LINE}{HOST}Content-Length: 0\n\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "",
    ],
)
def test_other_requests_are_not_plain(text: str) -> None:
    """The loop's server reads them, or refuses them."""
    assert is_plain(f"{LINE}{HOST}Content-Length: 0\r\n\r\n")
    assert not is_plain(text)


@pytest.mark.parametrize("name", SMUGGLED)
def test_R155_no_head_that_hides_another_is_plain(name: str) -> None:
    """Each of them is read by the loop's server, which refuses it."""
    assert heads_of(Counting()).read(SMUGGLED[name]) is None


def test_a_head_that_is_too_long_is_not_plain() -> None:
    """The loop's server says so."""
    assert is_plain(f"{LINE}{HOST}X: {'x' * 16000}\r\nContent-Length: 0\r\n\r\n")
    assert not is_plain(f"{LINE}{HOST}X: {'x' * 16384}\r\nContent-Length: 0\r\n\r\n")


def test_what_nobody_answers_in_a_thread_is_not_plain() -> None:
    """There is nobody at the path, or who is there answers on the loop."""

    class OnLoop(Handler):
        async def answer(self, exchange: Exchange) -> Response:
            raise AssertionError("not here")

    class Refusing(Counting):
        def whole(self, head: RequestHead) -> None:  # type: ignore[override]  # it may say so
            pass

    head = f"{LINE}{HOST}Content-Length: 0\r\n\r\n".encode()
    for handler in (None, OnLoop(), Refusing()):
        assert heads_of(handler).read(head) is None


def test_whom_origins_refuses_is_not_plain() -> None:
    """The loop's server says why. By a Unix socket any host may be asked for."""
    foreign = f"{LINE}Host: example.org\r\nContent-Length: 0\r\n\r\n".encode()
    assert heads_of(Counting()).read(foreign) is None
    assert heads_of(Counting(), is_local=True).read(foreign) is not None
    page = f"{LINE}{HOST}Origin: https://example.org\r\nContent-Length: 0\r\n\r\n".encode()
    assert heads_of(Counting()).read(page) is None
    plain = heads_of(Counting(), origins=["https://example.org"]).read(page)
    assert plain is not None
    assert ("Access-Control-Allow-Origin", "https://example.org") in plain.headers
