"""Plays a script to the real drivers, over wires in memory.

A driver that must wait at a cut does so until it has sent what the reference has sent by then, and has ended if that
has; if it never does, a time limit fails the test.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.steps import Close
from invoker.errors import Cancelled
from invoker.execution.driver import Driver, DriverSettings
from invoker.execution.loop.reactor import Reactor
from invoker.execution.loop.request import converse
from invoker.execution.loop.sessions import SessionReactor
from tests.conftest import SLOW
from tests.execution.wholes import WholeCall
from tests.execution.wires import LIMIT_S, Call
from tests.reference.driver import CANCEL, CUT, DEADLINE, HALF_CLOSE, Heard
from tests.reference.functions import FORMS
from tests.reference.protocols import registry_for
from tests.reference.storing import Storing
from tests.reference.talk import Talk

WAIT_S = LIMIT_S * SLOW

Cuts = Sequence[tuple[int, bool]]
Player = Callable[[Talk, Sequence[Any], Driver, Cuts], Heard]


@functools.cache
def engine_of(form: str) -> Engine:
    """The engine with the functions of a form."""
    return Engine(Catalog(list(FORMS[form].values())), registry_for(form), new_lock=threading.Lock)


class _NoSweeper:
    """Stands in for the sweeper: nothing here takes long."""

    def add(self, _: Any) -> None:
        """Do nothing."""

    def close(self) -> None:
        """There is no thread."""


def driver_of(engine: Engine) -> Driver:
    """A driver that nobody looks after."""
    driver = Driver(engine, DriverSettings(grace_s=1))
    driver.sweeper = _NoSweeper()  # type: ignore[assignment] - it has what conversations call
    return driver


# Threads.


def direct(talk: Talk, script: Sequence[Any], driver: Driver, cuts: Cuts) -> Heard:
    """A thread that reads what its function pulls."""
    call, at = Call(driver, session=talk.session()), iter(cuts)
    for what in script:
        if what is CUT:
            count, is_over = next(at)
            with call.wire.arrived:
                assert call.wire.arrived.wait_for(lambda count=count: len(call.wire.sent) >= count, WAIT_S)
            if is_over:
                call.end()
        elif what is HALF_CLOSE:
            call.half_close()
        elif what is CANCEL or what is DEADLINE:
            call.conversation.deadline = time.monotonic() if what is DEADLINE else None
            call.cancel()
        else:
            call.raw(what)
    call.end()
    _check_told(script, call)
    return Heard([frame for frame, _ in call.wire.sent], call.close)


def _check_told(script: Sequence[Any], call: Call) -> None:
    """The status on the wire is that of the conversation, unless the peer was gone."""
    error = call.close.error
    if script[-1] is HALF_CLOSE:
        assert call.wire.status == ((0, "") if error is None else (int(error.status), str(error)))
        assert tuple(call.wire.trailers) == tuple(call.close.trailers)


def whole(talk: Talk, script: Sequence[Any], driver: Driver, _: Cuts, *, is_long: bool = False) -> Heard:
    """All frames are here before the function runs."""
    assert script[-1] is HALF_CLOSE
    assert CUT not in script
    call = WholeCall(driver, session=talk.session(), has_turn=not is_long)
    for what in script[:-1]:
        call.raw(what)
    call.run_here()
    assert all(close == call.close for close in call.outlet.told)
    return Heard([*call.outlet.left, *call.whole.sent], call.close)


def long(talk: Talk, script: Sequence[Any], driver: Driver, cuts: Cuts) -> Heard:
    """The same, looked after from the beginning."""
    return whole(talk, script, driver, cuts, is_long=True)


# Loops.


class _Wire:
    """The wire of a reactor, with room for everything."""

    is_gone = False
    headers: tuple[tuple[str, str], ...] = ()

    def __init__(self) -> None:
        self.heard, self.is_asked, self.news = Heard(), True, asyncio.Event()

    def accepted(self) -> None:
        """Nobody asks."""

    def ask(self) -> None:
        assert not self.is_asked, "one receive at a time"
        self.is_asked = True
        self.news.set()

    def write(self, frame: Any) -> bool:
        assert self.heard.close is None, "a frame behind the status"
        self.heard.frames.append(frame)
        self.news.set()
        return True

    async def room(self) -> None:
        raise AssertionError("there is always room")

    def close(self, close: Close) -> None:
        assert self.heard.close is None, "a second ending"
        self.heard.close = close
        self.news.set()

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(WAIT_S):
            while not fact():
                self.news.clear()
                await self.news.wait()

    async def at_cut(self, count: int, *, is_over: bool) -> None:
        """Wait until so much was heard."""
        await self.until(lambda: len(self.heard.frames) >= count and (not is_over or self.heard.close is not None))


def reactor(talk: Talk, script: Sequence[Any], driver: Driver, cuts: Cuts) -> Heard:
    """Callbacks on the loop."""
    return asyncio.run(_react(talk, script, driver, cuts, Reactor))


def storing(talk: Talk, script: Sequence[Any], driver: Driver, cuts: Cuts) -> Heard:
    """The reactor of sessions that store, with one that stores nothing."""

    def made(session: Any, *args: Any) -> Reactor:
        return SessionReactor(Storing(session), *args, fetch=None)  # type: ignore[arg-type] - nothing is fetched

    return asyncio.run(_react(talk, script, driver, cuts, made))


async def _react(talk: Talk, script: Sequence[Any], driver: Driver, cuts: Cuts, make: Callable[..., Reactor]) -> Heard:
    wire, at = _Wire(), iter(cuts)
    made = make(talk.session(), wire, driver, wire.close)
    for number, what in enumerate(script):
        if what is CUT:
            count, is_over = next(at)
            await wire.at_cut(count, is_over=is_over)
        elif what is CANCEL or what is DEADLINE:
            made.deadline = time.monotonic() if what is DEADLINE else None
            if wire.heard.close is None:
                made.gone()
        else:
            await wire.until(lambda: wire.is_asked)
            wire.is_asked = made.arrived(None if what is HALF_CLOSE else what)
            for _ in range(number % 3):  # so that bodies may run between two frames, or not
                await asyncio.sleep(0)
    await wire.until(lambda: wire.heard.close is not None)
    assert await driver.left(WAIT_S), "a body does not leave"
    return wire.heard


def request(talk: Talk, script: Sequence[Any], driver: Driver, cuts: Cuts) -> Heard:
    """The task of a request, which brings its frames itself."""
    return asyncio.run(_ask(talk, script, driver, cuts))


async def _ask(talk: Talk, script: Sequence[Any], driver: Driver, cuts: Cuts) -> Heard:
    wire, at, left = _Wire(), iter(cuts), iter(script)

    async def read() -> Any:
        for what in left:
            if what is CUT:
                count, is_over = next(at)
                await wire.at_cut(count, is_over=False)
                if is_over:  # which is not told while there may be more to read
                    await asyncio.Event().wait()
            elif what is CANCEL or what is DEADLINE:
                raise Cancelled("the peer cancelled, or is gone")
            else:
                return None if what is HALF_CLOSE else what
        raise AssertionError("it reads behind the end")

    async with asyncio.timeout(WAIT_S):
        error = await converse(talk.session(), driver, read, wire.write)
    assert await driver.left(WAIT_S), "a body does not leave"
    wire.close(Close(error))  # the task of a request has no use for trailers
    return wire.heard


PLAYERS: dict[str, tuple[Player, str]] = {
    "thread": (direct, "sync"),
    "whole": (whole, "sync"),
    "whole and long": (long, "sync"),
    "reactor, async": (reactor, "async"),
    "reactor, sync": (reactor, "sync"),
    "session reactor, async": (storing, "async"),
    "session reactor, sync": (storing, "sync"),
    "request, async": (request, "async"),
    "request, sync": (request, "sync"),
}
"""Real drivers, and which form of a function each runs."""
