"""`Schemas`: the schemas of annotations, with shared definitions.

Theory. An annotation is reduced to the types of JSON: objects, arrays, text, numbers, true, false and null. Classes
with fields and named types become definitions, so that they are written once and may be recursive; each type has one
definition, and two types with the same name get different names. Pydantic describes its own classes. A type that cannot
be described has the schema ``{}``, which every value fits, with its spelling in Python.

Bytes are base64 within a structure. If a whole input or output is bytes, the payload is sent as it is, which JSON
Schema cannot express; descriptions of a protocol have to add that.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import inspect
import json
import re
import typing
import uuid
from collections import abc
from typing import Any, Final, TypeAlias

import msgspec

from invoker.codecs.members import Members, doc_of, members_of
from invoker.codecs.parts import Part
from invoker.codecs.refusal import spell
from invoker.codecs.schema.arrays import array_schema, number_schema
from invoker.codecs.schema.fitting import fits
from invoker.codecs.schema.foreign import REF, pydantic_schema, reached
from invoker.codecs.schema.marks import bounded, marked
from invoker.codecs.schema.plain import NOTHING, plain_value
from invoker.codecs.standins import is_odd
from invoker.codecs.typed import BYTES_LIKE, leaves
from invoker.fields.aliases import bare, stood_for, unaliased
from invoker.fields.constraints import UNBOUND, Constraints

Schema: TypeAlias = dict[str, Any]

DEFINITIONS: Final = REF
"""The prefix of references in a schema that contains its own definitions."""

_DEEPEST: Final = 64
_EMPTY: Final = inspect.Parameter.empty
_QUALIFIERS: Final = (
    *(typing.Required, typing.NotRequired, typing.Final, typing.ClassVar),
    getattr(typing, "ReadOnly", typing.Required),  # since Python 3.13
)
_BYTES: Final = {"type": "string", "contentEncoding": "base64", "contentMediaType": "application/octet-stream"}
_SCALARS: Final[dict[Any, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    dt.datetime: {"type": "string", "format": "date-time"},
    dt.date: {"type": "string", "format": "date"},
    dt.time: {"type": "string", "format": "time"},
    dt.timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    decimal.Decimal: {"type": "string", "format": "decimal"},
    msgspec.Raw: {},
    Part: _BYTES,
    **dict.fromkeys(BYTES_LIKE, _BYTES),
}
_SETS: Final = (set, frozenset, abc.Set)
_LISTS: Final = (list, tuple, collections.deque, abc.Collection, abc.Iterable, *_SETS)


class Schemas:
    """Schemas that share definitions.

    Args:
        prefix: The beginning of each reference, before the name of a definition.

    Attributes:
        definitions: The definitions by name; complete as soon as `of` has returned.
    """

    def __init__(self, prefix: str = DEFINITIONS) -> None:
        self.definitions: dict[str, Schema] = {}
        self._prefix = prefix
        self._names: dict[Any, str] = {}
        self._gives = False
        self._depth = 0

    def of(self, annotation: Any, said: Constraints = UNBOUND, *, gives: bool = False) -> Schema:
        """The schema of an annotation; it never raises.

        Args:
            annotation: The annotation of a value.
            said: The constraints of the annotation that were read already.
            gives: Whether the value is a result of a function; otherwise it is an argument.
        """
        self._gives, self._depth = gives, 0
        return bounded(self._walked(annotation), said)

    def fits(self, schema: Schema, value: Any) -> bool:
        """Whether a plain value fits one of these schemas, as far as `fitting` can tell."""
        return fits(schema, value, self._definition)

    def add(self, name: str, schema: Schema) -> Schema:
        """Define a schema that belongs to no type; returns the reference to it."""
        key = (name, json.dumps(schema, sort_keys=True))
        if key not in self._names:
            self.definitions[self._named(key, name)] = schema
        return self._ref(key)

    def _walked(self, annotation: Any) -> Schema:
        """The schema of an annotation of any kind."""
        self._depth += 1
        try:
            return _unknown(annotation) if self._depth > _DEEPEST else self._walk(annotation)
        except Exception:  # noqa: BLE001 - an annotation is any expression, and its classes run code of the author
            return _unknown(annotation)
        finally:
            self._depth -= 1

    def _walk(self, annotation: Any) -> Schema:
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if (array := array_schema(annotation)) is not None:
            return array
        if annotation is Any or annotation is object or annotation is _EMPTY:
            return {}
        if origin is typing.Annotated:
            return self._annotated(annotation)
        if annotation is None or isinstance(annotation, typing.NewType):
            return self._walked(bare(annotation))
        if isinstance(annotation, typing.TypeVar):
            return self._walked(stood_for(annotation))
        if "TypeAliasType" in (type(annotation).__name__, type(origin).__name__):
            return self._alias(annotation, origin, arguments)
        if origin in _QUALIFIERS:
            return self._walked(arguments[0])
        if origin is typing.Literal:
            return self._choice(arguments)
        if len(several := leaves(annotation)) > 1:
            return self._union(several)
        return self._of_class(annotation, origin or annotation, arguments)

    def _of_class(self, annotation: Any, cls: Any, arguments: tuple[Any, ...]) -> Schema:
        if not isinstance(cls, type):
            return _unknown(annotation)
        if issubclass(cls, enum.Enum):
            return self._define(cls, cls.__name__, lambda: {"title": cls.__name__, **self._enum(cls)})
        if hasattr(cls, "__pydantic_core_schema__") or hasattr(cls, "__get_pydantic_core_schema__"):
            return self._foreign(annotation, cls.__name__)
        found = members_of(cls, arguments)
        if found is not None:
            return self._define(annotation, _name_of(cls, arguments), lambda: self._record(cls, found))
        if cls is tuple and arguments and arguments[-1] is not ...:
            each = [self._walked(one) for one in arguments if one != ()]
            # `items: false` would mean no more than maxItems, and generators of clients do not support it
            return {"type": "array", "prefixItems": each, **_exactly(len(each))}
        if issubclass(cls, abc.Mapping):
            inner = (int,) if issubclass(cls, collections.Counter) else arguments[1:2]
            value = self._walked(inner[0]) if inner else {}
            return {"type": "object", **({"additionalProperties": value} if value else {})}
        if (base := next((one for one in cls.__mro__ if one in _SCALARS), None)) is not None:
            return dict(_SCALARS[base])
        if cls.__module__ == "numpy" and (number := number_schema(cls)):
            return number
        if issubclass(cls, _LISTS):
            unique = {"uniqueItems": True} if issubclass(cls, _SETS) else {}
            # generators of clients do not support an array without items either
            return {"type": "array", "items": self._walked(arguments[0]) if arguments else {}, **unique}
        return _unknown(annotation)

    def _annotated(self, annotation: Any) -> Schema:
        inner, marks = annotation.__origin__, annotation.__metadata__
        if any(type(one).__module__.startswith("pydantic.") for one in marks):
            try:
                return self._foreign(annotation, "")
            except Exception:  # noqa: BLE001, S110 - the known constraints are then read without pydantic
                pass
        return marked(self._walked(inner), marks)

    def _alias(self, annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> Schema:
        """The schema of a type alias, which may refer to itself."""
        alias = annotation if origin is None else origin
        return self._define(annotation, _name_of(alias, arguments), lambda: self._walked(unaliased(annotation)))

    def _union(self, several: tuple[Any, ...]) -> Schema:
        each: list[Schema] = []
        for one in several:
            schema = self._walked(one)
            if schema not in each:
                each.append(schema)
        return each[0] if len(each) == 1 else {"anyOf": each}

    def _choice(self, values: tuple[Any, ...]) -> Schema:
        plain = [plain_value(one) for one in values]
        return _typed({"enum": plain} if len(plain) > 1 else {"const": plain[0]}, plain)

    def _enum(self, cls: type[enum.Enum]) -> Schema:
        if issubclass(cls, enum.Flag):
            return {"type": "integer"}
        values = [plain_value(one.value) for one in cls]
        if is_odd(cls):  # callers name a member, or give its value if that has a form in JSON
            names = list(cls.__members__)
            values = [*names, *(one for one in values if one is not NOTHING and one not in names)]
        if not values or NOTHING in values:
            return _unknown(cls)
        said = {"description": doc} if (doc := doc_of(cls)) else {}
        return {**said, **_typed({"enum": values}, values)}

    def _record(self, cls: Any, found: Members) -> Schema:
        made: Schema = {"title": cls.__name__} | ({"description": found.doc} if found.doc else {})
        each = {}
        for one in found.properties:
            each[one.name] = self._walked(one.annotation)
            if (default := plain_value(one.default)) is not NOTHING and self.fits(each[one.name], default):
                each[one.name] = {**each[one.name], "default": default}
        required = [one.name for one in found.properties if one.is_required]
        if found.tag is not None:
            each = {found.tag[0]: _typed({"const": found.tag[1]}, [found.tag[1]]), **each}
            required = [found.tag[0], *required]
        if found.is_array:
            made |= {"type": "array", "prefixItems": list(each.values()), "minItems": len(required)}
            return made if _is_struct(cls) else {**made, "maxItems": len(each)}
        made |= {"type": "object", "properties": each}
        if required:
            made["required"] = required
        return {**made, "additionalProperties": False} if found.is_closed else made

    def _foreign(self, annotation: Any, name: str) -> Schema:
        """The schema that pydantic makes, with its definitions added to ours."""
        schema, definitions = pydantic_schema(annotation, gives=self._gives)
        if name and schema.get("$ref", "") != REF + name and "properties" in schema:
            definitions = {**definitions, name: schema}
            schema = {"$ref": REF + name}
        keys = {
            one: (one, json.dumps([each, reached(each, definitions)], sort_keys=True))
            for one, each in definitions.items()
        }
        new = [one for one, key in keys.items() if key not in self._names]
        names = {one: self._names[key] if key in self._names else self._named(key, one) for one, key in keys.items()}
        for one in new:
            self.definitions[names[one]] = self._renamed(definitions[one], names)
        for one in new:
            self._drop_defaults(self.definitions[names[one]])
        made: Schema = self._renamed(schema, names)
        return made

    def _renamed(self, schema: Any, names: dict[str, str]) -> Any:
        if isinstance(schema, list):
            return [self._renamed(one, names) for one in schema]
        if not isinstance(schema, dict):
            return schema
        made = {}
        for word, one in schema.items():
            is_ref = isinstance(one, str) and one.startswith(REF)
            made[word] = self._prefix + names[one[len(REF) :]] if is_ref else self._renamed(one, names)
        return made

    def _drop_defaults(self, schema: Schema) -> None:
        """Drop defaults that do not fit, since pydantic writes them unchecked."""
        for one in schema.get("properties", {}).values():
            if isinstance(one, dict) and "default" in one and not self.fits(one, one["default"]):
                del one["default"]

    def _definition(self, ref: str) -> Schema:
        return self.definitions.get(ref.removeprefix(self._prefix), {})

    def _define(self, key: Any, name: str, make: typing.Callable[[], Schema]) -> Schema:
        """A reference to a definition that is made once; a recursive use gets the same reference."""
        if key not in self._names:
            own = self._named(key, name)
            try:
                self.definitions[own] = make()
            except Exception:  # noqa: BLE001 - as `_walked`
                self.definitions[own] = _unknown(key)
        return self._ref(key)

    def _named(self, key: Any, name: str) -> str:
        """A unique name for a new definition."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_") or "Type"
        own, count = plain, 1
        while own in self.definitions:
            count += 1
            own = f"{plain}_{count}"
        self._names[key] = own
        self.definitions[own] = {}
        return own

    def _ref(self, key: Any) -> Schema:
        return {"$ref": self._prefix + self._names[key]}


