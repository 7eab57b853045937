"""`invoker.author.described`: what callers can be told of a function."""

from __future__ import annotations

import enum
import json
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import invoker
from invoker import Context, Field, Headers, Message, Output
from invoker.author.described import described, listed
from invoker.author.reader import read
from invoker.codecs import codec, unregister
from invoker.codecs.schema import NOTHING, Schemas


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Odd:
    """Nobody knows its values."""


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[str]


class Point(NamedTuple):
    x: int


def inputs(function: Any) -> list[dict[str, Any]]:
    return list(listed(described(read(function)))["inputs"])


def outputs(function: Any) -> list[dict[str, Any]]:
    return list(listed(described(read(function)))["outputs"])


def test_H065_words_come_from_the_docstring_and_from_marks() -> None:
    """A mark's words win; the sections of the docstring are not among its prose."""

    def resize(width: Annotated[int, Field(ge=1, le=9, description="In pixels.")], name: str = "x") -> bytes:
        """Resize a picture.

        It keeps what it shows.

        Args:
            width: How wide.
            name: What it is called.

        Returns:
            The picture.

        >>> resize(3)
        """
        return b""

    told = listed(described(read(resize)))
    assert told["doc"] == "Resize a picture.\n\nIt keeps what it shows."
    assert [one["doc"] for one in told["inputs"]] == ["In pixels.", "What it is called."]
    assert told["inputs"][0]["schema"] == {"type": "integer", "minimum": 1, "maximum": 9, "description": "In pixels."}
    assert told["outputs"][0]["doc"] == "The picture."
    assert told["examples"] == ["resize(3)"]


def test_H065_examples_of_the_decorator_come_first() -> None:
    """Each is told once."""

    @invoker.function(examples=("f(2)", "f(1)"))
    def f(x: int) -> int:
        """Do.

        >>> f(1)
        >>> f(3)
        """
        return x

    assert described(read(f)).examples == ("f(2)", "f(1)", "f(3)")


def test_H065_defaults_are_as_json_has_them() -> None:
    """What JSON does not have is left out, and so is a default that nobody could send."""

    def f(
        a: int = 1,
        b: Color = Color.RED,
        c: float = float("nan"),
        d: bytes = b"\x00",
        e: Any = Odd,
        f: list[int] | None = None,
        g: str = None,  # type: ignore[assignment]  # noqa: RUF013 - as authors write it
        h: Annotated[int, Field(ge=1)] = 0,
    ) -> None: ...

    told = {one["name"]: one.get("default", "nothing") for one in inputs(f)}
    assert told == {"a": 1, "b": "red", "c": "nothing", "d": "AA==", "e": "nothing", "f": None} | {
        "g": "nothing",
        "h": "nothing",
    }
    assert not any(one["isRequired"] for one in inputs(f))


def test_H065_streams_and_single_values_are_told_apart() -> None:
    """An input is a stream in a function that streams, unless it is one value of it."""

    async def topk(items: AsyncIterator[str], k: int, sep: str = " ") -> AsyncIterator[str]:
        yield ""

    def last(items: Iterator[int]) -> int:
        return 0

    def plain(a, b=1):
        yield a

    assert [one["isStream"] for one in inputs(topk)] == [True, False, False]
    assert [one["isStream"] for one in outputs(topk)] == [True]
    assert [one["isStream"] for one in inputs(last)] == [True]
    assert [one["isStream"] for one in outputs(last)] == [False]
    assert [one["isStream"] for one in inputs(plain)] == [True, False]
    assert not described(read(last)).gives_many


def test_H065_several_outputs_and_open_ends() -> None:
    """Names of outputs; and where the caller says how many there are, that it does."""

    def split(xs: Iterator[int]) -> Split: ...  # type: ignore[empty-body]

    def tag(*xs: Iterator[str], **more: int) -> Iterator[Output]: ...  # type: ignore[empty-body]

    assert [(one["name"], one["schema"]) for one in outputs(split)] == [
        ("even", {"type": "integer"}),
        ("odd", {"type": "string"}),
    ]
    told = listed(described(read(tag)))
    assert (told["openInputs"], told["openOutputs"], told["outputs"]) == (True, True, [])
    assert described(read(split)).gives_many
    assert described(read(tag)).gives_many


