"""How many outputs a function has, where its values are in parts; names and types of the others: test_spec.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import Output, Tensor, function
from invoker.author.reader import read
from invoker.errors import SpecError
from invoker.protocols import evergreen

Array = NDArray[np.float32]


class Pair(NamedTuple):
    """With an array."""

    first: Array
    second: int


class Plain(NamedTuple):
    """Without any."""

    first: int
    second: int


class Keyed(TypedDict):
    """By name."""

    first: Array
    second: NotRequired[Array | None]


def pair(x: Array) -> Pair: ...  # type: ignore[empty-body]  # its signature counts
def keyed(x: Array) -> Keyed: ...  # type: ignore[empty-body]  # as above
def two(x: Array) -> tuple[Array, int]: ...  # type: ignore[empty-body]  # as above
def streamed(xs: Iterator[Array]) -> Iterator[tuple[int, Array]]: ...  # type: ignore[empty-body]  # as above
async def later(x: Array) -> Keyed: ...  # type: ignore[empty-body]  # as above
def numbers(x: int) -> tuple[int, float]: ...  # type: ignore[empty-body]  # as above
def plain(x: int) -> Plain: ...  # type: ignore[empty-body]  # as above
def any_number(x: Array) -> tuple[Array, ...]: ...  # type: ignore[empty-body]  # as above
def by_name(x: Array) -> dict[str, Array]: ...  # type: ignore[empty-body]  # as above
def listed(x: Array) -> list[Array]: ...  # type: ignore[empty-body]  # as above
def unsaid(x): ...  # type: ignore[no-untyped-def]  # as above


def of(fn: Any) -> list[tuple[str, Any]]:
    return [(one.name, one.type) for one in read(fn).parts]


@pytest.mark.parametrize(
    ("fn", "parts"),
    [
        (pair, [("first", Array), ("second", int)]),
        (keyed, [("first", Array), ("second", Array | None)]),
        (two, [("out0", Array), ("out1", int)]),
        (streamed, [("out0", int), ("out1", Array)]),
        (later, [("first", Array), ("second", Array | None)]),
    ],
)
def test_G066_values_with_arrays_have_parts(fn: Any, parts: list[tuple[str, Any]]) -> None:
    """The one output stays what it was (R-042)."""
    spec = read(fn)
    assert len(spec.outputs) == 1
    assert of(fn) == parts
    assert [(one.name, one.type) for one in spec.in_parts.outputs] == parts
    assert spec.in_parts.call.parts == tuple(name for name, _ in parts)
    parted = spec.in_parts
    assert parted.in_parts is parted


@pytest.mark.parametrize("fn", [numbers, plain, any_number, by_name, listed, unsaid])
def test_other_values_are_whole(fn: Any) -> None:
    """Tuples of numbers are values like any other; of what has no fixed number nobody knows the names."""
    spec = read(fn)
    assert spec.parts == ()
    assert spec.in_parts is spec


def test_what_the_decorator_says_of_the_output_holds_for_parts() -> None:
    """Media types, and marks."""

    def fn(x: Array) -> tuple[Array, Array]: ...  # type: ignore[empty-body]  # as above

    spec = read(function(output_types="application/x-npy", options=[evergreen.Nodes(retain=False)])(fn))
    kept = spec.in_parts.options[evergreen.Nodes]
    assert [(one.media_types, kept.is_retained(one.name)) for one in spec.parts] == [
        (("application/x-npy",), False)
    ] * 2


@pytest.mark.parametrize(
    ("fn", "keys", "types"),
    [
        (pair, ("first", "second"), (Array, int)),
        (keyed, ("first", "second"), (Array, Array | None)),
        (two, ("a", "b"), (Array, int)),
        (numbers, ("a", "b"), (int, float)),
        (any_number, ("a", "b"), (Array, Array)),
        (by_name, ("a", "b"), (Array, Array)),
        (listed, ("a", "b"), (Array, Array)),
        (unsaid, ("a", "b"), (Any, Any)),
    ],
)
def test_the_decorator_names_the_parts(fn: Any, keys: tuple[str, ...], types: tuple[Any, ...]) -> None:
    """Then they are outputs for every caller, whatever they are of."""

    def copy(*args: Any) -> Any: ...

    copy.__wrapped__ = fn  # type: ignore[attr-defined]  # as functools.wraps does
    spec = read(function(outputs=("a", "b"))(copy))
    assert [one.name for one in spec.outputs] == ["a", "b"]
    assert tuple(one.type for one in spec.outputs) == types
    assert spec.call.parts == keys
    assert spec.parts == ()


def test_G068_one_declared_tensor_may_come_in_a_dict() -> None:
    """A name alone leaves the value as it is."""

    def fn(x): ...  # type: ignore[no-untyped-def]  # as above

    assert read(function(outputs={"y": Tensor("int8")})(fn)).call.parts == ("y",)
    assert read(function(outputs=("y",))(fn)).call.parts == ()


@pytest.mark.parametrize(
    ("fn", "names", "text"),
    [
        (pair, ("a", "b", "c"), "names 3 outputs, but 'copy' has 2"),
        (pair, ("second", "first"), r"names what it returns in another order \(first, second\)"),
        (keyed, ("second", "first"), "leave outputs= out, or keep the order"),
        (two, ("a", "b", "c"), "names 3 outputs"),
    ],
)
def test_names_that_are_not_those_of_the_parts_are_refused(fn: Any, names: tuple[str, ...], text: str) -> None:
    """A swap would go unnoticed."""

    def copy(*args: Any) -> Any: ...

    copy.__wrapped__ = fn  # type: ignore[attr-defined]  # as functools.wraps does
    with pytest.raises(SpecError, match=text):
        read(function(outputs=names)(copy))


def test_G060_wanted_names_need_outputs_with_names() -> None:
    """Else the parameter may be meant as an input; the text tells both."""

    def one(x: Array, output_names: list[str]) -> Array: ...  # type: ignore[empty-body]  # as above
    def two(x: Array, output_names: list[str]) -> tuple[Array, Array]: ...  # type: ignore[empty-body]  # as above
    def free(x: Array, output_names: list[str]): ...  # type: ignore[no-untyped-def]  # as above

    for fn in (one, two, free):
        with pytest.raises(SpecError, match=r"its outputs have no names.*meant as an input, write @function\(inputs="):
            read(fn)
    assert [stream.name for stream in read(function(inputs=("x", "output_names"))(one)).inputs] == ["x", "output_names"]
    assert len(read(function(outputs=("a", "b"))(two)).inputs) == 1


@pytest.mark.parametrize("result", [Pair, Keyed, Iterator[Output], "Streams"])
def test_G060_wanted_names_are_those_of_fields_or_of_the_caller(result: Any) -> None:
    """Also of iterators, and where the caller says how many there are."""

    def fn(x: Array, output_names: Sequence[str]) -> Any: ...

    fn.__annotations__["return"] = result
    assert [stream.name for stream in read(fn).inputs] == ["x"]


class Streams(NamedTuple):
    """Iterators have names, too."""

    a: Iterator[Array]
    b: Iterator[Array]
