"""`Engine`: admits invocations, negotiates them, counts them, and drains.

The engine knows every running invocation and never waits for one: a driver asks `open`, runs what it is given, and
tells `close` when the invocation is over. Observers (logs, metrics) read its counters or listen to `close`; sessions
never see them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from invoker.author.spec import FunctionSpec, StreamSpec
from invoker.body.lift import Function
from invoker.codecs import Registry
from invoker.context import Context
from invoker.core.budget import ProcessBudget
from invoker.core.catalog import Catalog
from invoker.core.invocation import Invocation
from invoker.core.outputs import UnwantedOutput
from invoker.core.steps import Open
from invoker.core.streams import Budget, InputStream, Limits, OutputStream, SingleInput
from invoker.errors import (
    ErrorPolicy,
    InvocationError,
    NotReady,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
    Status,
    let_go,
)
from invoker.message import as_headers

__all__ = ["Counters", "Engine"]


@dataclass(slots=True)
class Counters:
    """Sums since the process started; plain integers, read by whoever publishes them."""

    opened: int = 0
    refused: int = 0
    finished: dict[Status, int] = field(default_factory=dict)
    frames_in: int = 0
    frames_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    seconds: float = 0.0


class Engine:
    """Admission, negotiation, limits and drain for the functions of one process.

    Attributes:
        full_since: When an invocation was first refused for ``max_invocations`` since one last ended, on the clock of
            ``time.monotonic``; 0 when none was.
        lock: Held around admission and counting; a driver whose invocations end in several threads sets a real one.

    Args:
        catalog: What is served.
        registry: Codecs; each function sees them plus the media types that it declares itself.
        limits: Unread input an invocation may hold.
        max_invocations: Running at once; 0 means no limit.
        memory_bytes: What all conversations together may hold unread.
        memory_bytes: What all conversations together may hold unread.
        check_outputs: Whether values that are not what their function declares are refused.
        policy: What the errors that invocations end with become.
    """

    def __init__(
        self,
        catalog: Catalog,
        registry: Registry,
        *,
        limits: Limits | None = None,
        max_invocations: int = 0,
        check_outputs: bool = True,
        memory_bytes: int = 512 * 1024 * 1024,
        policy: ErrorPolicy | None = None,
    ) -> None:
        self.memory = ProcessBudget(memory_bytes)
        self.catalog = catalog
        self.registry = registry
        self.limits = limits or Limits()
        self.max_invocations = max_invocations
        self.check_outputs = check_outputs
        self.policy = policy or ErrorPolicy()
        self.is_draining = False
        self.is_loading = False
        self.full_since = 0.0
        self.lock: AbstractContextManager[Any] = nullcontext()
        self.running: dict[str, Invocation] = {}
        self.counters = Counters()
        self.on_close: list[Callable[[Invocation], None]] = []
        self._numbers = itertools.count(1)
        self._registries: dict[str, Registry] = {}
        self._shared: dict[tuple[str, ...], Registry] = {}

    def open(
        self,
        command: Open,
        *,
        deadline: float | None = None,
        limits: Limits | None = None,
        is_counted: bool = True,
        is_early: bool = False,
    ) -> Invocation:
        """Admit and negotiate one invocation; the caller runs it and must `close` it.

        Args:
            command: What the session asks for.
            deadline: On the clock of ``time.monotonic``, or None.
            limits: Unread input that this one may hold, instead of the engine's.
            is_counted: Whether its unread input counts against `memory`; else its conversation counts it.
            is_early: It was asked for before the drain began, so the drain does not refuse it (G-104).

        Raises:
            NotReady: The functions are not loaded yet.
            ShuttingDown: The process drains (R-025).
            Overloaded: ``max_invocations`` run already (R-132).
            ProtocolViolation: Unknown function, an arity that is not the function's (R-052, R-055), or inputs bound by
                names that it does not have (E-076, E-077).
            NotAcceptable: An output has no codec for what is accepted (R-100).
        """
        try:
            self._admit(is_early=is_early)
            function = self.catalog.find(command.function)
            budget = Budget(limits or self.limits, self.memory.share() if is_counted else None)
            invocation = self._negotiate(function, command, deadline, budget)
            with self.lock:
                self._admit(is_early=is_early)
                self.counters.opened += 1
                self.running[invocation.id] = invocation
        except InvocationError:
            with self.lock:
                self.counters.refused += 1
            raise
        return invocation

    def close(self, invocation: Invocation) -> None:
        """Forget a finished invocation and add up what it did."""
        counters = self.counters
        status = invocation.error.status if invocation.error is not None else Status.OK
        with self.lock:
            if self.running.pop(invocation.id, None) is None:
                return
            self.full_since = 0.0
            counters.finished[status] = counters.finished.get(status, 0) + 1
            counters.frames_in += sum(stream.fed for stream in invocation.inputs)
            counters.frames_out += sum(stream.emitted for stream in invocation.outputs)
            counters.bytes_in += invocation.bytes_in
            counters.bytes_out += invocation.bytes_out
            counters.seconds += time.monotonic() - invocation.started_s
        for observer in self.on_close:
            observer(invocation)
        if invocation.error is not None:
            let_go(invocation.error)

    def _admit(self, *, is_early: bool) -> None:
        if self.is_loading:
            raise NotReady("the functions of this invoker are still loading; try again when it is ready")
        if self.is_draining and not is_early:
            raise ShuttingDown("this invoker is draining and takes no new invocations")
        if self.max_invocations and len(self.running) >= self.max_invocations:
            self.full_since = self.full_since or time.monotonic()
            count = len(self.running)
            many = "invocation is" if count == 1 else "invocations are"
            raise Overloaded(f"{count} {many} running, and no more are allowed at once")

    def _negotiate(self, function: Function, command: Open, deadline: float | None, budget: Budget) -> Invocation:
        registry = self.registry_for(function)
        if command.bound is not None:
            function = function.binding(command.bound)
        if _is_in_parts(function.spec, command):
            function = function.in_parts
        if command.bound is None:
            function = function.with_options(command.input_names)
        spec = function.spec
        input_specs = _input_specs(spec, command)
        output_specs, accepts = _output_specs(spec, command)
        inputs = [
            (SingleInput if one.single else InputStream)(index, one, registry, budget, is_open=command.by_value)
            for index, one in enumerate(input_specs)
        ]
        outputs: list[OutputStream | UnwantedOutput] = []
        for index, one in enumerate(output_specs):
            name = command.output_names[index] if command.output_names else one.name
            if index in command.unwanted:
                outputs.append(UnwantedOutput(index, name))
            else:
                accept = accepts[index]
                by_value = command.by_value and not one.media_types and accept.strip() in ("", "*/*")
                known = (
                    self._shared_for(function) if by_value else registry
                )  # what another output declares is not for this one
                type_, is_checked = _promised(spec, one), self.check_outputs
                outputs.append(
                    OutputStream(index, name, accept, known, by_value=by_value, type_=type_, is_checked=is_checked)
                )
        number = f"i{next(self._numbers)}"
        context = Context(
            invocation_id=number,
            function=spec.name,
            input_names=command.input_names,
            output_names=command.output_names,
            accepts=accepts,
            metadata=as_headers(command.metadata),
            deadline=deadline,
            configs=command.configs,
        )
        return Invocation(
            command.id,
            function,
            context,
            inputs=inputs,
            outputs=outputs,
            budget=budget,
            drops_unlisted=command.by_value and spec.open_outputs,
            policy=self.policy,
        )

    def registry_for(self, function: Function) -> Registry:
        """Its codecs, plus raw bytes for media types that only this function declares."""
        found = self._registries.get(function.spec.name)
        if found is None:
            streams = (*function.spec.inputs, *function.spec.optional)
            inputs = [one for stream in streams for one in stream.media_types]
            outputs = [one for stream in function.spec.outputs for one in stream.media_types]
            found = self._shared_for(function)
            found = found.declaring(inputs, outputs) if inputs or outputs else found
            self._registries[function.spec.name] = found
        return found

    def _shared_for(self, function: Function) -> Registry:
        """The shared codecs, without those that belong to the functions of other modules."""
        modules = function.spec.modules
        if (found := self._shared.get(modules)) is None:
            found = self._shared[modules] = self.registry.belonging(modules)
        return found


def _input_specs(spec: FunctionSpec, command: Open) -> tuple[StreamSpec, ...]:
    """R-054, R-055, R-056: names are optional; if there, they are one an input."""
    named = len(command.input_names)
    if spec.open_inputs:
        if named and named == len(spec.inputs) - 1:
            return spec.inputs[:-1]  # nothing is given to ``*args``
        wanted = max(named or 1, len(spec.inputs))
        last = spec.inputs[-1]
        extra = (replace(last, name=f"{last.name}{index}") for index in range(len(spec.inputs), wanted))
        return (*spec.inputs, *extra)
    if named and named != len(spec.inputs):
        hint = (
            "; riff cannot give its further keyword arguments, but HTTP can by their names" if spec.open_names else ""
        )
        raise ProtocolViolation(
            f"Invalid input count {named}: function has only {len(spec.inputs)} input(s)"
            f" ({', '.join(one.name for one in spec.inputs) or 'none'}); inputNames were {list(command.input_names)}"
            f"{hint}"
        )
    return spec.inputs


def _promised(spec: FunctionSpec, output: StreamSpec) -> Any:
    """What the values of an output have to be; one with parts may hold them in any way in which parts may come."""
    return output.type | tuple | list | Mapping if spec.parts else output.type


def _is_in_parts(spec: FunctionSpec, command: Open) -> bool:
    """Whether a caller asks for as many outputs as the one value has parts, or for one part by its name."""
    count = len(command.accepts or ())
    if not spec.parts or count != len(spec.parts):
        return False
    return count > 1 or command.output_names == (spec.parts[0].name,)


def _output_specs(spec: FunctionSpec, command: Open) -> tuple[tuple[StreamSpec, ...], tuple[str, ...]]:
    """R-052, R-053, R-058: one accept list an output."""
    specs = spec.outputs
    if spec.open_outputs:
        if command.accepts is not None:
            given = len(command.accepts)
            extra = (replace(spec.any_output, name=f"out{index}") for index in range(len(specs), given))
            specs = (*specs, *extra)[:given]
        elif not specs:
            specs = (spec.any_output,)
    accepts = command.accepts if command.accepts is not None else ("*/*",) * len(specs)
    if len(accepts) != len(specs):
        raise ProtocolViolation(
            f"Invalid output count {len(accepts)}: function has only {len(specs)} output(s)"
            f" ({', '.join(one.name for one in specs) or 'none'}); one list of content types is expected for each"
        )
    if command.output_names and len(command.output_names) != len(accepts):
        raise ProtocolViolation(
            f"{len(command.output_names)} outputNames {list(command.output_names)} disagree with"
            f" {len(accepts)} expectedContentTypes"
        )
    return specs, tuple(accepts)
