"""Functions as their authors write them; only their signatures count where a model stands for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from invoker.message import Message, Output


def upper(x: str) -> str:
    """Capitals."""
    return x.upper()


def add(a: int, b: int) -> int:
    """A sum."""
    return a + b


def scale(x: int, by: int = 10) -> int:
    """A product."""
    return x * by


def pick(first: int = 1, second: int = 2) -> int:
    """Only defaults."""
    return first * 100 + second


def constant() -> int:
    """No parameters."""
    return 42


def raw(x: bytes) -> bytes:
    """Bytes in and out."""
    return x[::-1]


def either(x):
    """Whatever comes."""
    return x


def named(x: str, **rest: str) -> str:
    """Any names."""
    return x + "".join(f"{name}={rest[name]}" for name in sorted(rest))


def several(*parts: str) -> str:
    """Any number."""
    return "".join(parts)


def relay(x: Iterator[str]) -> Iterator[str]: ...
def blobs(x: Iterator[bytes]) -> Iterator[bytes]: ...
def objects(x: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]: ...
def messages(x: Iterator[Message[bytes]]) -> Iterator[Message[bytes]]: ...
def loose(x: Iterator) -> Iterator: ...  # type: ignore[type-arg]
def join(x: Iterator[str], y: Iterator[str]) -> Iterator[str]: ...
def total(x: Iterator[str]) -> int: ...
def topk(x: Iterator[str], k: int) -> Iterator[str]: ...
def sink(x: Iterator[str]) -> None: ...
def ticks() -> Iterator[str]: ...
def rows() -> Iterator[dict[str, Any]]: ...
def tagged(x: Iterator[str]) -> Iterator[Output]: ...


class Halves(NamedTuple):
    """Two outputs."""

    left: Iterator[str]
    right: Iterator[str]


def split(x: Iterator[str]) -> Halves: ...
