"""`invoker.codecs.json`: NaN and infinity are found wherever they hide, and nothing else is taken for them."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import json
import math
import types
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs import json as json_codec
from invoker.errors import EncodeError
from tests.codecs.wire import FORM, JSON, MSGPACK, PATIENT, TEXT, Colour, Pair, encode

NAN, INF = math.nan, math.inf


@dataclasses.dataclass
class Box:
    """A dataclass that holds anything."""

    content: Any
    more: Any = None


@dataclasses.dataclass(slots=True)
class Slotted:
    """A dataclass without a dict."""

    content: Any


class Record(msgspec.Struct):
    """A Struct that holds anything."""

    content: Any


class Row(msgspec.Struct, array_like=True, tag="row"):
    """A Struct that is written as an array."""

    content: Any


class Limit(enum.Enum):
    """An enum of a number that is none."""

    NONE = math.inf


class Reading(float):
    """A float of the author's own."""


class Measured(pydantic.BaseModel):
    """A model with an optional number."""

    value: float
    error: float | None = None


class Quiet(dict):
    """A dict that shows other values than it has."""

    def values(self) -> Any:
        """Nothing."""
        return ()


class Column(dict):
    """A dict with an attribute that hides a method."""

    values = None


class Hollow(list):
    """A list that shows nothing."""

    def __iter__(self) -> Any:
        return iter(())


@pytest.mark.parametrize(
    "value",
    [
        {"a": [{"b": (1, NAN)}]}, [None, "null", INF], {"null": -INF}, Pair(None, NAN), {1: {2: NAN}},
        Box(NAN), Box(None, INF), Box(Box([Box(1, {"a": NAN})])), Slotted(-INF), [Slotted(NAN)],
        Box({1.5, NAN}), Box([2**80, NAN]), Box({dt.date(2026, 1, 1): NAN}), Box(collections.deque([NAN])),
        Record(NAN), Record([Record(None), Record(INF)]), Row(NAN), [Row(INF)],
        Limit.NONE, [Limit.NONE], {Limit.NONE: Limit.NONE}, Reading(NAN), [Reading(INF)], Box(Reading(NAN)),
        np.float64(NAN), np.float32(INF), np.float16(NAN), np.longdouble(NAN), [np.float64(INF)], Box(np.float32(NAN)),
        np.array([[1.0, NAN]]), np.array(NAN), np.array([None, NAN], dtype=object),
        np.array([1, INF], dtype=np.longdouble),
        Measured(value=NAN), Measured(value=1, error=INF), [Measured(value=NAN)], pydantic.RootModel[float](NAN),
        types.MappingProxyType({"a": NAN}), collections.OrderedDict(a=NAN), frozenset({NAN}), {"a": {"b": {NAN}}},
        Quiet(a=NAN), [Hollow([INF])], Column(a=NAN), [msgspec.Raw(b"null"), NAN], Box(msgspec.Raw(b"null"), NAN),
        np.longdouble("1e4000"), Record(np.uint64(0xFFF8_0000_0000_0001).view(np.float64)),
    ],
)  # fmt: skip
def test_RT23_R085_no_number_that_is_none_gets_out(value: Any) -> None:
    """In any container, class or number type, beside None, and when its container shows something else."""
    with pytest.raises(
        EncodeError, match=r"output #0: .+ cannot be application/json: -?(nan|inf) is not a " r"JSON number"
    ):
        encode(JSON, value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (["NaN", "Infinity", "-Infinity", "null", None], '["NaN","Infinity","-Infinity","null",null]'),
        ({"NaN": None, "null": "NaN"}, '{"NaN":null,"null":"NaN"}'),
        ({"nullable": 1.5}, '{"nullable":1.5}'),
        (Box(None, "nan"), '{"content":null,"more":"nan"}'),
        (Box(2**80), '{"content":1208925819614629174706176,"more":null}'),
        ([None, -(2**63) - 1, 2**64, 2**63], "[null,-9223372036854775809,18446744073709551616,9223372036854775808]"),
        ([None, 5e-324, -0.0, 1.7976931348623157e308], "[null,5e-324,-0.0,1.7976931348623157e308]"),
        ([None, Decimal("1.5"), Decimal("NaN")], '[null,"1.5","NaN"]'),
        ([None, dt.time(1), dt.timedelta(1)], '[null,"01:00:00","P1D"]'),
        (Box(dt.datetime(2026, 1, 1, tzinfo=dt.UTC)), '{"content":"2026-01-01T00:00:00Z","more":null}'),
        ({1: None, 1.5: 1, Colour.RED: 2}, '{"1":null,"1.5":1,"red":2}'),
        ({dt.date(2026, 1, 1): None}, '{"2026-01-01":null}'),
        ({NAN: None, Decimal("Infinity"): 1}, '{"nan":null,"Infinity":1}'),
        ({True: None, np.False_: [True]}, '{"true":null,"false":[true]}'),
        ([None, b"\xcb\x7f\xf8\0\0\0\0\0\0"], '[null,"y3/4AAAAAAAA"]'),
        ([None, 203, 127, -1], "[null,203,127,-1]"),
        (Box(msgspec.Raw(b'{"a": null}')), '{"content":{"a": null},"more":null}'),
        (Record([msgspec.Raw(b"1"), None]), '{"content":[1,null]}'),
        (Measured(value=1), '{"value":1.0,"error":null}'),
        (Column(a=None), '{"a":null}'),
        (np.longdouble(1.5), "1.5"),
        (np.array([1, 0.25], dtype=np.longdouble), "[1.0,0.25]"),
        ([np.int64(5), np.bool_(True), np.str_("null"), np.float32(0.5), None], '[5,true,"null",0.5,null]'),
        (Box(msgspec.UNSET), '{"more":null}'),
    ],
)  # fmt: skip
def test_R070_R085_what_only_looks_like_it_is_written(value: Any, text: str) -> None:
    """The letters NaN, None, keys, large numbers, and bytes that look like a packed NaN."""
    assert encode(JSON, value) == (JSON, text.encode())


