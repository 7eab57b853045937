"""What the victims of `tests.attack.large` serve: streams of large values, of every kind, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

from invoker import function

_OF_20: dict[str, Any] = {
    "bytes": bytes(range(256)) * (20 << 12),
    "text": "x\u00e4\u00e9\n" * (5 << 20 >> 1),
    "numbers": [one * 0.7 for one in range(20 << 16)],
    "dict": {"a": "x" * (20 << 20), "b": [1]},
}


@cache
def _value(kind: str, mib: int) -> Any:
    """Made once, and beforehand, as nothing of it is to be measured."""
    value = _OF_20[kind]
    return value if mib == 20 else value * 2 + value[: len(value) // 2]


@function(safe=True)
async def large(kind: str = "bytes", mib: int = 20) -> AsyncIterator[Any]:
    """Gives such a value as often as it is taken."""
    while True:
        yield _value(kind, mib)


@function(safe=True)
def large_sync(kind: str = "bytes", mib: int = 20) -> Iterator[Any]:
    """The same in a thread."""
    while True:
        yield _value(kind, mib)


@function(safe=True)
async def large_once(kind: str = "bytes", mib: int = 20) -> Any:
    """Gives it once."""
    return _value(kind, mib)
