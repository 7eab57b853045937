"""`invoker.codecs.json`: what annotations get, and what values become."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import json
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pydantic
import pytest

from invoker.errors import DecodeError, EncodeError, StopInvocation
from invoker.message import Headers
from tests.codecs.wire import (
    JSON,
    Circle,
    Colour,
    Model,
    Opaque,
    Pair,
    Person,
    Point,
    Shape,
    decode,
    encode,
)


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (Point, '{"x":1}', Point(1)), (Point, '{"x":1,"y":2,"z":3}', Point(1, 2)),
        (Circle, '{"radius":1}', Circle(1.0)),
        (Shape, '{"name":"a","corners":[{"x":1}],"colour":"red"}', Shape("a", [Point(1)], Colour.RED)),
        (Person, '{"name":"a","more":1}', {"name": "a"}), (Pair, "[1,2]", Pair(1, 2)),
        (list[Point], '[{"x":1}]', [Point(1)]),
        (dict[str, Point], '{"a":{"x":1}}', {"a": Point(1)}), (int | None, "null", None), (int | str, '"x"', "x"),
        (tuple[int, str], '[1,"a"]', (1, "a")), (set[int], "[1,1]", {1}), (Literal["a", 1], "1", 1), (float, "1", 1.0),
        (Colour, '"blue"', Colour.BLUE), (dt.date, '"2026-11-21"', dt.date(2026, 11, 21)),
        (Decimal, "1.5", Decimal("1.5")),
        (uuid.UUID, f'"{uuid.UUID(int=0)}"', uuid.UUID(int=0)), (Mapping[str, int], '{"a":1}', {"a": 1}),
        (object, "1", 1),
        (Point | Circle, '{"radius":2}', Circle(2.0)), (Point | Person, '{"x":2}', Point(2)), (str | bytes, '"x"', "x"),
        (Point | bytes, '{"x":2}', Point(2)), (None, "null", None), (Model, '{"size":1}', Model(size=1)),
        (Model, '{"size":1,"type":"b","extra":1}', Model(size=1, type="b")),
        (list[Model], '[{"size":1}]', [Model(size=1)]),
        (Model | None, "null", None), (dict[str, Model], '{"a":{"size":1}}', {"a": Model(size=1)}),
    ],
)  # fmt: skip
def test_R084_R161_annotations_are_filled(type_: Any, text: str, expected: object) -> None:
    """From the object; extra fields are ignored, defaults are used."""
    found = decode(JSON, text.encode(), type_)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("type_", "text", "says"),
    [
        (Point, "{}", "cannot become Point: Object missing required field `x`"),
        (Point, "[]", "Expected `object`, got `array`"),
        (Point, '{"x":"1"}', r"Expected `int`, got `str` - at `\$.x`"), (Person, "{}", "missing required field `name`"),
        (int, "1.5", "Expected `int`, got `float`"), (int, "true", "Expected `int`, got `bool`"),
        (bool, "1", "Expected `bool`"),
        (int, "null", "Expected `int`, got `null`"), (str, "1", "Expected `str`"),
        (Colour, '"green"', "Invalid enum value 'green'; expected one of 'red', 'blue'$"),
        (list[Colour], '["green"]', r"value 'green' - at `\$\[0\]`; expected one of 'red', 'blue'$"),
        (Point | Circle, "{}", "missing required field"), (Model, '{"size":0}', "size: Input should be greater than 0"),
        (Annotated[int, pydantic.Field(gt=0)], "0", "value: Input should be greater than 0"),
        (Model, "{}", "size: Field required"), (Model, '{"size":NaN}', "JSON is malformed"),
        (list[Model], "1", "valid array"),
        (Opaque, "1", "Opaque"), ("Unresolved", "1", "Unresolved"),
    ],
)  # fmt: skip
def test_R084_R161_a_misfit_says_what_was_wanted(type_: Any, text: str, says: str) -> None:
    """Missing without default included; nothing of pydantic's advertising."""
    with pytest.raises(DecodeError, match=says) as caught:
        decode(JSON, text.encode(), type_)
    assert "http" not in str(caught.value)


