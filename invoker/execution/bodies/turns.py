"""`Turns`: lets bodies encode and decode large values one after another, with pauses.

Encoding twenty megabytes of numbers takes a tenth of a second, during which no other thread of the process, including
the event loop's, runs Python. Ten bodies that do so at once would delay all other calls for as long as they give
values. So values that have many members, and all values of a function that has once given a large one, are encoded one
at a time, with a pause after each that is as long as its encoding took. Large messages are decoded in the same way.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from invoker.execution.pace.turnbudget import TurnBudget
from invoker.message import Message

LARGE_BYTES: Final = 256 * 1024
"""A payload with more bytes is large."""

_MANY: Final = 16 * 1024
_SIZED: Final = frozenset({str, list, tuple, dict, set})

_SMALL: Final = (int, float, bool, type(None))

T = TypeVar("T")

Encode: TypeAlias = Callable[[int, Any], tuple[int, Message[bytes]]]


def is_of_many(value: Any) -> bool:
    """Whether a value has enough members or characters to be large."""
    return type(value) in _SIZED and len(value) > _MANY


class Turns:
    """Encodes and decodes large values one at a time, for all bodies of one process.

    Attributes:
        known: Names of functions that have given a large value.
        budget: Limits the time that the loop spends on decoding small messages.
    """

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.budget = TurnBudget()
        self._free_s = 0.0
        self._lock = threading.Lock()

    def encode_any(self, encode: Encode, name: str, index: int, value: Any) -> tuple[int, Message[bytes]]:
        """Encode a value in the calling thread, which waits for its turn if the value may be large."""
        if name in self.known or is_of_many(value):
            return self.encode(encode, index, value)
        made = encode(index, value)
        if len(made[1].payload) > LARGE_BYTES:
            self.known.add(name)
        return made

    def encode(self, encode: Encode, index: int, value: Any) -> tuple[int, Message[bytes]]:
        """Encode a value of a function in `known`, in the calling thread, which waits for its turn."""
        if _is_small(value):
            return encode(index, value)
        return self._take(lambda: encode(index, value))

    def decode(self, decode: Callable[[Message[bytes]], Any], message: Message[bytes]) -> Any:
        """Decode a large message in the calling thread, which waits for its turn."""
        return self._take(lambda: decode(message))

    async def encode_on_loop(self, encode: Encode, index: int, value: Any) -> tuple[int, Message[bytes]]:
        """Encode a value of a function in `known` on the loop, once its turn has come."""
        if _is_small(value):
            return encode(index, value)
        while (wait_s := self._free_s - time.monotonic()) > 0:  # noqa: ASYNC110 - until a time that is known
            await asyncio.sleep(wait_s)
        return self._timed(lambda: encode(index, value))

    def _take(self, work: Callable[[], T]) -> T:
        with self._lock:
            while (wait_s := self._free_s - time.monotonic()) > 0:
                time.sleep(wait_s)
            return self._timed(work)

    def _timed(self, work: Callable[[], T]) -> T:
        began_s = time.monotonic()
        try:
            return work()
        finally:
            now_s = time.monotonic()
            self._free_s = now_s + (now_s - began_s)


def _is_small(value: Any) -> bool:
    cls = type(value)
    return cls in _SMALL or (cls in (str, bytes) and len(value) <= LARGE_BYTES)
