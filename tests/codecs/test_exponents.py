"""Tests of `invoker.codecs.exponents`: the other way gives what msgspec gives, and takes a bounded time."""

from __future__ import annotations

import enum
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs import exponents
from invoker.codecs.exponents import SMALL_BYTES, bounded, is_costly, json_value
from invoker.codecs.json import JsonCodec
from invoker.errors import DecodeError
from invoker.errors.wording import Place
from invoker.mediatypes import parse
from invoker.message import EMPTY, Message


class Color(enum.Enum):
    RED = "red"


class Pair(NamedTuple):
    x: int
    y: float = 2.5


class StoreChanged(TypedDict, total=False):
    a: float


@dataclass
class Job:
    name: str
    weights: list[float]
    retries: int = 3


class Row(msgspec.Struct):
    x: float
    of: dict[int, float] = {}


VALUES: list[tuple[Any, bytes]] = [
    (Any, b'[1, -2, 2.5, 1e308, "x", {"a": null}]'),
    (float, b"1e308"),
    (int, b"3"),
    (int, b"3.0"),
    (int, b"1e308"),
    (list[float], b"[1, 2.5, 1e-320]"),
    (list[int], b'[1, "2"]'),
    (dict[int, float], b'{"1": 2}'),
    (dict[str, list[float]], b'{"a": [1e300]}'),
    (Job, b'{"name": "a", "weights": [1e308]}'),
    (Job, b'{"name": "a", "weights": ["1e308"]}'),
    (Row, b'{"x": 1, "of": {"3": 4}}'),
    (Pair, b"[1, 1e308]"),
    (Pair, b"[1]"),
    (StoreChanged, b'{"a": 1}'),
    (Color, b'"red"'),
    (Literal["a", 3], b"3"),
    (int | None, b"null"),
    (float | str, b'"1e308"'),
    (set[float], b"[1, 1e308, 1]"),
    (tuple[int, ...], b"[1, 2]"),
    (Decimal, b'"1.5"'),
    (Decimal, b"1.25"),
    (Decimal, b"0.1"),
    (UUID, b'"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"'),
    (datetime, b'"2026-01-02T03:04:05Z"'),
    (datetime, b"1700000000.5"),
    (date, b'"2026-01-02"'),
    (timedelta, b'"PT1S"'),
    (list[bytes], b'["aGk="]'),
    (bool, b"1"),
]

TEXTS = [
    b"1e400", b"-1e400", b"NaN", b"Infinity", b"-0", b"-0.0", b"1.", b".5", b"01", b"+1", b'"\xff"', b'"\\ud800"',
    b'"\\ud83d\\ude00"', b'"\\\\ud800"', b'"a\x01"', b'{"a":1,"a":2}', b"", b" ", b"\xef\xbb\xbf1", b"1 2", b"[1,]",
    b'{"a":1,}', b"18446744073709551616", b"123456789012345678901234567890", b"1" * 400, b"1.0e", b"1e+",
    b"[1e5,2E-3]", b'"\\x"', b"tru", b"\x0c1", b"1\x00", b"'a'", b"{1:2}", b'"\\u12"', b'"\x7f"', b"1e-400", b"[1]]",
    b'"\\/"', b"1E5", b"-", b"1e5.5", b'"\\udc00\\ud800"', b'"\xed\xa0\x80"', b"\t\n\r [1]\r\n", b"[" * 100_000,
]  # fmt: skip


