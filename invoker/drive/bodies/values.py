"""Encodes the arguments of nested calls, and decodes their results.

They are encoded although caller and callee may be in one process: the callee gets values of its own, which are checked
against its annotations, and it may as well be in a child process. MessagePack comes first: it is the fastest, and keeps
integers, bytes and the keys of dicts as they are. A value that it cannot hold takes the first codec that can.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

from invoker.codecs import Registry, builtin
from invoker.message import EMPTY, METADATA, Message, Metadata, Output

__all__ = ["ACCEPTS", "OUTPUT", "decode_value", "encode_value"]

ACCEPTS: Final = "application/msgpack, */*;q=0.5"
"""What callers inside the process accept for each output."""

OUTPUT: Final = "invoker-output"
"""The header of a result that tells its output, where there are several."""


@functools.cache
def _registry(has_arrays: bool) -> Registry:  # noqa: FBT001 - the key of the cache
    return builtin(arrays=has_arrays, entry_points=False)


def encode_value(value: Any) -> Message[bytes]:
    """Encode one value; a `Message` keeps its headers, and bytes with a media type stay as they are.

    Raises:
        EncodeError: No codec takes the value.
    """
    headers, accept = EMPTY, ACCEPTS
    if isinstance(value, Message):
        if value.media_type and isinstance(value.payload, bytes):
            return value
        headers, accept, value = value.headers, value.media_type or ACCEPTS, value.payload  # type: ignore[assignment]
    registry = _registry("numpy" in sys.modules)
    made = registry.encoder(registry.offers(accept), value)(value)
    return Message(made.payload, headers, made.media_type) if headers else made


def decode_value(message: Message[bytes]) -> Any:
    """Decode one result; one of several outputs becomes an `Output` with its name, and `Metadata` stays that.

    Raises:
        DecodeError: The payload is not what its media type says.
    """
    value = _registry("numpy" in sys.modules).decoder(message.media_type, Any)(message)
    if not message.headers:
        return value
    if METADATA in message.headers:
        return Metadata(message.headers[METADATA], value)
    return Output(message.headers[OUTPUT], value) if OUTPUT in message.headers else value
