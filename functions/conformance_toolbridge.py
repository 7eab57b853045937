"""The tools that the tool bridge chapters of the conformance suite call.

``python -m invoker functions.conformance_toolbridge --protocols riff,toolbridge`` serves them all.
``docs/reference/conformance.md`` specifies them, so that they can be written in any language.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal, Optional

from functions import conformance
from functions.conformance import _mark, _marked
from invoker import Context, Field, function

marks = conformance.marks


# --- plain values


@function
def add(a: int, b: int = 2) -> int:
    """The sum of two whole numbers.

    >>> add(1)
    3
    """
    _mark("add.calls")
    return a + b


@function
def echo(value: Any) -> Any:
    """Return any value unchanged."""
    return value


@function
def kinds(value: Any) -> list[str]:
    """The names of the types of a value, or of the items of a list."""
    return [type(one).__name__ for one in (value if isinstance(value, list) else [value])]


@function
def described(a: int, b: list[str] | None = None, *, mode: Literal["x", "y"] = "x") -> Optional[float]:  # noqa: UP045 - in a form that users write
    """What a specification tells of.

    The second paragraph is no part of the description.

    Args:
        a: The first of all.
        b: A list that
            goes on in a second line.
        mode: One of two.
    """
    return None


@function
def typed(
    number: int = 0,
    ratio: float = 0.0,
    flag: bool = False,  # noqa: FBT001, FBT002 - callers may also give it by position
    text: str = "",
    items: list[int] | None = None,
) -> list[Any]:
    """Return the arguments unchanged."""
    _mark("typed.calls")
    return [number, ratio, flag, text, items]


@function
def placed(a: int, /, b: int, *, c: int = 0) -> list[int]:
    """Return the arguments; the first is positional-only, the last keyword-only."""
    return [a, b, c]


@function
def ruled(
    number: Annotated[int, Field(ge=0, le=10)] = 0,
    ratio: Annotated[float, Field(ge=-1.5)] = 0.0,
    text: Annotated[str, Field(pattern="^a+$")] = "a",
    part: Annotated[str, Field(pattern="ab")] = "ab",
    word: Annotated[str, Field(min_length=2, max_length=3)] = "ab",
    items: Annotated[list[int] | None, Field(rules=["unique_items"])] = None,
) -> bool:
    """Return True; the arguments have rules."""
    return True


@function
def size(value: Any) -> int:
    """The length of a value."""
    return len(value)


@function
def octets(count: int) -> bytes:
    """Return ``count`` bytes."""
    return b"\x07" * count


@function
def strange(kind: Literal["keys", "cycle", "object", "surrogate"]) -> Any:
    """Return a value that cannot be encoded."""
    cycle: list[Any] = []
    cycle.append(cycle)
    return {"keys": {1: 2}, "cycle": cycle, "object": object(), "surrogate": "\ud800"}[kind]


@function
def large(kind: Literal["2**53+1", "2**63", "-2**70", "bytes", "nan", "-0.0", "none", "nested"]) -> Any:
    """Return a value that codecs easily change."""
    return {
        "2**53+1": 2**53 + 1,
        "2**63": 2**63,
        "-2**70": -(2**70),
        "bytes": b"\x00\xff",
        "nan": float("nan"),
        "-0.0": -0.0,
        "none": None,
        "nested": {"a": [2**53 + 1, b"\x00\xff", True, None, {"b": 1.5}]},
    }[kind]


@function
def configured(key: str, context: Context) -> str | None:
    """Return the value of a key in the context of the call."""
    said = context.config(dict) or {}
    return said.get(key)


@function
async def remember(name: str, value: Any, context: Context) -> Any:
    """Set a variable of the session, and return its previous value."""
    before = await context.variables.get(name)
    await context.variables.set(name, value)
    return before


# --- endings


@function
def raising(message: str) -> int:
    """Raise a ValueError with this text."""
    _mark("raising.calls")
    raise ValueError(message)


@function
async def waiting(seconds: float) -> float:
    """Wait for some seconds, and allow cancellation."""
    with _marked("waiting"):
        await asyncio.sleep(seconds)
    return seconds


@function
def deaf(seconds: float) -> float:
    """Wait for some seconds, and ignore cancellation."""
    with _marked("deaf"):
        time.sleep(seconds)
    return seconds


@function
async def busy(seconds: float) -> int:
    """Wait for some seconds, and return how many calls were waiting here at once, this one included."""
    _busy.append(0)
    try:
        _busy[:] = [max(each, len(_busy)) for each in _busy]
        await asyncio.sleep(seconds)
        return max(_busy)
    finally:
        _busy.pop()


_busy: list[int] = []


# --- limits


@function(timeout_s=0.5)
async def brief(seconds: float) -> float:
    """Wait for some seconds; the time limit is half a second."""
    await asyncio.sleep(seconds)
    return seconds


@function(max_calls=1)
async def single(seconds: float) -> float:
    """Wait for some seconds; only one call is allowed at once."""
    _mark("single.calls")
    await asyncio.sleep(seconds)
    return seconds


@function(isolation="process", memory_bytes=512 << 20)
def hungry(megabytes: int) -> int:
    """Allocate this much memory; the limit is half a gibibyte."""
    return len(bytearray(b"x") * (megabytes << 20))


@function(calls_per_minute=3)
def seldom(number: int) -> int:
    """Return the number; three calls per minute are allowed."""
    return number


# --- streams


@function
def counted(n: int = 3) -> Iterator[int]:
    """Yield the numbers below ``n``."""
    with _marked("counted"):
        yield from range(n)


@function
async def counted_async(n: int = 3) -> AsyncIterator[int]:
    """Yield the numbers below ``n``, from an async generator."""
    with _marked("counted_async"):
        for number in range(n):
            yield number


@function
def broken(n: int) -> Iterator[int]:
    """Yield ``n`` numbers, and then raise."""
    yield from range(n)
    raise ValueError("broken")


@function
def blocks(count: int, length: int) -> Iterator[bytes]:
    """Yield ``count`` blocks of ``length`` bytes; the first byte of each is its number."""
    with _marked("blocks"):
        for number in range(count):
            _mark("blocks.items")
            yield bytes([number % 256]) + bytes(length - 1)


@function
async def endless() -> AsyncIterator[int]:
    """Yield numbers without end."""
    with _marked("endless"):
        for number in itertools.count():
            _mark("endless.items")
            yield number
            await asyncio.sleep(0)


@function
def slow_steps(seconds: float) -> Iterator[int]:
    """Yield numbers without end, with some seconds between them."""
    with _marked("slow_steps"):
        yield 0
        for number in itertools.count(1):
            time.sleep(seconds)
            yield number
