"""Media types without a codec: text is text, the rest is bytes for those who take bytes."""

from __future__ import annotations

from typing import Any

import pytest

from invoker.codecs.open import open_decoder
from invoker.errors import DecodeError, UnsupportedMediaType
from invoker.message import EMPTY, Message

_ERROR = UnsupportedMediaType("no codec")


def _decode(payload: bytes, media_type: str, type_: Any) -> Any:
    return open_decoder(media_type, type_, index=0, error=_ERROR)(Message(payload, EMPTY, media_type))


@pytest.mark.parametrize("media_type", ["text/markdown", "text/html; charset=utf-8", "application/x-latex"])
@pytest.mark.parametrize("type_", [str, Any, object])
def test_E046_text_without_a_codec_is_text(media_type: str, type_: Any) -> None:
    """E-046: ``text/*`` and markup decode as text."""
    assert _decode("größer".encode(), media_type, type_) == "größer"


def test_E046_the_charset_of_any_text_counts() -> None:
    """E-046: a charset is obeyed as for ``text/plain``."""
    assert _decode("ä".encode("latin-1"), "text/markdown; charset=iso-8859-1", str) == "ä"


@pytest.mark.parametrize("type_", [Any, object, bytes, bytes | None])
def test_E047_unknown_types_are_raw_bytes(type_: Any) -> None:
    """E-047: whoever takes bytes, or says nothing, gets what came."""
    assert _decode(b"\x89PNG", "image/png", type_) == b"\x89PNG"


def test_E047_other_bytes_likes_are_made() -> None:
    """E-047: a bytearray is a copy of what came."""
    made = _decode(b"\x00\x01", "image/png", bytearray)
    assert made == bytearray(b"\x00\x01")
    assert type(made) is bytearray


@pytest.mark.parametrize("type_", [str, dict, int])
def test_E047_unknown_types_are_refused_for_other_parameters(type_: Any) -> None:
    """E-047: nothing but bytes can be made of them."""
    with pytest.raises(UnsupportedMediaType, match="no codec"):
        open_decoder("image/png", type_, index=0, error=_ERROR)


@pytest.mark.parametrize("media_type", ["no type", "text", "a/b/c", "text/*"])
def test_E039_malformed_types_matter_only_where_they_are_decoded(media_type: str) -> None:
    """E-039: raw bytes need no type; anything else does."""
    assert _decode(b"x", media_type, bytes) == b"x"
    with pytest.raises(UnsupportedMediaType):
        open_decoder(media_type, str, index=0, error=_ERROR)


def test_E048_text_that_is_none_is_refused() -> None:
    """E-048: bytes that are no UTF-8 are not text, whatever markup they claim to be."""
    with pytest.raises(DecodeError):
        _decode(b"\xff\xfe", "text/markdown", str)
