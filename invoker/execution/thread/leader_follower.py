"""`LeaderFollower`: threads that take turns at waiting for the work of one transport, so that most work needs no hop.

One thread *leads*: it waits for work (a call, a connection that can be read) and serves that itself. It keeps the lead
while the work that it serves is short. The lead is passed on to another thread of the pool

* before the leader waits for anything else,
* before it enters a function that has lately been slow,
* by the sweeper, once the leader has been in user code for longer than a beat.

A thread that has passed the lead on finishes what it serves, and goes back to the pool. So work that blocks delays
other work by two beats at most, and short work costs neither a lock nor a wake-up. Each transport that has leaders has
its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import ClassVar, TypeVar

from invoker.errors import InvocationError
from invoker.execution.bodies.pool import Threads
from invoker.execution.pace.sweeper import Busy, Sweeper
from invoker.execution.placement import Run

log = logging.getLogger(__name__)

T = TypeVar("T")


class Turn:
    """The time during which one thread leads, and the work that it took during this time.

    Attributes:
        busy: The work that the thread serves in user code; the caller of `begin` clears it once user code has returned.
        let_go: Sends what the thread has held back, if its transport does that; called before it waits, or when its
            work takes long.
        run: How a function runs in this thread.
        seen: The work that the sweeper saw at its last beat.
    """

    __slots__ = ("_leader_follower", "_sweeper", "busy", "let_go", "seen")

    run: ClassVar[Run] = Run.THREAD

    def __init__(self, leader_follower: LeaderFollower, sweeper: Sweeper) -> None:
        self._leader_follower = leader_follower
        self._sweeper = sweeper
        self.busy: Busy | None = None
        self.seen: Busy | None = None
        self.let_go: Callable[[], None] = _nothing

    @property
    def leads(self) -> bool:
        """Whether this thread should wait for more work."""
        return self._leader_follower.leader is self

    def begin(self, busy: Busy) -> None:
        """Note that user code is about to run. If it takes longer than a beat, the sweeper calls ``busy.beat()``."""
        self.busy = busy
        self._sweeper.call()

    def pass_on(self) -> None:
        """Let another thread lead, since this one may be busy for a while. A second call does nothing."""
        self.let_go()
        if self._leader_follower.leader is self:
            self._leader_follower.replace(self)


class WorkTurn(Turn):
    """The turn of a thread that never leads, for the sweeper to notice when its work takes long."""

    __slots__ = ()

    leads = False
    run = Run.POOL

    def __init__(self, sweeper: Sweeper) -> None:
        self._sweeper = sweeper
        self.busy = self.seen = None

    def pass_on(self) -> None:
        """Do nothing, since other threads lead."""

    def start(self, threads: Threads, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Do work in a slot of the pool.

        Args:
            threads: The pool.
            work: Runs user code; must not raise.
            then: Called in the same thread with what ``work`` has returned, once the slot is free again.

        Raises:
            Overloaded: Every slot is taken, or the system gives no more threads.
        """
        threads.enter()
        try:
            threads.spawn(lambda: self._run(threads, work, then))
        except BaseException:
            threads.leave()
            raise

    def _run(self, threads: Threads, work: Callable[[], T], then: Callable[[T], None]) -> None:
        self._sweeper.follow(self)
        try:
            result = work()
        finally:
            self._sweeper.unfollow(self)
            threads.leave()  # before the peer gets the end, since it may call again at once
        then(result)


class LeaderFollower:
    """The leading threads of one transport.

    Args:
        threads: The pool from which the threads come; they take no slot of it.
        sweeper: Notices work that takes long.
        lead: The work of a leading thread: it waits for work and serves it, again and again while its turn `leads`.

    Attributes:
        leader: The current leader's turn; None before `start` and after `stop`.
    """

    def __init__(self, threads: Threads, sweeper: Sweeper, lead: Callable[[Turn], None]) -> None:
        self.leader: Turn | None = None
        self._threads = threads
        self._sweeper = sweeper
        self._lead = lead
        self._lock = threading.Lock()

    def start(self) -> None:
        """Let a first thread lead.

        Raises:
            Overloaded: The system gives no thread.
        """
        with self._lock:
            self._appoint()

    def stop(self) -> None:
        """Appoint no leader any more. The transport wakes the thread that waits; the others finish their work."""
        with self._lock:
            self.leader = None

    def replace(self, turn: Turn) -> None:
        """Let another thread lead instead; the same one keeps the lead if there is no other."""
        with self._lock:
            if self.leader is not turn:
                return
            try:
                self._appoint()
            except InvocationError as error:
                log.error("no other thread can wait for work: %s", error)
                return
        self._sweeper.unfollow(turn)

    def _appoint(self) -> None:
        before, turn = self.leader, Turn(self, self._sweeper)
        self.leader = turn
        try:
            self._threads.spawn(lambda: self._run(turn))
        except BaseException:
            self.leader = before
            raise

    def _run(self, turn: Turn) -> None:
        self._sweeper.follow(turn)
        try:
            self._lead(turn)
        except Exception:
            log.exception("a thread that waits for work failed")
            turn.pass_on()
        finally:
            self._sweeper.unfollow(turn)


def _nothing() -> None:
    """The `Turn.let_go` of a transport that holds nothing back."""
