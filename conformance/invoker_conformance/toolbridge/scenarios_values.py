"""Values: docs/reference/tool-bridge.md 2.6."""

from __future__ import annotations

from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import FloatValue, Int32Value, StringValue, UInt32Value, UInt64Value

from invoker_conformance.scenario import scenario
from invoker_conformance.toolbridge.host import Host
from invoker_conformance.toolbridge.session import Session
from invoker_conformance.toolbridge.values import kind_of, pack, packed, same, shown, value_in

_PROTOBUF = "google.protobuf."
_PICKLED = b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x01x\x94."


async def _is_read_as(session: Session, kind: str, sent: AnyMessage) -> None:
    await session.gives([kind], "kinds", value=sent)


@scenario("TT-49", "T-097", "T-098", "T-100", "T-101", "T-102", "T-117", function="echo")
async def plain_values(host: Host) -> None:
    """Each value comes back unchanged, in the form of its type."""
    forms = {bool: "BoolValue", int: "Int64Value", float: "DoubleValue", str: "StringValue", bytes: "BytesValue"}
    forms |= {list: "ListValue", dict: "Struct", type(None): "Value"}
    values: list[Any] = [True, False, 0, 1, -1, 2**63 - 1, -(2**63), 1.0, 1.5, -0.0, float("nan"), float("inf")]
    values += ["", "日本😀", "\0", b"", b"\x00\xff", [], {}, None, [True, 1, 1.5, "x", None, [], {}], {"": {"a": [1]}}]
    async with host.session() as session:
        for value in values:
            answer = await session.execute("echo", value)
            if kind_of(answer.result) != _PROTOBUF + forms[type(value)] or not same(session.result(answer), value):
                raise host.failure(f"{shown(answer.result)} for {value!r}", f"the same value, as {forms[type(value)]}")
        answer = await session.execute("echo", None)
        if answer.result.value != b"\x08\x00":
            raise host.failure(shown(answer.result), "the bytes 08 00 for None (T-098)")


@scenario("T-098", "T-106", "T-107", function="kinds")
async def other_forms_are_read(host: Host) -> None:
    """All wrappers, several nulls and times are read; of a type URL only what follows the last slash counts."""
    async with host.session() as session:
        for null in (AnyMessage(), packed(_PROTOBUF + "NullValue", b""), pack(Empty())):
            await _is_read_as(session, "NoneType", null)
        for message, kind in (
            (Int32Value(value=-1), "int"),
            (UInt32Value(value=1), "int"),
            (UInt64Value(value=2**64 - 1), "int"),
            (FloatValue(value=1.5), "float"),
            (Value(number_value=2.5), "float"),
            (Value(string_value="x"), "str"),
            (Value(bool_value=True), "bool"),
            (Value(struct_value=Struct()), "dict"),
            (Timestamp(seconds=1), "datetime"),
            (Duration(seconds=1), "timedelta"),
        ):
            await _is_read_as(session, kind, pack(message))
        text = StringValue(value="x").SerializeToString()
        for url in (
            "example.com/a/google.protobuf.StringValue",
            "google.protobuf.StringValue",
            "/google.protobuf.StringValue",
        ):
            await session.gives("x", "echo", AnyMessage(type_url=url, value=text))


@scenario("TT-49", "T-099", "T-103", "T-100", function="large")
async def values_that_are_easily_lost(host: Host) -> None:
    """Large numbers and bytes come back exactly; within lists and dicts they are tagged."""
    async with host.session() as session:
        for kind, expected in (
            ("2**53+1", 2**53 + 1),
            ("2**63", 2**63),
            ("-2**70", -(2**70)),
            ("bytes", b"\x00\xff"),
            ("nan", float("nan")),
            ("-0.0", -0.0),
            ("none", None),
        ):
            await session.gives(expected, "large", kind)
        met = await session.value("large", "nested")
        number = {"@type": f"type.googleapis.com/{_PROTOBUF}Int64Value", "value": str(2**53 + 1)}
        octets = {"@type": f"type.googleapis.com/{_PROTOBUF}BytesValue", "value": "AP8="}
        if not same(met, {"a": [number, octets, True, None, {"b": 1.5}]}):
            raise host.failure(repr(met), "tagged objects for the number and the bytes (T-103)")


