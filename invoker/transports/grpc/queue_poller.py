"""`QueuePoller` and `QueuePollingLoop`: an asyncio loop that drains a completion queue itself.

A loop cannot sleep on sockets and on grpcio's queue at once. So it looks at the queue in each of its turns, which
costs a microsecond. Only while it sleeps does it *lend* the queue to a thread that only waits there: the
thread takes one event, wakes the loop through an eventfd, and parks until the queue is lent again. Under load the loop
never sleeps, so no thread is woken for a message.

On a loop of another class (uvloop, or the loop of an embedding program) the thread always keeps the queue and passes
each event to the loop. This is slower, but behaves in the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from invoker.context import RUNNING
from invoker.core.budget import ProcessBudget
from invoker.execution.bodies.runner import Body
from invoker.execution.pace.tasks import OwnTask, own_task
from invoker.transports.grpc.cygrpc import cygrpc

log = logging.getLogger(__name__)

_DONE = cygrpc.CompletionType.operation_complete if cygrpc is not None else None
_SHUTDOWN = cygrpc.CompletionType.queue_shutdown if cygrpc is not None else None

_SKIPS = 8
"""After the loop has found the queue empty, it skips the queue for this many turns while it has other work."""

_BEGINNING_S = 0.005
"""Seconds for which new bodies are begun in one turn; each runs until it first waits."""

_MOST = 512
"""The most events that are handled in one turn, so that tasks and sockets are served in between."""

_DISPATCHING_S = 0.005
"""Seconds for which events are handled in one turn: a frame of a megabyte takes a thousand times as long as a usual
one."""


class Beginning(Protocol):
    """A call that begins when all of its frames that have come are dispatched."""

    def begin(self) -> None:
        """Begin; must not raise."""


class QueuePollingLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose selector can also watch a completion queue."""

    def __init__(self) -> None:
        self.polling = _PollingSelector()
        super().__init__(self.polling)

    def begin(self, body: Body) -> None:
        """Make the task of a body, and run it at once until it first waits; not to be called from a task."""
        body.task = task = OwnTask(body.run(), loop=self, name=body.name)
        task.owner = body.invocation.context
        # Run the step of the new task at once, which was just appended to this queue.
        self._ready.pop()._run()  # type: ignore[attr-defined]  # noqa: SLF001

    def create_task(  # type: ignore[override]  # it returns the class of task that the factory of other loops returns
        self, coro: Any, *, name: str | None = None, context: Any = None, **more: Any
    ) -> OwnTask:
        """Make a task as any loop does whose factory is `own_task`, but without calling the factory."""
        if self._closed or self.get_task_factory() not in (None, own_task):  # type: ignore[attr-defined]
            return super().create_task(coro, name=name, context=context, **more)  # type: ignore[return-value]
        task = OwnTask(coro, loop=self, name=name, context=context, **more)
        task.owner = RUNNING.get()
        return task

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        """Schedule a callback as any loop does, but in half the time.

        This is called for each frame that a task awaits.
        """
        if self._debug or self._closed:  # type: ignore[attr-defined]
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle


class _PollingSelector(selectors.DefaultSelector):
    """Looks at a queue poller's queue whenever the loop looks at its sockets."""

    queue_poller: QueuePoller | None = None

    def select(self, timeout: float | None = None) -> Any:
        """The ready descriptors; sleeps only if the queue has no event either."""
        queue_poller = self.queue_poller
        if queue_poller is None:
            return super().select(timeout)
        if (queue_poller.coming or queue_poller.waiting) and queue_poller.begin_all():
            timeout = 0  # the bodies may have set timers, or woken other tasks
        is_idle = timeout is None or timeout > 0
        if queue_poller.has_news(is_idle=is_idle):
            return [*queue_poller.ready, *super().select(0)]
        if not is_idle:
            return super().select(0)
        queue_poller.lend()
        try:
            return super().select(timeout)
        finally:
            queue_poller.is_asleep = False


