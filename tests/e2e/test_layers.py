"""Wrapped functions of every kind over every protocol; one that blocks does not hold the others."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from invoker import function
from invoker.client import EvergreenSession, RiffClient, SyncToolBridge
from tests.serving import Served, serving


def _waiting(fn: Any) -> Any:
    @functools.wraps(fn)
    def wrapper(x: int) -> Any:
        time.sleep(x / 6)
        return asyncio.run(fn(x))

    return wrapper


def _handing_on(fn: Any) -> Any:
    @functools.wraps(fn)
    def wrapper(x: int) -> Any:
        return fn(x)

    return wrapper


def _yielding(fn: Any) -> Any:
    @functools.wraps(fn)
    async def wrapper(x: int) -> Any:
        for one in fn(x):
            yield one

    return wrapper


def _gathering(fn: Any) -> Any:
    @functools.wraps(fn)
    async def wrapper(x: int) -> Any:
        return [one async for one in fn(x)]

    return wrapper


async def _double(x: int) -> int:
    return 2 * x


def _some(x: int) -> Iterator[int]:
    yield 2 * x


async def _some_async(x: int) -> AsyncIterator[int]:
    yield 2 * x


blocking = function(name="blocking")(_waiting(_double))
passing = function(name="passing")(_handing_on(_double))
yielding = function(name="yielding")(_yielding(_some))
gathering = function(name="gathering")(_gathering(_some_async))
isolated = function(name="isolated", isolation="process")(_handing_on(_waiting(_double)))
NAMES = ["blocking", "passing", "yielding", "gathering", "isolated"]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("tests.e2e.test_layers") as one:
        yield one


@pytest.mark.parametrize("name", NAMES)
async def test_every_protocol(served: Served, name: str) -> None:
    """HTTP, riff, Evergreen and the tool bridge."""
    headers = {"Accept": "application/x-ndjson", "Content-Type": "application/json"}
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"http://{served.http}/{name}", content="3", headers=headers)
    assert answer.text == "6\n"
    async with RiffClient(served.grpc) as client:
        assert [one.value async for one in client.invoke([[3]], function=name)] == [6]
    async with EvergreenSession(served.grpc) as session:
        assert await session.act(name, {"x": 3}).items() == [6]


@pytest.mark.parametrize("name", ["blocking", "passing", "isolated"])
def test_the_tool_bridge(served: Served, name: str) -> None:
    """As a tool of one value."""
    with SyncToolBridge(served.grpc) as bridge, bridge.session() as session:
        assert session.call(name, 3) == 6


def test_a_wrapper_that_blocks_holds_nobody(served: Served) -> None:
    """It runs in a thread, though what it wraps is async."""
    answers = 0
    with ThreadPoolExecutor() as pool:
        call = pool.submit(httpx.post, f"http://{served.http}/blocking", json=12)
        while not call.done():
            assert httpx.get(f"http://{served.http}/livez").status_code == 200
            answers += 1
        assert call.result().json() == 24
    assert answers > 3, "the first may have come before the call, and one behind it"
