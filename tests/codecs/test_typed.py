"""`invoker.codecs.typed`: annotations, and plain values made into them."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, Optional, Union

import msgspec
import numpy as np
import pydantic
import pytest

from invoker.codecs.typed import (
    BYTES_LIKE,
    bytes_like,
    converter,
    dec_hook,
    enc_hook,
    fields,
    holds_pydantic,
    is_any,
    leaves,
    members,
    narrowed,
    plain,
)
from invoker.errors import EncodeError
from tests.codecs.wire import Circle, Colour, Opaque, Point, decode, encode

Positive = Annotated[int, msgspec.Meta(gt=0)]
Id = NewType("Id", int)


class Model(pydantic.BaseModel):
    """A pydantic model."""

    size: int


def test_members_are_flat_and_bare() -> None:
    """Annotated, NewType and nested unions are looked through."""
    assert members(int) == (int,)
    assert members(Optional[Union[Annotated[int, "x"], Id, str]]) == (int, int, str, type(None))  # noqa: UP007, UP045
    assert members(None) == (type(None),)
    assert is_any(Any)
    assert is_any(object)
    assert not is_any(int)


def test_bytes_likes_are_found_and_taken_out() -> None:
    """Alone they stay; what Annotated says of the others stays, too."""
    assert bytes_like(bytes) is bytes_like(str | bytes) is bytes_like(bytes | None) is bytes
    assert bytes_like(bytearray) is bytearray
    assert bytes_like(list[bytes]) is None
    assert narrowed(str | bytes, BYTES_LIKE) is str
    assert narrowed(bytes | None, BYTES_LIKE) == bytes | None
    assert narrowed(bytes, BYTES_LIKE) is bytes
    assert narrowed(Positive | bytes, BYTES_LIKE) == Positive


def test_pydantic_is_found_wherever_it_is() -> None:
    """As the type or as an argument of it."""
    assert all(holds_pydantic(one) for one in (Model, list[Model], Model | None, dict[str, list[Model]]))
    assert holds_pydantic(Annotated[int, pydantic.Field(gt=0)])
    assert holds_pydantic(list[pydantic.PositiveInt] | None)
    assert not holds_pydantic(Annotated[int, "x"])
    assert not any(holds_pydantic(one) for one in (int, Point, list[int], Any, Literal["x"], "Model"))


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [(Point, {"x": 1}, Point(1)), (int, 1, 1), (bytes, "x", b"x"), (bytearray, b"x", bytearray(b"x")), (Any, {1}, {1}),
     (Point | Circle, {"radius": 1}, Circle(1.0)), (str | bytes, b"x", b"x"), (Model, {"size": 1}, Model(size=1)),
     (list[Model], [{"size": 1}], [Model(size=1)]), (Id, 1, 1), (dt.date, "2026-11-21", dt.date(2026, 11, 21))],
)  # fmt: skip
def test_values_are_converted(type_: Any, value: Any, expected: Any) -> None:
    """Strictly by default."""
    assert converter(type_)(value) == expected


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (int, "1"),
        (Point, []),
        (bytes, 1),
        (bytes, [1]),
        (Positive, -1),
        (Opaque, 1),
        (Point | Circle, {"z": 1}),
        (Model, {"size": "x"}),
    ],
)
def test_misfits_are_ordinary_errors(type_: Any, value: Any) -> None:
    """For the codec to translate."""
    with pytest.raises((ValueError, TypeError)):
        converter(type_)(value)


def test_lax_conversion_is_for_text() -> None:
    """There everything is a string."""
    assert converter(dict[str, int], is_lax=True)({"a": "1"}) == {"a": 1}
    assert converter(Model, is_lax=True)({"size": "1"}) == Model(size=1)


def test_what_cannot_be_understood_is_refused_at_once() -> None:
    """Not at the first value."""
    for type_ in ("Missing", list["Missing"], int | list["Missing"]):  # type: ignore[name-defined]  # noqa: F821
        with pytest.raises(TypeError):
            converter(type_)


def test_fields_of_classes() -> None:
    """Of each kind that has them."""
    assert fields(Point) == {"x": int, "y": int}
    assert fields(Circle | None) == {"radius": float}
    assert set(fields(Model) or ()) >= {"size"}
    assert fields(dict[str, int]) is fields(int) is None


@pytest.mark.parametrize(
    ("cls", "expected"),
    [(dict, True), (str, True), (type(None), True), (Point, True), (Circle, True), (Model, True), (Colour, True),
     (enum.Enum, True),
     (np.float64, True), (np.ndarray, True), (collections.deque, True), (collections.ChainMap, True),
     (dt.datetime, True),
     (Decimal, True), (uuid.UUID, True), (bytes, False), (memoryview, False), (object, False), (Opaque, False),
     (type, False),
     (complex, False), (range, False)],
)  # fmt: skip
def test_plain_values_are_known_by_their_class(cls: type, *, expected: bool) -> None:
    """What is inside is another matter."""
    assert plain(cls) is expected


def test_hooks_of_msgspec() -> None:
    """What it does not know."""
    assert dec_hook(Opaque, found := Opaque(1)) is found
    assert dec_hook(Model, {"size": 1}) == Model(size=1)
    with pytest.raises(TypeError, match="int cannot be converted to Opaque"):
        dec_hook(Opaque, 1)
    assert enc_hook(Model(size=1)) == {"size": 1}
    assert enc_hook(np.arange(2)) == [0, 1]
    assert enc_hook(collections.ChainMap({"a": 1})) == {"a": 1}
    assert enc_hook(collections.deque([1])) == [1]
    assert type(enc_hook(type("Text", (str,), {})("x"))) is str
    with pytest.raises(TypeError, match="Opaque cannot be represented"):
        enc_hook(Opaque(1))


def test_leaves_keep_what_is_said_beside_them() -> None:
    """Members do not."""
    said = Annotated[int, "words"]
    assert leaves(Union[said, None]) == (said, type(None))  # noqa: UP007 - at run time
    assert leaves(said) == (said,)
    assert members(said) == (int,)


@pytest.mark.parametrize("media_type", ["application/json", "application/msgpack"])
def test_an_array_with_far_more_lists_than_elements_is_not_written(media_type: str) -> None:
    """128 bytes from a peer would become gigabytes of empty lists; those of a moderate number are written as ever."""
    for shape in ((2**25, 0), (3, 2**24, 0), (2**40, 2, 0)):
        with pytest.raises(EncodeError, match=r"an array of the shape \[.*\] has \d+ lists in it and 0 elements"):
            encode(media_type, np.zeros(shape))
    _, payload = encode(media_type, np.zeros((100_000, 0)))
    assert decode(media_type, payload) == [[]] * 100_000
    _, payload = encode(media_type, np.zeros((300_000, 1), np.uint8))
    assert len(payload) > 300_000
    with pytest.raises(EncodeError, match="has 33554433 lists"):
        encode(media_type, {"deep": [np.zeros((2**25, 0))]})
