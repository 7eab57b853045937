"""Finds the fields of classes: dataclasses, TypedDicts, NamedTuples, attrs, pydantic and msgspec's Structs."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from invoker.fields.aliases import hints_of, is_typed_dict, substituted

NOTHING: Final[Any] = msgspec.UNSET
"""Stands for a missing default."""

_QUALIFIERS: Final = (typing.Required, typing.NotRequired, getattr(typing, "ReadOnly", typing.Required))


class Property(NamedTuple):
    """One member of a class.

    Attributes:
        name: The name in JSON.
        annotation: The annotation of its values.
        is_required: Whether a value must have the member.
        default: The default; `NOTHING` if there is none, or if a factory makes a new one each time.
        own: The name of the attribute, or of the key.
        parameter: The name by which the class takes the value.
    """

    name: str
    annotation: Any
    is_required: bool = True
    default: Any = NOTHING
    own: str = ""
    parameter: str = ""


class Members(NamedTuple):
    """The members that the values of a class have.

    Attributes:
        properties: The members, in order.
        is_array: Whether a value is encoded as an array of its members; otherwise as an object.
        is_closed: Whether a value can have no other members.
        tag: Name and value of a member that names the class; None if there is none.
        doc: A description for readers; may be empty.
    """

    properties: Sequence[Property]
    is_array: bool = False
    is_closed: bool = False
    tag: tuple[str, Any] | None = None
    doc: str = ""


def members_of(cls: Any, arguments: Sequence[Any] = ()) -> Members | None:
    """Read a class; None if its values have no fields.

    Args:
        cls: The class.
        arguments: The type arguments for its type parameters.

    Raises:
        NameError: An annotation cannot be resolved.
    """
    read = next((read for mark, read in _READERS if hasattr(cls, mark)), None)
    if read is None and not is_typed_dict(cls):
        return None
    hints = hints_of(cls)
    known = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
    hints = {name: substituted(one, known) for name, one in hints.items()}
    made = _typed_dict(cls, hints) if read is None else read(cls, hints)
    each = (one._replace(own=one.own or one.name) for one in made.properties)
    return made._replace(properties=[one._replace(parameter=one.parameter or one.own) for one in each], doc=doc_of(cls))


def _struct(cls: Any, hints: dict[str, Any]) -> Members:
    config = cls.__struct_config__
    found = []
    for one in msgspec.structs.fields(cls):
        default = one.default if one.default is not msgspec.NODEFAULT else _made(one.default_factory)
        found.append(Property(one.encode_name, hints.get(one.name, Any), one.required, default, one.name))
    tag = (config.tag_field, config.tag) if config.tag_field is not None else None
    return Members(found, is_array=config.array_like, is_closed=config.forbid_unknown_fields, tag=tag)


def _dataclass(cls: Any, hints: dict[str, Any]) -> Members:
    found = []
    for one in dataclasses.fields(cls):
        if one.init:
            has_none = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
            default = _made(one.default_factory) if one.default is dataclasses.MISSING else one.default
            found.append(Property(one.name, hints.get(one.name, Any), has_none, default))
    return Members(found)


def _attrs(cls: Any, hints: dict[str, Any]) -> Members:
    found = []
    for one in cls.__attrs_attrs__:
        if one.init:
            factory = getattr(one.default, "factory", None)
            has_none = factory is None and type(one.default).__name__ == "_Nothing"
            default = NOTHING if has_none else one.default if factory is None else _made(factory)
            found.append(Property(one.name, hints.get(one.name, Any), has_none, default, parameter=one.alias))
    return Members(found)


def _pydantic(cls: Any, hints: dict[str, Any]) -> Members:
    return Members([
        Property(one.alias or name, hints.get(name, Any), one.is_required(), own=name)
        for name, one in cls.__pydantic_fields__.items()
    ])  # fmt: skip


def _typed_dict(cls: Any, hints: dict[str, Any]) -> Members:
    # `__required_keys__` is wrong if annotations are strings, since NotRequired is not seen in them (CPython 97727).
    said = {typing.Required: True, typing.NotRequired: False}
    required = cls.__required_keys__
    return Members([
        Property(name, _unqualified(one), said.get(typing.get_origin(one), name in required))
        for name, one in hints.items()
    ])  # fmt: skip


def _unqualified(annotation: Any) -> Any:
    while typing.get_origin(annotation) in _QUALIFIERS:
        (annotation,) = typing.get_args(annotation)
    return annotation


def _named_tuple(cls: Any, hints: dict[str, Any]) -> Members:
    defaults = cls._field_defaults
    found = [
        Property(name, hints.get(name, Any), name not in defaults, defaults.get(name, NOTHING)) for name in cls._fields
    ]
    return Members(found, is_array=True)


_READERS: Final = (
    ("__pydantic_fields__", _pydantic),
    ("__struct_fields__", _struct),
    ("__dataclass_fields__", _dataclass),
    ("__attrs_attrs__", _attrs),
    ("_field_defaults", _named_tuple),
)


def _made(factory: Any) -> Any:
    """The default that a factory makes if that is an empty container; otherwise `NOTHING`.

    Other factories may give different values.
    """
    return factory() if factory in (list, dict, set, tuple, frozenset, str) else NOTHING


def doc_of(cls: Any) -> str:
    """The first paragraph of a class's docstring, if its author wrote one."""
    text = vars(cls).get("__doc__")
    doc = inspect.cleandoc(text) if isinstance(text, str) else ""
    return "" if doc.startswith(f"{cls.__name__}(") else doc.partition("\n\n")[0]
