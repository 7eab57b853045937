"""The world of whole conversations: all that the caller sends is here before the real `Whole` runs it.

A caller that cancels, or whose deadline passes, does so while the function rests or while its frames wait for room. The
beat of the sweeper, with which a conversation becomes long, comes in any rest, or never.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from invoker.core.steps import Close
from invoker.errors import Cancelled, InvocationError, ShuttingDown
from invoker.execution.placement import Run
from invoker.execution.whole import Whole
from invoker.protocols.riff.session import RiffSession
from tests.simulate import verdict
from tests.simulate.peer import Ending, Reads
from tests.simulate.seen import NUMBER, Seen, Violation, Witness, clocked, overheard
from tests.simulate.thread_world import EPOCH, Clock, driver_of
from tests.simulate.twins import resting


class _Outlet:
    """The caller, and the transport to it."""

    def __init__(self, seen: Seen, random: Random, clock: Clock) -> None:
        self.seen, self.plan = seen, seen.plan
        self.is_left = False
        self.told: tuple[int, str] | None = None
        self.settle_s = random.choice((0.0, 0.1))
        self._random, self._clock = random, clock
        self._on_way = 0

    def gone(self) -> None:
        """The caller has left, or its deadline has passed."""
        self.is_left = self.seen.is_gone = True

    def act(self) -> bool:
        """Let the caller read one frame; False if there is none, or it does not want it."""
        if self._on_way and self.plan.reads is not Reads.NEVER:
            self._on_way -= 1
            return True
        return False

    def await_end(self) -> None:
        """The caller's end is certain, or it was the beginning of a cancel."""
        if self.plan.ending is not Ending.HALF_CLOSE and self._random.random() < 0.5:
            self.gone()
        if self.is_left:
            raise _gone()

    def is_gone(self) -> bool:
        """Whether the caller has left."""
        return self.is_left or self.told is not None

    def early(self, frames: list[Any], close: Close | None = None, *, may_wait: bool = False) -> None:
        """Send what there is room for, or all."""
        while frames and not self.is_left:
            if self._on_way < self.plan.window:
                self._on_way += 1
                self.seen.take(frames.pop(0))
            elif not may_wait:
                return
            elif not self.act() and not self._clock.leap(None):
                raise Violation("everything waits, and nothing will come")
        if self.is_left:
            if may_wait:
                raise _gone()
            return
        if close is not None:
            self.tell(close)

    def tell(self, close: Close) -> None:
        """Send the status; the first one counts."""
        error = close.error
        self.told = self.told or ((0, "") if error is None else (int(error.status), str(error)))

    def cut(self, error: InvocationError) -> None:
        """End the conversation for the caller, whatever its thread does."""
        self.told = self.told or (int(error.status), str(error))


class _Turn:
    """The lead of a thread, which passes on with the beat that the world gives.

    Attributes:
        busy: Whose user code it is in.
    """

    run = Run.THREAD

    def __init__(self) -> None:
        self.busy: Any = None
        self.is_passed = False

    def begin(self, whole: Any) -> None:
        """User code is entered."""
        self.busy = whole

    def pass_on(self) -> None:
        """Another thread leads."""
        self.is_passed = True


def in_whole(witness: Witness, number: int) -> Seen:
    """Run one conversation of a scene to its end."""
    scene = witness.scene
    seen = Seen("whole", number, scene.plans[number])
    driver, clock, plan = driver_of(witness, seen), Clock(), seen.plan
    random = Random(f"whole {scene.seed} {number}")
    outlet, turn = _Outlet(seen, random, clock), _Turn()
    deadline = None if plan.deadline is None else EPOCH + plan.deadline
    session = RiffSession({NUMBER: str(number)}, function=plan.case.name)
    whole = Whole(session, driver, outlet, turn=random.choice((turn, turn, None)), deadline=deadline)  # type: ignore[arg-type] - what the whole calls of it
    if plan.deadline is not None:
        clock.at(plan.deadline, outlet.gone)
    if plan.ending is not Ending.HALF_CLOSE:
        clock.at(random.randrange(1, 20), outlet.gone)
    if scene.drains_at is not None:
        clock.at(scene.drains_at, lambda: setattr(driver.engine, "is_draining", True))
        clock.at(scene.drains_at + scene.cut_after, _cutting(driver, ShuttingDown("cut")))

    def rest(ticks: int) -> None:
        for _ in range(random.choice((0, 1, 3))):
            outlet.act()
        if turn.busy is not None and random.random() < 0.3:
            turn.busy.beat()
        clock.leap(ticks)
        driver.sweeper.beat(clock.now)  # type: ignore[attr-defined] - see `driver_of`

    try:
        with clocked(clock), overheard([seen]), resting(rest):
            close = whole.run(plan.frames)
            _send_rest(seen, outlet, whole.sent, close)
            seen.closes.append(close)
            witness.note(f"whole: {number} ends with {close.error!r}, its caller sees {outlet.told}")
            witness.expect(turn.busy is None, "the turn was not given back")
            witness.expect(whole.sweep(clock.now) is False, "the sweeper looks after what is over")
            verdict.after(witness, driver, [seen])
            error = seen.error
            ended = (0, "") if error is None else (int(error.status), str(error))
            witness.expect(seen.is_gone or outlet.told == ended, f"{outlet.told} was told, but it ended with {ended}")
    finally:
        with suppress(Exception):
            driver.close()
    return seen


def _cutting(driver: Any, error: InvocationError) -> Callable[[], None]:
    def cut() -> None:
        for one in list(driver.direct):
            one.fail(error)

    return cut


def _send_rest(seen: Seen, outlet: _Outlet, sent: list[Any], close: Close) -> None:
    if not outlet.is_left:
        for frame in sent:
            seen.take(frame)
        outlet.tell(close)


def _gone() -> Cancelled:
    return Cancelled("the peer cancelled, or is gone")
