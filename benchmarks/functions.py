"""The measured functions: an echo in each style, and variants with JSON, two inputs, headers or waiting."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from benchmarks.items import item
from invoker import Message


def gen(values: Iterator[str]) -> Iterator[str]:
    """Echo texts by a sync generator."""
    yield from values


async def agen(values: AsyncIterator[str]) -> AsyncIterator[str]:
    """Echo texts by an async generator."""
    async for value in values:
        yield value


def reply(value: str) -> str:
    """Echo one text, sync."""
    return value


async def areply(value: str) -> str:
    """Echo one text, async."""
    return value


def gen_json(values: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Echo JSON objects by a sync generator."""
    yield from values


async def agen_json(values: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """Echo JSON objects by an async generator."""
    async for value in values:
        yield value


def reply_json(value: dict[str, Any]) -> dict[str, Any]:
    """Echo one JSON object, sync."""
    return value


async def areply_json(value: dict[str, Any]) -> dict[str, Any]:
    """Echo one JSON object, async."""
    return value


def reply_square(x: int) -> int:
    """Return the square of a number, sync."""
    return x * x


async def areply_square(x: int) -> int:
    """Return the square of a number, async."""
    return x * x


def gen_zip(left: Iterator[str], right: Iterator[str]) -> Iterator[str]:
    """Join the texts of two inputs pair by pair, by a sync generator."""
    for one, other in zip(left, right, strict=True):
        yield one + other


async def agen_zip(left: AsyncIterator[str], right: AsyncIterator[str]) -> AsyncIterator[str]:
    """Join the texts of two inputs pair by pair, by an async generator."""
    async for one in left:
        yield one + await anext(right)


def reply_zip(left: str, right: str) -> str:
    """Join two texts, sync."""
    return left + right


async def areply_zip(left: str, right: str) -> str:
    """Join two texts, async."""
    return left + right


def gen_headers(values: Iterator[Message[str]]) -> Iterator[Message[str]]:
    """Echo messages with their headers by a sync generator."""
    yield from values


async def agen_headers(values: AsyncIterator[Message[str]]) -> AsyncIterator[Message[str]]:
    """Echo messages with their headers by an async generator."""
    async for value in values:
        yield value


def reply_headers(value: Message[str]) -> Message[str]:
    """Echo one message with its headers, sync."""
    return value


async def areply_headers(value: Message[str]) -> Message[str]:
    """Echo one message with its headers, async."""
    return value


async def agen_sleep(values: AsyncIterator[str]) -> AsyncIterator[str]:
    """Echo texts, each after a millisecond of sleep."""
    async for value in values:
        await asyncio.sleep(0.001)
        yield value


async def agen_executor(values: AsyncIterator[str]) -> AsyncIterator[str]:
    """Echo texts, each by a call in a thread of the executor."""
    loop = asyncio.get_running_loop()
    async for value in values:
        await loop.run_in_executor(None, len, value)
        yield value


def gen_items(count: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` JSON objects, sync."""
    for number in range(count):
        yield item(number)


async def agen_items(count: int) -> AsyncIterator[dict[str, Any]]:
    """Yield ``count`` JSON objects, async."""
    for number in range(count):
        yield item(number)


async def agen_paced(count: int) -> AsyncIterator[dict[str, Any]]:
    """Yield ``count`` JSON objects, each after a millisecond of sleep."""
    for number in range(count):
        await asyncio.sleep(0.001)
        yield item(number)


async def agen_open(count: int) -> AsyncIterator[dict[str, Any]]:
    """Yield one JSON object, and never end."""
    yield item(count - 1)
    await asyncio.Event().wait()


def sleeper(values: Iterator[bytes]) -> Iterator[str]:
    """Sleep for an hour without reading a value, sync."""
    time.sleep(3600)
    yield from (str(len(value)) for value in values)


async def async_sleeper(values: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Sleep for an hour without reading a value, async."""
    await asyncio.sleep(3600)
    async for value in values:
        yield str(len(value))


def flood(_: Iterator[bytes]) -> Iterator[bytes]:
    """Yield values of 64 KiB without end, sync."""
    payload = bytes(65536)
    while True:
        yield payload


async def async_flood(_: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield values of 64 KiB without end, async."""
    payload = bytes(65536)
    while True:
        yield payload
