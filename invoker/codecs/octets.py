"""``application/octet-stream``: bytes as they are; and `RawCodec` for media types that only a function understands."""

from __future__ import annotations

from typing import Any

from invoker.codecs.base import BYTES_LIKE, Decode, as_bytes_type, bad_input, convert, scalar_only, strict_text
from invoker.errors import EncodeError
from invoker.mediatypes import MediaType
from invoker.message import Message

__all__ = ["OctetsCodec", "RawCodec"]


class OctetsCodec:
    """Bytes unchanged both ways (R-088); text as UTF-8, for parameters and values that are text (R-089)."""

    media_types: tuple[str, ...] = ("application/octet-stream",)

    def decoder(self, media_type: MediaType, type_: Any) -> Decode:
        """A closure for one parameter; bytes are the fast ones."""
        if type_ is Any or type_ is bytes:
            return _payload
        return lambda message: self.decode(message, type_)

    def decode(self, message: Message[bytes], type_: Any) -> Any:
        """Decode; see `invoker.codecs.Codec`."""
        if type_ is Any:
            return message.payload
        as_bytes = as_bytes_type(type_)
        if as_bytes is not None:
            return as_bytes(message.payload)
        if not scalar_only(type_):
            raise bad_input(message.media_type, "bytes cannot fill a structure; send application/json", type_)
        try:
            text = strict_text(message.payload, "utf-8")
            return text if type_ is str else convert(text.strip(), type_)
        except ValueError as error:
            raise bad_input(message.media_type, error, type_) from None

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes]:
        """Encode; see `invoker.codecs.Codec`."""
        if value is None:
            return Message(b"", media_type=str(media_type))
        try:
            payload = value.encode() if isinstance(value, str) else bytes(value)
        except UnicodeEncodeError:
            raise EncodeError(f"cannot write str as {media_type}: it has lone surrogates") from None
        return Message(payload, media_type=str(media_type))

    def can_encode(self, value: Any) -> bool:
        """Bytes, text and None."""
        return value is None or isinstance(value, (str, *BYTES_LIKE))


class RawCodec(OctetsCodec):
    """Bytes of media types that a function declares and encodes itself, such as ``image/png``.

    Args:
        media_types: Essences.
    """

    def __init__(self, media_types: tuple[str, ...]) -> None:
        self.media_types = media_types


def _payload(message: Message[bytes]) -> bytes:
    return message.payload
