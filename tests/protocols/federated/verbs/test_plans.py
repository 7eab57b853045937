"""`invoker.protocols.federated.verbs.plans`: plans as invocations."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from invoker import Checkpoint, Output, Update
from invoker.client.federated import Plan
from invoker.codecs.checkpoint import read_checkpoint, write_checkpoint
from invoker.connect.failure import CallFailed
from invoker.errors import DeadlineExceeded, InvocationError, SpecError, Status
from invoker.protocols.federated.verbs.plans import PlanRunner, Plans

MODEL = write_checkpoint(Checkpoint({"w": [1.0, 2.0]}))
HERE = __name__
STOPPED = threading.Event()


def train(checkpoint: Checkpoint, examples: Iterator[float], rate: float = 1.0) -> Update:
    """Add the examples."""
    given = list(examples)
    return Update({"w": checkpoint["w"] + rate * sum(given)}, examples=len(given))


async def on_loop(checkpoint: bytes, examples: Any) -> bytes:
    """Without a stream, one example is one value."""
    return checkpoint + str(examples).encode()


def reads_three(checkpoint: Checkpoint, examples: Iterator[int]) -> Update:
    """Take three examples and wait until nothing more is read."""
    for _ in range(3):
        next(examples)
    STOPPED.wait(0.3)
    return Update(checkpoint)


def several(checkpoint: Checkpoint, examples: Iterator[int]) -> Iterator[Update]:
    """As many updates as examples."""
    for _ in examples:
        yield Update(checkpoint)


def measured(checkpoint: Checkpoint, examples: Iterator[float]) -> Iterator[Output]:
    """An update and metrics."""
    yield Output(0, Update(checkpoint))
    yield Output(1, {"loss": sum(examples)})


def eligible(checkpoint: Checkpoint, examples: Iterator[float]) -> dict[str, float]:
    """Weights by the number of examples."""
    return {"train": sum(1.0 for _ in examples)}


def waits(checkpoint: Checkpoint, examples: Iterator[float]) -> Update:
    """Read for ever."""
    try:
        for _ in examples:
            pass
    finally:
        STOPPED.set()
    return Update(checkpoint)


async def ran(name: str, *examples: Any, timeout_s: float = 5.0, start: bytes = MODEL, **params: Any) -> Any:
    """Run one plan of this module."""
    entrypoint = f"{HERE}:{name}"
    async with Plans([entrypoint]) as plans:
        return await PlanRunner(plans, lambda: iter(examples), timeout_s)(Plan(entrypoint, params), start)


async def test_F075_a_plan_is_an_invocation() -> None:
    """Checkpoint, examples and parameters go in; one update comes out, as arrays or as bytes."""
    found = await ran("train", 1.0, 2.0, rate=10.0)
    assert read_checkpoint(found.value, Update) == Update({"w": [31.0, 32.0]}, examples=2)
    assert found.metrics is None
    assert (await ran("on_loop", 5, start=b"start ")).value == b"start 5"


async def test_F078_an_eligibility_plan_gives_a_dict() -> None:
    """Of weights by tasks."""
    assert (await ran("eligible", 1.0, 2.0)).value == {"train": 2.0}


async def test_F075_metrics_are_the_second_output() -> None:
    """They are optional."""
    found = await ran("measured", 1.0, 2.0)
    assert read_checkpoint(found.value, Update) == Update({"w": [1.0, 2.0]})
    assert found.metrics == {"loss": 3.0}


async def test_F075_exactly_one_update() -> None:
    """None and two are errors."""
    assert read_checkpoint((await ran("several", 1)).value, Update) == Update({"w": [1.0, 2.0]})
    with pytest.raises(ValueError, match="the plan gave no update"):
        await ran("several")
    with pytest.raises(ValueError, match="the plan gave a second update"):
        await ran("several", 1, 2, 3)


async def test_F076_examples_are_read_no_faster_than_the_plan_reads_them() -> None:
    """A plan that reads three of a thousand makes us read three, and the few that are on their way."""
    count = 0
    entrypoint = f"{HERE}:reads_three"
    STOPPED.clear()

    def examples() -> Iterator[int]:
        nonlocal count
        while count < 1000:
            count += 1
            yield count

    async with Plans([entrypoint]) as plans:
        await PlanRunner(plans, examples, 5.0)(Plan(entrypoint), MODEL)
    assert 3 <= count <= 6


async def test_F077_a_plan_is_stopped_when_its_time_is_over() -> None:
    """It is told at the next example that it reads."""

    def forever() -> Iterator[float]:
        while True:
            yield 1.0

    entrypoint = f"{HERE}:waits"
    for is_cancelled in (False, True):
        STOPPED.clear()
        async with Plans([entrypoint]) as plans:
            runner = PlanRunner(plans, forever, 5.0 if is_cancelled else 0.2)
            task = asyncio.create_task(runner(Plan(entrypoint), MODEL))
            if is_cancelled:
                await asyncio.sleep(0.2)
                task.cancel()
            with pytest.raises(asyncio.CancelledError if is_cancelled else DeadlineExceeded):
                await task
            assert await asyncio.to_thread(STOPPED.wait, 5)


async def test_what_a_plan_gets_wrong_is_an_error() -> None:
    """Parameters that the function does not have, bytes that are no checkpoint, and examples that cannot be read."""
    for wrong in ({"start": b"garbage"}, {"unknown": 1}):
        with pytest.raises(InvocationError):
            await ran("train", 1.0, **wrong)
    with pytest.raises(InvocationError, match="examples"):
        await ran("train", "text")


async def test_F074_functions_that_were_not_named_are_not_run() -> None:
    """Nothing that a server names is imported; code that it brings is refused."""
    entrypoint = f"{HERE}:train"
    async with Plans([entrypoint]) as plans:
        for plan in (Plan("os:system"), Plan(entrypoint, function=train)):
            with pytest.raises(CallFailed) as caught:
                await PlanRunner(plans, list, 5.0)(plan, MODEL)
            assert caught.value.status is Status.UNIMPLEMENTED


def strange(checkpoint: object, *, examples: int) -> None:
    """Not understood."""


def test_functions_are_checked_before_anything_is_run() -> None:
    """With the sentence that serving them would give."""
    with pytest.raises(SpecError, match="keyword-only"):
        Plans([f"{HERE}:strange"])


def test_a_function_that_is_called_for_each_example_is_hinted_at() -> None:
    """Its author has most likely left the annotation out."""
    (hint,) = Plans([f"{HERE}:on_loop", f"{HERE}:train"]).hints
    assert hint.startswith(f"{HERE}:on_loop is called once for each example; ")
    assert hint.endswith("for example examples: Iterator[float]")


def test_a_device_says_which_functions_it_was_given() -> None:
    """For whom named another one than the rounds file."""
    with pytest.raises(CallFailed) as raised:
        Plans([f"{HERE}:train"]).find("sensors:histogram")
    assert raised.value.detail == f"this device has no function 'sensors:histogram'; it was given {HERE}:train"
