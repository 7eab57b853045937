"""`pack`: what each kind of value becomes, checked against the library of protobuf, and what has no form."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import math
import typing
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest
from google.protobuf import any_pb2, struct_pb2, timestamp_pb2, wrappers_pb2

from invoker.codecs.anyvalue import MOST_LEVELS, Opaque, Unserializable, pack, unpack

NAIVE = dt.datetime(2026, 1, 2)  # noqa: DTZ001 - it is about those without a zone


def packed(message: typing.Any, type_url: str = "") -> bytes:
    """What the library makes of a message."""
    made = any_pb2.Any()
    made.Pack(message)
    made.type_url = type_url or made.type_url
    return made.SerializeToString()


def listed(data: bytes) -> struct_pb2.ListValue:
    """What the library reads; it writes the keys of a map in an order of its own, so bytes cannot be compared."""
    made = struct_pb2.ListValue()
    assert any_pb2.Any.FromString(data).Unpack(made)
    return made


class Colour(enum.Enum):
    """An enum of text."""

    RED = "red"


class Level(enum.IntEnum):
    """An enum that is an int."""

    LOW = 1


@dataclass
class Point:
    """A dataclass that may hold others."""

    x: int
    more: list[typing.Any] = field(default_factory=list)


class Named(msgspec.Struct, rename="camel"):
    """A Struct with other names on the wire."""

    first_name: str


@pytest.mark.parametrize("value", [True, False])
def test_T097_a_bool_is_no_int(value: bool) -> None:
    """True becomes a BoolValue, and within a list bool_value."""
    assert pack(value) == packed(wrappers_pb2.BoolValue(value=value))
    inside = struct_pb2.ListValue(values=[struct_pb2.Value(bool_value=value), struct_pb2.Value(number_value=1)])
    assert pack([value, 1]) == packed(inside)
    assert pack([value] * 20 + [1]) != pack([int(value)] * 20 + [1])


def test_T098_none_is_a_value_with_null() -> None:
    """None becomes a Value whose bytes are 08 00."""
    assert pack(None) == packed(struct_pb2.Value(null_value=struct_pb2.NULL_VALUE))
    assert pack(None).endswith(b"\x12\x02\x08\x00")


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_T099_an_int_of_64_bits_is_an_int64(value: int) -> None:
    """The range of int64 becomes an Int64Value, byte for byte as the library writes it."""
    assert pack(value) == packed(wrappers_pb2.Int64Value(value=value))


def test_T099_larger_ints() -> None:
    """Up to 2^64-1 it is a UInt64Value, beyond that decimal digits under python.int."""
    assert pack(2**63) == packed(wrappers_pb2.UInt64Value(value=2**63))
    assert pack(2**64 - 1) == packed(wrappers_pb2.UInt64Value(value=2**64 - 1))
    text = wrappers_pb2.StringValue(value=str(-(2**70)))
    assert pack(-(2**70)) == packed(text, "type.googleapis.com/python.int")
    assert pack(2**64) == packed(wrappers_pb2.StringValue(value=str(2**64)), "type.googleapis.com/python.int")


def test_T099_an_int_that_python_does_not_write() -> None:
    """Python refuses to write ints of more than 4300 digits, and the error says so."""
    with pytest.raises(Unserializable, match="is an int of 20001 bits"):
        pack(2**20000)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 5e-324])
def test_T100_floats_are_doubles(value: float) -> None:
    """All of them become a DoubleValue, bit for bit."""
    assert pack(value) == packed(wrappers_pb2.DoubleValue(value=value))


@pytest.mark.parametrize("value", ["", "a", "ä" * 62, "x" * 125, "x" * 126, "x" * 127, "x" * 128, "😀" * 9000])
def test_text_is_a_string_value(value: str) -> None:
    """Text of any size is written as the library does."""
    assert pack(value) == packed(wrappers_pb2.StringValue(value=value))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_T101_bytes_are_a_bytes_value(kind: type) -> None:
    """Each class of bytes becomes a BytesValue."""
    assert pack(kind(b"\0\xff")) == packed(wrappers_pb2.BytesValue(value=b"\0\xff"))
    assert pack(kind(b"")) == packed(wrappers_pb2.BytesValue())


def test_T102_lists_and_dicts() -> None:
    """Lists and tuples become a ListValue, dicts a Struct."""
    made = struct_pb2.ListValue()
    made.extend([1, "two", None, 2.5, [True], {"a": "b" * 200}])
    assert pack([1, "two", None, 2.5, [True], {"a": "b" * 200}]) == packed(made)
    assert pack((1, "two", None, 2.5, [True], {"a": "b" * 200})) == packed(made)
    one = struct_pb2.Struct()
    one.update({"key": [1, 2]})
    assert pack({"key": (1, 2)}) == packed(one)
    assert pack([]) == packed(struct_pb2.ListValue())
    assert pack({}) == packed(struct_pb2.Struct())


def test_T102_long_lists_of_numbers_are_the_same_bytes() -> None:
    """The short way for long lists of numbers writes what the library writes."""
    for values in (list(range(50)), [0.5, -0.0, math.inf] * 20, [1, 2.5] * 20):
        made = struct_pb2.ListValue()
        made.extend(values)
        assert pack(values) == packed(made)


def test_T103_what_a_double_cannot_say_is_tagged() -> None:
    """In a container a large int and bytes become objects with @type."""
    made = struct_pb2.ListValue()
    google = "type.googleapis.com/google.protobuf."
    made.extend([{"@type": f"{google}Int64Value", "value": str(2**53 + 1)}])
    assert listed(pack([2**53 + 1])) == made
    assert pack([2**53]) == packed(struct_pb2.ListValue(values=[struct_pb2.Value(number_value=2**53)]))
    made.Clear()
    made.extend([{"@type": f"{google}BytesValue", "value": "AP8="}])
    assert listed(pack([b"\0\xff"])) == made
    assert b"UInt64Value" in pack({"a": 2**63})
    assert b"python.int" in pack({"a": -(2**70)})
    assert b"Int64Value" in pack([*range(30), 2**60])


@pytest.mark.parametrize(
    ("value", "path", "words"),
    [
        ({1: "a"}, "[1]", "has a key of type int"),
        ({"a": [0, {None: 1}]}, "['a'][1][None]", "has a key of type NoneType"),
        ({"a": {"b": [1, {2, 3}, object()]}}, "['a']['b'][2]", "is object, which google.protobuf.Any cannot represent"),
        (object(), "", "is object, which google.protobuf.Any cannot represent"),
        (["x", "\ud800"], "[1]", "half a surrogate pair"),
        ({"\ud800": 1}, "['\\ud800']", "half a surrogate pair"),
        ([NAIVE], "[0]", "a datetime without a time zone"),
        (NAIVE, "", "a datetime without a time zone"),
        (1j, "", "is complex, which google.protobuf.Any cannot represent"),
        ([lambda: 1], "[0]", "is function"),
        ([int], "[0]", "is type"),
        (Point(1, [object()]), "", "is Point that cannot be taken apart"),
    ],
)
def test_T104_what_has_no_form_is_refused_with_its_path(value: object, path: str, words: str) -> None:
    """The error has the path of the value that has no form, and says why."""
    with pytest.raises(Unserializable) as caught:
        pack(value)
    assert caught.value.path == path
    assert words in str(caught.value)
    assert path.encode("ascii", "backslashreplace").decode() in ascii(caught.value.detail).replace("\\\\", "\\")
    assert caught.value.code == "unserializable"


def test_T113_what_contains_itself() -> None:
    """A list, a dict and a dataclass that contain themselves end in an error of ours."""
    one: list[object] = []
    one.append(one)
    two: dict[str, object] = {}
    two["me"] = [two]
    three = Point(1)
    three.more.append(three)
    for value in (one, two, three):
        with pytest.raises(Unserializable, match="contains itself"):
            pack(value)


def test_T113_the_depth_is_bounded() -> None:
    """64 levels pass, also with a tagged object inside, and 65 do not."""
    value: object = b"x"
    for _ in range(MOST_LEVELS):
        value = [value]
    assert unpack(pack(value)) == value
    with pytest.raises(Unserializable, match="more than 64 lists"):
        pack({"a": value})


def test_T114_values_of_numpy() -> None:
    """Scalars become their kind of Python's, arrays lists; too large ones are refused."""
    for value, kind in ((np.int8(-3), int), (np.uint64(2**64 - 1), int), (np.float32(0.5), float), (np.True_, bool)):
        assert pack(value) == pack(kind(value))
        assert pack([value]) == pack([kind(value)])
    assert pack(np.float64(2.5)) == pack(2.5)
    assert pack(np.str_("a")) == pack("a")
    assert pack(np.arange(6).reshape(2, 3)) == pack([[0, 1, 2], [3, 4, 5]])
    assert pack({"a": np.array([1.5, 2])}) == pack({"a": [1.5, 2.0]})
    assert pack(np.array(5)) == pack(5)
    with pytest.raises(Unserializable, match="array of 1000001 elements"):
        pack(np.zeros(1_000_001, dtype=np.int8))


