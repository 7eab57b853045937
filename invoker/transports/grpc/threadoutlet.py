"""`ThreadOutlet`: the outlet of a call on the loop whose function runs in a thread.

The thread sends the last batch itself, so that the reply needs no turn of the loop. Whatever is sent earlier, or is
large, is sent by the loop.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from invoker.core.steps import Close
from invoker.errors import Cancelled, InvocationError
from invoker.execution.bodies.runner import later
from invoker.execution.driver import Driver
from invoker.execution.thread.leader_follower import WorkTurn
from invoker.execution.whole import Whole
from invoker.transports.grpc.loopcall import LITTLE_BYTES, LoopCall
from invoker.transports.grpc.queue_poller import QueuePoller


class ThreadOutlet:
    """The outlet of one call, whose peer has half-closed; also its listener, which hears if the peer leaves.

    Args:
        call: The call.
        queue_poller: Brings the events of the call to the loop. It waits for the thread when the transport stops.
        driver: Has the threads.

    Attributes:
        turn: The turn of the thread.
    """

    __slots__ = ("_call", "_is_early", "_loop", "_queue_poller", "_threads", "_whole", "turn")

    settle_s = 0.0
    is_blocked = False
    settles = False

    def __init__(self, call: LoopCall, queue_poller: QueuePoller, driver: Driver) -> None:
        self.turn = WorkTurn(driver.sweeper)
        self._call = call
        self._threads = driver.threads
        self._loop = asyncio.get_running_loop()
        self._queue_poller = queue_poller
        self._is_early = False
        self._whole: Whole | None = None

    def start(self, whole: Whole) -> None:
        """Run the conversation in a thread.

        Raises:
            Overloaded: No thread is free.
        """
        self._queue_poller.opened()  # the thread may post on the queue, which must not be shut down before
        self._whole = whole
        self._call.listen(self)
        try:
            self.turn.start(self._threads, whole.run, partial(self._reply, whole))
        except BaseException:
            self._whole = None
            self._queue_poller.closed()
            raise

    def _reply(self, whole: Whole, close: Close) -> None:
        self._whole = None  # it refers to this object
        frames = whole.sent
        if self._is_early or len(frames) > 1 or (frames and len(frames[0]) > LITTLE_BYTES):
            later(self._loop, self._finish, frames, close)
        else:
            self._call.reply_at_once(frames, close, self._done)

    # The methods of `Outlet`, which the conversation calls.

    @property
    def peer(self) -> str:
        """The address of the peer, as gRPC writes it."""
        return self._call.peer

    def await_end(self) -> None:
        """Return, since the peer has half-closed."""

    def is_gone(self) -> bool:
        """Whether the peer is known to have left."""
        return self._call.is_gone

    def early(self, frames: list[Any], close: Close | None = None, *, may_wait: bool = False) -> None:
        """Send the headers, and frames, while the function is still running; see `Outlet`."""
        if may_wait and self._call.is_gone:
            raise Cancelled
        self._is_early = True
        taken = []
        while frames:
            taken.append(frames.pop(0))
        later(self._loop, self._send, taken, close)

    def cut(self, error: InvocationError) -> None:
        """End the call with a status, whatever its thread does."""
        self._call.cut(error)

    # On the loop. The first two are those of `Listener`.

    def arrived(self, frame: bytes | None) -> bool:  # noqa: ARG002 - the interface
        """Return False, since the peer has half-closed."""
        return False

    def gone(self) -> None:
        """End the invocation (R-115), although its function still runs in a thread."""
        whole = self._whole
        if whole is not None:
            whole.break_off(Cancelled())

    def _send(self, frames: list[Any], close: Close | None) -> None:
        self._call.accepted()
        for frame in frames:
            self._call.write(frame)
        if close is not None:
            self._call.reply([], close)

    def _finish(self, frames: list[Any], close: Close) -> None:
        self._call.reply(frames, close)
        self._queue_poller.closed()

    def _done(self, _: Any) -> None:
        self._queue_poller.closed()
