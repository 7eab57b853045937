"""Which parameters are inputs, and how they are passed."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from invoker.author.decorator import function
from invoker.author.parameters import read_arguments
from invoker.author.reader import read
from invoker.author.signature import examine
from invoker.author.spec import IGNORED, Style, Take
from invoker.context import Context
from invoker.errors import SpecError
from invoker.message import Headers, Message


def types_of(spec: Any) -> list[Any]:
    return [stream.type for stream in spec.inputs]


def names_of(streams: Any) -> list[str]:
    return [stream.name for stream in streams]


def topk(items: Iterator[str], k: int) -> Iterator[str]:
    yield from list(items)[:k]


def passed(fn: Any) -> list[tuple[str, str]]:
    return [(one.name, one.keyword) for one in read_arguments(examine(fn))]


def test_inputs_are_passed_by_position_until_one_is_left_out() -> None:
    """After that, by keyword."""

    @function(inputs=("a", "c"))
    def fn(a: int, b: int = 0, c: int = 0, *, ctx: Context, **rest: Any) -> int:
        return a

    assert passed(fn) == [("a", ""), ("c", "c"), ("ctx", "ctx")]


def test_variadic_parameters_count_unless_a_default_stands_before_them() -> None:
    """A default before them could not be kept."""

    def open_end(a: Iterator[int], *rest: Iterator[int]) -> Iterator[int]:
        yield 1

    def default(a: int, b: int = 0, *rest: int) -> int:
        return a

    assert passed(open_end) == [("a", ""), ("rest", "")]
    assert passed(default) == [("a", "")]


def test_a_positional_only_parameter_after_one_left_out_is_told() -> None:
    """It cannot be passed by keyword."""

    @function(inputs=("a", "c"))
    def fn(a: int, b: int = 0, c: int = 0, /) -> int:
        return a

    with pytest.raises(SpecError, match="positional-only parameter 'c' of 'fn'"):
        passed(fn)


def test_R038_the_decorator_orders_inputs_by_naming_the_parameters() -> None:
    """The k-th name is the k-th stream."""

    @function(inputs=("counts", "words"))
    def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
        yield ""

    spec = read(repeat)
    assert (names_of(spec.inputs), types_of(spec)) == (["counts", "words"], [int, str])
    assert [slot.index for slot in spec.call.slots] == [1, 0]


def test_R038_the_decorator_renames_inputs() -> None:
    """Names that are not those of parameters are new names."""
    spec = read(function(inputs="numbers")(lambda xs: xs))
    assert names_of(spec.inputs) == ["numbers"]


def test_R040_streams_of_messages() -> None:
    """Message and Headers may be what a stream carries."""

    def read_them(messages: Iterator[Message[int]], headers: Iterator[Headers]) -> Iterator[Message[str]]:
        yield Message("")

    spec = read(read_them)
    assert [stream.take for stream in spec.inputs] == [Take.MESSAGE, Take.HEADERS]
    assert (spec.inputs[0].type, spec.outputs[0].type) == (int, str)


def test_a_value_among_streams_is_the_first_of_its_input() -> None:
    """``k: int`` beside a stream is single."""
    assert [stream.single for stream in read(topk).inputs] == [False, True]


def test_a_function_without_parameters_ignores_its_input() -> None:
    """There is one input, whose payload is never decoded."""
    spec = read(lambda: 1)
    assert (types_of(spec), spec.style) == ([IGNORED], Style.REQUEST_REPLY)


def test_the_context_is_no_input() -> None:
    """Wherever it stands, also with a default or keyword-only."""

    def first(ctx: Context, x: int) -> int:
        return x

    def optional(x: int, ctx: Context | None = None) -> int:
        return x

    def by_name(x: int, *, ctx: Context) -> int:
        return x

    for fn in (first, optional, by_name):
        assert names_of(read(fn).inputs) == ["x"]


def test_parameters_with_defaults_are_no_inputs_unless_named() -> None:
    """The decorator turns them into inputs."""

    def scale(x: int, factor: int = 2, *, offset: int = 0) -> int:
        return x

    assert names_of(read(scale).inputs) == ["x"]
    spec = read(function(inputs=("x", "offset"))(scale))
    assert names_of(spec.inputs) == ["x", "offset"]
    assert [slot.keyword for slot in spec.call.slots] == ["", "offset"]


def test_variadic_streams_are_open_inputs() -> None:
    """The last spec is the pattern of the rest; the decorator fixes their number."""

    def merge(first: Iterator[str], *streams: Iterator[int]) -> Iterator[int]:
        yield 1

    spec = read(merge)
    assert (spec.open_inputs, names_of(spec.inputs), types_of(spec)) == (True, ["first", "streams"], [str, int])
    fixed = read(function(inputs=("a", "b", "c"))(merge))
    assert (fixed.open_inputs, names_of(fixed.inputs), types_of(fixed)) == (False, ["a", "b", "c"], [str, int, int])


def test_a_partial_binds_by_keyword_and_keeps_the_rest_as_inputs() -> None:
    """Parameters after a bound one are passed by keyword."""

    def add(a: int, b: str) -> int:
        return a

    spec = read(functools.partial(add, a=1))
    assert (types_of(spec), spec.call.slots[0].keyword) == ([str], "b")
