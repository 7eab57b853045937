"""Tests of an answer as a whole."""

from __future__ import annotations

import asyncio

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.client import CallFailed, EvergreenSession
from invoker.protocols.evergreen.client.answer import Answer
from tests.protocols.evergreen.client.peer import Peer, Talk, inner


async def test_answer_with_several_outputs_is_read_by_name(peer: Peer) -> None:
    """And says so; one without outputs cannot be cancelled by itself."""

    async def nothing(talk: Talk, action: pb.Action) -> None:
        await talk.send(*(inner(one.id) for one in action.outputs))

    peer.scripts["TWO"] = nothing
    async with EvergreenSession(peer.target, extensions=("cancel",)) as session:
        answer: Answer = session.act("TWO", outputs=("a", "b"))
        with pytest.raises(ValueError, match=r"the outputs a, b; name one, as in answer\['name'\]"):
            await answer.text()
        assert await asyncio.gather(answer["a"].text(), answer["b"].items()) == ["", []]
        with pytest.raises(RuntimeError, match="has no output"):
            session.act("TWO", outputs=()).cancel()


async def test_cancelled_answer_has_no_more_to_read(peer: Peer) -> None:
    """Before and after the server's terminators; a second cancel changes nothing."""
    async with EvergreenSession(peer.target, extensions=("cancel",)) as session:
        answer = session.act("SILENT")
        answer.cancel()
        answer.cancel()
        for read in (answer.done(), answer.done()):
            with pytest.raises(CallFailed, match="CANCELLED: the caller cancelled"):
                await read
        with pytest.raises(RuntimeError, match="it was read or discarded before"):
            await answer.text()
