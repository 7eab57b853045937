"""Tests of iterators as inputs: who closes them, and who waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.client import EvergreenSession
from invoker.codecs import builtin
from invoker.protocols.evergreen.client.drafts import Draft
from invoker.protocols.evergreen.client.inbox import Inbox
from invoker.protocols.evergreen.client.outcome import Outcome
from invoker.protocols.evergreen.client.streams import Streams
from tests.protocols.evergreen.client.peer import Peer, Talk, leaf
from tests.protocols.evergreen.client.sessions import Noted


async def test_iterators_are_sent_to_their_end_before_the_half_close(peer: Peer) -> None:
    """Also for an action that nobody reads."""
    closed: list[str] = []

    async def slowly() -> AsyncIterator[int]:
        try:
            for number in range(3):
                await asyncio.sleep(0.01)
                yield number
        finally:
            closed.append("async")

    def plain() -> Iterator[str]:
        try:
            yield "a"
        finally:
            closed.append("plain")

    async with EvergreenSession(peer.target) as session:
        session.act("ECHO", {"x": slowly(), "y": plain()})
    data = [one.chunk_fragment.data for one in peer.talks[0].fragments]
    assert [one for one in data if one.isdigit()] == [b"0", b"1", b"2"]
    assert sorted(closed) == ["async", "plain"]


async def test_input_that_nobody_wants_is_not_waited_for(peer: Peer) -> None:
    """E-111: the action has ended, so an endless input ends with the session, and is closed."""
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                await asyncio.sleep(0.001)
                yield "x"
        finally:
            closed.set()

    async def first(talk: Talk, action: pb.Action) -> None:
        await talk.until(lambda: talk.fragments)
        await talk.send(leaf(action.outputs[0].id, b"enough"))

    peer.scripts["FIRST"] = first
    async with EvergreenSession(peer.target) as session:
        assert await session.act("FIRST", {"x": endless()}).text() == "enough"
    assert closed.is_set()


async def test_nothing_is_taken_that_cannot_be_sent() -> None:
    """An iterator waits while the outbox is full."""
    room = asyncio.Event()

    class Full(Noted):
        async def room(self) -> None:
            await room.wait()

    taken = 0

    def blocks() -> Iterator[bytes]:
        nonlocal taken
        while taken < 3:
            taken += 1
            yield b"x"

    inbox = Inbox("peer", held_bytes=1 << 20)
    streams = Streams(inbox, lambda error, outputs, outcome: None)
    session = Full()
    streams.start([(Draft(session, builtin()).tree(), blocks())], (), Outcome(inbox))
    for _ in range(10):
        await asyncio.sleep(0)
    assert taken == 1
    room.set()
    await asyncio.wait_for(streams.finish(), 5)
    assert taken == 3
    assert not session.sent[-1].continued
