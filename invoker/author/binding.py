"""Binds inputs to parameters by name, for callers who say which parameters get an input stream.

Most callers do not: they feed a function's own inputs by index. Where names decide, a parameter with a default may be
an input, or be left to its default, and ``**kwargs`` takes names that are no parameter's. `parameters` reads a
signature for that, once; `bind` makes the spec of a function with just the inputs that were named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from invoker.author.annotations import Reading, read_parameter
from invoker.author.parameters import Argument, input_spec
from invoker.author.signature import Facts
from invoker.author.spec import FunctionSpec, Parameter, ResultShape, Slot, StreamSpec, Style
from invoker.errors import ProtocolViolation
from invoker.errors.wording import known_as

__all__ = ["KEYWORD", "bind", "bind_options", "parameters"]

KEYWORD: Final = "**"
"""Prefix for the name of a ``**kwargs`` input that would be the name of another input without it."""


def parameters(
    facts: Facts,
    inputs: Sequence[Argument],
    specs: Sequence[StreamSpec],
    order: dict[str, int],
    *,
    style: Style,
    is_async: bool,
) -> tuple[Parameter, ...]:
    """List every parameter, each with the description of the input that it can become.

    Args:
        facts: The facts of the function.
        inputs: The parameters that are inputs in any case.
        specs: What those take, in the order of their index.
        order: Their indexes by name.
        style: The style of the function.
        is_async: Whether it runs on the loop.
    """
    known = {one.name: one for one in inputs}
    found: list[Parameter] = []
    for one in facts.parameters:
        reading = read_parameter(one, facts.options.inputs or ())
        made = Parameter(
            one.name,
            slot=reading.slot,
            is_optional=one.default is not one.empty or one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD),
            by_position=one.kind not in (one.KEYWORD_ONLY, one.VAR_KEYWORD),
            by_keyword=one.kind not in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL),
            is_variadic=one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD),
            streams=bool(reading.stream),
            default=None if one.default is one.empty else one.default,
        )
        argument = known.get(one.name)
        if reading.slot is not None:
            found.append(made)
        elif argument is None:
            found.append(replace(made, stream=_spare(facts, one.name, reading, style=style, is_async=is_async)))
        elif argument.variadic and len(specs) >= len(inputs) and facts.options.inputs is not None:
            several = specs[len(inputs) - 1 :]  # the decorator says how many there are
            found += [replace(made, stream=spec, is_optional=False) for spec in several]
        else:
            index = len(specs) - 1 if argument.variadic else order[one.name]
            found.append(replace(made, stream=specs[index]))
    return tuple(found)


def _spare(facts: Facts, name: str, reading: Reading, *, style: Style, is_async: bool) -> StreamSpec | None:
    """Describe the input that a parameter becomes if a caller names it; None if it cannot be an input."""
    if reading.stream and ((reading.stream == "async") is not is_async or facts.options.style is Style.REQUEST_REPLY):
        return None
    spec = input_spec(facts, Argument(name, reading, name), style)
    return replace(spec, single=style is Style.STREAMING and not reading.stream)


def bind(spec: FunctionSpec, names: tuple[str, ...]) -> FunctionSpec:
    """The spec of the same function with exactly these inputs, in this order.

    Args:
        spec: The spec as it was read.
        names: The names of the inputs; parameters that are not named keep their defaults.

    Raises:
        ProtocolViolation: A name is unknown, given twice or missing, or cannot be given without another.
    """
    own = [one.stream.name for one in spec.call.parameters if one.stream is not None]
    names = tuple([name if name.isascii() else known_as(name, own) for name in names])
    indexes = {name: index for index, name in enumerate(names)}
    if len(indexes) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ProtocolViolation(f"input {twice!a} of '{spec.name}' is given twice")
    if spec.inputs and spec.inputs[0].is_ignored and names == (spec.inputs[0].name,) and not spec.open_names:
        return spec
    slots, taken = _slots(spec, indexes)
    for name in names:
        if name not in taken:
            raise ProtocolViolation(_unknown(spec, name))
    inputs = tuple(taken[name].stream or StreamSpec(name) for name in names)
    style, result = spec.style, spec.call.result
    if style is Style.REQUEST_REPLY and any(taken[name].streams for name in names):
        # A function that is handed a stream is called once an invocation. Its other inputs stay values.
        style, result = Style.STREAMING, ResultShape.VALUE if result is not ResultShape.NOTHING else result
        inputs = tuple(replace(one, single=not taken[one.name].streams) for one in inputs)
    call = replace(spec.call, slots=slots, variadic=False, result=result)
    return replace(spec, style=style, inputs=inputs, open_inputs=False, call=call)


def bind_options(spec: FunctionSpec, names: tuple[str, ...]) -> FunctionSpec:
    """The spec of the same function with those options among its inputs that a riff caller may give (R-164 to R-167).

    Args:
        spec: The spec as it was read; it has `FunctionSpec.spare`.
        names: As the caller sent them: labels of the required inputs, then names of options; empty: it sent none.

    Raises:
        ProtocolViolation: There are too few or too many names, or one of those behind the labels is no option's.
    """
    options = tuple(one.name for one in spec.spare)
    if spec.open_inputs:
        return _bind_open(spec, names, options)
    own = tuple(one.name for one in spec.inputs if not one.is_ignored)
    labels = own or options[:1]  # if every parameter has a default, the first one is what is mapped
    further = options if own else options[1:]
    if not len(own) <= len(names) <= len(labels) + len(further) and names:
        counts = f"{len(own)} to {len(labels) + len(further)}"
        raise ProtocolViolation(
            f"Invalid input count {len(names)}: '{spec.name}' takes {counts} inputs ({_signed(own, options)}); "
            f"inputNames were {list(names)}"
        )
    announced = tuple([known_as(name, further) for name in names[len(labels) :]])
    for name in announced:
        if name not in further:
            near = get_close_matches(name, further, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(further)}"
            raise ProtocolViolation(
                f"inputNames {list(names)} end with {name!a}, but '{spec.name}' has no such option; {hint}"
            )
    streams = {one.stream.name for one in spec.call.parameters if one.stream is not None and one.streams}
    # A stream has no first value to wait for, so a caller who sends no names cannot give it.
    chosen = announced if names else tuple(name for name in further if name not in streams)
    bound = bind(spec, labels + chosen)
    inputs = tuple(
        replace(one, is_option=index >= len(own) and one.name not in streams, single=one.single or index >= len(labels))
        if one.name not in streams
        else one
        for index, one in enumerate(bound.inputs)
    )
    return replace(bound, inputs=inputs)


def _bind_open(spec: FunctionSpec, names: tuple[str, ...], options: tuple[str, ...]) -> FunctionSpec:
    """With ``*args`` every name is a label, but those of options behind the first ones."""
    fixed = tuple(one.name for one in spec.inputs[:-1])
    free = max(len(fixed), 1)
    names = tuple([known_as(name, options) for name in names])
    called = [name if index >= free and name in options else f"#{index}" for index, name in enumerate(names)]
    called[: len(fixed)] = fixed
    bound = bind(spec, tuple(called))
    inputs = tuple(
        replace(one, single=one.single or one.name in options, is_option=one.name in options) for one in bound.inputs
    )
    return replace(bound, inputs=inputs)


def _signed(own: tuple[str, ...], options: tuple[str, ...]) -> str:
    return ", ".join((*own, *(f"{name}=..." for name in options)))


def _slots(spec: FunctionSpec, indexes: dict[str, int]) -> tuple[tuple[Slot, ...], dict[str, Parameter]]:
    """The arguments of the call, and which parameter takes each input."""
    slots: list[Slot] = []
    taken: dict[str, Parameter] = {}
    skipped = ""  # the first parameter not passed by position; later ones cannot be passed so either
    for one in spec.call.parameters:
        if one.is_variadic and one.by_keyword:
            continue
        if spec.open_inputs and one.is_variadic and one.stream is not None:
            rest = [name for name in indexes if name not in _own_names(spec) and not name.startswith(KEYWORD)]
            slots += (Slot(indexes[name]) for name in rest)
            taken.update((name, replace(one, stream=replace(one.stream, name=name))) for name in rest)
            continue
        name = one.stream.name if one.stream is not None else ""
        index = indexes.get(name) if one.stream is not None else None
        if one.slot is not None:
            index = one.slot.index
        if index is None:
            if not one.is_optional:
                raise ProtocolViolation(f"'{spec.name}' needs its input '{name}', which is not given; {_there(spec)}")
            skipped = skipped or (one.name if one.by_position and not one.is_variadic else "")
            continue
        if one.by_position and not skipped and not (one.is_optional and one.by_keyword):
            slots.append(replace(one.slot or Slot(index), keyword=""))
        elif one.by_keyword:
            slots.append(replace(one.slot or Slot(index), keyword=one.name))
            skipped = skipped or (one.name if one.by_position else "")
        else:
            raise ProtocolViolation(f"input '{name}' of '{spec.name}' cannot be given without '{skipped}'")
        if one.slot is None:
            taken[name] = one
    more = _rest(spec, [name for name in indexes if name not in taken])
    slots += (Slot(indexes[name], one.name) for name, one in more.items())
    return tuple(slots), taken | more


def _own_names(spec: FunctionSpec) -> set[str]:
    return {one.stream.name for one in spec.call.parameters if one.stream is not None and not one.is_variadic}


def _rest(spec: FunctionSpec, names: list[str]) -> dict[str, Parameter]:
    """The inputs that ``**kwargs`` takes: those whose names no parameter has."""
    if not spec.open_names:
        return {}
    pattern = spec.call.parameters[-1]  # ``**kwargs`` is the last parameter of any signature
    own = {one.name for one in spec.call.parameters if one.by_keyword and not one.is_variadic}
    stream = pattern.stream or StreamSpec(pattern.name)
    found = {name: name.removeprefix(KEYWORD) for name in names}
    return {
        name: replace(pattern, name=keyword, stream=replace(stream, name=name))
        for name, keyword in found.items()
        if keyword not in own
    }


def _unknown(spec: FunctionSpec, name: str) -> str:
    near = get_close_matches(name, [one.name for one in (*spec.inputs, *spec.optional)], n=1)
    hint = f"did you mean '{near[0]}'?" if near else _there(spec)
    return f"'{spec.name}' has no input {name!a}; {hint}"


def _there(spec: FunctionSpec) -> str:
    known = dict.fromkeys(one.name for one in (*spec.inputs, *spec.optional))
    return f"there are {', '.join(known)}" if known else "there are none"
