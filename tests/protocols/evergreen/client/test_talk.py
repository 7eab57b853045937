"""Tests of conversations over one action."""

from __future__ import annotations

from invoker.client import EvergreenSession, Talk
from invoker.message import Message
from tests.protocols.evergreen.client.peer import Peer


async def test_each_turn_has_all_that_was_said(peer: Peer) -> None:
    """As nodes that are there; every text travels once."""
    async with EvergreenSession(peer.target) as session:
        talk = Talk(session, "ECHO", system="be brief", config={"seed": 1})
        talk.attach(Message("a file", {"original-file-name": "a.txt", "role": "user"}, "text/plain"))
        assert await talk.say("one").text() == "be brief|a file|one"
        assert await talk.say("two").text() == "be brief|a file|one|be brief|a file|one|two"
    seen = peer.talks[0]
    roles = {one.chunk_fragment.metadata.role for one in seen.fragments if one.chunk_fragment.data == b"one"}
    assert roles == {"user"}
    assert [one.chunk_fragment.data for one in seen.fragments].count(b"one") == 1
    assert [config.TypeName() for config in seen.actions[1].configs] == ["google.protobuf.Struct"]


async def test_forgotten_turn_is_left_out(peer: Peer) -> None:
    """Only the last one can be."""
    async with EvergreenSession(peer.target) as session:
        talk = Talk(session, "ECHO")
        first = talk.say("one")
        await first.text()
        talk.forget(first)
        talk.forget(first)
        assert await talk.say("two").text() == "two"
