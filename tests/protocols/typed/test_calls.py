"""How functions are called as methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import pytest

from invoker import Context, Headers, Output, function
from invoker.protocols.typed.calls import calls_of, media_type
from tests.protocols.typed.written import spec_of


def call_of(function):
    """The method of one function."""
    (call,) = calls_of([spec_of(function)])
    return call


def shape(function) -> str:
    """Its shape, in the words of gRPC."""
    call = call_of(function)
    return f"{'stream' if call.streams_in else 'unary'}-{'stream' if call.streams_out else 'unary'}"


def add(a: int, b: int) -> int: ...
def total(xs: Iterator[int]) -> int: ...
def sink(xs: Iterator[int]) -> None: ...
def ticks() -> Iterator[int]: ...
def spell(word: str) -> Iterator[str]: ...
def mean(xs: Iterator[int]) -> Iterator[float]: ...
def top(xs: Iterator[str], k: int) -> Iterator[str]: ...
def late(prefix: str = "", xs: Iterator[str] = ()) -> Iterator[str]: ...
def untyped(x): ...


def untyped_stream(xs):
    yield from xs


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[int]


def split(xs: Iterator[int]) -> Split: ...


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (add, "unary-unary"),
        (untyped, "unary-unary"),
        (total, "stream-unary"),
        (sink, "stream-unary"),
        (ticks, "unary-stream"),
        (spell, "unary-stream"),
        (mean, "stream-stream"),
        (top, "stream-stream"),
        (late, "stream-stream"),
        (split, "stream-stream"),
        (untyped_stream, "stream-stream"),
    ],
)
def test_H102_the_shape_follows_from_the_signature(function, found):
    """Streams of Python are streams of gRPC."""
    assert shape(function) == found


def test_H101_paths_are_made_of_module_and_function():
    """Functions of one module share a service; names that differ in capitals alone do not fit together."""

    def do_it(x: int) -> int: ...

    found = calls_of([spec_of(do_it), spec_of(do_it, "doIt"), spec_of(do_it, "other")])
    assert [one.path for one in found] == [
        "/shop.ShopService/DoIt", "/shop.ShopService/DoIt2", "/shop.ShopService/Other",
    ]  # fmt: skip


def test_H103_numbers_are_the_positions_of_parameters():
    """The context has none; what cannot be an input keeps the numbers of the others as they are."""

    @function(inputs=("b", "a"))
    def turned(ctx: Context, a: int, b: int, **more: Iterator[int]) -> int: ...

    assert [(one.name, one.number) for one in call_of(turned).slots] == [("a", 1), ("b", 2)]


def test_H211_further_names_are_a_map():
    """Where they are values, and the function does not take any number of others."""

    def named(ctx: Context, a: int, **more: int) -> int: ...
    def only(**more) -> int: ...
    def both(*xs: int, **more: int) -> int: ...

    told = [[(one.name, one.number, one.is_named) for one in call_of(f).slots] for f in (named, only, both)]
    assert told == [[("a", 1, False), ("more", 2, True)], [("more", 1, True)], [("xs", 1, False)]]
    assert call_of(named).proto.inputs[2].endswith(";in=2;each=entry")
    assert call_of(only).trigger == ""


def test_H102_values_beside_streams_and_options_are_told_apart():
    """Only streams have an item in each message; only options may be left out."""
    assert [(one.name, one.is_stream, one.is_option) for one in call_of(top).slots] == [
        ("xs", True, False), ("k", False, False),
    ]  # fmt: skip
    assert [(one.name, one.is_stream, one.is_option) for one in call_of(late).slots] == [
        ("prefix", False, True), ("xs", True, True),
    ]  # fmt: skip
    assert [call_of(one).is_bare for one in (mean, top, spell)] == [True, False, False]


@pytest.mark.parametrize(
    ("type_", "packing"),
    [
        (int, "varint"),
        (bool, "varint"),
        (float, "fixed64"),
        (str, ""),
        (int | None, "varint"),
        (int | str, ""),
        (Literal[1, 2], "varint"),
        (Literal["a"], ""),
        (Literal[1, "a"], ""),
    ],
)
def test_further_arguments_are_repeated(type_, packing):
    """Each element is an input; how protobuf packs them follows from their type."""

    def many(first: int, *rest: int) -> int: ...

    many.__annotations__["rest"] = type_
    first, rest = call_of(many).slots
    assert (first.is_variadic, rest.is_variadic, rest.is_option, rest.packing) == (False, True, True, packing)


def test_H102_a_function_without_parameters_has_a_trigger():
    """It is called once; a source needs none."""

    def now() -> str: ...

    assert (call_of(now).trigger, call_of(now).slots) == ("in", ())
    assert call_of(ticks).trigger == ""


def test_headers_are_an_input_of_their_own():
    """Their payload is read by nobody, yet the function needs a message for it."""

    def heads(h: Headers) -> int: ...

    assert [one.name for one in call_of(heads).slots] == ["h"]


def test_H102_outputs_are_numbered_as_the_function_lists_them():
    """One that does not say how many it has is served its first."""

    def loose(xs: Iterator[int]) -> Iterator[Output]: ...

    assert [(one.name, one.number) for one in call_of(split).outputs] == [("even", 1), ("odd", 2)]
    assert call_of(sink).outputs == ()
    assert (call_of(loose).is_first_only, len(call_of(loose).outputs)) == (True, 1)


def test_media_types_say_whose_field_it_is():
    """A name may have any signs."""
    assert media_type("a b;c", 3) == "application/vnd.invoker.field;of=a%20b%3Bc;in=3"
    assert media_type("f", 1, is_output=True, is_json=True) == "application/vnd.invoker.field+json;of=f;out=1"
