"""Requests and responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from invoker import function
from invoker.protocols.typed.schema import schemas_of
from tests.protocols.typed.written import message_of, schema_of, spec_of


def test_H103_a_field_for_each_parameter():
    """Options are optional; further arguments are repeated."""

    def scale(x: int, *more: float, by: float = 2.0) -> float: ...

    schema = schema_of(scale)
    assert message_of(schema, "ScaleRequest") == "int64 x = 1; repeated double more = 2; optional double by = 3;"
    assert message_of(schema, "ScaleResponse") == "double out = 1;"


def test_H102_several_streams_are_a_oneof():
    """What comes once stands beside it, and tells whether it is there."""

    def repeat(words: Iterator[str], limit: int, counts: Iterator[list[int]], input: str = "") -> Iterator[str]: ...

    assert message_of(schema_of(repeat), "RepeatRequest") == (
        "oneof input2 { string words = 1; Int64List counts = 3; } optional int64 limit = 2; optional string input = 4;"
    )


def test_H102_a_single_stream_needs_no_presence():
    """Each message is an item; beside other fields it tells whether it is there."""

    def one(xs: Iterator[int]) -> int: ...
    def two(xs: Iterator[list[int]], k: int = 3) -> int: ...

    schema = schema_of(one, two)
    assert message_of(schema, "OneRequest") == "int64 xs = 1;"
    assert message_of(schema, "TwoRequest") == "Int64List xs = 1; optional int64 k = 2;"


def test_H102_several_outputs_are_a_oneof_of_a_stream_and_fields_of_a_value():
    """A response that comes once has them all."""

    class Split(NamedTuple):
        even: Iterator[int]
        odd: Iterator[list[int]]

    def split(xs: Iterator[int]) -> Split: ...

    split.__annotations__["return"] = Split

    @function(outputs=("low", "high"))
    def bounds(xs: list[int]) -> tuple[int, int]: ...

    schema = schema_of(split, bounds)
    assert message_of(schema, "SplitResponse") == "oneof output { int64 even = 1; Int64List odd = 2; }"
    assert message_of(schema, "BoundsResponse") == "int64 low = 1; int64 high = 2;"


def test_H102_nothing_has_no_field():
    """What gives None, and what takes nothing, has an empty message."""

    def quiet() -> None: ...

    schema = schema_of(quiet)
    assert [one.fields for one in schema.messages] == [[], []]


def test_H101_a_file_for_each_module():
    """Its path begins with the package."""

    def f(x: int) -> int: ...

    other = spec_of(f)
    other = type(other)(**{name: getattr(other, name) for name in other.__slots__} | {"modules": ("a.Cart", "a")})
    assert [(one.file, one.service) for one in schemas_of([spec_of(f), other])] == [
        ("shop/shop.proto", "ShopService"), ("a/cart/cart.proto", "CartService"),
    ]  # fmt: skip


def test_H104_comments_are_of_the_docstring():
    """Of arguments and of what is returned."""

    def say(what: str) -> str:
        """Say it.

        Args:
            what: To be said.

        Returns:
            What was said.
        """

    request, response = schema_of(say).messages
    assert [request.fields[0].comment, response.fields[0].comment] == ["To be said.", "What was said."]
