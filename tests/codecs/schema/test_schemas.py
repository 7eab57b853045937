"""`invoker.codecs.schema.schemas`: the schemas of annotations, and what values they allow."""

from __future__ import annotations

import collections
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import jsonschema
import msgspec
import numpy as np
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invoker.codecs import JsonCodec
from invoker.codecs.interface import Offer
from invoker.codecs.schema import DEFINITIONS, Schemas, schema_of
from invoker.codecs.typed import converter
from invoker.errors import DecodeError
from invoker.errors.wording import Place
from invoker.mediatypes import parse
from invoker.message import Message
from tests.codecs.schema.kinds import KINDS, Model, Node, Point

JSON = parse("application/json")
T = TypeVar("T")


def written(value: Any) -> Any:
    """The value as the JSON codec writes it."""
    codec = JsonCodec()
    encode = codec.encoder(Offer(codec, JSON), type(value), Place("output", 0))
    assert encode is not None
    return json.loads(encode(value).payload)


def reader(annotation: Any) -> Callable[[Any], Any]:
    """Decodes JSON as the codec of inputs does."""
    decode = JsonCodec().decoder(JSON, annotation, Place("input", 0))
    return lambda value: decode(Message(json.dumps(value).encode(), media_type="application/json"))


def validator(annotation: Any, *, gives: bool = False) -> jsonschema.Draft202012Validator:
    """Checks values against the schema, which is one."""
    schema = schema_of(annotation, gives=gives)
    return _valid(json.dumps(schema))


@functools.cache
def _valid(schema: str) -> jsonschema.Draft202012Validator:
    """That a schema is one takes longer than all else, and is the same for each value."""
    read = json.loads(schema)
    jsonschema.Draft202012Validator.check_schema(read)
    return jsonschema.Draft202012Validator(read)


@pytest.mark.parametrize(("annotation", "values"), KINDS, ids=lambda one: str(one)[:40])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_H066_values_that_are_given_fit_their_schema(
    annotation: Any, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    """What the codec writes fits the schema of an output; it is taken again, and fits the schema of an input, too."""
    made = written(data.draw(values))
    validator(annotation, gives=True).validate(made)
    validator(annotation).validate(made)
    reader(annotation)(made)


SCALARS = st.none() | st.booleans() | st.integers(-300, 300) | st.floats(-9, 9) | st.text(max_size=3)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["x", "y", "a", "b", "value", "item", "radius", "type", "Size"]), inner, max_size=3
        )
    ),
)
STRICT = [one for one, _ in KINDS if schema_of(one) not in ({}, {"type": "array"}, {"type": "object"})]


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_H066_values_that_do_not_fit_are_mostly_refused(data: st.DataObject) -> None:
    """Of scalars and trees that were drawn blindly, none is taken that the schema forbids."""
    annotation = data.draw(st.sampled_from(STRICT))
    value = data.draw(TREES)
    if validator(annotation).is_valid(value):
        return
    if _is_looser(annotation, value):
        return
    with pytest.raises(DecodeError):
        reader(annotation)(value)


def _is_looser(annotation: Any, value: Any) -> bool:
    """Where codecs take more than they tell of: the schema has the form that they write."""
    text = str(annotation)
    if any(one in text for one in ("pydantic", "Model", "Leaf", "Mixed", "ndarray")):
        return True  # pydantic makes numbers of text, numpy makes lists of ragged ones
    if "Decimal" in text or "date" in text or "time" in text:
        return isinstance(value, int | float)  # seconds since 1970, and numbers
    return "set" in text or "Level" in text or "dict[int" in text


@pytest.mark.parametrize(
    ("annotation", "taken", "refused"),
    [
        (Point, {"x": 1}, {"y": 1}),
        (Node, {"value": 1, "children": [{"value": 2}]}, {"value": 1, "children": [{"value": "a"}]}),
        (Model, {"leaf": {"Size": 1}}, {"leaf": {"Size": -1}}),
        (list[Point | None], [None, {"x": 1}], [{"x": None}]),
        (tuple[int, str], [1, "a"], [1, "a", 2]),
    ],
)
def test_H066_what_is_wrong_does_not_fit(annotation: Any, taken: Any, refused: Any) -> None:
    """And is refused by the codec; what is right fits and is taken."""
    validator(annotation).validate(taken)
    reader(annotation)(taken)
    assert not validator(annotation).is_valid(refused)
    with pytest.raises(DecodeError):
        reader(annotation)(refused)


class Odd:
    """Nobody knows its values."""


class Wild(type):
    """Its classes raise whatever one asks."""

    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(cls) -> str:
        raise RuntimeError("repr")


class Raising(metaclass=Wild):
    __slots__ = ()


class Forward(NamedTuple):
    a: Missing  # type: ignore[name-defined]  # noqa: F821 - that is what is tested


