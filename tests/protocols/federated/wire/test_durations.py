"""Spans of time on the wire: `invoker.protocols.federated.wire.durations`."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration

from invoker.protocols.federated.wire.durations import duration_of, seconds_of


@pytest.mark.parametrize(
    ("seconds", "duration"),
    [
        (0.0, Duration()),
        (1.5, Duration(seconds=1, nanos=500_000_000)),
        (0.999_999_999_9, Duration(seconds=1)),
        (86_400.25, Duration(seconds=86_400, nanos=250_000_000)),
    ],
)
def test_a_span_is_rounded_to_nanoseconds(seconds: float, duration: Duration) -> None:
    """A fraction that rounds up to a second is a second."""
    assert duration_of(seconds) == duration
    assert seconds_of(duration) == pytest.approx(seconds, abs=1e-9)
