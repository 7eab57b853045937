"""`unpack`: what our own packing gives back, what other peers send, and what is refused."""

from __future__ import annotations

import base64
import datetime as dt
import math
import pickle
import struct
import tracemalloc

import pytest
from google.protobuf import any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs.anyvalue import MOST_LEVELS, BadAny, Opaque, pack, trees, unpack
from tests.conftest import cpu_within

GOOGLE = "type.googleapis.com/google.protobuf."


def labelled(type_url: str, content: bytes) -> bytes:
    """An Any of a type URL and its content."""
    return any_pb2.Any(type_url=type_url, value=content).SerializeToString()


def packed(message: Message) -> bytes:
    """What the library makes of a message."""
    made = any_pb2.Any()
    made.Pack(message)
    return made.SerializeToString()


def same(one: object, other: object) -> bool:
    """Equal, of the same kinds but for integral floats, NaN equal to itself, and -0.0 not to 0.0."""
    if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
        return struct.pack("<d", one) == struct.pack("<d", other) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**53) - 2, 2**64 + 2)
    | st.floats()
    | st.text()
    | st.binary()
    | st.sampled_from([2**53 + 1, 2**63, -(2**70), -0.0, math.nan, b"\xff"])
    | st.datetimes(timezones=st.just(dt.UTC))
    | st.timedeltas(dt.timedelta(days=-10000), dt.timedelta(days=10000))
)
TAGS = st.fixed_dictionaries(
    {"@type": st.sampled_from([GOOGLE + "Int64Value", GOOGLE + "Struct", GOOGLE + "BytesValue", "x"]), "value": SCALARS}
)

TREES = st.recursive(
    SCALARS | TAGS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=5), inner, max_size=5)
        | st.lists(st.floats() | st.integers(), min_size=16, max_size=40)
    ),
    max_leaves=20,
)


@given(TREES)
def test_T103_every_value_comes_back(value: object) -> None:
    """What is packed comes back as it was, also if it looks like a tagged object (scenario 49)."""
    assert same(value, unpack(pack(value)))


@given(st.binary(max_size=60))
def test_T052_any_bytes_are_a_value_or_an_error_of_ours(data: bytes) -> None:
    """Whatever comes, nothing but BadAny is raised."""
    for name in ("", "Struct", "ListValue", "Value", "StringValue", "Int64Value", "Timestamp", "DoubleValue"):
        try:
            unpack(labelled(GOOGLE + name, data) if name else data)
        except BadAny as error:
            assert error.code == "decode"  # noqa: PT017 - some of them are values


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
        max_leaves=15,
    )
)
def test_T102_what_the_library_writes_is_read(value: object) -> None:
    """A Value of the library is read as what was put into it."""
    made = struct_pb2.ListValue()
    made.extend([value])
    assert same([value], unpack(packed(made)))
    assert same(value, unpack(packed(made.values[0])))


def test_T098_all_that_means_none() -> None:
    """A Value with null, a NullValue with any payload, Empty, and an empty Any are None (scenario 50)."""
    for one in (
        labelled(GOOGLE + "Value", b"\x08\x00"),
        labelled(GOOGLE + "NullValue", b""),
        labelled(GOOGLE + "NullValue", b"\x08\x00"),
        labelled(GOOGLE + "NullValue", b"null"),
        packed(empty_pb2.Empty()),
        b"",
    ):
        assert unpack(one) is None


def test_T101_bytes_come_back_as_bytes() -> None:
    """A BytesValue is bytes, whatever class they were packed from."""
    assert unpack(pack(bytearray(b"\0\xff"))) == b"\0\xff"
    assert type(unpack(pack(memoryview(b"ab")))) is bytes


def test_T105_numbers_of_containers() -> None:
    """Integral doubles up to 2^53 become int, except -0.0; others stay float."""
    made = struct_pb2.ListValue()
    made.extend([3.0, -0.0, 2.0**53, 2.0**53 + 2, 1e300, 2.5])
    for found in (unpack(packed(made)), unpack(packed(made) and packed(_many(made)))[:6]):
        assert [type(one) for one in found] == [int, float, int, float, float, float]
        assert math.copysign(1, found[1]) == -1
        assert list(range(found[0])) == [0, 1, 2]
    whole = unpack(pack([1.0, -0.0] * 10))
    assert [type(one) for one in whole] == [int, float] * 10


