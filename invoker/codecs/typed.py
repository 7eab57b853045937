"""Converts plain values to annotated types; all codecs share this.

Theory. msgspec converts dicts, lists, strings and numbers into dataclasses, TypedDicts, Structs, enums, dates and the
like, strictly (``"2"`` is not an int) or leniently (for text and forms, where everything is a string). Types that
msgspec does not support are added here: pydantic models, which pydantic itself validates; unions whose members msgspec
cannot distinguish, which are tried member by member; and bytes-likes, which are the payload itself.
"""

from __future__ import annotations

import collections
import enum
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from invoker.codecs.annotations import fields, is_any, is_structured, leaves, members
from invoker.codecs.collisions import Check, checking, checks
from invoker.codecs.containers import check_array
from invoker.codecs.leftout import complete, completed, is_incomplete
from invoker.codecs.misspelt import spelling_of
from invoker.codecs.standins import StandIn, understood
from invoker.codecs.wholes import REFUSED, retried
from invoker.fields.aliases import bare, hints_of, stood_for, unaliased

__all__ = [
    "BYTES_LIKE",
    "bytes_like",
    "collisions_of",
    "converter",
    "dec_hook",
    "enc_hook",
    "fields",
    "holds_marks",
    "holds_pydantic",
    "is_any",
    "is_frame",
    "is_mark",
    "is_structured",
    "json_hook",
    "lax_hook",
    "leaves",
    "members",
    "narrowed",
    "per_member",
    "plain",
    "within",
]

BYTES_LIKE: tuple[type, ...] = (bytes, bytearray, memoryview)

_NATIVE = (dict, list, tuple, set, frozenset, str, int, float, bool, type(None))
_MOST_WITHIN = 1000  # a named type may contain ever larger types
_LIBRARIES = frozenset({"pydantic", "annotated_types"})  # classes of `Field(gt=0)` and of the parts of `PositiveInt`


def is_frame(type_: Any) -> bool:
    """Whether the annotation is pandas' class of DataFrames (T-108)."""
    return isinstance(type_, type) and type_.__name__ == "DataFrame" and type_.__module__.partition(".")[0] == "pandas"


def bytes_like(type_: Any) -> type | None:
    """The bytes-like class that the annotation names, alone or in a union."""
    for one in members(type_):
        if isinstance(one, type) and one in BYTES_LIKE:
            return one
    return None


def narrowed(type_: Any, drop: tuple[type, ...]) -> Any:
    """The annotation without these members of a union; unchanged if no member would be left."""
    every = leaves(type_)
    rest = tuple(one for one in every if not any(bare(one) is cls for cls in drop))
    if len(rest) == len(every) or not [one for one in rest if bare(one) is not type(None)]:
        return type_
    return typing.Union[rest]  # noqa: UP007 - made at run time


def holds_pydantic(type_: Any) -> bool:
    """Whether the annotation is or contains a class of pydantic, or metadata that pydantic applies."""
    if not _is_imported():
        return False
    return any(_is_pydantic(one) for one in within(type_, fields=False)) or holds_marks(type_)


def holds_marks(type_: Any) -> bool:
    """Whether the annotation contains metadata that pydantic applies, and msgspec does not."""
    return _is_imported() and any(
        _has_default_mark(one) or any(is_mark(mark) for mark in getattr(one, "__metadata__", ()))
        for one in within(type_)
    )


def is_mark(mark: Any) -> bool:
    """Whether pydantic applies this metadata, judged by its class."""
    names = ("__get_pydantic_core_schema__", "__is_annotated_types_grouped_metadata__")
    return any(hasattr(mark, name) for name in names) or any(
        base.__module__.partition(".")[0] in _LIBRARIES for base in type(mark).__mro__
    )


def _has_default_mark(cls: Any) -> bool:
    """Whether a field of a dataclass has a ``Field`` of pydantic's as its default."""
    several = getattr(cls, "__dataclass_fields__", {}) if isinstance(cls, type) else {}
    return any(type(one.default).__module__.startswith("pydantic.") for one in several.values())


