"""The strict codec of JSON, and of every media type of the ``+json`` family.

Theory. msgspec parses strictly: NaN, Infinity, trailing data, an empty payload, numbers out of range, control
characters and broken UTF-8 are errors; nesting and huge integers end in ordinary exceptions (R-085, R-086). Writing
needs one guard: msgspec writes ``null`` for NaN and infinities. So a value whose output contains ``null`` is also
encoded as MessagePack, where NaN and infinities have a recognisable pattern of bytes; this costs less than the JSON
did. Only if the pattern occurs is the value walked, since an integer or bytes may contain it, too. A `msgspec.Raw` is
the author's own JSON and is not checked.

A parameter annotated as bytes gets the payload itself. bytes *within* a structure are base64 strings, in both
directions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from invoker.codecs import charsets
from invoker.codecs.collisions import checking
from invoker.codecs.containers import careful, json_exceeds
from invoker.codecs.costs import limit_on_loop
from invoker.codecs.exponents import SMALL_BYTES, bounded, capped, json_value
from invoker.codecs.interface import Decode, Encode, Offer, Specialised, payload_of, refusing
from invoker.codecs.leftout import completed
from invoker.codecs.misspelt import LARGE_BYTES, Spelling, spelling_of
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.standins import understood
from invoker.codecs.typed import (
    BYTES_LIKE,
    adapter,
    bytes_like,
    collisions_of,
    enc_hook,
    holds_pydantic,
    is_any,
    json_hook,
    narrowed,
    per_member,
    plain,
    within,
)
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message

_Parse = Callable[[Any], Any]

_ENCODE = msgspec.json.Encoder(enc_hook=enc_hook).encode
_PACK = msgspec.msgpack.Encoder(enc_hook=enc_hook).encode
_PACKED_NAN = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]").search  # a float64: NaN or an infinity
_LOOP_BYTES = 256 * 1024
"""A text of more bytes is decoded in a thread: with slow numbers, this many take thirty milliseconds."""

_NEVER_NAN = frozenset({str, int, bool, type(None), msgspec.Raw, *BYTES_LIKE})


class JsonCodec(Specialised):
    """Strict JSON (R-070, R-082 to R-087, R-092)."""

    media_types = ("application/json",)
    applies_marks = True
    honours = ("charset",)

    def __init__(self, media_types: tuple[str, ...] = ()) -> None:
        super().__init__(media_types)
        limit_on_loop(("", *self.media_types), _LOOP_BYTES)

    def accepts(self, media_type: MediaType) -> bool:
        """Whether the charset, if one is asked for, is one of Unicode."""
        return media_type.charset is None or charsets.lookup(media_type.charset, only_unicode=True) is not None

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that parses this charset into ``type_``."""
        essence = media_type.essence
        charset = charsets.lookup(media_type.charset or "utf-8", only_unicode=True)
        if charset is None:
            refusal = f"charset {media_type.charset!r} is not one of {charsets.JSON_CHARSETS}"
            return refusing(refuse_decode(refusal, where, essence))
        if raw := _raw(type_):
            return raw
        try:
            parse = _parser(type_)
        except (TypeError, RuntimeError) as error:
            return refusing(refuse_decode(error, where, essence, type_))
        parse_large = careful(parse, json_exceeds, self.max_containers)
        names = (where, essence, type_)
        spelling = None if is_any(type_) else spelling_of(type_)
        if charset != "utf-8":
            return _transcoding(parse_large if spelling is None else spelling.checked(parse_large), charset, names)
        if spelling is not None:
            return _spelt(parse, parse_large, spelling, names)

        def decode(message: Message[bytes]) -> Any:
            payload = message.payload
            try:
                return parse(payload) if len(payload) <= SMALL_BYTES else parse_large(payload)
            except BaseException as error:  # noqa: BLE001 - `_behind_mark` raises it
                return _behind_mark(parse, payload, error, names)

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that writes values of ``cls``."""
        if not plain(cls):
            return None
        name, essence = str(offer.media_type), offer.media_type.essence
        charset = charsets.lookup(offer.media_type.charset or "utf-8", only_unicode=True)
        if charset is None:
            return None
        if charset != "utf-8":
            return _transcoded(charset, name, cls, where)
        dumps = _ENCODE

        def encode(value: Any) -> Message[bytes]:
            try:
                payload = dumps(value)
                if b"null" in payload:
                    _no_nan(value)
            except BaseException as error:
                raise refuse_encode(error, where, essence, cls) from error
            return Message(payload, EMPTY, name)

        if cls in (str, int, bool, type(None)):

            def encode_scalar(value: Any) -> Message[bytes]:
                try:
                    return Message(dumps(value), EMPTY, name)
                except (ValueError, TypeError) as error:
                    raise refuse_encode(error, where, essence, cls) from error

            return encode_scalar
        return encode


def _spelt(parse: _Parse, parse_large: _Parse, spelling: Spelling, names: tuple[Place, str, Any]) -> Decode:
    """A decoder of objects that checks their keys; if all keys are known, this calls no Python function."""
    checked, classes = spelling.checked(parse), spelling.classes
    strict, strict_large = spelling.json, spelling.json_large

    def decode(message: Message[bytes]) -> Any:
        payload = message.payload
        try:
            made = parse(payload) if len(payload) <= SMALL_BYTES else parse_large(payload)
        except BaseException as error:  # noqa: BLE001 - `_behind_mark` raises it
            return _behind_mark(checked, payload, error, names, spelling)
        if type(made) not in classes:
            return made
        try:
            strict(payload) if len(payload) < LARGE_BYTES else strict_large(payload)
        except msgspec.ValidationError:
            try:
                spelling.check_json(made, payload)
            except msgspec.ValidationError as error:
                raise refuse_decode(error, *names) from error
        return made

    return decode


def _behind_mark(
    parse: _Parse, payload: bytes, error: BaseException, names: tuple[Place, str, Any], spelling: Spelling | None = None
) -> Any:
    """Decode a payload again without its byte order mark; if it has no mark, raise the error."""
    behind_mark = charsets.strip_mark(payload)
    if behind_mark is None:
        cause = spelling.cause_json(payload) if spelling is not None and isinstance(error, ValueError) else ""
        raise refuse_decode(cause or error, *names) from error
    try:
        return parse(behind_mark)
    except BaseException as further:
        raise refuse_decode(further, *names) from further


def _parser(type_: Any) -> Callable[[Any], Any]:
    try:
        return _cached_parser(type_)
    except TypeError:  # the annotation cannot be hashed, or no codec can decode it
        return _make_parser(type_)


def _make_parser(type_: Any) -> Callable[[Any], Any]:
    if is_any(type_):
        return json_value
    type_ = narrowed(type_, BYTES_LIKE)
    check = collisions_of(type_)
    if holds_pydantic(type_):
        validate = adapter(type_).validate_json

        def parse(payload: Any) -> Any:
            value = json_value(payload)  # pydantic accepts NaN and Infinity, which are not JSON
            if check is not None:
                check(value)
            return validate(payload)

        return parse
    has_decimals = Decimal in within(type_)
    make = per_member(understood(type_), lambda one: _make_one(one, has_decimals=has_decimals))
    return checking(make, json_value, check)


def _make_one(type_: Any, *, has_decimals: bool) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        return msgspec.convert(value, type_, str_keys=True, dec_hook=json_hook)

    parse = msgspec.json.Decoder(type_, dec_hook=json_hook).decode
    return completed(capped(parse, convert) if has_decimals else bounded(parse, convert), type_)


_cached_parser = lru_cache(maxsize=512)(_make_parser)


def _raw(type_: Any) -> Decode | None:
    """Give a closure that returns the payload itself if the annotation can only be bytes-like; None otherwise."""
    wanted = bytes_like(type_)
    if wanted is None or narrowed(type_, BYTES_LIKE) is not type_:
        return None
    if wanted is bytes:
        return payload_of
    return lambda message: wanted(message.payload)


def _transcoding(parse: Callable[[Any], Any], charset: str, names: tuple[Place, str, Any]) -> Decode:
    to_text = charsets.decoder(charset)

    def decode(message: Message[bytes]) -> Any:
        try:
            return parse(to_text(message.payload))
        except BaseException as error:
            raise refuse_decode(error, *names) from error

    return decode


def _transcoded(charset: str, name: str, cls: type, where: Place) -> Encode:
    to_bytes = charsets.encoder(charset)

    def encode(value: Any) -> Message[bytes]:
        try:
            payload = _ENCODE(value)
            if b"null" in payload:
                _no_nan(value)
            return Message(to_bytes(payload.decode()), EMPTY, name)
        except BaseException as error:
            raise refuse_encode(error, where, name, cls) from error

    return encode


def _no_nan(value: Any) -> None:
    """Make sure that a value holds neither NaN nor infinity, which msgspec writes as null.

    Raises:
        ValueError: There is a NaN or an infinity in it (R-085).
    """
    try:
        is_clean = _PACKED_NAN(_PACK(value)) is None
    except (OverflowError, ValueError):  # MessagePack limits integers to 64 bits, and the size of strings
        is_clean = False
    if not is_clean:
        _refuse_nan(value)


def _refuse_nan(value: Any) -> None:
    """Walk the value as msgspec does: it reads the items of a list even if a subclass has its own ``__iter__``."""
    left = [value]
    while left:
        one = left.pop()
        cls = type(one)
        if cls in _NEVER_NAN:
            continue
        if cls is float:
            if not math.isfinite(one):
                raise ValueError(f"{one} is not a JSON number")
        elif issubclass(cls, dict):
            left.extend(dict.values(one))
        elif issubclass(cls, list):
            left.extend(list.__iter__(one))
        elif issubclass(cls, (tuple, set, frozenset)):
            left.extend(one)
        else:  # other objects become one of the kinds above
            left.append(msgspec.to_builtins(one, enc_hook=_looked_at, builtin_types=BYTES_LIKE))


def _looked_at(value: Any) -> Any:
    return None if type(value) is msgspec.Raw else enc_hook(value)
