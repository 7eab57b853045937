"""The codec of pickles. Reading a pickle runs code that its sender chose, so the codec must be enabled explicitly."""

from __future__ import annotations

import pickle
from typing import Any

from invoker.codecs.interface import Decode, Encode, Offer, Specialised
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.codecs.typed import is_any, members
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message


class PickleCodec(Specialised):
    """Encodes and decodes pickles, for peers that trust each other completely; a wildcard never selects it."""

    media_types = ("application/x-python-pickle",)
    by_name_only = True

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that loads a pickle and checks its class if the annotation consists of plain classes."""
        essence = media_type.essence
        wanted = members(type_)
        classes = () if is_any(type_) or not all(isinstance(one, type) for one in wanted) else wanted

        def decode(message: Message[bytes]) -> Any:
            try:
                value = pickle.loads(message.payload)  # noqa: S301 - the operator opted in
            except BaseException as error:
                raise refuse_decode(error, where, essence, type_) from error
            if classes and not isinstance(value, classes):
                raise refuse_decode(f"it is a pickled {type(value).__name__}", where, essence, type_)
            return value

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that pickles any value."""
        name = offer.media_type.essence

        def encode(value: Any) -> Message[bytes]:
            try:
                return Message(pickle.dumps(value, protocol=5), EMPTY, name)
            except BaseException as error:
                raise refuse_encode(error, where, name, cls) from error

        return encode
