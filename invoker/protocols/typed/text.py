"""A `Schema` as the text of a .proto file."""

from __future__ import annotations

from collections.abc import Iterator

from invoker.protocols.typed.kinds import (
    AnyKind,
    ArrayKind,
    EnumKind,
    FieldDef,
    Kind,
    ListKind,
    MapKind,
    MessageDef,
    MessageKind,
    OptionalKind,
    ScalarKind,
    TextKind,
    TimeKind,
    TupleKind,
    UnionKind,
    VoidKind,
    WrapKind,
)
from invoker.protocols.typed.schema import Rpc, Schema

IMPORTS = {
    "google.protobuf.Duration": "google/protobuf/duration.proto",
    "google.protobuf.Empty": "google/protobuf/empty.proto",
    "google.protobuf.Struct": "google/protobuf/struct.proto",
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
    "google.protobuf.Value": "google/protobuf/struct.proto",
}
"""The files of protobuf's own messages."""


def proto_text(schema: Schema) -> str:
    """The text of the file; protoc and buf compile it under the path that its first line names."""
    fields = [one.kind for message in schema.messages for one in message.fields]
    imports = sorted({IMPORTS[name] for kind in fields for name in _names(kind) if name in IMPORTS})
    lines = [
        f"// {schema.file}, made of the signatures of the functions by `invoker proto`.",
        "",
        'syntax = "proto3";',
        "",
        f"package {schema.package};",
        "",
        *(f'import "{one}";' for one in imports),
        *([""] if imports else []),
        f"// Functions of the module {schema.package}.",
        f"service {schema.service} {{",
    ]
    for place, rpc in enumerate(schema.rpcs):
        lines += [""] if place else []
        lines += [*_comment(rpc.call.spec.doc.partition("\n\n")[0], "  "), *_rpc(rpc)]
    lines.append("}")
    is_hidden = "google" in schema.package.split(".")
    for message in schema.messages:
        lines += ["", *_message(message, is_hidden=is_hidden)]
    for enum in schema.enums:
        values = (f"  {name} = {number};" for name, number, _ in enum.values)
        lines += ["", *_comment(enum.comment), f"enum {enum.name} {{", *values, "}"]
    return "\n".join(lines) + "\n"


def type_name(kind: Kind) -> str:
    """The name of the type of a single value of this kind."""
    match kind:
        case ScalarKind():
            return kind.proto
        case TextKind():
            return "string"
        case TimeKind():
            return "google.protobuf.Duration" if kind.is_duration else "google.protobuf.Timestamp"
        case AnyKind():
            return "google.protobuf.Struct" if kind.is_struct else "google.protobuf.Value"
        case VoidKind():
            return "google.protobuf.Empty"
        case OptionalKind():
            return type_name(kind.inner)
        case ListKind():
            return type_name(kind.item)
        case MapKind():
            return f"map<{type_name(kind.key)}, {type_name(kind.value)}>"
        case EnumKind() | MessageKind() | TupleKind() | UnionKind() | WrapKind() | ArrayKind():
            return kind.definition.name


def is_optional(field: FieldDef) -> bool:
    """Whether the field is marked as ``optional``, so that a message shows whether the field is set."""
    inner = field.kind.inner if isinstance(field.kind, OptionalKind) else field.kind
    marked = field.has_presence or isinstance(field.kind, OptionalKind)
    return marked and not field.oneof and isinstance(inner, (ScalarKind, TextKind, EnumKind))


def _names(kind: Kind) -> Iterator[str]:
    match kind:
        case MapKind():
            yield from _names(kind.value)
        case ListKind():
            yield from _names(kind.item)
        case OptionalKind():
            yield from _names(kind.inner)
        case _:
            yield type_name(kind)


def _rpc(rpc: Rpc) -> Iterator[str]:
    asked = f"stream {rpc.request.name}" if rpc.call.streams_in else rpc.request.name
    answered = f"stream {rpc.response.name}" if rpc.call.streams_out else rpc.response.name
    head = f"  rpc {rpc.call.method}({asked}) returns ({answered})"
    if rpc.call.is_safe:
        yield from (f"{head} {{", "    option idempotency_level = NO_SIDE_EFFECTS;", "  }")
    else:
        yield f"{head};"


def _message(message: MessageDef, *, is_hidden: bool) -> Iterator[str]:
    yield from _comment(message.comment)
    if not message.fields:
        yield f"message {message.name} {{}}"
        return
    yield f"message {message.name} {{"
    oneof = ""
    for field in message.fields:
        if field.oneof != oneof:
            if oneof:
                yield "  }"
            oneof = field.oneof
            if oneof:
                yield f"  oneof {oneof} {{"
        indent = "    " if oneof else "  "
        yield from _comment(field.comment, indent)
        yield f"{indent}{_field(field, is_hidden=is_hidden)}"
    if oneof:
        yield "  }"
    yield "}"


def _field(field: FieldDef, *, is_hidden: bool) -> str:
    name = type_name(field.kind)
    if is_hidden:  # such a name needs a leading dot in a package that has a part of the same name
        name = name.replace("google.protobuf.", ".google.protobuf.")
    label = "repeated " if isinstance(field.kind, ListKind) else "optional " if is_optional(field) else ""
    return f"{label}{name} {field.name} = {field.number};"


def _comment(text: str, indent: str = "") -> Iterator[str]:
    for line in text.strip().splitlines():
        yield f"{indent}// {line}".rstrip()
