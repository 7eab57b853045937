"""Writes down what a session is given and which steps it answers with.

A trace is made of scenarios; each begins with its name in brackets. A line with ``>`` is what the session is given,
the
lines with ``<`` below it are its steps in their order, and ``!`` is the error that it raised instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from invoker.core.steps import Cancel, Close, Event, Finished, Open, Send
from invoker.errors import InvocationError
from tests.golden.text import Reads, show

HALF_CLOSE = "the peer half-closes"
"""An act of `play`."""


class Trace:
    """The lines of one scenario."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        """Add a line, which a scenario may do, too, to tell what it looks at besides steps."""
        text = line.replace("\n", "\\n")
        self.lines.append(text.encode(errors="backslashreplace").decode())

    def shown(self, value: Any) -> str:
        """The text of a value that no step carries."""
        return show(value)

    def session(
        self, session: Any, *, reads: Reads | None = None, writes: Reads | None = None, trailers: Reads | None = None
    ) -> Recorded:
        """A session that is recorded here.

        Args:
            session: Any session.
            reads: Makes what the peer sends readable.
            writes: Makes what the session sends readable.
            trailers: Makes the trailers of its end readable.
        """
        return Recorded(session, self, reads, writes, trailers)


Scenario = Callable[[Trace], None]
"""Plays one conversation, or some that belong together."""


class Recorded:
    """Stands for a session: hands everything on, and writes it down."""

    def __init__(
        self, session: Any, trace: Trace, reads: Reads | None, writes: Reads | None, trailers: Reads | None
    ) -> None:
        self.__dict__.update(_session=session, _trace=trace, _reads=reads, _writes=writes, _trailers=trailers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._session, name, value)

    def begin(self) -> Sequence[Any]:
        """Of sessions that speak first."""
        return self._noted("begin", self._session.begin)

    def receive(self, frame: Any) -> Sequence[Any]:
        return self._noted(f"frame {show(frame, self._reads)}", self._session.receive, frame)

    def half_close(self) -> Sequence[Any]:
        return self._noted("half-close", self._session.half_close)

    def deliver(self, event: Any) -> Sequence[Any]:
        return self._noted(f"event {show(event)}", self._session.deliver, event)

    def _noted(self, what: str, method: Callable[..., Iterable[Any]], *given: Any) -> Sequence[Any]:
        self._trace.write(f"> {what}")
        steps: list[Any] = []
        try:
            for step in method(*given):
                steps.append(step)
                self._trace.write(f"  < {self._shown(step)}")
        except InvocationError as error:
            self._trace.write(f"  ! {show(error)}")
            raise
        return tuple(steps)

    def _shown(self, step: Any) -> str:
        if isinstance(step, Close) and step.trailers and self._trailers is not None:
            read = [f"{name}: {show(value, self._trailers)}" for name, value in step.trailers]
            return f"Close(error={show(step.error)}, trailers=[{', '.join(read)}])"
        if isinstance(step, Send) and self._writes is not None:
            frame = step.frame
            if isinstance(frame, bytes):
                return f"Send(frame={show(frame, self._writes)})"
            return f"Send(frame={show(self._writes(frame))})"
        return show(step)


def play(session: Any, acts: Iterable[Any]) -> None:
    """Give a session frames and events, as a driver would.

    Args:
        session: A recorded one.
        acts: Events are delivered, `HALF_CLOSE` is the end of the frames, a callable is called with the session, and
            everything else is a frame. An error ends what runs, and so does a step that cancels it.
    """
    running: list[str] = []
    for act in acts:
        try:
            steps = _given(session, act)
        except InvocationError as error:
            _end(session, running, error)
            continue
        running += [step.id for step in steps if isinstance(step, Open)]
        for step in steps:
            if isinstance(step, Cancel):
                _end(session, [step.id], step.error)


def _given(session: Any, act: Any) -> Sequence[Any]:
    if isinstance(act, Event):
        return session.deliver(act)  # type: ignore[no-any-return]
    if act is HALF_CLOSE:
        return session.half_close()  # type: ignore[no-any-return]
    if callable(act):
        return act(session) or ()
    return session.receive(act)  # type: ignore[no-any-return]


def _end(session: Any, running: list[str], error: InvocationError) -> None:
    for id in running:
        session.deliver(Finished(id, error))
    running.clear()
