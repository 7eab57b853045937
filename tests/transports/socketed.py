"""Functions behind sessions over WebSocket, and what is told of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from invoker.protocols.evergreen.action_engine.wire import Action, Chunk, Fragment

UPPER = Action("A", "upper", (("x", "A#x"),), (("y", "A#y"),))


def upper(x: str) -> str:
    return x.upper()


async def echo(x: AsyncIterator[str]) -> AsyncIterator[str]:
    async for one in x:
        yield one


def code_of(fragment: Fragment) -> int:
    """Of a status."""
    assert isinstance(fragment.content, Chunk)
    return fragment.content.data[0]


class Held:
    """Functions that wait to be let go, and tell that they were left."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.left = asyncio.Event()
        self.count = 0

    async def run(self, x: AsyncIterator[str]) -> AsyncIterator[str]:
        """Wait, then count what comes."""
        self.started.set()
        try:
            await self.go.wait()
            async for _ in x:
                self.count += 1
            yield f"{self.count}"
        finally:
            self.left.set()

    async def flood(self) -> AsyncIterator[bytes]:
        """Give for ever."""
        try:
            while True:
                self.count += 1
                yield bytes(16 * 1024)
        finally:
            self.left.set()
