"""Decodes media types without a codec, for protocols that allow any: text types as text, others as raw bytes.

Evergreen allows any media type (E-046, E-047, E-039): a function that takes bytes, or has no annotation, gets the
payload; for other annotations the call fails, since the payload cannot be converted.
"""

from __future__ import annotations

from typing import Any

from invoker.codecs.interface import Decode, payload_of
from invoker.codecs.text import TextCodec
from invoker.codecs.typed import bytes_like, is_any
from invoker.codecs.validated import validated
from invoker.errors import UnsupportedMediaType
from invoker.errors.wording import Place
from invoker.mediatypes import parse

_TEXTUAL = frozenset({"application/x-latex", "application/x-tex", "application/javascript", "application/xml"})
"""Text formats whose media type does not begin with ``text/``."""


def open_decoder(media_type: str, type_: Any, *, index: int, error: UnsupportedMediaType) -> Decode:
    """A closure that decodes messages of a media type that no codec claims.

    Args:
        media_type: The received media type; may be malformed.
        type_: The annotation; ``Any`` takes bytes.
        index: The index of the input, for texts of errors.
        error: The error of the registry, which is raised again if the bytes cannot be converted.

    Raises:
        UnsupportedMediaType: Payloads of this media type cannot be converted to ``type_``.

    Source: Evergreen, "Mime type"; docs/reference/evergreen.md 2.3.
    """
    where = Place("input", index)
    try:
        one = parse(media_type)
    except ValueError:
        one = None
    if one is not None and not one.is_wildcard and (one.type == "text" or one.essence in _TEXTUAL):
        codec = TextCodec((one.essence,))
        if codec.can_decode(type_):
            return validated(codec.decoder(one, type_, where), type_, where, one.essence, codec)
    kind = bytes_like(type_)
    if is_any(type_):
        return payload_of
    if kind is None:
        raise error
    return validated(lambda message: kind(message.payload), type_, where, media_type, TextCodec())
