"""``multipart/form-data``: fields and files, read piece by piece with python-multipart.

The codec makes a dict of a body: text for a field, the value for a JSON part, a `Part` for a file; a list where a name
comes again. With an annotation, the type of each field decides: ``bytes`` is the content, ``str`` the text, `Part` the
part with its filename and headers. ``list[Part]`` is all parts in order. `PartReader` is for those who get the body in
pieces.
"""

from __future__ import annotations

import os
import typing
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from invoker.codecs import charsets, scalars
from invoker.codecs.form import gather, is_object, wants_list
from invoker.codecs.interface import Decode, Encode, Offer, Specialised, payload_of, refusing
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.typed import BYTES_LIKE, bytes_like, converter, fields, is_structured, members
from invoker.errors import DecodeError
from invoker.mediatypes import MediaType, parse
from invoker.message import EMPTY, Headers, Message

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks, MultipartParser

__all__ = ["MAX_PARTS", "MultipartCodec", "Part", "PartReader"]

MAX_PARTS = 1000
"""A body with more parts is refused: each of them costs far more memory than it has bytes."""

_MAX_HEADERS = 16


class Part:
    """One part of a multipart body.

    Attributes:
        name: Of the field.
        payload: Its content.
        media_type: As it was sent; empty when nothing was said.
        filename: Without directories; None for a field that is no file.
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
            ValueError: It is no text, or its charset is not known.
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
        media_type: Of the body, with its boundary.

    Raises:
        DecodeError: There is no usable boundary.
    """

    def __init__(self, media_type: MediaType | str) -> None:
        whole = parse(media_type) if isinstance(media_type, str) else media_type
        boundary = whole.param("boundary")
        if not boundary or not boundary.isascii() or len(boundary) > 70:
            raise DecodeError(f"{whole.essence} needs a boundary of 1 to 70 ASCII characters")
        self._ready: list[Part] = []
        self._count = 0
        self._has_ended = False
        self._headers: list[tuple[str, str]] = []
        self._name = b""
        self._value = b""
        self._content: list[bytes] = []
        self._parser = _make_parser(boundary, self)

    def feed(self, chunk: bytes) -> list[Part]:
        """Take the next piece of the body; answers the parts that are complete with it.

        Raises:
            DecodeError: It is malformed, or has too many parts.
        """
        try:
            self._parser.write(chunk)
        except ValueError as error:
            raise DecodeError(f"malformed multipart body: {error}") from error
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> None:
        """The body is over.

        Raises:
            DecodeError: It ends before its last boundary.
        """
        if not self._has_ended:
            raise DecodeError("the multipart body ends before its last boundary")

    def _on_part_begin(self) -> None:
        self._count += 1
        if self._count > MAX_PARTS:
            raise DecodeError(f"the multipart body has more than {MAX_PARTS} parts")
        self._headers, self._content = [], []

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        self._headers.append((_text(self._name), _text(self._value)))
        self._name = self._value = b""

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._content.append(data[start:end])

    def _on_part_end(self) -> None:
        self._ready.append(_part(Headers(self._headers), b"".join(self._content)))
        self._content = []

    def _on_end(self) -> None:
        self._has_ended = True


class MultipartCodec(Specialised):
    """Multipart forms, both ways; a wildcard never means them."""

    media_types = ("multipart/form-data",)
    by_name_only = True

    def decoder(self, media_type: MediaType, type_: Any, where: str) -> Decode:
        """A closure that reads a body into ``type_``."""
        essence = media_type.essence
        try:
            make = _maker(type_)
        except TypeError as error:
            return refusing(refuse_decode(error, where, essence, type_))
        if make is None:
            wanted = bytes_like(type_) or bytes
            return payload_of if wanted is bytes else lambda message: wanted(message.payload)

        def decode(message: Message[bytes]) -> Any:
            try:
                reader = PartReader(media_type)
                parts = reader.feed(message.payload)
                reader.close()
                return make(parts)
            except DecodeError as error:
                raise DecodeError(f"{where}: {error.detail}") from error
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: str) -> Encode | None:
        """A closure that writes dicts and objects of ``cls``, with a boundary of its own for each."""
        if not (issubclass(cls, Mapping) or is_structured(cls)):
            return None
        essence = offer.media_type.essence

        def encode(value: Any) -> Message[bytes]:
            boundary = os.urandom(16).hex()
            try:
                payload = b"".join(_written(value, boundary))
            except BaseException as error:
                raise refuse_encode(error, where, essence, cls) from error
            return Message(payload, EMPTY, f"{essence};boundary={boundary}")

        return encode


