"""`invoker.connect.metadata`: what travels as gRPC metadata."""

from __future__ import annotations

import pytest

from invoker.connect.metadata import metadata_pairs


def test_a_later_source_counts() -> None:
    """Keys are folded, so that one key is given once."""
    assert dict(metadata_pairs({"x-id": "1", "a-bin": b"b"}, {"X-Id": "2"})) == {"x-id": "2", "a-bin": b"b"}


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("a b", "x", "may only have letters"),
        ("", "x", "may only have letters"),
        ("grpc-timeout", "1", "reserved"),
        ("a-bin", "x", "takes bytes"),
        ("a", "ü", "printable ASCII"),
        ("a", "x\ny", "printable ASCII"),
    ],
)
def test_metadata_that_cannot_travel_is_refused(key: str, value: str, text: str) -> None:
    """gRPC would fail the call with less to go by."""
    with pytest.raises(ValueError, match=text):
        metadata_pairs({}, {key: value})
