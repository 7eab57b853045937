"""The codec of ``multipart/form-data``: fields and files, read piece by piece with python-multipart.

The codec converts a body to a dict: text for a field, the value for a JSON part, a `Part` for a file, and a list for a
name that occurs several times. With an annotation, the type of each field decides: ``bytes`` is the content, ``str``
the text, `Part` the part with its filename and headers. ``list[Part]`` is all parts in order.
"""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from invoker.codecs import charsets, scalars
from invoker.codecs.containers import careful, json_exceeds
from invoker.codecs.exponents import json_value
from invoker.codecs.form import gather, is_object, wants_list
from invoker.codecs.interface import Decode, Encode, Offer, Specialised, payload_of, refusing
from invoker.codecs.members import members_of
from invoker.codecs.parts import Part, PartReader
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.typed import BYTES_LIKE, bytes_like, converter, fields, is_structured, members
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType, parse
from invoker.message import EMPTY, Message

_ESCAPES: Final = {'"': "%22", "\r": "%0D", "\n": "%0A"}


class MultipartCodec(Specialised):
    """Decodes and encodes multipart forms; a wildcard never selects them."""

    media_types = ("multipart/form-data",)
    applies_marks = True
    by_name_only = True

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that reads a body into ``type_``."""
        essence = media_type.essence
        try:
            make = _maker(type_, careful(json_value, json_exceeds, self.max_containers))
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
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
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


def _maker(type_: Any, load: Callable[[bytes], Any]) -> Any:
    """A closure that converts parts to the annotated type; None if the annotation is the raw body.

    Raises:
        TypeError: No converter can make this type.
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
        values = ((one.name, _value(one, known.get(one.name, Any) if known else default, load)) for one in parts)
        return convert(gather(values, lists))

    return make


def _only_part(parts: list[Part]) -> Part:
    if len(parts) != 1:
        raise ValueError(f"expected one part, got {len(parts)}")
    return parts[0]


def _value(part: Part, annotation: Any, load: Callable[[bytes], Any]) -> Any:
    """Convert a part to the annotation of its field."""
    wanted = tuple(inner for one in members(annotation) for inner in _items(one))
    if Part in wanted:
        return part
    for one in wanted:
        if one in BYTES_LIKE:
            return part.payload if one is bytes else one(part.payload)
    kind = parse(part.media_type) if part.media_type else MediaType("text", "plain")
    if part.filename is None and (kind.essence == "application/json" or kind.suffix == "json"):
        return load(charsets.strip_mark(part.payload) or part.payload)
    if str in wanted or (part.filename is None and kind.type == "text"):
        return part.text
    return part


def _items(annotation: Any) -> tuple[Any, ...]:
    """The types of the items if the annotation is a list; otherwise the annotation itself."""
    args = typing.get_args(annotation)
    if args and typing.get_origin(annotation) in (list, tuple, set, frozenset):
        return members(args[0])
    return (annotation,)


def _written(value: Any, boundary: str) -> Iterator[bytes]:
    found = members_of(type(value))
    if found is None:
        each = [((scalars.writer(type(name)) or str)(name), content) for name, content in value.items()]
    elif found.is_array:
        raise TypeError("only objects with fields can be a multipart body")
    else:
        each = [found.tag] if found.tag is not None else []
        each += [(one.name, getattr(value, one.own)) for one in found.properties]
    for name, content in each:
        for one in content if isinstance(content, (list, tuple, set, frozenset)) else (content,):
            part = _as_part(name, one)
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
    head = f'Content-Disposition: form-data; name="{_escaped(part.name)}"'
    if part.filename is not None:
        head += f'; filename="{_escaped(part.filename)}"'
    return head + (f"\r\nContent-Type: {_safe(part.media_type)}" if part.media_type else "")


def _escaped(name: str) -> str:
    """A name as HTML writes it. It escapes no ``%``, so a name that looks escaped would be read as another one."""
    if any(written in name for written in _ESCAPES.values()):
        raise ValueError(
            f"{name[:40]!r} cannot be the name of a part: {', '.join(_ESCAPES.values())} stand for other characters"
        )
    for sign, written in _ESCAPES.items():
        name = name.replace(sign, written)
    return _safe(name)


def _safe(text: str) -> str:
    if any(sign in '"\\\r\n\0' for sign in text):
        raise ValueError(f"{text[:40]!r} cannot be in a header of a part")
    return text
