"""`invoker.protocols.riff.http`: requests that have no body."""

from __future__ import annotations

from invoker.core.http import BodyChunk, RequestHead
from invoker.core.steps import Feed
from invoker.protocols.riff.fields import Field, Signature
from tests.protocols.riff.test_http import finished, opened, told


def test_H007_a_get_is_filled_by_its_query_alone() -> None:
    """A body is of no interest; the answer cannot act as a page of this port."""
    safe = Signature(("x",), fields=(Field("x", is_value=True),), is_safe=True)
    session = opened(safe)
    steps = told(session, RequestHead("GET", "/", "x=3"), BodyChunk(b"9"))
    assert [step.message.payload for step in steps if isinstance(step, Feed)] == [b"3"]
    response = finished(session, b"9")
    assert ("Content-Security-Policy", "sandbox") in response.headers
