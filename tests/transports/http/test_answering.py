"""`invoker.transports.http.answering`: how a request that is here is answered, and how a short body is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from invoker.core.http import BodyChunk
from invoker.errors import Cancelled, Overloaded, ShuttingDown
from invoker.transports.http.answering import answered
from invoker.transports.http.plain import MOST_BODY_BYTES
from tests.execution.memory import driver_of
from tests.execution.wholes import ByHand, MemoryOutlet
from tests.transports.http.asked import Asked, Prepared, asquare, square


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while Asked.drivers:
        Asked.drivers.pop().close()


async def test_an_async_function_is_called_without_a_session() -> None:
    """The request holds neither its body nor the call once it is answered."""
    asked = Asked()
    assert asked.begin()
    assert (asked.request.body(), asked.request.unread) == (b"", 0)
    (invocation,) = asked.driver.engine.running.values()
    assert invocation.peer is asked.request.peer
    assert await asked.left() == [(200, b"9")]
    assert asked.request._listener is not invocation
    assert asked.request.peer.number == 200


@pytest.mark.parametrize("function", [square, asquare])
async def test_without_effect_what_takes_a_session_is_left_to_others(function: Any) -> None:
    """The body stays where it is."""
    asked = Asked(function)
    assert not asked.begin(b"s")
    assert asked.request.body() == b"s"
    assert await asked.left() == []
    assert asked.driver.engine.counters.opened == 0


@pytest.mark.parametrize("fails", ["unary", "respond"])
async def test_R117_a_fault_of_ours_is_500_without_its_text(fails: str) -> None:
    """And it is logged; nothing waits for ever."""
    asked = Asked()
    asked.prepared.fails = fails
    assert asked.begin()
    assert await asked.left() == [(500, b"InternalError")]


async def test_what_is_not_admitted_is_refused() -> None:
    """At once."""
    asked = Asked()
    asked.driver.engine.is_draining = True
    assert asked.begin()
    assert asked.source.responses == [(500, b"ShuttingDown")]
    assert asked.driver.engine.counters.refused == 1


async def test_a_client_that_leaves_is_noticed() -> None:
    """The request lets go of the call, whose function is cancelled."""
    begun = asyncio.Event()

    async def waits(x: int) -> int:
        begun.set()
        await asyncio.Event().wait()
        return x

    asked = Asked(waits)
    assert asked.begin()
    await begun.wait()
    task = asked.request._listener
    asked.request.leave()
    assert asked.request._listener is not task
    assert await asked.left() == []
    (status,) = asked.driver.engine.counters.finished
    assert status is Cancelled().status


async def test_a_short_body_is_waited_for() -> None:
    """However it comes; meanwhile a drain waits, too."""
    asked = Asked()
    first = asked.first()
    assert asked.driver.conversations == {first}
    asked.request.listen(first)
    asked.request.feed(b"1", is_last=False)
    asked.request.feed(b"2", is_last=False)
    assert asked.driver.engine.counters.opened == 0
    asked.request.feed(b"", is_last=True)
    assert first not in asked.driver.conversations
    assert len(asked.driver.conversations) == 1
    assert await asked.left() == [(200, b"144")]
    assert asked.listening == []
    first.gone()
    first.fail(Overloaded())
    assert asked.listening == []


async def test_a_body_that_takes_a_session_is_passed_on_whole() -> None:
    """With its end."""
    asked = Asked()
    first = asked.first()
    assert first.arrived(BodyChunk(b"s"))
    assert first.arrived(None)
    (other,) = asked.listening
    assert other.got == [b"s", None]
    assert asked.driver.conversations == set()
    first.gone()
    assert other.got[-1] == "gone"


async def test_a_long_body_is_passed_on_as_it_comes() -> None:
    """From the chunk on that makes it long; the other listener says when it wants no more."""
    asked = Asked()
    first = asked.first()
    half = bytes(MOST_BODY_BYTES // 2)
    assert first.arrived(BodyChunk(half))
    assert first.arrived(BodyChunk(half))
    assert asked.listening == []
    assert first.arrived(BodyChunk(b"x"))
    (other,) = asked.listening
    assert other.got == [half, half, b"x"]
    assert first not in asked.driver.conversations
    assert first.arrived(BodyChunk(b"y"))
    assert not first.arrived(None)
    reason = ShuttingDown("cut")
    first.fail(reason)
    assert other.got[3:] == [b"y", None, reason]
    assert len(asked.listening) == 1


async def test_a_body_that_fails_is_answered_by_the_other_listener() -> None:
    """With what has come: it is late, or a drain is over."""
    asked = Asked()
    first = asked.first()
    assert first.arrived(BodyChunk(b"1"))
    reason = ShuttingDown("cut")
    first.fail(reason)
    (other,) = asked.listening
    assert other.got == [b"1", reason]
    assert asked.driver.conversations == set()


async def test_a_client_that_leaves_within_its_body_begins_nothing() -> None:
    """Nobody is told."""
    asked = Asked()
    first = asked.first()
    first.arrived(BodyChunk(b"1"))
    first.gone()
    first.gone()
    assert first.arrived(None)
    assert (asked.listening, asked.driver.conversations) == ([], set())
    assert asked.driver.engine.counters.opened == 0


async def test_a_drain_waits_while_one_listener_follows_another() -> None:
    """It never sees a moment without any."""
    asked = Asked()
    first = asked.first()
    seen: list[int] = []
    exited = asked.driver.exited

    def note(conversation: Any) -> None:
        exited(conversation)
        seen.append(len(asked.driver.conversations))

    begin = first._begin

    def begins(request: Any) -> Any:
        other = begin(request)
        asked.driver.entered(other)
        return other

    asked.driver.exited, first._begin = note, begins  # type: ignore[method-assign]
    first.arrived(BodyChunk(bytes(MOST_BODY_BYTES + 1)))
    assert seen == [1]


class Reply(MemoryOutlet):
    """The outlet of a thread."""

    peer = "192.0.2.1"
    refusal: Any = None


def test_a_thread_calls_a_sync_function_without_a_session() -> None:
    """Its response, and whether it took long."""
    asked = driver_of(square)
    prepared = Prepared(asked)
    response, is_long = answered(prepared, b"3", Reply(), asked, ByHand(), None)  # type: ignore[arg-type]
    assert (response.status, response.body, is_long) == (200, b"9", False)
    response, _ = answered(prepared, b"x", Reply(), asked, ByHand(), None)  # type: ignore[arg-type]
    assert (response.status, response.body) == (500, b"DecodeError")
