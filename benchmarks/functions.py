"""The functions that are measured: an echo in each style, and the same with JSON, two inputs, headers or waiting."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from benchmarks.items import item
from invoker import Message


def gen(values: Iterator[str]) -> Iterator[str]:
    """A sync generator."""
    yield from values


async def agen(values: AsyncIterator[str]) -> AsyncIterator[str]:
    """An async generator."""
    async for value in values:
        yield value


def reply(value: str) -> str:
    """Request/reply, sync."""
    return value


async def areply(value: str) -> str:
    """Request/reply, async."""
    return value


def gen_json(values: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A sync generator of JSON objects."""
    yield from values


async def agen_json(values: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """An async generator of JSON objects."""
    async for value in values:
        yield value


def reply_json(value: dict[str, Any]) -> dict[str, Any]:
    """Request/reply with JSON objects, sync."""
    return value


async def areply_json(value: dict[str, Any]) -> dict[str, Any]:
    """Request/reply with JSON objects, async."""
    return value


def reply_square(x: int) -> int:
    """A number times itself, sync."""
    return x * x


async def areply_square(x: int) -> int:
    """A number times itself, async."""
    return x * x


def gen_zip(left: Iterator[str], right: Iterator[str]) -> Iterator[str]:
    """Two inputs side by side, sync."""
    for one, other in zip(left, right, strict=True):
        yield one + other


async def agen_zip(left: AsyncIterator[str], right: AsyncIterator[str]) -> AsyncIterator[str]:
    """Two inputs side by side, async."""
    async for one in left:
        yield one + await anext(right)


def reply_zip(left: str, right: str) -> str:
    """Request/reply with two inputs, sync."""
    return left + right


async def areply_zip(left: str, right: str) -> str:
    """Request/reply with two inputs, async."""
    return left + right


def gen_headers(values: Iterator[Message[str]]) -> Iterator[Message[str]]:
    """A sync generator that keeps the headers."""
    yield from values


async def agen_headers(values: AsyncIterator[Message[str]]) -> AsyncIterator[Message[str]]:
    """An async generator that keeps the headers."""
    async for value in values:
        yield value


def reply_headers(value: Message[str]) -> Message[str]:
    """Request/reply that keeps the headers, sync."""
    return value


async def areply_headers(value: Message[str]) -> Message[str]:
    """Request/reply that keeps the headers, async."""
    return value


async def agen_sleep(values: AsyncIterator[str]) -> AsyncIterator[str]:
    """A timer for each item."""
    async for value in values:
        await asyncio.sleep(0.001)
        yield value


async def agen_executor(values: AsyncIterator[str]) -> AsyncIterator[str]:
    """A thread's work for each item."""
    loop = asyncio.get_running_loop()
    async for value in values:
        await loop.run_in_executor(None, len, value)
        yield value


def gen_items(count: int) -> Iterator[dict[str, Any]]:
    """So many JSON objects, sync."""
    for number in range(count):
        yield item(number)


async def agen_items(count: int) -> AsyncIterator[dict[str, Any]]:
    """So many JSON objects, async."""
    for number in range(count):
        yield item(number)


async def agen_paced(count: int) -> AsyncIterator[dict[str, Any]]:
    """So many JSON objects, each after a millisecond."""
    for number in range(count):
        await asyncio.sleep(0.001)
        yield item(number)


async def agen_open(count: int) -> AsyncIterator[dict[str, Any]]:
    """One JSON object, and then nothing for ever."""
    yield item(count - 1)
    await asyncio.Event().wait()


def sleeper(values: Iterator[bytes]) -> Iterator[str]:
    """Reads nothing for an hour, sync."""
    time.sleep(3600)
    yield from (str(len(value)) for value in values)


async def async_sleeper(values: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Reads nothing for an hour, async."""
    await asyncio.sleep(3600)
    async for value in values:
        yield str(len(value))


def flood(_: Iterator[bytes]) -> Iterator[bytes]:
    """64 KiB values without end, sync."""
    payload = bytes(65536)
    while True:
        yield payload


async def async_flood(_: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """64 KiB values without end, async."""
    payload = bytes(65536)
    while True:
        yield payload
