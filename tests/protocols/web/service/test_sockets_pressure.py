"""`invoker.protocols.web.service.sockets`: who leaves, and who is slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from wsproto.events import CloseConnection

from invoker.errors import Status
from invoker.transports.http.app import SocketSettings
from tests.protocols.web.service.sockettalk import END, out, rest, say
from tests.transports.served import Served, until


class Summed:
    """A function that commits what it was given at its end."""

    def __init__(self) -> None:
        self.started, self.left = asyncio.Event(), asyncio.Event()
        self.committed: list[int] = []

    async def run(self, xs: AsyncIterator[int]) -> AsyncIterator[int]:
        """Commit the items once all are here."""
        found = []
        try:
            async for x in xs:
                found.append(x)
                self.started.set()
            self.committed = found
            yield sum(found)
        finally:
            self.left.set()


@pytest.mark.parametrize("how", ["close", "abort", "eof", "garbage"])
async def test_H048_who_leaves_without_the_end_commits_nothing(how: str) -> None:
    """However the connection ends: by a close frame, with or without ceremony, or by what is no frame."""
    summed = Summed()
    async with Served.at(summed.run) as served, served.peer("/run/ws") as peer:
        await say(peer, {"data": 1}, {"data": 2})
        await summed.started.wait()
        if how == "close":
            await peer.send(CloseConnection(1000))
            assert await peer.closed() == 1000
        elif how == "abort":
            peer.writer.transport.abort()
        elif how == "eof":
            peer.writer.write_eof()
        else:
            await peer.raw(b"\xff\xff\xff\xff\xff\xff")
        await summed.left.wait()
        await until(lambda: not served.driver.engine.running)
        assert summed.committed == []
        wanted = Status.INVALID_ARGUMENT if how == "garbage" else Status.CANCELLED
        assert served.driver.engine.counters.finished == {wanted: 1}


async def test_H048_who_says_the_end_commits() -> None:
    """And hears of it."""
    summed = Summed()
    async with Served.at(summed.run) as served, served.peer("/run/ws") as peer:
        await say(peer, {"data": 1}, {"data": 2}, END)
        assert await rest(peer) == [out(3), END]
        assert summed.committed == [1, 2]


async def test_H051_a_slow_function_makes_the_client_wait() -> None:
    """What it does not take is not read; all of it arrives."""
    go = asyncio.Event()

    async def late(xs: AsyncIterator[str]) -> AsyncIterator[int]:
        await go.wait()
        count = 0
        async for _ in xs:
            count += 1
        yield count

    async with Served.at(late) as served, served.peer("/late/ws") as peer:

        async def pour() -> None:
            for _ in range(400):
                await say(peer, {"data": "x" * 64 * 1024})
            await say(peer, END)

        pouring = asyncio.create_task(pour())
        await until(lambda: any(one.is_paused for one in served.driver.conversations))  # type: ignore[attr-defined]
        (invocation,) = served.driver.engine.running.values()
        for _ in range(200):
            await asyncio.sleep(0)
        assert invocation.budget.bytes < 6 * 1024 * 1024
        assert not pouring.done()
        go.set()
        assert await rest(peer) == [out(400), END]
        await pouring


async def test_H051_a_slow_client_makes_the_function_wait() -> None:
    """Little is kept for it; it goes on when the client reads."""
    given = 0

    async def flood(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        nonlocal given
        for _ in range(1000):
            given += 1
            yield "x" * 16 * 1024

    async with Served.at(flood) as served, served.peer("/flood/ws") as peer:
        before = -1
        while before != given:
            before = given
            await asyncio.sleep(0.1)
        assert given < 900
        assert len(await rest(peer)) == 1001
        assert given == 1000


async def test_H052_a_client_that_takes_nothing_loses_its_connection() -> None:
    """And the function is left."""
    left = asyncio.Event()

    async def flood(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        try:
            while True:
                yield "x" * 64 * 1024
        finally:
            left.set()

    async with Served.at(flood, socket=SocketSettings(write_s=0.1)) as served, served.peer("/flood/ws") as peer:
        peer.reader._transport.pause_reading()  # type: ignore[attr-defined]  # what a slow client does
        await left.wait()
        await until(lambda: not served.transport.connections.open)
