"""Converts values of other classes to a class that ``google.protobuf.Any`` can represent."""

from __future__ import annotations

import collections
import datetime as dt
import enum
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from invoker.codecs.anyvalue.errors import Unserializable
from invoker.codecs.anyvalue.names import MOST_ELEMENTS
from invoker.codecs.typed import BYTES_LIKE, enc_hook, is_frame, is_structured, plain

_KEPT: Final = (*BYTES_LIKE, dt.datetime, dt.timedelta)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECOND: Final = dt.timedelta(seconds=1)
_BASES: Final[dict[type, Callable[[Any], Any]]] = {
    int: int.__int__,  # a subclass may override the conversion
    float: float.__float__,
    str: str.__str__,
    bytes: bytes.__bytes__,
}
_ADVICE: Final = "give a dict, a list, text, a number, bytes or a dataclass instead"


def timestamp_parts(value: dt.datetime) -> tuple[int, int]:
    """Seconds since 1970 and nanoseconds.

    Raises:
        Unserializable: The value has no time zone.
    """
    if value.utcoffset() is None:
        raise Unserializable("is a datetime without a time zone; give it one, such as tzinfo=dt.UTC")
    seconds, rest = divmod(value - _EPOCH, _SECOND)
    return seconds, rest.microseconds * 1000


def natural(value: Any) -> Any:  # noqa: C901 - one branch for each kind
    """The same value as an instance of exactly a built-in class; the values inside may be of any class.

    Raises:
        Unserializable: The value cannot be converted to a built-in class.
    """
    cls = type(value)
    if isinstance(value, enum.Enum):
        return _settled(value, value.value)
    for base, make in _BASES.items():
        if issubclass(cls, base):  # numpy's float64 is a subclass, too
            return make(value)
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return list(value)
    if isinstance(value, dt.datetime):
        return dt.datetime.combine(value.date(), value.timetz()) if value == value else _refuse(cls)  # noqa: PLR0124 - NaT
    if isinstance(value, dt.timedelta):
        return _EPOCH + value - _EPOCH
    if isinstance(value, Mapping) and not is_structured(cls):
        return dict(value)
    if is_frame(cls):
        raise Unserializable("is a DataFrame within a list or a dict; a DataFrame can only be sent by itself")
    size = getattr(value, "size", 0) if cls.__module__ == "numpy" else 0
    if size > MOST_ELEMENTS:
        raise Unserializable(f"is an array of {size} elements, which exceeds the limit of {MOST_ELEMENTS}")
    if not plain(cls) and not hasattr(cls, "__pydantic_core_schema__"):
        _refuse(cls)
    try:
        return _settled(value, msgspec.to_builtins(value, builtin_types=_KEPT, enc_hook=enc_hook))
    except RecursionError:
        raise Unserializable(f"is {cls.__name__} that contains itself, or is nested too deeply") from None
    except Exception as error:
        # A property or a serialiser of the author's class may raise any exception.
        raise Unserializable(
            f"is {cls.__name__} that cannot be taken apart: {type(error).__name__}: {error}"
        ) from error


def _settled(value: Any, made: Any) -> Any:
    """The replacement of a value. It must be of another class; otherwise the conversion would never end."""
    return made if type(made) is not type(value) else _refuse(type(value))


def _refuse(cls: type) -> Any:
    raise Unserializable(f"is {cls.__name__}, which google.protobuf.Any cannot represent; {_ADVICE}")
