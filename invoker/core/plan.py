"""`Plan`: the result of negotiation, which is known before an invocation begins; `Plans` makes and caches plans.

Theory. A plan depends on the function, and on the names, media types and bound parameters of the call: never on a
payload, on metadata, or on time. So it is made for the first call of a kind, and all later ones share it; opening an
invocation of a known plan makes its streams and nothing else.

Peers choose names and media types, and so the keys of the cache; `Cache` bounds the memory that these take.

A plan is valid for the codecs with which it was made; the engine makes new `Plans` when these have changed. A function
that was loaded again gets plans of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final

from invoker.author.lift import Function
from invoker.author.spec import Bounds, FunctionSpec, StreamSpec
from invoker.codecs import Registry
from invoker.core.cache import Cache
from invoker.core.coding import Decoders, Encoders
from invoker.core.steps import Open, Terms
from invoker.errors import ProtocolViolation

MOST_PLANS: Final = 128
"""The most plans of one generation of the cache."""

MOST_BYTES: Final = 8 * 1024 * 1024
"""The most bytes of one generation, as `_size` estimates them; a plan of more than an eighth of this is not kept."""

_PLAN_BYTES: Final = 8 * 1024
_STREAM_BYTES: Final = 16 * 1024
"""The most bytes that the remembered closures of one stream take."""


@dataclass(frozen=True, slots=True)
class Unwanted:
    """Stands in a plan for an output that nobody reads, so that it has no encoders."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The part of an invocation that does not depend on its payloads; shared by many, never changed.

    Attributes:
        function: The function that runs, with its inputs bound.
        inputs: The inputs in the order of their index.
        outputs: The outputs in the order of their index.
        input_names: As the caller gave them; empty means unnamed.
        output_names: As the caller gave them; empty means unnamed.
        accepts: For each output, the media types that the caller accepts.
        drops_unlisted: Whether values for outputs that the caller did not name are dropped; else they are an error.
        bounds: The limits of its invocations; None if nothing is to be counted or timed.
        is_unary: Whether a call that has a message for each input can run as a `UnaryInvocation`.
    """

    function: Function
    inputs: tuple[Decoders, ...]
    outputs: tuple[Encoders | Unwanted, ...]
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    accepts: tuple[str, ...] = ()
    drops_unlisted: bool = False
    bounds: Bounds | None = None
    is_unary: bool = False


class Plans(Cache[Hashable, Plan]):
    """Makes and caches the plans for one version of the registered codecs.

    Args:
        registry: Codecs; each function sees them plus the media types that it declares itself.
        lock: Held while plans are kept or forgotten.
        check_outputs: Whether values of another type than their function declares are refused.
        is_bounded: Whether the calls of the whole process are limited, so that those of every function are counted.

    Attributes:
        version: The version of the registry when these plans were made.
    """

    def __init__(
        self,
        registry: Registry,
        lock: AbstractContextManager[Any],
        *,
        check_outputs: bool = True,
        is_bounded: bool = False,
    ) -> None:
        super().__init__(MOST_PLANS, MOST_BYTES, lock)
        self.version = registry.version
        self._registry = registry
        self._check_outputs = check_outputs
        self._is_bounded = is_bounded
        self._registries: dict[str, Registry] = {}
        self._shared: dict[tuple[str, ...], Registry] = {}

    def of(self, function: Function, command: Open) -> Plan:
        """The plan for a call of a function; it is made now unless it is cached.

        Raises:
            ProtocolViolation: The number of inputs or outputs does not fit the function (R-052, R-055), or inputs are
                bound by names that it does not have (E-076, E-077).
            NotAcceptable: An output has no codec for what is accepted (R-100).
        """
        key = (
            function, command.accepts, command.input_names, command.output_names, command.bound,
            command.terms is Terms.LOOSE, command.unwanted,
        )  # fmt: skip
        if (kept := self._young.get(key)) is not None:
            return kept[0]
        plan = self.find(key)
        if plan is None:
            plan = self.make(function, command)
            self.keep(key, plan, _size(plan, command))
        return plan

    def make(self, function: Function, command: Open) -> Plan:
        """Negotiate a new plan without the cache; raises the errors of `of`."""
        registry = self.registry_for(function)
        if command.bound is not None:
            function = function.binding(command.bound)
        if _is_in_parts(function.spec, command):
            function = function.in_parts
        if command.bound is None:
            function = function.with_options(command.input_names)
        spec = function.spec
        is_loose = command.terms is Terms.LOOSE
        input_specs = _input_specs(spec, command)
        output_specs, accepts = _output_specs(spec, command)
        outputs: list[Encoders | Unwanted] = []
        for index, one in enumerate(output_specs):
            name = command.output_names[index] if command.output_names else one.name
            if index in command.unwanted:
                outputs.append(Unwanted(index, name))
                continue
            accept = accepts[index]
            by_value = is_loose and not one.media_types and accept.strip() in ("", "*/*")
            # Media types that another output declares do not count for this one.
            known = self._shared_for(function) if by_value else registry
            type_, is_checked = _promised(spec, one), self._check_outputs
            encoders = Encoders(
                index, name, accept, known, by_value=by_value, type_=type_, is_checked=is_checked, marked=one
            )
            outputs.append(encoders)
        bounds = spec.bounds if self._is_bounded or spec.bounds != Bounds() else None
        return Plan(
            function,
            tuple(Decoders(index, one, registry, is_open=is_loose) for index, one in enumerate(input_specs)),
            tuple(outputs),
            command.input_names,
            command.output_names,
            accepts,
            is_loose and spec.open_outputs,
            bounds,
            function.is_unary and not spec.isolation and _has_one_reader(outputs),
        )

    def registry_for(self, function: Function) -> Registry:
        """The codecs of a function, plus raw bytes for the media types that only this function declares."""
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
            found = self._shared[modules] = self._registry.belonging(modules)
        return found


def _has_one_reader(outputs: list[Encoders | Unwanted]) -> bool:
    """Whether one output is asked for, and read."""
    return len(outputs) == 1 and isinstance(outputs[0], Encoders)


def _size(plan: Plan, command: Open) -> int:
    """How many bytes a plan and its key may take."""
    texts = (*(command.accepts or ()), *command.input_names, *command.output_names, *(command.bound or ()))
    streams = len(plan.inputs) + len(plan.outputs)
    return _PLAN_BYTES + streams * _STREAM_BYTES + 8 * sum(len(one) for one in texts)


def _input_specs(spec: FunctionSpec, command: Open) -> tuple[StreamSpec, ...]:
    """R-054, R-056: Names are optional; where a function takes any number of inputs, each name makes one input."""
    named = len(command.input_names)
    if spec.open_inputs:
        if named and named == len(spec.inputs) - 1:
            return spec.inputs[:-1]  # the caller gives nothing to ``*args``
        wanted = max(named or 1, len(spec.inputs))
        last = spec.inputs[-1]
        extra = (replace(last, name=f"{last.name}{index}") for index in range(len(spec.inputs), wanted))
        return (*spec.inputs, *extra)
    return spec.inputs


def _promised(spec: FunctionSpec, output: StreamSpec) -> Any:
    """The type that the values of an output must have; a value with parts may also be a tuple, a list or a dict."""
    return output.type | tuple | list | Mapping if spec.parts else output.type


def _is_in_parts(spec: FunctionSpec, command: Open) -> bool:
    """Whether a caller asks for each part of the value as an output of its own; a single part must be named."""
    count = len(command.accepts or ())
    if not spec.parts or count != len(spec.parts):
        return False
    return count > 1 or command.output_names == (spec.parts[0].name,)


def _output_specs(spec: FunctionSpec, command: Open) -> tuple[tuple[StreamSpec, ...], tuple[str, ...]]:
    """R-052, R-053, R-058: Each output has an accept list of its own."""
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
