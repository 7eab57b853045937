"""`AnyCodec`: messages of the media type `ANY`, decoded to a parameter's type and encoded from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from invoker.codecs.anyvalue.names import ANY
from invoker.codecs.anyvalue.pack import packer
from invoker.codecs.anyvalue.unpack import unpack
from invoker.codecs.interface import Decode, Encode, Offer, Specialised, refusing
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.typed import converter, is_any
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message


class Known(bytes):
    """A payload with its decoded value. It was validated for a type, and is not decoded again for that type.

    It crosses the border of a process as its bytes.

    Attributes:
        value: The value.
        type_: The annotation for which the value was made.
    """

    value: Any
    type_: Any

    def __reduce__(self) -> tuple[type[bytes], tuple[bytes]]:
        return bytes, (bytes(self),)


def known(payload: bytes, value: Any, type_: Any) -> Known:
    """Make a `Known` of a payload and its decoded value."""
    made = Known(payload)
    made.value = value
    made.type_ = type_
    return made


class AnyCodec(Specialised):
    """Values in ``google.protobuf.Any`` (T-097 to T-114)."""

    media_types = (ANY,)
    applies_marks = True
    by_name_only = True

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that unpacks to ``type_``."""
        essence = media_type.essence
        try:
            convert = converting(type_)
        except (TypeError, RuntimeError) as error:
            return refusing(refuse_decode(error, where, essence, type_))

        def decode(message: Message[bytes]) -> Any:
            payload = message.payload
            if type(payload) is Known and (payload.type_ is type_ or payload.type_ == type_):
                return payload.value
            try:
                return convert(unpack(payload))
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode:
        """A closure that packs values of ``cls``."""
        name = str(offer.media_type)
        pack = packer(cls)

        def encode(value: Any) -> Message[bytes]:
            try:
                return Message(pack(value), EMPTY, name)
            except BaseException as error:
                raise refuse_encode(error, where, name, cls) from error

        return encode


def converting(type_: Any) -> Callable[[Any], Any]:
    """A function that converts an unpacked value to an annotated type, without lossy casts (T-040, T-041).

    Raises:
        TypeError: No converter can make this type.
    """
    try:
        return _cached(type_)
    except TypeError:  # the annotation cannot be hashed, or no codec can decode it
        return _converting(type_)


def _converting(type_: Any) -> Callable[[Any], Any]:
    if is_any(type_):
        return lambda value: value
    convert = converter(type_)
    scalar = type_ if type_ in _SCALARS else None

    def attempt(value: Any) -> Any:
        # A float may stand for an int, since a double does not show which of the two the peer meant (D11).
        return value if type(value) is scalar else convert(value)

    return attempt


_SCALARS = (str, int, float, bool, bytes)

_cached = lru_cache(maxsize=512)(_converting)