class Uncallable(pydantic.BaseModel):
    call: Callable[[int], int]


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Odd, {"x-python": "Odd"}),
        (list[Odd], {"type": "array", "items": {"x-python": "Odd"}}),
        (Odd | int, {"anyOf": [{"x-python": "Odd"}, {"type": "integer"}]}),
        (complex, {"x-python": "complex"}),
        (type[int], {"x-python": "type[int]"}),
        (list["Missing"], {"type": "array", "items": {"x-python": "Missing"}}),  # type: ignore[name-defined]  # noqa: F821
        (Forward, {"x-python": "Forward"}),
        (Uncallable, {"x-python": "Uncallable"}),
        (3, {"x-python": "3"}),
        (np.complex64, {"x-python": "complex64"}),
        (T, {}),
        (list[T], {"type": "array", "items": {}}),
        (msgspec.Raw, {}),
        (collections.OrderedDict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (collections.Counter, {"type": "object", "additionalProperties": {"type": "integer"}}),
        (collections.deque[int], {"type": "array", "items": {"type": "integer"}}),
        (np.int8, {"type": "integer", "minimum": -128, "maximum": 127}),
    ],
)
def test_H065_what_cannot_be_described_is_anything(annotation: Any, schema: Any) -> None:
    """With its spelling in Python; the rest of the annotation, and what only outputs have, is described as ever."""
    assert schema_of(annotation) == schema


def test_H065_a_class_that_raises_whatever_one_asks_is_anything() -> None:
    """Nothing of it may reach whoever asks."""
    assert schema_of(Raising).keys() == {"x-python"}
    assert schema_of(list[Raising])["type"] == "array"


def test_H065_types_that_hold_themselves_end() -> None:
    """A class refers to itself; what nests without end is cut."""
    assert schema_of(Node)["$defs"]["Node"]["properties"]["parent"]["anyOf"][0] == {"$ref": "#/$defs/Node"}
    deep: Any = int
    for _ in range(100):
        deep = list[deep]
    json.dumps(schema_of(deep))


def test_H065_named_types_are_definitions() -> None:
    """`type X = ...` of Python 3.12; it may have parameters."""
    alias = pytest.importorskip("typing_extensions").TypeAliasType
    assert schema_of(dict[str, alias("Ids", list[int])])["additionalProperties"] == {"$ref": "#/$defs/Ids"}
    pair = alias("Pair", tuple[T, T], type_params=(T,))
    made = schema_of(pair[int])
    assert made["$ref"] == "#/$defs/Pair_int"
    assert made["$defs"]["Pair_int"]["prefixItems"] == [{"type": "integer"}, {"type": "integer"}]


def test_H066_two_types_of_one_name_have_two_definitions() -> None:
    """And one type has one, wherever it is met."""

    class First(NamedTuple):
        a: int

    class Second(NamedTuple):
        b: str

    First.__name__ = Second.__name__ = "Same"
    schemas = Schemas("#/components/schemas/")
    refs = [schemas.of(one)["$ref"] for one in (First, Second, First)]
    assert refs == ["#/components/schemas/Same", "#/components/schemas/Same_2", "#/components/schemas/Same"]
    assert schemas.definitions["Same_2"]["prefixItems"] == [{"type": "string"}]


def test_H066_models_of_one_name_have_two_definitions() -> None:
    """Those of pydantic, too; and a model is the same alone and within another."""

    def made(kind: Any) -> Any:
        class Inner(pydantic.BaseModel):
            a: kind

        class Outer(pydantic.BaseModel):
            inner: Inner

        return Inner, Outer

    (inner, outer), (other_inner, other_outer) = made(int), made(str)
    schemas = Schemas("#/c/")
    assert schemas.of(outer) == {"$ref": "#/c/Outer"}
    assert schemas.of(inner) == {"$ref": "#/c/Inner"}
    assert schemas.of(other_outer) == {"$ref": "#/c/Outer_2"}
    assert schemas.of(other_inner) == {"$ref": "#/c/Inner_2"}
    assert schemas.definitions["Outer_2"]["properties"]["inner"] == {"$ref": "#/c/Inner_2"}
    assert len(schemas.definitions) == 4


class Boxed(msgspec.Struct, Generic[T]):
    item: T


def test_H066_names_of_definitions_are_fit_for_references() -> None:
    """Only letters, digits, points, hyphens and underscores, as OpenAPI wants them."""
    schemas = Schemas()
    schemas.of(Boxed[list[int] | None])
    assert [name for name in schemas.definitions if not name.replace("_", "").replace(".", "").isalnum()] == []


@dataclass
class Careless:
    a: str = None  # type: ignore[assignment]  # as authors write it
    b: int = 3


class CarelessModel(pydantic.BaseModel):
    a: str = None  # type: ignore[assignment]
    b: int = 3


@pytest.mark.parametrize("cls", [Careless, CarelessModel])
def test_H065_defaults_that_do_not_fit_are_not_told(cls: Any) -> None:
    """A document with them would be invalid, and no caller could send them."""
    (made,) = schema_of(cls)["$defs"].values()
    assert "default" not in made["properties"]["a"]
    assert made["properties"]["b"]["default"] == 3


def test_H066_what_is_no_type_can_be_defined_as_well() -> None:
    """Once for each content."""
    schemas = Schemas(DEFINITIONS)
    assert schemas.add("in", {"type": "object"}) == schemas.add("in", {"type": "object"}) == {"$ref": "#/$defs/in"}
    assert schemas.add("in", {"type": "array"}) == {"$ref": "#/$defs/in_2"}


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([one for one, _ in KINDS]), st.sampled_from([one for one, _ in KINDS]))
def test_H066_a_schema_is_the_same_each_time(one: Any, other: Any) -> None:
    """It is JSON, and two who ask get the same."""
    first, second = (json.dumps([schema_of(one), schema_of(other)]) for _ in range(2))
    assert first == second


def test_the_kinds_are_those_that_codecs_make() -> None:
    """None of the list is one that a function could not take."""
    for annotation, _ in KINDS:
        converter(annotation)
