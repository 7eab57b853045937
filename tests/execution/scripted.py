"""A session whose answers are written down, and functions that it may run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from invoker.core.steps import Close, Event, Feed, Step
from invoker.errors import InvocationError
from invoker.execution.loop.sessions import SessionReactor
from invoker.message import Message

WINDOW = 8


class Script:
    """A session whose frames are lists of steps, and which answers events by a function.

    Attributes:
        events: What was delivered.
        answer: Gives the steps for an event.
    """

    def __init__(self, answer: Callable[[Event], Iterable[Step]] = lambda _: ()) -> None:
        self.headers: tuple[tuple[str, str], ...] = (("a", "b"),)
        self.stalled: set[tuple[str, int]] = set()
        self.held = 0
        self.hears_waits = self.is_full = False
        self.events: list[Event] = []
        self.answer = answer
        self.released = 0

    def receive(self, frame: Any) -> Iterable[Step]:
        if isinstance(frame, BaseException):
            raise frame
        return list(frame)

    def half_close(self) -> Iterable[Step]:
        self.hears_waits = True
        return ()

    def deliver(self, event: Event) -> Iterable[Step]:
        self.events.append(event)
        return self.answer(event)

    def release(self) -> None:
        self.released += 1

    def of(self, kind: type) -> list[Any]:
        """The events of one kind."""
        return [one for one in self.events if type(one) is kind]


class FakeCall:
    """A wire in memory, with a reactor at its end."""

    def __init__(self, driver: Any, script: Script, fetch: Any = None) -> None:
        self.is_gone = self.is_full = False
        self.headers: tuple[tuple[str, str], ...] = ()
        self.accepted_with: list[Any] = []
        self.got: list[Any] = []
        self.waits, self.has_room = asyncio.Event(), asyncio.Event()
        self.asks = 0
        self.closed: asyncio.Future[Close] = asyncio.get_running_loop().create_future()
        self.driver, self.script = driver, script
        self.reactor = SessionReactor(script, self, driver, self.closed.set_result, window=WINDOW, fetch=fetch)

    def accepted(self) -> None:
        self.accepted_with.append(self.headers)

    def ask(self) -> None:
        self.asks += 1

    def write(self, frame: Any) -> bool:
        assert not self.closed.done(), "a frame behind the status"
        self.got.append(frame)
        return not self.is_full

    async def room(self) -> None:
        self.waits.set()
        await self.has_room.wait()

    def say(self, *steps: Step) -> None:
        """The peer's next frame."""
        assert self.reactor.arrived(steps)

    async def end(self) -> InvocationError | None:
        """How the session ended; nothing is left of it."""
        error = (await asyncio.wait_for(asyncio.shield(self.closed), 5)).error
        assert await self.driver.left(5)
        assert not self.driver.engine.running
        assert not self.driver.conversations
        assert not self.driver.drains
        assert not self.reactor.runners
        assert self.script.released == 1, "E-003"
        return error


def feed(key: str, payload: bytes = b"x", index: int = 0) -> Feed:
    return Feed(key, index, Message(payload, media_type="text/plain"))


async def echo(xs: AsyncIterator[str]) -> AsyncIterator[str]:
    async for x in xs:
        yield x


def sync_echo(xs: Iterator[str]) -> Iterator[str]:
    yield from xs


async def two() -> tuple[AsyncIterator[str], AsyncIterator[str]]:
    async def some(count: int) -> AsyncIterator[str]:
        for _ in range(count):
            yield "x"

    return some(1), some(2)
