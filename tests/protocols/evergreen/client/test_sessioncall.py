"""Tests of the call of a session."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
import trustme

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.client import CallFailed, EvergreenSession, Tls
from invoker.errors import Status
from tests.connect.test_tls import credentials
from tests.protocols.evergreen.client.peer import Peer, Talk, serve


async def test_server_that_sends_an_action(peer: Peer) -> None:
    """E-015: it is refused, and the session fails by the server's fault."""

    async def act(talk: Talk, action: pb.Action) -> None:
        await talk.context.write(pb.SessionMessage(actions=[pb.Action(name="YOU")]))

    peer.scripts["ACT"] = act
    async with EvergreenSession(peer.target) as session:
        with pytest.raises(CallFailed, match="sent the action 'YOU', but a server sends none") as caught:
            await session.act("ACT").text()
    assert caught.value.status is Status.INTERNAL


async def test_deadline_ends_the_session(peer: Peer) -> None:
    """For everybody who waits."""
    async with EvergreenSession(peer.target, timeout_s=0.2) as session:
        with pytest.raises(CallFailed) as caught:
            await session.act("SILENT").text()
    assert caught.value.status is Status.DEADLINE_EXCEEDED
    with pytest.raises(ValueError, match="must be more than 0"):
        EvergreenSession(peer.target, timeout_s=0)


async def test_session_is_used_once_and_inside_of_its_block(peer: Peer) -> None:
    """Everything else is a mistake that is told."""
    session = EvergreenSession(peer.target, metadata={"tenant": "a"})
    with pytest.raises(RuntimeError, match="the session is not open"):
        session.act("ECHO")
    async with session:
        pass
    with pytest.raises(RuntimeError, match="the session is not open"):
        session.put("x")
    with pytest.raises(RuntimeError, match="a session is used once"):
        await session.__aenter__()
    assert peer.talks[0].metadata["tenant"] == "a"


async def test_wait_tells_how_the_session_ended(peer: Peer) -> None:
    """Without reading anything."""
    async with EvergreenSession(peer.target) as session:
        waiting = asyncio.create_task(session.wait())
        session.act("FAIL")
        with pytest.raises(CallFailed, match="boom"):
            await waiting
        assert not session.is_open


async def test_session_may_be_closed_within_its_block(peer: Peer) -> None:
    """And again by its end; what failed is told once."""
    async with EvergreenSession(peer.target) as session:
        session.act("FAIL")
        with pytest.raises(CallFailed, match="boom"):
            await session.close()
        await session.close()


async def test_connection_is_gone_when_the_session_is(peer: Peer) -> None:
    """Without waiting for the garbage collector: a call that is held holds its connection."""
    gc.collect()
    gc.disable()
    try:
        async with EvergreenSession(peer.target) as session:
            assert await session.act("ECHO", {"x": "abc"}).text() == "abc"
            assert session._call._exchange is not None
            call = weakref.ref(session._call._exchange._rpc)
            assert call() is not None
        await asyncio.sleep(0)  # the last callbacks of the call
        assert call() is None
    finally:
        gc.enable()


async def test_tls() -> None:
    """With an authority of our own."""
    authority = trustme.CA()
    async with serve(credentials(authority, "localhost")) as peer:
        tls = Tls(ca=authority.cert_pem.bytes(), server_name="localhost")
        async with EvergreenSession(peer.target, tls=tls) as session:
            assert await session.act("ECHO", {"x": "safe"}).text() == "safe"
