"""Sessions of the suite, against the bridge of the client's tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from invoker_conformance import Failure
from invoker_conformance.target import Target, parse_addresses
from invoker_conformance.toolbridge.host import Host
from invoker_conformance.toolbridge.session import Session
from tests.protocols.toolbridge.client.peer import Peer, serve


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with serve() as running:
        yield running


@pytest.fixture
async def session(peer: Peer) -> AsyncIterator[Session]:
    target = Target(parse_addresses([peer.target]), parse_addresses([]), timeout_s=1, message_bytes=1000)
    async with Host(target, "add").session() as made:
        yield made
    await target.close()


async def test_results_and_errors(session: Session) -> None:
    """What is expected passes, and what is not fails with what was met."""
    await session.gives("x", "echo", value="x")
    with pytest.raises(Failure, match="met 'x'"):
        await session.gives("y", "echo", value="x")
    await session.fails("ValidationError", "unknown_arg", "fail", field="x")
    for kind, code, field in (("InternalError", "", ""), ("ValidationError", "type", ""), ("ValidationError", "", "y")):
        with pytest.raises(Failure, match=f"expected {kind}"):
            await session.fails(kind, code, "fail", field=field)
    with pytest.raises(Failure, match="expected a result"):
        await session.value("fail")
    with pytest.raises(Failure, match="met success=true"):
        await session.fails("ValidationError", "", "echo", value=1)


async def test_streams_and_watches(session: Session, peer: Peer) -> None:
    """They are read when asked to; leaving them cancels."""
    async with session.stream("silent") as stream:
        await stream.next()
        with pytest.raises(Failure, match="nothing for"):
            await stream.next(0.05)
    await asyncio.to_thread(peer.cancelled.wait, 5)
    assert peer.cancelled.is_set()
    with pytest.raises(Failure, match="sequence"):
        await session.chunks("two")  # this bridge numbers nothing
    async with session.watch("x") as watch:
        await session.put("x", 1)
        assert (await watch.next()).operation == "set"
    assert await session.names() == ["x"]
