"""The codec of raw bytes: ``application/octet-stream``, and media types without a codec that a function declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from invoker.codecs import charsets, scalars
from invoker.codecs.interface import Decode, Encode, Offer, Specialised, payload_of, refusing
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.typed import BYTES_LIKE, bytes_like, is_any
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message


class OctetsCodec(Specialised):
    """Sends and receives bytes unchanged, and str as UTF-8 (R-061, R-088, R-089)."""

    media_types = ("application/octet-stream",)
    applies_marks = True

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that returns the payload, for str decoded from UTF-8, and for a number parsed from text."""
        if is_any(type_):
            return payload_of
        wanted = bytes_like(type_)
        if wanted is bytes:
            return payload_of
        if wanted is not None:
            return lambda message: wanted(message.payload)
        to_text, essence = charsets.decoder("utf-8"), media_type.essence
        try:
            from_text = scalars.reader(type_)
        except TypeError as error:
            return refusing(refuse_decode(error, where, essence, type_))

        def decode(message: Message[bytes]) -> Any:
            try:
                return from_text(to_text(message.payload))
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that returns values of ``cls`` as bytes."""
        name = offer.media_type.essence
        if cls is bytes:
            return lambda value: Message(value, EMPTY, name)
        if cls is type(None):
            nothing: Message[bytes] = Message(b"", EMPTY, name)
            return lambda _: nothing
        if issubclass(cls, str):
            to_bytes: Callable[[Any], bytes] = str.encode  # not the value's own method, which a subclass may override
        elif issubclass(cls, BYTES_LIKE):
            to_bytes = bytes
        else:
            return None

        def encode(value: Any) -> Message[bytes]:
            try:
                return Message(to_bytes(value), EMPTY, name)
            except BaseException as error:
                raise refuse_encode(error, where, name, cls) from error

        return encode


class ReadyCodec(OctetsCodec):
    """Sends bytes that the function has encoded itself, such as a page of HTML, in a media type that it declares."""

    decodes = False

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that gives bytes unchanged and takes no other value."""
        return super().encoder(offer, cls, where) if issubclass(cls, BYTES_LIKE) else None
