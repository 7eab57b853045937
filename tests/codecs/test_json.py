"""`invoker.codecs.json`: strict both ways, typed, and never a crash."""

from __future__ import annotations

import codecs
import collections
import datetime as dt
import json
import math
import subprocess
import sys
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs import JsonCodec
from invoker.errors import DecodeError, EncodeError
from invoker.mediatypes import parse
from invoker.message import Message
from tests.codecs.wire import (
    CLOUDEVENTS,
    JSON,
    PATIENT,
    Circle,
    Colour,
    Model,
    Pair,
    Person,
    Point,
    Shape,
    decode,
    encode,
    survives,
)

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
_VALUES = st.recursive(
    st.none() | st.floats() | st.text() | st.binary() | st.integers() | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.integers() | st.floats(), inner, max_size=3)
        | st.tuples(inner)
    ),
    max_leaves=8,
)
_TYPES = st.sampled_from(
    [Any, str, int, float, bool, dict, list, bytes, Point, Shape, Circle, Person, Pair, Model, int | None,
     Point | Circle, list[int],
     dict[str, int], Colour, dt.datetime, str | bytes, Literal[1, "a"], list[Model]]
)  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [{"foo": 5}, [1, [2, {}]], "text", "", 7, -1, 2**53, 0.5, 1e-9, True, False, None, {"a": {"b": None}}, 2**70],
)
def test_R070_values_are_idiomatic_python(value: object) -> None:
    """dict, list, str, int, float, bool, None."""
    found = decode(JSON, json.dumps(value).encode())
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "payload",
    [b"NaN", b"Infinity", b"-Infinity", b"[NaN]", b"1 2", b'{"a":1}x', b"", b" ", b"'x'", b"[1,]", b'{"a":1,}',
     b"01", b"1.",
     b".5", b"+1", b"nul", b"null,", b"{1:2}", b'"a\nb"', b'"\x00"', b'"\xff"', b'"\xed\xa0\x80"', b"1e400", b"// x\n1",
     b"\xa01", b"1\x00", b'"\\x"', b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf1", b"{", b"True", b"\x0c1",
     b'"\\ud800"'],
)  # fmt: skip
def test_RT21_RT22_R068_R085_json_is_strict(payload: bytes) -> None:
    """Near misses are refused, not repaired."""
    with pytest.raises(
        DecodeError, match=r"^Invoker: Bad Input Signal: input #0: application/json cannot be decoded: "
    ):
        decode(JSON, payload)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_RT23_R085_nan_is_no_json(value: float) -> None:
    """Wherever it hides; the text names output and type."""
    plain = (value, [value], {"a": {"b": (None, value)}}, Circle(value), [Circle(value)], {value, 1.0})
    strange = (np.float64(value), np.array([value]), collections.deque([value]), collections.ChainMap({"a": value}))
    for inside in (*plain, *strange):
        with pytest.raises(
            EncodeError, match=r"output #0: \w+ cannot be application/json: -?(nan|inf) is not a JSON number"
        ):
            encode(JSON, inside)
    assert encode(JSON, {"null": [None, "null", 1.5, Circle(1.5), b"null", dt.date(2026, 1, 1)]})[1].count(b"null") == 3


@pytest.mark.parametrize("payload", [b"[" * 100_000, b'{"a":' * 100_000, b'[{"a":' * 50_000])
def test_RT24_R086_too_deep_is_an_ordinary_error(payload: bytes) -> None:
    """For every annotation and charset."""
    for type_ in (Any, list, dict, Shape, Model, list[Any]):
        with pytest.raises(DecodeError):
            decode(JSON, payload, type_)
    with pytest.raises(DecodeError, match="nested too deeply"):
        decode(f"{JSON};charset=utf-16", payload.decode().encode("utf-16-le"))


def test_R086_a_huge_integer_is_an_ordinary_error() -> None:
    """Both ways; one of some hundred digits is a number."""
    for type_ in (Any, int, float, Decimal):
        survives(lambda type_=type_: decode(JSON, b"9" * 100_000, type_))
    with pytest.raises(DecodeError):
        decode(JSON, b"9" * 5000, int)
    assert decode(JSON, b"9" * 400) == int("9" * 400)
    with pytest.raises(EncodeError, match="digits"):
        encode(JSON, 10**5000)


