"""Fields of requests become values, and values become responses; `reading` and `writing` are tested by these."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from google.protobuf import json_format

from invoker.author.prepare import prepare
from invoker.codecs import Registry
from invoker.errors import DecodeError, EncodeError, NotAcceptable
from invoker.message import EMPTY, Message
from invoker.protocols.typed.calls import calls_of, media_type
from invoker.protocols.typed.codec import Book, FieldCodec
from tests.protocols.typed import kitchen
from tests.protocols.typed.kitchen import Box, Colour, Model, Pair, Point, Row, Size, Tree

SPECS = {one.spec.name: one.spec for one in prepare("tests.protocols.typed.kitchen")}
CALLS = {one.spec.name: one for one in calls_of(SPECS.values())}


@pytest.fixture(scope="module")
def book() -> Book:
    """The messages of the kitchen."""
    return Book(SPECS.values)


@pytest.fixture(scope="module")
def registry(book: Book) -> Registry:
    """Codecs as a server has them."""
    made = Registry()
    made.register(FieldCodec(book), first=False)
    return made


def into(registry: Registry, book: Book, function: str, number: int, json: dict[str, Any], *, is_json: bool = False):
    """The value that a parameter gets of a request, which is given in protobuf's JSON."""
    call, slot = CALLS[function], next(one for one in CALLS[function].slots if one.number == number)
    request = json_format.ParseDict(json, book.pages[function].request())
    payload = request.SerializeToString()
    types = call.json if is_json else call.proto
    if is_json:
        import msgspec

        payload = bytes(
            msgspec.json.decode(msgspec.json.encode(json), type=dict[str, msgspec.Raw]).get(slot.field, b"")
        )
    decode = registry.decoder(types.inputs[number], slot.spec.type, index=0, name=slot.name)
    return decode(Message(payload, EMPTY, types.inputs[number]))


def out_of(registry: Registry, book: Book, function: str, value: Any, *, index: int = 0, is_json: bool = False) -> Any:
    """What a response says of a value, in protobuf's JSON."""
    call = CALLS[function]
    accept = (call.json if is_json else call.proto).accepts[index]
    message = registry.encoder(registry.offers(accept), value)(value)
    assert message.media_type == accept
    if is_json:
        response = json_format.Parse(message.payload, book.pages[function].response())
    else:
        response = book.pages[function].response.FromString(message.payload)
    return json_format.MessageToDict(response, preserving_proto_field_name=True)


TREE = {
    "label": "a",
    "children": [{"label": "b"}, {"label": "c", "children": [{"label": "d"}]}],
    "parent": {"label": "p"},
}
MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC)

REQUESTS: list[tuple[str, int, dict[str, Any], Any]] = [
    ("scalars", 1, {"i": -3}, -3),
    ("scalars", 1, {}, 0),
    ("scalars", 2, {"f": 2}, 2.0),
    ("scalars", 3, {"s": "ä"}, "ä"),
    ("scalars", 4, {"b": "aGk="}, b"hi"),
    ("scalars", 5, {"t": True}, True),
    ("point", 1, {"p": {"x": 1, "tags": ["a"]}}, Point(1, 2.5, ["a"])),
    ("point", 1, {"p": {"x": 1, "y": 0.0}}, Point(1, 0.0)),
    ("point", 2, {"colour": "COLOUR_DARK_GREEN"}, Colour.DARK_GREEN),
    ("point", 3, {"size": "SIZE_SMALL"}, Size.SMALL),
    ("grow", 1, {"tree": TREE}, Tree("a", [Tree("b"), Tree("c", [Tree("d")])], Tree("p"))),
    ("pair", 1, {"p": {"left": 2}}, Pair(2, "r")),
    ("options", 1, {"o": {"depth": 2}}, {"depth": 2}),
    ("options", 1, {"o": {"name": ""}}, {"depth": 0, "name": ""}),
    ("row", 1, {"r": {"id": 1, "when": "2020-01-02T03:04:05.006Z"}}, Row(1, MOMENT)),
    ("model", 1, {"m": {"size": 1, "parts": {"a": {"x": 2}}}}, Model(size=1, parts={"a": Point(2)})),
    ("box", 1, {"b": {"content": 5}}, Box(5)),
    ("times", 1, {"at": "2020-01-02T03:04:05.006Z"}, MOMENT),
    ("times", 2, {"took": "-1.5s"}, dt.timedelta(seconds=-1.5)),
    ("times", 3, {"day": "2020-01-02"}, dt.date(2020, 1, 2)),
    ("times", 4, {"hour": "10:30:00"}, dt.time(10, 30)),
    ("texts", 1, {"u": "00000000-0000-0000-0000-000000000001"}, uuid.UUID(int=1)),
    ("texts", 2, {"d": "1.50"}, decimal.Decimal("1.50")),
    ("lists", 1, {"xs": [1, 2]}, [1, 2]),
    ("lists", 2, {"rows": [{"items": [1]}, {}]}, [[1], []]),
    ("lists", 3, {"names": ["a", "a"]}, {"a"}),
    ("lists", 4, {"pair": {"item_1": 1, "item_2": "b"}}, (1, "b")),
    ("maps", 1, {"counts": {"a": 1}}, {"a": 1}),
    ("maps", 2, {"points": {"3": {"x": 4}}}, {3: Point(4)}),
    ("maps", 3, {"anything": {"a": [1, None]}}, {"a": [1, None]}),
    ("union", 1, {"value": {"int64_value": 3}}, 3),
    ("union", 1, {"value": {"string_value": "a"}}, "a"),
    ("union", 1, {"value": {"point": {"x": 3}}}, Point(3)),
    ("union", 1, {"value": {"int64_list": {"items": [3]}}}, [3]),
    ("union", 1, {"value": {}}, None),
    ("union", 1, {}, None),
    ("optional", 1, {}, None),
    ("optional", 1, {"x": 0}, 0),
    ("optional", 3, {"xs": {}}, []),
    ("literal", 1, {"mode": "fast"}, "fast"),
    ("anything", 1, {"value": {"a": [1.5, 2, "x", True]}}, {"a": [1.5, 2, "x", True]}),
    ("said", 1, {"m": "hi"}, "hi"),
    ("nothing", 0, {}, None),
    ("top", 1, {"items": {"items": [1]}}, [1]),
]


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize(("function", "number", "json", "found"), [one for one in REQUESTS if one[1]])
def test_H107_fields_become_values(registry, book, function, number, json, found, is_json):
    """Each by its annotation; what is missing is a zero, None or the default."""
    value = into(registry, book, function, number, json, is_json=is_json)
    assert value == found
    assert type(value) is type(found)


