"""Descriptors of files, and classes of messages."""

from __future__ import annotations

from google.protobuf import descriptor_pb2

from invoker.author.prepare import prepare
from invoker.protocols.typed.descriptors import Classes, files_of
from invoker.protocols.typed.schema import schemas_of


def kitchen():
    """The files of `tests.protocols.typed.kitchen`."""
    return files_of(schemas_of(one.spec for one in prepare("tests.protocols.typed.kitchen")))


def test_H105_protobuf_takes_every_kind():
    """Classes are made of all that the kitchen has; fields tell whether they are there where they should."""
    find = Classes(kitchen()).find
    point = find("tests.protocols.typed.kitchen.Point")
    assert [(one.name, one.has_presence) for one in point.DESCRIPTOR.fields] == [
        ("x", False), ("y", True), ("tags", False),
    ]  # fmt: skip
    request = find("tests.protocols.typed.kitchen.MapsRequest")
    message = request(counts={"a": 1}, points={2: {"x": 3}})
    assert request.FromString(message.SerializeToString()) == message
    tree = find("tests.protocols.typed.kitchen.Tree")
    assert tree(label="a", children=[tree(label="b")]).children[0].label == "b"


def test_H102_methods_stream_as_their_functions_do():
    """All four shapes."""
    file = descriptor_pb2.FileDescriptorProto.FromString(kitchen()[-1])
    streams = {one.name: (one.client_streaming, one.server_streaming) for one in file.service[0].method}
    assert [streams[one] for one in ("Scalars", "Spell", "Total", "Mean")] == [
        (False, False), (False, True), (True, False), (True, True),
    ]  # fmt: skip
    assert file.dependency == [f"google/protobuf/{one}.proto" for one in ("duration", "empty", "struct", "timestamp")]


def test_a_synthetic_oneof_keeps_out_of_the_way():
    """protoc puts an X before a name that is taken."""
    from tests.protocols.typed.written import schema_of

    def f(x: int = 1, *, x_: int = 2, **more: int) -> int: ...

    schema = schema_of(f)
    schema.messages[0].fields[1].name = "_x"
    file = descriptor_pb2.FileDescriptorProto.FromString(files_of([schema])[-1])
    assert [one.name for one in file.message_type[0].oneof_decl] == ["X_x", "__x"]
