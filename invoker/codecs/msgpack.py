"""``application/msgpack``: like JSON, but binary."""

from __future__ import annotations

from typing import Any

import msgspec

from invoker.codecs.base import Decode, bad_input, convert, is_pydantic, not_encodable
from invoker.codecs.json import JsonCodec
from invoker.mediatypes import MediaType
from invoker.message import Message

__all__ = ["MsgpackCodec"]

_ERRORS = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)


class MsgpackCodec:
    """MessagePack into what the parameter is annotated with, and plain values into MessagePack."""

    media_types = ("application/msgpack", "application/x-msgpack")

    def decoder(self, media_type: MediaType, type_: Any) -> Decode:
        """A closure for one parameter."""
        if is_pydantic(type_):
            return lambda message: self._model(message, type_)
        decode = msgspec.msgpack.Decoder(type_).decode

        def decode_message(message: Message[bytes]) -> Any:
            try:
                return decode(message.payload)
            except _ERRORS as error:
                raise bad_input(message.media_type, error, type_) from None

        return decode_message

    def decode(self, message: Message[bytes], type_: Any) -> Any:
        """Decode; see `invoker.codecs.Codec`."""
        return self.decoder(MediaType("application", "msgpack"), type_)(message)

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes]:
        """Encode; see `invoker.codecs.Codec`."""
        try:
            return Message(msgspec.msgpack.encode(value, enc_hook=_plain), media_type=media_type.essence)
        except _ERRORS as error:
            raise not_encodable(value, media_type, error) from None

    def can_encode(self, value: Any) -> bool:
        """What JSON takes, and bytes."""
        return JsonCodec().can_encode(value) or isinstance(value, (bytes, bytearray))

    def _model(self, message: Message[bytes], type_: Any) -> Any:
        try:
            return convert(msgspec.msgpack.decode(message.payload), type_)
        except _ERRORS as error:
            raise bad_input(message.media_type, error, type_) from None


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no MessagePack form")


