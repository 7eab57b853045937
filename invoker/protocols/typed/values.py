"""Converts ``google.protobuf.Value`` and ``Struct`` to plain values of JSON and back; and times.

It is done here and not by protobuf's own methods, since those give every number as a float.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LARGEST: Final = 2**53


def plain(value: Any) -> Any:
    """The plain value of a Value; numbers without a fraction are integers, as in JSON."""
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
    """The plain Python values of a Struct, by name."""
    return {name: plain(one) for name, one in struct.fields.items()}


def fill(value: Any, given: Any) -> None:
    """Set a Value to a plain Python value, as JSON has it.

    Raises:
        ValueError: An integer that a double cannot hold.
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
    """Set a Struct to an object of JSON."""
    for name, one in given.items():
        fill(struct.fields[name], one)


def from_timestamp(message: Any) -> dt.datetime:
    """The moment, in UTC, to the microsecond."""
    return _EPOCH + dt.timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def timestamp(moment: dt.datetime) -> dict[str, int]:
    """A moment as a Timestamp; a moment without a zone counts as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    passed = moment - _EPOCH
    return {"seconds": passed.days * 86400 + passed.seconds, "nanos": passed.microseconds * 1000}


def from_duration(message: Any) -> dt.timedelta:
    """The timedelta of a Duration, to the microsecond."""
    return dt.timedelta(seconds=message.seconds, microseconds=int(message.nanos / 1000))


def duration(passed: dt.timedelta) -> dict[str, int]:
    """A timedelta as a Duration, with two numbers of the same sign."""
    micros = passed // dt.timedelta(microseconds=1)
    sign = -1 if micros < 0 else 1
    seconds, rest = divmod(abs(micros), 1_000_000)
    return {"seconds": sign * seconds, "nanos": sign * rest * 1000}
