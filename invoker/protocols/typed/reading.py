"""Turns the fields of messages into Python values, by a closure for each field, which is built on first use.

A closure raises ValueError or TypeError for a field that cannot be converted; its caller translates that exception.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from invoker.codecs.collisions import checking, refuse_alike
from invoker.codecs.leftout import completed
from invoker.codecs.standins import understood
from invoker.codecs.typed import collisions_of, dec_hook, is_any, per_member
from invoker.codecs.wholes import REFUSED, retried
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
from invoker.protocols.typed.text import is_optional
from invoker.protocols.typed.values import from_duration, from_timestamp, plain, plain_struct

Read: TypeAlias = Callable[[Any], Any]
"""Turns the content of a field into a Python value."""

Get: TypeAlias = Callable[[Any], Any]
"""Takes a message and turns one field of it into a Python value; `MISSING` if the default is to be used."""

MISSING: Final = object()
_REPEATED: Final = (ListKind, MapKind)
_DTYPES: Final = "biufc"


class Readers:
    """The closures of one schema; those of a message are made only once, so types may be recursive."""

    def __init__(self) -> None:
        self._messages: dict[int, list[tuple[str, Get]]] = {}
        self._makers: dict[type, Callable[[Any], Read]] = {
            ScalarKind: _scalar,
            TextKind: _text,
            TimeKind: _time,
            AnyKind: _anything,
            ArrayKind: _array,
            VoidKind: lambda _: _nothing,
            EnumKind: _member,
            OptionalKind: lambda kind: self.read(kind.inner),
            ListKind: self._list,
            MapKind: self._map,
            WrapKind: self._wrap,
            TupleKind: self._tuple,
            UnionKind: self._union,
            MessageKind: self._message,
        }

    def get(self, field: FieldDef) -> Get:
        """Make a closure that reads a field of a message."""
        name, kind = field.name, field.kind
        read, has_default = self.read(kind), field.has_default
        if isinstance(kind, VoidKind):
            return _nothing
        if isinstance(kind, _REPEATED):

            def get_repeated(message: Any) -> Any:
                held = getattr(message, name)
                return MISSING if has_default and not held else read(held)

            return get_repeated
        is_message = not isinstance(_inner(kind), (ScalarKind, TextKind, EnumKind))
        if not (is_message or is_optional(field) or field.oneof):
            return lambda message: read(getattr(message, name))
        is_nullable = isinstance(kind, OptionalKind) or (isinstance(kind, UnionKind) and kind.is_nullable)

        def get_present(message: Any) -> Any:
            if message.HasField(name):
                return read(getattr(message, name))
            if has_default:
                return MISSING
            if is_nullable:
                return None
            raise ValueError(f"the field '{name}' is missing")

        return get_present

    def element(self, field: FieldDef) -> Get:
        """Make a closure that reads a repeated field or a map of exactly one item, and returns this item."""
        name, kind = field.name, field.kind
        if isinstance(kind, MapKind):
            value = self.read(kind.value)
            return lambda message: value(next(iter(getattr(message, name).values())))
        assert isinstance(kind, ListKind), "the schema gives such a field one of these kinds"
        item = self.read(kind.item)
        return lambda message: item(getattr(message, name)[0])

    def read(self, kind: Kind) -> Read:
        """Make a closure that turns the content of a field of this kind into a Python value."""
        return self._makers[type(kind)](kind)

    def _wrap(self, kind: WrapKind) -> Read:
        inner = self.read(kind.definition.fields[0].kind)
        return lambda message: inner(message.items)

    def _list(self, kind: ListKind) -> Read:
        make, item = kind.make, self.read(kind.item)
        if make in (set, frozenset):

            def read(held: Any) -> Any:
                items = [item(one) for one in held]
                refuse_alike(items)
                return make(items)

            return read
        if item is _as_it_is:
            return make
        return lambda held: make([item(one) for one in held])

    def _map(self, kind: MapKind) -> Read:
        value = self.read(kind.value)
        if value is _as_it_is:
            return dict
        return lambda held: {key: value(one) for key, one in held.items()}

    def _fields(self, definition: MessageDef) -> list[tuple[str, Get]]:
        """Return the source and the closure of each field.

        The list is returned first and filled afterwards, since a field may hold the message itself.
        """
        known = self._messages.get(id(definition))
        if known is None:
            known = self._messages[id(definition)] = []
            known += [(one.source, self.get(one)) for one in definition.fields]
        return known

    def _message(self, kind: MessageKind) -> Read:
        fields, make = self._fields(kind.definition), kind.make

        def read(message: Any) -> Any:
            given = {}
            for source, get in fields:
                value = get(message)
                if value is not MISSING:
                    given[source] = value
            return make(given)

        return read

    def _tuple(self, kind: TupleKind) -> Read:
        fields = self._fields(kind.definition)
        return lambda message: tuple([get(message) for _, get in fields])

    def _union(self, kind: UnionKind) -> Read:
        fields, is_nullable = kind.definition.fields, kind.is_nullable
        reads = {one.name: self.read(one.kind) for one in fields}

        def read(message: Any) -> Any:
            which = message.WhichOneof("kind")
            if which is None:
                if is_nullable:
                    return None
                raise ValueError(f"none of {', '.join(one.name for one in fields)} is set")
            return reads[which](getattr(message, which))

        return read


def _inner(kind: Kind) -> Kind:
    return kind.inner if isinstance(kind, OptionalKind) else kind


def _as_it_is(held: Any) -> Any:
    return held


def _nothing(_: Any) -> None:
    return None


def _text(kind: TextKind) -> Read:
    return lambda text: msgspec.convert(text, kind.type)


def _time(kind: TimeKind) -> Read:
    return from_duration if kind.is_duration else from_timestamp


def _scalar(kind: ScalarKind) -> Read:
    if kind.type in (bytearray, memoryview):
        return kind.type
    if not kind.choices:
        return _as_it_is
    choices = kind.choices

    def choose(held: Any) -> Any:
        if held not in choices:
            raise ValueError(f"expected one of {', '.join(map(repr, choices))}, got {held!a}")
        return held

    return choose


def _member(kind: EnumKind) -> Read:
    members: dict[int, enum.Enum] = {
        number: one for _, number, one in kind.definition.values if isinstance(one, enum.Enum)
    }
    name = kind.definition.name

    def read(number: int) -> enum.Enum:
        found = members.get(number)
        if found is None:
            raise ValueError(f"{name} is not set" if number == 0 else f"{number} is not a value of {name}")
        return found

    return read


def _anything(kind: AnyKind) -> Read:
    see = plain_struct if kind.is_struct else plain
    if is_any(kind.type):
        return see

    def make(type_: Any) -> Read:
        msgspec.json.Decoder(type_, dec_hook=dec_hook)  # raises for an annotation that cannot be decoded

        def convert(given: Any) -> Any:
            return msgspec.convert(given, type_, str_keys=True, dec_hook=dec_hook)

        def convert_numbers(given: Any) -> Any:
            try:
                return convert(given)
            except msgspec.ValidationError:
                if (made := retried(convert, given)) is REFUSED:
                    raise
                return made

        return completed(convert_numbers, type_)

    convert = checking(per_member(understood(kind.type), make), _as_it_is, collisions_of(kind.type))
    return lambda held: convert(see(held))


def _array(kind: ArrayKind) -> Read:
    from invoker.tensors import array_type
    from invoker.tensors.arrays import fitted

    wanted = array_type(kind.type)

    def read(message: Any) -> Any:
        import numpy as np

        dtype = np.dtype(message.dtype)
        if dtype.kind not in _DTYPES:
            raise ValueError(f"elements of dtype {message.dtype!a} are refused; only numbers can be sent")
        made = np.frombuffer(message.data, dtype.newbyteorder("<"))
        made = made.reshape(tuple(message.shape)).astype(dtype.newbyteorder("="), copy=False)
        return made if wanted is None else fitted(made, wanted)

    return read