@scenario("T-103", "T-105", function=("kinds", "echo"))
async def tagged_objects_are_read(host: Host) -> None:
    """Tagged objects become the values that they represent; whole numbers of containers are ints."""
    number = {"@type": f"type.googleapis.com/{_PROTOBUF}Int64Value", "value": str(2**53 + 1)}
    octets = {"@type": f"type.googleapis.com/{_PROTOBUF}BytesValue", "value": "AP8="}
    async with host.session() as session:
        await session.gives(["int", "bytes", "int", "float", "float"], "kinds", [number, octets, 3.0, 2.5, -0.0])
        if not same(met := await session.value("echo", [number, octets]), [number, octets]):
            raise host.failure(repr(met), "the same tagged objects")


@scenario("TT-53", "TT-54", "T-104", "T-113", function="strange")
async def values_without_a_form(host: Host) -> None:
    """A result that has no form on the wire gives InternalError with the path to it; nothing is coerced."""
    async with host.session() as session:
        for kind in ("keys", "cycle", "object", "surrogate"):
            error = await session.fails("InternalError", "unserializable", "strange", kind)
            if "path" not in error.details:
                raise host.failure(str(dict(error.details)), "details path")


@scenario("TT-50", "T-111", "T-112", function="echo")
async def what_snakepit_sends(host: Host) -> None:
    """JSON is read under Snakepit's own type names, and under those of StringValue and Value."""
    string, value = _PROTOBUF + "StringValue", _PROTOBUF + "Value"
    # Read as protobuf, the text of 65 A in quotes is an unknown field 4, so a naive parser would return an empty text.
    long = b'"' + b"A" * 65 + b'"'
    async with host.session() as session:
        for sent, expected in (
            (packed("snakepit.integer", b"7"), 7),
            (packed("snakepit.map", b'{"a": [1, true]}'), {"a": [1, True]}),
            (packed("snakepit.float", b'"NaN"'), float("nan")),
            (packed("snakepit.float", b'"-Infinity"'), float("-inf")),
            (AnyMessage(type_url="dspex.variables/string", value=b'"x"'), "x"),
            (packed(string, b'"hi"'), "hi"),
            (packed(string, long), "A" * 65),
            (packed(string, b""), ""),
            (packed(string, StringValue(value="x").SerializeToString()), "x"),
            (packed(value, b"2"), 2),
            (packed(value, b"25"), 25),
            (packed(value, b'"x"'), "x"),
        ):
            await session.gives(expected, "echo", sent)


@scenario("T-109", "T-110", function="kinds")
async def objects_of_foreign_classes(host: Host) -> None:
    """Objects of foreign classes are texts with the name of their class; they are never unpickled."""
    text = StringValue(value="os.system").SerializeToString()
    async with host.session() as session:
        [kind] = await session.value("kinds", value=packed("python.Thing", text))
        if kind not in ("str", "Opaque"):
            raise host.failure(f"a {kind}", "text")
        for name in ("python.pickle", "pickle", "cloudpickle", "application/x-python-pickle"):
            answer = await session.execute("kinds", value=packed(name, _PICKLED))
            if answer.success and value_in(answer.result) not in (["str"], ["Opaque"], ["bytes"]):
                raise host.failure(str(answer), "an error, or opaque text (T-110)")


@scenario("T-102", "T-105", function="echo")
async def lists_of_numbers(host: Host) -> None:
    """Ten thousand numbers come back in their order."""
    numbers = ListValue(values=[Value(number_value=number) for number in range(10_000)])
    async with host.session() as session:
        await session.gives(list(range(10_000)), "echo", pack(numbers))
