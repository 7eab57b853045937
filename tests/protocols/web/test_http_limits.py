"""`invoker.protocols.web.http`: bodies that are too long, and what a session holds of any."""

from __future__ import annotations

import sys

import pytest

from invoker.core.http import BodyChunk
from invoker.core.steps import Close, Feed
from invoker.errors import Status, StatusError
from invoker.protocols.web.fields import Signature
from invoker.protocols.web.http import HttpSession
from tests.protocols.web.test_http import LIMIT, opened, post, responded


def test_R154_a_body_over_the_limit_is_413_while_it_is_read() -> None:
    """The chunk that passes the limit ends the conversation; later frames are ignored."""
    session = opened()
    assert session.receive(post()) == ()
    assert session.receive(BodyChunk(bytes(LIMIT))) == ()
    assert responded(session.receive(BodyChunk(b"x"))).status == 413
    assert session.receive(BodyChunk(b"x")) == ()
    assert session.half_close() == ()


@pytest.mark.parametrize("most", [LIMIT, 2])
def test_the_chunks_of_a_body_are_let_go(most: int) -> None:
    """Once they are one value, or the body is refused; else a request holds its body twice while its function runs."""
    session, chunk = opened(limit=most), bytes([1, 2])
    session.receive(post())
    before = sys.getrefcount(chunk)
    session.receive(BodyChunk(chunk))
    assert sys.getrefcount(chunk) == before + 1
    steps = [*session.receive(BodyChunk(b"x")), *session.half_close()]
    assert any(isinstance(step, Feed) for step in steps) is (most == LIMIT)
    assert sys.getrefcount(chunk) == before


@pytest.mark.parametrize(("length", "is_refused"), [(str(LIMIT), False), (str(LIMIT + 1), True), ("9" * 5000, True)])
def test_R154_an_announced_length_over_the_limit_is_413_at_once(length: str, is_refused: bool) -> None:
    """A Content-Length says it before the body comes."""
    steps = opened().receive(post(("content-length", length)))
    assert (bool(steps) and responded(steps).status == 413) is is_refused


def test_H174_a_refusal_holds_nothing_of_what_was_read_ahead() -> None:
    """Its traceback would: the frames of the connection are in it, and it is in one of them."""

    def signature(name: str) -> Signature:
        raise StatusError(Status.NOT_FOUND, f"no {name}")

    *_, close = HttpSession(signature, max_body_bytes=LIMIT).receive(post())
    assert isinstance(close, Close)
    assert isinstance(close.error, StatusError)
    assert close.error.__traceback__ is None
