"""`invoker.codecs.support`: which annotations can be decoded."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NewType, TypeVar

import numpy as np
import pydantic
import pytest
from numpy.typing import NDArray

from invoker.codecs import Part, codec, custom, decodable, registered, wants_arrays
from tests.codecs.wire import Circle, Colour, Opaque, Point, Shape


class Model(pydantic.BaseModel):
    """A pydantic model."""

    size: int


class Unfinished(pydantic.BaseModel):
    """A model that refers to what does not exist."""

    inner: Missing  # type: ignore[name-defined]  # noqa: F821


class Node:
    """A class that refers to itself."""

    __annotations__ = {"next": "Node | None"}


T = TypeVar("T")


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    """Without codecs that other tests or samples registered."""
    before = registered()
    custom._replace(())
    yield
    custom._replace(before)


@pytest.mark.parametrize(
    "type_", [np.ndarray, NDArray[np.float32], NDArray[Any] | None, Annotated[NDArray[np.str_], 1]]
)
def test_arrays_are_decodable(type_: Any) -> None:
    """By codecs of their own, and from lists."""
    assert decodable(type_) is None
    assert wants_arrays([int, type_])
    assert not wants_arrays([list[int], np.float32, Any])


@pytest.mark.parametrize(
    "type_",
    [Any, object, str, bytes, bytearray, memoryview, int, float, bool, None, dict, list, dict[str, Any], Point,
     Shape, Circle, Model, list[Model], Model | None, Colour, Literal["a"], int | str, str | bytes, Point | Circle,
     Part, list[Part],
     dict[str, Part],
     Annotated[int, "x"], NewType("Id", int), T, Mapping[str, Point], tuple[int, ...], bytes | None],
)  # fmt: skip
def test_common_types_are_decodable(type_: Any) -> None:
    """None means yes."""
    assert decodable(type_) is None


@pytest.mark.parametrize(
    ("type_", "says"),
    [(Opaque, "no codec decodes a payload to Opaque; use a dataclass"), (list[Opaque], r"Opaque within list\[Opaque\]"),
     (Opaque | None, "Opaque"), (Point | Opaque, "Opaque"), (dict[str, list[Opaque]], "Opaque"), (complex, "complex"),
     (Iterator[int], "Iterator"), (np.float32, "float32"), (type, "type"), ("Missing", "Missing is not understood"),
     (list["Missing"], "is not understood"), (Opaque | bytes, "Opaque")],  # type: ignore[name-defined]  # noqa: F821
)  # fmt: skip
def test_what_nothing_decodes_is_told_in_one_sentence(type_: Any, says: str) -> None:
    """With the fix."""
    problem = decodable(type_)
    assert problem is not None
    assert re.search(says, problem)
    assert "\n" not in problem


def test_an_odd_field_is_found_inside() -> None:
    """And a type that contains itself ends."""
    made = dataclasses.make_dataclass("Made", [("a", int), ("b", list[Opaque])])
    assert "Opaque within Made" in str(decodable(made))
    Node.__module__ = __name__
    assert decodable(dataclasses.dataclass(Node)) is None


def test_a_model_that_pydantic_cannot_build_is_told() -> None:
    """By pydantic's first line."""
    problem = decodable(Unfinished)
    assert problem is not None
    assert problem.startswith("pydantic cannot validate Unfinished: ")
    assert "\n" not in problem


def test_R090_a_registered_codec_is_believed() -> None:
    """By what its decode returns, or by what it says; not for other classes."""

    def read(payload: bytes) -> Opaque:
        return Opaque(payload)

    codec("x/opaque", decode=read)
    assert decodable(Opaque) is None
    assert decodable(complex) is not None
    codec("x/anything", decode=lambda payload: payload)
    assert decodable(complex) is None


def test_R090_can_decode_is_asked() -> None:
    """One that is broken is no reason to stop here."""

    @codec("x/y")
    class Picky:
        def decode(self, message: Any, type_: Any) -> Any: ...
        def can_decode(self, type_: Any) -> bool:
            if type_ is np.float32:
                raise SystemError
            return type_ is complex

    assert decodable(complex) is None
    assert decodable(Opaque) is not None
    assert decodable(np.float32) is not None