def test_R086_a_circle_is_an_ordinary_error() -> None:
    """And so is what is nested too deeply."""
    circle: list[Any] = []
    circle.append(circle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (circle, {"a": circle}, Shape("x", circle), deep):
        with pytest.raises(EncodeError, match="it is nested too deeply"):
            encode(JSON, value)
    while deep:  # undone by hand, since it is freed by recursion
        deep = deep[0]


def test_R087_json_out_is_utf8() -> None:
    """Without escapes; it decodes back equal."""
    assert encode(JSON, "日本 € 🐍 \0") == (JSON, '"日本 € 🐍 \\u0000"'.encode())


def test_RT67_R087_a_lone_surrogate_is_refused() -> None:
    """As a value and as a key, and the text of the error is fit for the wire."""
    for value in ("\ud800", {"\ud800": 1}, ["x", "\udfff"]):
        with pytest.raises(
            EncodeError, match=r"output #0: \w+ cannot be application/json: character '\\ud[8f]"
        ) as caught:
            encode(JSON, value)
        str(caught.value).encode()


def test_RT25_R083_R079_json_in_utf16() -> None:
    """Little-endian without a mark; either order by name; the mark decides where there is one."""
    text = '"€"'
    assert decode(f"{JSON};charset=UTF-16", text.encode("utf-16-le")) == "€"
    assert decode(f"{JSON};charset=utf-16le", text.encode("utf-16-le")) == "€"
    assert decode(f"{JSON};charset=UTF-16BE", text.encode("utf-16-be")) == "€"
    assert decode(f"{JSON};charset=utf-16", b"\xfe\xff" + text.encode("utf-16-be")) == "€"
    assert decode(f"{JSON};charset=utf-32", text.encode("utf-32-le")) == "€"
    assert decode(f"{JSON};charset=utf-16", '{"x":1}'.encode("utf-16-le"), Point) == Point(1)
    for payload in (b'"', b"\x00\xd8", b'"\x00\x00\xd8"\x00'):
        with pytest.raises(DecodeError):
            decode(f"{JSON};charset=utf-16", payload)


def test_RA30_a_byte_order_mark_is_stripped() -> None:
    """Also for annotated types."""
    for type_, expected in ((Any, {"x": 1}), (Point, Point(1)), (dict[str, int], {"x": 1})):
        assert decode(JSON, codecs.BOM_UTF8 + b'{"x":1}', type_) == expected
    assert decode(f"{JSON};charset=utf-8", codecs.BOM_UTF8 + b"1") == 1
    with pytest.raises(DecodeError):
        decode(JSON, codecs.BOM_UTF8 + b'"x"', int)


@pytest.mark.parametrize("charset", ["US_ASCII", "utf-7", "iso-8859-1", "klingon", '"x y"'])
def test_RT26_R082_other_charsets_are_decode_failures(charset: str) -> None:
    """The text lists those that JSON may have."""
    with pytest.raises(DecodeError, match=r"is not one of utf-8, utf-16, utf-16le, utf-16be"):
        decode(f"{JSON};charset={charset}", b"1")


def test_R102_a_charset_is_honoured_and_told() -> None:
    """Another one than Unicode's cannot be had, and another entry is taken."""
    assert encode(f"{JSON};charset=utf-16", "€") == (f"{JSON};charset=utf-16", '\ufeff"€"'.encode("utf-16-le"))
    assert encode(f"{JSON}; charset=utf-8", 1) == (f"{JSON};charset=utf-8", b"1")
    assert encode(f"{JSON};charset=latin1, text/plain;q=0.1", 1) == ("text/plain", b"1")
    with pytest.raises(EncodeError, match="nan"):
        encode(f"{JSON};charset=utf-16", [math.nan])


def test_R092_cloudevents_and_the_family_keep_their_name() -> None:
    """They behave as JSON."""
    assert decode(CLOUDEVENTS, b'{"id":"7"}') == {"id": "7"}
    assert decode("application/problem+json; charset=utf-8", b"1", int) == 1
    assert encode(CLOUDEVENTS, {"id": "7"}) == (CLOUDEVENTS, b'{"id":"7"}')
    assert encode("application/vnd.api+json", 1) == ("application/vnd.api+json", b"1")
    with pytest.raises(DecodeError, match="application/problem"):
        decode("application/problem+json", b"x")


def test_a_codec_can_be_used_by_itself() -> None:
    """One call each way."""
    codec = JsonCodec()
    assert codec.decode(Message(b"1")) == 1
    assert codec.encode([1], parse(JSON)) == Message(b"[1]", media_type=JSON)
    assert codec.can_encode({})
    assert not codec.can_encode(b"")
    with pytest.raises(EncodeError, match="value: bytes cannot be application/json"):
        codec.encode(b"", parse(JSON))


def test_the_recursion_limit_is_left_alone() -> None:
    """Depth is msgspec's and Python's business; seen in a process of its own, since libraries of other tests set it."""
    text = "import sys\nfrom invoker.codecs import JsonCodec\nfrom invoker.message import Message\nJsonCodec()"
    text += ".decode(Message(b'[' * 100 + b']' * 100))\nprint(sys.getrecursionlimit())"
    limit = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    plain = [sys.executable, "-c", "import sys; print(sys.getrecursionlimit())"]
    assert limit == subprocess.run(plain, capture_output=True, text=True, check=True).stdout


@PATIENT
@given(_JSON)
def test_values_round_trip(value: Any) -> None:
    """Whatever JSON can say."""
    assert decode(*encode(JSON, value)) == value
    assert json.loads(encode(JSON, value)[1]) == value


@PATIENT
@given(
    st.binary(max_size=80) | _JSON.map(lambda value: json.dumps(value).encode()),
    _TYPES,
    st.sampled_from(["", ";charset=utf-16"]),
)
def test_any_bytes_decode_or_raise_decode_error(payload: bytes, type_: Any, charset: str) -> None:
    """Whatever the annotation and the charset are."""
    survives(lambda: decode(JSON + charset, payload, type_))


@PATIENT
@given(_VALUES)
def test_any_value_is_strict_json_or_an_encode_error(value: Any) -> None:
    """No other writer's JSON is more liberal."""

    def write() -> None:
        json.loads(encode(JSON, value)[1], parse_constant=pytest.fail)

    survives(write, EncodeError)