def within(type_: Any, *, fields: bool = True) -> Iterator[Any]:
    """The annotation, and all annotations inside it: type arguments, values of type aliases, and fields of classes."""
    left: list[Any] = [type_]
    seen: list[Any] = []
    while left and len(seen) < _MOST_WITHIN:
        one = left.pop()
        if isinstance(one, str) or one in seen:
            continue
        seen.append(one)
        yield (one := unaliased(stood_for(one) if isinstance(one, typing.TypeVar) else one))
        left += [one.__origin__] if typing.get_origin(one) is typing.Annotated else typing.get_args(one)
        cls = typing.get_origin(one) or one
        if fields and isinstance(cls, type) and _has_fields(cls) and not _is_pydantic(cls):
            try:
                left += hints_of(cls).values()
            except Exception:  # noqa: BLE001, S112 - an annotation is any expression; the code that makes the class reports the error
                continue


def collisions_of(type_: Any) -> Check | None:
    """A check that refuses plain values whose equal hashes would make the conversion slow."""
    return checks(type_, _with_models)


def _with_models(type_: Any) -> Iterator[Any]:
    """All annotations that `within` gives, and those of the fields of pydantic's models."""
    left, seen = [type_], set[int]()
    while left:
        for one in within(left.pop()):
            yield one
            fields_of = getattr(one, "__pydantic_fields__", None) if isinstance(one, type) else None
            if isinstance(fields_of, dict) and id(one) not in seen:
                seen.add(id(one))
                left += [field.annotation for field in fields_of.values()]


def _is_imported() -> bool:
    """Whether a library of `_LIBRARIES` is imported; otherwise none of its metadata and classes can occur."""
    return any(name in sys.modules for name in _LIBRARIES)


def _has_fields(cls: type) -> bool:
    return is_structured(cls) or hasattr(cls, "_field_defaults")