def _many(made: struct_pb2.ListValue) -> struct_pb2.ListValue:
    """The same behind each other, often enough for the short way."""
    return struct_pb2.ListValue(values=list(made.values) * 5)


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (wrappers_pb2.Int32Value(value=-5), -5),
        (wrappers_pb2.Int32Value(), 0),
        (wrappers_pb2.UInt32Value(value=2**32 - 1), 2**32 - 1),
        (wrappers_pb2.UInt64Value(value=2**64 - 1), 2**64 - 1),
        (wrappers_pb2.Int64Value(value=-(2**63)), -(2**63)),
        (wrappers_pb2.FloatValue(value=0.5), 0.5),
        (wrappers_pb2.BoolValue(value=True), True),
        (wrappers_pb2.BoolValue(), False),
        (wrappers_pb2.DoubleValue(), 0.0),
        (wrappers_pb2.StringValue(value="x" * 300), "x" * 300),
        (wrappers_pb2.BytesValue(value=b"x" * 300), b"x" * 300),
        (timestamp_pb2.Timestamp(seconds=-1, nanos=5000), dt.datetime(1969, 12, 31, 23, 59, 59, 5, dt.UTC)),
        (duration_pb2.Duration(seconds=-1, nanos=-500_000_000), dt.timedelta(seconds=-1.5)),
    ],
)
def test_T106_wrappers_are_read(message: Message, value: object) -> None:
    """Each well-known type is the value that it wraps."""
    found = unpack(packed(message))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("prefix", ["", "type.googleapis.com/", "example.org/a/b/", "/"])
def test_T107_the_part_behind_the_last_slash_selects(prefix: str) -> None:
    """Any prefix will do, and none (scenario 52)."""
    assert unpack(labelled(f"{prefix}google.protobuf.Int64Value", b"\x08\x05")) == 5
    assert unpack(labelled(f"{prefix}google.protobuf.NullValue", b"")) is None


def test_T109_an_object_of_a_foreign_class_is_text() -> None:
    """It is a str that knows the name of its class; nothing is imported."""
    found = unpack(labelled("type.googleapis.com/python.os.system", b"\n\x04true"))
    assert isinstance(found, Opaque)
    assert (found, found.class_name) == ("true", "os.system")
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.class_name) == ("true", "os.system")


@pytest.mark.parametrize("type_url", ["snakepit.pickle", "application/pickle", GOOGLE + "BytesValue", "python.pickle"])
def test_T110_no_pickle_is_read(type_url: str) -> None:
    """A pickle under any name is refused, or stays what it is: bytes or text."""
    evil = pickle.dumps(__import__("os").getcwd)
    try:
        found = unpack(labelled(type_url, b"\n" + bytes([len(evil)]) + evil))
    except BadAny:
        return
    assert found == evil


@pytest.mark.parametrize(
    ("type_url", "content", "value"),
    [
        ("type.googleapis.com/snakepit.float", b"5", 5.0),
        ("type.googleapis.com/snakepit.float", b'"Infinity"', math.inf),
        ("type.googleapis.com/snakepit.float", b'"-Infinity"', -math.inf),
        ("type.googleapis.com/snakepit.integer", b"5.0", 5),
        ("type.googleapis.com/snakepit.string", b'"NaN"', "NaN"),
        ("type.googleapis.com/snakepit.tensor", b'{"shape":[1],"data":[0.5]}', {"shape": [1], "data": [0.5]}),
        ("dspex.variables/boolean", b"true", True),
        ("dspex.variables/float", b"1.5", 1.5),
        ("dspex.variables/embedding", b"[0.5]", [0.5]),
    ],
)
def test_T111_what_snakepit_sends(type_url: str, content: bytes, value: object) -> None:
    """Its own types hold JSON."""
    found = unpack(labelled(type_url, content))
    assert found == value
    assert type(found) is type(value)


def test_T111_not_a_number() -> None:
    """JSON has no NaN, so Snakepit sends text."""
    assert math.isnan(unpack(labelled("type.googleapis.com/snakepit.float", b'"NaN"')))


