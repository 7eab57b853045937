"""``multipart/form-data``: fields and files, read by python-multipart's streaming parser."""

from __future__ import annotations

from typing import Any

import msgspec

from invoker.codecs.base import as_bytes_type, bad_input, convert
from invoker.codecs.form import collect
from invoker.errors import DecodeError, EncodeError
from invoker.mediatypes import MediaType, parse
from invoker.message import Message

__all__ = ["MultipartCodec", "Part", "PartReader"]


class Part(msgspec.Struct, frozen=True):
    """One part of a form.

    Attributes:
        name: Of its field.
        payload: Its bytes.
        media_type: As it says; ``text/plain`` when it says nothing.
        filename: As the sender calls the file; empty for a plain field. Never use it as a path.
    """

    name: str
    payload: bytes
    media_type: str = "text/plain"
    filename: str = ""


class PartReader:
    """Parses a body chunk by chunk; each complete part is given out once.

    Args:
        boundary: Of the media type.
    """

    def __init__(self, boundary: str) -> None:
        from python_multipart.multipart import MultipartParser  # not needed by most processes

        self._parts: list[Part] = []
        self._headers: dict[str, str] = {}
        self._field = bytearray()
        self._value = bytearray()
        self._data = bytearray()
        self.is_complete = False
        self._parser = MultipartParser(
            boundary.encode("latin-1", "replace"),
            {
                "on_part_begin": self._begin,
                "on_part_data": lambda data, start, end: self._data.extend(data[start:end]),
                "on_part_end": self._end,
                "on_header_field": lambda data, start, end: self._field.extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                "on_header_end": self._header,
                "on_end": self._complete,
            },
        )

    def feed(self, chunk: bytes) -> list[Part]:
        """Give the parts that a chunk completed.

        Raises:
            DecodeError: The body is malformed.
        """
        from python_multipart.exceptions import FormParserError

        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise bad_input("multipart/form-data", error) from None
        done, self._parts = self._parts, []
        return done

    def end(self) -> None:
        """The body is complete.

        Raises:
            DecodeError: Its last boundary is missing.
        """
        if not self.is_complete:
            raise bad_input("multipart/form-data", "the body ends before its last boundary")

    def _begin(self) -> None:
        self._headers = {}
        self._data = bytearray()

    def _header(self) -> None:
        name = self._field.decode("latin-1").lower()
        self._headers[name] = self._value.decode("utf-8", "replace")
        self._field.clear()
        self._value.clear()

    def _end(self) -> None:
        from python_multipart.multipart import parse_options_header

        _, options = parse_options_header(self._headers.get("content-disposition", ""))
        texts = {key.decode("latin-1"): value.decode("utf-8", "replace") for key, value in options.items()}
        media_type = self._headers.get("content-type", "text/plain")
        self._parts.append(Part(texts.get("name", ""), bytes(self._data), media_type, texts.get("filename", "")))

    def _complete(self) -> None:
        self.is_complete = True


class MultipartCodec:
    """A form as a dict: plain fields are texts, files are `Part`; repeated names give lists."""

    media_types = ("multipart/form-data",)
    decodes_only = True

    def decode(self, message: Message[bytes], type_: Any) -> Any:
        """Decode; see `invoker.codecs.Codec`."""
        as_bytes = as_bytes_type(type_)
        if as_bytes is not None:
            return as_bytes(message.payload)
        boundary = parse(message.media_type).param("boundary")
        if not boundary:
            raise bad_input(message.media_type, "it names no boundary")
        reader = PartReader(boundary)
        parts = reader.feed(message.payload)
        reader.end()
        try:
            return convert(collect([(part.name, _value(part)) for part in parts]), type_)
        except (ValueError, RecursionError) as error:
            raise bad_input(message.media_type, error, type_) from None

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes]:
        """Nothing is encoded as a form with files."""
        raise EncodeError(f"nothing is written as {media_type}")

    def can_encode(self, value: Any) -> bool:
        """Never."""
        return False


def _value(part: Part) -> Any:
    if part.filename or not part.media_type.startswith("text/plain"):
        return part
    try:
        return part.payload.decode(parse(part.media_type).charset or "utf-8")
    except (ValueError, LookupError) as error:
        raise DecodeError(f"the field {part.name!r} is not text: {error}") from None
