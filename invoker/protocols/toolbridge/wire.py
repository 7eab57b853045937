"""Constants of errors on the wire; and the classes of requests for tool calls, whose ``Any`` fields stay bytes.

A function gets each argument as a serialised ``Any``. Fields of bytes and of messages are encoded alike, so classes in
which the ``Any`` fields have the type bytes save parsing and serialising each argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.errors import Status

KINDS: Final[Mapping[str, Status]] = {
    "ToolNotFound": Status.NOT_FOUND,
    "ValidationError": Status.INVALID_ARGUMENT,
    "TimeoutError": Status.DEADLINE_EXCEEDED,
    "ResourceExhausted": Status.RESOURCE_EXHAUSTED,
    "SessionExpired": Status.NOT_FOUND,
    "InternalError": Status.INTERNAL,
}
"""The kinds of errors that callers of tools get, each with the status for callers of other protocols (T-159, T-161)."""

TRAILER: Final = "dspex-error-bin"
"""The trailer with the `ErrorInfo` of an rpc that fails (T-160)."""

_ANY: Final = ".google.protobuf.Any"
_PACKAGE: Final = "dspex.read"


def _classes() -> dict[str, Any]:
    """Make the classes of the published messages again, with a field of bytes instead of each ``Any``."""
    published = descriptor_pb2.FileDescriptorProto()
    pb.DESCRIPTOR.CopyToProto(published)
    wanted = {"ToolCallRequest", "ToolStreamRequest", "StreamConfig", "BatchToolCallRequest", "ToolCallItem"}
    wanted.add("BatchConfig")
    made = descriptor_pb2.FileDescriptorProto(name="dspex/read.proto", package=_PACKAGE, syntax="proto3")
    for message in published.message_type:
        if message.name in wanted:
            _plain(made.message_type.add(), message)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(made)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in wanted}


def _plain(made: Any, message: Any) -> None:
    made.CopyFrom(message)
    for one in (made, *made.nested_type):
        for field in one.field:
            if field.type_name == _ANY:
                field.type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
                field.ClearField("type_name")
            elif field.type_name:
                field.type_name = field.type_name.replace(".dspex.bridge.", f".{_PACKAGE}.")


_CLASSES = _classes()
CallRequest: Any = _CLASSES["ToolCallRequest"]
StreamRequest: Any = _CLASSES["ToolStreamRequest"]
BatchRequest: Any = _CLASSES["BatchToolCallRequest"]