@pytest.mark.parametrize(
    ("name", "content", "value"),
    [
        ("StringValue", b'"hi"', "hi"),
        ("StringValue", b"42", 42),
        ("StringValue", b'{"a": [1]}', {"a": [1]}),
        ("StringValue", b'"' + b"A" * 65 + b'"', "A" * 65),
        ("StringValue", b"", ""),
        ("StringValue", b"\n\x02hi", "hi"),
        ("Value", b"2", 2),
        ("Value", b"25", 25),
        ("Value", b'"' + b"A" * 65 + b'"', "A" * 65),
        ("Value", b"null", None),
        ("Value", b"[1, 2]", [1, 2]),
        ("Value", b"\x1a\x02hi", "hi"),
        ("Value", b"\x20\x01", True),
    ],
)
def test_T112_json_under_names_of_protobuf(name: str, content: bytes, value: object) -> None:
    """The bytes decide whether it is protobuf or JSON (scenario 50)."""
    found = unpack(labelled(GOOGLE + name, content))
    assert found == value
    assert type(found) is type(value)


def test_T112_a_value_with_several_kinds_or_long_numbers() -> None:
    """The last field wins, as in the library, and a number may be longer than it must be."""
    assert unpack(labelled(GOOGLE + "Value", b"\x20\x01\x1a\x02hi")) == "hi"
    assert unpack(labelled(GOOGLE + "Value", b"\x20\x81\x00")) is True
    assert unpack(labelled(GOOGLE + "Value", b"\x1a\x02hi\x08\x00")) is None
    assert unpack(labelled(GOOGLE + "Value", b"\x1a\x02hi\x2a\x00")) == {}
    assert unpack(labelled(GOOGLE + "Value", b"\x1a\x02hi\x32\x00")) == []
    assert unpack(labelled(GOOGLE + "Value", b"\x20\x01" + b"\x11" + struct.pack("<d", 2))) == 2


@pytest.mark.parametrize(
    ("data", "type_url", "words"),
    [
        (b"\xff", "", "cut off"),
        (b"\n\x05ab", "", "ends within a field"),
        (b"\x12\x01a", "", "has no type URL"),
        (labelled("example.org/Thing", b""), "example.org/Thing", "is of an unknown type"),
        (labelled(GOOGLE + "StringValue", b"\n\x02\xff\xff"), GOOGLE + "StringValue", "utf-8"),
        (labelled(GOOGLE + "StringValue", b"hi"), GOOGLE + "StringValue", "cannot be read"),
        (labelled(GOOGLE + "Int64Value", b"\n\x00"), GOOGLE + "Int64Value", "wire type 2 instead of 0"),
        (labelled(GOOGLE + "Timestamp", b"\x08" + b"\xff" * 8 + b"\x7f"), GOOGLE + "Timestamp", "cannot be read"),
        (labelled(GOOGLE + "Struct", b"\x0a\x02\x1a\x00"), GOOGLE + "Struct", "neither its key nor its value"),
        (labelled(GOOGLE + "ListValue", b"\x12\x00"), GOOGLE + "ListValue", "an unknown field"),
        (labelled("x/python.int", b"\n\x02ab"), "x/python.int", "invalid literal"),
        (labelled("x/snakepit.float", b"[1"), "x/snakepit.float", "cannot be read"),
    ],
)
def test_T052_what_cannot_be_read_is_refused_with_its_type_url(data: bytes, type_url: str, words: str) -> None:
    """The error has the type URL and says why."""
    with pytest.raises(BadAny) as caught:
        unpack(data)
    assert caught.value.type_url == type_url
    assert words in str(caught.value)
    assert caught.value.code == "decode"


@pytest.mark.parametrize("name", ["ListValue", "Value", "Struct", "StringValue"])
def test_T053_too_many_levels(name: str) -> None:
    """64 levels are read and 65 are not, also as JSON and as dicts (scenario 23)."""
    for levels in (MOST_LEVELS, MOST_LEVELS + 1, 5000):
        content = b""
        for _ in range(levels - 1):
            value = (b"\x2a" if name == "Struct" else b"\x32") + _sized(content)
            content = b"\n" + _sized(b"\n\x01k\x12" + _sized(value) if name == "Struct" else value)
        if name == "Value":
            content = b"\x32" + _sized(content)
        if name == "StringValue":
            content = b"[" * levels + b"]" * levels
        data = labelled(GOOGLE + name, content)
        if levels == MOST_LEVELS:
            assert unpack(data)
            continue
        with pytest.raises(BadAny, match="more than 64 lists") as caught:
            unpack(data)
        assert caught.value.code == "too_complex"


