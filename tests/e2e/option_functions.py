"""Functions with options: parameters with defaults, in every style."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from invoker import Context, Message, function


@function
def greet(name: str = "world") -> str:
    """All of it is an option."""
    return f"hello {name}"


@function
def scale(x: float, factor: float = 2.0, *, shift: float = 0.0) -> float:
    """Mapped over ``x``."""
    return x * factor + shift


@function
def join(words: Iterator[str], sep: str = ",", *, most: int = 100) -> Iterator[str]:
    """Greets before it reads."""
    yield f"begin {sep}"
    yield sep.join(word for word, _ in zip(words, range(most), strict=False))


@function
def gen(prompt: str) -> Iterator[str]:
    """One value makes a stream."""
    yield from prompt.split()


@function
def topk(items: Iterator[str], k: int, mark: str = "") -> Iterator[str]:
    """A stream, a value, an option."""
    for item, _ in zip(items, range(k), strict=False):
        yield item + mark


@function
def spell(first: str = "a", second: str = "b", third: str = "c") -> Iterator[str]:
    """A source of which all is an option."""
    yield first + second + third


@function
def add(a: int, b: int, c: int = 0) -> int:
    """Two inputs and an option."""
    return a + b + c


@function
def picture(image: bytes, text: str = "") -> str:
    """Bytes and text."""
    return f"{len(image)} {text}"


@function
def stops(text: str, stops: list[str] = [], counts: list[int] = []) -> str:  # noqa: B006 - as authors write
    """Lists."""
    return f"{text} {stops} {counts}"


@function
def row(data: dict[str, int], scale: int = 1) -> int:
    """Takes an object."""
    return sum(data.values()) * scale


@function
def told(x: Message[str], note: Message[str] | None = None, *, ctx: Context) -> str:
    """Sees the headers of an option, and the names that were sent."""
    return f"{x.payload} {note.payload if note else None} {ctx.input_names}"


@function
def length(text: str) -> int:
    """One required input."""
    return len(text)


@function
def cat(*parts: Iterator[str], sep: str = ",") -> Iterator[str]:
    """Any number of inputs, and an option."""
    yield sep.join("".join(part) for part in parts)


@dataclass
class Point:
    """An object with one field."""

    x: int


@function
def conf(p: Point, n: int = 1) -> str:
    """An object and an option."""
    return f"{p.x} {n}"


@function
def total(**numbers: int) -> str:
    """Takes any names."""
    return " ".join(f"{name}={number}" for name, number in numbers.items())


@function
def tagged(text: str, mark: str = "!", **tags: list[str]) -> str:
    """An input, an option and any other names."""
    return f"{text}{mark} {tags}"


@function
def source() -> Iterator[str]:
    """Takes nothing."""
    yield "one"


@function
def many(a: int, *rest: int) -> int:
    """One input and any number of others."""
    return a + sum(rest)