def test_T114_moments() -> None:
    """An aware datetime becomes a Timestamp, whatever its zone."""
    zone = dt.timezone(dt.timedelta(hours=-3))
    for one in (
        dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=zone),
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        dt.datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC),
    ):
        stamp = timestamp_pb2.Timestamp()
        stamp.FromDatetime(one)
        assert pack(one) == packed(stamp)
        assert unpack(pack([one])) == [one]


def test_spans_of_time() -> None:
    """A timedelta becomes a Duration, whose parts have one sign."""
    for micros in (0, 1, -1, 1_500_000, -1_500_000, -1_000_000, 10**13):
        one = dt.timedelta(microseconds=micros)
        assert unpack(pack(one)) == one
        assert unpack(pack({"a": one})) == {"a": one}
    assert pack(dt.timedelta(seconds=-1.5)).endswith(
        b"\x08" + b"\xff" * 9 + b"\x01\x10" + b"\x80\xb6\xca\x91\xfe" + b"\xff" * 4 + b"\x01"
    )


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (Colour.RED, "red"),
        (Level.LOW, 1),
        ([Colour.RED, Level.LOW], ["red", 1]),
        (Point(1, [b"x", Colour.RED]), {"x": 1, "more": [b"x", "red"]}),
        ([Named("a")], [{"firstName": "a"}]),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.deque([1]), [1]),
        ({7}, [7]),
        (decimal.Decimal("1.5"), "1.5"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (Opaque("text", "Model"), Opaque("text", "Model")),
        ([Opaque("text", "Model")], ["text"]),
    ],
)
def test_further_classes(value: object, same: object) -> None:
    """Enums, dataclasses, Structs and the like become what they consist of."""
    assert unpack(pack(value)) == same


def test_a_model_of_pydantic_becomes_a_dict() -> None:
    """Pydantic says itself what a model consists of."""
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", size=(int, 3))
    assert unpack(pack([model()])) == [{"size": 3}]
