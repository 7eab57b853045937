"""The functions that the Evergreen and riff chapters of the conformance suite call.

``python -m invoker functions.conformance_evergreen`` serves them all in both protocols.
``docs/reference/conformance.md`` specifies them, so that they can be written in any language.
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
    """A value in a form that JSON can represent: bytes as ``{"bytes": how many, "hex": the first 16}``."""
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": len(value), "hex": bytes(value[:16]).hex()}
    return value


def _said(leaf: Any) -> str:
    """The answer of GENERATE to one leaf of its prompt."""
    return leaf.upper() if isinstance(leaf, str) else f"<{len(leaf)} bytes>"


class _Nothing(AsyncIterator[Any]):
    """An input that the caller did not give; it has no items."""

    async def __anext__(self) -> Any:
        raise StopAsyncIteration


_NOTHING = _Nothing()


@function
def note(key: str) -> None:
    """Increase the count of this name, without output."""
    _mark(key)


# --- plain functions


@function
def upper(text: str) -> str:
    """Text in upper case."""
    _mark("upper.calls")
    return text.upper()


@function
def kind(value: Any) -> dict[str, Any]:
    """The type to which a leaf was decoded, and the value."""
    return {"value": _shown(value)}


@function
def join(left: str, right: str) -> str:
    """Concatenate two texts."""
    return left + right


@function
def multiply(text: str, times: int = 2) -> str:
    """Repeat a text, by default twice."""
    return text * times


@function
def options(**named: Any) -> dict[str, Any]:
    """Return every input by its name."""
    return {name: _shown(value) for name, value in named.items()}


@function
def page(text: str) -> Message[str]:
    """Return a text as a page, with its own media type, role and file name."""
    return Message(text, media_type="text/html", headers={"role": "model", "original-file-name": "page.html"})


@function
def picture(data: bytes) -> Message[bytes]:
    """Return bytes as an image."""
    return Message(data, media_type="image/png")


@function
def configs(text: str, context: Context) -> dict[str, Any]:
    """Return the configs of the action: the type of each, and the fields of a Struct."""
    found = []
    for config in context.configs:
        is_struct = config.type_url.endswith("google.protobuf.Struct")
        found.append({"type": config.type_url, "value": config.to_dict() if is_struct else _shown(config.value)})
    return {"text": text, "configs": found}


@function
def large(size: int) -> str:
    """A text of ``size`` characters, each of three bytes."""
    return "日" * size


@function
def collapse(wanted: str) -> str:
    """Raise: SystemExit for ``exit``, otherwise a ValueError with this text."""
    raise SystemExit(3) if wanted == "exit" else ValueError(wanted)


# --- streams in


@function
def items(values: Iterator[Any]) -> dict[str, list[Any]]:
    """Return all leaves of the input, after its end."""
    with _marked("items"):
        return {"items": [_shown(value) for value in values]}


@function
def parts(leaves: Iterator[Message[Any]]) -> dict[str, list[Any]]:
    """Return all leaves of the input, with their media types and headers."""
    found = [{"type": leaf.media_type, "value": _shown(leaf.payload), "headers": dict(leaf.headers)} for leaf in leaves]
    return {"items": found}


@function
def both(left: Iterator[Any], right: Iterator[Any]) -> dict[str, list[Any]]:
    """Return all leaves of two inputs; the second one is read first."""
    last = [_shown(value) for value in right]
    return {"left": [_shown(value) for value in left], "right": last}


@function
def leave(values: Iterator[Any]) -> Iterator[str]:
    """Return ``done`` without reading the input."""
    yield "done"


# --- streams out


@function
async def replay(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield each leaf as it comes."""
    async for value in values:
        yield value


@function
async def pieces(text: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield each piece of a text as it comes."""
    async for piece in text:
        yield piece


@function(name="GENERATE")
async def generate(prompt: AsyncIterator[Any] = _NOTHING, text: AsyncIterator[Any] = _NOTHING) -> AsyncIterator[str]:
    """Answer each leaf of a prompt: text in upper case, all else by its size."""
    _mark("GENERATE.calls")
    for leaves in (prompt, text):
        async for leaf in leaves:
            _mark("GENERATE.leaves")
            yield _said(leaf)


@function
async def drip(count: int = 3, seconds: float = 0.0) -> AsyncIterator[str]:
    """Yield ``count`` numbers as text, from 0, with ``seconds`` between them."""
    with _marked("drip"):
        for number in range(count):
            if number:
                await asyncio.sleep(seconds)
            yield str(number)


@function
def records(count: int = 3) -> Iterator[dict[str, int]]:
    """Yield ``count`` objects."""
    for number in range(count):
        yield {"n": number}


@function
def mixed() -> Iterator[Any]:
    """Yield a text and then an object, which cannot be in one leaf."""
    yield "a"
    yield {}


@function
def stumble(count: int = 3) -> Iterator[str]:
    """Yield ``count`` letters, and then raise."""
    for number in range(count):
        yield chr(ord("a") + number)
    raise ValueError("boom")


@function
def endless(size: int = 1024) -> Iterator[str]:
    """Yield texts of ``size`` characters without end."""
    with _marked("endless"):
        for number in counting():
            _mark("endless.values")
            yield f"{number:0{size}d}"


@function(options=[evergreen.Nodes(retain=False)])
def fountain(size: int = 1024) -> Iterator[str]:
    """Yield texts like `endless`, but the values are not retained."""
    with _marked("fountain"):
        for number in counting():
            _mark("fountain.values")
            yield f"{number:0{size}d}"


@function(options=[evergreen.Nodes(sequence=True)])
def words(text: str) -> Iterator[str]:
    """Yield the words of a text, each as its own item."""
    yield from text.split()


class Split(NamedTuple):
    """Even and odd numbers."""

    even: Iterator[int]
    odd: Iterator[int]


@function
def split(numbers: Iterator[int]) -> Split:
    """Send even numbers to one output, and odd numbers to the other."""
    every = list(numbers)
    return Split(iter([n for n in every if n % 2 == 0]), iter([n for n in every if n % 2]))


@function(outputs=["even", "odd"])
def sort(numbers: Iterator[int], context: Context) -> None:
    """Send each number to its output as it comes; a negative number ends its output."""
    for number in numbers:
        output = context.outputs["odd" if number % 2 else "even"]
        output.end() if number < 0 else output.send(number)
