"""Converts values to and from the form for a bridge, which is `google.protobuf.Any`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.struct_pb2 import Struct

from invoker.codecs.anyvalue import pack, unpack


def packed(value: Any) -> AnyMessage:
    """A value as it travels; nothing is coerced silently (T-104).

    Raises:
        EncodeError: The value has no form on the wire.
    """
    return AnyMessage.FromString(pack(value))


def packed_all(values: Sequence[Any]) -> list[AnyMessage]:
    """Several values as serialised messages, in their order."""
    return [packed(value) for value in values]


def packed_each(values: Mapping[str, Any]) -> dict[str, AnyMessage]:
    """Several values as serialised messages, by their names."""
    return {name: packed(value) for name, value in values.items()}


def read(value: AnyMessage) -> Any:
    """The plain Python value of a received message.

    Raises:
        DecodeError: The value has an unknown type, or its bytes are malformed.
    """
    return unpack(value.SerializeToString())


def struct(values: Mapping[str, Any]) -> Struct:
    """Several values as the one message that agents accept."""
    made = Struct()
    packed(dict(values)).Unpack(made)
    return made


def read_struct(values: Struct) -> dict[str, Any]:
    """The values of a Struct message; a number that was an int is an int again."""
    whole = AnyMessage()
    whole.Pack(values)
    made: dict[str, Any] = read(whole)
    return made
