"""What a declaration says of outputs besides their number: sent by the context, sequences, retained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from invoker.author.decorator import function
from invoker.author.reader import read
from invoker.author.spec import FunctionSpec, ResultShape, StreamSpec
from invoker.context import Context
from invoker.errors import SpecError
from invoker.message import Output
from invoker.protocols import evergreen
from invoker.protocols.evergreen.options import nodes_of
from tests.bodies import run


def streams(xs: Iterator[int], ctx: Context) -> None: ...
def maps(x: int, ctx: Context) -> None: ...
def unsaid(xs: Iterator[int], ctx: Context): ...


def yields(xs: Iterator[int], ctx: Context) -> Iterator[int]:
    ctx.outputs["b"].send(1)
    yield from xs


def returns(x: int, ctx: Context) -> int:
    ctx.outputs["b"].send(x)
    return x


def names(outputs: Any) -> list[str]:
    return [one.name for one in outputs]


@pytest.mark.parametrize("fn", [streams, maps, unsaid, yields, returns])
def test_E126_outputs_that_are_sent_to_are_declared_by_name(fn: Any):
    """They need not be returned by a function that takes its context."""
    spec = read(function(outputs=("a", "b"))(fn))
    assert names(spec.outputs) == ["a", "b"]
    assert not spec.open_outputs
    returned = {
        streams: ResultShape.NOTHING,
        maps: ResultShape.NOTHING,
        unsaid: ResultShape.UNKNOWN,
        yields: ResultShape.STREAM,
    }
    assert spec.call.result is returned.get(fn, ResultShape.VALUE)


def test_one_output_that_is_sent_to_is_told_by_the_code():
    """Without the context's outputs in it, None is a value like any other (R-042)."""

    def sends(x: int, ctx: Context) -> None:
        ctx.outputs["a"].send(x)

    assert read(function(outputs="a")(sends)).call.result is ResultShape.NOTHING
    assert read(function(outputs="a")(maps)).call.result is ResultShape.VALUE
    assert read(function(outputs="a")(streams)).call.result is ResultShape.NOTHING


def test_without_a_context_the_number_of_outputs_is_what_is_returned():
    """Nobody could send to the others."""

    def outputs(xs: Iterator[int]) -> None: ...

    with pytest.raises(SpecError, match="names 2 outputs, but 'outputs' has 0"):
        read(function(outputs=("a", "b"))(outputs))

    @function(outputs=("a", "b"))
    def other(xs: Iterator[int], ctx: Context) -> Iterator[int]:
        yield from xs

    with pytest.raises(SpecError, match="names 2 outputs, but 'other' has 1"):
        read(other)


async def test_what_a_function_returns_that_only_sends_is_no_value():
    """Its mapping gives nothing, sync or async."""
    seen: list[int] = []

    @function(outputs=("a", "b"))
    def sync(x: int, ctx: Context) -> None:
        seen.append(x)

    @function(outputs=("a", "b"))
    async def asynchronous(x: int, ctx: Context) -> None:
        seen.append(x)

    @function(outputs=("a", "b"), concurrency=2)
    async def overlapping(x: int, ctx: Context) -> None:
        seen.append(x)

    for fn in (sync, asynchronous, overlapping):
        assert await run(fn, [1, 2]) == [[]]
    assert seen == [1, 2] * 3


def marks_of(spec: FunctionSpec, output: StreamSpec) -> tuple[bool, bool]:
    nodes = nodes_of(spec)
    return nodes.is_sequence(output.name), nodes.is_retained(output.name)


def test_outputs_may_be_sequences_or_not_retained():
    """All of them, or those that are named; by default none is a sequence, and all are retained."""

    def tag(xs: Iterator[int]) -> Iterator[Output]:
        yield Output("a", 1)

    def marks(**said: Any) -> list[tuple[bool, bool]]:
        spec = read(function(outputs=("a", "b"), options=[evergreen.Nodes(**said)])(tag))
        return [marks_of(spec, one) for one in spec.outputs]

    assert marks() == [(False, True), (False, True)]
    assert marks(sequence=True, retain=False) == [(True, False), (True, False)]
    assert marks(sequence="b", retain=["a"]) == [(False, True), (True, False)]
    assert marks(sequence=(), retain={"a", "b"}) == [(False, True), (False, True)]


def test_outputs_whose_number_is_open_are_all_alike():
    """There are no names yet that could tell them apart."""

    def tag(xs: Iterator[int]) -> Iterator[Output]:
        yield Output("a", 1)

    for said, marks in (({}, (False, True)), ({"sequence": True, "retain": False}, (True, False))):
        spec = read(function(options=[evergreen.Nodes(**said)])(tag))
        assert marks_of(spec, spec.any_output) == marks
    with pytest.raises(SpecError, match="names 'a', which it does not have; there are none"):
        read(function(options=[evergreen.Nodes(retain=["a"])])(tag))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"sequence": ["sum", "totl"]}, "names 'totl', which it does not have; did you mean 'total'?"),
        ({"retain": "zzz"}, "names 'zzz', which it does not have; there are sum, total"),
        ({"retain": 3}, "evergreen.Nodes(retain=3) must be True, False, or names of outputs"),
        ({"sequence": [3]}, "evergreen.Nodes(sequence=...) takes names; 3 is a int"),
        (
            {"sequence": None},
            "evergreen.Nodes(sequence=None) must be True, False, or names of outputs",
        ),
    ],
)
def test_names_of_outputs_that_it_does_not_have_are_refused(said: dict[str, Any], text: str):
    """Like those of media types: at start, with the fix."""

    def both(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
        return xs, xs

    with pytest.raises(SpecError) as refused:
        read(function(outputs=("sum", "total"), options=[evergreen.Nodes(**said)])(both))
    assert text in str(refused.value)
