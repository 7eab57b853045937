"""Applies constraints of pydantic and `annotated_types` for all codecs, and finds those without effect.

Codecs that make values by `converter` pass the whole annotation to pydantic. Other codecs return unchecked values, such
as the bytes of a payload, a pickled object or the field of a typed message; these values are validated afterwards. A
result is validated before it is encoded.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final

import msgspec

from invoker.codecs.custom import Adapted
from invoker.codecs.interface import Decode, Encode, Specialised
from invoker.codecs.refusal import reason, refuse_decode, spell
from invoker.codecs.support import wants_arrays
from invoker.codecs.typed import (
    BYTES_LIKE,
    adapter,
    bytes_like,
    converter,
    enc_hook,
    holds_marks,
    holds_pydantic,
    is_any,
    is_mark,
    leaves,
    within,
)
from invoker.errors import EncodeError, StopInvocation
from invoker.errors.wording import Place, Why
from invoker.fields.aliases import unaliased
from invoker.fields.constraints import FIELD_RULES, Constraints, slow_pattern
from invoker.fields.marks import is_read, misplaced, pattern_text, unread
from invoker.message import Message

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_WORDS: Final = ("Unit", "DocInfo")
_PYTHON: Final = "python-re"


def validated(decode: Decode, type_: Any, where: Place, essence: str, codec: Specialised) -> Decode:
    """Wrap a decoder whose codec does not apply the constraints; other decoders are returned unchanged.

    Args:
        decode: The decoder as a codec made it.
        type_: The annotation.
        where: Starts the text of errors.
        essence: The media type without parameters, for the text of errors.
        codec: The codec; if it belongs to an author, msgspec's constraints are left to it.
    """
    if codec.applies_marks and bytes_like(type_) is None:
        return decode
    if holds_marks(type_):
        validate = adapter(type_).validate_python
    elif not (codec.applies_marks or isinstance(codec, Adapted)) and _holds_checks(type_):
        validate = _checking(type_)
    else:
        return decode

    def decode_and_validate(message: Message[bytes]) -> Any:
        value = decode(message)
        try:
            return validate(value)
        except BaseException as error:
            raise refuse_decode(error, where, essence, type_) from error

    return decode_and_validate


def _checking(type_: Any) -> Callable[[Any], Any]:
    """A function that lets msgspec check the constraints of a value that was made without it."""
    convert = converter(type_)

    def check(value: Any) -> Any:
        convert(msgspec.to_builtins(value, builtin_types=BYTES_LIKE, enc_hook=enc_hook))
        return value

    return check


def _holds_checks(type_: Any) -> bool:
    """Whether there are constraints of msgspec that `Constraints` does not cover."""
    own = leaves(type_)
    return any(
        isinstance(mark, msgspec.Meta) and _checks(mark) and not (one in own and is_read(mark, one))
        for one in within(type_)
        for mark in getattr(one, "__metadata__", ())
    )


def validated_output(encode: Encode, type_: Any, constraints: Constraints, where: Place) -> Encode:
    """Wrap an encoder so that it refuses results that the constraints of the annotation do not allow."""
    check = constraints.checker()
    is_marked = not is_any(type_) and holds_marks(type_)
    within_it = None if is_marked or not _holds_checks(type_) else _checking(type_)
    if not is_marked and check is None and within_it is None:
        return encode
    made = adapter(type_) if is_marked else None
    is_serialised = made is not None and "serialization" in made.core_schema

    def validate_and_encode(value: Any) -> Message[bytes]:
        try:
            if made is not None and value is not None:
                value = made.validate_python(value)
                value = made.dump_python(value, mode="json") if is_serialised else value
            elif within_it is not None and value is not None and not isinstance(value, msgspec.Raw):
                within_it(value)
            problem = next(iter(check(value)), None) if check is not None else None
        except StopInvocation:
            raise
        except BaseException as error:
            why = Why(reason(error).text, type(error).__name__)
            raise EncodeError(" is not what its annotation allows", place=where, why=why) from error
        if problem is not None:
            raise EncodeError(f" {problem.text}", place=where)
        return encode(value)

    return validate_and_encode


def unapplied(type_: Any) -> str | None:
    """A sentence about a constraint that no codec applies, or applies too slowly; None if there is none.

    Args:
        type_: The annotation; its own metadata is applied by `Constraints` as far as that covers it.
    """
    if unread(type_) and wants_arrays([type_]):
        return f"constraints have no effect on an array: {_spelt(unaliased(type_).__metadata__)}"
    found = _of_parameters(type_)
    if found is not None:
        return found
    if not holds_pydantic(type_):
        marks = (mark for one in within(type_) for mark in getattr(one, "__metadata__", ()))
        said = ((one.pattern, one.max_length) for one in marks if isinstance(one, msgspec.Meta) and one.pattern)
        return next(filter(None, (slow_pattern(*one) for one in said)), None)
    try:
        return next(chain(_unknown_to_pydantic(type_), _slow_in_pydantic(type_)), None)
    except TypeError as error:
        return f"pydantic cannot validate {spell(type_)}: {error}"


def _of_parameters(type_: Any) -> str | None:
    """A sentence about a pydantic ``Field`` on a value with an option that only fields of classes can have.

    Otherwise None.
    """
    for one in within(type_, fields=False):
        for mark in getattr(one, "__metadata__", ()):
            if word := misplaced(mark):
                return f"the {word} of {_spelt([mark])} has no effect there; write it at the parameter"
    return None


def _unknown_to_pydantic(type_: Any) -> Iterator[str]:
    own = leaves(type_)
    for one in within(type_):
        for mark in getattr(one, "__metadata__", ()):
            is_known = one in own and is_read(mark, one)  # `Constraints` apply it
            if isinstance(mark, msgspec.Meta) and not is_known and _checks(mark):
                yield f"pydantic validates {spell(type_)} and does not know {_spelt([mark])}; write pydantic's Field"
            for part in _parts(mark):
                if is_mark(part) and not _is_applied(one.__origin__, part):
                    yield f"{_spelt([part])} has no effect on {spell(one.__origin__)}"


def _slow_in_pydantic(type_: Any) -> Iterator[str]:
    """The reasons why pydantic would match texts with `re`, which may be slow: a compiled pattern, or its config."""
    left: list[tuple[Any, bool]] = [(adapter(type_).core_schema, False)]
    while left:
        schema, is_python = left.pop()
        if isinstance(schema, dict):
            if isinstance(config := schema.get("config"), dict):
                is_python = config.get("regex_engine") == _PYTHON
            found = schema.get("pattern") if schema.get("type") == "str" else None
            is_tried = is_python or schema.get("regex_engine") == _PYTHON or isinstance(found, re.Pattern)
            if found and is_tried:
                yield from filter(None, [slow_pattern(pattern_text(found), schema.get("max_length"))])
            left += [(one, is_python) for one in schema.values()]
        elif isinstance(schema, list | tuple):
            left += [(one, is_python) for one in schema]


def _parts(mark: Any) -> Iterable[Any]:
    """The constraints in pydantic's ``Field``, or the constraint itself."""
    return getattr(mark, "metadata", None) or [mark]


def _checks(mark: msgspec.Meta) -> bool:
    words = ("title", "description", "examples", "extra_json_schema", "extra")
    is_ruled = FIELD_RULES in (mark.extra or {})
    return is_ruled or any(getattr(mark, one) is not None for one in dir(mark) if one[0] != "_" and one not in words)


def _is_applied(type_: Any, mark: Any) -> bool:
    """Whether metadata does not concern values, or is applied by pydantic."""
    name, said = type(mark).__name__, getattr(mark, "__dataclass_fields__", ())
    if name in _WORDS or (name == "FieldInfo" and mark.discriminator is None):
        return True
    if said and all(getattr(mark, one) is None for one in said):
        return True
    return bool(adapter(typing.Annotated[type_, mark]).core_schema != adapter(type_).core_schema)


def _spelt(marks: Iterable[Any]) -> str:
    return ", ".join(_ADDRESS.sub("", repr(one)) for one in marks)