def schema_of(annotation: Any, said: Constraints = UNBOUND, *, gives: bool = False) -> Schema:
    """The schema of an annotation, with its definitions inside; it never raises.

    Args:
        annotation: The annotation of a value.
        said: The constraints of the annotation that were read already.
        gives: Whether the value is a result of a function; otherwise it is an argument.
    """
    schemas = Schemas()
    made = schemas.of(annotation, said, gives=gives)
    return {**made, "$defs": schemas.definitions} if schemas.definitions else made


def _unknown(annotation: Any) -> Schema:
    """The schema that accepts all values."""
    try:
        return {"x-python": spell(annotation)}
    except Exception:  # noqa: BLE001 - the name of the class cannot be written
        return {"x-python": type(annotation).__name__}


def _typed(schema: Schema, values: list[Any]) -> Schema:
    """The schema of a choice, with the type that all of its values have, if they have one."""
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    kinds = {type(one) for one in values}
    known = names.get(kinds.pop()) if len(kinds) == 1 else None
    return {"type": known, **schema} if known else schema


def _exactly(count: int) -> Schema:
    return {"minItems": count, "maxItems": count}


def _is_struct(cls: Any) -> bool:
    """Whether a class is a Struct, which accepts arrays with more elements than it has fields."""
    return hasattr(cls, "__struct_config__") and not cls.__struct_config__.forbid_unknown_fields


def _name_of(cls: Any, arguments: tuple[Any, ...]) -> str:
    inside = "_".join(spell(one) for one in arguments)
    return f"{cls.__name__}_{inside}" if inside else str(cls.__name__)
