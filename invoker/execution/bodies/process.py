"""`ProcessRunner`: runs a body in a child process, which can be killed (see `invoker.execution.isolation`).

Messages of an input are sent to the child as far as its window allows: a number of messages, and of bytes. The rest
waits here, in the budget of the invocation. A reader that waits in the child counts as waiting here once nothing is on
its way to it (the starvation rule, R-129).

An ending goes to the child first, which then has the same grace as a thread to return. A child that takes longer is
killed, and nothing of the invocation remains.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from invoker.codecs.exact import ACCEPTS
from invoker.core.invocation import Invocation
from invoker.core.steps import CloseOutput, EndInput, Feed
from invoker.core.streams import InputStream
from invoker.errors import DeadlineExceeded, InvocationError, StopInvocation
from invoker.execution.bodies.runner import Host
from invoker.execution.isolation.asking import Asking
from invoker.execution.isolation.child import Child
from invoker.execution.isolation.faults import ChildDied, MemoryExceeded, raised_by
from invoker.execution.isolation.frames import (
    Asked,
    Begin,
    Done,
    End,
    FromChild,
    Gave,
    Give,
    Idle,
    Over,
    Shut,
    Stop,
    Wants,
    packed,
    unpacked,
)
from invoker.execution.isolation.pool import Children
from invoker.execution.placement import Run

log = logging.getLogger(__name__)

_WINDOW: Final = 64
_WINDOW_BYTES: Final = 1 << 20
"""The most messages and bytes of one input that may be on their way to the child, or unread there. A single larger
message is allowed."""

_LATE_S: Final = 0.5
"""Seconds that user code may take to return after its time limit before its child is killed."""


class ProcessRunner:
    """Runs one body in a child.

    Args:
        invocation: The invocation to run.
        host: The conversation it belongs to.
        children: The pool of child processes.
        grace_s: How long user code may take to return after its invocation ended.
        on_left: Called with the runner once user code has returned or was killed.
    """

    def __init__(
        self,
        invocation: Invocation,
        host: Host,
        *,
        children: Children,
        grace_s: float,
        on_left: Callable[[ProcessRunner], object],
    ) -> None:
        self.invocation = invocation
        invocation.run = Run.PROCESS
        self.host = host
        self.loop = asyncio.get_running_loop()
        self.grace_s = grace_s
        self.has_left = False
        self._children = children
        self._on_left = on_left
        self._child: Child | None = None
        self._lanes = [_Lane(stream) for stream in invocation.inputs]
        self._is_done = False
        self._grace: asyncio.TimerHandle | None = None
        self._asking: Asking | None = None

    def start(self) -> None:
        """Give the invocation to a child.

        Raises:
            Overloaded: No child is free.
        """
        child = self._children.take(self)
        if child is not None:
            self.given(child)

    def given(self, child: Child) -> None:
        """Begin the invocation in this child: send it `Begin` with the messages that have come for the inputs."""
        self._child = child
        given = [give for lane in self._lanes for give in lane.next()]
        order, context = self.invocation.order, self.invocation.context
        assert order is not None
        child.send(
            Begin(
                self.invocation.id,
                self.invocation.function.spec.name,
                context.accepts,
                order.input_names,
                order.output_names,
                order.bound,
                order.terms,
                order.unwanted,
                dict(context.metadata),
                context.deadline,
                self.invocation.function.spec.bounds.memory_bytes,
                [made for one in context.configs if (made := _config(one)) is not None],
                given,
                [lane.stream.index for lane in self._lanes if lane.ends()],
                context.scope.carries if context.scope is not None else ACCEPTS,
            )
        )
        self._relieved()

    def feed(self, command: Feed) -> None:
        """Give one message to an input."""
        self.invocation.feed(command)
        if self._child is not None and 0 <= command.index < len(self._lanes):
            self._pass_on(self._lanes[command.index])

    def end_inputs(self, command: EndInput) -> None:
        """End one or all inputs, here and in the child."""
        self.invocation.end_inputs(command)
        if self._child is not None:
            for lane in self._lanes:
                self._pass_on(lane)

    def close_output(self, command: CloseOutput) -> None:
        """Close an output that has no reader any more."""
        self.invocation.close_output(command.index)
        if self._child is not None:
            self._child.send(Shut(command.index))

    def finish(self, error: InvocationError | None) -> bool:
        """End the invocation; True for the first ending only."""
        return self.invocation.finish(error)

    def stop(self) -> None:
        """Make the body end, and kill its child if it does not."""
        if self._asking is not None:
            self._asking.close()
        if self.has_left:
            return
        if self._child is None:
            self._children.give_up(self)
            self._leave()
            return
        self._child.is_leaving = True
        if not self._is_done:
            self._child.send(Stop())
        is_late = isinstance(self.invocation.error, DeadlineExceeded)
        self._grace = self.loop.call_later(min(_LATE_S, self.grace_s) if is_late else self.grace_s, self._kill)

    # What the child reports; `Tenant`.

    def heard(self, frame: FromChild) -> Awaitable[None] | None:
        """Act on a frame of the child; returns what to await before the next frame is taken, or None."""
        if isinstance(frame, Gave):
            return self._emitted(frame)
        if isinstance(frame, Wants):
            self._wanted(frame)
        elif isinstance(frame, Over):
            self._ended(frame.index)
        elif isinstance(frame, Done):
            self._done(frame)
        elif isinstance(frame, Idle):
            self._leave(is_worn=frame.is_worn)
        elif isinstance(frame, Asked) and not self.invocation.is_finished:
            assert self._child is not None
            self._asking = self._asking or Asking(self.invocation.context, self._child.send)
            self._asking.heard(frame)
        return None

    def child_ended(self, how: str, *, lacked_memory: bool) -> None:
        """Note that the process of the child has ended before user code returned."""
        bound = self.invocation.function.spec.bounds.memory_bytes
        if not self._is_done and not self.invocation.is_finished:
            name = self.invocation.function.spec.name
            self._children.died += 1
            log.warning(
                "the process of an isolated function %s", how,
                extra={"invocation": self.invocation.id, "function": name},
            )  # fmt: skip
            died = MemoryExceeded(bound) if lacked_memory and bound else ChildDied(f"the process of '{name}' {how}")
            self.host.finished(self.invocation, died)
        self._leave()

    # Private helpers.

    def _emitted(self, frame: Gave) -> Awaitable[None] | None:
        invocation = self.invocation
        if invocation.is_finished or not 0 <= frame.index < len(invocation.outputs):
            return None
        try:
            room = self.host.emitted(invocation, frame.index, unpacked(frame.message))
        except StopInvocation:
            return None
        except InvocationError as error:  # the peer is gone
            self.host.finished(invocation, error)
            return None
        return None if room is None else self._room(room)

    async def _room(self, room: Awaitable[None]) -> None:
        try:
            await room
        except StopInvocation:
            log.debug("the invocation is over", extra={"invocation": self.invocation.id})
        except InvocationError as error:  # the peer is gone
            self.host.finished(self.invocation, error)

    def _ended(self, index: int) -> None:
        if 0 <= index < len(self.invocation.outputs) and not self.invocation.is_finished:
            self.invocation.outputs[index].is_ended = True
            self.host.ended(self.invocation, index)

    def _wanted(self, frame: Wants) -> None:
        if not 0 <= frame.index < len(self._lanes) or self.invocation.is_finished:
            return
        lane = self._lanes[frame.index]
        lane.took(frame.taken)
        lane.waits = frame.waits
        self._pass_on(lane)
        if lane.stream.waiters and (self.host.is_paused or self.host.hears_waits):
            self.host.resume()

    def _pass_on(self, lane: _Lane) -> None:
        """Give the child the messages that it has room for, and the end after the last one."""
        assert self._child is not None
        for give in lane.next():
            self._child.send(give)
        if lane.ends():
            self._child.send(End(lane.stream.index))
        lane.look()
        self._relieved()

    def _relieved(self) -> None:
        if self.host.is_paused and self.invocation.budget.is_low:
            self.host.resume()

    def _done(self, frame: Done) -> None:
        self._is_done = True
        fault, bounds = frame.fault, self.invocation.function.spec.bounds
        self.invocation.cpu_ns, self.invocation.memory_bytes = frame.cpu_ns, frame.memory_bytes
        if fault is None:
            self.host.finished(self.invocation, None)
            return
        is_memory = fault.name == MemoryExceeded.__name__
        self.host.finished(self.invocation, MemoryExceeded(bounds.memory_bytes) if is_memory else raised_by(fault))

    def _kill(self) -> None:
        if self._child is not None:
            log.warning(
                "an isolated function ignores that its invocation ended; its process is killed",
                extra={"invocation": self.invocation.id, "function": self.invocation.function.spec.name},
            )
            self._child.kill()

    def _leave(self, *, is_worn: bool = False) -> None:
        if self.has_left:
            return
        self.has_left = True
        if self._grace is not None:
            self._grace.cancel()
        if self._child is not None:
            self._children.left(self._child, is_worn=is_worn)
        self.invocation.context.release()
        self._on_left(self)


class _Lane:
    """The messages of one input that are on their way to the child, or unread there.

    Args:
        stream: The messages that the input was fed.

    Attributes:
        waits: Whether the function in the child has found this input empty and waits for a message.
    """

    def __init__(self, stream: InputStream) -> None:
        self.stream = stream
        self.waits = False
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._sent = 0
        self._is_over = False

    def next(self) -> list[Give]:
        """Take the messages that fit into the child's window now."""
        found: list[Give] = []
        stream, sizes = self.stream, self._sizes
        while stream.queue and len(sizes) < _WINDOW and (not sizes or self._bytes < _WINDOW_BYTES):
            item = stream.take()
            assert item is not None
            message = item[1]
            sizes.append(len(message.payload))
            self._bytes += len(message.payload)
            self._sent += 1
            found.append(Give(stream.index, packed(message)))
        return found

    def ends(self) -> bool:
        """Whether the end of the input is to be sent now; returns True only once."""
        if self._is_over or self.stream.queue or not self.stream.is_ended or self.stream.error is not None:
            return False
        self._is_over = True
        return True

    def took(self, count: int) -> None:
        """Note that the child has taken at least ``count`` of the messages that were sent."""
        while self._sizes and self._sent - len(self._sizes) < count:
            self._bytes -= self._sizes.popleft()

    def look(self) -> None:
        """Note whether the function waits for a message that has not come."""
        self.stream.waiters = int(self.waits and not self._sizes and not self.stream.queue and not self._is_over)


def _config(one: Any) -> Any:
    """Convert a config to its form on the pipe; None for a config that only this process can use."""
    if isinstance(one, dict):
        return one
    if isinstance(getattr(one, "type_url", None), str) and isinstance(getattr(one, "value", None), bytes):
        return [one.type_url, one.value, f"{type(one).__module__}:{type(one).__qualname__}"]
    return None
