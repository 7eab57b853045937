"""Tests of one pass over an output: what it refuses, and what it leaves behind."""

from __future__ import annotations

import asyncio
import gc

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.client import CallFailed, EvergreenSession
from invoker.protocols.evergreen.client.answer import Answer
from tests.protocols.evergreen.client.peer import Peer, Talk, inner, leaf, sending


async def test_mixed_references_are_not_joined(peer: Peer) -> None:
    """A client fetches nothing."""
    second = pb.NodeFragment(id="R", seq=1, chunk_fragment=pb.Chunk(ref="data:,x"))
    peer.scripts["MIX"] = sending(leaf("R", b"a", more=True), second)
    async with EvergreenSession(peer.target) as session:
        with pytest.raises(CallFailed, match="mixes references"):
            await session.act("MIX").items()


async def test_dropped_outputs_hold_nothing(peer: Peer) -> None:
    """Neither those that were never read, nor those whose iterator went away."""
    peer.scripts["LONG"] = sending(*(leaf("R", b"x", seq=0, more=True), leaf("R", b"y", seq=1, media_type=None)))
    async with EvergreenSession(peer.target) as session:
        session.act("LONG")
        begun = session.act("LONG")
        async for _ in begun:
            break
        gc.collect()
        assert await session.act("ECHO", {"x": "abc"}).text() == "abc"
        assert session._inbox.arrivals.held_bytes == 0


async def test_reader_that_is_cancelled_leaves_nothing(peer: Peer) -> None:
    """`asyncio.timeout` ends a reading, not the session."""
    peer.scripts["SLOW"] = sending(leaf("R", b"x", more=True))
    async with EvergreenSession(peer.target) as session:
        answer = session.act("SLOW")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await answer.text()
        assert await session.act("ECHO", {"x": "abc"}).text() == "abc"
        assert session._inbox.arrivals.held_bytes == 0


async def test_reader_that_was_cancelled_may_read_on(peer: Peer) -> None:
    """Nothing of a leaf is lost, whether it is read whole or in pieces."""

    async def slow(talk: Talk, action: pb.Action) -> None:
        id_, json = action.outputs[0].id, "application/json"
        await talk.send(leaf(id_, b"[1,", more=True, media_type=json))
        await talk.until(lambda: talk.fragments)
        await talk.send(leaf(id_, b"2]", seq=1, media_type=None))

    peer.scripts["SLOW"] = slow
    for begin in (aiter, Answer.messages):
        async with EvergreenSession(peer.target) as session:
            found = begin(session.act("SLOW"))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(found), 0.1)
            session.put("go on")
            whole = await anext(found)
            assert (whole if isinstance(whole, list) else whole.payload) == [1, 2]


async def test_server_that_sends_what_cannot_be_read_is_named(peer: Peer) -> None:
    """The output, too."""
    peer.scripts["CYCLE"] = sending(inner("R", "x"), inner("x", "y"), inner("y", "x"))
    async with EvergreenSession(peer.target) as session:
        with pytest.raises(CallFailed, match=f"{peer.target} sent in output 'response' node 'y' which includes itself"):
            await session.act("CYCLE").items()
