"""The functions that the Evergreen chapters of the conformance suite call.

``python -m invoker functions.conformance_evergreen`` serves them all. Their contract, so that others can provide them
in any language, is ``docs/reference/conformance.md``.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import count as counting
from typing import Any, NamedTuple

from invoker import Context, Message, function

_marks: Counter[str] = Counter()
_lock = threading.Lock()


def _mark(key: str) -> None:
    with _lock:
        _marks[key] += 1


@contextmanager
def _marked(name: str) -> Iterator[None]:
    """Count how a body ended: ``NAME.completed`` or ``NAME.failed``, and ``NAME.closed`` in either case."""
    _mark(f"{name}.calls")
    try:
        yield
    except BaseException:
        _mark(f"{name}.failed")
        raise
    else:
        _mark(f"{name}.completed")
    finally:
        _mark(f"{name}.closed")


def _shown(value: Any) -> Any:
    """A value as JSON can hold it: bytes as ``{"bytes": how many, "hex": the first 16}``."""
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": len(value), "hex": bytes(value[:16]).hex()}
    return value


def _said(leaf: Any) -> str:
    """What GENERATE answers to one leaf of its prompt."""
    return leaf.upper() if isinstance(leaf, str) else f"<{len(leaf)} bytes>"


class _Nothing(AsyncIterator[Any]):
    """An input that nobody gave."""

    async def __anext__(self) -> Any:
        raise StopAsyncIteration


_NOTHING = _Nothing()


@function
def marks(key: str) -> int:
    """How often something happened in this process."""
    return _marks[key]


@function
def note(key: str) -> None:
    """Count this mark; no output."""
    _mark(key)


# --- plain functions


@function
def upper(text: str) -> str:
    """Text in upper case."""
    _mark("upper.calls")
    return text.upper()


@function
def square(x: int) -> int:
    """The square of a number."""
    return x * x


@function
def octets(data: bytes) -> bytes:
    """The bytes of a leaf."""
    return data


@function
def kind(value: Any) -> dict[str, Any]:
    """What a leaf was decoded to."""
    return {"value": _shown(value)}


@function
def join(left: str, right: str) -> str:
    """Two texts in one."""
    return left + right


@function
def repeat(text: str, times: int = 2) -> str:
    """A text several times, twice unless told otherwise."""
    return text * times


@function
def options(**named: Any) -> dict[str, Any]:
    """Every input by its name."""
    return {name: _shown(value) for name, value in named.items()}


@function
def page(text: str) -> Message[str]:
    """A text as a page: its own media type, role and file name."""
    return Message(text, media_type="text/html", headers={"role": "model", "original-file-name": "page.html"})


@function
def picture(data: bytes) -> Message[bytes]:
    """Bytes as an image."""
    return Message(data, media_type="image/png")


@function
def configs(text: str, context: Context) -> dict[str, Any]:
    """The configs of the action: type and, where it is a Struct, its fields."""
    found = []
    for config in context.configs:
        is_struct = config.type_url.endswith("google.protobuf.Struct")
        found.append({"type": config.type_url, "value": config.to_dict() if is_struct else _shown(config.value)})
    return {"text": text, "configs": found}


@function
def large(size: int) -> str:
    """A text of so many characters, each of three bytes."""
    return "日" * size


@function
def fail(wanted: str) -> str:
    """Raise: ``exit`` leaves the process in other places, anything else is the text of a ValueError."""
    raise SystemExit(3) if wanted == "exit" else ValueError(wanted)


@function
def odd(kind: str) -> Any:
    """A value that cannot be sent."""
    circle: list[Any] = []
    circle.append(circle)
    return {"nan": float("nan"), "circle": circle, "opaque": object(), "surrogate": "\ud800"}[kind]


@function
async def delay(seconds: float) -> float:
    """Wait for some seconds without blocking a thread."""
    with _marked("delay"):
        await asyncio.sleep(seconds)
    return seconds


# --- streams in


@function
def items(values: Iterator[Any]) -> dict[str, list[Any]]:
    """All leaves of the input, once it has ended."""
    with _marked("items"):
        return {"items": [_shown(value) for value in values]}


@function
def parts(leaves: Iterator[Message[Any]]) -> dict[str, list[Any]]:
    """All leaves of the input with their media types and headers."""
    found = [{"type": leaf.media_type, "value": _shown(leaf.payload), "headers": dict(leaf.headers)} for leaf in leaves]
    return {"items": found}


@function
def total(numbers: Iterator[int]) -> int:
    """The sum of all numbers, once the input has ended."""
    with _marked("total"):
        return sum(numbers)


@function
def both(left: Iterator[Any], right: Iterator[Any]) -> dict[str, list[Any]]:
    """All leaves of two inputs; the second one is read first."""
    last = [_shown(value) for value in right]
    return {"left": [_shown(value) for value in left], "right": last}


@function
def early(values: Iterator[Any]) -> Iterator[str]:
    """``done``, without a look at the input."""
    yield "done"


@function
def sink(values: Iterator[Any]) -> None:
    """Count the leaves; no output."""
    for _ in values:
        _mark("sink.values")


# --- streams out


@function
async def echo(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Each leaf as it comes."""
    async for value in values:
        yield value


@function
async def pieces(text: AsyncIterator[str]) -> AsyncIterator[str]:
    """Each piece of a text as it comes."""
    async for piece in text:
        yield piece


@function(name="GENERATE")
async def generate(prompt: AsyncIterator[Any] = _NOTHING, text: AsyncIterator[Any] = _NOTHING) -> AsyncIterator[str]:
    """Answers each leaf of a prompt: text in upper case, anything else by its size."""
    _mark("GENERATE.calls")
    for leaves in (prompt, text):
        async for leaf in leaves:
            _mark("GENERATE.leaves")
            yield _said(leaf)


@function
async def drip(count: int = 3, seconds: float = 0.0) -> AsyncIterator[str]:
    """0, 1, 2 ... as text, so many, so many seconds apart."""
    with _marked("drip"):
        for number in range(count):
            if number:
                await asyncio.sleep(seconds)
            yield str(number)


@function
def records(count: int = 3) -> Iterator[dict[str, int]]:
    """So many objects."""
    for number in range(count):
        yield {"n": number}


@function
def mixed() -> Iterator[Any]:
    """A text, then an object: they cannot share a leaf."""
    yield "a"
    yield {}


@function
def boom(count: int = 3) -> Iterator[str]:
    """So many letters, then an error."""
    for number in range(count):
        yield chr(ord("a") + number)
    raise ValueError("boom")


@function
def endless(size: int = 1024) -> Iterator[str]:
    """Texts of so many characters without end."""
    with _marked("endless"):
        for number in counting():
            _mark("endless.values")
            yield f"{number:0{size}d}"


class Split(NamedTuple):
    """Even and odd numbers."""

    even: Iterator[int]
    odd: Iterator[int]


@function
def split(numbers: Iterator[int]) -> Split:
    """Even numbers on one output, odd ones on the other."""
    every = list(numbers)
    return Split(iter([n for n in every if n % 2 == 0]), iter([n for n in every if n % 2]))
