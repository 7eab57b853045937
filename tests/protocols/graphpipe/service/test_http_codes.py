"""What never fits is E13 by every transport, what may fit later is E16 (G-080, G-081)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from numpy.typing import NDArray

from invoker.protocols.graphpipe.service.framed import FramedTransport
from invoker.protocols.graphpipe.service.inferences import GraphPipeSettings, Inferences
from invoker.tensors import Code
from tests.protocols.graphpipe.asking import ask, code_of, values
from tests.tensors.samples import fixture
from tests.tensors.test_flat import shared
from tests.transports.models import exchanged, serving_models
from tests.transports.served import Served, until

LIMIT = 64 << 10


@asynccontextmanager
async def opened(*functions: Any, **more: Any) -> AsyncIterator[tuple[Served, Callable[[bytes], Awaitable[Code]]]]:
    """Both transports of one driver; gives what asks both the same thing, and the one code of their answers."""
    async with serving_models(*functions, limit_bytes=LIMIT, **more) as served, served.client() as client:
        transport = FramedTransport(Inferences(served.driver, GraphPipeSettings(limit_bytes=LIMIT)), "127.0.0.1:0")
        host, _, port = (await transport.start()).rpartition(":")

        async def codes(buffer: bytes) -> Code:
            reader, writer = await asyncio.open_connection(host, int(port))
            bare = code_of(await exchanged(reader, writer, buffer))
            writer.transport.abort()
            got = await client.post("/graphpipe", content=buffer)
            assert code_of(got.content) is bare
            assert (got.status_code, got.headers.get("retry-after")) == {
                Code.TOO_LARGE: (413, None),
                Code.OVERLOADED: (503, "1"),
            }[bare]
            return bare

        yield served, codes
        await transport.stop(1)


def echo(x: NDArray[Any]) -> NDArray[Any]:
    return x


@pytest.mark.parametrize(
    "buffer",
    [
        bytes(LIMIT + 1),
        shared(5, bytes(60_000)),
        shared(1025, b"a"),
        ask([1], output_names=("y",) * 1025),
    ],
    ids=["bytes", "shared bytes", "tensors", "names"],
)
async def test_G025_G080_what_never_fits_is_E13(buffer: bytes) -> None:
    """By its length, by what it comes to, by numbers of things; the function is not called."""
    called = threading.Event()

    def never(x: NDArray[Any]) -> NDArray[Any]:
        called.set()
        return x

    async with opened(never) as (_, codes):
        assert await codes(buffer) is Code.TOO_LARGE
    assert not called.is_set()


async def test_G080_what_an_invocation_may_not_hold_is_E13() -> None:
    """Whatever limit says so."""

    def both(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        return x

    async with opened(both) as (served, codes):
        served.driver.engine.limits = replace(served.driver.engine.limits, hard_frames=1)
        assert await codes(ask([1], [2])) is Code.TOO_LARGE


@pytest.mark.parametrize("limit", ["invocations", "threads"])
async def test_G079_G080_what_may_fit_later_is_E16(limit: str) -> None:
    """While something else runs; then it is answered."""
    go = threading.Event()

    def held(x: NDArray[Any]) -> NDArray[Any]:
        go.wait(10)
        return x

    async with opened(held) as (served, codes), served.client() as client:
        if limit == "threads":
            served.driver.threads.slots = 1
        else:
            served.driver.engine.max_invocations = 1
        first = asyncio.ensure_future(client.post("/graphpipe", content=fixture("infer_request")))
        await until(lambda: bool(served.driver.engine.running))
        await until(lambda: served.driver.threads.busy == 1)
        assert await codes(ask([1])) is Code.OVERLOADED
        go.set()
        assert (await first).status_code == 200
        await until(lambda: served.driver.threads.busy == 0)
        assert (await client.post("/graphpipe", content=ask([1]))).status_code == 200


async def test_G056_what_is_not_given_has_its_default() -> None:
    """Also between others, by name; what has none is E7."""

    def told(a: int, b: int = 20, c: int = 300) -> int:
        return a + b + c

    async with serving_models(told) as served, served.client() as client:

        async def asked(*given: Any, **more: Any) -> Any:
            got = await client.post("/graphpipe", content=ask(*given, **more))
            return values(got.content) if got.status_code == 200 else code_of(got.content)

        assert await asked(1) == [321]
        assert await asked(1, 2) == [303]
        assert await asked(1, 2, input_names=("a", "c")) == [23]
        assert await asked(2, 1, input_names=("c", "a")) == [23]
        assert await asked(1, 2, 3) == [6]
        assert await asked(2, input_names=("b",)) is Code.MISSING_INPUT


async def test_G105_what_is_refused_around_a_buffer_leaves_a_line_too(caplog: pytest.LogCaptureFixture) -> None:
    """Method, path, status; nothing of the body."""
    caplog.set_level(logging.INFO, "invoker.protocols.graphpipe.service.http")

    def same(x: int) -> int:
        return x

    body = b"s3cret"
    async with serving_models(same) as served, served.client() as client:
        await client.put("/graphpipe", content=body)
        await client.post("/graphpipe/none", content=body)
        await client.post("/graphpipe", content=body, headers={"Content-Encoding": "gzip"})
        await client.post("/graphpipe", content=body, headers={"Accept": "text/html"})
        await client.get("/graphpipe")
    told = [
        (one.getMessage(), one.status)
        for one in caplog.records
        if one.name == "invoker.protocols.graphpipe.service.http"
    ]  # type: ignore[attr-defined]
    assert told == [
        ("PUT /graphpipe answered", 405),
        ("POST /graphpipe/none answered", 404),
        ("POST /graphpipe answered", 415),
        ("POST /graphpipe answered", 406),
        ("GET /graphpipe answered", 200),
    ]
    assert "s3cret" not in caplog.text
