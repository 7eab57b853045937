"""`invoker.codecs.charsets`: which charsets exist, strictly both ways."""

from __future__ import annotations

import codecs
import encodings
from encodings.aliases import aliases

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs.charsets import decoder, encoder, lookup, strip_mark
from tests.codecs.wire import PATIENT

_ALL = sorted({found for name in aliases if (found := lookup(name))})


@pytest.mark.parametrize(
    ("name", "expected"),
    [("UTF-8", "utf-8"), ("utf8", "utf-8"), ("utf-8-sig", "utf-8"), ("ISO_8859-1", "iso8859-1"),
     ("latin1", "iso8859-1"),
     ("Windows-1252", "cp1252"), ("utf-16LE", "utf-16-le"), ("us-ascii", "ascii"), ("koi8-u", "koi8-u")],
)  # fmt: skip
def test_names_are_compared_loosely(name: str, expected: str) -> None:
    """As peers write them."""
    assert lookup(name) == expected


@pytest.mark.parametrize(
    "name",
    ["klingon", "", "x" * 1000, "../os", "os", "base64", "rot13", "rot_13", "zlib", "hex", "idna", "punycode", "utf-7",
     "unicode_escape", "raw-unicode-escape", "undefined", "mbcs", "\0", "utf-8\0", "ütf-8"],
)  # fmt: skip
def test_R082_what_is_no_charset_of_text_is_not_known(name: str) -> None:
    """Nor what has an escape syntax of its own."""
    assert lookup(name) is None


def test_unknown_names_leave_nothing_behind() -> None:
    """Python itself would keep an entry for each name that a peer makes up."""
    before = len(encodings._cache)  # type: ignore[attr-defined]
    for number in range(100):
        assert lookup(f"made-up-{number}") is None
    assert len(encodings._cache) == before  # type: ignore[attr-defined]


def test_R082_json_has_the_charsets_of_unicode() -> None:
    """No others."""
    assert lookup("utf-16", only_unicode=True) == "utf-16"
    assert lookup("iso-8859-1", only_unicode=True) is lookup("us_ascii", only_unicode=True) is None


@pytest.mark.parametrize("charset", ["utf-16", "utf-32"])
def test_R083_without_a_mark_it_is_little_endian(charset: str) -> None:
    """With one, the mark decides; written text has one."""
    decode = decoder(charset)
    assert decode("€".encode(f"{charset}-le")) == decode("\ufeff€".encode(f"{charset}-be")) == "€"
    assert decode("\ufeff€".encode(f"{charset}-le")) == decode("€".encode(charset)) == "€"
    assert encoder(charset)("€") == "\ufeff€".encode(f"{charset}-le")


def test_one_mark_is_stripped() -> None:
    """A second one is text."""
    assert decoder("utf-8")(codecs.BOM_UTF8 + b"x") == "x"
    assert decoder("utf-8")(codecs.BOM_UTF8 * 2 + b"x") == "\ufeffx"
    assert decoder("utf-16-be")(b"\xfe\xff\x00x") == "x"
    assert strip_mark(codecs.BOM_UTF8 + b"x") == b"x"
    assert strip_mark(b"x") is None


@PATIENT
@given(st.sampled_from(_ALL), st.binary(max_size=40))
def test_any_bytes_are_text_or_a_unicode_error(charset: str, payload: bytes) -> None:
    """In every charset that is known."""
    try:
        decoder(charset)(payload)
    except UnicodeDecodeError:
        return


@PATIENT
@given(st.sampled_from(_ALL), st.text(max_size=40))
def test_any_text_is_bytes_or_a_unicode_error(charset: str, text: str) -> None:
    """In every charset that is known."""
    try:
        encoder(charset)(text)
    except UnicodeEncodeError:
        return


@PATIENT
@given(st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"]), st.text(max_size=40))
def test_text_round_trips_in_unicode(charset: str, text: str) -> None:
    """Except for a mark in front, which is one."""
    if not text.startswith("\ufeff"):
        assert decoder(charset)(encoder(charset)(text)) == text
