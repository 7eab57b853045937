"""The tools of `benchmarks.tools` as async functions."""

from __future__ import annotations

from collections.abc import AsyncIterator

from benchmarks.bare_bridge import BLOCK
from invoker import function


@function
async def echo(value: str) -> str:
    """Return the text."""
    return value


@function
async def blocks(count: int) -> AsyncIterator[bytes]:
    """Yield ``count`` blocks of 64 KiB."""
    payload = bytes(BLOCK)
    for _ in range(count):
        yield payload
