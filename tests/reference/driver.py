"""The reference driver: what a conversation means, whoever drives it; slow and plain.

Theory. A *script* is all that a peer does: frames, and happenings between them. `Reference` applies it to a session,
and the session's steps to invocations, as every driver must. Before each frame bodies run until each waits for an input
that is empty. A driver may also read ahead of them: then they have given only so many values when the next frame comes,
``most`` of them since the last `CUT`. Every ``most`` is one schedule, and what a peer hears of a real driver is what it
hears by some schedule; see `tests.reference.allowed`.
"""

from __future__ import annotations

import enum
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.core.session import Session
from invoker.core.steps import (
    Cancel,
    Close,
    CloseOutput,
    Elapsed,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Open,
    Send,
    Timer,
)
from invoker.errors import Cancelled, DeadlineExceeded, InternalError, InvocationError
from tests.reference.bodies import Run, Strand


class Happening(enum.Enum):
    """What a peer does besides sending frames."""

    CUT = "it sends nothing more until nothing moves any more, and all timers have elapsed"
    HALF_CLOSE = "its frames end"
    CANCEL = "it is gone"
    DEADLINE = "its deadline passes"


CUT, HALF_CLOSE, CANCEL, DEADLINE = Happening


@dataclass
class Heard:
    """What the peer hears of one conversation.

    Attributes:
        frames: In the order in which they were sent.
        close: How it ended; nothing follows that.
        cuts: At each cut, how many frames there were, and whether it was over.
        values: How many values the bodies gave, although it may not hear all of them.
    """

    frames: list[Any] = field(default_factory=list)
    close: Close | None = None
    cuts: list[tuple[int, bool]] = field(default_factory=list)
    values: int = 0


class Reference:
    """One conversation.

    Args:
        session: Translates.
        engine: Admits what the session opens.
        most: How many values bodies give between two cuts before the rest of the frames has come; None: all.
        is_reversed: Whether the last of several outputs goes on first, instead of the first one.
        is_storing: Whether the session says by its `Open` that the body may begin, as those do that store what comes.

    Attributes:
        given: How many values bodies have given since the last cut.
    """

    def __init__(
        self,
        session: Session,
        engine: Engine,
        *,
        most: int | None = None,
        is_reversed: bool = False,
        is_storing: bool = False,
    ) -> None:
        self.session, self.engine, self.heard = session, engine, Heard()
        self.given = 0
        self._most, self._is_reversed, self._is_storing = most, is_reversed, is_storing
        self._has_timer = self._is_quiet = False
        self._runs: dict[str, Run] = {}
        self._strands: list[Strand] = []

    def run(self, script: Iterable[Any]) -> Heard:
        """Do all that the peer does, and return what it hears."""
        for what in script:
            if what is CUT:
                self._let_time_pass()
                self.heard.cuts.append((len(self.heard.frames), self.heard.close is not None))
                continue
            self._let_run()
            if self.heard.close is None:
                self._happens(what)
        self._let_time_pass()
        assert self.heard.close is not None, "the conversation does not end"
        assert all(one.is_done for one in self._strands), "a function does not leave"
        return self.heard

    def _happens(self, what: Any) -> None:
        try:
            if what is CANCEL:
                self._leave(Cancelled("the peer cancelled, or is gone"))
            elif what is DEADLINE:
                self._leave(DeadlineExceeded("the deadline has passed"))
            else:
                steps = self.session.half_close() if what is HALF_CLOSE else self.session.receive(what)
                for step in steps:
                    self._perform(step)
                self._begin()
        except InvocationError as error:
            for run in list(self._runs.values()):
                self.finish(run.invocation, error)
            self._leave(error)
        except Exception:  # a session has failed
            self._leave(InternalError())

    def _perform(self, step: Any) -> None:
        run = self._runs.get(getattr(step, "id", ""))
        if isinstance(step, Send):
            assert self.heard.close is None, "a frame behind the end"
            self.heard.frames.append(step.frame)
        elif isinstance(step, Open):
            self._open(step)
        elif isinstance(step, Close):
            self._leave(Cancelled("the conversation is over"), step)
        elif isinstance(step, Timer):
            self._has_timer = True
        elif run is None or run.invocation.is_finished:
            return
        elif isinstance(step, Cancel):
            self.finish(run.invocation, step.error)
        elif isinstance(step, CloseOutput):
            run.invocation.close_output(step.index)
        else:
            assert isinstance(step, (Feed, EndInput)), f"the reference cannot do {step}"
            try:
                (run.invocation.feed if isinstance(step, Feed) else run.invocation.end_inputs)(step)
            except InvocationError as error:
                self.finish(run.invocation, error)

    def _open(self, step: Open) -> None:
        try:
            invocation = self.engine.open(step)
        except InvocationError as error:
            self.deliver(Finished(step.id, error))
        else:
            self._runs[step.id] = Run(self, invocation)

    def deliver(self, event: Event) -> None:
        """Tell the session an event, and do what it says to that."""
        self.given += isinstance(event, Emitted)
        self.heard.values += isinstance(event, Emitted)
        if self.heard.close is None:
            for step in self.session.deliver(event):
                self._perform(step)

    # Bodies.

    def _begin(self) -> None:
        for run in list(self._runs.values()):
            if run.has_begun or run.invocation.is_finished:
                continue
            if not self._is_storing and not run.invocation.may_begin():
                continue
            run.has_begun = True
            if run.invocation.got_nothing:
                self.finish(run.invocation, None)
            else:
                self.add(run.work())

    def add(self, work: Coroutine[Any, Any, None]) -> None:
        """Have one more strand."""
        self._strands.append(Strand(work))

    def is_held(self) -> bool:
        """Whether bodies have given as many values as they may before the next cut."""
        return self._most is not None and self.given >= self._most and not self._is_quiet

    def _let_run(self) -> None:
        """Let every body run until each waits."""
        while ready := [one for one in self._strands if one.is_ready and not self.is_held()]:
            ready[-1 if self._is_reversed else 0].go_on()

    def _let_time_pass(self) -> None:
        self._is_quiet = True
        self._let_run()
        if self._has_timer:
            self.deliver(Elapsed())
        for run in self._runs.values():
            run.invocation.is_settled = run.invocation.is_settled or run.invocation.patience_s is not None
        self._begin()
        self._let_run()
        self._is_quiet, self.given = False, 0

    # Endings.

    def finish(self, invocation: Invocation, error: InvocationError | None) -> None:
        """End one invocation, unless it has ended, and tell the session."""
        if invocation.finish(error):
            self.engine.close(invocation)
            self.deliver(Finished(invocation.key, error))

    def _leave(self, error: InvocationError, close: Close | None = None) -> None:
        """End the conversation, and what is left of its invocations, of which the session is not told."""
        self.heard.close = self.heard.close or close or Close(error)
        for run in self._runs.values():
            if run.invocation.finish(error):
                self.engine.close(run.invocation)
