"""The codec of ``text/plain``, with the parameters charset and encoding.

Theory. ``charset`` is the encoding of the text; UTF-8 when it is missing. ``encoding`` is used in two ways, and both
are accepted (R-080): as the name of a transfer encoding (``base64``, ``hex``) of the bytes, or as a charset. An
``encoding`` that contradicts ``charset`` is an error (R-081).

============================ ================================= =========================================
parameter is                 str, int, ...                     bytes
============================ ================================= =========================================
(none), ``charset``          decoded                           the payload itself
``encoding=base64|hex``      decoded from the transfer form    the content of the transfer form
``encoding=`` a charset      decoded                           transcoded to UTF-8
============================ ================================= =========================================

Values are encoded in the same way; bytes for a peer that asked for a charset must be text in that charset.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any

import msgspec

from invoker.codecs import charsets, scalars
from invoker.codecs.interface import Decode, Encode, Offer, Specialised, payload_of, refusing
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.typed import BYTES_LIKE, bytes_like, members
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message


class TextCodec(Specialised):
    """Encodes and decodes text, and values that are written as text (R-077 to R-082, R-094)."""

    media_types: tuple[str, ...] = ("text/plain",)
    applies_marks = True
    honours = ("charset", "encoding")

    def accepts(self, media_type: MediaType) -> bool:
        """Whether charset and encoding exist and agree."""
        try:
            _read_parameters(media_type)
        except ValueError:
            return False
        return True

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that reads this charset and encoding as ``type_``."""
        essence = media_type.essence
        try:
            parameters = _read_parameters(media_type)
        except ValueError as error:
            return refusing(refuse_decode(error, where, essence))
        wanted = bytes_like(type_)
        if wanted is not None and str not in members(type_):
            return _bytes_decoder(wanted, parameters, (where, essence, type_))
        try:
            from_text = scalars.reader(type_)
        except TypeError as error:
            return refusing(refuse_decode(error, where, essence, type_))
        if parameters == _PLAIN and from_text is scalars.same:
            return _str_decoder((where, essence, type_))
        to_text = charsets.decoder(parameters.charset)
        unwrap = parameters.transfer and _UNWRAP[parameters.transfer]

        def decode(message: Message[bytes]) -> Any:
            try:
                payload = message.payload
                return from_text(to_text(unwrap(payload) if unwrap else payload))
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that writes values of ``cls`` as text; bytes only where the peer asked for text by name."""
        try:
            parameters = _read_parameters(offer.media_type)
        except ValueError:
            return None
        name, essence = str(offer.media_type), offer.media_type.essence
        if issubclass(cls, BYTES_LIKE):
            return _bytes_encoder(parameters, offer.media_type, cls, where) if offer.is_named else None
        write = scalars.writer(cls)
        if write is None:
            return None
        if parameters == _PLAIN and cls is str:
            return _str_encoder(name, essence, where)
        to_bytes = charsets.encoder(parameters.charset)
        wrap = parameters.transfer and _WRAP[parameters.transfer]

        def encode(value: Any) -> Message[bytes]:
            try:
                text = write(value)
                payload = to_bytes(text) if text else b""
                return Message(wrap(payload) if wrap else payload, EMPTY, name)
            except BaseException as error:
                raise refuse_encode(error, where, name, cls) from error

        return encode


class _Parameters(msgspec.Struct, frozen=True):
    """The meaning of charset and encoding together."""

    charset: str = "utf-8"
    transfer: str = ""
    transcodes: bool = False


_PLAIN = _Parameters()


def _read_parameters(media_type: MediaType) -> _Parameters:
    if not media_type.params:
        return _PLAIN
    charset, encoding = media_type.charset, media_type.param("encoding")
    found = charsets.lookup(charset or "utf-8")
    if found is None:
        raise ValueError(f"charset {charset!r} is not known; known are {charsets.TEXT_CHARSETS}")
    if encoding is None:
        return _Parameters(found)
    transfer = encoding.lower()
    if transfer in _UNWRAP:
        return _Parameters(found, transfer)
    other = charsets.lookup(encoding)
    if other is None:
        known = f"known are base64, hex, {charsets.TEXT_CHARSETS}"
        raise ValueError(f"encoding {encoding!r} is not known; {known}")
    if charset is not None and other != found:
        raise ValueError(f"charset {charset!r} and encoding {encoding!r} contradict each other")
    return _Parameters(other, transcodes=True)


def _str_decoder(names: tuple[Place, str, Any]) -> Decode:
    """A decoder for the hot path: UTF-8 to str."""

    def decode(message: Message[bytes]) -> str:
        try:
            text = str(message.payload, "utf-8")
        except UnicodeDecodeError as error:
            raise refuse_decode(error, *names) from error
        return text[1:] if text[:1] == "\ufeff" else text

    return decode


def _str_encoder(name: str, essence: str, where: Place) -> Encode:
    """An encoder for the hot path: str to UTF-8."""

    def encode(value: str) -> Message[bytes]:
        try:
            return Message(value.encode(), EMPTY, name)
        except UnicodeEncodeError as error:
            raise refuse_encode(error, where, essence, str) from error

    return encode


def _bytes_decoder(wanted: type, parameters: _Parameters, names: tuple[Place, str, Any]) -> Decode:
    if parameters.transfer:
        change = _UNWRAP[parameters.transfer]
    elif parameters.transcodes:
        to_text = charsets.decoder(parameters.charset)
        change = lambda payload: to_text(payload).encode()  # noqa: E731 - one of three
    elif wanted is bytes:
        return payload_of
    else:
        change = wanted

    def decode(message: Message[bytes]) -> Any:
        try:
            content = change(message.payload)
        except ValueError as error:
            raise refuse_decode(error, *names) from error
        return content if isinstance(content, wanted) else wanted(content)

    return decode


def _bytes_encoder(parameters: _Parameters, media_type: MediaType, cls: type, where: Place) -> Encode:
    name = str(media_type)
    if parameters.transfer:
        change = _WRAP[parameters.transfer]
    elif parameters.transcodes:
        to_text, to_bytes = charsets.decoder("utf-8"), charsets.encoder(parameters.charset)
        change = lambda content: to_bytes(to_text(content))  # noqa: E731 - one of four
    elif media_type.charset is not None:
        # The media type that the peer gets names this charset, so the bytes must be text in it.
        check = charsets.decoder(parameters.charset)

        def change(content: bytes) -> bytes:
            check(content)
            return content

    else:
        change = bytes

    def encode(value: Any) -> Message[bytes]:
        try:
            return Message(change(bytes(value)), EMPTY, name)
        except BaseException as error:
            raise refuse_encode(error, where, name, cls) from error

    return encode


def _from_base64(payload: bytes) -> bytes:
    """Decode base64 strictly, except that white space between the characters is skipped."""
    return binascii.a2b_base64(bytes(payload).translate(None, b" \t\r\n"), strict_mode=True)


def _from_hex(payload: bytes) -> bytes:
    return binascii.unhexlify(bytes(payload).translate(None, b" \t\r\n"))


def _to_base64(content: bytes) -> bytes:
    return binascii.b2a_base64(content, newline=False)


_UNWRAP: dict[str, Callable[[bytes], bytes]] = {"base64": _from_base64, "hex": _from_hex}
_WRAP: dict[str, Callable[[bytes], bytes]] = {"base64": _to_base64, "hex": binascii.hexlify}
