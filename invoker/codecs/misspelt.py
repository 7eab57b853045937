"""`spelling_of`: refuses a key of an object that is similar to a missing field, instead of ignoring it (R-171).

Theory. msgspec and pydantic ignore the keys that a class does not know, so ``{"nmae": "a"}`` would be an object without
a name. The check for unknown keys must be fast. For a dict its keys are compared. A payload is decoded to a *twin*, a
Struct with the same field names that forbids all other keys and does not decode the fields; for a small object this
takes a quarter of a microsecond. For a large list of numbers this would add a third to the time of decoding, so a large
text is checked by its strings, if these are few. Only if there are unknown keys are they compared with the missing
fields.

Only the object that is the whole value of a parameter is checked, not the objects in it: a decoder would have to walk
each of these twice. Classes that forbid unknown fields, or keep them, are not affected.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec

from invoker.codecs.annotations import is_structured, members
from invoker.fields.aliases import hints_of
from invoker.fields.spelling import misspelt

LARGE_BYTES: Final = 8 * 1024
"""Texts of at least this many bytes are checked by their strings, since they may have few."""

_FEW: Final = 64
_RAW: Final = msgspec.Raw(b"")
_KEYS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Spelling:
    """The fields of the classes that an annotation names.

    Args:
        classes: The keys that an object may have, by the class of the values (dict for a TypedDict).

    Attributes:
        classes: The names by class.
        known: The names of all classes.
    """

    def __init__(self, classes: dict[type, frozenset[str]]) -> None:
        self.classes = classes
        self.known = frozenset().union(*classes.values())
        self._longest = max(map(len, self.known)) * 4 + 1
        self._keys = frozenset(one.encode("utf-8", "surrogatepass") for one in self.known)

    @cached_property
    def json(self) -> Callable[[Any], Any]:
        """A function that raises ``msgspec.ValidationError`` for the JSON of an object with an unknown key."""
        return msgspec.json.Decoder(self._twin).decode

    def json_large(self, payload: bytes) -> None:
        """Check keys as `json` does, for a text of at least `LARGE_BYTES`."""
        end, is_plain = -1, b"\\" not in payload
        for _ in range(_FEW if is_plain else 0):
            if (start := payload.find(b'"', end + 1)) < 0:
                return
            end = payload.find(b'"', start + 1)
            is_value = payload[end + 1 : end + _FEW].lstrip()[:1] not in (b":", b"")
            if not is_value and (end - start > self._longest or payload[start + 1 : end] not in self._keys):
                break
        self.json(payload)

    @cached_property
    def msgpack(self) -> Callable[[Any], Any]:
        """Check keys as `json` does, for MessagePack."""
        return msgspec.msgpack.Decoder(self._twin).decode

    @cached_property
    def _twin(self) -> type:
        names = {f"f{number}": name for number, name in enumerate(sorted(self.known))}
        fields = [(one, msgspec.Raw, _RAW) for one in names]
        return msgspec.defstruct("Twin", fields, rename=names, forbid_unknown_fields=True)

    def check(self, made: Any, keys: Iterable[Any]) -> None:
        """Check the keys of an object that became a value.

        Raises:
            msgspec.ValidationError: A key is nearly a field that is not given.
        """
        if (names := self.classes.get(type(made))) is not None and (found := self._found(names, keys)):
            raise msgspec.ValidationError(found)

    def check_json(self, made: Any, payload: Any) -> None:
        """Check keys as `check` does, for the JSON of the object."""
        self.check(made, _KEYS(payload))

    def checked(self, parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A parser of JSON that checks the keys."""

        def parse_and_check(payload: Any) -> Any:
            try:
                made = parse(payload)
            except ValueError:
                if cause := self.cause_json(payload):
                    raise msgspec.ValidationError(cause) from None
                raise
            if type(made) in self.classes:
                self.check_json(made, payload)
            return made

        return parse_and_check

    def converting(self, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A converter from plain values to typed ones that also checks their keys."""

        def convert_and_check(value: Any) -> Any:
            if type(value) is not dict or value.keys() <= self.known:
                return convert(value)
            try:
                made = convert(value)
            except ValueError:
                if cause := self.cause(value):
                    raise msgspec.ValidationError(cause) from None
                raise
            self.check(made, value)
            return made

        return convert_and_check

    def cause(self, keys: Iterable[Any]) -> str:
        """The misspelt field of an object that could not be converted.

        Empty if no field is misspelt, or several classes are possible.

        Empty if there is none, or there are several classes.
        """
        return self._found(self.known, keys) if len(self.classes) == 1 else ""

    def cause_json(self, payload: Any) -> str:
        """The misspelt field as `cause` finds it, for JSON that may be an object."""
        try:
            return self.cause(_KEYS(payload))
        except (ValueError, RecursionError):
            return ""

    @staticmethod
    def _found(names: frozenset[str], keys: Iterable[Any]) -> str:
        given = [one for one in keys if isinstance(one, str)]
        found = misspelt([one for one in given if one not in names], sorted(names.difference(given)))
        return f"it has {found[0]!a}, which is not a field; did you mean '{found[1]}'?" if found else ""


def spelling_of(type_: Any) -> Spelling | None:
    """The spelling check for objects of an annotation; None if any key is allowed, or there are no fields."""
    try:
        return _cached(type_)
    except TypeError:  # the annotation cannot be hashed
        return _spelling(type_)


def _spelling(type_: Any) -> Spelling | None:
    classes: dict[type, frozenset[str]] = {}
    for one in members(type_):
        cls = typing.get_origin(one) or one
        if not isinstance(cls, type):
            continue
        is_dict = issubclass(cls, dict)
        if not is_structured(cls):
            if is_dict:
                return None  # the class takes any key
            continue
        names = _names(cls)
        if names is None or (is_dict and dict in classes):
            return None
        classes[dict if is_dict else cls] = names
    return Spelling(classes) if any(classes.values()) else None


_cached = lru_cache(maxsize=512)(_spelling)


def _names(cls: Any) -> frozenset[str] | None:
    """The keys that objects of a class may have; None: any keys, or the values are no objects."""
    if hasattr(cls, "__pydantic_fields__"):
        return _names_of_model(cls)
    if hasattr(cls, "__struct_fields__"):
        config = cls.__struct_config__
        tag = (config.tag_field,) if config.tag_field else ()
        return None if config.array_like else frozenset((*cls.__struct_encode_fields__, *tag))
    if dataclasses.is_dataclass(cls):
        return frozenset(one.name for one in dataclasses.fields(cls))
    if hasattr(cls, "__attrs_attrs__"):
        return frozenset(one.name for one in cls.__attrs_attrs__)
    try:
        return frozenset(hints_of(cls))
    except (NameError, TypeError):
        return None


def _names_of_model(cls: Any) -> frozenset[str] | None:
    config = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    validators = getattr(cls.__pydantic_decorators__, "model_validators", {})
    if config.get("extra") == "allow" or any(one.info.mode != "after" for one in validators.values()):
        return None  # a validator that sees the object before its fields are read may take any key
    if getattr(cls, "__pydantic_root_model__", False):
        return None
    names: set[str] = set()
    for name, field in cls.__pydantic_fields__.items():
        alias = field.validation_alias
        if alias is None or config.get("populate_by_name") or config.get("validate_by_name"):
            names.add(name)
        for one in getattr(alias, "choices", (alias,)):
            first = one if isinstance(one, str) or one is None else one.path[0]
            names.update((first,) if isinstance(first, str) else ())
    return frozenset(names)
