"""Encodes and decodes values by protobuf, independently of the invoker's codec.

Source: docs/reference/tool-bridge.md 1.3 and 2.6.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError, Message
from google.protobuf.struct_pb2 import NULL_VALUE, ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import (
    BoolValue,
    BytesValue,
    DoubleValue,
    Int64Value,
    StringValue,
    UInt64Value,
)

from invoker_conformance.scenario import Failure

PREFIX = "type.googleapis.com/"

_KINDS: dict[str, type[Message]] = {
    f"google.protobuf.{kind.__name__}": kind
    for kind in (BoolValue, BytesValue, DoubleValue, Int64Value, StringValue, UInt64Value)
}
_SHOWN = 120


def pack(value: Any) -> AnyMessage:
    """Pack a value in the form that the catalogue defines; of containers only a dict, as a Struct."""
    if isinstance(value, AnyMessage):
        return value
    made = AnyMessage()
    made.Pack(_message(value))
    return made


def packed(type_name: str, payload: bytes) -> AnyMessage:
    """Make an ``Any`` of this type with any bytes."""
    return AnyMessage(type_url=PREFIX + type_name, value=payload)


def kind_of(sent: AnyMessage) -> str:
    """The part after the last slash of a type URL."""
    return sent.type_url.rpartition("/")[2]


def value_in(sent: AnyMessage) -> Any:
    """The value of an ``Any`` from the target, which must have the form that the catalogue defines.

    Numbers without a fraction within containers become ints, as a host reads them.

    Raises:
        Failure: The message has another form, or its bytes are broken.
    """
    kind = kind_of(sent)
    try:
        if kind in _KINDS:
            return _KINDS[kind].FromString(sent.value).value  # type: ignore[attr-defined]  # each class has this field
        if kind == "google.protobuf.ListValue":
            return [_plain(one) for one in ListValue.FromString(sent.value).values]
        if kind == "google.protobuf.Struct":
            return {name: _plain(one) for name, one in Struct.FromString(sent.value).fields.items()}
        if kind == "google.protobuf.Value" and Value.FromString(sent.value).WhichOneof("kind") == "null_value":
            return None
        if kind == "google.protobuf.Timestamp":
            return Timestamp.FromString(sent.value)
        if kind == "python.int":
            return int(StringValue.FromString(sent.value).value)
    except (ValueError, DecodeError) as error:
        raise Failure(f"{shown(sent)}: {error}", f"a {kind}") from None
    raise Failure(shown(sent), "a value of one of the forms of the catalogue (T-097 to T-103)")


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal and of the same type; NaN equals NaN, and 0.0 differs from -0.0."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return type(left) is type(right) and repr(left) == repr(right)


def shown(sent: AnyMessage) -> str:
    """The text of a value, for reports."""
    text = f"{kind_of(sent) or 'an empty Any'} {sent.value!r}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(sent.value)} bytes)"


def _message(value: Any) -> Message:
    match value:
        case None:
            return Value(null_value=NULL_VALUE)
        case bool():
            return BoolValue(value=value)
        case int():
            return Int64Value(value=value)
        case float():
            return DoubleValue(value=value)
        case str():
            return StringValue(value=value)
        case bytes():
            return BytesValue(value=value)
        case list():
            (items := ListValue()).extend(value)
            return items
        case dict():
            (members := Struct()).update(value)
            return members
        case _:
            return value if isinstance(value, Message) else Empty()


def _plain(sent: Value) -> Any:
    match sent.WhichOneof("kind"):
        case "number_value":
            number = sent.number_value
            is_whole = number == number // 1 and abs(number) <= 2**53 and repr(number) != "-0.0"
            return int(number) if is_whole else number
        case "string_value":
            return sent.string_value
        case "bool_value":
            return sent.bool_value
        case "list_value":
            return [_plain(one) for one in sent.list_value.values]
        case "struct_value":
            return {name: _plain(one) for name, one in sent.struct_value.fields.items()}
        case _:
            return None
