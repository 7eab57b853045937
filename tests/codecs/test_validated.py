"""`invoker.codecs.validated`: every mark holds on every wire, wherever it stands, or stops the start."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import annotated_types as at
import msgspec
import numpy as np
import pydantic
import pytest
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from invoker import Field, Message
from invoker.author.prepare import prepare_function
from invoker.codecs import Registry, builtin
from invoker.codecs.anyvalue import ANY
from invoker.codecs.anyvalue.pack import pack
from invoker.codecs.validated import validated_output
from invoker.core.coding import Decoders, Encoders
from invoker.errors import DecodeError, EncodeError, SpecError
from invoker.errors.wording import Place
from invoker.message import EMPTY
from tests.codecs.wire import FORM, JSON, MSGPACK, OCTETS, TEXT
from tests.conftest import case_name

PICKLE = "application/x-python-pickle"


def _small(value: Any) -> Any:
    if len(value) > 3 if hasattr(value, "__len__") else value > 3:
        raise ValueError("it is too large")
    return value


After = pydantic.AfterValidator(_small)


def _digits(value: Any) -> Any:
    return int(value.replace("'", "")) if isinstance(value, str) else value


class Cat(pydantic.BaseModel):
    """One member of a union with a tag."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(pydantic.BaseModel):
    """The other one."""

    kind: Literal["dog"]


@dataclass
class Job:
    """A dataclass with a mark at its field."""

    size: Annotated[int, After]


Small = TypeAliasType("Small", Annotated[int, After])
Bounded = TypeAliasType("Bounded", Annotated[int, Field(ge=0, le=3)])
Nested = TypeAliasType("Nested", Bounded)
Id = NewType("Id", Annotated[int, After])  # type: ignore[valid-newtype]

CASES: list[tuple[Any, Any, Any]] = [
    (Annotated[int, After], 3, 4),
    (Annotated[int, Field(ge=0), After], 3, 4),
    (Annotated[int, pydantic.Field(ge=0), After], 3, -1),
    (Annotated[str, After], "abc", "abcd"),
    (Annotated[str, pydantic.StringConstraints(pattern="^a", to_upper=True)], "abc", "b"),
    (Annotated[bytes, After], b"abc", b"abcd"),
    (Annotated[bool, pydantic.AfterValidator(lambda one: one or 1 / 0)], True, None),
    (Annotated[int, pydantic.BeforeValidator(_digits), at.Lt(5000)], "4'000", "5'000"),
    (Annotated[int, at.MultipleOf(3)], 3, 4),
    (Annotated[int, msgspec.Meta(multiple_of=3)], 3, 4),
    (Annotated[int, at.Predicate(lambda one: one < 4)], 3, 4),
    (Annotated[Decimal, at.Gt(Decimal("0.5"))], "1.5", "0.25"),
    (Annotated[dt.date, at.Gt(dt.date(2020, 1, 1))], "2021-01-01", "2019-01-01"),
    (Annotated[float, pydantic.Field(allow_inf_nan=False, multiple_of=0.5)], 1.5, 1.75),
    (pydantic.PositiveInt, 1, 0),
    (pydantic.conint(strict=True, multiple_of=3), 3, 4),
    (Small, 3, 4),
    (Bounded, 3, 4),
    (Nested, 3, -1),
    (Id, 3, 4),
    (Small | None, 3, 4),
    (Annotated[int | None, After], 3, 4),
]
"""Annotations of one piece of text, a value that fits and one that does not."""

STRUCTURED: list[tuple[Any, Any, Any]] = [
    (list[Small], [3], [4]),
    (list[Bounded], [3], [4]),
    (list[Annotated[int, at.Le(3)]], [3], [4]),
    (dict[str, Small], {"k": 3}, {"k": 4}),
    (Annotated[list[int], After], [1, 2, 3], [1, 2, 3, 4]),
    (Annotated[list[int], at.MaxLen(3)], [1, 2, 3], [1, 2, 3, 4]),
    (Annotated[Cat | Dog, pydantic.Field(discriminator="kind")], {"kind": "dog"}, {"kind": "cow"}),
    (Job, {"size": 3}, {"size": 4}),
    (list[Job], [{"size": 3}], [{"size": 4}]),
]

