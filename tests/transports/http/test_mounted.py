"""The HTTP transport without sockets; whole applications are in tests/server/test_mounted.py."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.http import Response
from invoker.execution.driver import Driver
from invoker.transports.http.exchange import Exchange, HttpSettings
from invoker.transports.http.mounted import MountedTransport, inner_scope, refuse
from tests.asgis import Caller, scope_of

REFUSED = Response(503, (("Content-Type", "text/plain"), ("Retry-After", "1")), b"no\n")


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/fn/square", "/fn", "/square"),
        ("/square", "/fn", "/square"),
        ("/fn", "/fn", "/"),
        ("/fn/", "/fn", "/"),
        ("/fnord", "/fn", "/fnord"),
        ("/fn/fn", "/fn", "/fn"),
        ("", "", "/"),
        ("/square", "/", "/square"),
    ],
)
def test_H096_the_path_is_the_one_behind_the_mount(path, root, expected):
    """With or without the part of the host."""
    assert inner_scope(scope_of(path, root_path=root))["path"] == expected


def test_H096_what_servers_leave_out_is_filled_in_and_what_is_theirs_stays_theirs():
    """The scope of the host is not changed."""
    scope = scope_of("/a", state={"connection": "a database"}, server=None)
    inner = inner_scope(scope)
    assert (inner["raw_path"], inner["query_string"], inner["http_version"]) == (b"", b"", "1.1")
    assert scope == scope_of("/a", state={"connection": "a database"}, server=None)


async def test_H097_a_refusal_is_said_without_a_transport():
    """To a handshake by a status where the server can, else by a close, which is 403."""
    caller = Caller(lambda *asgi: refuse(*asgi, REFUSED), scope_of())
    caller.give()
    status, headers = await caller.head()
    assert (status, headers["retry-after"], headers["content-length"]) == (503, "1", "3")
    assert await caller.rest() == b"no\n"
    for extensions, expected in (({"websocket.http.response": {}}, "http.response"), ({}, "close")):
        scope = {**scope_of(extensions=extensions), "type": "websocket"}
        caller = Caller(lambda *asgi: refuse(*asgi, REFUSED), scope)
        caller.say(type="websocket.connect")
        await caller.task
        first = caller.sent.get_nowait()
        assert first["type"].startswith(f"websocket.{expected}")
        assert first.get("status", first.get("code")) in (503, 1013)


async def test_H099_whoever_counts_on_a_response_gets_one_for_a_client_that_has_left():
    """As Starlette's middleware does; servers drop it, or say that nobody takes it."""

    class Handler:
        async def answer(self, exchange: Exchange) -> Response:
            await exchange.whole(100)
            raise AssertionError("the body is not complete")

    transport = MountedTransport(Driver(Engine(Catalog([]), builtin())), lambda _: Handler(), settings=HttpSettings())
    transport.start()
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await transport(scope_of(), receive, send)
    assert [one["type"] for one in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["status"] == 499

    async def broken(message: dict[str, Any]) -> None:
        raise OSError("gone")

    await transport(scope_of(), receive, broken)


async def test_H097_a_stop_waits_for_requests_but_not_for_ever():
    """They are in tasks of others, which are left to them."""
    go = asyncio.Event()

    class Handler:
        async def answer(self, exchange: Exchange) -> Response:
            await go.wait()
            return Response(200, (), b"done")

    transport = MountedTransport(Driver(Engine(Catalog([]), builtin())), lambda _: Handler(), settings=HttpSettings())
    transport.start()
    await transport.stop(1.0)
    caller = Caller(transport, scope_of())
    caller.give()
    await asyncio.sleep(0)
    await transport.stop(0.01)
    assert not caller.task.done()
    stopping = asyncio.create_task(transport.stop(5.0))
    await asyncio.sleep(0)
    go.set()
    await stopping
    assert (await caller.answer()) == (200, b"done")
    assert not transport.app.is_closing
    transport.leave()
    assert transport.app.is_closing