def per_member(type_: Any, make: Callable[[Any], Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Apply ``make`` to an annotation. If it cannot handle a union, apply it to each member; values try them in order.

    Raises:
        TypeError: ``make`` can handle neither.
    """
    try:
        return make(type_)
    except (TypeError, NotImplementedError):
        if len(leaves(type_)) == 1:
            raise
    makers = [make(one) for one in leaves(type_)]

    def attempt(value: Any) -> Any:
        problem: Exception = ValueError("no member of the union fits")
        for one in makers:
            try:
                return one(value)
            except (ValueError, TypeError) as error:
                problem = error
        try:
            raise problem
        finally:
            del problem  # the error refers to this frame, which must not refer to it

    return attempt


def converter(type_: Any, *, is_lax: bool = False) -> Callable[[Any], Any]:
    """A closure that makes the annotated type from plain values (dict, list, str, bytes, numbers).

    Args:
        type_: The annotation.
        is_lax: Whether strings may become numbers, booleans and null, for text and forms.

    Raises:
        TypeError: Nothing can make this type.
    """
    if is_any(type_):
        return lambda value: value
    check, spelling = collisions_of(type_), spelling_of(type_)
    if holds_pydantic(type_):
        validate = checking(adapter(type_).validate_python, _same, check)
        return validate if spelling is None else spelling.converting(validate)

    hook = lax_hook if is_lax else dec_hook

    def make(one: Any) -> Callable[[Any], Any]:
        if one in BYTES_LIKE:
            return lambda value: _as_bytes(value, one)
        msgspec.json.Decoder(one, dec_hook=hook)  # raises for a bad annotation now, not at the first value

        def convert(value: Any) -> Any:
            # without `builtin_types` msgspec would decode text as base64 where bytes are wanted
            return msgspec.convert(value, one, strict=not is_lax, builtin_types=BYTES_LIKE, dec_hook=hook)

        def convert_numbers(value: Any) -> Any:
            try:
                made = msgspec.convert(value, one, strict=not is_lax, builtin_types=BYTES_LIKE, dec_hook=hook)
            except msgspec.ValidationError:
                if (made := retried(convert, value)) is REFUSED:
                    if spelling is not None and type(value) is dict and (cause := spelling.cause(value)):
                        raise msgspec.ValidationError(cause) from None
                    raise
            if spelling is not None and type(value) is dict and not value.keys() <= spelling.known:
                spelling.check(made, value)
            return made

        return completed(convert_numbers, one)

    return checking(per_member(understood(type_), make), _same, check)


def _same(value: Any) -> Any:
    return value


def adapter(type_: Any) -> Any:
    """Pydantic's own validator of an annotation.

    Raises:
        TypeError: Pydantic cannot make one.
    """
    try:
        import pydantic
    except ImportError:
        raise TypeError("its constraints need pydantic; pip install 'stream-invoker[pydantic]'") from None
    try:
        made = pydantic.TypeAdapter(type_)
        if not made.pydantic_complete:  # a name was missing when the class was made, or the class defers its build
            made.rebuild(force=True)
    except Exception as error:  # pydantic raises many classes of errors here and documents none
        raise TypeError(str(error).partition("\n")[0]) from error
    return made


def plain(cls: type) -> bool:
    """Whether values of this class have a form in dicts, lists, strings and numbers.

    Values inside them may still have none.
    """
    if issubclass(cls, BYTES_LIKE):
        return False
    if issubclass(cls, (*_NATIVE, enum.Enum, Mapping, collections.deque)):
        return True
    return is_structured(cls) or _is_numpy(cls) or f"{cls.__module__}.{cls.__qualname__}" in _ATOMS


_ATOMS = frozenset({
    "datetime.datetime", "datetime.date", "datetime.time", "datetime.timedelta", "decimal.Decimal", "uuid.UUID",
    "msgspec.Raw", "msgspec.msgpack.Ext",
})  # fmt: skip


def _hook(kinds: tuple[type, ...], *, strict: bool) -> Callable[[Any, Any], Any]:
    """Make the ``dec_hook`` that makes values of classes that msgspec does not support.

    Args:
        kinds: Classes that need no conversion, in addition to those of JSON.
        strict: Whether text is never converted to another type.
    """

    def hook(type_: Any, value: Any) -> Any:
        if isinstance(type_, type) and issubclass(type_, StandIn):
            return type_.make(value, convert)
        return _made(type_, value)

    def convert(value: Any, type_: Any) -> Any:
        made = msgspec.convert(value, type_, strict=strict, builtin_types=kinds, str_keys=not kinds, dec_hook=hook)
        if is_incomplete(type_):
            complete(made)
        return made

    return hook


def _made(type_: Any, value: Any) -> Any:
    if _is_pydantic(type_):
        return adapter(type_).validate_python(value)
    if isinstance(type_, type) and isinstance(value, type_):
        return value
    if "numpy" in sys.modules and getattr(type_, "__origin__", type_) is sys.modules["numpy"].ndarray:
        return _array(type_, value)
    raise TypeError(f"{type(value).__name__} cannot be converted to {getattr(type_, '__name__', type_)}")


dec_hook = _hook(BYTES_LIKE, strict=True)
json_hook = _hook((), strict=True)
lax_hook = _hook(BYTES_LIKE, strict=False)


def enc_hook(value: Any) -> Any:
    """Convert a value that msgspec does not support to one that it supports."""
    cls = type(value)
    if _is_pydantic(cls):
        return value.model_dump(mode="json", by_alias=True) if hasattr(value, "model_dump") else vars(value)
    if _is_numpy(cls):
        if value.ndim > 1:
            check_array(value)
        made = value.tolist()
        if type(made) is not cls:
            return made
        if value.dtype.kind == "f":  # Python has no type for extended precision
            return float(value)
    if cls is bool:  # a bool as a key of JSON, where keys are text
        return "true" if value else "false"
    for base in (str, int, float, bytes):
        if issubclass(cls, base):
            return base(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, collections.deque):
        return list(value)
    raise TypeError(
        f"{cls.__name__} cannot be represented in this media type; give a dict, a list, text, a number or a "
        "dataclass instead"
    )


def _is_pydantic(cls: Any) -> bool:
    return isinstance(cls, type) and hasattr(cls, "__pydantic_core_schema__")


def _is_numpy(cls: type) -> bool:
    return cls.__module__ == "numpy" and hasattr(cls, "tolist")


def _array(type_: Any, value: Any) -> Any:
    """Make an array from lists and numbers, as in JSON and MessagePack."""
    from invoker.tensors import GraphPipeError, array_type
    from invoker.tensors.arrays import from_plain

    wanted = array_type(type_)
    assert wanted is not None, "dec_hook has asked"
    try:
        return from_plain(value, wanted)
    except GraphPipeError as error:
        raise ValueError(error.detail) from error


def _as_bytes(value: Any, wanted: type) -> Any:
    if isinstance(value, BYTES_LIKE):
        return value if type(value) is wanted else wanted(value)
    if isinstance(value, str):
        return wanted(value.encode())
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        raise TypeError(f"expected {wanted.__name__}, got an array")
    raise TypeError(f"expected {wanted.__name__}, got {type(value).__name__}")
