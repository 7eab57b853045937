"""The codec of ``application/x-www-form-urlencoded``, which ``curl -d`` and HTML forms send.

A form is a dict of strings; a key that comes more than once has a list of them (R-091). A parameter of a dict or object
type gets the fields, leniently converted (``"2"`` becomes an int); a parameter of text, bytes or a number gets the
whole body, since ``curl -d 5`` means the text 5.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec

from invoker.codecs import charsets, scalars
from invoker.codecs.interface import Decode, Encode, Offer, Specialised, payload_of, refusing
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.support import wants_arrays
from invoker.codecs.typed import bytes_like, converter, enc_hook, fields, is_any, is_structured, members
from invoker.errors import DecodeError
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message

MAX_FIELDS = 10_000
"""The most fields of a form: each takes far more memory than it has bytes."""

_SYNTAX = "az09=&+%"
_LISTS = (list, tuple, set, frozenset)


class FormCodec(Specialised):
    """Decodes and encodes bodies of ``application/x-www-form-urlencoded``."""

    media_types = ("application/x-www-form-urlencoded",)
    applies_marks = True
    honours = ("charset",)

    def accepts(self, media_type: MediaType) -> bool:
        """Whether the charset, if one is asked for, is known."""
        return _charset(media_type) is not None

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that reads a form into ``type_``."""
        essence = media_type.essence
        charset = _charset(media_type)
        if charset is None:
            refusal = f"charset {media_type.charset!r} is not one of utf-8, iso-8859-1, windows-1252 and the like"
            return refusing(refuse_decode(refusal, where, essence))
        wanted = bytes_like(type_)
        if wanted is not None and not is_object(type_):
            return payload_of if wanted is bytes else lambda message: wanted(message.payload)
        to_text = charsets.decoder(charset)
        names = (where, essence, type_)
        try:
            read = _reader(type_, charset)
        except TypeError as error:
            return refusing(refuse_decode(error, *names))

        def decode(message: Message[bytes]) -> Any:
            try:
                return read(to_text(message.payload))
            except BaseException as error:
                raise _hinted(refuse_decode(error, *names), type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that writes dicts and objects of ``cls``."""
        charset = _charset(offer.media_type)
        if charset is None or not (issubclass(cls, Mapping) or is_structured(cls)):
            return None
        name, essence = str(offer.media_type), offer.media_type.essence

        def encode(value: Any) -> Message[bytes]:
            try:
                pairs = list(_pairs(msgspec.to_builtins(value, enc_hook=enc_hook)))
                payload = urlencode(pairs, encoding=charset, errors="strict").encode("ascii")
            except BaseException as error:
                raise refuse_encode(error, where, essence, cls) from error
            return Message(payload, EMPTY, name)

        return encode


def gather(pairs: Iterable[tuple[str, Any]], lists: frozenset[str] | None = frozenset()) -> dict[str, Any]:
    """Make a dict from pairs, with a list for a name that occurs several times or is in ``lists``.

    Args:
        pairs: The pairs in the order they came.
        lists: Names whose values are always lists; None for all.
    """
    found: dict[str, Any] = {}
    again: set[str] = set()
    for name, value in pairs:
        if lists is None or name in lists:
            found.setdefault(name, []).append(value)
        elif name not in found:
            found[name] = value
        elif name in again:
            found[name].append(value)
        else:
            again.add(name)
            found[name] = [found[name], value]
    return found


def is_object(type_: Any) -> bool:
    """Whether the annotation takes a dict or an object with fields."""
    if is_any(type_) or fields(type_) is not None:
        return True
    origins = [typing.get_origin(one) or one for one in members(type_)]
    return any(isinstance(one, type) and (issubclass(one, Mapping) or one is object) for one in origins)


def wants_list(type_: Any) -> frozenset[str] | None:
    """Names of the fields that are lists even for a single value; None if all fields are."""
    known = fields(type_)
    if known is not None:
        return frozenset(name for name, annotation in known.items() if _is_list(annotation))
    for one in members(type_):
        args = typing.get_args(one)
        if len(args) == 2 and _is_list(args[1]):
            return None
    return frozenset()


def _charset(media_type: MediaType) -> str | None:
    """The charset of the percent-encoded text; None unless it encodes the ASCII characters of a form as themselves."""
    found = charsets.lookup(media_type.charset or "utf-8")
    if found is None or charsets.encoder(found)(_SYNTAX) != _SYNTAX.encode():
        return None
    return found


def _hinted(error: DecodeError, type_: Any) -> DecodeError:
    """Add a hint where lists are wanted: the caller has most likely sent JSON by curl, which labels it as a form."""
    if not (wants_arrays([type_]) or any((typing.get_origin(one) or one) in _LISTS for one in members(type_))):
        return error
    error.add_hint("; for lists send JSON, with Content-Type: application/json")
    return error


def _is_list(annotation: Any) -> bool:
    found = members(annotation)
    return all((typing.get_origin(one) or one) in (*_LISTS, type(None)) for one in found) and found != (type(None),)


def _reader(type_: Any, charset: str) -> Any:
    if not is_object(type_):
        return scalars.reader(type_)
    lists = wants_list(type_)
    raw = frozenset(name for name, one in (fields(type_) or {}).items() if bytes_like(one) is not None)
    convert = converter(type_, is_lax=True)

    def read(text: str) -> Any:
        pairs: list[tuple[str, Any]] = parse_qsl(
            text, keep_blank_values=True, encoding=charset, errors="strict", max_num_fields=MAX_FIELDS
        )
        if raw:  # otherwise msgspec would treat the text as base64
            pairs = [(name, value.encode(charset) if name in raw else value) for name, value in pairs]
        return convert(gather(pairs, lists))

    return read


def _pairs(value: Any) -> Iterable[tuple[str, str]]:
    if not isinstance(value, Mapping):
        raise TypeError("only objects with fields can be a form")
    for name, content in value.items():
        several = content if isinstance(content, (list, tuple, set, frozenset)) else (content,)
        for one in several:
            write = scalars.writer(type(one))
            if write is None:
                raise TypeError(f"field {name!r} is a {type(one).__name__}, which a form cannot contain")
            yield str(name), write(one)
