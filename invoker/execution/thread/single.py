"""`Single`: a sync function that gives one iterator, in the thread that reads and writes its wire stream.

Pulling an input reads the next frame, and emitting writes one. Frames are *held* for the next pull (see `ThreadCall`)
when a pull is sure to follow: after each result of a request/reply function, and after the values of a generator that
asked for input at once the last time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Iterator
from typing import Any

from invoker.author.spec import Style
from invoker.core.invocation import Invocation
from invoker.core.steps import Emitted, Feed, OutputEnded, Send
from invoker.core.streams import InputStream
from invoker.errors import Discarded, EncodeError, InvocationError
from invoker.execution.bodies.sync import SyncBody
from invoker.execution.thread.wire import Conversation
from invoker.message import Message

_PROMPT_S = 200e-6
"""A generator that came back within this time after an output is expected to do so again."""


class Single(SyncBody):
    """The body of a direct conversation; made in the thread that it belongs to.

    Args:
        conversation: The conversation that has the session and the wire.
        invocation: The invocation of the conversation.
    """

    __slots__ = ("_is_prompt", "_thread", "_wrote_at", "conversation", "lock")

    def __init__(self, conversation: Conversation, invocation: Invocation) -> None:
        super().__init__(invocation)
        self.conversation = conversation
        self.lock: Any = threading.Lock()  # only this thread uses the lock; a lock costs less than a null context
        self._thread = threading.get_ident()
        self._is_prompt = False  # whether it pulled again soon after its last output
        self._wrote_at = 0.0  # when the last output was written; 0 if it has pulled since

    def pull(self, stream: InputStream) -> Any:
        """Read frames until ``stream`` has a message; None when it has ended.

        Raises:
            InputCancelled: The stream ended with an error (R-110).
        """
        if stream.queue:
            return stream.take()
        if self._wrote_at:
            self._is_prompt = time.monotonic() - self._wrote_at < _PROMPT_S
            self._wrote_at = 0.0
        conversation, feed = self.conversation, self.invocation.feed
        read, receive = conversation.wire.read, conversation.session.receive
        while True:
            if stream.is_ended:
                return stream.take()
            try:
                frame = read()
                for step in conversation.half_closed() if frame is None else receive(frame):
                    if type(step) is Feed:
                        feed(step)
                    else:
                        conversation.perform(step)
            except InvocationError as error:
                conversation.break_off(error)
            if stream.queue:
                return stream.take()

    def send_all(self, index: int, values: Iterator[Any]) -> None:
        """Write each value; the end of the only iterator ends the invocation."""
        invocation, conversation = self.invocation, self.conversation
        encode, key = invocation.encode, invocation.key
        deliver, write, perform = conversation.session.deliver, conversation.wire.write, conversation.perform
        hold = is_mapped = invocation.function.spec.style is Style.REQUEST_REPLY
        clock = time.monotonic
        for value in values:
            if not is_mapped:
                hold = self._is_prompt if self._wrote_at == 0 else clock() - self._wrote_at < _PROMPT_S
            try:
                number, message = encode(index, value)
            except Discarded:
                self.check_over()
                continue
            if invocation.is_finished:
                return
            invocation.emit(number, message)
            for step in deliver(Emitted(key, number, message)):
                if type(step) is Send:
                    write(step.frame, hold=hold)
                else:
                    perform(step)
            if not is_mapped:
                self._wrote_at = clock()

    def put(self, index: int, message: Message[bytes]) -> None:
        """Write a message that the function sends by its context."""
        self.invocation.emit(index, message)
        self.conversation.deliver(Emitted(self.invocation.key, index, message))

    def tell_end(self, index: int) -> None:
        """Write that the function has ended an output by its context."""
        self.conversation.deliver(OutputEnded(self.invocation.key, index))

    def end(self, index: int) -> None:
        """End an output before the function returns."""
        self.check_thread()
        super().end(index)

    def check_thread(self) -> None:
        """Raise EncodeError in every thread but the one that runs the function."""
        if threading.get_ident() != self._thread:
            raise EncodeError("this function may send only from the thread that runs it")

    def break_off(self, error: InvocationError) -> None:
        """End the invocation, and notify the peer at once."""
        self.conversation.break_off(error)

    def is_over(self) -> bool:
        """Whether the invocation has ended, or the peer is gone."""
        return self.conversation.is_over()

    @property
    def debug(self) -> bool:
        """Whether the peer may see tracebacks."""
        return self.conversation.debug

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block this thread until the loop has run ``awaitable``, and give its result (R-034)."""
        return self.conversation.wait(awaitable)
