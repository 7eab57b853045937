"""The generated code is what the wire tables of docs/reference/riff.md say; `make proto` generates it anew."""

from __future__ import annotations

import re
from pathlib import Path

from google.protobuf.descriptor import FieldDescriptor

from invoker._pb.riff import riff_rpc_pb2 as pb

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| (\w*) ?\| (\w+) \| (\d+) \| ([^|]+?) \|", re.MULTILINE)
TYPES = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_INT32: "int32",
}


def tabled() -> set[tuple[str, str, int, str]]:
    """Message, field, number and type, as the table of wire facts has them."""
    text = (ROOT / "docs/reference/riff.md").read_text(encoding="utf-8")
    facts = text.partition("## 1. Wire facts")[2].partition("\n## ")[0]
    rows, message = set(), ""
    for name, field, number, kind in ROW.findall(facts):
        message = name or message
        rows.add((message, field, int(number), kind))
    return rows


def shown(field: FieldDescriptor) -> str:
    """The type of a field, as the table spells it."""
    message = field.message_type
    if message is None:
        return "repeated " * field.is_repeated + TYPES[field.type]
    if message.GetOptions().map_entry:
        key, value = message.fields_by_name["key"], message.fields_by_name["value"]
        return f"map<{TYPES[key.type]},{TYPES[value.type]}>"
    return str(message.name)


def test_messages_have_the_published_fields() -> None:
    """Names, numbers and types of all fields are those of the table, and there are no others."""
    generated = {
        (name, field.name, field.number, shown(field))
        for name, message in pb.DESCRIPTOR.message_types_by_name.items()
        for field in message.fields
    }
    assert generated == tabled()


def test_R007_the_method_has_the_published_path() -> None:
    """Package, service and method give /streaming.Riff/Invoke, streaming both ways."""
    service = pb.DESCRIPTOR.services_by_name["Riff"]
    (method,) = service.methods
    assert f"/{service.full_name}/{method.name}" == "/streaming.Riff/Invoke"
    assert (method.client_streaming, method.server_streaming) == (True, True)
    assert (method.input_type.full_name, method.output_type.full_name) == (
        "streaming.InputSignal",
        "streaming.OutputSignal",
    )


def test_the_generator_is_the_pinned_one() -> None:
    """Code of a newer generator would fail on protobuf 6."""
    text = (ROOT / "invoker/_pb/riff/riff_rpc_pb2.py").read_text(encoding="utf-8")
    assert "# Protobuf Python Version: 6.31.1" in text
    assert "grpcio-tools==1.80.0" in (ROOT / "requirements/proto.lock").read_text(encoding="utf-8")