def _make_parser(boundary: str, reader: PartReader) -> MultipartParser:
    from python_multipart.multipart import MultipartParser  # only those who get such a body pay for the import

    names = ("part_begin", "header_field", "header_value", "header_end", "part_data", "part_end", "end")
    callbacks = {f"on_{name}": getattr(reader, f"_on_{name}") for name in names}
    wanted = typing.cast("MultipartCallbacks", callbacks)  # a TypedDict with exactly these keys
    return MultipartParser(boundary, wanted, max_header_count=_MAX_HEADERS)


def _part(headers: Headers, payload: bytes) -> Part:
    from python_multipart.multipart import parse_options_header

    disposition = headers.get("Content-Disposition", "")
    kind, options = parse_options_header(disposition.encode("utf-8", "surrogateescape"))
    if kind != b"form-data" or b"name" not in options:
        raise DecodeError("a part of the multipart body has no Content-Disposition: form-data with a name")
    filename = options.get(b"filename")
    return Part(
        _text(options[b"name"]),
        payload,
        headers.get("Content-Type", ""),
        None if filename is None else _text(filename).replace("\\", "/").rpartition("/")[2],
        headers,
    )


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise DecodeError("a header within the multipart body is not valid utf-8") from None


def _maker(type_: Any) -> Any:
    """A closure from parts to the wanted value; None when the raw body is wanted.

    Raises:
        TypeError: Nothing can make this type.
    """
    wanted = members(type_)
    if Part in wanted:
        return _only_part
    if any((typing.get_origin(one) is list and Part in members(typing.get_args(one)[0])) for one in wanted):
        return lambda parts: parts
    if not is_object(type_):
        if bytes_like(type_) is not None:
            return None
        raise TypeError("a multipart body is an object with fields")
    known, lists = fields(type_), wants_list(type_)
    default = next((typing.get_args(one)[1] for one in wanted if len(typing.get_args(one)) == 2), Any)
    convert = converter(type_, is_lax=True)

    def make(parts: list[Part]) -> Any:
        values = ((one.name, _value(one, known.get(one.name, Any) if known else default)) for one in parts)
        return convert(gather(values, lists))

    return make


def _only_part(parts: list[Part]) -> Part:
    if len(parts) != 1:
        raise ValueError(f"expected one part, got {len(parts)}")
    return parts[0]


def _value(part: Part, annotation: Any) -> Any:
    """What a part is, as the annotation of its field wants it."""
    wanted = tuple(inner for one in members(annotation) for inner in _items(one))
    if Part in wanted:
        return part
    for one in wanted:
        if one in BYTES_LIKE:
            return part.payload if one is bytes else one(part.payload)
    kind = parse(part.media_type) if part.media_type else MediaType("text", "plain")
    if part.filename is None and (kind.essence == "application/json" or kind.suffix == "json"):
        return msgspec.json.decode(part.payload)
    if str in wanted or (part.filename is None and kind.type == "text"):
        return part.text
    return part


def _items(annotation: Any) -> tuple[Any, ...]:
    """The items of a list, or the annotation itself."""
    args = typing.get_args(annotation)
    if args and typing.get_origin(annotation) in (list, tuple, set, frozenset):
        return members(args[0])
    return (annotation,)


def _written(value: Any, boundary: str) -> Iterator[bytes]:
    names = fields(type(value)) if not isinstance(value, Mapping) else value
    if names is None:
        raise TypeError("only objects with fields can be a multipart body")
    for name in names:
        content = value[name] if isinstance(value, Mapping) else getattr(value, name)
        for one in content if isinstance(content, (list, tuple, set, frozenset)) else (content,):
            part = _as_part(str(name), one)
            yield f"--{boundary}\r\n{_head(part)}\r\n\r\n".encode()
            yield part.payload
            yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _as_part(name: str, value: Any) -> Part:
    if isinstance(value, Part):
        return Part(name, value.payload, value.media_type, value.filename)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Part(name, bytes(value), "application/octet-stream")
    write = scalars.writer(type(value))
    if write is None:
        return Part(name, msgspec.json.encode(value), "application/json")
    return Part(name, write(value).encode())


def _head(part: Part) -> str:
    head = f'Content-Disposition: form-data; name="{_safe(part.name)}"'
    if part.filename is not None:
        head += f'; filename="{_safe(part.filename)}"'
    return head + (f"\r\nContent-Type: {_safe(part.media_type)}" if part.media_type else "")


def _safe(text: str) -> str:
    if any(sign in '"\\\r\n\0' for sign in text):
        raise ValueError(f"{text[:40]!r} cannot stand in the head of a part")
    return text
