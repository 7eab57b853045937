"""`invoker.transports.http.inline_stream`: streams that are written by the thread that has read their requests."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from invoker.context import Context
from invoker.errors import Overloaded, Status
from tests.transports.http.test_inline_http import led, post, square
from tests.transports.http.test_streamed import EVENTS, LINES
from tests.transports.served import Served, Wire, until

UNSWEPT: Any = patch("invoker.execution.thread.leader_follower.Turn.begin", lambda *_: None)
"""However slow the machine is, no beat of the sweeper makes a stream long."""


def ask(body: str, *fields: str, accept: str = LINES, path: str = "/") -> str:
    """A request for a stream."""
    return post(body, f"Accept: {accept}", *fields, path=path)


def count(to: int) -> Iterator[int]:
    yield from range(to)


class Two(NamedTuple):
    """Two outputs."""

    even: Iterator[int]
    odd: Iterator[int]


def halves(to: int) -> Two:
    return Two(iter(range(0, to, 2)), iter(range(1, to, 2)))


class Steps:
    """Gives a value whenever it may, and tells how it ended."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.turns = threading.Semaphore(0)
        self.started = asyncio.Event()
        self.ended: list[type[BaseException] | None] = []
        self.context: Context | None = None

    def steps(self, to: int, ctx: Context) -> Iterator[int]:
        self.context = ctx
        self.loop.call_soon_threadsafe(self.started.set)
        try:
            for number in range(to):
                self.turns.acquire()
                yield number
            self.turns.acquire()
        except BaseException as error:
            self.ended.append(type(error))
            raise
        self.ended.append(None)


async def chunk(wire: Wire) -> bytes:
    """One chunk of a body; empty: the last one."""
    size = int(await wire.reader.readline(), 16)
    data = await wire.reader.readexactly(size + 2)
    return data[:-2]


async def head(wire: Wire) -> bytes:
    return await wire.reader.readuntil(b"\r\n\r\n")


async def body(wire: Wire) -> list[bytes]:
    """The chunks of a body."""
    found = []
    while data := await chunk(wire):
        found.append(data)
    return found


@asynccontextmanager
async def stepping(**about: Any) -> AsyncIterator[tuple[Steps, Served, Wire]]:
    """A stream that has given its first value, and is long."""
    steps = Steps()
    async with led(steps.steps, square, **about) as (served, _, left), served.wire() as wire:
        await wire.send(ask("100", path="/steps"))
        steps.turns.release()
        assert b" 200 " in await head(wire)
        assert await chunk(wire) == b"0\n"
        await until(lambda: bool(served.driver.direct) and next(iter(served.driver.direct)).is_swept)  # type: ignore[attr-defined]
        try:
            yield steps, served, wire
        finally:
            steps.turns.release(1000)
        assert left == []


@UNSWEPT
async def test_a_stream_is_written_where_its_request_was_read() -> None:
    """In one thread; the first item leaves alone, the others with the end, and the connection is used again."""
    threads: set[str] = set()

    def noted(to: int) -> Iterator[int]:
        threads.add(threading.current_thread().name)
        yield from range(to)

    async with led(noted) as (served, _, left), served.wire() as wire:
        for _ in range(3):
            await wire.send(ask("4"))
            told = await head(wire)
            assert b"content-type: application/x-ndjson\r\n" in told
            assert b"transfer-encoding: chunked\r\n" in told
            assert await body(wire) == [b"0\n", b"1\n2\n3\n"]
        assert served.driver.threads.busy == 0
        assert served.driver.engine.counters.finished[Status.OK] == 3
        await until(lambda: not served.driver.direct)
    assert left == []
    assert len(threads) == 1


@UNSWEPT
async def test_one_value_and_its_end_leave_together() -> None:
    """Nothing of the author's runs between them."""
    async with led(square) as (served, _, left), served.wire() as wire:
        await wire.send(ask("4", accept=EVENTS))
        await head(wire)
        assert await body(wire) == [b"id: 1\ndata: 16\n\nevent: end\ndata: {}\n\n"]
    assert left == []


async def test_several_outputs_come_by_name() -> None:
    """Each is drained by a thread of its own."""
    async with led(halves) as (served, _, left), served.wire() as wire:
        await wire.send(ask("4"))
        await head(wire)
        lines = b"".join(await body(wire)).splitlines()
        assert sorted(lines) == [b'{"even":0}', b'{"even":2}', b'{"odd":1}', b'{"odd":3}']
    assert left == []


async def test_H001_items_leave_as_they_come_and_others_are_answered_meanwhile() -> None:
    """A long stream passes the lead on; what it gives after a pause leaves at once."""
    async with stepping() as (steps, served, wire):
        for number in (1, 2, 3):
            steps.turns.release()
            assert await chunk(wire) == b"%d\n" % number
            async with served.wire() as other:
                await other.send(post("3", path="/square"))
                assert (await other.answer())[2] == b"9"


