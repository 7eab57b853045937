"""Functions that call each other, reached by each protocol of a real server (E-129)."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from invoker import Context, function
from invoker.client import AsyncGraphPipe, EvergreenSession, RiffClient
from tests.serving import Served, serving


@function
def square(x: int) -> int:
    return x * x


@function
async def numbers(n: int) -> AsyncIterator[int]:
    for one in range(n):
        yield one


@function
def sum_of_squares(n: int, ctx: Context) -> int:
    """A sync caller of an async and of a sync function."""
    return sum(int(ctx.call("square", one)) for one in ctx.stream("numbers", n))


@function
async def asum_of_squares(n: int, ctx: Context) -> int:
    """An async caller of both."""
    return sum([await ctx.call("square", one) async for one in ctx.stream("numbers", n)])


@function
def norm(values: np.ndarray, ctx: Context) -> np.ndarray:
    """A model that calls a function for each number."""
    return np.array([ctx.call("square", int(one)) for one in values], dtype=np.float32)


@function
async def anorm(values: np.ndarray, ctx: Context) -> np.ndarray:
    """The same on the loop."""
    return np.array([await ctx.call("square", int(one)) for one in values], dtype=np.float32)


@pytest.fixture(scope="module")
def mixed() -> Iterator[Served]:
    with serving("tests.e2e.test_nested", "--protocols", "riff,http,evergreen,graphpipe") as one:
        yield one


@pytest.fixture(scope="module")
def plain() -> Iterator[Served]:
    """Sync functions only, so that calls run in threads of their own, whole and direct."""
    entry = "tests.e2e.nested_functions"
    with serving(entry) as one:
        yield one


@pytest.mark.parametrize("name", ["sum_of_squares", "asum_of_squares"])
async def test_E129_riff_evergreen_and_http_callers_get_what_other_functions_gave(mixed: Served, name: str) -> None:
    async with RiffClient(mixed.grpc) as client:
        found = [one.value async for one in client.invoke([[4]], accept=["application/json"], function=name)]
    assert found == [14]
    async with EvergreenSession(mixed.grpc) as session:
        assert await session.act(name, {"n": 4}).items() == [14]
    assert await asyncio.to_thread(posted, f"http://{mixed.http}/", name, 4) == 14


def posted(url: str, name: str, value: int) -> Any:
    headers = {"Content-Type": "application/json", "Invoker-Function": name}
    request = urllib.request.Request(url, json.dumps(value).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.loads(response.read())


@pytest.mark.parametrize("name", ["norm", "anorm"])
async def test_E129_a_model_calls_functions(mixed: Served, name: str) -> None:
    async with AsyncGraphPipe(f"http://{mixed.http}/graphpipe/{name}") as model:
        assert (await model.infer(np.array([1, 2, 3], dtype=np.float32))).tolist() == [1, 4, 9]


async def test_E129_calls_in_threads_of_their_own(plain: Served) -> None:
    """The whole driver for a call that is all here, the direct one for a stream, several threads for outputs."""
    async with RiffClient(plain.grpc) as client:
        once = [one.value async for one in client.invoke([[4]], accept=["application/json"], function="cube")]
        many = [one.value async for one in client.invoke([range(5)], accept=["application/json"], function="cubes")]
        spread = [one async for one in client.invoke([[1, 2]], accept=["application/json"] * 2, function="both")]
    assert await asyncio.to_thread(posted, f"http://{plain.http}/", "cube", 4) == 64
    assert once == [64]
    assert many == [0, 1, 8, 27, 64]
    assert sorted((one.index, one.value) for one in spread) == [(0, 1), (0, 4), (1, 1), (1, 8)]


@pytest.mark.timeout(20)
async def test_E129_functions_in_processes_of_their_own_call_and_are_called() -> None:
    """Over the pipe; a callee that dies is an error that its caller can catch."""
    with serving("tests.e2e.isolated_nested") as served:
        async with RiffClient(served.grpc) as client:

            async def once(name: str, value: int) -> Any:
                (found,) = [
                    one.value async for one in client.invoke([[value]], accept=["application/json"], function=name)
                ]
                return found

            inner = [True, [0, 1, 2], [0, 1, 4], "NOT_FOUND"]
            assert await once("from_child", 3) == inner
            assert await once("to_child", 3) == [True, inner]
            assert await once("dies_below", 1) not in ("", "None", "OK")
