"""The codec of ``application/msgpack``, which uses msgspec."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import msgspec

from invoker.codecs.collisions import checking
from invoker.codecs.containers import SMALL_BYTES, careful, msgpack_exceeds
from invoker.codecs.interface import Decode, Encode, Offer, Specialised, refusing
from invoker.codecs.leftout import completed
from invoker.codecs.misspelt import spelling_of
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.standins import understood
from invoker.codecs.typed import (
    BYTES_LIKE,
    collisions_of,
    converter,
    dec_hook,
    enc_hook,
    holds_pydantic,
    is_any,
    per_member,
    plain,
)
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message

_ENCODE = msgspec.msgpack.Encoder(enc_hook=enc_hook).encode


class MsgpackCodec(Specialised):
    """Encodes and decodes MessagePack: the values of JSON, and also bytes, and keys that are not strings."""

    media_types = ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")
    applies_marks = True

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that unpacks into ``type_``."""
        essence = media_type.essence
        try:
            unpack = _unpacker(type_)
        except (TypeError, RuntimeError) as error:
            return refusing(refuse_decode(error, where, essence, type_))

        spelling = None if is_any(type_) or holds_pydantic(type_) else spelling_of(type_)
        classes, strict = ({}, bytes) if spelling is None else (spelling.classes, spelling.msgpack)
        convert = cache(partial(converter, type_))
        unpack_large = careful(unpack, msgpack_exceeds, self.max_containers)

        def decode(message: Message[bytes]) -> Any:
            payload = message.payload
            try:
                made = unpack(payload) if len(payload) <= SMALL_BYTES else unpack_large(payload)
                if type(made) in classes:
                    strict(payload)  # raises for an unknown key, which the converter checks
            except msgspec.ValidationError:
                pass
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error
            else:
                return made
            try:  # 2.0 counts as an integer here, but not for msgspec's decoder
                return convert()(msgspec.msgpack.decode(payload))
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that packs values of ``cls``."""
        if not plain(cls) and not issubclass(cls, BYTES_LIKE):
            return None
        name = offer.media_type.essence

        def encode(value: Any) -> Message[bytes]:
            try:
                return Message(_ENCODE(value), EMPTY, name)
            except BaseException as error:
                raise refuse_encode(error, where, name, cls) from error

        return encode


def _unpacker(type_: Any) -> Any:
    if is_any(type_):
        return msgspec.msgpack.Decoder().decode
    if holds_pydantic(type_):
        convert = converter(type_)
        return lambda payload: convert(msgspec.msgpack.decode(payload))
    parse = per_member(
        understood(type_), lambda one: completed(msgspec.msgpack.Decoder(one, dec_hook=dec_hook).decode, one)
    )
    return checking(parse, msgspec.msgpack.decode, collisions_of(type_))
