"""`invoker.execution.bodies.turns`: large values are encoded one after another, with pauses."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from invoker.execution.bodies import turns
from invoker.execution.bodies.turns import LARGE_BYTES, Turns, is_of_many
from invoker.message import Message

MANY = [0] * 100_000


class Clock:
    """A clock that sleepers advance."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(turns, "time", made)
    return made


def taking(clock: Clock, seconds: float) -> Callable[[int, Any], tuple[int, Message[bytes]]]:
    def encode(index: int, value: Any) -> tuple[int, Message[bytes]]:
        clock.now_s += seconds
        return index, Message(repr(value)[:10].encode())

    return encode


def test_H171_as_much_time_is_left_to_others_as_the_last_one_took(clock: Clock) -> None:
    """A second of encoding, a second of rest; who comes later than that waits for nothing."""
    every, encode = Turns(), taking(clock, 1.0)
    assert every.encode(encode, 3, MANY)[0] == 3
    assert clock.slept == []
    every.encode(encode, 0, MANY)
    assert clock.slept == [1.0]
    clock.now_s += 5
    every.encode(encode, 0, MANY)
    assert clock.slept == [1.0]


def test_H171_large_messages_are_decoded_in_turn_as_well(clock: Clock) -> None:
    """After a rest that what was encoded or decoded before has earned."""
    every = Turns()

    def decode(message: Message[bytes]) -> int:
        clock.now_s += 2.0
        return len(message.payload)

    every.encode(taking(clock, 1.0), 0, MANY)
    assert [every.decode(decode, Message(b"xyz")) for _ in range(2)] == [3, 3]
    assert clock.slept == [1.0, 2.0]


@pytest.mark.parametrize("value", [1, 1.5, None, True, "x", b"x", "x" * LARGE_BYTES])
def test_H171_what_is_surely_small_waits_for_nobody(clock: Clock, value: object) -> None:
    """Although the function has given large values."""
    every, encode = Turns(), taking(clock, 1.0)
    every.encode(encode, 0, MANY)
    every.encode(encode, 0, value)
    assert clock.slept == []


class Times:
    """Takes a while to encode, and remembers when it did."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []

    def encode(self, index: int, value: Any) -> tuple[int, Message[bytes]]:
        began_s = time.monotonic()
        time.sleep(0.005)
        self.spans.append((began_s, time.monotonic()))
        return index, Message(b"")

    def are_apart(self) -> bool:
        """Whether each was followed by a rest that was as long."""
        spans = sorted(self.spans)
        return all(later - end >= end - begin - 0.001 for (begin, end), (later, _) in pairwise(spans))


async def test_H171_bodies_on_the_loop_have_the_same_pauses() -> None:
    """Those who wait look again when they wake, since another one may have been first."""
    every, times = Turns(), Times()
    await asyncio.gather(*(every.encode_on_loop(times.encode, 0, MANY) for _ in range(5)))
    assert len(times.spans) == 5
    assert times.are_apart()


def test_H171_threads_encode_one_after_another() -> None:
    """Never two at once."""
    every, times = Turns(), Times()
    threads = [threading.Thread(target=every.encode, args=(times.encode, 0, MANY)) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(times.spans) == 5
    assert times.are_apart()


def test_values_of_many_members_are_known_beforehand() -> None:
    """Of containers and texts only; nothing is walked."""
    assert is_of_many(MANY)
    assert is_of_many("x" * 100_000)
    assert not is_of_many([MANY])
    assert not is_of_many(b"x" * 100_000)
    assert not is_of_many(1)
