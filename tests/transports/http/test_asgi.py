"""`transports.http.asgi`: clients of HTTP/2 that leave before they are answered, and the time that a body has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.http import Response
from invoker.errors import Cancelled
from invoker.execution.driver import Driver
from invoker.transports.http.app import HttpApp
from invoker.transports.http.asgi import AsgiApp
from invoker.transports.http.exchange import Exchange, HttpSettings

SCOPE = {
    "type": "http", "http_version": "2", "method": "POST", "path": "/", "raw_path": b"/", "query_string": b"",
    "headers": [], "server": ("127.0.0.1", 80),
}  # fmt: skip
DONE = Response(200, (), b"done")
LARGE = bytes(1 << 20)
BODY = {"type": "http.request", "body": LARGE, "more_body": False}
PART = {"type": "http.request", "body": LARGE, "more_body": True}
LEFT = {"type": "http.disconnect"}

Answer = Callable[[Exchange], Awaitable[Response]]


class StoreChanged:
    """A handler that answers as a test says, and what became of one request to it."""

    def __init__(self, answer: Answer, *messages: dict[str, Any]) -> None:
        self.answer = answer
        self.messages = list(messages)
        self.sent: list[dict[str, Any]] = []
        self.cancels = 0
        self.driver = Driver(Engine(Catalog([]), builtin()))

    @property
    def held(self) -> int:
        """Bytes that the process counts."""
        return self.driver.engine.memory.held

    async def receive(self) -> dict[str, Any]:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def run(self) -> None:
        """Let a request have a task of its own, and note how many cancels are left of it."""

        async def request() -> None:
            app = AsgiApp(HttpApp(self.driver, HttpSettings(), lambda _: self))
            await app(SCOPE, self.receive, self.send)
            task = asyncio.current_task()
            assert task is not None
            self.cancels = task.cancelling()

        try:
            await asyncio.create_task(request())
        finally:
            self.driver.close()


async def forever(exchange: Exchange) -> Response:
    await exchange.whole(4 << 20)
    await asyncio.Event().wait()
    return DONE


async def whole(exchange: Exchange) -> Response:
    await exchange.whole(4 << 20)
    return DONE


async def whatever_comes(exchange: Exchange) -> Response:
    try:
        await exchange.whole(4 << 20)
    except Cancelled:
        assert exchange.is_gone
    return DONE


async def test_R154_a_client_that_leaves_ends_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent, no cancel is left on the task, which is its connection's, and the memory is given back."""
    monkeypatch.setattr("invoker.transports.http.asgiexchange._WATCH_S", 0.01)
    told = StoreChanged(forever, BODY, LEFT)
    await told.run()
    assert (told.sent, told.cancels, told.held) == ([], 0, 0)


@pytest.mark.parametrize("answer", [whole, whatever_comes])
async def test_R154_a_client_that_leaves_within_its_body_is_not_answered(answer: Answer) -> None:
    """Whether its handler lets the error through, or makes a response of it."""
    told = StoreChanged(answer, PART, LEFT)
    await told.run()
    assert (told.sent, told.held) == ([], 0)


async def test_who_stays_is_answered() -> None:
    """With the body counted until then, so the tests above see what they look for."""
    counted: list[int] = []

    async def counting(exchange: Exchange) -> Response:
        response = await whole(exchange)
        counted.append(told.held)
        return response

    told = StoreChanged(counting, PART, BODY)
    await told.run()
    assert [one["type"] for one in told.sent] == ["http.response.start", "http.response.body"]
    assert counted[0] >= 2 * len(LARGE)
    assert told.held == 0


async def test_a_cancel_by_somebody_else_goes_on() -> None:
    """Only that of a client that left ends here."""

    async def cancelled(_: Exchange) -> Response:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await StoreChanged(cancelled).run()


async def test_what_a_head_means_is_found_out_once() -> None:
    """For the same head, and not for one that differs in anything; what is kept is bounded."""
    asked: list[str] = []
    told = StoreChanged(whole)

    def handler(path: str) -> Any:
        asked.append(path)
        return told

    app = AsgiApp(HttpApp(told.driver, HttpSettings(), handler))
    headers = [[b"accept", b"text/plain"]]
    others = [
        {"path": "/a"}, {"method": "GET"}, {"query_string": b"x"}, {"headers": headers},
        {"raw_path": b"http://other/"}, {"http_version": "1.1"}, {"headers": headers * 2},
    ]  # fmt: skip
    for count, other in enumerate([{}, *others], 1):
        for _ in range(2):
            told.messages = [BODY]
            await app({**SCOPE, **other}, told.receive, told.send)
            assert len(asked) == count
    assert sum(one.get("body") == b"done" for one in told.sent) == 2 * len(others) + 2
    for number in range(200):
        told.messages = [BODY]
        await app({**SCOPE, "path": f"/{number}"}, told.receive, told.send)
        assert len(app._heads._known) <= 64
    told.driver.close()
