"""What must hold: after each step, and at the end."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from invoker.core.invocation import Invocation
from invoker.core.streams import Limits
from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    InvocationError,
    LimitExceeded,
    Overloaded,
    ShuttingDown,
)
from tests.simulate.peer import Ending, Reads

if TYPE_CHECKING:
    from tests.simulate.model import Conversation, Runner
    from tests.simulate.world import World

__all__ = ["Violation", "at_each_step", "at_the_end", "may_read"]


class Violation(AssertionError):
    """An invariant does not hold."""


def may_read(invocation: Invocation, limits: Limits) -> tuple[bool, str]:
    """Whether a frame may be read: below the mark, or a reader waits on an empty, open input, or all is over."""
    held = [len(message.payload) for stream in invocation.inputs for _, message in stream.queue]
    is_starving = any(one.waiters and not one.queue and not one.is_ended for one in invocation.inputs)
    is_low = len(held) < limits.high_frames and sum(held) < limits.high_bytes
    return invocation.is_finished or is_starving or is_low, f"reading goes on above the mark with {len(held)} frames"


def at_each_step(world: World, one: Conversation) -> None:
    """The invariants of one conversation."""
    expect = world.expect
    expect(len(one.closes) <= 1, f"conversation {one.number} closed {len(one.closes)} times")
    expect(one.endings <= 1, f"conversation {one.number} had {one.endings} first endings")
    if one.written_at_close is not None:
        expect(len(one.written) == one.written_at_close, f"conversation {one.number} sent a frame after its end")
    expect(one.fed == one.plan.data[: len(one.fed)], f"the session of {one.number} fed what was not sent")
    if one.opened is not None:
        _check_budget(world, one.opened.invocation)
        _check_queues(world, one.opened)


def _check_budget(world: World, invocation: Invocation) -> None:
    budget, limits = invocation.budget, world.limits
    held = [len(message.payload) for stream in invocation.inputs for _, message in stream.queue]
    world.expect(budget.frames == len(held), f"budget counts {budget.frames} frames, {len(held)} are queued")
    world.expect(budget.bytes == sum(held), f"budget counts {budget.bytes} bytes, {sum(held)} are queued")
    world.expect(
        len(held) <= limits.hard_frames and sum(held) <= limits.hard_bytes,
        f"{len(held)} frames with {sum(held)} bytes are above the hard cap",
    )


def _check_queues(world: World, runner: Runner) -> None:
    """What was accepted is what was taken, then what is queued: nothing lost, doubled or out of order."""
    if runner.invocation.is_finished:
        world.expect(not any(stream.queue for stream in runner.invocation.inputs), "an ended invocation holds input")
        return
    for stream, port, accepted in zip(runner.invocation.inputs, runner.inputs, runner.accepted, strict=True):
        queued = [message.payload for _, message in stream.queue]
        world.expect(
            accepted[port.taken :] == queued,
            f"input {stream.index}: {port.taken} of {len(accepted)} messages were taken, and {queued} are queued",
        )


def at_the_end(world: World) -> None:
    """Nothing can go on: then everything is over, released, counted, and as it should be."""
    left = [task.name for task in world.tasks]
    for one in world.conversations:
        world.expect(one.is_over, f"conversation {one.number} is stuck; waiting: {left}")
    world.expect(not left, f"tasks are left: {left}")
    world.expect(not world.engine.running, f"invocations are left: {list(world.engine.running)}")
    opened = [one.opened for one in world.conversations if one.opened is not None]
    counters = world.engine.counters
    world.expect(counters.opened == len(opened) == len(world.ended), f"{len(opened)} opened: {counters}")
    world.expect(sum(counters.finished.values()) == counters.opened, f"opened and finished disagree: {counters}")
    world.expect(counters.frames_in == sum(len(all_) for one in opened for all_ in one.accepted), f"{counters}")
    for runner in opened:
        alive = [values for values in runner.begun if getattr(values, "ag_frame", None) is not None]
        world.expect(not alive, f"generators are left: {alive}")
    for one in world.conversations:
        _check_ending(world, one)
        _check_outputs(world, one)


def _check_ending(world: World, one: Conversation) -> None:
    if not one.closes:
        world.expect(one.is_abandoned, f"conversation {one.number} ended without a word")
        return
    error = one.closes[0]
    if one.opened is not None and not one.is_abandoned:
        world.expect(error is one.opened.invocation.error, f"{one.number} told {error!r}, not its first ending")
    world.expect(error is one.first_error, f"{one.number} told {error!r}, but first was {one.first_error!r}")
    allowed = _allowed(world, one)
    world.expect(type(error) in allowed, f"{one.number} ended with {error!r}; possible are {allowed}")


def _allowed(world: World, one: Conversation) -> set[type[Any]]:
    """How a conversation may end, given all that went wrong around it."""
    plan = one.plan
    allowed: set[type[Any]] = set(plan.faults)
    causes: list[tuple[bool, type[InvocationError]]] = [
        (plan.deadline is not None, DeadlineExceeded),
        (plan.ending in {Ending.BREAK, Ending.ABANDON}, Cancelled),
        (world.is_draining, ShuttingDown),
        (world.is_tight, LimitExceeded),
        (world.is_crowded, Overloaded),
    ]
    allowed.update(error for is_there, error in causes if is_there)
    return allowed | {type(None) if plan.case.error is None else plan.case.error}


def _check_outputs(world: World, one: Conversation) -> None:
    """A good end has everything; any other has what was before it, in order."""
    plan = one.plan
    received = [[json.loads(payload) for payload in output] for output in one.received]
    is_good = one.closes == [None] and not one.is_abandoned
    if plan.case.expected is None:
        for output in received:
            world.expect(_is_in_order(output, plan.values[0]), f"outputs of {one.number} are out of order: {output}")
        both = sorted(itertools.chain(*received))
        world.expect(not is_good or both == sorted(plan.values[0]), f"outputs of {one.number} are {both}")
        return
    for index, expected in enumerate(plan.case.expected(plan.values)):
        wanted = list(itertools.islice(expected, len(received[index]) + 1))
        if not is_good:
            wanted = wanted[: len(received[index])]
        world.expect(received[index] == wanted, f"output {index} of {one.number} is {received[index]}, not {wanted}")
    if is_good and one.opened is not None:
        emitted = sum(stream.emitted for stream in one.opened.invocation.outputs)
        world.expect(emitted == len(one.written), f"{emitted} values were emitted, {len(one.written)} frames sent")
        world.expect(plan.reads is Reads.NEVER or not one.outbox or plan.reads is Reads.LATE, "the caller did not read")


def _is_in_order(some: list[str], all_: list[str]) -> bool:
    rest = iter(all_)
    return all(one in rest for one in some)
