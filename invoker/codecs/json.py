"""``application/json`` and its family: strict, typed, and never a crash.

What JSON itself does not know is refused in both directions: NaN and infinities, trailing data, empty payloads (R-085). Depth,
circles and digits beyond reason are ordinary errors (R-086).
"""

from __future__ import annotations

import codecs
import dataclasses
import datetime
import decimal
import enum
import math
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from invoker.codecs.base import (
    Decode,
    Encode,
    as_bytes_type,
    bad_input,
    is_pydantic,
    not_encodable,
    strict_text,
    validator,
)
from invoker.errors import DecodeError
from invoker.mediatypes import MediaType, parse
from invoker.message import Message

__all__ = ["CHARSETS", "JsonCodec", "encode_json", "json_charset"]

CHARSETS = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
"""Python's names of the charsets in which JSON may be written (R-082)."""

_VALUES = (
    str, int, float, bool, type(None), dict, list, tuple, set, frozenset, msgspec.Struct, enum.Enum, decimal.Decimal,
    uuid.UUID, datetime.date, datetime.time, datetime.timedelta,
)  # fmt: skip
_ERRORS = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)


class JsonCodec:
    """JSON into what the parameter is annotated with, and any plain value into JSON."""

    media_types = ("application/json", "application/cloudevents+json", "application/*+json")

    def decoder(self, media_type: MediaType, type_: Any) -> Decode:
        """A closure for one parameter and media type; UTF-8 is the fast one."""
        charset = media_type.charset
        parse_json = _parser(type_)
        if charset is not None and charset not in ("utf-8", "utf8"):
            transcode = _transcoder(charset)
        else:
            transcode = None
        name = media_type.essence

        def decode(message: Message[bytes]) -> Any:
            payload = message.payload
            try:
                if transcode is not None:
                    payload = transcode(payload)
                elif payload[:3] == codecs.BOM_UTF8:
                    payload = payload[3:]
                return parse_json(payload)
            except _ERRORS as error:
                raise bad_input(name, error, type_) from None

        return decode

    def decode(self, message: Message[bytes], type_: Any) -> Any:
        """Decode; see `invoker.codecs.Codec`."""
        return self.decoder(parse(message.media_type or "application/json"), type_)(message)

    def encoder(self, media_type: MediaType, type_: type) -> Encode:
        """A closure for one media type."""
        charset = media_type.charset
        if charset is None or charset in ("utf-8", "utf8"):
            name = str(media_type)

            def encode(value: Any) -> Message[bytes]:
                try:
                    return Message(encode_json(value), media_type=name)
                except _ERRORS as error:
                    raise not_encodable(value, media_type, error) from None

            return encode
        return lambda value: self.encode(value, media_type)

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes]:
        """Encode; see `invoker.codecs.Codec`."""
        try:
            payload = encode_json(value)
            charset = media_type.charset
            if charset is not None and charset not in ("utf-8", "utf8"):
                payload = payload.decode().encode(charset)
        except _ERRORS as error:
            raise not_encodable(value, media_type, error) from None
        return Message(payload, media_type=str(media_type))

    def can_encode(self, value: Any) -> bool:
        """Plain values, structures, dataclasses, models, arrays."""
        return isinstance(value, _VALUES) or _is_structure(type(value)) or hasattr(type(value), "tolist")


def encode_json(value: Any) -> bytes:
    """Compact UTF-8 JSON.

    Raises:
        ValueError: A number that JSON does not know, or text that UTF-8 does not.
        TypeError: Something within it that has no JSON.
        RecursionError: It is too deep, or contains itself.
    """
    made = msgspec.json.encode(value, enc_hook=_plain)
    # msgspec writes NaN and infinities as null; only then is it worth looking for one.
    if b"null" in made and _has_nan(msgspec.to_builtins(value, enc_hook=_plain)):
        raise ValueError("JSON has no NaN and no infinity")
    return made


def json_charset(name: str) -> bool:
    """Whether JSON may be written in a charset."""
    try:
        return codecs.lookup(name).name in CHARSETS
    except (LookupError, ValueError):
        return False


def _parser(type_: Any) -> Any:
    if as_bytes := as_bytes_type(type_):
        return as_bytes  # a parameter that wants bytes gets the document as it came
    if is_pydantic(type_):
        return validator(type_).validate_json
    return msgspec.json.Decoder(type_).decode


def _transcoder(charset: str) -> Callable[[bytes], bytes]:
    def transcode(payload: bytes) -> bytes:
        if not json_charset(charset):
            raise ValueError(f"the charset {charset!r} is not one of {', '.join(CHARSETS)}")
        try:
            return strict_text(payload, charset).encode()
        except DecodeError as error:
            raise ValueError(error.detail) from None

    return transcode


def _plain(value: Any) -> Any:
    """What msgspec does not know: arrays and pydantic models."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _is_structure(type_: type) -> bool:
    return dataclasses.is_dataclass(type_) or hasattr(type_, "__attrs_attrs__") or is_pydantic(type_)


def _has_nan(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(_has_nan(one) for one in value.values()) or any(_has_nan(one) for one in value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(_has_nan(one) for one in value)
    return False
