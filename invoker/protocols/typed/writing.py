"""Turns Python values into the content of fields, by a closure for each kind, which is built on first use.

A closure returns an argument for the constructor of the protobuf class: a scalar, a message, or a list or dict of them.
It raises ValueError or TypeError for a value that the kind cannot represent.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from operator import index
from typing import Any, TypeAlias

import msgspec

from invoker.codecs.typed import enc_hook
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
from invoker.protocols.typed.values import duration, fill, fill_struct, timestamp

Write: TypeAlias = Callable[[Any], Any]
"""Turns a Python value into the content of a field."""

Matches: TypeAlias = Callable[[Any], bool]


class Writers:
    """The closures of one schema.

    Args:
        find: Returns the class of a message: one of this schema by its name, one of protobuf by its full name.
    """

    def __init__(self, find: Callable[[str], Any]) -> None:
        self._find = find
        self._messages: dict[int, list[tuple[str, str, Write]]] = {}
        self._makers: dict[type, Callable[[Any], Write]] = {
            ScalarKind: _scalar,
            TextKind: lambda _: msgspec.to_builtins,
            TimeKind: lambda kind: duration if kind.is_duration else timestamp,
            AnyKind: self._anything,
            ArrayKind: lambda _: _array,
            VoidKind: lambda _: _nothing,
            EnumKind: _member,
            OptionalKind: lambda kind: self.write(kind.inner),
            ListKind: self._list,
            MapKind: self._map,
            WrapKind: self._wrap,
            TupleKind: self._tuple,
            UnionKind: self._union,
            MessageKind: self._message,
        }

    def write(self, kind: Kind) -> Write:
        """Make a closure that turns a Python value into the content of a field of this kind."""
        return self._makers[type(kind)](kind)

    def _map(self, kind: MapKind) -> Write:
        value = self.write(kind.value)
        return lambda given: {key: value(one) for key, one in given.items()}

    def _wrap(self, kind: WrapKind) -> Write:
        cls, inner = self._find(kind.definition.name), self.write(kind.definition.fields[0].kind)
        return lambda given: cls(items=inner(given))

    def _list(self, kind: ListKind) -> Write:
        item = self.write(kind.item)

        def write(given: Any) -> list[Any]:
            if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
                raise TypeError(f"expected a list, got {type(given).__name__}")
            return [item(one) for one in given]

        return write

    def _anything(self, kind: AnyKind) -> Write:
        cls = self._find("google.protobuf.Struct" if kind.is_struct else "google.protobuf.Value")

        def write(given: Any) -> Any:
            seen, made = msgspec.to_builtins(given, str_keys=True, enc_hook=enc_hook), cls()
            if not kind.is_struct:
                fill(made, seen)
            elif isinstance(seen, dict):
                fill_struct(made, seen)
            else:
                raise TypeError(f"expected an object, got {type(given).__name__}")
            return made

        return write

    def _fields(self, definition: MessageDef) -> list[tuple[str, str, Write]]:
        """Return the name, the source and the closure of each field.

        The list is returned first and filled afterwards, since a field may hold the message itself.
        """
        known = self._messages.get(id(definition))
        if known is None:
            known = self._messages[id(definition)] = []
            known += [(one.name, one.source, self._field(one)) for one in definition.fields]
        return known

    def _field(self, field: FieldDef) -> Write:
        write, name = self.write(field.kind), field.name
        is_nullable = isinstance(field.kind, (OptionalKind, AnyKind, VoidKind)) or (
            isinstance(field.kind, UnionKind) and field.kind.is_nullable
        )
        if is_nullable:
            may_pass = not isinstance(field.kind, (AnyKind, VoidKind))
            return lambda given: None if given is None and may_pass else write(given)

        def write_some(given: Any) -> Any:
            if given is None:  # protobuf would silently leave the field out
                raise TypeError(f"'{name}' is None")
            return write(given)

        return write_some

    def _message(self, kind: MessageKind) -> Write:
        cls, fields = self._find(kind.definition.name), self._fields(kind.definition)
        if kind.is_mapping:
            return lambda given: cls(
                **{name: write(given[source]) for name, source, write in fields if source in given}
            )
        return lambda given: cls(**{name: write(getattr(given, source)) for name, source, write in fields})

    def _tuple(self, kind: TupleKind) -> Write:
        cls, fields = self._find(kind.definition.name), self._fields(kind.definition)

        def write(given: Any) -> Any:
            if len(given) != len(fields):
                raise ValueError(f"expected {len(fields)} values, got {len(given)}")
            return cls(**{name: one(item) for (name, _, one), item in zip(fields, given, strict=True)})

        return write

    def _union(self, kind: UnionKind) -> Write:
        cls, fields = self._find(kind.definition.name), kind.definition.fields
        matches = [_matcher(one.kind) for one in fields]
        writes = [self.write(one.kind) for one in fields]

        def write(given: Any) -> Any:
            if given is None and kind.is_nullable:
                return cls()
            for one, fits, make in zip(fields, matches, writes, strict=True):
                if fits(given):
                    return cls(**{one.name: make(given)})
            raise TypeError(f"{type(given).__name__} is not one of {', '.join(one.name for one in fields)}")

        return write


def _nothing(_: Any) -> dict[str, Any]:
    return {}


def _scalar(kind: ScalarKind) -> Write:
    if kind.proto == "int64":
        return lambda value: value if type(value) is int else index(value)
    if kind.proto == "bytes":
        return lambda value: value if type(value) is bytes else _octets(value)
    if kind.proto == "double":
        return lambda value: value if type(value) is float else _number(value)
    return lambda value: value


def _octets(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"expected bytes, got {type(value).__name__}")
    return bytes(value)


def _number(value: Any) -> float:
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"expected a number, got {type(value).__name__}")
    return float(value)


def _member(kind: EnumKind) -> Write:
    numbers = {one: number for _, number, one in kind.definition.values if one is not None}

    def write(value: Any) -> int:
        found = numbers.get(value) if isinstance(value, enum.Enum) else None
        if found is None:
            raise ValueError(f"{value!a} is not a {kind.definition.name}")
        return found

    return write


def _array(value: Any) -> dict[str, Any]:
    import numpy as np

    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"elements of dtype {array.dtype} cannot be represented; only numbers can")
    little = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    return {"shape": list(array.shape), "dtype": array.dtype.name, "data": little.tobytes()}


def _matcher(kind: Kind) -> Matches:
    """Return a predicate for values of this kind, which finds the member of a union for a value."""
    match kind:
        case ScalarKind():
            return _scalar_matcher(kind)
        case TextKind():
            return lambda value: isinstance(value, kind.type)
        case TimeKind():
            return lambda value: hasattr(value, "total_seconds") if kind.is_duration else hasattr(value, "timestamp")
        case EnumKind():
            own = {one for _, _, one in kind.definition.values if one is not None}
            return lambda value: isinstance(value, enum.Enum) and value in own
        case MessageKind():
            if not kind.is_mapping:
                return lambda value: isinstance(value, kind.type)
            needed = {one.source for one in kind.definition.fields if not one.has_default}
            return lambda value: isinstance(value, Mapping) and needed <= value.keys()
        case WrapKind():
            return _matcher(kind.definition.fields[0].kind)
        case MapKind():
            return lambda value: isinstance(value, Mapping)
        case ListKind():
            return lambda value: isinstance(value, Collection) and not isinstance(value, (str, bytes, Mapping))
        case TupleKind():
            size = len(kind.definition.fields)
            return lambda value: isinstance(value, tuple) and len(value) == size
        case ArrayKind():
            return lambda value: hasattr(value, "dtype")
        case _:
            return lambda _: True


def _scalar_matcher(kind: ScalarKind) -> Matches:
    if kind.choices:
        return lambda value: value in kind.choices
    if kind.type is float:
        return lambda value: isinstance(value, (float, int)) and not isinstance(value, bool)
    if kind.type is int:
        return lambda value: isinstance(value, int) and not isinstance(value, (bool, enum.Enum))
    if kind.type is str:
        return lambda value: isinstance(value, str) and not isinstance(value, enum.Enum)
    if kind.proto == "bytes":
        return lambda value: isinstance(value, (bytes, bytearray, memoryview))
    return lambda value: isinstance(value, kind.type)
