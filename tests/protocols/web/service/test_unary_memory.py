"""What a call without a session holds is let go at once, without the garbage collector, however it ends (R-011)."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest

from invoker.core.unary import UnaryInvocation
from invoker.transports.http.request import Request
from tests.transports.served import Served, until

JSON = "Content-Type: application/json\r\n"


@dataclass
class Thing:
    """What a function takes and gives, which can be watched."""

    how: str
    filling: str = ""


class Strange:
    """What no codec encodes."""


class Watched(bytes):
    """A body that says when it is let go."""

    alive = 0

    def __init__(self, _: bytes) -> None:
        Watched.alive += 1

    def __del__(self) -> None:
        Watched.alive -= 1


class Functions:
    """Note what they are given and what they give."""

    def __init__(self) -> None:
        self.seen: list[weakref.ref[Any]] = []
        self.begun, self.go = asyncio.Event(), threading.Event()
        self.loop = asyncio.get_running_loop()

    def _made(self, x: Thing) -> Any:
        given: Any = Strange() if x.how == "strange" else Thing("given", "b" * 1000)
        self.seen += [weakref.ref(x), weakref.ref(given)]
        if x.how == "raises":
            raise ValueError("x")
        if x.how == "chained":
            try:
                raise ValueError("x")
            except ValueError as error:
                raise KeyError("y") from error
        return given

    def sync(self, x: Thing) -> Any:
        if x.how in ("waits", "late"):
            self.seen.append(weakref.ref(x))
            self.loop.call_soon_threadsafe(self.begun.set)
            self.go.wait(5)
        return self._made(x)

    async def asynchronous(self, x: Thing) -> Any:
        if x.how in ("waits", "late"):
            self.seen.append(weakref.ref(x))
            self.begun.set()
            await asyncio.Event().wait()
        return self._made(x)


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def post(body: str, path: str = "") -> str:
    return f"POST /{path} HTTP/1.1\r\nHost: localhost\r\n{JSON}Content-Length: {len(body)}\r\n\r\n{body}"


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("is_apart", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("how", ["returns", "raises", "chained", "strange", "waits", "late"])
async def test_R011_values_and_invocations_are_let_go(how: str, is_async: bool, is_apart: bool) -> None:
    """What came in, what was to go out, and the record of the call; also when the client leaves or is late."""
    functions = Functions()
    marks: list[weakref.ref[Any]] = []

    def note(invocation: Any) -> None:
        assert type(invocation) is UnaryInvocation or (is_apart and not is_async)
        mark = Thing("the invocation's")
        invocation.context.configs = (mark,)
        marks.append(weakref.ref(mark))

    function = functions.asynchronous if is_async else functions.sync
    about = {"timeout_s": 0.1} if how == "late" else {}
    if is_apart and about:
        return  # the time of such a body has begun before it came, so it takes a session
    async with Served.at(function, riff=about) as served:
        served.driver.engine.on_close.append(note)
        async with served.wire() as wire:
            head, _, body = post(json.dumps({"how": how, "filling": "a" * 1000})).partition("\r\n\r\n")
            await wire.send(*([f"{head}\r\n\r\n"] if is_apart else []))
            await asyncio.sleep(0.02 if is_apart else 0)
            await wire.send(body if is_apart else f"{head}\r\n\r\n{body}")
            if how == "waits":
                await functions.begun.wait()
            else:
                status, _, _ = await wire.answer()
                assert status == {"returns": 200, "late": 504}.get(how, 500)
        if how == "waits":
            await asyncio.sleep(0.15 if not is_async else 0)
        functions.go.set()
        await until(lambda: not served.driver.engine.running)
        await until(lambda: len(marks) == 1)
        assert functions.seen
        await until(lambda: all(one() is None for one in functions.seen))
        if is_async or how not in ("waits", "late"):  # a thread remembers its last long call
            await until(lambda: marks[0]() is None)


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("path", ["one", "two"])
async def test_R011_a_body_is_let_go_while_its_function_runs(path: str) -> None:
    """It was decoded, and the function may run for long; many that wait hold their values only."""
    begun, go = asyncio.Event(), asyncio.Event()

    async def one(x: list[str]) -> int:
        begun.set()
        await go.wait()
        return len(x)

    async def two(a: list[str], b: str) -> int:
        return await one(a)

    body = Request.body
    text = '["a"]' if path == "one" else '{"a": ["a"], "b": "c"}'
    async with Served.at(one, two) as served, served.wire() as wire:
        with patch.object(Request, "body", lambda self: Watched(body(self))):
            await wire.send(post(text, path))
            await begun.wait()
            assert Watched.alive == 0
            go.set()
            assert (await wire.answer())[::2] == (200, b"1")


@pytest.mark.usefixtures("without_collector")
async def test_R011_a_call_that_is_refused_holds_nothing() -> None:
    """Its body is gone with its answer."""

    async def asynchronous(x: list[str]) -> int:
        return len(x)

    body = Request.body
    async with Served.at(asynchronous) as served, served.wire() as wire:
        served.driver.engine.is_loading = True
        with patch.object(Request, "body", lambda self: Watched(body(self))):
            await wire.send(post('["a"]'))
            assert (await wire.answer())[0] == 503
            assert Watched.alive == 0
