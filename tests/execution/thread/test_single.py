"""What the body of a direct conversation holds for the next pull."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from invoker.execution.thread import single
from tests.execution.wires import Call, direct_driver


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(single, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def test_the_first_output_of_a_slow_generator_is_not_held(clock):
    """Nor is any later one, as long as it takes its time."""

    def slow(xs: Iterator[int]) -> Iterator[int]:
        for x in xs:
            clock.now_s += 1
            yield x
            clock.now_s += 1

    call = Call(direct_driver(slow)).start().data(b"1").data(b"2").data(b"3").half_close()
    assert call.end() is None
    assert call.holds() == [False, False, False]


def test_outputs_are_held_after_the_generator_came_back_promptly(clock):
    """For one that pulls it is the way to the pull that counts, not how long the pull waits or the value takes."""

    def prompt(xs: Iterator[int]) -> Iterator[int]:
        for x in xs:
            clock.now_s += 1
            yield x

    call = Call(direct_driver(prompt)).start().data(b"1").data(b"2").data(b"3").half_close()
    assert call.end() is None
    assert call.holds() == [False, True, True]


def test_a_source_that_falls_behind_is_held_no_more(clock):
    """Prompt, prompt, slow, prompt: the frame after the slow step is not held."""

    def source() -> Iterator[int]:
        for number in range(5):
            clock.now_s += 1 if number == 3 else 0
            yield number

    call = Call(direct_driver(source)).start()
    assert call.end() is None
    assert call.holds() == [False, True, True, False, True]


def test_results_of_a_mapped_function_are_always_held(clock):
    """The next pull is sure to follow."""

    def slow(x: int) -> int:
        clock.now_s += 1
        return x

    call = Call(direct_driver(slow)).start().data(b"1").data(b"2").half_close()
    assert call.end() is None
    assert call.holds() == [True, True]
