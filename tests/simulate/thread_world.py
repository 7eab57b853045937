"""The world of threads: one conversation, with the real `DirectConversation` in the thread that runs its function."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.errors import ShuttingDown
from invoker.execution.driver import Driver, DriverSettings
from invoker.execution.thread.direct import DirectConversation
from invoker.protocols.riff.session import RiffSession
from tests.simulate import verdict
from tests.simulate.script_wire import ScriptWire
from tests.simulate.seen import NUMBER, Seen, Witness, clocked, fill, overheard
from tests.simulate.twins import TWINS, resting

_REGISTRY = builtin()
EPOCH = 1000.0


class Clock:
    """Virtual time, and what happens in it by itself."""

    def __init__(self) -> None:
        self.now = EPOCH
        self._timers: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def at(self, ticks: float, callback: Callable[[], None]) -> None:
        """Do something at this many ticks after the beginning."""
        self._timers.append((EPOCH + ticks, callback))

    def leap(self, ticks: float | None) -> bool:
        """It is so much later, or as late as the next timer; False if there is none."""
        if ticks is None and not self._timers:
            return False
        self.now = min(at for at, _ in self._timers) if ticks is None else self.now + ticks
        due = [timer for timer in self._timers if timer[0] <= self.now]
        self._timers = [timer for timer in self._timers if timer[0] > self.now]
        for _, callback in due:
            callback()
        return True


class _Sweeper:
    """Sweeps when a function rests."""

    def __init__(self) -> None:
        self.swept: list[Any] = []

    def add(self, conversation: Any) -> None:
        """Look after a conversation."""
        self.swept.append(conversation)

    def beat(self, now: float) -> None:
        """Look after all of them."""
        for one in list(self.swept):
            if not one.sweep(now):
                self.swept.remove(one)

    def close(self) -> None:
        """There is no thread."""


def driver_of(witness: Witness, seen: Seen) -> Driver:
    """A driver for one conversation, whose sweeper is a list."""
    scene = witness.scene
    engine = Engine(
        Catalog(TWINS), _REGISTRY, limits=scene.limits, max_invocations=scene.slots, new_lock=threading.Lock
    )
    fill(engine, scene)
    witness.watch(engine, [seen])
    driver = Driver(engine, DriverSettings(grace_s=5))
    driver.sweeper = _Sweeper()  # type: ignore[assignment] - it has what conversations call
    return driver


def in_thread(witness: Witness, number: int) -> Seen:
    """Run one conversation of a scene to its end."""
    scene = witness.scene
    seen = Seen("thread", number, scene.plans[number])
    driver, clock, plan = driver_of(witness, seen), Clock(), seen.plan
    random = Random(f"thread {scene.seed} {number}")
    wire = ScriptWire(seen, random, clock.leap)
    deadline = None if plan.deadline is None else EPOCH + plan.deadline
    session = RiffSession({NUMBER: str(number)}, function=plan.case.name)
    conversation = DirectConversation(session, wire, driver, deadline=deadline)
    if plan.deadline is not None:
        clock.at(plan.deadline, wire.gone)
    if scene.drains_at is not None:
        clock.at(scene.drains_at, lambda: setattr(driver.engine, "is_draining", True))
        clock.at(scene.drains_at + scene.cut_after, lambda: conversation.fail(ShuttingDown("cut")))

    def rest(ticks: int) -> None:
        with wire.lock:
            wire.flush()
            wire.act_perhaps()
            clock.leap(ticks)
        driver.sweeper.beat(clock.now)  # type: ignore[attr-defined] - see `driver_of`

    try:
        with clocked(clock), overheard([seen]), resting(rest):
            driver.entered_direct(conversation)
            close = conversation.run()
            driver.exited_direct(conversation)
            wire.finish(0 if close.error is None else int(close.error.status), str(close.error or ""), close.trailers)
            seen.closes.append(close)
            witness.note(f"thread: {number} ends with {close.error!r}, its caller sees {wire.status}")
            verdict.after(witness, driver, [seen])
            _check_told(witness, wire, seen)
    finally:
        with suppress(Exception):
            driver.close()
    return seen


def _check_told(witness: Witness, wire: ScriptWire, seen: Seen) -> None:
    """What the caller was told is what the conversation ended with, unless the caller has gone of its own will."""
    told, error = wire.status, seen.error
    ended = (0, "") if error is None else (int(error.status), str(error))
    witness.expect(seen.is_gone or told == ended, f"the caller was told {told}, but it ended with {ended}")