@pytest.mark.parametrize(
    ("function", "number", "json", "text"),
    [
        ("point", 1, {}, "the field 'p' is missing"),
        ("point", 2, {}, "Colour is not set"),
        ("point", 2, {"colour": 9}, "9 is not a value of Colour"),
        ("model", 1, {"m": {"size": 0}}, "size: Input should be greater than 0"),
        ("literal", 1, {"mode": "x"}, "expected one of 'fast', 'slow', got 'x'"),
        ("texts", 1, {"u": "nope"}, "Invalid UUID"),
        ("times", 1, {}, "the field 'at' is missing"),
    ],
)
def test_H108_what_cannot_become_the_value_is_a_bad_input(registry, book, function, number, json, text):
    """The text says which field and why."""
    with pytest.raises(DecodeError, match=text):
        into(registry, book, function, number, json)


def test_H108_bytes_that_are_no_message_are_a_bad_input(registry):
    """Also within a field."""
    decode = registry.decoder(CALLS["point"].proto.inputs[1], Point)
    for payload in (b"\x0a\x05", b"\x0a\x02\x08\xff"):
        with pytest.raises(DecodeError, match="protobuf cannot become Point"):
            decode(Message(payload))


def test_H108_json_that_is_none_is_a_bad_input(registry):
    """And JSON of another type."""
    decode = registry.decoder(CALLS["scalars"].json.inputs[1], int)
    for payload in (b"nope", b'"a"', b"{}", b"1.5"):
        with pytest.raises(DecodeError):
            decode(Message(payload))


