"""Finds out which side of each running invocation waits for the other: `flows` for one moment, `Pressure` for the log.

An invocation is *paused* while its input is not read, because its function takes less than its caller sends. It is
*blocked* while its function waits until its caller has read more. If a function runs in the thread of its call, frames
that come meanwhile are *held* at the call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Final, NamedTuple

from invoker.core.invocation import Invocation
from invoker.execution.driver import Driver
from invoker.execution.keeping import Keeping
from invoker.execution.loop.reactor import Reactor
from invoker.execution.loop.sessions import SessionReactor
from invoker.execution.thread.direct import DirectConversation

log = logging.getLogger(__name__)

PAUSED: Final = "an invocation is paused: its function reads more slowly than its caller sends"
BLOCKED: Final = "an invocation is blocked: its caller reads more slowly than its function produces"

_LOOK_S: Final = 0.4
"""Seconds between two checks. An invocation that is paused or blocked at two checks in a row is logged, within a
second."""


class Flow(NamedTuple):
    """The flow of one invocation.

    Attributes:
        is_paused: Whether reading of its input has stopped.
        is_blocked: Whether its function waits until its caller reads.
        frames: Frames that are held at its call, not yet in an input.
        bytes: The bytes of these frames.
    """

    is_paused: bool = False
    is_blocked: bool = False
    frames: int = 0
    bytes: int = 0


FLOWING: Final = Flow()


def flows(driver: Driver) -> dict[str, Flow]:
    """The flows of invocations by id, as far as their conversations can tell; called on the loop."""
    found: dict[str, Flow] = {}
    for one in tuple(driver.conversations):
        if isinstance(one, Reactor) and one.is_paused:
            found.update({invocation.id: Flow(is_paused=True) for invocation in _paused(one)})
    for direct in tuple(driver.direct):
        if isinstance(direct, Keeping):
            if direct.is_open and direct.outlet.is_blocked:
                found[direct.invocation.id] = Flow(is_blocked=True)
        elif isinstance(direct, DirectConversation) and (invocation := direct.invocation) is not None:
            wire, held = direct.wire, direct.wire.waiting
            is_paused, size = bool(held) and not wire.is_idle, sum(map(len, held))
            found[invocation.id] = Flow(is_paused, wire.is_blocked, len(held), size)
    return found


def _paused(reactor: Reactor) -> Iterator[Invocation]:
    """The invocations that have no room for further frames; in a session of many that may be only some."""
    runners = tuple(reactor.runners.values())
    if isinstance(reactor, SessionReactor):
        stalled = {key for key, _ in reactor.stalled}
        return (one.invocation for one in runners if one.invocation.key in stalled)
    return (one.invocation for one in runners)


class Pressure:
    """Logs a line when an invocation is found paused, and one when it is found blocked.

    Each is written once for an invocation.

    Args:
        driver: The driver of the invocations.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._seen: set[tuple[str, str]] = set()
        self._told: set[tuple[str, str]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to check the invocations, on the running loop."""
        self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._tick)

    def stop(self) -> None:
        """Stop the checks; nothing is logged any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self.look()
        self.start()

    def look(self) -> None:
        """Log the invocations that are paused or blocked now and already were at the last check."""
        now: set[tuple[str, str]] = set()
        flowing = flows(self._driver)
        for invocation in tuple(self._driver.engine.running.values()):
            flow = flowing.get(invocation.id, FLOWING)
            if flow.is_paused:
                now.add((invocation.id, PAUSED))
                self._tell(PAUSED, invocation, flow)
            if flow.is_blocked or invocation.blocked:
                now.add((invocation.id, BLOCKED))
                self._tell(BLOCKED, invocation, flow)
        self._seen = now
        running = self._driver.engine.running
        self._told = {key for key in self._told if key[0] in running}

    def _tell(self, message: str, invocation: Invocation, flow: Flow) -> None:
        key = (invocation.id, message)
        if key not in self._seen or key in self._told:
            return
        self._told.add(key)
        log.info(
            message,
            extra={
                "invocation": invocation.id,
                "function": invocation.function.spec.name,
                "queued_frames": invocation.budget.frames + flow.frames,
                "queued_bytes": invocation.budget.bytes + flow.bytes,
            },
        )
