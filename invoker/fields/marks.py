"""Decides which marks of ``Annotated`` `invoker.fields.constraints` can apply, and which need a codec."""

from __future__ import annotations

import re
import typing
from typing import Annotated, Any, Final

import msgspec

from invoker.errors import SpecError
from invoker.fields.aliases import UNIONS, bare, unaliased

SCALARS: Final = (int, float, bool, str, bytes)
_NUMBERS: Final = (int, float)
_KINDS: Final[tuple[tuple[str, tuple[type, ...] | None], ...]] = (
    *((name, _NUMBERS) for name in ("ge", "gt", "le", "lt")),
    ("pattern", (str,)),
    ("min_length", None),
    ("max_length", None),
)
"""For each attribute of a mark, the classes of values that it limits; None: all values with a length."""

_READ: Final = frozenset({"Ge", "Gt", "Le", "Lt", "Interval", "Len", "MinLen", "MaxLen"})
_LIBRARIES: Final = ("pydantic", "annotated_types", "msgspec")

_OF_FIELDS: Final = (
    "default",
    "default_factory",
    "alias",
    "validation_alias",
    "serialization_alias",
    "exclude",
    "frozen",
)
"""The options of pydantic's ``Field`` that concern fields of classes, not values."""


def unmarked(type_: Any) -> Any:
    """The annotation without its marks on the values themselves."""
    type_ = bare(type_)
    if typing.get_origin(type_) in UNIONS:
        return typing.Union[tuple(unmarked(one) for one in typing.get_args(type_))]  # noqa: UP007 - made at run time
    return type_


def unread(type_: Any) -> bool:
    """Whether some marks on the values themselves are not covered by `Constraints`, so that a codec must apply them."""
    type_ = unaliased(type_)
    if typing.get_origin(type_) in UNIONS:
        return any(unread(one) for one in typing.get_args(type_))
    if typing.get_origin(type_) is not Annotated:
        return False
    return any(not is_read(one, type_) for one in type_.__metadata__) or unread(type_.__origin__)


def is_read(mark: Any, type_: Any) -> bool:
    """Whether `Constraints` covers everything that a mark on a type requires."""
    cls = type(mark)
    module = cls.__module__.partition(".")[0]
    if isinstance(mark, msgspec.Meta):
        return mark.multiple_of is None and mark.tz is None and fits(mark, type_)
    if module == "pydantic" and cls.__name__ == "StringConstraints":
        more = ("strip_whitespace", "to_upper", "to_lower", "strict", "ascii_only")
        return not any(getattr(mark, one, None) for one in more) and fits(mark, type_)
    if module == "pydantic" and cls.__name__ == "FieldInfo":
        is_plain = mark.discriminator is None and not misplaced(mark)
        return is_plain and all(is_read(one, type_) for one in mark.metadata)
    if module == "pydantic" and getattr(mark, "__dict__", {}).keys() == {"pattern"}:  # as its Field stores one
        return fits(mark, type_)
    if module == "annotated_types":
        return cls.__name__ in ("Unit", "DocInfo") or (cls.__name__ in _READ and fits(mark, type_))
    is_known = hasattr(mark, "__get_pydantic_core_schema__") or hasattr(mark, "__is_annotated_types_grouped_metadata__")
    return not is_known and all(base.__module__.partition(".")[0] not in _LIBRARIES for base in cls.__mro__)


def misplaced(mark: Any) -> str:
    """The option of a pydantic ``Field`` that only applies to a field of a class; empty if there is none."""
    if type(mark).__name__ != "FieldInfo":
        return ""
    blank = type(mark)()
    return next((name for name in _OF_FIELDS if getattr(mark, name, None) != getattr(blank, name, None)), "")


def pattern_text(pattern: Any) -> str:
    """A pattern as text; flags of a compiled one are written in front of it, so that they apply wherever it is matched.

    Args:
        pattern: A text, a compiled pattern, or None for no pattern.

    Raises:
        SpecError: The pattern matches bytes.
    """
    text = getattr(pattern, "pattern", pattern) or ""
    if not isinstance(text, str):
        raise SpecError(f"the pattern {pattern!r} is made of bytes, but it is compared with text; write it as a str")
    if not isinstance(pattern, re.Pattern) or pattern.flags == re.compile(text).flags:
        return text
    return f"(?{''.join(letter for letter, flag in _FLAGS.items() if pattern.flags & flag)}){text}"


_FLAGS: Final = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}


def fits(mark: Any, type_: Any) -> bool:
    """Whether a mark is checked for the values of a type."""
    for name, kinds in _KINDS:
        said = getattr(mark, name, None)
        if said is None:
            continue
        if kinds is _NUMBERS and (isinstance(said, bool) or not isinstance(said, _NUMBERS)):
            return False
        classes = [typing.get_origin(one) or one for one in kinds_of(type_) if one is not type(None)]
        if all(one in SCALARS for one in classes):
            continue  # `_check_kinds` refuses marks that can never apply
        if not any(_may_have(one, kinds) for one in classes):
            return False
    return True


def _may_have(cls: Any, kinds: tuple[type, ...] | None) -> bool:
    if not isinstance(cls, type) or cls in (object, Any):
        return True
    return hasattr(cls, "__len__") if kinds is None else issubclass(cls, kinds)


def kinds_of(type_: Any) -> tuple[Any, ...]:
    """The members of a union, or the type itself, without marks."""
    found = unmarked(type_)
    return typing.get_args(found) if typing.get_origin(found) in UNIONS else (found,)
