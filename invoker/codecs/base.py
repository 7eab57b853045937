"""What a codec is, and what all codecs share: charsets and conversion to a parameter's type."""

from __future__ import annotations

import codecs
import types
import typing
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from invoker.errors import DecodeError, EncodeError
from invoker.mediatypes import MediaType
from invoker.message import Message

__all__ = [
    "BYTES_LIKE",
    "Codec",
    "Decode",
    "Encode",
    "as_bytes_type",
    "bad_input",
    "convert",
    "is_pydantic",
    "not_encodable",
    "scalar_only",
    "strict_text",
    "type_name",
    "validator",
]

Decode: TypeAlias = Callable[[Message[bytes]], Any]
Encode: TypeAlias = Callable[[Any], Message[bytes]]

BYTES_LIKE = (bytes, bytearray, memoryview)
_SCALARS = (str, int, float, bool, type(None))


@runtime_checkable
class Codec(Protocol):
    """Turns payloads of some media types into values and back.

    Attributes:
        media_types: Essences such as ``text/csv``; ``application/*+json`` names a family.
    """

    @property
    def media_types(self) -> tuple[str, ...]:
        """Essences, or one family."""

    def decode(self, message: Message[bytes], type_: Any) -> Any:
        """Make a value of a payload; headers and media type may steer it (R-071).

        Args:
            message: As it came.
            type_: What the function's parameter is annotated with; `typing.Any` without annotation.

        Raises:
            DecodeError: It cannot be decoded; any other exception is turned into one.
        """

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes] | bytes:
        """Make a payload of a value.

        Args:
            value: One that `can_encode` said yes to.
            media_type: Concrete; what the caller shall get.

        Raises:
            EncodeError: It cannot be encoded; any other exception is turned into one.
        """

    def can_encode(self, value: Any) -> bool:
        """Whether `encode` takes such a value; looks at its type only, since the answer is remembered by type."""


def bad_input(media_type: str, error: BaseException | str, type_: Any = Any) -> DecodeError:
    """A DecodeError that names the media type, what was wanted, and what was wrong."""
    wanted = "" if type_ is Any else f" as {type_name(type_)}"
    if isinstance(error, RecursionError):
        text = "it is nested too deeply"
    elif isinstance(error, UnicodeError):
        text = f"it is not valid {getattr(error, 'encoding', 'text')} at byte {getattr(error, 'start', 0)}"
    else:
        text = str(error) or type(error).__name__
    return DecodeError(f"cannot read {media_type or 'application/octet-stream'}{wanted}: {text}")


def type_name(type_: Any) -> str:
    """A type as an author would write it."""
    return type_.__name__ if isinstance(type_, type) and not typing.get_args(type_) else str(type_).replace("typing.", "")


def strict_text(payload: bytes, charset: str) -> str:
    """Decode text strictly, without its byte order mark (R-077, R-083).

    Raises:
        DecodeError: Unknown charset (R-082).
        UnicodeError: Not valid in that charset.
    """
    name = charset.lower().replace("_", "-")
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        raise DecodeError(f"the charset {charset!r} is not known") from None
    if not codec._is_text_encoding:  # noqa: SLF001 - what bytes.decode itself looks at
        raise DecodeError(f"the charset {charset!r} is not one of text")
    if codec.name == "utf-16" and payload[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        name = "utf-16-le"  # without a mark, peers mean little-endian
    return payload.decode(name).removeprefix("\ufeff")


def scalar_only(type_: Any) -> bool:
    """Whether every member of a type can be read from plain text: str, int, float, bool, enums, dates..."""
    if type_ is Any or type_ in _SCALARS:
        return True
    origin = typing.get_origin(type_)
    if origin is typing.Annotated:
        return scalar_only(typing.get_args(type_)[0])
    if origin in (typing.Union, types.UnionType):
        return all(scalar_only(one) for one in typing.get_args(type_))
    if origin is typing.Literal:
        return True
    try:
        info = msgspec.inspect.type_info(type_)
    except (TypeError, NameError):
        return False
    kinds = msgspec.inspect
    return isinstance(
        info,
        (kinds.EnumType, kinds.DateTimeType, kinds.DateType, kinds.TimeType, kinds.TimeDeltaType, kinds.UUIDType,
         kinds.DecimalType, kinds.StrType, kinds.IntType, kinds.FloatType, kinds.BoolType),
    )  # fmt: skip


def as_bytes_type(type_: Any) -> Callable[[bytes], Any] | None:
    """How a parameter that wants bytes gets them; None when it wants something else."""
    if type_ is bytes:
        return _same
    if type_ is bytearray or type_ is memoryview:
        return type_
    members = [one for one in typing.get_args(type_) if one is not type(None)]
    if typing.get_origin(type_) in (typing.Union, types.UnionType) and bytes in members and str not in members:
        return _same
    return None


def _same(payload: bytes) -> bytes:
    return payload


def is_pydantic(type_: Any) -> bool:
    """Whether a type is a pydantic model; pydantic is imported only then."""
    return isinstance(type_, type) and hasattr(type_, "model_validate") and hasattr(type_, "__pydantic_validator__")


def validator(type_: Any) -> Any:
    """A pydantic TypeAdapter for a model."""
    from pydantic import TypeAdapter

    return TypeAdapter(type_)


def convert(value: Any, type_: Any, *, strict: bool = False) -> Any:
    """Build what a parameter is annotated with from builtins; texts become numbers unless strict (R-094).

    Raises:
        ValueError: It does not fit.
    """
    if type_ is Any:
        return value
    if is_pydantic(type_):
        return validator(type_).validate_python(value)
    return msgspec.convert(value, type_, strict=strict)


def not_encodable(value: Any, media_type: MediaType, error: BaseException | str) -> EncodeError:
    """An EncodeError that names the value's type and the media type."""
    if isinstance(error, RecursionError):
        error = "it is nested too deeply, or contains itself"
    elif isinstance(error, UnicodeError):
        error = f"it has characters that {getattr(error, 'encoding', 'the charset')} cannot carry"
    return EncodeError(f"cannot write {type_name(type(value))} as {media_type}: {error}")
