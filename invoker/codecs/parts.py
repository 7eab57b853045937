"""Reads the parts of a multipart body with python-multipart's streaming parser, which is fed piece by piece.

The codec makes one value of all parts; the HTTP handler gives each part to an input of its own.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING

from invoker.codecs import charsets
from invoker.errors import DecodeError, LimitExceeded
from invoker.mediatypes import MediaType, parse
from invoker.message import EMPTY, Headers

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks, MultipartParser

MAX_PARTS = 1000
"""The most parts of a body: each takes far more memory than it has bytes."""

_MAX_HEADERS = 16
_LONGEST_BOUNDARY = 70  # RFC 2046, 5.1.1


class Part:
    """One part of a multipart body.

    Attributes:
        name: The name of the field.
        payload: The content of the part.
        media_type: The media type as it was sent; empty when it had none.
        filename: The filename without directories; None for a field that is not a file.
        headers: All headers of the part.
    """

    __slots__ = ("filename", "headers", "media_type", "name", "payload")

    def __init__(
        self,
        name: str,
        payload: bytes,
        media_type: str = "",
        filename: str | None = None,
        headers: Mapping[str, str] = EMPTY,
    ) -> None:
        self.name = name
        self.payload = payload
        self.media_type = media_type
        self.filename = filename
        self.headers = headers

    @property
    def text(self) -> str:
        """The content as text, in the charset of its media type.

        Raises:
            ValueError: The content is not text, or its charset is unknown.
        """
        charset = charsets.lookup((parse(self.media_type).charset if self.media_type else None) or "utf-8")
        if charset is None:
            raise ValueError(f"the charset of part {self.name!r} is not known")
        return charsets.decoder(charset)(self.payload)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Part):
            return NotImplemented
        mine = (self.name, self.payload, self.media_type, self.filename)
        return mine == (other.name, other.payload, other.media_type, other.filename)

    def __hash__(self) -> int:
        return hash((self.name, self.payload, self.filename))

    def __repr__(self) -> str:
        file = f", filename={self.filename!r}" if self.filename is not None else ""
        return f"Part({self.name!r}, {len(self.payload)} bytes, {self.media_type!r}{file})"


class PartReader:
    """Reads a multipart body that comes in pieces.

    Args:
        media_type: The media type of the body, with its boundary; as text it may be malformed in the ways in which real
            headers are.
        most_parts: A body with more parts is refused; None: any number, for a caller that takes the parts one by one.
        most_bytes: The most bytes of one part; None: the whole body is bounded.

    Raises:
        DecodeError: There is no usable boundary.
    """

    def __init__(
        self, media_type: MediaType | str, *, most_parts: int | None = MAX_PARTS, most_bytes: int | None = None
    ) -> None:
        boundary = _boundary(media_type) if isinstance(media_type, str) else media_type.param("boundary")
        if not boundary or not boundary.isascii() or len(boundary) > _LONGEST_BOUNDARY:
            raise DecodeError("a multipart/form-data body needs a boundary of 1 to 70 ASCII characters")
        self._content = _Content(most_parts, most_bytes)
        self._parser = _make_parser(boundary, self._content)

    @property
    def held(self) -> int:
        """Bytes of the part that is not yet complete."""
        return len(self._content.part)

    def feed(self, chunk: bytes) -> list[Part]:
        """Take the next piece of the body; returns the parts that it completes.

        Raises:
            DecodeError: The body is malformed, or a part has no name.
            LimitExceeded: The body has too many parts, or a part is too long.
        """
        try:
            self._parser.write(chunk)
        except ValueError as error:
            raise DecodeError(f"the body is not multipart/form-data: {error}") from error
        ready, self._content.ready = self._content.ready, []
        return ready

    def close(self) -> None:
        """Note that the body is over.

        Raises:
            DecodeError: The body ends before its last boundary.
        """
        if not self._content.has_ended:
            raise DecodeError("the multipart/form-data body ends before its closing boundary")


class _Content:
    """The parts that the parser has found so far.

    It does not refer to the parser, so both are freed as soon as they are unused.
    """

    def __init__(self, most_parts: int | None, most_bytes: int | None) -> None:
        self.ready: list[Part] = []
        self.part = bytearray()
        self.has_ended = False
        self._most_parts = most_parts
        self._most_bytes = most_bytes
        self._count = 0
        self._headers: list[tuple[str, str]] = []
        self._name = b""
        self._value = b""

    def on_part_begin(self) -> None:
        self._count += 1
        if self._most_parts is not None and self._count > self._most_parts:
            raise LimitExceeded(f"the multipart body has more than {self._most_parts} parts")
        self._headers = []
        self.part.clear()

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def on_header_end(self) -> None:
        self._headers.append((_text(self._name), _text(self._value)))
        self._name = self._value = b""

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._most_bytes is not None and len(self.part) + end - start > self._most_bytes:
            raise LimitExceeded(
                f"part {self._count} exceeds the limit of {self._most_bytes} bytes (--max-message-bytes)"
            )
        self.part += data[start:end]

    def on_part_end(self) -> None:
        part = _part(Headers(self._headers), bytes(self.part))
        if part.filename != "" or part.payload:  # H-234: a browser sends this for an input in which no file was chosen
            self.ready.append(part)
        self.part.clear()

    def on_end(self) -> None:
        self.has_ended = True


def _boundary(content_type: str) -> str:
    from python_multipart.multipart import parse_options_header  # imported only when such a body comes

    try:
        return parse_options_header(content_type)[1].get(b"boundary", b"").decode("latin-1")
    except UnicodeEncodeError:
        return ""


def _make_parser(boundary: str, content: _Content) -> MultipartParser:
    from python_multipart.multipart import MultipartParser

    names = ("part_begin", "header_field", "header_value", "header_end", "part_data", "part_end", "end")
    callbacks = {f"on_{name}": getattr(content, f"on_{name}") for name in names}
    wanted = typing.cast("MultipartCallbacks", callbacks)  # a TypedDict with exactly these keys
    return MultipartParser(boundary, wanted, max_header_count=_MAX_HEADERS)


def _part(headers: Headers, payload: bytes) -> Part:
    from python_multipart.multipart import parse_options_header

    disposition = headers.get("Content-Disposition", "")
    kind, options = parse_options_header(disposition.encode("utf-8", "surrogateescape"))
    if kind != b"form-data" or b"name" not in options:
        raise DecodeError(
            "a part of the multipart body has no name; a Content-Disposition: form-data with one is expected"
        )
    filename = options.get(b"filename")
    return Part(
        _name(options[b"name"]),
        payload,
        headers.get("Content-Type", ""),
        None if filename is None else _name(filename).replace("\\", "/").rpartition("/")[2],
        headers,
    )


def _name(raw: bytes) -> str:
    """Undo the escaping of a name by a browser or curl (HTML, "Multipart form data").

    Only three characters are escaped.
    """
    return _text(raw).replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise DecodeError("a header within the multipart body is not valid utf-8") from None
