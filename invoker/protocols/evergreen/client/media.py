"""Converts values to bytes and back, and headers to the metadata of a chunk and back, for clients."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.any_pb2 import Any as PackedAny
from google.protobuf.message import DecodeError as WireError
from google.protobuf.timestamp_pb2 import Timestamp

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.codecs import Registry
from invoker.errors import NotAcceptable, UnsupportedMediaType
from invoker.mediatypes import parse
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.evergreen import wire

OCTETS = "application/octet-stream"
JSON = "application/json"
TEXT = "text/plain"

# E-046: markup that is text without a text/ media type.
_MARKUP = {"application/x-latex", "application/x-tex", "application/javascript", "application/xml", "application/yaml"}


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to content elsewhere; the server fetches the content if its policy allows.

    Attributes:
        uri: The URI, such as ``data:text/plain;base64,...`` or ``https://...``.
        media_type: The media type of the content, even if the response to the fetch names another.
        headers: The headers, as of a `Message`: role, original-file-name, capture-time, experimental.
    """

    uri: str
    media_type: str = OCTETS
    headers: Mapping[str, str] = field(default_factory=Headers)


def encode(value: object, media_type: str, registry: Registry) -> tuple[bytes, str]:
    """The bytes and the media type of a value.

    Without a media type, ``str`` becomes text, bytes-like values are sent unchanged, and all others become JSON.

    Raises:
        NotAcceptable: There is no codec for the media type.
        EncodeError: The value cannot be encoded as its media type.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value), media_type or OCTETS
    wanted = media_type or (TEXT if isinstance(value, str) else JSON)
    if isinstance(value, str) and is_text(wanted):
        return value.encode(charset_of(wanted)), wanted
    try:
        offers = registry.offers(wanted)
    except NotAcceptable:
        raise NotAcceptable(f"no codec encodes {type(value).__name__} as {wanted!r}; give bytes") from None
    return registry.encoder(offers, value)(value).payload, wanted


def decode(payload: bytes, media_type: str, registry: Registry) -> Any:
    """The value of a complete leaf: text becomes ``str``; a type without a codec stays bytes.

    Raises:
        DecodeError: The codec of the type cannot decode the payload.
        UnicodeDecodeError: The bytes are not text in its charset.
    """
    if is_text(media_type):
        return payload.decode(charset_of(media_type))
    try:
        decoder = registry.decoder(media_type, Any)
    except UnsupportedMediaType:
        return payload
    return decoder(Message(payload, EMPTY, media_type))


def is_text(media_type: str) -> bool:
    """Whether a media type is text, which may be read piece by piece (E-046)."""
    try:
        parsed = parse(media_type)
    except ValueError:
        return False
    return parsed.type == "text" or parsed.essence in _MARKUP


def is_bytes(media_type: str, registry: Registry) -> bool:
    """Whether a media type has no codec, so that its bytes may be read piece by piece."""
    try:
        registry.decoder(media_type, Any)
    except UnsupportedMediaType:
        return not is_text(media_type)
    return parse(media_type or OCTETS).essence == OCTETS


def charset_of(media_type: str) -> str:
    """The charset of a text type; UTF-8 if there is none, or Python does not know it."""
    try:
        return codecs.lookup(parse(media_type).charset or "utf-8").name
    except (LookupError, ValueError):
        return "utf-8"


def metadata_of(media_type: str, headers: Mapping[str, str]) -> pb.ChunkMetadata:
    """The metadata of a chunk for a media type and the headers of a message.

    Raises:
        ValueError: The metadata of a chunk has no field for a header, or its value has the wrong form.
    """
    made = pb.ChunkMetadata(mimetype=media_type)
    for name, value in headers.items():
        match name.lower():
            case "role":
                made.role = value
            case "original-file-name":
                made.original_file_name = value
            case "capture-time":
                made.capture_time.CopyFrom(_time(value))
            case "experimental":
                made.experimental.extend(_anys(value))
            case _:
                known = "role, original-file-name, capture-time and experimental"
                raise ValueError(f"header {name!r} cannot travel with a chunk, which carries {known}")
    return made


def headers_of(metadata: pb.ChunkMetadata) -> Headers:
    """The headers in metadata, without the media type."""
    found = wire.headers_of(metadata)
    # A time out of the range of Python's datetime is left out.
    return Headers({name: text for name, text in found.items() if name != wire.CAPTURE_TIME or text.endswith("Z")})


def _time(text: str) -> Timestamp:
    made = Timestamp()
    try:
        made.FromJsonString(text)
    except ValueError:
        raise ValueError(f"capture-time {text!r} must be like 2026-01-31T12:00:00Z (RFC 3339)") from None
    return made


def _anys(text: str) -> list[PackedAny]:
    try:
        return [PackedAny.FromString(base64.b64decode(one, validate=True)) for one in text.split(",")]
    except (ValueError, WireError):
        raise ValueError("experimental is the base64 of serialised google.protobuf.Any, with commas between") from None
