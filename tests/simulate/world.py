"""The scheduler: who takes the next step, what callers do, and what must hold after each step."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.core.streams import Limits
from invoker.errors import Cancelled, DeadlineExceeded, InvocationError, ShuttingDown
from tests.simulate import verdict
from tests.simulate.bodies import FUNCTIONS
from tests.simulate.model import Conversation
from tests.simulate.peer import Ending, Reads, draw_plan
from tests.simulate.tasks import Task
from tests.simulate.verdict import Violation

__all__ = ["World", "simulate"]

_REGISTRY = builtin()
_MOST_STEPS = 20_000


def simulate(seed: int, *, say: Callable[[str], None] | None = None) -> World:
    """Run one seed to its end.

    Args:
        seed: Decides everything.
        say: Is told each step.

    Raises:
        Violation: An invariant does not hold; the text names the seed and the last steps.
    """
    world = World(seed, say)
    try:
        world.run()
    except Violation as error:
        raise Violation(world.report(str(error))) from None
    except Exception as error:
        raise Violation(world.report(f"{type(error).__name__}: {error}")) from error
    finally:
        world.discard()
    return world


class World:
    """One run: an engine, some conversations, their tasks, and virtual time."""

    def __init__(self, seed: int, say: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.random = random = Random(seed)
        self.now = 0
        self.steps = 0
        self.tasks: list[Task] = []
        self.timers: list[tuple[int, Callable[[], None]]] = []
        self.trace: deque[str] = deque(maxlen=40)
        self._say = say
        high_frames, high_bytes = random.randrange(1, 7), random.choice((40, 200, 100_000))
        self.is_tight = random.random() < 0.2
        room = random.randrange(3) if self.is_tight else 1_000
        limits = Limits(high_frames, high_bytes, high_frames + room, high_bytes + (60 if self.is_tight else 100_000))
        self.limits = limits
        self.is_crowded = random.random() < 0.2
        self.engine = Engine(
            Catalog(FUNCTIONS),
            _REGISTRY,
            limits=limits,
            max_invocations=random.randrange(1, 3) if self.is_crowded else 0,
        )
        self.ended: list[Invocation] = []
        self.engine.on_close.append(self.ended.append)
        self._eagerness = random.choice((0.1, 0.5, 0.9))  # how often a caller comes before a task
        self.conversations = [
            Conversation(self, number, draw_plan(random, number)) for number in range(random.randrange(1, 4))
        ]
        self.is_draining = random.random() < 0.1
        if self.is_draining:
            self.at(random.randrange(10), self._drain)
            self.at(random.randrange(10, 30), self._cut)
        for one in self.conversations:
            if one.plan.deadline is not None:
                self.at(one.plan.deadline, lambda one=one: self._expire(one))  # type: ignore[misc]

    # What the model asks for.

    def start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> Task:
        """Add a task."""
        task = Task(name, coroutine)
        self.tasks.append(task)
        return task

    def at(self, ticks: int, callback: Callable[[], None]) -> None:
        """Do something later."""
        self.timers.append((self.now + ticks, callback))

    def note(self, text: str) -> None:
        """Keep a line for the report."""
        self.trace.append(f"{self.steps:5} t={self.now:<3} {text}")
        if self._say is not None:
            self._say(self.trace[-1])

    def expect(self, fact: bool, text: str) -> None:
        """Fail the run unless something holds."""
        if not fact:
            raise Violation(text)

    def check_reading(self, invocation: Invocation) -> None:
        """A frame is about to be read although nobody said how full the inputs are: look for ourselves."""
        self.expect(*verdict.may_read(invocation, self.limits))

    def check_written(self, conversation: Conversation, frame: bytes) -> None:
        """What goes to the wire was produced, by this invocation, on this output, in this order."""
        runner, data = conversation.opened, pb.OutputSignal.FromString(frame).data
        self.expect(runner is not None, "a frame before the start signal was processed")
        assert runner is not None
        self.expect(0 <= data.resultIndex < len(conversation.received), f"resultIndex {data.resultIndex} is none")
        self.expect(data.contentType == "application/json", f"contentType {data.contentType!r} was not asked for")
        produced, received = runner.produced[data.resultIndex], conversation.received[data.resultIndex]
        at = len(received)
        self.expect(
            at < len(produced) and produced[at] == data.payload, f"output {data.resultIndex} sent {data.payload!r}"
        )
        received.append(data.payload)

    # The run.

    def run(self) -> None:
        """Take steps until nothing is left to do; then everything must be over."""
        while self.steps < _MOST_STEPS:
            self.steps += 1
            if not self._step():
                verdict.at_the_end(self)
                return
            for one in self.conversations:
                verdict.at_each_step(self, one)
            self.expect(
                set(self.engine.running)
                == {one.opened.invocation.id for one in self.conversations if one.opened and one.runner},
                "engine.running is not what runs",
            )
        raise Violation(f"it goes on after {_MOST_STEPS} steps")

    def _step(self) -> bool:
        random = self.random
        deeds = self._deeds()
        ready = [task for task in self.tasks if task.is_ready(self.now)]
        later = [task.wakes_at for task in self.tasks if task.wakes_at is not None and task.wakes_at > self.now]
        later += [at for at, _ in self.timers]
        if later and not (deeds or ready):
            self._tick(min(later))
        elif later and random.random() < 0.05:
            self._tick(self.now + 1)
        elif deeds and (not ready or random.random() < self._eagerness):
            random.choice(deeds)()
        elif ready:
            task = self.current = random.choice(ready)
            self.note(task.name)
            task.step(self.now)
            if task.is_done:
                self.tasks.remove(task)
        else:
            return False
        return True

    def _tick(self, until: int) -> None:
        self.now = max(self.now, until)
        due = [timer for timer in self.timers if timer[0] <= self.now]
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        self.note(f"tick, {len(due)} timers")
        for _, callback in due:
            callback()

    # What callers and operators do.

    def _deeds(self) -> list[Callable[[], None]]:
        deeds: list[Callable[[], None]] = []
        for one in self.conversations:
            plan = one.plan
            has_ended = one.is_half_closed or one.broken is not None or plan.ending is Ending.SILENCE
            has_sent = one.sent == len(plan.frames)
            if one.outbox and (plan.reads is Reads.ALWAYS or (plan.reads is Reads.LATE and has_sent and has_ended)):
                deeds.append(lambda one=one: self._receive(one))  # type: ignore[misc]
            if one.is_over:
                continue
            if not has_sent and len(one.inbox) < plan.window:
                deeds.append(lambda one=one: self._send(one))  # type: ignore[misc]
            elif has_sent and not has_ended:
                deeds.append(lambda one=one: self._end(one))  # type: ignore[misc]
        return deeds

    def _send(self, one: Conversation) -> None:
        one.inbox.append(one.plan.frames[one.sent])
        one.sent += 1
        self.note(f"caller {one.number} sends frame {one.sent} of {len(one.plan.frames)}")

    def _receive(self, one: Conversation) -> None:
        one.outbox.popleft()
        self.note(f"caller {one.number} reads")

    def _end(self, one: Conversation) -> None:
        self.note(f"caller {one.number} {one.plan.ending.value}")
        if one.plan.ending is Ending.HALF_CLOSE:
            one.is_half_closed = True
        elif one.plan.ending is Ending.BREAK:
            one.broken = Cancelled("the caller's stream broke")
        else:
            one.is_abandoned = True

    def _expire(self, one: Conversation) -> None:
        self._fail(one, DeadlineExceeded("the deadline has passed"))

    def _drain(self) -> None:
        self.engine.is_draining = True

    def _cut(self) -> None:
        for one in self.conversations:
            self._fail(one, ShuttingDown("cut"))

    def _fail(self, one: Conversation, error: InvocationError) -> None:
        if not one.is_over:
            self.start(f"fail {one.number} {error.status.name}", one.fail_all(error))

    # The report.

    def statuses(self) -> Counter[str]:
        """How the conversations ended."""
        return Counter(
            "abandoned" if not one.closes else one.closes[0].status.name if one.closes[0] else "OK"
            for one in self.conversations
        )

    def report(self, text: str) -> str:
        """What is wrong, with the seed and the last steps."""
        plans = "\n".join(
            f"  {one.number} {one.plan.case.name}: {len(one.plan.frames)} frames, {one.plan.ending.value}, "
            f"reads {one.plan.reads.value}, deadline {one.plan.deadline}, {'queued' if one.plan.is_queued else 'direct'}"  # noqa: E501
            for one in self.conversations
        )
        steps = "\n".join(f"  {line}" for line in self.trace)
        return (
            f"seed {self.seed}, step {self.steps}: {text}\n{self.limits}\nconversations:\n{plans}\nlast steps:\n{steps}"
        )

    def discard(self) -> None:
        """Close what a failed run has left."""
        for task in self.tasks:
            task.discard()