def test_a_model_within_a_dataclass_is_validated() -> None:
    """By pydantic, too."""
    Box = msgspec.defstruct("Box", [("model", Model)])  # noqa: N806 - a class
    assert decode(JSON, b'{"model":{"size":2}}', Box).model == Model(size=2)
    with pytest.raises(DecodeError):
        decode(JSON, b'{"model":{"size":0}}', Box)


def test_bytes_are_the_payload_itself() -> None:
    """Within a structure they are base64, both ways."""
    assert decode(JSON, b"{", bytes) == b"{"
    assert decode(JSON, b"{", bytearray | None) == bytearray(b"{")
    Blob = msgspec.defstruct("Blob", [("data", bytes)])  # noqa: N806 - a class
    assert decode(*encode(JSON, Blob(b"\x00\xff")), Blob) == Blob(b"\x00\xff")


def test_RT39_R099_bytes_and_strange_objects_are_no_json() -> None:
    """Output and types are named."""
    for value in (b"\0", bytearray(b"x"), memoryview(b"x"), object(), Opaque(1), len, 1j):
        with pytest.raises(
            EncodeError, match=r"output #0: no acceptable media type takes \w+; acceptable are application/json"
        ):
            encode(JSON, value)
    with pytest.raises(EncodeError, match=r"list cannot be application/json: .*Opaque"):
        encode(JSON, [Opaque(1)])


class Word(str):
    """A str of its own."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1), {"x": 1, "y": 0}), (Circle(1), {"radius": 1}), (Pair(1), [1, 0]), (Colour.RED, "red"),
        ({1: 2}, {"1": 2}),
        ((1, 2), [1, 2]), (frozenset([1]), [1]), (Model(size=1), {"size": 1, "type": "plain"}), (Word("x"), "x"),
        (True, True),
        (np.int64(3), 3), (np.array([[1, 2]]), [[1, 2]]), ([np.float32(0.5)], [0.5]),
        (collections.Counter("a"), {"a": 1}),
        (collections.deque([1]), [1]), (Headers({"A": "b"}), {"A": "b"}), (dt.date(2026, 1, 2), "2026-01-02"),
        ([Model(size=2)], [{"size": 2, "type": "plain"}]), (None, None),
    ],
)  # fmt: skip
def test_R084_values_are_written(value: object, expected: object) -> None:
    """Dataclasses, Structs, models, numpy, and whatever looks like a dict or list."""
    assert json.loads(encode(JSON, value)[1]) == expected


@pytest.mark.parametrize(
    "problem", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), KeyError("k"), RecursionError()]
)
def test_R123_whatever_a_class_raises_is_a_decode_error(problem: BaseException) -> None:
    """Its own checks are user code."""

    class Checked:
        __annotations__ = {"x": int}

        def __post_init__(self) -> None:
            raise problem

    with pytest.raises(DecodeError, match="Checked"):
        decode(JSON, b'{"x":1}', dataclasses.dataclass(Checked))


def test_the_end_of_an_invocation_passes_through() -> None:
    """It is no failure of the codec."""

    class Stopped:
        __annotations__ = {"x": int}

        def __post_init__(self) -> None:
            raise StopInvocation

    with pytest.raises(StopInvocation):
        decode(JSON, b'{"x":1}', dataclasses.dataclass(Stopped))


def test_R117_no_path_reaches_the_peer() -> None:
    """Though a class puts one into its error."""

    class Careless:
        __annotations__ = {"x": int}

        def __post_init__(self) -> None:
            raise ValueError(f"cannot open {__file__} for writing")

    with pytest.raises(DecodeError, match="cannot open <path> for writing"):
        decode(JSON, b'{"x":1}', dataclasses.dataclass(Careless))
