"""`invoker.protocols.federated.client.running`: plans as calls of plain functions."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from invoker import Checkpoint, Update
from invoker.codecs.checkpoint import read_checkpoint, write_checkpoint
from invoker.connect.failure import CallFailed
from invoker.errors import DecodeError, Status
from invoker.protocols.federated.client.plans import Plan
from invoker.protocols.federated.client.running import CallingRunner, arrays_of, bytes_of, weights_of

MODEL = write_checkpoint(Checkpoint({"w": [1.0, 2.0]}))


def train(checkpoint: Checkpoint, examples: Iterator[float], rate: float = 1.0) -> Update:
    """Add the examples."""
    given = list(examples)
    return Update({"w": checkpoint["w"] + rate * sum(given)}, examples=len(given))


async def on_loop(checkpoint: bytes, examples: Iterator[float]) -> bytes:
    """Give what came."""
    return checkpoint + str(list(examples)).encode()


def several(checkpoint: Checkpoint, examples: Iterator[float]) -> Iterator[Update]:
    """As many updates as examples."""
    for _ in examples:
        yield Update(checkpoint)


def measured(checkpoint: Checkpoint, examples: Iterator[float]) -> tuple[Update, dict[str, float]]:
    """An update and metrics."""
    return Update(checkpoint), {"loss": next(examples)}


def runner(*examples: float) -> CallingRunner:
    """A device with these examples."""
    functions = {"m:train": train, "m:loop": on_loop, "m:several": several, "m:measured": measured}
    return CallingRunner(functions, lambda: examples)


async def test_F075_functions_get_the_checkpoint_and_the_examples() -> None:
    """And the plan's parameters by their names; each run begins with the first example."""
    run = runner(1, 2)
    for _ in range(2):
        ran = await run(Plan("m:train", {"rate": 10}), MODEL)
        assert ran.value == Update({"w": [31.0, 32.0]}, examples=2)
    assert (await run(Plan("m:loop"), b"start ")).value == b"start [1, 2]"
    assert (await run(Plan("x", function=train), MODEL)).value == Update({"w": [4.0, 5.0]}, examples=2)
    ran = await run(Plan("m:measured"), MODEL)
    assert (ran.value, ran.metrics) == (Update({"w": [1.0, 2.0]}), {"loss": 1})


async def test_F076_examples_are_read_as_the_function_reads_them() -> None:
    """A function that reads one of them takes one."""
    read: list[int] = []

    def examples() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    await CallingRunner({"m:measured": measured}, examples)(Plan("m:measured"), MODEL)
    assert read == [0]


@pytest.mark.parametrize("count", [0, 2])
async def test_F075_a_plan_gives_exactly_one_update(count: int) -> None:
    """None and two are refused; one of an iterator is right."""
    assert (await runner(1)(Plan("m:several"), MODEL)).value == Update({"w": [1.0, 2.0]})
    with pytest.raises(ValueError, match=f"the plan gave {count} updates instead of one"):
        await runner(*range(count))(Plan("m:several"), MODEL)


async def test_F074_a_function_that_the_device_does_not_have_is_not_run() -> None:
    """Whatever the server names, nothing is imported."""
    with pytest.raises(CallFailed, match="this device has no function 'os:system'") as caught:
        await runner()(Plan("os:system"), b"")
    assert caught.value.status is Status.UNIMPLEMENTED
    with pytest.raises(DecodeError):
        await runner()(Plan("m:train"), b"garbage")


def test_updates_are_reported_as_bytes_or_as_vectors() -> None:
    """Arrays become an npz, or flat vectors; bytes stay, or are read; anything else is refused."""
    update = Update({"w": np.ones((2, 2))}, examples=3)
    assert read_checkpoint(bytes_of(update), Update) == update
    assert bytes_of(b"raw") == b"raw"
    for value in (update, bytes_of(update)):
        assert {name: array.tolist() for name, array in arrays_of(value).items()} == {"w": [1, 1, 1, 1]}
    for wrong in (None, {"w": 1}, "text"):
        with pytest.raises(TypeError, match="expected an Update or bytes"):
            bytes_of(wrong)


@pytest.mark.parametrize("wrong", [None, ["train"], {1: 2.0}])
def test_F078_weights_are_a_dict_by_tasks(wrong: Any) -> None:
    """Of numbers; anything else is refused."""
    assert weights_of({"train": 1}) == {"train": 1.0}
    assert weights_of({}) == {}
    assert weights_of({"train": 0, "test": 2}) == {"test": 2.0}
    for bad in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="task 'train' the weight"):
            weights_of({"train": bad})
    with pytest.raises(TypeError, match="expected a dict of weights by tasks"):
        weights_of(wrong)


async def test_F077_a_function_whose_time_is_over_ends_at_its_next_example() -> None:
    """Otherwise each plan that hangs would take a thread of the device for good."""
    ended = threading.Event()

    def endless(checkpoint: bytes, examples: Iterator[int]) -> bytes:
        try:
            return bytes(sum(1 for _ in examples))
        except Exception:  # a function that swallows what it meets
            return checkpoint
        finally:
            ended.set()

    run = CallingRunner({"m:endless": endless}, itertools.count)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await run(Plan("m:endless"), b"")
    assert await asyncio.to_thread(ended.wait, 5)
