"""Converts seconds to ``google.protobuf.Duration`` and back."""

from __future__ import annotations

from typing import Final

from google.protobuf.duration_pb2 import Duration

_NANO: Final = 1_000_000_000


def duration_of(seconds: float) -> Duration:
    """The Duration of a number of seconds, to the nearest nanosecond."""
    whole, rest = divmod(round(seconds * _NANO), _NANO)
    return Duration(seconds=whole, nanos=rest)


def seconds_of(duration: Duration) -> float:
    """The seconds of a Duration; the caller checks the range."""
    return duration.seconds + duration.nanos / _NANO