@pytest.fixture
def other_way(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on everything is read in the other way."""

    def switch() -> None:
        monkeypatch.setattr(exponents, "SMALL_BYTES", -1)
        monkeypatch.setattr(exponents, "_FEW", -1)
        monkeypatch.setattr(exponents, "is_costly", lambda _: True)

    return switch


def outcome(read: Callable[[bytes], Any], payload: bytes) -> tuple[str, Any]:
    """What comes of a payload; of an error only that it is one that callers hear of."""
    try:
        return "value", repr(read(payload))
    except (ValueError, RecursionError, DecodeError):
        return "error", None


@pytest.mark.parametrize(("type_", "payload"), VALUES, ids=lambda one: str(one)[:40])
def test_each_type_gets_the_same_in_either_way(type_: Any, payload: bytes, other_way: Callable[[], None]) -> None:
    """Value by value, and refusal by refusal."""
    read = bounded(msgspec.json.Decoder(type_).decode, lambda value: msgspec.convert(value, type_, str_keys=True))
    first = outcome(read, payload)
    other_way()
    assert outcome(read, payload) == first


@pytest.mark.parametrize("payload", TEXTS, ids=lambda one: repr(one)[:30])
def test_R085_the_other_way_is_as_strict(payload: bytes, other_way: Callable[[], None]) -> None:
    """NaN, Infinity, numbers out of range, half surrogates, control characters, trailing commas and nesting."""
    first = outcome(json_value, payload)
    other_way()
    assert outcome(json_value, payload) == first


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
))  # fmt: skip
def test_any_document_gets_the_same_in_either_way(value: Any) -> None:
    """Whatever Python's own encoder writes."""
    payload = json.dumps(value).encode()
    try:
        expected = msgspec.json.decode(payload)
    except msgspec.DecodeError:
        return
    assert repr(exponents._patient(payload)) == repr(expected)


COSTLY = [b"1e308", b"-1E308", b"1e+0308", b"1e-320", b"17.5e295", b"1e23", b"5E-324", b"2.2250738585072014e-308"]


@pytest.mark.parametrize("type_", [Any, list[float], list[float | str]], ids=str)
@pytest.mark.parametrize("number", COSTLY, ids=bytes.decode)
def test_slow_numbers_take_no_longer_than_others(type_: Any, number: bytes) -> None:
    """Python's own parser takes as long for any number; msgspec takes from six to forty times as long for these."""
    count = 120_000 if number == b"1e23" else 400_000 // (len(number) + 1)
    payload = b"[" + b",".join([number] * count) + b"]"
    decode = JsonCodec().decoder(parse("application/json"), type_, Place("input"))

    def ratio() -> float:
        began_s = time.thread_time()
        value = decode(Message(payload, EMPTY, "application/json"))
        took_s = time.thread_time() - began_s
        assert value[0] == value[-1] == float(number)
        json.loads(payload)
        return took_s / (time.thread_time() - began_s - took_s)

    assert any(ratio() < 4 for _ in range(3))  # it is 3 for 1e23, which msgspec alone takes 5.4 for, and 1.5 for others


@dataclass
class Order:
    amounts: list[Decimal]
    weights: list[float]


@pytest.mark.parametrize("type_", [list[Decimal], Order], ids=str)
def test_decimals_keep_their_digits_and_are_capped(type_: Any) -> None:
    """The other way would lose digits, so there is none; what would take long is refused, and says why."""
    decode = JsonCodec().decoder(parse("application/json"), type_, Place("input"))

    def read(count: int) -> Any:
        numbers = b"[" + b",".join([b"1.2345678901234567890123e-300"] * count) + b"]"
        payload = numbers if type_ is not Order else b'{"amounts": %b, "weights": %b}' % (numbers, numbers)
        return decode(Message(payload, EMPTY, "application/json"))

    found = read(2000)
    assert (found if type_ is not Order else found.amounts)[0] == Decimal("1.2345678901234567890123e-300")
    with pytest.raises(DecodeError, match="more than 5000 numbers with an exponent of three digits"):
        read(5001)


@pytest.mark.parametrize(
    ("piece", "is_slow"),
    [
        (b"1e308", True), (b"1e-300", True), (b"1E+200", True), (b"1e0300", True), (b"1e22", False),
        (b"1.5e-05", False), (b'"every letter"', False), (b"123456789", False), (b"1e99", False),
    ],
)  # fmt: skip
def test_what_is_read_in_the_other_way(piece: bytes, is_slow: bool) -> None:
    """Payloads with many exponents of three digits, in all ways of writing them; no others."""
    payload = b"[" + b",".join([piece] * 2000) + b"]"
    assert len(payload) > SMALL_BYTES
    assert is_costly(payload) is is_costly(payload.decode()) is is_slow
    assert not is_costly(b"[" + b",".join([piece] * 15) + b"]")


@pytest.mark.parametrize("size", [20, 64, 65, 200, 1000, 4000, 40_000, 400_000, 4_000_000])
@pytest.mark.parametrize("number", [b"1e308", b"17.5E-320"])
@pytest.mark.parametrize("others", [0, 10, 300])
def test_few_slow_numbers_take_the_slow_way_whatever_the_size(number: bytes, size: int, others: int) -> None:
    """So thousands of small payloads cost hardly more than one large one of the same bytes."""
    given: list[bytes] = []

    def parse(payload: bytes) -> Any:
        given.append(payload)
        return None

    each = number + b",1" * others
    bounded(parse)(b"[" + b",".join([each] * (size // (len(each) + 1) or 1)) + b"]")
    slow_s = sum(one.count(number) for one in given) * 10e-6
    assert slow_s <= max(160e-6, size / 256 * 10e-6)
    assert slow_s <= 5e-3
