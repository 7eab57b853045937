"""Encodes a tuple as several values in one message, for protocols whose callers get each value as its own output.

A function without a return annotation may return a tuple of any length, so the number of its outputs is known only
after it has run. This media type carries the values to the session, which splits them again; it is not meant for peers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import msgspec

from invoker.codecs.interface import Encode, Offer, Specialised
from invoker.errors import EncodeError
from invoker.errors.wording import Place
from invoker.mediatypes import parse
from invoker.message import EMPTY, Message

SEVERAL: Final = "application/vnd.invoker.several"

_DECODE: Final = msgspec.msgpack.Decoder(list[tuple[str, memoryview]]).decode


class SeveralCodec(Specialised):
    """Encodes tuples, each part by another codec; a wildcard never selects it.

    Args:
        part: Encodes the parts.
    """

    media_types = (SEVERAL,)
    by_name_only = True
    decodes = False

    def __init__(self, part: Specialised) -> None:
        super().__init__()
        self._part = part
        self._offer = Offer(part, parse(part.media_types[0]))

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:  # noqa: ARG002 - it has one form
        """A closure that encodes tuples part by part; None for other classes."""
        if not issubclass(cls, tuple):
            return None

        def encode(value: tuple[Any, ...]) -> Message[bytes]:
            parts = [self._encoded(one, replace(where, within=f", part {index}")) for index, one in enumerate(value)]
            return Message(msgspec.msgpack.encode([(one.media_type, one.payload) for one in parts]), EMPTY, SEVERAL)

        return encode

    def _encoded(self, value: Any, where: Place) -> Message[bytes]:
        encode = self._part.encoder(self._offer, type(value), where)
        if encode is None:
            raise EncodeError(f": {type(value).__name__} cannot be {self._offer.media_type}", place=where)
        return encode(value)


def several_in(message: Message[bytes]) -> list[Message[bytes]]:
    """The parts of a message of this media type; payloads are views on its payload."""
    return [Message(payload, EMPTY, media_type) for media_type, payload in _DECODE(message.payload)]  # type: ignore[arg-type]  # a memoryview, which its readers accept
