"""`ChildSession`: the pipe as a protocol, at the child's end. Pure, like every session: frames in, steps out.

The serving process sends what fits into a window and learns by `Wants` how much was taken. So a function that reads one
input to its end before another one never blocks the pipe: messages for which the child has no room wait in the serving
process, which has the budget of the invocation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from invoker.core.steps import (
    Cancel,
    CloseOutput,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Open,
    OutputEnded,
    Send,
    Step,
    Wants,
)
from invoker.errors import Cancelled, InvocationError, LimitExceeded
from invoker.execution.isolation.frames import (
    MOST_BYTES,
    Begin,
    End,
    Gave,
    Give,
    Over,
    Shut,
    Stop,
    ToChild,
    packed,
    unpacked,
)
from invoker.execution.isolation.frames import Wants as WantsFrame
from invoker.message import as_headers

WINDOW = 64
"""Messages that an input of a child may hold."""


class ChildSession:
    """Translates the frames of the serving process into steps on the one running invocation.

    Args:
        scope: The scope that functions reach over the pipe.
        configs: Makes the configs of a context from those that came.
        done: Called with the ending of an invocation; reports it to the serving process.

    Attributes:
        key: The key of the invocation that runs; empty when there is none.
        begun: The frame with which the invocation began.
    """

    headers: tuple[tuple[str, str], ...] = ()
    hears_waits = True
    is_full = False
    held = 0

    def __init__(
        self,
        scope: Any,
        configs: Callable[[list[Any]], tuple[Any, ...]],
        done: Callable[[InvocationError | None], None],
    ) -> None:
        self.stalled: set[tuple[str, int]] = set()
        self.key = ""
        self.begun: Begin | None = None
        self._scope = scope
        self._configs = configs
        self._done = done
        self._given: dict[int, int] = {}
        self._told: dict[int, tuple[int, bool]] = {}

    def receive(self, frame: ToChild) -> Sequence[Step]:
        """Translate one frame of the serving process into steps."""
        key = self.key
        if isinstance(frame, Begin):
            self.key, self.begun = frame.id, frame
            self._scope.carries = frame.carries
            self._given.clear()
            self._told.clear()
            self.stalled.clear()
            given = [step for one in frame.given for step in self._gave(one)]
            return (self._opened(frame), *given, *(EndInput(frame.id, index) for index in frame.ended))
        if not key:
            return ()  # it crossed the ending of its invocation
        if isinstance(frame, Give):
            return self._gave(frame)
        if isinstance(frame, End):
            return (EndInput(key, frame.index),)
        if isinstance(frame, Shut):
            return (CloseOutput(key, frame.index),)
        assert isinstance(frame, Stop)
        return (Cancel(key, Cancelled("the invocation is over")),)

    def half_close(self) -> Sequence[Step]:
        """Do nothing: the serving process is gone, and the child's program ends."""
        return ()

    def deliver(self, event: Event) -> Sequence[Step]:
        """Translate an event of the invocation."""
        if isinstance(event, Emitted):
            size = len(event.message.payload)
            if size > MOST_BYTES:
                text = f"the function gave {size} bytes at once, which exceeds the limit of {MOST_BYTES} bytes"
                return (Cancel(self.key, LimitExceeded(text)),)
            return (Send(Gave(event.index, packed(event.message))),)
        if isinstance(event, Wants):
            return self._wants(event)
        if isinstance(event, OutputEnded):
            return (Send(Over(event.index)),)
        assert isinstance(event, Finished)
        self.key = ""
        self.stalled.clear()
        self._done(event.error)
        return ()

    def release(self) -> None:
        """Do nothing: the session holds nothing."""

    def _gave(self, frame: Give) -> Sequence[Step]:
        self._given[frame.index] = self._given.get(frame.index, 0) + 1
        self.stalled.add((self.key, frame.index))
        return (Feed(self.key, frame.index, unpacked(frame.message)),)

    def _opened(self, frame: Begin) -> Open:
        return Open(
            frame.id,
            frame.function,
            frame.accepts,
            frame.input_names,
            frame.output_names,
            as_headers(frame.metadata),
            frame.bound,
            frame.terms,
            frame.unwanted,
            self._configs(frame.configs),
            scope=self._scope,
        )

    def _wants(self, event: Wants) -> Sequence[Step]:
        """Report how many messages were taken at least: all if the input is empty, otherwise all but half a window."""
        given = self._given.get(event.index, 0)
        told = (given if event.waits else max(0, given - WINDOW // 2), event.waits)
        if not event.waits:
            self.stalled.discard((event.id, event.index))
        if self._told.get(event.index) == told:
            return ()
        self._told[event.index] = told
        return (Send(WantsFrame(event.index, *told)),)