FIRST: dict[str, Callable[[Any], bytes]] = {
    JSON: lambda value: json.dumps(value).encode(),
    MSGPACK: msgspec.msgpack.encode,
    ANY: pack,
    "application/vnd.x+json": lambda value: json.dumps(value).encode(),
}
AS_TEXT: dict[str, Callable[[Any], bytes]] = dict.fromkeys((TEXT, OCTETS, FORM), lambda value: str(value).encode())


def _decode(type_: Any, media_type: str, value: Any, write: Callable[[Any], bytes]) -> Any:
    payload = value if isinstance(value, bytes) and media_type not in (ANY, MSGPACK, PICKLE) else write(value)
    spec = prepare_function(_taking(type_)).spec.inputs[0]
    return Decoders(0, spec, builtin(pickle=True)).find(media_type)(Message(payload, EMPTY, media_type))


def _taking(type_: Any) -> Callable[[Any], None]:
    def take(value: Any) -> None:
        """Takes one value."""

    take.__annotations__ = {"value": type_, "return": None}
    return take


def _giving(type_: Any) -> Callable[[Any], Any]:
    def give(value: Any) -> Any:
        """Gives one value."""
        return value

    give.__annotations__ = {"return": type_}
    return give


@pytest.mark.parametrize("media_type", [*FIRST, *AS_TEXT])
@pytest.mark.parametrize(("type_", "good", "bad"), CASES, ids=case_name)
def test_marks_of_a_parameter_hold(type_: Any, good: Any, bad: Any, media_type: str) -> None:
    """Whatever the codec makes by itself."""
    write = {**FIRST, **AS_TEXT}[media_type]
    assert _decode(type_, media_type, good, write) is not None
    with pytest.raises(DecodeError):
        _decode(type_, media_type, bad, write)


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [(Annotated[int, After], 3, 4), (Small, 3, 4), (list[Small], [3], [4]), (Annotated[bytes, After], b"a", b"abcd")],
)
def test_marks_of_a_pickled_object_hold(type_: Any, good: Any, bad: Any) -> None:
    """A codec that makes no plain values."""
    assert _decode(type_, PICKLE, good, pickle.dumps) == good
    with pytest.raises(DecodeError):
        _decode(type_, PICKLE, bad, pickle.dumps)


@pytest.mark.parametrize("media_type", FIRST)
@pytest.mark.parametrize(("type_", "good", "bad"), STRUCTURED, ids=case_name)
def test_marks_within_hold(type_: Any, good: Any, bad: Any, media_type: str) -> None:
    """In lists, dicts, unions and classes."""
    assert _decode(type_, media_type, good, FIRST[media_type]) is not None
    with pytest.raises(DecodeError):
        _decode(type_, media_type, bad, FIRST[media_type])


@pytest.mark.parametrize(("type_", "good", "bad"), [*CASES, *STRUCTURED], ids=case_name)
@pytest.mark.parametrize(
    "wrap", [lambda one: Iterator[one], lambda one: Iterator[Message[one]], lambda one: Message[one]]
)
def test_marks_of_items_and_messages_stay(type_: Any, good: Any, bad: Any, wrap: Any) -> None:
    """The type of an item is as its parameter would have it."""
    alone = prepare_function(_taking(type_)).spec.inputs[0]
    within = prepare_function(_taking(wrap(type_))).spec.inputs[0]
    assert (within.type, within.constraints) == (alone.type, alone.constraints)


Natural = Annotated[int, Field(ge=0)]


@dataclass
class Counted:
    """A class whose field has a mark of ours."""

    count: Natural


RESULTS = [
    (Annotated[int, After], 3, 4),
    (Annotated[str, After], "abc", "abcd"),
    (Annotated[int, Field(ge=0)], 0, -1),
    (Annotated[int, at.MultipleOf(3)], 3, 4),
    (Small, 3, 4),
    (Bounded, 3, 4),
    (list[Small], [3], [4]),
    (Annotated[int, After] | None, 3, 4),
    (list[Natural], [0], [-1]),
    (list[Natural], [np.int64(0)], [np.int64(-1)]),
    (dict[str, list[Natural]], {"a": [0]}, {"a": [-1]}),
    (dict[UUID, Natural], {UUID(int=1): 1}, {UUID(int=1): -1}),
    (
        tuple[dt.datetime, Natural] | None,
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), 0),
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), -1),
    ),
    (Counted, Counted(0), Counted(-1)),
    (list[Counted | None], [Counted(0)], [Counted(-1)]),
    (list[Annotated[bytes, msgspec.Meta(max_length=2)]], [b"ab"], [b"abc"]),
]


