"""``application/x-python-pickle``: any Python value; decoding one runs whatever code it carries, so it is opt-in only."""

from __future__ import annotations

import pickle  # noqa: S403 - registered only when the operator opted in
from typing import Any

from invoker.codecs.base import bad_input, not_encodable
from invoker.mediatypes import MediaType
from invoker.message import Message

__all__ = ["PickleCodec"]


class PickleCodec:
    """Pickles, among callers that trust each other."""

    media_types = ("application/x-python-pickle",)

    def decode(self, message: Message[bytes], type_: Any) -> Any:
        """Decode; see `invoker.codecs.Codec`."""
        try:
            return pickle.loads(message.payload)  # noqa: S301 - see the module's docstring
        except Exception as error:  # unpickling runs foreign code, which may raise anything
            raise bad_input(message.media_type, error, type_) from None

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes]:
        """Encode; see `invoker.codecs.Codec`."""
        try:
            return Message(pickle.dumps(value), media_type=media_type.essence)
        except Exception as error:  # pickling runs the value's own code
            raise not_encodable(value, media_type, error) from None

    def can_encode(self, value: Any) -> bool:
        """Anything; what cannot be pickled fails when it is tried."""
        return True
