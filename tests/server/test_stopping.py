"""What signals ask for, and the guard; whole processes are ended in tests/e2e/test_stopping.py."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from invoker.server import stopping
from invoker.server.stopping import Guard, Signals, listed, release


@pytest.fixture(autouse=True)
def _released():
    yield
    release()


async def seen(signals):
    """Which events are set, once the loop has come to it."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return signals.told.is_set(), signals.drain.is_set()


@pytest.mark.parametrize(
    ("lame_duck_s", "numbers", "expected"),
    [
        (0.0, [signal.SIGTERM], (True, True)),
        (0.0, [signal.SIGINT], (True, True)),
        (9.0, [signal.SIGTERM], (True, False)),
        (9.0, [signal.SIGINT], (True, True)),
        (9.0, [signal.SIGTERM, signal.SIGTERM], (True, True)),
        (9.0, [signal.SIGTERM, signal.SIGINT], (True, True)),
    ],
)
async def test_R024_only_SIGTERM_makes_a_lame_duck(lame_duck_s, numbers, expected):
    """And only where there is a time for it; any further signal begins the drain."""
    begun: list[int] = []
    signals = Signals(lame_duck_s, heard=lambda: begun.append(1))
    assert await seen(signals) == (False, False)
    for number in numbers:
        signals._interrupted(number, None)
    assert await seen(signals) == expected
    assert begun == [1]


async def test_R026_a_signal_during_the_drain_leaves():
    """With its number; and not before."""
    left: list[int] = []
    done = threading.Event()
    signals = Signals(9.0, leave=lambda number: (left.append(number), done.set()))
    signals._interrupted(signal.SIGTERM, None)
    signals._interrupted(signal.SIGTERM, None)
    assert left == []
    signals._interrupted(signal.SIGINT, None)
    assert await asyncio.to_thread(done.wait, 5)
    assert left == [signal.SIGINT]


async def test_a_hangup_drains_and_says_so():
    """For a process that makes room for its successor."""
    said: list[str] = []
    signals = Signals(9.0, hangup=lambda: said.append("hangup"))
    signals._interrupted(signal.SIGHUP, None)
    assert await seen(signals) == (True, True)
    assert said == ["hangup"]


def test_a_guard_ends_the_process_after_its_last_words(monkeypatch, caplog):
    """When the time is over, and with exit code 1; an armed guard that is armed anew no longer counts for the first."""
    told: list[object] = []
    ended = threading.Event()
    monkeypatch.setattr(stopping, "dump", lambda: told.append("stacks"))
    monkeypatch.setattr(stopping, "leave_now", lambda code: (told.append(code), ended.set()))
    guard = Guard(lambda: told.append("hooks"), 5.0, told=lambda: told.append("endings"))
    guard.arm(3600, "the first part")
    guard.arm(0.01, "the second part")
    assert ended.wait(5)
    assert told == ["stacks", "endings", "hooks", 1]
    assert "the second part took longer than 0.01 s" in caplog.text
    assert "the first part" not in caplog.text


def test_a_guard_that_is_disarmed_does_nothing(monkeypatch):
    """Its thread waits for it no longer, and ends with the others."""
    monkeypatch.setattr(stopping, "leave_now", lambda code: pytest.fail("it left"))
    guard = Guard()
    guard.arm(3600, "the end")
    guard.disarm()
    release()
    assert not [one for one in threading.enumerate() if one.name == "invoker-guard"]


@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_hangup_ends_only_what_ran_in_the_terminal_that_was_closed(monkeypatch, caplog, is_closed):
    """Who sends SIGHUP otherwise is told that one process cannot reload."""
    monkeypatch.setattr(stopping, "_has_terminal", lambda: True)
    signals = Signals(9.0)
    monkeypatch.setattr(stopping, "_has_terminal", lambda: not is_closed)
    signals._interrupted(signal.SIGHUP, None)
    assert await seen(signals) == (is_closed, False)
    release()
    assert ("one process cannot reload" in caplog.text) is not is_closed


async def test_only_a_hangup_makes_room_for_a_successor():
    """Another signal drains as long as it always would."""
    said: list[str] = []
    signals = Signals(0.0, hangup=lambda: said.append("hangup"))
    signals._interrupted(signal.SIGTERM, None)
    assert await seen(signals) == (True, True)
    assert said == []


async def test_who_presses_ctrl_c_is_told_how_to_leave(monkeypatch):
    """Not a supervisor, and not who ends the process otherwise."""
    said = threading.Event()
    monkeypatch.setattr(stopping, "announce", lambda text: said.set())
    for number, leave in ((signal.SIGTERM, lambda _: None), (signal.SIGINT, None)):
        Signals(0.0, leave=leave)._interrupted(number, None)
        release()
        assert not said.is_set()
    Signals(0.0, leave=lambda _: None)._interrupted(signal.SIGINT, None)
    assert await asyncio.to_thread(said.wait, 5)


def test_of_many_names_the_first_are_listed():
    """And the others counted."""
    names = [str(number) for number in range(22)]
    assert listed(names[:2]) == "0, 1"
    assert listed(names[:20]).endswith("18, 19")
    assert listed(names).endswith("18, 19, and 2 more")


async def test_where_a_process_hangs_is_one_record(caplog):
    """The stacks of async bodies and of all threads, in one line of the log."""
    task = asyncio.create_task(asyncio.Event().wait(), name="body i1")
    await asyncio.sleep(0)
    stopping.dump(asyncio.all_tasks())
    (told,) = caplog.records
    assert (told.levelname, told.getMessage()) == ("ERROR", stopping.STACKS)
    assert told.stack_info.startswith("Stack for <Task pending name='body i1'")
    assert "test_where_a_process_hangs_is_one_record" in told.stack_info
    task.cancel()
