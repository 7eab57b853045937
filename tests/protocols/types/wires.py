"""The same value in the payload of every wire, and what is read from it; `CannotSay` where a wire cannot say it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema
import msgspec

from invoker.author.described import described
from invoker.author.prepare import prepare_function
from invoker.author.spec import FunctionSpec
from invoker.codecs import builtin
from invoker.codecs.anyvalue import ANY, AnyCodec, pack
from invoker.codecs.constrained import constrained
from invoker.codecs.promised import check_promise
from invoker.codecs.scalars import writer
from invoker.codecs.tensor import TENSOR
from invoker.codecs.validated import validated_output
from invoker.errors import DecodeError, EncodeError
from invoker.errors.wording import Place
from invoker.message import EMPTY, Message
from invoker.protocols.toolbridge.typenames import elixir_type
from invoker.protocols.typed.calls import media_type
from invoker.protocols.typed.codec import Book, FieldCodec
from invoker.protocols.typed.kinds import (
    AnyKind,
    ArrayKind,
    EnumKind,
    Kind,
    ListKind,
    MapKind,
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
from invoker.protocols.typed.types import Types

JSON, MSGPACK, TEXT = "application/json", "application/msgpack", "text/plain"
FORM = "application/x-www-form-urlencoded"


class Refused(Exception):
    """The value is not of the type."""


class CannotSay(Exception):
    """The wire has no payload for such a value."""


class World:
    """A function for each annotation, which gives what it takes."""

    def __init__(self, annotations: Sequence[Any]) -> None:
        self.specs = [self.prepared(f"f{place}", one) for place, one in enumerate(annotations)]
        self.registry = builtin(arrays=True, entry_points=False)
        self.registry.register(AnyCodec(), first=False)
        self.registry.register(FieldCodec(Book(lambda: self.specs)), first=False)

    @staticmethod
    def prepared(name: str, annotation: Any) -> FunctionSpec:
        def function(x: Any) -> Any: ...

        function.__annotations__ = {"x": annotation, "return": annotation}
        function.__name__ = function.__qualname__ = name
        return prepare_function(function).function.spec

    def encoded(self, place: int, media: str, value: Any) -> bytes:
        (stream,) = self.specs[place].outputs
        check_promise(stream.type, value, Place("output", 0))
        encode = self.registry.encoder(self.registry.offers(media), value)
        return validated_output(encode, stream.type, stream.constraints, Place("output", 0))(value).payload

    def decoded(self, place: int, media: str, payload: bytes) -> Any:
        (stream,) = self.specs[place].inputs
        decode = constrained(self.registry.decoder(media, stream.type), stream.constraints, Place("input", 0))
        try:
            return decode(Message(payload, EMPTY, media))
        except DecodeError as error:
            raise Refused(str(error)) from None


def _only_texts(value: Any) -> None:
    if writer(type(value)) is None:
        raise CannotSay("it is no single piece of text")


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def by_json(world: World, place: int, value: Any) -> Any:
    return world.decoded(place, JSON, world.encoded(place, JSON, value))


def by_msgpack(world: World, place: int, value: Any) -> Any:
    return world.decoded(place, MSGPACK, world.encoded(place, MSGPACK, value))


def by_any(world: World, place: int, value: Any) -> Any:
    return world.decoded(place, ANY, world.encoded(place, ANY, value))


def by_text(world: World, place: int, value: Any) -> Any:
    _only_texts(value)
    return world.decoded(place, TEXT, world.encoded(place, TEXT, value))


def by_form(world: World, place: int, value: Any) -> Any:
    try:
        payload = world.encoded(place, FORM, value)
    except EncodeError:
        raise CannotSay("a form has fields, of texts only") from None
    return world.decoded(place, FORM, payload)


def by_multipart(world: World, place: int, value: Any) -> Any:
    try:
        message = world.registry.encoder(world.registry.offers("multipart/form-data"), value)(value)
    except EncodeError:
        raise CannotSay("a body of parts has fields") from None
    return world.decoded(place, message.media_type, message.payload)


def by_tensor(world: World, place: int, value: Any) -> Any:
    if not hasattr(value, "dtype"):
        raise CannotSay("it is no array")
    return world.decoded(place, TENSOR, world.encoded(place, TENSOR, value))


def by_protobuf(world: World, place: int, value: Any) -> Any:
    name = world.specs[place].name
    payload = world.encoded(place, media_type(name, 1, is_output=True), value)
    return world.decoded(place, media_type(name, 1), payload)


def by_protobuf_json(world: World, place: int, value: Any) -> Any:
    name = world.specs[place].name
    payload = world.encoded(place, media_type(name, 1, is_output=True, is_json=True), value)
    given = json.loads(payload).get("out")
    return world.decoded(place, media_type(name, 1, is_json=True), _json(given))


def by_schema(world: World, place: int, value: Any) -> Any:
    """What the JSON Schema of the input says of the value's JSON."""
    plain = json.loads(world.encoded(place, JSON, value))
    _fits(world, place, plain)
    return value


def _fits(world: World, place: int, plain: Any) -> None:
    (one,) = described(world.specs[place]).inputs
    if not jsonschema.Draft202012Validator(one.schema).is_valid(plain):
        raise Refused(f"{plain!r} does not fit {one.schema}")