def test_H065_what_is_no_value_is_not_told() -> None:
    """The context is no input, and a function without parameters has none; of a message, its payload counts."""

    def now() -> str:
        return ""

    def created(m: Message[dict[str, int]], ctx: Context) -> Message[str]:
        return Message("")

    def heads(h: Headers) -> None: ...

    assert inputs(now) == []
    assert [(one["name"], one["schema"]) for one in inputs(created)] == [
        ("m", {"type": "object", "additionalProperties": {"type": "integer"}})
    ]
    assert outputs(created)[0]["schema"] == {"type": "string"}
    assert inputs(heads)[0]["schema"] == {}
    assert outputs(heads)[0]["schema"] == {"type": "null"}


@pytest.mark.parametrize(
    ("type_", "sent", "given"),
    [
        (str, ["text/plain", "application/json"], ["application/json", "text/plain"]),
        (int, ["text/plain", "application/json"], ["application/json", "text/plain"]),
        (bytes, ["application/octet-stream", "text/plain"], ["application/octet-stream"]),
        (
            bytes | str,
            ["text/plain", "application/json"],
            ["application/octet-stream", "application/json", "text/plain"],
        ),
        (dict[str, int], ["application/json"], ["application/json"]),
        (list[int] | None, ["application/json"], ["application/json"]),
        (NDArray[np.float32], ["application/json"], ["application/json"]),
        (Any, ["text/plain", "application/json"], ["application/json", "text/plain", "application/octet-stream"]),
    ],
)
def test_H065_media_types(type_: Any, sent: list[str], given: list[str]) -> None:
    """Those of an input begin with what a person types, those of an output with what the server prefers."""

    def f(x: Any) -> Any: ...

    f.__annotations__ = {"x": type_, "return": type_}
    assert inputs(f)[0]["mediaTypes"] == sent
    assert outputs(f)[0]["mediaTypes"] == given


def test_H065_media_types_of_the_author_count() -> None:
    """Those of the decorator, and those of a codec that makes the type."""

    @invoker.function(input_types="image/png", output_types=("image/png", "image/webp"))
    def f(x: bytes) -> bytes:
        return x

    def g(x: Odd) -> Odd:
        return x

    assert inputs(f)[0]["mediaTypes"] == ["image/png"]
    assert outputs(f)[0]["mediaTypes"] == ["image/png", "image/webp"]

    def read_odd(payload: bytes) -> Odd:
        return Odd()

    codec("x/odd", decode=read_odd, encode=bytes, encodes=Odd)
    try:
        assert inputs(g)[0]["mediaTypes"] == ["x/odd"]
        assert inputs(g)[0]["schema"] == {"x-python": "Odd"}
    finally:
        unregister("x/odd")


def test_H066_definitions_are_shared_where_many_are_described() -> None:
    """The schema that stands alone has its own; the other one has those of all, and says default and words itself."""

    def f(a: Point, b: Point = Point(1)) -> Point:  # noqa: B008 - a tuple
        """Do.

        Args:
            b: Another.
        """
        return a

    told = described(read(f))
    assert told.inputs[0].schema["$defs"].keys() == {"Point"}
    schemas = Schemas("#/components/schemas/")
    shared = [one.shared_schema(schemas) for one in (*told.inputs, *told.outputs)]
    assert shared == [
        {"$ref": "#/components/schemas/Point"},
        {"$ref": "#/components/schemas/Point", "description": "Another.", "default": [1]},
        {"$ref": "#/components/schemas/Point"},
    ]
    assert schemas.definitions.keys() == {"Point"}
    assert told.inputs[0].default is NOTHING


def test_H065_everything_told_is_json() -> None:
    """Whatever the annotations are."""

    def f(a: Odd, b: list[Odd], c: complex = 1j, *d: Odd, **e: Odd) -> Odd: ...

    json.dumps(listed(described(read(f))), allow_nan=False)
