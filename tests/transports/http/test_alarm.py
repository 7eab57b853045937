"""`invoker.transports.http.alarm`: what is done later, and what is not."""

from __future__ import annotations

import asyncio

from invoker.transports.http.alarm import Alarm, Soon
from tests.conftest import SLOW


async def passed(delay_s: float) -> None:
    """Wait for a time, by the loop's own timer."""
    rung = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(delay_s, rung.set_result, None)
    await rung


async def test_what_is_set_last_is_done_once() -> None:
    """Sooner or later than what was set before."""
    done: list[str] = []
    alarm = Alarm()
    alarm.set(0.01, lambda: done.append("first"))
    alarm.set(0.1 * SLOW, lambda: done.append("later"))
    await passed(0.03)
    assert done == []
    await passed(0.1 * SLOW)
    assert done == ["later"]
    alarm.set(5, lambda: done.append("never"))
    alarm.set(0.01, lambda: done.append("sooner"))
    await passed(0.03)
    assert done == ["later", "sooner"]


async def test_a_timer_in_whose_place_an_earlier_one_came_rings_for_nobody() -> None:
    """Also if the alarm is set again before its time."""
    done: list[str] = []
    alarm = Alarm()
    alarm.set(0.1, lambda: done.append("never"))
    alarm.set(0.01, lambda: done.append("sooner"))
    await passed(0.03)
    alarm.set(30, lambda: done.append("later"))
    await passed(0.15)
    assert done == ["sooner"]
    alarm.close()


async def test_what_is_taken_back_is_not_done() -> None:
    """And the alarm can be set again."""
    done: list[str] = []
    alarm = Alarm()
    alarm.set(0.01, lambda: done.append("no"))
    alarm.unset()
    await passed(0.03)
    alarm.set(0.01, lambda: done.append("yes"))
    await passed(0.03)
    alarm.set(0.01, lambda: done.append("no"))
    alarm.close()
    await passed(0.03)
    assert done == ["yes"]


async def test_setting_it_again_makes_no_timer() -> None:
    """That is what it is for."""
    alarm = Alarm()
    alarm.set(30, lambda: None)
    timer = alarm._timer
    for delay_s in (30, 31, 60):
        alarm.unset()
        alarm.set(delay_s, lambda: None)
    assert alarm._timer is timer
    alarm.close()


async def test_H174_what_many_ask_for_is_done_once_in_the_next_turn() -> None:
    """And again for whoever asks while it is done."""
    done: list[str] = []
    soon = Soon()

    def action() -> None:
        done.append("x")
        if len(done) == 1:
            soon.do(action)

    for _ in range(3):
        soon.do(action)
    assert done == []
    await asyncio.sleep(0)
    assert done == ["x"]
    await asyncio.sleep(0)
    assert done == ["x", "x"]
    await asyncio.sleep(0)
    assert done == ["x", "x"]
