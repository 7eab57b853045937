"""`invoker.codecs.msgpack`: MessagePack both ways."""

from __future__ import annotations

from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import DecodeError, EncodeError
from tests.codecs.wire import MSGPACK, PATIENT, Circle, Opaque, Point, Shape, decode, encode, survives
from tests.conftest import cpu_within


class Model(pydantic.BaseModel):
    """A pydantic model."""

    size: int


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(-9, 9), inner, max_size=4),
    max_leaves=10,
)


@PATIENT
@given(_VALUES)
def test_values_round_trip(value: Any) -> None:
    """Bytes and keys that are no strings included."""
    media_type, payload = encode(MSGPACK, value)
    assert media_type == MSGPACK
    assert decode(media_type, payload) == value


def test_its_other_names_are_known() -> None:
    """Under which it is written when they are asked for."""
    for name in ("application/x-msgpack", "application/vnd.msgpack"):
        assert decode(*encode(name, [1])) == [1]
        assert encode(name, 1)[0] == name


def test_annotations_are_filled() -> None:
    """As from JSON."""
    assert decode(*encode(MSGPACK, {"x": 1}), Point) == Point(1)
    assert decode(*encode(MSGPACK, {"radius": 1}), Point | Circle) == Circle(1.0)
    assert decode(*encode(MSGPACK, Shape("a", [Point(1)])), Shape) == Shape("a", [Point(1)])
    assert decode(*encode(MSGPACK, Model(size=1)), Model) == Model(size=1)
    assert decode(*encode(MSGPACK, b"x"), str | bytes) == b"x"
    assert decode(*encode(MSGPACK, b"x"), bytes) == b"x"
    assert decode(*encode(MSGPACK, "x"), str | bytes) == "x"


@pytest.mark.parametrize(
    ("payload", "type_"),
    [(b"", Any), (b"\x01\x01", Any), (b"\xc1", Any), (b"\xa1\xff", Any), (b"\x91" * 100_000, Any),
     (b"\x81\x80\x01", Any),
     (b"\xa1x", int), (b"\x80", Point), (b"\x80", Model), (b"\x01", Opaque), (b"\x01", "Unresolved")],
)  # fmt: skip
def test_R068_what_does_not_fit_is_a_decode_error(payload: bytes, type_: Any) -> None:
    """Broken, too deep, misfits."""
    with pytest.raises(DecodeError, match="input #0: application/msgpack"):
        decode(MSGPACK, payload, type_)


@pytest.mark.parametrize(
    "payload", [b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff"]
)
def test_a_length_that_lies_costs_nothing(payload: bytes) -> None:
    """No memory is taken for what has not come."""
    with cpu_within(0.5), pytest.raises(DecodeError, match="truncated"):
        decode(MSGPACK, payload * 20)


def test_R104_what_has_no_form_is_an_encode_error() -> None:
    """Unknown classes, circles, integers beyond 64 bits."""
    circle: list[Any] = []
    circle.append(circle)
    for value in (circle, 2**64, [Opaque(1)], "\ud800"):
        with pytest.raises(EncodeError, match=r"output #0: \w+ cannot be application/msgpack"):
            encode(MSGPACK, value)
    with pytest.raises(EncodeError, match="no acceptable"):
        encode(MSGPACK, Opaque(1))


@PATIENT
@given(
    st.binary(max_size=80),
    st.sampled_from([Any, str, int, Point, Model, dict[str, int], str | bytes, list[Point], msgspec.Raw]),
)
def test_any_bytes_decode_or_raise_decode_error(payload: bytes, type_: Any) -> None:
    """Whatever is wanted."""
    survives(lambda: decode(MSGPACK, payload, type_))