async def test_a_function_that_gives_little_does_not_lead_the_next_time() -> None:
    """One that has needed long for its items, unlike one that has given many in that time."""

    def slow(to: int) -> Iterator[int]:
        for number in range(to):
            time.sleep(0.005)
            yield number

    async with led(slow) as (served, leader, _), served.wire() as wire:
        pace = served.driver.pace(served.driver.engine.catalog.find("slow"))
        await wire.send(ask("4"))
        await head(wire)
        await body(wire)
        await until(lambda: not served.driver.direct)
        assert pace.slow_until > time.monotonic()
        leads = leader._leader_follower.leader
        await wire.send(ask("0"))
        await head(wire)
        assert await body(wire) == []
        assert leader._leader_follower.leader is not leads


async def test_H004_a_client_that_leaves_ends_the_function() -> None:
    """It hears of that at its next step."""
    async with stepping() as (steps, served, wire):
        wire.writer.transport.abort()
        (running,) = served.driver.direct
        await until(running.outlet.is_gone)  # type: ignore[attr-defined]
        assert steps.context is not None
        assert steps.context.cancelled
        steps.turns.release()
        await until(lambda: bool(steps.ended))
        await until(lambda: not served.driver.direct)
        assert served.driver.engine.counters.finished == {Status.CANCELLED: 1}


@pytest.mark.parametrize(("accept", "sign"), [(EVENTS, b":\n\n"), (LINES, b"")])
async def test_H013_the_head_leaves_although_there_is_no_item(accept: str, sign: bytes) -> None:
    """After a moment, with a heartbeat if the format has one; later there are others."""
    steps = Steps()
    beats = patch.multiple("invoker.transports.http.inline_stream", HEAD_S=0.35, HEARTBEAT_S=0.3)
    with beats:
        async with led(steps.steps) as (served, _, _), served.wire() as wire:
            began = time.monotonic()
            await wire.send(ask("1", accept=accept))
            assert b" 200 " in await head(wire)
            assert time.monotonic() - began > 0.2
            if sign:
                assert [await chunk(wire) for _ in range(3)] == [sign] * 3
            steps.turns.release(2)
            rest = b"".join(await body(wire)).replace(b":\n\n", b"")
            assert rest == (b"id: 1\ndata: 0\n\nevent: end\ndata: {}\n\n" if sign else b"0\n")


@UNSWEPT
async def test_H012_an_error_before_the_first_item_is_a_status() -> None:
    """And one behind it is an item; the connection goes on."""

    def fails(after: int) -> Iterator[int]:
        yield from range(after)
        raise ValueError("no")

    async with led(fails) as (served, _, left), served.wire() as wire:
        for text, status in (("0", 500), ('"x"', 400)):
            await wire.send(ask(text))
            assert (await wire.answer())[0] == status
        await wire.send(ask("2"))
        await head(wire)
        first, last = await body(wire)
        assert first == b"0\n"
        assert b'1\n{"error":' in last
    assert left == []


async def test_the_time_of_a_request_ends_its_stream() -> None:
    """With an error that the client sees; the function hears of it at its next step."""
    async with stepping(riff={"timeout_s": 0.3}) as (steps, served, wire):
        last = await chunk(wire)
        assert json.loads(last)["error"]["status"] == 504
        assert await chunk(wire) == b""
        steps.turns.release()
        await until(lambda: bool(steps.ended))
        await until(lambda: not served.driver.direct)
        assert served.driver.engine.counters.finished == {Status.DEADLINE_EXCEEDED: 1}
        await wire.send(post("3", path="/square"))
        assert (await wire.answer())[2] == b"9"


async def test_the_end_of_a_drain_is_told() -> None:
    """The stream that goes on is cut, and its client sees why."""
    async with stepping() as (steps, served, wire):
        assert not await served.driver.drain(0.05)
        assert json.loads(await chunk(wire))["error"]["status"] == 503
        assert await chunk(wire) == b""
        steps.turns.release()
        await until(lambda: bool(steps.ended))


async def test_a_stream_is_ended_when_the_process_holds_too_much() -> None:
    """Whoever looks after the memory can end it, although it has no limit in time."""
    async with stepping() as (_, served, wire):
        (running,) = served.driver.direct
        assert running.invocation is not None
        running.invocation.stop(Overloaded("too much is held"))
        assert json.loads(await chunk(wire))["error"]["code"] == "RESOURCE_EXHAUSTED"


async def test_H010_a_browser_that_asks_again_is_told_to_stop() -> None:
    """Without a run of the function."""
    async with led(count) as (served, _, left), served.wire() as wire:
        await wire.send(ask("4", "Last-Event-ID: 3", accept=EVENTS))
        assert (await wire.answer())[0] == 204
        assert served.driver.engine.counters.opened == 0
    assert left == []
