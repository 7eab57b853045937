"""``text/plain``: strings, scalars, and bytes with a transfer form.

``charset`` says how text is written, ``encoding`` how bytes travel: ``base64`` and ``hex`` are transfer forms; a charset's name
there means that bytes are transcoded to UTF-8 (R-080). Both may be given when they do not contradict (R-081).
"""

from __future__ import annotations

import base64
import binascii
import codecs
import datetime
import decimal
import enum
import uuid
from typing import Any

from invoker.codecs.base import (
    BYTES_LIKE,
    Decode,
    Encode,
    as_bytes_type,
    bad_input,
    convert,
    is_pydantic,
    not_encodable,
    scalar_only,
    strict_text,
)
from invoker.errors import DecodeError, EncodeError
from invoker.mediatypes import MediaType, parse
from invoker.message import Message

__all__ = ["TextCodec", "known_charset", "scalar_text"]

_TRANSFER = ("base64", "hex")
_SCALARS = (str, int, float, type(None), decimal.Decimal, uuid.UUID, datetime.date, datetime.time, enum.Enum)


class TextCodec:
    """Strings in any charset; scalars by their text."""

    media_types = ("text/plain",)

    def decoder(self, media_type: MediaType, type_: Any) -> Decode:
        """A closure for one parameter and media type; str in UTF-8 is the fast one."""
        if type_ is str and not media_type.params:
            return _utf8
        return lambda message: self._decode(message.payload, media_type, type_)

    def decode(self, message: Message[bytes], type_: Any) -> Any:
        """Decode; see `invoker.codecs.Codec`."""
        return self._decode(message.payload, parse(message.media_type or "text/plain"), type_)

    def encoder(self, media_type: MediaType, type_: type) -> Encode:
        """A closure for one type of values and media type."""
        name = str(media_type)
        if type_ is str and not media_type.params:

            def encode_text(value: str) -> Message[bytes]:
                try:
                    return Message(value.encode(), media_type=name)
                except UnicodeEncodeError as error:
                    raise not_encodable(value, media_type, error) from None

            return encode_text
        return lambda value: self.encode(value, media_type)

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes]:
        """Encode; see `invoker.codecs.Codec`."""
        transfer, charset = _forms(media_type, EncodeError)
        try:
            if isinstance(value, BYTES_LIKE):
                payload = bytes(value)
                if charset and not media_type.charset:
                    payload = payload.decode().encode(charset)  # the mirror of what decoding does
            else:
                payload = scalar_text(value).encode(charset or "utf-8")
        except (UnicodeError, LookupError) as error:
            raise not_encodable(value, media_type, error) from None
        if transfer == "base64":
            payload = base64.b64encode(payload)
        elif transfer == "hex":
            payload = payload.hex().encode()
        return Message(payload, media_type=str(media_type))

    def can_encode(self, value: Any) -> bool:
        """Strings, scalars and bytes."""
        return isinstance(value, (*_SCALARS, *BYTES_LIKE))

    def _decode(self, payload: bytes, media_type: MediaType, type_: Any) -> Any:
        transfer, charset = _forms(media_type, DecodeError)
        try:
            if transfer == "base64":
                payload = base64.b64decode(payload, validate=True)
            elif transfer == "hex":
                payload = binascii.unhexlify(payload)
            as_bytes = as_bytes_type(type_)
            if as_bytes is not None:
                transcodes = charset and not media_type.charset and not transfer
                return as_bytes(strict_text(payload, charset).encode() if transcodes else payload)
            text = strict_text(payload, charset or "utf-8")
            if type_ is Any or type_ is str:
                return text
            if not scalar_only(type_) and not is_pydantic(type_):
                raise DecodeError("plain text cannot fill a structure; send application/json")
            return convert(text, type_) if scalar_only(type_) and _keeps_space(type_) else convert(text.strip(), type_)
        except DecodeError as error:
            raise bad_input(str(media_type), error.detail, type_) from None
        except (ValueError, RecursionError) as error:
            raise bad_input(str(media_type), error, type_) from None


def _utf8(message: Message[bytes]) -> str:
    try:
        text = str(message.payload, "utf-8")
    except UnicodeDecodeError as error:
        raise bad_input("text/plain", error, str) from None
    return text[1:] if text.startswith("\ufeff") else text


def _keeps_space(type_: Any) -> bool:
    return type_ is str or str in getattr(type_, "__args__", ())


def scalar_text(value: Any) -> str:
    """A scalar as text: booleans as JSON spells them, None as nothing (R-078, R-042)."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, enum.Enum):
        return scalar_text(value.value)
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


def known_charset(name: str) -> bool:
    """Whether text can be written in a charset."""
    try:
        return codecs.lookup(name)._is_text_encoding  # noqa: SLF001
    except (LookupError, ValueError):
        return False


def _forms(media_type: MediaType, error: type[DecodeError | EncodeError]) -> tuple[str, str]:
    """The transfer form and the charset that the parameters ask for; empty where they say nothing."""
    if not media_type.params:
        return "", ""
    charset = media_type.charset or ""
    encoding = (media_type.param("encoding") or "").lower()
    if encoding in _TRANSFER or not encoding:
        return encoding, charset
    if not known_charset(encoding):
        raise error(f"the encoding {encoding!r} is neither base64, hex nor a known charset")
    if charset and known_charset(charset) and codecs.lookup(charset).name != codecs.lookup(encoding).name:
        raise error(f"charset {charset!r} and encoding {encoding!r} contradict each other")
    return "", charset or encoding