def _sized(content: bytes) -> bytes:
    size, made = len(content), bytearray()
    while size > 127:
        made.append(size & 127 | 128)
        size >>= 7
    return bytes((*made, size)) + content


@pytest.mark.parametrize(
    "data",
    [
        labelled(GOOGLE + "ListValue", b"\n\x00" * 1_000_001),
        labelled(GOOGLE + "ListValue", (b"\n" + _sized(b"\x32" + _sized(b"\n\x02\x20\x00" * 1000))) * 1000),
        labelled(GOOGLE + "Struct", b"\n\x00" * 1_000_001),
        labelled(GOOGLE + "StringValue", b"[" + b"1," * 1_000_001 + b"1]"),
    ],
    ids=["list", "lists", "dict", "json"],
)
def test_T053_too_many_elements(data: bytes) -> None:
    """More than a million elements are refused before one is built."""
    with pytest.raises(BadAny, match="more than 1000000 elements") as caught:
        unpack(data)
    assert caught.value.code == "too_complex"


@pytest.mark.parametrize("entry", [b"\n\x02\x08\x00", b"\n\x06\x2a\x04\n\x02\n\x00"], ids=["nulls", "dicts"])
def test_T053_nothing_is_built_before_elements_are_counted(entry: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused takes little more memory than its bytes, and its reader does not run."""
    monkeypatch.setattr(trees, "MOST_ELEMENTS", 5000)
    monkeypatch.setattr(trees, "_list", None)
    data = labelled(GOOGLE + "ListValue", entry * 5001)
    tracemalloc.start()
    try:
        with pytest.raises(BadAny, match="more than 5000 elements"):
            unpack(data)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(data) + 20_000
    finally:
        tracemalloc.stop()


def test_T053_large_values_pass() -> None:
    """A million numbers pass, and text with many commas, brackets and newlines in it."""
    assert len(unpack(pack([7] * 1_000_000))) == 1_000_000
    text = '[,{"\\\n' * 400_000
    assert unpack(pack([text])) == [text]
    assert unpack(labelled(GOOGLE + "StringValue", __import__("json").dumps([text]).encode())) == [text]


def test_T108_a_frame_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pandas the error tells what is missing (scenario 51)."""
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(BadAny, match="needs pandas and pyarrow, which are not installed") as caught:
        unpack(labelled("type.googleapis.com/pandas.DataFrame", b"PAR1"))
    assert caught.value.code == "missing_dependency"
    assert caught.value.type_url == "type.googleapis.com/pandas.DataFrame"


def test_tags_of_other_peers() -> None:
    """A tag that is not known stays a dict, and a broken one is refused."""
    assert unpack(pack([{"@type": "x", "value": "y"}])) == [{"@type": "x", "value": "y"}]
    whole = struct_pb2.Struct()
    whole.update({"@type": GOOGLE + "Int64Value", "value": "5"})
    assert unpack(packed(whole)) == {"@type": GOOGLE + "Int64Value", "value": "5"}
    inside = struct_pb2.ListValue()
    inside.extend([{"@type": GOOGLE + "Timestamp", "value": "2026-01-02T03:04:05.123456789Z"}])
    assert unpack(packed(inside)) == [dt.datetime(2026, 1, 2, 3, 4, 5, 123456, dt.UTC)]
    inside.Clear()
    inside.extend([{"@type": GOOGLE + "BytesValue", "value": base64.b64encode(b"x").decode() + "!"}])
    with pytest.raises(BadAny, match="cannot be read"):
        unpack(packed(inside)) and unpack(labelled(GOOGLE + "Duration", b"\x08"))


@pytest.mark.parametrize(
    ("text", "code"), [(b"[" * 10_000_000, "too_complex"), (b"]" * 10_000_000, "decode"), (b"[{" * 40, "too_complex")]
)
def test_T053_brackets_of_json_are_counted_by_the_million(text: bytes, code: str) -> None:
    """Ten million of them took half a second, in which no other thread could run."""
    with cpu_within(0.2):
        with pytest.raises(BadAny) as caught:
            unpack(labelled("snakepit.list", text))
        assert caught.value.code == code
