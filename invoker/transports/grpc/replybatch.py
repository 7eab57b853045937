"""`ReplyBatch`: replies of one leading thread that are sent together, while several calls wait (ADR 38).

Theory. A client often answers a reply at once with its next call, which wakes threads of gRPC on the processor core
that serves the other calls. If replies are sent together, the next calls come together, and wake these threads only
once. So while calls are found waiting, the replies to quick ones are held, and sent

* before the thread waits for the next call or the rest of one,
* once there are `_MOST` of them, or the first one has been held for `_LONGEST_S`,
* by the sweeper's thread, when a later call has been in user code for a beat.

A call is answered at once if no other calls wait behind it, if it took long, if its reply is large, or if its frames
have not all come.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from invoker.core.steps import Close
from invoker.execution.thread.leader_follower import Turn
from invoker.transports.grpc.operations import DONE
from invoker.transports.grpc.unarycall import UnaryCall

_MOST: Final = 32
_LONGEST_S: Final = 0.001
_AT_ONCE_S: Final = 0.000015
"""An event that comes within this many seconds was in the queue before the thread waited for it."""

_QUICK_S: Final = 0.0002
"""A call that took more seconds than this is answered at once."""


class ReplyBatch:
    """The replies of one leading thread.

    Args:
        turn: The turn of the thread, whose replies are held here from now on.
        send: Sends a reply.
    """

    __slots__ = ("_began_s", "_is_crowded", "_replies", "_send", "_since_s", "_turn")

    def __init__(self, turn: Turn, send: Callable[[UnaryCall, list[bytes], Close], None]) -> None:
        self._turn = turn
        self._send = send
        self._replies: deque[tuple[UnaryCall, list[bytes], Close]] = deque()
        self._is_crowded = False  # whether the current call was found waiting
        self._began_s = self._since_s = 0.0
        turn.let_go = self.let_go

    def next(self, queue: Any) -> Any:
        """Wait for the next event of a queue; the held replies are sent before."""
        before_s = time.monotonic()
        replies = self._replies
        if replies:
            if len(replies) < _MOST and before_s - self._since_s < _LONGEST_S:
                event = queue.poll(0)
                if event.completion_type == DONE:
                    self._began_s = time.monotonic()
                    return event
            self.let_go()
            before_s = time.monotonic()
        event = queue.poll()
        self._began_s = time.monotonic()
        # A look at the queue would be exact, but would make each single call slower.
        self._is_crowded = self._began_s - before_s < _AT_ONCE_S
        return event

    def finish(self, call: UnaryCall, frames: list[bytes], close: Close) -> None:
        """Send a reply, or hold it."""
        now = time.monotonic()
        if self._is_crowded and now - self._began_s < _QUICK_S and self._turn.leads and call.is_light(frames):
            if not self._replies:
                self._since_s = now
            self._replies.append((call, frames, close))
        else:
            self._send(call, frames, close)

    def let_go(self) -> None:
        """Send the held replies; may be called from any thread, since none of them has to wait for its peer."""
        replies = self._replies
        while replies:
            try:
                reply = replies.popleft()
            except IndexError:  # another thread has taken it
                return
            self._send(*reply)
