"""`invoker.transports.http.asgiexchange`: requests that are listened to, and streamed responses, as ASGI has them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from invoker.core.http import BodyChunk, RequestHead, Response, ResponseHead
from invoker.errors import InvocationError
from invoker.transports.http.asgiexchange import AsgiExchange
from invoker.transports.http.exchange import Exchange, HttpSettings
from tests.transports.served import until

HEAD = ResponseHead(200, (("Content-Type", "text/plain"),))


class Peer:
    """A server of ASGI: what it brings, and what it was given."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.takes = asyncio.Event()
        self.takes.set()

    def bring(self, body: bytes, *, more: bool = True) -> None:
        self.messages.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def leave(self) -> None:
        self.messages.put_nowait({"type": "http.disconnect"})

    async def receive(self) -> dict[str, Any]:
        return await self.messages.get()

    async def send(self, message: Any) -> None:
        await self.takes.wait()
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(one.get("body", b"") for one in self.sent)

    @property
    def is_over(self) -> bool:
        return bool(self.sent) and self.sent[-1].get("more_body") is False


class Listener:
    """Keeps what it hears; ``wants`` says what it answers."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.heard: list[bytes | None] = []
        self.errors: list[InvocationError] = []
        self.wants = True
        self.is_gone = False

    def arrived(self, frame: Any | None) -> bool:
        assert frame is None or isinstance(frame, BodyChunk)
        self.heard.append(None if frame is None else frame.payload)
        return self.wants

    def fail(self, error: InvocationError) -> None:
        self.errors.append(error)
        self.exchange.answer(Response(408, (), b"late"))

    def gone(self) -> None:
        self.is_gone = True


class Running:
    """One request that is listened to."""

    def __init__(self, **settings: float) -> None:
        self.peer = Peer()
        self.exchange = AsgiExchange(
            RequestHead("POST", "/x"),
            {"http_version": "2"},
            self.peer.receive,
            self.peer.send,
            HttpSettings(**settings),
        )
        self.exchange.headers = (("Vary", "Origin"),)
        self.listener = Listener(self.exchange)
        self.task = asyncio.create_task(self.exchange.run(lambda _: self.listener))

    @classmethod
    async def begun(cls, **settings: float) -> Running:
        run = cls(**settings)
        await asyncio.sleep(0)
        return run


async def test_H001_a_streamed_response_is_written_as_it_comes() -> None:
    """With the headers of the transport; the end is told once."""
    run = await Running.begun()
    run.exchange.begin(HEAD)
    run.exchange.write(b"a")
    await until(lambda: run.peer.body == b"a")
    run.exchange.write(b"b")
    run.exchange.end()
    assert await run.task is None
    start = run.peer.sent[0]
    assert (start["status"], dict(start["headers"])[b"vary"]) == (200, b"Origin")
    assert run.peer.body == b"ab"
    assert [one.get("more_body") for one in run.peer.sent].count(False) == 1
    assert run.peer.is_over


async def test_H002_a_cut_response_has_no_end() -> None:
    """An ASGI server resets the stream of an application that returns before the end."""
    run = await Running.begun()
    run.exchange.begin(HEAD)
    run.exchange.write(b"a")
    run.exchange.cut()
    assert await run.task is None
    assert run.peer.body == b"a"
    assert not run.peer.is_over


async def test_H003_the_body_is_heard_while_the_response_leaves() -> None:
    """And no more of it than the listener wants."""
    run = await Running.begun()
    run.exchange.begin(HEAD)
    run.peer.bring(b"a")
    await until(lambda: run.listener.heard == [b"a"])
    run.exchange.write(b"A")
    await until(lambda: run.peer.body == b"A")
    run.listener.wants = False
    for part in (b"b", b"c"):
        run.peer.bring(part)
    await until(lambda: run.listener.heard == [b"a", b"b"])
    for _ in range(5):
        await asyncio.sleep(0)
    assert run.listener.heard == [b"a", b"b"]
    run.listener.wants = True
    run.exchange.ask()
    run.peer.bring(b"", more=False)
    await until(lambda: run.listener.heard == [b"a", b"b", b"c", None])
    run.exchange.end()
    assert await run.task is None


async def test_a_whole_response_of_a_listener_is_returned() -> None:
    """It is written by who runs the request; the rest of the body is of no interest."""
    run = await Running.begun()
    run.peer.bring(b"a")
    await until(lambda: run.listener.heard == [b"a"])
    answer = Response(200, (), b"done")
    run.exchange.answer(answer)
    assert await run.task is answer


async def test_H004_a_client_that_leaves_is_told_to_the_listener() -> None:
    """Also behind the end of its body, and whoever waits for room goes on."""
    run = await Running.begun()
    run.exchange.begin(HEAD)
    run.peer.bring(b"", more=False)
    await until(lambda: run.listener.heard == [None])
    run.peer.takes.clear()
    while run.exchange.write(bytes(1 << 14)):
        pass
    room = asyncio.create_task(run.exchange.room())
    run.peer.leave()
    await until(lambda: run.listener.is_gone)
    await room
    run.peer.takes.set()
    assert await run.task is None
    assert run.exchange.is_gone
    assert not run.peer.is_over


async def test_H004_who_takes_nothing_is_given_up() -> None:
    """After the time that a piece may take."""
    run = await Running.begun(write_s=0.02)
    run.peer.takes.clear()
    run.exchange.begin(HEAD)
    assert await run.task is None
    assert run.listener.is_gone


async def test_a_body_that_stops_fails_its_listener() -> None:
    """With the time that a whole body has; a stream has any."""
    run = await Running.begun(body_s=0.02)
    run.peer.bring(b"ab")
    response = await run.task
    assert response is not None
    assert response.status == 408
    assert "2 bytes" in str(run.listener.errors[0])
    stream = await Running.begun(body_s=0.001)
    stream.exchange.is_stream = True
    stream.peer.bring(b"ab")
    await asyncio.sleep(0.02)
    assert not stream.listener.errors
    stream.exchange.answer(Response(200, (), b""))
    await stream.task


async def test_a_request_that_is_cancelled_tells_its_listener() -> None:
    """The server gave it up: the function must not run on."""
    run = await Running.begun()
    await asyncio.sleep(0)
    run.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run.task
    assert run.listener.is_gone


async def test_H002_a_handler_that_forgets_to_end_cuts() -> None:
    """`carried` waits for what was begun, and nothing looks complete that is not."""
    peer = Peer()
    exchange = AsgiExchange(RequestHead("GET", "/x"), {"http_version": "2"}, peer.receive, peer.send, HttpSettings())
    exchange.begin(HEAD)
    exchange.write(b"a")
    await exchange.carried()
    assert peer.body == b"a"
    assert not peer.is_over
