"""What must hold in every world: after each step, and at the end."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

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
from invoker.execution.driver import Driver
from tests.simulate.peer import Ending
from tests.simulate.scene import Scene
from tests.simulate.seen import Seen, Violation, Witness

__all__ = ["Violation", "after", "at_each_step", "may_read"]


def may_read(invocation: Invocation, limits: Limits) -> tuple[bool, str]:
    """Whether a frame may be read: below the mark, or a reader waits on an empty, open input, or all is over."""
    held = [len(message.payload) for stream in invocation.inputs for _, message in stream.queue]
    is_starving = any(one.waiters and not one.queue and not one.is_ended for one in invocation.inputs)
    is_low = len(held) < limits.high_frames and sum(held) < limits.high_bytes
    may = invocation.is_finished or is_starving or is_low or invocation.is_starving
    return may, f"reading goes on above the mark with {len(held)} frames"


def at_each_step(witness: Witness, one: Seen, invocations: Iterable[Invocation]) -> None:
    """The invariants of one conversation whose invocations these are."""
    limits, expect = witness.scene.limits, witness.expect
    for invocation in invocations:
        budget = invocation.budget
        held = [len(message.payload) for stream in invocation.inputs for _, message in stream.queue]
        expect(budget.frames == len(held), f"{one.number}: {budget.frames} frames are counted, {len(held)} are queued")
        expect(budget.bytes == sum(held), f"{one.number}: {budget.bytes} bytes are counted, {sum(held)} are queued")
        expect(
            len(held) <= limits.hard_frames and sum(held) <= limits.hard_bytes,
            f"{len(held)} frames with {sum(held)} bytes are above the hard cap",
        )
        for stream in invocation.inputs:
            fed = [payload for index, payload in one.plan.data if index == stream.index][: stream.fed]
            queued = [message.payload for _, message in stream.queue]
            expect(fed[len(fed) - len(queued) :] == queued, f"{stream.place} holds {queued} of {fed}")


def after(witness: Witness, driver: Driver, seen: list[Seen]) -> None:
    """Everything is over, released, counted, and as it should be."""
    engine, expect, scene = driver.engine, witness.expect, witness.scene
    others = scene.slots if scene.is_full else 0
    cut = others - len(engine.running)  # what never ends is ended with the drain
    expect(cut in (0, others), f"invocations are left: {list(engine.running)}")
    expect(not driver.conversations and not driver.direct and not driver.leaving, "conversations are left")
    expect(not driver.waiting, "refusals are left")
    counters, opened = engine.counters, [one.invocation for one in seen if one.invocation is not None]
    expect(counters.opened == len(opened) + others, f"{len(opened)} opened: {counters}")
    expect(len(witness.ended) == len(opened) + cut, f"{len(opened)} opened, {len(witness.ended)} ended")
    expect(sum(counters.finished.values()) == len(opened) + cut, f"opened and finished disagree: {counters}")
    expect(counters.frames_in == sum(one.fed for inv in opened for one in inv.inputs), f"{counters}")
    expect(counters.frames_out == sum(one.emitted for inv in opened for one in inv.outputs), f"{counters}")
    expect(counters.bytes_in == sum(one.bytes_in for one in opened), f"{counters}")
    expect(counters.bytes_out == sum(one.bytes_out for one in opened), f"{counters}")
    for one in opened:
        expect(not one.finish(InvocationError("again")), f"{one.id} can end twice")
        expect(not any(stream.queue for stream in one.inputs), "an ended invocation holds input")
        expect(not one.budget.frames and not one.budget.bytes, f"an ended invocation holds {one.budget.bytes} bytes")
    expect(engine.memory.held == 0, f"the process counts {engine.memory.held} bytes")
    for one in seen:
        _check_ending(witness, one)
        _check_outputs(witness, one)


def _check_ending(witness: Witness, one: Seen) -> None:
    expect = witness.expect
    expect(len(one.closes) == 1, f"conversation {one.number} ended {len(one.closes)} times")
    error, invocation = one.error, one.invocation
    if invocation is not None:
        expect(
            error is invocation.error or str(error) == str(invocation.error),
            f"{one.number} told {error!r}, but its invocation ended with {invocation.error!r}",
        )
    allowed = _allowed(witness.scene, one)
    expect(type(error) in allowed, f"{one.number} ended with {error!r}; possible are {allowed}")


def _allowed(scene: Scene, one: Seen) -> set[type[Any]]:
    """How a conversation may end, given all that went wrong around it."""
    plan = one.plan
    if scene.is_full:
        return {Overloaded, *plan.faults, *_causes(scene, one)}
    return {*plan.faults, *_causes(scene, one), type(None) if plan.case.error is None else plan.case.error}


def _causes(scene: Scene, one: Seen) -> set[type[Any]]:
    plan = one.plan
    causes: list[tuple[bool, type[InvocationError]]] = [
        (plan.deadline is not None, DeadlineExceeded),
        (plan.ending in {Ending.BREAK, Ending.ABANDON}, Cancelled),
        (scene.drains_at is not None, ShuttingDown),
        (scene.is_tight, LimitExceeded),
        (bool(scene.slots), Overloaded),
    ]
    return {error for is_there, error in causes if is_there}


def _check_outputs(witness: Witness, one: Seen) -> None:
    """A good end has everything; any other has what was before it, in order."""
    plan, expect = one.plan, witness.expect
    received = [[json.loads(frame.payload) for frame in output] for output in one.received]
    is_good = one.error is None
    if is_good and one.is_gone and one.world == "whole":
        _check_emitted(witness, one)  # nobody had looked for the caller when the function was over
        is_good = False
    if plan.case.expected is None:
        for output in received:
            expect(_is_in_order(output, plan.values[0]), f"outputs of {one.number} are out of order: {output}")
        both = sorted(itertools.chain(*received))
        expect(not is_good or both == sorted(plan.values[0]), f"outputs of {one.number} are {both}")
        return
    for index, expected in enumerate(plan.case.expected(plan.values)):
        wanted = list(itertools.islice(expected, len(received[index]) + 1))
        if not is_good:
            wanted = wanted[: len(received[index])]
        expect(received[index] == wanted, f"output {index} of {one.number} is {received[index]}, not {wanted}")
    if is_good and one.invocation is not None:
        emitted = sum(stream.emitted for stream in one.invocation.outputs)
        expect(emitted == len(one.frames), f"{emitted} values were emitted, {len(one.frames)} frames sent")


def _check_emitted(witness: Witness, one: Seen) -> None:
    """A function that has ended well gave everything, although it went to nobody."""
    case, invocation = one.plan.case, one.invocation
    if case.expected is not None and not case.is_endless and invocation is not None:
        wanted = [len(list(values)) for values in case.expected(one.plan.values)]
        emitted = [stream.emitted for stream in invocation.outputs]
        witness.expect(emitted == wanted, f"{one.number} ended well, but gave {emitted}, not {wanted}")


def _check_emitted(witness: Witness, one: Seen) -> None:
    """A function that has ended well gave everything, although it went to nobody."""
    case, invocation = one.plan.case, one.invocation
    if case.expected is not None and not case.is_endless and invocation is not None:
        wanted = [len(list(values)) for values in case.expected(one.plan.values)]
        emitted = [stream.emitted for stream in invocation.outputs]
        witness.expect(emitted == wanted, f"{one.number} ended well, but gave {emitted}, not {wanted}")


def _is_in_order(some: list[str], all_: list[str]) -> bool:
    rest = iter(all_)
    return all(one in rest for one in some)
