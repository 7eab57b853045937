"""`Kind`: what an annotation becomes in protobuf; and the definitions of messages and enums.

A kind describes the content of a field. `invoker.protocols.typed.reading` turns such content into Python values, and
``writing`` turns values into content. The kind of a message refers to its `MessageDef` object, so types can be
recursive.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class ScalarKind:
    """A number, a boolean, a text or bytes.

    Attributes:
        proto: The type's name in protobuf.
        type: The class of the values.
        choices: The values that are allowed; empty: all.
    """

    proto: str
    type: type
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class TextKind:
    """A value that is written as text: a date, a UUID, a Decimal."""

    type: Any


@dataclass(frozen=True, slots=True)
class TimeKind:
    """``google.protobuf.Timestamp`` for a datetime, ``Duration`` for a timedelta."""

    is_duration: bool


@dataclass(frozen=True, slots=True)
class AnyKind:
    """Any JSON value: ``google.protobuf.Value``, or ``Struct`` if only objects are meant.

    Attributes:
        type: The annotation that the value becomes.
        is_struct: Whether only objects are meant.
    """

    type: Any
    is_struct: bool = False


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """An array: the message `Tensor` of each package, with the shape, the type and the bytes of the elements.

    Attributes:
        definition: The definition of the message.
        type: The annotation.
    """

    definition: MessageDef
    type: Any


@dataclass(frozen=True, slots=True)
class VoidKind:
    """``google.protobuf.Empty``: the kind of None, and of a value that is never read."""


@dataclass(frozen=True, slots=True)
class EnumKind:
    """A field whose values are those of an enum."""

    definition: EnumDef


@dataclass(frozen=True, slots=True)
class ListKind:
    """A repeated field.

    Attributes:
        item: The kind of its items.
        make: Makes the collection from the items.
    """

    item: Kind
    make: Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True)
class MapKind:
    """A map field: its keys and its values."""

    key: ScalarKind
    value: Kind


@dataclass(frozen=True, slots=True)
class OptionalKind:
    """A value of another kind, or None if the field is not set."""

    inner: Kind


@dataclass(frozen=True, slots=True)
class MessageKind:
    """An object with named fields.

    Attributes:
        definition: The definition of the message.
        type: The class of the values; for a TypedDict the values are dicts.
        make: Makes a value from the fields' values, by name.
        is_mapping: Whether the fields of a value are read by key; otherwise they are read by attribute.
    """

    definition: MessageDef
    type: Any
    make: Callable[[dict[str, Any]], Any]
    is_mapping: bool = False


@dataclass(frozen=True, slots=True)
class TupleKind:
    """A tuple of a fixed length: a message with a field for each place."""

    definition: MessageDef


@dataclass(frozen=True, slots=True)
class UnionKind:
    """One of several kinds: a message with a oneof.

    Attributes:
        definition: The definition of the message; its fields are in the order of the members.
        is_nullable: Whether None is one of the members; for None no field is set.
    """

    definition: MessageDef
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class WrapKind:
    """A message around a list or a map, since protobuf allows these neither in lists nor as optional fields."""

    definition: MessageDef


Kind: TypeAlias = (
    ScalarKind
    | TextKind
    | TimeKind
    | AnyKind
    | ArrayKind
    | VoidKind
    | EnumKind
    | ListKind
    | MapKind
    | OptionalKind
    | MessageKind
    | TupleKind
    | UnionKind
    | WrapKind
)


@dataclass(slots=True, eq=False)
class FieldDef:
    """The definition of a field of a protobuf message.

    Attributes:
        name: The name of the field.
        number: The number of the field.
        kind: The kind of its value.
        source: The key of the value: the name of a parameter, an attribute or a key, or a place of a tuple.
        has_default: Whether the value can be made without this field.
        has_presence: Whether the field is marked ``optional``, so that a message shows whether the field is set.
        oneof: The name of the oneof that the field belongs to; empty: none.
        is_split: Whether each element of the field is an input of its own.
        comment: A comment in the .proto file.
    """

    name: str
    number: int
    kind: Kind
    source: str = ""
    has_default: bool = False
    has_presence: bool = False
    oneof: str = ""
    is_split: bool = False
    comment: str = ""


@dataclass(slots=True, eq=False)
class MessageDef:
    """The definition of a protobuf message.

    Attributes:
        name: The name within the package.
        fields: The fields in the order of their numbers.
        comment: A comment in the .proto file.
    """

    name: str
    fields: list[FieldDef] = field(default_factory=list)
    comment: str = ""


@dataclass(slots=True, eq=False)
class EnumDef:
    """The definition of a protobuf enum.

    Attributes:
        name: The name within the package.
        values: Names, numbers and members; protobuf requires the first one, which stands for no member.
        comment: A comment in the .proto file.
    """

    name: str
    values: list[tuple[str, int, enum.Enum | None]] = field(default_factory=list)
    comment: str = ""
