"""Converts ``google.protobuf.Value``, ``Struct``, ``Timestamp`` and ``Duration`` to Python values and back.

protobuf's own methods are not used, since they return every number as a float.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LARGEST: Final = 2**53


def plain(value: Any) -> Any:
    """The Python value of a Value; a number without a fraction becomes an int, as in JSON."""
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number = value.number_value
        return int(number) if abs(number) <= _LARGEST and number.is_integer() else number
    if kind == "struct_value":
        return plain_struct(value.struct_value)
    if kind == "list_value":
        return [plain(one) for one in value.list_value.values]
    return None if kind in ("null_value", None) else getattr(value, kind)


def plain_struct(struct: Any) -> dict[str, Any]:
    """The Python values of a Struct, by name."""
    return {name: plain(one) for name, one in struct.fields.items()}


def fill(value: Any, given: Any) -> None:
    """Set a Value to a Python value that JSON can hold.

    Raises:
        ValueError: ``given`` holds an integer that a double cannot represent.
    """
    if given is None:
        value.null_value = 0
    elif given is True or given is False:
        value.bool_value = given
    elif isinstance(given, str):
        value.string_value = given
    elif isinstance(given, dict):
        value.struct_value.SetInParent()
        fill_struct(value.struct_value, given)
    elif isinstance(given, (list, tuple)):
        value.list_value.SetInParent()
        for one in given:
            fill(value.list_value.values.add(), one)
    else:
        if isinstance(given, int) and abs(given) > _LARGEST:
            raise ValueError(f"{given} is beyond 2**53, so a number of JSON loses digits; give text, or annotate int")
        value.number_value = given


def fill_struct(struct: Any, given: dict[str, Any]) -> None:
    """Set a Struct to the items of a dict."""
    for name, one in given.items():
        fill(struct.fields[name], one)


def from_timestamp(message: Any) -> dt.datetime:
    """The datetime of a Timestamp, in UTC, with microseconds."""
    return _EPOCH + dt.timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def timestamp(moment: dt.datetime) -> dict[str, int]:
    """A datetime as a Timestamp; a datetime without a zone counts as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    passed = moment - _EPOCH
    return {"seconds": passed.days * 86400 + passed.seconds, "nanos": passed.microseconds * 1000}


def from_duration(message: Any) -> dt.timedelta:
    """The timedelta of a Duration, with microseconds."""
    return dt.timedelta(seconds=message.seconds, microseconds=int(message.nanos / 1000))


def duration(passed: dt.timedelta) -> dict[str, int]:
    """A timedelta as a Duration, whose seconds and nanoseconds have the same sign."""
    micros = passed // dt.timedelta(microseconds=1)
    sign = -1 if micros < 0 else 1
    seconds, rest = divmod(abs(micros), 1_000_000)
    return {"seconds": sign * seconds, "nanos": sign * rest * 1000}
