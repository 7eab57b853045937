"""WebSockets that an ASGI server brings; servers of others bring them in tests/interop/test_asgi.py."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import invoker
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.steps import Close
from invoker.errors import ShuttingDown
from invoker.execution.driver import Driver
from invoker.transports.http.app import Farewell, SocketSettings
from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.mounted import MountedTransport
from tests.asgis import Caller, scope_of

REFUSES = {"websocket.http.response": {}}


def square(x: int) -> int:
    return x * x


async def double(items: AsyncIterator[int]) -> AsyncIterator[int]:
    async for item in items:
        yield 2 * item


def count(to: int) -> Iterator[int]:
    yield from range(to)


def scope(path: str, **more: Any) -> dict[str, Any]:
    return {**scope_of(path, **more), "type": "websocket"}


@asynccontextmanager
async def talking(*functions: Any, path: str = "", accepts: bool = True, settings: Any = None, **more: Any) -> Any:
    """A peer of the first function, in an application."""
    async with invoker.asgi(*functions, **(settings or {})) as app:
        caller = Caller(app, scope(path or f"/{functions[0].__name__}/ws", **more))
        caller.say(type="websocket.connect")
        if accepts:
            assert (await caller.sent.get())["type"] == "websocket.accept"
        yield caller
        await caller.task


def say(caller: Caller, frame: Any) -> None:
    caller.say(type="websocket.receive", text=json.dumps(frame), bytes=None)


async def heard(caller: Caller) -> Any:
    message = await caller.sent.get()
    return json.loads(message["text"]) if "text" in message else message


async def test_H096_H099_items_pass_both_ways_and_the_end_is_told():
    """Each is answered before the next one is sent."""
    async with talking(double) as caller:
        for item in range(3):
            say(caller, {"data": item})
            assert (await heard(caller))["data"] == 2 * item
        say(caller, {"end": True})
        assert await heard(caller) == {"end": True}
        assert await heard(caller) == {"type": "websocket.close", "code": 1000, "reason": ""}


async def test_H099_an_error_is_told_before_the_close():
    """With the code that says whose fault it is, and a reason that is not too long."""
    async with talking(double) as caller:
        say(caller, {"data": "x" * 300})
        assert "error" in await heard(caller)
        closed = await heard(caller)
        assert closed["code"] == 1011 or closed["code"] == 1008
        assert 0 < len(closed["reason"].encode()) <= 123


async def test_H099_a_peer_that_leaves_cancels_the_function():
    """Its inputs have not ended."""
    began, closed = asyncio.Event(), []

    async def fn(items: AsyncIterator[int]) -> AsyncIterator[int]:
        try:
            async for item in items:
                began.set()
                yield item
            closed.append("ended")
        finally:
            closed.append("left")

    async with talking(fn) as caller:
        say(caller, {"data": 1})
        await began.wait()
        caller.say(type="websocket.disconnect", code=1001)
        await caller.task
    assert closed == ["left"]


@pytest.mark.parametrize("text", ["x" * 101, "\u00e9" * 60])
async def test_H099_a_message_that_is_too_long_ends_it(text):
    """Its bytes count, whatever its letters are."""
    async with talking(double, settings={"max_message_bytes": 100}) as caller:
        caller.say(type="websocket.receive", text=text)
        assert "a message exceeds the limit of 100 bytes" in json.dumps(await heard(caller))
        assert (await heard(caller))["code"] == 1009


async def test_H099_a_function_waits_for_a_peer_that_takes_nothing():
    """And whoever takes nothing for too long is given up."""
    made = []

    async def endless(size: int) -> AsyncIterator[str]:
        while True:
            made.append(1)
            yield "x" * size

    async with talking(endless) as caller:
        caller._takes.clear()
        say(caller, {"data": 1000})
        say(caller, {"end": True})
        while not made:  # noqa: ASYNC110 - a turn or two
            await asyncio.sleep(0)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(made) < 300
        caller.leave()
        caller.say(type="websocket.disconnect", code=1006)


async def test_H099_who_takes_nothing_for_too_long_is_given_up(monkeypatch, caplog):
    """The function is cancelled."""
    app = invoker.asgi(count)
    async with app:
        handler = next(iter(app._runs.values())).server.application.app.sockets("/count/ws")
        handler.settings = type(handler.settings)(write_s=0.01)
        caller = Caller(app, scope("/count/ws"))
        caller.say(type="websocket.connect")
        await caller.sent.get()
        caller._takes.clear()
        say(caller, {"data": 3})
        say(caller, {"end": True})
        await caller.task
        caller.take()
    assert "a peer read nothing within 0.01 s" in caplog.text


async def test_H097_the_shutdown_ends_conversations():
    """With the error, and code 1001."""
    app = invoker.asgi(double, drain_s=0)
    async with app:
        caller = Caller(app, scope("/double/ws"))
        caller.say(type="websocket.connect")
        await caller.sent.get()
        say(caller, {"data": 1})
        await caller.sent.get()
    assert "error" in await heard(caller)
    assert (await heard(caller))["code"] == 1001
    await caller.task


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/nothing/ws", {}, 404),
        ("/square/ws", {"origin": "https://evil.example", "host": "my.example"}, 403),
    ],
)
@pytest.mark.parametrize("extensions", [REFUSES, {}, None])
async def test_H098_a_handshake_is_refused_by_a_status_where_the_server_can(path, headers, status, extensions):
    """Else by a close before it is accepted, of which servers make 403."""
    more = {} if extensions is None else {"extensions": extensions}
    async with talking(square, path=path, accepts=False, headers=headers, **more) as caller:
        first = await caller.sent.get()
        if extensions:
            assert (first["type"], first["status"]) == ("websocket.http.response.start", status)
        else:
            assert first["type"] == "websocket.close"


async def test_H098_a_page_of_the_own_origin_may_connect():
    """Whatever the name of the host is."""
    headers = {"origin": "https://my.example", "host": "my.example"}
    async with talking(square, headers=headers) as caller:
        say(caller, {"data": 3})
        assert (await heard(caller))["data"] == 9
        say(caller, {"end": True})


async def test_H096_the_subprotocol_is_agreed_on():
    """If it is offered."""
    app = invoker.asgi(square)
    async with app:
        for offered, agreed in (("other, invoker.v1", "invoker.v1"), ("other", None)):
            caller = Caller(app, scope("/square/ws", headers={"sec-websocket-protocol": offered}))
            caller.say(type="websocket.connect")
            assert await caller.sent.get() == {"type": "websocket.accept", "subprotocol": agreed}
            caller.say(type="websocket.disconnect")
            await caller.task


async def test_H099_a_server_that_raises_for_a_peer_that_left_is_understood():
    """At the handshake, too."""

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        raise OSError("gone")

    async with invoker.asgi(square) as app:
        await app(scope("/square/ws"), receive, send)
        assert not next(iter(app._runs.values())).server.application.app.connections.open


async def test_H099_what_goes_wrong_inside_ends_the_connection(monkeypatch, caplog):
    """And is in the log; nobody waits for a task that is dead."""

    def broken(self: object, frame: object) -> bool:
        raise ValueError("a defect")

    async with talking(double) as caller:
        monkeypatch.setattr("invoker.execution.loop.reactor.Reactor.arrived", broken)
        say(caller, {"data": 1})
        await caller.task
    assert "a WebSocket failed" in caplog.text


async def test_H099_a_function_goes_on_when_its_peer_takes_again():
    """More than waits at once passes, in order."""

    async def large(count: int) -> AsyncIterator[str]:
        for number in range(count):
            yield f"{number:1000}"

    async with talking(large) as caller:
        caller._takes.clear()
        say(caller, {"data": 500})
        say(caller, {"end": True})
        for _ in range(1000):
            await asyncio.sleep(0)
        caller.take()
        for number in range(500):
            assert int((await heard(caller))["data"]) == number
        assert await heard(caller) == {"end": True}


class Stubborn:
    """A conversation that wants one message at a time, and ends only if it is told to."""

    subprotocol = ""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.errors: list[Exception] = []
        self.overs = 0
        self.came = asyncio.Event()

    def begin(self, wire: Any) -> Stubborn:
        self.wire = wire
        return self

    def farewell(self, error: Exception | None) -> Farewell:
        return Farewell(1000, (), str(error))

    def over(self) -> None:
        self.overs += 1

    def arrived(self, frame: Any) -> bool:
        self.got.append(frame)
        self.came.set()
        return False

    def fail(self, error: Any) -> None:
        self.errors.append(error)
        self.wire.close(Close(error))

    def gone(self) -> None:
        raise AssertionError("it was told the end")


async def test_H097_H099_a_conversation_is_read_as_it_wants_and_ended_with_the_transport():
    """With ShuttingDown, once; it is told when its connection is over."""
    stubborn = Stubborn()
    handler = type("Handler", (), {"settings": SocketSettings(), "meet": lambda _, head: stubborn})()
    driver = Driver(Engine(Catalog([]), builtin()))
    transport = MountedTransport(driver, lambda _: None, settings=HttpSettings(), sockets=lambda _: handler)
    transport.start()
    caller = Caller(transport, scope("/"))
    caller.say(type="websocket.connect")
    for text in ("a", "b", "c"):
        caller.say(type="websocket.receive", text=text)
    await stubborn.came.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert stubborn.got == ["a"]
    stubborn.came.clear()
    stubborn.wire.ask()
    await stubborn.came.wait()
    assert stubborn.got == ["a", "b"]
    await transport.stop(5.0)
    await caller.task
    assert [type(one) for one in stubborn.errors] == [ShuttingDown]
    assert stubborn.overs == 1
    assert [one["type"] for one in caller.sent._queue] == ["websocket.accept", "websocket.close"]
    assert caller.sent._queue[-1]["code"] == 1001
