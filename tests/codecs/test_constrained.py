"""Rules of annotations hold behind every codec, so over every protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from invoker import Field, Message
from invoker.codecs.anyvalue import ANY, known, pack
from invoker.codecs.constrained import constrained
from invoker.errors import DecodeError
from invoker.errors.wording import Place
from invoker.fields.constraints import UNBOUND, Constraints
from invoker.testing import Harness


@dataclass
class Point:
    """A bound within a class."""

    x: Annotated[int, Field(ge=0)]


def half(number: Annotated[int, Field(ge=2, rules="positive")]) -> int:
    """Divide."""
    return number // 2


def total(numbers: Iterator[Annotated[int, Field(le=5)]]) -> Iterator[int]:
    """Sum."""
    yield sum(numbers)


def deep(points: list[Point], more: list[Annotated[int, Field(ge=0)]] | None = None) -> int:
    """Count."""
    return len(points) + len(more or [])


@pytest.mark.parametrize("media_type", ["application/json", "application/msgpack", "text/plain", ANY])
def test_a_value_that_breaks_a_rule_is_a_bad_input(media_type: str) -> None:
    """Whatever codec decodes it; the function does not run."""

    def given(value: int) -> Message[Any]:
        return Message(value if media_type != "text/plain" else str(value), media_type=media_type)

    assert Harness(half).run([given(2)]) == [1]
    with pytest.raises(DecodeError, match="input #0 'number' must be at least 2, and is 1"):
        Harness(half).run([given(1)])


def test_items_of_a_stream_and_what_lies_deeper() -> None:
    """The items of an iterator are checked one by one; msgspec checks what is inside of values."""
    assert Harness(total).run([1, 5]) == [6]
    with pytest.raises(DecodeError, match="must be at most 5, and is 6"):
        Harness(total).run([1, 6])
    assert Harness(deep).run([[{"x": 0}]]) == [1]
    with pytest.raises(DecodeError, match=r"Expected `int` >= 0 - at `\$\[0\]\.x`"):
        Harness(deep).run([[{"x": -1}]])


def test_what_is_known_is_not_checked_twice() -> None:
    """A payload that carries its value was checked when it came."""
    where = Place("input", 0, "a")
    decode = constrained(lambda message: getattr(message.payload, "value", 0), Constraints(1), where)
    assert decode(Message(known(pack(0), 0, int), media_type=ANY)) == 0
    with pytest.raises(DecodeError, match="input #0 'a' must be at least 1, and is 0"):
        decode(Message(pack(0), media_type=ANY))
    assert constrained(len, UNBOUND, where) is len  # type: ignore[arg-type,comparison-overlap]
