"""`RoundLeadership`: which of several processes runs the rounds of a population.

Theory. The leader of a population is the process that has made the space ``federated-leader:POPULATION`` of the store,
and holds it. The text of the space is the address at which the leader takes conversations from the others (see
`relay`). The space ends when the leader leaves; all others are notified, and each tries to make it again. A leader that
was killed cannot leave: its socket has no listener any more, which the others notice at their next look, so they drop
the space. One that hangs holds the space no longer than its lease; then the space expires, as any other.

The store decides, so at most one leader can commit: a process which believes that it still leads, though
it slept through its lease, learns from the store that it has lost the space, and a commit of its round is refused.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from invoker.core.store import Create, Drop, Hold, Look, Refused, Space
from invoker.execution.asker import Asker
from invoker.execution.driver import Driver

log = logging.getLogger(__name__)

_LOOK_S: Final = 0.5
"""Seconds between two checks whether the leader is alive."""

_TTL_S: Final = 3.0
"""Time to live of the space: it stays for so long when nobody holds it, as after the lease of its leader."""


class Leader(msgspec.Struct, frozen=True):
    """The address at which a leader takes conversations from other processes.

    Attributes:
        address: Path of a Unix socket; empty: it takes none.
        token: The token that they must send.
        host: Name of the machine, to which the path belongs.
        nonce: Distinguishes this attempt to lead from all others.
    """

    address: str
    token: str
    host: str
    nonce: str


class Takes(Protocol):
    """Is notified when this process begins to lead a population, and when it ceases to."""

    async def lead(self, population: str) -> None:
        """Called when this process leads: begin to run the rounds of a population."""

    def lose(self, population: str) -> None:
        """End the population's conversations, because another process may run its rounds now."""


class RoundLeadership:
    """The part of this process in leading one population.

    Args:
        population: Its name.
        driver: Has the store.
        takes: Notified when this process begins to lead, and when it ceases to.

    Attributes:
        is_here: Whether this process leads, and has begun to run the rounds.
        leader: Another process that leads; None: this process leads, or the leader is not known.
        has_left: Whether this process has stopped leading and looking for the leader; ``leader`` stays as it was.
        has_led: Whether it led when it left.
    """

    def __init__(self, population: str, driver: Driver, takes: Takes) -> None:
        self.is_here = self.has_left = self.has_led = False
        self.leader: Leader | None = None
        self._population = population
        self._space = f"federated-leader:{quote(population, safe='')}"
        self._driver = driver
        self._takes = takes
        self._own = ("", "", socket.gethostname())
        self._decided = asyncio.Event()
        self._ended = asyncio.Event()
        self._asker = Asker(driver.store)
        self._task: asyncio.Task[None] | None = None
        self._has_space = False

    def start(self, address: str, token: str) -> None:
        """Begin to follow the leader of the population, or to lead it.

        Args:
            address: The address at which this process would take conversations; empty: other processes cannot reach it.
            token: The token that others must send then.
        """
        self._own = (address, token, self._own[2])
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"leader of {self._population}")

    async def decided(self, within_s: float) -> bool:
        """Wait until the leader is known; False if it is not known after ``within_s`` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._decided.wait()
        return self._decided.is_set()

    async def stop(self) -> None:
        """Stop leading, and let another process lead."""
        if self._task is None:
            return
        leader, has_led = self.leader, self.is_here
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._task = None
        self.leader, self.has_led, self.has_left = leader, has_led, True
        self._decided.set()
        if self._has_space:
            Asker(self._driver.store).later(Drop(self._space, is_forced=True))
        self._asker.leave()

    def give_up(self) -> None:
        """Stop leading, because another process leads, and find out which one."""
        self._ended.set()

    async def _run(self) -> None:
        while True:
            self._decided.clear()
            try:
                await self._once()
            except Exception:
                log.exception(
                    "this process cannot run the rounds of a population", extra={"population": self._population}
                )
                await asyncio.sleep(_LOOK_S)

    async def _once(self) -> None:
        """Lead, or follow a leader, until that ends."""
        me = Leader(*self._own, secrets.token_hex(8))
        self._asker.leave()
        self._asker = Asker(self._driver.store)
        space = await self._asker.ask(Create(self._space, _TTL_S, msgspec.json.encode(me)))
        if not isinstance(space, Space):
            await asyncio.sleep(_LOOK_S)  # the store cannot be reached, or is full
            return
        self._ended.clear()
        if not space.is_new:
            await self._follow(msgspec.json.decode(space.about, type=Leader))
            return
        held = await self._asker.ask(Hold(self._space))
        if isinstance(held, Space) and held.about == msgspec.json.encode(me):
            self._has_space = True
            await self._lead(me)
            self._has_space = False
            await self._drop(me)

    async def _lead(self, me: Leader) -> None:
        self._asker.on_end(self._space, self._end)
        log.info("this process runs the rounds", extra={"population": self._population})
        try:
            await self._takes.lead(self._population)
            self.is_here = not self._ended.is_set()
            if self.is_here:
                self._decided.set()
                await self._ended.wait()
                log.warning("this process has lost the rounds to another", extra={"population": self._population})
        except Exception:
            await self._drop(me)
            raise
        finally:
            self._lose()

    def _lose(self) -> None:
        self.is_here = False
        self._decided.clear()
        self._takes.lose(self._population)

    async def _follow(self, leader: Leader) -> None:
        """Follow a leader until it is gone."""
        is_own = leader.address == self._own[0] and leader.host == self._own[2]  # left by a failed attempt
        if is_own or await self._is_dead(leader):
            await self._drop(leader)
            return
        self.leader = leader
        self._decided.set()
        self._asker.on_end(self._space, self._end)
        try:
            while not self._ended.is_set():
                if await self._is_dead(leader):
                    await self._drop(leader)
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._ended.wait()
        finally:
            self.leader = None
            self._decided.clear()

    async def _drop(self, leader: Leader) -> None:
        """Drop the space of a dead leader, unless another process has done so and leads now."""
        space = await self._asker.ask(Look(self._space))
        if isinstance(space, Space) and space.about == msgspec.json.encode(leader):
            Asker(self._driver.store).later(Drop(self._space, is_forced=True))

    async def _is_dead(self, leader: Leader) -> bool:
        """Whether a leader on this machine has no listener at its address any more."""
        if not leader.address or leader.host != self._own[2]:
            return False
        try:
            _, writer = await asyncio.open_unix_connection(leader.address)
        except ConnectionRefusedError:
            _clear_away(Path(leader.address))
            return True
        except OSError:
            return False
        writer.close()
        return False

    def _end(self, why: Refused) -> None:
        log.debug("the space of a leader has ended: %s", why.reason.value)
        self._ended.set()


def _clear_away(socket_path: Path) -> None:
    """Remove the socket of a killed process, with its folder, since no other code does."""
    with suppress(OSError):
        socket_path.unlink()
        socket_path.parent.rmdir()
