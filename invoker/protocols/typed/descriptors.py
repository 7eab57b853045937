"""A `Schema` as the descriptor of a file, from which protobuf makes classes of messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
)

from invoker.protocols.typed.kinds import EnumKind, Kind, ListKind, MapKind, MessageDef, OptionalKind
from invoker.protocols.typed.naming import camel, json_name
from invoker.protocols.typed.schema import Schema
from invoker.protocols.typed.text import IMPORTS, is_optional, type_name

_Field: Final = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "int64": _Field.TYPE_INT64,
    "double": _Field.TYPE_DOUBLE,
    "bool": _Field.TYPE_BOOL,
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
}
_OWN: Final = (duration_pb2, empty_pb2, struct_pb2, timestamp_pb2)


def files_of(schemas: Iterable[Schema]) -> tuple[bytes, ...]:
    """Serialised ``FileDescriptorProto`` messages: those of protobuf that are needed, then those of the schemas."""
    own: tuple[bytes, ...] = tuple(one.DESCRIPTOR.serialized_pb for one in _OWN)
    return (*own, *(_file(one).SerializeToString() for one in schemas))


class Classes:
    """The classes of the messages of some files.

    Args:
        files: As `files_of` makes them.
    """

    def __init__(self, files: Sequence[bytes]) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        for one in files:
            self._pool.AddSerializedFile(one)

    def find(self, name: str) -> Any:
        """The class of a message, by its full name."""
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(name))


def _file(schema: Schema) -> descriptor_pb2.FileDescriptorProto:
    made = descriptor_pb2.FileDescriptorProto(name=schema.file, package=schema.package, syntax="proto3")
    for message in schema.messages:
        _fill(made.message_type.add(), message, schema.package)
    for enum in schema.enums:
        added = made.enum_type.add(name=enum.name)
        for name, number, _ in enum.values:
            added.value.add(name=name, number=number)
    service = made.service.add(name=schema.service)
    for rpc in schema.rpcs:
        method = service.method.add(
            name=rpc.call.method,
            input_type=f".{schema.package}.{rpc.request.name}",
            output_type=f".{schema.package}.{rpc.response.name}",
            client_streaming=rpc.call.streams_in or None,
            server_streaming=rpc.call.streams_out or None,
        )
        if rpc.call.is_safe:
            method.options.idempotency_level = descriptor_pb2.MethodOptions.NO_SIDE_EFFECTS
    used = {field.type_name.removeprefix(".") for one in made.message_type for field in _every_field(one)}
    made.dependency.extend(sorted({IMPORTS[name] for name in used if name in IMPORTS}))
    return made


def _every_field(message: descriptor_pb2.DescriptorProto) -> Iterable[descriptor_pb2.FieldDescriptorProto]:
    yield from message.field
    for one in message.nested_type:
        yield from one.field


def _fill(made: descriptor_pb2.DescriptorProto, message: MessageDef, package: str) -> None:
    made.name = message.name
    oneofs: dict[str, int] = {}
    for field in message.fields:
        if field.oneof and field.oneof not in oneofs:
            oneofs[field.oneof] = len(oneofs)
            made.oneof_decl.add(name=field.oneof)
    taken = {one.name for one in message.fields} | oneofs.keys()
    for field in message.fields:
        added = made.field.add(name=field.name, number=field.number, json_name=json_name(field.name))
        _type(added, field.kind, package, made, field.name)
        if field.oneof:
            added.oneof_index = oneofs[field.oneof]
        elif is_optional(field):
            added.proto3_optional = True
            added.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=_free(f"_{field.name}", taken))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"X{name}"
    taken.add(name)
    return name


def _type(
    added: descriptor_pb2.FieldDescriptorProto,
    kind: Kind,
    package: str,
    made: descriptor_pb2.DescriptorProto,
    field: str,
) -> None:
    if isinstance(kind, OptionalKind):
        kind = kind.inner
    added.label = _Field.LABEL_OPTIONAL
    if isinstance(kind, MapKind):
        entry = made.nested_type.add(name=f"{camel(field)}Entry")
        entry.options.map_entry = True
        for name, number, inner in (("key", 1, kind.key), ("value", 2, kind.value)):
            _type(entry.field.add(name=name, number=number, json_name=name), inner, package, entry, name)
        added.type, added.label = _Field.TYPE_MESSAGE, _Field.LABEL_REPEATED
        added.type_name = f".{package}.{made.name}.{entry.name}"
        return
    if isinstance(kind, ListKind):
        kind, added.label = kind.item, _Field.LABEL_REPEATED
    name = type_name(kind)
    if name in _SCALARS:
        added.type = _SCALARS[name]
        return
    added.type = _Field.TYPE_ENUM if isinstance(kind, EnumKind) else _Field.TYPE_MESSAGE
    added.type_name = f".{name}" if name in IMPORTS else f".{package}.{name}"
