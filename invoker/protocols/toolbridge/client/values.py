"""Converts values to `google.protobuf.Any`, which bridges exchange, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.struct_pb2 import Struct

from invoker.codecs.anyvalue import pack, unpack


def packed(value: Any) -> AnyMessage:
    """Pack a value into an ``Any``; nothing is coerced silently (T-104).

    Raises:
        EncodeError: The value cannot be encoded.
    """
    return AnyMessage.FromString(pack(value))


def packed_all(values: Sequence[Any]) -> list[AnyMessage]:
    """Pack several values, in their order."""
    return [packed(value) for value in values]


def packed_each(values: Mapping[str, Any]) -> dict[str, AnyMessage]:
    """Pack several values, by name."""
    return {name: packed(value) for name, value in values.items()}


def read(value: AnyMessage) -> Any:
    """Unpack a received value into a plain Python value.

    Raises:
        DecodeError: The value has an unknown type, or its bytes are malformed.
    """
    return unpack(value.SerializeToString())


def struct(values: Mapping[str, Any]) -> Struct:
    """Convert values by name to the Struct that agents accept."""
    made = Struct()
    packed(dict(values)).Unpack(made)
    return made


def read_struct(values: Struct) -> dict[str, Any]:
    """Convert a Struct to values by name; a number without a fraction becomes an int."""
    whole = AnyMessage()
    whole.Pack(values)
    made: dict[str, Any] = read(whole)
    return made
