"""Spans of time, which are seconds here and a ``google.protobuf.Duration`` on the wire."""

from __future__ import annotations

from typing import Final

from google.protobuf.duration_pb2 import Duration

_NANO: Final = 1_000_000_000


def duration_of(seconds: float) -> Duration:
    """A span as a message, to the nearest nanosecond."""
    whole, rest = divmod(round(seconds * _NANO), _NANO)
    return Duration(seconds=whole, nanos=rest)


def seconds_of(duration: Duration) -> float:
    """A span in seconds; the caller checks its range."""
    return duration.seconds + duration.nanos / _NANO
