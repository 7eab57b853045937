"""`Work`: does the work of simulated devices: runs the function of a plan, or returns a given update."""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Final

import msgspec

from invoker.codecs.checkpoint import read_checkpoint
from invoker.connect.failure import UsageError
from invoker.errors import InvokerError, Status
from invoker.errors.wording import describe
from invoker.protocols.federated.client.messages import Assigned, EligibilityAsked, Report
from invoker.protocols.federated.client.plans import Plan, read_plan
from invoker.protocols.federated.client.running import arrays_of, bytes_of, run_plan, weights_of
from invoker.tensors.checkpoint import Checkpoint, Update

_MOST_LINES: Final = 3
"""How many lines of a traceback are shown, from its end."""


class WorkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options for the data that devices send.

    Attributes:
        devices: How many devices there are.
        examples: Returns the examples of a device, for the number of the device and the number of all devices.
        updates: Returns the update of a device, likewise; None: the plan returns the update.
        update_bytes: The size of updates of random bytes; 0: updates are not random bytes.
        seed: The seed for such updates, and for random vectors.
    """

    devices: int
    examples: Callable[[int, int], Iterable[Any]]
    updates: Callable[[int, int], Any] | None = None
    update_bytes: int = 0
    seed: int = 0


class Work:
    """Runs plans for all devices of a population, one after the other.

    Args:
        options: The options for the data that devices send.
        tasks: The names of all tasks, for which a device without an eligibility function is eligible.
        lengths: The lengths of the vectors of secure aggregation, by task.
        note: Called once with a warning for the user, such as the first error of a function.
    """

    def __init__(
        self,
        options: WorkOptions,
        tasks: Iterable[str],
        lengths: Mapping[str, Mapping[str, int]],
        note: Callable[[str], None],
    ) -> None:
        self._options, self._lengths, self._note = options, lengths, note
        self._weights = dict.fromkeys(tasks, 1.0)
        self._functions: dict[str, Callable[..., Any] | None] = {}
        self._noted: set[str] = set()
        self._random = Random(options.seed).randbytes(options.update_bytes)  # noqa: S311 - the updates are not secret

    def eligible(self, number: int, asked: EligibilityAsked) -> dict[str, float]:
        """The tasks for which a device is eligible; empty if the plan failed."""
        try:
            plan = read_plan(asked.plan.data)
            function = self._found(plan)
            if function is None:
                return self._weights
            return weights_of(run_plan(function, plan, asked.checkpoint.data, self._examples(number)).value)
        except Exception as error:  # noqa: BLE001 - the user's function may raise any exception
            self._failed("the eligibility plan", number, error)
            return {}

    def report(self, number: int, assigned: Assigned, seconds: float) -> Report:
        """Make the report of a device for its task, which took ``seconds`` simulated seconds."""
        try:
            value = self._value(number, assigned)
            vectors = None if assigned.secagg is None else arrays_of(value)
            return Report(bytes_of(value) if vectors is None else b"", vectors, duration_s=seconds)
        except Exception as error:  # noqa: BLE001 - the user's function may raise any exception
            self._failed(f"the plan of task {assigned.task!r}", number, error)
            return Report(status=Status.INTERNAL, duration_s=seconds)

    def _value(self, number: int, assigned: Assigned) -> Any:
        options = self._options
        if options.updates is not None:
            return options.updates(number, options.devices)
        if options.update_bytes and assigned.secagg is None:
            return self._random
        plan = None
        if not options.update_bytes:
            plan = _plan(assigned.plan.data)
            function = None if plan is None else self._found(plan)
            if plan is not None and function is not None:
                return run_plan(function, plan, assigned.checkpoint.data, self._examples(number)).value
        return self._given(number, assigned)

    def _given(self, number: int, assigned: Assigned) -> Any:
        """An update for a task whose function is not available: the checkpoint, or random integers."""
        if assigned.secagg is None:
            return Update(read_checkpoint(assigned.checkpoint.data, Checkpoint), examples=1.0)
        import numpy as np

        dice = np.random.default_rng((self._options.seed, number))
        lengths = self._lengths[assigned.task]
        return Update({
            name: dice.integers(0, modulus, lengths[name], np.uint64)
            for name, modulus in assigned.secagg.moduli.items()
        })  # fmt: skip

    def _examples(self, number: int) -> Iterable[Any]:
        return self._options.examples(number, self._options.devices)

    def _found(self, plan: Plan) -> Callable[..., Any] | None:
        """Import the function that a plan names; this is safe, since the file of rounds is the user's own."""
        if plan.fn not in self._functions:
            try:
                self._functions[plan.fn] = function_at(plan.fn, "the plan's function")
            except UsageError as error:
                self._functions[plan.fn] = None
                self._say(f"{error}; devices send the given updates instead")
        return self._functions[plan.fn]

    def _failed(self, what: str, number: int, error: Exception) -> None:
        if isinstance(error, InvokerError):
            text = str(error)
        else:
            frames = [f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
            text = f"{describe(error)}, at {' < '.join(frames[: -_MOST_LINES - 1 : -1])}"
        if what not in self._noted:
            self._noted.add(what)
            self._note(f"device {number}: {what} failed: {text}; further failures of it are only counted")

    def _say(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._note(text)


def function_at(entrypoint: str, what: str) -> Callable[..., Any]:
    """Import the function that ``mod:fn`` names.

    Raises:
        UsageError: There is no such function.
    """
    name, _, attribute = entrypoint.partition(":")
    try:
        found = getattr(importlib.import_module(name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{what} {entrypoint} cannot be imported: {error}; give mod:fn") from None
    if not callable(found):
        raise UsageError(f"{what} {entrypoint} is {type(found).__name__}, and not a function")
    made: Callable[..., Any] = found
    return made


def numbered(entrypoint: str, what: str) -> Callable[[int, int], Any]:
    """Import a function that takes a device's number and the number of all devices, or only the first, or neither.

    Raises:
        UsageError: There is no such function.
    """
    found = function_at(entrypoint, what)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes = sum(one.kind in kinds for one in inspect.signature(found).parameters.values())
    return lambda number, devices: found(*(number, devices)[:takes])


def _plan(data: bytes) -> Plan | None:
    """Parse a plan if it has the invoker's form; None for other plans, which cannot be run here."""
    try:
        return read_plan(data)
    except Exception:  # noqa: BLE001 - a plan of another form may fail in any way
        return None