Wire = Callable[[World, int, Any], Any]
WIRES: dict[str, Wire] = {
    "json": by_json, "msgpack": by_msgpack, "any": by_any, "text": by_text, "form": by_form,
    "multipart": by_multipart, "tensor": by_tensor, "protobuf": by_protobuf,
    "protobuf json": by_protobuf_json, "schema": by_schema,
}  # fmt: skip
"""For each wire, what is read from the payload of a value."""


def text_of(world: World, place: int, plain: Any) -> Any:
    _only_texts(plain)
    return world.decoded(place, TEXT, str(plain).encode())


def protobuf_json_of(world: World, place: int, plain: Any) -> Any:
    kind = Types().kind(world.specs[place].inputs[0].type)
    return world.decoded(place, media_type(world.specs[place].name, 1, is_json=True), _json(_shaped(kind, plain)))


def _shaped(kind: Kind, plain: Any) -> Any:
    """The JSON in the form that protobuf's JSON has: with a message where protobuf has no list, map or tuple."""
    match kind, plain:
        case OptionalKind(), _:
            return _shaped(kind.inner, plain)
        case WrapKind(), _:
            return {"items": _shaped(kind.definition.fields[0].kind, plain)}
        case ListKind(), list():
            return [_shaped(kind.item, one) for one in plain]
        case MapKind(), dict():
            return {key: _shaped(kind.value, one) for key, one in plain.items()}
        case (TupleKind() | MessageKind(is_mapping=False), list()) if _is_array(kind):
            pairs = zip(kind.definition.fields, plain, strict=False)
            return {field.name: _shaped(field.kind, one) for field, one in pairs}
        case MessageKind(), dict():
            known = {field.source: field for field in kind.definition.fields}
            return {key: _shaped(known[key].kind, one) if key in known else one for key, one in plain.items()}
        case UnionKind(), _:
            raise CannotSay("a field for each member of the union has its type")
    return plain


def _is_array(kind: Kind) -> bool:
    cls = getattr(kind, "type", tuple)
    config = getattr(cls, "__struct_config__", None)
    return issubclass(cls, tuple) or (config is not None and config.array_like)


SAID: dict[str, Wire] = {
    "json": lambda world, place, plain: world.decoded(place, JSON, _json(plain)),
    "msgpack": lambda world, place, plain: world.decoded(place, MSGPACK, msgspec.msgpack.encode(plain)),
    "any": lambda world, place, plain: world.decoded(place, ANY, pack(plain)),
    "text": text_of,
    "protobuf json": protobuf_json_of,
    "schema": _fits,
}
"""For each wire, what is read from plain JSON."""


def in_schema(world: World, place: int) -> set[str]:
    """Which kinds of JSON a value may be, by the JSON Schema; empty: any."""
    (one,) = described(world.specs[place]).inputs
    return _of_schema(one.schema, one.schema.get("$defs", {}))


def _of_schema(schema: Any, known: Any) -> set[str]:
    if "$ref" in schema:
        return _of_schema(known[schema["$ref"].rpartition("/")[2]], known)
    if "anyOf" in schema:
        found = [_of_schema(one, known) for one in schema["anyOf"]]
        return set().union(*found) if all(found) else set()
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return {_JSON_KINDS[type(one)] for one in values} or ({schema["type"]} if "type" in schema else set())


_JSON_KINDS = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    tuple: "array",
}


def in_elixir(world: World, place: int) -> set[str]:
    """The same, by the type of Elixir in a ToolSpec."""
    text = elixir_type(world.specs[place].inputs[0].type)
    outer = re.sub(r"[\[{].*[\]}]", "array", text)
    found = {_ELIXIR[one] for one in outer.split(" | ")}
    return set() if "any" in found else found


_ELIXIR = {
    "binary": "string", "integer": "integer", "float": "number", "boolean": "boolean", "nil": "null", "map": "object",
    "any": "any", "array": "array",
}  # fmt: skip


def in_protobuf(world: World, place: int) -> set[str]:
    """The same, by the kind of a field of a typed message."""
    return _of_kind(Types().kind(world.specs[place].inputs[0].type))


def _of_kind(kind: Kind) -> set[str]:
    match kind:
        case OptionalKind():
            return found | {"null"} if (found := _of_kind(kind.inner)) else set()
        case UnionKind():
            each = [_of_kind(one.kind) for one in kind.definition.fields]
            return set().union(*each, {"null"} if kind.is_nullable else ()) if all(each) else set()
        case ScalarKind():
            return {_PROTO[kind.proto]}
        case WrapKind():
            return _of_kind(kind.definition.fields[0].kind)
        case AnyKind():
            return {"object"} if kind.is_struct else set()
        case MessageKind():
            return {"array" if _is_array(kind) else "object"}
        case EnumKind():
            return {_JSON_KINDS[type(member.value)] for _, _, member in kind.definition.values if member is not None}
    return {_KINDS[type(kind)]}


_PROTO = {"int64": "integer", "double": "number", "bool": "boolean", "string": "string", "bytes": "string"}
_KINDS: dict[type, str] = {
    ListKind: "array", TupleKind: "array", ArrayKind: "array", MapKind: "object", TextKind: "string",
    TimeKind: "string", VoidKind: "null",
}  # fmt: skip

KINDS = {"schema": in_schema, "elixir": in_elixir, "protobuf": in_protobuf}
"""What describes an annotation."""
