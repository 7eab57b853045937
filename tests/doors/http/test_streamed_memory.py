"""`invoker.doors.http.streamed`: what is held of bodies that stream in, and the turns that others have meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from invoker.core.budget import STEP_BYTES
from tests.doors.doors import Served, until

LINES = "application/x-ndjson"
HEAD = (
    f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: {LINES}\r\nAccept: {LINES}\r\n"
    "Transfer-Encoding: chunked\r\n\r\n"
)


async def double(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield 2 * x


async def size(xs: AsyncIterator[str]) -> AsyncIterator[int]:
    async for x in xs:
        yield len(x)


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def test_H162_a_line_that_does_not_end_is_counted_and_given_back() -> None:
    """Beyond the bytes that nobody counts; the end of the line gives them back, and so does the end of the request."""
    async with Served.at(size) as served, served.wire() as wire:
        memory = served.driver.engine.memory
        await wire.send(HEAD, chunked(b'"' + b"1" * 3 * STEP_BYTES))
        await until(lambda: memory.held >= 3 * STEP_BYTES)
        await wire.send(chunked(b'"\n'))
        await wire.reader.readuntil(b"%d\n" % (3 * STEP_BYTES))
        await until(lambda: memory.held == 0)
        await wire.send(chunked(b"1" * 3 * STEP_BYTES))
        await until(lambda: memory.held >= 3 * STEP_BYTES)
        wire.writer.transport.abort()
        await until(lambda: memory.held == 0)


async def test_H162_a_line_that_does_not_fit_into_the_process_is_refused() -> None:
    """By 503, because the client may try again; nothing is left of it."""
    async with Served.at(double) as served, served.wire() as wire:
        memory = served.driver.engine.memory
        memory.most_bytes = 2 * STEP_BYTES
        await wire.send(HEAD, chunked(b"1" * 4 * STEP_BYTES))
        assert b"503" in await wire.reader.readline()
        await until(lambda: memory.held == 0 and not served.driver.engine.running)


@pytest.mark.parametrize("body", [b"\n", b" \n"])
async def test_H164_others_have_a_turn_within_a_body_of_no_items(body: bytes) -> None:
    """A hundred thousand blank lines are not taken in one turn of the loop; the item behind them is."""
    turns, is_over = 0, False

    async def count() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await asyncio.sleep(0)

    async with Served.at(double) as served, served.wire() as wire:
        data = HEAD.encode() + chunked(body * 200_000 + b"4\n")
        counting = asyncio.create_task(count())
        wire.writer.write(data)
        await wire.reader.readuntil(b"8\n")
        is_over = True
        await counting
    assert turns >= len(body) * 200_000 // 32_768
