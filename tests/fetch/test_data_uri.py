"""`invoker.fetch.data_uri`: references that hold their content."""

from __future__ import annotations

import base64
from contextlib import suppress
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import DecodeError, InvocationError, Status
from invoker.fetch.data_uri import decode, scheme_of

MOST = 1000


def refused(uri: str, most: int = MOST) -> InvocationError:
    with pytest.raises(InvocationError) as caught:
        decode(uri, most)
    return caught.value


@pytest.mark.parametrize(
    ("uri", "content"),
    [
        ("data:,hello", b"hello"),
        ("data:,", b""),
        ("DATA:,x", b"x"),
        ("data:text/plain,a%20b%2Cc,d", b"a b,c,d"),
        ("data:text/plain;charset=utf-8,%E6%97%A5", "日".encode()),
        ("data:,1+1%2B1", b"1+1+1"),
        ("data:,%2541", b"%41"),
        ("data:,a?b=c&d", b"a?b=c&d"),
        ('data:application/json,{"a":[1]}', b'{"a":[1]}'),
        ("data:;base64,aGk=", b"hi"),
        ("data:image/png;base64,AAEC", b"\x00\x01\x02"),
        ("data:text/plain;charset=x;BASE64,aGk%3D", b"hi"),
        ("data:;base64,%2B/%2b%2F", b"\xfb\xff\xbf"),
        ("data:;base64,", b""),
        ("data:text/plain;base64=no,aGk=", b"aGk="),
        ("data:base64,aGk=", b"aGk="),
    ],
)
def test_E052_ET65_ref_data_uri(uri: str, content: bytes) -> None:
    """A data: URI holds its content in base64 or percent form."""
    assert decode(uri, MOST) == content


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("data:", "needs a comma"),
        ("data:text/plain;base64", "needs a comma"),
        ("data:,100%", "% without two hexadecimal digits at 9"),
        ("data:,%4", "% without"),
        ("data:,%zz", "% without"),
        ("data:%,x", "% without"),
        ("data:,a b", "escaped as %20"),
        ("data:,a\nb", "escaped as %0A"),
        ("data:,日", "escaped as %E6%97%A5"),
        ("data:,\ud800", "escaped as %ED%A0%80"),
        ("data:,a#b", "escaped as %23"),
        ("data:;base64,aGk", "padding"),
        ("data:;base64,aGk==", "not: "),
        ("data:;base64,=", "not: "),
        ("data:;base64,aG=k", "not: "),
        ("data:;base64,aGk=aGk=", "not: "),
        ("data:;base64,a*k=", "not: "),
        ("data:;base64,aG%0Ak=", "not: "),
        ("data:;base64,-_-_", "not: "),
    ],
)
def test_E052_a_malformed_data_uri_is_bad_input(uri: str, text: str) -> None:
    """Nothing is guessed: whoever sent it hears what is wrong and where."""
    error = refused(uri)
    assert isinstance(error, DecodeError)
    assert str(error).startswith("Invoker: Bad Input Signal: ")
    assert text in str(error)


@pytest.mark.parametrize("uri", ["data:,%41%41%41", "data:;base64,QUFB"])
def test_E052_the_limit_counts_bytes_after_decoding(uri: str) -> None:
    """Three bytes are three bytes, however they are written."""
    assert decode(uri, 3) == b"AAA"
    error = refused(uri, 2)
    assert error.status is Status.RESOURCE_EXHAUSTED
    assert str(error) == "Invoker: Limit Exceeded: a data: URI holds 3 bytes, which exceeds the limit of 2 bytes"


def test_E051_a_media_type_inside_is_ignored() -> None:
    """Even one that says that the text is in another charset, or is none at all."""
    assert decode("data:text/plain;charset=utf-16,%41", MOST) == b"A"
    assert decode("data:///,A", MOST) == b"A"


@given(st.binary())
def test_any_bytes_come_back_from_both_forms(content: bytes) -> None:
    """What was encoded is decoded to the same."""
    assert decode(f"data:,{quote_from_bytes(content, safe='')}", len(content)) == content
    assert decode(f"data:;base64,{base64.b64encode(content).decode()}", len(content)) == content


@given(st.text())
def test_any_text_is_content_or_an_error_of_the_protocol(text: str) -> None:
    """No other error comes out, and never more than is allowed."""
    content = b""
    with suppress(InvocationError):
        content = decode(f"data:{text}", 20)
    assert len(content) <= 20


@pytest.mark.parametrize(
    ("uri", "scheme"), [("data:,x", "data"), ("FILE:///x", "file"), ("git+ssh://h", "git+ssh"), ("C:\\x", "c")]
)
def test_the_scheme_is_told_in_lower_case(uri: str, scheme: str) -> None:
    """Schemes have no case."""
    assert scheme_of(uri) == scheme


@pytest.mark.parametrize("uri", ["", "x", "./x", "/etc/passwd", "//host/x", "?q", "#f", "1a:b", ":x", "a b:c", "é:x"])
def test_E058_a_relative_uri_is_refused(uri: str) -> None:
    """It is never taken for something near the server."""
    with pytest.raises(InvocationError, match="is not an absolute URI") as caught:
        scheme_of(uri)
    assert caught.value.status is Status.PERMISSION_DENIED
