"""One timer for all limits: who is ended when, and that what has ended is forgotten."""

from __future__ import annotations

import asyncio
import os
import time
from types import SimpleNamespace
from typing import Any

import pytest

from invoker.core.limits import TimeLimit
from invoker.execution.alarm import Alarm

SLOW = float(os.environ.get("INVOKER_TEST_SLOW", "1"))


class Loop:
    """Counts timers."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Any]] = []
        self._loop = asyncio.get_running_loop()

    def call_later(self, delay_s: float, call: Any, *args: Any) -> asyncio.TimerHandle:
        timer = self._loop.call_later(delay_s, call, *args)
        self.timers.append((delay_s, timer))
        return timer


class Runner(SimpleNamespace):
    __hash__ = object.__hash__


def runner(loop: Any, name: str) -> Any:
    return Runner(loop=loop, name=name)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
async def test_T054_each_is_ended_when_its_time_is_over(order) -> None:
    """Whatever their order; not before, and once."""
    ended: list[tuple[str, float]] = []
    began, loop = time.monotonic(), Loop()
    alarm = Alarm(lambda one, _: ended.append((one.name, time.monotonic() - began)))
    for number in order:
        alarm.add(runner(loop, str(number)), TimeLimit(0.02 * (number + 1), is_functions=True))
    await asyncio.sleep(0.1 * SLOW)
    assert sorted(name for name, _ in ended) == ["0", "1", "2"]  # a loop that was held up ends them at once
    assert all(at >= 0.02 * (int(name) + 1) - 0.002 for name, at in ended)
    assert not alarm.limits


async def test_a_thousand_short_invocations_take_one_timer() -> None:
    """It stays when they end, and finds nothing to end."""
    ended: list[Any] = []
    loop = Loop()
    alarm = Alarm(lambda one, _: ended.append(one))
    for number in range(1000):
        one = runner(loop, str(number))
        alarm.add(one, TimeLimit(0.02, is_functions=True))
        alarm.drop(one)
    assert len(loop.timers) == 1
    await asyncio.sleep(0.05 * SLOW)
    assert ended == []
    later = runner(loop, "later")
    alarm.add(later, TimeLimit(0.01, is_functions=True))
    await asyncio.sleep(0.05 * SLOW)
    assert ended == [later]


async def test_an_ending_may_end_others_and_begin_new_ones() -> None:
    """Those that were dropped meanwhile are left alone, and a new limit is kept."""
    ended: list[str] = []
    loop = Loop()
    first, second, third = (runner(loop, name) for name in ("first", "second", "third"))

    def end(one: Any, _: TimeLimit) -> None:
        ended.append(one.name)
        alarm.drop(second)
        if one is first:
            alarm.add(third, TimeLimit(0.01, is_functions=True))

    alarm = Alarm(end)
    for one in (first, second):
        alarm.add(one, TimeLimit(0.01, is_functions=True))
    await asyncio.sleep(0.08 * SLOW)
    assert ended == ["first", "third"]
