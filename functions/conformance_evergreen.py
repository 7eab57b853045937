"""The functions that the Evergreen chapters of the conformance suite call, and those of the riff chapters.

``python -m invoker functions.conformance_evergreen`` serves them all in both protocols. Their contract, so that others
can provide them in any language, is ``docs/reference/conformance.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count as counting
from typing import Any, NamedTuple

from functions import conformance
from functions.conformance import _mark, _marked
from invoker import Context, Message, function
from invoker.author.decorator import options_of
from invoker.protocols import evergreen

globals().update({name: value for name, value in vars(conformance).items() if options_of(value) is not None})


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
def kind(value: Any) -> dict[str, Any]:
    """What a leaf was decoded to."""
    return {"value": _shown(value)}


@function
def join(left: str, right: str) -> str:
    """Two texts in one."""
    return left + right


@function
def multiply(text: str, times: int = 2) -> str:
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
def collapse(wanted: str) -> str:
    """Raise: ``exit`` leaves the process in other places, anything else is the text of a ValueError."""
    raise SystemExit(3) if wanted == "exit" else ValueError(wanted)


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
def both(left: Iterator[Any], right: Iterator[Any]) -> dict[str, list[Any]]:
    """All leaves of two inputs; the second one is read first."""
    last = [_shown(value) for value in right]
    return {"left": [_shown(value) for value in left], "right": last}


@function
def leave(values: Iterator[Any]) -> Iterator[str]:
    """``done``, without a look at the input."""
    yield "done"


# --- streams out


@function
async def replay(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
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
def stumble(count: int = 3) -> Iterator[str]:
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


@function(options=[evergreen.Nodes(retain=False)])
def fountain(size: int = 1024) -> Iterator[str]:
    """As endless, but what was sent is kept nowhere."""
    with _marked("fountain"):
        for number in counting():
            _mark("fountain.values")
            yield f"{number:0{size}d}"


@function(options=[evergreen.Nodes(sequence=True)])
def words(text: str) -> Iterator[str]:
    """The words of a text, each for itself."""
    yield from text.split()


class Split(NamedTuple):
    """Even and odd numbers."""

    even: Iterator[int]
    odd: Iterator[int]


@function
def split(numbers: Iterator[int]) -> Split:
    """Even numbers on one output, odd ones on the other."""
    every = list(numbers)
    return Split(iter([n for n in every if n % 2 == 0]), iter([n for n in every if n % 2]))


@function(outputs=["even", "odd"])
def sort(numbers: Iterator[int], context: Context) -> None:
    """Each number on its output as it comes; a negative one ends its output."""
    for number in numbers:
        output = context.outputs["odd" if number % 2 else "even"]
        output.end() if number < 0 else output.send(number)