def test_numbers_of_extended_precision_are_numbers_elsewhere_too() -> None:
    """They have no twin in Python, and were taken for something that is nested without end."""
    assert encode(TEXT, np.longdouble(1.5)) == (TEXT, b"1.5")
    assert encode(MSGPACK, np.longdouble(1.5)) == (MSGPACK, msgspec.msgpack.encode(1.5))
    assert encode(FORM, {"a": np.longdouble(1.5)}) == (FORM, b"a=1.5")
    for value in (np.complex64(1), np.clongdouble(1)):
        with pytest.raises(EncodeError, match="cannot be represented in this media type"):
            encode(JSON, value)


def test_a_value_without_a_number_that_is_none_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """None and the letters "null" in a text cost no step of Python for each item."""

    def walk(value: Any) -> None:
        raise AssertionError(f"{value!r} was walked")

    monkeypatch.setattr(json_codec, "_refuse_nan", walk)
    for value in ([None, "null", 1.5], Box(None), Record({"a": None}), Measured(value=1), np.array([1.5, None])):
        assert b"null" in encode(JSON, value)[1]
    with pytest.raises(AssertionError, match="was walked"):
        json_codec._no_nan([NAN])


@PATIENT
@given(st.floats(), st.lists(st.none() | st.text() | st.binary() | st.integers() | st.floats(), max_size=6))
def test_it_is_refused_exactly_when_it_is_in_there(number: float, others: list[Any]) -> None:
    """Whatever stands next to it."""
    items = [*others, number, None]
    is_clean = all(math.isfinite(one) for one in items if isinstance(one, float))
    for value in (items, Box(items), {"a": Record(items)}):
        try:
            json.loads(encode(JSON, value)[1], parse_constant=pytest.fail)
        except EncodeError:
            assert not is_clean
        else:
            assert is_clean
