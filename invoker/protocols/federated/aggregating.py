"""`AggregatingSession`: runs the aggregation function of a round as a conversation without a peer (F-079 to F-084).

A round is one invocation. Instead of frames, this session translates messages of the round: `Begin`, then a `Report`
for each accepted update in order, then `Enough`; or `Abandon` at any time. The backing runs the session by a reactor
whose wire drops all frames, with a window of `AHEAD` messages. The round is notified by these calls::

    taken(ordinal)                  the function's input has taken this report; reports come in order
    finished(checkpoint, error)     once, as the last call: the function has ended, or was abandoned

The function is fed at most `AHEAD` reports, and `AHEAD_BYTES`, before it reads them (F-081). Further reports wait in
this session, and their devices wait for answers. The reactor sends `Wants` when half of the window is free. If the
bytes are the tighter limit, `Wants` does not show that there is room, so the session waits until the function waits
(`hears_waits`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from typing import Final, Protocol, TypeAlias

import msgspec

from invoker.core.steps import Cancel, Close, Emitted, EndInput, Event, Feed, Finished, Open, Step, Terms, Wants
from invoker.errors import Cancelled, InvocationError, Status, StatusError
from invoker.message import Headers, Message
from invoker.tensors.checkpoint import CHECKPOINT

AHEAD: Final = 16
"""How many reports the function is fed before it reads them (F-081); the window of the reactor."""

AHEAD_BYTES: Final = 64 * 1024 * 1024
"""The size of such reports in bytes; above it, one report at a time is fed."""

_ACCEPTS: Final = f"{CHECKPOINT}, application/octet-stream;q=0.5"
"""A function that is annotated with bytes returns a serialised checkpoint."""

log = logging.getLogger(__name__)

_ID: Final = "round"
_LOW: Final = AHEAD // 2
_REPORTS: Final = 0
_MODEL: Final = 1


class Begin(msgspec.Struct, frozen=True):
    """The first message of a round, which opens the invocation of its function."""


class Report(msgspec.Struct, frozen=True):
    """Feeds one report; ``ordinal`` counts from 0 in each round."""

    ordinal: int
    message: Message[bytes]


class Enough(msgspec.Struct, frozen=True):
    """Ends the function's input, since no more reports come."""


class Abandon(msgspec.Struct, frozen=True):
    """Ends the round with ``error``."""

    error: InvocationError


Word: TypeAlias = Begin | Report | Enough | Abandon


class Hears(Protocol):
    """A round, which is notified when its reports are taken and when the aggregation ends."""

    def taken(self, ordinal: int) -> None:
        """Called when the function's input has taken a report."""

    def finished(self, checkpoint: bytes | None, error: InvocationError | None) -> None:
        """Called when the invocation has ended, with the next checkpoint or with an error."""


class AggregatingSession:
    """The conversation of one round.

    Args:
        hears: The round, which is notified; see the module's docstring.
        function: The name of the aggregation function in the catalogue.
        model: The checkpoint from which the round starts, if the function takes it as its second input; None: it does
            not.
        metadata: The metadata of the conversation, for the function's `Context`.
    """

    headers: tuple[tuple[str, str], ...] = ()
    is_full = False

    def __init__(self, hears: Hears, function: str, model: bytes | None, metadata: Headers) -> None:
        self.stalled: set[tuple[str, int]] = set()
        self.hears_waits = False
        self.held = 0
        self._hears = hears
        self._opening = Open(_ID, function, (_ACCEPTS,), metadata=metadata, terms=Terms.LOOSE, protocol="federated")
        self._model = model
        self._waiting: deque[Report] = deque()
        self._fed: deque[int] = deque()  # sizes of the fed reports that the function may not have read yet
        self._has_begun = self._has_enough = self._is_over = False
        self._checkpoint: bytes | None = None

    def receive(self, frame: Word) -> Iterable[Step]:
        """Translate one message of the round into steps."""
        if self._is_over:
            return ()
        if isinstance(frame, Begin):
            return self._begin()
        if isinstance(frame, Abandon):
            return (Cancel(_ID, frame.error),) if self._has_begun else self._finish(frame.error)
        if isinstance(frame, Report):
            self._waiting.append(frame)
            self.held += len(frame.message.payload)
        else:
            self._has_enough = True
        return self._feed()

    def half_close(self) -> Iterable[Step]:
        """Abandon the round, since no more messages can come."""
        return self.receive(Abandon(Cancelled("the round was given up")))

    def deliver(self, event: Event) -> Iterable[Step]:
        """Handle an event of the invocation: feed more reports, keep the checkpoint, or end."""
        if self._is_over:
            return ()
        if isinstance(event, Wants):
            while len(self._fed) > (0 if event.waits else _LOW):
                self._fed.popleft()
            return self._feed()
        if isinstance(event, Emitted):
            return self._emitted(event)
        return self._finish(event.error) if isinstance(event, Finished) else ()

    def release(self) -> None:
        """Notify the round that the conversation has ended, unless that was done."""
        self._finish(Cancelled("the aggregation was ended from outside"))

    def _begin(self) -> Iterable[Step]:
        self._has_begun = True
        steps: list[Step] = [self._opening]
        if self._model is not None:
            steps += (Feed(_ID, _MODEL, Message(self._model, media_type=CHECKPOINT)), EndInput(_ID, _MODEL))
        self._model = None
        return steps

    def _feed(self) -> Iterable[Step]:
        """Feed reports up to the window, and end the input after the last one."""
        steps: list[Step] = []
        ahead = sum(self._fed)
        while self._waiting and len(self._fed) < AHEAD:
            size = len(self._waiting[0].message.payload)
            if self._fed and ahead + size > AHEAD_BYTES:
                break
            report = self._waiting.popleft()
            self._fed.append(size)
            ahead += size
            self.held -= size
            steps.append(Feed(_ID, _REPORTS, report.message))
            self._hears.taken(report.ordinal)
        if self._waiting:
            self.stalled.add((_ID, _REPORTS))
        else:
            self.stalled.clear()
            if self._has_enough:
                steps.append(EndInput(_ID, _REPORTS))
        self.hears_waits = bool(self._waiting) and len(self._fed) < AHEAD
        return steps

    def _emitted(self, event: Emitted) -> Iterable[Step]:
        if self._checkpoint is not None:
            text = "the aggregation function gave a second checkpoint; a round has one"
            log.warning(text)
            return (Cancel(_ID, StatusError(Status.FAILED_PRECONDITION, text)),)
        self._checkpoint = event.message.payload
        return ()

    def _finish(self, error: InvocationError | None) -> Iterable[Step]:
        if self._is_over:
            return ()
        self._is_over = True
        if error is None and self._checkpoint is None:
            error = StatusError(Status.FAILED_PRECONDITION, "the aggregation function gave no checkpoint")
            log.warning("the aggregation function gave no checkpoint; it must return a Checkpoint or bytes")
        checkpoint, self._checkpoint = self._checkpoint, None
        self._waiting.clear()
        self._fed.clear()
        self.stalled.clear()
        self.hears_waits = False
        self.held = 0
        self._hears.finished(None if error is not None else checkpoint, error)
        del self._hears  # frees the model now; the session itself stays until the garbage collector runs
        return (Close(),)
