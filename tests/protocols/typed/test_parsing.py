"""`invoker.protocols.typed.parsing`: JSON of a field is what protobuf makes of it, and lets other threads run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, struct_pb2

from invoker.protocols.typed.parsing import AROUND, parse_json
from tests.conftest import SLOW

WHOLE = AROUND[""]
KINDS = ("double", "float", "bool", "string", "bytes", "int32", "int64", "uint32", "uint64", "sint64", "fixed32")
VALUE = ".google.protobuf.Value"


def _message() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="parsed.proto", package="parsed", syntax="proto3")
    file.dependency.append(struct_pb2.DESCRIPTOR.name)
    made = file.message_type.add(name="Parsed")
    for number, kind in enumerate(KINDS):
        type_ = getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{kind.upper()}")
        made.field.add(name=f"many_{kind}", number=2 * number + 1, label=3, type=type_)
        made.field.add(name=f"one_{kind}", number=2 * number + 2, label=1, type=type_)
    made.field.add(name="many_value", number=100, label=3, type=11, type_name=VALUE)
    made.field.add(name="one_value", number=101, label=1, type=11, type_name=VALUE)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("parsed.Parsed"))


def _painted() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="painted.proto", package="painted", syntax="proto3")
    colour = file.enum_type.add(name="Colour")
    colour.value.add(name="NONE", number=0)
    colour.value.add(name="RED", number=1)
    made = file.message_type.add(name="Painted")
    made.field.add(name="colour", number=1, label=1, type=14, type_name=".painted.Colour")
    made.field.add(name="colours", number=2, label=3, type=14, type_name=".painted.Colour")
    made.field.add(name="inner", number=3, label=1, type=11, type_name=".painted.Painted")
    for number, (name, type_, of) in enumerate([("by_colour", 14, "Colour"), ("by_name", 11, "Painted")], 4):
        entry = made.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=1, type=9)
        entry.field.add(name="value", number=2, label=1, type=type_, type_name=f".painted.{of}")
        made.field.add(name=name, number=number, label=3, type=11, type_name=f".painted.Painted.{entry.name}")
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("painted.Painted"))


MESSAGE, PAINTED = _message(), _painted()
FIELDS = [field.name for field in MESSAGE.DESCRIPTOR.fields]
ITEMS = (
    "1", "-1", "0", "-0", "-0.0", "1.0", "1.5", "1e308", "17e-320", "1e400", "true", "null", '"a"', '"aGk="', '"1"',
    '"NaN"', "NaN", str(2**31), str(2**32), str(2**63), str(2**64), f"1{'0' * 310}", r'"\ud800"', r'"\ud83d\ude00"',
    "[]", '{"a":1}', '{"a":1,"a":1}',
)  # fmt: skip


def outcome(make: Callable[[], Any]) -> Any:
    """The message as text, in which NaN equals itself; None if it was refused."""
    try:
        return str(make())
    except (ValueError, json_format.Error):
        return None


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("item", ITEMS)
def test_a_field_is_what_protobuf_makes_of_it(field: str, item: str) -> None:
    """Alone, in a list, and in lists that begin with something else; or both refuse it."""
    is_strange = "value" in field and item in ("1e400", "NaN")  # protobuf makes infinity and NaN of them
    for payload in (item, f"[1,{item},{item}]", f"[{item},{item}]", f'["a",{item}]', f"[true,{item}]"):
        text = WHOLE % (field.encode(), payload.encode())
        expected = outcome(lambda text=text: json_format.Parse(text, MESSAGE(), ignore_unknown_fields=True))
        expected = None if is_strange else expected
        assert outcome(lambda payload=payload: parse_json(MESSAGE, field, WHOLE, payload.encode())) == expected


@pytest.mark.parametrize("count", [0, 1, 16_383, 16_384, 16_385, 50_000])
def test_a_field_of_any_size_is_whole(count: int) -> None:
    """Also if one of its last elements does not fit, and protobuf has to look at all of them."""
    payload = b"[" + b",".join(b"%d" % one for one in range(count)) + b"]"
    assert list(parse_json(MESSAGE, "many_int32", WHOLE, payload).many_int32) == [*range(count)]
    if count > 1:
        made = parse_json(MESSAGE, "many_int32", WHOLE, payload[:-1] + b",7.0]")
        assert list(made.many_int32) == [*range(count), 7]


def test_nothing_is_an_empty_message() -> None:
    """As a function's only parameter has it, where the request has no such field."""
    assert parse_json(MESSAGE, "many_int32", WHOLE, b"") == MESSAGE()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("colour", '"RED"'),
        ("colours", '["RED","RED"]'),
        ("by_colour", '{"a":"RED"}'),
        ("inner", '{"inner":{"colours":["RED"]}}'),
        ("inner", '{"byName":{"a":{"colours":["RED"]}}}'),
    ],
)
def test_a_name_that_is_no_member_of_an_enum_is_refused(field: str, value: str) -> None:
    """protobuf drops it where it ignores unknown fields; numbers are left to who reads the message."""

    def parsed(member: str) -> Any:
        return parse_json(PAINTED, field, WHOLE, value.replace("RED", member).encode())

    assert "colour" in str(parsed("RED"))
    assert parsed("1") == parsed("RED")
    for wrong in ("BLACK", "red", ""):
        with pytest.raises(ValueError, match=f"'{wrong}' is not a value of Colour"):
            parsed(wrong)


def test_a_name_that_comes_twice_is_refused() -> None:
    """As by protobuf."""
    with pytest.raises(ValueError, match="twice"):
        parse_json(MESSAGE, "one_value", WHOLE, b'{"a":1,"a":2}')


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("field", "number"),
    [("many_double", b"1e308"), ("many_double", b"1"), ("many_int64", b"1"), ("one_value", b"1e308")],
)
def test_others_run_while_four_megabytes_of_numbers_are_parsed(field: str, number: bytes) -> None:
    """No piece of processor time is long in which they do not; it was 120 to 290 ms."""
    payload = b"[" + b",".join([number] * (4_000_000 // (len(number) + 1))) + b"]"
    pieces, is_over = [0.0], threading.Event()

    def watch() -> None:
        last_s = time.process_time()
        while not is_over.wait(0.001):
            now_s = time.process_time()
            pieces.append(now_s - last_s)
            last_s = now_s

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        parse_json(MESSAGE, field, WHOLE, payload)
    finally:
        is_over.set()
        watching.join()
    assert max(pieces) < 0.1 * SLOW
