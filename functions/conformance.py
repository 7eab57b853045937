"""The functions that the conformance suite calls: `python -m invoker functions.conformance` serves them all.

``docs/reference/conformance.md`` specifies them, so that they can be written in any language.
"""

from __future__ import annotations

import asyncio
import csv
import io
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, NamedTuple

from invoker import Context, Message, Output, codec, function
from invoker.mediatypes import MediaType

_marks: Counter[str] = Counter()
_lock = threading.Lock()


def _mark(key: str) -> None:
    with _lock:
        _marks[key] += 1


@contextmanager
def _marked(name: str) -> Iterator[None]:
    """Count how a call ended: ``NAME.completed`` or ``NAME.failed``, and always ``NAME.closed``."""
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


@function
def marks(key: str) -> int:
    """How often something happened in this process."""
    return _marks[key]


@codec("text/csv")
class Csv:
    """A codec for rows of text by RFC 4180, in addition to the built-in codecs."""

    def decode(self, message: Message[bytes], type_: Any) -> list[list[str]]:
        """Parse rows."""
        return list(csv.reader(io.StringIO(message.payload.decode(), newline="")))

    def encode(self, value: list[list[Any]], media_type: MediaType) -> Message[bytes]:
        """Write rows, each with CRLF at its end."""
        lines = io.StringIO(newline="")
        csv.writer(lines).writerows(value)
        return Message(lines.getvalue().encode(), media_type="text/csv")

    def can_encode(self, value: Any) -> bool:
        """Whether the value may be rows."""
        return isinstance(value, list)


# --- request/reply


@function
def square(x: int) -> int:
    """The square of a number."""
    _mark("square.calls")
    return x * x


@function
def echo(value: Any) -> Any:
    """Return any value unchanged."""
    return value


@function
def octets(value: bytes) -> bytes:
    """Return the bytes to which the payload is decoded."""
    return value


@function
def reciprocal(x: float) -> float:
    """A hundred divided by a number; raises for zero."""
    _mark("reciprocal.calls")
    return 100 / x


@dataclass
class Rectangle:
    """A structured parameter."""

    width: int
    height: int


@function
def area(rectangle: Rectangle) -> int:
    """Width times height of an object."""
    return rectangle.width * rectangle.height


@function
def headers(message: Message[str]) -> Message[dict[str, Any]]:
    """Return all headers of the message, and the one that the payload names; all are also sent as headers."""
    found = message.headers.get(message.payload) if message.payload else None
    every = dict(message.headers)
    return Message({"found": found, "all": every}, headers=every)


@function
def respond(wanted: dict[str, Any]) -> Message[Any]:
    """Return the payload and the headers that the object names."""
    return Message(wanted["payload"], headers=wanted["headers"])


@function
def names(_: Any, context: Context) -> dict[str, list[str]]:
    """Return the names and media types in the caller's StartFrame."""
    return {
        "inputs": list(context.input_names),
        "outputs": list(context.output_names),
        "accepts": list(context.accepts),
    }


@function
def fail(wanted: dict[str, str]) -> Any:
    """Raise an exception of this kind with this text."""
    kinds: dict[str, type[BaseException]] = {
        "error": ValueError,
        "exit": SystemExit,
        "interrupt": KeyboardInterrupt,
        "stop": StopIteration,
        "close": GeneratorExit,
    }
    raise kinds[wanted["kind"]](wanted["text"])


@function
def odd(kind: str) -> Any:
    """Return a value that is hard or impossible to serialise."""
    circle: list[Any] = []
    circle.append(circle)
    values: dict[str, Any] = {
        "nan": float("nan"),
        "circle": circle,
        "opaque": object(),
        "surrogate": "\ud800",
        "surrogate header": Message("x", headers={"odd": "\ud800"}),
        "nameless header": Message("x", headers={"": "odd"}),
        "number header": Message("x", headers={"odd": 7}),  # type: ignore[dict-item]  # a wrong type on purpose
    }
    return values[kind]


