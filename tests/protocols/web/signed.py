"""`signed`: a signature whose fields a test writes down, with the binder that `signature_of` would give it."""

from __future__ import annotations

from typing import Any

import msgspec

from invoker.author.binding import MOST_INPUTS, Binder
from invoker.author.spec import CallPlan, FunctionSpec, Parameter, StreamSpec
from invoker.protocols.web.fields import Field, Signature


def signed(inputs: tuple[str, ...], **fields: Any) -> Signature:
    """As `Signature`, whose arguments these are."""
    made = Signature(inputs, **fields)
    each = made.fields or (*(Field(name) for name in inputs), *made.options)
    parameters = [_parameter(one, is_rest=made.is_open and one.name == inputs[-1]) for one in each]
    if made.more is not None:
        parameters.append(Parameter("more", is_optional=True, by_position=False, is_variadic=True))
    spec = FunctionSpec(
        made.name,
        inputs=tuple(StreamSpec(name) for name in inputs),
        optional=tuple(StreamSpec(one.name) for one in each if one.is_option),
        open_inputs=made.is_open,
        open_names=made.more is not None,
        call=CallPlan(parameters=tuple(parameters)),
    )
    own = {*inputs} if made.is_open and not made.opens_values else set()
    streams = own | {one.name for one in made.fields if not (one.is_value or one.needs_value)}
    binder = Binder(spec, most=MOST_INPUTS, has_labels=False)
    return msgspec.structs.replace(made, binder=binder, streams=frozenset(streams))


def _parameter(one: Field, *, is_rest: bool) -> Parameter:
    if is_rest:
        return Parameter(one.name, StreamSpec(one.name), is_optional=True, by_keyword=False, is_variadic=True)
    return Parameter(one.name, StreamSpec(one.name), is_optional=one.is_option, by_position=not one.is_option)
