"""Runs the function that a plan names, with the checkpoint and the device's own examples (F-075 to F-077).

`CallingRunner` calls plain functions in threads. Programs can implement `Runner` in another way: the command ``invoker
device`` runs each plan as an invocation.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import msgspec

from invoker.codecs.checkpoint import read_checkpoint, write_checkpoint
from invoker.connect.failure import CallFailed
from invoker.errors import Status, StopInvocation
from invoker.protocols.federated.client.plans import Plan
from invoker.tensors.checkpoint import Checkpoint, Update


class Ran(msgspec.Struct, frozen=True):
    """The results of a plan.

    Attributes:
        value: The value of the first output: an update, or the weights of tasks.
        metrics: The value of the second output; None: there is none.
    """

    value: Any
    metrics: Any = None


class Runner(Protocol):
    """Runs plans."""

    async def __call__(self, plan: Plan, checkpoint: bytes) -> Ran:
        """Run a plan, which has to return exactly one value; cancellation stops the plan.

        Raises:
            CallFailed: UNIMPLEMENTED: the device has no such function.
            Exception: The exception of the function.
        """


class CallingRunner:
    """Calls plain functions in threads, and async functions on the event loop.

    A thread cannot be stopped from outside. A function that has reached its time limit (F-077) ends when it reads its
    next example; a function that reads no more examples occupies its thread until it returns.

    Args:
        functions: The functions by the names in plans: ``module:function``.
        examples: Makes an iterator of the device's examples for each run; examples are read on demand.
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]], examples: Callable[[], Iterable[Any]]) -> None:
        self._functions, self._examples = functions, examples

    async def __call__(self, plan: Plan, checkpoint: bytes) -> Ran:
        """Call the function of a plan."""
        function = plan.function or self._functions.get(plan.fn)
        if function is None:
            raise CallFailed(Status.UNIMPLEMENTED, f"this device has no function {plan.fn[:80]!r}")
        if inspect.iscoroutinefunction(function):
            start = _start_of(function, checkpoint)
            return _ran(await function(start, iter(self._examples()), **plan.params))
        over = threading.Event()
        try:
            return await asyncio.to_thread(lambda: run_plan(function, plan, checkpoint, _until(over, self._examples())))
        finally:
            over.set()


def run_plan(function: Callable[..., Any], plan: Plan, checkpoint: bytes, examples: Iterable[Any]) -> Ran:
    """Call a plain function with a checkpoint, examples, and the parameters of the plan.

    Raises:
        ValueError: The function returned no update, or several.
        Exception: The exception of the function.
    """
    return _ran(function(_start_of(function, checkpoint), iter(examples), **plan.params))


def bytes_of(value: Any) -> bytes:
    """Encode an update as it is reported.

    Raises:
        TypeError: The value is neither arrays nor bytes.
    """
    if isinstance(value, Checkpoint):
        return write_checkpoint(value)
    if isinstance(value, bytes):
        return value
    raise TypeError(f"the plan returned {type(value).__name__}; expected an Update or bytes")


def arrays_of(value: Any) -> dict[str, Any]:
    """The vectors of an update, flattened, for secure aggregation.

    Raises:
        TypeError: The value is neither arrays nor bytes.
        DecodeError: The bytes are not a valid checkpoint.
    """
    found = value if isinstance(value, Checkpoint) else read_checkpoint(bytes_of(value), Update)
    return {name: array.reshape(-1) for name, array in found.items()}


def weights_of(value: Any) -> dict[str, float]:
    """The result of an eligibility plan: weights by name of the task (F-078); tasks of weight 0 are left out.

    Raises:
        TypeError: The value is not such a dict.
        ValueError: A weight is negative, or not finite; a server would treat that as a permanent error (F-044).
    """
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"the eligibility plan returned {type(value).__name__}; expected a dict of weights by tasks")
    weights = {name: float(weight) for name, weight in value.items() if weight != 0}
    for name, weight in weights.items():
        if not 0 < weight < math.inf:
            raise ValueError(f"the eligibility plan gave task {name!r} the weight {weight}; it must be 0 or more")
    return weights


def _until(over: threading.Event, examples: Iterable[Any]) -> Iterator[Any]:
    """Iterate over examples until ``over`` is set, because the result is no longer needed."""
    for one in examples:
        if over.is_set():
            raise StopInvocation
        yield one


def _start_of(function: Callable[..., Any], checkpoint: bytes) -> Any:
    """The checkpoint for the function's first parameter: bytes if that is annotated with bytes, else a `Checkpoint`."""
    names = list(inspect.signature(function).parameters)
    wanted = typing.get_type_hints(function).get(names[0]) if names else None
    return checkpoint if wanted is bytes else read_checkpoint(checkpoint, Checkpoint)


def _ran(result: Any) -> Ran:
    if isinstance(result, Iterator):
        given = list(result)
        if len(given) != 1:
            raise ValueError(f"the plan gave {len(given)} updates instead of one")
        (result,) = given
    if isinstance(result, tuple) and len(result) == 2:
        return Ran(*result)
    return Ran(result)
