"""`invoker.transports.http.exchange`: the time that a body has, and who watches for a client that leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from invoker.core.http import RequestHead
from invoker.errors import Cancelled, DeadlineExceeded
from invoker.transports.http.asgiexchange import AsgiExchange
from invoker.transports.http.exchange import Exchange, HttpSettings

SCOPE: dict[str, Any] = {"http_version": "2"}


class Peer:
    """What a client sends, as ASGI has it."""

    def __init__(self, *chunks: bytes, is_whole: bool = True) -> None:
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.asked = 0
        for chunk in chunks:
            self.send(chunk)
        if is_whole:
            self.send(b"", more=False)

    def send(self, body: bytes, *, more: bool = True) -> None:
        self.messages.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def leave(self) -> None:
        self.messages.put_nowait({"type": "http.disconnect"})

    async def receive(self) -> dict[str, Any]:
        self.asked += 1
        return await self.messages.get()


async def begun(peer: Peer, **settings: Any) -> Exchange:
    async def send(_: Any) -> None:
        raise AssertionError("nothing is answered here")

    made = AsgiExchange(RequestHead("POST", "/x"), SCOPE, peer.receive, send, HttpSettings(**settings))
    await made.read()
    return made


async def test_a_body_is_gathered() -> None:
    """To its end, up to so many bytes."""
    exchange = await begun(Peer(b"ab", b"", b"cde"))
    assert await exchange.whole(5) == b"abcde"
    exchange.close()
    exchange = await begun(Peer(b"ab", b"cde"))
    assert await exchange.whole(4) is None


async def test_a_body_that_stops_is_late() -> None:
    """Whoever waits for it is told, and is not cancelled."""
    exchange = await begun(Peer(b"ab", is_whole=False), body_s=0.02)
    with pytest.raises(DeadlineExceeded, match="2 bytes"):
        await exchange.whole(10)
    assert exchange.is_late
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_a_body_brings_moves_its_end_on() -> None:
    """The one timer rings too early then, and is set again."""
    peer = Peer(is_whole=False)
    exchange = await begun(peer, body_s=0.02, body_bytes_per_s=100.0)
    reading = asyncio.ensure_future(exchange.whole(100))
    peer.send(bytes(50))  # worth half a second
    loop = asyncio.get_running_loop()
    rung = loop.create_future()
    loop.call_later(0.1, rung.set_result, None)
    await rung
    assert not reading.done()
    peer.send(b"", more=False)
    assert await reading == bytes(50)
    exchange.close()


async def test_who_did_not_wait_when_time_was_up_is_late_at_the_next_wait() -> None:
    """Back-pressure may keep a reader away; what came meanwhile is still taken."""
    peer = Peer(b"ab", is_whole=False)
    exchange = await begun(peer, body_s=0.02)
    assert (await exchange.read()).payload == b"ab"  # type: ignore[union-attr]  # a chunk
    loop = asyncio.get_running_loop()
    rung = loop.create_future()
    loop.call_later(0.05, rung.set_result, None)
    await rung
    peer.send(b"c")
    assert (await exchange.read()).payload == b"c"  # type: ignore[union-attr]  # a chunk
    with pytest.raises(DeadlineExceeded):
        await exchange.read()


async def test_who_is_cancelled_is_not_late() -> None:
    """A reader that somebody else ends is just that."""
    reading = asyncio.ensure_future((await begun(Peer(is_whole=False))).whole(10))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_a_client_that_leaves_with_its_body_is_gone() -> None:
    """There is nobody to be told."""
    peer = Peer(b"ab", is_whole=False)
    exchange = await begun(peer)
    peer.leave()
    with pytest.raises(Cancelled):
        await exchange.whole(10)
    assert exchange.is_gone


async def test_short_requests_are_not_watched() -> None:
    """No task is made for them."""
    peer = Peer(b"ab")
    exchange = await begun(peer)
    await exchange.whole(10)
    asked, tasks = peer.asked, len(asyncio.all_tasks())
    await asyncio.sleep(0)
    exchange.close()
    assert (peer.asked, len(asyncio.all_tasks())) == (asked, tasks)


async def test_G013_a_client_that_leaves_ends_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that left before anybody watched."""
    monkeypatch.setattr("invoker.transports.http.asgiexchange._WATCH_S", 0.01)
    peer = Peer(b"ab")
    exchange = await begun(peer)

    async def answer() -> None:
        await exchange.whole(10)
        peer.leave()
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(answer())
    assert exchange.is_gone
