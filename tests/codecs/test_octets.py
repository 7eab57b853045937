"""`invoker.codecs.octets`: bytes as they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import DecodeError, EncodeError
from tests.codecs.wire import OCTETS, PATIENT, Odd, OddText, Point, decode, encode, released, survives


def test_RT16_R061_an_empty_type_means_octets() -> None:
    """Bytes are delivered."""
    assert decode("", b"\x00\xff") == b"\x00\xff"


@PATIENT
@given(st.binary())
def test_R088_bytes_pass_unchanged(payload: bytes) -> None:
    """Both ways, in each of the bytes-like types."""
    assert decode(OCTETS, payload) is payload
    assert decode(OCTETS, payload, bytes) is payload
    for cls in (bytearray, memoryview):
        found = decode(OCTETS, payload, cls)
        assert type(found) is cls
        assert bytes(found) == payload
        assert encode(OCTETS, cls(payload)) == (OCTETS, payload)
    assert encode(OCTETS, payload) == (OCTETS, payload)


def test_R088_a_view_with_gaps_is_written_whole() -> None:
    """Its bytes, in order."""
    assert encode(OCTETS, memoryview(b"abcd")[::2]) == (OCTETS, b"ac")


def test_R089_text_as_octets_is_utf8() -> None:
    """Other values go to the next acceptable type, or fail."""
    assert encode(OCTETS, "é") == (OCTETS, b"\xc3\xa9")
    assert encode(f"{OCTETS}, application/json", 7) == ("application/json", b"7")
    with pytest.raises(
        EncodeError, match="output #0: no acceptable media type takes int; acceptable are application/octet"
    ):
        encode(OCTETS, 7)
    with pytest.raises(EncodeError):
        encode(OCTETS, "\ud800")


@pytest.mark.parametrize("value", [Odd(b"x"), released(), "\ud800"])
def test_R104_what_cannot_be_read_is_an_encode_error(value: object) -> None:
    """Bytes are objects with methods of their own, too."""
    with pytest.raises(EncodeError, match=r"output #0: \w+ cannot be application/octet-stream"):
        encode(OCTETS, value)


def test_R089_a_text_with_methods_of_its_own_is_utf8() -> None:
    """They are not asked."""
    assert encode(OCTETS, OddText("é")) == (OCTETS, b"\xc3\xa9")


def test_R042_none_is_no_bytes() -> None:
    """A value all the same."""
    assert encode(OCTETS, None) == (OCTETS, b"")


def test_R102_parameters_are_not_echoed() -> None:
    """They mean nothing to raw bytes."""
    assert encode("application/octet-stream;charset=utf-8;x=1", b"x") == (OCTETS, b"x")


def test_a_str_or_a_number_is_read_as_text() -> None:
    """Callers that send no type at all must be able to call such functions."""
    assert decode("", b"h\xc3\xa9", str) == "hé"
    assert decode("", b"5\n", int) == 5
    assert decode("", b"x", str | bytes) == b"x"
    for payload, type_ in ((b"\xff", str), (b"x", int), (b"{}", Point), (b"[]", list)):
        with pytest.raises(DecodeError, match=r"input #0: application/octet-stream cannot become"):
            decode("", payload, type_)


@PATIENT
@given(st.binary(max_size=60), st.sampled_from([Any, str, int, float, bool, Point, dict, bytes | None, int | None]))
def test_any_bytes_decode_or_raise_decode_error(payload: bytes, type_: Any) -> None:
    """Whatever is wanted."""
    survives(lambda: decode(OCTETS, payload, type_))
