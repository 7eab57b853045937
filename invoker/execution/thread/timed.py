"""`TimedSingle`: a `Single` whose invocation may be ended by the sweeper, because it has a time limit.

Two threads give events to the session of such an invocation: the function's thread, and the sweeper if the function
does not return in time. Each does so while it holds the lock of this body. The thread does not hold it while it waits
for a frame or is in user code. The thread does hold it while it waits for room on the wire, and then the sweeper cuts
the conversation.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

from invoker.core.invocation import Invocation
from invoker.core.steps import Emitted
from invoker.core.streams import InputStream
from invoker.errors import InvocationError, StopInvocation
from invoker.execution.bodies.sync import SyncBody
from invoker.execution.thread.single import Single
from invoker.execution.thread.wire import Conversation
from invoker.message import Message


class TimedSingle(Single):
    """The body of a direct conversation whose invocation has a time limit, which the sweeper may enforce."""

    __slots__ = ()

    def __init__(self, conversation: Conversation, invocation: Invocation) -> None:
        super().__init__(conversation, invocation)
        self.lock = threading.RLock()

    def pull(self, stream: InputStream) -> Any:
        """Read frames until ``stream`` has a message; None when it has ended.

        Raises:
            InputCancelled: The stream ended with an error (R-110).
        """
        conversation = self.conversation
        while True:
            with self.lock:
                self._check_time()
                if stream.queue or stream.is_ended:
                    return stream.take()
            try:
                frame = conversation.wire.read()
            except InvocationError as error:
                with self.lock:
                    conversation.break_off(error)
            else:
                with self.lock:
                    self._receive(frame)

    def _receive(self, frame: Any | None) -> None:
        conversation = self.conversation
        try:
            for step in conversation.half_closed() if frame is None else conversation.session.receive(frame):
                conversation.perform(step)
        except InvocationError as error:
            conversation.break_off(error)

    def send_all(self, index: int, values: Iterator[Any]) -> None:
        """Write each value as a sync body does, not by the loop of `Single`."""
        SyncBody.send_all(self, index, values)

    def put(self, index: int, message: Message[bytes]) -> None:
        """Write one message, unless the time limit has passed."""
        with self.lock:
            self._check_time()
            if self.invocation.is_finished:
                raise StopInvocation
            self.invocation.emit(index, message)
            self.conversation.deliver(Emitted(self.invocation.key, index, message))

    def _check_time(self) -> None:
        """End the invocation if its time limit has passed."""
        limit = self.invocation.limit
        if limit is not None and time.monotonic() >= limit.ends_at and not self.invocation.is_finished:
            self.conversation.break_off(limit.error)
