"""The same tools as async functions."""

from __future__ import annotations

from collections.abc import AsyncIterator

from benchmarks.bare_bridge import BLOCK
from invoker import function


@function
async def echo(value: str) -> str:
    """The text itself."""
    return value


@function
async def blocks(count: int) -> AsyncIterator[bytes]:
    """So many blocks of 64 KiB."""
    payload = bytes(BLOCK)
    for _ in range(count):
        yield payload
