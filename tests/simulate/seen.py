"""What was seen of one conversation in one world, from outside: by its caller, the counters and the log."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.core.steps import Close, Open
from invoker.errors import InvocationError
from invoker.telemetry import logs
from tests.simulate.peer import Plan
from tests.simulate.scene import Scene

NUMBER = "number"
"""The metadata by which an invocation is known to be that of a conversation."""


class Violation(AssertionError):
    """An invariant does not hold."""


class Seen:
    """One conversation in one world.

    Attributes:
        number: Which one it is in its scene.
        plan: What its caller does.
        frames: What the caller was sent.
        received: The same, for each output.
        closes: How it ended; once, if all is well.
        invocation: That it opened.
        ended: What the log line of the invocation said.
        warnings: What else was logged about it at WARNING.
        is_gone: The caller has left, or its deadline has passed.
    """

    def __init__(self, world: str, number: int, plan: Plan) -> None:
        self.world, self.number, self.plan = world, number, plan
        self.frames: list[bytes] = []
        self.received: list[list[pb.OutputFrame]] = [[] for _ in range(plan.case.outputs)]
        self.closes: list[Close] = []
        self.invocation: Invocation | None = None
        self.ended: dict[str, Any] | None = None
        self.warnings: list[str] = []
        self.is_gone = False

    @property
    def error(self) -> InvocationError | None:
        """What it ended with."""
        return self.closes[0].error

    @property
    def status(self) -> str:
        """The name of its status."""
        return "OK" if self.error is None else self.error.status.name

    @property
    def payloads(self) -> list[list[tuple[bytes, dict[str, str], str]]]:
        """What each output gave."""
        return [[(one.payload, dict(one.headers), one.contentType) for one in all_] for all_ in self.received]

    def take(self, frame: bytes) -> None:
        """Note one frame that was sent to the caller."""
        if self.closes:
            raise Violation(f"conversation {self.number} sent a frame after its end")
        data = pb.OutputSignal.FromString(frame).data
        if not 0 <= data.resultIndex < len(self.received):
            raise Violation(f"resultIndex {data.resultIndex} is none")
        if data.contentType != "application/json":
            raise Violation(f"contentType {data.contentType!r} was not asked for")
        self.frames.append(frame)
        self.received[data.resultIndex].append(data)


class Witness:
    """Keeps the last lines for a report, and what an engine tells of its conversations."""

    def __init__(self, scene: Scene, say: Callable[[str], None] | None) -> None:
        self.scene = scene
        self.trace: deque[str] = deque(maxlen=60)
        self.seen: list[Seen] = []
        self.ended: list[Invocation] = []
        self._say = say

    def watch(self, engine: Engine, seen: list[Seen]) -> None:
        """From now on it is these conversations that run, over this engine."""
        self.seen, self.ended = seen, []
        engine.on_close.append(self._closed)

    def note(self, text: str) -> None:
        """Keep a line for the report."""
        self.trace.append(f"t={time.monotonic():<6g} {text}")
        if self._say is not None:
            self._say(self.trace[-1])

    def expect(self, fact: bool, text: str) -> None:
        """Fail the run unless something holds."""
        if not fact:
            raise Violation(text)

    def report(self, text: str) -> str:
        """What is wrong, with the seed and what happened last."""
        plans = "\n".join(
            f"  {number} {one.case.name}: {len(one.frames)} frames, {one.ending.value}, reads {one.reads.value}, "
            f"deadline {one.deadline}"
            for number, one in enumerate(self.scene.plans)
        )
        lines = "\n".join(f"  {line}" for line in self.trace)
        return f"seed {self.scene.seed}: {text}\n{self.scene.limits}\nconversations:\n{plans}\nlast:\n{lines}"

    def _closed(self, invocation: Invocation) -> None:
        self.ended.append(invocation)
        number = invocation.context.metadata.get(NUMBER)
        for one in self.seen:
            if str(one.number) == number:
                self.expect(one.ended is None, f"the invocation of {number} ended twice")
                one.invocation = invocation
                one.ended = {k: v for k, v in logs.ending(invocation).items() if k not in ("invocation", "seconds")}


@contextmanager
def clocked(now: Callable[[], float]) -> Iterator[None]:
    """Within this context, ``time.monotonic`` is the world's clock."""
    with patch.object(time, "monotonic", now):
        yield


@contextmanager
def overheard(seen: list[Seen]) -> Iterator[None]:
    """What is logged as our own error is a violation; warnings are kept with the conversation."""
    found: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                found.append(logging.Formatter().format(record))
            elif record.levelno == logging.WARNING:
                for one in seen[:1]:
                    one.warnings.append(record.getMessage())

    logger, listener = logging.getLogger("invoker"), Listener()
    was_propagating = logger.propagate
    logger.addHandler(listener)
    logger.propagate = False
    try:
        yield
        if found:
            raise Violation(f"logged: {found}")
    finally:
        logger.removeHandler(listener)
        logger.propagate = was_propagating


def fill(engine: Engine, scene: Scene) -> None:
    """Take all slots, if the scene says that they are taken."""
    for _ in range(scene.slots if scene.is_full else 0):
        engine.open(Open("other", "source", ("*/*",)))
