"""The interfaces of codecs: `Codec`, which authors implement, and `Specialised`, which makes codecs fast.

Theory. A codec turns the bytes of a media type into a value and back. A user's codec has the three methods of `Codec`,
which are called for each value. The built-in codecs are also `Specialised`: called once for each media type and Python
type, they return a closure that does the remaining work and raises only DecodeError or EncodeError.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from invoker.codecs.containers import MOST_CONTAINERS
from invoker.codecs.refusal import refuse_encode
from invoker.errors import DecodeError
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType, parse
from invoker.message import Message

Decode: TypeAlias = Callable[[Message[bytes]], Any]
"""Decodes a message; raises only DecodeError."""

Encode: TypeAlias = Callable[[Any], Message[bytes]]
"""Encodes a value of the type for which it was made; raises only EncodeError."""


@runtime_checkable
class Codec(Protocol):
    """Converts payloads of some media types to values and back.

    A codec may be shared by threads. Its exceptions reach the peer as a bad input or as a failed serialisation.

    Attributes:
        media_types: Media types such as ``text/csv``; a family is written ``application/*+json`` or ``image/*``.
    """

    media_types: tuple[str, ...]

    def decode(self, message: Message[bytes], type_: Any) -> Any:
        """Make a value of a payload; the message has its headers and its full media type.

        Args:
            message: The received message.
            type_: The author's annotation; ``Any`` when there is none.
        """

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes]:
        """Make a message of a value.

        Args:
            value: A value for which ``can_encode`` returned True.
            media_type: The negotiated media type: concrete, with the parameters that the peer asked for.

        Returns:
            A message whose media type is the negotiated one, without wildcards; parameters may differ.
        """

    def can_encode(self, value: Any) -> bool:
        """Whether values of this type can be encoded; the answer may depend on ``type(value)`` only."""


class Offer(msgspec.Struct, frozen=True, eq=False):
    """One way to encode an output: a codec, and the media type that the message will have.

    Attributes:
        codec: The codec that encodes.
        media_type: The media type without wildcards, with the parameters of the peer's range.
        is_named: Whether the peer's range is more specific than ``*/*``.
    """

    codec: Codec
    media_type: MediaType
    is_named: bool = True


class Specialised:
    """A codec that makes a closure for each pair of media type and Python type, so that each value costs only one call.

    Args:
        media_types: The media types; empty means those of the class.
    """

    media_types: tuple[str, ...] = ()
    honours: tuple[str, ...] = ()
    """Names of parameters that change the encoding; these are copied from the peer's range to the media type
    (R-102)."""

    by_name_only = False
    """Whether ranges with a wildcard never select it."""

    max_containers = MOST_CONTAINERS
    """The most lists and dicts that one payload may become."""

    decodes = True
    encodes = True

    applies_marks = False
    """Whether its values, except bytes, come from `converter`, which applies pydantic's constraints."""

    owners: frozenset[str] = frozenset()
    """Names of the modules whose functions may use the codec; empty: all functions may."""

    def __init__(self, media_types: tuple[str, ...] = ()) -> None:
        if media_types:
            self.media_types = media_types

    def accepts(self, media_type: MediaType) -> bool:  # noqa: ARG002 - most have no parameters
        """Whether values can be written with these parameters (a charset that exists, for example)."""
        return True

    def can_decode(self, type_: Any) -> bool:  # noqa: ARG002 - the closures refuse what they cannot make
        """Whether it may make this type; if not, the next codec for the media type is tried."""
        return self.decodes

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that decodes this media type to ``type_``; ``where`` begins the text of its errors."""
        raise NotImplementedError

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that encodes values of class ``cls``, or None when this codec does not take them."""
        raise NotImplementedError

    def refusal(self, cls: type) -> str:  # noqa: ARG002 - most have no special text
        """The reason why the codec does not take values of class ``cls``, for an error; empty for the general text."""
        return ""

    def decode(self, message: Message[bytes], type_: Any = Any) -> Any:
        """Make a value of a payload.

        Raises:
            DecodeError: The payload does not fit its media type or ``type_``.
        """
        return self.decoder(parse(message.media_type or self.media_types[0]), type_, Place("payload"))(message)

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes]:
        """Make a message of a value.

        Raises:
            EncodeError: The value has no form in this media type.
        """
        encode = self.encoder(Offer(self, media_type), type(value), Place("value"))
        if encode is None:
            raise refuse_encode("this media type cannot represent it", Place("value"), media_type.essence, type(value))
        return encode(value)

    def can_encode(self, value: Any) -> bool:
        """Whether values of this type can be encoded; an element inside one may still fail."""
        return self.encoder(Offer(self, parse(self.media_types[0])), type(value), Place("value")) is not None


def payload_of(message: Message[bytes]) -> bytes:
    """Give the payload unchanged, as bytes."""
    return message.payload


def refusing(error: DecodeError) -> Decode:
    """A closure that refuses every message with this error."""

    def decode(_: Message[bytes]) -> Any:
        raise copy(error)  # a copy, so that each message has its own traceback

    return decode
