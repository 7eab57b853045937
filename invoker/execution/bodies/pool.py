"""A pool of daemon threads that grows on demand, for sync functions.

A thread that finished its work waits for more work for a while and then ends, so short invocations do not pay for
starting one. While other threads work, one idle thread is kept ready. Starting a thread blocks until the new thread
runs, which takes 60 ms while functions compute, and the event loop must not block for that long. So when the ready
thread gets work, it first starts the next ready thread. The threads are daemons: user code that never returns must not
keep the process from ending (R-116, R-028).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

from invoker.errors import Overloaded
from invoker.execution.bodies.turns import Turns

log = logging.getLogger(__name__)

T = TypeVar("T")

_IDLE_S = 10.0
_RETRY_S = 1.0
"""Seconds that must pass after the system failed to start a thread before another start is tried."""

_LEAVE_S = 0.5
"""Seconds for which `close` waits at most for idle threads to end; they need some microseconds."""

Work = Callable[[], None]


class Threads:
    """Runs each piece of work at once in a thread of its own, or refuses it.

    Args:
        slots: Threads that may work at once.

    Attributes:
        busy: Threads that work right now, the stuck ones included.
        full_since: When work was first refused after a slot was last given back, on the clock of ``time.monotonic``; 0
            if none was refused since then.
        turns: The turns in which threads encode and decode large values.
        stuck: Threads whose invocation ended but whose user code did not return within the grace.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.turns = Turns()
        self.busy = 0
        self.stuck = 0
        self.full_since = 0.0
        self._lock = threading.Lock()
        self._work_came = threading.Condition(self._lock)
        self._work: deque[Work] = deque()
        self._idle = 0
        self._is_starting = False  # whether a thread is starting, which starts the next one if no other is ready then
        self._retry_s = 0.0
        self._numbers = 0
        self._threads: set[threading.Thread] = set()
        self._is_closed = False

    @property
    def is_failing(self) -> bool:
        """Whether half of the slots are stuck, so that this process should get no more traffic."""
        return self.stuck * 2 >= self.slots

    def start(self, work: Work) -> None:
        """Run ``work``, which must not raise, in an idle or a new thread.

        Raises:
            Overloaded: Every slot is taken.
        """
        self.enter()

        def run() -> None:
            try:
                work()
            finally:
                self.leave()

        try:
            self.spawn(run)
        except BaseException:
            self.leave()
            raise

    def enter(self) -> None:
        """Take a slot for the calling thread, which must `leave` it.

        Raises:
            Overloaded: Every slot is taken.
        """
        with self._lock:
            if self.busy >= self.slots:
                self.full_since = self.full_since or time.monotonic()
                raise Overloaded(f"all {self.slots} threads for sync functions are busy ({self.stuck} of them stuck)")
            self.busy += 1

    def leave(self) -> None:
        """Give a slot back, so that another thread may enter."""
        with self._lock:
            self.busy -= 1
            self.full_since = 0.0

    def come_back(self) -> None:
        """Take a slot again after `leave`, even if all are taken meanwhile. The caller must free it again soon."""
        with self._lock:
            self.busy += 1

    def spawn(self, work: Work) -> None:
        """Run ``work``, which must not raise, in an idle or a new thread, without a slot.

        The caller starts a thread only if no thread is idle or being started.

        Raises:
            Overloaded: The system gives no more threads.
        """
        with self._lock:
            self._work.append(work)
            if self._idle:
                self._work_came.notify()
                return
            if self._is_starting:
                return
            thread = self._made()
        try:
            thread.start()
        except RuntimeError as error:
            with self._lock:
                self._give_up(thread)
                if work not in self._work:  # a thread has taken this work meanwhile
                    return
                self._work.remove(work)
            raise Overloaded(f"no thread can be started for a sync function: {error}") from None

    def _made(self) -> threading.Thread:
        self._is_starting = True
        self._numbers += 1
        thread = threading.Thread(target=self._run, name=f"invoker-body-{self._numbers}", daemon=True)
        self._threads.add(thread)
        return thread

    def _give_up(self, thread: threading.Thread) -> None:
        self._is_starting = False
        self._retry_s = time.monotonic() + _RETRY_S
        self._threads.discard(thread)

    def _start_next(self) -> None:
        """Start a thread, so that one is ready.

        If no thread can be started, a busy thread does the waiting work later.
        """
        with self._lock:
            is_ready = self._is_starting or self._idle > len(self._work)
            if is_ready or self._is_closed or time.monotonic() < self._retry_s:
                return
            thread = self._made()
        try:
            thread.start()
        except RuntimeError as error:
            with self._lock:
                self._give_up(thread)
                if not self._work:
                    return
            log.warning("no thread can be started for a sync function, which waits for a free thread: %s", error)

    def close(self) -> None:
        """Let idle threads end at once, and busy threads when their work is done; waits briefly for idle threads."""
        with self._lock:
            self._is_closed = True
            self._work_came.notify_all()
            until = time.monotonic() + _LEAVE_S
            if not self.busy:
                self._work_came.wait_for(lambda: not self._is_starting, _LEAVE_S)
            left = [] if self.busy else list(self._threads)
        for one in left:
            if one.is_alive() and one is not threading.current_thread():
                one.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        with self._lock:
            self._is_starting = False
            if self._is_closed:
                self._work_came.notify_all()
        work = self._next()
        while work is not None:
            if self._idle <= len(self._work):  # no other thread is ready
                self._start_next()
            # context variables that the work sets must not be visible to the next work
            copy_context().run(work)
            work = None  # an idle thread must not keep an ended invocation alive
            work = self._next()
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _next(self) -> Work | None:
        until = time.monotonic() + _IDLE_S
        with self._lock:
            self._idle += 1
            try:
                while not self._work:
                    if self._is_closed:
                        return None
                    left = until - time.monotonic()
                    if left <= 0:
                        if self._idle > 1 or self._idle == len(self._threads):
                            return None
                        until += _IDLE_S  # other threads work, so one has to be ready
                    else:
                        self._work_came.wait(left)
                return self._work.popleft()
            finally:
                self._idle -= 1


async def off_loop(threads: Threads, work: Callable[[], T]) -> T:
    """Do work in a thread; the work must end without being stopped.

    Raises:
        Overloaded: The system gives no more threads.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(set_it: Callable[[Any], None], what: Any) -> None:
        if not done.done():
            set_it(what)

    def run() -> None:
        try:
            made = work()
        except BaseException as error:  # noqa: BLE001 - raised again in the task that awaits
            _call(loop, tell, done.set_exception, error)
        else:
            _call(loop, tell, done.set_result, made)

    threads.spawn(run)
    return await done


def _call(loop: asyncio.AbstractEventLoop, *args: Any) -> None:
    try:
        loop.call_soon_threadsafe(*args)
    except RuntimeError:
        log.debug("the loop closed before a thread was done")
