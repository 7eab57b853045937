"""`invoker.transports.http.request`: the body of a request of HTTP/1.1, as its handler reads it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from invoker.core.budget import ProcessBudget
from invoker.core.http import BodyChunk, Response
from invoker.errors import Cancelled, DeadlineExceeded, InvocationError, Overloaded
from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.heads import read_head
from invoker.transports.http.request import Request


class BodySource:
    """Counts how often it is asked, and keeps responses."""

    peer = "192.0.2.1"

    def __init__(self) -> None:
        self.asked = self.aborted = 0
        self.responses: list[Response] = []

    def answered(self, request: Request, response: Response) -> None:
        self.responses.append(response)

    def ask(self) -> None:
        self.asked += 1

    def abort(self) -> None:
        self.aborted += 1


def begun(source: BodySource, **settings: float) -> Request:
    head = read_head(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n")
    return Request(head, source, HttpSettings(**settings), ProcessBudget())  # type: ignore[arg-type]  # only floats


async def test_a_body_that_is_here_is_read_without_a_wait() -> None:
    """In the turn in which it is asked for, and without a timer."""
    source = BodySource()
    request = begun(source)
    request.feed(b"abc", is_last=False)
    request.feed(b"def", is_last=True)
    assert request.unread == 6
    reading = request.whole(10)
    with pytest.raises(StopIteration) as caught:
        reading.send(None)
    assert (caught.value.value, source.asked, request.unread) == (b"abcdef", 0, 0)
    assert request._late_timer is None


async def test_more_is_asked_for_when_what_came_was_read() -> None:
    """First for what is waited for, then for what may be read ahead."""
    source = BodySource()
    request = begun(source)
    reading = asyncio.ensure_future(request.whole(10))
    await asyncio.sleep(0)
    assert source.asked == 1
    request.feed(b"abc", is_last=False)
    await asyncio.sleep(0)
    assert source.asked > 1
    request.feed(b"", is_last=True)
    assert await reading == b"abc"


async def test_who_reads_is_told_that_the_client_left() -> None:
    """Not cancelled."""
    request = begun(BodySource())
    reading = asyncio.ensure_future(request.whole(10))
    await asyncio.sleep(0)
    request.leave()
    with pytest.raises(Cancelled):
        await reading
    assert request.is_gone


async def test_G013_R154_who_does_something_else_is_cancelled() -> None:
    """When the client leaves."""
    request = begun(BodySource())
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
    request = begun(BodySource(), body_s=0.02)
    request.feed(b"ab", is_last=False)
    with pytest.raises(DeadlineExceeded, match="2 bytes"):
        await request.whole(10)
    assert request.is_late


class Heard:
    """A listener, and what it heard."""

    def __init__(self, *, wants: int = 100) -> None:
        self.heard: list[Any] = []
        self.wants = wants

    def arrived(self, frame: Any | None) -> bool:
        self.heard.append(frame.payload if isinstance(frame, BodyChunk) else frame)
        self.wants -= 1
        return self.wants > 0

    def fail(self, error: InvocationError) -> None:
        self.heard.append(type(error))

    def gone(self) -> None:
        self.heard.append("gone")


async def test_a_listener_hears_what_comes_when_it_comes() -> None:
    """The chunks and the end, in the callback that brings them."""
    request, heard = begun(BodySource()), Heard()
    request.feed(b"ab", is_last=False)
    request.listen(heard)
    assert heard.heard == [b"ab"]
    request.feed(b"c", is_last=True)
    assert heard.heard == [b"ab", b"c", None]
    request.feed(b"", is_last=True)
    assert heard.heard[2:] == [None]


async def test_a_listener_that_wants_no_more_hears_no_more_until_it_asks() -> None:
    """What comes meanwhile is kept, and counted as unread."""
    request, heard = begun(BodySource()), Heard(wants=1)
    request.listen(heard)
    request.feed(b"ab", is_last=False)
    request.feed(b"c", is_last=True)
    assert (heard.heard, request.unread) == ([b"ab"], 1)
    heard.wants = 100
    request.ask()
    assert (heard.heard, request.unread) == ([b"ab", b"c", None], 0)


async def test_a_listener_is_told_that_the_body_is_late() -> None:
    """As who reads is."""
    request, heard = begun(BodySource(), body_s=0.02), Heard()
    request.feed(b"ab", is_last=False)
    request.listen(heard)
    rung = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.05, rung.set_result, None)
    await rung
    assert (heard.heard[1:], request.is_late) == ([DeadlineExceeded], True)


async def test_a_listener_is_told_that_the_process_holds_too_much() -> None:
    """The chunk that is too much is not given to it."""
    request, heard = begun(BodySource()), Heard()
    request._share = ProcessBudget(10).share()
    request.listen(heard)
    request.feed(bytes(1 << 20), is_last=False)
    assert heard.heard == [Overloaded]


async def test_a_listener_is_told_that_the_client_left_and_its_answer_is_dropped() -> None:
    """There is nobody to take it."""
    source = BodySource()
    request, heard = begun(source), Heard()
    request.listen(heard)
    request.leave()
    request.answer(Response(200, (), b""))
    assert (heard.heard, source.responses) == (["gone"], [])


async def test_an_answer_goes_to_the_connection_and_nothing_more_to_the_listener() -> None:
    """Whatever comes of the body."""
    source = BodySource()
    request, heard = begun(source), Heard()
    request.listen(heard)
    request.answer(Response(404, (), b""))
    request.feed(b"abc", is_last=True)
    assert ([one.status for one in source.responses], heard.heard) == ([404], [])


async def test_a_long_answer_counts_until_its_client_has_taken_it() -> None:
    """Short ones cost nothing; the connection of one that takes nothing ends when memory runs out."""
    source, memory = BodySource(), ProcessBudget(1_000_000)
    head = read_head(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
    short, long = (Request(head, source, HttpSettings(), memory) for _ in range(2))  # type: ignore[arg-type]
    short.answer(Response(200, (), b"x"))
    long.answer(Response(200, (), bytes(700_000)))
    assert short.untaken is None
    assert long.untaken is not None
    assert memory.held >= 700_000
    other = Request(head, source, HttpSettings(), memory)  # type: ignore[arg-type]
    other.answer(Response(200, (), bytes(300_000)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert source.aborted == 1
    long.untaken.take()
    assert memory.held < 700_000
