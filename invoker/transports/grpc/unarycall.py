"""`UnaryCall`: one gRPC call whose frames have all come before its function runs, or will come within milliseconds.

Theory. The thread that accepted the call receives the frames that have come. Some clients send headers, messages and
the half-close in one packet, others in several that follow each other at once; so the thread waits for the rest for
some milliseconds, if calls of this kind have tended to come whole (`ArrivalStats`). If the half-close has come, the
call is a *whole* conversation, and its frames are sent with the status in as few batches as there are messages. The
operation that reports a cancel is part of the last batch then. A `ThreadCall` takes over the received frames, or the
frames that remain to be sent,

* when the half-close does not come in time, or there is much to receive,
* when the conversation turns out to be long, or its peer slow, or when the context asks whether the peer is gone.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from invoker.core.budget import STEP_BYTES, Unread
from invoker.core.steps import Close, Trailers
from invoker.errors import Cancelled, InvocationError
from invoker.execution.driver import Driver
from invoker.execution.pace.gate import UNGATED
from invoker.execution.thread.leader_follower import Turn
from invoker.transports.grpc.cygrpc import BUFFER_HINT, NO_FLAGS, cygrpc
from invoker.transports.grpc.details import clip, oversize, status_of
from invoker.transports.grpc.operations import CLOSE, DONE, READ, SENT
from invoker.transports.grpc.settings import COPIES, UNCHECKED
from invoker.transports.grpc.threadcall import AHEAD, ThreadCall

PARK_S = 0.003
"""Seconds to wait for the rest of a call. Clients that send a call at once need only a fraction of this."""

_MOST_BYTES = 256 * 1024
"""A call with more bytes in its frames, or more than `AHEAD` of them, is read while its function runs."""

_LIGHT_BYTES = 16 * 1024

_MOST_MISSES = 10


class ArrivalStats:
    """Whether clients tend to send calls of one kind whole, so that waiting for the rest of a call pays."""

    __slots__ = ("_misses", "_skips")

    def __init__(self) -> None:
        self._misses = 0
        self._skips = 0  # how many of the next calls are not waited for

    def pays(self) -> bool:
        """Whether to wait for the rest of the next call; after unsuccessful waits it is seldom true."""
        if self._skips:
            self._skips -= 1
            return False
        return True

    def learn(self, *, is_whole: bool) -> None:
        """Note how a wait ended. Each one without success doubles the number of calls without a wait."""
        if is_whole:
            self._misses = max(0, self._misses - 1)
        else:
            self._misses = min(self._misses + 1, _MOST_MISSES)
            self._skips = 2**self._misses - 2


class UnaryCall:
    """One gRPC call whose frames have come before its function runs; it is the `Outlet` of its conversation.

    Args:
        call: The call as grpcio's private layer gives it.
        queue: The completion queue, which serves this call alone.
        driver: Has the sweeper and the limits.
        turn: The turn of the thread; the lead is passed on before a call waits.

    Attributes:
        frames: The received frames.
        headers: The headers of the response.
        most_bytes: A message with more bytes ends the call (R-121).
        settle_s: How long the peer may take to turn a half-close into a cancel (R-109); 0 for a peer that never does.
    """

    __slots__ = (
        "_call", "_driver", "_is_finished", "_is_gone", "_is_headed", "_is_sending", "_is_watched", "_lock", "_pending",
        "_receive", "_thread_call", "_turn", "_unread", "frames", "headers", "most_bytes", "queue", "settle_s",
    )  # fmt: skip

    def __init__(self, call: Any, queue: Any, driver: Driver, turn: Turn) -> None:
        self.queue = queue
        self.frames: list[bytes] = []
        self.headers: Trailers = ()
        self.most_bytes = UNCHECKED
        self.settle_s = 0.0
        self._call = call
        self._driver = driver
        self._turn = turn
        self._receive = cygrpc.ReceiveMessageOperation(NO_FLAGS)
        self._thread_call: ThreadCall | None = None
        self._unread: Unread | None = None
        self._lock = threading.Lock()
        self._pending = 0
        self._is_finished = self._is_gone = self._is_headed = self._is_sending = self._is_watched = False

    # These methods are for the thread that accepted the call.

    def take(self, stats_of: Callable[[], ArrivalStats], *, takes_one: bool = False) -> bool:
        """Receive the frames that have come, or that come in a moment.

        Returns whether these are all frames of the call, and their end has come too.

        Args:
            stats_of: Gives the statistics of calls of this kind; called if not all frames have come.
            takes_one: Whether the first frame is the last, so that the half-close is not needed.
        """
        frames, post, poll = self.frames, self._call.start_server_batch, self.queue.poll
        limits, operations = self._driver.engine.limits, (self._receive,)
        most, most_bytes = min(limits.high_frames, AHEAD), min(limits.high_bytes, _MOST_BYTES)
        until, size, stats = 0.0, 0, None  # with `until` = 0 `poll` does not wait
        while not post(operations, READ):
            event = poll(until)
            if event.completion_type != DONE and stats is None and (known := stats_of()).pays():
                stats = known
                self._turn.let_go()
                until = time.time() + PARK_S
                event = poll(until)
            if event.completion_type != DONE:
                if stats is not None:
                    stats.learn(is_whole=False)
                self._pending = 1
                return False
            frame = event.batch_operations[-1].message()
            if frame is None:
                if stats is not None:
                    stats.learn(is_whole=True)
                return bool(frames) and event.success
            if len(frame) > self.most_bytes:
                self._call.cancel(*status_of(oversize(len(frame), self.most_bytes)))
                return False  # a `ThreadCall` receives the cancel in place of the next frame
            frames.append(frame)
            size += len(frame)
            if size > _LIGHT_BYTES:
                self._turn.let_go()  # a large batch takes a while to be read
            if len(frames) >= most or size >= most_bytes:
                return False
            if takes_one:
                if stats is not None:
                    stats.learn(is_whole=True)
                return True
        return False

    def ordinary(self) -> ThreadCall:
        """The `ThreadCall` that continues to read: it first gives the received frames.

        This object is not used any more.
        """
        call = self._thread_call = self._make_thread_call()
        call.open(self.frames, is_reading=self._pending > 0)
        self.frames = []
        self._receive = None  # the operation keeps the last frame
        return call

    def is_light(self, frames: list[bytes]) -> bool:
        """Whether `finish` sends these frames without waiting for the peer, and keeps little if the peer is slow."""
        return self._thread_call is None and (not frames or (len(frames) == 1 and len(frames[0]) <= _LIGHT_BYTES))

    def finish(self, frames: list[bytes], close: Close) -> bool:
        """Send frames, which are taken out of the list, then the status and its metadata.

        Returns:
            Whether every operation is done, so that the queue can serve another call.
        """
        if frames and len(frames[-1]) > STEP_BYTES:
            self._unread = Unread(self._driver.engine.memory)
            self._unread.add(sum(map(len, frames)), self.cut, copies=COPIES)
        with self._lock:
            self._is_finished = True
            if self._thread_call is None and self._send_short(frames, close):
                is_done = self._pending == 0
                if is_done and self._unread is not None:
                    self._unread.take()
                return is_done
            call = self._long()
        try:
            for frame in frames:
                call.write(frame, hold=True)
        except Cancelled:  # the peer is gone and needs no status, but grpcio requires one
            pass
        is_done = call.finish(*status_of(close.error), close.trailers)
        if is_done:
            self.over(is_taken=True)
        return is_done

    def over(self, *, is_taken: bool) -> None:
        """Note that the call is over. If the peer has not taken its large frames, it counts as unread."""
        for one in (self._unread, self._thread_call.unread if self._thread_call is not None else None):
            if one is not None:
                one.take() if is_taken else one.part()

    @property
    def is_done(self) -> bool:
        """Whether every operation has ended, by the events on the queue."""
        with self._lock:
            call = self._thread_call
            if call is None:
                self._glance()
                return self._pending == 0
        with call.lock:
            call.glance()
        return call.is_done

    # The methods of `Outlet`, which the conversation calls.

    def await_end(self) -> None:
        """Return once the half-close can be believed (R-109).

        Raises:
            Cancelled: The end was a cancel.
        """
        with self._lock:
            if self._thread_call is None and not self.settle_s:
                # If grpcio has already noticed a cancel, its close event comes before the event of this operation.
                self._watch()
                self._post((self._receive,), READ)
                while not self._is_gone and self._handle(self.queue.poll()) is not READ:
                    pass
                if self._is_gone:
                    raise Cancelled
                return
            call = self._long()
        call.read()

    def is_gone(self) -> bool:
        """Whether the peer is known to have left."""
        with self._lock:
            if self._is_finished:
                return self._is_gone
            call = self._long()
        return call.look()

    @property
    def peer(self) -> str:
        """The address of the peer, as gRPC writes it."""
        return str(self._call.peer().decode())

    @property
    def is_blocked(self) -> bool:
        """Whether the thread waits because the peer takes none of the sent frames."""
        return self._thread_call is not None and self._thread_call.is_blocked

    def early(self, frames: list[bytes], close: Close | None = None, *, may_wait: bool = False) -> None:
        """Send the headers, and frames, while the function is still running; see `Outlet`."""
        with self._lock:
            call = self._long()
        if may_wait:
            while frames:
                call.write(frames[0], hold=False)
                del frames[0]
            return
        with call.lock:
            while frames and call.send_now(frames[0]):
                del frames[0]
            call.send_headers()
            if close is not None and not frames:
                call.send_status(*status_of(close.error), close.trailers)

    def cut(self, error: InvocationError) -> None:
        """End the call with a status, whatever its thread does."""
        self._call.cancel(int(error.status), clip(str(error)))

    # Private helpers, called with the lock held.

    def _send_short(self, frames: list[bytes], close: Close) -> bool:
        """Send everything; False if a send has to wait for the peer, so that a `ThreadCall` has to do the rest."""
        while len(frames) > 1:
            hint = BUFFER_HINT if self._is_headed else NO_FLAGS
            self._post((*self._headers(), cygrpc.SendMessageOperation(frames.pop(0), hint)), SENT)
            if not self._glance(until_sent=True):
                return False
        error = close.error
        code, detail = (0, b"") if error is None else (int(error.status), clip(str(error)))
        last = [] if self._is_headed else [cygrpc.SendInitialMetadataOperation(self.headers, NO_FLAGS)]
        self._is_headed = True
        last.append(cygrpc.SendStatusFromServerOperation(close.trailers, code, detail, NO_FLAGS))
        if frames:
            last.append(cygrpc.SendMessageOperation(frames.pop(), NO_FLAGS))
        if not self._is_watched:
            last.append(cygrpc.ReceiveCloseOnServerOperation(NO_FLAGS))
        if self._call.start_server_batch(tuple(last), None):  # as `_post` does
            self._is_gone = True
        else:
            self._pending += 1
            self._glance()
        return True

    def _headers(self) -> tuple[Any, ...]:
        if self._is_headed:
            return ()
        self._is_headed = True
        return (cygrpc.SendInitialMetadataOperation(self.headers, NO_FLAGS),)

    def _watch(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            self._post((cygrpc.ReceiveCloseOnServerOperation(NO_FLAGS),), CLOSE)

    def _post(self, operations: tuple[Any, ...], tag: object) -> None:
        self._pending += 1
        self._is_sending = self._is_sending or tag is SENT
        if self._call.start_server_batch(operations, tag):
            self._pending -= 1  # the call is broken: no event will come for it
            self._is_gone = True

    def _glance(self, *, until_sent: bool = False) -> bool:
        """Take the events that have come, at most one of them from a send; returns whether there was one."""
        while self._pending:
            event = self.queue.poll(0)
            if event.completion_type != DONE:
                return False
            if event.tag is None:
                self._pending -= 1
            elif self._handle(event) is SENT and until_sent:
                return bool(event.success)
        return False

    def _handle(self, event: Any) -> object:
        self._pending -= 1
        if event.tag is SENT:
            self._is_sending = False
        elif event.tag is CLOSE and event.batch_operations[0].cancelled():
            self._is_gone = True
        return event.tag

    def _long(self) -> ThreadCall:
        """The `ThreadCall` that takes over, which can wait, and which several threads may use."""
        call = self._thread_call
        if call is None:
            call = self._thread_call = self._make_thread_call()
            call.pace = UNGATED
            self._watch()
            call.go_on(self._pending, is_headed=self._is_headed, is_sending=self._is_sending, is_gone=self._is_gone)
        return call

    def _make_thread_call(self) -> ThreadCall:
        limits, sweeper = self._driver.engine.limits, self._driver.sweeper
        call = ThreadCall(self._call, self.queue, sweeper, high_frames=limits.high_frames, high_bytes=limits.high_bytes)
        call.allow(self.most_bytes)
        call.settle_s, call.headers = self.settle_s, self.headers
        call.before_wait, call.memory = self._turn.pass_on, self._driver.engine.memory
        return call


class ClosingCalls:
    """Calls whose last operations wait for slow peers; their queues are free once these operations are done.

    Args:
        free: Takes completion queues that can be used again.
        driver: The driver, whose sweeper watches the calls while there are any.
    """

    def __init__(self, free: deque[Any], driver: Driver) -> None:
        self._free = free
        self._driver = driver
        self.calls: deque[UnaryCall] = deque()
        self._is_swept = False

    def add(self, call: UnaryCall) -> None:
        """Wait for the end of one more call."""
        call.over(is_taken=False)
        self.calls.append(call)
        if not self._is_swept:
            self._is_swept = True
            self._driver.sweeper.add(self)

    def glance(self) -> None:
        """Look at the call that has waited longest, if there is one."""
        with contextlib.suppress(IndexError):
            self._look(self.calls.popleft())

    def sweep(self, now: float) -> bool:  # noqa: ARG002 - the sweeper's interface
        """Look at all calls; False when there are none."""
        for call in [self.calls.popleft() for _ in range(len(self.calls))]:
            self._look(call)
        # `add` does the reverse, so one of the two notices the other.
        self._is_swept = False
        self._is_swept = bool(self.calls)
        return self._is_swept

    def _look(self, call: UnaryCall) -> None:
        if call.is_done:
            call.over(is_taken=True)
            self._free.append(call.queue)
        else:
            self.calls.append(call)
