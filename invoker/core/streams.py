"""Inputs and outputs of one invocation, and the budget that its inputs share.

Theory. An input is a queue of undecoded messages in arrival order, and a fact about its end:

======== ======================================= =======================================
state    means                                   left by
======== ======================================= =======================================
open     more may come                           ``end()`` or ``fail()``
ended    no more will come; the queue still may  nothing
         be taken
failed   the stream ended with an error; what    nothing
         is queued is dropped, readers see it
======== ======================================= =======================================

All inputs of an invocation share one `Budget`, since they share one wire stream: a queue of its own for each would
dead-lock a function that reads input 1 to its end before input 0. At the high-water mark the driver stops reading,
*unless* a reader waits on an empty input (the starvation rule, R-129); at the hard cap the invocation fails (R-130).

Nothing here waits and nothing here locks: the owner of the invocation calls from one thread at a time.
"""

from __future__ import annotations

from collections import deque

from invoker.core.budget import Budget, Limits
from invoker.core.coding import Decode, Decoders, Encoders
from invoker.errors import InputCancelled, InvocationError, ProtocolViolation
from invoker.errors.wording import Place
from invoker.message import Message

__all__ = ["Budget", "InputStream", "Limits", "OutputStream", "SingleInput"]


class InputStream:
    """One input: undecoded messages in arrival order, then an end or an error.

    Attributes:
        fed: Number of messages that it was fed.
        fed_bytes: Bytes of their payload.
        waiters: How many readers wait on this input because it was empty; kept by the driver.
    """

    __slots__ = (
        *("_decoders", "_known", "budget", "error", "fed", "fed_bytes", "index", "is_ended", "queue", "spec"),
        "waiters",
    )

    def __init__(self, decoders: Decoders, budget: Budget) -> None:
        self.index = decoders.index
        self.spec = decoders.spec
        self.budget = budget
        self.queue: deque[tuple[Decode, Message[bytes]]] = deque()
        self.is_ended = False
        self.error: InvocationError | None = None
        self.waiters = 0
        self.fed = self.fed_bytes = 0
        self._decoders = decoders
        self._known = decoders.known

    def feed(self, message: Message[bytes]) -> None:
        """Queue one message; its media type is checked now, its payload decoded when it is taken.

        Raises:
            UnsupportedMediaType: No codec decodes its media type.
            LimitExceeded: The hard cap is reached.

        Source: riff streaming specification, "InputFrame" 1, 2 and ordering (R-060, R-063, R-065).
        """
        decode = self._known.get(message.media_type)
        if decode is None:
            decode = self._decoders.find(message.media_type)
        size = len(message.payload)
        self.budget.add(size)
        self.fed += 1
        self.fed_bytes += size
        self.queue.append((decode, message))

    def take(self) -> tuple[Decode, Message[bytes]] | None:
        """Take the oldest message with its decoder, or None when none is here.

        After None, ``is_ended`` says whether the input has ended or is empty for now. A taken message counts against
        the memory of the process until the next call of this method, because the function still uses it.

        Raises:
            InputCancelled: The stream of inputs ended with an error (R-110).
        """
        if self.queue:
            item = self.queue.popleft()
            budget = self.budget
            if budget.is_charged:
                budget.shrink()
            budget.frames -= 1
            budget.bytes -= len(item[1].payload)
            return item
        if self.budget.is_charged and not self.spec.single:
            self.budget.shrink()
        if self.error is not None:
            raise InputCancelled(self.error)
        return None

    def end(self) -> None:
        """End the input normally. Idempotent, and without effect after an error."""
        self.is_ended = True

    def fail(self, error: InvocationError) -> None:
        """End the stream with an error: the queued messages are dropped, and readers see the error.

        The first error stays.
        """
        if self.error is not None or (self.is_ended and not self.queue):
            return
        self.error = error
        self.is_ended = True
        self.drop()

    def drop(self) -> None:
        """Release the queued messages and their share of the budget."""
        for _, message in self.queue:
            self.budget.frames -= 1
            self.budget.bytes -= len(message.payload)
        self.queue.clear()

    @property
    def place(self) -> Place:
        """The place of this input, for the texts of errors."""
        return Place("input", self.index, self.spec.name)


class SingleInput(InputStream):
    """An input that is one value for the whole call: a second frame is refused, never dropped (R-167, R-168)."""

    __slots__ = ()

    def feed(self, message: Message[bytes]) -> None:
        """Queue the one message.

        Raises:
            ProtocolViolation: The message is not the first one, or the function has begun without it.
            UnsupportedMediaType: No codec decodes its media type.
            LimitExceeded: The hard cap is reached.
        """
        if self.fed:
            raise ProtocolViolation(": expected 1 frame, got 2 or more", place=self.place)
        super().feed(message)


class OutputStream:
    """One output: it has the encoder of its values, and whether it has ended.

    Attributes:
        encode: See `Encoders.encode`.
        emitted: Number of emitted messages.
        emitted_bytes: Bytes of their payload.
    """

    __slots__ = ("emitted", "emitted_bytes", "encode", "index", "is_ended", "name")

    is_wanted = True

    def __init__(self, encoders: Encoders) -> None:
        self.index = encoders.index
        self.name = encoders.name
        self.is_ended = False
        self.emitted = self.emitted_bytes = 0
        self.encode = encoders.encode
