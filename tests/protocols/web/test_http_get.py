"""`invoker.protocols.web.http`: requests that have no body, and heads that cannot be repeated."""

from __future__ import annotations

import pytest

from invoker.core.http import BodyChunk, RequestHead
from invoker.core.steps import Feed
from invoker.protocols.web.fields import Field
from invoker.protocols.web.http import HttpSession, State
from tests.protocols.web.signed import signed
from tests.protocols.web.test_http import LIMIT, TWO, finished, opened, post, served, told


def test_H007_a_get_is_filled_by_its_query_alone() -> None:
    """A body is of no interest; the answer cannot act as a page of this port."""
    safe = signed(("x",), fields=(Field("x", is_value=True),), is_safe=True)
    session = opened(safe)
    steps = told(session, RequestHead("GET", "/", "x=3"), BodyChunk(b"9"))
    assert [step.message.payload for step in steps if isinstance(step, Feed)] == [b"3"]
    response = finished(session, b"9")
    assert ("Content-Security-Policy", "sandbox") in response.headers


@pytest.mark.parametrize("body", [b"", b"1", b'{"x": 1}', b"x"])
@pytest.mark.parametrize("media_type", ["application/json", "text/plain", ""])
def test_a_session_begins_others_with_the_same_head(media_type: str, body: bytes) -> None:
    """Each gives the steps that it would give if it had read the head itself, and knows nothing of the others."""
    signature = signed(("x",), fields=(Field("x", takes_object=False), Field("y", is_option=True)))
    first = opened(signature)
    head = post(("Content-Type", media_type), ("Accept", "text/plain"))
    assert first.receive(head) == ()
    assert first.can_repeat
    for _ in range(2):
        other = first.again(body)
        assert list(other.half_close()) == told(opened(signature), head, BodyChunk(body))
        assert first.state is State.READING


def test_what_was_refused_or_comes_in_parts_cannot_be_repeated() -> None:
    """Nor can what nobody has read."""
    assert not opened().can_repeat
    refused, parts = HttpSession(served, max_body_bytes=LIMIT), opened(TWO)
    refused.receive(post(path="/other"))
    parts.receive(post(("Content-Type", "multipart/form-data; boundary=x")))
    assert (refused.can_repeat, parts.can_repeat, parts.state) == (False, False, State.READING)
