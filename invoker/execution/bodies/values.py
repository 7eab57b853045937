"""Encodes the arguments of nested calls, and decodes their results.

They are encoded although caller and callee may be in one process: the callee gets values of its own, which are checked
against its annotations, and it may run in a child process. MessagePack comes first: it is the fastest, and keeps
integers, bytes and the keys of dicts as they are. A value that MessagePack would change or cannot hold is a
``google.protobuf.Any`` (`invoker.codecs.exact`), and other values take the first codec that can encode them. Another
scope may carry another media type.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

from invoker.codecs import Registry, builtin
from invoker.codecs.anyvalue import ANY
from invoker.codecs.exact import ACCEPTS
from invoker.errors import EncodeError, NestedError, Status
from invoker.errors.wording import Place
from invoker.message import EMPTY, METADATA, Message, Metadata, Output

OUTPUT: Final = "invoker-output"
"""The header of a result that names its output, where there are several."""


@functools.cache
def _registry(has_arrays: bool) -> Registry:  # noqa: FBT001 - the key of the cache
    return builtin(arrays=has_arrays, entry_points=False)


def encode_value(value: Any, accept: str = ACCEPTS) -> Message[bytes]:
    """Encode one value; a `Message` keeps its headers, and bytes with a media type stay as they are.

    Args:
        value: A value of any class.
        accept: Media types that the value may have.

    Raises:
        EncodeError: No codec takes the value.
    """
    headers = EMPTY
    if isinstance(value, Message):
        if value.media_type and isinstance(value.payload, bytes):
            return value
        headers, accept, value = value.headers, value.media_type or accept, value.payload  # type: ignore[assignment]
    registry = _registry("numpy" in sys.modules)
    made = registry.encoder(registry.offers(accept), value)(value)
    return Message(made.payload, headers, made.media_type) if headers else made


def encode_argument(value: Any, name: int | str, carries: str = ACCEPTS) -> Message[bytes]:
    """Encode an argument of a nested call.

    Args:
        value: A value of any class.
        name: Its position, or its keyword.
        carries: See `invoker.context.Scope`.

    Raises:
        NestedError: The value has no form in these media types.
    """
    try:
        return encode_value(value, carries)
    except EncodeError as error:
        raise refused_argument(error, name, carries) from error


def refused_argument(error: EncodeError, name: int | str, carries: str = ACCEPTS) -> NestedError:
    """The error that names the argument whose value cannot be encoded; see `encode_argument`."""
    place = Place("argument", name) if isinstance(name, int) else Place("argument", name=name)
    kind = "ValidationError" if carries == ANY else ""  # ANY is for the tool bridge, whose errors have this name
    details = {**getattr(error.__cause__, "details", {}), "field": str(name)}
    return NestedError(Status.INVALID_ARGUMENT, error.said_at(str(place)), kind=kind, details=details)


def decode_value(message: Message[bytes]) -> Any:
    """Decode one result; one of several outputs becomes an `Output` with its name, and `Metadata` stays `Metadata`.

    Raises:
        DecodeError: The payload is not valid for its media type.
    """
    value = _registry("numpy" in sys.modules).decoder(message.media_type, Any)(message)
    if not message.headers:
        return value
    if METADATA in message.headers:
        return Metadata(message.headers[METADATA], value)
    return Output(message.headers[OUTPUT], value) if OUTPUT in message.headers else value
