"""`invoker.doors.http.request`: the body of a request of HTTP/1.1, as its front reads it."""

from __future__ import annotations

import asyncio

import pytest

from invoker.core.budget import ProcessBudget
from invoker.doors.http.exchange import HttpSettings
from invoker.doors.http.heads import read_head
from invoker.doors.http.request import Request
from invoker.errors import Cancelled, DeadlineExceeded


class Bringer:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self) -> None:
        self.asked += 1


def begun(bringer: Bringer, **settings: float) -> Request:
    head = read_head(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n")
    return Request(head, bringer, HttpSettings(**settings), ProcessBudget())  # type: ignore[arg-type]  # only floats


async def test_a_body_that_is_here_is_read_without_a_wait() -> None:
    """In the turn in which it is asked for, and without a timer."""
    bringer = Bringer()
    request = begun(bringer)
    request.feed(b"abc", is_last=False)
    request.feed(b"def", is_last=True)
    assert request.unread == 6
    reading = request.whole(10)
    with pytest.raises(StopIteration) as caught:
        reading.send(None)
    assert (caught.value.value, bringer.asked, request.unread) == (b"abcdef", 0, 0)
    assert request._late_timer is None


async def test_more_is_asked_for_when_what_came_was_read() -> None:
    """First for what is waited for, then for what may be read ahead."""
    bringer = Bringer()
    request = begun(bringer)
    reading = asyncio.ensure_future(request.whole(10))
    await asyncio.sleep(0)
    assert bringer.asked == 1
    request.feed(b"abc", is_last=False)
    await asyncio.sleep(0)
    assert bringer.asked > 1
    request.feed(b"", is_last=True)
    assert await reading == b"abc"


async def test_who_reads_is_told_that_the_client_left() -> None:
    """Not cancelled."""
    request = begun(Bringer())
    reading = asyncio.ensure_future(request.whole(10))
    await asyncio.sleep(0)
    request.leave()
    with pytest.raises(Cancelled):
        await reading
    assert request.is_gone


async def test_G013_R154_who_does_something_else_is_cancelled() -> None:
    """When the client leaves."""
    request = begun(Bringer())
    request.feed(b"abc", is_last=True)

    async def answer() -> None:
        await request.whole(10)
        await asyncio.Event().wait()

    request.task = asyncio.create_task(answer())
    await asyncio.sleep(0)
    request.leave()
    with pytest.raises(asyncio.CancelledError):
        await request.task


async def test_a_body_that_stops_is_late() -> None:
    """Whoever waits for it is told."""
    request = begun(Bringer(), body_s=0.02)
    request.feed(b"ab", is_last=False)
    with pytest.raises(DeadlineExceeded, match="2 bytes"):
        await request.whole(10)
    assert request.is_late
