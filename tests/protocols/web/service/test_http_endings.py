"""`protocols.web.service.http`: requests that come to no good end: limits, deadlines, drains, clients that leave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from invoker import function as limited
from invoker.context import Context
from invoker.errors import Status
from invoker.execution.whole import Whole
from tests.transports.served import Served, until

JSON = "application/json"


def square(x: int) -> int:
    return x * x


async def asquare(x: int) -> int:
    return x * x


@pytest.mark.parametrize("http2", [False, True])
async def test_R154_a_body_over_the_limit_is_413(http2: bool) -> None:
    """Announced or in chunks; the client gets to see it, and the next request works."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield bytes(65536)

    async with Served.at(square, riff={"max_body_bytes": 1024 * 1024}) as served, served.client(http2=http2) as client:
        assert (await client.post("/", content=bytes(1024 * 1024 + 1))).status_code == 413
        assert (await client.post("/", content=chunks())).status_code == 413
        assert (await client.post("/", content=b"2", headers={"content-type": JSON})).status_code == 200


async def test_R154_a_client_that_leaves_cancels_an_async_function() -> None:
    """Its finally runs, and the invocation is forgotten."""
    started, left = asyncio.Event(), asyncio.Event()

    async def waits(x: bytes) -> bytes:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return x

    async with Served.at(waits) as served:
        request = asyncio.create_task(served.post(b"x"))
        await started.wait()
        request.cancel()
        await left.wait()
        await until(lambda: not served.driver.engine.running)
        assert served.driver.engine.counters.finished == {Status.CANCELLED: 1}


async def test_R154_a_client_that_leaves_cancels_a_sync_function() -> None:
    """Its context says so, and its next step raises."""
    started, go, left = asyncio.Event(), threading.Event(), threading.Event()
    went_on: list[bool] = []
    loop = asyncio.get_running_loop()

    def waits(xs: Iterator[bytes], ctx: Context) -> Iterator[bytes]:
        try:
            loop.call_soon_threadsafe(started.set)
            go.wait()
            went_on.append(ctx.cancelled)
            yield from xs
            went_on.append(True)
        finally:
            left.set()

    async with Served.at(waits) as served:
        async with served.wire() as wire:
            await wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx")
            await started.wait()
        (running,) = served.driver.direct
        assert isinstance(running, Whole)
        await until(lambda: running.is_long and running.is_over())
        go.set()
        await until(left.is_set)
        await until(lambda: not served.driver.engine.running)
        assert served.driver.engine.counters.finished == {Status.CANCELLED: 1}
    assert went_on == [True]


async def test_R154_a_client_that_leaves_within_its_body_starts_nothing() -> None:
    """The function is not called for half an input."""
    calls: list[bytes] = []

    async def noted(x: bytes) -> bytes:
        calls.append(x)
        return x

    async with Served.at(noted) as served:
        async with served.wire() as wire:
            await wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
            await until(lambda: bool(served.driver.conversations))
        await until(lambda: not served.driver.conversations)
    assert calls == []


async def test_R154_the_deadline_is_504() -> None:
    """The function is cancelled at its end."""
    left = asyncio.Event()

    async def waits(x: bytes) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return x

    async with Served.at(waits, riff={"timeout_s": 0.05}) as served:
        assert (await served.post(b"x")).status_code == 504
        await left.wait()


async def test_R154_draining_is_503_and_closes_the_connection() -> None:
    """The client is told to go elsewhere."""
    async with Served.at(asquare) as served:
        served.driver.engine.is_draining = True
        response = await served.post(b"1", content_type=JSON)
    assert (response.status_code, response.headers["connection"]) == (503, "close")
    assert response.text.startswith("Invoker: Shutting Down")


async def test_R154_an_invocation_that_outlives_the_drain_is_503() -> None:
    """Also one whose body is still on its way."""
    started = asyncio.Event()

    async def waits(x: bytes) -> bytes:
        started.set()
        await asyncio.Event().wait()
        return x

    async with Served.at(waits) as served, served.wire() as wire:
        running = asyncio.create_task(served.post(b"x"))
        await started.wait()
        await wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
        await until(lambda: len(served.driver.conversations) == 2)
        assert not await served.driver.drain(0.01)
        assert (await running).status_code == 503
        assert (await wire.answer())[0] == 503


async def test_R132_one_invocation_too_many_is_503() -> None:
    """A full server asks to come back; that is not the client's excess, which 429 would say."""
    started, go = asyncio.Event(), asyncio.Event()

    async def waits(x: bytes) -> bytes:
        started.set()
        await go.wait()
        return x

    async with Served.at(waits, max_invocations=1) as served:
        first = asyncio.create_task(served.post(b"x"))
        await started.wait()
        second = await served.post(b"x")
        assert (second.status_code, second.headers["retry-after"]) == (503, "1")
        go.set()
        assert (await first).status_code == 200


@limited(timeout_s=60)
def squared(x: int) -> int:
    """It has a time limit, so it runs as a conversation."""
    return x * x


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize(
    ("function", "where"),
    [
        (squared, "http.HttpSession.half_close"),
        (asquare, "service.unary.UnaryRequests.response"),
        (asquare, "service.unary.UnaryRequests.call"),
    ],
)
async def test_a_defect_of_ours_is_500_without_its_insides(
    function: Any, where: str, http2: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the traceback, the peer one line."""

    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(f"invoker.protocols.web.{where}", broken)
    async with Served.at(function) as served, served.client(http2=http2) as client:
        response = await client.post("/", content=b"1")
    assert (response.status_code, response.text) == (500, "Invoker: Internal Error\n")
    assert "secret" in caplog.text


@pytest.mark.parametrize("function", [square, asquare, squared])
async def test_R010_a_function_that_is_made_anew_is_made_once_for_each_request(function: Any) -> None:
    """Neither its head nor a look at how it may run makes it, and a request that is refused does not."""
    made: list[Any] = []
    async with Served.at(function) as served:
        catalog = served.driver.engine.catalog
        catalog._renew = lambda found: made.append(found) or found  # type: ignore[func-returns-value]
        catalog.renews = True
        for count in (1, 2):
            assert (await served.post(b"3", content_type=JSON)).content == b"9"
            assert len(made) == count
        assert (await served.post(b"3", content_type=JSON, accept="text/zglorbf")).status_code == 406
        assert len(made) <= 3
        served.driver.engine.is_loading = True
        before = len(made)
        assert (await served.post(b"3", content_type=JSON)).status_code == 503
        assert len(made) == before
