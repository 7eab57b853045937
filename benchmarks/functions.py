"""The functions that are measured: an echo in each style."""

import time
from collections.abc import AsyncIterator, Iterator


async def agen(values: AsyncIterator[str]) -> AsyncIterator[str]:
    """An async generator."""
    async for value in values:
        yield value


def gen(values: Iterator[str]) -> Iterator[str]:
    """A sync generator."""
    yield from values


def reply(value: str) -> str:
    """Request/reply, sync."""
    return value


async def areply(value: str) -> str:
    """Request/reply, async."""
    return value


def sleeper(values: Iterator[bytes]) -> Iterator[str]:
    """Reads nothing for an hour."""
    time.sleep(3600)
    yield from (str(len(value)) for value in values)


async def flood(_: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """64 KiB values without end."""
    payload = bytes(65536)
    while True:
        yield payload
