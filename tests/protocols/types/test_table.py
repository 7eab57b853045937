"""One table of annotations over every wire: served with the same meaning, or refused at start with one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from invoker.errors import InvocationError, SpecError
from tests.protocols.types.annotations import ANY, REFUSED, ROWS, annotation_of
from tests.protocols.types.wires import KINDS, SAID, WIRES, CannotSay, Refused, World

_FORMATS = ("dt.datetime", "dt.date", "dt.time", "dt.timedelta", "uuid.UUID", "decimal.Decimal", "dt.datetime | None",
            "list[dt.date]", "int | dt.datetime", "dt.date | uuid.UUID")  # fmt: skip
_BYTES = ("bytes", "bytearray", "memoryview", "None | bytes")
_OF_ANY = ("Any", "dict", "dict[str, Any]", "dict[str, int | None]", "Json")
_KEYS = ("dict[int, str]", "dict[Colour, int]", "dict[uuid.UUID, int]", "dict[dt.date, int]")

DIFFERENT: dict[str, set[tuple[str, str]]] = {
    "a whole value of bytes is the payload itself, which is no JSON": {
        *(("json", one) for one in _BYTES),
        *(("schema", one) for one in _BYTES),
    },
    "msgspec writes no attribute of attrs whose name begins with _, and reads it": {
        (wire, "Private") for wire in ("json", "msgpack", "any", "form", "schema")
    },
    "a Struct of protobuf has texts as keys, so Any has, too": {("any", one) for one in _KEYS},
    "an enum of protobuf has one member, and no several flags": {
        (wire, "Access") for wire in ("protobuf", "protobuf json")
    },
    "all that a form has is text": {
        *((wire, one) for wire in ("form", "multipart") for one in _OF_ANY),
        ("multipart", "Anything"),
    },
    "a text is a text first": {("text", "int | str"), ("text", "Optional[str]")},
    "a text has no spelling of None or of truth among literals": {
        ("text", "Literal[True]"),
        ("text", "Literal['a', None]"),
    },
    "a member is named in a text, and written by its value": {("text", "Odd"), ("text", "Mixed")},
}
"""What a wire makes of a right value otherwise, or does not take; by the reason."""

TAKEN: dict[str, set[tuple[str, str]]] = {
    "a whole value of bytes is the payload itself, whatever its media type is": {("json", one) for one in _BYTES},
    "validators do not look at a format unless they are told to": {("schema", one) for one in _FORMATS},
    "a schema says nothing of keys": {("schema", one) for one in _KEYS},
    "the shape and the type of an array are not said": {("schema", "np.ndarray")},
    "protobuf ignores unknown fields, and knows no tags": {("protobuf json", "Closed"), ("protobuf json", "Tagged")},
    "a number that is not there is 0 in protobuf": {("protobuf json", "Loose")},
    "protobuf's JSON drops the _ at the beginning of a name": {("protobuf json", "Private")},
}  # fmt: skip
"""Wires that take what is wrong, by the reason."""

_MOMENTS = ("dt.datetime", "dt.date", "dt.time", "dt.timedelta", "dt.datetime | None", "int | dt.datetime",
            "dt.date | uuid.UUID")  # fmt: skip
_ARRAYS = ("np.ndarray", "NDArray[np.float64]", "NDArray[np.int32] | None", "Annotated[NDArray[np.float32], (2,)]")

DESCRIBED: dict[str, set[tuple[str, str]]] = {
    "Elixir has no type for it": {
        ("elixir", one) for one in (*_MOMENTS, *_ARRAYS[1:], "uuid.UUID", "decimal.Decimal", "Pair")
    },
    "Elixir is told that it is a class": {("elixir", "Array")},
    "a field of protobuf has one type": {("protobuf", "Literal['a', 1]"), ("protobuf", "Literal['a', None]")},
    "its members may be named, too": {("elixir", "Odd"), ("protobuf", "Odd")},
    "a tensor has a shape, also that of a number": {("protobuf", one) for one in _ARRAYS if one[0] != "A"},
}  # fmt: skip
"""What describes an annotation otherwise than its JSON Schema, by the reason."""

CASES = [pytest.param(place, id=text) for place, (text, *_) in enumerate(ROWS)]


@pytest.fixture(scope="module")
def world() -> World:
    return World([annotation_of(text) for text, *_ in ROWS])


def told(value: Any) -> str:
    """A value with its classes; of a view, what it shows."""
    return f"memoryview {bytes(value)!r}" if isinstance(value, memoryview) else repr(value)


def listed(reasons: dict[str, set[tuple[str, str]]], text: str) -> set[str]:
    return {wire for found in reasons.values() for wire, what in found if what == text}


@pytest.mark.parametrize("place", CASES)
def test_a_value_comes_back_as_it_was(world: World, place: int) -> None:
    """By every wire that has a payload for it: of the same classes, at every depth."""
    text, value, _ = ROWS[place]
    found: dict[str, str] = {}
    for wire, through in WIRES.items():
        try:
            found[wire] = told(through(world, place, value))
        except CannotSay:
            continue
        except (Refused, InvocationError) as error:
            found[wire] = f"refused: {error}"
    differ = {wire: said for wire, said in found.items() if said != told(value)}
    assert differ.keys() - listed(DIFFERENT, text) == set(), differ
    assert listed(DIFFERENT, text) <= differ.keys(), "it does not differ any more"


@pytest.mark.parametrize("place", [one for one in CASES if ROWS[one.values[0]][2] is not ANY])
def test_what_is_wrong_is_refused(world: World, place: int) -> None:
    """By every wire that can say it, before the function has it."""
    text, _, wrong = ROWS[place]
    taken: dict[str, str] = {}
    for wire, said in SAID.items():
        try:
            taken[wire] = told(said(world, place, wrong))
        except (CannotSay, Refused):
            continue
    assert taken.keys() - listed(TAKEN, text) == set(), taken
    assert listed(TAKEN, text) <= taken.keys(), "it does not differ any more"


@pytest.mark.parametrize("place", CASES)
def test_what_describes_an_annotation_says_the_same(world: World, place: int) -> None:
    """The schema, the type of Elixir in a ToolSpec and the field of protobuf: of which kinds in JSON a value is."""
    text, *_ = ROWS[place]
    schema, *others = [of(world, place) for of in KINDS.values()]
    differ = {name for name, kinds in zip([*KINDS][1:], others, strict=True) if kinds != schema}
    assert differ == listed(DESCRIBED, text), (schema, others)


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_what_no_wire_serves_is_refused_at_start(text: str, sentence: str) -> None:
    """In one sentence, whatever is served."""
    with pytest.raises(SpecError) as caught:
        World.prepared("f", annotation_of(text))
    assert caught.value.detail == sentence


def test_a_reason_is_about_annotations_of_the_table() -> None:
    """A row that goes takes its entries with it."""
    every = {text for text, *_ in ROWS}
    said = {what for one in (DIFFERENT, TAKEN, DESCRIBED) for found in one.values() for _, what in found}
    assert said <= every