@pytest.mark.parametrize("accept", [JSON, MSGPACK, "*/*"])
@pytest.mark.parametrize(("type_", "good", "bad"), RESULTS, ids=case_name)
def test_marks_of_a_result_hold(type_: Any, good: Any, bad: Any, accept: str) -> None:
    """A function gives nothing that its annotation forbids."""
    for given in (type_, Iterator[type_]):
        spec = prepare_function(_giving(given)).spec.outputs[0]
        encoders = Encoders(0, "out", accept, Registry(), type_=spec.type, marked=spec)
        assert encoders.encode(good).payload
        with pytest.raises(EncodeError, match="output"):
            encoders.encode(bad)
        assert Encoders(0, "out", accept, Registry(), type_=spec.type, marked=spec, is_checked=False).encode(bad)


@pytest.mark.parametrize("type_", [list[int], dict[str, Any], list[Annotated[int, Field(description="words")]]])
def test_results_without_marks_are_not_looked_at(type_: Any) -> None:
    """So that they cost what they did."""
    spec = prepare_function(_giving(type_)).spec.outputs[0]
    assert validated_output(len, spec.type, spec.constraints, Place("output", 0)) is len  # type: ignore[arg-type,comparison-overlap]


def test_a_serialiser_writes_a_result() -> None:
    """What pydantic says of writing is obeyed as well."""
    type_ = Annotated[int, pydantic.PlainSerializer(lambda one: f"<{one}>", return_type=str)]
    spec = prepare_function(_giving(type_)).spec.outputs[0]
    assert Encoders(0, "out", JSON, Registry(), type_=spec.type, marked=spec).encode(3).payload == b'"<3>"'


class Unfit(msgspec.Struct):
    """A class that pydantic does not make, with a mark of its."""

    size: Annotated[int, After]


REFUSED: list[tuple[Any, str]] = [
    (Annotated[dt.datetime, at.Timezone("UTC")], "Timezone.* has no effect on"),
    (Annotated[int, pydantic.Field(default=3)], "the default of .* has no effect"),
    (Annotated[int, pydantic.Field(alias="x")], "the alias of .* has no effect"),
    (Annotated[NDArray[np.float32], After], "an array"),
    (Annotated[NDArray[np.float32], Field(ge=0)], "an array"),
    (Annotated[Decimal, Field(ge=0)], "Decimal"),
    (list[Annotated[int, Field(ge=0)] | Annotated[str, After]], "does not know"),
    (Annotated[Iterator[int], Field(ge=0)], "have no effect on the iterator"),
    (Annotated[Iterator[int], After], "have no effect on the iterator"),
    (Unfit, "pydantic cannot validate"),
]


@pytest.mark.parametrize(("type_", "words"), REFUSED, ids=case_name)
def test_a_mark_that_nobody_applies_stops_the_start(type_: Any, words: str) -> None:
    """By the name of the parameter and of the mark."""
    with pytest.raises(SpecError, match=words) as caught:
        prepare_function(_taking(type_))
    assert "value" in str(caught.value)


@pytest.mark.parametrize(
    "type_",
    [Annotated[int, "words"], Annotated[int, at.doc("words")], Annotated[int, at.Unit("m")], Annotated[int, object()],
     Annotated[int, pydantic.Field(description="words", examples=[1])], Annotated[list[int], pydantic.Field(title="t")],
    ],
    ids=case_name,
)  # fmt: skip
def test_words_stop_nothing(type_: Any) -> None:
    """Marks that say nothing of values leave the type as it is."""
    assert prepare_function(_taking(type_)).spec.inputs[0].type in (int, list[int])


def test_a_field_as_a_default_stops_the_start() -> None:
    """As FastAPI takes it; here it would be the value."""

    def take(value: int = pydantic.Field(3, gt=0)) -> None:
        """Takes one value."""

    with pytest.raises(SpecError, match=r"'value'.* its default is a Field"):
        prepare_function(take)
