"""`ActionConfig`: one configuration of an action; the function reads it from ``ctx.configs`` (E-088)."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf import any_pb2, descriptor_pool, json_format, message_factory, struct_pb2
from google.protobuf.message import DecodeError as WireError
from google.protobuf.message import Message

M = TypeVar("M", bound=Message)


class ActionConfig:
    """A ``google.protobuf.Any``: a message whose type may be unknown in this process.

    Attributes:
        type_url: The type URL as it came, like ``type.googleapis.com/google.protobuf.Struct``.
        value: The serialised message.
    """

    __slots__ = ("type_url", "value")

    def __init__(self, packed: any_pb2.Any) -> None:
        self.type_url = packed.type_url
        self.value = packed.value

    @property
    def type_name(self) -> str:
        """The full name of the message's type."""
        return self.type_url.rpartition("/")[2]

    def unpack(self, kind: type[M]) -> M | None:
        """Parse the message, if it is of the type ``kind``; otherwise return None.

        Raises:
            ValueError: The type URL names ``kind``, but the message cannot be parsed.
        """
        if self.type_name != kind.DESCRIPTOR.full_name:
            return None
        made = kind()
        try:
            made.ParseFromString(self.value)
        except WireError:
            raise ValueError(f"{len(self.value)} bytes are not a valid {self.type_name}") from None
        return made

    def to_dict(self) -> dict[str, Any] | None:
        """The message as a dict, if its type is known in this process; a Struct becomes the object that it represents.

        Raises:
            ValueError: The type is known, but the message cannot be parsed.
        """
        if self.type_name == struct_pb2.Struct.DESCRIPTOR.full_name:
            struct = self.unpack(struct_pb2.Struct)
            assert struct is not None
            return _as_dict(struct)
        try:
            descriptor = descriptor_pool.Default().FindMessageTypeByName(self.type_name)
        except KeyError:
            return None
        message = self.unpack(message_factory.GetMessageClass(descriptor))
        assert message is not None
        made: Any = _as_dict(message)
        # the well-known types of protobuf have special forms
        return made if isinstance(made, dict) else {"value": made}

    def __repr__(self) -> str:
        return f"Config({self.type_name!r}, {len(self.value)} bytes)"


def _as_dict(message: Message) -> dict[str, Any]:
    try:
        return json_format.MessageToDict(message, preserving_proto_field_name=True)
    except json_format.Error as error:
        raise ValueError(f"a {message.DESCRIPTOR.full_name} cannot be converted to a dict: {error}") from None
