"""Encodes values as JSON: short ones in one piece (`as_json`), long ones part by part.

Encoding twenty megabytes as base64 takes as long as a thousand short requests, and each copy half as long. So the parts
of a long value are made one by one, when the client takes them, and other requests are served in between.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec

from invoker.errors import EncodeError
from invoker.message import Message

_JSON: Final = "application/json"
_OCTETS: Final = "application/octet-stream"
_PART_BYTES: Final = 96 * 1024
"""The size of a part; a multiple of three, so that the parts can be encoded as base64 one by one."""

_Letters = codecs.getincrementaldecoder("utf-8")


def as_json(message: Message[bytes]) -> bytes:
    """Encode a message as a JSON value on one line.

    Raises:
        EncodeError: Its media type is JSON, and its payload is not.
    """
    payload = message.payload
    if message.media_type == _JSON and b"\n" not in payload and b"\r" not in payload:
        return payload  # this is the case for most items, and faster than the rest of the function
    line = _payload(message)
    if line is not None:
        return line
    packed = base64.b64encode(message.payload).decode()
    return msgspec.json.encode({"contentType": message.media_type or _OCTETS, "base64": packed})


def json_parts(message: Message[bytes]) -> Iterator[bytes]:
    """Encode a message as JSON, part by part; a JSON payload is checked before the first part.

    Raises:
        EncodeError: The media type is JSON, and the payload is not.
    """
    payload = _payload(message)
    if payload is not None:
        return slices(payload)
    before = b'{"contentType":%b,"base64":"' % msgspec.json.encode(message.media_type or _OCTETS)
    return chain((before,), map(base64.b64encode, slices(message.payload)), (b'"}',))


def string_parts(payload: bytes) -> Iterator[bytes]:
    """Encode a text as a JSON string, part by part; bytes that are not UTF-8 are replaced."""
    yield b'"'
    for text in _texts(payload):
        yield msgspec.json.encode(text)[1:-1]
    yield b'"'


def line_parts(payload: bytes) -> Iterator[bytes]:
    """Encode a text for an event, part by part: each line but the first gets ``data: ``; invalid UTF-8 is replaced."""
    held = ""
    for come in _texts(payload):
        text = held + come
        held = "\r" if text.endswith("\r") else ""  # the LF after it may begin the next part
        # a regular expression takes five times as long
        text = text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n")
        yield text.replace("\n", "\ndata: ").encode()
    yield b"\ndata: " if held else b""


def slices(payload: bytes) -> Iterator[bytes]:
    """Cut a payload into parts."""
    view = memoryview(payload)
    return (bytes(view[at : at + _PART_BYTES]) for at in range(0, len(view), _PART_BYTES))


def _texts(payload: bytes) -> Iterator[str]:
    letters = _Letters("replace")
    for part in slices(payload):
        yield letters.decode(part)
    yield letters.decode(b"", final=True)


def _payload(message: Message[bytes]) -> bytes | None:
    """The payload as JSON on one line, if it is JSON."""
    media_type, payload = message.media_type, message.payload
    if media_type == _JSON:
        return _compact(payload) if b"\n" in payload or b"\r" in payload else payload
    essence = media_type.partition(";")[0].strip().lower()
    return _compact(payload) if (essence == _JSON or essence.endswith("+json")) and media_type.isascii() else None


def _compact(payload: bytes) -> bytes:
    try:
        return msgspec.json.format(payload, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EncodeError(f"the output has a media type of JSON, but is not JSON: {error}") from None
