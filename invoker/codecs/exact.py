"""`ExactCodec`: encodes values between functions of one process without the losses of MessagePack.

It writes MessagePack, or ``google.protobuf.Any`` for values that MessagePack cannot hold: a span of time, an object of
a peer's class, an integer of more than 64 bits. Each message has the media type of its encoding, so that the codec of
that type reads it.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import msgspec

from invoker.codecs.anyvalue import ANY, AnyCodec, Opaque
from invoker.codecs.interface import Encode, Offer, Specialised
from invoker.codecs.refusal import refuse_encode
from invoker.codecs.typed import BYTES_LIKE, enc_hook, plain
from invoker.errors.wording import Place
from invoker.mediatypes import parse
from invoker.message import EMPTY, Message

EXACT: Final = "application/x-invoker-value"
"""The media type by which callers within a process select this codec; no message has it."""

ACCEPTS: Final = f"{EXACT}, */*;q=0.5"
"""The media types that callers inside the process accept for each output."""

_CODEC: Final[Specialised] = AnyCodec()
_OFFER: Final = Offer(_CODEC, parse(ANY))
_MSGPACK: Final = "application/msgpack"
_ENCODE: Final = msgspec.msgpack.Encoder(enc_hook=enc_hook).encode
_AS_TEXT: Final = (dt.timedelta, Opaque)
"""Classes that MessagePack writes as text."""


class ExactCodec(Specialised):
    """MessagePack if it keeps the value unchanged, otherwise ``google.protobuf.Any``."""

    media_types = (EXACT,)
    by_name_only = True
    decodes = False

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:  # noqa: ARG002 - it has only one form
        """A closure that writes values of ``cls``."""
        by_any = _CODEC.encoder(_OFFER, cls, where)
        assert by_any is not None, "it takes every class"
        if cls in _AS_TEXT:
            return by_any
        if not plain(cls) and not issubclass(cls, BYTES_LIKE):
            return None

        def encode(value: Any) -> Message[bytes]:
            try:
                return Message(_ENCODE(value), EMPTY, _MSGPACK)
            except OverflowError:
                return by_any(value)
            except BaseException as error:
                raise refuse_encode(error, where, _MSGPACK, cls) from error

        return encode
