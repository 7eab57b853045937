"""The tools that are measured: an echo and blocks of bytes, sync."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bare_bridge import BLOCK
from invoker import function


@function
def echo(value: str) -> str:
    """The text itself."""
    return value


@function
def blocks(count: int) -> Iterator[bytes]:
    """So many blocks of 64 KiB."""
    payload = bytes(BLOCK)
    for _ in range(count):
        yield payload
