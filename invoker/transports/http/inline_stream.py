"""`InlineStream`: a response that streams, in the thread that has read its request.

Theory. The thread that leads runs the function as a `Whole` conversation, and writes its values (`StreamReply`). The
first item is sent at once. Later items are kept until the function is over, which takes less than a beat of the sweeper
for most streams: so each of these costs two writes, and no switch of threads. A stream that takes longer, or gives
much, passes the lead on, and continues in its thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from invoker.author.spec import Style
from invoker.core.http import BodyChunk, BodyParts
from invoker.core.steps import Elapsed, Emitted, Send
from invoker.errors import Discarded
from invoker.execution.driver import Driver
from invoker.execution.pace.sweeper import LOOK_S
from invoker.execution.thread.leader_follower import Turn
from invoker.execution.whole import Whole
from invoker.message import Message
from invoker.transports.http.streamed import HEAD_S, HEARTBEAT_S, StreamingSession
from invoker.transports.http.streamreply import MOST_HELD, StreamReply

_ITEM_S: Final = 1e-3
"""A function that needs fewer seconds for an item counts as quick, however many items it gives."""


class InlineStream(Whole):
    """The conversation of one request; its outlet is a `StreamReply`."""

    is_told_of_time = True
    most_bytes = MOST_HELD

    __slots__ = ("_is_first", "_reply", "_streaming")

    def __init__(
        self, session: StreamingSession, driver: Driver, reply: StreamReply, *, turn: Turn, deadline: float | None
    ) -> None:
        super().__init__(session, driver, reply, turn=turn, deadline=deadline, is_counted=False)
        self._reply = reply
        self._streaming = session
        self._is_first = True

    @property
    def encode(self) -> Callable[[int, Any], tuple[int, Message[bytes]]]:
        """Encodes the values of the body; large values one after another."""
        invocation = self.invocation
        return partial(self.driver.threads.turns.encode_any, invocation.encode, invocation.function.spec.name)

    def keep(self, frame: Any) -> None:
        """Keep one frame; the first item is sent now, unless the function ends with it."""
        if self._is_first and type(frame) is BodyChunk:
            self._is_first = False
            self._reply.invocation = self.invocation
            if not self.is_long and self.invocation.function.spec.style is not Style.REQUEST_REPLY:
                with self.lock:
                    self.sent.append(frame)
                    self._reply.early(self.sent)
                return
        elif type(frame) is BodyParts:
            self._reply.invocation = self.invocation
            self.beat()  # the parts are made in `send_all`, where the thread can wait for the client
        super().keep(frame)

    def send_all(self, index: int, values: Iterator[Any]) -> None:
        """Send each value, while the lock is held."""
        invocation = self.invocation
        if invocation.limit is not None:
            super().send_all(index, values)
            return
        lock, encode, key, deliver = self.lock, self.encode, invocation.key, self.session.deliver
        for value in values:
            try:
                number, message = encode(index, value)
            except Discarded:
                self.check_over()
                continue
            with lock:
                if invocation.is_finished:
                    return
                invocation.emit(number, message)
                for step in deliver(Emitted(key, number, message)):
                    if type(step) is Send:
                        self.keep(step.frame)
                    else:
                        self.perform(step)

    def is_slow(self, took_s: float) -> bool:
        """Decide by the time per item, unlike the base class.

        A thread that gives many quick items may continue to lead.
        """
        return super().is_slow(took_s) and took_s > _ITEM_S * sum([one.emitted for one in self.invocation.outputs])

    def look(self, now: float) -> None:
        """Write the head after a moment, regular heartbeats, and the bytes that the client has not taken yet."""
        has_begun = self._streaming.has_begun
        quiet_s = now - (self._reply.wrote_s if has_begun else self.started_s)
        if self.closed is None and quiet_s >= (HEARTBEAT_S if has_begun else HEAD_S) - LOOK_S:
            self.in_stead(lambda: self.deliver(Elapsed()))
        self._reply.early(self.sent)

    def leave(self) -> None:
        """Note that user code has returned, and let the next thread pass the gate."""
        super().leave()
        self._reply.leave_gate()
