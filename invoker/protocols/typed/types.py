"""`Types`: turns annotations into kinds, and collects the messages and enums of one package."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import typing
import uuid
from collections import abc, deque
from collections.abc import Callable
from typing import Any, Final

from invoker.author.spec import IGNORED
from invoker.author.spelling import render
from invoker.codecs.annotations import is_array
from invoker.codecs.members import Members, doc_of, members_of
from invoker.codecs.typed import adapter, is_any, leaves, members
from invoker.fields.aliases import is_typed_dict
from invoker.protocols.typed.kinds import (
    AnyKind,
    ArrayKind,
    EnumDef,
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
from invoker.protocols.typed.naming import Names, camel, field_word, json_name, snake, upper

_SCALARS: Final[dict[Any, str]] = {int: "int64", float: "double", bool: "bool", str: "string", bytes: "bytes"}
_BYTES: Final = (bytearray, memoryview)
_CLASSES: Final[dict[Any, Kind]] = {
    **{cls: ScalarKind(proto, cls) for cls, proto in _SCALARS.items()},
    **{cls: ScalarKind("bytes", cls) for cls in _BYTES},
    **{cls: TextKind(cls) for cls in (dt.date, dt.time, decimal.Decimal, uuid.UUID)},
    dt.datetime: TimeKind(is_duration=False),
    dt.timedelta: TimeKind(is_duration=True),
    type(None): VoidKind(),
}
_LISTS: Final[dict[Any, Callable[[list[Any]], Any]]] = {
    list: list, tuple: tuple, set: set, frozenset: frozenset, deque: deque,
    abc.Sequence: list, abc.MutableSequence: list, abc.Collection: list, abc.Iterable: list,
    abc.Set: set, abc.MutableSet: set,
}  # fmt: skip
_MAPS: Final = (dict, abc.Mapping, abc.MutableMapping)
_KEYS: Final = (str, int, bool)
_DEEPEST: Final = 50


class Types:
    """The messages and enums of a package.

    Args:
        taken: Names that messages and enums must not get.

    Attributes:
        messages: The messages in the order in which they were met.
        enums: The enums in the order in which they were met.
    """

    def __init__(self, *taken: str) -> None:
        self.messages: list[MessageDef] = []
        self.enums: list[EnumDef] = []
        self._names = Names(*taken)
        self._words = Names()
        self._known: dict[Any, Kind] = {}
        self._shapes: list[tuple[str, tuple[Kind, ...], MessageDef]] = []
        self._depth = 0

    def message(self, name: str, comment: str = "") -> MessageDef:
        """Make a message with this name, which the caller has reserved."""
        made = MessageDef(name, comment=comment)
        self.messages.append(made)
        return made

    def kind(self, type_: Any) -> Kind:
        """The kind of the field for an annotation."""
        every = members(type_)
        if len(every) > 1:
            return self._union(type_)
        (bare,) = every
        if bare is IGNORED:
            return VoidKind()
        if is_any(bare) or self._depth > _DEEPEST:  # an alias may refer to itself without end
            return AnyKind(type_)
        self._depth += 1
        try:
            return self._one(bare, type_)
        finally:
            self._depth -= 1

    def singular(self, kind: Kind) -> Kind:
        """The kind itself; for a list or a map, the kind of a message around it, since protobuf allows only that."""
        if not isinstance(kind, (ListKind, MapKind)):
            return kind
        word = self._word(kind)
        return WrapKind(self._shaped(camel(word), (kind,), lambda: [FieldDef("items", 1, kind)]))

    def _one(self, bare: Any, type_: Any) -> Kind:
        origin, args = typing.get_origin(bare), typing.get_args(bare)
        if is_array(bare):
            return self._array(type_)
        if origin is typing.Literal:
            return self._literal(args, bare)
        if (origin or bare) in _MAPS:
            return self._map(args, bare)
        if origin is tuple and args and ... not in args:
            return self._tuple(args)
        if (make := _LISTS.get(origin or bare)) is not None:
            return ListKind(self._item(args[0] if args else Any), make)
        return self._class(bare, origin or bare, type_)

    def _class(self, bare: Any, cls: Any, type_: Any) -> Kind:
        if not isinstance(cls, type) or cls in _CLASSES:
            return _CLASSES.get(cls) or AnyKind(type_)
        if bare in self._known:
            return self._known[bare]
        if issubclass(cls, enum.Enum):
            return self._remember(bare, EnumKind(self._enum(cls)))
        try:
            found = members_of(cls, typing.get_args(bare))
            make = _maker(bare, cls, found) if found is not None else None
        except (NameError, TypeError):  # its fields, or the arguments of its constructor, are not known
            return AnyKind(type_)
        return AnyKind(type_) if found is None or make is None else self._structure(bare, cls, found, make)

    def _remember(self, type_: Any, kind: Kind) -> Kind:
        self._known[type_] = kind
        return kind

    def _item(self, type_: Any) -> Kind:
        """The kind of the items of a list or a map; an item that may be None becomes a ``google.protobuf.Value``."""
        if any(one is type(None) for one in members(type_)):
            return AnyKind(type_)
        return self.singular(self.kind(type_))

    def _map(self, args: tuple[Any, ...], bare: Any) -> Kind:
        if len(args) != 2:
            return AnyKind(bare, is_struct=True)
        keys = members(args[0])
        if is_any(args[1]) or len(keys) != 1 or keys[0] not in _KEYS:
            return AnyKind(bare, is_struct=True)
        return MapKind(ScalarKind(_SCALARS[keys[0]], keys[0]), self._item(args[1]))

    def _literal(self, args: tuple[Any, ...], bare: Any) -> Kind:
        kinds = {type(one) for one in args}
        if len(kinds) == 1 and (cls := kinds.pop()) in (str, int, bool, bytes):
            return ScalarKind(_SCALARS[cls], cls, args)
        return AnyKind(bare)

    def _tuple(self, args: tuple[Any, ...]) -> Kind:
        kinds = [self.kind(one) for one in args]
        name = camel("_".join(self._word(one) for one in kinds)) + "Tuple"

        def fields() -> list[FieldDef]:
            return [
                self._field(f"item_{place}", place, kind, source=str(place - 1)) for place, kind in enumerate(kinds, 1)
            ]

        return TupleKind(self._shaped(name, tuple(kinds), fields))

    def _union(self, type_: Any) -> Kind:
        rest = [one for one in leaves(type_) if members(one) != (type(None),)]
        is_nullable = len(rest) < len(leaves(type_))
        if len(rest) == 1:
            return OptionalKind(self.singular(self.kind(rest[0])))
        if any(is_any(one) for one in rest):
            return AnyKind(type_)
        kinds = [self.singular(self.kind(one)) for one in rest]
        if any(isinstance(one, VoidKind) for one in kinds):
            return AnyKind(type_)
        words = [self._word(one) for one in kinds]
        names = Names(key=json_name)

        def fields() -> list[FieldDef]:
            return [
                FieldDef(names.give(_member(kind, word)), place, kind, has_presence=True, oneof="kind")
                for place, (kind, word) in enumerate(zip(kinds, words, strict=True), 1)
            ]

        return UnionKind(self._shaped("Or".join(camel(one) for one in words), tuple(kinds), fields), is_nullable)

    def _array(self, type_: Any) -> Kind:
        def fields() -> list[FieldDef]:
            return [
                FieldDef("shape", 1, ListKind(ScalarKind("int64", int), list), comment="Empty for a single number."),
                FieldDef("dtype", 2, ScalarKind("string", str), comment="As numpy names it: float32, int64, bool."),
                FieldDef("data", 3, ScalarKind("bytes", bytes), comment="Little-endian, the last index runs fastest."),
            ]

        made = self._shaped("Tensor", (), fields)
        made.comment = "An array of numbers."
        return ArrayKind(made, type_)

    def _enum(self, cls: type[enum.Enum]) -> EnumDef:
        made = EnumDef(self._names.give(camel(cls.__name__)), comment=doc_of(cls))
        prefix = upper(made.name)
        made.values.append((self._words.give(f"{prefix}_UNSPECIFIED"), 0, None))
        for number, member in enumerate(cls, 1):
            made.values.append((self._words.give(f"{prefix}_{upper(member.name)}"), number, member))
        self.enums.append(made)
        return made

    def _structure(self, bare: Any, cls: type, found: Members, make: Callable[[dict[str, Any]], Any]) -> Kind:
        name = camel(render(bare)) if typing.get_args(bare) else camel(cls.__name__)
        definition = self.message(self._names.give(name), found.doc)
        kind = self._remember(bare, MessageKind(definition, cls, make, is_typed_dict(cls)))
        names = Names(key=json_name)
        for number, one in enumerate(found.properties, 1):
            field = names.give(field_word(one.own)), number, self.kind(one.annotation)
            definition.fields.append(self._field(*field, source=one.own, has_default=not one.is_required))
        return kind

    def _field(self, name: str, number: int, kind: Kind, *, source: str, has_default: bool = False) -> FieldDef:
        has_presence = has_default and isinstance(kind, (ScalarKind, TextKind, EnumKind))
        return FieldDef(name, number, kind, source=source, has_default=has_default, has_presence=has_presence)

    def _shaped(self, name: str, kinds: tuple[Kind, ...], fields: Callable[[], list[FieldDef]]) -> MessageDef:
        """The message with fields of exactly these kinds; it is made once for each package."""
        for known, of, found in self._shapes:
            if known == name and of == kinds:
                return found
        made = self.message(self._names.give(name))
        self._shapes.append((name, kinds, made))
        made.fields = fields()
        return made

    def _word(self, kind: Kind) -> str:
        """A word that stands for this kind, and no other, in the names of messages."""
        match kind:
            case ScalarKind():
                return _proto_word(kind)
            case EnumKind() | MessageKind() | TupleKind() | UnionKind() | WrapKind() | ArrayKind():
                return snake(kind.definition.name)
            case ListKind():
                return f"{self._word(kind.item)}_{'list' if kind.make is list else kind.make.__name__}"
            case MapKind():
                return f"{self._word(kind.key)}_{self._word(kind.value)}_map"
            case OptionalKind():
                return f"optional_{self._word(kind.inner)}"
            case TimeKind():
                return "duration" if kind.is_duration else "timestamp"
            case TextKind():
                return snake(kind.type.__name__)
            case AnyKind():
                return "struct" if kind.is_struct else "value"
            case VoidKind():
                return "empty"


def _proto_word(kind: ScalarKind) -> str:
    word = kind.proto if kind.type not in _BYTES else kind.type.__name__
    return word if not kind.choices else f"{word}_{'_'.join(snake(str(one)) for one in kind.choices)}"


def _member(kind: Kind, word: str) -> str:
    return f"{kind.proto}_value" if isinstance(kind, ScalarKind) else word


def _maker(bare: Any, cls: type, found: Members) -> Callable[[dict[str, Any]], Any]:
    """A function that makes a value from the values of its fields."""
    if is_typed_dict(cls):
        return dict
    if not hasattr(cls, "__pydantic_fields__"):
        names = {one.own: one.parameter for one in found.properties}
        return lambda given: cls(**{names[name]: value for name, value in given.items()})
    validate, aliases = adapter(bare).validate_python, {one.own: one.name for one in found.properties}
    return lambda given: validate({aliases[name]: value for name, value in given.items()})
