"""Conversations that hold one invocation together, and what each of them was told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from invoker.core.steps import (
    Close,
    Emitted,
    Event,
    Finished,
    Join,
    Open,
    Step,
    Terms,
)
from invoker.errors import InvocationError
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from tests.execution.loopcalls import until
from tests.execution.memory import driver_of
from tests.execution.scripted import FakeCall, Script

ROUND = Open("round", terms=Terms.LOOSE, is_shared=True)
JOIN = Join("round")


class PlainCall(FakeCall):
    """The same wire with a reactor for one invocation, whose session keeps nothing."""

    def __init__(self, driver: Driver, script: Script) -> None:
        super().__init__(driver, script)
        self.reactor.gone()
        self.closed = asyncio.get_running_loop().create_future()
        self.reactor = Reactor(script, self, driver, self.closed.set_result)


def told(peer: FakeCall) -> list[bytes]:
    """The payloads that a conversation was told."""
    return [one.message.payload for one in peer.script.of(Emitted)]


async def heard(*peers: FakeCall) -> list[InvocationError | None]:
    """How the shared invocation ended, as each of these conversations heard it, once."""
    await until(lambda: all(one.script.of(Finished) for one in peers))
    assert [len(one.script.of(Finished)) for one in peers] == [1] * len(peers)
    return [one.script.of(Finished)[0].error for one in peers]


async def adeaf(xs: AsyncIterator[str]) -> AsyncIterator[str]:
    await asyncio.Event().wait()
    yield ""


class House:
    """A driver, with conversations of one kind; nothing is left when they are over."""

    def __init__(self, kind: type[FakeCall], *functions: Any) -> None:
        self.kind = kind
        self.driver = driver_of(*functions, grace_s=0.1)
        self.peers: list[FakeCall] = []

    def peer(self, *steps: Step, answer: Callable[[Event], Iterable[Step]] = lambda _: ()) -> FakeCall:
        made = self.kind(self.driver, Script(answer))
        self.peers.append(made)
        made.reactor.arrived(steps)
        return made

    async def close(self) -> None:
        for one in self.peers:
            if not one.closed.done():
                one.reactor.arrived([Close()])
        driver = self.driver
        assert await driver.left(5)
        assert [*driver.shared, *driver.engine.running, *driver.conversations, *driver.leaving] == []
        assert not any(one.reactor.runners for one in self.peers)
        assert driver.engine.memory.held == 0
        assert [one for one in asyncio.all_tasks() if one.get_name() == "room"] == []
        driver.close()
