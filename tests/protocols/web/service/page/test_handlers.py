"""Who answers for the page, behind a real transport."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from invoker.core.http import RequestHead, Response
from invoker.protocols.web.service.page.assets import Assets
from invoker.protocols.web.service.page.handlers import MOST_WATCHERS, NumbersHandler, PageHandler, wants_page
from tests.transports.served import Served, until

EVENTS = {"Accept": "text/event-stream"}


async def slow(x: int) -> AsyncIterator[int]:
    yield x
    await asyncio.Event().wait()


def square(x: int) -> int:
    return x * x


class _Numbers:
    """The front of the numbers, made once the transport has a driver."""

    def __init__(self) -> None:
        self.served: Served | None = None
        self.handler: NumbersHandler | None = None

    def __call__(self, path: str) -> NumbersHandler | None:
        if path != "/invocations" or self.served is None:
            return None
        self.handler = self.handler or NumbersHandler(self.served.driver)
        return self.handler


@asynccontextmanager
async def serving(*functions: Any, **more: Any) -> AsyncIterator[tuple[Served, httpx.AsyncClient]]:
    numbers = _Numbers()
    async with Served.at(*functions, handler=numbers, **more) as served, served.client() as client:
        numbers.served = served
        yield served, client


async def event(lines: AsyncIterator[str]) -> dict[str, Any]:
    async for line in lines:
        if line.startswith("data: "):
            found: dict[str, Any] = json.loads(line.removeprefix("data: "))
            return found
    raise AssertionError("the stream ended")


@pytest.mark.parametrize(
    ("method", "accept", "is_page"),
    [
        ("GET", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", True),
        ("HEAD", "text/html", True),
        ("GET", "TEXT/HTML", True),
        ("GET", "*/*", False),
        ("GET", "", False),
        ("GET", "text/*", False),
        ("GET", "text/html;q=0", False),
        ("GET", "application/json, text/html;q=0.5", False),
        ("GET", "text/event-stream, text/html;q=0.1", False),
        ("POST", "text/html", False),
        ("OPTIONS", "text/html", False),
    ],
)
def test_H070_the_page_is_for_whoever_reads_html_best(method: str, accept: str, is_page: bool) -> None:
    """A wildcard does not ask for it, and nothing but GET and HEAD does."""
    assert wants_page(RequestHead(method, "/", headers=(("accept", accept),))) is is_page


async def test_H070_other_requests_go_to_who_answers_there_else() -> None:
    """With all ways in which it answers; the page itself takes none of them."""

    whole = SimpleNamespace(on_loop=False, is_stream=False)

    class Below:
        async def answer(self, exchange: Any) -> Response:
            return Response(200, (), b"below")

        def prompt(self, head: RequestHead) -> Any:
            return "prompt" if head.method == "POST" else None

        def whole(self, head: RequestHead) -> Any:
            return whole

    class Plain:
        async def answer(self, exchange: Any) -> Response:
            return Response(200, (), b"plain")

    post, get = RequestHead("POST", "/"), RequestHead("GET", "/", headers=(("accept", "text/html"),))
    handler = PageHandler(Assets(), Below())
    assert (handler.prompt(post), handler.whole(post)) == ("prompt", whole)
    assert (handler.prompt(get), handler.whole(get)) == (None, None)
    bare = PageHandler(Assets(), Plain())
    assert (bare.prompt(post), bare.whole(post)) == (None, None)
    async with (
        Served.at(square, handler=lambda path: handler if path == "/" else None) as served,
        served.client() as client,
    ):
        assert (await client.get("/", headers={"Accept": "text/html"})).text.startswith("<!doctype html>")
        assert (await client.request("PUT", "/", headers={"Accept": "text/html"})).text == "below"


async def test_H074_the_numbers_are_json_or_events() -> None:
    """As `Accept` likes; nothing else is known, and nothing but reading."""
    async with serving(square) as (_, client):
        once = await client.get("/invocations")
        assert (once.status_code, once.headers["content-type"]) == (200, "application/json")
        assert (await client.get("/invocations", headers={"Accept": "image/png"})).status_code == 406
        refused = await client.post("/invocations")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
        head = await client.head("/invocations", headers=EVENTS)
        assert (head.status_code, head.headers["content-type"], head.content) == (200, "text/event-stream", b"")


@pytest.mark.parametrize("http2", [False, True])
async def test_H074_a_watcher_sees_an_invocation_run_and_end(http2: bool) -> None:
    """Over both versions of HTTP; the numbers say how much went where, and not what."""
    async with (
        serving(slow) as (served, _),
        served.client(http2=http2) as watching,
        served.client() as calling,
        watching.stream("GET", "/invocations", headers=EVENTS) as stream,
    ):
        lines = stream.aiter_lines()
        assert (await event(lines))["invocations"] == []
        call = asyncio.create_task(calling.post("/", content=b"314159", headers={"Accept": "application/json"}))
        told = await event(lines)
        while not told["invocations"] or not told["invocations"][0]["outputs"][0]["frames"]:
            told = await event(lines)
        (one,) = told["invocations"]
        assert (one["function"], one["status"]) == ("slow", "running")
        assert (one["inputs"][0]["name"], one["inputs"][0]["frames"], one["inputs"][0]["bytes"]) == ("x", 1, 6)
        assert "314159" not in json.dumps(told)
        call.cancel()
        while told["invocations"][0]["status"] == "running":
            told = await event(lines)
        assert told["invocations"][0]["status"] == "CANCELLED"
        assert told["counts"]["running"] == 0


async def test_H075_only_so_many_may_watch() -> None:
    """One more is told to come again, and may when another has left."""
    async with serving(square) as (served, client):
        async with served.client() as others:
            streams = [others.stream("GET", "/invocations", headers=EVENTS) for _ in range(MOST_WATCHERS)]
            for one in streams:
                assert (await one.__aenter__()).status_code == 200
            refused = await client.get("/invocations", headers=EVENTS)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert (await client.get("/invocations")).status_code == 200
            for one in streams:
                await one.__aexit__(None, None, None)
        engine = served.driver.engine
        await until(lambda: len(engine.on_close) == 0)
        async with client.stream("GET", "/invocations", headers=EVENTS) as again:
            assert again.status_code == 200


async def test_H077_a_drain_ends_the_streams() -> None:
    """A stream of numbers would go on for ever; it ends as a whole response, and no new one begins."""
    async with serving(square) as (served, client):
        async with client.stream("GET", "/invocations", headers=EVENTS) as stream:
            lines = stream.aiter_lines()
            await event(lines)
            assert await served.driver.drain(5)
            assert [one async for one in lines if one.startswith("data: ")] == []
        assert not served.driver.drains
        assert (await client.get("/invocations", headers=EVENTS)).status_code == 503


async def test_H074_a_quiet_stream_still_says_that_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without news nothing is told again; a comment is."""
    monkeypatch.setattr("invoker.protocols.web.service.page.handlers._PERIOD_S", 0.001)
    async with serving(square) as (_, client), client.stream("GET", "/invocations", headers=EVENTS) as stream:
        lines = stream.aiter_lines()
        await event(lines)
        assert await anext(one async for one in lines if one) == ": still here"
