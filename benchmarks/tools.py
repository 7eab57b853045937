"""The measured tools as sync functions: an echo, and blocks of bytes."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bare_bridge import BLOCK
from invoker import function


@function
def echo(value: str) -> str:
    """Return the text."""
    return value


@function
def blocks(count: int) -> Iterator[bytes]:
    """Yield ``count`` blocks of 64 KiB."""
    payload = bytes(BLOCK)
    for _ in range(count):
        yield payload