RESPONSES: list[tuple[str, Any, Any]] = [
    ("plain", 0, {}),
    ("plain", 3, {"out": "3"}),
    ("plain", True, {"out": "1"}),
    ("point", Point(1, 0.5, ["t"]), {"out": {"x": "1", "y": 0.5, "tags": ["t"]}}),
    ("grow", Tree("a", [Tree("b")]), {"out": {"label": "a", "children": [{"label": "b"}]}}),
    ("pair", Pair(1, "x"), {"out": {"left": "1", "right": "x"}}),
    ("options", {"depth": 1}, {"out": {"depth": "1"}}),
    ("row", Row(2, MOMENT), {"out": {"id": "2", "when": "2020-01-02T03:04:05.006Z"}}),
    ("model", Model(size=3, parts={"a": Point(1)}), {"out": {"size": "3", "parts": {"a": {"x": "1", "y": 2.5}}}}),
    ("box", Box("x"), {"out": {"content": "x"}}),
    ("texts", decimal.Decimal("1.50"), {"out": "1.50"}),
    ("lists", (1, 2), {"out": ["1", "2"]}),
    ("maps", {"a": [1]}, {"out": {"a": {"items": ["1"]}}}),
    ("union", 3, {"out": {"int64_value": "3"}}),
    ("union", "a", {"out": {"string_value": "a"}}),
    ("union", Point(1), {"out": {"point": {"x": "1", "y": 2.5}}}),
    ("union", [1], {"out": {"int64_list": {"items": ["1"]}}}),
    ("union", None, {}),
    ("optional", [1, None, ["a"]], {"out": [1.0, None, ["a"]]}),
    ("anything", {"a": MOMENT}, {"out": {"a": "2020-01-02T03:04:05.006000Z"}}),
    ("anything", None, {"out": None}),
    ("quiet", None, {}),
    ("total", 2, {"out": 2.0}),
]  # fmt: skip


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize(("function", "value", "found"), RESPONSES)
def test_H107_values_become_responses(registry, book, function, value, found, is_json):
    """Each by the annotation of its function."""
    assert out_of(registry, book, function, value, is_json=is_json) == found


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        ("plain", 2**63, "[oO]ut of range"),
        ("plain", "3", "int"),
        ("point", Point(None), "'x' is None"),
        ("union", 1.5, "float is not one of int64_value, string_value, point, int64_list"),
        ("lists", "ab", "expected a list, got str"),
        ("total", "1", "expected a number, got str"),
        ("anything", {"a": 2**60}, "loses digits"),
        ("array", np.array(["a"]), "only numbers"),
        ("scalars", "\ud800", "."),
    ],
)
def test_H107_values_without_a_form_are_the_functions_fault(registry, book, function, value, text):
    """Nothing is left out without a word."""
    with pytest.raises(EncodeError, match=text):
        out_of(registry, book, function, value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype="f4").reshape(2, 3),
        np.array(2.5, "f4"),
        np.zeros((0, 3), "f4"),
        np.arange(6, dtype=">f4")[::2],
    ],
)
def test_H107_arrays_travel_as_tensors(registry, book, array):
    """Whatever their layout is; they come back as they were."""
    payload = registry.encoder(registry.offers(CALLS["array"].proto.accepts[0]), array)(array).payload
    said = book.pages["array"].response.FromString(payload).out
    request = book.pages["array"].request(a={"shape": list(said.shape), "dtype": said.dtype, "data": said.data})
    slot = CALLS["array"].slots[0]
    value = registry.decoder(CALLS["array"].proto.inputs[1], slot.spec.type)(Message(request.SerializeToString()))
    assert value.dtype == np.float32
    assert np.array_equal(value, array)
    assert value.shape == array.shape


@pytest.mark.parametrize(
    "tensor",
    [
        {"shape": [3], "dtype": "float32", "data": b"1234"},
        {"shape": [1], "dtype": "O", "data": b"12345678"},
        {"shape": [1], "dtype": "nope", "data": b""},
        {"shape": [-1], "dtype": "float32", "data": b"123"},
    ],
)
def test_H108_a_tensor_that_contradicts_itself_is_a_bad_input(registry, book, tensor):
    """Objects never travel."""
    payload = book.pages["array"].request(a=tensor).SerializeToString()
    decode = registry.decoder(CALLS["array"].proto.inputs[1], CALLS["array"].slots[0].spec.type)
    with pytest.raises(DecodeError):
        decode(Message(payload))


def test_H106_the_media_type_is_private(registry):
    """No wildcard means it; a field of another function, or of none, is refused."""
    assert all("invoker.field" not in str(offer.media_type) for offer in registry.offers("*/*, application/*"))
    with pytest.raises(NotAcceptable):
        registry.offers("application/vnd.invoker.field")
    for said in (media_type("nope", 1), media_type("plain", 7), "application/vnd.invoker.field"):
        with pytest.raises(DecodeError, match="no function has such a field"):
            registry.decoder(said, int)(Message(b""))


def test_elements_of_a_repeated_field_are_values(registry):
    """Further arguments come one by one, in both forms."""
    rest = next(one for one in CALLS["many"].slots if one.is_variadic)
    assert registry.decoder(CALLS["many"].proto.inputs[2], rest.spec.type)(Message(b"\x10\x07")) == 7
    assert registry.decoder(CALLS["many"].json.inputs[2], rest.spec.type)(Message(b"7")) == 7


def test_H211_entries_of_a_map_are_values(registry):
    """They come one by one, in both forms."""
    more = next(one for one in CALLS["named"].slots if one.is_named)
    entry = b"\x12\x05\x0a\x01c\x10\x07"
    assert registry.decoder(CALLS["named"].proto.inputs[2], more.spec.type)(Message(entry)) == 7
    assert registry.decoder(CALLS["named"].json.inputs[2], more.spec.type)(Message(b"7")) == 7
    with pytest.raises(DecodeError):
        registry.decoder(CALLS["named"].json.inputs[2], more.spec.type)(Message(b'"x"'))


def test_H106_messages_are_made_when_they_are_needed():
    """A server that nobody calls in this way makes none."""
    asked: list[int] = []

    def specs() -> Iterator[Any]:
        asked.append(1)
        return iter(SPECS.values())

    codec = FieldCodec(Book(specs))
    registry = Registry()
    registry.register(codec)
    registry.decoder("application/json", int)(Message(b"3"))
    assert not asked
    registry.decoder(CALLS["plain"].proto.inputs[1], kitchen.PlainRequest)
    assert asked == [1]
