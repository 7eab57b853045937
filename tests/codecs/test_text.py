"""`invoker.codecs.text`: `text/plain` with charset and encoding."""

from __future__ import annotations

import codecs
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs import Registry, TextCodec
from invoker.errors import DecodeError, EncodeError, NotAcceptable
from invoker.mediatypes import parse
from invoker.message import Message
from tests.codecs.wire import PATIENT, TEXT, Circle, Odd, Point, decode, encode, released, survives


def test_R077_text_is_strict_utf8_without_its_mark() -> None:
    """For str and for parameters without annotation."""
    for type_ in (str, Any, object, str | None, str | int):
        assert decode(TEXT, "h€".encode(), type_) == "h€"
        assert decode(TEXT, codecs.BOM_UTF8 + b"x", type_) == "x"
        assert decode(TEXT, b"", type_) == ""


def test_RT27_R077_invalid_utf8_is_refused() -> None:
    """It is not repaired; the text says where it breaks."""
    with pytest.raises(DecodeError, match=r"input #0: text/plain cannot become str: byte 1 is not valid utf-8"):
        decode(TEXT, b"x\xff\xfe", str)
    with pytest.raises(DecodeError):
        decode(TEXT, b"\xed\xa0\x80", str)  # a surrogate


def test_RT28_R079_the_charset_is_honoured() -> None:
    """In whatever case and quotes."""
    assert decode("text/plain;charset=iso-8859-1", b"\xe9", str) == "é"
    assert decode('Text/PLAIN; Charset="ISO-8859-1"', b"\xe9", str) == "é"
    assert decode("text/plain;charset=utf-16", "é".encode("utf-16-le"), str) == "é"


def test_RT20_R060_case_and_quotes_do_not_matter() -> None:
    """Of the media type."""
    assert decode('Text/PLAIN; charset="UTF-8"', b"x", str) == "x"


@pytest.mark.parametrize("charset", ["klingon", "utf-7", "base64", "rot13", '""', '"\\u0000"'])
def test_R082_an_unknown_charset_is_a_decode_failure(charset: str) -> None:
    """The type itself is known; the text lists charsets."""
    with pytest.raises(DecodeError, match="is not known; known are utf-8, utf-16"):
        decode(f"text/plain;charset={charset}", b"x", str) if charset != '""' else decode(
            'text/plain;charset="x y"', b"x", str
        )


def test_RT29_R080_bytes_are_raw_or_their_transfer_form() -> None:
    """A charset says nothing about bytes; a charset as encoding transcodes them to UTF-8."""
    assert decode(TEXT, b"\x00\xff", bytes) == b"\x00\xff"
    assert decode("text/plain;charset=utf-16", b"\x00", bytes) == b"\x00"
    assert decode("text/plain;encoding=base64", b"AP8=\r\n", bytes) == b"\x00\xff"
    assert decode("text/plain;encoding=HEX", b"00 fF", bytes) == b"\x00\xff"
    assert decode("text/plain;encoding=iso-8859-1", b"\xe9", bytes) == "é".encode()
    assert decode(TEXT, b"x", bytearray) == bytearray(b"x")
    assert type(decode("text/plain;encoding=hex", b"00", bytearray)) is bytearray
    assert decode(TEXT, b"x", memoryview) == memoryview(b"x")
    assert decode(TEXT, b"x", bytes | None) == b"x"


def test_R080_text_goes_through_the_transfer_form_too() -> None:
    """The charset describes what is within."""
    assert decode("text/plain;encoding=base64", b"w6k=", str) == "é"
    assert decode("text/plain;encoding=hex;charset=iso-8859-1", b"e9", str) == "é"
    assert decode("text/plain;encoding=iso-8859-1", b"\xe9", str) == "é"
    assert decode("text/plain;encoding=hex", b"32", int) == 2


