"""Makes the spec of a function with only the inputs that a caller names; `invoker.author.binding` resolves the names.

Most callers give no names: they feed the function's own inputs by index. If the caller gives names, a parameter with a
default may be an input or keep its default, and ``**kwargs`` takes the names that belong to no parameter. `bind` does
this for names of inputs, `bind_options` for riff's labels.
"""

from __future__ import annotations

from dataclasses import replace

from invoker.author.binding import KEYWORD, Assignment, Binder
from invoker.author.spec import FunctionSpec, ResultShape, Slot, Style
from invoker.errors import ProtocolViolation
from invoker.errors.wording import known_as


def bind(binder: Binder, names: tuple[str, ...]) -> FunctionSpec:
    """The spec of the same function with exactly these inputs, in this order.

    Args:
        binder: The binder of the function.
        names: The names of the inputs; parameters that are not named keep their defaults.

    Raises:
        ProtocolViolation: A name is unknown, given twice or missing, or cannot be given without another.
    """
    spec = binder.spec
    if spec.inputs and spec.inputs[0].is_ignored and names == (spec.inputs[0].name,) and not spec.open_names:
        return spec
    found = binder.named(names)
    if found.faults:
        raise ProtocolViolation(str(found.faults[0]))
    taken = [one for one in found.parameters if one is not None]
    inputs = found.inputs
    style, result = spec.style, spec.call.result
    if style is Style.REQUEST_REPLY and any(one.streams for one in taken):
        # A function that receives a stream is called once an invocation.
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
    # whether an earlier parameter is not passed by position, so that later ones must be passed by keyword
    is_skipped = False
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


def bind_options(binder: Binder, names: tuple[str, ...]) -> FunctionSpec:
    """The spec of the same function with the options that a riff caller has named among its inputs (R-164 to R-167).

    Args:
        binder: The binder of the function.
        names: The names that the caller sent: labels of the required inputs, then names of options; empty if it sent
            none.

    Raises:
        ProtocolViolation: There are too few or too many names, or a name after the labels is not that of an option.
    """
    spec = binder.spec
    options = tuple(one.name for one in spec.spare)
    if spec.open_inputs:
        return _bind_open(binder, names, options)
    own = tuple(one.name for one in spec.inputs if not one.is_ignored)
    labels = own or options[:1]  # if every parameter has a default, the function is mapped over the first one
    called = (*labels[: len(names)], *names[len(labels) :])
    if not names:  # a stream has no first value to wait for, so a caller without names cannot give it
        streams = {one.stream.name for one in spec.call.parameters if one.stream is not None and one.streams}
        called = tuple(dict.fromkeys((*labels, *(one for one in options if one not in streams))))
    bound = _bound(binder, called, names)
    takers = binder.named(called).parameters
    inputs = tuple(
        replace(one, is_option=index >= len(own), single=one.single or index >= len(labels))
        if taker is not None and not taker.streams
        else one
        for index, (one, taker) in enumerate(zip(bound.inputs, takers, strict=True))
    )
    return replace(bound, inputs=inputs)


def _bind_open(binder: Binder, names: tuple[str, ...], options: tuple[str, ...]) -> FunctionSpec:
    """Bind the names for ``*args``, where every name is a label, except names of options after the required labels."""
    fixed = tuple(one.name for one in binder.spec.inputs[:-1])
    free = max(len(fixed), 1)
    names = tuple([known_as(name, options) for name in names])
    called = [name if index >= free and name in options else f"#{index}" for index, name in enumerate(names)]
    called[: len(fixed)] = fixed
    bound = _bound(binder, tuple(called), names)
    inputs = tuple(
        replace(one, single=one.single or one.name in options, is_option=one.name in options) for one in bound.inputs
    )
    return replace(bound, inputs=inputs)


def _bound(binder: Binder, names: tuple[str, ...], sent: tuple[str, ...]) -> FunctionSpec:
    """R-055: the text of a refusal has the names that were sent, and how many there may be."""
    faults, spec = binder.named(names).faults, binder.spec
    if not faults:
        return bind(binder, names)
    least = sum(not one.is_ignored for one in spec.inputs)
    most = least + len(spec.spare)
    takes = f"{least} or more" if spec.open_names else f"{least} to {most}" if least < most else f"{least}"
    raise ProtocolViolation(f"{faults[0]}; expected {takes} inputNames, got {len(sent)}: {list(sent)}")
