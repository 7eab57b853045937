"""What the tests of the page serve: one function for each thing that it shows."""

from __future__ import annotations

import asyncio
import io
import json
import math
import struct
import wave
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from invoker import Field, Message, Output, function

EVIL = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'


class Colour(Enum):
    RED = "red"
    GREEN = "green"
    EVIL = EVIL


@dataclass
class Point:
    x: float
    y: float = 0.0
    label: str | None = None


class Split(NamedTuple):
    even: AsyncIterator[int]
    odd: AsyncIterator[int]


@function
async def first() -> AsyncIterator[str]:
    """Greets at once."""
    yield "hello"


@function
async def generate(
    prompt: str, temperature: Annotated[float, Field(ge=0, le=2)] = 0.7, words: int = 6
) -> AsyncIterator[str]:
    """Says the words of the prompt again and again, one by one."""
    for word in (prompt.split() * words)[:words]:
        await asyncio.sleep(0.01)
        yield f"{word} "


@function
async def repeat(words: AsyncIterator[str], counts: AsyncIterator[int]) -> AsyncIterator[str]:
    """Says each word as often as its count tells."""
    async for count in counts:
        word = await anext(words)
        for _ in range(count):
            yield word


@function
async def running_mean(numbers: AsyncIterator[float], digits: int = 3) -> AsyncIterator[float]:
    """The mean of the numbers so far."""
    total = count = 0.0
    async for one in numbers:
        total, count = total + one, count + 1
        yield round(total / count, digits)


@function
def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


@function
def paint(
    point: Point,
    colour: Colour,
    mode: Literal["fast", "good"] = "good",
    tags: list[str] = [],  # noqa: B006 - what a user writes
    dry: bool = False,
) -> dict[str, Any]:
    """Gives back what it was given."""
    named = {"x": point.x, "y": point.y, "label": point.label}
    return {"point": named, "colour": colour.value, "mode": mode, "tags": tags, "dry": dry}


@function
def fail(x: int) -> int:
    """It raises."""
    raise ValueError(f"{x} is not liked {EVIL}")


@function
async def ticks(every_s: float = 0.01) -> AsyncIterator[int]:
    """Counts for ever."""
    count = 0
    while True:
        yield count
        count += 1
        await asyncio.sleep(every_s)


@function
def flood() -> Iterator[int]:
    """Counts for ever, as fast as anybody takes it."""
    count = 0
    while True:
        yield count
        count += 1


@function
def length(data: bytes) -> int:
    """How many bytes a file has."""
    return len(data)


@function
def picture() -> Message[bytes]:
    """A red dot."""
    row = b"\0" + bytes((200, 40, 40)) * 8
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(row * 8)),
        (b"IEND", b""),
    ]
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
    return Message(b"\x89PNG\r\n\x1a\n" + body, media_type="image/png")


@function
def tone() -> Message[bytes]:
    """A tenth of a second of sound."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(at / 3))) for at in range(800)))
    return Message(out.getvalue(), media_type="audio/wav")


@function
def matrix(size: Annotated[int, Field(ge=2, le=64)] = 8) -> list[list[float]]:
    """Numbers in rows."""
    return [[float(x * y) for x in range(size)] for y in range(size)]


@function
def tensor() -> NDArray[np.float32]:
    """An array."""
    return np.arange(12, dtype=np.float32).reshape(3, 4)


@function
async def rows(count: int = 5) -> AsyncIterator[dict[str, Any]]:
    """Rows of a table."""
    for at in range(count):
        yield {"id": at, "name": f"row {at}", EVIL: EVIL}


@function
async def stuck(numbers: AsyncIterator[int]) -> int:
    """Never reads."""
    await asyncio.Event().wait()
    return 0


@function
def told(value: Any) -> str:
    """What it was given, as JSON."""
    return json.dumps(value)


@function(isolation="process")
def apart(x: int = 3) -> int:
    """Runs in a process of its own."""
    return x


@function
async def split(numbers: AsyncIterator[int]) -> Split:
    """Even numbers to one output, odd ones to the other."""
    even: asyncio.Queue[int | None] = asyncio.Queue()
    odd: asyncio.Queue[int | None] = asyncio.Queue()

    async def feed() -> None:
        async for one in numbers:
            await (odd if one % 2 else even).put(one)
        await even.put(None)
        await odd.put(None)

    task = asyncio.get_running_loop().create_task(feed())

    async def taken(queue: asyncio.Queue[int | None]) -> AsyncIterator[int]:
        while (one := await queue.get()) is not None:
            yield one
        await task

    return Split(taken(even), taken(odd))


@function
def many(a: int, *rest: int) -> int:
    """Adds any number of numbers."""
    return a + sum(rest)


@function
def further(a: int, **more: str) -> dict[str, Any]:
    """Takes any parameters."""
    return {"a": a, **more}


@function
async def tag(words: AsyncIterator[str]) -> AsyncIterator[Output]:
    """Names its outputs itself."""
    async for word in words:
        yield Output("errors" if word.startswith("e") else "good", word)


@function
def hostile(text: str = EVIL) -> dict[str, Any]:
    """Gives things with tags: <img src=x onerror="window.pwned=1">

    <script>window.pwned=1</script>
    """
    return {EVIL: text, "list": [EVIL, {EVIL: [EVIL]}], "url": "javascript:window.pwned=1"}


@function
def svg() -> Message[bytes]:
    """A picture with a script in it."""
    text = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><script>window.pwned=1</script></svg>'
    return Message(text.encode(), media_type="image/svg+xml")


@function
def html() -> Message[bytes]:
    """A document of a function, which must stay a text."""
    return Message(EVIL.encode(), media_type="text/html")
