"""A client and a driver around one session, without a loop: does the session's steps on model functions.

A request/reply function is its own model. A streaming one is a generator that yields `Take` and `Give`; one without a
model is scripted: the test says what it emits and how it finishes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.author.reader import read
from invoker.author.spec import FunctionSpec
from invoker.core.steps import (
    Cancel,
    Close,
    CloseOutput,
    Elapsed,
    Emitted,
    EndInput,
    Event,
    Feed,
    Fetch,
    Fetched,
    Finished,
    Open,
    OutputEnded,
    Send,
    Step,
    Timer,
    Wants,
)
from invoker.errors import InvocationError, Status
from invoker.message import Message
from invoker.protocols.evergreen.extensions import Extensions
from invoker.protocols.evergreen.options import Nodes
from invoker.protocols.evergreen.session import EvergreenSession
from invoker.protocols.evergreen.settings import EvergreenSettings
from tests.protocols.evergreen.models import Give, Take, mapped, message_of
from tests.protocols.evergreen.notation import PREFIXES, M, Sent


class Invocation:
    """One invocation of a model function."""

    def __init__(self, step: Open, model: Callable[..., Generator[Any, Any, None]] | None) -> None:
        self.open = step
        self.key = step.id
        self.queues: dict[int, deque[Message[bytes]]] = {}
        self.fed: dict[int, list[Message[bytes]]] = {}
        self.ended: set[int] = set()
        self.closed_outputs: set[int] = set()
        self.cancelled: InvocationError | None = None
        self.is_finished = False
        self.waits_for: int | None = None
        self.is_scripted = model is None
        self._body = model(self) if model is not None else None
        self._next: Any = None

    def queue(self, index: int) -> deque[Message[bytes]]:
        """Messages that the function has not taken."""
        return self.queues.setdefault(index, deque())

    def payloads(self, index: int = 0) -> list[bytes]:
        """All that an input was fed."""
        return [one.payload for one in self.fed.get(index, [])]

    def turn(self) -> Event | None:
        """Go on with the body until it gives something, waits or ends."""
        while self._body is not None and not self.is_finished:
            answer = None
            if self.waits_for is not None:
                queue = self.queue(self.waits_for)
                if not queue and self.waits_for not in self.ended:
                    return None
                answer, self.waits_for = queue.popleft() if queue else None, None
            try:
                said = self._body.send(answer)
            except StopIteration:
                return Finished(self.key)
            except InvocationError as error:
                return Finished(self.key, error)
            if isinstance(said, Take):
                self.waits_for = said.index
            elif isinstance(said, Give):
                if said.index not in self.closed_outputs:
                    return Emitted(self.key, said.index, message_of(said.value))
                if len(self.closed_outputs) >= max(1, len(self.open.accepts or ())):
                    self._body.close()
                    return Finished(self.key)
            else:
                return OutputEnded(self.key, said.index)
        return None

    def close(self) -> None:
        """It is over."""
        self.is_finished = True
        if self._body is not None:
            self._body.close()


class Conversation:
    """A client and a driver around one session.

    Args:
        functions: To serve; or their specs.
        models: By name, of streaming functions.
        extensions: As the client names them.
        clock: For lifetimes, in seconds.
        settings: Of `EvergreenSettings`.
    """

    def __init__(
        self,
        *functions: Callable[..., Any] | FunctionSpec,
        models: Mapping[str, Callable[..., Any]] | None = None,
        extensions: str = "",
        clock: Callable[[], float] | None = None,
        **settings: Any,
    ) -> None:
        self.models = dict(models or {})
        specs = [one if isinstance(one, FunctionSpec) else read(one) for one in functions]
        for one, spec in zip(functions, specs, strict=True):
            if not isinstance(one, FunctionSpec) and (model := mapped(one, spec)) is not None:
                self.models.setdefault(spec.name, model)
        self.settings = EvergreenSettings(**settings)
        metadata = {"evergreen-extensions": extensions} if extensions else {}
        self.session = EvergreenSession(specs, metadata, self.settings)  # type: ignore[arg-type]
        if clock is not None:
            names = [name.strip() for name in extensions.split(",")]
            self.session.extensions = Extensions(self.session, names, clock)
        self.sent = Sent()
        self.steps: list[Step] = []
        self.invocations: dict[str, Invocation] = {}
        self.fetches: list[Fetch] = []
        self.timer: Timer | None = None
        self.ending: Close | None = None
        self._events: deque[Event] = deque()

    # What the client does.

    def send(self, *parts: pb.NodeFragment | pb.Action) -> Conversation:
        """Send one message."""
        return self.receive(M(*parts))

    def send_each(self, *parts: pb.NodeFragment | pb.Action) -> Conversation:
        """Send each in a message of its own."""
        for part in parts:
            self.send(part)
        return self

    def receive(self, frame: bytes) -> Conversation:
        """Send bytes."""
        self._do(self.session.receive(frame))
        return self

    def half_close(self) -> Conversation:
        """Send nothing more."""
        self._do(self.session.half_close())
        return self

    # What functions and the driver tell.

    def tell(self, event: Event) -> Conversation:
        """Deliver one event."""
        self._do(self.session.deliver(event))
        return self

    def emit(self, key: str, value: Any, index: int = 0) -> Conversation:
        """A scripted function gives a value."""
        return self.tell(Emitted(key, index, message_of(value)))

    def finish(self, key: str, error: InvocationError | None = None) -> Conversation:
        """A scripted function ends."""
        self.invocations[key].close()
        return self.tell(Finished(key, error))

    def wants(self, key: str, index: int = 0, *, waits: bool = False) -> Conversation:
        """A scripted function has taken all that it was fed, and may wait for more."""
        self.invocations[key].queue(index).clear()
        return self.tell(Wants(key, index, waits))

    def fetched(self, data: bytes = b"", *, last: bool = True, error: InvocationError | None = None) -> Conversation:
        """The oldest fetch gives bytes; it is over with the last ones."""
        fetch = self.fetches[0]
        if last or error is not None:
            self.fetches.pop(0)
        return self.tell(Fetched(fetch.key, data, is_last=last or error is not None, error=error))

    def elapse(self) -> Conversation:
        """The time of the timer is over."""
        assert self.timer is not None
        self.timer = None
        return self.tell(Elapsed())

    # What came of it.

    @property
    def is_open(self) -> bool:
        """Whether the session goes on."""
        return self.ending is None

    @property
    def is_ok(self) -> bool:
        """Whether it ended with OK."""
        return self.ending is not None and self.ending.error is None

    def texts(self, id: str) -> list[str]:
        """Leaves of an output as text."""
        return self.sent.texts(id)

    def fails(self, kind: str, detail: str = "", *, status: Status | None = None) -> InvocationError:
        """The session ended with this kind of table 0.1, and ``detail`` (a pattern) in its text."""
        assert self.ending is not None, "the session is still open"
        error = self.ending.error
        assert error is not None, "the session ended with OK"
        expected, prefix = PREFIXES[kind]
        assert (error.status, str(error)[: len(prefix)]) == (status or expected, prefix), str(error)
        with pytest.raises(InvocationError, match=detail or None):
            raise error
        return error

    # The driver.

    def _do(self, steps: Sequence[Step]) -> None:
        self._perform(steps)
        while self._events or self._turn():
            if self._events:
                self._perform(self.session.deliver(self._events.popleft()))

    def _turn(self) -> bool:
        """Let each function go on once; whether anything came of it."""
        if self.ending is not None:
            return False
        for one in list(self.invocations.values()):
            if not one.is_finished and (event := one.turn()) is not None:
                one.is_finished = one.is_finished or isinstance(event, Finished)
                self._events.append(event)
        return bool(self._events) or self._ask_for_more()

    def _ask_for_more(self) -> bool:
        for key, index in sorted(self.session.stalled):
            one = self.invocations[key]
            if not one.is_scripted and len(one.queue(index)) <= self.settings.window // 2:
                self._events.append(Wants(key, index))
        if self._events or not self.session.is_half_closed:
            return bool(self._events)
        before = len(self.steps)
        for one in list(self.invocations.values()):
            if not one.is_finished and one.waits_for is not None and self.ending is None:
                self._perform(self.session.deliver(Wants(one.key, one.waits_for, waits=True)))
        return len(self.steps) > before

    def _perform(self, steps: Sequence[Step]) -> None:
        for step in steps:
            assert self.ending is None, f"{step} after the session was closed"
            self.steps.append(step)
            if isinstance(step, Send):
                self.sent.take(step.frame)
            elif isinstance(step, Open):
                assert step.id not in self.invocations, f"{step.id} was opened twice"
                self.invocations[step.id] = Invocation(step, self.models.get(step.function))
            elif isinstance(step, Fetch):
                self.fetches.append(step)
            elif isinstance(step, Timer):
                self.timer = step
            elif isinstance(step, Close):
                self.ending = step
            else:
                self._command(step)

    def _command(self, step: Step) -> None:
        one = self.invocations[step.id]  # type: ignore[union-attr]
        if isinstance(step, Feed):
            assert step.index not in one.ended, f"{step.id}: input {step.index} is fed after its end"
            one.queue(step.index).append(step.message)
            one.fed.setdefault(step.index, []).append(step.message)
        elif isinstance(step, EndInput):
            assert step.index >= 0, "inputs are ended one by one"
            assert step.index not in one.ended, f"{step.id}: input {step.index} is ended twice"
            one.ended.add(step.index)
        elif isinstance(step, CloseOutput):
            one.closed_outputs.add(step.index)
        elif isinstance(step, Cancel):
            if not one.is_finished:
                one.cancelled = step.error
                one.close()
                self._events.append(Finished(step.id, step.error))
        else:
            raise AssertionError(f"{step} is no step of this session")


def spec_of(function: Callable[..., Any], **changes: Any) -> FunctionSpec:
    """A function's spec with the option of its outputs: ``retain=False``, ``sequence=True``."""
    return replace(read(function), options={Nodes: Nodes(**changes)})
