"""Determines which parameters of a function are inputs, in which order, and how each is passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from invoker.author.annotations import Reading, read_parameter
from invoker.author.decorator import Options
from invoker.author.signature import Facts
from invoker.author.spec import IGNORED, Parameter, StreamSpec, Style, Take
from invoker.errors import SpecError
from invoker.errors.wording import nearest


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter that is an input, or receives the context or the names of wanted outputs."""

    name: str
    reading: Reading
    keyword: str
    variadic: bool = False


def read_arguments(facts: Facts) -> list[Argument]:
    """The parameters that receive something, in the order of the call."""
    wanted = facts.options.inputs or ()
    found: list[Argument] = []
    skipped = False  # whether an earlier parameter keeps its default, so that later ones are passed by keyword
    for one in facts.parameters:
        try:
            reading = read_parameter(one, wanted)
        except SpecError as error:
            raise SpecError(f"parameter '{one.name}' of '{facts.name}': {error.detail}") from None
        if one.kind is one.VAR_KEYWORD:
            continue
        if one.kind is one.VAR_POSITIONAL:
            if not skipped:
                found.append(Argument(one.name, reading, "", variadic=True))
            continue
        is_key = one.name in facts.keys and not any(each.variadic for each in found)
        optional = one.default is not one.empty or (one.kind is one.KEYWORD_ONLY and not is_key)
        if optional and reading.slot is None and one.name not in wanted:
            if one.default is one.empty:
                raise SpecError(
                    f"the keyword-only parameter '{one.name}' of '{facts.name}' has no default and is not an input; "
                    f"give it a default, or make it an input with @function(inputs=(..., '{one.name}'))"
                )
            skipped = True
            continue
        by_name = skipped or one.kind is one.KEYWORD_ONLY
        if by_name and one.kind is one.POSITIONAL_ONLY:
            raise SpecError(
                f"the positional-only parameter '{one.name}' of '{facts.name}' follows one that keeps its default; "
                "remove the '/' or name both in @function(inputs=...)"
            )
        found.append(Argument(one.name, reading, one.name if by_name else ""))
    return found


def fixes_inputs(options: Options, inputs: list[Argument]) -> bool:
    """Whether the decorator names enough inputs to fix how many ``*args`` takes."""
    return options.inputs is not None and any(one.variadic for one in inputs) and len(options.inputs) >= len(inputs)


def input_order(facts: Facts, inputs: list[Argument]) -> dict[str, int]:
    """Give each input parameter its index; the decorator may order them by naming them (R-038)."""
    names = [one.name for one in inputs]
    wanted = facts.options.inputs
    if wanted is None or not _names_parameters(facts, wanted):
        return {name: index for index, name in enumerate(names)}
    missing = [one.name for one in inputs if one.name not in wanted and not one.variadic]
    if missing:
        raise SpecError(
            f"@function(inputs={wanted!r}) of '{facts.name}' leaves out its parameter '{missing[0]}'; add it or give "
            "it a default"
        )
    return {name: wanted.index(name) for name in names if name in wanted}


def _names_parameters(facts: Facts, wanted: Sequence[str]) -> bool:
    own = {one.name for one in facts.parameters if one.kind is not one.VAR_POSITIONAL}
    return bool(wanted) and all(name in own for name in wanted)


def input_specs(facts: Facts, inputs: list[Argument], style: Style) -> tuple[StreamSpec, ...]:
    """Describe the inputs in the order of their index."""
    wanted = facts.options.inputs
    order = input_order(facts, inputs)
    fallback = len(inputs) - 1  # a variadic parameter comes last, whatever its name
    ordered = sorted(inputs, key=lambda one: order.get(one.name, fallback))
    specs = [input_spec(facts, one, style) for one in ordered]
    if not specs and style is Style.REQUEST_REPLY:
        specs = [StreamSpec("in", IGNORED)]
    if wanted is None or _names_parameters(facts, wanted):
        return tuple(specs)
    if inputs and inputs[-1].variadic and len(wanted) >= len(specs):
        specs += [specs[-1]] * (len(wanted) - len(specs))
    if len(wanted) != len(specs):
        raise SpecError(wrong_names("inputs", wanted, facts.name, [one.name for one in specs]))
    return tuple(replace(one, name=name) for one, name in zip(specs, wanted, strict=True))


def wrong_names(option: str, wanted: Sequence[str], function: str, own: list[str]) -> str:
    """The error text for a decorator that gives another number of names than there are streams."""
    text = f"@function({option}={tuple(wanted)!r}) names {len(wanted)} {option}, but '{function}' has {len(own)}"
    for name in wanted:
        if name not in own and (near := nearest(name, own)):
            return f"{text}; did you mean '{near}' instead of '{name}'?"
    return f"{text} ({', '.join(own) or 'none'}); give one name for each"


def input_spec(facts: Facts, one: Argument, style: Style) -> StreamSpec:
    """Describe the input that one parameter takes: its name and type, and whether it is a stream."""
    reading = one.reading
    streams = bool(reading.stream) or (style is Style.STREAMING and not reading.said)
    item, take = reading.type, reading.take
    if facts.options.argument_type is not None and take is Take.PAYLOAD:
        take = facts.options.argument_type
        item = IGNORED if take is Take.HEADERS else item
    is_single = style is Style.STREAMING and not streams
    return StreamSpec(one.name, item, take, single=is_single, constraints=reading.constraints)


def every_parameter(
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
        specs: The specs of these inputs, in the order of their index.
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
            several = specs[len(inputs) - 1 :]  # the decorator fixes how many inputs there are
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
