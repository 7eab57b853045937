"""Arguments of tools that are far too many: they are refused, or bound, in a time that grows with them alone."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from invoker.author.reader import read
from invoker.codecs.anyvalue import pack
from invoker.protocols.toolbridge.arguments import Arguments
from invoker.protocols.toolbridge.errors import BridgeError

ONE = pack(1)


def fixed(a: int, b: int = 0) -> int:
    """No more than these."""
    return a + b


def others(**more: int) -> int:
    """Any name."""
    return len(more)


def rest(*more: int) -> int:
    """Any number."""
    return len(more)


async def streaming(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    """A list is as many values."""
    async for x in xs:
        yield x


def named(count: int) -> dict[str, bytes]:
    """So many arguments by name."""
    return {f"k{number}": ONE for number in range(count)}


def seconds_of(function: Any, kwargs: dict[str, bytes]) -> float:
    """How long it takes to bind them."""
    arguments = Arguments(read(function))
    began_s = time.process_time()
    arguments.bind([], kwargs)
    return time.process_time() - began_s


def test_arguments_by_name_take_a_time_that_grows_with_their_number_alone() -> None:
    """Four times as many take four times as long, not sixteen times; each name is found at once."""
    few = min(seconds_of(others, named(250)) for _ in range(5))
    assert min(seconds_of(others, named(1000)) for _ in range(5)) < few * 9


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [(others, 0, 1001), (rest, 1001, 0), (fixed, 1, 1000)],
)
def test_more_than_1000_arguments_are_refused_by_their_number(function: Any, args: int, kwargs: int) -> None:
    """Each argument is an input of its own, so they are refused before one is read."""
    with pytest.raises(BridgeError, match="1001 inputs, which exceeds the limit of 1000") as caught:
        Arguments(read(function)).bind([ONE] * args, named(kwargs))
    assert caught.value.details["code"] == "too_many_args"


def test_1000_arguments_are_bound() -> None:
    """The most that are allowed."""
    assert len(Arguments(read(others)).bind([], named(1000)).names) == 1000
    assert len(Arguments(read(rest)).bind([ONE] * 1000, {}).names) == 1000


def test_ways_to_give_long_names_are_not_remembered() -> None:
    """Callers choose the names of ``**kwargs``, and what they send once must not stay."""
    arguments = Arguments(read(others))
    arguments.bind([], {"x" * 5000: ONE})
    assert not arguments._kept
    arguments.bind([], {"x": ONE})
    assert len(arguments._kept) == 1


def test_an_unknown_name_of_any_length_is_told_in_short() -> None:
    """The answer must not be as large as the request; no similar name is looked for."""
    with pytest.raises(BridgeError) as caught:
        Arguments(read(fixed)).bind([ONE], {"a" * 1_000_000: ONE})
    assert caught.value.details["code"] == "unknown_arg"
    assert len(caught.value.detail) < 300
    assert caught.value.details["field"] == "a" * 256


def test_a_list_of_wrong_items_is_left_after_a_hundred() -> None:
    """The caller is told of a hundred at most, so the others are not looked at."""
    with pytest.raises(BridgeError) as caught:
        Arguments(read(streaming)).bind([pack(["x"] * 100 + [None] * 5)], {})
    told = json.loads(caught.value.details["violations"])
    assert len(told) == 99
    arguments = Arguments(read(streaming))
    began_s = time.process_time()
    with pytest.raises(BridgeError):
        arguments.bind([pack(["x"] * 100_000)], {})
    assert time.process_time() - began_s < 0.5
