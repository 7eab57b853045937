"""Tests of who waits for what, and of when the call is read."""

from __future__ import annotations

import asyncio

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.connect.failure import CallFailed
from invoker.errors import Status
from invoker.protocols.evergreen.client.inbox import Inbox
from tests.protocols.evergreen.client.peer import leaf

LIMIT = 1 << 16


@pytest.fixture
def inbox() -> Inbox:
    """With an output whose bytes are above the mark."""
    made = Inbox("peer", held_bytes=LIMIT)
    made.expect("out")
    made.receive(pb.SessionMessage(node_fragments=[leaf("out", bytes(LIMIT // 2), more=True)]))
    return made


async def is_held(inbox: Inbox) -> bool:
    """Whether the call is not read now; the wait is given up."""
    waiting = asyncio.ensure_future(inbox.may_read())
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    return not waiting.done()


async def test_call_is_not_read_above_the_mark(inbox: Inbox) -> None:
    """Unless somebody waits for what has not come, or nobody reads and somebody waits to write."""
    assert await is_held(inbox)
    arrival = asyncio.create_task(inbox.arrival("other"))
    await asyncio.sleep(0)
    assert not await is_held(inbox)
    arrival.cancel()
    await asyncio.gather(arrival, return_exceptions=True)
    assert await is_held(inbox)
    with inbox.writing():
        assert not await is_held(inbox)
        assert inbox.begin("out")
        assert await is_held(inbox), "a reader will come back for more"
    assert await is_held(inbox)


@pytest.mark.parametrize("release", ["discard", "close", "lift", "end"])
async def test_call_is_read_on(inbox: Inbox, release: str) -> None:
    """When the bytes are not wanted any more, and when nothing else can come."""
    waiting = asyncio.create_task(inbox.may_read())
    await asyncio.sleep(0)
    {
        "discard": lambda: inbox.discard("out"),
        "close": inbox.close,
        "lift": inbox.lift,
        "end": lambda: inbox.end(None),
    }[release]()
    await asyncio.wait_for(waiting, 5)


def test_more_than_the_limit_fails(inbox: Inbox) -> None:
    """Whoever waits."""
    with pytest.raises(CallFailed, match="RESOURCE_EXHAUSTED") as caught:
        inbox.receive(pb.SessionMessage(node_fragments=[leaf("x", bytes(LIMIT))]))
    assert caught.value.status is Status.RESOURCE_EXHAUSTED


async def test_end_reaches_everybody_and_the_first_counts(inbox: Inbox) -> None:
    """Each gets an error of its own, so that tracebacks do not mix."""
    waiting = [asyncio.create_task(inbox.arrival(id_)) for id_ in ("a", "a", "b")]
    await asyncio.sleep(0)
    inbox.end(CallFailed(Status.UNKNOWN, "boom"))
    inbox.end(None)
    await asyncio.wait_for(asyncio.gather(*waiting), 5)
    assert not inbox.is_told
    first, second = inbox.failure(), inbox.failure()
    assert str(first) == str(second) == "UNKNOWN: boom"
    assert first is not second
    assert inbox.is_told
    with pytest.raises(CallFailed, match="boom"):
        inbox.check()


async def test_output_is_begun_once(inbox: Inbox) -> None:
    """And not after it was given up."""
    assert inbox.begin("out")
    assert not inbox.begin("out")
    inbox.expect("second")
    inbox.discard("second")
    assert not inbox.begin("second")
