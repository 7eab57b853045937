"""The annotations of the table, as authors write them: each with a value of it, and with JSON that is none."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import typing
import uuid
from collections import abc
from typing import Any

import annotated_types
import msgspec
import numpy as np
import pydantic
from numpy.typing import NDArray

from invoker import Field
from tests.protocols.types import classes
from tests.protocols.types.classes import (
    Access,
    Aliased,
    Anything,
    Array,
    Bounded,
    Box,
    Camel,
    Cat,
    Checked,
    Closed,
    Colour,
    Crate,
    Dog,
    Frozen,
    Held,
    Level,
    Mixed,
    Model,
    Node,
    Odd,
    Pair,
    Point,
    Private,
    Renamed,
    Row,
    Size,
    Square,
    Tagged,
    Wide,
    Word,
)  # fmt: skip

ANY: Any = ...
"""In the place of what is wrong: any JSON is right."""

_KNOWN = {
    **vars(typing), **vars(classes), "abc": abc, "annotated_types": annotated_types, "collections": collections,
    "decimal": decimal, "dt": dt, "msgspec": msgspec, "np": np, "pydantic": pydantic, "NDArray": NDArray,
    "Field": Field, "uuid": uuid,
}  # fmt: skip


def annotation_of(text: str) -> Any:
    """The annotation that an author writes so."""
    return eval(text, _KNOWN)


NOON = dt.datetime(2026, 1, 2, 12, 0, 5, tzinfo=dt.UTC)
KEY = uuid.UUID(int=7)
HELD = Held(NOON, KEY, decimal.Decimal("1.50"), b"\0\xff", Colour.BLUE, (2, "b"), Point(1), {"a": Point(2, 1.5)})
TREE = Node(1, [Node(2)], Node(3))
MOST: Any = {"no": ["such"]}

ROWS: list[tuple[str, Any, Any]] = [
    # scalars
    ("int", 5, "x"),
    ("float", 1.5, "x"),
    ("bool", True, "x"),
    ("str", "grün", MOST),
    ("bytes", b"\0\xff", MOST),
    ("bytearray", bytearray(b"\0\xff"), MOST),
    ("memoryview", memoryview(b"ab"), MOST),
    ("None", None, 5),
    ("Any", {"a": [1, None]}, ANY),
    ("object", ["a", 1], ANY),
    ("dt.datetime", NOON, "x"),
    ("dt.date", dt.date(2026, 1, 2), "x"),
    ("dt.time", dt.time(1, 2, 3), "x"),
    ("dt.timedelta", dt.timedelta(seconds=90), "x"),
    ("uuid.UUID", KEY, "x"),
    ("decimal.Decimal", decimal.Decimal("1.50"), "x"),
    # unions with None
    ("Optional[int]", 5, "x"),
    ("int | None", None, "x"),
    ("Optional[str]", None, MOST),
    ("None | bytes", b"a", MOST),
    ("dt.datetime | None", NOON, "x"),
    ("list[int] | None", [1], ["x"]),
    ("dict[str, int] | None", None, {"a": "x"}),
    ("Point | None", Point(1), {"x": "x"}),
    ("Colour | None", Colour.RED, "x"),
    ("Optional[Optional[int]]", None, "x"),
    # lists
    ("list", [1, "a"], MOST),
    ("list[int]", [1, 2], ["x"]),
    ("List[str]", ["a"], [1]),
    ("list[Any]", [1, "a", None], MOST),
    ("list[list[int]]", [[1], []], [["x"]]),
    ("list[int | None]", [1, None], ["x"]),
    ("list[bytes]", [b"\0\xff"], [MOST]),
    ("list[bool]", [True], ["x"]),
    ("list[float]", [1.5, 2.0], ["x"]),
    ("list[dt.date]", [dt.date(2026, 1, 2)], ["x"]),
    ("list[Point]", [Point(1)], [{"x": "x"}]),
    ("list[Colour]", [Colour.RED], ["x"]),
    ("dict[str, Colour]", {"a": Colour.RED}, {"a": "x"}),
    ("dict[str, Held]", {"a": HELD}, {"a": {"colour": "x"}}),
    ("list[dict[str, int]]", [{"a": 1}], [{"a": "x"}]),
    ("list[tuple[int, str]]", [(1, "a")], [["x", 1]]),
    ("abc.Sequence[int]", [1, 2], ["x"]),
    ("Sequence[Point]", [Point(1)], [{"x": "x"}]),
    ("abc.MutableSequence[int]", [1], ["x"]),
    ("abc.Collection[int]", [1], ["x"]),
    ("set", {1}, MOST),
    ("set[int]", {1, 2}, ["x"]),
    ("frozenset[str]", frozenset({"a"}), [1]),
    ("abc.Set[int]", {1}, ["x"]),
    # tuples
    ("tuple", (1, "a"), MOST),
    ("tuple[int, ...]", (1, 2), ["x"]),
    ("Tuple[str, ...]", ("a",), [1]),
    ("tuple[int, str]", (1, "a"), ["x", "a"]),
    ("tuple[int, int | None]", (1, None), [1, "x"]),
    ("tuple[()]", (), MOST),
    ("tuple[Point, list[int]]", (Point(1), [2]), [{"x": 1}, ["x"]]),
    # maps
    ("dict", {"a": 1}, [1]),
    ("dict[str, int]", {"a": 1}, {"a": "x"}),
    ("Dict[str, str]", {"a": "b"}, {"a": 1}),
    ("dict[str, Any]", {"a": [1]}, [1]),
    ("dict[int, str]", {1: "a"}, {"x": "a"}),
    ("dict[str, list[int]]", {"a": [1]}, {"a": ["x"]}),
    ("dict[str, int | None]", {"a": None}, {"a": "x"}),
    ("dict[str, Point]", {"a": Point(1)}, {"a": {"x": "x"}}),
    ("dict[str, dict[str, int]]", {"a": {"b": 1}}, {"a": {"b": "x"}}),
    ("dict[Colour, int]", {Colour.RED: 1}, {"x": 1}),
    ("dict[uuid.UUID, int]", {KEY: 1}, {"x": 1}),
    ("dict[dt.date, int]", {dt.date(2026, 1, 2): 1}, {"x": 1}),
    ("abc.Mapping[str, int]", {"a": 1}, {"a": "x"}),
    ("abc.MutableMapping[str, float]", {"a": 1.5}, {"a": "x"}),
    # literals and enums
    ("Literal['a', 'b']", "a", "c"),
    ("Literal[1, 2]", 1, 3),
    ("Literal[True]", True, "x"),
    ("Literal['a', 1]", 1, "c"),
    ("Literal['a', None]", None, "c"),
    ("Literal['a'] | None", None, "c"),
    ("list[Literal['a', 'b']]", ["a"], ["c"]),
    ("Colour", Colour.BLUE, "green"),
    ("Level", Level.HIGH, 3),
    ("Word", Word.YES, "maybe"),
    ("Odd", Odd.ONE, "x"),
    ("Mixed", Mixed.B, "x"),
    ("Access", Access.READ | Access.WRITE, "x"),
    ("Colour | Level", Level.LOW, "x"),
    # unions
    ("int | str", 5, MOST),
    ("Union[int, str, None]", "a", MOST),
    ("int | float", 1.5, "x"),
    ("bool | int", True, "x"),
    ("str | bytes", "a", MOST),
    ("int | list[int]", [1], "x"),
    ("str | list[str]", ["a"], MOST),
    ("list[int] | dict[str, int]", {"a": 1}, "x"),
    ("int | dt.datetime", NOON, "x"),
    ("dt.date | uuid.UUID", KEY, "x"),
    ("Cat | Dog", Dog("dog", "rex"), {"kind": "cow"}),
    ("Cat | Dog | None", Cat("cat"), {"kind": "cow"}),
    ("Tagged | Square", Square(2), {"type": "x"}),
    ("Point | int", Point(1), "x"),
    ("Point | Size", Size(1), "x"),
    ("Point | dict[str, int]", Point(1), "x"),
    ("int | Any", "a", ANY),
    ("list[int | str]", [1, "a"], [MOST]),
    # classes with fields
    ("Point", Point(1), {"x": "x"}),
    ("Frozen", Frozen(a=1), {"a": "x"}),
    ("Node", TREE, {"value": 1, "children": [5]}),
    ("Held", HELD, {"at": 5}),
    ("Bounded", Bounded(9), {"size": 10}),
    ("Box[int]", Box(5), {"item": "x"}),
    ("Box[list[Point]]", Box([Point(1)]), {"item": [5]}),
    ("Box", Box("a"), [1]),
    ("Size", Size(1), {"width": "x"}),
    ("Private", Private(1), {"_a": "x"}),
    ("Renamed", Renamed(1), {"b": "x"}),
    ("Row", Row(1), {"id": "x"}),
    ("Camel", Camel(1), {"lineWidth": "x"}),
    ("Tagged", Tagged(1.5), {"type": "Other", "radius": 1}),
    ("Array", Array(1), ["x"]),
    ("Closed", Closed(1), {"a": 1, "b": 2}),
    ("Wide[int]", Wide(1, [2]), {"item": "x"}),
    ("Keys", {"a": 1}, {"a": "x"}),
    ("Loose", {"a": 1, "b": "c"}, {"b": "c"}),
    ("Longer", {"a": 1, "b": ["x"]}, {"a": 1, "b": 5}),
    ("Cell[int]", {"item": 1}, {"item": "x"}),
    ("Pair", Pair(1), ["x"]),
    ("Model", Model(size=1), {"size": 0}),
    ("Aliased", Aliased(Size=2), {"Size": "x"}),
    ("Crate[int]", Crate[int](item=1), {"item": "x"}),
    ("Checked", Checked(1), {"size": 0}),
    ("list[Model]", [Model(size=1)], [{"size": 0}]),
    ("Model | None", None, {"size": 0}),
    ("Anything", Anything([1], {"a": 2}), [1]),
    # names and variables
    ("UserId", 5, "x"),
    ("Inner", 5, "x"),
    ("Name", "a", MOST),
    ("list[UserId]", [5], ["x"]),
    ("Ints", [1], ["x"]),
    ("Pairs[int]", {"a": 1}, {"a": "x"}),
    ("list[Ints]", [[1]], [["x"]]),
    ("Json", {"a": [1, None]}, ANY),
    ("T", "a", ANY),
    ("Bound", 5, "x"),
    ("Some", "a", MOST),
    ("list[Some]", [1, "a"], [MOST]),
    ("list[Bound]", [1], ["x"]),
    # marks
    ("Annotated[int, 'words']", 5, "x"),
    ("Annotated[int, Field(ge=0, le=9)]", 9, 10),
    ("Annotated[str, Field(min_length=2)]", "ab", "a"),
    ("Annotated[str, Field(pattern='^[a-z]+$')]", "ab", "A"),
    ("Annotated[int | None, Field(gt=0)]", None, 0),
    ("Annotated[list[int], Field(max_length=1)]", [1], [1, 2]),
    ("Annotated[int, msgspec.Meta(multiple_of=2)]", 4, 3),
    ("Annotated[int, annotated_types.Ge(1)]", 1, 0),
    ("Annotated[int, annotated_types.MultipleOf(2)]", 4, 3),
    ("Annotated[str, pydantic.Field(max_length=1)]", "a", "ab"),
    ("pydantic.PositiveInt", 1, 0),
    ("list[Annotated[int, Field(ge=0)]]", [0], [-1]),
    ("dict[str, Annotated[str, Field(min_length=1)]]", {"a": "b"}, {"a": ""}),
    ("Annotated[UserId, Field(ge=0)]", 5, -1),
    ("Annotated[Annotated[int, Field(ge=0)], Field(le=9)]", 9, 10),
    # numpy
    ("np.ndarray", np.array([1.5]), MOST),
    ("NDArray[np.float64]", np.array([[1.5]]), MOST),
    ("NDArray[np.int32] | None", np.array([1], np.int32), MOST),
    ("Annotated[NDArray[np.float32], (2,)]", np.array([1, 2], np.float32), [1.0]),
]

_NO_CODEC = (
    "no codec decodes a payload to {}; use a dataclass, TypedDict or msgspec.Struct, or register a codec for it with "
    "@codec(...)"
)

REFUSED: list[tuple[str, str]] = [
    *(
        (text, f"input #0 'x' of 'f' cannot be decoded: {_NO_CODEC.format(what)}")
        for text, what in (
            ("complex", "complex"),
            ("Text", "Text"),
            ("Rows", "Rows"),
            ("Plain", "Plain"),
            ("Plain | None", "Plain"),
            ("list[Plain]", "Plain within list[Plain]"),
            ("dict[str, Plain]", "Plain within dict[str, Plain]"),
            ("tuple[int, Plain]", "Plain within tuple[int, Plain]"),
            ("tuple[Plain, Text]", "Plain within tuple[Plain, Text]"),
            ("Box[Plain]", "Plain within Box[Plain]"),
            ("Holds", "Plain within Holds"),
            ("collections.deque[int]", "deque within collections.deque[int]"),
            ("collections.OrderedDict[str, int]", "OrderedDict within OrderedDict[str, int]"),
            ("collections.defaultdict[str, int]", "defaultdict within collections.defaultdict[str, int]"),
            ("collections.Counter[str]", "Counter within Counter[str]"),
            ("abc.Callable[[int], int]", "Callable within Callable[[int], int]"),
            ("type[int]", "type within type[int]"),
        )
    ),
    (
        "Literal[b'a']",
        (
            "input #0 'x' of 'f' cannot be decoded: Literal[b'a'] is not understood (Literal may only contain "
            "None/booleans/integers/strings)"
        ),
    ),
    (
        "Annotated[str, Field(ge=1)]",
        "the result of 'f': ge, gt, le and lt are for numbers, and the annotation is str",
    ),
    (
        "Annotated[NDArray[np.float32], 2]",
        "input 'x' of 'f' declares the size 2 outside of a tuple; write its shape as one, (2,)",
    ),
    (
        "np.ndarray[np.float32]",
        "input 'x' of 'f' is ndarray[float32], which gives numpy no type; write NDArray[float32]",
    ),
    (
        "any",
        "the annotation of parameter 'x' of 'f' has any, which is a function and not a type; write Any, from typing",
    ),
]
"""Annotations that no wire serves, and the sentence at start."""