@function
def sleeper(seconds: float) -> float:
    """Block the calling thread for some seconds, and ignore cancellation."""
    time.sleep(seconds)
    return seconds


@function
async def delay(seconds: float) -> float:
    """Wait for some seconds without blocking a thread."""
    with _marked("delay"):
        await asyncio.sleep(seconds)
    return seconds


# --- streaming, one input and one output


@function
def total(numbers: Iterator[int]) -> int:
    """The sum of all numbers, after the end of the input."""
    with _marked("total"):
        return sum(numbers)


@function
async def greeting(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield ``hello`` before anything is read, and then every value."""
    yield "hello"
    async for value in values:
        yield value


@function
async def hundred(numbers: AsyncIterator[int]) -> AsyncIterator[int]:
    """Yield the sum of each hundred numbers, as soon as they have come."""
    batch: list[int] = []
    async for number in numbers:
        batch.append(number)
        if len(batch) == 100:
            yield sum(batch)
            batch.clear()


@function
def early(values: Iterator[Any]) -> Iterator[Any]:
    """Yield the first two values, and return without reading the rest."""
    yield from islice(values, 2)


@function
def emit(counts: Iterator[int]) -> Iterator[int]:
    """Yield the numbers below the first value, or numbers without end if it is negative."""
    with _marked("emit"):
        wanted = next(counts)
        for number in range(wanted) if wanted >= 0 else count():
            _mark("emit.values")
            yield number


@function
def refuse(values: Iterator[Any]) -> Iterator[Any]:
    """Raise at the call, before a stream is returned."""
    raise ValueError("refused")


# --- options: parameters with defaults


@function
def greet(name: str = "world") -> str:
    """A greeting for a name, or for the world."""
    return f"hello {name}"


@function
def scale(x: int, by: int = 2, plus: int = 0) -> int:
    """``x`` times ``by``, plus ``plus``."""
    return x * by + plus


@function
def take(values: Iterator[Any], count: int) -> Iterator[Any]:
    """The first ``count`` values."""
    yield from islice(values, count)


# --- other numbers of inputs and outputs


@function
def source() -> Iterator[int]:
    """Yield 1, 2, 3 without input."""
    yield from (1, 2, 3)


@function
def boom() -> Iterator[int]:
    """Yield 1, 2, 3 without input, and then raise."""
    yield from (1, 2, 3)
    raise ValueError("boom")


@function
def ticker() -> Iterator[str]:
    """Yield 0, 1, 2 ... without input and without end, as decimal text of 1024 digits."""
    with _marked("ticker"):
        for number in count():
            _mark("ticker.values")
            yield f"{number:01024d}"


@function
def sink(values: Iterator[Any]) -> None:
    """Count the values, without output."""
    for _ in values:
        _mark("sink.values")


@function
def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
    """Repeat each word as many times as the number at the same position."""
    for word, times in zip(words, counts, strict=False):
        for _ in range(times):
            yield word


@function
def pairs(left: Iterator[Any], right: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield each left value with the right value at the same position."""
    for pair in zip(left, right, strict=False):
        yield list(pair)


@function
def drain_second_first(first: Iterator[Any], second: Iterator[Any]) -> Iterator[Any]:
    """Yield all values of the second input, and then all of the first."""
    yield from second
    yield from first


@function(outputs=["left", "right"])
def route(parcels: Iterator[list[Any]]) -> Iterator[Output]:
    """For each ``[target, value]``, send the value to the output ``target``, an index or a name."""
    for target, value in parcels:
        yield Output(target, value)


class Two(NamedTuple):
    """Two outputs."""

    left: Iterator[int]
    right: Iterator[int]


@function
def two_outputs(plans: Iterator[list[int]]) -> Two:
    """Two outputs; the first value has a count for each: -1 means numbers without end, -2 one number and an error."""
    left, right = next(plans)
    return Two(_planned(left), _planned(right))


def _planned(plan: int) -> Iterator[int]:
    with _marked("two_outputs"):
        if plan == -2:
            yield 0
            raise ValueError("boom")
        yield from range(plan) if plan >= 0 else count()
