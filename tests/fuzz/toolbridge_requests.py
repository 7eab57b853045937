"""Requests to a tool bridge that are wrong: garbage, good ones with bytes changed, and bombs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.wrappers_pb2 import BytesValue, DoubleValue, Int64Value, StringValue

from invoker._pb.dspex import bridge_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["SnakepitBridge"]
METHODS = SERVICE.methods_by_name

_PREFIX = "type.googleapis.com/"
_TOOLS = (
    "add",
    "echo",
    "typed",
    "counted",
    "blocks",
    "broken",
    "raising",
    "kinds",
    "nothing",
    "",
    "x" * 300,
    "strange",
)
_NUMBERS = (0, 1, -1, 2**31 - 1, -(2**31))
_TEXTS = ("", "x", "\0", "é" * 200, "x" * 300, "../..", "var/x", "%s", "a\nb")


def attack(chance: Random, session: str) -> tuple[str, bytes]:
    """A method and the bytes of a request to it."""
    method = chance.choice(tuple(METHODS))
    kind = chance.random()
    if kind < 0.15:
        return method, chance.randbytes(chance.choice((1, 10, 1000)))
    if kind < 0.2:
        return "ExecuteTool", bomb(chance, session)
    request = _request(method, chance, session).SerializeToString()
    return method, _changed(chance, request) if kind < 0.5 else request


def _changed(chance: Random, data: bytes) -> bytes:
    """Some bytes of a request are others, or lost."""
    if not data:
        return b"\xff"
    bytes_ = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.randrange(len(bytes_))
        bytes_[place] = chance.randrange(256)
    return bytes(bytes_[: chance.randrange(len(bytes_) + 1)] if chance.random() < 0.3 else bytes_)


def _request(method: str, chance: Random, session: str) -> Any:
    """A request that is formed right; each of its fields may be anything."""
    request = getattr(pb, METHODS[method].input_type.name)()
    _filled(request, chance, 0)
    names = request.DESCRIPTOR.fields_by_name
    if "session_id" in names and chance.random() < 0.8:
        request.session_id = session
    if "tool_id" in names and chance.random() < 0.9:
        request.tool_id = chance.choice(_TOOLS)
    if method == "InitializeSession":
        request.callback_address = chance.choice(
            ("", "", "", "127.0.0.1:1", "unix:/nowhere", "example.org:80", "x" * 9)
        )
        if chance.random() < 0.7:
            request.ClearField("config")
    return request


def _filled(message: Any, chance: Random, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.4 or depth > 3:
            continue
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if is_map:
            _map(getattr(message, field.name), field, chance)
        elif field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
            _list(getattr(message, field.name), field, chance, depth)
        elif field.message_type is None:
            setattr(message, field.name, _scalar(field, chance))
        elif field.message_type.full_name == "google.protobuf.Any":
            getattr(message, field.name).CopyFrom(value(chance))
        else:
            part = getattr(message, field.name)
            part.SetInParent()
            _filled(part, chance, depth + 1)


def _map(target: Any, field: Any, chance: Random) -> None:
    of = field.message_type.fields_by_name["value"]
    for _ in range(chance.choice((0, 1, 3, 40))):
        key = chance.choice((*_TEXTS, "a", "b", "value", "n", "number", f"k{chance.random()}"))
        if of.message_type is None:
            target[key] = _scalar(of, chance)
        elif of.message_type.full_name == "google.protobuf.Any":
            target[key].CopyFrom(value(chance))
        else:
            target[key].SetInParent()


def _list(target: Any, field: Any, chance: Random, depth: int) -> None:
    for _ in range(chance.choice((0, 1, 2, 5, 101))):
        if field.message_type is None:
            target.append(_scalar(field, chance))
        elif field.message_type.full_name == "google.protobuf.Any":
            target.add().CopyFrom(value(chance))
        else:
            _filled(target.add(), chance, depth + 1)


def _scalar(field: Any, chance: Random) -> Any:
    kinds: dict[int, Callable[[], Any]] = {
        field.CPPTYPE_STRING: lambda: chance.choice(_TEXTS),
        field.CPPTYPE_BOOL: lambda: chance.random() < 0.5,
        field.CPPTYPE_DOUBLE: lambda: chance.choice((0.0, -1.0, float("nan"), float("inf"))),
        field.CPPTYPE_ENUM: lambda: 0,
    }
    return kinds.get(field.cpp_type, lambda: chance.choice(_NUMBERS))()


def value(chance: Random) -> AnyMessage:
    """An argument: right, of an unknown type, or broken."""
    kind = chance.randrange(9)
    made = AnyMessage()
    if kind < 5:
        made.Pack(
            chance.choice(
                (
                    Int64Value(value=chance.choice((0, 3, -1, 2**63 - 1))),
                    StringValue(value=chance.choice(_TEXTS)),
                    DoubleValue(value=chance.choice((1.5, float("nan")))),
                    BytesValue(value=chance.randbytes(50)),
                    Struct(fields={"@type": Value(string_value="x"), "value": Value(string_value="y")}),
                    ListValue(values=[Value(number_value=1.5)] * chance.choice((0, 3, 1000))),
                )
            )
        )
    elif kind == 5:
        made.type_url, made.value = _PREFIX + "google.protobuf.Struct", chance.randbytes(20)
    elif kind == 6:
        made.type_url, made.value = (
            chance.choice(("", "/", "x", _PREFIX, _PREFIX + "python.Thing")),
            chance.randbytes(9),
        )
    elif kind == 7:
        made.type_url, made.value = _PREFIX + "snakepit.map", chance.choice((b"[" * 5000, b"{", b'{"a":1e999}', b"nul"))
    else:
        made.type_url, made.value = _PREFIX + "pandas.DataFrame", b"PAR1" + chance.randbytes(30)
    return made


def bomb(chance: Random, session: str) -> bytes:
    """A call whose argument is far more than its bytes look like."""
    kind = chance.randrange(5)
    made = AnyMessage(type_url=_PREFIX + "google.protobuf.ListValue")
    if kind == 0:
        made.value = nested(chance.choice((64, 65, 5000, 100_000)))
    elif kind == 1:
        made.value = b"\x0a\x00" * 1_500_000  # values of no kind
    elif kind == 2:
        made.value = b"\x0a\x02\x32\x00" * 900_000  # empty lists
    elif kind == 3:
        made.type_url, made.value = _PREFIX + "google.protobuf.StringValue", b"[" * 2_000_000
    else:
        made.type_url = _PREFIX + "google.protobuf.Struct"
        made.value = b"".join(b"\x0a\x06\x0a\x00\x12\x02\x32\x00" for _ in range(400_000))  # one key, many times
    request = pb.ToolCallRequest(session_id=session, tool_id=chance.choice(("echo", "size", "typed")), args=[made])
    return request.SerializeToString()


def nested(levels: int) -> bytes:
    """A ListValue of so many lists in one another."""
    heads: list[bytes] = []
    size = 0
    for _ in range(levels):
        value_head = b"\x32" + _varint(size)
        size += len(value_head)
        list_head = b"\x0a" + _varint(size)
        size += len(list_head)
        heads += [value_head, list_head]
    return b"".join(reversed(heads))


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)
