"""The spec of a function with just the inputs that a caller names; `invoker.author.binding` says what names mean.

Most callers name none: they feed a function's own inputs by index. Where names decide, a parameter with a default may
be an input, or be left to its default, and ``**kwargs`` takes names that are no parameter's. `bind` does this for names
of inputs, `bind_options` for riff's labels.
"""

from __future__ import annotations

from dataclasses import replace

from invoker.author.binding import KEYWORD, Assignment, Binder
from invoker.author.spec import FunctionSpec, ResultShape, Slot, Style
from invoker.errors import ProtocolViolation
from invoker.errors.wording import known_as

__all__ = ["bind", "bind_options"]


def bind(spec: FunctionSpec, names: tuple[str, ...]) -> FunctionSpec:
    """The spec of the same function with exactly these inputs, in this order.

    Args:
        spec: The spec as it was read.
        names: The names of the inputs; parameters that are not named keep their defaults.

    Raises:
        ProtocolViolation: A name is unknown, given twice or missing, or cannot be given without another.
    """
    if spec.inputs and spec.inputs[0].is_ignored and names == (spec.inputs[0].name,) and not spec.open_names:
        return spec
    found = Binder(spec).named(names)
    if found.faults:
        raise ProtocolViolation(str(found.faults[0]))
    taken = [one for one in found.parameters if one is not None]
    inputs = found.inputs
    style, result = spec.style, spec.call.result
    if style is Style.REQUEST_REPLY and any(one.streams for one in taken):
        # A function that is handed a stream is called once an invocation. Its other inputs stay values.
        style, result = Style.STREAMING, ResultShape.VALUE if result is not ResultShape.NOTHING else result
        inputs = tuple(replace(one, single=not each.streams) for one, each in zip(inputs, taken, strict=True))
    call = replace(spec.call, slots=_slots(spec, found), variadic=False, result=result)
    return replace(spec, style=style, inputs=inputs, open_inputs=False, call=call)


def _slots(spec: FunctionSpec, found: Assignment) -> tuple[Slot, ...]:
    """The arguments of the call, in the order of the parameters."""
    slots: list[Slot] = []
    indexes = {name: index for index, name in enumerate(found.names)}
    by_position_only = {id(one) for one in found.parameters if one is not None and not one.by_keyword}
    last = max((place for place, one in enumerate(spec.call.parameters) if id(one) in by_position_only), default=-1)
    is_skipped = False  # a parameter is not passed by position, so that later ones cannot be passed so either
    for place, one in enumerate(spec.call.parameters):
        if one.is_variadic and one.is_optional:
            each = [(index, name) for name, index in indexes.items() if found.parameters[index] is one]
            slots += (Slot(index, name.removeprefix(KEYWORD) if one.by_keyword else "") for index, name in each)
            continue
        index = indexes.get(one.stream.name) if one.stream is not None else None
        slot = one.slot or (None if index is None else Slot(index))
        if slot is None:
            is_skipped = is_skipped or (one.by_position and not one.is_variadic)
        elif one.by_position and not is_skipped and (place < last or not (one.is_optional and one.by_keyword)):
            slots.append(replace(slot, keyword=""))
        else:
            slots.append(replace(slot, keyword=one.name))
            is_skipped = is_skipped or one.by_position
    return tuple(slots)


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
    streams = {one.stream.name for one in spec.call.parameters if one.stream is not None and one.streams}
    # A stream has no first value to wait for, so a caller who sends no names cannot give it.
    chosen = names[len(labels) :] if names else tuple(name for name in further if name not in streams)
    bound = _bound(spec, labels + chosen, names)
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
    bound = _bound(spec, tuple(called), names)
    inputs = tuple(
        replace(one, single=one.single or one.name in options, is_option=one.name in options) for one in bound.inputs
    )
    return replace(bound, inputs=inputs)


def _bound(spec: FunctionSpec, names: tuple[str, ...], sent: tuple[str, ...]) -> FunctionSpec:
    found = Binder(spec).named(names)
    if found.faults and found.faults[0].code == "unknown_arg":
        raise ProtocolViolation(f"{found.faults[0]}; inputNames were {list(sent)}")
    return bind(spec, names)


def _signed(own: tuple[str, ...], options: tuple[str, ...]) -> str:
    return ", ".join((*own, *(f"{name}=..." for name in options)))
