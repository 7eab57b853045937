"""Evergreen sessions on a wire in memory."""

from __future__ import annotations

import asyncio
from typing import Any

from invoker.core.steps import Close
from invoker.execution.driver import Driver
from invoker.execution.loop.sessions import SessionReactor
from invoker.protocols.evergreen.session import EvergreenSession
from invoker.protocols.evergreen.settings import EvergreenSettings
from tests.transports.evergreen import frame


async def _no_fetch(uri: str, most: int, deliver: Any) -> None:
    raise AssertionError("nothing is fetched here")


class EvergreenCall:
    """One session; its peer's frames are said, what it gets is counted.

    Attributes:
        closed: What the peer is told of the end.
        size: Bytes that were written.
    """

    def __init__(self, driver: Driver, settings: EvergreenSettings | None = None, *, is_full: bool = False) -> None:
        settings = settings or EvergreenSettings()
        self.is_gone = False
        self.headers: tuple[tuple[str, str], ...] = ()
        self.size = 0
        self.closed: asyncio.Future[Close] = asyncio.get_running_loop().create_future()
        self.is_full = is_full
        self.session = EvergreenSession([one.spec for one in driver.engine.catalog], settings=settings)
        self.reactor = SessionReactor(
            self.session, self, driver, self.closed.set_result, window=settings.window, fetch=_no_fetch
        )

    def accepted(self) -> None:
        """Headers are of no interest."""

    def ask(self) -> None:
        raise AssertionError("a session never pauses")

    def write(self, data: bytes) -> bool:
        assert not self.closed.done(), "a frame behind the status"
        self.size += len(data)
        return not self.is_full

    async def room(self) -> None:
        await asyncio.Event().wait()

    def say(self, *parts: Any) -> EvergreenCall:
        """The peer's next message."""
        assert self.reactor.arrived(frame(*parts))
        return self

    def half_close(self) -> None:
        self.reactor.arrived(None)
