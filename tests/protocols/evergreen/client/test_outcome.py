"""Tests of actions that fail by themselves."""

from __future__ import annotations

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.client import CallFailed, EvergreenSession
from invoker.errors import Status
from invoker.protocols.evergreen.client.inbox import Inbox
from invoker.protocols.evergreen.client.outcome import Outcome
from tests.protocols.evergreen.client.peer import Peer, Talk, inner, leaf


async def test_status_node_fails_its_action_only(peer: Peer) -> None:
    """E-121: with partial failures the session goes on, and a part is not taken for the whole."""
    peer.accepts = ("partial-failures",)

    async def partial(talk: Talk, action: pb.Action) -> None:
        (output, status) = (one.id for one in action.outputs)
        assert action.outputs[1].name == "__status__"
        await talk.send(leaf(output, b"begun", more=True), inner(output, seq=1))
        await talk.until(lambda: talk.half_closed.is_set() or len(talk.actions) > 1 or talk.fragments)
        text = b"" if action.name == "FINE" else b"\x08\x02\x12\x04boom"
        await talk.send(leaf(status, text, media_type="application/x-protobuf; type=google.rpc.Status"))

    peer.scripts |= {"PARTIAL": partial, "FINE": partial}
    async with EvergreenSession(peer.target, extensions=("partial-failures",)) as session:
        answer = session.act("PARTIAL")
        pieces = aiter(answer)
        assert await anext(pieces) == "begun"
        session.put("go on")
        with pytest.raises(CallFailed, match="UNKNOWN: boom") as caught:
            await anext(pieces)
        assert caught.value.status is Status.UNKNOWN
        with pytest.raises(CallFailed, match="boom"):
            await answer.done()
        fine = session.act("FINE")
        assert await fine.text() == "begun"
        await fine.done()


def receive(inbox: Inbox, *fragments: pb.NodeFragment) -> None:
    inbox.receive(pb.SessionMessage(node_fragments=fragments))


async def test_status_that_is_none(peer: Peer) -> None:
    """Fails the action, by the server's fault."""
    for data in (b"\xff", b"\x08\x63"):
        inbox = Inbox("peer", held_bytes=1 << 20)
        outcome = Outcome(inbox, "status")
        receive(inbox, leaf("status", data, media_type="application/x-protobuf; type=google.rpc.Status"))
        with pytest.raises(CallFailed, match="INTERNAL: peer sent an invalid status"):
            await outcome.settled()


async def test_session_that_ends_before_the_status() -> None:
    """Nobody may take that for success."""
    inbox = Inbox("peer", held_bytes=1 << 20)
    outcome = Outcome(inbox, "status")
    inbox.end(None)
    with pytest.raises(CallFailed, match="ended the session with OK, but in output '__status__' the node 'status'"):
        await outcome.settled()


async def test_first_error_counts() -> None:
    """And each reader gets one of its own, with the cause of the first."""
    outcome = Outcome(Inbox("peer", held_bytes=1 << 20))
    await outcome.settled()
    cause = ValueError("x")
    failure = CallFailed(Status.CANCELLED, "first")
    failure.__cause__ = cause
    outcome.fail(failure)
    outcome.fail(CallFailed(Status.UNKNOWN, "second"))
    with pytest.raises(CallFailed, match="first") as caught:
        outcome.check()
    assert caught.value is not failure
    assert caught.value.__cause__ is cause
