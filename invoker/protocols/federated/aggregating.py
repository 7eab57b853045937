"""`AggregatingSession`: the conversation of a round with its aggregation function; it has no peer (F-079 to F-084).

A round is one invocation. Its conversation is translated like that of a peer, except that the frames are messages of a
round: `Begin`, then a `Report` for each update in the order in which they were accepted, then `Enough`; or `Abandon` at
any time. The backing runs it by a reactor for sessions that store, with a wire that drops all frames, a window of
`AHEAD` messages, and these messages as frames. The round is notified::

    taken(ordinal)                  the input has taken this report, in order
    finished(checkpoint, error)     the last thing, once: the function has ended, or its run was given up

The function is fed at most `AHEAD` reports, and `AHEAD_BYTES`, before it reads them (F-081). Further reports wait here,
and the devices that sent them wait for their answers. The reactor reports room by `Wants`: half of the window is free.
If bytes are the bound, half a window of messages says too little, so the session waits until the function itself waits
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
"""Reports that the function has been fed but has not read (F-081); the window of the reactor."""

AHEAD_BYTES: Final = 64 * 1024 * 1024
"""Bytes of such reports; beyond them one report at a time is fed."""

_ACCEPTS: Final = f"{CHECKPOINT}, application/octet-stream;q=0.5"
"""A function that is annotated with bytes gives bytes, which are a checkpoint as they are."""

log = logging.getLogger(__name__)

_ID: Final = "round"
_LOW: Final = AHEAD // 2
_REPORTS: Final = 0
_MODEL: Final = 1


class Begin(msgspec.Struct, frozen=True):
    """The first message of a round: open the invocation of its function."""


class Report(msgspec.Struct, frozen=True):
    """Feed one report; ``ordinal`` counts from 0 in each round."""

    ordinal: int
    message: Message[bytes]


class Enough(msgspec.Struct, frozen=True):
    """No more reports come, so the function's input ends."""


class Abandon(msgspec.Struct, frozen=True):
    """The round is given up; ``error`` is the reason."""

    error: InvocationError


Word: TypeAlias = Begin | Report | Enough | Abandon


class Hears(Protocol):
    """A round, which is notified when its reports are taken or the aggregation ends."""

    def taken(self, ordinal: int) -> None:
        """Note that the input has taken a report."""

    def finished(self, checkpoint: bytes | None, error: InvocationError | None) -> None:
        """Note that the invocation is over, with the next checkpoint or with an error."""


class AggregatingSession:
    """One round's invocation.

    Args:
        hears: The round that is notified; see the module.
        function: The name of the aggregation function in the catalogue.
        model: The checkpoint of the round, for a function that takes it as its second input; None: the function does
            not take it.
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
        self._fed: deque[int] = deque()  # sizes of the reports that the function may not have read
        self._has_begun = self._has_enough = self._is_over = False
        self._checkpoint: bytes | None = None

    def receive(self, frame: Word) -> Iterable[Step]:
        """Translate one event of the round into steps."""
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
        """Give the round up, since no more events can come."""
        return self.receive(Abandon(Cancelled("the round was given up")))

    def deliver(self, event: Event) -> Iterable[Step]:
        """Handle an event: feed more reports, keep the checkpoint, or end."""
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
        """Notify the round that the conversation is over, unless that was done."""
        self._finish(Cancelled("the aggregation was ended from outside"))

    def _begin(self) -> Iterable[Step]:
        self._has_begun = True
        steps: list[Step] = [self._opening]
        if self._model is not None:
            steps += (Feed(_ID, _MODEL, Message(self._model, media_type=CHECKPOINT)), EndInput(_ID, _MODEL))
        self._model = None
        return steps

    def _feed(self) -> Iterable[Step]:
        """Feed as many reports as the window allows, and end the input after the last one."""
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
        del self._hears  # the session refers to the model, which would stay until the garbage collector runs
        return (Close(),)
