"""Determines the outputs of a function, their names and types, and whether one value is for several outputs.

A function has several outputs if it returns a tuple of iterators, yields ``Output(...)``, sends by the context (R-039,
E-126), or returns values in parts: tuples, or dicts by name. Parts are sent as one value to a caller that asks for one
output (R-042), unless the decorator names the outputs. If the parts are arrays and a caller asks for as many outputs as
there are parts, each part is an output, because a tensor holds only one array (G-066).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import NoneType
from typing import Any, NamedTuple

from invoker.author.parameters import wrong_names
from invoker.author.signature import Facts
from invoker.author.spec import ResultShape, StreamSpec, Style
from invoker.errors import SpecError


class Given(NamedTuple):
    """The result of a call, and the outputs.

    Attributes:
        result: The shape of the value that the call returns.
        outputs: The outputs in the order of their index.
        is_open: Whether the caller decides how many outputs there are.
        keys: The keys of the parts of each value, one for each output; empty: a value is for one output.
        parts: The parts of a value, for callers that ask for them.
    """

    result: ResultShape
    outputs: tuple[StreamSpec, ...] = ()
    is_open: bool = False
    keys: tuple[str, ...] = ()
    parts: tuple[StreamSpec, ...] = ()


def outputs_of(facts: Facts, style: Style, *, sends: bool) -> Given:
    """Determine the outputs of a function (R-039).

    Args:
        facts: The facts of the function.
        style: The style of the function.
        sends: Whether it takes its context, and so may send to outputs that it does not return (E-126); in doubt the
            names in its code decide.

    Raises:
        SpecError: The decorator names more outputs than there are, or fewer.
    """
    returned, named = facts.returned, facts.options.outputs
    gives_nothing = NoneType if returned.annotation in (None, NoneType) and not sends else Any
    sends = sends and named is not None
    if sends and returned.result is ResultShape.NOTHING:
        assert named is not None
        if style is Style.STREAMING or len(named) > 1 or "outputs" in facts.names:
            return Given(ResultShape.NOTHING, tuple(StreamSpec(name) for name in named))
    result, outputs, is_open = returned.result, returned.outputs, returned.open
    if style is Style.REQUEST_REPLY:
        # None is also a value, so a request/reply function always has its output.
        tagged = is_open and result is ResultShape.VALUE
        result, outputs, is_open = ResultShape.VALUE, outputs or (StreamSpec("out", gives_nothing),), tagged
    elif (facts.is_generator or facts.is_async_generator) and result is ResultShape.UNKNOWN:
        result, outputs, is_open = ResultShape.STREAM, (StreamSpec("out"),), "Output" in facts.names
    if named is None:
        parts = returned.parts if returned.holds_arrays else ()
        return Given(result, () if is_open else outputs, is_open, parts=parts)
    if is_open or result is ResultShape.UNKNOWN:
        return Given(result, tuple(StreamSpec(name) for name in named))
    if len(named) == len(outputs):
        # An output that is declared as one tensor may come in a dict, as libraries return it.
        keys = tuple(named) if facts.options.output_tensors and len(named) == 1 else ()
        outputs = tuple(replace(one, name=name) for one, name in zip(outputs, named, strict=True))
        return Given(result, outputs, keys=keys)
    # Each value names its output by Output(...), or is sent by the context.
    says = "Output" in facts.names or (sends and "outputs" in facts.names)
    if result in (ResultShape.STREAM, ResultShape.VALUE) and len(named) > 1:
        if says:
            return Given(result, tuple(StreamSpec(name) for name in named))
        if (several := _named_parts(facts, named)) is not None:
            return Given(result, several[0], keys=several[1])
    raise SpecError(wrong_names("outputs", named, facts.name, [one.name for one in outputs]))


def check_names(facts: Facts, given: Given) -> None:
    """Make sure that the outputs have names if the function asks for the names of the wanted ones (G-060).

    Raises:
        SpecError: The outputs have only numbers, or the parameter was meant as an input.
    """
    returned = facts.returned
    is_named = returned.result is ResultShape.SEVERAL or (given.parts and not returned.is_unnamed)
    if facts.options.outputs is None and not given.is_open and not is_named:
        raise SpecError(
            f"'{facts.name}' takes 'output_names', but its outputs have no names; name them with "
            "@function(outputs=(...)), or return a NamedTuple or a TypedDict of arrays; if it is meant as an input, "
            "write @function(inputs=(..., 'output_names'))"
        )


def _named_parts(facts: Facts, named: Sequence[str]) -> tuple[tuple[StreamSpec, ...], tuple[str, ...]] | None:
    """The outputs that the decorator makes of the parts of a value, and their keys; None if the value has no parts."""
    returned = facts.returned
    if returned.parts:
        own = [one.name for one in returned.parts]
        if len(own) != len(named):
            raise SpecError(wrong_names("outputs", named, facts.name, own))
        if set(own) == set(named) and own != list(named):
            raise SpecError(
                f"@function(outputs={tuple(named)!r}) of '{facts.name}' names what it returns in another order "
                f"({', '.join(own)}); leave outputs= out, or keep the order"
            )
        outputs = tuple(replace(one, name=name) for one, name in zip(returned.parts, named, strict=True))
        return outputs, tuple(named) if returned.is_unnamed else tuple(own)
    if returned.each is not None:
        return tuple(replace(returned.each, name=name) for name in named), tuple(named)
    return None