@pytest.mark.parametrize(
    ("encoding", "payload"),
    [("base64", b"A"), ("base64", b"A!=="), ("base64", b"AA==AA=="), ("hex", b"0"), ("hex", b"xy")],
)
def test_R080_a_broken_transfer_form_is_refused(encoding: str, payload: bytes) -> None:
    """Strictly."""
    for type_ in (bytes, str, int):
        with pytest.raises(DecodeError):
            decode(f"text/plain;encoding={encoding}", payload, type_)


def test_R080_the_transfer_form_is_symmetric() -> None:
    """What is asked for an output is made, and told."""
    assert encode("text/plain;encoding=base64", b"\x00\xff") == ("text/plain;encoding=base64", b"AP8=")
    assert encode("text/plain;encoding=hex", "é") == ("text/plain;encoding=hex", b"c3a9")
    assert encode("text/plain;encoding=iso-8859-1", "é") == ("text/plain;encoding=iso-8859-1", b"\xe9")
    assert encode("text/plain;encoding=iso-8859-1", "é".encode()) == ("text/plain;encoding=iso-8859-1", b"\xe9")
    with pytest.raises(EncodeError):
        encode("text/plain;encoding=iso-8859-1", b"\xff")


def test_R081_a_contradiction_is_an_error() -> None:
    """Two names of one charset are none; on an output it cannot be had."""
    for type_ in (str, bytes, int):
        with pytest.raises(DecodeError, match="contradict each other"):
            decode("text/plain;charset=utf-8;encoding=iso-8859-1", b"x", type_)
    assert decode("text/plain;charset=latin1;encoding=iso-8859-1", b"\xe9", str) == "é"
    with pytest.raises(DecodeError, match="encoding 'gzip' is not known"):
        decode("text/plain;encoding=gzip", b"x", str)
    with pytest.raises(NotAcceptable):
        Registry().offers("text/plain;charset=utf-8;encoding=iso-8859-1")


@pytest.mark.parametrize(
    ("value", "payload"),
    [("x", b"x"), ("é", b"\xc3\xa9"), ("", b""), (42, b"42"), (-1, b"-1"), (0.5, b"0.5"), (True, b"true"),
     (False, b"false"),
     (None, b""), (1e300, b"1e+300")],
)  # fmt: skip
def test_R078_R042_text_out_is_str_of_scalars(value: object, payload: bytes) -> None:
    """Booleans as JSON spells them, None as nothing."""
    assert encode(TEXT, value) == (TEXT, payload)


def test_R078_what_is_no_scalar_is_no_text() -> None:
    """No `str()` of a structure leaves the house."""
    for value in ({}, [], Point(1), Circle(1.0), object()):
        with pytest.raises(EncodeError, match="no acceptable media type takes"):
            encode(TEXT, value)


def test_RT40_R102_a_charset_is_honoured_and_told() -> None:
    """With a mark where it needs one."""
    assert encode("text/plain; charset=utf-16", "x") == ("text/plain;charset=utf-16", b"\xff\xfex\x00")
    assert encode('text/plain;CHARSET="iso-8859-1"', "é") == ("text/plain;charset=iso-8859-1", b"\xe9")
    assert encode("text/plain;charset=utf-16", None) == ("text/plain;charset=utf-16", b"")
    assert encode("text/*;charset=utf-16le", 1) == ("text/plain;charset=utf-16le", b"1\x00")


def test_R102_an_unknown_charset_cannot_be_had() -> None:
    """But another entry can."""
    with pytest.raises(NotAcceptable):
        encode("text/plain;charset=klingon", "x")
    assert encode("text/plain;charset=klingon, text/plain;q=0.1", "x") == (TEXT, b"x")


def test_RT41_R103_nothing_is_replaced() -> None:
    """Text that the charset cannot carry is a failure that names it."""
    with pytest.raises(
        EncodeError, match=r"output #0: str cannot be text/plain;charset=iso-8859-1: character .* is not in"
    ):
        encode("text/plain;charset=iso-8859-1", "日")


def test_RT67_R087_a_lone_surrogate_is_refused() -> None:
    """And its text is fit for the wire."""
    with pytest.raises(EncodeError, match=r"output #0: str cannot be text/plain") as caught:
        encode(TEXT, "\ud800")
    str(caught.value).encode()