class QueuePoller:
    """Brings the events of a completion queue to one loop.

    Args:
        queue: The completion queue; the tags of its events are callables that take the event.
        loop: The loop on which the tags are called.

    Attributes:
        coming: Bodies that are to begin at the end of this turn.
        is_asleep: Whether the loop waits in its selector.
        memory: Counts large frames that peers have not taken.
        ready: The descriptor that the selector reports when there are events.
        is_shut_down: Whether the queue has reported that no event will come any more.
        waiting: Calls that are to begin before `coming`.
    """

    def __init__(self, queue: Any, loop: asyncio.AbstractEventLoop, memory: ProcessBudget | None = None) -> None:
        self.memory = memory or ProcessBudget()
        self.is_asleep = False
        self.is_shut_down = False
        self.ready: list[Any] = []
        self._poll = queue.poll
        self._loop = loop
        self._events: deque[Any] = deque()
        self._flushes: list[Callable[[], None]] = []
        self.coming: deque[Body] = deque()
        self.waiting: list[Beginning] = []
        self._begin = loop.begin if isinstance(loop, QueuePollingLoop) else self._create
        self._is_dispatching = self._is_closed = self._is_rung = False
        self._is_lent = self._is_recalled = False
        self._calls = 0
        self._quiet: asyncio.Event | None = None
        self._skips = 0
        self._parked = threading.Lock()
        self._parked.acquire()
        self._bell = -1
        self._thread = threading.Thread(target=self._wait, name="invoker-poller", daemon=True)

    def start(self) -> None:
        """Begin to poll; called in the thread of the loop."""
        if isinstance(self._loop, QueuePollingLoop):
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._loop.add_reader(self._bell, self._rung)
            selector = self._loop.polling
            turn = asyncio.Handle(self._turn, (), self._loop)
            self.ready = [(selectors.SelectorKey(-1, -1, selectors.EVENT_READ, (turn, None)), selectors.EVENT_READ)]
            selector.queue_poller = self
        self._thread.start()

    def opened(self) -> None:
        """Count a call that begins and whose events come by this queue."""
        self._calls += 1

    def closed(self) -> None:
        """Count off a call that has received its last event and posts no more operations."""
        self._calls -= 1
        if self._quiet is not None and not self._calls:
            self._quiet.set()

    async def quiet(self) -> None:
        """Wait until every call has got its last event, since posting on a queue that is shut down ends the process."""
        if self._calls:
            self._quiet = asyncio.Event()
            await self._quiet.wait()

    def close(self) -> None:
        """Stop looking; the queue has been shut down, which ends the thread."""
        self._is_closed = True
        while self._thread.is_alive() and not self.is_shut_down:
            if self._parked.locked():
                self._parked.release()  # called once for each remaining event
            self._thread.join(0.01)
        if self._bell >= 0 and isinstance(self._loop, QueuePollingLoop):
            self._loop.polling.queue_poller = None
            self._loop.remove_reader(self._bell)
            os.close(self._bell)
            self._bell = -1
            self._loop.call_soon(self.begin_all)  # the selector does not call it any more

    # These methods run on the loop.

    def later(self, flush: Callable[[], None]) -> None:
        """Call ``flush`` at the end of this turn of the loop."""
        if not self._flushes and self._bell < 0:
            self._loop.call_soon(self._flush)
        self._flushes.append(flush)

    def spawn(self, body: Body) -> None:
        """Begin a body as soon as all events that have come are dispatched, so that it need not wait for its frames.

        If the loop is a `QueuePollingLoop`, this happens at the end of its turn, before it polls its sockets again.
        """
        if not self.coming and not self._is_rung and self._bell < 0:
            self._loop.call_soon(self.begin_all)
        self.coming.append(body)

    def begin_later(self, call: Beginning) -> None:
        """Call ``call.begin`` as soon as all events that have come are dispatched, as `spawn` begins a body."""
        if not self.waiting and not self._is_rung and self._bell < 0:
            self._loop.call_soon(self.begin_all)
        self.waiting.append(call)

    def has_news(self, *, is_idle: bool) -> bool:
        """Whether there are events to dispatch; called at the end of each turn of the loop.

        Args:
            is_idle: Whether the loop has nothing else to do. Otherwise the queue is not checked for some turns after it
                was found empty: looking at an empty queue yields the processor, which another thread may need to send a
                reply.
        """
        if self._flushes:
            self._flush()
        if self._events:
            return True
        if self._is_lent:
            return False  # the thread waits at the queue; polling it here would only yield the processor
        if self._skips and not is_idle:
            self._skips -= 1
            return False
        event = self._poll(0)
        if event.completion_type == _DONE:
            self._events.append(event)
            self._skips = 0
            return True
        self._skips = _SKIPS
        return False

    def lend(self) -> None:
        """Let the thread wait for events, since the loop is about to sleep."""
        # Set the flag, then check for events; the thread does the reverse, so one of the two notices the other.
        self.is_asleep = True
        if self._events:
            os.eventfd_write(self._bell, 1)
        if not self._is_lent:
            self._is_lent, self._is_recalled = True, False
            self._parked.release()

    def recall(self) -> None:
        """Stop polling a queue that is lent to the thread until the thread has passed on one more event.

        Otherwise the loop could take a later event before the thread has passed on an earlier one. The caller must
        make sure that one more event comes.
        """
        self._is_recalled = True

    def dispatch(self, *, looks: bool = True) -> None:
        """Call the tags of the events that have come; they change state and wake tasks, but never run user code.

        Args:
            looks: Whether to look at the queue too.
        """
        if self._is_dispatching or self._is_closed:
            return
        self._is_dispatching = True
        events, left, until_s = self._events, _MOST, time.monotonic() + _DISPATCHING_S
        try:
            while left:
                left -= 1
                if events:
                    event = events.popleft()
                elif not looks or self._bell < 0 or (self._is_recalled and self._is_lent):
                    break
                else:
                    event = self._poll(0)
                    if event.completion_type != _DONE:
                        self._skips = _SKIPS
                        break
                try:
                    event.tag(event)
                except Exception:
                    log.exception("an event of a gRPC call could not be handled")
                if not left & 3 and time.monotonic() > until_s:
                    break
        finally:
            self._is_dispatching = False
        if events and self._bell < 0:
            self._loop.call_soon(self._turn)

    def _rung(self) -> None:
        """Handle the wake-up of the loop by the thread, which has events."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        self._turn()

    def _turn(self) -> None:
        """Dispatch the events, and begin the bodies that they brought."""
        self._is_rung = True
        try:
            self.dispatch(looks=self._skips == 0)
        finally:
            self._is_rung = False
            if self.coming or self.waiting:
                self.begin_all()

    def begin_all(self) -> bool:
        """Begin what has come, outside of any task, and some bodies in each turn; returns whether there was any."""
        coming = self.coming
        if not coming and not self.waiting:
            return False
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            call.begin()
        until_s = time.monotonic() + _BEGINNING_S
        while coming:
            self._begin(coming.popleft())
            if coming and time.monotonic() > until_s:
                if self._bell < 0:
                    self._loop.call_soon(self.begin_all)
                break
        return True

    def _create(self, body: Body) -> None:
        body.task = task = self._loop.create_task(body.run(), name=body.name)
        if isinstance(task, OwnTask):
            task.owner = body.invocation.context

    def _flush(self) -> None:
        flushes, self._flushes = self._flushes, []
        for flush in flushes if not self._is_closed else ():
            flush()

    # These methods run in the thread.

    def _wait(self) -> None:
        is_polling = self._bell >= 0
        while True:
            if is_polling:
                self._parked.acquire()
            event = self._poll()
            if event.completion_type == _SHUTDOWN:
                self.is_shut_down = True
                return
            self._events.append(event)
            del event  # a variable of a waiting thread must not keep an ended session alive (E-003)
            if is_polling:
                self._is_lent = False
                if self.is_asleep:
                    os.eventfd_write(self._bell, 1)
            elif len(self._events) == 1:
                with contextlib.suppress(RuntimeError):  # the loop has closed
                    self._loop.call_soon_threadsafe(self._turn)
