"""`read`: reads the signature of a function into a `FunctionSpec`.

Annotations decide; where there are none, a generator function streams and a plain function is request/reply. The
decorator `@function` overrides both. A signature that cannot be understood is refused at the start, not at the first
invocation, with one sentence that contains the fix.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from typing import Any

from invoker.author.loader import module_of
from invoker.author.options import with_media_types, with_tensors
from invoker.author.parameters import Argument, every_parameter, fixes_inputs, input_order, input_specs, read_arguments
from invoker.author.returns import check_names, outputs_of
from invoker.author.signature import Facts, examine, layers
from invoker.author.spec import (
    WANTED,
    Batching,
    Bounds,
    CallPlan,
    FunctionSpec,
    HookSpec,
    ResultShape,
    Slot,
    StreamSpec,
    Style,
)
from invoker.errors import HookError, SpecError


def read(function: Any, *, entrypoint: str = "", name: str = "") -> FunctionSpec:
    """Read the signature of a function of any shape.

    Args:
        function: Function, method, lambda, partial, instance with ``__call__``, or class of such instances.
        entrypoint: The entrypoint of the function, which the spec records.
        name: The name in the catalogue, if the decorator gives none.

    Raises:
        SpecError: The signature was not understood.
        HookError: A hook is not callable (R-022).
    """
    facts = examine(function, name)
    options = facts.options
    parameters = read_arguments(facts)
    style = _style(facts, parameters)
    is_async = _is_async(facts, parameters)
    _check_generator(facts)
    inputs = [one for one in parameters if one.reading.slot is None]
    specs = input_specs(facts, inputs, style)
    order = input_order(facts, inputs)
    known = every_parameter(facts, inputs, specs, order, style=style, is_async=is_async)
    streams = {one.name: one for one in specs} | {
        one.stream.name: one.stream for one in known if one.stream is not None
    }
    typed = dict(zip(streams, _inputs(facts, tuple(streams.values())), strict=True))
    known = tuple(one if one.stream is None else replace(one, stream=typed[one.stream.name]) for one in known)
    is_open = any(one.variadic for one in inputs) and not fixes_inputs(options, inputs)
    given = outputs_of(facts, style, sends=any(one.reading.context for one in parameters))
    if any(one.reading.slot is not None and one.reading.slot.index == WANTED for one in parameters):
        check_names(facts, given)
    outputs = with_tensors(facts, given.outputs, options.output_tensors)
    outputs = with_media_types(facts, outputs, options.output_types, "output_types")
    slots = tuple(
        replace(one.reading.slot or Slot(order[one.name]), keyword=one.keyword)
        for one in parameters
        if not one.variadic
    )
    spec = FunctionSpec(
        name=options.name or name or facts.name,
        entrypoint=entrypoint,
        modules=_modules(facts, entrypoint),
        doc=facts.doc,
        style=style,
        is_async=is_async,
        inputs=tuple(typed[one.name] for one in specs),
        outputs=outputs,
        open_inputs=is_open,
        open_outputs=given.is_open,
        parts=_like(outputs, given.parts),
        concurrency=_concurrency(facts, style, is_async=is_async),
        version=options.version or _module_version(facts, entrypoint),
        batching=Batching(options.batch_max, options.batch_wait_ms),
        examples=options.examples,
        safe=options.safe,
        options=options.options,
        hooks=_hooks(facts, function),
        bounds=Bounds(options.timeout_s, options.max_calls, options.calls_per_minute, options.memory_bytes),
        isolation=options.isolation,
        optional=tuple(one.stream for one in known if one.stream and one.is_optional and not one.is_variadic),
        open_names=any(one.is_variadic and one.by_keyword for one in known),
        call=CallPlan(
            slots, any(one.variadic for one in inputs), given.result, facts.is_class, parts=given.keys, parameters=known
        ),
    )
    for option in options.options.values():
        spec = option.applied(spec)
    return spec


def _style(facts: Facts, parameters: list[Argument]) -> Style:
    streams = [one for one in parameters if one.reading.stream]
    yields = facts.is_generator or facts.is_async_generator
    must = bool(streams) or yields or bool(facts.returned.stream)
    if facts.options.style is Style.REQUEST_REPLY and must:
        why = (
            f"its parameter '{streams[0].name}' is {streams[0].reading.text}"
            if streams
            else "its body yields"
            if yields
            else f"it returns {facts.returned.text}"
        )
        raise SpecError(
            f"'{facts.name}' is declared request/reply, but {why}; drop style= or make it take and return values"
        )
    if must or facts.options.style is Style.STREAMING:
        return Style.STREAMING
    # A function without annotations streams if this attribute of its module is ``"streaming"``.
    model = facts.globals.get("interaction_model")
    silent = not any(one.reading.said for one in parameters if one.reading.slot is None)
    if silent and (parameters or facts.returned.result is ResultShape.UNKNOWN) and model == "stream":
        return Style.STREAMING
    return Style.REQUEST_REPLY


def _is_async(facts: Facts, parameters: list[Argument]) -> bool:
    """Whether the function runs on the loop; then every stream that it takes or gives must be async."""
    returned = facts.returned
    is_async = facts.is_coroutine or facts.is_async_generator or returned.awaited or returned.stream == "async"
    asynchronous = [one for one in parameters if one.reading.stream == "async"]
    if asynchronous and facts.is_generator:
        first = asynchronous[0]
        raise SpecError(
            f"parameter '{first.name}' of '{facts.name}' is {first.reading.text}, but a sync generator cannot read it; "
            f"write `async def {facts.name}`, or annotate {first.reading.text.removeprefix('Async')}"
        )
    is_async = is_async or bool(asynchronous)
    if is_async and facts.is_generator:
        raise SpecError(
            f"'{facts.name}' is a sync generator annotated to return {returned.text}; "
            f"write `async def {facts.name}`, or annotate {returned.text.removeprefix('Async')}"
        )
    for one in parameters:
        if is_async and one.reading.stream == "sync":
            raise SpecError(
                f"parameter '{one.name}' of the async function '{facts.name}' is {one.reading.text}; "
                f"write {_asynchronous(one.reading.text)} and read it with `async for`"
            )
    if is_async and returned.stream in ("sync", "mixed"):
        raise SpecError(
            f"the async function '{facts.name}' is annotated to return {returned.text}; "
            f"its outputs are async iterators: write {_asynchronous(returned.text)}"
        )
    return is_async


def _asynchronous(text: str) -> str:
    for kind in ("Iterator", "Iterable", "Generator"):
        text = text.replace(f"Async{kind}", kind).replace(kind, f"Async{kind}")
    return text


def _check_generator(facts: Facts) -> None:
    returned = facts.returned
    yields = facts.is_generator or facts.is_async_generator
    if not yields or returned.result in (ResultShape.STREAM, ResultShape.UNKNOWN):
        return
    kind = "AsyncIterator" if facts.is_async_generator else "Iterator"
    item = {ResultShape.SEVERAL: "Output", ResultShape.NOTHING: "..."}.get(returned.result, returned.text)
    raise SpecError(
        f"'{facts.name}' is annotated to return {returned.text}, but its body yields, which makes it a generator; "
        f"annotate {kind}[{item}], or return instead of yielding"
    )


def _inputs(facts: Facts, specs: tuple[StreamSpec, ...]) -> tuple[StreamSpec, ...]:
    specs = with_tensors(facts, specs, facts.options.input_tensors)
    return with_media_types(facts, specs, facts.options.input_types, "input_types")


def _like(outputs: tuple[StreamSpec, ...], parts: tuple[StreamSpec, ...]) -> tuple[StreamSpec, ...]:
    """Copy the media types of the only output to its parts."""
    whole = outputs[0] if outputs else StreamSpec("out")
    return tuple(replace(one, media_types=whole.media_types) for one in parts)


def _modules(facts: Facts, entrypoint: str) -> tuple[str, ...]:
    found: list[str] = []
    for name in (module_of(entrypoint), str(facts.globals.get("__name__", ""))):
        parts = name.split(".")
        found += [".".join(parts[:count]) for count in range(len(parts), 0, -1) if name]
    return tuple(dict.fromkeys(found))


def _module_version(facts: Facts, entrypoint: str) -> str:
    """The ``__version__`` of the module that was named, of its package, or of the module that defines the function."""
    module = entrypoint.partition(":")[0]
    places = [vars(sys.modules[name]) for name in (module, module.partition(".")[0]) if name in sys.modules]
    found = (place.get("__version__") for place in (*places, facts.globals))
    return next((one for one in found if isinstance(one, str)), "")


def _concurrency(facts: Facts, style: Style, *, is_async: bool) -> int:
    wanted = facts.options.concurrency
    if wanted > 1 and not is_async:
        raise SpecError(
            f"@function(concurrency={wanted}) needs an async function, and '{facts.name}' is sync; "
            f"write `async def {facts.name}`, or drop concurrency="
        )
    if wanted > 1 and style is Style.STREAMING:
        raise SpecError(
            f"@function(concurrency={wanted}) is for request/reply functions, and '{facts.name}' streams; drop "
            "concurrency= and overlap the work inside"
        )
    return wanted


def _hooks(facts: Facts, function: Any) -> HookSpec:
    """Hooks of the decorator; without a decorator, attributes of the function: ``fn.init = load``."""
    chain = list(layers(function))
    found: dict[str, Any] = {}
    for kind in ("init", "destroy", "ready"):
        hook = getattr(facts.options, kind)
        for layer in chain:
            if hook is None and inspect.isfunction(layer):
                hook = vars(layer).get(kind)
        if hook is not None and not callable(hook):
            raise HookError(
                f"the {kind} hook of '{facts.name}' is of type {type(hook).__name__}, which cannot be called; "
                "give a function without arguments"
            )
        found[kind] = hook
    return HookSpec(**found, timeout_s=facts.options.hook_timeout_s)
