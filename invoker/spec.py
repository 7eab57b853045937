"""`FunctionSpec`: a function as its signature was understood, and `read`, which understands it.

Annotations decide; where there are none, a generator function streams and a plain function is request/reply. The
decorator `invoker.function.function` overrides both. What cannot be understood is refused with one sentence that says
what was met and how to mend it: at start, never at the first invocation.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from invoker.arguments import Argument, fixes_inputs, input_order, input_specs, read_arguments, wrong_names
from invoker.binding import parameters as every_parameter
from invoker.errors import HookError, SpecError
from invoker.function import MediaTypes, Options
from invoker.shape import (
    CONTEXT,
    HOOK_TIMEOUT_S,
    IGNORED,
    CallPlan,
    FunctionSpec,
    HookSpec,
    Ignored,
    Parameter,
    Result,
    Slot,
    StreamSpec,
    Style,
    Take,
)
from invoker.signature import Facts, examine, layers

__all__ = [
    "CONTEXT",
    "HOOK_TIMEOUT_S",
    "IGNORED",
    "CallPlan",
    "FunctionSpec",
    "HookSpec",
    "Ignored",
    "Parameter",
    "Result",
    "Slot",
    "StreamSpec",
    "Style",
    "Take",
    "read",
]


def read(function: Any, *, entrypoint: str = "", name: str = "") -> FunctionSpec:
    """Read the signature of a function of any shape.

    Args:
        function: Function, method, lambda, partial, instance with ``__call__``, or class of such instances.
        entrypoint: As it was loaded; only recorded.
        name: In the catalogue, where the decorator says none.

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
    inputs = [one for one in parameters if not one.reading.context]
    specs = input_specs(facts, inputs, style)
    order = input_order(facts, inputs)
    known = every_parameter(facts, inputs, specs, order, style=style, is_async=is_async)
    streams = {one.name: one for one in specs} | {
        one.stream.name: one.stream for one in known if one.stream is not None
    }
    typed = dict(
        zip(streams, _with_media_types(facts, tuple(streams.values()), options.input_types, "input_types"), strict=True)
    )
    known = tuple(one if one.stream is None else replace(one, stream=typed[one.stream.name]) for one in known)
    is_open = any(one.variadic for one in inputs) and not fixes_inputs(options, inputs)
    sends = any(one.reading.context for one in parameters)
    result, outputs, open_outputs = _outputs(facts, style, sends=sends)
    outputs = _marked(facts, _with_media_types(facts, outputs, options.output_types, "output_types"))
    slots = tuple(
        Slot(CONTEXT if one.reading.context else order[one.name], one.keyword) for one in parameters if not one.variadic
    )
    return FunctionSpec(
        name=options.name or name or facts.name,
        entrypoint=entrypoint,
        doc=facts.doc,
        style=style,
        is_async=is_async,
        inputs=tuple(typed[one.name] for one in specs),
        outputs=outputs,
        open_inputs=is_open,
        open_outputs=open_outputs,
        any_output=_any_output(options),
        concurrency=_concurrency(facts, style, is_async=is_async),
        rows=options.rows,
        batch_max=options.batch_max,
        batch_wait_ms=options.batch_wait_ms,
        hooks=_hooks(facts, function),
        optional=tuple(one.stream for one in known if one.stream and one.is_optional and not one.is_variadic),
        open_names=any(one.is_variadic and one.by_keyword for one in known),
        call=CallPlan(slots, any(one.variadic for one in inputs), result, facts.is_class, known),
    )


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
    # the module may say so, for a function that says nothing else itself.
    silent = not any(one.reading.said for one in parameters if not one.reading.context)
    if silent and parameters and facts.globals.get("interaction_model") == "stream":
        return Style.STREAMING
    return Style.REQUEST_REPLY


def _is_async(facts: Facts, parameters: list[Argument]) -> bool:
    """Whether it runs on the loop; every stream it takes and gives must then be an async one."""
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
    if not yields or returned.result in (Result.STREAM, Result.UNKNOWN):
        return
    kind = "AsyncIterator" if facts.is_async_generator else "Iterator"
    item = {Result.SEVERAL: "Output", Result.NOTHING: "..."}.get(returned.result, returned.text)
    raise SpecError(
        f"'{facts.name}' is annotated to return {returned.text}, but its body yields, which makes it a generator; "
        f"annotate {kind}[{item}], or return instead of yielding"
    )