def test_bytes_are_text_only_where_text_was_asked_for() -> None:
    """Under `*/*` they are octets."""
    assert encode("text/plain", b"\xff") == encode("text/*", b"\xff") == (TEXT, b"\xff")
    assert encode("text/plain", bytearray(b"x")) == encode("text/plain", memoryview(b"x")) == (TEXT, b"x")
    assert encode("*/*", b"\xff")[0] == "application/octet-stream"


def test_R103_bytes_must_be_text_in_the_charset_that_is_told() -> None:
    """Without one they are as they are."""
    assert encode("text/plain;charset=latin1", b"\xe9") == ("text/plain;charset=latin1", b"\xe9")
    for charset, value in (("utf-16", b"x"), ("utf-8", b"\xff")):
        with pytest.raises(EncodeError, match="is not valid utf"):
            encode(f"text/plain;charset={charset}", value)


def test_R104_bytes_that_cannot_be_read_are_an_encode_error() -> None:
    """Bytes are objects with methods of their own, too."""
    for value in (Odd(b"x"), released()):
        with pytest.raises(EncodeError, match=r"output #0: \w+ cannot be text/plain"):
            encode(TEXT, value)


def test_R094_numbers_are_read() -> None:
    """What is none is a decode failure."""
    assert decode(TEXT, b"2", int) == 2
    assert decode(TEXT, b"0.5", float) == 0.5
    assert decode(TEXT, b"true", bool) is True
    with pytest.raises(DecodeError, match="expected an integer, got 'x'"):
        decode(TEXT, b"x", int)


def test_text_fills_no_structure() -> None:
    """There is no guessing."""
    for type_ in (Point, dict, list[int], Circle):
        with pytest.raises(DecodeError, match="text/plain cannot become"):
            decode(TEXT, b'{"x":1}', type_)


def test_a_codec_can_be_used_by_itself() -> None:
    """One call each way, for those who wrap it."""
    codec = TextCodec()
    assert codec.decode(Message(b"x", media_type=TEXT)) == "x"
    assert codec.decode(Message(b"7"), int) == 7
    assert codec.encode("x", parse(TEXT)) == Message(b"x", media_type=TEXT)
    assert codec.can_encode(1)
    assert not codec.can_encode({})
    with pytest.raises(EncodeError):
        codec.encode({}, parse(TEXT))


_PARAMETERS = st.sampled_from(
    ["", ";charset=utf-16", ";charset=iso-8859-1", ";charset=shift_jis", ";charset=gb18030", ";encoding=base64",
     ";encoding=hex",
     ";encoding=utf-16", ";charset=nope", ";encoding=nope", ";charset=iso-2022-jp", ";charset=utf-32", ";charset=hz"]
)  # fmt: skip
_TYPES = st.sampled_from(
    [Any, str, bytes, int, float, bool, str | None, int | None, int | str, bytearray, Point, dict, list]
)


@PATIENT
@given(_PARAMETERS, st.binary(max_size=60), _TYPES)
def test_any_bytes_decode_or_raise_decode_error(parameters: str, payload: bytes, type_: Any) -> None:
    """Whatever the parameters and the annotation are."""
    survives(lambda: decode(TEXT + parameters, payload, type_))


@PATIENT
@given(st.text(), st.sampled_from(["", ";charset=utf-16", ";charset=utf-32be", ";encoding=base64", ";encoding=hex"]))
def test_text_round_trips(text: str, parameters: str) -> None:
    """In every form."""
    media_type, payload = encode(TEXT + parameters, text)
    assert decode(media_type, payload, str) == text.removeprefix("\ufeff")


@PATIENT
@given(st.one_of(st.integers(-(10**30), 10**30), st.floats(allow_nan=False), st.booleans(), st.none()))
def test_scalars_round_trip(value: Any) -> None:
    """By their type."""
    type_ = type(value) if value is not None else int | None
    assert decode(*encode(TEXT, value), type_) == value
