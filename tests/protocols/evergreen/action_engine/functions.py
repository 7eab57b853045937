"""Functions that the tests offer as actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from invoker import Output

__all__ = ["concat", "echo", "gather", "greet", "now", "split", "tag", "total"]


def echo(x: Iterator[str]) -> Iterator[str]:
    """Give back what comes."""
    yield from x


def concat(a: str, b: str) -> str:
    return a + b


def greet(name: str, greeting: str = "Hello") -> str:
    return f"{greeting}, {name}"


def now() -> int:
    return 1


def total(*parts: Iterator[int]) -> int:
    return sum(sum(part) for part in parts)


def gather(**parts: bytes) -> bytes:
    return b"".join(parts[name] for name in sorted(parts))


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[bytes]


def split(xs: Iterator[int]) -> Split:
    kept = list(xs)
    return Split(iter(kept), iter([b"x"]))


def tag(xs: Iterator[Any]) -> Iterator[Output]:
    yield from (Output("a", one) for one in xs)