def _outputs(facts: Facts, style: Style, *, sends: bool) -> tuple[Result, tuple[StreamSpec, ...], bool]:
    """The shape of the result, the outputs, and whether their number is open (R-039).

    A function that takes its context may send to outputs that it does not return (E-126); ``sends`` says that it may,
    and the names in its code whether it does where that would be in doubt.
    """
    returned, named = facts.returned, facts.options.outputs
    sends = sends and named is not None
    if sends and returned.result is Result.NOTHING:
        assert named is not None
        if style is Style.STREAMING or len(named) > 1 or "outputs" in facts.names:
            return Result.NOTHING, tuple(StreamSpec(name) for name in named), False
    result, outputs, is_open = returned.result, returned.outputs, returned.open
    if style is Style.REQUEST_REPLY:
        # None is a value, so a request/reply function always has its output.
        tagged = is_open and result is Result.VALUE
        result, outputs, is_open = Result.VALUE, outputs or (StreamSpec("out"),), tagged
    elif (facts.is_generator or facts.is_async_generator) and result is Result.UNKNOWN:
        result, outputs, is_open = Result.STREAM, (StreamSpec("out"),), "Output" in facts.names
    if named is None:
        return result, () if is_open else outputs, is_open
    if is_open or result is Result.UNKNOWN:
        return result, tuple(StreamSpec(name) for name in named), False
    if len(named) != len(outputs):
        # More names than iterators: the values will say by Output(...) which of the names they are for, or are sent.
        says = "Output" in facts.names or (sends and "outputs" in facts.names)
        if result in (Result.STREAM, Result.VALUE) and len(named) > 1 and says:
            return result, tuple(StreamSpec(name) for name in named), False
        raise SpecError(wrong_names("outputs", named, facts.name, [one.name for one in outputs]))
    return result, tuple(replace(one, name=name) for one, name in zip(outputs, named, strict=True)), False


def _with_media_types(
    facts: Facts, specs: tuple[StreamSpec, ...], said: MediaTypes, option: str
) -> tuple[StreamSpec, ...]:
    if not said:
        return specs
    if not isinstance(said, Mapping):
        types = _media_types(facts, said, option)
        return tuple(replace(one, media_types=types) for one in specs)
    _check_names(facts, option, said, [one.name for one in specs])
    known = {name: _media_types(facts, types, option) for name, types in said.items()}
    return tuple(replace(one, media_types=known.get(one.name, ())) for one in specs)


def _marked(facts: Facts, outputs: tuple[StreamSpec, ...]) -> tuple[StreamSpec, ...]:
    """Say which outputs are sequences, and which are retained."""
    names = [one.name for one in outputs]
    sequence, retain = facts.options.sequence, facts.options.retain
    chosen = {}
    for option, said in (("sequence", sequence), ("retain", retain)):
        if not isinstance(said, bool):
            _check_names(facts, option, said, names)
        chosen[option] = {name for name in names if said is True or (said is not False and name in said)}
    return tuple(
        replace(one, sequence=one.name in chosen["sequence"], retain=one.name in chosen["retain"]) for one in outputs
    )


def _any_output(options: Options) -> StreamSpec:
    return StreamSpec("out", object, sequence=options.sequence is True, retain=options.retain is not False)


def _check_names(facts: Facts, option: str, said: Iterable[str], names: list[str]) -> None:
    for name in said:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(names) or 'none'}"
            raise SpecError(f"@function({option}=...) of '{facts.name}' names '{name}', which it does not have; {hint}")


def _media_types(facts: Facts, said: str | Iterable[str], option: str) -> tuple[str, ...]:
    from invoker.mediatypes import parse  # only decorated functions need it

    types = (said,) if isinstance(said, str) else tuple(said)
    for text in types:
        try:
            parse(text)
        except ValueError as error:
            raise SpecError(
                f"@function({option}=...) of '{facts.name}' has {text!r}, which is no media type ({error}); "
                "write one like 'image/png'"
            ) from None
    return types


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
    """Hooks of the decorator, else attributes of a plain function: ``fn.init = load``."""
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
